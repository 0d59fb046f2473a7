/*
 * The backend of docs/extending/dirstore.c, and some that are like it but for one thing. What they
 * are asked to fetch, they count, for the test to see.
 */
#define brc_plugin_init dirstore_init
#include "../../docs/extending/dirstore.c"
#undef brc_plugin_init
BRC_API int brc_plugin_init(uint32_t abi, brc_registry *reg, brc_error *err);

#include <pthread.h>
#include <signal.h>

#include "packs.h"

/* Looked up by name in the loaded object: objects fetched, the most in one call, calls on other
 * threads than the one that loaded it; and what "org.example.meets" calls at each put(), flush(),
 * fetch() and list(), with its name, in the middle of a put ("half"), and behind put ("done"),
 * flush ("flushed") and list ("listed"). */
BRC_API extern unsigned dirs_fetched, dirs_most, dirs_elsewhere;
unsigned dirs_fetched, dirs_most, dirs_elsewhere;
BRC_API extern void (*dirs_meet)(const char *what);
void (*dirs_meet)(const char *what);
/* How many of the objects that it is asked to drop "org.example.stubborn" fails to drop. */
BRC_API extern unsigned dirs_stubborn;
unsigned dirs_stubborn;

static pthread_t loader;
static pthread_mutex_t counts = PTHREAD_MUTEX_INITIALIZER;

static int counting_fetch(void *ctx, void *state, size_t n, brc_stored *const *items,
                          brc_error *err)
{
    pthread_mutex_lock(&counts);
    dirs_fetched += (unsigned)n;
    dirs_most = n > dirs_most ? (unsigned)n : dirs_most;
    dirs_elsewhere += !pthread_equal(pthread_self(), loader);
    pthread_mutex_unlock(&counts);
    return dir_fetch(ctx, state, n, items, err);
}

/* Bytes that were never put. */
static int lying_fetch(void *ctx, void *state, size_t n, brc_stored *const *items, brc_error *err)
{
    size_t i;
    int rc = dir_fetch(ctx, state, n, items, err);

    for (i = 0; i < n; i++)
        if (items[i]->len > 0)
            items[i]->into[items[i]->len - 1] ^= 1;
    return rc;
}

static int full_put(void *ctx, void *state, size_t n, brc_stored *const *items, brc_error *err)
{
    (void)ctx;
    (void)n;
    (void)items;
    return file_failed(state, "write", "it", ENOSPC, err);
}

static int full_flush(void *ctx, void *state, brc_error *err)
{
    (void)ctx;
    return file_failed(state, "write", "it", ENOSPC, err);
}

static int dying_flush(void *ctx, void *state, brc_error *err)
{
    (void)ctx;
    (void)state;
    (void)err;
    raise(SIGKILL);
    return BRC_OK;
}

static int stubborn_drop(void *ctx, void *state, size_t n, brc_stored *const *items,
                         brc_error *err)
{
    size_t i;
    int rc, first = BRC_OK;

    for (i = 0; i < n; i++) {
        rc = dirs_stubborn > 0 ? file_failed(state, "remove", "it", EACCES, first == 0 ? err : NULL)
                               : dir_drop(ctx, state, 1, &items[i], err);
        items[i]->status = rc;
        dirs_stubborn -= dirs_stubborn > 0;
        first = first == BRC_OK ? rc : first;
    }
    return first;
}

static int dying_drop(void *ctx, void *state, size_t n, brc_stored *const *items, brc_error *err)
{
    int rc = dir_drop(ctx, state, n / 2, items, err);

    raise(SIGKILL);
    return rc;
}

static int odd_flush(void *ctx, void *state, brc_error *err)
{
    (void)ctx;
    (void)state;
    (void)err;
    return 7;
}

static void meet(const char *what)
{
    if (dirs_meet != NULL)
        dirs_meet(what);
}

static int meeting_put(void *ctx, void *state, size_t n, brc_stored *const *items, brc_error *err)
{
    int rc;

    meet("put");
    rc = dir_put(ctx, state, n / 2, items, err);
    meet("half");
    if (rc == BRC_OK)
        rc = dir_put(ctx, state, n - n / 2, items + n / 2, err);
    meet("done");
    return rc;
}

static int meeting_flush(void *ctx, void *state, brc_error *err)
{
    int rc;

    meet("flush");
    rc = dir_flush(ctx, state, err);
    meet("flushed");
    return rc;
}

static int meeting_drop(void *ctx, void *state, size_t n, brc_stored *const *items,
                        brc_error *err)
{
    int rc;

    meet("drop");
    rc = dir_drop(ctx, state, n, items, err);
    meet("dropped");
    return rc;
}

static int meeting_list(void *ctx, void *state,
                        int (*each)(void *to, const brc_kept *kept, brc_error *err), void *to,
                        brc_error *err)
{
    int rc;

    meet("list");
    rc = dir_list(ctx, state, each, to, err);
    meet("listed");
    return rc;
}

static int meeting_fetch(void *ctx, void *state, size_t n, brc_stored *const *items,
                         brc_error *err)
{
    meet("fetch");
    return dir_fetch(ctx, state, n, items, err);
}

/* Its call: what its files would be like. */
static int add_like(brc_registry *reg, const char *name, brc_backend like, brc_error *err)
{
    like.size = sizeof(like);
    like.name = name;
    like.ctx = (void *)(uintptr_t)name; /* who puts, in the folder's list */
    like.check = dir_check;
    like.open = dir_open;
    like.close = dir_close;
    if (like.fetch == NULL)
        like.fetch = counting_fetch;
    if (like.drop == NULL)
        like.drop = dir_drop;
    if (like.list == NULL)
        like.list = like.put == pack_put ? pack_list : dir_list;
    like.owner = "the tests";
    return brc_registry_add_backend(reg, &like, err);
}

static const struct {
    const char *name;
    brc_backend like;
} backends[] = {
    { "org.example.workers",
      { .flags = BRC_BACKEND_ON_WORKERS, .put = dir_put, .flush = dir_flush } },
    { "org.example.here", { .put = dir_put, .flush = dir_flush } },
    { "org.example.liar", { .fetch = lying_fetch, .put = dir_put, .flush = dir_flush } },
    { "org.example.full", { .put = full_put, .flush = dir_flush } },
    { "org.example.late", { .put = dir_put, .flush = full_flush } },
    { "org.example.dies", { .put = dir_put, .flush = dying_flush } },
    { "org.example.stubborn", { .put = dir_put, .flush = dir_flush, .drop = stubborn_drop } },
    { "org.example.stubbornpack",
      { .fetch = pack_fetch, .put = pack_put, .flush = dir_flush, .drop = stubborn_drop } },
    { "org.example.held",
      { .put = dir_put, .flush = dir_flush, .hold_us = INT64_C(3600000000) } },
    { "org.example.heldpack",
      { .fetch = pack_fetch,
        .put = pack_put,
        .flush = dir_flush,
        .hold_us = INT64_C(3600000000) } },
    { "org.example.repacks",
      { .flags = BRC_BACKEND_PACKS, .fetch = pack_fetch, .put = pack_put, .flush = dir_flush } },
    { "org.example.repackmeets",
      { .flags = BRC_BACKEND_PACKS,
        .fetch = pack_fetch,
        .put = pack_put,
        .flush = meeting_flush,
        .drop = meeting_drop } },
    { "org.example.dropdies", { .put = dir_put, .flush = dir_flush, .drop = dying_drop } },
    { "org.example.odd", { .put = dir_put, .flush = odd_flush } },
    { "org.example.old", { .flags = 0 } },
    { "org.example.packdies", { .fetch = pack_fetch, .put = pack_put, .flush = dying_flush } },
    { "org.example.pack", { .fetch = pack_fetch, .put = pack_put, .flush = dir_flush } },
    { "org.example.packs",
      { .flags = BRC_BACKEND_ON_WORKERS,
        .fetch = pack_fetch,
        .put = pack_put,
        .flush = dir_flush } },
    { "org.example.meets",
      { .fetch = meeting_fetch,
        .put = meeting_put,
        .flush = meeting_flush,
        .list = meeting_list } },
    { "org.example.met",
      { .flags = BRC_BACKEND_ON_WORKERS,
        .fetch = meeting_fetch,
        .put = meeting_put,
        .flush = meeting_flush,
        .list = meeting_list } },
};

int brc_plugin_init(uint32_t abi, brc_registry *reg, brc_error *err)
{
    int rc = dirstore_init(abi, reg, err);
    size_t i;

    loader = pthread_self();
    for (i = 0; i < sizeof(backends) / sizeof(backends[0]) && rc == BRC_OK; i++)
        rc = add_like(reg, backends[i].name, backends[i].like, err);
    return rc;
}
