/*
 * The corpus: small files of other formats, one for each kind of thing that a file can have, made here
 * by the formats' own libraries, or by hand where there is none. The suite `corpus` imports each,
 * compares every element with what its maker wrote, exports it to its own format and to Zarr, and
 * imports and compares those.
 *
 * To add one: write its maker in corpus_hdf5.c, corpus_netcdf.c, corpus_zarr.c or corpus_npy.c, and a
 * row in the table there. `cause` says in a few words what is special about the file; `checks` are
 * pairs of a path and its elements as JSON (as fill values print, in C order), or of a path, "@" and
 * an attribute, and its value; "" is the node that the file becomes. What the maker writes and what the
 * row expects are two texts, so that neither can hide a fault of the other.
 */
#ifndef BRC_TESTS_CORPUS_H
#define BRC_TESTS_CORPUS_H

#include <hdf5.h>

#include "exchange_kit.h"

enum { CORPUS_CHECKS = 48 };

typedef struct corpus_entry {
    const char *cause;
    const char *file;        /* its name: the ending is that of its format */
    const char *format;      /* as it is exported; NULL: the ending says it */
    /* one of these */
    void (*hdf5)(hid_t file);
    void (*netcdf)(int nc);
    void (*other)(exchange_kit *kit, const char *name);
    int mode;                /* of nc_create(), or 1: of HDF5 1.8 and later */
    const char *refused;     /* what export to its own format says, which has no such thing; NULL: it is done */
    const char *note;        /* a path and, behind a blank, words that its zarr.json has; NULL: none */
    const char *checks[CORPUS_CHECKS];
} corpus_entry;

typedef struct corpus_table {
    const corpus_entry *entries;
    int n;
} corpus_table;

corpus_table corpus_hdf5(void);
corpus_table corpus_netcdf(void);
corpus_table corpus_zarr(void);
corpus_table corpus_npy(void);

#endif
