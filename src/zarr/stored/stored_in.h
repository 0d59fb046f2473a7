/*
 * Writes chunks and shards whose bytes are as codecs have them. Shards are split into their chunks. The bytes of a
 * chunk are decoded to compute its identity, and kept if the array has the same codecs, otherwise encoded again.
 * There are two ways:
 *
 *      brc_array_put_stored(), brc_array_put_recoded()   all chunks of an array, from a source (transfer.h)
 *      brc_put_prepare(), brc_put_store()                one value of the Zarr key view
 *
 * Of a value of the key view, elements beyond the array's edge stay, and a chunk of nothing but the fill value is
 * stored: a client that sets such a chunk finds it again. Preparing needs no transaction, so nobody waits while
 * chunks are decoded.
 */
#ifndef BRC_ZARR_STORED_IN_H
#define BRC_ZARR_STORED_IN_H

#include "../transfer.h"
#include "shard.h"

/* One chunk in the form in which it will be stored. */
typedef struct brc_put_part {
    uint64_t index[BRC_MAX_NDIM];
    brc_object object; /* everything but its location                             */
    brc_span stored;   /* within the value, or in `room`                          */
    int is_encoded;    /* as the chunk's form says; 0: canonical                  */
    brc_buf room;      /* canonical bytes, if they are short, or marked bytes     */
    int is_put;        /* the object is already in this backend, at `at`          */
    int64_t backend;
    brc_stored at;
} brc_put_part;

typedef struct brc_put {
    int is_ready;      /* the parts are prepared, for this place:                 */
    brc_oid doc;       /* the array's document                                    */
    uint64_t outer[BRC_MAX_NDIM];
    void *parts;       /* brc_put_part[]                                          */
    size_t n, cap;
    int64_t since;     /* tells whether what was put is still there: brc_gc_puts_stand() */
} brc_put;

void brc_put_dispose(brc_put *put);
/* Returns 1, or 0 with the reason in `err` if the bytes are not a valid chunk of this kind. `data` must outlive
 * `put`. */
BRC_MUST_USE int brc_put_prepare(brc_put *put, brc_array *a, const uint64_t *outer, brc_span data, brc_error *err);
/* Puts the new prepared objects into the array's backend, if that is not the file itself, so that nobody waits for
 * the backend. Call outside of any transaction. */
BRC_MUST_USE int brc_put_ahead(brc_put *put, brc_array *a, brc_error *err);
/* Makes the objects in the backend durable. */
BRC_MUST_USE int brc_put_flush(brc_store *store, const brc_put *put, brc_error *err);
/* Stores the prepared chunks, within a change of the session. */
BRC_MUST_USE int brc_put_store(const brc_put *put, brc_array *a, brc_error *err);
/* Removes the chunk or the shard, within a change of the session. */
BRC_MUST_USE int brc_put_drop(brc_array *a, const uint64_t *outer, brc_error *err);

#endif
