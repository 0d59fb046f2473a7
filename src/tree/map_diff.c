/*
 * What differs between two maps. Both are walked at once; where both stand before
 * the same node, it is skipped whole, so the work grows with the difference.
 * Prefixes are nested or apart: of two heads, the one whose prefix is the shorter
 * is taken apart, until they are keys or the same node.
 */
#include <stdlib.h>
#include <string.h>

#include "../base/alloc.h"
#include "node.h"

/* One node's items, read in order. */
typedef struct diff_frame {
    uint8_t *bytes;
    brc_node_reader reader;
} diff_frame;

/* A place in a map: the frames from the root down, and the item it stands at. */
typedef struct diff_side {
    brc_store *store;
    void *frames; /* diff_frame *[] */
    size_t depth, cap;
    brc_item head;
    int at_end;
} diff_side;

static void side_pop(diff_side *s)
{
    diff_frame *f = ((diff_frame **)s->frames)[--s->depth];
    free(f->bytes);
    free(f);
}

/* Keys begin with the prefix that the node above, whose reader still stands at it, tells:
 * so no node can be in two places, and the walk ends. */
static int side_check(const diff_side *s, brc_error *err)
{
    if (s->depth < 2)
        return BRC_OK;
    const brc_node_reader *above = &((diff_frame **)s->frames)[s->depth - 2]->reader;
    if (brc_bits_order(s->head.key, s->head.bits, above->key, above->bits) == 0)
        return BRC_OK;
    return brc_fail(err, BRC_ECORRUPT,
                    "a map node is damaged: it is not where its keys belong");
}

static int side_step(diff_side *s, brc_error *err)
{
    while (s->depth > 0) {
        diff_frame *f = ((diff_frame **)s->frames)[s->depth - 1];
        int rc = brc_node_next(&f->reader, &s->head, err);
        if (rc > 0)
            return side_check(s, err);
        if (rc < 0)
            return rc;
        side_pop(s);
    }
    s->at_end = 1;
    return BRC_OK;
}

static int side_push(diff_side *s, const brc_oid *id, const brc_item *as, brc_error *err)
{
    brc_node_reader check;
    brc_span bytes;
    void *p;
    BRC_TRY(brc_grow_array(&s->frames, &s->cap, s->depth + 1, sizeof(diff_frame *), err));
    BRC_TRY(brc_node_load(s->store, id, as, &check, err));
    BRC_TRY(brc_store_get(s->store, BRC_KIND_NODE, id, &bytes, err));
    BRC_TRY(brc_new(&p, sizeof(diff_frame), err));
    diff_frame *f = p;
    int rc = brc_new(&p, bytes.len, err);
    if (rc < 0) {
        free(f);
        return rc;
    }
    f->bytes = p;
    memcpy(f->bytes, bytes.data, bytes.len);
    ((diff_frame **)s->frames)[s->depth++] = f;
    BRC_TRY(brc_node_open(&f->reader, (brc_span){f->bytes, bytes.len}, brc_store_id_len(s->store),
                          err));
    return BRC_OK;
}

/* Takes the child at the head apart. */
static int side_enter(diff_side *s, brc_error *err)
{
    brc_item child = s->head;
    BRC_TRY(side_push(s, &child.id, &child, err));
    return side_step(s, err);
}

static int side_start(diff_side *s, brc_store *store, const brc_oid *root, brc_error *err)
{
    memset(s, 0, sizeof(*s));
    s->store = store;
    if (!brc_oid_is_zero(root))
        BRC_TRY(side_push(s, root, NULL, err));
    return side_step(s, err);
}

static void side_end(diff_side *s)
{
    while (s->depth > 0)
        side_pop(s);
    free(s->frames);
}

/* Only one side has what stands at its head: reports it, and takes a child apart. */
static int side_only(diff_side *s, int is_b, brc_map_diff_fn differs, void *ctx, brc_error *err)
{
    brc_span none = {NULL, 0};
    if (s->head.is_child)
        return side_enter(s, err);
    brc_span key = {s->head.key, s->head.bits / 8};
    BRC_TRY(differs(ctx, key, is_b ? none : s->head.value, is_b ? s->head.value : none, err));
    return side_step(s, err);
}

static int diff_same_key(diff_side *a, diff_side *b, brc_map_diff_fn differs, void *ctx,
                         brc_error *err)
{
    brc_span va = a->head.value, vb = b->head.value;
    if (va.len != vb.len || (va.len > 0 && memcmp(va.data, vb.data, va.len) != 0))
        BRC_TRY(differs(ctx, (brc_span){a->head.key, a->head.bits / 8}, va, vb, err));
    BRC_TRY(side_step(a, err));
    return side_step(b, err);
}

static int diff_step(diff_side *a, diff_side *b, brc_map_diff_fn differs, void *ctx, brc_error *err)
{
    if (a->at_end || b->at_end)
        return side_only(a->at_end ? b : a, a->at_end, differs, ctx, err);
    const brc_item *x = &a->head, *y = &b->head;
    size_t common = brc_bits_common(x->key, x->bits, y->key, y->bits);
    if (common < x->bits && common < y->bits) /* apart: the first comes first */
        return brc_bit(x->key, common) ? side_only(b, 1, differs, ctx, err)
                                       : side_only(a, 0, differs, ctx, err);
    if (x->is_child && y->is_child && brc_oid_cmp(&x->id, &y->id) == 0) {
        BRC_TRY(side_step(a, err));
        return side_step(b, err);
    }
    if (!x->is_child && !y->is_child)
        return diff_same_key(a, b, differs, ctx, err);
    /* Nested: the shorter prefix holds the other; of equal ones, the higher node. */
    if (x->is_child && (!y->is_child || x->bits < y->bits ||
                        (x->bits == y->bits && x->level >= y->level)))
        return side_enter(a, err);
    return side_enter(b, err);
}

int brc_map_diff(brc_store *store, const brc_oid *root_a, const brc_oid *root_b,
                 brc_map_diff_fn differs, void *ctx, brc_error *err)
{
    diff_side a, b;
    if (brc_oid_cmp(root_a, root_b) == 0)
        return BRC_OK;
    memset(&b, 0, sizeof(b));
    int rc = side_start(&a, store, root_a, err);
    if (rc == BRC_OK)
        rc = side_start(&b, store, root_b, err);
    while (rc == BRC_OK && !(a.at_end && b.at_end)) {
        rc = diff_step(&a, &b, differs, ctx, err);
        if (rc == BRC_OK)
            rc = brc_store_check_interrupt(store, err);
    }
    side_end(&a);
    side_end(&b);
    return rc;
}
