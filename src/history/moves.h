/*
 * Moves between two versions: which node of the newer one is which of the older.
 *
 * A move names a node's path now and the one that it had. It holds for what is under the node
 * too, down to the next move; a path without a move at or above it is what it was. So a path has
 * a place that it seems to come from. It does come from there only if that goes to it, too: by
 * the move of the longest path at or above the older place. Otherwise the older node is elsewhere
 * now, and the node at the path is new. A node that was made anew
 * where the older version has another has a line for that: it comes from a place of which no version has
 * a node. What is under it is new, too.
 */
#ifndef BRC_HISTORY_MOVES_H
#define BRC_HISTORY_MOVES_H

#include "snapshot.h"

/* ---- move set -------------------------------- */

typedef struct brc_move_set {
    brc_move *items;          /* by `to` once it is sealed: no two have the same `to` or `from` */
    size_t n, cap;
    const brc_move **by_from; /* the same, by `from`                                        */
} brc_move_set;

void brc_move_set_dispose(brc_move_set *set);
/* Both are in normal form, and not the root. */
BRC_MUST_USE int brc_move_set_add(brc_move_set *set, const char *from, const char *to, brc_error *err);
/* The node at the path is new. Nothing is said of one so deep that no name can be under it. */
BRC_MUST_USE int brc_move_set_add_made(brc_move_set *set, const char *to, brc_error *err);
/* Whether a line is of such a node. */
int brc_move_is_made(const brc_move *move);
/* Before anything is asked. BRC_ECORRUPT if two have the same `to` or the same `from`. */
BRC_MUST_USE int brc_move_set_seal(brc_move_set *set, brc_error *err);

/* Those lines go, as for a diff, which compares what is at a path. */
BRC_MUST_USE int brc_move_set_without_made(brc_move_set *set, brc_error *err);

/* The move of exactly this path, now or then; NULL: none, or it is new. */
const brc_move *brc_move_of_to(const brc_move_set *set, const char *to);
const brc_move *brc_move_of_from(const brc_move_set *set, const char *from);
/* Whether the node at exactly this path is new. */
int brc_move_has_made(const brc_move_set *set, const char *path);
/* What a newer path seems to come from, and where an older one seems to go: by the moves at or
 * above it, or (above: 1) by those above it alone. */
BRC_MUST_USE int brc_move_source(brc_buf *out, const brc_move_set *set, const char *path, int above, brc_error *err);
BRC_MUST_USE int brc_move_target(brc_buf *out, const brc_move_set *set, const char *path, int above, brc_error *err);
/* Where the node at a newer path was: *has 0 if it is new, as far as the moves say. */
BRC_MUST_USE int brc_move_origin(brc_buf *out, int *has, const brc_move_set *set, const char *path, brc_error *err);

/* out: the moves of `older` and then those of `newer` as one set, sealed. It is empty before. */
BRC_MUST_USE int brc_move_set_join(brc_move_set *out, const brc_move_set *older, const brc_move_set *newer, brc_error *err);
/* out: the same from the newer version to the older one. It is empty before. */
BRC_MUST_USE int brc_move_set_turn(brc_move_set *out, const brc_move_set *set, brc_error *err);
/* Drops moves of nodes that are not in both snapshots as the same kind, and those that say nothing
 * that the others do not say. */
BRC_MUST_USE int brc_move_set_reduce(brc_move_set *set, brc_store *store, const brc_oid *older, const brc_oid *newer, brc_error *err);

/* The moves from one commit to a later one (has_older 0: from none) where first parents lead from the later to the
 * earlier, or to a merge of which that is another parent; else *known is 0 and the set empty. Looks at a limited
 * number of commits. */
BRC_MUST_USE int brc_move_set_between(brc_move_set *out, int *known, brc_store *store, int has_older, const brc_oid *older,
                                      const brc_oid *newer, brc_error *err);
/* From any commit to any other: as the record says if that follows, else back to what both come from and on from there.
 * *known 0: they come from nothing, or from several. */
BRC_MUST_USE int brc_move_set_across(brc_move_set *out, int *known, brc_store *store, const brc_oid *from,
                                     const brc_oid *to, brc_error *err);
/* As brc_move_set_between() for a merge: it looks too at what each commit has made where `older` had a node that an earlier
 * one removed (tree_diff.h). */
BRC_MUST_USE int brc_move_set_along(brc_move_set *out, int *known, brc_store *store, const brc_oid *older,
                                    const brc_oid *newer, brc_error *err);

/* ---- move text -------------------------------- */

/* A commit's lines of moves: "move FROM TO", by TO (docs/FORMAT.md, section 7). */

/* How many one commit can have. */
#define BRC_MAX_MOVES ((size_t)1 << 20)

/* The lines of a sealed set. BRC_ELIMIT: there are too many. */
BRC_MUST_USE int brc_move_lines_write(brc_buf *out, const brc_move_set *set, brc_error *err);
/* One line after its first word, "FROM TO", which it may change. The set must be sealed after
 * the last. BRC_EINVAL: it does not have the form, or its TO does not follow that before. */
BRC_MUST_USE int brc_move_line_read(brc_move_set *set, char *line, brc_error *err);

#endif
