/*
 * What some roots hold: every object that they reach once, by counting references as they are. A
 * root that is added or dropped costs what only it leads to, and no more: so what a version alone
 * holds is what dropping it frees, and how the sum goes from one version to the next costs what
 * changed between them.
 *
 * It remembers about 100 bytes for each object that it has met.
 */
#ifndef BRC_HISTORY_HELD_H
#define BRC_HISTORY_HELD_H

#include "../base/id_table.h"
#include "node_children.h"

typedef struct brc_held {
    brc_store *store;
    brc_id_table table;
    brc_children due;      /* to be counted         */
    brc_children children; /* of the node being read */
    uint64_t bytes, objects; /* that are held: stored bytes, and how many */
} brc_held;

void brc_held_init(brc_held *held, brc_store *store);
void brc_held_dispose(brc_held *held);
/* A map's or snapshot's root (is_node 1) or any other object, which leads nowhere. The zero id is none. After a
 * failure the sums are of no use. */
BRC_MUST_USE int brc_held_add(brc_held *held, const brc_oid *id, int is_node, brc_error *err);
/* What was added before, once for each time. */
BRC_MUST_USE int brc_held_drop(brc_held *held, const brc_oid *id, int is_node, brc_error *err);

#endif
