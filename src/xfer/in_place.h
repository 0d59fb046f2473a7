/*
 * Imports whose chunks stay in the source's files (BRC_XFER_EXTERNAL). The files become places of the backend
 * "external" (backends/external.h).
 */
#ifndef BRC_XFER_IN_PLACE_H
#define BRC_XFER_IN_PLACE_H

#include <sys/stat.h>

#include "../zarr/array/array.h"
#include "../zarr/transfer.h"
#include "documents.h"
#include "stream/stream_out.h"

static inline int brc_is_external(const brc_xfer_opts *opts)
{
    return opts != NULL && (opts->flags & BRC_XFER_EXTERNAL) != 0;
}

/* Sets *out (terminated) to the name of the place that a file is: its path is relative to the folder of the
 * repository's file if the file lies beneath that. `st`: describes the file; NULL: it is looked at here. */
BRC_MUST_USE int brc_external_place(brc_buf *out, const brc_store *store, const char *file, const struct stat *st,
                                    brc_error *err);

/* The chunk files of an array: the index of each in a grid, `ndim` numbers one behind the other. */
typedef struct brc_external_files {
    int ndim;
    const uint64_t *count; /* of the grid */
    char separator;        /* between the numbers in a file's name */
    const uint64_t *index;
    size_t n;
} brc_external_files;
/* Returns the number of a file, which is its object's offset in their place. */
uint64_t brc_external_number(const brc_external_files *files, size_t i);
/* Sets *out (terminated) to the name of the place that all these files are: `stem` is the path of each before the numbers
 * (backends/external.h). Leaves *out empty if they cannot be one place. */
BRC_MUST_USE int brc_external_files_place(brc_buf *out, const brc_store *store, const char *stem,
                                          const brc_external_files *files, brc_error *err);

/* The elements of an array, in one file without compression. */
typedef struct brc_external_elements {
    brc_stream_file *file;
    brc_tar_range range; /* of all elements                    */
    int fortran;         /* the first axis runs fastest        */
    int big;             /* big-endian                         */
} brc_external_elements;

/* Takes the elements into an array without chunks. Chunks that are whole ranges stay in the file; others are stored. */
BRC_MUST_USE int brc_external_take(brc_array *a, const brc_external_elements *elements, brc_error *err);

/* Notes how many of the array's chunks are in the repository's file. */
BRC_MUST_USE int brc_external_note(brc_import_notes *notes, brc_array *a, brc_error *err);

#endif
