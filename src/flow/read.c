#include "read.h"

#include <stdlib.h>
#include <string.h>

#include "../base/alloc.h"
#include "../store/bases.h"
#include "../store/direct.h"

/* A job carries so many items, or items of so many decoded bytes, and one more where the last item
 * needs the next one. */
#define JOB_ITEMS 63
#define JOB_BYTES ((size_t)256 << 10)
/* The same where each call of a backend takes a while: one call fetches a job's items, and the
 * backend asks for many of them at once. Items that are taken together have as many bytes. */
#define FAR_JOB_ITEMS 511
#define FAR_JOB_BYTES ((size_t)8 << 20)
#define MOST_ITEMS (FAR_JOB_ITEMS + 1)
#define JOBS_PER_THREAD 4
/* Items that are looked up together at most; the number grows as the request goes on. */
#define LIST_MOST 4096

/* Items that have been looked up and not been put into a job. */
typedef struct brc_read_list {
    size_t cap, n, at;
    brc_read_item *items;  /* cap items, in the memory behind this structure       */
    brc_read_item **order; /* the items in the order of fetching                   */
    brc_object **asked;
} read_list;

/* The flow's notes of an item in a job. */
typedef struct read_slot {
    brc_buf result;
    brc_stored asked;
    const brc_store_backend *from;  /* NULL: fetched already, or failed             */
    const brc_store_backend *keeps; /* the item goes into the cache of this backend */
    size_t place_at;                /* offset of the place's name in `places`; SIZE_MAX: none */
    brc_read_item listed;           /* an item that a worker fetches, as before open()       */
    brc_spot spot;                  /* where the item lies in the file that a worker reads   */
    int has_spot;
} read_slot;

typedef struct read_job {
    brc_window_job base; /* first, because the window casts to and from it */
    size_t n;
    /* The arrays grow while the job is filled, because most jobs have few items. */
    brc_read_item *items;
    read_slot *slots;
    size_t items_cap, slots_cap;
    size_t nslots; /* slots that were ever used: they have memory */
    brc_buf stored;
    brc_buf places;    /* the names of the items' places                    */
    size_t spot_bytes; /* of these items that are not read in place         */
    int misses;        /* some items were not where their row said          */
} read_job;

typedef struct read_run {
    const brc_read_ops *ops;
    brc_pipe *pipe;
    brc_store *store;
    size_t ask; /* how many list() may give next */
    int ended;  /* list() has no more items */
    brc_ahead ahead; /* of differences that come next */
    int verifies; /* decoded chunks are hashed and compared with their id */
    uint64_t good, bad; /* objects that workers found in their spots, or did not: atomic */
} read_run;

/* ---- failures -------------------------------- */

/* Returns whether an error concerns one object alone, so that the others can be read. */
static int is_of_one_item(int rc)
{
    return rc == BRC_ECORRUPT || rc == BRC_EUNSUPPORTED || rc == BRC_EINVAL || rc == BRC_ELIMIT ||
           rc == BRC_ESTALE;
}

static void name_item(const read_run *run, const brc_read_item *item, brc_error *err)
{
    if (run->ops->name != NULL && err != NULL)
        run->ops->name(run->ops->ctx, item, err);
}

/* Keeps an error with its item if the flow goes on without the item; otherwise hands the error
 * back. */
static int read_item_failed(const read_run *run, brc_read_item *item, int rc, brc_error *found,
                            brc_error *err)
{
    void *p;
    name_item(run, item, found);
    if (run->ops->failed == NULL || !is_of_one_item(rc)) {
        if (err != NULL)
            brc_error_copy(err, found);
        return rc;
    }
    BRC_TRY(brc_new(&p, sizeof(brc_error), err));
    item->why = p;
    *item->why = *found;
    item->rc = rc;
    return BRC_OK;
}

/* ---- fetching -------------------------------- */

/* Returns whether an item's stored bytes are fetched straight into its destination. */
static int read_in_place(const brc_read_item *item)
{
    return item->chain == NULL && item->direct != NULL;
}

/* Notes the name of the i-th item's place; it is usually that of the previous item. */
static int read_ask_place(read_job *job, size_t i, brc_store_backend *from, brc_error *err)
{
    const char *name;
    const brc_object *o = &job->items[i].object, *last = &job->items[i > 0 ? i - 1 : 0].object;
    job->slots[i].place_at = SIZE_MAX;
    BRC_TRY(brc_object_place(from, o, &name, err));
    if (name == NULL)
        return BRC_OK;
    if (i > 0 && job->slots[i - 1].from == from && last->place == o->place) {
        job->slots[i].place_at = job->slots[i - 1].place_at;
        return BRC_OK;
    }
    const size_t at = job->places.len;
    BRC_TRY(brc_buf_append(&job->places, name, strlen(name) + 1, err));
    job->slots[i].place_at = at;
    return BRC_OK;
}

static const char *place_of_item(const read_job *job, size_t i)
{
    const size_t at = job->slots[i].place_at;
    return at != SIZE_MAX ? (const char *)job->places.data + at : NULL;
}

/* Returns where an item's stored bytes go. */
static uint8_t *read_into(const read_job *job, const brc_read_item *item)
{
    return read_in_place(item) ? item->direct : job->stored.data + item->offset;
}

/* Makes room for the i-th item's stored bytes, to be fetched with others. */
static int read_ask(read_run *run, read_job *job, size_t i, brc_error *err)
{
    brc_store_backend *from;
    brc_read_item *item = &job->items[i];
    read_slot *slot = &job->slots[i];
    const size_t len = (size_t)item->object.stored;
    BRC_TRY(brc_backend_use(run->store, item->object.backend, &from, err));
    brc_object_ask(&item->object, &slot->asked);
    BRC_TRY(read_ask_place(job, i, from, err));
    if (!read_in_place(item)) {
        BRC_TRY(brc_buf_reserve(&job->stored, len + 1, err));
        item->offset = job->stored.len;
        job->stored.len += len;
    }
    uint8_t *into = read_into(job, item);
    if (brc_store_cached(run->store, from, &item->object, into))
        return BRC_OK;
    slot->from = from;
    slot->keeps = brc_store_caches(run->store, from) ? from : NULL;
    return BRC_OK;
}

/* Fetches alone one of several items whose fetch together failed. */
static int read_again(const read_run *run, read_job *job, size_t i, const brc_store_backend *from,
                      brc_error *err)
{
    brc_error found = BRC_ERROR_INIT;
    brc_stored *one = &job->slots[i].asked;
    int rc = brc_backend_fetch(from, 1, &one, &found);
    if (rc == BRC_ESTALE) {
        job->items[i].rc = rc; /* read_find_again() looks the item up again */
        job->misses = 1;
        return BRC_OK;
    }
    return rc < 0 ? read_item_failed(run, &job->items[i], rc, &found, err) : BRC_OK;
}

/* Fetches the items from the i-th on that lie in the same backend, all at once. */
static int read_fetch_with(const read_run *run, read_job *job, size_t i, brc_error *err)
{
    brc_stored *asked[MOST_ITEMS] = {NULL};
    size_t n = 0, which[MOST_ITEMS];
    const brc_store_backend *from = job->slots[i].from;
    for (; i < job->n; i++) {
        read_slot *slot = &job->slots[i];
        if (slot->from != from)
            continue;
        slot->from = NULL;
        slot->asked.into = read_into(job, &job->items[i]);
        slot->asked.place = place_of_item(job, i);
        which[n] = i;
        asked[n++] = &slot->asked;
    }
    brc_error why = BRC_ERROR_INIT;
    if (brc_backend_fetch(from, n, asked, &why) == BRC_OK)
        return BRC_OK;
    for (i = 0; i < n; i++) {
        if (asked[i]->status == BRC_OK)
            continue;
        if (brc_is_out_of_reach(&why)) /* it was tried often enough */
            return read_item_failed(run, &job->items[which[i]], why.code, &why, err);
        BRC_TRY(read_again(run, job, which[i], from, err));
    }
    return BRC_OK;
}

/* Fetches the items outside of the file that this thread may fetch: a backend says whether workers
 * may ask it. The file is not locked meanwhile. */
static int read_fetch(const read_run *run, read_job *job, int on_worker, brc_error *err)
{
    for (size_t i = 0; i < job->n; i++) {
        const brc_store_backend *from = job->slots[i].from;
        if (from == NULL || brc_backend_on_workers(from) != on_worker)
            continue;
        if (!on_worker)
            brc_store_pause_read(run->store);
        BRC_TRY(read_fetch_with(run, job, i, err));
    }
    return BRC_OK;
}

/* Reads the items of which only the spot in the file was found. One that is not there is fetched by
 * the caller's thread. */
static int read_spots(read_run *run, read_job *job, brc_error *err)
{
    BRC_TRY(brc_buf_reserve(&job->stored, job->spot_bytes + 1, err));
    for (size_t i = 0; i < job->n; i++) {
        brc_read_item *item = &job->items[i];
        read_slot *slot = &job->slots[i];
        if (!slot->has_spot)
            continue;
        slot->has_spot = 0;
        if (!read_in_place(item)) {
            item->offset = job->stored.len;
            job->stored.len += (size_t)item->object.stored;
        }
        item->is_verified =
            brc_direct_read(run->store, &item->object, &slot->spot, read_into(job, item));
        (void)__atomic_fetch_add(item->is_verified ? &run->good : &run->bad, 1, __ATOMIC_RELAXED);
        if (item->is_verified)
            continue;
        item->rc = BRC_ESTALE;
        job->misses = 1;
    }
    return BRC_OK;
}

/* Swaps the memory of a job's stored bytes and that of a worker. The worker's was used last by this
 * thread, so it is in the processor's cache. */
static void read_swap(read_job *job, brc_pipe_worker *worker)
{
    const brc_buf own = job->stored;
    job->stored = worker->stored;
    worker->stored = own;
}

/* Compares an item's stored bytes with their checksum. */
static int read_check(const read_job *job, const brc_read_item *item, brc_error *err)
{
    if (item->is_verified)
        return BRC_OK;
    return brc_object_verify_in(&item->object, read_into(job, item),
                                place_of_item(job, (size_t)(item - job->items)), err);
}

/* ---- on the pool -------------------------------- */

/* Returns the bytes of a worker's memory that decoding the item takes. */
static size_t read_decoded_len(const brc_read_item *item)
{
    return item->chain != NULL && item->direct == NULL ? item->len : 0;
}

/* Returns the bytes that an item holds that is stored as a difference: its stored bytes and those
 * that it builds on, and its content. */
static size_t read_bases_len(const brc_read_item *item)
{
    return item->bases == NULL ? 0 : item->bases->stored.cap + (size_t)item->object.size;
}

static void read_drop_bases(brc_read_item *item)
{
    brc_bases_free(item->bases);
    item->bases = NULL;
}

/* Hands the data of a kept item to the next one, and has that of all others placed. */
static int read_hand_over(const read_run *run, brc_read_item *item, const uint8_t *data,
                          brc_scratch *scratch, brc_error *err)
{
    if (!item->kept)
        return run->ops->place(run->ops->ctx, item, data, scratch, err);
    item[1].before = (brc_span){data, item->len};
    return BRC_OK;
}

/* Compares decoded data with the object's id, if the file's setting asks for it. Data that was
 * decoded in part, or not as its encoding says, cannot be compared. */
static int read_verify(const read_run *run, const brc_read_item *item, brc_span data,
                       brc_error *err)
{
    const brc_object *o = &item->object;
    if (!run->verifies || o->kind != BRC_KIND_CHUNK || item->skip > 0 ||
        (o->encoding != 0) != (item->chain != NULL))
        return BRC_OK;
    const brc_oid id = brc_hash_object(brc_store_hash(run->store), o->kind, data.data, data.len);
    return brc_oid_cmp(&id, &o->id) == 0
               ? BRC_OK
               : brc_fail(err, BRC_ECORRUPT,
                          "the chunk decodes to other content than its id names: run 'breccia "
                          "fsck'");
}

static int read_decode(read_run *run, unsigned worker, brc_scratch *scratch, brc_span src,
                       brc_read_item *item, brc_error *err)
{
    const brc_read_ops *ops = run->ops;
    brc_pipe_worker *w = &run->pipe->workers[worker];
    brc_buf *chunk = item->kept ? &w->kept : &w->chunk;
    brc_box box = BRC_BOX_INIT;
    if (ops->take != NULL && !run->verifies) {
        const int rc = ops->take(ops->ctx, item, src, scratch, err);
        if (rc != 0)
            return rc < 0 ? rc : BRC_OK;
    }
    chunk->len = 0;
    BRC_TRY(brc_buf_reserve(chunk, item->len, err));
    if (!run->verifies && ops->box != NULL && ops->box(ops->ctx, item, &box))
        BRC_TRY(brc_chain_decode(item->chain, scratch, src, &box, chunk, err));
    else
        BRC_TRY(brc_chain_decode(item->chain, scratch, src, NULL, chunk, err));
    if (item->varies)
        item->len = chunk->len;
    if (chunk->len != item->len)
        return brc_fail(err, BRC_ECORRUPT, "the chunk decodes to %zu bytes, not %zu", chunk->len,
                        item->len);
    BRC_TRY(read_verify(run, item, (brc_span){chunk->data, chunk->len}, err));
    return read_hand_over(run, item, chunk->data, scratch, err);
}

/* Decodes an object that was stored as a difference, into memory of its own, which stays until
 * done(). */
static int read_delta(read_run *run, unsigned worker, brc_read_item *item, brc_error *err)
{
    brc_scratch *scratch;
    brc_buf direct = BRC_FIXED_BUF(item->direct, item->len);
    brc_buf *into = item->direct != NULL ? &direct : &item->bases->content;
    BRC_TRY(brc_pipe_scratch(run->pipe, worker, &scratch, err));
    into->len = 0;
    BRC_TRY(brc_bases_decode(item->bases, scratch, into, err));
    const brc_span data = {into->data, into->len};
    if (item->chain != NULL || item->skip > 0 || data.len != item->len)
        return brc_fail(err, BRC_ECORRUPT, "the chunk has %zu bytes, not %zu", data.len, item->len);
    BRC_TRY(read_verify(run, item, data, err));
    item->stored = data;
    return item->direct != NULL ? BRC_OK : read_hand_over(run, item, data.data, scratch, err);
}

/* Returns the stored bytes of an item that are decoded. */
static brc_span read_source(const read_job *job, const brc_read_item *item)
{
    return (brc_span){job->stored.data + item->offset + item->skip,
                      (size_t)item->object.stored - item->skip};
}

/* Returns whether an item can be decoded together with others of its chain. */
static int read_has_company(const read_run *run, const brc_read_item *item)
{
    brc_box box = BRC_BOX_INIT;
    const brc_read_ops *ops = run->ops;
    if (item->rc < 0 || item->bases != NULL || item->chain == NULL || item->kept || item->varies ||
        item->len == 0)
        return 0;
    if (ops->take != NULL && !run->verifies)
        return 0;
    return run->verifies || ops->box == NULL || !ops->box(ops->ctx, item, &box);
}

/* Decodes n items that follow each other, each into its destination or into the worker's buffer. */
static int read_decode_batch(read_run *run, unsigned worker, brc_scratch *scratch,
                             const read_job *job, brc_read_item *items, size_t n)
{
    brc_span src[BRC_PIPE_BATCH];
    brc_buf dst[BRC_PIPE_BATCH], *chunk = &run->pipe->workers[worker].chunk;
    size_t len = 0, at = 0, failed;
    for (size_t i = 0; i < n; i++)
        len += read_decoded_len(&items[i]);
    chunk->len = 0;
    BRC_TRY(brc_buf_reserve(chunk, len, NULL));
    for (size_t i = 0; i < n; i++) {
        const brc_read_item *item = &items[i];
        BRC_TRY(read_check(job, item, NULL));
        src[i] = read_source(job, item);
        dst[i] = (brc_buf)BRC_FIXED_BUF(item->direct != NULL ? item->direct : chunk->data + at,
                                        item->len);
        at += read_decoded_len(item);
    }
    BRC_TRY(brc_chain_decode_batch(items->chain, scratch, n, src, dst, &failed, NULL));
    for (size_t i = 0; i < n; i++)
        items[i].decoded = (brc_span){dst[i].data, dst[i].len};
    return BRC_OK;
}

/* Returns whether items are taken together. */
static int read_takes_many(const read_run *run)
{
    return run->ops->take_many != NULL && !run->verifies;
}

/* Offers an item and those after it that can be taken together. Returns their number. */
static size_t read_take_many(read_run *run, brc_scratch *scratch, read_job *job, size_t first)
{
    brc_span src[BRC_PIPE_BATCH];
    brc_read_item *items = &job->items[first];
    size_t n = 0;
    for (; first + n < job->n && n < run->pipe->batch; n++) {
        const brc_read_item *item = &items[n];
        if (item->rc < 0 || item->bases != NULL || item->kept || item->varies ||
            item->direct != NULL || item->len == 0 || item->chain != items->chain ||
            item->owner != items->owner || read_check(job, item, NULL) < 0)
            break;
        src[n] = read_source(job, item);
    }
    if (n > 1)
        run->ops->take_many(run->ops->ctx, n, items, src, scratch);
    return n > 0 ? n : 1;
}

/* Decodes an item and those after it together, if that is worth anything. Where a batch fails, its
 * items are decoded one by one, and each has its own error. Returns the number of items that have
 * been dealt with so. */
static size_t read_try_batch(read_run *run, unsigned worker, read_job *job, size_t first)
{
    brc_scratch *scratch;
    brc_read_item *items = &job->items[first];
    size_t n = 0;
    if (items->chain == NULL || brc_pipe_scratch(run->pipe, worker, &scratch, NULL) < 0)
        return 1;
    if (read_takes_many(run))
        return read_take_many(run, scratch, job, first);
    if (!brc_chain_has_batches(items->chain, scratch, 0))
        return 1;
    while (first + n < job->n && n < run->pipe->batch && items[n].chain == items->chain &&
           read_has_company(run, &items[n]))
        n++;
    if (n > 1)
        (void)!read_decode_batch(run, worker, scratch, job, items, n);
    return n > 0 ? n : 1;
}

static int read_one(read_run *run, unsigned worker, const read_job *job, brc_read_item *item,
                    brc_error *err)
{
    const brc_object *o = &item->object;
    brc_scratch *scratch;
    if (item->is_taken)
        return BRC_OK;
    if (item->bases != NULL)
        return read_delta(run, worker, item, err);
    if (read_in_place(item)) {
        BRC_TRY(read_check(job, item, err));
        return read_verify(run, item, (brc_span){item->direct, item->len}, err);
    }
    const uint8_t *stored = job->stored.data + item->offset;
    const brc_span src = read_source(job, item);
    BRC_TRY(brc_pipe_scratch(run->pipe, worker, &scratch, err));
    item->stored = (brc_span){stored, (size_t)o->stored};
    if (item->decoded.data != NULL) {
        BRC_TRY(read_verify(run, item, item->decoded, err));
        return item->direct != NULL ? BRC_OK
                                    : read_hand_over(run, item, item->decoded.data, scratch, err);
    }
    BRC_TRY(read_check(job, item, err));
    if (item->chain == NULL && src.len != item->len)
        return brc_fail(err, BRC_ECORRUPT, "%zu bytes are stored, not %zu", src.len, item->len);
    if (item->chain == NULL) {
        BRC_TRY(read_verify(run, item, src, err));
        return read_hand_over(run, item, src.data, scratch, err);
    }
    if (item->direct == NULL)
        return read_decode(run, worker, scratch, src, item, err);
    brc_buf into = BRC_FIXED_BUF(item->direct, item->len);
    BRC_TRY(brc_chain_decode(item->chain, scratch, src, NULL, &into, err));
    return read_verify(run, item, (brc_span){item->direct, item->len}, err);
}

static int read_decode_job(read_run *run, read_job *job, unsigned worker, brc_error *err)
{
    int rc = BRC_OK;
    for (size_t i = 0, next = 0; i < job->n && rc == BRC_OK; i++) {
        brc_error found = BRC_ERROR_INIT;
        brc_read_item *item = &job->items[i];
        if (i == next)
            next += read_try_batch(run, worker, job, i);
        rc = brc_pipe_check(run->pipe, err);
        if (rc < 0)
            break;
        rc = item->rc < 0 ? BRC_OK : read_one(run, worker, job, item, &found);
        if (rc < 0)
            rc = read_item_failed(run, item, rc, &found, err);
    }
    brc_pipe_trim(run->pipe, worker);
    return rc;
}

/* Fetches and decodes a job. If an item was not found in its place, the caller's thread goes on
 * with the job. */
static int read_run_job(void *ctx, brc_window_job *base, int stage, unsigned worker, brc_error *err)
{
    read_run *run = ctx;
    read_job *job = (read_job *)base;
    brc_pipe_worker *w = &run->pipe->workers[worker];
    (void)stage;
    BRC_TRY(brc_pipe_check(run->pipe, err));
    BRC_TRY(read_fetch(run, job, 1, err));
    const int swaps = job->spot_bytes > 0 && job->stored.len == 0 && run->ops->done == NULL;
    if (swaps) {
        read_swap(job, w);
        job->stored.len = 0;
    }
    int rc = read_spots(run, job, err);
    if (rc == BRC_OK && !job->misses)
        rc = read_decode_job(run, job, worker, err);
    if (swaps && !job->misses)
        read_swap(job, w);
    return rc;
}

/* ---- looking up -------------------------------- */

static int read_blob_order(const void *x, const void *y)
{
    const brc_read_item *a = *(brc_read_item *const *)x, *b = *(brc_read_item *const *)y;
    return brc_object_place_order(&a->object, &b->object);
}

/* Makes room for `cap` items in the list, which is empty. */
static int read_list_room(brc_pipe *pipe, size_t cap, brc_error *err)
{
    void *p;
    size_t each = sizeof(brc_read_item) + sizeof(brc_read_item *) + sizeof(brc_object *);
    if (pipe->list != NULL && pipe->list->cap >= cap)
        return BRC_OK;
    BRC_TRY(brc_new(&p, sizeof(read_list) + cap * each, err));
    free(pipe->list);
    pipe->list = p;
    pipe->list->cap = cap;
    pipe->list->items = (brc_read_item *)(pipe->list + 1);
    pipe->list->order = (brc_read_item **)(pipe->list->items + cap);
    pipe->list->asked = (brc_object **)(pipe->list->order + cap);
    return BRC_OK;
}

/* Lists the next items, looks them up and puts them into the order of fetching. */
static int read_look_up(read_run *run, brc_error *err)
{
    size_t nasked = 0;
    BRC_TRY(read_list_room(run->pipe, run->ask, err));
    read_list *list = run->pipe->list;
    memset(list->items, 0, run->ask * sizeof(*list->items));
    list->n = list->at = 0;
    const int more = run->ops->list(run->ops->ctx, list->items, run->ask, &list->n, err);
    BRC_TRY(more);
    if (list->n == 0 && more == BRC_READ_MORE) {
        brc_store_pause_read(run->store);
        return run->ops->passed != NULL ? run->ops->passed(run->ops->ctx, NULL, err) : BRC_OK;
    }
    run->ended = list->n == 0;
    if (list->n == run->ask && run->ask < LIST_MOST)
        run->ask *= 8;
    for (size_t i = 0; i < list->n; i++) {
        list->order[i] = &list->items[i];
        if (!list->items[i].object.found)
            list->asked[nasked++] = &list->items[i].object;
    }
    BRC_TRY(brc_objects_find(run->store, list->asked, nasked, err));
    if (!run->ops->ordered && list->n > 1)
        qsort(list->order, list->n, sizeof(*list->order), read_blob_order);
    return BRC_OK;
}

/* ---- filling jobs -------------------------------- */

static int read_open(const read_run *run, brc_read_item *item, brc_error *err)
{
    const brc_object *o = &item->object;
    if (!o->found)
        return brc_object_missing(&o->id, err);
    item->len = (size_t)o->size;
    if (run->ops->open != NULL)
        return run->ops->open(run->ops->ctx, item, err);
    return brc_encoding_chain(run->store, o->encoding, &item->chain, err);
}

/* Fetches the stored bytes of an object that is stored as a difference, and of those that come
 * next, if they lie far away. */
static int read_look_ahead(read_run *run, const brc_read_item *item, brc_error *err)
{
    const brc_object *next[MOST_ITEMS] = { &item->object };
    const read_list *list = run->pipe->list;
    size_t n = 1;
    if (brc_is_in_file(item->object.backend) ||
        brc_ahead_find(&run->ahead, &item->object) != NULL)
        return BRC_OK;
    for (size_t i = list->at; i < list->n && n < MOST_ITEMS; i++)
        if (list->order[i]->object.found && brc_object_is_delta(&list->order[i]->object))
            next[n++] = &list->order[i]->object;
    return brc_ahead_fetch(run->store, &run->ahead, n, next, err);
}

/* Fetches an object that is stored as a difference, with all that it builds on. The caller sees an
 * object that is stored whole. */
static int read_open_delta(read_run *run, brc_read_item *item, brc_error *err)
{
    BRC_TRY(read_look_ahead(run, item, err));
    BRC_TRY(brc_bases_load(run->store, &item->object, &run->ahead, &item->bases, err));
    item->object = brc_bases_view(item->bases);
    return read_open(run, item, err);
}

static int read_fetch_now(const read_run *run, read_job *job, brc_read_item *item, brc_error *err)
{
    const brc_object *o = &item->object;
    if (read_in_place(item))
        return brc_object_fetch(run->store, o, item->direct, err);
    BRC_TRY(brc_buf_reserve(&job->stored, (size_t)o->stored + 1, err));
    item->offset = job->stored.len;
    BRC_TRY(brc_object_fetch(run->store, o, job->stored.data + job->stored.len, err));
    job->stored.len += (size_t)o->stored;
    return BRC_OK;
}

/* Fetches an item from the place that was looked up, or, if it has moved, from where its row says
 * now. */
static int read_fetch_item(read_run *run, read_job *job, brc_read_item *item,
                           const brc_read_item *listed, brc_error *err)
{
    brc_error gone = BRC_ERROR_INIT;
    int rc = read_fetch_now(run, job, item, &gone);
    if (rc == BRC_ESTALE) {
        *item = *listed;
        BRC_TRY(brc_object_find_again(run->store, &item->object, &gone, err));
        if (brc_object_is_delta(&item->object))
            return read_open_delta(run, item, err);
        BRC_TRY(read_open(run, item, err));
        rc = read_fetch_now(run, job, item, &gone);
    }
    if (rc == BRC_ESTALE)
        return brc_object_gone(run->store, &item->object, &gone, err);
    if (rc < 0 && err != NULL)
        brc_error_copy(err, &gone);
    return rc;
}

/* Opens an item. If it lies in the file, it is fetched at once, or a worker reads it there;
 * otherwise it is fetched with others. */
static int read_open_and_fetch(read_run *run, read_job *job, brc_read_item *item, brc_error *err)
{
    const size_t i = (size_t)(item - job->items);
    const brc_read_item listed = *item;
    read_slot *slot = &job->slots[i];
    if (item->object.found && brc_object_is_delta(&item->object))
        return read_open_delta(run, item, err);
    BRC_TRY(read_open(run, item, err));
    slot->has_spot = brc_is_in_file(item->object.backend) &&
                     brc_direct_find(run->store, &item->object, &slot->spot);
    if (brc_is_in_file(item->object.backend) && !slot->has_spot)
        return read_fetch_item(run, job, item, &listed, err);
    slot->listed = listed;
    if (!slot->has_spot)
        return read_ask(run, job, i, err);
    job->spot_bytes += read_in_place(item) ? 0 : (size_t)item->object.stored;
    return BRC_OK;
}

/* Looks up again, and fetches, the items that were not in their place when they were fetched with
 * others. */
static int read_find_again(read_run *run, read_job *job, brc_error *err)
{
    job->misses = 0;
    for (size_t i = 0; i < job->n; i++) {
        brc_error found = BRC_ERROR_INIT;
        brc_read_item *item = &job->items[i];
        if (item->rc != BRC_ESTALE || item->why != NULL)
            continue;
        item->rc = BRC_OK;
        int rc = read_fetch_item(run, job, item, &job->slots[i].listed, &found);
        if (rc < 0)
            BRC_TRY(read_item_failed(run, item, rc, &found, err));
    }
    brc_store_pause_read(run->store);
    return BRC_OK;
}

/* Makes room for n items. Earlier items move. */
static int read_room(read_job *job, size_t n, brc_error *err)
{
    void *items = job->items, *slots = job->slots;
    int rc = brc_grow_array(&items, &job->items_cap, n, sizeof(brc_read_item), err);
    job->items = items;
    if (rc == BRC_OK)
        rc = brc_grow_array(&slots, &job->slots_cap, n, sizeof(read_slot), err);
    job->slots = slots;
    if (rc < 0)
        return rc;
    for (size_t i = 0; i < job->n; i++)
        job->items[i].result = job->slots[i].listed.result = &job->slots[i].result;
    for (; job->nslots < n; job->nslots++)
        job->slots[job->nslots] = (read_slot){0};
    return BRC_OK;
}

static int read_fill_item(read_run *run, read_job *job, brc_error *err)
{
    brc_error found = BRC_ERROR_INIT;
    read_list *list = run->pipe->list;
    BRC_TRY(read_room(job, job->n + 1, err));
    brc_read_item *item = &job->items[job->n];
    read_slot *slot = &job->slots[job->n++];
    *item = *list->order[list->at++];
    item->result = &slot->result;
    item->result->len = 0;
    slot->from = slot->keeps = NULL;
    slot->place_at = SIZE_MAX;
    slot->has_spot = 0;
    int rc = read_open_and_fetch(run, job, item, &found);
    if (!slot->has_spot)
        job->base.taken += (size_t)item->object.stored;
    return rc < 0 ? read_item_failed(run, item, rc, &found, err) : BRC_OK;
}

/* Returns whether a job with so many bytes takes further items; its last item says where they
 * lie. */
static int read_job_has_room(const read_run *run, const read_job *job, size_t bytes)
{
    const brc_store_backend *from = job->n > 0 ? job->slots[job->n - 1].from : NULL;
    if (from != NULL && brc_backend_is_far(from))
        return job->n < FAR_JOB_ITEMS && bytes < FAR_JOB_BYTES;
    return job->n < run->pipe->batch && job->n < JOB_ITEMS &&
           bytes < (read_takes_many(run) ? FAR_JOB_BYTES : JOB_BYTES);
}

/* Fills a job. Returns 1 if it has items, 0 at the end. */
static int read_fill_job(void *ctx, brc_window_job *base, brc_error *err)
{
    read_run *run = ctx;
    read_job *job = (read_job *)base;
    size_t bytes = 0, most = 0, kept = 0, held = 0;
    int open = 0; /* the last item waits for the next one */
    job->n = 0;
    job->stored.len = job->places.len = 0;
    job->spot_bytes = 0;
    job->misses = 0;
    while ((open || read_job_has_room(run, job, bytes)) && !run->ended) {
        const read_list *list = run->pipe->list;
        if (list == NULL || list->at == list->n) {
            BRC_TRY(read_look_up(run, err));
            continue;
        }
        BRC_TRY(read_fill_item(run, job, err));
        const brc_read_item *item = &job->items[job->n - 1];
        size_t decoded = kept + read_decoded_len(item);
        held += read_bases_len(item) + item->makes;
        bytes += item->len > item->object.stored ? item->len : (size_t)item->object.stored;
        most = decoded > most ? decoded : most;
        open = item->kept;
        kept = open ? decoded : 0;
    }
    base->bytes = job->stored.cap + job->spot_bytes + most + held +
                  (run->ops->done != NULL ? bytes : 0);
    BRC_TRY(read_fetch(run, job, 0, err));
    if (job->misses)
        BRC_TRY(read_find_again(run, job, err));
    return job->n > 0;
}

/* Gives the cache an item that was fetched and verified. */
static void read_keep(const read_run *run, const read_job *job, size_t i)
{
    const brc_read_item *item = &job->items[i];
    const brc_store_backend *from = job->slots[i].keeps;
    if (from != NULL && item->rc == BRC_OK)
        brc_store_keep(run->store, from, &item->object,
                       read_in_place(item) ? item->direct : job->stored.data + item->offset);
}

static int read_finish_job(void *ctx, brc_window_job *base, brc_error *err)
{
    read_run *run = ctx;
    read_job *job = (read_job *)base;
    const brc_read_ops *ops = run->ops;
    int rc = BRC_OK;
    if (job->misses) {
        BRC_TRY(read_find_again(run, job, err));
        BRC_TRY(read_decode_job(run, job, brc_pipe_caller(run->pipe), err));
    }
    for (size_t i = 0; i < job->n && rc == BRC_OK; i++) {
        brc_read_item *item = &job->items[i];
        read_keep(run, job, i);
        if (ops->passed != NULL)
            rc = ops->passed(ops->ctx, item, err);
        if (rc < 0)
            break;
        if (item->rc < 0)
            rc = ops->failed(ops->ctx, item, item->rc, item->why, err);
        else if (ops->done != NULL)
            rc = ops->done(ops->ctx, item, err);
        free(item->why);
        item->why = NULL;
        read_drop_bases(item);
        brc_pipe_trim_buf(run->pipe, item->result, run->pipe->reading.cap * job->n);
    }
    brc_pipe_trim_buf(run->pipe, &job->stored, run->pipe->reading.cap);
    return rc;
}

/* ---- the flow -------------------------------- */

static void read_job_dispose(brc_window_job *base)
{
    read_job *job = (read_job *)base;
    for (size_t i = 0; i < job->nslots; i++)
        brc_buf_dispose(&job->slots[i].result);
    free(job->items);
    free(job->slots);
    brc_buf_dispose(&job->stored);
    brc_buf_dispose(&job->places);
}

/* Frees what items keep: errors, and what differences build on. */
static void read_forget(brc_window *w)
{
    for (size_t i = 0; i < w->n; i++) {
        read_job *job = (read_job *)w->jobs[i];
        for (size_t j = 0; j < job->n; j++) {
            free(job->items[j].why);
            job->items[j].why = NULL;
            read_drop_bases(&job->items[j]);
        }
    }
}

static void read_pause(void *ctx)
{
    const read_run *run = ctx;
    brc_store_pause_read(run->store);
}

int brc_flow_read(brc_pipe *pipe, brc_store *store, const brc_read_ops *ops, brc_error *err)
{
    read_run run = {.ops = ops, .pipe = pipe, .store = store, .ask = BRC_READ_FIRST,
                    .verifies = brc_store_verifies_all(store), .ahead = BRC_AHEAD_INIT};
    brc_window_ops window = {.ctx = &run, .fill = read_fill_job, .run = read_run_job,
                             .finish = read_finish_job, .pause = read_pause};
    BRC_TRY(brc_pipe_window(pipe, &pipe->reading, JOBS_PER_THREAD, 1, sizeof(read_job),
                            read_job_dispose, err));
    if (pipe->list != NULL)
        pipe->list->at = pipe->list->n = 0;
    int rc = brc_window_run(&pipe->reading, pipe, pipe->memory, &window, err);
    if (rc < 0 || ops->failed != NULL)
        read_forget(&pipe->reading);
    brc_ahead_dispose(&run.ahead);
    brc_direct_note(store, run.good, run.bad);
    brc_store_keep_now(store);
    return rc;
}
