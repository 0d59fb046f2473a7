/*
 * Attributes between JSON and the typed lists that NetCDF and HDF5 have.
 *
 * A list is of one kind: of texts, of booleans or of numbers. Numbers are integers
 * where all of them are, else doubles. Everything else is kept as JSON text.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../../base/alloc.h"
#include "../../nd/bytes_json.h"
#include "../../nd/dtype.h"
#include "convert_attr.h"

/* ---- to JSON -------------------------------- */

static brc_json *literal(const char *text)
{
    brc_json *out;
    return brc_json_parse(&out, text, strlen(text), NULL) < 0 ? NULL : out;
}

brc_json *brc_attr_int(int64_t value)
{
    char text[32];
    snprintf(text, sizeof(text), "%lld", (long long)value);
    return literal(text);
}

brc_json *brc_attr_uint(uint64_t value)
{
    return brc_json_new_uint(value);
}

brc_json *brc_attr_float(double value)
{
    char text[BRC_FLOAT_TEXT];
    uint64_t bits;
    uint8_t element[8];

    memcpy(&bits, &value, sizeof(bits));
    brc_put_u64le(element, bits);
    brc_float_text(text, element, sizeof(element));
    return brc_json_new_number(text);
}

/* Each byte is the code point: one or two bytes of UTF-8. */
static int append_latin1(brc_buf *out, const char *text, size_t len)
{
    for (size_t i = 0; i < len; i++) {
        uint8_t c = (uint8_t)text[i];
        if (c >= 0x80)
            BRC_TRY(brc_buf_byte(out, (uint8_t)(0xC0 | c >> 6), NULL));
        BRC_TRY(brc_buf_byte(out, c < 0x80 ? c : (uint8_t)(0x80 | (c & 0x3F)), NULL));
    }
    return BRC_OK;
}

brc_json *brc_attr_text(const char *text, size_t len)
{
    brc_buf utf8 = BRC_BUF_INIT;
    brc_json *out = NULL;
    int rc;

    len = strnlen(text, len);
    if (brc_utf8_valid(text, len))
        rc = brc_buf_append(&utf8, text, len, NULL);
    else
        rc = append_latin1(&utf8, text, len);
    if (rc == BRC_OK && brc_buf_terminate(&utf8, NULL) == BRC_OK)
        out = brc_json_new_string((const char *)utf8.data);
    brc_buf_dispose(&utf8);
    return out;
}

int brc_attr_fill_is_packed(const char *dtype)
{
    return dtype && (strcmp(dtype, "float16") == 0 || strcmp(dtype, "float32") == 0 ||
                     strcmp(dtype, "float64") == 0);
}

brc_json *brc_attr_fill(double value)
{
    brc_buf text = BRC_BUF_INIT;
    brc_json *out = NULL;
    uint64_t bits;
    uint8_t le[8];

    memcpy(&bits, &value, sizeof(bits));
    brc_put_u64le(le, bits);
    if (brc_base64_write(&text, le, sizeof(le), NULL) == BRC_OK &&
        brc_buf_terminate(&text, NULL) == BRC_OK)
        out = brc_json_new_string((const char *)text.data);
    brc_buf_dispose(&text);
    return out;
}

int brc_attr_fill_value(const brc_json *value, double *out)
{
    const char *text;
    brc_buf bytes = BRC_BUF_INIT;
    int found = brc_json_text(value, &text) && strlen(text) == 12 && text[11] == '=' &&
                brc_base64_read(&bytes, text, NULL) == BRC_OK && bytes.len == sizeof(*out);
    if (found) {
        uint64_t bits = brc_get_u64le(bytes.data);
        memcpy(out, &bits, sizeof(bits));
    }
    brc_buf_dispose(&bytes);
    return found;
}

/* ---- from JSON -------------------------------- */

/* What one value is; BRC_ATTR_JSON: a file cannot hold it. */
static int kind_of(const brc_json *value)
{
    const char *text;
    int64_t i;
    uint64_t u;

    switch (brc_json_kind(value)) {
    case BRC_JSON_STRING:
        return brc_json_text(value, &text) ? BRC_ATTR_TEXT : BRC_ATTR_JSON;
    case BRC_JSON_BOOL:
        return BRC_ATTR_BOOL;
    case BRC_JSON_NUMBER:
        if (brc_json_int(value, INT64_MIN, INT64_MAX, &i))
            return BRC_ATTR_INT;
        return brc_json_uint(value, UINT64_MAX, &u) ? BRC_ATTR_UINT : BRC_ATTR_FLOAT;
    default:
        return BRC_ATTR_JSON;
    }
}

static int is_number(int kind)
{
    return kind == BRC_ATTR_INT || kind == BRC_ATTR_UINT || kind == BRC_ATTR_FLOAT;
}

/* The kind that holds values of both. Negative ones beside those past INT64_MAX
 * have only doubles in common, which would round: the text is exact. */
static int joined_kind(int a, int b, int negative)
{
    if (a == b)
        return a;
    if (!is_number(a) || !is_number(b))
        return BRC_ATTR_JSON;
    if (a == BRC_ATTR_FLOAT || b == BRC_ATTR_FLOAT)
        return BRC_ATTR_FLOAT;
    return negative ? BRC_ATTR_JSON : BRC_ATTR_UINT;
}

static int list_kind(const brc_json *list)
{
    const brc_json *item = brc_json_first(list);
    int64_t below;
    int negative = 0;

    if (!item)
        return BRC_ATTR_JSON;
    int kind = kind_of(item);
    for (; item; item = brc_json_next(item))
        negative |= brc_json_int(item, INT64_MIN, -1, &below);
    for (item = brc_json_first(list); item; item = brc_json_next(item))
        kind = joined_kind(kind, kind_of(item), negative);
    return kind;
}

/* The value's JSON text, as the attribute's only text. */
static int take_json(brc_attr *out, const brc_json *value, brc_error *err)
{
    brc_buf text = BRC_BUF_INIT;
    int rc;
    BRC_GO(brc_json_write(&text, value, err));
    BRC_GO(brc_buf_take_text(&text, &out->texts[0], err));
done:
    brc_buf_dispose(&text);
    return rc;
}

static int take_value(brc_attr *out, size_t i, const brc_json *value, brc_error *err)
{
    const char *text;
    int truth = 0;
    switch (out->kind) {
    case BRC_ATTR_TEXT:
        if (!brc_json_text(value, &text))
            return brc_fail(err, BRC_EINTERNAL, "an attribute with U+0000 taken for a text");
        return brc_dup(&out->texts[i], text, err);
    case BRC_ATTR_BOOL:
        brc_json_bool(value, &truth);
        out->ints[i] = truth;
        return BRC_OK;
    case BRC_ATTR_INT:
        brc_json_int(value, INT64_MIN, INT64_MAX, &out->ints[i]);
        return BRC_OK;
    case BRC_ATTR_UINT:
        brc_json_uint(value, UINT64_MAX, &out->uints[i]);
        return BRC_OK;
    case BRC_ATTR_FLOAT:
        brc_json_double(value, &out->floats[i]);
        return BRC_OK;
    default:
        return take_json(out, value, err);
    }
}

static int make_room(brc_attr *out, brc_error *err)
{
    if (out->kind == BRC_ATTR_TEXT || out->kind == BRC_ATTR_JSON)
        return brc_new_array((void **)&out->texts, out->n, sizeof(*out->texts), err);
    if (out->kind == BRC_ATTR_UINT)
        return brc_new_array((void **)&out->uints, out->n, sizeof(*out->uints), err);
    if (out->kind == BRC_ATTR_FLOAT)
        return brc_new_array((void **)&out->floats, out->n, sizeof(*out->floats), err);
    return brc_new_array((void **)&out->ints, out->n, sizeof(*out->ints), err);
}

int brc_attr_open(brc_attr *out, const brc_json *value, brc_error *err)
{
    int is_list = brc_json_kind(value) == BRC_JSON_ARRAY, rc;

    memset(out, 0, sizeof(*out));
    out->kind = is_list ? list_kind(value) : kind_of(value);
    out->list = is_list && out->kind != BRC_ATTR_JSON;
    out->n = out->list ? brc_json_count(value) : 1;
    BRC_GO(make_room(out, err));
    if (!out->list)
        BRC_GO(take_value(out, 0, value, err));
    const brc_json *item = out->list ? brc_json_first(value) : NULL;
    for (size_t i = 0; item; item = brc_json_next(item), i++)
        BRC_GO(take_value(out, i, item, err));
done:
    if (rc < 0)
        brc_attr_close(out);
    return rc;
}

int brc_attr_check_count(uint64_t n, const char *label, brc_error *err)
{
    if (n <= BRC_ATTR_MOST)
        return BRC_OK;
    return brc_part_refuse(err, BRC_PART_SIZE, "make an array of them",
                           "%s has %llu attributes, and at most %d can be imported", label,
                           (unsigned long long)n, BRC_ATTR_MOST);
}

void brc_attr_close(brc_attr *attr)
{
    for (size_t i = 0; attr->texts && i < attr->n; i++)
        free(attr->texts[i]);
    free(attr->texts);
    free(attr->ints);
    free(attr->uints);
    free(attr->floats);
    memset(attr, 0, sizeof(*attr));
}

/* ---- notes -------------------------------- */

int brc_note_numbers(brc_json *note, const char *member, const uint64_t *numbers, int n,
                     brc_error *err)
{
    brc_json *list = brc_json_new_array();
    int rc = list ? BRC_OK : brc_nomem(err);
    for (int i = 0; i < n && rc == BRC_OK; i++)
        rc = brc_json_push(
            list, numbers[i] == UINT64_MAX ? brc_json_new_null() : brc_json_new_uint(numbers[i]),
            err);
    if (rc == BRC_OK)
        return brc_json_set(note, member, list, err);
    brc_json_free(list);
    return rc;
}

int brc_note_texts(brc_json *note, const char *member, char *const *texts, int n, brc_error *err)
{
    brc_json *list = brc_json_new_array();
    int rc = list ? BRC_OK : brc_nomem(err);
    for (int i = 0; i < n && rc == BRC_OK; i++)
        rc = brc_json_push(list, texts[i] ? brc_json_new_string(texts[i]) : brc_json_new_null(),
                           err);
    if (rc == BRC_OK)
        return brc_json_set(note, member, list, err);
    brc_json_free(list);
    return rc;
}
