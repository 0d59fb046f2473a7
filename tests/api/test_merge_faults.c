/*
 * Open merges and rebases on bad days: the process is killed at each write, sync and deletion of
 * what begins, settles, commits, goes on with or drops one, and the disk fills at each. Then all of
 * it was done or nothing, the file is whole, and the call can be made again.
 */
#include <stdio.h>
#include <string.h>

#include "../kit/effort.h"
#include "../kit/fault_vfs.h"
#include "../kit/process_kit.h"
#include "../kit/scenario.h"
#include "../kit/store_kit.h"
#include "../kit/suite.h"

TEST_SUITE(merge_faults);

enum { SEEN = 512 };

static scenario base, work;
static fault_vfs disk;

/* ---- the calls -------------------------------- */

static int keep_open(void)
{
    brc_merge_opts opts = BRC_MERGE_OPTS_INIT;
    brc_merge_result result = BRC_MERGE_RESULT_INIT;
    opts.flags = BRC_MERGE_KEEP;
    return brc_merge(&result, NULL, work.repo, "side", &opts, &work.err);
}

static int settle_for(uint32_t side, const char *path)
{
    uint64_t n;
    return brc_merge_settle(&n, work.repo, side, &path, path != NULL, &work.err);
}

static int settle_array(void)
{
    return settle_for(BRC_MERGE_THEIRS, "/a");
}

static int settle_rest(void)
{
    return settle_for(BRC_MERGE_OURS, NULL);
}

static int settle_by_hand(void)
{
    brc_sel sel = BRC_SEL_INIT;
    const int32_t value = 77;
    sel.ndim = 1;
    sel.start[0] = 0;
    sel.count[0] = sel.step[0] = 1;
    brc_array *a = scenario_array_at(&work, work.session, "/a");
    const int rc = brc_array_write(a, &sel, &value, sizeof(value), &work.err);
    brc_array_free(a);
    return rc;
}

static int go_on(void)
{
    brc_pick_opts opts = BRC_PICK_OPTS_INIT;
    brc_pick_result result = BRC_PICK_RESULT_INIT;
    opts.time_us = 5000;
    return brc_continue(&result, NULL, work.repo, &opts, &work.err);
}

static int drop_it(void)
{
    return brc_abort(work.repo, &work.err);
}

/* Main is rebased onto side: two of its commits are in conflict. */
static int rebase_it(void)
{
    brc_pick_opts opts = BRC_PICK_OPTS_INIT;
    brc_pick_result result = BRC_PICK_RESULT_INIT;
    opts.flags = BRC_PICK_KEEP;
    return brc_rebase(&result, NULL, work.repo, "side", &opts, &work.err);
}

static int settle_all(void)
{
    return settle_for(BRC_MERGE_THEIRS, NULL);
}

static int rebase_on(void)
{
    brc_pick_result result = BRC_PICK_RESULT_INIT;
    return brc_continue(&result, NULL, work.repo, NULL, &work.err);
}

static int rebase_skips(void)
{
    brc_pick_opts opts = BRC_PICK_OPTS_INIT;
    brc_pick_result result = BRC_PICK_RESULT_INIT;
    opts.flags = BRC_PICK_SKIP;
    return brc_continue(&result, NULL, work.repo, &opts, &work.err);
}

/* Somebody else commits on main. */
static int commit_elsewhere(uint64_t i, int32_t value)
{
    brc_session *here = work.session;
    brc_commit_opts opts = BRC_COMMIT_OPTS_INIT;
    brc_oid id;
    opts.message = "elsewhere";
    opts.time_us = 6000;
    OK(&work, brc_session_open(&work.session, work.repo, "main", BRC_SESSION_PRIVATE, &work.err));
    scenario_set_number(&work, "/a", i, value);
    const int rc = brc_session_commit(&id, work.session, &opts, &work.err);
    brc_session_free(work.session);
    work.session = here;
    return rc;
}

static int move_on(void)
{
    return commit_elsewhere(7, 90);
}

static int move_across(void)
{
    return commit_elsewhere(0, 90);
}

/* Each from the file as the calls named in `before` have left it. */
enum { BEFORE = 5 };
typedef struct open_act {
    const char *name;
    int (*run)(void);
    int (*before[BEFORE])(void);
} open_act;
static const open_act acts[] = {
    {"keep", keep_open, {NULL}},
    {"settle", settle_array, {keep_open}},
    {"settle the rest", settle_rest, {keep_open, settle_array}},
    {"settle by hand", settle_by_hand, {keep_open}},
    {"continue", go_on, {keep_open, settle_array, settle_rest}},
    {"continue onto the new tip", go_on, {keep_open, settle_array, settle_rest, move_on}},
    {"open again over it", go_on, {keep_open, settle_array, settle_rest, move_across}},
    {"abort", drop_it, {keep_open, settle_by_hand}},
    {"rebase", rebase_it, {NULL}},
    {"rebase to the next", rebase_on, {rebase_it, settle_all}},
    {"rebase to the end", rebase_on, {rebase_it, settle_all, rebase_on, settle_all}},
    {"rebase with what is new", rebase_on, {rebase_it, settle_all, rebase_on, settle_all, move_on}},
    {"rebase without one", rebase_skips, {rebase_it, settle_by_hand}},
    {"rebase dropped", drop_it, {rebase_it, settle_all, rebase_on, settle_by_hand}},
};
enum { ACTS = sizeof(acts) / sizeof(acts[0]) };

/* ---- files -------------------------------- */

static void commit_at(const char *message, int64_t time)
{
    brc_commit_opts opts = BRC_COMMIT_OPTS_INIT;
    brc_oid id;
    opts.message = message;
    opts.time_us = time;
    OK(&base, brc_session_commit(&id, base.session, &opts, &base.err));
}

/* Both sides change chunks of /a; /g/b is removed here and changed there. Then there are further
 * commits here, of which the second is in conflict. */
static void make_base_with_sides(int wal)
{
    scenario_start(&base);
    OK(&base, brc_config_set(base.repo, "journal", wal ? "wal" : "rollback", &base.err));
    scenario_numbers(&base, "/a", 8, 2, 1);
    scenario_numbers(&base, "/g/b", 8, 2, 1);
    scenario_commit(&base, "base");
    OK(&base, brc_ref_create(base.repo, "side", NULL, NULL, 0, &base.err));
    scenario_set_number(&base, "/a", 0, 50);
    scenario_set_number(&base, "/a", 2, 50);
    OK(&base, brc_node_remove(base.session, "/g/b", &base.err));
    commit_at("ours", 7000);
    scenario_set_number(&base, "/a", 4, 51);
    commit_at("more", 7001);
    scenario_set_number(&base, "/a", 6, 52);
    commit_at("in conflict", 7002);
    scenario_set_number(&base, "/a", 5, 53);
    commit_at("last", 7003);
    brc_session *main = base.session;
    OK(&base, brc_session_open(&base.session, base.repo, "side", BRC_SESSION_WRITE, &base.err));
    scenario_set_number(&base, "/a", 0, 60);
    scenario_set_number(&base, "/a", 2, 60);
    scenario_set_number(&base, "/a", 6, 60);
    scenario_set_number(&base, "/g/b", 0, 60);
    scenario_commit(&base, "theirs");
    brc_session_free(base.session);
    base.session = main;
    scenario_close(&base);
    work = base;
    snprintf(work.file, sizeof(work.file), "%s/work.brc", base.dir);
}

static void prepare(const open_act *act)
{
    store_kit_copy(base.file, work.file);
    scenario_open_vfs(&work, NULL);
    for (size_t i = 0; i < BEFORE && act->before[i] != NULL; i++)
        OK(&work, act->before[i]());
    scenario_close(&work);
    store_kit_copy(work.file, base.file);
}

/* ---- what is there -------------------------------- */

static void look(char *out)
{
    brc_open_state state = BRC_OPEN_STATE_INIT;
    brc_oid tip;
    char hex[65], tree[256];
    int n;
    scenario_whole(&work);
    OK(&work, brc_merge_state(&state, NULL, work.repo, &work.err));
    OK(&work, brc_resolve(&tip, work.repo, "main", &work.err));
    n = snprintf(out, SEEN, "%d conflicts, %d open, %d made, %d left, at %s, nodes %s, rows %d,",
                 (int)state.conflicts, (int)state.open, (int)(state.made + 10 * state.skipped),
                 (int)state.left, brc_oid_format(hex, &tip),
                 scenario_tree(&work, work.session, "/", 1, tree, sizeof(tree)),
                 (int)scenario_ask(&work, "SELECT count(*) FROM draft WHERE kind=3 AND state=1"));
    for (uint64_t i = 0; i < 8; i++)
        n += snprintf(out + n, (size_t)(SEEN - n), " %d",
                      (int)scenario_number(&work, work.session, "/a", i));
}

static void see(char *out)
{
    scenario_open_vfs(&work, NULL);
    look(out);
    scenario_close(&work);
}

static void find_ends(const open_act *act, char *before, char *after)
{
    prepare(act);
    see(before);
    scenario_open_vfs(&work, NULL);
    OK(&work, act->run());
    look(after);
    scenario_close(&work);
    ck_assert_str_ne(before, after);
}

/* The act is done, or it is not done and can be repeated. */
static void all_or_nothing(const open_act *act, uint64_t n, const char *before, const char *after)
{
    char now[SEEN];
    look(now);
    if (strcmp(now, before) == 0) {
        OK(&work, act->run());
        look(now);
    }
    ck_assert_msg(strcmp(now, after) == 0, "%s at moment %d:\n%s\n%s", act->name, (int)n, now,
                  after);
}

/* ---- killed -------------------------------- */

typedef struct victim {
    const open_act *act;
    uint64_t moment;
} victim;

static int run_victim(void *ctx)
{
    const victim *v = ctx;
    scenario_open_vfs(&work, FAULT_VFS_NAME);
    fault_vfs_kill(&disk, FAULT_CHANGES, v->moment);
    const int rc = v->act->run();
    scenario_close(&work);
    return rc;
}

/* 0: there are not so many moments. */
static int run_and_die(const open_act *act, uint64_t n)
{
    victim v = {act, n};
    store_kit_copy(base.file, work.file);
    return !process_survives(run_victim, &v);
}

static uint64_t step_of(void)
{
    return effort_step(6, 12);
}

CASE("merge_faults", .timeout = 120);

LOOP(killed_at_any_moment_all_or_nothing_is_there, 0, 2 * ACTS)
{
    const open_act *act = &acts[_i / 2];
    char before[SEEN], after[SEEN];
    uint64_t n = 1 + (uint64_t)_i % step_of(), killed = 0;
    fault_vfs_register(&disk);
    make_base_with_sides(_i % 2);
    find_ends(act, before, after);
    for (; run_and_die(act, n); n += step_of(), killed++) {
        scenario_open_vfs(&work, NULL);
        all_or_nothing(act, n, before, after);
        scenario_close(&work);
    }
    ck_assert_uint_ge(killed, 9 / step_of());
    fault_vfs_unregister(&disk);
    scenario_stop(&base);
}

/* ---- a full disk -------------------------------- */

LOOP(on_a_full_disk_nothing_is_half_done, 0, 2 * ACTS)
{
    const open_act *act = &acts[_i / 2];
    char before[SEEN], after[SEEN];
    const uint64_t step = effort_step(3, 3);
    uint64_t n = 1 + (uint64_t)(_i / 2) % step;
    fault_vfs_register(&disk);
    make_base_with_sides(_i % 2);
    find_ends(act, before, after);
    for (int hits = 1; hits > 0; n += step) {
        store_kit_copy(base.file, work.file);
        scenario_open_vfs(&work, FAULT_VFS_NAME);
        fault_vfs_arm(&disk, FAULT_FULL, n, 1);
        const int rc = act->run();
        hits = disk.hits;
        fault_vfs_disarm(&disk);
        ck_assert_msg(rc == BRC_OK || (hits > 0 && rc == BRC_ENOSPACE), "%s at write %d: %s",
                      act->name, (int)n, work.err.message);
        all_or_nothing(act, n, before, after);
        scenario_close(&work);
    }
    ck_assert_uint_gt(n, 5);
    fault_vfs_unregister(&disk);
    scenario_stop(&base);
}
