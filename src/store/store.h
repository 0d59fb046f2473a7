/*
 * The store: one SQLite file with objects, refs and uncommitted changes.
 *
 * Objects are immutable and named by the hash of their canonical bytes. Stored bytes
 * are verified against their row before a codec sees them. A store belongs to one
 * thread at a time.
 */
#ifndef BRC_STORE_STORE_H
#define BRC_STORE_STORE_H

#include <stdatomic.h>

#include "../base/hash.h"
#include "../codec/chain.h"
#include "../codec/registry.h"

typedef struct brc_store brc_store;
typedef struct brc_shared brc_shared; /* cache.h */

/* ---- opening, transactions -------------------------------- */

BRC_MUST_USE int brc_store_open(brc_store **out, const char *path, const brc_open_opts *opts,
                                const brc_registry *reg, int64_t now_us, brc_error *err);
void brc_store_close(brc_store *store);
/* Makes the store use `shared`, in which all stores of this file find the objects that another store has read. */
void brc_store_share(brc_store *store, brc_shared *shared);
const char *brc_store_path(const brc_store *store);
/* Returns the file's absolute path. May be called on any thread. */
const char *brc_store_file(const brc_store *store);
/* While fsck runs, errors about damage do not say to run it. */
void brc_store_checking(brc_store *store, int is_checked);
int brc_store_hash(const brc_store *store);
size_t brc_store_id_len(const brc_store *store);
const uint8_t *brc_store_secret(const brc_store *store); /* BRC_SECRET_LEN bytes */
int brc_store_readonly(const brc_store *store);
/* Returns how many nodes of the hierarchy one call may visit: history/tree_walk.h counts them. */
uint64_t brc_store_max_nodes(const brc_store *store);
/* Makes the call in progress fail. May be called on any thread and in a signal handler. */
void brc_store_interrupt(brc_store *store);
void brc_store_interrupt_clear(brc_store *store);
BRC_MUST_USE int brc_store_check_interrupt(brc_store *store, brc_error *err);
/* Returns a flag that is not 0 once the store is interrupted. May be called on any thread. */
const atomic_int *brc_store_interrupted(const brc_store *store);

/* Write transactions nest; only the outermost end commits, and only if no inner one
 * asked to undo. A read transaction keeps one view of refs and drafts until it is paused. */
BRC_MUST_USE int brc_store_begin(brc_store *store, brc_error *err);
/* Ends a write transaction. With keep 0 it undoes everything since the outermost begin and never fails. */
BRC_MUST_USE int brc_store_end(brc_store *store, int keep, brc_error *err);
/* Begins a write only if no transaction is open and the lock is free at once. Returns 1 if the write has begun. */
int brc_store_try_begin(brc_store *store);
BRC_MUST_USE int brc_store_begin_read(brc_store *store, brc_error *err);
void brc_store_end_read(brc_store *store);
/* Releases the lock in the middle of a read, before a slow step: decoding, handing over, waiting. The
 * next access takes the lock again and may see a later state of the file. Does nothing within a write or
 * outside of a read. */
void brc_store_pause_read(brc_store *store);
/* Pauses the read if it has held the lock for 20 ms: for loops over rows that never change. */
void brc_store_breathe(brc_store *store);
/* Keeps a read from being paused, for callers that must see one state: 1 begins, 0 ends; pairs nest. */
void brc_store_hold_read(brc_store *store, int is_held);
/* Bulk writes (bulk.c): one change that is spread over many transactions, from begin to finish or cancel.
 * brc_store_begin() and _end() belong to the bulk write only while it admits them. brc_store_bulk_admit()
 * sets that and returns the setting before. */
BRC_MUST_USE int brc_store_bulk_begin(brc_store *store, brc_error *err);
/* Names the draft that the bulk write's rows belong to: if the draft is gone, the next batch fails with BRC_ESTALE. */
void brc_store_bulk_goes_into(brc_store *store, int64_t draft);
int brc_store_bulk_admit(brc_store *store, int admits);
/* Like brc_store_begin() within a bulk write, but takes the lock only when the first row is written. */
void brc_store_bulk_enter(brc_store *store);
int brc_store_in_bulk(const brc_store *store);
/* Returns how many transactions of the bulk write have been committed. */
uint64_t brc_store_bulk_batches(const brc_store *store);
/* Ends the bulk write's transaction to let others in, if the transaction has changed much or lasted long; with
 * `now` in any case, before a step that may wait for ever. Does nothing outside of a bulk write. */
BRC_MUST_USE int brc_store_rest(brc_store *store, int now, brc_error *err);
/* Begins the bulk write's next transaction if none is open: rows that are looked up now stay as they are until it ends. */
BRC_MUST_USE int brc_store_wake(brc_store *store, brc_error *err);
/* Ends the bulk write. Its earlier batches are in the file; the last one becomes part of a write that is
 * open now, which the caller ends with brc_store_end(). */
BRC_MUST_USE int brc_store_bulk_finish(brc_store *store, brc_error *err);
/* Ends the bulk write and undoes its open transaction; the earlier ones stay in the file. */
void brc_store_bulk_cancel(brc_store *store);
/* Stores a number that differs between two calls if another connection has changed the file in between. */
BRC_MUST_USE int brc_store_others(brc_store *store, int64_t *version, brc_error *err);
/* Keep pages of the hash index in memory between begin and end: a walk through much of
 * history needs them again and again, in random order. Pairs nest. */
void brc_store_walk_begin(brc_store *store);
void brc_store_walk_end(brc_store *store);
/* Returns 1 in a child of the process that opened the store: no call may touch the file there. */
int brc_store_is_forked(const brc_store *store);
/* Fails with BRC_EMISUSE in a child of that process. May be called on any thread. */
BRC_MUST_USE int brc_store_check_process(const brc_store *store, brc_error *err);
/* Return how many transactions this connection has undone, and whether a write transaction is open. */
uint64_t brc_store_undone(const brc_store *store);
int brc_store_in_write(const brc_store *store);
/* Fails with BRC_EREADONLY if the file cannot be written. */
BRC_MUST_USE int brc_store_writable(brc_store *store, brc_error *err);
/* Stores a number that changes with each change of refs and drafts, by this or another connection: if two
 * numbers are equal, nothing has changed in between. */
BRC_MUST_USE int brc_store_version(brc_store *store, uint64_t *version, brc_error *err);

/* ---- objects -------------------------------- */

/* A row of the hash index. */
typedef struct brc_object {
    brc_oid id;
    int kind;
    int64_t encoding; /* 0: stored as the canonical bytes                       */
    int64_t backend; /* the backend's number, see brc_is_in_file()              */
    int64_t place;
    uint64_t offset; /* of the stored bytes in that place                         */
    uint64_t size, stored;
    uint64_t checksum, guard;
    uint64_t digest; /* of the encoding; it seeds the checksum                  */
    int found;
} brc_object;

/* Returns 1 if bytes with this number of a backend lie in the file itself, 0 if they lie in another backend. */
static inline int brc_is_in_file(int64_t backend)
{
    return backend == 0;
}
/* Compares the places of two objects' stored bytes: <0, 0, >0. */
int brc_object_place_order(const brc_object *a, const brc_object *b);
/* Looks up n ids, in the order of their hashes, and sets `found` in each. */
BRC_MUST_USE int brc_objects_find(brc_store *store, brc_object *const *objects, size_t n, brc_error *err);
/* Reads the stored bytes into `into`, which holds object->stored bytes. The caller verifies their
 * checksum: brc_object_verify(), on any thread. BRC_ESTALE: the bytes are not in their place, or were moved;
 * see brc_object_find_again(). */
BRC_MUST_USE int brc_object_fetch(brc_store *store, const brc_object *object, uint8_t *into, brc_error *err);
/* Looks up an object again whose bytes were not in their place: others may have moved or re-encoded
 * them since the first look-up. `gone` is the error of the fetch. BRC_ESTALE: the object was removed;
 * BRC_ECORRUPT: its row is unchanged, but its bytes are missing. */
BRC_MUST_USE int brc_object_find_again(brc_store *store, brc_object *object, const brc_error *gone, brc_error *err);
/* Fails with BRC_ECORRUPT: the object was looked up again, and its bytes are still missing. */
int brc_object_gone(brc_store *store, const brc_object *object, const brc_error *gone, brc_error *err);
/* Fetches an object's stored bytes, after another look-up if it was moved; *into then holds nothing else. */
BRC_MUST_USE int brc_object_load(brc_store *store, brc_object *object, brc_buf *into, brc_error *err);
BRC_MUST_USE int brc_object_verify(const brc_object *object, const void *stored, brc_error *err);
/* The same for bytes that were fetched from the place of this name (NULL: they have none); a failure names it. */
BRC_MUST_USE int brc_object_verify_in(const brc_object *object, const void *stored, const char *place, brc_error *err);
/* Adds a row for stored bytes that were put into the backend object->backend: `at` says where.
 * The caller has filled in size, stored, kind, encoding, checksum and guard. The id must not have
 * a row yet. */
BRC_MUST_USE int brc_object_record(brc_store *store, const brc_object *object, const brc_stored *at, brc_error *err);
/* The most stored bytes of an object that shares a row with others, in the file itself. */
#define BRC_SMALL_MOST (INT64_C(128) << 10)
/* In a bulk write: notes that `bytes` bytes of a row of stored bytes, put in this transaction, belong to no
 * object yet; below 0: that so many bytes belong to an object now. The note is written before the
 * transaction ends. The row stays, and gc removes it only after its writer has ended: check the row again
 * after others have changed the file. */
BRC_MUST_USE int brc_row_ahead(brc_store *store, int64_t seq, int64_t bytes, brc_error *err);
/* Writes the rows and notes that this transaction has collected to the tables now instead of at its end. */
BRC_MUST_USE int brc_rows_settle(brc_store *store, brc_error *err);
/* Stores whether the row exists and at least `bytes` of its bytes have no object. The row must be settled. */
BRC_MUST_USE int brc_row_is_ahead(brc_store *store, int64_t seq, uint64_t bytes, int *is_there, brc_error *err);
/* Fails with BRC_ECORRUPT if an object that is neither a chunk nor a document is encoded. */
BRC_MUST_USE int brc_object_check_plain(brc_store *store, const brc_object *object, brc_error *err);
/* Fails with BRC_ECORRUPT: a reference leads to this id, but the object does not exist. On any thread. */
int brc_object_missing(const brc_oid *id, brc_error *err);
/* Fails with BRC_ECOLLISION: other content is stored under this id. On any thread. */
int brc_object_collides(const brc_store *store, const brc_oid *id, brc_error *err);
/* Points an object's row to other stored bytes of the same content (re-encoding), which were put
 * like those of a new object. Drops the old bytes only if they lie in the file. */
BRC_MUST_USE int brc_object_replace(brc_store *store, const brc_object *object, const brc_stored *at, brc_error *err);
/* The same for an object that is stored as a difference from `base` (bases.h). */
BRC_MUST_USE int brc_object_replace_on(brc_store *store, const brc_object *object, const brc_stored *at, const brc_oid *base,
                                       brc_error *err);

/* Small objects: documents, which are compressed if that saves enough, nodes and commits. Put stores the id
 * in *id and adds the object if it does not exist. Get checks kind, checksum and id. Nodes and documents are
 * cached. */
BRC_MUST_USE int brc_store_put(brc_store *store, int kind, const void *data, size_t len, brc_oid *id, brc_error *err);
/* *out is borrowed until the next call on the store. */
BRC_MUST_USE int brc_store_get(brc_store *store, int kind, const brc_oid *id, brc_span *out, brc_error *err);

/* Scratch mode: between begin and end, brc_store_put() keeps objects in memory and leaves the file
 * unchanged, to compute a commit without making it. These calls do not nest. */
void brc_store_scratch_begin(brc_store *store);
void brc_store_scratch_end(brc_store *store);
/* Makes brc_store_put() write to the file again; objects in memory can be read until scratch mode ends. */
void brc_store_scratch_pause(brc_store *store);

/* Reads the next rows of the hash index after the id `after` (zero: from the start), by id: at most
 * `cap`; *n is 0 at the end. A row that contradicts itself has `found` 0. */
BRC_MUST_USE int brc_objects_page(brc_store *store, const brc_oid *after, brc_object *out, size_t cap, size_t *n, brc_error *err);
/* Checks SQLite's own structures: `found` gets a line for each fault (check.c). */
BRC_MUST_USE int brc_store_check_file(brc_store *store, int (*found)(void *ctx, const char *line), void *ctx, brc_error *err);
/* Checks the form of every row in the same way: types, lengths, which rows belong together. */
BRC_MUST_USE int brc_store_check_rows(brc_store *store, int (*found)(void *ctx, const char *line), void *ctx, brc_error *err);
/* Calls each() with every commit's id, or every id in the operation log; malformed ids are left out. */
enum { BRC_IDS_OF_COMMITS = 1, BRC_IDS_IN_OPLOG = 2 };
BRC_MUST_USE int brc_store_each_id(brc_store *store, int what, int (*each)(void *ctx, const brc_oid *id, brc_error *err),
                                   void *ctx, brc_error *err);
BRC_MUST_USE int brc_store_each_encoding(brc_store *store, int (*each)(void *ctx, int64_t encoding, brc_error *err), void *ctx,
                                         brc_error *err);
/* Finds ids of `kind` that begin with these hex digits: at most two. */
BRC_MUST_USE int brc_objects_by_prefix(brc_store *store, int kind, const char *hex, brc_oid found[2], size_t *n, brc_error *err);
/* Settings of the whole file, as JSON. Find returns 1 and appends the text with a NUL behind it, or returns 0
 * if the setting is not set. Put sets it within a write; NULL unsets it. */
BRC_MUST_USE int brc_setting_find(brc_store *store, const char *name, brc_buf *out, brc_error *err);
BRC_MUST_USE int brc_setting_put(brc_store *store, const char *name, const char *json, brc_error *err);
/* The setting by which readers compare a chunk's decoded bytes with the chunk's id. Stored bytes are always
 * compared with their checksum. Set takes effect at once in this handle only: other open handles keep the
 * setting that they read. */
BRC_MUST_USE int brc_verify_get(brc_store *store, int *full, brc_error *err);
BRC_MUST_USE int brc_verify_set(brc_store *store, int full, brc_error *err);
int brc_store_verifies_all(const brc_store *store);
/* The setting that says which new chunks are read back before they are stored: BRC_READBACK_ALL ... A handle follows
 * the setting as it was at the opening. */
BRC_MUST_USE int brc_readback_get(brc_store *store, int *readback, brc_error *err);
/* Sets it within a write. A NULL `value` restores the default. *readback is what it is then. */
BRC_MUST_USE int brc_readback_set(brc_store *store, const char *value, int *readback, brc_error *err);
int brc_store_readback(const brc_store *store); /* as it was at the opening */
/* "all", "sampled" or "none". */
const char *brc_readback_name(int readback);
/* The setting by which the file asks for WAL mode (journal_mode.c). Get works in and outside of a transaction.
 * Set needs a handle without a transaction; to unset WAL mode the handle must be the file's only one. */
BRC_MUST_USE int brc_journal_get(brc_store *store, int *wal, brc_error *err);
BRC_MUST_USE int brc_journal_set(brc_store *store, int wal, brc_error *err);
/* Returns the size in bytes of the log that belongs to the file now. */
uint64_t brc_store_log_bytes(const brc_store *store);
BRC_MUST_USE int brc_store_totals(brc_store *store, brc_stats *out, brc_error *err);

/* ---- backends: where the stored bytes of chunks lie --------------------------------
 * Number 0 is the file itself, which also holds everything that is not a chunk. */

#define BRC_BACKEND_SOURCE "backend" /* an error's source */
#define BRC_SERVER_SOURCE "server"   /* the same where a backend that lies far away fails with BRC_EIO */
/* Returns whether the error says that a backend that lies far away cannot be asked now. Whoever leaves objects that cannot
 * be read stops then: each further object would wait for the server, and be left as well. */
int brc_is_out_of_reach(const brc_error *err);
typedef struct brc_store_backend brc_store_backend; /* a backend that was opened for this store */
/* Finds the number of a specification in full form, and adds the specification if it is new. */
BRC_MUST_USE int brc_backend_intern(brc_store *store, const char *spec, int64_t *id, brc_error *err);
/* Finds the number of a specification: -1 if the file does not have it. */
BRC_MUST_USE int brc_backend_find(brc_store *store, const char *spec, int64_t *id, brc_error *err);
/* Returns the backend of a number, and opens it the first time; it stays open until the store is closed.
 * BRC_EUNSUPPORTED if this build lacks the backend. */
BRC_MUST_USE int brc_backend_use(brc_store *store, int64_t id, brc_store_backend **out, brc_error *err);
/* Finds a backend's specification in full form, borrowed until the store is closed. */
BRC_MUST_USE int brc_backend_spec(brc_store *store, int64_t id, const char **spec, brc_error *err);
/* Returns BRC_OK if the backend has the place or cannot look without reading, else the backend's error. */
BRC_MUST_USE int brc_backend_look(const brc_store_backend *b, const char *place, brc_error *err);
/* Opens the backend of a specification in full form, of which the file may have no row, and lets it try what it relies
 * on: see brc_prove_backend(). */
BRC_MUST_USE int brc_backend_try(brc_store *store, const char *spec, brc_promise_fn each, void *to, brc_error *err);
/* Finds the next place after the number `after`, and appends its name. *seq is 0 if there is none. */
BRC_MUST_USE int brc_place_after(brc_store *store, int64_t after, int64_t *seq, int64_t *backend, brc_buf *name,
                                 brc_error *err);
/* Returns 1 if fetch and put may be called on any thread, 0 if only on the store's. */
int brc_backend_on_workers(const brc_store_backend *b);
/* Sets brc_backend_host.gap and .range, between two calls of any backend. */
void brc_store_set_ranges(brc_store *store, uint64_t gap, uint64_t range);
/* Returns whether others must not wait for its put() and flush(): all but the file itself, and what is as near. */
int brc_backend_is_slow(const brc_store_backend *b);
/* Returns whether a call of its fetch() takes a while: BRC_BACKEND_FAR. */
int brc_backend_is_far(const brc_store_backend *b);
/* Returns 1 if such a backend has been used through this handle. */
int brc_store_uses_far(const brc_store *store);
/* Returns 1 if a backend other than the file itself has been used through this handle. */
int brc_store_uses_others(const brc_store *store);
/* The cache of chunks on servers (chunk_cache.h), which brc_open_opts names. _caches: whether there is one for this
 * backend; _cached: 1 if an object's stored bytes are now in `into`, verified; _keep takes a copy of verified bytes, and
 * _keep_now writes what was kept. None of them fails: without a usable cache nothing is found. */
int brc_store_caches(const brc_store *store, const brc_store_backend *b);
int brc_store_cached(brc_store *store, const brc_store_backend *b, const brc_object *object, uint8_t *into);
void brc_store_keep(brc_store *store, const brc_store_backend *b, const brc_object *object, const uint8_t *stored);
void brc_store_keep_now(brc_store *store);
/* Returns 1 if the backend can store objects, 0 if it only reads them. */
int brc_backend_can_put(const brc_store_backend *b);
/* Returns 1 if the backend is the file itself: puts into the file belong to a transaction. */
int brc_backend_is_inline(const brc_store_backend *b);
/* Fills in a request to the object's backend; the caller adds `into`, and `place` if the object lies in one. */
void brc_object_ask(const brc_object *object, brc_stored *out);
/* Finds the name of the place that the object lies in, borrowed until the next call on the store; NULL: none. */
BRC_MUST_USE int brc_object_place(brc_store_backend *b, const brc_object *object, const char **name, brc_error *err);
/* Reads the backend's place with the smallest name above `after`: its number, and its name (terminated). Returns 0 at
 * the end. */
BRC_MUST_USE int brc_place_next(const brc_store_backend *b, const char *after, int64_t *seq, brc_buf *name, brc_error *err);
/* Gives a place another name, within a transaction. Returns 1 if its name is not `was` any more. BRC_EEXISTS if another
 * place has the new name. Other handles learn the name when they miss the old one. */
BRC_MUST_USE int brc_place_rename(brc_store_backend *b, int64_t seq, const char *was, const char *now, brc_error *err);
/* Fetches items as breccia_backend.h says. BRC_ESTALE: an item is not in its place and may have been moved
 * (brc_object_find_again()). If a fetch of several items fails, the caller can fetch each by itself to get its
 * own error. */
BRC_MUST_USE int brc_backend_fetch(const brc_store_backend *b, size_t n, brc_stored *const *items, brc_error *err);
/* Puts items. The caller clears each with brc_stored_clear() when its row is written. */
BRC_MUST_USE int brc_backend_put(brc_store_backend *b, size_t n, brc_stored *const *items, brc_error *err);
/* Removes items. The `status` of each says whether it could be removed; the first failure is the result. */
BRC_MUST_USE int brc_backend_drop(const brc_store_backend *b, size_t n, brc_stored *const *items, brc_error *err);
void brc_stored_clear(brc_stored *stored);
/* Makes durable what was put so far, between the puts and the transaction whose rows name them. Puts that are not
 * flushed then are flushed before the transaction's end. */
BRC_MUST_USE int brc_backend_flush_puts(brc_store_backend *b, brc_error *err);

/* ---- encodings -------------------------------- */

/* Finds the number of an encoding's specification, and adds the specification if it is new. */
BRC_MUST_USE int brc_encoding_intern(brc_store *store, const char *spec, int64_t *id, brc_error *err);
/* Stores brc_hash_encoding() of the encoding's specification. */
BRC_MUST_USE int brc_encoding_digest(brc_store *store, int64_t id, uint64_t *digest, brc_error *err);
/* Finds the number of a specification: -1 if the file does not have it. */
BRC_MUST_USE int brc_encoding_find(brc_store *store, const char *spec, int64_t *id, brc_error *err);
/* Returns the encoding's specification, borrowed until the next call on the store; NULL for encoding 0. */
BRC_MUST_USE int brc_encoding_spec(brc_store *store, int64_t id, const char **spec, brc_error *err);
/* Returns the encoding's chain, borrowed from the store; NULL for encoding 0 and for opaque encodings,
 * whose objects are the bytes of chunks that could not be decoded when they were stored.
 * BRC_EUNSUPPORTED if this build lacks a codec. */
BRC_MUST_USE int brc_encoding_chain(brc_store *store, int64_t id, const brc_chain **out, brc_error *err);

/* ---- refs --------------------------------------------------------------------------
 * Names are in full: "heads/main". Changes write the operation log. */

typedef struct brc_ref_row {
    char *name;
    int has_target;
    brc_oid target;
    char *message;
} brc_ref_row;
void brc_ref_rows_free(brc_ref_row *rows, size_t n);
/* Finds a ref. BRC_ENOTFOUND if it does not exist. */
BRC_MUST_USE int brc_ref_get(brc_store *store, const char *name, int *has_target, brc_oid *target, brc_error *err);
/* Lists refs whose name begins with `prefix`, by name. */
BRC_MUST_USE int brc_ref_list(brc_store *store, const char *prefix, brc_ref_row **out, size_t *n, brc_error *err);
/* Sets or creates a ref; target NULL: a branch without a commit. If `check`, its
 * target must be *expect (NULL: none, or no such ref), else BRC_ESTALE. */
BRC_MUST_USE int brc_ref_put(brc_store *store, const char *name, const brc_oid *target, const char *message,
                             const char *op, int check, const brc_oid *expect, int64_t time_us, brc_error *err);
BRC_MUST_USE int brc_ref_drop(brc_store *store, const char *name, int64_t time_us, brc_error *err);
/* Finds the ref's target at that time in the operation log. BRC_ENOTFOUND before its first entry. */
BRC_MUST_USE int brc_ref_at(brc_store *store, const char *name, int64_t time_us, brc_oid *target, brc_error *err);
/* The operation log (ref.c). The changes of one transaction are one operation: each of its rows names the
 * operation's first row. brc_oplog_add() writes a row without moving a ref. */
BRC_MUST_USE int brc_oplog_add(brc_store *store, const char *op, const char *name,
                               const brc_oid *from, const brc_oid *to, int64_t time_us,
                               brc_error *err);
/* Notes a switch of the current branch: a row for the branch before, then a row for the new one. */
BRC_MUST_USE int brc_oplog_switch(brc_store *store, const char *from, const char *to, int64_t time_us, brc_error *err);
/* Marks rows that are written from now on as taking back the operation `undoes`, or the undoing `restores`, each
 * named by its first row; 0 and 0 ends that. */
void brc_oplog_takes_back(brc_store *store, int64_t undoes, int64_t restores);
/* Makes the log's last row keep the draft of a branch that was deleted. */
BRC_MUST_USE int brc_oplog_keeps(brc_store *store, int64_t draft, brc_error *err);

typedef struct brc_oplog_row {
    int64_t seq, time_us;
    int64_t first; /* seq of the operation's first row, which may be this row      */
    int64_t undoes, restores, draft; /* 0: none                                    */
    int has_old, has_new;
    brc_oid from, to; /* the ref's target before and after                         */
    char *op, *name;
} brc_oplog_row;
void brc_oplog_rows_free(brc_oplog_row *rows, size_t n);
/* Reads at most `most` rows before row `before` (0: from the newest on), the newest first. */
BRC_MUST_USE int brc_oplog_page(brc_store *store, int64_t before, size_t most, brc_oplog_row **out, size_t *n, brc_error *err);
/* brc_oplog_operation() reads the rows of the operation that begins with `first`, in order; brc_oplog_last_of() reads
 * the ref's last row that did this operation, took it back or did it again. *n is 0 where the log has no such row. */
BRC_MUST_USE int brc_oplog_last_of(brc_store *store, const char *name, int64_t operation, brc_oplog_row **out, size_t *n,
                                   brc_error *err);
BRC_MUST_USE int brc_oplog_operation(brc_store *store, int64_t first, brc_oplog_row **out, size_t *n, brc_error *err);

/* Returns the current branch's name, borrowed until the next change. */
BRC_MUST_USE int brc_head_get(brc_store *store, const char **branch, brc_error *err);
BRC_MUST_USE int brc_head_set(brc_store *store, const char *branch, brc_error *err);

/* Sets *same to 1 if the commit has a derived row that agrees with it, else to 0. */
BRC_MUST_USE int brc_commit_info_check(brc_store *store, const brc_commit *commit, int *same, brc_error *err);
/* Reads the commit's generation from its derived row; 0 or less if the row is missing or damaged. */
BRC_MUST_USE int brc_commit_generation(brc_store *store, const brc_oid *id, int64_t *out, brc_error *err);
/* Writes the derived row of a commit. */
BRC_MUST_USE int brc_commit_info_put(brc_store *store, const brc_commit *commit, brc_error *err);

/* ---- totals of map nodes: derived rows -------------------------------- */

/* The counts of everything under a map node; a chunk counts as often as a key leads to it. */
typedef struct brc_node_total {
    uint64_t arrays, groups, chunks;
    uint64_t size, stored; /* bytes of the chunks: canonical, and as they are stored */
} brc_node_total;
/* Return 0 if the sum is more than a row can hold, or the difference negative; else 1. */
int brc_node_total_add(brc_node_total *sum, const brc_node_total *more);
int brc_node_total_subtract(brc_node_total *sum, const brc_node_total *less);
int brc_node_total_equal(const brc_node_total *a, const brc_node_total *b);
enum { BRC_TOTAL_NONE, BRC_TOTAL_FOUND, BRC_TOTAL_WRONG }; /* WRONG: the row's values cannot be a sum */
BRC_MUST_USE int brc_node_total_get(brc_store *store, const brc_oid *id, int *state, brc_node_total *out, brc_error *err);
/* Returns 1 if rows can be put now: in a write, outside of scratch mode. */
int brc_store_keeps_totals(const brc_store *store);
/* Writes a node's totals. The caller has found every object under the node. */
BRC_MUST_USE int brc_node_total_put(brc_store *store, const brc_oid *id, const brc_node_total *total, brc_error *err);
/* Drops all totals: stored sizes change, and no index leads from a chunk to the nodes above it. */
BRC_MUST_USE int brc_node_totals_drop(brc_store *store, brc_error *err);

/* ---- chunks in other encodings: derived rows -------------------------------- */

/* Finds the length of a chunk in an encoding in which it is not stored, and the checksum that its object
 * would have if it were stored so. */
BRC_MUST_USE int brc_encoded_get(brc_store *store, const brc_oid *id, int64_t encoding, int *found, uint64_t *length,
                                 uint64_t *digest, brc_error *err);
/* Drops all of these rows: readers compute them again. */
BRC_MUST_USE int brc_encoded_drop(brc_store *store, brc_error *err);
BRC_MUST_USE int brc_encoded_put(brc_store *store, const brc_oid *id, int64_t encoding, uint64_t length, uint64_t digest,
                                 brc_error *err);

/* ---- statistics of chunks: derived rows -------------------------------- */

/* Appends the summary of a chunk's elements from its row; nothing if there is no row. */
BRC_MUST_USE int brc_chunk_stats_get(brc_store *store, const brc_oid *id, uint64_t form, brc_buf *out, brc_error *err);
/* Puts a row, unless the chunk has been removed. */
BRC_MUST_USE int brc_chunk_stats_put(brc_store *store, const brc_oid *id, uint64_t form, brc_span summary, brc_error *err);
/* Drops all of these rows: readers compute them again. */
BRC_MUST_USE int brc_chunk_stats_drop(brc_store *store, brc_error *err);

/* ---- drafts: uncommitted changes -------------------------------- */

enum { /* kinds of drafts: numbers of the file format */
    BRC_DRAFT_SHARED = 1,  /* the branch's own draft, which the command changes   */
    BRC_DRAFT_PRIVATE = 2, /* a draft of one owner                                */
    BRC_DRAFT_MERGE = 3    /* the draft of an open merge, rebase or the like      */
};

typedef struct brc_draft_head {
    int64_t id; /* 0: there is none                                               */
    int kind;
    int has_base, has_tip;
    brc_oid base;    /* the commit that the draft changes; none: the empty snapshot */
    brc_oid tip;     /* the branch's commit that the draft's commit will follow   */
    int64_t changes; /* grows with each transaction that changes the draft        */
    int64_t time_us; /* when the draft was made                                   */
    int saves;       /* the draft may have open savepoints; of a savepoint: others have changed its draft since */
    int logs;        /* the draft may have a log; of a point of a log: the point was taken back */
    int64_t parent;  /* of a child or savepoint: the draft that it belongs to, which may be gone; 0: none */
} brc_draft_head;

/* A whole row of table `draft`. All uncommitted changes are such a row, with rows of nodes, chunks, moves and keys
 * over a commit: shared and private drafts, bulk writes (private drafts that are adopted at their end), open merges,
 * children, and savepoints, which keep an earlier content of their draft (draft_save.c). Text that the row lacks is "" when it is
 * read, and "" or NULL when it is written. */
typedef struct brc_draft_row {
    brc_draft_head draft;
    const char *branch;
    const char *owner; /* a private draft's process, as base/process.h writes it             */
    const char *plan;  /* a JSON object: what an open merge, a savepoint or a rewrite is for */
    int has_other;
    brc_oid other;     /* of an open merge: the second parent of its commit; of a child: its base when it began */
    int parts;         /* BRC_PART_* (db.h) */
} brc_draft_row;
void brc_draft_rows_free(brc_draft_row *rows, size_t n);

/* Finds the draft that a branch's sessions change: its open merge, if it has one, else its shared draft;
 * out->id is 0 if the branch has neither. */
BRC_MUST_USE int brc_draft_shared(brc_store *store, const char *branch, brc_draft_head *out, brc_error *err);
/* Finds a branch's draft of kind BRC_DRAFT_MERGE; a branch has one at most. */
BRC_MUST_USE int brc_draft_merge(brc_store *store, const char *branch, brc_draft_head *out, brc_error *err);
/* A conflict of a merge: a row of table `conflict` (ref.c). A span without data: that side does not have the
 * value. */
typedef struct brc_conflict_row {
    const char *path, *member;
    brc_span key, base, ours, theirs;
    int state; /* 0: open; settled as 1 ours, 2 theirs, 3 by hand */
} brc_conflict_row;
/* Sets or creates a row. */
BRC_MUST_USE int brc_conflict_put(brc_store *store, int64_t draft, const brc_conflict_row *row, brc_error *err);
typedef int (*brc_conflict_fn)(void *ctx, const brc_conflict_row *row, brc_error *err);
/* Calls each() with all conflicts of a draft, by path, member and key. `each` must not use the store. */
BRC_MUST_USE int brc_conflict_each(brc_store *store, int64_t draft, brc_conflict_fn each, void *ctx, brc_error *err);
/* Finds the draft of a number; out->id is 0 if it does not exist or was dropped. */
BRC_MUST_USE int brc_draft_get(brc_store *store, int64_t id, brc_draft_head *out, brc_error *err);
/* Fails with BRC_ESTALE if the draft was dropped, and with it the rows that a bulk write has written. */
BRC_MUST_USE int brc_draft_check_there(brc_store *store, int64_t id, brc_error *err);
/* Finds the private draft of an owner; out->id is 0 if the owner has none. */
BRC_MUST_USE int brc_draft_of_owner(brc_store *store, const char *owner, brc_draft_head *out, brc_error *err);
/* Returns 1 if the draft's tip is still the branch's commit `tip` (has 0: the branch has no commit). */
int brc_draft_follows(const brc_draft_head *draft, int has, const brc_oid *tip);
/* Returns 1 if two drafts have the same base and the same tip. */
int brc_draft_same_version(const brc_draft_head *a, const brc_draft_head *b);
/* Returns 1 if nobody has changed the draft's content between two readings of its head. */
int brc_draft_unchanged(const brc_draft_head *a, const brc_draft_head *b);
/* Lists drafts, the oldest first: all of the file without savepoints, or the open savepoints of one draft and the
 * points of its log, the outermost first, or the one draft of a number, if it is live, or the points of all logs. */
enum { BRC_DRAFTS_ALL, BRC_DRAFTS_SAVES, BRC_DRAFTS_ONE, BRC_DRAFTS_POINTS };
BRC_MUST_USE int brc_draft_list(brc_store *store, int which, int64_t draft, brc_draft_row **out, size_t *n, brc_error *err);
/* Starts a draft like `row`, whose id is ignored; *id is its number. A branch's next shared draft takes
 * over the row and number of the draft that rests (brc_draft_rest()). A private draft
 * with a parent is a child or, if its plan begins with BRC_SAVE_PLAN, a savepoint, which keeps the parent's present
 * content. */
#define BRC_SAVE_PLAN "{\"savepoint\":"
/* The beginning of the plan of a point of a log, a savepoint without a name and an owner. */
#define BRC_POINT_PLAN "{\"savepoint\":null"
/* The beginning of the plan of a private draft with an array that is being made anew (work/bulk_write.c). */
#define BRC_REWRITE_PLAN "{\"rewrite\":"
BRC_MUST_USE int brc_draft_start(brc_store *store, const brc_draft_row *row, int64_t *id, brc_error *err);
/* Sets the commit that the draft's commit will follow (NULL: the branch has no commit). */
BRC_MUST_USE int brc_draft_follow(brc_store *store, int64_t draft, const brc_oid *tip, brc_error *err);
/* Lays a draft without rows over another commit, where its branch is now. Unlike brc_draft_advance() it keeps the log:
 * points that were taken back are for the commit that they were made over (brc_undo() checks that). */
BRC_MUST_USE int brc_draft_go_along(brc_store *store, int64_t draft, const brc_oid *tip, brc_error *err);
/* Gives the draft to another owner, without its savepoints and without a parent. With kind BRC_DRAFT_PRIVATE the new
 * owner is `owner`; NULL: no process, until the draft is adopted or given back. With kind BRC_DRAFT_SHARED the draft
 * becomes the shared draft of `branch` (NULL: of the draft's own branch) or, if it was an open merge before, the
 * branch's open merge; the branch must not have such a draft. */
BRC_MUST_USE int brc_draft_give(brc_store *store, int64_t draft, int kind, const char *owner, const char *branch,
                                brc_error *err);
/* Sets the plan of a private draft, a JSON object that says what the draft is for. */
BRC_MUST_USE int brc_draft_set_plan(brc_store *store, int64_t draft, const char *plan, brc_error *err);
/* Returns 1 if the draft is an open merge, also one whose branch was deleted. */
int brc_draft_row_is_merge(const brc_draft_row *row);
/* Counts a transaction that changes the draft. */
BRC_MUST_USE int brc_draft_touch(brc_store *store, int64_t draft, brc_error *err);
/* Counts the nodes that have rows in the draft. */
BRC_MUST_USE int brc_draft_count(brc_store *store, int64_t draft, uint64_t *nodes, brc_error *err);
/* Drops the draft with all its rows. A large draft is only marked: brc_draft_sweep() deletes some of its rows at the
 * end of each transaction. */
BRC_MUST_USE int brc_draft_delete(brc_store *store, int64_t draft, brc_error *err);
/* Drops a shared draft that was committed, but keeps its row, which no call lists, for the branch's next shared draft. */
BRC_MUST_USE int brc_draft_rest(brc_store *store, int64_t draft, brc_error *err);
/* Deletes the row that brc_draft_rest() has kept for a branch, if there is one. */
BRC_MUST_USE int brc_draft_forget(brc_store *store, const char *branch, brc_error *err);
/* Returns a dropped draft that takes over rows of this one without their paths: later steps delete them. */
BRC_MUST_USE int brc_draft_dropped(brc_store *store, int64_t draft, int64_t *out, brc_error *err);
/* Drops the draft's rows of nodes, chunks and moves, so that it holds no change any more. */
BRC_MUST_USE int brc_draft_empty(brc_store *store, int64_t draft, brc_error *err);
/* Empties the draft as brc_draft_empty() does and makes `commit`, the commit that was made from it, its base. */
BRC_MUST_USE int brc_draft_advance(brc_store *store, int64_t draft, const brc_oid *commit, brc_error *err);
/* Drops the draft's rows of nodes, chunks and moves, and makes `base` its base, a commit that has the same
 * content: the draft still shows the same, and keeps its keys and its tip. The draft must not have savepoints. */
BRC_MUST_USE int brc_draft_lay(brc_store *store, int64_t draft, const brc_oid *base, brc_error *err);
/* Stores whether nothing is changed in the draft and its base is its tip or, for a child, the commit at which it was
 * forked. A head with id 0 is unused. */
BRC_MUST_USE int brc_draft_is_unused(brc_store *store, const brc_draft_head *draft, int *is, brc_error *err);
/* Stores whether a draft has, or had, this number. */
BRC_MUST_USE int brc_draft_was(brc_store *store, int64_t id, int *was, brc_error *err);
/* Stores whether the draft has at most `most` rows of nodes and chunks. Reads that many rows at most. */
BRC_MUST_USE int brc_draft_is_small(brc_store *store, int64_t draft, size_t most, int *is, brc_error *err);
/* Stores whether nothing is changed in the draft. */
BRC_MUST_USE int brc_draft_is_empty(brc_store *store, int64_t draft, int *empty, brc_error *err);
/* Finds the name that the draft's branch has now; the caller frees it. */
BRC_MUST_USE int brc_draft_branch(brc_store *store, int64_t draft, char **branch, brc_error *err);
/* Drops a draft at the end of this transaction, or of the handle's next one: a private draft, even if it has changes; a
 * savepoint; a private draft in which nothing is changed, if it has no children; or, as brc_draft_end() does, with
 * children in which nothing is changed. */
enum { BRC_DROP_ANY, BRC_DROP_SAVE, BRC_DROP_EMPTY, BRC_DROP_END };
void brc_draft_drop_late(brc_store *store, int64_t draft, int which);
/* Drops the draft at once, unless another process holds the lock. */
void brc_draft_drop_soon(brc_store *store, int64_t draft, int which);
BRC_MUST_USE int brc_draft_has_children(brc_store *store, int64_t draft, int *has, brc_error *err);
/* Within a transaction. brc_draft_end() drops the draft and each of its children in which nothing is changed.
 * brc_drafts_drop_unused() drops all private drafts in which nothing is changed and whose processes have ended. */
BRC_MUST_USE int brc_draft_end(brc_store *store, int64_t draft, brc_error *err);
BRC_MUST_USE int brc_drafts_drop_unused(brc_store *store, brc_error *err);
/* Moves a branch's drafts to the branch's new name. */
BRC_MUST_USE int brc_draft_rename(brc_store *store, const char *from, const char *to, brc_error *err);

typedef struct brc_draft_node {
    int64_t node;
    char *path;
    uint8_t *entry; /* NULL: removed                                              */
    size_t entry_len;
} brc_draft_node;
void brc_draft_nodes_free(brc_draft_node *nodes, size_t n);

/* Finds the row of one path: *found 0 or 1; out->path is NULL. */
BRC_MUST_USE int brc_draft_node_get(brc_store *store, int64_t draft, const char *path,
                                    int *found, brc_draft_node *out, brc_error *err);
/* Lists the rows of `path` (if `self`) and of all paths under it, by path. */
BRC_MUST_USE int brc_draft_node_list(brc_store *store, int64_t draft, const char *path,
                                     int self, brc_draft_node **out, size_t *n, brc_error *err);
/* Stores whether more than `most` rows are under `path`. */
BRC_MUST_USE int brc_draft_has_more_under(brc_store *store, int64_t draft, const char *path, uint64_t most, int *has,
                                          brc_error *err);
/* All rows of a draft by path, page by page: each call adds at most `most` rows that follow the last one. */
typedef struct brc_draft_rows {
    void *nodes; /* brc_draft_node[] */
    size_t n, cap;
} brc_draft_rows;
BRC_MUST_USE int brc_draft_node_page(brc_store *store, int64_t draft, brc_draft_rows *rows, size_t most, brc_error *err);
/* Lists the rows of the children of `path`, by path, without reading deeper rows. */
BRC_MUST_USE int brc_draft_child_list(brc_store *store, int64_t draft, const char *path,
                                      brc_draft_node **out, size_t *n, brc_error *err);
/* Sets or creates a row; *node is the row's key. */
BRC_MUST_USE int brc_draft_node_put(brc_store *store, int64_t draft, const char *path,
                                    const void *entry, size_t entry_len, int64_t *node,
                                    brc_error *err);
/* Removes the rows of `path` and of all paths under it, with their chunks. */
BRC_MUST_USE int brc_draft_node_clear(brc_store *store, int64_t draft, const char *path, brc_error *err);
/* Removes one row, with its chunks and the rows below it. */
BRC_MUST_USE int brc_draft_row_drop(brc_store *store, int64_t node, brc_error *err);
/* Removes every chunk of the row of this path, and the rows below it. If there are very many, another row
 * takes its place, with the same entry and document. */
BRC_MUST_USE int brc_draft_row_clear(brc_store *store, int64_t node, const char *path, brc_error *err);
/* Deletes a row that has no chunk and no document any more; its number is not used again. */
BRC_MUST_USE int brc_draft_row_delete(brc_store *store, int64_t node, brc_error *err);
/* A row that was copied ahead, with all rows below it, into a row of another draft. */
typedef struct brc_draft_copied {
    int64_t row, copy;
} brc_draft_copied;
typedef struct brc_draft_copying {
    uint64_t most; /* most chunks to copy now, else the move fails with BRC_ELIMIT; 0: all */
    void *made;    /* brc_draft_copied[]: copies to use; rows over them are copied now */
    size_t n, cap;
    uint64_t rows; /* how many rows there were                                     */
    int is_too_much;
} brc_draft_copying;
/* Moves the rows at and under `from` to `to`, with their chunks; copying not NULL: copies them as new rows. */
BRC_MUST_USE int brc_draft_node_move(brc_store *store, int64_t draft, const char *from, const char *to,
                                     brc_draft_copying *copying, brc_error *err);

/* A node's path and its path before. In a draft, `from` may be "": the base does not have the node. */
typedef struct brc_move {
    char *from, *to;
} brc_move;
void brc_moves_free(brc_move *moves, size_t n);

/* Moves of a draft (draft_save.c). Paths that are read are in normal form, else BRC_ECORRUPT.
* Sets *source to the source of exactly this path, which the caller frees; NULL if the path has no row. */
BRC_MUST_USE int brc_draft_move_get(brc_store *store, int64_t draft, const char *path, char **source, brc_error *err);
/* Lists the moves of `path` and of all paths under it, by path. */
BRC_MUST_USE int brc_draft_move_list(brc_store *store, int64_t draft, const char *path, brc_move **out, size_t *n, brc_error *err);
/* Sets or creates a row. */
BRC_MUST_USE int brc_draft_move_put(brc_store *store, int64_t draft, const char *path, const char *source, brc_error *err);
/* brc_draft_move_drop() removes the row of `path`, brc_draft_move_clear() also all rows under it. */
BRC_MUST_USE int brc_draft_move_drop(brc_store *store, int64_t draft, const char *path, brc_error *err);
BRC_MUST_USE int brc_draft_move_clear(brc_store *store, int64_t draft, const char *path, brc_error *err);
/* Renames the rows at and under `from`, which must not be the root, to `to`. */
BRC_MUST_USE int brc_draft_move_rename(brc_store *store, int64_t draft, const char *from, const char *to, brc_error *err);

/* Documents of a draft (draft_chunk.c): a document's row belongs to the node whose entry names it, and is
 * deleted when the node gets another document. brc_store_get() finds these documents too.
 *
 * brc_draft_doc_put() stores the text of `id` for the node, whose entry names `id` already; it writes no row if
 * the document is an object. */
BRC_MUST_USE int brc_draft_doc_put(brc_store *store, int64_t node, const brc_oid *id, brc_span text, brc_error *err);
BRC_MUST_USE int brc_draft_doc_has(brc_store *store, const brc_oid *id, int *found, brc_error *err);
/* Appends the document's text, which is not checked. */
BRC_MUST_USE int brc_draft_doc_get(brc_store *store, const brc_oid *id, int *found, brc_buf *out, brc_error *err);
/* Drop a node's document, if it has one, before its row is changed or deleted: of a row, or of a path. */
BRC_MUST_USE int brc_draft_doc_drop(brc_store *store, int64_t node, brc_error *err);
BRC_MUST_USE int brc_draft_doc_drop_at(brc_store *store, int64_t draft, const char *path, brc_error *err);
/* Copies the document of `from` to the node `to`, which has the same entry. */
BRC_MUST_USE int brc_draft_doc_copy(brc_store *store, int64_t from, int64_t to, brc_error *err);
/* Stores whether any draft has documents. */
BRC_MUST_USE int brc_draft_docs_any(brc_store *store, int *any, brc_error *err);
/* Finds the draft's next document after `path` and makes `path` its node's path. Returns 1, or 0 at the end. */
BRC_MUST_USE int brc_draft_doc_next(brc_store *store, int64_t draft, brc_buf *path, brc_oid *id, brc_error *err);
/* Stores at most `most` documents after `path`, which is moved on, as objects; in scratch mode keeps them in
 * memory. *more is 1 if the draft may have more. */
BRC_MUST_USE int brc_draft_docs_store(brc_store *store, int64_t draft, brc_buf *path, size_t most, int *more, brc_error *err);

/* The rows that make up one node's uncommitted chunks: the node's own row, the row below it, and so on. A
 * key's value is that of the first row that has the key. */
#define BRC_DRAFT_STACK_MOST 32
typedef struct brc_draft_stack {
    size_t n;
    int64_t node[BRC_DRAFT_STACK_MOST + 1]; /* one more for a bulk write's row on top */
} brc_draft_stack;
/* Reads the stack of `node` and the rows below it. BRC_ECORRUPT if the stack has no end. */
BRC_MUST_USE int brc_draft_stack_get(brc_store *store, int64_t node, brc_draft_stack *out, brc_error *err);
/* Lays one stack over another, whose first row loses its path, without copying chunks. If both together are too
 * high, both are shortened first, which takes time in proportion to their chunks: call
 * brc_draft_stack_shorten() before the transaction to do that in small steps. */
BRC_MUST_USE int brc_draft_stack_lay(brc_store *store, brc_draft_stack *upper, brc_draft_stack *lower, brc_error *err);
/* Makes one step towards a stack of at most `to` rows, 3 or more, with the same content; *done is 1 at the end. */
#define BRC_DRAFT_STACK_SHORT 12
BRC_MUST_USE int brc_draft_stack_shorten(brc_store *store, int64_t node, size_t to, int *done, brc_error *err);
/* Puts an empty row over the node's row, which no call changes from now on. Sets *top to the new row, which takes
 * the path, entry and document. */
BRC_MUST_USE int brc_draft_stack_push(brc_store *store, int64_t node, const char *path, int64_t *top, brc_error *err);
/* Stores whether one row has more than `most` chunks. Reads about that many rows. */
BRC_MUST_USE int brc_draft_row_exceeds(brc_store *store, int64_t node, size_t most, int *exceeds, brc_error *err);

/* Moves a stack to another draft, where its first row's path is free, and gives it this entry. */
BRC_MUST_USE int brc_draft_row_give(brc_store *store, const brc_draft_stack *stack, int64_t draft, const void *entry,
                                    size_t entry_len, brc_error *err);
/* Sets *meet to 1 if both stacks have the same key with different values, or if that cannot be found out in a few
 * statements: both have a row of very many chunks, or are too high together. */
BRC_MUST_USE int brc_draft_stacks_meet(brc_store *store, const brc_draft_stack *a, const brc_draft_stack *b, int *meet,
                                       brc_error *err);

/* Sets a chunk in the node's own row, which hides the rows below it; id NULL: the chunk is dropped. */
BRC_MUST_USE int brc_draft_chunk_put(brc_store *store, int64_t node, const void *key, size_t key_len, const brc_oid *id, brc_error *err);
/* Finds a key's chunk. *state: 0 no row, 1 an id, 2 dropped. */
BRC_MUST_USE int brc_draft_chunk_get(brc_store *store, const brc_draft_stack *stack, const void *key,
                                     size_t key_len, int *state, brc_oid *id, brc_error *err);
typedef int (*brc_draft_chunk_fn)(void *ctx, const uint8_t *key, size_t key_len, const brc_oid *id, brc_error *err);
/* Calls each() with every key of the stack, in order; id NULL: the chunk is dropped. */
BRC_MUST_USE int brc_draft_chunk_each(brc_store *store, const brc_draft_stack *stack, brc_draft_chunk_fn each, void *ctx, brc_error *err);
/* Calls each() with at most `most` keys after the key `after` (data NULL: from the first on). */
BRC_MUST_USE int brc_draft_chunk_page(brc_store *store, const brc_draft_stack *stack, brc_span after, size_t most,
                                      brc_draft_chunk_fn each, void *ctx, brc_error *err);
/* Copies up to BRC_DRAFT_COPY_STEP chunks after the key `after` (empty: from the first on), which is moved on, to
 * the row `into`. *n is the number copied, less at the end. */
#define BRC_DRAFT_COPY_STEP ((size_t)2048)
BRC_MUST_USE int brc_draft_chunk_copy(brc_store *store, const brc_draft_stack *stack, int64_t into, brc_buf *after, size_t *n,
                                      brc_error *err);
BRC_MUST_USE int brc_draft_chunk_any(brc_store *store, const brc_draft_stack *stack, int *any, brc_error *err);
/* Removes the chunk of one key from the node's own row. */
BRC_MUST_USE int brc_draft_chunk_clear(brc_store *store, int64_t node, const void *key, size_t key_len, brc_error *err);

/* Savepoints of a draft (draft_save.c). */
/* Ends the innermost savepoint; `outer`: the next one, or NULL. */
BRC_MUST_USE int brc_draft_save_release(brc_store *store, const brc_draft_row *save, brc_draft_row *outer, brc_error *err);
/* Gives the draft the content that it had when its innermost savepoint was made. The savepoint stays open. */
BRC_MUST_USE int brc_draft_save_restore(brc_store *store, const brc_draft_row *save, brc_error *err);
/* Releases those of a draft's savepoints (all of BRC_DRAFTS_SAVES) whose `draft.kind` was set to 0. Others that were made
 * after them stay. */
BRC_MUST_USE int brc_draft_saves_go(brc_store *store, brc_draft_row *saves, size_t n, brc_error *err);
/* Ends all savepoints of a draft, and its log, and keeps its changes. */
BRC_MUST_USE int brc_draft_saves_end(brc_store *store, int64_t draft, brc_error *err);
/* Prepares the row of a path for a change: if a savepoint has saved the row, a new row takes its place. Sets *save to
 * the innermost savepoint; 0: none. For brc_draft_doc_drop_at(); brc_draft_node_put() and the like prepare rows themselves. */
BRC_MUST_USE int brc_draft_node_own(brc_store *store, int64_t draft, const char *path, int64_t *save, brc_error *err);
/* Stores whether a savepoint has saved the row, so that the row's chunks must not be changed. */
BRC_MUST_USE int brc_draft_row_is_frozen(brc_store *store, int64_t node, int *is, brc_error *err);
/* The log of a shared draft (draft_save.c): each operation of the last few is a point, a savepoint that has what the draft
 * was before the operation; or, after the operation was taken back, what the draft was behind it. */
typedef struct brc_draft_point {
    int64_t id, draft; /* of the point, and of its draft                                     */
    int64_t time_us;   /* when the operation began                                           */
    int64_t after;     /* the last row of the operation log then; 0: none                    */
    int64_t undone;    /* the last row of the operation log when it was taken back; -1: it was not */
    int64_t process;   /* the number of the process that made it                             */
    char *text;        /* what the operation did; the caller frees it                        */
} brc_draft_point;
int brc_draft_row_is_point(const brc_draft_row *row);
BRC_MUST_USE int brc_draft_point_read(brc_draft_point *out, const brc_draft_row *row, brc_error *err);
/* An operation that begins or goes on. */
typedef struct brc_draft_logging {
    const char *branch, *text;
    int is_new; /* else it goes on in the newest point of this process with this text, if no other came after */
} brc_draft_logging;
/* Called before a change of a draft that has savepoints or a log, or that gets one: marks the savepoints of other owners
 * (owner NULL: of all), drops the points that were taken back, and adds a point; op NULL: the log ends. */
BRC_MUST_USE int brc_draft_log_change(brc_store *store, const brc_draft_head *draft, const char *owner,
                                      const brc_draft_logging *op, brc_error *err);
/* Adds the point of an operation that made the whole draft. */
BRC_MUST_USE int brc_draft_log_whole(brc_store *store, const brc_draft_head *draft, const brc_draft_logging *op, brc_error *err);
/* Stores whether something was changed since the draft's newest point. */
BRC_MUST_USE int brc_draft_point_has_changes(brc_store *store, const brc_draft_row *point, int *has, brc_error *err);
/* Takes back the operation of the newest point that was not taken back or, if it was, does it again: the oldest one that was. */
BRC_MUST_USE int brc_draft_point_swap(brc_store *store, const brc_draft_row *point, brc_error *err);
/* Forgets the points that were made before `since_us`. */
BRC_MUST_USE int brc_draft_logs_forget(brc_store *store, int64_t since_us, brc_error *err);
/* Copies all keys of a draft to a savepoint. */
BRC_MUST_USE int brc_draft_keys_keep(brc_store *store, int64_t draft, int64_t save, brc_error *err);

/* Keys of a draft (draft_chunk.c). A row wins over the node or chunk that has its key. */
enum {
    BRC_KEY_NO_ROW, /* the key is that of a node or chunk, or does not exist            */
    BRC_KEY_LOOSE,  /* bytes of an object that do not belong to a node or chunk yet     */
    BRC_KEY_HIDDEN  /* a document's key: the node exists, but its document has no key   */
};
BRC_MUST_USE int brc_draft_key_get(brc_store *store, int64_t draft, const char *key, int *state, brc_oid *id, brc_error *err);
BRC_MUST_USE int brc_draft_key_any(brc_store *store, int64_t draft, int *any, brc_error *err);
/* Sets a key's row; id NULL: hidden. */
BRC_MUST_USE int brc_draft_key_put(brc_store *store, int64_t draft, const char *key, const brc_oid *id, brc_error *err);
BRC_MUST_USE int brc_draft_key_drop(brc_store *store, int64_t draft, const char *key, brc_error *err);
/* Remove all keys that begin with `prefix`; _loose: only keys with bytes, except those of documents. */
BRC_MUST_USE int brc_draft_key_clear_loose(brc_store *store, int64_t draft, const char *prefix, brc_error *err);
BRC_MUST_USE int brc_draft_key_clear(brc_store *store, int64_t draft, const char *prefix, brc_error *err);
/* Copies all keys that begin with `from` to keys that begin with `to`, in the same or another draft. */
BRC_MUST_USE int brc_draft_key_copy(brc_store *store, int64_t draft, const char *from, int64_t to_draft, const char *to,
                                    brc_error *err);
/* Returns 1 with the first key that has different rows in both drafts, or 0 if there is none. */
BRC_MUST_USE int brc_draft_keys_meet(brc_store *store, int64_t a, int64_t b, brc_buf *key, brc_error *err);
typedef int (*brc_draft_key_fn)(void *ctx, const char *key, const brc_oid *id, brc_error *err);
/* Calls each() with keys that begin with `prefix`, by key: at most `most`, from the text `from` on (NULL: from
 * the first on); id NULL: hidden. `each` must not use the store. */
BRC_MUST_USE int brc_draft_key_page(brc_store *store, int64_t draft, const char *prefix, const char *from, size_t most,
                                    brc_draft_key_fn each, void *ctx, brc_error *err);

#endif
