/*
 * string and bytes: elements of variable length.
 *
 * A canonical element is a little-endian uint32 of its bytes, and the bytes. A
 * string is UTF-8 and may hold U+0000; its fill value is a JSON string. The fill
 * value of bytes is base64, or an array of integers; base64 is written, because
 * every peer reads it. `bytes` has two other names in files that exist, and a type
 * keeps the name that it was read with.
 *
 * As JSON, bytes are base64; as text, see brc_bytes_print().
 */
#include <string.h>

#include "bytes_json.h"
#include "dtype_ops.h"

/* ---- what both have in common -------------------------------- */

/* Room for the count; what it counts is appended next. */
static int counted_begin(brc_buf *out, size_t *start, brc_error *err)
{
    static const uint8_t count[4];
    *start = out->len;
    return brc_buf_append(out, count, sizeof(count), err);
}

/* rc of what appended it; on failure nothing stays. */
static int counted_end(const brc_dtype *type, brc_buf *out, size_t start, int rc, brc_error *err)
{
    if (rc == BRC_OK && out->len - start - 4 > UINT32_MAX)
        rc = brc_fail(err, BRC_ELIMIT, "an element of %s has at most 2^32-1 bytes", type->name);
    if (rc == BRC_OK)
        brc_put_u32le(out->data + start, (uint32_t)(out->len - start - 4));
    else
        out->len = start;
    return rc;
}

static int counted_check(const brc_dtype *type, const uint8_t *element, size_t len, brc_error *err)
{
    if (len >= 4 && brc_get_u32le(element) == len - 4)
        return BRC_OK;
    return brc_fail(err, BRC_EINVAL, "an element of %s is not a length followed by that many bytes",
                    type->name);
}

/* ---- string -------------------------------- */

static int string_parse(const brc_dtype *type, const brc_json *json, brc_buf *out, brc_error *err)
{
    char label[BRC_VALUE_LABEL];
    size_t start = 0;
    if (brc_json_kind(json) != BRC_JSON_STRING)
        return brc_fail(err, BRC_EINVAL, "fill value %s does not fit %s (a JSON string)",
                        brc_value_label(label, json), type->name);
    BRC_TRY(counted_begin(out, &start, err));
    return counted_end(type, out, start, brc_string_read(out, json, err), err);
}

static int string_print(const brc_dtype *type, const uint8_t *element, size_t len, int how,
                        brc_buf *out, brc_error *err)
{
    BRC_TRY(counted_check(type, element, len, err));
    const char *text = (const char *)element + 4;
    if (!brc_utf8_valid_bytes(element + 4, len - 4))
        return brc_fail(err, BRC_ECORRUPT, "an element of %s is not UTF-8", type->name);
    if (how == BRC_PRINT_TEXT)
        return brc_buf_append(out, text, len - 4, err);
    return brc_json_quote(out, text, len - 4, err);
}

/* ---- bytes -------------------------------- */

static int bytes_parse(const brc_dtype *type, const brc_json *json, brc_buf *out, brc_error *err)
{
    char label[BRC_VALUE_LABEL];
    size_t start = 0;
    BRC_TRY(counted_begin(out, &start, err));
    int rc = counted_end(type, out, start, brc_bytes_read(out, json, err), err);
    if (rc == BRC_EINVAL)
        return brc_fail(err, BRC_EINVAL,
                        "fill value %s does not fit %s (integers from 0 to 255, or base64)",
                        brc_value_label(label, json), type->name);
    return rc;
}

static int bytes_print(const brc_dtype *type, const uint8_t *element, size_t len, int how,
                       brc_buf *out, brc_error *err)
{
    BRC_TRY(counted_check(type, element, len, err));
    if (how == BRC_PRINT_TEXT)
        return brc_bytes_print(out, element + 4, len - 4, err);
    BRC_TRY(brc_buf_byte(out, '"', err));
    BRC_TRY(brc_base64_write(out, element + 4, len - 4, err));
    return brc_buf_byte(out, '"', err);
}

/* ---- text as people type it -------------------------------- */

/* A string in quotes is JSON; anything else, 12 and true as well, is the text itself. */
static int string_scan(const brc_dtype *type, const char *text, const brc_json *json, brc_buf *out,
                       brc_error *err)
{
    size_t start = 0;
    if (brc_json_kind(json) == BRC_JSON_STRING)
        return 0;
    BRC_TRY(brc_text_is_utf8(type, text, err));
    BRC_TRY(counted_begin(out, &start, err));
    BRC_TRY(counted_end(type, out, start, brc_buf_text(out, text, err), err));
    return 1;
}

/* So is a list of bytes. */
static int bytes_scan(const brc_dtype *type, const char *text, const brc_json *json, brc_buf *out,
                      brc_error *err)
{
    int kind = brc_json_kind(json);
    size_t start = 0;
    if (kind == BRC_JSON_STRING || kind == BRC_JSON_ARRAY)
        return 0;
    BRC_TRY(counted_begin(out, &start, err));
    BRC_TRY(counted_end(type, out, start, brc_bytes_scan(out, text, err), err));
    return 1;
}

/* ---- the table -------------------------------- */

static const brc_dtype_ops string_ops = { .size = sizeof(brc_dtype_ops),
                                          .parse = string_parse,
                                          .print = string_print,
                                          .scan = string_scan };
static const brc_dtype_ops bytes_ops = { .size = sizeof(brc_dtype_ops),
                                         .parse = bytes_parse,
                                         .print = bytes_print,
                                         .scan = bytes_scan };

#define VARIABLE(name_, klass_, ops_)                                                 \
    {                                                                                 \
        .size = sizeof(brc_dtype), .name = name_, .klass = klass_, .swap_unit = 1,    \
        .ops = &ops_                                                                  \
    }

const brc_dtype brc_text_types[BRC_TEXT_TYPES] = {
    VARIABLE("string", BRC_CLASS_STRING, string_ops),
    VARIABLE("bytes", BRC_CLASS_BYTES, bytes_ops),
    VARIABLE("variable_length_bytes", BRC_CLASS_BYTES, bytes_ops),
    VARIABLE("binary", BRC_CLASS_BYTES, bytes_ops),
};
