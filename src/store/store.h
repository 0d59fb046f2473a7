/*
 * The store: one SQLite file with objects, refs and uncommitted changes.
 *
 * Objects are immutable and named by the hash of their canonical bytes; what a
 * row says about their stored bytes is verified before a codec sees them. A store
 * belongs to one thread at a time.
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
/* From now on it finds there what other stores of this file have read, and they what it has. */
void brc_store_share(brc_store *store, brc_shared *shared);
const char *brc_store_path(const brc_store *store);
/* Its absolute path. From any thread. */
const char *brc_store_file(const brc_store *store);
/* While fsck runs, errors about damage do not say to run it. */
void brc_store_checking(brc_store *store, int is_checked);
int brc_store_hash(const brc_store *store);
size_t brc_store_id_len(const brc_store *store);
const uint8_t *brc_store_secret(const brc_store *store); /* BRC_SECRET_LEN bytes */
int brc_store_readonly(const brc_store *store);
/* Nodes of the hierarchy that one call may visit: history/tree_walk.h counts them. */
uint64_t brc_store_max_nodes(const brc_store *store);
/* From any thread or signal handler. */
void brc_store_interrupt(brc_store *store);
void brc_store_interrupt_clear(brc_store *store);
BRC_MUST_USE int brc_store_check_interrupt(brc_store *store, brc_error *err);
/* Not 0 once it is interrupted. From any thread. */
const atomic_int *brc_store_interrupted(const brc_store *store);

/* Write transactions nest; only the outermost end commits, and only if no inner one
 * asked to undo. Read transactions keep one view of refs and drafts, until one is paused. */
BRC_MUST_USE int brc_store_begin(brc_store *store, brc_error *err);
/* With keep 0 it undoes everything since the outermost begin and never fails. */
BRC_MUST_USE int brc_store_end(brc_store *store, int keep, brc_error *err);
/* Begins a write only if no transaction is open and the lock is free at once: 1 if it has begun. */
int brc_store_try_begin(brc_store *store);
BRC_MUST_USE int brc_store_begin_read(brc_store *store, brc_error *err);
void brc_store_end_read(brc_store *store);
/* Lets go of the lock in the middle of a read, before something that takes its time: decoding,
 * handing over, waiting. What is read next, which takes the lock again, may be of a later state.
 * Within a write, and outside of a read, it does nothing. */
void brc_store_pause_read(brc_store *store);
/* The same if the lock has been held for 20 ms: in loops over what never changes. */
void brc_store_breathe(brc_store *store);
/* While a read is held it is not paused: what is looked at must be of one state. 1 begins, 0 ends;
 * pairs nest. */
void brc_store_hold_read(brc_store *store, int is_held);
/* Bulk writes (bulk.c). Between begin and finish or cancel, brc_store_begin() and _end() are a change
 * of many transactions; only while it `admits`, the result is what it was before. */
BRC_MUST_USE int brc_store_bulk_begin(brc_store *store, brc_error *err);
/* Which draft its rows belong to: where that is gone, the next batch is BRC_ESTALE. */
void brc_store_bulk_goes_into(brc_store *store, int64_t draft);
int brc_store_bulk_admit(brc_store *store, int admits);
/* As brc_store_begin() in one that has begun, without the lock: that is taken with the first row that is written. */
void brc_store_bulk_enter(brc_store *store);
int brc_store_in_bulk(const brc_store *store);
/* How many transactions of it are in the file. */
uint64_t brc_store_bulk_batches(const brc_store *store);
/* Lets others in, if the transaction has much in it or lasts long; `now`: in any case, before
 * something that may wait for ever. Outside of a bulk write it does nothing. */
BRC_MUST_USE int brc_store_rest(brc_store *store, int now, brc_error *err);
/* A transaction is begun again, if none is open: what is looked up now is so until it ends. */
BRC_MUST_USE int brc_store_wake(brc_store *store, brc_error *err);
/* What was written so far is in the file, or will be with the write that has begun now: it ends with
 * brc_store_end(). */
BRC_MUST_USE int brc_store_bulk_finish(brc_store *store, brc_error *err);
/* Undoes the transaction that is open; earlier ones are in the file. */
void brc_store_bulk_cancel(brc_store *store);
/* Differs from one call to the next if another connection has changed the file in between. */
BRC_MUST_USE int brc_store_others(brc_store *store, int64_t *version, brc_error *err);
/* Between these, pages of the hash index are kept in memory: a walk through much of
 * history needs them in random order, again and again. Pairs nest. */
void brc_store_walk_begin(brc_store *store);
void brc_store_walk_end(brc_store *store);
/* Whether this is a child of the process that opened it: no call may touch the file then. */
int brc_store_is_forked(const brc_store *store);
/* BRC_EMISUSE there. From any thread. */
BRC_MUST_USE int brc_store_check_process(const brc_store *store, brc_error *err);
/* How many transactions this connection has undone, and whether one that writes is open. */
uint64_t brc_store_undone(const brc_store *store);
int brc_store_in_write(const brc_store *store);
/* Fails with BRC_EREADONLY if the file cannot be written. */
BRC_MUST_USE int brc_store_writable(brc_store *store, brc_error *err);
/* Counts changes of refs and drafts by this or another connection: if two numbers are
 * equal, nothing has changed in between. */
BRC_MUST_USE int brc_store_version(brc_store *store, uint64_t *version, brc_error *err);

/* ---- objects -------------------------------- */

/* A row of the hash index. */
typedef struct brc_object {
    brc_oid id;
    int kind;
    int64_t encoding; /* 0: stored as the canonical bytes                       */
    int64_t backend; /* 0: in the file                                          */
    int64_t place;
    uint64_t offset; /* of the stored bytes there                                 */
    uint64_t size, stored;
    uint64_t checksum, guard;
    uint64_t digest; /* of the encoding; it seeds the checksum                  */
    int found;
} brc_object;

/* The order in which stored bytes lie: <0, 0, >0. */
int brc_object_place_order(const brc_object *a, const brc_object *b);
/* Looks up n ids, in the order of their hashes, and sets `found` in each. */
BRC_MUST_USE int brc_objects_find(brc_store *store, brc_object *const *objects, size_t n, brc_error *err);
/* Reads the stored bytes into memory for object->stored bytes. The caller verifies
 * their checksum: brc_object_verify(), on any thread. BRC_ESTALE: they are not there (any more),
 * see brc_object_find_again(). */
BRC_MUST_USE int brc_object_fetch(brc_store *store, const brc_object *object, uint8_t *into, brc_error *err);
/* Looks up an object whose bytes are not where they were when it was looked up: others may have
 * moved or encoded them otherwise since then. `gone` is the error of the fetch. BRC_ESTALE: the object
 * is gone; BRC_ECORRUPT: it is where it was, and its bytes are not. */
BRC_MUST_USE int brc_object_find_again(brc_store *store, brc_object *object, const brc_error *gone, brc_error *err);
/* BRC_ECORRUPT: the bytes are not there, and it was looked up again. */
int brc_object_gone(brc_store *store, const brc_object *object, const brc_error *gone, brc_error *err);
/* The same, looked up once more where it was moved; *into holds no other bytes. */
BRC_MUST_USE int brc_object_load(brc_store *store, brc_object *object, brc_buf *into, brc_error *err);
BRC_MUST_USE int brc_object_verify(const brc_object *object, const void *stored, brc_error *err);
/* Adds a row for stored bytes that were put into the backend object->backend: `at` says where.
 * The caller has filled in size, stored, kind, encoding, checksum and guard. The id must not be
 * there yet. */
BRC_MUST_USE int brc_object_record(brc_store *store, const brc_object *object, const brc_stored *at, brc_error *err);
/* Stored bytes of an object that shares a row with others, in the file itself. */
#define BRC_SMALL_MOST (INT64_C(128) << 10)
/* In a bulk write: so many bytes of the row of stored bytes, which were put in this transaction, have no
 * object yet; below 0: so many that had none have one now. Noted before the transaction ends. Until
 * then the row stays, and gc takes it only when nobody goes on: look again after others have
 * changed the file. */
BRC_MUST_USE int brc_row_ahead(brc_store *store, int64_t seq, int64_t bytes, brc_error *err);
/* What this transaction has put, and noted of rows, is in the tables now, and not only at its end. */
BRC_MUST_USE int brc_rows_settle(brc_store *store, brc_error *err);
/* Whether the row is there, with at least so many bytes that have no object: of rows that are settled. */
BRC_MUST_USE int brc_row_is_ahead(brc_store *store, int64_t seq, uint64_t bytes, int *is_there, brc_error *err);
/* BRC_ECORRUPT if anything but a chunk or a document is encoded. */
BRC_MUST_USE int brc_object_check_plain(brc_store *store, const brc_object *object, brc_error *err);
/* BRC_ECORRUPT: something refers to this id, and there is no such object. From any thread. */
int brc_object_missing(const brc_oid *id, brc_error *err);
/* BRC_ECOLLISION: what is stored under this id is something else. From any thread. */
int brc_object_collides(const brc_store *store, const brc_oid *id, brc_error *err);
/* Lets a row point to other stored bytes of the same content (re-encoding), which were put
 * like those of a new one. Of the old ones only those in the file are dropped. */
BRC_MUST_USE int brc_object_replace(brc_store *store, const brc_object *object, const brc_stored *at, brc_error *err);

/* Small objects: documents, which are compressed where that is worth it, nodes and commits. Put gives the id and
 * adds the object if it is not there. Get checks kind, checksum and id. Nodes and
 * documents are cached. */
BRC_MUST_USE int brc_store_put(brc_store *store, int kind, const void *data, size_t len, brc_oid *id, brc_error *err);
/* Borrowed until the next call on the store. */
BRC_MUST_USE int brc_store_get(brc_store *store, int kind, const brc_oid *id, brc_span *out, brc_error *err);

/* Between these, brc_store_put() keeps objects in memory and leaves the file
 * unchanged, to look at what a commit would be. These calls do not nest. */
void brc_store_scratch_begin(brc_store *store);
void brc_store_scratch_end(brc_store *store);
/* From now on objects go into the file again; those that are kept in memory can be read until the end. */
void brc_store_scratch_pause(brc_store *store);

/* The next rows of the index after `after` (zero: from the start), by id: at most
 * `cap`; *n is 0 at the end. A row that contradicts itself is not `found`. */
BRC_MUST_USE int brc_objects_page(brc_store *store, const brc_oid *after, brc_object *out, size_t cap, size_t *n, brc_error *err);
/* Checks SQLite's own structures: `found` gets a line for each fault (check.c). */
BRC_MUST_USE int brc_store_check_file(brc_store *store, int (*found)(void *ctx, const char *line), void *ctx, brc_error *err);
/* The same for the form of every row: types, lengths, which rows belong together. */
BRC_MUST_USE int brc_store_check_rows(brc_store *store, int (*found)(void *ctx, const char *line), void *ctx, brc_error *err);
/* Every commit's id, or every id in the operation log, without malformed ones. */
enum { BRC_IDS_OF_COMMITS = 1, BRC_IDS_IN_OPLOG = 2 };
BRC_MUST_USE int brc_store_each_id(brc_store *store, int what, int (*each)(void *ctx, const brc_oid *id, brc_error *err),
                                   void *ctx, brc_error *err);
BRC_MUST_USE int brc_store_each_encoding(brc_store *store, int (*each)(void *ctx, int64_t encoding, brc_error *err), void *ctx,
                                         brc_error *err);
/* Ids of `kind` that begin with these hex digits: at most two. */
BRC_MUST_USE int brc_objects_by_prefix(brc_store *store, int kind, const char *hex, brc_oid found[2], size_t *n, brc_error *err);
/* A setting of the whole file, as JSON: 1 with its text, which is appended with a NUL behind it, or 0
 * where it is not set; and setting it, within a write (NULL: it is not set any more). */
BRC_MUST_USE int brc_setting_find(brc_store *store, const char *name, brc_buf *out, brc_error *err);
BRC_MUST_USE int brc_setting_put(brc_store *store, const char *name, const char *json, brc_error *err);
/* Whether reading a chunk compares what it decodes to with the chunk's id. What is stored is always compared with
 * its checksum. Handles that are open keep what they found, but for this one. */
BRC_MUST_USE int brc_verify_get(brc_store *store, int *full, brc_error *err);
BRC_MUST_USE int brc_verify_set(brc_store *store, int full, brc_error *err);
int brc_store_verifies_all(const brc_store *store);
/* WAL mode (journal_mode.c): what the file asks for, in or outside a transaction. To set it a handle
 * must be in none, and to unset it the only one. */
BRC_MUST_USE int brc_journal_get(brc_store *store, int *wal, brc_error *err);
BRC_MUST_USE int brc_journal_set(brc_store *store, int wal, brc_error *err);
/* Bytes of the log beside the file that belongs to it now. */
uint64_t brc_store_log_bytes(const brc_store *store);
BRC_MUST_USE int brc_store_totals(brc_store *store, brc_stats *out, brc_error *err);

/* ---- backends: where the stored bytes of chunks lie --------------------------------
 * Number 0 is the file itself. All else than chunks lies there. */

#define BRC_BACKEND_SOURCE "backend" /* of an error */
typedef struct brc_store_backend brc_store_backend; /* one that was opened for this store */
/* The number of a specification in full form, which is added if it is new. */
BRC_MUST_USE int brc_backend_intern(brc_store *store, const char *spec, int64_t *id, brc_error *err);
/* The same, without adding it: -1 if it is not there. */
BRC_MUST_USE int brc_backend_find(brc_store *store, const char *spec, int64_t *id, brc_error *err);
/* The one of a number, opened the first time; it is there until the store is closed.
 * BRC_EUNSUPPORTED if this build lacks it. */
BRC_MUST_USE int brc_backend_use(brc_store *store, int64_t id, brc_store_backend **out, brc_error *err);
/* Whether fetch and put may be called on any thread. Else they belong to the caller's. */
int brc_backend_on_workers(const brc_store_backend *b);
/* Whether it is the file itself, which is put into within a transaction. */
int brc_backend_is_inline(const brc_store_backend *b);
/* What is asked of the object's backend: the caller sets `into`, and `place` where it has one. */
void brc_object_ask(const brc_object *object, brc_stored *out);
/* The name of the place that it lies in, borrowed until the next call on the store; NULL: none. */
BRC_MUST_USE int brc_object_place(brc_store_backend *b, const brc_object *object, const char **name, brc_error *err);
/* As breccia_backend.h says. BRC_ESTALE: something is not there; it may have been moved
 * (brc_object_find_again()). Where several are asked for and this fails, each can be asked for again by
 * itself, for its own error. */
BRC_MUST_USE int brc_backend_fetch(const brc_store_backend *b, size_t n, brc_stored *const *items, brc_error *err);
/* Whoever makes the items clears them when their rows are written: brc_stored_clear(). */
BRC_MUST_USE int brc_backend_put(brc_store_backend *b, size_t n, brc_stored *const *items, brc_error *err);
/* Of what could not be removed `status` says so; the first failure is the result. */
BRC_MUST_USE int brc_backend_drop(const brc_store_backend *b, size_t n, brc_stored *const *items, brc_error *err);
void brc_stored_clear(brc_stored *stored);
/* Makes durable what was put so far: between put and the transaction whose rows name it. What was not flushed then is
 * flushed before the transaction's end. */
BRC_MUST_USE int brc_backend_flush_puts(brc_store_backend *b, brc_error *err);

/* ---- encodings -------------------------------- */

/* The number of an encoding's specification, which is added if it is new. */
BRC_MUST_USE int brc_encoding_intern(brc_store *store, const char *spec, int64_t *id, brc_error *err);
/* brc_hash_encoding() of its specification. */
BRC_MUST_USE int brc_encoding_digest(brc_store *store, int64_t id, uint64_t *digest, brc_error *err);
/* The same as intern, without adding it: -1 if it is not there. */
BRC_MUST_USE int brc_encoding_find(brc_store *store, const char *spec, int64_t *id, brc_error *err);
/* Its specification, borrowed until the next call on the store; NULL for encoding 0. */
BRC_MUST_USE int brc_encoding_spec(brc_store *store, int64_t id, const char **spec, brc_error *err);
/* Its chain, borrowed from the store; NULL for encoding 0, and for opaque ones, whose
 * objects are the bytes of chunks that could not be decoded when they were stored.
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
/* BRC_ENOTFOUND if there is none. */
BRC_MUST_USE int brc_ref_get(brc_store *store, const char *name, int *has_target, brc_oid *target, brc_error *err);
/* Rows whose name begins with `prefix`, by name. */
BRC_MUST_USE int brc_ref_list(brc_store *store, const char *prefix, brc_ref_row **out, size_t *n, brc_error *err);
/* Sets or creates a ref; target NULL: a branch without a commit. If `check`, its
 * target must be *expect (NULL: none, or no such ref), else BRC_ESTALE. */
BRC_MUST_USE int brc_ref_put(brc_store *store, const char *name, const brc_oid *target, const char *message,
                             const char *op, int check, const brc_oid *expect, int64_t time_us, brc_error *err);
BRC_MUST_USE int brc_ref_delete(brc_store *store, const char *name, int64_t time_us, brc_error *err);
/* Its target at that time, from the operation log. BRC_ENOTFOUND before the first. */
BRC_MUST_USE int brc_ref_at(brc_store *store, const char *name, int64_t time_us, brc_oid *target, brc_error *err);
/* The operation log (ref.c). What one transaction changes is one operation: its rows name the first.
 * Writes a row without moving a ref. */
BRC_MUST_USE int brc_oplog_add(brc_store *store, const char *op, const char *name,
                               const brc_oid *from, const brc_oid *to, int64_t time_us,
                               brc_error *err);
/* Another branch is the current one: a row for the one before, then one for it. */
BRC_MUST_USE int brc_oplog_switch(brc_store *store, const char *from, const char *to, int64_t time_us, brc_error *err);
/* Rows that are written from now on take back the operation `undoes`, or the undoing `restores`, each by its first row;
 * 0 and 0: neither, as before. */
void brc_oplog_takes_back(brc_store *store, int64_t undoes, int64_t restores);
/* The last row keeps what was uncommitted on a branch that went. */
BRC_MUST_USE int brc_oplog_keeps(brc_store *store, int64_t draft, brc_error *err);

typedef struct brc_oplog_row {
    int64_t seq, time_us;
    int64_t first; /* seq of its operation's first row, perhaps this one           */
    int64_t undoes, restores, draft; /* 0: none                                    */
    int has_old, has_new;
    brc_oid from, to; /* the ref's target before and after                         */
    char *op, *name;
} brc_oplog_row;
void brc_oplog_rows_free(brc_oplog_row *rows, size_t n);
/* At most `most` rows before that of the number `before` (0: the newest), the newest first. */
BRC_MUST_USE int brc_oplog_page(brc_store *store, int64_t before, size_t most, brc_oplog_row **out, size_t *n, brc_error *err);
/* The rows of the operation that begins with `first`, in order; the last row of a ref that did this operation, took it
 * back or did it again. *n is 0 where the log has none. */
BRC_MUST_USE int brc_oplog_last_of(brc_store *store, const char *name, int64_t operation, brc_oplog_row **out, size_t *n,
                                   brc_error *err);
BRC_MUST_USE int brc_oplog_operation(brc_store *store, int64_t first, brc_oplog_row **out, size_t *n, brc_error *err);

/* The current branch's name, borrowed until the next change. */
BRC_MUST_USE int brc_head_get(brc_store *store, const char **branch, brc_error *err);
BRC_MUST_USE int brc_head_set(brc_store *store, const char *branch, brc_error *err);

/* *same: 1 if the commit has a derived row that agrees with it. */
BRC_MUST_USE int brc_commit_info_check(brc_store *store, const brc_commit *commit, int *same, brc_error *err);
/* What its derived row says is its generation; not positive: there is none, or it is damaged. */
BRC_MUST_USE int brc_commit_generation(brc_store *store, const brc_oid *id, int64_t *out, brc_error *err);
/* The derived row of a commit. */
BRC_MUST_USE int brc_commit_info_put(brc_store *store, const brc_commit *commit, brc_error *err);

/* ---- totals of map nodes: derived rows -------------------------------- */

/* What hangs under a map node, each chunk as often as a key leads to it. */
typedef struct brc_node_total {
    uint64_t arrays, groups, chunks;
    uint64_t size, stored; /* bytes of the chunks: canonical, and as they are stored */
} brc_node_total;
/* 0 if the sum would be more than a row can hold, or the difference negative. */
int brc_node_total_add(brc_node_total *sum, const brc_node_total *more);
int brc_node_total_subtract(brc_node_total *sum, const brc_node_total *less);
int brc_node_total_equal(const brc_node_total *a, const brc_node_total *b);
enum { BRC_TOTAL_NONE, BRC_TOTAL_FOUND, BRC_TOTAL_WRONG }; /* WRONG: no sum at all */
BRC_MUST_USE int brc_node_total_get(brc_store *store, const brc_oid *id, int *state, brc_node_total *out, brc_error *err);
/* Whether rows can be put now: in a write, outside of scratch mode. */
int brc_store_keeps_totals(const brc_store *store);
/* The caller has found every object under the node. */
BRC_MUST_USE int brc_node_total_put(brc_store *store, const brc_oid *id, const brc_node_total *total, brc_error *err);
/* All of them: stored sizes change, and no index leads from a chunk to the nodes above it. */
BRC_MUST_USE int brc_node_totals_drop(brc_store *store, brc_error *err);

/* ---- chunks in other encodings: derived rows -------------------------------- */

/* What a chunk has in an encoding in which it is not stored: how many bytes, and what its object's
 * checksum would be if they were stored. */
BRC_MUST_USE int brc_encoded_get(brc_store *store, const brc_oid *id, int64_t encoding, int *found, uint64_t *length,
                                 uint64_t *digest, brc_error *err);
/* All of them: they are learned again. */
BRC_MUST_USE int brc_encoded_drop(brc_store *store, brc_error *err);
BRC_MUST_USE int brc_encoded_put(brc_store *store, const brc_oid *id, int64_t encoding, uint64_t length, uint64_t digest,
                                 brc_error *err);

/* ---- drafts: uncommitted changes -------------------------------- */

enum { /* kinds of drafts: numbers of the file format */
    BRC_DRAFT_SHARED = 1,  /* the branch's own: what the command works on         */
    BRC_DRAFT_PRIVATE = 2, /* of its owner alone                                  */
    BRC_DRAFT_MERGE = 3    /* of a merge and the like that is not settled         */
};

typedef struct brc_draft_head {
    int64_t id; /* 0: there is none                                               */
    int kind;
    int has_base, has_tip;
    brc_oid base;    /* the commit that it is laid over; none: the empty snapshot */
    brc_oid tip;     /* the branch's commit that its commit follows               */
    int64_t changes; /* grows with each transaction that changes it               */
    int64_t time_us; /* when it was made                                          */
    int saves;       /* it may have savepoints that are open                      */
    int is_child;    /* of another: it is joined with that (draft.c)        */
} brc_draft_head;

typedef struct brc_draft_row {
    brc_draft_head draft;
    const char *branch;
    const char *owner; /* of a private one: the process, as base/process.h writes it      */
    const char *plan;  /* as in the file; "": none. Of a new one it does not count        */
} brc_draft_row;
void brc_draft_rows_free(brc_draft_row *rows, size_t n);

/* What a branch's sessions work on: its open merge, if it has one, else its shared draft; out->id is 0
 * where it has neither. */
BRC_MUST_USE int brc_draft_shared(brc_store *store, const char *branch, brc_draft_head *out, brc_error *err);
/* A branch's draft of kind BRC_DRAFT_MERGE; it has one at most. */
BRC_MUST_USE int brc_draft_merge(brc_store *store, const char *branch, brc_draft_head *out, brc_error *err);
/* Of such a draft, whose branch has none yet: the commit that is the other parent (NULL: its commit has one
 * parent) and the plan, a JSON object. */
BRC_MUST_USE int brc_draft_merge_start(brc_store *store, const brc_draft_row *row, const brc_oid *other, const char *plan,
                                       int64_t *id, brc_error *err);
BRC_MUST_USE int brc_draft_merge_plan(brc_store *store, int64_t draft, int *has_other, brc_oid *other, char **plan,
                                      brc_error *err);
/* Its conflicts: rows of table `conflict` (ref.c). A span without data: it is not there. */
typedef struct brc_conflict_row {
    const char *path, *member;
    brc_span key, base, ours, theirs;
    int state; /* 0: it is open; 1 ours, 2 theirs, 3 by hand */
} brc_conflict_row;
/* Sets or creates a row. */
BRC_MUST_USE int brc_conflict_put(brc_store *store, int64_t draft, const brc_conflict_row *row, brc_error *err);
typedef int (*brc_conflict_fn)(void *ctx, const brc_conflict_row *row, brc_error *err);
/* All of a draft, by path, member and key. `each` must not use the store. */
BRC_MUST_USE int brc_conflict_each(brc_store *store, int64_t draft, brc_conflict_fn each, void *ctx, brc_error *err);
/* That of a number; out->id is 0 where there is none, or it was dropped. */
BRC_MUST_USE int brc_draft_get(brc_store *store, int64_t id, brc_draft_head *out, brc_error *err);
/* BRC_ESTALE: it is gone, and what a bulk write has written with it. */
BRC_MUST_USE int brc_draft_check_there(brc_store *store, int64_t id, brc_error *err);
/* The private one of an owner: likewise. */
BRC_MUST_USE int brc_draft_of_owner(brc_store *store, const char *owner, brc_draft_head *out, brc_error *err);
/* Whether this is still where the branch is: its tip (has 0: it has no commit). */
int brc_draft_follows(const brc_draft_head *draft, int has, const brc_oid *tip);
/* Whether two lie over one commit and follow one. */
int brc_draft_same_version(const brc_draft_head *a, const brc_draft_head *b);
/* Whether nobody has changed what it shows between two looks at it. */
int brc_draft_unchanged(const brc_draft_head *a, const brc_draft_head *b);
/* All of them, the oldest first. */
BRC_MUST_USE int brc_draft_list(brc_store *store, brc_draft_row **out, size_t *n, brc_error *err);
/* A new one like `row`, whose id does not count; *id is its number. A branch's next shared draft takes
 * the row of the one that rests, with its number. */
BRC_MUST_USE int brc_draft_start(brc_store *store, const brc_draft_row *row, int64_t *id, brc_error *err);
/* Its commit is to follow this one (NULL: the branch has none). */
BRC_MUST_USE int brc_draft_follow(brc_store *store, int64_t draft, const brc_oid *tip, brc_error *err);
/* It becomes private, this process's; owner NULL: the shared one of its branch, which has none. */
BRC_MUST_USE int brc_draft_set_owner(brc_store *store, int64_t draft, const char *owner, brc_error *err);
/* Of a private one: what it is, a JSON object. */
BRC_MUST_USE int brc_draft_set_plan(brc_store *store, int64_t draft, const char *plan, brc_error *err);
/* A shared one, or an open merge, stays when its branch goes: private, nobody's; and becomes what it was, of a branch
 * that has none. */
BRC_MUST_USE int brc_draft_keep(brc_store *store, int64_t draft, brc_error *err);
BRC_MUST_USE int brc_draft_give_back(brc_store *store, int64_t draft, const char *branch, brc_error *err);
/* Whether it is an open merge whose branch went. */
BRC_MUST_USE int brc_draft_is_kept_merge(brc_store *store, int64_t draft, int *is, brc_error *err);
/* Counts a transaction that changes it. */
BRC_MUST_USE int brc_draft_touch(brc_store *store, int64_t draft, brc_error *err);
/* How many nodes have rows in it. */
BRC_MUST_USE int brc_draft_count(brc_store *store, int64_t draft, uint64_t *nodes, brc_error *err);
/* Drops the draft with all its rows. */
/* Large ones are only marked: brc_draft_sweep() deletes some of their rows, at the end of each transaction. */
BRC_MUST_USE int brc_draft_delete(brc_store *store, int64_t draft, brc_error *err);
/* The same, of a shared one that was committed: its row stays for the branch's next, and is seen by nobody till then. */
BRC_MUST_USE int brc_draft_rest(brc_store *store, int64_t draft, brc_error *err);
/* Deletes that row, if there is one. */
BRC_MUST_USE int brc_draft_forget(brc_store *store, const char *branch, brc_error *err);
/* A dropped draft that takes rows of this one, whose paths go: they are deleted in later steps. */
BRC_MUST_USE int brc_draft_dropped(brc_store *store, int64_t draft, int64_t *out, brc_error *err);
/* Drops its rows of nodes, chunks and moves: nothing is changed in it any more. */
BRC_MUST_USE int brc_draft_empty(brc_store *store, int64_t draft, brc_error *err);
/* The same, and it is laid over this commit, its own, from now on. */
BRC_MUST_USE int brc_draft_advance(brc_store *store, int64_t draft, const brc_oid *commit, brc_error *err);
/* Its rows of nodes, chunks and moves go, and it is laid over this commit, which has what they said: what it
 * shows stays, and so do its keys and what its commit is to follow. It has no savepoints. */
BRC_MUST_USE int brc_draft_lay(brc_store *store, int64_t draft, const brc_oid *base, brc_error *err);
/* Whether nothing is changed in it, and its base is the commit that its own is to follow; of a child, that at which it was
 * forked. Also of none (id 0). */
BRC_MUST_USE int brc_draft_is_unused(brc_store *store, const brc_draft_head *draft, int *is, brc_error *err);
/* Whether a draft has, or had, this number. */
BRC_MUST_USE int brc_draft_was(brc_store *store, int64_t id, int *was, brc_error *err);
/* A draft that is the child of another (draft.c). */
typedef struct brc_draft_child {
    int64_t parent;   /* whose: that may be gone                                   */
    int has_fork;
    brc_oid fork;     /* the commit that was its base when it began; none: the empty snapshot */
    brc_json *plan;   /* a JSON object                                             */
} brc_draft_child;
/* A new one like `row`, over the commit that it was forked at. The plan begins with "fork", the parent's number. */
BRC_MUST_USE int brc_draft_child_start(brc_store *store, const brc_draft_row *row, const char *plan, int64_t *id,
                                       brc_error *err);
/* 1 if it is one, and 0 with nothing to dispose of if not. */
BRC_MUST_USE int brc_draft_child_read(brc_store *store, int64_t draft, brc_draft_child *out, brc_error *err);
void brc_draft_child_dispose(brc_draft_child *child);
/* Whether it has at most so many rows of nodes and chunks: costs reading these. */
BRC_MUST_USE int brc_draft_is_small(brc_store *store, int64_t draft, size_t most, int *is, brc_error *err);
/* Whether nothing is changed in it. */
BRC_MUST_USE int brc_draft_is_empty(brc_store *store, int64_t draft, int *empty, brc_error *err);
/* Its branch's name now, which the caller frees. */
BRC_MUST_USE int brc_draft_branch(brc_store *store, int64_t draft, char **branch, brc_error *err);
/* Drops it where it is private, nothing is changed in it and it has no children, or with_children as brc_draft_end() does. It
 * does not wait for a lock that another holds: then the next transaction of this handle drops it. */
void brc_draft_drop_empty(brc_store *store, int64_t draft, int with_children);
/* The same, without children, at the end of this transaction. */
void brc_draft_drop_at_end(brc_store *store, int64_t draft);
BRC_MUST_USE int brc_draft_has_children(brc_store *store, int64_t draft, int *has, brc_error *err);
/* Within a transaction. What a draft was to be is over: it goes if nothing is changed in it, and so does each of its children.
 * And of processes that have ended: all private ones in which nothing is changed. */
BRC_MUST_USE int brc_draft_end(brc_store *store, int64_t draft, brc_error *err);
BRC_MUST_USE int brc_drafts_drop_unused(brc_store *store, brc_error *err);
/* The next transaction of this handle drops a private draft, whatever is in it. */
void brc_draft_drop_late(brc_store *store, int64_t draft);
/* The drafts of a branch that gets another name. */
BRC_MUST_USE int brc_draft_rename(brc_store *store, const char *from, const char *to, brc_error *err);

typedef struct brc_draft_node {
    int64_t node;
    char *path;
    uint8_t *entry; /* NULL: removed                                              */
    size_t entry_len;
} brc_draft_node;
void brc_draft_nodes_free(brc_draft_node *nodes, size_t n);

/* The row of one path: *found 0 or 1; out->path is NULL. */
BRC_MUST_USE int brc_draft_node_get(brc_store *store, int64_t draft, const char *path,
                                    int *found, brc_draft_node *out, brc_error *err);
/* Rows of `path` (if `self`) and of what is under it, by path. */
BRC_MUST_USE int brc_draft_node_list(brc_store *store, int64_t draft, const char *path,
                                     int self, brc_draft_node **out, size_t *n, brc_error *err);
/* Whether more than `most` rows are under `path`. */
BRC_MUST_USE int brc_draft_has_more_under(brc_store *store, int64_t draft, const char *path, uint64_t most, int *has,
                                          brc_error *err);
/* All rows of a draft by path, page by page: at most `most` behind the last are added. */
typedef struct brc_draft_rows {
    void *nodes; /* brc_draft_node[] */
    size_t n, cap;
} brc_draft_rows;
BRC_MUST_USE int brc_draft_node_page(brc_store *store, int64_t draft, brc_draft_rows *rows, size_t most, brc_error *err);
/* Rows of the children of `path`, by path: those further down are not read. */
BRC_MUST_USE int brc_draft_child_list(brc_store *store, int64_t draft, const char *path,
                                      brc_draft_node **out, size_t *n, brc_error *err);
/* Sets or creates a row; *node is its key. */
BRC_MUST_USE int brc_draft_node_put(brc_store *store, int64_t draft, const char *path,
                                    const void *entry, size_t entry_len, int64_t *node,
                                    brc_error *err);
/* Removes the rows of `path` and under it, with their chunks. */
BRC_MUST_USE int brc_draft_node_clear(brc_store *store, int64_t draft, const char *path, brc_error *err);
/* Removes one row, with its chunks and the rows below it. */
BRC_MUST_USE int brc_draft_row_drop(brc_store *store, int64_t node, brc_error *err);
/* Removes every chunk of the row of this path, and the rows below it. Of very many it is another row
 * afterwards, with its entry and document. */
BRC_MUST_USE int brc_draft_row_clear(brc_store *store, int64_t node, const char *path, brc_error *err);
/* Deletes a row that has no chunk and no document any more: its number is not given again. */
BRC_MUST_USE int brc_draft_row_delete(brc_store *store, int64_t node, brc_error *err);
/* Rows that were copied ahead, each with all that lies below it, into rows of another draft. */
typedef struct brc_draft_copied {
    int64_t row, copy;
} brc_draft_copied;
typedef struct brc_draft_copying {
    uint64_t most; /* chunks that are copied now, after which it fails with BRC_ELIMIT; 0: all */
    void *made;    /* brc_draft_copied[]: these are taken, with what lies over them copied now */
    size_t n, cap;
    uint64_t rows; /* how many there were                                          */
    int is_too_much;
} brc_draft_copying;
/* Rows at and under `from` go to `to`, with their chunks; copying not NULL: as new rows. */
BRC_MUST_USE int brc_draft_node_move(brc_store *store, int64_t draft, const char *from, const char *to,
                                     brc_draft_copying *copying, brc_error *err);

/* A node and where it was. From a draft, `from` may be "": the base does not have the node. */
typedef struct brc_move {
    char *from, *to;
} brc_move;
void brc_moves_free(brc_move *moves, size_t n);

/* Moves of a draft (draft_save.c). What is read are paths in normal form, else BRC_ECORRUPT.
 * *source: that of the row of exactly this path, which the caller frees; NULL: it has none. */
BRC_MUST_USE int brc_draft_move_get(brc_store *store, int64_t draft, const char *path, char **source, brc_error *err);
/* Rows of `path` and of what is under it, by path. */
BRC_MUST_USE int brc_draft_move_list(brc_store *store, int64_t draft, const char *path, brc_move **out, size_t *n, brc_error *err);
/* Sets or creates a row. */
BRC_MUST_USE int brc_draft_move_put(brc_store *store, int64_t draft, const char *path, const char *source, brc_error *err);
/* Removes the row of `path`, or those of `path` and under it. */
BRC_MUST_USE int brc_draft_move_drop(brc_store *store, int64_t draft, const char *path, brc_error *err);
BRC_MUST_USE int brc_draft_move_clear(brc_store *store, int64_t draft, const char *path, brc_error *err);
/* Rows at and under `from`, which is not the root, go to `to`. */
BRC_MUST_USE int brc_draft_move_rename(brc_store *store, int64_t draft, const char *from, const char *to, brc_error *err);

/* Documents of a draft (draft_chunk.c): a row belongs to the node whose entry names it, and goes when
 * the node gets another document. brc_store_get() finds them too.
 *
 * The text of `id` becomes the node's, whose row has it already; no row where it is an object. */
BRC_MUST_USE int brc_draft_doc_put(brc_store *store, int64_t node, const brc_oid *id, brc_span text, brc_error *err);
BRC_MUST_USE int brc_draft_doc_has(brc_store *store, const brc_oid *id, int *found, brc_error *err);
/* Appends the text, which is not checked. */
BRC_MUST_USE int brc_draft_doc_get(brc_store *store, const brc_oid *id, int *found, brc_buf *out, brc_error *err);
/* Drops the node's, if it has one, before its row changes or goes; that of a path. */
BRC_MUST_USE int brc_draft_doc_drop(brc_store *store, int64_t node, brc_error *err);
BRC_MUST_USE int brc_draft_doc_drop_at(brc_store *store, int64_t draft, const char *path, brc_error *err);
/* Another node has the same entry. */
BRC_MUST_USE int brc_draft_doc_copy(brc_store *store, int64_t from, int64_t to, brc_error *err);
/* Whether any draft has some. */
BRC_MUST_USE int brc_draft_docs_any(brc_store *store, int *any, brc_error *err);
/* The next of the draft, behind `path`, which becomes its node's path: 1, or 0 at the end. */
BRC_MUST_USE int brc_draft_doc_next(brc_store *store, int64_t draft, brc_buf *path, brc_oid *id, brc_error *err);
/* `most` of the draft behind `path`, which is moved on, become objects; in scratch mode they are read
 * and kept. *more: perhaps there are others. */
BRC_MUST_USE int brc_draft_docs_store(brc_store *store, int64_t draft, brc_buf *path, size_t most, int *more, brc_error *err);

/* The rows that make up one node's uncommitted chunks: its own, the one below it, and so on. For
 * a key the first row counts that has the key. */
#define BRC_DRAFT_STACK_MOST 32
typedef struct brc_draft_stack {
    size_t n;
    int64_t node[BRC_DRAFT_STACK_MOST + 1]; /* one more, of a bulk write that lies over it */
} brc_draft_stack;
/* `node` and what is below it. BRC_ECORRUPT if that has no end. */
BRC_MUST_USE int brc_draft_stack_get(brc_store *store, int64_t node, brc_draft_stack *out, brc_error *err);
/* Lays one stack over another, whose first row loses its path; no chunk is copied. Only where they are too
 * high together both are made shorter first, which takes as long as their rows are many: before the
 * transaction, brc_draft_stack_shorten() does that bit by bit. */
BRC_MUST_USE int brc_draft_stack_lay(brc_store *store, brc_draft_stack *upper, brc_draft_stack *lower, brc_error *err);
/* One step towards a stack of at most `to` rows, 3 or more, that says the same; *done: it is one. */
#define BRC_DRAFT_STACK_SHORT 12
BRC_MUST_USE int brc_draft_stack_shorten(brc_store *store, int64_t node, size_t to, int *done, brc_error *err);
/* Puts an empty row over the node's: from now on nobody writes into that. *top is the new one, with its
 * path, entry and document. */
BRC_MUST_USE int brc_draft_stack_push(brc_store *store, int64_t node, const char *path, int64_t *top, brc_error *err);
/* Whether one row has more than so many chunks: costs reading these. */
BRC_MUST_USE int brc_draft_row_exceeds(brc_store *store, int64_t node, size_t most, int *exceeds, brc_error *err);

/* A stack goes to another draft, where its first row's path is free, and gets this entry. */
BRC_MUST_USE int brc_draft_row_give(brc_store *store, const brc_draft_stack *stack, int64_t draft, const void *entry,
                                    size_t entry_len, brc_error *err);
/* *meet: 1 if both stacks have a key, and say different things of it. Costs what the smaller one has, a few at a time:
 * outside of a transaction nobody waits for it, and what changes meanwhile may be seen or not. */
BRC_MUST_USE int brc_draft_stacks_meet(brc_store *store, const brc_draft_stack *a, const brc_draft_stack *b, int *meet,
                                       brc_error *err);

/* id NULL: dropped. In the node's own row: what is below it is hidden. */
BRC_MUST_USE int brc_draft_chunk_put(brc_store *store, int64_t node, const void *key, size_t key_len, const brc_oid *id, brc_error *err);
/* *state: 0 no row, 1 an id, 2 dropped. */
BRC_MUST_USE int brc_draft_chunk_get(brc_store *store, const brc_draft_stack *stack, const void *key,
                                     size_t key_len, int *state, brc_oid *id, brc_error *err);
typedef int (*brc_draft_chunk_fn)(void *ctx, const uint8_t *key, size_t key_len, const brc_oid *id, brc_error *err);
/* Every key of the stack, in order; id NULL: dropped. */
BRC_MUST_USE int brc_draft_chunk_each(brc_store *store, const brc_draft_stack *stack, brc_draft_chunk_fn each, void *ctx, brc_error *err);
/* At most `most` of them, after the key `after` (data NULL: from the first on). */
BRC_MUST_USE int brc_draft_chunk_page(brc_store *store, const brc_draft_stack *stack, brc_span after, size_t most,
                                      brc_draft_chunk_fn each, void *ctx, brc_error *err);
/* So many of them after the key `after` (empty: from the first on), which is moved on, become chunks of the row
 * `into`; *n is less at the end. */
#define BRC_DRAFT_COPY_STEP ((size_t)2048)
BRC_MUST_USE int brc_draft_chunk_copy(brc_store *store, const brc_draft_stack *stack, int64_t into, brc_buf *after, size_t *n,
                                      brc_error *err);
BRC_MUST_USE int brc_draft_chunk_any(brc_store *store, const brc_draft_stack *stack, int *any, brc_error *err);
/* Removes the chunk of one key from the node's own row. */
BRC_MUST_USE int brc_draft_chunk_clear(brc_store *store, int64_t node, const void *key, size_t key_len, brc_error *err);

/* Savepoints of a draft (draft_save.c): themselves drafts, in no list of these. */
typedef struct brc_draft_save {
    int64_t id;
    int parts;   /* what of the draft it knows as it was */
    int is_met;  /* others have changed the draft since  */
    char *owner, *plan;
} brc_draft_save;
void brc_draft_saves_free(brc_draft_save *saves, size_t n);
/* A new one, like `row`, the innermost of all; `plan`: a JSON object. */
BRC_MUST_USE int brc_draft_save_start(brc_store *store, const brc_draft_row *row, int64_t draft, const char *plan, brc_error *err);
/* Those that are open, the outermost first. */
BRC_MUST_USE int brc_draft_save_list(brc_store *store, int64_t draft, brc_draft_save **out, size_t *n, brc_error *err);
/* The draft is changed by somebody else than this owner. */
BRC_MUST_USE int brc_draft_saves_meet(brc_store *store, int64_t draft, const char *owner, brc_error *err);
/* Ends the innermost; `outer`: the next, or NULL. */
BRC_MUST_USE int brc_draft_save_release(brc_store *store, const brc_draft_save *save, brc_draft_save *outer, brc_error *err);
/* The draft becomes what it was when the innermost was made, which stays open. */
BRC_MUST_USE int brc_draft_save_restore(brc_store *store, int64_t draft, const brc_draft_save *save, brc_error *err);
/* Ends all of a draft: what was written stays. */
BRC_MUST_USE int brc_draft_saves_end(brc_store *store, int64_t draft, brc_error *err);
/* The same of one, as brc_draft_drop_late(), and at once where the lock is to be had. */
void brc_draft_save_drop(brc_store *store, int64_t save);
/* The row of a path can be changed from now on: if a savepoint knows it as it is, another takes its place. *save: the
 * innermost; 0: none. For brc_draft_doc_drop_at(); brc_draft_node_put() and the like do it themselves. */
BRC_MUST_USE int brc_draft_node_own(brc_store *store, int64_t draft, const char *path, int64_t *save, brc_error *err);
/* Whether one knows the row: its chunks must not be changed. */
BRC_MUST_USE int brc_draft_row_is_frozen(brc_store *store, int64_t node, int *is, brc_error *err);
/* It gets all keys, or moves, of a draft. */
BRC_MUST_USE int brc_draft_keys_keep(brc_store *store, int64_t draft, int64_t save, brc_error *err);

/* Keys of a draft (draft_chunk.c). A row wins over the node or chunk that has its key. */
enum {
    BRC_KEY_NO_ROW, /* what nodes and chunks say                                        */
    BRC_KEY_LOOSE,  /* bytes that are no node or chunk yet: an object                   */
    BRC_KEY_HIDDEN  /* a document's: the node is there, and its document has no key     */
};
BRC_MUST_USE int brc_draft_key_get(brc_store *store, int64_t draft, const char *key, int *state, brc_oid *id, brc_error *err);
BRC_MUST_USE int brc_draft_key_any(brc_store *store, int64_t draft, int *any, brc_error *err);
/* id NULL: hidden. */
BRC_MUST_USE int brc_draft_key_put(brc_store *store, int64_t draft, const char *key, const brc_oid *id, brc_error *err);
BRC_MUST_USE int brc_draft_key_drop(brc_store *store, int64_t draft, const char *key, brc_error *err);
/* All that begin with `prefix`; _loose: those with bytes, but for documents. */
BRC_MUST_USE int brc_draft_key_clear_loose(brc_store *store, int64_t draft, const char *prefix, brc_error *err);
BRC_MUST_USE int brc_draft_key_clear(brc_store *store, int64_t draft, const char *prefix, brc_error *err);
/* All that begin with `from`, also in another draft, where they begin with `to`. */
BRC_MUST_USE int brc_draft_key_copy(brc_store *store, int64_t draft, const char *from, int64_t to_draft, const char *to,
                                    brc_error *err);
/* 1 with the first key of which both drafts say something, and not the same; 0: there is none. */
BRC_MUST_USE int brc_draft_keys_meet(brc_store *store, int64_t a, int64_t b, brc_buf *key, brc_error *err);
typedef int (*brc_draft_key_fn)(void *ctx, const char *key, const brc_oid *id, brc_error *err);
/* Rows of keys that begin with `prefix`, by key: at most `most`, from the text `from` on (NULL: from
 * the first on); id NULL: hidden. `each` must not use the store. */
BRC_MUST_USE int brc_draft_key_page(brc_store *store, int64_t draft, const char *prefix, const char *from, size_t most,
                                    brc_draft_key_fn each, void *ctx, brc_error *err);

#endif
