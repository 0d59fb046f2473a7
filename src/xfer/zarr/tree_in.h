/*
 * A tree of files to import: a directory, a zip archive, or a set of Kerchunk's references.
 *
 * Paths are relative to the tree's root and have the form "a/b", "" for the root. The content of a
 * tree is hostile: links are not followed, and the names in a zip archive are checked when it is
 * opened.
 */
#ifndef BRC_XFER_ZARR_TREE_IN_H
#define BRC_XFER_ZARR_TREE_IN_H

#include "../../base/buf.h"
#include "../in_place.h"

/* The kind of entry at a path. */
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
    char *name;          /* its name in messages: "x.zarr", "x.zip: data.zarr" */
    const char *between; /* the text between that name and a path: "/" or ": "  */
    breccia *repo; /* the repository's file may lie in a directory, or be linked to, and is never read; an
                    * interruption of the repository ends a listing. NULL: none */
    int (*kind)(brc_tree_in *tree, const char *path, int *kind, brc_error *err);
    /* Calls found() for each name in a directory, sorted. */
    int (*each)(brc_tree_in *tree, const char *path, brc_tree_found_fn found, void *ctx,
                brc_error *err);
    /* Fails with BRC_EUNSUPPORTED if a file below a directory cannot be read for a reason that is known before. NULL:
     * there is none. */
    int (*check)(brc_tree_in *tree, const char *path, brc_error *err);
    /* Sets *out (terminated) to the place of a file in the backend "external", before it is read, and *offset to that
     * of its bytes there; leaves *out empty if the bytes are not in one place. NULL: they never are. */
    int (*place)(brc_tree_in *tree, const char *path, brc_buf *out, uint64_t *offset, brc_error *err);
    /* Sets *out (terminated) to the one place of all chunk files of an array, whose names in the directory begin with
     * `begin`; leaves *out empty if they are not in one place. NULL: they never are. */
    int (*files_place)(brc_tree_in *tree, const char *dir, const char *begin, const brc_external_files *files, brc_buf *out,
                       brc_error *err);
    /* Sets *bytes to a file's length, or to 0 if that is not known before the file is read. NULL: read() must be called on
     * the caller's thread; otherwise it may be called on any thread. */
    int (*size)(brc_tree_in *tree, const char *path, uint64_t *bytes, brc_error *err);
    /* Appends a whole file; BRC_ELIMIT past `limit` bytes. */
    int (*read)(brc_tree_in *tree, const char *path, uint64_t limit, brc_buf *out, brc_error *err);
    /* Appends lines about what was read. NULL: there is nothing to say. */
    int (*warn)(brc_tree_in *tree, brc_buf *warnings, brc_error *err);
    void (*close)(brc_tree_in *tree);
};

/* `s`: the importing session, or NULL. */
BRC_MUST_USE int brc_tree_dir_open(brc_tree_in **out, const brc_session *s, const char *dir,
                                   brc_error *err);
/* Opens a zip archive that holds a Zarr hierarchy at its top level or in one folder there. */
BRC_MUST_USE int brc_tree_zip_open(brc_tree_in **out, const char *file, brc_error *err);
/* Opens a set of Kerchunk's references (kerchunk.h) with the files that it names. `s`: the importing session, or NULL. */
BRC_MUST_USE int brc_tree_kerchunk_open(brc_tree_in **out, const brc_session *s, const char *file, brc_error *err);
void brc_tree_in_free(brc_tree_in *tree);
/* Makes the name of a path for messages: "x.zarr/a/b", "x.zip: a/b". */
BRC_MUST_USE int brc_tree_in_label(char **out, const brc_tree_in *tree, const char *path,
                                   brc_error *err);
/* Joins "a" and "b" to "a/b", "" and "b" to "b". */
BRC_MUST_USE int brc_tree_path(char **out, const char *dir, const char *name, brc_error *err);

/* The names of documents, each of which shows that a folder is a hierarchy; NULL is the last. */
extern const char *const brc_zarr_documents[];

/* Sets *holds if the zip archive has a document of Zarr anywhere. An archive that cannot be read has none. */
BRC_MUST_USE int brc_zip_holds_zarr(int *holds, const char *file, brc_error *err);

#endif
