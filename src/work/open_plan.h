/* What the file has of an open merge, cherry-pick, revert or rebase, which is a draft of kind 3: its plan and its
 * conflicts. */
#ifndef BRC_WORK_OPEN_PLAN_H
#define BRC_WORK_OPEN_PLAN_H

#include "../base/json.h"
#include "../history/merge_list.h"

enum { BRC_SETTLED_NOT = 0, BRC_SETTLED_OURS = 1, BRC_SETTLED_THEIRS = 2, BRC_SETTLED_HAND = 3 };

typedef struct brc_open_merge {
    brc_draft_head draft; /* id 0: none is open                                  */
    int has_other;
    brc_oid other;
    brc_json *plan;
    brc_clash_list conflicts; /* settled: BRC_SETTLED_*, as of now               */
} brc_open_merge;
/* A member of the plan; "" where it has none. It lives as long as the plan. */
const char *brc_open_merge_text(const brc_open_merge *merge, const char *name);
/* The command that began it: "merge", "cherry-pick", "revert", "rebase"; and what the operation log says of its commit. */
const char *brc_open_merge_command(const brc_open_merge *merge);
const char *brc_open_merge_op(const brc_open_merge *merge);
/* A commit that the plan names; 0: it names none so, 1. BRC_ECORRUPT: that is no id. */
BRC_MUST_USE int brc_open_merge_id(const brc_open_merge *merge, const char *name, brc_oid *out, brc_error *err);
/* Those of a list, brc_oid[], which the caller frees; none where it has no such list. */
BRC_MUST_USE int brc_open_merge_ids(const brc_open_merge *merge, const char *name, void **out, size_t *n, brc_error *err);
/* A number; 0 where it has none. */
uint64_t brc_open_merge_number(const brc_open_merge *merge, const char *name);
/* Plan and conflicts of a draft of kind BRC_DRAFT_MERGE, without what was settled by hand since. BRC_ECORRUPT: they
 * are damaged, or some are missing. */
BRC_MUST_USE int brc_open_merge_rows(brc_open_merge *out, brc_store *store, const brc_draft_head *draft, brc_error *err);
void brc_open_merge_dispose(brc_open_merge *merge);
size_t brc_open_merge_left(const brc_open_merge *merge);

/* BRC_ECONFLICT, for what cannot be done while a merge or the like is open on the branch: the error names it. */
int brc_merge_is_open(brc_store *store, const char *branch, brc_error *err);

#endif
