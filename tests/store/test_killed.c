/*
 * A process is killed at each write, sync and deletion of a call, also in the middle of a write.
 * Then the file says what it said before the call or behind it (of a bulk write: to others), and is
 * whole; the drafts that the dead have left are listed, and can be dropped or adopted; and the call
 * can be made again. `make kills` takes every moment, `make test`
 * some.
 */
#include <stdlib.h>
#include <string.h>

#include "../kit/effort.h"
#include "../kit/fault_acts.h"
#include "../kit/fault_vfs.h"
#include "../kit/file_digest.h"
#include "../kit/process_kit.h"
#include "../kit/suite.h"

TEST_SUITE(killed);

enum { MOST_STATES = 24 };

static store_kit kits[2]; /* with a rollback journal, and in WAL mode */
static fault_base bases[2];
static store_kit *kit;
static const fault_base *base;
static fault_vfs disk;

/* The content of the file before the act, after each of its transactions, and at its end. */
static char *said[MOST_STATES];
static size_t nsaid;

#define OK(call) KIT_OK(kit, call)

/* Once for all tests: each is a process of its own. */
static void make_bases(void)
{
    for (int wal = 0; wal < 2; wal++) {
        store_kit_folder(&kits[wal]);
        fault_base_make(&bases[wal], &kits[wal], wal);
    }
}

static void remove_bases(void)
{
    for (int wal = 0; wal < 2; wal++)
        store_kit_stop(&kits[wal]);
}

static void killed_setup(void)
{
    fault_vfs_register(&disk);
}

static void killed_teardown(void)
{
    fault_vfs_unregister(&disk);
    while (nsaid > 0)
        free(said[--nsaid]);
}

/* ---- the call ---------------------------------------------------------------- */

static void start_anew(void)
{
    store_kit_copy(kit->file, base->work);
}

static void open_fault_copy(fault_handles *h, const char *vfs)
{
    fault_open(h, base, vfs, 0);
}

/* All in transactions of their own. */
static int run_savepoints(fault_handles *h, brc_error *err)
{
    int rc = BRC_OK;
    for (int i = 0; i < fault_nsave_steps && rc == BRC_OK; i++) {
        rc = fault_save_steps[i](h, err);
        if (h->ended != NULL)
            h->ended(h);
    }
    return rc;
}

/* A call that dies at a moment. */
typedef struct victim {
    int (*run)(fault_handles *h, brc_error *err);
    uint64_t moment;
} victim;

static int run_victim(void *ctx)
{
    const victim *v = ctx;
    fault_handles h;
    open_fault_copy(&h, FAULT_VFS_NAME);
    fault_vfs_kill(&disk, FAULT_CHANGES, v->moment);
    int rc = v->run(&h, &kit->err);
    fault_close(&h); /* which copies a log back */
    return rc;
}

/* 0: there are not so many moments. */
static int run_and_die(int (*run)(fault_handles *h, brc_error *err), uint64_t n)
{
    victim v = { run, n };
    start_anew();
    return !process_survives(run_victim, &v);
}

static void note_state(const fault_handles *h)
{
    (void)h;
    ck_assert_uint_lt(nsaid, MOST_STATES);
    said[nsaid++] = file_digest(base->work);
}

/* The call as it is when nothing happens; what everybody sees then. */
static char *run_whole(int act)
{
    fault_handles h;
    start_anew();
    note_state(NULL);
    open_fault_copy(&h, NULL);
    h.ended = note_state;
    OK(fault_acts[act].run(&h, &kit->err));
    fault_close(&h);
    note_state(NULL);
    return file_digest_seen(base->work);
}

/* ---- what is found ----------------------------------------------------------- */

static int drafts_of_the_dead(breccia *repo, int64_t *last)
{
    brc_iter *it;
    const brc_draft *draft;
    int n = 0, rc;
    OK(brc_drafts(&it, repo, &kit->err));
    while ((rc = brc_next(it, &draft, &kit->err)) > 0)
        if (draft->flags & BRC_DRAFT_OWNED) {
            ck_assert_int_eq(draft->owner, BRC_OWNER_DEAD);
            *last = draft->id;
            n++;
        }
    ck_assert_msg(rc == 0, "%s", kit->err.message);
    brc_iter_free(it);
    return n;
}

/* Adopted, or refused with nothing changed; and dropped. */
static void settle(breccia *repo, int64_t id, int is_dropped)
{
    if (!is_dropped) {
        char *before = file_digest_named(base->work);
        int rc = brc_draft_adopt(repo, id, &kit->err);
        char *after = file_digest_named(base->work);
        ck_assert_msg(rc == BRC_OK || rc == BRC_ECONFLICT || rc == BRC_ESTALE, "%s",
                      kit->err.message);
        ck_assert_int_eq(strcmp(before, after) != 0, rc == BRC_OK);
        free(before);
        free(after);
        is_dropped = rc != BRC_OK;
    }
    if (is_dropped)
        OK(brc_draft_drop(repo, id, &kit->err));
}

static int is_among(const char *now, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (strcmp(now, said[i]) == 0)
            return 1;
    return 0;
}

/* Where it is not done, it is done now. */
static void do_again(int act, int is_done, const char *seen_after)
{
    fault_handles h;
    if (!is_done) {
        open_fault_copy(&h, NULL);
        OK(fault_acts[act].run(&h, &kit->err));
        fault_close(&h);
    }
    char *now = file_digest_seen(base->work);
    ck_assert_str_eq(now, seen_after);
    free(now);
}

static void look_at_dead(int act, uint64_t n, const char *seen_before, const char *seen_after)
{
    breccia *repo;
    brc_open_opts opts = BRC_OPEN_OPTS_INIT;
    int64_t left = 0;
    opts.flags = n % 2 == 0 ? BRC_OPEN_READONLY : 0;
    OK(brc_open(&repo, base->work, &opts, &kit->err));
    brc_free(repo);
    char *now = file_digest(base->work), *seen = file_digest_seen(base->work);
    ck_assert_msg(fault_acts[act].batches == 2 || is_among(now, nsaid),
                  "%s, killed at %d: the file says something else", fault_acts[act].name, (int)n);
    int is_done = strcmp(seen, seen_after) == 0 && strcmp(now, said[0]) != 0;
    ck_assert_msg(is_done || strcmp(seen, seen_before) == 0, "%s, killed at %d: half is visible",
                  fault_acts[act].name, (int)n);
    ck_assert(file_is_whole(base->work));
    OK(brc_open(&repo, base->work, NULL, &kit->err));
    int dead = drafts_of_the_dead(repo, &left), had = strcmp(now, said[0]) == 0 || !is_done;
    ck_assert_int_ge(dead, had ? 3 : 2); /* an act may have taken one */
    if (fault_acts[act].batches == 1 && strcmp(now, said[0]) != 0 && !is_done) {
        ck_assert_int_eq(dead, 4);
        settle(repo, left, n % 3 != 0);
        brc_free(repo);
        ck_assert(file_is_whole(base->work));
        if (n % 3 != 0)
            do_again(act, 0, seen_after);
    } else {
        brc_free(repo);
        if (fault_acts[act].batches != 1 || fault_acts[act].changes)
            do_again(act, is_done, seen_after);
    }
    free(now);
    free(seen);
}

CASE("killed", .setup = killed_setup, .teardown = killed_teardown,
     .setup_once = make_bases, .teardown_once = remove_bases,
     .timeout = 120);

LOOP(whenever_it_is_killed, 0, 2 * fault_nacts)
{
    const int act = _i / 2, wal = _i % 2;
    const uint64_t each = effort_step(5, 20);
    uint64_t n = 1 + (uint64_t)_i % each, killed = 0;
    kit = &kits[wal];
    base = &bases[wal];
    if (!fault_acts[act].changes && !fault_acts[act].batches)
        return;
    char *seen_after = run_whole(act);
    start_anew();
    char *seen_before = file_digest_seen(base->work);
    for (; run_and_die(fault_acts[act].run, n); n += each, killed++)
        look_at_dead(act, n, seen_before, seen_after);
    ck_assert_uint_ge(killed, 10 / each); /* a small act writes some ten times */
    free(seen_before);
    free(seen_after);
}

/* ---- savepoints -------------------------------- */

static void note_seen(const fault_handles *h)
{
    (void)h;
    ck_assert_uint_lt(nsaid, MOST_STATES);
    said[nsaid++] = file_digest_seen(base->work);
}

/* The dead process's changes are there, as if it had released; and others can make savepoints. */
static void go_on_after_savepoints(uint64_t n)
{
    breccia *repo;
    brc_session *session;
    char *now = file_digest_seen(base->work);
    ck_assert_msg(is_among(now, nsaid), "killed at %d: the file says something else", (int)n);
    ck_assert(file_is_whole(base->work));
    OK(brc_open(&repo, base->work, NULL, &kit->err));
    OK(brc_session_open(&session, repo, NULL, BRC_SESSION_WRITE, &kit->err));
    if (n % 2 == 0)
        OK(brc_gc(repo, NULL, NULL, &kit->err));
    OK(brc_savepoint(session, BRC_SAVEPOINT_SET, "x", &kit->err));
    OK(brc_attrs_set(session, "/", "more", "1", &kit->err));
    OK(brc_savepoint(session, BRC_SAVEPOINT_ROLLBACK, "x", &kit->err));
    brc_session_free(session);
    brc_free(repo);
    char *then = file_digest_seen(base->work);
    ck_assert_str_eq(now, then);
    ck_assert(file_is_whole(base->work));
    free(now);
    free(then);
}

LOOP(whenever_it_is_killed_with_savepoints_what_it_wrote_is_there, 0, 2)
{
    const uint64_t each = effort_step(21, 60);
    uint64_t n = 1, killed = 0;
    fault_handles h;
    kit = &kits[_i];
    base = &bases[_i];
    start_anew();
    note_seen(NULL);
    open_fault_copy(&h, NULL);
    h.ended = note_seen;
    OK(run_savepoints(&h, &kit->err));
    fault_close(&h);
    note_seen(NULL);
    for (; run_and_die(run_savepoints, n); n += each, killed++)
        go_on_after_savepoints(n);
    ck_assert_uint_ge(killed, 100 / each);
}
