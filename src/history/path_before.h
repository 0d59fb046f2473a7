/* Where the parents of a commit have what the commit has at a path. */
#ifndef BRC_HISTORY_PATH_BEFORE_H
#define BRC_HISTORY_PATH_BEFORE_H

#include "snapshot.h"

/* The path in parent `i`, in `out`; *has 0: it has no such node, as far as the moves say, and `out` is
 * of no use. A commit notes moves from its first parent alone. In another one the node is at the path, or
 * else where the moves on both ways from their merge base lead. *root: of the parent; *entry: what it has
 * there, of kind 0 if that is nothing. Within a read. */
BRC_MUST_USE int brc_path_before(brc_buf *out, int *has, brc_store *store, const brc_commit *commit, size_t i, const char *path,
                                 brc_oid *root, brc_entry *entry, brc_error *err);

#endif
