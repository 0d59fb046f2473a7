/* Drafts that are dropped when the lock is to be had: with the end of the next transaction. */
#include <fcntl.h>
#include <string.h>

#include "../base/alloc.h"
#include "../base/hash.h"
#include "../base/process.h"
#include "db.h"
#include "file_lock.h"

/* ==== draft late ================================ */

static void note_late(brc_store *store, int64_t draft, int which)
{
    void *p = store->late_drafts.items;
    const size_t n = store->late_drafts.n;
    for (size_t i = 0; i < n; i++)
        if (store->late_drafts.items[i].id == draft && store->late_drafts.items[i].which == which)
            return;
    const int rc = brc_grow_array(&p, &store->late_drafts.cap, n + 1, sizeof(brc_late_draft), NULL);
    store->late_drafts.items = p;
    if (rc < 0) /* it can be dropped when its process has ended */
        return;
    store->late_drafts.items[store->late_drafts.n++] = (brc_late_draft){draft, which};
}

void brc_draft_drop_late(brc_store *store, int64_t draft)
{
    note_late(store, draft, BRC_LATE_ANY);
}

void brc_draft_drop_at_end(brc_store *store, int64_t draft)
{
    note_late(store, draft, BRC_LATE_EMPTY);
}

void brc_draft_drop_empty(brc_store *store, int64_t draft, int with_children)
{
    note_late(store, draft, with_children ? BRC_LATE_END : BRC_LATE_EMPTY);
    if (brc_store_try_begin(store))
        (void)!brc_store_end(store, 1, NULL);
}

void brc_draft_save_drop(brc_store *store, int64_t save)
{
    note_late(store, save, BRC_LATE_SAVE);
    if (brc_store_try_begin(store))
        (void)!brc_store_end(store, 1, NULL);
}

/* ==== batches ================================ */

/*
 * Bulk writes: one change of a session in many short transactions.
 *
 * Between brc_store_bulk_begin() and _finish() a change does not hold the lock from its first row
 * to its last. What is written goes into a draft that nobody else reads; so a transaction can end
 * after any row. It ends when it has many bytes or has lasted long, and begins again with the next
 * row that is written. While none is open, what is read is read as outside of a write.
 *
 * How long is too long depends on others. Every batch writes some pages anew that the one before
 * wrote, and most where rows lie all over the index (write.c sorts them, but each lot of
 * chunks meets the whole index again). So a batch may be twice as long as the one before, up to a
 * limit, as long as nobody has waited for it. If somebody waits, it ends, and the next one is
 * short again.
 *
 * A bulk write that stays below one batch is one transaction with what finishes it. Else nothing
 * of a batch is acknowledged before the last one: until then `synchronous` is FULL in place of
 * EXTRA. Both sync the journal before the file is written and the file before the journal goes;
 * EXTRA syncs the folder after that too. Without it a journal may come back with the power, and
 * undoes its batch: which is no loss, because a draft that was not adopted is promised to nobody.
 */

/* Bytes of stored objects in one transaction, those of the pages that it changes, and how long it
 * may last: about what readers and other writers wait. */
#define BATCH_BYTES ((uint64_t)8 << 20)
#define BATCH_CHANGED ((uint64_t)16 << 20)
#define BATCH_NS INT64_C(25000000)
/* So many times as long while nobody waits, and so many times the bytes, which are memory too. */
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

/* Between two batches its process may drop the draft: rows that came after would be nobody's. */
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
    store->bulk.opened_at = store->bulk.looked_at = brc_monotonic_ns();
    store->bulk.journalled = brc_vfs_journalled(store->vfs);
    store->bulk.rows_before = sqlite3_total_changes(store->db);
    return check_goes_on(store, err);
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

/* In WAL mode nobody but other writers waits, and the journal does not tell how much changes. With
 * a rollback journal a commit syncs three times, so a batch has twice the bytes. */
static void bulk_reach(brc_store *store)
{
    if (brc_vfs_in_wal(store->vfs))
        store->bulk.reach = 1;
    else if (brc_vfs_is_awaited(store->vfs))
        store->bulk.reach = REACH_AWAITED;
    else if (store->bulk.reach < REACH_MOST)
        store->bulk.reach *= 2;
}

/* Nothing was written since it was begun: it was opened to look something up, or in vain. */
static int bulk_is_untouched(const brc_store *store)
{
    return sqlite3_total_changes(store->db) == store->bulk.rows_before &&
           store->late_drafts.n == 0;
}

/* Only the lock goes. It is no batch, and what others left to be swept is left to who writes. */
static int bulk_let_go(brc_store *store, brc_error *err)
{
    brc_reader_close(store);
    store->bulk.is_open = 0;
    int rc = brc_exec(store, "COMMIT", err);
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

/* Whether it is time to let others in. What has a few small objects in it is one transaction, also
 * on a slow machine. */
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

/* ==== in turn ================================ */

/*
 * Work that others can overtake: a commit is merged onto the tip of its branch without a lock, and
 * where the branch has moved by then it is merged again. Whoever was overtaken once waits for those
 * who came before, so that among many each gets on: see brc_in_turn().
 *
 * Who waits is a lock on a byte far behind the file's end, whose place is the time at which its
 * owner came; so whoever has none before his is the first. A lock needs no write, and goes with its
 * process. It keeps nobody out: where the system has no such locks, and for somebody who does not
 * get on (he may be stopped), nobody waits for long, and half as long each time.
 *
 *   2^61, and 2^51 bytes for each of 1,024 things that are waited for: collect.c has 2^62
 */

#define TURNS_AT (INT64_C(1) << 61)
#define SLOT_LEN (INT64_C(1) << 51)
enum { SLOTS = 1024 };

/* Nobody waits longer than this part of the time to wait for one who does not get on. */
enum { PATIENCE = 16 };

typedef struct in_turn {
    brc_store *store;
    int64_t slot;    /* the first byte of those who wait for the same */
    int64_t at;      /* ours; 0: we have none                         */
    int64_t until;   /* on the monotonic clock, in ns                 */
    int64_t met;     /* who is the first, and since when              */
    int64_t met_at;
    int64_t passed;  /* who was waited for too long; 0: nobody        */
} in_turn;

/* Whoever is before `before`, the first of them; 0: nobody is. *is_next: only he is. */
static int64_t turn_first(const in_turn *t, int64_t before, int *is_next)
{
    const int64_t from = t->passed >= t->slot ? t->passed + 1 : t->slot;
    int64_t first = 0, at, len, end = before;
    *is_next = 1;
    while (end > from && brc_vfs_find_lock(t->store->vfs, from, end - from, &at, &len)) {
        *is_next &= first == 0;
        first = end = at;
    }
    return first;
}

static void turn_ask(in_turn *t)
{
    const int fd = brc_beside_lock(t->store);
    const int64_t at = t->slot + brc_monotonic_ns() / 1000 % SLOT_LEN;
    if (t->at == 0 && fd >= 0 &&
        brc_bytes_lock(fd, F_RDLCK, (off_t)at, 1, SQLITE_IOERR_LOCK) == SQLITE_OK)
        t->at = at;
}

static void turn_leave(in_turn *t)
{
    if (t->at != 0 && !brc_store_is_forked(t->store))
        (void)!brc_bytes_lock(t->store->beside.lock.fd, F_UNLCK, (off_t)t->at, 1,
                              SQLITE_IOERR_UNLOCK);
}

/* How long he is waited for: not as long again if it was in vain before. */
static int64_t patience_for(const brc_store *store, int64_t first)
{
    const int64_t ns = store->wait_ms * INT64_C(1000000) / PATIENCE;
    return first == store->stuck_turn ? ns >> store->stuck_times : ns;
}

static void pass_over(in_turn *t, int64_t first)
{
    brc_store *store = t->store;
    store->stuck_times = first == store->stuck_turn ? store->stuck_times + (store->stuck_times < 40)
                                                    : 1;
    store->stuck_turn = t->passed = first;
}

/* Whether there is somebody for whom one should wait. */
static int turn_must_wait(in_turn *t, int *is_next)
{
    const int64_t first = turn_first(t, t->at, is_next), now = brc_monotonic_ns();
    if (first == 0)
        return 0;
    if (first != t->met) {
        t->met = first;
        t->met_at = now;
    }
    if (now - t->met_at >= patience_for(t->store, first))
        pass_over(t, first); /* it is the next one's turn now */
    return now < t->until;
}

static int turn_wait(in_turn *t, brc_error *err)
{
    enum { SOON = 500000, LATER = 4000000 };
    int is_next;
    BRC_TRY(brc_store_check_interrupt(t->store, err));
    while (t->at != 0 && turn_must_wait(t, &is_next)) {
        brc_pause_at_random(t->store, is_next ? SOON : LATER);
        BRC_TRY(brc_store_check_interrupt(t->store, err));
    }
    return BRC_OK;
}

/* Also where others wait already: who comes now does not go before them. */
static int turn_tries(in_turn *t, int (*once)(void *ctx, brc_error *err), void *ctx, brc_error *err)
{
    enum { MOMENT = 2000000 };
    int is_next, rc = 0;
    if (turn_first(t, t->slot + SLOT_LEN, &is_next) != 0)
        turn_ask(t);
    while (rc == 0) {
        BRC_TRY(turn_wait(t, err));
        rc = once(ctx, err);
        if (rc == 0 && brc_monotonic_ns() >= t->until)
            break;
        if (rc == 0) {
            turn_ask(t);
            brc_pause_at_random(t->store, MOMENT);
        }
    }
    return rc;
}

int brc_in_turn(brc_store *store, const char *about, int (*once)(void *ctx, brc_error *err),
                void *ctx, brc_error *err)
{
    in_turn t = {.store = store};
    t.slot = TURNS_AT + (int64_t)(brc_hash_bytes(about, strlen(about)) % SLOTS) * SLOT_LEN;
    t.until = brc_monotonic_ns() + store->wait_ms * INT64_C(1000000);
    int rc = turn_tries(&t, once, ctx, err);
    turn_leave(&t);
    return rc;
}

int brc_turn_is_over(const brc_store *store, const char *doing, const char *remedy, brc_error *err)
{
    return brc_fail(err, BRC_EBUSY,
                    "%s: others were first each time, for %g s, while %s: %s, or wait longer with "
                    "--wait",
                    store->path, store->wait_ms / 1000.0, doing, remedy);
}
