/*
 * "zfp", "numcodecs.zfpy": arrays of one to four axes, compressed by libzfp.
 *
 * "zfp" is the stream alone: the configuration says how it was made. "numcodecs.zfpy" has zfp's own
 * header before it, and is read as the header says, which must be the chunk's type and shape.
 * A scalar is an array of one element. A chunk without elements has no bytes.
 *
 * zfp computes with 32 and 64 bits. As zarrs does, "zfp" moves integers of 8 and 16 bits into the
 * upper bits of an int32, and takes uint32 and uint64 for int32 and int64. So values from 2^31 or
 * 2^63 on cannot be stored, and zarrs changes them silently; here they are an error.
 *
 * libzfp reads a stream without looking for its end. A stream is therefore decoded from a copy with
 * as many zeros behind as the longest stream of this shape could need, and was cut if libzfp has
 * read any of them.
 *
 * libzfp is loaded when the codec is opened: an array of a machine without it is one whose codecs
 * are not known.
 */
#include "builtin.h"

#if defined(BRC_STATIC) || !__has_include(<zfp.h>)

int brc_codec_zfp_register(brc_registry *reg, brc_error *err)
{
    (void)reg;
    (void)err;
    return BRC_OK; /* src/codec/chain.c says that it is missing */
}

#else

#include "lib/codec_help.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <zfp.h>

enum {
    ZFP_AXES = 4,
    ZFP_BLOCK_BITS = 64, /* at least: flags, exponent and precision of a block      */
    ZFP_WORD = 8,        /* most builds of libzfp read and write words of 64 bits, and Debian's
                               * bytes: streams are whole words, which all can read     */
    ZFP_SPARE = 64       /* bytes that follow the longest stream                    */
};

/* The functions of libzfp that are used, and its size of words, each with its type. */
#define FUNCTIONS(F)                                                                              \
    F(stream_open) F(stream_close) F(stream_rtell) F(zfp_field_alloc) F(zfp_field_free)           \
    F(zfp_field_set_pointer) F(zfp_field_set_type) F(zfp_field_set_size_1d)                       \
    F(zfp_field_set_size_2d) F(zfp_field_set_size_3d) F(zfp_field_set_size_4d)                    \
    F(zfp_field_dimensionality) F(zfp_field_size) F(zfp_field_type) F(zfp_stream_open)            \
    F(zfp_stream_close) F(zfp_stream_rewind) F(zfp_stream_set_bit_stream)                         \
    F(zfp_stream_compression_mode) F(zfp_stream_set_params) F(zfp_stream_set_rate)                \
    F(zfp_stream_set_precision) F(zfp_stream_set_accuracy) F(zfp_stream_set_reversible)           \
    F(zfp_read_header) F(zfp_write_header) F(zfp_compress) F(zfp_decompress) F(stream_word_bits)
#define DECLARE(name) __typeof__(&name) name;
#define NAME(name) #name,

struct zfp_api {
    FUNCTIONS(DECLARE)
};

enum { MODE_EXPERT, MODE_RATE, MODE_PRECISION, MODE_ACCURACY, MODE_REVERSIBLE };

struct zfp_params {
    int mode;
    double number;    /* rate, tolerance                                          */
    unsigned minbits; /* of a block, 0 if that is free: at least that many are there */
    unsigned maxbits, maxprec;
    int minexp;
};

struct zfp_codec {
    struct zfp_api lib;
    int has_header;
    struct zfp_params params;
    zfp_type type;
    const brc_dtype *dtype;
    int is_float, is_unsigned;
    unsigned bits; /* of an element of the array: 8, 16, 32, 64                */
    size_t width;  /* bytes of an element of libzfp                            */
    int axes;
    size_t shape[ZFP_AXES]; /* in C order                                               */
    uint64_t n, blocks;
    brc_buf config;
};

/* ---- libzfp ------------------------------------------------------------------------- */

/* libzfp writes words in the processor's byte order, and files have them in little-endian. */
static int zfp_check_words(const struct zfp_api *lib, brc_error *err)
{
    static const uint16_t one = 1;

    if (*(const uint8_t *)&one == 1 || *lib->stream_word_bits == 8)
        return BRC_OK;
    return brc_fail(err, BRC_EUNSUPPORTED,
                    "this machine's libzfp writes words of %zu bits in big-endian order, which "
                    "nobody else reads: install one with words of 8 bits",
                    *lib->stream_word_bits);
}

static int zfp_load(struct zfp_api *lib, brc_error *err)
{
    static const char *const files[] = { "libzfp.so.1", "libzfp.so.0", "libzfp.1.dylib", NULL };
    static const char *const functions[] = { FUNCTIONS(NAME) NULL };
    const brc_library library = {
        .size = sizeof(library),
        .name = "libzfp",
        .use = "with which chunks are read and written",
        .package = "libzfp1",
        .files = files,
        .functions = functions,
    };
    int rc = brc_library_load(&library, lib, err);

    return rc == BRC_OK ? zfp_check_words(lib, err) : rc;
}

/* ---- configuration ------------------------------------------------------------------ */

static void zfp_codec_close(void *ctx, void *opaque)
{
    (void)ctx;
    struct zfp_codec *state = opaque;

    brc_buf_dispose(&state->config);
    free(state);
}

/* Values of one block: four along each axis. */
static unsigned zfp_values(int axes)
{
    return 1u << (2 * axes);
}

/* Returns the axes by which a rate counts the bits of a block. zarrs, with which "zfp" began,
 * counts as for three axes, however many the array has, and cannot be read otherwise. */
static int zfp_rate_axes(const struct zfp_codec *state)
{
    return state->has_header ? state->axes : 3;
}

static int zfp_check_rate(struct zfp_codec *state, double rate, brc_error *err)
{
    unsigned values = zfp_values(zfp_rate_axes(state));

    if (!(rate > 0) || rate * values > ZFP_MAX_BITS)
        return brc_fail(err, BRC_EINVAL,
                        "\"rate\" must be more than 0 and at most %u bits for each element",
                        ZFP_MAX_BITS / values);
    state->params.minbits = (unsigned)(rate * values) + ZFP_BLOCK_BITS;
    return BRC_OK;
}

static int zfp_check_tolerance(const struct zfp_codec *state, double tolerance, brc_error *err)
{
    if (!state->is_float)
        return brc_fail(err, BRC_EINVAL,
                        "a tolerance is for floats: integers are stored with a precision, with a "
                        "rate, or reversibly");
    if (!(tolerance >= 0) || !isfinite(tolerance))
        return brc_fail(err, BRC_EINVAL, "\"tolerance\" must be a number from 0 on");
    return BRC_OK;
}

/* Returns the bits of a block without which libzfp computes with a negative rest: the flag and the
 * exponent of floats. */
static unsigned zfp_least_bits(const struct zfp_codec *state)
{
    return !state->is_float ? 1 : state->width == 8 ? 12 : 9;
}

static int zfp_read_expert(struct zfp_codec *state, const brc_json *config, brc_error *err)
{
    struct zfp_params *params = &state->params;
    unsigned least = zfp_least_bits(state);
    uint64_t minbits, maxbits, maxprec;
    int64_t minexp;

    if (!brc_json_uint(brc_json_member(config, "maxbits"), UINT32_MAX, &maxbits) || maxbits < least)
        return brc_fail(err, BRC_EINVAL, "\"maxbits\" must be an integer from %u on", least);
    if (maxbits > ZFP_MAX_BITS) /* no block is longer                              */
        maxbits = ZFP_MAX_BITS;
    if (!brc_json_uint(brc_json_member(config, "minbits"), maxbits, &minbits))
        return brc_fail(err, BRC_EINVAL, "\"minbits\" must be an integer from 0 to %llu",
                        (unsigned long long)maxbits);
    if (!brc_json_uint(brc_json_member(config, "maxprec"), ZFP_MAX_PREC, &maxprec) || maxprec == 0)
        return brc_fail(err, BRC_EINVAL, "\"maxprec\" must be an integer from 1 to %d",
                        ZFP_MAX_PREC);
    if (!brc_json_int(brc_json_member(config, "minexp"), ZFP_MIN_EXP, -ZFP_MIN_EXP, &minexp))
        return brc_fail(err, BRC_EINVAL, "\"minexp\" must be an integer from %d to %d", ZFP_MIN_EXP,
                        -ZFP_MIN_EXP);
    params->minbits = (unsigned)minbits;
    params->maxbits = (unsigned)maxbits;
    params->maxprec = (unsigned)maxprec;
    params->minexp = (int)minexp;
    return BRC_OK;
}

static int zfp_read_precision(struct zfp_codec *state, const brc_json *value, brc_error *err)
{
    uint64_t precision;

    if (!brc_json_uint(value, ZFP_MAX_PREC, &precision))
        return brc_fail(err, BRC_EINVAL, "\"precision\" must be an integer from 0 to %d",
                        ZFP_MAX_PREC);
    state->params.maxprec = (unsigned)precision;
    return BRC_OK;
}

/* Reads a configuration of "zfp". */
static int zfp_read_config(struct zfp_codec *state, const brc_json *config, brc_error *err)
{
    static const char *const modes[] = { "expert", "fixed_rate", "fixed_precision",
                                         "fixed_accuracy", "reversible" };
    static const char *const expert[] = { "mode", "minbits", "maxbits", "maxprec", "minexp" };
    static const char *const allowed[][2] = {
        { "mode", "rate" }, { "mode", "precision" }, { "mode", "tolerance" }, { "mode", "mode" }
    };
    int mode = brc_json_choice(brc_json_member(config, "mode"), modes, 5);

    if (mode < 0)
        return brc_fail(err, BRC_EINVAL,
                        "\"mode\" must be \"reversible\", \"fixed_accuracy\", "
                        "\"fixed_precision\", \"fixed_rate\" or \"expert\"");
    state->params.mode = mode;
    int rc = mode == MODE_EXPERT ? brc_json_allow(config, expert, 5, err)
                                 : brc_json_allow(config, allowed[mode - 1], 2, err);
    if (rc < 0 || mode == MODE_REVERSIBLE)
        return rc;
    if (mode == MODE_EXPERT)
        return zfp_read_expert(state, config, err);
    const char *name = allowed[mode - 1][1];
    if (mode == MODE_PRECISION)
        return zfp_read_precision(state, brc_json_member(config, name), err);
    if (!brc_json_double(brc_json_member(config, name), &state->params.number))
        return brc_fail(err, BRC_EINVAL, "\"%s\" must be a number", name);
    return mode == MODE_RATE ? zfp_check_rate(state, state->params.number, err)
                             : zfp_check_tolerance(state, state->params.number, err);
}

/* Reads a configuration of "numcodecs.zfpy", in which -1 and null mean that a number is not given.
 * A mode without its number is reversible, as zfpy has it. */
static int zfp_read_zfpy(struct zfp_codec *state, const brc_json *config, brc_error *err)
{
    static const char *const members[] = { "mode", "tolerance", "rate", "precision",
                                           "compression_kwargs" };
    static const char *const numbers[] = { NULL, "rate", "precision", "tolerance" };
    const brc_json *mode = brc_json_member(config, "mode");
    int64_t code = 4;
    double number = -1;
    int rc = config != NULL ? brc_json_allow(config, members, 5, err) : BRC_OK;

    if (rc < 0)
        return rc;
    if (mode != NULL && !brc_json_int(mode, 2, 5, &code))
        return brc_fail(err, BRC_EINVAL,
                        "\"mode\" must be 2 (rate), 3 (precision), 4 (tolerance) "
                        "or 5 (reversible)");
    state->params.mode = (int)code - 1;
    if (state->params.mode == MODE_REVERSIBLE)
        return BRC_OK;
    const char *name = numbers[state->params.mode];
    const brc_json *value = brc_json_member(config, name);
    int kind = brc_json_kind(value);
    if (kind != BRC_JSON_ABSENT && kind != BRC_JSON_NULL && !brc_json_double(value, &number))
        return brc_fail(err, BRC_EINVAL, "\"%s\" must be a number", name);
    if (number == -1) {
        state->params.mode = MODE_REVERSIBLE;
        return BRC_OK;
    }
    state->params.number = number;
    if (state->params.mode == MODE_PRECISION)
        return zfp_read_precision(state, value, err);
    return state->params.mode == MODE_RATE ? zfp_check_rate(state, number, err)
                                           : zfp_check_tolerance(state, number, err);
}

/* ---- specification ------------------------------------------------------------------ */

static int zfp_set_type(struct zfp_codec *state, const brc_dtype *type, brc_error *err)
{
    int klass = type->klass;
    size_t size = type->item_size;
    int is_float = strcmp(type->name, "float32") == 0 || strcmp(type->name, "float64") == 0;
    int is_whole = (klass == BRC_CLASS_INT || klass == BRC_CLASS_UINT || klass == BRC_CLASS_TIME) &&
                   type->bits == 8 * size && size <= 8;

    state->dtype = type;
    state->is_float = is_float;
    state->is_unsigned = klass == BRC_CLASS_UINT;
    state->bits = 8 * (unsigned)size;
    state->width = size == 8 ? 8 : 4;
    if (!is_float && !is_whole)
        return brc_fail(err, BRC_EINVAL,
                        "zfp takes integers, float32 and float64, and no elements of %s",
                        type->name);
    if (state->has_header && !is_float && (klass != BRC_CLASS_INT || size < 4))
        return brc_fail(err, BRC_EINVAL,
                        "zfpy takes int32, int64, float32 and float64, and no elements of %s",
                        type->name);
    if (is_float)
        state->type = size == 8 ? zfp_type_double : zfp_type_float;
    else
        state->type = size == 8 ? zfp_type_int64 : zfp_type_int32;
    return BRC_OK;
}

static int zfp_set_shape(struct zfp_codec *state, const brc_proto *in, brc_error *err)
{
    if (in->ndim > ZFP_AXES)
        return brc_fail(err, BRC_EINVAL,
                        "zfp takes up to %d axes, not %d: put \"reshape\" before it", ZFP_AXES,
                        in->ndim);
    int rc = brc_codec_count(&state->n, in, err);
    if (rc < 0)
        return rc;
    state->axes = in->ndim > 0 ? in->ndim : 1;
    state->shape[0] = 1;
    state->blocks = 1;
    for (int i = 0; i < in->ndim; i++)
        state->shape[i] = (size_t)in->shape[i];
    for (int i = 0; i < state->axes; i++)
        state->blocks =
            brc_codec_times(state->blocks, state->shape[i] / 4 + (state->shape[i] % 4 > 0));
    return BRC_OK;
}

/* Returns the bytes of the longest stream with blocks of at least minbits, which libzfp
 * neither exceeds when it writes nor when it reads. */
static uint64_t zfp_most_bytes(const struct zfp_codec *state, unsigned minbits)
{
    uint64_t bits = ZFP_BLOCK_BITS + (8 * state->width + 1) * (uint64_t)zfp_values(state->axes);

    if (bits < minbits)
        bits = minbits;
    return brc_codec_add_up(brc_codec_times(state->blocks, bits / 8 + 1),
                            ZFP_HEADER_MAX_BITS / 8 + ZFP_SPARE);
}

/* Sets what a stream is written with. */
static void zfp_set_params(const struct zfp_codec *state, zfp_stream *stream)
{
    const struct zfp_api *lib = &state->lib;
    const struct zfp_params *params = &state->params;
    unsigned axes = (unsigned)zfp_rate_axes(state);

    switch (params->mode) {
    case MODE_EXPERT:
        (void)lib->zfp_stream_set_params(stream, params->minbits, params->maxbits,
                                         params->maxprec, params->minexp);
        break;
    case MODE_RATE:
        (void)lib->zfp_stream_set_rate(stream, params->number, state->type, axes, zfp_false);
        break;
    case MODE_PRECISION:
        (void)lib->zfp_stream_set_precision(stream, params->maxprec);
        break;
    case MODE_ACCURACY:
        (void)lib->zfp_stream_set_accuracy(stream, params->number);
        break;
    default:
        lib->zfp_stream_set_reversible(stream);
    }
}

static int zfp_read_all(struct zfp_codec *state, const brc_json *config, const brc_proto *in,
                        brc_error *err)
{
    static const char zfpy[] = "{\"mode\":4,\"tolerance\":-1,\"rate\":-1,\"precision\":-1}";
    int rc = zfp_set_type(state, in->dtype, err);

    if (rc == BRC_OK)
        rc = zfp_set_shape(state, in, err);
    if (rc == BRC_OK)
        rc = state->has_header ? zfp_read_zfpy(state, config, err)
                               : zfp_read_config(state, config, err);
    if (rc < 0)
        return rc;
    if (state->has_header && brc_json_count(config) == 0)
        return brc_buf_append(&state->config, zfpy, sizeof(zfpy) - 1, err);
    return brc_json_write(&state->config, config, 0, err);
}

static int zfp_open(const void *ctx, void **out_state, const brc_json *config, const brc_proto *in,
                    brc_proto *out, brc_error *err)
{
    struct zfp_codec *state = calloc(1, sizeof(*state));

    if (state == NULL)
        return brc_fail(err, BRC_ENOMEM, "out of memory");
    state->has_header = ctx != NULL;
    int rc = zfp_read_all(state, config, in, err);
    if (rc == BRC_OK)
        rc = zfp_load(&state->lib, err);
    uint64_t most = rc == BRC_OK ? zfp_most_bytes(state, state->params.minbits) : 0;
    if (rc == BRC_OK && most > PTRDIFF_MAX)
        rc = brc_fail(err, BRC_ELIMIT, "a chunk of this shape is too large for zfp");
    if (rc < 0) {
        zfp_codec_close(NULL, state);
        return rc;
    }
    out->ndim = -1;
    out->len = BRC_LEN_VARIES;
    out->max_len = most;
    out->flags = state->params.mode == MODE_REVERSIBLE ? 0 : BRC_CODEC_LOSSY;
    *out_state = state;
    return BRC_OK;
}

static int zfp_open_stream(void *ctx, void **out_state, const brc_json *config, const brc_proto *in,
                           brc_proto *out, int *identity, brc_error *err)
{
    (void)ctx;
    (void)identity;
    return zfp_open(NULL, out_state, config, in, out, err);
}

static int zfp_open_zfpy(void *ctx, void **out_state, const brc_json *config, const brc_proto *in,
                         brc_proto *out, int *identity, brc_error *err)
{
    (void)ctx;
    (void)identity;
    return zfp_open("", out_state, config, in, out, err);
}

static int zfp_write_config(void *ctx, const void *opaque, brc_buf *out, brc_error *err)
{
    (void)ctx;
    const struct zfp_codec *state = opaque;

    return brc_buf_append(out, state->config.data, state->config.len, err);
}

/* ---- libzfp's objects --------------------------------------------------------------- */

struct zfp_run {
    const struct zfp_api *lib;
    zfp_field *field;
    zfp_stream *stream;
    bitstream *bits;
};

static void zfp_run_end(struct zfp_run *run)
{
    const struct zfp_api *lib = run->lib;

    if (run->bits != NULL)
        lib->stream_close(run->bits);
    if (run->stream != NULL)
        lib->zfp_stream_close(run->stream);
    if (run->field != NULL)
        lib->zfp_field_free(run->field);
}

/* Begins with `room` bytes of a stream and an array of libzfp's elements. */
static int zfp_run_start(struct zfp_run *run, const struct zfp_codec *state, void *array,
                         void *bytes, size_t room, brc_error *err)
{
    const struct zfp_api *lib = &state->lib;
    const size_t *shape = state->shape;

    run->lib = lib;
    run->field = lib->zfp_field_alloc();
    run->stream = lib->zfp_stream_open(NULL);
    run->bits = lib->stream_open(bytes, room);
    if (run->field == NULL || run->stream == NULL || run->bits == NULL) {
        zfp_run_end(run);
        return brc_fail(err, BRC_ENOMEM, "out of memory");
    }
    lib->zfp_field_set_pointer(run->field, array);
    (void)lib->zfp_field_set_type(run->field, state->type);
    switch (state->axes) {
    case 1:
        lib->zfp_field_set_size_1d(run->field, shape[0]);
        break;
    case 2:
        lib->zfp_field_set_size_2d(run->field, shape[1], shape[0]);
        break;
    case 3:
        lib->zfp_field_set_size_3d(run->field, shape[2], shape[1], shape[0]);
        break;
    default:
        lib->zfp_field_set_size_4d(run->field, shape[3], shape[2], shape[1], shape[0]);
    }
    lib->zfp_stream_set_bit_stream(run->stream, run->bits);
    lib->zfp_stream_rewind(run->stream);
    zfp_set_params(state, run->stream);
    return BRC_OK;
}

/* ---- elements ----------------------------------------------------------------------- */

static int zfp_no_place(uint64_t at, const char *what, brc_error *err)
{
    return brc_fail(err, BRC_EINVAL, "element %llu is %s", (unsigned long long)at, what);
}

/* Without reversibility, zfp makes something else of all elements near a NaN. */
static int zfp_check_finite(const struct zfp_codec *state, brc_span src, brc_error *err)
{
    for (uint64_t i = 0; i < state->n; i++) {
        uint64_t bits = brc_codec_load(src.data + i * state->width, state->width);
        uint64_t exponent = state->width == 8 ? UINT64_C(0x7FF) << 52 : UINT64_C(0xFF) << 23;
        if ((bits & exponent) == exponent)
            return zfp_no_place(i, "NaN or infinite, which zfp stores only in its reversible mode",
                                err);
    }
    return BRC_OK;
}

/* Makes libzfp's elements of the array's. */
static int zfp_promote(const struct zfp_codec *state, brc_span src, uint8_t *to, brc_error *err)
{
    unsigned bits = state->bits, size = bits / 8;
    uint64_t half = UINT64_C(1) << (bits - 1);

    if (bits >= 32 && state->is_unsigned)
        for (uint64_t i = 0; i < state->n; i++)
            if ((src.data[(i + 1) * size - 1] & 0x80) != 0)
                return zfp_no_place(i,
                                    bits == 32 ? "more than 2147483647, zfp's largest value"
                                               : "more than 9223372036854775807, zfp's largest "
                                                 "value",
                                    err);
    if (bits >= 32) {
        memcpy(to, src.data, (size_t)state->n * size);
        return state->is_float && state->params.mode != MODE_REVERSIBLE
                   ? zfp_check_finite(state, src, err)
                   : BRC_OK;
    }
    for (uint64_t i = 0; i < state->n; i++) {
        uint64_t value = brc_codec_load(src.data + i * size, size);
        if (state->is_unsigned)
            value -= half;
        else if (value >= half)
            value -= 2 * half;
        brc_codec_store(to + 4 * i, 4, value << (31 - bits));
    }
    return BRC_OK;
}

/* Makes the array's elements of libzfp's, at the bounds of the type where loss has led past
 * them. */
static void zfp_demote(const struct zfp_codec *state, const uint8_t *from, uint8_t *to)
{
    unsigned bits = state->bits, size = bits / 8;
    int64_t half = bits < 32 ? INT64_C(1) << (bits - 1) : 0;

    for (uint64_t i = 0; i < state->n; i++) {
        int64_t value = (int32_t)(uint32_t)brc_codec_load(from + 4 * i, 4);
        int64_t unit = INT64_C(1) << (31 - bits);
        value = (value - (value < 0 ? unit - 1 : 0)) / unit; /* rounds down */
        value = value < -half ? -half : value > half - 1 ? half - 1 : value;
        brc_codec_store(to + i * size, size, (uint64_t)(state->is_unsigned ? value + half : value));
    }
}

/* Puts 0 for negative values, which loss may lead to. */
static void zfp_clamp_unsigned(const struct zfp_codec *state, uint8_t *to)
{
    size_t size = state->width;

    for (uint64_t i = 0; state->is_unsigned && i < state->n; i++)
        if ((to[(i + 1) * size - 1] & 0x80) != 0)
            memset(to + i * size, 0, size);
}

/* ---- encoding ----------------------------------------------------------------------- */

static int zfp_encode(void *ctx, const void *opaque, void *opaque_scratch, brc_span src,
                      brc_buf *dst, brc_error *err)
{
    (void)ctx;
    const struct zfp_codec *state = opaque;
    struct brc_nested_scratch *scratch = opaque_scratch;
    const struct zfp_api *lib = &state->lib;
    struct zfp_run run;
    int rc = brc_codec_expect_len(src, state->n * (state->bits / 8), err);

    if (rc < 0 || state->n == 0)
        return rc;
    size_t room = (size_t)zfp_most_bytes(state, state->params.minbits) / 8 * 8;
    scratch->plain.len = scratch->stored.len = 0;
    rc = brc_buf_reserve(&scratch->plain, (size_t)state->n * state->width, err);
    if (rc == BRC_OK)
        rc = zfp_promote(state, src, scratch->plain.data, err);
    if (rc == BRC_OK)
        rc = brc_buf_reserve(&scratch->stored, room, err);
    if (rc == BRC_OK)
        rc = zfp_run_start(&run, state, scratch->plain.data, scratch->stored.data, room, err);
    if (rc < 0)
        return rc;
    size_t len = 0;
    if (!state->has_header || lib->zfp_write_header(run.stream, run.field, ZFP_HEADER_FULL) > 0)
        len = lib->zfp_compress(run.stream, run.field);
    zfp_run_end(&run);
    if (len == 0)
        return brc_fail(err, BRC_EINVAL, "libzfp cannot store a chunk of this shape");
    while (len % ZFP_WORD != 0)
        scratch->stored.data[len++] = 0;
    return brc_buf_append(dst, scratch->stored.data, len, err);
}

/* ---- decoding ----------------------------------------------------------------------- */

/* Takes over the shape that a header says: the chunk's, or one axis with all its elements, as old
 * versions of numcodecs wrote it. Returns 0 if it is another one, or another type. */
static int zfp_take_shape(struct zfp_codec *as, const zfp_field *field)
{
    const struct zfp_api *lib = &as->lib;
    size_t sizes[ZFP_AXES] = { 0 };
    int axes = (int)lib->zfp_field_dimensionality(field), same = axes == as->axes;

    (void)lib->zfp_field_size(field, sizes);
    for (int i = 0; same && i < axes; i++) /* sizes[0] is along the last axis */
        same = sizes[i] == as->shape[axes - 1 - i];
    if (!same && axes == 1 && sizes[0] == as->n) {
        as->axes = 1;
        as->shape[0] = (size_t)as->n;
        as->blocks = as->n / 4 + (as->n % 4 > 0);
        same = 1;
    }
    return same && lib->zfp_field_type(field) == as->type;
}

/* Reads a header, and makes *as the codec for what it says. */
static int zfp_take_header(struct zfp_codec *as, brc_span src, brc_error *err)
{
    const struct zfp_api *lib = &as->lib;
    uint64_t head[8] = { 0 };
    struct zfp_run run;

    memcpy(head, src.data, src.len < 32 ? src.len : 32);
    int rc = zfp_run_start(&run, as, NULL, head, sizeof(head), err);
    if (rc < 0)
        return rc;
    size_t bits = lib->zfp_read_header(run.stream, run.field, ZFP_HEADER_FULL);
    int same = bits > 0 && zfp_take_shape(as, run.field);
    int reversible = lib->zfp_stream_compression_mode(run.stream) == zfp_mode_reversible;
    unsigned least = reversible ? ZFP_BLOCK_BITS : zfp_least_bits(as);
    int sane = run.stream->maxbits >= least && run.stream->minbits <= run.stream->maxbits;
    zfp_run_end(&run);
    if (bits == 0)
        return brc_fail(err, BRC_ECORRUPT, "this is not a stream of zfp with a header");
    if (!same)
        return brc_fail(err, BRC_ECORRUPT,
                        "its header says another type or shape than the chunk's");
    return sane ? BRC_OK : brc_fail(err, BRC_ECORRUPT, "its header says impossible blocks");
}

/* Decodes `room` bytes, of which src_len are the stream's and the others are zeros. */
static int zfp_run_decoder(const struct zfp_codec *state, uint8_t *bytes, size_t src_len,
                           size_t room, void *array, brc_error *err)
{
    const struct zfp_api *lib = &state->lib;
    struct zfp_run run;
    int rc = zfp_run_start(&run, state, array, bytes, room, err);

    if (rc < 0)
        return rc;
    if (state->has_header)
        (void)lib->zfp_read_header(run.stream, run.field, ZFP_HEADER_FULL);
    uint64_t begin = lib->stream_rtell(run.bits), end = 0;
    /* A block has minbits, or at least one. */
    uint64_t least = run.stream->minbits > 0 ? run.stream->minbits : 1;
    least = brc_codec_add_up(begin, brc_codec_times(least, state->blocks));
    if (least <= (uint64_t)src_len * 8 && lib->zfp_decompress(run.stream, run.field) > 0)
        end = lib->stream_rtell(run.bits);
    zfp_run_end(&run);
    if (end == 0 || end > (uint64_t)src_len * 8)
        return brc_fail(err, BRC_ECORRUPT, "the stream ends before its last block");
    if (src_len - (end + 7) / 8 >= ZFP_WORD)
        return brc_fail(err, BRC_ECORRUPT, "%zu bytes follow the stream",
                        src_len - (size_t)((end + 7) / 8));
    return BRC_OK;
}

static int zfp_decode(void *ctx, const void *opaque, void *opaque_scratch, brc_span src,
                      brc_buf *dst, brc_error *err)
{
    (void)ctx;
    const struct zfp_codec *state = opaque;
    struct brc_nested_scratch *scratch = opaque_scratch;
    struct zfp_codec as = *state; /* as the header says */
    size_t len = (size_t)state->n * (state->bits / 8);

    if (state->n == 0)
        return brc_codec_expect_len(src, 0, err);
    int rc = state->has_header ? zfp_take_header(&as, src, err) : BRC_OK;
    if (rc == BRC_OK && src.len < as.blocks / 8) /* a block has at least one bit */
        rc = brc_fail(err, BRC_ECORRUPT, "%zu bytes cannot hold %llu blocks", src.len,
                      (unsigned long long)as.blocks);
    /* Blocks that the configuration or the header makes longer are in src, or src is cut. */
    size_t room = (src.len + (size_t)zfp_most_bytes(&as, 0)) / 8 * 8 + 8;
    scratch->plain.len = scratch->stored.len = 0;
    if (rc == BRC_OK)
        rc = brc_buf_reserve(&scratch->stored, room, err);
    if (rc == BRC_OK)
        rc = brc_buf_reserve(&scratch->plain, (size_t)state->n * state->width, err);
    if (rc == BRC_OK)
        rc = brc_buf_reserve(dst, len, err);
    if (rc < 0)
        return rc;
    uint8_t *bytes = scratch->stored.data, *plain = scratch->plain.data, *to = dst->data + dst->len;
    memcpy(bytes, src.data, src.len);
    memset(bytes + src.len, 0, room - src.len);
    rc = zfp_run_decoder(&as, bytes, src.len, room, plain, err);
    if (rc < 0)
        return rc;
    if (state->bits < 32) {
        zfp_demote(state, plain, to);
    } else {
        memcpy(to, plain, len);
        zfp_clamp_unsigned(state, to);
    }
    dst->len += len;
    return BRC_OK;
}

int brc_codec_zfp_register(brc_registry *reg, brc_error *err)
{
    static const char *const names[] = { "zfp", "numcodecs.zfpy" };
    static const char *const aliases[][2] = {
        { "zarrs.zfp", "zfp" },
        { "https://codec.zarrs.dev/array_to_bytes/zfp", "zfp" }, /* former names in zarrs */
        { "https://codec.zarrs.dev/array_to_bytes/zfpy", "numcodecs.zfpy" },
    };
    int rc = BRC_OK;

    for (size_t i = 0; i < 2 && rc == BRC_OK; i++) {
        brc_codec_spec spec = {
            .size = sizeof(spec),
            .name = names[i],
            .kind = BRC_ARRAY_TO_BYTES,
            .open = i == 0 ? zfp_open_stream : zfp_open_zfpy,
            .close = zfp_codec_close,
            .write_config = zfp_write_config,
        };
        brc_codec_impl impl = {
            .size = sizeof(impl),
            .spec = names[i],
            .name = "libzfp",
            .scratch_new = brc_codec_nested_scratch_new,
            .scratch_free = brc_codec_nested_scratch_free,
            .encode = zfp_encode,
            .decode = zfp_decode,
        };
        rc = brc_codec_add(reg, &spec, &impl, err);
    }
    for (size_t i = 0; i < sizeof(aliases) / sizeof(aliases[0]) && rc == BRC_OK; i++)
        rc = brc_registry_add_alias(reg, aliases[i][0], aliases[i][1], err);
    return rc;
}

#endif
