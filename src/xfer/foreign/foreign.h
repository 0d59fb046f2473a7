/*
 * Formats whose libraries run in a process of their own: the host of converters
 * (src/convert) and of commands that write the stream of an import (docs/STREAM.md).
 *
 * A converter is a program in the folder brc_open_opts.libexec, or where this build was
 * installed. It may crash, hang or lie: then nothing is imported, and the error is one
 * sentence.
 */
#ifndef BRC_XFER_FOREIGN_FOREIGN_H
#define BRC_XFER_FOREIGN_FOREIGN_H

#include "../formats.h"
#include "../stream/stream_in.h"

/* A program that writes a stream, or reads one. */
typedef struct brc_foreign {
    brc_session *session;
    const char *converter;     /* "hdf5"; NULL: a command of sh ...                  */
    const char *command;       /* ... this command                                   */
    const char *file;          /* the source, or the destination                     */
    const brc_xfer_opts *opts;
    brc_parts *parts;          /* receives the parts of the file that cannot be kept; NULL: not wanted */
} brc_foreign;

/* An import that has begun: the program runs, and its stream can be read. */
typedef struct brc_foreign_in brc_foreign_in;
BRC_MUST_USE int brc_foreign_open(brc_foreign_in **out, const brc_foreign *what, brc_error *err);
brc_stream *brc_foreign_stream(const brc_foreign_in *in);
/* Combines the result of reading the stream (rc, and *err below 0) with that of the program. If the program
 * reported why there is no stream, the result is that error. */
BRC_MUST_USE int brc_foreign_close(brc_foreign_in *in, int rc, brc_error *err);

/* Imports the program's output as the node `path`. */
BRC_MUST_USE int brc_foreign_import(const brc_foreign *what, const char *path, brc_error *err);
/* Returns the decoded bytes that the import will bring. */
BRC_MUST_USE int brc_foreign_bytes(uint64_t *bytes, const brc_foreign *what, brc_error *err);

/* Makes the converter write the node `path` to what->file, which must not exist: under a temporary name beside it,
 * which is renamed on success. netcdf: the converter of HDF5 shall write NetCDF-4. */
BRC_MUST_USE int brc_foreign_export(const brc_foreign *what, const char *path, int netcdf, brc_error *err);

/* For the table of formats: a converter's file is a group. */
BRC_MUST_USE int brc_foreign_is_group(int *is, brc_session *s, const brc_source *source, brc_error *err);

/* Returns the folder of converters of an installed build. */
const char *brc_libexec_default(void);

#endif
