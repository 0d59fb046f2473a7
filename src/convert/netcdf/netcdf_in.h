/* Reading classic NetCDF files. */
#ifndef BRC_CONVERT_NETCDF_NETCDF_IN_H
#define BRC_CONVERT_NETCDF_NETCDF_IN_H

#include "netcdf_lib.h"

/* The driver's state, see brc_driver. */
BRC_MUST_USE int brc_netcdf_open(void **state, brc_convert *c, const char *file, brc_error *err);
BRC_MUST_USE int brc_netcdf_walk(void *state, brc_error *err);

#endif
