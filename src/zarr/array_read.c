/* Reading a region: chunks are looked up in batches, fetched in the order in which
 * they are stored, and decoded by the read pipeline. */
#include <stdlib.h>
#include <string.h>

#include "../base/alloc.h"
#include "chunk_item.h"
#include "span_table.h"

#define LOOKUP_BATCH 4096

typedef struct region_reader {
    brc_array *a;
    const brc_region *r;
    uint8_t *dst;
    uint64_t next; /* chunk of the region that has not been looked up */
    uint64_t told; /* bytes that progress knows of */
    size_t n, at;  /* of the batch: how many there are, and the one that is due */
    size_t batch;  /* how many it has room for */
    uint64_t *indexes;
    brc_oid *ids;
    brc_object *objects;
    brc_object **sorted;
    uint64_t *numbers; /* of the region's chunks, by objects */
    brc_span fill;     /* what an absent element is, as dst holds it */
    void **kept;       /* chunks of variable elements, which dst points into */
} region_reader;

static void read_absent(const region_reader *rd, uint64_t number)
{
    brc_region_part part;
    size_t unit = brc_array_unit(rd->a);
    const uint8_t *fill = brc_meta_is_variable(&rd->a->meta) ? (const uint8_t *)&rd->fill
                                                            : rd->fill.data;
    brc_region_part_of(&part, rd->a, rd->r, number);
    brc_fill_box(rd->a->meta.ndim, part.overlap.count, unit, rd->dst + part.in_memory,
                 rd->r->strides, fill);
}

static int object_blob_order(const void *x, const void *y)
{
    const brc_object *a = *(brc_object *const *)x, *b = *(brc_object *const *)y;
    return (a->blob > b->blob) - (a->blob < b->blob);
}

/* Looks the next chunks up; absent ones are filled at once. */
static int reader_lookup(region_reader *rd, brc_error *err)
{
    brc_store *store = brc_array_store(rd->a);
    size_t ndim = (size_t)rd->a->meta.ndim, asked = 0;
    uint64_t first = rd->next;
    rd->n = rd->at = 0;
    for (; asked < rd->batch && rd->next < rd->r->nchunks; asked++)
        brc_region_chunk(rd->r, (int)ndim, rd->next++, rd->indexes + asked * ndim);
    BRC_TRY(brc_array_chunk_ids(rd->a, asked, rd->indexes, rd->ids, err));
    for (size_t i = 0; i < asked; i++) {
        if (brc_oid_is_zero(&rd->ids[i])) {
            read_absent(rd, first + i);
            continue;
        }
        rd->objects[rd->n].id = rd->ids[i];
        rd->numbers[rd->n] = first + i;
        rd->sorted[rd->n] = &rd->objects[rd->n];
        rd->n++;
    }
    BRC_TRY(brc_objects_find(store, rd->sorted, rd->n, err));
    if (rd->n > 1)
        qsort(rd->sorted, rd->n, sizeof(*rd->sorted), object_blob_order);
    return BRC_OK;
}

static int reader_next(void *ctx, brc_read_item *item, brc_error *err)
{
    region_reader *rd = ctx;
    brc_region_part part;
    while (rd->at == rd->n) {
        if (rd->next == rd->r->nchunks)
            return 0;
        BRC_TRY(reader_lookup(rd, err));
    }
    BRC_TRY(brc_region_step(rd->a, rd->r, &rd->told, rd->next - (rd->n - rd->at), err));
    const brc_object *object = rd->sorted[rd->at++];
    item->number = rd->numbers[object - rd->objects];
    brc_region_part_of(&part, rd->a, rd->r, item->number);
    BRC_TRY(brc_chunk_item(item, rd->a, part.index, object, err));
    if (rd->r->in_one_piece && part.full)
        item->direct = rd->dst + part.in_memory;
    return 1;
}

static int reader_fetch(void *ctx, const brc_read_item *item, uint8_t *into, brc_error *err)
{
    const region_reader *rd = ctx;
    return brc_chunk_item_fetch(brc_array_store(rd->a), item, into, err);
}

static int reader_check(void *ctx, const brc_read_item *item, const uint8_t *stored, brc_error *err)
{
    (void)ctx;
    return brc_chunk_item_check(item, stored, err);
}

static void place_box(const region_reader *rd, const brc_region_part *part, const uint8_t *data)
{
    brc_copy_box(rd->a->meta.ndim, part->overlap.count, brc_array_unit(rd->a),
                 rd->dst + part->in_memory, rd->r->strides, data + part->in_chunk, part->strides);
}

/* The chunk is kept, for the spans in dst point into it. */
static int place_variable(const region_reader *rd, const brc_region_part *part, uint64_t number,
                          brc_span data, brc_error *err)
{
    void *bytes, *table;
    BRC_TRY(brc_new(&bytes, data.len, err));
    rd->kept[number] = bytes;
    if (data.len > 0)
        memcpy(bytes, data.data, data.len);
    BRC_TRY(brc_new_array(&table, (size_t)part->elements, sizeof(brc_span), err));
    int rc = brc_elements_find(table, part->elements, (brc_span){bytes, data.len}, err);
    if (rc == BRC_OK)
        place_box(rd, part, table);
    free(table);
    return rc == BRC_EINVAL ? brc_fail(err, BRC_ECORRUPT, "its elements are damaged") : rc;
}

static int reader_place(void *ctx, const brc_read_item *item, const uint8_t *data, brc_error *err)
{
    const region_reader *rd = ctx;
    brc_region_part part;
    brc_region_part_of(&part, rd->a, rd->r, item->number);
    if (brc_meta_is_variable(&rd->a->meta))
        return place_variable(rd, &part, item->number, (brc_span){data, item->len}, err);
    place_box(rd, &part, data);
    return BRC_OK;
}

/* The selection's box. The chunk may be stored as another array's of another shape. */
static int reader_box(void *ctx, const brc_read_item *item, brc_box *out)
{
    const region_reader *rd = ctx;
    brc_region_part part;
    const int ndim = rd->a->meta.ndim;
    brc_region_part_of(&part, rd->a, rd->r, item->number);
    if (part.full || !brc_chain_has_boxes(item->chain, ndim, part.chunk))
        return 0;
    for (int i = 0; i < ndim; i++) {
        out->start[i] = part.overlap.in_chunk[i];
        out->count[i] = (part.overlap.count[i] - 1) * rd->r->sel.step[i] + 1;
    }
    return 1;
}

static void reader_name(void *ctx, const brc_read_item *item, brc_error *err)
{
    const region_reader *rd = ctx;
    uint64_t index[BRC_MAX_NDIM];
    if (rd->a->meta.opaque)
        brc_context(err, "decoded without the codecs that are not known here");
    brc_region_chunk(rd->r, rd->a->meta.ndim, item->number, index);
    brc_array_name_chunk(rd->a, index, err);
}

static int reader_new(region_reader *rd, brc_error *err)
{
    void *p;
    size_t ndim = (size_t)(rd->a->meta.ndim > 0 ? rd->a->meta.ndim : 1);
    rd->batch = rd->r->nchunks < LOOKUP_BATCH ? (size_t)rd->r->nchunks : LOOKUP_BATCH;
    BRC_TRY(brc_new_array(&p, rd->batch * ndim, sizeof(uint64_t), err));
    rd->indexes = p;
    BRC_TRY(brc_new_array(&p, rd->batch, sizeof(brc_oid), err));
    rd->ids = p;
    BRC_TRY(brc_new_array(&p, rd->batch, sizeof(brc_object), err));
    rd->objects = p;
    BRC_TRY(brc_new_array(&p, rd->batch, sizeof(brc_object *), err));
    rd->sorted = p;
    BRC_TRY(brc_new_array(&p, rd->batch, sizeof(uint64_t), err));
    rd->numbers = p;
    return BRC_OK;
}

static void reader_dispose(region_reader *rd)
{
    free(rd->indexes);
    free(rd->ids);
    free(rd->objects);
    free(rd->sorted);
    free(rd->numbers);
}

static int read_region(brc_array *a, const brc_region *r, void *dst, void **kept, brc_error *err)
{
    region_reader rd = {.a = a, .r = r, .dst = dst, .kept = kept};
    brc_read_ops ops = {&rd, reader_next, reader_fetch, reader_check, reader_place, reader_name,
                        reader_box};
    rd.fill = (brc_span){a->meta.fill.data, a->meta.fill.len};
    if (r->nchunks == 0)
        return BRC_OK;
    brc_task task = brc_task_begin(a->session->repo, "read", brc_region_bytes(a, r));
    int rc = reader_new(&rd, err);
    if (rc == BRC_OK)
        rc = brc_read_pipeline(&a->session->repo->pipe, &ops, err);
    reader_dispose(&rd);
    brc_task_end(a->session->repo, &task, rc);
    return rc;
}

int brc_array_read_region(brc_array *a, const brc_region *r, void *dst, brc_error *err)
{
    return read_region(a, r, dst, NULL, err);
}

/* Elements of variable length: a table of spans first, then all in one. */
static int read_variable(brc_array *a, const brc_region *r, brc_buf *out, brc_error *err)
{
    void *table = NULL, *kept = NULL;
    size_t n;
    int rc;
    if (!brc_to_size(brc_sel_count(&r->sel), &n) || !brc_to_size(r->nchunks, &n))
        return brc_fail(err, BRC_ELIMIT, "%s: the selection is too large for memory", a->path);
    BRC_GO(brc_new_array(&table, (size_t)brc_sel_count(&r->sel), sizeof(brc_span), err));
    BRC_GO(brc_new_array(&kept, (size_t)r->nchunks, sizeof(void *), err));
    BRC_GO(read_region(a, r, table, kept, err));
    rc = brc_elements_pack(out, table, brc_sel_count(&r->sel), err);
done:
    for (uint64_t i = 0; kept != NULL && i < r->nchunks; i++)
        free(((void **)kept)[i]);
    free(kept);
    free(table);
    return rc;
}

/* ---- the public functions -------------------------------- */

/* The memory must hold what the selection has; with strides that is the caller's
 * word. */
static int check_len(const brc_array *a, const brc_region *r, size_t len, brc_error *err)
{
    uint64_t want;
    if (!brc_shape_bytes(a->meta.ndim, r->sel.count, a->meta.type->item_size, &want))
        return brc_fail(err, BRC_ELIMIT, "%s: the selection has more than 2^64 bytes", a->path);
    if (want == len)
        return BRC_OK;
    return brc_fail(err, BRC_EINVAL, "%s: the selection has %llu bytes, but the memory has %zu",
                    a->path, (unsigned long long)want, len);
}

static int read_one_io(const brc_io *io, brc_error *err)
{
    brc_region r;
    brc_array *a = io->array;
    BRC_TRY(brc_array_begin_read(a, err));
    int rc = brc_region_init(&r, a, io->sel, NULL, io->strides, err);
    if (rc == BRC_OK && brc_meta_is_variable(&a->meta))
        rc = brc_fail(err, BRC_EINVAL,
                      "%s has elements of variable length: brc_array_read_elements() reads them",
                      a->path);
    if (rc == BRC_OK && io->strides == NULL)
        rc = check_len(a, &r, io->len, err);
    if (rc == BRC_OK)
        rc = brc_array_read_region(a, &r, io->data, err);
    if (rc == BRC_OK && io->strides == NULL)
        brc_dtype_native(a->meta.type, io->data, io->len);
    brc_array_end_read(a);
    return rc;
}

int brc_array_read_canonical(brc_array *a, const brc_sel *sel, brc_buf *out, brc_error *err)
{
    brc_region r;
    uint64_t bytes;
    size_t len;
    BRC_TRY(brc_region_init(&r, a, sel, NULL, NULL, err));
    if (brc_meta_is_variable(&a->meta))
        return read_variable(a, &r, out, err);
    if (!brc_shape_bytes(a->meta.ndim, r.sel.count, a->meta.type->item_size, &bytes) ||
        !brc_to_size(bytes, &len))
        return brc_fail(err, BRC_ELIMIT, "%s: the selection is too large for memory", a->path);
    if (len == 0) /* out->data may be NULL then */
        return BRC_OK;
    BRC_TRY(brc_buf_reserve(out, len, err));
    BRC_TRY(brc_array_read_region(a, &r, out->data + out->len, err));
    out->len += len;
    return BRC_OK;
}

int brc_array_read_elements(brc_array *a, const brc_sel *sel, brc_buf *out, brc_error *err)
{
    const size_t start = out->len;
    BRC_TRY(brc_array_begin_read(a, err));
    int rc = brc_array_read_canonical(a, sel, out, err);
    brc_array_end_read(a);
    if (rc == BRC_OK && out->len > start && !brc_meta_is_variable(&a->meta))
        brc_dtype_native(a->meta.type, out->data + start, out->len - start);
    return rc;
}

int brc_read_batch(const brc_io *io, size_t n, brc_error *err)
{
    for (size_t i = 0; i < n; i++)
        BRC_TRY(read_one_io(&io[i], err));
    return BRC_OK;
}

int brc_array_read(brc_array *a, const brc_sel *sel, void *dst, size_t len, brc_error *err)
{
    brc_io io = {a, sel, dst, len, NULL};
    return read_one_io(&io, err);
}
