/*
 * Boxes of chunks in memory: where chunks are put together whose elements come in pieces.
 *
 * The chunks that a selection meets are cut into boxes of equal extents, as many chunks each
 * as a budget allows. In a box each chunk lies in one piece, canonical; of elements of variable
 * length it is a table of spans, which point into the pieces: these are kept as they were
 * decoded until the last box that they meet is free. A box is opened for
 * the first piece that meets it, and closed when no further one can; then its chunks are
 * written, and its memory is free for another. Pieces may come in any order: where memory is
 * short the box that was used the longest time ago is closed before it is complete, and what
 * was written is read again when a piece meets it once more.
 *
 * Only the caller's thread uses it, except to find a chunk of an open box.
 */
#ifndef BRC_ZARR_BOX_SET_H
#define BRC_ZARR_BOX_SET_H

#include "region.h"

enum { BRC_BOX_FREE, BRC_BOX_OPEN, BRC_BOX_CLOSED };
/* Of a chunk in a box: no piece has come; one has; the same, and it is laid over what was
 * written before (a table when it is written); it has been listed to be written. */
enum { BRC_CHUNK_EMPTY, BRC_CHUNK_TOUCHED, BRC_CHUNK_READ, BRC_CHUNK_LISTED };

/* Elements of a piece, each after its length in bytes, which boxes point into. */
typedef struct brc_kept_elements {
    brc_buf bytes;
    size_t boxes;   /* that do                                   */
    size_t counted; /* bytes that the set's budget knows of      */
} brc_kept_elements;

typedef struct brc_box_of_chunks {
    int state;
    uint64_t at[BRC_MAX_NDIM];                         /* which one, along each axis        */
    uint64_t first[BRC_MAX_NDIM], count[BRC_MAX_NDIM]; /* the chunks that it holds          */
    uint64_t nchunks;
    uint64_t last[BRC_MAX_NDIM]; /* place of the last piece that can meet it                */
    uint64_t used;               /* number of the piece that met it last                    */
    uint64_t closed;             /* number of the closing                                   */
    uint64_t next;               /* closed: the chunk that may be listed next               */
    size_t pieces, writing;      /* that are on their way into it, and chunks out of it     */
    uint8_t *data, *chunks;      /* the chunks, and the state of each                       */
    void *kept;                  /* brc_kept_elements *[], of tables                        */
    size_t nkept, kept_cap;
} brc_box_of_chunks;

typedef struct brc_box_set {
    brc_array *a;
    brc_region region;             /* the selection                                         */
    size_t unit, room;             /* bytes of an element (of a span), and for a chunk      */
    int is_table;                  /* chunks are tables of spans                            */
    uint64_t extent[BRC_MAX_NDIM]; /* of a box, in chunks                                   */
    uint64_t most_chunks;          /* in a box                                              */
    size_t bytes, most;            /* of a box, and how many are in use where they suffice  */
    int covered;     /* every element of the selection comes                                */
    int again;       /* a box may have been closed too early: what is opened may be there   */
    uint64_t piece;  /* number of the one that is being placed                              */
    uint64_t closings;
    size_t kept, most_kept; /* bytes of elements of variable length, and where that is enough */
    void *boxes;     /* brc_box_of_chunks *[]                                               */
    size_t n, cap, active; /* active: not free                                              */
} brc_box_set;

/* How pieces come. */
typedef struct brc_piece_order {
    int axis[BRC_MAX_NDIM];     /* the slowest first                                        */
    uint64_t per[BRC_MAX_NDIM]; /* indices of the selection that a step covers, by axis     */
    int uneven;                 /* ... at most                                              */
    /* The place of the piece that holds an element, the slowest axis first. */
    void (*place)(const void *ctx, const uint64_t *element, uint64_t *at);
    const void *ctx;
} brc_piece_order;

/* sel NULL: all. */
BRC_MUST_USE int brc_boxes_init(brc_box_set *set, brc_array *a, const brc_sel *sel, const brc_piece_order *order,
                                size_t memory, brc_error *err);
void brc_boxes_dispose(brc_box_set *set);
/* Closes boxes whose last piece comes before this place; at NULL: all. */
void brc_boxes_close(brc_box_set *set, const uint64_t *at);
/* Of the boxes with chunks that have not been listed the one that was closed first; NULL: none. */
brc_box_of_chunks *brc_boxes_closed(const brc_box_set *set);
/* Frees a box where it is closed and nothing is on its way into it or out of it. */
void brc_box_leave(brc_box_set *set, brc_box_of_chunks *box);

/* The boxes that a region meets: from `first` on `count` along each axis. */
void brc_boxes_met(const brc_box_set *set, const brc_region *r, uint64_t *first, uint64_t *count);
/* Opens box `at` for the present piece: 1; 0 if that must wait until a box is free. */
BRC_MUST_USE int brc_boxes_open(brc_box_set *set, const brc_piece_order *order, const uint64_t *at,
                                brc_box_of_chunks **out, brc_error *err);
/* Of elements of variable length: 1 if a piece of about `len` bytes may be decoded while pieces
 * of about `coming` are; 0 if that must wait, until a box is free or they are decoded. A
 * single piece always may. */
int brc_boxes_have_room(brc_box_set *set, size_t coming, size_t len);
/* Empty memory for the elements of a piece, kept for these boxes; and once it holds them. */
BRC_MUST_USE int brc_boxes_keep(brc_box_of_chunks *const *boxes, size_t n, brc_kept_elements **out, brc_error *err);
void brc_boxes_count(brc_box_set *set, brc_kept_elements *kept);
/* The chunks of the box that the region meets get what pieces are laid over: the fill value,
 * or what was written; tables, which point nowhere. */
BRC_MUST_USE int brc_boxes_touch(brc_box_set *set, brc_box_of_chunks *box, const brc_region *r, brc_error *err);

/* A chunk's number in its box by its place in the grid, and the other way round. */
uint64_t brc_box_number(const brc_box_set *set, const brc_box_of_chunks *box, const uint64_t *index);
void brc_box_index(const brc_box_set *set, const brc_box_of_chunks *box, uint64_t number, uint64_t *index);
/* Where its elements are. */
uint8_t *brc_box_chunk(const brc_box_set *set, const brc_box_of_chunks *box, const uint64_t *index);

#endif
