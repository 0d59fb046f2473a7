/*
 * Merges layers into the uncommitted changes of a session: children into their parent, and a draft that is adopted if
 * both sides have changed the same nodes.
 *
 * A layer is a private draft. The session and each layer are folded to versions, which are merged like any others, one
 * layer after the other: the base is the version over which the layer began, "ours" is the session with the layers
 * that were merged before, "theirs" is the layer. That is a change (store/change.h):
 *
 *      brc_layers m;
 *      brc_layers_start(&m, session)
 *      brc_layers_add(&m, ...)                in work(), within a read
 *      brc_layers_work(&m)                    in work(), without a lock; m.clashes has the conflicts of all layers
 *      brc_layers_commit(&m)                  in commit(), between brc_session_begin() and brc_session_end()
 *      brc_layers_dispose(&m)
 *
 * The layers are dropped then. The result of children becomes a commit that no ref names, over which the session's draft
 * is laid, so that more children can begin from there. That of any other layer becomes a row of the root node in the
 * session's draft, which stays over the version that it has.
 */
#ifndef BRC_MERGE_MERGE_LAYERS_H
#define BRC_MERGE_MERGE_LAYERS_H

#include "../history/merge_list.h"
#include "../history/moves.h"
#include "../work/adopt.h"
#include "../work/fold.h"

typedef struct brc_layer {
    brc_session *s;          /* a session on the layer's draft                              */
    int has_fork;            /* 0: it began over the empty snapshot                         */
    brc_oid fork, fork_root; /* the commit over which it began, and that commit's snapshot  */
    brc_folded folded;       /* its folded snapshot, and of which change that is            */
    brc_fork_keys keys_before, keys; /* keys that are in no snapshot                        */
} brc_layer;

typedef struct brc_layers {
    brc_session *s; /* into which they are merged */
    brc_store *store;
    brc_layer *items; /* in the order in which they are merged */
    size_t n, cap;
    brc_clash_list clashes;
    /* Private to merge_layers.c. */
    int64_t collected; /* the last collection that began before the merge */
    brc_folded folded; /* the session's folded snapshot                   */
    brc_oid root;      /* the resulting snapshot                          */
    brc_move_set moves; /* the moves from folded.root to root             */
    brc_fork_keys keys_before, keys;
} brc_layers;
void brc_layers_start(brc_layers *m, brc_session *s);
void brc_layers_dispose(brc_layers *m);
/* Adds the layer of this row, which began over the commit `fork` (has_fork 0: over the empty snapshot). */
BRC_MUST_USE int brc_layers_add(brc_layers *m, const brc_draft_row *row, int has_fork, const brc_oid *fork, brc_error *err);
/* Merges. Returns BRC_OK, also if there are conflicts: then the layers are not to be committed. BRC_CHANGE_AGAIN: others
 * have written meanwhile. Works in short transactions or, for a change that insists, within the one that is open. */
BRC_MUST_USE int brc_layers_work(brc_layers *m, brc_error *err);
/* Stores the result and drops the layers. BRC_CHANGE_AGAIN: others have written since. BRC_EMISUSE: the session has a
 * savepoint, and a rollback to it would not take back what children brought. */
BRC_MUST_USE int brc_layers_commit(brc_layers *m, brc_error *err);

/* Fails with BRC_EMISUSE if the session has an open savepoint. */
BRC_MUST_USE int brc_layers_check_saves(const brc_session *s, brc_error *err);
/* Make a commit of what a session shows. brc_layer_since() finds the commit that the next commit of the session's changes
 * follows, so that moves can be traced from the beginning of any child to it: commits are followed only as long as
 * there are children. brc_layer_shown() makes a commit of a snapshot, with the moves since *since (none if has is 0).
 * brc_layer_lay() does so too, unless the snapshot is that of the draft's base, and bases the session's draft on the
 * commit. All must be called within a change. */
BRC_MUST_USE int brc_layer_since(brc_session *s, int *has, brc_oid *since, brc_error *err);
BRC_MUST_USE int brc_layer_shown(brc_session *s, int has, const brc_oid *since, const brc_oid *root,
                                 const brc_move_set *moves, brc_oid *out, brc_error *err);
BRC_MUST_USE int brc_layer_lay(brc_session *s, int has, const brc_oid *since, const brc_oid *root,
                               const brc_move_set *moves, brc_error *err);

#endif
