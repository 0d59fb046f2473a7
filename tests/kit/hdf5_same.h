/* Two HDF5 files compared, object by object. Everything fails the test that called it. */
#ifndef BRC_TESTS_HDF5_SAME_H
#define BRC_TESTS_HDF5_SAME_H

#include <hdf5.h>

/* All that `expected` has, hard links followed, is in `seen`, and nothing else: groups, committed data
 * types, datasets and attributes with their types (also whether and as what those are committed),
 * shapes and elements, of lists and compounds also chunks and whether there is a fill value, references by
 * the paths and the selections that they lead to. */
void hdf5_same_files(const char *expected, const char *seen);
/* A file that put() fills is imported, looked at, and exported; exported with all around it, imported and
 * exported again; and exported to Zarr, imported, looked at and exported. All three files are the same as the
 * first. `checks`: as in hdf5_check_all(). */
void hdf5_in_and_out_again(void (*put)(hid_t file), const char *const *checks);

#endif
