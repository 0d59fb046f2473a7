/*
 * A program that writes a stream to us, or reads one from us, in a session of its own.
 *
 * Whatever it does costs the caller an error and nothing else: it may crash, hang, write
 * for ever, close its ends, fill its standard error or never read. Both streams are served
 * at once, so that neither can block the other; a byte must move now and then; an
 * interruption ends it. It is started through sh, which tells how it ended on a pipe of its
 * own: so the caller's program may ignore SIGCHLD, or reap every child that it sees. What
 * it has inherited is its end of our pipes, and nothing else.
 */
#ifndef BRC_XFER_FOREIGN_CHILD_H
#define BRC_XFER_FOREIGN_CHILD_H

#include "../../base/error.h"

typedef struct brc_child_spec {
    const char *command;      /* a program's path; is_shell: a command line of sh         */
    int is_shell;             /* it is a stranger's: its address space is limited          */
    const char *const *args;  /* NULL after the last                                      */
    const char *label;        /* what messages call it: "the converter of x.h5"           */
    int feeds;                /* 1: we write what it reads; 0: we read what it writes     */
    int silence_ms;           /* the longest time without a byte while we wait for one    */
    /* Between two looks at the pipes: below 0 ends the wait. */
    int (*check)(void *ctx, brc_error *err);
    int (*rest)(void *ctx, brc_error *err); /* nothing comes, and the wait may be long; or NULL */
    void *ctx;
} brc_child_spec;

typedef struct brc_child brc_child;

/* What the specification points to must last. */
BRC_MUST_USE int brc_child_start(brc_child **out, const brc_child_spec *spec, brc_error *err);
/* Some of what it writes; *n 0 when it has closed its end. */
BRC_MUST_USE int brc_child_read(brc_child *c, uint8_t *to, size_t cap, size_t *n, brc_error *err);
/* All of it, to be read by it. *gone: it does not read any more. */
BRC_MUST_USE int brc_child_write(brc_child *c, const uint8_t *from, size_t len, int *gone, brc_error *err);
/* Closes our end of the stream and waits for it, at most so long where `patience_ms` is not
 * 0. *status: its exit status, or 128 and the signal that ended it. */
BRC_MUST_USE int brc_child_end(brc_child *c, int patience_ms, int *status, brc_error *err);
/* What it has said on its standard error: the last line that is not empty, and so many
 * lines in all as have room. */
const char *brc_child_last_line(const brc_child *c);
const char *brc_child_said(const brc_child *c);
/* Ends it, with all that it has started in its session, where it still runs. */
void brc_child_free(brc_child *c);

#endif
