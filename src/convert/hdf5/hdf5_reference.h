/*
 * References of HDF5 as text.
 *
 *   to an object    its path in the file: "/a/b"
 *   to a region     its dataset's path, "#" and the selection: "/a#[0:2, 3:9:2]", Python's slices
 *                   of one box; "/a#[0:2, 3:5][7:9, 3:5]", the union of several; "/a#[1, 2][0, 3]",
 *                   points in this order; "/a#[...]", all of it; "/a#[]", nothing
 *   to nothing      ""
 */
#ifndef BRC_CONVERT_HDF5_REFERENCE_H
#define BRC_CONVERT_HDF5_REFERENCE_H

#include "../../base/buf.h"
#include "hdf5_paths.h"

/* The text of a reference as the library has it in memory, appended. BRC_EINVAL where no path
 * leads to the object. */
BRC_MUST_USE int brc_hdf5_reference_text(const brc_hdf5_paths *paths, hid_t file, int is_region, const void *reference,
                                         brc_buf *out, const char *label, brc_error *err);

/* 1 and the reference that the text means, in the file, `path` being that of its object there, as
 * `text` has it or another; 0: there is no such object or region; below 0: an error. `text` is not
 * "". */
BRC_MUST_USE int brc_hdf5_reference_make(hid_t file, int is_region, const char *path, const char *text, void *reference,
                                         const char *label, brc_error *err);

#endif
