/*
 * "numcodecs.json2", "numcodecs.msgpack2": arrays of Zarr v2 whose elements are Python objects, as
 * far as all of these are texts.
 *
 *     json2      [["a","b"],["c","d"],"|O",[2,2]]
 *     msgpack2   the same list in MessagePack
 *
 * The elements are lists within lists, as the shape says; then follow NumPy's name of the data type
 * and the shape. A scalar is a list of one element, which MessagePack of numcodecs lacks.
 *
 * None and 0 are empty texts, as in numcodecs' "vlen-utf8": where nothing was written, zarr-python
 * stores its fill value of objects. Any other object is BRC_EUNSUPPORTED, since no data type of v3
 * has it.
 *
 * Of MessagePack, a chunk can only have lists, texts and small numbers, so they are read here: a
 * library would first make an object of each element.
 */
#include "builtin.h"
#include "lib/codec_help.h"

#include <stdlib.h>
#include <string.h>

/* breccia's JSON has at most a million values and 64 MiB. */
#define OBJECTS_JSON_MAX 500000
#define OBJECTS_JSON_BYTES ((size_t)64 << 20)

struct objects_codec {
    const brc_dtype *type;
    int ndim;
    uint64_t shape[BRC_MAX_NDIM], n;
    brc_buf config;
};

/* ---- specification ------------------------------------------------------------------ */

static void objects_close(void *ctx, void *opaque)
{
    (void)ctx;
    struct objects_codec *state = opaque;

    brc_buf_dispose(&state->config);
    free(state);
}

/* Checks that these members are booleans, where they are there. */
static int objects_check_flags(const brc_json *config, const char *const *names, size_t n,
                               brc_error *err)
{
    int value;

    for (size_t i = 0; i < n; i++) {
        const brc_json *flag = brc_json_member(config, names[i]);
        if (flag != NULL && !brc_json_bool(flag, &value))
            return brc_fail(err, BRC_EINVAL, "\"%s\" must be true or false", names[i]);
    }
    return BRC_OK;
}

/* The members say how json.dumps() of Python writes; all of that is read the same way. */
static int objects_check_json(const brc_json *config, const struct objects_codec *state,
                              brc_error *err)
{
    static const char *const members[] = { "skipkeys",  "ensure_ascii", "check_circular",
                                           "allow_nan", "sort_keys",    "strict",
                                           "indent",    "separators",   "encoding" };
    const brc_json *encoding = brc_json_member(config, "encoding");
    const brc_json *separators = brc_json_member(config, "separators");
    int rc = config != NULL ? brc_json_allow(config, members, 9, err) : BRC_OK;

    if (rc == BRC_OK)
        rc = objects_check_flags(config, members, 6, err);
    if (rc < 0)
        return rc;
    if (encoding != NULL && !brc_json_is(encoding, "utf-8"))
        return brc_fail(err, BRC_EINVAL, "\"encoding\" must be \"utf-8\"");
    if (separators != NULL && brc_json_kind(separators) != BRC_JSON_NULL &&
        (!brc_json_is(brc_json_item(separators, 0), ",") &&
         !brc_json_is(brc_json_item(separators, 0), ", ")))
        return brc_fail(err, BRC_EINVAL, "\"separators\" must be \",\" and \":\"");
    if (state->n > OBJECTS_JSON_MAX)
        return brc_fail(err, BRC_ELIMIT, "a chunk has at most %d elements as JSON",
                        OBJECTS_JSON_MAX);
    return BRC_OK;
}

static int objects_check_msgpack(const brc_json *config, const struct objects_codec *state,
                                 brc_error *err)
{
    static const char *const members[] = { "raw", "use_bin_type", "use_single_float" };
    int raw = 0;
    int rc = config != NULL ? brc_json_allow(config, members, 3, err) : BRC_OK;

    if (rc == BRC_OK)
        rc = objects_check_flags(config, members, 3, err);
    if (rc < 0)
        return rc;
    if (brc_json_bool(brc_json_member(config, "raw"), &raw) && raw)
        return brc_fail(err, BRC_EINVAL, "\"raw\" must be false: elements are texts");
    if (state->ndim == 0)
        return brc_fail(err, BRC_EINVAL, "a scalar has no form in \"msgpack2\"");
    return BRC_OK;
}

static int objects_read_config(struct objects_codec *state, int is_json, const brc_json *config,
                               const brc_proto *in, brc_error *err)
{
    state->type = in->dtype;
    state->ndim = in->ndim;
    memcpy(state->shape, in->shape, sizeof(state->shape));
    if (in->dtype->klass != BRC_CLASS_STRING || in->dtype->item_size != 0)
        return brc_fail(err, BRC_EUNSUPPORTED,
                        "elements of %s are not texts of variable length, and only these are read "
                        "from lists of objects",
                        in->dtype->name);
    int rc = brc_codec_count(&state->n, in, err);
    for (int i = 0; i < in->ndim && rc == BRC_OK; i++)
        if (in->shape[i] > UINT32_MAX - 2)
            rc = brc_fail(err, BRC_ELIMIT, "axis %d is too long for a list", i);
    if (rc == BRC_OK)
        rc = is_json ? objects_check_json(config, state, err)
                     : objects_check_msgpack(config, state, err);
    if (rc < 0)
        return rc;
    return config != NULL ? brc_json_write(&state->config, config, 0, err)
                          : brc_buf_append(&state->config, "{}", 2, err);
}

static int objects_open(void *ctx, void **out_state, const brc_json *config, const brc_proto *in,
                        brc_proto *out, int *identity, brc_error *err)
{
    (void)identity;
    struct objects_codec *state = calloc(1, sizeof(*state));

    if (state == NULL)
        return brc_fail(err, BRC_ENOMEM, "out of memory");
    int rc = objects_read_config(state, ctx != NULL, config, in, err);
    if (rc < 0) {
        objects_close(NULL, state);
        return rc;
    }
    out->ndim = -1;
    out->len = BRC_LEN_VARIES;
    /* Six bytes of JSON for one of a text; brackets and commas for its length. */
    out->max_len = brc_codec_add_up(brc_codec_times(in->max_len, 6),
                                    brc_codec_add_up(brc_codec_times(state->n, 64), 4096));
    *out_state = state;
    return BRC_OK;
}

static int objects_write_config(void *ctx, const void *opaque, brc_buf *out, brc_error *err)
{
    (void)ctx;
    const struct objects_codec *state = opaque;

    return brc_buf_append(out, state->config.data, state->config.len, err);
}

/* ---- lists within lists ------------------------------------------------------------- */

/* Counts the lists that begin with element i, below the outermost one. As many end before it. */
static int objects_turns(const struct objects_codec *state, uint64_t i)
{
    uint64_t row = 1;
    int turns = 0;

    for (int axis = state->ndim - 1; axis > 0; axis--) {
        row *= state->shape[axis];
        if (i % row != 0)
            break;
        turns++;
    }
    return turns;
}

static int objects_other(uint64_t at, brc_error *err)
{
    return brc_fail(err, BRC_EUNSUPPORTED,
                    "element %llu is not a text, and no data type of Zarr v3 has such objects",
                    (unsigned long long)at);
}

/* ---- JSON --------------------------------------------------------------------------- */

static int objects_put_text(brc_buf *dst, const char *text, brc_error *err)
{
    return brc_buf_append(dst, text, strlen(text), err);
}

static int objects_put_json_end(const struct objects_codec *state, brc_buf *dst, brc_error *err)
{
    int rc = objects_put_text(dst, dst->data[dst->len - 1] == '[' ? "\"|O\",[" : ",\"|O\",[", err);

    for (int i = 0; i < state->ndim && rc == BRC_OK; i++)
        rc = brc_buf_printf(dst, err, "%s%llu", i > 0 ? "," : "",
                            (unsigned long long)state->shape[i]);
    if (rc == BRC_OK)
        rc = objects_put_text(dst, "]]", err);
    if (rc == BRC_OK && dst->len > OBJECTS_JSON_BYTES)
        rc = brc_fail(err, BRC_ELIMIT, "the chunk has %zu bytes as JSON, more than %zu", dst->len,
                      OBJECTS_JSON_BYTES);
    return rc;
}

/* Lists without elements below the first axis: "[[],[]" for the shape (2, 0). */
static int objects_put_hollow(const struct objects_codec *state, brc_buf *dst, brc_error *err)
{
    int rc = BRC_OK;

    if (state->ndim > 1 && state->shape[0] > 0)
        rc = brc_fail(err, BRC_EUNSUPPORTED, "a chunk without elements has no form here");
    return rc < 0 ? rc : objects_put_json_end(state, dst, err);
}

static int objects_encode_json(void *ctx, const void *opaque, void *scratch, brc_span src,
                               brc_buf *dst, brc_error *err)
{
    (void)ctx;
    (void)scratch;
    const struct objects_codec *state = opaque;
    uint32_t *offsets;
    int rc = brc_codec_new_index(&offsets, state->n, src, err);

    if (rc == BRC_OK)
        rc = objects_put_text(dst, "[", err);
    for (uint64_t i = 0; i < state->n && rc == BRC_OK; i++) {
        const uint8_t *text = src.data + offsets[i] + 4;
        size_t len = offsets[i + 1] - offsets[i] - 4;
        int turns = objects_turns(state, i);
        for (int k = 0; k < turns && i > 0 && rc == BRC_OK; k++)
            rc = objects_put_text(dst, "]", err);
        if (rc == BRC_OK && i > 0)
            rc = objects_put_text(dst, ",", err);
        for (int k = 0; k < turns && rc == BRC_OK; k++)
            rc = objects_put_text(dst, "[", err);
        if (rc == BRC_OK && !brc_codec_is_utf8(text, len))
            rc = brc_fail(err, BRC_EINVAL, "element %llu is not UTF-8", (unsigned long long)i);
        if (rc == BRC_OK)
            rc = brc_json_quote(dst, (const char *)text, len, err);
    }
    for (int k = 1; k < state->ndim && state->n > 0 && rc == BRC_OK; k++)
        rc = objects_put_text(dst, "]", err);
    free(offsets);
    if (rc < 0)
        return rc;
    return state->n == 0 ? objects_put_hollow(state, dst, err)
                         : objects_put_json_end(state, dst, err);
}

static int objects_bad(brc_error *err)
{
    return brc_fail(err, BRC_ECORRUPT,
                    "its lists are not those of a chunk of this shape, with \"|O\" and the shape "
                    "at the end");
}

/* Checks the two last items, and that the list has as many before them as the first axis. */
static int objects_check_json_end(const struct objects_codec *state, const brc_json *root,
                                  brc_error *err)
{
    size_t n = brc_json_count(root);
    uint64_t most = state->ndim > 0 ? state->shape[0] : 1, extent;

    if (brc_json_kind(root) != BRC_JSON_ARRAY || n != most + 2)
        return objects_bad(err);
    const brc_json *shape = brc_json_item(root, n - 1);
    if (!brc_json_is(brc_json_item(root, n - 2), "|O") || brc_json_kind(shape) != BRC_JSON_ARRAY ||
        brc_json_count(shape) != (size_t)state->ndim)
        return objects_bad(err);
    for (int i = 0; i < state->ndim; i++)
        if (!brc_json_uint(brc_json_item(shape, (size_t)i), UINT32_MAX, &extent) ||
            extent != state->shape[i])
            return objects_bad(err);
    return BRC_OK;
}

/* Appends the elements of a chunk's lists. at[axis] is the next item of the list along each axis; a
 * list that is not there has the length 0. */
static int objects_take_json(const struct objects_codec *state, const brc_json *root, brc_buf *dst,
                             brc_error *err)
{
    const brc_json *at[BRC_MAX_NDIM + 1] = { NULL };
    int last = state->ndim > 0 ? state->ndim - 1 : 0, rc = BRC_OK;

    for (uint64_t i = 0; i < state->n && rc == BRC_OK; i++) {
        int from = last - objects_turns(state, i);
        for (int axis = from; axis <= last; axis++) {
            const brc_json *list = axis == 0 ? root : at[axis - 1];
            int is_new = i == 0 || axis > from;
            if (axis > 0 && is_new &&
                (brc_json_kind(list) != BRC_JSON_ARRAY ||
                 brc_json_count(list) != state->shape[axis]))
                return objects_bad(err);
            at[axis] = is_new ? brc_json_first(list) : brc_json_next(at[axis]);
        }
        if (brc_json_kind(at[last]) == BRC_JSON_STRING)
            rc = state->type->ops->parse(state->type, at[last], dst, err);
        else if (brc_json_kind(at[last]) == BRC_JSON_NULL ||
                 strcmp(brc_json_literal(at[last]), "0") == 0)
            rc = brc_buf_append(dst, "\0\0\0", 4, err);
        else
            return objects_other(i, err);
    }
    return rc;
}

static int objects_decode_json(void *ctx, const void *opaque, void *scratch, brc_span src,
                               brc_buf *dst, brc_error *err)
{
    (void)ctx;
    (void)scratch;
    const struct objects_codec *state = opaque;
    brc_json *root = NULL;
    int rc = brc_json_parse(&root, (const char *)src.data, src.len, BRC_JSON_NAN, err);

    if (rc == BRC_OK)
        rc = objects_check_json_end(state, root, err);
    if (rc == BRC_OK)
        rc = objects_take_json(state, root, dst, err);
    brc_json_free(root);
    if (rc == BRC_EINVAL) {
        rc = BRC_ECORRUPT;
        if (err != NULL)
            err->code = rc;
    }
    return rc;
}

/* ---- MessagePack -------------------------------------------------------------------- */

/* Numbers are big-endian. Tags of lists, of texts and of unsigned numbers: the last short form, and
 * those with 1, 2, 4 and 8 bytes that follow; 0: there is none. */
enum { PACK_LIST, PACK_TEXT, PACK_NUMBER };
static const struct {
    uint8_t first, last, wide[4];
} message_tags[] = {
    [PACK_LIST] = { 0x90, 0x9f, { 0, 0xdc, 0xdd, 0 } },
    [PACK_TEXT] = { 0xa0, 0xbf, { 0xd9, 0xda, 0xdb, 0 } },
    [PACK_NUMBER] = { 0x00, 0x7f, { 0xcc, 0xcd, 0xce, 0xcf } },
};

/* Appends the shortest form. The value fits into 32 bits. */
static int message_put(brc_buf *dst, int kind, uint64_t value, brc_error *err)
{
    uint8_t bytes[5];
    int form = value > UINT16_MAX                                     ? 2
               : value > UINT8_MAX || message_tags[kind].wide[0] == 0 ? 1
                                                                      : 0;
    size_t size = (size_t)1 << form;

    if (value <= (uint64_t)message_tags[kind].last - message_tags[kind].first) {
        bytes[0] = (uint8_t)(message_tags[kind].first + value);
        return brc_buf_append(dst, bytes, 1, err);
    }
    bytes[0] = message_tags[kind].wide[form];
    for (size_t i = 0; i < size; i++)
        bytes[1 + i] = (uint8_t)(value >> 8 * (size - 1 - i));
    return brc_buf_append(dst, bytes, 1 + size, err);
}

/* Takes a value of this kind from the front of src. Returns 0 if something else is there. */
static int message_take(brc_span *src, int kind, uint64_t *value)
{
    size_t size = 0;

    if (src->len == 0)
        return 0;
    uint8_t tag = src->data[0];
    if (tag >= message_tags[kind].first && tag <= message_tags[kind].last) {
        *value = (uint64_t)tag - message_tags[kind].first;
    } else {
        for (int form = 0; form < 4 && size == 0; form++)
            if (message_tags[kind].wide[form] == tag && tag != 0)
                size = (size_t)1 << form;
        if (size == 0 || src->len - 1 < size)
            return 0;
        *value = 0;
        for (size_t i = 0; i < size; i++)
            *value = *value << 8 | src->data[1 + i];
    }
    src->data += 1 + size;
    src->len -= 1 + size;
    return 1;
}

static int objects_encode_msgpack(void *ctx, const void *opaque, void *scratch, brc_span src,
                                  brc_buf *dst, brc_error *err)
{
    (void)ctx;
    (void)scratch;
    const struct objects_codec *state = opaque;
    uint32_t *offsets;
    int rc = brc_codec_new_index(&offsets, state->n, src, err);

    if (rc == BRC_OK)
        rc = message_put(dst, PACK_LIST, state->shape[0] + 2, err);
    if (rc == BRC_OK && state->n == 0 && state->shape[0] > 0)
        rc = brc_fail(err, BRC_EUNSUPPORTED, "a chunk without elements has no form here");
    for (uint64_t i = 0; i < state->n && rc == BRC_OK; i++) {
        const uint8_t *text = src.data + offsets[i] + 4;
        size_t len = offsets[i + 1] - offsets[i] - 4;
        for (int k = objects_turns(state, i); k > 0 && rc == BRC_OK; k--)
            rc = message_put(dst, PACK_LIST, state->shape[state->ndim - k], err);
        if (rc == BRC_OK && !brc_codec_is_utf8(text, len))
            rc = brc_fail(err, BRC_EINVAL, "element %llu is not UTF-8", (unsigned long long)i);
        if (rc == BRC_OK)
            rc = message_put(dst, PACK_TEXT, len, err);
        if (rc == BRC_OK)
            rc = brc_buf_append(dst, text, len, err);
    }
    free(offsets);
    if (rc == BRC_OK)
        rc = brc_buf_append(dst, "\xa2|O", 3, err);
    if (rc == BRC_OK)
        rc = message_put(dst, PACK_LIST, (uint64_t)state->ndim, err);
    for (int i = 0; i < state->ndim && rc == BRC_OK; i++)
        rc = message_put(dst, PACK_NUMBER, state->shape[i], err);
    return rc;
}

/* Checks what follows the elements. */
static int objects_check_msgpack_end(const struct objects_codec *state, brc_span src,
                                     brc_error *err)
{
    uint64_t value;

    if (!message_take(&src, PACK_TEXT, &value) || value != 2 || src.len < 2 ||
        memcmp(src.data, "|O", 2) != 0)
        return objects_bad(err);
    src.data += 2;
    src.len -= 2;
    if (!message_take(&src, PACK_LIST, &value) || value != (uint64_t)state->ndim)
        return objects_bad(err);
    for (int i = 0; i < state->ndim; i++)
        if (!message_take(&src, PACK_NUMBER, &value) || value != state->shape[i])
            return objects_bad(err);
    return src.len == 0 ? BRC_OK : objects_bad(err);
}

static int objects_decode_msgpack(void *ctx, const void *opaque, void *scratch, brc_span src,
                                  brc_buf *dst, brc_error *err)
{
    (void)ctx;
    (void)scratch;
    const struct objects_codec *state = opaque;
    uint64_t len;
    uint8_t head[4];
    int rc = BRC_OK;

    if (!message_take(&src, PACK_LIST, &len) || len != state->shape[0] + 2)
        return objects_bad(err);
    for (uint64_t i = 0; i < state->n && rc == BRC_OK; i++) {
        for (int k = objects_turns(state, i); k > 0; k--)
            if (!message_take(&src, PACK_LIST, &len) || len != state->shape[state->ndim - k])
                return objects_bad(err);
        if (src.len == 0)
            return objects_bad(err);
        if (src.data[0] == 0xc0 || src.data[0] == 0) { /* None, 0 */
            rc = brc_buf_append(dst, "\0\0\0", 4, err);
            src.data++;
            src.len--;
            continue;
        }
        if (!message_take(&src, PACK_TEXT, &len))
            return objects_other(i, err);
        if (len > src.len || !brc_codec_is_utf8(src.data, (size_t)len))
            return brc_fail(err, BRC_ECORRUPT, "element %llu is not UTF-8, or cut off",
                            (unsigned long long)i);
        brc_codec_store(head, 4, len);
        rc = brc_buf_append(dst, head, 4, err);
        if (rc == BRC_OK)
            rc = brc_buf_append(dst, src.data, (size_t)len, err);
        src.data += len;
        src.len -= (size_t)len;
    }
    return rc < 0 ? rc : objects_check_msgpack_end(state, src, err);
}

int brc_codec_objects_register(brc_registry *reg, brc_error *err)
{
    brc_codec_spec spec = {
        .size = sizeof(spec),
        .name = "numcodecs.json2",
        .kind = BRC_ARRAY_TO_BYTES,
        .ctx = (void *)(uintptr_t)1,
        .open = objects_open,
        .close = objects_close,
        .write_config = objects_write_config,
    };
    brc_codec_impl impl = {
        .size = sizeof(impl),
        .spec = "numcodecs.json2",
        .name = "portable",
        .encode = objects_encode_json,
        .decode = objects_decode_json,
    };
    int rc = brc_codec_add(reg, &spec, &impl, err);

    spec.name = impl.spec = "numcodecs.msgpack2";
    spec.ctx = NULL;
    impl.encode = objects_encode_msgpack;
    impl.decode = objects_decode_msgpack;
    return rc < 0 ? rc : brc_codec_add(reg, &spec, &impl, err);
}
