/* A Zarr v3 directory that is being imported. */
#ifndef BRC_XFER_ZARR_DIR_H
#define BRC_XFER_ZARR_DIR_H

#include "../base/json.h"

#define BRC_CHUNK_FILE_MAX ((uint64_t)INT32_MAX) /* bytes of one stored chunk */

/* What a name in a directory is; links are not followed. */
enum {
    BRC_ENTRY_NONE = 0,
    BRC_ENTRY_FILE,
    BRC_ENTRY_DIR,
    BRC_ENTRY_LINK,
    BRC_ENTRY_LINK_TO_DIR,
    BRC_ENTRY_OTHER
};
int brc_entry_kind(const char *path);

/* Takes over the chunks in the directory of an array byte for byte. */
BRC_MUST_USE int brc_zarr_take_chunks(brc_array *a, const char *dir, brc_error *err);
/* Decodes the chunks in the directory as `doc` says and writes their elements to
 * `a`, which differs from doc in its chunks and codecs alone. */
BRC_MUST_USE int brc_zarr_recode(brc_array *a, const brc_json *doc, const brc_registry *reg,
                                 const char *dir, brc_error *err);
/* doc's chunk grid: regular, with `ndim` axes. */
BRC_MUST_USE int brc_zarr_chunk_shape(uint64_t *chunk, int ndim, const brc_json *doc,
                                      brc_error *err);

#endif
