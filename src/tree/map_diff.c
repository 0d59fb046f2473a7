/*
 * What differs between two maps. Both are walked at once; where both stand before
 * the same node, it is skipped whole, so the work grows with the difference.
 * Prefixes are nested or apart: of two heads, the one whose prefix is the shorter
 * is taken apart, until they are keys or the same node.
 */
#include <string.h>

#include "map_cursor.h"

/* Only one side has what stands at its head: reports it, and takes a child apart. */
static int side_only(brc_map_cursor *s, int is_b, brc_map_diff_fn differs, void *ctx,
                     brc_error *err)
{
    brc_span none = {NULL, 0};
    if (s->head.is_child)
        return brc_map_cursor_enter(s, err);
    brc_span key = {s->head.key, s->head.bits / 8};
    BRC_TRY(differs(ctx, key, is_b ? none : s->head.value, is_b ? s->head.value : none, err));
    return brc_map_cursor_step(s, err);
}

static int diff_same_key(brc_map_cursor *a, brc_map_cursor *b, brc_map_diff_fn differs, void *ctx,
                         brc_error *err)
{
    brc_span va = a->head.value, vb = b->head.value;
    if (va.len != vb.len || (va.len > 0 && memcmp(va.data, vb.data, va.len) != 0))
        BRC_TRY(differs(ctx, (brc_span){a->head.key, a->head.bits / 8}, va, vb, err));
    BRC_TRY(brc_map_cursor_step(a, err));
    return brc_map_cursor_step(b, err);
}

static int diff_step(brc_map_cursor *a, brc_map_cursor *b, brc_map_diff_fn differs, void *ctx,
                     brc_error *err)
{
    if (a->at_end || b->at_end)
        return side_only(a->at_end ? b : a, a->at_end, differs, ctx, err);
    const brc_item *x = &a->head, *y = &b->head;
    size_t common = brc_bits_common(x->key, x->bits, y->key, y->bits);
    if (common < x->bits && common < y->bits) /* apart: the first comes first */
        return brc_bit(x->key, common) ? side_only(b, 1, differs, ctx, err)
                                       : side_only(a, 0, differs, ctx, err);
    if (x->is_child && y->is_child && brc_oid_cmp(&x->id, &y->id) == 0) {
        BRC_TRY(brc_map_cursor_step(a, err));
        return brc_map_cursor_step(b, err);
    }
    if (!x->is_child && !y->is_child)
        return diff_same_key(a, b, differs, ctx, err);
    /* Nested: the shorter prefix holds the other; of equal ones, the higher node. */
    if (x->is_child && (!y->is_child || x->bits < y->bits ||
                        (x->bits == y->bits && x->level >= y->level)))
        return brc_map_cursor_enter(a, err);
    return brc_map_cursor_enter(b, err);
}

int brc_map_diff(brc_store *store, const brc_oid *root_a, const brc_oid *root_b,
                 brc_map_diff_fn differs, void *ctx, brc_error *err)
{
    brc_map_cursor a, b;
    if (brc_oid_cmp(root_a, root_b) == 0)
        return BRC_OK;
    memset(&b, 0, sizeof(b));
    int rc = brc_map_cursor_start(&a, store, root_a, err);
    if (rc == BRC_OK)
        rc = brc_map_cursor_start(&b, store, root_b, err);
    while (rc == BRC_OK && !(a.at_end && b.at_end)) {
        rc = diff_step(&a, &b, differs, ctx, err);
        if (rc == BRC_OK)
            rc = brc_store_check_interrupt(store, err);
    }
    brc_map_cursor_end(&a);
    brc_map_cursor_end(&b);
    return rc;
}
