/* Repairs of files of which bytes or rows are damaged. */
#include <stdio.h>
#include <string.h>

#include "../kit/ios.h"
#include "../kit/scenario.h"
#include "../kit/suite.h"

TEST_SUITE(repair);

static scenario t;
static breccia *good;
static char good_file[120];

static void commit_two(void)
{
    scenario_numbers(&t, "/a", 64, 4, 0);
    scenario_commit(&t, "first");
    scenario_numbers(&t, "/g/b", 64, 4, 1000);
    scenario_set_number(&t, "/a", 5, 55);
    scenario_commit(&t, "second");
}

static void repair_setup(void)
{
    scenario_start(&t);
    commit_two();
}

static void repair_in_file_setup(void)
{
    scenario_start(&t);
    scenario_inline(&t);
    commit_two();
}

static void repair_teardown(void)
{
    brc_free(good);
    good = NULL;
    scenario_stop(&t);
}

/* The file as it is now. */
static void keep_copy(void)
{
    char sql[200];
    snprintf(good_file, sizeof(good_file), "%s/good.brc", t.dir);
    snprintf(sql, sizeof(sql), "VACUUM INTO '%s'", good_file);
    scenario_sql_shared(&t, sql);
    OK(&t, brc_open(&good, good_file, NULL, &t.err));
}

static brc_repair_report repair(uint32_t flags)
{
    brc_repair_report report = BRC_REPAIR_REPORT_INIT;
    OK(&t, brc_repair(&report, t.repo, good, flags, &t.err));
    return report;
}

/* Without a session: what it needs may be damaged. */
static void open_again(void)
{
    scenario_close(&t);
    t.repo = scenario_handle(&t, 0);
}

static void spoil(const char *kinds)
{
    char sql[300];
    snprintf(sql, sizeof(sql),
             "UPDATE blob SET data=zeroblob(length(data)) WHERE seq IN (SELECT place FROM object"
             " WHERE kind IN (%s))",
             kinds);
    scenario_sql(&t, sql);
    open_again();
}

static void all_is_there(void)
{
    scenario_reopen(&t);
    scenario_whole(&t);
    for (uint64_t i = 0; i < 64; i++) {
        ck_assert_int_eq(scenario_number(&t, t.session, "/a", i), i == 5 ? 55 : (int32_t)i);
        ck_assert_int_eq(scenario_number(&t, t.session, "/g/b", i), 1000 + (int32_t)i);
    }
}

CASE("repair", .setup = repair_setup, .teardown = repair_teardown, .timeout = 60);

TEST(every_kind_of_object_gets_its_good_copy)
{
    static const char *const kinds[] = {"1", "2", "3", "4", "1,2,3,4"};
    keep_copy();
    for (int i = 0; i < 5; i++) {
        spoil(kinds[i]);
        const brc_repair_report report = repair(0);
        ck_assert_uint_gt(report.replaced, 0);
        ck_assert_uint_eq(report.damaged + report.missing, 0);
        all_is_there();
    }
}

/* Once a lost commit is back, repair looks for the objects that it names. */
TEST(what_is_missing_comes_back_too)
{
    keep_copy();
    scenario_sql(&t, "DELETE FROM object WHERE kind IN (1,2,3,4); DELETE FROM blob WHERE seq<"
                     "(SELECT max(seq) FROM blob); UPDATE blob SET data=x''");
    open_again();
    const brc_repair_report report = repair(0);
    ck_assert_uint_gt(report.replaced, 30);
    ck_assert_uint_eq(report.damaged + report.missing, 0);
    all_is_there();
}

TEST(derived_rows_are_made_anew)
{
    scenario_sql_shared(&t, "UPDATE commit_info SET message='x', generation=7; DELETE FROM"
                            " commit_info WHERE time_us=(SELECT max(time_us) FROM commit_info);"
                            " UPDATE node_total SET chunks=chunks+1");
    const brc_repair_report report = repair(0);
    ck_assert_uint_eq(report.replaced + report.dropped + report.damaged + report.missing, 0);
    ck_assert_int_eq((int)scenario_ask(&t, "SELECT count(*) FROM commit_info WHERE message<>'x'"),
                     2);
    ck_assert_int_eq((int)scenario_ask(&t, "SELECT max(generation) FROM commit_info"), 2);
    all_is_there();
}

CASE("rows", .setup = repair_in_file_setup, .teardown = repair_teardown, .timeout = 60);

/* Nothing goes that can be read, and nothing is made up. */
TEST(what_cannot_be_read_goes_only_where_that_is_asked_for)
{
    const int64_t objects = scenario_ask(&t, "SELECT count(*) FROM object");
    const int64_t chunks = scenario_ask(&t, "SELECT count(*) FROM object WHERE kind=1");
    spoil("1");
    brc_repair_report report = repair(0);
    ck_assert_int_eq((int64_t)report.damaged, chunks);
    ck_assert_int_eq(scenario_ask(&t, "SELECT count(*) FROM object"), objects);
    report = repair(BRC_REPAIR_DROP);
    ck_assert_int_eq((int64_t)report.dropped, chunks);
    ck_assert_uint_eq(report.damaged, 0);
    ck_assert_int_eq((int64_t)report.missing, chunks);
    ck_assert_int_eq(scenario_ask(&t, "SELECT count(*) FROM object"), objects - chunks);
    int32_t value;
    scenario_reopen(&t);
    brc_array *a = scenario_array_at(&t, t.session, "/a");
    brc_sel sel = BRC_SEL_INIT;
    sel_all(&sel, a);
    sel.count[0] = 1;
    ck_assert_int_eq(brc_array_read(a, &sel, &value, sizeof(value), &t.err), BRC_ECORRUPT);
    brc_array_free(a);
    /* the same content, stored again, is what was lost */
    OK(&t, brc_node_remove(t.session, "/a", &t.err));
    scenario_numbers(&t, "/a", 64, 4, 0);
    OK(&t, brc_node_remove(t.session, "/g/b", &t.err));
    scenario_numbers(&t, "/g/b", 64, 4, 1000);
    report = repair(BRC_REPAIR_DROP);
    ck_assert_uint_eq(report.dropped, 0);
    ck_assert_uint_eq(report.missing, 1); /* the one with 55 in it */
}

CASE("repair", .setup = repair_setup, .teardown = repair_teardown, .timeout = 60);

/* A copy that is damaged itself is of no use. */
TEST(a_bad_copy_is_not_taken)
{
    char sql[300];
    keep_copy();
    brc_free(good);
    good = NULL;
    spoil("1");
    snprintf(sql, sizeof(sql), "ATTACH '%s' AS other; UPDATE other.blob SET data="
                               "zeroblob(length(data)); DETACH other", good_file);
    scenario_sql_shared(&t, sql);
    OK(&t, brc_open(&good, good_file, NULL, &t.err));
    const brc_repair_report report = repair(0);
    ck_assert_uint_eq(report.replaced, 0);
    ck_assert_uint_gt(report.damaged, 0);
}

TEST(a_transaction_is_not_repaired)
{
    OK(&t, brc_begin(t.repo, &t.err));
    FAILS(&t, BRC_EMISUSE, brc_repair(NULL, t.repo, NULL, 0, &t.err));
    OK(&t, brc_end(t.repo, 0, &t.err));
    FAILS(&t, BRC_EINVAL, brc_repair(NULL, t.repo, NULL, 64, &t.err));
    scenario_whole(&t);
}

/* ---- what still stands -------------------------------- */

static char stood[400];

static int note_standing(void *ctx, const brc_standing *one)
{
    (void)ctx;
    snprintf(stood + strlen(stood), sizeof(stood) - strlen(stood), "%s%s%s %d/%d",
             *stood ? "; " : "", one->name, one->flags & BRC_STANDS_TIP ? "" : "!", (int)one->whole,
             (int)one->commits);
    for (size_t i = 0; i < one->nlost; i++)
        snprintf(stood + strlen(stood), sizeof(stood) - strlen(stood), " %s", one->lost[i]);
    return 0;
}

static const char *standing(void)
{
    stood[0] = '\0';
    open_again();
    OK(&t, brc_fsck(t.repo, 0, NULL, note_standing, NULL, NULL, &t.err));
    return stood;
}

static void spoil_one(const char *which)
{
    char sql[400];
    snprintf(sql, sizeof(sql), "UPDATE blob SET data=zeroblob(length(data)) WHERE seq=(SELECT place"
                               " FROM object WHERE %s LIMIT 1)", which);
    scenario_sql(&t, sql);
}

TEST(it_says_what_is_lost_and_what_stands)
{
    brc_oid first;
    char sql[300], hex[65];
    OK(&t, brc_ref_create(t.repo, "v1", "HEAD~1", NULL, BRC_REF_TAG, &t.err));
    OK(&t, brc_resolve(&first, t.repo, "v1", &t.err));
    ck_assert_str_eq(standing(), "");
    keep_copy();
    snprintf(sql, sizeof(sql), "id=(SELECT id FROM object WHERE kind=4 AND id=x'%s')",
             brc_oid_format(hex, &first));
    spoil_one(sql);
    ck_assert_str_eq(standing(), "main 1/2; v1! 0/1"); /* the first commit */
    repair(0);
    ck_assert_str_eq(standing(), "");
    spoil("1");
    ck_assert_str_eq(standing(), "main! 0/2 /a /g/b; v1! 0/1 /a");
    repair(0);
    ck_assert_str_eq(standing(), "");
    spoil_one("id=(SELECT max(id) FROM (SELECT id FROM object WHERE kind=2))");
    ck_assert_ptr_nonnull(strchr(standing(), '!'));
}
