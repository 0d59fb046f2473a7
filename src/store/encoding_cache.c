#include "encoding_cache.h"

#include <stdlib.h>
#include <string.h>

#include "../base/alloc.h"
#include "../base/hash.h"

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

/* That of documents: the codecs alone. */
static int slot_open_bytes(brc_encoding_slot *slot, const brc_registry *registry,
                           const brc_json *spec, brc_error *err)
{
    BRC_TRY(brc_dtype_open_name(&slot->type, registry, "uint8", err));
    return brc_chain_open_bytes(&slot->chain, registry, brc_json_member(spec, "codecs"), slot->type,
                                err);
}

static int slot_open(brc_encoding_slot *slot, const brc_registry *registry, brc_error *err)
{
    int rc, ndim = 0;
    uint64_t shape[BRC_MAX_NDIM];
    brc_json *spec = NULL;
    BRC_GO(brc_json_parse(&spec, slot->spec, strlen(slot->spec), err));
    if (brc_json_member(spec, "shape") == NULL && brc_json_member(spec, "data_type") == NULL) {
        rc = slot_open_bytes(slot, registry, spec, err);
        goto done;
    }
    if (!encoding_shape(brc_json_member(spec, "shape"), &ndim, shape))
        BRC_GO(brc_fail(err, BRC_ECORRUPT, "its shape is wrong"));
    BRC_GO(brc_dtype_open(&slot->type, registry, brc_json_member(spec, "data_type"), err));
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
