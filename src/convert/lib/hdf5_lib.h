/*
 * What converters share in their use of libhdf5: errors with its reason,
 * ids of any kind closed.
 *
 * The interface of 1.10 is asked for, which newer versions of the library keep.
 */
#ifndef BRC_CONVERT_LIB_HDF5_LIB_H
#define BRC_CONVERT_LIB_HDF5_LIB_H

#define H5_USE_110_API 1
#include <hdf5.h>

#include "convert.h"

#define BRC_HDF5_NONE ((hid_t)-1)

/* How the state of an import and that of an export begin: the driver's close() does not know
 * which of the two it has. */
typedef struct brc_hdf5_file {
    void (*close)(void *state);
} brc_hdf5_file;

/* The library prints no errors from now on. */
BRC_MUST_USE int brc_hdf5_start(brc_error *err);
/* Of any kind of id; BRC_HDF5_NONE is allowed. */
void brc_hdf5_close(hid_t id);
/* Directly after a call that failed: the sentence, and the library's reason in brackets. */
int brc_hdf5_fail(brc_error *err, int code, const char *format, ...) BRC_PRINTF(3, 4);

/* Selects the box in a dataset's space of ndim axes; those beyond are within an element. The space of as many
 * elements in memory, to close, or BRC_HDF5_NONE. */
hid_t brc_hdf5_select(hid_t space, int ndim, const brc_sel *box);
/* What the library calls the node: what follows the file's name. */
BRC_MUST_USE int brc_hdf5_label(char **out, const char *file, const char *path, brc_error *err);

#endif
