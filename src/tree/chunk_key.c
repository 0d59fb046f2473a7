#include "chunk_key.h"

#include <string.h>

size_t brc_chunk_key_encode(uint8_t out[BRC_CHUNK_KEY_MAX], int ndim, const uint64_t *index)
{
    size_t at = 0;
    for (int i = 0; i < ndim; i++) {
        unsigned bytes = 0;
        for (uint64_t v = index[i]; v != 0; v >>= 8)
            bytes++;
        out[at++] = (uint8_t)bytes;
        while (bytes > 0)
            out[at++] = (uint8_t)(index[i] >> (8 * --bytes));
    }
    return at;
}

int brc_chunk_key_decode(const uint8_t *key, size_t len, uint64_t index[BRC_MAX_NDIM])
{
    int ndim = 0;
    for (size_t at = 0; at < len; ndim++) {
        size_t bytes = key[at++];
        if (ndim == BRC_MAX_NDIM || bytes > 8 || bytes > len - at || (bytes > 0 && key[at] == 0))
            return -1;
        index[ndim] = 0;
        while (bytes-- > 0)
            index[ndim] = index[ndim] << 8 | key[at++];
    }
    return ndim;
}

int brc_chunk_id_of(brc_span value, size_t id_len, brc_oid *out, brc_error *err)
{
    memset(out, 0, sizeof(*out));
    if (value.len == id_len)
        memcpy(out->bytes, value.data, id_len);
    return brc_oid_is_zero(out)
               ? brc_fail(err, BRC_ECORRUPT, "a chunk's entry is damaged; run 'breccia fsck'")
               : BRC_OK;
}
