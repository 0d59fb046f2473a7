/* What differs between two states of one node: metadata, storage, chunks. */
#ifndef BRC_HISTORY_NODE_DIFF_H
#define BRC_HISTORY_NODE_DIFF_H

#include "snapshot.h"

typedef struct brc_node_change {
    char *path, *from;
    int what;          /* BRC_ADDED ... */
    brc_entry a, b;    /* kind 0 if that side has no node */
    char **metadata;   /* JSON pointers */
    size_t nmetadata;
    int storage_only;
    int rechunked;     /* the chunks of the two sides cannot be compared by key */
    uint64_t chunks_added, chunks_removed, chunks_changed;
} brc_node_change;

/* Fills in a change whose path and sides are set: for a node on both sides metadata and
 * chunks, for a node on one side its chunks. */
BRC_MUST_USE int brc_node_diff(brc_node_change *c, brc_store *store, brc_error *err);
/* 1 if a node that is on both sides differs itself, and not only what is under it. */
int brc_node_differs(const brc_node_change *c);
void brc_node_change_dispose(brc_node_change *c);

#endif
