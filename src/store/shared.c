#include "shared.h"

#include <stdlib.h>
#include <unistd.h>

#include "../base/alloc.h"
#include "../base/lock.h"

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
    /* In a child another thread of the parent may have left it half changed: it stays. */
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
        *out = brc_blob_ref(held->blob);
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
