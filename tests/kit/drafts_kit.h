/* Drafts of a scenario that has an int32 array /a: lists of them, and processes that leave one. */
#ifndef BRC_TESTS_DRAFTS_KIT_H
#define BRC_TESTS_DRAFTS_KIT_H

#include "scenario.h"

/* "main private alive 2; " of each: its branch, whose it is, the nodes in it. Overwritten by the next call. */
const char *drafts_list(scenario *t, breccia *repo);
/* The last one's number. */
int64_t drafts_last(scenario *t, breccia *repo);
/* A child with a private change of /a's first element, which ends without a word. The file must be closed here. */
void drafts_leave(scenario *t, int32_t value);
/* A dead process leaves a draft, then others commit: the draft's number. */
int64_t drafts_leave_behind(scenario *t, int32_t value, uint64_t where);

#endif
