/*
 * breccia_types.h - the constants and structures of breccia.h, which includes it.
 *
 * Every structure below is frozen: its fields keep their names, types, meanings and order, and
 * new fields are only appended. So programs and libraries of different versions work together:
 *  - A structure that a call returns as `const T *` belongs to the library. A program reads the
 *    fields that its header declares; it must not use sizeof on the structure, copy it, or treat
 *    it as an array.
 *  - The `size` of a structure that the caller allocates says which fields it has. If an older
 *    caller passes a smaller size, the missing fields count as zero, and the library writes
 *    nothing past the size. If a newer caller passes a larger size, the fields that this library
 *    does not know must be zero (BRC_EUNSUPPORTED), and in a result they become zero. A size that
 *    no version had is BRC_EINVAL. In an array of such structures all have the same size.
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

/* The id of an object: the hash of its canonical bytes. A hash shorter than 32 bytes is followed by
 * zeros. */
typedef struct brc_oid {
    uint8_t bytes[32];
} brc_oid;

/* Bytes that the library allocated. Release them with brc_buf_dispose(). */
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
enum { BRC_BUF_FIXED = 1 }; /* the memory belongs to someone else and cannot grow */

enum brc_code {
    BRC_OK = 0,
    BRC_EINVAL = -1,       /* an argument is wrong                             */
    BRC_EMISUSE = -2,      /* the call is not allowed in this state            */
    BRC_ENOTFOUND = -3,    /* the file, ref, node, object or key does not exist */
    BRC_EEXISTS = -4,      /* the file, ref or node already exists             */
    BRC_EAMBIGUOUS = -5,   /* an abbreviation matches more than one            */
    BRC_ECONFLICT = -6,    /* the caller has to decide something first         */
    BRC_ESTALE = -7,       /* a ref or draft is not where the caller expects it */
    BRC_EBUSY = -8,        /* another process holds the file                   */
    BRC_EREADONLY = -9,    /* the file or the session cannot be written        */
    BRC_ECORRUPT = -10,    /* stored bytes contradict their hash or format     */
    BRC_EFORMAT = -11,     /* not a repository, or its format is newer than this library */
    BRC_EUNSUPPORTED = -12, /* this build lacks the codec, data type or option */
    BRC_ELIMIT = -13,      /* a documented limit would be exceeded             */
    BRC_ENOMEM = -14,
    BRC_EIO = -15,         /* detail: errno or SQLite's extended code          */
    BRC_ENOSPACE = -16,    /* the disk, or the file's page limit, is full      */
    BRC_EINTERRUPT = -17,  /* brc_interrupt() was called, or a callback asked to stop */
    BRC_EINTERNAL = -18,   /* a bug in breccia                                 */
    BRC_ECOLLISION = -19   /* two different contents have the same hash        */
};

typedef struct brc_error {
    size_t size;       /* 0, in a structure that was zeroed: as in version 0.1 */
    int code;          /* equals the returned value                           */
    int detail;        /* code from the layer below, 0 if none                */
    char source[16];   /* "sqlite", "os", "backend", "server", "codec:zstd" or "" */
    char message[488]; /* one line of UTF-8, always terminated                */
} brc_error;
#define BRC_ERROR_INIT { sizeof(brc_error), 0, 0, "", "" }

/* Reports that `done` of `total` bytes (0: not known) of decoded data are done in a phase
 * ("import", "check"). It is called on the caller's thread after every chunk, so look at the clock
 * before you draw. `done` never decreases and ends at `total`. Once known, `total` stays the same
 * through a call, or from brc_progress_begin() to brc_progress_end(). A result other than 0 stops
 * the call with BRC_EINTERRUPT. */
typedef int (*brc_progress_fn)(void *ctx, const char *phase, uint64_t done, uint64_t total);

/* A server to which a repository's chunks are to be sent, or from which they are to be fetched. The
 * names come from the repository's file, which may be a stranger's; the backend has checked their
 * form. */
typedef struct brc_server {
    size_t size;
    const char *kind;     /* "s3": the backend that asks                       */
    const char *endpoint; /* "https://s3.eu-north-1.amazonaws.com": scheme, host and, if it is not the
                           * scheme's, port, in lower case                     */
    const char *bucket;
    const char *region;
    uint32_t flags;       /* BRC_SERVER_*                                      */
    uint32_t reserved;    /* 0                                                 */
} brc_server;
enum { BRC_SERVER_STANDARD = 1 }; /* the endpoint is that of the region at the vendor that made the protocol */

/* The credentials for a server. Texts that are empty are left out: without `key` requests are not
 * signed. */
typedef struct brc_credentials {
    size_t size;
    char key[256];        /* the access key's id                               */
    char secret[512];
    char token[8192];     /* of a session                                      */
} brc_credentials;

/* Decides whether the process connects to a server, and fills in `out`, which is all zero before
 * except its size. A result other than BRC_OK, with a message, refuses: nothing is sent. The function
 * must not give secrets to servers that the user has not chosen. It is called before the first
 * request, and again if the server says that the credentials have expired; on any thread, but never
 * twice at once for one handle and server. `err` is not NULL. */
typedef int (*brc_credentials_fn)(void *ctx, const brc_server *server, brc_credentials *out, brc_error *err);

/* How a handle moves chunks and runs their codecs. No choice here changes a byte that is read or stored. */
typedef struct brc_pipeline_opts {
    size_t size;
    const char *pipeline; /* "batched", "serial" or the name of a plug-in's pipeline, or {"name": ...,
                           * "configuration": {...}}; NULL: "batched"         */
    size_t memory;        /* the most chunk bytes held at once; 0: as brc_open_opts.memory says */
    uint32_t threads;     /* the most threads that work on chunks; 0: all of the pool; 1: only the caller's. A small
                           * write, which is prepared as a whole, takes all of the pool unless this is 1 */
    uint32_t batch;       /* the most chunks in one batch; 0: as many as suit their length, up to 64 */
    int readback;         /* BRC_READBACK_...; 0: as brc_open_opts.readback says */
    int reserved;         /* 0                                                */
    /* Where chunks are read by ranges of a server's objects: chunks that lie at most `gap` bytes apart are read in one
     * request, with what lies between them, of at most `range` bytes unless one chunk is longer. 0: as the backend
     * chooses (s3: 64 KiB and 1 MiB) */
    uint64_t gap, range;
} brc_pipeline_opts;
#define BRC_PIPELINE_OPTS_INIT { sizeof(brc_pipeline_opts), 0, 0, 0, 0, 0, 0, 0, 0 }

typedef struct brc_open_opts {
    size_t size;
    uint32_t flags;               /* BRC_OPEN_*                               */
    int wait_ms;                  /* how long to wait for a busy file; 0: 30 s; < 0: do not wait */
    size_t memory;                /* the most chunk bytes held at once; 0: 256 MiB */
    brc_pool *pool;               /* NULL: work on the calling thread         */
    const brc_registry *registry; /* NULL: what this build contains           */
    const char *hash;             /* the hash of a new repository; NULL: "xxh128" */
    const char *vfs;              /* name of a registered SQLite VFS, or NULL */
    brc_progress_fn progress;
    void *progress_ctx;
    uint64_t max_nodes;           /* the most groups and arrays that one call may visit (BRC_ELIMIT); 0:
                                   * 10,000,000 */
    const char *libexec;          /* the folder of the converters for NetCDF and HDF5; NULL: where this
                                   * build installs them */
    brc_credentials_fn credentials; /* NULL: no server is connected to; chunks in buckets are out of reach */
    void *credentials_ctx;        /* valid until the handle, and those of brc_reopen(), are closed */
    /* A file in which chunks of servers are kept, so that they need not be asked for again; it is made if it does not
     * exist. Repositories and processes may share it. Where it is damaged, locked or full, chunks come from their
     * servers, and nothing fails. It can be deleted at any time. NULL: none */
    const char *cache;
    uint64_t cache_bytes;         /* the most bytes of that file; 0: 1 GiB. What was not used for longest goes first */
    int readback;                 /* BRC_READBACK_...: which new chunks are read back; 0: as the setting says */
    int reserved;                 /* 0                                           */
    const brc_pipeline_opts *pipeline; /* how codecs are run; NULL: BRC_PIPELINE_OPTS_INIT */
    const char *prototype;        /* the buffer prototype of tensors that are read, unless the array or the call
                                   * names another; NULL: "host" */
} brc_open_opts;
#define BRC_OPEN_OPTS_INIT { sizeof(brc_open_opts), 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0 }
/* Before an encoded chunk is stored it is decoded again and compared, so that a codec that loses elements, or memory
 * that does, fails the write. Chunks that are stored as they are need no reading back. */
enum {
    BRC_READBACK_ALL = 1,     /* every chunk: the default                      */
    BRC_READBACK_SAMPLED = 2, /* one of 16, by the chunk's id                  */
    BRC_READBACK_NONE = 3
};
enum {
    BRC_OPEN_READONLY = 1,
    BRC_OPEN_CREATE = 2,     /* create the file; BRC_EEXISTS if it exists     */
    /* Reads the file as it is: a journal that an interrupted writer left is neither played back nor
     * deleted, so half a change may show. */
    BRC_OPEN_NO_RECOVER = 4
};

enum {                   /* modes of brc_session_open(): what the session shows */
    BRC_SESSION_AT = 0,  /* a committed version, which never changes          */
    BRC_SESSION_VIEW = 1, /* a branch with its uncommitted changes, read-only */
    BRC_SESSION_WRITE = 2, /* a branch with its uncommitted changes, writable */
    /* A branch as it is now, writable. Nobody else sees the session's changes before they are
     * committed, and the session does not see uncommitted changes of others. */
    BRC_SESSION_PRIVATE = 3,
    BRC_SESSION_TOKEN = 4, /* the private draft that a token, a name or a number names, writable */
    BRC_SESSION_ANY_REV = 16, /* a flag for BRC_SESSION_VIEW and BRC_SESSION_WRITE: allows any revision */
    BRC_SESSION_COMMITS = 32 /* a flag for BRC_SESSION_VIEW: shows the branch's newest commit without
                              * uncommitted changes */
};
typedef struct brc_session_info {
    size_t size;
    int mode;        /* BRC_SESSION_AT ...                                    */
    int has_commit;  /* 0: the branch has no commit yet                       */
    brc_oid commit;  /* the commit that the session shows, or on which its uncommitted changes are based */
    int64_t draft;   /* the number of its draft; 0: it has no uncommitted changes */
    int64_t changes; /* grows with each transaction that changes the draft    */
} brc_session_info;
#define BRC_SESSION_INFO_INIT { sizeof(brc_session_info), 0, 0, { { 0 } }, 0, 0 }

/* Flags of functions. Other flags are BRC_EINVAL. */
enum { BRC_END_KEEP = 1 };       /* brc_end(), brc_bulk_end()                 */
enum { BRC_DELETE_FORCE = 8 };   /* brc_ref_delete(), together with BRC_REF_TAG for a tag */
enum { BRC_SWITCH_DISCARD = 1, BRC_SWITCH_CARRY = 2 }; /* brc_switch()        */
enum { BRC_RESET_HARD = 1 };     /* brc_reset()                               */
enum { BRC_LIST_RECURSE = 1 };   /* brc_list()                                */
enum { BRC_UNDO_REDO = 1, BRC_UNDO_DRY_RUN = 2 }; /* brc_undo()           */
enum { BRC_BLAME_ELEMENTS = 1 }; /* brc_blame()                               */
enum { BRC_NODE_COPY = 1 };      /* brc_node_move()                           */
enum { BRC_STREAM_NPY = 1 };     /* brc_array_stream()                        */
enum { BRC_KEY_NEW = 1 };        /* brc_key_set(): only if the key does not exist */
enum { BRC_KEY_PREFIX = 1 };     /* brc_key_delete(): every key that begins so */
enum { BRC_KEYS_DIR = 1, BRC_KEYS_LOOSE = 2 }; /* brc_keys(): one of them     */

enum { BRC_SAVEPOINT_SET = 1, BRC_SAVEPOINT_ROLLBACK, BRC_SAVEPOINT_RELEASE }; /* brc_savepoint() */

enum { BRC_GROUP = 1, BRC_ARRAY = 2 };                              /* values of `kind` */
enum { BRC_ADDED = 1, BRC_REMOVED = 2, BRC_MOVED = 3, BRC_CHANGED = 4 }; /* values of `what` */

typedef struct brc_stats {
    size_t size;
    uint64_t commits;       /* commits reachable from a branch or tag         */
    uint64_t objects;       /* everything that is stored under a hash         */
    uint64_t chunks;        /* how many of the objects are chunks             */
    uint64_t stored_bytes;  /* bytes of all objects as stored                 */
    uint64_t logical_bytes; /* bytes of all objects, decoded                  */
    uint64_t file_bytes;
    uint64_t chunk_refs;    /* references to chunks in all these commits     */
    uint64_t log_bytes;     /* bytes of FILE-wal while it is part of the file */
    uint64_t outside_chunks; /* chunks that lie outside of the file: brc_backends() says where */
    uint64_t outside_bytes; /* of stored_bytes: those of these chunks         */
    uint64_t deltas;        /* chunks that are stored as differences from others */
    uint64_t delta_depth;   /* the most differences that one read of a chunk decodes */
} brc_stats;
#define BRC_STATS_INIT { sizeof(brc_stats), 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0 }

/* The part of an element that brc_array_stats() sums up, by data type. */
enum {
    BRC_STATS_VALUES = 1,     /* numbers, booleans and times: themselves              */
    BRC_STATS_MAGNITUDES = 2, /* complex numbers: their absolute values               */
    BRC_STATS_LENGTHS = 3     /* texts and bytes of variable length: their bytes     */
};
enum { BRC_STATS_TEXT = 48 }; /* bytes of a number as text, with a NUL              */

/* Result of brc_array_stats(). */
typedef struct brc_array_summary {
    size_t size;
    int of;              /* BRC_STATS_*                                       */
    int nbins;           /* bins of the histogram; 0: there are no numbers    */
    uint64_t count;      /* elements                                          */
    uint64_t nan;        /* of these NaN, or not a time; they count nowhere else but in `fill` */
    uint64_t fill;       /* with the bits of the fill value                   */
    uint64_t infinite;   /* Infinity or -Infinity                             */
    uint64_t nvalues;    /* the number of different values; 0: not known      */
    double mean;         /* NaN: there is none                                */
    double std;          /* the standard deviation: of all, not of a sample   */
    char min[BRC_STATS_TEXT]; /* JSON, as brc_element_format() writes elements: integers and times are
                               * exact. Empty: there is none                  */
    char max[BRC_STATS_TEXT];
    char mean_text[BRC_STATS_TEXT]; /* likewise; of times rounded to a time   */
} brc_array_summary;
#define BRC_ARRAY_SUMMARY_INIT { sizeof(brc_array_summary), 0, 0, 0, 0, 0, 0, 0, 0, 0, "", "", "" }

/* Options of brc_array_stats(). */
typedef struct brc_array_stats_opts {
    size_t size;
    const struct brc_sel *sel; /* the elements that are summed up; NULL: all  */
    const char *field;   /* of elements with fields: the one that is summed up, "x", or "position.x" where a
                          * field has fields itself; NULL: the elements have none */
} brc_array_stats_opts;
#define BRC_ARRAY_STATS_OPTS_INIT { sizeof(brc_array_stats_opts), 0, 0 }

/* A bin of the histogram, or a value and how often it is there. */
typedef struct brc_stats_bin {
    uint64_t count;
    const char *from;    /* JSON as of brc_array_summary.min: the bin's first value, or the value */
    const char *to;      /* the first value behind the bin; NULL: this is not a bin but a value */
    double low, high;    /* both as numbers, rounded                          */
} brc_stats_bin;

/* Options of brc_gc(). */
typedef struct brc_gc_opts {
    size_t size;
    uint32_t flags;      /* BRC_GC_*                                          */
    size_t memory;       /* bytes of memory for marking; 0: a quarter of the repository's budget */
    const char *keep;    /* used instead of the setting "window", in the same form ("7d", "0"); NULL: the
                          * setting */
} brc_gc_opts;
#define BRC_GC_OPTS_INIT { sizeof(brc_gc_opts), 0, 0, NULL }
enum { BRC_GC_DRY_RUN = 1,    /* only counts what would be removed                 */
       BRC_GC_EXPUNGE = 2 };  /* removed data leaves no trace in the file, nor in its journals */
typedef struct brc_gc_report {
    size_t size;
    uint64_t objects_removed;
    uint64_t bytes_freed;  /* stored bytes of the removed objects             */
    uint64_t file_bytes;   /* the file's length after the call; of a dry run about what it would be */
    uint64_t past_versions; /* commits that only the operation log or readers keep: keep "0" drops those of the log */
} brc_gc_report;
#define BRC_GC_REPORT_INIT { sizeof(brc_gc_report), 0, 0, 0, 0 }

/* Options of brc_repack(). */
typedef struct brc_repack_opts {
    size_t size;
    uint32_t flags;      /* BRC_REPACK_*                                      */
    uint32_t delta_depth; /* with BRC_REPACK_DELTA: the most differences that one read decodes, 1 to 64; 0: 8 */
    const char *backend_json; /* where the chunks go, as brc_array_set_backend() takes it; NULL: they stay */
    const char *codecs_json; /* how they are encoded, as brc_array_set_codecs() takes it; NULL: as they are */
    const char *path;    /* only chunks of the array, or the arrays of the group, that versions and uncommitted
                          * changes have at this path; NULL: all              */
    int64_t older_than_us; /* only chunks that no commit since this time uses, nor a branch's last commit, nor
                            * uncommitted changes; 0: all                     */
} brc_repack_opts;
#define BRC_REPACK_OPTS_INIT { sizeof(brc_repack_opts), 0, 0, 0, 0, 0, 0 }
enum { BRC_REPACK_DRY_RUN = 1, /* only counts, and changes nothing            */
       BRC_REPACK_DELTA = 2,   /* chunks of older versions become differences from the next newer ones, where that saves
                                * a quarter: without a backend and codecs     */
       BRC_REPACK_WHOLE = 4 }; /* such chunks are stored whole again: likewise */
typedef struct brc_repack_report {
    size_t size;
    uint64_t objects;      /* that were stored again, or would be             */
    uint64_t bytes_before; /* their stored bytes                              */
    uint64_t bytes_after;  /* the same afterwards; of a dry run estimated from a sample if encodings change */
    uint64_t sampled;      /* of a dry run: objects in that sample            */
    uint64_t unreadable;   /* objects that should have been stored again, but cannot be read: they stay as they
                            * are                                             */
    uint64_t rows;         /* rows of stored bytes, and packs, put together   */
    uint64_t misfits;      /* documents of arrays that the codecs do not fit: their encodings stay */
} brc_repack_report;
#define BRC_REPACK_REPORT_INIT { sizeof(brc_repack_report), 0, 0, 0, 0, 0, 0, 0 }

/* Result of brc_backup(). */
typedef struct brc_backup_report {
    size_t size;
    uint64_t bytes_copied;    /* stored bytes that the copy lacked                 */
    uint64_t objects_copied;  /* objects that are new in the copy, or moved in it  */
    uint64_t objects_checked; /* objects of these that were read back and decoded  */
    uint64_t file_bytes;      /* the copy's length                                 */
    uint32_t flags;           /* BRC_BACKUP_*                                      */
    uint32_t reserved;        /* 0                                                 */
} brc_backup_report;
#define BRC_BACKUP_REPORT_INIT { sizeof(brc_backup_report), 0, 0, 0, 0, 0, 0 }
enum { BRC_BACKUP_INCREMENTAL = 1 }; /* `dest` was an older backup             */

/* Options of brc_expire(): how many of each branch's commits stay, by UTC. At least one number must
 * not be 0. */
typedef struct brc_expire_opts {
    size_t size;
    uint32_t flags;        /* BRC_EXPIRE_*                                    */
    uint32_t keep_last;    /* keeps the newest N commits                      */
    uint32_t keep_daily;   /* keeps the newest commit of each of the last N days that have one */
    uint32_t keep_weekly;  /* the same for ISO weeks                          */
    uint32_t keep_monthly;
    uint32_t reserved;     /* 0                                               */
} brc_expire_opts;
#define BRC_EXPIRE_OPTS_INIT { sizeof(brc_expire_opts), 0, 0, 0, 0, 0, 0 }
enum {
    BRC_EXPIRE_DRY_RUN = 1 /* only says which commits would expire            */
};
typedef struct brc_expire_report {
    size_t size;
    uint64_t kept, expired; /* numbers of commits                             */
    uint64_t bytes;        /* of a dry run: stored bytes of objects that only expiring commits hold */
} brc_expire_report;
#define BRC_EXPIRE_REPORT_INIT { sizeof(brc_expire_report), 0, 0, 0 }
typedef struct brc_expired {
    brc_oid id;
    int64_t time_us;
    uint32_t reasons;      /* BRC_KEPT_*: why the commit stays; 0: it expires */
} brc_expired;
enum {
    BRC_KEPT_TIP = 1,      /* a branch points to it                           */
    BRC_KEPT_TAG = 2,
    BRC_KEPT_IN_USE = 4,   /* uncommitted changes or a reader need it         */
    BRC_KEPT_LAST = 8,     /* a rule keeps it                                 */
    BRC_KEPT_DAILY = 16,
    BRC_KEPT_WEEKLY = 32,
    BRC_KEPT_MONTHLY = 64
};

/* Result of brc_du(): stored bytes, by what needs them. */
typedef struct brc_du_report {
    size_t size;
    uint64_t versions;     /* reachable from branches and tags                */
    uint64_t uncommitted;  /* needed only by uncommitted changes and pins */
    uint64_t log;          /* kept only by the window of the operation log, for undo */
    uint64_t garbage;      /* needed by nothing: brc_gc() removes it          */
    uint64_t stored;       /* the sum                                         */
    uint64_t outside;      /* of the sum: bytes that lie outside of the file  */
} brc_du_report;
#define BRC_DU_REPORT_INIT { sizeof(brc_du_report), 0, 0, 0, 0, 0, 0 }
typedef struct brc_du_item {
    const char *path;      /* the path of an array; NULL: the item is a commit */
    brc_oid id;            /* the id of a commit                              */
    uint64_t bytes;        /* bytes that the item holds                       */
    uint64_t alone;        /* bytes of these that no other item of the same kind holds, nor uncommitted
                            * changes: removing the item would free them */
} brc_du_item;

/* A place that is missing or cannot be read. */
typedef struct brc_place_fault {
    const char *place;   /* the place's name, or the name of the one object there; "": all of the backend */
    const char *why;     /* a sentence                                        */
    int code;            /* BRC_ENOTFOUND and the like                        */
    uint64_t objects, bytes; /* objects that lie there, and their stored bytes; with BRC_BACKENDS_QUICK maybe 0 */
} brc_place_fault;
/* An item of brc_backends(): a backend, and what of the repository lies there. */
typedef struct brc_backend_facts {
    const char *backend_json; /* name and configuration, as arrays have them  */
    uint64_t objects;    /* that lie there                                    */
    uint64_t bytes;      /* their stored bytes                                */
    uint64_t places;     /* packs, files or the like in which they lie; 0 where each has its own name, and in
                          * the repository's file                             */
    const brc_place_fault *faults; /* places that are missing or cannot be read */
    size_t nfaults;
} brc_backend_facts;
enum {
    BRC_BACKENDS_CHECK = 1, /* reads one object in each place                 */
    BRC_BACKENDS_QUICK = 2  /* counts nothing, and looks only whether the first BRC_BACKENDS_LOOKED_AT places
                             * exist                                          */
};
#define BRC_BACKENDS_LOOKED_AT 64

/* For brc_prove_backend(): a promise in a few words ("reads ranges"), whether it holds, and what was seen if it does
 * not. A result other than BRC_OK stops the call, which returns it. */
typedef int (*brc_promise_fn)(void *ctx, const char *promise, int holds, const char *seen, brc_error *err);

typedef struct brc_ref {
    const char *name;    /* "main", "v1.0"                                    */
    uint32_t flags;      /* BRC_REF_*                                         */
    brc_oid id;          /* the commit                                        */
    const char *message; /* the message of a tag, else ""                     */
} brc_ref;
enum {
    BRC_REF_TAG = 1,     /* a tag; without this flag, a branch                */
    BRC_REF_CURRENT = 2, /* HEAD names this branch                            */
    BRC_REF_UNBORN = 4   /* the branch has no commit yet: id is zero          */
};

typedef struct brc_commit {
    brc_oid id, root;
    const brc_oid *parents;
    size_t nparents;
    const char *author, *message;
    const char *meta_json; /* a JSON object, from brc_commit_opts.meta_json   */
    int64_t time_us;
    uint32_t flags;        /* BRC_PAST_*                                      */
    const char *path;      /* from brc_log() with a path: the node's path in this commit, or its last path
                            * before this commit removed it; else NULL */
} brc_commit;
enum { BRC_PAST_EXPIRED = 1 }; /* parents have expired: `parents` are the nearest kept ancestors */

typedef struct brc_commit_opts {
    size_t size;
    const char *message;   /* must not be blank; NULL: an amended commit keeps its message */
    const char *author;    /* NULL: "unknown"                                 */
    const char *meta_json; /* an object, or NULL                              */
    int64_t time_us;       /* 0: now                                          */
    uint32_t flags;        /* BRC_COMMIT_*                                    */
    uint32_t reserved;     /* 0                                               */
    brc_iter **conflicts;  /* receives a list of conflicts, or NULL if the commit does not fail because of
                            * any; NULL: none is made */
} brc_commit_opts;
#define BRC_COMMIT_OPTS_INIT { sizeof(brc_commit_opts), 0, 0, 0, 0, 0, 0, 0 }
enum {
    BRC_COMMIT_AMEND = 1,
    BRC_COMMIT_ALLOW_EMPTY = 2,
    BRC_COMMIT_NO_MERGE = 4, /* if the branch has moved, fail with BRC_ESTALE, also in a private session */
    BRC_COMMIT_DRY_RUN = 8 /* only list the conflicts, of which opts.conflicts has the list */
};

typedef struct brc_merge_opts {
    size_t size;
    const char *message;      /* NULL: a message that names the merged revision */
    const char *author;       /* NULL: "unknown"                              */
    int64_t time_us;          /* 0: now                                       */
    const char *const *paths; /* BRC_MERGE_OURS, _THEIRS count only at and under these paths */
    size_t npaths;            /* 0: they count everywhere                     */
    uint32_t flags;           /* BRC_MERGE_*                                  */
    uint32_t reserved;        /* 0                                            */
} brc_merge_opts;
#define BRC_MERGE_OPTS_INIT { sizeof(brc_merge_opts), 0, 0, 0, 0, 0, 0, 0 }
enum {
    BRC_MERGE_NO_FF = 1,   /* make a commit with two parents even where a fast-forward is possible */
    BRC_MERGE_DRY_RUN = 2, /* only report the result: nothing is changed           */
    BRC_MERGE_OURS = 4,    /* settle conflicts for the current branch         */
    BRC_MERGE_THEIRS = 8,  /* settle conflicts for the merged revision        */
    BRC_MERGE_KEEP = 16,   /* keep a merge with conflicts open: see brc_merge_state() */
    BRC_MERGE_CONCAT = 32  /* if both sides append to an array along one axis, keep ours, then theirs; a
                            * dry run stores this too and then drops it */
};

enum {
    BRC_MERGE_UP_TO_DATE = 1, /* the branch already has all of `rev`          */
    BRC_MERGE_FAST_FORWARD,   /* the branch now points to `rev`               */
    BRC_MERGE_MERGED,         /* a commit with two parents was made           */
    BRC_MERGE_CONFLICT        /* there are conflicts to decide                */
};
typedef struct brc_merge_result {
    size_t size;
    int result;         /* BRC_MERGE_UP_TO_DATE ...                           */
    uint32_t reserved;
    brc_oid commit;     /* the branch's commit after the merge; zero for a conflict and for a dry run */
    uint64_t conflicts; /* the number of open conflicts                       */
    int64_t draft;      /* the draft of the merge that stays open; 0: none    */
} brc_merge_result;
#define BRC_MERGE_RESULT_INIT { sizeof(brc_merge_result), 0, 0, { { 0 } }, 0, 0 }

/* An open merge, cherry-pick, revert or rebase: one with conflicts that is neither finished nor
 * dropped. */
typedef struct brc_open_state {
    size_t size;
    int64_t draft;      /* the number of its draft; 0: none is open           */
    int has_other;      /* 1 if it is a merge, which has `other`              */
    uint32_t reserved;
    brc_oid other;      /* the commit that is merged                          */
    uint64_t conflicts; /* the number of all conflicts                        */
    uint64_t open;      /* the number of conflicts that are not settled       */
    char op[16];        /* "merge", "cherry-pick", "revert" or "rebase"       */
    char rev[128];      /* the merged revision as the caller named it, cut at 127 bytes */
    brc_oid at;         /* the commit whose change is applied; zero for a merge */
    uint64_t made, skipped, left; /* of a rebase: commits already made, commits left out, commits still to
                                   * do after this one */
} brc_open_state;
#define BRC_OPEN_STATE_INIT { sizeof(brc_open_state), 0, 0, 0, { { 0 } }, 0, 0, { 0 }, { 0 }, { { 0 } }, 0, 0, 0 }

/* Options of brc_pick(), brc_rebase() and brc_continue(). */
typedef struct brc_pick_opts {
    size_t size;
    const char *message;      /* NULL: the commit's message; for a revert, a message that names the commit */
    const char *author;       /* NULL: the commit's author; for a revert, "unknown" */
    int64_t time_us;          /* 0: the commit's time; for a revert, now      */
    const char *const *paths; /* BRC_PICK_OURS, _THEIRS count only at and under these paths */
    size_t npaths;            /* 0: they count everywhere                     */
    uint32_t flags;           /* BRC_PICK_*                                   */
    uint32_t mainline;        /* if the commit is a merge: the parent (from 1) against which its change is
                               * taken; else 0 */
} brc_pick_opts;
#define BRC_PICK_OPTS_INIT { sizeof(brc_pick_opts), 0, 0, 0, 0, 0, 0, 0 }
enum {
    BRC_PICK_NO_COMMIT = 1, /* leave the branch where it is, with the change uncommitted on it */
    BRC_PICK_KEEP = 2,      /* keep it open if there are conflicts: see brc_merge_state(); not with
                             * BRC_PICK_NO_COMMIT */
    BRC_PICK_OURS = 4,      /* settle conflicts for the current branch        */
    BRC_PICK_THEIRS = 8,    /* settle conflicts for the applied change        */
    BRC_PICK_SKIP = 16,     /* of brc_continue(): leave out the commit in conflict of a rebase */
    BRC_PICK_REVERT = 32    /* of brc_pick(): take back what the commit changed */
};

enum {
    BRC_PICK_NOTHING = 1,  /* the branch already has the change               */
    BRC_PICK_FAST_FORWARD, /* of a rebase: the branch had no commits of its own */
    BRC_PICK_COMMITTED,    /* the branch has moved                            */
    BRC_PICK_UNCOMMITTED,  /* BRC_PICK_NO_COMMIT: the change is uncommitted on the branch */
    BRC_PICK_CONFLICT      /* there are conflicts to decide                   */
};
typedef struct brc_pick_result {
    size_t size;
    int result;           /* BRC_PICK_NOTHING ...                             */
    uint32_t reserved;
    brc_oid commit;       /* the branch's commit after the call; zero for a conflict */
    brc_oid at;           /* of a conflict: the commit whose change is applied; else zero */
    uint64_t made;        /* the number of commits made                       */
    uint64_t skipped;     /* of a rebase: the number of commits left out, or whose change was already there */
    uint64_t conflicts;   /* the number of open conflicts                     */
    int64_t draft;        /* the draft that stays open; 0: none               */
    uint64_t left;        /* of a rebase that stays open: the number of commits after `at` */
} brc_pick_result;
#define BRC_PICK_RESULT_INIT { sizeof(brc_pick_result), 0, 0, { { 0 } }, { { 0 } }, 0, 0, 0, 0, 0 }

/* Actions of brc_bisect(), and the states that it returns. */
enum {
    BRC_BISECT_LOOK = 0, /* only reads the state                              */
    BRC_BISECT_START,    /* starts again from nothing                         */
    BRC_BISECT_GOOD,     /* this version does not have the change             */
    BRC_BISECT_BAD,      /* this version has the change                       */
    BRC_BISECT_SKIP,     /* this version cannot be tested                     */
    BRC_BISECT_RESET     /* ends the bisection                                */
};
enum {
    BRC_BISECT_NONE = 0, /* there is no bisection                             */
    BRC_BISECT_WAITING,  /* a bad or a good version is still missing          */
    BRC_BISECT_NEXT,     /* test `at` next                                    */
    BRC_BISECT_FOUND,    /* `at` introduced the change                        */
    BRC_BISECT_OPEN      /* only skipped versions are left                    */
};
typedef struct brc_bisect_result {
    size_t size;
    int state;       /* BRC_BISECT_NONE ...                                   */
    uint32_t flags;  /* BRC_BISECT_HAS_BAD                                    */
    brc_oid at;
    uint64_t left;   /* versions that could have introduced the change        */
    uint64_t good;   /* versions that are known to be good                    */
    uint64_t skipped;
} brc_bisect_result;
#define BRC_BISECT_RESULT_INIT { sizeof(brc_bisect_result), 0, 0, { { 0 } }, 0, 0, 0 }
enum { BRC_BISECT_HAS_BAD = 1 }; /* a bad version is known                    */

/* An element of an array in two or three versions, each as brc_read() gives it. */
typedef struct brc_differing {
    const uint64_t *index; /* its place                                       */
    const void *before;    /* in the old version, or in the base of a merge; NULL here and below: that version
                            * does not have the element                       */
    const void *now;       /* in the new version, or in ours                  */
    const void *theirs;    /* of a conflict; else NULL                        */
} brc_differing;

/* A conflict that a merge cannot decide. */
typedef struct brc_conflict {
    const char *path;  /* the node                                            */
    const char *kind;  /* "deleted", "added", "replaced", "moved", "metadata", "storage", "chunk" */
    const char *key;   /* a JSON pointer into zarr.json, or a chunk such as "c/0/1"; NULL: none */
    int settled;       /* 0: open; BRC_MERGE_OURS, _THEIRS; 1: settled by hand */
    int64_t draft;     /* of brc_session_join(): the child's draft; else 0    */
    uint64_t elements; /* of kind "chunk": how many elements are in conflict; 0: not known */
    const brc_differing *values; /* the first of them                         */
    size_t nvalues;
    const brc_array *array; /* for brc_element_format() and brc_array_describe() of the values; NULL: none */
} brc_conflict;

typedef struct brc_node {
    const char *path; /* "/", "/a/b"                                          */
    int kind;         /* BRC_GROUP or BRC_ARRAY                               */
} brc_node;
enum { BRC_OWNER_UNKNOWN = 0, BRC_OWNER_ALIVE = 1, BRC_OWNER_DEAD = 2 };
/* A draft: uncommitted changes. */
typedef struct brc_draft {
    int64_t id;          /* the draft's number; that of a private draft is never used again */
    const char *branch;
    uint32_t flags;      /* BRC_DRAFT_*                                       */
    int owner;           /* of a private draft: BRC_OWNER_*, as far as this process can tell */
    int64_t owner_pid;   /* the process of the owner; 0: not known            */
    int64_t time_us;     /* when the draft began                              */
    uint64_t nodes;      /* nodes that it changes, except those folded by a fork or a join */
    const char *op;      /* of BRC_DRAFT_MERGING: as in brc_open_state; else NULL */
    const char *array;   /* of BRC_DRAFT_REWRITING: the array's path; else NULL */
    int64_t parent;      /* of BRC_DRAFT_CHILD: the parent's draft, which may no longer exist; else 0 */
} brc_draft;
enum {
    BRC_DRAFT_OWNED = 1, /* private to one session; without this flag, shared by the branch's sessions */
    BRC_DRAFT_STALE = 2, /* the branch has moved since: committing the draft merges it */
    BRC_DRAFT_MERGING = 4, /* an open merge, cherry-pick, revert or rebase: see brc_merge_state() */
    BRC_DRAFT_REWRITING = 8, /* an unfinished rewrite of an array: it can only be dropped */
    BRC_DRAFT_CHILD = 16, /* a child of a session: see brc_session_fork()     */
    BRC_DRAFT_ORPHAN = 32 /* a child whose parent is gone: it can be adopted, but not joined */
};

/* A node that differs between two versions. BRC_CHANGE_STORAGE means that only storage differs
 * (codecs, backend, or the padding of chunks beyond the array's end, which is never compared) and
 * no value does. */
typedef struct brc_change {
    const char *path;
    const char *from;            /* of BRC_MOVED: the old path; else NULL     */
    int what;                    /* BRC_ADDED, BRC_REMOVED, BRC_MOVED or BRC_CHANGED */
    int kind;
    uint32_t flags;              /* BRC_CHANGE_*                              */
    int ndim;                    /* dimensions of `first` and `last`          */
    const char *const *metadata; /* JSON pointers into zarr.json, of the members that differ */
    size_t nmetadata;
    uint64_t chunks_added, chunks_removed, chunks_changed;
    /* The fields up to the end are set with BRC_CHANGE_ELEMENTS. */
    uint64_t elements_changed;   /* elements within both shapes that differ in any bit */
    double max_abs;              /* their largest absolute difference, without pairs that have a NaN; NaN:
                                  * elements are not numbers */
    uint64_t first[BRC_MAX_NDIM], last[BRC_MAX_NDIM]; /* corners of the box around the changed elements */
    uint64_t elements_added, elements_removed; /* elements only in the new shape, and only in the old one;
                                                * here and in elements_changed, 2^64-1 means that number or
                                                * more */
    const char *elements_why;    /* a clause that says why the elements of an array on both sides cannot be
                                  * compared; else NULL */
    double mean_abs, rms;        /* the mean of these differences, and the root of the mean of their squares; NaN:
                                  * there are none */
    const uint64_t *boxes;       /* boxes that together hold all changed elements: of each the first corner, then
                                  * the last; one box unless that would be mostly empty */
    size_t nboxes;
    const uint64_t *chunks;      /* BRC_DIFF_CHUNKS: of each chunk with changed elements its index, then their
                                  * number. Chunks that neither version stores, or that are cut differently, are
                                  * left out */
    size_t nchunks;
    const brc_differing *values; /* the first changed elements in C order: brc_diff_opts.values */
    size_t nvalues;
    const brc_array *array;      /* for brc_element_format() and brc_array_describe() of the values; NULL: none */
} brc_change;
enum {
    BRC_CHANGE_STORAGE = 1,  /* only storage differs                          */
    BRC_CHANGE_ELEMENTS = 2, /* the fields about elements are set             */
    BRC_CHANGE_MORE = 4      /* more elements differ than `values` has        */
};

/* One change of a ref. All changes of one call, or of the calls between brc_begin() and brc_end(),
 * are one operation. */
typedef struct brc_op {
    int64_t id;          /* grows with time                                   */
    int64_t operation;   /* the id of the operation's first change, which may be this one */
    int64_t time_us;
    const char *what;    /* "commit", "reset", "delete", "undo" ...           */
    const char *name;    /* the branch or tag                                 */
    uint32_t flags;      /* BRC_OP_*                                          */
    brc_oid from, to;    /* the ref's commit before and after; zero: none     */
    int64_t undoes;      /* the operation that this one takes back; 0: none   */
    int64_t restores;    /* the undo that this operation takes back; 0: none  */
    int64_t draft;       /* of a deleted branch: the draft of its uncommitted changes (brc_draft.id); 0:
                          * none */
} brc_op;
enum {
    BRC_OP_TAG = 1,    /* the ref is a tag; without this flag, a branch       */
    BRC_OP_SWITCH = 2  /* no ref moved: one of two changes, of the current branch before and after */
};

/* One operation on the uncommitted changes that the users of a branch share. */
typedef struct brc_draft_op {
    int64_t id;          /* grows with time                                   */
    const char *branch;
    const char *text;    /* what it did: "rm /a"                              */
    int64_t time_us;
    int64_t after;       /* the id of the last brc_op before it; 0: none      */
    uint32_t flags;      /* BRC_DRAFT_OP_*                                    */
} brc_draft_op;
enum { BRC_DRAFT_OP_UNDONE = 1 }; /* it was taken back                */

typedef struct brc_log_opts {
    size_t size;
    const char *path; /* list commits that changed this node or something under it; NULL: all commits */
    uint32_t flags;   /* BRC_LOG_*                                            */
    uint32_t reserved; /* 0                                                   */
    int64_t since_us, until_us; /* list commits of these times alone, bounds included; used with the flags */
    const char *author;  /* list commits whose author matches this POSIX extended regular expression; NULL: all */
    const char *message; /* the same for the message                         */
    const struct brc_sel *sel; /* with `path`: list commits in which these elements of that array differ from each
                          * parent, or cannot be compared; NULL: all that changed the node */
} brc_log_opts;
#define BRC_LOG_OPTS_INIT { sizeof(brc_log_opts), 0, 0, 0, 0, 0, 0, 0, 0 }
enum {
    BRC_LOG_FULL = 1,  /* with a path: also follow parents whose version of the node a merge gave up */
    BRC_LOG_SINCE = 2, /* use since_us                                        */
    BRC_LOG_UNTIL = 4  /* use until_us                                        */
};

typedef struct brc_diff_opts {
    size_t size;
    const char *path; /* compare only this node and everything under it; NULL: everything */
    uint32_t flags;   /* BRC_DIFF_*                                           */
    uint32_t reserved; /* 0                                                   */
    brc_session *session; /* compare with what this session shows, instead of `b`; NULL: none */
    uint64_t values;  /* list at most so many changed elements of each array, the first ones. No more is read
                       * than leads to them, and without BRC_DIFF_ELEMENTS none is listed of arrays whose chunks
                       * are cut differently */
    double atol, rtol; /* unless both are 0: numbers count as equal if |a - b| <= atol + rtol * |b|, and so do
                        * two NaNs; infinities only if they are equal; structures if all their fields are */
    const struct brc_sel *sel; /* compare only these elements of each array; NULL: all */
} brc_diff_opts;
#define BRC_DIFF_OPTS_INIT { sizeof(brc_diff_opts), 0, 0, 0, 0, 0, 0, 0, 0 }
enum {
    BRC_DIFF_ELEMENTS = 1, /* compare elements                                */
    BRC_DIFF_CHUNKS = 2,   /* with BRC_DIFF_ELEMENTS: list the chunks that hold changed elements */
    BRC_DIFF_CLOSE = 4,    /* use atol and rtol even if both are 0            */
    BRC_DIFF_MOVED = 8,    /* with `path`: compare that node with where it was, also elsewhere; without this
                            * flag a node that came from outside of `path` is new */
    BRC_DIFF_ADDED = 16    /* `values` also lists elements that only one version has */
};

typedef struct brc_array_spec {
    size_t size;
    int ndim;
    const uint64_t *shape;
    const uint64_t *chunk;  /* NULL: chosen by the library, about 1 MiB       */
    const char *dtype;      /* "float32", or a JSON object                    */
    const char *fill;       /* JSON, or a bare word such as NaN; NULL: 0, and NaT for dates and times */
    const char *codecs_json; /* a Zarr v3 list; NULL: chosen by the library   */
    const char *attrs_json;
    const char *const *dimension_names; /* `ndim` names, each of which may be NULL */
    const char *chunk_key_encoding;     /* "default" or "v2"; NULL: "default" */
    const char *metadata_json;          /* a complete zarr.json, which replaces the other fields */
    const uint64_t *shard;  /* the shape of the shards that other tools see, a multiple of the chunk shape;
                             * NULL: no shards */
    const char *backend_json; /* as brc_array_set_backend() takes it; NULL: the file */
    const void *fill_element; /* used instead of `fill`: the exact bytes of one element, as
                               * brc_array_fill() takes them; NULL: `fill` */
    const char *compressors_json; /* used instead of `codecs_json`: only the codecs after the one that
                                   * makes bytes of elements, "[]" for none; NULL: `codecs_json` */
} brc_array_spec;
#define BRC_ARRAY_SPEC_INIT { sizeof(brc_array_spec), 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0 }

typedef struct brc_array_info {
    const char *path;
    int ndim;
    const uint64_t *shape;
    const uint64_t *chunk;   /* of a sharded array: the shape of the inner chunks */
    const uint64_t *grid;    /* number of chunks along each axis               */
    const char *dtype;       /* "float32", or a JSON object                    */
    size_t item_size;        /* bytes per element; 0: variable length         */
    const char *codecs_json; /* as in zarr.json                               */
    const void *fill;        /* one element; NULL: the data type is not known here */
    uint32_t flags;          /* BRC_ARRAY_*                                   */
    const uint64_t *shard;   /* the shape of the shards; NULL: no shards      */
    const char *why;         /* why the array is not readable or not writable; NULL: it is both */
    const char *backend_json; /* where new chunks go: {"name":...,"configuration":{...}} */
} brc_array_info;
enum {
    BRC_ARRAY_READABLE = 1, /* the data type is known here, and so are the codecs that reading needs */
    BRC_ARRAY_WRITABLE = 2, /* this build can encode chunks                   */
    BRC_ARRAY_REGULAR = 4   /* all chunks along an axis have the same length  */
};

/* The origin of a chunk, or of consecutive elements along the last axis. */
typedef struct brc_blamed {
    int ndim;
    uint32_t flags;      /* BRC_BLAME_*                                       */
    uint64_t first[BRC_MAX_NDIM]; /* the chunk's index in the grid, or the first element */
    uint64_t count;      /* number of selected elements; 1 for a chunk        */
    brc_oid commit;      /* the commit that changed it last                   */
    int64_t time_us;
    const char *author;
} brc_blamed;
enum { BRC_BLAME_BEFORE = 1 << 1 }; /* the change came with `commit` or with an expired commit before it:
                                     * `author` is "" */

/* A part of a key's value. */
typedef struct brc_key_range {
    size_t size;
    int kind;            /* BRC_RANGE_*                                       */
    uint64_t start, end; /* BETWEEN: the first byte, and the byte after the last; FROM: the first byte
                          * (start); LAST: the number of bytes at the end (start) */
} brc_key_range;
#define BRC_KEY_RANGE_INIT { sizeof(brc_key_range), 0, 0, 0 }
enum { BRC_RANGE_ALL = 0, BRC_RANGE_BETWEEN = 1, BRC_RANGE_FROM = 2, BRC_RANGE_LAST = 3 };

typedef struct brc_key_info {
    size_t size;
    uint64_t length; /* bytes                                                 */
    char etag[40];   /* differs if the bytes differ; of a chunk or shard, made from the ids of its chunks
                      * and their layout */
} brc_key_info;
#define BRC_KEY_INFO_INIT { sizeof(brc_key_info), 0, "" }

/* Limits of brc_key_limit(). */
typedef struct brc_key_limits {
    size_t size;
    uint64_t decoded;    /* the most bytes of elements that are decoded for one value or its description; 0: any number */
    uint64_t bytes;      /* the most bytes of a value, or the part of it that is asked for; 0: any number */
    uint32_t flags;      /* BRC_KEYS_STORED                                   */
    uint32_t reserved;   /* 0                                                 */
} brc_key_limits;
#define BRC_KEY_LIMITS_INIT { sizeof(brc_key_limits), 0, 0, 0, 0 }
enum { BRC_KEYS_STORED = 1 }; /* nothing is decoded, and nothing is read from outside of the file */

typedef struct brc_rename {
    const char *from; /* the path of a node below the imported one: "/a/b"    */
    const char *to;   /* its new name in the same group: "c"                  */
} brc_rename;

typedef struct brc_xfer_opts {
    size_t size;
    const uint64_t *chunk; /* import: the new chunk shape; NULL: as in the source */
    int nchunk;
    uint32_t flags;          /* BRC_XFER_*                                    */
    const char *codecs_json; /* import: the new codecs; NULL: as in the source */
    const char *format;      /* "zarr3", "npy" ...; NULL: by the ending of the name */
    brc_buf *placed; /* import: receives the path of the imported node, even after a failure if the path is
                      * known */
    const char *const *exclude; /* import: nodes to leave out with everything under them, by their paths in
                                 * the source ("/a/b"), and attributes ("/a/b@units"). Patterns: '*' and
                                 * '?' match characters of a name, [a-z] and [!a-z] one of them, '**' any
                                 * number of names */
    size_t nexclude;
    uint8_t *excluded; /* import: nexclude bytes, or NULL; 1 for each item of `exclude` that the source
                        * has, else 0 */
    const char *with;  /* import: a command that sh runs with the source as "$1", and whose output is
                        * imported as a stream (BRC_XFER_STREAM). The command has all the rights of this
                        * process */
    brc_buf *left_out; /* import: receives a JSON array of the parts of the source that cannot be kept,
                        * also if the import fails because of them: {"path", "kind", "message", "remedy"},
                        * with "@NAME" after the path for an attribute. After 1,000 items a last one of the
                        * kind "more" counts the rest */
    const char *hdf5_plugins; /* import: folders of HDF5 filters, "A:B"; NULL: those in HDF5_PLUGIN_PATH */
    brc_buf *warnings; /* receives one line, ended by '\n', for each thing that the user should know about
                        * the result */
    const brc_rename *rename; /* import: nodes to rename; the nodes under them move along */
    size_t nrename;
    uint8_t *renamed; /* import: nrename bytes; 1 for each item of `rename` that the source has, else 0.
                       * NULL: the source must have all of them, else BRC_ENOTFOUND */
    int fd;            /* the descriptor of BRC_XFER_STREAM                   */
    uint32_t reserved; /* 0                                                   */
} brc_xfer_opts;
#define BRC_XFER_OPTS_INIT { sizeof(brc_xfer_opts), 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0 }
enum {
    BRC_XFER_CONSOLIDATED = 1, /* export: copy all metadata into the top document */
    BRC_XFER_INTO = 2, /* import: `path` is a group, and the source becomes a node in it, named after the
                        * source */
    BRC_XFER_SKIP_UNSUPPORTED = 4, /* import: leave out what cannot be kept; without this flag such an
                                    * import fails */
    BRC_XFER_REPLACE = 64, /* import: the source takes the place of a node that may be there, with all under
                            * it. Chunks that both have are stored once. Fails with BRC_ECONFLICT if others
                            * have uncommitted changes of that node, and in a transaction or bulk write */
    BRC_XFER_STREAM = 32, /* reads or writes a tar stream on a descriptor (`fd`) */
    BRC_XFER_UNEQUAL_DIMENSIONS = 16, /* export of Zarr, NetCDF: allow one dimension name for two lengths;
                                       * without this flag that is BRC_EINVAL (docs/CLI.md) */
    BRC_XFER_EXTERNAL = 128, /* import: chunks stay in the files of the source wherever they are whole ranges of
                              * bytes there, and no payload is stored (docs/FORMAT.md, backend "external"). The
                              * files must stay as they are. Not with `chunk`, `codecs_json`, `with` and a stream */
    BRC_XFER_NAN_TOKENS = 8 /* export of Zarr: write NaN and infinities in attributes as the words that
                             * zarr-python reads and strict JSON readers do not; without this flag they are
                             * marked texts (docs/CLI.md, "export") */
};

/* A fault that brc_fsck() found. */
typedef struct brc_damage {
    brc_oid id;
    const char *kind;            /* "chunk", "document", "node", "commit", "ref", "index" */
    uint32_t flags;              /* BRC_DAMAGE_*                              */
    const char *const *used_by;  /* "main~2 (1a2b3c4d): /a/b c/0/1"           */
    size_t nused_by;
    const char *message;
} brc_damage;
enum {
    BRC_DAMAGE_MISSING = 1, /* the object is named somewhere but is not in the file */
    BRC_DAMAGE_PLACE = 2    /* its backend cannot read it: `message` is the same for all objects in a place
                             * that is missing or has changed */
};

enum { BRC_FSCK_NO_DECODE = 1 };

/* The intact part of a branch or tag in a damaged file. */
typedef struct brc_standing {
    const char *name;
    uint32_t flags;              /* BRC_STANDS_*                              */
    uint64_t commits, whole;     /* commits that it reaches, and how many of them have lost nothing */
    brc_oid newest;              /* the newest commit that has lost nothing; zero: none */
    const char *const *lost;     /* paths that have lost something in its newest version */
    size_t nlost;
} brc_standing;
enum { BRC_STANDS_TAG = 1, BRC_STANDS_TIP = 2 }; /* its newest version has lost nothing */

enum { BRC_REPAIR_DROP = 1 }; /* remove what cannot be read; it is missing then, and can be stored again */
typedef struct brc_repair_report {
    size_t size;
    uint64_t replaced;     /* objects that were replaced by a good copy       */
    uint64_t dropped;      /* damaged objects that were removed               */
    uint64_t damaged;      /* damaged objects that are still there            */
    uint64_t missing;
} brc_repair_report;
#define BRC_REPAIR_REPORT_INIT { sizeof(brc_repair_report), 0, 0, 0, 0 }

/* The lists of brc_registry_list(). */
enum {
    BRC_LIST_CODECS = 1, /* brc_codec_info: codecs and their implementations, by name */
    BRC_LIST_DTYPES,     /* brc_dtype_info: data types, in the order in which they were added */
    BRC_LIST_BACKENDS,   /* brc_backend_info: backends; the file itself comes first */
    BRC_LIST_PIPELINES,  /* brc_pipeline_info: pipelines; the default comes first */
    BRC_LIST_PROTOTYPES  /* brc_prototype_info: buffer prototypes, in the order in which they were added */
};
typedef struct brc_codec_info {
    const char *name;
    const char *kind;           /* "array->array", "array->bytes", "bytes->bytes" */
    const char *implementation; /* each implementation is an item             */
    int rank;
    uint32_t flags;             /* BRC_IMPL_*                                 */
    const char *owner;          /* who added it: "breccia", or a plug-in's path */
    uint32_t device;            /* whose memory it works in: BRC_MEMORY_*, or another number of DLPack */
    const char *why;            /* why it is chosen among those for this memory, or is not: "the highest rank" */
    uint32_t cost, call_cost;   /* brc_codec_impl's                           */
} brc_codec_info;
enum {
    BRC_IMPL_USABLE = 1, /* its probe says that it can run here               */
    BRC_IMPL_CHOSEN = 2, /* this registry would run it for its memory         */
    BRC_IMPL_PINNED = 4  /* brc_registry_pin() named it                       */
};

typedef struct brc_backend_info {
    const char *name;
    uint32_t flags;    /* BRC_BACKEND_INFO_*                                  */
    const char *owner; /* as in brc_codec_info                                */
} brc_backend_info;
enum { BRC_BACKEND_INFO_READ_ONLY = 1 }; /* the backend cannot store chunks   */

typedef struct brc_pipeline_info {
    const char *name;
    const char *owner; /* as in brc_codec_info                                */
} brc_pipeline_info;

/* A buffer prototype. A list says what is registered: whether the machine has such memory, only its use tells. */
typedef struct brc_prototype_info {
    const char *name;
    uint32_t device;   /* BRC_MEMORY_*, or another number of DLPack           */
    const char *owner; /* as in brc_codec_info                                */
} brc_prototype_info;

typedef struct brc_dtype_info {
    const char *name;  /* as in zarr.json; of a family, a pattern of its names */
    const char *kind;  /* "bool", "int", "uint", "float", "complex", "raw", "string", "bytes", "time" or
                        * "struct"; "": see BRC_DTYPE_CONFIGURED */
    uint64_t item_size; /* bytes per element; 0: variable, or see BRC_DTYPE_CONFIGURED */
    const char *npy;   /* NumPy's name, "<f4"; NULL: none                     */
    uint32_t flags;    /* BRC_DTYPE_*                                         */
    const char *owner; /* as in brc_codec_info                                */
} brc_dtype_info;
enum {
    BRC_DTYPE_FAMILY = 1,    /* the item stands for many names                */
    BRC_DTYPE_CONFIGURED = 2 /* kind and size depend on the name or the configuration */
};

#ifdef __cplusplus
}
#endif

#include "breccia_sel.h"

#endif
