/* HDF5 as a driver of src/convert/lib. */
#ifndef BRC_CONVERT_HDF5_DRIVER_H
#define BRC_CONVERT_HDF5_DRIVER_H

#include "../lib/convert.h"

extern const brc_driver brc_hdf5_driver;

#endif
