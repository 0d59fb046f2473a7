/*
 * Children of private sessions. A child is based on a commit that no ref names and that has
 * everything its parent showed: the parent's uncommitted rows are folded into that commit as for a
 * normal commit, and the parent is based on it too from then on. So the next child costs one row,
 * and later writes of either session are told apart by their common beginning.
 */
#ifndef BRC_API_CHILDREN_H
#define BRC_API_CHILDREN_H

#include "../work/fold.h"

/* Fails with BRC_EMISUSE if the session is a child, because a child is joined and not committed. */
BRC_MUST_USE int brc_fork_check_commit(const brc_session *s, brc_error *err);

#endif
