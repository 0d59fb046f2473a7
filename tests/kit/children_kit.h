/* Sessions with children, and other processes that work in them. */
#ifndef BRC_TESTS_CHILDREN_KIT_H
#define BRC_TESTS_CHILDREN_KIT_H

#include <sys/types.h>

#include "scenario.h"

brc_session *kit_private(scenario *t, const char *rev);
brc_session *kit_fork(scenario *t, brc_session *s);
/* The caller frees it. */
char *kit_token(scenario *t, brc_session *s);
/* int32 elements [from, from + n) of one axis become `value`. */
int kit_fill(scenario *t, brc_session *s, const char *path, uint64_t from, uint64_t n, int32_t value);
int kit_commit(scenario *t, brc_session *s, brc_oid *id);

/* Another process with the file open, and a session on the draft of this token; `work` says how it ends. It
 * is killed where that does not return. */
typedef int (*kit_work)(scenario *t, brc_session *s, void *ctx);
pid_t kit_worker(scenario *t, const char *token, kit_work work, void *ctx);
/* The worker must end with this result. */
void kit_worker_ends(pid_t pid, int result);
/* "3/1 alive ours; " of each draft: how many nodes, and of which, counted from 1, it is the child. */
const char *kit_drafts(scenario *t, breccia *repo);

#endif
