/* File names, errors and types of netCDF-C, see netcdf_lib.h. */
#include "netcdf_lib.h"

#include <stdlib.h>
#include <string.h>

#include "../../base/alloc.h"

int brc_netcdf_path(char **out, const char *file, brc_error *err)
{
    brc_buf path = BRC_BUF_INIT;
    int rc = BRC_OK;

    if (file[0] != '/')
        BRC_GO(brc_buf_text(&path, "./", err));
    for (size_t i = 0; file[i]; i++)
        if (file[i] != '/' || i == 0 || file[i - 1] != '/')
            BRC_GO(brc_buf_byte(&path, (uint8_t)file[i], err));
    BRC_GO(brc_buf_take_text(&path, out, err));
done:
    brc_buf_dispose(&path);
    return rc;
}

int brc_netcdf_fail(int status, int code, const char *what, const char *label, brc_error *err)
{
    if (status == NC_ENOMEM)
        return brc_nomem(err);
    if (status > 0)
        return brc_fail_os(err, status, what, label);
    const char *why = nc_strerror(status);
    if (strncmp(why, "NetCDF: ", 8) == 0)
        why += 8;
    return brc_fail(err, code, "%s %s: %s", what, label, why);
}

/* ---- types -------------------------------- */

static const struct {
    nc_type type;
    size_t size;
    const char *name;
} atomic_types[] = {
    { NC_BYTE, 1, "byte" },   { NC_CHAR, 1, "char" },     { NC_SHORT, 2, "short" },
    { NC_INT, 4, "int" },     { NC_FLOAT, 4, "float" },   { NC_DOUBLE, 8, "double" },
    { NC_UBYTE, 1, "ubyte" }, { NC_USHORT, 2, "ushort" }, { NC_UINT, 4, "uint" },
    { NC_INT64, 8, "int64" }, { NC_UINT64, 8, "uint64" }, { NC_STRING, sizeof(char *), "string" },
};
#define N_ATOMIC_TYPES (sizeof(atomic_types) / sizeof(atomic_types[0]))

size_t brc_netcdf_atomic_size(nc_type type)
{
    for (size_t i = 0; i < N_ATOMIC_TYPES; i++)
        if (atomic_types[i].type == type)
            return atomic_types[i].size;
    return 0;
}

const char *brc_netcdf_type_name(nc_type type)
{
    for (size_t i = 0; i < N_ATOMIC_TYPES; i++)
        if (atomic_types[i].type == type)
            return atomic_types[i].name;
    return NULL;
}

nc_type brc_netcdf_type_named(const char *name)
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
