/*
 * A chunk as an item of an array's map: its coordinates are the key, its id the value.
 *
 * Each coordinate is its length in bytes (0 to 8) and then so many bytes, most
 * significant first, without leading zeros: so the order of keys is the row-major
 * order of chunks, and no key begins with another.
 */
#ifndef BRC_TREE_CHUNK_KEY_H
#define BRC_TREE_CHUNK_KEY_H

#include "../base/hash.h"
#include "../breccia_codec.h"

#define BRC_CHUNK_KEY_MAX (9 * BRC_MAX_NDIM)

size_t brc_chunk_key_encode(uint8_t out[BRC_CHUNK_KEY_MAX], int ndim, const uint64_t *index);
/* The rank, or -1 where the bytes are no such key. */
int brc_chunk_key_decode(const uint8_t *key, size_t len, uint64_t index[BRC_MAX_NDIM]);
/* The id that the value is: `id_len` bytes, not all zero. BRC_ECORRUPT where it is none. */
BRC_MUST_USE int brc_chunk_id_of(brc_span value, size_t id_len, brc_oid *out, brc_error *err);

#endif
