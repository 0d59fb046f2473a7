/* Memory. The caller releases it with free(3). */
#ifndef BRC_BASE_ALLOC_H
#define BRC_BASE_ALLOC_H

#include "error.h"

/* ---- alloc -------------------------------- */

/* Each sets *out and returns BRC_OK or BRC_ENOMEM; n * size is checked. A size of
 * zero gives a pointer that may be freed. */
BRC_MUST_USE int brc_new(void **out, size_t size, brc_error *err);               /* zeroed */
BRC_MUST_USE int brc_new_array(void **out, size_t n, size_t size, brc_error *err); /* zeroed */
/* Grows *array to hold at least `need` items of `size` bytes, and updates *cap.
 * On failure the old array stays. */
BRC_MUST_USE int brc_grow_array(void **array, size_t *cap, size_t need, size_t size, brc_error *err);
BRC_MUST_USE int brc_dup(char **out, const char *text, brc_error *err);
BRC_MUST_USE int brc_dup_n(char **out, const char *text, size_t len, brc_error *err);
/* Allocates a big block that will be written in full: from 4 MiB on it is aligned to 2 MiB, and in
 * huge pages if the system has them. */
BRC_MUST_USE int brc_new_big(void **out, size_t len, brc_error *err);

/* Checked arithmetic on sizes: returns 1 if the result fits, else 0. */
static inline int brc_mul_u64(uint64_t a, uint64_t b, uint64_t *out)
{
    return !__builtin_mul_overflow(a, b, out);
}
/* Returns the product, or UINT64_MAX if it does not fit: for sizes that are only compared. */
static inline uint64_t brc_mul_capped(uint64_t a, uint64_t b)
{
    uint64_t out;
    return brc_mul_u64(a, b, &out) ? out : UINT64_MAX;
}
static inline int brc_add_u64(uint64_t a, uint64_t b, uint64_t *out)
{
    return !__builtin_add_overflow(a, b, out);
}
static inline int brc_to_size(uint64_t a, size_t *out)
{
    *out = (size_t)a;
    return (uint64_t)*out == a;
}

/* ---- arena -------------------------------- */

/* Memory for one operation: pieces are taken one by one and released together. */

typedef struct brc_arena {
    struct brc_arena_block *blocks;
    size_t left; /* bytes left in the newest block */
} brc_arena;
#define BRC_ARENA_INIT { 0, 0 }

/* Returns memory aligned for any type, not zeroed, or NULL when memory runs out. */
void *brc_arena_take(brc_arena *arena, size_t size);
BRC_MUST_USE int brc_arena_copy(brc_arena *arena, const void *data, size_t len, uint8_t **out, brc_error *err);
void brc_arena_dispose(brc_arena *arena);

#endif
