/* A tree of files to export: a directory, or a zip archive. It is written under a temporary name and renamed when
 * it is complete. */
#ifndef BRC_XFER_ZARR_TREE_OUT_H
#define BRC_XFER_ZARR_TREE_OUT_H

#include "../../base/buf.h"

typedef struct brc_tree_out brc_tree_out;
struct brc_tree_out {
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
