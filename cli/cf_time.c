/*
 * cf_time.c - calendars of the CF conventions.
 *
 * A date is counted in days from 1970-01-01 of its calendar; the Julian and the Gregorian calendar
 * count the same days. Years before 1 follow each other as in cftime: the standard and the Julian
 * calendar have no year 0.
 */
#include "cf_time.h"

#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#define SECOND INT64_C(1000000000)
#define DAY (86400 * SECOND)
enum { FIRST_GREGORIAN_DAY = -141427, DAYS_MOST = 365250000 };

/* ---- dates as days -------------------------------- */

static int64_t floor_div(int64_t a, int64_t b)
{
    return a / b - (a % b < 0);
}

/* Returns the days from 0000-03-01 to the first day of a month, which is counted from March. */
static int64_t days_before_month(int64_t month)
{
    return (153 * month + 2) / 5;
}

/* Returns the days to a date of the Gregorian or the Julian calendar. Years begin in March here. */
static int64_t real_days(int64_t year, int month, int day, int is_julian)
{
    int64_t y = year - (month <= 2), m = (month + 9) % 12;
    int64_t days = 365 * y + floor_div(y, 4) + days_before_month(m) + day - 1;

    if (is_julian)
        return days - 719470;
    return days - floor_div(y, 100) + floor_div(y, 400) - 719468;
}

static const int month_ends[] = { 0, 31, 59, 90, 120, 151, 181, 212, 243, 273, 304, 334, 365 };

/* Returns the days of the year before a month (0: January), where all years are alike. */
static int before_month(enum cli_calendar calendar, int month)
{
    if (calendar == CLI_360_DAY)
        return 30 * month;
    return month_ends[month] + (calendar == CLI_ALL_LEAP && month >= 2);
}

static int days_in_year(enum cli_calendar calendar)
{
    return before_month(calendar, 12);
}

static int is_real(enum cli_calendar calendar)
{
    return calendar == CLI_STANDARD || calendar == CLI_PROLEPTIC || calendar == CLI_JULIAN;
}

/* Tells whether the year before 1 is -1. */
static int lacks_year_zero(enum cli_calendar calendar)
{
    return calendar == CLI_STANDARD || calendar == CLI_JULIAN;
}

static int64_t days_of(enum cli_calendar calendar, int64_t year, int month, int day)
{
    int64_t days;

    if (!is_real(calendar))
        return (year - 1970) * days_in_year(calendar) + before_month(calendar, month - 1) + day - 1;
    days = real_days(year, month, day, calendar == CLI_JULIAN);
    if (calendar == CLI_STANDARD && days < FIRST_GREGORIAN_DAY)
        days = real_days(year, month, day, 1);
    return days;
}

/* Finds the date by its year: the one whose first day is the last that is not behind `days`. */
static void date_of(enum cli_calendar calendar, int64_t days, int64_t *year, int *month, int *day)
{
    int64_t y = 1970 + (is_real(calendar) ? floor_div(days * 400, 146097)
                                          : floor_div(days, days_in_year(calendar)));
    int m = 12;

    while (days_of(calendar, y, 1, 1) > days)
        y--;
    while (days_of(calendar, y + 1, 1, 1) <= days)
        y++;
    while (days_of(calendar, y, m, 1) > days)
        m--;
    *year = y;
    *month = m;
    *day = (int)(days - days_of(calendar, y, m, 1)) + 1;
    if (calendar == CLI_STANDARD && y == 1582 && m == 10 && *day > 4)
        *day += 10; /* the days that were left out */
}

/* ---- texts -------------------------------- */

/* Reads a number of 1 to `most` digits. */
static int cf_digits(const char **at, int most, int64_t *out)
{
    const char *p = *at;

    *out = 0;
    for (int n = 0; n < most && isdigit((unsigned char)*p); n++)
        *out = *out * 10 + (*p++ - '0');
    if (p == *at)
        return 0;
    *at = p;
    return 1;
}

enum date_part { YEAR, MONTH, DAY_OF_MONTH, HOUR, MINUTE, SECONDS, PARTS };

struct date_text {
    int64_t part[PARTS];
    int n;         /* how many parts the text has                             */
    int64_t ns;    /* the fraction of the second                              */
    int has_fraction;
};

static void cf_fraction(const char **at, struct date_text *date)
{
    int64_t unit = SECOND / 10;

    for (++*at; isdigit((unsigned char)**at); ++*at, unit /= 10)
        date->ns += unit * (**at - '0');
    date->has_fraction = 1;
}

/* Reads as much of year, month, day, hour, minute and second as there is. */
static int cf_date(const char **at, struct date_text *date)
{
    int negative = **at == '-';

    memset(date, 0, sizeof(*date));
    date->part[MONTH] = date->part[DAY_OF_MONTH] = 1;
    *at += negative || **at == '+';
    if (!cf_digits(at, 7, &date->part[YEAR]))
        return 0;
    if (negative)
        date->part[YEAR] = -date->part[YEAR];
    for (date->n = 1; date->n < PARTS; date->n++) {
        const char *p = *at;

        if (date->n == HOUR)
            while (*p == ' ' && p[1] == ' ')
                p++;
        if (!strchr(date->n <= DAY_OF_MONTH ? "-" : date->n == HOUR ? " Tt" : ":", *p) || !*p)
            break;
        p++;
        if (!cf_digits(&p, 2, &date->part[date->n]))
            break;
        *at = p;
    }
    if (date->n == PARTS && **at == '.')
        cf_fraction(at, date);
    return 1;
}

/* Reads "Z", "UTC" or "+05:30", and sets *ns to how much later than UTC the clock is. */
static int cf_zone(const char **at, int64_t *ns)
{
    int64_t hours, minutes = 0;
    const char *p = *at;
    int west;

    *ns = 0;
    p += strspn(p, " ");
    if (strncasecmp(p, "utc", 3) == 0 || strncasecmp(p, "gmt", 3) == 0) {
        p += 3;
    } else if (*p == 'Z' || *p == 'z') {
        p++;
    } else if (*p == '+' || *p == '-') {
        west = *p++ == '-';
        if (!cf_digits(&p, 2, &hours))
            return 0;
        p += *p == ':';
        if (isdigit((unsigned char)*p) && !cf_digits(&p, 2, &minutes))
            return 0;
        *ns = (hours * 60 + minutes) * 60 * SECOND * (west ? -1 : 1);
    }
    *at = p;
    return 1;
}

/* Turns a date of the text into a moment. Returns 0 if the calendar has no such date. */
static int moment_of(enum cli_calendar calendar, const struct date_text *date,
                     struct cli_moment *out)
{
    const int64_t *p = date->part;
    int64_t year = p[YEAR] + (lacks_year_zero(calendar) && p[YEAR] < 0), back;
    int month, day;

    if (p[MONTH] < 1 || p[MONTH] > 12 || p[DAY_OF_MONTH] < 1 || p[DAY_OF_MONTH] > 31 ||
        p[HOUR] > 24 || p[MINUTE] > 59 || p[SECONDS] > 60 || year < -999999 || year > 999999)
        return 0;
    out->day = days_of(calendar, year, (int)p[MONTH], (int)p[DAY_OF_MONTH]);
    date_of(calendar, out->day, &back, &month, &day);
    if (back != year || month != p[MONTH] || day != p[DAY_OF_MONTH])
        return 0;
    out->ns = ((p[HOUR] * 60 + p[MINUTE]) * 60 + p[SECONDS]) * SECOND + date->ns;
    out->day += out->ns / DAY;
    out->ns %= DAY;
    return 1;
}

static void add_ns(struct cli_moment *moment, int64_t ns)
{
    ns += moment->ns;
    moment->day += floor_div(ns, DAY);
    moment->ns = ns - floor_div(ns, DAY) * DAY;
}

int cli_moment_read(struct cli_moment *from, struct cli_moment *to, enum cli_calendar calendar,
                    const char *text)
{
    static const int64_t lengths[] = { [DAY_OF_MONTH] = DAY, [HOUR] = 3600 * SECOND,
                                       [MINUTE] = 60 * SECOND, [SECONDS] = SECOND };
    struct date_text date, next;
    int64_t zone = 0;
    const char *at = text;

    if (!cf_date(&at, &date) || (date.n > HOUR && !cf_zone(&at, &zone)) || *at ||
        (date.n == 1 && at - text < 4) || !moment_of(calendar, &date, from))
        return 0;
    *to = *from;
    next = date;
    if (date.n <= MONTH + 1) { /* a year or a month */
        next.part[MONTH] += date.n == MONTH + 1;
        if (date.n == 1 || next.part[MONTH] > 12) {
            next.part[MONTH] = 1;
            next.part[YEAR] += next.part[YEAR] == -1 && lacks_year_zero(calendar) ? 2 : 1;
        }
        return moment_of(calendar, &next, to);
    }
    add_ns(to, date.has_fraction ? 1 : lengths[date.n - 1]);
    add_ns(from, -zone);
    add_ns(to, -zone);
    return 1;
}

const char *cli_moment_text(char out[CLI_MOMENT_CAP], enum cli_calendar calendar,
                            const struct cli_moment *moment)
{
    int64_t year, seconds = moment->ns / SECOND, ns = moment->ns % SECOND;
    int month, day, len, digits = 9;

    date_of(calendar, moment->day, &year, &month, &day);
    year -= lacks_year_zero(calendar) && year <= 0;
    len = snprintf(out, CLI_MOMENT_CAP, "%s%04lld-%02d-%02dT%02d:%02d:%02d", year < 0 ? "-" : "",
                   (long long)(year < 0 ? -year : year), month, day, (int)(seconds / 3600),
                   (int)(seconds / 60 % 60), (int)(seconds % 60));
    while (ns > 0 && ns % 10 == 0) {
        ns /= 10;
        digits--;
    }
    if (ns > 0)
        snprintf(out + len, CLI_MOMENT_CAP - (size_t)len, ".%0*lld", digits, (long long)ns);
    return out;
}

int cli_moment_compare(const struct cli_moment *a, const struct cli_moment *b)
{
    if (a->day != b->day)
        return a->day < b->day ? -1 : 1;
    return (a->ns > b->ns) - (a->ns < b->ns);
}

/* ---- units -------------------------------- */

static int read_calendar(enum cli_calendar *out, const char *name)
{
    static const struct {
        const char *name;
        enum cli_calendar calendar;
    } names[] = { { "standard", CLI_STANDARD },
                  { "gregorian", CLI_STANDARD },
                  { "proleptic_gregorian", CLI_PROLEPTIC },
                  { "julian", CLI_JULIAN },
                  { "noleap", CLI_NOLEAP },
                  { "365_day", CLI_NOLEAP },
                  { "all_leap", CLI_ALL_LEAP },
                  { "366_day", CLI_ALL_LEAP },
                  { "360_day", CLI_360_DAY } };

    *out = CLI_STANDARD;
    for (size_t i = 0; name && i < sizeof(names) / sizeof(names[0]); i++)
        if (strcasecmp(name, names[i].name) == 0) {
            *out = names[i].calendar;
            return 1;
        }
    return name == NULL;
}

static int64_t cf_unit(const char *text, size_t len, enum cli_calendar calendar)
{
    static const struct {
        const char *names; /* each ends with a comma                           */
        int64_t ns;
    } units[] = {
        { "nanoseconds,nanosecond,nanosec,nanosecs,", 1 },
        { "microseconds,microsecond,microsec,microsecs,", 1000 },
        { "milliseconds,millisecond,millisec,millisecs,msec,msecs,ms,", 1000000 },
        { "seconds,second,sec,secs,s,", SECOND },
        { "minutes,minute,min,mins,", 60 * SECOND },
        { "hours,hour,hr,hrs,h,", 3600 * SECOND },
        { "days,day,d,", DAY },
        { "months,month,", 30 * DAY }, /* only where all are as long */
    };

    for (size_t i = 0; i < sizeof(units) / sizeof(units[0]); i++)
        for (const char *p = units[i].names; *p; p += strcspn(p, ",") + 1)
            if (strcspn(p, ",") == len && strncasecmp(p, text, len) == 0)
                return units[i].ns == 30 * DAY && calendar != CLI_360_DAY ? 0 : units[i].ns;
    return 0;
}

int cli_time_units_read(struct cli_time_units *out, const char *units, const char *calendar)
{
    const char *at = strstr(units, " since ");
    struct date_text date;
    int64_t zone;
    size_t skip = strspn(units, " ");

    if (!at)
        return 0;
    if (!read_calendar(&out->calendar, calendar))
        return -1;
    out->unit = cf_unit(units + skip, strcspn(units + skip, " "), out->calendar);
    at += strlen(" since ");
    at += strspn(at, " ");
    if (out->unit == 0 || !cf_date(&at, &date) || !cf_zone(&at, &zone) ||
        at[strspn(at, " ")] || !moment_of(out->calendar, &date, &out->since))
        return -1;
    add_ns(&out->since, -zone);
    return 1;
}

static int moment_after(struct cli_moment *out, const struct cli_time_units *units, __int128 ns)
{
    ns += units->since.ns;
    if (ns > (__int128)DAY * DAYS_MOST || ns < -(__int128)DAY * DAYS_MOST)
        return 0;
    out->day = (int64_t)(ns / DAY) - (ns % DAY < 0);
    out->ns = (int64_t)(ns - (__int128)out->day * DAY);
    out->day += units->since.day;
    return 1;
}

int cli_moment_later(struct cli_moment *out, const struct cli_time_units *units, int64_t number)
{
    return moment_after(out, units, (__int128)number * units->unit);
}

int cli_moment_later_real(struct cli_moment *out, const struct cli_time_units *units, double number)
{
    double ns = number * (double)units->unit;

    if (!(fabs(ns) < (double)DAY * DAYS_MOST))
        return 0;
    if (units->calendar > CLI_PROLEPTIC)
        ns = rint(ns / 1000) * 1000; /* as cftime has them: microseconds */
    return moment_after(out, units, (__int128)ns);
}

int cli_moment_number(const struct cli_moment *moment, const struct cli_time_units *units,
                      int64_t *whole, double *real)
{
    __int128 ns = (__int128)(moment->day - units->since.day) * DAY + moment->ns - units->since.ns;
    __int128 number = ns / units->unit;

    *real = (double)ns / (double)units->unit;
    *whole = (int64_t)number;
    return ns % units->unit == 0 && number == *whole;
}

/* ---- elapsed time -------------------------------- */

/* Units of elapsed time, each a whole number of the next: as attributes have them, and as NumPy. */
static const struct {
    const char *name, *sign;
    int64_t ns;
} span_units[] = {
    { "days", "D", DAY },
    { "hours", "h", 3600 * SECOND },
    { "minutes", "m", 60 * SECOND },
    { "seconds", "s", SECOND },
    { "milliseconds", "ms", 1000000 },
    { "microseconds", "us", 1000 },
    { "nanoseconds", "ns", 1 },
};
enum { SPAN_UNITS = sizeof(span_units) / sizeof(span_units[0]) };

int64_t cli_span_unit(const char *units)
{
    for (size_t i = 0; i < SPAN_UNITS; i++)
        if (strcmp(span_units[i].name, units) == 0)
            return span_units[i].ns;
    return 0;
}

const char *cli_span_text(char out[CLI_MOMENT_CAP], int64_t ns, int64_t unit)
{
    size_t i = 0;

    while (span_units[i].ns > unit || ns % span_units[i].ns != 0) /* ends at nanoseconds */
        i++;
    snprintf(out, CLI_MOMENT_CAP, "%lld%s", (long long)(ns / span_units[i].ns), span_units[i].sign);
    return out;
}

int cli_span_read(int64_t *ns, int64_t unit, const char *text)
{
    char *end;
    long double number = strtold(text, &end);

    if (end == text || !isfinite(number))
        return 0;
    for (size_t i = 0; *end && i < SPAN_UNITS; i++)
        if (strcmp(end, span_units[i].sign) == 0 || strcmp(end, span_units[i].name) == 0) {
            unit = span_units[i].ns;
            end += strlen(end);
        }
    number = rintl(number * (long double)unit);
    if (*end || !(fabsl(number) <= 9223372036854775807.0L))
        return 0;
    *ns = (int64_t)number;
    return 1;
}
