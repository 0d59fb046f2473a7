/*
 * What reading and writing NetCDF through netCDF-C share.
 *
 * A NetCDF file has groups (classic ones: the root alone), dimensions with names, and
 * variables over dimensions. It becomes the same hierarchy of groups and arrays; what it
 * says that Zarr has no word for is noted beside that (netcdf_note.h).
 */
#ifndef BRC_CONVERT_NETCDF_NETCDF_LIB_H
#define BRC_CONVERT_NETCDF_NETCDF_LIB_H

#include <netcdf.h>

#include "../lib/convert.h"
#include "../lib/convert_program.h"

/* What the states of reading and of writing begin with. */
typedef struct brc_netcdf_run {
    void (*close)(void *state);
} brc_netcdf_run;

/* The file's name in a form that netCDF-C does not take for a URL, as it does with any
 * name that contains "://". */
BRC_MUST_USE int brc_netcdf_path(char **out, const char *file, brc_error *err);
/* "<what> <label>: <the library's reason>", with `code` unless the status says more. */
int brc_netcdf_fail(int status, int code, const char *what, const char *label, brc_error *err);

/* 1: by its signature an HDF5 file, as NetCDF-4 files are. */
int brc_netcdf_is_hdf5(const char *file);
/* A NetCDF-4 file can point outside itself, and its groups can form circles: netCDF-C follows
 * both. BRC_EINVAL says what is wrong. */
BRC_MUST_USE int brc_netcdf_check_links(const char *file, brc_error *err);
/* Whether a classic file holds all that its header promises; netCDF-C reads what is missing as
 * zeros, and takes memory for what is promised. BRC_EINVAL if it does not. Else *places: where
 * the elements of each variable lie, big-endian and in C order, by its number. */
typedef struct brc_netcdf_places {
    brc_tar_range *ranges;
    size_t n;
} brc_netcdf_places;
BRC_MUST_USE int brc_netcdf_check_length(brc_netcdf_places *places, const char *file, brc_error *err);
void brc_netcdf_places_free(brc_netcdf_places *places);

/* Of the types that every NetCDF-4 file has: bytes of one value, 0 for others; its name
 * in CDL; by that name, NC_NAT if there is none. */
size_t brc_netcdf_atomic_size(nc_type type);
const char *brc_netcdf_type_name(nc_type type);
nc_type brc_netcdf_type_named(const char *name);
/* The value that marks elements that were never written, where a variable names none;
 * 0 bytes for types that have none. */
size_t brc_netcdf_default_fill(nc_type type, uint8_t out[8]);

/* The attribute whose value stands for elements that are missing. */
#define BRC_NETCDF_FILL "_FillValue"
/* Dimensions that the library makes up where a file has none, "phony_dim_0": no names. */
#define BRC_NETCDF_NAMELESS "phony_dim_"

#endif
