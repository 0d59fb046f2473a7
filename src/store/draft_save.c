/*
 * Moves of a draft: a row of draft_move names the path that the node at a path has in the draft's
 * base. The row also holds for the nodes under the path, down to the next row. A row whose source
 * is empty says that the base does not have the node, although it may have a node of that path.
 */
#include <stdlib.h>
#include <string.h>

#include "../base/alloc.h"
#include "../base/json.h"
#include "../base/node_path.h"
#include "../base/process.h"
#include "db.h"

static int draft_moves_keep(brc_store *store, int64_t draft, int64_t save, brc_error *err);

/* ==== draft move ================================ */

#define MOVE_SUM "row_sum('draft_move', draft, path, source)"

/* Stores whether the file has the table: a file in which nothing was moved lacks it. */
static int has_moves(brc_store *store, int *there, brc_error *err)
{
    return brc_schema_has(store, "draft_move", there, err);
}

void brc_moves_free(brc_move *moves, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        free(moves[i].to);
        free(moves[i].from);
    }
    free(moves);
}

static int move_source_check(const char *source, brc_error *err)
{
    if (*source == '\0')
        return BRC_OK;
    BRC_TRY(brc_path_is_normal(source, err));
    return source[1] != '\0' ? BRC_OK
                             : brc_fail(err, BRC_ECORRUPT, "the root node cannot have been moved");
}

/* Reads the columns path, source, and whether the checksum is right. The caller has asked for the
 * path. */
static int move_row_source(brc_store *store, sqlite3_stmt *st, char **out, brc_error *err)
{
    const char *source = (const char *)sqlite3_column_text(st, 1);
    BRC_TRY(brc_row_check(store, st, 2, "an uncommitted move", err));
    if (source == NULL || (size_t)sqlite3_column_bytes(st, 1) != strlen(source))
        return brc_fail(err, BRC_ECORRUPT, "%s: an uncommitted move is damaged: it is not text",
                        brc_store_path(store));
    BRC_TRY(move_source_check(source, err));
    return brc_dup(out, source, err);
}

static int move_row_add(brc_store *store, sqlite3_stmt *st, void **rows, size_t *n, size_t *cap,
                        brc_error *err)
{
    const char *path = (const char *)sqlite3_column_text(st, 0);
    BRC_TRY(brc_grow_array(rows, cap, *n + 1, sizeof(brc_move), err));
    brc_move *row = &((brc_move *)*rows)[*n];
    memset(row, 0, sizeof(*row));
    BRC_TRY(brc_path_is_normal(path != NULL ? path : "", err));
    BRC_TRY(brc_dup(&row->to, path, err));
    ++*n;
    return move_row_source(store, st, &row->from, err);
}

int brc_draft_move_get(brc_store *store, int64_t draft, const char *path, char **source,
                       brc_error *err)
{
    int there;
    sqlite3_stmt *st;
    *source = NULL;
    BRC_TRY(has_moves(store, &there, err));
    if (!there)
        return BRC_OK;
    BRC_TRY(brc_stmt(store, "SELECT path, source, checksum IS " MOVE_SUM " FROM draft_move"
                            " WHERE draft=" BRC_IF_MOVES " AND path=?2", &st, err));
    sqlite3_bind_int64(st, 1, draft);
    sqlite3_bind_text(st, 2, path, -1, SQLITE_STATIC);
    int rc = brc_step(store, st, err);
    if (rc <= 0)
        return rc;
    rc = move_row_source(store, st, source, err);
    sqlite3_reset(st);
    return rc;
}

/* Reads all rows of a statement and resets it. */
static int move_rows_read(brc_store *store, sqlite3_stmt *st, brc_move **rows, size_t *n,
                          size_t *cap, brc_error *err)
{
    int rc;
    void *p = *rows;
    while ((rc = brc_step(store, st, err)) > 0) {
        rc = move_row_add(store, st, &p, n, cap, err);
        if (rc < 0)
            break;
    }
    *rows = p;
    sqlite3_reset(st);
    return rc;
}

int brc_draft_move_list(brc_store *store, int64_t draft, const char *path, brc_move **out,
                        size_t *n, brc_error *err)
{
    int rc, there;
    size_t cap = 0;
    sqlite3_stmt *st;
    brc_buf low = BRC_BUF_INIT, high = BRC_BUF_INIT;
    *out = NULL;
    *n = 0;
    BRC_TRY(has_moves(store, &there, err));
    if (!there)
        return BRC_OK;
    BRC_GO(brc_draft_range(path, &low, &high, err));
    BRC_GO(brc_stmt(store, "SELECT path, source, checksum IS " MOVE_SUM " FROM draft_move"
                           " WHERE draft=" BRC_IF_MOVES " AND path=?2", &st, err));
    sqlite3_bind_int64(st, 1, draft);
    sqlite3_bind_text(st, 2, path, -1, SQLITE_STATIC);
    BRC_GO(move_rows_read(store, st, out, n, &cap, err));
    BRC_GO(brc_stmt(store, "SELECT path, source, checksum IS " MOVE_SUM " FROM draft_move"
                           " WHERE draft=" BRC_IF_MOVES " AND path>=?2 AND path<?3"
                           " ORDER BY path", &st, err));
    sqlite3_bind_int64(st, 1, draft);
    sqlite3_bind_text(st, 2, (const char *)low.data, -1, SQLITE_STATIC);
    sqlite3_bind_text(st, 3, (const char *)high.data, -1, SQLITE_STATIC);
    rc = move_rows_read(store, st, out, n, &cap, err);
done:
    brc_buf_dispose(&low);
    brc_buf_dispose(&high);
    if (rc < 0) {
        brc_moves_free(*out, *n);
        *out = NULL;
        *n = 0;
    }
    return rc;
}

/* Called before a change of a draft's moves: if it is the first since the newest savepoint, copies
 * all moves to that, as keys are (draft_chunk.c). */
static int moves_change(brc_store *store, int64_t draft, brc_error *err)
{
    int64_t save;
    BRC_TRY(brc_draft_part_keeper(store, draft, BRC_PART_MOVES, &save, err));
    return save == 0 ? BRC_OK : draft_moves_keep(store, draft, save, err);
}

int brc_draft_move_put(brc_store *store, int64_t draft, const char *path, const char *source,
                       brc_error *err)
{
    sqlite3_stmt *st;
    BRC_TRY(moves_change(store, draft, err));
    BRC_TRY(brc_draft_has_part(store, draft, BRC_PART_MOVES, err));
    BRC_TRY(brc_schema_need(store, "draft_move", err));
    BRC_TRY(brc_stmt(store,
                     "INSERT OR REPLACE INTO draft_move(draft, path, source, checksum)"
                     " VALUES (?1, ?2, ?3, row_sum('draft_move', ?1, ?2, ?3))",
                     &st, err));
    sqlite3_bind_int64(st, 1, draft);
    sqlite3_bind_text(st, 2, path, -1, SQLITE_STATIC);
    sqlite3_bind_text(st, 3, source, -1, SQLITE_STATIC);
    return brc_run(store, st, err);
}

int brc_draft_move_drop(brc_store *store, int64_t draft, const char *path, brc_error *err)
{
    int there;
    sqlite3_stmt *st;
    BRC_TRY(moves_change(store, draft, err));
    BRC_TRY(has_moves(store, &there, err));
    if (!there)
        return BRC_OK;
    BRC_TRY(brc_stmt(store, "DELETE FROM draft_move WHERE draft=" BRC_IF_MOVES " AND path=?2", &st,
                     err));
    sqlite3_bind_int64(st, 1, draft);
    sqlite3_bind_text(st, 2, path, -1, SQLITE_STATIC);
    return brc_run(store, st, err);
}

int brc_draft_move_clear(brc_store *store, int64_t draft, const char *path, brc_error *err)
{
    int rc, there;
    sqlite3_stmt *st;
    brc_buf low = BRC_BUF_INIT, high = BRC_BUF_INIT;
    BRC_TRY(brc_draft_move_drop(store, draft, path, err));
    BRC_TRY(has_moves(store, &there, err));
    if (!there)
        return BRC_OK;
    BRC_GO(brc_draft_range(path, &low, &high, err));
    BRC_GO(brc_stmt(store, "DELETE FROM draft_move WHERE draft=" BRC_IF_MOVES " AND path>=?2"
                           " AND path<?3", &st, err));
    sqlite3_bind_int64(st, 1, draft);
    sqlite3_bind_text(st, 2, (const char *)low.data, -1, SQLITE_STATIC);
    sqlite3_bind_text(st, 3, (const char *)high.data, -1, SQLITE_STATIC);
    rc = brc_run(store, st, err);
done:
    brc_buf_dispose(&low);
    brc_buf_dispose(&high);
    return rc;
}

int brc_draft_move_rename(brc_store *store, int64_t draft, const char *from, const char *to,
                          brc_error *err)
{
    int rc;
    size_t n;
    brc_move *rows;
    brc_buf path = BRC_BUF_INIT;
    BRC_TRY(brc_draft_move_list(store, draft, from, &rows, &n, err)); /* checked: none is damaged */
    rc = brc_draft_move_clear(store, draft, from, err);
    for (size_t i = 0; i < n && rc == BRC_OK; i++) {
        path.len = 0;
        BRC_GO(brc_buf_printf(&path, err, "%s%s", to, rows[i].to + strlen(from)));
        BRC_GO(brc_buf_terminate(&path, err));
        rc = brc_draft_move_put(store, draft, (const char *)path.data, rows[i].from, err);
    }
done:
    brc_buf_dispose(&path);
    brc_moves_free(rows, n);
    return rc;
}

static int draft_moves_keep(brc_store *store, int64_t draft, int64_t save, brc_error *err)
{
    size_t n;
    brc_move *moves;
    BRC_TRY(brc_draft_move_list(store, draft, "/", &moves, &n, err));
    int rc = brc_draft_touch(store, save, err);
    if (rc == BRC_OK)
        rc = brc_draft_has_part(store, save, BRC_PART_MOVES, err); /* even without moves */
    for (size_t i = 0; i < n && rc == BRC_OK; i++)
        rc = brc_draft_move_put(store, save, moves[i].to, moves[i].from, err);
    brc_moves_free(moves, n);
    return rc;
}

/* ==== draft save ================================ */

/*
 * Savepoints of a draft. A savepoint is a private draft, with the other draft as its parent, and
 * holds no lock. It is empty at first. When a part of the parent is changed for the first time
 * since the newest savepoint, the savepoint gets the old state: the row of a node, by its path
 * (draft_stack.c), all rows of keys (draft_chunk.c), or all rows of moves. The level of a row of
 * draft_node is the newest savepoint when the row was made; so rows of a lower level are as that
 * savepoint found them, and rows of its own or a higher level are new. If there was no row, the
 * savepoint has none.
 *
 * The parent does not depend on its savepoints: if one is dropped, the changes stay. To roll back,
 * the new rows are dropped, and the savepoint's rows become the parent's again. To release, the
 * savepoint's rows are dropped, except rows that an outer savepoint lacks and needs. No chunk row
 * moves either way.
 */

/* ---- rows -------------------------------- */

/* Runs a statement that moves rows of one draft to another, chosen by their level. */
static int rows_go(brc_store *store, const char *sql, int64_t from, int64_t level, int64_t to,
                   brc_error *err)
{
    sqlite3_stmt *st;
    BRC_TRY(brc_stmt(store, sql, &st, err));
    sqlite3_bind_int64(st, 1, from);
    sqlite3_bind_int64(st, 2, level);
    sqlite3_bind_int64(st, 3, to);
    return brc_run(store, st, err);
}

/* A step for a row that lies on others. */
typedef int (*row_step)(brc_store *store, int64_t node, int64_t draft, brc_error *err);

/* Runs `step` for each row that the statement finds; finds all rows before it changes any. */
static int each_on_others(brc_store *store, const char *sql, int64_t draft, int64_t level,
                          row_step step, int64_t to, brc_error *err)
{
    sqlite3_stmt *st;
    void *nodes = NULL;
    size_t n = 0, cap = 0;
    int rc;
    BRC_TRY(brc_stmt(store, sql, &st, err));
    sqlite3_bind_int64(st, 1, draft);
    sqlite3_bind_int64(st, 2, level);
    while ((rc = brc_step(store, st, err)) > 0) {
        BRC_GO(brc_grow_array(&nodes, &cap, n + 1, sizeof(int64_t), err));
        ((int64_t *)nodes)[n++] = sqlite3_column_int64(st, 0);
    }
    for (size_t i = 0; i < n && rc == BRC_OK; i++)
        rc = step(store, ((const int64_t *)nodes)[i], to, err);
done:
    sqlite3_reset(st);
    free(nodes);
    return rc;
}

static int drop_row(brc_store *store, int64_t node, int64_t draft, brc_error *err)
{
    (void)draft;
    return brc_draft_row_drop(store, node, err);
}

/* Drops the rows of a draft that were made since the savepoint, which has the rows before. */
static int drop_new(brc_store *store, int64_t draft, int64_t save, brc_error *err)
{
    int64_t dropped;
    BRC_TRY(brc_draft_dropped(store, draft, &dropped, err));
    BRC_TRY(rows_go(store,
                    "UPDATE draft_node SET draft=?3, path=NULL, checksum=row_sum('draft_node',"
                    " node, ?3, NULL, below, level, entry) WHERE draft=?1 AND path IS NOT NULL"
                    " AND level>=?2 AND below IS NULL",
                    draft, save, dropped, err));
    return each_on_others(store,
                          "SELECT node FROM draft_node WHERE draft=?1 AND path IS NOT NULL AND"
                          " level>=?2",
                          draft, save, drop_row, 0, err);
}

/* Gives a row of a savepoint, with the rows below it, back to the draft. */
static int stack_back(brc_store *store, int64_t node, int64_t draft, brc_error *err)
{
    brc_draft_stack stack;
    BRC_TRY(brc_draft_stack_get(store, node, &stack, err));
    for (size_t i = 0; i < stack.n; i++)
        BRC_TRY(brc_draft_row_to(store, stack.node[i], draft, err));
    return BRC_OK;
}

static int give_all_back(brc_store *store, int64_t save, int64_t draft, brc_error *err)
{
    BRC_TRY(rows_go(store,
                    "UPDATE draft_node SET draft=?3, checksum=row_sum('draft_node', node, ?3, path,"
                    " below, level, entry) WHERE draft=?1 AND path IS NOT NULL AND level<?2 AND"
                    " below IS NULL",
                    save, save, draft, err));
    return each_on_others(store,
                          "SELECT node FROM draft_node WHERE draft=?1 AND path IS NOT NULL AND"
                          " level<?2",
                          save, save, stack_back, draft, err);
}

/* Moves the rows that existed when the outer savepoint was made to it: the outer savepoint has no
 * copy of them. */
static int hand_out(brc_store *store, int64_t save, int64_t outer, brc_error *err)
{
    return rows_go(store,
                   "UPDATE draft_node SET draft=?3, checksum=row_sum('draft_node', node, ?3, path,"
                   " below, level, entry) WHERE draft=?1 AND path IS NOT NULL AND level<?2",
                   save, outer, outer, err);
}

/* ---- release and roll back -------------------------------- */

int brc_draft_save_release(brc_store *store, const brc_draft_row *save, brc_draft_row *outer,
                           brc_error *err)
{
    const int64_t id = save->draft.id;
    if (outer == NULL)
        return brc_draft_delete(store, id, err);
    const int gets = save->parts & ~outer->parts & (BRC_PART_KEYS | BRC_PART_MOVES);
    if (save->parts & BRC_PART_DOCS)
        BRC_TRY(brc_draft_has_part(store, outer->draft.id, BRC_PART_DOCS, err));
    BRC_TRY(hand_out(store, id, outer->draft.id, err));
    if (gets & BRC_PART_KEYS)
        BRC_TRY(brc_draft_keys_keep(store, id, outer->draft.id, err));
    if (gets & BRC_PART_MOVES)
        BRC_TRY(draft_moves_keep(store, id, outer->draft.id, err));
    outer->parts |= save->parts;
    BRC_TRY(brc_draft_touch(store, outer->draft.id, err));
    return brc_draft_delete(store, id, err);
}

static int moves_back(brc_store *store, int64_t save, int64_t draft, brc_error *err)
{
    size_t n;
    brc_move *moves;
    BRC_TRY(brc_draft_move_clear(store, draft, "/", err));
    BRC_TRY(brc_draft_move_list(store, save, "/", &moves, &n, err));
    int rc = BRC_OK;
    for (size_t i = 0; i < n && rc == BRC_OK; i++)
        rc = brc_draft_move_put(store, draft, moves[i].to, moves[i].from, err);
    brc_moves_free(moves, n);
    return rc;
}

static int has_no_parts(brc_store *store, int64_t save, brc_error *err)
{
    sqlite3_stmt *st;
    BRC_TRY(brc_stmt(store,
                     "UPDATE draft SET parts=0, checksum=row_sum('draft', id, kind, state, branch,"
                     " base, tip, other, plan, owner, parent, time_us, changes, 0) WHERE id=?1",
                     &st, err));
    sqlite3_bind_int64(st, 1, save);
    return brc_run(store, st, err);
}

int brc_draft_save_restore(brc_store *store, const brc_draft_row *save, brc_error *err)
{
    const int64_t id = save->draft.id, draft = save->draft.parent;
    BRC_TRY(drop_new(store, draft, id, err));
    if (save->parts & BRC_PART_DOCS)
        BRC_TRY(brc_draft_has_part(store, draft, BRC_PART_DOCS, err));
    BRC_TRY(give_all_back(store, id, draft, err));
    if (save->parts & BRC_PART_KEYS) {
        BRC_TRY(brc_draft_key_clear(store, draft, "", err));
        BRC_TRY(brc_draft_key_copy(store, id, "", draft, "", err));
    }
    if (save->parts & BRC_PART_MOVES)
        BRC_TRY(moves_back(store, id, draft, err));
    BRC_TRY(brc_draft_empty(store, id, err));
    BRC_TRY(has_no_parts(store, id, err));
    return brc_draft_touch(store, id, err);
}

/* ==== draft log ================================ */

/*
 * The log of a shared draft. A point is a savepoint without an owner, made in the transaction in
 * which an operation first changes the draft: it has what the draft was. To take the operation
 * back, the point and the draft change places: the draft gets the point's rows, and the point gets
 * those that are new since. So the point has what the draft was behind the operation, and to do it
 * again is the same exchange. Such a point has BRC_PART_LOG in its own `parts`. Whoever changes the
 * draft drops these points first, so that no level is compared with them.
 *
 * In a point that was taken back, a row without an entry and of level 0 says that the draft had no
 * row of this path. All other rows there have the point's number as their level, or a larger one.
 *
 * When a log is full, its older half is forgotten at once: to forget a point costs a look at the
 * rows of those that stay.
 */

/* The most operations of a log, and of savepoints and points together (work/savepoint.c). */
enum { POINTS_MOST = 8, SAVES_MOST = 16 };

int brc_draft_row_is_point(const brc_draft_row *row)
{
    return strncmp(row->plan, BRC_POINT_PLAN, strlen(BRC_POINT_PLAN)) == 0;
}

static int plan_number(const brc_json *plan, const char *name, int64_t least, int64_t *out)
{
    const brc_json *value = brc_json_member(plan, name);
    *out = least;
    return value == NULL || brc_json_int(value, least, INT64_MAX, out);
}

int brc_draft_point_read(brc_draft_point *out, const brc_draft_row *row, brc_error *err)
{
    brc_json *plan;
    const char *text;
    memset(out, 0, sizeof(*out));
    BRC_TRY(brc_json_parse(&plan, row->plan, strlen(row->plan), 0, err));
    int rc = BRC_OK;
    if (!plan_number(plan, "after", 0, &out->after) ||
        !plan_number(plan, "undone", -1, &out->undone) ||
        !plan_number(plan, "process", 0, &out->process) ||
        !brc_json_text(brc_json_member(plan, "log"), &text))
        rc = brc_fail(err, BRC_ECORRUPT, "the log of the uncommitted changes of branch '%.100s' is "
                                         "damaged (draft %lld); run 'breccia fsck'",
                      row->branch, (long long)row->draft.id);
    out->id = row->draft.id;
    out->draft = row->draft.parent;
    out->time_us = row->draft.time_us;
    if (rc == BRC_OK)
        rc = brc_dup(&out->text, text, err);
    brc_json_free(plan);
    return rc;
}

/* Appends the plan of a point; undone -1: it was not taken back. */
static int point_plan(brc_buf *out, const brc_draft_point *point, brc_error *err)
{
    BRC_TRY(brc_buf_text(out, BRC_POINT_PLAN ",\"log\":", err));
    BRC_TRY(brc_json_quote(out, point->text, strlen(point->text), err));
    BRC_TRY(brc_buf_printf(out, err, ",\"process\":%lld,\"after\":%lld",
                           (long long)point->process, (long long)point->after));
    if (point->undone >= 0)
        BRC_TRY(brc_buf_printf(out, err, ",\"undone\":%lld", (long long)point->undone));
    BRC_TRY(brc_buf_text(out, "}", err));
    return brc_buf_terminate(out, err);
}

static int last_of_oplog(brc_store *store, int64_t *seq, brc_error *err)
{
    sqlite3_stmt *st;
    BRC_TRY(brc_stmt(store, "SELECT max(seq) FROM oplog", &st, err));
    return brc_ask_number(store, st, seq, err);
}

/* ---- forgetting points -------------------------------- */

/* The savepoints and points of a draft, the outermost first. */
typedef struct save_rows {
    brc_draft_row *items;
    size_t n;
} save_rows;

static int save_rows_read(save_rows *out, brc_store *store, int64_t draft, brc_error *err)
{
    return brc_draft_list(store, BRC_DRAFTS_SAVES, draft, &out->items, &out->n, err);
}

/* Points that are to go are marked in memory. */
static int goes(const brc_draft_row *row)
{
    return row->draft.kind == 0;
}

/* Gives rows below this one to `save`, which stays, if they belong to a point that goes. */
static int rescue_below(brc_store *store, int64_t node, int64_t save, const save_rows *list,
                        brc_error *err)
{
    brc_draft_stack stack;
    int64_t draft, level;
    BRC_TRY(brc_draft_stack_get(store, node, &stack, err));
    for (size_t i = 1; i < stack.n; i++) {
        BRC_TRY(brc_draft_row_level(store, stack.node[i], &draft, &level, err));
        for (size_t k = 0; k < list->n; k++)
            if (list->items[k].draft.id == draft && goes(&list->items[k]))
                BRC_TRY(brc_draft_row_to(store, stack.node[i], save, err));
    }
    return BRC_OK;
}

/* Finds the next node of `save`, in the order of paths, that lies on a row below; 0: there is none.
 * `path` is that of the last node. */
static int next_on_another(brc_store *store, int64_t save, brc_buf *path, int64_t *node,
                           brc_error *err)
{
    sqlite3_stmt *st;
    *node = 0;
    BRC_TRY(brc_stmt(store,
                     "SELECT node, path FROM draft_node WHERE draft=?1 AND path>?2"
                     " AND below IS NOT NULL ORDER BY path LIMIT 1",
                     &st, err));
    sqlite3_bind_int64(st, 1, save);
    sqlite3_bind_text(st, 2, path->len > 0 ? (const char *)path->data : "", (int)path->len,
                      SQLITE_TRANSIENT);
    int rc = brc_step(store, st, err);
    if (rc > 0) {
        *node = sqlite3_column_int64(st, 0);
        path->len = 0;
        rc = brc_buf_append(path, sqlite3_column_text(st, 1),
                            (size_t)sqlite3_column_bytes(st, 1), err);
    }
    sqlite3_reset(st);
    return rc < 0 ? rc : BRC_OK;
}

static int rescue_rows(brc_store *store, int64_t save, const save_rows *list, brc_error *err)
{
    brc_buf path = BRC_BUF_INIT;
    int64_t node;
    int rc;
    do {
        rc = next_on_another(store, save, &path, &node, err);
        if (rc == BRC_OK && node != 0)
            rc = rescue_below(store, node, save, list, err);
    } while (rc == BRC_OK && node != 0);
    brc_buf_dispose(&path);
    return rc;
}

/* Forgets the points that are marked. */
static int points_go(brc_store *store, save_rows *list, brc_error *err)
{
    int any = 0, rest = 0;
    for (size_t i = 0; i < list->n; i++) {
        any |= goes(&list->items[i]);
        rest |= brc_draft_row_is_point(&list->items[i]) && !goes(&list->items[i]);
        if (any && !goes(&list->items[i]))
            BRC_TRY(rescue_rows(store, list->items[i].draft.id, list, err));
    }
    for (size_t i = list->n; any && i-- > 0;) {
        size_t outer = i;
        if (!goes(&list->items[i]))
            continue;
        while (outer > 0 && goes(&list->items[outer - 1]))
            outer--;
        const int64_t id = list->items[i].draft.id;
        BRC_TRY(outer == 0 && rest && brc_draft_row_is_point(&list->items[i])
                    ? brc_draft_point_delete(store, id, err)
                    : brc_draft_save_release(store, &list->items[i],
                                             outer > 0 ? &list->items[outer - 1] : NULL, err));
    }
    return BRC_OK;
}

int brc_draft_saves_go(brc_store *store, brc_draft_row *saves, size_t n, brc_error *err)
{
    save_rows list = {saves, n};
    return points_go(store, &list, err);
}

/* Drops the points that were taken back: the inner ones lie on rows of the outer ones. */
static int undone_go(brc_store *store, save_rows *list, brc_error *err)
{
    while (list->n > 0 && list->items[list->n - 1].draft.logs) {
        BRC_TRY(brc_draft_delete(store, list->items[list->n - 1].draft.id, err));
        brc_draft_row *last = &list->items[--list->n];
        free((char *)last->branch);
        free((char *)last->owner);
        free((char *)last->plan);
    }
    return BRC_OK;
}

/* Marks the oldest points, at most `most`. */
static void mark_oldest(save_rows *list, size_t most)
{
    for (size_t i = 0; i < list->n && most > 0; i++)
        if (brc_draft_row_is_point(&list->items[i])) {
            list->items[i].draft.kind = 0;
            most--;
        }
}

static size_t points_in(const save_rows *list)
{
    size_t n = 0;
    for (size_t i = 0; i < list->n; i++)
        if (brc_draft_row_is_point(&list->items[i]))
            n++;
    return n;
}

int brc_draft_logs_forget(brc_store *store, int64_t since_us, brc_error *err)
{
    save_rows all = {0};
    int rc;
    BRC_GO(brc_draft_list(store, BRC_DRAFTS_POINTS, 0, &all.items, &all.n, err));
    for (size_t i = 0; i < all.n && rc == BRC_OK; i++) {
        save_rows list = {0};
        const int64_t draft = all.items[i].draft.parent;
        if (all.items[i].draft.time_us >= since_us)
            continue;
        rc = save_rows_read(&list, store, draft, err);
        if (rc == BRC_OK) /* what was done again would lie on what is forgotten */
            rc = undone_go(store, &list, err);
        for (size_t k = 0; k < list.n; k++)
            if (brc_draft_row_is_point(&list.items[k]) && list.items[k].draft.time_us < since_us)
                list.items[k].draft.kind = 0;
        if (rc == BRC_OK)
            rc = points_go(store, &list, err);
        brc_draft_rows_free(list.items, list.n);
    }
done:
    brc_draft_rows_free(all.items, all.n);
    return rc;
}

/* ---- an operation -------------------------------- */

static int point_add(brc_store *store, const brc_draft_head *draft, const brc_draft_logging *op,
                     int64_t *id, brc_error *err)
{
    brc_draft_point point = {.undone = -1, .process = store->process, .text = (char *)op->text};
    brc_draft_row row = {.draft = *draft, .branch = op->branch};
    brc_buf plan = BRC_BUF_INIT;
    int rc;
    BRC_GO(last_of_oplog(store, &point.after, err));
    BRC_GO(point_plan(&plan, &point, err));
    row.plan = (const char *)plan.data;
    row.draft.kind = BRC_DRAFT_PRIVATE;
    row.draft.parent = draft->id;
    row.draft.time_us = brc_now_us();
    rc = brc_draft_start(store, &row, id, err);
done:
    brc_buf_dispose(&plan);
    return rc;
}

/* Stores whether the operation goes on in the newest point. */
static int operation_goes_on(const save_rows *list, const brc_store *store,
                             const brc_draft_logging *op, int *on, brc_error *err)
{
    brc_draft_point point;
    *on = 0;
    if (op->is_new || list->n == 0 || !brc_draft_row_is_point(&list->items[list->n - 1]))
        return BRC_OK;
    int rc = brc_draft_point_read(&point, &list->items[list->n - 1], err);
    if (rc == BRC_OK)
        *on = point.process == store->process && strcmp(point.text, op->text) == 0;
    free(point.text);
    return rc;
}

static int log_operation(brc_store *store, const brc_draft_head *draft, save_rows *list,
                         const brc_draft_logging *op, brc_error *err)
{
    int64_t id;
    int on;
    BRC_TRY(operation_goes_on(list, store, op, &on, err));
    if (on)
        return BRC_OK;
    const size_t points = points_in(list);
    if (points >= POINTS_MOST || list->n >= SAVES_MOST) {
        if (points == 0)
            return BRC_OK; /* savepoints are all that there is room for */
        mark_oldest(list, (points + 1) / 2);
        BRC_TRY(points_go(store, list, err));
    }
    return point_add(store, draft, op, &id, err);
}

static int saves_meet(brc_store *store, const save_rows *list, const char *owner, brc_error *err)
{
    for (size_t i = 0; i < list->n; i++)
        if (!brc_draft_row_is_point(&list->items[i]) &&
            (owner == NULL || strcmp(list->items[i].owner, owner) != 0))
            BRC_TRY(brc_draft_has_part(store, list->items[i].draft.id, BRC_PART_SAVES, err));
    return BRC_OK;
}

/* Stores whether a log has nothing but points of operations that were not taken back, and room. */
static int log_has_room(brc_store *store, int64_t draft, int *has, brc_error *err)
{
    sqlite3_stmt *st;
    BRC_TRY(brc_stmt(store,
                     "SELECT count(*)<?2 AND total(s.parts&16)=0 FROM " BRC_SAVES_OF, &st, err));
    sqlite3_bind_int64(st, 1, draft);
    sqlite3_bind_int64(st, 2, POINTS_MOST);
    int64_t is;
    BRC_TRY(brc_ask_number(store, st, &is, err));
    *has = is != 0;
    return BRC_OK;
}

int brc_draft_log_change(brc_store *store, const brc_draft_head *draft, const char *owner,
                         const brc_draft_logging *op, brc_error *err)
{
    save_rows list = {0};
    int64_t id;
    int rc, room = 0;
    if (op != NULL && op->is_new && !draft->saves) {
        BRC_TRY(log_has_room(store, draft->id, &room, err));
        if (room)
            return point_add(store, draft, op, &id, err);
    }
    if (draft->saves || draft->logs)
        BRC_GO(save_rows_read(&list, store, draft->id, err));
    BRC_GO(undone_go(store, &list, err));
    BRC_GO(saves_meet(store, &list, owner, err));
    if (op != NULL) {
        rc = log_operation(store, draft, &list, op, err);
        goto done;
    }
    mark_oldest(&list, list.n);
    rc = points_go(store, &list, err);
done:
    brc_draft_rows_free(list.items, list.n);
    return rc;
}

int brc_draft_log_whole(brc_store *store, const brc_draft_head *draft, const brc_draft_logging *op,
                        brc_error *err)
{
    static const int copied[] = {BRC_PART_KEYS, BRC_PART_MOVES};
    brc_draft_row *row = NULL;
    size_t n = 0;
    int64_t id;
    int rc;
    BRC_GO(point_add(store, draft, op, &id, err));
    BRC_GO(brc_draft_list(store, BRC_DRAFTS_ONE, draft->id, &row, &n, err));
    for (size_t i = 0; n > 0 && i < sizeof(copied) / sizeof(copied[0]); i++)
        if (row->parts & copied[i])
            BRC_GO(brc_draft_has_part(store, id, copied[i], err));
    rc = rows_go(store,
                 "UPDATE draft_node SET level=?2, checksum=row_sum('draft_node', node, draft, path,"
                 " below, ?2, entry) WHERE draft=?1 AND ?3=?2",
                 draft->id, id, id, err);
done:
    brc_draft_rows_free(row, n);
    return rc;
}

int brc_draft_point_has_changes(brc_store *store, const brc_draft_row *point, int *has,
                                brc_error *err)
{
    sqlite3_stmt *st;
    *has = 1;
    if (point->parts & (BRC_PART_KEYS | BRC_PART_MOVES))
        return BRC_OK;
    BRC_TRY(brc_stmt(store,
                     "SELECT 1 FROM draft_node WHERE draft=?1 AND path IS NOT NULL UNION ALL"
                     " SELECT 1 FROM draft_node WHERE draft=?2 AND path IS NOT NULL AND level>=?1"
                     " LIMIT 1",
                     &st, err));
    sqlite3_bind_int64(st, 1, point->draft.id);
    sqlite3_bind_int64(st, 2, point->draft.parent);
    return brc_ask_any(store, st, has, err);
}

/* ---- taking an operation back, and doing it again -------------------------------- */

/* An exchange of rows between a draft and a point. `kept` are the point's rows, `now` those rows of
 * the draft that take their place. */
typedef struct point_swap {
    brc_store *store;
    int64_t draft, point;
    int is_back; /* the point was taken back: the operation is done again */
    brc_draft_node *kept;
    size_t nkept;
    void *now; /* int64_t[] */
    size_t nnow, cap;
} point_swap;

static int row_place(brc_store *store, int64_t node, int64_t draft, const char *path,
                     brc_error *err)
{
    sqlite3_stmt *st;
    BRC_TRY(brc_stmt(store,
                     "UPDATE draft_node SET draft=?2, path=?3, checksum=row_sum('draft_node', node,"
                     " ?2, ?3, below, level, entry) WHERE node=?1",
                     &st, err));
    sqlite3_bind_int64(st, 1, node);
    sqlite3_bind_int64(st, 2, draft);
    sqlite3_bind_text(st, 3, path, -1, SQLITE_STATIC);
    return brc_run(store, st, err);
}

static int now_add(point_swap *w, int64_t node, brc_error *err)
{
    BRC_TRY(brc_grow_array(&w->now, &w->cap, w->nnow + 1, sizeof(int64_t), err));
    ((int64_t *)w->now)[w->nnow++] = node;
    return BRC_OK;
}

/* Finds the rows that the operation has made, before it is taken back. */
static int find_made(point_swap *w, brc_error *err)
{
    sqlite3_stmt *st;
    int rc;
    BRC_TRY(brc_stmt(w->store,
                     "SELECT node FROM draft_node WHERE draft=?1 AND path IS NOT NULL"
                     " AND level>=?2",
                     &st, err));
    sqlite3_bind_int64(st, 1, w->draft);
    sqlite3_bind_int64(st, 2, w->point);
    while ((rc = brc_step(w->store, st, err)) > 0) {
        rc = now_add(w, sqlite3_column_int64(st, 0), err);
        if (rc < 0)
            break;
    }
    sqlite3_reset(st);
    return rc;
}

/* Finds the rows that the draft got back, before the operation is done again. */
static int find_got_back(point_swap *w, brc_error *err)
{
    for (size_t i = 0; i < w->nkept; i++) {
        brc_draft_node row;
        int found;
        BRC_TRY(brc_draft_node_get(w->store, w->draft, w->kept[i].path, &found, &row, err));
        free(row.entry);
        if (found)
            BRC_TRY(now_add(w, row.node, err));
    }
    return BRC_OK;
}

/* Stores whether a row of a point that was taken back only says that there was none. */
static int says_none(const point_swap *w, const brc_draft_node *row, int *none, brc_error *err)
{
    int64_t draft, level = 1;
    *none = 0;
    if (!w->is_back || row->entry != NULL)
        return BRC_OK;
    BRC_TRY(brc_draft_row_level(w->store, row->node, &draft, &level, err));
    *none = level == 0;
    return BRC_OK;
}

static int say_none(const point_swap *w, const char *path, brc_error *err)
{
    sqlite3_stmt *st;
    BRC_TRY(brc_stmt(w->store,
                     "INSERT INTO draft_node(draft, path, level, checksum) SELECT ?1, ?2, 0, 0"
                     " WHERE NOT EXISTS (SELECT 1 FROM draft_node WHERE draft=?1 AND path=?2)"
                     " RETURNING node",
                     &st, err));
    sqlite3_bind_int64(st, 1, w->point);
    sqlite3_bind_text(st, 2, path, -1, SQLITE_STATIC);
    int64_t node;
    BRC_TRY(brc_ask_number(w->store, st, &node, err));
    return node != 0 ? row_place(w->store, node, w->point, path, err) : BRC_OK;
}

/* Gives the draft a row of the point. The rows below follow. */
static int give_kept(const point_swap *w, brc_draft_node *row, brc_error *err)
{
    int none;
    BRC_TRY(says_none(w, row, &none, err));
    if (none) {
        BRC_TRY(brc_draft_row_delete(w->store, row->node, err));
        row->node = 0;
        return BRC_OK;
    }
    BRC_TRY(row_place(w->store, row->node, w->draft, row->path, err));
    return w->is_back ? BRC_OK : say_none(w, row->path, err);
}

/* Gives the rows below one that has left the draft to the point or, if an older one knows them, to
 * that. */
static int give_below(const point_swap *w, int64_t node, brc_error *err)
{
    brc_draft_stack stack;
    int64_t draft, level, to;
    BRC_TRY(brc_draft_stack_get(w->store, node, &stack, err));
    for (size_t i = 1; i < stack.n; i++) {
        BRC_TRY(brc_draft_row_level(w->store, stack.node[i], &draft, &level, err));
        to = w->point;
        if (level < w->point)
            BRC_TRY(brc_draft_keeper(w->store, w->draft, level, &to, err));
        if (to != draft)
            BRC_TRY(brc_draft_row_to(w->store, stack.node[i], to, err));
    }
    return BRC_OK;
}

static int swap_nodes(point_swap *w, brc_error *err)
{
    const int64_t *now;
    BRC_TRY(brc_draft_node_list(w->store, w->point, "/", 1, &w->kept, &w->nkept, err));
    BRC_TRY(w->is_back ? find_got_back(w, err) : find_made(w, err));
    now = w->now;
    for (size_t i = 0; i < w->nkept; i++) /* two rows of a draft cannot have one path */
        BRC_TRY(row_place(w->store, w->kept[i].node, w->point, NULL, err));
    for (size_t i = 0; i < w->nnow; i++)
        BRC_TRY(brc_draft_row_to(w->store, now[i], w->point, err));
    for (size_t i = 0; i < w->nkept; i++)
        BRC_TRY(give_kept(w, &w->kept[i], err));
    for (size_t i = 0; i < w->nnow; i++)
        BRC_TRY(give_below(w, now[i], err));
    for (size_t i = 0; i < w->nkept; i++)
        if (w->kept[i].node != 0)
            BRC_TRY(stack_back(w->store, w->kept[i].node, w->draft, err));
    return BRC_OK;
}

/* Exchanges the rows of a table that has the draft's number in each: the third number is free. */
static int swap_rows_of(const point_swap *w, const char *table, const char *sql, brc_error *err)
{
    const int64_t from[] = {w->draft, w->point, -w->point};
    const int64_t to[] = {-w->point, w->draft, w->point};
    int there;
    BRC_TRY(brc_schema_has(w->store, table, &there, err));
    for (int i = 0; there && i < 3; i++)
        BRC_TRY(rows_go(w->store, sql, from[i], 0, to[i], err));
    return BRC_OK;
}

static int swap_parts(const point_swap *w, int parts, brc_error *err)
{
    if (parts & BRC_PART_KEYS)
        BRC_TRY(swap_rows_of(w, "draft_key",
                             "UPDATE draft_key SET draft=?3, checksum=row_sum('draft_key', ?3, key,"
                             " id) WHERE draft=?1 AND ?2=0",
                             err));
    if (parts & BRC_PART_MOVES)
        BRC_TRY(swap_rows_of(w, "draft_move",
                             "UPDATE draft_move SET draft=?3, checksum=row_sum('draft_move', ?3,"
                             " path, source) WHERE draft=?1 AND ?2=0",
                             err));
    return BRC_OK;
}

/* Writes down that the operation was taken back, or done again. */
static int turn_point(const point_swap *w, const brc_draft_row *row, brc_error *err)
{
    brc_draft_point point;
    brc_buf plan = BRC_BUF_INIT;
    sqlite3_stmt *st;
    int rc;
    BRC_GO(brc_draft_point_read(&point, row, err));
    point.undone = -1;
    if (!w->is_back)
        BRC_GO(last_of_oplog(w->store, &point.undone, err));
    BRC_GO(point_plan(&plan, &point, err));
    BRC_GO(brc_stmt(w->store,
                    "UPDATE draft SET plan=?2, parts=(parts&15)|?3, checksum=row_sum('draft', id,"
                    " kind, state, branch, base, tip, other, ?2, owner, parent, time_us, changes,"
                    " (parts&15)|?3) WHERE id=?1",
                    &st, err));
    sqlite3_bind_int64(st, 1, w->point);
    sqlite3_bind_text(st, 2, (const char *)plan.data, -1, SQLITE_STATIC);
    sqlite3_bind_int(st, 3, w->is_back ? 0 : BRC_PART_LOG);
    BRC_GO(brc_run(w->store, st, err));
    BRC_GO(brc_draft_touch(w->store, w->point, err));
    rc = brc_draft_touch(w->store, w->draft, err);
done:
    free(point.text);
    brc_buf_dispose(&plan);
    return rc;
}

int brc_draft_point_swap(brc_store *store, const brc_draft_row *point, brc_error *err)
{
    point_swap w = {.store = store, .draft = point->draft.parent, .point = point->draft.id,
                    .is_back = point->draft.logs};
    brc_draft_row *row = NULL;
    size_t n = 0;
    int rc;
    BRC_GO(brc_draft_list(store, BRC_DRAFTS_ONE, w.draft, &row, &n, err));
    const int docs = ((n > 0 ? row->parts : 0) | point->parts) & BRC_PART_DOCS;
    BRC_GO(swap_nodes(&w, err));
    BRC_GO(swap_parts(&w, point->parts, err));
    const int parts = docs | (point->parts & (BRC_PART_KEYS | BRC_PART_MOVES));
    for (int part = 1; part <= BRC_PART_DOCS; part *= 2)
        if (parts & part) {
            BRC_GO(brc_draft_has_part(store, w.draft, part, err));
            BRC_GO(brc_draft_has_part(store, w.point, part, err));
        }
    rc = turn_point(&w, point, err);
done:
    brc_draft_rows_free(row, n);
    brc_draft_nodes_free(w.kept, w.nkept);
    free(w.now);
    return rc;
}
