/* Versions share most map nodes, so the number of chunks under each node is counted once and kept
 * with the node. */
#include <stddef.h>
#include <stdlib.h>

#include "../base/alloc.h"
#include "../base/sized.h"
#include "../history/closure.h"
#include "../work/session.h"
typedef struct chunk_totals {
    brc_store *store;
    brc_closure *closure;
    void *sums; /* uint64_t[]: of each node from the root down */
    size_t cap;
} chunk_totals;

static int add_chunks(chunk_totals *c, size_t level, uint64_t chunks, brc_error *err)
{
    uint64_t *sum = &((uint64_t *)c->sums)[level];
    if (!brc_add_u64(*sum, chunks, sum))
        return brc_fail(err, BRC_ELIMIT, "the versions have more chunks than can be counted");
    return BRC_OK;
}

static int count_node(chunk_totals *c, const brc_closure_step *step, brc_error *err)
{
    const brc_node_step *at = &step->node;
    uint64_t chunks = 0;
    BRC_TRY(brc_grow_array(&c->sums, &c->cap, at->level + 2, sizeof(uint64_t), err));
    if (at->kind == BRC_ARRAY) { /* the root says how many there are */
        BRC_TRY(brc_map_count(c->store, &at->id, &chunks, err));
        brc_closure_skip(c->closure);
        return add_chunks(c, at->level, chunks, err);
    }
    if (step->known != NULL)
        return add_chunks(c, at->level, *(const uint64_t *)step->known, err);
    ((uint64_t *)c->sums)[at->level + 1] = 0;
    return BRC_OK;
}

static int count_leave(chunk_totals *c, const brc_closure_step *step, brc_error *err)
{
    uint64_t chunks = ((uint64_t *)c->sums)[step->node.level + 1];
    *(uint64_t *)step->keep = chunks;
    return add_chunks(c, step->node.level, chunks, err);
}

static int count_step(chunk_totals *c, const brc_closure_step *at, brc_stats *out, brc_error *err)
{
    switch (at->what) {
    case BRC_AT_VERSION:
        out->commits++;
        return BRC_OK;
    case BRC_AT_NODE:
        return count_node(c, at, err);
    case BRC_AT_LEAVE:
        return count_leave(c, at, err);
    default:
        return BRC_OK;
    }
}

/* Walks everything that refs reach; the chunks of each version are added to the first sum. */
static int count_history(chunk_totals *c, brc_stats *out, brc_error *err)
{
    brc_closure_step at;
    int rc;
    BRC_TRY(brc_grow_array(&c->sums, &c->cap, 1, sizeof(uint64_t), err));
    *(uint64_t *)c->sums = 0;
    BRC_TRY(brc_closure_refs(c->closure, err));
    while ((rc = brc_closure_next(c->closure, &at, err)) > 0) {
        BRC_TRY(count_step(c, &at, out, err));
        brc_store_breathe(c->store);
    }
    out->chunk_refs = *(uint64_t *)c->sums;
    return rc;
}

int brc_stat(breccia *repo, brc_stats *given, brc_error *err)
{
    chunk_totals chunks = { .store = repo->store };
    brc_stats own = BRC_STATS_INIT, *out = &own;
    int rc;

    BRC_TRY(brc_sized_check(given->size, offsetof(brc_stats, objects), "brc_stats", err));
    BRC_TRY(brc_store_begin_read(repo->store, err));
    brc_store_walk_begin(repo->store);
    BRC_GO(brc_store_totals(repo->store, out, err));
    BRC_GO(brc_closure_new(&chunks.closure, repo->store, sizeof(uint64_t), err));
    out->log_bytes = brc_store_log_bytes(repo->store);
    rc = count_history(&chunks, out, err);
done:
    free(chunks.sums);
    brc_closure_free(chunks.closure);
    brc_store_walk_end(repo->store);
    brc_store_end_read(repo->store);
    if (rc == BRC_OK)
        rc = brc_sized_out(given, &own, sizeof(own), offsetof(brc_stats, objects), "brc_stats",
                           err);
    return rc;
}
