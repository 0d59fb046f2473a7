#include "write_pipeline.h"

#include <stdlib.h>
#include <string.h>

#include "../base/alloc.h"
#include "../nd/shape.h"

#define JOB_BYTES ((size_t)256 << 10)
#define BATCH_BYTES ((size_t)32 << 20)
#define BATCH_ITEMS 2048
#define FIRST_ITEMS 32 /* of the first batches; later ones grow to BATCH_ITEMS */
/* A chunk that does not shrink by 3 % is stored as it is. */
#define WORTHWHILE(stored, len) ((stored) <= (len) - (len) / 100 * 3)

typedef struct write_run write_run;

/* A run of items of one batch, for one stage. */
typedef struct write_job {
    brc_job job; /* first: jobs are found by it */
    write_run *run;
    brc_write_item *items;
    size_t n;
    int encode; /* the second stage */
    int busy, rc;
    brc_error error;
} write_job;

typedef struct write_batch {
    brc_write_item *items;
    size_t n, cap;
    write_job *jobs; /* of the stage that runs; one a chunk at most */
    size_t njobs;
} write_batch;

struct write_run {
    const brc_write_ops *ops;
    brc_pipe *pipe;
    brc_group *group;
    size_t batch_items, job_items;
    int alone; /* there is one job: not worth waking another thread, it runs here */
    write_batch batches[2];
};

/* ---- on the pool -------------------------------- */

static int write_encode(brc_scratch *scratch, brc_write_item *item, brc_error *err)
{
    item->stored.len = 0;
    return brc_chain_encode(item->chain, scratch, (brc_span){item->data, item->len}, &item->stored,
                            err);
}

static int write_decode(brc_scratch *scratch, const brc_write_item *item, brc_buf *into,
                        brc_error *err)
{
    uint64_t len = brc_chain_decoded_len(item->chain);
    into->len = 0;
    if (len != BRC_LEN_VARIES)
        BRC_TRY(brc_buf_reserve(into, (size_t)len, err));
    return brc_chain_decode(item->chain, scratch, (brc_span){item->stored.data, item->stored.len},
                            into, err);
}

static int write_is_fill(const brc_write_ops *ops, const brc_write_item *item)
{
    uint64_t len;
    return item->chain != NULL && ops->fill.data != NULL &&
           brc_mul_u64(item->elements, ops->fill.len, &len) && len == item->len &&
           brc_all_equal(item->data, item->elements, ops->fill.len, ops->fill.data);
}

/* Makes canonical bytes of what next() gave encoded. */
static int write_take(brc_scratch *scratch, brc_write_item *item, brc_error *err)
{
    if (item->chain == NULL) {
        item->data = item->stored.data;
        item->len = item->stored.len;
        return BRC_OK;
    }
    BRC_TRY(write_decode(scratch, item, &item->own, err));
    item->data = item->own.data;
    item->len = item->own.len;
    return BRC_OK;
}

/* First stage: canonical bytes, fill test, hash. What a lossy chain gives back is
 * what the chunk is. */
static int write_hash(write_run *run, brc_scratch *scratch, brc_write_item *item, brc_error *err)
{
    const brc_write_ops *ops = run->ops;
    if (!ops->encoded)
        BRC_TRY(ops->gather(ops->ctx, item, scratch, err));
    int lossy = item->chain != NULL && brc_chain_is_lossy(item->chain);
    if (lossy && !ops->encoded)
        BRC_TRY(write_encode(scratch, item, err));
    if (lossy || ops->encoded)
        BRC_TRY(write_take(scratch, item, err));
    item->is_fill = write_is_fill(ops, item);
    if (item->is_fill)
        return BRC_OK;
    item->id = brc_hash_object(ops->hash, BRC_KIND_CHUNK, item->data, item->len);
    item->guard = brc_hash_guard(ops->secret, item->data, item->len);
    return BRC_OK;
}

static int write_read_back(write_run *run, unsigned worker, const brc_write_item *item,
                           brc_error *err)
{
    brc_pipe_worker *w = &run->pipe->workers[worker];
    int rc = write_decode(w->scratch, item, &w->chunk, err);
    if (rc == BRC_ENOMEM)
        return rc;
    if (rc == BRC_OK && w->chunk.len == item->len &&
        (item->len == 0 || memcmp(w->chunk.data, item->data, item->len) == 0))
        return BRC_OK;
    return brc_fail(err, BRC_EINTERNAL,
                    "the codecs do not give back what they encoded; nothing was stored");
}

/* Second stage: what is new is encoded. */
static int write_prepare(write_run *run, unsigned worker, brc_write_item *item, brc_error *err)
{
    brc_scratch *scratch = run->pipe->workers[worker].scratch;
    if (item->is_fill || item->is_known || item->twin != NULL)
        return BRC_OK;
    item->as_is = item->chain != NULL && brc_chain_is_identity(item->chain);
    if (!run->ops->encoded && !item->as_is) {
        int lossy = brc_chain_is_lossy(item->chain); /* then it is encoded already */
        if (!lossy)
            BRC_TRY(write_encode(scratch, item, err));
        item->as_is = !WORTHWHILE(item->stored.len, item->len);
        if (!item->as_is && !run->pipe->no_readback && !lossy)
            BRC_TRY(write_read_back(run, worker, item, err));
    }
    item->checksum = item->as_is ? brc_hash_stored(&item->id, 0, item->data, item->len)
                                 : brc_hash_stored(&item->id, item->digest, item->stored.data,
                                                   item->stored.len);
    return BRC_OK;
}

static void write_job_run(brc_job *base, unsigned worker)
{
    write_job *job = (write_job *)base;
    write_run *run = job->run;
    brc_scratch *scratch;
    job->rc = brc_pipe_scratch(run->pipe, worker, &scratch, &job->error);
    for (size_t i = 0; i < job->n && job->rc == BRC_OK; i++) {
        brc_write_item *item = &job->items[i];
        job->rc = brc_pipe_check(run->pipe, &job->error);
        if (job->rc == BRC_OK)
            job->rc = job->encode ? write_prepare(run, worker, item, &job->error)
                                  : write_hash(run, scratch, item, &job->error);
        if (job->rc < 0 && job->rc != BRC_EINTERRUPT && run->ops->name != NULL)
            run->ops->name(run->ops->ctx, item, &job->error);
    }
}

/* ---- on the caller's thread -------------------------------- */

static void batch_submit(write_run *run, write_batch *b, int encode)
{
    b->njobs = 0;
    for (size_t i = 0; i < b->n; i += run->job_items) {
        write_job *job = &b->jobs[b->njobs++];
        job->run = run;
        job->items = &b->items[i];
        job->n = b->n - i < run->job_items ? b->n - i : run->job_items;
        job->encode = encode;
        job->rc = BRC_OK;
        job->busy = !run->alone;
        job->job.run = write_job_run;
        if (run->alone)
            write_job_run(&job->job, brc_group_caller(run->group));
        else
            brc_group_submit(run->group, &job->job);
    }
}

static int write_job_wait(write_run *run, write_job *job, brc_error *err)
{
    if (job->busy)
        brc_group_wait(run->group, &job->job);
    job->busy = 0;
    if (job->rc < 0 && err != NULL)
        *err = job->error;
    return job->rc;
}

/* Room for four times as many items as before: a small request allocates little. */
static int batch_grow(write_run *run, write_batch *b, brc_error *err)
{
    void *items, *jobs;
    size_t cap = b->cap == 0 ? FIRST_ITEMS : 4 * b->cap;
    if (b->cap == run->batch_items)
        return BRC_OK;
    if (cap > run->batch_items)
        cap = run->batch_items;
    BRC_TRY(brc_new_array(&jobs, cap, sizeof(write_job), err));
    free(b->jobs);
    b->jobs = jobs;
    BRC_TRY(brc_new_array(&items, cap, sizeof(brc_write_item), err));
    if (b->cap > 0)
        memcpy(items, b->items, b->cap * sizeof(*b->items));
    free(b->items);
    b->items = items;
    b->cap = cap;
    return BRC_OK;
}

/* *more: 0 where the items have come to an end. */
static int batch_fill(write_run *run, write_batch *b, int *more, brc_error *err)
{
    b->n = 0;
    if (*more)
        BRC_TRY(batch_grow(run, b, err));
    while (*more && b->n < b->cap) {
        brc_write_item *item = &b->items[b->n];
        item->own.len = item->stored.len = 0;
        item->data = NULL;
        item->len = 0;
        item->is_fill = item->is_known = item->as_is = 0;
        item->twin = NULL;
        int rc = run->ops->next(run->ops->ctx, item, err);
        if (rc < 0)
            return rc;
        *more = rc;
        b->n += (size_t)rc;
    }
    return BRC_OK;
}

static int write_item_order(const void *a, const void *b)
{
    const brc_write_item *x = *(brc_write_item *const *)a, *y = *(brc_write_item *const *)b;
    int order = brc_oid_cmp(&x->id, &y->id);
    return order != 0 ? order : (x > y) - (x < y);
}

/* The rule that the store has for an object that is there already. */
static int same_content(const brc_write_item *a, const brc_write_item *b)
{
    if (a->len != b->len || a->guard != b->guard)
        return 0;
    return a->len == 0 || a->len > BRC_COMPARE_MAX || memcmp(a->data, b->data, a->len) == 0;
}

static int twins_collide(const write_run *run, const brc_write_item *item, brc_error *err)
{
    brc_fail(err, BRC_ECOLLISION,
             "another chunk with different content has the same hash: nothing was stored; such "
             "data, made to collide, needs a repository with a cryptographic hash");
    if (run->ops->name != NULL)
        run->ops->name(run->ops->ctx, item, err);
    return BRC_ECOLLISION;
}

/* Of equal contents in one batch the first is stored. */
static int batch_twins(const write_run *run, brc_write_item **sorted, size_t n, size_t *distinct,
                       brc_error *err)
{
    size_t kept = 0;
    for (size_t i = 0; i < n; i++) {
        if (kept > 0 && brc_oid_cmp(&sorted[kept - 1]->id, &sorted[i]->id) == 0) {
            sorted[i]->twin = sorted[kept - 1];
            if (!same_content(sorted[i], sorted[kept - 1]))
                return twins_collide(run, sorted[i], err);
        } else {
            sorted[kept++] = sorted[i];
        }
    }
    *distinct = kept;
    return BRC_OK;
}

static int batch_find(write_run *run, write_batch *b, brc_error *err)
{
    void *p;
    size_t n = 0;
    for (size_t i = 0; i < b->njobs; i++)
        BRC_TRY(write_job_wait(run, &b->jobs[i], err));
    BRC_TRY(brc_new_array(&p, b->n, sizeof(brc_write_item *), err));
    brc_write_item **sorted = p;
    for (size_t i = 0; i < b->n; i++)
        if (!b->items[i].is_fill)
            sorted[n++] = &b->items[i];
    qsort(sorted, n, sizeof(*sorted), write_item_order);
    int rc = batch_twins(run, sorted, n, &n, err);
    if (rc == BRC_OK && n > 0)
        rc = run->ops->find(run->ops->ctx, sorted, n, err);
    free(sorted);
    return rc;
}

static int batch_store(write_run *run, write_batch *b, brc_error *err)
{
    const brc_write_ops *ops = run->ops;
    for (size_t j = 0; j < b->njobs; j++) {
        write_job *job = &b->jobs[j];
        BRC_TRY(write_job_wait(run, job, err));
        for (size_t i = 0; i < job->n; i++) {
            brc_write_item *item = &job->items[i];
            if (!item->is_fill && !item->is_known && item->twin == NULL)
                BRC_TRY(ops->store(ops->ctx, item, err));
            BRC_TRY(ops->done(ops->ctx, item, err));
        }
    }
    b->n = b->njobs = 0;
    return BRC_OK;
}

static int write_all(write_run *run, brc_error *err)
{
    int more = 1;
    for (size_t k = 0;; k++) {
        write_batch *b = &run->batches[k % 2], *before = &run->batches[(k + 1) % 2];
        BRC_TRY(batch_fill(run, b, &more, err));
        run->alone = k == 0 && !more && b->n <= run->job_items;
        batch_submit(run, b, 0);
        BRC_TRY(batch_store(run, before, err));
        if (b->n == 0)
            return BRC_OK;
        BRC_TRY(batch_find(run, b, err));
        batch_submit(run, b, 1);
    }
}

static int write_setup(write_run *run, brc_error *err)
{
    size_t memory = run->pipe->memory;
    size_t len = run->ops->len > 0 ? run->ops->len : 1;
    /* Two batches, each chunk three times at most: gathered, encoded, read back. */
    size_t bytes = memory / 6 < BATCH_BYTES ? memory / 6 : BATCH_BYTES;
    run->batch_items = bytes / len < 1 ? 1 : bytes / len > BATCH_ITEMS ? BATCH_ITEMS : bytes / len;
    run->job_items = JOB_BYTES / len < 1 ? 1 : JOB_BYTES / len;
    return brc_group_new(&run->group, run->pipe->pool, err);
}

int brc_write_pipeline(brc_pipe *pipe, const brc_write_ops *ops, brc_error *err)
{
    write_run run = {.ops = ops, .pipe = pipe};
    int rc = write_setup(&run, err);
    if (rc == BRC_OK)
        rc = write_all(&run, err);
    brc_group_free(run.group); /* waits */
    for (int i = 0; i < 2; i++) {
        for (size_t j = 0; j < run.batches[i].cap; j++) {
            brc_buf_dispose(&run.batches[i].items[j].own);
            brc_buf_dispose(&run.batches[i].items[j].stored);
        }
        free(run.batches[i].items);
        free(run.batches[i].jobs);
    }
    return rc;
}
