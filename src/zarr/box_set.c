#include "box_set.h"

#include <stdlib.h>
#include <string.h>

#include "../nd/cut.h"
#include "chunk_item.h"

/* A box of small chunks takes about this many bytes; and if every chunk is small, all
 * boxes together hold this many: enough to fill a box while another is written. */
#define BOX_BYTES ((uint64_t)8 << 20)
#define BOXES_BYTES ((uint64_t)32 << 20)
#define MOST_BOXES 16

/* ---- extents -------------------------------- */

/* Indices of the selection that lie in one chunk, at most. */
static uint64_t most_in_chunk(const brc_box_set *set, int axis)
{
    return brc_at_least_one(brc_grid_extent(set->a->meta.grid.chunk[axis],
                                 brc_at_least_one(set->region.sel.step[axis])));
}

/* What one step of the pieces covers along the axis is whole boxes. */
static int is_in_step(const brc_box_set *set, const brc_piece_order *order, int axis)
{
    uint64_t in_chunk = most_in_chunk(set, axis);
    return set->region.sel.count[axis] <= order->per[axis] ||
           (!order->uneven && order->per[axis] % in_chunk == 0 &&
            (in_chunk == 1 || set->a->meta.grid.starts[axis] == NULL));
}

static uint64_t extent_bytes(const brc_box_set *set)
{
    uint64_t bytes = set->room + 1; /* and a byte of state */
    for (int i = 0; i < set->a->meta.ndim; i++)
        bytes = brc_mul_capped(bytes, set->extent[i]);
    return bytes;
}

/* From the fastest axis on more chunks. */
static void grow_extent(brc_box_set *set, const brc_piece_order *order, uint64_t budget)
{
    brc_cut_grow(set->a->meta.ndim, order->axis, set->extent, set->region.chunks,
                 extent_bytes(set), budget);
}

/* A box that is met by consecutive pieces alone is never opened again: along the axes behind
 * the first that is not cut as the pieces are it holds everything. Where that is too large
 * boxes are closed before they are complete. */
static void choose_extent(brc_box_set *set, const brc_piece_order *order, size_t memory)
{
    const int ndim = set->a->meta.ndim;
    int behind = 0;
    for (int k = 0; k < ndim; k++) {
        int i = order->axis[k];
        uint64_t least = brc_grid_extent(order->per[i], most_in_chunk(set, i));
        set->extent[i] = least < set->region.chunks[i] ? least : set->region.chunks[i];
        if (behind)
            set->extent[i] = set->region.chunks[i];
        behind |= !is_in_step(set, order, i);
    }
    if (extent_bytes(set) <= memory) {
        grow_extent(set, order, memory / 4 < BOX_BYTES ? memory / 4 : BOX_BYTES);
        return;
    }
    for (int i = 0; i < ndim; i++) {
        uint64_t least = brc_grid_extent(order->per[i], most_in_chunk(set, i));
        set->extent[i] = least < set->region.chunks[i] ? least : set->region.chunks[i];
    }
    grow_extent(set, order, memory / 4);
}

static void choose_number(brc_box_set *set, size_t memory)
{
    unsigned threads = brc_pool_threads(set->a->session->repo->pipe.pool);
    uint64_t want = brc_mul_capped(set->room, 2 * (uint64_t)threads);
    if (want < BOXES_BYTES)
        want = BOXES_BYTES;
    uint64_t most = want / set->bytes, fit = memory / 2 / set->bytes;
    most = most < 2 ? 2 : most > MOST_BOXES ? MOST_BOXES : most;
    set->most = (size_t)brc_at_least_one(fit < most ? fit : most);
}

int brc_boxes_init(brc_box_set *set, brc_array *a, const brc_sel *sel,
                   const brc_piece_order *order, size_t memory, brc_error *err)
{
    uint64_t room, bytes;
    memset(set, 0, sizeof(*set));
    set->a = a;
    set->unit = brc_array_unit(a);
    set->is_table = brc_meta_is_variable(&a->meta);
    if (set->is_table) { /* the elements themselves take room too */
        set->most_kept = memory / 4;
        memory /= 2;
    }
    BRC_TRY(brc_region_init(&set->region, a, sel, NULL, NULL, err));
    if (!brc_shape_bytes(a->meta.ndim, a->meta.grid.chunk, set->unit, &room) ||
        (!set->is_table && room > BRC_MAX_CHUNK_BYTES))
        return brc_fail(err, BRC_ELIMIT, "%s: a chunk with the longest of their edges has more "
                                         "than 2^31-1 bytes",
                        a->path);
    set->room = (size_t)room;
    if (set->region.nchunks == 0)
        return BRC_OK;
    choose_extent(set, order, memory);
    bytes = extent_bytes(set);
    if (bytes > SIZE_MAX / 2)
        return brc_fail(err, BRC_ELIMIT, "%s: its chunks are too large for memory", a->path);
    set->bytes = (size_t)bytes;
    set->most_chunks = bytes / (set->room + 1);
    choose_number(set, memory);
    return BRC_OK;
}

/* ---- boxes -------------------------------- */

static brc_box_of_chunks *box_at(const brc_box_set *set, size_t i)
{
    return ((brc_box_of_chunks **)set->boxes)[i];
}

static void box_release(brc_box_of_chunks *box)
{
    free(box->data);
    free(box->chunks);
    box->data = box->chunks = NULL;
}

/* Elements are freed with the last box that points to them. */
static void box_forget(brc_box_set *set, brc_box_of_chunks *box)
{
    for (size_t i = 0; i < box->nkept; i++) {
        brc_kept_elements *kept = ((brc_kept_elements **)box->kept)[i];
        if (--kept->boxes > 0)
            continue;
        set->kept -= kept->counted;
        brc_buf_dispose(&kept->bytes);
        free(kept);
    }
    box->nkept = 0;
}

void brc_boxes_dispose(brc_box_set *set)
{
    for (size_t i = 0; i < set->n; i++) {
        box_forget(set, box_at(set, i));
        free(box_at(set, i)->kept);
        box_release(box_at(set, i));
        free(box_at(set, i));
    }
    free(set->boxes);
}

static void box_close(brc_box_set *set, brc_box_of_chunks *box)
{
    box->state = BRC_BOX_CLOSED;
    box->next = 0;
    box->closed = ++set->closings;
}

void brc_boxes_close(brc_box_set *set, const uint64_t *at)
{
    for (size_t i = 0; i < set->n; i++) {
        brc_box_of_chunks *box = box_at(set, i);
        if (box->state == BRC_BOX_OPEN &&
            (at == NULL || brc_index_order(set->a->meta.ndim, box->last, at) < 0))
            box_close(set, box);
    }
}

brc_box_of_chunks *brc_boxes_closed(const brc_box_set *set)
{
    brc_box_of_chunks *first = NULL;
    for (size_t i = 0; i < set->n; i++) {
        brc_box_of_chunks *box = box_at(set, i);
        if (box->state == BRC_BOX_CLOSED && box->next < box->nchunks &&
            (first == NULL || box->closed < first->closed))
            first = box;
    }
    return first;
}

void brc_box_leave(brc_box_set *set, brc_box_of_chunks *box)
{
    if (box->state != BRC_BOX_CLOSED || box->next < box->nchunks || box->pieces > 0 ||
        box->writing > 0)
        return;
    box->state = BRC_BOX_FREE;
    box_forget(set, box);
    if (--set->active >= set->most) /* more than there should be */
        box_release(box);
}

void brc_boxes_met(const brc_box_set *set, const brc_region *r, uint64_t *first, uint64_t *count)
{
    for (int i = 0; i < set->a->meta.ndim; i++) {
        uint64_t from = r->first[i] - set->region.first[i];
        first[i] = from / set->extent[i];
        count[i] = (from + r->chunks[i] - 1) / set->extent[i] - first[i] + 1;
    }
}

/* ---- opening -------------------------------- */

static brc_box_of_chunks *box_find(const brc_box_set *set, const uint64_t *at)
{
    for (size_t i = 0; i < set->n; i++)
        if (box_at(set, i)->state != BRC_BOX_FREE &&
            brc_index_order(set->a->meta.ndim, box_at(set, i)->at, at) == 0)
            return box_at(set, i);
    return NULL;
}

/* 0: a box is being written, and is waited for; or, if none is, the open one that was
 * least recently used was closed. 1: there is none to close. */
static int close_early(brc_box_set *set, uint64_t before)
{
    brc_box_of_chunks *oldest = NULL;
    for (size_t i = 0; i < set->n; i++) {
        brc_box_of_chunks *box = box_at(set, i);
        if (box->state == BRC_BOX_CLOSED)
            return 0;
        if (box->state == BRC_BOX_OPEN && box->used < before &&
            (oldest == NULL || box->used < oldest->used))
            oldest = box;
    }
    if (oldest == NULL)
        return 1;
    set->again = 1;
    box_close(set, oldest);
    return 0;
}

/* 1 if one more box may be in use: all that there are may be needed by one piece. */
static int room_for_box(brc_box_set *set)
{
    return set->active < set->most || close_early(set, set->piece);
}

int brc_boxes_have_room(brc_box_set *set, size_t coming, size_t len)
{
    size_t kept = set->kept + coming;
    if (kept == 0 || (len <= set->most_kept && kept <= set->most_kept - len))
        return 1;
    if (set->kept > 0)
        (void)close_early(set, set->piece + 1);
    return 0;
}

int brc_boxes_keep(brc_box_of_chunks *const *boxes, size_t n, brc_kept_elements **out,
                   brc_error *err)
{
    void *p;
    for (size_t i = 0; i < n; i++)
        BRC_TRY(brc_grow_array(&boxes[i]->kept, &boxes[i]->kept_cap, boxes[i]->nkept + 1,
                               sizeof(*out), err));
    BRC_TRY(brc_new(&p, sizeof(**out), err));
    *out = p;
    (*out)->boxes = n;
    for (size_t i = 0; i < n; i++)
        ((brc_kept_elements **)boxes[i]->kept)[boxes[i]->nkept++] = *out;
    return BRC_OK;
}

void brc_boxes_count(brc_box_set *set, brc_kept_elements *kept)
{
    kept->counted = kept->bytes.cap;
    set->kept += kept->counted;
}

/* A free box, with memory. */
static int box_take(brc_box_set *set, brc_box_of_chunks **out, brc_error *err)
{
    void *p;
    brc_box_of_chunks *box = NULL;
    for (size_t i = 0; i < set->n && box == NULL; i++)
        if (box_at(set, i)->state == BRC_BOX_FREE)
            box = box_at(set, i);
    if (box == NULL) {
        BRC_TRY(brc_grow_array(&set->boxes, &set->cap, set->n + 1, sizeof(box), err));
        BRC_TRY(brc_new(&p, sizeof(*box), err));
        ((brc_box_of_chunks **)set->boxes)[set->n++] = box = p;
    }
    if (box->data == NULL) {
        BRC_TRY(brc_new_big(&p, (size_t)set->most_chunks * set->room, err));
        box->data = p;
        BRC_TRY(brc_new(&p, (size_t)set->most_chunks, err));
        box->chunks = p;
    }
    *out = box;
    return BRC_OK;
}

/* Which chunks it holds, and the last selected element of them. */
static void box_place(const brc_box_set *set, const brc_piece_order *order, brc_box_of_chunks *box,
                      const uint64_t *at)
{
    const brc_region *r = &set->region;
    uint64_t index[BRC_MAX_NDIM] = {0}, corner[BRC_MAX_NDIM], chunk[BRC_MAX_NDIM];
    uint64_t last[BRC_MAX_NDIM];
    const int ndim = set->a->meta.ndim;
    box->nchunks = 1;
    for (int i = 0; i < ndim; i++) {
        uint64_t left = r->chunks[i] - at[i] * set->extent[i];
        box->at[i] = at[i];
        box->first[i] = r->first[i] + at[i] * set->extent[i];
        box->count[i] = left < set->extent[i] ? left : set->extent[i];
        box->nchunks *= box->count[i];
        index[i] = box->first[i] + box->count[i] - 1;
    }
    brc_grid_chunk(&set->a->meta.grid, index, corner, chunk);
    for (int i = 0; i < ndim; i++) {
        uint64_t most = r->sel.start[i] + (r->sel.count[i] - 1) * r->sel.step[i];
        last[i] = most - corner[i] < chunk[i] ? most : corner[i] + chunk[i] - 1;
    }
    order->place(order->ctx, last, box->last);
}

int brc_boxes_open(brc_box_set *set, const brc_piece_order *order, const uint64_t *at,
                   brc_box_of_chunks **out, brc_error *err)
{
    brc_box_of_chunks *box = box_find(set, at);
    if (box != NULL && box->state == BRC_BOX_CLOSED) { /* the pieces are not in order */
        set->again = 1;
        return 0;
    }
    if (box == NULL) {
        if (!room_for_box(set))
            return 0;
        BRC_TRY(box_take(set, &box, err));
        box_place(set, order, box, at);
        memset(box->chunks, BRC_CHUNK_EMPTY, (size_t)box->nchunks);
        box->state = BRC_BOX_OPEN;
        box->pieces = box->writing = 0;
        set->active++;
    }
    box->used = set->piece;
    *out = box;
    return 1;
}

/* ---- chunks -------------------------------- */

uint64_t brc_box_number(const brc_box_set *set, const brc_box_of_chunks *box, const uint64_t *index)
{
    uint64_t number = 0;
    for (int i = 0; i < set->a->meta.ndim; i++)
        number = number * box->count[i] + index[i] - box->first[i];
    return number;
}

void brc_box_index(const brc_box_set *set, const brc_box_of_chunks *box, uint64_t number,
                   uint64_t *index)
{
    for (int i = set->a->meta.ndim; i-- > 0;) {
        index[i] = box->first[i] + number % box->count[i];
        number /= box->count[i];
    }
}

uint8_t *brc_box_chunk(const brc_box_set *set, const brc_box_of_chunks *box, const uint64_t *index)
{
    return box->data + (size_t)brc_box_number(set, box, index) * set->room;
}

/* Chunks that may have been written are read again, this many at a time. */
#define LOAD_MOST 64

typedef struct chunk_load {
    size_t n;
    uint64_t indexes[LOAD_MOST * BRC_MAX_NDIM];
    uint8_t *memory[LOAD_MOST];
} chunk_load;

static int load_chunks(const brc_box_set *set, chunk_load *load, brc_error *err)
{
    size_t n = load->n;
    load->n = 0;
    return n > 0 ? brc_array_read_chunks(set->a, n, load->indexes, load->memory, err) : BRC_OK;
}

static int touch_chunk(const brc_box_set *set, brc_box_of_chunks *box, const uint64_t *index,
                       chunk_load *load, brc_error *err)
{
    const size_t ndim = (size_t)set->a->meta.ndim;
    uint8_t *state = &box->chunks[brc_box_number(set, box, index)];
    brc_region_part part;
    if (*state != BRC_CHUNK_EMPTY)
        return BRC_OK;
    *state = BRC_CHUNK_TOUCHED;
    uint8_t *data = brc_box_chunk(set, box, index);
    brc_region_part_at(&part, set->a, &set->region, index);
    if (set->again)
        *state = BRC_CHUNK_READ;
    if (set->is_table) { /* nothing points anywhere yet */
        memset(data, 0, (size_t)part.elements * set->unit);
        return BRC_OK;
    }
    if (set->again) {
        memcpy(load->indexes + load->n * ndim, index, ndim * sizeof(*index));
        load->memory[load->n++] = data;
        return load->n == LOAD_MOST ? load_chunks(set, load, err) : BRC_OK;
    }
    if (!set->covered || !part.full)
        brc_fill_run(data, part.elements, set->unit, set->a->meta.fill.data);
    return BRC_OK;
}

int brc_boxes_touch(brc_box_set *set, brc_box_of_chunks *box, const brc_region *r, brc_error *err)
{
    const int ndim = set->a->meta.ndim;
    uint64_t from[BRC_MAX_NDIM], count[BRC_MAX_NDIM], at[BRC_MAX_NDIM] = {0}, index[BRC_MAX_NDIM];
    chunk_load load;
    load.n = 0;
    for (int i = 0; i < ndim; i++) {
        uint64_t end = r->first[i] + r->chunks[i], box_end = box->first[i] + box->count[i];
        from[i] = r->first[i] > box->first[i] ? r->first[i] : box->first[i];
        count[i] = (end < box_end ? end : box_end) - from[i];
    }
    do {
        for (int i = 0; i < ndim; i++)
            index[i] = from[i] + at[i];
        BRC_TRY(touch_chunk(set, box, index, &load, err));
    } while (brc_index_next(ndim, at, count));
    return load_chunks(set, &load, err);
}
