/*
 * parts.h - a selection in parts of bounded size.
 *
 * The parts come in C order, and each is a run of the selection's elements: one after
 * the other they are the whole.
 */
#ifndef BRECCIA_CLI_PARTS_H
#define BRECCIA_CLI_PARTS_H

#include "../../src/breccia.h"

struct cli_parts {
    brc_sel whole;
    brc_sel part;    /* the current one                                       */
    uint64_t count;  /* its elements                                          */
    uint64_t rows;   /* of the cut axis that fit in a part                    */
    uint64_t chunk;  /* length of a chunk along it; cuts are between chunks   */
    uint64_t at[BRC_MAX_NDIM];
    int axis; /* the cut axis; axes before it are stepped through; -1: no cut */
    int done;
};

/* Parts of at most `budget` bytes, unless one element is more. */
void cli_parts_begin(struct cli_parts *parts, const brc_sel *sel, const brc_array_info *info,
                     uint64_t budget);
/* 1 and the next parts->part and parts->count, or 0 at the end. */
int cli_parts_next(struct cli_parts *parts);

#endif
