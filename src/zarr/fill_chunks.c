#include "fill_chunks.h"

#include <stdlib.h>
#include <string.h>

#include "../base/alloc.h"
#include "../nd/shape.h"
#include "meta.h"
#include "span_table.h"

/* The canonical bytes of a chunk in which every element is the fill value. */
static int fill_chunk(const brc_meta *m, brc_buf *out, brc_error *err)
{
    const uint64_t elements = brc_shape_count(m->ndim, m->grid.chunk);
    const size_t item = m->fill.len;
    void *table;
    uint64_t bytes;
    if (!brc_meta_is_variable(m)) {
        if (!brc_mul_u64(elements, item, &bytes) || bytes > BRC_MAX_CHUNK_BYTES)
            return brc_fail(err, BRC_ELIMIT, "a chunk has more than 2^31-1 bytes");
        BRC_TRY(brc_buf_reserve(out, (size_t)bytes + 1, err));
        for (; out->len < bytes; out->len += item)
            memcpy(out->data + out->len, m->fill.data, item);
        return BRC_OK;
    }
    BRC_TRY(brc_new_array(&table, (size_t)elements, sizeof(brc_span), err));
    for (uint64_t i = 0; i < elements; i++)
        ((brc_span *)table)[i] = (brc_span){m->fill.data, m->fill.len};
    int rc = brc_elements_pack(out, table, elements, err);
    free(table);
    return rc;
}

/* Its id; zero where chunks differ in shape, or cannot be decoded. */
static int fill_id(const brc_entry *entry, breccia *repo, brc_oid *id, brc_error *err)
{
    brc_json *doc;
    brc_meta meta;
    brc_buf chunk = BRC_BUF_INIT;
    memset(id, 0, sizeof(*id));
    BRC_TRY(brc_entry_doc(repo->store, entry, &doc, err));
    int rc = brc_meta_open(&meta, repo->registry, doc, err);
    brc_json_free(doc);
    if (rc < 0)
        return rc;
    if (!meta.opaque && meta.grid.regular)
        rc = fill_chunk(&meta, &chunk, err);
    if (rc == BRC_OK && chunk.len > 0)
        *id = brc_hash_object(brc_store_hash(repo->store), BRC_KIND_CHUNK, chunk.data, chunk.len);
    brc_buf_dispose(&chunk);
    brc_meta_dispose(&meta);
    return rc;
}

typedef struct fill_count {
    size_t id_len;
    brc_oid fill[2]; /* what absence means on either side */
    uint64_t added, removed;
} fill_count;

static int count_fill(void *ctx, brc_span key, brc_span a, brc_span b, brc_error *err)
{
    fill_count *count = ctx;
    (void)key;
    (void)err;
    if (a.data == NULL)
        count->added += b.len == count->id_len &&
                        memcmp(b.data, count->fill[0].bytes, count->id_len) == 0;
    else if (b.data == NULL)
        count->removed += a.len == count->id_len &&
                          memcmp(a.data, count->fill[1].bytes, count->id_len) == 0;
    return BRC_OK;
}

static int is_storage(const char *pointer)
{
    return strcmp(pointer, "/codecs") == 0 || strcmp(pointer, "/storage") == 0;
}

int brc_fill_chunks_discount(brc_node_change *c, breccia *repo, brc_error *err)
{
    fill_count count = {.id_len = brc_store_id_len(repo->store)};
    if (c->a.kind != BRC_ARRAY || c->b.kind != BRC_ARRAY || c->rechunked ||
        c->chunks_added + c->chunks_removed == 0)
        return BRC_OK;
    BRC_TRY(fill_id(&c->a, repo, &count.fill[0], err));
    BRC_TRY(fill_id(&c->b, repo, &count.fill[1], err));
    BRC_TRY(brc_map_diff(repo->store, &c->a.map, &c->b.map, count_fill, &count, err));
    c->chunks_added -= count.added;
    c->chunks_removed -= count.removed;
    c->storage_only = c->chunks_added + c->chunks_removed + c->chunks_changed == 0;
    for (size_t i = 0; i < c->nmetadata; i++)
        c->storage_only &= is_storage(c->metadata[i]);
    return BRC_OK;
}
