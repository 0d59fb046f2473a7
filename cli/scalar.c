/*
 * scalar.c - elements of arrays as numbers.
 */
#include "scalar.h"

#include <math.h>
#include <string.h>

static const struct {
    const char *name;
    size_t size;
} number_types[] = { [CLI_BOOL] = { "bool", 1 },   [CLI_I8] = { "int8", 1 },
                     [CLI_I16] = { "int16", 2 },   [CLI_I32] = { "int32", 4 },
                     [CLI_I64] = { "int64", 8 },   [CLI_U8] = { "uint8", 1 },
                     [CLI_U16] = { "uint16", 2 },  [CLI_U32] = { "uint32", 4 },
                     [CLI_U64] = { "uint64", 8 },  [CLI_F16] = { "float16", 2 },
                     [CLI_F32] = { "float32", 4 }, [CLI_F64] = { "float64", 8 } };

static int dtype_is(const char *dtype, const char *const *names, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (strstr(dtype, names[i]))
            return 1;
    return 0;
}

enum cli_number cli_number_of(const brc_array_info *info)
{
    static const char *const others[] = { "complex", "fixed_length_utf32", "null_terminated_bytes",
                                          "raw_bytes", "struct", "string", "bytes", "binary" };
    static const char *const times[] = { "\"numpy.datetime64\"", "\"numpy.timedelta64\"" };
    static const char *const optional[] = { "zarrs.optional" };

    for (enum cli_number number = CLI_BOOL; number <= CLI_F64; number++)
        if (strcmp(info->dtype, number_types[number].name) == 0)
            return number;
    if (info->item_size == 0 ||
        dtype_is(info->dtype, others, sizeof(others) / sizeof(others[0])) ||
        (info->dtype[0] == 'r' && info->dtype[1] >= '0' && info->dtype[1] <= '9'))
        return CLI_NO_NUMBER;
    if (dtype_is(info->dtype, times, 2) && !dtype_is(info->dtype, optional, 1))
        return info->item_size == 8 ? CLI_TIME : CLI_NO_NUMBER;
    return CLI_BY_TEXT;
}

int cli_number_is_int(enum cli_number number)
{
    return number >= CLI_I8 && number <= CLI_U64;
}

const char *cli_number_name(enum cli_number number)
{
    return number_types[number].name;
}

size_t cli_number_size(enum cli_number number)
{
    return number_types[number].size;
}

double cli_half_number(uint16_t bits)
{
    unsigned exponent = bits >> 10 & 31, rest = bits & 1023;
    double size = exponent == 31 ? (rest ? NAN : INFINITY)
                  : exponent     ? ldexp(1024 + rest, (int)exponent - 25)
                                 : ldexp(rest, -24);

    return bits >> 15 ? -size : size;
}

#define GET_AS(type)                                                                               \
    {                                                                                              \
        type v;                                                                                    \
        memcpy(&v, element, sizeof(v));                                                            \
        return (long double)v;                                                                     \
    }

#define PUT_AS(type)                                                                               \
    {                                                                                              \
        type v = (type)value;                                                                      \
        memcpy(element, &v, sizeof(v));                                                            \
        return sizeof(v);                                                                          \
    }

long double cli_number_get(enum cli_number number, const void *element)
{
    uint16_t bits;

    switch (number) {
    case CLI_BOOL:
    case CLI_U8:
        GET_AS(uint8_t)
    case CLI_I8:
        GET_AS(int8_t)
    case CLI_I16:
        GET_AS(int16_t)
    case CLI_I32:
        GET_AS(int32_t)
    case CLI_U16:
        GET_AS(uint16_t)
    case CLI_U32:
        GET_AS(uint32_t)
    case CLI_U64:
        GET_AS(uint64_t)
    case CLI_F16:
        memcpy(&bits, element, sizeof(bits));
        return cli_half_number(bits);
    case CLI_F32:
        GET_AS(float)
    case CLI_F64:
        GET_AS(double)
    default:
        GET_AS(int64_t)
    }
}

size_t cli_number_put(enum cli_number number, long double value, void *element)
{
    switch (number) {
    case CLI_BOOL:
    case CLI_U8:
        PUT_AS(uint8_t)
    case CLI_I8:
        PUT_AS(int8_t)
    case CLI_I16:
        PUT_AS(int16_t)
    case CLI_I32:
        PUT_AS(int32_t)
    case CLI_U16:
        PUT_AS(uint16_t)
    case CLI_U32:
        PUT_AS(uint32_t)
    case CLI_U64:
        PUT_AS(uint64_t)
    case CLI_F32:
        PUT_AS(float)
    case CLI_F64:
        PUT_AS(double)
    default:
        PUT_AS(int64_t)
    }
}

void cli_number_range(enum cli_number number, long double *low, long double *high)
{
    int bits = (int)cli_number_size(number) * 8;

    *low = number >= CLI_U8 ? 0 : -ldexpl(1, bits - 1);
    *high = ldexpl(1, number >= CLI_U8 ? bits : bits - 1) - 1;
}

size_t cli_element_len(const brc_array_info *info, const uint8_t *at)
{
    if (info->item_size > 0)
        return info->item_size;
    return 4 + ((size_t)at[0] | (size_t)at[1] << 8 | (size_t)at[2] << 16 | (size_t)at[3] << 24);
}
