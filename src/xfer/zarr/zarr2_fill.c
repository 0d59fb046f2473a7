/*
 * Fill values. v2 writes numbers as v3 does, and the bytes of S, V and structures
 * in base64, structures in the byte order of their fields.
 *
 * Writers also gave 0 or "" to what has no such value, whole floats to integers,
 * and null, which leaves it open and is read as zero bytes.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "../../base/alloc.h"
#include "../../nd/bytes_json.h"
#include "../../nd/dtype.h"
#include "zarr2.h"

/* 2^53: up to here a double holds every integer. */
#define DOUBLE_EXACT 9007199254740992.0

static int bad_fill(brc_error *err, const char *what)
{
    return brc_fail(err, BRC_EINVAL, "/fill_value: %s", what);
}

static int is_zero(const brc_json *fill)
{
    double number;
    return brc_json_kind(fill) == BRC_JSON_NULL || (brc_json_kind(fill) == BRC_JSON_NUMBER &&
                                                    brc_json_double(fill, &number) && number == 0);
}

/* ---- from v2 -------------------------------- */

/* One element's bytes as v3's fill value of the type. */
static int print_element(brc_buf *out, brc_buf *element, const brc_zarr2_type *type,
                         const brc_registry *reg, brc_error *err)
{
    brc_json *name = NULL;
    brc_dtype *dtype = NULL;
    int rc;

    BRC_GO(brc_json_parse(&name, (const char *)type->json.data, type->json.len, err));
    rc = brc_dtype_open(&dtype, reg, name, err);
    if (rc < 0) {
        brc_context(err, "/dtype");
        goto done;
    }
    if (dtype->item_size != element->len) {
        rc = brc_fail(err, BRC_EINTERNAL, "/fill_value: %zu bytes of %zu", element->len,
                      dtype->item_size);
        goto done;
    }
    if (type->order == '>')
        brc_dtype_swap(dtype, element->data, element->data, 1);
    BRC_GO(dtype->ops->print(dtype, element->data, element->len, BRC_PRINT_FILL, out, err));
done:
    brc_dtype_free(dtype);
    brc_json_free(name);
    return rc;
}

/* S, V and structures. NumPy leaves the zero bytes at the end of an S out. */
static int read_bytes_fill(brc_buf *out, const brc_json *fill, const brc_zarr2_type *type,
                           const brc_registry *reg, brc_error *err)
{
    brc_buf element = BRC_BUF_INIT;
    const char *text;
    int rc = BRC_OK;

    if (!is_zero(fill)) {
        if (!brc_json_text(fill, &text))
            BRC_GO(bad_fill(err, "must be base64 for this data type"));
        rc = brc_base64_read(&element, text, err);
        if (rc == BRC_EINVAL)
            rc = bad_fill(err, "is not valid base64");
        BRC_GO(rc);
    }
    if (element.len > type->size ||
        (element.len < type->size && element.len > 0 && type->kind != 'S'))
        BRC_GO(brc_fail(err, BRC_EINVAL, "/fill_value: is %zu bytes in base64, an element is %llu",
                        element.len, (unsigned long long)type->size));
    size_t left = (size_t)type->size - element.len;
    BRC_GO(brc_buf_reserve(&element, left, err));
    memset(element.data + element.len, 0, left);
    element.len += left;
    BRC_GO(print_element(out, &element, type, reg, err));
done:
    brc_buf_dispose(&element);
    return rc;
}

static int read_bool_fill(brc_buf *out, const brc_json *fill, brc_error *err)
{
    double number;
    int value;
    if (brc_json_bool(fill, &value))
        return brc_buf_text(out, value ? "true" : "false", err);
    if (!is_zero(fill) && (!brc_json_double(fill, &number) || number != 1))
        return bad_fill(err, "must be true or false");
    return brc_buf_text(out, is_zero(fill) ? "false" : "true", err);
}

/* Integers and times: "0.0" is a zero too. */
static int read_int_fill(brc_buf *out, const brc_json *fill, int is_time, brc_error *err)
{
    double number;

    if (brc_json_kind(fill) == BRC_JSON_NULL)
        return brc_buf_byte(out, '0', err);
    if (is_time && brc_json_is(fill, "NaT"))
        return brc_json_write(out, fill, err);
    if (brc_json_kind(fill) != BRC_JSON_NUMBER)
        return bad_fill(err, is_time ? "must be an integer or \"NaT\"" : "must be an integer");
    if (!strpbrk(brc_json_literal(fill), ".eE"))
        return brc_json_write(out, fill, err);
    if (!brc_json_double(fill, &number) || floor(number) != number || fabs(number) > DOUBLE_EXACT)
        return bad_fill(err, "must be an integer");
    return brc_buf_printf(out, err, "%lld", (long long)number);
}

static int read_float_fill(brc_buf *out, const brc_json *fill, brc_error *err)
{
    if (brc_json_kind(fill) == BRC_JSON_NULL)
        return brc_buf_text(out, "0.0", err);
    if (brc_json_kind(fill) != BRC_JSON_NUMBER && brc_json_kind(fill) != BRC_JSON_STRING)
        return bad_fill(err, "must be a number, \"NaN\", \"Infinity\" or \"-Infinity\"");
    return brc_json_write(out, fill, err);
}

static int read_complex_fill(brc_buf *out, const brc_json *fill, brc_error *err)
{
    if (brc_json_kind(fill) == BRC_JSON_ARRAY)
        return brc_json_write(out, fill, err);
    BRC_TRY(brc_buf_byte(out, '[', err));
    BRC_TRY(read_float_fill(out, fill, err));
    return brc_buf_text(out, ",0.0]", err);
}

/* U, and objects, which are strings or bytes here. */
static int read_text_fill(brc_buf *out, const brc_json *fill, brc_error *err)
{
    if (is_zero(fill))
        return brc_buf_text(out, "\"\"", err);
    if (brc_json_kind(fill) != BRC_JSON_STRING)
        return bad_fill(err, "must be a string");
    return brc_json_write(out, fill, err);
}

int brc_zarr2_fill_read(brc_buf *out, const brc_json *fill, const brc_zarr2_type *type,
                        const brc_registry *reg, brc_error *err)
{
    if (!fill)
        return bad_fill(err, "is missing");
    switch (type->kind) {
    case 'b':
        return read_bool_fill(out, fill, err);
    case 'i':
    case 'u':
        return read_int_fill(out, fill, 0, err);
    case 'M':
    case 'm':
        return read_int_fill(out, fill, 1, err);
    case 'f':
        return read_float_fill(out, fill, err);
    case 'c':
        return read_complex_fill(out, fill, err);
    case 'U':
    case 'O':
        return read_text_fill(out, fill, err);
    case 'X':
        return brc_json_write(out, fill, err);
    default:
        return read_bytes_fill(out, fill, type, reg, err);
    }
}

/* ---- to v2 -------------------------------- */

static int write_base64(brc_buf *out, const uint8_t *data, size_t len, brc_error *err)
{
    BRC_TRY(brc_buf_byte(out, '"', err));
    BRC_TRY(brc_base64_write(out, data, len, err));
    return brc_buf_byte(out, '"', err);
}

/* A NaN with a payload is written in hex digits by v3 alone. */
static int has_hex(const brc_json *fill)
{
    const char *text;
    if (brc_json_kind(fill) == BRC_JSON_ARRAY)
        return has_hex(brc_json_item(fill, 0)) || has_hex(brc_json_item(fill, 1));
    return brc_json_text(fill, &text) && strncmp(text, "0x", 2) == 0;
}

static int write_float_fill(brc_buf *out, const brc_json *fill, const brc_dtype *type,
                            const brc_buf *element, brc_error *err)
{
    brc_buf text = BRC_BUF_INIT;
    brc_json *canonical = NULL;
    int rc;

    if (!has_hex(fill))
        return brc_json_write(out, fill, err);
    BRC_GO(type->ops->print(type, element->data, element->len, BRC_PRINT_FILL, &text, err));
    BRC_GO(brc_json_parse(&canonical, (const char *)text.data, text.len, err));
    if (has_hex(canonical))
        rc = brc_fail(err, BRC_EUNSUPPORTED,
                      "/fill_value: Zarr v2 cannot express the bits of this NaN: %.*s",
                      (int)text.len, (const char *)text.data);
    else
        rc = brc_json_write(out, canonical, err);
done:
    brc_json_free(canonical);
    brc_buf_dispose(&text);
    return rc;
}

static int write_element(brc_buf *out, const brc_json *fill, const brc_dtype *type,
                         brc_buf *element, char order, brc_error *err)
{
    size_t len = element->len;
    switch (type->klass) {
    case BRC_CLASS_FLOAT:
    case BRC_CLASS_COMPLEX:
        return write_float_fill(out, fill, type, element, err);
    case BRC_CLASS_BYTES:
        if (type->item_size == 0)
            return write_base64(out, element->data + 4, len - 4, err);
        while (len > 0 && strcmp(type->name, "null_terminated_bytes") == 0 &&
               element->data[len - 1] == 0)
            len--;
        return write_base64(out, element->data, len, err);
    case BRC_CLASS_RAW:
        return write_base64(out, element->data, len, err);
    case BRC_CLASS_STRUCT:
        if (order == '>')
            brc_dtype_swap(type, element->data, element->data, 1);
        return write_base64(out, element->data, len, err);
    default:
        return brc_json_write(out, fill, err);
    }
}

static int is_zeros(const brc_buf *element)
{
    size_t i = 0;
    while (i < element->len && element->data[i] == 0)
        i++;
    return i == element->len;
}

int brc_zarr2_fill_write(brc_buf *out, const brc_json *doc, char order, int gaps,
                         const brc_registry *reg, brc_error *err)
{
    const brc_json *fill = brc_json_member(doc, "fill_value");
    brc_buf element = BRC_BUF_INIT;
    brc_dtype *type = NULL;
    int rc;

    BRC_GO(brc_dtype_open(&type, reg, brc_json_member(doc, "data_type"), err));
    rc = type->ops->parse(type, fill, &element, err);
    if (rc < 0)
        brc_context(err, "/fill_value");
    else if (brc_meta_lacks_fill(doc) && (!gaps || is_zeros(&element)))
        rc = brc_buf_text(out, "null", err);
    else
        rc = write_element(out, fill, type, &element, order, err);
done:
    brc_dtype_free(type);
    brc_buf_dispose(&element);
    return rc;
}
