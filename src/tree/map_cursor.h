/*
 * A place in a map: the nodes from the root down, and the current item.
 *
 * A child is entered only if its node is what the node above says: level, items, keys
 * in all, and a prefix that every one of its keys begins with. The prefixes of one
 * node are disjoint and in order. So keys come in order over the whole map, no node is
 * met in two places, and a walk through a stranger's nodes ends. Levels fall on the
 * way down, so there are at most BRC_NODE_MAX_LEVEL + 1 nodes above each other.
 */
#ifndef BRC_TREE_MAP_CURSOR_H
#define BRC_TREE_MAP_CURSOR_H

#include "node.h"

typedef struct brc_map_cursor {
    brc_store *store;
    struct map_frame *top;
    brc_item head; /* a key, or a child; borrowed until the next step           */
    int at_end;
} brc_map_cursor;

/* At the first item of the root's node; a zero root: at the end. brc_map_cursor_end()
 * releases it, also after a failure. */
BRC_MUST_USE int brc_map_cursor_start(brc_map_cursor *c, brc_store *store, const brc_oid *root, brc_error *err);
void brc_map_cursor_end(brc_map_cursor *c);
/* Past the head; past a child with everything in it. */
BRC_MUST_USE int brc_map_cursor_step(brc_map_cursor *c, brc_error *err);
/* Enters the child at the head. */
BRC_MUST_USE int brc_map_cursor_enter(brc_map_cursor *c, brc_error *err);
/* On to the first item that is not before the key: that key, one behind it, or a child whose keys
 * all are. */
BRC_MUST_USE int brc_map_cursor_seek(brc_map_cursor *c, const uint8_t *key, size_t len, brc_error *err);
/* Down to the next key, or to the end. */
BRC_MUST_USE int brc_map_cursor_descend(brc_map_cursor *c, brc_error *err);

#endif
