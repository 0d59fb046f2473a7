/*
 * Import and export, by format. brc_import() has a transaction open and brc_export()
 * none; every function here leaves what it did half to them.
 */
#ifndef BRC_XFER_XFER_H
#define BRC_XFER_XFER_H

#include "../base/error.h"

/* What a source is, by its content. */
enum {
    BRC_SOURCE_ZARR = 1, /* v3 or v2: a directory, or a zip archive           */
    BRC_SOURCE_NPY,      /* also gzipped                                      */
    BRC_SOURCE_NPZ,
    BRC_SOURCE_IDX,    /* also gzipped                                      */
    BRC_SOURCE_NETCDF, /* classic, or NetCDF-4, which is HDF5               */
    BRC_SOURCE_HDF5
};
/* BRC_EUNSUPPORTED says what can be imported. */
BRC_MUST_USE int brc_source_kind(int *kind, const char *source, brc_error *err);
/* A node's name from a file's: "mnist-t10k-images" from
 * "data/mnist-t10k-images-idx3-ubyte.gz". */
BRC_MUST_USE int brc_source_name(char **out, const char *source, brc_error *err);
/* 1 where `name` can be a node's, and a file's on export. */
int brc_name_is_safe(const char *name, size_t len);
/* The same for each part of a path "a/b/c" without a leading slash. */
int brc_path_is_safe(const char *path);
/* 1 where the caller wants this node of the source left out; "a/b" or "/a/b". */
int brc_is_excluded(const brc_xfer_opts *opts, const char *path);
/* "/a" and "b" to "/a/b", "/" and "b" to "/b". */
BRC_MUST_USE int brc_node_join(char **out, const char *path, const char *name, brc_error *err);

/* One of the nodes under a path; `inner` is its path below that of the first, "a/b", and ""
 * of the first itself. */
typedef int (*brc_node_fn)(void *ctx, const char *path, const char *inner, int kind,
                           brc_error *err);
/* Every node, the one at the path first. A first round visits them all before `each` is
 * called: what is damaged or exceeds a limit is told before anything is written. */
BRC_MUST_USE int brc_nodes_each(brc_session *s, const char *path, brc_node_fn each, void *ctx,
                                brc_error *err);

BRC_MUST_USE int brc_zarr_import(brc_session *s, const char *source, const char *path,
                                 const brc_xfer_opts *opts, brc_error *err);
/* *is_group: whether the source's own node is no array. What is broken in it is found
 * when it is imported. */
BRC_MUST_USE int brc_zarr_is_group(int *is_group, brc_session *s, const char *source,
                                   brc_error *err);
BRC_MUST_USE int brc_npz_import(brc_session *s, const char *file, const char *path,
                                const brc_xfer_opts *opts, brc_error *err);
/* .npy and IDX */
BRC_MUST_USE int brc_single_import(brc_session *s, int kind, const char *file, const char *path,
                                   const brc_xfer_opts *opts, brc_error *err);

/* The decoded bytes that the import of a source will bring, as far as its documents and
 * headers say: for progress alone. They are not checked further than that takes. */
BRC_MUST_USE int brc_zarr_bytes(uint64_t *bytes, brc_session *s, const char *source,
                                const brc_xfer_opts *opts, brc_error *err);
BRC_MUST_USE int brc_npz_bytes(uint64_t *bytes, brc_session *s, const char *file,
                               const brc_xfer_opts *opts, brc_error *err);
BRC_MUST_USE int brc_single_bytes(uint64_t *bytes, brc_session *s, int kind, const char *file,
                                  brc_error *err);
BRC_MUST_USE int brc_netcdf_bytes(uint64_t *bytes, brc_session *s, const char *file,
                                  const brc_xfer_opts *opts, brc_error *err);
BRC_MUST_USE int brc_hdf5_bytes(uint64_t *bytes, brc_session *s, const char *file,
                                const brc_xfer_opts *opts, brc_error *err);
/* Adds those of one array, with one byte for an element of variable length (item 0); what
 * exceeds 64 bits counts nothing. */
void brc_add_array_bytes(uint64_t *sum, int ndim, const uint64_t *shape, size_t item);

/* A Zarr hierarchy, as a directory or a zip archive. */
typedef struct brc_zarr_out_opts {
    int version;      /* 2 or 3                                    */
    int zip;          /* 1: an archive                             */
    int consolidated; /* 1: with a copy of all documents in one    */
} brc_zarr_out_opts;
BRC_MUST_USE int brc_zarr_export(brc_session *s, const char *path, const char *dest,
                                 const brc_zarr_out_opts *opts, brc_error *err);
BRC_MUST_USE int brc_npz_export(brc_session *s, const char *path, const char *dest, brc_error *err);

/* NetCDF and HDF5: the file's root group becomes the group `path`. */
BRC_MUST_USE int brc_netcdf_import(brc_session *s, const char *file, const char *path,
                                   const brc_xfer_opts *opts, brc_error *err);
BRC_MUST_USE int brc_hdf5_import(brc_session *s, const char *file, const char *path,
                                 const brc_xfer_opts *opts, brc_error *err);
/* *is: whether an HDF5 file was written as NetCDF-4. */
BRC_MUST_USE int brc_hdf5_is_netcdf(int *is, const char *file, brc_error *err);
/* The node becomes the file's root group; an array, the one in it. classic: in the
 * smallest of the formats before NetCDF-4 that can hold it. */
BRC_MUST_USE int brc_netcdf_export(brc_session *s, const char *path, const char *dest, int classic,
                                   brc_error *err);
BRC_MUST_USE int brc_hdf5_export(brc_session *s, const char *path, const char *dest,
                                 brc_error *err);

#endif
