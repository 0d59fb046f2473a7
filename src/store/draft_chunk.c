/* Chunks of a draft: those of an array that were written or dropped since the base. */
#include <string.h>

#include "db.h"

#define CHUNK_OK "checksum IS row_sum('draft_chunk', node, key, id)"

static const char chunk_row[] = "an uncommitted chunk";

static int draft_bind_key(sqlite3_stmt *st, int64_t node, const void *key, size_t key_len)
{
    sqlite3_bind_int64(st, 1, node);
    return sqlite3_bind_blob64(st, 2, key_len > 0 ? key : "", key_len, SQLITE_STATIC);
}

int brc_draft_chunk_put(brc_store *store, int64_t node, const void *key, size_t key_len,
                        const brc_oid *id, brc_error *err)
{
    sqlite3_stmt *st;
    BRC_TRY(brc_stmt(store,
                     "INSERT OR REPLACE INTO draft_chunk(node, key, id, checksum)"
                     " VALUES (?1, ?2, ?3, row_sum('draft_chunk', ?1, ?2, ?3))",
                     &st, err));
    draft_bind_key(st, node, key, key_len);
    brc_bind_id(store, st, 3, id);
    return brc_run(store, st, err);
}

int brc_draft_chunk_get(brc_store *store, int64_t node, const void *key, size_t key_len, int *state,
                        brc_oid *id, brc_error *err)
{
    sqlite3_stmt *st;
    *state = 0;
    BRC_TRY(brc_stmt(store, "SELECT id, " CHUNK_OK " FROM draft_chunk WHERE node=?1 AND key=?2",
                     &st, err));
    draft_bind_key(st, node, key, key_len);
    int rc = brc_step(store, st, err);
    if (rc <= 0)
        return rc;
    *state = sqlite3_column_type(st, 0) == SQLITE_NULL ? 2 : 1;
    rc = brc_row_check(store, st, 1, chunk_row, err);
    if (rc == BRC_OK && *state == 1)
        rc = brc_column_id(store, st, 0, id, err);
    sqlite3_reset(st);
    return rc;
}

static int draft_each_chunk_row(brc_store *store, sqlite3_stmt *st, brc_draft_chunk_fn each,
                                void *ctx, brc_error *err)
{
    int rc;
    while ((rc = brc_step(store, st, err)) > 0) {
        brc_oid id;
        int dropped = sqlite3_column_type(st, 1) == SQLITE_NULL;
        rc = brc_row_check(store, st, 2, chunk_row, err);
        if (rc == BRC_OK && !dropped)
            rc = brc_column_id(store, st, 1, &id, err);
        if (rc == BRC_OK)
            rc = each(ctx, sqlite3_column_blob(st, 0), (size_t)sqlite3_column_bytes(st, 0),
                      dropped ? NULL : &id, err);
        if (rc < 0)
            break;
    }
    sqlite3_reset(st);
    return rc < 0 ? rc : BRC_OK;
}

int brc_draft_chunk_each(brc_store *store, int64_t node, brc_draft_chunk_fn each, void *ctx,
                         brc_error *err)
{
    sqlite3_stmt *st;
    BRC_TRY(brc_stmt(store,
                     "SELECT key, id, " CHUNK_OK " FROM draft_chunk WHERE node=?1 ORDER BY key",
                     &st, err));
    sqlite3_bind_int64(st, 1, node);
    return draft_each_chunk_row(store, st, each, ctx, err);
}

int brc_draft_chunk_page(brc_store *store, int64_t node, brc_span after, size_t most,
                         brc_draft_chunk_fn each, void *ctx, brc_error *err)
{
    sqlite3_stmt *st;
    BRC_TRY(brc_stmt(store,
                     "SELECT key, id, " CHUNK_OK " FROM draft_chunk WHERE node=?1 AND key>?2"
                     " ORDER BY key LIMIT ?3",
                     &st, err));
    sqlite3_bind_int64(st, 1, node);
    if (after.data != NULL)
        sqlite3_bind_blob64(st, 2, after.data, after.len, SQLITE_STATIC);
    else
        sqlite3_bind_int(st, 2, 0); /* which comes before every blob */
    sqlite3_bind_int64(st, 3, (int64_t)most);
    return draft_each_chunk_row(store, st, each, ctx, err);
}

int brc_draft_chunk_any(brc_store *store, int64_t node, int *any, brc_error *err)
{
    sqlite3_stmt *st;
    BRC_TRY(brc_stmt(store, "SELECT 1 FROM draft_chunk WHERE node=?1 LIMIT 1", &st, err));
    sqlite3_bind_int64(st, 1, node);
    int rc = brc_step(store, st, err);
    if (rc < 0)
        return rc;
    *any = rc > 0;
    sqlite3_reset(st);
    return BRC_OK;
}

int brc_draft_chunk_clear(brc_store *store, int64_t node, const void *key, size_t key_len,
                          brc_error *err)
{
    sqlite3_stmt *st;
    if (key == NULL) {
        BRC_TRY(brc_stmt(store, "DELETE FROM draft_chunk WHERE node=?1", &st, err));
        sqlite3_bind_int64(st, 1, node);
    } else {
        BRC_TRY(brc_stmt(store, "DELETE FROM draft_chunk WHERE node=?1 AND key=?2", &st, err));
        draft_bind_key(st, node, key, key_len);
    }
    return brc_run(store, st, err);
}
