/* Table delta: which object builds on which. */
#include <string.h>

#include "bases.h"
#include "db.h"

static int delta_table(brc_store *store, int *there, brc_error *err)
{
    return brc_schema_has(store, "delta", there, err);
}

int brc_deltas_there(brc_store *store, int *there, brc_error *err)
{
    sqlite3_stmt *st;
    BRC_TRY(delta_table(store, there, err));
    if (!*there)
        return BRC_OK;
    BRC_TRY(brc_stmt(store, "SELECT 1 FROM delta WHERE id>x'' LIMIT 1", &st, err));
    return brc_ask_any(store, st, there, err);
}

int brc_delta_base(brc_store *store, const brc_oid *id, int *found, brc_oid *base, brc_error *err)
{
    sqlite3_stmt *st;
    int there;
    *found = 0;
    BRC_TRY(delta_table(store, &there, err));
    if (!there)
        return BRC_OK;
    BRC_TRY(brc_stmt(store, "SELECT base FROM delta WHERE id=?1", &st, err));
    brc_bind_id(store, st, 1, id);
    int rc = brc_step(store, st, err);
    if (rc <= 0)
        return rc;
    rc = brc_column_id(store, st, 0, base, err);
    sqlite3_reset(st);
    *found = rc == BRC_OK;
    return rc;
}

/* Reads the ids that a statement gives: ?1 is the id before them, ?2 how many. */
static int read_ids(brc_store *store, sqlite3_stmt *st, const brc_oid *after, brc_oid *out,
                    size_t cap, size_t *n, brc_error *err)
{
    int rc;
    if (brc_oid_is_zero(after))
        sqlite3_bind_zeroblob(st, 1, 0);
    else
        brc_bind_id(store, st, 1, after);
    sqlite3_bind_int64(st, 2, (int64_t)cap);
    while ((rc = brc_step(store, st, err)) > 0) {
        memset(&out[*n], 0, sizeof(*out));
        rc = brc_column_id(store, st, 0, &out[*n], err);
        if (rc < 0)
            break;
        ++*n;
    }
    sqlite3_reset(st);
    return rc;
}

int brc_delta_page(brc_store *store, const brc_oid *after, brc_oid *out, size_t cap, size_t *n,
                   brc_error *err)
{
    sqlite3_stmt *st;
    int there;
    *n = 0;
    BRC_TRY(delta_table(store, &there, err));
    if (!there)
        return BRC_OK;
    BRC_TRY(brc_stmt(store, "SELECT id FROM delta WHERE id>?1 ORDER BY id LIMIT ?2", &st, err));
    return read_ids(store, st, after, out, cap, n, err);
}

int brc_delta_dependants(brc_store *store, const brc_oid *base, const brc_oid *after, brc_oid *out,
                         size_t cap, size_t *n, brc_error *err)
{
    sqlite3_stmt *st;
    int there;
    *n = 0;
    BRC_TRY(delta_table(store, &there, err));
    if (!there)
        return BRC_OK;
    BRC_TRY(brc_stmt(store, "SELECT id FROM delta WHERE base=?3 AND id>?1 ORDER BY id LIMIT ?2",
                     &st, err));
    brc_bind_id(store, st, 3, base);
    return read_ids(store, st, after, out, cap, n, err);
}

int brc_delta_depth(brc_store *store, const brc_oid *id, uint64_t *depth, brc_error *err)
{
    brc_oid at = *id, base;
    int found = 1;
    *depth = 0;
    while (found && *depth <= BRC_DELTA_DEPTH_MOST) {
        BRC_TRY(brc_delta_base(store, &at, &found, &base, err));
        *depth += found ? 1 : 0;
        at = found ? base : at;
    }
    return BRC_OK;
}

/* Stores the most differences between this object and one that builds on it; at most `most`. */
static int delta_height(brc_store *store, const brc_oid *id, uint64_t most, int64_t *height,
                        brc_error *err)
{
    sqlite3_stmt *st;
    BRC_TRY(brc_stmt(store,
                     "WITH RECURSIVE up(id, n) AS (VALUES(?1, 0) UNION ALL SELECT d.id, n+1"
                     " FROM up JOIN delta d ON d.base=up.id WHERE n<?2) SELECT max(n) FROM up",
                     &st, err));
    brc_bind_id(store, st, 1, id);
    sqlite3_bind_int64(st, 2, (int64_t)most);
    return brc_ask_number(store, st, height, err);
}

int brc_delta_fits(brc_store *store, const brc_oid *id, const brc_oid *base, uint64_t most,
                   int *fits, brc_error *err)
{
    int64_t height;
    uint64_t depth = 1;
    brc_oid at = *base, next;
    int found = 1;
    *fits = 0;
    BRC_TRY(brc_schema_need(store, "delta", err));
    while (found) {
        if (depth > most || brc_oid_cmp(&at, id) == 0)
            return BRC_OK;
        BRC_TRY(brc_delta_base(store, &at, &found, &next, err));
        depth += found ? 1 : 0;
        at = found ? next : at;
    }
    BRC_TRY(delta_height(store, id, most, &height, err));
    *fits = depth + (uint64_t)height <= most;
    return BRC_OK;
}

int brc_delta_totals(brc_store *store, uint64_t *objects, uint64_t *depth, brc_error *err)
{
    sqlite3_stmt *st;
    int there;
    int64_t n;
    *objects = *depth = 0;
    BRC_TRY(delta_table(store, &there, err));
    if (!there)
        return BRC_OK;
    BRC_TRY(brc_stmt(store, "SELECT count(*) FROM delta", &st, err));
    BRC_TRY(brc_ask_number(store, st, &n, err));
    *objects = (uint64_t)n;
    BRC_TRY(brc_stmt(store,
                     "WITH RECURSIVE up(id, n) AS (SELECT id, 1 FROM delta d WHERE NOT EXISTS"
                     " (SELECT 1 FROM delta e WHERE e.id=d.base) UNION ALL SELECT d.id, n+1"
                     " FROM up JOIN delta d ON d.base=up.id WHERE n<64)"
                     " SELECT coalesce(max(n),0) FROM up",
                     &st, err));
    BRC_TRY(brc_ask_number(store, st, &n, err));
    *depth = (uint64_t)n;
    return BRC_OK;
}

int brc_delta_note(brc_store *store, const brc_oid *id, const brc_oid *base, brc_error *err)
{
    sqlite3_stmt *st;
    int there;
    if (base != NULL) {
        BRC_TRY(brc_schema_need(store, "delta", err));
        BRC_TRY(brc_stmt(store, "INSERT OR REPLACE INTO delta(id, base) VALUES (?1, ?2)", &st,
                         err));
        brc_bind_id(store, st, 2, base);
    } else {
        BRC_TRY(delta_table(store, &there, err));
        if (!there)
            return BRC_OK;
        BRC_TRY(brc_stmt(store, "DELETE FROM delta WHERE id=?1", &st, err));
    }
    brc_bind_id(store, st, 1, id);
    return brc_run(store, st, err);
}
