/* Internals of the store: the connection, its statements and its errors. */
#ifndef BRC_STORE_DB_H
#define BRC_STORE_DB_H

#include <sqlite3.h>
#include <stdatomic.h>
#include <sys/types.h>

#include "../base/alloc.h"
#include "../base/buf.h"
#include "cache.h"
#include "encoding.h"
#include "file_lock.h"
#include "store.h"
#include "vfs.h"

/* ---- row sum -------------------------------- */

/* Checksums of rows that no hash covers (docs/FORMAT.md, "Row checksums"). */

/* Gives a connection the function row_sum(TABLE, COLUMN...): the checksum of a row with these
 * columns. The result is SQLite's. */
int brc_row_sum_register(sqlite3 *db);

/* ---- db -------------------------------- */

#define BRC_APPLICATION_ID 0x62726331 /* "brc1" */
#define BRC_FORMAT 2
#define BRC_LAST_OF_FORMAT_1 "b088c62" /* the last commit that reads and writes format 1 */
#define BRC_PAGE_SIZE 16384
#define BRC_OBJECT_MAX ((uint64_t)64 << 20) /* the largest document, node or commit */
#define BRC_META_JOURNAL "journal"
/* The word in meta 'must-understand' of a backup whose first run has not ended. */
#define BRC_FEATURE_UNFINISHED "unfinished-backup"

#define BRC_NOT_A_REPOSITORY "%s is not a breccia repository: name one, or make one beside it with 'breccia init'"

/* The size of SQLite's page cache; BRC_PAGE_CACHE_MANY is the size while many small objects are added. */
#define BRC_PAGE_CACHE "PRAGMA cache_size=-4096"
/* The number of changed pages above which SQLite writes them into the file before the transaction's
 * end, which locks readers out until then: 256 MiB, so no batch reaches it. One page more, because
 * SQLite takes a multiple of 256 for "never". */
#define BRC_SPILL "PRAGMA cache_spill=16385"
#define BRC_SPILL_EARLY "PRAGMA cache_spill=1" /* as soon as the page cache is full */
#define BRC_PAGE_CACHE_MANY "PRAGMA cache_size=-65536"

typedef struct brc_stmt_slot {
    const char *sql; /* compared by address: every statement is one literal */
    sqlite3_stmt *stmt;
} brc_stmt_slot;

#define BRC_PLACES_HELD 64
#define BRC_REPOSITORY_ID_LEN 32
struct brc_store_backend {
    int64_t id; /* its number in the file; -1: not read in this transaction */
    char *spec;
    const brc_backend *impl; /* NULL: not opened yet */
    void *state;
    brc_store *store;
    brc_backend_host host;
    char repository[BRC_REPOSITORY_ID_LEN + 1]; /* the repository's id, for the host           */
    _Atomic uint64_t puts; /* calls of put() that have returned, on any thread            */
    uint64_t flushed;      /* how many of these calls are durable                         */
    int is_dirty; /* rows of this transaction name bytes that are not durable: see backend.c */
    struct { /* the places that were used last, by number: see backend.c */
        int64_t seq; /* 0: none */
        char *name;
    } places[BRC_PLACES_HELD];
    size_t last_place; /* index of the place of the last put */
};
/* The cache of chunks on servers (chunk_cache.h), whose functions brc_store_use_cache() sets, so that other files do not
 * depend on chunk_cache.c, which opens a store of its own. */
typedef struct brc_chunk_cache_ops {
    void *cache; /* NULL: there is none */
    int (*find)(void *cache, const char *spec, const brc_object *object, uint8_t *into);
    void (*keep)(void *cache, const char *spec, const brc_object *object, const uint8_t *stored);
    void (*settle)(void *cache);
    void (*free)(void *cache);
} brc_chunk_cache_ops;
/* A change in many transactions: see bulk.c. */
typedef struct brc_bulk {
    int on;
    /* Replace begin and end of a change within the bulk write; open() begins a transaction again before
     * a statement that writes. brc_store_bulk_begin() sets these, so that other files do not depend on bulk.c. */
    int (*enter)(struct brc_store *store, brc_error *err);
    int (*leave)(struct brc_store *store, int keep, brc_error *err);
    int (*open)(struct brc_store *store, brc_error *err);
    int admits;       /* changes that begin now are a part of the bulk write           */
    int is_open;      /* a transaction of the bulk write is open                       */
    int failed;       /* the bulk write's changes will not be kept                     */
    int64_t draft;    /* the draft that is written to; 0: none yet                     */
    uint64_t batches; /* transactions that were committed                              */
    int spills;       /* changed pages go into the file before the commit              */
    int was_awaited;  /* somebody waited for the last transaction                      */
    int64_t opened_at, looked_at; /* on the monotonic clock, in ns                     */
    uint64_t journalled; /* brc_vfs_journalled() when the batch was begun              */
    uint64_t inserted;   /* objects that earlier batches have added                    */
} brc_bulk;

/* A row of stored bytes, and how many of its bytes do not belong to an object any more. */
typedef struct brc_left_row {
    int64_t seq;
    uint64_t bytes;
    int64_t ahead; /* bytes that have no object yet; below 0: bytes that now have one */
} brc_left_row;

/* A version that readers have open: see collect.c. */
typedef struct brc_pin {
    int64_t at; /* the locked byte        */
    unsigned n; /* the number of readers  */
} brc_pin;

typedef struct brc_late_draft {
    int64_t id;
    int which; /* BRC_DROP_* */
} brc_late_draft;

struct brc_store {
    sqlite3 *db;
    brc_vfs *vfs; /* the VFS of this connection */
    char *path;   /* as the caller gave it */
    const brc_registry *registry;
    brc_credentials_fn credentials; /* NULL: no server may be connected to */
    void *credentials_ctx;
    pid_t process; /* the process that opened the store */
    int readonly;
    int hash;
    size_t id_len;
    uint8_t secret[BRC_SECRET_LEN];
    char *head;

    brc_stmt_slot *statements; /* all that were used so far */
    size_t nstatements, statements_cap;
    sqlite3_blob *reader; /* kept open from one fetch to the next */

    brc_store_backend inline_backend;
    struct { /* other backends that were used: see backend.c */
        brc_store_backend **slots;
        size_t n, cap;
    } backends;
    struct { /* the row that collects the small objects of a transaction: see backend.c */
        int64_t seq; /* its number; 0: not begun */
        brc_buf bytes;
    } row;
    struct { /* the running garbage collection: see collect.c */
        int is_read; /* `run` was read in this transaction */
        int64_t run;
    } gc;
    struct { /* a description of its own, for locks that SQLite does not know: brc_beside_lock() */
        brc_file_lock lock;
        int is_open; /* opening was tried, whether or not it succeeded */
    } beside;
    struct { /* versions that are open: see collect.c */
        brc_pin *items;
        size_t n, cap;
    } pins;
    struct { /* tables that the file may lack: see schema.c */
        int64_t version; /* the schema's version when the tables were looked for; -1: never yet */
        uint32_t there;
    } reserved;
    struct { /* rows of stored bytes that objects of this transaction have left: see removed.c */
        brc_left_row *rows;
        size_t n, cap;
    } left;
    int totals_dropped; /* totals were dropped in this transaction, and none was put since */
    int64_t last_seq; /* the largest number in table blob; 0: not read in this transaction */

    int write_depth, read_depth;
    int is_reading;      /* an SQLite transaction is open for read_depth    */
    int changes_before;  /* sqlite3_total_changes() when the transaction was begun */
    int is_writing;      /* after BEGIN IMMEDIATE, until it is committed or undone on purpose */
    int64_t reading_since; /* on the monotonic clock, in ns                  */
    int read_held;       /* reads are not paused: depth of the pairs         */
    brc_bulk bulk;
    int undo;            /* an inner transaction asked to undo the whole */
    uint64_t begun;      /* write transactions that SQLite has begun  */
    uint64_t writes;     /* outermost transactions of this connection */
    uint64_t undone;     /* transactions that were rolled back        */
    struct { /* rows of the operation log that are written now: see ref.c */
        uint64_t transaction; /* the transaction that wrote `first`; 0: none     */
        int64_t first;
        int64_t undoes, restores; /* 0: the rows take nothing back               */
    } operation;
    struct { /* drafts that the next transaction drops */
        brc_late_draft *items;
        size_t n, cap;
    } late_drafts;
    uint64_t inserted, inserted_bytes; /* objects that the transaction has added */
    int large_page_cache;
    struct brc_direct_tree *tree; /* of direct reads; NULL: not needed yet                      */
    struct { uint64_t good, bad; } direct; /* direct reads that gave the object, or did not     */
    unsigned walks; /* walks of history in progress: see brc_store_walk_begin() */
    int is_open, is_checked; /* both decide which remedy an error about damage names */
    int opens_unfinished; /* see file_copy.h */
    int opens_cache;      /* see chunk_cache.h */
    int asks_wal;  /* the file's setting, when it was last read */
    int verifies_all; /* a setting too: readers compare decoded bytes with the id */
    int readback;     /* a setting too: BRC_READBACK_...                          */
    uint64_t gap, range; /* of brc_backend_host                                   */
    int log_pages; /* pages in the log after the last commit */
    int folds_early; /* each commit goes into the file at once: brc_log_fold_early() */
    int wait_ms;
    uint64_t max_nodes;
    int64_t wait_since, crowded_at, committed_at; /* on the monotonic clock, in ns */
    uint64_t jitter;
    int64_t stuck_turn; /* the byte of a waiter that made no progress, and how often it was waited for: change.c */
    int stuck_times;
    atomic_int interrupted;

    brc_cache cache;
    brc_chunk_cache_ops chunks;
    brc_shared *shared; /* objects that other handles have read; NULL: there are no other handles */
    int scratch;
    brc_encoding_cache encodings;
    brc_scratch *document_scratch; /* see encoding.c; NULL: not used yet */
};

/* Turns SQLite's result into a code and a message: "<what> in <path>: ...". */
int brc_fail_db(brc_store *store, int sqlite_rc, const char *what, brc_error *err);
/* Returns the prepared statement of a literal, reset and without bindings. */
BRC_MUST_USE int brc_stmt(brc_store *store, const char *sql, sqlite3_stmt **out, brc_error *err);
/* Returns 1 with a row, 0 at the end; resets the statement unless it gave a row. */
BRC_MUST_USE int brc_step(brc_store *store, sqlite3_stmt *stmt, brc_error *err);
/* Steps and resets a statement that gives no rows. */
BRC_MUST_USE int brc_run(brc_store *store, sqlite3_stmt *stmt, brc_error *err);
/* Read only the first row of a statement and reset it: brc_ask_any() stores whether there is a row,
 * brc_ask_number() the number in its first column, 0 if there is no row. */
BRC_MUST_USE int brc_ask_any(brc_store *store, sqlite3_stmt *stmt, int *any, brc_error *err);
BRC_MUST_USE int brc_ask_number(brc_store *store, sqlite3_stmt *stmt, int64_t *out, brc_error *err);
/* Returns the number of rows that the write transaction has inserted, changed and deleted so far. */
int64_t brc_store_changes(const brc_store *store);
/* Runs SQL text, which must not contain data. */
BRC_MUST_USE int brc_exec(brc_store *store, const char *sql, brc_error *err);
/* Closes the open blob, which would hold a lock. */
void brc_reader_close(brc_store *store);

/* Fails with BRC_ECORRUPT if the column says that the row's checksum is wrong; `what` names the row. */
BRC_MUST_USE int brc_row_check(brc_store *store, sqlite3_stmt *stmt, int column, const char *what, brc_error *err);

/* Appends the text of a numbered row, with a NUL behind it. The statement takes the number and gives the text
 * and, as an optional second column, the check for brc_row_check(). `what` names such rows: "backend". */
BRC_MUST_USE int brc_row_text(brc_store *store, const char *sql, int64_t number, const char *what, brc_buf *out, brc_error *err);

void brc_bind_id(brc_store *store, sqlite3_stmt *stmt, int column, const brc_oid *id); /* NULL: null */
/* Binds a copy of a text or blob, which the caller may change or free before the statement ends. Check the result:
 * a value that could not be bound stays NULL, with which a search silently finds nothing. */
BRC_MUST_USE int brc_bind_copy(brc_store *store, sqlite3_stmt *stmt, int column, int is_text, brc_span value, brc_error *err);
/* Reads an id. BRC_ECORRUPT if the column does not hold an id of the right length. */
BRC_MUST_USE int brc_column_id(brc_store *store, sqlite3_stmt *stmt, int column, brc_oid *out, brc_error *err);

/* ref.c: the checksum of a row of the operation log, in SQL. */
#define BRC_OPLOG_SUM \
    "row_sum('oplog', seq, time_us, op, name, old, new, first, undoes, restores, draft)"

/* Ends a transaction that is still open because its end failed when memory ran out. */
void brc_end_leftover(brc_store *store);
/* Takes the lock of a paused read again. Called before each use of SQLite. */
BRC_MUST_USE int brc_read_resume(brc_store *store, brc_error *err);
/* Counts an object that was added, and enlarges the page cache while many are added. */
void brc_store_inserted(brc_store *store, uint64_t bytes);
void brc_page_cache_reset(brc_store *store);
/* Undoes the whole transaction, in the file and in memory. */
void brc_store_rollback(brc_store *store);
/* SQLite's busy handler: pauses for a random time of a few milliseconds at most, until the
 * store's time to wait is over. */
int brc_db_busy(void *store, int tries);
/* Sleeps for a random time up to `most`. */
void brc_pause_at_random(brc_store *store, int64_t most_ns);
/* Called before a transaction and after its commit: if other writers were met, gives them a moment to take the lock. */
void brc_wait_turn(brc_store *store);
void brc_wait_committed(brc_store *store);

/* transaction.c: commits the transaction in SQLite, and undoes it if that fails. */
BRC_MUST_USE int brc_store_commit(brc_store *store, brc_error *err);
/* transaction.c: begins a write transaction when it is this connection's turn. */
BRC_MUST_USE int brc_begin_immediate(brc_store *store, brc_error *err);
/* transaction.c: executes the COMMIT of a transaction that brc_begin_immediate has begun. */
BRC_MUST_USE int brc_commit_immediate(brc_store *store, brc_error *err);
/* SQLite's commit hook. It refuses every commit but that of brc_commit_immediate. */
int brc_refuses_commit(void *store);
/* In a transaction: fails with BRC_ESTALE if another repository was copied over the file. Rows written with the
 * first repository's secret would be damage there. */
BRC_MUST_USE int brc_store_check_same(brc_store *store, brc_error *err);

/* The encoding of compressed documents. */
#define BRC_DOCUMENT_SPEC \
    "{\"codecs\":[{\"name\":\"zstd\",\"configuration\":{\"level\":3,\"checksum\":false}}]}"

/* Called before a statement that writes (NULL: before other writes): begins a bulk write's transaction if none is
 * open. */
BRC_MUST_USE int brc_bulk_resume(brc_store *store, sqlite3_stmt *stmt, brc_error *err);

/* backend.c: drops the row that collects small objects. */
void brc_row_forget(brc_store *store);

/* removed.c: deletes a row that no object has. The table's last row is only emptied, so that its number is not used
 * again. */
BRC_MUST_USE int brc_blob_drop(brc_store *store, int64_t seq, brc_error *err);

/* removed.c: writes the notes that the transaction has made about such rows. */
BRC_MUST_USE int brc_rows_leave(brc_store *store, brc_error *err);

/* draft_node.c: finds the texts between which the paths under `path` lie: "/a/" and "/a0", because '0' follows
 * '/'. All paths are under the root. */
BRC_MUST_USE int brc_draft_range(const char *path, brc_buf *low, brc_buf *high, brc_error *err);

/* draft_stack.c: deletes some rows of drafts that were dropped. */
BRC_MUST_USE int brc_draft_sweep(brc_store *store, brc_error *err);
/* draft.c: drops the drafts that brc_draft_drop_late() has noted. */
BRC_MUST_USE int brc_draft_drop_left(brc_store *store, brc_error *err);

/* draft.c: draft.parts names the tables in which a draft may have rows. Most drafts have no rows there, and then no
 * page of these tables is read. BRC_IF_*, in SQL: the draft ?1 if it has such rows, else NULL, which matches no row. */
enum { BRC_PART_KEYS = 1, BRC_PART_MOVES = 2, BRC_PART_DOCS = 4, BRC_PART_SAVES = 8, BRC_PART_LOG = 16 };
/* In SQL: whether a draft is a savepoint; any other draft with a parent is a child. BRC_SAVES_OF: the open savepoints
 * `s` of the draft ?1. BRC_IS_POINT: whether a savepoint is a point of a log (draft_save.c). */
#define BRC_IS_SAVE "(parent IS NOT NULL AND ifnull(substr(plan,1,13),'')='" BRC_SAVE_PLAN "')"
#define BRC_IS_POINT "(parent IS NOT NULL AND ifnull(substr(plan,1,17),'')='" BRC_POINT_PLAN "')"
#define BRC_SAVES_OF                                                                                                 \
    "draft d CROSS JOIN draft s ON s.parent=d.id AND s.state=1 AND substr(s.plan,1,13)='" BRC_SAVE_PLAN                \
    "' WHERE d.id=?1 AND d.parts&24"
#define BRC_IF_KEYS "(SELECT id FROM draft WHERE id=?1 AND parts&1)"
#define BRC_IF_MOVES "(SELECT id FROM draft WHERE id=?1 AND parts&2)"
#define BRC_IF_DOCS "(SELECT id FROM draft WHERE id=?1 AND parts&4)"
/* draft_chunk.c: marks that the draft has this part. Called before the part's first row is written. */
BRC_MUST_USE int brc_draft_has_part(brc_store *store, int64_t draft, int part, brc_error *err);
/* draft_chunk.c: rows that open savepoints of their draft have saved (draft_save.c). brc_draft_level() finds the newest
 * savepoint, 0 if there is none: it keeps each row of a lower level unchanged, and a new row takes that row's place. */
BRC_MUST_USE int brc_draft_level(brc_store *store, int64_t draft, int64_t *level, brc_error *err);
/* Finds the newest savepoint if it must get a copy of the draft's keys or moves (`part`) before they change; 0: there is
 * no savepoint, or it has the copy already. */
BRC_MUST_USE int brc_draft_part_keeper(brc_store *store, int64_t draft, int part, int64_t *save, brc_error *err);
/* Finds the oldest savepoint that has saved a row of this level, which keeps the row if it lies below another; 0: none. */
BRC_MUST_USE int brc_draft_keeper(brc_store *store, int64_t draft, int64_t level, int64_t *save, brc_error *err);
/* draft_stack.c: drops a point of a log that has others, as brc_draft_delete() does. */
BRC_MUST_USE int brc_draft_point_delete(brc_store *store, int64_t point, brc_error *err);
BRC_MUST_USE int brc_draft_row_level(brc_store *store, int64_t node, int64_t *draft, int64_t *level, brc_error *err);
/* Moves the row to another draft, with its path, if it has one. */
BRC_MUST_USE int brc_draft_row_to(brc_store *store, int64_t node, int64_t draft, brc_error *err);

/* setting.c: rows of table meta. Find and get append the value's bytes with a NUL behind them. If the row does not
 * exist, find returns 0 (else 1) and get fails with BRC_ECORRUPT. */
BRC_MUST_USE int brc_meta_put(brc_store *store, const char *key, const void *value, size_t len, int text, brc_error *err);
BRC_MUST_USE int brc_meta_find(brc_store *store, const char *key, brc_buf *out, brc_error *err);
BRC_MUST_USE int brc_meta_get(brc_store *store, const char *key, brc_buf *out, brc_error *err);
BRC_MUST_USE int brc_meta_remove(brc_store *store, const char *key, brc_error *err);

/* schema.c: opens the connection; `how`: BRC_VFS_*. */
BRC_MUST_USE int brc_db_connect(brc_store *store, int flags, unsigned how, brc_error *err);
/* Applies the remaining settings, before the first write and outside of transactions: SQLite reads the schema for
 * them, which costs an extra read if the schema was not read yet. */
BRC_MUST_USE int brc_db_settle(brc_store *store, brc_error *err);
void brc_db_disconnect(brc_store *store);

/* journal_mode.c: called when the store has its VFS. */
void brc_journal_attach(brc_store *store);
BRC_MUST_USE int brc_journal_load(brc_store *store, brc_error *err);
/* Called before a transaction: puts the file into WAL mode if the file asks for it. */
BRC_MUST_USE int brc_journal_enter(brc_store *store, brc_error *err);
/* Called after a commit: copies the log into the file if it has grown. */
void brc_journal_tend(brc_store *store);
/* Disconnects. If nobody else has the file open, copies the log into the file and deletes it. */
void brc_journal_close(brc_store *store);
/* Copies the log into the file and ends WAL mode. SQLITE_BUSY if another connection has the file open. */
BRC_MUST_USE int brc_journal_leave(brc_store *store);

/* schema.c */
BRC_MUST_USE int brc_schema_create(brc_store *store, brc_error *err);
BRC_MUST_USE int brc_schema_check(brc_store *store, brc_error *err);
/* Reserved tables, with their indexes. Has stores whether the file has the table; need creates it within a write.
 * Forget drops this knowledge when a transaction is undone that may have created some. */
BRC_MUST_USE int brc_schema_has(brc_store *store, const char *table, int *there, brc_error *err);
BRC_MUST_USE int brc_schema_need(brc_store *store, const char *table, brc_error *err);
/* Creates a table within a write. */
BRC_MUST_USE int brc_schema_add(brc_store *store, const char *table, brc_error *err);
/* Returns 1 if the file had table hole when its schema was read: brc_removed_take_over(). */
int brc_schema_is_old(const brc_store *store);
void brc_schema_forget(brc_store *store);

/* collect.c: called before the connection is closed. */
void brc_pins_close(brc_store *store);
/* collect.c: returns the descriptor for locks on bytes that SQLite does not know; -1: such locks do not work here. */
int brc_beside_lock(brc_store *store);

#endif
