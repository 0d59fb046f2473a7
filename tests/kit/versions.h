/* What tests of branches and commits do with a scenario. */
#ifndef BRC_TESTS_VERSIONS_H
#define BRC_TESTS_VERSIONS_H

#include "scenario.h"

/* The branch becomes the current one, whatever is uncommitted, and the session is on it. */
void scenario_be_on(scenario *t, const char *branch);
/* What any program would do between two calls: no fault is found, and the file is opened again. */
void scenario_look_again(scenario *t);
brc_oid scenario_id(scenario *t, const char *rev);
brc_oid scenario_root(scenario *t, const char *rev);
int scenario_same(brc_oid a, brc_oid b);
/* The caller frees it. */
brc_commit *scenario_commit_at(scenario *t, const char *rev);
int scenario_has_commit(scenario *t, const brc_oid *id);
/* A collection with BRC_GC_* flags: the objects that it has removed, or would. */
uint64_t scenario_collect(scenario *t, uint32_t flags);
/* A merge into the current branch, which must get to its end: its result. */
int scenario_merge(scenario *t, const char *rev, uint32_t flags);
/* Conflicts of the open merge, pick or rebase; and all of them settled for BRC_MERGE_*: how many. */
uint64_t scenario_conflicts(scenario *t);
uint64_t scenario_settle(scenario *t, uint32_t side);
/* Faults that fsck finds; whether it gets to the end does not matter. */
int scenario_faults(scenario *t);

/* Somebody else changes a branch and commits there: change() gets a private session as `session`. */
brc_oid scenario_elsewhere(scenario *t, const char *branch, void (*change)(scenario *t));
/* A process of its own does it with a handle of its own, must succeed, and is gone without a word. Then no fault is found. */
void scenario_in_child(scenario *t, int (*run)(breccia *repo));
/* The same, but it is killed when it is through. */
void scenario_in_killed_child(scenario *t, int (*run)(breccia *repo));

#endif
