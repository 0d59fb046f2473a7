/*
 * Children of a private draft: drafts that began with all that another showed, and that are to be
 * joined with it. One is a private draft like others, of the same process. Its plan says of which
 * draft it is the child, and `other` the commit that both lay over when it began (NULL: the empty
 * snapshot), which no ref names; its own base may be a later one, where it has children itself.
 */
#include <stdlib.h>
#include <string.h>

#include "../base/json.h"
#include "db.h"

int brc_draft_child_start(brc_store *store, const brc_draft_row *row, const char *plan, int64_t *id,
                          brc_error *err)
{
    sqlite3_stmt *st;
    BRC_TRY(brc_draft_start(store, row, id, err));
    BRC_TRY(brc_stmt(store,
                     "UPDATE draft SET other=base, plan=?2, checksum=row_sum('draft', id, kind,"
                     " state, branch, base, tip, base, ?2, owner, parent, time_us, changes, parts)"
                     " WHERE id=?1",
                     &st, err));
    sqlite3_bind_int64(st, 1, *id);
    sqlite3_bind_text(st, 2, plan, -1, SQLITE_STATIC);
    return brc_run(store, st, err);
}

static int child_plan(const char *text, brc_draft_child *out, brc_error *err)
{
    int rc = brc_json_parse(&out->plan, text != NULL ? text : "", text != NULL ? strlen(text) : 0,
                            err);
    if (rc < 0)
        return rc;
    if (brc_json_int(brc_json_member(out->plan, "fork"), 1, INT64_MAX, &out->parent))
        return BRC_OK;
    return brc_fail(err, BRC_ECORRUPT, "it does not say of which draft it is the child");
}

static int child_read(brc_store *store, sqlite3_stmt *st, brc_draft_child *out, brc_error *err)
{
    BRC_TRY(brc_row_check(store, st, 2, "the child of a session", err));
    out->has_fork = sqlite3_column_type(st, 0) != SQLITE_NULL;
    if (out->has_fork)
        BRC_TRY(brc_column_id(store, st, 0, &out->fork, err));
    return child_plan((const char *)sqlite3_column_text(st, 1), out, err);
}

int brc_draft_child_read(brc_store *store, int64_t draft, brc_draft_child *out, brc_error *err)
{
    sqlite3_stmt *st;
    memset(out, 0, sizeof(*out));
    BRC_TRY(brc_stmt(store,
                     "SELECT other, plan, checksum IS row_sum('draft', id, kind, state, branch,"
                     " base, tip, other, plan, owner, parent, time_us, changes, parts)"
                     " FROM draft WHERE id=?1 AND state=1 AND " BRC_IS_CHILD,
                     &st, err));
    sqlite3_bind_int64(st, 1, draft);
    int rc = brc_step(store, st, err);
    if (rc <= 0)
        return rc;
    rc = child_read(store, st, out, err);
    sqlite3_reset(st);
    if (rc < 0) {
        brc_context(err, "draft %lld", (long long)draft);
        brc_draft_child_dispose(out);
        return rc;
    }
    return 1;
}

void brc_draft_child_dispose(brc_draft_child *child)
{
    brc_json_free(child->plan);
    child->plan = NULL;
}

int brc_draft_was(brc_store *store, int64_t id, int *was, brc_error *err)
{
    sqlite3_stmt *st;
    BRC_TRY(brc_stmt(store, "SELECT 1 FROM sqlite_sequence WHERE name='draft' AND seq>=?1", &st,
                     err));
    sqlite3_bind_int64(st, 1, id);
    return brc_ask_any(store, st, was, err);
}

/* Of a child: its base is the commit that it was forked at. */
static int is_at_fork(brc_store *store, int64_t draft, int *is, brc_error *err)
{
    sqlite3_stmt *st;
    BRC_TRY(brc_stmt(store, "SELECT 1 FROM draft WHERE id=?1 AND base IS other", &st, err));
    sqlite3_bind_int64(st, 1, draft);
    return brc_ask_any(store, st, is, err);
}

int brc_draft_is_unused(brc_store *store, const brc_draft_head *draft, int *is, brc_error *err)
{
    *is = 1;
    if (draft->id != 0)
        BRC_TRY(brc_draft_is_empty(store, draft->id, is, err));
    if (*is && draft->is_child)
        return is_at_fork(store, draft->id, is, err);
    *is = *is && brc_draft_follows(draft, draft->has_base, &draft->base);
    return BRC_OK;
}

int brc_draft_is_small(brc_store *store, int64_t draft, size_t most, int *is, brc_error *err)
{
    sqlite3_stmt *st;
    int any;
    BRC_TRY(brc_stmt(store,
                     "SELECT 1 FROM draft_node n LEFT JOIN draft_chunk c ON c.node=n.node"
                     " WHERE n.draft=?1 LIMIT 1 OFFSET ?2",
                     &st, err));
    sqlite3_bind_int64(st, 1, draft);
    sqlite3_bind_int64(st, 2, (int64_t)most);
    BRC_TRY(brc_ask_any(store, st, &any, err));
    *is = !any;
    return BRC_OK;
}
