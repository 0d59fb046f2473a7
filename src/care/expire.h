/*
 * Thins history: decides which commits stay, and what stands for the parents that expire.
 *
 * Each rule counts along the first parents of each branch, independently of other rules, in UTC.
 * The newest commit of a day, a week or a month is the first one that the walk meets, whatever the
 * clocks of later ones say. If a rule is not used up at the end of the line, the oldest commit
 * stays too. Tips, tags and everything that drafts and pins name stay in any case. All other
 * commits that refs reach expire.
 *
 * A commit keeps its id and its bytes. A row of table boundary stands for parents that have
 * expired: it has the nearest ancestors that stay, those on the first parents' side first, and the
 * moves since the first of them. brc_commit_get() returns these to readers of the commit.
 */
#ifndef BRC_CARE_EXPIRE_H
#define BRC_CARE_EXPIRE_H

#include "../history/graph.h"
#include "../store/collect.h"

typedef struct brc_expire_rules {
    uint32_t last, daily, weekly, monthly; /* 0: there is no such rule */
} brc_expire_rules;

/* A function that is called between transactions. */
typedef struct brc_expire_step {
    int (*fn)(void *ctx, brc_error *err);
    void *ctx;
} brc_expire_step;

typedef struct brc_expire_commit {
    brc_oid id, root;
    int64_t time_us;
    uint32_t reasons;     /* BRC_KEPT_*; 0: the commit expires                           */
    size_t stand, nstand; /* indexes in `stands` of the commits that stand for its parents; is_cut 0: the
                           * parents themselves */
    int is_cut;
    brc_move_set *moves;  /* the moves since the first of these commits; NULL: none      */
} brc_expire_commit;

typedef struct brc_expire_plan {
    brc_store *store;
    brc_expire_rules rules;
    brc_graph graph;      /* the commits that refs reach              */
    void *commits;        /* brc_expire_commit[], one for each        */
    size_t n, cap;
    void *stands;         /* size_t[]: indexes of commits             */
    size_t nstands, stands_cap;
    size_t *order;        /* indexes of all commits, parents after children */
    brc_ref_row *refs;    /* the refs as they were */
    size_t nrefs;
    size_t kept, expired;
    brc_buf lines;
} brc_expire_plan;

/* Makes a plan, within a read or a write. It must be released with brc_expire_plan_dispose(), even
 * after a failure. */
BRC_MUST_USE int brc_expire_plan_make(brc_expire_plan *plan, brc_store *store, const brc_expire_rules *rules, brc_error *err);
void brc_expire_plan_dispose(brc_expire_plan *plan);
const brc_expire_commit *brc_expire_commit_at(const brc_expire_plan *plan, size_t i);
/* Makes a plan and carries it out. One short transaction thins everything that refs reach, if refs
 * have not changed. Then follow the records of commits that have expired, or that only the log
 * names. The caller must dispose of the plan. */
BRC_MUST_USE int brc_expire_run(brc_expire_plan *plan, brc_store *store, const brc_expire_rules *rules,
                                const brc_expire_step *step, brc_error *err);

#endif
