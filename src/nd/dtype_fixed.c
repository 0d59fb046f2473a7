/*
 * Text and bytes of a fixed length, which the configuration gives in bytes:
 *
 *   fixed_length_utf32      NumPy's U: code points of four bytes each, zeros behind
 *   null_terminated_bytes   NumPy's S: bytes, zeros behind
 *   raw_bytes               NumPy's V: bytes, all of them
 *
 * Zeros at the end of the first two are padding, so a text cannot end in U+0000.
 * A fill value that is too long is refused, not cut. As JSON, bytes are base64; as
 * text, see brc_bytes_print().
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../base/alloc.h"
#include "bytes_json.h"
#include "dtype_ops.h"

/* The element up to the padding. */
static size_t fixed_content(const uint8_t *element, size_t len, size_t unit)
{
    while (len > 0 && element[len - 1] == 0)
        len--;
    return (len + unit - 1) / unit * unit;
}

static int fixed_pad(const brc_dtype *type, brc_buf *out, size_t start, brc_error *err)
{
    size_t missing = type->item_size - (out->len - start);
    if (missing == 0)
        return BRC_OK;
    BRC_TRY(brc_buf_reserve(out, missing, err));
    memset(out->data + out->len, 0, missing);
    out->len += missing;
    return BRC_OK;
}

/* ---- UTF-32 ---------------------------------------------------------------------------- */

/* at: `step` bytes of valid UTF-8. */
static uint32_t utf8_code(const uint8_t *at, size_t step)
{
    static const uint8_t first[5] = { 0, 0x7f, 0x1f, 0x0f, 0x07 };
    uint32_t code = at[0] & first[step];
    for (size_t i = 1; i < step; i++)
        code = code << 6 | (at[i] & 0x3fu);
    return code;
}

static int utf32_append(const brc_dtype *type, const uint8_t *text, size_t len, brc_buf *out,
                        brc_error *err)
{
    size_t start = out->len;
    while (len > 0) {
        uint8_t code[4];
        size_t step = brc_utf8_step(text, len);
        if (step == 0 || out->len - start == type->item_size) {
            out->len = start;
            return brc_fail(err, BRC_EINVAL,
                            step == 0 ? "the value for %s is not UTF-8 text" :
                                        "the value is too long for %s of %zu code points",
                            type->name, type->item_size / 4);
        }
        brc_put_u32le(code, utf8_code(text, step));
        BRC_TRY(brc_buf_append(out, code, sizeof(code), err));
        text += step;
        len -= step;
    }
    return fixed_pad(type, out, start, err);
}

static int utf32_parse(const brc_dtype *type, const brc_json *json, brc_buf *out, brc_error *err)
{
    char label[BRC_VALUE_LABEL];
    brc_buf text = BRC_BUF_INIT;
    size_t start = out->len;
    int rc;
    if (brc_json_kind(json) != BRC_JSON_STRING)
        return brc_fail(err, BRC_EINVAL, "fill value %s does not fit %s (a JSON string)",
                        brc_value_label(label, json), type->name);
    BRC_GO(brc_string_read(&text, json, err));
    rc = utf32_append(type, text.data, text.len, out, err);
done:
    brc_buf_dispose(&text);
    if (rc < 0)
        out->len = start;
    return rc;
}

/* NumPy stores any 32 bits; what is not a character is shown as U+FFFD, and cannot be
 * written as a fill value. */
static int utf32_to_utf8(const brc_dtype *type, const uint8_t *element, size_t len, int how,
                         brc_buf *out, brc_error *err)
{
    for (size_t at = 0; at < len; at += 4) {
        uint8_t utf8[4];
        uint32_t code = brc_get_u32le(element + at);
        if (code > 0x10FFFF || (code >= 0xD800 && code < 0xE000)) {
            if (how == BRC_PRINT_FILL)
                return brc_fail(err, BRC_EINVAL,
                                "an element of %s has the code %lu, which is not a character",
                                type->name, (unsigned long)code);
            code = 0xFFFD;
        }
        BRC_TRY(brc_buf_append(out, utf8, brc_utf8_encode(utf8, code), err));
    }
    return BRC_OK;
}

static int utf32_print(const brc_dtype *type, const uint8_t *element, size_t len, int how,
                       brc_buf *out, brc_error *err)
{
    brc_buf text = BRC_BUF_INIT;
    int rc;
    BRC_TRY(brc_element_length_fits(type, len, err));
    BRC_GO(utf32_to_utf8(type, element, fixed_content(element, len, 4), how, &text, err));
    if (how == BRC_PRINT_TEXT)
        rc = brc_buf_append(out, text.data, text.len, err);
    else
        rc = brc_json_quote(out, (const char *)text.data, text.len, err);
done:
    brc_buf_dispose(&text);
    return rc;
}

/* ---- bytes -------------------------------- */

static int padded_append(const brc_dtype *type, const uint8_t *data, size_t len, brc_buf *out,
                         brc_error *err)
{
    size_t start = out->len;
    if (len > type->item_size)
        return brc_fail(err, BRC_EINVAL, "the value has %zu bytes, too many for %s of %zu", len,
                        type->name, type->item_size);
    BRC_TRY(brc_buf_append(out, data, len, err));
    return fixed_pad(type, out, start, err);
}

static int padded_parse(const brc_dtype *type, const brc_json *json, brc_buf *out, brc_error *err)
{
    char label[BRC_VALUE_LABEL];
    brc_buf bytes = BRC_BUF_INIT;
    int rc = brc_bytes_read(&bytes, json, err);
    if (rc == BRC_OK)
        rc = padded_append(type, bytes.data, bytes.len, out, err);
    else if (rc == BRC_EINVAL)
        rc = brc_fail(err, rc, "fill value %s does not fit %s (base64 of at most %zu bytes)",
                      brc_value_label(label, json), type->name, type->item_size);
    brc_buf_dispose(&bytes);
    return rc;
}

static int exact_parse(const brc_dtype *type, const brc_json *json, brc_buf *out, brc_error *err)
{
    char label[BRC_VALUE_LABEL];
    size_t start = out->len;
    int rc = brc_bytes_read(out, json, err);
    if (rc == BRC_OK && out->len - start == type->item_size)
        return BRC_OK;
    out->len = start;
    if (rc < 0 && rc != BRC_EINVAL)
        return rc;
    return brc_fail(
        err, BRC_EINVAL,
        "fill value %s does not fit %s (base64 of %zu bytes, or as many integers from 0 to 255)",
        brc_value_label(label, json), type->name, type->item_size);
}

static int fixed_bytes_print(const brc_dtype *type, const uint8_t *element, size_t len, int how,
                             brc_buf *out, brc_error *err)
{
    BRC_TRY(brc_element_length_fits(type, len, err));
    if (how == BRC_PRINT_TEXT)
        return brc_bytes_print(
            out, element,
            type->klass == BRC_CLASS_RAW ? len : fixed_content(element, len, 1), err);
    BRC_TRY(brc_buf_byte(out, '"', err));
    BRC_TRY(brc_base64_write(out, element, len, err));
    return brc_buf_byte(out, '"', err);
}

/* ---- text as people type it -------------------------------- */

/* A string in quotes is JSON; anything else, 12 and true as well, is the text itself. */
static int utf32_scan(const brc_dtype *type, const char *text, const brc_json *json, brc_buf *out,
                      brc_error *err)
{
    if (brc_json_kind(json) == BRC_JSON_STRING)
        return 0;
    BRC_TRY(utf32_append(type, (const uint8_t *)text, strlen(text), out, err));
    return 1;
}

/* So is a list of bytes. */
static int padded_scan(const brc_dtype *type, const char *text, const brc_json *json, brc_buf *out,
                       brc_error *err)
{
    int kind = brc_json_kind(json);
    brc_buf bytes = BRC_BUF_INIT;
    if (kind == BRC_JSON_STRING || kind == BRC_JSON_ARRAY)
        return 0;
    int rc = brc_bytes_scan(&bytes, text, err);
    if (rc == BRC_OK)
        rc = padded_append(type, bytes.data, bytes.len, out, err);
    brc_buf_dispose(&bytes);
    return rc < 0 ? rc : 1;
}

/* Text of as many bytes, once escapes are read; what is shorter, base64 say, is for parse. */
int brc_exact_bytes_scan(const brc_dtype *type, const char *text, const brc_json *json,
                         brc_buf *out, brc_error *err)
{
    int kind = brc_json_kind(json);
    size_t start = out->len;
    if (kind == BRC_JSON_STRING || kind == BRC_JSON_ARRAY)
        return 0;
    int rc = brc_bytes_scan(out, text, err);
    if (rc == BRC_OK && out->len - start == type->item_size)
        return 1;
    out->len = start;
    return rc;
}

/* ---- the table and opening -------------------------------- */

static const brc_dtype_ops utf32_ops = { .size = sizeof(brc_dtype_ops),
                                         .parse = utf32_parse,
                                         .print = utf32_print,
                                         .scan = utf32_scan };
static const brc_dtype_ops padded_ops = { .size = sizeof(brc_dtype_ops),
                                          .parse = padded_parse,
                                          .print = fixed_bytes_print,
                                          .scan = padded_scan };
static const brc_dtype_ops exact_ops = { .size = sizeof(brc_dtype_ops),
                                         .parse = exact_parse,
                                         .print = fixed_bytes_print,
                                         .scan = brc_exact_bytes_scan };

struct fixed_kind {
    const char *name;
    int klass;
    size_t unit; /* length_bytes is a multiple of it                              */
    char npy;
    const brc_dtype_ops *ops;
};

static const struct fixed_kind fixed_kinds[] = {
    { "fixed_length_utf32", BRC_CLASS_STRING, 4, 'U', &utf32_ops },
    { "null_terminated_bytes", BRC_CLASS_BYTES, 1, 'S', &padded_ops },
    { "raw_bytes", BRC_CLASS_RAW, 1, 'V', &exact_ops },
};

static const struct fixed_kind *fixed_kind_of(const char *name)
{
    const struct fixed_kind *kind = fixed_kinds;
    while (strcmp(kind->name, name) != 0)
        kind++;
    return kind;
}

struct fixed_state {
    char npy[24];
};

int brc_fixed_open(void *ctx, brc_dtype *out, const char *name, const brc_json *config,
                   brc_error *err)
{
    static const char *const members[] = { "length_bytes" };
    const struct fixed_kind *kind = fixed_kind_of(ctx);
    struct fixed_state *state = NULL;
    uint64_t len = 0;
    if (config != NULL)
        BRC_TRY(brc_json_allow(config, members, 1, err));
    if (!brc_json_uint(brc_json_member(config, "length_bytes"), UINT64_MAX, &len) || len == 0 ||
        len % kind->unit != 0)
        return brc_fail(err, BRC_EINVAL, "data type %s needs \"length_bytes\", a%s above 0", name,
                        kind->unit > 1 ? " multiple of 4" : "n integer");
    if (len > BRC_MAX_ITEM_SIZE)
        return brc_fail(err, BRC_EUNSUPPORTED, "data type %s has more than %zu bytes per element",
                        name, BRC_MAX_ITEM_SIZE);
    BRC_TRY(brc_new((void **)&state, sizeof(*state), err));
    snprintf(state->npy, sizeof(state->npy), "%c%c%llu", kind->unit > 1 ? '<' : '|', kind->npy,
             (unsigned long long)(len / kind->unit));
    *out = (brc_dtype){ .size = sizeof(brc_dtype),
                        .name = kind->name,
                        .klass = kind->klass,
                        .item_size = (size_t)len,
                        .swap_unit = kind->unit,
                        .bits = (unsigned)(8 * len),
                        .npy = state->npy,
                        .ops = kind->ops,
                        .state = state };
    return BRC_OK;
}

void brc_fixed_close(void *ctx, brc_dtype *type)
{
    (void)ctx;
    free(type->state);
    type->state = NULL;
}
