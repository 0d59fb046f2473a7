/*
 * Drafts: uncommitted changes, as rows over the snapshot of a commit. A branch has at most one
 * shared draft. The rows of a draft's nodes, chunks and moves are in draft_node.c, draft_chunk.c
 * and draft_save.c.
 *
 * A draft with a parent is a child or a savepoint. A child is a private draft like others, of the
 * same process, that began with the content of its parent and will be joined with it. `other` is
 * the commit that was the base of both then (NULL: the empty snapshot), which no ref names. The
 * child's base may be a later commit if it has children itself.
 */
#include <stdlib.h>
#include <string.h>

#include "../base/process.h"
#include "collect.h"
#include "db.h"

int brc_draft_was(brc_store *store, int64_t id, int *was, brc_error *err)
{
    sqlite3_stmt *st;
    BRC_TRY(brc_stmt(store, "SELECT 1 FROM sqlite_sequence WHERE name='draft' AND seq>=?1", &st,
                     err));
    sqlite3_bind_int64(st, 1, id);
    return brc_ask_any(store, st, was, err);
}

/* Stores whether a child's base is still the commit at which it was forked, and a savepoint's base
 * its tip. */
static int is_at_fork(brc_store *store, int64_t draft, int *is, brc_error *err)
{
    sqlite3_stmt *st;
    BRC_TRY(brc_stmt(store,
                     "SELECT 1 FROM draft WHERE id=?1 AND base IS iif(" BRC_IS_SAVE ", tip, other)",
                     &st, err));
    sqlite3_bind_int64(st, 1, draft);
    return brc_ask_any(store, st, is, err);
}

int brc_draft_is_unused(brc_store *store, const brc_draft_head *draft, int *is, brc_error *err)
{
    *is = 1;
    if (draft->id != 0)
        BRC_TRY(brc_draft_is_empty(store, draft->id, is, err));
    if (*is && draft->parent != 0)
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

/* ==== draft ================================ */

#define DRAFT_SUM                                                                                \
    "row_sum('draft', id, kind, state, branch, base, tip, other, plan, owner, parent, time_us,"   \
    " changes, parts)"
#define DRAFT_COLUMNS \
    "id, kind, changes, base, tip, checksum IS " DRAFT_SUM ", time_us, branch, owner, parts, parent"

static int draft_commit_id(brc_store *store, sqlite3_stmt *st, int column, int *has, brc_oid *id,
                           brc_error *err)
{
    *has = sqlite3_column_type(st, column) != SQLITE_NULL;
    return *has ? brc_column_id(store, st, column, id, err) : BRC_OK;
}

static int draft_read(brc_store *store, sqlite3_stmt *st, brc_draft_head *out, brc_error *err)
{
    memset(out, 0, sizeof(*out));
    BRC_TRY(brc_row_check(store, st, 5, "the uncommitted changes", err));
    out->id = sqlite3_column_int64(st, 0);
    out->kind = sqlite3_column_int(st, 1);
    out->changes = sqlite3_column_int64(st, 2);
    out->time_us = sqlite3_column_int64(st, 6);
    out->saves = (sqlite3_column_int(st, 9) & BRC_PART_SAVES) != 0;
    out->logs = (sqlite3_column_int(st, 9) & BRC_PART_LOG) != 0;
    out->parent = sqlite3_column_int64(st, 10);
    BRC_TRY(draft_commit_id(store, st, 3, &out->has_base, &out->base, err));
    return draft_commit_id(store, st, 4, &out->has_tip, &out->tip, err);
}

/* Reads the statement's only row; out->id is 0 if there is none. */
static int draft_read_one(brc_store *store, sqlite3_stmt *st, brc_draft_head *out, brc_error *err)
{
    memset(out, 0, sizeof(*out));
    int rc = brc_step(store, st, err);
    if (rc <= 0)
        return rc;
    rc = draft_read(store, st, out, err);
    sqlite3_reset(st);
    return rc;
}

/* A file that never had a merge with conflicts lacks the table of conflicts: then no draft is an
 * open merge. */
int brc_draft_merge(brc_store *store, const char *branch, brc_draft_head *out, brc_error *err)
{
    sqlite3_stmt *st;
    int there;
    memset(out, 0, sizeof(*out));
    BRC_TRY(brc_schema_has(store, "conflict", &there, err));
    if (!there)
        return BRC_OK;
    BRC_TRY(brc_stmt(store,
                     "SELECT " DRAFT_COLUMNS " FROM draft WHERE branch=?1 AND kind=3 AND state=1"
                     " ORDER BY id LIMIT 1",
                     &st, err));
    sqlite3_bind_text(st, 1, branch, -1, SQLITE_STATIC);
    return draft_read_one(store, st, out, err);
}

int brc_draft_shared(brc_store *store, const char *branch, brc_draft_head *out, brc_error *err)
{
    sqlite3_stmt *st;
    int64_t id;
    BRC_TRY(brc_draft_merge(store, branch, out, err));
    if (out->id != 0)
        return BRC_OK;
    /* Most branches have no open merge, and this short statement is prepared quickly. */
    BRC_TRY(brc_stmt(store, "SELECT id FROM draft WHERE branch=?1 AND kind=1 AND state=1", &st,
                     err));
    sqlite3_bind_text(st, 1, branch, -1, SQLITE_STATIC);
    BRC_TRY(brc_ask_number(store, st, &id, err));
    return id != 0 ? brc_draft_get(store, id, out, err) : BRC_OK;
}

int brc_draft_get(brc_store *store, int64_t id, brc_draft_head *out, brc_error *err)
{
    sqlite3_stmt *st;
    BRC_TRY(brc_stmt(store, "SELECT " DRAFT_COLUMNS " FROM draft WHERE id=?1 AND state=1", &st,
                     err));
    sqlite3_bind_int64(st, 1, id);
    return draft_read_one(store, st, out, err);
}

int brc_draft_check_there(brc_store *store, int64_t id, brc_error *err)
{
    brc_draft_head head;
    BRC_TRY(brc_draft_get(store, id, &head, err));
    return head.id != 0 ? BRC_OK
                        : brc_fail(err, BRC_ESTALE,
                                   "the draft of this bulk write (%lld) was adopted or dropped by "
                                   "another session: write it again",
                                   (long long)id);
}

int brc_draft_of_owner(brc_store *store, const char *owner, brc_draft_head *out, brc_error *err)
{
    sqlite3_stmt *st;
    int64_t id;
    memset(out, 0, sizeof(*out));
    BRC_TRY(brc_stmt(store, "SELECT id FROM draft WHERE owner=?1 AND kind=2 AND state=1", &st,
                     err));
    sqlite3_bind_text(st, 1, owner, -1, SQLITE_STATIC);
    BRC_TRY(brc_ask_number(store, st, &id, err));
    return id != 0 ? brc_draft_get(store, id, out, err) : BRC_OK;
}

static int same_commit(int has, const brc_oid *id, int has_other, const brc_oid *other)
{
    return has == has_other && (!has || brc_oid_cmp(id, other) == 0);
}

int brc_draft_follows(const brc_draft_head *draft, int has, const brc_oid *tip)
{
    return same_commit(draft->has_tip, &draft->tip, has, tip);
}

int brc_draft_same_version(const brc_draft_head *a, const brc_draft_head *b)
{
    return same_commit(a->has_base, &a->base, b->has_base, &b->base) &&
           same_commit(a->has_tip, &a->tip, b->has_tip, &b->tip);
}

int brc_draft_unchanged(const brc_draft_head *a, const brc_draft_head *b)
{
    return a->id == b->id && a->changes == b->changes && brc_draft_same_version(a, b);
}

void brc_draft_rows_free(brc_draft_row *rows, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        free((char *)rows[i].branch);
        free((char *)rows[i].owner);
        free((char *)rows[i].plan);
    }
    free(rows);
}

/* Copies a column's text, "" for NULL. */
static int draft_text(sqlite3_stmt *st, int column, const char **out, brc_error *err)
{
    const char *text = (const char *)sqlite3_column_text(st, column);
    char *copy;
    BRC_TRY(brc_dup(&copy, text != NULL ? text : "", err));
    *out = copy;
    return BRC_OK;
}

static int draft_row_read(brc_store *store, sqlite3_stmt *st, brc_draft_row *out, brc_error *err)
{
    BRC_TRY(draft_read(store, st, &out->draft, err));
    BRC_TRY(draft_text(st, 7, &out->branch, err));
    BRC_TRY(draft_text(st, 8, &out->owner, err));
    BRC_TRY(draft_text(st, 11, &out->plan, err));
    out->parts = sqlite3_column_int(st, 9);
    return draft_commit_id(store, st, 12, &out->has_other, &out->other, err);
}

static const char *const draft_lists[] = {
    [BRC_DRAFTS_ALL] = "SELECT " DRAFT_COLUMNS ", plan, other FROM draft"
                       " WHERE state=1 AND NOT " BRC_IS_SAVE " ORDER BY id",
    [BRC_DRAFTS_SAVES] = "SELECT " DRAFT_COLUMNS ", plan, other FROM draft WHERE id IN"
                         " (SELECT s.id FROM " BRC_SAVES_OF ") ORDER BY id",
    [BRC_DRAFTS_POINTS] = "SELECT " DRAFT_COLUMNS ", plan, other FROM draft WHERE state=1"
                          " AND " BRC_IS_POINT " AND parent IN (SELECT id FROM draft"
                          " WHERE kind=1 AND state=1) ORDER BY id",
    [BRC_DRAFTS_ONE] = "SELECT " DRAFT_COLUMNS ", plan, other FROM draft WHERE id=?1 AND state=1",
};

int brc_draft_list(brc_store *store, int which, int64_t draft, brc_draft_row **out, size_t *n,
                   brc_error *err)
{
    sqlite3_stmt *st;
    void *rows = NULL;
    size_t cap = 0;
    int rc;
    *out = NULL;
    *n = 0;
    BRC_TRY(brc_stmt(store, draft_lists[which], &st, err));
    if (which == BRC_DRAFTS_SAVES || which == BRC_DRAFTS_ONE)
        sqlite3_bind_int64(st, 1, draft);
    while ((rc = brc_step(store, st, err)) > 0) {
        BRC_GO(brc_grow_array(&rows, &cap, *n + 1, sizeof(**out), err));
        brc_draft_row *row = &((brc_draft_row *)rows)[(*n)++];
        memset(row, 0, sizeof(*row));
        BRC_GO(draft_row_read(store, st, row, err));
    }
done:
    sqlite3_reset(st);
    if (rc < 0) {
        brc_draft_rows_free(rows, *n);
        *n = 0; /* the rows are freed already */
        return rc;
    }
    *out = rows;
    return BRC_OK;
}

/* Runs a statement whose parameter is a draft. */
static int draft_run(brc_store *store, const char *sql, int64_t draft, brc_error *err)
{
    sqlite3_stmt *st;
    BRC_TRY(brc_stmt(store, sql, &st, err));
    sqlite3_bind_int64(st, 1, draft);
    return brc_run(store, st, err);
}

/* Writes the row's checksum, after its other columns. */
static int draft_seal(brc_store *store, int64_t draft, brc_error *err)
{
    return draft_run(store, "UPDATE draft SET checksum=" DRAFT_SUM " WHERE id=?1", draft, err);
}

/* Starts the branch's resting draft again; *id is 0 if the branch has none. */
static int draft_wake(brc_store *store, const brc_draft_row *row, int64_t *id, brc_error *err)
{
    sqlite3_stmt *st;
    const brc_draft_head *draft = &row->draft;
    *id = 0;
    if (draft->kind != BRC_DRAFT_SHARED)
        return BRC_OK;
    BRC_TRY(brc_stmt(store,
                     "UPDATE draft SET state=1, base=?2, tip=?3, time_us=?4, changes=changes+1,"
                     " parts=0, checksum=row_sum('draft', id, kind, 1, branch, ?2, ?3, other, plan,"
                     " owner, parent, ?4, changes+1, 0) WHERE branch=?1 AND kind=1 AND state=3"
                     " RETURNING id",
                     &st, err));
    sqlite3_bind_text(st, 1, row->branch, -1, SQLITE_STATIC);
    brc_bind_id(store, st, 2, draft->has_base ? &draft->base : NULL);
    brc_bind_id(store, st, 3, draft->has_tip ? &draft->tip : NULL);
    sqlite3_bind_int64(st, 4, draft->time_us);
    int rc = brc_step(store, st, err);
    if (rc <= 0)
        return rc;
    *id = sqlite3_column_int64(st, 0);
    sqlite3_reset(st);
    return BRC_OK;
}

int brc_draft_forget(brc_store *store, const char *branch, brc_error *err)
{
    sqlite3_stmt *st;
    BRC_TRY(brc_stmt(store, "DELETE FROM draft WHERE branch=?1 AND kind=1 AND state=3", &st, err));
    sqlite3_bind_text(st, 1, branch, -1, SQLITE_STATIC);
    return brc_run(store, st, err);
}

/* Keeps the commits that the draft names from a collection that runs. */
static int keep_commits(brc_store *store, const brc_draft_row *row, brc_error *err)
{
    const brc_draft_head *draft = &row->draft;
    if (draft->has_base)
        BRC_TRY(brc_gc_keep_commit(store, &draft->base, err));
    if (draft->has_tip)
        BRC_TRY(brc_gc_keep_commit(store, &draft->tip, err));
    return row->has_other ? brc_gc_keep_commit(store, &row->other, err) : BRC_OK;
}

static void bind_row_text(sqlite3_stmt *st, int column, const char *text)
{
    if (text != NULL && *text != '\0')
        sqlite3_bind_text(st, column, text, -1, SQLITE_STATIC);
}

static int draft_insert(brc_store *store, const brc_draft_row *row, int64_t *id, brc_error *err)
{
    sqlite3_stmt *st;
    const brc_draft_head *draft = &row->draft;
    BRC_TRY(brc_stmt(store,
                     "INSERT INTO draft(kind, state, branch, base, tip, owner, time_us, changes,"
                     " parts, checksum, other, plan, parent)"
                     " VALUES (?1, 1, ?2, ?3, ?4, ?5, ?6, 1, 0, 0, ?7, ?8, nullif(?9, 0))"
                     " ON CONFLICT DO NOTHING",
                     &st, err));
    sqlite3_bind_int(st, 1, draft->kind);
    sqlite3_bind_text(st, 2, row->branch, -1, SQLITE_STATIC);
    brc_bind_id(store, st, 3, draft->has_base ? &draft->base : NULL);
    brc_bind_id(store, st, 4, draft->has_tip ? &draft->tip : NULL);
    bind_row_text(st, 5, row->owner);
    sqlite3_bind_int64(st, 6, draft->time_us);
    brc_bind_id(store, st, 7, row->has_other ? &row->other : NULL);
    bind_row_text(st, 8, row->plan);
    sqlite3_bind_int64(st, 9, draft->parent);
    BRC_TRY(brc_run(store, st, err));
    *id = sqlite3_last_insert_rowid(store->db);
    return sqlite3_changes(store->db); /* 0: the branch has a draft that was not found */
}

int brc_draft_start(brc_store *store, const brc_draft_row *row, int64_t *id, brc_error *err)
{
    const char *plan = row->plan != NULL ? row->plan : "";
    const int is_save = strncmp(plan, BRC_SAVE_PLAN, strlen(BRC_SAVE_PLAN)) == 0;
    const int is_point = strncmp(plan, BRC_POINT_PLAN, strlen(BRC_POINT_PLAN)) == 0;
    if (row->draft.kind == BRC_DRAFT_MERGE)
        BRC_TRY(brc_schema_need(store, "conflict", err));
    BRC_TRY(keep_commits(store, row, err));
    BRC_TRY(draft_wake(store, row, id, err));
    if (*id != 0)
        return BRC_OK;
    const int rc = draft_insert(store, row, id, err);
    if (rc == 0)
        return brc_fail(err, BRC_ECORRUPT,
                        "%s is damaged: the uncommitted changes of branch '%.100s' have an "
                        "impossible state; run 'breccia fsck'",
                        store->path, row->branch);
    BRC_TRY(rc < 0 ? rc : draft_seal(store, *id, err));
    if (!is_save)
        return BRC_OK;
    return brc_draft_has_part(store, row->draft.parent, is_point ? BRC_PART_LOG : BRC_PART_SAVES,
                              err);
}

int brc_draft_set_plan(brc_store *store, int64_t draft, const char *plan, brc_error *err)
{
    sqlite3_stmt *st;
    BRC_TRY(brc_stmt(store, "UPDATE draft SET plan=?2 WHERE id=?1", &st, err));
    sqlite3_bind_int64(st, 1, draft);
    sqlite3_bind_text(st, 2, plan, -1, SQLITE_STATIC);
    BRC_TRY(brc_run(store, st, err));
    return draft_seal(store, draft, err);
}

int brc_draft_follow(brc_store *store, int64_t draft, const brc_oid *tip, brc_error *err)
{
    sqlite3_stmt *st;
    BRC_TRY(brc_stmt(store, "UPDATE draft SET tip=?2 WHERE id=?1", &st, err));
    sqlite3_bind_int64(st, 1, draft);
    brc_bind_id(store, st, 2, tip);
    BRC_TRY(brc_run(store, st, err));
    return draft_seal(store, draft, err);
}

int brc_draft_go_along(brc_store *store, int64_t draft, const brc_oid *tip, brc_error *err)
{
    sqlite3_stmt *st;
    BRC_TRY(brc_stmt(store, "UPDATE draft SET base=?2, tip=?2, changes=changes+1 WHERE id=?1", &st,
                     err));
    sqlite3_bind_int64(st, 1, draft);
    brc_bind_id(store, st, 2, tip);
    BRC_TRY(brc_run(store, st, err));
    return draft_seal(store, draft, err);
}

int brc_draft_row_is_merge(const brc_draft_row *row)
{
    return row->draft.kind == BRC_DRAFT_MERGE ||
           (row->draft.kind == BRC_DRAFT_PRIVATE && *row->owner == '\0' && *row->plan != '\0' &&
            strncmp(row->plan, BRC_REWRITE_PLAN, strlen(BRC_REWRITE_PLAN)) != 0);
}

/* In SQL: a draft is, or was, an open merge. */
#define IS_MERGE                                                                            \
    "(kind=3 OR kind=2 AND owner IS NULL AND plan IS NOT NULL AND substr(plan,1,11)<>'"     \
    BRC_REWRITE_PLAN "')"
/* In SQL: a draft that is given away keeps its plan if it is an open merge, or has the mark of an
 * unfinished rewrite. */
#define KEEPS_PLAN "(" IS_MERGE " OR ?2=2 AND parent IS NULL)"

int brc_draft_give(brc_store *store, int64_t draft, int kind, const char *owner,
                   const char *branch, brc_error *err)
{
    sqlite3_stmt *st;
    BRC_TRY(brc_draft_saves_end(store, draft, err));
    BRC_TRY(brc_stmt(store,
                     "UPDATE draft SET kind=iif(?2=1 AND " IS_MERGE ", 3, ?2), owner=?3,"
                     " branch=ifnull(?4, branch), plan=iif(" KEEPS_PLAN ", plan, NULL),"
                     " other=iif(" KEEPS_PLAN ", other, NULL), parent=NULL WHERE id=?1",
                     &st, err));
    sqlite3_bind_int64(st, 1, draft);
    sqlite3_bind_int(st, 2, kind);
    sqlite3_bind_text(st, 3, owner, -1, SQLITE_STATIC);
    sqlite3_bind_text(st, 4, branch, -1, SQLITE_STATIC);
    BRC_TRY(brc_run(store, st, err));
    return draft_seal(store, draft, err);
}

int brc_draft_count(brc_store *store, int64_t draft, uint64_t *nodes, brc_error *err)
{
    int64_t n;
    sqlite3_stmt *st;
    BRC_TRY(brc_stmt(store, "SELECT count(path) FROM draft_node WHERE draft=?1", &st, err));
    sqlite3_bind_int64(st, 1, draft);
    BRC_TRY(brc_ask_number(store, st, &n, err));
    *nodes = (uint64_t)n;
    return BRC_OK;
}

int brc_draft_branch(brc_store *store, int64_t draft, char **branch, brc_error *err)
{
    sqlite3_stmt *st;
    BRC_TRY(brc_stmt(store, "SELECT branch FROM draft WHERE id=?1", &st, err));
    sqlite3_bind_int64(st, 1, draft);
    int rc = brc_step(store, st, err);
    if (rc < 0)
        return rc;
    const char *text = rc > 0 ? (const char *)sqlite3_column_text(st, 0) : NULL;
    rc = brc_dup(branch, text != NULL ? text : "", err);
    sqlite3_reset(st);
    return rc;
}

int brc_draft_is_empty(brc_store *store, int64_t draft, int *empty, brc_error *err)
{
    int any = 1, has_keys;
    sqlite3_stmt *st;
    BRC_TRY(brc_schema_has(store, "draft_key", &has_keys, err));
    BRC_TRY(brc_stmt(store,
                     has_keys ? "SELECT 1 FROM draft_node WHERE draft=?1 UNION ALL"
                                " SELECT 1 FROM draft_key WHERE draft=" BRC_IF_KEYS " LIMIT 1"
                              : "SELECT 1 FROM draft_node WHERE draft=?1 LIMIT 1",
                     &st, err));
    sqlite3_bind_int64(st, 1, draft);
    int rc = brc_ask_any(store, st, &any, err);
    *empty = !any;
    return rc;
}

int brc_draft_rename(brc_store *store, const char *from, const char *to, brc_error *err)
{
    sqlite3_stmt *st;
    BRC_TRY(brc_stmt(store, "UPDATE draft SET branch=?2 WHERE branch=?1", &st, err));
    sqlite3_bind_text(st, 1, from, -1, SQLITE_STATIC);
    sqlite3_bind_text(st, 2, to, -1, SQLITE_STATIC);
    BRC_TRY(brc_run(store, st, err));
    BRC_TRY(brc_stmt(store, "UPDATE draft SET checksum=" DRAFT_SUM " WHERE branch=?1", &st, err));
    sqlite3_bind_text(st, 1, to, -1, SQLITE_STATIC);
    return brc_run(store, st, err);
}

/* ==== draft end ================================ */

/*
 * The end of drafts: a draft without rows is dropped with its children. A draft that cannot be
 * dropped now, because another process has the lock, is noted (change.c) and dropped at the end of
 * the next transaction.
 */

static int end_find(brc_store *store, const char *sql, int64_t draft, int64_t after, int64_t *out,
                    brc_error *err)
{
    sqlite3_stmt *st;
    BRC_TRY(brc_stmt(store, sql, &st, err));
    sqlite3_bind_int64(st, 1, draft);
    if (sqlite3_bind_parameter_count(st) > 1)
        sqlite3_bind_int64(st, 2, after);
    return brc_ask_number(store, st, out, err);
}

static int drop_unused(brc_store *store, int64_t draft, brc_error *err)
{
    brc_draft_head head;
    int unused;
    BRC_TRY(brc_draft_get(store, draft, &head, err));
    if (head.id == 0 || head.kind != BRC_DRAFT_PRIVATE)
        return BRC_OK;
    BRC_TRY(brc_draft_is_unused(store, &head, &unused, err));
    return unused ? brc_draft_delete(store, draft, err) : BRC_OK;
}

/* Finds the next child of a draft after `after`; 0: there is none. */
static int next_child(brc_store *store, int64_t draft, int64_t after, int64_t *out, brc_error *err)
{
    return end_find(store,
                     "SELECT id FROM draft WHERE id>?2 AND state=1 AND parent=?1"
                     " AND NOT " BRC_IS_SAVE " ORDER BY id LIMIT 1",
                     draft, after, out, err);
}

int brc_draft_has_children(brc_store *store, int64_t draft, int *has, brc_error *err)
{
    int64_t child;
    BRC_TRY(next_child(store, draft, 0, &child, err));
    *has = child != 0;
    return BRC_OK;
}

int brc_draft_end(brc_store *store, int64_t draft, brc_error *err)
{
    int64_t child = 0;
    do {
        BRC_TRY(next_child(store, draft, child, &child, err));
        if (child != 0) /* its own children began later */
            BRC_TRY(brc_draft_end(store, child, err));
    } while (child != 0);
    return drop_unused(store, draft, err);
}

static int drop_late(brc_store *store, const brc_late_draft *late, brc_error *err)
{
    int64_t found = 0;
    if (late->which == BRC_DROP_END)
        return brc_draft_end(store, late->id, err);
    if (late->which == BRC_DROP_EMPTY) {
        BRC_TRY(next_child(store, late->id, 0, &found, err));
        return found == 0 ? drop_unused(store, late->id, err) : BRC_OK;
    }
    BRC_TRY(end_find(store,
                      late->which == BRC_DROP_SAVE
                          ? "SELECT id FROM draft WHERE id=?1 AND " BRC_IS_SAVE " AND state=1"
                          : "SELECT id FROM draft WHERE id=?1 AND kind=2 AND state=1",
                      late->id, 0, &found, err));
    return found != 0 ? brc_draft_delete(store, found, err) : BRC_OK;
}

int brc_draft_drop_left(brc_store *store, brc_error *err)
{
    for (size_t i = 0; i < store->late_drafts.n; i++)
        BRC_TRY(drop_late(store, &store->late_drafts.items[i], err));
    return BRC_OK;
}

int brc_drafts_drop_unused(brc_store *store, brc_error *err)
{
    brc_draft_row *rows;
    size_t n;
    BRC_TRY(brc_draft_list(store, BRC_DRAFTS_ALL, 0, &rows, &n, err));
    int rc = BRC_OK;
    for (size_t i = 0; i < n && rc == BRC_OK; i++)
        if (rows[i].draft.kind == BRC_DRAFT_PRIVATE &&
            brc_process_state(rows[i].owner) == BRC_PROCESS_DEAD)
            rc = drop_unused(store, rows[i].draft.id, err);
    brc_draft_rows_free(rows, n);
    return rc;
}
