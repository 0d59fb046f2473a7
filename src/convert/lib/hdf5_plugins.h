/*
 * Filters of HDF5 that the user has installed: libraries in folders. All of them are loaded before
 * the sandbox closes, for in there no memory becomes code; libhdf5 looks for none by itself.
 */
#ifndef BRC_CONVERT_LIB_HDF5_PLUGINS_H
#define BRC_CONVERT_LIB_HDF5_PLUGINS_H

#include "hdf5_lib.h"

/* The built-in ones, and those in the folders, which have ":" between them. What in these is no filter, or
 * cannot be loaded, is passed over: a dataset that needs it says so. */
BRC_MUST_USE int brc_hdf5_plugins_load(const char *folders, brc_error *err);

#endif
