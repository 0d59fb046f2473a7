/* Writing, on the pool: makes and hashes the canonical bytes; encodes new chunks, reads them back
 * and puts them into backends that allow workers; compares known chunks with the stored ones. */
#include "write_work.h"

#include <string.h>

#include "../nd/shape.h"

/* ==== write work ================================ */

int brc_write_named(const brc_write_run *run, const brc_write_item *item, int rc, brc_error *err)
{
    if (rc < 0 && err != NULL && run->ops->name != NULL)
        run->ops->name(run->ops->ctx, item, err);
    return rc;
}

int brc_write_leave(const brc_write_run *run, brc_write_item *item, int rc, brc_error *why,
                    brc_error *err)
{
    const brc_write_ops *ops = run->ops;
    if (rc >= 0)
        return BRC_OK;
    item->stays = rc != BRC_ENOMEM && rc != BRC_EINTERRUPT && !brc_is_out_of_reach(why) &&
                  ops->leave != NULL && ops->leave(ops->ctx, item, why);
    if (item->stays)
        return BRC_OK;
    if (err != NULL)
        brc_error_copy(err, why);
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
    uint64_t len = brc_chain_describe(item->chain)->decoded_len;
    into->len = 0;
    if (len != BRC_LEN_VARIES)
        BRC_TRY(brc_buf_reserve(into, (size_t)len, err));
    return brc_chain_decode(item->chain, scratch, (brc_span){item->stored.data, item->stored.len},
                            NULL, into, err);
}

void brc_write_forget_old(brc_write_item *item)
{
    brc_bases_free(item->old_bases);
    brc_bases_free(item->base_of);
    item->old_bases = item->base_of = NULL;
    item->old_chain = NULL;
}

/* Notes the name of the place where the old object lies, for errors. */
static int write_note_place(brc_store *store, brc_write_item *item, brc_error *err)
{
    brc_store_backend *from;
    const char *name;
    if (item->lies != 0)
        return BRC_OK;
    item->place.len = 0;
    if (brc_is_in_file(item->old.backend))
        return BRC_OK;
    BRC_TRY(brc_backend_use(store, item->old.backend, &from, err));
    BRC_TRY(brc_object_place(from, &item->old, &name, err));
    return name != NULL ? brc_buf_append(&item->place, name, strlen(name) + 1, err) : BRC_OK;
}

static int write_verify_old(const brc_write_item *item, brc_error *err)
{
    const int is_known = item->lies == 0 && item->place.len > 0;
    const char *place = is_known ? (const char *)item->place.data : NULL;
    return brc_object_verify_in(&item->old, item->stored.data, place, err);
}

int brc_write_load_stored(brc_store *store, brc_write_item *item, const brc_ahead *ahead,
                          brc_error *err)
{
    BRC_TRY(write_note_place(store, item, err));
    const uint8_t *there = ahead != NULL ? brc_ahead_find(ahead, &item->old) : NULL;
    if (there == NULL)
        return brc_object_load(store, &item->old, &item->stored, err);
    item->stored.len = 0;
    return brc_buf_append(&item->stored, there, (size_t)item->old.stored, err);
}

int brc_write_fetch_old(brc_store *store, brc_write_item *item, const brc_ahead *ahead,
                        brc_error *err)
{
    brc_write_forget_old(item);
    if (!brc_object_is_delta(&item->old))
        BRC_TRY(brc_write_load_stored(store, item, ahead, err));
    if (brc_object_is_delta(&item->old)) /* the load may have found that it is one now */
        return brc_bases_load(store, &item->old, ahead, &item->old_bases, err);
    return brc_encoding_chain(store, item->old.encoding, &item->old_chain, err);
}

int brc_write_old(brc_write_item *item, brc_scratch *scratch, brc_buf *into, brc_error *err)
{
    if (item->old_bases != NULL)
        return brc_bases_decode(item->old_bases, scratch, into, err);
    brc_span stored = {item->stored.data, item->stored.len};
    BRC_TRY(write_verify_old(item, err));
    if (item->old_chain != NULL)
        return brc_chain_decode(item->old_chain, scratch, stored, NULL, into, err);
    return brc_buf_append(into, stored.data, stored.len, err);
}

static int write_is_fill(const brc_write_item *item)
{
    uint64_t len;
    return item->chain != NULL && item->fill.data != NULL &&
           brc_mul_u64(item->elements, item->fill.len, &len) && len == item->len &&
           brc_all_equal(item->data, item->elements, item->fill.len, item->fill.data);
}

/* Decodes item->stored into the canonical bytes. */
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

/* Checks the stored bytes of an object that is put elsewhere as it is. */
static int write_keep(brc_write_item *item, brc_error *err)
{
    BRC_TRY(write_verify_old(item, err));
    item->id = item->old.id;
    item->guard = item->old.guard;
    item->data = item->stored.data;
    item->len = item->stored.len;
    return BRC_OK;
}

/* Gathers the content of an object that is stored again. */
static int write_gather_old(const brc_write_run *run, brc_scratch *scratch, brc_write_item *item,
                            brc_error *err)
{
    brc_error why = BRC_ERROR_INIT;
    int rc = item->stays   ? BRC_OK
             : item->keeps ? write_keep(item, &why)
                           : run->ops->gather(run->ops->ctx, item, scratch, &why);
    return brc_write_leave(run, item, rc, &why, err);
}

/* Makes the canonical bytes of an item, and hashes them unless they are all fill. The canonical
 * bytes of a chunk with a lossy chain are those that the chain gives back. */
static int write_hash(brc_write_run *run, brc_scratch *scratch, brc_write_item *item,
                      brc_error *err)
{
    const brc_write_ops *ops = run->ops;
    const int is_encoded = brc_write_is_encoded(run, item);
    if (item->loads)
        BRC_TRY(ops->load(ops->ctx, item, err));
    if (ops->replace)
        BRC_TRY(write_gather_old(run, scratch, item, err));
    else if (!is_encoded)
        BRC_TRY(ops->gather(ops->ctx, item, scratch, err));
    if (item->is_piece || item->stays || item->keeps)
        return BRC_OK;
    int lossy = item->chain != NULL && brc_chain_is_lossy(item->chain);
    if (lossy && !is_encoded)
        BRC_TRY(write_encode(scratch, item, err));
    if (lossy || is_encoded)
        BRC_TRY(write_take(scratch, item, err));
    item->is_fill = write_is_fill(item);
    if (item->is_fill)
        return BRC_OK;
    item->id = brc_hash_object(brc_store_hash(run->store), BRC_KIND_CHUNK, item->data, item->len);
    item->guard = brc_hash_guard(brc_store_secret(run->store), item->data, item->len);
    return BRC_OK;
}

/* ---- second stage: new items are encoded -------------------------------- */

/* Decodes an item that was just encoded, and compares, before it is stored: compressors have
 * written bytes that they could not read. */
static int write_read_back(brc_write_run *run, unsigned worker, const brc_write_item *item,
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

int brc_write_compare(brc_write_run *run, unsigned worker, brc_write_item *item, brc_error *err)
{
    brc_pipe_worker *w = &run->pipe->workers[worker];
    w->chunk.len = 0;
    BRC_TRY(brc_write_old(item, w->scratch, &w->chunk, err));
    if (w->chunk.len == item->len &&
        (item->len == 0 || memcmp(w->chunk.data, item->data, item->len) == 0))
        return BRC_OK;
    return brc_object_collides(run->store, &item->id, err);
}

/* Encodes an item as a difference, and reads that back; if it saves too little, the object stays as
 * it is. */
static int write_make_delta(brc_write_run *run, unsigned worker, brc_write_item *item,
                            brc_error *err)
{
    brc_pipe_worker *w = &run->pipe->workers[worker];
    const brc_span content = {item->data, item->len};
    const size_t id_len = brc_store_id_len(run->store);
    w->kept.len = w->chunk.len = item->stored.len = 0;
    BRC_TRY(brc_bases_decode(item->base_of, w->scratch, &w->kept, err));
    const brc_span base = {w->kept.data, w->kept.len};
    BRC_TRY(brc_delta_make(w->scratch, &item->base, id_len, base, content, &item->stored, err));
    item->stays = !brc_delta_pays(item->stored.len, item->old.stored);
    if (item->stays)
        return BRC_OK;
    const brc_span frame = {item->stored.data + id_len, item->stored.len - id_len};
    BRC_TRY(brc_delta_decode(w->scratch, base, frame, item->len, &w->chunk, err));
    if (memcmp(w->chunk.data, item->data, item->len) == 0)
        return BRC_OK;
    return brc_fail(err, BRC_EINTERNAL,
                    "the difference does not give back what it was made of; nothing was stored");
}

/* A sample goes by the id, so that it depends on no order in which chunks are written. */
static int must_read_back(const brc_write_run *run, const brc_write_item *item)
{
    enum { SAMPLE = 16 };
    const int how = run->pipe->readback;
    return how == BRC_READBACK_ALL ||
           (how == BRC_READBACK_SAMPLED && item->id.bytes[0] % SAMPLE == 0);
}

/* Encodes an item and reads it back, or stores it as it is if that is hardly longer. is_encoded:
 * item->stored has the encoded chunk already. */
static int write_make(brc_write_run *run, unsigned worker, brc_write_item *item, int is_encoded,
                      brc_error *err)
{
    if (!is_encoded && !item->is_ahead)
        BRC_TRY(write_encode(run->pipe->workers[worker].scratch, item, err));
    item->is_ahead = 0;
    item->as_is = !brc_write_is_worthwhile(item->stored.len, item->len);
    return !item->as_is && !is_encoded && must_read_back(run, item)
               ? write_read_back(run, worker, item, err)
               : BRC_OK;
}

static void write_sum(brc_write_item *item)
{
    item->checksum = item->as_is ? brc_hash_stored(&item->id, 0, item->data, item->len)
                                 : brc_hash_stored(&item->id, item->digest, item->stored.data,
                                                   item->stored.len);
}

static int write_prepare(brc_write_run *run, unsigned worker, brc_write_item *item, brc_error *err)
{
    if (item->is_fill || item->is_piece || item->stays)
        return BRC_OK;
    item->checksum = item->old.checksum;
    if (item->keeps)
        return BRC_OK;
    if (item->is_known)
        return item->compares ? brc_write_compare(run, worker, item, err) : BRC_OK;
    if (item->base_of != NULL) {
        BRC_TRY(write_make_delta(run, worker, item, err));
        item->checksum =
            brc_hash_stored(&item->id, BRC_DELTA_DIGEST, item->stored.data, item->stored.len);
        return BRC_OK;
    }
    item->as_is = item->chain != NULL && brc_chain_is_identity(item->chain);
    if (!brc_write_is_encoded(run, item) && !item->as_is)
        BRC_TRY(write_make(run, worker, item, brc_chain_is_lossy(item->chain), err));
    item->stays = run->ops->replace && item->as_is && item->old.encoding == 0 &&
                  item->old.backend == item->backend;
    write_sum(item);
    return BRC_OK;
}

int brc_write_encode_anew(brc_write_run *run, brc_write_item *item, brc_error *err)
{
    brc_scratch *scratch;
    const unsigned worker = brc_pipe_caller(run->pipe);
    const int compared = item->compares; /* then item->stored has the old object's bytes */
    const int is_encoded = brc_write_is_encoded(run, item);
    item->compares = 0;
    if (compared) /* the bytes of the place are gone */
        item->lies = 0;
    item->old = (brc_object){.id = item->was};
    BRC_TRY(brc_pipe_scratch(run->pipe, worker, &scratch, err));
    item->as_is = item->chain != NULL && brc_chain_is_identity(item->chain);
    if (item->chain == NULL && compared) {
        item->stored.len = 0;
        BRC_TRY(brc_buf_append(&item->stored, item->data, item->len, err));
    } else if (item->chain != NULL && !item->as_is && (compared || !is_encoded)) {
        BRC_TRY(write_make(run, worker, item, !compared && brc_chain_is_lossy(item->chain), err));
    }
    write_sum(item);
    return BRC_OK;
}

int brc_write_work(brc_write_run *run, brc_write_item *item, int stage, unsigned worker,
                   brc_error *err)
{
    brc_scratch *scratch;
    BRC_TRY(brc_pipe_scratch(run->pipe, worker, &scratch, err));
    BRC_TRY(brc_pipe_check(run->pipe, err));
    int rc = stage == 0 ? write_hash(run, scratch, item, err)
                        : write_prepare(run, worker, item, err);
    return brc_write_named(run, item, rc, err);
}

/* Returns whether write_prepare() will encode the item. */
static int write_will_encode(const brc_write_run *run, const brc_write_item *item)
{
    return !item->is_fill && !item->is_piece && !item->stays && !item->keeps && !item->is_known &&
           item->base_of == NULL && item->chain != NULL && !brc_write_is_encoded(run, item) &&
           !brc_chain_is_identity(item->chain) && !brc_chain_is_lossy(item->chain);
}

/* Encodes the job's items of one chain together, from the i-th on, if that is worth anything. Where
 * a batch fails, its items are encoded one by one. */
static void write_encode_batch(brc_write_run *run, brc_write_job *job, size_t i, unsigned worker)
{
    brc_scratch *scratch;
    brc_span src[BRC_WRITE_ITEMS];
    brc_buf dst[BRC_WRITE_ITEMS];
    brc_write_item *items[BRC_WRITE_ITEMS];
    const brc_chain *chain = job->items[i].chain;
    size_t n = 0, failed;
    if (brc_pipe_scratch(run->pipe, worker, &scratch, NULL) < 0 ||
        !brc_chain_has_batches(chain, scratch, 1))
        return;
    for (; i < job->n && n < run->pipe->batch; i++) {
        brc_write_item *item = &job->items[i];
        if (item->chain != chain || item->is_ahead || !write_will_encode(run, item))
            continue;
        item->stored.len = 0;
        src[n] = (brc_span){item->data, item->len};
        dst[n] = item->stored;
        items[n++] = item;
    }
    const int rc =
        n > 1 ? brc_chain_encode_batch(chain, scratch, n, src, dst, &failed, NULL) : BRC_ENOTFOUND;
    for (size_t k = 0; k < n; k++) {
        items[k]->stored = dst[k];
        items[k]->is_ahead = rc == BRC_OK;
    }
}

int brc_write_run_job(void *ctx, brc_window_job *base, int stage, unsigned worker, brc_error *err)
{
    brc_write_run *run = ctx;
    brc_write_job *job = (brc_write_job *)base;
    for (size_t i = 0; i < job->n; i++) {
        if (stage == 1 && !job->items[i].is_ahead && write_will_encode(run, &job->items[i]))
            write_encode_batch(run, job, i, worker);
        BRC_TRY(brc_write_work(run, &job->items[i], stage, worker, err));
    }
    brc_pipe_trim(run->pipe, worker);
    return stage == 1 ? brc_write_put(job, BRC_PUT_ON_WORKER, err) : BRC_OK;
}

/* ==== write put ================================ */

/*
 * Writing: new chunks go into their backend before the transaction whose rows name them. So others
 * do not wait for a slow backend, and the bytes that a row names are durable. Only chunks that go
 * into the file itself are put within the transaction, and other chunks if a program has begun the
 * transaction.
 */

void brc_write_describe(const brc_write_item *item, brc_stored *out)
{
    brc_span stored = item->as_is ? (brc_span){item->data, item->len}
                                  : (brc_span){item->stored.data, item->stored.len};
    brc_stored_clear(out); /* an item that is done again was put before */
    *out = (brc_stored){.size = sizeof(*out),
                        .id = item->id,
                        .sum = item->checksum,
                        .len = stored.len,
                        .data = stored.len > 0 ? stored.data : (const uint8_t *)""};
}

/* Puts the new items from the i-th on that go to the same backend, all at once. */
static int write_put_with(brc_write_job *job, size_t i, brc_error *err)
{
    brc_stored *put[BRC_WRITE_ITEMS] = {NULL};
    size_t n = 0;
    brc_store_backend *into = job->into[i];
    for (; i < job->n; i++) {
        if (job->into[i] != into || !brc_write_is_new(&job->items[i]))
            continue;
        brc_write_item *item = &job->items[i];
        job->into[i] = NULL;
        brc_write_describe(item, &job->at[i]);
        if (item->lies != 0)
            BRC_TRY(brc_stored_put_at(&job->at[i], (const char *)item->place.data, item->offset,
                                      err));
        else
            put[n++] = &job->at[i];
    }
    return n > 0 ? brc_backend_put(into, n, put, err) : BRC_OK;
}

static int puts_now(const brc_store_backend *into, int who)
{
    if (who == BRC_PUT_INSIDE)
        return 1;
    return who == BRC_PUT_ON_WORKER ? brc_backend_on_workers(into) : !brc_backend_is_inline(into);
}

int brc_write_put(brc_write_job *job, int who, brc_error *err)
{
    for (size_t i = 0; i < job->n; i++)
        if (job->into[i] != NULL && brc_write_is_new(&job->items[i]) &&
            puts_now(job->into[i], who))
            BRC_TRY(write_put_with(job, i, err));
    return BRC_OK;
}

/* Makes the puts of a job durable. A second flush of the same backend costs nothing. */
static int write_flush_job(const brc_write_run *run, const brc_write_job *job, brc_error *err)
{
    brc_store_backend *into;
    for (size_t i = 0; i < job->n; i++) {
        const int64_t backend = brc_write_backend(&job->items[i]);
        if (brc_is_in_file(backend) || !brc_write_is_new(&job->items[i]))
            continue;
        BRC_TRY(brc_backend_use(run->store, backend, &into, err));
        BRC_TRY(brc_backend_flush_puts(into, err));
    }
    return BRC_OK;
}

int brc_write_let_others(const brc_write_run *run, brc_error *err)
{
    brc_store_pause_read(run->store);
    return run->outside ? brc_store_rest(run->store, run->is_slow, err) : BRC_OK;
}

int brc_write_put_outside(const brc_write_run *run, brc_window_job *const *jobs, size_t n,
                          brc_error *err)
{
    if (!run->outside)
        return BRC_OK;
    BRC_TRY(brc_write_let_others(run, err));
    for (size_t i = 0; i < n; i++)
        BRC_TRY(brc_write_put((brc_write_job *)jobs[i], BRC_PUT_OUTSIDE, err));
    for (size_t i = 0; i < n; i++)
        BRC_TRY(write_flush_job(run, (brc_write_job *)jobs[i], err));
    return BRC_OK;
}
