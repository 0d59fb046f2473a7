/*
 * A session: the hierarchy as one version has it, or as a branch with its uncommitted changes has
 * it. Paths are in normal form here ("/", "/a/b").
 */
#ifndef BRC_WORK_SESSION_H
#define BRC_WORK_SESSION_H

#include "../flow/window.h"
#include "../history/snapshot.h"

struct brc_tree_walk; /* history/tree_walk.h */

/* ---- repo -------------------------------- */

/* The state that a repository's sessions and arrays share. */

/* A task is work that may take long, measured as a number of decoded bytes (0: not known). A task within a task is
 * that part of the outer task: the caller hears only of the outermost task, whose total stays the same and whose
 * count never falls. */
typedef struct brc_task {
    uint64_t end, limit;
} brc_task;

struct breccia {
    size_t refs; /* the handle, and everything opened from it */
    brc_store *store;
    const brc_registry *registry;
    brc_open_opts opened; /* the options of the open, for another handle; never changes */
    char *vfs;            /* the string behind opened.vfs */
    brc_shared *shared;   /* shared with the other handles of this file */
    brc_pipe pipe;
    char *libexec; /* the folder of the converters; NULL: this build's own */
    brc_pipeline_opts pipeline; /* of the open */
    char *pipeline_text;        /* the string behind pipeline.pipeline */
    int readback;               /* the caller's choice; 0: that of the repository */
    char *cache;   /* the file of the cache of chunks; NULL: none */
    char *prototype; /* of tensors that are read; NULL: "host" */
    brc_progress_fn progress;
    void *progress_ctx;
    const char *task_phase; /* of the outermost task, as are the next two */
    uint64_t task_done, task_total;
    uint64_t task_limit; /* of the innermost task: its share of the work */
    unsigned task_depth;
    brc_task caller_task; /* the task that brc_progress_begin() began */
    uint64_t changes;    /* counts the changes by this handle's sessions */
};

breccia *brc_repo_ref(breccia *repo);
void brc_repo_unref(breccia *repo);

/* Ends what brc_begin() began: keeps the changes if `rc`, the result so far, is not an error. Returns `rc`, or the
 * error of keeping them. */
BRC_MUST_USE int brc_end_with(breccia *repo, int rc, brc_error *err);

brc_task brc_task_begin(breccia *repo, const char *phase, uint64_t bytes);
/* Sets the bytes of the outermost task, if they were unknown when the task began. */
void brc_task_know(breccia *repo, uint64_t bytes);
/* Adds to the bytes that are done, calls the caller's progress function and checks for interruption. */
BRC_MUST_USE int brc_task_step(breccia *repo, uint64_t bytes, brc_error *err);
/* Ends the task; rc: its result. Counts all of its bytes as done if the task succeeded. */
void brc_task_end(breccia *repo, const brc_task *task, int rc);

/* ---- session -------------------------------- */

struct brc_session {
    size_t refs; /* the handle, and its arrays */
    breccia *repo;
    int mode;
    int shows_commits; /* BRC_SESSION_COMMITS                                    */
    char *branch;      /* NULL for BRC_SESSION_AT                                */
    brc_oid pinned;    /* the commit that is kept as long as the session is open; zero: none */
    brc_draft_head draft;   /* the uncommitted changes; draft.id 0: none yet. Its base is what everything lies over,
                             * also without a draft */
    brc_oid base;      /* the snapshot of draft.base; zero: the empty one          */
    /* The fields of a BRC_SESSION_PRIVATE session. */
    char *owner;        /* this process                                            */
    brc_draft_head start;    /* the value of `draft` when the session began             */
    int is_named;       /* others may begin its draft, or drop the empty draft: the session finds the draft by its
                         * owner */
    int is_handed_out;  /* others may work on the draft: it stays, even if it is empty */
    int is_elsewhere;   /* a named one of another process: it does not end the draft */
    int is_resting;     /* nothing was changed since the draft was emptied: the draft may be gone */
    int has_swept;      /* it has dropped the empty drafts of dead processes       */
    int is_new;         /* its row may go with the transaction that made it        */
    uint64_t made_at;   /* brc_store_undone() when the row was made                */
    struct brc_bulk_write *bulk; /* the bulk write in progress, whose draft lies over `draft`; or NULL */
    unsigned bulk_plain;         /* the number of bulk writes that are part of a transaction */
    brc_oid bulk_base;           /* the snapshot that the draft of `bulk` lies over    */
    uint64_t version, changes; /* of the store and the repository when `base` was read */
    int is_read;
    void *keys;         /* the cache of the Zarr store view (key_list.c); NULL: none yet */
    void (*keys_free)(void *keys);
    brc_key_limits key_limits; /* see brc_key_limit()                              */
    char *saver;        /* the owner name of its savepoints (change.c); NULL: it has made none */
    void (*saves_end)(brc_session *s);
    char *log;          /* what the operation is that the session logs; NULL: none */
    int log_is_new;     /* it has changed nothing yet                              */
    int64_t logged;     /* `draft.changes` after its last change; 0: unknown       */
    uint64_t logged_at; /* brc_store_undone() then                                 */
};

brc_session *brc_session_ref(brc_session *s);
void brc_session_unref(brc_session *s);

/* Forgets the uncommitted changes and puts the session over this commit (NULL: none). The draft goes at the end of
 * the transaction if nobody else knows its number. For a private session, within a change. */
BRC_MUST_USE int brc_session_rest(brc_session *s, const brc_oid *commit, brc_error *err);
/* Gives up the session's changes, which another session has now; the session continues from the branch as it is. */
BRC_MUST_USE int brc_session_detach(brc_session *s, brc_error *err);
/* Opens a draft as it is, to read it: fsck. */
BRC_MUST_USE int brc_session_of_draft(brc_session **out, breccia *repo, const char *branch, int64_t draft, brc_error *err);

/* Fails with BRC_EREADONLY for a session that was opened to read. */
BRC_MUST_USE int brc_session_can_change(const brc_session *s, brc_error *err);
breccia *brc_session_repo(const brc_session *s);
const brc_registry *brc_session_registry(const brc_session *s);
/* Begin and end every change: a write transaction and a draft. */
BRC_MUST_USE int brc_session_begin(brc_session *s, brc_error *err);
BRC_MUST_USE int brc_session_end(brc_session *s, int rc, brc_error *err);
/* Makes the changes of a draft that the session took over, and has changed nothing of, the operation that it logs. */
BRC_MUST_USE int brc_session_log_whole(brc_session *s, brc_error *err);
/* Call after brc_change_run(), outside of every transaction; rc: the result of that call. */
void brc_session_changed(brc_session *s, int rc);
/* Brings draft and base up to date; must be the first call within a transaction of either kind. */
BRC_MUST_USE int brc_session_follow(brc_session *s, brc_error *err);
/* Begin and end a read, with draft and base up to date. */
BRC_MUST_USE int brc_session_begin_read(brc_session *s, brc_error *err);
void brc_session_end_read(brc_session *s);

/* Finds the node at a path; kind 0 if there is none. *row: its draft row, or 0. */
BRC_MUST_USE int brc_session_find(brc_session *s, const char *path, brc_entry *out, int64_t *row, brc_error *err);
/* Finds the node, or fails with an error that names it: BRC_ENOTFOUND, or BRC_EINVAL for the wrong kind (0:
 * any). */
BRC_MUST_USE int brc_session_need(brc_session *s, const char *path, int kind, brc_entry *out, int64_t *row, brc_error *err);
/* Sets a path's entry (NULL: removed) in the draft. */
BRC_MUST_USE int brc_session_put(brc_session *s, const char *path, const brc_entry *entry, int64_t *row, brc_error *err);
/* Sets an entry with another document, whose id the entry gets. The document of a new node that a bulk write makes
 * becomes an object at once, any other with the commit. */
BRC_MUST_USE int brc_session_put_doc(brc_session *s, const char *path, brc_entry *entry, const brc_json *doc, int64_t *row, brc_error *err);
BRC_MUST_USE int brc_session_put_new(brc_session *s, const char *path, brc_entry *entry, const brc_json *doc, brc_error *err);
/* Makes the missing groups above a path. */
BRC_MUST_USE int brc_session_parents(brc_session *s, const char *path, brc_error *err);

/* Begins a walk from a node that was found. Later changes do not affect the walk. */
BRC_MUST_USE int brc_session_walk(struct brc_tree_walk **out, brc_session *s, const char *path, const brc_entry *entry,
                                  int64_t row, int flags, brc_error *err);

/* Reads the branch's tip. *has is 0 if the branch has no commit; root is then zero. */
BRC_MUST_USE int brc_session_tip(brc_session *s, int *has, brc_oid *commit, brc_oid *root, brc_error *err);
/* Begins a private draft of this process beside the session's own, over the base of `fork`, for rows that the
 * session takes over when they are complete. Call within a transaction. */
BRC_MUST_USE int brc_session_begin_beside(brc_session *s, const brc_draft_head *fork, int64_t *draft, brc_error *err);

/* ---- session draft -------------------------------- */

/* Sessions on existing private drafts, by number or by token. */

/* Opens a session that may change a private draft of any owner: the caller has checked the right to do so. The
 * draft stays, even if it is empty. */
BRC_MUST_USE int brc_session_take(brc_session **out, breccia *repo, const brc_draft_row *row, brc_error *err);
/* Finds the one of these rows that the token names. BRC_EINVAL: the token is not valid; BRC_ENOTFOUND: it names
 * none of the rows; BRC_ESTALE: the draft belongs to another owner by now. */
BRC_MUST_USE int brc_token_find(const brc_draft_row **out, brc_store *store, const char *token, const brc_draft_row *rows,
                                size_t n, brc_error *err);

#endif
