/* The parts of `bench --worker`: breccia's C side, and the flat file's, of `make bench-peers`. */
#ifndef BENCH_WORKER_H
#define BENCH_WORKER_H

#include "../../src/breccia_json.h"
#include "bench.h"

enum { WORKER_DIMS = 3 };

typedef struct worker {
    bench_opts o;
    uint64_t shape[WORKER_DIMS], chunk[WORKER_DIMS], shard[WORKER_DIMS];
    int ndim, sharded, readback;
    int flat; /* FLAT_..., or -1: breccia */
    char dtype[16], codecs[1024], folder[512], name[128];
    size_t item;
    uint8_t *src, *ordered; /* ordered: chunk by chunk, for the flat file */
    repo r; /* r.handle NULL: not open */
    flat_file file;
    uint64_t side; /* of a grid of small chunks */
    double base; /* bytes resident before the first measurement */
    took clock;
    took spent;
} worker;

/* Between these a row is measured. */
void clock_on(worker *w);
void clock_off(worker *w);
uint64_t asked_number(const brc_json *q, const char *name);
const char *asked_text(const brc_json *q, const char *name);
/* Opens FOLDER/NAME.brc of the request, where another one is open or none. */
void worker_open(worker *w, const brc_json *q);
void worker_close(worker *w);
int worker_has(const worker *w, const brc_json *q);

/* worker_grid.c: rows of a grid of small chunks, and of history. */
void grid_prepare(worker *w, const brc_json *q);
void run_commit(worker *w, const brc_json *q);
void run_commits(worker *w, const brc_json *q);
void run_log(worker *w, const brc_json *q);
void run_branch(worker *w, const brc_json *q);
void run_switch(worker *w, const brc_json *q);
void run_diff(worker *w, const brc_json *q);
void run_merge(worker *w, const brc_json *q);
void care_prepare(worker *w, const brc_json *q);
void run_gc(worker *w, const brc_json *q);
void run_fsck(worker *w, const brc_json *q);

#endif
