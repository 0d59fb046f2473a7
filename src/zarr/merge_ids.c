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

typedef struct id_merge {
    brc_member_merge *m;
    const brc_node_docs *docs;
    brc_merged_node *out;
    const brc_base_form *form;
    int has_form, has_base;
} id_merge;

static int form_of_merge(id_merge *w, brc_error *err)
{
    const brc_merge_how *how = w->m->how;
    const brc_merge_place *p = w->m->place;
    brc_entry side[BRC_SIDES] = {p->base, p->ours, p->theirs};
    if (!w->has_base)
        side[BRC_SIDE_BASE].kind = 0;
    w->has_form = 1;
    BRC_TRY(brc_store_begin_read(how->repo->store, err));
    int rc = brc_base_form_new(&w->form, &w->m->how->made, how->repo, p->path, side,
                               w->docs->doc[BRC_FORM_MERGED], err);
    brc_store_end_read(how->repo->store);
    return rc;
}

static int merge_changed_id(id_merge *w, const changed_id *item, brc_error *err)
{
    const brc_span key = {item->key, item->key_len};
    brc_store *store = w->m->how->repo->store;
    const brc_oid of[BRC_SIDES] = {item->base, item->ours, item->theirs};
    brc_oid id = item->theirs;
    if (brc_oid_cmp(&item->ours, &item->theirs) == 0)
        return BRC_OK;
    if (!w->has_base || brc_oid_cmp(&item->ours, &item->base) != 0) {
        if (!w->has_form)
            BRC_TRY(form_of_merge(w, err));
        BRC_TRY(brc_base_chunk_new(&w->m->how->made, w->form, store, key, of, &id, err));
    }
    return brc_merged_chunk(w->out, key, &id, brc_store_id_len(store), err);
}

int brc_merge_ids(brc_member_merge *m, const brc_node_docs *docs, brc_merged_node *out,
                  brc_error *err)
{
    brc_store *store = m->how->repo->store;
    const brc_merge_place *p = m->place;
    changed_ids c = {.store = store, .keys = BRC_ARENA_INIT};
    id_merge w = {.m = m, .docs = docs, .out = out,
                  .has_base = p->base.kind != 0 && !brc_json_is_unknown(docs->doc[BRC_FORM_BASE])};
    int rc;
    out->map = p->ours.map;
    BRC_GO(brc_store_begin_read(store, err));
    rc = brc_map_diff(store, &p->base.map, &p->theirs.map, id_changed, &c, err);
    if (rc == BRC_OK)
        rc = ids_of_ours(&c, &p->ours.map, err);
    brc_store_end_read(store);
    for (size_t i = 0; i < c.n && rc == BRC_OK; i++)
        rc = merge_changed_id(&w, &((changed_id *)c.items)[i], err);
done:
    free(c.items);
    brc_arena_dispose(&c.keys);
    return rc;
}
