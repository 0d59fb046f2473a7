/* Savepoints of a session: when they end, and who else is at work. */
#include <signal.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../../src/base/buf.h"
#include "../kit/fsck_kit.h"
#include "../kit/savepoint_kit.h"
#include "../kit/suite.h"
#include "../kit/versions.h"

TEST_SUITE(savepoint_end);

static scenario t;

static void savepoint_end_setup(void)
{
    sp_start(&t);
}

static void savepoint_end_teardown(void)
{
    sp_stop(&t);
}

static int64_t saves_left(void)
{
    return scenario_ask(&t, "SELECT count(*) FROM draft WHERE parent IS NOT NULL AND state=1");
}

CASE("savepoint_end", .setup = savepoint_end_setup, .teardown = savepoint_end_teardown,
     .timeout = 60);

/* ---- the end of them -------------------------------- */

TEST(a_commit_ends_them)
{
    for (int private = 0; private < 2; private++) {
        if (private)
            sp_make_private(&t);
        scenario_set_number(&t, "/a", 0, 10 + private);
        sp_save(&t, "x");
        scenario_set_number(&t, "/a", 1, 20 + private);
        scenario_commit(&t, "more");
        ck_assert_int_eq(saves_left(), 0);
        FAILS(&t, BRC_ENOTFOUND, brc_savepoint(t.session, BRC_SAVEPOINT_ROLLBACK, "x", &t.err));
        ck_assert_int_eq(sp_number(&t, "/a", 0), 10 + private);
        ck_assert_int_eq(sp_number(&t, "/a", 1), 20 + private);
    }
}

TEST(a_commit_that_fails_does_not_end_them)
{
    uint8_t byte = 1;
    sp_save(&t, "x");
    scenario_set_number(&t, "/a", 0, 1);
    OK(&t, brc_key_set(t.session, "loose", &byte, 1, 0, &t.err));
    FAILS(&t, BRC_ECONFLICT, scenario_commit_of(&t, t.session, "more", NULL));
    sp_back(&t, "x");
    ck_assert_int_eq(sp_number(&t, "/a", 0), 70);
    scenario_commit(&t, "more");
}

TEST(dropping_and_resetting_the_changes_ends_them)
{
    for (int way = 0; way < 3; way++) {
        scenario_set_number(&t, "/a", 0, 5);
        sp_save(&t, "x");
        scenario_set_number(&t, "/a", 1, 6);
        if (way == 0)
            OK(&t, brc_session_discard(t.session, &t.err));
        else if (way == 1)
            OK(&t, brc_reset(t.repo, NULL, "HEAD", BRC_RESET_HARD, NULL, &t.err));
        else
            OK(&t, brc_draft_drop(t.repo, scenario_ask(&t, "SELECT id FROM draft WHERE state=1 AND"
                                                           " parent IS NULL"),
                                  &t.err));
        ck_assert_int_eq(saves_left(), 0);
        FAILS(&t, BRC_ENOTFOUND, brc_savepoint(t.session, BRC_SAVEPOINT_ROLLBACK, "x", &t.err));
        ck_assert_int_eq(sp_number(&t, "/a", 0), 0);
    }
}

TEST(a_session_that_is_closed_leaves_what_it_wrote)
{
    sp_save(&t, "x");
    scenario_set_number(&t, "/a", 0, 1);
    OK(&t, brc_node_remove(t.session, "/n", &t.err));
    brc_session_free(t.session);
    ck_assert_int_eq(saves_left(), 0);
    OK(&t, brc_session_open(&t.session, t.repo, NULL, BRC_SESSION_WRITE, &t.err));
    ck_assert_int_eq(sp_number(&t, "/a", 0), 1);
    ck_assert_int_eq(scenario_kind(&t, "/n"), 0);
    FAILS(&t, BRC_ENOTFOUND, brc_savepoint(t.session, BRC_SAVEPOINT_ROLLBACK, "x", &t.err));
}

/* Within a transaction that another holds it goes later. */
TEST(a_session_that_cannot_have_the_lock_ends_them_later)
{
    breccia *other;
    OK(&t, brc_reopen(&other, t.repo, &t.err));
    sp_save(&t, "x");
    scenario_set_number(&t, "/a", 0, 1);
    OK(&t, brc_begin(other, &t.err));
    brc_session_free(t.session);
    OK(&t, brc_end(other, 0, &t.err));
    brc_free(other);
    OK(&t, brc_session_open(&t.session, t.repo, NULL, BRC_SESSION_WRITE, &t.err));
    scenario_set_number(&t, "/a", 1, 2);
    ck_assert_int_eq(saves_left(), 0);
    sp_save(&t, "x");
    ck_assert_int_eq(sp_number(&t, "/a", 0), 1);
}

TEST(a_session_of_an_interrupted_handle_ends_them)
{
    sp_save(&t, "x");
    brc_interrupt(t.repo, 1);
    brc_session_free(t.session);
    brc_interrupt(t.repo, 0);
    OK(&t, brc_session_open(&t.session, t.repo, NULL, BRC_SESSION_WRITE, &t.err));
    ck_assert_int_eq(saves_left(), 0);
}

TEST(a_child_that_frees_the_session_leaves_them)
{
    int status;
    sp_save(&t, "x");
    scenario_set_number(&t, "/a", 0, 1);
    const pid_t child = fork();
    if (child == 0) {
        brc_session_free(t.session);
        brc_free(t.repo);
        _exit(0);
    }
    ck_assert_int_eq(waitpid(child, &status, 0), child);
    ck_assert(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    ck_assert_int_eq(saves_left(), 1);
    sp_back(&t, "x");
    ck_assert_int_eq(sp_number(&t, "/a", 0), 70);
}

/* To a session with changes, or to one without. */
LOOP(handed_over_changes_have_none, 0, 2)
{
    brc_session *to = t.session;
    if (_i)
        scenario_commit(&t, "second");
    OK(&t, brc_session_open(&t.session, t.repo, NULL, BRC_SESSION_PRIVATE, &t.err));
    scenario_set_number(&t, "/g/b", 0, 1);
    sp_save(&t, "x");
    scenario_set_number(&t, "/g/b", 0, 2);
    scenario_set_number(&t, "/g/b", 1, 3);
    OK(&t, brc_session_hand_over(t.session, to, &t.err));
    ck_assert_int_eq(saves_left(), 0);
    FAILS(&t, BRC_ENOTFOUND, brc_savepoint(t.session, BRC_SAVEPOINT_ROLLBACK, "x", &t.err));
    brc_session_free(t.session);
    t.session = to;
    ck_assert_int_eq(sp_number(&t, "/g/b", 0), 2);
    ck_assert_int_eq(sp_number(&t, "/g/b", 1), 3);
    ck_assert_int_eq(sp_number(&t, "/a", 0), 70);
}

TEST(what_is_handed_over_within_a_savepoint_goes_with_it)
{
    brc_session *to, *from;
    scenario_commit(&t, "second");
    sp_make_private(&t);
    to = t.session;
    sp_save(&t, "x");
    OK(&t, brc_session_open(&from, t.repo, NULL, BRC_SESSION_PRIVATE, &t.err));
    t.session = from;
    scenario_set_number(&t, "/g/b", 0, 2);
    t.session = to;
    OK(&t, brc_session_hand_over(from, to, &t.err));
    ck_assert_int_eq(sp_number(&t, "/g/b", 0), 2);
    sp_back(&t, "x");
    ck_assert_int_eq(sp_number(&t, "/g/b", 0), 100);
    brc_session_free(from);
}

/* ---- others -------------------------------- */

TEST(a_rollback_loses_nothing_of_others)
{
    breccia *repo;
    OK(&t, brc_reopen(&repo, t.repo, &t.err));
    brc_session *other = scenario_session(&t, repo, NULL, BRC_SESSION_WRITE);
    sp_save(&t, "x");
    scenario_set_number(&t, "/a", 0, 1);
    ck_assert_int_eq(scenario_number(&t, other, "/a", 0), 1);
    FAILS(&t, BRC_EBUSY, brc_savepoint(other, BRC_SAVEPOINT_SET, "x", &t.err));
    sp_back(&t, "x"); /* that changed nothing */
    scenario_set_number(&t, "/a", 0, 1);
    OK(&t, brc_attrs_set(other, "/g", "unit", "1", &t.err));
    FAILS(&t, BRC_ECONFLICT, brc_savepoint(t.session, BRC_SAVEPOINT_ROLLBACK, "x", &t.err));
    ck_assert_int_eq(sp_number(&t, "/a", 0), 1);
    sp_save(&t, "y"); /* the changes before it do not matter */
    scenario_set_number(&t, "/a", 0, 2);
    sp_back(&t, "y");
    ck_assert_int_eq(sp_number(&t, "/a", 0), 1);
    sp_release(&t, "x");
    OK(&t, brc_savepoint(other, BRC_SAVEPOINT_SET, "x", &t.err));
    brc_session_free(other);
    brc_free(repo);
}

TEST(others_may_commit_what_is_shared)
{
    brc_session *other = scenario_session(&t, t.repo, NULL, BRC_SESSION_WRITE);
    sp_save(&t, "x");
    scenario_set_number(&t, "/a", 0, 1);
    OK(&t, scenario_commit_of(&t, other, "theirs", NULL));
    FAILS(&t, BRC_ENOTFOUND, brc_savepoint(t.session, BRC_SAVEPOINT_ROLLBACK, "x", &t.err));
    ck_assert_int_eq(sp_number(&t, "/a", 0), 1);
    ck_assert_int_eq(saves_left(), 0);
    brc_session_free(other);
}

static void die_with_savepoints(int private)
{
    breccia *repo;
    brc_session *s;
    if (brc_open(&repo, t.file, NULL, &t.err) < 0 ||
        brc_session_open(&s, repo, NULL, private ? BRC_SESSION_PRIVATE : BRC_SESSION_WRITE,
                         &t.err) < 0 ||
        brc_attrs_set(s, "/g", "one", "1", &t.err) < 0 || brc_savepoint(s, BRC_SAVEPOINT_SET, "x",
                                                                        &t.err) < 0 ||
        brc_attrs_set(s, "/g", "two", "2", &t.err) < 0 || brc_savepoint(s, BRC_SAVEPOINT_SET, "y",
                                                                        &t.err) < 0 ||
        brc_node_remove(s, "/g/b", &t.err) < 0)
        _exit(1);
    kill(getpid(), SIGKILL);
}

LOOP(a_dead_process_leaves_what_it_wrote, 0, 2)
{
    int status;
    char said[64];
    scenario_close(&t);
    const pid_t child = fork();
    if (child == 0)
        die_with_savepoints(_i);
    ck_assert_int_eq(waitpid(child, &status, 0), child);
    ck_assert(WIFSIGNALED(status));
    scenario_open(&t, NULL, 0);
    ck_assert_int_eq(saves_left(), 2);
    scenario_whole(&t);
    if (_i) {
        const int64_t draft = scenario_ask(&t, "SELECT max(id) FROM draft WHERE parent IS NULL");
        brc_session_free(t.session);
        OK(&t, brc_draft_adopt(t.repo, draft, &t.err));
        OK(&t, brc_session_open(&t.session, t.repo, NULL, BRC_SESSION_WRITE, &t.err));
    }
    snprintf(said, sizeof(said), "%d %d", scenario_kind(&t, "/g/b"), scenario_kind(&t, "/g"));
    ck_assert_str_eq(said, "0 1");
    brc_buf two = BRC_BUF_INIT;
    OK(&t, brc_attrs_get(&two, t.session, "/g", "two", &t.err));
    brc_buf_dispose(&two);
    ck_assert_int_eq(sp_number(&t, "/a", 0), 70);
    sp_save(&t, "x"); /* those of the dead are over */
    ck_assert_int_eq(saves_left(), 1);
    scenario_set_number(&t, "/a", 0, 1);
    sp_back(&t, "x");
    ck_assert_int_eq(sp_number(&t, "/a", 0), 70);
}

TEST(a_collection_keeps_what_a_savepoint_needs)
{
    brc_gc_opts opts = BRC_GC_OPTS_INIT;
    uint8_t byte = 9;
    brc_buf value = BRC_BUF_INIT;
    opts.flags = BRC_GC_EXPUNGE;
    scenario_no_window(&t);
    OK(&t, brc_key_set(t.session, "loose", &byte, 1, 0, &t.err));
    OK(&t, brc_attrs_set(t.session, "/n", "unit", "\"m\"", &t.err));
    sp_save(&t, "x");
    OK(&t, brc_node_remove(t.session, "/n", &t.err));
    OK(&t, brc_key_delete(t.session, "loose", 0, &t.err));
    scenario_set_number(&t, "/a", 0, 1);
    OK(&t, brc_gc(t.repo, &opts, NULL, &t.err));
    scenario_whole(&t);
    sp_back(&t, "x");
    ck_assert_int_eq(sp_number(&t, "/n", 3), 203);
    ck_assert_int_eq(sp_number(&t, "/a", 0), 70);
    OK(&t, brc_key_get(&value, t.session, "loose", NULL, NULL, &t.err));
    brc_buf_dispose(&value);
    OK(&t, brc_key_delete(t.session, "loose", 0, &t.err));
}

static void change_elsewhere(scenario *s)
{
    scenario_set_number(s, "/g/b", 1, 5);
}

/* The branch was elsewhere when the savepoint was made, at a commit that nothing else names. */
TEST(a_collection_keeps_where_a_savepoint_was_made)
{
    brc_gc_opts opts = BRC_GC_OPTS_INIT;
    opts.flags = BRC_GC_EXPUNGE;
    scenario_no_window(&t);
    OK(&t, brc_ref_create(t.repo, "side", NULL, NULL, 0, &t.err));
    scenario_elsewhere(&t, "side", change_elsewhere);
    OK(&t, brc_reset(t.repo, NULL, "side", 0, NULL, &t.err));
    sp_save(&t, "x");
    OK(&t, brc_reset(t.repo, NULL, "HEAD~1", 0, NULL, &t.err));
    OK(&t, brc_ref_delete(t.repo, "side", BRC_DELETE_FORCE, &t.err));
    OK(&t, brc_gc(t.repo, &opts, NULL, &t.err));
    scenario_whole(&t);
    sp_back(&t, "x");
    ck_assert_int_eq(sp_number(&t, "/n", 3), 203);
    ck_assert_int_eq(sp_number(&t, "/a", 0), 70);
}

LOOP(a_collection_drops_what_dead_processes_left, 0, 2)
{
    int status;
    scenario_close(&t);
    const pid_t child = fork();
    if (child == 0)
        die_with_savepoints(_i);
    ck_assert_int_eq(waitpid(child, &status, 0), child);
    scenario_open(&t, NULL, 0);
    OK(&t, brc_gc(t.repo, NULL, NULL, &t.err));
    ck_assert_int_eq(saves_left(), 0);
    ck_assert_int_eq(scenario_kind(&t, "/g/b"), _i ? BRC_ARRAY : 0);
    ck_assert_int_eq(sp_number(&t, "/a", 0), 70);
}

#define SUM_OF_NODE "checksum=row_sum('draft_node', node, draft, path, below, level, entry)"
#define SUM_OF_DRAFT \
    "checksum=row_sum('draft', id, kind, state, branch, base, tip, other, plan, owner, parent," \
    " time_us, changes, parts)"

TEST(what_savepoints_cannot_be_is_a_fault)
{
    static const char *const edits[][3] = {
        {"UPDATE draft_node SET level=0 WHERE path='/a' AND level>0", SUM_OF_NODE, "draft_node"},
        {"UPDATE draft_node SET level=99 WHERE path='/a' AND level=0", SUM_OF_NODE, "draft_node"},
        {"UPDATE draft_node SET below=7777 WHERE path='/a' AND level=0", SUM_OF_NODE, "draft_node"},
        {"UPDATE draft_node SET entry=x'' WHERE path='/a' AND level=0", SUM_OF_NODE, "draft_node"},
        {"UPDATE draft SET parts=parts&7", SUM_OF_DRAFT, "draft"},
        {"UPDATE draft SET parent=id WHERE parent IS NOT NULL", SUM_OF_DRAFT, "draft"},
        {"UPDATE draft SET parent=2 WHERE parent IS NULL", SUM_OF_DRAFT, "draft"},
    };
    uint64_t checked;
    for (size_t i = 0; i < sizeof(edits) / sizeof(edits[0]); i++) {
        char sql[512];
        int faults = 0;
        sp_save(&t, "x");
        scenario_set_number(&t, "/a", 0, (int32_t)i);
        OK(&t, brc_fsck(t.repo, 0, fsck_counts, NULL, &faults, &checked, &t.err));
        ck_assert_int_eq(faults, 0);
        snprintf(sql, sizeof(sql), "%s; UPDATE %s SET %s", edits[i][0], edits[i][2], edits[i][1]);
        scenario_sql(&t, sql);
        OK(&t, brc_fsck(t.repo, 0, fsck_counts, NULL, &faults, &checked, &t.err));
        ck_assert_msg(faults > 0, "nothing is found after %s", sql);
        brc_session_free(t.session);
        scenario_sql(&t, "DELETE FROM draft; DELETE FROM draft_node; DELETE FROM draft_chunk;"
                         "DELETE FROM draft_doc; DELETE FROM draft_move");
        OK(&t, brc_session_open(&t.session, t.repo, NULL, BRC_SESSION_WRITE, &t.err));
        scenario_set_number(&t, "/a", 0, 70);
    }
}

TEST(drafts_do_not_list_them)
{
    brc_iter *it;
    const brc_draft *draft;
    int n = 0;
    sp_save(&t, "x");
    scenario_set_number(&t, "/a", 0, 1);
    OK(&t, brc_drafts(&it, t.repo, &t.err));
    while (brc_next(it, &draft, &t.err) > 0)
        n++;
    brc_iter_free(it);
    ck_assert_int_eq(n, 1);
    const int64_t id = scenario_ask(&t, "SELECT id FROM draft WHERE parent IS NOT NULL");
    FAILS(&t, BRC_ENOTFOUND, brc_draft_drop(t.repo, id, &t.err));
    FAILS(&t, BRC_ENOTFOUND, brc_draft_adopt(t.repo, id, &t.err));
}

TEST(a_branch_that_goes_with_savepoints_keeps_its_changes)
{
    OK(&t, brc_ref_create(t.repo, "side", NULL, NULL, 0, &t.err));
    brc_session_free(t.session);
    OK(&t, brc_session_open(&t.session, t.repo, "side", BRC_SESSION_WRITE, &t.err));
    scenario_set_number(&t, "/a", 0, 5);
    sp_save(&t, "x");
    scenario_set_number(&t, "/a", 1, 6);
    OK(&t, brc_ref_rename(t.repo, "side", "other", 0, &t.err));
    scenario_whole(&t);
    brc_session_free(t.session);
    OK(&t, brc_session_open(&t.session, t.repo, "other", BRC_SESSION_WRITE, &t.err));
    sp_save(&t, "y");
    OK(&t, brc_ref_delete(t.repo, "other", BRC_DELETE_FORCE, &t.err));
    ck_assert_int_eq(saves_left(), 0);
    scenario_whole(&t);
    OK(&t, brc_undo(NULL, t.repo, 0, 0, &t.err));
    ck_assert_int_eq(sp_number(&t, "/a", 0), 5);
    ck_assert_int_eq(sp_number(&t, "/a", 1), 6);
}
