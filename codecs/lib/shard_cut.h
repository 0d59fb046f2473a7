/* How a shard is cut into inner chunks, and the steps through it. */
#ifndef BRC_CODECS_LIB_SHARD_CUT_H
#define BRC_CODECS_LIB_SHARD_CUT_H

#include "../../src/breccia_codec.h"

/* How a shard is cut into inner chunks, which are numbered in C order. */
struct brc_shard_cut {
    int ndim;
    uint64_t shape[BRC_MAX_NDIM], inner_shape[BRC_MAX_NDIM], grid[BRC_MAX_NDIM];
    uint64_t n;        /* inner chunks                                         */
    uint64_t elements; /* of the shard                                         */
    uint64_t inner_elements;
};

/* Where an inner chunk's elements are in the shard: runs of elements that are adjacent
 * in both, along the last axes that an inner chunk has in full, and one more. */
struct brc_shard_walk {
    const struct brc_shard_cut *cut;
    uint64_t run; /* elements of a run                                         */
    int axes;     /* those that are stepped through                            */
    uint64_t index[BRC_MAX_NDIM];
    uint64_t at; /* element of the shard where the run begins                 */
};

void brc_shard_walk_start(struct brc_shard_walk *walk, const struct brc_shard_cut *cut,
                          uint64_t number);
/* 0 after the last run. */
int brc_shard_walk_next(struct brc_shard_walk *walk);

/* The inner chunks that a box of the shard meets: at[i] of n[i] along each axis, from
 * first[i] on. */
struct brc_shard_met {
    uint64_t first[BRC_MAX_NDIM], n[BRC_MAX_NDIM], at[BRC_MAX_NDIM];
};

void brc_shard_met_start(struct brc_shard_met *met, const struct brc_shard_cut *cut,
                         const brc_box *box);
/* The number of the one that is due. */
uint64_t brc_shard_met_number(const struct brc_shard_met *met, const struct brc_shard_cut *cut);
/* 0 after the last one. */
int brc_shard_met_next(struct brc_shard_met *met, const struct brc_shard_cut *cut);
/* The part of the box in an inner chunk that it meets, relative to that chunk's corner. */
void brc_shard_inner_box(const struct brc_shard_cut *cut, uint64_t number, const brc_box *box,
                         brc_box *out);


#endif
