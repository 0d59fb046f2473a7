/*
 * Thinning history: which commits stay, and what stands for those that go.
 *
 * The rules count along the first parents of each branch, for each rule by itself, in UTC: the
 * newest commit of a day, a week or a month is the first that the line meets, whatever its clock
 * said later; as long as a rule has count left at the line's end, the oldest stays too. Tips, tags
 * and what drafts and pins name stay in any case. All else that refs reach expires.
 *
 * A commit keeps its id and its bytes. What stands for parents that have expired is a row of table
 * boundary: the nearest ancestors that stay, the first parents' side first, and the moves since the
 * first of them. Whoever reads a commit (brc_commit_get) is told these.
 */
#ifndef BRC_CARE_EXPIRE_H
#define BRC_CARE_EXPIRE_H

#include "../base/hash.h"
#include "../history/commit.h"
#include "../store/collect.h"

typedef struct brc_expire_rules {
    uint32_t last, daily, weekly, monthly; /* 0: no such rule */
} brc_expire_rules;

/* Called between its transactions. */
typedef struct brc_expire_step {
    int (*fn)(void *ctx, brc_error *err);
    void *ctx;
} brc_expire_step;

typedef struct brc_expire_commit {
    brc_oid id, root;
    int64_t time_us;
    uint32_t reasons;     /* BRC_KEPT_*; 0: it expires                                   */
    size_t first, n;      /* its parents, in `parents`                                   */
    size_t stand, nstand; /* what stands for them, in `stands`; is_cut 0: they themselves */
    int is_cut, is_read;
    uint32_t waiting;
    brc_move_set *moves;  /* since the first of these; NULL: none                        */
} brc_expire_commit;

typedef struct brc_expire_plan {
    brc_store *store;
    brc_expire_rules rules;
    brc_id_table index;   /* size_t: 1 more than the commit's place */
    void *commits;        /* brc_expire_commit[]: what refs reach   */
    size_t n, cap;
    void *parents, *stands; /* size_t[]: places                     */
    size_t nparents, parents_cap, nstands, stands_cap;
    size_t *order;        /* all of them, parents after children    */
    brc_ref_row *refs;    /* as they were */
    size_t nrefs;
    size_t kept, expired;
    brc_buf lines;
} brc_expire_plan;

/* Within a read, or a write. Release with brc_expire_plan_dispose() in any case. */
BRC_MUST_USE int brc_expire_plan_make(brc_expire_plan *plan, brc_store *store, const brc_expire_rules *rules, brc_error *err);
void brc_expire_plan_dispose(brc_expire_plan *plan);
const brc_expire_commit *brc_expire_commit_at(const brc_expire_plan *plan, size_t i);
/* Makes a plan and does it: in one short transaction what refs reach is thinned, if refs are still what they
 * were; then what was said of commits that have expired, or that only the log names. The plan is
 * disposed of by the caller. */
BRC_MUST_USE int brc_expire_run(brc_expire_plan *plan, brc_store *store, const brc_expire_rules *rules,
                                const brc_expire_step *step, brc_error *err);

#endif
