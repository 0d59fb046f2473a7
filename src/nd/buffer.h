/* A caller's memory, as a brc_buffer describes it. */
#ifndef BRC_ND_BUFFER_H
#define BRC_ND_BUFFER_H

#include "../base/error.h"

/* What a checked buffer comes to. */
typedef struct brc_memory {
    uint8_t *origin;        /* the first element                              */
    size_t len;             /* bytes from there to the end of the memory      */
    const int64_t *strides; /* NULL: packed                                   */
} brc_memory;

enum { BRC_MEMORY_IN = 1 /* it is written from */, BRC_MEMORY_OUT = 2 /* it is read into */ };

/* BRC_EINVAL where the structure is wrong, BRC_EUNSUPPORTED where the memory is elsewhere.
 * Where elements lie is brc_memory_fits()'s question. */
BRC_MUST_USE int brc_memory_of(brc_memory *out, const brc_buffer *given, int way, brc_error *err);
/* Do `count` elements of `item` bytes lie within the memory? Packed ones must fill it. `out`:
 * each has a place of its own. */
BRC_MUST_USE int brc_memory_fits(const brc_buffer *given, int ndim, const uint64_t *count, size_t item, int way,
                                 brc_error *err);

#endif
