/*
 * Bulk writes: one change of a session in many short transactions, all or nothing.
 *
 * What the session changes between begin and end goes into a draft of its own, which lies over the
 * session's changes: the session reads both, everybody else reads the state from before. Objects
 * and rows are stored in batches (store/bulk.c); the last, short transaction adopts the draft. The
 * bulk write fails with BRC_ECONFLICT if others have meanwhile made changes that cannot be
 * reconciled (adopt.h), or have changed a chunk that the bulk write wrote in part, and with
 * BRC_EBUSY if a reader keeps the lock for too long; the draft stays in both cases. A bulk write
 * that fails earlier or is interrupted drops its draft; if its process is killed, the draft stays
 * as that of a dead process.
 *
 * A bulk write can create and write nodes, set attributes and grow arrays; it cannot remove or move
 * nodes, or commit.
 */
#ifndef BRC_WORK_BULK_WRITE_H
#define BRC_WORK_BULK_WRITE_H

#include "adopt.h"
#include "session.h"

struct brc_bulk_write {
    /* Functions that session.c calls within a change: `start` makes the draft at the first change; `meet` prepares
     * for setting the row of a path; `drop` ends the bulk write and undoes it. */
    int (*start)(brc_session *s, brc_error *err);
    int (*meet)(brc_session *s, const char *path, brc_error *err);
    void (*drop)(brc_session *s);
    int (*rest)(brc_session *s, brc_error *err); /* called when a change within it has ended */
    unsigned depth;
    int returns;         /* a program began it: no lock is held between its calls      */
    int failed;          /* a call within it has failed                                */
    int64_t draft;       /* 0: nothing has been written yet                            */
    brc_draft_head fork; /* the session's draft when it began                          */
    void *known;         /* brc_known_node[]: nodes that existed and were written      */
    size_t nknown, cap;
    brc_buf olds;        /* chunks that were changed in part: array row, key and old id */
    int too_many;        /* too many for `olds`: any change by others is a conflict    */
    int drops;           /* a conflict with changes of others drops its draft, too     */
    char *made, *replaced; /* at the end `made` takes the place of the array `replaced`; NULL: none */
    int64_t still;         /* the row of the array's uncommitted chunks; 0: it has none */
};

/* Begins a bulk write that ends before the caller's own call returns; brc_bulk_begin() is for programs. */
BRC_MUST_USE int brc_bulk_start(brc_session *s, brc_error *err);
/* Lets a conflict with changes of others drop the draft, because the caller tries again. */
void brc_bulk_drops(brc_session *s);
/* Ends the bulk write; rc: the result so far. */
BRC_MUST_USE int brc_bulk_end_with(brc_session *s, int rc, brc_error *err);
/* Fails with BRC_EMISUSE while a bulk write is in progress. */
BRC_MUST_USE int brc_bulk_check_none(const brc_session *s, const char *what, brc_error *err);

/* At the end of the bulk write the node `made`, which the bulk write has made, takes the place of the array at
 * `path` if that array still has this entry and its uncommitted chunks are those in row `still` and below, or, if
 * `still` is 0, it has none. Otherwise the end fails with BRC_ECONFLICT. */
BRC_MUST_USE int brc_bulk_replaces(brc_session *s, const char *made, const char *path, const brc_entry *entry, int64_t still,
                                   brc_error *err);
/* Finds the path of the array that an interrupted bulk write, whose draft this is, was to replace. NULL: the draft
 * is of another kind. The caller frees the path. */
BRC_MUST_USE int brc_bulk_rewrites(const brc_draft_row *row, char **path, brc_error *err);

/* Notes a chunk, by its key, that is about to be changed in part. `row`: the row of its array; id zero: the chunk
 * is absent. */
BRC_MUST_USE int brc_bulk_note_old(brc_session *s, const char *path, int64_t row, brc_span key, const brc_oid *id,
                                   brc_error *err);
#endif
