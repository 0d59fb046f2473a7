/*
 * Rows of nodes that may be changed. A row that others need unchanged gets another row over it, or
 * in its place: while a commit or a copy in batches reads the row, and when an open savepoint has
 * saved it (draft_save.c). The savepoint gets a row with the path, the entry and the document;
 * chunks are not copied but lie below both rows.
 */
#include "collect.h"
#include "db.h"

static int draft_row_hide(brc_store *store, int64_t node, brc_error *err);

/* ==== draft own ================================ */

/* Heights of a stack from which on its rows are joined when others are added. */
enum { STACK_LOW = 8, STACK_HIGH = 14, STACK_FULL = 28, ROOM_STEPS = 6 };

static int own_ask(brc_store *store, const char *sql, int64_t node, int64_t number, int64_t *out,
                   brc_error *err)
{
    sqlite3_stmt *st;
    BRC_TRY(brc_stmt(store, sql, &st, err));
    sqlite3_bind_int64(st, 1, node);
    if (sqlite3_bind_parameter_count(st) > 1)
        sqlite3_bind_int64(st, 2, number);
    return brc_ask_number(store, st, out, err);
}

/* Writes the row's checksum, after its other columns. */
static int own_seal(brc_store *store, int64_t node, const char *path, brc_error *err)
{
    sqlite3_stmt *st;
    BRC_TRY(brc_stmt(store,
                     "UPDATE draft_node SET path=?2, checksum=row_sum('draft_node', node, draft,"
                     " ?2, below, level, entry) WHERE node=?1",
                     &st, err));
    sqlite3_bind_int64(st, 1, node);
    sqlite3_bind_text(st, 2, path, -1, SQLITE_STATIC);
    return brc_run(store, st, err);
}

/* Adds a row without a path that lies on this one and has the same entry and document. */
static int row_over(brc_store *store, int64_t node, int64_t level, int has_docs, int64_t *top,
                    brc_error *err)
{
    BRC_TRY(own_ask(store,
                    "INSERT INTO draft_node(draft, path, below, level, entry, checksum)"
                    " SELECT draft, NULL, node, ?2, entry, 0 FROM draft_node WHERE node=?1"
                    " RETURNING node",
                    node, level, top, err));
    return has_docs ? brc_draft_doc_copy(store, node, *top, err) : BRC_OK;
}

/* Puts the row below `top`, which gets the row's path. */
static int put_below(brc_store *store, int64_t node, const char *path, int has_docs, int64_t top,
                     brc_error *err)
{
    if (has_docs)
        BRC_TRY(brc_draft_doc_drop(store, node, err));
    BRC_TRY(draft_row_hide(store, node, err));
    return own_seal(store, top, path, err);
}

/* ---- known to a savepoint -------------------------------- */

/* Makes a stack that is high shorter, by some steps at once: a program that adds one row and ends,
 * as the command does, prepares the statements for that only now and then. */
static int room_over(brc_store *store, int64_t node, size_t n, brc_error *err)
{
    int done = n < STACK_HIGH;
    for (int steps = 1; !done; steps++) {
        brc_draft_stack stack;
        BRC_TRY(brc_draft_stack_shorten(store, node, STACK_LOW, &done, err));
        BRC_TRY(brc_draft_stack_get(store, node, &stack, err));
        done |= stack.n < STACK_FULL && steps >= ROOM_STEPS;
    }
    return BRC_OK;
}

/* Makes the savepoint's image of a row: a row that lies on the same chunks. */
static int image_of(brc_store *store, int64_t node, const char *path, int64_t save, int has_docs,
                    brc_error *err)
{
    int64_t image;
    BRC_TRY(own_ask(store,
                    "INSERT INTO draft_node(draft, path, below, level, entry, checksum)"
                    " SELECT ?2, NULL, node, level, entry, 0 FROM draft_node WHERE node=?1"
                    " RETURNING node",
                    node, save, &image, err));
    if (has_docs)
        BRC_TRY(brc_draft_doc_copy(store, node, image, err));
    return own_seal(store, image, path, err);
}

/* Gives the row itself to the savepoint and puts a row like it in its place. */
static int replace_row(brc_store *store, int64_t node, const char *path, int64_t save, int64_t *top,
                       brc_error *err)
{
    BRC_TRY(own_ask(store,
                    "INSERT INTO draft_node(draft, path, level, entry, checksum)"
                    " SELECT draft, NULL, ?2, entry, 0 FROM draft_node WHERE node=?1"
                    " RETURNING node",
                    node, save, top, err));
    BRC_TRY(brc_draft_doc_copy(store, node, *top, err));
    BRC_TRY(brc_draft_has_part(store, save, BRC_PART_DOCS, err));
    BRC_TRY(brc_draft_row_to(store, node, save, err));
    return own_seal(store, *top, path, err);
}

static int set_aside(brc_store *store, int64_t node, const char *path, int64_t save, int64_t *top,
                     brc_error *err)
{
    brc_draft_stack stack;
    int64_t docs;
    int any;
    BRC_TRY(brc_draft_touch(store, save, err));
    BRC_TRY(brc_draft_stack_get(store, node, &stack, err));
    BRC_TRY(brc_draft_chunk_any(store, &stack, &any, err));
    if (!any && stack.n == 1)
        return replace_row(store, node, path, save, top, err);
    BRC_TRY(room_over(store, node, stack.n, err));
    BRC_TRY(own_ask(store,
                    "SELECT d.parts&4 FROM draft_node n CROSS JOIN draft d ON d.id=n.draft"
                    " WHERE n.node=?1",
                    node, 0, &docs, err));
    BRC_TRY(row_over(store, node, save, docs != 0, top, err));
    BRC_TRY(image_of(store, node, path, save, docs != 0, err));
    return put_below(store, node, path, docs != 0, *top, err);
}

int brc_draft_node_own(brc_store *store, int64_t draft, const char *path, int64_t *save,
                       brc_error *err)
{
    sqlite3_stmt *st;
    int64_t top;
    BRC_TRY(brc_draft_level(store, draft, save, err));
    if (*save == 0)
        return BRC_OK;
    BRC_TRY(brc_stmt(store, "SELECT node, level FROM draft_node WHERE draft=?1 AND path=?2", &st,
                     err));
    sqlite3_bind_int64(st, 1, draft);
    sqlite3_bind_text(st, 2, path, -1, SQLITE_STATIC);
    int rc = brc_step(store, st, err);
    if (rc <= 0)
        return rc;
    const int64_t node = sqlite3_column_int64(st, 0), level = sqlite3_column_int64(st, 1);
    sqlite3_reset(st);
    return level < *save ? set_aside(store, node, path, *save, &top, err) : BRC_OK;
}

/* ---- read by others -------------------------------- */

int brc_draft_stack_push(brc_store *store, int64_t node, const char *path, int64_t *top,
                         brc_error *err)
{
    int64_t draft, level; /* of both rows */
    BRC_TRY(brc_draft_row_level(store, node, &draft, &level, err));
    BRC_TRY(row_over(store, node, level, 1, top, err));
    return put_below(store, node, path, 1, *top, err);
}

/* ==== draft stack ================================ */

/*
 * Stacks of rows: a row of draft_node may lie on another, whose chunks count for keys that the
 * upper row lacks. So two sets of uncommitted chunks of one array are joined without copying a
 * chunk: when a draft is adopted, and when a bulk write ends. A row below another has no path and
 * belongs to the same draft; its entry does not count. A row that a savepoint has saved stays when
 * it leaves its stack: it then belongs to the savepoint (draft_save.c).
 */

#define STACK_SUM_TAIL ", level, entry)"

/* Lays row ?1 on row ?2; ?2 is 0: the row then lies on no other. */
static const char lie_on[] =
    "UPDATE draft_node SET below=nullif(?2, 0),"
    " checksum=row_sum('draft_node', node, draft, path, nullif(?2, 0)" STACK_SUM_TAIL
    " WHERE node=?1";

/* The most chunks of a row that is compared chunk by chunk with any other: see
 * brc_draft_stacks_meet(). */
enum { FEW_CHUNKS = 4096 };

/* Runs a statement with the numbers of one or two rows. */
static int stack_run(brc_store *store, const char *sql, int64_t first, int64_t second,
                     brc_error *err)
{
    sqlite3_stmt *st;
    BRC_TRY(brc_stmt(store, sql, &st, err));
    sqlite3_bind_int64(st, 1, first);
    if (sqlite3_bind_parameter_count(st) > 1)
        sqlite3_bind_int64(st, 2, second);
    return brc_run(store, st, err);
}

/* Marks a row as one that lies below another: it loses its path. */
static int draft_row_hide(brc_store *store, int64_t node, brc_error *err)
{
    return stack_run(store,
                     "UPDATE draft_node SET path=NULL,"
                     " checksum=row_sum('draft_node', node, draft, NULL, below" STACK_SUM_TAIL
                     " WHERE node=?1",
                     node, 0, err);
}

/* Finds the row below a row; *below is 0 if there is none. */
static int row_below(brc_store *store, int64_t node, int64_t *below, brc_error *err)
{
    sqlite3_stmt *st;
    BRC_TRY(brc_stmt(store, "SELECT below FROM draft_node WHERE node=?1", &st, err));
    sqlite3_bind_int64(st, 1, node);
    return brc_ask_number(store, st, below, err);
}

int brc_draft_stack_get(brc_store *store, int64_t node, brc_draft_stack *out, brc_error *err)
{
    out->n = 0;
    while (node != 0) {
        if (out->n == BRC_DRAFT_STACK_MOST)
            return brc_fail(err, BRC_ECORRUPT,
                            "%s: an uncommitted node is damaged: too many rows lie below it",
                            store->path);
        out->node[out->n++] = node;
        BRC_TRY(row_below(store, node, &node, err));
    }
    return BRC_OK;
}

int brc_draft_row_exceeds(brc_store *store, int64_t node, size_t most, int *exceeds,
                          brc_error *err)
{
    sqlite3_stmt *st;
    BRC_TRY(brc_stmt(store, "SELECT 1 FROM draft_chunk WHERE node=?1 LIMIT 1 OFFSET ?2", &st, err));
    sqlite3_bind_int64(st, 1, node);
    sqlite3_bind_int64(st, 2, (int64_t)most);
    return brc_ask_any(store, st, exceeds, err);
}

/* ---- laying one over another -------------------------------- */

/* Looks up each chunk of the first row in the second row. */
static int rows_meet(brc_store *store, int64_t first, int64_t second, int *meet, brc_error *err)
{
    sqlite3_stmt *st;
    BRC_TRY(brc_stmt(store,
                     "SELECT 1 FROM draft_chunk a CROSS JOIN draft_chunk b ON b.node=?2"
                     " AND b.key=a.key WHERE a.node=?1 AND a.id IS NOT b.id LIMIT 1",
                     &st, err));
    sqlite3_bind_int64(st, 1, first);
    sqlite3_bind_int64(st, 2, second);
    return brc_ask_any(store, st, meet, err);
}

static int two_rows_meet(brc_store *store, int64_t a, int64_t b, int *meet, brc_error *err)
{
    int many;
    BRC_TRY(brc_draft_row_exceeds(store, a, FEW_CHUNKS, &many, err));
    if (!many)
        return rows_meet(store, a, b, meet, err);
    BRC_TRY(brc_draft_row_exceeds(store, b, FEW_CHUNKS, &many, err));
    if (!many)
        return rows_meet(store, b, a, meet, err);
    *meet = 1;
    return BRC_OK;
}

int brc_draft_stacks_meet(brc_store *store, const brc_draft_stack *a, const brc_draft_stack *b,
                          int *meet, brc_error *err)
{
    *meet = a->n + b->n > BRC_DRAFT_STACK_MOST;
    for (size_t i = 0; i < a->n; i++)
        for (size_t j = 0; j < b->n && !*meet; j++)
            BRC_TRY(two_rows_meet(store, a->node[i], b->node[j], meet, err));
    return BRC_OK;
}

/* ---- making a stack shorter -------------------------------- Two adjacent rows become one: each
 * step moves some chunks of the lower row to the upper one and keeps the content of the stack.
 * Chunks always move up, and the upper row keeps its number: so the chunks that a reader has found
 * in a row and those below it stay valid for as long as the row is in the stack. The first row is
 * not changed. */

/* The chunks of one step, and the most chunks of a row that counts as small. */
enum { MERGE_STEP = 2048, SMALL_ROW = 512 };

#define SOME_OF_ROW " FROM draft_chunk WHERE node=?1 ORDER BY key LIMIT ?2"

/* Checks the checksums of the next rows to copy, because the copies get new ones. */
static int check_some(brc_store *store, int64_t node, brc_error *err)
{
    sqlite3_stmt *st;
    BRC_TRY(brc_stmt(store,
                     "SELECT min(checksum IS row_sum('draft_chunk', node, key, id)) FROM"
                     " (SELECT node, key, id, checksum" SOME_OF_ROW ")",
                     &st, err));
    sqlite3_bind_int64(st, 1, node);
    sqlite3_bind_int64(st, 2, MERGE_STEP);
    int rc = brc_step(store, st, err);
    if (rc <= 0)
        return rc;
    const int is_empty = sqlite3_column_type(st, 0) == SQLITE_NULL;
    rc = is_empty ? BRC_OK : brc_row_check(store, st, 0, "an uncommitted chunk", err);
    sqlite3_reset(st);
    return rc;
}

/* Keeps the next chunks to move, because a garbage collection may have read `upper` already, and
 * not yet `node`. */
static int keep_some(brc_store *store, int64_t node, brc_error *err)
{
    int64_t run;
    sqlite3_stmt *st;
    BRC_TRY(brc_gc_running(store, &run, err));
    if (run == 0)
        return BRC_OK;
    BRC_TRY(brc_stmt(store,
                     "INSERT INTO gc_kept(run, id) SELECT ?3, id FROM (SELECT id" SOME_OF_ROW
                     ") WHERE id IS NOT NULL ON CONFLICT DO NOTHING",
                     &st, err));
    sqlite3_bind_int64(st, 1, node);
    sqlite3_bind_int64(st, 2, MERGE_STEP);
    sqlite3_bind_int64(st, 3, run);
    return brc_run(store, st, err);
}

/* Moves some chunks of `node` to `upper`, except keys that `upper` has. */
static int move_some(brc_store *store, int64_t node, int64_t upper, int64_t *moved, brc_error *err)
{
    sqlite3_stmt *st;
    BRC_TRY(check_some(store, node, err));
    BRC_TRY(brc_stmt(store,
                     "INSERT OR IGNORE INTO draft_chunk(node, key, id, checksum)"
                     " SELECT ?3, key, id, row_sum('draft_chunk', ?3, key, id)" SOME_OF_ROW,
                     &st, err));
    sqlite3_bind_int64(st, 1, node);
    sqlite3_bind_int64(st, 2, MERGE_STEP);
    sqlite3_bind_int64(st, 3, upper);
    BRC_TRY(brc_run(store, st, err));
    BRC_TRY(keep_some(store, node, err));
    BRC_TRY(stack_run(store,
                      "DELETE FROM draft_chunk WHERE node=?1 AND key IN (SELECT key" SOME_OF_ROW
                      ")",
                      node, MERGE_STEP, err));
    *moved = sqlite3_changes(store->db);
    return BRC_OK;
}

/* Takes a row without chunks out of the stack. */
static int take_out(brc_store *store, const brc_draft_stack *stack, size_t at, brc_error *err)
{
    const int64_t below = at + 1 < stack->n ? stack->node[at + 1] : 0;
    BRC_TRY(stack_run(store, lie_on, stack->node[at - 1], below, err));
    return brc_draft_row_delete(store, stack->node[at], err);
}

/* Stores whether a savepoint has saved the row `at` but not the row above: then they are not
 * joined. */
static int is_parted(brc_store *store, const brc_draft_stack *stack, size_t at, int *parted,
                     brc_error *err)
{
    int64_t draft, level, upper, save;
    BRC_TRY(brc_draft_row_level(store, stack->node[at - 1], &draft, &upper, err));
    BRC_TRY(brc_draft_row_level(store, stack->node[at], &draft, &level, err));
    BRC_TRY(brc_draft_keeper(store, draft, level, &save, err));
    *parted = save != 0 && save <= upper;
    return BRC_OK;
}

/* Chooses the lower row of the pair to join: the lowest small row or, if there is none, the
 * uppermost row: then each chunk moves up once, until all are in one row. 0: no two rows may be
 * joined. */
static int choose_lower(brc_store *store, const brc_draft_stack *stack, size_t *out, brc_error *err)
{
    int large, parted;
    *out = 0;
    for (size_t at = stack->n - 1; at >= 2; --at) {
        BRC_TRY(is_parted(store, stack, at, &parted, err));
        if (parted)
            continue;
        *out = at;
        BRC_TRY(brc_draft_row_exceeds(store, stack->node[at], SMALL_ROW, &large, err));
        if (!large)
            return BRC_OK;
    }
    return BRC_OK;
}

int brc_draft_stack_shorten(brc_store *store, int64_t node, size_t to, int *done, brc_error *err)
{
    brc_draft_stack stack;
    size_t at = 0;
    int64_t moved;
    BRC_TRY(brc_draft_stack_get(store, node, &stack, err));
    *done = stack.n <= to || stack.n < 3;
    if (!*done)
        BRC_TRY(choose_lower(store, &stack, &at, err));
    *done |= at == 0;
    if (*done)
        return BRC_OK;
    BRC_TRY(move_some(store, stack.node[at], stack.node[at - 1], &moved, err));
    return moved < MERGE_STEP ? take_out(store, &stack, at, err) : BRC_OK;
}

/* Shortens a stack within the caller's transaction, however long that takes. */
static int shorten_now(brc_store *store, brc_draft_stack *stack, brc_error *err)
{
    const int64_t top = stack->node[0];
    for (int done = 0; !done;)
        BRC_TRY(brc_draft_stack_shorten(store, top, BRC_DRAFT_STACK_SHORT, &done, err));
    return brc_draft_stack_get(store, top, stack, err);
}

int brc_draft_stack_lay(brc_store *store, brc_draft_stack *upper, brc_draft_stack *lower,
                        brc_error *err)
{
    if (upper->n + lower->n > BRC_DRAFT_STACK_MOST) {
        BRC_TRY(shorten_now(store, lower, err));
        BRC_TRY(shorten_now(store, upper, err));
    }
    BRC_TRY(draft_row_hide(store, lower->node[0], err));
    return stack_run(store, lie_on, upper->node[upper->n - 1], lower->node[0], err);
}

/* ---- rows that savepoints know -------------------------------- */

/* Gives the rows of a stack from `at` on to the savepoints that have saved them. */
static int keep_rows(brc_store *store, int64_t draft, const brc_draft_stack *stack, size_t at,
                     brc_error *err)
{
    int64_t ignored, level, save;
    for (size_t i = at; i < stack->n; i++) {
        BRC_TRY(brc_draft_row_level(store, stack->node[i], &ignored, &level, err));
        BRC_TRY(brc_draft_keeper(store, draft, level, &save, err));
        if (save == 0)
            continue;
        BRC_TRY(brc_draft_row_to(store, stack->node[i], save, err));
        BRC_TRY(brc_draft_touch(store, save, err));
    }
    return BRC_OK;
}

/* Cuts the rows that savepoints have saved off a stack. One cut suffices, because levels do not
 * rise from a row to the rows below it. */
static int cut_below(brc_store *store, int64_t draft, const brc_draft_stack *stack, int64_t newest,
                     brc_error *err)
{
    int64_t ignored, level = newest;
    size_t at = 1;
    for (; at < stack->n; at++) {
        BRC_TRY(brc_draft_row_level(store, stack->node[at], &ignored, &level, err));
        if (level < newest)
            break;
    }
    if (at >= stack->n)
        return BRC_OK;
    BRC_TRY(stack_run(store, lie_on, stack->node[at - 1], 0, err));
    return keep_rows(store, draft, stack, at, err);
}

/* Detaches the row from the rows below it that savepoints have saved. */
static int draft_stack_part(brc_store *store, int64_t node, brc_error *err)
{
    int64_t draft, level, newest;
    brc_draft_stack stack;
    BRC_TRY(brc_draft_row_level(store, node, &draft, &level, err));
    BRC_TRY(brc_draft_level(store, draft, &newest, err));
    if (newest == 0)
        return BRC_OK;
    BRC_TRY(brc_draft_stack_get(store, node, &stack, err));
    return cut_below(store, draft, &stack, newest, err);
}

/* Called before a row is deleted. *kept 1: a savepoint keeps the row. Else the row does not lie any
 * more on rows that a savepoint has saved, which stay. */
static int draft_row_keep(brc_store *store, int64_t node, int *kept, brc_error *err)
{
    int64_t draft, level, newest;
    brc_draft_stack stack;
    *kept = 0;
    BRC_TRY(brc_draft_row_level(store, node, &draft, &level, err));
    BRC_TRY(brc_draft_level(store, draft, &newest, err));
    if (newest == 0)
        return BRC_OK;
    BRC_TRY(brc_draft_stack_get(store, node, &stack, err));
    if (level >= newest)
        return cut_below(store, draft, &stack, newest, err);
    *kept = 1; /* the savepoint keeps the row with its path */
    BRC_TRY(brc_draft_has_part(store, newest, BRC_PART_DOCS, err));
    BRC_TRY(brc_draft_row_to(store, node, newest, err));
    BRC_TRY(brc_draft_touch(store, newest, err));
    return keep_rows(store, draft, &stack, 1, err);
}

/* Detaches all rows below the row; the caller keeps them. */
static int draft_stack_cut(brc_store *store, int64_t node, brc_error *err)
{
    return stack_run(store, lie_on, node, 0, err);
}

/* ==== draft drop ================================ */

/*
 * Dropping drafts. A draft may hold millions of rows, and deleting them takes longer than others
 * should wait for the lock. So the transaction only marks a dropped draft (state 2, and kind 2, so
 * that it belongs to no branch), and its rows are deleted step by step, one step in each
 * transaction that writes. Small drafts are gone with the first step. Rows to delete from a draft
 * that stays are given to a dropped draft. A shared draft that was committed rests until its branch
 * gets the next one (state 3), so that the row's page is the only one that small commits write for
 * the draft.
 */

/* A transaction that drops a draft deletes DROP_LEAST of its rows at once, one that finds rows of
 * others SWEEP_LEAST, so that a small change pays for few; and either as many as it has changed, so
 * that dropped rows never become more. */
enum { DROP_LEAST = 4096, SWEEP_LEAST = 512, NODE_COST = 8 };

/* A stack with fewer chunks is cleared at once. */
enum { CLEAR_MOST = 4096 };

/* A dropped draft may get rows of any kind from others. */
#define DROP_IT                                                                               \
    "UPDATE draft SET kind=2, state=2, parts=parts|7, checksum=row_sum('draft', id, 2, 2,"      \
    " branch, base, tip, other, plan, owner, parent, time_us, changes, parts|7) WHERE id=?1"

static int drop_run(brc_store *store, const char *sql, int64_t a, int64_t b, int64_t *left,
                    brc_error *err)
{
    sqlite3_stmt *st;
    BRC_TRY(brc_stmt(store, sql, &st, err));
    sqlite3_bind_int64(st, 1, a);
    if (sqlite3_bind_parameter_count(st) > 1)
        sqlite3_bind_int64(st, 2, b);
    BRC_TRY(brc_run(store, st, err));
    if (left != NULL)
        *left -= sqlite3_changes(store->db);
    return BRC_OK;
}

/* Deletes rows of a table that the file may lack. */
static int drop_reserved(brc_store *store, const char *table, const char *sql, int64_t draft,
                         int64_t most, int64_t *left, brc_error *err)
{
    int there;
    BRC_TRY(brc_schema_has(store, table, &there, err));
    return there ? drop_run(store, sql, draft, most, left, err) : BRC_OK;
}

/* Reads the number that a statement finds; 0: none. */
static int drop_find(brc_store *store, const char *sql, int64_t a, int64_t b, int64_t *out,
                     brc_error *err)
{
    sqlite3_stmt *st;
    BRC_TRY(brc_stmt(store, sql, &st, err));
    if (sqlite3_bind_parameter_count(st) > 0)
        sqlite3_bind_int64(st, 1, a);
    if (sqlite3_bind_parameter_count(st) > 1)
        sqlite3_bind_int64(st, 2, b);
    return brc_ask_number(store, st, out, err);
}

/* The number of rows that the transaction deletes in one go. */
static int64_t drop_most(const brc_store *store, int64_t least)
{
    const int64_t changes = brc_store_changes(store);
    return changes > least ? changes : least;
}

/* Deletes at most *left rows of a node in the order of their keys, and counts *left down. */
static int drop_chunks(brc_store *store, int64_t node, int64_t *left, brc_error *err)
{
    sqlite3_stmt *st, *drop;
    BRC_TRY(brc_stmt(store,
                     "SELECT key FROM draft_chunk WHERE node=?1 ORDER BY key LIMIT 1 OFFSET ?2",
                     &st, err));
    sqlite3_bind_int64(st, 1, node);
    sqlite3_bind_int64(st, 2, *left);
    int rc = brc_step(store, st, err);
    if (rc > 0) {
        /* SQLite deletes a range of keys while it walks it, and collects any other choice first. */
        rc = brc_stmt(store, "DELETE FROM draft_chunk WHERE node=?1 AND key<?2", &drop, err);
        if (rc == BRC_OK) {
            sqlite3_bind_int64(drop, 1, node);
            sqlite3_bind_value(drop, 2, sqlite3_column_value(st, 0));
            rc = brc_run(store, drop, err);
            *left -= sqlite3_changes(store->db);
        }
        sqlite3_reset(st);
        return rc;
    }
    sqlite3_reset(st);
    return rc < 0 ? rc
                  : drop_run(store, "DELETE FROM draft_chunk WHERE node=?1", node, 0, left, err);
}

static int drop_nodes(brc_store *store, int64_t draft, int64_t *left, brc_error *err)
{
    int64_t first;
    while (*left > 0) {
        BRC_TRY(drop_find(store, "SELECT node FROM draft_node WHERE draft=?1 LIMIT 1", draft, 0,
                          &first, err));
        if (first == 0)
            return BRC_OK;
        BRC_TRY(drop_chunks(store, first, left, err));
        if (*left > 0)
            BRC_TRY(brc_draft_doc_drop(store, first, err));
        if (*left > 0)
            BRC_TRY(brc_draft_row_delete(store, first, err));
        *left -= NODE_COST;
    }
    return BRC_OK;
}

/* Deletes conflicts of an open merge. */
static int drop_conflicts(brc_store *store, int64_t draft, int64_t *left, brc_error *err)
{
    return drop_reserved(store, "conflict",
                         "DELETE FROM conflict WHERE (draft, path, member, key) IN"
                         " (SELECT draft, path, member, key FROM conflict WHERE draft=?1 LIMIT ?2)",
                         draft, *left, left, err);
}

static int drop_moves(brc_store *store, int64_t draft, brc_error *err)
{
    return drop_reserved(store, "draft_move", "DELETE FROM draft_move WHERE draft=?1", draft, 0,
                         NULL, err);
}

/* Deletes at most *left rows of a draft and counts *left down; if *left stays above 0, the draft
 * has no row any more. */
static int drop_rows(brc_store *store, int64_t draft, int64_t *left, brc_error *err)
{
    BRC_TRY(drop_nodes(store, draft, left, err));
    if (*left > 0)
        BRC_TRY(drop_conflicts(store, draft, left, err));
    if (*left > 0)
        BRC_TRY(drop_reserved(store, "draft_move",
                              "DELETE FROM draft_move WHERE draft=?1 AND path IN (SELECT path"
                              " FROM draft_move WHERE draft=" BRC_IF_MOVES " LIMIT ?2)",
                              draft, *left, left, err));
    if (*left > 0)
        BRC_TRY(drop_reserved(store, "draft_key",
                              "DELETE FROM draft_key WHERE draft=?1 AND key IN (SELECT key"
                              " FROM draft_key WHERE draft=" BRC_IF_KEYS " LIMIT ?2)",
                              draft, *left, left, err));
    return BRC_OK;
}

static int drop_step(brc_store *store, int64_t draft, int64_t least, brc_error *err)
{
    int64_t left = drop_most(store, least);
    BRC_TRY(drop_rows(store, draft, &left, err));
    return left > 0 ? drop_run(store, "DELETE FROM draft WHERE id=?1", draft, 0, NULL, err)
                    : BRC_OK;
}

/* In SQL: whether the savepoint `s` is a point of a log. */
#define SAVE_IS_POINT "substr(s.plan,1,17)='" BRC_POINT_PLAN "'"

int brc_draft_sweep(brc_store *store, brc_error *err)
{
    int64_t draft;
    BRC_TRY(drop_find(store, "SELECT id FROM draft WHERE state=2 LIMIT 1", 0, 0, &draft, err));
    return draft != 0 ? drop_step(store, draft, SWEEP_LEAST, err) : BRC_OK;
}

/* Clears the marks for savepoints and for a log in the parent's `parts` when the parent has none
 * any more. */
static int end_save(brc_store *store, int64_t draft, brc_error *err)
{
    int64_t parent, left;
    BRC_TRY(drop_find(store, "SELECT parent FROM draft WHERE id=?1", draft, 0, &parent, err));
    if (parent == 0)
        return BRC_OK;
    BRC_TRY(drop_find(store,
                      "SELECT 7 | 8*EXISTS(SELECT 1 FROM " BRC_SAVES_OF " AND NOT " SAVE_IS_POINT
                      ") | 16*EXISTS(SELECT 1 FROM " BRC_SAVES_OF " AND " SAVE_IS_POINT ")",
                      parent, 0, &left, err));
    return drop_run(store,
                    "UPDATE draft SET parts=parts&?2, checksum=row_sum('draft', id, kind, state,"
                    " branch, base, tip, other, plan, owner, parent, time_us, changes, parts&?2)"
                    " WHERE id=?1 AND parts&?2<>parts",
                    parent, left, NULL, err);
}

int brc_draft_saves_end(brc_store *store, int64_t draft, brc_error *err)
{
    int64_t save = 1;
    while (save != 0) {
        BRC_TRY(brc_draft_level(store, draft, &save, err));
        if (save != 0)
            BRC_TRY(drop_run(store, DROP_IT, save, 0, NULL, err));
        if (save != 0)
            BRC_TRY(end_save(store, save, err));
    }
    return BRC_OK;
}

int brc_draft_delete(brc_store *store, int64_t draft, brc_error *err)
{
    BRC_TRY(brc_draft_saves_end(store, draft, err));
    BRC_TRY(drop_run(store, DROP_IT, draft, 0, NULL, err));
    BRC_TRY(end_save(store, draft, err));
    return drop_step(store, draft, DROP_LEAST, err);
}

int brc_draft_point_delete(brc_store *store, int64_t point, brc_error *err)
{
    BRC_TRY(drop_run(store, DROP_IT, point, 0, NULL, err));
    return drop_step(store, point, DROP_LEAST, err);
}

int brc_draft_rest(brc_store *store, int64_t draft, brc_error *err)
{
    int64_t left = drop_most(store, DROP_LEAST);
    BRC_TRY(brc_draft_saves_end(store, draft, err));
    BRC_TRY(drop_rows(store, draft, &left, err));
    if (left <= 0)
        return drop_run(store, DROP_IT, draft, 0, NULL, err);
    return drop_run(store,
                    "UPDATE draft SET state=3, base=NULL, tip=NULL, parts=0,"
                    " checksum=row_sum('draft', id, kind, 3, branch, NULL, NULL, other, plan,"
                    " owner, parent, time_us, changes, 0) WHERE id=?1",
                    draft, 0, NULL, err);
}

int brc_draft_dropped(brc_store *store, int64_t draft, int64_t *out, brc_error *err)
{
    BRC_TRY(drop_find(store, "SELECT id FROM draft WHERE state=2 AND id<>?1 LIMIT 1", draft, 0, out,
                      err));
    if (*out != 0)
        return BRC_OK;
    BRC_TRY(drop_run(store,
                     "INSERT INTO draft(kind, state, branch, time_us, changes, parts, checksum)"
                     " SELECT 2, 2, branch, time_us, 0, 7, 0 FROM draft WHERE id=?1",
                     draft, 0, NULL, err));
    *out = sqlite3_last_insert_rowid(store->db);
    return drop_run(store, DROP_IT, *out, 0, NULL, err);
}

/* Gives the draft's rows of nodes to a dropped draft, and drops its moves. */
static int give_nodes_away(brc_store *store, int64_t draft, brc_error *err)
{
    int64_t to;
    BRC_TRY(brc_draft_dropped(store, draft, &to, err));
    BRC_TRY(drop_run(store,
                     "UPDATE draft_node SET draft=?2, path=NULL, checksum="
                     "row_sum('draft_node', node, ?2, NULL, below, level, entry) WHERE draft=?1",
                     draft, to, NULL, err));
    return drop_moves(store, draft, err);
}

int brc_draft_empty(brc_store *store, int64_t draft, brc_error *err)
{
    int64_t left = drop_most(store, DROP_LEAST);
    BRC_TRY(brc_draft_saves_end(store, draft, err));
    BRC_TRY(drop_rows(store, draft, &left, err));
    if (left > 0)
        return BRC_OK;
    BRC_TRY(give_nodes_away(store, draft, err));
    return drop_reserved(store, "draft_key", "DELETE FROM draft_key WHERE draft=?1", draft, 0,
                         NULL, err);
}

int brc_draft_lay(brc_store *store, int64_t draft, const brc_oid *base, brc_error *err)
{
    sqlite3_stmt *st;
    int64_t left = drop_most(store, DROP_LEAST);
    BRC_TRY(brc_draft_saves_end(store, draft, err));
    BRC_TRY(drop_nodes(store, draft, &left, err));
    BRC_TRY(left > 0 ? drop_moves(store, draft, err) : give_nodes_away(store, draft, err));
    BRC_TRY(brc_stmt(store,
                     "UPDATE draft SET base=?2, parts=parts&1, checksum=row_sum('draft', id, kind,"
                     " state, branch, ?2, tip, other, plan, owner, parent, time_us, changes,"
                     " parts&1) WHERE id=?1",
                     &st, err));
    sqlite3_bind_int64(st, 1, draft);
    brc_bind_id(store, st, 2, base);
    return brc_run(store, st, err);
}

int brc_draft_advance(brc_store *store, int64_t draft, const brc_oid *commit, brc_error *err)
{
    sqlite3_stmt *st;
    BRC_TRY(brc_draft_empty(store, draft, err));
    BRC_TRY(brc_stmt(store,
                     "UPDATE draft SET base=?2, tip=?2, parts=0, checksum=row_sum('draft', id,"
                     " kind, state, branch, ?2, ?2, other, plan, owner, parent, time_us, changes,"
                     " 0) WHERE id=?1",
                     &st, err));
    sqlite3_bind_int64(st, 1, draft);
    brc_bind_id(store, st, 2, commit);
    return brc_run(store, st, err);
}

static int has_many(brc_store *store, const brc_draft_stack *stack, int *many, brc_error *err)
{
    int64_t n = 0, sum = 0;
    for (size_t i = 0; i < stack->n && sum < CLEAR_MOST; i++) {
        BRC_TRY(drop_find(store,
                          "SELECT count(*) FROM (SELECT 1 FROM draft_chunk WHERE node=?1 LIMIT ?2)",
                          stack->node[i], CLEAR_MOST, &n, err));
        sum += n;
    }
    *many = sum >= CLEAR_MOST;
    return BRC_OK;
}

/* Deletes every chunk of the stack, and the rows below the first. */
static int clear_now(brc_store *store, const brc_draft_stack *stack, brc_error *err)
{
    for (size_t i = 0; i < stack->n; i++)
        BRC_TRY(drop_run(store, "DELETE FROM draft_chunk WHERE node=?1", stack->node[i], 0, NULL,
                         err));
    for (size_t i = 1; i < stack->n; i++)
        BRC_TRY(brc_draft_row_delete(store, stack->node[i], err));
    return stack->n > 1 ? draft_stack_cut(store, stack->node[0], err) : BRC_OK;
}

/* Gives the rows to a dropped draft. */
static int give_away(brc_store *store, const brc_draft_stack *stack, brc_error *err)
{
    int64_t draft, level, to;
    BRC_TRY(brc_draft_row_level(store, stack->node[0], &draft, &level, err));
    BRC_TRY(brc_draft_dropped(store, draft, &to, err));
    for (size_t i = 0; i < stack->n; i++) {
        BRC_TRY(draft_row_hide(store, stack->node[i], err));
        BRC_TRY(brc_draft_row_to(store, stack->node[i], to, err));
    }
    return BRC_OK;
}

int brc_draft_row_clear(brc_store *store, int64_t node, const char *path, brc_error *err)
{
    int many;
    int64_t top;
    brc_draft_stack stack;
    BRC_TRY(draft_stack_part(store, node, err));
    BRC_TRY(brc_draft_stack_get(store, node, &stack, err));
    BRC_TRY(has_many(store, &stack, &many, err));
    if (!many)
        return clear_now(store, &stack, err);
    BRC_TRY(brc_draft_stack_push(store, node, path, &top, err));
    BRC_TRY(draft_stack_cut(store, top, err));
    return give_away(store, &stack, err);
}

int brc_draft_row_drop(brc_store *store, int64_t node, brc_error *err)
{
    int many, kept;
    brc_draft_stack stack;
    BRC_TRY(draft_row_keep(store, node, &kept, err));
    if (kept)
        return BRC_OK;
    BRC_TRY(brc_draft_doc_drop(store, node, err));
    BRC_TRY(brc_draft_stack_get(store, node, &stack, err));
    BRC_TRY(has_many(store, &stack, &many, err));
    if (many)
        return give_away(store, &stack, err);
    BRC_TRY(clear_now(store, &stack, err));
    return brc_draft_row_delete(store, node, err);
}
