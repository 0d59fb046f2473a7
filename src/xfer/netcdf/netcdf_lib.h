/*
 * netCDF-C, opened at first use, and what reading and writing NetCDF share.
 *
 * A NetCDF file has groups (classic ones: the root alone), dimensions with names, and
 * variables over dimensions. It becomes the same hierarchy of groups and arrays; what it
 * says that Zarr has no word for is noted beside that (netcdf_note.h).
 */
#ifndef BRC_XFER_NETCDF_LIB_H
#define BRC_XFER_NETCDF_LIB_H

#include <netcdf.h>

#include "../container/container.h"

#define BRC_NETCDF_CALLS(X) \
    X(nc_strerror)          \
    X(nc_open)              \
    X(nc_create)            \
    X(nc_close)             \
    X(nc_abort)             \
    X(nc_enddef)            \
    X(nc_set_fill)          \
    X(nc_inq_format)        \
    X(nc_inq_grps)          \
    X(nc_inq_grpname)       \
    X(nc_inq_dimids)        \
    X(nc_inq_dim)           \
    X(nc_inq_unlimdims)     \
    X(nc_inq_unlimdim)      \
    X(nc_inq_varids)        \
    X(nc_inq_varname)       \
    X(nc_inq_vartype)       \
    X(nc_inq_varndims)      \
    X(nc_inq_vardimid)      \
    X(nc_inq_varnatts)      \
    X(nc_inq_var_chunking)  \
    X(nc_inq_var_fill)      \
    X(nc_inq_natts)         \
    X(nc_inq_attname)       \
    X(nc_inq_att)           \
    X(nc_get_att)           \
    X(nc_get_vara)          \
    X(nc_free_string)       \
    X(nc_inq_type)          \
    X(nc_inq_user_type)     \
    X(nc_inq_compound)      \
    X(nc_inq_compound_field) \
    X(nc_inq_compound_fielddim_sizes) \
    X(nc_inq_enum)          \
    X(nc_inq_enum_member)   \
    X(nc_def_grp)           \
    X(nc_def_dim)           \
    X(nc_def_var)           \
    X(nc_def_var_chunking)  \
    X(nc_def_var_deflate)   \
    X(nc_def_var_fill)      \
    X(nc_def_compound)      \
    X(nc_insert_compound)   \
    X(nc_insert_array_compound) \
    X(nc_def_opaque)        \
    X(nc_def_vlen)          \
    X(nc_put_att)           \
    X(nc_rename_att)        \
    X(nc_put_vara)

typedef struct brc_netcdf {
#define X(name) __typeof__(name) *name;
    BRC_NETCDF_CALLS(X)
#undef X
} brc_netcdf;

/* BRC_EUNSUPPORTED where the library is not there. */
BRC_MUST_USE int brc_netcdf_load(brc_netcdf *out, brc_error *err);
/* The file's name as one that netCDF-C takes for no URL and no request to a server, which
 * it does wherever "://" occurs. */
BRC_MUST_USE int brc_netcdf_path(char **out, const char *file, brc_error *err);
/* "<what> <label>: <the library's reason>", with `code` unless the status says more. */
int brc_netcdf_fail(const brc_netcdf *lib, int status, int code, const char *what,
                    const char *label, brc_error *err);

/* What is in a file's header, or the heaps and links of a NetCDF-4 file, before the library
 * reads them: it crashes on some damaged ones, and NetCDF-4 files can point outside
 * themselves. BRC_EINVAL says what is wrong. */
BRC_MUST_USE int brc_netcdf_check_classic(const char *file, brc_error *err);
BRC_MUST_USE int brc_netcdf_check_heaps(const char *file, brc_error *err);
BRC_MUST_USE int brc_netcdf_check_links(const char *file, brc_error *err);
/* 1: by its first bytes a classic file. */
BRC_MUST_USE int brc_netcdf_is_classic(int *is, const char *file, brc_error *err);

/* Of the types that every NetCDF-4 file has: bytes of one value, 0 for others; its name
 * in CDL; by that name, NC_NAT where there is none. */
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
