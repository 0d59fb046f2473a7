/*
 * The fill value of a variable: its _FillValue, else what the library fills with.
 *
 * The library's own inquiry copies whatever a classic file has as _FillValue, of any
 * type and length, into memory for one value: it is asked of NetCDF-4 files alone.
 */
#include <stdlib.h>
#include <string.h>

#include "../../base/alloc.h"
#include "netcdf_in.h"

/* The attribute, where it is one value of the variable's own type. */
static int fill_of_att(int *found, uint8_t *out, int group, int var,
                       const brc_netcdf_type *type, const char *label, brc_error *err)
{
    nc_type is = NC_NAT;
    size_t n = 0;

    *found = nc_inq_att(group, var, BRC_NETCDF_FILL, &is, &n) == NC_NOERR &&
             is == type->id && n == 1;
    if (!*found)
        return BRC_OK;
    int status = nc_get_att(group, var, BRC_NETCDF_FILL, out);
    return status ? brc_netcdf_fail(status, BRC_EINVAL, "cannot read the _FillValue of",
                                    label, err)
                  : BRC_OK;
}

/* A value that was set for unwritten elements, or the type's own; *found 0 if they are
 * left as they are. */
static int fill_of_library(int *found, uint8_t *out, const brc_netcdf_in *in, int group, int var,
                           const brc_netcdf_type *type)
{
    uint8_t standard[8];
    int no_fill = 0;
    size_t size = brc_netcdf_default_fill(type->id, standard);

    *found = 0;
    if (nc_inq_var_fill(group, var, &no_fill, NULL) != NC_NOERR || no_fill)
        return BRC_OK;
    if (in->is_netcdf4) {
        *found = nc_inq_var_fill(group, var, &no_fill, out) == NC_NOERR;
        return BRC_OK;
    }
    *found = size == type->file_size;
    if (*found)
        memcpy(out, standard, size);
    return BRC_OK;
}

int brc_netcdf_read_fill(uint8_t **out, const brc_netcdf_in *in, int group, int var,
                         const brc_netcdf_type *type, const char *label, brc_error *err)
{
    uint8_t *value = NULL, *packed = NULL;
    int found, rc;

    *out = NULL;
    BRC_GO(brc_new_array((void **)&value, 1, type->file_size + sizeof(double), err));
    BRC_GO(brc_new_array((void **)&packed, 1, type->here_size + 1, err));
    BRC_GO(fill_of_att(&found, value, group, var, type, label, err));
    if (!found)
        BRC_GO(fill_of_library(&found, value, in, group, var, type));
    if (!found)
        goto done;
    if (type->nmoves > 0)
        brc_netcdf_move_in(type, packed, value, 1);
    else
        memcpy(packed, value, type->here_size);
    *out = packed;
    packed = NULL;
done:
    free(value);
    free(packed);
    return rc;
}
