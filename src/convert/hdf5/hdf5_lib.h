/*
 * Use of libhdf5 in this converter: errors with the library's reason, ids of any kind, filters.
 *
 * The converter uses the interface of version 1.10, which newer versions keep.
 */
#ifndef BRC_CONVERT_HDF5_HDF5_LIB_H
#define BRC_CONVERT_HDF5_HDF5_LIB_H

#include <hdf5.h>

#include "../lib/convert.h"

/* ---- hdf5 lib -------------------------------- */

#define H5_USE_110_API 1

#define BRC_HDF5_NONE ((hid_t)-1)

/* The common beginning of the states of an import and an export, because the driver's close() does not know which one
 * it gets. */
typedef struct brc_hdf5_file {
    void (*close)(void *state);
} brc_hdf5_file;

/* Starts the library, and stops it from printing errors. */
BRC_MUST_USE int brc_hdf5_start(brc_error *err);
/* Closes an id of any kind; BRC_HDF5_NONE is allowed. */
void brc_hdf5_close(hid_t id);
/* Fails with the sentence and the library's reason in brackets. Must be called directly after
 * the call that failed. */
int brc_hdf5_fail(brc_error *err, int code, const char *format, ...) BRC_PRINTF(3, 4);

/* Selects `part` of the box in a dataset's space of ndim axes; further axes lie within an element. Returns the space
 * of the box in memory, with the same part selected, which the caller closes; or BRC_HDF5_NONE. */
hid_t brc_hdf5_select(hid_t space, int ndim, const brc_sel *box, const brc_sel *part);
/* Makes the label of a node: the file's name and the node's path. */
BRC_MUST_USE int brc_hdf5_label(char **out, const char *file, const char *path, brc_error *err);

/* ---- hdf5 plugins -------------------------------- */

/*
 * Filters of HDF5 that the user has installed: libraries in folders. All of them are loaded before
 * the sandbox closes, because no library can be loaded inside it; libhdf5 does not search for filters
 * by itself.
 */

/* Loads the built-in filters, and those in the folders, which are separated by ":". Skips a file that is not a
 * filter or cannot be loaded: a dataset that needs the filter fails later. */
BRC_MUST_USE int brc_hdf5_plugins_load(const char *folders, brc_error *err);

/* ---- hdf5 filters -------------------------------- */

/* The filters of a dataset: checks whether the library has them, and notes them. */

/* Checks that the library has all filters of the dataset, whose properties are `plist`. BRC_EUNSUPPORTED names the
 * first missing filter. */
BRC_MUST_USE int brc_hdf5_filters_check(const brc_convert *c, hid_t plist, hid_t dataset, const char *label, brc_error *err);
/* Adds the filters that are not a part of HDF5 to a note, because an export writes others: as "filters",
 * [{"number": N, "name": "LZF"}, ...]. */
BRC_MUST_USE int brc_hdf5_filters_note(brc_json *note, hid_t plist, brc_error *err);

#endif
