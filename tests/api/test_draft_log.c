/* The log of uncommitted changes: what undo takes back, and when there is nothing to take back. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../kit/scenario.h"
#include "../kit/suite.h"
#include "../kit/versions.h"

TEST_SUITE(draft_log);

SCENARIO_NUMBERS_FIXTURE(t, 16, 4)

CASE("log", .setup = t_numbers, .teardown = t_stop, .timeout = 60);

static void log_as(brc_session *s, const char *text)
{
    OK(&t, brc_session_log(s, text, &t.err));
}

/* Puts a number into /a, as an operation of that name. */
static void put_as(brc_session *s, const char *text, uint64_t i, int32_t value)
{
    log_as(s, text);
    scenario_put(&t, s, "/a", i, value);
}

/* The texts of the log, the newest first; what was taken back is in brackets. */
static const char *log_text(breccia *repo)
{
    static char out[1024];
    const brc_draft_op *op;
    brc_iter *it;
    int rc;
    size_t at = 0;
    out[0] = '\0';
    OK(&t, brc_draft_log(&it, repo, &t.err));
    while ((rc = brc_next(it, &op, &t.err)) > 0)
        at += (size_t)snprintf(out + at, sizeof(out) - at,
                               op->flags & BRC_DRAFT_OP_UNDONE ? "[%s] " : "%s ", op->text);
    ck_assert_msg(rc == 0, "%s", t.err.message);
    brc_iter_free(it);
    return out;
}

static int64_t undo_of(breccia *repo, uint32_t flags)
{
    int64_t operation;
    OK(&t, brc_undo(&operation, repo, flags, 0, &t.err));
    return operation;
}

static int32_t number(uint64_t i)
{
    return scenario_number(&t, t.session, "/a", i);
}

TEST(an_operation_is_taken_back_as_a_whole)
{
    log_as(t.session, "one");
    scenario_set_number(&t, "/a", 0, 70);
    scenario_set_number(&t, "/a", 9, 79);
    OK(&t, brc_node_move(t.session, "/a", "/b", BRC_NODE_COPY, &t.err));
    put_as(t.session, "two", 0, 71);
    ck_assert_str_eq(log_text(t.repo), "two one ");
    ck_assert_int_lt(undo_of(t.repo, 0), 0);
    ck_assert_int_eq(number(0), 70);
    ck_assert_int_lt(undo_of(t.repo, 0), 0);
    ck_assert_int_eq(number(0), 0);
    ck_assert_int_eq(number(9), 9);
    ck_assert_int_eq(scenario_kind(&t, "/b"), 0);
    ck_assert(scenario_clean(&t));
    ck_assert_str_eq(log_text(t.repo), "[two] [one] ");
    undo_of(t.repo, BRC_UNDO_REDO);
    undo_of(t.repo, BRC_UNDO_REDO);
    ck_assert_int_eq(number(0), 71);
    ck_assert_int_eq(number(9), 79);
    FAILS(&t, BRC_EMISUSE, brc_undo(NULL, t.repo, BRC_UNDO_REDO, 0, &t.err));
}

TEST(without_a_log_nothing_is_kept)
{
    scenario_set_number(&t, "/a", 0, 70);
    ck_assert_int_eq(scenario_ask(&t, "SELECT count(*) FROM draft"), 1);
    ck_assert_int_gt(undo_of(t.repo, BRC_UNDO_DRY_RUN), 0);
    FAILS(&t, BRC_EINVAL, brc_session_log(t.session, "", &t.err));
    brc_session *s = scenario_session(&t, t.repo, NULL, BRC_SESSION_PRIVATE);
    FAILS(&t, BRC_EMISUSE, brc_session_log(s, "x", &t.err));
    brc_session_free(s);
}

TEST(a_change_that_is_not_logged_ends_the_log)
{
    put_as(t.session, "one", 0, 70);
    log_as(t.session, NULL);
    scenario_set_number(&t, "/a", 1, 71);
    ck_assert_str_eq(log_text(t.repo), "");
    ck_assert_int_gt(undo_of(t.repo, BRC_UNDO_DRY_RUN), 0);
    ck_assert_int_eq(number(0), 70);
    ck_assert_int_eq(scenario_ask(&t, "SELECT parts&24 FROM draft"), 0);
}

TEST(a_commit_and_a_discard_end_the_log)
{
    put_as(t.session, "one", 0, 70);
    scenario_commit(&t, "second");
    ck_assert_str_eq(log_text(t.repo), "");
    put_as(t.session, "two", 0, 71);
    OK(&t, brc_session_discard(t.session, &t.err));
    ck_assert_str_eq(log_text(t.repo), "");
    ck_assert_int_gt(undo_of(t.repo, 0), 0);
    ck_assert_int_eq(number(0), 0);
}

TEST(the_last_eight_operations_are_kept)
{
    char text[16];
    for (int i = 0; i < 21; i++) {
        snprintf(text, sizeof(text), "%d", i);
        put_as(t.session, text, (uint64_t)(i % 3), 100 + i);
        if (i % 5 == 0)
            scenario_whole(&t);
    }
    ck_assert_str_eq(log_text(t.repo), "20 19 18 17 16 ");
    for (int i = 20; i >= 16; i--) {
        undo_of(t.repo, 0);
        ck_assert_int_eq(number((uint64_t)(i % 3)), 100 + i - 3);
        scenario_whole(&t);
    }
    ck_assert_int_gt(undo_of(t.repo, BRC_UNDO_DRY_RUN), 0);
}

TEST(an_operation_without_a_change_is_passed_over)
{
    put_as(t.session, "one", 0, 70);
    log_as(t.session, "two");
    OK(&t, brc_begin(t.repo, &t.err));
    scenario_set_number(&t, "/a", 0, 71);
    OK(&t, brc_end(t.repo, 0, &t.err));
    log_as(t.session, "three");
    FAILS(&t, BRC_ENOTFOUND, brc_node_remove(t.session, "/none", &t.err));
    undo_of(t.repo, 0);
    ck_assert_int_eq(number(0), 0);
}

TEST(what_two_sessions_change_is_taken_back_in_order)
{
    breccia *other = scenario_handle(&t, 1000);
    brc_session *s = scenario_session(&t, other, NULL, BRC_SESSION_WRITE);
    log_as(t.session, "mine");
    log_as(s, "theirs");
    scenario_put(&t, t.session, "/a", 0, 70);
    scenario_put(&t, s, "/a", 0, 71);
    scenario_put(&t, s, "/a", 1, 72);
    ck_assert_str_eq(log_text(t.repo), "theirs mine ");
    scenario_put(&t, t.session, "/a", 1, 73);
    ck_assert_str_eq(log_text(other), "mine theirs mine ");
    undo_of(other, 0);
    ck_assert_int_eq(number(1), 72);
    undo_of(t.repo, 0);
    ck_assert_int_eq(scenario_number(&t, s, "/a", 1), 1);
    ck_assert_int_eq(scenario_number(&t, s, "/a", 0), 70);
    scenario_put(&t, s, "/a", 0, 74); /* ends what can be done again */
    ck_assert_str_eq(log_text(other), "theirs mine ");
    FAILS(&t, BRC_EMISUSE, brc_undo(NULL, t.repo, BRC_UNDO_REDO, 0, &t.err));
    brc_session_free(s);
    brc_free(other);
}

TEST(the_latest_operation_of_any_branch_goes_back_first)
{
    OK(&t, brc_ref_create(t.repo, "side", NULL, NULL, 0, &t.err));
    brc_session *side = scenario_session(&t, t.repo, "side", BRC_SESSION_WRITE);
    put_as(t.session, "main", 0, 70);
    put_as(side, "side", 0, 71);
    OK(&t, brc_ref_create(t.repo, "v1", NULL, NULL, BRC_REF_TAG, &t.err));
    put_as(t.session, "more", 0, 72);
    undo_of(t.repo, 0);
    ck_assert_int_eq(number(0), 70);
    ck_assert_int_gt(undo_of(t.repo, 0), 0); /* the tag */
    undo_of(t.repo, 0);
    ck_assert_int_eq(scenario_number(&t, side, "/a", 0), 0);
    ck_assert_int_eq(number(0), 70);
    undo_of(t.repo, BRC_UNDO_REDO);
    ck_assert_int_eq(scenario_number(&t, side, "/a", 0), 71);
    ck_assert_int_gt(undo_of(t.repo, BRC_UNDO_REDO), 0);
    undo_of(t.repo, BRC_UNDO_REDO);
    ck_assert_int_eq(number(0), 72);
    brc_session_free(side);
}

TEST(savepoints_and_the_log_go_together)
{
    put_as(t.session, "one", 0, 70);
    OK(&t, brc_savepoint(t.session, BRC_SAVEPOINT_SET, "x", &t.err));
    put_as(t.session, "two", 0, 71);
    put_as(t.session, "three", 1, 72);
    FAILS(&t, BRC_EBUSY, brc_undo(NULL, t.repo, 0, 0, &t.err));
    OK(&t, brc_savepoint(t.session, BRC_SAVEPOINT_ROLLBACK, "x", &t.err));
    ck_assert_int_eq(number(0), 70);
    ck_assert_str_eq(log_text(t.repo), "one ");
    scenario_set_number(&t, "/a", 0, 73);
    OK(&t, brc_savepoint(t.session, BRC_SAVEPOINT_RELEASE, "x", &t.err));
    scenario_whole(&t);
    ck_assert_str_eq(log_text(t.repo), "three one ");
    undo_of(t.repo, 0);
    ck_assert_int_eq(number(0), 70);
    undo_of(t.repo, 0);
    ck_assert(scenario_clean(&t));
}

TEST(sixteen_savepoints_have_room)
{
    char name[16];
    for (int i = 0; i < 8; i++) {
        snprintf(name, sizeof(name), "%d", i);
        put_as(t.session, name, 0, 70 + i);
    }
    log_as(t.session, NULL);
    put_as(t.session, "more", 0, 90);
    for (int i = 0; i < 16; i++) {
        OK(&t, brc_savepoint(t.session, BRC_SAVEPOINT_SET, "x", &t.err));
        put_as(t.session, "more", 0, 100 + i);
    }
    FAILS(&t, BRC_ELIMIT, brc_savepoint(t.session, BRC_SAVEPOINT_SET, "x", &t.err));
    OK(&t, brc_savepoint(t.session, BRC_SAVEPOINT_ROLLBACK, "x", &t.err));
    ck_assert_int_eq(number(0), 114);
}

TEST(a_collection_forgets_what_is_old)
{
    const brc_gc_opts opts = {.size = sizeof(opts), .keep = "0", .flags = BRC_GC_EXPUNGE};
    put_as(t.session, "one", 0, 70);
    put_as(t.session, "two", 0, 71);
    undo_of(t.repo, 0);
    scenario_collect(&t, 0);
    ck_assert_str_eq(log_text(t.repo), "[two] one ");
    OK(&t, brc_gc(t.repo, &opts, NULL, &t.err));
    ck_assert_str_eq(log_text(t.repo), "");
    ck_assert_int_eq(number(0), 70);
    ck_assert_int_eq(scenario_ask(&t, "SELECT count(*) FROM draft"), 1);
}

static int logged_write(breccia *repo)
{
    brc_error err = BRC_ERROR_INIT;
    brc_session *s;
    brc_array *a;
    const int32_t value = 71;
    brc_sel sel = BRC_SEL_INIT;
    sel.ndim = 1;
    sel.start[0] = 0;
    sel.count[0] = 1;
    sel.step[0] = 1;
    int rc = brc_session_open(&s, repo, NULL, BRC_SESSION_WRITE, &err);
    if (rc == BRC_OK)
        rc = brc_session_log(s, "killed", &err);
    if (rc == BRC_OK)
        rc = brc_array_open(&a, s, "/a", &err);
    return rc < 0 ? rc : brc_array_write(a, &sel, &value, sizeof(value), &err);
}

TEST(what_a_killed_process_has_logged_is_taken_back)
{
    put_as(t.session, "one", 0, 70);
    scenario_in_killed_child(&t, logged_write);
    ck_assert_int_eq(number(0), 71);
    ck_assert_str_eq(log_text(t.repo), "killed one ");
    undo_of(t.repo, 0);
    ck_assert_int_eq(number(0), 70);
}

/* Operations that were taken back wait for their commit, through any number of undos and redos. */
TEST(operations_are_done_again_after_their_commit_came_back)
{
    put_as(t.session, "one", 0, 70);
    scenario_commit(&t, "second");
    put_as(t.session, "two", 0, 71);
    put_as(t.session, "three", 1, 72);
    for (int i = 0; i < 4; i++)
        undo_of(t.repo, 0);
    ck_assert_str_eq(log_text(t.repo), "[three] [two] ");
    for (int i = 0; i < 2; i++)
        undo_of(t.repo, BRC_UNDO_REDO);
    ck_assert(scenario_clean(&t));
    ck_assert_int_eq(number(0), 70);
    undo_of(t.repo, BRC_UNDO_REDO);
    ck_assert_int_eq(number(0), 71);
    undo_of(t.repo, BRC_UNDO_REDO);
    ck_assert_int_eq(number(1), 72);
    ck_assert_str_eq(log_text(t.repo), "three two ");
}

/* After rm and restore a draft has a row, but shows what its commit has. */
TEST(a_draft_that_is_clean_goes_when_its_commit_is_taken_back)
{
    OK(&t, brc_node_remove(t.session, "/a", &t.err));
    OK(&t, brc_node_restore(t.session, "/a", NULL, &t.err));
    ck_assert(scenario_clean(&t));
    ck_assert_int_gt(undo_of(t.repo, 0), 0);
    ck_assert_int_eq(scenario_ask(&t, "SELECT count(*) FROM draft WHERE state=1"), 0);
}
