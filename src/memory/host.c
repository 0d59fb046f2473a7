/*
 * The host's memory: "host" takes each block from the system and gives it back; "pool" gives
 * blocks that came back out again, so that reads of one shape allocate nothing after the first.
 */
#include <stdlib.h>

#include "../base/alloc.h"
#include "memory.h"
#include "recycler.h"

#define ALIGNED 64

static void *aligned_take(void *ctx, size_t len)
{
    (void)ctx;
    if (len > SIZE_MAX - 2 * ALIGNED)
        return NULL;
    const size_t whole = (len + ALIGNED - 1) / ALIGNED * ALIGNED;
    return aligned_alloc(ALIGNED, whole > 0 ? whole : ALIGNED);
}

static void aligned_give(void *ctx, void *memory)
{
    (void)ctx;
    free(memory);
}

/* ---- host -------------------------------- */

static int host_alloc(void *ctx, void *state, size_t len, uint32_t flags, void *stream,
                      brc_block *out, brc_error *err)
{
    (void)state;
    (void)flags;
    (void)stream;
    out->data = aligned_take(ctx, len);
    if (out->data == NULL)
        return brc_fail(err, BRC_ENOMEM, "the host has no room for %zu bytes", len);
    out->len = len;
    out->flags = BRC_BLOCK_HOST | BRC_BLOCK_NEW;
    return BRC_OK;
}

static void host_free(void *ctx, void *state, const brc_block *block)
{
    (void)ctx;
    (void)state;
    free(block->data);
}

/* ---- pool -------------------------------- */

static int pool_open(void *ctx, void **state, brc_error *err)
{
    brc_recycler *r;
    (void)ctx;
    int rc = brc_recycler_new(&r, (brc_memory_source){NULL, aligned_take, aligned_give}, err);
    *state = r;
    return rc;
}

static void pool_close(void *ctx, void *state)
{
    (void)ctx;
    brc_recycler_free(state);
}

static int pool_alloc(void *ctx, void *state, size_t len, uint32_t flags, void *stream,
                      brc_block *out, brc_error *err)
{
    (void)ctx;
    (void)flags;
    (void)stream;
    return brc_recycler_alloc(state, len, out, err);
}

static void pool_free(void *ctx, void *state, const brc_block *block)
{
    (void)ctx;
    brc_recycler_give(state, block);
}

static const brc_buffer_prototype host_prototypes[] = {
    {.size = sizeof(brc_buffer_prototype),
     .name = "host",
     .device = BRC_MEMORY_HOST,
     .flags = BRC_PROTOTYPE_HOST,
     .alloc = host_alloc,
     .free = host_free},
    {.size = sizeof(brc_buffer_prototype),
     .name = "pool",
     .device = BRC_MEMORY_HOST,
     .flags = BRC_PROTOTYPE_HOST,
     .open = pool_open,
     .close = pool_close,
     .alloc = pool_alloc,
     .free = pool_free},
};

const brc_buffer_prototype *brc_memory_host(size_t *n)
{
    *n = sizeof(host_prototypes) / sizeof(host_prototypes[0]);
    return host_prototypes;
}
