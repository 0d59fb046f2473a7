/*
 * Costs as things get more. A case does its work at n, 4n and 16n, each time in a process of
 * its own, and says what the part took that is to be judged; the frame (scale.c) turns that
 * into an exponent, log(cost of 16n / cost of n) / log 16, and holds it against SCALE_MOST.
 *
 * To add one: a function as below, and a row in the table of its file; a new file's table goes
 * into the list in scale.c.
 */
#ifndef BENCH_SCALE_H
#define BENCH_SCALE_H

#include "../../src/work/session.h"
#include "bench.h"

#define SCALE_MOST 1.2
/* The same limit for memory, where the operation holds a bounded part of the n things. */
#define SCALE_MOST_MEMORY 0.5

/* The costs that were measured from scale_start to scale_stop. */
typedef struct scale_cost {
    double wall, cpu; /* seconds; cpu of user and system, of all threads */
    double bytes;     /* by which the most memory grew                    */
} scale_cost;

typedef struct scale_case {
    const char *name;
    size_t n; /* the smallest of the three sizes: large enough for about 20 ms */
    /* Sets up, measures and tears down at size n, in the folder o->dir. What fails ends
     * the process (must, must_be). */
    scale_cost (*run)(const bench_opts *o, size_t n);
    int of_memory; /* judged by bytes and not by cpu */
} scale_case;

/* Runs it in a child: memory is new, and what is left behind goes with it. Every case is run
 * so; one may set up by a further child, whose memory then does not count. */
scale_cost scale_apart(scale_cost (*run)(const bench_opts *o, size_t n), const bench_opts *o,
                       size_t n);
scale_cost scale_start(void);
scale_cost scale_stop(scale_cost start);

/* A list of cases ends with one without a name. */
extern const scale_case scale_nodes[], scale_history[], scale_chunks[];

/* A new repository "scale.brc" with its session to write, no array. Many changes between
 * scale_begin and scale_end are one transaction. */
void scale_open(repo *r, const bench_opts *o);
void scale_reopen(repo *r, const bench_opts *o);
void scale_close(repo *r); /* and removes the file */
void scale_begin(const repo *r);
void scale_end(const repo *r);
/* An array of one element; `mark`: an attribute that makes it different from others. */
void scale_array(const repo *r, const char *path, size_t mark);
/* /g0/a0, /g0/a1 ... /g1/a0 ...: n arrays, `each` in a group below `top`. */
void scale_tree(const repo *r, const char *top, size_t n, size_t each);

#endif
