/* The filters of a dataset: whether they are there, and what is noted of them. */
#ifndef BRC_CONVERT_LIB_HDF5_FILTERS_H
#define BRC_CONVERT_LIB_HDF5_FILTERS_H

#include "hdf5_lib.h"

/* Whether the library has all filters of the dataset, which has this list of properties; where not, BRC_EUNSUPPORTED names the first. */
BRC_MUST_USE int brc_hdf5_filters_check(const brc_convert *c, hid_t plist, hid_t dataset, const char *label, brc_error *err);
/* Adds those that are no part of HDF5 to a note, for an export writes others: as "filters",
 * [{"number": N, "name": "LZF"}, ...]. */
BRC_MUST_USE int brc_hdf5_filters_note(brc_json *note, hid_t plist, brc_error *err);

#endif
