/*
 * Copies a repository's file into another, row by row, while others write.
 *
 * Stored bytes come first, in short transactions: they never change, and a number is never used
 * twice, so a copy takes only the rows after its last one. Then one read of the source brings all
 * other tables of the copy to one state. Until then the copy does not change: a new copy
 * is unfinished and cannot be opened, and an older copy is still valid.
 */
#ifndef BRC_STORE_FILE_COPY_H
#define BRC_STORE_FILE_COPY_H

#include "store.h"

/* A flag in brc_open_opts.flags, only for brc_store_open(): an unfinished backup may be opened. */
#define BRC_OPEN_UNFINISHED 0x40000000u

typedef struct brc_backup_run {
    brc_store *from, *to;
    int is_new;         /* `to` was never finished                                     */
    int64_t trusted;    /* the last row of blob that a finished backup has; 0: none    */
    int64_t last;       /* the last row of blob that exists and was compared           */
    uint64_t bytes;     /* bytes of blob that were copied                              */
    uint64_t objects;   /* rows of objects that are new or changed                     */
    int is_other_line;  /* rows that `to` had before have other bytes: check all       */
    void *touched;      /* int64_t[]: rows of blob that may be deleted or changed      */
    size_t ntouched, touched_cap;
    struct { /* progress through the index of objects, which only a new file gets in slices */
        brc_oid after;
        int is_done;
    } slice;
} brc_backup_run;

/* Makes `to`, which was just created, an unfinished backup of `from`. */
BRC_MUST_USE int brc_backup_make(brc_backup_run *b, brc_error *err);
/* Continues an existing `to`. BRC_EEXISTS if `to` is not an earlier backup of `from`, or was changed since. */
BRC_MUST_USE int brc_backup_resume(brc_backup_run *b, brc_error *err);
/* Copies some stored bytes. Sets *more to 0 if no more bytes exist now, and *bytes to the number of bytes examined. */
BRC_MUST_USE int brc_backup_some(brc_backup_run *b, int *more, uint64_t *bytes, brc_error *err);
/* Copies the rest. `to` is then a finished backup of one state of `from`. */
BRC_MUST_USE int brc_backup_finish(brc_backup_run *b, brc_error *err);
void brc_backup_dispose(brc_backup_run *b);

#endif
