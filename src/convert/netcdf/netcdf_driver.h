/* The driver of NetCDF files, for the program and for tests. */
#ifndef BRC_CONVERT_NETCDF_DRIVER_H
#define BRC_CONVERT_NETCDF_DRIVER_H

#include "../lib/convert.h"

extern const brc_driver brc_netcdf_driver;

#endif
