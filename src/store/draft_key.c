/* Keys of a draft: bytes under a key of a Zarr store that are no node or chunk yet, and documents
 * of nodes that have no key (docs/FORMAT.md). */
#include <string.h>

#include "collect.h"
#include "db.h"

#define KEY_OK "checksum IS row_sum('draft_key', draft, key, id)"

static const char key_row[] = "an uncommitted key";

/* A file in which there was no such key lacks the table. */
static int has_keys(brc_store *store, int *there, brc_error *err)
{
    return brc_schema_has(store, "draft_key", there, err);
}

/* Before the first change of a draft's keys since its newest savepoint, that gets them all. */
static int keys_change(brc_store *store, int64_t draft, brc_error *err)
{
    int64_t save;
    BRC_TRY(brc_draft_part_keeper(store, draft, BRC_PART_KEYS, &save, err));
    return save == 0 ? BRC_OK : brc_draft_keys_keep(store, draft, save, err);
}

int brc_draft_key_get(brc_store *store, int64_t draft, const char *key, int *state, brc_oid *id,
                      brc_error *err)
{
    int there;
    sqlite3_stmt *st;
    *state = BRC_KEY_NO_ROW;
    BRC_TRY(has_keys(store, &there, err));
    if (!there)
        return BRC_OK;
    BRC_TRY(brc_stmt(store, "SELECT id, " KEY_OK " FROM draft_key WHERE draft=" BRC_IF_KEYS
                            " AND key=?2", &st, err));
    sqlite3_bind_int64(st, 1, draft);
    sqlite3_bind_text(st, 2, key, -1, SQLITE_STATIC);
    int rc = brc_step(store, st, err);
    if (rc <= 0)
        return rc;
    *state = sqlite3_column_type(st, 0) == SQLITE_NULL ? BRC_KEY_HIDDEN : BRC_KEY_LOOSE;
    rc = brc_row_check(store, st, 1, key_row, err);
    if (rc == BRC_OK && *state == BRC_KEY_LOOSE)
        rc = brc_column_id(store, st, 0, id, err);
    sqlite3_reset(st);
    return rc;
}

int brc_draft_key_any(brc_store *store, int64_t draft, int *any, brc_error *err)
{
    sqlite3_stmt *st;
    BRC_TRY(has_keys(store, any, err));
    if (!*any)
        return BRC_OK;
    BRC_TRY(brc_stmt(store, "SELECT 1 FROM draft_key WHERE draft=" BRC_IF_KEYS " LIMIT 1", &st,
                     err));
    sqlite3_bind_int64(st, 1, draft);
    return brc_ask_any(store, st, any, err);
}

int brc_draft_key_put(brc_store *store, int64_t draft, const char *key, const brc_oid *id,
                      brc_error *err)
{
    sqlite3_stmt *st;
    BRC_TRY(keys_change(store, draft, err));
    BRC_TRY(brc_draft_has_part(store, draft, BRC_PART_KEYS, err));
    BRC_TRY(brc_schema_need(store, "draft_key", err));
    BRC_TRY(brc_stmt(store,
                     "INSERT OR REPLACE INTO draft_key(draft, key, id, checksum)"
                     " VALUES (?1, ?2, ?3, row_sum('draft_key', ?1, ?2, ?3))",
                     &st, err));
    sqlite3_bind_int64(st, 1, draft);
    sqlite3_bind_text(st, 2, key, -1, SQLITE_STATIC);
    brc_bind_id(store, st, 3, id);
    BRC_TRY(brc_run(store, st, err));
    return id != NULL ? brc_gc_keep(store, id, err) : BRC_OK;
}

int brc_draft_key_drop(brc_store *store, int64_t draft, const char *key, brc_error *err)
{
    int there;
    sqlite3_stmt *st;
    BRC_TRY(keys_change(store, draft, err));
    BRC_TRY(has_keys(store, &there, err));
    if (!there)
        return BRC_OK;
    BRC_TRY(brc_stmt(store, "DELETE FROM draft_key WHERE draft=" BRC_IF_KEYS " AND key=?2", &st,
                     err));
    sqlite3_bind_int64(st, 1, draft);
    sqlite3_bind_text(st, 2, key, -1, SQLITE_STATIC);
    return brc_run(store, st, err);
}

/* The first text behind all that begin with the prefix; empty: there is none. */
static int behind_prefix(brc_buf *out, const char *prefix, brc_error *err)
{
    out->len = 0;
    BRC_TRY(brc_buf_text(out, prefix, err));
    while (out->len > 0 && out->data[out->len - 1] == 0xff)
        out->len--;
    if (out->len > 0)
        out->data[out->len - 1]++;
    return BRC_OK;
}

static int each_key_row(brc_store *store, sqlite3_stmt *st, brc_draft_key_fn each, void *ctx,
                        brc_error *err)
{
    int rc;
    while ((rc = brc_step(store, st, err)) > 0) {
        brc_oid id;
        const int hidden = sqlite3_column_type(st, 1) == SQLITE_NULL;
        const char *key = (const char *)sqlite3_column_text(st, 0);
        rc = brc_row_check(store, st, 2, key_row, err);
        if (rc == BRC_OK && !hidden)
            rc = brc_column_id(store, st, 1, &id, err);
        if (rc == BRC_OK)
            rc = each(ctx, key != NULL ? key : "", hidden ? NULL : &id, err);
        if (rc < 0)
            break;
    }
    sqlite3_reset(st);
    return rc < 0 ? rc : BRC_OK;
}

int brc_draft_key_page(brc_store *store, int64_t draft, const char *prefix, const char *from,
                       size_t most, brc_draft_key_fn each, void *ctx, brc_error *err)
{
    sqlite3_stmt *st;
    brc_buf high = BRC_BUF_INIT;
    int rc, there;
    BRC_TRY(has_keys(store, &there, err));
    if (!there)
        return BRC_OK;
    BRC_GO(behind_prefix(&high, prefix, err));
    BRC_GO(brc_stmt(store,
                    "SELECT key, id, " KEY_OK " FROM draft_key WHERE draft=" BRC_IF_KEYS
                    " AND key>=?2 AND key>=?3 AND (?4 IS NULL OR key<?4) ORDER BY key LIMIT ?5",
                    &st, err));
    sqlite3_bind_int64(st, 1, draft);
    sqlite3_bind_text(st, 2, prefix, -1, SQLITE_STATIC);
    sqlite3_bind_text(st, 3, from != NULL ? from : "", -1, SQLITE_STATIC);
    if (high.len > 0)
        sqlite3_bind_text(st, 4, (const char *)high.data, (int)high.len, SQLITE_STATIC);
    sqlite3_bind_int64(st, 5, (int64_t)most);
    rc = each_key_row(store, st, each, ctx, err);
done:
    brc_buf_dispose(&high);
    return rc;
}

/* Keys that begin with the prefix. */
static int prefix_stmt(brc_store *store, const char *sql, int64_t draft, const char *prefix,
                       brc_buf *high, sqlite3_stmt **st, brc_error *err)
{
    BRC_TRY(behind_prefix(high, prefix, err));
    BRC_TRY(brc_stmt(store, sql, st, err));
    sqlite3_bind_int64(*st, 1, draft);
    sqlite3_bind_text(*st, 2, prefix, -1, SQLITE_STATIC);
    if (high->len > 0)
        sqlite3_bind_text(*st, 3, (const char *)high->data, (int)high->len, SQLITE_STATIC);
    return BRC_OK;
}

static int clear_keys(brc_store *store, int64_t draft, const char *prefix, const char *sql,
                      brc_error *err)
{
    int there;
    sqlite3_stmt *st;
    brc_buf high = BRC_BUF_INIT;
    BRC_TRY(keys_change(store, draft, err));
    BRC_TRY(has_keys(store, &there, err));
    if (!there)
        return BRC_OK;
    int rc = prefix_stmt(store, sql, draft, prefix, &high, &st, err);
    if (rc == BRC_OK)
        rc = brc_run(store, st, err);
    brc_buf_dispose(&high);
    return rc;
}

int brc_draft_key_clear_loose(brc_store *store, int64_t draft, const char *prefix, brc_error *err)
{
    return clear_keys(store, draft, prefix,
                      "DELETE FROM draft_key WHERE draft=" BRC_IF_KEYS " AND key>=?2"
                      " AND (?3 IS NULL OR key<?3) AND id IS NOT NULL"
                      " AND key NOT LIKE '%zarr.json'",
                      err);
}

int brc_draft_key_clear(brc_store *store, int64_t draft, const char *prefix, brc_error *err)
{
    return clear_keys(store, draft, prefix,
                      "DELETE FROM draft_key WHERE draft=" BRC_IF_KEYS " AND key>=?2"
                      " AND (?3 IS NULL OR key<?3)",
                      err);
}

int brc_draft_key_copy(brc_store *store, int64_t draft, const char *from, int64_t to_draft,
                       const char *to, brc_error *err)
{
    sqlite3_stmt *st;
    int any = 0;
    brc_buf high = BRC_BUF_INIT;
    BRC_TRY(brc_draft_key_any(store, draft, &any, err));
    if (!any)
        return BRC_OK;
    BRC_TRY(keys_change(store, to_draft, err));
    BRC_TRY(brc_draft_has_part(store, to_draft, BRC_PART_KEYS, err));
    int rc = prefix_stmt(store,
                         "INSERT OR REPLACE INTO draft_key(draft, key, id, checksum)"
                         " SELECT ?5, ?4 || substr(key, length(?2)+1), id,"
                         " row_sum('draft_key', ?5, ?4 || substr(key, length(?2)+1), id)"
                         " FROM draft_key WHERE draft=" BRC_IF_KEYS
                         " AND key>=?2 AND (?3 IS NULL OR key<?3)",
                         draft, from, &high, &st, err);
    if (rc == BRC_OK) {
        sqlite3_bind_text(st, 4, to, -1, SQLITE_STATIC);
        sqlite3_bind_int64(st, 5, to_draft);
        rc = brc_run(store, st, err);
    }
    brc_buf_dispose(&high);
    return rc;
}

int brc_draft_keys_keep(brc_store *store, int64_t draft, int64_t save, brc_error *err)
{
    BRC_TRY(brc_draft_key_copy(store, draft, "", save, "", err));
    BRC_TRY(brc_draft_touch(store, save, err));
    return brc_draft_has_part(store, save, BRC_PART_KEYS, err); /* also where there are none */
}

int brc_draft_keys_meet(brc_store *store, int64_t a, int64_t b, brc_buf *key, brc_error *err)
{
    int there;
    sqlite3_stmt *st;
    BRC_TRY(has_keys(store, &there, err));
    if (!there)
        return 0;
    BRC_TRY(brc_stmt(store,
                     "SELECT x.key FROM draft_key x JOIN draft_key y ON y.draft=?2 AND y.key=x.key"
                     " WHERE x.draft=" BRC_IF_KEYS " AND x.id IS NOT y.id"
                     " ORDER BY x.key LIMIT 1",
                     &st, err));
    sqlite3_bind_int64(st, 1, a);
    sqlite3_bind_int64(st, 2, b);
    int rc = brc_step(store, st, err);
    if (rc <= 0)
        return rc;
    const char *text = (const char *)sqlite3_column_text(st, 0);
    rc = brc_buf_text(key, text != NULL ? text : "", err);
    if (rc == BRC_OK)
        rc = brc_buf_terminate(key, err);
    sqlite3_reset(st);
    return rc < 0 ? rc : 1;
}
