#include "region_write.h"

#include <search.h>
#include <stdlib.h>
#include <string.h>

#include "../base/alloc.h"
#include "../nd/buffer.h"
#include "element_chunk.h"
#include "old_chunks.h"
#include "span_table.h"

typedef struct region_writer {
    brc_region_write *writes;
    size_t n, at;
    void *on_the_way; /* of tsearch(): items that are not done, by chunk; of several regions */
    const brc_write_turn *turn; /* NULL: within changes of the arrays                        */
} region_writer;

/* ---- what is to be written, described -------------------------------- */

static int describe_fixed(brc_region_write *rw, const brc_io *io, const brc_memory *m,
                          brc_error *err)
{
    const brc_array *a = rw->a;
    int rc = brc_memory_fits(io->buffer, rw->r.axes, rw->r.sel.count, a->meta.type->item_size,
                             BRC_MEMORY_IN, err);
    if (rc < 0)
        brc_context(err, "%s", a->path);
    rw->src = m->origin;
    return rc;
}

/* Packed elements; with zero strides (a fill) there is one. */
static int describe_variable(brc_region_write *rw, const brc_memory *m, brc_error *err)
{
    const brc_array *a = rw->a;
    for (int i = 0; m->strides != NULL && i < rw->r.axes; i++)
        if (m->strides[i] != 0)
            return brc_fail(err, BRC_EINVAL, "%s: elements of variable length have no strides",
                            a->path);
    rw->packed = (brc_span){m->origin, m->len};
    if (rw->r.nchunks > 0 || m->strides != NULL)
        return BRC_OK;
    int rc = brc_elements_find(NULL, 0, rw->packed, err);
    if (rc < 0)
        brc_context(err, "%s", a->path);
    return rc;
}

int brc_region_write_of(brc_region_write *rw, const brc_io *io, const uint64_t *shape,
                        brc_error *err)
{
    brc_array *a = rw->a = io->array;
    brc_memory m;
    BRC_TRY(brc_array_can_write(a, err));
    BRC_TRY(brc_region_of_io(&rw->r, &m, io, shape, BRC_MEMORY_IN, err));
    return brc_meta_is_variable(&a->meta) ? describe_variable(rw, &m, err)
                                          : describe_fixed(rw, io, &m, err);
}

uint64_t brc_chunks_memory(const brc_array *a, uint64_t chunks)
{
    const uint64_t elements = brc_shape_count(a->meta.ndim, a->meta.grid.chunk);
    return brc_mul_capped(brc_mul_capped(elements, 2 * brc_array_unit(a)), chunks);
}

/* ---- chunks that several regions meet -------------------------------- */

/* Two handles of one array have one row in the draft. */
static int chunk_order(const void *x, const void *y)
{
    const brc_write_item *a = x, *b = y;
    const brc_array *of_a = ((const brc_region_write *)a->owner)->a;
    const brc_array *of_b = ((const brc_region_write *)b->owner)->a;
    if (of_a->row != of_b->row)
        return of_a->row < of_b->row ? -1 : 1;
    return brc_index_order(of_a->meta.ndim, a->index, b->index);
}

/* 1: none is on its way that is of the same chunk; this one is now. */
static int set_out(region_writer *w, brc_write_item *item, brc_error *err)
{
    if (w->n == 1)
        return 1;
    brc_write_item **slot = tsearch(item, &w->on_the_way, chunk_order);
    if (slot == NULL)
        return brc_nomem(err);
    return *slot == item;
}

static void arrive(region_writer *w, const brc_write_item *item)
{
    if (w->n > 1)
        tdelete(item, &w->on_the_way, chunk_order);
}

static void keep_written(void *item)
{
    (void)item; /* it belongs to the flow */
}

/* ---- listed, chunk by chunk -------------------------------- */

/* Before the region's first chunk. */
static int find_elements(brc_region_write *rw, brc_error *err)
{
    uint64_t n = 1;
    if (!brc_meta_is_variable(&rw->a->meta) || rw->table != NULL)
        return BRC_OK;
    for (int i = 0; i < rw->r.axes; i++)
        if (rw->r.strides[i] != 0)
            n = brc_sel_count(&rw->r.sel);
    if (n > SIZE_MAX / sizeof(brc_span))
        return brc_fail(err, BRC_ELIMIT, "%s: the selection is too large for memory", rw->a->path);
    BRC_TRY(brc_new_array(&rw->table, (size_t)n, sizeof(brc_span), err));
    int rc = brc_elements_find(rw->table, n, rw->packed, err);
    if (rc < 0)
        brc_context(err, "%s", rw->a->path);
    return rc;
}

/* 1; 0 if it must wait for an earlier region's change of the chunk. */
static int list_covered(region_writer *w, brc_region_write *rw, brc_write_item *item,
                        brc_old_chunks *old, brc_error *err)
{
    brc_region_part part;
    BRC_TRY(find_elements(rw, err));
    item->owner = rw;
    item->number = rw->next;
    brc_region_chunk(&rw->r, rw->a->meta.ndim, item->number, item->index);
    int rc = set_out(w, item, err);
    if (rc <= 0)
        return rc;
    rw->next++;
    brc_region_part_of(&part, rw->a, &rw->r, item->number);
    BRC_TRY(brc_array_item(rw->a, part.chunk, item, err));
    item->len = (size_t)part.elements * brc_array_unit(rw->a);
    if (!part.overlap.whole)
        BRC_TRY(brc_old_add(old, rw->a, item, part.index, err));
    return 1;
}

/* A job's worth of chunks. */
static int writer_list(void *ctx, brc_write_item *items, size_t cap, size_t *n, brc_error *err)
{
    region_writer *w = ctx;
    brc_old_chunks old;
    size_t bytes = 0;
    int rc = 1;
    old.n = 0;
    BRC_TRY(brc_task_step(w->writes[0].a->session->repo, 0, err));
    for (*n = 0; *n < cap && bytes < BRC_WRITE_BYTES && w->at < w->n;) {
        brc_region_write *rw = &w->writes[w->at];
        if (rw->next == rw->r.nchunks) {
            BRC_TRY(brc_old_find(&old, rw->a, err));
            w->at++;
            continue;
        }
        rc = list_covered(w, rw, &items[*n], &old, err);
        if (rc <= 0)
            break;
        bytes += items[(*n)++].len;
    }
    BRC_TRY(rc);
    if (w->at < w->n)
        BRC_TRY(brc_old_find(&old, w->writes[w->at].a, err));
    return rc == 0 && *n == 0 ? BRC_WINDOW_LATER : BRC_OK;
}

/* ---- on the pool -------------------------------- */

static void put_selected(const brc_region_write *rw, const brc_region_part *part, void *chunk)
{
    brc_region_put(rw->a, &rw->r, part, rw->table != NULL ? rw->table : rw->src, chunk);
}

void brc_fill_past(const brc_array *a, const uint64_t *index, const uint64_t *keep, void *elements,
                   size_t unit, const void *fill)
{
    const int ndim = a->meta.ndim;
    uint64_t corner[BRC_MAX_NDIM], chunk[BRC_MAX_NDIM];
    int64_t strides[BRC_MAX_NDIM] = {0};
    brc_grid_chunk(&a->meta.grid, index, corner, chunk);
    brc_strides_packed(ndim, chunk, unit, strides);
    for (int i = 0; i < ndim; i++) {
        const uint64_t all = chunk[i], inside = keep[i] > corner[i] ? keep[i] - corner[i] : 0;
        if (inside >= all)
            continue;
        chunk[i] -= inside;
        brc_fill_box(ndim, chunk, unit, (uint8_t *)elements + inside * (uint64_t)strides[i],
                     strides, fill);
        chunk[i] = all;
    }
}

static int gather_fixed(const brc_region_write *rw, const brc_region_part *part,
                        brc_write_item *item, brc_scratch *scratch, brc_error *err)
{
    const brc_meta *m = &rw->a->meta;
    const size_t unit = m->type->item_size;
    item->len = (size_t)part->elements * unit;
    int normalizes = brc_dtype_normalizes(m->type);
    if (part->full && rw->r.in_one_piece && !normalizes) {
        item->data = rw->src + part->in_memory;
        return BRC_OK;
    }
    BRC_TRY(brc_buf_reserve(&item->own, item->len, err));
    if (item->old.found) {
        BRC_TRY(brc_write_old(item, scratch, &item->own, err));
        if (item->own.len != item->len)
            return brc_fail(err, BRC_ECORRUPT, "its bytes have the wrong length");
        if (rw->keep != NULL)
            brc_fill_past(rw->a, item->index, rw->keep, item->own.data, unit, m->fill.data);
    } else if (!part->full) {
        brc_fill_run(item->own.data, part->elements, unit, m->fill.data);
    }
    item->own.len = item->len;
    put_selected(rw, part, item->own.data);
    if (normalizes) /* bits that carry no value must not make equal chunks differ */
        brc_dtype_normalize(m->type, item->own.data, (size_t)part->elements);
    item->data = item->own.data;
    return BRC_OK;
}

static int gather_variable(const brc_region_write *rw, const brc_region_part *part,
                           brc_write_item *item, brc_scratch *scratch, brc_error *err)
{
    void *table;
    const brc_span fill = {rw->a->meta.fill.data, rw->a->meta.fill.len};
    BRC_TRY(brc_new_array(&table, (size_t)part->elements, sizeof(brc_span), err));
    if (rw->keep != NULL)
        brc_fill_past(rw->a, item->index, rw->keep, table, sizeof(brc_span), &fill);
    put_selected(rw, part, table);
    int rc = brc_gather_elements(item, table, &rw->a->meta, scratch, err);
    free(table);
    return rc;
}

static int writer_gather(void *ctx, brc_write_item *item, brc_scratch *scratch, brc_error *err)
{
    (void)ctx;
    const brc_region_write *rw = item->owner;
    brc_region_part part;
    brc_region_part_of(&part, rw->a, &rw->r, item->number);
    return brc_meta_is_variable(&rw->a->meta) ? gather_variable(rw, &part, item, scratch, err)
                                              : gather_fixed(rw, &part, item, scratch, err);
}

/* ---- behind the flow -------------------------------- */

int brc_array_put_chunk(brc_array *a, const uint64_t *index, const brc_oid *id, brc_error *err)
{
    uint8_t key[BRC_CHUNK_KEY_MAX];
    size_t len = brc_chunk_key_encode(key, a->meta.ndim, index);
    brc_store *store = brc_array_store(a);
    /* Without a committed map and rows below there is nothing for a row to hide. */
    if (id == NULL && brc_oid_is_zero(&a->entry.map) && a->stack.n == 1)
        return a->row_has_chunks ? brc_draft_chunk_clear(store, a->row, key, len, err) : BRC_OK;
    BRC_TRY(brc_draft_chunk_put(store, a->row, key, len, id, err));
    a->row_has_chunks = 1;
    return BRC_OK;
}

/* Other handles of the array, in later regions, look for its chunks too. */
static int put_written(region_writer *w, const brc_region_write *rw, const uint64_t *index,
                       const brc_oid *id, brc_error *err)
{
    const int before = rw->a->row_has_chunks;
    BRC_TRY(brc_array_put_chunk(rw->a, index, id, err));
    for (size_t i = w->at; i < w->n && rw->a->row_has_chunks != before; i++)
        if (w->writes[i].a->row == rw->a->row)
            w->writes[i].a->row_has_chunks = 1;
    return BRC_OK;
}

static int writer_done(void *ctx, const brc_write_item *item, brc_error *err)
{
    region_writer *w = ctx;
    brc_region_write *rw = item->owner;
    arrive(w, item);
    BRC_TRY(put_written(w, rw, item->index, item->is_fill ? NULL : &item->id, err));
    if (++rw->done == rw->r.nchunks) {
        free(rw->table);
        rw->table = NULL;
    }
    /* Whoever listens may take long: not with the lock in hand. */
    return w->turn != NULL ? BRC_OK : brc_region_step(rw->a, &rw->r, &rw->told, rw->done, err);
}

static int writer_now(void *ctx, const brc_write_item *item, brc_oid *id, brc_error *err)
{
    (void)ctx;
    const brc_region_write *rw = item->owner;
    return brc_array_chunk_ids(rw->a, 1, item->index, id, err);
}

static void writer_name(void *ctx, const brc_write_item *item, brc_error *err)
{
    (void)ctx;
    const brc_region_write *rw = item->owner;
    brc_array_name_chunk(rw->a, item->index, err);
}

int brc_regions_write(brc_region_write *writes, size_t n, const brc_write_turn *turn,
                      brc_error *err)
{
    region_writer w = {.writes = writes, .n = n, .turn = turn};
    brc_write_ops ops = {
        .ctx = &w,
        .list = writer_list,
        .gather = writer_gather,
        .done = writer_done,
        .name = writer_name,
        .turn = turn,
        .now = writer_now,
    };
    breccia *repo = writes[0].a->session->repo;
    uint64_t chunks = 0;
    for (size_t i = 0; i < n; i++)
        chunks |= writes[i].r.nchunks;
    if (chunks == 0)
        return BRC_OK;
    int rc = brc_flow_write(&repo->pipe, repo->store, &ops, err);
    tdestroy(w.on_the_way, keep_written);
    for (size_t i = 0; i < n; i++) {
        free(writes[i].table);
        writes[i].table = NULL;
    }
    return rc;
}
