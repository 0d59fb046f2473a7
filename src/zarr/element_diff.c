#include "element_diff.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "../nd/shape.h"
#include "meta.h"

typedef struct element_differ {
    breccia *repo;
    brc_meta a, b;
    uint64_t shape[BRC_MAX_NDIM]; /* what both hold */
    brc_buf old, new;
    brc_element_diff *out;
} element_differ;

static int chunk_elements(element_differ *d, const brc_meta *m, brc_span value, brc_buf *out,
                          brc_error *err)
{
    brc_object o, *one = &o;
    size_t id_len = brc_store_id_len(d->repo->store);
    out->len = 0;
    BRC_TRY(brc_buf_reserve(out, m->chunk_bytes, err));
    if (value.data == NULL) {
        brc_fill_run(out->data, m->chunk_bytes / m->type->item_size, m->type->item_size, m->fill.data);
        out->len = m->chunk_bytes;
        return BRC_OK;
    }
    memset(&o, 0, sizeof(o));
    if (value.len != id_len)
        return brc_fail(err, BRC_ECORRUPT, "a chunk's entry is damaged; run 'breccia fsck'");
    memcpy(o.id.bytes, value.data, id_len);
    BRC_TRY(brc_objects_find(d->repo->store, &one, 1, err));
    if (!o.found || o.size != m->chunk_bytes)
        return brc_fail(err, BRC_ECORRUPT, "a chunk's object is missing or damaged; run 'breccia fsck'");
    return brc_store_decode(d->repo->store, &o, 0, out, err);
}

static void note_difference(element_differ *d, const uint64_t *at, const uint8_t *x,
                            const uint8_t *y)
{
    brc_element_diff *out = d->out;
    const brc_dtype *type = d->a.type;
    for (int i = 0; i < out->ndim; i++) {
        if (out->elements == 0 || at[i] < out->first[i])
            out->first[i] = at[i];
        if (out->elements == 0 || at[i] > out->last[i])
            out->last[i] = at[i];
    }
    out->elements++;
    if (type->ops->number == NULL)
        return;
    double difference = fabs(type->ops->number(type, x) - type->ops->number(type, y));
    if (difference > out->max_abs)
        out->max_abs = difference;
}

static int compare_chunk(void *ctx, brc_span key, brc_span a, brc_span b, brc_error *err)
{
    element_differ *d = ctx;
    const brc_meta *m = &d->a;
    size_t item = m->type->item_size;
    uint64_t index[BRC_MAX_NDIM], at[BRC_MAX_NDIM] = {0}, box[BRC_MAX_NDIM], global[BRC_MAX_NDIM];
    int64_t strides[BRC_MAX_NDIM];
    if (brc_chunk_key_decode(key.data, key.len, index) != m->ndim)
        return brc_fail(err, BRC_ECORRUPT, "a chunk's key is damaged; run 'breccia fsck'");
    BRC_TRY(chunk_elements(d, &d->a, a, &d->old, err));
    BRC_TRY(chunk_elements(d, &d->b, b, &d->new, err));
    for (int i = 0; i < m->ndim; i++) {
        uint64_t corner = index[i] * m->chunk[i];
        if (corner >= d->shape[i])
            return BRC_OK;
        box[i] = d->shape[i] - corner < m->chunk[i] ? d->shape[i] - corner : m->chunk[i];
    }
    brc_strides_packed(m->ndim, m->chunk, item, strides);
    do {
        int64_t offset = 0;
        for (int i = 0; i < m->ndim; i++) {
            offset += (int64_t)at[i] * strides[i];
            global[i] = index[i] * m->chunk[i] + at[i];
        }
        if (memcmp(d->old.data + offset, d->new.data + offset, item) != 0)
            note_difference(d, global, d->old.data + offset, d->new.data + offset);
    } while (brc_index_next(m->ndim, at, box));
    return brc_repo_progress(d->repo, "elements", d->out->elements, 0, err);
}

static int open_sides(element_differ *d, const brc_node_change *change, brc_error *err)
{
    brc_json *a = NULL, *b = NULL;
    const brc_registry *reg = d->repo->registry;
    int rc;
    BRC_GO(brc_entry_doc(d->repo->store, &change->a, &a, err));
    BRC_GO(brc_entry_doc(d->repo->store, &change->b, &b, err));
    BRC_GO(brc_meta_open(&d->a, reg, a, err));
    BRC_GO(brc_meta_open(&d->b, reg, b, err));
done:
    brc_json_free(a);
    brc_json_free(b);
    return rc;
}

static int sides_compare(element_differ *d)
{
    if (d->a.ndim != d->b.ndim || strcmp(d->a.type->json, d->b.type->json) != 0)
        return 0;
    d->out->ndim = d->a.ndim;
    d->out->max_abs = d->a.type->ops->number != NULL ? 0 : NAN;
    for (int i = 0; i < d->a.ndim; i++)
        d->shape[i] = d->a.shape[i] < d->b.shape[i] ? d->a.shape[i] : d->b.shape[i];
    return memcmp(d->a.chunk, d->b.chunk, (size_t)d->a.ndim * sizeof(*d->a.chunk)) == 0;
}

int brc_element_diff_run(brc_element_diff *out, breccia *repo, const brc_node_change *change,
                         brc_error *err)
{
    element_differ d = {.repo = repo, .out = out};
    memset(out, 0, sizeof(*out));
    if (change->a.kind != BRC_ARRAY || change->b.kind != BRC_ARRAY)
        return BRC_OK;
    int rc = open_sides(&d, change, err);
    if (rc == BRC_OK && sides_compare(&d)) {
        out->known = 1;
        rc = brc_map_diff(repo->store, &change->a.map, &change->b.map, compare_chunk, &d, err);
    } else if (rc == BRC_EUNSUPPORTED) {
        rc = BRC_OK; /* chunks that cannot be decoded here differ as a whole */
    }
    brc_meta_dispose(&d.a);
    brc_meta_dispose(&d.b);
    brc_buf_dispose(&d.old);
    brc_buf_dispose(&d.new);
    return rc;
}
