/* What a new shape leaves behind: chunks outside it, and elements past the end in chunks that the
 * end cuts. */
#ifndef BRC_ZARR_ARRAY_SHRINK_H
#define BRC_ZARR_ARRAY_SHRINK_H

#include "../../flow/write.h"
#include "array.h"

/* ---- array replace -------------------------------- */

/*
 * Replacing all that an array holds: cutting it, and giving its chunks another shape.
 *
 * What the array is to be is made beside it, in a bulk write (bulk_write.h), as a node of another
 * name. The last transaction puts it in the array's place, if that still is what it was; else it is
 * made anew. After a few tries that met others' changes it locks them out. Within brc_begin() and
 * brc_end() it is a part of that. Of a killed one the draft is left, which can only be dropped.
 *
 * What is read meanwhile stays as it is: an empty row over the array's uncommitted chunks takes what
 * others write (brc_draft_stack_push()).
 */

typedef struct brc_replacing {
    brc_array *a;
    void *ctx;
    /* What the new node begins as. Outside of a transaction, unless the caller is within one: what it writes
     * are objects that nothing names yet. 0: there is nothing to do. `from` is the array as it was. */
    int (*begin)(void *ctx, brc_array *from, brc_json **doc, brc_oid *map, brc_error *err);
    /* Within a change: all that it is to be. */
    int (*fill)(void *ctx, brc_array *to, brc_array *from, brc_error *err);
    /* its own */
    brc_array *from;
    int64_t still, collected;
} brc_replacing;

BRC_MUST_USE int brc_array_replace(brc_replacing *r, brc_error *err);

/* ---- array shrink -------------------------------- */

/* Before the array grows to this shape: drops chunks of its shards that lie beyond its grid, where nothing
 * was. Within a change. */
BRC_MUST_USE int brc_array_drop_beyond(brc_array *a, const uint64_t *shape, brc_error *err);
/* Whether that is short. */
int brc_array_has_few_beyond(const brc_array *a, const uint64_t *shape);
/* Makes a chunk map one without the chunks outside a grid of this many. Outside of a transaction it is made in short
 * ones. */
BRC_MUST_USE int brc_chunks_drop_outside(brc_store *store, int ndim, const uint64_t *grid, brc_oid *map, brc_error *err);
/* Whether one transaction can go through all that it has; and the chunks that brc_array_clean_edges() may have to
 * look at. */
BRC_MUST_USE int brc_array_has_few_chunks(brc_array *a, int *few, brc_error *err);
uint64_t brc_array_edge_chunks(brc_array *a, const uint64_t *keep, const uint64_t *shape);
/* Within a change of the array, whose shape is to be `shape`, of which `keep` was there before. Where
 * `keep` cuts a chunk along an axis that becomes longer or shorter, everything past it in stored
 * chunks becomes the fill value: padding never comes back as data. */
BRC_MUST_USE int brc_array_clean_edges(brc_array *a, const uint64_t *keep, const uint64_t *shape, brc_error *err);
/* The same as brc_flow_prepare(), in memory that brc_edges_free() releases after brc_prepared_free(). BRC_CHANGE_MUCH:
 * the chunks are more than should be stored together. */
typedef struct brc_edges brc_edges;
BRC_MUST_USE int brc_edges_prepare(brc_prepared **out, brc_edges **edges, brc_array *a, const uint64_t *keep,
                                   const uint64_t *shape, brc_error *err);
void brc_edges_free(brc_edges *edges);

#endif
