#include "differing.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "../base/alloc.h"

/* ==== boxes ================================ */

void brc_boxes_init(brc_boxes *boxes, int ndim)
{
    boxes->ndim = ndim;
    boxes->n = 0;
}

/* The volume as a double: boxes are only compared. */
static double box_volume(int ndim, const brc_one_box *box)
{
    double volume = 1;
    for (int i = 0; i < ndim; i++)
        volume *= (double)(box->last[i] - box->first[i]) + 1;
    return volume;
}

static void box_join(int ndim, brc_one_box *into, const brc_one_box *from)
{
    if (!brc_add_u64(into->elements, from->elements, &into->elements))
        into->elements = UINT64_MAX;
    for (int i = 0; i < ndim; i++) {
        into->first[i] = from->first[i] < into->first[i] ? from->first[i] : into->first[i];
        into->last[i] = from->last[i] > into->last[i] ? from->last[i] : into->last[i];
    }
}

/* Returns the elements of the common box of two that differ in neither. */
static double box_waste(int ndim, const brc_one_box *a, const brc_one_box *b)
{
    brc_one_box both = *a;
    box_join(ndim, &both, b);
    return box_volume(ndim, &both) - (double)both.elements;
}

static int boxes_fit(int ndim, const brc_one_box *a, const brc_one_box *b)
{
    brc_one_box both = *a;
    box_join(ndim, &both, b);
    return (double)both.elements >= box_volume(ndim, &both) / 2;
}

static void box_drop(brc_boxes *boxes, int i)
{
    memmove(&boxes->box[i], &boxes->box[i + 1],
            (size_t)(boxes->n - i - 1) * sizeof(boxes->box[0]));
    boxes->n--;
}

/* Joins the box at `i` with others as long as one fits. */
static void box_settle(brc_boxes *boxes, int i)
{
    for (int k = 0; k < boxes->n; k++) {
        if (k == i || !boxes_fit(boxes->ndim, &boxes->box[i], &boxes->box[k]))
            continue;
        box_join(boxes->ndim, &boxes->box[i], &boxes->box[k]);
        box_drop(boxes, k);
        i -= k < i;
        k = -1;
    }
}

/* Joins the two boxes whose common box has the fewest equal elements more than they have. */
static void boxes_reduce(brc_boxes *boxes)
{
    const int ndim = boxes->ndim;
    int a = 0, b = 1;
    double least = INFINITY;
    for (int i = 0; i < boxes->n; i++)
        for (int k = i + 1; k < boxes->n; k++) {
            const double waste = box_waste(ndim, &boxes->box[i], &boxes->box[k]);
            if (waste < least) {
                least = waste;
                a = i;
                b = k;
            }
        }
    box_join(ndim, &boxes->box[a], &boxes->box[b]);
    box_drop(boxes, b);
    box_settle(boxes, a);
}

void brc_boxes_add(brc_boxes *boxes, uint64_t elements, const uint64_t *first,
                   const uint64_t *last)
{
    const size_t len = (size_t)boxes->ndim * sizeof(*first);
    brc_one_box *box = &boxes->box[boxes->n++];
    box->elements = elements;
    if (len > 0) {
        memcpy(box->first, first, len);
        memcpy(box->last, last, len);
    }
    box_settle(boxes, boxes->n - 1);
    if (boxes->n > BRC_BOXES_MOST)
        boxes_reduce(boxes);
}

void brc_boxes_merge(brc_boxes *into, const brc_boxes *from)
{
    for (int i = 0; i < from->n; i++)
        brc_boxes_add(into, from->box[i].elements, from->box[i].first, from->box[i].last);
}

static int c_order_of(int ndim, const uint64_t *x, const uint64_t *y)
{
    for (int i = 0; i < ndim; i++)
        if (x[i] != y[i])
            return x[i] < y[i] ? -1 : 1;
    return 0;
}

void brc_boxes_settle(brc_boxes *boxes)
{
    const int ndim = boxes->ndim;
    double volume = 0;
    if (boxes->n == 0)
        return;
    brc_one_box whole = boxes->box[0];
    for (int i = 0; i < boxes->n; i++) {
        volume += box_volume(ndim, &boxes->box[i]);
        if (i > 0)
            box_join(ndim, &whole, &boxes->box[i]);
    }
    if (volume > box_volume(ndim, &whole) / 2) {
        boxes->box[0] = whole;
        boxes->n = 1;
    }
    for (int i = 1; i < boxes->n; i++) {
        const brc_one_box moved = boxes->box[i];
        int k = i;
        for (; k > 0 && c_order_of(ndim, moved.first, boxes->box[k - 1].first) < 0; k--)
            boxes->box[k] = boxes->box[k - 1];
        boxes->box[k] = moved;
    }
}

/* ==== cells ================================ */

/* Halves the longest edge as long as there are few cells. */
static size_t cut_cells(brc_cells *cells, const uint64_t *shape)
{
    size_t n = 1;
    for (int i = 0; i < cells->ndim; i++) {
        cells->edge[i] = shape[i] > 0 ? shape[i] : 1;
        cells->count[i] = 1;
    }
    while (cells->ndim > 0) {
        int longest = 0;
        for (int i = 1; i < cells->ndim; i++)
            longest = cells->edge[i] > cells->edge[longest] ? i : longest;
        const uint64_t edge = cells->edge[longest] - cells->edge[longest] / 2;
        const uint64_t count = brc_grid_extent(shape[longest], edge);
        const size_t others = n / (size_t)cells->count[longest];
        if (edge == cells->edge[longest] || others * count > BRC_CELLS_MOST)
            return n;
        cells->edge[longest] = edge;
        cells->count[longest] = count;
        n = others * (size_t)count;
    }
    return n;
}

int brc_cells_init(brc_cells *cells, int ndim, const uint64_t *shape, brc_error *err)
{
    void *memory;
    *cells = (brc_cells){.ndim = ndim};
    cells->n = cut_cells(cells, shape);
    BRC_TRY(brc_new_array(&memory, cells->n, sizeof(*cells->cell), err));
    cells->cell = memory;
    const int rc = brc_lock_new(&cells->lock, err);
    if (rc < 0)
        free(memory);
    return rc;
}

static void cell_add(brc_one_box *cell, int ndim, const brc_one_box *part)
{
    if (cell->elements == 0)
        *cell = *part;
    else
        box_join(ndim, cell, part);
}

void brc_cells_add(brc_cells *cells, const uint64_t *first, const uint64_t *last)
{
    const int axis = cells->ndim - 1;
    brc_one_box part = {.elements = 1};
    size_t row = 0;
    brc_lock_enter(cells->lock);
    if (axis < 0) {
        cell_add(cells->cell, 0, &part);
        brc_lock_leave(cells->lock);
        return;
    }
    for (int i = 0; i <= axis; i++) {
        part.first[i] = part.last[i] = first[i];
        row = row * (size_t)cells->count[i] + (i < axis ? (size_t)(first[i] / cells->edge[i]) : 0);
    }
    for (uint64_t at = first[axis]; at <= last[axis]; at = part.last[axis] + 1) {
        const uint64_t cell = at / cells->edge[axis], end = (cell + 1) * cells->edge[axis] - 1;
        part.first[axis] = at;
        part.last[axis] = end < last[axis] ? end : last[axis];
        part.elements = part.last[axis] - at + 1;
        cell_add(&cells->cell[row + (size_t)cell], cells->ndim, &part);
    }
    brc_lock_leave(cells->lock);
}

void brc_cells_to_boxes(const brc_cells *cells, brc_boxes *out)
{
    for (size_t i = 0; i < cells->n; i++)
        if (cells->cell[i].elements > 0)
            brc_boxes_add(out, cells->cell[i].elements, cells->cell[i].first, cells->cell[i].last);
}

void brc_cells_dispose(brc_cells *cells)
{
    free(cells->cell);
    brc_lock_free(cells->lock);
}

/* ==== picks ================================ */

int brc_picks_init(brc_picks *picks, int ndim, size_t most, brc_error *err)
{
    *picks = (brc_picks){.ndim = ndim, .most = most};
    return brc_lock_new(&picks->lock, err);
}

static brc_picked *pick_at(const brc_picks *picks, size_t i)
{
    return (brc_picked *)picks->heap + i;
}

static int pick_order(const brc_picks *picks, size_t i, size_t k)
{
    return c_order_of(picks->ndim, pick_at(picks, i)->index, pick_at(picks, k)->index);
}

static void pick_swap(const brc_picks *picks, size_t i, size_t k)
{
    const brc_picked moved = *pick_at(picks, i);
    *pick_at(picks, i) = *pick_at(picks, k);
    *pick_at(picks, k) = moved;
}

static void pick_rise(const brc_picks *picks, size_t i)
{
    for (; i > 0 && pick_order(picks, i, (i - 1) / 2) > 0; i = (i - 1) / 2)
        pick_swap(picks, i, (i - 1) / 2);
}

/* Sinks the pick at the top among the first n. */
static void pick_sink(const brc_picks *picks, size_t n)
{
    for (size_t i = 0, last;; i = last) {
        const size_t left = 2 * i + 1, right = 2 * i + 2;
        last = i;
        if (left < n && pick_order(picks, left, last) > 0)
            last = left;
        if (right < n && pick_order(picks, right, last) > 0)
            last = right;
        if (last == i)
            return;
        pick_swap(picks, i, last);
    }
}

/* Copies an element to memory of its own. Returns 0 if there is none. */
static int pick_make(brc_picked *out, int ndim, const uint64_t *index, brc_span before,
                     brc_span now)
{
    const size_t head = (size_t)ndim * sizeof(*index);
    uint8_t *memory = malloc(head + before.len + now.len + 1);
    if (memory == NULL)
        return 0;
    out->index = (void *)memory;
    if (head > 0)
        memcpy(memory, index, head);
    out->side[0] = out->side[1] = (brc_span){NULL, 0};
    if (before.data != NULL)
        out->side[0] = (brc_span){memcpy(memory + head, before.data, before.len), before.len};
    if (now.data != NULL)
        out->side[1] = (brc_span){memcpy(memory + head + before.len, now.data, now.len), now.len};
    return 1;
}

static int is_full_before(const brc_picks *picks, const uint64_t *index)
{
    return picks->failed || (picks->n == picks->most &&
                             (picks->n == 0 ||
                              c_order_of(picks->ndim, pick_at(picks, 0)->index, index) < 0));
}

static void pick_keep(brc_picks *picks, const brc_picked *pick)
{
    if (picks->n == picks->most) {
        free(pick_at(picks, 0)->index);
        *pick_at(picks, 0) = *pick;
        pick_sink(picks, picks->n);
        return;
    }
    if (brc_grow_array(&picks->heap, &picks->cap, picks->n + 1, sizeof(brc_picked), NULL) < 0) {
        free(pick->index);
        picks->failed = 1;
        return;
    }
    *pick_at(picks, picks->n) = *pick;
    pick_rise(picks, picks->n++);
}

void brc_picks_add(brc_picks *picks, const uint64_t *index, brc_span before, brc_span now)
{
    brc_picked pick;
    brc_lock_enter(picks->lock);
    if (!is_full_before(picks, index)) {
        if (pick_make(&pick, picks->ndim, index, before, now))
            pick_keep(picks, &pick);
        else
            picks->failed = 1;
    }
    brc_lock_leave(picks->lock);
}

int brc_picks_beyond(brc_picks *picks, const uint64_t *index)
{
    brc_lock_enter(picks->lock);
    const int is = is_full_before(picks, index);
    brc_lock_leave(picks->lock);
    return is;
}

int brc_picks_settle(brc_picks *picks, brc_error *err)
{
    if (picks->failed)
        return brc_fail(err, BRC_ENOMEM, "there is not enough memory for the elements that differ");
    for (size_t n = picks->n; n > 1; n--) {
        pick_swap(picks, 0, n - 1);
        pick_sink(picks, n - 1);
    }
    return BRC_OK;
}

void brc_picks_dispose(brc_picks *picks)
{
    for (size_t i = 0; i < picks->n; i++)
        free(pick_at(picks, i)->index);
    free(picks->heap);
    brc_lock_free(picks->lock);
    memset(picks, 0, sizeof(*picks));
}

/* ==== sums ================================ */

void brc_sum_add(brc_exact_sum *sum, double number)
{
    if (!isfinite(number)) {
        sum->infinite = 1;
        return;
    }
    const double high = sum->high + number, part = high - sum->high;
    sum->low += (sum->high - (high - part)) + (number - part);
    sum->high = high;
}

void brc_sum_merge(brc_exact_sum *into, const brc_exact_sum *from)
{
    brc_sum_add(into, from->high);
    brc_sum_add(into, from->low);
    into->infinite |= from->infinite;
}

double brc_sum_of(const brc_exact_sum *sum)
{
    return sum->infinite || !isfinite(sum->high) ? INFINITY : sum->high + sum->low;
}

/* ==== what counts ================================ */

/* Counts the selected indexes from..to-1 of an axis. */
static uint64_t axis_within(const brc_sel *sel, int axis, uint64_t from, uint64_t to)
{
    const uint64_t start = sel->start[axis], step = sel->step[axis] > 0 ? sel->step[axis] : 1;
    const uint64_t before = from > start ? (from - start + step - 1) / step : 0;
    uint64_t until = to > start ? (to - start + step - 1) / step : 0;
    until = until < sel->count[axis] ? until : sel->count[axis];
    return until > before ? until - before : 0;
}

uint64_t brc_sel_within(const brc_sel *sel, const uint64_t *corner, const uint64_t *count)
{
    uint64_t n = 1;
    for (int i = 0; i < sel->ndim; i++)
        n = brc_mul_capped(n, axis_within(sel, i, corner[i], corner[i] + count[i]));
    return n;
}

int brc_sel_meets(const brc_sel *sel, const uint64_t *corner, const uint64_t *count)
{
    return brc_sel_within(sel, corner, count) > 0;
}

int brc_sel_has(const brc_sel *sel, const uint64_t *index)
{
    for (int i = 0; i < sel->ndim; i++)
        if (axis_within(sel, i, index[i], index[i] + 1) == 0)
            return 0;
    return 1;
}
