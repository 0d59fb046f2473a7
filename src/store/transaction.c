/* Transactions, and waiting for the lock that they need. */
#include <stdlib.h>
#include <time.h>

#include "backend.h"

/* ---- waiting for the lock -------------------------------------------------------- */

static int64_t monotonic_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

/* Up to `most`, evenly: xorshift. */
static int64_t random_pause_ns(brc_store *store, int64_t most)
{
    uint64_t x = store->jitter;
    if (x == 0)
        x = (uint64_t)monotonic_ns() ^ (uint64_t)(uintptr_t)store << 20 ^ 1;
    x ^= x << 13;
    x ^= x >> 7;
    x ^= x << 17;
    store->jitter = x;
    return (int64_t)(x % (uint64_t)most) + 1;
}

/* The lock goes to whoever asks while it is free, and a busy writer frees it only for
 * moments. So all ask at random times, and those who have waited ask more often than
 * those who have just come. During a long transaction, when it is nobody's turn, all
 * ask less often. */
static int64_t longest_pause_ns(int64_t waited)
{
    enum { US = 1000, MS = 1000 * US };
    return waited < 20 * (int64_t)MS ? 2 * MS : waited < 3000 * (int64_t)MS ? 500 * US : 5 * MS;
}

static void pause_ns(int64_t ns)
{
    nanosleep(&(struct timespec){ns / 1000000000, ns % 1000000000}, NULL);
}

/* Whoever has just committed is the first to ask again and would get the lock each
 * time. If others were met recently, they are given a moment to ask. */
static void let_others_in(brc_store *store)
{
    enum { LATELY = 2000000000, MOMENT = 1000000 };
    if (store->crowded_at == 0)
        return;
    int64_t now = monotonic_ns();
    if (now - store->crowded_at < LATELY && now - store->committed_at < MOMENT)
        pause_ns(MOMENT / 2 + random_pause_ns(store, MOMENT));
}

int brc_db_busy(void *ctx, int tries)
{
    brc_store *store = ctx;
    int64_t now = monotonic_ns(), left;
    store->crowded_at = now;
    if (tries == 0)
        store->wait_since = now;
    left = store->wait_ms * INT64_C(1000000) - (now - store->wait_since);
    if (left <= 0 || atomic_load(&store->interrupted))
        return 0;
    int64_t pause = random_pause_ns(store, longest_pause_ns(now - store->wait_since));
    if (pause > left)
        pause = left;
    pause_ns(pause);
    return 1;
}

/* ---- transactions ---------------------------------------------------------------- */

int brc_store_writable(brc_store *store, brc_error *err)
{
    if (store->readonly)
        return brc_fail(err, BRC_EREADONLY, "%s is open for reading only", store->path);
    return BRC_OK;
}

int brc_store_begin(brc_store *store, brc_error *err)
{
    BRC_TRY(brc_check_process(store, err));
    BRC_TRY(brc_store_check_interrupt(store, err));
    if (store->write_depth == 0) {
        BRC_TRY(brc_store_writable(store, err));
        if (store->read_depth > 0)
            return brc_fail(err, BRC_EMISUSE, "a write cannot begin inside a read");
        brc_end_leftover(store);
        let_others_in(store);
        BRC_TRY(brc_exec(store, "BEGIN IMMEDIATE", err));
        store->undo = 0;
    } else if (sqlite3_get_autocommit(store->db)) {
        /* SQLite undid it when a step failed; what follows must not be committed alone. */
        store->undo = 1;
        return brc_fail(err, BRC_EMISUSE,
                        "an earlier step of this transaction failed, so all of it was undone");
    }
    store->write_depth++;
    return BRC_OK;
}

int brc_store_try_begin(brc_store *store)
{
    int wait = store->wait_ms;
    if (store->write_depth > 0 || store->read_depth > 0 || store->readonly)
        return 0;
    store->wait_ms = 0;
    int rc = brc_store_begin(store, NULL);
    store->wait_ms = wait;
    return rc == BRC_OK;
}

void brc_store_rollback(brc_store *store)
{
    brc_reader_close(store);
    /* SQLite may have rolled back already: then this fails, which does no harm. */
    sqlite3_exec(store->db, "ROLLBACK", NULL, NULL, NULL);
    /* What the transaction added must no longer be found in memory. */
    brc_row_forget(store);
    brc_backends_forget(store);
    brc_cache_clear(&store->cache);
    brc_encoding_cache_clear(&store->encodings);
    brc_page_cache_reset(store);
    store->write_depth = 0;
    store->undone++;
}

uint64_t brc_store_undone(const brc_store *store)
{
    return store->undone;
}

int brc_store_in_write(const brc_store *store)
{
    return store->write_depth > 0;
}

int brc_store_end(brc_store *store, int keep, brc_error *err)
{
    int rc = brc_check_process(store, err);
    if (rc < 0)
        return keep ? rc : BRC_OK;
    if (store->write_depth == 0)
        return keep ? brc_fail(err, BRC_EMISUSE, "there is no transaction to end") : BRC_OK;
    store->write_depth--;
    if (!keep)
        store->undo = 1;
    if (store->write_depth > 0)
        return BRC_OK;
    if (!store->undo) {
        brc_reader_close(store);
        rc = brc_store_check_interrupt(store, err);
        if (rc == BRC_OK)
            rc = brc_backends_flush(store, err);
        if (rc == BRC_OK)
            rc = brc_rows_drop_left(store, err);
        if (rc == BRC_OK)
            rc = brc_exec(store, "COMMIT", err);
        if (rc == BRC_OK) {
            brc_row_forget(store);
            store->writes++;
            if (store->crowded_at != 0)
                store->committed_at = monotonic_ns();
            brc_page_cache_reset(store);
            return BRC_OK;
        }
    } else if (keep) {
        rc = brc_fail(err, BRC_EMISUSE, "an earlier step of this transaction failed, so all of it "
                                        "was undone");
    }
    brc_store_rollback(store);
    return rc;
}

int brc_store_begin_read(brc_store *store, brc_error *err)
{
    BRC_TRY(brc_check_process(store, err));
    BRC_TRY(brc_store_check_interrupt(store, err));
    store->read_depth++;
    int rc = brc_read_resume(store, err);
    if (rc < 0)
        store->read_depth--;
    return rc;
}

void brc_store_pause_read(brc_store *store)
{
    sqlite3_stmt *st;
    if (!store->is_reading || store->write_depth > 0)
        return;
    brc_reader_close(store);
    if (brc_stmt(store, "COMMIT", &st, NULL) < 0 || brc_run(store, st, NULL) < 0)
        brc_end_leftover(store);
    store->is_reading = 0;
}

void brc_store_end_read(brc_store *store)
{
    if (brc_store_is_forked(store))
        return;
    if (store->read_depth == 1)
        brc_store_pause_read(store);
    store->read_depth--;
}

int brc_store_version(brc_store *store, uint64_t *version, brc_error *err)
{
    sqlite3_stmt *st;
    BRC_TRY(brc_stmt(store, "PRAGMA data_version", &st, err));
    int rc = brc_step(store, st, err);
    if (rc < 0)
        return rc;
    *version = ((uint64_t)sqlite3_column_int64(st, 0) << 32) + store->writes;
    sqlite3_reset(st);
    return BRC_OK;
}
