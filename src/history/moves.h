/*
 * Moves between two versions: which node of the newer version is which node of the older one.
 *
 * A move is a node's path now and the path that it had. It also applies to everything under the
 * node, down to the next move; a path without a move at or above it is unchanged. So each newer
 * path has an older path from which it seems to come. The node really comes from there only if the
 * older path leads back to the newer one, by the move of the longest path at or above the older
 * path. Otherwise the older node is elsewhere now, and the node at the newer path is new. A node
 * that was made anew where the older version has another has a line for that: it comes from a place
 * where no version has a node. Everything under it is new too.
 */
#ifndef BRC_HISTORY_MOVES_H
#define BRC_HISTORY_MOVES_H

#include "snapshot.h"

/* ---- move set -------------------------------- */

typedef struct brc_move_set {
    brc_move *items;          /* sorted by `to` once sealed; no two have the same `to` or the same `from` */
    size_t n, cap;
    const brc_move **by_from; /* the same moves, sorted by `from`                           */
} brc_move_set;

void brc_move_set_dispose(brc_move_set *set);
/* Adds a move. Both paths must be in normal form, and must not be the root. */
BRC_MUST_USE int brc_move_set_add(brc_move_set *set, const char *from, const char *to, brc_error *err);
/* Records that the node at the path is new. A path so deep that no name can be under it is not
 * recorded. */
BRC_MUST_USE int brc_move_set_add_made(brc_move_set *set, const char *to, brc_error *err);
/* Says whether the line records a new node. */
int brc_move_is_made(const brc_move *move);
/* Sorts the set, before it is queried. Fails with BRC_ECORRUPT if two moves have the same `to` or
 * the same `from`. */
BRC_MUST_USE int brc_move_set_seal(brc_move_set *set, brc_error *err);

/* Removes the lines of new nodes, for a diff, which compares nodes by path. */
BRC_MUST_USE int brc_move_set_without_made(brc_move_set *set, brc_error *err);

/* Find the move of exactly this path, now or then; NULL if there is none or the node is new. */
const brc_move *brc_move_of_to(const brc_move_set *set, const char *to);
const brc_move *brc_move_of_from(const brc_move_set *set, const char *from);
/* Says whether the node at exactly this path is new. */
int brc_move_has_made(const brc_move_set *set, const char *path);
/* Find the path from which a newer path seems to come, and the path to which an older path seems to
 * go: by the moves at or above the path, or (`above` 1) only by those above it. */
BRC_MUST_USE int brc_move_source(brc_buf *out, const brc_move_set *set, const char *path, int above, brc_error *err);
BRC_MUST_USE int brc_move_target(brc_buf *out, const brc_move_set *set, const char *path, int above, brc_error *err);
/* Finds the older path of the node at a newer path. *has is 0 if the node is new, as far as the
 * moves say. */
BRC_MUST_USE int brc_move_origin(brc_buf *out, int *has, const brc_move_set *set, const char *path, brc_error *err);

/* Joins the moves of `older` and then those of `newer` into one sealed set. `out` must be empty. */
BRC_MUST_USE int brc_move_set_join(brc_move_set *out, const brc_move_set *older, const brc_move_set *newer, brc_error *err);
/* Reverses a set, so that it leads from the newer version to the older one. `out` must be empty. */
BRC_MUST_USE int brc_move_set_turn(brc_move_set *out, const brc_move_set *set, brc_error *err);
/* Drops moves of nodes that are not in both snapshots with the same kind, and moves that follow
 * from other moves. */
BRC_MUST_USE int brc_move_set_reduce(brc_move_set *set, brc_store *store, const brc_oid *older, const brc_oid *newer, brc_error *err);

/* Finds the moves from one commit to a later one (has_older 0: from no commit) if first parents
 * lead from the later commit to the earlier one, or to a merge of which the earlier commit is
 * another parent. Otherwise *known is 0 and the set is empty. It visits a limited number of
 * commits. */
BRC_MUST_USE int brc_move_set_between(brc_move_set *out, int *known, brc_store *store, int has_older, const brc_oid *older,
                                      const brc_oid *newer, brc_error *err);
/* Finds the moves from any commit to any other: by the commits' records if the second follows the
 * first, else back to their common ancestor and forward from there. *known is 0 if they have no
 * common ancestor, or several. */
BRC_MUST_USE int brc_move_set_across(brc_move_set *out, int *known, brc_store *store, const brc_oid *from,
                                     const brc_oid *to, brc_error *err);
/* Like brc_move_set_between(), for a merge: it also finds nodes that a commit made where `older`
 * had a node that an earlier commit removed (tree_diff.h). */
BRC_MUST_USE int brc_move_set_along(brc_move_set *out, int *known, brc_store *store, const brc_oid *older,
                                    const brc_oid *newer, brc_error *err);

/* ---- move text -------------------------------- */

/* A commit's lines of moves: "move FROM TO", sorted by TO (docs/FORMAT.md, section 7). */

/* The most moves that one commit can have. */
#define BRC_MAX_MOVES ((size_t)1 << 20)

/* Writes the lines of a sealed set. Fails with BRC_ELIMIT if there are too many. */
BRC_MUST_USE int brc_move_lines_write(brc_buf *out, const brc_move_set *set, brc_error *err);
/* Reads one line after its first word, "FROM TO", and may change the text. The set must be sealed
 * after the last line. Fails with BRC_EINVAL if the line is malformed or its TO is not greater than
 * that of the line before. */
BRC_MUST_USE int brc_move_line_read(brc_move_set *set, char *line, brc_error *err);

#endif
