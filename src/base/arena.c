#include "arena.h"

#include <stdalign.h>
#include <stdlib.h>
#include <string.h>

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
