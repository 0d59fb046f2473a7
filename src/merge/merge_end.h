/* Open merges, cherry-picks, reverts and rebases: their state, settling them, and ending them (of a
 * rebase in rebase.c). */
#ifndef BRC_MERGE_MERGE_END_H
#define BRC_MERGE_MERGE_END_H

#include "../work/fold.h"
#include "sequence.h"

/* Opens a session on the current branch and reads what is open there; out->draft.id is 0 if nothing
 * is. The caller owns both, also after a failure. */
BRC_MUST_USE int brc_look_at_open(brc_session **s, brc_open_merge *out, breccia *repo, int mode, brc_error *err);
/* Fail with BRC_EMISUSE: nothing is open, or something else is. */
int brc_none_is_open(const brc_session *s, brc_error *err);
int brc_other_is_open(const brc_session *s, const brc_open_merge *merge, brc_error *err);
/* Folds the settled merge into a snapshot that nothing names yet: *folded has the snapshot, and
 * *moves the moves since q->now. Must be called after brc_sequence_resume(), outside of a
 * transaction. Sets q->again if others have written meanwhile. */
BRC_MUST_USE int brc_open_fold(brc_session *s, brc_sequence *q, brc_folded *folded, brc_move_set *moves, brc_error *err);
/* Fails with BRC_EMISUSE within a transaction and with BRC_EREADONLY for a read-only file. */
BRC_MUST_USE int brc_can_end_open(breccia *repo, brc_error *err);

#endif
