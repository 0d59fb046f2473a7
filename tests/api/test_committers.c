/*
 * Eight processes that commit private drafts to one branch at once, half of the commits to the same
 * array: each commit is an ancestor of the tip, or its conflict was reported. The same while
 * collections run all the time and processes are killed at random: 500 commits in all, and 2,000 in
 * `make test-long`. And sixteen that commit their own elements of one chunk: `make commits
 * COMMITS=100` takes more of each.
 */
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "../kit/effort.h"
#include "../kit/ios.h"
#include "../kit/sanitized.h"
#include "../kit/scenario.h"
#include "../kit/suite.h"

TEST_SUITE(committers);

enum { PROCESSES = 8, EACH_MOST = 250, MINE = 4, CONTESTED_EACH = 25, FIRST_VALUE = 1000 };

/* The record that a process keeps of itself; it survives when the process is killed. */
typedef struct committer {
    atomic_int done;      /* commits that are known to have been made         */
    atomic_int intent;    /* the value that is being committed; 0: none        */
    atomic_int at;        /* where: an element, or MINE + one of its own array */
    atomic_int conflicts; /* that were reported                                */
    atomic_int noted;     /* of `ids`                                          */
    int32_t last[2 * MINE];
    brc_oid ids[EACH_MOST];
} committer;

typedef struct shared {
    committer all[PROCESSES];
    atomic_int stop;
    atomic_int collections;
    char why[400]; /* of the first failure */
} shared;

static scenario t;
static shared *m;

static int each_process(void)
{
    return (int)(EACH_MOST / effort_step(4, 4));
}

static void start_in(const char *backend)
{
    const uint64_t one = PROCESSES * MINE, chunk = 8;
    char path[16];
    m = mmap(NULL, sizeof(*m), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    ck_assert_ptr_ne(m, MAP_FAILED);
    scenario_start(&t);
    OK(&t, brc_config_set(t.repo, "backend", backend, &t.err));
    brc_array_free(scenario_array(&t, "/all", "int32", 1, &one, &chunk, NULL, NULL));
    scenario_numbers(&t, "/contested", 1, 1, 0);
    for (int p = 0; p < PROCESSES; p++) {
        snprintf(path, sizeof(path), "/own%d", p);
        scenario_numbers(&t, path, MINE, 2, 0);
    }
    for (int p = 0; p < PROCESSES; p++) /* as scenario_numbers() has set them */
        for (int i = 0; i < MINE; i++)
            m->all[p].last[MINE + i] = i;
    scenario_commit(&t, "first");
    scenario_close(&t);
}

static void committers_setup(void)
{
    start_in("inline");
}

/* Nothing is kept for a while, so that collections remove packs and write what is left of them. */
static void packs_setup(void)
{
    start_in("pack");
    scenario_open(&t, NULL, 0);
    scenario_no_window(&t);
    scenario_close(&t);
}

/* The server is in this process, and those that it starts use it too. */
static void bucket_setup(void)
{
    char spec[300];
    start_in(scenario_bucket(spec, "all"));
    scenario_open(&t, NULL, 0);
    scenario_no_window(&t);
    scenario_close(&t);
}

static void committers_teardown(void)
{
    scenario_stop(&t);
    munmap(m, sizeof(*m));
}

/* ---- a process -------------------------------- */

typedef struct process {
    int number;
    uint64_t random;
    committer *me;
    breccia *repo;
    brc_session *session;
    brc_error err;
} process;

static void process_fails(process *w, const char *what)
{
    if (m->why[0] == '\0')
        snprintf(m->why, sizeof(m->why), "process %d: %s: %.300s", w->number, what,
                 w->err.message);
    _exit(1);
}

#define DO(w, call)                     \
    do {                                \
        if ((call) != BRC_OK)           \
            process_fails((w), #call);  \
    } while (0)

/* /all has MINE elements of each process, far apart, so that chunks are shared; the next MINE are
 * those of its own array. */
static uint64_t locate(int number, int at, char path[16])
{
    if (at < MINE) {
        snprintf(path, 16, "/all");
        return (uint64_t)(at * PROCESSES + number);
    }
    snprintf(path, 16, "/own%d", number);
    return (uint64_t)(at - MINE);
}

static int32_t element(process *w, brc_session *s, const char *path, uint64_t i)
{
    brc_array *a;
    brc_sel sel = BRC_SEL_INIT;
    int32_t value;
    DO(w, brc_array_open(&a, s, path, &w->err));
    sel_all(&sel, a);
    sel.start[0] = i;
    sel.count[0] = 1;
    DO(w, brc_array_read(a, &sel, &value, sizeof(value), &w->err));
    brc_array_free(a);
    return value;
}

static void put(process *w, const char *path, uint64_t i, int32_t value)
{
    brc_array *a;
    brc_sel sel = BRC_SEL_INIT;
    DO(w, brc_array_open(&a, w->session, path, &w->err));
    sel_all(&sel, a);
    sel.start[0] = i;
    sel.count[0] = 1;
    DO(w, brc_array_write(a, &sel, &value, sizeof(value), &w->err));
    brc_array_free(a);
}

/* However many races in a row are lost: one call is enough. */
static int commit(process *w, brc_oid *id)
{
    brc_commit_opts opts = BRC_COMMIT_OPTS_INIT;
    char message[16];
    snprintf(message, sizeof(message), "%d", w->number);
    opts.message = message;
    return brc_session_commit(id, w->session, &opts, &w->err);
}

/* The one before it may have been killed as it committed: did it? Also between any two lines of
 * what follows a commit, so `done` is set from the value and not counted on. */
static void settle_last(process *w)
{
    char path[16];
    int32_t intent = w->me->intent;
    if (intent == 0)
        return;
    int at = w->me->at;
    brc_session *s;
    DO(w, brc_session_open(&s, w->repo, "main", BRC_SESSION_WRITE, &w->err));
    uint64_t i = locate(w->number, at, path);
    if (element(w, s, path, i) == intent) {
        w->me->last[at] = intent;
        w->me->done = intent - FIRST_VALUE + 1;
    }
    brc_session_free(s);
    w->me->intent = 0;
}

static void commit_one(process *w)
{
    char path[16];
    brc_oid id;
    committer *me = w->me;
    const int at = me->done % 2 * MINE + (int)scenario_below(&w->random, MINE);
    const int32_t value = FIRST_VALUE + me->done;
    uint64_t i = locate(w->number, at, path);
    put(w, path, i, value);
    me->at = at;
    me->intent = value;
    DO(w, commit(w, &id));
    me->last[at] = value;
    me->ids[me->noted] = id;
    me->noted++;
    me->done++;
    me->intent = 0;
}

/* Everybody writes the same element: somebody else may have been first. */
static void contest(process *w, int i)
{
    brc_oid id;
    put(w, "/contested", 0, (int32_t)(w->number * CONTESTED_EACH + i + 1));
    int rc = commit(w, &id);
    if (rc == BRC_ECONFLICT) {
        w->me->conflicts++;
        DO(w, brc_session_discard(w->session, &w->err));
        return;
    }
    DO(w, rc);
    w->me->ids[w->me->noted] = id;
    w->me->noted++;
}

/* The machine may have other work, too. */
static void open_to_wait(process *w)
{
    brc_open_opts opts = BRC_OPEN_OPTS_INIT;
    opts.wait_ms = 600000;
    DO(w, scenario_connect(&w->repo, t.file, &opts, &w->err));
}

static void open_file(process *w)
{
    open_to_wait(w);
    settle_last(w);
    DO(w, brc_session_open(&w->session, w->repo, "main", BRC_SESSION_PRIVATE, &w->err));
}

static void close_file(process *w)
{
    brc_session_free(w->session);
    brc_free(w->repo);
}

static pid_t start(int number, int contested)
{
    pid_t pid = fork();
    ck_assert_int_ge(pid, 0);
    if (pid > 0)
        return pid;
    process w = { .number = number, .me = &m->all[number], .err = BRC_ERROR_INIT };
    w.random = (uint64_t)(number * 1000 + w.me->done);
    open_file(&w);
    if (contested)
        for (int i = 0; i < CONTESTED_EACH; i++)
            contest(&w, i);
    else
        while (w.me->done < each_process())
            commit_one(&w);
    close_file(&w);
    _exit(0);
}

static pid_t start_collector(void)
{
    pid_t pid = fork();
    ck_assert_int_ge(pid, 0);
    if (pid > 0)
        return pid;
    process w = { .number = PROCESSES, .err = BRC_ERROR_INIT };
    brc_gc_opts opts = BRC_GC_OPTS_INIT;
    DO(&w, scenario_connect(&w.repo, t.file, NULL, &w.err));
    while (!m->stop) {
        int rc = brc_gc(w.repo, &opts, NULL, &w.err);
        if (rc != BRC_OK && rc != BRC_EBUSY)
            process_fails(&w, "gc");
        m->collections++;
    }
    brc_free(w.repo);
    _exit(0);
}

/* ---- all of them -------------------------------- */

static int ended_well(int status)
{
    return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

static void wait_for(pid_t pid)
{
    int status;
    ck_assert_int_eq(waitpid(pid, &status, 0), pid);
    ck_assert_msg(ended_well(status), "%s", m->why);
}

static int commits_done(void)
{
    int n = 0;
    for (int p = 0; p < PROCESSES; p++)
        n += m->all[p].done;
    return n;
}

/* Kills one of those that run and starts it again, some times a second. Where a commit takes longer
 * than a process lives otherwise (a busy machine, a slow disk), the kills wait for commits. */
static void run_with_kills(pid_t pids[PROCESSES], uint64_t seed)
{
    enum { KILLS_A_COMMIT = 4 };
    int left = PROCESSES, kills = 0, status;
    while (left > 0) {
        const struct timespec nap = { 0, 1000000 * (long)(5 + scenario_below(&seed, 40)) };
        nanosleep(&nap, NULL);
        int p = (int)scenario_below(&seed, PROCESSES);
        if (pids[p] == 0)
            continue;
        const int is_due = kills <= KILLS_A_COMMIT * commits_done();
        if (is_due)
            kill(pids[p], SIGKILL);
        const pid_t ended = waitpid(pids[p], &status, is_due ? 0 : WNOHANG);
        if (ended == 0)
            continue;
        ck_assert_int_eq(ended, pids[p]);
        ck_assert_msg(WIFSIGNALED(status) || ended_well(status), "%s", m->why);
        if (WIFSIGNALED(status)) {
            pids[p] = start(p, 0);
            kills++;
        } else {
            pids[p] = 0;
            left--;
        }
    }
    ck_assert_int_gt(kills, 0);
}

static int is_known(const brc_oid *ids, size_t n, const brc_oid *id)
{
    for (size_t i = 0; i < n; i++)
        if (memcmp(&ids[i], id, sizeof(*id)) == 0)
            return 1;
    return 0;
}

/* Every commit that was told is in the history of main; gives how long that is. */
static size_t check_history(void)
{
    static brc_oid ids[PROCESSES * EACH_MOST * 2];
    const brc_commit *commit;
    brc_iter *it;
    size_t n = 0;
    int rc;
    OK(&t, brc_log(&it, t.repo, "main", NULL, &t.err));
    while ((rc = brc_next(it, &commit, &t.err)) == 1) {
        ck_assert_uint_lt(n, sizeof(ids) / sizeof(ids[0]));
        ids[n++] = commit->id;
    }
    ck_assert_msg(rc == 0, "%s", t.err.message);
    brc_iter_free(it);
    for (int p = 0; p < PROCESSES; p++)
        for (int i = 0; i < m->all[p].noted; i++)
            if (!is_known(ids, n, &m->all[p].ids[i]))
                ck_abort_msg("commit %d of process %d is lost", i, p);
    return n;
}

static void check_elements(void)
{
    char path[16];
    for (int p = 0; p < PROCESSES; p++)
        for (int at = 0; at < 2 * MINE; at++) {
            uint64_t i = locate(p, at, path);
            ck_assert_int_eq(scenario_number(&t, t.session, path, i), m->all[p].last[at]);
        }
}

static void check_file(size_t commits)
{
    brc_gc_opts opts = BRC_GC_OPTS_INIT;
    scenario_open(&t, NULL, 0);
    ck_assert_uint_eq(check_history(), 1 + commits);
    check_elements();
    scenario_whole(&t);
    OK(&t, brc_gc(t.repo, &opts, NULL, &t.err));
    scenario_whole(&t);
    ck_assert_uint_eq(check_history(), 1 + commits);
}

CASE("committers", .setup = committers_setup, .teardown = committers_teardown, .timeout = UNTIMED);

static void commit_at_once(void)
{
    pid_t pids[PROCESSES];
    for (int p = 0; p < PROCESSES; p++)
        pids[p] = start(p, 0);
    for (int p = 0; p < PROCESSES; p++)
        wait_for(pids[p]);
    check_file((size_t)(PROCESSES * each_process()));
}

static void commit_with_kills(void)
{
    pid_t pids[PROCESSES], collector = start_collector();
    for (int p = 0; p < PROCESSES; p++)
        pids[p] = start(p, 0);
    run_with_kills(pids, 20261123);
    m->stop = 1;
    wait_for(collector);
    ck_assert_int_gt(m->collections, 0);
    check_file((size_t)(PROCESSES * each_process()));
}

TEST(no_commit_of_eight_processes_is_lost)
{
    commit_at_once();
}

TEST(nor_where_collections_run_and_processes_are_killed)
{
    commit_with_kills();
}

TEST(who_loses_a_race_for_an_element_is_told)
{
    pid_t pids[PROCESSES];
    size_t told = 0, made = 0;
    for (int p = 0; p < PROCESSES; p++)
        pids[p] = start(p, 1);
    for (int p = 0; p < PROCESSES; p++)
        wait_for(pids[p]);
    for (int p = 0; p < PROCESSES; p++) {
        told += (size_t)m->all[p].conflicts;
        made += (size_t)m->all[p].noted;
    }
    ck_assert_uint_eq(told + made, (size_t)PROCESSES * CONTESTED_EACH);
    check_file(made);
}

CASE("in packs", .setup = packs_setup, .teardown = committers_teardown, .timeout = UNTIMED);

TEST(no_commit_of_eight_processes_is_lost_in_packs)
{
    commit_at_once();
    ck_assert_int_gt(scenario_ask(&t, "SELECT count(*) FROM object WHERE backend>0"), 0);
}

TEST(nor_in_packs_where_collections_run_and_processes_are_killed)
{
    commit_with_kills();
}

CASE("in a bucket", .setup = bucket_setup, .teardown = committers_teardown, .timeout = UNTIMED);

LOOP(nor_in_a_bucket_where_collections_run_and_processes_are_killed, 0, CHILDREN_MAY_ALLOCATE)
{
    commit_with_kills();
    ck_assert_int_gt(scenario_ask(&t, "SELECT count(*) FROM object WHERE backend>0"), 0);
}

/* ---- one chunk -------------------------------- */

enum { CROWD = 16 };

static void open_crowded(process *w)
{
    open_to_wait(w);
    DO(w, brc_session_open(&w->session, w->repo, "main", BRC_SESSION_PRIVATE, &w->err));
}

/* Each commit is of one element that nobody else writes. */
static pid_t start_crowded(int number, int each)
{
    pid_t pid = fork();
    ck_assert_int_ge(pid, 0);
    if (pid > 0)
        return pid;
    process w = { .number = number, .err = BRC_ERROR_INIT };
    open_crowded(&w);
    for (int i = 0; i < each; i++) {
        const int at = number * each + i;
        brc_oid id;
        put(&w, "/crowded", (uint64_t)at, FIRST_VALUE + at);
        DO(&w, commit(&w, &id));
    }
    close_file(&w);
    _exit(0);
}

static uint64_t commits_of_main(void)
{
    const brc_commit *one;
    brc_iter *it;
    uint64_t n = 0;
    OK(&t, brc_log(&it, t.repo, "main", NULL, &t.err));
    while (brc_next(it, &one, &t.err) == 1)
        n++;
    brc_iter_free(it);
    return n;
}

static void check_crowded(int each)
{
    scenario_open(&t, NULL, 0);
    ck_assert_uint_eq(commits_of_main(), (uint64_t)(2 + CROWD * each));
    for (int i = 0; i < CROWD * each; i++)
        ck_assert_int_eq(scenario_number(&t, t.session, "/crowded", (uint64_t)i), FIRST_VALUE + i);
    scenario_whole(&t);
    ck_assert_int_eq(scenario_ask(&t, "SELECT count(*) FROM draft WHERE kind=2"), 0);
}

CASE("crowd", .setup = committers_setup, .teardown = committers_teardown, .timeout = UNTIMED);

TEST(sixteen_processes_commit_to_one_chunk)
{
    const int each = (int)effort_number("BRECCIA_COMMITS", 6);
    pid_t pids[CROWD];
    ck_assert_int_gt(each, 0);
    scenario_open(&t, NULL, 0);
    scenario_numbers(&t, "/crowded", (uint64_t)(CROWD * each), (uint64_t)(CROWD * each), 0);
    scenario_commit(&t, "crowded");
    scenario_close(&t);
    for (int p = 0; p < CROWD; p++)
        pids[p] = start_crowded(p, each);
    for (int p = 0; p < CROWD; p++)
        wait_for(pids[p]);
    check_crowded(each);
}
