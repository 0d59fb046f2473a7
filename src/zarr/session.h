/*
 * A session: the hierarchy as one version has it, or as a branch with its
 * uncommitted changes has it. Paths are in normal form here ("/", "/a/b").
 */
#ifndef BRC_ZARR_SESSION_H
#define BRC_ZARR_SESSION_H

#include "../history/commit.h"
#include "../history/snapshot.h"
#include "../history/tree_walk.h"
#include "repo.h"

struct brc_session {
    size_t refs; /* the handle, and its arrays */
    breccia *repo;
    int mode;
    int shows_commits; /* BRC_SESSION_COMMITS                                    */
    char *branch;      /* NULL for BRC_SESSION_AT                                */
    brc_oid pinned;    /* the commit that stays as long as this is open; zero: none */
    brc_draft_head draft;   /* its uncommitted changes; draft.id 0: none yet. Its base is what
                        * everything lies over, also where there is no draft       */
    brc_oid base;      /* the snapshot of draft.base; zero: the empty one          */
    /* BRC_SESSION_PRIVATE */
    char *owner;        /* this process                                            */
    brc_draft_head start;    /* what `draft` was when the session began                 */
    int is_named;       /* others may begin its draft, or drop it where it is empty: it is found
                         * by its owner                                             */
    int is_handed_out;  /* others may work on the draft: it stays, even if it is empty */
    int is_elsewhere;   /* a named one of another process: it does not end the draft */
    int is_resting;     /* nothing was changed since its draft was emptied: that may be gone */
    int has_swept;      /* what dead processes left empty                          */
    int is_new;         /* its row may go with the transaction that made it        */
    uint64_t made_at;   /* brc_store_undone() when the row was made                */
    struct brc_bulk_write *bulk; /* in progress: its draft lies over `draft`; or NULL  */
    unsigned bulk_plain;         /* bulk writes that are a part of a transaction       */
    brc_oid bulk_base;           /* the snapshot that bulk's draft lies over           */
    uint64_t version, changes; /* of the store and the repository when `base` was read */
    int is_read;
    void *keys;         /* what the Zarr store view keeps (key_arrays.c); NULL: nothing yet */
    void (*keys_free)(void *keys);
    char *saver;        /* whose savepoints are its own (savepoint.c); NULL: it has made none */
    void (*saves_end)(brc_session *s);
};

brc_session *brc_session_ref(brc_session *s);
void brc_session_unref(brc_session *s);

/* Nothing is uncommitted any more, and it lies over this commit (NULL: none): its draft goes at the end of the transaction,
 * where nobody else knows its number. Of a private session, within a change. */
BRC_MUST_USE int brc_session_rest(brc_session *s, const brc_oid *commit, brc_error *err);
/* Somebody else has its changes now: it goes on from the branch as it is. */
BRC_MUST_USE int brc_session_detach(brc_session *s, brc_error *err);
/* The private session that a name means: brc_session_name(). */
BRC_MUST_USE int brc_session_by_name(brc_session **out, breccia *repo, const char *branch, const char *owner,
                                     brc_error *err);
/* A draft as it is, to look at: fsck. */
BRC_MUST_USE int brc_session_of_draft(brc_session **out, breccia *repo, const char *branch, int64_t draft, brc_error *err);

/* BRC_EREADONLY for a session that was opened to read. */
BRC_MUST_USE int brc_session_can_change(const brc_session *s, brc_error *err);
/* What every change begins and ends with: a write transaction and a draft. */
BRC_MUST_USE int brc_session_begin(brc_session *s, brc_error *err);
BRC_MUST_USE int brc_session_end(brc_session *s, int rc, brc_error *err);
/* Brings draft and base up to date; to be called first, within a transaction of
 * either kind. */
BRC_MUST_USE int brc_session_follow(brc_session *s, brc_error *err);
/* The same for reading. */
BRC_MUST_USE int brc_session_begin_read(brc_session *s, brc_error *err);
void brc_session_end_read(brc_session *s);

/* The node at a path: kind 0 if there is none. *row: its draft row, or 0. */
BRC_MUST_USE int brc_session_find(brc_session *s, const char *path, brc_entry *out, int64_t *row, brc_error *err);
/* The same, but BRC_ENOTFOUND (BRC_EINVAL for the wrong kind; 0: any) names it. */
BRC_MUST_USE int brc_session_need(brc_session *s, const char *path, int kind, brc_entry *out, int64_t *row, brc_error *err);
/* Sets a path's entry (NULL: removed) in the draft. */
BRC_MUST_USE int brc_session_put(brc_session *s, const char *path, const brc_entry *entry, int64_t *row, brc_error *err);
/* The same with another document, whose id the entry gets; of a new node that a bulk
 * write makes it becomes an object at once, else with the commit. */
BRC_MUST_USE int brc_session_put_doc(brc_session *s, const char *path, brc_entry *entry, const brc_json *doc, int64_t *row, brc_error *err);
BRC_MUST_USE int brc_session_put_new(brc_session *s, const char *path, brc_entry *entry, const brc_json *doc, brc_error *err);
/* Makes the groups above a path that are missing. */
BRC_MUST_USE int brc_session_parents(brc_session *s, const char *path, brc_error *err);

/* A walk from a node that was found: it goes on through later changes as if there were
 * none. */
BRC_MUST_USE int brc_session_walk(brc_tree_walk **out, brc_session *s, const char *path, const brc_entry *entry,
                                  int64_t row, int flags, brc_error *err);

/* The branch's tip: *has 0 if it has no commit; root is then zero. */
BRC_MUST_USE int brc_session_tip(brc_session *s, int *has, brc_oid *commit, brc_oid *root, brc_error *err);
/* Begins a private draft of this process beside the session's own, over what `fork` lies over: for
 * rows that the session takes over when they are whole. Within a transaction. */
BRC_MUST_USE int brc_session_begin_beside(brc_session *s, const brc_draft_head *fork, int64_t *draft, brc_error *err);

#endif
