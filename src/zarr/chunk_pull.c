#include "chunk_pull.h"

#include <stdlib.h>
#include <string.h>

static int pull_outer(brc_chunk_pull *p, uint64_t *index, brc_buf *stored, brc_error *err)
{
    if (p->ended)
        return 0;
    int rc = p->source->next(p->source->ctx, index, stored, err);
    p->ended = rc <= 0;
    for (int i = 0; rc > 0 && i < p->m->ndim; i++) {
        if (index[i] < p->m->outer.count[i])
            continue;
        rc = brc_fail(err, BRC_EINVAL, "it is outside the array");
        brc_array_name_chunk(p->a, index, err);
    }
    return rc;
}

static int pull_shard(brc_chunk_pull *p, brc_error *err)
{
    uint64_t outer[BRC_MAX_NDIM] = {0};
    brc_pipe *pipe = &p->a->session->repo->pipe;
    brc_scratch *scratch;
    p->shard.len = 0;
    int rc = pull_outer(p, outer, &p->shard, err);
    if (rc <= 0)
        return rc;
    BRC_TRY(brc_pipe_scratch(pipe, brc_pipe_caller(pipe), &scratch, err));
    rc = brc_shard_split(&p->parts, p->m, scratch, outer, (brc_span){p->shard.data, p->shard.len},
                         err);
    if (rc < 0) {
        brc_array_name_chunk(p->a, outer, err);
        return rc;
    }
    p->next_part = 0;
    return 1;
}

int brc_chunk_pull_next(brc_chunk_pull *p, uint64_t *index, brc_buf *stored, brc_error *err)
{
    if (p->m->nlevels == 0)
        return pull_outer(p, index, stored, err);
    while (p->next_part == p->parts.n) {
        int rc = pull_shard(p, err);
        if (rc <= 0)
            return rc;
    }
    const brc_shard_part *part = &((brc_shard_part *)p->parts.items)[p->next_part++];
    memcpy(index, part->index, (size_t)p->m->ndim * sizeof(*index));
    BRC_TRY(brc_buf_append(stored, part->bytes.data, part->bytes.len, err));
    return 1;
}

void brc_chunk_pull_dispose(brc_chunk_pull *p)
{
    brc_buf_dispose(&p->shard);
    free(p->parts.items);
}
