/*
 * Names of dimensions in an export: within a data set, one name has one length.
 *
 * In Zarr every array has its own shape and names, so two arrays of a group may have one name with
 * two lengths, as after an append to one of them. xarray does not open such a group, and in NetCDF,
 * where the group has the dimensions, one of the two would get a name that nobody gave it.
 *
 * A dimension belongs to the nearest group, from the array's own upwards, that has a coordinate for
 * it (an array of its name along it) or for which an import has noted it; otherwise to the array's
 * own group. A group may therefore have a dimension of its own with the name of one above, as in
 * NetCDF, and dimensions of sibling groups are independent.
 */
#ifndef BRC_XFER_XFER_NODES_H
#define BRC_XFER_XFER_NODES_H

#include "xfer.h"

typedef enum brc_dimensions_rule {
    BRC_DIMENSIONS_FREE = 0, /* arrays of the format do not share names of dimensions             */
    BRC_DIMENSIONS_ZARR,     /* except in groups that say "multiscales": OME-Zarr has one picture in several sizes
                              * in one group, and names its axes itself */
    BRC_DIMENSIONS_NETCDF
} brc_dimensions_rule;

/* Fails with BRC_EINVAL if dimensions of one name differ in two arrays under the path; the message names the
 * arrays, the lengths and the remedy. For NetCDF, also refuses one array that has two such dimensions, which is
 * valid in Zarr. */
BRC_MUST_USE int brc_dimensions_check(brc_session *s, const char *path, brc_dimensions_rule rule, brc_error *err);

#endif
