/* Memory for one operation: pieces are taken one by one and released together. */
#ifndef BRC_BASE_ARENA_H
#define BRC_BASE_ARENA_H

#include "error.h"

typedef struct brc_arena {
    struct brc_arena_block *blocks;
    size_t left; /* bytes left in the newest block */
} brc_arena;
#define BRC_ARENA_INIT { 0, 0 }

/* Aligned for any type, not zeroed. NULL when memory runs out. */
void *brc_arena_take(brc_arena *arena, size_t size);
BRC_MUST_USE int brc_arena_copy(brc_arena *arena, const void *data, size_t len, uint8_t **out, brc_error *err);
void brc_arena_dispose(brc_arena *arena);

#endif
