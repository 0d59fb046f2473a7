/*
 * Merge bases: common ancestors that no other common ancestor reaches. They follow from the graph
 * alone: commits are looked at by their generation, one more than the largest of their parents',
 * and never by a time.
 *
 * Two versions that were merged into each other crosswise have several. These are folded, two by
 * two in the order of their ids, into a snapshot that no ref names; where two are merged, their own
 * bases are the base, and so on down. Each is made once. What cannot be settled there is unknown.
 */
#ifndef BRC_HISTORY_MERGE_BASE_H
#define BRC_HISTORY_MERGE_BASE_H

#include "../store/store.h"

/* Commits, by id, each once. */
typedef struct brc_commit_set {
    brc_oid *ids;
    size_t n, cap;
} brc_commit_set;
void brc_commit_set_dispose(brc_commit_set *set);
BRC_MUST_USE int brc_commit_set_add(brc_commit_set *set, const brc_oid *id, brc_error *err);

/* The best common ancestors of one commit and any of several. None: they have nothing in common.
 * A commit that one of the others reaches is its own base. Parents that are not here any more count as none. */
BRC_MUST_USE int brc_merge_bases(brc_commit_set *out, brc_store *store, const brc_commit_set *some, const brc_oid *other,
                                 brc_error *err);

/* Merges two snapshots over a base into one, which is kept until the end of the store's scratch mode. */
typedef int (*brc_virtual_merge_fn)(void *ctx, const brc_oid *base, const brc_oid *ours, const brc_oid *theirs, brc_oid *out,
                                    brc_error *err);
/* The snapshot of a set: of one commit its own, of none the empty one (zero), of more what they are folded into. */
BRC_MUST_USE int brc_merge_base_root(brc_store *store, const brc_commit_set *bases, brc_virtual_merge_fn merge, void *ctx,
                                     brc_oid *root, brc_error *err);

#endif
