/* A Zarr hierarchy that is being imported. */
#ifndef BRC_XFER_ZARR_DIR_H
#define BRC_XFER_ZARR_DIR_H

#include "../../base/json.h"
#include "tree_in.h"

#define BRC_CHUNK_FILE_MAX ((uint64_t)INT32_MAX) /* bytes of one stored chunk */

/* Takes over the chunks in the array's directory `dir`: byte for byte, or, where `doc` is not
 * NULL, from its encoding and chunks into those of `a`. */
BRC_MUST_USE int brc_zarr_take_chunks(brc_array *a, const brc_json *doc, brc_tree_in *tree,
                                      const char *dir, brc_error *err);

#endif
