/*
 * Children of private sessions. A child lies over a commit that no ref names, which has all that its
 * parent showed: the parent's uncommitted rows are folded into it, as for a commit, and the parent
 * lies over it too from then on. So the next child costs a row, and whatever either writes later is
 * told apart by what both began from.
 */
#ifndef BRC_API_FORK_H
#define BRC_API_FORK_H

#include "../zarr/fold.h"

/* Within a change of the session: what its draft says becomes a commit, over which the draft lies afterwards.
 * `root` is that snapshot, and `moves` what has moved since *since (has 0: nothing); brc_fork_since() says which commit
 * that is. No commit is made where it is the base's own snapshot. */
BRC_MUST_USE int brc_fork_lay(brc_session *s, int has, const brc_oid *since, const brc_oid *root, const brc_move_set *moves,
                              brc_error *err);
/* Within a change or a read: the commit that the next one of uncommitted changes follows, so that moves can be traced
 * from any child's to it, but no longer than there are children. */
BRC_MUST_USE int brc_fork_since(brc_session *s, int *has, brc_oid *since, brc_error *err);
/* A child goes back to what it was when it began. Within a change. */
BRC_MUST_USE int brc_fork_go_back(brc_session *s, brc_error *err);
/* BRC_EMISUSE where a savepoint of it is open: what children wrote would not go with it. */
BRC_MUST_USE int brc_fork_check_saves(const brc_session *s, brc_error *err);
/* BRC_EMISUSE for a child, which is joined. */
BRC_MUST_USE int brc_fork_check_commit(const brc_session *s, brc_error *err);

#endif
