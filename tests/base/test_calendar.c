/* Dates, and times as people write them. */
#include <time.h>

#include "../../src/base/calendar.h"
#include "../kit/suite.h"

TEST_SUITE(calendar);

#define DAY INT64_C(86400000000)

/* The C library's calendar is the judge: every day of 800 years. */
TEST(every_date_there_and_back)
{
    for (int64_t day = -146097; day <= 146097; day++) {
        const time_t seconds = day * 86400;
        int64_t year;
        int month, date;
        struct tm tm;
        ck_assert_ptr_nonnull(gmtime_r(&seconds, &tm));
        brc_date_from_days(day, &year, &month, &date);
        ck_assert_int_eq(year, tm.tm_year + 1900);
        ck_assert_int_eq(month, tm.tm_mon + 1);
        ck_assert_int_eq(date, tm.tm_mday);
        ck_assert_int_eq(brc_days_from_date(year, month, date), day);
    }
}

static int64_t at(const char *text)
{
    int64_t us = 0;
    ck_assert_msg(brc_time_read(&us, text, 0), "%s is not a time", text);
    return us;
}

TEST(words_mean_times_before_now)
{
    /* 2026-11-28 was a Saturday */
    static const struct {
        const char *text, *now, *is;
    } cases[] = {
        { "now", "2026-11-28T19:30:01.25", "2026-11-28T19:30:01.25" },
        { "today", "2026-11-28T19:30", "2026-11-28" },
        { "Yesterday", "2026-11-28T19:30", "2026-11-27T19:30" },
        { "saturday", "2026-11-28T19:30", "2026-11-21T19:30" },
        { "friday", "2026-11-28T19:30", "2026-11-27T19:30" },
        { "last Sunday", "2026-11-28T19:30", "2026-11-22T19:30" },
        { "monday", "2026-11-30T01:00", "2026-11-23T01:00" },
        { "last week", "2026-11-28T19:30", "2026-11-21T19:30" },
        { "last month", "2026-11-28T19:30", "2026-10-28T19:30" },
        { "last year", "2024-02-29T19:30", "2023-02-28T19:30" },
        { "1 second ago", "2026-01-01", "2025-12-31T23:59:59" },
        { "90 seconds ago", "2026-01-01", "2025-12-31T23:58:30" },
        { "2 mins ago", "2026-01-01", "2025-12-31T23:58" },
        { "an hour ago", "2026-01-01", "2025-12-31T23:00" },
        { "three days ago", "2026-03-02", "2026-02-27" },
        { "2 weeks ago", "2026-11-28", "2026-11-14" },
        { "2.weeks.ago", "2026-11-28", "2026-11-14" },
        { "2_weeks_ago", "2026-11-28", "2026-11-14" },
        { "1 month ago", "2026-03-31T01:02", "2026-02-28T01:02" },
        { "13 months ago", "2024-03-31", "2023-02-28" },
        { "1 year 2 months ago", "2026-01-15", "2024-11-15" },
        { "0 days ago", "2026-01-15", "2026-01-15" },
        { "1 day ago", "1970-01-01T12:00", "1969-12-31T12:00" },
        { "10:30", "2026-11-28T19:30", "2026-11-28T10:30" },
        { "23:00:05", "2026-11-28T19:30", "2026-11-28T23:00:05" },
        { "yesterday 10:30", "2026-11-28T19:30", "2026-11-27T10:30" },
        { "monday 00:15", "2026-11-28T19:30", "2026-11-23T00:15" },
        { "2 days ago 10:30", "1970-01-01T12:00", "1969-12-30T10:30" },
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        int64_t us = 0;
        ck_assert_msg(brc_time_read(&us, cases[i].text, at(cases[i].now)), "%s", cases[i].text);
        ck_assert_msg(us == at(cases[i].is), "%s from %s is %lld, not %s", cases[i].text,
                      cases[i].now, (long long)us, cases[i].is);
    }
    int64_t us = 0;
    ck_assert(brc_time_read(&us, "1 month ago", at("0000-01-15")));
    ck_assert_int_eq(us, at("0000-01-15") - 31 * DAY);
}

TEST(other_words_are_not_times)
{
    static const char *const wrong[] = {
        "", " ", "soon", "ago", "1 ago", "day ago", "1 day", "1 fortnight ago", "1 day 2 ago",
        "last", "last time", "tomorrow", "-1 days ago", "1.5 days ago", "x days ago",
        "99999999999999999999 years ago", "1 day ago ago", "now now", "today ago",
        "1 day 1 day 1 day 1 day 1 day ago", "25:00", "monday 10:60", "10:30 monday", "10:30 ago",
        "10:30 10:30",
        "a very long text that nobody would ever write if it were to be a time, is it not",
    };
    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
        int64_t us;
        ck_assert_msg(!brc_time_read(&us, wrong[i], DAY), "'%s' is taken", wrong[i]);
    }
}

TEST(seconds_have_fractions)
{
    ck_assert_int_eq(at("@0"), 0);
    ck_assert_int_eq(at("@1.5"), 1500000);
    ck_assert_int_eq(at("@-1.25"), -1250000);
    ck_assert_int_eq(at("@1.1234569"), 1123456);
}
