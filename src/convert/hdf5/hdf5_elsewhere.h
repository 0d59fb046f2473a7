/*
 * Other files that an HDF5 file refers to. A file name is relative to the folder of the file that contains it;
 * the door decides which files may be opened (../lib/door.h).
 *
 * The library follows links to other files step by step, and asks this module before each step. The other
 * files stay open, so that a file's number and an address identify an object that was met before.
 */
#ifndef BRC_CONVERT_HDF5_HDF5_ELSEWHERE_H
#define BRC_CONVERT_HDF5_HDF5_ELSEWHERE_H

#include "hdf5_tree.h"

/* A series of sources (x-%b.h5) ends if more than this many in a row are missing. */
#define BRC_HDF5_SERIES_GAP 8

/* Another file. */
typedef struct brc_hdf5_other {
    unsigned long number; /* the library's number of the file */
    hid_t id;
    brc_hdf5_paths paths;
} brc_hdf5_other;

typedef struct brc_hdf5_elsewhere {
    const brc_convert *convert;
    brc_hdf5_other *others;
    size_t n, cap;
    /* The last link to another file that the library followed since brc_hdf5_forget_link(). */
    int links;    /* number of links followed              */
    int code;     /* -errno if the file could not be read  */
    char *object, *file; /* NULL: no memory, or no link */
} brc_hdf5_elsewhere;

/* Opens the file that is imported. *links is the property list with which its objects are opened, and *raw the
 * one for datasets whose elements are in raw files. The caller closes all three
 * ids. */
BRC_MUST_USE int brc_hdf5_file_open(hid_t *file, hid_t *links, hid_t *raw, brc_hdf5_elsewhere *elsewhere, const char *name,
                                    brc_error *err);

void brc_hdf5_forget_link(brc_hdf5_elsewhere *elsewhere);
/* Reports that the link `label` was followed and leads nowhere. */
int brc_hdf5_link_refuse(const brc_hdf5_elsewhere *elsewhere, const char *label, brc_error *err);
/* Finds the file of an object that is not in the imported file. */
BRC_MUST_USE int brc_hdf5_other_find(const brc_hdf5_other **out, brc_hdf5_elsewhere *elsewhere, hid_t object,
                                     unsigned long number, hid_t links, const char *label, brc_error *err);
void brc_hdf5_elsewhere_free(brc_hdf5_elsewhere *elsewhere);

#endif
