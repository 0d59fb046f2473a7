#include "encoding.h"

#include <stdlib.h>
#include <string.h>

#include "../base/alloc.h"
#include "../base/hash.h"
#include "db.h"

/* ==== encoding cache ================================ */

static void slot_close(brc_encoding_slot *slot)
{
    brc_chain_free(slot->chain);
    brc_dtype_free(slot->type);
    brc_buf_dispose(&slot->fill);
    slot->chain = NULL;
    slot->type = NULL;
}

void brc_encoding_cache_forget(brc_encoding_cache *cache)
{
    for (size_t i = 0; i < cache->n; i++)
        cache->slots[i].id = 0;
}

void brc_encoding_cache_dispose(brc_encoding_cache *cache)
{
    for (size_t i = 0; i < cache->n; i++) {
        slot_close(&cache->slots[i]);
        free(cache->slots[i].spec);
    }
    free(cache->slots);
    *cache = (brc_encoding_cache){ NULL, 0, 0 };
}

brc_encoding_slot *brc_encoding_cache_by_id(const brc_encoding_cache *cache, int64_t id)
{
    for (size_t i = 0; i < cache->n && id != 0; i++)
        if (cache->slots[i].id == id)
            return &cache->slots[i];
    return NULL;
}

static brc_encoding_slot *slot_with_spec(const brc_encoding_cache *cache, const char *spec,
                                         int is_known)
{
    for (size_t i = 0; i < cache->n; i++)
        if ((cache->slots[i].id != 0) == is_known && strcmp(cache->slots[i].spec, spec) == 0)
            return &cache->slots[i];
    return NULL;
}

brc_encoding_slot *brc_encoding_cache_by_spec(const brc_encoding_cache *cache, const char *spec)
{
    return slot_with_spec(cache, spec, 1);
}

int brc_encoding_cache_add(brc_encoding_cache *cache, int64_t id, const char *spec,
                           brc_encoding_slot **out, brc_error *err)
{
    void *grown = cache->slots;
    *out = slot_with_spec(cache, spec, 0);
    if (*out != NULL) {
        (*out)->id = id;
        (*out)->seen = 0;
        return BRC_OK;
    }
    int rc = brc_grow_array(&grown, &cache->cap, cache->n + 1, sizeof(brc_encoding_slot), err);
    cache->slots = grown;
    if (rc < 0)
        return rc;
    brc_encoding_slot *slot = &cache->slots[cache->n];
    memset(slot, 0, sizeof(*slot));
    slot->id = id;
    BRC_TRY(brc_dup(&slot->spec, spec, err));
    slot->digest = brc_hash_encoding(spec);
    cache->n++;
    *out = slot;
    return BRC_OK;
}

/* ---- chains -------------------------------- */

static int encoding_shape(const brc_json *json, int *ndim, uint64_t *shape)
{
    size_t n = 0;
    if (brc_json_kind(json) != BRC_JSON_ARRAY || brc_json_count(json) > BRC_MAX_NDIM)
        return 0;
    for (; n < brc_json_count(json); n++)
        if (!brc_json_uint(brc_json_item(json, n), INT64_MAX, &shape[n]))
            return 0;
    *ndim = (int)n;
    return 1;
}

/* Opens the chain of documents, which has only codecs. */
static int slot_open_bytes(brc_encoding_slot *slot, const brc_registry *registry,
                           const brc_json *spec, brc_error *err)
{
    BRC_TRY(brc_dtype_open(&slot->type, registry, NULL, "uint8", err));
    return brc_chain_open_bytes(&slot->chain, registry, brc_json_member(spec, "codecs"), slot->type,
                                err);
}

static int slot_open(brc_encoding_slot *slot, const brc_registry *registry, brc_error *err)
{
    int rc, ndim = 0;
    uint64_t shape[BRC_MAX_NDIM];
    brc_json *spec = NULL;
    BRC_GO(brc_json_parse(&spec, slot->spec, strlen(slot->spec), 0, err));
    if (brc_json_member(spec, "shape") == NULL && brc_json_member(spec, "data_type") == NULL) {
        rc = slot_open_bytes(slot, registry, spec, err);
        goto done;
    }
    if (!encoding_shape(brc_json_member(spec, "shape"), &ndim, shape))
        BRC_GO(brc_fail(err, BRC_ECORRUPT, "its shape is wrong"));
    BRC_GO(brc_dtype_open(&slot->type, registry, brc_json_member(spec, "data_type"), NULL, err));
    const brc_json *fill = brc_json_member(spec, "fill_value");
    if (fill != NULL)
        BRC_GO(slot->type->ops->parse(slot->type, fill, &slot->fill, err));
    BRC_GO(brc_chain_open(&slot->chain, registry, brc_json_member(spec, "codecs"), ndim, shape,
                          slot->type, (brc_span){ slot->fill.data, slot->fill.len }, err));
done:
    brc_json_free(spec);
    if (rc < 0)
        slot_close(slot);
    return rc;
}

int brc_encoding_slot_chain(brc_encoding_slot *slot, const brc_registry *registry,
                            const brc_chain **out, brc_error *err)
{
    int rc = BRC_OK;
    *out = NULL;
    if (slot->chain == NULL && strcmp(slot->spec, "{\"opaque\":true}") != 0)
        rc = slot_open(slot, registry, err);
    if (rc == BRC_EINVAL) {
        rc = BRC_ECORRUPT;
        if (err != NULL)
            brc_error_recode(err, rc);
    }
    *out = slot->chain;
    return rc;
}

/* ==== encoding ================================ */

/* Encodings: the small numbers in the hash index, and their specifications. */

int brc_encoding_find(brc_store *store, const char *spec, int64_t *id, brc_error *err)
{
    sqlite3_stmt *st;
    brc_encoding_slot *slot = brc_encoding_cache_by_spec(&store->encodings, spec);
    *id = slot != NULL ? slot->id : -1;
    if (slot != NULL)
        return BRC_OK;
    BRC_TRY(brc_stmt(store, "SELECT id FROM encoding WHERE spec=?1", &st, err));
    sqlite3_bind_text(st, 1, spec, -1, SQLITE_STATIC);
    int rc = brc_step(store, st, err);
    if (rc < 0)
        return rc;
    if (rc == 0)
        return BRC_OK;
    *id = sqlite3_column_int64(st, 0);
    sqlite3_reset(st);
    return brc_encoding_cache_add(&store->encodings, *id, spec, &slot, err);
}

/* Stores whether the encoding's row exists: gc --expunge of another handle removes rows that no
 * object has, so a slot in memory may be out of date. */
static int row_is_there(brc_store *store, const char *spec, int *is_there, brc_error *err)
{
    sqlite3_stmt *st;
    brc_encoding_slot *slot = brc_encoding_cache_by_spec(&store->encodings, spec);
    *is_there = slot != NULL && slot->seen == store->begun;
    if (slot == NULL || *is_there)
        return BRC_OK;
    BRC_TRY(brc_stmt(store, "SELECT 1 FROM encoding WHERE id=?1 AND spec=?2", &st, err));
    sqlite3_bind_int64(st, 1, slot->id);
    sqlite3_bind_text(st, 2, spec, -1, SQLITE_STATIC);
    BRC_TRY(*is_there = brc_step(store, st, err));
    sqlite3_reset(st);
    if (*is_there)
        slot->seen = store->begun;
    else
        slot->id = 0;
    return BRC_OK;
}

int brc_encoding_intern(brc_store *store, const char *spec, int64_t *id, brc_error *err)
{
    int is_there;
    sqlite3_stmt *st;
    brc_encoding_slot *slot;
    BRC_TRY(brc_bulk_resume(store, NULL, err));
    BRC_TRY(row_is_there(store, spec, &is_there, err));
    BRC_TRY(brc_encoding_find(store, spec, id, err));
    if (*id >= 0)
        return BRC_OK;
    BRC_TRY(brc_stmt(store, "INSERT INTO encoding(spec) VALUES (?1) ON CONFLICT DO NOTHING", &st,
                     err));
    sqlite3_bind_text(st, 1, spec, -1, SQLITE_STATIC);
    BRC_TRY(brc_run(store, st, err));
    if (sqlite3_changes(store->db) == 0) /* a bulk write waited, and another has added it */
        return brc_encoding_find(store, spec, id, err);
    *id = sqlite3_last_insert_rowid(store->db);
    return brc_encoding_cache_add(&store->encodings, *id, spec, &slot, err);
}

static int encoding_load(brc_store *store, int64_t id, brc_encoding_slot **out, brc_error *err)
{
    brc_buf spec = BRC_BUF_INIT;
    *out = brc_encoding_cache_by_id(&store->encodings, id);
    if (*out != NULL)
        return BRC_OK;
    int rc = brc_row_text(store, "SELECT spec FROM encoding WHERE id=?1", id, "encoding", &spec,
                          err);
    if (rc == BRC_OK)
        rc = brc_encoding_cache_add(&store->encodings, id, (const char *)spec.data, out, err);
    brc_buf_dispose(&spec);
    return rc;
}

int brc_encoding_spec(brc_store *store, int64_t id, const char **spec, brc_error *err)
{
    brc_encoding_slot *slot;
    *spec = NULL;
    if (id == 0)
        return BRC_OK;
    BRC_TRY(encoding_load(store, id, &slot, err));
    *spec = slot->spec;
    return BRC_OK;
}

int brc_encoding_digest(brc_store *store, int64_t id, uint64_t *digest, brc_error *err)
{
    brc_encoding_slot *slot;
    *digest = 0;
    if (id == 0)
        return BRC_OK;
    BRC_TRY(encoding_load(store, id, &slot, err));
    *digest = slot->digest;
    return BRC_OK;
}

int brc_encoding_chain(brc_store *store, int64_t id, const brc_chain **out, brc_error *err)
{
    brc_encoding_slot *slot;
    *out = NULL;
    if (id == 0)
        return BRC_OK;
    BRC_TRY(encoding_load(store, id, &slot, err));
    int rc = brc_encoding_slot_chain(slot, store->registry, out, err);
    if (rc < 0)
        brc_context(err, "%s: encoding %lld", store->path, (long long)id);
    return rc;
}

/* ==== document ================================ */

/*
 * Documents as they are stored: a document that compresses well is compressed, in an encoding of
 * bytes of any length (docs/FORMAT.md, section 4).
 */

/* Smaller documents share rows uncompressed, and are read more often than they are stored. */
#define COMPRESSED_LEAST 1024

static int document_chain(brc_store *store, int64_t encoding, const brc_chain **out, brc_error *err)
{
    BRC_TRY(brc_encoding_chain(store, encoding, out, err));
    if (*out == NULL || !brc_chain_takes_bytes(*out))
        return brc_fail(err, BRC_ECORRUPT, "%s is damaged: a document has an encoding of chunks",
                        store->path);
    return store->document_scratch != NULL ? BRC_OK
                                           : brc_scratch_new(&store->document_scratch, err);
}

int brc_document_encode(brc_store *store, brc_span text, brc_buf *out, int64_t *encoding,
                        brc_error *err)
{
    const brc_chain *chain;
    *encoding = 0;
    if (text.len < COMPRESSED_LEAST)
        return BRC_OK;
    BRC_TRY(brc_encoding_intern(store, BRC_DOCUMENT_SPEC, encoding, err));
    BRC_TRY(document_chain(store, *encoding, &chain, err));
    BRC_TRY(brc_chain_encode(chain, store->document_scratch, text, out, err));
    if (out->len > text.len - text.len / 100 * 3)
        *encoding = 0;
    return BRC_OK;
}

int brc_document_decode(brc_store *store, int64_t encoding, brc_span stored, brc_buf *out,
                        brc_error *err)
{
    const brc_chain *chain;
    brc_buf text = {.limit = (size_t)BRC_OBJECT_MAX};
    if (encoding == 0)
        return brc_buf_append(out, stored.data, stored.len, err);
    BRC_TRY(document_chain(store, encoding, &chain, err));
    int rc = brc_chain_decode(chain, store->document_scratch, stored, NULL, &text, err);
    if (rc == BRC_OK)
        rc = brc_buf_append(out, text.data, text.len, err);
    brc_buf_dispose(&text);
    return rc;
}
