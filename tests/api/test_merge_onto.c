/* Open merges, cherry-picks and reverts whose branch has moved: what was settled is merged onto the
 * new tip. */
#include <string.h>

#include "../kit/suite.h"
#include "../kit/versions.h"

TEST_SUITE(merge_onto);

static scenario t;
static brc_oid side_tip, main_tip;

/* Main and side both change the first chunk of /a; side changes more of it, and has moved /g. */
static void onto_setup(void)
{
    brc_commit_opts commit = BRC_COMMIT_OPTS_INIT;
    scenario_start(&t);
    scenario_numbers(&t, "/a", 8, 2, 1);
    scenario_numbers(&t, "/b", 8, 2, 1);
    scenario_numbers(&t, "/g/c", 8, 2, 1);
    scenario_commit(&t, "base");
    OK(&t, brc_ref_create(t.repo, "side", NULL, NULL, 0, &t.err));
    scenario_set_number(&t, "/a", 0, 50);
    main_tip = scenario_commit(&t, "ours");
    scenario_be_on(&t, "side");
    scenario_set_number(&t, "/a", 0, 60);
    scenario_set_number(&t, "/a", 6, 60);
    OK(&t, brc_node_move(t.session, "/g", "/h", 0, &t.err));
    commit.message = "theirs\n\nand why";
    commit.author = "Ada <ada@example.org>";
    commit.meta_json = "{\"run\":7}";
    commit.time_us = 11000000;
    OK(&t, brc_session_commit(&side_tip, t.session, &commit, &t.err));
    scenario_be_on(&t, "main");
}

static void onto_teardown(void)
{
    scenario_stop(&t);
}

/* ---- the calls -------------------------------- */

static int settle_ours(breccia *repo)
{
    uint64_t n;
    return brc_merge_settle(&n, repo, BRC_MERGE_OURS, NULL, 0, NULL);
}

static int settle_theirs(breccia *repo)
{
    uint64_t n;
    return brc_merge_settle(&n, repo, BRC_MERGE_THEIRS, NULL, 0, NULL);
}

static int continue_merge(breccia *repo)
{
    brc_pick_result r = BRC_PICK_RESULT_INIT;
    return brc_continue(&r, NULL, repo, NULL, NULL);
}

static int continue_pick(breccia *repo)
{
    brc_pick_result r = BRC_PICK_RESULT_INIT;
    return brc_continue(&r, NULL, repo, NULL, NULL);
}

/* Each step is a process that is killed when it is through. */
static void merge_settled(int (*settle)(breccia *repo))
{
    scenario_in_killed_child(&t, begin_merge_of_side);
    if (settle != NULL)
        scenario_in_killed_child(&t, settle);
}

static brc_pick_result merge_goes_on(void)
{
    brc_pick_result r = BRC_PICK_RESULT_INIT;
    OK(&t, brc_continue(&r, NULL, t.repo, NULL, &t.err));
    scenario_look_again(&t);
    return r;
}

static brc_pick_result pick_goes_on(void)
{
    brc_pick_result r = BRC_PICK_RESULT_INIT;
    OK(&t, brc_continue(&r, NULL, t.repo, NULL, &t.err));
    scenario_look_again(&t);
    return r;
}

static brc_open_state open_now(void)
{
    brc_open_state state = BRC_OPEN_STATE_INIT;
    OK(&t, brc_merge_state(&state, NULL, t.repo, &t.err));
    return state;
}

static void nothing_is_open(void)
{
    ck_assert_int_eq(open_now().draft, 0);
    ck_assert_int_eq(scenario_ask(&t, "SELECT count(*) FROM conflict"), 0);
    ck_assert(scenario_clean(&t));
}

static void has_parents(const char *rev, const brc_oid *first, const brc_oid *second)
{
    brc_commit *c;
    const brc_oid id = scenario_id(&t, rev);
    OK(&t, brc_commit_read(&c, t.repo, &id, &t.err));
    ck_assert_uint_eq(c->nparents, second != NULL ? 2 : 1);
    ck_assert(scenario_same(c->parents[0], *first));
    ck_assert(second == NULL || scenario_same(c->parents[1], *second));
    brc_commit_free(c);
}

static void is_like_picked(const char *rev)
{
    brc_commit *c;
    const brc_oid id = scenario_id(&t, rev);
    OK(&t, brc_commit_read(&c, t.repo, &id, &t.err));
    ck_assert_str_eq(c->message, "theirs\n\nand why");
    ck_assert_str_eq(c->author, "Ada <ada@example.org>");
    ck_assert_str_eq(c->meta_json, "{\"run\":7}");
    ck_assert_int_eq(c->time_us, 11000000);
    brc_commit_free(c);
}

/* ---- what others do -------------------------------- */

static void change_b(scenario *s)
{
    scenario_set_number(s, "/b", 0, 90);
}

static void change_a(scenario *s)
{
    scenario_set_number(s, "/a", 0, 80);
}

static void change_a_as_settled(scenario *s)
{
    scenario_set_number(s, "/a", 0, 60);
}

static void change_beside(scenario *s)
{
    scenario_set_number(s, "/a", 1, 80);
}

static void change_a_again(scenario *s)
{
    scenario_set_number(s, "/a", 0, 81);
}

static void change_in_moved(scenario *s)
{
    scenario_set_number(s, "/g/c", 0, 90);
}

static void move_a(scenario *s)
{
    OK(s, brc_node_move(s->session, "/a", "/z", 0, &s->err));
}

static void remove_a(scenario *s)
{
    OK(s, brc_node_remove(s->session, "/a", &s->err));
}

CASE("merge_onto", .setup = onto_setup, .teardown = onto_teardown, .timeout = 300);

/* ---- nothing overlaps -------------------------------- */

TEST(n1_what_was_settled_is_merged_onto_the_new_tip)
{
    merge_settled(NULL);
    scenario_set_number(&t, "/a", 0, 70);
    const brc_oid there = scenario_elsewhere(&t, "main", change_b);
    const brc_pick_result r = merge_goes_on();
    ck_assert_int_eq(r.result, BRC_PICK_COMMITTED);
    ck_assert(scenario_same(r.commit, scenario_id(&t, "main")));
    has_parents("main", &there, &side_tip);
    ck_assert_int_eq(scenario_number(&t, t.session, "/a", 0), 70);
    ck_assert_int_eq(scenario_number(&t, t.session, "/a", 6), 60);
    ck_assert_int_eq(scenario_number(&t, t.session, "/b", 0), 90);
    nothing_is_open();
    ck_assert_int_eq(scenario_ask(&t, "SELECT count(*) FROM oplog WHERE op='merge'"), 1);
    OK(&t, brc_undo(NULL, t.repo, 0, 0, &t.err));
    ck_assert(scenario_same(there, scenario_id(&t, "main")));
    scenario_whole(&t);
}

/* The answer is the one of a merge that began after the branch had moved. */
LOOP(n2_it_is_the_merge_that_was_begun_later, 0, 2)
{
    merge_settled(settle_theirs);
    scenario_elsewhere(&t, "main", _i == 0 ? change_b : change_in_moved);
    scenario_in_killed_child(&t, continue_merge);
    const brc_oid slow = scenario_root(&t, "main");
    OK(&t, brc_reset(t.repo, NULL, "HEAD~1", BRC_RESET_HARD, NULL, &t.err));
    merge_settled(settle_theirs);
    scenario_in_killed_child(&t, continue_merge);
    ck_assert(scenario_same(slow, scenario_root(&t, "main")));
    ck_assert_int_eq(scenario_number(&t, t.session, _i == 0 ? "/b" : "/h/c", 0), 90);
}

TEST(n3_it_goes_where_the_node_was_moved)
{
    merge_settled(settle_theirs);
    scenario_elsewhere(&t, "main", move_a);
    ck_assert_int_eq(merge_goes_on().result, BRC_PICK_COMMITTED);
    ck_assert_int_eq(scenario_number(&t, t.session, "/z", 0), 60);
    ck_assert_int_eq(scenario_number(&t, t.session, "/z", 6), 60);
    nothing_is_open();
}

TEST(n4_a_branch_that_went_back_is_merged_onto_too)
{
    change_b(&t);
    scenario_commit(&t, "more");
    merge_settled(settle_theirs);
    OK(&t, brc_undo(NULL, t.repo, 0, 0, &t.err)); /* "more" */
    const brc_oid there = scenario_id(&t, "main");
    ck_assert(scenario_same(there, main_tip));
    ck_assert_int_eq(merge_goes_on().result, BRC_PICK_COMMITTED);
    has_parents("main", &there, &side_tip);
    ck_assert_int_eq(scenario_number(&t, t.session, "/a", 0), 60);
    ck_assert_int_eq(scenario_number(&t, t.session, "/b", 0), 1);
    nothing_is_open();
}

TEST(n5_what_is_not_settled_is_listed_first)
{
    merge_settled(NULL);
    const int64_t draft = open_now().draft;
    scenario_elsewhere(&t, "main", change_b);
    const brc_pick_result r = merge_goes_on();
    ck_assert_int_eq(r.result, BRC_PICK_CONFLICT);
    ck_assert_uint_eq(r.conflicts, 1);
    ck_assert_int_eq(r.draft, draft);
    ck_assert_int_eq(open_now().draft, draft);
}

/* ---- conflicts with what is new -------------------------------- */

/* Nothing that was settled is lost: it is `theirs` of what is open now. */
LOOP(c1_what_overlaps_is_open_again_over_the_new_tip, 0, 2)
{
    merge_settled(NULL);
    scenario_set_number(&t, "/a", 0, 70);
    const int64_t draft = open_now().draft;
    const brc_oid there = scenario_elsewhere(&t, "main", change_a);
    scenario_in_killed_child(&t, continue_merge);
    ck_assert(scenario_same(there, scenario_id(&t, "main")));
    const brc_open_state state = open_now();
    ck_assert_int_ne(state.draft, draft);
    ck_assert_uint_eq(state.open, 1);
    ck_assert_str_eq(state.op, "merge");
    ck_assert_str_eq(state.rev, "side");
    ck_assert(scenario_same(state.other, side_tip));
    ck_assert_int_eq(scenario_number(&t, t.session, "/a", 0), 80);
    ck_assert_int_eq(scenario_number(&t, t.session, "/a", 6), 60);
    ck_assert_int_eq(scenario_number(&t, t.session, "/h/c", 0), 1);
    const brc_pick_result r = merge_goes_on();
    ck_assert_int_eq(r.result, BRC_PICK_CONFLICT);
    ck_assert_int_eq(r.draft, state.draft);
    scenario_in_killed_child(&t, _i == 0 ? settle_theirs : settle_ours);
    ck_assert_int_eq(merge_goes_on().result, BRC_PICK_COMMITTED);
    has_parents("main", &there, &side_tip);
    ck_assert_int_eq(scenario_number(&t, t.session, "/a", 0), _i == 0 ? 70 : 80);
    ck_assert_int_eq(scenario_number(&t, t.session, "/a", 6), 60);
    nothing_is_open();
    OK(&t, brc_undo(NULL, t.repo, 0, 0, &t.err));
    ck_assert(scenario_same(there, scenario_id(&t, "main")));
}

/* An array that is gone there and was settled here, and the other way. */
LOOP(c2_a_removed_node_is_a_conflict_in_both_directions, 0, 2)
{
    merge_settled(NULL);
    if (_i == 0)
        scenario_set_number(&t, "/a", 0, 70);
    else
        OK(&t, brc_node_remove(t.session, "/a", &t.err));
    scenario_elsewhere(&t, "main", _i == 0 ? remove_a : change_a);
    const brc_pick_result r = merge_goes_on();
    ck_assert_int_eq(r.result, BRC_PICK_CONFLICT);
    ck_assert_uint_eq(r.conflicts, 1);
    scenario_in_killed_child(&t, settle_theirs);
    char tree[256];
    scenario_in_killed_child(&t, continue_merge);
    nothing_is_open();
    scenario_tree(&t, t.session, "/", 1, tree, sizeof(tree));
    ck_assert_int_eq(strstr(tree, "/a*") != NULL, _i == 0);
    if (_i == 0)
        ck_assert_int_eq(scenario_number(&t, t.session, "/a", 0), 70);
}

TEST(c3_it_may_move_again_and_again)
{
    brc_oid there;
    merge_settled(NULL);
    scenario_set_number(&t, "/a", 0, 70);
    for (int i = 0; i < 4; i++) {
        there = scenario_elsewhere(&t, "main", i % 2 == 0 ? change_a : change_a_again);
        scenario_in_killed_child(&t, continue_merge);
        ck_assert_uint_eq(open_now().open, 1);
        scenario_in_killed_child(&t, settle_theirs);
        ck_assert_int_eq(scenario_number(&t, t.session, "/a", 0), 70);
    }
    scenario_in_killed_child(&t, continue_merge);
    has_parents("main", &there, &side_tip);
    ck_assert_int_eq(scenario_number(&t, t.session, "/a", 0), 70);
    nothing_is_open();
}

TEST(c4_dropped_it_leaves_what_others_did)
{
    merge_settled(settle_theirs);
    const brc_oid there = scenario_elsewhere(&t, "main", change_a);
    scenario_in_killed_child(&t, continue_merge);
    OK(&t, brc_abort(t.repo, &t.err));
    nothing_is_open();
    ck_assert(scenario_same(there, scenario_id(&t, "main")));
    ck_assert_int_eq(scenario_number(&t, t.session, "/a", 0), 80);
    scenario_whole(&t);
}

/* The settled commit has no other name than the draft's plan. */
TEST(c5_collections_keep_what_was_settled)
{
    brc_gc_report report = BRC_GC_REPORT_INIT;
    scenario_no_window(&t);
    merge_settled(NULL);
    scenario_set_number(&t, "/a", 0, 70);
    scenario_elsewhere(&t, "main", change_a);
    scenario_in_killed_child(&t, continue_merge);
    OK(&t, brc_ref_delete(t.repo, "side", BRC_DELETE_FORCE, &t.err));
    OK(&t, brc_gc(t.repo, NULL, &report, &t.err));
    scenario_in_killed_child(&t, settle_theirs);
    OK(&t, brc_gc(t.repo, NULL, &report, &t.err));
    ck_assert_int_eq(merge_goes_on().result, BRC_PICK_COMMITTED);
    ck_assert_int_eq(scenario_number(&t, t.session, "/a", 0), 70);
}

/* ---- the tip has the other side -------------------------------- */

/* Main goes to a merge of side that somebody else has made. */
static void others_merged(void)
{
    brc_merge_opts opts = BRC_MERGE_OPTS_INIT;
    brc_merge_result r = BRC_MERGE_RESULT_INIT;
    opts.flags = BRC_MERGE_THEIRS;
    OK(&t, brc_merge(&r, NULL, t.repo, "side", &opts, &t.err));
    OK(&t, brc_undo(NULL, t.repo, 0, 0, &t.err));
    merge_settled(NULL);
    OK(&t, brc_undo(NULL, t.repo, BRC_UNDO_REDO, 0, &t.err));
    ck_assert(scenario_same(r.commit, scenario_id(&t, "main")));
}

TEST(t1_what_the_tip_has_all_of_makes_no_commit)
{
    others_merged();
    const brc_oid there = scenario_id(&t, "main");
    scenario_in_killed_child(&t, settle_theirs);
    const brc_pick_result r = merge_goes_on();
    ck_assert_int_eq(r.result, BRC_PICK_NOTHING);
    ck_assert(scenario_same(r.commit, there));
    ck_assert(scenario_same(scenario_id(&t, "main"), there));
    nothing_is_open();
}

TEST(t2_a_side_that_the_tip_has_is_no_parent)
{
    others_merged();
    const brc_oid there = scenario_id(&t, "main");
    scenario_set_number(&t, "/b", 0, 90);
    scenario_in_killed_child(&t, settle_theirs);
    ck_assert_int_eq(merge_goes_on().result, BRC_PICK_COMMITTED);
    has_parents("main", &there, NULL);
    ck_assert_int_eq(scenario_number(&t, t.session, "/b", 0), 90);
    nothing_is_open();
}

/* ---- cherry-picks and reverts -------------------------------- */

TEST(p1_a_pick_comes_onto_the_new_tip)
{
    scenario_in_killed_child(&t, begin_pick_of_side);
    scenario_in_killed_child(&t, settle_theirs);
    const brc_oid there = scenario_elsewhere(&t, "main", change_b);
    const brc_pick_result r = pick_goes_on();
    ck_assert_int_eq(r.result, BRC_PICK_COMMITTED);
    ck_assert_uint_eq(r.made, 1);
    has_parents("main", &there, NULL);
    is_like_picked("main");
    ck_assert_int_eq(scenario_number(&t, t.session, "/a", 0), 60);
    ck_assert_int_eq(scenario_number(&t, t.session, "/b", 0), 90);
    nothing_is_open();
}

TEST(p2_a_pick_in_conflict_stays_the_same_pick)
{
    scenario_in_killed_child(&t, begin_pick_of_side);
    scenario_set_number(&t, "/a", 0, 70);
    const brc_oid there = scenario_elsewhere(&t, "main", change_a);
    const brc_pick_result r = pick_goes_on();
    ck_assert_int_eq(r.result, BRC_PICK_CONFLICT);
    ck_assert(scenario_same(r.at, side_tip));
    ck_assert_str_eq(open_now().op, "cherry-pick");
    scenario_in_killed_child(&t, settle_theirs);
    scenario_in_killed_child(&t, continue_pick);
    has_parents("main", &there, NULL);
    is_like_picked("main");
    ck_assert_int_eq(scenario_number(&t, t.session, "/a", 0), 70);
    ck_assert_int_eq(scenario_number(&t, t.session, "/a", 6), 60);
    nothing_is_open();
}

TEST(p3_a_pick_of_which_nothing_is_left_makes_no_commit)
{
    scenario_in_killed_child(&t, begin_pick_of_side);
    scenario_in_killed_child(&t, settle_theirs);
    scenario_set_number(&t, "/a", 6, 7);
    OK(&t, brc_node_move(t.session, "/h", "/g", 0, &t.err));
    const brc_oid there = scenario_elsewhere(&t, "main", change_a_as_settled);
    const brc_pick_result r = pick_goes_on();
    ck_assert_int_eq(r.result, BRC_PICK_NOTHING);
    ck_assert_uint_eq(r.made, 0);
    ck_assert(scenario_same(r.commit, there));
    ck_assert(scenario_same(there, scenario_id(&t, "main")));
    nothing_is_open();
}

/* Their change is not taken back a second time. */
LOOP(p4_a_revert_too, 0, 2)
{
    brc_pick_opts opts = BRC_PICK_OPTS_INIT;
    brc_pick_result r = BRC_PICK_RESULT_INIT;
    OK(&t, brc_node_move(t.session, "/g", "/h", 0, &t.err));
    scenario_set_number(&t, "/a", 2, 55);
    scenario_commit(&t, "to be reverted");
    scenario_set_number(&t, "/a", 2, 56);
    scenario_commit(&t, "over it");
    opts.flags = BRC_PICK_REVERT | BRC_PICK_KEEP;
    OK(&t, brc_pick(&r, NULL, t.repo, "HEAD~1", &opts, &t.err));
    ck_assert_int_eq(r.result, BRC_PICK_CONFLICT);
    scenario_set_number(&t, "/a", 2, 57);
    const brc_oid there = scenario_elsewhere(&t, "main", _i == 0 ? change_b : change_a);
    ck_assert_int_eq(pick_goes_on().result, BRC_PICK_COMMITTED);
    has_parents("main", &there, NULL);
    ck_assert_int_eq(scenario_number(&t, t.session, "/a", 2), 57);
    ck_assert_int_eq(scenario_number(&t, t.session, "/g/c", 0), 1);
    OK(&t, brc_reset(t.repo, NULL, "HEAD~2", BRC_RESET_HARD, NULL, &t.err));
    OK(&t, brc_pick(&r, NULL, t.repo, "HEAD~1", &opts, &t.err));
    scenario_set_number(&t, "/a", 0, 57);
    scenario_set_number(&t, "/a", 2, 57);
    scenario_elsewhere(&t, "main", change_a);
    ck_assert_int_eq(pick_goes_on().result, BRC_PICK_CONFLICT);
    ck_assert_str_eq(open_now().op, "revert");
    scenario_in_killed_child(&t, settle_theirs);
    ck_assert_int_eq(pick_goes_on().result, BRC_PICK_COMMITTED);
    ck_assert_int_eq(scenario_number(&t, t.session, "/a", 0), 57);
    ck_assert_int_eq(scenario_number(&t, t.session, "/a", 2), 57);
    ck_assert_int_eq(scenario_number(&t, t.session, "/g/c", 0), 1);
    ck_assert_int_eq(scenario_ask(&t, "SELECT count(*) FROM oplog WHERE op='revert'"), 2);
}

/* ---- the branch gets another name, or goes -------------------------------- */

static void delete_main(void)
{
    OK(&t, brc_undo(NULL, t.repo, 0, 0, &t.err)); /* the switch to main */
    OK(&t, brc_ref_delete(t.repo, "main", BRC_DELETE_FORCE, &t.err));
    scenario_look_again(&t);
}

LOOP(b1_a_renamed_branch_has_it_still, 0, 2)
{
    merge_settled(settle_theirs);
    OK(&t, brc_ref_rename(t.repo, "main", "trunk", 0, &t.err));
    scenario_look_again(&t);
    ck_assert_uint_eq(open_now().conflicts, 1);
    ck_assert_uint_eq(open_now().open, 0);
    if (_i == 0)
        ck_assert_int_eq(merge_goes_on().result, BRC_PICK_COMMITTED);
    else
        OK(&t, brc_abort(t.repo, &t.err));
    scenario_look_again(&t);
    nothing_is_open();
    if (_i == 0)
        has_parents("trunk", &main_tip, &side_tip);
    ck_assert_int_eq(scenario_number(&t, t.session, "/a", 0), _i == 0 ? 60 : 50);
}

LOOP(b2_undo_of_its_deletion_brings_it_back, 0, 2)
{
    merge_settled(NULL);
    scenario_set_number(&t, "/a", 0, 70);
    const int64_t draft = open_now().draft;
    scenario_no_window(&t);
    delete_main();
    ck_assert_int_eq(open_now().draft, 0);
    FAILS(&t, BRC_EMISUSE, brc_draft_adopt(t.repo, draft, &t.err));
    OK(&t, brc_gc(t.repo, NULL, NULL, &t.err));
    OK(&t, brc_undo(NULL, t.repo, 0, 0, &t.err));
    OK(&t, brc_switch(t.repo, "main", 0, &t.err));
    scenario_look_again(&t);
    ck_assert_int_eq(open_now().draft, draft);
    ck_assert_int_eq(scenario_number(&t, t.session, "/a", 0), 70);
    if (_i == 0)
        ck_assert_int_eq(merge_goes_on().result, BRC_PICK_COMMITTED);
    else
        OK(&t, brc_abort(t.repo, &t.err));
    nothing_is_open();
    scenario_look_again(&t);
    ck_assert_int_eq(scenario_number(&t, t.session, "/a", 0), _i == 0 ? 70 : 50);
}

TEST(b3_dropped_it_does_not_come_back)
{
    merge_settled(settle_theirs);
    const int64_t draft = open_now().draft;
    delete_main();
    OK(&t, brc_draft_drop(t.repo, draft, &t.err));
    scenario_look_again(&t);
    OK(&t, brc_undo(NULL, t.repo, 0, 0, &t.err));
    OK(&t, brc_switch(t.repo, "main", 0, &t.err));
    nothing_is_open();
    scenario_look_again(&t);
}

TEST(b4_what_is_kept_is_checked_for_damage)
{
    merge_settled(settle_theirs);
    delete_main();
    ck_assert_int_eq(scenario_faults(&t), 0);
    scenario_sql(&t, "DELETE FROM conflict");
    ck_assert_int_gt(scenario_faults(&t), 0);
}

/* ---- while it goes on -------------------------------- */

typedef struct other_one {
    breccia *repo;
    int writes, done;
} other_one;

static int write_elsewhere(other_one *o)
{
    brc_session *s;
    brc_commit_opts commit = BRC_COMMIT_OPTS_INIT;
    brc_oid id;
    const int mode = o->writes ? BRC_SESSION_WRITE : BRC_SESSION_PRIVATE;
    commit.message = "meanwhile";
    if (brc_session_open(&s, o->repo, "main", mode, NULL) < 0)
        return 0;
    int rc = brc_attrs_set(s, "/b", o->writes ? "late" : "own", "1", NULL);
    if (rc == BRC_OK && !o->writes)
        rc = brc_session_commit(&id, s, &commit, NULL);
    brc_session_free(s);
    return rc == BRC_OK;
}

static int others_turn(void *ctx, const char *phase, uint64_t done, uint64_t total)
{
    other_one *o = ctx;
    (void)phase;
    (void)done;
    (void)total;
    if (o->repo != NULL && o->done == 0)
        o->done = write_elsewhere(o);
    return 0;
}

/* Chunks are merged; then somebody else commits there, or writes into what is open. */
LOOP(w1_what_others_do_meanwhile_is_in_it, 0, 2)
{
    other_one o = {.writes = _i};
    brc_open_opts opts = BRC_OPEN_OPTS_INIT, alone = BRC_OPEN_OPTS_INIT;
    brc_pick_result r = BRC_PICK_RESULT_INIT;
    brc_buf attr = BRC_BUF_INIT;
    merge_settled(settle_theirs);
    scenario_elsewhere(&t, "main", change_beside);
    scenario_close(&t);
    opts.progress = others_turn;
    opts.progress_ctx = &o;
    scenario_open(&t, &opts, 0);
    alone.wait_ms = 1;
    OK(&t, brc_open(&o.repo, t.file, &alone, &t.err));
    OK(&t, brc_continue(&r, NULL, t.repo, NULL, &t.err));
    brc_free(o.repo);
    o.repo = NULL;
    ck_assert_int_eq(o.done, 1);
    ck_assert_int_eq(r.result, BRC_PICK_COMMITTED);
    scenario_look_again(&t);
    OK(&t, brc_attrs_get(&attr, t.session, "/b", _i ? "late" : "own", &t.err));
    brc_buf_dispose(&attr);
    ck_assert_int_eq(scenario_number(&t, t.session, "/a", 0), 60);
    ck_assert_int_eq(scenario_number(&t, t.session, "/a", 1), 80);
    nothing_is_open();
}
