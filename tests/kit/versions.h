/* Branches, commits, merges and collections of a scenario. */
#ifndef BRC_TESTS_VERSIONS_H
#define BRC_TESTS_VERSIONS_H

#include "scenario.h"

/* The branch becomes the current one, whatever is uncommitted, and the session is on it. */
void scenario_be_on(scenario *t, const char *branch);
/* Checks the file, which has no fault, and opens it again, as a program might between any two calls. */
void scenario_look_again(scenario *t);
brc_oid scenario_id(scenario *t, const char *rev);
brc_oid scenario_root(scenario *t, const char *rev);
int scenario_same(brc_oid a, brc_oid b);
/* The caller frees it. */
brc_commit *scenario_commit_at(scenario *t, const char *rev);
int scenario_has_commit(scenario *t, const brc_oid *id);
/* A collection with BRC_GC_* flags: the objects that it has removed, or would. */
uint64_t scenario_collect(scenario *t, uint32_t flags);
/* Collections until places that a backend holds for a time are removed, as if the time was over. */
void scenario_collect_held(scenario *t);
/* A merge into the current branch, which must get to its end: its result. */
int scenario_merge(scenario *t, const char *rev, uint32_t flags);
/* Conflicts of the open merge, pick or rebase; and all of them settled for BRC_MERGE_*: how many. */
uint64_t scenario_conflicts(scenario *t);
uint64_t scenario_settle(scenario *t, uint32_t side);
/* Faults that fsck finds; whether it gets to the end does not matter. */
int scenario_faults(scenario *t);

/* Another handle on the file, which acts whenever a call of the scenario's handle lets others in. */
typedef struct other_handle {
    int (*act)(breccia *repo); /* 1: it has changed the file  */
    int most, done;            /* how often it does, and did  */
    breccia *repo;
} other_handle;
#define OTHER_COLLECTS { .act = other_collects, .most = 3 }
int other_collects(breccia *repo);
int other_resets_side(breccia *repo); /* to the commit before its tip */
/* The log reaches back to nothing, the scenario's handle is opened again, and the other one begins. */
void other_begins(scenario *t, other_handle *o);
/* The other one ends, and has acted. */
void other_ends(other_handle *o);

/* For scenario_in_child(): a merge or a pick of branch "side" begins, and its conflicts stay open. */
int begin_merge_of_side(breccia *repo);
int begin_pick_of_side(breccia *repo);
/* A pick into the current branch: its result. */
brc_pick_result scenario_pick(scenario *t, const char *rev, uint32_t flags);

/* Somebody else changes a branch and commits there: change() gets a private session as `session`. */
brc_oid scenario_elsewhere(scenario *t, const char *branch, void (*change)(scenario *t));
/* A process of its own does it with a handle of its own, must succeed, and is gone without a word. Then no fault is found. */
void scenario_in_child(scenario *t, int (*run)(breccia *repo));
/* The same, but it is killed when it is through. */
void scenario_in_killed_child(scenario *t, int (*run)(breccia *repo));

#endif
