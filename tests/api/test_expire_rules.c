/* The commits that stay when history is thinned, and why. */
#include <string.h>

#include "../kit/commits.h"
#include "../kit/suite.h"

TEST_SUITE(expire_rules);

SCENARIO_FIXTURE(t)

static void rules_setup(void)
{
    scenario_start(&t);
    scenario_numbers(&t, "/a", 16, 4, 0);
}

CASE("rules", .setup = rules_setup, .teardown = t_stop);

TEST(the_newest_of_each_day_stays)
{
    for (int d = 1; d <= 4; d++)
        for (int h = 0; h < 24; h += 8)
            commits_at(&t, (char[]){(char)('a' + d), (char)('0' + h / 8), '\0'},
                       commits_day(2026, 3, d), h);
    ck_assert_str_eq(commits_kept(&t, 3, 0, 0, 0), "e2 e1 e0");
    ck_assert_str_eq(commits_kept(&t, 0, 2, 0, 0), "e2 d2");
    ck_assert_str_eq(commits_kept(&t, 2, 2, 0, 0), "e2 e1 d2"); /* each by itself */
    ck_assert_str_eq(commits_kept(&t, 0, 4, 0, 0), "e2 d2 c2 b2");
    ck_assert_str_eq(commits_kept(&t, 0, 5, 0, 0), "e2 d2 c2 b2 b0"); /* not used up: the oldest */
    ck_assert_str_eq(commits_kept(&t, 0, 0, 0, 1), "e2");
}

/* 2020 has 53 weeks: the last one goes to January 3rd. */
TEST(weeks_begin_on_monday_whatever_the_year)
{
    commits_at(&t, "a", commits_day(2020, 12, 27), 23); /* Sunday */
    commits_at(&t, "b", commits_day(2020, 12, 28), 0);
    commits_at(&t, "c", commits_day(2020, 12, 31), 23);
    commits_at(&t, "d", commits_day(2021, 1, 1), 0);
    commits_at(&t, "e", commits_day(2021, 1, 3), 23);
    commits_at(&t, "f", commits_day(2021, 1, 4), 0);
    ck_assert_str_eq(commits_kept(&t, 0, 0, 2, 0), "f e");
    ck_assert_str_eq(commits_kept(&t, 0, 0, 3, 0), "f e a");
    ck_assert_str_eq(commits_kept(&t, 0, 0, 0, 2), "f c");
}

TEST(months_are_those_of_the_calendar)
{
    commits_at(&t, "a", commits_day(2024, 1, 31), 23);
    commits_at(&t, "b", commits_day(2024, 2, 1), 0);
    commits_at(&t, "c", commits_day(2024, 2, 29), 23);
    commits_at(&t, "d", commits_day(2024, 3, 1), 0);
    commits_at(&t, "e", commits_day(2025, 3, 1), 0);
    commits_at(&t, "f", commits_day(1969, 12, 31), 23); /* before 1970, too */
    commits_at(&t, "g", commits_day(1970, 1, 1), 0);
    ck_assert_str_eq(commits_kept(&t, 0, 0, 0, 5), "g f e d c");
    ck_assert_str_eq(commits_kept(&t, 0, 2, 0, 0), "g f");
}

/* One line, the oldest first: days since 1970, and the ones of these that two of a kind keep. */
typedef struct edge {
    const char *what;
    int64_t days[3];
    int rule; /* 0: days, 1: weeks, 2: months */
    const char *kept;
} edge;

static void check_edge(const edge *e)
{
    for (int i = 0; i < 3; i++)
        commits_at(&t, (char[]){(char)('a' + i), '\0'}, e->days[i], i == 1 ? 23 : 1);
    const char *kept = commits_kept(&t, 0, e->rule == 0 ? 2 : 0, e->rule == 1 ? 2 : 0,
                                    e->rule == 2 ? 2 : 0);
    ck_assert_msg(strcmp(kept, e->kept) == 0, "%s: '%s' are kept, not '%s'", e->what, kept,
                  e->kept);
}

/* "c b": the last two are in different spans; "c a": they are in one. */
static const edge edges[] = {
    {"the last day before 1970", {-40, -1, 0}, 0, "c b"},
    {"a day before 1970", {-40, -2, -2}, 0, "c a"},
    {"a Sunday before 1970", {-40, -4, -3}, 1, "c b"},
    {"a Monday before 1970", {-40, -10, -4}, 1, "c a"},
    {"the last day of a month before 1970", {-90, -32, -31}, 2, "c b"},
    {"a month before 1970", {-90, -31, -1}, 2, "c a"},
    {"the last of February of the year 0", {-719600, -719469, -719468}, 2, "c b"},
    {"a month before the year 0", {-719900, -719469 - 366, -719468 - 366}, 2, "c b"},
    {"the last of February of a year with no odd day", {47000, 47540, 47541}, 2, "c b"},
    {"the odd day of the year 2000", {10900, 11015, 11016}, 2, "c a"},
    {"the day after the odd one", {10900, 11016, 11017}, 2, "c b"},
};

EACH(spans_have_their_edges_everywhere, edges)
{
    check_edge(&edges[_i]);
}

/* Why one stays is told, and each reason by itself. */
static uint32_t reasons_of(const char *rev, uint32_t last, uint32_t daily, uint32_t weekly,
                           uint32_t monthly)
{
    brc_expire_opts opts = BRC_EXPIRE_OPTS_INIT;
    brc_iter *it;
    const brc_expired *one;
    brc_oid id;
    uint32_t reasons = UINT32_MAX;
    opts.flags = BRC_EXPIRE_DRY_RUN;
    opts.keep_last = last;
    opts.keep_daily = daily;
    opts.keep_weekly = weekly;
    opts.keep_monthly = monthly;
    OK(&t, brc_resolve(&id, t.repo, rev, &t.err));
    OK(&t, brc_expire(NULL, &it, t.repo, &opts, &t.err));
    while (brc_next(it, &one, &t.err) > 0)
        if (memcmp(&one->id, &id, sizeof(id)) == 0)
            reasons = one->reasons;
    brc_iter_free(it);
    return reasons;
}

TEST(each_commit_that_stays_has_its_reason)
{
    commits_line(&t, "abcdefghijklmnopqrstuvwxyz");
    OK(&t, brc_ref_create(t.repo, "v1", "HEAD~3", NULL, BRC_REF_TAG, &t.err));
    OK(&t, brc_ref_create(t.repo, "side", "HEAD~5", NULL, 0, &t.err));
    ck_assert_uint_eq(reasons_of("main", 0, 0, 0, 1), BRC_KEPT_TIP | BRC_KEPT_MONTHLY);
    ck_assert_uint_eq(reasons_of("main", 1, 1, 1, 0),
                      BRC_KEPT_TIP | BRC_KEPT_LAST | BRC_KEPT_DAILY | BRC_KEPT_WEEKLY);
    ck_assert_uint_eq(reasons_of("v1", 1, 0, 0, 0), BRC_KEPT_TAG);
    ck_assert_uint_eq(reasons_of("v1~1", 1, 0, 0, 0), 0); /* a tag has no line of its own */
    ck_assert_uint_eq(reasons_of("side", 1, 0, 0, 0), BRC_KEPT_TIP | BRC_KEPT_LAST);
    ck_assert_uint_eq(reasons_of("side~1", 2, 0, 0, 0), BRC_KEPT_LAST); /* each branch has one */
    ck_assert_uint_eq(reasons_of("side~2", 2, 0, 0, 0), 0);
    brc_session *s = scenario_session(&t, t.repo, "HEAD~9", BRC_SESSION_AT);
    ck_assert_uint_eq(reasons_of("HEAD~9", 1, 0, 0, 0), BRC_KEPT_IN_USE);
    brc_session_free(s);
    ck_assert_uint_eq(reasons_of("HEAD~9", 1, 0, 0, 0), 0);
}

/* A commit that was merged is not on the line, however new it is. */
TEST(the_line_is_that_of_first_parents)
{
    brc_session *main = t.session;
    brc_merge_result r = BRC_MERGE_RESULT_INIT;
    brc_merge_opts opts = BRC_MERGE_OPTS_INIT;
    opts.message = "m";
    opts.flags = BRC_MERGE_OURS;
    commits_line(&t, "ab");
    OK(&t, brc_ref_create(t.repo, "side", NULL, NULL, 0, &t.err));
    commits_line(&t, "cd");
    OK(&t, brc_session_open(&t.session, t.repo, "side", BRC_SESSION_WRITE, &t.err));
    commits_line(&t, "xyz");
    brc_session_free(t.session);
    t.session = main;
    OK(&t, brc_merge(&r, NULL, t.repo, "side", &opts, &t.err));
    OK(&t, brc_ref_delete(t.repo, "side", BRC_DELETE_FORCE, &t.err));
    ck_assert_str_eq(commits_kept(&t, 3, 0, 0, 0), "m d c");
}

/* The graph says which commit is newer. */
TEST(a_clock_that_jumped_lets_nothing_newer_expire)
{
    commits_at(&t, "a", commits_day(2026, 3, 1), 1);
    commits_at(&t, "b", commits_day(2026, 3, 1), 2);
    commits_at(&t, "c", commits_day(2040, 1, 1), 0);
    commits_at(&t, "d", commits_day(2026, 3, 1), 0); /* earlier than a and b */
    commits_at(&t, "e", commits_day(2026, 3, 2), 0);
    ck_assert_str_eq(commits_kept(&t, 2, 0, 0, 0), "e d");
    ck_assert_str_eq(commits_kept(&t, 0, 3, 0, 0), "e d c");
}
