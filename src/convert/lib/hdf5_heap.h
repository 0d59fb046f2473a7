/*
 * Global heaps of HDF5, in which elements of variable length lie.
 *
 * An element names a collection of the heap and a number in it. libhdf5 before 1.14 follows a number that the
 * collection does not have, and takes as many bytes as the heap says where the element says another length: a
 * damaged file then gives whatever is in memory, or elements that are half of another. So both are compared
 * before elements are read.
 */
#ifndef BRC_CONVERT_LIB_HDF5_HEAP_H
#define BRC_CONVERT_LIB_HDF5_HEAP_H

#include "hdf5_lib.h"

/* Whether what the selected box of elements names is there, lists in lists too; `space` is the dataset's with
 * that box selected, or H5S_ALL. BRC_EINVAL: something is not. Virtual datasets, those in an object's
 * header (compact ones), and those behind a plug-in that decodes and does not encode are not looked at: the library
 * does not give their elements as they are stored. */
BRC_MUST_USE int brc_hdf5_heap_check(hid_t dataset, hid_t space, const char *label, brc_error *err);

#endif
