/*
 * One stored chunk as the array's codecs have it: what a key of an array without shards holds, or
 * a piece of a shard. Its stored bytes are passed on where they are encoded so, else transcoded.
 *
 * Looking and fetching need a transaction; finishing does not, for objects never change.
 */
#ifndef BRC_ZARR_KEY_PART_H
#define BRC_ZARR_KEY_PART_H

#include "../../flow/read.h"
#include "../array/array.h"
#include "../stored/shard.h"

/* ---- key part -------------------------------- */

/* How the stored bytes become those of the array's codecs. */
enum {
    BRC_PART_AS_IS,   /* they are these                                            */
    BRC_PART_MARKED,  /* those behind an opaque chunk's mark are                   */
    BRC_PART_DECODED, /* the codecs do nothing: it is the canonical bytes          */
    BRC_PART_ENCODED  /* they are another encoding's                               */
};

typedef struct brc_key_part {
    brc_object object;      /* set its id                                          */
    int how;
    size_t skip;            /* stored bytes before the chunk's                     */
    brc_form *form;         /* NULL: the array is opaque                           */
    const brc_chain *chain; /* that decodes the stored bytes; NULL: they are canonical */
    int is_known;           /* the next two are: nothing needs to be read for them */
    uint64_t len, digest;   /* of the bytes: how many, and a checksum              */
} brc_key_part;

/* Looks up n parts, whose ids are set and not zero; indexes: ndim numbers each. */
BRC_MUST_USE int brc_key_parts_look(brc_array *a, brc_key_part *parts, size_t n, const uint64_t *indexes, brc_error *err);
/* Appends the stored bytes. */
BRC_MUST_USE int brc_key_part_fetch(const brc_array *a, const brc_key_part *part, brc_buf *stored, brc_error *err);
/* Whether they only need to be checked: brc_key_part_check() then leaves the part's own bytes at
 * the end of `stored`. Else brc_key_part_transcode() appends these to another buffer; then len
 * and digest are known. */
int brc_key_part_passes(const brc_key_part *part);
BRC_MUST_USE int brc_key_part_check(const brc_key_part *part, brc_buf *stored, brc_error *err);
BRC_MUST_USE int brc_key_part_transcode(const brc_array *a, brc_key_part *part, const brc_buf *stored, brc_buf *out, brc_error *err);
/* For a flow's open(): the item becomes this chunk's bytes as the array's codecs have them. */
BRC_MUST_USE int brc_key_part_item(brc_read_item *item, brc_array *a, const uint64_t *index, brc_error *err);
/* And for its place(): they are left in item->out. */
BRC_MUST_USE int brc_key_part_place(brc_read_item *item, const uint8_t *data, brc_scratch *scratch, brc_error *err);
/* Now that its bytes are there, on any thread. What was known of them may come from a build whose
 * codecs gave others. */
void brc_key_part_measure(brc_key_part *part, brc_span bytes);
/* In the derived table, so that the next look-up finds it. Does nothing where the file cannot be
 * written at once. */
void brc_key_parts_remember(const brc_array *a, const brc_key_part *const *parts, size_t n);

/* ---- shard chunks -------------------------------- */

/*
 * The chunks that a shard has, those that lie beyond the array's grid among them: a smaller shape that
 * a client sets through the key view leaves these where they are, as the shards of a directory do.
 */

typedef struct brc_shard_chunk {
    uint64_t number; /* in the shard: brc_part_number() */
    brc_oid id;
} brc_shard_chunk;

typedef struct brc_shard_chunks {
    uint64_t first[BRC_MAX_NDIM], count[BRC_MAX_NDIM]; /* the shard's places            */
    uint64_t end[BRC_MAX_NDIM]; /* no chunk lies there or further along the axis          */
    void *items;                /* brc_shard_chunk[], in the grid's order                 */
    size_t n, cap;
} brc_shard_chunks;

/* Within a transaction. Of an array without shards, `outer` is a chunk and its only place. */
BRC_MUST_USE int brc_shard_chunks_find(brc_shard_chunks *out, brc_array *a, const uint64_t *outer, brc_error *err);
void brc_shard_chunks_dispose(brc_shard_chunks *chunks);

#endif
