/* How many nodes one call may visit. A small file can hold a hierarchy that no machine
 * could list: n objects, groups that share their children, have 2^n paths. */
#ifndef BRC_HISTORY_BUDGET_H
#define BRC_HISTORY_BUDGET_H

#include "../store/store.h"

typedef struct brc_budget {
    uint64_t max, used;
} brc_budget;

/* A fresh budget for one call: brc_open_opts.max_nodes. */
brc_budget brc_budget_of(const brc_store *store);
/* Counts one visit. Past the limit: BRC_ELIMIT, with a message that says how to raise it. */
BRC_MUST_USE int brc_budget_take(brc_budget *budget, brc_error *err);

#endif
