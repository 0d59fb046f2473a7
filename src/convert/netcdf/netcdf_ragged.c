/* What import and export of them share, see netcdf_ragged.h. */
#include "netcdf_ragged.h"

#include <stdlib.h>
#include <string.h>

#include "../../base/alloc.h"

_Static_assert(sizeof(brc_ragged_list) == sizeof(nc_vlen_t),
               "lists lie in memory as NetCDF has them");

int brc_netcdf_ragged_leaf(brc_ragged *out, const brc_registry *reg, const char *dtype,
                           brc_netcdf_leaf **leaf, brc_error *err)
{
    brc_json *json = NULL;
    brc_netcdf_leaf *own;
    int rc;
    BRC_TRY(brc_new((void **)&own, sizeof(*own), err));
    *leaf = own;
    out->kind = BRC_RAGGED_LEAF;
    out->own = own;
    BRC_TRY(brc_dup(&own->text, dtype, err));
    if (dtype[0] == '{' || dtype[0] == '"')
        BRC_GO(brc_json_parse(&json, dtype, strlen(dtype), err));
    else if (!(json = brc_json_new_string(dtype)))
        return brc_nomem(err);
    BRC_GO(brc_dtype_open(&own->dtype, reg, json, err));
    out->dtype = own->text;
    out->type = own->dtype;
done:
    brc_json_free(json);
    return rc;
}

void brc_netcdf_ragged_free(brc_ragged *type)
{
    for (size_t i = 0; i < type->n && type->items; i++)
        brc_netcdf_ragged_free(&type->items[i]);
    free(type->items);
    free((void *)(uintptr_t)type->name);
    brc_netcdf_leaf *leaf = (brc_netcdf_leaf *)(uintptr_t)type->own;
    if (leaf) {
        brc_netcdf_type_free(&leaf->type);
        brc_dtype_free(leaf->dtype);
        free(leaf->text);
        free(leaf);
    }
    memset(type, 0, sizeof(*type));
}
