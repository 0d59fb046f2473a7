/* A branch whose rebase stops twice, and what the tests of open rebases do with it. */
#ifndef BRC_TESTS_REBASE_KIT_H
#define BRC_TESTS_REBASE_KIT_H

#include "versions.h"

typedef struct rebase_kit {
    scenario t;
    brc_oid side[5], side_tip, main_tip;
} rebase_kit;

/* Makes five commits on side, the current branch. The second and the fourth are in conflict with
 * the one commit of main, each in its own chunk; the second also in an attribute, and it changes
 * another node. */
void rk_start(rebase_kit *k);
void rk_stop(rebase_kit *k);

/* brc_continue() with these flags. */
int rk_continue(brc_pick_result *r, breccia *repo, uint32_t flags, brc_error *err);
/* The calls, which must succeed. */
brc_pick_result rk_rebase(rebase_kit *k, uint32_t flags);
brc_pick_result rk_goes_on(rebase_kit *k, uint32_t flags);
void rk_settle(rebase_kit *k, uint32_t side_of);

brc_open_state rk_open(rebase_kit *k);
int32_t rk_number(rebase_kit *k, uint64_t i);
/* Rows of rebases in the operation log. */
int rk_rows(rebase_kit *k);
/* The rebase stopped at side[at], and the branch is where it was. */
void rk_stopped_at(rebase_kit *k, const brc_pick_result *r, int at, uint64_t made, uint64_t skipped);
void rk_nothing_is_open(rebase_kit *k);
void rk_commit_is(rebase_kit *k, const char *rev, const char *message, const char *author, const char *meta,
                  int64_t time);

#endif
