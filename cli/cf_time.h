/*
 * cf_time.h - times of the CF conventions: numbers such as "days since 1900-01-01" in a calendar.
 */
#ifndef BRC_CLI_CF_TIME_H
#define BRC_CLI_CF_TIME_H

#include <stdint.h>

enum cli_calendar {
    CLI_STANDARD,  /* Julian before 1582-10-15, Gregorian since; also "gregorian" */
    CLI_PROLEPTIC, /* "proleptic_gregorian": Gregorian at all times            */
    CLI_JULIAN,
    CLI_NOLEAP,    /* also "365_day"                                           */
    CLI_ALL_LEAP,  /* also "366_day"                                           */
    CLI_360_DAY
};

/* A moment of a calendar: days since 1970-01-01, and nanoseconds of that day. */
struct cli_moment {
    int64_t day, ns;
};

struct cli_time_units {
    enum cli_calendar calendar;
    int64_t unit; /* nanoseconds                                               */
    struct cli_moment since;
};

/* Reads "days since 1900-01-01 12:00" and the name of a calendar, which is "standard" if it is NULL. Returns 1, or 0 if
 * the units are not those of a time, or -1 if they are and cannot be read. */
int cli_time_units_read(struct cli_time_units *out, const char *units, const char *calendar);
/* Sets *out to the moment that is this many units later. Returns 0 if the moment is more than a million years away. */
int cli_moment_later(struct cli_moment *out, const struct cli_time_units *units, int64_t number);
/* The same for fractions, which are cut to nanoseconds, and in the calendars that cftime alone knows are rounded to
 * microseconds, as in xarray. */
int cli_moment_later_real(struct cli_moment *out, const struct cli_time_units *units, double number);
/* Sets *whole to the number of units, if it is whole and fits, and *real to the nearest number. Returns whether it is
 * whole. */
int cli_moment_number(const struct cli_moment *moment, const struct cli_time_units *units, int64_t *whole, double *real);

enum { CLI_MOMENT_CAP = 64 };
/* Writes "2020-05-01T12:00:00", with as many digits behind the second as it needs. */
const char *cli_moment_text(char out[CLI_MOMENT_CAP], enum cli_calendar calendar, const struct cli_moment *moment);
/* Reads a date such as "2020", "2020-05", "2020-05-01" or "2020-05-01T12:00". Sets *from to the beginning of this year,
 * month, day, hour, minute or second, and *to to its end, which does not belong to it. A text with a fraction of a second
 * is one nanosecond. Returns 0 if the text is not a date of the calendar. */
int cli_moment_read(struct cli_moment *from, struct cli_moment *to, enum cli_calendar calendar, const char *text);
/* Returns the nanoseconds of "days", "hours" and so on to "nanoseconds", as xarray writes the units of elapsed time; 0 for
 * other words. */
int64_t cli_span_unit(const char *units);
/* Writes elapsed time as "36h": in the unit, or where it is not whole, in the next finer one in which it is. */
const char *cli_span_text(char out[CLI_MOMENT_CAP], int64_t ns, int64_t unit);
/* Reads such a text; a number alone counts in the unit. Returns 0 if it is not one, or does not fit into nanoseconds. */
int cli_span_read(int64_t *ns, int64_t unit, const char *text);
/* Returns less than 0, 0 or more than 0. */
int cli_moment_compare(const struct cli_moment *a, const struct cli_moment *b);

#endif
