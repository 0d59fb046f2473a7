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
#ifndef BRC_ZARR_ARRAY_REPLACE_H
#define BRC_ZARR_ARRAY_REPLACE_H

#include "array.h"

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

#endif
