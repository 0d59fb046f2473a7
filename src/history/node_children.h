/* What a map node names: nodes under it, and of its items chunks, documents and maps. */
#ifndef BRC_HISTORY_NODE_CHILDREN_H
#define BRC_HISTORY_NODE_CHILDREN_H

#include "snapshot.h"

typedef struct brc_child {
    brc_oid id;
    int is_node; /* a map node, under it or the root of another map */
} brc_child;

typedef struct brc_children {
    void *items; /* brc_child[] */
    size_t n, cap;
    size_t id_len;
} brc_children;

void brc_children_dispose(brc_children *list);
const brc_child *brc_child_at(const brc_children *list, size_t i);
/* The zero id is left out. */
BRC_MUST_USE int brc_children_add(brc_children *list, const brc_oid *id, int is_node, brc_error *err);
/* Adds what the node names; list->id_len is set. What was added before it fails stays. */
BRC_MUST_USE int brc_children_read(brc_children *list, brc_span node, brc_error *err);

#endif
