/*
 * calendar.h - times as text and back.
 */
#ifndef BRECCIA_CLI_CALENDAR_H
#define BRECCIA_CLI_CALENDAR_H

#include <stdint.h>

enum { CLI_TIME_CAP = 48 };

/* ISO 8601 or @SECONDS, in microseconds since 1970; in UTC if no zone is
 * given. 0 if `text` is not a time. */
int cli_parse_time(int64_t *out, const char *text);
/* 2026-11-20T12:00:00.000000Z */
const char *cli_format_time(char out[CLI_TIME_CAP], int64_t time_us);

#endif
