/*
 * The files of a tree as a list of their paths: finding one, and listing a folder.
 *
 * The list is sorted with '/' before all other characters, so that a folder's files are neighbours. No path is in it
 * twice, and no file is also a folder.
 */
#ifndef BRC_XFER_TREE_NAMES_H
#define BRC_XFER_TREE_NAMES_H

#include "../base/buf.h"

typedef struct brc_tree_names {
    const void *items;
    size_t n;
    /* Returns the path of the item `i`, not terminated, without a zero byte. */
    const char *(*name)(const void *items, size_t i, size_t *len);
    const char *root; /* the part of the list that is the tree: "" or "data.zarr/", not terminated */
    size_t root_len;
} brc_tree_names;

/* Compares paths in the order of the list. */
int brc_tree_name_compare(const char *a, size_t a_len, const char *b, size_t b_len);
/* Sets *at to the number of the file `path`, or to n if there is none. *is_dir: there are files below it. */
BRC_MUST_USE int brc_tree_names_find(size_t *at, int *is_dir, const brc_tree_names *names, const char *path,
                                     brc_error *err);
/* Sets *at to the number of the first item below the folder `path`, and *end to that after the last. */
BRC_MUST_USE int brc_tree_names_below(size_t *at, size_t *end, const brc_tree_names *names, const char *path,
                                      brc_error *err);
/* Calls found() for each name in a folder, sorted. */
BRC_MUST_USE int brc_tree_names_each(const brc_tree_names *names, const char *path,
                                     int (*found)(void *ctx, const char *name, brc_error *err), void *ctx,
                                     brc_error *err);

#endif
