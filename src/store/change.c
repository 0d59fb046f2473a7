#include "change.h"

#include <fcntl.h>
#include <string.h>

#include "../base/alloc.h"
#include "../base/hash.h"
#include "../base/process.h"
#include "collect.h"
#include "db.h"
#include "file_lock.h"

/* ---- in the order of arrival -------------------------------- */

/*
 * A change that was overtaken waits for the changes that were overtaken before, so that each of
 * many makes progress.
 *
 * A waiting change marks itself with a lock on one byte far behind the end of the file. The byte's
 * place is the time at which the change came, so the owner of the first locked byte goes first. A
 * lock needs no write, and ends with its process. The order is a courtesy: if the system has no
 * such locks, nobody waits, and behind a waiter that makes no progress (a stopped process) others
 * wait only for a short time, and half as long each time.
 *
 *   The bytes begin at 2^61, with 2^51 for each of 1,024 things to wait for; collect.c uses 2^62.
 */

#define TURNS_AT (INT64_C(1) << 61)
#define SLOT_LEN (INT64_C(1) << 51)
enum { SLOTS = 1024 };

/* A change waits at most this part of the time to wait for another that makes no progress. */
enum { PATIENCE = 16 };

typedef struct change_turn {
    brc_store *store;
    int64_t slot;    /* the first byte of this kind of wait; 0: nobody waits in order */
    int64_t at;      /* our byte; 0: none */
    int64_t until;   /* when the time to wait is over, on the monotonic clock, in ns */
    int64_t met;     /* the first waiter that was met, and since when */
    int64_t met_at;
    int64_t passed;  /* the waiter that we do not wait for any more; 0: none */
    int64_t run;     /* the last collection when a try missed an object; -1: no try did */
} change_turn;

/* Finds the first waiting change before `before`; 0: there is none. Sets *is_next to 1 if only one
 * is waiting. */
static int64_t turn_first(const change_turn *t, int64_t before, int *is_next)
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

static void turn_ask(change_turn *t)
{
    if (t->slot == 0 || t->at != 0)
        return;
    const int fd = brc_beside_lock(t->store);
    const int64_t at = t->slot + brc_monotonic_ns() / 1000 % SLOT_LEN;
    if (fd >= 0 &&
        brc_bytes_lock(fd, F_RDLCK, (off_t)at, 1, SQLITE_IOERR_LOCK) == SQLITE_OK)
        t->at = at;
}

static void turn_leave(change_turn *t)
{
    if (t->at != 0 && !brc_store_is_forked(t->store))
        (void)!brc_bytes_lock(t->store->beside.lock.fd, F_UNLCK, (off_t)t->at, 1,
                              SQLITE_IOERR_UNLOCK);
}

/* Returns how long to wait for the first change: half as long after each wait in vain. */
static int64_t patience_for(const brc_store *store, int64_t first)
{
    const int64_t ns = store->wait_ms * INT64_C(1000000) / PATIENCE;
    return first == store->stuck_turn ? ns >> store->stuck_times : ns;
}

static void pass_over(change_turn *t, int64_t first)
{
    brc_store *store = t->store;
    store->stuck_times = first == store->stuck_turn ? store->stuck_times + (store->stuck_times < 40)
                                                    : 1;
    store->stuck_turn = t->passed = first;
}

/* Returns 1 if this change must wait for one before it. */
static int turn_must_wait(change_turn *t, int *is_next)
{
    const int64_t first = turn_first(t, t->at, is_next), now = brc_monotonic_ns();
    if (first == 0)
        return 0;
    if (first != t->met) {
        t->met = first;
        t->met_at = now;
    }
    if (now - t->met_at >= patience_for(t->store, first))
        pass_over(t, first); /* now the next waiter has its turn */
    return now < t->until;
}

static int turn_wait(change_turn *t, brc_error *err)
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

/* ---- a change -------------------------------- */

/* How often others may be first before a change insists. */
enum { PATIENT_TRIES = 4 };

static int commit_file_change(brc_store *store, const brc_file_change *c, int insists,
                              brc_error *err)
{
    BRC_TRY(brc_store_begin(store, err));
    const int rc = c->commit(c->ctx, insists, err);
    const int ended = brc_store_end(store, rc == BRC_OK, rc == BRC_OK ? err : NULL);
    return rc != BRC_OK ? rc : ended;
}

static int try_file_change(brc_store *store, const brc_file_change *c, int insists, brc_error *err)
{
    int rc = c->work != NULL ? c->work(c->ctx, err) : BRC_OK;
    if (rc == BRC_OK)
        rc = c->commit != NULL ? commit_file_change(store, c, insists, err) : BRC_CHANGE_MUCH;
    return rc == BRC_CHANGE_MUCH && c->steps != NULL ? c->steps(c->ctx, insists, err) : rc;
}

/* Says whether a collection may have removed an object that the try stored and then missed. The
 * first try that misses an object counts without proof, so that tries that miss none need not ask
 * for the last collection; in a damaged file the second try misses the object too. */
static int is_collected(change_turn *t, const brc_file_change *c, int rc)
{
    int64_t last = -1;
    if (rc != BRC_ECORRUPT || !c->is_ahead || brc_monotonic_ns() >= t->until ||
        brc_store_begin_read(t->store, NULL) < 0)
        return 0;
    const int found = brc_gc_last(t->store, &last, NULL);
    brc_store_end_read(t->store);
    const int is_new = found == BRC_OK && last != t->run;
    t->run = last;
    return is_new;
}

/* Tries the change until it succeeds or the time to wait is over. A change that comes while others
 * wait goes behind them. */
static int run_in_turn(change_turn *t, const brc_file_change *c, brc_error *err)
{
    enum { MOMENT = 2000000 };
    int is_next, rc = BRC_CHANGE_WORK, insists = 0;
    if (t->slot != 0 && turn_first(t, t->slot + SLOT_LEN, &is_next) != 0)
        turn_ask(t);
    for (int overtaken = 0; rc == BRC_CHANGE_AGAIN || rc == BRC_CHANGE_WORK;) {
        BRC_TRY(turn_wait(t, err));
        rc = try_file_change(t->store, c, insists, err);
        if (is_collected(t, c, rc))
            rc = BRC_CHANGE_AGAIN;
        if (rc != BRC_CHANGE_AGAIN)
            continue;
        const int is_over = brc_monotonic_ns() >= t->until;
        if (is_over && insists)
            break;
        insists = is_over || ++overtaken >= PATIENT_TRIES;
        turn_ask(t);
        brc_pause_at_random(t->store, MOMENT);
    }
    return rc == BRC_CHANGE_NONE ? BRC_OK : rc;
}

int brc_change_run(brc_store *store, const brc_file_change *change, brc_error *err)
{
    change_turn t = {.store = store, .run = -1};
    if (brc_store_in_write(store) || brc_store_in_bulk(store)) {
        const int rc = change->commit != NULL ? change->commit(change->ctx, 1, err)
                                              : change->steps(change->ctx, 1, err);
        return rc == BRC_CHANGE_NONE ? BRC_OK : rc;
    }
    if (change->about != NULL)
        t.slot = TURNS_AT +
                 (int64_t)(brc_hash_bytes(change->about, strlen(change->about)) % SLOTS) * SLOT_LEN;
    t.until = brc_monotonic_ns() + store->wait_ms * INT64_C(1000000);
    const int rc = run_in_turn(&t, change, err);
    turn_leave(&t);
    return rc;
}

int brc_change_is_late(const brc_store *store, const char *doing, const char *remedy,
                       brc_error *err)
{
    return brc_fail(err, BRC_EBUSY,
                    "%s: others were first each time, for %g s, while %s: %s, or wait longer with "
                    "--wait",
                    store->path, store->wait_ms / 1000.0, doing, remedy);
}

/* ---- drafts that are dropped with the next change -------------------------------- */

void brc_draft_drop_late(brc_store *store, int64_t draft, int which)
{
    void *p = store->late_drafts.items;
    const size_t n = store->late_drafts.n;
    for (size_t i = 0; i < n; i++)
        if (store->late_drafts.items[i].id == draft && store->late_drafts.items[i].which == which)
            return;
    const int rc = brc_grow_array(&p, &store->late_drafts.cap, n + 1, sizeof(brc_late_draft), NULL);
    store->late_drafts.items = p;
    if (rc < 0) /* the draft can be dropped when its process has ended */
        return;
    store->late_drafts.items[store->late_drafts.n++] = (brc_late_draft){draft, which};
}

void brc_draft_drop_soon(brc_store *store, int64_t draft, int which)
{
    brc_draft_drop_late(store, draft, which);
    if (brc_store_try_begin(store))
        (void)!brc_store_end(store, 1, NULL);
}
