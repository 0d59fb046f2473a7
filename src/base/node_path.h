/* Names of nodes, and paths of them. */
#ifndef BRC_BASE_NODE_PATH_H
#define BRC_BASE_NODE_PATH_H

#include "buf.h"

/* ---- node path -------------------------------- */

/* The limits of a hierarchy, both when writing and when reading: names in a path, its
 * bytes, the bytes of one name. */
#define BRC_DEPTH_MAX 64
#define BRC_PATH_MAX 4096
#define BRC_NAME_MAX 255

/* One rule for a node's name or path everywhere: in writing, receiving and exporting.
 * Names: not empty, no '/', not only dots, no "__" at the start, not "zarr.json", at
 * most BRC_NAME_MAX bytes of UTF-8 without NUL. */
BRC_MUST_USE int brc_name_check(const char *name, size_t len, brc_error *err);
/* 1 if there are only dots among these bytes. */
int brc_name_is_dots(const char *name, size_t len);
/* brc_name_check() of a name that was read: BRC_ECORRUPT if it is not allowed. */
BRC_MUST_USE int brc_name_is_stored(const char *name, size_t len, brc_error *err);
/* The same for a path that was read and has this many names in it: BRC_ECORRUPT past the limits. */
BRC_MUST_USE int brc_path_is_stored(const char *path, size_t len, size_t depth, brc_error *err);
/* A whole path that was read: BRC_ECORRUPT if it is not in the form of brc_path_normal(). */
BRC_MUST_USE int brc_path_is_normal(const char *path, brc_error *err);
/* Paths in the order of a walk: '/' comes before every other character. */
int brc_path_order(const char *a, const char *b);
/* "a/b", "/a/b/" and "/a/b" become "/a/b"; "" and "/" the root "/". */
BRC_MUST_USE int brc_path_normal(brc_buf *out, const char *path, brc_error *err);
/* "/a" and "b" to "/a/b", "/" and "b" to "/b"; of labels too ("x.h5: /a"). The caller frees it. */
BRC_MUST_USE int brc_node_join(char **out, const char *path, const char *name, brc_error *err);
/* A key of a Zarr store that is a node's document: 1 and the length of the node's path in it,
 * "a" of "a/zarr.json" and "" of "zarr.json". */
int brc_document_key(const char *key, size_t *len);
/* Paths in normal form, put into the order in which they are found. */
void brc_paths_sort(const char **paths, size_t n);
/* Whether one of them is the path; whether one is the path or above it. *looks (NULL: nobody asks) grows by
 * the paths that were compared. */
int brc_paths_have(const char *const *sorted, size_t n, const char *path, size_t *looks);
int brc_paths_cover(const char *const *sorted, size_t n, const char *path, size_t *looks);
/* Whether both name the same node, with or without slashes at the start or end: "a/b" and
 * "/a/b/". The root does not count as a node here. */
int brc_path_is_same(const char *path, size_t len, const char *other);

/* ---- name escape -------------------------------- */

/*
 * Names of foreign files that no node may have, escaped.
 *
 * An escaped name is the name with "%XX" (upper-case hex) for control characters, bytes that are
 * not UTF-8, '/', '%' itself, and the first byte of what is refused as a whole ("__x", "..",
 * "zarr.json"); the empty name is "%". A name is escaped where a node cannot have it or where it
 * has a control character, and also where it looks like a name that was escaped: so two names of a
 * file never become one, and export gives each its own again.
 *
 * What export takes back is what the destination can hold: a directory has no "..", so there the
 * escaped name stays. Import knows this too, and leaves such a name as it is.
 *
 * A name that does not fit even so is cut, with "%~" and 16 hex digits of its hash at the end. It
 * stays like this.
 */

/* The kinds of names that formats allow. Every name is UTF-8 without '/'. */
enum {
    BRC_NAMES_KEYS,  /* anything: .npz                                                   */
    BRC_NAMES_FILES, /* a Zarr hierarchy's: not "", ".", "..", nor "zarr.json"            */
    BRC_NAMES_HDF5,  /* not "" and not "."                                                */
    BRC_NAMES_NETCDF /* begin with a letter, digit, '_' or beyond ASCII; no control character
                        and no space at the end                                           */
};

/* Appends the node's name for a name of a file, `len` bytes of any kind. */
BRC_MUST_USE int brc_name_escape(brc_buf *out, const char *name, size_t len, int names, brc_error *err);
/* Appends the file's name for a node's. */
BRC_MUST_USE int brc_name_unescape(brc_buf *out, const char *name, size_t len, int names, brc_error *err);
/* The same for each part of a path "a/b/c", behind the node `above`: "/above/a/b/c". "" is `above`
 * itself. The caller frees it. */
BRC_MUST_USE int brc_path_escape(char **out, const char *above, const char *path, int names, brc_error *err);
/* "a/b/c" with each part as the file has it. The caller frees it. */
BRC_MUST_USE int brc_path_unescape(char **out, const char *path, int names, brc_error *err);

#endif
