/* Finds the node of a commit's parents that corresponds to a node of the commit. */
#ifndef BRC_HISTORY_WALK_H
#define BRC_HISTORY_WALK_H

#include "snapshot.h"

/* ---- path before -------------------------------- */

/* Finds the node's path in parent `i` and returns it in `out`. *has is 0 if the parent does not
 * have the node, as far as the moves say; `out` is then undefined. A commit records moves only from
 * its first parent. In another parent the node is at the same path, or else where the moves to and
 * from their merge base lead. *root is the parent's snapshot, and *entry the parent's entry at the
 * path, with kind 0 if there is none. Must be called within a read. */
BRC_MUST_USE int brc_path_before(brc_buf *out, int *has, brc_store *store, const brc_commit *commit, size_t i, const char *path,
                                 brc_oid *root, brc_entry *entry, brc_error *err);

/* ---- path log -------------------------------- */

/*
 * Finds the commits that changed one node.
 *
 * A commit is one of them if its node differs from the node in each of its parents, or has moved.
 * The node is searched under the path that it had at the time, as the commits' moves record it. If
 * a merge has the node as one of its parents has it, the node came from that parent: as in git, the
 * other parents are not visited, so work that the merge gave up is not reported, unless `full` is
 * set.
 */

typedef struct brc_path_log brc_path_log;

/* Must be called within a read, like brc_path_log_visit(). `path` must be in normal form. */
BRC_MUST_USE int brc_path_log_new(brc_path_log **out, brc_store *store, const brc_oid *tip, const char *path, int full,
                                  brc_error *err);
void brc_path_log_free(brc_path_log *log);
/* Must be called for every commit of a walk, children before their parents. Returns 1 if the commit
 * changed the node; *path is then the node's path in the commit, or its path before the commit
 * removed it, valid until the next call. Returns 0 otherwise. */
BRC_MUST_USE int brc_path_log_visit(brc_path_log *log, const brc_commit *commit, const char **path, brc_error *err);
/* Says whether no further commit can be one of them. */
int brc_path_log_is_done(const brc_path_log *log);
/* Says whether any commit had the node. */
int brc_path_log_met(const brc_path_log *log);

#endif
