/*
 * "sharding_indexed": many inner chunks in one value, and an index of where they are.
 *
 *     index_location "end"                       "start"
 *     0      inner chunks, any order, gaps       0   index, I bytes
 *     L - I  index, I bytes                      I   inner chunks, any order, gaps
 *
 *     index: uint64 [grid..., 2] through index_codecs; for each inner chunk, in C order,
 *     its offset from byte 0 of the value and its length; both are 2^64 - 1 if the inner
 *     chunk is absent, and all its elements are the fill value
 *
 * The index has a fixed length, otherwise a reader could not find it. Its entries are not
 * trusted: ranges may overlap and be shared, but each range must be inside the value and
 * outside the index. An index is decoded only if the value is at least as long as the index,
 * so the memory for the index is in proportion to the value.
 */
#include "builtin.h"
#include "lib/codec_help.h"
#include "lib/shard_cut.h"

#include <stdlib.h>
#include <string.h>

#define SHARD_MISSING UINT64_MAX
#define SHARD_MAX_ENTRIES ((uint64_t)1 << 30)
enum { SHARD_ENTRY = 16 }; /* bytes of an entry: an offset and a length          */

struct shard_state {
    struct brc_shard_cut cut;
    int at_start;
    size_t item; /* bytes of an element; 0 if they vary                  */
    brc_chain *inner, *index;
    brc_dtype *index_type;
    uint64_t index_len; /* bytes of the encoded index                           */
    uint64_t len;       /* bytes of the decoded shard, or BRC_LEN_VARIES        */
    brc_buf fill;       /* one element; data is NULL if not known               */
};

/* ---- specification -------------------------------- */

static void shard_close(void *ctx, void *opaque)
{
    (void)ctx;
    struct shard_state *state = opaque;

    brc_chain_free(state->inner);
    brc_chain_free(state->index);
    brc_dtype_free(state->index_type);
    brc_buf_dispose(&state->fill);
    free(state);
}

static int shard_read_shape(struct shard_state *state, const brc_json *shape, const brc_proto *in,
                            brc_error *err)
{
    struct brc_shard_cut *cut = &state->cut;

    cut->ndim = in->ndim;
    cut->n = cut->inner_elements = 1;
    if (brc_json_kind(shape) != BRC_JSON_ARRAY || brc_json_count(shape) != (size_t)in->ndim)
        return brc_fail(err, BRC_EINVAL,
                        "\"chunk_shape\" must be a list of %d extents, as the "
                        "shard has",
                        in->ndim);
    for (int i = 0; i < in->ndim; i++) {
        uint64_t extent = 0;
        if (!brc_json_uint(brc_json_item(shape, (size_t)i), INT64_MAX, &extent) || extent == 0 ||
            in->shape[i] % extent != 0)
            return brc_fail(err, BRC_EINVAL,
                            "\"chunk_shape\" must divide the shard: its extent %llu along axis %d "
                            "into whole chunks",
                            (unsigned long long)in->shape[i], i);
        cut->shape[i] = in->shape[i];
        cut->inner_shape[i] = extent;
        cut->grid[i] = in->shape[i] / extent;
        cut->inner_elements = brc_codec_times(cut->inner_elements, extent);
        cut->n = cut->n == 0 || cut->grid[i] == 0 ? 0 : brc_codec_times(cut->n, cut->grid[i]);
    }
    if (cut->n > SHARD_MAX_ENTRIES)
        return brc_fail(err, BRC_ELIMIT,
                        "a shard of %llu inner chunks is too large: at most 2^30 "
                        "are allowed",
                        (unsigned long long)cut->n);
    return brc_codec_count(&cut->elements, in, err);
}

static int shard_read_location(struct shard_state *state, const brc_json *location, brc_error *err)
{
    if (location == NULL)
        return BRC_OK;
    state->at_start = brc_json_is(location, "start");
    if (!state->at_start && !brc_json_is(location, "end"))
        return brc_fail(err, BRC_EINVAL, "\"index_location\" must be \"start\" or \"end\"");
    return BRC_OK;
}

static int shard_open_index(struct shard_state *state, const brc_json *codecs, const brc_proto *in,
                            brc_error *err)
{
    uint64_t shape[BRC_MAX_NDIM + 1];

    if (state->cut.ndim + 1 > BRC_MAX_NDIM)
        return brc_fail(err, BRC_ELIMIT, "a shard has at most %d dimensions", BRC_MAX_NDIM - 1);
    for (int i = 0; i < state->cut.ndim; i++)
        shape[i] = state->cut.grid[i];
    shape[state->cut.ndim] = 2;
    int rc = brc_dtype_open(&state->index_type, in->registry, NULL, "uint64", err);
    if (rc == BRC_OK)
        rc = brc_chain_open(&state->index, in->registry, codecs, state->cut.ndim + 1, shape,
                            state->index_type, (brc_span){ NULL, 0 }, err);
    if (rc < 0) {
        brc_context(err, "\"index_codecs\"");
        return rc;
    }
    state->index_len = brc_chain_describe(state->index)->encoded_len;
    /* Refuse an encoded index shorter than its entries: its codecs leave bits out, and a short
     * value could then ask for the memory of a long index. */
    if (state->index_len == BRC_LEN_VARIES || state->index_len < state->cut.n * SHARD_ENTRY)
        return brc_fail(err, BRC_EINVAL,
                        "\"index_codecs\" must give every index the same length, so that it can "
                        "be found: \"bytes\" and \"crc32c\" do so, compression does not");
    return BRC_OK;
}

/* Returns the most bytes that a shard may have. Gaps are allowed, so other writers may produce
 * longer values than this codec: there is room to rewrite each inner chunk a few times. */
static uint64_t shard_max_len(const struct shard_state *state)
{
    uint64_t inner = brc_codec_times(state->cut.n, brc_chain_describe(state->inner)->encoded_max);

    return brc_codec_add_up(brc_codec_times(inner, 4),
                            brc_codec_add_up(state->index_len, (uint64_t)1 << 20));
}

static int shard_read_config(struct shard_state *state, const brc_json *config, const brc_proto *in,
                             brc_error *err)
{
    static const char *const members[] = { "chunk_shape", "codecs", "index_codecs",
                                           "index_location" };
    int rc = config != NULL ? brc_json_allow(config, members, 4, err) : BRC_OK;

    if (rc == BRC_OK)
        rc = shard_read_shape(state, brc_json_member(config, "chunk_shape"), in, err);
    if (rc == BRC_OK)
        rc = shard_read_location(state, brc_json_member(config, "index_location"), err);
    if (rc == BRC_OK && in->fill.data != NULL) {
        rc = brc_buf_reserve(&state->fill, in->fill.len + 1, err);
        if (rc == BRC_OK)
            rc = brc_buf_append(&state->fill, in->fill.data, in->fill.len, err);
    }
    if (rc < 0)
        return rc;
    rc = brc_chain_open(&state->inner, in->registry, brc_json_member(config, "codecs"), in->ndim,
                        state->cut.inner_shape, in->dtype, in->fill, err);
    if (rc < 0) {
        brc_context(err, "\"codecs\"");
        return rc;
    }
    return shard_open_index(state, brc_json_member(config, "index_codecs"), in, err);
}

static int shard_open(void *ctx, void **out_state, const brc_json *config, const brc_proto *in,
                      brc_proto *out, int *identity, brc_error *err)
{
    (void)identity;
    struct shard_state *state = calloc(1, sizeof(*state));

    if (state == NULL)
        return brc_fail(err, BRC_ENOMEM, "out of memory");
    state->item = in->dtype->item_size;
    state->len = in->len;
    int rc = shard_read_config(state, config, in, err);
    if (rc < 0) {
        shard_close(ctx, state);
        return rc;
    }
    out->ndim = -1;
    out->len = BRC_LEN_VARIES;
    out->max_len = shard_max_len(state);
    out->flags = brc_chain_describe(state->inner)->flags & BRC_CODEC_LOSSY;
    *out_state = state;
    return BRC_OK;
}

static int shard_write_config(void *ctx, const void *opaque, brc_buf *out, brc_error *err)
{
    (void)ctx;
    const struct shard_state *state = opaque;
    int rc = brc_buf_printf(out, err, "{\"chunk_shape\":[");

    for (int i = 0; i < state->cut.ndim && rc == BRC_OK; i++)
        rc = brc_buf_printf(out, err, "%s%llu", i > 0 ? "," : "",
                            (unsigned long long)state->cut.inner_shape[i]);
    if (rc == BRC_OK)
        rc = brc_buf_printf(out, err, "],\"codecs\":");
    if (rc == BRC_OK)
        rc = brc_chain_write(state->inner, out, err);
    if (rc == BRC_OK)
        rc = brc_buf_printf(out, err, ",\"index_codecs\":");
    if (rc == BRC_OK)
        rc = brc_chain_write(state->index, out, err);
    return rc < 0 ? rc
                  : brc_buf_printf(out, err, ",\"index_location\":\"%s\"}",
                                   state->at_start ? "start" : "end");
}

/* ---- encoding -------------------------------- */

/* Packs the elements of one inner chunk. `offsets` is for elements of variable length. */
static int shard_gather(const struct shard_state *state, uint64_t number, brc_span src,
                        const uint32_t *offsets, brc_buf *out, brc_error *err)
{
    struct brc_shard_walk walk;
    int rc = BRC_OK;

    out->len = 0;
    brc_shard_walk_start(&walk, &state->cut, number);
    do {
        size_t first = offsets != NULL ? offsets[walk.at] : (size_t)walk.at * state->item;
        size_t end = offsets != NULL ? offsets[walk.at + walk.run]
                                     : (size_t)(walk.at + walk.run) * state->item;
        rc = brc_buf_append(out, src.data + first, end - first, err);
    } while (rc == BRC_OK && brc_shard_walk_next(&walk));
    return rc;
}

/* Compares bit for bit, so that a zero's sign and a NaN's payload are kept. */
static int shard_is_fill(const struct shard_state *state, const brc_buf *plain)
{
    const brc_buf *fill = &state->fill;

    if (fill->data == NULL || fill->len == 0 || plain->len % fill->len != 0 ||
        (uint64_t)plain->len / fill->len != state->cut.inner_elements)
        return 0;
    for (size_t at = 0; at < plain->len; at += fill->len)
        if (memcmp(plain->data + at, fill->data, fill->len) != 0)
            return 0;
    return 1;
}

static void shard_put_entry(brc_buf *index, uint64_t number, uint64_t offset, uint64_t len)
{
    brc_codec_store(index->data + number * SHARD_ENTRY, 8, offset);
    brc_codec_store(index->data + number * SHARD_ENTRY + 8, 8, len);
}

static int shard_encode_chunks(const struct shard_state *state, struct brc_nested_scratch *scratch,
                               brc_span src, const uint32_t *offsets, brc_buf *dst, brc_error *err)
{
    for (uint64_t i = 0; i < state->cut.n; i++) {
        int rc = shard_gather(state, i, src, offsets, &scratch->plain, err);
        if (rc < 0)
            return rc;
        if (shard_is_fill(state, &scratch->plain)) {
            shard_put_entry(&scratch->head, i, SHARD_MISSING, SHARD_MISSING);
            continue;
        }
        scratch->stored.len = 0;
        rc = brc_chain_encode(state->inner, scratch->chains,
                              (brc_span){ scratch->plain.data, scratch->plain.len },
                              &scratch->stored, err);
        if (rc == BRC_OK)
            rc = brc_buf_append(dst, scratch->stored.data, scratch->stored.len, err);
        if (rc < 0) {
            brc_context(err, "inner chunk %llu", (unsigned long long)i);
            return rc;
        }
        shard_put_entry(&scratch->head, i, dst->len - scratch->stored.len, scratch->stored.len);
    }
    return BRC_OK;
}

static int shard_encode_all(const struct shard_state *state, struct brc_nested_scratch *scratch,
                            brc_span src, const uint32_t *offsets, brc_buf *dst, brc_error *err)
{
    static const uint8_t nothing[1];
    size_t index_len = (size_t)state->index_len, entries = (size_t)state->cut.n * SHARD_ENTRY;

    if (src.data == NULL)
        src.data = nothing;
    scratch->head.len = 0;
    int rc = brc_buf_reserve(&scratch->head, entries + 1, err);
    if (rc == BRC_OK)
        rc = brc_buf_reserve(dst, index_len, err);
    if (rc < 0)
        return rc;
    scratch->head.len = entries;
    if (state->at_start)
        dst->len += index_len; /* the index is written after the inner chunks      */
    rc = shard_encode_chunks(state, scratch, src, offsets, dst, err);
    if (rc < 0)
        return rc;
    scratch->stored.len = 0;
    rc = brc_chain_encode(state->index, scratch->chains,
                          (brc_span){ scratch->head.data, scratch->head.len }, &scratch->stored,
                          err);
    if (rc == BRC_OK && scratch->stored.len != index_len)
        rc = brc_fail(err, BRC_EINTERNAL, "the index has %zu bytes, not %zu", scratch->stored.len,
                      index_len);
    if (rc < 0)
        return rc;
    if (!state->at_start)
        return brc_buf_append(dst, scratch->stored.data, index_len, err);
    if (index_len > 0)
        memcpy(dst->data, scratch->stored.data, index_len);
    return BRC_OK;
}

static int shard_encode(void *ctx, const void *opaque, void *opaque_scratch, brc_span src,
                        brc_buf *dst, brc_error *err)
{
    (void)ctx;
    const struct shard_state *state = opaque;
    uint32_t *offsets = NULL;

    if (state->item == 0) {
        int rc = brc_codec_new_index(&offsets, state->cut.elements, src, err);
        if (rc < 0)
            return rc;
    }
    int rc = shard_encode_all(state, opaque_scratch, src, offsets, dst, err);
    free(offsets);
    return rc;
}

/* ---- decoding -------------------------------- */

/* Finds the bytes of one entry; data is NULL if the inner chunk is absent. */
static int shard_find(const struct shard_state *state, const struct brc_nested_scratch *scratch,
                      brc_span src, uint64_t number, brc_span *out, brc_error *err)
{
    const uint8_t *entry = scratch->head.data + number * SHARD_ENTRY;
    uint64_t offset = brc_codec_load(entry, 8), len = brc_codec_load(entry + 8, 8);
    uint64_t first = state->at_start ? state->index_len : 0;
    uint64_t end = state->at_start ? src.len : src.len - state->index_len;

    *out = (brc_span){ NULL, 0 };
    if (offset == SHARD_MISSING && len == SHARD_MISSING)
        return BRC_OK;
    if (offset == SHARD_MISSING || len == SHARD_MISSING)
        return brc_fail(err, BRC_ECORRUPT,
                        "inner chunk %llu is marked as absent in one half of its entry",
                        (unsigned long long)number);
    if (offset > src.len || len > src.len - offset ||
        (len > 0 && (offset < first || offset + len > end)))
        return brc_fail(err, BRC_ECORRUPT,
                        "inner chunk %llu should be %llu bytes at %llu, which is not inside the "
                        "value of %zu bytes and outside its index",
                        (unsigned long long)number, (unsigned long long)len,
                        (unsigned long long)offset, src.len);
    *out = (brc_span){ src.data + offset, (size_t)len };
    return BRC_OK;
}

static int shard_decode_index(const struct shard_state *state, struct brc_nested_scratch *scratch,
                              brc_span src, brc_error *err)
{
    size_t index_len = (size_t)state->index_len;

    if (src.len < state->index_len)
        return brc_fail(err, BRC_ECORRUPT, "%zu bytes cannot hold the index of %llu", src.len,
                        (unsigned long long)state->index_len);
    brc_span index = { src.data + (state->at_start ? 0 : src.len - index_len), index_len };
    scratch->head.len = 0;
    int rc = brc_buf_reserve(&scratch->head, (size_t)state->cut.n * SHARD_ENTRY + 1, err);
    if (rc == BRC_OK)
        rc = brc_chain_decode(state->index, scratch->chains, index, NULL, &scratch->head, err);
    if (rc < 0)
        brc_context(err, "the index");
    return rc;
}

static int shard_no_fill(uint64_t number, brc_error *err)
{
    return brc_fail(err, BRC_EUNSUPPORTED,
                    "inner chunk %llu is absent, and the codecs before the shard give no "
                    "fill value",
                    (unsigned long long)number);
}

/* Decodes one inner chunk into `out`, which is empty. box is a box of the shard, of which the
 * inner chunk's part is decoded; NULL decodes the whole inner chunk. */
static int shard_decode_chunk(const struct shard_state *state, struct brc_nested_scratch *scratch,
                              brc_span stored, uint64_t number, const brc_box *box, brc_buf *out,
                              brc_error *err)
{
    brc_box inner = BRC_BOX_INIT;
    int rc;

    if (box != NULL) {
        brc_shard_inner_box(&state->cut, number, box, &inner);
        rc = brc_chain_decode(state->inner, scratch->chains, stored, &inner, out, err);
    } else {
        rc = brc_chain_decode(state->inner, scratch->chains, stored, NULL, out, err);
    }

    if (rc < 0)
        brc_context(err, "inner chunk %llu", (unsigned long long)number);
    return rc;
}

/* Fills n > 0 elements: copies the fill value once, then doubles the filled part. */
static void shard_repeat(uint8_t *to, const brc_buf *fill, uint64_t n)
{
    size_t total = (size_t)n * fill->len;

    memcpy(to, fill->data, fill->len);
    for (size_t done = fill->len; done < total;) {
        size_t more = done < total - done ? done : total - done;
        memcpy(to + done, to, more);
        done += more;
    }
}

/* Decodes one inner chunk of elements of a fixed length to its place in `to`. */
static int shard_place(const struct shard_state *state, struct brc_nested_scratch *scratch,
                       brc_span stored, uint64_t number, const brc_box *box, uint8_t *to,
                       brc_error *err)
{
    struct brc_shard_walk walk;
    const uint8_t *from = NULL;

    if (stored.data == NULL && state->fill.len != state->item)
        return shard_no_fill(number, err);
    brc_shard_walk_start(&walk, &state->cut, number);
    size_t run = (size_t)walk.run * state->item;
    if (stored.data != NULL && walk.run == state->cut.inner_elements) { /* in one piece  */
        brc_buf into = { sizeof(into), to + walk.at * state->item, 0, run, 0, BRC_BUF_FIXED, 0 };
        return shard_decode_chunk(state, scratch, stored, number, box, &into, err);
    }
    if (stored.data != NULL) {
        scratch->plain.len = 0;
        int rc = shard_decode_chunk(state, scratch, stored, number, box, &scratch->plain, err);
        if (rc < 0)
            return rc;
        from = scratch->plain.data;
    }
    do {
        if (from == NULL) {
            shard_repeat(to + walk.at * state->item, &state->fill, walk.run);
        } else {
            memcpy(to + walk.at * state->item, from, run);
            from += run;
        }
    } while (brc_shard_walk_next(&walk));
    return BRC_OK;
}

static int shard_decode_fixed(const struct shard_state *state, struct brc_nested_scratch *scratch,
                              brc_span src, brc_buf *dst, brc_error *err)
{
    int rc = brc_buf_reserve(dst, (size_t)state->len, err);

    for (uint64_t i = 0; i < state->cut.n && rc == BRC_OK; i++) {
        brc_span stored;
        rc = shard_find(state, scratch, src, i, &stored, err);
        if (rc == BRC_OK)
            rc = shard_place(state, scratch, stored, i, NULL, dst->data + dst->len, err);
    }
    if (rc == BRC_OK)
        dst->len += (size_t)state->len;
    return rc;
}

static int shard_decode_box(void *ctx, const void *opaque, void *scratch, brc_span src,
                            const brc_box *box, brc_buf *dst, brc_error *err)
{
    (void)ctx;
    const struct shard_state *state = opaque;
    struct brc_shard_met met;
    int rc = shard_decode_index(state, scratch, src, err);

    if (rc == BRC_OK)
        rc = brc_buf_reserve(dst, (size_t)state->len, err);
    if (rc < 0)
        return rc;
    brc_shard_met_start(&met, &state->cut, box);
    do {
        uint64_t number = brc_shard_met_number(&met, &state->cut);
        brc_span stored;
        rc = shard_find(state, scratch, src, number, &stored, err);
        if (rc == BRC_OK)
            rc = shard_place(state, scratch, stored, number, box, dst->data + dst->len, err);
    } while (rc == BRC_OK && brc_shard_met_next(&met, &state->cut));
    if (rc == BRC_OK)
        dst->len += (size_t)state->len;
    return rc;
}

/* The place of an element of variable length depends on all elements before it, so all inner
 * chunks are decoded one after the other, and their elements are then copied in the shard's
 * order. */
struct shard_parts {
    brc_buf bytes; /* inner chunks' elements; the fill value comes first       */
    uint32_t *at;  /* offset in `bytes` of each element of the shard           */
};

static int shard_add_part(const struct shard_state *state, struct brc_nested_scratch *scratch,
                          brc_span stored, uint64_t number, struct shard_parts *parts,
                          brc_error *err)
{
    struct brc_shard_walk walk;
    size_t at = stored.data != NULL ? parts->bytes.len : 0;
    int rc = BRC_OK;

    if (stored.data == NULL && state->fill.len == 0)
        return shard_no_fill(number, err);
    if (stored.data != NULL) {
        scratch->plain.len = 0;
        rc = shard_decode_chunk(state, scratch, stored, number, NULL, &scratch->plain, err);
        if (rc == BRC_OK)
            rc = brc_buf_append(&parts->bytes, scratch->plain.data, scratch->plain.len, err);
        if (rc < 0)
            return rc;
    }
    /* The array->bytes codec checked the elements that it made, but the codecs between it and
     * the array may have changed them since. */
    size_t end = parts->bytes.len;
    brc_shard_walk_start(&walk, &state->cut, number);
    do {
        for (uint64_t i = 0; i < walk.run; i++) {
            parts->at[walk.at + i] = (uint32_t)at;
            if (stored.data == NULL)
                continue;
            uint64_t len = end - at >= 4 ? brc_codec_load(parts->bytes.data + at, 4) : UINT64_MAX;
            if (end - at < 4 || len > end - at - 4)
                return brc_fail(err, BRC_ECORRUPT, "inner chunk %llu ends inside an element",
                                (unsigned long long)number);
            at += 4 + (size_t)len;
        }
    } while (brc_shard_walk_next(&walk));
    if (stored.data != NULL && at != end)
        return brc_fail(err, BRC_ECORRUPT, "inner chunk %llu has bytes after its elements",
                        (unsigned long long)number);
    return BRC_OK;
}

static int shard_decode_parts(const struct shard_state *state, struct brc_nested_scratch *scratch,
                              brc_span src, struct shard_parts *parts, brc_buf *dst, brc_error *err)
{
    int rc = brc_buf_append(&parts->bytes, state->fill.data, state->fill.len, err);

    parts->bytes.limit =
        dst->limit > 0 && dst->limit < UINT32_MAX / 2 ? dst->limit + state->fill.len : UINT32_MAX;
    for (uint64_t i = 0; i < state->cut.n && rc == BRC_OK; i++) {
        brc_span stored;
        rc = shard_find(state, scratch, src, i, &stored, err);
        if (rc == BRC_OK)
            rc = shard_add_part(state, scratch, stored, i, parts, err);
    }
    for (uint64_t i = 0; i < state->cut.elements && rc == BRC_OK; i++) {
        const uint8_t *from = parts->bytes.data + parts->at[i];
        rc = brc_buf_append(dst, from, 4 + (size_t)brc_codec_load(from, 4), err);
    }
    return rc;
}

static int shard_decode_varying(const struct shard_state *state, struct brc_nested_scratch *scratch,
                                brc_span src, brc_buf *dst, brc_error *err)
{
    struct shard_parts parts = { BRC_BUF_INIT, NULL };

    if (state->cut.elements > UINT32_MAX)
        return brc_fail(err, BRC_ELIMIT, "the shard has too many elements");
    parts.at = malloc(((size_t)state->cut.elements + 1) * sizeof(*parts.at));
    if (parts.at == NULL)
        return brc_fail(err, BRC_ENOMEM, "out of memory");
    int rc = shard_decode_parts(state, scratch, src, &parts, dst, err);
    brc_buf_dispose(&parts.bytes);
    free(parts.at);
    return rc;
}

static int shard_decode(void *ctx, const void *opaque, void *scratch, brc_span src, brc_buf *dst,
                        brc_error *err)
{
    (void)ctx;
    const struct shard_state *state = opaque;
    int rc = shard_decode_index(state, scratch, src, err);

    if (rc < 0)
        return rc;
    return state->item == 0 ? shard_decode_varying(state, scratch, src, dst, err)
                            : shard_decode_fixed(state, scratch, src, dst, err);
}

int brc_codec_sharding_register(brc_registry *reg, brc_error *err)
{
    static const brc_codec_spec spec = {
        .size = sizeof(spec),
        .name = "sharding_indexed",
        .kind = BRC_ARRAY_TO_BYTES,
        .flags = BRC_CODEC_NEEDS_FILL,
        .open = shard_open,
        .close = shard_close,
        .write_config = shard_write_config,
    };
    static const brc_codec_impl impl = {
        .size = sizeof(impl),
        .spec = "sharding_indexed",
        .name = "portable",
        .scratch_new = brc_codec_nested_scratch_new,
        .scratch_free = brc_codec_nested_scratch_free,
        .encode = shard_encode,
        .decode = shard_decode,
        .decode_box = shard_decode_box,
    };

    return brc_codec_add(reg, &spec, &impl, err);
}
