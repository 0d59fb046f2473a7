/* Removes what a new shape leaves behind: chunks outside the shape, and elements past the end in chunks that the
 * end cuts. */
#ifndef BRC_ZARR_ARRAY_SHRINK_H
#define BRC_ZARR_ARRAY_SHRINK_H

#include "../../flow/write.h"
#include "array.h"

/* ---- array replace -------------------------------- */

/*
 * Replaces everything that an array holds, to cut the array or to give its chunks another shape.
 *
 * The new array is made as a node of another name, in a bulk write (bulk_write.h). The last
 * transaction puts the new node in the array's place if the array is still what it was; otherwise
 * the new node is made again. After a few tries that met changes of others, brc_array_replace()
 * locks others out. Within brc_begin() and brc_end() the replacement is part of that transaction. A
 * killed process leaves a draft that can only be dropped.
 *
 * Reads of the array meanwhile see a fixed state: an empty row over the array's uncommitted chunks
 * receives what others write (brc_draft_stack_push()).
 */

typedef struct brc_replacing {
    brc_array *a;
    void *ctx;
    /* Gives the new node's first document and map. Called outside of a transaction unless the caller is within one:
     * it writes only objects that nothing names yet. Returns 0 if there is nothing to do. `from` is the array as it
     * was. */
    int (*begin)(void *ctx, brc_array *from, brc_json **doc, brc_oid *map, brc_error *err);
    /* Fills the new node, within a change. */
    int (*fill)(void *ctx, brc_array *to, brc_array *from, brc_error *err);
    /* private to brc_array_replace() */
    brc_array *from;
    int64_t still, collected;
} brc_replacing;

BRC_MUST_USE int brc_array_replace(brc_replacing *r, brc_error *err);

/* ---- array shrink -------------------------------- */

/* Drops chunks of the array's shards that lie beyond its grid, before the array grows to this shape: there was
 * nothing there. Within a change. */
BRC_MUST_USE int brc_array_drop_beyond(brc_array *a, const uint64_t *shape, brc_error *err);
/* Tells whether brc_array_drop_beyond() is short. */
int brc_array_has_few_beyond(const brc_array *a, const uint64_t *shape);
/* Replaces a chunk map with one that lacks the chunks outside a grid of this many chunks. Outside of a transaction
 * it uses short ones. */
BRC_MUST_USE int brc_chunks_drop_outside(brc_store *store, int ndim, const uint64_t *grid, brc_oid *map, brc_error *err);
/* The first tells whether one transaction can go through all chunks of the array; the second returns the number of
 * chunks that brc_array_clean_edges() may have to look at. */
BRC_MUST_USE int brc_array_has_few_chunks(brc_array *a, int *few, brc_error *err);
uint64_t brc_array_edge_chunks(brc_array *a, const uint64_t *keep, const uint64_t *shape);
/* Clears the edges within a change of the array, whose shape is to be `shape`, of which `keep` existed before. If
 * `keep` cuts a chunk along an axis that becomes longer or shorter, everything past it in stored chunks becomes the
 * fill value: padding never comes back as data. */
BRC_MUST_USE int brc_array_clean_edges(brc_array *a, const uint64_t *keep, const uint64_t *shape, brc_error *err);
/* Does the same as brc_flow_prepare() does, in memory that brc_edges_free() releases after brc_prepared_free().
 * BRC_CHANGE_MUCH: there are more chunks than should be stored together. */
typedef struct brc_edges brc_edges;
BRC_MUST_USE int brc_edges_prepare(brc_prepared **out, brc_edges **edges, brc_array *a, const uint64_t *keep,
                                   const uint64_t *shape, brc_error *err);
void brc_edges_free(brc_edges *edges);

#endif
