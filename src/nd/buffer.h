/* A caller's memory, as a brc_buffer describes it. */
#ifndef BRC_ND_BUFFER_H
#define BRC_ND_BUFFER_H

#include "../base/error.h"

/* The memory of a checked buffer. */
typedef struct brc_memory {
    uint8_t *origin;        /* the first element                              */
    size_t len;             /* bytes from there to the end of the memory      */
    const int64_t *strides; /* NULL: packed                                   */
} brc_memory;

enum { BRC_MEMORY_IN = 1 /* the source of a write */, BRC_MEMORY_OUT = 2 /* the target of a read */ };

/* Checks the structure. BRC_EINVAL if it is wrong, BRC_EUNSUPPORTED if the memory is not the host's.
 * brc_memory_fits() checks where the elements lie. */
BRC_MUST_USE int brc_memory_of(brc_memory *out, const brc_buffer *given, int way, brc_error *err);
/* Checks that `count` elements of `item` bytes lie within the memory, which packed elements must fill.
 * For BRC_MEMORY_OUT also that an axis of several elements does not have the stride 0. */
BRC_MUST_USE int brc_memory_fits(const brc_buffer *given, int ndim, const uint64_t *count, size_t item, int way,
                                 brc_error *err);

#endif
