/*
 * Chunks put together from pieces on the pool, and written: elements in the order of a file,
 * or chunks of another grid.
 *
 *    next ──> open boxes ──> fetch ──> decode, lay down ──> close boxes ──> hash ──> ... as the write flow
 *   caller      caller       store          pool              caller        pool
 *
 * Pieces and chunks go through one window: while the chunks of one box are encoded and
 * stored, the pieces of the next are read and laid down. Nothing waits for a whole box but
 * the box that needs its memory.
 *
 * Elements of variable length are kept as they were decoded, and boxes are tables of spans that
 * point to them. How much memory a piece needs is guessed from those before it; where too much
 * is kept, boxes are closed before they are complete.
 */
#ifndef BRC_ZARR_ASSEMBLY_H
#define BRC_ZARR_ASSEMBLY_H

#include "box_set.h"

typedef struct brc_piece {
    /* set by next() */
    brc_region region;          /* its elements, with the strides that they have in its bytes */
    uint64_t at[BRC_MAX_NDIM];  /* its place                                                 */
    brc_object object;          /* a found one: its bytes are fetched, not given; else zero  */
    size_t skip;                /* bytes of it that are not the elements'                    */
    const brc_chain *chain;     /* how they are encoded; NULL: they are not                  */
    size_t len;                 /* of them, decoded; before, what is best where a source may choose;
                                   of elements of variable length 0 if that is not known  */
    size_t offset;              /* of the region's first element, decoded                   */
    uint64_t elements;          /* of variable length: how many they are, the region's and others */
    int after;                  /* may meet what the piece before meets: waits for it        */
    /* the assembly's */
    struct brc_piece *next_free;
    brc_kept_elements *kept;    /* of variable length: its elements, decoded                 */
    uint64_t first[BRC_MAX_NDIM], count[BRC_MAX_NDIM]; /* boxes that it meets                */
    brc_box_of_chunks **boxes;
    size_t nboxes, boxes_cap;
} brc_piece;

typedef struct brc_piece_source {
    void *ctx;
    brc_piece_order order;
    size_t held; /* bytes that the source holds meanwhile                                    */
    int covers;  /* all elements of the selection come                                       */
    int swaps;   /* they are in the other byte order                                         */
    int is_chunk; /* each piece is all that is selected of one chunk, whose first bytes it is */
    /* Caller's thread: 1 with the next piece, 0 at the end. `stored`, which is empty, gets
     * its bytes, unless there is a read() or it is an object. */
    int (*next)(void *ctx, brc_piece *piece, brc_buf *stored, brc_error *err);
    /* Caller's thread, once for each piece, in order: its bytes, piece->len of them. */
    int (*read)(void *ctx, uint8_t *dst, size_t len, brc_error *err);
    /* Any thread: puts the piece's name before an error. NULL: nothing. */
    void (*name)(void *ctx, const brc_piece *piece, brc_error *err);
} brc_piece_source;

/* Within a change of the array. What no piece brings of a chunk stays as it is. sel NULL: all. */
BRC_MUST_USE int brc_array_assemble(brc_array *a, const brc_sel *sel, const brc_piece_source *source, brc_error *err);

#endif
