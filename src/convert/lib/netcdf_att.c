/* Types and attributes of NetCDF, see netcdf_att.h. */
#include "netcdf_att.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "../../base/alloc.h"
#include "../../base/json.h"
#include "../../nd/dtype_text.h"
#include "../../nd/shape.h"

/* ---- types -------------------------------- */

static const struct {
    nc_type type;
    size_t size;
    const char *name, *dtype;
} atomic_types[] = {
    { NC_BYTE, 1, "byte", "int8" },      { NC_UBYTE, 1, "ubyte", "uint8" },
    { NC_SHORT, 2, "short", "int16" },   { NC_USHORT, 2, "ushort", "uint16" },
    { NC_INT, 4, "int", "int32" },       { NC_UINT, 4, "uint", "uint32" },
    { NC_INT64, 8, "int64", "int64" },   { NC_UINT64, 8, "uint64", "uint64" },
    { NC_FLOAT, 4, "float", "float32" }, { NC_DOUBLE, 8, "double", "float64" },
    { NC_STRING, sizeof(char *), "string", "string" },
    { NC_CHAR, 1, "char",
      "{\"name\":\"null_terminated_bytes\",\"configuration\":{\"length_bytes\":1}}" },
};
#define N_ATOMIC_TYPES (sizeof(atomic_types) / sizeof(atomic_types[0]))

size_t brc_netcdf_atomic_size(nc_type type)
{
    for (size_t i = 0; i < N_ATOMIC_TYPES; i++)
        if (atomic_types[i].type == type)
            return atomic_types[i].size;
    return 0;
}

static const char *netcdf_type_name(nc_type type)
{
    for (size_t i = 0; i < N_ATOMIC_TYPES; i++)
        if (atomic_types[i].type == type)
            return atomic_types[i].name;
    return NULL;
}

const char *brc_netcdf_type_dtype(nc_type type)
{
    for (size_t i = 0; i < N_ATOMIC_TYPES; i++)
        if (atomic_types[i].type == type)
            return atomic_types[i].dtype;
    return NULL;
}

nc_type brc_netcdf_integer(size_t size, int is_unsigned)
{
    for (size_t i = 0; i < 8; i++)
        if (atomic_types[i].size == size && i % 2 == (size_t)(is_unsigned != 0))
            return atomic_types[i].type;
    return NC_NAT;
}

static nc_type netcdf_type_named(const char *name)
{
    for (size_t i = 0; i < N_ATOMIC_TYPES; i++)
        if (strcmp(atomic_types[i].name, name) == 0)
            return atomic_types[i].type;
    return NC_NAT;
}

size_t brc_netcdf_default_fill(nc_type type, uint8_t out[8])
{
#define FILL(constant, c_type, value)     \
    case constant: {                      \
        c_type fill = value;              \
        memcpy(out, &fill, sizeof(fill)); \
        return sizeof(fill);              \
    }
    memset(out, 0, 8);
    switch (type) {
        FILL(NC_BYTE, signed char, NC_FILL_BYTE)
        FILL(NC_CHAR, char, NC_FILL_CHAR)
        FILL(NC_SHORT, int16_t, NC_FILL_SHORT)
        FILL(NC_INT, int32_t, NC_FILL_INT)
        FILL(NC_FLOAT, float, NC_FILL_FLOAT)
        FILL(NC_DOUBLE, double, NC_FILL_DOUBLE)
        FILL(NC_UBYTE, uint8_t, NC_FILL_UBYTE)
        FILL(NC_USHORT, uint16_t, NC_FILL_USHORT)
        FILL(NC_UINT, uint32_t, NC_FILL_UINT)
        FILL(NC_INT64, int64_t, NC_FILL_INT64)
        FILL(NC_UINT64, uint64_t, NC_FILL_UINT64)
    default:
        return 0;
    }
#undef FILL
}

/* ==== netcdf note ================================ */

/* Finds a member of the note, and makes the member if it does not exist. */
static int note_part(brc_json **part, brc_json **note, const char *name, brc_error *err)
{
    if (!*note)
        *note = brc_json_new_object();
    if (!*note)
        return brc_nomem(err);
    if (!brc_json_member(*note, name))
        BRC_TRY(brc_json_set(*note, name, brc_json_new_object(), err));
    *part = (brc_json *)(uintptr_t)brc_json_member(*note, name); /* this file made the note */
    return BRC_OK;
}

/* Adds an entry about an attribute to the note. Takes over `entry`; makes the note if *note is
 * NULL. */
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
        BRC_TRY(brc_json_parse(&dim, yes, strlen(yes), 0, err));
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

/* Reads the bytes of an entry. Sets *has to 0 if the entry has no bytes that fit its type. */
static int netcdf_note_values(brc_netcdf_values *out, int *has, const brc_json *entry,
                              brc_error *err)
{
    const char *type, *text;
    int is_typed = brc_json_text(brc_json_member(entry, "type"), &type);
    int has_text = brc_json_text(brc_json_member(entry, "base64"), &text);
    brc_buf bytes = BRC_BUF_INIT;

    *has = 0;
    memset(out, 0, sizeof(*out));
    out->type = is_typed ? netcdf_type_named(type) : NC_NAT;
    size_t size = out->type == NC_STRING ? 0 : brc_netcdf_atomic_size(out->type);
    if (!has_text || size == 0)
        return BRC_OK;
    int rc = brc_base64_read(&bytes, text, NULL);
    if (rc == BRC_OK && bytes.len % size == 0)
        rc = brc_buf_reserve(&bytes, 1, err); /* no values need memory too */
    if (rc < 0 || bytes.len % size != 0) {
        brc_buf_dispose(&bytes);
        return rc == BRC_ENOMEM ? brc_nomem(err) : BRC_OK; /* a damaged note counts as none */
    }
    out->n = bytes.len / size;
    out->data = bytes.data;
    *has = 1;
    return BRC_OK;
}

/* ==== netcdf att json ================================ */

/* Converts attributes of NetCDF to JSON, see netcdf_att.h. */

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

/* Makes JSON of text without its zero bytes: writers in Fortran end texts with some, and readers
 * drop them. */
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

/* Makes a variable's _FillValue in the form that xarray's reader of Zarr expects. */
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

/* Converts an attribute. Sets *out to NULL if Zarr's attributes cannot hold the value, see
 * netcdf_att.h. */
static int netcdf_att_json(brc_json **out, const brc_netcdf_of *of, const char *name,
                           const brc_netcdf_values *values, brc_error *err)
{
    *out = NULL;
    if (of->is_var && strcmp(name, BRC_ATTR_FILL) == 0)
        return missing_json(out, of->type, values, err);
    if (values->type == NC_CHAR)
        return text_json(out, values->data, values->n, err);
    return values->n == 1 ? item_json(out, values, 0, err) : list_json(out, values, err);
}

/* ==== netcdf att values ================================ */

/* Converts JSON to attributes of NetCDF, see netcdf_att.h. */

/* ---- numbers ------------------------------------ */

static int float_type(nc_type type)
{
    return type == NC_FLOAT || type == NC_DOUBLE;
}

static int open_value(brc_attr *out, const brc_netcdf_of *of, const char *name,
                      const brc_json *value, brc_error *err)
{
    double packed;
    if (of->is_var && float_type(of->type) && strcmp(name, BRC_ATTR_FILL) == 0 &&
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

/* Sets the bounds of an integer type's values. */
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

/* Stores the low bytes: those of a two's complement number are the number in a smaller type. */
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

/* Stores a number. Returns 0 if the type does not have the value. */
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
    /* a value from 2^63 to below 2^64 is exact as an integer */
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

/* Returns whether CF and the NetCDF User's Guide want the attribute to have the variable's type. */
static int follows_variable(const char *name)
{
    static const char *const names[] = { BRC_ATTR_FILL, "missing_value", "valid_min", "valid_max",
                                         "valid_range",   "flag_values",   "flag_masks" };
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
        if (strcmp(name, names[i]) == 0)
            return 1;
    return 0;
}

/* Converts numbers to a type. Sets *fits to 0 if the type does not have all values. */
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
    if (!as_strings) { /* the attribute points to the text itself */
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
    int rc = brc_json_write(&text, value, 0, err);
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

/* Converts an attribute to the type `wanted` if its value fits (NC_NAT: no type is wanted),
 * otherwise by the rules of netcdf_att.h. */
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

/* Finds out whether an export with this note would write the attribute as it was. */
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
        rc = brc_json_set(entry, "type", brc_json_new_string(netcdf_type_name(was->type)), err);
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
        return note_type(in, name, netcdf_type_name(was->type), err);
    return note_bytes(in, name, was, err);
}

/* ---- one of them ---------------------------------- */

int brc_netcdf_take_own_fill(brc_netcdf_atts_in *in, brc_error *err)
{
    brc_json *entry;
    BRC_TRY(brc_json_parse(&entry, "{\"type\":\"own\"}", 14, 0, err));
    return netcdf_note_att(&in->note, BRC_ATTR_FILL, entry, err);
}

int brc_netcdf_take_att(brc_netcdf_atts_in *in, const char *name, const brc_netcdf_values *values,
                        brc_error *err)
{
    brc_json *value = NULL;
    if (in->of.is_var && strcmp(name, BRC_ATTR_FILL) == 0 && values->n == 1 &&
        values->type == NC_CHAR && in->of.type == NC_CHAR)
        return brc_netcdf_take_own_fill(in, err);
    int rc = netcdf_att_json(&value, &in->of, name, values, err);
    if (rc == BRC_OK)
        rc = note_if_needed(in, name, value, values, err);
    if (rc < 0) {
        brc_json_free(value);
        return rc;
    }
    return value ? brc_json_add(in->attrs, name, value, err) : BRC_OK;
}

/* Makes the _FillValue of a complex number: two numbers, each as for floats. */
static int pair_json(brc_json **out, nc_type of, const uint8_t *data, brc_error *err)
{
    brc_netcdf_of number = { .type = of, .is_var = 1 };
    size_t size = brc_netcdf_atomic_size(of);
    brc_json *list = brc_json_new_array(), *part;
    int rc = list ? BRC_OK : brc_nomem(err);

    for (size_t i = 0; rc == BRC_OK && i < 2; i++) {
        brc_netcdf_values value = { of, 1, (void *)(uintptr_t)(data + i * size), NULL };
        rc = netcdf_att_json(&part, &number, BRC_ATTR_FILL, &value, err);
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

int brc_netcdf_take_pair(brc_netcdf_atts_in *in, nc_type of, const uint8_t *pair, brc_error *err)
{
    brc_json *value;
    BRC_TRY(pair_json(&value, of, pair, err));
    return brc_json_add(in->attrs, BRC_ATTR_FILL, value, err);
}

int brc_netcdf_note_group(brc_netcdf_atts_in *in, brc_error *err)
{
    brc_json *note = in->note;
    in->note = NULL;
    return note ? brc_json_set(in->attrs, BRC_NETCDF_GROUP_NOTE, note, err) : BRC_OK;
}

int brc_netcdf_note_array(brc_netcdf_atts_in *in, brc_array_in *array, brc_error *err)
{
    brc_json *may;
    if (!in->note)
        return BRC_OK;
    BRC_TRY(brc_json_parse(&may, "false", 5, 0, err));
    BRC_TRY(brc_json_set(in->note, "must_understand", may, err));
    array->note_name = BRC_NETCDF_NOTE;
    array->note = in->note;
    return BRC_OK;
}

int brc_netcdf_atts_text(char **out, const brc_netcdf_atts_in *in, brc_error *err)
{
    brc_buf text = BRC_BUF_INIT;
    int rc = brc_json_write(&text, in->attrs, 0, err);
    if (rc == BRC_OK)
        rc = brc_buf_take_text(&text, out, err);
    brc_buf_dispose(&text);
    return rc;
}

int brc_netcdf_lacks_fill(const brc_netcdf_atts_in *in)
{
    const brc_json *noted =
        brc_json_member(brc_json_member(in->note, "attributes"), BRC_ATTR_FILL);
    return !brc_json_member(in->attrs, BRC_ATTR_FILL) &&
           !brc_json_is(brc_json_member(noted, "type"), "own");
}

/* ---- booleans ------------------------------------- */

/* The most bytes that are read at once. */
#define BOX_BYTES ((uint64_t)4 << 20)

static int all_booleans(int *are, const brc_array_in *array, brc_error *err)
{
    uint64_t chunk[BRC_MAX_NDIM];
    size_t len, room = 0;
    uint8_t *data = NULL;
    brc_sel all = BRC_SEL_INIT;
    brc_cut boxes;
    int rc = BRC_OK;

    *are = 1;
    for (int k = 0; k < array->ndim; k++)
        chunk[k] = array->chunked ? array->chunk[k] : 1;
    brc_sel_of_shape(&all, array->ndim, array->shape);
    brc_cut_chunks(&boxes, &all, chunk, 1, BOX_BYTES);
    while (*are && brc_cut_next(&boxes)) {
        len = (size_t)boxes.elements;
        if (len > room) { /* usually the first box is the largest */
            BRC_GO(brc_new_big((void **)&data, len, err));
            room = len;
        }
        BRC_GO(array->read(array->ctx, &boxes.sel, data, len, err));
        for (size_t i = 0; i < len && *are; i++)
            *are = data[i] <= 1;
    }
done:
    free(data);
    return rc;
}

int brc_netcdf_find_booleans(int *are, brc_netcdf_atts_in *in, const brc_array_in *array,
                             brc_error *err)
{
    *are = 0;
    if (!brc_json_is(brc_json_member(in->attrs, "dtype"), "bool") ||
        (in->of.type != NC_BYTE && in->of.type != NC_UBYTE) ||
        brc_json_member(in->attrs, BRC_ATTR_FILL))
        return BRC_OK;
    BRC_TRY(all_booleans(are, array, err));
    if (*are)
        brc_json_remove(in->attrs, "dtype");
    return BRC_OK;
}

/* ==== netcdf out att ================================ */

/* Writes the attributes of a node, see netcdf_att.h. */

/* Returns whether the attribute holds Zarr v2's names of dimensions, or a note. */
static int is_ours(const char *name)
{
    return strcmp(name, "_ARRAY_DIMENSIONS") == 0 || strcmp(name, BRC_NETCDF_GROUP_NOTE) == 0;
}

/* Writes the noted bytes if the attribute still has the value that the bytes have in JSON. `value`
 * is NULL if there is no such attribute. Sets *done to 1 if the bytes were written. */
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
    int rc = netcdf_att_json(&was, &out->of, name, &values, err);
    if (rc == BRC_OK && (was ? value && brc_json_equal(was, value) : !value)) {
        *done = 1;
        rc = out->put(out->ctx, name, &values, err);
    }
    brc_json_free(was);
    brc_netcdf_values_free(&values);
    return rc;
}

/* Writes a complex _FillValue as two doubles. */
static int put_pair(int *done, brc_netcdf_atts_out *out, const brc_json *value, brc_error *err)
{
    brc_netcdf_of number = { .type = NC_DOUBLE, .is_var = 1 };
    brc_netcdf_values part;
    double pair[2];

    *done = brc_json_kind(value) == BRC_JSON_ARRAY && brc_json_count(value) == 2;
    for (size_t i = 0; i < 2 && *done; i++) {
        BRC_TRY(netcdf_att_values(&part, &number, BRC_ATTR_FILL, brc_json_item(value, i),
                                  NC_DOUBLE, err));
        *done = part.type == NC_DOUBLE && part.n == 1;
        if (*done)
            memcpy(&pair[i], part.data, sizeof(pair[i]));
        brc_netcdf_values_free(&part);
    }
    brc_netcdf_values both = { NC_NAT, 2, pair, NULL };
    return *done ? out->put(out->ctx, BRC_ATTR_FILL, &both, err) : BRC_OK;
}

static int put_one(brc_netcdf_atts_out *out, const char *name, const brc_json *entry,
                   const brc_json *value, brc_error *err)
{
    const char *type;
    int is_typed = brc_json_text(entry, &type);
    int is_fill = out->of.is_var && strcmp(name, BRC_ATTR_FILL) == 0, done = 0;
    brc_netcdf_values values;

    if (is_fill)
        out->has_fill = 1;
    BRC_TRY(put_noted(&done, out, name, entry, value, err));
    if (!done && is_fill && out->of.is_complex)
        BRC_TRY(put_pair(&done, out, value, err));
    if (done)
        return BRC_OK;
    BRC_TRY(netcdf_att_values(&values, &out->of, name, value,
                              is_typed ? netcdf_type_named(type) : NC_NAT, err));
    int rc = out->put(out->ctx, name, &values, err);
    brc_netcdf_values_free(&values);
    return rc;
}

/* Writes an attribute that only the note has. */
static int put_only_noted(brc_netcdf_atts_out *out, const char *name, const brc_json *entry,
                          brc_error *err)
{
    int is_fill = out->of.is_var && strcmp(name, BRC_ATTR_FILL) == 0, done;

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
        const char *name = brc_json_name(v);
        if (strstr(name, BRC_JSON_NUL))
            return brc_fail(
                err, BRC_EUNSUPPORTED,
                "the name of an attribute contains U+0000, which NetCDF does not allow: "
                "rename or remove the attribute");
        if (!is_ours(name))
            BRC_TRY(put_one(out, name, brc_json_member(notes, name), v, err));
    }
    for (const brc_json *v = brc_json_first(notes); v; v = brc_json_next(v)) {
        const char *name = brc_json_name(v);
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
