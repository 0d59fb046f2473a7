/* Dates, and times as users write them. All times are microseconds since 1970 UTC. */
#ifndef BRC_BASE_CALENDAR_H
#define BRC_BASE_CALENDAR_H

#include <stdint.h>

/* Returns the days from 1970-01-01 to a date of the proleptic Gregorian calendar. */
int64_t brc_days_from_date(int64_t year, int month, int day);
/* Finds the date that is so many days after 1970-01-01. */
void brc_date_from_days(int64_t days, int64_t *year, int *month, int *day);

/* Reads a time, as brc_time_parse() of breccia.h does. Words such as "yesterday" mean that time before `now`. Returns
 * 1, or 0 if the text is not a time. */
int brc_time_read(int64_t *out, const char *text, int64_t now);

#endif
