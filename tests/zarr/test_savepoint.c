/* Savepoints of a session: what they bring back. */
#include <stdio.h>
#include <string.h>

#include "../../src/base/buf.h"
#include "../kit/savepoint_kit.h"
#include "../kit/suite.h"
#include "../kit/versions.h"

TEST_SUITE(savepoint);

static scenario t;

static void savepoint_setup(void)
{
    sp_start(&t);
}

static void savepoint_teardown(void)
{
    sp_stop(&t);
}

CASE("savepoint", .setup = savepoint_setup, .teardown = savepoint_teardown, .timeout = 60);

/* ---- what comes back -------------------------------- */

TEST(a_rollback_brings_back_what_there_was)
{
    sp_save(&t, "x");
    scenario_set_number(&t, "/a", 0, 71);
    scenario_set_number(&t, "/a", 7, 77);
    scenario_set_number(&t, "/n", 1, 0);
    scenario_set_number(&t, "/g/b", 1, 1);
    OK(&t, brc_attrs_set(t.session, "/n", "unit", "\"m\"", &t.err));
    OK(&t, brc_node_remove(t.session, "/g", &t.err));
    OK(&t, brc_node_move(t.session, "/n", "/m", 0, &t.err));
    scenario_numbers(&t, "/n", 2, 1, 5);
    sp_back(&t, "x");
    ck_assert_int_eq(sp_number(&t, "/a", 0), 70);
    ck_assert_int_eq(sp_number(&t, "/a", 7), 7);
    ck_assert_int_eq(sp_number(&t, "/n", 1), 201);
    ck_assert_int_eq(sp_number(&t, "/g/b", 1), 101);
    ck_assert_int_eq(scenario_kind(&t, "/m"), 0);
    scenario_commit(&t, "second");
    ck_assert_int_eq(sp_number(&t, "/a", 0), 70);
    ck_assert_int_eq(sp_number(&t, "/n", 7), 207);
}

TEST(a_released_savepoint_leaves_what_was_written)
{
    sp_save(&t, "x");
    scenario_set_number(&t, "/a", 0, 71);
    OK(&t, brc_node_remove(t.session, "/n", &t.err));
    sp_release(&t, "x");
    ck_assert_int_eq(sp_number(&t, "/a", 0), 71);
    ck_assert_int_eq(scenario_kind(&t, "/n"), 0);
    FAILS(&t, BRC_ENOTFOUND, brc_savepoint(t.session, BRC_SAVEPOINT_ROLLBACK, "x", &t.err));
    FAILS(&t, BRC_ENOTFOUND, brc_savepoint(t.session, BRC_SAVEPOINT_RELEASE, NULL, &t.err));
}

TEST(a_savepoint_stays_open_when_it_was_rolled_back_to)
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

TEST(savepoints_nest_and_the_innermost_of_a_name_counts)
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
    FAILS(&t, BRC_ENOTFOUND, brc_savepoint(t.session, BRC_SAVEPOINT_ROLLBACK, "y", &t.err));
    sp_save(&t, "y");
    scenario_set_number(&t, "/a", 0, 4);
    sp_release(&t, "x"); /* and y in it */
    FAILS(&t, BRC_ENOTFOUND, brc_savepoint(t.session, BRC_SAVEPOINT_RELEASE, NULL, &t.err));
    ck_assert_int_eq(sp_number(&t, "/a", 0), 4);
}

TEST(what_an_inner_savepoint_knew_the_outer_one_knows_when_that_is_released)
{
    uint8_t byte = 7;
    brc_buf value = BRC_BUF_INIT;
    sp_save(&t, "x");
    sp_save(&t, "y");
    scenario_set_number(&t, "/n", 0, 1);
    scenario_set_number(&t, "/g/b", 0, 1);
    OK(&t, brc_node_move(t.session, "/a", "/c", 0, &t.err));
    OK(&t, brc_key_set(t.session, "loose", &byte, 1, 0, &t.err));
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
    ck_assert_int_eq(scenario_kind(&t, "/c"), 0);
    FAILS(&t, BRC_ENOTFOUND, brc_key_get(&value, t.session, "loose", NULL, NULL, &t.err));
    brc_oid id = scenario_commit(&t, "second");
    brc_commit *c;
    OK(&t, brc_commit_read(&c, t.repo, &id, &t.err));
    ck_assert_uint_eq(c->nparents, 1);
    brc_commit_free(c);
    brc_buf_dispose(&value);
}

TEST(moves_are_forgotten_with_what_moved)
{
    brc_iter *it;
    const brc_change *change;
    for (int inner = 0; inner < 2; inner++) {
        sp_save(&t, "x");
        if (inner)
            sp_save(&t, "y");
        OK(&t, brc_node_move(t.session, "/g/b", "/b", 0, &t.err));
        if (inner)
            sp_release(&t, "y");
        sp_back(&t, "x");
        scenario_whole(&t);
    }
    scenario_commit(&t, "second");
    OK(&t, brc_diff(&it, t.repo, "HEAD~1", "HEAD", NULL, &t.err));
    while (brc_next(it, &change, &t.err) > 0)
        ck_assert_ptr_null(strstr(change->path, "b"));
    brc_iter_free(it);
}

/* All keys of the store view with their bytes. */
static void all_keys(brc_buf *out)
{
    brc_iter *it;
    const char *key;
    int rc;
    out->len = 0;
    OK(&t, brc_keys(&it, t.session, "", 0, &t.err));
    while ((rc = brc_next(it, &key, &t.err)) > 0) {
        OK(&t, brc_buf_text(out, key, &t.err));
        OK(&t, brc_buf_byte(out, '=', &t.err));
        OK(&t, brc_key_get(out, t.session, key, NULL, NULL, &t.err));
    }
    ck_assert_msg(rc == 0, "%s", t.err.message);
    brc_iter_free(it);
}

static void set_key(const char *key, const char *text)
{
    OK(&t, brc_key_set(t.session, key, text, strlen(text), 0, &t.err));
}

TEST(the_key_view_has_the_keys_that_there_were)
{
    static const char group[] = "{\"zarr_format\":3,\"node_type\":\"group\"}";
    brc_buf before = BRC_BUF_INIT, after = BRC_BUF_INIT, array = BRC_BUF_INIT;
    OK(&t, brc_key_get(&array, t.session, "n/zarr.json", NULL, NULL, &t.err));
    set_key("m/c/0", "loose until there is m/zarr.json");
    set_key("p/q/zarr.json", group); /* p has no document */
    all_keys(&before);
    for (int i = 0; i < 2; i++) {
        sp_save(&t, "x");
        set_key("p/zarr.json", group);
        OK(&t, brc_key_set(t.session, "m/zarr.json", array.data, array.len, 0, &t.err));
        set_key("n/zarr.json", group);
        sp_save(&t, "y");
        OK(&t, brc_key_delete(t.session, "a/zarr.json", 0, &t.err));
        OK(&t, brc_key_delete(t.session, "a/c/1", 0, &t.err));
        OK(&t, brc_key_delete(t.session, "g/", BRC_KEY_PREFIX, &t.err));
        if (i == 1)
            sp_release(&t, "y");
        sp_back(&t, "x");
        all_keys(&after);
        ck_assert_uint_eq(after.len, before.len);
        ck_assert_mem_eq(after.data, before.data, before.len);
        scenario_whole(&t);
    }
    sp_release(&t, NULL);
    OK(&t, brc_key_delete(t.session, "m/c/0", 0, &t.err));
    scenario_commit(&t, "second");
    ck_assert_int_eq(sp_number(&t, "/n", 7), 207);
    brc_buf_dispose(&before);
    brc_buf_dispose(&after);
    brc_buf_dispose(&array);
}

TEST(open_arrays_go_on_as_the_array_is_then)
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

TEST(a_draft_that_began_with_the_savepoint_is_empty_again)
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

/* Somebody else commits: a private session without a change would follow, but for the savepoint. */
TEST(a_session_with_a_savepoint_stays_at_its_commit)
{
    scenario_commit(&t, "second");
    sp_make_private(&t);
    sp_save(&t, "x");
    brc_session *other = scenario_session(&t, t.repo, NULL, BRC_SESSION_WRITE);
    OK(&t, brc_node_remove(other, "/g", &t.err));
    OK(&t, scenario_commit_of(&t, other, "third", NULL));
    brc_session_free(other);
    ck_assert_int_eq(sp_number(&t, "/g/b", 0), 100);
    scenario_set_number(&t, "/a", 0, 5);
    sp_back(&t, "x");
    ck_assert_int_eq(sp_number(&t, "/g/b", 0), 100);
    sp_release(&t, "x");
    ck_assert_int_eq(scenario_kind(&t, "/g"), 0);
}

/* ---- transactions and bulk writes -------------------------------- */

TEST(savepoints_within_a_transaction_go_with_it)
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
    FAILS(&t, BRC_ENOTFOUND, brc_savepoint(t.session, BRC_SAVEPOINT_ROLLBACK, "y", &t.err));
    sp_back(&t, "x");
    ck_assert_int_eq(sp_number(&t, "/a", 0), 70);
}

TEST(a_transaction_may_begin_and_end_between)
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

TEST(a_bulk_write_is_taken_back_and_takes_no_savepoint)
{
    brc_array *a;
    sp_save(&t, "x");
    OK(&t, brc_bulk_begin(t.session, &t.err));
    scenario_set_number(&t, "/a", 3, 33);
    scenario_set_number(&t, "/n", 3, 33);
    OK(&t, brc_array_open(&a, t.session, "/a", &t.err));
    OK(&t, brc_attrs_set(t.session, "/g", "unit", "1", &t.err));
    FAILS(&t, BRC_EMISUSE, brc_savepoint(t.session, BRC_SAVEPOINT_SET, "y", &t.err));
    FAILS(&t, BRC_EMISUSE, brc_savepoint(t.session, BRC_SAVEPOINT_ROLLBACK, "x", &t.err));
    FAILS(&t, BRC_EMISUSE, brc_savepoint(t.session, BRC_SAVEPOINT_RELEASE, "x", &t.err));
    OK(&t, brc_bulk_end(t.session, BRC_END_KEEP, &t.err));
    ck_assert_int_eq(sp_number(&t, "/a", 3), 33);
    sp_back(&t, "x");
    ck_assert_int_eq(sp_number(&t, "/a", 3), 3);
    ck_assert_int_eq(sp_number(&t, "/a", 0), 70);
    ck_assert_int_eq(sp_number(&t, "/n", 3), 203);
    brc_array_free(a);
}

TEST(names_and_sessions_are_checked)
{
    char name[300];
    memset(name, 'x', sizeof(name));
    name[256] = '\0';
    FAILS(&t, BRC_EINVAL, brc_savepoint(t.session, BRC_SAVEPOINT_SET, name, &t.err));
    FAILS(&t, BRC_EINVAL, brc_savepoint(t.session, BRC_SAVEPOINT_SET, "", &t.err));
    FAILS(&t, BRC_EINVAL, brc_savepoint(t.session, BRC_SAVEPOINT_SET, NULL, &t.err));
    FAILS(&t, BRC_EINVAL, brc_savepoint(t.session, BRC_SAVEPOINT_SET, "\xff", &t.err));
    name[255] = '\0';
    sp_save(&t, name);
    sp_save(&t, "\"\n");
    sp_back(&t, name);
    sp_release(&t, name);
    brc_session *view = scenario_session(&t, t.repo, NULL, BRC_SESSION_VIEW);
    FAILS(&t, BRC_EREADONLY, brc_savepoint(view, BRC_SAVEPOINT_SET, "x", &t.err));
    FAILS(&t, BRC_EREADONLY, brc_savepoint(view, BRC_SAVEPOINT_ROLLBACK, "x", &t.err));
    brc_session_free(view);
}

TEST(what_settled_a_conflict_is_taken_back)
{
    brc_merge_result merged = BRC_MERGE_RESULT_INIT;
    brc_pick_result done = BRC_PICK_RESULT_INIT;
    brc_merge_opts opts = BRC_MERGE_OPTS_INIT;
    scenario_commit(&t, "second");
    OK(&t, brc_ref_create(t.repo, "side", NULL, NULL, 0, &t.err));
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
    OK(&t, brc_continue(&done, NULL, t.repo, NULL, &t.err));
    FAILS(&t, BRC_ENOTFOUND, brc_savepoint(t.session, BRC_SAVEPOINT_ROLLBACK, "x", &t.err));
}

/* ---- many -------------------------------- */

TEST(sixteen_nest_and_a_node_is_changed_in_each)
{
    char name[16];
    for (int i = 0; i < 16; i++) {
        snprintf(name, sizeof(name), "s%d", i);
        sp_save(&t, name);
        scenario_set_number(&t, "/a", 0, i);
        scenario_set_number(&t, "/n", (uint64_t)i % 8, i);
    }
    FAILS(&t, BRC_ELIMIT, brc_savepoint(t.session, BRC_SAVEPOINT_SET, "more", &t.err));
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

/* Each adds a row to the array's stack: these become fewer. */
TEST(many_savepoints_one_after_the_other_leave_a_short_stack)
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

static void write_all(const char *path, int32_t value)
{
    static int32_t values[20000];
    for (size_t i = 0; i < 20000; i++)
        values[i] = value;
    scenario_write(&t, t.session, path, values, sizeof(values));
}

/* Commits and copies of so many chunks go in batches, and dropping them too. */
TEST(large_arrays_are_copied_committed_and_taken_back)
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
    OK(&t, brc_node_move(t.session, "/big", "/copy", BRC_NODE_COPY, &t.err));
    scenario_set_number(&t, "/big", 4, -4);
    ck_assert_int_eq(sp_number(&t, "/copy", 3), -3);
    ck_assert_int_eq(sp_number(&t, "/copy", 4), 4);
    sp_back(&t, "x");
    ck_assert_int_eq(sp_number(&t, "/big", 3), 3);
    ck_assert_int_eq(scenario_kind(&t, "/copy"), 0);
    OK(&t, brc_node_move(t.session, "/big", "/copy", BRC_NODE_COPY, &t.err));
    sp_save(&t, "y");
    OK(&t, brc_node_remove(t.session, "/big", &t.err));
    sp_back(&t, "x");
    ck_assert_int_eq(sp_number(&t, "/big", 19999), 19999);
    scenario_set_number(&t, "/big", 5, -5);
    scenario_commit(&t, "all");
    ck_assert_int_eq(sp_number(&t, "/big", 5), -5);
    ck_assert_int_eq(sp_number(&t, "/big", 19999), 19999);
}

/* Nothing copies chunk rows. */
TEST(no_chunk_row_is_written_by_a_savepoint)
{
    static const char count[] = "SELECT count(*) FROM draft_chunk";
    scenario_numbers(&t, "/big", 3000, 1, 0);
    const int64_t before = scenario_ask(&t, count);
    sp_save(&t, "x");
    scenario_set_number(&t, "/big", 3, -3);
    sp_save(&t, "y");
    OK(&t, brc_node_move(t.session, "/big", "/large", 0, &t.err));
    ck_assert_int_eq(scenario_ask(&t, count), before + 1);
    sp_back(&t, "x");
    sp_release(&t, "x");
    ck_assert_int_eq(scenario_ask(&t, count), before);
}
