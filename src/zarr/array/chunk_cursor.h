/*
 * Walks an array's chunks in the order of their keys: the map, with the uncommitted rows laid over
 * it on the way. The cursor holds only the path to one chunk and some rows, and the file may be
 * written between two steps.
 */
#ifndef BRC_ZARR_CHUNK_CURSOR_H
#define BRC_ZARR_CHUNK_CURSOR_H

#include "../../base/alloc.h"
#include "../../flow/read.h"
#include "../../store/store.h"
#include "../../tree/map.h"
#include "../doc/meta.h"
#include "array.h"

/* ---- opaque -------------------------------- */

/*
 * Chunks whose codecs or data type were not known when they were stored.
 *
 * The object of such a chunk is a mark and the bytes that came from the Zarr store:
 *
 *     | mark, 16 bytes | the encoded chunk ... |
 *
 * The mark makes the object differ from the same bytes of a chunk that could be decoded, whichever
 * was stored first. Either all chunks of an array are opaque, or none. If the codecs are known by
 * now, or may be ignored (meta.c), the chunks are decoded on reading.
 */

#define BRC_OPAQUE_SPEC "{\"opaque\":true}" /* in store.encoding */

/* Makes an opaque chunk's object of its bytes. */
BRC_MUST_USE int brc_opaque_mark(brc_buf *out, brc_error *err);

/* Makes an array opaque whose chunks were stored when they could not be decoded, though they can be now: it is
 * readable, and its grid may be different. */
BRC_MUST_USE int brc_opaque_settle(brc_store *store, brc_meta *meta, const brc_oid *map, const brc_draft_stack *rows,
                                   brc_error *err);

/* Returns the number of bytes of an opaque array's object that precede those that a Zarr store would hold.
 * BRC_EUNSUPPORTED if the object holds no such bytes. */
BRC_MUST_USE int brc_opaque_skip(brc_store *store, const brc_meta *meta, const uint64_t *index,
                                 const brc_object *object, size_t *skip, brc_error *err);

/* Fails with BRC_ECORRUPT if bytes that should begin with the mark do not. */
BRC_MUST_USE int brc_opaque_check(const uint8_t *stored, brc_error *err);

/* ---- frozen rows -------------------------------- */

/*
 * The uncommitted chunks of an array as they were at one moment. A read of several batches sees
 * these, even if others write meanwhile. The map needs no copy: a map never changes.
 */

typedef struct brc_chunk_row {
    brc_span key;
    brc_oid id; /* zero: dropped */
} brc_chunk_row;

typedef struct brc_frozen_rows {
    brc_arena arena;   /* the rows' keys */
    void *rows;        /* brc_chunk_row[], by key */
    size_t n, cap;
} brc_frozen_rows;

/* Reads the rows within one transaction. *all is 0 if there are more than `most` rows; none is kept then. */
BRC_MUST_USE int brc_frozen_rows_read(brc_frozen_rows *out, brc_store *store, const brc_draft_stack *stack, size_t most,
                                      int *all, brc_error *err);
void brc_frozen_rows_dispose(brc_frozen_rows *rows);
/* Returns NULL if there is no row of this key. */
const brc_chunk_row *brc_frozen_rows_find(const brc_frozen_rows *rows, const void *key, size_t len);

/* ---- chunk item -------------------------------- */

/* Describes stored chunks of an array as items of the read flow. */

/* Fills in how chunk `index`, whose object was found, is decoded. BRC_ECORRUPT if the object cannot be this
 * chunk. */
BRC_MUST_USE int brc_chunk_item(brc_read_item *item, brc_array *a, const uint64_t *index, brc_error *err);
/* Does the same from the meaning of an array's document alone. `index` is within its grid. */
BRC_MUST_USE int brc_chunk_item_of(brc_read_item *item, brc_store *store, brc_meta *m, const uint64_t *index, brc_error *err);

/* ---- chunk cursor -------------------------------- */

enum { BRC_CHUNK_ROWS = 512 };

typedef struct brc_chunk_cursor {
    const brc_array *a;
    brc_map_cursor map;
    brc_arena arena;                    /* the rows' keys                         */
    brc_chunk_row page[BRC_CHUNK_ROWS]; /* a page of them, by key                 */
    const brc_chunk_row *rows;          /* that page, or all frozen rows          */
    size_t n, at;
    int rows_end;                       /* there is no further page               */
    size_t from_len;                    /* keys before this one are skipped */
    uint8_t from[BRC_CHUNK_KEY_MAX];
} brc_chunk_cursor;

/* Starts the cursor within a transaction of either kind. brc_chunk_cursor_end() releases it, also after a
 * failure. */
BRC_MUST_USE int brc_chunk_cursor_start(brc_chunk_cursor *c, const brc_array *a, brc_error *err);
/* Starts at the first chunk that is not before this index. */
BRC_MUST_USE int brc_chunk_cursor_start_at(brc_chunk_cursor *c, const brc_array *a, const uint64_t *from, brc_error *err);
/* Returns 1 with a chunk's index in the grid and its id, 0 at the end. */
BRC_MUST_USE int brc_chunk_cursor_next(brc_chunk_cursor *c, uint64_t *index, brc_oid *id, brc_error *err);
void brc_chunk_cursor_end(brc_chunk_cursor *c);

/* ---- outer cursor -------------------------------- */

/*
 * Walks the non-empty objects that Zarr's keys name, in the grid's order: chunks, or shards, each
 * once. The cursor holds only the path to one chunk and, for shards, the indexes of one row of
 * shards along the first axis, at most twice: the chunks of one shard come in runs, with keys of
 * other shards between them.
 */

typedef struct brc_outer_cursor {
    brc_chunk_cursor chunks;
    uint64_t ratio[BRC_MAX_NDIM]; /* chunks in a shard along each axis               */
    uint64_t next[BRC_MAX_NDIM];  /* shard of the chunk that comes next              */
    int has_next;
    void *row;                    /* uint64_t[]: shards of a row, ndim numbers each  */
    size_t n, cap, at, tidy_at;
} brc_outer_cursor;

/* Starts the cursor within a transaction. brc_outer_cursor_end() releases it, also after a failure. `from`: starts
 * at the first chunk that is not before this index, or at its row of shards; NULL: at the first of all. */
BRC_MUST_USE int brc_outer_cursor_start(brc_outer_cursor *c, const brc_array *a, const uint64_t *from, brc_error *err);
/* Returns 1 with the next index and, for a chunk, its id (for a shard the zero id); 0 at the end. */
BRC_MUST_USE int brc_outer_cursor_next(brc_outer_cursor *c, uint64_t *outer, brc_oid *id, brc_error *err);
void brc_outer_cursor_end(brc_outer_cursor *c);

#endif
