/*
 * Copying a box between two strided places.
 *
 * The axes are put in the order of the destination's strides, neighbours that lie
 * in one piece on both sides become one axis, and the innermost becomes part of
 * the element where possible. The remaining work is a loop over planes:
 *
 *     outer axes ... | rows | cells
 *
 * cells: the destination's smallest stride; rows: the source's smallest stride
 * if it is another axis. Such a plane is a transposition and is copied in
 * tiles, so that each cache line of either side is used up while it is near.
 */
#include "box.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "../base/buf.h"
#include "dtype.h"
#include "dtype_ops.h"
#include "shape.h"

/* ==== copy box ================================ */

struct copy_axis {
    uint64_t n;
    int64_t dst, src; /* strides in bytes */
};

struct copy_plan {
    int naxes;
    size_t item;
    struct copy_axis axis[BRC_MAX_NDIM + 2]; /* two of extent 1 if a box has fewer */
};

/* Wraps instead of overflowing: callers only compare the result with a stride. */
static int64_t axis_span(uint64_t n, int64_t stride)
{
    return (int64_t)(n * (uint64_t)stride);
}

static uint64_t stride_size(int64_t stride)
{
    return stride < 0 ? 0 - (uint64_t)stride : (uint64_t)stride;
}

/* Insertion sort, the largest destination stride first; equal strides stay in order. */
static void plan_sort(struct copy_plan *plan)
{
    for (int i = 1; i < plan->naxes; i++) {
        struct copy_axis moved = plan->axis[i];
        int at = i;
        for (; at > 0 && stride_size(plan->axis[at - 1].dst) < stride_size(moved.dst); at--)
            plan->axis[at] = plan->axis[at - 1];
        plan->axis[at] = moved;
    }
}

static void plan_merge(struct copy_plan *plan)
{
    int kept = 0;
    for (int i = 1; i < plan->naxes; i++) {
        struct copy_axis *outer = &plan->axis[kept], inner = plan->axis[i];
        if (outer->dst == axis_span(inner.n, inner.dst) &&
            outer->src == axis_span(inner.n, inner.src)) {
            inner.n *= outer->n;
            *outer = inner;
        } else {
            plan->axis[++kept] = inner;
        }
    }
    if (plan->naxes > 0)
        plan->naxes = kept + 1;
    if (plan->naxes > 0) {
        const struct copy_axis *last = &plan->axis[plan->naxes - 1];
        if (last->dst == (int64_t)plan->item && last->src == (int64_t)plan->item) {
            plan->item *= (size_t)last->n;
            plan->naxes--;
        }
    }
}

/* Puts the axis with the source's smallest stride beside the innermost one. */
static void plan_pick_rows(struct copy_plan *plan)
{
    int best = plan->naxes - 1;
    for (int i = plan->naxes - 2; i >= 0; i--)
        if (plan->axis[i].src != 0 &&
            stride_size(plan->axis[i].src) < stride_size(plan->axis[best].src))
            best = i;
    if (best >= plan->naxes - 2)
        return;
    struct copy_axis rows = plan->axis[best];
    for (int i = best; i < plan->naxes - 2; i++)
        plan->axis[i] = plan->axis[i + 1];
    plan->axis[plan->naxes - 2] = rows;
}

/* Makes the plan, which has at least two axes. Returns 0 if the box is empty. */
static int plan_make(struct copy_plan *plan, int ndim, const uint64_t *shape, size_t item,
                     const int64_t *dst_strides, const int64_t *src_strides)
{
    plan->naxes = 0;
    plan->item = item;
    for (int d = 0; d < ndim; d++) {
        if (shape[d] == 0)
            return 0;
        if (shape[d] > 1)
            plan->axis[plan->naxes++] =
                (struct copy_axis){ shape[d], dst_strides[d], src_strides[d] };
    }
    plan_sort(plan);
    plan_merge(plan);
    plan_pick_rows(plan);
    while (plan->naxes < 2) {
        for (int i = plan->naxes; i > 0; i--)
            plan->axis[i] = plan->axis[i - 1];
        plan->axis[0] = (struct copy_axis){ 1, 0, 0 };
        plan->naxes++;
    }
    return item > 0;
}

/* Copies one tile of a plane. With a constant width the memcpy is a move or two. */
static inline void move_tile(const struct copy_axis *rows, const struct copy_axis *cells,
                             uint64_t nrows, uint64_t ncells, size_t width, uint8_t *dst,
                             const uint8_t *src)
{
    for (uint64_t r = 0; r < nrows; r++) {
        uint8_t *to = dst + (int64_t)r * rows->dst;
        const uint8_t *from = src + (int64_t)r * rows->src;
        for (uint64_t c = 0; c < ncells; c++)
            memcpy(to + (int64_t)c * cells->dst, from + (int64_t)c * cells->src, width);
    }
}

static void move_tile_any(const struct copy_axis *rows, const struct copy_axis *cells,
                          uint64_t nrows, uint64_t ncells, size_t width, uint8_t *dst,
                          const uint8_t *src)
{
    switch (width) {
    case 1: move_tile(rows, cells, nrows, ncells, 1, dst, src); break;
    case 2: move_tile(rows, cells, nrows, ncells, 2, dst, src); break;
    case 3: move_tile(rows, cells, nrows, ncells, 3, dst, src); break;
    case 4: move_tile(rows, cells, nrows, ncells, 4, dst, src); break;
    case 6: move_tile(rows, cells, nrows, ncells, 6, dst, src); break;
    case 8: move_tile(rows, cells, nrows, ncells, 8, dst, src); break;
    case 12: move_tile(rows, cells, nrows, ncells, 12, dst, src); break;
    case 16: move_tile(rows, cells, nrows, ncells, 16, dst, src); break;
    default: move_tile(rows, cells, nrows, ncells, width, dst, src); break;
    }
}

#define TILE_ROWS 64
#define TILE_CELLS 16

static void move_plane(const struct copy_axis *rows, const struct copy_axis *cells, size_t width,
                       uint8_t *dst, const uint8_t *src)
{
    int transposed = rows->src != 0 && stride_size(rows->src) < stride_size(cells->src);
    if (!transposed || rows->n == 1) {
        move_tile_any(rows, cells, rows->n, cells->n, width, dst, src);
        return;
    }
    for (uint64_t r = 0; r < rows->n; r += TILE_ROWS) {
        uint64_t nrows = rows->n - r < TILE_ROWS ? rows->n - r : TILE_ROWS;
        for (uint64_t c = 0; c < cells->n; c += TILE_CELLS) {
            uint64_t ncells = cells->n - c < TILE_CELLS ? cells->n - c : TILE_CELLS;
            move_tile_any(rows, cells, nrows, ncells, width,
                          dst + (int64_t)r * rows->dst + (int64_t)c * cells->dst,
                          src + (int64_t)r * rows->src + (int64_t)c * cells->src);
        }
    }
}

void brc_copy_box(int ndim, const uint64_t *shape, size_t item, uint8_t *dst,
                  const int64_t *dst_strides, const uint8_t *src, const int64_t *src_strides)
{
    struct copy_plan plan;
    uint64_t index[BRC_MAX_NDIM + 2] = { 0 };
    if (!plan_make(&plan, ndim, shape, item, dst_strides, src_strides))
        return;
    const struct copy_axis *rows = &plan.axis[plan.naxes - 2], *cells = &plan.axis[plan.naxes - 1];
    for (;;) {
        move_plane(rows, cells, plan.item, dst, src);
        int d = plan.naxes - 3;
        for (; d >= 0; d--) {
            const struct copy_axis *axis = &plan.axis[d];
            if (++index[d] < axis->n) {
                dst += axis->dst;
                src += axis->src;
                break;
            }
            index[d] = 0;
            dst -= (int64_t)(axis->n - 1) * axis->dst;
            src -= (int64_t)(axis->n - 1) * axis->src;
        }
        if (d < 0)
            return;
    }
}

/* Hands over one row of cells: at once if the rows do not meet in either place. */
static int each_rectangle(const struct copy_plan *plan, int64_t at, int64_t near,
                          brc_rectangle_fn each, void *ctx, brc_error *err)
{
    const struct copy_axis *cells = &plan->axis[plan->naxes - 1];
    brc_rectangle r = {at, near, 0, 0, plan->item, 1};
    const int64_t width = plan->item <= INT64_MAX ? (int64_t)plan->item : INT64_MAX;
    if (cells->n == 1)
        return each(ctx, &r, err);
    if (cells->dst >= width && cells->src >= width) {
        r.pitch = (size_t)cells->dst;
        r.near_pitch = (size_t)cells->src;
        r.rows = (size_t)cells->n;
        return each(ctx, &r, err);
    }
    for (uint64_t i = 0; i < cells->n; i++) {
        BRC_TRY(each(ctx, &r, err));
        r.at += cells->dst;
        r.near += cells->src;
    }
    return BRC_OK;
}

int brc_box_rectangles(int ndim, const uint64_t *shape, size_t item, const int64_t *strides,
                       const int64_t *near_strides, brc_rectangle_fn each, void *ctx,
                       brc_error *err)
{
    struct copy_plan plan;
    uint64_t index[BRC_MAX_NDIM + 2] = { 0 };
    int64_t at = 0, near = 0;
    if (!plan_make(&plan, ndim, shape, item, strides, near_strides))
        return BRC_OK;
    for (;;) {
        BRC_TRY(each_rectangle(&plan, at, near, each, ctx, err));
        int d = plan.naxes - 2;
        for (; d >= 0; d--) {
            const struct copy_axis *axis = &plan.axis[d];
            if (++index[d] < axis->n) {
                at += axis->dst;
                near += axis->src;
                break;
            }
            index[d] = 0;
            at -= (int64_t)(axis->n - 1) * axis->dst;
            near -= (int64_t)(axis->n - 1) * axis->src;
        }
        if (d < 0)
            return BRC_OK;
    }
}

/* ==== fill ================================ */

/* Filling a box with one element, and testing whether all elements equal one. */

#define FILL_BLOCK 4096   /* stays in the first-level cache while it is the source    */
#define FILL_SMALL 256    /* pieces up to this are copied as one element             */
#define EQUAL_BLOCK 65536 /* how far a memcmp() without an early exit may look ahead */
#define EQUAL_FIRST 64    /* compared first: real data mostly differs here already  */

static int bytes_are_alike(const uint8_t *data, size_t len)
{
    return len <= 1 || memcmp(data, data + 1, len - 1) == 0;
}

void brc_fill_run(uint8_t *dst, uint64_t n, size_t item, const uint8_t *element)
{
    size_t len = (size_t)n * item;
    if (len == 0)
        return;
    if (bytes_are_alike(element, item)) {
        memset(dst, element[0], len);
        return;
    }
    memcpy(dst, element, item);
    /* the filled part is doubled up to a block, then the block is repeated */
    size_t block = item < FILL_BLOCK ? FILL_BLOCK - FILL_BLOCK % item : item;
    for (size_t done = item, step; done < len; done += step) {
        step = done < block ? done : block;
        if (step > len - done)
            step = len - done;
        memcpy(dst + done, dst, step);
    }
}

/* Returns the number of elements of the trailing axes that lie in one piece; *outer is the number
 * of the other axes. */
static uint64_t piece_elements(int ndim, const uint64_t *shape, size_t item, const int64_t *strides,
                               int *outer)
{
    uint64_t n = 1;
    int d = ndim;
    while (d > 0 && (shape[d - 1] == 1 || strides[d - 1] == (int64_t)(n * item)))
        n *= shape[--d];
    *outer = d;
    return n;
}

void brc_fill_box(int ndim, const uint64_t *shape, size_t item, uint8_t *dst,
                  const int64_t *dst_strides, const uint8_t *element)
{
    static const int64_t still[BRC_MAX_NDIM] = { 0 };
    uint64_t index[BRC_MAX_NDIM] = { 0 };
    int outer;
    for (int d = 0; d < ndim; d++)
        if (shape[d] == 0)
            return;
    if (item == 0)
        return;
    uint64_t n = piece_elements(ndim, shape, item, dst_strides, &outer);
    uint8_t small[FILL_SMALL];
    if (n == 1 || n <= FILL_SMALL / item) {
        if (n > 1)
            brc_fill_run(small, n, item, element);
        brc_copy_box(outer, shape, (size_t)n * item, dst, dst_strides, n > 1 ? small : element,
                     still);
        return;
    }
    do {
        uint8_t *piece = dst;
        for (int d = 0; d < outer; d++)
            piece += (int64_t)index[d] * dst_strides[d];
        brc_fill_run(piece, n, item, element);
    } while (brc_index_next(outer, index, shape));
}

int brc_all_equal(const uint8_t *data, uint64_t n, size_t item, const uint8_t *element)
{
    size_t len = (size_t)n * item;
    if (len == 0)
        return 1;
    if (memcmp(data, element, item) != 0)
        return 0;
    /* each element equals its predecessor, and the first equals `element` */
    size_t at = 0, left = len - item, block = EQUAL_FIRST;
    while (left > 0) {
        if (block > left)
            block = left;
        if (memcmp(data + at, data + at + item, block) != 0)
            return 0;
        at += block;
        left -= block;
        block = EQUAL_BLOCK;
    }
    return 1;
}

/* ==== chunk cut ================================ */

/* Cutting boxes of elements into chunks, see box.h. */

void brc_chunk_box(brc_sel *out, int ndim, const uint64_t *shape, const uint64_t *chunk,
                   const uint64_t *index)
{
    memset(out, 0, sizeof(*out));
    out->ndim = ndim;
    for (int k = 0; k < ndim; k++) {
        out->start[k] = index[k] * chunk[k];
        uint64_t left = shape[k] - out->start[k];
        out->count[k] = left < chunk[k] ? left : chunk[k];
        out->step[k] = 1;
    }
}

/* Returns whether a chunk's elements lie in the box one after the other, so that they need no
 * copy. */
static int lies_in_one_piece(const brc_sel *box, const uint64_t *chunk, const uint64_t *in_box)
{
    int k = 0;
    while (k < box->ndim && chunk[k] == 1)
        k++;
    for (k++; k < box->ndim; k++) /* after the first longer axis, all axes are whole    */
        if (chunk[k] != box->count[k])
            return 0;
    for (k = 0; k < box->ndim; k++)
        if (in_box[k] + chunk[k] > box->count[k])
            return 0;
    return 1;
}

static int cut_fixed(brc_chunk_cutter *c, const brc_sel *box, const uint64_t *index,
                     const uint8_t *data, brc_error *err)
{
    int64_t from[BRC_MAX_NDIM] = { 0 }, to[BRC_MAX_NDIM] = { 0 }, at = 0;
    uint64_t elements = brc_shape_count(c->ndim, c->chunk);
    brc_overlap part;
    size_t len;

    if (!brc_overlap_of(&part, box, c->shape, c->chunk, index))
        return BRC_OK;
    brc_strides_packed(c->ndim, box->count, c->item, from);
    for (int i = 0; i < c->ndim; i++)
        at += (int64_t)part.in_sel[i] * from[i];
    if (!brc_mul_u64(elements, c->item, &elements) || !brc_to_size(elements, &len))
        return brc_fail(err, BRC_ELIMIT, "a chunk has more bytes than memory can hold");
    if (lies_in_one_piece(box, c->chunk, part.in_sel))
        return c->put(c->ctx, index, (brc_span){ data + at, len }, err);
    c->part.len = 0;
    BRC_TRY(brc_buf_reserve(&c->part, len, err));
    brc_strides_packed(c->ndim, c->chunk, c->item, to);
    if (memcmp(part.count, c->chunk, (size_t)c->ndim * sizeof(*c->chunk)) != 0)
        brc_fill_run(c->part.data, len / c->item, c->item, c->fill.data);
    brc_copy_box(c->ndim, part.count, c->item, c->part.data, to, data + at, from);
    return c->put(c->ctx, index, (brc_span){ c->part.data, len }, err);
}

/* Finds the place of each element of the box; an element includes its length. */
static int find_spans(brc_chunk_cutter *c, const brc_sel *box, brc_span data, brc_error *err)
{
    uint64_t n = brc_shape_count(box->ndim, box->count);
    brc_reader in = brc_reader_of(data.data, data.len);
    size_t need;
    if (!brc_to_size(n, &need))
        return brc_fail(err, BRC_ELIMIT, "a chunk has more elements than memory can hold");
    BRC_TRY(brc_grow_array((void **)&c->spans, &c->cap, need, sizeof(*c->spans), err));
    for (uint64_t i = 0; i < n; i++) {
        const uint8_t *start = in.at, *count = brc_read_bytes(&in, 4);
        size_t len = count ? brc_get_u32le(count) : 0;
        if (!count || !brc_read_bytes(&in, len))
            return brc_fail(err, BRC_EINTERNAL, "elements of a box are missing");
        c->spans[i] = (brc_span){ start, len + 4 };
    }
    return BRC_OK;
}

static int cut_variable(brc_chunk_cutter *c, const brc_sel *box, const uint64_t *index,
                        brc_error *err)
{
    uint64_t at[BRC_MAX_NDIM] = { 0 };
    brc_overlap part;

    if (!brc_overlap_of(&part, box, c->shape, c->chunk, index))
        return BRC_OK;
    c->part.len = 0;
    do {
        uint64_t number = 0;
        int inside = 1;
        for (int i = 0; i < c->ndim; i++) {
            inside &= at[i] < part.count[i];
            number = number * box->count[i] + part.in_sel[i] + at[i];
        }
        brc_span element = inside ? c->spans[number] : c->fill;
        BRC_TRY(brc_buf_append(&c->part, element.data, element.len, err));
    } while (brc_index_next(c->ndim, at, c->chunk));
    return c->put(c->ctx, index, (brc_span){ c->part.data, c->part.len }, err);
}

int brc_chunk_cut(brc_chunk_cutter *c, const brc_sel *box, brc_span data, brc_error *err)
{
    uint64_t first[BRC_MAX_NDIM], count[BRC_MAX_NDIM], step[BRC_MAX_NDIM] = { 0 };
    if (c->item == 0)
        BRC_TRY(find_spans(c, box, data, err));
    for (int i = 0; i < c->ndim; i++) {
        first[i] = box->start[i] / c->chunk[i];
        count[i] = (box->start[i] + box->count[i] - 1) / c->chunk[i] - first[i] + 1;
    }
    do {
        uint64_t index[BRC_MAX_NDIM];
        for (int i = 0; i < c->ndim; i++)
            index[i] = first[i] + step[i];
        BRC_TRY(c->item == 0 ? cut_variable(c, box, index, err)
                             : cut_fixed(c, box, index, data.data, err));
    } while (brc_index_next(c->ndim, step, count));
    return BRC_OK;
}

void brc_chunk_cutter_dispose(brc_chunk_cutter *c)
{
    brc_buf_dispose(&c->part);
    free(c->spans);
    c->spans = NULL;
}

/* ==== merge box ================================ */

/* A run of elements along the last axis, all of which lie in the same sides. */
typedef struct merge_run {
    uint64_t at, n;               /* number of the first element in the chunk, and of elements */
    const uint8_t *src[BRC_SIDES]; /* NULL: the side has no elements here           */
    size_t step[BRC_SIDES];
} merge_run;

/* The place of the walk in a mask. */
typedef struct mask_place {
    brc_reader r;
    uint64_t from, to; /* the bounds of the next run of the mask, or of the one in progress */
} mask_place;

typedef struct box_walk {
    brc_box_merge *m;
    mask_place mask;
    int is_masked;
    uint64_t row[BRC_MAX_NDIM]; /* index of the row's first element in the chunk */
    uint64_t noted;             /* elements up to here are in `found`, or left out of it */
    uint64_t run_from, run_to;  /* conflicts side by side, not written yet       */
    int too_long;
} box_walk;

/* ---- masks -------------------------------- */

static void mask_next_run(mask_place *p)
{
    uint64_t skip, n;
    if (brc_reader_left(&p->r) == 0) {
        p->from = p->to = UINT64_MAX;
        return;
    }
    skip = brc_read_varint(&p->r);
    n = brc_read_varint(&p->r);
    if (p->r.bad || !brc_add_u64(p->to, skip, &p->from) || !brc_add_u64(p->from, n, &p->to))
        p->from = p->to = UINT64_MAX;
}

/* Returns whether the mask has the element. Calls come in the order of elements. */
static int mask_has(mask_place *p, uint64_t at)
{
    while (p->to <= at && p->from != UINT64_MAX)
        mask_next_run(p);
    return at >= p->from && at < p->to;
}

static int write_noted_run(box_walk *w, brc_error *err)
{
    brc_buf *out = &w->m->found;
    if (w->run_to == w->run_from || w->too_long)
        return BRC_OK;
    if (out->len > BRC_MASK_MOST) {
        w->too_long = 1;
        out->len = 0;
        return BRC_OK;
    }
    BRC_TRY(brc_buf_varint(out, w->run_from - w->noted, err));
    BRC_TRY(brc_buf_varint(out, w->run_to - w->run_from, err));
    w->noted = w->run_to;
    return BRC_OK;
}

/* Adds a conflicting element: its number in the chunk, and its index along the row. */
static int note_conflict(box_walk *w, uint64_t at, uint64_t along, brc_error *err)
{
    brc_box_merge *m = w->m;
    for (int i = 0; i < m->ndim; i++) {
        const uint64_t x = m->corner[i] + (i == m->ndim - 1 ? along : w->row[i]);
        if (m->conflicts == 0 || x < m->first[i])
            m->first[i] = x;
        if (m->conflicts == 0 || x > m->last[i])
            m->last[i] = x;
    }
    m->conflicts++;
    if (at == w->run_to && w->run_to > w->run_from) {
        w->run_to++;
        return BRC_OK;
    }
    BRC_TRY(write_noted_run(w, err));
    w->run_from = at;
    w->run_to = at + 1;
    return BRC_OK;
}

/* ---- elements -------------------------------- */

static inline int same_element(const uint8_t *a, const uint8_t *b, size_t item, int is_spans)
{
    brc_span x, y;
    if (!is_spans)
        return memcmp(a, b, item) == 0;
    memcpy(&x, a, sizeof(x));
    memcpy(&y, b, sizeof(y));
    return x.len == y.len && (x.data == y.data || memcmp(x.data, y.data, x.len) == 0);
}

static int is_unknown(box_walk *w, uint64_t at)
{
    return w->m->unknown && (!w->is_masked || mask_has(&w->mask, at));
}

static inline __attribute__((always_inline)) int merge_items(box_walk *w, const merge_run *run,
                                                             uint64_t along, size_t item,
                                                             int is_spans, brc_error *err)
{
    brc_box_merge *m = w->m;
    const uint8_t *b = run->src[BRC_SIDE_BASE], *o = run->src[BRC_SIDE_OURS];
    const uint8_t *t = run->src[BRC_SIDE_THEIRS];
    uint8_t *out = m->out + run->at * item;
    for (uint64_t i = 0; i < run->n; i++, out += item) {
        const uint8_t *from = o;
        if (!same_element(o, t, item, is_spans)) {
            const int known = !is_unknown(w, run->at + i);
            if (known && same_element(b, o, item, is_spans)) {
                from = t;
            } else if (!known || !same_element(b, t, item, is_spans)) {
                from = m->favour == BRC_SIDE_THEIRS ? t : o;
                BRC_TRY(note_conflict(w, run->at + i, along + i, err));
            }
            m->differs[from == o ? BRC_SIDE_THEIRS : BRC_SIDE_OURS] = 1;
        }
        memcpy(out, from, item);
        b += run->step[BRC_SIDE_BASE];
        o += run->step[BRC_SIDE_OURS];
        t += run->step[BRC_SIDE_THEIRS];
    }
    return BRC_OK;
}

static int merge_both(box_walk *w, const merge_run *run, uint64_t along, brc_error *err)
{
    const brc_box_merge *m = w->m;
    if (m->is_spans)
        return merge_items(w, run, along, sizeof(brc_span), 1, err);
    switch (m->item) {
    case 1: return merge_items(w, run, along, 1, 0, err);
    case 2: return merge_items(w, run, along, 2, 0, err);
    case 4: return merge_items(w, run, along, 4, 0, err);
    case 8: return merge_items(w, run, along, 8, 0, err);
    default: return merge_items(w, run, along, m->item, 0, err);
    }
}

static void take_items(const brc_box_merge *m, const merge_run *run, int side)
{
    uint8_t *out = m->out + run->at * m->item;
    if (run->step[side] != 0)
        memcpy(out, run->src[side], (size_t)run->n * m->item);
    else
        brc_fill_run(out, run->n, m->item, run->src[side]);
}

static int merge_this_run(box_walk *w, const merge_run *run, uint64_t along, brc_error *err)
{
    brc_box_merge *m = w->m;
    const int ours = run->src[BRC_SIDE_OURS] != NULL, theirs = run->src[BRC_SIDE_THEIRS] != NULL;
    if (ours && theirs && m->take == 0)
        return merge_both(w, run, along, err);
    const int from = !ours || (theirs && m->take == BRC_SIDE_THEIRS) ? BRC_SIDE_THEIRS
                                                                     : BRC_SIDE_OURS;
    m->differs[from == BRC_SIDE_OURS ? BRC_SIDE_THEIRS : BRC_SIDE_OURS] = 1;
    if (ours || theirs)
        take_items(m, run, from);
    else
        m->differs[from] = 1;
    return BRC_OK;
}

static int count_changed(box_walk *w, const merge_run *run, uint64_t along, int side,
                         brc_error *err)
{
    const brc_box_merge *m = w->m;
    const uint8_t *b = run->src[BRC_SIDE_BASE], *s = run->src[side];
    for (uint64_t i = 0; i < run->n && s != NULL; i++) {
        if (is_unknown(w, run->at + i) || !same_element(b, s, m->item, m->is_spans))
            BRC_TRY(note_conflict(w, run->at + i, along + i, err));
        b += run->step[BRC_SIDE_BASE];
        s += run->step[side];
    }
    return BRC_OK;
}

/* ---- rows -------------------------------- */

static uint64_t row_number(const brc_box_merge *m, const uint64_t *row)
{
    uint64_t at = 0;
    for (int i = 0; i < m->ndim; i++)
        at = at * m->shape[i] + (i == m->ndim - 1 ? 0 : row[i]);
    return at;
}

/* Returns how many elements of a row lie within these extents. */
static uint64_t row_extent(const brc_box_merge *m, const uint64_t *row, const uint64_t *count)
{
    for (int i = 0; i < m->ndim - 1; i++)
        if (row[i] >= count[i])
            return 0;
    return m->ndim > 0 ? count[m->ndim - 1] : 1;
}

static void point_run(merge_run *run, const brc_box_merge *m, const uint64_t *extent,
                      uint64_t along)
{
    for (int s = 0; s < BRC_SIDES; s++) {
        const brc_merge_input *in = &m->in[s];
        const int is_inside = along < extent[s];
        run->step[s] = is_inside && in->data != NULL ? m->item : 0;
        run->src[s] = run->step[s] != 0 ? in->data + run->at * m->item : in->fill;
        if (!is_inside && s != BRC_SIDE_BASE)
            run->src[s] = NULL;
    }
}

/* Merges the elements from..to of a row (side -1), or counts those that `side` has changed. */
static int walk_row(box_walk *w, uint64_t from, uint64_t to, int side, brc_error *err)
{
    const brc_box_merge *m = w->m;
    uint64_t extent[BRC_SIDES];
    for (int s = 0; s < BRC_SIDES; s++)
        extent[s] = row_extent(m, w->row, m->in[s].count);
    while (from < to) {
        merge_run run = {.at = row_number(m, w->row) + from};
        uint64_t end = to;
        for (int s = 0; s < BRC_SIDES; s++)
            if (extent[s] > from && extent[s] < end)
                end = extent[s];
        run.n = end - from;
        point_run(&run, m, extent, from);
        BRC_TRY(side < 0 ? merge_this_run(w, &run, from, err)
                         : count_changed(w, &run, from, side, err));
        from = end;
    }
    return BRC_OK;
}

static void walk_start(box_walk *w, brc_box_merge *m)
{
    memset(w, 0, sizeof(*w));
    w->m = m;
    w->is_masked = m->mask.len > 0;
    w->mask.r = brc_reader_of(m->mask.data, m->mask.len);
    m->conflicts = 0;
    m->found.len = 0;
    memset(m->differs, 0, sizeof(m->differs));
}

static int walk_end(box_walk *w, brc_error *err)
{
    BRC_TRY(write_noted_run(w, err));
    if (w->too_long)
        w->m->found.len = 0;
    return BRC_OK;
}

/* Steps to the next row of a box. Returns 0 after the last. */
static int next_row(const brc_box_merge *m, uint64_t *row, const uint64_t *count)
{
    return m->ndim > 1 && brc_index_next(m->ndim - 1, row, count);
}

int brc_box_merge_run(brc_box_merge *m, brc_error *err)
{
    box_walk w;
    walk_start(&w, m);
    do
        BRC_TRY(walk_row(&w, 0, row_extent(m, w.row, m->count), -1, err));
    while (next_row(m, w.row, m->count));
    return walk_end(&w, err);
}

int brc_box_merge_changed(brc_box_merge *m, int side, int outside, brc_error *err)
{
    box_walk w;
    const uint64_t *box = outside ? m->in[side].count : m->count;
    walk_start(&w, m);
    do {
        const uint64_t from = outside ? row_extent(m, w.row, m->count) : 0;
        BRC_TRY(walk_row(&w, from, row_extent(m, w.row, box), side, err));
    } while (next_row(m, w.row, box));
    return walk_end(&w, err);
}
