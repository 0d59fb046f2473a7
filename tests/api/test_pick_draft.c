/* Cherry-picks and reverts with conflicts, which stay open: settled, committed, dropped. */
#include <string.h>

#include "../kit/suite.h"
#include "../kit/versions.h"

TEST_SUITE(pick_draft);

static scenario t;
static brc_oid side_tip, main_tip;

/* The commit of side changes three chunks and an attribute, of which main has changed two chunks
 * and that attribute. */
static void pick_setup(void)
{
    brc_commit_opts commit = BRC_COMMIT_OPTS_INIT;
    scenario_start(&t);
    scenario_numbers(&t, "/a", 8, 2, 1);
    OK(&t, brc_attrs_set(t.session, "/a", "k", "1", &t.err));
    scenario_commit(&t, "base");
    OK(&t, brc_ref_create(t.repo, "side", NULL, NULL, 0, &t.err));
    scenario_set_number(&t, "/a", 0, 50);
    scenario_set_number(&t, "/a", 2, 50);
    scenario_set_number(&t, "/a", 5, 50); /* of this chunk there is nothing to decide */
    OK(&t, brc_attrs_set(t.session, "/a", "k", "2", &t.err));
    main_tip = scenario_commit(&t, "ours");
    scenario_be_on(&t, "side");
    scenario_set_number(&t, "/a", 0, 60);
    scenario_set_number(&t, "/a", 2, 60);
    scenario_set_number(&t, "/a", 6, 60);
    OK(&t, brc_attrs_set(t.session, "/a", "k", "3", &t.err));
    commit.message = "theirs\n\nand why";
    commit.author = "Ada <ada@example.org>";
    commit.meta_json = "{\"run\":7}";
    commit.time_us = 11000000;
    OK(&t, brc_session_commit(&side_tip, t.session, &commit, &t.err));
    scenario_be_on(&t, "main");
}

static void pick_teardown(void)
{
    scenario_stop(&t);
}

static brc_pick_result revert_with(const char *rev, uint32_t flags)
{
    brc_pick_opts opts = BRC_PICK_OPTS_INIT;
    brc_pick_result r = BRC_PICK_RESULT_INIT;
    opts.flags = BRC_PICK_REVERT | flags;
    opts.author = "Rev <rev@example.org>";
    OK(&t, brc_pick(&r, NULL, t.repo, rev, &opts, &t.err));
    return r;
}

static uint64_t left_open(const char *op)
{
    brc_open_state state = BRC_OPEN_STATE_INIT;
    OK(&t, brc_merge_state(&state, NULL, t.repo, &t.err));
    ck_assert(state.draft == 0 || strcmp(state.op, op) == 0);
    return state.draft == 0 ? 99 : state.open;
}

static brc_pick_result pick_goes_on(void)
{
    brc_pick_result r = BRC_PICK_RESULT_INIT;
    OK(&t, brc_continue(&r, NULL, t.repo, NULL, &t.err));
    return r;
}

static int picked_rows(void)
{
    return (int)scenario_ask(&t, "SELECT count(*) FROM oplog WHERE op IN ('pick', 'revert')");
}

CASE("open", .setup = pick_setup, .teardown = pick_teardown, .timeout = 300);

/* ---- a cherry-pick -------------------------------- */

TEST(k1_it_stays_open_and_is_dropped)
{
    brc_oid tip;
    brc_pick_result r = scenario_pick(&t, "side", BRC_PICK_KEEP);
    ck_assert_int_eq(r.result, BRC_PICK_CONFLICT);
    ck_assert_int_ne(r.draft, 0);
    ck_assert_uint_eq(r.conflicts, 3);
    ck_assert_mem_eq(&r.at, &side_tip, sizeof(side_tip));
    scenario_look_again(&t);
    ck_assert_uint_eq(left_open("cherry-pick"), 3);
    ck_assert_int_eq(scenario_number(&t, t.session, "/a", 0), 50);
    ck_assert_int_eq(scenario_number(&t, t.session, "/a", 6), 60);
    OK(&t, brc_resolve(&tip, t.repo, "main", &t.err));
    ck_assert_mem_eq(&tip, &main_tip, sizeof(tip));
    ck_assert_int_eq(pick_goes_on().result, BRC_PICK_CONFLICT);
    OK(&t, brc_abort(t.repo, &t.err));
    scenario_look_again(&t);
    ck_assert(scenario_clean(&t));
    ck_assert_int_eq(scenario_number(&t, t.session, "/a", 6), 7);
    ck_assert_uint_eq(left_open(""), 99);
    ck_assert_int_eq(picked_rows(), 0);
}

/* Its commit is what it would have been without conflicts. */
TEST(k2_the_commit_has_what_the_picked_one_has)
{
    brc_commit *c;
    scenario_pick(&t, "side", BRC_PICK_KEEP);
    scenario_set_number(&t, "/a", 0, 70);
    OK(&t, brc_attrs_set(t.session, "/a", "k", "7", &t.err));
    scenario_look_again(&t);
    ck_assert_uint_eq(left_open("cherry-pick"), 1);
    scenario_settle(&t, BRC_MERGE_THEIRS);
    scenario_look_again(&t);
    brc_pick_result r = pick_goes_on();
    ck_assert_int_eq(r.result, BRC_PICK_COMMITTED);
    ck_assert_uint_eq(r.made, 1);
    scenario_look_again(&t);
    OK(&t, brc_commit_read(&c, t.repo, &r.commit, &t.err));
    ck_assert_uint_eq(c->nparents, 1);
    ck_assert_mem_eq(&c->parents[0], &main_tip, sizeof(main_tip));
    ck_assert_str_eq(c->author, "Ada <ada@example.org>");
    ck_assert_str_eq(c->message, "theirs\n\nand why");
    ck_assert_str_eq(c->meta_json, "{\"run\":7}");
    ck_assert_int_eq(c->time_us, 11000000);
    brc_commit_free(c);
    ck_assert_int_eq(scenario_number(&t, t.session, "/a", 0), 70);
    ck_assert_int_eq(scenario_number(&t, t.session, "/a", 2), 60);
    ck_assert_int_eq(scenario_number(&t, t.session, "/a", 6), 60);
    ck_assert_int_eq(picked_rows(), 1);
    OK(&t, brc_undo(NULL, t.repo, 0, 0, &t.err));
    ck_assert_int_eq(scenario_number(&t, t.session, "/a", 6), 7);
    ck_assert(scenario_clean(&t));
}

TEST(k3_all_for_theirs_is_the_pick_for_theirs)
{
    scenario_pick(&t, "side", BRC_PICK_KEEP);
    scenario_settle(&t, BRC_MERGE_THEIRS);
    const brc_oid slow = pick_goes_on().commit;
    OK(&t, brc_reset(t.repo, NULL, "HEAD~1", 1, NULL, &t.err));
    const brc_oid quick = scenario_pick(&t, "side", BRC_PICK_THEIRS).commit;
    ck_assert_mem_eq(&slow, &quick, sizeof(slow));
}

TEST(k4_where_nothing_is_left_no_commit_is_made)
{
    scenario_pick(&t, "side", BRC_PICK_KEEP);
    scenario_settle(&t, BRC_MERGE_OURS);
    scenario_set_number(&t, "/a", 6, 7);
    scenario_look_again(&t);
    brc_pick_result r = pick_goes_on();
    ck_assert_int_eq(r.result, BRC_PICK_NOTHING);
    ck_assert_uint_eq(r.made, 0);
    ck_assert_mem_eq(&r.commit, &main_tip, sizeof(main_tip));
    scenario_look_again(&t);
    ck_assert_uint_eq(left_open(""), 99);
    ck_assert(scenario_clean(&t));
    ck_assert_int_eq(picked_rows(), 0);
}

TEST(k5_others_do_not_end_it)
{
    brc_merge_result m = BRC_MERGE_RESULT_INIT;
    brc_pick_result r = BRC_PICK_RESULT_INIT;
    brc_merge_opts merge = BRC_MERGE_OPTS_INIT;
    brc_pick_opts skip = BRC_PICK_OPTS_INIT;
    skip.flags = BRC_PICK_SKIP;
    ck_assert_int_eq(scenario_pick(&t, "side", 0).draft, 0);
    ck_assert_int_eq(scenario_pick(&t, "side", BRC_PICK_KEEP | BRC_PICK_NO_COMMIT).draft, 0);
    ck_assert_uint_eq(left_open(""), 99);
    FAILS(&t, BRC_EMISUSE, brc_continue(&r, NULL, t.repo, NULL, &t.err));
    scenario_pick(&t, "side", BRC_PICK_KEEP);
    FAILS(&t, BRC_EMISUSE, brc_continue(&r, NULL, t.repo, &skip, &t.err));
    ck_assert_ptr_nonnull(strstr(t.err.message, "cherry-pick --abort"));
    FAILS(&t, BRC_ECONFLICT, scenario_commit_of(&t, t.session, "no", NULL));
    ck_assert_ptr_nonnull(strstr(t.err.message, "cherry-pick --continue"));
    FAILS(&t, BRC_ECONFLICT, brc_pick(&r, NULL, t.repo, "side", NULL, &t.err));
    OK(&t, brc_abort(t.repo, &t.err));
    merge.flags = BRC_MERGE_KEEP;
    OK(&t, brc_merge(&m, NULL, t.repo, "side", &merge, &t.err));
    FAILS(&t, BRC_EMISUSE, brc_continue(&r, NULL, t.repo, &skip, &t.err));
    ck_assert_ptr_nonnull(strstr(t.err.message, "merge --abort"));
}

TEST(k6_collections_keep_what_the_plan_names)
{
    brc_gc_opts opts = BRC_GC_OPTS_INIT;
    scenario_pick(&t, "side", BRC_PICK_KEEP);
    OK(&t, brc_ref_delete(t.repo, "side", BRC_DELETE_FORCE, &t.err));
    scenario_no_window(&t);
    OK(&t, brc_gc(t.repo, &opts, NULL, &t.err));
    scenario_look_again(&t);
    scenario_settle(&t, BRC_MERGE_THEIRS);
    OK(&t, brc_gc(t.repo, &opts, NULL, &t.err));
    scenario_look_again(&t);
    brc_pick_result r = pick_goes_on();
    ck_assert_int_eq(r.result, BRC_PICK_COMMITTED);
    ck_assert_int_eq(scenario_number(&t, t.session, "/a", 0), 60);
    scenario_whole(&t);
}

static int settle_there(breccia *repo)
{
    uint64_t n;
    return brc_merge_settle(&n, repo, BRC_MERGE_THEIRS, NULL, 0, NULL);
}

TEST(k7_processes_that_are_gone_leave_it_open)
{
    scenario_in_child(&t, begin_pick_of_side);
    ck_assert_uint_eq(left_open("cherry-pick"), 3);
    scenario_in_child(&t, settle_there);
    ck_assert_uint_eq(left_open("cherry-pick"), 0);
    ck_assert_int_eq(pick_goes_on().result, BRC_PICK_COMMITTED);
    scenario_look_again(&t);
    ck_assert_int_eq(scenario_number(&t, t.session, "/a", 2), 60);
}

/* ---- a revert -------------------------------- */

TEST(r1_a_revert_stays_open_too)
{
    brc_commit *c;
    scenario_set_number(&t, "/a", 0, 90);
    scenario_commit(&t, "over it");
    brc_pick_result r = revert_with("HEAD~1", BRC_PICK_KEEP);
    ck_assert_int_eq(r.result, BRC_PICK_CONFLICT);
    ck_assert_uint_eq(r.conflicts, 1);
    scenario_look_again(&t);
    ck_assert_uint_eq(left_open("revert"), 1);
    ck_assert_int_eq(scenario_number(&t, t.session, "/a", 0), 90);
    ck_assert_int_eq(scenario_number(&t, t.session, "/a", 2), 3);
    scenario_settle(&t, BRC_MERGE_THEIRS);
    scenario_look_again(&t);
    r = pick_goes_on();
    ck_assert_int_eq(r.result, BRC_PICK_COMMITTED);
    ck_assert_int_eq(scenario_number(&t, t.session, "/a", 0), 1);
    OK(&t, brc_commit_read(&c, t.repo, &r.commit, &t.err));
    ck_assert_str_eq(c->author, "Rev <rev@example.org>");
    ck_assert_ptr_nonnull(strstr(c->message, "Revert \"ours\"\n\nThis reverts commit "));
    ck_assert_str_eq(c->meta_json, "{}");
    ck_assert_uint_eq(c->nparents, 1);
    brc_commit_free(c);
    ck_assert_int_eq(scenario_ask(&t, "SELECT count(*) FROM oplog WHERE op='revert'"), 1);
    const brc_oid slow = scenario_root(&t, "HEAD");
    OK(&t, brc_reset(t.repo, NULL, "HEAD~1", 1, NULL, &t.err));
    revert_with("HEAD~1", BRC_PICK_THEIRS);
    ck_assert(scenario_same(slow, scenario_root(&t, "HEAD")));
}

/* A node that the commit moved is moved back, and takes along the changes made to it since. */
TEST(r3_a_move_is_followed_backwards)
{
    OK(&t, brc_node_move(t.session, "/a", "/z", 0, &t.err));
    scenario_set_number(&t, "/z", 0, 90);
    scenario_commit(&t, "moved");
    scenario_set_number(&t, "/z", 0, 91);
    scenario_set_number(&t, "/z", 7, 91);
    scenario_commit(&t, "over it");
    ck_assert_int_eq(revert_with("HEAD~1", BRC_PICK_KEEP).result, BRC_PICK_CONFLICT);
    scenario_look_again(&t);
    scenario_settle(&t, BRC_MERGE_THEIRS);
    scenario_look_again(&t);
    const brc_pick_result r = pick_goes_on();
    ck_assert_int_eq(r.result, BRC_PICK_COMMITTED);
    ck_assert_int_eq(scenario_number(&t, t.session, "/a", 0), 50);
    ck_assert_int_eq(scenario_number(&t, t.session, "/a", 7), 91);
    const brc_oid slow = scenario_root(&t, "HEAD");
    OK(&t, brc_reset(t.repo, NULL, "HEAD~1", 1, NULL, &t.err));
    revert_with("HEAD~1", BRC_PICK_THEIRS);
    ck_assert(scenario_same(slow, scenario_root(&t, "HEAD")));
    scenario_look_again(&t);
}

static void change_what_goes_back(scenario *s)
{
    scenario_set_number(s, "/y/c", 0, 90);
}

/* When the branch has moved, their side of what the revert moves back is where ours had it. */
TEST(r4_their_side_of_what_is_moved_back_is_taken)
{
    scenario_numbers(&t, "/x/c", 8, 2, 1);
    scenario_commit(&t, "before");
    OK(&t, brc_node_move(t.session, "/x", "/y", 0, &t.err));
    scenario_set_number(&t, "/a", 2, 55);
    scenario_commit(&t, "to be reverted");
    scenario_set_number(&t, "/a", 2, 56);
    scenario_commit(&t, "over it");
    ck_assert_int_eq(revert_with("HEAD~1", BRC_PICK_KEEP).result, BRC_PICK_CONFLICT);
    scenario_set_number(&t, "/a", 2, 57);
    scenario_set_number(&t, "/x/c", 0, 70);
    scenario_elsewhere(&t, "main", change_what_goes_back);
    ck_assert_int_eq(pick_goes_on().result, BRC_PICK_CONFLICT);
    scenario_look_again(&t);
    scenario_settle(&t, BRC_MERGE_THEIRS);
    ck_assert_int_eq(pick_goes_on().result, BRC_PICK_COMMITTED);
    ck_assert_int_eq(scenario_number(&t, t.session, "/x/c", 0), 70);
    ck_assert_int_eq(scenario_number(&t, t.session, "/a", 2), 57);
    scenario_whole(&t);
}

/* The options of the end count; after them those of the start, then the commit's own. */
TEST(r2_message_author_and_time_can_be_given)
{
    brc_pick_opts opts = BRC_PICK_OPTS_INIT;
    brc_pick_result r = BRC_PICK_RESULT_INIT;
    brc_commit *c;
    opts.flags = BRC_PICK_KEEP;
    opts.author = "Bob";
    opts.message = "first";
    opts.time_us = 12000000;
    OK(&t, brc_pick(&r, NULL, t.repo, "side", &opts, &t.err));
    scenario_settle(&t, BRC_MERGE_THEIRS);
    FAILS(&t, BRC_EINVAL, brc_continue(&r, NULL, t.repo, &opts, &t.err));
    opts = (brc_pick_opts)BRC_PICK_OPTS_INIT;
    opts.message = "last";
    OK(&t, brc_continue(&r, NULL, t.repo, &opts, &t.err));
    OK(&t, brc_commit_read(&c, t.repo, &r.commit, &t.err));
    ck_assert_str_eq(c->author, "Bob");
    ck_assert_str_eq(c->message, "last");
    ck_assert_int_eq(c->time_us, 12000000);
    ck_assert_str_eq(c->meta_json, "{\"run\":7}");
    brc_commit_free(c);
}

CASE("damage", .timeout = 300);

/* ---- damage -------------------------------- */

TEST(d1_broken_plans_are_reported)
{
#define PLAN_SUM                                                                                   \
    "; UPDATE draft SET checksum=row_sum('draft', id, kind, state, branch, base, tip, other,"      \
    " plan, owner, parent, time_us, changes, parts)"
    static const char *const damages[] = {
        "UPDATE draft SET plan=json_remove(plan, '$.at')" PLAN_SUM,
        "UPDATE draft SET plan=json_set(plan, '$.at', 'x')" PLAN_SUM,
        "UPDATE draft SET plan=json_set(plan, '$.base', 7)" PLAN_SUM,
        "UPDATE draft SET plan='[]'" PLAN_SUM,
        "UPDATE draft SET plan=NULL" PLAN_SUM,
        "UPDATE draft SET plan='{}'",
    };
    for (size_t i = 0; i < sizeof(damages) / sizeof(damages[0]); i++) {
        brc_open_state state = BRC_OPEN_STATE_INIT;
        brc_pick_result r = BRC_PICK_RESULT_INIT;
        pick_setup();
        scenario_pick(&t, "side", BRC_PICK_KEEP);
        scenario_settle(&t, BRC_MERGE_OURS);
        scenario_sql(&t, damages[i]);
        ck_assert_msg(scenario_faults(&t) > 0, "not noticed: %s", damages[i]);
        (void)!brc_merge_state(&state, NULL, t.repo, &t.err);
        /* Answers, whatever it is. */
        (void)!brc_continue(&r, NULL, t.repo, NULL, &t.err);
        pick_teardown();
    }
}
