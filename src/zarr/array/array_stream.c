/* Writes elements that come as a stream, in the order of a file, into a selection. */
#include <stdlib.h>
#include <string.h>

#include "../../base/alloc.h"
#include "../../nd/shape.h"
#include "../../work/bulk_write.h"
#include "../stored/assembly.h"
#include "../transfer.h"
#include "region.h"

/* ==== array stream ================================ */

typedef struct element_stream {
    brc_array *a;
    const brc_element_source *source;
    brc_region region; /* the selection                                              */
    int begun;
    brc_cut slabs;     /* its slabs                                                  */
    int in_chunks;     /* or its chunks, and the next one's number */
    uint64_t next;
} element_stream;

/* Returns 1 if the elements of each chunk are contiguous in the stream: along all axes after some
 * axis a chunk covers the whole array, and along all axes before it one index. */
static int chunks_are_runs(const element_stream *s)
{
    const brc_meta *m = &s->a->meta;
    const brc_sel *sel = &s->region.sel;
    int behind = 0;
    if (brc_meta_is_variable(m) || (s->source->fortran && m->ndim > 1))
        return 0;
    for (int i = 0; i < m->ndim; i++) {
        const uint64_t edge = m->grid.chunk[i], end = sel->start[i] + sel->count[i];
        if (sel->step[i] != 1 || m->grid.starts[i] != NULL)
            return 0;
        if (behind && (edge != m->shape[i] || sel->count[i] != edge))
            return 0;
        if (sel->start[i] % edge != 0 || (end % edge != 0 && end != m->shape[i]))
            return 0;
        behind |= edge > 1;
    }
    return 1;
}

static void place_of_element(const void *ctx, const uint64_t *element, uint64_t *at)
{
    const element_stream *s = ctx;
    const brc_sel *sel = &s->region.sel;
    for (int k = 0; k < sel->ndim; k++) {
        int i = s->source->fortran ? sel->ndim - 1 - k : k;
        at[k] = (element[i] - sel->start[i]) / sel->step[i];
    }
}

static int next_run(element_stream *s, brc_piece *piece, brc_error *err)
{
    brc_region_part part;
    brc_sel sel = s->region.sel;
    uint64_t corner[BRC_MAX_NDIM], chunk[BRC_MAX_NDIM];
    if (s->next == s->region.nchunks)
        return 0;
    brc_region_part_of(&part, s->a, &s->region, s->next++);
    brc_grid_chunk(&s->a->meta.grid, part.index, corner, chunk);
    memcpy(sel.start, corner, sizeof(uint64_t) * (size_t)sel.ndim);
    memcpy(sel.count, part.overlap.count, sizeof(uint64_t) * (size_t)sel.ndim);
    BRC_TRY(brc_region_init(&piece->region, s->a, &sel, NULL, NULL, err));
    return 1;
}

static int next_slab(element_stream *s, brc_piece *piece, brc_error *err)
{
    static const uint64_t ones[BRC_MAX_NDIM] = {
        1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1,
        1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1,
    };
    int64_t strides[BRC_MAX_NDIM] = {0};
    if (!s->begun)
        brc_cut_runs(&s->slabs, &s->region.sel, ones, s->a->meta.type->item_size,
                     s->source->fortran, piece->len);
    s->begun = 1;
    if (!brc_cut_next(&s->slabs))
        return 0;
    brc_cut_strides(&s->slabs, brc_array_unit(s->a), strides);
    BRC_TRY(brc_region_init(&piece->region, s->a, &s->slabs.sel, NULL, strides, err));
    return 1;
}

/* The most bytes that are allocated ahead on the word of an element's length. */
#define BELIEVED_BYTES ((size_t)1 << 20)

/* Appends the next element of a source with elements of variable length. */
static int take_from_stream(brc_buf *out, const brc_element_source *source, brc_error *err)
{
    uint8_t count[4];
    BRC_TRY(source->read(source->ctx, count, sizeof(count), err));
    BRC_TRY(brc_buf_append(out, count, sizeof(count), err));
    for (size_t left = brc_get_u32le(count); left > 0;) {
        const size_t n = left < BELIEVED_BYTES ? left : BELIEVED_BYTES;
        BRC_TRY(brc_buf_reserve(out, n, err));
        BRC_TRY(source->read(source->ctx, out->data + out->len, n, err));
        out->len += n;
        left -= n;
    }
    return BRC_OK;
}

static int next_elements(void *ctx, brc_piece *piece, brc_buf *stored, brc_error *err)
{
    element_stream *s = ctx;
    int rc = s->in_chunks ? next_run(s, piece, err) : next_slab(s, piece, err);
    if (rc <= 0)
        return rc;
    const brc_sel *sel = &piece->region.sel;
    place_of_element(s, sel->start, piece->at);
    piece->elements = brc_shape_count(sel->ndim, sel->count);
    piece->len = (size_t)piece->elements * s->a->meta.type->item_size;
    if (!brc_meta_is_variable(&s->a->meta))
        return 1;
    for (uint64_t i = 0; i < piece->elements; i++)
        BRC_TRY(take_from_stream(stored, s->source, err));
    piece->len = stored->len;
    return 1;
}

static int read_elements(void *ctx, uint8_t *dst, size_t len, brc_error *err)
{
    const element_stream *s = ctx;
    return s->source->read(s->source->ctx, dst, len, err);
}

static int write_stream(brc_array *a, const brc_sel *sel, const brc_element_source *source,
                        brc_error *err)
{
    element_stream s = {.a = a, .source = source};
    BRC_TRY(brc_array_can_write(a, err));
    BRC_TRY(brc_region_init(&s.region, a, sel, NULL, NULL, err));
    brc_piece_source pieces = {
        .ctx = &s,
        .order = {.place = place_of_element, .ctx = &s},
        .covers = 1,
        .swaps = source->big && a->meta.type->swap_unit > 1,
        .is_chunk = chunks_are_runs(&s),
        .next = next_elements,
        .read = brc_meta_is_variable(&a->meta) ? NULL : read_elements,
    };
    s.in_chunks = pieces.is_chunk;
    for (int k = 0; k < a->meta.ndim; k++) {
        pieces.order.axis[k] = source->fortran ? a->meta.ndim - 1 - k : k;
        pieces.order.per[k] = 1;
    }
    return brc_array_assemble(a, &s.region.sel, &pieces, err);
}

int brc_array_write_stream(brc_array *a, const brc_sel *sel, const brc_element_source *source,
                           brc_error *err)
{
    BRC_TRY(brc_array_begin(a, err));
    return brc_array_end(a, write_stream(a, sel, source, err), err);
}

/* ==== array load ================================ */

/* Writes the elements of a selection from a program's own source, however many they are. Elements
 * that fit into a slab are read before the file is locked; the rest is read while others are
 * encoded. */

typedef struct element_supply {
    brc_array *a;
    int (*get)(void *ctx, void *dst, size_t len, size_t *got);
    void *ctx;
    brc_buf ahead; /* read before the file was locked ...    */
    size_t at;     /* ... and handed on up to here           */
    uint64_t taken, want; /* bytes from the source; want 0: not known */
} element_supply;

static int take_some(element_supply *s, void *dst, size_t len, size_t *got, brc_error *err)
{
    *got = 0;
    BRC_TRY(brc_store_rest(brc_array_store(s->a), 1, err)); /* the source may block */
    if (s->get(s->ctx, dst, len, got) != 0)
        return brc_fail(err, BRC_EINTERRUPT, "stopped on request");
    if (*got > len)
        return brc_fail(err, BRC_EINVAL, "%s: the source returned more bytes than requested",
                        s->a->path);
    s->taken += *got;
    return BRC_OK;
}

static int take_all(void *ctx, uint8_t *dst, size_t len, brc_error *err)
{
    element_supply *s = ctx;
    size_t got;
    BRC_TRY(take_some(s, dst, len, &got, err));
    if (got == len)
        return BRC_OK;
    if (s->want == 0)
        return brc_fail(err, BRC_EINVAL, "%s: the source ends after %llu bytes, in the middle of "
                                         "the selection",
                        s->a->path, (unsigned long long)s->taken);
    return brc_fail(err, BRC_EINVAL, "%s: the source has %llu bytes, but the selection takes %llu",
                    s->a->path, (unsigned long long)s->taken, (unsigned long long)s->want);
}

/* Fails if anything follows the last element. */
static int check_source_end(element_supply *s, brc_error *err)
{
    const uint64_t before = s->taken;
    uint8_t more;
    size_t got;
    BRC_TRY(take_some(s, &more, 1, &got, err));
    if (got == 0)
        return BRC_OK;
    return brc_fail(err, BRC_EINVAL,
                    "%s: the source continues after the %llu bytes of the selection", s->a->path,
                    (unsigned long long)before);
}

/* Supplies bytes: first those that were read ahead. */
static int supply_bytes(void *ctx, uint8_t *dst, size_t len, brc_error *err)
{
    element_supply *s = ctx;
    const size_t left = s->ahead.len - s->at, n = left < len ? left : len;
    if (n > 0)
        memcpy(dst, s->ahead.data + s->at, n);
    s->at += n;
    return n < len ? take_all(s, dst + n, len - n, err) : BRC_OK;
}

static int load_rest(element_supply *s, const brc_sel *sel, brc_error *err)
{
    brc_element_source source = {s, 0, __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__, supply_bytes};
    BRC_TRY(brc_bulk_start(s->a->session, err));
    int rc = brc_array_write_stream(s->a, sel, &source, err);
    if (rc == BRC_OK)
        rc = check_source_end(s, err);
    return brc_array_bulk_end(s->a, rc, err);
}

static int load_fixed(element_supply *s, const brc_sel *sel, brc_error *err)
{
    if (!brc_shape_bytes(sel->ndim, sel->count, s->a->meta.type->item_size, &s->want))
        return brc_fail(err, BRC_ELIMIT, "%s: the selection has more than 2^64 bytes", s->a->path);
    if (s->want > BRC_SLAB_BYTES)
        return load_rest(s, sel, err);
    const size_t len = (size_t)s->want;
    BRC_TRY(brc_buf_reserve(&s->ahead, len + 1, err));
    if (len > 0)
        BRC_TRY(take_all(s, s->ahead.data, len, err));
    BRC_TRY(check_source_end(s, err));
    return brc_array_write(s->a, sel, s->ahead.data, len, err);
}

static int load_variable(element_supply *s, const brc_sel *sel, brc_error *err)
{
    const brc_element_source source = {.ctx = s, .read = take_all};
    const uint64_t count = brc_sel_count(sel);
    uint64_t n = 0;
    for (; n < count && s->ahead.len < BRC_SLAB_BYTES; n++)
        BRC_TRY(take_from_stream(&s->ahead, &source, err));
    if (n < count)
        return load_rest(s, sel, err);
    BRC_TRY(check_source_end(s, err));
    return brc_array_write(s->a, sel, s->ahead.data, s->ahead.len, err);
}

int brc_array_load_stream(brc_array *a, const brc_sel *sel,
                          int (*get)(void *ctx, void *dst, size_t len, size_t *got), void *ctx,
                          brc_error *err)
{
    element_supply s = {.a = a, .get = get, .ctx = ctx};
    brc_region r;
    if (a == NULL || get == NULL)
        return brc_fail(err, BRC_EINVAL, "an array and a function are needed");
    BRC_TRY(brc_array_begin_read(a, err));
    int rc = brc_array_can_write(a, err);
    if (rc == BRC_OK)
        rc = brc_region_init(&r, a, sel, NULL, NULL, err);
    brc_array_end_read(a);
    if (rc == BRC_OK)
        rc = brc_meta_is_variable(&a->meta) ? load_variable(&s, &r.sel, err)
                                            : load_fixed(&s, &r.sel, err);
    brc_buf_dispose(&s.ahead);
    return rc;
}

/* ==== element runs ================================ */

/* The budget for elements of variable length, which may be far longer than expected. */
#define VARIABLE_BUDGET ((uint64_t)4 << 20)

/* Cuts the selection into runs of a few chunks for each thread, which stay in the processor's cache
 * from their decoding to their use, if these are whole rows of chunks; else into large runs, so
 * that few chunks are decoded more than once. */
static void cut_into_runs(brc_element_runs *runs, const brc_sel *sel)
{
    enum { LEAST = 8 << 20, OF_A_THREAD = 4 };
    const uint64_t *chunk = runs->a->meta.grid.chunk;
    const uint64_t threads = brc_pool_threads(runs->a->session->repo->pipe.pool);
    uint64_t bytes = brc_mul_capped(runs->item, OF_A_THREAD * threads);
    for (int i = 0; i < sel->ndim; i++)
        bytes = brc_mul_capped(bytes, chunk[i]);
    if (runs->item == 0) {
        brc_cut_runs(&runs->cut, sel, chunk, 0, 0, VARIABLE_BUDGET);
        return;
    }
    if (bytes < LEAST)
        bytes = LEAST;
    if (bytes < BRC_SLAB_BYTES)
        brc_cut_runs(&runs->cut, sel, chunk, runs->item, 0, bytes);
    if (bytes >= BRC_SLAB_BYTES || !brc_cut_is_whole(&runs->cut, chunk))
        brc_cut_runs(&runs->cut, sel, chunk, runs->item, 0, BRC_SLAB_BYTES);
}

int brc_element_runs_start(brc_element_runs *runs, brc_array *a, const brc_sel *sel, brc_error *err)
{
    brc_region r;
    memset(runs, 0, sizeof(*runs));
    BRC_TRY(brc_array_begin_read(a, err));
    int rc = brc_array_freeze(&runs->a, a, err);
    if (rc == BRC_OK)
        rc = brc_region_init(&r, runs->a, sel, NULL, NULL, err);
    if (rc == BRC_OK) {
        runs->item = a->meta.type->item_size;
        cut_into_runs(runs, &r.sel);
    }
    brc_array_end_read(a);
    return rc;
}

int brc_element_runs_next(brc_element_runs *runs, brc_span *out, brc_error *err)
{
    if (!brc_cut_next(&runs->cut))
        return 0;
    if (runs->item == 0) {
        runs->elements.len = 0;
        BRC_TRY(brc_array_read_elements(runs->a, &runs->cut.sel, &runs->elements, err));
        *out = (brc_span){runs->elements.data, runs->elements.len};
        return 1;
    }
    const size_t len = (size_t)runs->cut.elements * runs->item;
    if (runs->data == NULL)
        BRC_TRY(brc_new_big((void **)&runs->data, (size_t)runs->cut.most * runs->item, err));
    BRC_TRY(brc_array_read(runs->a, &runs->cut.sel, runs->data, len, err));
    *out = (brc_span){runs->data, len};
    return 1;
}

void brc_element_runs_end(brc_element_runs *runs)
{
    brc_array_free(runs->a);
    free(runs->data);
    brc_buf_dispose(&runs->elements);
}
