/* Open merges, cherry-picks, reverts and rebases: what is left of one, settling it, and its end (of a rebase in
 * rebase.c). */
#ifndef BRC_MERGE_MERGE_END_H
#define BRC_MERGE_MERGE_END_H

#include "../work/fold.h"
#include "sequence.h"

/* A session on the current branch, and what is open there; out->draft.id 0: nothing. Both are the caller's, also after
 * a failure. */
BRC_MUST_USE int brc_look_at_open(brc_session **s, brc_open_merge *out, breccia *repo, int mode, brc_error *err);
/* BRC_EMISUSE, in words. */
int brc_none_is_open(const brc_session *s, brc_error *err);
int brc_other_is_open(const brc_session *s, const brc_open_merge *merge, brc_error *err);
/* What was settled, as a snapshot that nothing names: *folded has it, and *moves what moved since q->now. After
 * brc_sequence_resume(), outside of a transaction. q->again: others have written meanwhile. */
BRC_MUST_USE int brc_open_fold(brc_session *s, brc_sequence *q, brc_folded *folded, brc_move_set *moves, brc_error *err);
/* BRC_EMISUSE within a transaction, BRC_EREADONLY. */
BRC_MUST_USE int brc_can_end_open(breccia *repo, brc_error *err);

#endif
