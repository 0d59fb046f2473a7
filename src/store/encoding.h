/*
 * Encodings in memory: their numbers in the file, their specifications, and the chains
 * that were opened for them. A slot stays valid until the next one is added; its
 * specification and its chain as long as the cache, because jobs on the pool decode with
 * them while the caller's thread may find out that a number is no longer true.
 */
#ifndef BRC_STORE_ENCODING_H
#define BRC_STORE_ENCODING_H

#include "../codec/chain.h"
#include "store.h"

/* ---- encoding cache -------------------------------- */

typedef struct brc_encoding_slot {
    int64_t id;    /* 0: it is forgotten */
    uint64_t seen; /* the transaction that last found its row (brc_store.begun); 0: none did */
    char *spec;
    uint64_t digest;
    brc_chain *chain; /* NULL: not opened yet */
    brc_dtype *type;  /* the chain borrows it */
    brc_buf fill;     /* if the specification has one */
} brc_encoding_slot;

typedef struct brc_encoding_cache {
    brc_encoding_slot *slots;
    size_t n, cap;
} brc_encoding_cache;

/* Forgets the numbers: nothing is found until it is added again. */
void brc_encoding_cache_forget(brc_encoding_cache *cache);
void brc_encoding_cache_dispose(brc_encoding_cache *cache);
/* NULL if it is not there. */
brc_encoding_slot *brc_encoding_cache_by_id(const brc_encoding_cache *cache, int64_t id);
brc_encoding_slot *brc_encoding_cache_by_spec(const brc_encoding_cache *cache, const char *spec);
/* `id` > 0. Takes up a slot that was forgotten. */
BRC_MUST_USE int brc_encoding_cache_add(brc_encoding_cache *cache, int64_t id, const char *spec,
                                        brc_encoding_slot **out, brc_error *err);
/* The slot's chain, opened the first time; NULL if the specification is that of opaque
 * bytes. BRC_ECORRUPT if the specification is meaningless. */
BRC_MUST_USE int brc_encoding_slot_chain(brc_encoding_slot *slot, const brc_registry *registry,
                                         const brc_chain **out, brc_error *err);

/* ---- document -------------------------------- */

/* Documents as they are stored. */

/* *encoding 0: it is stored as it is, and `out` says nothing. Within a write. */
BRC_MUST_USE int brc_document_encode(brc_store *store, brc_span text, brc_buf *out, int64_t *encoding, brc_error *err);
/* Appends the text. */
BRC_MUST_USE int brc_document_decode(brc_store *store, int64_t encoding, brc_span stored, brc_buf *out, brc_error *err);

#endif
