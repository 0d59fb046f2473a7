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
#ifndef BRC_BASE_NAME_ESCAPE_H
#define BRC_BASE_NAME_ESCAPE_H

#include "buf.h"

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
