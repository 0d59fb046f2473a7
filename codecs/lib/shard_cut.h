/* How a shard is cut into inner chunks, and steps through the inner chunks. */
#ifndef BRC_CODECS_LIB_SHARD_CUT_H
#define BRC_CODECS_LIB_SHARD_CUT_H

#include "../../src/breccia_codec.h"

/* A shard's inner chunks, which are numbered in C order. */
struct brc_shard_cut {
    int ndim;
    uint64_t shape[BRC_MAX_NDIM], inner_shape[BRC_MAX_NDIM], grid[BRC_MAX_NDIM];
    uint64_t n;        /* inner chunks                                         */
    uint64_t elements; /* of the shard                                         */
    uint64_t inner_elements;
};

/* A walk through an inner chunk's elements in the shard, by runs of elements that are adjacent
 * in both: along the last axes that an inner chunk has in full, and one more axis. */
struct brc_shard_walk {
    const struct brc_shard_cut *cut;
    uint64_t run; /* elements of a run                                         */
    int axes;     /* axes that the walk steps through                          */
    uint64_t index[BRC_MAX_NDIM];
    uint64_t at; /* element of the shard where the run begins                 */
};

void brc_shard_walk_start(struct brc_shard_walk *walk, const struct brc_shard_cut *cut,
                          uint64_t number);
/* Steps to the next run. Returns 0 after the last one. */
int brc_shard_walk_next(struct brc_shard_walk *walk);

/* A walk through the inner chunks that a box of the shard meets: at[i] of n[i] along each axis,
 * from first[i] on. */
struct brc_shard_met {
    uint64_t first[BRC_MAX_NDIM], n[BRC_MAX_NDIM], at[BRC_MAX_NDIM];
};

void brc_shard_met_start(struct brc_shard_met *met, const struct brc_shard_cut *cut,
                         const brc_box *box);
/* Returns the number of the current inner chunk. */
uint64_t brc_shard_met_number(const struct brc_shard_met *met, const struct brc_shard_cut *cut);
/* Steps to the next inner chunk. Returns 0 after the last one. */
int brc_shard_met_next(struct brc_shard_met *met, const struct brc_shard_cut *cut);
/* Finds the part of the box inside an inner chunk that the box meets, relative to the corner of
 * that inner chunk. */
void brc_shard_inner_box(const struct brc_shard_cut *cut, uint64_t number, const brc_box *box,
                         brc_box *out);


#endif
