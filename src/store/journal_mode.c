/*
 * WAL mode. A file asks for WAL mode in meta ('journal' is 'wal'). Its header says that it is in
 * WAL mode from a write on until the last connection closes it. At rest a repository is one file.
 *
 * The setting is written while the file is not in WAL mode, and the file is put into WAL mode only
 * in the state in which the setting was read. So whatever a log holds, FILE itself says whether it
 * may be in WAL mode.
 */
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "db.h"

/* The pages of a log from which on each commit copies it into the file, and from which on it tries
 * harder. */
enum { LOG_LONG = 1000, LOG_TOO_LONG = 4000 };

int brc_journal_get(brc_store *store, int *wal, brc_error *err)
{
    brc_buf value = BRC_BUF_INIT;
    int rc = brc_meta_find(store, BRC_META_JOURNAL, &value, err);
    *wal = rc > 0 && strcmp((const char *)value.data, "wal") == 0;
    brc_buf_dispose(&value);
    return rc < 0 ? rc : BRC_OK;
}

int brc_journal_load(brc_store *store, brc_error *err)
{
    return brc_journal_get(store, &store->asks_wal, err);
}

/* ---- FILE itself, without its log --------------------------------------------------------- */

/* Checks that table meta is whole. If a process was killed while it copied the log into FILE, rows
 * may be missing: a missing setting counts only if the whole table is valid. */
static int check_settings(brc_store *at, brc_error *err)
{
    int wrong;
    sqlite3_stmt *st;
    BRC_TRY(brc_stmt(at,
                     "SELECT 1 FROM meta WHERE checksum IS NOT row_sum('meta', key, value) LIMIT 1",
                     &st, err));
    BRC_TRY(brc_ask_any(at, st, &wrong, err));
    if (!wrong) {
        BRC_TRY(brc_stmt(at, "PRAGMA integrity_check(meta)", &st, err));
        int rc = brc_step(at, st, err);
        if (rc < 0)
            return rc;
        const char *found = rc > 0 ? (const char *)sqlite3_column_text(st, 0) : NULL;
        wrong = found == NULL || strcmp(found, "ok") != 0;
        sqlite3_reset(st);
    }
    return !wrong ? BRC_OK
                  : brc_fail(err, BRC_ECORRUPT, "%s is damaged: its settings are not whole",
                             at->path);
}

static int peek(brc_store *at, const brc_store *store, brc_error *err)
{
    int wal, flags = SQLITE_OPEN_READONLY | SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_EXRESCODE;
    at->process = store->process;
    at->readonly = 1;
    at->wait_ms = store->wait_ms;
    BRC_TRY(brc_dup(&at->path, store->path, err));
    BRC_TRY(brc_vfs_new(&at->vfs, brc_vfs_file_name(store->vfs), brc_vfs_base(store->vfs), err));
    unsigned how = brc_vfs_how(store->vfs) & BRC_VFS_UNLOCKED;
    BRC_TRY(brc_db_connect(at, flags, how | BRC_VFS_PEEK, err));
    BRC_TRY(brc_schema_check(at, err));
    BRC_TRY(brc_journal_get(at, &wal, err));
    return wal ? wal : check_settings(at, err);
}

/* Called by the VFS within a read of the store, so that nobody changes the setting. Copying a log
 * into the file changes pages, so checkpoints are held off. */
static int asks_for_wal(void *ctx, brc_error *err)
{
    brc_store *store = ctx;
    void *p;
    BRC_TRY(brc_new(&p, sizeof(brc_store), err));
    brc_store *at = p;
    brc_cache_init(&at->cache, 0);
    int held = brc_vfs_hold_checkpoints(store->vfs);
    int rc = peek(at, store, err);
    brc_db_disconnect(at);
    brc_vfs_free(at->vfs);
    brc_cache_dispose(&at->cache);
    free(at->path);
    free(at);
    brc_vfs_release(held);
    return rc;
}

void brc_journal_attach(brc_store *store)
{
    brc_vfs_on_wal(store->vfs, asks_for_wal, store);
}

/* ---- into WAL mode, and out of it ----------------------------------------------------------- */

static int note_mode(void *ctx, int n, char **values, char **names)
{
    (void)names;
    *(int *)ctx = n > 0 && values[0] != NULL && strcmp(values[0], "wal") == 0;
    return 0;
}

/* Reads the setting, and guards the next write: it is refused if the file has changed since. */
static int look_again(brc_store *store, brc_error *err)
{
    BRC_TRY(brc_exec(store, "BEGIN", err));
    store->is_reading = 1; /* so that no statement begins a paused read again */
    int rc = brc_journal_get(store, &store->asks_wal, err);
    if (rc == BRC_OK && brc_vfs_guard(store->vfs) != SQLITE_OK)
        store->asks_wal = 0; /* the next write says why */
    store->is_reading = 0;
    int end = brc_exec(store, "COMMIT", rc == BRC_OK ? err : NULL);
    return rc < 0 ? rc : end;
}

/* Tries to put the file into WAL mode. Returns 1 when that is done or must not be done, 0 to try
 * again. Does not wait long for readers: the transaction works without WAL mode. */
static int try_to_enter(brc_store *store, brc_error *err)
{
    enum { SHORT_MS = 100 };
    int is_wal = 0, wait = store->wait_ms;
    BRC_TRY(look_again(store, err));
    if (!store->asks_wal || brc_vfs_in_wal(store->vfs))
        return 1;
    if (brc_vfs_wal_in_the_way(store->vfs, NULL) < 0)
        return 1;
    store->wait_ms = wait < SHORT_MS ? wait : SHORT_MS;
    int rc = sqlite3_exec(store->db, "PRAGMA journal_mode=WAL", note_mode, &is_wal, NULL);
    store->wait_ms = wait;
    if (rc == BRC_VFS_REFUSED)
        return brc_vfs_refusal(store->vfs, err) == BRC_EBUSY ? 0 : BRC_EIO;
    if (rc != SQLITE_OK && (rc & 0xff) != SQLITE_BUSY)
        return brc_fail_db(store, rc, "put it into WAL mode", err);
    if (rc == SQLITE_OK && !is_wal)
        store->asks_wal = 0; /* the file cannot be put into WAL mode */
    return 1;
}

int brc_journal_enter(brc_store *store, brc_error *err)
{
    enum { TRIES = 20 };
    int rc = 0;
    if (!store->asks_wal || brc_vfs_in_wal(store->vfs))
        return BRC_OK;
    for (int i = 0; i < TRIES && rc == 0; i++) {
        rc = try_to_enter(store, err);
        brc_vfs_unguard(store->vfs);
    }
    return rc < 0 ? rc : BRC_OK;
}

void brc_journal_tend(brc_store *store)
{
    const struct timespec pause = {0, 1000000};
    if (!brc_vfs_in_wal(store->vfs) || store->log_pages < (store->folds_early ? 1 : LOG_LONG))
        return;
    int tries = store->log_pages < LOG_TOO_LONG ? 1 : 20, rc = SQLITE_BUSY;
    while (tries-- > 0 && rc == SQLITE_BUSY) {
        rc = sqlite3_wal_checkpoint_v2(store->db, NULL, SQLITE_CHECKPOINT_PASSIVE, NULL, NULL);
        if (rc == SQLITE_BUSY && tries > 0)
            nanosleep(&pause, NULL);
    }
}

/* Only the last connection can end WAL mode; SQLite does not wait for the others here. */
int brc_journal_leave(brc_store *store)
{
    brc_reader_close(store);
    brc_vfs_leaving(store->vfs, 1);
    int rc = sqlite3_exec(store->db, "PRAGMA journal_mode=DELETE", NULL, NULL, NULL);
    brc_vfs_leaving(store->vfs, 0);
    return rc;
}

/* Opens a connection that may write to copy the log if a reader, which cannot change the file, was
 * the last to close it. */
static void fold_for_reader(brc_store *store)
{
    int flags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_EXRESCODE;
    if (access(brc_vfs_file_name(store->vfs), W_OK) != 0 || !brc_vfs_is_log_left(store->vfs))
        return;
    store->wait_ms = 0;
    if (brc_db_connect(store, flags, 0, NULL) == BRC_OK && brc_db_settle(store, NULL) == BRC_OK &&
        sqlite3_exec(store->db, "SELECT count(*) FROM sqlite_schema", NULL, NULL, NULL) ==
            SQLITE_OK)
        (void)!brc_journal_leave(store);
    brc_db_disconnect(store);
}

void brc_journal_close(brc_store *store)
{
    if (store->vfs == NULL || !brc_vfs_in_wal(store->vfs)) {
        brc_db_disconnect(store);
        return;
    }
    int turn = brc_vfs_leave_begin(store->vfs);
    store->wait_ms = 0;
    if (!store->readonly)
        (void)!brc_journal_leave(store);
    brc_db_disconnect(store);
    if (store->readonly)
        fold_for_reader(store);
    brc_vfs_release(turn);
}
