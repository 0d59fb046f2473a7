/*
 * Merging, by what it is to users: each rule in both directions. One file has a base on `main`;
 * `ours` and `theirs` are branches of it, and each is merged into the other.
 */
#include <stdio.h>
#include <string.h>

#include "../kit/scenario.h"
#include "../kit/suite.h"
#include "../kit/versions.h"

TEST_SUITE(merge);

static scenario t;

static void merge_setup(void)
{
    scenario_start(&t);
    scenario_numbers(&t, "/a", 8, 2, 1);
    scenario_numbers(&t, "/g/b", 8, 2, 1);
    OK(&t, brc_attrs_set(t.session, "/a", "k", "1", &t.err));
    OK(&t, brc_attrs_set(t.session, "/a", "o", "{\"x\":1,\"y\":[1]}", &t.err));
    scenario_commit(&t, "base");
    OK(&t, brc_ref_create(t.repo, "ours", NULL, NULL, 0, &t.err));
    OK(&t, brc_ref_create(t.repo, "theirs", NULL, NULL, 0, &t.err));
}

static void merge_teardown(void)
{
    scenario_stop(&t);
}

typedef void (*edit_fn)(void);

static void edit_on(const char *branch, edit_fn edit)
{
    scenario_be_on(&t, branch);
    edit();
    if (!scenario_clean(&t))
        scenario_commit(&t, branch);
}

static int merge_with(const char *rev, uint32_t flags, char *conflict, size_t size)
{
    brc_merge_opts opts = BRC_MERGE_OPTS_INIT;
    brc_merge_result result = BRC_MERGE_RESULT_INIT;
    brc_iter *it;
    const brc_conflict *c;
    size_t n = 0;
    opts.flags = flags;
    conflict[0] = '\0';
    OK(&t, brc_merge(&result, &it, t.repo, rev, &opts, &t.err));
    while (brc_next(it, &c, &t.err) > 0) {
        size_t len = strlen(conflict);
        snprintf(conflict + len, size - len, "%s%s %s%s%s", n > 0 ? "; " : "", c->kind, c->path,
                 c->key != NULL ? " " : "", c->key != NULL ? c->key : "");
        n++;
    }
    brc_iter_free(it);
    ck_assert_uint_eq(n, result.conflicts);
    ck_assert_int_eq(n > 0, result.result == BRC_MERGE_CONFLICT);
    return result.result;
}

/* ---- rows of a table -------------------------------- */

static void nothing(void)
{
}
static void a0_is_50(void)
{
    scenario_set_number(&t, "/a", 0, 50);
}
static void a1_is_60(void)
{
    scenario_set_number(&t, "/a", 1, 60);
}
static void a0_is_70(void)
{
    scenario_set_number(&t, "/a", 0, 70);
}
static void a7_is_80(void)
{
    scenario_set_number(&t, "/a", 7, 80);
}
static void a7_as_it_was(void)
{
    scenario_set_number(&t, "/a", 7, 80);
    scenario_set_number(&t, "/a", 7, 8);
}
static void resize_a(uint64_t n)
{
    scenario_resize(&t, t.session, "/a", n);
}
static void a_is_4_long(void)
{
    resize_a(4);
}
static void a_is_9_long(void)
{
    resize_a(9);
}
static void a_is_12_long(void)
{
    resize_a(12);
}
static void k_is_2(void)
{
    OK(&t, brc_attrs_set(t.session, "/a", "k", "2", &t.err));
}
static void k_is_1_0(void)
{
    OK(&t, brc_attrs_set(t.session, "/a", "k", "1.0", &t.err));
}
static void k_is_3(void)
{
    OK(&t, brc_attrs_set(t.session, "/a", "k", "3", &t.err));
}
static void k_is_gone(void)
{
    OK(&t, brc_attrs_set(t.session, "/a", "k", NULL, &t.err));
}
static void o_x_is_2(void)
{
    OK(&t, brc_attrs_set(t.session, "/a", "o", "{\"x\":2,\"y\":[1]}", &t.err));
}
static void o_y_is_2(void)
{
    OK(&t, brc_attrs_set(t.session, "/a", "o", "{\"x\":1,\"y\":[2]}", &t.err));
}
static void a_is_gone(void)
{
    OK(&t, brc_node_remove(t.session, "/a", &t.err));
}
static void a_is_a_group(void)
{
    OK(&t, brc_node_remove(t.session, "/a", &t.err));
    OK(&t, brc_group_create(t.session, "/a", NULL, &t.err));
}
static void codecs_of_a(const char *json)
{
    scenario_recode(&t, t.session, "/a", json, 0);
}
static void a_is_gzip(void)
{
    codecs_of_a("[{\"name\":\"bytes\",\"configuration\":{\"endian\":\"little\"}},"
                "{\"name\":\"gzip\",\"configuration\":{\"level\":1}}]");
}
static void a_is_plain(void)
{
    codecs_of_a("[{\"name\":\"bytes\",\"configuration\":{\"endian\":\"little\"}}]");
}
static void gzip_and_a0_is_50(void)
{
    a_is_gzip();
    a0_is_50();
}
static void g_is_h(void)
{
    OK(&t, brc_node_move(t.session, "/g", "/h", 0, &t.err));
}
static void g_is_i(void)
{
    OK(&t, brc_node_move(t.session, "/g", "/i", 0, &t.err));
}
static void g_is_gone(void)
{
    OK(&t, brc_node_remove(t.session, "/g", &t.err));
}
static void b0_is_9(void)
{
    scenario_set_number(&t, "/g/b", 0, 9);
}
static void n_in_g(void)
{
    scenario_numbers(&t, "/g/n", 4, 2, 5);
}
static void m_in_g(void)
{
    scenario_numbers(&t, "/g/n", 4, 2, 6);
}
static void a_in_g(void)
{
    OK(&t, brc_node_move(t.session, "/a", "/g/a", 0, &t.err));
}
static void g_in_a_new_one(void)
{
    OK(&t, brc_group_create(t.session, "/top", NULL, &t.err));
    OK(&t, brc_node_move(t.session, "/g", "/top/g", 0, &t.err));
}
static void a_is_z(void)
{
    OK(&t, brc_node_move(t.session, "/a", "/z", 0, &t.err));
}
static void b_is_z(void)
{
    OK(&t, brc_node_move(t.session, "/g/b", "/z", 0, &t.err));
}
static void z_is_new(void)
{
    scenario_numbers(&t, "/z", 4, 2, 5);
}
static void h_and_a_new_g(void)
{
    g_is_h();
    OK(&t, brc_group_create(t.session, "/g", "{\"new\":true}", &t.err));
}

static void a_is_made_again(void)
{
    a_is_gone();
    scenario_numbers(&t, "/a", 8, 2, 101);
}
static void a_is_made_shorter(void)
{
    a_is_gone();
    scenario_numbers(&t, "/a", 2, 2, 101);
}
static void a_is_made_in_two_commits(void)
{
    a_is_gone();
    scenario_commit(&t, "gone");
    scenario_numbers(&t, "/a", 8, 2, 101);
}
static void a_is_back(void)
{
    a_is_gone();
    scenario_commit(&t, "gone");
    OK(&t, brc_node_restore(t.session, "/a", "HEAD~1", &t.err));
}
static void a_is_back_and_0_is_50(void)
{
    a_is_back();
    scenario_commit(&t, "back");
    a0_is_50();
}
static void a_is_made_again_elsewhere(void)
{
    scenario_numbers(&t, "/new", 8, 2, 101);
    scenario_commit(&t, "new");
    a_is_gone();
    OK(&t, brc_node_move(t.session, "/new", "/a", 0, &t.err));
}
static void g_is_made_again(void)
{
    g_is_gone();
    scenario_numbers(&t, "/g/b", 8, 2, 101);
}
static void b_is_made_again(void)
{
    OK(&t, brc_node_remove(t.session, "/g/b", &t.err));
    scenario_numbers(&t, "/g/b", 8, 2, 101);
}
static void b_is_made_again_in_h(void)
{
    b_is_made_again();
    g_is_h();
}

/* `is`: what is then so, by path and element, or the conflicts. */
static const struct merge_row {
    const char *name;
    edit_fn ours, theirs;
    const char *conflict;      /* "": none. Of a merge of theirs into ours                     */
    const char *path;          /* and then this array has so many elements, and this one so    */
    uint64_t n, at;
    int32_t value;
} merge_rows[] = {
    {"two elements of one chunk", a0_is_50, a1_is_60, "", "/a", 8, 0, 50},
    {"and the other", a0_is_50, a1_is_60, "", "/a", 8, 1, 60},
    {"one element", a0_is_50, a0_is_70, "chunk /a c/0", NULL, 0, 0, 0},
    {"the same change", a0_is_50, a0_is_50, "", "/a", 8, 0, 50},
    {"two chunks", a0_is_50, a7_is_80, "", "/a", 8, 7, 80},
    {"two members", k_is_2, a0_is_50, "", "/a", 8, 0, 50},
    {"one member", k_is_2, k_is_3, "metadata /a /attributes/k", NULL, 0, 0, 0},
    {"a member in another text", k_is_2, k_is_1_0, "", "/a", 8, 0, 1},
    {"a member dropped and changed", k_is_2, k_is_gone, "metadata /a /attributes/k", NULL, 0, 0, 0},
    {"members of a member", o_x_is_2, o_y_is_2, "", "/a", 8, 0, 1},
    {"deleted, and a chunk changed", a_is_gone, a0_is_50, "deleted /a", NULL, 0, 0, 0},
    {"deleted, and an attribute changed", a_is_gone, k_is_2, "deleted /a", NULL, 0, 0, 0},
    {"deleted, and stored otherwise", a_is_gone, a_is_gzip, "", "/g/b", 8, 0, 1},
    {"replaced, and a chunk changed", a_is_a_group, a0_is_50, "replaced /a", NULL, 0, 0, 0},
    {"codecs, and data", a_is_gzip, a0_is_50, "", "/a", 8, 0, 50},
    {"codecs on both sides", gzip_and_a0_is_50, a_is_plain, "storage /a /codecs", NULL, 0, 0, 0},
    {"equal growth", a_is_9_long, a_is_9_long, "", "/a", 9, 8, 0},
    {"growth, and a write inside", a_is_12_long, a7_is_80, "", "/a", 12, 7, 80},
    {"growth to two lengths", a_is_9_long, a_is_12_long, "metadata /a /shape", NULL, 0, 0, 0},
    {"shrunk, and a write in what is lost", a_is_4_long, a7_is_80, "chunk /a c/3", NULL, 0, 0, 0},
    {"shrunk, and a write elsewhere", a_is_4_long, a0_is_50, "", "/a", 4, 0, 50},
    {"shrunk, and the same values in what is lost", a_is_4_long, a7_as_it_was, "", "/a", 4, 0, 1},
    {"moved, and changed", g_is_h, b0_is_9, "", "/h/b", 8, 0, 9},
    {"moved, and something new in it", g_is_h, n_in_g, "", "/h/n", 4, 0, 5},
    {"moved to two places", g_is_h, g_is_i, "moved /h", NULL, 0, 0, 0},
    {"moved, and deleted", g_is_h, g_is_gone, "deleted /h", NULL, 0, 0, 0},
    {"moved, and made again", h_and_a_new_g, b0_is_9, "", "/h/b", 8, 0, 9},
    {"moved into what is moved", a_in_g, g_is_h, "", "/h/a", 8, 0, 1},
    {"moved into what is new", g_in_a_new_one, b0_is_9, "", "/top/g/b", 8, 0, 9},
    {"two nodes at one place", a_is_z, b_is_z, "moved /g/b", NULL, 0, 0, 0},
    {"a node moved to where one is new", z_is_new, a_is_z, "moved /a", NULL, 0, 0, 0},
    {"two new ones at one place", n_in_g, m_in_g, "chunk /g/n c/0; chunk /g/n c/1", NULL, 0, 0, 0},
    {"the same new one", n_in_g, n_in_g, "", "/g/n", 4, 0, 5},
    {"made again, and a chunk changed", a_is_made_again, a7_is_80, "replaced /a", NULL, 0, 0, 0},
    {"made again, and an attribute changed", a_is_made_again, k_is_2, "replaced /a", NULL, 0, 0, 0},
    {"made again shorter, and resized", a_is_made_shorter, a_is_9_long, "replaced /a", NULL, 0, 0,
     0},
    {"made again, and stored otherwise", a_is_made_again, a_is_gzip, "", "/a", 8, 7, 108},
    {"made again, and nothing else", a_is_made_again, nothing, "", "/a", 8, 7, 108},
    {"made again, and another changed", a_is_made_again, b0_is_9, "", "/a", 8, 0, 101},
    {"made again, and deleted", a_is_made_again, a_is_gone, "", "/a", 8, 7, 108},
    {"made again, and moved", a_is_made_again, a_is_z, "deleted /z", NULL, 0, 0, 0},
    {"made again in two commits, and a chunk changed", a_is_made_in_two_commits, a7_is_80,
     "replaced /a", NULL, 0, 0, 0},
    {"made elsewhere and moved there, and a chunk changed", a_is_made_again_elsewhere, a7_is_80,
     "replaced /a", NULL, 0, 0, 0},
    {"gone and back, and a chunk changed", a_is_back, a7_is_80, "", "/a", 8, 7, 80},
    {"gone, back and then changed, and a chunk changed", a_is_back_and_0_is_50, a7_is_80, "", "/a",
     8, 7, 80},
    {"and the other side", a_is_back_and_0_is_50, a7_is_80, "", "/a", 8, 0, 50},
    {"made again by both", a_is_made_again, a_is_made_shorter, "metadata /a /shape", NULL, 0, 0, 0},
    {"made again by both, equally", a_is_made_again, a_is_made_again, "", "/a", 8, 7, 108},
    {"a group made again, and a chunk in it changed", g_is_made_again, b0_is_9, "replaced /g", NULL,
     0, 0, 0},
    {"a group made again, and another changed", g_is_made_again, a0_is_50, "", "/g/b", 8, 7, 108},
    {"made again in a group that is moved", b_is_made_again, g_is_h, "", "/h/b", 8, 7, 108},
    {"made again in a group that is moved, and a chunk changed", b_is_made_again_in_h, b0_is_9,
     "replaced /h/b", NULL, 0, 0, 0},
    {"made again in a group that is deleted", b_is_made_again, g_is_gone, "deleted /g", NULL, 0, 0,
     0},
    {"a change on one side alone", a0_is_50, nothing, "", "/a", 8, 0, 50},
};

static void check_row(const struct merge_row *row, int mirrored, uint32_t flags)
{
    char conflict[512];
    edit_on(mirrored ? "theirs" : "ours", row->ours);
    edit_on(mirrored ? "ours" : "theirs", row->theirs);
    scenario_be_on(&t, "ours");
    merge_with("theirs", flags, conflict, sizeof(conflict));
    if (flags != 0 || row->path == NULL) {
        ck_assert_msg((conflict[0] != '\0') == (row->conflict[0] != '\0' && flags == 0),
                      "%s: '%s'", row->name, conflict);
        if (!mirrored && flags == 0)
            ck_assert_msg(strcmp(conflict, row->conflict) == 0, "%s: '%s'", row->name, conflict);
    } else {
        ck_assert_msg(conflict[0] == '\0', "%s: %s", row->name, conflict);
        brc_array *a = scenario_array_at(&t, t.session, row->path);
        ck_assert_uint_eq(brc_array_describe(a)->shape[0], row->n);
        brc_array_free(a);
        ck_assert_msg(scenario_number(&t, t.session, row->path, row->at) == row->value, "%s",
                      row->name);
    }
    scenario_whole(&t);
}

CASE("merge", .setup = merge_setup, .teardown = merge_teardown);

LOOP(m1_each_rule, 0, 2 * sizeof(merge_rows) / sizeof(merge_rows[0]))
{
    check_row(&merge_rows[_i / 2], _i % 2, 0);
}

/* Every conflict but those about a place can be settled for either side. */
LOOP(m2_each_conflict_is_settled_for_a_side, 0, 2 * sizeof(merge_rows) / sizeof(merge_rows[0]))
{
    const struct merge_row *row = &merge_rows[_i / 2];
    if (row->conflict[0] == '\0' || strncmp(row->conflict, "moved /", 7) == 0)
        return;
    check_row(row, 0, _i % 2 == 0 ? BRC_MERGE_OURS : BRC_MERGE_THEIRS);
}

static void a_is_4_long_and_0_is_50(void)
{
    a_is_4_long();
    a0_is_50();
}

static void cut_on_one_side(int writer_is_ours)
{
    edit_on("ours", writer_is_ours ? a7_is_80 : a_is_4_long_and_0_is_50);
    edit_on("theirs", writer_is_ours ? a_is_4_long_and_0_is_50 : a7_is_80);
    scenario_be_on(&t, "ours");
}

static void check_cut(int is_cut)
{
    brc_array *a = scenario_array_at(&t, t.session, "/a");
    ck_assert_uint_eq(brc_array_describe(a)->shape[0], is_cut ? 4 : 8);
    brc_array_free(a);
    ck_assert_int_eq(scenario_number(&t, t.session, "/a", 0), 50);
    ck_assert_int_eq(scenario_number(&t, t.session, "/a", 3), 4);
    if (!is_cut)
        ck_assert_int_eq(scenario_number(&t, t.session, "/a", 7), 80);
    scenario_whole(&t);
}

/* The chunks of the favoured side stay, also where the other one has cut; and so do the other's
 * chunks elsewhere. */
LOOP(m5_who_is_favoured_loses_nothing_to_a_smaller_shape, 0, 4)
{
    const int writer_is_ours = _i & 1, writer_is_favoured = _i >> 1;
    const uint32_t flags = writer_is_ours == writer_is_favoured ? BRC_MERGE_OURS
                                                                : BRC_MERGE_THEIRS;
    char conflict[512];
    cut_on_one_side(writer_is_ours);
    merge_with("theirs", flags, conflict, sizeof(conflict));
    ck_assert_str_eq(conflict, "");
    check_cut(!writer_is_favoured);
}

/* The same in two steps. While it is open the array is as long as ours has it. */
LOOP(m6_an_open_merge_loses_nothing_to_a_smaller_shape, 0, 4)
{
    const int writer_is_ours = _i & 1, writer_is_favoured = _i >> 1;
    const uint32_t side = writer_is_ours == writer_is_favoured ? BRC_MERGE_OURS
                                                               : BRC_MERGE_THEIRS;
    brc_pick_result result = BRC_PICK_RESULT_INIT;
    char conflict[512];
    uint64_t n;
    cut_on_one_side(writer_is_ours);
    merge_with("theirs", BRC_MERGE_KEEP, conflict, sizeof(conflict));
    ck_assert_str_eq(conflict, "chunk /a c/3");
    check_cut(!writer_is_ours);
    OK(&t, brc_merge_settle(&n, t.repo, side, NULL, 0, &t.err));
    ck_assert_uint_eq(n, 1);
    OK(&t, brc_continue(&result, NULL, t.repo, NULL, &t.err));
    ck_assert_int_eq(result.result, BRC_PICK_COMMITTED);
    check_cut(!writer_is_favoured);
}

/* The same contents, whichever side is merged into the other. */
EACH(m3_merges_commute, merge_rows)
{
    const struct merge_row *row = &merge_rows[_i];
    char conflict[512];
    brc_commit *x, *y;
    brc_oid id;
    if (row->conflict[0] != '\0')
        return;
    edit_on("ours", row->ours);
    edit_on("theirs", row->theirs);
    OK(&t, brc_ref_create(t.repo, "mine", "ours", NULL, 0, &t.err));
    scenario_be_on(&t, "theirs");
    merge_with("mine", 0, conflict, sizeof(conflict));
    scenario_be_on(&t, "ours");
    OK(&t, brc_ref_create(t.repo, "other", "theirs~0", NULL, 0, &t.err));
    OK(&t, brc_resolve(&id, t.repo, "theirs", &t.err));
    OK(&t, brc_commit_read(&x, t.repo, &id, &t.err));
    if (x->nparents == 2) {
        OK(&t, brc_reset(t.repo, NULL, "mine", BRC_RESET_HARD, NULL, &t.err));
        merge_with("theirs~1", 0, conflict, sizeof(conflict));
        OK(&t, brc_resolve(&id, t.repo, "ours", &t.err));
        OK(&t, brc_commit_read(&y, t.repo, &id, &t.err));
        ck_assert_uint_eq(y->nparents, 2);
        ck_assert_msg(memcmp(&x->root, &y->root, sizeof(x->root)) == 0, "%s", row->name);
        brc_commit_free(y);
    }
    brc_commit_free(x);
}

TEST(m4_what_is_merged_is_not_collected_meanwhile)
{
    char conflict[512];
    other_handle other = OTHER_COLLECTS;
    edit_on("ours", a0_is_50);
    b0_is_9();
    scenario_commit(&t, "ours too");
    edit_on("theirs", a1_is_60);
    scenario_set_number(&t, "/g/b", 1, 10);
    scenario_commit(&t, "theirs too");
    other_begins(&t, &other);
    scenario_be_on(&t, "ours");
    merge_with("theirs", 0, conflict, sizeof(conflict));
    other_ends(&other);
    ck_assert_str_eq(conflict, "");
    ck_assert_int_eq(scenario_number(&t, t.session, "/a", 0), 50);
    ck_assert_int_eq(scenario_number(&t, t.session, "/a", 1), 60);
    ck_assert_int_eq(scenario_number(&t, t.session, "/g/b", 0), 9);
    ck_assert_int_eq(scenario_number(&t, t.session, "/g/b", 1), 10);
    scenario_whole(&t);
}

/* Its first change of the file is made while it reads, and takes the file into WAL mode. */
TEST(m6_a_merge_may_be_the_first_to_write_a_log)
{
    char conflict[512];
    edit_on("ours", a0_is_50);
    scenario_be_on(&t, "theirs");
    scenario_set_number(&t, "/a", 2, 60); /* another chunk */
    scenario_commit(&t, "theirs");
    scenario_be_on(&t, "ours");
    OK(&t, brc_config_set(t.repo, "journal", "wal", &t.err));
    scenario_reopen(&t);
    merge_with("theirs", 0, conflict, sizeof(conflict));
    ck_assert_str_eq(conflict, "");
    ck_assert_int_eq(scenario_number(&t, t.session, "/a", 0), 50);
    ck_assert_int_eq(scenario_number(&t, t.session, "/a", 2), 60);
}

/* A third branch wrote chunks of the old array: what a merge took for new is so afterwards too. */
static int32_t write_value;

static void write_fifth(void)
{
    scenario_set_number(&t, "/a", 4, 77);
}

static void write_first(void)
{
    scenario_set_number(&t, "/a", 0, write_value);
}

/* A trial needs no right to write, whether or not there is a conflict. */
LOOP(m9_a_trial_reads_only, 0, 2)
{
    char conflict[200];
    brc_open_opts opts = BRC_OPEN_OPTS_INIT;
    brc_merge_result result = BRC_MERGE_RESULT_INIT;
    breccia *writer = t.repo;
    write_value = 5;
    edit_on("ours", write_first);
    write_value = 6;
    edit_on("theirs", _i ? write_first : write_fifth);
    scenario_be_on(&t, "ours");
    opts.flags = BRC_OPEN_READONLY;
    OK(&t, scenario_connect(&t.repo, t.file, &opts, &t.err));
    ck_assert_int_eq(merge_with("theirs", BRC_MERGE_DRY_RUN, conflict, sizeof(conflict)),
                     _i ? BRC_MERGE_CONFLICT : BRC_MERGE_MERGED);
    FAILS(&t, BRC_EREADONLY, brc_merge(&result, NULL, t.repo, "theirs", NULL, &t.err));
    brc_free(t.repo);
    t.repo = writer;
}

TEST(m7_what_was_merged_as_new_stays_new)
{
    char conflict[512];
    OK(&t, brc_ref_create(t.repo, "third", "ours", NULL, 0, &t.err));
    edit_on("theirs", a_is_made_again);
    edit_on("third", a7_is_80);
    edit_on("ours", b0_is_9);
    scenario_be_on(&t, "ours");
    merge_with("theirs", 0, conflict, sizeof(conflict));
    ck_assert_str_eq(conflict, "");
    ck_assert_int_eq(scenario_number(&t, t.session, "/a", 7), 108);
    merge_with("third", 0, conflict, sizeof(conflict));
    ck_assert_str_eq(conflict, "replaced /a");
    merge_with("third", BRC_MERGE_THEIRS, conflict, sizeof(conflict));
    ck_assert_int_eq(scenario_number(&t, t.session, "/a", 7), 80);
    ck_assert_int_eq(scenario_number(&t, t.session, "/a", 0), 1);
    scenario_whole(&t);
}

/* The same where the merge was open, and the new one was chosen. */
TEST(m8_what_was_chosen_as_new_stays_new)
{
    brc_pick_result result = BRC_PICK_RESULT_INIT;
    char conflict[512];
    uint64_t n;
    OK(&t, brc_ref_create(t.repo, "third", "ours", NULL, 0, &t.err));
    edit_on("theirs", a_is_made_again);
    edit_on("third", a0_is_50);
    edit_on("ours", a7_is_80);
    scenario_be_on(&t, "ours");
    merge_with("theirs", BRC_MERGE_KEEP, conflict, sizeof(conflict));
    ck_assert_str_eq(conflict, "replaced /a");
    ck_assert_int_eq(scenario_number(&t, t.session, "/a", 7), 80);
    ck_assert_int_eq(scenario_number(&t, t.session, "/a", 0), 1);
    OK(&t, brc_merge_settle(&n, t.repo, BRC_MERGE_THEIRS, NULL, 0, &t.err));
    OK(&t, brc_continue(&result, NULL, t.repo, NULL, &t.err));
    ck_assert_int_eq(result.result, BRC_PICK_COMMITTED);
    ck_assert_int_eq(scenario_number(&t, t.session, "/a", 7), 108);
    ck_assert_int_eq(scenario_number(&t, t.session, "/a", 0), 101);
    merge_with("third", 0, conflict, sizeof(conflict));
    ck_assert_str_eq(conflict, "replaced /a");
    scenario_whole(&t);
}

/* SQLite counts them in the file's head. */
static uint32_t transactions(void)
{
    uint8_t count[4];
    FILE *f = fopen(t.file, "rb");
    ck_assert_ptr_nonnull(f);
    ck_assert_int_eq(fseek(f, 24, SEEK_SET), 0);
    ck_assert_uint_eq(fread(count, 1, sizeof(count), f), sizeof(count));
    fclose(f);
    return (uint32_t)count[0] << 24 | (uint32_t)count[1] << 16 | (uint32_t)count[2] << 8 | count[3];
}

static void a_is_edited_in_both_chunks(void)
{
    write_first();
    scenario_set_number(&t, "/a", 4, write_value);
}

/* Chunks merged by ids, and chunks decoded, merged and stored: each transaction is five syncs. */
LOOP(m10_a_merge_of_an_array_is_one_transaction, 0, 2)
{
    char conflict[200];
    write_value = 60;
    edit_on("ours", a_is_edited_in_both_chunks);
    edit_on("theirs", _i ? a1_is_60 : a7_is_80);
    scenario_be_on(&t, "ours");
    const uint32_t before = transactions();
    ck_assert_int_eq(merge_with("theirs", 0, conflict, sizeof(conflict)), BRC_MERGE_MERGED);
    ck_assert_uint_eq(transactions() - before, 1);
    ck_assert_int_eq(scenario_number(&t, t.session, "/a", 0), 60);
    ck_assert_int_eq(scenario_number(&t, t.session, "/a", _i ? 1 : 7), _i ? 60 : 80);
    scenario_whole(&t);
}
