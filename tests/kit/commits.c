/* See commits.h. */
#include "commits.h"

#include <check.h>
#include <stdio.h>
#include <string.h>

int64_t commits_day(int64_t y, int64_t m, int64_t d)
{
    static const int before[] = {0, 31, 59, 90, 120, 151, 181, 212, 243, 273, 304, 334};
    const int leap = (y % 4 == 0 && y % 100 != 0) || y % 400 == 0;
    int64_t days = 0;
    for (int64_t i = 1970; i < y; i++)
        days += (i % 4 == 0 && i % 100 != 0) || i % 400 == 0 ? 366 : 365;
    return days + before[m - 1] + (leap && m > 2) + d - 1;
}

static int32_t value = 1000;

int32_t commits_at(scenario *t, const char *message, int64_t days, int hour)
{
    brc_commit_opts opts = BRC_COMMIT_OPTS_INIT;
    brc_oid id;
    scenario_set_number(t, "/a", 0, ++value);
    opts.message = message;
    opts.author = message;
    opts.time_us = (days * 24 + hour) * INT64_C(3600000000);
    OK(t, brc_session_commit(&id, t->session, &opts, &t->err));
    return value;
}

int32_t commits_line(scenario *t, const char *names)
{
    const int64_t first = commits_day(2026, 3, 2);
    for (int i = 0; names[i] != '\0'; i++)
        commits_at(t, (char[]){names[i], '\0'}, first + i, 12);
    return value;
}

const char *commits_kept(scenario *t, uint32_t last, uint32_t daily, uint32_t weekly,
                         uint32_t monthly)
{
    static char text[400];
    brc_expire_opts opts = BRC_EXPIRE_OPTS_INIT;
    brc_iter *it;
    const brc_expired *one;
    opts.flags = BRC_EXPIRE_DRY_RUN;
    opts.keep_last = last;
    opts.keep_daily = daily;
    opts.keep_weekly = weekly;
    opts.keep_monthly = monthly;
    text[0] = '\0';
    OK(t, brc_expire(NULL, &it, t->repo, &opts, &t->err));
    while (brc_next(it, &one, &t->err) > 0) {
        brc_commit *c;
        OK(t, brc_commit_read(&c, t->repo, &one->id, &t->err));
        if (one->reasons != 0)
            snprintf(text + strlen(text), sizeof(text) - strlen(text), "%s%s", text[0] ? " " : "",
                     c->message);
        brc_commit_free(c);
    }
    brc_iter_free(it);
    return text;
}
