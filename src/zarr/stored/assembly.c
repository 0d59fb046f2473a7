#include "assembly.h"

#include <stdlib.h>
#include <string.h>

#include "../../base/alloc.h"
#include "../../flow/write.h"
#include "../../nd/shape.h"
#include "../array/chunk_cursor.h"
#include "../array/region.h"
#include "../array/old_chunks.h"

/* ==== box set ================================ */

/* The bytes of a box of small chunks, about; if every chunk is small, all boxes together have this
 * many: enough to fill one box while another is written. */
#define BOX_BYTES ((uint64_t)8 << 20)
#define BOXES_BYTES ((uint64_t)32 << 20)
#define MOST_BOXES 16

/* ---- extents -------------------------------- */

/* Returns the most indices of the selection that lie in one chunk. */
static uint64_t most_in_chunk(const brc_box_set *set, int axis)
{
    return brc_at_least_one(brc_grid_extent(set->a->meta.grid.chunk[axis],
                                 brc_at_least_one(set->region.sel.step[axis])));
}

/* Tells whether a step of the pieces along the axis covers whole boxes. */
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

/* Adds chunks, from the fastest axis on. */
static void grow_extent(brc_box_set *set, const brc_piece_order *order, uint64_t budget)
{
    brc_cut_grow(set->a->meta.ndim, order->axis, set->extent, set->region.chunks,
                 extent_bytes(set), budget);
}

/* Chooses the extent of boxes. A box that only consecutive pieces meet is never opened again: along
 * the axes after the first that is not cut like the pieces, the box covers everything. If that is
 * too large, boxes are closed before they are complete. */
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

/* sel NULL: the whole array. */
static int boxes_init(brc_box_set *set, brc_array *a, const brc_sel *sel,
                      const brc_piece_order *order, size_t memory, brc_error *err)
{
    uint64_t room, bytes;
    memset(set, 0, sizeof(*set));
    set->a = a;
    set->unit = brc_array_unit(a);
    set->is_table = brc_meta_is_variable(&a->meta);
    if (set->is_table) { /* the elements themselves take memory too */
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

/* Frees elements with the last box that points to them. */
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

static void boxes_dispose(brc_box_set *set)
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

/* Closes boxes whose last piece comes before this place; at NULL: all boxes. */
static void boxes_close(brc_box_set *set, const uint64_t *at)
{
    for (size_t i = 0; i < set->n; i++) {
        brc_box_of_chunks *box = box_at(set, i);
        if (box->state == BRC_BOX_OPEN &&
            (at == NULL || brc_index_order(set->a->meta.ndim, box->last, at) < 0))
            box_close(set, box);
    }
}

/* Returns the box that was closed first among those with chunks to list; NULL: none. */
static brc_box_of_chunks *boxes_closed(const brc_box_set *set)
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

/* Frees a box if it is closed and nothing is on its way into it or out of it. */
static void box_leave(brc_box_set *set, brc_box_of_chunks *box)
{
    if (box->state != BRC_BOX_CLOSED || box->next < box->nchunks || box->pieces > 0 ||
        box->writing > 0)
        return;
    box->state = BRC_BOX_FREE;
    box_forget(set, box);
    if (--set->active >= set->most) /* more than there should be */
        box_release(box);
}

/* Finds the boxes that a region meets: `count` from `first` on along each axis. */
static void boxes_met(const brc_box_set *set, const brc_region *r, uint64_t *first,
                      uint64_t *count)
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

/* Returns 0 if a box is being written, and is waited for, or if the least recently used open box
 * was closed. Returns 1 if there is no box to close. */
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

/* Returns 1 if one more box may be in use; a single piece may need every box. */
static int room_for_box(brc_box_set *set)
{
    return set->active < set->most || close_early(set, set->piece);
}

/* Returns 1 if a piece of elements of variable length of about `len` bytes may be decoded while
 * pieces of about `coming` bytes are; 0 if it must wait until a box is free or those are decoded. A
 * single piece is always allowed. */
static int boxes_have_room(brc_box_set *set, size_t coming, size_t len)
{
    size_t kept = set->kept + coming;
    if (kept == 0 || (len <= set->most_kept && kept <= set->most_kept - len))
        return 1;
    if (set->kept > 0)
        (void)close_early(set, set->piece + 1);
    return 0;
}

/* Adds empty memory for the elements of a piece, and keeps it for these boxes. */
static int boxes_keep(brc_box_of_chunks *const *boxes, size_t n, brc_kept_elements **out,
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

static void boxes_count(brc_box_set *set, brc_kept_elements *kept)
{
    kept->counted = kept->bytes.cap;
    set->kept += kept->counted;
}

/* Takes a free box, with memory. */
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

/* Sets the chunks of the box, and finds their last selected element. */
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

/* Opens box `at` for the present piece. Returns 1, or 0 if the piece must wait until a box is
 * free. */
static int boxes_open(brc_box_set *set, const brc_piece_order *order, const uint64_t *at,
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

/* Convert a chunk's index in the grid to its number in its box, and back. */
static uint64_t box_number(const brc_box_set *set, const brc_box_of_chunks *box,
                           const uint64_t *index)
{
    uint64_t number = 0;
    for (int i = 0; i < set->a->meta.ndim; i++)
        number = number * box->count[i] + index[i] - box->first[i];
    return number;
}

static void box_index(const brc_box_set *set, const brc_box_of_chunks *box, uint64_t number,
                      uint64_t *index)
{
    for (int i = set->a->meta.ndim; i-- > 0;) {
        index[i] = box->first[i] + number % box->count[i];
        number /= box->count[i];
    }
}

/* Returns the memory of the chunk's elements. */
static uint8_t *box_chunk(const brc_box_set *set, const brc_box_of_chunks *box,
                          const uint64_t *index)
{
    return box->data + (size_t)box_number(set, box, index) * set->room;
}

/* The number of chunks read at once, of those that may have been written already. */
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
    uint8_t *state = &box->chunks[box_number(set, box, index)];
    brc_region_part part;
    if (*state != BRC_CHUNK_EMPTY)
        return BRC_OK;
    *state = BRC_CHUNK_TOUCHED;
    uint8_t *data = box_chunk(set, box, index);
    brc_region_part_at(&part, set->a, &set->region, index);
    if (set->again)
        *state = BRC_CHUNK_READ;
    if (set->is_table) { /* the spans point nowhere yet */
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

/* Prepares the chunks of the box that the region meets for pieces: with the fill value or what was
 * written; tables, with spans that point nowhere. */
static int boxes_touch(brc_box_set *set, brc_box_of_chunks *box, const brc_region *r,
                       brc_error *err)
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

/* ==== assembly ================================ */

#define PIECE_MOST ((size_t)4 << 20)

typedef struct assembly {
    brc_array *a;
    const brc_piece_source *source;
    brc_box_set boxes;
    brc_arena arena;       /* pieces, and their lists of boxes                            */
    brc_piece *free_pieces;
    brc_piece *held;       /* the next piece, with its bytes: there was no room for it yet */
    brc_buf held_bytes;
    uint64_t last[BRC_MAX_NDIM]; /* the place of the piece before                         */
    int any, ended;
    int in_turn;           /* pieces are not in order: later ones are laid over earlier ones */
    size_t piece_bytes;    /* of the pieces in a job                                      */
    size_t on_the_way;     /* unfinished items                                            */
    size_t coming, guess;  /* for elements of variable length: the approximate bytes of unfinished
                            * pieces, and of one piece */
} assembly;

/* Chooses small pieces, but not so small that the pieces of one box fill the window. */
static size_t choose_piece_bytes(const assembly *as)
{
    const brc_pipe *pipe = &as->a->session->repo->pipe;
    size_t bytes = as->boxes.bytes / 8 / pipe->nworkers, most = pipe->memory / 8;
    if (bytes < BRC_WRITE_BYTES)
        bytes = BRC_WRITE_BYTES;
    if (bytes > PIECE_MOST)
        bytes = PIECE_MOST;
    return bytes < most ? bytes : most;
}

/* ---- complete chunks -------------------------------- */

static int list_complete(assembly *as, brc_box_of_chunks *box, uint64_t number,
                         brc_write_item *item, brc_old_chunks *old, brc_error *err)
{
    brc_region_part part;
    uint64_t index[BRC_MAX_NDIM];
    const int over_old = box->chunks[number] == BRC_CHUNK_READ;
    box_index(&as->boxes, box, number, index);
    brc_region_part_at(&part, as->a, &as->boxes.region, index);
    BRC_TRY(brc_array_item(as->a, part.chunk, item, err));
    item->len = as->boxes.room;
    item->owner = box;
    item->number = number;
    box->chunks[number] = BRC_CHUNK_LISTED;
    box->writing++;
    as->on_the_way++;
    /* elements of a fixed size already lie over the old content */
    if (as->boxes.is_table ? part.overlap.whole && !over_old : part.overlap.whole || over_old)
        return BRC_OK;
    return brc_old_add(old, as->a, item, index, err);
}

/* Lists boxes in the order of their closing; as many chunks as one job takes. */
static int list_closed(assembly *as, brc_write_item *items, size_t cap, size_t *n, brc_error *err)
{
    brc_old_chunks old = {.n = 0};
    brc_box_of_chunks *box;
    size_t bytes = 0;
    while (*n < cap && bytes < BRC_WRITE_BYTES && (box = boxes_closed(&as->boxes)) != NULL &&
           box->pieces == 0) {
        uint64_t number = box->next++;
        if (box->chunks[number] == BRC_CHUNK_TOUCHED || box->chunks[number] == BRC_CHUNK_READ) {
            BRC_TRY(list_complete(as, box, number, &items[(*n)++], &old, err));
            bytes += as->boxes.room;
        }
        box_leave(&as->boxes, box);
    }
    return brc_old_find(&old, as->a, err);
}

/* ---- pieces -------------------------------- */

static int piece_new(assembly *as, brc_piece **out, brc_error *err)
{
    brc_piece *piece = as->free_pieces;
    if (piece != NULL) {
        as->free_pieces = piece->next_free;
    } else {
        piece = brc_arena_take(&as->arena, sizeof(*piece));
        if (piece == NULL)
            return brc_nomem(err);
        piece->boxes = NULL;
        piece->boxes_cap = 0;
    }
    piece->nboxes = 0;
    piece->after = 0;
    piece->offset = 0;
    piece->kept = NULL;
    piece->chain = NULL;
    piece->skip = 0;
    memset(&piece->object, 0, sizeof(piece->object));
    piece->len = as->piece_bytes;
    *out = piece;
    return BRC_OK;
}

static void piece_free(assembly *as, brc_piece *piece)
{
    piece->next_free = as->free_pieces;
    as->free_pieces = piece;
}

/* Guesses the decoded bytes of elements of variable length, if the source does not know them. */
static size_t guess_len(const assembly *as, const brc_piece *piece)
{
    const size_t stored = as->held_bytes.len + (size_t)piece->object.stored;
    size_t len = piece->len > 0 ? piece->len : as->guess;
    return len > stored ? len : stored;
}

/* Remembers the longest of the recent pieces. */
static void learn_len(assembly *as, size_t len)
{
    as->guess = len > as->guess ? len : as->guess - (as->guess - len) / 8;
}

/* Makes as->held the next piece. Returns 1; 0 at the end, with all boxes closed. */
static int piece_pull(assembly *as, brc_error *err)
{
    brc_piece *piece = NULL;
    if (as->held != NULL)
        return 1;
    BRC_TRY(piece_new(as, &piece, err));
    as->held_bytes.len = 0;
    int rc = as->source->next(as->source->ctx, piece, &as->held_bytes, err);
    if (rc <= 0) {
        as->ended = rc == 0;
        boxes_close(&as->boxes, NULL);
        return rc;
    }
    if (as->any && brc_index_order(as->a->meta.ndim, piece->at, as->last) < 0)
        as->boxes.again = as->in_turn = 1;
    if (as->boxes.is_table)
        piece->len = guess_len(as, piece);
    as->any = 1;
    as->in_turn |= piece->after;
    memcpy(as->last, piece->at, sizeof(as->last));
    as->boxes.piece++;
    boxes_close(&as->boxes, piece->at);
    boxes_met(&as->boxes, &piece->region, piece->first, piece->count);
    as->held = piece;
    return 1;
}

/* Makes room for the list of boxes that the piece meets. */
static int piece_boxes(assembly *as, brc_piece *piece, brc_error *err)
{
    uint64_t n = brc_shape_count(as->a->meta.ndim, piece->count);
    piece->nboxes = 0;
    if (n <= piece->boxes_cap)
        return BRC_OK;
    if (n > SIZE_MAX / sizeof(*piece->boxes) / 2)
        return brc_nomem(err);
    piece->boxes = brc_arena_take(&as->arena, (size_t)n * sizeof(*piece->boxes));
    if (piece->boxes == NULL)
        return brc_nomem(err);
    piece->boxes_cap = (size_t)n;
    return BRC_OK;
}

/* Opens the boxes that the piece meets. Returns 1 if all are open, 0 if the piece must wait. */
static int piece_open(assembly *as, brc_piece *piece, brc_error *err)
{
    uint64_t at[BRC_MAX_NDIM] = {0}, box[BRC_MAX_NDIM];
    if (as->boxes.is_table && !boxes_have_room(&as->boxes, as->coming, piece->len))
        return 0;
    BRC_TRY(piece_boxes(as, piece, err));
    do {
        for (int i = 0; i < as->a->meta.ndim; i++)
            box[i] = piece->first[i] + at[i];
        brc_box_of_chunks **out = &piece->boxes[piece->nboxes];
        int rc = boxes_open(&as->boxes, &as->source->order, box, out, err);
        if (rc <= 0)
            return rc;
        if (as->in_turn && (*out)->pieces > 0)
            return 0;
        piece->nboxes++;
    } while (brc_index_next(as->a->meta.ndim, at, piece->count));
    for (size_t i = 0; i < piece->nboxes; i++)
        BRC_TRY(boxes_touch(&as->boxes, piece->boxes[i], &piece->region, err));
    return 1;
}

/* Lists a piece whose bytes go straight into the chunk, which is then complete. */
static int list_in_place(assembly *as, brc_piece *piece, brc_write_item *item, brc_error *err)
{
    brc_old_chunks old = {.n = 0};
    brc_box_of_chunks *box = piece->boxes[0];
    const uint64_t *index = piece->region.first;
    uint64_t number = box_number(&as->boxes, box, index);
    uint8_t *data = box_chunk(&as->boxes, box, index);
    BRC_TRY(as->source->read(as->source->ctx, data, piece->len, err));
    if (as->source->swaps)
        brc_dtype_swap(as->a->meta.type, data, data, piece->len / as->boxes.unit);
    piece_free(as, piece);
    BRC_TRY(list_complete(as, box, number, item, &old, err));
    return brc_old_find(&old, as->a, err);
}

static int list_piece(assembly *as, brc_piece *piece, brc_write_item *item, brc_error *err)
{
    brc_buf bytes = item->stored;
    item->stored = as->held_bytes;
    as->held_bytes = bytes;
    item->is_piece = 1;
    item->owner = piece;
    item->old = piece->object;
    if (as->source->read != NULL) {
        BRC_TRY(brc_buf_reserve(&item->stored, piece->len, err));
        BRC_TRY(as->source->read(as->source->ctx, item->stored.data, piece->len, err));
        item->stored.len = piece->len;
    }
    item->len = piece->chain != NULL ? piece->len : 0;
    if (as->boxes.is_table)
        BRC_TRY(boxes_keep(piece->boxes, piece->nboxes, &piece->kept, err));
    for (size_t i = 0; i < piece->nboxes; i++)
        piece->boxes[i]->pieces++;
    as->coming += piece->len;
    as->on_the_way++;
    return BRC_OK;
}

static int list_pieces(assembly *as, brc_write_item *items, size_t cap, size_t *n, brc_error *err)
{
    size_t bytes = 0;
    while (*n < cap && bytes < as->piece_bytes && !as->ended) {
        int rc = piece_pull(as, err);
        if (rc > 0)
            rc = piece_open(as, as->held, err);
        if (rc <= 0)
            return rc;
        brc_piece *piece = as->held;
        bytes += piece->len;
        as->held = NULL;
        BRC_TRY(as->source->is_chunk ? list_in_place(as, piece, &items[*n], err)
                                     : list_piece(as, piece, &items[*n], err));
        ++*n;
    }
    return BRC_OK;
}

/* Lists complete chunks first, because others wait for their memory. */
static int assembly_list(void *ctx, brc_write_item *items, size_t cap, size_t *n, brc_error *err)
{
    assembly *as = ctx;
    *n = 0;
    BRC_TRY(brc_task_step(as->a->session->repo, 0, err));
    for (;;) {
        BRC_TRY(list_closed(as, items, cap, n, err));
        if (*n == 0)
            BRC_TRY(list_pieces(as, items, cap, n, err));
        if (*n > 0 || (as->ended && as->boxes.active == 0))
            return BRC_OK;
        if (as->on_the_way > 0)
            return BRC_WINDOW_LATER;
    }
}

/* ---- on the pool -------------------------------- */

/* Finds the memory of a chunk of the piece, in the piece's boxes. */
static uint8_t *chunk_of_piece(const assembly *as, const brc_piece *piece, const uint64_t *index)
{
    const brc_box_set *set = &as->boxes;
    size_t number = 0;
    for (int i = 0; i < as->a->meta.ndim; i++)
        number = number * (size_t)piece->count[i] +
                 (size_t)((index[i] - set->region.first[i]) / set->extent[i] - piece->first[i]);
    return box_chunk(set, piece->boxes[number], index);
}

/* Copies the elements, or their spans, into the chunks of the piece's boxes. */
static void lay_elements(const assembly *as, const brc_piece *piece, const uint8_t *elements)
{
    const brc_region *r = &piece->region;
    brc_region_part part;
    for (uint64_t i = 0; i < r->nchunks; i++) {
        brc_region_part_of(&part, as->a, r, i);
        uint8_t *chunk = chunk_of_piece(as, piece, part.index);
        brc_copy_box(as->a->meta.ndim, part.overlap.count, as->boxes.unit, chunk + part.in_chunk,
                     part.strides, elements + part.in_memory, r->strides);
    }
}

/* Takes the bytes over: the boxes keep them. */
static int lay_spans(const assembly *as, const brc_piece *piece, brc_buf *bytes, brc_error *err)
{
    void *table;
    piece->kept->bytes = *bytes;
    *bytes = (brc_buf)BRC_BUF_INIT;
    const brc_span packed = {piece->kept->bytes.data, piece->kept->bytes.len};
    BRC_TRY(brc_new_array(&table, (size_t)piece->elements, sizeof(brc_span), err));
    int rc = brc_elements_find(table, piece->elements, packed, NULL);
    if (rc < 0)
        rc = brc_fail(err, BRC_ECORRUPT, "its elements are damaged");
    else
        lay_elements(as, piece, (const uint8_t *)table + piece->offset);
    free(table);
    return rc;
}

/* Turns *bytes from the stored bytes into the decoded ones. */
static int decode_piece(const assembly *as, brc_write_item *item, brc_scratch *scratch,
                        brc_buf **bytes, brc_error *err)
{
    const brc_piece *piece = item->owner;
    brc_buf *stored = &item->stored;
    if (item->old_bases != NULL) {
        *bytes = &item->own;
        return brc_write_old(item, scratch, &item->own, err);
    }
    if (item->old.found)
        BRC_TRY(brc_object_verify(&item->old, stored->data, err));
    if (piece->skip > 0) {
        stored->len -= piece->skip;
        memmove(stored->data, stored->data + piece->skip, stored->len);
    }
    if (piece->chain == NULL)
        return BRC_OK;
    *bytes = &item->own;
    if (!as->boxes.is_table)
        BRC_TRY(brc_buf_reserve(&item->own, piece->len, err));
    return brc_chain_decode(piece->chain, scratch, (brc_span){stored->data, stored->len}, NULL,
                            &item->own, err);
}

static int lay_down(const assembly *as, brc_write_item *item, brc_scratch *scratch, brc_error *err)
{
    const brc_piece *piece = item->owner;
    brc_buf *bytes = &item->stored;
    BRC_TRY(decode_piece(as, item, scratch, &bytes, err));
    if (as->boxes.is_table)
        return lay_spans(as, piece, bytes, err);
    if (bytes->len != piece->len)
        return brc_fail(err, BRC_ECORRUPT, "it decodes to %zu bytes, not %zu", bytes->len,
                        piece->len);
    if (as->source->swaps)
        brc_dtype_swap(as->a->meta.type, bytes->data, bytes->data, bytes->len / as->boxes.unit);
    lay_elements(as, piece, bytes->data + piece->offset);
    return BRC_OK;
}

/* Lays the selected elements of the chunk over its old content. */
static int gather_over(const assembly *as, brc_write_item *item, const brc_region_part *part,
                       const uint8_t *data, brc_scratch *scratch, brc_error *err)
{
    BRC_TRY(brc_write_old(item, scratch, &item->own, err));
    if (item->own.len != item->len)
        return brc_fail(err, BRC_ECORRUPT, "its bytes have the wrong length");
    brc_copy_box(as->a->meta.ndim, part->overlap.count, as->boxes.unit,
                 item->own.data + part->in_chunk, part->strides, data + part->in_chunk,
                 part->strides);
    return BRC_OK;
}

static int assembly_gather(void *ctx, brc_write_item *item, brc_scratch *scratch, brc_error *err)
{
    const assembly *as = ctx;
    const brc_dtype *type = as->a->meta.type;
    const brc_box_of_chunks *box = item->owner;
    uint64_t index[BRC_MAX_NDIM];
    brc_region_part part;
    if (item->is_piece)
        return lay_down(as, item, scratch, err);
    box_index(&as->boxes, box, item->number, index);
    brc_region_part_at(&part, as->a, &as->boxes.region, index);
    uint8_t *data = box_chunk(&as->boxes, box, index);
    if (as->boxes.is_table)
        return brc_gather_elements(item, (brc_span *)(void *)data, &as->a->meta, scratch, err);
    item->len = (size_t)part.elements * as->boxes.unit;
    if (item->old.found) {
        BRC_TRY(gather_over(as, item, &part, data, scratch, err));
        data = item->own.data;
    }
    if (brc_dtype_normalize(type, NULL,
                            0)) /* bits without a value must not make equal chunks differ */
        brc_dtype_normalize(type, data, (size_t)part.elements);
    item->data = data;
    return BRC_OK;
}

/* ---- after the flow -------------------------------- */

static int piece_done(assembly *as, brc_piece *piece)
{
    as->coming -= piece->len;
    if (piece->kept != NULL) {
        learn_len(as, piece->kept->bytes.len);
        boxes_count(&as->boxes, piece->kept);
    }
    for (size_t i = 0; i < piece->nboxes; i++) {
        piece->boxes[i]->pieces--;
        box_leave(&as->boxes, piece->boxes[i]);
    }
    piece_free(as, piece);
    return BRC_OK;
}

static int assembly_done(void *ctx, const brc_write_item *item, brc_error *err)
{
    assembly *as = ctx;
    uint64_t index[BRC_MAX_NDIM];
    brc_region_part part;
    as->on_the_way--;
    if (item->is_piece)
        return piece_done(as, item->owner);
    brc_box_of_chunks *box = item->owner;
    box_index(&as->boxes, box, item->number, index);
    brc_region_part_at(&part, as->a, &as->boxes.region, index);
    BRC_TRY(brc_array_put_chunk(as->a, index, item->is_fill ? NULL : &item->id, err));
    box->writing--;
    box_leave(&as->boxes, box);
    const size_t item_size = as->boxes.is_table ? 1 : as->boxes.unit; /* the unit of progress */
    return brc_task_step(as->a->session->repo,
                         brc_shape_count(as->a->meta.ndim, part.overlap.count) * item_size, err);
}

static void assembly_name(void *ctx, const brc_write_item *item, brc_error *err)
{
    const assembly *as = ctx;
    uint64_t index[BRC_MAX_NDIM];
    if (item->is_piece) {
        if (as->source->name != NULL)
            as->source->name(as->source->ctx, item->owner, err);
        return;
    }
    box_index(&as->boxes, item->owner, item->number, index);
    brc_array_name_chunk(as->a, index, err);
}

int brc_array_assemble(brc_array *a, const brc_sel *sel, const brc_piece_source *source,
                       brc_error *err)
{
    brc_pipe *pipe = &a->session->repo->pipe;
    assembly as = {.a = a, .source = source};
    int rc = boxes_init(&as.boxes, a, sel, &source->order, pipe->memory, err);
    if (rc < 0 || as.boxes.region.nchunks == 0)
        return rc;
    as.boxes.covered = source->covers;
    as.piece_bytes = choose_piece_bytes(&as);
    size_t held = as.boxes.bytes * as.boxes.most + as.boxes.most_kept + source->held;
    const size_t most_held = pipe->memory / 2;
    brc_write_ops ops = {
        .ctx = &as,
        .held = held < most_held ? held : most_held,
        .list = assembly_list,
        .gather = assembly_gather,
        .done = assembly_done,
        .name = assembly_name,
    };
    brc_task task =
        brc_task_begin(a->session->repo, "write", brc_region_bytes(a, &as.boxes.region));
    rc = brc_flow_write(pipe, brc_array_store(a), &ops, err);
    brc_task_end(a->session->repo, &task, rc);
    boxes_dispose(&as.boxes);
    brc_arena_dispose(&as.arena);
    brc_buf_dispose(&as.held_bytes);
    return rc;
}
