/* What cherry-pick, revert and rebase take and give. */
#ifndef BRC_API_PICK_H
#define BRC_API_PICK_H

#include "sequence.h"

/* Options as a caller gave them, checked: these flags are allowed beside those of a side. */
BRC_MUST_USE int brc_pick_opts_take(brc_pick_opts *own, const brc_pick_opts *given, uint32_t flags, brc_error *err);
/* `paths` in normal form; they are used as long as the sequence is. */
void brc_pick_opts_apply(brc_sequence *q, const brc_pick_opts *opts, char *const *paths);
/* The caller's result and list of conflicts; `at`: the commit whose change is in conflict. */
BRC_MUST_USE int brc_pick_answer(brc_pick_result *out, brc_iter **conflicts, brc_sequence *q, brc_pick_result *result,
                                 const brc_oid *at, brc_error *err);

#endif
