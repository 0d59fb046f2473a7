/*
 * An open merge: one that left something to decide, kept as a draft of its own (kind 3) until all of
 * it is settled. While a branch has one, sessions on the branch work on it, as they do on the shared draft
 * otherwise: what a user writes settles what is written.
 *
 * The draft lies over the branch's commit. Its one row at first, of "/", is the merged snapshot, in
 * which everything in conflict is as ours has it; rows of draft_move say what moved, and rows of
 * `conflict` what is to be decided. So the draft is a whole version at any time.
 *
 *      brc_merge_work(&run); brc_merge_tree_ahead(run.tree)       conflicts
 *      brc_store_begin() ... that nothing has changed ... brc_open_merge_start() ... brc_store_end()
 *      any session on the branch, by whatever process
 *      brc_open_merge_read()                                       what is left
 *      brc_session_commit_merge()                                  src/api/merge_end.h
 *
 * A cherry-pick or revert does the same with another run (change.h): `other` is NULL, for its commit
 * has one parent, and the plan names the versions between which the change lies. Ids in a plan are roots
 * of collections; brc_gc_keep_commit() holds them when the row is made.
 *
 * A rebase is a row of cherry-picks. It stops at one of them: the draft lies over what was made before, a commit
 * that no ref names, and the plan says what is to come (src/api/rebase.c).
 */
#ifndef BRC_ZARR_OPEN_MERGE_H
#define BRC_ZARR_OPEN_MERGE_H

#include "../history/merge_list.h"
#include "step_change.h"
#include "session.h"

enum { BRC_SETTLED_NOT = 0, BRC_SETTLED_OURS = 1, BRC_SETTLED_THEIRS = 2, BRC_SETTLED_HAND = 3 };

typedef struct brc_open_merge_new {
    const char *branch;
    const brc_oid *tip;   /* the branch's commit; NULL: it has none              */
    const brc_oid *base;  /* ours, of a rebase; NULL: the tip                    */
    const brc_oid *other; /* the other parent; NULL: none                        */
    const char *plan;     /* {"op": "merge", "rev": TEXT, "message": TEXT}: op, as in the operation log; what
                             was merged, as it was called; the commit's message. "base", "theirs": commits,
                             where the base is not that of tip and other; "settled": true, theirs is what was settled before the
                             branch moved, over base. "at": the commit whose author, time
                             and message are kept, where "author", "time" and "message" are not there */
    const brc_step_change *change; /* what the plan names; NULL: nothing but `other`    */
    const brc_oid *more;  /* further commits that it names                       */
    size_t nmore;
} brc_open_merge_new;
/* Within a write. The branch must have neither a shared draft nor an open merge. */
BRC_MUST_USE int brc_open_merge_start(int64_t *draft, brc_merge_run *run, const brc_open_merge_new *what, brc_error *err);

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
/* That of the session's branch, in a read or a change of the session. */
BRC_MUST_USE int brc_open_merge_read(brc_open_merge *out, brc_session *s, brc_error *err);
void brc_open_merge_dispose(brc_open_merge *merge);
size_t brc_open_merge_left(const brc_open_merge *merge);

/* BRC_ECONFLICT if something at or under the path is not settled: it would lose its place. In a change. */
BRC_MUST_USE int brc_open_merge_may_move(brc_session *s, const char *path, brc_error *err);

/* The merge again: run->how says whom to favour now, and where. */
BRC_MUST_USE int brc_open_merge_run(brc_merge_run *run, const brc_open_merge *merge, brc_error *err);
/* The draft becomes this snapshot; its moves stay, or are these (NULL: they stay). Within a change of the session. */
BRC_MUST_USE int brc_open_merge_lay(brc_session *s, const brc_oid *root, const brc_move_set *moves, brc_error *err);

#endif
