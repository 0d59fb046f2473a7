/*
 * Bulk writes: one change of a session in many short transactions.
 *
 * Between brc_store_bulk_begin() and _finish() a change does not hold the lock from its first row
 * to its last. Its rows go into a draft that nobody else reads; so a transaction can end after any
 * row. It ends when it has many bytes or has lasted long, and the next row that is written begins
 * another. While none is open, reads work as outside of a write.
 *
 * The longest duration depends on others. Every batch writes some pages again that the batch before
 * wrote, most of all if rows lie all over the index (write.c sorts them, but each set of
 * chunks is spread over the whole index again). So a batch may be twice as long as the one before,
 * up to a limit, as long as nobody has waited for it. If another process waits, the batch ends, and
 * the next one is short again.
 *
 * A bulk write that stays below one batch is one transaction together with its finish. Else no
 * batch is acknowledged before the last one: until then `synchronous` is FULL in place of EXTRA.
 * Both sync the journal before the file is written and the file before the journal goes; EXTRA
 * syncs the folder after that too. Without that a journal may reappear after a loss of power and
 * undo its batch. Nothing is lost then, because a draft that was not adopted is promised to nobody.
 */
#include "../base/process.h"
#include "db.h"

/* Limits of one transaction: bytes of stored objects, bytes of changed pages, and its duration,
 * which is about the time that readers and other writers wait. */
#define BATCH_BYTES ((uint64_t)8 << 20)
#define BATCH_CHANGED ((uint64_t)16 << 20)
#define BATCH_NS INT64_C(25000000)
/* How many times longer a transaction may last while nobody waits, and how many times more bytes it
 * may have, which take memory too. */
enum { REACH_AWAITED = 2, REACH_MOST = 32, REACH_BYTES_MOST = 4 };
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
    store->bulk.rows_before = sqlite3_total_changes(store->db);
    return check_goes_on(store, err);
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

/* Computes how long the next batch may be. In WAL mode only other writers wait, and the journal
 * does not tell how much changes. With a rollback journal a commit syncs three times, so a batch
 * has twice the bytes. */
static void bulk_reach(brc_store *store)
{
    if (brc_vfs_in_wal(store->vfs))
        store->bulk.reach = 1;
    else if (brc_vfs_is_awaited(store->vfs))
        store->bulk.reach = REACH_AWAITED;
    else if (store->bulk.reach < REACH_MOST)
        store->bulk.reach *= 2;
}

/* Returns 1 if nothing was written since the transaction was begun: it was opened only for a
 * look-up, or in vain. */
static int bulk_is_untouched(const brc_store *store)
{
    return sqlite3_total_changes(store->db) == store->bulk.rows_before &&
           store->late_drafts.n == 0;
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
    int rc = brc_store_commit(store, err);
    store->bulk.is_open = 0;
    if (rc < 0) {
        store->bulk.failed = 1;
        return rc;
    }
    bulk_reach(store);
    return store->bulk.batches++ == 0 ? brc_exec(store, "PRAGMA synchronous=FULL", err) : BRC_OK;
}

/* Returns 1 if it is time to let others in. A few small objects are one transaction even on a slow
 * machine. */
static int bulk_is_due(brc_store *store)
{
    brc_bulk *bulk = &store->bulk;
    const int reach = bulk->reach;
    const uint64_t more = (uint64_t)(reach < REACH_BYTES_MOST ? reach : REACH_BYTES_MOST);
    const int64_t rows = sqlite3_total_changes(store->db) - bulk->rows_before;
    if (rows < FEW_ROWS && store->inserted_bytes < FEW_BYTES)
        return 0;
    const int64_t now = brc_monotonic_ns(), age = now - bulk->opened_at;
    if (age >= BATCH_NS * reach || store->inserted_bytes >= BATCH_BYTES * more ||
        brc_vfs_journalled(store->vfs) - bulk->journalled >= BATCH_CHANGED * more)
        return 1;
    if (age < BATCH_NS || now - bulk->looked_at < LOOK_NS)
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
    store->bulk = (brc_bulk){.on = 1, .reach = 1, .enter = bulk_enter, .leave = bulk_leave,
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
