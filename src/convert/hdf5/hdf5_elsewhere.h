/*
 * Other files that an HDF5 file leads to. A name in a file is one in that file's folder; which files may be
 * opened is the door's rule (../lib/door.h).
 *
 * Links to other files are followed by the library, step by step, and each step is asked for here
 * first. The files that they lead to stay open, so that an object is known again by its file's
 * number and its address.
 */
#ifndef BRC_CONVERT_HDF5_HDF5_ELSEWHERE_H
#define BRC_CONVERT_HDF5_HDF5_ELSEWHERE_H

#include "hdf5_tree.h"

/* A series of sources (x-%b.h5) ends where so many and one more in a row are not there. */
#define BRC_HDF5_SERIES_GAP 8

/* Another file. */
typedef struct brc_hdf5_other {
    unsigned long number; /* the library's */
    hid_t id;
    brc_hdf5_paths paths;
} brc_hdf5_other;

typedef struct brc_hdf5_elsewhere {
    const brc_convert *convert;
    brc_hdf5_other *others;
    size_t n, cap;
    /* The last link to another file that was followed, since brc_hdf5_forget_link(). */
    int links;    /* how many                     */
    int code;     /* -errno: it could not be read */
    char *object, *file; /* NULL: no memory, or no link */
} brc_hdf5_elsewhere;

/* Opens the file that is imported. *links is the property list with which its objects are opened, and *raw the
 * one for datasets whose elements are in raw files. All are ids to close. */
BRC_MUST_USE int brc_hdf5_file_open(hid_t *file, hid_t *links, hid_t *raw, brc_hdf5_elsewhere *elsewhere, const char *name,
                                    brc_error *err);

void brc_hdf5_forget_link(brc_hdf5_elsewhere *elsewhere);
/* The link `label` was followed and leads nowhere. */
int brc_hdf5_link_refuse(const brc_hdf5_elsewhere *elsewhere, const char *label, brc_error *err);
/* The file of an object, which is not the first one. */
BRC_MUST_USE int brc_hdf5_other_find(const brc_hdf5_other **out, brc_hdf5_elsewhere *elsewhere, hid_t object,
                                     unsigned long number, hid_t links, const char *label, brc_error *err);
void brc_hdf5_elsewhere_free(brc_hdf5_elsewhere *elsewhere);

#endif
