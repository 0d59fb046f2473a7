/*
 * An array's chunks in the order of their keys: the map, and the uncommitted rows laid over
 * it as it goes. Nothing is held but the way to one chunk and some rows, and the file may be
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
 * The mark keeps it from being taken for the same bytes of a chunk that could be decoded,
 * whichever came first. Either all chunks of an array are opaque, or none. Where the codecs
 * that are not known may be ignored (meta.c), they are decoded on reading.
 */

#define BRC_OPAQUE_SPEC "{\"opaque\":true}" /* in store.encoding */

/* Makes an opaque chunk's object of its bytes. */
BRC_MUST_USE int brc_opaque_mark(brc_buf *out, brc_error *err);

/* An array that can be decoded now, but whose chunks were stored when it could not,
 * is made opaque: also its grid may be another one. `row`: of the draft, or 0. */
BRC_MUST_USE int brc_opaque_settle(brc_store *store, brc_meta *meta, const brc_oid *map, const brc_draft_stack *rows,
                                   brc_error *err);

/* How many bytes of an opaque array's object come before those that a Zarr store would
 * hold. BRC_EUNSUPPORTED if it holds none of these. */
BRC_MUST_USE int brc_opaque_skip(brc_store *store, const brc_meta *meta, const uint64_t *index,
                                 const brc_object *object, size_t *skip, brc_error *err);

/* BRC_ECORRUPT if bytes before which something stands do not begin with the mark. */
BRC_MUST_USE int brc_opaque_check(const uint8_t *stored, brc_error *err);

/* ---- frozen rows -------------------------------- */

/*
 * The uncommitted chunks of an array as they were at one moment: what a read that takes several
 * batches sees, whoever writes meanwhile. Its map needs none of this: it never changes.
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

/* Within one transaction. *all 0: there are more than `most`, and none was kept. */
BRC_MUST_USE int brc_frozen_rows_read(brc_frozen_rows *out, brc_store *store, const brc_draft_stack *stack, size_t most,
                                      int *all, brc_error *err);
void brc_frozen_rows_dispose(brc_frozen_rows *rows);
/* NULL: none of this key. */
const brc_chunk_row *brc_frozen_rows_find(const brc_frozen_rows *rows, const void *key, size_t len);

/* ---- chunk item -------------------------------- */

/* Stored chunks of an array as items of the read flow. */

/* Fills in how chunk `index` is decoded, whose object was found. BRC_ECORRUPT if the
 * object cannot be this chunk. */
BRC_MUST_USE int brc_chunk_item(brc_read_item *item, brc_array *a, const uint64_t *index, brc_error *err);
/* The same by what an array's document means alone. `index` is within its grid. */
BRC_MUST_USE int brc_chunk_item_of(brc_read_item *item, brc_store *store, brc_meta *m, const uint64_t *index, brc_error *err);

/* ---- chunk cursor -------------------------------- */

enum { BRC_CHUNK_ROWS = 512 };

typedef struct brc_chunk_cursor {
    const brc_array *a;
    brc_map_cursor map;
    brc_arena arena;                    /* the rows' keys                         */
    brc_chunk_row page[BRC_CHUNK_ROWS]; /* some of them, by key                   */
    const brc_chunk_row *rows;          /* those, or all that are frozen          */
    size_t n, at;
    int rows_end;                       /* there is no further page               */
    size_t from_len;                    /* what comes before this key is passed over */
    uint8_t from[BRC_CHUNK_KEY_MAX];
} brc_chunk_cursor;

/* Within a transaction of either kind. brc_chunk_cursor_end() releases it, also after a
 * failure. */
BRC_MUST_USE int brc_chunk_cursor_start(brc_chunk_cursor *c, const brc_array *a, brc_error *err);
/* The same, but it begins at the first chunk that is not before this place. */
BRC_MUST_USE int brc_chunk_cursor_start_at(brc_chunk_cursor *c, const brc_array *a, const uint64_t *from, brc_error *err);
/* 1 with a chunk's place in the grid and its id, 0 at the end. */
BRC_MUST_USE int brc_chunk_cursor_next(brc_chunk_cursor *c, uint64_t *index, brc_oid *id, brc_error *err);
void brc_chunk_cursor_end(brc_chunk_cursor *c);

/* ---- outer cursor -------------------------------- */

/*
 * What Zarr's keys name and is not empty, in the grid's order: chunks, or shards, each
 * once. Nothing is held but the way to one chunk and, of shards, the places of those of one row
 * along the first axis, at most twice: their chunks come in runs that the keys of others are between.
 */

typedef struct brc_outer_cursor {
    brc_chunk_cursor chunks;
    uint64_t ratio[BRC_MAX_NDIM]; /* chunks in a shard along each axis               */
    uint64_t next[BRC_MAX_NDIM];  /* shard of the chunk that comes next              */
    int has_next;
    void *row;                    /* uint64_t[]: shards of a row, ndim numbers each  */
    size_t n, cap, at, tidy_at;
} brc_outer_cursor;

/* Within a transaction. brc_outer_cursor_end() releases it, also after a failure. `from`: it begins
 * at the first chunk that is not before this place, or with this row of shards; NULL: at the first
 * of all. */
BRC_MUST_USE int brc_outer_cursor_start(brc_outer_cursor *c, const brc_array *a, const uint64_t *from, brc_error *err);
/* 1 with the next place, and of a chunk its id (of a shard the zero id); 0 at the end. */
BRC_MUST_USE int brc_outer_cursor_next(brc_outer_cursor *c, uint64_t *outer, brc_oid *id, brc_error *err);
void brc_outer_cursor_end(brc_outer_cursor *c);

#endif
