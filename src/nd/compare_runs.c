/*
 * The loops of element differences, one for each common number type. They go through
 * blocks of a fixed size without a branch, so that compilers make vectors of them.
 * 64-bit integers and times are subtracted as such: as doubles, neighbours are often
 * equal.
 */
#include "compare_runs.h"

#include <math.h>
#include <string.h>

#include "dtype_ops.h"

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

/* Of numpy.datetime64 and numpy.timedelta64: not-a-time has no difference from anything. */
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

brc_compare_run_fn brc_compare_run_of(const brc_dtype *type)
{
    for (size_t i = 0; i < sizeof(typed_runs) / sizeof(typed_runs[0]); i++)
        if (typed_runs[i].ops == type->ops && typed_runs[i].item_size == type->item_size)
            return typed_runs[i].run;
    return run_any;
}
