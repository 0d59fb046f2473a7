/* A selection's elements in C order, as many at a time as fit into memory. */
#ifndef BRC_ZARR_ELEMENT_RUNS_H
#define BRC_ZARR_ELEMENT_RUNS_H

#include "../nd/cut.h"
#include "array.h"

typedef struct brc_element_runs {
    brc_array *a;
    brc_cut cut;
    size_t item;
    uint8_t *data;    /* of a run                        */
    brc_buf elements; /* the same, of variable length    */
} brc_element_runs;

/* sel NULL: the whole array, as it is now: who changes it meanwhile changes nothing of what comes.
 * brc_element_runs_end() releases it, also after a failure. */
BRC_MUST_USE int brc_element_runs_start(brc_element_runs *runs, brc_array *a, const brc_sel *sel, brc_error *err);
/* 1 with the next elements, in native byte order and valid until the next call; 0 at the end. No
 * lock is held between two calls. */
BRC_MUST_USE int brc_element_runs_next(brc_element_runs *runs, brc_span *out, brc_error *err);
void brc_element_runs_end(brc_element_runs *runs);

#endif
