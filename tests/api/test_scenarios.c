/*
 * Scenarios of docs/SCENARIOS.md that no other suite has from end to end; sNN is the number there.
 */
#include "../kit/suite.h"
#include "../kit/versions.h"

TEST_SUITE(scenarios);

static scenario t;

static void scenarios_setup(void)
{
    scenario_start(&t);
    scenario_numbers(&t, "/a", 8, 4, 1);
    scenario_numbers(&t, "/p/in_p", 4, 4, 1);
    scenario_numbers(&t, "/q/in_q", 4, 4, 1);
    scenario_commit(&t, "base");
    OK(&t, brc_ref_create(t.repo, "dev", NULL, NULL, 0, &t.err));
}

static void scenarios_teardown(void)
{
    scenario_stop(&t);
}

static int reverted(const char *rev, uint32_t mainline)
{
    brc_pick_opts opts = BRC_PICK_OPTS_INIT;
    brc_pick_result r = BRC_PICK_RESULT_INIT;
    opts.mainline = mainline;
    opts.flags = BRC_PICK_REVERT;
    OK(&t, brc_pick(&r, NULL, t.repo, rev, &opts, &t.err));
    return r.result;
}

static void element_is(int32_t value)
{
    ck_assert_int_eq(scenario_number(&t, t.session, "/a", 0), value);
}

CASE("scenarios", .setup = scenarios_setup, .teardown = scenarios_teardown);

/* Each side has merged the other and kept its own value: neither base is nearer. */
TEST(s01_bases_that_disagree_decide_nothing)
{
    scenario_set_number(&t, "/a", 0, 50);
    scenario_commit(&t, "50");
    OK(&t, brc_ref_create(t.repo, "was-main", NULL, NULL, BRC_REF_TAG, &t.err));
    scenario_be_on(&t, "dev");
    scenario_set_number(&t, "/a", 0, 60);
    scenario_commit(&t, "60");
    OK(&t, brc_ref_create(t.repo, "was-dev", NULL, NULL, BRC_REF_TAG, &t.err));
    ck_assert_int_eq(scenario_merge(&t, "was-main", BRC_MERGE_OURS), BRC_MERGE_MERGED);
    scenario_be_on(&t, "main");
    ck_assert_int_eq(scenario_merge(&t, "was-dev", BRC_MERGE_OURS), BRC_MERGE_MERGED);
    element_is(50);
    ck_assert_int_eq(scenario_merge(&t, "dev", BRC_MERGE_DRY_RUN), BRC_MERGE_CONFLICT);
    scenario_be_on(&t, "dev");
    element_is(60);
    ck_assert_int_eq(scenario_merge(&t, "main", BRC_MERGE_DRY_RUN), BRC_MERGE_CONFLICT);
    /* Where both sides agree, the result is theirs, whatever the bases say. */
    scenario_set_number(&t, "/a", 0, 50);
    scenario_commit(&t, "50 here, too");
    ck_assert_int_eq(scenario_merge(&t, "main", 0), BRC_MERGE_MERGED);
    element_is(50);
    scenario_whole(&t);
}

TEST(s05_groups_that_move_into_each_other_conflict)
{
    OK(&t, brc_node_move(t.session, "/p", "/q/p", 0, &t.err));
    scenario_commit(&t, "p in q");
    scenario_be_on(&t, "dev");
    OK(&t, brc_node_move(t.session, "/q", "/p/q", 0, &t.err));
    scenario_commit(&t, "q in p");
    ck_assert_int_eq(scenario_merge(&t, "main", BRC_MERGE_DRY_RUN), BRC_MERGE_CONFLICT);
    ck_assert_int_eq(scenario_merge(&t, "main", BRC_MERGE_OURS), BRC_MERGE_MERGED);
    scenario_number(&t, t.session, "/p/q/in_q", 0);
    scenario_number(&t, t.session, "/p/in_p", 0);
    scenario_be_on(&t, "main");
    OK(&t, brc_ref_create(t.repo, "dev-alone", "dev^1", NULL, 0, &t.err));
    ck_assert_int_eq(scenario_merge(&t, "dev-alone", BRC_MERGE_DRY_RUN), BRC_MERGE_CONFLICT);
    scenario_whole(&t);
}

TEST(s16_a_merge_that_was_reverted_comes_back_by_a_second_revert)
{
    scenario_be_on(&t, "dev");
    scenario_set_number(&t, "/a", 0, 60);
    scenario_commit(&t, "60");
    scenario_be_on(&t, "main");
    scenario_set_number(&t, "/a", 7, 70);
    scenario_commit(&t, "70");
    ck_assert_int_eq(scenario_merge(&t, "dev", 0), BRC_MERGE_MERGED);
    element_is(60);
    ck_assert_int_eq(reverted("HEAD", 1), BRC_PICK_COMMITTED);
    element_is(1);
    ck_assert_int_eq(scenario_number(&t, t.session, "/a", 7), 70);
    ck_assert_int_eq(scenario_merge(&t, "dev", 0), BRC_MERGE_UP_TO_DATE);
    element_is(1);
    ck_assert_int_eq(reverted("HEAD", 0), BRC_PICK_COMMITTED);
    element_is(60);
    ck_assert_int_eq(scenario_number(&t, t.session, "/a", 7), 70);
    scenario_whole(&t);
}

/* ---- a branch that is merged again and again -------------------------------- */

/* An element of /a, or of what it is called by now, on dev; merged into main. */
static void change_and_merge(const char *path, int32_t value)
{
    scenario_be_on(&t, "dev");
    scenario_set_number(&t, path, 0, value);
    scenario_commit(&t, "dev goes on");
    scenario_be_on(&t, "main");
    scenario_set_number(&t, "/q/in_q", 0, value);
    scenario_commit(&t, "main goes on");
    ck_assert_int_eq(scenario_merge(&t, "dev", 0), BRC_MERGE_MERGED);
}

static void number_at(const char *path, int32_t value)
{
    ck_assert_int_eq(scenario_number(&t, t.session, path, 0), value);
}

/* The base is the second parent of the merge before, from which no commit tells a move. */
TEST(s04_edits_follow_a_move_by_each_merge_of_a_branch)
{
    change_and_merge("/a", 60);
    OK(&t, brc_node_move(t.session, "/a", "/z", 0, &t.err));
    scenario_commit(&t, "moved");
    for (int32_t i = 61; i < 66; i++) {
        change_and_merge("/a", i);
        number_at("/z", i);
        ck_assert(!scenario_has(&t, "/a"));
    }
    scenario_whole(&t);
}

/* Both move things between merges, and what is new at a path is not what was there. */
TEST(s04_moves_of_both_sides_between_merges_are_joined)
{
    change_and_merge("/a", 60);
    OK(&t, brc_node_move(t.session, "/p", "/r", 0, &t.err));
    scenario_commit(&t, "a group moves");
    scenario_be_on(&t, "dev");
    OK(&t, brc_node_move(t.session, "/a", "/b", 0, &t.err));
    scenario_numbers(&t, "/a", 3, 3, 100); /* another one */
    scenario_numbers(&t, "/p/new", 2, 2, 7);
    scenario_commit(&t, "dev moves");
    change_and_merge("/b", 61);
    number_at("/b", 61);
    number_at("/a", 100);
    number_at("/r/new", 7);
    ck_assert(!scenario_has(&t, "/p"));
    OK(&t, brc_node_move(t.session, "/b", "/c", 0, &t.err));
    OK(&t, brc_node_move(t.session, "/a", "/d", 0, &t.err));
    scenario_commit(&t, "main moves both");
    scenario_be_on(&t, "dev");
    scenario_set_number(&t, "/a", 0, 101);
    scenario_set_number(&t, "/p/new", 0, 8);
    scenario_set_number(&t, "/p/in_p", 0, 9);
    scenario_commit(&t, "dev edits");
    change_and_merge("/b", 62);
    number_at("/c", 62);
    number_at("/d", 101);
    number_at("/r/new", 8);
    number_at("/r/in_p", 9);
    ck_assert(!scenario_has(&t, "/a") && !scenario_has(&t, "/b") && !scenario_has(&t, "/p"));
    scenario_whole(&t);
}

/* main is merged into dev, too. */
TEST(s04_merges_in_both_directions)
{
    change_and_merge("/a", 60);
    OK(&t, brc_node_move(t.session, "/a", "/z", 0, &t.err));
    scenario_commit(&t, "moved");
    scenario_be_on(&t, "dev");
    scenario_set_number(&t, "/a", 1, 5);
    scenario_commit(&t, "dev goes on");
    ck_assert_int_eq(scenario_merge(&t, "main", 0), BRC_MERGE_MERGED);
    scenario_be_on(&t, "dev");
    number_at("/z", 60);
    OK(&t, brc_node_move(t.session, "/z", "/y", 0, &t.err));
    scenario_commit(&t, "moved again");
    scenario_be_on(&t, "main");
    scenario_set_number(&t, "/z", 0, 61);
    scenario_commit(&t, "main goes on");
    scenario_be_on(&t, "dev");
    ck_assert_int_eq(scenario_merge(&t, "main", 0), BRC_MERGE_MERGED);
    scenario_be_on(&t, "dev");
    number_at("/y", 61);
    ck_assert_int_eq(scenario_number(&t, t.session, "/y", 1), 5);
    scenario_whole(&t);
}

static int begins_merge(breccia *repo)
{
    brc_merge_opts opts = BRC_MERGE_OPTS_INIT;
    brc_merge_result r = BRC_MERGE_RESULT_INIT;
    opts.flags = BRC_MERGE_KEEP;
    return brc_merge(&r, NULL, repo, "dev", &opts, NULL);
}

static int settles_p_for_ours(breccia *repo)
{
    static const char *const paths[] = {"/p"};
    uint64_t n;
    return brc_merge_settle(&n, repo, BRC_MERGE_OURS, paths, 1, NULL);
}

static int settles_rest_for_theirs(breccia *repo)
{
    uint64_t n;
    return brc_merge_settle(&n, repo, BRC_MERGE_THEIRS, NULL, 0, NULL);
}

static int continues_merge(breccia *repo)
{
    brc_pick_result r = BRC_PICK_RESULT_INIT;
    return brc_continue(&r, NULL, repo, NULL, NULL);
}

/* Each step is a process of its own, which is killed behind it. */
TEST(s15_a_merge_that_is_settled_by_killed_processes_is_intact)
{
    brc_commit *c;
    scenario_set_number(&t, "/a", 0, 50);
    scenario_set_number(&t, "/p/in_p", 0, 50);
    scenario_commit(&t, "50");
    scenario_be_on(&t, "dev");
    scenario_set_number(&t, "/a", 0, 60);
    scenario_set_number(&t, "/p/in_p", 0, 60);
    scenario_set_number(&t, "/q/in_q", 0, 60);
    scenario_commit(&t, "60");
    scenario_be_on(&t, "main");
    scenario_in_killed_child(&t, begins_merge);
    ck_assert_uint_eq(scenario_conflicts(&t), 2);
    scenario_in_killed_child(&t, settles_p_for_ours);
    ck_assert_uint_eq(scenario_conflicts(&t), 1);
    scenario_in_killed_child(&t, settles_rest_for_theirs);
    ck_assert_uint_eq(scenario_conflicts(&t), 0);
    scenario_in_killed_child(&t, continues_merge);
    element_is(60);
    ck_assert_int_eq(scenario_number(&t, t.session, "/p/in_p", 0), 50);
    ck_assert_int_eq(scenario_number(&t, t.session, "/q/in_q", 0), 60);
    ck_assert(scenario_clean(&t));
    const brc_oid id = scenario_id(&t, "main");
    OK(&t, brc_commit_read(&c, t.repo, &id, &t.err));
    ck_assert_uint_eq(c->nparents, 2);
    brc_commit_free(c);
}
