/*
 * NetCDF-4 files, which are HDF5 files: what netCDF's conventions say in them.
 *
 *   dimension     a dimension scale, which lies in the group that has the dimension; its name is the
 *                 scale's. Where no variable has that name, the scale's attribute NAME begins with
 *                 BRC_HDF5_NO_VARIABLE. A dimension that grows is one with an unlimited extent, and as long
 *                 as the longest dataset that has it: in others, what is behind their end is fill value
 *   variable      any other dataset, and a scale that is a coordinate. One that has a dimension's name and
 *                 is not its coordinate has the prefix "_nc4_non_coord_". Its dimensions are those of
 *                 DIMENSION_LIST, or by _Netcdf4Coordinates the numbers (_Netcdf4Dimid) of them
 *   type          a committed data type. What is in another type has it only by being equal
 *   attribute     one of some names is netCDF's own and hidden
 *
 * Imported, they have the notes of ../lib/netcdf_att.h, as classic files do, and no others.
 */
#ifndef BRC_CONVERT_HDF5_HDF5_NETCDF_H
#define BRC_CONVERT_HDF5_HDF5_NETCDF_H

#include "../lib/netcdf_att.h"
#include "hdf5_in.h"

/* Whether the file was written as NetCDF-4. */
int brc_hdf5_is_netcdf(const brc_hdf5_in *in);
/* Reads its dimensions and types into in->netcdf, and has everything read by these rules. in->paths has been read. */
BRC_MUST_USE int brc_hdf5_netcdf_open(brc_hdf5_in *in, brc_error *err);
void brc_hdf5_netcdf_free(const brc_hdf5_netcdf *netcdf);
/* For objects of another file that a link leads to, of which no dimensions are known. */
extern const brc_hdf5_netcdf brc_hdf5_netcdf_elsewhere;

/* Whether the dataset is a dimension and no variable. */
int brc_hdf5_is_dimension(const brc_hdf5_in *in, hid_t dataset);
/* The variable's name, of the link's. */
const char *brc_hdf5_variable_name(const char *link);

/* Names the axes of a variable (texts to free; NULL: it has none), and makes `shape` as long as its dimensions are. */
BRC_MUST_USE int brc_hdf5_netcdf_axes(char **names, uint64_t *shape, const brc_hdf5_in *in, hid_t dataset, int ndim,
                                      const char *label, brc_error *err);

/* A variable's type, for its attributes. */
typedef struct brc_hdf5_netcdf_var {
    hid_t file;                /* as the file has it */
    const brc_hdf5_type *type; /* NULL: it is none of Zarr's */
    const brc_json *note;      /* the type's                 */
    const brc_dtype *dtype;    /* likewise */
} brc_hdf5_netcdf_var;
/* All attributes of a variable, or a group (var NULL), as ../lib/netcdf_att.h says; an enumeration's meanings too.
 * out->attrs and out->note are the caller's, also on failure. */
BRC_MUST_USE int brc_hdf5_netcdf_atts(brc_netcdf_atts_in *out, const brc_hdf5_in *in, hid_t object,
                                      const brc_hdf5_netcdf_var *var, const char *label, brc_error *err);
/* *found: the variable has a _FillValue of its own type, and here it is, as memory has an element. */
BRC_MUST_USE int brc_hdf5_netcdf_fill(int *found, void *element, hid_t dataset, const brc_hdf5_netcdf_var *var,
                                      const char *label, brc_error *err);
/* The document of a group. */
BRC_MUST_USE int brc_hdf5_netcdf_group(const brc_hdf5_in *in, hid_t group, const char *path, const char *label, brc_error *err);

/* Gives every compound and list in the tree the name of the committed type that is equal to it, and takes the notes off
 * the leaves, which are HDF5's. */
BRC_MUST_USE int brc_hdf5_netcdf_name_types(const brc_hdf5_in *in, brc_hdf5_tree *tree, hid_t type, brc_error *err);

#endif
