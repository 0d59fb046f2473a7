/*
 * Stacks of rows: a row of draft_node may lie on another, whose chunks count where it has none of
 * its own. So two sets of uncommitted chunks of one array become one without a chunk being copied:
 * when a draft is adopted, and when a bulk write ends. A row that is below another has no path and
 * belongs to the same draft; its entry does not count. A row that a savepoint knows as it is stays
 * when it leaves its stack: it is then the savepoint's (draft_save.c).
 */
#include "collect.h"
#include "db.h"

#define STACK_SUM_TAIL ", level, entry)"

/* It lies on this one from now on; 0: on none. */
static const char lie_on[] =
    "UPDATE draft_node SET below=nullif(?2, 0),"
    " checksum=row_sum('draft_node', node, draft, path, nullif(?2, 0)" STACK_SUM_TAIL
    " WHERE node=?1";

/* A row has at most this many chunks, or more. */
enum { FEW_CHUNKS = 4096 };

/* Runs a statement of one or two rows' numbers. */
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

int brc_draft_row_hide(brc_store *store, int64_t node, brc_error *err)
{
    return stack_run(store,
                     "UPDATE draft_node SET path=NULL,"
                     " checksum=row_sum('draft_node', node, draft, NULL, below" STACK_SUM_TAIL
                     " WHERE node=?1",
                     node, 0, err);
}

/* *below is 0 where the row lies on none. */
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

/* Chunks that one statement looks up: some ms. */
enum { MEET_STEP = 2048 };

/* The key of the row's last chunk of so many from this one on, into `last`, and how many these
 * are. */
static int meet_range(brc_store *store, int64_t node, const brc_buf *from, brc_buf *last,
                      int64_t *n, brc_error *err)
{
    sqlite3_stmt *st;
    BRC_TRY(brc_stmt(store,
                     "SELECT max(key), count(*) FROM (SELECT key FROM draft_chunk WHERE node=?1"
                     " AND key>=?2 ORDER BY key LIMIT ?3)",
                     &st, err));
    sqlite3_bind_int64(st, 1, node);
    BRC_TRY(brc_bind_copy(store, st, 2, 0, (brc_span){from->data, from->len}, err));
    sqlite3_bind_int64(st, 3, MEET_STEP);
    int rc = brc_step(store, st, err);
    if (rc <= 0)
        return rc;
    *n = sqlite3_column_int64(st, 1);
    last->len = 0;
    rc = brc_buf_append(last, sqlite3_column_blob(st, 0), (size_t)sqlite3_column_bytes(st, 0), err);
    sqlite3_reset(st);
    return rc;
}

/* Each chunk of the first in this range is looked up in the second. */
static int ranges_meet(brc_store *store, int64_t first, int64_t second, const brc_buf *from,
                       const brc_buf *last, int *meet, brc_error *err)
{
    sqlite3_stmt *st;
    BRC_TRY(brc_stmt(store,
                     "SELECT 1 FROM draft_chunk a CROSS JOIN draft_chunk b ON b.node=?2"
                     " AND b.key=a.key WHERE a.node=?1 AND a.key>=?3 AND a.key<=?4"
                     " AND a.id IS NOT b.id LIMIT 1",
                     &st, err));
    sqlite3_bind_int64(st, 1, first);
    sqlite3_bind_int64(st, 2, second);
    BRC_TRY(brc_bind_copy(store, st, 3, 0, (brc_span){from->data, from->len}, err));
    BRC_TRY(brc_bind_copy(store, st, 4, 0, (brc_span){last->data, last->len}, err));
    return brc_ask_any(store, st, meet, err);
}

/* The last chunk of a range is the first of the next. */
static int rows_meet(brc_store *store, int64_t first, int64_t second, int *meet, brc_error *err)
{
    brc_buf from = BRC_BUF_INIT, last = BRC_BUF_INIT;
    int64_t n = MEET_STEP;
    int rc = BRC_OK;
    while (n == MEET_STEP && !*meet) {
        BRC_GO(meet_range(store, first, &from, &last, &n, err));
        if (n > 0)
            BRC_GO(ranges_meet(store, first, second, &from, &last, meet, err));
        BRC_GO(brc_store_check_interrupt(store, err));
        const brc_buf was = from;
        from = last;
        last = was;
    }
done:
    brc_buf_dispose(&from);
    brc_buf_dispose(&last);
    return rc;
}

/* From the lowest rows up: where others make a stack shorter meanwhile, chunks go up. */
int brc_draft_stacks_meet(brc_store *store, const brc_draft_stack *a, const brc_draft_stack *b,
                          int *meet, brc_error *err)
{
    int many;
    *meet = 0;
    for (size_t j = b->n; j-- > 0;) {
        for (size_t i = a->n; i-- > 0 && !*meet;) {
            BRC_TRY(brc_draft_row_exceeds(store, a->node[i], FEW_CHUNKS, &many, err));
            BRC_TRY(many ? rows_meet(store, b->node[j], a->node[i], meet, err)
                         : rows_meet(store, a->node[i], b->node[j], meet, err));
        }
    }
    return BRC_OK;
}

/* ---- making a stack shorter --------------------------------
 * Two rows that lie on each other become one: the chunks of the lower go up, some in each step.
 * After each step the stack says what it said before. They always go up, and the upper keeps its
 * number: so what somebody has read of a row with all that is below it stays right for as long as
 * the row is in the stack. The first row is not changed. */

/* Chunks of one step, and of a row that is found to be small: that is looked for in each. */
enum { MERGE_STEP = 2048, SMALL_ROW = 512 };

#define SOME_OF_ROW " FROM draft_chunk WHERE node=?1 ORDER BY key LIMIT ?2"

/* What is copied gets a checksum: it must have had the right one. */
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

/* A collection may have looked at `upper` already, and not yet at `node`. */
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

/* Some chunks of `node` become those of `upper`, where that does not have their keys. */
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

/* A row without chunks leaves the stack. */
static int take_out(brc_store *store, const brc_draft_stack *stack, size_t at, brc_error *err)
{
    const int64_t below = at + 1 < stack->n ? stack->node[at + 1] : 0;
    BRC_TRY(stack_run(store, lie_on, stack->node[at - 1], below, err));
    return brc_draft_row_delete(store, stack->node[at], err);
}

/* Whether a savepoint knows the row `at` and not the one above it: then they stay two. */
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

/* The lower row of the pair that is to become one: the lowest small one. Where there is none, the
 * uppermost: then each chunk goes up once, until all are in one row. 0: no two may. */
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

/* Within the caller's transaction, which is as long as it takes. */
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
    BRC_TRY(brc_draft_row_hide(store, lower->node[0], err));
    return stack_run(store, lie_on, upper->node[upper->n - 1], lower->node[0], err);
}

/* ---- rows that savepoints know -------------------------------- */

/* From `at` on, what of a stack goes into the savepoints that know it. */
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

/* Levels do not rise from a row to those below it: one cut parts what is known from what is not. */
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

int brc_draft_stack_part(brc_store *store, int64_t node, brc_error *err)
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

int brc_draft_row_keep(brc_store *store, int64_t node, int *kept, brc_error *err)
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
    *kept = 1; /* with its path: it is what the newest found here */
    BRC_TRY(brc_draft_has_part(store, newest, BRC_PART_DOCS, err));
    BRC_TRY(brc_draft_row_to(store, node, newest, err));
    BRC_TRY(brc_draft_touch(store, newest, err));
    return keep_rows(store, draft, &stack, 1, err);
}

int brc_draft_stack_cut(brc_store *store, int64_t node, brc_error *err)
{
    return stack_run(store, lie_on, node, 0, err);
}
