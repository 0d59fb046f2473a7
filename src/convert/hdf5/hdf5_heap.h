/*
 * Global heaps of HDF5, which store elements of variable length.
 *
 * An element names a collection of the heap and a number in it. libhdf5 before 1.14 follows a number that the
 * collection does not have, and takes the heap's length where the element gives another length: a damaged file
 * then yields arbitrary memory, or elements that are half of another. brc_hdf5_heap_check() therefore compares
 * numbers and lengths before elements are read.
 */
#ifndef BRC_CONVERT_HDF5_HDF5_HEAP_H
#define BRC_CONVERT_HDF5_HDF5_HEAP_H

#include "hdf5_lib.h"

/* Checks that the heaps hold everything that the selected elements name, including lists within lists. `space`
 * is the dataset's space with a box selected, or H5S_ALL. Returns BRC_EINVAL if something is missing. The check
 * skips virtual datasets, compact datasets (in an object's header), and datasets behind a plug-in that decodes
 * but does not encode: the library does not give their elements as they are stored. */
BRC_MUST_USE int brc_hdf5_heap_check(hid_t dataset, hid_t space, const char *label, brc_error *err);

#endif
