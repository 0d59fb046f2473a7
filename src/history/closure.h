/*
 * Visits everything that roots reach, each object once: commits and their ancestors, the snapshot
 * of each, its map nodes, the entries in them and the chunks. This is the only walk over
 * everything: fsck and totals use it, gc can mark with it, and a transfer can list with it what to
 * send.
 *
 * The caller chooses the roots: refs, ids from the operation log, pins. The roots of a draft are
 * its base, which is a snapshot, and the entries of its rows; the ids in its chunk rows are objects
 * themselves, and the caller has them at hand.
 *
 * Commits are visited in the order of a stack. Other walks have other orders (graph.h:
 * commits alone, in any order; tree_walk.h: paths).
 *
 * The walk remembers commits and map nodes, and for each node a value of the caller. Entries and
 * chunks are reported once for each node that contains them. Their objects (documents, storage
 * options, chunks) may be reported again from another node, so a caller that counts or marks them
 * must remember them. Memory grows by one id for each commit, and by one id and the caller's value
 * for each node. The use of the C stack does not grow with the data.
 *
 * The caller decides what damage means: a failure comes with the commit or node concerned, and the
 * next call continues after it. Objects that are reachable only through the damaged one are then
 * not visited.
 */
#ifndef BRC_HISTORY_CLOSURE_H
#define BRC_HISTORY_CLOSURE_H

#include "../tree/map.h"
#include "commit.h"
#include "snapshot.h"

/* ---- node children -------------------------------- */

/* The references of a map node: nodes under it, and the chunks, documents and maps of its items. */

typedef struct brc_child {
    brc_oid id;
    int is_node; /* a map node under it, or the root of another map */
} brc_child;

typedef struct brc_children {
    void *items; /* brc_child[] */
    size_t n, cap;
    size_t id_len;
} brc_children;

void brc_children_dispose(brc_children *list);
const brc_child *brc_child_at(const brc_children *list, size_t i);
/* Adds an id; the zero id is ignored. */
BRC_MUST_USE int brc_children_add(brc_children *list, const brc_oid *id, int is_node, brc_error *err);
/* Adds the references of the node; list->id_len must be set. If the call fails, ids that were added
 * before stay. */
BRC_MUST_USE int brc_children_read(brc_children *list, brc_span node, brc_error *err);

/* ---- node walk -------------------------------- */

/*
 * Walks the objects of snapshots: map nodes, the entries in them, and the chunks.
 *
 * tree_walk.h goes by path and visits a shared group once for each path that leads to it. This walk
 * goes by object: the closure remembers nodes and skips those that it knows, so the work grows with
 * the number of objects and not of paths or versions. Its use of the C stack does not grow with the
 * data.
 *
 * A damaged node, entry or name is BRC_ECORRUPT; the next call continues after it.
 */

enum {
    BRC_AT_NODE = 1, /* a map node, before it is read                              */
    BRC_AT_ENTRY,    /* a child in a group's map; the nodes of its own map follow  */
    BRC_AT_CHUNK,    /* an item of an array's map                                  */
    BRC_AT_LEAVE     /* the node again, after everything under it was visited      */
};

/* One step. Everything is borrowed until the next step. */
typedef struct brc_node_step {
    int what;
    int kind;               /* kind of the map: BRC_GROUP has children, BRC_ARRAY chunks, 0 is the
                             * snapshot's own map */
    int is_root;            /* NODE, LEAVE: the map's first node                  */
    size_t level;           /* number of nodes above it, or above the node that contains it */
    brc_oid id;             /* NODE, LEAVE                                        */
    const brc_item *claim;  /* NODE: what the node above says about it; NULL: it is the root of its map */
    const brc_node_facts *facts; /* LEAVE: the same facts, as they were found     */
    brc_entry entry;        /* ENTRY                                              */
    brc_span key;           /* CHUNK                                              */
    brc_oid chunk;          /* CHUNK                                              */
    const char *path;       /* path of the group or array                         */
    size_t path_len, depth; /* depth: number of names in the path                 */
} brc_node_step;

typedef struct brc_node_walk brc_node_walk;

/* ---- closure -------------------------------- */

/* Further steps of a closure. */
enum {
    BRC_AT_COMMIT = BRC_AT_LEAVE + 1, /* a commit, before it is read            */
    BRC_AT_VERSION                    /* a commit that was read; its snapshot follows, then its parents */
};

/* One step of a closure. Everything is borrowed until the next step. */
typedef struct brc_closure_step {
    int what;
    brc_oid id;               /* COMMIT, VERSION */
    const brc_commit *commit; /* VERSION         */
    brc_node_step node;       /* the other steps */
    /* NODE: the value that was kept when the node was left; NULL: the node is new. A known node is
     * not read again. */
    const void *known;
    /* LEAVE: the value to keep, which is the old one or zeros. It is kept at the next step. */
    void *keep;
} brc_closure_step;

typedef struct brc_closure brc_closure;
/* Makes a closure. `keep_size` is the number of bytes to keep for each node, and may be 0. */
BRC_MUST_USE int brc_closure_new(brc_closure **out, brc_store *store, size_t keep_size, brc_error *err);
void brc_closure_free(brc_closure *closure);

/* ---- roots: before the first step, or between any two -------------------------------- */

/* Adds a commit as a root. Returns 1 if it is new: it is visited after everything that has begun.
 * Returns 0 if it was met before. */
BRC_MUST_USE int brc_closure_commit(brc_closure *closure, const brc_oid *id, brc_error *err);
/* Says whether the commit was met. */
int brc_closure_met(const brc_closure *closure, const brc_oid *id);
/* Adds the target of every ref. */
BRC_MUST_USE int brc_closure_refs(brc_closure *closure, brc_error *err);
/* Visits next the nodes of a snapshot, or those under the entry at a path (the entry itself is not
 * reported). A walk that has begun is dropped, as by brc_closure_drop(): the caller must have
 * walked to its end. */
BRC_MUST_USE int brc_closure_snapshot(brc_closure *closure, const brc_oid *root, brc_error *err);
BRC_MUST_USE int brc_closure_entry(brc_closure *closure, const char *path, const brc_entry *entry, brc_error *err);

/* ---- the walk -------------------------------- */

/* Returns 1 with a step, or 0 at the end; more roots may follow. Checks for interruption. */
BRC_MUST_USE int brc_closure_next(brc_closure *closure, brc_closure_step *out, brc_error *err);
/* Skips part of the walk. After COMMIT, the commit is not read, so its parents are not reached
 * through it. After VERSION, the snapshot is not walked. After NODE, the node is not read, and
 * LEAVE does not follow. After ENTRY, the entry's map is not read. */
void brc_closure_skip(brc_closure *closure);
/* After NODE: reads the node even if it is known. */
void brc_closure_again(brc_closure *closure);
/* Leaves the snapshot or entry that is being walked, and the parents of its commit, for a caller
 * that stops in the middle. Commits that are due stay due. */
void brc_closure_drop(brc_closure *closure);

/* Combines the id of a node or object with the id of a context, such as an array's properties that
 * matter for checking it: it is then visited again in another context. */
brc_oid brc_id_in_context(const brc_oid *id, const brc_oid *context);
/* Remembers nodes of chunk maps in this context from now on. The context is zero at first. */
void brc_closure_context(brc_closure *closure, const brc_oid *context);

#endif
