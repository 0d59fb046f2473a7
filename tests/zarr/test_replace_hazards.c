/* Hazards of a cut, or of a rewrite to chunks of another shape, while it is made: it is
 * interrupted or killed, its name is taken, there is no room for its row, garbage is collected. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../../src/zarr/array/array.h"
#include "../kit/effort.h"
#include "../kit/lock_faults.h"
#include "../kit/replace_kit.h"
#include "../kit/suite.h"

TEST_SUITE(replace_hazards);

static hooked_kit k;

static void hazards_setup(void)
{
    replace_start(&k);
}

static void hazards_teardown(void)
{
    hooked_stop(&k);
}

/* ---- interrupted and killed -------------------------------- */

static void interrupt_it(void *ctx)
{
    (void)ctx;
    brc_interrupt(k.first.repo, 1);
}

static void end_process(void *ctx)
{
    (void)ctx;
    (void)kill(getpid(), SIGKILL);
}

CASE("hazards", .setup = hazards_setup, .teardown = hazards_teardown,
     .setup_once = replace_make_base, .teardown_once = replace_drop_base,
     .timeout = 240);

LOOP(an_interrupted_one_has_changed_nothing, 0, 4)
{
    replace_begin_as(&k, _i % 2);
    hook_decode(interrupt_it, NULL, 1);
    ck_assert_int_eq(replace_change(&k, _i < 2), BRC_EINTERRUPT);
    brc_interrupt(k.first.repo, 0);
    replace_check_elements(&k.first, LENGTH, -1);
    replace_check_drafts(&k);
    OK(&k.first, replace_change(&k, _i < 2));
    replace_check_elements(&k.first, _i < 2 ? SHORT : LENGTH, -1);
    replace_check_drafts(&k);
}

/* The 8,500th of 9,000 chunks: transactions before it are in the file. */
static void end_late(void *ctx)
{
    if (++*(int *)ctx == 8500)
        (void)kill(getpid(), SIGKILL);
}

/* With a handle of its own. */
static void change_and_die(int cuts)
{
    brc_open_opts opts = BRC_OPEN_OPTS_INIT;
    int calls = 0;
    scenario other = {.err = BRC_ERROR_INIT};
    opts.registry = k.parts.reg;
    memcpy(other.file, k.first.file, sizeof(other.file));
    scenario_open(&other, &opts, 0);
    OK(&other, brc_array_open(&k.array, other.session, "/a", &other.err));
    hook_decode(cuts ? end_process : end_late, &calls, 1 << 20);
    (void)!replace_change(&k, cuts);
    _exit(1);
}

static void die_in_change(int cuts)
{
    int status;
    pid_t pid = fork();
    if (pid == 0)
        change_and_die(cuts);
    ck_assert_int_eq(waitpid(pid, &status, 0), pid);
    ck_assert(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
}

/* Its number; 0: there is none. */
static int64_t left_draft(void)
{
    return scenario_ask(&k.first, "SELECT coalesce(max(id), 0) FROM draft"
                                " WHERE state=1 AND kind=2");
}

LOOP(a_killed_one_has_changed_nothing, 0, 4)
{
    replace_begin_as(&k, _i % 2);
    die_in_change(_i < 2);
    replace_check_elements(&k.second, LENGTH, -1);
    scenario_whole(&k.second);
    OK(&k.first, replace_change(&k, _i < 2));
    replace_check_elements(&k.first, _i < 2 ? SHORT : LENGTH, -1);
    const int64_t left = left_draft();
    if (left != 0)
        OK(&k.first, brc_draft_drop(k.first.repo, left, &k.first.err));
    replace_check_drafts(&k);
}

/* The only one there is. */
static void check_is_unfinished(int64_t draft)
{
    brc_iter *it;
    const brc_draft *item;
    int n = 0;
    OK(&k.second, brc_drafts(&it, k.second.repo, &k.second.err));
    while (brc_next(it, &item, &k.second.err) > 0) {
        if (item->id != draft) {
            ck_assert_uint_eq(item->flags & BRC_DRAFT_REWRITING, 0);
            ck_assert_ptr_null(item->array);
            continue;
        }
        ck_assert_uint_eq(item->flags & (BRC_DRAFT_REWRITING | BRC_DRAFT_OWNED),
                          BRC_DRAFT_REWRITING | BRC_DRAFT_OWNED);
        ck_assert_int_eq(item->owner, BRC_OWNER_DEAD);
        ck_assert_str_eq(item->array, "/a");
        n++;
    }
    brc_iter_free(it);
    ck_assert_int_eq(n, 1);
}

/* Its draft has a node of which nobody knows: it is not adopted, and nothing is lost with it. */
LOOP(what_a_killed_one_left_is_dropped_and_not_adopted, 0, 4)
{
    replace_begin_as(&k, _i % 2);
    die_in_change(_i < 2);
    const int64_t left = left_draft();
    ck_assert_int_ne(left, 0);
    check_is_unfinished(left);
    for (int within = 0; within < 2; within++) {
        if (within)
            OK(&k.second, brc_begin(k.second.repo, &k.second.err));
        FAILS(&k.second, BRC_EINVAL, brc_draft_adopt(k.second.repo, left, &k.second.err));
        ck_assert_ptr_nonnull(strstr(k.second.err.message, "unfinished rewrite of /a"));
        ck_assert_ptr_nonnull(strstr(k.second.err.message, "drop the draft"));
        if (within)
            OK(&k.second, brc_end(k.second.repo, 0, &k.second.err));
    }
    check_is_unfinished(left);
    replace_check_elements(&k.second, LENGTH, -1);
    scenario_whole(&k.second);
    OK(&k.second, brc_draft_drop(k.second.repo, left, &k.second.err));
    replace_check_elements(&k.second, LENGTH, -1);
    replace_check_drafts(&k);
    OK(&k.first, replace_change(&k, _i < 2));
    replace_check_elements(&k.first, _i < 2 ? SHORT : LENGTH, -1);
    replace_check_drafts(&k);
}

/* A collection drops the change that a dead process left, too. */
LOOP(a_collection_drops_what_a_killed_one_left, 0, 2)
{
    brc_gc_opts opts = BRC_GC_OPTS_INIT;
    brc_gc_report report = BRC_GC_REPORT_INIT;
    replace_begin_as(&k, _i);
    die_in_change(_i);
    ck_assert_int_ne(left_draft(), 0);
    OK(&k.second, brc_gc(k.second.repo, &opts, &report, &k.second.err));
    replace_check_drafts(&k);
    replace_check_elements(&k.first, LENGTH, -1);
}

/* ---- the name of what is made -------------------------------- */

static void make_in_its_way(void *ctx)
{
    (void)ctx;
    scenario_numbers(&k.second, "/rewritten 3", 4, 2, 50);
}

/* A user's nodes may be called as the new one is while it is made, before and meanwhile. */
LOOP(nodes_of_its_name_stay_as_they_are, 0, 8)
{
    const int cuts = _i / 2 % 2, within = _i / 4;
    char tree[64];
    scenario_numbers(&k.first, "/rewritten 1", 4, 2, 30);
    replace_begin_as(&k, _i % 2);
    scenario_numbers(&k.first, "/rewritten 2", 4, 2, 40);
    if (within) {
        make_in_its_way(NULL);
        OK(&k.first, brc_begin(k.first.repo, &k.first.err));
    } else {
        hook_decode(make_in_its_way, NULL, 1);
    }
    OK(&k.first, replace_change(&k, cuts));
    if (within)
        OK(&k.first, brc_end(k.first.repo, BRC_END_KEEP, &k.first.err));
    replace_check_elements(&k.first, cuts ? SHORT : LENGTH, -1);
    for (int32_t i = 1; i <= 3; i++) {
        char path[32];
        snprintf(path, sizeof(path), "/rewritten %d", i);
        ck_assert_int_eq(scenario_number(&k.first, k.first.session, path, 3), 20 + 10 * i + 3);
    }
    scenario_tree(&k.first, k.first.session, "/", 1, tree, sizeof(tree));
    ck_assert_str_eq(tree, "/ /a* /rewritten 1* /rewritten 2* /rewritten 3* ");
    scenario_whole(&k.first);
}

/* ---- rows on each other, as many as may be -------------------------------- */

/* More savepoints than a session makes, so that no two of the rows can become one. */
static void pile_up_rows(void)
{
    breccia *repo = k.first.repo;
    uint64_t i = 0;
    OK(&k.first, brc_savepoint(k.first.session, BRC_SAVEPOINT_SET, "before", &k.first.err));
    while (k.array->stack.n < BRC_DRAFT_STACK_MOST) {
        OK(&k.first, brc_begin(repo, &k.first.err));
        int64_t id;
        brc_draft_row row = {.draft = k.first.session->draft, .branch = "main",
                             .owner = k.first.session->saver, .plan = BRC_SAVE_PLAN "\"x\"}"};
        row.draft.kind = BRC_DRAFT_PRIVATE;
        row.draft.parent = row.draft.id;
        OK(&k.first, brc_draft_start(repo->store, &row, &id, &k.first.err));
        OK(&k.first, brc_end(repo, BRC_END_KEEP, &k.first.err));
        scenario_set_number(&k.first, "/a", i * CHUNK, 7); /* each in a chunk of its own */
        i++;
        OK(&k.first, brc_array_begin_read(k.array, &k.first.err));
        brc_array_end_read(k.array);
    }
    while (i-- > 0)
        scenario_set_number(&k.first, "/a", i * CHUNK, (int32_t)(i * CHUNK));
}

/* Then there is no room for another, and it is one transaction. */
LOOP(where_no_row_fits_over_the_others_it_is_one_transaction, 0, 2)
{
    replace_begin_as(&k, 1);
    pile_up_rows();
    ck_assert_uint_eq(k.array->stack.n, BRC_DRAFT_STACK_MOST);
    OK(&k.first, replace_change(&k, _i == 0));
    replace_check_elements(&k.first, _i == 0 ? SHORT : LENGTH, -1);
    replace_check_elements(&k.second, _i == 0 ? SHORT : LENGTH, -1);
    scenario_whole(&k.first);
    OK(&k.first, brc_savepoint(k.first.session, BRC_SAVEPOINT_ROLLBACK, "before", &k.first.err));
    OK(&k.first, brc_savepoint(k.first.session, BRC_SAVEPOINT_RELEASE, "before", &k.first.err));
    replace_check_elements(&k.first, LENGTH, -1);
    ck_assert_uint_eq(replace_chunk_length(&k), CHUNK);
    replace_check_drafts(&k);
}

/* ---- collections meanwhile -------------------------------- */

static struct {
    pid_t pid;
    int ask, answer;
    int locks, at; /* at this one it collects */
    int done;      /* collections that came to their end */
} collector;

/* In a process of its own: collects whenever it is asked to, and waits for nobody. */
static void collect_when_asked(int ask, int answer)
{
    scenario other = {.err = BRC_ERROR_INIT};
    brc_open_opts opts = BRC_OPEN_OPTS_INIT;
    char byte;
    opts.wait_ms = -1;
    opts.registry = k.parts.reg;
    memcpy(other.file, k.first.file, sizeof(other.file));
    scenario_open(&other, &opts, 0);
    while (read(ask, &byte, 1) == 1) {
        brc_gc_opts how = BRC_GC_OPTS_INIT;
        brc_gc_report report = BRC_GC_REPORT_INIT;
        int rc = brc_gc(other.repo, &how, &report, &other.err);
        if (write(answer, &rc, sizeof(rc)) != sizeof(rc))
            break;
    }
    _exit(0);
}

static void start_collector(void)
{
    int ask[2], answer[2];
    ck_assert_int_eq(pipe(ask), 0);
    ck_assert_int_eq(pipe(answer), 0);
    collector.done = 0;
    collector.pid = fork();
    ck_assert_int_ge(collector.pid, 0);
    if (collector.pid == 0) {
        close(ask[1]);
        close(answer[0]);
        collect_when_asked(ask[0], answer[1]);
    }
    close(ask[0]);
    close(answer[1]);
    collector.ask = ask[1];
    collector.answer = answer[0];
}

static void stop_collector(void)
{
    close(collector.ask);
    close(collector.answer);
    ck_assert_int_eq(waitpid(collector.pid, NULL, 0), collector.pid);
}

static int collect_at_lock(void *ctx)
{
    int rc;
    (void)ctx;
    if (++collector.locks != collector.at)
        return 0;
    if (write(collector.ask, "x", 1) != 1 || read(collector.answer, &rc, sizeof(rc)) != sizeof(rc))
        ck_abort_msg("the collector has ended");
    ck_assert_msg(rc == BRC_OK || rc == BRC_EBUSY, "gc: %d", rc);
    collector.done += rc == BRC_OK;
    return 0;
}

static void stop_counting(void *ctx)
{
    *(int *)ctx = collector.locks;
}

/* At each lock that is taken until a chunk is decoded, or in `make test` at some: until then
 * nothing names what is made. */
LOOP(a_collection_at_any_moment_takes_nothing_of_it, 0, 2)
{
    const int step = (int)effort_step(3, 3);
    int until = 1;
    replace_begin_as(&k, 0);
    start_collector();
    for (collector.at = 1; collector.at <= until; collector.at += step) {
        collector.locks = 0;
        hook_decode(stop_counting, &until, 1);
        lock_faults_set(collect_at_lock, NULL);
        int rc = replace_change(&k, _i == 0);
        lock_faults_set(NULL, NULL);
        ck_assert_msg(rc == BRC_OK, "lock %d: %s", collector.at, k.first.err.message);
        hook_decode(NULL, NULL, 0);
        replace_check_elements(&k.first, _i == 0 ? SHORT : LENGTH, -1);
        scenario_whole(&k.first);
        OK(&k.first, brc_session_discard(k.first.session, &k.first.err));
    }
    ck_assert_int_gt(collector.done, 2 / step);
    stop_collector();
    replace_check_elements(&k.first, LENGTH, -1);
}
