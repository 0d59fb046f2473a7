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
    const char *command;       /* ... this one                                       */
    const char *file;          /* the source, or what is to be written               */
    const brc_xfer_opts *opts;
    brc_parts *parts;          /* gets what of the file cannot be kept; NULL: nobody wants to know */
} brc_foreign;

/* An import that has begun: the program runs, and its stream can be looked at. */
typedef struct brc_foreign_in brc_foreign_in;
BRC_MUST_USE int brc_foreign_open(brc_foreign_in **out, const brc_foreign *what, brc_error *err);
brc_stream *brc_foreign_stream(const brc_foreign_in *in);
/* What became of reading the stream (rc, and *err below 0) and of the program together: the
 * result is what to tell. Where the program said why there is no stream, it is that. */
BRC_MUST_USE int brc_foreign_close(brc_foreign_in *in, int rc, brc_error *err);
/* Ends the program at once. */
void brc_foreign_free(brc_foreign_in *in);

/* Imports what the program writes as the node `path`. */
BRC_MUST_USE int brc_foreign_import(const brc_foreign *what, const char *path, brc_error *err);
/* The decoded bytes that it will bring. */
BRC_MUST_USE int brc_foreign_bytes(uint64_t *bytes, const brc_foreign *what, brc_error *err);

/* Has the converter write the node `path` as what->file, which is not there yet: under a
 * temporary name beside it, that becomes its own when all is well. */
BRC_MUST_USE int brc_foreign_export(const brc_foreign *what, const char *path, int classic, brc_error *err);

/* For the table of formats: a converter's file is a group. */
BRC_MUST_USE int brc_foreign_is_group(int *is, brc_session *s, const brc_source *source, brc_error *err);

/* Where this build looks for converters when it is installed. */
const char *brc_libexec_default(void);

#endif
