#include "element_diff.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "../base/alloc.h"
#include "../nd/shape.h"
#include "meta.h"
#include "opaque.h"
#include "span_table.h"

typedef struct element_differ {
    breccia *repo;
    brc_meta a, b;
    uint64_t shape[BRC_MAX_NDIM]; /* what both hold */
    brc_buf old, new;
    brc_element_diff *out;
} element_differ;

/* One side's canonical bytes of a chunk of n elements. */
static int side_bytes(element_differ *d, const brc_meta *m, uint64_t n, brc_span value,
                      brc_buf *out, brc_error *err)
{
    brc_object o, *one = &o;
    size_t id_len = brc_store_id_len(d->repo->store);
    out->len = 0;
    if (value.data == NULL) {
        BRC_TRY(brc_buf_reserve(out, (size_t)n * m->fill.len, err));
        brc_fill_run(out->data, n, m->fill.len, m->fill.data);
        out->len = (size_t)n * m->fill.len;
        return BRC_OK;
    }
    memset(&o, 0, sizeof(o));
    if (value.len != id_len)
        return brc_fail(err, BRC_ECORRUPT, "a chunk's entry is damaged; run 'breccia fsck'");
    memcpy(o.id.bytes, value.data, id_len);
    BRC_TRY(brc_objects_find(d->repo->store, &one, 1, err));
    if (!o.found || (m->type->item_size > 0 && o.size != n * m->type->item_size))
        return brc_fail(err, BRC_ECORRUPT,
                        "a chunk's object is missing or damaged; run 'breccia fsck'");
    return brc_store_decode(d->repo->store, &o, 0, out, err);
}

/* The elements of a side as spans, whatever their type. */
static int side_table(const brc_meta *m, const brc_buf *bytes, uint64_t n, brc_span **table,
                      brc_error *err)
{
    void *p;
    size_t item = m->type->item_size;
    BRC_TRY(brc_new_array(&p, (size_t)n, sizeof(brc_span), err));
    *table = p;
    if (item == 0)
        return brc_elements_find(*table, n, (brc_span){bytes->data, bytes->len}, err);
    for (uint64_t i = 0; i < n; i++)
        (*table)[i] = (brc_span){bytes->data + i * item, item};
    return BRC_OK;
}

/* 64-bit integers are subtracted as such: as doubles, neighbours are often equal. */
static double difference_of(const brc_dtype *type, const uint8_t *x, const uint8_t *y)
{
    int64_t a, b;
    int is_signed = strcmp(type->json, "\"int64\"") == 0;
    if (!is_signed && strcmp(type->json, "\"uint64\"") != 0)
        return fabs(type->ops->number(type, x) - type->ops->number(type, y));
    memcpy(&a, x, sizeof(a));
    memcpy(&b, y, sizeof(b));
    int less = is_signed ? a < b : (uint64_t)a < (uint64_t)b;
    return (double)(less ? (uint64_t)b - (uint64_t)a : (uint64_t)a - (uint64_t)b);
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
    double difference = difference_of(type, x, y);
    if (difference > out->max_abs)
        out->max_abs = difference;
}

/* Goes through the elements of a chunk that both shapes hold. */
static void compare_elements(element_differ *d, const uint64_t *corner, const uint64_t *chunk,
                             const brc_span *x, const brc_span *y)
{
    const int ndim = d->out->ndim;
    uint64_t at[BRC_MAX_NDIM] = {0}, box[BRC_MAX_NDIM], global[BRC_MAX_NDIM];
    int64_t steps[BRC_MAX_NDIM];
    for (int i = 0; i < ndim; i++) {
        if (corner[i] >= d->shape[i])
            return;
        box[i] = d->shape[i] - corner[i] < chunk[i] ? d->shape[i] - corner[i] : chunk[i];
    }
    brc_strides_packed(ndim, chunk, 1, steps);
    do {
        int64_t n = 0;
        for (int i = 0; i < ndim; i++) {
            n += (int64_t)at[i] * steps[i];
            global[i] = corner[i] + at[i];
        }
        if (x[n].len != y[n].len || memcmp(x[n].data, y[n].data, x[n].len) != 0)
            note_difference(d, global, x[n].data, y[n].data);
    } while (brc_index_next(ndim, at, box));
}

static int compare_chunk(void *ctx, brc_span key, brc_span a, brc_span b, brc_error *err)
{
    element_differ *d = ctx;
    uint64_t index[BRC_MAX_NDIM], corner[BRC_MAX_NDIM], chunk[BRC_MAX_NDIM];
    brc_span *x = NULL, *y = NULL;
    int rc;
    if (brc_chunk_key_decode(key.data, key.len, index) != d->a.ndim)
        return brc_fail(err, BRC_ECORRUPT, "a chunk's key is damaged; run 'breccia fsck'");
    for (int i = 0; i < d->a.ndim; i++) /* what is outside one shape is not compared */
        if (index[i] >= d->a.grid.count[i] || index[i] >= d->b.grid.count[i])
            return BRC_OK;
    brc_grid_chunk(&d->a.grid, index, corner, chunk);
    uint64_t n = brc_shape_count(d->a.ndim, chunk);
    BRC_GO(side_bytes(d, &d->a, n, a, &d->old, err));
    BRC_GO(side_bytes(d, &d->b, n, b, &d->new, err));
    BRC_GO(side_table(&d->a, &d->old, n, &x, err));
    BRC_GO(side_table(&d->b, &d->new, n, &y, err));
    compare_elements(d, corner, chunk, x, y);
    rc = brc_repo_progress(d->repo, "elements", d->out->elements, 0, err);
done:
    free(x);
    free(y);
    return rc;
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
    BRC_GO(brc_opaque_settle(d->repo->store, &d->a, &change->a.map, 0, err));
    BRC_GO(brc_opaque_settle(d->repo->store, &d->b, &change->b.map, 0, err));
done:
    brc_json_free(a);
    brc_json_free(b);
    return rc;
}

static int sides_compare(element_differ *d)
{
    if (d->a.opaque || d->b.opaque || d->a.ndim != d->b.ndim ||
        strcmp(d->a.type->json, d->b.type->json) != 0)
        return 0;
    d->out->ndim = d->a.ndim;
    d->out->max_abs = d->a.type->ops->number != NULL ? 0 : NAN;
    for (int i = 0; i < d->a.ndim; i++)
        d->shape[i] = d->a.shape[i] < d->b.shape[i] ? d->a.shape[i] : d->b.shape[i];
    return d->a.grid.regular && d->b.grid.regular &&
           memcmp(d->a.grid.chunk, d->b.grid.chunk, (size_t)d->a.ndim * sizeof(d->shape[0])) == 0;
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
    }
    brc_meta_dispose(&d.a);
    brc_meta_dispose(&d.b);
    brc_buf_dispose(&d.old);
    brc_buf_dispose(&d.new);
    return rc;
}
