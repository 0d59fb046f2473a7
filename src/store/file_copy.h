/*
 * Copying a repository's file into another, row by row, while others write.
 *
 * Stored bytes come first, in short transactions: they never change, and a number is never given
 * twice, so a copy takes only those behind its last one. Then one read of the source brings all
 * other tables of the copy to one state. Until then the copy is what it was before: a new one
 * is not finished and cannot be opened, an older one stays as it is.
 */
#ifndef BRC_STORE_FILE_COPY_H
#define BRC_STORE_FILE_COPY_H

#include "store.h"

/* In brc_open_opts.flags, for brc_store_open() alone: a backup that is not finished is opened. */
#define BRC_OPEN_UNFINISHED 0x40000000u

typedef struct brc_backup_run {
    brc_store *from, *to;
    int is_new;         /* `to` was never finished                                     */
    int64_t trusted;    /* the last row of blob that a finished backup has; 0: none    */
    int64_t last;       /* the last row of blob that is there and was compared         */
    uint64_t bytes;     /* of blob that were copied                                    */
    uint64_t objects;   /* rows of objects that are new or changed                     */
    int is_other_line;  /* rows that `to` had before have other bytes: check all       */
    void *touched;      /* int64_t[]: rows of blob that may have gone or changed       */
    size_t ntouched, touched_cap;
    struct { /* of the index of objects, copied in slices: new files alone */
        brc_oid after;
        int is_done;
    } slice;
} brc_backup_run;

/* `to` was just made: it becomes a backup of `from` that is not finished. */
BRC_MUST_USE int brc_backup_make(brc_backup_run *b, brc_error *err);
/* `to` was there before. BRC_EEXISTS where it is not an earlier backup of `from`, unchanged since. */
BRC_MUST_USE int brc_backup_resume(brc_backup_run *b, brc_error *err);
/* Copies some stored bytes; *more 0 when there are no more now. *bytes: so many were looked at. */
BRC_MUST_USE int brc_backup_some(brc_backup_run *b, int *more, uint64_t *bytes, brc_error *err);
/* The rest. `to` is a finished backup of one state of `from` then. */
BRC_MUST_USE int brc_backup_finish(brc_backup_run *b, brc_error *err);
void brc_backup_dispose(brc_backup_run *b);

#endif
