/*
 * The walk over commits: a graph that is read as far as somebody asks. Who walks says where to begin and which
 * commits to read, and in which order:
 *
 *      brc_graph_add(&g, &id, &i)                     a commit to begin with
 *      for (size_t i = 0; i < g.n; i++)               nearest ancestors first: parents are added at the end
 *          brc_graph_read(&g, i)
 *
 * Commits are numbered in the order in which they were met, so that a walk keeps what it knows of them in arrays of
 * its own. A graph takes some 70 bytes a commit; the use of the C stack does not grow with the history.
 *
 * It answers which commits another one reaches, finds merge bases and the next step of a bisection (ancestry.h),
 * orders the log (walk.c), is the plan of expire, and leads du to commits that no ref reaches (care/).
 */
#ifndef BRC_HISTORY_GRAPH_H
#define BRC_HISTORY_GRAPH_H

#include "../base/hash.h"
#include "commit.h"

typedef struct brc_graph_commit {
    brc_oid id;
    int is_read;
    size_t first, nparents; /* of one that was read: its parents, in graph.parents */
    brc_commit *commit;     /* of a graph that keeps commits; the caller may take it: NULL from then on */
} brc_graph_commit;

typedef struct brc_graph {
    brc_store *store;
    int keeps; /* keep what was read */
    /* Returns 1 for a commit that is left out, with all that only leads through it; NULL: none is. */
    int (*skips)(void *ctx, const brc_oid *id, brc_error *err);
    void *ctx;
    size_t n; /* number of commits */
    /* Private fields follow. */
    brc_id_table index; /* size_t: one more than the commit's number */
    void *commits;      /* brc_graph_commit[] */
    void *parents;      /* size_t[] */
    size_t cap, nparents, parents_cap;
} brc_graph;
#define BRC_GRAPH_INIT { .index = BRC_ID_TABLE_INIT(sizeof(size_t)) }
void brc_graph_dispose(brc_graph *g);

/* Returns a commit by its number; valid until a commit is added. */
brc_graph_commit *brc_graph_at(const brc_graph *g, size_t i);
/* Returns the number of a commit; SIZE_MAX: it was not met. */
size_t brc_graph_find(const brc_graph *g, const brc_oid *id);
/* Finds the number of a commit, which is added if it is new. */
BRC_MUST_USE int brc_graph_add(brc_graph *g, const brc_oid *id, size_t *i, brc_error *err);
/* Reads a commit and adds its parents, except those that are left out; nothing happens if it was read before. Checks
 * for interruption. */
BRC_MUST_USE int brc_graph_read(brc_graph *g, size_t i, brc_error *err);
/* Returns the number of the k-th parent of a commit that was read. */
size_t brc_graph_parent(const brc_graph *g, size_t i, size_t k);

/* A heap of numbers; `before` says which of two comes first. */
typedef struct brc_graph_heap {
    const void *ctx;
    int (*before)(const void *ctx, size_t a, size_t b);
    void *items; /* size_t[] */
    size_t n, cap;
} brc_graph_heap;
BRC_MUST_USE int brc_heap_push(brc_graph_heap *heap, size_t i, brc_error *err);
/* Removes the first one and returns it; the heap must not be empty. */
size_t brc_heap_pop(brc_graph_heap *heap);

#endif
