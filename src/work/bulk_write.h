/*
 * Bulk writes: one change of a session in many short transactions, all of it or nothing.
 *
 * What the session changes between begin and end goes into a draft of its own, and lies there over
 * what the session has: the session reads both, everybody else what was there before. Objects and
 * rows are stored in batches (store/bulk.c); the last, short transaction adopts the draft. If that
 * meets changes that others have made meanwhile and that cannot be told apart (adopt.h), or a chunk
 * that was written in part and is another now, it fails with BRC_ECONFLICT, and the draft stays; so it
 * does, with BRC_EBUSY, where a reader keeps it out for too long. A bulk write that fails earlier or is
 * interrupted drops its draft; if its process is killed, the draft stays as a dead one's.
 *
 * Within it nodes can be made and written, attributes set and arrays grow; nothing can be removed,
 * moved or committed.
 */
#ifndef BRC_WORK_BULK_WRITE_H
#define BRC_WORK_BULK_WRITE_H

#include "adopt.h"
#include "session.h"

struct brc_bulk_write {
    /* What session.c asks for within a change: the draft, made at the first; what is to be done
     * before the row of a path is set; and the end of it all, undone. */
    int (*start)(brc_session *s, brc_error *err);
    int (*meet)(brc_session *s, const char *path, brc_error *err);
    void (*drop)(brc_session *s);
    int (*rest)(brc_session *s, brc_error *err); /* a change of it has ended */
    unsigned depth;
    int returns;         /* a program has begun it: no lock is held between its calls  */
    int failed;          /* within it                                                  */
    int64_t draft;       /* 0: nothing was written yet                                 */
    brc_draft_head fork; /* the session's when it began                                */
    void *known;         /* brc_known_node[]: nodes that were there, and were written  */
    size_t nknown, cap;
    brc_buf olds;        /* chunks that were changed in part: whose, which, what it was */
    int too_many;        /* of these: any change by others is a conflict               */
    int drops;           /* where these are in the way its draft goes, too             */
    char *made, *replaced; /* a node that takes this one's place at the end; NULL: none */
    int64_t still;         /* the row of its uncommitted chunks; 0: it has none         */
};

/* Begins one that ends before the caller's own call does: brc_bulk_begin() is for programs. */
BRC_MUST_USE int brc_bulk_start(brc_session *s, brc_error *err);
/* The caller does it again where changes of others are in the way: its draft need not stay. */
void brc_bulk_drops(brc_session *s);
/* Ends it; rc: how it went. */
BRC_MUST_USE int brc_bulk_end_with(brc_session *s, int rc, brc_error *err);
/* BRC_EMISUSE where a bulk write is in progress. */
BRC_MUST_USE int brc_bulk_check_none(const brc_session *s, const char *what, brc_error *err);

/* At its end the node `made`, which it has made, takes the place of this array, if that is as it was:
 * with this entry, and its uncommitted chunks in row `still` and below, or, 0, in none. Else BRC_ECONFLICT. */
BRC_MUST_USE int brc_bulk_replaces(brc_session *s, const char *made, const char *path, const brc_entry *entry, int64_t still,
                                   brc_error *err);
/* Of a draft that such a bulk write left in the middle: the array's path, which the caller frees; NULL: of no other. */
BRC_MUST_USE int brc_bulk_rewrites(const brc_draft_row *row, char **path, brc_error *err);

/* A chunk, by its key, that is about to be changed in part; `row`: its array's row; id zero: the chunk is absent. */
BRC_MUST_USE int brc_bulk_note_old(brc_session *s, const char *path, int64_t row, brc_span key, const brc_oid *id,
                                   brc_error *err);
#endif
