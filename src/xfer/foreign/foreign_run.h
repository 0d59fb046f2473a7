/* A program that was started, for imports and exports. */
#ifndef BRC_XFER_FOREIGN_FOREIGN_RUN_H
#define BRC_XFER_FOREIGN_FOREIGN_RUN_H

#include "child.h"
#include "foreign.h"

typedef struct brc_foreign_run {
    brc_child *child;
    char *program, *label;
} brc_foreign_run;

/* `args` is needed while it starts. */
BRC_MUST_USE int brc_foreign_start(brc_foreign_run *run, const brc_foreign *what,
                                   const char *const *args, int feeds, brc_error *err);
/* The error that its exit status, not 0, and its last words make. */
int brc_foreign_ended(const brc_foreign_run *run, const brc_foreign *what, int status,
                      brc_error *err);
/* Ends it where it runs, and forgets it. */
void brc_foreign_stop(brc_foreign_run *run);

#endif
