/*
 * Datasets whose type is not one data type of Zarr's, as groups: see ../lib/ragged.h.
 *
 * The group has the dataset's attributes. Its note (BRC_HDF5_GROUP_NOTE) is that of a group, and
 *
 *   "dataset": {
 *     "type": TREE               as in hdf5_tree.h
 *     "shape": [n, ...]          of the dataset
 *     "maxshape": [n or null, ...], "chunk": [n, ...], "space": "null", "committed": path
 *     "names": [text or null, ...]   of the axes
 *     "fill": value              as JSON, see brc_hdf5_value_print()
 *   }
 */
#ifndef BRC_CONVERT_HDF5_RAGGED_H
#define BRC_CONVERT_HDF5_RAGGED_H

#include "../lib/ragged.h"
#include "hdf5_tree.h"

#define BRC_HDF5_RAGGED "dataset" /* the member of the note */

/* The same type; the leaves' `own` are their trees. Both are freed by their owner, this one first. */
BRC_MUST_USE int brc_hdf5_ragged_of(brc_ragged *out, const brc_hdf5_tree *tree, brc_error *err);

#endif
