/*
 * Bulk writes: one change of a session in many short transactions.
 *
 * Between brc_store_bulk_begin() and _finish() a change does not hold the lock from its first row
 * to its last. Its rows go into a draft that nobody else reads; so a transaction can end after any
 * row. It ends when it has many bytes or has lasted long, and the next row that is written begins
 * another. While none is open, reads work as outside of a write.
 *
 * How much a transaction takes depends on others. Each has its syncs, and writes some pages again
 * that the one before wrote. So a bulk write for which nobody waits goes on for a long time, and
 * spills: SQLite writes its changed pages into the file as soon as its small cache is full, which
 * locks readers out, takes no memory, and keeps the disk busy meanwhile. It ends as soon as another
 * process waits. The next transaction is short then, and keeps its pages in memory, so that readers
 * wait for no more than its commit; so do all that follow, until nobody has waited for one of them.
 *
 * A bulk write that stays below one batch is one transaction together with its finish. Else no
 * batch is acknowledged before the last one: until then `synchronous` is FULL in place of EXTRA.
 * Both sync the journal before the file is written and the file before the journal goes; EXTRA
 * syncs the folder after that too. Without that a journal may reappear after a loss of power and
 * undo its batch. Nothing is lost then, because a draft that was not adopted is promised to nobody.
 */
#include "../base/process.h"
#include "db.h"

/* Limits of a transaction: bytes of stored objects, bytes of changed pages, and its duration, which
 * is about the time that other writers wait; readers wait for the commit. In WAL mode a commit has
 * one sync in place of three, so a transaction may have half as much. */
#define BATCH_BYTES ((uint64_t)16 << 20)
#define BATCH_CHANGED ((uint64_t)32 << 20)
#define BATCH_NS INT64_C(50000000)
/* The same for one that spills, whose stored objects take no memory. */
#define LONG_CHANGED ((uint64_t)64 << 20)
#define LONG_NS INT64_C(800000000)
/* After this duration a transaction ends if another process waits, which is asked this often. */
#define SHORT_NS INT64_C(25000000)
#define LOOK_NS INT64_C(1000000)
#define FEW_ROWS 128 /* of objects, and of chunks that the file has already */
#define FEW_BYTES ((uint64_t)1 << 20)

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

void brc_store_bulk_goes_into(brc_store *store, int64_t draft)
{
    store->bulk.draft = draft;
}

uint64_t brc_store_bulk_batches(const brc_store *store)
{
    return store->bulk.batches;
}

/* ---- transactions -------------------------------- */

/* Checks that the draft still exists: its process may drop it between two batches, and later rows
 * would belong to no draft. */
static int check_goes_on(brc_store *store, brc_error *err)
{
    int rc = brc_store_check_same(store, err);
    if (rc == BRC_OK && store->bulk.draft != 0)
        rc = brc_draft_check_there(store, store->bulk.draft, err);
    if (rc < 0) {
        store->bulk.failed = 1;
        store->bulk.is_open = 0;
        brc_store_rollback(store);
    }
    return rc;
}

/* Lets SQLite write changed pages into the file before the commit, as soon as the page cache is
 * full, or only when the transaction has very many. */
static int bulk_spill(brc_store *store, int spills, brc_error *err)
{
    if (spills == store->bulk.spills)
        return BRC_OK;
    store->bulk.spills = spills;
    return brc_exec(store, spills ? BRC_SPILL_EARLY : BRC_SPILL, err);
}

static int bulk_open(brc_store *store, brc_error *err)
{
    if (store->bulk.failed)
        return brc_fail(err, BRC_EMISUSE, "an earlier step of this change failed, so everything "
                                          "was undone");
    if (store->bulk.is_open && sqlite3_get_autocommit(store->db)) {
        store->bulk.failed = 1; /* SQLite has undone the transaction */
        return bulk_open(store, err);
    }
    if (store->bulk.is_open)
        return BRC_OK;
    brc_store_pause_read(store);
    BRC_TRY(brc_begin_immediate(store, err));
    store->bulk.is_open = 1;
    store->bulk.opened_at = store->bulk.looked_at = brc_monotonic_ns();
    store->bulk.journalled = brc_vfs_journalled(store->vfs);
    int rc = check_goes_on(store, err);
    if (rc == BRC_OK)
        rc = bulk_spill(store,
                        !brc_vfs_in_wal(store->vfs) && !store->bulk.was_awaited &&
                            !brc_vfs_is_awaited(store->vfs),
                        err);
    return rc;
}

static int bulk_enter(brc_store *store, brc_error *err)
{
    if (!store->bulk.admits && store->write_depth == 0)
        return brc_fail(err, BRC_EMISUSE,
                        "%s: a bulk write through this handle is in progress: end it before any "
                        "other change",
                        store->path);
    return bulk_open(store, err);
}

/* Returns 1 if nothing was written since the transaction was begun: it was opened only for a
 * look-up, or in vain. */
static int bulk_is_untouched(const brc_store *store)
{
    return brc_store_changes(store) == 0 && store->late_drafts.n == 0;
}

/* Releases only the lock. The transaction was empty, so it does not count as a batch and does not
 * sweep dropped drafts. */
static int bulk_let_go(brc_store *store, brc_error *err)
{
    brc_reader_close(store);
    store->bulk.is_open = 0;
    int rc = brc_commit_immediate(store, err);
    if (rc < 0) {
        store->bulk.failed = 1;
        brc_store_rollback(store);
        return rc;
    }
    brc_row_forget(store);
    brc_wait_committed(store);
    return BRC_OK;
}

static int bulk_commit(brc_store *store, brc_error *err)
{
    if (!store->bulk.is_open)
        return BRC_OK;
    if (bulk_is_untouched(store))
        return bulk_let_go(store, err);
    store->bulk.was_awaited = brc_vfs_is_awaited(store->vfs);
    int rc = brc_store_commit(store, err);
    store->bulk.is_open = 0;
    if (rc < 0) {
        store->bulk.failed = 1;
        return rc;
    }
    return store->bulk.batches++ == 0 ? brc_exec(store, "PRAGMA synchronous=FULL", err) : BRC_OK;
}

/* Returns 1 if it is time to let others in. A few small objects are one transaction even on a slow
 * machine. */
static int bulk_is_due(brc_store *store)
{
    brc_bulk *bulk = &store->bulk;
    if (brc_store_changes(store) < FEW_ROWS && store->inserted_bytes < FEW_BYTES)
        return 0;
    const int in_wal = brc_vfs_in_wal(store->vfs);
    const int64_t now = brc_monotonic_ns(), age = now - bulk->opened_at;
    const int64_t most = bulk->spills ? LONG_NS : in_wal ? SHORT_NS : BATCH_NS;
    const uint64_t changed = brc_vfs_journalled(store->vfs) - bulk->journalled;
    if (age >= most || changed >= (bulk->spills ? LONG_CHANGED : BATCH_CHANGED) ||
        (!bulk->spills && store->inserted_bytes >= (in_wal ? BATCH_BYTES / 2 : BATCH_BYTES)))
        return 1;
    if (age < SHORT_NS || now - bulk->looked_at < LOOK_NS)
        return 0;
    bulk->looked_at = now;
    return brc_vfs_is_awaited(store->vfs);
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

void brc_store_bulk_enter(brc_store *store)
{
    if (store->write_depth == 0)
        store->undo = 0;
    store->write_depth++;
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
    (void)!bulk_spill(store, 0, NULL);
    store->bulk.on = store->bulk.is_open = 0;
    brc_page_cache_reset(store);
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
    brc_store_pause_read(store);
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
