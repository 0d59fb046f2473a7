/* Nodes of a draft whose documents have no key of the Zarr store view, because nobody wrote the document or a
 * client deleted it. Such a node exists as long as it contains something. */
#ifndef BRC_WORK_SESSION_NODES_H
#define BRC_WORK_SESSION_NODES_H

#include "../store/store.h"
#include "../history/moves.h"
#include "session.h"

/* ---- hidden nodes -------------------------------- */

typedef struct brc_hidden_nodes {
    void *paths; /* char *[], sorted */
    size_t n, cap;
} brc_hidden_nodes;

BRC_MUST_USE int brc_hidden_nodes_read(brc_hidden_nodes *out, brc_store *store, int64_t draft, brc_error *err);
int brc_is_hidden_node(const brc_hidden_nodes *nodes, const char *path);
void brc_hidden_nodes_dispose(brc_hidden_nodes *nodes);

/* ---- node moves -------------------------------- */

/*
 * Notes of moves in a draft, which let its commit tell which node of the parent commit each node
 * is.
 *
 * Every node is either a node of the draft's base or new. A row of draft_move at or above a node's
 * path says where the node is in the base; without such a row the node is where it was. An empty
 * source says that the node is new; the row exists only where the base has a node that the path
 * would name otherwise. Rows exist only for nodes that exist, and no row repeats the row above it.
 *
 * Call these functions within the change itself, after brc_session_begin().
 */

/* Notes that a new node is being made at a free path; the nodes above exist. */
BRC_MUST_USE int brc_note_new(brc_session *s, const char *path, brc_error *err);
/* Notes that the node is being removed, with all nodes under it. */
BRC_MUST_USE int brc_note_removed(brc_session *s, const char *path, brc_error *err);
/* Notes that the node moves to another path, which is free; the groups above that path exist. */
BRC_MUST_USE int brc_note_moved(brc_session *s, const char *from, const char *to, brc_error *err);
/* Notes that a path, whose parents exist, gets its node of an earlier version back. At its place in the base the
 * node is the base's again, and a node that had moved from there becomes a copy. Elsewhere the node is new. */
BRC_MUST_USE int brc_note_restored(brc_session *s, const char *path, brc_error *err);

/* Returns the moves from a commit (has 0: none) to the draft, whose folded snapshot is `root`; *snapshot is the
 * commit's snapshot. Includes the moves that the draft's base itself made since that commit. */
BRC_MUST_USE int brc_session_moves(brc_move_set *out, brc_session *s, int has, const brc_oid *commit,
                                   const brc_oid *snapshot, const brc_oid *root, brc_error *err);
/* Returns the moves from any commit, also from one that is not an ancestor of the base: goes through the ancestor
 * of both. */
BRC_MUST_USE int brc_session_moves_across(brc_move_set *out, brc_session *s, const brc_oid *commit,
                                          const brc_oid *snapshot, const brc_oid *root, brc_error *err);

#endif
