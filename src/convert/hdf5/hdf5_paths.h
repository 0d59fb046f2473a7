/*
 * Which paths the objects of an HDF5 file have: what references and committed data types, which
 * are addresses in the file, become as text.
 *
 * An object has the first path that hard links give it, in the order of names, the groups in a
 * group after its other members. Objects that no hard link leads to have none.
 */
#ifndef BRC_CONVERT_HDF5_PATHS_H
#define BRC_CONVERT_HDF5_PATHS_H

#include "../../base/buf.h"
#include "../lib/hdf5_lib.h"

typedef struct brc_hdf5_paths {
    void *met; /* of tsearch(): struct brc_hdf5_path */
    char **named; /* names of links to committed data types, one group's after the other's */
    size_t nnamed, named_cap;
    size_t taken; /* bytes of all of it */
    /* Of another file, of which an external link brings in the part from `from` on, as `to` in the file that is
     * imported. NULL: that file's own paths. */
    const char *from, *to;
} brc_hdf5_paths;

/* Goes through all groups of the file. What cannot be read is passed over: whoever needs it fails
 * there. `links`: how objects are opened. */
BRC_MUST_USE int brc_hdf5_paths_read(brc_hdf5_paths *out, hid_t file, hid_t links, const char *label, brc_error *err);
void brc_hdf5_paths_free(brc_hdf5_paths *paths);

/* Appends "/a/b", the object's path in the file that is imported: 1; 0: no path leads to it there. */
BRC_MUST_USE int brc_hdf5_path_put(const brc_hdf5_paths *paths, haddr_t address, brc_buf *out, brc_error *err);
/* Its path in its own file, of an open object or a committed data type; NULL: no path leads to it. */
const char *brc_hdf5_path_of_object(const brc_hdf5_paths *paths, hid_t object);
/* The names of the links to committed data types in an open group. */
char *const *brc_hdf5_named_in(const brc_hdf5_paths *paths, hid_t group, size_t *n);

#endif
