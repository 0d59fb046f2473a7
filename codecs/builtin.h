/* The codecs of this folder: each adds its specifications and implementations. What
 * several of them use stands below. */
#ifndef BRC_CODECS_BUILTIN_H
#define BRC_CODECS_BUILTIN_H

#include "../src/breccia_codec.h"

BRC_MUST_USE int brc_codec_astype_register(brc_registry *reg, brc_error *err);
BRC_MUST_USE int brc_codec_base64_register(brc_registry *reg, brc_error *err);
BRC_MUST_USE int brc_codec_bitround_register(brc_registry *reg, brc_error *err);
BRC_MUST_USE int brc_codec_blosc_register(brc_registry *reg, brc_error *err);
BRC_MUST_USE int brc_codec_bytes_register(brc_registry *reg, brc_error *err);
BRC_MUST_USE int brc_codec_bz2_register(brc_registry *reg, brc_error *err);
BRC_MUST_USE int brc_codec_categorize_register(brc_registry *reg, brc_error *err);
BRC_MUST_USE int brc_codec_cast_value_register(brc_registry *reg, brc_error *err);
BRC_MUST_USE int brc_codec_checksums_register(brc_registry *reg, brc_error *err);
BRC_MUST_USE int brc_codec_crc32c_register(brc_registry *reg, brc_error *err);
BRC_MUST_USE int brc_codec_delta_register(brc_registry *reg, brc_error *err);
BRC_MUST_USE int brc_codec_fixed_scale_register(brc_registry *reg, brc_error *err);
BRC_MUST_USE int brc_codec_gzip_register(brc_registry *reg, brc_error *err);
BRC_MUST_USE int brc_codec_lz4_register(brc_registry *reg, brc_error *err);
BRC_MUST_USE int brc_codec_lzma_register(brc_registry *reg, brc_error *err);
BRC_MUST_USE int brc_codec_optional_register(brc_registry *reg, brc_error *err);
BRC_MUST_USE int brc_codec_packbits_register(brc_registry *reg, brc_error *err);
BRC_MUST_USE int brc_codec_packbools_register(brc_registry *reg, brc_error *err);
BRC_MUST_USE int brc_codec_reshape_register(brc_registry *reg, brc_error *err);
BRC_MUST_USE int brc_codec_scale_offset_register(brc_registry *reg, brc_error *err);
BRC_MUST_USE int brc_codec_sharding_register(brc_registry *reg, brc_error *err);
BRC_MUST_USE int brc_codec_shuffle_register(brc_registry *reg, brc_error *err);
BRC_MUST_USE int brc_codec_transpose_register(brc_registry *reg, brc_error *err);
BRC_MUST_USE int brc_codec_vlen_register(brc_registry *reg, brc_error *err);
BRC_MUST_USE int brc_codec_zstd_register(brc_registry *reg, brc_error *err);

/* ---- states, lengths, elements: shared.c -------------------------------- */

/* A specification and its one implementation. */
BRC_MUST_USE int brc_codec_add(brc_registry *reg, const brc_codec_spec *spec,
                               const brc_codec_impl *impl, brc_error *err);
/* A state that is a copy of `from`; brc_codec_state_free() is then the close function. */
BRC_MUST_USE int brc_codec_state_copy(void **out, const void *from, size_t size, brc_error *err);
void brc_codec_state_free(void *ctx, void *state);
/* How many elements the array has; BRC_ELIMIT where no chunk can have so many. */
BRC_MUST_USE int brc_codec_count(uint64_t *out, const brc_proto *proto, brc_error *err);
/* Makes `out` an array of n elements of this type, which has a fixed length. */
BRC_MUST_USE int brc_codec_retype(brc_proto *out, uint64_t n, const brc_dtype *type, brc_error *err);
/* BRC_ECORRUPT where the length is not the expected one. */
BRC_MUST_USE int brc_codec_expect_len(brc_span src, uint64_t len, brc_error *err);
/* For bytes->bytes codecs: `in` longer by at most `more`, and that exactly or not. */
void brc_codec_longer(const brc_proto *in, brc_proto *out, uint64_t more, int exactly);

/* The scratch of a codec whose chunks hold chains of their own: of their memory, of what
 * stands before the elements (a shard's index, a mask), of elements decoded and encoded. */
struct brc_nested_scratch {
    brc_scratch *chains;
    brc_buf head, plain, stored;
};
BRC_MUST_USE int brc_codec_nested_scratch_new(void *ctx, void **out, const void *state,
                                              brc_error *err);
void brc_codec_nested_scratch_free(void *ctx, void *scratch);

/* Sums and products that stay at UINT64_MAX once they are too large. */
uint64_t brc_codec_add_up(uint64_t a, uint64_t b);
uint64_t brc_codec_times(uint64_t a, uint64_t b);

/* Elements of variable length, each a uint32 of its bytes and the bytes. Says where
 * each of the n elements begins; offsets[n] is the end. BRC_ECORRUPT where src is not
 * exactly n elements. */
BRC_MUST_USE int brc_codec_index_elements(uint32_t *offsets, uint64_t n, brc_span src,
                                          brc_error *err);
/* The same with memory for the offsets, which the caller frees. */
BRC_MUST_USE int brc_codec_new_index(uint32_t **offsets, uint64_t n, brc_span src, brc_error *err);

static inline uint64_t brc_codec_load(const uint8_t *p, size_t size)
{
    uint64_t value = 0;

    for (size_t i = 0; i < size; i++)
        value |= (uint64_t)p[i] << (8 * i);
    return value;
}

static inline void brc_codec_store(uint8_t *p, size_t size, uint64_t value)
{
    for (size_t i = 0; i < size; i++)
        p[i] = (uint8_t)(value >> (8 * i));
}

/* A stream of compressed bytes: room behind dst->len of at least one byte, up to the
 * limit; *room is 0 where there may be no more. `goal` is the exact length, or
 * SIZE_MAX: then room grows with what has come out. */
BRC_MUST_USE int brc_codec_make_room(brc_buf *dst, size_t goal, size_t *room, brc_error *err);

/* CRC-32C by the fastest way that runs here: crc32c.c */
uint32_t brc_codec_crc32c(const uint8_t *data, size_t len);

/* ---- numbers: number.c -------------------------------- */

enum { BRC_NUMBER_FINITE, BRC_NUMBER_INFINITE, BRC_NUMBER_NAN };

/* A real number, exactly: (-1)^negative * mantissa * 2^exponent. Of a finite number
 * other than zero the mantissa's top bit is set; zero has mantissa 0. */
typedef struct brc_number {
    int kind, negative, exponent;
    uint64_t mantissa;
} brc_number;

enum {
    BRC_ROUND_NEAREST_EVEN,
    BRC_ROUND_TOWARDS_ZERO,
    BRC_ROUND_TOWARDS_POSITIVE,
    BRC_ROUND_TOWARDS_NEGATIVE,
    BRC_ROUND_NEAREST_AWAY
};
enum { BRC_RANGE_ERROR, BRC_RANGE_CLAMP, BRC_RANGE_WRAP };

/* How the elements of a type are real numbers: integers of up to 64 bits, floats. */
typedef struct brc_numeric {
    const brc_dtype *type;
    int is_float, is_signed;   /* is_signed 2: a float of one byte with -0         */
    size_t size;
    unsigned bits;             /* of an integer                                   */
    int precision, emin, emax; /* of a float of 2 to 8 bytes: hidden bit included */
    int has_nan, has_infinity;
    uint64_t nan, infinity;    /* bit patterns                                    */
    size_t nvalues;            /* of a float of one byte: every finite value,     */
    struct {                   /* from the lowest to the highest                  */
        double value;
        uint8_t bits;
    } values[256];
} brc_numeric;

/* BRC_EINVAL where the type's elements are no real numbers. */
BRC_MUST_USE int brc_numeric_open(brc_numeric *out, const brc_dtype *type, brc_error *err);
brc_number brc_numeric_load(const brc_numeric *numeric, const uint8_t *element);
/* BRC_EINVAL, and a message, where the number is out of the type's range and `range` does
 * not say what to take instead. An infinity is in range where the type has one. */
BRC_MUST_USE int brc_numeric_store(const brc_numeric *numeric, brc_number number, int rounding,
                                   int range, uint8_t *element, brc_error *err);
/* As C and NumPy convert: integers wrap, fractions are cut off, too large a number is
 * infinite. What an integer cannot be at all is 0. */
void brc_numeric_cast(const brc_numeric *numeric, brc_number number, uint8_t *element);
/* -1, 0 or 1; NaN is equal to NaN alone, and above all else. */
int brc_number_compare(brc_number a, brc_number b);
brc_number brc_number_of_double(double value);
/* Rounded, half to even. */
double brc_number_to_double(brc_number number);
double brc_numeric_to_double(const brc_numeric *numeric, const uint8_t *element);
/* The value that the type has for this one; of an integer type, the value itself. */
double brc_numeric_round(const brc_numeric *numeric, double value);
/* What a printf wants: "1.5", "NaN". */
#define BRC_NUMBER_TEXT 48
const char *brc_number_text(char out[BRC_NUMBER_TEXT], brc_number number);

/* ---- data types as numcodecs names them: numpy_type.c -------------------------------- */

/* The member `name` of a configuration: "<f4", "|u1", or a name of Zarr's own. Byte
 * order plays no part: elements here are little-endian, and the codec that follows says
 * how they are stored. NULL in *out where the member is absent or null. */
BRC_MUST_USE int brc_numpy_type_open(brc_dtype **out, const brc_registry *reg,
                                     const brc_json *config, const char *name, brc_error *err);
/* Where the type has another length an element than the array's, BRC_EINVAL. */
BRC_MUST_USE int brc_numpy_type_check(const brc_dtype *type, const brc_dtype *array,
                                      const char *name, brc_error *err);

/* ---- shards: shard_cut.c -------------------------------- */

/* How a shard is cut into inner chunks. One's number counts them in C order. */
struct brc_shard_cut {
    int ndim;
    uint64_t shape[BRC_MAX_NDIM], inner_shape[BRC_MAX_NDIM], grid[BRC_MAX_NDIM];
    uint64_t n;        /* inner chunks                                         */
    uint64_t elements; /* of the shard                                         */
    uint64_t inner_elements;
};

/* Where an inner chunk's elements lie in the shard: runs of elements that lie side by
 * side in both, along the last axes that an inner chunk has in full, and one more. */
struct brc_shard_walk {
    const struct brc_shard_cut *cut;
    uint64_t run; /* elements of a run                                         */
    int axes;     /* those that are stepped through                            */
    uint64_t index[BRC_MAX_NDIM];
    uint64_t at; /* element of the shard where the run begins                 */
};

void brc_shard_walk_start(struct brc_shard_walk *walk, const struct brc_shard_cut *cut,
                          uint64_t number);
/* 0 after the last run. */
int brc_shard_walk_next(struct brc_shard_walk *walk);

/* The inner chunks that a box of the shard meets: at[i] of n[i] along each axis, from
 * first[i] on. */
struct brc_shard_met {
    uint64_t first[BRC_MAX_NDIM], n[BRC_MAX_NDIM], at[BRC_MAX_NDIM];
};

void brc_shard_met_start(struct brc_shard_met *met, const struct brc_shard_cut *cut,
                         const brc_box *box);
/* The number of the one that is due. */
uint64_t brc_shard_met_number(const struct brc_shard_met *met, const struct brc_shard_cut *cut);
/* 0 after the last one. */
int brc_shard_met_next(struct brc_shard_met *met, const struct brc_shard_cut *cut);
/* What of the box lies in an inner chunk that it meets, from that one's corner. */
void brc_shard_inner_box(const struct brc_shard_cut *cut, uint64_t number, const brc_box *box,
                         brc_box *out);

#endif
