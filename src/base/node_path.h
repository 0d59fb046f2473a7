/* Names and paths of nodes. */
#ifndef BRC_BASE_NODE_PATH_H
#define BRC_BASE_NODE_PATH_H

#include "buf.h"

/* ---- node path -------------------------------- */

/* The limits of a hierarchy, both when writing and when reading: names in a path, its
 * bytes, the bytes of one name. */
#define BRC_DEPTH_MAX 64
#define BRC_PATH_MAX 4096
#define BRC_NAME_MAX 255

/* Checks a node's name, by the same rule in writing, receiving and exporting: not empty, no '/', not
 * only dots, no "__" at the start, not "zarr.json", at most BRC_NAME_MAX bytes of UTF-8 without
 * NUL. */
BRC_MUST_USE int brc_name_check(const char *name, size_t len, brc_error *err);
/* Returns 1 if the bytes are all dots. */
int brc_name_is_dots(const char *name, size_t len);
/* Checks a name that was read from a file: BRC_ECORRUPT if brc_name_check() refuses it. */
BRC_MUST_USE int brc_name_is_stored(const char *name, size_t len, brc_error *err);
/* Checks a path of `depth` names that was read from a file: BRC_ECORRUPT past the limits. */
BRC_MUST_USE int brc_path_is_stored(const char *path, size_t len, size_t depth, brc_error *err);
/* Checks a whole path that was read from a file: BRC_ECORRUPT if it is not in the form of brc_path_normal(). */
BRC_MUST_USE int brc_path_is_normal(const char *path, brc_error *err);
/* Compares paths in the order of a walk: '/' comes before every other character. */
int brc_path_order(const char *a, const char *b);
/* Appends a path in normal form: "a/b", "/a/b/" and "/a/b" become "/a/b"; "" and "/" the root "/". */
BRC_MUST_USE int brc_path_normal(brc_buf *out, const char *path, brc_error *err);
/* Joins "/a" and "b" to "/a/b", "/" and "b" to "/b"; labels too ("x.h5: /a"). The caller frees *out. */
BRC_MUST_USE int brc_node_join(char **out, const char *path, const char *name, brc_error *err);
/* Returns 1 if a key of a Zarr store names a node's document, and sets *len to the length of the node's path in
 * the key: "a" of "a/zarr.json", "" of "zarr.json". */
int brc_document_key(const char *key, size_t *len);
/* Sorts paths in normal form, for the two functions that follow. */
void brc_paths_sort(const char **paths, size_t n);
/* Return whether one of the sorted paths is `path`, or, with _cover, is `path` or above it. *looks, unless
 * NULL, grows by the number of paths that were compared. */
int brc_paths_have(const char *const *sorted, size_t n, const char *path, size_t *looks);
int brc_paths_cover(const char *const *sorted, size_t n, const char *path, size_t *looks);
/* Returns whether both paths name the same node, with or without slashes at the start or end: "a/b"
 * and "/a/b/". The root does not count as a node here. */
int brc_path_is_same(const char *path, size_t len, const char *other);

/* ---- name escape -------------------------------- */

/*
 * Escaping: foreign files have names that a node must not have.
 *
 * An escaped name is the name with "%XX" (upper-case hex) for control characters, bytes that are
 * not UTF-8, '/', '%' itself, and the first byte of a name that is refused as a whole ("__x", "..",
 * "zarr.json"); the empty name is "%". A name is escaped if a node cannot have it or if it
 * has a control character, and also if it looks like an escaped name: so two names of a
 * file never become one, and export restores each.
 *
 * Export restores the names that the destination can hold: a directory cannot contain "..", so there
 * the escaped name stays. Import knows this too, and leaves such a name as it is.
 *
 * If the escaped name is too long, it is cut and ends with "%~" and 16 hex digits of its hash. Such a
 * name is not restored.
 */

/* The kinds of names that formats allow. Every name is UTF-8 without '/'. */
enum {
    BRC_NAMES_KEYS,  /* anything: .npz                                                   */
    BRC_NAMES_FILES, /* in a Zarr hierarchy: not "", ".", "..", nor "zarr.json"           */
    BRC_NAMES_HDF5,  /* not "" and not "."                                                */
    BRC_NAMES_NETCDF /* begin with a letter, digit, '_' or beyond ASCII; no control character
                        and no space at the end                                           */
};

/* Appends the node's name for a name of a file, `len` bytes of any kind. */
BRC_MUST_USE int brc_name_escape(brc_buf *out, const char *name, size_t len, int names, brc_error *err);
/* Appends the file's name for a node's name. */
BRC_MUST_USE int brc_name_unescape(brc_buf *out, const char *name, size_t len, int names, brc_error *err);
/* Escapes each part of a path "a/b/c" and puts it below the node `above`: "/above/a/b/c". "" is `above`
 * itself. The caller frees *out. */
BRC_MUST_USE int brc_path_escape(char **out, const char *above, const char *path, int names, brc_error *err);
/* Makes the path "a/b/c" with the file's name for each part. The caller frees *out. */
BRC_MUST_USE int brc_path_unescape(char **out, const char *path, int names, brc_error *err);

#endif
