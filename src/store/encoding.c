/* Encodings: the small numbers in the object index, and what they stand for. */
#include <string.h>

#include "db.h"

int brc_encoding_find(brc_store *store, const char *spec, int64_t *id, brc_error *err)
{
    sqlite3_stmt *st;
    brc_encoding_slot *slot = brc_encoding_cache_by_spec(&store->encodings, spec);
    *id = slot != NULL ? slot->id : -1;
    if (slot != NULL)
        return BRC_OK;
    BRC_TRY(brc_stmt(store, "SELECT id FROM encoding WHERE spec=?1", &st, err));
    sqlite3_bind_text(st, 1, spec, -1, SQLITE_STATIC);
    int rc = brc_step(store, st, err);
    if (rc < 0)
        return rc;
    if (rc == 0)
        return BRC_OK;
    *id = sqlite3_column_int64(st, 0);
    sqlite3_reset(st);
    return brc_encoding_cache_add(&store->encodings, *id, spec, &slot, err);
}

/* gc --expunge of another handle takes rows that nothing has: what is in memory may be of one. */
static int row_is_there(brc_store *store, const char *spec, int *is_there, brc_error *err)
{
    sqlite3_stmt *st;
    brc_encoding_slot *slot = brc_encoding_cache_by_spec(&store->encodings, spec);
    *is_there = slot != NULL && slot->seen == store->begun;
    if (slot == NULL || *is_there)
        return BRC_OK;
    BRC_TRY(brc_stmt(store, "SELECT 1 FROM encoding WHERE id=?1 AND spec=?2", &st, err));
    sqlite3_bind_int64(st, 1, slot->id);
    sqlite3_bind_text(st, 2, spec, -1, SQLITE_STATIC);
    BRC_TRY(*is_there = brc_step(store, st, err));
    sqlite3_reset(st);
    if (*is_there)
        slot->seen = store->begun;
    else
        slot->id = 0;
    return BRC_OK;
}

int brc_encoding_intern(brc_store *store, const char *spec, int64_t *id, brc_error *err)
{
    int is_there;
    sqlite3_stmt *st;
    brc_encoding_slot *slot;
    BRC_TRY(brc_bulk_resume(store, NULL, err));
    BRC_TRY(row_is_there(store, spec, &is_there, err));
    BRC_TRY(brc_encoding_find(store, spec, id, err));
    if (*id >= 0)
        return BRC_OK;
    BRC_TRY(brc_stmt(store, "INSERT INTO encoding(spec) VALUES (?1) ON CONFLICT DO NOTHING", &st,
                     err));
    sqlite3_bind_text(st, 1, spec, -1, SQLITE_STATIC);
    BRC_TRY(brc_run(store, st, err));
    if (sqlite3_changes(store->db) == 0) /* a bulk write waited, and another has added it */
        return brc_encoding_find(store, spec, id, err);
    *id = sqlite3_last_insert_rowid(store->db);
    return brc_encoding_cache_add(&store->encodings, *id, spec, &slot, err);
}

static int encoding_load(brc_store *store, int64_t id, brc_encoding_slot **out, brc_error *err)
{
    brc_buf spec = BRC_BUF_INIT;
    *out = brc_encoding_cache_by_id(&store->encodings, id);
    if (*out != NULL)
        return BRC_OK;
    int rc = brc_row_text(store, "SELECT spec FROM encoding WHERE id=?1", id, "encoding", &spec,
                          err);
    if (rc == BRC_OK)
        rc = brc_encoding_cache_add(&store->encodings, id, (const char *)spec.data, out, err);
    brc_buf_dispose(&spec);
    return rc;
}

int brc_encoding_spec(brc_store *store, int64_t id, const char **spec, brc_error *err)
{
    brc_encoding_slot *slot;
    *spec = NULL;
    if (id == 0)
        return BRC_OK;
    BRC_TRY(encoding_load(store, id, &slot, err));
    *spec = slot->spec;
    return BRC_OK;
}

int brc_encoding_digest(brc_store *store, int64_t id, uint64_t *digest, brc_error *err)
{
    brc_encoding_slot *slot;
    *digest = 0;
    if (id == 0)
        return BRC_OK;
    BRC_TRY(encoding_load(store, id, &slot, err));
    *digest = slot->digest;
    return BRC_OK;
}

int brc_encoding_chain(brc_store *store, int64_t id, const brc_chain **out, brc_error *err)
{
    brc_encoding_slot *slot;
    *out = NULL;
    if (id == 0)
        return BRC_OK;
    BRC_TRY(encoding_load(store, id, &slot, err));
    int rc = brc_encoding_slot_chain(slot, store->registry, out, err);
    if (rc < 0)
        brc_context(err, "%s: encoding %lld", store->path, (long long)id);
    return rc;
}
