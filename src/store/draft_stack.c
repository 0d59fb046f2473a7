/*
 * Rows of nodes that may be changed. A row that others need as it is gets another over it, or in
 * its place: while a commit or a copy in batches reads it, and when an open savepoint has found it
 * (draft_save.c). Of the latter the savepoint gets a row with the path, the entry and the document;
 * chunks are not copied, they lie below both.
 */
#include "collect.h"
#include "db.h"

static int draft_row_hide(brc_store *store, int64_t node, brc_error *err);

/* ==== draft own ================================ */

/* Rows that lie on each other, from which on they are made fewer as others come. */
enum { STACK_HIGH = 14, STACK_FULL = 28 };

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

/* Its checksum, after its other columns. */
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

/* A row without a path that lies on this one, with its entry and document. */
static int row_over(brc_store *store, int64_t node, int64_t level, int64_t *top, brc_error *err)
{
    BRC_TRY(own_ask(store,
                    "INSERT INTO draft_node(draft, path, below, level, entry, checksum)"
                    " SELECT draft, NULL, node, ?2, entry, 0 FROM draft_node WHERE node=?1"
                    " RETURNING node",
                    node, level, top, err));
    return brc_draft_doc_copy(store, node, *top, err);
}

/* The row goes below `top`, which gets its path. */
static int put_below(brc_store *store, int64_t node, const char *path, int64_t top, brc_error *err)
{
    BRC_TRY(brc_draft_doc_drop(store, node, err));
    BRC_TRY(draft_row_hide(store, node, err));
    return own_seal(store, top, path, err);
}

/* ---- known to a savepoint -------------------------------- */

static int room_over(brc_store *store, int64_t node, size_t n, brc_error *err)
{
    int done = n < STACK_HIGH;
    while (!done) {
        brc_draft_stack stack;
        BRC_TRY(brc_draft_stack_shorten(store, node, BRC_DRAFT_STACK_SHORT, &done, err));
        BRC_TRY(brc_draft_stack_get(store, node, &stack, err));
        done |= stack.n < STACK_FULL;
    }
    return BRC_OK;
}

/* What the savepoint has of it: a row that lies on the same chunks. */
static int image_of(brc_store *store, int64_t node, const char *path, int64_t save, brc_error *err)
{
    int64_t image;
    BRC_TRY(own_ask(store,
                    "INSERT INTO draft_node(draft, path, below, level, entry, checksum)"
                    " SELECT ?2, NULL, node, level, entry, 0 FROM draft_node WHERE node=?1"
                    " RETURNING node",
                    node, save, &image, err));
    BRC_TRY(brc_draft_doc_copy(store, node, image, err));
    return own_seal(store, image, path, err);
}

/* The row itself becomes the savepoint's, and one like it takes its place. */
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
    int any;
    BRC_TRY(brc_draft_touch(store, save, err));
    BRC_TRY(brc_draft_stack_get(store, node, &stack, err));
    BRC_TRY(brc_draft_chunk_any(store, &stack, &any, err));
    if (!any && stack.n == 1)
        return replace_row(store, node, path, save, top, err);
    BRC_TRY(room_over(store, node, stack.n, err));
    BRC_TRY(row_over(store, node, save, top, err));
    BRC_TRY(image_of(store, node, path, save, err));
    return put_below(store, node, path, *top, err);
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
    int64_t draft, level; /* of both: they say the same */
    BRC_TRY(brc_draft_row_level(store, node, &draft, &level, err));
    BRC_TRY(row_over(store, node, level, top, err));
    return put_below(store, node, path, *top, err);
}

/* ==== draft stack ================================ */

/*
 * Stacks of rows: a row of draft_node may lie on another, whose chunks count where it has none of
 * its own. So two sets of uncommitted chunks of one array become one without a chunk being copied:
 * when a draft is adopted, and when a bulk write ends. A row that is below another has no path and
 * belongs to the same draft; its entry does not count. A row that a savepoint knows as it is stays
 * when it leaves its stack: it is then the savepoint's (draft_save.c).
 */

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

/* The row lies below another from now on. */
static int draft_row_hide(brc_store *store, int64_t node, brc_error *err)
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
    BRC_TRY(draft_row_hide(store, lower->node[0], err));
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

/* What savepoints know is below the row no longer. */
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

/* Before a row goes. *kept 1: it stays, in a savepoint. Else it lies on no row
 * any more that a savepoint knows: these stay. */
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
    *kept = 1; /* with its path: it is what the newest found here */
    BRC_TRY(brc_draft_has_part(store, newest, BRC_PART_DOCS, err));
    BRC_TRY(brc_draft_row_to(store, node, newest, err));
    BRC_TRY(brc_draft_touch(store, newest, err));
    return keep_rows(store, draft, &stack, 1, err);
}

/* Nor is anything else: the caller has it. */
static int draft_stack_cut(brc_store *store, int64_t node, brc_error *err)
{
    return stack_run(store, lie_on, node, 0, err);
}

/* ==== draft drop ================================ */

/*
 * Dropping drafts. What a draft holds may be millions of rows, and deleting them takes longer than
 * others should wait for the lock. So a dropped draft is marked (state 2, and kind 2: it is no
 * branch's), which is all that the transaction needs, and its rows go step by step: one in each
 * transaction that writes. Small drafts are gone with the first step. Rows that leave a draft which
 * stays go to a dropped one. A shared draft that was committed rests until its branch has the next
 * (state 3), so that the row's page is the only one that small commits write for it.
 */

/* Rows that one transaction deletes. */
enum { STEP = 4096, NODE_COST = 8 };

#define DROP_IT                                                                               \
    "UPDATE draft SET kind=2, state=2, checksum=row_sum('draft', id, 2, 2, branch, base, tip," \
    " other, plan, owner, parent, time_us, changes, parts) WHERE id=?1"

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

/* Of a table that the file may lack. */
static int drop_reserved(brc_store *store, const char *table, const char *sql, int64_t draft,
                         int64_t most, int64_t *left, brc_error *err)
{
    int there;
    BRC_TRY(brc_schema_has(store, table, &there, err));
    return there ? drop_run(store, sql, draft, most, left, err) : BRC_OK;
}

/* The number that a statement finds; 0: none. */
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

static int drop_nodes(brc_store *store, int64_t draft, int64_t *left, brc_error *err)
{
    int64_t first;
    while (*left > 0) {
        BRC_TRY(drop_find(store, "SELECT node FROM draft_node WHERE draft=?1 LIMIT 1", draft, 0,
                          &first, err));
        if (first == 0)
            return BRC_OK;
        BRC_TRY(drop_run(store,
                         "DELETE FROM draft_chunk WHERE node=?1 AND key IN"
                         " (SELECT key FROM draft_chunk WHERE node=?1 LIMIT ?2)",
                         first, *left, left, err));
        if (*left > 0)
            BRC_TRY(brc_draft_doc_drop(store, first, err));
        if (*left > 0)
            BRC_TRY(brc_draft_row_delete(store, first, err));
        *left -= NODE_COST;
    }
    return BRC_OK;
}

/* Of an open merge. */
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

/* At most *left rows, which it counts down; above 0: the draft has none now. */
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

static int drop_step(brc_store *store, int64_t draft, brc_error *err)
{
    int64_t left = STEP;
    BRC_TRY(drop_rows(store, draft, &left, err));
    return left > 0 ? drop_run(store, "DELETE FROM draft WHERE id=?1", draft, 0, NULL, err)
                    : BRC_OK;
}

int brc_draft_sweep(brc_store *store, brc_error *err)
{
    int64_t draft;
    BRC_TRY(drop_find(store, "SELECT id FROM draft WHERE state=2 LIMIT 1", 0, 0, &draft, err));
    return draft != 0 ? drop_step(store, draft, err) : BRC_OK;
}

/* Those of one draft are known to it as long as it has one. */
static int end_save(brc_store *store, int64_t draft, brc_error *err)
{
    int64_t parent;
    BRC_TRY(drop_find(store, "SELECT parent FROM draft WHERE id=?1", draft, 0, &parent, err));
    if (parent == 0)
        return BRC_OK;
    return drop_run(store,
                    "UPDATE draft SET parts=parts&7, checksum=row_sum('draft', id, kind, state,"
                    " branch, base, tip, other, plan, owner, parent, time_us, changes, parts&7)"
                    " WHERE id=?1 AND NOT EXISTS (SELECT 1 FROM draft s WHERE s.parent=?1 AND"
                    " s.state=1)",
                    parent, 0, NULL, err);
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
    return drop_step(store, draft, err);
}

int brc_draft_rest(brc_store *store, int64_t draft, brc_error *err)
{
    int64_t left = STEP;
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

/* Those of nodes become a dropped draft's. */
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
    int64_t left = STEP;
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
    int64_t left = STEP;
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
    for (size_t i = 0; i < stack->n && sum < STEP; i++) {
        BRC_TRY(drop_find(store,
                          "SELECT count(*) FROM (SELECT 1 FROM draft_chunk WHERE node=?1 LIMIT ?2)",
                          stack->node[i], STEP, &n, err));
        sum += n;
    }
    *many = sum >= STEP;
    return BRC_OK;
}

/* Every chunk of the stack, and the rows below the first. */
static int clear_now(brc_store *store, const brc_draft_stack *stack, brc_error *err)
{
    for (size_t i = 0; i < stack->n; i++)
        BRC_TRY(drop_run(store, "DELETE FROM draft_chunk WHERE node=?1", stack->node[i], 0, NULL,
                         err));
    for (size_t i = 1; i < stack->n; i++)
        BRC_TRY(brc_draft_row_delete(store, stack->node[i], err));
    return stack->n > 1 ? draft_stack_cut(store, stack->node[0], err) : BRC_OK;
}

/* The rows become those of a dropped draft. */
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
