/*
 * Children of private sessions. A child lies over a commit that no ref names, which has all that its
 * parent showed: the parent's uncommitted rows are folded into it, as for a commit, and the parent
 * lies over it too from then on. So the next child costs a row, and whatever either writes later is
 * told apart by what both began from.
 */
#ifndef BRC_API_CHILDREN_H
#define BRC_API_CHILDREN_H

#include "../work/fold.h"

/* BRC_EMISUSE for a child, which is joined. */
BRC_MUST_USE int brc_fork_check_commit(const brc_session *s, brc_error *err);

#endif
