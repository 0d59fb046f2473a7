/*
 * Drafts: uncommitted changes, as rows over the snapshot of a commit. A branch has at most one
 * shared draft; what a draft says of nodes and chunks is in draft_node.c and draft_chunk.c.
 */
#include <string.h>

#include "db.h"

#define DRAFT_SUM \
    "row_sum('draft', id, kind, state, branch, base, other, plan, owner, parent, time_us, changes)"
#define DRAFT_COLUMNS "id, kind, base, changes, checksum IS " DRAFT_SUM

static int draft_read(brc_store *store, sqlite3_stmt *st, brc_draft *out, brc_error *err)
{
    BRC_TRY(brc_row_check(store, st, 4, "the uncommitted changes", err));
    out->id = sqlite3_column_int64(st, 0);
    out->kind = sqlite3_column_int(st, 1);
    out->changes = sqlite3_column_int64(st, 3);
    out->has_base = sqlite3_column_type(st, 2) != SQLITE_NULL;
    return out->has_base ? brc_column_id(store, st, 2, &out->base, err) : BRC_OK;
}

static int draft_read_one(brc_store *store, sqlite3_stmt *st, brc_draft *out, brc_error *err)
{
    memset(out, 0, sizeof(*out));
    int rc = brc_step(store, st, err);
    if (rc <= 0)
        return rc;
    rc = draft_read(store, st, out, err);
    sqlite3_reset(st);
    return rc;
}

int brc_draft_shared(brc_store *store, const char *branch, brc_draft *out, brc_error *err)
{
    sqlite3_stmt *st;
    BRC_TRY(brc_stmt(store,
                     "SELECT " DRAFT_COLUMNS " FROM draft WHERE branch=?1 AND kind=1 AND state=1",
                     &st, err));
    sqlite3_bind_text(st, 1, branch, -1, SQLITE_STATIC);
    return draft_read_one(store, st, out, err);
}

int brc_draft_start(brc_store *store, int kind, const char *branch, const brc_oid *base,
                    int64_t time_us, int64_t *id, brc_error *err)
{
    sqlite3_stmt *st;
    BRC_TRY(brc_stmt(store,
                     "INSERT INTO draft(kind, state, branch, base, time_us, changes, checksum)"
                     " VALUES (?1, 1, ?2, ?3, ?4, 0, 0)",
                     &st, err));
    sqlite3_bind_int(st, 1, kind);
    sqlite3_bind_text(st, 2, branch, -1, SQLITE_STATIC);
    brc_bind_id(store, st, 3, base);
    sqlite3_bind_int64(st, 4, time_us);
    BRC_TRY(brc_run(store, st, err));
    *id = sqlite3_last_insert_rowid(store->db);
    return brc_draft_touch(store, *id, err);
}

int brc_draft_touch(brc_store *store, int64_t draft, brc_error *err)
{
    sqlite3_stmt *st;
    BRC_TRY(brc_stmt(store,
                     "UPDATE draft SET changes=changes+1, checksum=row_sum('draft', id, kind, state,"
                     " branch, base, other, plan, owner, parent, time_us, changes+1) WHERE id=?1",
                     &st, err));
    sqlite3_bind_int64(st, 1, draft);
    return brc_run(store, st, err);
}

/* Runs a statement whose parameter is a draft. */
static int draft_run(brc_store *store, const char *sql, int64_t draft, brc_error *err)
{
    sqlite3_stmt *st;
    BRC_TRY(brc_stmt(store, sql, &st, err));
    sqlite3_bind_int64(st, 1, draft);
    return brc_run(store, st, err);
}

int brc_draft_drop(brc_store *store, int64_t draft, brc_error *err)
{
    static const char *const steps[] = {
        "DELETE FROM draft_chunk WHERE node IN (SELECT node FROM draft_node WHERE draft=?1)",
        "DELETE FROM draft_node WHERE draft=?1", "DELETE FROM draft WHERE id=?1"
    };
    for (size_t i = 0; i < sizeof(steps) / sizeof(steps[0]); i++)
        BRC_TRY(draft_run(store, steps[i], draft, err));
    return BRC_OK;
}

int brc_draft_rename(brc_store *store, const char *from, const char *to, brc_error *err)
{
    sqlite3_stmt *st;
    BRC_TRY(brc_stmt(store,
                     "UPDATE draft SET branch=?2, checksum=row_sum('draft', id, kind, state, ?2,"
                     " base, other, plan, owner, parent, time_us, changes) WHERE branch=?1",
                     &st, err));
    sqlite3_bind_text(st, 1, from, -1, SQLITE_STATIC);
    sqlite3_bind_text(st, 2, to, -1, SQLITE_STATIC);
    return brc_run(store, st, err);
}
