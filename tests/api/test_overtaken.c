/*
 * Whatever moves a branch is made without the lock, and is made again where somebody was first:
 * until it is through, or the time to wait is over. Here somebody who does not wait is first each
 * time that a chunk is decoded: he commits another element of the chunk that is merged.
 */
#include <poll.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../kit/fault_vfs.h"
#include "../kit/hooked_kit.h"
#include "../kit/suite.h"
#include "../kit/versions.h"

TEST_SUITE(overtaken);

enum { LENGTH = 4096, CHUNK = 4096, TIMES = 120 }; /* a merge decodes three versions of a chunk */

static hooked_kit k;
static brc_session *mine;
static int made, most;

static int commit_of(brc_session *s, const char *message, brc_error *err)
{
    brc_commit_opts opts = BRC_COMMIT_OPTS_INIT;
    brc_oid id;
    opts.message = message;
    return brc_session_commit(&id, s, &opts, err);
}

static void overtaken_setup(void)
{
    hooked_start(&k, LENGTH, CHUNK);
    OK(&k.first, brc_array_fill(k.array, NULL, &(int32_t){7}, &k.first.err));
    scenario_commit(&k.first, "first");
    OK(&k.first, brc_session_open(&mine, k.first.repo, "main", BRC_SESSION_PRIVATE, &k.first.err));
    made = 0;
    most = TIMES;
}

static void overtaken_teardown(void)
{
    hook_decode(NULL, NULL, 0);
    brc_session_free(mine);
    scenario_whole(&k.first);
    hooked_stop(&k);
}

static int is_locked(void)
{
    const int rc = brc_begin(k.second.repo, NULL);
    if (rc == BRC_OK)
        (void)!brc_end(k.second.repo, 0, NULL);
    return rc != BRC_OK;
}

/* The branch moves. */
static void overtake(void *ctx)
{
    (void)ctx;
    if (made >= most || is_locked())
        return;
    brc_session *s = scenario_session(&k.second, k.second.repo, "main", BRC_SESSION_PRIVATE);
    scenario_put(&k.second, s, "/a", 1, 1000 + ++made);
    OK(&k.second, commit_of(s, "theirs", &k.second.err));
    brc_session_free(s);
}

static void check_both(brc_session *s)
{
    ck_assert_int_eq(made, most);
    ck_assert_int_eq(scenario_number(&k.first, s, "/a", 0), 100);
    ck_assert_int_eq(scenario_number(&k.first, s, "/a", 1), 1000 + most);
}

/* Both have changed the chunk since `mine` began. */
static void begin_behind(void)
{
    scenario_put(&k.first, mine, "/a", 0, 100);
    scenario_set_number(&k.first, "/a", 1, 1000);
    scenario_commit(&k.first, "theirs");
}

CASE("overtaken", .setup = overtaken_setup, .teardown = overtaken_teardown, .timeout = 120);

TEST(a_commit_gets_on_however_often_others_are_first)
{
    begin_behind();
    hook_decode(overtake, NULL, 100000);
    OK(&k.first, commit_of(mine, "mine", &k.first.err));
    check_both(k.first.session);
}

TEST(until_the_time_to_wait_is_over)
{
    brc_open_opts opts = BRC_OPEN_OPTS_INIT;
    breccia *hasty;
    opts.registry = k.parts.reg;
    opts.wait_ms = 60;
    most = 1000000;
    OK(&k.first, brc_open(&hasty, k.first.file, &opts, &k.first.err));
    brc_session *s = scenario_session(&k.first, hasty, "main", BRC_SESSION_PRIVATE);
    scenario_put(&k.first, s, "/a", 0, 100);
    scenario_set_number(&k.first, "/a", 1, 1000);
    scenario_commit(&k.first, "theirs");
    hook_decode(overtake, NULL, 1000000);
    FAILS(&k.first, BRC_EBUSY, commit_of(s, "mine", &k.first.err));
    ck_assert_ptr_nonnull(strstr(k.first.err.message, "others were first each time, for 0.06 s"));
    ck_assert_ptr_nonnull(strstr(k.first.err.message, "they are kept; commit again"));
    most = made;
    OK(&k.first, commit_of(s, "mine", &k.first.err));
    check_both(k.first.session);
    brc_session_free(s);
    brc_free(hasty);
}

/* ---- what else moves a branch -------------------------------- */

/* The branch `side` has element 0, and main goes on with element 1. */
static void part_side_from_main(void)
{
    scenario *t = &k.first;
    OK(t, brc_ref_create(t->repo, "side", "main", NULL, 0, &t->err));
    OK(t, brc_switch(t->repo, "side", 0, &t->err));
    brc_session *s = scenario_session(t, t->repo, "side", BRC_SESSION_WRITE);
    scenario_put(t, s, "/a", 0, 100);
    OK(t, commit_of(s, "side", &t->err));
    brc_session_free(s);
    OK(t, brc_switch(t->repo, "main", 0, &t->err));
    scenario_put(t, t->session, "/a", 1, 1000);
    scenario_commit(t, "main");
    hook_decode(overtake, NULL, 100000);
}

TEST(so_does_a_merge)
{
    brc_merge_result r = BRC_MERGE_RESULT_INIT;
    part_side_from_main();
    OK(&k.first, brc_merge(&r, NULL, k.first.repo, "side", NULL, &k.first.err));
    ck_assert_int_eq(r.result, BRC_MERGE_MERGED);
    check_both(k.first.session);
}

TEST(so_does_a_cherry_pick)
{
    brc_pick_result r = BRC_PICK_RESULT_INIT;
    part_side_from_main();
    OK(&k.first, brc_pick(&r, NULL, k.first.repo, "side", NULL, &k.first.err));
    ck_assert_int_eq(r.result, BRC_PICK_COMMITTED);
    check_both(k.first.session);
}

/* main~1 is another commit each time; what is meant is the one that it was. */
TEST(so_does_a_revert)
{
    brc_pick_opts opts = BRC_PICK_OPTS_INIT;
    brc_pick_result r = BRC_PICK_RESULT_INIT;
    opts.flags = BRC_PICK_REVERT;
    scenario_put(&k.first, k.first.session, "/a", 0, 50);
    scenario_put(&k.first, k.first.session, "/a", 0, 100);
    scenario_commit(&k.first, "100");
    scenario_put(&k.first, k.first.session, "/a", 0, 50);
    scenario_commit(&k.first, "50");
    scenario_put(&k.first, k.first.session, "/a", 1, 1000);
    scenario_commit(&k.first, "theirs");
    hook_decode(overtake, NULL, 100000);
    OK(&k.first, brc_pick(&r, NULL, k.first.repo, "main~1", &opts, &k.first.err));
    ck_assert_int_eq(r.result, BRC_PICK_COMMITTED);
    check_both(k.first.session);
}

/* Commits that others add to the branch during a rebase are rebased, too. */
TEST(so_does_a_rebase)
{
    brc_pick_result r = BRC_PICK_RESULT_INIT;
    most = 20;
    part_side_from_main();
    OK(&k.first, brc_rebase(&r, NULL, k.first.repo, "side", NULL, &k.first.err));
    ck_assert_uint_eq(r.made, (uint64_t)(1 + most));
    check_both(k.first.session);
}

/* Somebody switches, too. */
static void switch_and_overtake(void *ctx)
{
    const int before = made;
    overtake(ctx);
    if (before == 0 && made == 1)
        OK(&k.second, brc_switch(k.second.repo, "side", 0, &k.second.err));
}

TEST(on_the_branch_on_which_it_began)
{
    brc_merge_result r = BRC_MERGE_RESULT_INIT;
    part_side_from_main();
    hook_decode(switch_and_overtake, NULL, 100000);
    OK(&k.first, brc_merge(&r, NULL, k.first.repo, "side", NULL, &k.first.err));
    brc_session *s = scenario_session(&k.first, k.first.repo, "main", BRC_SESSION_VIEW);
    check_both(s);
    brc_session_free(s);
    OK(&k.first, brc_session_open(&s, k.first.repo, "side", BRC_SESSION_VIEW, &k.first.err));
    ck_assert_int_eq(scenario_number(&k.first, s, "/a", 1), 7);
    brc_session_free(s);
}

/* ---- children -------------------------------- */

/* Others write into the parent while its child is joined. */
static void write_into_parent(void *ctx)
{
    brc_session *s;
    if (made >= most || is_locked())
        return;
    OK(&k.second, brc_session_open(&s, k.second.repo, ctx, BRC_SESSION_TOKEN, &k.second.err));
    scenario_put(&k.second, s, "/a", 1, 1000 + ++made);
    brc_session_free(s);
}

TEST(so_does_a_join)
{
    brc_session *child;
    brc_buf of_child = BRC_BUF_INIT, of_mine = BRC_BUF_INIT;
    scenario *t = &k.first;
    OK(t, brc_session_fork(&child, mine, &t->err));
    OK(t, brc_session_token(&of_child, child, &t->err));
    OK(t, brc_session_token(&of_mine, mine, &t->err));
    scenario_put(t, child, "/a", 0, 100);
    scenario_put(t, mine, "/a", 1, 999);
    hook_decode(write_into_parent, of_mine.data, 100000);
    const char *tokens[] = {(const char *)of_child.data};
    OK(t, brc_session_join(NULL, mine, tokens, 1, 0, &t->err));
    check_both(mine);
    OK(t, commit_of(mine, "mine", &t->err));
    check_both(t->session);
    brc_session_free(child);
    brc_buf_dispose(&of_child);
    brc_buf_dispose(&of_mine);
}

/* ---- collections -------------------------------- */

/* Until the transaction that names them, the objects that a merge stores can be collected at any
 * moment. */
static fault_vfs disk;
static scenario c;
static const char *const paths[] = { "/0", "/b", "/z" };
static int collected, moment;

/* A process that collects garbage each time that it is told to: this one may hold a mutex then. */
static struct {
    pid_t pid;
    int to, from;
    int is_late;
} collector;

static _Noreturn void collector_main(int to, int from)
{
    brc_error err = BRC_ERROR_INIT;
    char rc;
    while (read(to, &rc, 1) == 1) {
        breccia *repo;
        brc_open_opts opts = BRC_OPEN_OPTS_INIT;
        opts.wait_ms = 0;
        rc = (char)-brc_open(&repo, c.file, &opts, &err);
        if (rc == BRC_OK) {
            rc = (char)-brc_gc(repo, NULL, NULL, &err);
            brc_free(repo);
        }
        if (write(from, &rc, 1) != 1)
            break;
    }
    _exit(0);
}

static void collector_start(void)
{
    int to[2], from[2];
    ck_assert_int_eq(pipe(to), 0);
    ck_assert_int_eq(pipe(from), 0);
    collector.pid = fork();
    ck_assert_int_ge(collector.pid, 0);
    if (collector.pid == 0) {
        close(to[1]);
        collector_main(to[0], from[1]);
    }
    close(to[0]);
    close(from[1]);
    collector.to = to[1];
    collector.from = from[0];
}

static void collector_answers(void)
{
    char rc;
    ck_assert_int_eq((int)read(collector.from, &rc, 1), 1);
    ck_assert_msg(rc == BRC_OK || rc == -BRC_EBUSY, "%d", rc);
    collected += rc == BRC_OK;
    collector.is_late = 0;
}

/* A collection that waits for a lock of this process ends later. */
static void collect(void *ctx)
{
    enum { MOST_MS = 200 };
    struct pollfd answer = { .fd = collector.from, .events = POLLIN };
    (void)ctx;
    ck_assert_int_eq((int)write(collector.to, "", 1), 1);
    collector.is_late = poll(&answer, 1, MOST_MS) == 0;
    if (!collector.is_late)
        collector_answers();
}

static void collected_setup(void)
{
    scenario_start(&c);
    scenario_no_window(&c);
    for (int i = 0; i < 3; i++)
        scenario_numbers(&c, paths[i], 64, 2, 0);
    scenario_commit(&c, "first");
    scenario_close(&c);
    collector_start();
    fault_vfs_register(&disk);
    scenario_open_vfs(&c, FAULT_VFS_NAME);
}

static void collected_teardown(void)
{
    int status;
    scenario_close(&c);
    fault_vfs_unregister(&disk);
    close(collector.to);
    ck_assert_int_eq(waitpid(collector.pid, &status, 0), collector.pid);
    ck_assert_int_eq(status, 0);
    close(collector.from);
    scenario_open(&c, NULL, 0);
    scenario_whole(&c);
    scenario_stop(&c);
}

static void put_all(brc_session *s, uint64_t at, int value)
{
    for (int i = 0; i < 3; i++)
        scenario_put(&c, s, paths[i], at, value);
}

static int list_conflicts(brc_session *s)
{
    brc_commit_opts opts = BRC_COMMIT_OPTS_INIT;
    brc_iter *conflicts;
    brc_oid id;
    opts.flags = BRC_COMMIT_DRY_RUN;
    opts.conflicts = &conflicts;
    const int rc = brc_session_commit(&id, s, &opts, &c.err);
    brc_iter_free(conflicts);
    return rc;
}

/* Another session has stored what this one will store, so the objects are met, and not put. */
static brc_session *begin_like_another(int value)
{
    breccia *other = scenario_handle(&c, 10000);
    brc_session *s = scenario_session(&c, c.repo, "main", BRC_SESSION_PRIVATE);
    brc_session *same = scenario_session(&c, other, "main", BRC_SESSION_PRIVATE);
    put_all(s, 0, value);
    put_all(same, 0, value);
    put_all(c.session, 63, value);
    scenario_commit(&c, "theirs");
    OK(&c, list_conflicts(same));
    brc_session_free(same);
    brc_free(other);
    return s;
}

static int commit_private(int value)
{
    brc_session *s = begin_like_another(value);
    fault_vfs_act(&disk, FAULT_LOCK, (uint64_t)moment, collect, NULL);
    const int rc = commit_of(s, "mine", &c.err);
    brc_session_free(s);
    return rc;
}

static int list_private(int value)
{
    brc_session *s = begin_like_another(value);
    fault_vfs_act(&disk, FAULT_LOCK, (uint64_t)moment, collect, NULL);
    const int rc = list_conflicts(s);
    fault_vfs_disarm(&disk);
    OK(&c, commit_of(s, "mine", &c.err));
    brc_session_free(s);
    return rc;
}

static int merge_side(int value)
{
    brc_merge_result r = BRC_MERGE_RESULT_INIT;
    OK(&c, brc_ref_create(c.repo, "side", "main", NULL, 0, &c.err));
    brc_session *s = scenario_session(&c, c.repo, "side", BRC_SESSION_WRITE);
    put_all(s, 0, value);
    OK(&c, commit_of(s, "side", &c.err));
    brc_session_free(s);
    put_all(c.session, 63, value);
    scenario_commit(&c, "main");
    fault_vfs_act(&disk, FAULT_LOCK, (uint64_t)moment, collect, NULL);
    const int rc = brc_merge(&r, NULL, c.repo, "side", NULL, &c.err);
    fault_vfs_disarm(&disk);
    OK(&c, brc_ref_delete(c.repo, "side", BRC_DELETE_FORCE, &c.err));
    return rc;
}

static int (*const ahead[])(int value) = { commit_private, list_private, merge_side };

CASE("collected", .setup = collected_setup, .teardown = collected_teardown, .timeout = 240);

EACH(a_collection_at_any_moment_keeps_no_change_from_being_made, ahead)
{
    int is_over = 0;
    collected = 0;
    for (moment = 1; !is_over; moment++) {
        const int value = 1000 + moment;
        OK(&c, ahead[_i](value));
        is_over = disk.hits == 0;
        fault_vfs_disarm(&disk);
        if (collector.is_late)
            collector_answers();
        for (int i = 0; i < 3; i++) {
            ck_assert_int_eq(scenario_number(&c, c.session, paths[i], 0), value);
            ck_assert_int_eq(scenario_number(&c, c.session, paths[i], 63), value);
        }
    }
    ck_assert_int_gt(collected, 3);
}
