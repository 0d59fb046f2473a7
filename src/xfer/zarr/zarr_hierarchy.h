/* Zarr hierarchies as sources and destinations: directories and zip archives. */
#ifndef BRC_XFER_ZARR_HIERARCHY_H
#define BRC_XFER_ZARR_HIERARCHY_H

#include "../formats.h"

/* The functions of brc_format, for the hierarchy in a directory or a zip archive. */
BRC_MUST_USE int brc_zarr_import(brc_session *s, const brc_source *source, const char *path,
                                 const brc_xfer_opts *opts, brc_error *err);
BRC_MUST_USE int brc_zarr_is_group(int *is_group, brc_session *s, const brc_source *source,
                                   brc_error *err);
BRC_MUST_USE int brc_zarr_bytes(uint64_t *bytes, brc_session *s, const brc_source *source,
                                const brc_xfer_opts *opts, brc_error *err);

typedef struct brc_zarr_out_opts {
    int version;      /* 2 or 3                                    */
    int zip;          /* 1: a zip archive                          */
    int consolidated; /* 1: with a copy of all documents in one    */
    int nan_tokens;   /* 1: see BRC_XFER_NAN_TOKENS                */
    brc_buf *warnings; /* see brc_xfer_opts                        */
} brc_zarr_out_opts;
BRC_MUST_USE int brc_zarr_export(brc_session *s, const char *path, const char *dest,
                                 const brc_zarr_out_opts *opts, brc_error *err);

#endif
