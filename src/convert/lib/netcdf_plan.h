/*
 * The plan of a NetCDF file that is written: its dimensions, and the types and attributes of its variables. It is
 * the same for classic files, which netCDF-C writes, and for NetCDF-4, which libhdf5 writes.
 *
 * Types that every NetCDF-4 file has (NC_BYTE ... NC_STRING; a classic file has no strings):
 *
 *   bool                        byte, with the attribute dtype "bool" (as xarray has it)
 *   numpy.datetime64            int64 with CF's units and calendar
 *   numpy.timedelta64           int64 with units, and dtype as xarray has it
 *   string, fixed_length_utf32  string
 *   null_terminated_bytes n     char, along one more dimension, string<n>
 *   int2, int4, uint2, uint4    byte and ubyte, with the attribute dtype
 *   float16, bfloat16, float8 ... float, which has all their values, likewise
 *
 * Types that a NetCDF-4 file defines: raw bytes are opaque, `bytes` a vlen of ubyte, a struct a compound, a
 * complex number a compound of r and i.
 */
#ifndef BRC_CONVERT_LIB_NETCDF_PLAN_H
#define BRC_CONVERT_LIB_NETCDF_PLAN_H

#include "../../nd/dtype.h"
#include "netcdf_att.h"

/* ---- types ------------------------------------- */

enum {
    BRC_NETCDF_PLAIN = 0, /* the file has an element's bytes */
    BRC_NETCDF_UTF32,     /* UTF-32, padded, which becomes a string */
    BRC_NETCDF_WIDER      /* a number that NetCDF has in a larger type */
};

typedef struct brc_netcdf_type {
    nc_type id;            /* NC_NAT: the file defines the type */
    int how;               /* BRC_NETCDF_* */
    size_t chars;          /* the length of the dimension that characters add; 0: none */
    const brc_dtype *from; /* the array's; borrowed */
} brc_netcdf_type;

/* Chooses the type of a variable. BRC_EUNSUPPORTED names a data type that NetCDF, or classic NetCDF, does not have. */
BRC_MUST_USE int brc_netcdf_type_of(brc_netcdf_type *out, const brc_dtype *from, int classic, brc_error *err);
/* Fails for a data type that NetCDF does not have. */
int brc_netcdf_no_type(const brc_dtype *from, brc_error *err);
/* Converts n packed elements to the wider type. */
void brc_netcdf_widen(const brc_netcdf_type *type, uint8_t *file, const uint8_t *here, size_t n);

/* ---- groups, dimensions, variables ------------- */

typedef struct brc_netcdf_dim {
    char *name;      /* NULL: the dimension gets a name later */
    uint64_t length;
    int group;       /* index of the group that has it                            */
    int fixed_place; /* the group is given: by a note, or by a coordinate */
    int hidden_by;   /* a dimension with a given group that its variables see under the name; -1: none */
    int unlimited;
} brc_netcdf_dim;

typedef struct brc_netcdf_group {
    const brc_node_out *node; /* NULL: the root of a file with one variable has no node */
    const char *name;         /* the last part of the path                        */
    int parent;               /* index; -1: the group is the root */
} brc_netcdf_group;

/* A variable: an array, or a group that stands for one (BRC_NETCDF_RAGGED). */
typedef struct brc_netcdf_var {
    const brc_node_out *node;
    char *name;
    int group;                  /* index                                          */
    int ndim;                   /* includes the dimension of characters */
    uint64_t shape[BRC_MAX_NDIM + 1];
    char *names[BRC_MAX_NDIM + 1]; /* names of the axes; NULL: no name */
    int dims[BRC_MAX_NDIM + 1]; /* indices                                        */
    brc_netcdf_type type;       /* of an array                                    */
} brc_netcdf_var;

typedef struct brc_netcdf_plan {
    int classic;
    brc_netcdf_dim *dims; /* in the order in which the file numbers them */
    size_t ndims, dims_cap;
    brc_netcdf_group *groups; /* the first is the root */
    size_t ngroups, groups_cap;
    brc_netcdf_var *vars; /* in the order of their nodes */
    size_t nvars, vars_cap;
} brc_netcdf_plan;

/* Plans the groups, and the variables with their shapes, types and names of axes. A group that stands for a variable
 * has no shape and names until the caller sets them. */
BRC_MUST_USE int brc_netcdf_plan_nodes(brc_netcdf_plan *plan, const brc_convert *c, int classic, brc_error *err);
/* Chooses the dimensions of all variables. */
BRC_MUST_USE int brc_netcdf_plan_dims(brc_netcdf_plan *plan, brc_error *err);
void brc_netcdf_plan_free(brc_netcdf_plan *plan);

/* Returns the variable of a node; NULL if the node has none of its own. */
const brc_netcdf_var *brc_netcdf_plan_var(const brc_netcdf_plan *plan, const brc_node_out *node);
/* Returns whether a group has a dimension of this name. Sets *dim to its index. */
int brc_netcdf_plan_has_dim(const brc_netcdf_plan *plan, int group, const char *name, int *dim);
/* Returns whether the variable is the coordinate of its first dimension. */
int brc_netcdf_is_coordinate(const brc_netcdf_plan *plan, const brc_netcdf_var *var);

/* Returns the note that makes a group a variable; NULL if the node has none. */
const brc_json *brc_netcdf_noted_variable(const brc_node_out *node);

/* ---- attributes -------------------------------- */

/* Calls put() with every attribute of a variable. If atts->own_fill is set afterwards, the caller must write
 * _FillValue, because its type is one that the file defines. */
BRC_MUST_USE int brc_netcdf_var_atts(brc_netcdf_atts_out *atts, const brc_netcdf_var *var, brc_error *err);
/* Returns whether the variable must have no fill value. Every element is written, and Zarr's fill value marks nothing
 * as missing: without a _FillValue, readers must not take an element for missing. An exception is a fill value that
 * is NetCDF's default for the type, because it came from NetCDF. */
int brc_netcdf_has_no_fill(const brc_netcdf_var *var, int has_fill);

#endif
