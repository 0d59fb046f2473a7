/* What NetCDF says and Zarr does not, as a member of zarr.json: see netcdf_att.h. */
#include "netcdf_att.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "../../base/alloc.h"
#include "../../base/json.h"
#include "../../nd/dtype_text.h"

/* ==== netcdf note ================================ */

/* *part: the member of the note, made where it is not there. */
static int note_part(brc_json **part, brc_json **note, const char *name, brc_error *err)
{
    if (!*note)
        *note = brc_json_new_object();
    if (!*note)
        return brc_nomem(err);
    if (!brc_json_member(*note, name))
        BRC_TRY(brc_json_set(*note, name, brc_json_new_object(), err));
    *part = (brc_json *)(uintptr_t)brc_json_member(*note, name); /* the note is ours */
    return BRC_OK;
}

/* Adds what is known of an attribute: entry is consumed. *note NULL: it is made. */
static int netcdf_note_att(brc_json **note, const char *name, brc_json *entry, brc_error *err)
{
    brc_json *part = NULL;
    int rc = note_part(&part, note, "attributes", err);
    if (rc < 0) {
        brc_json_free(entry);
        return rc;
    }
    return brc_json_set(part, name, entry, err);
}

int brc_netcdf_note_dim(brc_json **note, const char *name, uint64_t length, int unlimited,
                        brc_error *err)
{
    static const char yes[] = "{\"unlimited\":true}";
    brc_json *part = NULL, *dim = NULL;

    BRC_TRY(note_part(&part, note, "dimensions", err));
    if (unlimited)
        BRC_TRY(brc_json_parse(&dim, yes, strlen(yes), err));
    else
        dim = brc_json_new_object();
    if (!dim)
        return brc_nomem(err);
    int rc = brc_json_set(dim, "length", brc_json_new_uint(length), err);
    if (rc < 0) {
        brc_json_free(dim);
        return rc;
    }
    return brc_json_set(part, name, dim, err);
}

const brc_json *brc_netcdf_note_part(const brc_json *doc, const char *part)
{
    const brc_json *attrs = brc_json_member(doc, "attributes");
    const brc_json *note = brc_json_member(doc, BRC_NETCDF_NOTE);
    const brc_json *found =
        brc_json_member(note ? note : brc_json_member(attrs, BRC_NETCDF_GROUP_NOTE), part);
    return brc_json_kind(found) == BRC_JSON_OBJECT ? found : NULL;
}

/* The bytes of an entry, if it has some that are its type's. *has 0: it has not. */
static int netcdf_note_values(brc_netcdf_values *out, int *has, const brc_json *entry,
                              brc_error *err)
{
    const char *type, *text;
    int is_typed = brc_json_text(brc_json_member(entry, "type"), &type);
    int has_text = brc_json_text(brc_json_member(entry, "base64"), &text);
    brc_buf bytes = BRC_BUF_INIT;

    *has = 0;
    memset(out, 0, sizeof(*out));
    out->type = is_typed ? brc_netcdf_type_named(type) : NC_NAT;
    size_t size = out->type == NC_STRING ? 0 : brc_netcdf_atomic_size(out->type);
    if (!has_text || size == 0)
        return BRC_OK;
    int rc = brc_base64_read(&bytes, text, NULL);
    if (rc == BRC_OK && bytes.len % size == 0)
        rc = brc_buf_reserve(&bytes, 1, err); /* so that there is memory for none, too */
    if (rc < 0 || bytes.len % size != 0) {
        brc_buf_dispose(&bytes);
        return rc == BRC_ENOMEM ? brc_nomem(err) : BRC_OK; /* damaged: there is no note */
    }
    out->n = bytes.len / size;
    out->data = bytes.data;
    *has = 1;
    return BRC_OK;
}

/* ==== netcdf att json ================================ */

/* Attributes of NetCDF as JSON, see netcdf_att.h. */

void brc_netcdf_values_free(brc_netcdf_values *values)
{
    for (size_t i = 0; values->texts && i < values->n; i++)
        free(values->texts[i]);
    free(values->texts);
    free(values->data);
    memset(values, 0, sizeof(*values));
}

#define TAKE(c_type, from)                     \
    do {                                       \
        c_type value_;                         \
        memcpy(&value_, from, sizeof(value_)); \
        out = value_;                          \
    } while (0)

static int64_t signed_at(nc_type type, const uint8_t *at)
{
    int64_t out = 0;
    if (type == NC_BYTE)
        TAKE(int8_t, at);
    else if (type == NC_SHORT)
        TAKE(int16_t, at);
    else if (type == NC_INT)
        TAKE(int32_t, at);
    else
        TAKE(int64_t, at);
    return out;
}

static uint64_t unsigned_at(nc_type type, const uint8_t *at)
{
    uint64_t out = 0;
    if (type == NC_UBYTE)
        TAKE(uint8_t, at);
    else if (type == NC_USHORT)
        TAKE(uint16_t, at);
    else if (type == NC_UINT)
        TAKE(uint32_t, at);
    else
        TAKE(uint64_t, at);
    return out;
}

static double double_at(nc_type type, const uint8_t *at)
{
    double out = 0;
    if (type == NC_FLOAT)
        TAKE(float, at);
    else
        TAKE(double, at);
    return out;
}

static int is_unsigned(nc_type type)
{
    return type == NC_UBYTE || type == NC_USHORT || type == NC_UINT || type == NC_UINT64;
}

static int floating_type(nc_type type)
{
    return type == NC_FLOAT || type == NC_DOUBLE;
}

static double any_double_at(nc_type type, const uint8_t *at)
{
    if (floating_type(type))
        return double_at(type, at);
    return is_unsigned(type) ? (double)unsigned_at(type, at) : (double)signed_at(type, at);
}

static brc_json *number_json(nc_type type, const uint8_t *at)
{
    if (floating_type(type))
        return brc_attr_float(double_at(type, at));
    return is_unsigned(type) ? brc_attr_uint(unsigned_at(type, at))
                             : brc_attr_int(signed_at(type, at));
}

/* Text without its zero bytes: writers in Fortran end with some, and readers drop them. */
static int text_json(brc_json **out, const char *text, size_t len, brc_error *err)
{
    brc_buf clean = BRC_BUF_INIT;
    int rc = brc_buf_terminate(&clean, err);
    for (size_t i = 0; rc == BRC_OK && i < len; i++)
        if (text[i])
            rc = brc_buf_byte(&clean, (uint8_t)text[i], err);
    if (rc == BRC_OK) {
        *out = brc_attr_text((const char *)clean.data, clean.len);
        rc = *out ? BRC_OK : brc_nomem(err);
    }
    brc_buf_dispose(&clean);
    return rc;
}

static int item_json(brc_json **out, const brc_netcdf_values *values, size_t i, brc_error *err)
{
    size_t size = brc_netcdf_atomic_size(values->type);
    if (values->type == NC_STRING) {
        const char *text = values->texts[i] ? values->texts[i] : "";
        return text_json(out, text, strlen(text), err);
    }
    *out = number_json(values->type, (const uint8_t *)values->data + i * size);
    return *out ? BRC_OK : brc_nomem(err);
}

static int list_json(brc_json **out, const brc_netcdf_values *values, brc_error *err)
{
    brc_json *list = brc_json_new_array(), *item;
    int rc = list ? BRC_OK : brc_nomem(err);
    for (size_t i = 0; rc == BRC_OK && i < values->n; i++) {
        rc = item_json(&item, values, i, err);
        if (rc == BRC_OK)
            rc = brc_json_push(list, item, err);
    }
    if (rc < 0) {
        brc_json_free(list);
        return rc;
    }
    *out = list;
    return BRC_OK;
}

/* The _FillValue of a variable, in the form that xarray's Zarr reader takes. */
static int missing_json(brc_json **out, nc_type of, const brc_netcdf_values *values, brc_error *err)
{
    const uint8_t *at = values->data;
    nc_type type = values->type;

    if (values->n != 1 || of == NC_NAT || of == NC_CHAR || type == NC_CHAR ||
        (of == NC_STRING && type != NC_STRING))
        return BRC_OK;
    if (type == NC_STRING)
        return item_json(out, values, 0, err);
    if (!floating_type(of))
        return floating_type(type) && !isfinite(double_at(type, at))
                   ? BRC_OK
                   : item_json(out, values, 0, err);
    *out = brc_attr_fill(any_double_at(type, at));
    return *out ? BRC_OK : brc_nomem(err);
}

int brc_netcdf_att_json(brc_json **out, const brc_netcdf_of *of, const char *name,
                        const brc_netcdf_values *values, brc_error *err)
{
    *out = NULL;
    if (of->is_var && strcmp(name, BRC_NETCDF_FILL) == 0)
        return missing_json(out, of->type, values, err);
    if (values->type == NC_CHAR)
        return text_json(out, values->data, values->n, err);
    return values->n == 1 ? item_json(out, values, 0, err) : list_json(out, values, err);
}

/* ==== netcdf att values ================================ */

/* JSON as attributes of NetCDF, see netcdf_att.h. */

/* ---- numbers ------------------------------------ */

static int float_type(nc_type type)
{
    return type == NC_FLOAT || type == NC_DOUBLE;
}

static int open_value(brc_attr *out, const brc_netcdf_of *of, const char *name,
                      const brc_json *value, brc_error *err)
{
    double packed;
    if (of->is_var && float_type(of->type) && strcmp(name, BRC_NETCDF_FILL) == 0 &&
        brc_attr_fill_value(value, &packed)) {
        memset(out, 0, sizeof(*out));
        out->kind = BRC_ATTR_FLOAT;
        out->n = 1;
        BRC_TRY(brc_new_array((void **)&out->floats, 1, sizeof(*out->floats), err));
        out->floats[0] = packed;
        return BRC_OK;
    }
    return brc_attr_open(out, value, err);
}

/* ---- one number as a type ------------------------- */

/* The bounds of what the integer types hold. */
static int int_bounds(nc_type type, int64_t *min, uint64_t *max)
{
    size_t bits = 8 * brc_netcdf_atomic_size(type);
    switch (type) {
    case NC_BYTE:
    case NC_SHORT:
    case NC_INT:
    case NC_INT64:
        *max = UINT64_MAX >> (65 - bits);
        *min = -(int64_t)*max - 1;
        return 1;
    case NC_UBYTE:
    case NC_USHORT:
    case NC_UINT:
    case NC_UINT64:
        *max = UINT64_MAX >> (64 - bits);
        *min = 0;
        return 1;
    default:
        return 0;
    }
}

/* The low bytes of a two's complement number are the number in a smaller type. */
static void store_bits(uint8_t *dst, size_t size, uint64_t bits)
{
    switch (size) {
    case 1:
        *dst = (uint8_t)bits;
        break;
    case 2: {
        uint16_t v = (uint16_t)bits;
        memcpy(dst, &v, sizeof(v));
        break;
    }
    case 4: {
        uint32_t v = (uint32_t)bits;
        memcpy(dst, &v, sizeof(v));
        break;
    }
    default:
        memcpy(dst, &bits, sizeof(bits));
    }
}

/* 0 if the type does not have the value. */
static int store_double(uint8_t *dst, nc_type type, double value)
{
    int64_t min;
    uint64_t max;

    if (type == NC_FLOAT) {
        float narrow = (float)value;
        if (!isnan(value) && (double)narrow != value)
            return 0;
        memcpy(dst, &narrow, sizeof(narrow));
        return 1;
    }
    if (type == NC_DOUBLE) {
        memcpy(dst, &value, sizeof(value));
        return 1;
    }
    /* from 2^63 to below 2^64: exact as an integer */
    if (!int_bounds(type, &min, &max) || !(value >= (double)min) || value != floor(value) ||
        value >= (max > INT64_MAX ? 18446744073709551616.0 : 9223372036854775808.0) ||
        (value > 0 && (uint64_t)value > max) || (value == 0 && signbit(value)))
        return 0;
    store_bits(dst, brc_netcdf_atomic_size(type),
               value < 0 ? (uint64_t)(int64_t)value : (uint64_t)value);
    return 1;
}

static int store_integer(uint8_t *dst, nc_type type, int negative, uint64_t bits)
{
    int64_t min;
    uint64_t max;
    if (float_type(type)) {
        double value = negative ? (double)(int64_t)bits : (double)bits;
        uint64_t magnitude = negative ? (uint64_t)0 - bits : bits;
        return magnitude <= UINT64_C(1) << 53 && store_double(dst, type, value);
    }
    if (!int_bounds(type, &min, &max) || (negative ? (int64_t)bits < min : bits > max))
        return 0;
    store_bits(dst, brc_netcdf_atomic_size(type), bits);
    return 1;
}

static int store_number(uint8_t *dst, nc_type type, const brc_attr *from, size_t i)
{
    switch (from->kind) {
    case BRC_ATTR_FLOAT:
        return store_double(dst, type, from->floats[i]);
    case BRC_ATTR_UINT:
        return store_integer(dst, type, 0, from->uints[i]);
    case BRC_ATTR_INT:
    case BRC_ATTR_BOOL:
        return store_integer(dst, type, from->ints[i] < 0, (uint64_t)from->ints[i]);
    default:
        return 0;
    }
}

/* ---- choosing the type ----------------------------- */

/* Attributes that CF and the NetCDF User's Guide want in the variable's type. */
static int follows_variable(const char *name)
{
    static const char *const names[] = { BRC_NETCDF_FILL, "missing_value", "valid_min", "valid_max",
                                         "valid_range",   "flag_values",   "flag_masks" };
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
        if (strcmp(name, names[i]) == 0)
            return 1;
    return 0;
}

/* *fits 0: the type has not all of the values. */
static int take_numbers(brc_netcdf_values *out, int *fits, const brc_attr *from, nc_type type,
                        brc_error *err)
{
    size_t size = brc_netcdf_atomic_size(type);
    *fits = type != NC_STRING && type != NC_CHAR && size > 0;
    memset(out, 0, sizeof(*out));
    if (!*fits)
        return BRC_OK;
    BRC_TRY(brc_new_array(&out->data, from->n + 1, size, err));
    out->type = type;
    out->n = from->n;
    for (size_t i = 0; i < from->n && *fits; i++)
        *fits = store_number((uint8_t *)out->data + i * size, type, from, i);
    if (!*fits)
        brc_netcdf_values_free(out);
    return BRC_OK;
}

static int take_texts(brc_netcdf_values *out, brc_attr *from, nc_type wanted, brc_error *err)
{
    int as_strings = from->list || (wanted == NC_STRING && from->kind == BRC_ATTR_TEXT);
    memset(out, 0, sizeof(*out));
    out->n = from->n;
    if (!as_strings) { /* the text's own memory */
        out->type = NC_CHAR;
        out->n = strlen(from->texts[0]);
        out->data = from->texts[0];
        from->texts[0] = NULL;
        return BRC_OK;
    }
    out->type = NC_STRING;
    BRC_TRY(brc_new_array(&out->data, from->n, sizeof(char *), err));
    memcpy(out->data, from->texts, from->n * sizeof(char *));
    out->texts = from->texts;
    from->texts = NULL;
    return BRC_OK;
}

static int take_json_text(brc_netcdf_values *out, const brc_json *value, brc_error *err)
{
    brc_buf text = BRC_BUF_INIT;
    int rc = brc_json_write(&text, value, err);
    if (rc < 0) {
        brc_buf_dispose(&text);
        return rc;
    }
    out->type = NC_CHAR;
    out->n = text.len;
    out->data = text.data;
    return BRC_OK;
}

static int take_any(brc_netcdf_values *out, brc_attr *attr, const nc_type *order, size_t n,
                    nc_type wanted, brc_error *err)
{
    int fits = 0;
    if (attr->kind == BRC_ATTR_TEXT || attr->kind == BRC_ATTR_JSON)
        return take_texts(out, attr, wanted, err);
    for (size_t i = 0; i < n; i++) {
        BRC_TRY(take_numbers(out, &fits, attr, order[i], err));
        if (fits)
            return BRC_OK;
    }
    return brc_fail(err, BRC_EINTERNAL, "no type fits an attribute");
}

/* By the rules, or as the type `wanted` (NC_NAT: none) where the value fits it. */
static int netcdf_att_values(brc_netcdf_values *out, const brc_netcdf_of *of, const char *name,
                             const brc_json *value, nc_type wanted, brc_error *err)
{
    int follows = of->is_var && follows_variable(name);
    nc_type own = follows && of->type != NC_CHAR && of->type != NC_STRING ? of->type : NC_NAT;
    brc_attr attr;

    memset(out, 0, sizeof(*out));
    if (brc_json_kind(value) == BRC_JSON_ARRAY && brc_json_count(value) == 0 && wanted != NC_NAT) {
        out->type = wanted;
        return brc_new(&out->data, 1, err);
    }
    BRC_TRY(open_value(&attr, of, name, value, err));
    if (of->is_classic && attr.kind == BRC_ATTR_TEXT && attr.list) {
        brc_attr_close(&attr);
        return take_json_text(out, value, err);
    }
    nc_type order[] = { wanted,
                        own,
                        attr.kind == BRC_ATTR_BOOL ? NC_BYTE : NC_NAT,
                        attr.kind == BRC_ATTR_FLOAT ? NC_DOUBLE : NC_INT,
                        NC_INT64,
                        NC_UINT64 };
    int rc = take_any(out, &attr, order, sizeof(order) / sizeof(order[0]), wanted, err);
    brc_attr_close(&attr);
    return rc;
}

/* ==== netcdf in value ================================ */

/*
 * Attributes of types that a NetCDF-4 file defines, as JSON:
 *
 *   enumeration   the integer            opaque   base64 of the bytes
 *   compound      an object              vlen     a list
 *
 * A field that is an array is a list of its elements in C order, of characters a text.
 */

#define MAX_DEPTH 16

typedef struct user_value {
    int group;
    const char *label;
} user_value;

typedef struct user_type {
    size_t size;
    nc_type base;
    size_t nfields;
    int kind; /* NC_ENUM ..., 0: a type of every file */
} user_type;

typedef struct user_field {
    char name[BRC_NETCDF_NAME_MAX];
    size_t offset, n; /* n: elements of an array, 1 of none */
    nc_type type;
    user_type is;
} user_field;

static int inquire_type(const user_value *v, nc_type type, user_type *out, brc_error *err)
{
    memset(out, 0, sizeof(*out));
    out->size = brc_netcdf_atomic_size(type);
    if (out->size > 0)
        return BRC_OK;
    int status = nc_inq_user_type(v->group, type, NULL, &out->size, &out->base,
                                          &out->nfields, &out->kind);
    return status
               ? brc_netcdf_fail(status, BRC_EINVAL, "cannot read a type of", v->label, err)
               : BRC_OK;
}

static int inquire_field(const user_value *v, nc_type type, int i, user_field *out, brc_error *err)
{
    int ndims = 0, sizes[NC_MAX_VAR_DIMS];
    uint64_t n = 1;
    int status = nc_inq_compound_field(v->group, type, i, out->name, &out->offset,
                                               &out->type, &ndims, sizes);
    if (status)
        return brc_netcdf_fail(status, BRC_EINVAL, "cannot read a type of", v->label, err);
    for (int k = 0; k < ndims; k++)
        if (sizes[k] < 0 || !brc_mul_u64(n, (uint64_t)sizes[k], &n) || n > (uint64_t)1 << 31)
            return brc_fail(err, BRC_EINVAL, "%s: the field %s has an impossible shape", v->label,
                            out->name);
    out->n = (size_t)n;
    return inquire_type(v, out->type, &out->is, err);
}

/* ---- memory of the library's ---------------------- */

static void drop_values(const user_value *v, nc_type type, size_t n, uint8_t *at, int depth)
{
    user_type is;
    if (depth > MAX_DEPTH || inquire_type(v, type, &is, NULL) < 0)
        return;
    for (; n > 0; n--, at += is.size) {
        if (type == NC_STRING) {
            char *text;
            memcpy(&text, at, sizeof(text));
            free(text);
        } else if (is.kind == NC_VLEN) {
            nc_vlen_t list;
            memcpy(&list, at, sizeof(list));
            drop_values(v, is.base, list.len, list.p, depth + 1);
            free(list.p);
        } else if (is.kind == NC_COMPOUND) {
            for (size_t i = 0; i < is.nfields; i++) {
                user_field field;
                if (inquire_field(v, type, (int)i, &field, NULL) == BRC_OK)
                    drop_values(v, field.type, field.n, at + field.offset, depth + 1);
            }
        }
    }
}

void brc_netcdf_drop(int group, nc_type type, size_t n, uint8_t *data)
{
    user_value v = { group, "" };
    drop_values(&v, type, n, data, 0);
}

/* ---- to JSON -------------------------------------- */

static int values_json(brc_json **out, const user_value *v, nc_type type, int list, size_t n,
                       const uint8_t *at, int depth, brc_error *err);

static int compound_json(brc_json **out, const user_value *v, nc_type type, size_t nfields,
                         const uint8_t *at, int depth, brc_error *err)
{
    brc_json *object = brc_json_new_object(), *value;
    int rc = object ? BRC_OK : brc_nomem(err);
    for (size_t i = 0; rc == BRC_OK && i < nfields; i++) {
        user_field field;
        rc = inquire_field(v, type, (int)i, &field, err);
        if (rc == BRC_OK && !brc_utf8_valid(field.name, strlen(field.name)))
            rc = brc_fail(err, BRC_EINVAL, "%s: a field's name is not UTF-8", v->label);
        if (rc == BRC_OK)
            rc = values_json(&value, v, field.type, field.n != 1, field.n, at + field.offset,
                             depth + 1, err);
        if (rc == BRC_OK)
            rc = brc_json_set(object, field.name, value, err);
    }
    if (rc < 0) {
        brc_json_free(object);
        return rc;
    }
    *out = object;
    return BRC_OK;
}

static int opaque_json(brc_json **out, const uint8_t *at, size_t size, brc_error *err)
{
    brc_buf text = BRC_BUF_INIT;
    int rc;
    BRC_GO(brc_base64_write(&text, at, size, err));
    BRC_GO(brc_buf_terminate(&text, err));
    *out = brc_json_new_string((const char *)text.data);
    rc = *out ? BRC_OK : brc_nomem(err);
done:
    brc_buf_dispose(&text);
    return rc;
}

/* Numbers, characters and texts, by the rules for attributes of such types. */
static int plain_json(brc_json **out, nc_type type, size_t n, const uint8_t *at, brc_error *err)
{
    static const brc_netcdf_of nothing = { 0 };
    brc_netcdf_values values = { type, n, (void *)(uintptr_t)at, NULL };
    if (type == NC_STRING)
        values.texts = values.data;
    return brc_netcdf_att_json(out, &nothing, "", &values, err);
}

static int one_json(brc_json **out, const user_value *v, nc_type type, const user_type *is,
                    const uint8_t *at, int depth, brc_error *err)
{
    nc_vlen_t list;
    switch (is->kind) {
    case NC_ENUM:
        return plain_json(out, is->base, 1, at, err);
    case NC_OPAQUE:
        return opaque_json(out, at, is->size, err);
    case NC_COMPOUND:
        return compound_json(out, v, type, is->nfields, at, depth, err);
    default:
        memcpy(&list, at, sizeof(list));
        return values_json(out, v, is->base, 1, list.len, list.p, depth + 1, err);
    }
}

static int values_json(brc_json **out, const user_value *v, nc_type type, int list, size_t n,
                       const uint8_t *at, int depth, brc_error *err)
{
    user_type is;
    *out = NULL;
    if (depth > MAX_DEPTH)
        return brc_part_refuse(err, BRC_PART_TYPE, NULL, "%s: its types are nested too deep",
                               v->label);
    BRC_TRY(inquire_type(v, type, &is, err));
    if (is.kind == 0 && (n == 1 || !list || type == NC_CHAR))
        return plain_json(out, type, n, at, err);
    if (!list)
        return one_json(out, v, type, &is, at, depth, err);
    brc_json *all = brc_json_new_array(), *item;
    int rc = all ? BRC_OK : brc_nomem(err);
    for (size_t i = 0; rc == BRC_OK && i < n; i++, at += is.size) {
        rc = is.kind == 0 ? plain_json(&item, type, 1, at, err)
                          : one_json(&item, v, type, &is, at, depth, err);
        if (rc == BRC_OK)
            rc = brc_json_push(all, item, err);
    }
    if (rc < 0) {
        brc_json_free(all);
        return rc;
    }
    *out = all;
    return BRC_OK;
}

/* A value of a type that the file defines: objects, lists, texts. Releases what the
 * library allocated in it, also on failure. */
static int netcdf_user_json(brc_json **out, int group, nc_type type, size_t n, uint8_t *data,
                            const char *label, brc_error *err)
{
    user_value v = { group, label };
    int rc = values_json(out, &v, type, n != 1, n, data, 0, err);
    drop_values(&v, type, n, data, 0);
    return rc;
}

/* ==== netcdf in att ================================ */

/* Attributes of a NetCDF file, read: see netcdf_att.h. */

#define MAX_ATT_BYTES ((size_t)64 << 20)

typedef struct att_type {
    nc_type type; /* an enumeration's base */
    size_t size, n;
    int is_user; /* and no enumeration */
} att_type;

static int cannot_read(int status, const char *name, const char *label,
                       brc_error *err)
{
    brc_netcdf_fail(status, BRC_EINVAL, "cannot read an attribute of", label, err);
    brc_context(err, "%s", name);
    return status == NC_ENOMEM ? BRC_ENOMEM : status > 0 ? BRC_EIO : BRC_EINVAL;
}

static int inquire_att(att_type *out, int group, int var, const char *name,
                       const char *label, brc_error *err)
{
    nc_type base = NC_NAT;
    int kind = 0;
    int status = nc_inq_att(group, var, name, &out->type, &out->n);

    out->size = status ? 0 : brc_netcdf_atomic_size(out->type);
    if (!status && out->size == 0) {
        status = nc_inq_user_type(group, out->type, NULL, &out->size, &base, NULL, &kind);
        out->is_user = kind != NC_ENUM;
        if (kind == NC_ENUM)
            out->type = base;
    }
    if (status)
        return cannot_read(status, name, label, err);
    if (out->size == 0 || out->n > MAX_ATT_BYTES / out->size)
        return brc_part_refuse(err, BRC_PART_SIZE, NULL,
                               "%s: the attribute %s is longer than %lu bytes", label, name,
                               (unsigned long)MAX_ATT_BYTES);
    return BRC_OK;
}

/* Texts of the library's become ours. */
static int take_strings(brc_netcdf_values *out, brc_error *err)
{
    char **theirs = out->data;
    int rc = brc_new_array((void **)&out->texts, out->n + 1, sizeof(char *), err);
    for (size_t i = 0; rc == BRC_OK && i < out->n; i++)
        rc = brc_dup(&out->texts[i], theirs[i] ? theirs[i] : "", err);
    if (out->n > 0)
        nc_free_string(out->n, theirs);
    for (size_t i = 0; rc == BRC_OK && i < out->n; i++)
        theirs[i] = out->texts[i];
    return rc;
}

static int get_att(brc_netcdf_values *out, int group, int var,
                   const char *name, const att_type *is, const char *label, brc_error *err)
{
    memset(out, 0, sizeof(*out));
    BRC_TRY(brc_new_array(&out->data, is->n + 1, is->size, err));
    int status = is->n > 0 ? nc_get_att(group, var, name, out->data) : 0;
    if (status) {
        brc_netcdf_values_free(out);
        return cannot_read(status, name, label, err);
    }
    out->type = is->type;
    out->n = is->n;
    int rc = out->type == NC_STRING ? take_strings(out, err) : BRC_OK;
    if (rc < 0)
        brc_netcdf_values_free(out);
    return rc;
}

int brc_netcdf_read_att(brc_netcdf_values *out, int group, int var,
                        const char *name, const char *label, brc_error *err)
{
    att_type is = { 0 };
    memset(out, 0, sizeof(*out));
    if (nc_inq_att(group, var, name, NULL, NULL) != NC_NOERR)
        return BRC_OK;
    BRC_TRY(inquire_att(&is, group, var, name, label, err));
    return is.is_user ? BRC_OK : get_att(out, group, var, name, &is, label, err);
}

/* ---- what is noted -------------------------------- */

static int same_values(const brc_netcdf_values *a, const brc_netcdf_values *b)
{
    if (a->type != b->type || a->n != b->n)
        return 0;
    if (a->type != NC_STRING)
        return memcmp(a->data, b->data, a->n * brc_netcdf_atomic_size(a->type)) == 0;
    for (size_t i = 0; i < a->n; i++)
        if (strcmp(a->texts[i], b->texts[i]) != 0)
            return 0;
    return 1;
}

/* Whether an export with this note would write the attribute as it was. */
static int comes_back(int *does, const brc_netcdf_atts_in *in, const char *name,
                      const brc_json *value, nc_type noted, const brc_netcdf_values *was,
                      brc_error *err)
{
    brc_netcdf_values back;
    BRC_TRY(netcdf_att_values(&back, &in->of, name, value, noted, err));
    *does = same_values(&back, was);
    brc_netcdf_values_free(&back);
    return BRC_OK;
}

static int note_type(brc_netcdf_atts_in *in, const char *name, const char *type, brc_error *err)
{
    return netcdf_note_att(&in->note, name, brc_json_new_string(type), err);
}

static int note_bytes(brc_netcdf_atts_in *in, const char *name, const brc_netcdf_values *was,
                      brc_error *err)
{
    brc_buf text = BRC_BUF_INIT;
    brc_json *entry = brc_json_new_object();
    size_t size = brc_netcdf_atomic_size(was->type);
    int rc = entry ? BRC_OK : brc_nomem(err);

    if (rc == BRC_OK)
        rc = brc_json_set(entry, "type", brc_json_new_string(brc_netcdf_type_name(was->type)), err);
    if (rc == BRC_OK)
        rc = brc_base64_write(&text, was->data, was->n * size, err);
    if (rc == BRC_OK)
        rc = brc_buf_terminate(&text, err);
    if (rc == BRC_OK)
        rc = brc_json_set(entry, "base64", brc_json_new_string((const char *)text.data), err);
    brc_buf_dispose(&text);
    if (rc < 0) {
        brc_json_free(entry);
        return rc;
    }
    return netcdf_note_att(&in->note, name, entry, err);
}

static int note_own(brc_netcdf_atts_in *in, brc_error *err)
{
    brc_json *entry;
    BRC_TRY(brc_json_parse(&entry, "{\"type\":\"own\"}", 14, err));
    return netcdf_note_att(&in->note, BRC_NETCDF_FILL, entry, err);
}

static int note_if_needed(brc_netcdf_atts_in *in, const char *name, const brc_json *value,
                          const brc_netcdf_values *was, brc_error *err)
{
    int does = 0;
    if (value)
        BRC_TRY(comes_back(&does, in, name, value, NC_NAT, was, err));
    if (does)
        return BRC_OK;
    if (value)
        BRC_TRY(comes_back(&does, in, name, value, was->type, was, err));
    if (does || was->type == NC_STRING)
        return note_type(in, name, brc_netcdf_type_name(was->type), err);
    return note_bytes(in, name, was, err);
}

/* ---- one, and all ---------------------------------- */

static int take_att(brc_netcdf_atts_in *in, const char *name, const att_type *is, brc_error *err)
{
    brc_netcdf_values values;
    brc_json *value = NULL;
    int is_fill = in->of.is_var && strcmp(name, BRC_NETCDF_FILL) == 0 && is->n == 1;

    if (is_fill && is->type == in->var_type && in->var_type == NC_CHAR)
        return note_own(in, err);
    BRC_TRY(get_att(&values, in->group, in->var, name, is, in->label, err));
    int rc = brc_netcdf_att_json(&value, &in->of, name, &values, err);
    if (rc == BRC_OK)
        rc = note_if_needed(in, name, value, &values, err);
    brc_netcdf_values_free(&values);
    if (rc < 0) {
        brc_json_free(value);
        return rc;
    }
    return value ? brc_json_add(in->attrs, name, value, err) : BRC_OK;
}

/* A complex number's _FillValue: two numbers, as floats have one. */
static int pair_json(brc_json **out, nc_type of, const uint8_t *data, brc_error *err)
{
    brc_netcdf_of number = { .type = of, .is_var = 1 };
    size_t size = brc_netcdf_atomic_size(of);
    brc_json *list = brc_json_new_array(), *part;
    int rc = list ? BRC_OK : brc_nomem(err);

    for (size_t i = 0; rc == BRC_OK && i < 2; i++) {
        brc_netcdf_values value = { of, 1, (void *)(uintptr_t)(data + i * size), NULL };
        rc = brc_netcdf_att_json(&part, &number, BRC_NETCDF_FILL, &value, err);
        if (rc == BRC_OK)
            rc = brc_json_push(list, part, err);
    }
    if (rc < 0) {
        brc_json_free(list);
        return rc;
    }
    *out = list;
    return BRC_OK;
}

static int take_user_att(brc_netcdf_atts_in *in, const char *name, const att_type *is,
                         brc_error *err)
{
    int is_fill = in->of.is_var && strcmp(name, BRC_NETCDF_FILL) == 0 && is->n == 1 &&
                  is->type == in->var_type;
    brc_json *value = NULL;
    void *data;

    if (is_fill && !in->of.is_complex)
        return note_own(in, err);
    BRC_TRY(brc_new_array(&data, is->n + 1, is->size, err));
    int status = is->n > 0 ? nc_get_att(in->group, in->var, name, data) : 0;
    int rc = status ? cannot_read(status, name, in->label, err) : BRC_OK;
    if (rc == BRC_OK && is_fill)
        rc = pair_json(&value, is->size == 8 ? NC_FLOAT : NC_DOUBLE, data, err);
    else if (rc == BRC_OK)
        rc =
            netcdf_user_json(&value, in->group, is->type, is->n, data, in->label, err);
    free(data);
    return rc < 0 ? rc : brc_json_add(in->attrs, name, value, err);
}

static int take_any_att(brc_netcdf_atts_in *in, const char *name, brc_error *err)
{
    att_type is = { 0 };
    if (!brc_utf8_valid(name, strlen(name)))
        return brc_part_refuse(err, BRC_PART_NAME, "rename it",
                               "%s: an attribute's name is not UTF-8", in->label);
    BRC_TRY(inquire_att(&is, in->group, in->var, name, in->label, err));
    return is.is_user ? take_user_att(in, name, &is, err) : take_att(in, name, &is, err);
}

int brc_netcdf_read_atts(brc_netcdf_atts_in *in, brc_error *err)
{
    char name[BRC_NETCDF_NAME_MAX];
    int n = 0;
    int status = in->var == NC_GLOBAL ? nc_inq_natts(in->group, &n)
                                      : nc_inq_varnatts(in->group, in->var, &n);
    if (status)
        return brc_netcdf_fail(status, BRC_EINVAL, "cannot read the attributes of",
                               in->label, err);
    BRC_TRY(brc_attr_check_count((uint64_t)n, in->label, err));
    in->attrs = brc_json_new_object();
    if (!in->attrs)
        return brc_nomem(err);
    const char *path = brc_convert_path(in->convert, in->label);
    for (int i = 0; i < n; i++) {
        status = nc_inq_attname(in->group, in->var, i, name);
        if (status)
            return brc_netcdf_fail(status, BRC_EINVAL, "cannot read the attributes of",
                                   in->label, err);
        if (brc_convert_lacks_attribute(in->convert, path, name))
            continue;
        int rc = brc_convert_settle(in->convert, take_any_att(in, name, err), path, name, err);
        if (rc < 0)
            return rc;
    }
    return BRC_OK;
}

/* ==== netcdf out att ================================ */

/* Attributes of a node, to be written: see netcdf_att.h. */

/* Zarr v2's name for what NetCDF has as dimensions, and the notes themselves. */
static int is_ours(const char *name)
{
    return strcmp(name, "_ARRAY_DIMENSIONS") == 0 || strcmp(name, BRC_NETCDF_GROUP_NOTE) == 0;
}

/* Writes the bytes of a note where the attribute is still what they are in JSON; value
 * NULL: there is no such attribute. *done: whether it does. */
static int put_noted(int *done, brc_netcdf_atts_out *out, const char *name, const brc_json *entry,
                     const brc_json *value, brc_error *err)
{
    brc_netcdf_values values;
    brc_json *was = NULL;
    int has;

    *done = 0;
    BRC_TRY(netcdf_note_values(&values, &has, entry, err));
    if (!has)
        return BRC_OK;
    int rc = brc_netcdf_att_json(&was, &out->of, name, &values, err);
    if (rc == BRC_OK && (was ? value && brc_json_equal(was, value) : !value)) {
        *done = 1;
        rc = out->put(out->ctx, name, &values, err);
    }
    brc_json_free(was);
    brc_netcdf_values_free(&values);
    return rc;
}

/* The two doubles of a complex _FillValue. */
static int put_pair(int *done, brc_netcdf_atts_out *out, const brc_json *value, brc_error *err)
{
    brc_netcdf_of number = { .type = NC_DOUBLE, .is_var = 1 };
    brc_netcdf_values part;
    double pair[2];

    *done = brc_json_kind(value) == BRC_JSON_ARRAY && brc_json_count(value) == 2;
    for (size_t i = 0; i < 2 && *done; i++) {
        BRC_TRY(netcdf_att_values(&part, &number, BRC_NETCDF_FILL, brc_json_item(value, i),
                                  NC_DOUBLE, err));
        *done = part.type == NC_DOUBLE && part.n == 1;
        if (*done)
            memcpy(&pair[i], part.data, sizeof(pair[i]));
        brc_netcdf_values_free(&part);
    }
    brc_netcdf_values both = { NC_NAT, 2, pair, NULL };
    return *done ? out->put(out->ctx, BRC_NETCDF_FILL, &both, err) : BRC_OK;
}

static int put_one(brc_netcdf_atts_out *out, const char *name, const brc_json *entry,
                   const brc_json *value, brc_error *err)
{
    const char *type;
    int is_typed = brc_json_text(entry, &type);
    int is_fill = out->of.is_var && strcmp(name, BRC_NETCDF_FILL) == 0, done = 0;
    brc_netcdf_values values;

    if (is_fill)
        out->has_fill = 1;
    BRC_TRY(put_noted(&done, out, name, entry, value, err));
    if (!done && is_fill && out->of.is_complex)
        BRC_TRY(put_pair(&done, out, value, err));
    if (done)
        return BRC_OK;
    BRC_TRY(netcdf_att_values(&values, &out->of, name, value,
                              is_typed ? brc_netcdf_type_named(type) : NC_NAT, err));
    int rc = out->put(out->ctx, name, &values, err);
    brc_netcdf_values_free(&values);
    return rc;
}

/* What the note alone has. */
static int put_only_noted(brc_netcdf_atts_out *out, const char *name, const brc_json *entry,
                          brc_error *err)
{
    int is_fill = out->of.is_var && strcmp(name, BRC_NETCDF_FILL) == 0, done;

    if (is_fill && brc_json_is(brc_json_member(entry, "type"), "own")) {
        out->own_fill = out->has_fill = 1;
        return BRC_OK;
    }
    BRC_TRY(put_noted(&done, out, name, entry, NULL, err));
    if (is_fill && done)
        out->has_fill = 1;
    return BRC_OK;
}

static int each_att(brc_netcdf_atts_out *out, const brc_json *doc, brc_error *err)
{
    const brc_json *attrs = brc_json_member(doc, "attributes");
    const brc_json *notes = brc_netcdf_note_part(doc, "attributes");

    out->own_fill = out->has_fill = 0;
    for (const brc_json *v = brc_json_first(attrs); v; v = brc_json_next(v)) {
        const char *name = brc_json_own_name(v);
        if (strstr(name, BRC_JSON_NUL))
            return brc_fail(err, BRC_EUNSUPPORTED,
                            "the name of an attribute contains U+0000, which NetCDF has not: "
                            "rename or remove the attribute");
        if (!is_ours(name))
            BRC_TRY(put_one(out, name, brc_json_member(notes, name), v, err));
    }
    for (const brc_json *v = brc_json_first(notes); v; v = brc_json_next(v)) {
        const char *name = brc_json_own_name(v);
        if (!brc_json_member(attrs, name))
            BRC_TRY(put_only_noted(out, name, v, err));
    }
    return BRC_OK;
}

int brc_netcdf_each_att(brc_netcdf_atts_out *out, const brc_json *doc, brc_error *err)
{
    int rc = each_att(out, doc, err);
    if (rc < 0)
        brc_context(err, "%s", out->label);
    return rc;
}
