/* Attributes of NetCDF as JSON, see netcdf_att.h. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "../../base/alloc.h"
#include "../../base/json.h"
#include "../../nd/bytes_json.h"
#include "netcdf_att.h"

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
