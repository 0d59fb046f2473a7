/* What the file asks for: WAL mode or the rollback journal. See journal_mode.c. */
#include "db.h"

/* Waits until nobody else has the file open in WAL mode. */
static int leave_and_wait(brc_store *store, brc_error *err)
{
    int rc = SQLITE_OK;
    for (int tries = 0; brc_vfs_in_wal(store->vfs); tries++) {
        rc = brc_journal_leave(store);
        if (rc != SQLITE_OK && ((rc & 0xff) != SQLITE_BUSY || !brc_db_busy(store, tries)))
            break;
    }
    if ((rc & 0xff) == SQLITE_BUSY)
        return brc_fail(err, BRC_EBUSY,
                        "%s is open elsewhere in WAL mode (waited %g s), and only who has it alone "
                        "can end that: close it there, and try again", store->path,
                        store->wait_ms / 1000.0);
    return rc == SQLITE_OK ? BRC_OK : brc_fail_db(store, rc, "end its WAL mode", err);
}

static int write_setting(brc_store *store, int wal, int *again, brc_error *err)
{
    store->asks_wal = 0; /* so that this transaction uses the rollback journal */
    BRC_TRY(brc_store_begin(store, err));
    *again = brc_vfs_in_wal(store->vfs);
    int rc = BRC_OK;
    if (!*again)
        rc = wal ? brc_meta_put(store, BRC_META_JOURNAL, "wal", 3, 1, err)
                 : brc_meta_remove(store, BRC_META_JOURNAL, err);
    int end = brc_store_end(store, rc == BRC_OK && !*again, rc == BRC_OK ? err : NULL);
    return rc < 0 ? rc : end;
}

int brc_journal_set(brc_store *store, int wal, brc_error *err)
{
    int now, again = 1;
    BRC_TRY(brc_store_writable(store, err));
    BRC_TRY(brc_journal_get(store, &now, err));
    if (wal && !now)
        BRC_TRY(brc_vfs_wal_in_the_way(store->vfs, err));
    while (now != wal && again) {
        BRC_TRY(leave_and_wait(store, err));
        BRC_TRY(write_setting(store, wal, &again, err));
    }
    store->asks_wal = wal;
    return BRC_OK;
}

uint64_t brc_store_log_bytes(const brc_store *store)
{
    return brc_vfs_log_bytes(store->vfs);
}
