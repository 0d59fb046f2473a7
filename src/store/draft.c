/*
 * Children of a private draft: drafts that began with the content of another draft and will be
 * joined with it. A child is a private draft like others, of the same process. Its plan names its
 * parent, and `other` the commit that was the base of both when the child began (NULL: the empty
 * snapshot), which no ref names. The child's base may be a later commit if it has children itself.
 */
#include <stdlib.h>
#include <string.h>

#include "../base/json.h"
#include "../base/process.h"
#include "collect.h"
#include "db.h"

/* ==== draft child ================================ */

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

/* Stores whether a child's base is still the commit at which it was forked. */
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

/* ==== draft ================================ */

/*
 * Drafts: uncommitted changes, as rows over the snapshot of a commit. A branch has at most one
 * shared draft. The rows of a draft's nodes, chunks and moves are in draft_node.c, draft_chunk.c
 * and draft_save.c.
 */

#define DRAFT_SUM_HEAD \
    "row_sum('draft', id, kind, state, branch, base, tip, other, plan, owner, parent, time_us,"
#define DRAFT_SUM DRAFT_SUM_HEAD " changes, parts)"
#define DRAFT_COLUMNS \
    "id, kind, changes, base, tip, checksum IS " DRAFT_SUM ", time_us, branch, owner, parts," \
    " ifnull(" BRC_IS_CHILD ", 0)"

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
    out->is_child = sqlite3_column_int(st, 10) != 0;
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

/* A file that never had a merge with conflicts has no table of them: then no draft is looked at. */
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
    /* Most branches have none, and this short statement is prepared quickly. */
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
                                   "what this bulk write has written (draft %lld) was adopted or "
                                   "dropped by somebody else: write it again",
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

static int draft_row_read(brc_store *store, sqlite3_stmt *st, brc_draft_row *out, brc_error *err)
{
    const char *branch = (const char *)sqlite3_column_text(st, 7);
    const char *owner = (const char *)sqlite3_column_text(st, 8);
    const char *plan = (const char *)sqlite3_column_text(st, 11);
    BRC_TRY(draft_read(store, st, &out->draft, err));
    char *text;
    BRC_TRY(brc_dup(&text, branch != NULL ? branch : "", err));
    out->branch = text;
    BRC_TRY(brc_dup(&text, owner != NULL ? owner : "", err));
    out->owner = text;
    BRC_TRY(brc_dup(&text, plan != NULL ? plan : "", err));
    out->plan = text;
    return BRC_OK;
}

int brc_draft_list(brc_store *store, brc_draft_row **out, size_t *n, brc_error *err)
{
    sqlite3_stmt *st;
    void *rows = NULL;
    size_t cap = 0;
    int rc;
    *out = NULL;
    *n = 0;
    BRC_TRY(brc_stmt(store,
                     "SELECT " DRAFT_COLUMNS ", plan FROM draft WHERE state=1 AND parent IS NULL"
                     " ORDER BY id",
                     &st, err));
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
        *n = 0; /* the caller frees what it has */
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

int brc_draft_start(brc_store *store, const brc_draft_row *row, int64_t *id, brc_error *err)
{
    sqlite3_stmt *st;
    const brc_draft_head *draft = &row->draft;
    if (draft->has_base)
        BRC_TRY(brc_gc_keep_commit(store, &draft->base, err));
    if (draft->has_tip)
        BRC_TRY(brc_gc_keep_commit(store, &draft->tip, err));
    BRC_TRY(draft_wake(store, row, id, err));
    if (*id != 0)
        return BRC_OK;
    BRC_TRY(brc_stmt(store,
                     "INSERT INTO draft(kind, state, branch, base, tip, owner, time_us, changes,"
                     " parts, checksum) VALUES (?1, 1, ?2, ?3, ?4, ?5, ?6, 1, 0, 0)"
                     " ON CONFLICT DO NOTHING",
                     &st, err));
    sqlite3_bind_int(st, 1, draft->kind);
    sqlite3_bind_text(st, 2, row->branch, -1, SQLITE_STATIC);
    brc_bind_id(store, st, 3, draft->has_base ? &draft->base : NULL);
    brc_bind_id(store, st, 4, draft->has_tip ? &draft->tip : NULL);
    sqlite3_bind_text(st, 5, row->owner, -1, SQLITE_STATIC);
    sqlite3_bind_int64(st, 6, draft->time_us);
    BRC_TRY(brc_run(store, st, err));
    if (sqlite3_changes(store->db) == 0) /* the branch has one, and it was not found */
        return brc_fail(err, BRC_ECORRUPT,
                        "%s is damaged: the uncommitted changes of branch '%.100s' are in no state "
                        "that they can be in; run 'breccia fsck'",
                        store->path, row->branch);
    *id = sqlite3_last_insert_rowid(store->db);
    return draft_seal(store, *id, err);
}

int brc_draft_merge_start(brc_store *store, const brc_draft_row *row, const brc_oid *other,
                          const char *plan, int64_t *id, brc_error *err)
{
    sqlite3_stmt *st;
    BRC_TRY(brc_schema_need(store, "conflict", err));
    if (other != NULL)
        BRC_TRY(brc_gc_keep_commit(store, other, err));
    BRC_TRY(brc_draft_start(store, row, id, err));
    BRC_TRY(brc_stmt(store, "UPDATE draft SET other=?2, plan=?3 WHERE id=?1", &st, err));
    sqlite3_bind_int64(st, 1, *id);
    brc_bind_id(store, st, 2, other);
    sqlite3_bind_text(st, 3, plan, -1, SQLITE_STATIC);
    BRC_TRY(brc_run(store, st, err));
    return draft_seal(store, *id, err);
}

int brc_draft_save_start(brc_store *store, const brc_draft_row *row, int64_t draft,
                         const char *plan, brc_error *err)
{
    sqlite3_stmt *st;
    int64_t id;
    BRC_TRY(brc_draft_start(store, row, &id, err));
    BRC_TRY(brc_stmt(store, "UPDATE draft SET parent=?2, plan=?3 WHERE id=?1", &st, err));
    sqlite3_bind_int64(st, 1, id);
    sqlite3_bind_int64(st, 2, draft);
    sqlite3_bind_text(st, 3, plan, -1, SQLITE_STATIC);
    BRC_TRY(brc_run(store, st, err));
    BRC_TRY(draft_seal(store, id, err));
    return brc_draft_has_part(store, draft, BRC_PART_SAVES, err);
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

static int read_merge_plan(brc_store *store, sqlite3_stmt *st, int *has_other, brc_oid *other,
                           char **plan, brc_error *err)
{
    const char *text = (const char *)sqlite3_column_text(st, 1);
    BRC_TRY(brc_row_check(store, st, 2, "an open merge", err));
    BRC_TRY(draft_commit_id(store, st, 0, has_other, other, err));
    return brc_dup(plan, text != NULL ? text : "{}", err);
}

int brc_draft_merge_plan(brc_store *store, int64_t draft, int *has_other, brc_oid *other,
                         char **plan, brc_error *err)
{
    sqlite3_stmt *st;
    *plan = NULL;
    *has_other = 0;
    memset(other, 0, sizeof(*other));
    BRC_TRY(brc_stmt(store,
                     "SELECT other, plan, checksum IS " DRAFT_SUM " FROM draft WHERE id=?1"
                     " AND (kind=3 OR kind=2 AND owner IS NULL) AND state=1",
                     &st, err));
    sqlite3_bind_int64(st, 1, draft);
    int rc = brc_step(store, st, err);
    if (rc == 0)
        return brc_fail(err, BRC_ESTALE, "%s: the merge was ended by somebody else", store->path);
    if (rc > 0)
        rc = read_merge_plan(store, st, has_other, other, plan, err);
    sqlite3_reset(st);
    return rc;
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

int brc_draft_set_owner(brc_store *store, int64_t draft, const char *owner, brc_error *err)
{
    sqlite3_stmt *st;
    BRC_TRY(brc_stmt(store,
                     "UPDATE draft SET kind=1+(?2 IS NOT NULL), owner=?2,"
                     " plan=iif(?2 IS NULL, NULL, plan), other=iif(?2 IS NULL, NULL, other)"
                     " WHERE id=?1",
                     &st, err));
    sqlite3_bind_int64(st, 1, draft);
    sqlite3_bind_text(st, 2, owner, -1, SQLITE_STATIC);
    BRC_TRY(brc_run(store, st, err));
    return draft_seal(store, draft, err);
}

int brc_draft_keep(brc_store *store, int64_t draft, brc_error *err)
{
    BRC_TRY(brc_draft_saves_end(store, draft, err));
    BRC_TRY(draft_run(store, /* one that was a child is by itself now */
                      "UPDATE draft SET kind=2, owner=NULL, other=iif(" BRC_IS_CHILD
                      ", NULL, other), plan=iif(" BRC_IS_CHILD ", NULL, plan) WHERE id=?1",
                      draft, err));
    return draft_seal(store, draft, err);
}

int brc_draft_is_kept_merge(brc_store *store, int64_t draft, int *is, brc_error *err)
{
    sqlite3_stmt *st;
    BRC_TRY(brc_stmt(store,
                     "SELECT 1 FROM draft WHERE id=?1 AND kind=2 AND state=1 AND owner IS NULL"
                     " AND parent IS NULL AND plan IS NOT NULL",
                     &st, err));
    sqlite3_bind_int64(st, 1, draft);
    return brc_ask_any(store, st, is, err);
}

int brc_draft_give_back(brc_store *store, int64_t draft, const char *branch, brc_error *err)
{
    sqlite3_stmt *st;
    BRC_TRY(brc_stmt(store,
                     "UPDATE draft SET kind=iif(plan IS NULL, 1, 3), owner=NULL, branch=?2"
                     " WHERE id=?1",
                     &st, err));
    sqlite3_bind_int64(st, 1, draft);
    sqlite3_bind_text(st, 2, branch, -1, SQLITE_STATIC);
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
                     "SELECT id FROM draft WHERE id>?2 AND state=1 AND " BRC_IS_CHILD " AND"
                     " replace(substr(plan, 1, 9+length(?1)), '}', ',')='{\"fork\":'||?1||','"
                     " ORDER BY id LIMIT 1",
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
    if (late->which == BRC_LATE_END)
        return brc_draft_end(store, late->id, err);
    if (late->which == BRC_LATE_EMPTY) {
        BRC_TRY(next_child(store, late->id, 0, &found, err));
        return found == 0 ? drop_unused(store, late->id, err) : BRC_OK;
    }
    BRC_TRY(end_find(store,
                      late->which == BRC_LATE_SAVE
                          ? "SELECT id FROM draft WHERE id=?1 AND parent IS NOT NULL AND state=1"
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
    BRC_TRY(brc_draft_list(store, &rows, &n, err));
    int rc = BRC_OK;
    for (size_t i = 0; i < n && rc == BRC_OK; i++)
        if (rows[i].draft.kind == BRC_DRAFT_PRIVATE &&
            brc_process_state(rows[i].owner) == BRC_PROCESS_DEAD)
            rc = drop_unused(store, rows[i].draft.id, err);
    brc_draft_rows_free(rows, n);
    return rc;
}
