/*
 * NetCDF-4 files, which are HDF5 files with netCDF's conventions:
 *
 *   dimension     a dimension scale, which lies in the group that has the dimension and has its name.
 *                 If no variable has that name, the scale's attribute NAME begins with
 *                 BRC_HDF5_NO_VARIABLE. A dimension that grows has an unlimited extent, and is as long
 *                 as the longest dataset that has it: past their ends, shorter datasets have fill value
 *   variable      any other dataset, and a scale that is a coordinate. A variable that has a dimension's
 *                 name and is not its coordinate has the prefix "_nc4_non_coord_". Its dimensions are
 *                 those in DIMENSION_LIST, or their numbers (_Netcdf4Dimid) in _Netcdf4Coordinates
 *   type          a committed data type. A type within another type has a name only if it is equal
 *   attribute     attributes with some names are netCDF's own and hidden
 *
 * An import gives them the same notes (../lib/netcdf_att.h) as classic files, and no others.
 */
#ifndef BRC_CONVERT_HDF5_HDF5_NETCDF_H
#define BRC_CONVERT_HDF5_HDF5_NETCDF_H

#include "../lib/netcdf_att.h"
#include "hdf5_in.h"

/* The prefix of a variable that has a dimension's name, and attributes of dimensions and variables. */
#define BRC_HDF5_NOT_COORDINATE "_nc4_non_coord_"
#define BRC_HDF5_DIMID "_Netcdf4Dimid"
#define BRC_HDF5_COORDINATES "_Netcdf4Coordinates"

/* Returns whether an attribute of this name is netCDF's own, and hidden. */
int brc_hdf5_is_netcdfs_own(const char *name);
/* Returns whether the file was written as NetCDF-4. */
int brc_hdf5_is_netcdf(const brc_hdf5_in *in);
/* Reads the file's dimensions and types into in->netcdf, and makes the import follow these rules. in->paths must have
 * been read. */
BRC_MUST_USE int brc_hdf5_netcdf_open(brc_hdf5_in *in, brc_error *err);
void brc_hdf5_netcdf_free(const brc_hdf5_netcdf *netcdf);
/* Stands for another file to which a link leads, and whose dimensions are not known. */
extern const brc_hdf5_netcdf brc_hdf5_netcdf_elsewhere;

/* Returns whether the dataset is a dimension without a variable. */
int brc_hdf5_is_dimension(const brc_hdf5_in *in, hid_t dataset);
/* Returns the name of the variable with this link. */
const char *brc_hdf5_variable_name(const char *link);

/* Names the axes of a variable (the caller frees the texts; NULL: no name), and makes `shape` as long as the
 * dimensions. */
BRC_MUST_USE int brc_hdf5_netcdf_axes(char **names, uint64_t *shape, const brc_hdf5_in *in, hid_t dataset, int ndim,
                                      const char *label, brc_error *err);

/* A variable's type, for its attributes. */
typedef struct brc_hdf5_netcdf_var {
    hid_t file;                /* in the file */
    const brc_hdf5_type *type; /* NULL: the type is not one of Zarr's */
    const brc_json *note;      /* of the type */
    const brc_dtype *dtype;    /* of the type */
} brc_hdf5_netcdf_var;
/* Reads all attributes of a variable, or of a group (var NULL), by the rules of ../lib/netcdf_att.h; also the
 * meanings of an enumeration. The caller owns out->attrs and out->note, also after a failure. */
BRC_MUST_USE int brc_hdf5_netcdf_atts(brc_netcdf_atts_in *out, const brc_hdf5_in *in, hid_t object,
                                      const brc_hdf5_netcdf_var *var, const char *label, brc_error *err);
/* Reads the variable's _FillValue into `element`, in its form in memory. Sets *found to 0 if there is none of the
 * variable's own type. */
BRC_MUST_USE int brc_hdf5_netcdf_fill(int *found, void *element, hid_t dataset, const brc_hdf5_netcdf_var *var,
                                      const char *label, brc_error *err);
/* Writes the document of a group. */
BRC_MUST_USE int brc_hdf5_netcdf_group(const brc_hdf5_in *in, hid_t group, const char *path, const char *label, brc_error *err);

/* Gives every compound and list in the tree the name of the equal committed type, and removes the notes from the
 * leaves, because these are HDF5's. */
BRC_MUST_USE int brc_hdf5_netcdf_name_types(const brc_hdf5_in *in, brc_hdf5_tree *tree, hid_t type, brc_error *err);

#endif
