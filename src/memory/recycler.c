/*
 *      a block:   | 64 bytes: size class, next | data, aligned to 64 bytes ... |
 *
 * Invariant: at most RECYCLER_KEEPS bytes of free blocks are kept. A block goes to the list of its
 * class and comes from there, so a list's blocks are all of one size, and what a block wastes is
 * less than a quarter of it.
 */
#include "recycler.h"

#include <stdlib.h>

#include "../base/alloc.h"
#include "../base/pool.h"

#define RECYCLER_KEEPS ((size_t)256 << 20)
#define LEAST_SHIFT 8 /* the smallest class has two to this power of bytes */
#define CLASSES ((size_t)(64 - LEAST_SHIFT) * 4)

typedef struct kept_block {
    size_t class, bytes;
    struct kept_block *next;
    uint8_t rest[64 - 3 * sizeof(size_t)];
} kept_block;
_Static_assert(sizeof(kept_block) == 64, "the data behind it is aligned");

struct brc_recycler {
    brc_memory_source source;
    brc_lock *lock;
    size_t kept; /* bytes of the free blocks */
    kept_block *lists[CLASSES];
};

/* Returns the class of blocks for so many bytes, and the bytes of such a block: the next of 4,
 * 5, 6 and 7 times a power of two. CLASSES: there is none. */
static size_t class_of(size_t len, size_t *bytes)
{
    unsigned shift = LEAST_SHIFT;
    if (len > SIZE_MAX / 8)
        return CLASSES;
    while (len > (size_t)7 << (shift - 2))
        shift++;
    size_t part = 4;
    while (part << (shift - 2) < len)
        part++;
    *bytes = part << (shift - 2);
    return (shift - LEAST_SHIFT) * 4 + part - 4;
}

int brc_recycler_new(brc_recycler **out, brc_memory_source source, brc_error *err)
{
    void *p;
    *out = NULL;
    BRC_TRY(brc_new(&p, sizeof(brc_recycler), err));
    brc_recycler *r = p;
    r->source = source;
    int rc = brc_lock_new(&r->lock, err);
    if (rc < 0)
        free(p);
    else
        *out = r;
    return rc;
}

void brc_recycler_free(brc_recycler *r)
{
    if (r == NULL)
        return;
    for (size_t i = 0; i < CLASSES; i++)
        for (kept_block *at = r->lists[i], *next; at != NULL; at = next) {
            next = at->next;
            r->source.give(r->source.ctx, at);
        }
    brc_lock_free(r->lock);
    free(r);
}

static kept_block *recycler_take(brc_recycler *r, size_t class)
{
    brc_lock_enter(r->lock);
    kept_block *found = r->lists[class];
    if (found != NULL) {
        r->lists[class] = found->next;
        r->kept -= found->bytes;
    }
    brc_lock_leave(r->lock);
    return found;
}

int brc_recycler_alloc(brc_recycler *r, size_t len, brc_block *out, brc_error *err)
{
    size_t bytes = 0;
    const size_t class = class_of(len, &bytes);
    kept_block *block = class < CLASSES ? recycler_take(r, class) : NULL;
    out->flags = BRC_BLOCK_HOST;
    if (block == NULL && class < CLASSES) {
        block = r->source.take(r->source.ctx, bytes + sizeof(kept_block));
        out->flags |= BRC_BLOCK_NEW;
        if (block != NULL) {
            block->class = class;
            block->bytes = bytes;
        }
    }
    if (block == NULL)
        return brc_fail(err, BRC_ENOMEM, "the host has no room for %zu bytes", len);
    out->data = block + 1;
    out->len = len;
    return BRC_OK;
}

void brc_recycler_give(brc_recycler *r, const brc_block *given)
{
    kept_block *block = (kept_block *)given->data - 1;
    brc_lock_enter(r->lock);
    const int keeps = block->bytes <= RECYCLER_KEEPS - r->kept;
    if (keeps) {
        block->next = r->lists[block->class];
        r->lists[block->class] = block;
        r->kept += block->bytes;
    }
    brc_lock_leave(r->lock);
    if (!keeps)
        r->source.give(r->source.ctx, block);
}
