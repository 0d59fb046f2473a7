/* The store's own parts: the connection, its statements and its errors. */
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
#define BRC_LAST_OF_FORMAT_1 "b088c62" /* reads and writes it */
#define BRC_PAGE_SIZE 16384
#define BRC_OBJECT_MAX ((uint64_t)64 << 20) /* the largest document, node or commit */
#define BRC_META_JOURNAL "journal"
/* In meta 'must-understand' of a backup whose first run has not ended. */
#define BRC_FEATURE_UNFINISHED "unfinished-backup"

#define BRC_NOT_A_REPOSITORY "%s is not a breccia repository: name one, or make one beside it with 'breccia init'"

/* SQLite's page cache, as a rule and while many small objects are added. */
#define BRC_PAGE_CACHE "PRAGMA cache_size=-4096"
/* Pages of a transaction beyond which SQLite writes them into the file before its end, which keeps
 * readers out until then: 256 MiB, so no batch ever does. One page more, because SQLite takes a
 * multiple of 256 for "never". */
#define BRC_SPILL "PRAGMA cache_spill=16385"
#define BRC_PAGE_CACHE_MANY "PRAGMA cache_size=-65536"

typedef struct brc_stmt_slot {
    const char *sql; /* compared by address: every statement is one literal */
    sqlite3_stmt *stmt;
} brc_stmt_slot;

#define BRC_PLACES_HELD 64
struct brc_store_backend {
    int64_t id; /* its number in the file; -1: not read in this transaction */
    char *spec;
    const brc_backend *impl; /* NULL: not opened yet */
    void *state;
    brc_store *store;
    brc_backend_host host;
    _Atomic uint64_t puts; /* calls of put() that have returned, on any thread            */
    uint64_t flushed;      /* as many of them are durable                                 */
    int is_dirty; /* rows of this transaction name something that is not: see backend.c */
    struct { /* by number, of the places that were used last: see backend.c */
        int64_t seq; /* 0: none */
        char *name;
    } places[BRC_PLACES_HELD];
    size_t last_place; /* of them: where something was put last */
};
/* A change in many transactions: see bulk.c. */
typedef struct brc_bulk {
    int on;
    /* What begin and end of a change are within it; and before a statement that writes a
     * transaction is begun again. Set by brc_store_bulk_begin(): others do not depend on it. */
    int (*enter)(struct brc_store *store, brc_error *err);
    int (*leave)(struct brc_store *store, int keep, brc_error *err);
    int (*open)(struct brc_store *store, brc_error *err);
    int admits;       /* what comes is a part of it                                    */
    int is_open;      /* a transaction of it                                           */
    int failed;       /* nothing of it will be kept                                    */
    int64_t draft;    /* that it goes into; 0: none yet                                */
    uint64_t batches; /* transactions that were committed                              */
    int reach;        /* how much longer than the shortest this one may be             */
    int64_t rows_before; /* sqlite3_total_changes() when it was begun                  */
    int64_t opened_at, looked_at; /* on the monotonic clock, in ns                     */
    uint64_t journalled; /* brc_vfs_journalled() when it was opened                    */
    uint64_t inserted;   /* objects, by the batches before                             */
} brc_bulk;

/* So many bytes of a row of stored bytes belong to no object any more. */
typedef struct brc_left_row {
    int64_t seq;
    uint64_t bytes;
    int64_t ahead; /* and so many have none yet; below 0: have one now */
} brc_left_row;

/* A version that is open: see collect.c. */
typedef struct brc_pin {
    int64_t at; /* the byte that is locked */
    unsigned n; /* readers                 */
} brc_pin;

typedef struct brc_late_draft {
    int64_t id;
    int which; /* BRC_LATE_* */
} brc_late_draft;

struct brc_store {
    sqlite3 *db;
    brc_vfs *vfs; /* with which it was opened */
    char *path;   /* as the caller gave it */
    const brc_registry *registry;
    pid_t process; /* that opened it */
    int readonly;
    int hash;
    size_t id_len;
    uint8_t secret[BRC_SECRET_LEN];
    char *head;

    brc_stmt_slot *statements; /* as many as were used */
    size_t nstatements, statements_cap;
    sqlite3_blob *reader; /* kept open from one fetch to the next */

    brc_store_backend inline_backend;
    struct { /* the others that were used: see backend.c */
        brc_store_backend **slots;
        size_t n, cap;
    } backends;
    struct { /* that collects the small objects of a transaction: see backend.c */
        int64_t seq; /* its number; 0: it is not begun */
        brc_buf bytes;
    } row;
    struct { /* of the collection of garbage: see collect.c */
        int is_read; /* in this transaction */
        int64_t run;
    } gc;
    struct { /* a description of its own, for locks that SQLite does not know: brc_beside_lock() */
        brc_file_lock lock;
        int is_open; /* or it was tried */
    } beside;
    struct { /* versions that are open: see collect.c */
        brc_pin *items;
        size_t n, cap;
    } pins;
    struct { /* tables that the file may lack: see schema.c */
        int64_t version; /* of the schema, when they were looked for; -1: they were not */
        uint32_t there;
    } reserved;
    struct { /* rows of stored bytes that objects of this transaction have left: see backend.c */
        brc_left_row *rows;
        size_t n, cap;
    } left;
    int totals_dropped; /* in this transaction, and no row was put since */
    int64_t last_seq; /* the largest number in blob; 0: not read in this transaction */

    int write_depth, read_depth;
    int is_reading;      /* a transaction of SQLite's is open for read_depth */
    int64_t reading_since; /* on the monotonic clock, in ns                  */
    int read_held;       /* and is not paused                                */
    brc_bulk bulk;
    int undo;            /* an inner transaction asked for it */
    uint64_t begun;      /* transactions in SQLite that write         */
    uint64_t writes;     /* outermost transactions of this connection */
    uint64_t undone;     /* those that were rolled back */
    struct { /* rows of the operation log that are written now: see ref.c */
        uint64_t transaction; /* which one wrote `first`; 0: none                */
        int64_t first;
        int64_t undoes, restores; /* 0: they take nothing back                   */
    } operation;
    struct { /* to be dropped, when the lock is to be had */
        brc_late_draft *items;
        size_t n, cap;
    } late_drafts;
    uint64_t inserted, inserted_bytes; /* objects that the transaction has added */
    int large_page_cache;
    unsigned walks; /* walks of history in progress: see brc_store_walk_begin() */
    int is_open, is_checked; /* what to do about damage depends on it */
    int opens_unfinished; /* see file_copy.h */
    int asks_wal;  /* the file's setting, when it was last read */
    int verifies_all; /* another: readers compare what they decode with its id */
    int log_pages; /* of the log after the last commit */
    int folds_early; /* each commit goes into the file at once: brc_log_fold_early() */
    int wait_ms;
    uint64_t max_nodes;
    int64_t wait_since, crowded_at, committed_at; /* on the monotonic clock, in ns */
    uint64_t jitter;
    int64_t stuck_turn; /* the byte of somebody who was waited for too long, and how often: see change.c */
    int stuck_times;
    atomic_int interrupted;

    brc_cache cache;
    brc_shared *shared; /* what other handles read; NULL: there are none */
    int scratch;
    brc_encoding_cache encodings;
    brc_scratch *document_scratch; /* see encoding.c; NULL: not used yet */
};

/* Turns SQLite's result into a code and a sentence: "<what> in <path>: ...". */
int brc_fail_db(brc_store *store, int sqlite_rc, const char *what, brc_error *err);
/* The prepared statement of a literal, reset and without bindings. */
BRC_MUST_USE int brc_stmt(brc_store *store, const char *sql, sqlite3_stmt **out, brc_error *err);
/* 1 with a row, 0 at the end; resets the statement unless it gave a row. */
BRC_MUST_USE int brc_step(brc_store *store, sqlite3_stmt *stmt, brc_error *err);
/* For statements that give no rows: steps and resets. */
BRC_MUST_USE int brc_run(brc_store *store, sqlite3_stmt *stmt, brc_error *err);
/* The first row alone, of a statement that is reset then: whether there is one; the number in its first
 * column, 0 where there is none. */
BRC_MUST_USE int brc_ask_any(brc_store *store, sqlite3_stmt *stmt, int *any, brc_error *err);
BRC_MUST_USE int brc_ask_number(brc_store *store, sqlite3_stmt *stmt, int64_t *out, brc_error *err);
/* Runs text without data in it. */
BRC_MUST_USE int brc_exec(brc_store *store, const char *sql, brc_error *err);
/* Closes the open blob, which would hold a lock. */
void brc_reader_close(brc_store *store);

/* BRC_ECORRUPT where the column says that a row's checksum is wrong; `what` names the row. */
BRC_MUST_USE int brc_row_check(brc_store *store, sqlite3_stmt *stmt, int column, const char *what, brc_error *err);

/* The text of a numbered row, with a NUL behind it: the statement takes the number, and gives the text
 * and, where it has two columns, what brc_row_check() looks at. `what` names such rows: "backend". */
BRC_MUST_USE int brc_row_text(brc_store *store, const char *sql, int64_t number, const char *what, brc_buf *out, brc_error *err);

void brc_bind_id(brc_store *store, sqlite3_stmt *stmt, int column, const brc_oid *id); /* NULL: null */
/* Text, or a blob, which may go or change before the statement ends. A value that could not be bound is NULL,
 * with which a search finds nothing, and nobody notices. */
BRC_MUST_USE int brc_bind_copy(brc_store *store, sqlite3_stmt *stmt, int column, int is_text, brc_span value, brc_error *err);
/* BRC_ECORRUPT if the column does not hold an id of the right length. */
BRC_MUST_USE int brc_column_id(brc_store *store, sqlite3_stmt *stmt, int column, brc_oid *out, brc_error *err);

/* ref.c: what a row's checksum must be. */
#define BRC_OPLOG_SUM \
    "row_sum('oplog', seq, time_us, op, name, old, new, first, undoes, restores, draft)"

/* A transaction whose end failed because memory ran out is still open: ends it. */
void brc_end_leftover(brc_store *store);
/* A read that let go of its lock has it again: before SQLite is asked for anything. */
BRC_MUST_USE int brc_read_resume(brc_store *store, brc_error *err);
/* Counts an object that was added, and adapts the page cache to what is written. */
void brc_store_inserted(brc_store *store, uint64_t bytes);
void brc_page_cache_reset(brc_store *store);
/* Undoes the whole transaction, in the file and in memory. */
void brc_store_rollback(brc_store *store);
/* SQLite's busy handler: a random pause of a few milliseconds at most, until the
 * store's time for waiting is over. */
int brc_db_busy(void *store, int tries);
/* Sleeps for a random time up to `most`. */
void brc_pause_at_random(brc_store *store, int64_t most_ns);
/* Before a transaction and behind its commit: gives others that were met a moment to ask. */
void brc_wait_turn(brc_store *store);
void brc_wait_committed(brc_store *store);

/* transaction.c: ends the transaction in SQLite, and undoes it where that fails. */
BRC_MUST_USE int brc_store_commit(brc_store *store, brc_error *err);
/* transaction.c: begins one that writes, when it is our turn. */
BRC_MUST_USE int brc_begin_immediate(brc_store *store, brc_error *err);
/* In a transaction: BRC_ESTALE if somebody has copied another repository over the file. What is written under
 * the secret of the first one would be damage there. */
BRC_MUST_USE int brc_store_check_same(brc_store *store, brc_error *err);

/* The encoding of documents that are compressed. */
#define BRC_DOCUMENT_SPEC \
    "{\"codecs\":[{\"name\":\"zstd\",\"configuration\":{\"level\":3,\"checksum\":false}}]}"

/* Before a statement that writes (NULL: something that will write): in a bulk write a transaction is
 * begun again. */
BRC_MUST_USE int brc_bulk_resume(brc_store *store, sqlite3_stmt *stmt, brc_error *err);

/* backend.c: drops the row that collects small objects. */
void brc_row_forget(brc_store *store);

/* backend.c: a row that no object has. The last one is emptied: its number is not given again. */
BRC_MUST_USE int brc_blob_drop(brc_store *store, int64_t seq, brc_error *err);

BRC_MUST_USE int brc_rows_leave(brc_store *store, brc_error *err);

/* draft_node.c: the texts between which the paths under `path` are: "/a/" and "/a0", since '0' follows
 * '/'. Under the root all are. */
BRC_MUST_USE int brc_draft_range(const char *path, brc_buf *low, brc_buf *high, brc_error *err);

/* draft_stack.c: some rows of drafts that were dropped. */
BRC_MUST_USE int brc_draft_sweep(brc_store *store, brc_error *err);
/* draft.c: those that were to be dropped late. */
BRC_MUST_USE int brc_draft_drop_left(brc_store *store, brc_error *err);

/* Of drafts that are dropped late: whatever is in it, only if nothing is and it has no children, likewise with
 * children in which nothing is, only if it is a savepoint. */
enum { BRC_LATE_ANY, BRC_LATE_EMPTY, BRC_LATE_END, BRC_LATE_SAVE };
/* draft.c: draft.parts says where a draft may have rows: most have none in these tables, and then no
 * page of them is read. In SQL: the draft ?1 if it has them, else NULL, which no row has. */
enum { BRC_PART_KEYS = 1, BRC_PART_MOVES = 2, BRC_PART_DOCS = 4, BRC_PART_SAVES = 8 };
/* A draft that is another's child: draft.c. */
#define BRC_IS_CHILD "kind=2 AND owner IS NOT NULL AND substr(plan,1,8)='{\"fork\":'"
#define BRC_IF_KEYS "(SELECT id FROM draft WHERE id=?1 AND parts&1)"
#define BRC_IF_MOVES "(SELECT id FROM draft WHERE id=?1 AND parts&2)"
#define BRC_IF_DOCS "(SELECT id FROM draft WHERE id=?1 AND parts&4)"
/* draft_chunk.c: from now on it has this part: before its first row. */
BRC_MUST_USE int brc_draft_has_part(brc_store *store, int64_t draft, int part, brc_error *err);
/* draft_chunk.c: of rows that open savepoints of their draft know as they are (draft_save.c). The newest of these, 0 if
 * there is none: a row with a lower level is not changed, but kept in it, and another takes its place. */
BRC_MUST_USE int brc_draft_level(brc_store *store, int64_t draft, int64_t *level, brc_error *err);
/* The newest that must get the draft's keys or moves (`part`) before they change; 0: none, or it has them. */
BRC_MUST_USE int brc_draft_part_keeper(brc_store *store, int64_t draft, int part, int64_t *save, brc_error *err);
/* The oldest that knows a row of this level; 0: none does. What lies below another row is kept in that. */
BRC_MUST_USE int brc_draft_keeper(brc_store *store, int64_t draft, int64_t level, int64_t *save, brc_error *err);
BRC_MUST_USE int brc_draft_row_level(brc_store *store, int64_t node, int64_t *draft, int64_t *level, brc_error *err);
/* The row becomes another draft's, with its path, if it has one. */
BRC_MUST_USE int brc_draft_row_to(brc_store *store, int64_t node, int64_t draft, brc_error *err);

/* setting.c: the setting's bytes are appended, with a NUL behind them. find: 1, or 0 where it is not there;
 * get: BRC_ECORRUPT then. */
BRC_MUST_USE int brc_meta_put(brc_store *store, const char *key, const void *value, size_t len, int text, brc_error *err);
BRC_MUST_USE int brc_meta_find(brc_store *store, const char *key, brc_buf *out, brc_error *err);
BRC_MUST_USE int brc_meta_get(brc_store *store, const char *key, brc_buf *out, brc_error *err);
BRC_MUST_USE int brc_meta_remove(brc_store *store, const char *key, brc_error *err);

/* schema.c: `how` is of BRC_VFS_*. */
BRC_MUST_USE int brc_db_connect(brc_store *store, int flags, unsigned how, brc_error *err);
/* The rest of what is set, before the first write and outside of transactions: SQLite reads the schema for it,
 * which costs a read of its own where nothing has read it yet. */
BRC_MUST_USE int brc_db_settle(brc_store *store, brc_error *err);
void brc_db_disconnect(brc_store *store);

/* journal_mode.c: once the store has its VFS. */
void brc_journal_attach(brc_store *store);
BRC_MUST_USE int brc_journal_load(brc_store *store, brc_error *err);
/* Before a transaction: puts the file into WAL mode where that is asked for. */
BRC_MUST_USE int brc_journal_enter(brc_store *store, brc_error *err);
/* After a commit: copies the log back into the file where it has grown. */
void brc_journal_tend(brc_store *store);
/* Disconnects; where nobody else has the file open, the log is copied back and goes. */
void brc_journal_close(brc_store *store);
/* Copies the log back and ends WAL mode: SQLITE_BUSY where somebody else has the file open. */
BRC_MUST_USE int brc_journal_leave(brc_store *store);

/* schema.c */
BRC_MUST_USE int brc_schema_create(brc_store *store, brc_error *err);
BRC_MUST_USE int brc_schema_check(brc_store *store, brc_error *err);
/* Reserved tables: whether the file has one, and making it, within a write. One has no index. What is known of
 * them is forgotten where a transaction that may have made some was undone. */
BRC_MUST_USE int brc_schema_has(brc_store *store, const char *table, int *there, brc_error *err);
BRC_MUST_USE int brc_schema_need(brc_store *store, const char *table, brc_error *err);
void brc_schema_forget(brc_store *store);

/* collect.c: before the connection is closed. */
void brc_pins_close(brc_store *store);
/* collect.c: the descriptor for such locks; -1: there are none here. */
int brc_beside_lock(brc_store *store);

#endif
