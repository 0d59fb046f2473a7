/*
 * Repacking: moves objects to other backends and encodings, and puts small rows of stored bytes, and small
 * packs, together.
 *
 *      repack_walk.c   the objects to repack: which, in which order, and how each should be stored
 *      repack_delta.c  objects that become differences from others
 *      repack_rows.c   rows of stored bytes that are not full
 *      repack_packs.c  packs in other backends that are small
 *      repack.c        the call
 */
#ifndef BRC_CARE_REPACK_H
#define BRC_CARE_REPACK_H

#include "../flow/again.h"
#include "../history/closure.h"
#include "../history/graph.h"
#include "../store/collect.h"
#include "../work/session.h"
#include "../zarr/doc/meta.h"

/* ---- walk -------------------------------- */

/*
 * Lists the chunks of every version and of every draft, the newest commits first and chunks in the order of their keys,
 * so that chunks that are read together come to lie together. If everything is to be moved, the objects follow that no
 * version names. A chunk may be listed several times.
 *
 * Chunks get the codecs that each array would have with brc_array_set_codecs(). For that, the meaning of documents is
 * kept, of a few at a time: the list pauses when they are too many.
 */

enum { BRC_REPACK_METAS = 64 };

typedef struct brc_repack_meta {
    brc_oid doc;
    brc_meta meta;
    int is_usable; /* else the array keeps its codecs */
} brc_repack_meta;

typedef struct brc_repack_walk {
    breccia *repo;
    brc_store *store;
    const char *path;   /* of a node; "/": all, and also what no version names    */
    const char *codecs; /* JSON; NULL: encodings stay                             */
    int64_t older_than; /* 0: no limit                                            */
    int64_t backend;    /* its number; -1: objects stay in their backends         */
    /* Private fields follow. */
    int stage, found; /* found: some version or draft has the node                */
    brc_graph graph;  /* every commit                                             */
    brc_id_table tips, newer; /* of branches; objects that newer versions use     */
    size_t commit;
    brc_closure *closure;
    int is_walking;   /* the closure is in the middle of something                */
    brc_entry entry;  /* of the array that is being walked                        */
    int is_due;       /* the list has paused because of this entry                */
    brc_root_drafts drafts;
    brc_draft_node *nodes; /* of the draft before `draft`                         */
    size_t draft, nnodes, node;
    brc_draft_stack rows; /* of the node before `node`                            */
    int has_rows;
    brc_buf after;    /* the last key that was read of these rows                 */
    void *chunks;     /* brc_repack_chunk[]: those that were read and not listed  */
    size_t nchunks, chunks_cap, chunk;
    brc_oid last;     /* the last object of those that follow                     */
    brc_object *page;
    size_t npage, at;
    brc_repack_meta *metas;
    size_t nmetas;
    brc_repack_meta *meta; /* of `entry`; NULL: encodings stay                    */
    size_t usable, misfits; /* documents with which the codecs fit, and others    */
    brc_error unfit;  /* why they do not fit the first one with which they do not */
} brc_repack_walk;

/* Begins, within a read: `w` has the first fields set and is zero otherwise. To be disposed of also after a failure. */
BRC_MUST_USE int brc_repack_walk_begin(brc_repack_walk *w, brc_error *err);
/* Lists the next object, as brc_again.next does. Returns 0 at the end, or when the list pauses. */
BRC_MUST_USE int brc_repack_walk_next(brc_repack_walk *w, brc_again_item *out, brc_error *err);
/* Goes on after a pause: returns 1, or 0 at the end. Nothing that the list has given is used any more. */
int brc_repack_walk_resume(brc_repack_walk *w);
void brc_repack_walk_dispose(brc_repack_walk *w);

/* Collects, before anything is listed, the objects that newer versions use: w->newer. */
BRC_MUST_USE int brc_repack_walk_newer(brc_repack_walk *w, brc_error *err);

/* ---- deltas -------------------------------- */

typedef struct brc_repack_deltas {
    brc_repack_walk *walk; /* which has collected the objects that stay whole       */
    uint64_t most;         /* differences up to an object that is stored whole     */
    int is_dry;            /* only counts                                           */
    int (*step)(void *ctx, uint64_t bytes, brc_error *err); /* outside of transactions */
    void *ctx;
    /* The result of storing whole, as of brc_again. */
    uint64_t objects, before, after, left;
    brc_error why;
    /* Private fields follow. */
    void *order;           /* delta_commit[]: the commits, each before its parents  */
    size_t commit, parent; /* the next ones to compare                              */
    void *places;          /* delta_place[nplaces]: nodes that are to be compared   */
    size_t nplaces, places_cap;
    void *pairs;           /* delta_pair[npairs]                                    */
    size_t npairs, pairs_cap, pair;
    size_t met, passed;    /* pairs of the present array: met in this pass, and listed before */
    brc_id_table depths;   /* uint64_t: of a dry run, of the objects that it has counted */
} brc_repack_deltas;

/* Stores objects whole that are too many differences away from one that is, or that newer versions use: in short
 * transactions, outside of any other. */
BRC_MUST_USE int brc_repack_deltas_whole(brc_repack_deltas *d, brc_error *err);
/* Lists the next object that may become a difference, as brc_again.next does. */
BRC_MUST_USE int brc_repack_deltas_next(brc_repack_deltas *d, brc_again_item *out, brc_error *err);
void brc_repack_deltas_dispose(brc_repack_deltas *d);

/* ---- rows -------------------------------- */

typedef struct brc_repack_rows {
    brc_store *store;
    int (*step)(void *ctx, brc_error *err); /* called now and then, outside of transactions */
    void *ctx;
    int dry; /* only counts */
    uint64_t rows, objects, bytes; /* the result: rows that are emptied, and what lay in them */
} brc_repack_rows;

/* Moves the small objects of rows that are not full into full rows, in many short transactions. */
BRC_MUST_USE int brc_repack_rows_run(brc_repack_rows *rows, brc_error *err);

/* ---- packs -------------------------------- */

typedef struct brc_repack_packs {
    brc_store *store;
    int (*step)(void *ctx, uint64_t bytes, brc_error *err); /* as brc_again.step */
    void *ctx;
    /* The result. */
    uint64_t count, bytes; /* small packs, and the bytes that their objects have */
    size_t nobjects;
    /* Private fields follow. */
    void *packs, *objects;
    size_t npacks, packs_cap, objects_cap, at;
} brc_repack_packs;

/* Finds the objects of packs that are small: there are none if the packs cannot become fewer. Called outside of
 * transactions; `p` has the first fields set and is zero otherwise. To be disposed of also after a failure. */
BRC_MUST_USE int brc_repack_packs_find(brc_repack_packs *p, brc_error *err);
/* Lists the next object, as brc_again.next does, in the order in which they lie. */
int brc_repack_packs_next(brc_repack_packs *p, brc_again_item *out);
void brc_repack_packs_dispose(brc_repack_packs *p);

#endif
