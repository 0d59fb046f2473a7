/*
 * A chunk as an item of an array's map: the key is its coordinates, the value its id.
 *
 * A coordinate is one byte with its length (0 to 8), then as many bytes, most
 * significant first, without leading zeros. So the order of keys is the row-major
 * order of chunks, and no key is a prefix of another.
 */
#ifndef BRC_TREE_CHUNK_KEY_H
#define BRC_TREE_CHUNK_KEY_H

#include "../base/hash.h"
#include "../breccia_codec.h"

#define BRC_CHUNK_KEY_MAX (9 * BRC_MAX_NDIM)

size_t brc_chunk_key_encode(uint8_t out[BRC_CHUNK_KEY_MAX], int ndim, const uint64_t *index);
/* The rank, or -1 if the bytes are not such a key. */
int brc_chunk_key_decode(const uint8_t *key, size_t len, uint64_t index[BRC_MAX_NDIM]);
/* The id that the value is: `id_len` bytes, not all zero. BRC_ECORRUPT if it is not one. */
BRC_MUST_USE int brc_chunk_id_of(brc_span value, size_t id_len, brc_oid *out, brc_error *err);

#endif
