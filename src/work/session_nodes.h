/* Nodes of a draft whose documents have no key of the Zarr store view: nobody wrote them, or a client
 * deleted them. Such a node is there as long as something is in it. */
#ifndef BRC_WORK_SESSION_NODES_H
#define BRC_WORK_SESSION_NODES_H

#include "../store/store.h"
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
 * What a draft notes of moves, so that its commit can say which node is which of its parent's.
 *
 * Every node is one of the draft's base or new. A row of draft_move at or above a node's path says
 * where the node is in the base; without one it is where it was. An empty source says that the
 * node is new, and stands only where the base has a node that its path would name otherwise. There
 * are rows only of nodes that exist, and none that says what the one above it says.
 *
 * These are called within the change itself, after brc_session_begin().
 */

/* A new node is being made at a path that had none; those above it are there. */
BRC_MUST_USE int brc_note_new(brc_session *s, const char *path, brc_error *err);
/* The node is going, with all under it. */
BRC_MUST_USE int brc_note_removed(brc_session *s, const char *path, brc_error *err);
/* It goes from one path to another, which is free; the groups above that are there. */
BRC_MUST_USE int brc_note_moved(brc_session *s, const char *from, const char *to, brc_error *err);
/* A path, whose parents are there, gets its node of an earlier version back: in its place in the base
 * it is the base's again, and what had moved from there is a copy now. Elsewhere it is new. */
BRC_MUST_USE int brc_note_restored(brc_session *s, const char *path, brc_error *err);

/* The moves from a commit (has 0: none) to the draft, whose folded snapshot is `root`; *snapshot is
 * the commit's. What the draft's base itself moved since that commit counts too. */
BRC_MUST_USE int brc_session_moves(brc_move_set *out, brc_session *s, int has, const brc_oid *commit,
                                   const brc_oid *snapshot, const brc_oid *root, brc_error *err);
/* The same from any commit, also one that the base does not follow: over what both come from. */
BRC_MUST_USE int brc_session_moves_across(brc_move_set *out, brc_session *s, const brc_oid *commit,
                                          const brc_oid *snapshot, const brc_oid *root, brc_error *err);

#endif
