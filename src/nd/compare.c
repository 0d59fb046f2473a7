/* Comparing boxes of elements, see box.h. */
#include "box.h"

#include <math.h>
#include <string.h>

#include "../base/alloc.h"
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

/* ==== compare runs ================================ */

/*
 * The loops of element differences, one for each common number type. They go through
 * blocks of a fixed size without a branch, so that compilers make vectors of them.
 * 64-bit integers and times are subtracted as integers: as doubles, neighbours are often
 * equal.
 */

#define BLOCK 64 /* elements that a uint8_t can count */
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

/* Returns how far two elements are apart. */
#define INTEGER_APART(name, bits, flip)                                                    \
    static double name(const brc_dtype *type, const uint8_t *x, const uint8_t *y)          \
    {                                                                                      \
        uint##bits##_t most = 0, differ = 0;                                               \
        (void)type;                                                                        \
        INTEGER_STEP(bits, flip, 0);                                                       \
        (void)differ;                                                                      \
        return (double)most;                                                               \
    }

#define INTEGER_LOOPS(kind, bits, flip)   \
    INTEGER_RUN(run_##kind, bits, flip)   \
    INTEGER_APART(apart_##kind, bits, flip)

INTEGER_LOOPS(u8, 8, 0U)
INTEGER_LOOPS(u16, 16, 0U)
INTEGER_LOOPS(u32, 32, UINT32_C(0))
INTEGER_LOOPS(u64, 64, UINT64_C(0))
INTEGER_LOOPS(i8, 8, 0x80U)
INTEGER_LOOPS(i16, 16, 0x8000U)
INTEGER_LOOPS(i32, 32, UINT32_C(1) << 31)
INTEGER_LOOPS(i64, 64, UINT64_C(1) << 63)

/* ---- floats ------------------------------------------------------------------ */

/* A NaN on either side, and infinity minus infinity, makes `apart` NaN, which does not exceed any
 * number. */
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

/* Returns NaN if either number is one. */
#define FLOAT_APART(name, bits, real)                                                      \
    static double name(const brc_dtype *type, const uint8_t *x, const uint8_t *y)          \
    {                                                                                      \
        const uint##bits##_t a = load_u##bits(x, 0), b = load_u##bits(y, 0);               \
        real u, v;                                                                         \
        (void)type;                                                                        \
        memcpy(&u, &a, sizeof(u));                                                         \
        memcpy(&v, &b, sizeof(v));                                                         \
        return fabs((double)u - (double)v);                                                \
    }

FLOAT_RUN(run_f32, 32, float)
FLOAT_RUN(run_f64, 64, double)
FLOAT_APART(apart_f32, 32, float)
FLOAT_APART(apart_f64, 64, double)

/* ---- the rest ---------------------------------------------------------------- */

/* Compares numpy.datetime64 and numpy.timedelta64: not-a-time does not have a difference. */
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

static double apart_time(const brc_dtype *type, const uint8_t *x, const uint8_t *y)
{
    const uint64_t none = UINT64_C(1) << 63;
    brc_run_diff run;
    if (load_u64(x, 0) == none || load_u64(y, 0) == none)
        return NAN;
    run_time(type, x, y, 1, &run);
    return run.max_abs;
}

static double apart_any(const brc_dtype *type, const uint8_t *x, const uint8_t *y)
{
    if (type->ops->number == NULL)
        return NAN;
    return fabs(type->ops->number(type, x) - type->ops->number(type, y));
}

/* Returns the difference of two elements that differ; NaN if they are not both numbers. */
typedef double (*apart_fn)(const brc_dtype *type, const uint8_t *x, const uint8_t *y);

typedef struct typed_loops {
    const brc_dtype_ops *ops;
    size_t item_size;
    brc_compare_run_fn run;
    apart_fn apart;
} typed_loops;

static const typed_loops typed[] = {
    {&brc_uint_ops, 1, run_u8, apart_u8},
    {&brc_uint_ops, 2, run_u16, apart_u16},
    {&brc_uint_ops, 4, run_u32, apart_u32},
    {&brc_uint_ops, 8, run_u64, apart_u64},
    {&brc_int_ops, 1, run_i8, apart_i8},
    {&brc_int_ops, 2, run_i16, apart_i16},
    {&brc_int_ops, 4, run_i32, apart_i32},
    {&brc_int_ops, 8, run_i64, apart_i64},
    {&brc_float_ops, 4, run_f32, apart_f32},
    {&brc_float_ops, 8, run_f64, apart_f64},
    {&brc_datetime_ops, 8, run_time, apart_time},
    {&brc_timedelta_ops, 8, run_time, apart_time},
};

/* Returns the loops of this type, which has a fixed length. */
static const typed_loops *loops_of(const brc_dtype *type)
{
    static const typed_loops any = {NULL, 0, run_any, apart_any};
    for (size_t i = 0; i < sizeof(typed) / sizeof(typed[0]); i++)
        if (typed[i].ops == type->ops && typed[i].item_size == type->item_size)
            return &typed[i];
    return &any;
}

/* ==== compare elements ================================ */

/*
 * Compares boxes. Pieces that lie packed on both sides are compared as bytes; only a piece
 * that differs is taken apart, axis by axis, down to a leaf: the last axes that lie in one
 * piece, as many as make the leaf long enough. In a leaf the typed loops count. The search
 * for the box of the differences goes from a leaf's ends inwards, and ends soon where many
 * elements differ.
 */

#define LEAF_ELEMENTS 32  /* axes are joined until a leaf has so many                  */
#define RUN_BYTES 8192    /* compared as bytes first: a run that differs is then cached */
#define FILL_BYTES 4096   /* of copies of an element that is everywhere                */

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
    if (tally->boxes != NULL)
        brc_boxes_add(tally->boxes, elements, first, last);
    if (tally->cells != NULL)
        brc_cells_add(tally->cells, first, last);
}

void brc_tally_merge(brc_tally *into, const brc_tally *from)
{
    brc_boxes *boxes = into->boxes;
    brc_cells *cells = into->cells;
    into->boxes = NULL;
    into->cells = NULL;
    brc_tally_add(into, from->elements, from->first, from->last);
    into->boxes = boxes;
    into->cells = cells;
    if (from->max_abs > into->max_abs)
        into->max_abs = from->max_abs;
    into->numbers += from->numbers;
    brc_sum_merge(&into->apart, &from->apart);
    brc_sum_merge(&into->squares, &from->squares);
    if (boxes != NULL && from->boxes != NULL)
        brc_boxes_merge(boxes, from->boxes);
}

static void tally_run(brc_tally *tally, const brc_run_diff *run)
{
    tally_count(tally, run->elements);
    if (run->max_abs > tally->max_abs)
        tally->max_abs = run->max_abs;
}

/* Adds a difference that `times` pairs have. */
static void tally_apart(brc_tally *tally, double apart, uint64_t times)
{
    if (isnan(apart))
        return;
    if (apart > tally->max_abs)
        tally->max_abs = apart;
    if (tally->wanted == NULL)
        return;
    if (!brc_add_u64(tally->numbers, times, &tally->numbers))
        tally->numbers = UINT64_MAX;
    brc_sum_add(&tally->apart, apart * (double)times);
    brc_sum_add(&tally->squares, apart * apart * (double)times);
}

void brc_tally_difference(brc_tally *tally, const brc_dtype *type, const uint8_t *x,
                          const uint8_t *y, uint64_t times)
{
    tally_apart(tally, loops_of(type)->apart(type, x, y), times);
}

/* Applies the rule of NumPy's isclose() to a distance and the magnitude of the new number. */
static int is_tolerable(const brc_wanted *wanted, double apart, double size)
{
    return isfinite(size) && apart <= wanted->atol + wanted->rtol * size;
}

static int numbers_close(const brc_wanted *wanted, const brc_dtype *type, const uint8_t *x,
                         const uint8_t *y)
{
    const double a = type->ops->number(type, x), b = type->ops->number(type, y);
    if (isnan(a) || isnan(b))
        return isnan(a) && isnan(b);
    return (a == b && !isfinite(b)) ||
           is_tolerable(wanted, loops_of(type)->apart(type, x, y), fabs(b));
}

static double complex_part(const brc_dtype *type, const uint8_t *x, int imaginary)
{
    const size_t len = type->item_size / 2;
    const brc_dtype part = {.size = sizeof(part), .item_size = len, .ops = &brc_float_ops};
    return brc_float_ops.number(&part, x + (size_t)imaginary * len);
}

static int complex_close(const brc_wanted *wanted, const brc_dtype *type, const uint8_t *x,
                         const uint8_t *y)
{
    const double a = complex_part(type, x, 0), ai = complex_part(type, x, 1);
    const double b = complex_part(type, y, 0), bi = complex_part(type, y, 1);
    if (isnan(a) || isnan(ai) || isnan(b) || isnan(bi))
        return (isnan(a) || isnan(ai)) && (isnan(b) || isnan(bi));
    return (a == b && ai == bi) || is_tolerable(wanted, hypot(a - b, ai - bi), hypot(b, bi));
}

static int fields_close(const brc_wanted *wanted, const brc_dtype *type, const uint8_t *x,
                        const uint8_t *y)
{
    const brc_dtype *field;
    size_t at, n = 0;
    for (; (field = brc_dtype_field_at(type, n, &at)) != NULL; n++)
        if (memcmp(x + at, y + at, field->item_size) != 0 &&
            !brc_is_close(wanted, field, x + at, y + at))
            return 0;
    return n > 0;
}

int brc_is_close(const brc_wanted *wanted, const brc_dtype *type, const uint8_t *x,
                 const uint8_t *y)
{
    if (!wanted->is_close)
        return 0;
    if (type->ops->number != NULL)
        return numbers_close(wanted, type, x, y);
    return type->ops == &brc_complex_ops ? complex_close(wanted, type, x, y)
                                         : fields_close(wanted, type, x, y);
}

/* ---- what is wanted ---------------------------------------------------------- */

void brc_tally_want(brc_tally *tally, const brc_wanted *wanted, brc_boxes *boxes)
{
    tally->wanted = wanted;
    tally->boxes = boxes;
    if (boxes != NULL)
        brc_boxes_init(boxes, tally->ndim);
}

/* Takes n elements side by side that differ, the first of which is at `index`. */
static void tally_piece(brc_tally *tally, const brc_dtype *type, const uint64_t *index, uint64_t n,
                        const uint8_t *x, size_t x_step, const uint8_t *y, size_t y_step)
{
    const size_t len = type->item_size;
    const apart_fn apart = loops_of(type)->apart;
    const int axis = tally->ndim > 0 ? tally->ndim - 1 : 0;
    brc_picks *picks = tally->wanted->picks;
    uint64_t at[BRC_MAX_NDIM];
    memcpy(at, index, sizeof(at));
    if (brc_wants_figures(tally->wanted)) {
        at[axis] += n - 1;
        brc_tally_add(tally, n, index, at);
        at[axis] = index[axis];
        for (uint64_t i = 0; i < n; i++)
            tally_apart(tally, apart(type, x + i * x_step, y + i * y_step), 1);
    }
    for (uint64_t i = 0; picks != NULL && i < n && !tally->past_picks; i++) {
        if (brc_picks_beyond(picks, at)) {
            tally->past_picks = 1; /* a box is compared in C order */
            return;
        }
        brc_picks_add(picks, at, (brc_span){x, len}, (brc_span){y, len});
        at[axis]++;
        x += x_step;
        y += y_step;
    }
}

static inline int item_same(const uint8_t *x, const uint8_t *y, size_t len)
{
    switch (len) {
    case 1: return *x == *y;
    case 2: return memcmp(x, y, 2) == 0;
    case 4: return memcmp(x, y, 4) == 0;
    case 8: return memcmp(x, y, 8) == 0;
    default: return memcmp(x, y, len) == 0;
    }
}

/* Compares n elements side by side along the last axis, the first of which is at `index`, as
 * `wanted` says. x is old and y is new; a side whose step is 0 is one element everywhere. */
static void tally_row(brc_tally *tally, const brc_dtype *type, const uint64_t *index, uint64_t n,
                      const uint8_t *x, size_t x_step, const uint8_t *y, size_t y_step)
{
    const brc_wanted *wanted = tally->wanted;
    const int axis = tally->ndim > 0 ? tally->ndim - 1 : 0;
    uint64_t at[BRC_MAX_NDIM] = {0}, from = 0;
    for (int i = 0; i < tally->ndim; i++)
        at[i] = index[i];
    for (uint64_t i = 0; i <= n; i++) {
        const uint8_t *p = x + i * x_step, *q = y + i * y_step;
        at[axis] = tally->ndim > 0 ? index[axis] + i : 0;
        if (i < n && !item_same(p, q, type->item_size) &&
            (wanted->sel == NULL || brc_sel_has(wanted->sel, at)) &&
            !brc_is_close(wanted, type, p, q))
            continue;
        at[axis] -= tally->ndim > 0 ? i - from : 0;
        if (i > from)
            tally_piece(tally, type, at, i - from, x + from * x_step, x_step, y + from * y_step,
                        y_step);
        from = i + 1;
    }
}

/* ---- boxes ------------------------------------------------------------------- */

typedef struct comparison {
    brc_tally *tally;
    const brc_dtype *type;
    brc_compare_run_fn run;
    size_t item;
    int ndim;
    const uint64_t *corner, *count;
    const int64_t *x_strides, *y_strides; /* y_strides NULL: y is one element everywhere */
    const uint8_t *fill;                  /* if y is one element: copies of it, */
    size_t run_elements;                  /* and how many copies; otherwise the elements of a run */
    int leaf;                             /* the first axis of the leaf */
    uint64_t packed[BRC_MAX_NDIM + 1];    /* elements of the axes from here on, where
                                             they lie in one piece; else 0              */
    uint64_t at[BRC_MAX_NDIM];
    int is_swapped; /* x is new and y is old */
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

/* Compares a run as the tally wants it: row by row, since the leaf may be several axes. */
static void compare_wanted(comparison *c, uint64_t start, const uint8_t *x, const uint8_t *y,
                           uint64_t n)
{
    const size_t y_step = c->y_strides != NULL ? c->item : 0;
    const uint64_t row = c->ndim > 0 ? c->count[c->ndim - 1] : 1;
    uint64_t index[BRC_MAX_NDIM];
    for (uint64_t done = 0, len; done < n; done += len) {
        uint64_t left = start + done;
        len = row - left % row < n - done ? row - left % row : n - done;
        memcpy(index, c->at, sizeof(index));
        for (int axis = c->ndim - 1; axis >= c->leaf; axis--) {
            index[axis] = c->corner[axis] + left % c->count[axis];
            left /= c->count[axis];
        }
        const uint8_t *p = x + done * c->item, *q = y + done * y_step;
        if (c->is_swapped)
            tally_row(c->tally, c->type, index, len, q, y_step, p, c->item);
        else
            tally_row(c->tally, c->type, index, len, p, c->item, q, y_step);
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
        if (c->tally->wanted != NULL) {
            compare_wanted(c, at, p, q, len);
            continue;
        }
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
    const int is_swapped = x->strides == NULL;
    if (is_swapped) {
        const brc_place *swapped = x;
        x = y;
        y = swapped;
    }
    comparison c = {.is_swapped = is_swapped, .tally = tally, .type = type,
                    .run = loops_of(type)->run, .item = type->item_size, .ndim = tally->ndim,
                    .corner = corner, .count = count, .x_strides = x->strides,
                    .y_strides = y->strides};
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
    tally->past_picks = 0;
    find_leaf(&c);
    compare_axis(&c, 0, x->data, other);
}
