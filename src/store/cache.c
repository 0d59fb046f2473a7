/* A chained hash table threaded on a list from newest to oldest. */
#include "cache.h"

#include <stdlib.h>
#include <string.h>

#include "../base/alloc.h"

void brc_cache_init(brc_cache *cache, size_t limit)
{
    memset(cache, 0, sizeof(*cache));
    cache->limit = limit;
}

/* The id is a hash already: its first bytes choose the bucket. */
static size_t cache_bucket(const brc_cache *cache, const brc_oid *id)
{
    uint64_t h;
    memcpy(&h, id->bytes, sizeof(h));
    return (size_t)(h & (cache->nbuckets - 1));
}

static void cache_unlink_age(brc_cache *cache, brc_cached *e)
{
    if (e->newer != NULL)
        e->newer->older = e->older;
    else
        cache->newest = e->older;
    if (e->older != NULL)
        e->older->newer = e->newer;
    else
        cache->oldest = e->newer;
}

static void cache_link_newest(brc_cache *cache, brc_cached *e)
{
    e->newer = NULL;
    e->older = cache->newest;
    if (cache->newest != NULL)
        cache->newest->newer = e;
    else
        cache->oldest = e;
    cache->newest = e;
}

static void cache_remove(brc_cache *cache, brc_cached *e)
{
    brc_cached **at = &cache->buckets[cache_bucket(cache, &e->id)];
    while (*at != e)
        at = &(*at)->next_in_bucket;
    *at = e->next_in_bucket;
    cache_unlink_age(cache, e);
    cache->count--;
    cache->bytes -= e->len;
    free(e);
}

static void cache_remove_where(brc_cache *cache, int pinned)
{
    for (brc_cached *e = cache->oldest, *newer; e != NULL; e = newer) {
        newer = e->newer;
        if (e->pinned == pinned)
            cache_remove(cache, e);
    }
}

void brc_cache_dispose(brc_cache *cache)
{
    for (brc_cached *e = cache->newest, *older; e != NULL; e = older) {
        older = e->older;
        free(e);
    }
    free(cache->buckets);
    memset(cache, 0, sizeof(*cache));
}

static brc_cached *cache_lookup(const brc_cache *cache, const brc_oid *id)
{
    if (cache->nbuckets == 0)
        return NULL;
    brc_cached *e = cache->buckets[cache_bucket(cache, id)];
    while (e != NULL && memcmp(&e->id, id, sizeof(*id)) != 0)
        e = e->next_in_bucket;
    return e;
}

const brc_cached *brc_cache_find(brc_cache *cache, const brc_oid *id)
{
    brc_cached *e = cache_lookup(cache, id);
    if (e != NULL && e != cache->newest) {
        cache_unlink_age(cache, e);
        cache_link_newest(cache, e);
    }
    return e;
}

static int cache_grow(brc_cache *cache, brc_error *err)
{
    size_t n = cache->nbuckets == 0 ? 256 : cache->nbuckets * 2;
    void *p;
    BRC_TRY(brc_new_array(&p, n, sizeof(brc_cached *), err));
    free(cache->buckets);
    cache->buckets = p;
    cache->nbuckets = n;
    for (brc_cached *e = cache->newest; e != NULL; e = e->older) {
        brc_cached **bucket = &cache->buckets[cache_bucket(cache, &e->id)];
        e->next_in_bucket = *bucket;
        *bucket = e;
    }
    return BRC_OK;
}

static void cache_make_room(brc_cache *cache, size_t len)
{
    for (brc_cached *e = cache->oldest, *newer; e != NULL && cache->bytes + len > cache->limit;
         e = newer) {
        newer = e->newer;
        if (!e->pinned)
            cache_remove(cache, e);
    }
}

int brc_cache_add(brc_cache *cache, const brc_oid *id, int kind, const void *data, size_t len,
                  int pinned, const brc_cached **out, brc_error *err)
{
    brc_cached *e = cache_lookup(cache, id);
    if (e == NULL) {
        void *p;
        if (cache->count >= cache->nbuckets)
            BRC_TRY(cache_grow(cache, err));
        cache_make_room(cache, len);
        if (len > SIZE_MAX - sizeof(*e))
            return brc_nomem(err);
        BRC_TRY(brc_new(&p, sizeof(*e) + len, err));
        e = p;
        e->id = *id;
        e->kind = kind;
        e->len = len;
        if (len > 0)
            memcpy(e->data, data, len);
        brc_cached **bucket = &cache->buckets[cache_bucket(cache, id)];
        e->next_in_bucket = *bucket;
        *bucket = e;
        cache_link_newest(cache, e);
        cache->count++;
        cache->bytes += len;
        e->pinned = pinned;
    }
    if (out != NULL)
        *out = e;
    return BRC_OK;
}

void brc_cache_drop_pinned(brc_cache *cache)
{
    cache_remove_where(cache, 1);
}

void brc_cache_clear(brc_cache *cache)
{
    cache_remove_where(cache, 0);
}
