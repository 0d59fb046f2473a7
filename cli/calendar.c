/*
 * calendar.c - times as text: ISO 8601 in the proleptic Gregorian calendar.
 */
#include "calendar.h"

#include <stdio.h>

/* Days from 1970-01-01 to a day of the proleptic Gregorian calendar; years begin
 * in March, so that the leap day is a year's last. */
static int64_t days_from_date(int64_t year, int month, int day)
{
    int64_t y = year - (month <= 2);
    int64_t era = (y >= 0 ? y : y - 399) / 400;
    int64_t of_era = y - era * 400;
    int64_t of_year = (153 * (month + (month > 2 ? -3 : 9)) + 2) / 5 + day - 1;

    return era * 146097 + of_era * 365 + of_era / 4 - of_era / 100 + of_year - 719468;
}

static void date_from_days(int64_t days, int64_t *year, int *month, int *day)
{
    int64_t z = days + 719468;
    int64_t era = (z >= 0 ? z : z - 146096) / 146097;
    int64_t of_era = z - era * 146097;
    int64_t y = (of_era - of_era / 1460 + of_era / 36524 - of_era / 146096) / 365;
    int64_t of_year = of_era - (365 * y + y / 4 - y / 100);
    int64_t m = (5 * of_year + 2) / 153;

    *day = (int)(of_year - (153 * m + 2) / 5 + 1);
    *month = (int)(m < 10 ? m + 3 : m - 9);
    *year = y + era * 400 + (*month <= 2);
}

/* Exactly `n` digits at *text. */
static int take_digits(const char **text, int n, int *out)
{
    *out = 0;
    for (int i = 0; i < n; i++, ++*text) {
        if (**text < '0' || **text > '9')
            return 0;
        *out = *out * 10 + (**text - '0');
    }
    return 1;
}

static int take_char(const char **text, char c)
{
    if (**text != c)
        return 0;
    ++*text;
    return 1;
}

/* ".25" in microseconds; digits beyond that are dropped. */
static int take_fraction(const char **text, int64_t *us)
{
    int64_t scale = 100000;

    if (!take_char(text, '.'))
        return 1;
    if (**text < '0' || **text > '9')
        return 0;
    for (; **text >= '0' && **text <= '9'; ++*text, scale /= 10)
        *us += scale * (**text - '0');
    return 1;
}

/* "Z", "+02:00", "-0530" or nothing: the seconds to subtract. */
static int take_zone(const char **text, int64_t *seconds)
{
    int sign = **text == '-' ? -1 : 1, hours, minutes;

    *seconds = 0;
    if (**text == '\0' || take_char(text, 'Z') || take_char(text, 'z'))
        return 1;
    if (!take_char(text, '+') && !take_char(text, '-'))
        return 0;
    if (!take_digits(text, 2, &hours))
        return 0;
    take_char(text, ':');
    if (!take_digits(text, 2, &minutes) || hours > 23 || minutes > 59)
        return 0;
    *seconds = sign * (hours * 3600 + minutes * 60);
    return 1;
}

static int days_in_month(int year, int month)
{
    static const int days[] = { 31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31 };
    int leap = (year % 4 == 0 && year % 100 != 0) || year % 400 == 0;

    return days[month - 1] + (month == 2 && leap);
}

static int parse_calendar_time(int64_t *out, const char *p)
{
    int year, month, day, hour = 0, minute = 0, second = 0;
    int64_t us = 0, zone = 0;

    if (!take_digits(&p, 4, &year) || !take_char(&p, '-') || !take_digits(&p, 2, &month) ||
        !take_char(&p, '-') || !take_digits(&p, 2, &day))
        return 0;
    if (month < 1 || month > 12 || day < 1 || day > days_in_month(year, month))
        return 0;
    if (take_char(&p, 'T') || take_char(&p, 't') || take_char(&p, ' ')) {
        if (!take_digits(&p, 2, &hour) || !take_char(&p, ':') || !take_digits(&p, 2, &minute))
            return 0;
        if (take_char(&p, ':') && (!take_digits(&p, 2, &second) || !take_fraction(&p, &us)))
            return 0;
        if (hour > 23 || minute > 59 || second > 59 || !take_zone(&p, &zone))
            return 0;
    }
    *out = (days_from_date(year, month, day) * 86400 + hour * 3600 + minute * 60 + second - zone) *
               1000000 + us;
    return *p == '\0';
}

static int parse_seconds_time(int64_t *out, const char *p)
{
    int negative = take_char(&p, '-');
    int64_t seconds = 0, us = 0;

    if (*p < '0' || *p > '9')
        return 0;
    for (; *p >= '0' && *p <= '9'; p++) {
        seconds = seconds * 10 + (*p - '0');
        if (seconds > INT64_MAX / 10000000)
            return 0;
    }
    if (!take_fraction(&p, &us))
        return 0;
    *out = seconds * 1000000 + us;
    if (negative)
        *out = -*out;
    return *p == '\0';
}

int cli_parse_time(int64_t *out, const char *text)
{
    return text[0] == '@' ? parse_seconds_time(out, text + 1) : parse_calendar_time(out, text);
}

const char *cli_format_time(char out[CLI_TIME_CAP], int64_t time_us)
{
    int64_t seconds = time_us / 1000000, us = time_us % 1000000, days, year;
    int month, day, rest;

    if (us < 0) {
        us += 1000000;
        seconds--;
    }
    days = seconds / 86400;
    rest = (int)(seconds % 86400);
    if (rest < 0) {
        rest += 86400;
        days--;
    }
    date_from_days(days, &year, &month, &day);
    snprintf(out, CLI_TIME_CAP, "%04lld-%02d-%02dT%02d:%02d:%02d.%06dZ", (long long)year, month,
             day, rest / 3600, rest / 60 % 60, rest % 60, (int)us);
    return out;
}
