/* Waiting for the lock that a transaction needs. */
#include <stdlib.h>
#include <time.h>

#include "../base/clock.h"
#include "db.h"

/* Up to `most`, evenly: xorshift. */
static int64_t random_pause_ns(brc_store *store, int64_t most)
{
    uint64_t x = store->jitter;
    if (x == 0)
        x = (uint64_t)brc_monotonic_ns() ^ (uint64_t)(uintptr_t)store << 20 ^ 1;
    x ^= x << 13;
    x ^= x >> 7;
    x ^= x << 17;
    store->jitter = x;
    return (int64_t)(x % (uint64_t)most) + 1;
}

/* The lock goes to whoever asks while it is free, and a busy writer frees it only for
 * moments. So all ask at random times, and those who have waited ask more often than
 * those who have just come. During a long transaction, when it is nobody's turn, all
 * ask less often. */
static int64_t longest_pause_ns(int64_t waited)
{
    enum { US = 1000, MS = 1000 * US };
    return waited < 20 * (int64_t)MS ? 2 * MS : waited < 3000 * (int64_t)MS ? 500 * US : 5 * MS;
}

static void pause_ns(int64_t ns)
{
    nanosleep(&(struct timespec){ns / 1000000000, ns % 1000000000}, NULL);
}

void brc_pause_at_random(brc_store *store, int64_t most_ns)
{
    pause_ns(random_pause_ns(store, most_ns));
}

/* Whoever has just committed is the first to ask again and would get the lock each
 * time. If others were met recently, they are given a moment to ask. */
void brc_wait_turn(brc_store *store)
{
    enum { LATELY = 2000000000, MOMENT = 1000000 };
    if (store->crowded_at == 0)
        return;
    int64_t now = brc_monotonic_ns();
    if (now - store->crowded_at < LATELY && now - store->committed_at < MOMENT)
        pause_ns(MOMENT / 2 + random_pause_ns(store, MOMENT));
}

int brc_db_busy(void *ctx, int tries)
{
    brc_store *store = ctx;
    int64_t now = brc_monotonic_ns(), left;
    store->crowded_at = now;
    if (tries == 0)
        store->wait_since = now;
    left = store->wait_ms * INT64_C(1000000) - (now - store->wait_since);
    if (left <= 0 || atomic_load(&store->interrupted)) {
        brc_vfs_recall(store->vfs);
        return 0;
    }
    /* Each time: to begin again, SQLite lets go of all it locked, and of this with it. */
    brc_vfs_announce(store->vfs);
    int64_t pause = random_pause_ns(store, longest_pause_ns(now - store->wait_since));
    if (pause > left)
        pause = left;
    pause_ns(pause);
    return 1;
}

void brc_wait_committed(brc_store *store)
{
    if (store->crowded_at != 0)
        store->committed_at = brc_monotonic_ns();
}
