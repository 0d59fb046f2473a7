/*
 * A tree of files that is imported: a directory, or a zip archive.
 *
 * Paths are relative to the tree's root and in the form "a/b", "" for the root.
 * What a tree holds is hostile: links are not followed, and the names in a zip archive are
 * checked when it is opened.
 */
#ifndef BRC_XFER_ZARR_TREE_IN_H
#define BRC_XFER_ZARR_TREE_IN_H

#include "../../base/buf.h"

/* What there is at a path. */
enum {
    BRC_ENTRY_NONE = 0,
    BRC_ENTRY_FILE,
    BRC_ENTRY_DIR,
    BRC_ENTRY_LINK,
    BRC_ENTRY_LINK_TO_DIR,
    BRC_ENTRY_OTHER
};

typedef int (*brc_tree_found_fn)(void *ctx, const char *name, brc_error *err);

typedef struct brc_tree_in brc_tree_in;
struct brc_tree_in {
    char *name;          /* what messages call it: "x.zarr", "x.zip: data.zarr" */
    const char *between; /* what they put between it and a path: "/" or ": "    */
    breccia *repo; /* its file may lie in a directory, or be linked to, and is never read; its
                      interruption ends a listing. NULL: none */
    int (*kind)(brc_tree_in *tree, const char *path, int *kind, brc_error *err);
    /* each name in a directory, sorted */
    int (*each)(brc_tree_in *tree, const char *path, brc_tree_found_fn found, void *ctx,
                brc_error *err);
    /* appends a whole file; BRC_ELIMIT past `limit` bytes */
    int (*read)(brc_tree_in *tree, const char *path, uint64_t limit, brc_buf *out, brc_error *err);
    void (*close)(brc_tree_in *tree);
};

/* `s`: the session that imports, or NULL. */
BRC_MUST_USE int brc_tree_dir_open(brc_tree_in **out, const brc_session *s, const char *dir,
                                   brc_error *err);
/* A zip archive that holds a Zarr hierarchy at its top level or in one folder below. */
BRC_MUST_USE int brc_tree_zip_open(brc_tree_in **out, const char *file, brc_error *err);
void brc_tree_in_free(brc_tree_in *tree);
/* "x.zarr/a/b", "x.zip: a/b": for messages. */
BRC_MUST_USE int brc_tree_in_label(char **out, const brc_tree_in *tree, const char *path,
                                   brc_error *err);
/* "a" and "b" to "a/b", "" and "b" to "b". */
BRC_MUST_USE int brc_tree_path(char **out, const char *dir, const char *name, brc_error *err);

/* The names of documents, each of which shows that a folder is a hierarchy; NULL is the last. */
extern const char *const brc_zarr_documents[];

/* *holds: whether the zip archive has a document of Zarr anywhere. An archive that
 * cannot be read has none. */
BRC_MUST_USE int brc_zip_holds_zarr(int *holds, const char *file, brc_error *err);

#endif
