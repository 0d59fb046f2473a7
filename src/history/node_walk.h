/*
 * Walking the objects of snapshots: map nodes, the entries in them, and the chunks.
 *
 * tree_walk.h goes by path and meets a shared group once for each path that leads to it;
 * this walk goes by object: closure.h remembers the nodes met and skips those that it knows, so
 * that the work grows with the objects and not with the paths or versions. Its use of the
 * C stack does not grow with the data.
 *
 * A damaged node, entry or name is BRC_ECORRUPT; the next call goes on after it.
 */
#ifndef BRC_HISTORY_NODE_WALK_H
#define BRC_HISTORY_NODE_WALK_H

#include "../tree/node.h"
#include "snapshot.h"

enum {
    BRC_AT_NODE = 1, /* a map node, before it is read                              */
    BRC_AT_ENTRY,    /* a child in a group's map; the nodes of its own map follow  */
    BRC_AT_CHUNK,    /* an item of an array's map                                  */
    BRC_AT_LEAVE     /* the node again, after everything under it                  */
};

/* Everything is borrowed until the next step. */
typedef struct brc_node_step {
    int what;
    int kind;               /* of the map: BRC_GROUP children, BRC_ARRAY chunks, 0 the snapshot's */
    int is_root;            /* NODE, LEAVE: the map's first node                  */
    size_t level;           /* how many nodes are above it, or above what it is in */
    brc_oid id;             /* NODE, LEAVE                                        */
    const brc_item *claim;  /* NODE: what the node above says of it; NULL: its map's root */
    const brc_node_facts *facts; /* LEAVE: the same, as it was found              */
    brc_entry entry;        /* ENTRY                                              */
    brc_span key;           /* CHUNK                                              */
    brc_oid chunk;          /* CHUNK                                              */
    const char *path;       /* of the group or array                              */
    size_t path_len, depth; /* and the names in it                                */
} brc_node_step;

typedef struct brc_node_walk brc_node_walk;
BRC_MUST_USE int brc_node_walk_new(brc_node_walk **out, brc_store *store, brc_error *err);
void brc_node_walk_free(brc_node_walk *walk);
/* Begins with a snapshot, or with the map of an entry at a path; a walk begun before is
 * dropped. A zero id gives nothing. */
BRC_MUST_USE int brc_node_walk_snapshot(brc_node_walk *walk, const brc_oid *root, brc_error *err);
BRC_MUST_USE int brc_node_walk_entry(brc_node_walk *walk, const char *path, const brc_entry *entry, brc_error *err);
/* Leaves what it began. */
void brc_node_walk_drop(brc_node_walk *walk);
/* 1 with a step, 0 at the end. After a failure *out is the node concerned. */
BRC_MUST_USE int brc_node_walk_next(brc_node_walk *walk, brc_node_step *out, brc_error *err);
/* After NODE: the node is not read, and there is no LEAVE. After ENTRY: its map is not read. */
void brc_node_walk_skip(brc_node_walk *walk);

#endif
