/*
 * Fill values and data types. v2 writes numbers as v3 does, and the bytes of S, V and structures in
 * base64, structures in the byte order of their fields.
 *
 * Some writers gave 0 or "" to types without such a value, whole floats to integers, and null,
 * which leaves the value open and is read as zero bytes.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../../base/alloc.h"
#include "../../base/json.h"
#include "../../nd/dtype.h"
#include "../../nd/dtype_text.h"
#include "zarr2.h"

/* ==== zarr2 fill ================================ */

/* 2^53: a double holds every integer up to here. */
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

/* Prints one element's bytes as v3's fill value of the type. */
static int print_element(brc_buf *out, brc_buf *element, const brc_zarr2_type *type,
                         const brc_registry *reg, brc_error *err)
{
    brc_json *name = NULL;
    brc_dtype *dtype = NULL;
    int rc;

    BRC_GO(brc_json_parse(&name, (const char *)type->json.data, type->json.len, 0, err));
    rc = brc_dtype_open(&dtype, reg, name, NULL, err);
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

/* Reads the fill value of S, V and structures. NumPy omits the zero bytes at the end of an S. */
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

/* Reads the fill value of integers and times: "0.0" is a zero too. */
static int read_int_fill(brc_buf *out, const brc_json *fill, int is_time, brc_error *err)
{
    double number;

    if (brc_json_kind(fill) == BRC_JSON_NULL)
        return brc_buf_byte(out, '0', err);
    if (is_time && brc_json_is(fill, "NaT"))
        return brc_json_write(out, fill, 0, err);
    if (brc_json_kind(fill) != BRC_JSON_NUMBER)
        return bad_fill(err, is_time ? "must be an integer or \"NaT\"" : "must be an integer");
    if (!strpbrk(brc_json_literal(fill), ".eE"))
        return brc_json_write(out, fill, 0, err);
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
    return brc_json_write(out, fill, 0, err);
}

static int read_complex_fill(brc_buf *out, const brc_json *fill, brc_error *err)
{
    if (brc_json_kind(fill) == BRC_JSON_ARRAY)
        return brc_json_write(out, fill, 0, err);
    BRC_TRY(brc_buf_byte(out, '[', err));
    BRC_TRY(read_float_fill(out, fill, err));
    return brc_buf_text(out, ",0.0]", err);
}

/* Reads the fill value of U, and of objects, which are strings or bytes here. */
static int read_text_fill(brc_buf *out, const brc_json *fill, brc_error *err)
{
    if (is_zero(fill))
        return brc_buf_text(out, "\"\"", err);
    if (brc_json_kind(fill) != BRC_JSON_STRING)
        return bad_fill(err, "must be a string");
    return brc_json_write(out, fill, 0, err);
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
        return brc_json_write(out, fill, 0, err);
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

/* Tells whether a NaN has a payload, which only v3 writes, in hex digits. */
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
        return brc_json_write(out, fill, 0, err);
    BRC_GO(type->ops->print(type, element->data, element->len, BRC_PRINT_FILL, &text, err));
    BRC_GO(brc_json_parse(&canonical, (const char *)text.data, text.len, 0, err));
    if (has_hex(canonical))
        rc = brc_fail(err, BRC_EUNSUPPORTED,
                      "/fill_value: Zarr v2 cannot express the bits of this NaN: %.*s",
                      (int)text.len, (const char *)text.data);
    else
        rc = brc_json_write(out, canonical, 0, err);
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
        return brc_json_write(out, fill, 0, err);
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

    BRC_GO(brc_dtype_open(&type, reg, brc_json_member(doc, "data_type"), NULL, err));
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

/* ==== zarr2 type ================================ */

/*
 * Data types: NumPy's "<f4" and lists of fields, and v3's names.
 *
 *   "<M8[10us]"   order, kind, bytes (of M and m also a unit)
 *   [["a", "<i4"], ["b", [["x", "<f4"]]]]   a structure, packed
 *   [["a", "<i4", [2, 3]]]   a field that is an array: for v3 a structure of the
 *                            fields "0" and "1", each of the fields "0", "1", "2"
 *
 * Fields that are objects, or that differ in byte order, and objects that are neither strings nor
 * bytes have no type in v3. Such a type gets the name that NumPy gives it, "numpy.dtype": its array
 * can be kept, but not read. An import first gives fields one byte order (zarr2_order.c).
 */

typedef struct plain_type {
    const char *v3;
    char kind;
    unsigned size;
} plain_type;

static const plain_type plain_types[] = {
    { "bool", 'b', 1 },      { "int8", 'i', 1 },        { "int16", 'i', 2 },
    { "int32", 'i', 4 },     { "int64", 'i', 8 },       { "uint8", 'u', 1 },
    { "uint16", 'u', 2 },    { "uint32", 'u', 4 },      { "uint64", 'u', 8 },
    { "float16", 'f', 2 },   { "float32", 'f', 4 },     { "float64", 'f', 8 },
    { "complex64", 'c', 8 }, { "complex128", 'c', 16 },
};
#define N_PLAIN_TYPES (sizeof(plain_types) / sizeof(plain_types[0]))

static const char *const time_units[] = { "Y",  "M",  "W",  "D",  "h",  "m",  "s",
                                          "ms", "us", "ns", "ps", "fs", "as", "generic" };

static int no_such_dtype(brc_error *err, const char *text)
{
    return brc_fail(err, BRC_EUNSUPPORTED, "/dtype: \"%.60s\" is not a known data type", text);
}

static int bad_dtype_text(brc_error *err)
{
    return brc_fail(err, BRC_EINVAL, "/dtype: a name with U+0000 in it is not valid");
}

static int is_v3_name(const char *name, const char *const *names, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (strcmp(name, names[i]) == 0)
            return 1;
    return 0;
}

/* ---- from v2 -------------------------------- */

/* Reads a decimal number without sign; moves *text past it. */
static int read_decimal(const char **text, uint64_t max, uint64_t *out)
{
    const char *at = *text;
    uint64_t n = 0;
    if (*at < '0' || *at > '9')
        return 0;
    for (; *at >= '0' && *at <= '9'; at++)
        if (!brc_mul_u64(n, 10, &n) || !brc_add_u64(n, (uint64_t)(*at - '0'), &n) || n > max)
            return 0;
    *text = at;
    *out = n;
    return 1;
}

/* Reads "[10us]", or nothing, after "<M8". */
static int read_time(brc_zarr2_type *out, const char *unit, const char *text, brc_error *err)
{
    uint64_t scale = 1;
    size_t len = 7;

    if (*unit == 0) {
        unit = "generic";
    } else {
        if (*unit++ != '[')
            return no_such_dtype(err, text);
        if (*unit >= '0' && *unit <= '9' && (!read_decimal(&unit, INT32_MAX, &scale) || scale == 0))
            return no_such_dtype(err, text);
        len = strcspn(unit, "]");
        if (unit[len] != ']' || unit[len + 1] != 0)
            return no_such_dtype(err, text);
        if (len == 3 && (memcmp(unit, "\xCE\xBCs", 3) == 0 || memcmp(unit, "\xC2\xB5s", 3) == 0)) {
            unit = "us";
            len = 2;
        }
    }
    size_t i = 0, n = sizeof(time_units) / sizeof(time_units[0]);
    while (i < n && (strlen(time_units[i]) != len || memcmp(time_units[i], unit, len) != 0))
        i++;
    if (i == n)
        return no_such_dtype(err, text);
    return brc_buf_printf(&out->json, err,
                          "{\"name\":\"numpy.%s64\",\"configuration\":{\"unit\":\"%s\","
                          "\"scale_factor\":%u}}",
                          out->kind == 'M' ? "datetime" : "timedelta", time_units[i],
                          (unsigned)scale);
}

/* Reads S, U and V, which have any length, so the length is in the name or the configuration. */
static int read_sized(brc_zarr2_type *out, const char *text, brc_error *err)
{
    if (out->size == 0)
        return brc_fail(err, BRC_EUNSUPPORTED,
                        "/dtype: elements of \"%.60s\" have no bytes, which Zarr v3 does not allow",
                        text);
    if (out->kind == 'V')
        return brc_buf_printf(&out->json, err, "\"r%llu\"", (unsigned long long)out->size * 8);
    if (out->kind == 'U')
        out->size *= 4;
    return brc_buf_printf(&out->json, err,
                          "{\"name\":\"%s\",\"configuration\":{\"length_bytes\":%llu}}",
                          out->kind == 'S' ? "null_terminated_bytes" : "fixed_length_utf32",
                          (unsigned long long)out->size);
}

static int read_plain(brc_zarr2_type *out, const char *text, brc_error *err)
{
    for (size_t i = 0; i < N_PLAIN_TYPES; i++)
        if (plain_types[i].kind == out->kind && plain_types[i].size == out->size)
            return brc_buf_printf(&out->json, err, "\"%s\"", plain_types[i].v3);
    return no_such_dtype(err, text);
}

static int read_type_text(brc_zarr2_type *out, const char *text, brc_error *err)
{
    if (!*text || !strchr("<>|", text[0]) || !text[1] || !strchr("biufcMmSUVO", text[1]))
        return no_such_dtype(err, text);
    out->order = text[0];
    out->kind = text[1];
    const char *at = text + 2;
    if (out->kind == 'O') {
        out->order = '|';
        return *at == 0 ? BRC_OK : no_such_dtype(err, text);
    }
    if (!read_decimal(&at, UINT32_MAX / 8, &out->size))
        return no_such_dtype(err, text);
    int is_time = out->kind == 'M' || out->kind == 'm';
    if (is_time ? out->size != 8 : *at != 0)
        return no_such_dtype(err, text);
    if (out->kind == 'S' || out->kind == 'V' || (out->kind != 'U' && out->size == 1))
        out->order = '|';
    else if (out->order == '|' && out->size > 0)
        return brc_fail(err, BRC_EINVAL, "/dtype: \"%.60s\" does not say its byte order", text);
    if (is_time)
        return read_time(out, at, text, err);
    return strchr("SUV", out->kind) ? read_sized(out, text, err) : read_plain(out, text, err);
}

static int read_struct(brc_zarr2_type *out, const brc_json *fields, brc_error *err);

static int read_any_type(brc_zarr2_type *out, const brc_json *dtype, brc_error *err)
{
    const char *text;
    switch (brc_json_kind(dtype)) {
    case BRC_JSON_STRING:
        return brc_json_text(dtype, &text) ? read_type_text(out, text, err)
                                           : bad_dtype_text(err);
    case BRC_JSON_ARRAY:
        return read_struct(out, dtype, err);
    default:
        return brc_fail(err, BRC_EINVAL, "/dtype: must be a string or a list of fields");
    }
}

/* Limits: a structure with a subarray of more elements or axes, or with a longer name in v3, is
 * kept as it is. */
#define MAX_SUBARRAY      4096
#define MAX_SUBARRAY_NDIM 8
#define MAX_STRUCT_JSON   ((size_t)1 << 20)

/* Makes of the type a structure of n fields of that type, which are named by their numbers. */
static int repeat_type(brc_zarr2_type *type, uint64_t n, brc_error *err)
{
    brc_buf all = BRC_BUF_INIT;
    int rc;

    BRC_GO(brc_buf_text(&all, "{\"name\":\"struct\",\"configuration\":{\"fields\":[", err));
    for (uint64_t i = 0; i < n; i++) {
        BRC_GO(brc_buf_printf(&all, err, "%s{\"name\":\"%llu\",\"data_type\":", i ? "," : "",
                              (unsigned long long)i));
        BRC_GO(brc_buf_append(&all, type->json.data, type->json.len, err));
        BRC_GO(brc_buf_byte(&all, '}', err));
    }
    BRC_GO(brc_buf_text(&all, "]}}", err));
    brc_buf_dispose(&type->json);
    type->json = all;
    type->size *= n;
    return BRC_OK;
done:
    brc_buf_dispose(&all);
    return rc;
}

/* Reads the third item of a field, an integer or a list of integers; kind X if the item is not
 * supported. */
static int read_subarray(brc_zarr2_type *type, const brc_json *shape, brc_error *err)
{
    int is_list = brc_json_kind(shape) == BRC_JSON_ARRAY;
    size_t ndim = is_list ? brc_json_count(shape) : 1;
    uint64_t total = 1, n;

    if (ndim > MAX_SUBARRAY_NDIM)
        type->kind = 'X';
    for (size_t i = ndim; type->kind != 'X' && i-- > 0;) {
        if (!brc_json_uint(is_list ? brc_json_item(shape, i) : shape, UINT32_MAX, &n))
            return brc_fail(err, BRC_EINVAL, "/dtype: the shape of a field must be integers");
        total *= n;
        if (n == 0 || total > MAX_SUBARRAY || type->json.len + 40 > MAX_STRUCT_JSON / n)
            type->kind = 'X';
        else
            BRC_TRY(repeat_type(type, n, err));
    }
    return BRC_OK;
}

/* Reads [name, dtype] or [name, dtype, shape], and appends it to the structure's fields. */
static int read_field(brc_zarr2_type *out, const brc_json *field, brc_error *err)
{
    brc_zarr2_type type = { BRC_BUF_INIT, 0, '|', 0, 0 };
    size_t n = brc_json_count(field);
    const char *name;
    int rc;

    if (brc_json_kind(field) != BRC_JSON_ARRAY || n < 2 || n > 3 ||
        !brc_json_text(brc_json_item(field, 0), &name))
        return brc_fail(err, BRC_EINVAL, "/dtype: a field must be a name and a data type");
    BRC_GO(read_any_type(&type, brc_json_item(field, 1), err));
    if (n == 3 && type.kind != 'O' && type.kind != 'X' && out->kind != 'X')
        BRC_GO(read_subarray(&type, brc_json_item(field, 2), err));
    int differs = type.order != '|' && out->order != '|' && type.order != out->order;
    if (type.kind == 'O' || type.kind == 'X' || differs ||
        out->json.len + type.json.len > MAX_STRUCT_JSON)
        out->kind = 'X';
    if (type.order != '|')
        out->order = type.order;
    out->size += type.size;
    if (out->kind == 'X') /* named as a whole after all its fields */
        goto done;
    BRC_GO(brc_buf_text(&out->json, "{\"name\":", err));
    BRC_GO(brc_json_quote(&out->json, name, strlen(name), err));
    BRC_GO(brc_buf_text(&out->json, ",\"data_type\":", err));
    BRC_GO(brc_buf_append(&out->json, type.json.data, type.json.len, err));
    BRC_GO(brc_buf_byte(&out->json, '}', err));
done:
    brc_buf_dispose(&type.json);
    return rc;
}

static int read_struct(brc_zarr2_type *out, const brc_json *fields, brc_error *err)
{
    out->kind = 'T';
    out->order = '|';
    if (brc_json_count(fields) == 0)
        return brc_fail(err, BRC_EINVAL, "/dtype: a structure must have fields");
    BRC_TRY(brc_buf_text(&out->json, "{\"name\":\"struct\",\"configuration\":{\"fields\":[", err));
    for (const brc_json *f = brc_json_first(fields); f; f = brc_json_next(f)) {
        if (f != brc_json_first(fields))
            BRC_TRY(brc_buf_byte(&out->json, ',', err));
        BRC_TRY(read_field(out, f, err));
    }
    if (out->kind == 'X')
        return brc_zarr2_type_opaque(out, fields, err);
    return brc_buf_text(&out->json, "]}}", err);
}

int brc_zarr2_type_opaque(brc_zarr2_type *type, const brc_json *dtype, brc_error *err)
{
    type->kind = 'X';
    type->order = '|';
    type->size = type->json.len = 0;
    BRC_TRY(
        brc_buf_text(&type->json, "{\"name\":\"numpy.dtype\",\"configuration\":{\"descr\":", err));
    BRC_TRY(brc_json_write(&type->json, dtype, 0, err));
    return brc_buf_text(&type->json, "}}", err);
}

int brc_zarr2_type_read(brc_zarr2_type *out, const brc_json *dtype, brc_error *err)
{
    *out = (brc_zarr2_type){ BRC_BUF_INIT, 0, '|', 0, 0 };
    int rc = read_any_type(out, dtype, err);
    if (rc < 0)
        brc_buf_dispose(&out->json);
    return rc;
}

int brc_zarr2_type_of_filter(brc_zarr2_type *out, const brc_json *dtype, brc_error *err)
{
    const char *text;
    brc_error ignored = BRC_ERROR_INIT;
    char ordered[16];

    if (brc_json_text(dtype, &text) && strlen(text) < sizeof(ordered) - 1 &&
        !strchr("<>|", text[0])) {
        *out = (brc_zarr2_type){ BRC_BUF_INIT, 0, '|', 0, 0 };
        snprintf(ordered, sizeof(ordered), "<%s", text + (text[0] == '='));
        if (read_type_text(out, ordered, &ignored) == BRC_OK)
            return BRC_OK;
        brc_buf_dispose(&out->json);
        for (size_t i = 0; i < N_PLAIN_TYPES; i++)
            if (strcmp(plain_types[i].v3, text) == 0) {
                *out = (brc_zarr2_type){ BRC_BUF_INIT, plain_types[i].kind, '<',
                                         plain_types[i].size, 0 };
                out->order = out->size > 1 ? '<' : '|';
                return BRC_OK;
            }
    }
    return brc_zarr2_type_read(out, dtype, err);
}

/* ---- to v2 -------------------------------- */

static int no_v2_type(brc_error *err, const char *name)
{
    return brc_fail(err, BRC_EUNSUPPORTED, "/data_type: Zarr v2 has no form for \"%.60s\"", name);
}

static int write_time(brc_buf *out, const brc_named *type, char order, brc_error *err)
{
    const char *unit;
    int has_unit = brc_json_text(brc_json_member(type->config, "unit"), &unit);
    uint64_t scale = 1;
    const brc_json *factor = brc_json_member(type->config, "scale_factor");

    if (strcmp(unit, "\xCE\xBCs") == 0 || strcmp(unit, "\xC2\xB5s") == 0)
        unit = "us";
    if (!has_unit || !is_v3_name(unit, time_units, sizeof(time_units) / sizeof(time_units[0])) ||
        !brc_json_uint(factor, INT32_MAX, &scale))
        return no_v2_type(err, type->name);
    char kind = strcmp(type->name, "numpy.datetime64") == 0 ? 'M' : 'm';
    BRC_TRY(brc_buf_printf(out, err, "\"%c%c8", order, kind));
    if (scale != 1)
        BRC_TRY(brc_buf_printf(out, err, "[%llu%s]", (unsigned long long)scale, unit));
    else if (strcmp(unit, "generic") != 0)
        BRC_TRY(brc_buf_printf(out, err, "[%s]", unit));
    return brc_buf_byte(out, '"', err);
}

/* Returns the number of a structure's fields, all of type `*element`, if the structure was made by
 * repeat_type(); otherwise 0. */
static uint64_t repeats(const brc_json *data_type, const brc_json **element)
{
    const brc_json *name = brc_json_member(data_type, "name");
    const brc_json *fields =
        brc_json_member(brc_json_member(data_type, "configuration"), "fields");
    uint64_t n = 0;
    char number[24];

    if (!brc_json_is(name, "struct"))
        return 0;
    for (const brc_json *f = brc_json_first(fields); f; f = brc_json_next(f), n++) {
        const brc_json *type = brc_json_member(f, "data_type");
        snprintf(number, sizeof(number), "%llu", (unsigned long long)n);
        if (n == 0)
            *element = type;
        if (!brc_json_is(brc_json_member(f, "name"), number) || !type ||
            !brc_json_equal(type, *element))
            return 0;
    }
    return n;
}

/* Writes a field's data type, and its shape if it is an array. */
static int write_field_type(brc_buf *out, const brc_json *type, char order, brc_error *err)
{
    brc_buf shape = BRC_BUF_INIT;
    const brc_json *element = NULL;
    int rc;

    for (uint64_t n = repeats(type, &element); n > 0; n = repeats(type, &element)) {
        BRC_GO(brc_buf_printf(&shape, err, "%s%llu", shape.len ? "," : ",[",
                              (unsigned long long)n));
        type = element;
    }
    BRC_GO(brc_zarr2_type_write(out, type, order, err));
    if (shape.len > 0) {
        BRC_GO(brc_buf_byte(&shape, ']', err));
        BRC_GO(brc_buf_append(out, shape.data, shape.len, err));
    }
    rc = BRC_OK;
done:
    brc_buf_dispose(&shape);
    return rc;
}

static int write_struct(brc_buf *out, const brc_named *type, char order, brc_error *err)
{
    int is_old = strcmp(type->name, "structured") == 0; /* its fields are pairs */
    const brc_json *fields = brc_json_member(type->config, "fields");

    BRC_TRY(brc_buf_byte(out, '[', err));
    for (const brc_json *f = brc_json_first(fields); f; f = brc_json_next(f)) {
        const char *name;
        if (!brc_json_text(is_old ? brc_json_item(f, 0) : brc_json_member(f, "name"), &name))
            return no_v2_type(err, type->name);
        BRC_TRY(brc_buf_text(out, f == brc_json_first(fields) ? "[" : ",[", err));
        BRC_TRY(brc_json_quote(out, name, strlen(name), err));
        BRC_TRY(brc_buf_byte(out, ',', err));
        BRC_TRY(write_field_type(
            out, is_old ? brc_json_item(f, 1) : brc_json_member(f, "data_type"), order, err));
        BRC_TRY(brc_buf_byte(out, ']', err));
    }
    return brc_buf_byte(out, ']', err);
}

/* Writes the bytes of null_terminated_bytes, fixed_length_utf32, raw_bytes and r<bits>. */
static int write_sized(brc_buf *out, const brc_named *type, char order, brc_error *err)
{
    const char *digits = type->name + 1;
    uint64_t n = 0;

    if (type->name[0] == 'r' && read_decimal(&digits, UINT32_MAX, &n) && *digits == 0)
        return brc_buf_printf(out, err, "\"|V%llu\"", (unsigned long long)n / 8);
    if (!brc_json_uint(brc_json_member(type->config, "length_bytes"), UINT32_MAX, &n))
        return no_v2_type(err, type->name);
    if (strcmp(type->name, "fixed_length_utf32") == 0)
        return brc_buf_printf(out, err, "\"%cU%llu\"", order, (unsigned long long)n / 4);
    if (strcmp(type->name, "null_terminated_bytes") == 0)
        return brc_buf_printf(out, err, "\"|S%llu\"", (unsigned long long)n);
    if (strcmp(type->name, "raw_bytes") == 0)
        return brc_buf_printf(out, err, "\"|V%llu\"", (unsigned long long)n);
    return no_v2_type(err, type->name);
}

int brc_zarr2_type_write(brc_buf *out, const brc_json *data_type, char order, brc_error *err)
{
    static const char *const objects[] = { "string", "bytes", "variable_length_bytes", "binary" };
    static const char *const times[] = { "numpy.datetime64", "numpy.timedelta64" };
    static const char *const structs[] = { "struct", "structured" };
    brc_named type;

    BRC_TRY(brc_named_read(&type, data_type, err));
    for (size_t i = 0; i < N_PLAIN_TYPES; i++)
        if (strcmp(plain_types[i].v3, type.name) == 0)
            return brc_buf_printf(out, err, "\"%c%c%u\"", plain_types[i].size > 1 ? order : '|',
                                  plain_types[i].kind, plain_types[i].size);
    if (strcmp(type.name, "numpy.dtype") == 0 && brc_json_member(type.config, "descr"))
        return brc_json_write(out, brc_json_member(type.config, "descr"), 0, err);
    if (is_v3_name(type.name, objects, 4))
        return brc_buf_text(out, "\"|O\"", err);
    if (is_v3_name(type.name, times, 2))
        return write_time(out, &type, order, err);
    if (is_v3_name(type.name, structs, 2))
        return write_struct(out, &type, order, err);
    return write_sized(out, &type, order, err);
}
