/*
 * See chunk_cache.h.
 *
 * Rows of stored bytes have growing numbers, so the order of the rows is the order of use: an entry
 * that is used while it lies in the older half of a file that is half full moves to a new row.
 */
#include "chunk_cache.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "../base/alloc.h"
#include "../base/process.h"
#include "backend.h"
#include "collect.h"
#include "removed.h"

enum {
    WAIT_MS = 50,          /* for a lock, where a read cannot do without                   */
    CHANGES_MOST = 1024,   /* of one transaction                                           */
    DROPPED_AT_ONCE = 256,
    VACUUMED_AT_ONCE = 512 /* pages                                                        */
};
#define PENDING_BYTES ((size_t)8 << 20)

enum { CHANGE_PUT, CHANGE_MOVE, CHANGE_DROP };

typedef struct cache_change {
    int what;
    brc_oid key;
    size_t at, len; /* of the bytes to put                                                  */
} cache_change;

typedef struct brc_chunk_cache {
    char *path;
    uint64_t budget;
    const brc_registry *registry;
    brc_store *store; /* NULL: not opened yet                                               */
    int is_off;       /* the file cannot be used                                            */
    int64_t old;      /* entries in rows up to this one are old                             */
    uint64_t written; /* bytes since the size was looked at                                 */
    cache_change changes[CHANGES_MOST];
    size_t nchanges;
    brc_buf bytes; /* to put                                                                */
} brc_chunk_cache;

/* ---- the file -------------------------------- */

/* Goes on without the file, unless another process is only faster. */
static void cache_failed(brc_chunk_cache *cache, int rc)
{
    if (rc >= 0 || rc == BRC_EBUSY || rc == BRC_ENOTFOUND)
        return;
    brc_store_close(cache->store);
    cache->store = NULL;
    cache->is_off = 1;
}

static int cache_connect(brc_chunk_cache *cache, uint32_t flags)
{
    brc_open_opts opts = BRC_OPEN_OPTS_INIT;
    opts.flags = BRC_OPEN_CHUNK_CACHE | flags;
    opts.wait_ms = WAIT_MS;
    return brc_store_open(&cache->store, cache->path, &opts, cache->registry, brc_now_us(), NULL);
}

/* Makes the file, which only its owner may read, as only the owner may read what lies on the
 * servers. With a log, readers and a writer do not wait for each other. */
static int cache_make(brc_chunk_cache *cache)
{
    BRC_TRY(cache_connect(cache, BRC_OPEN_CREATE));
    if (chmod(cache->path, S_IRUSR | S_IWUSR) != 0)
        return BRC_EIO;
    return brc_journal_set(cache->store, 1, NULL);
}

/* Notes which entries are old: none, as long as half of the budget is free. */
static int cache_look(brc_chunk_cache *cache)
{
    uint64_t used;
    int64_t last;
    size_t n;
    brc_blob_row first = {.seq = 0};
    BRC_TRY(brc_collect_leaves(cache->store, 0, &used, NULL));
    BRC_TRY(brc_blob_last(cache->store, &last, NULL));
    BRC_TRY(brc_blobs_page(cache->store, 0, &first, 1, &n, NULL));
    cache->old = used > cache->budget / 2 ? first.seq + (last - first.seq) / 2 : 0;
    return BRC_OK;
}

/* Returns 1 if the file is open. */
static int cache_open(brc_chunk_cache *cache)
{
    if (cache->store != NULL || cache->is_off)
        return cache->store != NULL && brc_store_check_process(cache->store, NULL) == BRC_OK;
    int rc = cache_connect(cache, 0);
    if (rc == BRC_ENOTFOUND)
        rc = cache_make(cache);
    if (rc == BRC_EEXISTS) /* another process was faster */
        rc = cache_connect(cache, 0);
    if (rc == BRC_OK)
        rc = cache_look(cache);
    if (rc < 0)
        brc_store_close(cache->store);
    if (rc < 0)
        cache->store = NULL;
    cache->is_off = rc < 0;
    return rc == BRC_OK;
}

/* ---- finding -------------------------------- */

static int key_of(const char *spec, const brc_object *o, brc_oid *out)
{
    brc_buf text = BRC_BUF_INIT;
    const uint64_t facts[] = {o->digest, o->checksum, o->stored};
    int rc = brc_buf_append(&text, spec, strlen(spec) + 1, NULL);
    if (rc == BRC_OK)
        rc = brc_buf_append(&text, o->id.bytes, sizeof(o->id.bytes), NULL);
    if (rc == BRC_OK)
        rc = brc_buf_append(&text, facts, sizeof(facts), NULL);
    if (rc == BRC_OK)
        *out = brc_hash_object(BRC_HASH_XXH128, BRC_KIND_LOOSE, text.data, text.len);
    brc_buf_dispose(&text);
    return rc;
}

static cache_change *note_change(brc_chunk_cache *cache, int what, const brc_oid *key)
{
    if (cache->nchanges == CHANGES_MOST)
        return NULL;
    cache_change *change = &cache->changes[cache->nchanges++];
    *change = (cache_change){.what = what, .key = *key};
    return change;
}

/* Reads the entry. Returns 1 if it is there. */
static int cache_read(brc_chunk_cache *cache, brc_object *kept, uint64_t len, uint8_t *into)
{
    BRC_TRY(brc_store_begin_read(cache->store, NULL));
    int rc = brc_objects_find(cache->store, &kept, 1, NULL);
    int found = rc == BRC_OK && kept->found && kept->stored == len && brc_is_in_file(kept->backend);
    if (found)
        rc = brc_object_fetch(cache->store, kept, into, NULL);
    brc_store_end_read(cache->store);
    return rc < 0 ? rc : found;
}

static int cache_find(void *ctx, const char *spec, const brc_object *object, uint8_t *into)
{
    brc_chunk_cache *cache = ctx;
    brc_object kept = {.found = 0};
    if (key_of(spec, object, &kept.id) < 0 || !cache_open(cache))
        return 0;
    const int rc = cache_read(cache, &kept, object->stored, into);
    const int is_right = rc > 0 && brc_object_verify(object, into, NULL) == BRC_OK;
    if (kept.found && !is_right && rc != BRC_EBUSY) /* damaged: it is fetched and kept again */
        note_change(cache, CHANGE_DROP, &kept.id);
    else if (is_right && kept.place <= cache->old)
        note_change(cache, CHANGE_MOVE, &kept.id);
    if (!kept.found)
        cache_failed(cache, rc);
    return is_right;
}

/* ---- writing -------------------------------- */

static int cache_put(brc_chunk_cache *cache, const cache_change *change, int is_there)
{
    const uint8_t *data = change->len > 0 ? cache->bytes.data + change->at : (const uint8_t *)"";
    brc_object o = {.id = change->key, .kind = BRC_KIND_LOOSE, .size = change->len,
                    .stored = change->len};
    brc_stored at, *put = &at;
    if (is_there)
        return BRC_OK;
    o.checksum = brc_hash_stored(&o.id, 0, data, change->len);
    brc_object_ask(&o, &at);
    at.data = data;
    BRC_TRY(brc_inline_backend.put(NULL, cache->store, 1, &put, NULL));
    cache->written += change->len;
    return brc_object_record(cache->store, &o, &at, NULL);
}

/* Makes the changes that were noted; drops come before puts of the same key. */
static int cache_write(brc_chunk_cache *cache)
{
    brc_buf memory = BRC_BUF_INIT;
    int rc = BRC_OK;
    for (size_t i = 0; i < cache->nchanges && rc == BRC_OK; i++) {
        const cache_change *change = &cache->changes[i];
        brc_object o = {.id = change->key}, *one = &o;
        if (change->what == CHANGE_DROP) {
            rc = brc_object_drop(cache->store, &change->key, NULL);
            continue;
        }
        rc = brc_objects_find(cache->store, &one, 1, NULL);
        if (rc == BRC_OK && change->what == CHANGE_PUT)
            rc = cache_put(cache, change, o.found);
        else if (rc == BRC_OK && o.found && o.place <= cache->old)
            rc = brc_object_move(cache->store, &o, &memory, NULL);
    }
    brc_buf_dispose(&memory);
    return rc;
}

/* ---- the budget -------------------------------- */

typedef struct cache_entry {
    int64_t place;
    uint64_t offset, stored;
    brc_oid id;
} cache_entry;

static int by_age(const void *a, const void *b)
{
    const cache_entry *x = a, *y = b;
    if (x->place != y->place)
        return x->place < y->place ? -1 : 1;
    return (x->offset > y->offset) - (x->offset < y->offset);
}

/* Lists all entries, the oldest first. */
static int entries_list(brc_chunk_cache *cache, void **items, size_t *n, uint64_t *total)
{
    brc_object page[64];
    brc_oid after = {{0}};
    size_t cap = 0, got = 1;
    int rc = BRC_OK;
    *items = NULL;
    *n = 0;
    *total = 0;
    while (rc == BRC_OK && got > 0) {
        rc = brc_objects_page(cache->store, &after, page, 64, &got, NULL);
        if (rc == BRC_OK)
            rc = brc_grow_array(items, &cap, *n + got, sizeof(cache_entry), NULL);
        for (size_t i = 0; rc == BRC_OK && i < got; i++) {
            const brc_object *o = &page[i];
            ((cache_entry *)*items)[(*n)++] = (cache_entry){o->place, o->offset, o->stored, o->id};
            *total += o->stored;
            after = o->id;
        }
    }
    if (rc == BRC_OK && *n > 0)
        qsort(*items, *n, sizeof(cache_entry), by_age);
    return rc;
}

/* Removes the oldest entries until about `most` bytes are left. */
static int entries_drop(brc_chunk_cache *cache, const cache_entry *entries, size_t n,
                        uint64_t total, uint64_t most)
{
    int rc = BRC_OK;
    for (size_t i = 0; i < n && total > most && rc == BRC_OK;) {
        if (!brc_store_try_begin(cache->store))
            return BRC_EBUSY;
        for (size_t k = 0; k < DROPPED_AT_ONCE && i < n && total > most && rc == BRC_OK; k++, i++) {
            rc = brc_object_drop(cache->store, &entries[i].id, NULL);
            total -= entries[i].stored;
        }
        const int end = brc_store_end(cache->store, rc == BRC_OK, NULL);
        rc = rc < 0 ? rc : end;
    }
    return rc;
}

/* Brings a file that is over its budget back to three quarters of it. */
static int cache_shrink(brc_chunk_cache *cache)
{
    void *entries = NULL;
    uint64_t bytes, total;
    int64_t left = 1;
    size_t n;
    cache->written = 0;
    BRC_TRY(brc_store_file_bytes(cache->store, &bytes, NULL));
    if (bytes <= cache->budget)
        return BRC_OK;
    BRC_TRY(brc_store_begin_read(cache->store, NULL));
    int rc = entries_list(cache, &entries, &n, &total);
    brc_store_end_read(cache->store);
    if (rc == BRC_OK)
        rc = entries_drop(cache, entries, n, total, cache->budget / 4 * 3);
    free(entries);
    while (rc == BRC_OK && left > 0)
        rc = brc_vacuum_step(cache->store, VACUUMED_AT_ONCE, &left, NULL);
    return rc;
}

/* Writes what was kept, unless another process is writing. */
static void cache_settle(void *ctx)
{
    brc_chunk_cache *cache = ctx;
    if (cache->nchanges > 0 && cache_open(cache) && brc_store_try_begin(cache->store)) {
        int rc = cache_write(cache);
        const int end = brc_store_end(cache->store, rc == BRC_OK, NULL);
        rc = rc < 0 ? rc : end;
        if (rc == BRC_OK && cache->written >= cache->budget / 16)
            rc = cache_shrink(cache);
        if (rc == BRC_OK)
            rc = cache_look(cache);
        cache_failed(cache, rc);
    }
    cache->nchanges = 0;
    cache->bytes.len = 0;
}

/* ---- for a store -------------------------------- */

static void cache_keep(void *ctx, const char *spec, const brc_object *object,
                       const uint8_t *stored)
{
    brc_chunk_cache *cache = ctx;
    brc_oid key;
    const size_t at = cache->bytes.len, len = (size_t)object->stored;
    if (cache->is_off || object->stored > cache->budget / 16 || key_of(spec, object, &key) < 0 ||
        brc_buf_append(&cache->bytes, stored, len, NULL) < 0)
        return;
    cache_change *change = note_change(cache, CHANGE_PUT, &key);
    if (change != NULL) {
        change->at = at;
        change->len = len;
    }
    if (cache->bytes.len >= PENDING_BYTES || cache->nchanges == CHANGES_MOST)
        cache_settle(cache);
}

static void cache_free(void *ctx)
{
    brc_chunk_cache *cache = ctx;
    if (cache->store != NULL && !brc_store_is_forked(cache->store))
        cache_settle(cache);
    brc_store_close(cache->store);
    brc_buf_dispose(&cache->bytes);
    free(cache->path);
    free(cache);
}

int brc_store_use_cache(brc_store *store, const char *path, uint64_t budget, brc_error *err)
{
    void *p;
    BRC_TRY(brc_new(&p, sizeof(brc_chunk_cache), err));
    brc_chunk_cache *cache = p;
    cache->budget = budget != 0 ? budget : BRC_CHUNK_CACHE_BYTES;
    cache->registry = store->registry;
    const int rc = brc_dup(&cache->path, path, err);
    if (rc < 0) {
        free(cache);
        return rc;
    }
    store->chunks = (brc_chunk_cache_ops){cache, cache_find, cache_keep, cache_settle, cache_free};
    return BRC_OK;
}
