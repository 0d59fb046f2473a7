/* Memory: every size is checked, and running out of it is an ordinary error. */
#include "alloc.h"

#include <stdalign.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

/* ==== alloc ================================ */

#define HUGE_PAGE ((size_t)2 << 20)
#define BIG_MEMORY ((size_t)4 << 20)

int brc_new(void **out, size_t size, brc_error *err)
{
    return brc_new_array(out, 1, size, err);
}

int brc_new_array(void **out, size_t n, size_t size, brc_error *err)
{
    uint64_t bytes;
    *out = NULL;
    if (!brc_mul_u64(n, size, &bytes) || bytes > PTRDIFF_MAX)
        return brc_nomem(err);
    *out = calloc(1, bytes > 0 ? (size_t)bytes : 1);
    return *out ? BRC_OK : brc_nomem(err);
}

int brc_grow_array(void **array, size_t *cap, size_t need, size_t size, brc_error *err)
{
    if (need <= *cap)
        return BRC_OK;
    uint64_t wish = (uint64_t)*cap + *cap / 2;
    if (wish < 8)
        wish = 8;
    if (wish < need)
        wish = need;
    uint64_t bytes;
    if (!brc_mul_u64(wish, size, &bytes) || bytes > PTRDIFF_MAX)
        return brc_nomem(err);
    void *grown = realloc(*array, bytes > 0 ? (size_t)bytes : 1);
    if (!grown)
        return brc_nomem(err);
    *array = grown;
    *cap = (size_t)wish;
    return BRC_OK;
}

int brc_dup(char **out, const char *text, brc_error *err)
{
    return brc_dup_n(out, text, strlen(text), err);
}

int brc_dup_n(char **out, const char *text, size_t len, brc_error *err)
{
    *out = len < PTRDIFF_MAX ? malloc(len + 1) : NULL;
    if (!*out)
        return brc_nomem(err);
    if (len > 0)
        memcpy(*out, text, len);
    (*out)[len] = 0;
    return BRC_OK;
}

int brc_new_big(void **out, size_t len, brc_error *err)
{
    *out = NULL;
    if (len > PTRDIFF_MAX - HUGE_PAGE)
        return brc_nomem(err);
    if (len < BIG_MEMORY) {
        *out = malloc(len > 0 ? len : 1);
        return *out ? BRC_OK : brc_nomem(err);
    }
    size_t whole = (len + HUGE_PAGE - 1) / HUGE_PAGE * HUGE_PAGE;
    *out = aligned_alloc(HUGE_PAGE, whole);
    if (!*out)
        return brc_nomem(err);
#ifdef MADV_HUGEPAGE
    /* A hint: fresh small pages are filled at a quarter of the speed of huge ones. */
    (void)madvise(*out, whole, MADV_HUGEPAGE);
#endif
    return BRC_OK;
}

/* ==== arena ================================ */

#define ARENA_BLOCK ((size_t)32768)

struct brc_arena_block {
    struct brc_arena_block *next;
    size_t size;
    alignas(max_align_t) uint8_t data[];
};

static int arena_grow(brc_arena *arena, size_t size)
{
    size_t n = size > ARENA_BLOCK ? size : ARENA_BLOCK;
    if (n > SIZE_MAX - sizeof(struct brc_arena_block))
        return 0;
    struct brc_arena_block *block = malloc(sizeof(*block) + n);
    if (block == NULL)
        return 0;
    block->size = n;
    block->next = arena->blocks;
    arena->blocks = block;
    arena->left = n;
    return 1;
}

void *brc_arena_take(brc_arena *arena, size_t size)
{
    const size_t align = alignof(max_align_t);
    if (size > SIZE_MAX - align)
        return NULL;
    size = (size + align - 1) / align * align;
    if (size == 0)
        size = align;
    if (size > arena->left && !arena_grow(arena, size))
        return NULL;
    struct brc_arena_block *block = arena->blocks;
    void *p = block->data + (block->size - arena->left);
    arena->left -= size;
    return p;
}

int brc_arena_copy(brc_arena *arena, const void *data, size_t len, uint8_t **out, brc_error *err)
{
    *out = brc_arena_take(arena, len);
    if (*out == NULL)
        return brc_nomem(err);
    if (len > 0)
        memcpy(*out, data, len);
    return BRC_OK;
}

void brc_arena_dispose(brc_arena *arena)
{
    struct brc_arena_block *block = arena->blocks;
    while (block != NULL) {
        struct brc_arena_block *next = block->next;
        free(block);
        block = next;
    }
    arena->blocks = NULL;
    arena->left = 0;
}
