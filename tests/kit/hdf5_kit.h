/* HDF5 files made and looked at with libhdf5, for tests. Everything fails the test that
 * called it. */
#ifndef BRC_TESTS_HDF5_KIT_H
#define BRC_TESTS_HDF5_KIT_H

#include <check.h>
#include <hdf5.h>
#include <hdf5_hl.h>

#include "exchange_kit.h"

/* An id or a status of the library, which must be one. */
#define H5(call) hdf5_checked((int64_t)(call), #call)
int64_t hdf5_checked(int64_t result, const char *call);

/* A new file in the kit's folder, of the oldest format, where nothing has a checksum, or
 * of that of HDF5 1.8. Close with H5Fclose(). */
hid_t hdf5_new_file(exchange_kit *kit, const char *name, int old);
/* A dataset with these elements, which are as in `memory`; plist H5P_DEFAULT: contiguous. */
hid_t hdf5_new_dataset(hid_t file, const char *name, hid_t type, int ndim, const hsize_t *shape,
                       hid_t plist, hid_t memory, const void *data);
/* The same, of one axis of n, and closed. */
void hdf5_put(hid_t file, const char *name, hid_t type, hsize_t n, hid_t memory, const void *data);
/* An attribute; ndim -1: a null dataspace. */
void hdf5_put_attribute(hid_t object, const char *name, hid_t type, int ndim, const hsize_t *shape,
                        hid_t memory, const void *data);
hid_t hdf5_chunked(int ndim, const hsize_t *chunk); /* a property list */

void hdf5_import_ok(exchange_kit *kit, const char *name, const char *path);
/* With this code, and a sentence that has these words. */
void hdf5_import_says(exchange_kit *kit, const char *name, int code, const char *says);
void hdf5_export_ok(exchange_kit *kit, const char *path, const char *name);

/* A member of a node's zarr.json as JSON text, "" where there is none; valid until the
 * next call. */
const char *hdf5_member(exchange_kit *kit, const char *path, const char *name);
void hdf5_check_member(exchange_kit *kit, const char *path, const char *name, const char *json);
void hdf5_check_attribute(exchange_kit *kit, const char *path, const char *name, const char *json);
void hdf5_check_bytes(exchange_kit *kit, const char *path, const void *expected, size_t len);
/* Elements of any type, as fill values print, one after the other in a list. */
void hdf5_check_values(exchange_kit *kit, const char *path, const char *json);
/* Pairs of a path below `root` and its elements, or of a path, "@" and an attribute, and its value; NULL behind the last. */
void hdf5_check_all(exchange_kit *kit, const char *root, const char *const *checks);
/* Elements of variable length: u32le and bytes. */
void hdf5_check_elements(exchange_kit *kit, const char *path, const void *expected, size_t len);

#endif
