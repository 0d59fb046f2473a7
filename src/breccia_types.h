/*
 * breccia_types.h - the constants and structures of breccia.h, which includes it.
 *
 * Every structure below is frozen: its fields keep their names, types, meanings and
 * order, and new ones are only appended.  So programs and libraries of different
 * versions work together:
 *  - `const T *` that a call hands out belongs to the library.  A program reads the fields
 *    that its header has, and takes no sizeof, copy or array of it.
 *  - What the caller allocates says by `size` which fields it has.  From an older caller, with
 *    a smaller size, the absent ones count as zero, and nothing is written past the size.
 *    From a newer caller, fields that this library does not know must be zero
 *    (BRC_EUNSUPPORTED), and of those that are filled in the rest becomes zero.  A size that
 *    no version had is BRC_EINVAL.  In an array of such structures all have one size.
 *  - brc_oid (and brc_span in breccia_codec.h) are values like an integer and never grow.
 * Flags that this library does not know are BRC_EINVAL.
 */
#ifndef BRECCIA_TYPES_H
#define BRECCIA_TYPES_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define BRC_VERSION_MAJOR 0
#define BRC_VERSION_MINOR 1
#define BRC_VERSION_PATCH 0
#define BRC_VERSION_NUMBER 1000 /* major*1000000 + minor*1000 + patch */

#if defined(__GNUC__)
#define BRC_API __attribute__((visibility("default")))
#define BRC_MUST_USE __attribute__((warn_unused_result))
#define BRC_PRINTF(fmt, first) __attribute__((__format__(__printf__, fmt, first)))
#else
#define BRC_API
#define BRC_MUST_USE
#define BRC_PRINTF(fmt, first)
#endif

#define BRC_MAX_NDIM 32

/* ---- types --------------------------------------------------------------- */

typedef struct breccia breccia;           /* an open repository               */
typedef struct brc_session brc_session;   /* the hierarchy at one version     */
typedef struct brc_array brc_array;       /* one array of a session           */
typedef struct brc_iter brc_iter;         /* refs, log, nodes, changes, keys  */
typedef struct brc_pool brc_pool;         /* worker threads                   */
typedef struct brc_registry brc_registry; /* codecs and data types            */

/* The id of an object: the hash of its canonical bytes.  A hash shorter than 32 bytes fills the front, the rest is zero. */
typedef struct brc_oid {
    uint8_t bytes[32];
} brc_oid;

/* Bytes that the library allocated: brc_buf_dispose() releases them. */
typedef struct brc_buf {
    size_t size;  /* 0, in a structure that was zeroed: as in version 0.1     */
    uint8_t *data;
    size_t len;
    size_t cap;
    size_t limit; /* the most that len may become; 0: no limit                */
    uint32_t flags; /* BRC_BUF_*                                              */
    uint32_t reserved; /* 0                                                   */
} brc_buf;
#define BRC_BUF_INIT { sizeof(brc_buf), 0, 0, 0, 0, 0, 0 }
enum { BRC_BUF_FIXED = 1 }; /* the memory belongs to somebody else and cannot grow */

enum brc_code {
    BRC_OK = 0,
    BRC_EINVAL = -1,       /* the caller's argument is wrong                   */
    BRC_EMISUSE = -2,      /* the call is not allowed in this state            */
    BRC_ENOTFOUND = -3,    /* no such file, ref, node, object or key           */
    BRC_EEXISTS = -4,      /* it is already there                              */
    BRC_EAMBIGUOUS = -5,   /* an abbreviation matches more than one            */
    BRC_ECONFLICT = -6,    /* the caller has to decide something first         */
    BRC_ESTALE = -7,       /* a ref moved: the expected value did not match    */
    BRC_EBUSY = -8,        /* another process holds the file                   */
    BRC_EREADONLY = -9,    /* the file or the session cannot be written        */
    BRC_ECORRUPT = -10,    /* stored bytes contradict their hash or format     */
    BRC_EFORMAT = -11,     /* not a repository, or newer than this library     */
    BRC_EUNSUPPORTED = -12, /* codec, data type or option not in this build    */
    BRC_ELIMIT = -13,      /* a documented limit would be exceeded             */
    BRC_ENOMEM = -14,
    BRC_EIO = -15,         /* detail: errno or SQLite's extended code          */
    BRC_ENOSPACE = -16,    /* the disk, or the file's page limit, is full      */
    BRC_EINTERRUPT = -17,  /* brc_interrupt(), or a callback said stop         */
    BRC_EINTERNAL = -18,   /* a bug in breccia                                 */
    BRC_ECOLLISION = -19   /* two different contents have the same hash        */
};

typedef struct brc_error {
    size_t size;       /* 0, in a structure that was zeroed: as in version 0.1 */
    int code;          /* equals the returned value                           */
    int detail;        /* code from the layer below, 0 if none                */
    char source[16];   /* "sqlite", "os", "codec:zstd" or ""                  */
    char message[488]; /* one line of UTF-8, always terminated                */
} brc_error;
#define BRC_ERROR_INIT { sizeof(brc_error), 0, 0, "", "" }

/* Reports that `done` of `total` bytes (0: not known) of decoded data are done in a phase
 * ("import", "check").  Called on the caller's thread after every chunk: look at the clock
 * before you draw.  `done` never falls and ends at `total`.  Once known, `total` stays the
 * same through a call, or from brc_progress_begin() to brc_progress_end().  A non-zero
 * return stops the call with BRC_EINTERRUPT. */
typedef int (*brc_progress_fn)(void *ctx, const char *phase, uint64_t done, uint64_t total);

typedef struct brc_open_opts {
    size_t size;
    uint32_t flags;               /* BRC_OPEN_*                               */
    int wait_ms;                  /* for a busy file; 0: 30 s; < 0: do not wait */
    size_t memory;                /* most chunk bytes in flight; 0: 256 MiB */
    brc_pool *pool;               /* NULL: work on the calling thread         */
    const brc_registry *registry; /* NULL: what this build contains           */
    const char *hash;             /* when creating; NULL: "xxh128"            */
    const char *vfs;              /* name of a registered SQLite VFS, or NULL */
    brc_progress_fn progress;
    void *progress_ctx;
    uint64_t max_nodes;           /* most groups and arrays that one call may visit
                                     (BRC_ELIMIT); 0: 10,000,000              */
    const char *libexec;          /* the folder of the converters for NetCDF and HDF5;
                                     NULL: where this build installs them     */
} brc_open_opts;
#define BRC_OPEN_OPTS_INIT { sizeof(brc_open_opts), 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0 }
enum {
    BRC_OPEN_READONLY = 1,
    BRC_OPEN_CREATE = 2,     /* create the file; BRC_EEXISTS if it is there   */
    BRC_OPEN_NO_READBACK = 4, /* do not check new chunks by decoding them     */
    /* Read the file as it stands: a journal that an interrupted writer left is neither
     * played back nor deleted, so half a change may show. */
    BRC_OPEN_NO_RECOVER = 8
};

enum {                   /* brc_session_open(): what the session sees         */
    BRC_SESSION_AT = 0,  /* a committed version, unchangeable                 */
    BRC_SESSION_VIEW = 1, /* a branch with its uncommitted changes, to read   */
    BRC_SESSION_WRITE = 2, /* the same, to change                             */
    /* A branch as it is now, to change: nobody else sees these changes before they are
     * committed, and this session sees nobody else's. */
    BRC_SESSION_PRIVATE = 3,
    BRC_SESSION_ANY_REV = 16, /* added to BRC_SESSION_VIEW or BRC_SESSION_WRITE: any revision */
    BRC_SESSION_COMMITS = 32 /* added to BRC_SESSION_VIEW: the branch's commits as they come, without
                              * its uncommitted changes                       */
};
typedef struct brc_session_info {
    size_t size;
    int mode;        /* BRC_SESSION_AT ...                                    */
    int has_commit;  /* 0: the branch has none yet                            */
    brc_oid commit;  /* what it shows, or what its uncommitted changes lie over */
    int64_t draft;   /* the number of these changes; 0: there are none        */
    int64_t changes; /* grows with each transaction that changes them         */
} brc_session_info;
#define BRC_SESSION_INFO_INIT { sizeof(brc_session_info), 0, 0, { { 0 } }, 0, 0 }

/* Flags of functions; others than these are BRC_EINVAL. */
enum { BRC_END_KEEP = 1 };       /* brc_end(), brc_bulk_end()                 */
enum { BRC_DELETE_FORCE = 1 };   /* brc_branch_delete(), brc_tag_delete()     */
enum { BRC_SWITCH_DISCARD = 1 }; /* brc_switch()                              */
enum { BRC_RESET_HARD = 1 };     /* brc_reset()                               */
enum { BRC_LIST_RECURSE = 1 };   /* brc_list()                                */
enum { BRC_UNDO_REDO = 1 };      /* brc_undo()                                */
enum { BRC_BLAME_ELEMENTS = 1 }; /* brc_blame()                               */

enum { BRC_GROUP = 1, BRC_ARRAY = 2 };                              /* kind   */
enum { BRC_ADDED = 1, BRC_REMOVED = 2, BRC_MOVED = 3, BRC_CHANGED = 4 }; /* what */

typedef struct brc_stats {
    size_t size;
    uint64_t commits;       /* reachable from a branch or tag                 */
    uint64_t objects;       /* everything stored under a hash                 */
    uint64_t chunks;        /* of these, chunks                               */
    uint64_t stored_bytes;  /* of all objects, as they are stored             */
    uint64_t logical_bytes; /* of all objects, decoded                        */
    uint64_t file_bytes;
    uint64_t chunk_refs;    /* references to chunks in all these commits     */
    uint64_t log_bytes;     /* of FILE-wal, where it is a part of the file now */
} brc_stats;
#define BRC_STATS_INIT { sizeof(brc_stats), 0, 0, 0, 0, 0, 0, 0, 0 }

/* Of a collection of garbage. */
typedef struct brc_gc_opts {
    size_t size;
    uint32_t flags;      /* BRC_GC_*                                          */
    size_t memory;       /* for what is marked, in bytes; 0: a quarter of the repository's budget */
    const char *keep;    /* this time, in place of setting "window", which says how: "7d", "0"; NULL: as set */
} brc_gc_opts;
#define BRC_GC_OPTS_INIT { sizeof(brc_gc_opts), 0, 0, NULL }
enum { BRC_GC_DRY_RUN = 1,    /* counts what would go, and changes nothing         */
       BRC_GC_EXPUNGE = 2 };  /* what went leaves no trace in the file, nor in its journals */
typedef struct brc_gc_report {
    size_t size;
    uint64_t objects_removed;
    uint64_t bytes_freed;  /* their stored bytes                              */
    uint64_t file_bytes;   /* the file's length afterwards                    */
} brc_gc_report;
#define BRC_GC_REPORT_INIT { sizeof(brc_gc_report), 0, 0, 0 }

/* Of a copy that brc_backup() made. */
typedef struct brc_backup_report {
    size_t size;
    uint64_t bytes_copied;    /* stored bytes that the copy lacked                 */
    uint64_t objects_copied;  /* objects that are new in it, or lie elsewhere now  */
    uint64_t objects_checked; /* of these, read back and decoded                   */
    uint64_t file_bytes;      /* the copy's length                                 */
    uint32_t flags;           /* BRC_BACKUP_*                                      */
    uint32_t reserved;        /* 0                                                 */
} brc_backup_report;
#define BRC_BACKUP_REPORT_INIT { sizeof(brc_backup_report), 0, 0, 0, 0, 0, 0 }
enum { BRC_BACKUP_INCREMENTAL = 1 }; /* the file was an older backup           */

/* Of thinning history: how many of each branch's commits stay, in UTC. At least one is not 0. */
typedef struct brc_expire_opts {
    size_t size;
    uint32_t flags;        /* BRC_EXPIRE_*                                    */
    uint32_t keep_last;    /* the newest                                      */
    uint32_t keep_daily;   /* the newest of each day that has one, of so many days */
    uint32_t keep_weekly;  /* of ISO weeks                                    */
    uint32_t keep_monthly;
    uint32_t reserved;     /* 0                                               */
} brc_expire_opts;
#define BRC_EXPIRE_OPTS_INIT { sizeof(brc_expire_opts), 0, 0, 0, 0, 0, 0 }
enum {
    BRC_EXPIRE_DRY_RUN = 1 /* only says what would expire                     */
};
typedef struct brc_expire_report {
    size_t size;
    uint64_t kept, expired; /* commits                                        */
    uint64_t bytes;        /* of a dry run: what only those hold that would expire, as stored */
} brc_expire_report;
#define BRC_EXPIRE_REPORT_INIT { sizeof(brc_expire_report), 0, 0, 0 }
typedef struct brc_expired {
    brc_oid id;
    int64_t time_us;
    uint32_t reasons;      /* BRC_KEPT_*: why it stays; 0: it expires         */
} brc_expired;
enum {
    BRC_KEPT_TIP = 1,      /* a branch is there                               */
    BRC_KEPT_TAG = 2,
    BRC_KEPT_IN_USE = 4,   /* uncommitted changes or a reader need it         */
    BRC_KEPT_LAST = 8,     /* a rule says so                                  */
    BRC_KEPT_DAILY = 16,
    BRC_KEPT_WEEKLY = 32,
    BRC_KEPT_MONTHLY = 64
};

/* What bytes are for, as they are stored. */
typedef struct brc_du_report {
    size_t size;
    uint64_t versions;     /* what branches and tags reach                    */
    uint64_t uncommitted;  /* and what only uncommitted changes and pins need */
    uint64_t log;          /* and what only the window of the operation log keeps, for undo */
    uint64_t garbage;      /* what nothing needs: brc_gc() removes it         */
    uint64_t stored;       /* all of these                                    */
} brc_du_report;
#define BRC_DU_REPORT_INIT { sizeof(brc_du_report), 0, 0, 0, 0, 0 }
typedef struct brc_du_item {
    const char *path;      /* of an array; NULL: it is a commit               */
    brc_oid id;            /* of a commit                                     */
    uint64_t bytes;        /* what it holds                                   */
    uint64_t alone;        /* of these, what nothing else of its kind does, nor uncommitted changes:
                              what would be free without it                   */
} brc_du_item;

typedef struct brc_ref {
    const char *name;    /* "main", "v1.0"                                    */
    uint32_t flags;      /* BRC_REF_*                                         */
    brc_oid id;          /* of the commit                                     */
    const char *message; /* of a tag, else ""                                 */
} brc_ref;
enum {
    BRC_REF_TAG = 1,     /* else it is a branch                               */
    BRC_REF_CURRENT = 2, /* HEAD names this branch                            */
    BRC_REF_UNBORN = 4   /* the branch has no commit yet: id is zero          */
};

typedef struct brc_commit {
    brc_oid id, root;
    const brc_oid *parents;
    size_t nparents;
    const char *author, *message;
    const char *meta_json; /* an object: what --meta gave                     */
    int64_t time_us;
    uint32_t flags;        /* BRC_PAST_*                                      */
} brc_commit;
enum { BRC_PAST_EXPIRED = 1 }; /* parents have expired: `parents` are the nearest of its ancestors that are kept */

typedef struct brc_commit_opts {
    size_t size;
    const char *message;   /* not blank; NULL: of an amended commit its own   */
    const char *author;    /* NULL: "unknown"                                 */
    const char *meta_json; /* an object, or NULL                              */
    int64_t time_us;       /* 0: now                                          */
    uint32_t flags;        /* BRC_COMMIT_*                                    */
    uint32_t reserved;     /* 0                                               */
} brc_commit_opts;
#define BRC_COMMIT_OPTS_INIT { sizeof(brc_commit_opts), 0, 0, 0, 0, 0, 0 }
enum {
    BRC_COMMIT_AMEND = 1,
    BRC_COMMIT_ALLOW_EMPTY = 2,
    BRC_COMMIT_NO_MERGE = 4 /* where the branch has moved: BRC_ESTALE, also of a private session */
};

typedef struct brc_merge_opts {
    size_t size;
    const char *message;      /* NULL: one that names what is merged          */
    const char *author;       /* NULL: "unknown"                              */
    int64_t time_us;          /* 0: now                                       */
    const char *const *paths; /* BRC_MERGE_OURS, _THEIRS: only at and under these */
    size_t npaths;            /* 0: everywhere                                */
    uint32_t flags;           /* BRC_MERGE_*                                  */
    uint32_t reserved;        /* 0                                            */
} brc_merge_opts;
#define BRC_MERGE_OPTS_INIT { sizeof(brc_merge_opts), 0, 0, 0, 0, 0, 0, 0 }
enum {
    BRC_MERGE_NO_FF = 1,   /* a commit with two parents, also where it could be fast-forward */
    BRC_MERGE_DRY_RUN = 2, /* only says what would come of it: nothing is changed  */
    BRC_MERGE_OURS = 4,    /* conflicts are settled for the current branch    */
    BRC_MERGE_THEIRS = 8,  /* or for what is merged                           */
    BRC_MERGE_KEEP = 16,   /* a merge with conflicts stays open: brc_merge_state() */
    BRC_MERGE_CONCAT = 32  /* what both append to an array along one axis: ours, then theirs. A trial stores it too, and drops it */
};

enum {
    BRC_MERGE_UP_TO_DATE = 1, /* there is nothing new in it                   */
    BRC_MERGE_FAST_FORWARD,   /* the branch is where that is                  */
    BRC_MERGE_MERGED,         /* a commit with two parents                    */
    BRC_MERGE_CONFLICT        /* there is something to decide                 */
};
typedef struct brc_merge_result {
    size_t size;
    int result;         /* BRC_MERGE_UP_TO_DATE ...                           */
    uint32_t reserved;
    brc_oid commit;     /* the branch's, after it; zero for a conflict and a trial */
    uint64_t conflicts; /* that are open                                      */
    int64_t draft;      /* of the merge that stays open; 0: none              */
} brc_merge_result;
#define BRC_MERGE_RESULT_INIT { sizeof(brc_merge_result), 0, 0, { { 0 } }, 0, 0 }

/* A merge, cherry-pick, revert or rebase with conflicts that is neither done nor dropped. */
typedef struct brc_open_state {
    size_t size;
    int64_t draft;      /* its number; 0: none is open                        */
    int has_other;      /* of a merge                                         */
    uint32_t reserved;
    brc_oid other;      /* the commit that is merged                          */
    uint64_t conflicts; /* all of them                                        */
    uint64_t open;      /* those that are not settled                         */
    char op[16];        /* "merge", "cherry-pick", "revert" or "rebase"       */
    char rev[128];      /* what is merged, as it was called; cut at 127 bytes */
    brc_oid at;         /* the commit whose change it is; of a merge zero     */
    uint64_t made, skipped, left; /* of a rebase: commits before it that were made, or left out; commits behind it */
} brc_open_state;
#define BRC_OPEN_STATE_INIT { sizeof(brc_open_state), 0, 0, 0, { { 0 } }, 0, 0, { 0 }, { 0 }, { { 0 } }, 0, 0, 0 }

/* brc_pick(), brc_revert(), brc_rebase() */
typedef struct brc_pick_opts {
    size_t size;
    const char *message;      /* NULL: that of the commit; of a revert, one that names it */
    const char *author;       /* NULL: that of the commit; of a revert, "unknown"  */
    int64_t time_us;          /* 0: that of the commit; of a revert, now      */
    const char *const *paths; /* BRC_PICK_OURS, _THEIRS: only at and under these */
    size_t npaths;            /* 0: everywhere                                */
    uint32_t flags;           /* BRC_PICK_*                                   */
    uint32_t mainline;        /* of a merge: the parent, from 1, from which its change is told; 0: it is none */
} brc_pick_opts;
#define BRC_PICK_OPTS_INIT { sizeof(brc_pick_opts), 0, 0, 0, 0, 0, 0, 0 }
enum {
    BRC_PICK_NO_COMMIT = 1, /* the branch stays, and the change is uncommitted on it */
    BRC_PICK_KEEP = 2,      /* with conflicts it stays open: brc_merge_state(); not with _NO_COMMIT */
    BRC_PICK_OURS = 4,      /* conflicts are settled for the current branch   */
    BRC_PICK_THEIRS = 8     /* or for the change that comes to it             */
};

enum {
    BRC_PICK_NOTHING = 1,  /* the branch has it all already                   */
    BRC_PICK_FAST_FORWARD, /* of a rebase: the branch had nothing of its own  */
    BRC_PICK_COMMITTED,    /* the branch has moved                            */
    BRC_PICK_UNCOMMITTED,  /* BRC_PICK_NO_COMMIT: the change is there         */
    BRC_PICK_CONFLICT      /* there is something to decide                    */
};
typedef struct brc_pick_result {
    size_t size;
    int result;           /* BRC_PICK_NOTHING ...                             */
    uint32_t reserved;
    brc_oid commit;       /* the branch's, after it; zero for a conflict      */
    brc_oid at;           /* of a conflict: the commit whose change it is; else zero */
    uint64_t made;        /* commits that were made                           */
    uint64_t skipped;     /* of a rebase: commits whose change was there already, or that were left out */
    uint64_t conflicts;   /* that are open                                    */
    int64_t draft;        /* of what stays open; 0: nothing does              */
    uint64_t left;        /* of a rebase that stays open: commits behind `at` */
} brc_pick_result;
#define BRC_PICK_RESULT_INIT { sizeof(brc_pick_result), 0, 0, { { 0 } }, { { 0 } }, 0, 0, 0, 0, 0 }
enum { BRC_REBASE_SKIP = 1 }; /* the commit in conflict is left out           */

/* brc_bisect() */
enum {
    BRC_BISECT_LOOK = 0, /* changes nothing                                   */
    BRC_BISECT_START,    /* begins anew: nothing is known                     */
    BRC_BISECT_GOOD,     /* this version does not have the change             */
    BRC_BISECT_BAD,      /* this one has it                                   */
    BRC_BISECT_SKIP,     /* this one cannot be judged                         */
    BRC_BISECT_RESET     /* ends it, whatever is known                        */
};
enum {
    BRC_BISECT_NONE = 0, /* there is no bisection                             */
    BRC_BISECT_WAITING,  /* for a bad version, or a good one                  */
    BRC_BISECT_NEXT,     /* `at` is to be looked at                           */
    BRC_BISECT_FOUND,    /* `at` brought the change                           */
    BRC_BISECT_OPEN      /* only versions that were skipped are left          */
};
typedef struct brc_bisect_result {
    size_t size;
    int state;       /* BRC_BISECT_NONE ...                                   */
    uint32_t flags;  /* BRC_BISECT_HAS_BAD                                    */
    brc_oid at;
    uint64_t left;   /* versions of which each could have brought the change  */
    uint64_t good;   /* versions that are known to be good                    */
    uint64_t skipped;
} brc_bisect_result;
#define BRC_BISECT_RESULT_INIT { sizeof(brc_bisect_result), 0, 0, { { 0 } }, 0, 0, 0 }
enum { BRC_BISECT_HAS_BAD = 1 }; /* a bad version is known                    */

/* Something that a merge cannot decide. */
typedef struct brc_conflict {
    const char *path;  /* the node                                            */
    const char *kind;  /* "deleted", "added", "replaced", "moved", "metadata", "storage", "chunk" */
    const char *key;   /* a JSON pointer into zarr.json, or "c/0/1"; NULL: none */
    int settled;       /* 0: it is open; BRC_MERGE_OURS, _THEIRS; 1: by hand  */
    int64_t draft;     /* brc_session_join(): the child's; else 0             */
} brc_conflict;

typedef struct brc_node {
    const char *path; /* "/", "/a/b"                                          */
    int kind;         /* BRC_GROUP or BRC_ARRAY                               */
} brc_node;
enum { BRC_OWNER_UNKNOWN = 0, BRC_OWNER_ALIVE = 1, BRC_OWNER_DEAD = 2 };
/* Uncommitted changes. */
typedef struct brc_draft {
    int64_t id;          /* names it; that of a private one is never used again */
    const char *branch;
    uint32_t flags;      /* BRC_DRAFT_*                                       */
    int owner;           /* of an owned one: BRC_OWNER_*, as far as it can be told here */
    int64_t owner_pid;   /* its process; 0: not known                         */
    int64_t time_us;     /* when it was begun                                 */
    uint64_t nodes;      /* nodes that it changes, but for what a fork or a join has folded */
    const char *op;      /* BRC_DRAFT_MERGING: as in brc_open_state; else NULL */
    const char *array;   /* BRC_DRAFT_REWRITING: its path; else NULL          */
    int64_t parent;      /* BRC_DRAFT_CHILD: whose, which may be gone; else 0 */
} brc_draft;
enum {
    BRC_DRAFT_OWNED = 1, /* private to one session; else what the branch's sessions share */
    BRC_DRAFT_STALE = 2, /* the branch has moved since: its commit merges it */
    BRC_DRAFT_MERGING = 4, /* an open merge or the like: brc_merge_state()    */
    BRC_DRAFT_REWRITING = 8, /* of an array, not at its end: it can only be dropped */
    BRC_DRAFT_CHILD = 16, /* of a session: brc_session_fork()                 */
    BRC_DRAFT_ORPHAN = 32 /* ... whose draft is gone: it can be adopted, not joined */
};

/* One node that differs between two versions.  Storage alone (codecs, backend, padding of
 * chunks beyond the array's end, which is never compared): BRC_CHANGE_STORAGE, no value differs. */
typedef struct brc_change {
    const char *path;
    const char *from;            /* where it was, for BRC_MOVED; else NULL    */
    int what;                    /* BRC_ADDED ...                             */
    int kind;
    uint32_t flags;              /* BRC_CHANGE_*                              */
    int ndim;                    /* of first and last                         */
    const char *const *metadata; /* JSON pointers into zarr.json              */
    size_t nmetadata;
    uint64_t chunks_added, chunks_removed, chunks_changed;
    /* with BRC_CHANGE_ELEMENTS */
    uint64_t elements_changed;   /* within both shapes, that differ in any bit */
    double max_abs;              /* their largest absolute difference, pairs with a NaN left out; NaN: not numbers */
    uint64_t first[BRC_MAX_NDIM], last[BRC_MAX_NDIM]; /* corners of the box around them */
    uint64_t elements_added, elements_removed; /* within only the new shape, or only the old one. Here and in
                                  * elements_changed 2^64-1: that or more     */
    const char *elements_why;    /* a clause: why elements of an array on both sides cannot be compared; else NULL */
} brc_change;
enum {
    BRC_CHANGE_STORAGE = 1, /* storage alone differs                          */
    BRC_CHANGE_ELEMENTS = 2 /* the members about elements are known           */
};

/* One change of a ref. What one call changed, or calls between brc_begin() and brc_end(), is one operation. */
typedef struct brc_op {
    int64_t id;          /* grows with time                                   */
    int64_t operation;   /* id of the operation's first change, perhaps this one */
    int64_t time_us;
    const char *what;    /* "commit", "reset", "delete", "undo" ...           */
    const char *name;    /* of the branch or tag                              */
    uint32_t flags;      /* BRC_OP_*                                          */
    brc_oid from, to;    /* its commit before and after; zero: none           */
    int64_t undoes;      /* the operation that this one takes back; 0: none   */
    int64_t restores;    /* the undoing that this one takes back; 0: none     */
    int64_t draft;       /* what was uncommitted on a branch that went: brc_draft.id; 0: nothing */
} brc_op;
enum {
    BRC_OP_TAG = 1,    /* of a tag, else of a branch                          */
    BRC_OP_SWITCH = 2  /* no ref moved: two changes, of the current branch before and after */
};

typedef struct brc_log_opts {
    size_t size;
    const char *path; /* commits that changed this node or something under it; NULL: all */
    uint32_t flags;   /* BRC_LOG_*                                            */
    uint32_t reserved; /* 0                                                   */
} brc_log_opts;
#define BRC_LOG_OPTS_INIT { sizeof(brc_log_opts), 0, 0, 0 }
enum { BRC_LOG_FULL = 1 }; /* of a path: also what a merge gave up            */

typedef struct brc_diff_opts {
    size_t size;
    const char *path; /* this node and what is under it; NULL: all            */
    uint32_t flags;   /* BRC_DIFF_*                                           */
    uint32_t reserved; /* 0                                                   */
} brc_diff_opts;
#define BRC_DIFF_OPTS_INIT { sizeof(brc_diff_opts), 0, 0, 0 }
enum { BRC_DIFF_ELEMENTS = 1 };

typedef struct brc_array_spec {
    size_t size;
    int ndim;
    const uint64_t *shape;
    const uint64_t *chunk;  /* NULL: chosen, about 1 MiB                      */
    const char *dtype;      /* "float32", or a JSON object                    */
    const char *fill;       /* as JSON, or a bare word such as NaN; NULL: 0, of dates and times NaT */
    const char *codecs_json; /* a Zarr v3 list; NULL: chosen                  */
    const char *attrs_json;
    const char *const *dimension_names; /* ndim of them, each may be NULL     */
    const char *chunk_key_encoding;     /* "default" or "v2"; NULL: default   */
    const char *metadata_json;          /* a complete zarr.json; replaces the rest */
    const uint64_t *shard;  /* shape of the shards that other tools see, a multiple
                               of the chunks' shape; NULL: no shards          */
    const char *backend_json; /* as brc_array_set_backend() takes it; NULL: the file */
    const void *fill_element; /* in place of `fill`: one element, to the bit, as brc_array_fill()
                                 takes it; NULL: see `fill`                  */
    const char *compressors_json; /* in place of `codecs_json`: only what comes behind the codec that
                                     makes bytes of elements, "[]" for nothing; NULL: see there */
} brc_array_spec;
#define BRC_ARRAY_SPEC_INIT { sizeof(brc_array_spec), 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0 }

typedef struct brc_array_info {
    const char *path;
    int ndim;
    const uint64_t *shape;
    const uint64_t *chunk;   /* of a sharded array: of the inner chunks        */
    const uint64_t *grid;    /* how many chunks along each axis                */
    const char *dtype;       /* "float32", or a JSON object                    */
    size_t item_size;        /* bytes per element; 0: variable length         */
    const char *codecs_json; /* as in zarr.json                               */
    const void *fill;        /* one element; NULL: the type is not known here */
    uint32_t flags;          /* BRC_ARRAY_*                                   */
    const uint64_t *shard;   /* the shape of its shards; NULL: it has none    */
    const char *why;         /* it is not readable or not writable; NULL: it is both */
    const char *backend_json; /* where new chunks go: {"name":...,"configuration":{...}} */
} brc_array_info;
enum {
    BRC_ARRAY_READABLE = 1, /* its data type is known here, and its codecs as far as
                               reading needs them                             */
    BRC_ARRAY_WRITABLE = 2, /* chunks can be encoded here                     */
    BRC_ARRAY_REGULAR = 4   /* all chunks along an axis have one length       */
};

/* Where a chunk, or elements that follow each other along the last axis, come from. */
typedef struct brc_blamed {
    int ndim;
    uint32_t flags;      /* BRC_BLAME_*                                       */
    uint64_t first[BRC_MAX_NDIM]; /* the chunk's place in the grid; of elements, the first one */
    uint64_t count;      /* how many selected elements; 1 for a chunk         */
    brc_oid commit;      /* that changed it last                              */
    int64_t time_us;
    const char *author;
} brc_blamed;
enum { BRC_BLAME_BEFORE = 1 << 1 }; /* or a commit before it that has expired: `author` is "" */

/* Part of a value. */
typedef struct brc_key_range {
    size_t size;
    int kind;            /* BRC_RANGE_*                                       */
    uint64_t start, end; /* BETWEEN: the first byte and the one behind the last; FROM: the first; LAST: how many at the end */
} brc_key_range;
#define BRC_KEY_RANGE_INIT { sizeof(brc_key_range), 0, 0, 0 }
enum { BRC_RANGE_ALL = 0, BRC_RANGE_BETWEEN = 1, BRC_RANGE_FROM = 2, BRC_RANGE_LAST = 3 };

typedef struct brc_key_info {
    size_t size;
    uint64_t length; /* bytes                                                 */
    char etag[40];   /* is another where the bytes are others; of a chunk or a shard: of which chunks, and how they lie */
} brc_key_info;
#define BRC_KEY_INFO_INIT { sizeof(brc_key_info), 0, "" }

typedef struct brc_rename {
    const char *from; /* a node's path below the imported one: "/a/b"         */
    const char *to;   /* its new name, in the same group: "c"                 */
} brc_rename;

typedef struct brc_xfer_opts {
    size_t size;
    const uint64_t *chunk; /* import: re-chunk to this; NULL: as it is        */
    int nchunk;
    uint32_t flags;          /* BRC_XFER_*                                    */
    const char *codecs_json; /* import: re-encode with these; NULL: as it is  */
    const char *format;      /* NULL: by the name's ending; "zarr3", "npy" ... */
    brc_buf *placed; /* import: receives the path of the imported node, also after a failure if it is known */
    const char *const *exclude; /* import: nodes to leave out, with all under them, by their paths in the source
                          ("/a/b"), and attributes ("/a/b@units"). In patterns '*' and '?' stand for characters
                          of a name, [a-z] and [!a-z] for one of them, '**' for any number of names */
    size_t nexclude;
    uint8_t *excluded; /* import: nexclude bytes, or NULL; 1 for each item of `exclude` that the source has */
    const char *with;  /* import: a command that sh runs with the source as "$1"; what it writes is imported as by
                          brc_import_stream(). It has all the rights of this process */
    brc_buf *left_out; /* import: receives a JSON array of what the source has that cannot be kept, also after a
                          failure because of that: {"path", "kind", "message", "remedy"}, the path with "@NAME"
                          behind it for an attribute. After 1,000 a last item of the kind "more" has the rest */
    const char *hdf5_plugins; /* import: folders of HDF5's filters, "A:B"; NULL: those in HDF5_PLUGIN_PATH */
    brc_buf *warnings; /* receives a line, with '\n' at its end, for each thing to know of the result */
    const brc_rename *rename; /* import: nodes that get another name; what lies under them goes along */
    size_t nrename;
    uint8_t *renamed; /* import: nrename bytes; 1 for each item of `rename` that the source has. NULL: it must have all
                         of them, else BRC_ENOTFOUND */
} brc_xfer_opts;
#define BRC_XFER_OPTS_INIT { sizeof(brc_xfer_opts), 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0 }
enum {
    BRC_XFER_CONSOLIDATED = 1, /* export: copy all metadata into the top document */
    BRC_XFER_INTO = 2, /* import: `path` is a group, and the source becomes a node in it, named after the source */
    BRC_XFER_SKIP_UNSUPPORTED = 4, /* import: what cannot be kept stays out; else nothing is imported then */
    BRC_XFER_UNEQUAL_DIMENSIONS = 16, /* export of Zarr, NetCDF: else one name for two lengths is BRC_EINVAL (CLI.md) */
    BRC_XFER_NAN_TOKENS = 8 /* export of Zarr: NaN and infinities in attributes are the words that zarr-python reads,
                               and no strict reader of JSON; else marked texts (docs/CLI.md, "export") */
};

/* One finding of brc_fsck(). */
typedef struct brc_damage {
    brc_oid id;
    const char *kind;            /* "chunk", "document", "node", "commit", "ref", "index" */
    uint32_t flags;              /* BRC_DAMAGE_*                              */
    const char *const *used_by;  /* "main~2 (1a2b3c4d): /a/b c/0/1"           */
    size_t nused_by;
    const char *message;
} brc_damage;
enum { BRC_DAMAGE_MISSING = 1 }; /* it is named somewhere, but not there         */

enum { BRC_FSCK_NO_DECODE = 1 };

/* Of a branch or tag in a damaged file: what still stands. */
typedef struct brc_standing {
    const char *name;
    uint32_t flags;              /* BRC_STANDS_*                              */
    uint64_t commits, whole;     /* that it reaches, and of these, with nothing lost */
    brc_oid newest;              /* of the whole ones; zero: there is none    */
    const char *const *lost;     /* paths of its newest version in which something is lost */
    size_t nlost;
} brc_standing;
enum { BRC_STANDS_TAG = 1, BRC_STANDS_TIP = 2 }; /* its newest version is whole */

enum { BRC_REPAIR_DROP = 1 }; /* what cannot be read goes: it is missing then, and can be stored again */
typedef struct brc_repair_report {
    size_t size;
    uint64_t replaced;     /* objects that have a good copy now               */
    uint64_t dropped;      /* damaged ones that went                          */
    uint64_t damaged;      /* that are still there                            */
    uint64_t missing;
} brc_repair_report;
#define BRC_REPAIR_REPORT_INIT { sizeof(brc_repair_report), 0, 0, 0, 0 }

typedef struct brc_codec_info {
    const char *name;
    const char *kind;           /* "array->array", "array->bytes", "bytes->bytes" */
    const char *implementation; /* each implementation is an item of its own  */
    int rank;
    uint32_t flags;             /* BRC_IMPL_*                                 */
    const char *owner;          /* who added it: "breccia", or a plug-in's path */
} brc_codec_info;
enum {
    BRC_IMPL_USABLE = 1, /* its probe said that it can run here               */
    BRC_IMPL_CHOSEN = 2  /* what this registry would run                      */
};

typedef struct brc_backend_info {
    const char *name;
    uint32_t flags;    /* BRC_BACKEND_INFO_*                                  */
    const char *owner; /* as in brc_codec_info                                */
} brc_backend_info;
enum { BRC_BACKEND_INFO_READ_ONLY = 1 }; /* nothing can be stored there       */

typedef struct brc_dtype_info {
    const char *name;  /* as in zarr.json; for a family, a pattern of its names */
    const char *kind;  /* "bool", "int", "uint", "float", "complex", "raw", "string",
                          "bytes", "time" or "struct"; "": see configured     */
    uint64_t item_size; /* bytes per element; 0: it varies, or see configured */
    const char *npy;   /* NumPy's name, "<f4"; NULL: none                     */
    uint32_t flags;    /* BRC_DTYPE_*                                         */
    const char *owner; /* as in brc_codec_info                                */
} brc_dtype_info;
enum {
    BRC_DTYPE_FAMILY = 1,    /* it stands for many names                      */
    BRC_DTYPE_CONFIGURED = 2 /* kind and size depend on its name or configuration */
};

#ifdef __cplusplus
}
#endif

#include "breccia_sel.h"

#endif
