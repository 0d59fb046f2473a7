#include "summary.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "../base/alloc.h"
#include "dtype_ops.h"

/*
 * Elements go through the loops in blocks that stay in the first-level cache: as doubles, or as
 * 64-bit integers where doubles are not exact. Types of one byte, and of two where there are many
 * elements, are counted by their bit patterns instead.
 *
 * Doubles are gone through once: a block that does not fit the bins makes them wider. So their
 * width at the end is what the ends of the whole part need. 64-bit integers are gone through
 * twice.
 */

enum { BLOCK_LEN = 512, LANE_COUNT = 8 };

enum { LOAD_DOUBLES = 1, LOAD_WIDE, LOAD_PATTERNS };

/* The fewest elements of two bytes that are counted by their patterns. */
#define PATTERNS_LEAST 32768

/* ---- loading -------------------------------- */

#if defined(__BYTE_ORDER__) && __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
#define LE_TO_HOST16(v) __builtin_bswap16(v)
#define LE_TO_HOST32(v) __builtin_bswap32(v)
#define LE_TO_HOST64(v) __builtin_bswap64(v)
#else
#define LE_TO_HOST16(v) (v)
#define LE_TO_HOST32(v) (v)
#define LE_TO_HOST64(v) (v)
#endif

/* Runs a statement for each element of a block. Compilers make vectors of a loop whose length they
 * know. */
#define EACH_OF_BLOCK(n, statement)                                                        \
    do {                                                                                   \
        if ((n) == BLOCK_LEN)                                                              \
            for (size_t i = 0; i < BLOCK_LEN; i++)                                         \
                statement;                                                                 \
        else                                                                               \
            for (size_t i = 0; i < (n); i++)                                               \
                statement;                                                                 \
    } while (0)

typedef void (*load_fn)(const brc_dtype *type, double *x, const uint8_t *data, size_t n);

#define LOAD_DOUBLE(name, bits, number)                                                    \
    static inline double name##_one(const uint8_t *p)                                      \
    {                                                                                      \
        uint##bits##_t raw;                                                                \
        number v;                                                                          \
        memcpy(&raw, p, sizeof(raw));                                                      \
        raw = LE_TO_HOST##bits(raw);                                                       \
        memcpy(&v, &raw, sizeof(v));                                                       \
        return (double)v;                                                                  \
    }                                                                                      \
    static void name(const brc_dtype *type, double *x, const uint8_t *data, size_t n)      \
    {                                                                                      \
        (void)type;                                                                        \
        EACH_OF_BLOCK(n, x[i] = name##_one(data + i * (bits / 8)));                        \
    }
LOAD_DOUBLE(load_i16, 16, int16_t)
LOAD_DOUBLE(load_u16, 16, uint16_t)
LOAD_DOUBLE(load_i32, 32, int32_t)
LOAD_DOUBLE(load_u32, 32, uint32_t)
LOAD_DOUBLE(load_f32, 32, float)
LOAD_DOUBLE(load_f64, 64, double)

static void load_any(const brc_dtype *type, double *x, const uint8_t *data, size_t n)
{
    for (size_t i = 0; i < n; i++)
        x[i] = type->ops->number(type, data + i * type->item_size);
}

/* Loads the magnitudes of complex numbers. hypot() is slow, and needed only where squares leave the
 * range of doubles. */
#define LOAD_MAGNITUDES(name, load)                                                  \
    static void name(const brc_dtype *type, double *x, const uint8_t *data, size_t n)      \
    {                                                                                      \
        double parts[2 * BLOCK_LEN];                                                       \
        load(type, parts, data, 2 * n);                                                    \
        for (size_t i = 0; i < n; i++) {                                                   \
            const double re = parts[2 * i], im = parts[2 * i + 1];                         \
            const double square = re * re + im * im;                                       \
            x[i] = square > 1e-280 && square < 1e300 ? sqrt(square) : hypot(re, im);       \
        }                                                                                  \
    }
LOAD_MAGNITUDES(load_c64, load_f32)
LOAD_MAGNITUDES(load_c128, load_f64)

static const struct number_kind {
    const brc_dtype_ops *ops;
    size_t item_size;
    int is_integer, of;
    load_fn load; /* NULL: 64-bit integers */
} number_kinds[] = {
    {&brc_int_ops, 2, 1, BRC_STATS_VALUES, load_i16},
    {&brc_uint_ops, 2, 1, BRC_STATS_VALUES, load_u16},
    {&brc_int_ops, 4, 1, BRC_STATS_VALUES, load_i32},
    {&brc_uint_ops, 4, 1, BRC_STATS_VALUES, load_u32},
    {&brc_int_ops, 8, 1, BRC_STATS_VALUES, NULL},
    {&brc_uint_ops, 8, 1, BRC_STATS_VALUES, NULL},
    {&brc_datetime_ops, 8, 1, BRC_STATS_VALUES, NULL},
    {&brc_timedelta_ops, 8, 1, BRC_STATS_VALUES, NULL},
    {&brc_float_ops, 4, 0, BRC_STATS_VALUES, load_f32},
    {&brc_float_ops, 8, 0, BRC_STATS_VALUES, load_f64},
    {&brc_complex_ops, 8, 0, BRC_STATS_MAGNITUDES, load_c64},
    {&brc_complex_ops, 16, 0, BRC_STATS_MAGNITUDES, load_c128},
};

static const struct number_kind *number_kind_of(const brc_dtype *type)
{
    for (size_t i = 0; i < sizeof(number_kinds) / sizeof(number_kinds[0]); i++)
        if (number_kinds[i].ops == type->ops && number_kinds[i].item_size == type->item_size)
            return &number_kinds[i];
    return NULL;
}

int brc_summary_kind_of(brc_summary_kind *out, const brc_dtype *type)
{
    const struct number_kind *known = number_kind_of(type);
    const int is_whole = type->klass == BRC_CLASS_BOOL || type->klass == BRC_CLASS_INT ||
                         type->klass == BRC_CLASS_UINT;
    *out = (brc_summary_kind){.type = type, .of = BRC_STATS_VALUES};
    if (type->item_size == 0 && type->klass != BRC_CLASS_OPTIONAL &&
        (type->klass == BRC_CLASS_STRING || type->klass == BRC_CLASS_BYTES)) {
        out->of = BRC_STATS_LENGTHS;
        out->is_integer = 1;
        return 1;
    }
    if (known != NULL) {
        out->of = known->of;
        out->is_integer = known->is_integer;
        out->load = known->load == NULL ? LOAD_WIDE : LOAD_DOUBLES;
        out->has_nat = type->klass == BRC_CLASS_TIME;
        out->offset = known->load == NULL && type->ops == &brc_uint_ops ? UINT64_C(1) << 63 : 0;
        return 1;
    }
    if (type->ops->number == NULL || type->item_size == 0 ||
        (!is_whole && type->klass != BRC_CLASS_FLOAT))
        return 0;
    out->load = type->item_size <= 2 ? LOAD_PATTERNS : LOAD_DOUBLES;
    out->is_integer = is_whole && type->item_size <= 2;
    return 1;
}

/* ---- bins -------------------------------- */

/* Divides by 2^by, rounding down. */
static int64_t shift_down(int64_t v, int by)
{
    const uint64_t top = UINT64_C(1) << 63;
    if (by > 63)
        return v < 0 ? -1 : 0;
    return (int64_t)((((uint64_t)v ^ top) >> by) - (top >> by));
}

static void bins_to_scale(brc_summary *s, int scale)
{
    const int by = scale - s->scale;
    if (by <= 0 || s->nbins == 0)
        return;
    const int64_t first = shift_down(s->first, by);
    size_t n = 0;
    for (size_t i = 0; i < s->nbins; i++) {
        const size_t at = (size_t)(shift_down(s->first + (int64_t)i, by) - first);
        const uint64_t more = s->bins[i];
        s->bins[i] = 0;
        s->bins[at] += more;
        n = at + 1;
    }
    s->first = first;
    s->nbins = n;
    s->scale = scale;
}

void brc_summary_coarsen(brc_summary *s, size_t most)
{
    while (s->nbins > most)
        bins_to_scale(s, s->scale + 1);
}

/* Returns how many bins a part may take: a small one few, for its row to stay small. */
static uint64_t bins_for(uint64_t n)
{
    const uint64_t least = 32, some = n / 64;
    return some < least ? least : some < BRC_SUMMARY_BINS ? some : BRC_SUMMARY_BINS;
}

/* Chooses the scale of integers: each is a bin if that is possible. */
static void bins_of_integers(brc_summary *s)
{
    const uint64_t range = (uint64_t)s->greatest - (uint64_t)s->least;
    const uint64_t most = range < BRC_SUMMARY_BINS ? BRC_SUMMARY_BINS : bins_for(s->n);
    int64_t last;
    s->scale = -1;
    do {
        s->scale++;
        s->first = shift_down(s->least, s->scale);
        last = shift_down(s->greatest, s->scale);
    } while ((uint64_t)last - (uint64_t)s->first >= most);
    s->nbins = (size_t)(last - s->first) + 1;
}

/* Returns the bin of a number. Conversion rounds towards 0, hence the comparison. */
static inline int64_t far_bin_of(double v, double per, double width)
{
    const int64_t j = (int64_t)(v * per);
    return j - (v < (double)j * width);
}

/* Returns the finest scale, not below `scale`, at which floats take `most` bins at most. Bins are
 * not finer than the last bit of the largest value: an index fits into 54 bits then. The width
 * and what divides by it are normal numbers. */
static int scale_of_floats(double min, double max, uint64_t most, int scale)
{
    const double largest = fabs(max) > fabs(min) ? fabs(max) : fabs(min);
    int exponent;
    frexp(largest, &exponent);
    const int finest = largest > 0 && exponent - 53 > -1021 ? exponent - 53 : -1021;
    scale = scale > finest ? scale : finest;
    const double half = max / 2 - min / 2;
    frexp(half, &exponent);
    if (half > 0 && exponent - 9 > scale)
        scale = exponent - 9;
    for (;; scale++) {
        const double per = ldexp(1, -scale), width = ldexp(1, scale);
        if ((uint64_t)(far_bin_of(max, per, width) - far_bin_of(min, per, width)) < most)
            return scale;
    }
}

/* Makes room for the bins from `first` to `last`; with those that are there, these are at most
 * BRC_SUMMARY_BINS. */
static void bins_extend(brc_summary *s, int64_t first, int64_t last)
{
    if (s->nbins == 0) {
        s->first = first;
        s->nbins = (size_t)(last - first) + 1;
        return;
    }
    const int64_t end = s->first + ((int64_t)s->nbins - 1);
    first = first < s->first ? first : s->first;
    last = last > end ? last : end;
    const size_t down = (size_t)(s->first - first);
    memmove(s->bins + down, s->bins, s->nbins * sizeof(s->bins[0]));
    memset(s->bins, 0, down * sizeof(s->bins[0]));
    s->first = first;
    s->nbins = (size_t)(last - first) + 1;
}

/* ---- doubles -------------------------------- */

/* Counts of bins in several tables, so that equal elements in a row do not wait for each other. */
enum { BIN_TABLES = 4 };

typedef struct part_run {
    const brc_summary_kind *kind;
    load_fn load;
    brc_summary *s;
    double per, width;    /* of the bins                                             */
    int64_t base;         /* the bin of the tables' first number                     */
    int64_t low, high;    /* the first and the last bin that an element is in        */
    double sum, lost;     /* the sum so far, and what rounding has taken from it     */
    uint64_t n;           /* finite numbers so far, their mean, and what is m2 of all */
    double mean;
    uint32_t tables[BIN_TABLES][BRC_SUMMARY_BINS];
} part_run;

/* Leaves the finite numbers of the block. With `s`, counts the others. */
static size_t keep_finite(double *x, size_t n, brc_summary *s)
{
    size_t kept = 0;
    for (size_t i = 0; i < n; i++) {
        const double v = x[i];
        x[kept] = v;
        kept += v - v == 0;
        if (s == NULL || v - v == 0)
            continue;
        s->nan += v != v;
        s->low += v < 0;
        s->high += v > 0;
    }
    return kept;
}

typedef struct block_found {
    double min, max, sum;
} block_found;

/* Finds the ends and the sum of a block. The sum is not finite if a number is not. */
static block_found block_ends(const double *x, size_t n)
{
    double min[LANE_COUNT], max[LANE_COUNT], sum[LANE_COUNT] = {0};
    block_found found = {x[0], x[0], 0};
    size_t i = 0;
    for (size_t lane = 0; lane < LANE_COUNT; lane++)
        min[lane] = max[lane] = x[0];
    for (; i + LANE_COUNT <= n; i += LANE_COUNT)
        for (size_t lane = 0; lane < LANE_COUNT; lane++) {
            const double v = x[i + lane];
            min[lane] = v < min[lane] ? v : min[lane];
            max[lane] = v > max[lane] ? v : max[lane];
            sum[lane] += v;
        }
    for (; i < n; i++) {
        min[0] = x[i] < min[0] ? x[i] : min[0];
        max[0] = x[i] > max[0] ? x[i] : max[0];
        sum[0] += x[i];
    }
    for (size_t lane = 0; lane < LANE_COUNT; lane++) {
        found.min = min[lane] < found.min ? min[lane] : found.min;
        found.max = max[lane] > found.max ? max[lane] : found.max;
        found.sum += sum[lane];
    }
    return found;
}

/* Sums squared differences from `mean`, which is that of the block but for rounding. */
static double block_squares(const double *x, size_t n, double mean)
{
    double square[LANE_COUNT] = {0}, sum[LANE_COUNT] = {0}, total = 0, apart = 0;
    size_t i = 0;
    for (; i + LANE_COUNT <= n; i += LANE_COUNT)
        for (size_t lane = 0; lane < LANE_COUNT; lane++) {
            const double d = x[i + lane] - mean;
            square[lane] += d * d;
            sum[lane] += d;
        }
    for (; i < n; i++) {
        const double d = x[i] - mean;
        square[0] += d * d;
        sum[0] += d;
    }
    for (size_t lane = 0; lane < LANE_COUNT; lane++) {
        total += square[lane];
        apart += sum[lane];
    }
    return total - apart * (apart / (double)n);
}

/* Moves what was counted from the tables to the summary. */
static void take_tables(part_run *run)
{
    brc_summary *s = run->s;
    if (run->low > run->high)
        return;
    bins_extend(s, run->low, run->high);
    for (int64_t j = run->low; j <= run->high; j++)
        for (size_t k = 0; k < BIN_TABLES; k++)
            s->bins[j - s->first] += run->tables[k][j - run->base];
    memset(run->tables, 0, sizeof(run->tables));
}

/* Returns how many bins the part may take, as far as its ends are known. */
static uint64_t bins_allowed(const part_run *run)
{
    const brc_summary *s = run->s;
    return run->kind->is_integer && s->max - s->min < BRC_SUMMARY_BINS ? BRC_SUMMARY_BINS
                                                                       : bins_for(s->count);
}

/* Makes bins for numbers from `min` to `max`, which the summary's ends include. */
static void bins_cover(part_run *run, double min, double max)
{
    brc_summary *s = run->s;
    const uint64_t most = bins_allowed(run);
    if (run->low <= run->high) {
        int64_t low = far_bin_of(min, run->per, run->width);
        int64_t high = far_bin_of(max, run->per, run->width);
        low = low < run->low ? low : run->low;
        high = high > run->high ? high : run->high;
        if (low >= run->base && high - run->base < BRC_SUMMARY_BINS &&
            (uint64_t)(high - low) < most) {
            run->low = low;
            run->high = high;
            return;
        }
        take_tables(run);
    }
    const int least = run->kind->is_integer ? 0 : -1021;
    const int scale = scale_of_floats(s->min, s->max, most, s->nbins > 0 ? s->scale : least);
    bins_to_scale(s, scale);
    s->scale = scale;
    run->width = ldexp(1, scale);
    run->per = ldexp(1, -scale);
    run->low = far_bin_of(s->min, run->per, run->width);
    run->high = far_bin_of(s->max, run->per, run->width);
    run->base = run->low - (BRC_SUMMARY_BINS - 1 - (run->high - run->low)) / 2;
}

/* Divides numbers by the width of a bin and rounds down, where the results fit into 32 bits. Adding
 * and subtracting 1.5 * 2^52 rounds to the nearest integer; the sign of the rest tells whether this
 * integer is too large (adding 0 turns -0 into 0). The loops have no branch and work on doubles
 * alone, so compilers make vectors of them. */
static void block_floors(double *out, const double *x, size_t n, double per, double width)
{
    const double shift = 0x1.8p52;
    EACH_OF_BLOCK(n, out[i] = x[i] * per + shift - shift);
    EACH_OF_BLOCK(n, out[i] += copysign(0.5, x[i] - out[i] * width + 0.0) - 0.5);
}

/* Counts a block in its bins, whose indexes mostly fit into 32 bits. Conversion rounds numbers that
 * are not negative down. */
static void block_bins(part_run *run, const double *x, size_t n, int is_negative)
{
    const double per = run->per, width = run->width;
    const int32_t base = (int32_t)run->base;
    int32_t at[BLOCK_LEN];
    double floors[BLOCK_LEN];
    size_t done = 0;
    if (run->base < INT32_MIN / 2 || run->base > INT32_MAX / 2)
        EACH_OF_BLOCK(n, at[i] = (int32_t)(far_bin_of(x[i], per, width) - run->base));
    else if (is_negative) {
        block_floors(floors, x, n, per, width);
        EACH_OF_BLOCK(n, at[i] = (int32_t)floors[i] - base);
    } else
        EACH_OF_BLOCK(n, at[i] = (int32_t)(x[i] * per) - base);
    for (; done + BIN_TABLES <= n; done += BIN_TABLES) {
        run->tables[0][at[done]]++;
        run->tables[1][at[done + 1]]++;
        run->tables[2][at[done + 2]]++;
        run->tables[3][at[done + 3]]++;
    }
    for (; done < n; done++)
        run->tables[0][at[done]]++;
}

/* Adds a block's sum, and keeps what rounding takes from it. */
static void add_sum(part_run *run, double more)
{
    const double sum = run->sum + more;
    run->lost += fabs(run->sum) >= fabs(more) ? run->sum - sum + more : more - sum + run->sum;
    run->sum = sum;
}

/* Takes a block of n numbers; those that are not finite are counted and nothing more. */
static void take_block(part_run *run, double *x, size_t n)
{
    brc_summary *s = run->s;
    block_found found = block_ends(x, n);
    if (found.sum - found.sum != 0 && !run->kind->is_integer) {
        n = keep_finite(x, n, s);
        if (n == 0)
            return;
        found = block_ends(x, n);
    }
    s->min = found.min < s->min ? found.min : s->min;
    s->max = found.max > s->max ? found.max : s->max;
    const double mean = found.sum / (double)n, apart = mean - run->mean;
    const double before = (double)run->n, all = before + (double)n;
    s->m2 += block_squares(x, n, mean) + apart * apart * (before / all) * (double)n;
    run->mean += apart * ((double)n / all);
    run->n += n;
    add_sum(run, found.sum);
    if (run->kind->is_integer) /* exact: 512 numbers of 32 bits */
        s->sum += (int64_t)found.sum;
    bins_cover(run, found.min, found.max);
    block_bins(run, x, n, found.min < 0);
}

/* Sets the mean, which rounding does not move out of the ends. A sum may leave the range of
 * doubles. */
static void set_mean(brc_summary *s, double mean)
{
    s->mean = mean;
    if (mean - mean == 0)
        s->mean = mean < s->min ? s->min : mean > s->max ? s->max : mean;
    s->m2 = s->m2 < 0 ? 0 : s->m2;
}

/* Sets what integers have in place of doubles. */
static void drop_doubles(brc_summary *s, const brc_summary_kind *kind)
{
    if (kind->is_integer && s->n > 0) {
        s->least = (int64_t)s->min;
        s->greatest = (int64_t)s->max;
    }
    if (kind->is_integer || s->n == 0)
        s->min = s->max = s->mean = 0;
}

/* Sums up elements that are loaded as doubles. */
static void sum_up_doubles(part_run *run, const uint8_t *data, size_t n)
{
    brc_summary *s = run->s;
    const size_t item = run->kind->type->item_size;
    double x[BLOCK_LEN];
    s->min = INFINITY;
    s->max = -INFINITY;
    run->low = INT64_MAX;
    run->high = INT64_MIN;
    for (size_t at = 0; at < n; at += BLOCK_LEN) {
        const size_t some = n - at < BLOCK_LEN ? n - at : BLOCK_LEN;
        run->load(run->kind->type, x, data + at * item, some);
        take_block(run, x, some);
    }
    take_tables(run);
    s->n = run->n;
    if (s->n > 0)
        set_mean(s, (run->sum + run->lost) / (double)s->n);
    drop_doubles(s, run->kind);
}

/* ---- 64-bit integers ------------------------------------------------------------ */

/* Loads a block, less the kind's offset and without those that are not a time. */
static size_t load_wide(const brc_summary_kind *kind, int64_t *x, const uint8_t *data, size_t n)
{
    size_t kept = 0;
    for (size_t i = 0; i < n; i++) {
        uint64_t raw;
        memcpy(&raw, data + i * sizeof(raw), sizeof(raw));
        x[kept] = (int64_t)(LE_TO_HOST64(raw) - kind->offset);
        kept += !kind->has_nat || x[kept] != INT64_MIN;
    }
    return kept;
}

static void wide_ends(brc_summary *s, const int64_t *x, size_t n)
{
    brc_wide_int sum = 0;
    for (size_t i = 0; i < n; i++) {
        s->least = x[i] < s->least ? x[i] : s->least;
        s->greatest = x[i] > s->greatest ? x[i] : s->greatest;
        sum += x[i];
    }
    s->sum += sum;
}

static void wide_bins(brc_summary *s, const int64_t *x, size_t n, int64_t middle)
{
    double square = 0;
    for (size_t i = 0; i < n; i++) {
        const uint64_t apart = x[i] > middle ? (uint64_t)x[i] - (uint64_t)middle
                                             : (uint64_t)middle - (uint64_t)x[i];
        square += (double)apart * (double)apart;
        s->bins[shift_down(x[i], s->scale) - s->first]++;
    }
    s->m2 += square;
}

/* Returns the sum divided by n, rounded down, and in *rest what is lost by that. */
static int64_t middle_of(const brc_summary *s, double *rest)
{
    const brc_wide_int n = (brc_wide_int)s->n;
    brc_wide_int whole = s->sum / n, left = s->sum % n;
    if (left < 0) {
        whole--;
        left += n;
    }
    *rest = (double)left / (double)s->n;
    return (int64_t)whole;
}

/* Takes from the squares around `middle` what makes them those around the mean. */
static void squares_around_mean(brc_summary *s)
{
    double rest;
    (void)middle_of(s, &rest);
    s->m2 -= rest * rest * (double)s->n;
    s->m2 = s->m2 < 0 ? 0 : s->m2;
}

static void wide_begin(brc_summary *s)
{
    s->least = INT64_MAX;
    s->greatest = INT64_MIN;
}

static void sum_up_wide(part_run *run, const uint8_t *data, size_t n)
{
    brc_summary *s = run->s;
    int64_t x[BLOCK_LEN];
    double rest;
    wide_begin(s);
    for (size_t at = 0; at < n; at += BLOCK_LEN) {
        const size_t some = n - at < BLOCK_LEN ? n - at : BLOCK_LEN;
        const size_t kept = load_wide(run->kind, x, data + at * 8, some);
        s->nan += some - kept;
        wide_ends(s, x, kept);
    }
    s->n = s->count - s->nan;
    if (s->n == 0)
        return;
    bins_of_integers(s);
    const int64_t middle = middle_of(s, &rest);
    for (size_t at = 0; at < n; at += BLOCK_LEN) {
        const size_t some = n - at < BLOCK_LEN ? n - at : BLOCK_LEN;
        wide_bins(s, x, load_wide(run->kind, x, data + at * 8, some), middle);
    }
    squares_around_mean(s);
}

void brc_summary_of_numbers(brc_summary *s, const int64_t *numbers, size_t n, uint64_t fill)
{
    double rest;
    memset(s, 0, sizeof(*s));
    s->count = s->n = n;
    s->fill = fill;
    if (n == 0)
        return;
    wide_begin(s);
    wide_ends(s, numbers, n);
    bins_of_integers(s);
    wide_bins(s, numbers, n, middle_of(s, &rest));
    squares_around_mean(s);
}

/* ---- bit patterns -------------------------------- */

static void count_bytes(uint32_t *counts, const uint8_t *data, size_t n)
{
    uint32_t tables[BIN_TABLES][256] = {{0}};
    size_t i = 0;
    for (; i + BIN_TABLES <= n; i += BIN_TABLES) {
        tables[0][data[i]]++;
        tables[1][data[i + 1]]++;
        tables[2][data[i + 2]]++;
        tables[3][data[i + 3]]++;
    }
    for (; i < n; i++)
        tables[0][data[i]]++;
    for (size_t k = 0; k < BIN_TABLES; k++)
        for (size_t p = 0; p < 256; p++)
            counts[p] += tables[k][p];
}

static void count_pairs(uint32_t *counts, const uint8_t *data, size_t n)
{
    size_t i = 0;
    for (; i + 4 <= n; i += 4) {
        uint64_t four;
        memcpy(&four, data + 2 * i, sizeof(four));
        four = LE_TO_HOST64(four);
        counts[four & 0xffff]++;
        counts[four >> 16 & 0xffff]++;
        counts[four >> 32 & 0xffff]++;
        counts[four >> 48]++;
    }
    for (; i < n; i++)
        counts[data[2 * i] | (size_t)data[2 * i + 1] << 8]++;
}

typedef struct pattern_run {
    const brc_summary_kind *kind;
    brc_summary *s;
    const uint32_t *counts;
    size_t npatterns;
} pattern_run;

/* Returns the next pattern that an element has, not before `from`; npatterns if there is none. */
static size_t next_pattern(const pattern_run *run, size_t from)
{
    while (from < run->npatterns && run->counts[from] == 0)
        from++;
    return from;
}

static double pattern_value(const pattern_run *run, size_t pattern)
{
    const uint8_t bytes[2] = {(uint8_t)pattern, (uint8_t)(pattern >> 8)};
    return run->kind->type->ops->number(run->kind->type, bytes);
}

static void patterns_ends(const pattern_run *run)
{
    brc_summary *s = run->s;
    double sum = 0;
    s->min = INFINITY;
    s->max = -INFINITY;
    for (size_t p = next_pattern(run, 0); p < run->npatterns; p = next_pattern(run, p + 1)) {
        const uint64_t times = run->counts[p];
        const double v = pattern_value(run, p);
        if (v - v != 0) {
            s->nan += v != v ? times : 0;
            s->low += v < 0 ? times : 0;
            s->high += v > 0 ? times : 0;
            continue;
        }
        s->min = v < s->min ? v : s->min;
        s->max = v > s->max ? v : s->max;
        sum += v * (double)times;
        if (run->kind->is_integer)
            s->sum += (brc_wide_int)(int64_t)v * (brc_wide_int)times;
    }
    s->n = s->count - s->nan - s->low - s->high;
    s->mean = s->n > 0 ? sum / (double)s->n : 0;
}

static void patterns_bins(const pattern_run *run)
{
    brc_summary *s = run->s;
    const int is_exact = run->kind->is_integer && s->max - s->min < BRC_SUMMARY_BINS;
    const uint64_t most = is_exact ? BRC_SUMMARY_BINS : bins_for(s->count);
    s->scale = scale_of_floats(s->min, s->max, most, run->kind->is_integer ? 0 : -1021);
    const double width = ldexp(1, s->scale), per = ldexp(1, -s->scale);
    double apart = 0;
    bins_extend(s, far_bin_of(s->min, per, width), far_bin_of(s->max, per, width));
    for (size_t p = next_pattern(run, 0); p < run->npatterns; p = next_pattern(run, p + 1)) {
        const uint64_t times = run->counts[p];
        const double v = pattern_value(run, p);
        if (v - v != 0)
            continue;
        s->bins[far_bin_of(v, per, width) - s->first] += times;
        s->m2 += (v - s->mean) * (v - s->mean) * (double)times;
        apart += (v - s->mean) * (double)times;
    }
    s->m2 -= apart * (apart / (double)s->n);
    set_mean(s, s->mean + apart / (double)s->n);
}

static int sum_up_patterns(const brc_summary_kind *kind, brc_summary *s, const uint8_t *data,
                           size_t n, brc_error *err)
{
    void *p;
    pattern_run run = {.kind = kind, .s = s, .npatterns = kind->type->item_size == 1 ? 256 : 65536};
    BRC_TRY(brc_new_array(&p, run.npatterns, sizeof(uint32_t), err));
    run.counts = p;
    if (kind->type->item_size == 1)
        count_bytes(p, data, n);
    else
        count_pairs(p, data, n);
    patterns_ends(&run);
    if (s->n > 0)
        patterns_bins(&run);
    drop_doubles(s, kind);
    free(p);
    return BRC_OK;
}

/* ---- a part -------------------------------- */

enum { FILL_LEN = 128 }; /* elements that a uint8_t can count */

#define COUNT_FILL(name, bits)                                                             \
    static inline uint##bits##_t name##_one(const uint8_t *p, uint##bits##_t wanted)       \
    {                                                                                      \
        uint##bits##_t raw;                                                                \
        memcpy(&raw, p, sizeof(raw));                                                      \
        return raw == wanted;                                                              \
    }                                                                                      \
    static uint64_t name(const uint8_t *data, size_t n, const uint8_t *fill)               \
    {                                                                                      \
        uint##bits##_t wanted, met;                                                        \
        uint64_t found = 0;                                                                \
        size_t at = 0;                                                                     \
        memcpy(&wanted, fill, sizeof(wanted));                                             \
        for (; at + FILL_LEN <= n; at += FILL_LEN, data += FILL_LEN * (bits / 8)) {        \
            met = 0;                                                                       \
            for (size_t i = 0; i < FILL_LEN; i++)                                          \
                met = (uint##bits##_t)(met + name##_one(data + i * (bits / 8), wanted));   \
            found += met;                                                                  \
        }                                                                                  \
        for (size_t i = 0; at < n; at++, i++)                                              \
            found += name##_one(data + i * (bits / 8), wanted);                            \
        return found;                                                                      \
    }
COUNT_FILL(count_fill8, 8)
COUNT_FILL(count_fill16, 16)
COUNT_FILL(count_fill32, 32)
COUNT_FILL(count_fill64, 64)

static uint64_t count_fill(const uint8_t *data, size_t n, size_t item, const uint8_t *fill)
{
    uint64_t found = 0;
    if (item == 1)
        return count_fill8(data, n, fill);
    if (item == 2)
        return count_fill16(data, n, fill);
    if (item == 4)
        return count_fill32(data, n, fill);
    if (item == 8)
        return count_fill64(data, n, fill);
    for (size_t i = 0; i < n; i++)
        found += memcmp(data + i * item, fill, item) == 0;
    return found;
}

int brc_summary_make(brc_summary *s, const brc_summary_kind *kind, const uint8_t *data, uint64_t n,
                     const uint8_t *fill, brc_error *err)
{
    const struct number_kind *known = number_kind_of(kind->type);
    const size_t item = kind->type->item_size;
    part_run run = {.kind = kind, .load = known != NULL ? known->load : load_any, .s = s};
    memset(s, 0, sizeof(*s));
    s->count = n;
    if (n == 0)
        return BRC_OK;
    s->fill = count_fill(data, (size_t)n, item, fill);
    if (kind->load == LOAD_PATTERNS || (item == 2 && n >= PATTERNS_LEAST))
        return sum_up_patterns(kind, s, data, (size_t)n, err);
    if (kind->load == LOAD_WIDE)
        sum_up_wide(&run, data, (size_t)n);
    else
        sum_up_doubles(&run, data, (size_t)n);
    return BRC_OK;
}

/* ---- merging -------------------------------- */

void brc_summary_repeat(brc_summary *s, uint64_t times)
{
    s->count *= times;
    s->nan *= times;
    s->fill *= times;
    s->low *= times;
    s->high *= times;
    s->n *= times;
    s->sum *= (brc_wide_int)times;
    s->m2 *= (double)times;
    for (size_t i = 0; i < s->nbins; i++)
        s->bins[i] *= times;
}

static void bins_merge(brc_summary *into, brc_summary *from)
{
    const int scale = into->scale > from->scale ? into->scale : from->scale;
    int64_t first, last;
    bins_to_scale(into, scale);
    bins_to_scale(from, scale);
    for (;;) {
        const int64_t end = into->first + ((int64_t)into->nbins - 1);
        const int64_t other = from->first + ((int64_t)from->nbins - 1);
        first = into->first < from->first ? into->first : from->first;
        last = end > other ? end : other;
        if ((uint64_t)last - (uint64_t)first < BRC_SUMMARY_BINS)
            break;
        bins_to_scale(into, into->scale + 1);
        bins_to_scale(from, from->scale + 1);
    }
    bins_extend(into, first, last);
    for (size_t i = 0; i < from->nbins; i++)
        into->bins[from->first + (int64_t)i - first] += from->bins[i];
}

/* Returns by how much the mean of `from` is larger. Both may be large and near each other. */
static double means_apart(const brc_summary_kind *kind, const brc_summary *into,
                          const brc_summary *from)
{
    double a, b;
    if (!kind->is_integer)
        return from->mean - into->mean;
    const int64_t x = middle_of(into, &a), y = middle_of(from, &b);
    const double apart = y > x ? (double)((uint64_t)y - (uint64_t)x)
                               : -(double)((uint64_t)x - (uint64_t)y);
    return apart + (b - a);
}

void brc_summary_merge(brc_summary *into, const brc_summary_kind *kind, const brc_summary *from)
{
    brc_summary other = *from;
    const double apart = into->n > 0 && from->n > 0 ? means_apart(kind, into, from) : 0;
    const double a = (double)into->n, b = (double)from->n;
    into->count += from->count;
    into->nan += from->nan;
    into->fill += from->fill;
    into->low += from->low;
    into->high += from->high;
    if (from->n == 0)
        return;
    if (into->n == 0) {
        other.count = into->count;
        other.nan = into->nan;
        other.fill = into->fill;
        other.low = into->low;
        other.high = into->high;
        *into = other;
        return;
    }
    into->m2 += from->m2 + apart * apart * (a / (a + b)) * b;
    into->mean += apart * (b / (a + b));
    into->sum += from->sum;
    into->n += from->n;
    into->least = from->least < into->least ? from->least : into->least;
    into->greatest = from->greatest > into->greatest ? from->greatest : into->greatest;
    into->min = from->min < into->min ? from->min : into->min;
    into->max = from->max > into->max ? from->max : into->max;
    bins_merge(into, &other);
}

double brc_summary_mean(const brc_summary *s, const brc_summary_kind *kind)
{
    double rest;
    if (s->n == 0)
        return NAN;
    if (!kind->is_integer)
        return s->mean;
    const brc_wide_int whole = (brc_wide_int)middle_of(s, &rest) + (brc_wide_int)kind->offset;
    return (double)whole + rest;
}

double brc_summary_std(const brc_summary *s)
{
    return s->n > 0 ? sqrt(s->m2 / (double)s->n) : NAN;
}

/* ---- as bytes -------------------------------- */

/*
 *   count nan fill low high                              varints
 *   if there are others: least greatest sum (of integers; 8, 8 and 16 bytes), or min max mean; m2
 *   first, 8 bytes; scale + 2048, varint
 *   bins - 1, varint; counts, varints; behind a 0 how many more there are
 */

enum { SCALE_BIAS = 2048 };

static int pack_u64(brc_buf *out, uint64_t v, brc_error *err)
{
    uint8_t bytes[8];
    brc_store_le(bytes, sizeof(bytes), v);
    return brc_buf_append(out, bytes, sizeof(bytes), err);
}

static int pack_double(brc_buf *out, double v, brc_error *err)
{
    uint64_t bits;
    memcpy(&bits, &v, sizeof(bits));
    return pack_u64(out, bits, err);
}

static int pack_bins(brc_buf *out, const brc_summary *s, brc_error *err)
{
    BRC_TRY(brc_buf_varint(out, s->nbins - 1, err));
    for (size_t i = 0; i < s->nbins; i++) {
        size_t zeros = 0;
        BRC_TRY(brc_buf_varint(out, s->bins[i], err));
        if (s->bins[i] > 0)
            continue;
        for (; i + 1 < s->nbins && s->bins[i + 1] == 0; i++)
            zeros++;
        BRC_TRY(brc_buf_varint(out, zeros, err));
    }
    return BRC_OK;
}

int brc_summary_pack(brc_buf *out, const brc_summary_kind *kind, const brc_summary *s,
                     brc_error *err)
{
    const uint64_t counts[] = {s->count, s->nan, s->fill, s->low, s->high};
    for (size_t i = 0; i < sizeof(counts) / sizeof(counts[0]); i++)
        BRC_TRY(brc_buf_varint(out, counts[i], err));
    if (s->n == 0)
        return BRC_OK;
    if (kind->is_integer) {
        BRC_TRY(pack_u64(out, (uint64_t)s->least, err));
        BRC_TRY(pack_u64(out, (uint64_t)s->greatest, err));
        BRC_TRY(pack_u64(out, (uint64_t)s->sum, err));
        BRC_TRY(pack_u64(out, (uint64_t)(s->sum >> 64), err));
    } else {
        BRC_TRY(pack_double(out, s->min, err));
        BRC_TRY(pack_double(out, s->max, err));
        BRC_TRY(pack_double(out, s->mean, err));
    }
    BRC_TRY(pack_double(out, s->m2, err));
    BRC_TRY(pack_u64(out, (uint64_t)s->first, err));
    BRC_TRY(brc_buf_varint(out, (uint64_t)(s->scale + SCALE_BIAS), err));
    return pack_bins(out, s, err);
}

static uint64_t unpack_u64(brc_reader *r)
{
    const uint8_t *bytes = brc_read_bytes(r, 8);
    return bytes != NULL ? brc_load_le(bytes, 8) : 0;
}

static double unpack_double(brc_reader *r)
{
    const uint64_t bits = unpack_u64(r);
    double v;
    memcpy(&v, &bits, sizeof(v));
    return v;
}

static int unpack_bins(brc_summary *s, brc_reader *r)
{
    const uint64_t last = brc_read_varint(r);
    uint64_t sum = 0;
    if (last >= BRC_SUMMARY_BINS)
        return 0;
    s->nbins = (size_t)last + 1;
    for (size_t i = 0; i < s->nbins && !r->bad; i++) {
        s->bins[i] = brc_read_varint(r);
        if (!brc_add_u64(sum, s->bins[i], &sum))
            return 0;
        const uint64_t zeros = s->bins[i] == 0 ? brc_read_varint(r) : 0;
        if (zeros > last - i)
            return 0;
        i += (size_t)zeros;
    }
    return sum == s->n;
}

/* Says whether the least and the greatest number lie in the first and the last bin. */
static int ends_fit_bins(const brc_summary *s, const brc_summary_kind *kind)
{
    const int64_t end = s->first + ((int64_t)s->nbins - 1); /* no step leaves 64 bits */
    if (kind->is_integer)
        return s->scale >= 0 && s->scale < 64 && s->least <= s->greatest &&
               shift_down(s->least, s->scale) == s->first &&
               shift_down(s->greatest, s->scale) == end &&
               s->sum >= (brc_wide_int)s->least * (brc_wide_int)s->n &&
               s->sum <= (brc_wide_int)s->greatest * (brc_wide_int)s->n;
    return s->min <= s->max && s->min > -INFINITY && s->max < INFINITY && s->scale >= -1021 &&
           s->scale < 1024 && ldexp((double)s->first, s->scale) <= s->min &&
           s->max < ldexp((double)end + 1, s->scale);
}

static int unpack_numbers(brc_summary *s, const brc_summary_kind *kind, brc_reader *r)
{
    if (kind->is_integer) {
        s->least = (int64_t)unpack_u64(r);
        s->greatest = (int64_t)unpack_u64(r);
        const uint64_t low = unpack_u64(r), high = unpack_u64(r);
        s->sum = (brc_wide_int)(int64_t)high * ((brc_wide_int)1 << 64) + (brc_wide_int)low;
    } else {
        s->min = unpack_double(r);
        s->max = unpack_double(r);
        s->mean = unpack_double(r);
    }
    s->m2 = unpack_double(r);
    s->first = (int64_t)unpack_u64(r);
    const uint64_t scale = brc_read_varint(r);
    if (r->bad || scale > 2 * SCALE_BIAS || s->m2 < 0)
        return 0;
    s->scale = (int)scale - SCALE_BIAS;
    return unpack_bins(s, r) && s->first <= INT64_MAX - (int64_t)(s->nbins - 1) &&
           ends_fit_bins(s, kind);
}

int brc_summary_unpack(brc_summary *s, const brc_summary_kind *kind, brc_span packed,
                       uint64_t count)
{
    brc_reader r = brc_reader_of(packed.data, packed.len);
    uint64_t *const counts[] = {&s->count, &s->nan, &s->fill, &s->low, &s->high};
    uint64_t others = 0;
    memset(s, 0, sizeof(*s));
    for (size_t i = 0; i < sizeof(counts) / sizeof(counts[0]); i++)
        *counts[i] = brc_read_varint(&r);
    if (r.bad || s->count != count || s->fill > count || !brc_add_u64(s->nan, s->low, &others) ||
        !brc_add_u64(others, s->high, &others) || others > count)
        return 0;
    s->n = count - others;
    if (s->n > 0 && !unpack_numbers(s, kind, &r))
        return 0;
    return !r.bad && brc_reader_left(&r) == 0;
}
