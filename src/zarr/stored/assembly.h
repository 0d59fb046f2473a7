/*
 * Assembles chunks from pieces on the pool and writes them: elements in the order of a file, or chunks
 * of another grid.
 *
 *    next ──> open boxes ──> fetch ──> decode, lay down ──> close boxes ──> hash ──> ... as the write flow
 *   caller      caller       store          pool              caller        pool
 *
 * Pieces and chunks go through one window: while the chunks of one box are encoded and stored, the
 * pieces of the next box are read and laid down. Only the box that needs the memory of another box
 * waits for that whole box.
 *
 * Elements of variable length are kept as they were decoded, and boxes are tables of spans that point
 * to them. The memory that a piece needs is estimated from earlier pieces; if too much is kept, boxes
 * are closed before they are complete.
 */
#ifndef BRC_ZARR_ASSEMBLY_H
#define BRC_ZARR_ASSEMBLY_H

#include "../array/region.h"

/* ---- box set -------------------------------- */

/*
 * Boxes of chunks in memory, in which chunks are assembled whose elements come in pieces.
 *
 * The chunks that a selection meets are cut into boxes of equal extents, each with as many chunks
 * as a budget allows. Each chunk of a box is contiguous and canonical; a chunk of elements of
 * variable length is a table of spans, which point into the pieces; pieces are kept as they were
 * decoded until the last box that they meet is free. A box is opened for the first piece that meets
 * it, and closed when no further piece can; then its chunks are written, and its memory is free for
 * another box. Pieces may come in any order: if memory is short, the least recently used box is
 * closed before it is complete, and its chunks are read again when another piece meets it.
 *
 * Only the caller's thread may use a box set, except to find a chunk of an open box.
 */

enum { BRC_BOX_FREE, BRC_BOX_OPEN, BRC_BOX_CLOSED };
/* The state of a chunk in a box: no piece has come; one has; one has, and it is laid over what was written before
 * (a table only when it is written); the chunk has been listed to be written. */
enum { BRC_CHUNK_EMPTY, BRC_CHUNK_TOUCHED, BRC_CHUNK_READ, BRC_CHUNK_LISTED };

/* The elements of a piece, each after its length in bytes; boxes point into them. */
typedef struct brc_kept_elements {
    brc_buf bytes;
    size_t boxes;   /* that point into it                        */
    size_t counted; /* bytes counted in the set's budget         */
} brc_kept_elements;

typedef struct brc_box_of_chunks {
    int state;
    uint64_t at[BRC_MAX_NDIM];                         /* its index along each axis         */
    uint64_t first[BRC_MAX_NDIM], count[BRC_MAX_NDIM]; /* its chunks                        */
    uint64_t nchunks;
    uint64_t last[BRC_MAX_NDIM]; /* the place of the last piece that can meet it            */
    uint64_t used;               /* the number of the last piece that met it                */
    uint64_t closed;             /* the number of its closing                               */
    uint64_t next;               /* if closed: the next chunk to list                       */
    size_t pieces, writing;      /* pieces on their way into it, and chunks on their way out */
    uint8_t *data, *chunks;      /* the chunks, and the state of each                       */
    void *kept;                  /* brc_kept_elements *[], for tables                       */
    size_t nkept, kept_cap;
} brc_box_of_chunks;

typedef struct brc_box_set {
    brc_array *a;
    brc_region region;             /* the selection                                         */
    size_t unit, room;             /* bytes of an element (or a span), and of a chunk       */
    int is_table;                  /* chunks are tables of spans                            */
    uint64_t extent[BRC_MAX_NDIM]; /* of a box, in chunks                                   */
    uint64_t most_chunks;          /* in a box                                              */
    size_t bytes, most;            /* bytes of a box, and the number in use that is enough  */
    int covered;     /* the pieces bring every element of the selection                     */
    int again;       /* a box may have been closed too early: a newly opened one may have been written */
    uint64_t piece;  /* the number of the piece that is being placed                        */
    uint64_t closings;
    size_t kept, most_kept; /* bytes of elements of variable length, and the limit for them */
    void *boxes;     /* brc_box_of_chunks *[]                                               */
    size_t n, cap, active; /* active: not free                                              */
} brc_box_set;

/* The order in which pieces come. */
typedef struct brc_piece_order {
    int axis[BRC_MAX_NDIM];     /* the slowest first                                        */
    uint64_t per[BRC_MAX_NDIM]; /* indices of the selection that a step covers, by axis     */
    int uneven;                 /* ... at most                                              */
    /* Finds the place of the piece that holds an element, the slowest axis first. */
    void (*place)(const void *ctx, const uint64_t *element, uint64_t *at);
    const void *ctx;
} brc_piece_order;

/* ---- assembly -------------------------------- */

typedef struct brc_piece {
    /* set by next() */
    brc_region region;          /* its elements, with the strides that they have in its bytes */
    uint64_t at[BRC_MAX_NDIM];  /* its place                                                 */
    brc_object object;          /* an object whose bytes are to be fetched; zero: bytes are given */
    size_t skip;                /* bytes before the elements                                 */
    const brc_chain *chain;     /* how the bytes are encoded; NULL: they are not             */
    size_t len;                 /* decoded length; before next() the preferred length, if a source may choose; for
                                 * elements of variable length 0 if not known */
    size_t offset;              /* of the region's first element, decoded                   */
    uint64_t elements;          /* of variable length: the number of elements, in the region or not */
    int after;                  /* may meet boxes of the piece before, and waits for that piece */
    /* set by the assembly */
    struct brc_piece *next_free;
    brc_kept_elements *kept;    /* of variable length: its elements, decoded                 */
    uint64_t first[BRC_MAX_NDIM], count[BRC_MAX_NDIM]; /* the boxes that it meets            */
    brc_box_of_chunks **boxes;
    size_t nboxes, boxes_cap;
} brc_piece;

typedef struct brc_piece_source {
    void *ctx;
    brc_piece_order order;
    size_t held; /* bytes that the source itself holds meanwhile                             */
    int covers;  /* the pieces bring all elements of the selection                           */
    int swaps;   /* elements are in the other byte order                                     */
    int is_chunk; /* each piece is everything selected of one chunk, and begins with the chunk's first byte */
    /* Returns 1 with the next piece, 0 at the end. `stored`, which is empty, receives its bytes, unless the source
     * has read() or the piece is an object. Called on the caller's thread. */
    int (*next)(void *ctx, brc_piece *piece, brc_buf *stored, brc_error *err);
    /* Reads piece->len bytes of the piece. Called on the caller's thread, once for each piece, in order. */
    int (*read)(void *ctx, uint8_t *dst, size_t len, brc_error *err);
    /* Puts the piece's name before an error, on any thread. NULL: no name. */
    void (*name)(void *ctx, const brc_piece *piece, brc_error *err);
} brc_piece_source;

/* Assembles chunks within a change of the array. Elements of a chunk that no piece brings stay as they are. sel
 * NULL: the whole array. */
BRC_MUST_USE int brc_array_assemble(brc_array *a, const brc_sel *sel, const brc_piece_source *source, brc_error *err);

#endif
