/* Dates, and times as people write them, see calendar.h. */
#include "calendar.h"

#include <stddef.h>
#include <string.h>
#include <strings.h>

#include "error.h"
#include "process.h"

#define SECOND INT64_C(1000000)
#define DAY (86400 * SECOND)

/* ---- dates -------------------------------- */

/* Years begin in March here, so that the leap day is at their end: 400 years have 146,097 days, and
 * 1970-01-01 is day 719,468 after 1 March of the year 0. */

int64_t brc_days_from_date(int64_t year, int month, int day)
{
    const int64_t y = month <= 2 ? year - 1 : year;
    const int64_t era = (y >= 0 ? y : y - 399) / 400;
    const int64_t of_era = y - era * 400;
    const int64_t of_year = (153 * (month + (month > 2 ? -3 : 9)) + 2) / 5 + day - 1;
    return era * 146097 + of_era * 365 + of_era / 4 - of_era / 100 + of_year - 719468;
}

void brc_date_from_days(int64_t days, int64_t *year, int *month, int *day)
{
    const int64_t z = days + 719468;
    const int64_t era = (z >= 0 ? z : z - 146096) / 146097;
    const int64_t of_era = z - era * 146097;
    const int64_t y = (of_era - of_era / 1460 + of_era / 36524 - of_era / 146096) / 365;
    const int64_t of_year = of_era - (365 * y + y / 4 - y / 100);
    const int64_t m = (5 * of_year + 2) / 153;
    *day = (int)(of_year - (153 * m + 2) / 5 + 1);
    *month = (int)(m < 10 ? m + 3 : m - 9);
    *year = y + era * 400 + (*month <= 2);
}

static int days_in_month(int64_t year, int month)
{
    static const int days[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
    const int is_leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    return days[month - 1] + (month == 2 && is_leap);
}

static int64_t day_of(int64_t us)
{
    return us / DAY - (us % DAY < 0);
}

/* ---- ISO 8601, and @SECONDS -------------------------------- */

/* Reads a number from the next `n` digits of *at. Returns 0 if there are other characters. */
static int take_digits(const char **at, int n, int *out)
{
    *out = 0;
    for (int i = 0; i < n; i++, ++*at) {
        if (**at < '0' || **at > '9')
            return 0;
        *out = *out * 10 + (**at - '0');
    }
    return 1;
}

static int take_char(const char **at, char c)
{
    if (**at != c)
        return 0;
    ++*at;
    return 1;
}

/* Reads ".25" as microseconds, drops further digits, and adds them to *us. */
static int take_fraction(const char **at, int64_t *us)
{
    int64_t unit = SECOND / 10;
    if (!take_char(at, '.'))
        return 1;
    if (**at < '0' || **at > '9')
        return 0;
    for (; **at >= '0' && **at <= '9'; ++*at, unit /= 10)
        *us += (**at - '0') * unit;
    return 1;
}

static int take_time_of_day(const char **at, int64_t *us)
{
    int hour, minute, second = 0;
    if (!take_digits(at, 2, &hour) || !take_char(at, ':') || !take_digits(at, 2, &minute))
        return 0;
    if (take_char(at, ':') && (!take_digits(at, 2, &second) || !take_fraction(at, us)))
        return 0;
    *us += ((int64_t)hour * 3600 + minute * 60 + second) * SECOND;
    return hour <= 23 && minute <= 59 && second <= 60;
}

/* Reads "Z", "+02:00", "-0530", "+02" or nothing, which is UTC, and subtracts that from *us. */
static int take_zone(const char **at, int64_t *us)
{
    const int sign = **at == '-' ? -1 : 1;
    int hour, minute = 0;
    if (**at == '\0' || take_char(at, 'Z') || take_char(at, 'z'))
        return 1;
    if (!take_char(at, '+') && !take_char(at, '-'))
        return 0;
    if (!take_digits(at, 2, &hour))
        return 0;
    if (**at != '\0') {
        (void)take_char(at, ':');
        if (!take_digits(at, 2, &minute))
            return 0;
    }
    *us -= sign * ((int64_t)hour * 3600 + minute * 60) * SECOND;
    return hour <= 23 && minute <= 59;
}

static int read_calendar_time(int64_t *out, const char *at)
{
    int year, month, day;
    int64_t us = 0;
    if (!take_digits(&at, 4, &year) || !take_char(&at, '-') || !take_digits(&at, 2, &month) ||
        !take_char(&at, '-') || !take_digits(&at, 2, &day))
        return 0;
    if (month < 1 || month > 12 || day < 1 || day > days_in_month(year, month))
        return 0;
    if ((take_char(&at, 'T') || take_char(&at, 't') || take_char(&at, ' ')) &&
        (!take_time_of_day(&at, &us) || !take_zone(&at, &us)))
        return 0;
    *out = brc_days_from_date(year, month, day) * DAY + us;
    return *at == '\0';
}

static int read_seconds(int64_t *out, const char *at)
{
    const int is_negative = take_char(&at, '-');
    int64_t seconds = 0, us = 0;
    if (*at < '0' || *at > '9')
        return 0;
    for (; *at >= '0' && *at <= '9'; at++) {
        seconds = seconds * 10 + (*at - '0');
        if (seconds > INT64_C(9000000000000))
            return 0;
    }
    if (!take_fraction(&at, &us))
        return 0;
    *out = seconds * SECOND + us;
    if (is_negative)
        *out = -*out;
    return *at == '\0';
}

/* ---- words -------------------------------- */

#define WORDS_MOST 8

typedef struct words {
    char text[64];
    const char *at[WORDS_MOST];
    int n;
} words;

/* Splits a text at spaces, dots and underscores. Returns 0 if it is too long. */
static int split_words(words *w, const char *text)
{
    size_t len = strlen(text);
    char *rest;
    if (len >= sizeof(w->text))
        return 0;
    memcpy(w->text, text, len + 1);
    w->n = 0;
    for (char *p = strtok_r(w->text, " ._", &rest); p; p = strtok_r(NULL, " ._", &rest)) {
        if (w->n == WORDS_MOST)
            return 0;
        w->at[w->n++] = p;
    }
    return w->n > 0;
}

/* Returns the index of the word among n names, or -1. A name may have an "s" behind it. */
static int find_word(const char *word, const char *const *names, int n)
{
    for (int i = 0; i < n; i++) {
        const size_t len = strlen(names[i]);
        if (strncasecmp(word, names[i], len) == 0 &&
            (word[len] == '\0' || strcasecmp(word + len, "s") == 0))
            return i;
    }
    return -1;
}

static int read_count(const char *word, int64_t *out)
{
    static const char *const names[] = {"zero", "one",   "two",   "three", "four", "five",
                                        "six",  "seven", "eight", "nine",  "ten",  "a", "an"};
    const int named = find_word(word, names, 13);
    *out = named > 10 ? 1 : named;
    if (named >= 0)
        return 1;
    *out = 0;
    for (; *word >= '0' && *word <= '9' && *out < 1000000; word++)
        *out = *out * 10 + (*word - '0');
    return *word == '\0';
}

/* Returns the same day and time of day so many months before; the last day of a shorter month. */
static int64_t months_before(int64_t us, int64_t months)
{
    int64_t year;
    int month, day;
    const int64_t of_day = us - day_of(us) * DAY;
    brc_date_from_days(day_of(us), &year, &month, &day);
    const int64_t all = year * 12 + (month - 1) - months;
    year = all / 12 - (all % 12 < 0);
    month = (int)(all - year * 12) + 1;
    if (day > days_in_month(year, month))
        day = days_in_month(year, month);
    return brc_days_from_date(year, month, day) * DAY + of_day;
}

/* Subtracts a count of units from *at. Returns 0 if the word is not a unit. */
static int go_back(int64_t *at, int64_t count, const char *unit)
{
    static const char *const names[] = {"second", "sec",  "minute", "min",   "hour",
                                        "day",    "week", "month",  "year"};
    static const int64_t seconds[] = {1, 1, 60, 60, 3600, 86400, 604800};
    const int which = find_word(unit, names, 9);
    if (which < 0)
        return 0;
    if (which < 7)
        *at -= count * seconds[which] * SECOND;
    else
        *at = months_before(*at, which == 7 ? count : 12 * count);
    return 1;
}

/* Goes back to the last such weekday before today. */
static int go_back_to_weekday(int64_t *at, const char *word)
{
    static const char *const names[] = {"monday", "tuesday",  "wednesday", "thursday",
                                        "friday", "saturday", "sunday"};
    const int which = find_word(word, names, 7);
    if (which < 0)
        return 0;
    const int64_t days = day_of(*at) + 3 - which; /* 1970-01-01 was a Thursday */
    int64_t behind = days % 7;
    if (behind <= 0)
        behind += 7;
    *at -= behind * DAY;
    return 1;
}

/* Goes back by what the words say: "yesterday", "monday", "last week", "2 days ago". */
static int go_back_words(int64_t *at, const words *w)
{
    const int n = w->n;
    int64_t count;
    if (n == 1 && strcasecmp(w->at[0], "now") == 0)
        return 1;
    if (n == 1 && strcasecmp(w->at[0], "today") == 0) {
        *at = day_of(*at) * DAY;
        return 1;
    }
    if (n == 1 && strcasecmp(w->at[0], "yesterday") == 0)
        return go_back(at, 1, "day");
    if (n == 1)
        return go_back_to_weekday(at, w->at[0]);
    if (n == 2 && strcasecmp(w->at[0], "last") == 0)
        return go_back(at, 1, w->at[1]) || go_back_to_weekday(at, w->at[1]);
    if (n % 2 == 0 || strcasecmp(w->at[n - 1], "ago") != 0)
        return 0;
    for (int i = 0; i + 1 < n; i += 2)
        if (!read_count(w->at[i], &count) || !go_back(at, count, w->at[i + 1]))
            return 0;
    return 1;
}

/* Reads words that name a day or a time, and a time of that day behind them: "yesterday 10:30". The
 * time alone is one of today. */
static int read_words(int64_t *out, const char *text, int64_t now)
{
    words w;
    int64_t of_day = 0;
    if (!split_words(&w, text))
        return 0;
    const char *clock = w.at[w.n - 1];
    const int has_clock = take_time_of_day(&clock, &of_day) && *clock == '\0';
    *out = now;
    if (has_clock)
        w.n--;
    if (w.n > 0 && !go_back_words(out, &w))
        return 0;
    if (has_clock)
        *out = day_of(*out) * DAY + of_day;
    return 1;
}

/* ---- all forms -------------------------------- */

int brc_time_read(int64_t *out, const char *text, int64_t now)
{
    if (text[0] == '@')
        return read_seconds(out, text + 1);
    return read_calendar_time(out, text) || read_words(out, text, now);
}

int brc_time_parse(int64_t *out, const char *text, brc_error *err)
{
    if (brc_time_read(out, text, brc_now_us()))
        return BRC_OK;
    return brc_fail(err, BRC_EINVAL,
                    "'%.60s' is not a time: write 2026-11-20, 2026-11-20T12:00:00Z, yesterday, "
                    "\"2 weeks ago\" or @seconds since 1970",
                    text);
}
