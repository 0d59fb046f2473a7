/* Two HDF5 files compared, object by object. Everything fails the test that called it. */
#ifndef BRC_TESTS_HDF5_SAME_H
#define BRC_TESTS_HDF5_SAME_H

/* All that `expected` has, hard links followed, is in `seen`, and nothing else: groups, committed data
 * types, datasets and attributes with their types (also whether and as what those are committed),
 * shapes and elements, references by the paths and the selections that they lead to. */
void hdf5_same_files(const char *expected, const char *seen);

#endif
