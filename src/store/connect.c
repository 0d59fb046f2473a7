/*
 * The connection, with the precautions that a stranger's file needs.
 */
#include <stdlib.h>

#include "db.h"
#include "row_sum.h"

static void db_harden(sqlite3 *db)
{
    static const int off[] = {SQLITE_DBCONFIG_TRUSTED_SCHEMA, SQLITE_DBCONFIG_ENABLE_TRIGGER,
                              SQLITE_DBCONFIG_ENABLE_VIEW, SQLITE_DBCONFIG_DQS_DDL,
                              SQLITE_DBCONFIG_DQS_DML, SQLITE_DBCONFIG_ENABLE_LOAD_EXTENSION};
    for (size_t i = 0; i < sizeof(off) / sizeof(off[0]); i++)
        sqlite3_db_config(db, off[i], 0, NULL);
    sqlite3_db_config(db, SQLITE_DBCONFIG_DEFENSIVE, 1, NULL);
    sqlite3_limit(db, SQLITE_LIMIT_SQL_LENGTH, 65536);
    sqlite3_limit(db, SQLITE_LIMIT_EXPR_DEPTH, 100);
    sqlite3_limit(db, SQLITE_LIMIT_ATTACHED, 0);
    sqlite3_limit(db, SQLITE_LIMIT_TRIGGER_DEPTH, 1);
    sqlite3_limit(db, SQLITE_LIMIT_WORKER_THREADS, 0);
    sqlite3_limit(db, SQLITE_LIMIT_LENGTH, 0x7fffffff);
}

/* What counts from the first page on that is read. FAST: what is deleted is overwritten where its
 * page is written anyway, so gc can remove all traces. */
static int db_settings(brc_store *store, brc_error *err)
{
    return brc_exec(store,
                    "PRAGMA mmap_size=0; PRAGMA cell_size_check=ON; PRAGMA secure_delete=FAST;"
                    "PRAGMA temp_store=MEMORY;" BRC_SPILL,
                    err);
}

int brc_db_settle(brc_store *store, brc_error *err)
{
    /* Nodes have a cache of their own, so that of SQLite's pages can be small. EXTRA:
     * with FULL the folder is not synced when the journal is deleted, and a journal
     * that reappears after a loss of power would undo an acknowledged commit. */
    return brc_exec(store, "PRAGMA synchronous=EXTRA;" BRC_PAGE_CACHE, err);
}

static int note_log(void *ctx, sqlite3 *db, const char *name, int pages)
{
    (void)db, (void)name;
    ((brc_store *)ctx)->log_pages = pages;
    return SQLITE_OK;
}

int brc_db_connect(brc_store *store, int flags, unsigned how, brc_error *err)
{
    int rc = brc_vfs_connect(store->vfs, &store->db, flags, how);
    if (rc != SQLITE_OK)
        return brc_fail_db(store, rc, "open it", err);
    sqlite3_extended_result_codes(store->db, 1);
    db_harden(store->db);
    rc = brc_row_sum_register(store->db);
    if (rc != SQLITE_OK)
        return brc_fail_db(store, rc, "open it", err);
    sqlite3_busy_handler(store->db, brc_db_busy, store);
    sqlite3_wal_hook(store->db, note_log, store); /* in place of SQLite's own checkpoints */
    store->log_pages = 0;
    brc_schema_forget(store);
    return db_settings(store, err);
}

void brc_db_disconnect(brc_store *store)
{
    brc_reader_close(store);
    for (size_t i = 0; i < store->nstatements; i++)
        sqlite3_finalize(store->statements[i].stmt);
    free(store->statements);
    store->statements = NULL;
    store->nstatements = store->statements_cap = 0;
    sqlite3_close(store->db);
    store->db = NULL;
}
