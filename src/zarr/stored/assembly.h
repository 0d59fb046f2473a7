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

#include "../array/region.h"

/* ---- box set -------------------------------- */

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

/* ---- assembly -------------------------------- */

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
