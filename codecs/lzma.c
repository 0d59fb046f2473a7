/*
 * "numcodecs.lzma": data compressed by liblzma, in one of three containers.
 *
 *     format 1  .xz: names its filters and its checksum; several streams in a row
 *     format 2  .lzma: one LZMA1 stream behind 13 bytes of header
 *     format 3  raw: only the data, so the configuration must have the filters
 *
 * A filter is {"id": number} with options as Python's module lzma names them.
 */
#include "builtin.h"
#include "lib/codec_help.h"

#include <lzma.h>
#include <stdlib.h>
#include <string.h>

enum { LZMA_XZ = 1, LZMA_ALONE_FILE = 2, LZMA_RAW_DATA = 3 };
#define LZMA_MEMORY ((uint64_t)512 << 20) /* most that a stored stream may ask for */

/* One filter of a list. liblzma needs another structure for each kind of filter. */
struct lzma_one_filter {
    lzma_vli id;
    lzma_options_lzma lzma;
    lzma_options_delta delta;
    lzma_options_bcj bcj;
};

struct lzma_state {
    int format;
    lzma_check check;
    uint32_t preset;
    uint64_t decoded; /* exact length, or BRC_LEN_VARIES                         */
    size_t nfilters;
    struct lzma_one_filter filters[LZMA_FILTERS_MAX];
    brc_buf config; /* configuration as given, JSON                              */
};

/* ---- filters ------------------------------------------------------------------------ */

static int lzma_read_number(const brc_json *object, const char *name, uint64_t most, uint32_t *out,
                            brc_error *err)
{
    const brc_json *value = brc_json_member(object, name);
    uint64_t number = 0;

    if (value == NULL)
        return BRC_OK;
    if (!brc_json_uint(value, most, &number))
        return brc_fail(err, BRC_EINVAL, "\"%s\" must be an integer from 0 to %llu", name,
                        (unsigned long long)most);
    *out = (uint32_t)number;
    return BRC_OK;
}

static int lzma_read_lzma_options(lzma_options_lzma *out, const brc_json *filter, brc_error *err)
{
    static const char *const members[] = { "id", "preset", "dict_size", "lc",    "lp",
                                           "pb", "mode",   "nice_len",  "depth", "mf" };
    uint32_t preset = LZMA_PRESET_DEFAULT;
    int rc = brc_json_allow(filter, members, 10, err);

    if (rc == BRC_OK)
        rc = lzma_read_number(filter, "preset", UINT32_MAX, &preset, err);
    if (rc == BRC_OK && lzma_lzma_preset(out, preset))
        rc = brc_fail(err, BRC_EINVAL, "liblzma has no preset %u", preset);
    uint32_t mode = out->mode, mf = out->mf;
    if (rc == BRC_OK)
        rc = lzma_read_number(filter, "dict_size", UINT32_MAX, &out->dict_size, err);
    if (rc == BRC_OK)
        rc = lzma_read_number(filter, "lc", LZMA_LCLP_MAX, &out->lc, err);
    if (rc == BRC_OK)
        rc = lzma_read_number(filter, "lp", LZMA_LCLP_MAX, &out->lp, err);
    if (rc == BRC_OK)
        rc = lzma_read_number(filter, "pb", LZMA_PB_MAX, &out->pb, err);
    if (rc == BRC_OK)
        rc = lzma_read_number(filter, "mode", 2, &mode, err);
    if (rc == BRC_OK)
        rc = lzma_read_number(filter, "nice_len", 273, &out->nice_len, err);
    if (rc == BRC_OK)
        rc = lzma_read_number(filter, "depth", UINT32_MAX, &out->depth, err);
    if (rc == BRC_OK)
        rc = lzma_read_number(filter, "mf", 255, &mf, err);
    out->mode = (lzma_mode)mode;
    out->mf = (lzma_match_finder)mf;
    return rc;
}

static int lzma_read_filter(struct lzma_one_filter *out, const brc_json *filter, brc_error *err)
{
    static const char *const delta[] = { "id", "dist" };
    static const char *const bcj[] = { "id", "start_offset" };
    uint64_t id = 0;

    if (!brc_json_uint(brc_json_member(filter, "id"), LZMA_VLI_MAX, &id))
        return brc_fail(err, BRC_EINVAL, "\"filters\" must be a list of objects with an \"id\"");
    out->id = id;
    if (id == LZMA_FILTER_LZMA2 || id == LZMA_FILTER_LZMA1)
        return lzma_read_lzma_options(&out->lzma, filter, err);
    if (id == LZMA_FILTER_DELTA) {
        int rc = brc_json_allow(filter, delta, 2, err);
        out->delta.type = LZMA_DELTA_TYPE_BYTE;
        out->delta.dist = LZMA_DELTA_DIST_MIN;
        return rc < 0
                   ? rc
                   : lzma_read_number(filter, "dist", LZMA_DELTA_DIST_MAX, &out->delta.dist, err);
    }
    if (!lzma_filter_decoder_is_supported(id))
        return brc_fail(err, BRC_EUNSUPPORTED, "this build's liblzma has no filter %llu",
                        (unsigned long long)id);
    int rc = brc_json_allow(filter, bcj, 2, err);
    return rc < 0
               ? rc
               : lzma_read_number(filter, "start_offset", UINT32_MAX, &out->bcj.start_offset, err);
}

/* Makes liblzma's own list, which points into the state and is needed only to set up a coder. */
static void lzma_list_filters(lzma_filter *out, const struct lzma_state *state)
{
    for (size_t i = 0; i < state->nfilters; i++) {
        const struct lzma_one_filter *filter = &state->filters[i];
        const void *options = &filter->bcj;
        if (filter->id == LZMA_FILTER_LZMA2 || filter->id == LZMA_FILTER_LZMA1)
            options = &filter->lzma;
        else if (filter->id == LZMA_FILTER_DELTA)
            options = &filter->delta;
        out[i] = (lzma_filter){ filter->id, (void *)(uintptr_t)options };
    }
    out[state->nfilters] = (lzma_filter){ LZMA_VLI_UNKNOWN, NULL };
}

static int lzma_read_filters(struct lzma_state *state, const brc_json *list, brc_error *err)
{
    lzma_filter filters[LZMA_FILTERS_MAX + 1];
    int rc = BRC_OK;

    if (brc_json_kind(list) == BRC_JSON_ABSENT || brc_json_kind(list) == BRC_JSON_NULL)
        return state->format != LZMA_RAW_DATA
                   ? BRC_OK
                   : brc_fail(err, BRC_EINVAL, "format 3 needs \"filters\": a list");
    if (brc_json_kind(list) != BRC_JSON_ARRAY || brc_json_count(list) < 1 ||
        brc_json_count(list) > LZMA_FILTERS_MAX)
        return brc_fail(err, BRC_EINVAL, "\"filters\" must be a list of 1 to %d filters",
                        LZMA_FILTERS_MAX);
    state->nfilters = brc_json_count(list);
    for (size_t i = 0; i < state->nfilters && rc == BRC_OK; i++)
        rc = lzma_read_filter(&state->filters[i], brc_json_item(list, i), err);
    if (rc < 0)
        return rc;
    lzma_list_filters(filters, state);
    uint64_t memory = lzma_raw_decoder_memusage(filters);
    if (memory == UINT64_MAX)
        return brc_fail(err, BRC_EINVAL, "\"filters\": liblzma does not take this list");
    if (memory > LZMA_MEMORY)
        return brc_fail(err, BRC_ELIMIT, "\"filters\" need %llu bytes of memory to decode",
                        (unsigned long long)memory);
    return BRC_OK;
}

/* ---- specification ------------------------------------------------------------------ */

static int lzma_read_config(struct lzma_state *state, const brc_json *config, brc_error *err)
{
    static const char *const members[] = { "format", "check", "preset", "filters" };
    const brc_json *format = brc_json_member(config, "format");
    const brc_json *check = brc_json_member(config, "check");
    const brc_json *preset = brc_json_member(config, "preset");
    int64_t number = LZMA_XZ;
    uint64_t level = LZMA_PRESET_DEFAULT;
    int rc = config != NULL ? brc_json_allow(config, members, 4, err) : BRC_OK;

    if (rc < 0)
        return rc;
    if (format != NULL && !brc_json_int(format, LZMA_XZ, LZMA_RAW_DATA, &number))
        return brc_fail(err, BRC_EINVAL,
                        "\"format\" must be 1 (xz), 2 (lzma) or 3 (raw, with filters)");
    state->format = (int)number;
    number = -1;
    if (check != NULL && !brc_json_int(check, -1, LZMA_CHECK_ID_MAX, &number))
        return brc_fail(err, BRC_EINVAL, "\"check\" must be an integer from -1 to %d",
                        LZMA_CHECK_ID_MAX);
    state->check = number < 0 ? LZMA_CHECK_CRC64 : (lzma_check)number;
    if (preset != NULL && brc_json_kind(preset) != BRC_JSON_NULL &&
        !brc_json_uint(preset, UINT32_MAX, &level))
        return brc_fail(err, BRC_EINVAL, "\"preset\" must be null or an integer from 0 to 9");
    lzma_options_lzma unused;
    if (lzma_lzma_preset(&unused, (uint32_t)level))
        return brc_fail(err, BRC_EINVAL, "\"preset\": liblzma has no preset %llu",
                        (unsigned long long)level);
    state->preset = (uint32_t)level;
    return lzma_read_filters(state, brc_json_member(config, "filters"), err);
}

static void lzma_close(void *ctx, void *opaque)
{
    (void)ctx;
    struct lzma_state *state = opaque;

    brc_buf_dispose(&state->config);
    free(state);
}

static int lzma_open(void *ctx, void **out_state, const brc_json *config, const brc_proto *in,
                     brc_proto *out, int *identity, brc_error *err)
{
    (void)identity;
    struct lzma_state *state = calloc(1, sizeof(*state));

    if (state == NULL)
        return brc_fail(err, BRC_ENOMEM, "out of memory");
    state->decoded = in->len;
    int rc = lzma_read_config(state, config, err);
    if (rc == BRC_OK && config != NULL)
        rc = brc_json_write(&state->config, config, 0, err);
    if (rc < 0) {
        lzma_close(ctx, state);
        return rc;
    }
    brc_codec_longer(in, out, in->max_len / 8 + (64 << 10), 0);
    *out_state = state;
    return BRC_OK;
}

/* Writes the configuration as given. All readers know the defaults of absent members, so this is
 * the full form. */
static int lzma_write_config(void *ctx, const void *opaque, brc_buf *out, brc_error *err)
{
    (void)ctx;
    const struct lzma_state *state = opaque;

    return brc_buf_append(out, state->config.data, state->config.len, err);
}

/* ---- implementation ----------------------------------------------------------------- */

static int lzma_fail(brc_error *err, lzma_ret result, int code)
{
    switch (result) {
    case LZMA_MEM_ERROR:
        return brc_fail(err, BRC_ENOMEM, "out of memory");
    case LZMA_MEMLIMIT_ERROR:
        return brc_fail(err, BRC_ECORRUPT, "the stream needs more than %llu bytes of memory",
                        (unsigned long long)LZMA_MEMORY);
    case LZMA_FORMAT_ERROR:
        return brc_fail(err, code, "this is not a stream of the configured format");
    case LZMA_OPTIONS_ERROR:
        return brc_fail(err, code == BRC_ECORRUPT ? BRC_EUNSUPPORTED : code,
                        "liblzma does not support the stream's options");
    case LZMA_DATA_ERROR:
        return brc_fail(err, code, "the stream is damaged");
    case LZMA_BUF_ERROR:
        return brc_fail(err, code, "the stream is truncated");
    default:
        return brc_fail(err, code, "liblzma gave %d", (int)result);
    }
}

static lzma_ret lzma_start_encoder(lzma_stream *z, const struct lzma_state *state)
{
    lzma_filter filters[LZMA_FILTERS_MAX + 1];
    lzma_options_lzma preset;

    lzma_list_filters(filters, state);
    if (state->nfilters == 0 && lzma_lzma_preset(&preset, state->preset))
        return LZMA_OPTIONS_ERROR;
    switch (state->format) {
    case LZMA_ALONE_FILE:
        return lzma_alone_encoder(z, state->nfilters == 1 ? filters[0].options : &preset);
    case LZMA_RAW_DATA:
        return lzma_raw_encoder(z, filters);
    default:
        return state->nfilters > 0 ? lzma_stream_encoder(z, filters, state->check)
                                   : lzma_easy_encoder(z, state->preset, state->check);
    }
}

static lzma_ret lzma_start_decoder(lzma_stream *z, const struct lzma_state *state)
{
    lzma_filter filters[LZMA_FILTERS_MAX + 1];

    switch (state->format) {
    case LZMA_ALONE_FILE:
        return lzma_alone_decoder(z, LZMA_MEMORY);
    case LZMA_RAW_DATA:
        lzma_list_filters(filters, state);
        return lzma_raw_decoder(z, filters);
    default:
        return lzma_stream_decoder(z, LZMA_MEMORY, LZMA_CONCATENATED);
    }
}

static int lzma_encode(void *ctx, const void *opaque, void *scratch, brc_span src, brc_buf *dst,
                       brc_error *err)
{
    (void)ctx;
    (void)scratch;
    const struct lzma_state *state = opaque;
    lzma_stream z = LZMA_STREAM_INIT;
    int rc = BRC_OK;

    if (state->format == LZMA_ALONE_FILE && state->nfilters > 0 &&
        (state->nfilters != 1 || state->filters[0].id != LZMA_FILTER_LZMA1))
        return brc_fail(err, BRC_EINVAL, "format 2 takes one filter, LZMA1");
    lzma_ret result = lzma_start_encoder(&z, state);
    z.next_in = src.data;
    z.avail_in = src.len;
    while (rc == BRC_OK && result == LZMA_OK) {
        size_t room = 0;
        rc = brc_codec_make_room(dst, SIZE_MAX, &room, err);
        if (rc == BRC_OK && room == 0)
            rc = brc_buf_reserve(dst, 1, err);
        if (rc < 0)
            break;
        z.next_out = dst->data + dst->len;
        z.avail_out = room;
        result = lzma_code(&z, LZMA_FINISH);
        dst->len += room - z.avail_out;
    }
    if (rc == BRC_OK && result != LZMA_STREAM_END)
        rc = lzma_fail(err, result, BRC_EINVAL);
    lzma_end(&z);
    return rc;
}

static int lzma_run_decoder(lzma_stream *z, size_t goal, int is_raw, brc_buf *dst, brc_error *err)
{
    uint8_t spare; /* output room that only data beyond the limit reach          */
    lzma_ret result = LZMA_OK;

    while (result != LZMA_STREAM_END) {
        size_t room = 0;
        int rc = brc_codec_make_room(dst, goal, &room, err);
        if (rc < 0)
            return rc;
        z->next_out = room > 0 ? dst->data + dst->len : &spare;
        z->avail_out = room > 0 ? room : 1;
        result = lzma_code(z, LZMA_FINISH);
        if (room == 0 && z->avail_out == 0)
            return brc_fail(err, BRC_ECORRUPT, "the stream decodes to more than %zu bytes",
                            dst->len);
        if (room > 0)
            dst->len += room - z->avail_out;
        /* A raw stream may lack its end mark if its decoded length is known. */
        if (result == LZMA_BUF_ERROR && is_raw && z->avail_in == 0 && dst->len == goal)
            return BRC_OK;
        if (result != LZMA_OK && result != LZMA_STREAM_END)
            return lzma_fail(err, result, BRC_ECORRUPT);
    }
    if (z->avail_in > 0)
        return brc_fail(err, BRC_ECORRUPT, "%zu bytes follow the end of the stream", z->avail_in);
    return BRC_OK;
}

static int lzma_decode(void *ctx, const void *opaque, void *scratch, brc_span src, brc_buf *dst,
                       brc_error *err)
{
    (void)ctx;
    (void)scratch;
    const struct lzma_state *state = opaque;
    lzma_stream z = LZMA_STREAM_INIT;
    size_t goal = state->decoded == BRC_LEN_VARIES ? SIZE_MAX : (size_t)state->decoded;

    if (src.len == 0)
        return brc_fail(err, BRC_ECORRUPT, "there is no stream");
    int rc = goal != SIZE_MAX ? brc_buf_reserve(dst, goal, err) : BRC_OK;
    if (rc < 0)
        return rc;
    lzma_ret result = lzma_start_decoder(&z, state);
    z.next_in = src.data;
    z.avail_in = src.len;
    rc = result == LZMA_OK ? lzma_run_decoder(&z, goal, state->format == LZMA_RAW_DATA, dst, err)
                           : lzma_fail(err, result, BRC_EINTERNAL);
    lzma_end(&z);
    return rc;
}

int brc_codec_lzma_register(brc_registry *reg, brc_error *err)
{
    static const brc_codec_spec spec = {
        .size = sizeof(spec),
        .name = "numcodecs.lzma",
        .kind = BRC_BYTES_TO_BYTES,
        .open = lzma_open,
        .close = lzma_close,
        .write_config = lzma_write_config,
    };
    static const brc_codec_impl impl = {
        .size = sizeof(impl),
        .spec = "numcodecs.lzma",
        .name = "liblzma",
        .encode = lzma_encode,
        .decode = lzma_decode,
    };

    return brc_codec_add(reg, &spec, &impl, err);
}
