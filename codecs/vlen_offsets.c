/*
 * "zarrs.vlen": elements of variable length, with their offsets and their bytes apart.
 *
 *     | index's length, uint64 | index | bytes |      index_location "start"
 *     | bytes | index | index's length, uint64 |      index_location "end"
 *
 * The index is a chunk of n + 1 offsets of type index_data_type, encoded by index_codecs:
 * element i is at offset[i] up to but not including offset[i + 1]. The bytes of all elements
 * are one array of uint8, encoded by data_codecs; no bytes if all elements are empty. This is
 * the layout of zarrs: codec.zarrs.dev, "vlen".
 *
 * The length of the array of bytes differs from chunk to chunk, so the codec opens a new
 * chain for each chunk.
 */
#include "builtin.h"
#include "lib/codec_help.h"

#include <stdlib.h>
#include <string.h>

enum { OFFSETS_HEADER = 8 };

struct offsets_codec {
    uint64_t n;  /* elements of the chunk                             */
    int is_text; /* elements must be UTF-8                            */
    int at_end;  /* where the index is                                */
    brc_dtype *offset_type, *byte_type;
    brc_chain *index, *data; /* data is opened for the longest chunk           */
};

/* ---- specification ------------------------------------------------------------------ */

static void offsets_close(void *ctx, void *opaque)
{
    (void)ctx;
    struct offsets_codec *state = opaque;

    brc_chain_free(state->index);
    brc_chain_free(state->data);
    brc_dtype_free(state->offset_type);
    brc_dtype_free(state->byte_type);
    free(state);
}

/* Opens one of the two chains. What is lost in an index or in a text cannot be read again. */
static int offsets_open_chain(brc_chain **out, const brc_proto *in, const brc_json *config,
                              const char *member, uint64_t n, const brc_dtype *type, brc_error *err)
{
    static const uint8_t zeros[8];
    int rc = brc_chain_open(out, in->registry, brc_json_member(config, member), 1, &n, type,
                            (brc_span){ zeros, type->item_size }, err);

    if (rc == BRC_OK && (brc_chain_describe(*out)->flags & BRC_CODEC_LOSSY) != 0)
        rc = brc_fail(err, BRC_EINVAL, "offsets and bytes must be stored without loss");
    if (rc < 0)
        brc_context(err, "\"%s\"", member);
    return rc;
}

static int offsets_check_type(struct offsets_codec *state, const brc_proto *in, brc_error *err)
{
    state->is_text = in->dtype->klass == BRC_CLASS_STRING;
    if (in->dtype->klass == BRC_CLASS_OPTIONAL)
        return brc_fail(err, BRC_EINVAL,
                        "elements of %s may be missing: use the codec \"zarrs.optional\"",
                        in->dtype->name);
    if (in->dtype->item_size != 0)
        return brc_fail(err, BRC_EINVAL, "elements of %s have a fixed length: use \"bytes\"",
                        in->dtype->name);
    return brc_codec_count(&state->n, in, err);
}

static int offsets_read_config(struct offsets_codec *state, const brc_json *config,
                               const brc_proto *in, brc_error *err)
{
    static const char *const members[] = { "index_codecs", "data_codecs", "index_data_type",
                                           "index_location" };
    static const char *const types[] = { "uint32", "uint64" };
    static const char *const places[] = { "start", "end" };
    const brc_json *place = brc_json_member(config, "index_location");
    int rc = config != NULL ? brc_json_allow(config, members, 4, err) : BRC_OK;

    if (rc == BRC_OK)
        rc = offsets_check_type(state, in, err);
    if (rc < 0)
        return rc;
    int type = brc_json_choice(brc_json_member(config, "index_data_type"), types, 2);
    if (type < 0)
        return brc_fail(err, BRC_EINVAL, "\"index_data_type\" must be \"uint32\" or \"uint64\"");
    state->at_end = place != NULL ? brc_json_choice(place, places, 2) : 0;
    if (state->at_end < 0)
        return brc_fail(err, BRC_EINVAL, "\"index_location\" must be \"start\" or \"end\"");
    rc = brc_dtype_open(&state->offset_type, in->registry, NULL, types[type], err);
    if (rc == BRC_OK)
        rc = brc_dtype_open(&state->byte_type, in->registry, NULL, "uint8", err);
    if (rc == BRC_OK)
        rc = offsets_open_chain(&state->index, in, config, "index_codecs", state->n + 1,
                                state->offset_type, err);
    if (rc == BRC_OK)
        rc = offsets_open_chain(&state->data, in, config, "data_codecs", in->max_len,
                                state->byte_type, err);
    return rc;
}

static int offsets_open(void *ctx, void **out_state, const brc_json *config, const brc_proto *in,
                        brc_proto *out, int *identity, brc_error *err)
{
    (void)identity;
    struct offsets_codec *state = calloc(1, sizeof(*state));

    if (state == NULL)
        return brc_fail(err, BRC_ENOMEM, "out of memory");
    int rc = offsets_read_config(state, config, in, err);
    if (rc < 0) {
        offsets_close(ctx, state);
        return rc;
    }
    const brc_chain_info *index = brc_chain_describe(state->index);
    const brc_chain_info *data = brc_chain_describe(state->data);
    out->ndim = -1;
    out->len = BRC_LEN_VARIES;
    out->max_len =
        brc_codec_add_up(OFFSETS_HEADER, brc_codec_add_up(index->encoded_max, data->encoded_max));
    *out_state = state;
    return BRC_OK;
}

static int offsets_write_config(void *ctx, const void *opaque, brc_buf *out, brc_error *err)
{
    (void)ctx;
    const struct offsets_codec *state = opaque;
    int rc = brc_buf_printf(out, err, "{\"index_codecs\":");

    if (rc == BRC_OK)
        rc = brc_chain_write(state->index, out, err);
    if (rc == BRC_OK)
        rc = brc_buf_printf(out, err, ",\"data_codecs\":");
    if (rc == BRC_OK)
        rc = brc_chain_write(state->data, out, err);
    return rc < 0
               ? rc
               : brc_buf_printf(out, err, ",\"index_data_type\":\"%s\",\"index_location\":\"%s\"}",
                                state->offset_type->name, state->at_end ? "end" : "start");
}

/* ---- encoding ----------------------------------------------------------------------- */

/* Copies the bytes of the elements to `plain` and their offsets to `head`. */
static int offsets_split(const struct offsets_codec *state, brc_span src,
                         struct brc_nested_scratch *scratch, brc_error *err)
{
    size_t size = state->offset_type->item_size;
    uint32_t *starts;

    scratch->head.len = scratch->plain.len = 0;
    int rc = brc_codec_new_index(&starts, state->n, src, err);
    if (rc < 0)
        return rc;
    rc = brc_buf_reserve(&scratch->head, ((size_t)state->n + 1) * size, err);
    if (rc == BRC_OK)
        rc = brc_buf_reserve(&scratch->plain, src.len + 1, err);
    for (uint64_t i = 0; i <= state->n && rc == BRC_OK; i++) {
        brc_codec_store(scratch->head.data + i * size, size, scratch->plain.len);
        if (i == state->n)
            break;
        const uint8_t *element = src.data + starts[i] + 4;
        size_t len = starts[i + 1] - starts[i] - 4;
        if (state->is_text && !brc_codec_is_utf8(element, len))
            rc = brc_fail(err, BRC_EINVAL, "element %llu is not UTF-8", (unsigned long long)i);
        else
            rc = brc_buf_append(&scratch->plain, element, len, err);
    }
    scratch->head.len = ((size_t)state->n + 1) * size;
    free(starts);
    return rc;
}

static int offsets_put_data(const struct offsets_codec *state, struct brc_nested_scratch *scratch,
                            brc_buf *dst, brc_error *err)
{
    uint64_t len = scratch->plain.len;
    brc_chain *chain;

    if (len == 0)
        return BRC_OK;
    int rc = brc_chain_open_like(&chain, state->data, 1, &len, err);
    if (rc < 0)
        return rc;
    scratch->stored.len = 0;
    rc = brc_chain_encode(chain, scratch->chains, (brc_span){ scratch->plain.data, (size_t)len },
                          &scratch->stored, err);
    brc_chain_free(chain);
    return rc < 0 ? rc : brc_buf_append(dst, scratch->stored.data, scratch->stored.len, err);
}

static int offsets_put_index(const struct offsets_codec *state, struct brc_nested_scratch *scratch,
                             brc_buf *dst, brc_error *err)
{
    uint8_t len[OFFSETS_HEADER];

    scratch->stored.len = 0;
    int rc = brc_chain_encode(state->index, scratch->chains,
                              (brc_span){ scratch->head.data, scratch->head.len }, &scratch->stored,
                              err);
    brc_codec_store(len, OFFSETS_HEADER, scratch->stored.len);
    if (rc == BRC_OK && !state->at_end)
        rc = brc_buf_append(dst, len, OFFSETS_HEADER, err);
    if (rc == BRC_OK)
        rc = brc_buf_append(dst, scratch->stored.data, scratch->stored.len, err);
    if (rc == BRC_OK && state->at_end)
        rc = brc_buf_append(dst, len, OFFSETS_HEADER, err);
    return rc;
}

static int offsets_encode(void *ctx, const void *opaque, void *opaque_scratch, brc_span src,
                          brc_buf *dst, brc_error *err)
{
    (void)ctx;
    const struct offsets_codec *state = opaque;
    struct brc_nested_scratch *scratch = opaque_scratch;
    int rc = offsets_split(state, src, scratch, err);

    if (rc == BRC_ECORRUPT) { /* the elements come from the caller: not corrupt   */
        rc = BRC_EINVAL;
        if (err != NULL)
            err->code = rc;
    }
    if (rc == BRC_OK && state->at_end)
        rc = offsets_put_data(state, scratch, dst, err);
    if (rc == BRC_OK)
        rc = offsets_put_index(state, scratch, dst, err);
    if (rc == BRC_OK && !state->at_end)
        rc = offsets_put_data(state, scratch, dst, err);
    return rc;
}

/* ---- decoding ----------------------------------------------------------------------- */

/* Cuts the chunk into the stored index and the stored bytes. */
static int offsets_cut(const struct offsets_codec *state, brc_span src, brc_span *index,
                       brc_span *data, brc_error *err)
{
    if (src.len < OFFSETS_HEADER)
        return brc_fail(err, BRC_ECORRUPT, "%zu bytes cannot hold the length of the index",
                        src.len);
    size_t rest = src.len - OFFSETS_HEADER;
    const uint8_t *header = state->at_end ? src.data + rest : src.data;
    uint64_t len = brc_codec_load(header, OFFSETS_HEADER);
    if (len > rest)
        return brc_fail(err, BRC_ECORRUPT, "the index says that it has %llu bytes, of %zu",
                        (unsigned long long)len, rest);
    const uint8_t *body = state->at_end ? src.data : src.data + OFFSETS_HEADER;
    size_t other = rest - (size_t)len;
    *index = (brc_span){ state->at_end ? body + other : body, (size_t)len };
    *data = (brc_span){ state->at_end ? body : body + len, other };
    return BRC_OK;
}

/* Checks that the offsets begin at 0, never fall, and end at no more than `most`. */
static int offsets_check(const struct offsets_codec *state, const brc_buf *index, uint64_t most,
                         uint64_t *end, brc_error *err)
{
    size_t size = state->offset_type->item_size;
    uint64_t last = 0;

    for (uint64_t i = 0; i <= state->n; i++) {
        uint64_t offset = brc_codec_load(index->data + i * size, size);
        if (offset < last || (i == 0 && offset != 0))
            return brc_fail(err, BRC_ECORRUPT, "offset %llu of the index is %llu, after %llu",
                            (unsigned long long)i, (unsigned long long)offset,
                            (unsigned long long)last);
        last = offset;
    }
    if (last > most)
        return brc_fail(err, BRC_ELIMIT, "the elements have %llu bytes, more than %llu",
                        (unsigned long long)last, (unsigned long long)most);
    *end = last;
    return BRC_OK;
}

static int offsets_take_data(const struct offsets_codec *state, struct brc_nested_scratch *scratch,
                             brc_span stored, uint64_t len, brc_error *err)
{
    brc_chain *chain;

    scratch->plain.len = 0;
    if (len == 0)
        return stored.len == 0
                   ? BRC_OK
                   : brc_fail(err, BRC_ECORRUPT, "%zu bytes are stored, but all elements are empty",
                              stored.len);
    int rc = brc_chain_open_like(&chain, state->data, 1, &len, err);
    if (rc == BRC_EINVAL) { /* this length, which the chunk says, does not suit the codecs */
        rc = BRC_ECORRUPT;
        if (err != NULL)
            err->code = rc;
    }
    if (rc < 0)
        return rc;
    rc = brc_chain_decode(chain, scratch->chains, stored, NULL, &scratch->plain, err);
    brc_chain_free(chain);
    if (rc < 0)
        brc_context(err, "the elements");
    return rc;
}

static int offsets_join(const struct offsets_codec *state, const struct brc_nested_scratch *scratch,
                        brc_buf *dst, brc_error *err)
{
    size_t size = state->offset_type->item_size;
    uint64_t from = 0;
    uint8_t head[4];
    int rc = brc_buf_reserve(dst, (size_t)state->n * 4 + scratch->plain.len, err);

    for (uint64_t i = 0; i < state->n && rc == BRC_OK; i++) {
        uint64_t to = brc_codec_load(scratch->head.data + (i + 1) * size, size);
        const uint8_t *element = scratch->plain.data + from;
        size_t len = (size_t)(to - from);
        if (state->is_text && !brc_codec_is_utf8(element, len))
            return brc_fail(err, BRC_ECORRUPT, "element %llu is not UTF-8", (unsigned long long)i);
        brc_codec_store(head, 4, len);
        rc = brc_buf_append(dst, head, 4, err);
        if (rc == BRC_OK && len > 0)
            rc = brc_buf_append(dst, element, len, err);
        from = to;
    }
    return rc;
}

static int offsets_decode(void *ctx, const void *opaque, void *opaque_scratch, brc_span src,
                          brc_buf *dst, brc_error *err)
{
    (void)ctx;
    const struct offsets_codec *state = opaque;
    struct brc_nested_scratch *scratch = opaque_scratch;
    uint64_t most = dst->limit > 0 ? dst->limit : UINT32_MAX, lengths = state->n * 4, end = 0;
    brc_span index, data;
    int rc = offsets_cut(state, src, &index, &data, err);

    if (rc < 0)
        return rc;
    if (lengths > most)
        return brc_fail(err, BRC_ELIMIT, "the chunk has too many elements");
    scratch->head.len = 0;
    rc = brc_chain_decode(state->index, scratch->chains, index, NULL, &scratch->head, err);
    if (rc < 0) {
        brc_context(err, "the index");
        return rc;
    }
    rc = offsets_check(state, &scratch->head, most - lengths, &end, err);
    if (rc == BRC_OK)
        rc = offsets_take_data(state, scratch, data, end, err);
    return rc < 0 ? rc : offsets_join(state, scratch, dst, err);
}

int brc_codec_vlen_offsets_register(brc_registry *reg, brc_error *err)
{
    static const brc_codec_spec spec = {
        .size = sizeof(spec),
        .name = "zarrs.vlen",
        .kind = BRC_ARRAY_TO_BYTES,
        .open = offsets_open,
        .close = offsets_close,
        .write_config = offsets_write_config,
    };
    static const brc_codec_impl impl = {
        .size = sizeof(impl),
        .spec = "zarrs.vlen",
        .name = "portable",
        .scratch_new = brc_codec_nested_scratch_new,
        .scratch_free = brc_codec_nested_scratch_free,
        .encode = offsets_encode,
        .decode = offsets_decode,
    };
    int rc = brc_codec_add(reg, &spec, &impl, err);

    /* its former name in zarrs */
    return rc < 0 ? rc
                  : brc_registry_add_alias(reg, "https://codec.zarrs.dev/array_to_bytes/vlen",
                                           "zarrs.vlen", err);
}
