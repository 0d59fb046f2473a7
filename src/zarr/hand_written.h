/* Whether somebody has written a chunk that an open merge left in conflict. */
#ifndef BRC_ZARR_HAND_WRITTEN_H
#define BRC_ZARR_HAND_WRITTEN_H

#include "../history/merge_list.h"
#include "session.h"

/*
 * `then`: the array as the merge left it; `now`: as the session has it, with its row of the draft (0: none). Both are
 * arrays. In a read or a change of the session.
 *
 * As long as chunks are cut and encoded as they were then, a row of the chunk says that it was written, whatever with.
 * An array that was resized or encoded anew since has other rows too, and what was written before is no longer a
 * row: of that one, elements count that differ from what the merge left. A chunk of which the new shape has nothing
 * needs no decision.
 */
BRC_MUST_USE int brc_chunk_is_hand_written(brc_session *s, const brc_clash *clash, const brc_entry *then,
                                           const brc_entry *now, int64_t row, int *is, brc_error *err);

#endif
