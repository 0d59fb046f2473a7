/*
 * JSON text from values: compact, and indented for people.
 *
 * Number literals are written as they were read.
 */
#include <string.h>

#include "json.h"

#define INDENT "  "

/* `level`: the level of indentation; -1: compact, on one line. */
static int json_line_break(brc_buf *out, int level, brc_error *err)
{
    if (level < 0)
        return BRC_OK;
    BRC_TRY(brc_buf_byte(out, '\n', err));
    for (int i = 0; i < level; i++)
        BRC_TRY(brc_buf_text(out, INDENT, err));
    return BRC_OK;
}

static int write_json_string(brc_buf *out, const brc_json *value, brc_error *err)
{
    const char *text;
    if (brc_json_text(value, &text))
        return brc_json_quote(out, text, strlen(text), err);
    BRC_TRY(brc_buf_byte(out, '"', err));
    BRC_TRY(brc_buf_text(out, brc_json_escaped(value), err));
    return brc_buf_byte(out, '"', err);
}

static int write_json_value(brc_buf *out, const brc_json *value, int level, brc_error *err);

static int write_json_items(brc_buf *out, const brc_json *value, int level, brc_error *err)
{
    int is_object = brc_json_kind(value) == BRC_JSON_OBJECT;
    int inner = level < 0 ? level : level + 1;
    const brc_json *item = brc_json_first(value);
    if (!item)
        return brc_buf_text(out, is_object ? "{}" : "[]", err);
    BRC_TRY(brc_buf_text(out, is_object ? "{" : "[", err));
    for (; item; item = brc_json_next(item)) {
        BRC_TRY(json_line_break(out, inner, err));
        if (is_object) {
            const char *name = brc_json_own_name(item);
            BRC_TRY(brc_json_quote(out, name, strlen(name), err));
            BRC_TRY(brc_buf_text(out, level < 0 ? ":" : ": ", err));
        }
        BRC_TRY(write_json_value(out, item, inner, err));
        if (brc_json_next(item))
            BRC_TRY(brc_buf_text(out, ",", err));
    }
    BRC_TRY(json_line_break(out, level, err));
    return brc_buf_text(out, is_object ? "}" : "]", err);
}

static int write_json_value(brc_buf *out, const brc_json *value, int level, brc_error *err)
{
    int truth = 0;
    switch (brc_json_kind(value)) {
    case BRC_JSON_NULL:
        return brc_buf_text(out, "null", err);
    case BRC_JSON_BOOL:
        brc_json_bool(value, &truth);
        return brc_buf_text(out, truth ? "true" : "false", err);
    case BRC_JSON_NUMBER:
        return brc_buf_text(out, brc_json_literal(value), err);
    case BRC_JSON_STRING:
        return write_json_string(out, value, err);
    case BRC_JSON_ARRAY:
    case BRC_JSON_OBJECT:
        return write_json_items(out, value, level, err);
    default:
        return brc_fail(err, BRC_EMISUSE, "an absent JSON value cannot be written");
    }
}

int brc_json_write(brc_buf *out, const brc_json *value, brc_error *err)
{
    size_t len = out->len;
    int rc = write_json_value(out, value, -1, err);
    if (rc < 0)
        out->len = len;
    return rc;
}

int brc_json_write_pretty(brc_buf *out, const brc_json *value, brc_error *err)
{
    size_t len = out->len;
    int rc = write_json_value(out, value, 0, err);
    if (rc < 0)
        out->len = len;
    return rc;
}
