/* Comparing boxes of elements: how many differ, where, and by how much. */
#ifndef BRC_ND_BOX_H
#define BRC_ND_BOX_H

#include "../breccia_codec.h"
#include "dtype.h"
#include "shape.h"

/* ---- compare elements -------------------------------- */

/* What comparisons have found. Tallies of parts, merged in any order, are equal to one
 * of the whole. */
typedef struct brc_tally {
    int ndim;
    uint64_t elements; /* that differ in any bit; 2^64-1 stands for more too       */
    double max_abs;    /* the largest difference between two numbers; where either
                          is NaN there is none. NaN: they are not numbers          */
    uint64_t first[BRC_MAX_NDIM], last[BRC_MAX_NDIM]; /* box of all that differ; of
                          no meaning where none does                               */
} brc_tally;

void brc_tally_init(brc_tally *tally, int ndim, const brc_dtype *type);
/* `elements` more differ, the outermost of them in the corners of this box. */
void brc_tally_add(brc_tally *tally, uint64_t elements, const uint64_t *first, const uint64_t *last);
void brc_tally_merge(brc_tally *into, const brc_tally *from);
/* Two elements that differ, whatever their place. */
void brc_tally_difference(brc_tally *tally, const brc_dtype *type, const uint8_t *x, const uint8_t *y);

/* A box in memory. */
typedef struct brc_place {
    const uint8_t *data;
    const int64_t *strides; /* bytes; along the last axis elements lie side by side.
                               NULL: one element, which is that of every place     */
} brc_place;
/* Compares boxes of `count` elements of a type of fixed length whose first one is at
 * `corner` of the array. Bits are compared: two equal NaNs are equal, 0.0 and -0.0 are
 * not. At least one of the two has strides. */
void brc_compare_box(brc_tally *tally, const brc_dtype *type, const uint64_t *corner,
                     const uint64_t *count, const brc_place *x, const brc_place *y);

/* ---- chunk cut -------------------------------- */

/* Cutting boxes of elements into chunks. */

/* The box of one chunk, cut at the array's edge. */
void brc_chunk_box(brc_sel *out, int ndim, const uint64_t *shape, const uint64_t *chunk, const uint64_t *index);

typedef struct brc_chunk_cutter {
    int ndim;
    const uint64_t *shape, *chunk; /* of the array                                  */
    size_t item;                   /* bytes of an element; 0: each has its length in front, u32le */
    brc_span fill;                 /* one element, for what is outside the array     */
    void *ctx;
    /* Bytes of the whole chunk; valid during the call. */
    int (*put)(void *ctx, const uint64_t *index, brc_span chunk, brc_error *err);
    /* the rest is the cutter's own: zero it */
    brc_buf part;
    brc_span *spans;
    size_t cap;
} brc_chunk_cutter;
/* Puts every chunk of the box, each of which it holds whole, or up to the array's edge. `data`:
 * its elements, packed in C order. */
BRC_MUST_USE int brc_chunk_cut(brc_chunk_cutter *c, const brc_sel *box, brc_span data, brc_error *err);
void brc_chunk_cutter_dispose(brc_chunk_cutter *c);

/* ---- merge box -------------------------------- */

/*
 * Merging the elements of one chunk three ways, in memory.
 *
 * Elements are compared by their bits: -0.0 is not 0.0, and a NaN is what its payload says. An
 * element is one value, whatever it is made of. What lies outside of a side's own extents is not
 * looked at: there the base is fill value, and the other two have nothing to say.
 */

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
