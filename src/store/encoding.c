/* Encodings: the small numbers in the object index, and the chains behind them. */
#include <stdlib.h>
#include <string.h>

#include "../base/json.h"
#include "db.h"

void brc_encodings_forget(brc_store *store)
{
    for (size_t i = 0; i < store->nencodings; i++) {
        brc_chain_free(store->encodings[i].chain);
        brc_dtype_free(store->encodings[i].type);
        brc_buf_dispose(&store->encodings[i].fill);
        free(store->encodings[i].spec);
    }
    store->nencodings = 0;
}

static int encoding_remember(brc_store *store, int64_t id, const char *spec,
                             brc_encoding_slot **out, brc_error *err)
{
    void *p = store->encodings;
    int rc = brc_grow_array(&p, &store->encodings_cap, store->nencodings + 1,
                            sizeof(brc_encoding_slot), err);
    store->encodings = p;
    if (rc < 0)
        return rc;
    brc_encoding_slot *slot = &store->encodings[store->nencodings];
    memset(slot, 0, sizeof(*slot));
    slot->id = id;
    BRC_TRY(brc_dup(&slot->spec, spec, err));
    slot->digest = brc_hash_encoding(spec);
    store->nencodings++;
    if (out != NULL)
        *out = slot;
    return BRC_OK;
}

int brc_encoding_find(brc_store *store, const char *spec, int64_t *id, brc_error *err)
{
    sqlite3_stmt *st;
    *id = -1;
    for (size_t i = 0; i < store->nencodings; i++) {
        if (strcmp(store->encodings[i].spec, spec) == 0) {
            *id = store->encodings[i].id;
            return BRC_OK;
        }
    }
    BRC_TRY(brc_stmt(store, "SELECT id FROM encoding WHERE spec=?1", &st, err));
    sqlite3_bind_text(st, 1, spec, -1, SQLITE_STATIC);
    int rc = brc_step(store, st, err);
    if (rc < 0)
        return rc;
    if (rc == 0)
        return BRC_OK;
    *id = sqlite3_column_int64(st, 0);
    sqlite3_reset(st);
    return encoding_remember(store, *id, spec, NULL, err);
}

int brc_encoding_intern(brc_store *store, const char *spec, int64_t *id, brc_error *err)
{
    sqlite3_stmt *st;
    BRC_TRY(brc_encoding_find(store, spec, id, err));
    if (*id >= 0)
        return BRC_OK;
    BRC_TRY(brc_stmt(store, "INSERT INTO encoding(spec) VALUES (?1)", &st, err));
    sqlite3_bind_text(st, 1, spec, -1, SQLITE_STATIC);
    BRC_TRY(brc_run(store, st, err));
    *id = sqlite3_last_insert_rowid(store->db);
    return encoding_remember(store, *id, spec, NULL, err);
}

static int encoding_load(brc_store *store, int64_t id, brc_encoding_slot **out, brc_error *err)
{
    sqlite3_stmt *st;
    for (size_t i = 0; i < store->nencodings; i++) {
        if (store->encodings[i].id == id) {
            *out = &store->encodings[i];
            return BRC_OK;
        }
    }
    BRC_TRY(brc_stmt(store, "SELECT spec FROM encoding WHERE id=?1", &st, err));
    sqlite3_bind_int64(st, 1, id);
    int rc = brc_step(store, st, err);
    if (rc < 0)
        return rc;
    const char *spec = rc > 0 ? (const char *)sqlite3_column_text(st, 0) : NULL;
    if (spec == NULL)
        rc = brc_fail(err, BRC_ECORRUPT, "%s is damaged: encoding %lld is missing", store->path,
                      (long long)id);
    else
        rc = encoding_remember(store, id, spec, out, err);
    sqlite3_reset(st);
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

static int encoding_open(brc_store *store, brc_encoding_slot *slot, brc_error *err)
{
    int rc, ndim = 0;
    uint64_t shape[BRC_MAX_NDIM];
    brc_json *spec = NULL;
    BRC_GO(brc_json_parse(&spec, slot->spec, strlen(slot->spec), err));
    if (!encoding_shape(brc_json_member(spec, "shape"), &ndim, shape)) {
        rc = brc_fail(err, BRC_ECORRUPT, "its shape is wrong");
        goto done;
    }
    BRC_GO(brc_dtype_open(&slot->type, store->registry, brc_json_member(spec, "data_type"), err));
    const brc_json *fill = brc_json_member(spec, "fill_value");
    if (fill != NULL)
        BRC_GO(slot->type->ops->parse(slot->type, fill, &slot->fill, err));
    BRC_GO(brc_chain_open(&slot->chain, store->registry, brc_json_member(spec, "codecs"), ndim,
                          shape, slot->type, (brc_span){slot->fill.data, slot->fill.len}, err));
done:
    brc_json_free(spec);
    if (rc < 0) {
        brc_dtype_free(slot->type);
        slot->type = NULL;
        if (rc == BRC_EINVAL) {
            rc = BRC_ECORRUPT;
            if (err != NULL)
                err->code = rc;
        }
        brc_context(err, "%s: encoding %lld", store->path, (long long)slot->id);
    }
    return rc;
}

int brc_encoding_chain(brc_store *store, int64_t id, const brc_chain **out, brc_error *err)
{
    brc_encoding_slot *slot;
    *out = NULL;
    if (id == 0)
        return BRC_OK;
    BRC_TRY(encoding_load(store, id, &slot, err));
    if (slot->chain == NULL && strcmp(slot->spec, "{\"opaque\":true}") != 0)
        BRC_TRY(encoding_open(store, slot, err));
    *out = slot->chain;
    return BRC_OK;
}
