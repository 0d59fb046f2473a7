/* Reads the Zarr store view: values of keys, ranges and many keys at once, and the places of chunks
 * for clients that know arrays only by their keys. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "../../base/alloc.h"
#include "../../base/sized.h"
#include "../stored/stored_out.h"
#include "key_list.h"
#include "key_rows.h"

/* ==== key places ================================ */

/* The number of keys that are looked up in one transaction. */
#define PLACES_MOST 512

typedef struct key_places {
    brc_session *s;
    const char *const *keys;
    int ndim;
    brc_buf *path; /* of the first key's array, from `start` on, without a NUL */
    size_t start;
    uint64_t *index;
    uint8_t *there;
} key_places;

static int is_same_array(const key_places *p, const brc_array *a)
{
    const size_t len = strlen(a->path);
    return p->path->len - p->start == len && memcmp(p->path->data + p->start, a->path, len) == 0;
}

static int place_key(const key_places *p, size_t i, brc_error *err)
{
    brc_key_place place;
    int exists = 0;
    BRC_TRY(brc_key_find(&place, p->s, p->keys[i], err));
    if (place.what != BRC_KEY_IS_CHUNK)
        return brc_fail(err, BRC_ENOTFOUND, "the key '%.200s' is not a chunk's", p->keys[i]);
    brc_array *a = &place.array->array;
    if (a->meta.ndim != p->ndim)
        return brc_fail(err, BRC_EINVAL, "%s has %d dimension%s, not %d", a->path, a->meta.ndim,
                        a->meta.ndim == 1 ? "" : "s", p->ndim);
    if (i == 0)
        BRC_TRY(brc_buf_append(p->path, a->path, strlen(a->path), err));
    if (!is_same_array(p, a))
        return brc_fail(err, BRC_EINVAL,
                        "the keys '%.200s' and '%.200s' belong to different arrays",
                        p->keys[i], p->keys[0]);
    memcpy(p->index + i * (size_t)p->ndim, place.outer, (size_t)p->ndim * sizeof(*p->index));
    if (p->there == NULL)
        return BRC_OK;
    BRC_TRY(brc_stored_exists(&exists, a, place.outer, err));
    p->there[i] = (uint8_t)exists;
    return BRC_OK;
}

int brc_key_places(brc_buf *path, uint64_t *index, uint8_t *there, brc_session *s,
                   const char *const *keys, size_t n, int ndim, brc_error *err)
{
    const key_places p = {s, keys, ndim, path, path->len, index, there};
    int rc = BRC_OK;
    for (size_t i = 0; i < n && rc == BRC_OK;) {
        const size_t end = n - i < PLACES_MOST ? n : i + PLACES_MOST;
        BRC_TRY(brc_session_begin_read(s, err));
        for (; i < end && rc == BRC_OK; i++)
            rc = place_key(&p, i, err);
        brc_session_end_read(s);
    }
    return rc;
}

/* ==== key value ================================ */

/* A request for a key. `out` NULL: only `info`. */
typedef struct value_request {
    brc_session *s;
    const char *key;
    const brc_key_range *range; /* NULL: all */
    brc_buf *out;
    brc_key_info *info;         /* NULL: not wanted */
    uint64_t *decoded;          /* bytes that were decoded for it */
} value_request;

static int no_such_key(const char *key, brc_error *err)
{
    return brc_fail(err, BRC_ENOTFOUND, "there is no key '%.200s'", key);
}

/* ---- limits -------------------------------- */

int brc_key_limit(brc_session *s, const brc_key_limits *limits, brc_error *err)
{
    brc_key_limits own;
    BRC_TRY(brc_sized_in(&own, sizeof(own), sizeof(own), limits, "brc_key_limits", err));
    BRC_TRY(brc_flags_check(own.flags, BRC_KEYS_STORED, "brc_key_limits", err));
    s->key_limits = own;
    return BRC_OK;
}

/* Checks the bytes of a value, or of a part. */
static int limit_bytes(const value_request *q, uint64_t len, brc_error *err)
{
    const uint64_t most = q->s->key_limits.bytes;
    if (q->out == NULL || most == 0 || len <= most)
        return BRC_OK;
    return brc_fail(err, BRC_ELIMIT,
                    "%" PRIu64 " bytes of the key '%.200s' are too many at once, at most %" PRIu64
                    " may be asked for", len, q->key, most);
}

/* Checks what the reading of a part costs before it is read. */
static int limit_part(const value_request *q, const brc_stored_part *part, brc_error *err)
{
    const brc_key_limits *limits = &q->s->key_limits;
    const int is_encoded = part->how == BRC_STORED_ENCODED;
    if ((limits->flags & BRC_KEYS_STORED) &&
        (is_encoded || !brc_is_in_file(part->object.backend)))
        return brc_fail(err, BRC_ELIMIT, "a chunk of the key '%.200s' is not stored as it is",
                        q->key);
    if (!is_encoded || limits->decoded == 0)
        return BRC_OK;
    if (brc_add_u64(*q->decoded, part->object.size, q->decoded) && *q->decoded <= limits->decoded)
        return BRC_OK;
    return brc_fail(err, BRC_ELIMIT,
                    "for the key '%.200s' more than %" PRIu64 " bytes would have to be decoded, "
                    "because its chunks are stored in another encoding: ask for smaller ranges, "
                    "or store them again with 'codecs --rewrite'", q->key, limits->decoded);
}

static int limit_pieces(const value_request *q, const brc_stored_pieces *pieces, brc_error *err)
{
    for (size_t i = 0; i < pieces->n; i++)
        BRC_TRY(limit_part(q, &brc_stored_piece_at(pieces, i)->part, err));
    return BRC_OK;
}

/* ---- ranges -------------------------------- */

/* Computes the part of `size` bytes that a range means. */
static void range_of(const brc_key_range *range, uint64_t size, uint64_t *start, uint64_t *end)
{
    const int kind = range != NULL ? range->kind : BRC_RANGE_ALL;
    *start = 0;
    *end = size;
    if (kind == BRC_RANGE_BETWEEN && range->end < size)
        *end = range->end;
    if (kind == BRC_RANGE_BETWEEN || kind == BRC_RANGE_FROM)
        *start = range->start < size ? range->start : size;
    if (kind == BRC_RANGE_LAST)
        *start = range->start < size ? size - range->start : 0;
    if (*end < *start)
        *end = *start;
}

/* Checks a range from a caller. */
static int key_range_check(const brc_key_range *range, brc_error *err)
{
    if (range == NULL)
        return BRC_OK;
    BRC_TRY(brc_sized_check(range->size, sizeof(*range), "brc_key_range", err));
    if (range->kind >= BRC_RANGE_ALL && range->kind <= BRC_RANGE_LAST)
        return BRC_OK;
    return brc_fail(err, BRC_EINVAL, "%d is not a valid kind of range", range->kind);
}

/* Cuts `out`, which has the whole value, to the range. */
static void key_cut(brc_buf *out, const brc_key_range *range)
{
    uint64_t start, end;
    range_of(range, out->len, &start, &end);
    if (start > 0 && end > start)
        memmove(out->data, out->data + start, (size_t)(end - start));
    out->len = (size_t)(end - start);
}

/* Requests a range of the planned shard: it will be in `out` when the pieces have been read. Within
 * the transaction. */
static int key_shard_part(brc_buf *out, brc_key_array *ka, const brc_key_range *range,
                          size_t request, brc_stored_pieces *pieces, brc_error *err)
{
    uint64_t start, end;
    size_t len;
    range_of(range, ka->shard.layout.size, &start, &end);
    if (!brc_to_size(end - start, &len))
        return brc_fail(err, BRC_ELIMIT, "a value is too large for this machine's memory");
    BRC_TRY(brc_buf_reserve(out, len > 0 ? len : 1, err));
    out->len = len;
    return brc_shard_plan_pieces(&ka->shard, &ka->array, start, end, out->data, request, pieces,
                                err);
}

/* ---- the info of a value -------------------------------- */

static void tell_value(brc_key_info *info, uint64_t len, const brc_oid *tag)
{
    char hex[65];
    if (info == NULL)
        return;
    info->length = len;
    memcpy(info->etag, brc_oid_format(hex, tag), 32);
    info->etag[32] = '\0';
}

static void tell_bytes(brc_key_info *info, const brc_buf *bytes)
{
    brc_oid tag;
    if (info == NULL)
        return;
    const void *data = bytes->len > 0 ? bytes->data : (const void *)"";
    tag = brc_hash_object(BRC_HASH_XXH128, BRC_KIND_LOOSE, data, bytes->len);
    tell_value(info, bytes->len, &tag);
}

/* Sets the info from content id, length and checksum of the bytes: nothing has to be read. */
static void tell_part(brc_key_info *info, const brc_stored_part *part)
{
    uint8_t bytes[48];
    brc_oid tag;
    if (info == NULL)
        return;
    memcpy(bytes, part->object.id.bytes, 32);
    brc_put_u64le(bytes + 32, part->len);
    brc_put_u64le(bytes + 40, part->digest);
    tag = brc_hash_object(BRC_HASH_XXH128, BRC_KIND_LOOSE, bytes, sizeof(bytes));
    tell_value(info, part->len, &tag);
}

/* ---- documents and loose bytes -------------------------------- */

int brc_loose_load(brc_buf *out, brc_store *store, const brc_oid *id, brc_error *err)
{
    brc_object o = {.id = *id}, *one = &o;
    size_t len;
    BRC_TRY(brc_objects_find(store, &one, 1, err));
    if (!o.found || o.kind != BRC_KIND_LOOSE)
        return brc_object_missing(id, err);
    BRC_TRY(brc_object_check_plain(store, &o, err));
    if (!brc_to_size(o.stored, &len))
        return brc_fail(err, BRC_ELIMIT, "a value is too large for this machine's memory");
    BRC_TRY(brc_buf_reserve(out, len > 0 ? len : 1, err));
    BRC_TRY(brc_object_fetch(store, &o, out->data + out->len, err));
    BRC_TRY(brc_object_verify(&o, out->data + out->len, err));
    out->len += len;
    return BRC_OK;
}

/* Appends the bytes of a document or of a loose key; within a transaction. */
static int key_load_plain(brc_buf *out, brc_session *s, const brc_key_place *place,
                          brc_error *err)
{
    brc_json *doc;
    brc_store *store = s->repo->store;
    if (place->what == BRC_KEY_IS_LOOSE)
        return brc_loose_load(out, store, &place->loose, err);
    BRC_TRY(brc_entry_doc(store, &place->entry, &doc, err));
    int rc = brc_json_write(out, doc, BRC_JSON_PRETTY, err);
    brc_json_free(doc);
    return rc;
}

static int give_plain(const value_request *q, const brc_key_place *place, brc_error *err)
{
    brc_buf own = BRC_BUF_INIT, *out = q->out != NULL ? q->out : &own;
    int rc = key_load_plain(out, q->s, place, err);
    brc_session_end_read(q->s);
    if (rc == BRC_OK) {
        tell_bytes(q->info, out);
        key_cut(out, q->range);
    }
    brc_buf_dispose(&own);
    return rc;
}

/* ---- chunks -------------------------------- */

/* Returns 1 with the looked-up chunk of the place, or 0 if there is none. */
static int look_at_value(brc_stored_part *part, const brc_key_place *place, brc_error *err)
{
    brc_array *a = &place->array->array;
    memset(part, 0, sizeof(*part));
    BRC_TRY(brc_array_chunk_ids(a, 1, place->outer, &part->object.id, err));
    if (brc_oid_is_zero(&part->object.id))
        return 0;
    BRC_TRY(brc_stored_look(a, part, 1, place->outer, err));
    return 1;
}

/* Ends the transaction. */
static int give_chunk_value(const value_request *q, const brc_key_place *place, brc_error *err)
{
    brc_array *a = &place->array->array;
    brc_stored_part part;
    int rc = look_at_value(&part, place, err);
    if (rc == 0)
        rc = no_such_key(q->key, err);
    const int is_enough = rc > 0 && q->out == NULL && part.is_known;
    if (rc > 0 && !is_enough)
        rc = limit_part(q, &part, err);
    if (rc >= 0 && !is_enough)
        rc = limit_bytes(q, part.is_known ? part.len : part.object.size, err);
    if (rc < 0 || is_enough)
        brc_array_end_read(a);
    else
        rc = brc_stored_part_read(&part, a, place->outer, q->out, &place->array->shard, err);
    if (rc < 0)
        return rc;
    tell_part(q->info, &part);
    if (q->out != NULL)
        key_cut(q->out, q->range);
    return BRC_OK;
}

/* ---- shards -------------------------------- */

/* Gives the whole shard: the pool puts it together. Ends the transaction. */
static int give_whole_shard(const value_request *q, const brc_key_place *place, brc_error *err)
{
    int there;
    brc_array *a = &place->array->array;
    int rc = brc_stored_chunk(a, place->outer, q->out, &there, err);
    brc_array_end_read(a);
    return rc < 0 || there ? rc : no_such_key(q->key, err);
}

/* Appends a part of the planned shard. Ends the transaction. Returns 0 if the shard must be planned
 * again. */
static int give_shard_range(const value_request *q, brc_key_array *ka, brc_error *err)
{
    brc_array *a = &ka->array;
    brc_stored_pieces pieces = {0};
    uint64_t start, end;
    range_of(q->range, ka->shard.layout.size, &start, &end);
    int rc = limit_bytes(q, end - start, err);
    if (rc == BRC_OK)
        rc = key_shard_part(q->out, ka, q->range, 0, &pieces, err);
    if (rc == BRC_OK)
        rc = limit_pieces(q, &pieces, err);
    if (rc == BRC_OK)
        rc = brc_stored_pieces_read(&pieces, a, err);
    brc_array_end_read(a);
    if (rc == BRC_OK)
        rc = brc_shard_plan_settle(&ka->shard, a, &pieces, err);
    brc_stored_pieces_dispose(&pieces);
    return rc;
}

/* Returns 1 when done, 0 if another try in a new transaction is needed. Ends the transaction. */
static int give_planned_shard(const value_request *q, const brc_key_place *place, brc_error *err)
{
    brc_array *a = &place->array->array;
    brc_shard_plan *shard = &place->array->shard;
    int rc = brc_shard_plan_make(shard, a, place->outer, err);
    if (rc == 0) {
        rc = limit_pieces(q, &shard->missing, err);
        if (rc == BRC_OK)
            return brc_shard_plan_learn(shard, a, err);
    }
    if (rc > 0 && shard->layout.size == 0)
        rc = no_such_key(q->key, err);
    if (rc < 0 || q->out == NULL)
        brc_array_end_read(a);
    else
        rc = give_shard_range(q, place->array, err);
    if (rc > 0)
        tell_value(q->info, shard->layout.size, &shard->tag);
    return rc;
}

/* ---- any key -------------------------------- */

/* The number of tries before it gives up on a file that changes during each. */
#define TRIES_MOST 100

/* Returns 1 when done, 0 if another try is needed. */
static int give_value(const value_request *q, brc_error *err)
{
    brc_key_place place;
    BRC_TRY(brc_session_begin_read(q->s, err));
    int rc = brc_key_find(&place, q->s, q->key, err);
    if (rc == BRC_OK && place.what == BRC_KEY_NONE)
        rc = no_such_key(q->key, err);
    if (rc < 0) {
        brc_session_end_read(q->s);
        return rc;
    }
    if (place.what != BRC_KEY_IS_CHUNK)
        rc = give_plain(q, &place, err);
    else if (place.array->array.meta.nlevels == 0)
        rc = give_chunk_value(q, &place, err);
    else if (q->info == NULL && q->out != NULL &&
             (q->range == NULL || q->range->kind == BRC_RANGE_ALL))
        rc = give_whole_shard(q, &place, err);
    else
        return give_planned_shard(q, &place, err);
    return rc < 0 ? rc : 1;
}

static int hand_out_info(brc_key_info *given, const brc_key_info *own, brc_error *err)
{
    if (given == NULL)
        return BRC_OK;
    return brc_sized_out(given, own, sizeof(*own), sizeof(*own), "brc_key_info", err);
}

/* Begins a read transaction, and ends it before anything is decoded. */
static int key_value_get(brc_buf *out, brc_session *s, const char *key, const brc_key_range *range,
                         brc_key_info *given, brc_error *err)
{
    brc_key_info info = BRC_KEY_INFO_INIT;
    uint64_t decoded = 0;
    const value_request q = {s, key, range, out, given != NULL ? &info : NULL, &decoded};
    BRC_TRY(key_range_check(range, err));
    if (given != NULL)
        BRC_TRY(brc_sized_check(given->size, sizeof(info), "brc_key_info", err));
    for (int i = 0; i < TRIES_MOST; i++) {
        if (out != NULL)
            out->len = 0;
        int rc = give_value(&q, err);
        if (rc != 0)
            return rc < 0 ? rc : hand_out_info(given, &info, err);
    }
    return brc_fail(err, BRC_EBUSY, "the key '%.200s' changed during every try to read it", key);
}

/* ==== key many ================================ */

/*
 * Reads many keys at once. Keys are looked up in the order of their names, so that those of one
 * array come together; their chunks, and the chunks that ranges of shards meet, go through the pool
 * together. Whole shards, and shards with chunks whose lengths must be learned, are read one by
 * one: each of them uses the pool itself.
 */

/* The most keys, and pieces, that are looked up in one transaction. */
#define LOOK_MOST 512
#define PIECES_MOST 4096

typedef struct key_request {
    const char *key;
    const brc_key_range *range;
    brc_buf *out;
    uint8_t *found;
    int is_whole; /* a chunk that is read whole: the range is cut out of it afterwards */
    int is_alone; /* read by itself */
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
    size_t first, last; /* these requests */
    brc_key_array *ka;  /* NULL: they have no chunks */
    brc_stored_pieces pieces;
} key_batch;

static int add_whole_chunk(key_batch *b, key_request *q, const brc_key_place *place, brc_error *err)
{
    brc_stored_part part;
    brc_stored_piece *piece;
    const int there = look_at_value(&part, place, err);
    *q->found = there > 0;
    if (there <= 0)
        return there;
    BRC_TRY(brc_stored_pieces_add(&b->pieces, &place->array->array, &part, place->outer, &piece,
                                  err));
    piece->whole = q->out;
    q->is_whole = 1;
    return BRC_OK;
}

static int add_shard_part(key_batch *b, key_request *q, const brc_key_place *place, brc_error *err)
{
    brc_shard_plan *shard = &place->array->shard;
    q->is_alone = q->range == NULL || q->range->kind == BRC_RANGE_ALL;
    if (q->is_alone)
        return BRC_OK;
    int rc = brc_shard_plan_make(shard, &place->array->array, place->outer, err);
    q->is_alone = rc == 0;
    if (rc <= 0)
        return rc;
    *q->found = shard->layout.size > 0;
    return *q->found ? key_shard_part(q->out, place->array, q->range,
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
    BRC_TRY(key_load_plain(q->out, b->s, &place, err));
    key_cut(q->out, q->range);
    return BRC_OK;
}

/* Looks up as many requests as belong together, within the transaction. A session keeps only some
 * arrays, so no key of another array is looked up before this one has been read. */
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

/* Repeats the requests for which a length turned out to be different. */
static int settle_batch(key_batch *b, brc_error *err)
{
    if (b->ka != NULL)
        BRC_TRY(brc_shard_plan_settle(&b->ka->shard, &b->ka->array, &b->pieces, err));
    for (size_t i = 0; i < b->pieces.n; i++) {
        const brc_stored_piece *piece = brc_stored_piece_at(&b->pieces, i);
        if (piece->whole == NULL && piece->is_other)
            b->requests[piece->request].is_alone = 1;
    }
    return BRC_OK;
}

static int give_alone(const key_batch *b, const key_request *q, brc_error *err)
{
    brc_error why = BRC_ERROR_INIT;
    int rc = key_value_get(q->out, b->s, q->key, q->range, NULL, &why);
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
        rc = brc_stored_pieces_read(&b->pieces, &b->ka->array, err);
    brc_session_end_read(b->s);
    if (rc == BRC_OK)
        rc = settle_batch(b, err);
    for (size_t i = b->first; i < b->last && rc == BRC_OK; i++) {
        const key_request *q = &b->requests[i];
        if (q->is_alone)
            rc = give_alone(b, q, err);
        else if (q->is_whole)
            key_cut(q->out, q->range);
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
    brc_stored_pieces_dispose(&b.pieces);
    return rc;
}

/* ---- one state -------------------------------- */

/* Reads all keys as one state, without making anybody wait while chunks are decoded. If somebody
 * changes something meanwhile, reads all of them again, the last time in one transaction. */
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

/* Return items of arrays, whose size depends on the caller's version. */
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
        BRC_TRY(key_range_check(range_at(ranges, i), err));
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

/* ==== key view ================================ */

/* The Zarr store view: a repository as the keys and values of a Zarr directory. */

/* ---- existence -------------------------------- */

int brc_key_exists(int *exists, brc_session *s, const char *key, brc_error *err)
{
    brc_key_place place;
    *exists = 0;
    BRC_TRY(brc_session_begin_read(s, err));
    int rc = brc_key_find(&place, s, key, err);
    if (rc == BRC_OK && place.what == BRC_KEY_IS_CHUNK)
        rc = brc_stored_exists(exists, &place.array->array, place.outer, err);
    else if (rc == BRC_OK)
        *exists = place.what != BRC_KEY_NONE;
    brc_session_end_read(s);
    return rc;
}

int brc_key_get(brc_buf *out, brc_session *s, const char *key, const brc_key_range *range,
                brc_key_info *info, brc_error *err)
{
    int exists;
    if (out != NULL || info != NULL)
        return key_value_get(out, s, key, range, info, err);
    BRC_TRY(key_range_check(range, err));
    BRC_TRY(brc_key_exists(&exists, s, key, err));
    return exists ? BRC_OK : no_such_key(key, err);
}

/* ---- sizes -------------------------------- */

static int add_key_size(uint64_t *bytes, brc_session *s, const char *key, brc_error *err)
{
    brc_error why = BRC_ERROR_INIT;
    brc_key_info info = BRC_KEY_INFO_INIT;
    int rc = brc_key_get(NULL, s, key, NULL, &info, &why);
    if (rc == BRC_ENOTFOUND) /* it has just been removed */
        return BRC_OK;
    if (rc < 0 && err != NULL)
        brc_error_copy(err, &why);
    if (rc == BRC_OK && !brc_add_u64(*bytes, info.length, bytes))
        rc = brc_fail(err, BRC_ELIMIT, "the keys have more bytes than 64 bits can count");
    return rc;
}

int brc_keys_size(uint64_t *bytes, brc_session *s, const char *prefix, brc_error *err)
{
    brc_iter *it;
    const char *key;
    int rc;
    *bytes = 0;
    BRC_TRY(brc_keys(&it, s, prefix, 0, err));
    while ((rc = brc_next(it, &key, err)) > 0) {
        rc = add_key_size(bytes, s, key, err);
        if (rc < 0)
            break;
    }
    brc_iter_free(it);
    return rc;
}
