/* Thinning history while a merge, rebase or cherry-pick is open: what it stands on stays. */
#include <stdio.h>
#include <string.h>

#include "../kit/rebase_kit.h"
#include "../kit/suite.h"

TEST_SUITE(expire_open);

static rebase_kit k;
static scenario *const t = &k.t;

static void teardown(void)
{
    scenario_whole(t);
    scenario_stop(t);
}

/* How many expired. */
static uint64_t expire_and_collect(void)
{
    brc_expire_opts opts = BRC_EXPIRE_OPTS_INIT;
    brc_expire_report report = BRC_EXPIRE_REPORT_INIT;
    opts.keep_last = 1;
    OK(t, brc_expire(&report, NULL, t->repo, &opts, &t->err));
    scenario_no_window(t);
    OK(t, brc_gc(t->repo, NULL, NULL, &t->err));
    scenario_look_again(t);
    return report.expired;
}

static void set_and_commit(const char *path, uint64_t i, int32_t value)
{
    scenario_set_number(t, path, i, value);
    scenario_commit(t, "c");
}

/* Old commits, and from a base that no branch names: ours and side, in conflict in element 4. */
static void two_sides(void)
{
    scenario_start(t);
    scenario_numbers(t, "/a", 16, 4, 1);
    scenario_numbers(t, "/g/b", 8, 4, 1);
    scenario_commit(t, "first");
    set_and_commit("/a", 15, 40);
    OK(t, brc_ref_create(t->repo, "side", NULL, NULL, 0, &t->err));
    set_and_commit("/a", 4, 50);
    OK(t, brc_node_move(t->session, "/g/b", "/h", 0, &t->err));
    scenario_commit(t, "moved");
    set_and_commit("/a", 12, 50);
    scenario_be_on(t, "side");
    set_and_commit("/a", 8, 60);
    set_and_commit("/g/b", 0, 60);
    set_and_commit("/a", 4, 60);
    scenario_be_on(t, "main");
}

static void open_merge(const char *rev)
{
    brc_merge_opts opts = BRC_MERGE_OPTS_INIT;
    brc_merge_result r = BRC_MERGE_RESULT_INIT;
    opts.flags = BRC_MERGE_KEEP;
    OK(t, brc_merge(&r, NULL, t->repo, rev, &opts, &t->err));
    ck_assert_int_eq(r.result, BRC_MERGE_CONFLICT);
}

static void settle_for(uint32_t side)
{
    uint64_t n;
    OK(t, brc_merge_settle(&n, t->repo, side, NULL, 0, &t->err));
    ck_assert_uint_eq(n, 1);
}

static void check_number(const char *path, uint64_t i, int32_t wanted)
{
    ck_assert_int_eq(scenario_number(t, t->session, path, i), wanted);
}

static void open_setup(void)
{
    two_sides();
}

static void line_setup(void)
{
    rk_start(&k);
}

CASE("merges", .setup = open_setup, .teardown = teardown);

/* _i: whether the other branch is deleted too, so that only the merge names it */
LOOP(a_merge_is_settled_for_theirs_over_its_own_base, 0, 2)
{
    brc_pick_result r = BRC_PICK_RESULT_INIT;
    open_merge("side");
    if (_i)
        OK(t, brc_ref_delete(t->repo, "side", BRC_DELETE_FORCE, &t->err));
    ck_assert_uint_gt(expire_and_collect(), 0);
    settle_for(BRC_MERGE_THEIRS);
    scenario_look_again(t);
    OK(t, brc_continue(&r, NULL, t->repo, NULL, &t->err));
    check_number("/a", 4, 60);
    check_number("/a", 8, 60);
    check_number("/a", 12, 50); /* only ours changed it */
    check_number("/a", 15, 40);
    check_number("/h", 0, 60); /* what theirs changed, where ours moved it */
    expire_and_collect();
}

LOOP(a_merge_is_settled_for_ours_or_dropped, 0, 2)
{
    brc_pick_result r = BRC_PICK_RESULT_INIT;
    const brc_oid tip = scenario_id(t, "main");
    open_merge("side");
    ck_assert_uint_gt(expire_and_collect(), 0);
    if (_i) {
        OK(t, brc_abort(t->repo, &t->err));
        ck_assert(scenario_same(scenario_id(t, "main"), tip));
    } else {
        settle_for(BRC_MERGE_OURS);
        OK(t, brc_continue(&r, NULL, t->repo, NULL, &t->err));
        check_number("/h", 0, 60);
    }
    check_number("/a", 4, 50);
    check_number("/a", 12, 50);
    expire_and_collect();
}

/* The bases of a criss-cross have a base themselves. */
TEST(a_merge_with_several_bases_keeps_what_is_below_them)
{
    brc_merge_opts opts = BRC_MERGE_OPTS_INIT;
    brc_merge_result r = BRC_MERGE_RESULT_INIT;
    brc_pick_result done = BRC_PICK_RESULT_INIT;
    brc_commit *c;
    const brc_oid parted = scenario_id(t, "main~3"), first = scenario_id(t, "main~4");
    opts.flags = BRC_MERGE_OURS;
    OK(t, brc_ref_create(t->repo, "x", "main", NULL, BRC_REF_TAG, &t->err));
    OK(t, brc_merge(&r, NULL, t->repo, "side", &opts, &t->err));
    scenario_be_on(t, "side");
    opts.flags = BRC_MERGE_THEIRS;
    OK(t, brc_merge(&r, NULL, t->repo, "x", &opts, &t->err));
    OK(t, brc_ref_delete(t->repo, "x", BRC_REF_TAG, &t->err));
    set_and_commit("/a", 0, 61);
    scenario_be_on(t, "main");
    set_and_commit("/a", 0, 51);
    open_merge("side");
    ck_assert_uint_gt(expire_and_collect(), 0);
    OK(t, brc_commit_read(&c, t->repo, &parted, &t->err)); /* below both bases */
    brc_commit_free(c);
    FAILS(t, BRC_ENOTFOUND, brc_commit_read(&c, t->repo, &first, &t->err));
    settle_for(BRC_MERGE_THEIRS);
    OK(t, brc_continue(&done, NULL, t->repo, NULL, &t->err));
    check_number("/a", 0, 61);
    check_number("/a", 8, 60);
    check_number("/a", 12, 50);
    check_number("/a", 15, 40);
}

/* The edit of the pick follows the move that the branch has made since they parted. */
TEST(a_pick_is_settled_for_theirs_where_nodes_have_moved)
{
    brc_pick_opts opts = BRC_PICK_OPTS_INIT;
    brc_pick_result r = BRC_PICK_RESULT_INIT;
    scenario_be_on(t, "side");
    scenario_set_number(t, "/g/b", 5, 60);
    set_and_commit("/a", 4, 62);
    set_and_commit("/a", 0, 63);
    scenario_be_on(t, "main");
    opts.flags = BRC_PICK_KEEP;
    OK(t, brc_pick(&r, NULL, t->repo, "side~1", &opts, &t->err));
    ck_assert_int_eq(r.result, BRC_PICK_CONFLICT);
    ck_assert_uint_gt(expire_and_collect(), 0);
    settle_for(BRC_MERGE_THEIRS);
    OK(t, brc_continue(&r, NULL, t->repo, NULL, &t->err));
    check_number("/h", 5, 60);
    check_number("/h", 0, 1);
    check_number("/a", 4, 62);
    check_number("/a", 0, 1);
    check_number("/a", 12, 50);
}

/* How often it stops; it is settled for ours each time. */
static int stops_of_rebase(int is_thinned)
{
    int n = 0;
    brc_pick_result r = rk_rebase(&k, BRC_PICK_KEEP);
    for (; r.result == BRC_PICK_CONFLICT; n++) {
        if (is_thinned)
            expire_and_collect();
        settle_for(BRC_MERGE_OURS);
        r = rk_goes_on(&k, 0);
    }
    return n;
}

/* A rebase leaves out merges, and the commit after a merge is compared with that merge. */
TEST(what_comes_after_a_merge_is_told_from_it)
{
    brc_merge_opts opts = BRC_MERGE_OPTS_INIT;
    brc_merge_result r = BRC_MERGE_RESULT_INIT;
    OK(t, brc_ref_create(t->repo, "more", "side", NULL, 0, &t->err));
    scenario_be_on(t, "more");
    set_and_commit("/a", 12, 71);
    scenario_be_on(t, "side");
    set_and_commit("/a", 9, 64);
    OK(t, brc_merge(&r, NULL, t->repo, "more", &opts, &t->err));
    ck_assert_int_eq(r.result, BRC_MERGE_MERGED);
    OK(t, brc_ref_delete(t->repo, "more", BRC_DELETE_FORCE, &t->err));
    set_and_commit("/a", 0, 65);
    const int wanted = stops_of_rebase(0);
    ck_assert_int_eq(wanted, 2);
    OK(t, brc_undo(NULL, t->repo, 0, 0, &t->err));
    ck_assert_int_eq(stops_of_rebase(1), wanted);
    check_number("/a", 0, 65);
    check_number("/a", 12, 50);
}

static brc_oid rebase_to_end(int is_thinned)
{
    brc_pick_result r = rk_rebase(&k, BRC_PICK_KEEP);
    while (r.result == BRC_PICK_CONFLICT) {
        if (is_thinned)
            expire_and_collect();
        rk_settle(&k, BRC_MERGE_THEIRS);
        r = rk_goes_on(&k, 0);
    }
    ck_assert_uint_eq(r.made, 5);
    return scenario_root(t, "side");
}

CASE("rebases", .setup = line_setup, .teardown = teardown);

TEST(a_rebase_goes_on_as_if_nothing_had_expired)
{
    const brc_oid wanted = rebase_to_end(0);
    OK(t, brc_undo(NULL, t->repo, 0, 0, &t->err));
    ck_assert(scenario_same(scenario_id(t, "side"), k.side_tip));
    ck_assert(scenario_same(rebase_to_end(1), wanted));
}

TEST(a_rebase_is_dropped)
{
    rk_rebase(&k, BRC_PICK_KEEP);
    expire_and_collect();
    OK(t, brc_abort(t->repo, &t->err));
    rk_nothing_is_open(&k);
    ck_assert(scenario_same(scenario_id(t, "side"), k.side_tip));
}
