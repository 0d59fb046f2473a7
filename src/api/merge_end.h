/* Open merges, cherry-picks, reverts and rebases: what is left of one (merge_end.c), and its end (merge_end.c;
 * and merge_end.c; of a rebase rebase.c). */
#ifndef BRC_API_MERGE_END_H
#define BRC_API_MERGE_END_H

#include "../zarr/open_merge.h"

/* Commits what the session's open merge has become, with its other parent if it has one, and ends it. The operation
 * log says what the plan says ("op"). A cherry-pick or revert of which nothing is left makes no commit: *out is the
 * branch's tip then. BRC_EMISUSE: none is open; BRC_ECONFLICT: something is not settled; BRC_ESTALE, with *moved 1: the
 * branch has moved since. */
BRC_MUST_USE int brc_session_commit_merge(brc_oid *out, int *moved, brc_session *s, const brc_commit_opts *opts,
                                          brc_error *err);
/* The same where the branch has moved: it is merged onto the new tip. A parent of the commit is that, and the other one
 * unless the tip has it. With conflicts there is no commit, and another draft is open, over the new tip. Of `like`
 * author, time, message and meta count. Not within a transaction. */
typedef struct brc_onto_tip {
    brc_oid commit;       /* the branch's; zero where it is open                     */
    int is_made, is_open; /* a commit; the other draft                               */
} brc_onto_tip;
/* BRC_ECONFLICT, for what cannot be done while a merge or the like is open on the branch: the error names it. */
int brc_merge_is_open(brc_store *store, const char *branch, brc_error *err);

/* A session on the current branch, and what is open there; out->draft.id 0: nothing. Both are the caller's, also after
 * a failure. */
BRC_MUST_USE int brc_look_at_open(brc_session **s, brc_open_merge *out, breccia *repo, int mode, brc_error *err);
/* BRC_EMISUSE, in words. */
int brc_none_is_open(const brc_session *s, brc_error *err);
int brc_other_is_open(const brc_session *s, const brc_open_merge *merge, brc_error *err);
/* BRC_EMISUSE within a transaction, BRC_EREADONLY. */
BRC_MUST_USE int brc_can_end_open(breccia *repo, brc_error *err);

#endif
