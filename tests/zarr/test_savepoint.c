/* Savepoints of a session: what they bring back, when they end, and who else is at work. */
#include <check.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../../src/base/buf.h"
#include "../kit/scenario.h"

Suite *savepoint_suite(void);

static scenario t;

/* /a has 8 numbers in chunks of 2, /g/b as many, both committed; /n and one of /a are not. */
static void savepoint_setup(void)
{
    scenario_start(&t);
    scenario_numbers(&t, "/a", 8, 2, 0);
    OK(&t, brc_group_create(t.session, "/g", NULL, &t.err));
    scenario_numbers(&t, "/g/b", 8, 2, 100);
    scenario_commit(&t, "first");
    scenario_numbers(&t, "/n", 8, 2, 200);
    scenario_set_number(&t, "/a", 0, 70);
}

static void savepoint_teardown(void)
{
    scenario_whole(&t);
    scenario_stop(&t);
}

static int32_t number(const char *path, uint64_t i)
{
    return scenario_number(&t, t.session, path, i);
}

static void set(const char *path, uint64_t i, int32_t value)
{
    scenario_set_number(&t, path, i, value);
}

static void save(const char *name)
{
    OK(&t, brc_savepoint(t.session, name, &t.err));
}

static void back(const char *name)
{
    OK(&t, brc_savepoint_rollback(t.session, name, &t.err));
}

static void release(const char *name)
{
    OK(&t, brc_savepoint_release(t.session, name, &t.err));
}

static int kind(const char *path)
{
    int is;
    OK(&t, brc_node_kind(&is, t.session, path, &t.err));
    return is;
}

static int64_t saves_left(void)
{
    return scenario_ask(&t, "SELECT count(*) FROM draft WHERE parent IS NOT NULL AND state=1");
}

static void make_private(void)
{
    brc_session_free(t.session);
    OK(&t, brc_session_open(&t.session, t.repo, NULL, BRC_SESSION_PRIVATE, &t.err));
}

/* ---- what comes back -------------------------------- */

START_TEST(a_rollback_brings_back_what_there_was)
{
    save("x");
    set("/a", 0, 71);
    set("/a", 7, 77);
    set("/n", 1, 0);
    set("/g/b", 1, 1);
    OK(&t, brc_attrs_set(t.session, "/n", "unit", "\"m\"", &t.err));
    OK(&t, brc_node_remove(t.session, "/g", &t.err));
    OK(&t, brc_node_move(t.session, "/n", "/m", &t.err));
    scenario_numbers(&t, "/n", 2, 1, 5);
    back("x");
    ck_assert_int_eq(number("/a", 0), 70);
    ck_assert_int_eq(number("/a", 7), 7);
    ck_assert_int_eq(number("/n", 1), 201);
    ck_assert_int_eq(number("/g/b", 1), 101);
    ck_assert_int_eq(kind("/m"), 0);
    scenario_commit(&t, "second");
    ck_assert_int_eq(number("/a", 0), 70);
    ck_assert_int_eq(number("/n", 7), 207);
}
END_TEST

START_TEST(a_released_savepoint_leaves_what_was_written)
{
    save("x");
    set("/a", 0, 71);
    OK(&t, brc_node_remove(t.session, "/n", &t.err));
    release("x");
    ck_assert_int_eq(saves_left(), 0);
    ck_assert_int_eq(number("/a", 0), 71);
    ck_assert_int_eq(kind("/n"), 0);
    FAILS(&t, BRC_ENOTFOUND, brc_savepoint_rollback(t.session, "x", &t.err));
    FAILS(&t, BRC_ENOTFOUND, brc_savepoint_release(t.session, NULL, &t.err));
}
END_TEST

START_TEST(a_savepoint_stays_open_when_it_was_rolled_back_to)
{
    save("x");
    for (int i = 0; i < 3; i++) {
        set("/a", 0, 90 + i);
        set("/a", 2, 90 + i);
        back("x");
        ck_assert_int_eq(number("/a", 0), 70);
        ck_assert_int_eq(number("/a", 2), 2);
    }
    set("/a", 0, 99);
    release("x");
    ck_assert_int_eq(number("/a", 0), 99);
}
END_TEST

START_TEST(savepoints_nest_and_the_innermost_of_a_name_counts)
{
    save("x");
    set("/a", 0, 1);
    save("y");
    set("/a", 0, 2);
    save("x");
    set("/a", 0, 3);
    back("x");
    ck_assert_int_eq(number("/a", 0), 2);
    release("x");
    back("x"); /* the outer one; y ends */
    ck_assert_int_eq(number("/a", 0), 70);
    FAILS(&t, BRC_ENOTFOUND, brc_savepoint_rollback(t.session, "y", &t.err));
    save("y");
    set("/a", 0, 4);
    release("x"); /* and y in it */
    FAILS(&t, BRC_ENOTFOUND, brc_savepoint_release(t.session, NULL, &t.err));
    ck_assert_int_eq(number("/a", 0), 4);
}
END_TEST

START_TEST(what_an_inner_savepoint_knew_the_outer_one_knows_when_that_is_released)
{
    uint8_t byte = 7;
    brc_buf value = BRC_BUF_INIT;
    save("x");
    save("y");
    set("/n", 0, 1);
    set("/g/b", 0, 1);
    OK(&t, brc_node_move(t.session, "/a", "/c", &t.err));
    OK(&t, brc_key_set(t.session, "loose", &byte, 1, &t.err));
    release("y");
    save("z");
    OK(&t, brc_node_remove(t.session, "/c", &t.err));
    OK(&t, brc_node_remove(t.session, "/n", &t.err));
    release("z");
    back("x");
    ck_assert_int_eq(number("/a", 0), 70);
    ck_assert_int_eq(number("/n", 0), 200);
    ck_assert_int_eq(number("/g/b", 0), 100);
    ck_assert_int_eq(kind("/c"), 0);
    FAILS(&t, BRC_ENOTFOUND, brc_key_get(&value, t.session, "loose", &t.err));
    brc_oid id = scenario_commit(&t, "second");
    brc_commit *c;
    OK(&t, brc_commit_read(&c, t.repo, &id, &t.err));
    ck_assert_uint_eq(c->nparents, 1);
    brc_commit_free(c);
    brc_buf_dispose(&value);
}
END_TEST

START_TEST(moves_are_forgotten_with_what_moved)
{
    brc_iter *it;
    const brc_change *change;
    save("x");
    OK(&t, brc_node_move(t.session, "/g/b", "/b", &t.err));
    back(NULL);
    scenario_commit(&t, "second");
    OK(&t, brc_diff(&it, t.repo, "HEAD~1", "HEAD", NULL, &t.err));
    while (brc_diff_next(it, &change, &t.err) > 0)
        ck_assert_ptr_null(strstr(change->path, "b"));
    brc_iter_free(it);
}
END_TEST

START_TEST(open_arrays_go_on_as_the_array_is_then)
{
    brc_array *a, *made;
    int32_t v[8];
    uint64_t longer = 20, shape = 4;
    brc_array_spec spec = BRC_ARRAY_SPEC_INIT;
    OK(&t, brc_array_open(&a, t.session, "/a", &t.err));
    save("x");
    OK(&t, brc_array_resize(a, &longer, &t.err));
    OK(&t, brc_array_set_codecs(a, "[{\"name\":\"bytes\",\"configuration\":{\"endian\":\"big\"}}]",
                                1, &t.err));
    spec.dtype = "int32";
    spec.ndim = 1;
    spec.shape = &shape;
    OK(&t, brc_array_create(&made, t.session, "/made", &spec, &t.err));
    back("x");
    OK(&t, brc_array_read(a, NULL, v, sizeof(v), &t.err));
    ck_assert_int_eq(v[0], 70);
    ck_assert_int_eq(v[7], 7);
    ck_assert_uint_eq(brc_array_describe(a)->shape[0], 8);
    ck_assert_ptr_nonnull(strstr(brc_array_describe(a)->codecs_json, "blosc"));
    FAILS(&t, BRC_ENOTFOUND, brc_array_write(made, NULL, v, 16, &t.err));
    v[1] = 11;
    OK(&t, brc_array_write(a, NULL, v, sizeof(v), &t.err));
    back("x");
    ck_assert_int_eq(number("/a", 1), 1);
    brc_array_free(made);
    brc_array_free(a);
}
END_TEST

START_TEST(a_draft_that_began_with_the_savepoint_is_empty_again)
{
    int clean;
    scenario_commit(&t, "second");
    for (int private = 0; private < 2; private++) {
        if (private)
            make_private();
        save("x");
        set("/a", 0, 5);
        back("x");
        OK(&t, brc_session_clean(&clean, t.session, &t.err));
        ck_assert_int_eq(clean, 1);
        release(NULL);
    }
}
END_TEST

/* Somebody else commits: a private session without a change would follow, but for the savepoint. */
START_TEST(a_session_with_a_savepoint_stays_at_its_commit)
{
    brc_session *other;
    scenario_commit(&t, "second");
    make_private();
    save("x");
    OK(&t, brc_session_open(&other, t.repo, NULL, BRC_SESSION_WRITE, &t.err));
    OK(&t, brc_node_remove(other, "/g", &t.err));
    brc_commit_opts opts = BRC_COMMIT_OPTS_INIT;
    brc_oid id;
    opts.message = "third";
    OK(&t, brc_session_commit(&id, other, &opts, &t.err));
    brc_session_free(other);
    ck_assert_int_eq(number("/g/b", 0), 100);
    set("/a", 0, 5);
    back("x");
    ck_assert_int_eq(number("/g/b", 0), 100);
    release("x");
    ck_assert_int_eq(kind("/g"), 0);
}
END_TEST

/* ---- transactions and bulk writes -------------------------------- */

START_TEST(savepoints_within_a_transaction_go_with_it)
{
    save("x");
    set("/a", 0, 1);
    OK(&t, brc_begin(t.repo, &t.err));
    save("y");
    set("/a", 0, 2);
    back("y");
    ck_assert_int_eq(number("/a", 0), 1);
    release("x");
    OK(&t, brc_end(t.repo, 0, &t.err));
    ck_assert_int_eq(number("/a", 0), 1);
    FAILS(&t, BRC_ENOTFOUND, brc_savepoint_rollback(t.session, "y", &t.err));
    back("x");
    ck_assert_int_eq(number("/a", 0), 70);
}
END_TEST

START_TEST(a_transaction_may_begin_and_end_between)
{
    OK(&t, brc_begin(t.repo, &t.err));
    save("x");
    set("/a", 0, 1);
    OK(&t, brc_end(t.repo, BRC_END_KEEP, &t.err));
    set("/a", 1, 2);
    OK(&t, brc_begin(t.repo, &t.err));
    back("x");
    set("/a", 2, 3);
    OK(&t, brc_end(t.repo, BRC_END_KEEP, &t.err));
    ck_assert_int_eq(number("/a", 0), 70);
    ck_assert_int_eq(number("/a", 1), 1);
    ck_assert_int_eq(number("/a", 2), 3);
}
END_TEST

START_TEST(a_bulk_write_is_taken_back_and_takes_no_savepoint)
{
    brc_array *a;
    save("x");
    OK(&t, brc_bulk_begin(t.session, &t.err));
    set("/a", 3, 33);
    set("/n", 3, 33);
    OK(&t, brc_array_open(&a, t.session, "/a", &t.err));
    OK(&t, brc_attrs_set(t.session, "/g", "unit", "1", &t.err));
    FAILS(&t, BRC_EMISUSE, brc_savepoint(t.session, "y", &t.err));
    FAILS(&t, BRC_EMISUSE, brc_savepoint_rollback(t.session, "x", &t.err));
    FAILS(&t, BRC_EMISUSE, brc_savepoint_release(t.session, "x", &t.err));
    OK(&t, brc_bulk_end(t.session, BRC_END_KEEP, &t.err));
    ck_assert_int_eq(number("/a", 3), 33);
    back("x");
    ck_assert_int_eq(number("/a", 3), 3);
    ck_assert_int_eq(number("/a", 0), 70);
    ck_assert_int_eq(number("/n", 3), 203);
    brc_array_free(a);
}
END_TEST

/* ---- the end of them -------------------------------- */

START_TEST(a_commit_ends_them)
{
    for (int private = 0; private < 2; private++) {
        if (private)
            make_private();
        set("/a", 0, 10 + private);
        save("x");
        set("/a", 1, 20 + private);
        scenario_commit(&t, "more");
        ck_assert_int_eq(saves_left(), 0);
        FAILS(&t, BRC_ENOTFOUND, brc_savepoint_rollback(t.session, "x", &t.err));
        ck_assert_int_eq(number("/a", 0), 10 + private);
        ck_assert_int_eq(number("/a", 1), 20 + private);
    }
}
END_TEST

START_TEST(a_commit_that_fails_does_not_end_them)
{
    brc_commit_opts opts = BRC_COMMIT_OPTS_INIT;
    brc_oid id;
    uint8_t byte = 1;
    save("x");
    set("/a", 0, 1);
    OK(&t, brc_key_set(t.session, "loose", &byte, 1, &t.err));
    opts.message = "more";
    FAILS(&t, BRC_ECONFLICT, brc_session_commit(&id, t.session, &opts, &t.err));
    back("x");
    ck_assert_int_eq(number("/a", 0), 70);
    OK(&t, brc_session_commit(&id, t.session, &opts, &t.err));
}
END_TEST

START_TEST(dropping_and_resetting_the_changes_ends_them)
{
    for (int way = 0; way < 3; way++) {
        set("/a", 0, 5);
        save("x");
        set("/a", 1, 6);
        if (way == 0)
            OK(&t, brc_session_discard(t.session, &t.err));
        else if (way == 1)
            OK(&t, brc_reset(t.repo, "HEAD", BRC_RESET_HARD, NULL, &t.err));
        else
            OK(&t, brc_draft_drop(t.repo, scenario_ask(&t, "SELECT id FROM draft WHERE state=1 AND"
                                                           " parent IS NULL"),
                                  &t.err));
        ck_assert_int_eq(saves_left(), 0);
        FAILS(&t, BRC_ENOTFOUND, brc_savepoint_rollback(t.session, "x", &t.err));
        ck_assert_int_eq(number("/a", 0), 0);
    }
}
END_TEST

START_TEST(a_session_that_is_closed_leaves_what_it_wrote)
{
    save("x");
    set("/a", 0, 1);
    OK(&t, brc_node_remove(t.session, "/n", &t.err));
    brc_session_free(t.session);
    ck_assert_int_eq(saves_left(), 0);
    OK(&t, brc_session_open(&t.session, t.repo, NULL, BRC_SESSION_WRITE, &t.err));
    ck_assert_int_eq(number("/a", 0), 1);
    ck_assert_int_eq(kind("/n"), 0);
    FAILS(&t, BRC_ENOTFOUND, brc_savepoint_rollback(t.session, "x", &t.err));
}
END_TEST

/* Within a transaction that another holds it goes later. */
START_TEST(a_session_that_cannot_have_the_lock_ends_them_later)
{
    breccia *other;
    OK(&t, brc_reopen(&other, t.repo, &t.err));
    save("x");
    set("/a", 0, 1);
    OK(&t, brc_begin(other, &t.err));
    brc_session_free(t.session);
    OK(&t, brc_end(other, 0, &t.err));
    brc_free(other);
    OK(&t, brc_session_open(&t.session, t.repo, NULL, BRC_SESSION_WRITE, &t.err));
    set("/a", 1, 2);
    ck_assert_int_eq(saves_left(), 0);
    save("x");
    ck_assert_int_eq(number("/a", 0), 1);
}
END_TEST

START_TEST(handed_over_changes_have_none)
{
    brc_session *to = t.session;
    OK(&t, brc_session_open(&t.session, t.repo, NULL, BRC_SESSION_PRIVATE, &t.err));
    set("/g/b", 0, 1);
    save("x");
    set("/g/b", 0, 2);
    set("/g/b", 1, 3);
    OK(&t, brc_session_hand_over(t.session, to, &t.err));
    ck_assert_int_eq(saves_left(), 0);
    FAILS(&t, BRC_ENOTFOUND, brc_savepoint_rollback(t.session, "x", &t.err));
    brc_session_free(t.session);
    t.session = to;
    ck_assert_int_eq(number("/g/b", 0), 2);
    ck_assert_int_eq(number("/g/b", 1), 3);
    ck_assert_int_eq(number("/a", 0), 70);
}
END_TEST

START_TEST(what_is_handed_over_within_a_savepoint_goes_with_it)
{
    brc_session *to, *from;
    scenario_commit(&t, "second");
    make_private();
    to = t.session;
    save("x");
    OK(&t, brc_session_open(&from, t.repo, NULL, BRC_SESSION_PRIVATE, &t.err));
    t.session = from;
    set("/g/b", 0, 2);
    t.session = to;
    OK(&t, brc_session_hand_over(from, to, &t.err));
    ck_assert_int_eq(number("/g/b", 0), 2);
    back("x");
    ck_assert_int_eq(number("/g/b", 0), 100);
    brc_session_free(from);
}
END_TEST

/* ---- others -------------------------------- */

START_TEST(a_rollback_loses_nothing_of_others)
{
    brc_session *other;
    breccia *repo;
    OK(&t, brc_reopen(&repo, t.repo, &t.err));
    OK(&t, brc_session_open(&other, repo, NULL, BRC_SESSION_WRITE, &t.err));
    save("x");
    set("/a", 0, 1);
    ck_assert_int_eq(scenario_number(&t, other, "/a", 0), 1);
    FAILS(&t, BRC_EBUSY, brc_savepoint(other, "x", &t.err));
    back("x"); /* that changed nothing */
    set("/a", 0, 1);
    OK(&t, brc_attrs_set(other, "/g", "unit", "1", &t.err));
    FAILS(&t, BRC_ECONFLICT, brc_savepoint_rollback(t.session, "x", &t.err));
    ck_assert_int_eq(number("/a", 0), 1);
    save("y"); /* what came before it is no matter */
    set("/a", 0, 2);
    back("y");
    ck_assert_int_eq(number("/a", 0), 1);
    release("x");
    OK(&t, brc_savepoint(other, "x", &t.err));
    brc_session_free(other);
    brc_free(repo);
}
END_TEST

START_TEST(others_may_commit_what_is_shared)
{
    brc_session *other;
    brc_commit_opts opts = BRC_COMMIT_OPTS_INIT;
    brc_oid id;
    OK(&t, brc_session_open(&other, t.repo, NULL, BRC_SESSION_WRITE, &t.err));
    save("x");
    set("/a", 0, 1);
    opts.message = "theirs";
    OK(&t, brc_session_commit(&id, other, &opts, &t.err));
    FAILS(&t, BRC_ENOTFOUND, brc_savepoint_rollback(t.session, "x", &t.err));
    ck_assert_int_eq(number("/a", 0), 1);
    ck_assert_int_eq(saves_left(), 0);
    brc_session_free(other);
}
END_TEST

static void die_with_savepoints(int private)
{
    breccia *repo;
    brc_session *s;
    if (brc_open(&repo, t.file, NULL, &t.err) < 0 ||
        brc_session_open(&s, repo, NULL, private ? BRC_SESSION_PRIVATE : BRC_SESSION_WRITE,
                         &t.err) < 0 ||
        brc_attrs_set(s, "/g", "one", "1", &t.err) < 0 || brc_savepoint(s, "x", &t.err) < 0 ||
        brc_attrs_set(s, "/g", "two", "2", &t.err) < 0 || brc_savepoint(s, "y", &t.err) < 0 ||
        brc_node_remove(s, "/g/b", &t.err) < 0)
        _exit(1);
    kill(getpid(), SIGKILL);
}

START_TEST(a_dead_process_leaves_what_it_wrote)
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
    snprintf(said, sizeof(said), "%d %d", kind("/g/b"), kind("/g"));
    ck_assert_str_eq(said, "0 1");
    brc_buf two = BRC_BUF_INIT;
    OK(&t, brc_attrs_get(&two, t.session, "/g", "two", &t.err));
    brc_buf_dispose(&two);
    ck_assert_int_eq(number("/a", 0), 70);
    save("x"); /* those of the dead are over */
    ck_assert_int_eq(saves_left(), 1);
    set("/a", 0, 1);
    back("x");
    ck_assert_int_eq(number("/a", 0), 70);
}
END_TEST

START_TEST(a_collection_keeps_what_a_savepoint_needs)
{
    brc_gc_opts opts = BRC_GC_OPTS_INIT;
    uint8_t byte = 9;
    brc_buf value = BRC_BUF_INIT;
    opts.flags = BRC_GC_EXPUNGE;
    OK(&t, brc_config_set(t.repo, "window", "0", &t.err));
    OK(&t, brc_key_set(t.session, "loose", &byte, 1, &t.err));
    OK(&t, brc_attrs_set(t.session, "/n", "unit", "\"m\"", &t.err));
    save("x");
    OK(&t, brc_node_remove(t.session, "/n", &t.err));
    OK(&t, brc_key_delete(t.session, "loose", &t.err));
    set("/a", 0, 1);
    OK(&t, brc_gc(t.repo, &opts, NULL, &t.err));
    scenario_whole(&t);
    back("x");
    ck_assert_int_eq(number("/n", 3), 203);
    ck_assert_int_eq(number("/a", 0), 70);
    OK(&t, brc_key_get(&value, t.session, "loose", &t.err));
    brc_buf_dispose(&value);
    OK(&t, brc_key_delete(t.session, "loose", &t.err));
}
END_TEST

START_TEST(a_collection_drops_what_dead_processes_left)
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
    ck_assert_int_eq(kind("/g/b"), _i ? BRC_ARRAY : 0);
    ck_assert_int_eq(number("/a", 0), 70);
}
END_TEST

START_TEST(drafts_do_not_list_them)
{
    brc_iter *it;
    const brc_draft *draft;
    int n = 0;
    save("x");
    set("/a", 0, 1);
    OK(&t, brc_drafts(&it, t.repo, &t.err));
    while (brc_drafts_next(it, &draft, &t.err) > 0)
        n++;
    brc_iter_free(it);
    ck_assert_int_eq(n, 1);
    const int64_t id = scenario_ask(&t, "SELECT id FROM draft WHERE parent IS NOT NULL");
    FAILS(&t, BRC_ENOTFOUND, brc_draft_drop(t.repo, id, &t.err));
    FAILS(&t, BRC_ENOTFOUND, brc_draft_adopt(t.repo, id, &t.err));
}
END_TEST

START_TEST(a_branch_that_goes_with_savepoints_keeps_its_changes)
{
    OK(&t, brc_branch_create(t.repo, "side", NULL, &t.err));
    brc_session_free(t.session);
    OK(&t, brc_session_open(&t.session, t.repo, "side", BRC_SESSION_WRITE, &t.err));
    set("/a", 0, 5);
    save("x");
    set("/a", 1, 6);
    OK(&t, brc_branch_rename(t.repo, "side", "other", &t.err));
    scenario_whole(&t);
    brc_session_free(t.session);
    OK(&t, brc_session_open(&t.session, t.repo, "other", BRC_SESSION_WRITE, &t.err));
    save("y");
    OK(&t, brc_branch_delete(t.repo, "other", BRC_DELETE_FORCE, &t.err));
    ck_assert_int_eq(saves_left(), 0);
    scenario_whole(&t);
    OK(&t, brc_undo(NULL, t.repo, 0, 0, &t.err));
    ck_assert_int_eq(number("/a", 0), 5);
    ck_assert_int_eq(number("/a", 1), 6);
}
END_TEST

START_TEST(names_and_sessions_are_checked)
{
    char name[300];
    brc_session *view;
    memset(name, 'x', sizeof(name));
    name[256] = '\0';
    FAILS(&t, BRC_EINVAL, brc_savepoint(t.session, name, &t.err));
    FAILS(&t, BRC_EINVAL, brc_savepoint(t.session, "", &t.err));
    FAILS(&t, BRC_EINVAL, brc_savepoint(t.session, NULL, &t.err));
    FAILS(&t, BRC_EINVAL, brc_savepoint(t.session, "\xff", &t.err));
    name[255] = '\0';
    save(name);
    save("\"\n");
    back(name);
    release(name);
    OK(&t, brc_session_open(&view, t.repo, NULL, BRC_SESSION_VIEW, &t.err));
    FAILS(&t, BRC_EREADONLY, brc_savepoint(view, "x", &t.err));
    FAILS(&t, BRC_EREADONLY, brc_savepoint_rollback(view, "x", &t.err));
    brc_session_free(view);
}
END_TEST

/* ---- many -------------------------------- */

START_TEST(sixteen_nest_and_a_node_is_changed_in_each)
{
    char name[8];
    for (int i = 0; i < 16; i++) {
        snprintf(name, sizeof(name), "s%d", i);
        save(name);
        set("/a", 0, i);
        set("/n", (uint64_t)i % 8, i);
    }
    FAILS(&t, BRC_ELIMIT, brc_savepoint(t.session, "more", &t.err));
    OK(&t, brc_bulk_begin(t.session, &t.err));
    set("/a", 1, 77);
    OK(&t, brc_bulk_end(t.session, BRC_END_KEEP, &t.err));
    for (int i = 15; i >= 0; i--) {
        snprintf(name, sizeof(name), "s%d", i);
        back(name);
        ck_assert_int_eq(number("/a", 0), i > 0 ? i - 1 : 70);
        ck_assert_int_eq(number("/a", 1), 1);
        release(name);
    }
    ck_assert_int_eq(number("/n", 3), 203);
}
END_TEST

/* Each adds a row to the array's stack: these become fewer. */
START_TEST(many_savepoints_one_after_the_other_leave_a_short_stack)
{
    save("outer");
    for (int i = 0; i < 100; i++) {
        save("x");
        set("/a", (uint64_t)i % 8, 1000 + i);
        release("x");
    }
    for (int i = 0; i < 8; i++)
        ck_assert_int_eq(number("/a", (uint64_t)i), i < 4 ? 1096 + i : 1088 + i);
    back("outer");
    ck_assert_int_eq(number("/a", 0), 70);
    ck_assert_int_eq(number("/a", 3), 3);
    release("outer");
    for (int i = 0; i < 100; i++) {
        save("x");
        set("/a", (uint64_t)i % 8, 1000 + i);
        release("x");
    }
    ck_assert_int_lt(scenario_ask(&t, "SELECT count(*) FROM draft_node"), 40);
    for (int i = 0; i < 8; i++)
        ck_assert_int_eq(number("/a", (uint64_t)i), i < 4 ? 1096 + i : 1088 + i);
}
END_TEST

/* Commits and copies of so many chunks go in batches. */
START_TEST(large_arrays_are_copied_committed_and_taken_back)
{
    scenario_numbers(&t, "/big", 20000, 1, 0);
    save("x");
    set("/big", 3, -3);
    OK(&t, brc_node_copy(t.session, "/big", "/copy", &t.err));
    set("/big", 4, -4);
    ck_assert_int_eq(number("/copy", 3), -3);
    ck_assert_int_eq(number("/copy", 4), 4);
    back("x");
    ck_assert_int_eq(number("/big", 3), 3);
    ck_assert_int_eq(kind("/copy"), 0);
    OK(&t, brc_node_copy(t.session, "/big", "/copy", &t.err));
    save("y");
    OK(&t, brc_node_remove(t.session, "/big", &t.err));
    back("x");
    ck_assert_int_eq(number("/big", 19999), 19999);
    set("/big", 5, -5);
    scenario_commit(&t, "all");
    ck_assert_int_eq(number("/big", 5), -5);
    ck_assert_int_eq(number("/big", 19999), 19999);
}
END_TEST

/* Nothing copies chunk rows. */
START_TEST(no_chunk_row_is_written_by_a_savepoint)
{
    static const char count[] = "SELECT count(*) FROM draft_chunk";
    scenario_numbers(&t, "/big", 3000, 1, 0);
    const int64_t before = scenario_ask(&t, count);
    save("x");
    set("/big", 3, -3);
    save("y");
    OK(&t, brc_node_move(t.session, "/big", "/large", &t.err));
    ck_assert_int_eq(scenario_ask(&t, count), before + 1);
    back("x");
    release("x");
    ck_assert_int_eq(scenario_ask(&t, count), before);
}
END_TEST

Suite *savepoint_suite(void)
{
    Suite *s = suite_create("savepoint");
    TCase *tc = tcase_create("savepoint");
    tcase_add_checked_fixture(tc, savepoint_setup, savepoint_teardown);
    tcase_set_timeout(tc, 60);
    tcase_add_test(tc, a_rollback_brings_back_what_there_was);
    tcase_add_test(tc, a_released_savepoint_leaves_what_was_written);
    tcase_add_test(tc, a_savepoint_stays_open_when_it_was_rolled_back_to);
    tcase_add_test(tc, savepoints_nest_and_the_innermost_of_a_name_counts);
    tcase_add_test(tc, what_an_inner_savepoint_knew_the_outer_one_knows_when_that_is_released);
    tcase_add_test(tc, moves_are_forgotten_with_what_moved);
    tcase_add_test(tc, open_arrays_go_on_as_the_array_is_then);
    tcase_add_test(tc, a_draft_that_began_with_the_savepoint_is_empty_again);
    tcase_add_test(tc, a_session_with_a_savepoint_stays_at_its_commit);
    tcase_add_test(tc, savepoints_within_a_transaction_go_with_it);
    tcase_add_test(tc, a_transaction_may_begin_and_end_between);
    tcase_add_test(tc, a_bulk_write_is_taken_back_and_takes_no_savepoint);
    tcase_add_test(tc, a_commit_ends_them);
    tcase_add_test(tc, a_commit_that_fails_does_not_end_them);
    tcase_add_test(tc, dropping_and_resetting_the_changes_ends_them);
    tcase_add_test(tc, a_session_that_is_closed_leaves_what_it_wrote);
    tcase_add_test(tc, a_session_that_cannot_have_the_lock_ends_them_later);
    tcase_add_test(tc, handed_over_changes_have_none);
    tcase_add_test(tc, what_is_handed_over_within_a_savepoint_goes_with_it);
    tcase_add_test(tc, a_rollback_loses_nothing_of_others);
    tcase_add_test(tc, others_may_commit_what_is_shared);
    tcase_add_loop_test(tc, a_dead_process_leaves_what_it_wrote, 0, 2);
    tcase_add_test(tc, a_collection_keeps_what_a_savepoint_needs);
    tcase_add_loop_test(tc, a_collection_drops_what_dead_processes_left, 0, 2);
    tcase_add_test(tc, drafts_do_not_list_them);
    tcase_add_test(tc, a_branch_that_goes_with_savepoints_keeps_its_changes);
    tcase_add_test(tc, names_and_sessions_are_checked);
    tcase_add_test(tc, sixteen_nest_and_a_node_is_changed_in_each);
    tcase_add_test(tc, many_savepoints_one_after_the_other_leave_a_short_stack);
    tcase_add_test(tc, large_arrays_are_copied_committed_and_taken_back);
    tcase_add_test(tc, no_chunk_row_is_written_by_a_savepoint);
    suite_add_tcase(s, tc);
    return s;
}
