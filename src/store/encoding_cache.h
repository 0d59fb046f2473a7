/*
 * Encodings in memory: their numbers in the file, their specifications, and the chains
 * that were opened for them. A slot stays valid until the next one is added; its
 * specification and its chain until all are forgotten.
 */
#ifndef BRC_STORE_ENCODING_CACHE_H
#define BRC_STORE_ENCODING_CACHE_H

#include "../codec/chain.h"

typedef struct brc_encoding_slot {
    int64_t id;
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

void brc_encoding_cache_clear(brc_encoding_cache *cache);
void brc_encoding_cache_dispose(brc_encoding_cache *cache);
/* NULL if it is not there. */
brc_encoding_slot *brc_encoding_cache_by_id(const brc_encoding_cache *cache, int64_t id);
brc_encoding_slot *brc_encoding_cache_by_spec(const brc_encoding_cache *cache, const char *spec);
BRC_MUST_USE int brc_encoding_cache_add(brc_encoding_cache *cache, int64_t id, const char *spec,
                                        brc_encoding_slot **out, brc_error *err);
/* The slot's chain, opened the first time; NULL if the specification is that of opaque
 * bytes. BRC_ECORRUPT if the specification is meaningless. */
BRC_MUST_USE int brc_encoding_slot_chain(brc_encoding_slot *slot, const brc_registry *registry,
                                         const brc_chain **out, brc_error *err);

#endif
