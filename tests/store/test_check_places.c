/* Blobs without an object and objects in one place are found, by however many at a time. */
#include <stdio.h>

#include "../../src/store/check.h"
#include "../../src/work/session.h"
#include "../kit/scenario.h"
#include "../kit/suite.h"

TEST_SUITE(check_places);

static scenario t;

/* Five commits of 40 different chunks each: objects in several rows of bytes. */
static void places_setup(void)
{
    scenario_start(&t);
    scenario_numbers(&t, "/a", 40, 1, 1);
    for (int c = 0; c < 5; c++) {
        for (uint64_t i = 0; i < 40; i++)
            scenario_set_number(&t, "/a", i, 1000 * c + (int32_t)i + 100);
        scenario_commit(&t, "next");
    }
    ck_assert_int_ge(scenario_ask(&t, "SELECT count(DISTINCT place) FROM object"), 10);
}

static void places_teardown(void)
{
    scenario_stop(&t);
}

static int doubtful(size_t at_once)
{
    int is;
    OK(&t, brc_store_begin_read(t.repo->store, &t.err));
    OK(&t, brc_check_places(t.repo->store, at_once, &is, &t.err));
    brc_store_end_read(t.repo->store);
    return is;
}

static void check_all(int wanted)
{
    const int64_t most = scenario_ask(&t, "SELECT max(n) FROM (SELECT count(*) AS n FROM object"
                                          " WHERE backend=0 GROUP BY place)");
    /* at least those of two places, so that half of them can wait */
    for (size_t at_once = 2 * (size_t)most + 2; at_once < 2000; at_once *= 2)
        ck_assert_int_eq(doubtful(at_once), wanted);
    ck_assert_int_eq(doubtful(BRC_PLACES_AT_ONCE), wanted);
}

CASE("places", .setup = places_setup, .teardown = places_teardown);

TEST(what_is_well_is_not_doubted)
{
    check_all(0);
    scenario_sql(&t, "SELECT 1"); /* every object in a row of its own: many places */
    check_all(0);
}

/* Whichever it is, and the first and the last of all rows. */
TEST(a_blob_without_an_object_is_found)
{
    char sql[200];
    scenario_sql(&t, "INSERT INTO blob(seq, data) VALUES (-5, x'01')");
    ck_assert_int_eq(doubtful(4), 1);
    scenario_sql(&t, "UPDATE blob SET seq=1000000 WHERE seq=-5");
    ck_assert_int_eq(doubtful(4), 1);
    scenario_sql(&t, "DELETE FROM blob WHERE seq=1000000");
    ck_assert_int_eq(doubtful(4), 0);
    for (int i = 0; i < 40; i++) {
        const long place = (long)scenario_ask(&t, "SELECT min(place) FROM object") + i;
        snprintf(sql, sizeof(sql), "UPDATE object SET place=place+2000000 WHERE place=%ld", place);
        scenario_sql_shared(&t, sql);
        ck_assert_msg(doubtful(4) == 1, "place %ld", place);
        snprintf(sql, sizeof(sql), "UPDATE object SET place=%ld WHERE place>2000000", place);
        scenario_sql_shared(&t, sql);
    }
}

TEST(an_empty_blob_and_what_is_left_are_no_fault)
{
    scenario_sql(&t, "INSERT INTO blob(seq, data) VALUES (1000000, x'')");
    static const char left[] = "INSERT INTO blob(seq, data) VALUES (1000001, x'0102');"
                               "INSERT INTO removed VALUES (0, 1000001, '', 2, 2, 1, 1, 0,"
                               " row_sum('removed', 0, 1000001, '', 2, 2, 1, 1, 0))";
    scenario_sql_shared(&t, left);
    check_all(0);
    scenario_sql_shared(&t, "UPDATE removed SET bytes=1 WHERE place=1000001");
    check_all(1);
}

/* One in the bytes of another; also where a short one lies between. */
TEST(two_objects_in_one_place_are_found)
{
    scenario_sql(&t, "UPDATE object SET place=(SELECT place FROM object GROUP BY place ORDER BY"
                     " place LIMIT 1 OFFSET 30) WHERE place=(SELECT place FROM object GROUP BY"
                     " place ORDER BY place LIMIT 1 OFFSET 31)");
    scenario_sql_shared(&t, "DELETE FROM blob WHERE seq NOT IN (SELECT place FROM object)");
    check_all(1);
}

TEST(a_long_one_is_compared_with_all_that_follow)
{
    scenario_sql_shared(&t,
                        "INSERT INTO blob(seq, data) VALUES (1000000, zeroblob(10));"
                        "UPDATE object SET place=1000000, offset=CASE rank"
                        " WHEN 1 THEN 0 WHEN 2 THEN 1 ELSE 2 END, stored=CASE rank WHEN 1 THEN 10"
                        " ELSE 0 END + (rank=3) FROM (SELECT id AS which, row_number() OVER (ORDER"
                        " BY id) AS rank FROM object LIMIT 3) WHERE id=which;"
                        "DELETE FROM blob WHERE seq NOT IN (SELECT place FROM object)");
    ck_assert_int_eq(doubtful(BRC_PLACES_AT_ONCE), 1);
}
