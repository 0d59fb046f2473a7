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

/* ---- tree out -------------------------------- */

/* A tree of files to export: a directory, or a zip archive. It is written under a temporary name and renamed when it
 * is complete. */

typedef struct brc_tree_out brc_tree_out;
struct brc_tree_out {
    int any_thread; /* 1: several threads may call put() at once; what it writes depends on their order in nothing */
    /* Makes a folder, with those above it; paths are "a/b", "" is the tree itself. */
    int (*folder)(brc_tree_out *tree, const char *path, brc_error *err);
    /* Writes a new file, with the folders above it. */
    int (*put)(brc_tree_out *tree, const char *path, brc_span bytes, brc_error *err);
    int (*finish)(brc_tree_out *tree, brc_error *err);
    void (*close)(brc_tree_out *tree); /* removes an unfinished tree */
};

BRC_MUST_USE int brc_tree_out_dir(brc_tree_out **out, const brc_session *s, const char *dest,
                                  brc_error *err);
/* Opens an archive for writing. Entries are stored without compression, in the order in which they come, with one
 * date for all: equal trees give equal archives. */
BRC_MUST_USE int brc_tree_out_zip(brc_tree_out **out, const brc_session *s, const char *dest,
                                  brc_error *err);
void brc_tree_out_free(brc_tree_out *tree);

#endif
