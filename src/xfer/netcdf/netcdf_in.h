/* Reading NetCDF: what its files share. */
#ifndef BRC_XFER_NETCDF_IN_H
#define BRC_XFER_NETCDF_IN_H

#include "netcdf_att.h"
#include "netcdf_type.h"

typedef struct brc_netcdf_in {
    brc_netcdf lib;
    brc_session *session;
    const char *file;
    const brc_xfer_opts *opts;
    int is_netcdf4; /* its model: groups, types, chunks */
    int has_groups; /* besides the root                 */
    uint64_t *bytes; /* only those of the variables are counted; NULL: they are imported */
} brc_netcdf_in;

/* The variable becomes the array `path`. */
BRC_MUST_USE int brc_netcdf_import_var(const brc_netcdf_in *in, int group, int var, const char *label,
                                       const char *path, brc_error *err);
/* Adds the variable's bytes to in->bytes. */
BRC_MUST_USE int brc_netcdf_count_var(const brc_netcdf_in *in, int group, int var, const char *label, brc_error *err);
/* Of a type without texts and lists: its _FillValue, or what its unwritten elements read
 * as, as it is in the array; NULL where the file says nothing of it. */
BRC_MUST_USE int brc_netcdf_read_fill(uint8_t **out, const brc_netcdf_in *in, int group, int var,
                                      const brc_netcdf_type *type, const char *label, brc_error *err);

#endif
