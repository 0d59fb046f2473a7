/*
 * Many keys at once. They are looked up in the order of their names, so that those of one array
 * come together; their chunks, and the chunks that ranges of shards meet, go through the pool.
 * Values that have more to them are given one after the other: whole shards, and shards whose
 * chunks' lengths must be learned, which both go through the pool themselves.
 */
#include <stdlib.h>
#include <string.h>

#include "../base/alloc.h"
#include "key_value.h"

/* Looked up in one transaction. */
#define LOOK_MOST 512
#define PIECES_MOST 4096

typedef struct key_request {
    const char *key;
    const brc_key_range *range;
    brc_buf *out;
    uint8_t *found;
    int is_whole; /* a chunk that is read whole: the range is cut out of it afterwards */
    int is_alone; /* given by itself */
} key_request;

static int request_order(const void *a, const void *b)
{
    const key_request *x = a, *y = b;
    const int order = strcmp(x->key, y->key);
    return order != 0 ? order : (x->out > y->out) - (x->out < y->out);
}

/* ---- looking up -------------------------------- */

/* Requests of one array that are read together. */
typedef struct key_batch {
    brc_session *s;
    key_request *requests;
    size_t first, last; /* these */
    brc_key_array *ka;  /* NULL: they have no chunks */
    brc_key_pieces pieces;
} key_batch;

static int add_whole_chunk(key_batch *b, key_request *q, const brc_key_place *place, brc_error *err)
{
    brc_array *a = &place->array->array;
    brc_key_part part;
    brc_key_piece *piece;
    memset(&part, 0, sizeof(part));
    BRC_TRY(brc_array_chunk_ids(a, 1, place->outer, &part.object.id, err));
    *q->found = !brc_oid_is_zero(&part.object.id);
    if (!*q->found)
        return BRC_OK;
    BRC_TRY(brc_key_parts_look(a, &part, 1, place->outer, err));
    BRC_TRY(brc_key_pieces_add(&b->pieces, a, &part, place->outer, &piece, err));
    piece->whole = q->out;
    q->is_whole = 1;
    return BRC_OK;
}

static int add_shard_part(key_batch *b, key_request *q, const brc_key_place *place, brc_error *err)
{
    brc_key_shard *shard = &place->array->shard;
    q->is_alone = q->range == NULL || q->range->kind == BRC_RANGE_ALL;
    if (q->is_alone)
        return BRC_OK;
    int rc = brc_key_shard_plan(shard, &place->array->array, place->outer, err);
    q->is_alone = rc == 0;
    if (rc <= 0)
        return rc;
    *q->found = shard->layout.size > 0;
    return *q->found ? brc_key_shard_part(q->out, place->array, q->range,
                                          (size_t)(q - b->requests), &b->pieces, err)
                     : BRC_OK;
}

static int add_request(key_batch *b, key_request *q, brc_error *err)
{
    brc_key_place place;
    q->out->len = 0;
    q->is_whole = q->is_alone = 0;
    BRC_TRY(brc_key_find(&place, b->s, q->key, err));
    *q->found = place.what != BRC_KEY_NONE;
    if (place.array != NULL)
        b->ka = place.array;
    if (!*q->found)
        return BRC_OK;
    if (place.what == BRC_KEY_IS_CHUNK)
        return place.array->array.meta.nlevels == 0 ? add_whole_chunk(b, q, &place, err)
                                                    : add_shard_part(b, q, &place, err);
    BRC_TRY(brc_key_load_plain(q->out, b->s, &place, err));
    brc_key_cut(q->out, q->range);
    return BRC_OK;
}

/* Within the transaction: as many of them as belong together. A session keeps some arrays, so no
 * key of another one is looked up before this one has been read. */
static int look_at_requests(key_batch *b, size_t n, brc_error *err)
{
    b->last = b->first;
    b->ka = NULL;
    b->pieces.n = 0;
    while (b->last < n && b->last - b->first < LOOK_MOST && b->pieces.n < PIECES_MOST) {
        key_request *q = &b->requests[b->last];
        if (b->ka != NULL && !brc_key_is_of(b->ka, q->key))
            break;
        BRC_TRY(add_request(b, q, err));
        b->last++;
    }
    return BRC_OK;
}

/* ---- reading -------------------------------- */

/* What turned out to have other lengths is done again. */
static int settle_batch(key_batch *b, brc_error *err)
{
    if (b->ka != NULL)
        BRC_TRY(brc_key_shard_settle(&b->ka->shard, &b->ka->array, &b->pieces, err));
    for (size_t i = 0; i < b->pieces.n; i++) {
        const brc_key_piece *piece = brc_key_piece_at(&b->pieces, i);
        if (piece->whole == NULL && piece->is_other)
            b->requests[piece->request].is_alone = 1;
    }
    return BRC_OK;
}

static int give_alone(const key_batch *b, const key_request *q, brc_error *err)
{
    brc_error why = BRC_ERROR_INIT;
    int rc = brc_key_value(q->out, b->s, q->key, q->range, NULL, &why);
    *q->found = rc == BRC_OK;
    if (rc == BRC_OK || rc == BRC_ENOTFOUND)
        return BRC_OK;
    if (err != NULL)
        brc_error_copy(err, &why);
    return rc;
}

static int give_batch(key_batch *b, size_t n, brc_error *err)
{
    BRC_TRY(brc_session_begin_read(b->s, err));
    int rc = look_at_requests(b, n, err);
    if (rc == BRC_OK && b->ka != NULL)
        rc = brc_key_pieces_read(&b->pieces, &b->ka->array, err);
    brc_session_end_read(b->s);
    if (rc == BRC_OK)
        rc = settle_batch(b, err);
    for (size_t i = b->first; i < b->last && rc == BRC_OK; i++) {
        const key_request *q = &b->requests[i];
        if (q->is_alone)
            rc = give_alone(b, q, err);
        else if (q->is_whole)
            brc_key_cut(q->out, q->range);
    }
    b->first = b->last;
    return rc;
}

static int give_all(brc_session *s, key_request *requests, size_t n, brc_error *err)
{
    key_batch b = {.s = s, .requests = requests};
    int rc = BRC_OK;
    while (b.first < n && rc == BRC_OK)
        rc = give_batch(&b, n, err);
    brc_key_pieces_dispose(&b.pieces);
    return rc;
}

/* ---- one state -------------------------------- */

/* Nobody waits while chunks are decoded. Where somebody has changed something in between, all are
 * read again, at last in one transaction. */
static int give_one_state(brc_session *s, key_request *requests, size_t n, brc_error *err)
{
    brc_store *store = s->repo->store;
    brc_session_info before = BRC_SESSION_INFO_INIT, after = BRC_SESSION_INFO_INIT;
    for (int i = 0; i < 3; i++) {
        BRC_TRY(brc_session_stat(&before, s, err));
        BRC_TRY(give_all(s, requests, n, err));
        BRC_TRY(brc_session_stat(&after, s, err));
        if (memcmp(&before, &after, sizeof(before)) == 0)
            return BRC_OK;
    }
    BRC_TRY(brc_session_begin_read(s, err));
    brc_store_hold_read(store, 1);
    int rc = give_all(s, requests, n, err);
    brc_store_hold_read(store, 0);
    brc_session_end_read(s);
    return rc;
}

/* Items of arrays, as long as the caller's version has them. */
static brc_buf *buf_at(brc_buf *out, size_t i)
{
    return (brc_buf *)((char *)out + i * (out->size != 0 ? out->size : sizeof(*out)));
}

static const brc_key_range *range_at(const brc_key_range *ranges, size_t i)
{
    if (ranges == NULL)
        return NULL;
    return (const brc_key_range *)((const char *)ranges + i * ranges->size);
}

int brc_key_get_many(brc_buf *out, uint8_t *found, brc_session *s, const char *const *keys,
                     const brc_key_range *ranges, size_t n, brc_error *err)
{
    void *p;
    if (n == 0)
        return BRC_OK;
    memset(found, 0, n);
    for (size_t i = 0; i < n; i++)
        BRC_TRY(brc_key_range_check(range_at(ranges, i), err));
    BRC_TRY(brc_new_array(&p, n, sizeof(key_request), err));
    key_request *requests = p;
    for (size_t i = 0; i < n; i++)
        requests[i] = (key_request){.key = keys[i], .range = range_at(ranges, i),
                                    .out = buf_at(out, i), .found = &found[i]};
    qsort(requests, n, sizeof(key_request), request_order);
    const key_batch alone = {.s = s};
    int rc = n == 1 ? give_alone(&alone, requests, err) : give_one_state(s, requests, n, err);
    if (rc < 0)
        memset(found, 0, n);
    free(requests);
    return rc;
}
