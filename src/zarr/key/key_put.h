/*
 * Bytes that a client sets under the key of a chunk or a shard. They are decoded with the array's
 * codecs for their identity, and kept as they came. A shard is taken apart. What they hold beyond
 * the array's edge stays, and a chunk of nothing but the fill value is one: a client that sets it
 * finds it again.
 *
 * Preparing needs no transaction, for nobody has to wait while chunks are decoded.
 */
#ifndef BRC_ZARR_KEY_PUT_H
#define BRC_ZARR_KEY_PUT_H

#include "key_list.h"

/* One chunk as it will be stored. */
typedef struct brc_put_part {
    uint64_t index[BRC_MAX_NDIM];
    brc_object object; /* all but its place                                       */
    brc_span stored;   /* within the value, or in `room`                          */
    char *spec;        /* of its encoding, borrowed from the array; NULL: it is canonical */
    brc_buf room;      /* canonical bytes, where they are few, or marked ones     */
    int is_put;        /* it lies in this backend already, there                  */
    int64_t backend;
    brc_stored at;
} brc_put_part;

typedef struct brc_put {
    int is_ready;      /* parts are those of this place:                          */
    brc_oid doc;       /* the array's document                                    */
    uint64_t outer[BRC_MAX_NDIM];
    void *parts;       /* brc_put_part[]                                          */
    size_t n, cap;
    int64_t since;     /* whether what was put stands: brc_gc_puts_stand()        */
} brc_put;

void brc_put_dispose(brc_put *put);
/* 1, or 0 with the reason in `err` if the bytes are no such chunk. `data` stays in use. */
BRC_MUST_USE int brc_put_prepare(brc_put *put, brc_array *a, const uint64_t *outer, brc_span data, brc_error *err);
/* Outside of any transaction: puts what was prepared, and is new, into the array's backend, if that is
 * not the file itself, so that nobody waits for it. */
BRC_MUST_USE int brc_put_ahead(brc_put *put, brc_array *a, brc_error *err);
/* Makes that durable. */
BRC_MUST_USE int brc_put_flush(brc_store *store, const brc_put *put, brc_error *err);
/* Within a change of the session: stores what was prepared for this place. */
BRC_MUST_USE int brc_put_store(const brc_put *put, brc_array *a, brc_error *err);
/* Within a change of the session: the chunk or the shard is gone. */
BRC_MUST_USE int brc_put_drop(brc_array *a, const uint64_t *outer, brc_error *err);

#endif
