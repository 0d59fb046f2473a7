/* Savepoints of a session: what they bring back. */
#include <check.h>
#include <stdio.h>
#include <string.h>

#include "../../src/base/buf.h"
#include "../kit/savepoint_kit.h"
#include "../kit/versions.h"

Suite *savepoint_suite(void);

static scenario t;

static void savepoint_setup(void)
{
    sp_start(&t);
}

static void savepoint_teardown(void)
{
    sp_stop(&t);
}

/* ---- what comes back -------------------------------- */

START_TEST(a_rollback_brings_back_what_there_was)
{
    sp_save(&t, "x");
    scenario_set_number(&t, "/a", 0, 71);
    scenario_set_number(&t, "/a", 7, 77);
    scenario_set_number(&t, "/n", 1, 0);
    scenario_set_number(&t, "/g/b", 1, 1);
    OK(&t, brc_attrs_set(t.session, "/n", "unit", "\"m\"", &t.err));
    OK(&t, brc_node_remove(t.session, "/g", &t.err));
    OK(&t, brc_node_move(t.session, "/n", "/m", &t.err));
    scenario_numbers(&t, "/n", 2, 1, 5);
    sp_back(&t, "x");
    ck_assert_int_eq(sp_number(&t, "/a", 0), 70);
    ck_assert_int_eq(sp_number(&t, "/a", 7), 7);
    ck_assert_int_eq(sp_number(&t, "/n", 1), 201);
    ck_assert_int_eq(sp_number(&t, "/g/b", 1), 101);
    ck_assert_int_eq(sp_kind(&t, "/m"), 0);
    scenario_commit(&t, "second");
    ck_assert_int_eq(sp_number(&t, "/a", 0), 70);
    ck_assert_int_eq(sp_number(&t, "/n", 7), 207);
}
END_TEST

START_TEST(a_released_savepoint_leaves_what_was_written)
{
    sp_save(&t, "x");
    scenario_set_number(&t, "/a", 0, 71);
    OK(&t, brc_node_remove(t.session, "/n", &t.err));
    sp_release(&t, "x");
    ck_assert_int_eq(sp_number(&t, "/a", 0), 71);
    ck_assert_int_eq(sp_kind(&t, "/n"), 0);
    FAILS(&t, BRC_ENOTFOUND, brc_savepoint_rollback(t.session, "x", &t.err));
    FAILS(&t, BRC_ENOTFOUND, brc_savepoint_release(t.session, NULL, &t.err));
}
END_TEST

START_TEST(a_savepoint_stays_open_when_it_was_rolled_back_to)
{
    sp_save(&t, "x");
    for (int i = 0; i < 3; i++) {
        scenario_set_number(&t, "/a", 0, 90 + i);
        scenario_set_number(&t, "/a", 2, 90 + i);
        sp_back(&t, "x");
        ck_assert_int_eq(sp_number(&t, "/a", 0), 70);
        ck_assert_int_eq(sp_number(&t, "/a", 2), 2);
    }
    scenario_set_number(&t, "/a", 0, 99);
    sp_release(&t, "x");
    ck_assert_int_eq(sp_number(&t, "/a", 0), 99);
}
END_TEST

START_TEST(savepoints_nest_and_the_innermost_of_a_name_counts)
{
    sp_save(&t, "x");
    scenario_set_number(&t, "/a", 0, 1);
    sp_save(&t, "y");
    scenario_set_number(&t, "/a", 0, 2);
    sp_save(&t, "x");
    scenario_set_number(&t, "/a", 0, 3);
    sp_back(&t, "x");
    ck_assert_int_eq(sp_number(&t, "/a", 0), 2);
    sp_release(&t, "x");
    sp_back(&t, "x"); /* the outer one; y ends */
    ck_assert_int_eq(sp_number(&t, "/a", 0), 70);
    FAILS(&t, BRC_ENOTFOUND, brc_savepoint_rollback(t.session, "y", &t.err));
    sp_save(&t, "y");
    scenario_set_number(&t, "/a", 0, 4);
    sp_release(&t, "x"); /* and y in it */
    FAILS(&t, BRC_ENOTFOUND, brc_savepoint_release(t.session, NULL, &t.err));
    ck_assert_int_eq(sp_number(&t, "/a", 0), 4);
}
END_TEST

START_TEST(what_an_inner_savepoint_knew_the_outer_one_knows_when_that_is_released)
{
    uint8_t byte = 7;
    brc_buf value = BRC_BUF_INIT;
    sp_save(&t, "x");
    sp_save(&t, "y");
    scenario_set_number(&t, "/n", 0, 1);
    scenario_set_number(&t, "/g/b", 0, 1);
    OK(&t, brc_node_move(t.session, "/a", "/c", &t.err));
    OK(&t, brc_key_set(t.session, "loose", &byte, 1, &t.err));
    sp_release(&t, "y");
    sp_save(&t, "z");
    OK(&t, brc_node_remove(t.session, "/c", &t.err));
    OK(&t, brc_node_remove(t.session, "/n", &t.err));
    sp_release(&t, "z");
    sp_back(&t, "x");
    scenario_whole(&t);
    ck_assert_int_eq(sp_number(&t, "/a", 0), 70);
    ck_assert_int_eq(sp_number(&t, "/n", 0), 200);
    ck_assert_int_eq(sp_number(&t, "/g/b", 0), 100);
    ck_assert_int_eq(sp_kind(&t, "/c"), 0);
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
    for (int inner = 0; inner < 2; inner++) {
        sp_save(&t, "x");
        if (inner)
            sp_save(&t, "y");
        OK(&t, brc_node_move(t.session, "/g/b", "/b", &t.err));
        if (inner)
            sp_release(&t, "y");
        sp_back(&t, "x");
        scenario_whole(&t);
    }
    scenario_commit(&t, "second");
    OK(&t, brc_diff(&it, t.repo, "HEAD~1", "HEAD", NULL, &t.err));
    while (brc_diff_next(it, &change, &t.err) > 0)
        ck_assert_ptr_null(strstr(change->path, "b"));
    brc_iter_free(it);
}
END_TEST

/* All keys of the store view with their bytes. */
static void all_keys(brc_buf *out)
{
    brc_iter *it;
    const char *key;
    int rc;
    out->len = 0;
    OK(&t, brc_keys(&it, t.session, "", &t.err));
    while ((rc = brc_keys_next(it, &key, &t.err)) > 0) {
        OK(&t, brc_buf_text(out, key, &t.err));
        OK(&t, brc_buf_byte(out, '=', &t.err));
        OK(&t, brc_key_get(out, t.session, key, &t.err));
    }
    ck_assert_msg(rc == 0, "%s", t.err.message);
    brc_iter_free(it);
}

static void set_key(const char *key, const char *text)
{
    OK(&t, brc_key_set(t.session, key, text, strlen(text), &t.err));
}

START_TEST(the_key_view_has_the_keys_that_there_were)
{
    static const char group[] = "{\"zarr_format\":3,\"node_type\":\"group\"}";
    brc_buf before = BRC_BUF_INIT, after = BRC_BUF_INIT, array = BRC_BUF_INIT;
    OK(&t, brc_key_get(&array, t.session, "n/zarr.json", &t.err));
    set_key("m/c/0", "loose until there is m/zarr.json");
    set_key("p/q/zarr.json", group); /* p has no document */
    all_keys(&before);
    for (int i = 0; i < 2; i++) {
        sp_save(&t, "x");
        set_key("p/zarr.json", group);
        OK(&t, brc_key_set(t.session, "m/zarr.json", array.data, array.len, &t.err));
        set_key("n/zarr.json", group);
        sp_save(&t, "y");
        OK(&t, brc_key_delete(t.session, "a/zarr.json", &t.err));
        OK(&t, brc_key_delete(t.session, "a/c/1", &t.err));
        OK(&t, brc_key_delete_prefix(t.session, "g/", &t.err));
        if (i == 1)
            sp_release(&t, "y");
        sp_back(&t, "x");
        all_keys(&after);
        ck_assert_uint_eq(after.len, before.len);
        ck_assert_mem_eq(after.data, before.data, before.len);
        scenario_whole(&t);
    }
    sp_release(&t, NULL);
    OK(&t, brc_key_delete(t.session, "m/c/0", &t.err));
    scenario_commit(&t, "second");
    ck_assert_int_eq(sp_number(&t, "/n", 7), 207);
    brc_buf_dispose(&before);
    brc_buf_dispose(&after);
    brc_buf_dispose(&array);
}
END_TEST

START_TEST(open_arrays_go_on_as_the_array_is_then)
{
    brc_array *a, *made;
    int32_t v[8];
    uint64_t longer = 20, shape = 4;
    brc_array_spec spec = BRC_ARRAY_SPEC_INIT;
    OK(&t, brc_array_open(&a, t.session, "/a", &t.err));
    sp_save(&t, "x");
    OK(&t, brc_array_resize(a, &longer, &t.err));
    OK(&t, brc_array_set_codecs(a, "[{\"name\":\"bytes\",\"configuration\":{\"endian\":\"big\"}}]",
                                1, &t.err));
    spec.dtype = "int32";
    spec.ndim = 1;
    spec.shape = &shape;
    OK(&t, brc_array_create(&made, t.session, "/made", &spec, &t.err));
    sp_back(&t, "x");
    OK(&t, brc_array_read(a, NULL, v, sizeof(v), &t.err));
    ck_assert_int_eq(v[0], 70);
    ck_assert_int_eq(v[7], 7);
    ck_assert_uint_eq(brc_array_describe(a)->shape[0], 8);
    ck_assert_ptr_nonnull(strstr(brc_array_describe(a)->codecs_json, "blosc"));
    FAILS(&t, BRC_ENOTFOUND, brc_array_write(made, NULL, v, 16, &t.err));
    v[1] = 11;
    OK(&t, brc_array_write(a, NULL, v, sizeof(v), &t.err));
    sp_back(&t, "x");
    ck_assert_int_eq(sp_number(&t, "/a", 1), 1);
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
            sp_make_private(&t);
        sp_save(&t, "x");
        scenario_set_number(&t, "/a", 0, 5);
        sp_back(&t, "x");
        OK(&t, brc_session_clean(&clean, t.session, &t.err));
        ck_assert_int_eq(clean, 1);
        sp_release(&t, NULL);
    }
}
END_TEST

/* Somebody else commits: a private session without a change would follow, but for the savepoint. */
START_TEST(a_session_with_a_savepoint_stays_at_its_commit)
{
    brc_session *other;
    scenario_commit(&t, "second");
    sp_make_private(&t);
    sp_save(&t, "x");
    OK(&t, brc_session_open(&other, t.repo, NULL, BRC_SESSION_WRITE, &t.err));
    OK(&t, brc_node_remove(other, "/g", &t.err));
    brc_commit_opts opts = BRC_COMMIT_OPTS_INIT;
    brc_oid id;
    opts.message = "third";
    OK(&t, brc_session_commit(&id, other, &opts, &t.err));
    brc_session_free(other);
    ck_assert_int_eq(sp_number(&t, "/g/b", 0), 100);
    scenario_set_number(&t, "/a", 0, 5);
    sp_back(&t, "x");
    ck_assert_int_eq(sp_number(&t, "/g/b", 0), 100);
    sp_release(&t, "x");
    ck_assert_int_eq(sp_kind(&t, "/g"), 0);
}
END_TEST

/* ---- transactions and bulk writes -------------------------------- */

START_TEST(savepoints_within_a_transaction_go_with_it)
{
    sp_save(&t, "x");
    scenario_set_number(&t, "/a", 0, 1);
    OK(&t, brc_begin(t.repo, &t.err));
    sp_save(&t, "y");
    scenario_set_number(&t, "/a", 0, 2);
    sp_back(&t, "y");
    ck_assert_int_eq(sp_number(&t, "/a", 0), 1);
    sp_release(&t, "x");
    OK(&t, brc_end(t.repo, 0, &t.err));
    ck_assert_int_eq(sp_number(&t, "/a", 0), 1);
    FAILS(&t, BRC_ENOTFOUND, brc_savepoint_rollback(t.session, "y", &t.err));
    sp_back(&t, "x");
    ck_assert_int_eq(sp_number(&t, "/a", 0), 70);
}
END_TEST

START_TEST(a_transaction_may_begin_and_end_between)
{
    OK(&t, brc_begin(t.repo, &t.err));
    sp_save(&t, "x");
    scenario_set_number(&t, "/a", 0, 1);
    OK(&t, brc_end(t.repo, BRC_END_KEEP, &t.err));
    scenario_set_number(&t, "/a", 1, 2);
    OK(&t, brc_begin(t.repo, &t.err));
    sp_back(&t, "x");
    scenario_set_number(&t, "/a", 2, 3);
    OK(&t, brc_end(t.repo, BRC_END_KEEP, &t.err));
    ck_assert_int_eq(sp_number(&t, "/a", 0), 70);
    ck_assert_int_eq(sp_number(&t, "/a", 1), 1);
    ck_assert_int_eq(sp_number(&t, "/a", 2), 3);
}
END_TEST

START_TEST(a_bulk_write_is_taken_back_and_takes_no_savepoint)
{
    brc_array *a;
    sp_save(&t, "x");
    OK(&t, brc_bulk_begin(t.session, &t.err));
    scenario_set_number(&t, "/a", 3, 33);
    scenario_set_number(&t, "/n", 3, 33);
    OK(&t, brc_array_open(&a, t.session, "/a", &t.err));
    OK(&t, brc_attrs_set(t.session, "/g", "unit", "1", &t.err));
    FAILS(&t, BRC_EMISUSE, brc_savepoint(t.session, "y", &t.err));
    FAILS(&t, BRC_EMISUSE, brc_savepoint_rollback(t.session, "x", &t.err));
    FAILS(&t, BRC_EMISUSE, brc_savepoint_release(t.session, "x", &t.err));
    OK(&t, brc_bulk_end(t.session, BRC_END_KEEP, &t.err));
    ck_assert_int_eq(sp_number(&t, "/a", 3), 33);
    sp_back(&t, "x");
    ck_assert_int_eq(sp_number(&t, "/a", 3), 3);
    ck_assert_int_eq(sp_number(&t, "/a", 0), 70);
    ck_assert_int_eq(sp_number(&t, "/n", 3), 203);
    brc_array_free(a);
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
    sp_save(&t, name);
    sp_save(&t, "\"\n");
    sp_back(&t, name);
    sp_release(&t, name);
    OK(&t, brc_session_open(&view, t.repo, NULL, BRC_SESSION_VIEW, &t.err));
    FAILS(&t, BRC_EREADONLY, brc_savepoint(view, "x", &t.err));
    FAILS(&t, BRC_EREADONLY, brc_savepoint_rollback(view, "x", &t.err));
    brc_session_free(view);
}
END_TEST

START_TEST(what_settled_a_conflict_is_taken_back)
{
    brc_merge_result merged = BRC_MERGE_RESULT_INIT;
    brc_merge_opts opts = BRC_MERGE_OPTS_INIT;
    scenario_commit(&t, "second");
    OK(&t, brc_branch_create(t.repo, "side", NULL, &t.err));
    OK(&t, brc_attrs_set(t.session, "/g", "k", "1", &t.err));
    scenario_commit(&t, "ours");
    OK(&t, brc_switch(t.repo, "side", 0, &t.err));
    brc_session_free(t.session);
    OK(&t, brc_session_open(&t.session, t.repo, NULL, BRC_SESSION_WRITE, &t.err));
    OK(&t, brc_attrs_set(t.session, "/g", "k", "2", &t.err));
    scenario_commit(&t, "theirs");
    opts.flags = BRC_MERGE_KEEP;
    OK(&t, brc_merge(&merged, NULL, t.repo, "main", &opts, &t.err));
    ck_assert_uint_eq(scenario_conflicts(&t), 1);
    sp_save(&t, "x");
    OK(&t, brc_attrs_set(t.session, "/g", "k", "3", &t.err));
    ck_assert_uint_eq(scenario_conflicts(&t), 0);
    scenario_whole(&t);
    sp_back(&t, "x");
    ck_assert_uint_eq(scenario_conflicts(&t), 1);
    OK(&t, brc_attrs_set(t.session, "/g", "k", "4", &t.err));
    OK(&t, brc_merge_continue(&merged, NULL, t.repo, NULL, &t.err));
    FAILS(&t, BRC_ENOTFOUND, brc_savepoint_rollback(t.session, "x", &t.err));
}
END_TEST

/* ---- many -------------------------------- */

START_TEST(sixteen_nest_and_a_node_is_changed_in_each)
{
    char name[16];
    for (int i = 0; i < 16; i++) {
        snprintf(name, sizeof(name), "s%d", i);
        sp_save(&t, name);
        scenario_set_number(&t, "/a", 0, i);
        scenario_set_number(&t, "/n", (uint64_t)i % 8, i);
    }
    FAILS(&t, BRC_ELIMIT, brc_savepoint(t.session, "more", &t.err));
    OK(&t, brc_bulk_begin(t.session, &t.err));
    scenario_set_number(&t, "/a", 1, 77);
    OK(&t, brc_bulk_end(t.session, BRC_END_KEEP, &t.err));
    for (int i = 15; i >= 0; i--) {
        snprintf(name, sizeof(name), "s%d", i);
        sp_back(&t, name);
        ck_assert_int_eq(sp_number(&t, "/a", 0), i > 0 ? i - 1 : 70);
        ck_assert_int_eq(sp_number(&t, "/a", 1), 1);
        sp_release(&t, name);
    }
    ck_assert_int_eq(sp_number(&t, "/n", 3), 203);
}
END_TEST

/* Each adds a row to the array's stack: these become fewer. */
START_TEST(many_savepoints_one_after_the_other_leave_a_short_stack)
{
    sp_save(&t, "outer");
    for (int i = 0; i < 100; i++) {
        sp_save(&t, "x");
        scenario_set_number(&t, "/a", (uint64_t)i % 8, 1000 + i);
        sp_release(&t, "x");
    }
    for (int i = 0; i < 8; i++)
        ck_assert_int_eq(sp_number(&t, "/a", (uint64_t)i), i < 4 ? 1096 + i : 1088 + i);
    sp_back(&t, "outer");
    ck_assert_int_eq(sp_number(&t, "/a", 0), 70);
    ck_assert_int_eq(sp_number(&t, "/a", 3), 3);
    sp_release(&t, "outer");
    for (int i = 0; i < 100; i++) {
        sp_save(&t, "x");
        scenario_set_number(&t, "/a", (uint64_t)i % 8, 1000 + i);
        sp_release(&t, "x");
    }
    ck_assert_int_lt(scenario_ask(&t, "SELECT count(*) FROM draft_node"), 40);
    for (int i = 0; i < 8; i++)
        ck_assert_int_eq(sp_number(&t, "/a", (uint64_t)i), i < 4 ? 1096 + i : 1088 + i);
}
END_TEST

static void write_all(const char *path, int32_t value)
{
    static int32_t values[20000];
    brc_array *a;
    for (size_t i = 0; i < 20000; i++)
        values[i] = value;
    OK(&t, brc_array_open(&a, t.session, path, &t.err));
    OK(&t, brc_array_write(a, NULL, values, sizeof(values), &t.err));
    brc_array_free(a);
}

/* Commits and copies of so many chunks go in batches, and dropping them too. */
START_TEST(large_arrays_are_copied_committed_and_taken_back)
{
    scenario_numbers(&t, "/big", 20000, 1, 0);
    sp_save(&t, "x");
    write_all("/big", 7);
    sp_back(&t, "x");
    ck_assert_int_eq(sp_number(&t, "/big", 3), 3);
    write_all("/big", 7);
    OK(&t, brc_node_remove(t.session, "/big", &t.err));
    sp_back(&t, "x");
    ck_assert_int_eq(sp_number(&t, "/big", 19999), 19999);
    scenario_set_number(&t, "/big", 3, -3);
    OK(&t, brc_node_copy(t.session, "/big", "/copy", &t.err));
    scenario_set_number(&t, "/big", 4, -4);
    ck_assert_int_eq(sp_number(&t, "/copy", 3), -3);
    ck_assert_int_eq(sp_number(&t, "/copy", 4), 4);
    sp_back(&t, "x");
    ck_assert_int_eq(sp_number(&t, "/big", 3), 3);
    ck_assert_int_eq(sp_kind(&t, "/copy"), 0);
    OK(&t, brc_node_copy(t.session, "/big", "/copy", &t.err));
    sp_save(&t, "y");
    OK(&t, brc_node_remove(t.session, "/big", &t.err));
    sp_back(&t, "x");
    ck_assert_int_eq(sp_number(&t, "/big", 19999), 19999);
    scenario_set_number(&t, "/big", 5, -5);
    scenario_commit(&t, "all");
    ck_assert_int_eq(sp_number(&t, "/big", 5), -5);
    ck_assert_int_eq(sp_number(&t, "/big", 19999), 19999);
}
END_TEST

/* Nothing copies chunk rows. */
START_TEST(no_chunk_row_is_written_by_a_savepoint)
{
    static const char count[] = "SELECT count(*) FROM draft_chunk";
    scenario_numbers(&t, "/big", 3000, 1, 0);
    const int64_t before = scenario_ask(&t, count);
    sp_save(&t, "x");
    scenario_set_number(&t, "/big", 3, -3);
    sp_save(&t, "y");
    OK(&t, brc_node_move(t.session, "/big", "/large", &t.err));
    ck_assert_int_eq(scenario_ask(&t, count), before + 1);
    sp_back(&t, "x");
    sp_release(&t, "x");
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
    tcase_add_test(tc, the_key_view_has_the_keys_that_there_were);
    tcase_add_test(tc, open_arrays_go_on_as_the_array_is_then);
    tcase_add_test(tc, a_draft_that_began_with_the_savepoint_is_empty_again);
    tcase_add_test(tc, a_session_with_a_savepoint_stays_at_its_commit);
    tcase_add_test(tc, savepoints_within_a_transaction_go_with_it);
    tcase_add_test(tc, a_transaction_may_begin_and_end_between);
    tcase_add_test(tc, a_bulk_write_is_taken_back_and_takes_no_savepoint);
    tcase_add_test(tc, what_settled_a_conflict_is_taken_back);
    tcase_add_test(tc, names_and_sessions_are_checked);
    tcase_add_test(tc, sixteen_nest_and_a_node_is_changed_in_each);
    tcase_add_test(tc, many_savepoints_one_after_the_other_leave_a_short_stack);
    tcase_add_test(tc, large_arrays_are_copied_committed_and_taken_back);
    tcase_add_test(tc, no_chunk_row_is_written_by_a_savepoint);
    suite_add_tcase(s, tc);
    return s;
}
