/*
 * Helpers that reading and writing NetCDF through netCDF-C share.
 *
 * A NetCDF file has groups (classic ones: the root alone), dimensions with names, and
 * variables over dimensions. It becomes the same hierarchy of groups and arrays; what it
 * says that Zarr has no word for is noted beside that (../lib/netcdf_att.h).
 */
#ifndef BRC_CONVERT_NETCDF_NETCDF_LIB_H
#define BRC_CONVERT_NETCDF_NETCDF_LIB_H

#include "../lib/netcdf_att.h"

/* The first member of the states of reading and of writing. */
typedef struct brc_netcdf_run {
    void (*close)(void *state);
} brc_netcdf_run;

/* The file's name in a form that netCDF-C does not take for a URL, as it does with any
 * name that contains "://". */
BRC_MUST_USE int brc_netcdf_path(char **out, const char *file, brc_error *err);
/* "<what> <label>: <the library's reason>", with `code` unless the status says more. */
int brc_netcdf_fail(int status, int code, const char *what, const char *label, brc_error *err);

/* Whether a classic file holds all that its header promises; netCDF-C reads what is missing as
 * zeros, and takes memory for what is promised. BRC_EINVAL if it does not. Else *places: where
 * the elements of each variable lie, big-endian and in C order, by its number. */
typedef struct brc_netcdf_places {
    brc_tar_range *ranges;
    size_t n;
} brc_netcdf_places;
BRC_MUST_USE int brc_netcdf_check_length(brc_netcdf_places *places, const char *file, brc_error *err);
void brc_netcdf_places_free(brc_netcdf_places *places);

#endif
