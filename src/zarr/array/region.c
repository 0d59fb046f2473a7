#include "region.h"

#include <string.h>

#include "../../base/sized.h"

/* Tells whether whole chunks are contiguous in memory: every axis after the first one with more
 * than one element must have the strides of a packed chunk. */
static int region_in_one_piece(const brc_array *a, const brc_region *r)
{
    int64_t packed[BRC_MAX_NDIM];
    const brc_grid *grid = &a->meta.grid;
    if (!grid->regular || brc_meta_is_variable(&a->meta))
        return 0;
    brc_strides_packed(a->meta.ndim, grid->chunk, brc_array_unit(a), packed);
    for (int i = 0; i < a->meta.ndim; i++)
        if (r->sel.step[i] != 1 || (grid->chunk[i] > 1 && r->strides[i] != packed[i]))
            return 0;
    return 1;
}

/* Refuses the key of one of the array's chunks whose bytes are not a valid chunk. */
static int is_no_chunk(void *ctx, const char *key, const brc_oid *id, brc_error *err)
{
    const brc_array *a = ctx;
    const char *rest = key + strlen(a->path + 1) + (a->path[1] != '\0');
    uint64_t index[BRC_MAX_NDIM];
    int inside;
    if (id == NULL || !brc_meta_key_parse(&a->meta, rest, index, &inside) || !inside)
        return BRC_OK;
    return brc_fail(err, BRC_ECONFLICT,
                    "%s: the key '%.200s' was set to bytes that are not a valid chunk: set it "
                    "again, or delete it",
                    a->path, key);
}

/* Refuses to read or write elements while a client's bytes for their chunk are not a valid chunk:
 * these elements are not fill value. */
static int check_keys(const brc_array *a, brc_error *err)
{
    brc_buf below = BRC_BUF_INIT;
    if (!a->has_keys)
        return BRC_OK;
    int rc = brc_buf_printf(&below, err, "%s%s", a->path + 1, a->path[1] != '\0' ? "/" : "");
    if (rc == BRC_OK)
        rc = brc_draft_key_page(brc_array_store(a), a->session->draft.id, (const char *)below.data,
                                NULL, SIZE_MAX >> 1, is_no_chunk, (void *)(uintptr_t)a, err);
    brc_buf_dispose(&below);
    return rc;
}

/* Tells whether steps are longer than any chunk: each element is then in its own chunk, and the
 * chunks between may have no selected element. */
static int passes_over(const brc_region *r, int axis)
{
    return r->sel.step[axis] > r->grid->chunk[axis];
}

static int region_begin(brc_region *r, const brc_array *a, brc_error *err)
{
    memset(r, 0, sizeof(*r));
    if (brc_meta_must_decode(&a->meta, err) < 0) {
        brc_context(err, "%s cannot be decoded here", a->path);
        return BRC_EUNSUPPORTED;
    }
    r->axes = a->meta.ndim;
    r->grid = &a->meta.grid;
    return check_keys(a, err);
}

static void set_strides(brc_region *r, const brc_array *a, const int64_t *strides)
{
    if (strides != NULL)
        memcpy(r->strides, strides, (size_t)r->axes * sizeof(*strides));
    else
        brc_strides_packed(r->axes, r->sel.count, brc_array_unit(a), r->strides);
}

int brc_region_init(brc_region *r, const brc_array *a, const brc_sel *sel, const uint64_t *shape,
                    const int64_t *strides, brc_error *err)
{
    const brc_meta *m = &a->meta;
    BRC_TRY(region_begin(r, a, err));
    r->shape = shape != NULL ? shape : m->shape;
    if (sel != NULL)
        BRC_TRY(brc_sized_in(&r->sel, sizeof(r->sel), sizeof(r->sel), sel, "brc_sel", err));
    else
        brc_sel_of_shape(&r->sel, m->ndim, m->shape);
    BRC_TRY(brc_sel_check(&r->sel, m->ndim, r->shape, err));
    set_strides(r, a, strides);
    r->nchunks = 1;
    for (int i = 0; i < m->ndim; i++) {
        uint64_t n = r->sel.count[i];
        if (n == 0) {
            r->nchunks = 0;
            return BRC_OK;
        }
        uint64_t last = r->sel.start[i] + (n - 1) * r->sel.step[i];
        r->first[i] = brc_grid_find(&m->grid, i, r->sel.start[i]);
        r->chunks[i] = brc_grid_find(&m->grid, i, last) - r->first[i] + 1;
        r->met[i] = passes_over(r, i) ? n : r->chunks[i];
        if (!brc_mul_u64(r->nchunks, r->met[i], &r->nchunks))
            return brc_fail(err, BRC_ELIMIT, "the selection meets more than 2^64 chunks");
    }
    r->in_one_piece = region_in_one_piece(a, r);
    return BRC_OK;
}

/* Tells whether all axes are ranges, which form a box. */
static int is_box(const brc_at *at, const brc_array *a, brc_sel *sel)
{
    const int ndim = a->meta.ndim;
    if (at->ndim != ndim || at->flags != 0)
        return 0;
    for (int i = 0; i < ndim; i++)
        if (at->index[i] != NULL)
            return 0;
    *sel = (brc_sel){.size = sizeof(*sel), .ndim = ndim};
    memcpy(sel->start, at->start, sizeof(sel->start));
    memcpy(sel->count, at->count, sizeof(sel->count));
    memcpy(sel->step, at->step, sizeof(sel->step));
    return 1;
}

/* Initializes positions. */
static int region_init_at(brc_region *r, const brc_array *a, const brc_at *at,
                          const int64_t *strides, brc_error *err)
{
    brc_at own;
    brc_sel sel;
    BRC_TRY(brc_sized_in(&own, sizeof(own), sizeof(own), at, "brc_at", err));
    if (is_box(&own, a, &sel))
        return brc_region_init(r, a, &sel, NULL, strides, err);
    BRC_TRY(region_begin(r, a, err));
    int rc = brc_places_new(&r->places, &own, r->grid, a->meta.shape, err);
    if (rc < 0) {
        brc_context(err, "%s", a->path);
        return rc;
    }
    brc_sel_of_shape(&r->sel, a->meta.ndim, a->meta.shape);
    for (int i = 0; i < a->meta.ndim; i++)
        r->sel.count[i] = own.flags & BRC_AT_POINTS && i > 0 ? 1 : own.count[i];
    r->axes = own.flags & BRC_AT_POINTS ? 1 : a->meta.ndim;
    r->shape = a->meta.shape;
    set_strides(r, a, strides);
    r->nchunks = brc_places_chunks(r->places);
    return r->nchunks < UINT64_MAX
               ? BRC_OK
               : brc_fail(err, BRC_ELIMIT, "the selection meets more than 2^64 chunks");
}

int brc_region_select(brc_region *r, const brc_io *io, const uint64_t *shape,
                      const int64_t *strides, brc_error *err)
{
    const brc_at *at = brc_io_positions(io);
    if (at == NULL)
        return brc_region_init(r, io->array, io->sel, shape, strides, err);
    if (io->sel != NULL)
        return brc_fail(err, BRC_EINVAL, "a brc_io has a box or positions, not both");
    return region_init_at(r, io->array, at, strides, err);
}

int brc_region_of_io(brc_region *r, brc_memory *memory, const brc_io *io, const uint64_t *shape,
                     int way, brc_error *err)
{
    BRC_TRY(brc_memory_of(memory, io->buffer, way, err));
    return brc_region_select(r, io, shape, memory->strides, err);
}

void brc_region_end(brc_region *r)
{
    brc_places_free(r->places);
    r->places = NULL;
}

void brc_region_chunk(const brc_region *r, int ndim, uint64_t i, uint64_t *index)
{
    uint64_t piece[BRC_MAX_NDIM];
    if (r->places != NULL) {
        brc_places_piece(r->places, i, piece);
        brc_places_chunk(r->places, piece, index);
        return;
    }
    for (int d = ndim - 1; d >= 0; d--) {
        const uint64_t at = i % r->met[d];
        index[d] = passes_over(r, d)
                       ? brc_grid_find(r->grid, d, r->sel.start[d] + at * r->sel.step[d])
                       : r->first[d] + at;
        i /= r->met[d];
    }
}

uint64_t brc_region_bytes(const brc_array *a, const brc_region *r)
{
    uint64_t bytes;
    size_t item = a->meta.type->item_size > 0 ? a->meta.type->item_size : 1;
    return brc_shape_bytes(a->meta.ndim, r->sel.count, item, &bytes) && bytes > 0 ? bytes : 1;
}

int brc_region_step(brc_array *a, const brc_region *r, uint64_t *told, uint64_t chunks,
                    brc_error *err)
{
    double share = r->nchunks > 0 ? (double)chunks / (double)r->nchunks : 0;
    uint64_t done = (uint64_t)(share * (double)brc_region_bytes(a, r));
    uint64_t more = done > *told ? done - *told : 0;
    *told += more;
    return brc_task_step(a->session->repo, more, err);
}

/* Sets a chunk's index and shape. */
static void part_begin(brc_region_part *out, const brc_array *a, const uint64_t *index)
{
    const int ndim = a->meta.ndim;
    memcpy(out->index, index, (size_t)ndim * sizeof(*index));
    brc_grid_chunk(&a->meta.grid, index, out->corner, out->chunk);
    brc_strides_packed(ndim, out->chunk, brc_array_unit(a), out->strides);
    out->elements = brc_shape_count(ndim, out->chunk);
    out->in_memory = out->in_chunk = 0;
}

void brc_region_part_of(brc_region_part *out, const brc_array *a, const brc_region *r, uint64_t i)
{
    uint64_t index[BRC_MAX_NDIM];
    if (r->places == NULL) {
        brc_region_chunk(r, a->meta.ndim, i, index);
        brc_region_part_at(out, a, r, index);
        return;
    }
    brc_places_piece(r->places, i, out->piece);
    brc_places_chunk(r->places, out->piece, index);
    part_begin(out, a, index);
    out->full = 0;
    brc_places_bounds(r->places, out->piece, out->corner, out->chunk, &out->overlap);
}

void brc_region_part_at(brc_region_part *out, const brc_array *a, const brc_region *r,
                        const uint64_t *index)
{
    const int ndim = a->meta.ndim;
    part_begin(out, a, index);
    brc_overlap_box(&out->overlap, &r->sel, r->shape, out->corner, out->chunk);
    out->full = 1;
    for (int d = 0; d < ndim; d++) {
        out->full &= out->overlap.count[d] == out->chunk[d];
        out->in_memory += (int64_t)out->overlap.in_sel[d] * r->strides[d];
        out->in_chunk += (int64_t)out->overlap.in_chunk[d] * out->strides[d];
        out->strides[d] *= (int64_t)r->sel.step[d];
    }
}

static void move_places(const brc_array *a, const brc_region *r, const brc_region_part *part,
                        uint8_t *memory, uint8_t *chunk, const int64_t *strides, int to_chunk)
{
    const brc_places_move m = {r->places, part->piece, part->corner, brc_array_unit(a), memory,
                               chunk,     r->strides,  strides,      to_chunk};
    brc_places_copy(&m);
}

void brc_region_take(const brc_array *a, const brc_region *r, const brc_region_part *part,
                     uint8_t *memory, const uint8_t *chunk)
{
    if (r->places != NULL)
        move_places(a, r, part, memory, (uint8_t *)(uintptr_t)chunk, part->strides, 0);
    else
        brc_copy_box(a->meta.ndim, part->overlap.count, brc_array_unit(a),
                     memory + part->in_memory, r->strides, chunk + part->in_chunk, part->strides);
}

void brc_region_put(const brc_array *a, const brc_region *r, const brc_region_part *part,
                    const uint8_t *memory, uint8_t *chunk)
{
    if (r->places != NULL)
        move_places(a, r, part, (uint8_t *)(uintptr_t)memory, chunk, part->strides, 1);
    else
        brc_copy_box(a->meta.ndim, part->overlap.count, brc_array_unit(a), chunk + part->in_chunk,
                     part->strides, memory + part->in_memory, r->strides);
}

void brc_region_fill(const brc_array *a, const brc_region *r, const brc_region_part *part,
                     uint8_t *memory, const uint8_t *element)
{
    static const int64_t still[BRC_MAX_NDIM];
    if (r->places != NULL)
        move_places(a, r, part, memory, (uint8_t *)(uintptr_t)element, still, 0);
    else
        brc_fill_box(a->meta.ndim, part->overlap.count, brc_array_unit(a),
                     memory + part->in_memory, r->strides, element);
}

/* ==== span table ================================ */

int brc_element_next(brc_element_cursor *cursor, brc_span *out, brc_error *err)
{
    const uint8_t *data = cursor->packed.data;
    const size_t left = cursor->packed.len - cursor->at;
    if (left < 4)
        return brc_fail(err, BRC_EINVAL, "the bytes end before element %llu",
                        (unsigned long long)cursor->number);
    const size_t len = brc_get_u32le(data + cursor->at);
    if (len > left - 4)
        return brc_fail(err, BRC_EINVAL, "element %llu is longer than the bytes that are left",
                        (unsigned long long)cursor->number);
    *out = (brc_span){data + cursor->at, len + 4};
    cursor->at += len + 4;
    cursor->number++;
    return BRC_OK;
}

int brc_elements_end(const brc_element_cursor *cursor, brc_error *err)
{
    if (cursor->at == cursor->packed.len)
        return BRC_OK;
    return brc_fail(err, BRC_EINVAL, "bytes follow the last of %llu elements",
                    (unsigned long long)cursor->number);
}

int brc_elements_find(brc_span *table, uint64_t n, brc_span packed, brc_error *err)
{
    brc_element_cursor cursor = {packed, 0, 0};
    for (uint64_t i = 0; i < n; i++)
        BRC_TRY(brc_element_next(&cursor, &table[i], err));
    return brc_elements_end(&cursor, err);
}

int brc_elements_pack(brc_buf *out, const brc_span *table, uint64_t n, brc_error *err)
{
    for (uint64_t i = 0; i < n; i++)
        BRC_TRY(brc_buf_append(out, table[i].data, table[i].len, err));
    return BRC_OK;
}

/* ==== element chunk ================================ */

static int lay_over_old(brc_span *table, uint64_t n, brc_span old, brc_error *err)
{
    brc_element_cursor cursor = {old, 0, 0};
    brc_span element;
    for (uint64_t i = 0; i < n; i++) {
        BRC_TRY(brc_element_next(&cursor, &element, err));
        if (table[i].data == NULL)
            table[i] = element;
    }
    return brc_elements_end(&cursor, err);
}

int brc_gather_elements(brc_write_item *item, brc_span *table, const brc_meta *m,
                        brc_scratch *scratch, brc_error *err)
{
    const uint64_t n = item->elements;
    const brc_span fill = {m->fill.data, m->fill.len};
    brc_buf old = BRC_BUF_INIT;
    int rc;
    if (item->old.found) {
        BRC_GO(brc_write_old(item, scratch, &old, err));
        if (lay_over_old(table, n, (brc_span){old.data, old.len}, err) < 0) {
            rc = brc_fail(err, BRC_ECORRUPT, "its elements are damaged");
            goto done;
        }
    }
    for (uint64_t i = 0; i < n; i++)
        if (table[i].data == NULL)
            table[i] = fill;
    item->own.limit = BRC_MAX_CHUNK_BYTES;
    rc = brc_elements_pack(&item->own, table, n, err);
    item->own.limit = 0;
    item->data = item->own.data;
    item->len = item->own.len;
done:
    brc_buf_dispose(&old);
    return rc;
}
