/* Where the parents of a commit have what the commit has at a path. */
#ifndef BRC_HISTORY_WALK_H
#define BRC_HISTORY_WALK_H

#include "snapshot.h"

/* ---- path before -------------------------------- */

/* The path in parent `i`, in `out`; *has 0: it has no such node, as far as the moves say, and `out` is
 * of no use. A commit notes moves from its first parent alone. In another one the node is at the path, or
 * else where the moves on both ways from their merge base lead. *root: of the parent; *entry: what it has
 * there, of kind 0 if that is nothing. Within a read. */
BRC_MUST_USE int brc_path_before(brc_buf *out, int *has, brc_store *store, const brc_commit *commit, size_t i, const char *path,
                                 brc_oid *root, brc_entry *entry, brc_error *err);

/* ---- path log -------------------------------- */

/*
 * The commits that changed one node: where a walk through history looks for it, and what it finds.
 *
 * A commit is one of them if the node in it is another than in each of its parents, or has moved. A
 * node is looked for under the path that it had, as the commits' moves tell. If a merge has the
 * node as a parent has it, it came from there: the other parents are not looked at, as in git, so
 * work that a merge gave up is not told of, unless `full` is asked for.
 */

typedef struct brc_path_log brc_path_log;

/* Within a read, as brc_path_log_visit(). `path` is in normal form. */
BRC_MUST_USE int brc_path_log_new(brc_path_log **out, brc_store *store, const brc_oid *tip, const char *path, int full,
                                  brc_error *err);
void brc_path_log_free(brc_path_log *log);
/* Every commit of a walk, children before their parents. 1 if it changed the node; *path is then
 * where it has the node, or had it if it removed it, valid until the next call. Else 0. */
BRC_MUST_USE int brc_path_log_visit(brc_path_log *log, const brc_commit *commit, const char **path, brc_error *err);
/* Nothing that was not visited can be one of them. */
int brc_path_log_is_done(const brc_path_log *log);
/* A commit had the node. */
int brc_path_log_met(const brc_path_log *log);

#endif
