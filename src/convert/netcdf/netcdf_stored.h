/*
 * How libhdf5 has a variable of NetCDF-4, which netCDF-C does not tell: which chunks are stored,
 * for a file of a few bytes may describe more elements than anybody can read; and elements that
 * pass as they are stored.
 */
#ifndef BRC_CONVERT_NETCDF_STORED_H
#define BRC_CONVERT_NETCDF_STORED_H

#include "../lib/hdf5_chunks.h"
#include "netcdf_type.h"

typedef struct brc_netcdf_stored {
    int found;         /* the data set is, and it has the variable's shape and chunks  */
    int has_gap;       /* not every chunk is stored: not that with the index `gap` ... */
    uint64_t gap[BRC_MAX_NDIM];
    brc_hdf5_stored chunks;
    brc_hdf5_pass *pass;
    hid_t file, set, plist, file_type;
    brc_dtype *dtype;
} brc_netcdf_stored;

void brc_netcdf_stored_init(brc_netcdf_stored *stored); /* nothing is found */
/* Of the variable `array` in the open file of this name. Where libhdf5 cannot tell, nothing is
 * found: reading the elements will say why. */
BRC_MUST_USE int brc_netcdf_stored_open(brc_netcdf_stored *out, const char *file, const brc_array_in *array,
                                        brc_error *err);
/* Before the variable is read: BRC_EUNSUPPORTED where libhdf5 lacks one of its filters, BRC_EINVAL where elements of
 * variable length name what is not there. */
BRC_MUST_USE int brc_netcdf_set_check(const brc_convert *c, const char *file, const brc_array_in *array, brc_error *err);
/* Makes the array pass what is stored, where it can be: then its context is `stored`, and what is
 * missing is fill value. */
BRC_MUST_USE int brc_netcdf_stored_pass(brc_netcdf_stored *stored, const brc_registry *reg, const brc_netcdf_type *type,
                                        brc_array_in *array, brc_error *err);
void brc_netcdf_stored_close(brc_netcdf_stored *stored);

#endif
