#include "chunk_pull.h"

#include <stdlib.h>
#include <string.h>

#include "../base/alloc.h"

#define SHARDS_PER_THREAD 2
/* Of the pipe's budget, for what is read ahead. */
#define PART_OF_BUDGET 8

typedef struct brc_pulled_shard {
    brc_job job;
    const brc_chunk_pull *pull;
    uint64_t index[BRC_MAX_NDIM];
    brc_buf bytes;
    brc_shard_parts parts;
    int rc;
    brc_error error;
} pulled_shard;

static brc_pipe *pull_pipe(const brc_chunk_pull *p)
{
    return &p->a->session->repo->pipe;
}

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

/* ---- shards -------------------------------- */

static void shard_split_job(brc_job *job, unsigned worker)
{
    pulled_shard *s = (pulled_shard *)(void *)job; /* its first member */
    brc_scratch *scratch;
    const brc_span bytes = {s->bytes.data, s->bytes.len};
    s->rc = brc_pipe_scratch(pull_pipe(s->pull), worker, &scratch, &s->error);
    if (s->rc == BRC_OK)
        s->rc = brc_shard_split(&s->parts, s->pull->m, scratch, s->index, bytes, &s->error);
}

static int pull_start(brc_chunk_pull *p, brc_error *err)
{
    void *shards;
    const size_t n = SHARDS_PER_THREAD * (size_t)pull_pipe(p)->nworkers;
    BRC_TRY(brc_group_new(&p->group, pull_pipe(p)->pool, err));
    BRC_TRY(brc_new_array(&shards, n, sizeof(pulled_shard), err));
    p->shards = shards;
    p->nshards = n;
    return BRC_OK;
}

/* Reads ahead as far as there is room; a failure waits for what came before it. */
static void pull_ahead(brc_chunk_pull *p)
{
    const size_t most = brc_chunk_pull_held(p);
    while (!p->ended && p->n < p->nshards && (p->n == 0 || p->held + p->largest <= most)) {
        pulled_shard *s = &p->shards[(p->first + p->n) % p->nshards];
        s->bytes.len = 0;
        s->pull = p;
        int rc = pull_outer(p, s->index, &s->bytes, &p->error);
        if (rc <= 0) {
            p->ended = 1;
            p->rc = rc;
            return;
        }
        p->n++;
        p->held += s->bytes.cap;
        p->largest = s->bytes.cap > p->largest ? s->bytes.cap : p->largest;
        s->job.run = shard_split_job;
        brc_group_submit(p->group, &s->job);
    }
}

/* The first shard is through. */
static void pull_release(brc_chunk_pull *p)
{
    pulled_shard *s = &p->shards[p->first];
    p->held -= s->bytes.cap;
    brc_pipe_trim_buf(pull_pipe(p), &s->bytes, PART_OF_BUDGET * p->nshards);
    p->first = (p->first + 1) % p->nshards;
    p->n--;
    p->next_part = 0;
}

/* 1 with a part of the first shard. */
static int pull_part(brc_chunk_pull *p, const brc_shard_part **out, brc_error *err)
{
    const pulled_shard *s = &p->shards[p->first];
    if (p->next_part == 0)
        brc_group_wait(p->group, &p->shards[p->first].job);
    if (s->rc < 0) {
        if (err != NULL)
            brc_error_copy(err, &s->error);
        brc_array_name_chunk(p->a, s->index, err);
        return s->rc;
    }
    if (p->next_part == s->parts.n)
        return 0;
    *out = &((const brc_shard_part *)s->parts.items)[p->next_part++];
    return 1;
}

static int pull_next_part(brc_chunk_pull *p, const brc_shard_part **out, brc_error *err)
{
    if (p->shards == NULL)
        BRC_TRY(pull_start(p, err));
    for (;;) {
        pull_ahead(p);
        if (p->n == 0) {
            if (p->rc < 0 && err != NULL)
                brc_error_copy(err, &p->error);
            return p->rc;
        }
        int rc = pull_part(p, out, err);
        if (rc != 0)
            return rc;
        pull_release(p);
    }
}

/* ---- both -------------------------------- */

int brc_chunk_pull_next(brc_chunk_pull *p, uint64_t *index, brc_buf *stored, brc_error *err)
{
    const brc_shard_part *part = NULL;
    if (p->m->nlevels == 0)
        return pull_outer(p, index, stored, err);
    do { /* what lies beyond the array says nothing */
        int rc = pull_next_part(p, &part, err);
        if (rc <= 0)
            return rc;
    } while (!brc_grid_has(&p->m->grid, part->index));
    memcpy(index, part->index, (size_t)p->m->ndim * sizeof(*index));
    BRC_TRY(brc_buf_append(stored, part->bytes.data, part->bytes.len, err));
    return 1;
}

size_t brc_chunk_pull_held(const brc_chunk_pull *p)
{
    return p->m->nlevels > 0 ? pull_pipe(p)->memory / PART_OF_BUDGET : 0;
}

void brc_chunk_pull_dispose(brc_chunk_pull *p)
{
    brc_group_free(p->group);
    for (size_t i = 0; i < p->nshards; i++) {
        brc_buf_dispose(&p->shards[i].bytes);
        free(p->shards[i].parts.items);
    }
    free(p->shards);
}
