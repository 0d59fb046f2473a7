/* Commits of any day, and which of them expire would keep: a scenario whose session has an int32
 * array /a. */
#ifndef BRC_TESTS_COMMITS_H
#define BRC_TESTS_COMMITS_H

#include "scenario.h"

/* Days since 1970 of a date. */
int64_t commits_day(int64_t y, int64_t m, int64_t d);
/* A commit of a new value of /a's first element, which is returned. */
int32_t commits_at(scenario *t, const char *message, int64_t days, int hour);
/* One for each letter, on days that follow each other; the value of the last. */
int32_t commits_line(scenario *t, const char *names);
/* The messages of those that a dry run keeps, "c b a"; they are overwritten by the next call. */
const char *commits_kept(scenario *t, uint32_t last, uint32_t daily, uint32_t weekly, uint32_t monthly);

#endif
