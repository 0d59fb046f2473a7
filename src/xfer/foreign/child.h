/*
 * Runs a program that writes a stream to the caller, or reads one from the caller, in a session of
 * its own.
 *
 * Whatever the program does, the worst result for the caller is an error: the program may crash,
 * hang, write for ever, close its ends, fill its standard error or never read. Both of its outputs
 * are served at once, so that neither can block the other; a byte must move now and then; an
 * interruption ends the program. It is started through sh, which reports its end on a pipe of its
 * own: the caller's program may therefore ignore SIGCHLD, or reap every child that it sees. The
 * program inherits only its ends of these pipes.
 */
#ifndef BRC_XFER_FOREIGN_CHILD_H
#define BRC_XFER_FOREIGN_CHILD_H

#include "../../base/error.h"

typedef struct brc_child_spec {
    const char *command;      /* a program's path; is_shell: a command line of sh         */
    int is_shell;             /* the command is a stranger's: its address space is limited */
    const char *const *args;  /* NULL after the last                                      */
    const char *label;        /* its name in messages: "the converter of x.h5"            */
    int feeds;                /* 1: it reads what the caller writes; 0: it writes what the caller reads */
    int silence_ms;           /* the longest time without a byte while the caller waits for one */
    /* Called between two looks at the pipes: a result below 0 ends the wait. */
    int (*check)(void *ctx, brc_error *err);
    int (*rest)(void *ctx, brc_error *err); /* called when nothing comes, and the wait may be long; or NULL */
    void *ctx;
} brc_child_spec;

typedef struct brc_child brc_child;

/* Starts the program. What the specification points to must outlive the child. */
BRC_MUST_USE int brc_child_start(brc_child **out, const brc_child_spec *spec, brc_error *err);
/* Reads some of the program's output; *n is 0 when the program has closed its end. */
BRC_MUST_USE int brc_child_read(brc_child *c, uint8_t *to, size_t cap, size_t *n, brc_error *err);
/* Writes all bytes to the program. *gone: the program no longer reads. */
BRC_MUST_USE int brc_child_write(brc_child *c, const uint8_t *from, size_t len, int *gone, brc_error *err);
/* Closes the caller's end of the stream and waits for the program, at most `patience_ms` unless that is 0. *status:
 * its exit status, or 128 plus the signal that ended it. */
BRC_MUST_USE int brc_child_end(brc_child *c, int patience_ms, int *status, brc_error *err);
/* Return the program's standard error: the last line that is not empty, and all lines that have room. */
const char *brc_child_last_line(const brc_child *c);
const char *brc_child_said(const brc_child *c);
/* Ends the program, if it still runs, with all processes that it has started in its session. */
void brc_child_free(brc_child *c);

#endif
