#include "places.h"

#include <stdlib.h>
#include <string.h>

#include "../../base/alloc.h"
#include "../../base/sized.h"
#include "../../nd/shape.h"
#include "../../tree/map.h"

/* ==== sel chunks ================================ */

int brc_sel_part_of(brc_sel_part *out, const brc_sel *sel, const uint64_t *corner,
                    const uint64_t *extent)
{
    for (int i = 0; i < sel->ndim; i++) {
        const uint64_t start = sel->start[i], step = sel->step[i] > 0 ? sel->step[i] : 1;
        const uint64_t end = extent[i] > UINT64_MAX - corner[i] ? UINT64_MAX
                                                                : corner[i] + extent[i];
        uint64_t lo = corner[i] > start ? (corner[i] - start + step - 1) / step : 0;
        uint64_t hi = end > start ? (end - start + step - 1) / step : 0;
        hi = hi < sel->count[i] ? hi : sel->count[i];
        if (lo >= hi)
            return 0;
        out->from[i] = lo;
        out->n[i] = hi - lo;
    }
    return 1;
}

void brc_chunk_keys_dispose(brc_chunk_keys *list)
{
    free(list->keys);
    brc_arena_dispose(&list->memory);
    *list = (brc_chunk_keys)BRC_CHUNK_KEYS_INIT;
}

int brc_chunk_keys_add(brc_chunk_keys *list, brc_span key, brc_error *err)
{
    uint8_t *copy;
    void *keys = list->keys;
    int rc = brc_grow_array(&keys, &list->cap, list->n + 1, sizeof(*list->keys), err);
    list->keys = keys;
    BRC_TRY(rc);
    BRC_TRY(brc_arena_copy(&list->memory, key.data, key.len, &copy, err));
    list->keys[list->n++] = (brc_span){copy, key.len};
    return BRC_OK;
}

static int key_order(const void *a, const void *b)
{
    const brc_span *x = a, *y = b;
    const size_t len = x->len < y->len ? x->len : y->len;
    int order = memcmp(x->data, y->data, len);
    return order != 0 ? order : (x->len > y->len) - (x->len < y->len);
}

/* Finds the first chunk along each axis, and the number of chunks between the ends of the part; 0
 * if all of them together are more than `most`. */
static int box_of(uint64_t *first, uint64_t *count, const brc_sel *sel, const brc_sel_part *part,
                  const brc_grid *grid, uint64_t most)
{
    uint64_t n = 1;
    for (int i = 0; i < sel->ndim; i++) {
        const uint64_t start = sel->start[i] + part->from[i] * sel->step[i];
        first[i] = brc_grid_find(grid, i, start);
        count[i] = brc_grid_find(grid, i, start + (part->n[i] - 1) * sel->step[i]) - first[i] + 1;
        if (!brc_mul_u64(n, count[i], &n) || n > most)
            return 0;
    }
    return 1;
}

static int add_if_met(brc_chunk_keys *list, const brc_sel *sel, const brc_grid *grid,
                      const uint64_t *first, const uint64_t *at, brc_error *err)
{
    uint64_t index[BRC_MAX_NDIM], corner[BRC_MAX_NDIM], extent[BRC_MAX_NDIM];
    uint8_t key[BRC_CHUNK_KEY_MAX];
    brc_sel_part part;
    for (int i = 0; i < sel->ndim; i++)
        index[i] = first[i] + at[i];
    brc_grid_chunk(grid, index, corner, extent);
    if (!brc_sel_part_of(&part, sel, corner, extent)) /* the steps skip the chunk */
        return BRC_OK;
    return brc_chunk_keys_add(list, (brc_span){key, brc_chunk_key_encode(key, sel->ndim, index)},
                              err);
}

int brc_sel_chunks(brc_chunk_keys *list, int *listed, const brc_sel *sel, const brc_grid *grid,
                   uint64_t most, brc_error *err)
{
    static const uint64_t origin[BRC_MAX_NDIM];
    uint64_t first[BRC_MAX_NDIM], count[BRC_MAX_NDIM], at[BRC_MAX_NDIM] = {0};
    brc_sel_part inside;
    *listed = 1;
    if (sel->ndim != grid->ndim || !brc_sel_part_of(&inside, sel, origin, grid->shape))
        return BRC_OK;
    *listed = box_of(first, count, sel, &inside, grid, most);
    if (!*listed)
        return BRC_OK;
    do
        BRC_TRY(add_if_met(list, sel, grid, first, at, err));
    while (brc_index_next(sel->ndim, at, count));
    if (list->n > 1)
        qsort(list->keys, list->n, sizeof(*list->keys), key_order);
    return BRC_OK;
}

/* ==== places ================================ */

/* ---- positions -------------------------------- */

/* Returns the j-th position along an axis. */
static inline uint64_t position(const brc_place_axis *axis, uint64_t j)
{
    if (axis->index == NULL)
        return axis->start + j * axis->step;
    const int64_t at = axis->index[j];
    return at < 0 ? axis->extent - (0 - (uint64_t)at) : (uint64_t)at;
}

static inline uint64_t ordered(const brc_place_parts *parts, uint64_t k)
{
    return parts->order != NULL ? parts->order[k] : k;
}

static int check_index(const brc_place_axis *axis, int number, brc_error *err)
{
    for (uint64_t j = 0; j < axis->count; j++) {
        const int64_t at = axis->index[j];
        const uint64_t size = at < 0 ? 0 - (uint64_t)at : (uint64_t)at;
        if (at < 0 ? size > axis->extent : size >= axis->extent)
            return brc_fail(err, BRC_EINVAL,
                            "index %lld is out of bounds for axis %d with size %llu", (long long)at,
                            number, (unsigned long long)axis->extent);
    }
    return BRC_OK;
}

/* Takes the axes. Ranges are checked as a selection of their own, in which index arrays select
 * nothing. */
static int take_axes(brc_places *p, const brc_at *at, const uint64_t *shape, brc_error *err)
{
    brc_sel ranges = BRC_SEL_INIT;
    brc_sel_of_shape(&ranges, p->ndim, shape);
    for (int i = 0; i < p->ndim; i++) {
        brc_place_axis *axis = &p->axis[i];
        *axis = (brc_place_axis){at->index[i], at->start[i], at->step[i], at->count[i], shape[i]};
        if (axis->index != NULL) {
            BRC_TRY(check_index(axis, i, err));
        } else if (p->points) {
            return brc_fail(err, BRC_EINVAL,
                            "points need an index array for each axis: axis %d has none", i);
        } else {
            ranges.start[i] = axis->start;
            ranges.step[i] = axis->step;
            ranges.count[i] = axis->count;
        }
        if (p->points && axis->count != p->axis[0].count)
            return brc_fail(err, BRC_EINVAL,
                            "points have %llu indexes along axis 0 and %llu along axis %d",
                            (unsigned long long)p->axis[0].count, (unsigned long long)axis->count,
                            i);
    }
    return brc_sel_check(&ranges, p->ndim, shape, err);
}

/* ---- sorted into chunks -------------------------------- */

typedef struct place_key {
    uint64_t chunk, rank, place;
} place_key;

static int place_key_order(const void *x, const void *y)
{
    const place_key *a = x, *b = y;
    if (a->chunk != b->chunk)
        return a->chunk < b->chunk ? -1 : 1;
    return a->rank < b->rank ? -1 : a->rank > b->rank;
}

/* Sorts by counting, for the usual case of few rows of chunks: gives room to each row, then puts
 * the places there in order. */
static int sort_by_counting(const place_key *keys, uint64_t n, uint64_t low, uint64_t rows,
                            uint64_t *order, brc_error *err)
{
    void *memory;
    uint64_t sum = 0;
    BRC_TRY(brc_new_array(&memory, (size_t)rows, sizeof(uint64_t), err));
    uint64_t *room = memory;
    for (uint64_t k = 0; k < n; k++)
        room[keys[k].chunk - low]++;
    for (uint64_t row = 0; row < rows; row++) {
        const uint64_t many = room[row];
        room[row] = sum;
        sum += many;
    }
    for (uint64_t k = 0; k < n; k++)
        order[room[keys[k].chunk - low]++] = keys[k].place;
    free(memory);
    return BRC_OK;
}

static int sort_keys(place_key *keys, uint64_t n, uint64_t *order, brc_error *err)
{
    uint64_t low = keys[0].chunk, high = low;
    for (uint64_t k = 1; k < n; k++) {
        low = keys[k].chunk < low ? keys[k].chunk : low;
        high = keys[k].chunk > high ? keys[k].chunk : high;
    }
    if (high - low < 1024 || high - low < n)
        return sort_by_counting(keys, n, low, high - low + 1, order, err);
    qsort(keys, (size_t)n, sizeof(*keys), place_key_order);
    for (uint64_t k = 0; k < n; k++)
        order[k] = keys[k].place;
    return BRC_OK;
}

/* Sorts a list that is sorted along some axes by the chunks along one more axis; the sort is
 * stable. */
static int sort_along(const brc_places *p, int number, brc_place_parts *parts, brc_error *err)
{
    const brc_place_axis *axis = &p->axis[number];
    const uint64_t n = axis->count;
    void *memory = NULL, *made = NULL;
    uint64_t last = 0;
    int sorted = 1, rc = BRC_OK;
    if (axis->index == NULL || n < 2)
        return BRC_OK;
    BRC_GO(brc_new_array(&memory, (size_t)n, sizeof(place_key), err));
    place_key *keys = memory;
    for (uint64_t k = 0; k < n; k++) {
        const uint64_t j = ordered(parts, k);
        keys[k] = (place_key){brc_grid_find(p->grid, number, position(axis, j)), k, j};
        sorted &= keys[k].chunk >= last;
        last = keys[k].chunk;
    }
    if (sorted)
        goto done;
    if (parts->order == NULL) {
        BRC_GO(brc_new_array(&made, (size_t)n, sizeof(uint64_t), err));
        parts->order = made;
    }
    rc = sort_keys(keys, n, parts->order, err);
done:
    free(memory);
    return rc;
}

/* ---- cut into parts -------------------------------- */

/* Begins a part at place k of the order. */
static int add_place_part(brc_place_parts *parts, size_t *cap, int axes, uint64_t k,
                          const uint64_t *chunk, brc_error *err)
{
    void *from = parts->from, *chunks = parts->chunk;
    size_t room = *cap;
    const size_t need = (size_t)parts->n + 2;
    int rc = brc_grow_array(&from, &room, need, sizeof(uint64_t), err);
    parts->from = from;
    room = *cap;
    if (rc == BRC_OK)
        rc = brc_grow_array(&chunks, &room, need, (size_t)axes * sizeof(uint64_t), err);
    parts->chunk = chunks;
    if (rc < 0)
        return rc;
    *cap = room;
    parts->from[parts->n] = k;
    memcpy(parts->chunk + parts->n++ * (uint64_t)axes, chunk, (size_t)axes * sizeof(*chunk));
    return BRC_OK;
}

/* Finds the place where a range leaves the row of chunks of its j-th position. */
static uint64_t range_leaves(const brc_places *p, int number, uint64_t j)
{
    const brc_place_axis *axis = &p->axis[number];
    const uint64_t at = position(axis, j);
    const uint64_t end = brc_grid_round_up(p->grid, number, at + 1);
    const uint64_t many = (end - at - 1) / axis->step + 1;
    return many < axis->count - j ? j + many : axis->count;
}

/* Cuts the list into parts by `axes` axes from `first` on: all for points, otherwise one. */
static int cut_parts(const brc_places *p, int first, int axes, brc_place_parts *parts,
                     brc_error *err)
{
    uint64_t chunk[BRC_MAX_NDIM] = {0}, last[BRC_MAX_NDIM] = {0};
    const uint64_t n = p->axis[first].count;
    size_t cap = 0;
    for (uint64_t k = 0; k < n;) {
        const uint64_t j = ordered(parts, k);
        for (int i = 0; i < axes; i++)
            chunk[i] = brc_grid_find(p->grid, first + i, position(&p->axis[first + i], j));
        if (k == 0 || memcmp(chunk, last, sizeof(chunk)) != 0)
            BRC_TRY(add_place_part(parts, &cap, axes, k, chunk, err));
        memcpy(last, chunk, sizeof(chunk));
        k = p->axis[first].index == NULL ? range_leaves(p, first, k) : k + 1;
    }
    if (n > 0)
        parts->from[parts->n] = n;
    return BRC_OK;
}

static int make_parts(brc_places *p, brc_error *err)
{
    if (p->points) {
        for (int i = p->ndim - 1; i >= 0; i--)
            BRC_TRY(sort_along(p, i, &p->parts[0], err));
        return cut_parts(p, 0, p->ndim, &p->parts[0], err);
    }
    for (int i = 0; i < p->ndim; i++) {
        BRC_TRY(sort_along(p, i, &p->parts[i], err));
        BRC_TRY(cut_parts(p, i, 1, &p->parts[i], err));
    }
    return BRC_OK;
}

int brc_places_new(brc_places **out, const brc_at *at, const brc_grid *grid, const uint64_t *shape,
                   brc_error *err)
{
    void *memory;
    *out = NULL;
    BRC_TRY(brc_flags_check(at->flags, BRC_AT_POINTS, "brc_at", err));
    if (at->ndim != grid->ndim || (at->ndim == 0 && at->flags & BRC_AT_POINTS))
        return brc_fail(err, BRC_EINVAL,
                        "the positions are along %d ax%s, but the array has %d dimension%s",
                        at->ndim, at->ndim == 1 ? "is" : "es", grid->ndim,
                        grid->ndim == 1 ? "" : "s");
    BRC_TRY(brc_new(&memory, sizeof(brc_places), err));
    brc_places *p = *out = memory;
    p->ndim = at->ndim;
    p->points = (at->flags & BRC_AT_POINTS) != 0;
    p->grid = grid;
    BRC_TRY(take_axes(p, at, shape, err));
    for (int i = 0; i < p->ndim; i++)
        if (p->axis[i].count == 0)
            return BRC_OK;
    return make_parts(p, err);
}

void brc_places_free(brc_places *p)
{
    if (p == NULL)
        return;
    for (int i = 0; i < p->ndim; i++) {
        free(p->parts[i].order);
        free(p->parts[i].from);
        free(p->parts[i].chunk);
    }
    free(p);
}

/* ---- chunk by chunk -------------------------------- */

static int lists(const brc_places *p)
{
    return p->points ? 1 : p->ndim;
}

uint64_t brc_places_chunks(const brc_places *p)
{
    uint64_t n = 1;
    for (int i = 0; i < p->ndim; i++)
        if (p->axis[i].count == 0)
            return 0;
    for (int i = 0; i < lists(p); i++)
        n = brc_mul_capped(n, p->parts[i].n);
    return n;
}

void brc_places_piece(const brc_places *p, uint64_t i, uint64_t *piece)
{
    for (int d = lists(p) - 1; d >= 0; d--) {
        piece[d] = i % p->parts[d].n;
        i /= p->parts[d].n;
    }
}

void brc_places_chunk(const brc_places *p, const uint64_t *piece, uint64_t *index)
{
    for (int d = 0; d < p->ndim; d++)
        index[d] = p->points ? p->parts[0].chunk[piece[0] * (uint64_t)p->ndim + (uint64_t)d]
                             : p->parts[d].chunk[piece[d]];
}

/* Returns the list that orders axis d, and the range of its part in the chunk. */
static const brc_place_parts *part_along(const brc_places *p, const uint64_t *piece, int d,
                                         uint64_t *from, uint64_t *end)
{
    const int list = p->points ? 0 : d;
    *from = p->parts[list].from[piece[list]];
    *end = p->parts[list].from[piece[list] + 1];
    return &p->parts[list];
}

/* Tells whether each index is one more than the index before. */
static int is_in_line(const brc_place_axis *axis, const brc_place_parts *parts, uint64_t k,
                      uint64_t end)
{
    if (axis->index == NULL)
        return axis->step == 1;
    for (; k + 1 < end; k++)
        if (position(axis, ordered(parts, k)) + 1 != position(axis, ordered(parts, k + 1)))
            return 0;
    return 1;
}

static void find_ends(const brc_place_axis *axis, const brc_place_parts *parts, uint64_t k,
                      uint64_t end, uint64_t *low, uint64_t *high)
{
    *low = *high = position(axis, ordered(parts, k));
    if (axis->index == NULL)
        k = end - 1;
    for (; k < end; k++) {
        const uint64_t at = position(axis, ordered(parts, k));
        *low = at < *low ? at : *low;
        *high = at > *high ? at : *high;
    }
}

void brc_places_bounds(const brc_places *p, const uint64_t *piece, const uint64_t *corner,
                       const uint64_t *chunk, brc_overlap *out)
{
    out->whole = !p->points || p->ndim == 1;
    for (int d = 0; d < p->ndim; d++) {
        const brc_place_axis *axis = &p->axis[d];
        const uint64_t left = axis->extent - corner[d];
        uint64_t from, end, low, high;
        const brc_place_parts *parts = part_along(p, piece, d, &from, &end);
        find_ends(axis, parts, from, end, &low, &high);
        out->in_chunk[d] = low - corner[d];
        out->count[d] = high - low + 1;
        out->whole &= out->count[d] == (chunk[d] < left ? chunk[d] : left) &&
                      is_in_line(axis, parts, from, end);
    }
}

/* ---- copying -------------------------------- */

static inline void copy_unit(uint8_t *dst, const uint8_t *src, size_t unit)
{
    switch (unit) {
    case 1: *dst = *src; break;
    case 2: memcpy(dst, src, 2); break;
    case 4: memcpy(dst, src, 4); break;
    case 8: memcpy(dst, src, 8); break;
    case 16: memcpy(dst, src, 16); break;
    default: memcpy(dst, src, unit);
    }
}

static inline void move_unit(const brc_places_move *m, int64_t in_memory, int64_t in_chunk)
{
    if (m->to_chunk)
        copy_unit(m->chunk + in_chunk, m->memory + in_memory, m->unit);
    else
        copy_unit(m->memory + in_memory, m->chunk + in_chunk, m->unit);
}

static void copy_points(const brc_places_move *m)
{
    const brc_places *p = m->places;
    uint64_t k, end;
    const brc_place_parts *parts = part_along(p, m->piece, 0, &k, &end);
    for (; k < end; k++) {
        const uint64_t j = ordered(parts, k);
        int64_t at = 0;
        for (int d = 0; d < p->ndim; d++)
            at += (int64_t)(position(&p->axis[d], j) - m->corner[d]) * m->in_chunk[d];
        move_unit(m, (int64_t)j * m->in_memory[0], at);
    }
}

/* Copies the box of the last axes that are ranges; `tail` is the first of these axes. */
static void copy_tail(const brc_places_move *m, int tail, int64_t in_memory, int64_t in_chunk)
{
    const brc_places *p = m->places;
    uint64_t count[BRC_MAX_NDIM], from, end;
    int64_t chunk[BRC_MAX_NDIM];
    for (int d = tail; d < p->ndim; d++) {
        (void)part_along(p, m->piece, d, &from, &end);
        count[d] = end - from;
        in_memory += (int64_t)from * m->in_memory[d];
        in_chunk += (int64_t)(position(&p->axis[d], from) - m->corner[d]) * m->in_chunk[d];
        chunk[d] = (int64_t)p->axis[d].step * m->in_chunk[d];
    }
    if (m->to_chunk)
        brc_copy_box(p->ndim - tail, count + tail, m->unit, m->chunk + in_chunk, chunk + tail,
                     m->memory + in_memory, m->in_memory + tail);
    else
        brc_copy_box(p->ndim - tail, count + tail, m->unit, m->memory + in_memory,
                     m->in_memory + tail, m->chunk + in_chunk, chunk + tail);
}

static void copy_along(const brc_places_move *m, int d, int tail, int64_t in_memory,
                       int64_t in_chunk)
{
    const brc_places *p = m->places;
    uint64_t k, end;
    if (d == tail && tail < p->ndim) {
        copy_tail(m, tail, in_memory, in_chunk);
        return;
    }
    if (d == p->ndim) {
        move_unit(m, in_memory, in_chunk);
        return;
    }
    const brc_place_parts *parts = part_along(p, m->piece, d, &k, &end);
    for (; k < end; k++) {
        const uint64_t j = ordered(parts, k);
        copy_along(m, d + 1, tail, in_memory + (int64_t)j * m->in_memory[d],
                   in_chunk + (int64_t)(position(&p->axis[d], j) - m->corner[d]) * m->in_chunk[d]);
    }
}

void brc_places_copy(const brc_places_move *m)
{
    int tail = m->places->ndim;
    if (m->places->points) {
        copy_points(m);
        return;
    }
    while (tail > 0 && m->places->axis[tail - 1].index == NULL)
        tail--;
    copy_along(m, 0, tail, 0, 0);
}
