#include "node_diff.h"

#include <stdlib.h>
#include <string.h>

#include "../base/alloc.h"
#include "doc_diff.h"

void brc_node_change_dispose(brc_node_change *c)
{
    for (size_t i = 0; i < c->nmetadata; i++)
        free(c->metadata[i]);
    free(c->metadata);
    free(c->path);
    free(c->from);
}

/* ---- chunks -------------------------------- */

static int count_chunk_change(void *ctx, brc_span key, brc_span a, brc_span b, brc_error *err)
{
    brc_node_change *c = ctx;
    (void)key;
    (void)err;
    if (a.data == NULL)
        c->chunks_added++;
    else if (b.data == NULL)
        c->chunks_removed++;
    else
        c->chunks_changed++;
    return BRC_OK;
}

static int chunks_diff(brc_node_change *c, brc_store *store, brc_error *err)
{
    if (c->a.kind == BRC_ARRAY && c->b.kind == BRC_ARRAY && !c->rechunked)
        return brc_map_diff(store, &c->a.map, &c->b.map, count_chunk_change, c, err);
    if (c->a.kind == BRC_ARRAY)
        BRC_TRY(brc_map_count(store, &c->a.map, &c->chunks_removed, err));
    if (c->b.kind == BRC_ARRAY)
        BRC_TRY(brc_map_count(store, &c->b.map, &c->chunks_added, err));
    return BRC_OK;
}

/* ---- metadata -------------------------------- */

static int docs_diff(brc_store *store, const brc_entry *a, const brc_entry *b, brc_pointers *out,
                     brc_error *err)
{
    brc_json *x = NULL, *y = NULL;
    int rc = brc_entry_doc(store, a, &x, err);
    if (rc == BRC_OK)
        rc = brc_entry_doc(store, b, &y, err);
    if (rc == BRC_OK)
        rc = brc_doc_diff(out, x, y, err);
    brc_json_free(x);
    brc_json_free(y);
    return rc;
}

static int pointers_hold(const brc_pointers *pointers, const char *pointer)
{
    for (size_t i = 0; i < pointers->n; i++)
        if (strcmp(pointers->items[i], pointer) == 0)
            return 1;
    return 0;
}

static int pointers_of(brc_pointers *out, const brc_node_change *c, brc_store *store,
                       brc_error *err)
{
    if (brc_oid_cmp(&c->a.doc, &c->b.doc) != 0)
        BRC_TRY(docs_diff(store, &c->a, &c->b, out, err));
    if (brc_oid_cmp(&c->a.storage, &c->b.storage) == 0)
        return BRC_OK;
    void *p = out->items;
    BRC_TRY(brc_grow_array(&p, &out->cap, out->n + 1, sizeof(char *), err));
    out->items = p;
    BRC_TRY(brc_dup(&out->items[out->n], "/storage", err));
    out->n++;
    return BRC_OK;
}

static int metadata_diff(brc_node_change *c, brc_store *store, brc_error *err)
{
    brc_pointers pointers = {0};
    int rc = pointers_of(&pointers, c, store, err);
    if (rc < 0) {
        brc_pointers_dispose(&pointers);
        return rc;
    }
    c->rechunked =
        pointers_hold(&pointers, "/chunk_grid") || pointers_hold(&pointers, "/data_type");
    c->storage_only =
        pointers.n > 0 && pointers.n == (size_t)pointers_hold(&pointers, "/codecs") +
                                            (size_t)pointers_hold(&pointers, "/storage");
    c->metadata = pointers.items;
    c->nmetadata = pointers.n;
    return BRC_OK;
}

/* ---- both -------------------------------- */

int brc_node_diff(brc_node_change *c, brc_store *store, brc_error *err)
{
    if (c->a.kind != 0 && c->b.kind != 0)
        BRC_TRY(metadata_diff(c, store, err));
    BRC_TRY(chunks_diff(c, store, err));
    if (c->chunks_added + c->chunks_removed + c->chunks_changed > 0)
        c->storage_only = 0;
    return BRC_OK;
}

int brc_node_differs(const brc_node_change *c)
{
    return c->nmetadata > 0 || c->chunks_added + c->chunks_removed + c->chunks_changed > 0;
}
