#include "../base/sized.h"
#include "key_value.h"

#include <stdlib.h>
#include <string.h>

#include "stored_chunk.h"

/* What is asked of a key. `out` NULL: only `info`. */
typedef struct value_request {
    brc_session *s;
    const char *key;
    const brc_key_range *range; /* NULL: all */
    brc_buf *out;
    brc_key_info *info;         /* NULL: not asked for */
} value_request;

static int no_such_key(const char *key, brc_error *err)
{
    return brc_fail(err, BRC_ENOTFOUND, "there is no key '%.200s'", key);
}

/* ---- ranges -------------------------------- */

/* The part of `size` bytes that a range means. */
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

int brc_key_range_check(const brc_key_range *range, brc_error *err)
{
    if (range == NULL)
        return BRC_OK;
    BRC_TRY(brc_sized_check(range->size, sizeof(*range), "brc_key_range", err));
    if (range->kind >= BRC_RANGE_ALL && range->kind <= BRC_RANGE_LAST)
        return BRC_OK;
    return brc_fail(err, BRC_EINVAL, "there is no range of kind %d", range->kind);
}

void brc_key_cut(brc_buf *out, const brc_key_range *range)
{
    uint64_t start, end;
    range_of(range, out->len, &start, &end);
    if (start > 0 && end > start)
        memmove(out->data, out->data + start, (size_t)(end - start));
    out->len = (size_t)(end - start);
}

int brc_key_shard_part(brc_buf *out, brc_key_array *ka, const brc_key_range *range, size_t request,
                       brc_key_pieces *pieces, brc_error *err)
{
    uint64_t start, end;
    size_t len;
    range_of(range, ka->shard.layout.size, &start, &end);
    if (!brc_to_size(end - start, &len))
        return brc_fail(err, BRC_ELIMIT, "a value is too large for this machine's memory");
    BRC_TRY(brc_buf_reserve(out, len > 0 ? len : 1, err));
    out->len = len;
    return brc_key_shard_pieces(&ka->shard, &ka->array, start, end, out->data, request, pieces,
                                err);
}

/* ---- what is told of a value -------------------------------- */

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

/* By content, its length and the checksum of its bytes: nothing has to be read for it. */
static void tell_part(brc_key_info *info, const brc_key_part *part)
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

int brc_key_load_plain(brc_buf *out, brc_session *s, const brc_key_place *place, brc_error *err)
{
    brc_json *doc;
    brc_store *store = s->repo->store;
    if (place->what == BRC_KEY_IS_LOOSE)
        return brc_loose_load(out, store, &place->loose, err);
    BRC_TRY(brc_entry_doc(store, &place->entry, &doc, err));
    int rc = brc_json_write_pretty(out, doc, err);
    brc_json_free(doc);
    return rc;
}

static int give_plain(const value_request *q, const brc_key_place *place, brc_error *err)
{
    brc_buf own = BRC_BUF_INIT, *out = q->out != NULL ? q->out : &own;
    int rc = brc_key_load_plain(out, q->s, place, err);
    brc_session_end_read(q->s);
    if (rc == BRC_OK) {
        tell_bytes(q->info, out);
        brc_key_cut(out, q->range);
    }
    brc_buf_dispose(&own);
    return rc;
}

/* ---- chunks -------------------------------- */

/* Ends the transaction. */
static int read_key_part(const value_request *q, brc_array *a, brc_key_part *part, brc_error *err)
{
    brc_buf stored = BRC_BUF_INIT, own = BRC_BUF_INIT;
    brc_buf *out = q->out != NULL ? q->out : &own;
    const brc_key_part before = *part;
    const int passes = brc_key_part_passes(part);
    int rc = brc_key_part_fetch(a, part, passes ? out : &stored, err);
    brc_array_end_read(a);
    if (rc == BRC_OK)
        rc = passes ? brc_key_part_check(part, out, err)
                    : brc_key_part_transcode(a, part, &stored, out, err);
    const brc_key_part *const one = part;
    if (rc == BRC_OK && (!before.is_known || before.digest != part->digest))
        brc_key_parts_remember(a, &one, 1);
    brc_buf_dispose(&stored);
    brc_buf_dispose(&own);
    return rc;
}

static int give_chunk_value(const value_request *q, const brc_key_place *place, brc_error *err)
{
    brc_array *a = &place->array->array;
    brc_key_part part;
    int rc;
    memset(&part, 0, sizeof(part));
    rc = brc_array_chunk_ids(a, 1, place->outer, &part.object.id, err);
    if (rc == BRC_OK && brc_oid_is_zero(&part.object.id))
        rc = no_such_key(q->key, err);
    else if (rc == BRC_OK)
        rc = brc_key_parts_look(a, &part, 1, place->outer, err);
    if (rc < 0 || (q->out == NULL && part.is_known))
        brc_array_end_read(a);
    else if ((rc = read_key_part(q, a, &part, err)) < 0)
        brc_array_name_chunk(a, place->outer, err);
    if (rc < 0)
        return rc;
    tell_part(q->info, &part);
    if (q->out != NULL)
        brc_key_cut(q->out, q->range);
    return BRC_OK;
}

/* ---- shards -------------------------------- */

/* All of it: the pool puts it together. Ends the transaction. */
static int give_whole_shard(const value_request *q, const brc_key_place *place, brc_error *err)
{
    int there;
    brc_array *a = &place->array->array;
    int rc = brc_stored_chunk(a, place->outer, q->out, &there, err);
    brc_array_end_read(a);
    return rc < 0 || there ? rc : no_such_key(q->key, err);
}

/* Appends a part of the planned shard. Ends the transaction. 0: plan again. */
static int give_shard_range(const value_request *q, brc_key_array *ka, brc_error *err)
{
    brc_array *a = &ka->array;
    brc_key_pieces pieces = {0};
    int rc = brc_key_shard_part(q->out, ka, q->range, 0, &pieces, err);
    if (rc == BRC_OK)
        rc = brc_key_pieces_read(&pieces, a, err);
    brc_array_end_read(a);
    if (rc == BRC_OK)
        rc = brc_key_shard_settle(&ka->shard, a, &pieces, err);
    brc_key_pieces_dispose(&pieces);
    return rc;
}

/* 1 when it is done, 0 if it must be tried again in a new transaction. Ends this one. */
static int give_planned_shard(const value_request *q, const brc_key_place *place, brc_error *err)
{
    brc_array *a = &place->array->array;
    brc_key_shard *shard = &place->array->shard;
    int rc = brc_key_shard_plan(shard, a, place->outer, err);
    if (rc == 0)
        return brc_key_shard_learn(shard, a, err);
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

/* Tries before a file that changes under every one of them is given up. */
#define TRIES_MOST 100

/* 1 when it is done, 0 if it must be tried again. */
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

int brc_key_value(brc_buf *out, brc_session *s, const char *key, const brc_key_range *range,
                  brc_key_info *given, brc_error *err)
{
    brc_key_info info = BRC_KEY_INFO_INIT;
    const value_request q = {s, key, range, out, given != NULL ? &info : NULL};
    BRC_TRY(brc_key_range_check(range, err));
    if (given != NULL)
        BRC_TRY(brc_sized_check(given->size, sizeof(info), "brc_key_info", err));
    for (int i = 0; i < TRIES_MOST; i++) {
        if (out != NULL)
            out->len = 0;
        int rc = give_value(&q, err);
        if (rc != 0)
            return rc < 0 ? rc : hand_out_info(given, &info, err);
    }
    return brc_fail(err, BRC_EBUSY, "the key '%.200s' has changed each time that it was looked at",
                    key);
}
