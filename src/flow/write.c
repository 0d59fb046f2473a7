#include "write.h"

#include <search.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "../base/alloc.h"
#include "../nd/shape.h"

#define JOBS_PER_THREAD 6
/* In a bulk write: what jobs hold that are stored in one transaction, decoded and encoded. */
#define BATCH_BYTES ((size_t)16 << 20)
/* Buffers up to this size are kept from one call to the next. */
#define KEPT_BYTES ((size_t)1 << 20)
/* A chunk that does not shrink by 3 % is stored as it is. */
#define WORTHWHILE(stored, len) ((stored) <= (len) - (len) / 100 * 3)

typedef struct write_job {
    brc_window_job base; /* first: jobs are found by it */
    size_t n;
    int64_t others; /* in a bulk write: what had been changed when it was settled */
    brc_write_item items[BRC_WRITE_ITEMS];
    brc_stored at[BRC_WRITE_ITEMS];          /* where what is new was put */
    brc_store_backend *into[BRC_WRITE_ITEMS]; /* NULL: it was put already  */
} write_job;

/* What is looked up together. */
typedef struct settling {
    brc_object *objects; /* cap of them, and behind them the two lists */
    brc_object **asked;
    brc_write_item **items;
    size_t n, cap;
} settling;

typedef struct write_run {
    const brc_write_ops *ops;
    brc_pipe *pipe;
    brc_store *store;
    size_t job_items;
    void *held; /* of tsearch(): items that are about to be stored, by id */
    settling settling;
} write_run;

static int write_named(const write_run *run, const brc_write_item *item, int rc, brc_error *err)
{
    if (rc < 0 && err != NULL && run->ops->name != NULL)
        run->ops->name(run->ops->ctx, item, err);
    return rc;
}

/* ---- first stage: canonical bytes, fill test, hash -------------------------------- */

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

int brc_write_old(brc_write_item *item, brc_scratch *scratch, brc_buf *into, brc_error *err)
{
    brc_span stored = {item->stored.data, item->stored.len};
    BRC_TRY(brc_object_verify(&item->old, stored.data, err));
    if (item->old_chain != NULL)
        return brc_chain_decode(item->old_chain, scratch, stored, into, err);
    return brc_buf_append(into, stored.data, stored.len, err);
}

static int write_is_fill(const brc_write_item *item)
{
    uint64_t len;
    return item->chain != NULL && item->fill.data != NULL &&
           brc_mul_u64(item->elements, item->fill.len, &len) && len == item->len &&
           brc_all_equal(item->data, item->elements, item->fill.len, item->fill.data);
}

/* Makes canonical bytes of what came, or was made, encoded. */
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

/* What a lossy chain gives back is what the chunk is. */
static int write_hash(write_run *run, brc_scratch *scratch, brc_write_item *item, brc_error *err)
{
    const brc_write_ops *ops = run->ops;
    if (!ops->encoded)
        BRC_TRY(ops->gather(ops->ctx, item, scratch, err));
    if (item->is_piece)
        return BRC_OK;
    int lossy = item->chain != NULL && brc_chain_is_lossy(item->chain);
    if (lossy && !ops->encoded)
        BRC_TRY(write_encode(scratch, item, err));
    if (lossy || ops->encoded)
        BRC_TRY(write_take(scratch, item, err));
    item->is_fill = write_is_fill(item);
    if (item->is_fill)
        return BRC_OK;
    item->id = brc_hash_object(brc_store_hash(run->store), BRC_KIND_CHUNK, item->data, item->len);
    item->guard = brc_hash_guard(brc_store_secret(run->store), item->data, item->len);
    return BRC_OK;
}

/* ---- second stage: what is new is encoded -------------------------------- */

/* What was just encoded is decoded again before it is stored: compressors have written
 * bytes that they could not read. */
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

/* The content that is there under this id, whose stored bytes were fetched. */
static int write_compare(write_run *run, unsigned worker, brc_write_item *item, brc_error *err)
{
    brc_pipe_worker *w = &run->pipe->workers[worker];
    w->chunk.len = 0;
    BRC_TRY(brc_write_old(item, w->scratch, &w->chunk, err));
    if (w->chunk.len == item->len &&
        (item->len == 0 || memcmp(w->chunk.data, item->data, item->len) == 0))
        return BRC_OK;
    return brc_object_collides(run->store, &item->id, err);
}

static int write_prepare(write_run *run, unsigned worker, brc_write_item *item, brc_error *err)
{
    brc_scratch *scratch = run->pipe->workers[worker].scratch;
    if (item->is_fill || item->is_piece)
        return BRC_OK;
    if (item->is_known)
        return item->compares ? write_compare(run, worker, item, err) : BRC_OK;
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

static int is_new(const brc_write_item *item)
{
    return !item->is_piece && !item->is_fill && !item->is_known;
}

static void describe_stored(const brc_write_item *item, brc_stored *out)
{
    brc_span stored = item->as_is ? (brc_span){item->data, item->len}
                                  : (brc_span){item->stored.data, item->stored.len};
    *out = (brc_stored){.size = sizeof(*out),
                        .id = item->id,
                        .sum = item->checksum,
                        .len = stored.len,
                        .data = stored.len > 0 ? stored.data : (const uint8_t *)""};
}

/* The new items from the i-th on that go to the same backend, all at once. */
static int write_put_with(write_job *job, size_t i, brc_error *err)
{
    brc_stored *put[BRC_WRITE_ITEMS] = {NULL};
    size_t n = 0;
    brc_store_backend *into = job->into[i];
    for (; i < job->n; i++) {
        if (job->into[i] != into || !is_new(&job->items[i]))
            continue;
        job->into[i] = NULL;
        describe_stored(&job->items[i], &job->at[i]);
        put[n++] = &job->at[i];
    }
    return brc_backend_put(into, n, put, err);
}

/* What is new goes into its backend, which says whether a worker may put it there. Rows that name
 * it follow in write_store(). */
static int write_put(write_job *job, int on_worker, brc_error *err)
{
    for (size_t i = 0; i < job->n; i++)
        if (job->into[i] != NULL && is_new(&job->items[i]) &&
            brc_backend_on_workers(job->into[i]) == on_worker)
            BRC_TRY(write_put_with(job, i, err));
    return BRC_OK;
}

static int write_run_job(void *ctx, brc_window_job *base, int stage, unsigned worker,
                         brc_error *err)
{
    write_run *run = ctx;
    write_job *job = (write_job *)base;
    brc_scratch *scratch;
    BRC_TRY(brc_pipe_scratch(run->pipe, worker, &scratch, err));
    for (size_t i = 0; i < job->n; i++) {
        brc_write_item *item = &job->items[i];
        BRC_TRY(brc_pipe_check(run->pipe, err));
        int rc = stage == 0 ? write_hash(run, scratch, item, err)
                            : write_prepare(run, worker, item, err);
        if (rc < 0)
            return write_named(run, item, rc, err);
    }
    brc_pipe_trim(run->pipe, worker);
    return stage == 1 ? write_put(job, 1, err) : BRC_OK;
}

/* ---- filling -------------------------------- */

static int write_load_old(write_run *run, brc_write_item *item, brc_error *err)
{
    const brc_object *o = &item->old;
    if (!o->found)
        return brc_object_missing(&o->id, err);
    BRC_TRY(brc_object_load(run->store, &item->old, &item->stored, err));
    BRC_TRY(brc_encoding_chain(run->store, o->encoding, &item->old_chain, err));
    if (o->encoding != 0 && item->old_chain == NULL)
        return brc_fail(err, BRC_EUNSUPPORTED,
                        "it was stored by a build that could not decode it: import it again");
    return BRC_OK;
}

static int write_place_order(const void *x, const void *y)
{
    const brc_write_item *a = *(brc_write_item *const *)x, *b = *(brc_write_item *const *)y;
    return brc_object_place_order(&a->old, &b->old);
}

/* Looked up together, and fetched in the order in which they are stored. */
static int write_load_olds(write_run *run, write_job *job, brc_error *err)
{
    brc_object *asked[BRC_WRITE_ITEMS];
    brc_write_item *olds[BRC_WRITE_ITEMS];
    size_t nasked = 0, n = 0;
    for (size_t i = 0; i < job->n; i++) {
        if (brc_oid_is_zero(&job->items[i].old.id))
            continue;
        olds[n++] = &job->items[i];
        if (!job->items[i].old.found)
            asked[nasked++] = &job->items[i].old;
    }
    if (nasked > 0)
        BRC_TRY(brc_objects_find(run->store, asked, nasked, err));
    if (n > 1)
        qsort(olds, n, sizeof(*olds), write_place_order);
    for (size_t i = 0; i < n; i++) {
        int rc = write_load_old(run, olds[i], err);
        if (rc < 0)
            return write_named(run, olds[i], rc, err);
    }
    return BRC_OK;
}

/* Forgets what the item was before, but not its memory. */
static void write_clear(brc_write_item *item)
{
    brc_buf stored = item->stored, own = item->own;
    memset(item, 0, offsetof(brc_write_item, index));
    item->stored = stored;
    item->own = own;
    item->stored.len = item->own.len = 0;
}

/* What a job holds, as far as can be said when it is filled: each chunk is gathered and
 * encoded. */
static size_t write_job_bytes(const write_run *run, const write_job *job)
{
    size_t held = 0, guess = 0;
    for (size_t i = 0; i < job->n; i++) {
        const brc_write_item *item = &job->items[i];
        held += item->stored.cap + item->own.cap;
        guess += item->is_piece ? item->stored.cap + item->len
                                : 2 * (item->len > 0 ? item->len : run->ops->len);
    }
    return held > guess ? held : guess;
}

static int write_fill_job(void *ctx, brc_window_job *base, brc_error *err)
{
    write_run *run = ctx;
    write_job *job = (write_job *)base;
    BRC_TRY(brc_store_rest(run->store, 0, err)); /* the caller's source may wait */
    for (size_t i = 0; i < run->job_items; i++)
        write_clear(&job->items[i]);
    int rc = run->ops->list(run->ops->ctx, job->items, run->job_items, &job->n, err);
    if (rc != BRC_OK)
        return rc;
    BRC_TRY(write_load_olds(run, job, err));
    for (size_t i = 0; i < job->n; i++)
        BRC_TRY(brc_backend_use(run->store, job->items[i].backend, &job->into[i], err));
    base->bytes = write_job_bytes(run, job);
    return job->n > 0;
}

/* ---- settling: what is there already -------------------------------- */

static int write_id_order(const void *a, const void *b)
{
    return brc_oid_cmp(&((const brc_write_item *)a)->id, &((const brc_write_item *)b)->id);
}

/* Two chunks of this call have the same hash: have they the same content? */
static int write_twin(const brc_write_item *first, brc_write_item *item,
                      brc_error *err)
{
    item->is_known = 1;
    if (first->len == item->len && first->guard == item->guard &&
        (item->len > BRC_COMPARE_MAX || item->len == 0 ||
         memcmp(first->data, item->data, item->len) == 0))
        return BRC_OK;
    return brc_fail(err, BRC_ECOLLISION,
                    "another chunk with different content has the same hash: nothing was stored; "
                    "such data, made to collide, needs a repository with a cryptographic hash");
}

/* Items that are about to be stored are held by id, until they are: of equal contents the
 * first is stored. */
static int write_hold(write_run *run, brc_write_item *item, brc_error *err)
{
    brc_write_item **slot = tsearch(item, &run->held, write_id_order);
    if (slot == NULL)
        return brc_nomem(err);
    item->is_held = *slot == item;
    return item->is_held ? BRC_OK : write_twin(*slot, item, err);
}

static void write_let_go(write_run *run, brc_write_item *item)
{
    if (item->is_held)
        tdelete(item, &run->held, write_id_order);
    item->is_held = 0;
}

/* The store has the id: the content must be the same. Small ones, which can be made to have one
 * hash and one guard, are compared byte by byte, on the pool: `old` is what is there. */
static int write_known(write_run *run, brc_write_item *item, const brc_object *there,
                       brc_error *err)
{
    item->is_known = 1;
    write_let_go(run, item);
    if (there->size != item->len || there->guard != item->guard)
        return brc_object_collides(run->store, &item->id, err);
    if (item->len > BRC_COMPARE_MAX)
        return BRC_OK;
    if (item->chain == NULL) { /* what came is what it is */
        brc_buf own = item->own;
        item->own = item->stored;
        item->stored = own;
        item->data = item->own.data;
    }
    item->old = *there;
    item->compares = 1;
    BRC_TRY(brc_object_load(run->store, &item->old, &item->stored, err));
    return brc_encoding_chain(run->store, item->old.encoding, &item->old_chain, err);
}

static int write_settle_item(write_run *run, brc_write_item *item, settling *s, brc_error *err)
{
    if (item->is_piece)
        return run->ops->done(run->ops->ctx, item, err);
    if (item->is_fill)
        return BRC_OK;
    if (run->ops->replace)
        return brc_oid_cmp(&item->id, &item->old.id) == 0
                   ? BRC_OK
                   : brc_fail(err, BRC_ECORRUPT,
                              "its content has another hash; run 'breccia fsck'");
    BRC_TRY(write_hold(run, item, err));
    if (!item->is_held)
        return BRC_OK;
    s->objects[s->n] = (brc_object){.id = item->id};
    s->asked[s->n] = &s->objects[s->n];
    s->items[s->n++] = item;
    return BRC_OK;
}

/* Room to look up the items of n jobs at once. */
static int write_settling(write_run *run, size_t n, brc_error *err)
{
    void *p;
    settling *s = &run->settling;
    s->n = 0;
    if (n * BRC_WRITE_ITEMS <= s->cap)
        return BRC_OK;
    BRC_TRY(brc_new_array(&p, n * BRC_WRITE_ITEMS,
                          sizeof(brc_object) + sizeof(brc_object *) + sizeof(brc_write_item *),
                          err));
    free(s->objects);
    s->cap = n * BRC_WRITE_ITEMS;
    s->objects = p;
    s->asked = (brc_object **)(s->objects + s->cap);
    s->items = (brc_write_item **)(s->asked + s->cap);
    return BRC_OK;
}

static int write_settle(void *ctx, brc_window_job *const *jobs, size_t n, brc_error *err)
{
    write_run *run = ctx;
    settling *s = &run->settling;
    int64_t others = 0;
    BRC_TRY(write_settling(run, n, err));
    if (brc_store_in_bulk(run->store))
        BRC_TRY(brc_store_others(run->store, &others, err));
    for (size_t i = 0; i < n; i++) {
        write_job *job = (write_job *)jobs[i];
        job->others = others;
        job->base.is_over = 1;
        for (size_t j = 0; j < job->n; j++) {
            int rc = write_settle_item(run, &job->items[j], s, err);
            if (rc < 0)
                return write_named(run, &job->items[j], rc, err);
            job->base.is_over &= job->items[j].is_piece;
        }
    }
    BRC_TRY(brc_objects_find(run->store, s->asked, s->n, err));
    for (size_t i = 0; i < s->n; i++) {
        int rc = s->objects[i].found ? write_known(run, s->items[i], &s->objects[i], err) : BRC_OK;
        if (rc < 0)
            return write_named(run, s->items[i], rc, err);
    }
    return BRC_OK;
}

/* ---- storing -------------------------------- */

static int write_store(write_run *run, const brc_write_item *item, const brc_stored *at,
                       brc_error *err)
{
    brc_object o = run->ops->replace ? item->old
                                     : (brc_object){.id = item->id,
                                                    .kind = BRC_KIND_CHUNK,
                                                    .size = item->len,
                                                    .guard = item->guard};
    o.encoding = item->as_is ? 0 : item->encoding;
    o.backend = item->backend;
    o.stored = at->len;
    o.checksum = item->checksum;
    return run->ops->replace ? brc_object_replace(run->store, &o, at, err)
                             : brc_object_record(run->store, &o, at, err);
}

/* In a bulk write others may have stored the same since it was looked up. */
static int write_again(write_run *run, brc_write_item *item, brc_error *err)
{
    brc_object there = {.id = item->id}, *one = &there;
    BRC_TRY(brc_objects_find(run->store, &one, 1, err));
    if (!there.found)
        return BRC_OK;
    BRC_TRY(write_known(run, item, &there, err));
    return item->compares ? write_compare(run, brc_pipe_caller(run->pipe), item, err) : BRC_OK;
}

/* Before the first item of a job is stored, in the transaction that stores it. */
static int write_begin_job(write_run *run, const write_job *job, int *again, brc_error *err)
{
    int64_t others;
    *again = 0;
    if (!brc_store_in_bulk(run->store))
        return BRC_OK;
    BRC_TRY(brc_store_wake(run->store, err));
    BRC_TRY(brc_store_others(run->store, &others, err));
    *again = others != job->others;
    return BRC_OK;
}

static int write_finish_job(void *ctx, brc_window_job *base, brc_error *err)
{
    write_run *run = ctx;
    write_job *job = (write_job *)base;
    int again;
    BRC_TRY(write_begin_job(run, job, &again, err));
    for (size_t i = 0; again && i < job->n; i++) {
        brc_write_item *item = &job->items[i];
        int rc = is_new(item) && !run->ops->replace ? write_again(run, item, err) : BRC_OK;
        if (rc < 0)
            return write_named(run, item, rc, err);
    }
    BRC_TRY(write_put(job, 0, err));
    for (size_t i = 0; i < job->n; i++) {
        brc_write_item *item = &job->items[i];
        if (item->is_piece)
            continue;
        if (is_new(item))
            BRC_TRY(write_store(run, item, &job->at[i], err));
        write_let_go(run, item);
        if (run->ops->done != NULL)
            BRC_TRY(run->ops->done(run->ops->ctx, item, err));
    }
    return BRC_OK;
}

/* ---- the flow -------------------------------- */

static void write_job_dispose(brc_window_job *base)
{
    write_job *job = (write_job *)base;
    for (size_t i = 0; i < BRC_WRITE_ITEMS; i++) {
        brc_buf_dispose(&job->items[i].stored);
        brc_buf_dispose(&job->items[i].own);
    }
}

/* Large buffers go: what one call needed, the next may not. */
static void write_trim(brc_window *w)
{
    for (size_t i = 0; i < w->n; i++) {
        write_job *job = (write_job *)w->jobs[i];
        for (size_t j = 0; j < BRC_WRITE_ITEMS; j++) {
            if (job->items[j].stored.cap > KEPT_BYTES)
                brc_buf_dispose(&job->items[j].stored);
            if (job->items[j].own.cap > KEPT_BYTES)
                brc_buf_dispose(&job->items[j].own);
        }
    }
}

static void keep_item(void *item)
{
    (void)item; /* it belongs to its job */
}

static int write_rest(void *ctx, int now, brc_error *err)
{
    return brc_store_rest(((write_run *)ctx)->store, now, err);
}

int brc_flow_write(brc_pipe *pipe, brc_store *store, const brc_write_ops *ops, brc_error *err)
{
    write_run run = {.ops = ops, .pipe = pipe, .store = store};
    size_t items = ops->len > 0 ? BRC_WRITE_BYTES / ops->len : BRC_WRITE_ITEMS;
    brc_window_ops window = {.ctx = &run, .fill = write_fill_job, .run = write_run_job,
                             .settle = write_settle, .finish = write_finish_job};
    if (brc_store_in_bulk(store)) {
        window.batch = BATCH_BYTES;
        window.rest = write_rest;
    }
    if (items > BRC_WRITE_ITEMS)
        items = BRC_WRITE_ITEMS;
    run.job_items = items < 1 ? 1 : items;
    BRC_TRY(brc_pipe_window(pipe, &pipe->writing, JOBS_PER_THREAD, sizeof(write_job),
                            write_job_dispose, err));
    size_t memory = pipe->memory > ops->held ? pipe->memory - ops->held : 0;
    int rc = brc_window_run(&pipe->writing, pipe->pool, memory, &window, err);
    tdestroy(run.held, keep_item);
    free(run.settling.objects);
    write_trim(&pipe->writing);
    return rc;
}
