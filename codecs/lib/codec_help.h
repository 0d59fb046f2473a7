/* Functions that several codecs use: states, lengths, elements of variable length. */
#ifndef BRC_CODECS_LIB_CODEC_HELP_H
#define BRC_CODECS_LIB_CODEC_HELP_H

#include "../../src/breccia_codec.h"

/* Adds a specification and its only implementation to the registry. */
BRC_MUST_USE int brc_codec_add(brc_registry *reg, const brc_codec_spec *spec,
                               const brc_codec_impl *impl, brc_error *err);
/* Makes a state that is a copy of `from`. Its close function is brc_codec_state_free(). */
BRC_MUST_USE int brc_codec_state_copy(void **out, const void *from, size_t size, brc_error *err);
void brc_codec_state_free(void *ctx, void *state);
/* Counts the elements of the array. Fails with BRC_ELIMIT if a chunk cannot have so many. */
BRC_MUST_USE int brc_codec_count(uint64_t *out, const brc_proto *proto, brc_error *err);
/* Makes `out` an array of n elements of `type`, which must have a fixed length. */
BRC_MUST_USE int brc_codec_retype(brc_proto *out, uint64_t n, const brc_dtype *type, brc_error *err);
/* Fails with BRC_ECORRUPT if src does not have `len` bytes. */
BRC_MUST_USE int brc_codec_expect_len(brc_span src, uint64_t len, brc_error *err);
/* Sets the lengths of `out`, for a bytes->bytes codec that makes `in` longer by at most `more`
 * bytes, or if `exactly` is set, by exactly `more`. */
void brc_codec_longer(const brc_proto *in, brc_proto *out, uint64_t more, int exactly);

/* The scratch of a codec that runs chains of its own: the scratch of these chains, the decoded
 * header (a shard's index, a mask), and elements before and after encoding. */
struct brc_nested_scratch {
    brc_scratch *chains;
    brc_buf head, plain, stored;
};
BRC_MUST_USE int brc_codec_nested_scratch_new(void *ctx, void **out, const void *state,
                                              brc_error *err);
void brc_codec_nested_scratch_free(void *ctx, void *scratch);

/* Add and multiply; results saturate at UINT64_MAX. */
uint64_t brc_codec_add_up(uint64_t a, uint64_t b);
uint64_t brc_codec_times(uint64_t a, uint64_t b);

/* Finds where each of n elements of variable length begins; offsets[n] is the end. An element is
 * its length as a uint32, then its bytes. The caller frees the offsets. Fails with BRC_ECORRUPT if
 * src is not exactly n elements. */
BRC_MUST_USE int brc_codec_new_index(uint32_t **offsets, uint64_t n, brc_span src, brc_error *err);

/* Returns 1 if the bytes are valid UTF-8 by RFC 3629, else 0. */
int brc_codec_is_utf8(const uint8_t *text, size_t len);

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

/* Makes room for the output of a decompressor: at least one byte after dst->len, up to the
 * limit of dst. *room is 0 at the limit. `goal` is the exact length, or SIZE_MAX, with which
 * room grows with the output. */
BRC_MUST_USE int brc_codec_make_room(brc_buf *dst, size_t goal, size_t *room, brc_error *err);

#endif
