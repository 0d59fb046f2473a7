/*
 * Names of dimensions in an export: within a data set, one name has one length.
 *
 * In Zarr every array has a shape and names of its own, so that nothing here keeps two arrays of a
 * group from having one name with two lengths, as after an append to one of them alone. xarray does
 * not open such a group, and in NetCDF, where a group has the dimensions, one of the two would get
 * a name that nobody gave it.
 *
 * A dimension belongs to the nearest group, from the array's own upwards, that has a coordinate for
 * it (an array of its name along it) or for which an import has noted it; else to the array's own
 * group. So a group may have a dimension of its own that is called as one above is, as in NetCDF,
 * and groups side by side never concern each other.
 */
#ifndef BRC_XFER_XFER_NODES_H
#define BRC_XFER_XFER_NODES_H

#include "xfer.h"

typedef enum brc_dimensions_rule {
    BRC_DIMENSIONS_FREE = 0, /* the format has no names of dimensions that arrays share           */
    BRC_DIMENSIONS_ZARR,     /* except in groups that say "multiscales": OME-Zarr has one picture
                                in several sizes in one group, and says what its axes are called   */
    BRC_DIMENSIONS_NETCDF
} brc_dimensions_rule;

/* BRC_EINVAL names two arrays under the path whose dimensions of one name differ, the lengths and the
 * remedy; for NetCDF also one array that has two of them, which is valid in Zarr. */
BRC_MUST_USE int brc_dimensions_check(brc_session *s, const char *path, brc_dimensions_rule rule, brc_error *err);

#endif
