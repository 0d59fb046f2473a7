/* Keys of a draft: bytes under a key of a Zarr store that are no node or chunk yet, and documents
 * of nodes that have no key (docs/FORMAT.md). */
#include <string.h>

#include "db.h"

#define KEY_OK "checksum IS row_sum('draft_key', draft, key, id)"

static const char key_row[] = "an uncommitted key";

int brc_draft_key_get(brc_store *store, int64_t draft, const char *key, int *state, brc_oid *id,
                      brc_error *err)
{
    sqlite3_stmt *st;
    *state = BRC_KEY_NO_ROW;
    BRC_TRY(brc_stmt(store, "SELECT id, " KEY_OK " FROM draft_key WHERE draft=?1 AND key=?2", &st,
                     err));
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
    BRC_TRY(brc_stmt(store, "SELECT 1 FROM draft_key WHERE draft=?1 LIMIT 1", &st, err));
    sqlite3_bind_int64(st, 1, draft);
    int rc = brc_step(store, st, err);
    if (rc < 0)
        return rc;
    *any = rc > 0;
    sqlite3_reset(st);
    return BRC_OK;
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
    int rc;
    BRC_GO(behind_prefix(&high, prefix, err));
    BRC_GO(brc_stmt(store,
                    "SELECT key, id, " KEY_OK " FROM draft_key WHERE draft=?1 AND key>=?2"
                    " AND key>=?3 AND (?4 IS NULL OR key<?4) ORDER BY key LIMIT ?5",
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
