/*
 * A session: the hierarchy as one version has it, or as a branch with its
 * uncommitted changes has it. Paths are in normal form here ("/", "/a/b").
 */
#ifndef BRC_WORK_SESSION_H
#define BRC_WORK_SESSION_H

#include "../flow/window.h"
#include "../history/commit.h"
#include "../history/snapshot.h"
#include "../history/tree_walk.h"
#include "../store/cache.h"

/* ---- repo -------------------------------- */

/* What a repository's sessions and arrays share. */

/* Work that may take long is a task of a number of decoded bytes (0: not known). A task in
 * a task is that part of it: the caller hears of the outermost alone, whose total stays
 * the same and whose count never falls. */
typedef struct brc_task {
    uint64_t end, limit;
} brc_task;

struct breccia {
    size_t refs; /* the handle, and everything opened from it */
    brc_store *store;
    const brc_registry *registry;
    brc_open_opts opened; /* as it was opened, for another handle; never changes */
    char *vfs;            /* its opts.vfs */
    brc_shared *shared;   /* with the other handles of this file */
    brc_pipe pipe;
    char *libexec; /* the folder of the converters; NULL: this build's own */
    brc_progress_fn progress;
    void *progress_ctx;
    const char *task_phase; /* of the outermost task, as are the next two */
    uint64_t task_done, task_total;
    uint64_t task_limit; /* of the innermost task: its share of the work */
    unsigned task_depth;
    brc_task caller_task; /* of brc_progress_begin() */
    uint64_t changes;    /* counts what this handle's sessions change */
};

breccia *brc_repo_ref(breccia *repo);
void brc_repo_unref(breccia *repo);

/* Ends what brc_begin() began: it is kept if `rc`, the result so far, is not an error.
 * Returns `rc`, or the failure to keep it. */
BRC_MUST_USE int brc_end_with(breccia *repo, int rc, brc_error *err);

brc_task brc_task_begin(breccia *repo, const char *phase, uint64_t bytes);
/* Sets the bytes of the outermost task, if they were not known when it began. */
void brc_task_know(breccia *repo, uint64_t bytes);
/* That many more bytes are done; tells the caller's progress function, and looks for
 * interruption. */
BRC_MUST_USE int brc_task_step(breccia *repo, uint64_t bytes, brc_error *err);
/* rc: how it went; where well, all of it is done. */
void brc_task_end(breccia *repo, const brc_task *task, int rc);

/* ---- session -------------------------------- */

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
    void *keys;         /* what the Zarr store view keeps (key_list.c); NULL: nothing yet */
    void (*keys_free)(void *keys);
    char *saver;        /* whose savepoints are its own (change.c); NULL: it has made none */
    void (*saves_end)(brc_session *s);
};

brc_session *brc_session_ref(brc_session *s);
void brc_session_unref(brc_session *s);

/* Nothing is uncommitted any more, and it lies over this commit (NULL: none): its draft goes at the end of the transaction,
 * where nobody else knows its number. Of a private session, within a change. */
BRC_MUST_USE int brc_session_rest(brc_session *s, const brc_oid *commit, brc_error *err);
/* Somebody else has its changes now: it goes on from the branch as it is. */
BRC_MUST_USE int brc_session_detach(brc_session *s, brc_error *err);
/* A draft as it is, to look at: fsck. */
BRC_MUST_USE int brc_session_of_draft(brc_session **out, breccia *repo, const char *branch, int64_t draft, brc_error *err);

/* BRC_EREADONLY for a session that was opened to read. */
BRC_MUST_USE int brc_session_can_change(const brc_session *s, brc_error *err);
breccia *brc_session_repo(const brc_session *s);
const brc_registry *brc_session_registry(const brc_session *s);
/* What every change begins and ends with: a write transaction and a draft. */
BRC_MUST_USE int brc_session_begin(brc_session *s, brc_error *err);
BRC_MUST_USE int brc_session_end(brc_session *s, int rc, brc_error *err);
/* After brc_change_run(), outside of every transaction; rc: what that returned. */
void brc_session_changed(brc_session *s, int rc);
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

/* ---- session draft -------------------------------- */

/* Sessions on private drafts that are there already: by number, and by token. */

/* A session that may change a private draft, whoever owns it: the caller has checked. It stays, even
 * if it is empty. */
BRC_MUST_USE int brc_session_take(brc_session **out, breccia *repo, const brc_draft_row *row, brc_error *err);
/* The one of these rows that the token names. BRC_EINVAL: it is no token; BRC_ENOTFOUND, BRC_ESTALE: it names none of
 * these, or one that was another's by then. */
BRC_MUST_USE int brc_token_find(const brc_draft_row **out, brc_store *store, const char *token, const brc_draft_row *rows,
                                size_t n, brc_error *err);

#endif
