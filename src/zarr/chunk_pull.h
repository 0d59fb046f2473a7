/* Stored chunks one after the other as a source gives them, those of a shard singly. */
#ifndef BRC_ZARR_CHUNK_PULL_H
#define BRC_ZARR_CHUNK_PULL_H

#include "shard.h"
#include "transfer.h"

typedef struct brc_chunk_pull {
    brc_array *a;      /* for messages, and for its worker's scratch                 */
    const brc_meta *m; /* what the source's chunks are: their grid, their shards     */
    const brc_chunk_source *source;
    int ended;
    /* its own */
    brc_buf shard; /* the one that is being handed on in parts */
    brc_shard_parts parts;
    size_t next_part;
} brc_chunk_pull;

/* Caller's thread: 1 with the next chunk of m->grid, its bytes appended to `stored`; 0 at
 * the end, then and ever after. BRC_EINVAL if the source names what is outside the grid. */
BRC_MUST_USE int brc_chunk_pull_next(brc_chunk_pull *pull, uint64_t *index, brc_buf *stored, brc_error *err);
void brc_chunk_pull_dispose(brc_chunk_pull *pull);

#endif
