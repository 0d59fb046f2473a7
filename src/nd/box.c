/*
 * Copying a box between two strided places.
 *
 * The axes are put in the order of the destination's strides, neighbours that lie
 * in one piece on both sides become one axis, and the innermost becomes part of
 * the element where it can. What is left is a loop over planes:
 *
 *     outer axes ... | rows | cells
 *
 * cells: the destination's smallest stride; rows: the source's smallest stride
 * where that is another axis. Such a plane is a transposition and is done in
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

/* Comparing runs of packed elements: counts the differences and finds the largest. */

typedef struct brc_run_diff {
    size_t elements;
    double max_abs; /* 0 if no two numbers differ */
} brc_run_diff;

/* Compares n elements side by side. */
typedef void (*brc_compare_run_fn)(const brc_dtype *type, const uint8_t *x, const uint8_t *y,
                                   size_t n, brc_run_diff *out);

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

/* Wraps instead of overflowing: only its being equal to a stride counts. */
static int64_t axis_span(uint64_t n, int64_t stride)
{
    return (int64_t)(n * (uint64_t)stride);
}

static uint64_t stride_size(int64_t stride)
{
    return stride < 0 ? 0 - (uint64_t)stride : (uint64_t)stride;
}

/* Insertion sort, the largest destination stride first; equal ones stay in order. */
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

/* Makes the plan, which has two axes at least. Returns 0 if the box is empty. */
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

/* ==== fill ================================ */

/* Fills with one element, and tests for it. */

#define FILL_BLOCK 4096   /* stays in the first cache while it is copied from         */
#define FILL_SMALL 256    /* pieces up to this are copied as one element             */
#define EQUAL_BLOCK 65536 /* how far a memcmp() without an early exit may look ahead */
#define EQUAL_FIRST 64    /* looked at first: real data differs here already        */

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

/* Returns the elements of the trailing axes that lie in one piece; *outer is the number of the
 * others. */
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
    /* each element equals the one before it; the first equals ours */
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

/* ==== compare runs ================================ */

/*
 * The loops of element differences, one for each common number type. They go through
 * blocks of a fixed size without a branch, so that compilers make vectors of them.
 * 64-bit integers and times are subtracted as such: as doubles, neighbours are often
 * equal.
 */

#define BLOCK 64 /* of elements; what a uint8_t can count */
#define LANES 8  /* results side by side, where their order is not free */

#if defined(__BYTE_ORDER__) && __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
#define FROM_LE16(v) __builtin_bswap16(v)
#define FROM_LE32(v) __builtin_bswap32(v)
#define FROM_LE64(v) __builtin_bswap64(v)
#else
#define FROM_LE16(v) (v)
#define FROM_LE32(v) (v)
#define FROM_LE64(v) (v)
#endif
#define FROM_LE8(v) (v)

#define LOADER(bits)                                                        \
    static inline uint##bits##_t load_u##bits(const uint8_t *p, size_t i)   \
    {                                                                       \
        uint##bits##_t v;                                                   \
        memcpy(&v, p + i * sizeof(v), sizeof(v));                           \
        return FROM_LE##bits(v);                                            \
    }
LOADER(8)
LOADER(16)
LOADER(32)
LOADER(64)

/* ---- integers ---------------------------------------------------------------- */

/* `flip` gives unsigned numbers the order of the type: its sign bit, or 0. */
#define INTEGER_STEP(bits, flip, i)                                                        \
    do {                                                                                   \
        uint##bits##_t a = load_u##bits(x, i) ^ (flip), b = load_u##bits(y, i) ^ (flip);   \
        uint##bits##_t apart = (uint##bits##_t)(a > b ? a - b : b - a);                    \
        most = apart > most ? apart : most;                                                \
        differ = (uint##bits##_t)(differ + (a != b));                                      \
    } while (0)

#define INTEGER_RUN(name, bits, flip)                                                      \
    static void name(const brc_dtype *type, const uint8_t *x, const uint8_t *y, size_t n,  \
                     brc_run_diff *out)                                                    \
    {                                                                                      \
        uint##bits##_t most = 0, differ;                                                   \
        (void)type;                                                                        \
        out->elements = 0;                                                                 \
        for (; n >= BLOCK; n -= BLOCK, x += BLOCK * (bits / 8), y += BLOCK * (bits / 8)) { \
            differ = 0;                                                                    \
            for (size_t i = 0; i < BLOCK; i++)                                             \
                INTEGER_STEP(bits, flip, i);                                               \
            out->elements += differ;                                                       \
        }                                                                                  \
        differ = 0;                                                                        \
        for (size_t i = 0; i < n; i++)                                                     \
            INTEGER_STEP(bits, flip, i);                                                   \
        out->elements += differ;                                                           \
        out->max_abs = (double)most;                                                       \
    }

INTEGER_RUN(run_u8, 8, 0U)
INTEGER_RUN(run_u16, 16, 0U)
INTEGER_RUN(run_u32, 32, UINT32_C(0))
INTEGER_RUN(run_u64, 64, UINT64_C(0))
INTEGER_RUN(run_i8, 8, 0x80U)
INTEGER_RUN(run_i16, 16, 0x8000U)
INTEGER_RUN(run_i32, 32, UINT32_C(1) << 31)
INTEGER_RUN(run_i64, 64, UINT64_C(1) << 63)

/* ---- floats ------------------------------------------------------------------ */

/* A NaN on either side makes `apart` NaN, which is above nothing; so does infinity less
 * itself. */
#define FLOAT_STEP(bits, real, i, lane)                                                    \
    do {                                                                                   \
        uint##bits##_t a = load_u##bits(x, i), b = load_u##bits(y, i);                     \
        real u, v;                                                                         \
        memcpy(&u, &a, sizeof(u));                                                         \
        memcpy(&v, &b, sizeof(v));                                                         \
        double apart = fabs((double)u - (double)v);                                        \
        most[lane] = apart > most[lane] ? apart : most[lane];                              \
        differ = (uint##bits##_t)(differ + (a != b));                                      \
    } while (0)

#define FLOAT_RUN(name, bits, real)                                                        \
    static void name(const brc_dtype *type, const uint8_t *x, const uint8_t *y, size_t n,  \
                     brc_run_diff *out)                                                    \
    {                                                                                      \
        double most[LANES] = {0};                                                          \
        uint##bits##_t differ;                                                             \
        (void)type;                                                                        \
        out->elements = 0;                                                                 \
        for (; n >= LANES; n -= LANES, x += LANES * (bits / 8), y += LANES * (bits / 8)) { \
            differ = 0;                                                                    \
            for (size_t lane = 0; lane < LANES; lane++)                                    \
                FLOAT_STEP(bits, real, lane, lane);                                        \
            out->elements += differ;                                                       \
        }                                                                                  \
        differ = 0;                                                                        \
        for (size_t lane = 0; lane < n; lane++)                                            \
            FLOAT_STEP(bits, real, lane, lane);                                            \
        out->elements += differ;                                                           \
        out->max_abs = 0;                                                                  \
        for (size_t lane = 0; lane < LANES; lane++)                                        \
            out->max_abs = most[lane] > out->max_abs ? most[lane] : out->max_abs;          \
    }

FLOAT_RUN(run_f32, 32, float)
FLOAT_RUN(run_f64, 64, double)

/* ---- the rest ---------------------------------------------------------------- */

/* Compares numpy.datetime64 and numpy.timedelta64: not-a-time has no difference from anything. */
static void run_time(const brc_dtype *type, const uint8_t *x, const uint8_t *y, size_t n,
                     brc_run_diff *out)
{
    const uint64_t none = UINT64_C(1) << 63;
    uint64_t most = 0;
    (void)type;
    out->elements = 0;
    for (size_t i = 0; i < n; i++) {
        uint64_t a = load_u64(x, i), b = load_u64(y, i);
        uint64_t apart = (a ^ none) > (b ^ none) ? a - b : b - a;
        out->elements += a != b;
        if (apart > most && a != none && b != none)
            most = apart;
    }
    out->max_abs = (double)most;
}

static void run_any(const brc_dtype *type, const uint8_t *x, const uint8_t *y, size_t n,
                    brc_run_diff *out)
{
    const size_t item = type->item_size;
    *out = (brc_run_diff){0, 0};
    for (size_t i = 0; i < n; i++, x += item, y += item) {
        if (memcmp(x, y, item) == 0)
            continue;
        out->elements++;
        if (type->ops->number == NULL)
            continue;
        double apart = fabs(type->ops->number(type, x) - type->ops->number(type, y));
        if (apart > out->max_abs)
            out->max_abs = apart;
    }
}

static const struct {
    const brc_dtype_ops *ops;
    size_t item_size;
    brc_compare_run_fn run;
} typed_runs[] = {
    {&brc_uint_ops, 1, run_u8},      {&brc_uint_ops, 2, run_u16},
    {&brc_uint_ops, 4, run_u32},     {&brc_uint_ops, 8, run_u64},
    {&brc_int_ops, 1, run_i8},       {&brc_int_ops, 2, run_i16},
    {&brc_int_ops, 4, run_i32},      {&brc_int_ops, 8, run_i64},
    {&brc_float_ops, 4, run_f32},    {&brc_float_ops, 8, run_f64},
    {&brc_datetime_ops, 8, run_time}, {&brc_timedelta_ops, 8, run_time},
};

/* Returns the function that compares runs of this type, which is of fixed length. */
static brc_compare_run_fn compare_run_of(const brc_dtype *type)
{
    for (size_t i = 0; i < sizeof(typed_runs) / sizeof(typed_runs[0]); i++)
        if (typed_runs[i].ops == type->ops && typed_runs[i].item_size == type->item_size)
            return typed_runs[i].run;
    return run_any;
}

/* ==== compare elements ================================ */

/*
 * Compares boxes. Pieces that lie packed on both sides are compared as bytes; only a piece
 * that differs is taken apart, axis by axis, down to a leaf: the last axes that lie in one
 * piece, as many as make the leaf long enough. In a leaf the typed loops count. The box of the
 * differences is searched from a leaf's ends inwards, which ends soon where many elements differ.
 */

#define LEAF_ELEMENTS 32  /* axes are joined until a leaf has so many                  */
#define RUN_BYTES 8192    /* compared as bytes first: what differs is in the first cache */
#define FILL_BYTES 4096   /* of an element that is everywhere                          */

/* ---- tallies ----------------------------------------------------------------- */

void brc_tally_init(brc_tally *tally, int ndim, const brc_dtype *type)
{
    memset(tally, 0, sizeof(*tally));
    tally->ndim = ndim;
    tally->max_abs = type->ops->number != NULL ? 0 : NAN;
    for (int i = 0; i < ndim; i++)
        tally->first[i] = UINT64_MAX;
}

static void tally_count(brc_tally *tally, uint64_t elements)
{
    if (!brc_add_u64(tally->elements, elements, &tally->elements))
        tally->elements = UINT64_MAX;
}

static void tally_span(brc_tally *tally, int axis, uint64_t first, uint64_t last)
{
    if (first < tally->first[axis])
        tally->first[axis] = first;
    if (last > tally->last[axis])
        tally->last[axis] = last;
}

void brc_tally_add(brc_tally *tally, uint64_t elements, const uint64_t *first,
                   const uint64_t *last)
{
    if (elements == 0)
        return;
    tally_count(tally, elements);
    for (int i = 0; i < tally->ndim; i++)
        tally_span(tally, i, first[i], last[i]);
}

void brc_tally_merge(brc_tally *into, const brc_tally *from)
{
    brc_tally_add(into, from->elements, from->first, from->last);
    if (from->max_abs > into->max_abs)
        into->max_abs = from->max_abs;
}

static void tally_run(brc_tally *tally, const brc_run_diff *run)
{
    tally_count(tally, run->elements);
    if (run->max_abs > tally->max_abs)
        tally->max_abs = run->max_abs;
}

void brc_tally_difference(brc_tally *tally, const brc_dtype *type, const uint8_t *x,
                          const uint8_t *y)
{
    brc_run_diff run;
    compare_run_of(type)(type, x, y, 1, &run);
    if (run.max_abs > tally->max_abs)
        tally->max_abs = run.max_abs;
}

/* ---- boxes ------------------------------------------------------------------- */

typedef struct comparison {
    brc_tally *tally;
    const brc_dtype *type;
    brc_compare_run_fn run;
    size_t item;
    int ndim;
    const uint64_t *corner, *count;
    const int64_t *x_strides, *y_strides; /* the latter NULL: one element is everywhere */
    const uint8_t *fill;                  /* then: that element,                        */
    size_t run_elements;                  /* and how many of them y has; else of a run  */
    int leaf;                             /* its first axis                             */
    uint64_t packed[BRC_MAX_NDIM + 1];    /* elements of the axes from here on, where
                                             they lie in one piece; else 0              */
    uint64_t at[BRC_MAX_NDIM];
} comparison;

/* Returns whether element i of a run differs. */
static int element_differs(const comparison *c, const uint8_t *x, const uint8_t *y, size_t i)
{
    const uint8_t *other = c->y_strides != NULL ? y + i * c->item : c->fill;
    return memcmp(x + i * c->item, other, c->item) != 0;
}

/* Extends the box by a run's first and last difference, where the leaf is one axis. */
static void box_of_run(comparison *c, uint64_t start, const uint8_t *x, const uint8_t *y, size_t n)
{
    const int axis = c->leaf;
    size_t first = 0, last = n - 1;
    start += c->corner[axis];
    if (start < c->tally->first[axis]) {
        while (!element_differs(c, x, y, first))
            first++;
        tally_span(c->tally, axis, start + first, start + first);
    }
    if (start + last > c->tally->last[axis]) {
        while (!element_differs(c, x, y, last))
            last--;
        tally_span(c->tally, axis, start + last, start + last);
    }
}

static int leaf_is_covered(const comparison *c)
{
    for (int i = c->leaf; i < c->ndim; i++)
        if (c->tally->first[i] > c->corner[i] ||
            c->tally->last[i] < c->corner[i] + c->count[i] - 1)
            return 0;
    return 1;
}

/* Extends the box by a run's differences, where the leaf is several axes, all short. */
static void box_of_short_axes(comparison *c, uint64_t start, const uint8_t *x, const uint8_t *y,
                              size_t n)
{
    if (leaf_is_covered(c))
        return;
    for (size_t i = 0; i < n; i++) {
        if (!element_differs(c, x, y, i))
            continue;
        uint64_t left = start + i;
        for (int axis = c->ndim - 1; axis >= c->leaf; axis--) {
            uint64_t at = c->corner[axis] + left % c->count[axis];
            tally_span(c->tally, axis, at, at);
            left /= c->count[axis];
        }
    }
}

static void compare_leaf(comparison *c, const uint8_t *x, const uint8_t *y)
{
    const uint64_t n = c->packed[c->leaf];
    for (uint64_t at = 0; at < n; at += c->run_elements) {
        size_t len = n - at < c->run_elements ? (size_t)(n - at) : c->run_elements;
        const uint8_t *p = x + at * c->item, *q = c->y_strides != NULL ? y + at * c->item : y;
        brc_run_diff run;
        if (memcmp(p, q, len * c->item) == 0)
            continue;
        c->run(c->type, p, q, len, &run);
        tally_run(c->tally, &run);
        for (int i = 0; i < c->leaf; i++)
            tally_span(c->tally, i, c->at[i], c->at[i]);
        if (c->leaf == c->ndim - 1)
            box_of_run(c, at, p, q, len);
        else
            box_of_short_axes(c, at, p, q, len);
    }
}

static int piece_is_equal(const comparison *c, uint64_t n, const uint8_t *x, const uint8_t *y)
{
    if (c->y_strides != NULL)
        return memcmp(x, y, (size_t)n * c->item) == 0;
    return brc_all_equal(x, n, c->item, c->fill);
}

static void compare_axis(comparison *c, int axis, const uint8_t *x, const uint8_t *y)
{
    if (axis == c->leaf) {
        compare_leaf(c, x, y);
        return;
    }
    if (c->packed[axis] > 0 && piece_is_equal(c, c->packed[axis], x, y))
        return;
    for (uint64_t i = 0; i < c->count[axis]; i++) {
        c->at[axis] = c->corner[axis] + i;
        compare_axis(c, axis + 1, x, y);
        x += c->x_strides[axis];
        if (c->y_strides != NULL)
            y += c->y_strides[axis];
    }
}

/* Finds the last axes that lie in one piece, and the leaf among them. */
static void find_leaf(comparison *c)
{
    uint64_t n = 1;
    c->packed[c->ndim] = 1;
    c->leaf = c->ndim;
    for (int i = c->ndim - 1; i >= 0; i--) {
        const int64_t step = (int64_t)(n * c->item);
        int single = c->count[i] == 1;
        int follows = single || (c->x_strides[i] == step &&
                                 (c->y_strides == NULL || c->y_strides[i] == step));
        if (n == 0 || !follows) {
            n = c->packed[i] = 0;
            continue;
        }
        if (i == c->ndim - 1 || (c->leaf == i + 1 && n < LEAF_ELEMENTS))
            c->leaf = i;
        n *= c->count[i];
        c->packed[i] = n;
    }
}

void brc_compare_box(brc_tally *tally, const brc_dtype *type, const uint64_t *corner,
                     const uint64_t *count, const brc_place *x, const brc_place *y)
{
    uint8_t fill[FILL_BYTES];
    if (x->strides == NULL) { /* differences have no direction */
        const brc_place *swapped = x;
        x = y;
        y = swapped;
    }
    comparison c = {.tally = tally, .type = type, .run = compare_run_of(type),
                    .item = type->item_size, .ndim = tally->ndim, .corner = corner,
                    .count = count, .x_strides = x->strides, .y_strides = y->strides};
    for (int i = 0; i < c.ndim; i++)
        if (count[i] == 0)
            return;
    const uint8_t *other = y->data;
    size_t bytes = RUN_BYTES;
    if (y->strides == NULL) {
        bytes = FILL_BYTES;
        c.fill = y->data;
        if (c.item <= FILL_BYTES) {
            brc_fill_run(fill, FILL_BYTES / c.item, c.item, y->data);
            other = fill;
        }
    }
    c.run_elements = c.item < bytes ? bytes / c.item : 1;
    find_leaf(&c);
    compare_axis(&c, 0, x->data, other);
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
    for (k++; k < box->ndim; k++) /* after the first axis that is longer, all is taken  */
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

/* Finds the place of each element of the box, its length included. */
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
    uint64_t at, n;               /* the first element's number in the chunk, how many */
    const uint8_t *src[BRC_SIDES]; /* NULL: the side has no elements here           */
    size_t step[BRC_SIDES];
} merge_run;

/* The place of the walk in a mask. */
typedef struct mask_place {
    brc_reader r;
    uint64_t from, to; /* of the run of the mask that comes next, or is in progress */
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
