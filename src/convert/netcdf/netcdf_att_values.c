/* JSON as attributes of NetCDF, see netcdf_att.h. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "../../base/alloc.h"
#include "../../base/json.h"
#include "netcdf_att.h"

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

int brc_netcdf_att_values(brc_netcdf_values *out, const brc_netcdf_of *of, const char *name,
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
