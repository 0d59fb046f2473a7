/* Derived rows of chunks that are asked for in an encoding in which they are not stored: how long
 * they are then. A row that is damaged is one that is not there. */
#include "db.h"

#define ENCODED_SUM "row_sum('encoded', id, encoding, length, digest)"

int brc_encoded_get(brc_store *store, const brc_oid *id, int64_t encoding, int *found,
                    uint64_t *length, uint64_t *digest, brc_error *err)
{
    sqlite3_stmt *st;
    int there;
    *found = 0;
    BRC_TRY(brc_schema_has(store, "encoded", &there, err));
    if (!there)
        return BRC_OK;
    BRC_TRY(brc_stmt(store,
                     "SELECT length, digest FROM encoded WHERE id=?1 AND encoding=?2"
                     " AND typeof(length)='integer' AND length>=0 AND checksum IS " ENCODED_SUM,
                     &st, err));
    brc_bind_id(store, st, 1, id);
    sqlite3_bind_int64(st, 2, encoding);
    int rc = brc_step(store, st, err);
    if (rc <= 0)
        return rc;
    *found = 1;
    *length = (uint64_t)sqlite3_column_int64(st, 0);
    *digest = (uint64_t)sqlite3_column_int64(st, 1);
    sqlite3_reset(st);
    return BRC_OK;
}

int brc_encoded_drop(brc_store *store, brc_error *err)
{
    int there;
    BRC_TRY(brc_schema_has(store, "encoded", &there, err));
    return there ? brc_exec(store, "DELETE FROM encoded", err) : BRC_OK;
}

int brc_encoded_put(brc_store *store, const brc_oid *id, int64_t encoding, uint64_t length,
                    uint64_t digest, brc_error *err)
{
    sqlite3_stmt *st;
    BRC_TRY(brc_schema_need(store, "encoded", err));
    BRC_TRY(brc_stmt(store,
                     "INSERT OR REPLACE INTO encoded(id, encoding, length, digest, checksum)"
                     " VALUES (?1, ?2, ?3, ?4, row_sum('encoded', ?1, ?2, ?3, ?4))",
                     &st, err));
    brc_bind_id(store, st, 1, id);
    sqlite3_bind_int64(st, 2, encoding);
    sqlite3_bind_int64(st, 3, (int64_t)length);
    sqlite3_bind_int64(st, 4, (int64_t)digest);
    return brc_run(store, st, err);
}
