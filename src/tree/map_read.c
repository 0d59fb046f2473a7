/* Looking things up in a map. */
#include <stdlib.h>
#include <string.h>

#include "../base/alloc.h"
#include "map_cursor.h"

int brc_map_get(brc_store *store, const brc_oid *root, const void *key, size_t key_len, int *found,
                brc_span *value, brc_error *err)
{
    brc_node_reader reader;
    brc_item item, child;
    brc_oid at = *root;
    int have_child = 0;
    *found = 0;
    if (brc_oid_is_zero(root))
        return BRC_OK;
    for (;;) {
        int rc, order = -1;
        BRC_TRY(brc_node_load(store, &at, have_child ? &child : NULL, &reader, err));
        while ((rc = brc_node_next(&reader, &item, err)) > 0) {
            order = brc_bits_order(key, key_len * 8, item.key, item.bits);
            if (order <= 0)
                break;
        }
        if (rc < 0)
            return rc;
        if (rc == 0 || order < 0)
            return BRC_OK;
        if (!item.is_child) {
            *found = key_len * 8 == item.bits;
            *value = item.value;
            return BRC_OK;
        }
        child = item;
        have_child = 1;
        at = item.id;
    }
}

/* A child that look-ups lead to, and which look-ups these are. */
typedef struct lookup_visit {
    brc_item child;
    size_t lo, hi;
} lookup_visit;

typedef struct lookup_many {
    brc_store *store;
    const brc_span *keys;
    brc_map_found_fn found;
    void *ctx;
} lookup_many;

static int lookup_node(const lookup_many *m, const brc_oid *id, const brc_item *as, size_t lo,
                       size_t hi, brc_error *err);

static int lookup_children(const lookup_many *m, brc_node_reader *reader, size_t lo, size_t hi,
                           lookup_visit *visits, unsigned *nvisits, brc_error *err)
{
    brc_item item;
    int rc;
    while (lo < hi && (rc = brc_node_next(reader, &item, err)) != 0) {
        if (rc < 0)
            return rc;
        int order = 1;
        while (lo < hi && (order = brc_bits_order(m->keys[lo].data, m->keys[lo].len * 8, item.key,
                                                  item.bits)) < 0)
            lo++;
        size_t start = lo;
        while (lo < hi && (order = brc_bits_order(m->keys[lo].data, m->keys[lo].len * 8, item.key,
                                                  item.bits)) == 0)
            lo++;
        if (start < lo)
            visits[(*nvisits)++] = (lookup_visit){item, start, lo};
    }
    return BRC_OK;
}

static int lookup_leaf(const lookup_many *m, brc_node_reader *reader, size_t lo, size_t hi,
                       brc_error *err)
{
    brc_item item;
    int rc = 0;
    while (lo < hi && (rc = brc_node_next(reader, &item, err)) > 0) {
        int order = 1;
        while (lo < hi && (order = brc_bits_order(m->keys[lo].data, m->keys[lo].len * 8, item.key,
                                                  item.bits)) < 0)
            lo++;
        if (lo < hi && order == 0 && m->keys[lo].len * 8 == item.bits) {
            BRC_TRY(m->found(m->ctx, lo, item.value, err));
            lo++;
        }
    }
    return rc < 0 ? rc : BRC_OK;
}

static int lookup_node(const lookup_many *m, const brc_oid *id, const brc_item *as, size_t lo,
                       size_t hi, brc_error *err)
{
    brc_node_reader reader;
    unsigned n = 0;
    void *visits = NULL;
    int rc;
    BRC_TRY(brc_node_load(m->store, id, as, &reader, err));
    if (reader.level == 0)
        return lookup_leaf(m, &reader, lo, hi, err);
    /* The node's bytes may leave the cache while its children are read. */
    BRC_TRY(brc_new_array(&visits, reader.count, sizeof(lookup_visit), err));
    rc = lookup_children(m, &reader, lo, hi, visits, &n, err);
    for (unsigned i = 0; i < n && rc == BRC_OK; i++) {
        const lookup_visit *v = (lookup_visit *)visits + i;
        rc = lookup_node(m, &v->child.id, &v->child, v->lo, v->hi, err);
    }
    free(visits);
    return rc;
}

int brc_map_get_many(brc_store *store, const brc_oid *root, const brc_span *keys, size_t n,
                     brc_map_found_fn found, void *ctx, brc_error *err)
{
    lookup_many m = {store, keys, found, ctx};
    if (n == 0 || brc_oid_is_zero(root))
        return BRC_OK;
    return lookup_node(&m, root, NULL, 0, n, err);
}

/* ---- everything ------------------------------------------------------------------ */

int brc_map_each(brc_store *store, const brc_oid *root, brc_map_each_fn each, void *ctx,
                 brc_error *err)
{
    brc_map_cursor c;
    int rc;
    BRC_GO(brc_map_cursor_start(&c, store, root, err));
    for (;;) {
        BRC_GO(brc_map_cursor_descend(&c, err));
        if (c.at_end)
            break;
        BRC_GO(each(ctx, (brc_span){ c.head.key, c.head.bits / 8 }, c.head.value, err));
        BRC_GO(brc_map_cursor_step(&c, err));
    }
done:
    brc_map_cursor_end(&c);
    return rc;
}

int brc_map_count(brc_store *store, const brc_oid *root, uint64_t *count, brc_error *err)
{
    brc_node_reader reader;
    brc_item item;
    int rc;
    *count = 0;
    if (brc_oid_is_zero(root))
        return BRC_OK;
    BRC_TRY(brc_node_load(store, root, NULL, &reader, err));
    while ((rc = brc_node_next(&reader, &item, err)) > 0)
        if (!brc_add_u64(*count, item.is_child ? item.keys : 1, count))
            return brc_fail(err, BRC_ECORRUPT,
                            "a map node is damaged: it has more keys than can be counted");
    return rc;
}

int brc_map_check_node(brc_span node, size_t id_len, brc_map_child_fn child, brc_map_each_fn item,
                       void *ctx, brc_error *err)
{
    brc_node_reader reader;
    brc_item i;
    int rc;
    BRC_TRY(brc_node_open(&reader, node, id_len, err));
    while ((rc = brc_node_next(&reader, &i, err)) > 0) {
        if (i.is_child)
            rc = child(ctx, &i.id, err);
        else
            rc = item(ctx, (brc_span){i.key, i.bits / 8}, i.value, err);
        if (rc < 0)
            return rc;
    }
    return rc;
}
