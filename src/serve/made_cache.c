#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "../breccia_codec.h"
#include "made.h"

typedef struct cached_value {
    struct cached_value *next; /* from the newest use to the oldest */
    char *name;
    void *data;
    size_t len;
} cached_value;

struct serve_cache {
    pthread_mutex_t lock;
    cached_value *first;
    size_t used, most;
};

static size_t cached_cost(const cached_value *v)
{
    return v->len + strlen(v->name) + sizeof(*v) + 64;
}

static void value_free(cached_value *v)
{
    free(v->name);
    free(v->data);
    free(v);
}

int serve_cache_new(serve_cache **out, size_t bytes, brc_error *err)
{
    *out = calloc(1, sizeof(**out));
    if (*out == NULL)
        return brc_fail(err, BRC_ENOMEM, "out of memory");
    pthread_mutex_init(&(*out)->lock, NULL);
    (*out)->most = bytes;
    return BRC_OK;
}

void serve_cache_free(serve_cache *cache)
{
    if (cache == NULL)
        return;
    while (cache->first != NULL) {
        cached_value *v = cache->first;
        cache->first = v->next;
        value_free(v);
    }
    pthread_mutex_destroy(&cache->lock);
    free(cache);
}

int serve_cache_get(brc_buf *out, serve_cache *cache, const char *name, brc_error *err)
{
    int rc = 0;
    pthread_mutex_lock(&cache->lock);
    for (cached_value **at = &cache->first; *at != NULL; at = &(*at)->next) {
        cached_value *v = *at;
        if (strcmp(v->name, name) != 0)
            continue;
        *at = v->next;
        v->next = cache->first;
        cache->first = v;
        rc = brc_buf_append(out, v->data, v->len, err);
        rc = rc < 0 ? rc : 1;
        break;
    }
    pthread_mutex_unlock(&cache->lock);
    return rc;
}

/* Drops what was not asked for longest. Within the lock. */
static void make_room_for(serve_cache *cache, size_t cost)
{
    while (cache->first != NULL && cache->used + cost > cache->most) {
        cached_value **at = &cache->first;
        while ((*at)->next != NULL)
            at = &(*at)->next;
        cached_value *v = *at;
        *at = NULL;
        cache->used -= cached_cost(v);
        value_free(v);
    }
}

void serve_cache_put(serve_cache *cache, const char *name, const brc_buf *value)
{
    cached_value *v = calloc(1, sizeof(*v));
    if (v == NULL)
        return;
    v->name = strdup(name);
    v->len = value->len;
    v->data = malloc(value->len > 0 ? value->len : 1);
    if (v->name == NULL || v->data == NULL || cached_cost(v) > cache->most / 2) {
        value_free(v);
        return;
    }
    memcpy(v->data, value->data, value->len);
    pthread_mutex_lock(&cache->lock);
    make_room_for(cache, cached_cost(v));
    v->next = cache->first;
    cache->first = v;
    cache->used += cached_cost(v);
    pthread_mutex_unlock(&cache->lock);
}
