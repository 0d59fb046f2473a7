/*
 * Classic NetCDF files, read and written through netCDF-C. NetCDF-4 is HDF5: ../hdf5.
 *
 * A classic file has dimensions with names, and variables over dimensions. The file becomes a group of
 * arrays; notes beside the group keep the details that Zarr cannot express (../lib/netcdf_att.h).
 */
#ifndef BRC_CONVERT_NETCDF_NETCDF_LIB_H
#define BRC_CONVERT_NETCDF_NETCDF_LIB_H

#include "../lib/netcdf_att.h"

/* The first member of the states of reading and of writing. */
typedef struct brc_netcdf_run {
    void (*close)(void *state);
} brc_netcdf_run;

/* Returns the file's name in a form that netCDF-C does not take for a URL. netCDF-C takes any name that
 * contains "://" for one. */
BRC_MUST_USE int brc_netcdf_path(char **out, const char *file, brc_error *err);
/* Reports "<what> <label>: <the library's reason>", with `code` unless the status says more. */
int brc_netcdf_fail(int status, int code, const char *what, const char *label, brc_error *err);

/* Checks that a classic file holds all the data that its header promises: netCDF-C reads missing data as zeros,
 * and allocates memory for the promised data. Returns BRC_EINVAL if data is missing. Otherwise sets *places, by
 * number of the variable, to the ranges of the variables' elements, which are big-endian and in C order. */
typedef struct brc_netcdf_places {
    brc_tar_range *ranges;
    size_t n;
} brc_netcdf_places;
BRC_MUST_USE int brc_netcdf_check_length(brc_netcdf_places *places, const char *file, brc_error *err);
void brc_netcdf_places_free(brc_netcdf_places *places);

/* ---- import, see brc_driver: netcdf_in.c -------------------------------- */

BRC_MUST_USE int brc_netcdf_open(void **state, brc_convert *c, const char *file, brc_error *err);
BRC_MUST_USE int brc_netcdf_walk(void *state, brc_error *err);

#endif
