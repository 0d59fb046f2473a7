/* Reading a region: chunks are looked up in batches, fetched in the order in which
 * they are stored, and decoded by the read pipeline. */
#include <stdlib.h>
#include <string.h>

#include "../base/alloc.h"
#include "../codec/read_pipeline.h"
#include "array.h"

#define LOOKUP_BATCH 4096

typedef struct region_reader {
    brc_array *a;
    const brc_region *r;
    uint8_t *dst;
    uint64_t next; /* chunk of the region that has not been looked up */
    size_t n, at;  /* of the batch: how many there are, and the one that is due */
    size_t batch;  /* how many it has room for */
    uint64_t *indexes;
    brc_oid *ids;
    brc_object *objects;
    brc_object **sorted;
    uint64_t *numbers; /* of the region's chunks, by objects */
} region_reader;

static void reader_overlap(const region_reader *rd, uint64_t number, uint64_t *index, brc_overlap *o)
{
    brc_region_chunk(rd->r, rd->a->meta.ndim, number, index);
    brc_overlap_of(o, &rd->r->sel, rd->r->shape, rd->a->meta.chunk, index);
}

/* The steps from one selected element of a chunk to the next. */
static void chunk_strides(const brc_array *a, const brc_region *r, int64_t *strides)
{
    brc_strides_packed(a->meta.ndim, a->meta.chunk, a->meta.type->item_size, strides);
    for (int i = 0; i < a->meta.ndim; i++)
        strides[i] *= (int64_t)r->sel.step[i];
}

static int64_t chunk_offset(const brc_array *a, const brc_overlap *o)
{
    int64_t packed[BRC_MAX_NDIM], offset = 0;
    brc_strides_packed(a->meta.ndim, a->meta.chunk, a->meta.type->item_size, packed);
    for (int i = 0; i < a->meta.ndim; i++)
        offset += (int64_t)o->in_chunk[i] * packed[i];
    return offset;
}

static void read_absent(const region_reader *rd, uint64_t number)
{
    uint64_t index[BRC_MAX_NDIM];
    brc_overlap o;
    const brc_meta *m = &rd->a->meta;
    reader_overlap(rd, number, index, &o);
    brc_fill_box(m->ndim, o.count, m->type->item_size,
                 rd->dst + brc_region_offset(rd->r, m->ndim, &o), rd->r->strides, m->fill.data);
}

static int object_blob_order(const void *x, const void *y)
{
    const brc_object *a = *(brc_object *const *)x, *b = *(brc_object *const *)y;
    return (a->blob > b->blob) - (a->blob < b->blob);
}

static int reader_missing(const region_reader *rd, size_t i, brc_error *err)
{
    uint64_t index[BRC_MAX_NDIM];
    char hex[65];
    brc_region_chunk(rd->r, rd->a->meta.ndim, rd->numbers[i], index);
    brc_fail(err, BRC_ECORRUPT, "its object %s is missing; run 'breccia fsck'",
             brc_oid_format(hex, &rd->objects[i].id));
    brc_array_name_chunk(rd->a, index, err);
    return BRC_ECORRUPT;
}

/* Looks the next chunks up; absent ones are filled at once. */
static int reader_lookup(region_reader *rd, brc_error *err)
{
    brc_store *store = brc_array_store(rd->a);
    size_t ndim = (size_t)rd->a->meta.ndim, asked = 0;
    uint64_t first = rd->next;
    rd->n = rd->at = 0;
    BRC_TRY(brc_repo_progress(rd->a->session->repo, "chunks", first, rd->r->nchunks, err));
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
    for (size_t i = 0; i < rd->n; i++)
        if (!rd->objects[i].found || rd->objects[i].kind != BRC_KIND_CHUNK)
            return reader_missing(rd, i, err);
    if (rd->n > 1)
        qsort(rd->sorted, rd->n, sizeof(*rd->sorted), object_blob_order);
    return BRC_OK;
}

static int reader_check_size(const region_reader *rd, const brc_object *o, const brc_chain *chain,
                             brc_error *err)
{
    uint64_t want = rd->a->meta.chunk_bytes;
    if (o->size == want && (chain != NULL ? brc_chain_decoded_len(chain) == want : o->stored == want))
        return BRC_OK;
    return brc_fail(err, BRC_ECORRUPT, "%s: a chunk's object has %llu bytes, not %llu; run "
                                       "'breccia fsck'",
                    rd->a->path, (unsigned long long)o->size, (unsigned long long)want);
}

static int reader_next(void *ctx, brc_read_item *item, brc_error *err)
{
    region_reader *rd = ctx;
    const brc_meta *m = &rd->a->meta;
    uint64_t index[BRC_MAX_NDIM];
    brc_overlap o;
    while (rd->at == rd->n) {
        if (rd->next == rd->r->nchunks)
            return 0;
        BRC_TRY(reader_lookup(rd, err));
    }
    const brc_object *object = rd->sorted[rd->at++];
    item->number = rd->numbers[object - rd->objects];
    item->id = object->id;
    item->checksum = object->checksum;
    item->blob = object->blob;
    item->stored_len = (size_t)object->stored;
    item->len = m->chunk_bytes;
    BRC_TRY(brc_encoding_chain(brc_array_store(rd->a), object->encoding, &item->chain, err));
    BRC_TRY(reader_check_size(rd, object, item->chain, err));
    if (rd->r->in_one_piece) {
        reader_overlap(rd, item->number, index, &o);
        if (memcmp(o.count, m->chunk, (size_t)m->ndim * sizeof(*m->chunk)) == 0)
            item->direct = rd->dst + brc_region_offset(rd->r, m->ndim, &o);
    }
    return 1;
}

static brc_object item_object(const brc_read_item *item)
{
    return (brc_object){.id = item->id, .checksum = item->checksum, .blob = item->blob,
                        .stored = item->stored_len};
}

static int reader_fetch(void *ctx, const brc_read_item *item, uint8_t *into, brc_error *err)
{
    const region_reader *rd = ctx;
    brc_object o = item_object(item);
    return brc_object_fetch(brc_array_store(rd->a), &o, into, err);
}

static int reader_check(void *ctx, const brc_read_item *item, const uint8_t *stored, brc_error *err)
{
    brc_object o = item_object(item);
    (void)ctx;
    return brc_object_verify(&o, stored, err);
}

static int reader_place(void *ctx, const brc_read_item *item, const uint8_t *data, brc_error *err)
{
    const region_reader *rd = ctx;
    const brc_meta *m = &rd->a->meta;
    uint64_t index[BRC_MAX_NDIM];
    int64_t strides[BRC_MAX_NDIM];
    brc_overlap o;
    (void)err;
    reader_overlap(rd, item->number, index, &o);
    chunk_strides(rd->a, rd->r, strides);
    brc_copy_box(m->ndim, o.count, m->type->item_size,
                 rd->dst + brc_region_offset(rd->r, m->ndim, &o), rd->r->strides,
                 data + chunk_offset(rd->a, &o), strides);
    return BRC_OK;
}

static void reader_name(void *ctx, const brc_read_item *item, brc_error *err)
{
    const region_reader *rd = ctx;
    uint64_t index[BRC_MAX_NDIM];
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

int brc_array_read_region(brc_array *a, const brc_region *r, void *dst, brc_error *err)
{
    region_reader rd = {.a = a, .r = r, .dst = dst};
    brc_read_ops ops = {&rd, reader_next, reader_fetch, reader_check, reader_place, reader_name};
    if (r->nchunks == 0)
        return BRC_OK;
    int rc = reader_new(&rd, err);
    if (rc == BRC_OK)
        rc = brc_read_pipeline(&a->session->repo->pipe, &ops, err);
    free(rd.indexes);
    free(rd.ids);
    free(rd.objects);
    free(rd.sorted);
    free(rd.numbers);
    return rc;
}

/* ---- the public functions ------------------------------------------------------------------ */

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
    BRC_TRY(brc_array_begin_read(io->array, err));
    int rc = brc_region_init(&r, io->array, io->sel, NULL, io->strides, err);
    if (rc == BRC_OK && io->strides == NULL)
        rc = check_len(io->array, &r, io->len, err);
    if (rc == BRC_OK)
        rc = brc_array_read_region(io->array, &r, io->data, err);
    if (rc == BRC_OK && io->strides == NULL)
        brc_dtype_native(io->array->meta.type, io->data, io->len);
    brc_array_end_read(io->array);
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
