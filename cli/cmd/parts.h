/*
 * parts.h - a selection in parts of bounded size.
 *
 * The parts come in C order and each is a run of the selection's elements, so
 * that writing them one behind the other gives the whole.
 */
#ifndef BRECCIA_CLI_PARTS_H
#define BRECCIA_CLI_PARTS_H

#include "../../src/breccia.h"

struct cli_parts {
    brc_sel whole;
    brc_sel part;    /* the current one                                       */
    uint64_t count;  /* its elements                                          */
    uint64_t rows;   /* of the cut axis that fit a part                       */
    uint64_t chunk;  /* extent of a chunk along it; cuts fall between chunks  */
    uint64_t at[BRC_MAX_NDIM];
    int axis; /* the cut axis; axes in front of it are stepped through; -1: no cut */
    int done;
};

/* Parts of at most `budget` bytes, unless one element is more. */
void cli_parts_begin(struct cli_parts *parts, const brc_sel *sel, const brc_array_info *info,
                     uint64_t budget);
/* 1 with parts->part and parts->count, 0 at the end. */
int cli_parts_next(struct cli_parts *parts);

#endif
