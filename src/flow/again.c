#include "again.h"

#include <search.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "../base/alloc.h"
#include "write_work.h"

/* Objects are looked up in batches, so that memory does not grow with their number. */
enum { AGAIN_BATCH = 1024 };

typedef struct again_one {
    brc_again_item want;
    brc_object object;
    int64_t backend; /* where the object goes */
    int keeps;       /* the encoding stays    */
} again_one;

typedef struct again_run {
    brc_again *again;
    void *on_the_way; /* of tsearch(): unfinished items, by object */
    atomic_ullong left; /* objects that cannot be read; who counts the first writes again->why */
    brc_id_table met; /* of a count: objects that were counted */
    int counts;
    size_t n, at;
    again_one *order[AGAIN_BATCH];
    again_one batch[AGAIN_BATCH];
} again_run;

/* ---- choosing -------------------------------- */

/* Orders the entries of a batch by object, and those of one object as they were listed. */
static int again_order(const void *a, const void *b)
{
    const again_one *x = *(again_one *const *)a, *y = *(again_one *const *)b;
    const int order = brc_oid_cmp(&x->object.id, &y->object.id);
    return order != 0 ? order : (x > y) - (x < y);
}

/* Reads the next items into the batch. Returns 0 at the end. */
static int again_read(again_run *r, brc_error *err)
{
    brc_again *again = r->again;
    int rc = 1;
    for (r->n = r->at = 0; r->n < AGAIN_BATCH; r->n++) {
        again_one *one = &r->batch[r->n];
        memset(one, 0, sizeof(*one));
        rc = again->next(again->ctx, &one->want, err);
        if (rc <= 0)
            break;
        one->object.id = one->want.id;
    }
    return rc < 0 ? rc : r->n > 0;
}

/* Looks up each object of the batch once: an object that is listed again is not `found`. */
static int again_look_up(again_run *r, brc_error *err)
{
    brc_object *asked[AGAIN_BATCH];
    size_t n = 0;
    for (size_t i = 0; i < r->n; i++)
        r->order[i] = &r->batch[i];
    if (r->n > 1)
        qsort(r->order, r->n, sizeof(r->order[0]), again_order);
    for (size_t i = 0; i < r->n; i++)
        if (i == 0 || brc_oid_cmp(&r->order[i - 1]->object.id, &r->order[i]->object.id) != 0)
            asked[n++] = &r->order[i]->object;
    return brc_objects_find(r->again->store, asked, n, err);
}

/* Stores whether this build could decode the object. Chunks that came with an unknown codec keep
 * the bytes that they came in. */
static int can_recode(brc_store *store, const brc_object *o, int *can, brc_error *err)
{
    const brc_chain *chain = NULL;
    *can = 1;
    if (o->encoding == 0 || brc_object_is_delta(o))
        return BRC_OK;
    const int rc = brc_encoding_chain(store, o->encoding, &chain, err);
    *can = rc == BRC_OK && chain != NULL;
    return rc == BRC_EUNSUPPORTED ? BRC_OK : rc;
}

/* A backend that only reads keeps its objects. */
static int can_put_again(brc_store *store, const brc_object *o)
{
    brc_store_backend *b;
    return brc_backend_use(store, o->backend, &b, NULL) == BRC_OK && brc_backend_can_put(b);
}

static int wants_to_differ(brc_store *store, again_one *one, int *is, brc_error *err)
{
    const brc_object *o = &one->object;
    if (brc_object_is_delta(o) || o->stored < BRC_DELTA_LEAST || o->size > BRC_DELTA_BYTES_MOST / 2)
        return BRC_OK;
    BRC_TRY(can_recode(store, o, is, err));
    *is = *is && can_put_again(store, o);
    return BRC_OK;
}

static int wants_encoding(brc_store *store, again_one *one, int *is, brc_error *err)
{
    const brc_object *o = &one->object;
    const int64_t backend = one->want.as.encoded.backend;
    int can = 0;
    if (one->want.as.encoded.chain != NULL && o->encoding != one->want.as.encoded.encoding)
        BRC_TRY(can_recode(store, o, &can, err));
    one->keeps = !can;
    if (!can && (!one->want.as.encoded.moves || backend < 0 || backend == o->backend))
        return BRC_OK;
    *is = backend >= 0 || can_put_again(store, o);
    one->backend = backend >= 0 ? backend : o->backend;
    return BRC_OK;
}

/* Stores whether the object is to be stored again, and completes the entry. */
static int again_wants(brc_store *store, again_one *one, int *is, brc_error *err)
{
    const brc_object *o = &one->object;
    *is = 0;
    one->backend = o->backend;
    if (!o->found || o->kind != BRC_KIND_CHUNK)
        return BRC_OK;
    switch (one->want.kind) {
    case BRC_AGAIN_ENCODE:
        return wants_encoding(store, one, is, err);
    case BRC_AGAIN_LEAVE:
        *is = one->keeps = !brc_is_in_file(o->backend) && o->place == one->want.as.left.place;
        return BRC_OK;
    case BRC_AGAIN_DIFFER:
        return wants_to_differ(store, one, is, err);
    }
    return BRC_OK;
}

static int again_choose(again_run *r, brc_error *err)
{
    size_t n = 0;
    BRC_TRY(again_look_up(r, err));
    for (size_t i = 0; i < r->n; i++) {
        int is;
        BRC_TRY(again_wants(r->again->store, &r->batch[i], &is, err));
        if (is)
            r->batch[n++] = r->batch[i];
    }
    r->n = n;
    return BRC_OK;
}

/* Makes sure that the batch has an object. Returns 0 at the end. */
static int again_more(again_run *r, brc_error *err)
{
    brc_again *again = r->again;
    while (r->at == r->n) {
        const int rc = again_read(r, err);
        if (rc <= 0)
            return rc;
        BRC_TRY(again_choose(r, err));
        BRC_TRY(brc_store_rest(again->store, 0, err));
        brc_store_breathe(again->store);
        BRC_TRY(again->step(again->ctx, 0, err));
    }
    return 1;
}

/* ---- storing -------------------------------- */

static int again_item_order(const void *a, const void *b)
{
    return brc_oid_cmp(&((const brc_write_item *)a)->old.id, &((const brc_write_item *)b)->old.id);
}

static void again_item(const again_one *one, brc_write_item *item)
{
    if (one->want.kind == BRC_AGAIN_ENCODE) {
        item->chain = one->keeps ? NULL : one->want.as.encoded.chain;
        item->spec = one->want.as.encoded.spec;
        item->digest = one->want.as.encoded.digest;
    } else if (one->want.kind == BRC_AGAIN_DIFFER) {
        item->base = one->want.as.different.base;
        item->most_depth = one->want.as.different.most_depth;
    }
    item->backend = one->backend;
    item->keeps = one->keeps;
    item->len = (size_t)(one->keeps ? one->object.stored : one->object.size);
    item->old = one->object;
}

/* Objects that lie far away are fetched together, and those that go there become one pack. */
static size_t again_room(const again_run *r)
{
    return brc_object_is_far(r->again->store, &r->batch[r->at].object) ? (size_t)BRC_AHEAD_BYTES
                                                                       : BRC_WRITE_BYTES;
}

/* Lists a job. An object that an unfinished item stores is left out. */
static int again_list(void *ctx, brc_write_item *items, size_t cap, size_t *n, brc_error *err)
{
    again_run *r = ctx;
    size_t bytes = 0;
    *n = 0;
    while (*n == 0) {
        const int rc = again_more(r, err);
        if (rc <= 0)
            return rc;
        for (; *n < cap && r->at < r->n && bytes < again_room(r); r->at++) {
            brc_write_item *item = &items[*n];
            const brc_write_item key = {.old.id = r->batch[r->at].object.id};
            if (tfind(&key, &r->on_the_way, again_item_order) != NULL)
                continue;
            again_item(&r->batch[r->at], item);
            bytes += item->len;
            if (tsearch(item, &r->on_the_way, again_item_order) == NULL)
                return brc_nomem(err);
            ++*n;
        }
    }
    return BRC_OK;
}

static int again_gather(void *ctx, brc_write_item *item, brc_scratch *scratch, brc_error *err)
{
    (void)ctx;
    BRC_TRY(brc_write_old(item, scratch, &item->own, err));
    if (item->own.len != item->old.size)
        return brc_fail(err, BRC_ECORRUPT, "a chunk has %zu bytes, not %llu", item->own.len,
                        (unsigned long long)item->old.size);
    item->data = item->own.data;
    item->len = item->own.len;
    return BRC_OK;
}

static int again_done(void *ctx, const brc_write_item *item, brc_error *err)
{
    again_run *r = ctx;
    brc_again *again = r->again;
    tdelete(item, &r->on_the_way, again_item_order);
    if (!item->stays) {
        again->objects++;
        again->before += item->old.stored;
        again->after += item->as_is ? item->len : item->stored.len;
    }
    return again->step(again->ctx, item->old.size, err);
}

static void again_name(void *ctx, const brc_write_item *item, brc_error *err)
{
    const again_run *r = ctx;
    r->again->name(r->again->ctx, &item->old.id, err);
}

static void note_left(again_run *r, const brc_oid *id, const brc_error *why)
{
    brc_again *again = r->again;
    if (atomic_fetch_add(&r->left, 1) > 0 || again->left > 0)
        return;
    brc_error_copy(&again->why, why);
    again->name(again->ctx, id, &again->why);
}

/* An object that was collected meanwhile needs nothing more. */
static int again_leave(void *ctx, const brc_write_item *item, const brc_error *why)
{
    again_run *r = ctx;
    if (why->code == BRC_ESTALE)
        return 1;
    if (r->again->leaves)
        note_left(r, &item->old.id, why);
    return r->again->leaves;
}

static void keep_again(void *item)
{
    (void)item; /* the flow owns it */
}

static int again_run_new(again_run **out, brc_again *again, brc_error *err)
{
    void *p;
    BRC_TRY(brc_new(&p, sizeof(again_run), err));
    *out = p;
    (*out)->again = again;
    (*out)->met = (brc_id_table)BRC_ID_TABLE_INIT(0);
    atomic_init(&(*out)->left, 0);
    return BRC_OK;
}

static void again_run_free(again_run *r)
{
    r->again->left += atomic_load(&r->left);
    tdestroy(r->on_the_way, keep_again);
    brc_id_table_dispose(&r->met);
    free(r);
}

int brc_again_run(brc_again *again, brc_error *err)
{
    again_run *r;
    BRC_TRY(again_run_new(&r, again, err));
    const brc_write_ops ops = {
        .ctx = r,
        .replace = 1,
        .list = again_list,
        .gather = again_gather,
        .done = again_done,
        .name = again_name,
        .leave = again_leave,
    };
    const int rc = brc_flow_write(again->pipe, again->store, &ops, err);
    again_run_free(r);
    return rc;
}

int brc_again_in_steps(brc_store *store, int (*run)(void *ctx, brc_error *err), void *ctx,
                       brc_error *err)
{
    BRC_TRY(brc_store_bulk_begin(store, err));
    brc_store_bulk_enter(store);
    int rc = run(ctx, err);
    const int end = brc_store_end(store, rc == BRC_OK, rc == BRC_OK ? err : NULL);
    rc = rc < 0 ? rc : end;
    if (rc == BRC_OK)
        rc = brc_store_bulk_finish(store, err);
    brc_store_bulk_cancel(store);
    return rc;
}

/* ---- counting -------------------------------- */

/*
 * An estimate from a sample. Ids are hashes, so the objects whose id is below a limit are a random
 * choice. The limit is halved whenever the sample is full, so the number of objects need not be
 * known.
 */

enum { SAMPLE_MOST = 256 };

typedef struct again_sample {
    uint32_t key[SAMPLE_MOST];
    uint64_t before[SAMPLE_MOST], after[SAMPLE_MOST];
    size_t n;
    uint64_t limit;
    uint64_t encoded; /* stored bytes of all objects whose encoding changes */
} again_sample;

static uint32_t sample_key(const brc_oid *id)
{
    return (uint32_t)id->bytes[0] << 24 | (uint32_t)id->bytes[1] << 16 |
           (uint32_t)id->bytes[2] << 8 | id->bytes[3];
}

static void sample_halve(again_sample *s)
{
    size_t n = 0;
    s->limit /= 2;
    for (size_t i = 0; i < s->n; i++) {
        if (s->key[i] >= s->limit)
            continue;
        s->key[n] = s->key[i];
        s->before[n] = s->before[i];
        s->after[n++] = s->after[i];
    }
    s->n = n;
}

/* The same for an object that would become a difference, or stay as it is. */
static int sample_delta(brc_store *store, brc_write_item *item, brc_scratch *scratch,
                        uint64_t *after, brc_error *err)
{
    brc_object base = {.id = item->base}, *one = &base;
    brc_buf content = BRC_BUF_INIT, out = BRC_BUF_INIT;
    const brc_span data = {item->data, item->len};
    int rc;
    BRC_GO(brc_objects_find(store, &one, 1, err));
    if (!base.found)
        BRC_GO(brc_object_missing(&base.id, err));
    BRC_GO(brc_bases_load(store, &base, NULL, &item->base_of, err));
    brc_store_pause_read(store);
    BRC_GO(brc_bases_decode(item->base_of, scratch, &content, err));
    BRC_GO(brc_delta_make(scratch, &base.id, brc_store_id_len(store),
                          (brc_span){content.data, content.len}, data, &out, err));
    *after = brc_delta_pays(out.len, item->old.stored) ? out.len : item->old.stored;
done:
    brc_buf_dispose(&content);
    brc_buf_dispose(&out);
    return rc;
}

/* Makes the bytes that the object would be stored in, and stores their number. */
static int sample_encode(again_run *r, const again_one *one, brc_write_item *item, uint64_t *after,
                         brc_error *err)
{
    brc_scratch *scratch;
    brc_store *store = r->again->store;
    brc_buf out = BRC_BUF_INIT;
    item->old = one->object;
    BRC_TRY(brc_pipe_scratch(r->again->pipe, brc_pipe_caller(r->again->pipe), &scratch, err));
    BRC_TRY(brc_write_fetch_old(store, item, NULL, err));
    brc_store_pause_read(store);
    BRC_TRY(again_gather(r, item, scratch, err));
    const brc_span data = {item->data, item->len};
    if (one->want.kind == BRC_AGAIN_DIFFER) {
        item->base = one->want.as.different.base;
        return sample_delta(store, item, scratch, after, err);
    }
    const brc_chain *chain = one->want.as.encoded.chain;
    const int rc = brc_chain_is_identity(chain)
                       ? BRC_OK
                       : brc_chain_encode(chain, scratch, data, &out, err);
    *after = out.len > 0 && brc_write_is_worthwhile(out.len, data.len) ? out.len : data.len;
    brc_buf_dispose(&out);
    return rc;
}

/* Stores 1 in *left if the object cannot be read. */
static int sample_one(again_run *r, again_sample *s, const again_one *one, int *left,
                      brc_error *err)
{
    brc_write_item item = {0};
    brc_error why = BRC_ERROR_INIT;
    const uint32_t key = sample_key(&one->object.id);
    uint64_t after = 0;
    *left = 0;
    if (s->n == SAMPLE_MOST)
        sample_halve(s);
    if (key >= s->limit || s->n == SAMPLE_MOST)
        return BRC_OK;
    const int rc = sample_encode(r, one, &item, &after, &why);
    brc_write_forget_old(&item);
    brc_buf_dispose(&item.stored);
    brc_buf_dispose(&item.place);
    brc_buf_dispose(&item.own);
    *left = rc < 0;
    if (rc == BRC_ENOMEM || rc == BRC_EINTERRUPT || brc_is_out_of_reach(&why)) {
        if (rc == BRC_EIO)
            r->again->name(r->again->ctx, &one->object.id, &why);
        brc_error_copy(err, &why);
        return rc;
    }
    if (rc < 0) {
        note_left(r, &one->object.id, &why);
        return BRC_OK;
    }
    s->key[s->n] = key;
    s->before[s->n] = one->object.stored;
    s->after[s->n++] = after;
    return BRC_OK;
}

static int again_count_one(again_run *r, again_sample *s, const again_one *one, brc_error *err)
{
    brc_again *again = r->again;
    int left = 0;
    if (brc_id_table_find(&r->met, &one->object.id) != NULL)
        return BRC_OK;
    BRC_TRY(brc_id_table_add(&r->met, &one->object.id, NULL, err));
    if (!one->keeps)
        BRC_TRY(sample_one(r, s, one, &left, err));
    if (left)
        return BRC_OK;
    again->objects++;
    again->before += one->object.stored;
    if (one->keeps)
        again->after += one->object.stored;
    else
        s->encoded += one->object.stored;
    return again->step(again->ctx, one->object.size, err);
}

int brc_again_count(brc_again *again, brc_error *err)
{
    again_run *r;
    again_sample s = {.limit = UINT64_C(1) << 32};
    double before = 0, after = 0;
    int rc;
    BRC_TRY(again_run_new(&r, again, err));
    while ((rc = again_more(r, err)) > 0) {
        rc = again_count_one(r, &s, &r->batch[r->at++], err);
        if (rc < 0)
            break;
    }
    for (size_t i = 0; i < s.n; i++) {
        before += (double)s.before[i];
        after += (double)s.after[i];
    }
    if (before > 0)
        again->after += (uint64_t)((double)s.encoded * (after / before));
    again->tried = s.n;
    again_run_free(r);
    return rc;
}
