#include "merge_ids.h"

#include <stdlib.h>
#include <string.h>

#include "../base/alloc.h"

/* A chunk that theirs changed since the base. */
typedef struct changed_id {
    uint8_t *key;
    size_t key_len;
    brc_oid base, ours, theirs; /* zero: absent */
} changed_id;

typedef struct changed_ids {
    brc_store *store;
    void *items; /* changed_id[] */
    size_t n, cap;
    brc_arena keys;
} changed_ids;

static int take_id(const changed_ids *c, brc_span value, brc_oid *out, brc_error *err)
{
    memset(out, 0, sizeof(*out));
    return value.data != NULL ? brc_chunk_id_of(value, brc_store_id_len(c->store), out, err)
                              : BRC_OK;
}

static int id_changed(void *ctx, brc_span key, brc_span a, brc_span b, brc_error *err)
{
    changed_ids *c = ctx;
    BRC_TRY(brc_grow_array(&c->items, &c->cap, c->n + 1, sizeof(changed_id), err));
    changed_id *item = &((changed_id *)c->items)[c->n];
    memset(item, 0, sizeof(*item));
    BRC_TRY(brc_arena_copy(&c->keys, key.data, key.len, &item->key, err));
    item->key_len = key.len;
    BRC_TRY(take_id(c, a, &item->base, err));
    BRC_TRY(take_id(c, b, &item->theirs, err));
    c->n++;
    return BRC_OK;
}

static int id_of_ours(void *ctx, size_t i, brc_span value, brc_error *err)
{
    changed_ids *c = ctx;
    return take_id(c, value, &((changed_id *)c->items)[i].ours, err);
}

static int ids_of_ours(changed_ids *c, const brc_oid *map, brc_error *err)
{
    void *p;
    BRC_TRY(brc_new_array(&p, c->n + 1, sizeof(brc_span), err));
    brc_span *keys = p;
    for (size_t i = 0; i < c->n; i++) {
        const changed_id *item = &((changed_id *)c->items)[i];
        keys[i] = (brc_span){item->key, item->key_len};
    }
    int rc = brc_map_get_many(c->store, map, keys, c->n, id_of_ours, c, err);
    free(p);
    return rc;
}

/* An id that no chunk has, for what nobody knows. */
static int id_unknown(brc_merge_how *how, const changed_id *item, brc_oid *out, brc_error *err)
{
    void *ignored;
    const brc_oid both[] = {item->ours, item->theirs};
    *out = brc_hash_object(brc_store_hash(how->repo->store), BRC_KIND_COMMIT, both, sizeof(both));
    return brc_id_table_add(&how->chunks, out, &ignored, err);
}

static int id_merge(brc_member_merge *m, const changed_id *item, brc_merged_node *out,
                    brc_error *err)
{
    const brc_span key = {item->key, item->key_len};
    const size_t id_len = brc_store_id_len(m->how->repo->store);
    const int has_base = m->place->base.kind != 0;
    brc_oid id = item->theirs;
    if (brc_oid_cmp(&item->ours, &item->theirs) == 0)
        return BRC_OK;
    if (has_base && brc_oid_cmp(&item->ours, &item->base) == 0)
        return brc_merged_chunk(out, key, &id, id_len, err);
    BRC_TRY(id_unknown(m->how, item, &id, err));
    return brc_merged_chunk(out, key, &id, id_len, err);
}

int brc_merge_ids(brc_member_merge *m, brc_merged_node *out, brc_error *err)
{
    brc_store *store = m->how->repo->store;
    const brc_merge_place *p = m->place;
    changed_ids c = {.store = store, .keys = BRC_ARENA_INIT};
    int rc;
    out->map = p->ours.map;
    BRC_GO(brc_store_begin_read(store, err));
    rc = brc_map_diff(store, &p->base.map, &p->theirs.map, id_changed, &c, err);
    if (rc == BRC_OK)
        rc = ids_of_ours(&c, &p->ours.map, err);
    brc_store_end_read(store);
    for (size_t i = 0; i < c.n && rc == BRC_OK; i++)
        rc = id_merge(m, &((changed_id *)c.items)[i], out, err);
done:
    free(c.items);
    brc_arena_dispose(&c.keys);
    return rc;
}
