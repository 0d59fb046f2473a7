/*
 * Objects that are stored as differences from other objects (docs/decisions/0052-deltas.md).
 *
 * The stored bytes of such an object are the id of the object that it builds on, its base, and a frame of zstd
 * (codec/delta_frame.h). So they say themselves what they need, under the row's checksum; table delta has the same, with an index
 * by base, for those who remove or store again. The base may be a difference itself. An object is never without the
 * objects that it builds on: who removes one stores those that build on it whole before.
 */
#ifndef BRC_STORE_BASES_H
#define BRC_STORE_BASES_H

#include "../codec/delta_frame.h"
#include "store.h"

/* The encoding of all differences, and its brc_hash_encoding(). A build that does not know it lacks its codec. */
#define BRC_DELTA_SPEC "{\"codecs\":[{\"name\":\"breccia.delta\",\"configuration\":{\"codec\":\"zstd\"}}]}"
#define BRC_DELTA_DIGEST UINT64_C(0xdcaa916499c7a936)
/* The most differences between an object and one that is stored whole: where none is given, and ever. */
#define BRC_DELTA_DEPTH 8
#define BRC_DELTA_DEPTH_MOST 64

/* Returns 1 if an object that was found is stored as a difference. */
static inline int brc_object_is_delta(const brc_object *o)
{
    return o->digest == BRC_DELTA_DIGEST && o->encoding != 0;
}

/* ---- reading -------------------------------- */

/* An object and those that it builds on, with their stored bytes, so that any thread can decode it. */
typedef struct brc_bases {
    size_t n;       /* at least 1: the object itself comes first, and last one that is stored whole */
    size_t cap;
    void *objects;  /* brc_object[n]                                              */
    size_t id_len;
    brc_buf stored; /* their stored bytes, one behind the other                   */
    const brc_chain *chain; /* of the last one; NULL: its bytes are the content   */
    brc_buf content; /* for the caller to use                                     */
} brc_bases;

/* Stored bytes of objects that lie where each call of a backend takes a while (BRC_BACKEND_FAR). Nothing is believed that
 * comes from here: brc_bases_load() checks the bytes, and fetches an object itself that is not here or has moved. */
typedef struct brc_ahead {
    size_t n, cap;
    void *list; /* in the order of their ids */
    uint64_t bytes;
    brc_buf stored, places;
} brc_ahead;
#define BRC_AHEAD_INIT {.stored = BRC_BUF_INIT, .places = BRC_BUF_INIT}

/* About the most stored bytes of one call. */
#define BRC_AHEAD_BYTES ((uint64_t)8 << 20)
/* Returns 1 if it pays to fetch the object together with others. */
int brc_object_is_far(brc_store *store, const brc_object *o);
/* Forgets what was here, and fetches the first of n objects that were found, each with all that it builds on as table delta says, in one
 * call of each backend. Only the errors that end everything are errors, and that of a server that cannot be asked for
 * the first object: then others need not ask again. */
BRC_MUST_USE int brc_ahead_fetch(brc_store *store, brc_ahead *a, size_t n, const brc_object *const *objects, brc_error *err);
/* Finds the stored bytes of an object; NULL: they are not here. */
const uint8_t *brc_ahead_find(const brc_ahead *a, const brc_object *object);
void brc_ahead_dispose(brc_ahead *a);

/* Fetches an object that was found, and all that it builds on, and checks their stored bytes. BRC_ECORRUPT: one of them
 * is missing or damaged, and the message names both; BRC_ESTALE: the object was removed. `ahead` may have some of the
 * bytes; NULL: what lies far away is fetched in one call. */
BRC_MUST_USE int brc_bases_load(brc_store *store, const brc_object *object, const brc_ahead *ahead, brc_bases **out,
                                brc_error *err);
void brc_bases_free(brc_bases *bases);
/* Appends the content of the first object to `into`. Any thread. Takes twice its length, however many there are. */
BRC_MUST_USE int brc_bases_decode(const brc_bases *bases, brc_scratch *scratch, brc_buf *into, brc_error *err);
/* Returns the object as it would be if it was stored whole and unencoded: its content is what it is read as. */
brc_object brc_bases_view(const brc_bases *bases);
/* Fails with BRC_ECORRUPT if table delta has another base for the first object than its stored bytes. */
BRC_MUST_USE int brc_bases_check(brc_store *store, const brc_bases *bases, brc_error *err);

/* ---- storing -------------------------------- */

/* Shorter objects stay whole. */
#define BRC_DELTA_LEAST 256
/* Returns whether a difference of this length is worth it: reading takes longer, and rows say what builds on what. */
static inline int brc_delta_pays(uint64_t delta, uint64_t stored)
{
    return delta <= UINT64_MAX - 96 && delta + 96 <= stored - stored / 4;
}

/* Appends the stored bytes of a difference to `out`. Any thread. */
BRC_MUST_USE int brc_delta_make(brc_scratch *scratch, const brc_oid *base, size_t id_len, brc_span base_content,
                                brc_span content, brc_buf *out, brc_error *err);
/* Within a transaction: stores whether `id` may build on `base`, so that no object is more than `most` differences from
 * one that is stored whole. */
BRC_MUST_USE int brc_delta_fits(brc_store *store, const brc_oid *id, const brc_oid *base, uint64_t most, int *fits,
                                brc_error *err);
/* Within the transaction that gave the object the encoding of differences, or took it: notes its base; NULL: none. */
BRC_MUST_USE int brc_delta_note(brc_store *store, const brc_oid *id, const brc_oid *base, brc_error *err);
/* Stores an object whole that is a difference, in a transaction. An object that is none, or is gone, stays so. */
BRC_MUST_USE int brc_delta_make_whole(brc_store *store, const brc_oid *id, brc_error *err);

/* ---- the table -------------------------------- */

/* Stores whether any object is a difference. */
BRC_MUST_USE int brc_deltas_there(brc_store *store, int *there, brc_error *err);
/* Lists the objects that are differences, after the id `after` (zero: from the start), at most `cap`. */
BRC_MUST_USE int brc_delta_page(brc_store *store, const brc_oid *after, brc_oid *out, size_t cap, size_t *n, brc_error *err);
/* Finds the base of an object in the table. */
BRC_MUST_USE int brc_delta_base(brc_store *store, const brc_oid *id, int *found, brc_oid *base, brc_error *err);
/* Lists objects that build on `base`, in the order of their ids after `after` (zero: from the start), at most `cap`. */
BRC_MUST_USE int brc_delta_dependants(brc_store *store, const brc_oid *base, const brc_oid *after, brc_oid *out, size_t cap,
                                      size_t *n, brc_error *err);
/* Counts the differences between an object and one that is stored whole; 0: it is stored whole. */
BRC_MUST_USE int brc_delta_depth(brc_store *store, const brc_oid *id, uint64_t *depth, brc_error *err);
/* Counts the objects that are differences, and the most of them that one read decodes. */
BRC_MUST_USE int brc_delta_totals(brc_store *store, uint64_t *objects, uint64_t *depth, brc_error *err);

#endif
