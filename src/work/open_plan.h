/* The plan and the conflicts of an open merge, cherry-pick, revert or rebase, as the file stores them in a draft of
 * kind 3. */
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
    brc_clash_list conflicts; /* settled: one of BRC_SETTLED_*, as of now        */
} brc_open_merge;
/* Returns a member of the plan, or "" if the plan lacks the member. The text lives as long as the plan. */
const char *brc_open_merge_text(const brc_open_merge *merge, const char *name);
/* Return the command that began the operation ("merge", "cherry-pick", "revert" or "rebase"), and the text of its
 * commit in the operation log. */
const char *brc_open_merge_command(const brc_open_merge *merge);
const char *brc_open_merge_op(const brc_open_merge *merge);
/* Gets a commit that the plan names. Returns 1, or 0 if the plan lacks the member. BRC_ECORRUPT: the member is not
 * a valid id. */
BRC_MUST_USE int brc_open_merge_id(const brc_open_merge *merge, const char *name, brc_oid *out, brc_error *err);
/* Gets a list of commits, brc_oid[], which the caller frees; an empty list if the plan lacks the member. */
BRC_MUST_USE int brc_open_merge_ids(const brc_open_merge *merge, const char *name, void **out, size_t *n, brc_error *err);
/* Returns a number of the plan, or 0 if the plan lacks the member. */
uint64_t brc_open_merge_number(const brc_open_merge *merge, const char *name);
/* Reads the plan and the conflicts of a draft of kind BRC_DRAFT_MERGE, without what was settled by hand since.
 * BRC_ECORRUPT: they are damaged, or some are missing. */
BRC_MUST_USE int brc_open_merge_rows(brc_open_merge *out, brc_store *store, const brc_draft_head *draft, brc_error *err);
void brc_open_merge_dispose(brc_open_merge *merge);
size_t brc_open_merge_left(const brc_open_merge *merge);

/* Fails with BRC_ECONFLICT and names the open merge, cherry-pick, revert or rebase, for actions
 * that are not possible while it is open on the branch. */
int brc_merge_is_open(brc_store *store, const char *branch, brc_error *err);

#endif
