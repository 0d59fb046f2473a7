/*
 * Applying a batch of edits to a map.
 *
 * First the items that the edits touch are gathered: nodes on their way are taken
 * apart, all others stay closed. Then the canonical rule of map.h is applied to this
 * list from the bottom up; a closed node is opened again only if the rule joins its
 * items with others. So the work is one path for each edit, and less if edits share
 * paths.
 */
#include <stdlib.h>
#include <string.h>

#include "../base/alloc.h"
#include "../base/arena.h"
#include "node.h"

typedef struct map_editor {
    brc_store *store;
    size_t id_len;
    brc_arena arena;
    void *items; /* brc_item *[]: the gathered list, in order */
    size_t nitems, items_cap;
    brc_buf node; /* being written */
} map_editor;

/* The open group of a trie vertex, or a closed node that nobody had to open. */
typedef struct open_group {
    unsigned level, count;
    brc_item *first, *last; /* NULL until `closed` is opened */
    brc_item *closed;
} open_group;

/* ---- gathering ------------------------------------------------------------------ */

/* Keys of a damaged map, or of damaged draft rows, may be nested or out of order. */
static int keys_are_nested(brc_error *err)
{
    return brc_fail(err, BRC_ECORRUPT, "a map is damaged: a key is a prefix of another");
}

/* The gathered items are in order, and no key is a prefix of another: the trie relies on
 * it. */
static int gather_push(map_editor *e, brc_item *item, brc_error *err)
{
    const brc_item *last = e->nitems > 0 ? ((brc_item **)e->items)[e->nitems - 1] : NULL;
    if (last != NULL) {
        size_t common = brc_bits_common(last->key, last->bits, item->key, item->bits);
        if (common == last->bits || common == item->bits || !brc_bit(item->key, common))
            return keys_are_nested(err);
    }
    BRC_TRY(brc_grow_array(&e->items, &e->items_cap, e->nitems + 1, sizeof(brc_item *), err));
    ((brc_item **)e->items)[e->nitems++] = item;
    return BRC_OK;
}

static int item_copy(map_editor *e, const brc_item *from, brc_item **out, brc_error *err)
{
    uint8_t *bytes;
    brc_item *item = brc_arena_take(&e->arena, sizeof(*item));
    if (item == NULL)
        return brc_nomem(err);
    *item = *from;
    item->next = NULL;
    BRC_TRY(brc_arena_copy(&e->arena, from->key, brc_bits_bytes(from->bits), &bytes, err));
    item->key = bytes;
    if (!from->is_child) {
        BRC_TRY(brc_arena_copy(&e->arena, from->value.data, from->value.len, &bytes, err));
        item->value.data = bytes;
    }
    *out = item;
    return BRC_OK;
}

/* Reads a node as a list, copied into the arena. A child's items begin with its
 * prefix; otherwise the gathered list would not be in order. */
static int editor_load(map_editor *e, const brc_oid *id, const brc_item *as, brc_item **first,
                       brc_item **last, brc_error *err)
{
    brc_node_reader reader;
    brc_item item;
    int rc;
    *first = *last = NULL;
    BRC_TRY(brc_node_load(e->store, id, as, &reader, err));
    while ((rc = brc_node_next(&reader, &item, err)) > 0) {
        brc_item *copy = NULL;
        BRC_TRY(item_copy(e, &item, &copy, err));
        if (*last != NULL)
            (*last)->next = copy;
        else
            *first = copy;
        *last = copy;
    }
    if (rc == BRC_OK && as != NULL &&
        (brc_bits_order((*first)->key, (*first)->bits, as->key, as->bits) != 0 ||
         brc_bits_order((*last)->key, (*last)->bits, as->key, as->bits) != 0))
        return brc_fail(err, BRC_ECORRUPT, "a map is damaged: a node is not where its keys belong");
    return rc;
}

/* New keys; removing a key that is not there does nothing. */
static int gather_new(map_editor *e, const brc_edit *edits, size_t n, brc_error *err)
{
    for (size_t i = 0; i < n; i++) {
        if (edits[i].value == NULL)
            continue;
        brc_item *item = brc_arena_take(&e->arena, sizeof(*item));
        if (item == NULL)
            return brc_nomem(err);
        memset(item, 0, sizeof(*item));
        item->key = edits[i].key;
        item->bits = edits[i].key_len * 8;
        item->value = (brc_span){edits[i].value, edits[i].value_len};
        BRC_TRY(gather_push(e, item, err));
    }
    return BRC_OK;
}

/* How many of the edits, from the first on, come before the item (order -1), or belong
 * to it (order 0). */
static size_t edits_while(const brc_edit *edits, size_t n, const brc_item *item, int order)
{
    size_t i = 0;
    while (i < n &&
           brc_bits_order(edits[i].key, edits[i].key_len * 8, item->key, item->bits) == order)
        i++;
    return i;
}

static int gather_node(map_editor *e, const brc_oid *id, const brc_item *as, const brc_edit *edits,
                       size_t n, brc_error *err)
{
    brc_item *item, *next, *last;
    BRC_TRY(editor_load(e, id, as, &item, &last, err));
    for (; item != NULL; item = next) {
        next = item->next;
        size_t before = edits_while(edits, n, item, -1);
        BRC_TRY(gather_new(e, edits, before, err));
        edits += before;
        n -= before;
        size_t here = edits_while(edits, n, item, 0);
        if (here == 0)
            BRC_TRY(gather_push(e, item, err));
        else if (item->is_child)
            BRC_TRY(gather_node(e, &item->id, item, edits, here, err));
        else if (here > 1 || edits->key_len * 8 != item->bits)
            return keys_are_nested(err);
        else
            BRC_TRY(gather_new(e, edits, here, err));
        edits += here;
        n -= here;
    }
    return gather_new(e, edits, n, err);
}

/* ---- the canonical rule ------------------------------------------------------------ */

static int group_open(map_editor *e, open_group *g, brc_error *err)
{
    if (g->first != NULL)
        return BRC_OK;
    return editor_load(e, &g->closed->id, g->closed, &g->first, &g->last, err);
}

static int group_close(map_editor *e, open_group *g, brc_item **out, brc_error *err)
{
    if (g->closed != NULL) {
        g->closed->next = NULL;
        *out = g->closed;
        return BRC_OK;
    }
    brc_item *node = brc_arena_take(&e->arena, sizeof(*node));
    if (node == NULL)
        return brc_nomem(err);
    memset(node, 0, sizeof(*node));
    node->is_child = 1;
    node->level = g->level;
    node->weight = g->count;
    node->bits = brc_bits_common(g->first->key, g->first->bits, g->last->key, g->last->bits);
    for (const brc_item *i = g->first; i != NULL; i = i->next)
        node->keys += i->is_child ? i->keys : 1;
    uint8_t *prefix;
    BRC_TRY(brc_arena_copy(&e->arena, g->first->key, brc_bits_bytes(node->bits), &prefix, err));
    if (node->bits % 8 != 0)
        prefix[node->bits / 8] &= (uint8_t)(0xff << (8 - node->bits % 8));
    node->key = prefix;
    e->node.len = 0;
    BRC_TRY(brc_node_write(&e->node, g->level, g->count, g->first, e->id_len, err));
    BRC_TRY(brc_store_put(e->store, BRC_KIND_NODE, e->node.data, e->node.len, &node->id, err));
    *out = node;
    return BRC_OK;
}

/* Turns a group into one of a higher level, which has the node alone. */
static int group_lift(map_editor *e, open_group *g, unsigned level, brc_error *err)
{
    brc_item *node;
    BRC_TRY(group_close(e, g, &node, err));
    *g = (open_group){level, 1, node, node, NULL};
    return BRC_OK;
}

static int group_join(map_editor *e, open_group *a, open_group *b, open_group *out, brc_error *err)
{
    unsigned level = a->level > b->level ? a->level : b->level;
    unsigned na = a->level == level ? a->count : 1, nb = b->level == level ? b->count : 1;
    if (na + nb > BRC_NODE_MAX) {
        level++;
        if (level > BRC_NODE_MAX_LEVEL)
            return brc_fail(err, BRC_ELIMIT, "a map would be more than %d levels high",
                            BRC_NODE_MAX_LEVEL);
    }
    BRC_TRY(a->level < level ? group_lift(e, a, level, err) : group_open(e, a, err));
    BRC_TRY(b->level < level ? group_lift(e, b, level, err) : group_open(e, b, err));
    a->last->next = b->first;
    *out = (open_group){level, a->count + b->count, a->first, b->last, NULL};
    return BRC_OK;
}

/* The open group of the trie over items[lo..hi). */
static int group_build(map_editor *e, size_t lo, size_t hi, open_group *out, brc_error *err)
{
    brc_item **items = e->items;
    if (hi - lo == 1) {
        brc_item *item = items[lo];
        item->next = NULL;
        if (item->is_child)
            *out = (open_group){item->level, item->weight, NULL, NULL, item};
        else
            *out = (open_group){0, 1, item, item, NULL};
        return BRC_OK;
    }
    size_t bit = brc_bits_common(items[lo]->key, items[lo]->bits, items[hi - 1]->key,
                                 items[hi - 1]->bits);
    if (bit >= items[lo]->bits || bit >= items[hi - 1]->bits)
        return keys_are_nested(err);
    size_t left = lo, right = hi;
    while (left + 1 < right) { /* items[left] has a 0 there, items[right] a 1 */
        size_t middle = left + (right - left) / 2;
        if (brc_bit(items[middle]->key, bit))
            right = middle;
        else
            left = middle;
    }
    open_group a, b;
    BRC_TRY(group_build(e, lo, right, &a, err));
    BRC_TRY(group_build(e, right, hi, &b, err));
    return group_join(e, &a, &b, out, err);
}

/* Edits come from the file too: rows of drafts. With unsorted ones group_build() would
 * never end. */
static int check_edits(const brc_edit *edits, size_t n, brc_error *err)
{
    for (size_t i = 0; i < n; i++) {
        if (edits[i].key_len > BRC_KEY_MAX)
            return brc_fail(err, BRC_ELIMIT, "a key of %zu bytes is longer than %d",
                            edits[i].key_len, BRC_KEY_MAX);
        if (i > 0 && brc_bits_order(edits[i - 1].key, 8 * edits[i - 1].key_len, edits[i].key,
                                    8 * edits[i].key_len) >= 0)
            return brc_fail(err, BRC_ECORRUPT, "a map is damaged: its keys are not in order");
    }
    return BRC_OK;
}

int brc_map_edit(brc_store *store, const brc_oid *root, const brc_edit *edits, size_t n,
                 brc_oid *out, brc_error *err)
{
    map_editor e = {.store = store, .id_len = brc_store_id_len(store)};
    brc_oid from = *root;
    int rc;
    memset(out, 0, sizeof(*out));
    BRC_TRY(check_edits(edits, n, err));
    if (brc_oid_is_zero(&from))
        BRC_GO(gather_new(&e, edits, n, err));
    else
        BRC_GO(gather_node(&e, &from, NULL, edits, n, err));
    if (e.nitems > 0) {
        open_group all;
        brc_item *top;
        BRC_GO(group_build(&e, 0, e.nitems, &all, err));
        BRC_GO(group_close(&e, &all, &top, err));
        *out = top->id;
    }
    rc = BRC_OK;
done:
    brc_arena_dispose(&e.arena);
    brc_buf_dispose(&e.node);
    free(e.items);
    return rc;
}
