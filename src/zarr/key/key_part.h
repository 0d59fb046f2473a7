/*
 * One stored chunk in the encoding of the array's codecs: the value of a key of an array without
 * shards, or a piece of a shard. Its stored bytes are passed on if they have that encoding,
 * otherwise transcoded.
 *
 * Looking up and fetching need a transaction; finishing does not, because objects never change.
 */
#ifndef BRC_ZARR_KEY_PART_H
#define BRC_ZARR_KEY_PART_H

#include "../../flow/read.h"
#include "../array/array.h"
#include "../stored/shard.h"

/* ---- key part -------------------------------- */

/* How the stored bytes become bytes of the array's codecs. */
enum {
    BRC_PART_AS_IS,   /* the stored bytes are those bytes                          */
    BRC_PART_MARKED,  /* the bytes after an opaque chunk's mark are                */
    BRC_PART_DECODED, /* the codecs do nothing: the canonical bytes are            */
    BRC_PART_ENCODED  /* the stored bytes have another encoding                    */
};

typedef struct brc_key_part {
    brc_object object;      /* the caller sets its id                              */
    int how;
    size_t skip;            /* stored bytes before the chunk's bytes               */
    brc_form *form;         /* NULL: the array is opaque                           */
    const brc_chain *chain; /* decodes the stored bytes; NULL: they are canonical */
    int is_known;           /* the next two are known without reading anything */
    uint64_t len, digest;   /* length and checksum of the bytes                    */
} brc_key_part;

/* Looks up n parts, whose ids are set and not zero; indexes: ndim numbers each. */
BRC_MUST_USE int brc_key_parts_look(brc_array *a, brc_key_part *parts, size_t n, const uint64_t *indexes, brc_error *err);
/* Appends the stored bytes. */
BRC_MUST_USE int brc_key_part_fetch(const brc_array *a, const brc_key_part *part, brc_buf *stored, brc_error *err);
/* Tells whether the stored bytes only need to be checked: brc_key_part_check() then leaves the part's bytes at the
 * end of `stored`. Otherwise brc_key_part_transcode() appends the part's bytes to another buffer and sets len and
 * digest. */
int brc_key_part_passes(const brc_key_part *part);
BRC_MUST_USE int brc_key_part_check(const brc_key_part *part, brc_buf *stored, brc_error *err);
BRC_MUST_USE int brc_key_part_transcode(const brc_array *a, brc_key_part *part, const brc_buf *stored, brc_buf *out, brc_error *err);
/* Describes the item for a flow's open(): it becomes the chunk's bytes in the encoding of the array's codecs. */
BRC_MUST_USE int brc_key_part_item(brc_read_item *item, brc_array *a, const uint64_t *index, brc_error *err);
/* Leaves those bytes in item->out, for a flow's place(). */
BRC_MUST_USE int brc_key_part_place(brc_read_item *item, const uint8_t *data, brc_scratch *scratch, brc_error *err);
/* Sets length and digest from the part's bytes, on any thread. The known values may come from a build whose codecs
 * produced different bytes. */
void brc_key_part_measure(brc_key_part *part, brc_span bytes);
/* Stores length and digest in the derived table for the next look-up. Does nothing if the file cannot be written at
 * once. */
void brc_key_parts_remember(const brc_array *a, const brc_key_part *const *parts, size_t n);

/* ---- shard chunks -------------------------------- */

/*
 * The chunks of a shard, including those beyond the array's grid: a client that sets a smaller
 * shape through the key view leaves these where they are, as the shards of a directory do.
 */

typedef struct brc_shard_chunk {
    uint64_t number; /* in the shard: brc_part_number() */
    brc_oid id;
} brc_shard_chunk;

typedef struct brc_shard_chunks {
    uint64_t first[BRC_MAX_NDIM], count[BRC_MAX_NDIM]; /* the box of the shard's chunks */
    uint64_t end[BRC_MAX_NDIM]; /* no chunk is at or beyond this index along the axis     */
    void *items;                /* brc_shard_chunk[], in the grid's order                 */
    size_t n, cap;
} brc_shard_chunks;

/* Finds the chunks within a transaction. For an array without shards, `outer` is a chunk and its only place. */
BRC_MUST_USE int brc_shard_chunks_find(brc_shard_chunks *out, brc_array *a, const uint64_t *outer, brc_error *err);
void brc_shard_chunks_dispose(brc_shard_chunks *chunks);

#endif
