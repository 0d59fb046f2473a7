/*
 * Moves of a draft: a row of draft_move names the path that the node at a path has in the draft's
 * base. The row also holds for the nodes under the path, down to the next row. A row whose source
 * is empty says that the base does not have the node, although it may have a node of that path.
 */
#include <stdlib.h>
#include <string.h>

#include "../base/node_path.h"
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
        rc = brc_draft_has_part(store, save, BRC_PART_MOVES, err); /* also where there are none */
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

void brc_draft_saves_free(brc_draft_save *saves, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        free(saves[i].owner);
        free(saves[i].plan);
    }
    free(saves);
}

static int save_row(brc_store *store, sqlite3_stmt *st, brc_draft_save *out, brc_error *err)
{
    const char *owner = (const char *)sqlite3_column_text(st, 1);
    const char *plan = (const char *)sqlite3_column_text(st, 2);
    BRC_TRY(brc_row_check(store, st, 4, "a savepoint", err));
    out->id = sqlite3_column_int64(st, 0);
    out->parts = sqlite3_column_int(st, 3);
    out->is_met = (out->parts & BRC_PART_SAVES) != 0;
    BRC_TRY(brc_dup(&out->owner, owner != NULL ? owner : "", err));
    return brc_dup(&out->plan, plan != NULL ? plan : "", err);
}

int brc_draft_save_list(brc_store *store, int64_t draft, brc_draft_save **out, size_t *n,
                        brc_error *err)
{
    sqlite3_stmt *st;
    void *rows = NULL;
    size_t cap = 0;
    int rc;
    *out = NULL;
    *n = 0;
    BRC_TRY(brc_stmt(store,
                     "SELECT s.id, s.owner, s.plan, s.parts, s.checksum IS row_sum('draft', s.id,"
                     " s.kind, s.state, s.branch, s.base, s.tip, s.other, s.plan, s.owner,"
                     " s.parent, s.time_us, s.changes, s.parts) FROM draft d CROSS JOIN draft s"
                     " ON s.parent=d.id AND s.state=1 WHERE d.id=?1 AND d.parts&8 ORDER BY s.id",
                     &st, err));
    sqlite3_bind_int64(st, 1, draft);
    while ((rc = brc_step(store, st, err)) > 0) {
        BRC_GO(brc_grow_array(&rows, &cap, *n + 1, sizeof(**out), err));
        brc_draft_save *row = (brc_draft_save *)rows + *n;
        memset(row, 0, sizeof(*row));
        ++*n;
        BRC_GO(save_row(store, st, row, err));
    }
done:
    sqlite3_reset(st);
    if (rc < 0) {
        brc_draft_saves_free(rows, *n);
        *n = 0;
        return rc;
    }
    *out = rows;
    return BRC_OK;
}

int brc_draft_saves_meet(brc_store *store, int64_t draft, const char *owner, brc_error *err)
{
    size_t n;
    brc_draft_save *saves;
    BRC_TRY(brc_draft_save_list(store, draft, &saves, &n, err));
    int rc = BRC_OK;
    for (size_t i = 0; i < n && rc == BRC_OK; i++)
        if (owner == NULL || strcmp(saves[i].owner, owner) != 0)
            rc = brc_draft_has_part(store, saves[i].id, BRC_PART_SAVES, err);
    brc_draft_saves_free(saves, n);
    return rc;
}

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

int brc_draft_save_release(brc_store *store, const brc_draft_save *save, brc_draft_save *outer,
                           brc_error *err)
{
    if (outer == NULL)
        return brc_draft_delete(store, save->id, err);
    const int gets = save->parts & ~outer->parts & (BRC_PART_KEYS | BRC_PART_MOVES);
    if (save->parts & BRC_PART_DOCS)
        BRC_TRY(brc_draft_has_part(store, outer->id, BRC_PART_DOCS, err));
    BRC_TRY(hand_out(store, save->id, outer->id, err));
    if (gets & BRC_PART_KEYS)
        BRC_TRY(brc_draft_keys_keep(store, save->id, outer->id, err));
    if (gets & BRC_PART_MOVES)
        BRC_TRY(draft_moves_keep(store, save->id, outer->id, err));
    outer->parts |= save->parts;
    BRC_TRY(brc_draft_touch(store, outer->id, err));
    return brc_draft_delete(store, save->id, err);
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

int brc_draft_save_restore(brc_store *store, int64_t draft, const brc_draft_save *save,
                           brc_error *err)
{
    BRC_TRY(drop_new(store, draft, save->id, err));
    if (save->parts & BRC_PART_DOCS)
        BRC_TRY(brc_draft_has_part(store, draft, BRC_PART_DOCS, err));
    BRC_TRY(give_all_back(store, save->id, draft, err));
    if (save->parts & BRC_PART_KEYS) {
        BRC_TRY(brc_draft_key_clear(store, draft, "", err));
        BRC_TRY(brc_draft_key_copy(store, save->id, "", draft, "", err));
    }
    if (save->parts & BRC_PART_MOVES)
        BRC_TRY(moves_back(store, save->id, draft, err));
    BRC_TRY(brc_draft_empty(store, save->id, err));
    BRC_TRY(has_no_parts(store, save->id, err));
    return brc_draft_touch(store, save->id, err);
}
