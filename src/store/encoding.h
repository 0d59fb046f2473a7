/*
 * Encodings in memory: their numbers in the file, their specifications, and the chains
 * that were opened for them. A slot stays valid until the next one is added. Its
 * specification and chain stay valid as long as the cache, because jobs on the pool decode
 * with them while the caller's thread may find that a number is no longer valid.
 */
#ifndef BRC_STORE_ENCODING_H
#define BRC_STORE_ENCODING_H

#include "../codec/chain.h"
#include "store.h"

/* ---- encoding cache -------------------------------- */

typedef struct brc_encoding_slot {
    int64_t id;    /* 0: forgotten */
    uint64_t seen; /* the transaction that last found the slot's row (brc_store.begun); 0: none */
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

/* Forgets the numbers: an encoding is found only after it is added again. */
void brc_encoding_cache_forget(brc_encoding_cache *cache);
void brc_encoding_cache_dispose(brc_encoding_cache *cache);
/* Return the slot of a number or specification, or NULL. */
brc_encoding_slot *brc_encoding_cache_by_id(const brc_encoding_cache *cache, int64_t id);
brc_encoding_slot *brc_encoding_cache_by_spec(const brc_encoding_cache *cache, const char *spec);
/* Adds an encoding, `id` > 0, and reuses its slot if that was forgotten. */
BRC_MUST_USE int brc_encoding_cache_add(brc_encoding_cache *cache, int64_t id, const char *spec,
                                        brc_encoding_slot **out, brc_error *err);
/* Returns the slot's chain, and opens it the first time; NULL if the specification is that of
 * opaque bytes. BRC_ECORRUPT if the specification is not valid. */
BRC_MUST_USE int brc_encoding_slot_chain(brc_encoding_slot *slot, const brc_registry *registry,
                                         const brc_chain **out, brc_error *err);

/* ---- document -------------------------------- */

/* Encodes a document for storage, within a write. *encoding 0: the text is stored as it is, and `out` is not
 * used. */
BRC_MUST_USE int brc_document_encode(brc_store *store, brc_span text, brc_buf *out, int64_t *encoding, brc_error *err);
/* Decodes a stored document and appends its text to `out`. */
BRC_MUST_USE int brc_document_decode(brc_store *store, int64_t encoding, brc_span stored, brc_buf *out, brc_error *err);

#endif
