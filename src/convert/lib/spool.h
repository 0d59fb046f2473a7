/*
 * A file without a name, for what must wait until the rest has come: its pieces are written and read in
 * any order. It lies in the folder of the file that is made, which may grow by as much.
 */
#ifndef BRC_CONVERT_LIB_SPOOL_H
#define BRC_CONVERT_LIB_SPOOL_H

#include "../../base/buf.h"

typedef struct brc_spool {
    int fd;         /* -1: not open                    */
    uint64_t end;   /* where the next piece may lie    */
    const char *file; /* beside which it lies          */
} brc_spool;
#define BRC_SPOOL_INIT { -1, 0, 0 }

/* `file` is kept. */
BRC_MUST_USE int brc_spool_open(brc_spool *spool, const char *file, brc_error *err);
void brc_spool_close(brc_spool *spool);
/* A place for so many bytes, all zeros. */
BRC_MUST_USE int brc_spool_take(brc_spool *spool, uint64_t bytes, uint64_t *at, brc_error *err);
BRC_MUST_USE int brc_spool_write(const brc_spool *spool, uint64_t at, const void *data, size_t len, brc_error *err);
BRC_MUST_USE int brc_spool_read(const brc_spool *spool, uint64_t at, void *data, size_t len, brc_error *err);
/* Gives up all pieces. */
BRC_MUST_USE int brc_spool_clear(brc_spool *spool, brc_error *err);

#endif
