/*
 * Work that others can overtake: a commit is merged onto the tip of its branch without a lock, and
 * where the branch has moved by then it is merged again. Whoever was overtaken once waits for those
 * who came before, so that among many each gets on: see brc_in_turn().
 *
 * Who waits is a lock on a byte far behind the file's end, whose place is the time at which its
 * owner came; so whoever has none before his is the first. A lock needs no write, and goes with its
 * process. It keeps nobody out: where the system has no such locks, and for somebody who does not
 * get on (he may be stopped), nobody waits for long, and half as long each time.
 *
 *   2^61, and 2^51 bytes for each of 1,024 things that are waited for: pins.c has 2^62
 */
#include <fcntl.h>
#include <string.h>

#include "../base/clock.h"
#include "../base/hash.h"
#include "db.h"
#include "file_lock.h"

#define TURNS_AT (INT64_C(1) << 61)
#define SLOT_LEN (INT64_C(1) << 51)
enum { SLOTS = 1024 };

/* Nobody waits longer than this part of the time to wait for one who does not get on. */
enum { PATIENCE = 16 };

typedef struct in_turn {
    brc_store *store;
    int64_t slot;    /* the first byte of those who wait for the same */
    int64_t at;      /* ours; 0: we have none                         */
    int64_t until;   /* on the monotonic clock, in ns                 */
    int64_t met;     /* who is the first, and since when              */
    int64_t met_at;
    int64_t passed;  /* who was waited for too long; 0: nobody        */
} in_turn;

/* Whoever is before `before`, the first of them; 0: nobody is. *is_next: only he is. */
static int64_t turn_first(const in_turn *t, int64_t before, int *is_next)
{
    const int64_t from = t->passed >= t->slot ? t->passed + 1 : t->slot;
    int64_t first = 0, at, len, end = before;
    *is_next = 1;
    while (end > from && brc_vfs_find_lock(t->store->vfs, from, end - from, &at, &len)) {
        *is_next &= first == 0;
        first = end = at;
    }
    return first;
}

static void turn_ask(in_turn *t)
{
    const int fd = brc_beside_lock(t->store);
    const int64_t at = t->slot + brc_monotonic_ns() / 1000 % SLOT_LEN;
    if (t->at == 0 && fd >= 0 &&
        brc_bytes_lock(fd, F_RDLCK, (off_t)at, 1, SQLITE_IOERR_LOCK) == SQLITE_OK)
        t->at = at;
}

static void turn_leave(in_turn *t)
{
    if (t->at != 0 && !brc_store_is_forked(t->store))
        (void)!brc_bytes_lock(t->store->beside.lock.fd, F_UNLCK, (off_t)t->at, 1,
                              SQLITE_IOERR_UNLOCK);
}

/* How long he is waited for: not as long again if it was in vain before. */
static int64_t patience_for(const brc_store *store, int64_t first)
{
    const int64_t ns = store->wait_ms * INT64_C(1000000) / PATIENCE;
    return first == store->stuck_turn ? ns >> store->stuck_times : ns;
}

static void pass_over(in_turn *t, int64_t first)
{
    brc_store *store = t->store;
    store->stuck_times = first == store->stuck_turn ? store->stuck_times + (store->stuck_times < 40)
                                                    : 1;
    store->stuck_turn = t->passed = first;
}

/* Whether there is somebody for whom one should wait. */
static int turn_must_wait(in_turn *t, int *is_next)
{
    const int64_t first = turn_first(t, t->at, is_next), now = brc_monotonic_ns();
    if (first == 0)
        return 0;
    if (first != t->met) {
        t->met = first;
        t->met_at = now;
    }
    if (now - t->met_at >= patience_for(t->store, first))
        pass_over(t, first); /* it is the next one's turn now */
    return now < t->until;
}

static int turn_wait(in_turn *t, brc_error *err)
{
    enum { SOON = 500000, LATER = 4000000 };
    int is_next;
    BRC_TRY(brc_store_check_interrupt(t->store, err));
    while (t->at != 0 && turn_must_wait(t, &is_next)) {
        brc_pause_at_random(t->store, is_next ? SOON : LATER);
        BRC_TRY(brc_store_check_interrupt(t->store, err));
    }
    return BRC_OK;
}

/* Also where others wait already: who comes now does not go before them. */
static int turn_tries(in_turn *t, int (*once)(void *ctx, brc_error *err), void *ctx, brc_error *err)
{
    enum { MOMENT = 2000000 };
    int is_next, rc = 0;
    if (turn_first(t, t->slot + SLOT_LEN, &is_next) != 0)
        turn_ask(t);
    while (rc == 0) {
        BRC_TRY(turn_wait(t, err));
        rc = once(ctx, err);
        if (rc == 0 && brc_monotonic_ns() >= t->until)
            break;
        if (rc == 0) {
            turn_ask(t);
            brc_pause_at_random(t->store, MOMENT);
        }
    }
    return rc;
}

int brc_in_turn(brc_store *store, const char *about, int (*once)(void *ctx, brc_error *err),
                void *ctx, brc_error *err)
{
    in_turn t = {.store = store};
    t.slot = TURNS_AT + (int64_t)(brc_hash_bytes(about, strlen(about)) % SLOTS) * SLOT_LEN;
    t.until = brc_monotonic_ns() + store->wait_ms * INT64_C(1000000);
    int rc = turn_tries(&t, once, ctx, err);
    turn_leave(&t);
    return rc;
}

int brc_turn_is_over(const brc_store *store, const char *doing, const char *remedy, brc_error *err)
{
    return brc_fail(err, BRC_EBUSY,
                    "%s: others were first each time, for %g s, while %s: %s, or wait longer with "
                    "--wait",
                    store->path, store->wait_ms / 1000.0, doing, remedy);
}
