/* Whose uncommitted changes are whose: private sessions, the shared draft of a branch, and what
 * a process leaves that ends in the middle. */
#include <stdio.h>

#include "../kit/drafts_kit.h"
#include "../kit/ios.h"
#include "../kit/suite.h"
#include "../kit/versions.h"

TEST_SUITE(drafts);

SCENARIO_NUMBERS_FIXTURE(t, 8, 4)

CASE("drafts", .setup = t_numbers, .teardown = t_stop);

/* ---- two at work ------------------------------------------------------------------ */

TEST(a_private_change_is_not_in_another_s_commit)
{
    brc_oid id;
    breccia *other = scenario_handle(&t, 0);
    brc_session *mine = scenario_session(&t, t.repo, NULL, BRC_SESSION_PRIVATE);
    brc_session *theirs = scenario_session(&t, other, NULL, BRC_SESSION_WRITE);
    OK(&t, brc_group_create(mine, "/mine", NULL, &t.err));
    scenario_put(&t, mine, "/a", 0, 70);
    OK(&t, brc_group_create(theirs, "/theirs", NULL, &t.err));
    ck_assert_str_eq(drafts_list(&t, other), "main shared 1; main alive ours 2; ");
    int kind;
    OK(&t, brc_node_kind(&kind, theirs, "/mine", &t.err));
    ck_assert_int_eq(kind, 0);
    OK(&t, brc_node_kind(&kind, mine, "/theirs", &t.err));
    ck_assert_int_eq(kind, 0);
    OK(&t, scenario_commit_of(&t, theirs, "theirs", &id));
    brc_session *at = scenario_session(&t, other, "main", BRC_SESSION_AT);
    OK(&t, brc_node_kind(&kind, at, "/mine", &t.err));
    ck_assert_int_eq(kind, 0);
    ck_assert_int_eq(scenario_number(&t, at, "/a", 0), 0);
    ck_assert_int_eq(scenario_number(&t, mine, "/a", 0), 70);
    ck_assert_int_eq(scenario_is_clean(&t, mine), 0);
    /* what is new there is not undone */
    brc_commit_opts alone = BRC_COMMIT_OPTS_INIT;
    alone.message = "mine";
    alone.flags = BRC_COMMIT_NO_MERGE;
    FAILS(&t, BRC_ESTALE, brc_session_commit(&id, mine, &alone, &t.err));
    ck_assert_str_eq(drafts_list(&t, other), "main alive stale ours 2; ");
    ck_assert_int_eq(scenario_number(&t, mine, "/a", 0), 70);
    OK(&t, scenario_commit_of(&t, mine, "mine, merged", &id));
    OK(&t, brc_node_kind(&kind, mine, "/theirs", &t.err));
    ck_assert_int_eq(kind, BRC_GROUP);
    brc_session_free(at);
    brc_session_free(mine);
    brc_session_free(theirs);
    brc_free(other);
}

TEST(two_shared_sessions_have_one_draft)
{
    brc_oid id;
    breccia *other = scenario_handle(&t, 0);
    brc_session *second = scenario_session(&t, other, NULL, BRC_SESSION_WRITE);
    OK(&t, brc_group_create(t.session, "/one", NULL, &t.err));
    OK(&t, brc_group_create(second, "/two", NULL, &t.err));
    ck_assert_str_eq(drafts_list(&t, other), "main shared 2; ");
    OK(&t, scenario_commit_of(&t, second, "both", &id));
    ck_assert_int_eq(scenario_is_clean(&t, t.session), 1);
    FAILS(&t, BRC_EMISUSE, scenario_commit_of(&t, t.session, "none", &id));
    brc_session_free(second);
    brc_free(other);
}

TEST(a_shared_draft_does_not_undo_a_private_commit)
{
    brc_oid id;
    brc_session *mine = scenario_session(&t, t.repo, NULL, BRC_SESSION_PRIVATE);
    scenario_put(&t, t.session, "/a", 1, 11);
    scenario_put(&t, mine, "/a", 0, 70);
    OK(&t, scenario_commit_of(&t, mine, "mine", &id));
    ck_assert_str_eq(drafts_list(&t, t.repo), "main shared stale 1; ");
    OK(&t, scenario_commit_of(&t, t.session, "shared", &id));
    ck_assert_str_eq(drafts_list(&t, t.repo), "");
    ck_assert_int_eq(scenario_number(&t, t.session, "/a", 0), 70);
    ck_assert_int_eq(scenario_number(&t, t.session, "/a", 1), 11);
    brc_session_free(mine);
    ck_assert_str_eq(drafts_list(&t, t.repo), "");
}

/* ---- one private session ----------------------------------------------------------- */

TEST(a_private_session_goes_on_from_its_commits)
{
    brc_oid one, two;
    brc_commit *commit;
    brc_session *mine = scenario_session(&t, t.repo, NULL, BRC_SESSION_PRIVATE);
    ck_assert_int_eq(scenario_is_clean(&t, mine), 1);
    ck_assert_str_eq(drafts_list(&t, t.repo), ""); /* nothing is written before a change */
    FAILS(&t, BRC_EMISUSE, scenario_commit_of(&t, mine, "none", &one));
    scenario_put(&t, mine, "/a", 0, 70);
    OK(&t, scenario_commit_of(&t, mine, "one", &one));
    ck_assert_int_eq(scenario_is_clean(&t, mine), 1);
    scenario_put(&t, mine, "/a", 5, 75);
    OK(&t, scenario_commit_of(&t, mine, "two", &two));
    OK(&t, brc_commit_read(&commit, t.repo, &two, &t.err));
    ck_assert_mem_eq(&commit->parents[0], &one, sizeof(one));
    brc_commit_free(commit);
    ck_assert_int_eq(scenario_number(&t, t.session, "/a", 0), 70);
    ck_assert_int_eq(scenario_number(&t, t.session, "/a", 5), 75);
    scenario_put(&t, mine, "/a", 5, 76);
    OK(&t, brc_session_discard(mine, &t.err));
    ck_assert_int_eq(scenario_number(&t, mine, "/a", 5), 75);
    ck_assert_int_eq(scenario_is_clean(&t, mine), 1);
    brc_session_free(mine);
}

TEST(what_is_undone_was_never_there)
{
    brc_oid id;
    brc_session *mine = scenario_session(&t, t.repo, NULL, BRC_SESSION_PRIVATE);
    OK(&t, brc_begin(t.repo, &t.err));
    scenario_put(&t, mine, "/a", 0, 70);
    OK(&t, brc_end(t.repo, 0, &t.err)); /* the transaction that made the draft */
    ck_assert_int_eq(scenario_number(&t, mine, "/a", 0), 0);
    ck_assert_str_eq(drafts_list(&t, t.repo), "");
    scenario_put(&t, mine, "/a", 0, 71);
    OK(&t, brc_begin(t.repo, &t.err));
    OK(&t, scenario_commit_of(&t, mine, "undone", &id));
    scenario_put(&t, mine, "/a", 0, 72);
    OK(&t, brc_end(t.repo, 0, &t.err));
    ck_assert_int_eq(scenario_number(&t, mine, "/a", 0), 71);
    ck_assert_int_eq(scenario_is_clean(&t, mine), 0);
    OK(&t, brc_begin(t.repo, &t.err));
    OK(&t, brc_session_discard(mine, &t.err));
    OK(&t, brc_end(t.repo, 0, &t.err));
    ck_assert_int_eq(scenario_number(&t, mine, "/a", 0), 71);
    OK(&t, scenario_commit_of(&t, mine, "kept", &id));
    ck_assert_int_eq(scenario_number(&t, t.session, "/a", 0), 71);
    brc_session_free(mine);
}

TEST(a_session_whose_draft_was_taken_says_so)
{
    int64_t id;
    brc_oid commit;
    brc_session *mine = scenario_session(&t, t.repo, NULL, BRC_SESSION_PRIVATE);
    scenario_put(&t, mine, "/a", 0, 70);
    breccia *other = scenario_handle(&t, 0);
    id = drafts_last(&t, other);
    FAILS(&t, BRC_EBUSY, brc_draft_adopt(other, id, &t.err)); /* its process is this one */
    brc_free(other);
    scenario_sql(&t, "UPDATE draft SET owner='{\"pid\":1}'; UPDATE draft SET checksum=row_sum("
                     "'draft', id, kind, state, branch, base, tip, other, plan, owner, parent,"
                     " time_us, changes, parts)");
    OK(&t, brc_draft_drop(t.repo, id, &t.err)); /* of an unknown owner: whoever asks is right */
    FAILS(&t, BRC_ESTALE, scenario_commit_of(&t, mine, "lost", &commit));
    brc_session_free(mine);
}

/* A process drops its own draft after a conflict: the session that wrote the draft may have been
 * freed. */
TEST(a_process_drops_its_own)
{
    brc_oid commit;
    brc_session *mine = scenario_session(&t, t.repo, NULL, BRC_SESSION_PRIVATE);
    scenario_put(&t, mine, "/a", 0, 70);
    breccia *other = scenario_handle(&t, 0);
    OK(&t, brc_draft_drop(other, drafts_last(&t, other), &t.err));
    ck_assert_str_eq(drafts_list(&t, other), "");
    brc_free(other);
    FAILS(&t, BRC_ESTALE, scenario_commit_of(&t, mine, "lost", &commit));
    brc_session_free(mine);
    mine = scenario_session(&t, t.repo, NULL, BRC_SESSION_PRIVATE);
    scenario_put(&t, mine, "/a", 0, 71);
    OK(&t, scenario_commit_of(&t, mine, "kept", &commit));
    brc_session_free(mine);
}

/* ---- processes that end ------------------------------------------------------------- */

TEST(what_a_dead_process_left_is_adopted_or_dropped)
{
    brc_oid id;
    scenario_close(&t);
    drafts_leave(&t, 70);
    drafts_leave(&t, 71);
    scenario_open(&t, NULL, 0);
    ck_assert_str_eq(drafts_list(&t, t.repo), "main dead 1; main dead 1; ");
    ck_assert_int_eq(scenario_is_clean(&t, t.session), 1);
    int64_t second = drafts_last(&t, t.repo);
    FAILS(&t, BRC_ENOTFOUND, brc_draft_adopt(t.repo, second + 1, &t.err));
    FAILS(&t, BRC_ENOTFOUND, brc_draft_drop(t.repo, 0, &t.err));
    OK(&t, brc_draft_adopt(t.repo, second, &t.err));
    ck_assert_int_eq(scenario_number(&t, t.session, "/a", 0), 71);
    FAILS(&t, BRC_EINVAL, brc_draft_adopt(t.repo, second, &t.err));
    FAILS(&t, BRC_ECONFLICT, brc_draft_adopt(t.repo, second - 1, &t.err));
    OK(&t, scenario_commit_of(&t, t.session, "adopted", &id));
    ck_assert_str_eq(drafts_list(&t, t.repo), "main dead stale 1; ");
    OK(&t, brc_draft_drop(t.repo, second - 1, &t.err));
    ck_assert_str_eq(drafts_list(&t, t.repo), "");
    drafts_leave(&t, 72);
    ck_assert_int_gt(drafts_last(&t, t.repo), second); /* no number is used again */
    OK(&t, brc_draft_drop(t.repo, drafts_last(&t, t.repo), &t.err));
}

static void begins_with(int32_t a, int32_t b, int32_t c)
{
    ck_assert_int_eq(scenario_number(&t, t.session, "/a", 0), a);
    ck_assert_int_eq(scenario_number(&t, t.session, "/a", 1), b);
    ck_assert_int_eq(scenario_number(&t, t.session, "/a", 2), c);
}

TEST(a_draft_that_is_adopted_lies_over_what_is_new)
{
    const int64_t left = drafts_leave_behind(&t, 70, 1);
    brc_oid id, tip = scenario_id(&t, "main");
    OK(&t, brc_draft_adopt(t.repo, left, &t.err));
    ck_assert_str_eq(drafts_list(&t, t.repo), "main shared 0; "); /* no row was copied */
    ck_assert_int_eq(scenario_number(&t, t.session, "/a", 0), 70);
    ck_assert_int_eq(scenario_number(&t, t.session, "/a", 1), 99);
    scenario_whole(&t);
    scenario_put(&t, t.session, "/a", 2, 42);
    OK(&t, brc_gc(t.repo, NULL, NULL, &t.err));
    OK(&t, scenario_commit_of(&t, t.session, "adopted", &id));
    ck_assert_str_eq(drafts_list(&t, t.repo), "");
    brc_commit *commit;
    OK(&t, brc_commit_read(&commit, t.repo, &id, &t.err));
    ck_assert_uint_eq(commit->nparents, 1);
    ck_assert_mem_eq(&commit->parents[0], &tip, sizeof(tip));
    brc_commit_free(commit);
    begins_with(70, 99, 42);
}

TEST(a_draft_in_conflict_is_adopted_as_it_is)
{
    const int64_t left = drafts_leave_behind(&t, 70, 0);
    brc_oid id, before = scenario_id(&t, "main");
    OK(&t, brc_draft_adopt(t.repo, left, &t.err));
    ck_assert_str_eq(drafts_list(&t, t.repo), "main shared stale 1; ");
    ck_assert_int_eq(scenario_is_clean(&t, t.session), 0);
    FAILS(&t, BRC_ECONFLICT, scenario_commit_of(&t, t.session, "adopted", &id));
    id = scenario_id(&t, "main");
    ck_assert_mem_eq(&id, &before, sizeof(id));
    ck_assert_int_eq(scenario_number(&t, t.session, "/a", 0), 70);
    scenario_whole(&t);
    scenario_put(&t, t.session, "/a", 0, 99);
    scenario_put(&t, t.session, "/a", 3, 33);
    OK(&t, scenario_commit_of(&t, t.session, "adopted", &id));
    ck_assert_str_eq(drafts_list(&t, t.repo), "");
    ck_assert_int_eq(scenario_number(&t, t.session, "/a", 0), 99);
    ck_assert_int_eq(scenario_number(&t, t.session, "/a", 3), 33);
}

TEST(what_the_branch_has_already_is_adopted_as_nothing)
{
    const int64_t left = drafts_leave_behind(&t, 99, 0);
    OK(&t, brc_draft_adopt(t.repo, left, &t.err));
    ck_assert_str_eq(drafts_list(&t, t.repo), "");
}

/* In a transaction nothing can be merged: the commit does it later. */
TEST(a_draft_that_is_adopted_in_a_transaction_is_merged_by_its_commit)
{
    const int64_t left = drafts_leave_behind(&t, 70, 1);
    brc_oid id;
    OK(&t, brc_begin(t.repo, &t.err));
    OK(&t, brc_draft_adopt(t.repo, left, &t.err));
    OK(&t, brc_end(t.repo, BRC_END_KEEP, &t.err));
    ck_assert_str_eq(drafts_list(&t, t.repo), "main shared stale 1; ");
    OK(&t, scenario_commit_of(&t, t.session, "adopted", &id));
    ck_assert_int_eq(scenario_number(&t, t.session, "/a", 0), 70);
    ck_assert_int_eq(scenario_number(&t, t.session, "/a", 1), 99);
}

/* Where the branch has changes of its own they come first, also where a soft reset made them and
 * they have no row. */
TEST(changes_of_the_branch_are_committed_before_a_draft_is_adopted)
{
    const int64_t left = drafts_leave_behind(&t, 70, 1);
    brc_oid id;
    OK(&t, brc_reset(t.repo, NULL, "HEAD~1", 0, NULL, &t.err));
    FAILS(&t, BRC_ESTALE, brc_draft_adopt(t.repo, left, &t.err));
    ck_assert_int_eq(scenario_number(&t, t.session, "/a", 1), 99);
    OK(&t, scenario_commit_of(&t, t.session, "again", &id));
    scenario_put(&t, t.session, "/a", 2, 42);
    FAILS(&t, BRC_ESTALE, brc_draft_adopt(t.repo, left, &t.err));
    OK(&t, scenario_commit_of(&t, t.session, "more", &id));
    OK(&t, brc_draft_adopt(t.repo, left, &t.err));
    begins_with(70, 99, 42);
    OK(&t, scenario_commit_of(&t, t.session, "adopted", &id));
}

LOOP(owners_that_cannot_be_known_are_unknown, 0, 7)
{
    static const struct {
        const char *change, *is;
    } rows[] = {
        { "replace(owner, '\"boot\":\"', '\"boot\":\"0')", "main dead 1; " },
        { "replace(owner, '\"machine\":\"', '\"machine\":\"0')", "main unknown 1; " },
        { "replace(owner, '\"pid_namespace\":', '\"pid_namespace\":1')", "main unknown 1; " },
        { "'nonsense'", "main unknown 1; " },
        { "'[]'", "main unknown 1; " },
        { "'{\"machine\":7,\"boot\":{},\"pid\":\"x\"}'", "main unknown 1; " },
        { "NULL", "main unknown 1; " },
    };
    char sql[400];
    scenario_close(&t);
    drafts_leave(&t, 70);
    snprintf(sql, sizeof(sql),
             "UPDATE draft SET owner=%s; UPDATE draft SET checksum=row_sum('draft', id, kind,"
             " state, branch, base, tip, other, plan, owner, parent, time_us, changes, parts)",
             rows[_i].change);
    scenario_sql(&t, sql);
    scenario_open(&t, NULL, 0);
    ck_assert_str_eq(drafts_list(&t, t.repo), rows[_i].is);
    OK(&t, brc_draft_drop(t.repo, drafts_last(&t, t.repo), &t.err));
}

/* ---- branches ------------------------------------------------------------------------ */

TEST(a_branch_with_a_private_draft_is_not_deleted_unasked)
{
    brc_oid id;
    OK(&t, brc_ref_create(t.repo, "side", NULL, NULL, 0, &t.err));
    brc_session *mine = scenario_session(&t, t.repo, "side", BRC_SESSION_PRIVATE);
    scenario_put(&t, mine, "/a", 0, 70);
    OK(&t, brc_ref_rename(t.repo, "side", "other", 0, &t.err));
    ck_assert_str_eq(drafts_list(&t, t.repo), "other alive ours 1; ");
    FAILS(&t, BRC_EMISUSE, brc_ref_delete(t.repo, "other", 0, &t.err));
    FAILS(&t, BRC_EBUSY, brc_ref_delete(t.repo, "other", BRC_DELETE_FORCE, &t.err));
    ck_assert_str_eq(drafts_list(&t, t.repo), "other alive ours 1; ");
    OK(&t, brc_session_discard(mine, &t.err)); /* it has nothing that could be lost */
    OK(&t, brc_ref_delete(t.repo, "other", BRC_DELETE_FORCE, &t.err));
    ck_assert_str_eq(drafts_list(&t, t.repo), "");
    FAILS(&t, BRC_ENOTFOUND, scenario_commit_of(&t, mine, "gone", &id));
    brc_session_free(mine);
}

/* The draft that a killed process left on a deleted branch is adopted when the branch is there
 * again. */
TEST(a_branch_that_goes_leaves_what_the_dead_wrote)
{
    scenario_close(&t);
    drafts_leave(&t, 70);
    scenario_open(&t, NULL, 0);
    OK(&t, brc_ref_create(t.repo, "side", NULL, NULL, 0, &t.err));
    OK(&t, brc_switch(t.repo, "side", 0, &t.err));
    OK(&t, brc_ref_delete(t.repo, "main", BRC_DELETE_FORCE, &t.err));
    ck_assert_str_eq(drafts_list(&t, t.repo), "main unknown stale 1; ");
    FAILS(&t, BRC_ENOTFOUND, brc_draft_adopt(t.repo, drafts_last(&t, t.repo), &t.err));
    OK(&t, brc_ref_create(t.repo, "main", "side", NULL, 0, &t.err));
    OK(&t, brc_draft_adopt(t.repo, drafts_last(&t, t.repo), &t.err));
    brc_session *s = scenario_session(&t, t.repo, "main", BRC_SESSION_WRITE);
    ck_assert_int_eq(scenario_number(&t, s, "/a", 0), 70);
    brc_session_free(s);
}

/* Also in the middle of a bulk write, whose rows would belong to nothing. */
TEST(a_branch_that_is_written_in_bulk_stays)
{
    brc_session *s;
    brc_array *a;
    int refused = 0;
    uint64_t shape = 400000, chunk = 1;
    brc_sel sel = BRC_SEL_INIT;
    OK(&t, brc_ref_create(t.repo, "side", NULL, NULL, 0, &t.err));
    breccia *other = scenario_handle(&t, 0);
    s = scenario_session(&t, t.repo, "side", BRC_SESSION_WRITE);
    brc_array_spec spec = BRC_ARRAY_SPEC_INIT;
    spec.dtype = "int32";
    spec.ndim = 1;
    spec.shape = &shape;
    spec.chunk = &chunk;
    OK(&t, brc_bulk_begin(s, &t.err));
    OK(&t, brc_array_create(&a, s, "/n", &spec, &t.err));
    sel_all(&sel, a);
    for (int32_t i = 0; i < 20; i++) {
        static int32_t values[20000];
        for (int k = 0; k < 20000; k++)
            values[k] = 20000 * i + k + 1;
        sel.start[0] = 20000 * (uint64_t)i;
        sel.count[0] = 20000;
        OK(&t, brc_array_write(a, &sel, values, sizeof(values), &t.err));
        const int has = scenario_ask(&t, "SELECT count(*) FROM draft_chunk") > 0;
        if (has)
            FAILS(&t, BRC_EBUSY, brc_ref_delete(other, "side", BRC_DELETE_FORCE, &t.err));
        refused += has;
    }
    ck_assert_int_gt(refused, 0);
    OK(&t, brc_bulk_end(s, BRC_END_KEEP, &t.err));
    ck_assert_int_eq(scenario_number(&t, s, "/n", 399999), 400000);
    brc_array_free(a);
    brc_session_free(s);
    brc_free(other);
    scenario_whole(&t);
}

TEST(after_a_reset_the_draft_follows_the_new_tip)
{
    brc_oid id;
    brc_commit *commit;
    scenario_put(&t, t.session, "/a", 0, 1);
    scenario_commit(&t, "second");
    scenario_put(&t, t.session, "/a", 1, 2);
    OK(&t, brc_reset(t.repo, NULL, "HEAD~1", 0, NULL, &t.err));
    ck_assert_str_eq(drafts_list(&t, t.repo), "main shared 1; ");
    OK(&t, scenario_commit_of(&t, t.session, "both changes", &id));
    OK(&t, brc_commit_read(&commit, t.repo, &id, &t.err));
    ck_assert_str_eq(commit->message, "both changes");
    brc_commit_free(commit);
    ck_assert_int_eq(scenario_number(&t, t.session, "/a", 0), 1);
    ck_assert_int_eq(scenario_number(&t, t.session, "/a", 1), 2);
}

/* ---- private sessions without a change --------------------------------------------- */

TEST(a_clean_private_session_follows_its_branch)
{
    brc_oid id;
    brc_session *mine = scenario_session(&t, t.repo, NULL, BRC_SESSION_PRIVATE);
    scenario_put(&t, t.session, "/a", 0, 50);
    scenario_commit(&t, "moves the branch");
    ck_assert_int_eq(scenario_number(&t, mine, "/a", 0), 50);
    scenario_put(&t, mine, "/a", 1, 60);
    OK(&t, scenario_commit_of(&t, mine, "begins at what it saw", &id));
    scenario_put(&t, t.session, "/a", 2, 70); /* now it has a draft, without a change */
    scenario_commit(&t, "moves it again");
    ck_assert_int_eq(scenario_number(&t, mine, "/a", 2), 70);
    ck_assert_int_eq(scenario_is_clean(&t, mine), 1);
    scenario_put(&t, mine, "/a", 3, 80);
    OK(&t, scenario_commit_of(&t, mine, "begins there too", &id));
    for (int i = 0; i < 4; i++)
        ck_assert_int_eq(scenario_number(&t, t.session, "/a", (uint64_t)i), 50 + 10 * i);
    scenario_put(&t, mine, "/a", 0, 90);
    scenario_put(&t, t.session, "/a", 0, 91);
    scenario_commit(&t, "meanwhile");
    ck_assert_int_eq(scenario_number(&t, mine, "/a", 1), 60);
    FAILS(&t, BRC_ECONFLICT,
          scenario_commit_of(&t, mine, "has changes: it stays where it began", &id));
    brc_session_free(mine);
}

/* A draft that was written into, and has nothing in it. */
static brc_session *emptied(breccia *repo)
{
    brc_session *s = scenario_session(&t, repo, NULL, BRC_SESSION_PRIVATE);
    OK(&t, brc_savepoint(s, BRC_SAVEPOINT_SET, "one", &t.err));
    scenario_put(&t, s, "/a", 0, 1);
    OK(&t, brc_savepoint(s, BRC_SAVEPOINT_ROLLBACK, "one", &t.err));
    OK(&t, brc_savepoint(s, BRC_SAVEPOINT_RELEASE, "one", &t.err));
    ck_assert_str_eq(drafts_list(&t, repo), "main alive ours 0; ");
    return s;
}

/* Closing a session does not wait for the lock. */
TEST(no_empty_draft_stays)
{
    breccia *other = scenario_handle(&t, 0);
    brc_session *mine = emptied(t.repo);
    OK(&t, brc_begin(other, &t.err));
    brc_session_free(mine);
    OK(&t, brc_end(other, 0, &t.err));
    ck_assert_str_eq(drafts_list(&t, t.repo), "main alive ours 0; ");
    scenario_set_number(&t, "/a", 0, 2);
    scenario_commit(&t, "two");
    ck_assert_str_eq(drafts_list(&t, t.repo), "");
    mine = emptied(other);
    OK(&t, brc_begin(t.repo, &t.err));
    brc_session_free(mine);
    OK(&t, brc_end(t.repo, 0, &t.err));
    brc_free(other); /* the last chance */
    ck_assert_str_eq(drafts_list(&t, t.repo), "");
}

TEST(an_empty_draft_of_a_dead_process_goes_with_the_next)
{
    scenario_close(&t);
    drafts_leave(&t, 70);
    scenario_sql(&t, "DELETE FROM draft_chunk; DELETE FROM draft_node");
    drafts_leave(&t, 71);
    scenario_open(&t, NULL, 0);
    ck_assert_str_eq(drafts_list(&t, t.repo), "main dead 1; ");
    OK(&t, brc_draft_drop(t.repo, drafts_last(&t, t.repo), &t.err));
}

TEST(a_private_draft_goes_along_when_its_branch_is_renamed)
{
    brc_oid id;
    breccia *other = scenario_handle(&t, 0);
    brc_session *mine = scenario_session(&t, t.repo, NULL, BRC_SESSION_PRIVATE);
    scenario_put(&t, mine, "/a", 0, 1);
    OK(&t, brc_ref_rename(other, "main", "trunk", 0, &t.err));
    ck_assert_int_eq(scenario_number(&t, mine, "/a", 0), 1);
    scenario_put(&t, mine, "/a", 1, 2);
    OK(&t, scenario_commit_of(&t, mine, "on trunk", &id));
    ck_assert_int_eq(scenario_ask(&t, "SELECT count(*) FROM oplog WHERE op='commit'"
                                      " AND name='heads/trunk'"), 1);
    brc_session_free(mine);
    brc_free(other);
}

/* The first document of a node is not stored if it was changed before the commit. */
TEST(only_the_last_document_of_a_new_node_is_stored)
{
    static const char documents[] = "SELECT count(*) FROM object WHERE kind=2";
    const int64_t before = scenario_ask(&t, documents);
    OK(&t, brc_group_create(t.session, "/g", NULL, &t.err));
    OK(&t, brc_attrs_set(t.session, "/g", "k", "1", &t.err));
    OK(&t, brc_attrs_set(t.session, "/g", "k", "2", &t.err));
    scenario_numbers(&t, "/b", 10, 4, 0);
    OK(&t, brc_attrs_set(t.session, "/b", "k", "3", &t.err));
    ck_assert_int_eq(scenario_ask(&t, documents), before);
    scenario_commit(&t, "two nodes");
    ck_assert_int_eq(scenario_ask(&t, documents), before + 2);
    ck_assert_int_eq(scenario_ask(&t, "SELECT count(*) FROM draft_doc"), 0);
}
