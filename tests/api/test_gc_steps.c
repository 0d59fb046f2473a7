/*
 * The steps of a collection: in which order things go, what it does where others never rest, and
 * what becomes of rows with holes.
 */
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../kit/own_rows.h"
#include "../kit/scenario.h"
#include "../kit/suite.h"
#include "../kit/versions.h"

TEST_SUITE(gc_steps);

SCENARIO_FIXTURE(t)

/* The function that is called between the steps of t.repo's calls. */
static int (*between)(void);

static int dispatch(void *ctx, const char *phase, uint64_t done, uint64_t total)
{
    (void)ctx, (void)phase, (void)done, (void)total;
    return between != NULL ? between() : 0;
}

static void steps_open(uint32_t flags)
{
    brc_open_opts opts = BRC_OPEN_OPTS_INIT;
    opts.progress = dispatch;
    between = NULL;
    scenario_open(&t, &opts, flags);
}

static void commit_first(void)
{
    scenario_numbers(&t, "/a", 64, 4, 0);
    scenario_commit(&t, "first");
    scenario_no_window(&t);
}

static void steps_setup(void)
{
    scenario_folder(&t);
    steps_open(BRC_OPEN_CREATE);
    commit_first();
}

static void rows_setup(void)
{
    scenario_folder(&t);
    steps_open(BRC_OPEN_CREATE);
    scenario_inline(&t);
    commit_first();
}

/* Commits on a branch that is deleted: n, and as many objects as `chunks` says in each. */
static void make_garbage(brc_oid *ids, int n, uint64_t chunks, int32_t first)
{
    brc_session *main = t.session;
    OK(&t, brc_ref_create(t.repo, "side", NULL, NULL, 0, &t.err));
    OK(&t, brc_session_open(&t.session, t.repo, "side", BRC_SESSION_WRITE, &t.err));
    for (int i = 0; i < n; i++) {
        char path[20];
        snprintf(path, sizeof(path), "/side%d", i);
        scenario_numbers(&t, path, chunks, 1, first + i * (int32_t)chunks);
        ids[i] = scenario_commit(&t, "on the side");
    }
    brc_session_free(t.session);
    t.session = main;
    OK(&t, brc_ref_delete(t.repo, "side", BRC_DELETE_FORCE, &t.err));
}

/* ---- order -------------------------------- */

/* Stops it as soon as something has been removed. */
static int64_t objects_before;

static int stop_when_some_are_gone(void)
{
    return scenario_ask(&t, "SELECT count(*) FROM object") < objects_before - 500;
}

CASE("steps", .setup = steps_setup, .teardown = t_stop, .timeout = 120);

/* While a commit is there, all that it reaches is: so commits go first, whatever stops the rest. */
TEST(commits_go_before_what_they_reach)
{
    enum { COMMITS = 12 };
    brc_oid ids[COMMITS];
    make_garbage(ids, COMMITS, 400, 10000);
    objects_before = scenario_ask(&t, "SELECT count(*) FROM object");
    between = stop_when_some_are_gone;
    FAILS(&t, BRC_EINTERRUPT, brc_gc(t.repo, NULL, NULL, &t.err));
    between = NULL;
    const int64_t left = scenario_ask(&t, "SELECT count(*) FROM object");
    ck_assert_int_gt((int)left, 1000); /* of what they reached much is there still */
    for (int i = 0; i < COMMITS; i++)
        ck_assert(!scenario_has_commit(&t, &ids[i]));
    scenario_whole(&t);
    ck_assert_uint_gt(scenario_collect(&t, 0), 1000);
}

/* Objects that became garbage while the sweep was stopped lie on both sides of its position. */
TEST(garbage_made_while_it_was_stopped_goes_with_the_rest)
{
    brc_oid ids[3];
    const int64_t needed = scenario_ask(&t, "SELECT count(*) FROM object");
    make_garbage(ids, 3, 1000, 10000);
    objects_before = scenario_ask(&t, "SELECT count(*) FROM object");
    between = stop_when_some_are_gone;
    FAILS(&t, BRC_EINTERRUPT, brc_gc(t.repo, NULL, NULL, &t.err));
    between = NULL;
    ck_assert_int_eq((int)scenario_ask(&t, "SELECT count(*) FROM gc WHERE position NOT NULL"), 1);
    make_garbage(ids, 3, 200, 70000);
    scenario_collect(&t, 0);
    ck_assert_int_le(scenario_ask(&t, "SELECT count(*) FROM object"), needed);
}

/* At the pauses from one on it is killed. */
static int pauses_left;

static int die_at_a_pause(void)
{
    if (pauses_left-- == 0)
        (void)!raise(SIGKILL);
    return 0;
}

/* Collects in a child that is killed after so many pauses. Returns whether it was killed. */
static int collect_and_die(int pauses)
{
    int status;
    scenario_close(&t);
    const pid_t child = fork();
    ck_assert_int_ge(child, 0);
    if (child == 0) {
        pauses_left = pauses;
        steps_open(0);
        between = die_at_a_pause;
        _exit(brc_gc(t.repo, NULL, NULL, &t.err) != BRC_OK);
    }
    ck_assert_int_eq(waitpid(child, &status, 0), child);
    ck_assert(WIFSIGNALED(status) || WEXITSTATUS(status) == 0);
    steps_open(0);
    scenario_whole(&t);
    return WIFSIGNALED(status);
}

/* All of it is there, or the answer is that it is not any more: 1, 0. */
static int is_whole(const brc_oid *id, int n, uint64_t chunks)
{
    brc_session *s;
    brc_iter *it;
    const brc_commit *c;
    char hex[65], path[20];
    int rc = brc_session_open(&s, t.repo, brc_oid_format(hex, id), BRC_SESSION_AT, &t.err);
    if (rc != BRC_OK) {
        ck_assert_msg(rc == BRC_ENOTFOUND && strstr(t.err.message, "no longer kept"), "%s",
                      t.err.message);
        FAILS(&t, BRC_ENOTFOUND, brc_log(&it, t.repo, hex, NULL, &t.err));
        ck_assert_ptr_nonnull(strstr(t.err.message, "no longer kept"));
        return 0;
    }
    for (int i = 0; i <= n; i++) {
        snprintf(path, sizeof(path), "/side%d", i);
        for (uint64_t k = 0; k < chunks; k += 17)
            ck_assert_int_eq(scenario_number(&t, s, path, k),
                             10000 + i * (int32_t)chunks + (int32_t)k);
    }
    brc_session_free(s);
    OK(&t, brc_log(&it, t.repo, hex, NULL, &t.err));
    while ((rc = brc_next(it, &c, &t.err)) > 0)
        ;
    ck_assert_msg(rc == 0, "%s", t.err.message);
    brc_iter_free(it);
    return 1;
}

/* Whenever the sweep was killed, a version that is asked for by its id is read or is no longer
 * kept; it is never reported as damage. */
TEST(killed_at_any_pause_a_version_is_whole_or_no_longer_kept)
{
    enum { COMMITS = 5, CHUNKS = 300 };
    brc_oid ids[COMMITS];
    int whole = 0, gone = 0, killed = 1;
    make_garbage(ids, COMMITS, CHUNKS, 10000);
    for (int pauses = 0; killed; pauses++) {
        killed = collect_and_die(pauses);
        for (int i = 0; i < COMMITS; i++)
            ++*(is_whole(&ids[i], i, CHUNKS) ? &whole : &gone);
    }
    ck_assert_int_gt(whole, 0);
    ck_assert_int_gt(gone, COMMITS);
}

/* ---- others who never rest -------------------------------- */

enum { RESTLESS = 300 };
static int acts;

static void commit_number(int32_t number)
{
    scenario w = t;
    OK(&w, brc_open(&w.repo, t.file, NULL, &w.err));
    OK(&w, brc_session_open(&w.session, w.repo, NULL, BRC_SESSION_WRITE, &w.err));
    scenario_set_number(&w, "/a", 0, number);
    scenario_commit(&w, "again");
    brc_session_free(w.session);
    brc_free(w.repo);
}

/* New roots whenever it looks. */
static int commit_again(void)
{
    if (acts < RESTLESS &&
        scenario_ask(&t, "SELECT count(*) FROM sqlite_schema WHERE name='gc'") > 0)
        commit_number(500000 + acts++);
    return 0;
}

TEST(it_ends_though_others_commit_at_every_pause)
{
    brc_oid id;
    make_garbage(&id, 1, 100, 10000);
    acts = 0;
    between = commit_again;
    ck_assert_uint_gt(scenario_collect(&t, 0), 100);
    between = NULL;
    ck_assert_int_gt(acts, 3);
    ck_assert_int_lt(acts, RESTLESS);
    ck_assert(!scenario_has_commit(&t, &id));
    brc_session *s = scenario_session(&t, t.repo, "main", BRC_SESSION_AT);
    ck_assert_int_eq(scenario_number(&t, s, "/a", 0), 500000 + acts - 1);
    ck_assert_int_eq(scenario_number(&t, s, "/a", 63), 63);
    brc_session_free(s);
}

static brc_oid left_over; /* a commit that no branch leads to */
static int saves_at, is_saved;

/* By another process, as it were. */
static int make_saved(void)
{
    char hex[65];
    scenario w = t;
    OK(&w, brc_open(&w.repo, t.file, NULL, &w.err));
    const int rc = brc_ref_create(w.repo, "saved", brc_oid_format(hex, &left_over), NULL, 0,
                                  &w.err);
    ck_assert_msg(rc == BRC_OK || rc == BRC_ENOTFOUND, "%s", w.err.message);
    brc_free(w.repo);
    return rc == BRC_OK;
}

/* At one pause a branch is made that leads to garbage, at all of them there are new roots. */
static int save_at_a_pause(void)
{
    if (acts == saves_at)
        is_saved = make_saved();
    commit_number(500000 + acts++);
    return 0;
}

/* Also at the last moment, when the collection no longer gives way. */
TEST(a_branch_that_is_made_at_any_pause_keeps_its_commits)
{
    int saved = 0, late = 0;
    scenario_numbers(&t, "/many", 5000, 1, 100000); /* so much to mark that it pauses */
    scenario_commit(&t, "many");
    for (saves_at = 0; !late; saves_at++) {
        make_garbage(&left_over, 1, 100, 10000);
        acts = is_saved = 0;
        between = save_at_a_pause;
        OK(&t, brc_gc(t.repo, NULL, NULL, &t.err));
        between = NULL;
        ck_assert_int_gt(acts, saves_at);
        scenario_whole(&t);
        late = !is_saved;
        saved += is_saved;
        ck_assert_int_eq(is_whole(&left_over, 0, 100), is_saved);
        if (is_saved)
            OK(&t, brc_ref_delete(t.repo, "saved", BRC_DELETE_FORCE, &t.err));
    }
    ck_assert_int_gt(saved, 3);
}

/* ---- rows with holes -------------------------------- */

CASE("rows", .setup = rows_setup, .teardown = t_stop, .timeout = 120);

/* More than are looked at together. */
TEST(all_rows_with_holes_are_closed)
{
    scenario_numbers(&t, "/many", 3000, 1, 20000);
    scenario_commit(&t, "many");
    scenario_sql(&t, OWN_ROWS_HALVED);
    ck_assert_int_gt(scenario_ask(&t, "SELECT count(*) FROM removed"), 3000);
    scenario_collect(&t, 0);
    ck_assert_int_eq((int)scenario_ask(&t, "SELECT count(*) FROM removed"), 0);
    ck_assert_int_eq(scenario_ask(&t, "SELECT sum(length(data)) FROM blob"),
                     scenario_ask(&t, "SELECT sum(stored) FROM object"));
    for (uint64_t i = 0; i < 3000; i += 7)
        ck_assert_int_eq(scenario_number(&t, t.session, "/many", i), 20000 + (int32_t)i);
}

/* Bytes that nobody accounts for may be somebody's: their row stays as it is. */
TEST(a_row_with_bytes_of_nobody_stays)
{
    scenario_numbers(&t, "/many", 8, 1, 20000);
    scenario_commit(&t, "many");
    scenario_sql(&t, OWN_ROWS_HALVED);
    scenario_sql(&t, "UPDATE blob SET data=CAST(data || x'5555' AS BLOB) WHERE seq=(SELECT"
                     " place FROM removed ORDER BY bytes DESC LIMIT 1);"
                     "UPDATE removed SET bytes=bytes+1, total=total+2 WHERE place=(SELECT place"
                     " FROM removed ORDER BY bytes DESC LIMIT 1);"
                     "UPDATE removed SET checksum=" REMOVED_SUM);
    scenario_collect(&t, 0);
    ck_assert_int_eq((int)scenario_ask(&t, "SELECT count(*) FROM removed"), 1);
    ck_assert_int_eq((int)scenario_ask(&t, "SELECT count(*) FROM object o JOIN removed r"
                                             " ON r.place=o.place"),
                     1);
    scenario_sql_shared(&t, "UPDATE removed SET bytes=bytes+1;"
                            "UPDATE removed SET checksum=" REMOVED_SUM);
    scenario_collect(&t, 0);
    ck_assert_int_eq((int)scenario_ask(&t, "SELECT count(*) FROM removed"), 0);
}
