/*
 * Folding a draft with very many rows ahead of its commit. The nodes of the trees are objects,
 * named by their hash, so they can be written before anything refers to them: in transactions of
 * BRC_FOLD_ROWS rows, between which others read and write. A commit that ends before its last
 * transaction leaves only objects that nobody needs.
 *
 * What others write into the shared draft meanwhile is not lost, and does not make the work
 * useless: an array's rows get an empty row over them first (brc_draft_stack_push()). Who writes
 * then writes there, and the rows below it say what they say until somebody drops them. So the map
 * that is made of them stays right, and the commit's last transaction has only the rows above to
 * fold.
 */
#include <stdlib.h>
#include <string.h>

#include "../base/alloc.h"
#include "fold.h"

#include "../store/collect.h"

/* Rows of an array that are left to the last transaction, and nodes that are read at once. */
enum { AHEAD_FEW = 1024, AHEAD_NODES = 256 };

void brc_folded_dispose(brc_folded *folded)
{
    free(folded->maps);
    memset(folded, 0, sizeof(*folded));
}

static int folded_add(brc_folded *folded, int64_t row, const brc_oid *base, const brc_oid *map,
                      brc_error *err)
{
    BRC_TRY(brc_grow_array(&folded->maps, &folded->cap, folded->n + 1, sizeof(brc_folded_map),
                           err));
    ((brc_folded_map *)folded->maps)[folded->n++] = (brc_folded_map){row, *base, *map};
    return BRC_OK;
}

/* ---- one array -------------------------------- */

/* The first row of a stack that has many chunks; n: none has. */
static int first_large(brc_store *store, const brc_draft_stack *stack, size_t *at, brc_error *err)
{
    int many = 0;
    for (*at = 0; *at < stack->n; ++*at) {
        BRC_TRY(brc_draft_row_exceeds(store, stack->node[*at], AHEAD_FEW, &many, err));
        if (many)
            return BRC_OK;
    }
    return BRC_OK;
}

static void stack_from(brc_draft_stack *stack, size_t at)
{
    stack->n -= at;
    memmove(stack->node, stack->node + at, stack->n * sizeof(*stack->node));
}

/* Of a path, within a change of the session: those of its rows that nobody writes into from now
 * on; none where the array is small. Where the stack is as high as it may be, these are the rows
 * below the first. */
static int still_rows(brc_session *s, const char *path, brc_entry *entry, brc_draft_stack *rows,
                       brc_error *err)
{
    brc_store *store = s->repo->store;
    int64_t node, top;
    size_t at;
    rows->n = 0;
    BRC_TRY(brc_session_find(s, path, entry, &node, err));
    if (entry->kind != BRC_ARRAY || node == 0)
        return BRC_OK;
    BRC_TRY(brc_draft_stack_get(store, node, rows, err));
    BRC_TRY(first_large(store, rows, &at, err));
    if (at == 0 && rows->n == BRC_DRAFT_STACK_MOST)
        at = 1;
    if (at == 0 && rows->n > 0)
        BRC_TRY(brc_draft_stack_push(store, node, path, &top, err));
    stack_from(rows, at);
    return BRC_OK;
}

int brc_hold_still(brc_session *s, const char *path, brc_entry *entry, brc_draft_stack *rows,
                   brc_error *err)
{
    BRC_TRY(brc_session_begin(s, err));
    return brc_session_end(s, still_rows(s, path, entry, rows, err), err);
}

static int fold_large(brc_session *s, const char *path, brc_folded *out, brc_error *err)
{
    brc_store *store = s->repo->store;
    brc_fold how = {.way = BRC_FOLD_SHORT_WRITES};
    brc_draft_stack rows, rest;
    brc_entry entry;
    brc_oid base, map;
    BRC_TRY(brc_hold_still(s, path, &entry, &rows, err));
    base = entry.map;
    rest = rows;
    for (size_t i = 0; i < rows.n; i++)
        if (brc_folded_find(out, rows.node[i], &entry.map, &base)) {
            if (i == 0)
                return BRC_OK;
            rest.n = i;
            break;
        }
    if (rows.n == 0)
        return BRC_OK;
    int rc = brc_fold_stack(store, &how, &base, &rest, &map, err);
    BRC_TRY(brc_fold_end(store, &how, rc, err));
    return folded_add(out, rows.node[0], &entry.map, &map, err);
}

/* ---- all of them -------------------------------- */

int brc_stack_is_large(brc_store *store, const brc_draft_stack *stack, int *large, brc_error *err)
{
    size_t at = 0;
    BRC_TRY(first_large(store, stack, &at, err));
    *large = at < stack->n;
    return BRC_OK;
}

int brc_has_many_chunks(brc_store *store, const brc_draft_node *node, int *large, brc_error *err)
{
    brc_draft_stack stack;
    *large = 0;
    if (node->entry == NULL)
        return BRC_OK;
    BRC_TRY(brc_draft_stack_get(store, node->node, &stack, err));
    return brc_stack_is_large(store, &stack, large, err);
}

static int fold_page_of_nodes(brc_session *s, brc_draft_rows *rows, size_t from, brc_folded *out,
                              brc_error *err)
{
    const brc_draft_node *nodes = rows->nodes;
    int large;
    for (size_t i = from; i < rows->n; i++) {
        BRC_TRY(brc_has_many_chunks(s->repo->store, &nodes[i], &large, err));
        if (large)
            BRC_TRY(fold_large(s, nodes[i].path, out, err));
        BRC_TRY(brc_store_check_interrupt(s->repo->store, err));
    }
    return BRC_OK;
}

/* Of which draft and state, in a read of its own. */
static int look_at_draft(brc_session *s, brc_error *err)
{
    BRC_TRY(brc_session_begin_read(s, err));
    brc_session_end_read(s);
    return BRC_OK;
}

static int fold_arrays(brc_session *s, brc_folded *out, brc_error *err)
{
    brc_draft_rows rows = {0};
    size_t before;
    int rc;
    BRC_TRY(look_at_draft(s, err));
    const int64_t draft = s->draft.id;
    do {
        before = rows.n;
        rc = brc_draft_node_page(s->repo->store, draft, &rows, AHEAD_NODES, err);
        if (rc == BRC_OK)
            rc = fold_page_of_nodes(s, &rows, before, out, err);
    } while (rc == BRC_OK && rows.n - before == AHEAD_NODES);
    brc_draft_nodes_free(rows.nodes, rows.n);
    return rc;
}

/* What is made counts only as long as the counter is where it was. Where it has moved by the end,
 * it is not known what went wrong, if something did. */
static int fold_all(brc_session *s, brc_folded *out, brc_error *err)
{
    brc_fold how = {.way = BRC_FOLD_SHORT_WRITES, .folded = out};
    brc_error found = BRC_ERROR_INIT;
    BRC_TRY(look_at_draft(s, err));
    const brc_draft_head before = s->draft;
    int rc = brc_session_fold(s, &how, &out->root, &found);
    BRC_TRY(look_at_draft(s, err));
    const int same = s->draft.id == before.id && s->draft.changes == before.changes;
    if (rc < 0 && (same || rc != BRC_ECORRUPT)) {
        if (err != NULL)
            brc_error_copy(err, &found);
        return rc;
    }
    out->has_root = rc == BRC_OK;
    out->draft = before.id;
    out->changes = before.changes;
    return BRC_OK;
}

int brc_fold_ahead(brc_session *s, int all, brc_folded *out, brc_error *err)
{
    int64_t last;
    BRC_TRY(brc_gc_last(s->repo->store, &last, err));
    if (last != out->collected)
        out->n = 0;
    out->collected = last;
    out->has_root = 0;
    const int changes = brc_session_can_change(s, NULL) == BRC_OK; /* else nobody writes into it */
    brc_store_walk_begin(s->repo->store);
    int rc = changes ? fold_arrays(s, out, err) : BRC_OK;
    if (rc == BRC_OK && all)
        rc = fold_all(s, out, err);
    brc_store_walk_end(s->repo->store);
    return rc;
}
