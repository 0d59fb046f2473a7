/*
 * What differs between two maps. Both are walked at once; a node that both have at the
 * same place is skipped whole, so the work grows with the difference. Prefixes are
 * nested or disjoint: of two heads, the one with the shorter prefix is taken apart,
 * until they are keys or the same node.
 */
#include <string.h>

#include "map_cursor.h"

typedef struct map_pair {
    brc_map_cursor a, b;
    int all; /* what both have is reported too */
    const brc_span *among; /* NULL: all keys */
    size_t namong, from_a, from_b, from; /* where each side is in them, and what was reported */
    brc_map_diff_fn each;
    void *ctx;
} map_pair;

/* Whether a wanted key begins with the prefix. Prefixes come in order, so *from, the first key
 * that is not before one, only moves on: by 1, 2, 4 ..., and back by halves. */
static int is_wanted(const map_pair *pair, size_t *from, const uint8_t *prefix, size_t bits)
{
    const brc_span *keys = pair->among;
    size_t step = 1, lo = *from, hi = *from;
    while (hi < pair->namong && brc_bits_order(keys[hi].data, keys[hi].len * 8, prefix, bits) < 0) {
        lo = hi + 1;
        hi = step < pair->namong - hi ? hi + step : pair->namong;
        step *= 2;
    }
    while (lo < hi) {
        const size_t mid = lo + (hi - lo) / 2;
        if (brc_bits_order(keys[mid].data, keys[mid].len * 8, prefix, bits) < 0)
            lo = mid + 1;
        else
            hi = mid;
    }
    *from = lo;
    return lo < pair->namong && brc_bits_order(keys[lo].data, keys[lo].len * 8, prefix, bits) == 0;
}

/* Enters the child at the head; past it, if it leads to no wanted key. */
static int enter(map_pair *pair, brc_map_cursor *s, brc_error *err)
{
    size_t *from = s == &pair->a ? &pair->from_a : &pair->from_b;
    if (pair->among != NULL && !is_wanted(pair, from, s->head.key, s->head.bits))
        return brc_map_cursor_step(s, err);
    return brc_map_cursor_enter(s, err);
}

/* Only one side has its head: reports it, and takes a child apart. */
static int side_only(map_pair *pair, brc_map_cursor *s, brc_error *err)
{
    brc_span none = {NULL, 0};
    const int is_b = s == &pair->b;
    if (s->head.is_child)
        return enter(pair, s, err);
    brc_span key = {s->head.key, s->head.bits / 8};
    BRC_TRY(pair->each(pair->ctx, key, is_b ? none : s->head.value, is_b ? s->head.value : none,
                       err));
    return brc_map_cursor_step(s, err);
}

static int step_both(map_pair *pair, brc_error *err)
{
    BRC_TRY(brc_map_cursor_step(&pair->a, err));
    return brc_map_cursor_step(&pair->b, err);
}

static int pair_same_key(map_pair *pair, brc_error *err)
{
    const brc_item *x = &pair->a.head;
    brc_span va = x->value, vb = pair->b.head.value;
    if (pair->all || va.len != vb.len || (va.len > 0 && memcmp(va.data, vb.data, va.len) != 0))
        BRC_TRY(pair->each(pair->ctx, (brc_span){x->key, x->bits / 8}, va, vb, err));
    return step_both(pair, err);
}

static int pair_step(map_pair *pair, brc_error *err)
{
    brc_map_cursor *a = &pair->a, *b = &pair->b;
    if (a->at_end || b->at_end)
        return side_only(pair, a->at_end ? b : a, err);
    const brc_item *x = &a->head, *y = &b->head;
    size_t common = brc_bits_common(x->key, x->bits, y->key, y->bits);
    if (common < x->bits && common < y->bits) /* disjoint: in their order */
        return side_only(pair, brc_bit(x->key, common) ? b : a, err);
    if (!pair->all && x->is_child && y->is_child && brc_oid_cmp(&x->id, &y->id) == 0)
        return step_both(pair, err);
    if (!x->is_child && !y->is_child)
        return pair_same_key(pair, err);
    /* Nested: the shorter prefix contains the other; if they are equal, the higher node does. */
    if (x->is_child && (!y->is_child || x->bits < y->bits ||
                        (x->bits == y->bits && x->level >= y->level)))
        return enter(pair, a, err);
    return enter(pair, b, err);
}

static int walk_both(map_pair *pair, brc_store *store, const brc_oid *a, const brc_oid *b,
                     brc_error *err)
{
    int rc = brc_map_cursor_start(&pair->a, store, a, err);
    if (rc == BRC_OK)
        rc = brc_map_cursor_start(&pair->b, store, b, err);
    while (rc == BRC_OK && !(pair->a.at_end && pair->b.at_end)) {
        rc = pair_step(pair, err);
        brc_store_breathe(store);
        if (rc == BRC_OK)
            rc = brc_store_check_interrupt(store, err);
    }
    brc_map_cursor_end(&pair->a);
    brc_map_cursor_end(&pair->b);
    return rc;
}

int brc_map_diff(brc_store *store, const brc_oid *a, const brc_oid *b, brc_map_diff_fn differs,
                 void *ctx, brc_error *err)
{
    map_pair pair = {.each = differs, .ctx = ctx};
    return brc_oid_cmp(a, b) == 0 ? BRC_OK : walk_both(&pair, store, a, b, err);
}

int brc_map_both(brc_store *store, const brc_oid *a, const brc_oid *b, brc_map_diff_fn each,
                 void *ctx, brc_error *err)
{
    map_pair pair = {.all = 1, .each = each, .ctx = ctx};
    return walk_both(&pair, store, a, b, err);
}

typedef struct among {
    map_pair pair;
    brc_map_among_fn differs;
    void *ctx;
} among;

static int among_differs(void *ctx, brc_span key, brc_span a, brc_span b, brc_error *err)
{
    among *w = ctx;
    map_pair *pair = &w->pair;
    (void)a;
    (void)b;
    /* of one length: the key may only begin a wanted one */
    return is_wanted(pair, &pair->from, key.data, key.len * 8) &&
                   pair->among[pair->from].len == key.len
               ? w->differs(w->ctx, pair->from, err) : BRC_OK;
}

int brc_map_diff_among(brc_store *store, const brc_oid *a, const brc_oid *b, const brc_span *keys,
                       size_t n, brc_map_among_fn differs, void *ctx, brc_error *err)
{
    among w = {{.among = keys, .namong = n, .each = among_differs, .ctx = &w}, differs, ctx};
    return n == 0 || brc_oid_cmp(a, b) == 0 ? BRC_OK : walk_both(&w.pair, store, a, b, err);
}
