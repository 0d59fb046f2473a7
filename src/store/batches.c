/*
 * Bulk writes: one change of a session in many short transactions.
 *
 * Between brc_store_bulk_begin() and _finish() a change does not hold the lock from its first row
 * to its last. What is written goes into a draft that nobody else reads; so a transaction can end
 * after any row. It ends when it has many bytes or has lasted long, and begins again with the next
 * row that is written. While none is open, what is read is read as outside of a write.
 *
 * A bulk write that stays below one batch is one transaction with what finishes it. Else nothing
 * of a batch is acknowledged before the last one: until then `synchronous` is FULL in place of
 * EXTRA. Both sync the journal before the file is written and the file before the journal goes;
 * EXTRA syncs the folder after that too. Without it a journal may come back with the power, and
 * undoes its batch: which is no loss, because a draft that was not adopted is promised to nobody.
 */
#include <time.h>

#include "db.h"

/* Bytes of stored objects in one transaction, and how long it may last: about what readers and
 * other writers wait. */
#define BATCH_BYTES ((uint64_t)8 << 20)
#define BATCH_NS INT64_C(25000000)
#define FEW_OBJECTS 64
#define FEW_BYTES ((uint64_t)1 << 20)

static int64_t bulk_now_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

int brc_store_in_bulk(const brc_store *store)
{
    return store->bulk.on;
}

int brc_store_bulk_admit(brc_store *store, int admits)
{
    int before = store->bulk.admits;
    store->bulk.admits = admits;
    return before;
}

uint64_t brc_store_bulk_batches(const brc_store *store)
{
    return store->bulk.batches;
}

/* ---- transactions -------------------------------- */

static int bulk_open(brc_store *store, brc_error *err)
{
    if (store->bulk.failed)
        return brc_fail(err, BRC_EMISUSE, "an earlier step of this change failed, so all of it was "
                                          "undone");
    if (store->bulk.is_open && sqlite3_get_autocommit(store->db)) {
        store->bulk.failed = 1; /* SQLite undid it */
        return bulk_open(store, err);
    }
    if (store->bulk.is_open)
        return BRC_OK;
    brc_store_pause_read(store);
    BRC_TRY(brc_begin_immediate(store, err));
    store->bulk.is_open = 1;
    store->bulk.opened_at = bulk_now_ns();
    return BRC_OK;
}

static int bulk_enter(brc_store *store, brc_error *err)
{
    if (!store->bulk.admits && store->write_depth == 0)
        return brc_fail(err, BRC_EMISUSE,
                        "%s: a bulk write through this handle is not at its end: end it before "
                        "anything else is changed",
                        store->path);
    return bulk_open(store, err);
}

static int bulk_commit(brc_store *store, brc_error *err)
{
    if (!store->bulk.is_open)
        return BRC_OK;
    int rc = brc_store_commit(store, err);
    store->bulk.is_open = 0;
    if (rc < 0) {
        store->bulk.failed = 1;
        return rc;
    }
    return store->bulk.batches++ == 0 ? brc_exec(store, "PRAGMA synchronous=FULL", err) : BRC_OK;
}

/* Whether it is time to let others in. What has a few small objects in it is one transaction, also
 * on a slow machine. */
static int bulk_is_due(const brc_store *store)
{
    if (store->inserted < FEW_OBJECTS && store->inserted_bytes < FEW_BYTES)
        return 0;
    return store->inserted_bytes >= BATCH_BYTES ||
           bulk_now_ns() - store->bulk.opened_at >= BATCH_NS;
}

static int bulk_leave(brc_store *store, int keep, brc_error *err)
{
    if (store->undo || store->bulk.failed) {
        store->bulk.failed = 1;
        store->bulk.is_open = 0;
        brc_store_rollback(store);
        return keep ? bulk_open(store, err) : BRC_OK;
    }
    return store->bulk.is_open && bulk_is_due(store) ? bulk_commit(store, err) : BRC_OK;
}

int brc_store_bulk_begin(brc_store *store, brc_error *err)
{
    BRC_TRY(brc_store_check_process(store, err));
    BRC_TRY(brc_store_writable(store, err));
    if (store->bulk.on || store->write_depth > 0 || store->read_depth > 0)
        return brc_fail(err, BRC_EMISUSE, "a bulk write cannot begin inside another change");
    store->bulk = (brc_bulk){.on = 1, .enter = bulk_enter, .leave = bulk_leave,
                             .open = bulk_open};
    return BRC_OK;
}

int brc_store_rest(brc_store *store, int now, brc_error *err)
{
    if (!store->bulk.on)
        return BRC_OK;
    if (store->bulk.is_open)
        return now || bulk_is_due(store) ? bulk_commit(store, err) : BRC_OK;
    brc_store_pause_read(store);
    return BRC_OK;
}

int brc_store_wake(brc_store *store, brc_error *err)
{
    return brc_bulk_resume(store, NULL, err);
}

/* ---- the end -------------------------------- */

static void bulk_off(brc_store *store)
{
    if (store->bulk.batches > 0)
        sqlite3_exec(store->db, "PRAGMA synchronous=EXTRA", NULL, NULL, NULL);
    store->bulk.on = store->bulk.is_open = 0;
}

int brc_store_bulk_finish(brc_store *store, brc_error *err)
{
    if (store->bulk.failed)
        return bulk_open(store, err);
    if (store->bulk.is_open && store->bulk.batches == 0) { /* the transaction goes on */
        bulk_off(store);
        store->undo = 0;
        store->write_depth = 1;
        return BRC_OK;
    }
    BRC_TRY(bulk_commit(store, err));
    bulk_off(store);
    return brc_store_begin(store, err);
}

void brc_store_bulk_cancel(brc_store *store)
{
    if (!store->bulk.on)
        return;
    if (store->bulk.is_open)
        brc_store_rollback(store);
    brc_store_pause_read(store);
    bulk_off(store);
}
