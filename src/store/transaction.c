/* Transactions. */
#include <string.h>

#include "../base/process.h"
#include "backend.h"

int brc_store_writable(brc_store *store, brc_error *err)
{
    if (store->readonly)
        return brc_fail(err, BRC_EREADONLY,
                        "%s is open for reading only: changes need write permission for the file "
                        "and its folder, and no --no-recover",
                        store->path);
    return BRC_OK;
}

int brc_begin_immediate(brc_store *store, brc_error *err)
{
    brc_end_leftover(store);
    brc_wait_turn(store);
    BRC_TRY(brc_journal_enter(store, err));
    store->begun++;
    BRC_TRY(brc_exec(store, "BEGIN IMMEDIATE", err));
    store->is_writing = 1;
    store->changes_before = sqlite3_total_changes(store->db);
    return BRC_OK;
}

int brc_commit_immediate(brc_store *store, brc_error *err)
{
    store->is_writing = 0;
    return brc_exec(store, "COMMIT", err);
}

int brc_store_check_same(brc_store *store, brc_error *err)
{
    brc_buf secret = BRC_BUF_INIT;
    int rc = brc_meta_get(store, "secret", &secret, err);
    if (rc == BRC_OK && (secret.len != sizeof(store->secret) ||
                         memcmp(secret.data, store->secret, secret.len) != 0))
        rc = brc_fail(err, BRC_ESTALE,
                      "%s was replaced by another repository: open it again",
                      store->path);
    brc_buf_dispose(&secret);
    return rc;
}

int brc_store_begin(brc_store *store, brc_error *err)
{
    BRC_TRY(brc_store_check_process(store, err));
    BRC_TRY(brc_store_check_interrupt(store, err));
    if (store->bulk.on) {
        BRC_TRY(store->bulk.enter(store, err));
        if (store->write_depth == 0)
            store->undo = 0;
    } else if (store->write_depth == 0) {
        BRC_TRY(brc_store_writable(store, err));
        if (store->read_depth > 0)
            return brc_fail(err, BRC_EMISUSE, "a write cannot begin inside a read");
        BRC_TRY(brc_begin_immediate(store, err));
        int rc = brc_store_check_same(store, err);
        if (rc < 0) {
            brc_end_leftover(store);
            return rc;
        }
        store->undo = 0;
    } else if (sqlite3_get_autocommit(store->db)) {
        /* SQLite undid the transaction when a step failed; later steps must not be committed
         * alone. */
        store->undo = 1;
        return brc_fail(err, BRC_EMISUSE,
                        "an earlier step of this transaction failed, so everything was undone");
    }
    store->write_depth++;
    return BRC_OK;
}

int brc_store_try_begin(brc_store *store)
{
    int wait = store->wait_ms;
    if (store->write_depth > 0 || store->read_depth > 0 || store->readonly || store->bulk.on)
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
    store->is_writing = 0;
    sqlite3_exec(store->db, "ROLLBACK", NULL, NULL, NULL);
    /* Drops everything that the transaction has added from memory. */
    brc_row_forget(store);
    brc_backends_forget(store);
    brc_cache_clear(&store->cache);
    brc_encoding_cache_forget(&store->encodings);
    brc_page_cache_reset(store);
    brc_schema_forget(store);
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

/* Commits, which waits for readers and locks new ones out meanwhile. If a reader stays longer than
 * the time to wait (it may be stopped), that must not last: the caller rolls back. */
static int commit_waits(brc_store *store, brc_error *err)
{
    int rc = brc_commit_immediate(store, err);
    if (rc != BRC_EBUSY)
        return rc;
    return brc_fail(err, BRC_EBUSY,
                    "%s is in use by another process, which is reading it (waited %g s): this "
                    "change was undone, and earlier uncommitted changes are kept; try again, or "
                    "wait longer with --wait",
                    store->path, store->wait_ms / 1000.0);
}

/* Commits the transaction in SQLite, and undoes it if that fails. */
int brc_store_commit(brc_store *store, brc_error *err)
{
    brc_reader_close(store);
    int rc = brc_store_check_interrupt(store, err);
    if (rc == BRC_OK)
        rc = brc_draft_drop_left(store, err);
    if (rc == BRC_OK)
        rc = brc_draft_sweep(store, err);
    if (rc == BRC_OK)
        rc = brc_backends_flush(store, err);
    if (rc == BRC_OK)
        rc = brc_rows_leave(store, err);
    if (rc == BRC_OK)
        rc = commit_waits(store, err);
    if (rc < 0) {
        brc_store_rollback(store);
        return rc;
    }
    brc_row_forget(store);
    store->late_drafts.n = 0;
    store->writes++;
    brc_wait_committed(store);
    brc_page_cache_reset(store);
    brc_journal_tend(store);
    return BRC_OK;
}

int brc_store_end(brc_store *store, int keep, brc_error *err)
{
    int rc = brc_store_check_process(store, err);
    if (rc < 0)
        return keep ? rc : BRC_OK;
    if (store->write_depth == 0)
        return keep ? brc_fail(err, BRC_EMISUSE, "there is no transaction to end") : BRC_OK;
    store->write_depth--;
    if (!keep)
        store->undo = 1;
    if (store->write_depth > 0)
        return BRC_OK;
    if (store->bulk.on)
        return store->bulk.leave(store, keep, err);
    if (!store->undo)
        return brc_store_commit(store, err);
    if (keep) {
        rc = brc_fail(err, BRC_EMISUSE, "an earlier step of this transaction failed, so everything "
                                        "was undone");
    }
    brc_store_rollback(store);
    return rc;
}

int brc_store_begin_read(brc_store *store, brc_error *err)
{
    BRC_TRY(brc_store_check_process(store, err));
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
    if (!store->is_reading || (store->write_depth > 0 && !store->bulk.on) || store->read_held > 0)
        return;
    brc_reader_close(store);
    if (brc_stmt(store, "COMMIT", &st, NULL) < 0 || brc_run(store, st, NULL) < 0)
        brc_end_leftover(store);
    store->is_reading = 0;
}

void brc_store_breathe(brc_store *store)
{
    enum { LONG = 20000000 };
    if (store->is_reading && brc_monotonic_ns() - store->reading_since > LONG)
        brc_store_pause_read(store);
}

void brc_store_hold_read(brc_store *store, int is_held)
{
    store->read_held += is_held ? 1 : -1;
}

void brc_store_end_read(brc_store *store)
{
    if (brc_store_is_forked(store))
        return;
    if (store->read_depth == 1)
        brc_store_pause_read(store);
    store->read_depth--;
}

int brc_store_others(brc_store *store, int64_t *version, brc_error *err)
{
    sqlite3_stmt *st;
    BRC_TRY(brc_stmt(store, "PRAGMA data_version", &st, err));
    return brc_ask_number(store, st, version, err);
}

int brc_store_version(brc_store *store, uint64_t *version, brc_error *err)
{
    int64_t others;
    BRC_TRY(brc_store_others(store, &others, err));
    *version = ((uint64_t)others << 32) + store->writes;
    return BRC_OK;
}
