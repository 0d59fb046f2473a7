/* Keeps blocks of host memory that were given back, and gives them out again: for prototypes whose memory costs
 * something to get. Any thread. */
#ifndef BRC_MEMORY_RECYCLER_H
#define BRC_MEMORY_RECYCLER_H

#include "../breccia_buffer.h"

typedef struct brc_recycler brc_recycler;

/* Where the memory comes from, and goes in the end; it is aligned to 64 bytes. take() returns NULL if there is none. */
typedef struct brc_memory_source {
    void *ctx;
    void *(*take)(void *ctx, size_t len);
    void (*give)(void *ctx, void *memory);
} brc_memory_source;

BRC_MUST_USE int brc_recycler_new(brc_recycler **out, brc_memory_source source, brc_error *err);
/* Frees it with all free blocks; all others must have come back. */
void brc_recycler_free(brc_recycler *r);
/* Sets data, len and flags of a block. BRC_ENOMEM: there is no room. */
BRC_MUST_USE int brc_recycler_alloc(brc_recycler *r, size_t len, brc_block *out, brc_error *err);
void brc_recycler_give(brc_recycler *r, const brc_block *block);

#endif
