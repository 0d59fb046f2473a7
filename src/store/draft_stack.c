/*
 * Stacks of rows: a row of draft_node may lie on another, whose chunks count where it has none of
 * its own. So two sets of uncommitted chunks of one array become one without a chunk being copied:
 * when a draft is adopted, and when a bulk write ends. A row that is below another has no path and
 * belongs to the same draft; its entry does not count. Savepoints will be such rows too: their
 * number is draft_node.level, which nothing sets yet.
 */
#include "db.h"

#define STACK_SUM_TAIL ", level, entry)"

/* Runs a statement of one or two rows' numbers. */
static int stack_run(brc_store *store, const char *sql, int64_t first, int64_t second,
                     brc_error *err)
{
    sqlite3_stmt *st;
    BRC_TRY(brc_stmt(store, sql, &st, err));
    sqlite3_bind_int64(st, 1, first);
    if (second != 0)
        sqlite3_bind_int64(st, 2, second);
    return brc_run(store, st, err);
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

/* A row has at most this many chunks, or more. */
#define FEW_CHUNKS "4096"

static int has_few(brc_store *store, int64_t node, int *few, brc_error *err)
{
    int many;
    sqlite3_stmt *st;
    BRC_TRY(brc_stmt(store,
                     "SELECT 1 FROM draft_chunk WHERE node=?1 LIMIT 1 OFFSET " FEW_CHUNKS, &st,
                     err));
    sqlite3_bind_int64(st, 1, node);
    BRC_TRY(brc_ask_any(store, st, &many, err));
    *few = !many;
    return BRC_OK;
}

/* Each chunk of the first is looked up in the second. */
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

int brc_draft_stacks_meet(brc_store *store, const brc_draft_stack *a, const brc_draft_stack *b,
                          int *meet, brc_error *err)
{
    int few;
    *meet = 0;
    for (size_t i = 0; i < a->n; i++) {
        BRC_TRY(has_few(store, a->node[i], &few, err));
        for (size_t j = 0; j < b->n && !*meet; j++)
            BRC_TRY(few ? rows_meet(store, a->node[i], b->node[j], meet, err)
                        : rows_meet(store, b->node[j], a->node[i], meet, err));
    }
    return BRC_OK;
}

/* The chunks of the upper rows become those of the row `into`, from the lowest of them up. */
static int stack_flatten(brc_store *store, const brc_draft_stack *upper, int64_t into,
                         brc_error *err)
{
    for (size_t i = upper->n; i > 0; i--)
        BRC_TRY(stack_run(store,
                          "INSERT OR REPLACE INTO draft_chunk(node, key, id, checksum)"
                          " SELECT ?2, key, id, row_sum('draft_chunk', ?2, key, id)"
                          " FROM draft_chunk WHERE node=?1",
                          upper->node[i - 1], into, err));
    BRC_TRY(brc_draft_chunk_clear_all(store, upper->node[0], err));
    return stack_run(store, "DELETE FROM draft_node WHERE node=?1", upper->node[0], 0, err);
}

int brc_draft_stack_lay(brc_store *store, const brc_draft_stack *upper,
                        const brc_draft_stack *lower, int64_t *top, brc_error *err)
{
    *top = lower->node[0];
    if (upper->n + lower->n > BRC_DRAFT_STACK_MOST)
        return stack_flatten(store, upper, lower->node[0], err);
    *top = upper->node[0];
    BRC_TRY(stack_run(store,
                      "UPDATE draft_node SET path=NULL,"
                      " checksum=row_sum('draft_node', node, draft, NULL, below" STACK_SUM_TAIL
                      " WHERE node=?1",
                      lower->node[0], 0, err));
    return stack_run(store,
                     "UPDATE draft_node SET below=?2,"
                     " checksum=row_sum('draft_node', node, draft, path, ?2" STACK_SUM_TAIL
                     " WHERE node=?1",
                     upper->node[upper->n - 1], lower->node[0], err);
}

int brc_draft_chunk_clear_all(brc_store *store, int64_t node, brc_error *err)
{
    brc_draft_stack stack;
    BRC_TRY(brc_draft_stack_get(store, node, &stack, err));
    for (size_t i = 0; i < stack.n; i++)
        BRC_TRY(stack_run(store, "DELETE FROM draft_chunk WHERE node=?1", stack.node[i], 0, err));
    for (size_t i = 1; i < stack.n; i++)
        BRC_TRY(stack_run(store, "DELETE FROM draft_node WHERE node=?1", stack.node[i], 0, err));
    if (stack.n == 1)
        return BRC_OK;
    return stack_run(store,
                     "UPDATE draft_node SET below=NULL,"
                     " checksum=row_sum('draft_node', node, draft, path, NULL" STACK_SUM_TAIL
                     " WHERE node=?1",
                     node, 0, err);
}
