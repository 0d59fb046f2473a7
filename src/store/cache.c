/* A chained hash table threaded on two lists from newest to oldest. */
#include "cache.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../base/alloc.h"
#include "../base/pool.h"

/* ==== cache ================================ */

int brc_blob_new(brc_blob **out, const void *data, size_t len, brc_error *err)
{
    void *p;
    *out = NULL;
    if (len > SIZE_MAX - sizeof(brc_blob))
        return brc_nomem(err);
    BRC_TRY(brc_new(&p, sizeof(brc_blob) + len, err));
    *out = p;
    atomic_init(&(*out)->refs, 1);
    (*out)->len = len;
    if (len > 0)
        memcpy((*out)->data, data, len);
    return BRC_OK;
}

static brc_blob *blob_ref(brc_blob *blob)
{
    atomic_fetch_add_explicit(&blob->refs, 1, memory_order_relaxed);
    return blob;
}

void brc_blob_unref(brc_blob *blob)
{
    if (blob != NULL && atomic_fetch_sub_explicit(&blob->refs, 1, memory_order_acq_rel) == 1)
        free(blob);
}

void brc_cache_init(brc_cache *cache, size_t limit)
{
    memset(cache, 0, sizeof(*cache));
    cache->limit = limit;
}

/* An id is already a hash: its first bytes choose the bucket. */
static size_t cache_bucket(const brc_cache *cache, const brc_oid *id)
{
    uint64_t h;
    memcpy(&h, id->bytes, sizeof(h));
    return (size_t)(h & (cache->nbuckets - 1));
}

static brc_cache_list *cache_list_of(brc_cache *cache, const brc_cached *e)
{
    return e->pinned ? &cache->pinned : &cache->used;
}

static void cache_unlink_age(brc_cache *cache, brc_cached *e)
{
    brc_cache_list *list = cache_list_of(cache, e);
    if (e->newer != NULL)
        e->newer->older = e->older;
    else
        list->newest = e->older;
    if (e->older != NULL)
        e->older->newer = e->newer;
    else
        list->oldest = e->newer;
}

static void cache_link_newest(brc_cache *cache, brc_cached *e)
{
    brc_cache_list *list = cache_list_of(cache, e);
    e->newer = NULL;
    e->older = list->newest;
    if (list->newest != NULL)
        list->newest->newer = e;
    else
        list->oldest = e;
    list->newest = e;
}

static void cache_remove(brc_cache *cache, brc_cached *e)
{
    brc_cached **at = &cache->buckets[cache_bucket(cache, &e->id)];
    while (*at != e)
        at = &(*at)->next_in_bucket;
    *at = e->next_in_bucket;
    cache_unlink_age(cache, e);
    cache->count--;
    if (!e->pinned)
        cache->bytes -= e->blob->len;
    brc_blob_unref(e->blob);
    free(e);
}

void brc_cache_drop_pinned(brc_cache *cache)
{
    while (cache->pinned.oldest != NULL)
        cache_remove(cache, cache->pinned.oldest);
}

void brc_cache_clear(brc_cache *cache)
{
    while (cache->used.oldest != NULL)
        cache_remove(cache, cache->used.oldest);
}

void brc_cache_dispose(brc_cache *cache)
{
    brc_cache_drop_pinned(cache);
    brc_cache_clear(cache);
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
    if (e != NULL && !e->pinned && e != cache->used.newest) {
        cache_unlink_age(cache, e);
        cache_link_newest(cache, e);
    }
    return e;
}

static void cache_rehash(brc_cache *cache, const brc_cache_list *list)
{
    for (brc_cached *e = list->newest; e != NULL; e = e->older) {
        brc_cached **bucket = &cache->buckets[cache_bucket(cache, &e->id)];
        e->next_in_bucket = *bucket;
        *bucket = e;
    }
}

static int cache_grow(brc_cache *cache, brc_error *err)
{
    size_t n = cache->nbuckets == 0 ? 256 : cache->nbuckets * 2;
    void *p;
    BRC_TRY(brc_new_array(&p, n, sizeof(brc_cached *), err));
    free(cache->buckets);
    cache->buckets = p;
    cache->nbuckets = n;
    cache_rehash(cache, &cache->used);
    cache_rehash(cache, &cache->pinned);
    return BRC_OK;
}

static void cache_make_room(brc_cache *cache, size_t len)
{
    while (cache->used.oldest != NULL && cache->bytes + len > cache->limit)
        cache_remove(cache, cache->used.oldest);
}

int brc_cache_add_blob(brc_cache *cache, const brc_oid *id, int kind, brc_blob *blob, int pinned,
                       const brc_cached **out, brc_error *err)
{
    brc_cached *e = cache_lookup(cache, id);
    if (e == NULL) {
        void *p;
        if (cache->count >= cache->nbuckets)
            BRC_TRY(cache_grow(cache, err));
        if (!pinned)
            cache_make_room(cache, blob->len);
        BRC_TRY(brc_new(&p, sizeof(*e), err));
        e = p;
        e->id = *id;
        e->kind = kind;
        e->blob = blob_ref(blob);
        brc_cached **bucket = &cache->buckets[cache_bucket(cache, id)];
        e->next_in_bucket = *bucket;
        *bucket = e;
        e->pinned = pinned;
        cache_link_newest(cache, e);
        cache->count++;
        cache->bytes += pinned ? 0 : blob->len;
    }
    if (out != NULL)
        *out = e;
    return BRC_OK;
}

int brc_cache_add(brc_cache *cache, const brc_oid *id, int kind, const void *data, size_t len,
                  int pinned, const brc_cached **out, brc_error *err)
{
    brc_blob *blob;
    BRC_TRY(brc_blob_new(&blob, data, len, err));
    int rc = brc_cache_add_blob(cache, id, kind, blob, pinned, out, err);
    brc_blob_unref(blob);
    return rc;
}

/* ==== shared ================================ */

#define SHARED_BYTES ((size_t)64 << 20)

struct brc_shared {
    atomic_size_t refs; /* one for each handle */
    pid_t process;
    brc_registry *own;
    brc_lock *lock; /* of the cache; never held over another call of ours */
    brc_cache cache;
};

int brc_shared_new(brc_shared **out, brc_registry *own, brc_error *err)
{
    void *p;
    *out = NULL;
    BRC_TRY(brc_new(&p, sizeof(brc_shared), err));
    brc_shared *shared = p;
    int rc = brc_lock_new(&shared->lock, err);
    if (rc < 0) {
        free(shared);
        return rc;
    }
    atomic_init(&shared->refs, 1);
    shared->process = getpid();
    shared->own = own;
    brc_cache_init(&shared->cache, SHARED_BYTES);
    *out = shared;
    return BRC_OK;
}

brc_shared *brc_shared_ref(brc_shared *shared)
{
    atomic_fetch_add_explicit(&shared->refs, 1, memory_order_relaxed);
    return shared;
}

void brc_shared_unref(brc_shared *shared)
{
    /* In a child the cache may be half changed by another thread of the parent: it is left
     * alone. */
    if (shared == NULL || shared->process != getpid() ||
        atomic_fetch_sub_explicit(&shared->refs, 1, memory_order_acq_rel) > 1)
        return;
    brc_cache_dispose(&shared->cache);
    brc_registry_free(shared->own);
    brc_lock_free(shared->lock);
    free(shared);
}

static int is_for_one(brc_shared *shared)
{
    return shared == NULL || atomic_load_explicit(&shared->refs, memory_order_relaxed) < 2;
}

int brc_shared_find(brc_shared *shared, const brc_oid *id, int kind, brc_blob **out)
{
    *out = NULL;
    if (is_for_one(shared))
        return 0;
    brc_lock_enter(shared->lock);
    const brc_cached *held = brc_cache_find(&shared->cache, id);
    if (held != NULL && held->kind == kind)
        *out = blob_ref(held->blob);
    brc_lock_leave(shared->lock);
    return *out != NULL;
}

void brc_shared_add(brc_shared *shared, const brc_oid *id, int kind, brc_blob *blob)
{
    if (is_for_one(shared))
        return;
    brc_lock_enter(shared->lock);
    (void)!brc_cache_add_blob(&shared->cache, id, kind, blob, 0, NULL, NULL);
    brc_lock_leave(shared->lock);
}
