/* Stored chunks one after the other as a source gives them, those of a shard singly. Shards are
 * read ahead, and taken apart on the pool. */
#ifndef BRC_ZARR_CHUNK_PULL_H
#define BRC_ZARR_CHUNK_PULL_H

#include "shard.h"
#include "transfer.h"

typedef struct brc_chunk_pull {
    brc_array *a;      /* for messages, and for the flow that it feeds               */
    const brc_meta *m; /* what the source's chunks are: their grid, their shards     */
    const brc_chunk_source *source;
    /* its own */
    int ended;         /* the source has come to its end, or failed:                 */
    int rc;            /* with this, to be told after the shards before it           */
    brc_error error;
    struct brc_pulled_shard *shards; /* a ring of them, in order                     */
    brc_group *group;
    size_t nshards, first, n; /* places; the first that is in use; how many are      */
    size_t held, largest;     /* bytes of those that are in use, and of one so far   */
    size_t next_part;         /* of the first                                        */
} brc_chunk_pull;

/* Caller's thread: 1 with the next chunk of m->grid, its bytes appended to `stored`; 0 at
 * the end, then and ever after. BRC_EINVAL if the source names what is outside the grid. */
BRC_MUST_USE int brc_chunk_pull_next(brc_chunk_pull *pull, uint64_t *index, brc_buf *stored, brc_error *err);
/* What it may hold of the pipe's budget. */
size_t brc_chunk_pull_held(const brc_chunk_pull *pull);
/* Waits for what is on the pool. */
void brc_chunk_pull_dispose(brc_chunk_pull *pull);

#endif
