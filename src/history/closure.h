/*
 * Everything that roots reach, each once: commits and those before them, the snapshot of each, its
 * map nodes, the entries in them and the chunks. This is the one walk over all of it: fsck and
 * totals go through it, gc can mark by it, and a transfer can list by it what is to be sent.
 *
 * The roots are the caller's choice: refs, ids from the operation log, pins. A draft's roots are its
 * base, a snapshot, and the entries of its rows; the ids in its chunk rows are objects themselves,
 * and the caller has them at hand.
 *
 * Commits come in the order of a stack. For other orders there are other walks (walk.c: the
 * log; ancestry.h: ancestors, the nearest first; tree_walk.h: paths).
 *
 * The walk remembers commits and map nodes, and of each node a value that the caller chooses.
 * Entries and chunks come once for each node that they are in; their objects (documents, storage
 * options, chunks) may come again from another node, and a caller that counts or marks them
 * remembers them. Memory grows by an id for each commit, and by an id and the caller's value for
 * each node. The use of the C stack does not grow with the data.
 *
 * The caller decides what damage means: a failure comes with the commit or node concerned, and the
 * next call goes on after it. What only that one leads to is then out of reach.
 */
#ifndef BRC_HISTORY_CLOSURE_H
#define BRC_HISTORY_CLOSURE_H

#include "../tree/map.h"
#include "commit.h"
#include "snapshot.h"

/* ---- node children -------------------------------- */

/* What a map node names: nodes under it, and of its items chunks, documents and maps. */

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

/* ---- node walk -------------------------------- */

/*
 * Walking the objects of snapshots: map nodes, the entries in them, and the chunks.
 *
 * tree_walk.h goes by path and meets a shared group once for each path that leads to it;
 * this walk goes by object: the closure remembers the nodes met and skips those that it knows, so
 * that the work grows with the objects and not with the paths or versions. Its use of the
 * C stack does not grow with the data.
 *
 * A damaged node, entry or name is BRC_ECORRUPT; the next call goes on after it.
 */

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

/* ---- closure -------------------------------- */

/* What a step of a closure can be beside those above. */
enum {
    BRC_AT_COMMIT = BRC_AT_LEAVE + 1, /* a commit, before it is read            */
    BRC_AT_VERSION                    /* a commit that was read; its snapshot follows, then its parents */
};

/* Everything is borrowed until the next step. */
typedef struct brc_closure_step {
    int what;
    brc_oid id;               /* COMMIT, VERSION */
    const brc_commit *commit; /* VERSION         */
    brc_node_step node;       /* the other steps */
    /* NODE: what was kept of it when it was left; NULL: it was not met. A node that was met is
     * not read again. */
    const void *known;
    /* LEAVE: what to keep of it, as it was kept before or zeroes. Kept at the next step. */
    void *keep;
} brc_closure_step;

typedef struct brc_closure brc_closure;
/* `keep_size`: the bytes to keep of each node; may be 0. */
BRC_MUST_USE int brc_closure_new(brc_closure **out, brc_store *store, size_t keep_size, brc_error *err);
void brc_closure_free(brc_closure *closure);

/* ---- roots: before the first step, or between any two -------------------------------- */

/* 1 if the commit is new: it comes after all that has begun. 0 if it was met. */
BRC_MUST_USE int brc_closure_commit(brc_closure *closure, const brc_oid *id, brc_error *err);
/* Whether it was met. */
int brc_closure_met(const brc_closure *closure, const brc_oid *id);
/* The target of every ref. */
BRC_MUST_USE int brc_closure_refs(brc_closure *closure, brc_error *err);
/* The nodes of a snapshot, or those under the entry at a path (the entry itself is not reported), come
 * next. What had begun is dropped, as by brc_closure_drop(): the caller has walked to the end. */
BRC_MUST_USE int brc_closure_snapshot(brc_closure *closure, const brc_oid *root, brc_error *err);
BRC_MUST_USE int brc_closure_entry(brc_closure *closure, const char *path, const brc_entry *entry, brc_error *err);

/* ---- the walk -------------------------------- */

/* 1 with a step, 0 at the end; more roots may follow. Looks for interruption. */
BRC_MUST_USE int brc_closure_next(brc_closure *closure, brc_closure_step *out, brc_error *err);
/* After COMMIT: it is not read, and those before it are not reached by it. After VERSION: its snapshot
 * is not walked. After NODE: it is not read, and there is no LEAVE. After ENTRY: its map is not read. */
void brc_closure_skip(brc_closure *closure);
/* After NODE: it is read although it is known. */
void brc_closure_again(brc_closure *closure);
/* Leaves the snapshot or entry that is being walked, and the parents of its commit: for a caller that
 * stops in the middle. Commits that are due stay due. */
void brc_closure_drop(brc_closure *closure);

/* Where a node or object was looked at for what an array says of it, this is the id of both:
 * it is looked at again in another array. */
brc_oid brc_id_in_context(const brc_oid *id, const brc_oid *context);
/* Nodes of chunk maps are remembered as met in this context, from here on. At first it is zero. */
void brc_closure_context(brc_closure *closure, const brc_oid *context);

#endif
