/* What most codecs of this tree use: states, lengths, elements of variable length. */
#ifndef BRC_CODECS_LIB_CODEC_HELP_H
#define BRC_CODECS_LIB_CODEC_HELP_H

#include "../../src/breccia_codec.h"

/* A specification and its one implementation. */
BRC_MUST_USE int brc_codec_add(brc_registry *reg, const brc_codec_spec *spec,
                               const brc_codec_impl *impl, brc_error *err);
/* A state that is a copy of `from`; brc_codec_state_free() is then the close function. */
BRC_MUST_USE int brc_codec_state_copy(void **out, const void *from, size_t size, brc_error *err);
void brc_codec_state_free(void *ctx, void *state);
/* How many elements the array has; BRC_ELIMIT if that is more than a chunk can have. */
BRC_MUST_USE int brc_codec_count(uint64_t *out, const brc_proto *proto, brc_error *err);
/* Makes `out` an array of n elements of this type, which has a fixed length. */
BRC_MUST_USE int brc_codec_retype(brc_proto *out, uint64_t n, const brc_dtype *type, brc_error *err);
/* BRC_ECORRUPT if the length is not the expected one. */
BRC_MUST_USE int brc_codec_expect_len(brc_span src, uint64_t len, brc_error *err);
/* For bytes->bytes codecs: `in` longer by at most `more`, or by exactly that. */
void brc_codec_longer(const brc_proto *in, brc_proto *out, uint64_t more, int exactly);

/* The scratch of a codec whose chunks hold chains of their own: their memory, what
 * precedes the elements (a shard's index, a mask), and elements decoded and encoded. */
struct brc_nested_scratch {
    brc_scratch *chains;
    brc_buf head, plain, stored;
};
BRC_MUST_USE int brc_codec_nested_scratch_new(void *ctx, void **out, const void *state,
                                              brc_error *err);
void brc_codec_nested_scratch_free(void *ctx, void *scratch);

/* Sums and products that saturate at UINT64_MAX. */
uint64_t brc_codec_add_up(uint64_t a, uint64_t b);
uint64_t brc_codec_times(uint64_t a, uint64_t b);

/* Elements of variable length, each its length as a uint32 and the bytes: where each of the
 * n elements begins, and in offsets[n] the end. The caller frees the offsets. BRC_ECORRUPT
 * if src is not exactly n elements. */
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

/* A stream of compressed bytes: at least one byte of room after dst->len, up to the
 * limit; *room is 0 if no more is allowed. `goal` is the exact length, or SIZE_MAX:
 * then room grows with the output. */
BRC_MUST_USE int brc_codec_make_room(brc_buf *dst, size_t goal, size_t *room, brc_error *err);

#endif
