/* Writing a region. A chunk that is covered is never read; one that is covered in
 * part is read, changed in memory and written; the caller's memory is only read. */
#include <stdlib.h>
#include <string.h>

#include "../base/alloc.h"
#include "element_chunk.h"
#include "old_chunks.h"
#include "span_table.h"

typedef struct region_writer {
    brc_array *a;
    const brc_region *r;
    const uint8_t *src; /* elements, or the table of their spans */
    uint64_t next, told;
    brc_span fill;
} region_writer;

/* ---- what is to be written -------------------------------- */

static int list_covered(region_writer *w, brc_write_item *item, brc_old_chunks *old,
                        brc_error *err)
{
    brc_region_part part;
    brc_form *form;
    item->number = w->next++;
    brc_region_part_of(&part, w->a, w->r, item->number);
    BRC_TRY(brc_array_form(w->a, part.chunk, &form, &item->encoding, err));
    item->chain = form->chain;
    item->digest = form->digest;
    item->elements = form->elements;
    return part.overlap.whole ? BRC_OK : brc_old_add(old, w->a, item, part.index, err);
}

static int writer_list(void *ctx, brc_write_item *items, size_t cap, size_t *n, brc_error *err)
{
    region_writer *w = ctx;
    brc_old_chunks old;
    old.n = 0;
    BRC_TRY(brc_task_step(w->a->session->repo, 0, err));
    for (*n = 0; *n < cap && w->next < w->r->nchunks; ++*n)
        BRC_TRY(list_covered(w, &items[*n], &old, err));
    return brc_old_find(&old, w->a, err);
}

/* ---- on the pool -------------------------------- */

static void put_selected(const region_writer *w, const brc_region_part *part, uint8_t *chunk)
{
    brc_copy_box(w->a->meta.ndim, part->overlap.count, brc_array_unit(w->a), chunk + part->in_chunk,
                 part->strides, w->src + part->in_memory, w->r->strides);
}

static int gather_fixed(const region_writer *w, const brc_region_part *part, brc_write_item *item,
                        brc_scratch *scratch, brc_error *err)
{
    size_t unit = w->a->meta.type->item_size;
    item->len = (size_t)part->elements * unit;
    int normalizes = brc_dtype_normalizes(w->a->meta.type);
    if (part->full && w->r->in_one_piece && !normalizes) {
        item->data = w->src + part->in_memory;
        return BRC_OK;
    }
    BRC_TRY(brc_buf_reserve(&item->own, item->len, err));
    if (item->old.found) {
        BRC_TRY(brc_write_old(item, scratch, &item->own, err));
        if (item->own.len != item->len)
            return brc_fail(err, BRC_ECORRUPT, "its bytes have the wrong length");
    } else if (!part->full) {
        brc_fill_run(item->own.data, part->elements, unit, w->fill.data);
    }
    item->own.len = item->len;
    put_selected(w, part, item->own.data);
    if (normalizes) /* bits that carry no value must not make equal chunks differ */
        brc_dtype_normalize(w->a->meta.type, item->own.data, (size_t)part->elements);
    item->data = item->own.data;
    return BRC_OK;
}

static int gather_variable(const region_writer *w, const brc_region_part *part,
                           brc_write_item *item, brc_scratch *scratch, brc_error *err)
{
    void *table;
    BRC_TRY(brc_new_array(&table, (size_t)part->elements, sizeof(brc_span), err));
    put_selected(w, part, table);
    int rc = brc_gather_elements(item, table, &w->a->meta, scratch, err);
    free(table);
    return rc;
}

static int writer_gather(void *ctx, brc_write_item *item, brc_scratch *scratch, brc_error *err)
{
    const region_writer *w = ctx;
    brc_region_part part;
    brc_region_part_of(&part, w->a, w->r, item->number);
    return brc_meta_is_variable(&w->a->meta) ? gather_variable(w, &part, item, scratch, err)
                                             : gather_fixed(w, &part, item, scratch, err);
}

/* ---- behind the flow -------------------------------- */

int brc_array_put_chunk(brc_array *a, const uint64_t *index, const brc_oid *id, brc_error *err)
{
    uint8_t key[BRC_CHUNK_KEY_MAX];
    size_t len = brc_chunk_key_encode(key, a->meta.ndim, index);
    brc_store *store = brc_array_store(a);
    /* Without a committed map there is nothing for a row to hide. */
    if (id == NULL && brc_oid_is_zero(&a->entry.map))
        return a->row_has_chunks ? brc_draft_chunk_clear(store, a->row, key, len, err) : BRC_OK;
    BRC_TRY(brc_draft_chunk_put(store, a->row, key, len, id, err));
    a->row_has_chunks = 1;
    return BRC_OK;
}

static int writer_done(void *ctx, const brc_write_item *item, brc_error *err)
{
    region_writer *w = ctx;
    uint64_t index[BRC_MAX_NDIM];
    brc_region_chunk(w->r, w->a->meta.ndim, item->number, index);
    BRC_TRY(brc_array_put_chunk(w->a, index, item->is_fill ? NULL : &item->id, err));
    return brc_region_step(w->a, w->r, &w->told, item->number + 1, err);
}

static void writer_name(void *ctx, const brc_write_item *item, brc_error *err)
{
    const region_writer *w = ctx;
    uint64_t index[BRC_MAX_NDIM];
    brc_region_chunk(w->r, w->a->meta.ndim, item->number, index);
    brc_array_name_chunk(w->a, index, err);
}

int brc_array_write_region(brc_array *a, const brc_region *r, const void *src, brc_error *err)
{
    region_writer w = {.a = a, .r = r, .src = src};
    if (r->nchunks == 0)
        return BRC_OK;
    w.fill = (brc_span){a->meta.fill.data, a->meta.fill.len};
    brc_write_ops ops = {
        .ctx = &w,
        .len = (size_t)brc_shape_count(a->meta.ndim, a->meta.grid.chunk) * brc_array_unit(a),
        .fill = brc_meta_absent_chunk(&a->meta),
        .list = writer_list,
        .gather = writer_gather,
        .done = writer_done,
        .name = writer_name,
    };
    brc_task task = brc_task_begin(a->session->repo, "write", brc_region_bytes(a, r));
    int rc = brc_flow_write(&a->session->repo->pipe, brc_array_store(a), &ops, err);
    brc_task_end(a->session->repo, &task, rc);
    return rc;
}

/* ---- the public functions -------------------------------- */

static int write_fixed(brc_array *a, const brc_region *r, const brc_io *io, brc_error *err)
{
    uint64_t want;
    if (io->strides == NULL &&
        (!brc_shape_bytes(a->meta.ndim, r->sel.count, a->meta.type->item_size, &want) ||
         want != io->len))
        return brc_fail(err, BRC_EINVAL, "%s: the selection has %llu bytes, but %zu were given",
                        a->path, (unsigned long long)want, io->len);
    return brc_array_write_region(a, r, io->data, err);
}

/* Packed elements; with zero strides (a fill) there is one. */
static int write_elements(brc_array *a, const brc_region *r, const brc_io *io, brc_error *err)
{
    void *table;
    uint64_t n = io->strides == NULL ? brc_sel_count(&r->sel) : 1;
    size_t len = io->len;
    for (int i = 0; io->strides != NULL && i < a->meta.ndim; i++)
        if (io->strides[i] != 0)
            return brc_fail(err, BRC_EINVAL, "%s: elements of variable length have no strides",
                            a->path);
    if (n > SIZE_MAX / sizeof(brc_span))
        return brc_fail(err, BRC_ELIMIT, "%s: the selection is too large for memory", a->path);
    BRC_TRY(brc_new_array(&table, (size_t)n, sizeof(brc_span), err));
    if (io->strides != NULL) /* one element, everywhere: it carries its own length */
        len = 4 + (size_t)brc_get_u32le(io->data);
    int rc = brc_elements_find(table, n, (brc_span){io->data, len}, err);
    if (rc < 0)
        brc_context(err, "%s", a->path);
    else
        rc = brc_array_write_region(a, r, table, err);
    free(table);
    return rc;
}

static int write_one_io(const brc_io *io, brc_error *err)
{
    brc_array *a = io->array;
    brc_region r;
    BRC_TRY(brc_array_begin(a, err));
    int rc = brc_array_can_write(a, err);
    if (rc == BRC_OK)
        rc = brc_region_init(&r, a, io->sel, NULL, io->strides, err);
    if (rc == BRC_OK)
        rc = brc_meta_is_variable(&a->meta) ? write_elements(a, &r, io, err)
                                            : write_fixed(a, &r, io, err);
    return brc_array_end(a, rc, err);
}

int brc_write_batch(const brc_io *io, size_t n, brc_error *err)
{
    if (n == 0)
        return BRC_OK;
    brc_store *store = brc_array_store(io[0].array);
    for (size_t i = 1; i < n; i++)
        if (brc_array_store(io[i].array) != store)
            return brc_fail(err, BRC_EINVAL, "one batch writes to one repository");
    BRC_TRY(brc_store_begin(store, err));
    int rc = BRC_OK;
    for (size_t i = 0; i < n && rc == BRC_OK; i++)
        rc = write_one_io(&io[i], err);
    int end = brc_store_end(store, rc == BRC_OK, rc == BRC_OK ? err : NULL);
    return rc < 0 ? rc : end;
}

int brc_array_write(brc_array *a, const brc_sel *sel, const void *src, size_t len, brc_error *err)
{
    brc_io io = {a, sel, (void *)(uintptr_t)src, len, NULL};
    return write_one_io(&io, err);
}

int brc_array_fill(brc_array *a, const brc_sel *sel, const void *element, brc_error *err)
{
    static const int64_t still[BRC_MAX_NDIM];
    brc_io io = {a, sel, (void *)(uintptr_t)element, 0, still};
    return write_one_io(&io, err);
}
