/*
 * Merging the elements of one chunk three ways, in memory.
 *
 * Elements are compared by their bits: -0.0 is not 0.0, and a NaN is what its payload says. An
 * element is one value, whatever it is made of. What lies outside of a side's own extents is not
 * looked at: there the base is fill value, and the other two have nothing to say.
 */
#ifndef BRC_ND_MERGE_BOX_H
#define BRC_ND_MERGE_BOX_H

#include "../breccia_codec.h"

enum { BRC_SIDE_BASE, BRC_SIDE_OURS, BRC_SIDE_THEIRS, BRC_SIDES };

/* One side of a chunk. */
typedef struct brc_merge_input {
    const uint8_t *data; /* its elements, packed; NULL: `fill` everywhere               */
    const uint8_t *fill; /* one element                                                 */
    uint64_t count[BRC_MAX_NDIM]; /* what it holds of the chunk, from the first element on;
                                     any 0: nothing                                     */
} brc_merge_input;

typedef struct brc_box_merge {
    int ndim;
    const uint64_t *shape;  /* of the chunk                                             */
    const uint64_t *corner; /* its first element in the array                           */
    const uint64_t *count;  /* what the result holds of it                              */
    size_t item;            /* bytes of an element                                      */
    int is_spans;           /* each is a brc_span, and compared by what it points to    */
    brc_merge_input in[BRC_SIDES];
    int unknown;            /* the base is unequal to both sides: all of it, or, where  */
    brc_span mask;          /* this is not empty, the elements in it                    */
    int favour;             /* BRC_SIDE_OURS or _THEIRS: whose value a conflict gets    */
    int take;               /* not 0: the result is this side's, and nothing is compared */
    uint8_t *out;           /* the whole chunk, filled with the result's fill value before */
    /* results */
    uint64_t conflicts;     /* elements that both changed, to different values          */
    uint64_t first[BRC_MAX_NDIM], last[BRC_MAX_NDIM]; /* their box in the array         */
    brc_buf found;          /* their mask; empty, where it would be too long            */
    int differs[BRC_SIDES]; /* the result from ours, or theirs; where these say nothing too */
} brc_box_merge;

/* A mask: pairs of varints, so many elements of the chunk (in C order) that are not in it, and so
 * many that are. This is as long as one gets. */
#define BRC_MASK_MOST ((size_t)1 << 20)

/* `found` must be empty, or hold memory from an earlier call; the caller disposes of it. */
BRC_MUST_USE int brc_box_merge_run(brc_box_merge *m, brc_error *err);
/* How many elements of `side` differ from the base, of those inside the result (`outside` 0), or of
 * those that the side holds and the result does not. Sets conflicts, first, last and found for them. */
BRC_MUST_USE int brc_box_merge_changed(brc_box_merge *m, int side, int outside, brc_error *err);

#endif
