#include "../../work/uncommitted.h"

#include <stdlib.h>
#include <string.h>

#include "../../base/alloc.h"
#include "../../base/sized.h"
#include "../../nd/shape.h"
#include "chunk_cursor.h"
#include "decode_there.h"
#include "region.h"

/* ==== array read ================================ */

/* Reads regions: chunks are looked up in batches, fetched in the order in which they are stored,
 * and decoded into place by the read flow. */

/* Memory of a region that the processor does not reach. */
typedef struct region_device {
    brc_device device;
    brc_staging *staging; /* chunks go there by it; NULL: by `held`             */
    brc_staging *rooms;   /* memory of the device, for what is decoded there; NULL: nothing is */
    uint8_t *held;        /* positions: all elements on the way there           */
    int64_t strides[BRC_MAX_NDIM]; /* then those of the memory                  */
} region_device;

/* A region to read. */
typedef struct region_read {
    brc_array *a;
    brc_region r;
    uint8_t *dst;
    brc_span fill;  /* an absent element, in the form of dst                    */
    void **kept;    /* chunks of elements of variable length, which dst points into */
    uint64_t next;  /* the first chunk of the region that has not been looked up */
    brc_oid *ids;   /* of all its chunks; NULL: looked up batch by batch        */
    uint64_t seen, told; /* chunks that were met, and bytes reported to progress */
    struct region_device *there; /* the memory is a device's; NULL: the host's  */
    brc_buffer_stats *stats; /* NULL: nothing is counted                       */
    size_t also; /* the number of following regions that meet the same chunks, and get their part of
                  * each as soon as it is decoded */
} region_read;

/* Several regions, which go through the flow together. */
typedef struct region_reader {
    region_read *reads;
    size_t n, at;
    uint64_t *indexes;      /* of the chunks that are being looked up             */
    brc_oid *ids;
    size_t room; /* the number of chunks that fit                             */
} region_reader;

/* Tells whether chunks go to a device one by one. */
static int goes_by_staging(const region_read *rd)
{
    return rd->there != NULL && rd->there->staging != NULL;
}

/* Fills an absent chunk's part in this region and in those that are read with it. */
static int read_absent(region_read *rd, uint64_t number, brc_error *err)
{
    brc_region_part part;
    const uint8_t *fill = brc_meta_is_variable(&rd->a->meta) ? (const uint8_t *)&rd->fill
                                                            : rd->fill.data;
    for (const region_read *end = rd + rd->also; rd <= end; rd++) {
        brc_region_part_of(&part, rd->a, &rd->r, number);
        if (goes_by_staging(rd))
            BRC_TRY(brc_device_fill(&rd->there->device, rd->a->meta.ndim, part.overlap.count,
                                    brc_array_unit(rd->a), part.in_memory, rd->r.strides, fill,
                                    err));
        else
            brc_region_fill(rd->a, &rd->r, &part, rd->dst, fill);
        if (rd->stats != NULL)
            brc_count(&rd->stats->filled, 1);
        rd->seen++;
    }
    return BRC_OK;
}

/* ---- listing chunks -------------------------------- */

static int reader_room(region_reader *reader, size_t n, brc_error *err)
{
    void *p;
    if (n <= reader->room)
        return BRC_OK;
    BRC_TRY(brc_new_array(&p, n, sizeof(brc_oid) + BRC_MAX_NDIM * sizeof(uint64_t), err));
    free(reader->ids);
    reader->ids = p;
    reader->indexes = (uint64_t *)(reader->ids + n);
    reader->room = n;
    return BRC_OK;
}

/* Looks up `n` chunks of the region. */
static int look_up_ids(const region_read *rd, const region_reader *reader, uint64_t first, size_t n,
                       brc_oid *ids, brc_error *err)
{
    const int ndim = rd->a->meta.ndim;
    for (size_t i = 0; i < n; i++)
        brc_region_chunk(&rd->r, ndim, first + i, reader->indexes + i * (size_t)ndim);
    return brc_array_chunk_ids(rd->a, n, reader->indexes, ids, err);
}

static int meets_same_chunks(const region_read *x, const region_read *y)
{
    const size_t len = (size_t)x->a->meta.ndim * sizeof(x->r.first[0]);
    return x->a == y->a && !brc_meta_is_variable(&x->a->meta) && x->r.places == NULL &&
           y->r.places == NULL && x->there == NULL && y->there == NULL &&
           memcmp(x->r.first, y->r.first, len) == 0 && memcmp(x->r.chunks, y->r.chunks, len) == 0;
}

/* Joins regions that follow each other and meet the same chunks, such as rows of one chunk: each
 * chunk is decoded once for all of them. */
static void join_regions(region_read *reads, size_t n)
{
    for (size_t i = 0; i < n; i += reads[i].also + 1)
        while (i + reads[i].also + 1 < n &&
               meets_same_chunks(&reads[i], &reads[i + reads[i].also + 1]))
            reads[i].also++;
}

/* Looks up all chunks before the first batch, because uncommitted chunks may be written between
 * two batches. Chunks of a map cannot change, and what the first batch lists is looked up in
 * this transaction anyway. */
static int resolve_all(region_reader *reader, uint64_t chunks, brc_error *err)
{
    enum { AT_ONCE = 4096 };
    void *p;
    if (chunks <= BRC_READ_FIRST)
        return BRC_OK;
    for (size_t i = 0; i < reader->n; i += reader->reads[i].also + 1) {
        region_read *rd = &reader->reads[i];
        size_t n;
        if (!rd->a->row_has_chunks || rd->a->is_frozen || rd->r.nchunks == 0)
            continue;
        if (!brc_to_size(rd->r.nchunks, &n))
            return brc_nomem(err);
        BRC_TRY(brc_new_array(&p, n, sizeof(brc_oid), err));
        rd->ids = p;
        BRC_TRY(reader_room(reader, n < AT_ONCE ? n : AT_ONCE, err));
        for (size_t at = 0, some; at < n; at += some) {
            some = n - at < AT_ONCE ? n - at : AT_ONCE;
            BRC_TRY(look_up_ids(rd, reader, at, some, rd->ids + at, err));
        }
    }
    return BRC_OK;
}

/* Lists the next existing chunks of one region, at most cap; fills absent ones at once. */
static int list_region(region_reader *reader, region_read *rd, brc_read_item *items, size_t cap,
                       size_t *n, brc_error *err)
{
    uint64_t first = rd->next, left = rd->r.nchunks - first;
    size_t asked = left < cap ? (size_t)left : cap;
    const brc_oid *ids;
    if (rd->ids != NULL) {
        ids = rd->ids + first;
    } else {
        BRC_TRY(reader_room(reader, asked, err));
        BRC_TRY(look_up_ids(rd, reader, first, asked, reader->ids, err));
        ids = reader->ids;
    }
    rd->next += asked;
    for (size_t i = 0; i < asked; i++) {
        if (brc_oid_is_zero(&ids[i])) {
            BRC_TRY(read_absent(rd, first + i, err));
            continue;
        }
        items[*n].object.id = ids[i];
        items[*n].number = first + i;
        items[(*n)++].owner = rd;
    }
    return BRC_OK;
}

static int reader_list(void *ctx, brc_read_item *items, size_t cap, size_t *n, brc_error *err)
{
    region_reader *reader = ctx;
    uint64_t looked = 0;
    while (*n < cap && looked < cap && reader->at < reader->n) {
        region_read *rd = &reader->reads[reader->at];
        const uint64_t first = rd->next;
        if (first < rd->r.nchunks)
            BRC_TRY(list_region(reader, rd, items, cap - *n, n, err));
        looked += rd->next - first;
        if (rd->next == rd->r.nchunks)
            reader->at += rd->also + 1;
    }
    return *n == 0 && reader->at < reader->n ? BRC_READ_MORE : BRC_OK;
}

/* Handles an item, which belongs to the region that is being listed or to an earlier one. */
static int reader_passed(void *ctx, const brc_read_item *item, brc_error *err)
{
    region_reader *reader = ctx;
    region_read *rd = item != NULL ? item->owner : &reader->reads[reader->at];
    for (const region_read *end = rd + rd->also; rd <= end; rd++) {
        rd->seen += item != NULL;
        BRC_TRY(brc_region_step(rd->a, &rd->r, &rd->told, rd->seen, err));
    }
    return BRC_OK;
}

/* ---- decoding into place -------------------------------- */

static int reader_open(void *ctx, brc_read_item *item, brc_error *err)
{
    (void)ctx;
    brc_region_part part;
    region_read *rd = item->owner;
    brc_region_part_of(&part, rd->a, &rd->r, item->number);
    BRC_TRY(brc_chunk_item(item, rd->a, part.index, err));
    if (rd->r.in_one_piece && part.full && rd->also == 0 && !goes_by_staging(rd))
        item->direct = rd->dst + part.in_memory;
    if (rd->stats != NULL && item->direct != NULL)
        brc_count(&rd->stats->direct, 1);
    return BRC_OK;
}

/* Places a chunk of elements of variable length. Keeps the chunk: the spans in dst point into
 * it. */
static int place_variable(const region_read *rd, const brc_region_part *part, uint64_t number,
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
        brc_region_take(rd->a, &rd->r, part, rd->dst, table);
    free(table);
    return rc == BRC_EINVAL ? brc_fail(err, BRC_ECORRUPT, "its elements are damaged") : rc;
}

/* Copies the selected elements of a chunk, which is in the host's memory, to the device. */
static int put_there(const region_read *rd, const brc_region_part *part, const uint8_t *data,
                     brc_error *err)
{
    return brc_device_put(&rd->there->device, rd->a->meta.ndim, part->overlap.count,
                          brc_array_unit(rd->a), part->in_memory, rd->r.strides,
                          data + part->in_chunk, part->strides, err);
}

static int reader_place(void *ctx, brc_read_item *item, const uint8_t *data, brc_scratch *scratch,
                        brc_error *err)
{
    (void)ctx;
    (void)scratch;
    const region_read *rd = item->owner;
    brc_region_part part;
    brc_region_part_of(&part, rd->a, &rd->r, item->number);
    if (brc_meta_is_variable(&rd->a->meta))
        return place_variable(rd, &part, item->number, (brc_span){data, item->len}, err);
    if (goes_by_staging(rd)) { /* `data` changes once this returns */
        BRC_TRY(put_there(rd, &part, data, err));
        return brc_device_wait(&rd->there->device, err);
    }
    if (rd->stats != NULL)
        brc_count(&rd->stats->moved, rd->also + 1);
    brc_region_take(rd->a, &rd->r, &part, rd->dst, data);
    for (size_t i = 1; i <= rd->also; i++) {
        brc_region_part_of(&part, rd[i].a, &rd[i].r, item->number);
        brc_region_take(rd[i].a, &rd[i].r, &part, rd[i].dst, data);
    }
    return BRC_OK;
}

/* Grows the box from..past to include what a region selects in a chunk; with `fresh`, sets the box
 * to that. */
static void grow_box(const region_read *rd, const brc_region_part *part, int fresh, uint64_t *from,
                     uint64_t *past)
{
    for (int i = 0; i < rd->a->meta.ndim; i++) {
        const uint64_t first = part->overlap.in_chunk[i];
        const uint64_t end = first + (part->overlap.count[i] - 1) * rd->r.sel.step[i] + 1;
        from[i] = fresh || first < from[i] ? first : from[i];
        past[i] = fresh || end > past[i] ? end : past[i];
    }
}

/* Returns the smallest box around the selected elements. The chunk may be stored as that of
 * another array with another shape. Steps may skip the whole chunk. */
static int reader_box(void *ctx, const brc_read_item *item, brc_box *out)
{
    (void)ctx;
    const region_read *rd = item->owner;
    brc_region_part part;
    const int ndim = rd->a->meta.ndim;
    uint64_t past[BRC_MAX_NDIM];
    for (size_t k = 0; k <= rd->also; k++) {
        brc_region_part_of(&part, rd->a, &rd[k].r, item->number);
        if (part.full || brc_shape_count(ndim, part.overlap.count) == 0 ||
            !brc_chain_has_boxes(item->chain, ndim, part.chunk))
            return 0;
        grow_box(&rd[k], &part, k == 0, out->start, past);
    }
    for (int i = 0; i < ndim; i++)
        out->count[i] = past[i] - out->start[i];
    return 1;
}

enum { REFUSED_THERE = 1 }; /* brc_read_item.how: the device does not decode the chunk */

/* Describes a chunk that the device may decode: it is whole, and lies in one piece there. Returns 0
 * if it is not. */
static int chunk_there(brc_there_chunk *out, const region_read *rd, const brc_read_item *item,
                       brc_span stored)
{
    brc_region_part part;
    if (!goes_by_staging(rd) || rd->there->rooms == NULL || !rd->r.in_one_piece || rd->also > 0)
        return 0;
    const brc_device *d = &rd->there->device;
    brc_region_part_of(&part, rd->a, &rd->r, item->number);
    *out = (brc_there_chunk){.stored = stored, .len = item->len};
    out->dst = (uint8_t *)d->block.data + ((int64_t)d->origin + part.in_memory);
    return part.full;
}

/* Decodes a chunk on the device, as far as that costs less. Returns 0 if it has to be decoded in
 * the host's memory. */
static int take_there(const region_read *rd, const brc_read_item *item, brc_span stored,
                      brc_scratch *scratch, brc_error *err)
{
    brc_there_chunk one;
    if (item->how == REFUSED_THERE || !chunk_there(&one, rd, item, stored))
        return 0;
    const brc_there_memory memory = {&rd->there->device, rd->there->staging, rd->there->rooms};
    brc_there_decode(&memory, item->chain, scratch, 1, &one, err);
    if (one.rc < 0)
        return one.rc == BRC_EUNSUPPORTED ? 0 : one.rc;
    if (rd->stats != NULL)
        brc_count(&rd->stats->there, 1);
    return 1;
}

/* The same for many chunks of a region. */
static void reader_take_many(void *ctx, size_t n, brc_read_item *items, const brc_span *stored,
                             brc_scratch *scratch)
{
    brc_there_chunk chunks[BRC_ROUTE_MOST];
    brc_read_item *of[BRC_ROUTE_MOST];
    const region_read *rd = items->owner;
    size_t some = 0;
    (void)ctx;
    for (size_t i = 0; i < n; i++) {
        of[some] = &items[i];
        some += (size_t)chunk_there(&chunks[some], rd, &items[i], stored[i]);
    }
    if (some < 2)
        return;
    const brc_there_memory memory = {&rd->there->device, rd->there->staging, rd->there->rooms};
    brc_there_decode(&memory, items->chain, scratch, some, chunks, NULL);
    for (size_t i = 0; i < some; i++) {
        of[i]->is_taken = chunks[i].rc == BRC_OK;
        if (chunks[i].rc == BRC_EUNSUPPORTED)
            of[i]->how = REFUSED_THERE;
        if (rd->stats != NULL && chunks[i].rc == BRC_OK)
            brc_count(&rd->stats->there, 1);
    }
}

/* Decodes a chunk for a device into staging memory, and copies from there. */
static int reader_take(void *ctx, brc_read_item *item, brc_span stored, brc_scratch *scratch,
                       brc_error *err)
{
    const region_read *rd = item->owner;
    brc_region_part part;
    brc_box box = BRC_BOX_INIT;
    brc_stage *stage;
    uint8_t *memory;
    if (!goes_by_staging(rd))
        return 0;
    const int is_there = take_there(rd, item, stored, scratch, err);
    if (is_there != 0)
        return is_there;
    BRC_TRY(brc_staging_take(rd->there->staging, item->len, &stage, &memory, err));
    brc_buf chunk = BRC_FIXED_BUF(memory, item->len);
    BRC_TRY(brc_chain_decode(item->chain, scratch, stored,
                             reader_box(ctx, item, &box) ? &box : NULL, &chunk, err));
    if (chunk.len != item->len)
        return brc_fail(err, BRC_ECORRUPT, "the chunk decodes to %zu bytes, not %zu", chunk.len,
                        item->len);
    brc_region_part_of(&part, rd->a, &rd->r, item->number);
    BRC_TRY(put_there(rd, &part, memory, err));
    BRC_TRY(brc_staging_give(rd->there->staging, stage, err));
    return 1;
}

static void reader_name(void *ctx, const brc_read_item *item, brc_error *err)
{
    (void)ctx;
    const region_read *rd = item->owner;
    uint64_t index[BRC_MAX_NDIM];
    if (rd->a->meta.readable == BRC_READABLE_IN_PART)
        brc_context(err, "decoded without the codecs that are not known here");
    brc_region_chunk(&rd->r, rd->a->meta.ndim, item->number, index);
    brc_array_name_chunk(rd->a, index, err);
}

/* Reads regions that were begun and belong to one repository. */
static int read_regions(region_read *reads, size_t n, brc_error *err)
{
    region_reader reader = {.reads = reads, .n = n};
    brc_read_ops ops = {.ctx = &reader,
                        .list = reader_list,
                        .open = reader_open,
                        .place = reader_place,
                        .box = reader_box,
                        .passed = reader_passed,
                        .name = reader_name};
    breccia *repo = reads[0].a->session->repo;
    uint64_t chunks = 0, bytes = 0;
    for (size_t i = 0; i < n; i++) {
        reads[i].fill = (brc_span){reads[i].a->meta.fill.data, reads[i].a->meta.fill.len};
        bytes += brc_region_bytes(reads[i].a, &reads[i].r);
        if (goes_by_staging(&reads[i]))
            ops.take = reader_take;
        if (goes_by_staging(&reads[i]) && reads[i].there->rooms != NULL)
            ops.take_many = reader_take_many;
    }
    join_regions(reads, n);
    for (size_t i = 0; i < n; i += reads[i].also + 1)
        chunks += reads[i].r.nchunks;
    if (chunks == 0)
        return BRC_OK;
    brc_task task = brc_task_begin(repo, "read", bytes);
    int rc = resolve_all(&reader, chunks, err);
    if (rc == BRC_OK)
        rc = brc_flow_read(&repo->pipe, repo->store, &ops, err);
    brc_task_end(repo, &task, rc);
    for (size_t i = 0; i < n; i++)
        free(reads[i].ids);
    free(reader.ids);
    return rc;
}

/* Reads one region within a transaction. */
static int read_one_region(brc_array *a, const brc_region *r, void *dst, brc_error *err)
{
    region_read one = {.a = a, .r = *r, .dst = dst};
    return read_regions(&one, 1, err);
}

int brc_array_read_chunks(brc_array *a, size_t n, const uint64_t *indexes, uint8_t *const *memory,
                          brc_error *err)
{
    const brc_meta *m = &a->meta;
    uint64_t whole[BRC_MAX_NDIM];
    void *p;
    int rc = BRC_OK;
    for (int i = 0; i < m->ndim; i++)
        whole[i] = brc_grid_round_up(&m->grid, i, m->shape[i]);
    BRC_TRY(brc_new_array(&p, n, sizeof(region_read), err));
    region_read *reads = p;
    for (size_t i = 0; i < n && rc == BRC_OK; i++) {
        brc_sel sel = {.size = sizeof(brc_sel), .ndim = m->ndim};
        brc_grid_chunk(&m->grid, indexes + i * (size_t)m->ndim, sel.start, sel.count);
        for (int k = 0; k < m->ndim; k++)
            sel.step[k] = 1;
        reads[i].a = a;
        reads[i].dst = memory[i];
        rc = brc_region_init(&reads[i].r, a, &sel, whole, NULL, err);
    }
    if (rc == BRC_OK)
        rc = read_regions(reads, n, err);
    free(p);
    return rc;
}

/* Reads elements of variable length: makes a table of spans first, then packs all elements. */
static int read_variable(brc_array *a, const brc_region *r, brc_buf *out, brc_error *err)
{
    void *table = NULL, *kept = NULL;
    size_t n;
    int rc;
    if (!brc_to_size(brc_sel_count(&r->sel), &n) || !brc_to_size(r->nchunks, &n))
        return brc_fail(err, BRC_ELIMIT, "%s: the selection is too large for memory", a->path);
    BRC_GO(brc_new_array(&table, (size_t)brc_sel_count(&r->sel), sizeof(brc_span), err));
    BRC_GO(brc_new_array(&kept, (size_t)r->nchunks, sizeof(void *), err));
    region_read one = {.a = a, .r = *r, .dst = table, .kept = kept};
    BRC_GO(read_regions(&one, 1, err));
    rc = brc_elements_pack(out, table, brc_sel_count(&r->sel), err);
done:
    for (uint64_t i = 0; kept != NULL && i < r->nchunks; i++)
        free(((void **)kept)[i]);
    free(kept);
    free(table);
    return rc;
}

/* ---- the public functions -------------------------------- */

/* Copies positions that were read into host memory to the device. */
static int put_held(const region_read *rd, brc_error *err)
{
    const region_device *there = rd->there;
    BRC_TRY(brc_device_put(&there->device, rd->r.axes, rd->r.sel.count, brc_array_unit(rd->a), 0,
                           there->strides, there->held, rd->r.strides, err));
    return brc_device_wait(&there->device, err);
}

/* Prepares a read into memory that the processor does not reach: chunks go there by staging
 * memory, and positions by host memory for all of them. */
static int open_device_read(region_read *rd, const brc_memory *memory, brc_error *err)
{
    const breccia *repo = rd->a->session->repo;
    void *p;
    BRC_TRY(brc_new(&p, sizeof(region_device), err));
    region_device *there = rd->there = p;
    BRC_TRY(brc_device_of(&there->device, rd->a, memory, rd->stats, err));
    if (rd->r.places == NULL) {
        if (repo->registry->nthere > 0)
            BRC_TRY(brc_staging_there(&there->rooms, &there->device, repo->pipe.nworkers, err));
        return brc_staging_new(&there->staging, &there->device, repo->registry,
                               repo->pipe.nworkers, err);
    }
    BRC_TRY(brc_new_array(&p, (size_t)brc_sel_count(&rd->r.sel), brc_array_unit(rd->a), err));
    rd->dst = there->held = p;
    memcpy(there->strides, rd->r.strides, sizeof(there->strides));
    brc_strides_packed(rd->r.axes, rd->r.sel.count, brc_array_unit(rd->a), rd->r.strides);
    return BRC_OK;
}

static int open_read(region_read *rd, const brc_io *io, brc_error *err)
{
    brc_array *a = io->array;
    brc_memory memory;
    rd->a = a;
    rd->stats = brc_io_stats(io);
    BRC_TRY(brc_region_of_io(&rd->r, &memory, io, NULL, BRC_MEMORY_OUT, err));
    rd->dst = memory.origin;
    BRC_TRY(brc_stats_check(rd->stats, err));
    if (brc_meta_is_variable(&a->meta))
        return brc_fail(err, BRC_EINVAL,
                        "%s has elements of variable length: read them to the end of a brc_buf "
                        "(brc_io.out)",
                        a->path);
    int rc = brc_memory_fits(io->buffer, rd->r.axes, rd->r.sel.count, a->meta.type->item_size,
                             BRC_MEMORY_OUT, err);
    if (rc < 0)
        brc_context(err, "%s", a->path);
    else if (!brc_device_is_host(a->session->repo->registry, memory.device))
        rc = open_device_read(rd, &memory, err);
    return rc;
}

/* Returns `rc`, or the error of the copies to devices. */
static int end_device_reads(region_read *reads, size_t n, int rc, brc_error *err)
{
    for (size_t i = 0; i < n; i++) {
        region_device *there = reads[i].there;
        if (there == NULL)
            continue;
        if (rc == BRC_OK && there->held != NULL)
            rc = put_held(&reads[i], err);
        rc = brc_staging_end(there->rooms, rc, err);
        rc = brc_staging_end(there->staging, rc, err);
        free(there->held);
        free(there);
        reads[i].there = NULL;
        reads[i].dst = NULL;
    }
    return rc;
}

/* Reads n regions, all of them into memory of the caller. */
static int read_ios(region_read *reads, const brc_io *io, size_t n, brc_error *err)
{
    int rc = BRC_OK;
    for (size_t i = 0; i < n && rc == BRC_OK; i++)
        rc = open_read(&reads[i], brc_io_at(io, i), err);
    if (rc == BRC_OK)
        rc = read_regions(reads, n, err);
    BRC_TRY(end_device_reads(reads, n, rc, err));
    for (size_t i = 0; i < n; i++) {
        const brc_io *one = brc_io_at(io, i);
        if (one->buffer->strides == NULL && reads[i].dst != NULL)
            brc_dtype_native(one->array->meta.type, reads[i].dst,
                             one->buffer->len - one->buffer->offset);
    }
    return BRC_OK;
}

static int read_packed(brc_array *a, const brc_region *r, brc_buf *out, brc_error *err)
{
    uint64_t bytes;
    size_t len;
    if (brc_meta_is_variable(&a->meta))
        return read_variable(a, r, out, err);
    if (!brc_shape_bytes(a->meta.ndim, r->sel.count, a->meta.type->item_size, &bytes) ||
        !brc_to_size(bytes, &len))
        return brc_fail(err, BRC_ELIMIT, "%s: the selection is too large for memory", a->path);
    if (len == 0) /* out->data may be NULL then */
        return BRC_OK;
    BRC_TRY(brc_buf_reserve(out, len, err));
    BRC_TRY(read_one_region(a, r, out->data + out->len, err));
    out->len += len;
    return BRC_OK;
}

int brc_array_read_canonical(brc_array *a, const brc_sel *sel, brc_buf *out, brc_error *err)
{
    brc_region r;
    BRC_TRY(brc_region_init(&r, a, sel, NULL, NULL, err));
    return read_packed(a, &r, out, err);
}

/* Appends the elements of a region, of any data type. */
static int read_appended(const brc_io *io, brc_error *err)
{
    brc_array *a = io->array;
    const size_t start = io->out->len;
    brc_region r = {0};
    int rc = brc_region_select(&r, io, NULL, NULL, err);
    if (rc == BRC_OK)
        rc = read_packed(a, &r, io->out, err);
    brc_region_end(&r);
    if (rc == BRC_OK && io->out->len > start && !brc_meta_is_variable(&a->meta))
        brc_dtype_native(a->meta.type, io->out->data + start, io->out->len - start);
    return rc;
}

int brc_array_read_elements(brc_array *a, const brc_sel *sel, brc_buf *out, brc_error *err)
{
    const brc_io io = {.size = sizeof(io), .array = a, .sel = sel, .out = out};
    return brc_read(&io, 1, err);
}

/* Reads regions in order, those that follow each other into memory of the caller together. */
static int read_mixed(region_read *reads, const brc_io *io, size_t n, brc_error *err)
{
    for (size_t i = 0, end; i < n; i = end) {
        for (end = i; end < n && brc_io_out(brc_io_at(io, end)) == NULL; end++)
            ;
        BRC_TRY(end > i ? read_ios(reads + i, brc_io_at(io, i), end - i, err)
                        : read_appended(brc_io_at(io, end++), err));
    }
    return BRC_OK;
}

int brc_io_check(const brc_io *io, size_t n, int writes, brc_error *err)
{
    brc_io own;
    for (size_t i = 0; i < n; i++) {
        const brc_io *one = brc_io_at(io, i);
        if (one->size != io->size || one->size == 0)
            return brc_fail(err, BRC_EINVAL, "all brc_io of a batch must have the same size");
        BRC_TRY(brc_sized_in(&own, sizeof(own), offsetof(brc_io, at), one, "brc_io", err));
        if (one->array == NULL || (one->buffer == NULL) == (own.out == NULL))
            return brc_fail(err, BRC_EINVAL, "a brc_io needs an array, and a buffer or, to read, "
                                             "a brc_buf");
        if (writes && own.out != NULL)
            return brc_fail(err, BRC_EINVAL, "a brc_io that writes needs a buffer");
        if (one->array->session->repo != io->array->session->repo)
            return brc_fail(err, BRC_EINVAL, "all arrays of a batch must belong to one repository");
    }
    return BRC_OK;
}

/* Looks all arrays up in one transaction, so that they have one state. */
int brc_read(const brc_io *io, size_t n, brc_error *err)
{
    void *p = NULL;
    region_read one = {0};
    size_t begun = 0;
    int rc;
    if (n == 0)
        return BRC_OK;
    BRC_TRY(brc_io_check(io, n, 0, err));
    if (n > 1)
        BRC_TRY(brc_new_array(&p, n, sizeof(region_read), err));
    region_read *reads = n > 1 ? p : &one;
    for (; begun < n; begun++)
        BRC_GO(brc_array_begin_read(brc_io_at(io, begun)->array, err));
    rc = read_mixed(reads, io, n, err);
done:
    for (size_t i = 0; i < n; i++)
        brc_region_end(&reads[i].r);
    while (begun > 0)
        brc_array_end_read(brc_io_at(io, --begun)->array);
    free(p);
    return rc;
}

int brc_array_read(brc_array *a, const brc_sel *sel, void *dst, size_t len, brc_error *err)
{
    brc_buffer buffer = {.size = sizeof(buffer), .data = dst, .len = len};
    const brc_io io = {.size = sizeof(io), .array = a, .sel = sel, .buffer = &buffer};
    return brc_read(&io, 1, err);
}
