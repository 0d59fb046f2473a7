/*
 * Commits, and the words that name them.
 *
 * A commit's canonical bytes are lines of text and the message:
 *
 *   root <hex>                       the snapshot; absent: the empty one
 *   parent <hex>                     once for each, in order
 *   move <from> <to>                 once for each node that is elsewhere in the first parent's
 *                                    snapshot (moves.h), by <to>
 *   author <text>
 *   time <microseconds since 1970 UTC, decimal>
 *   meta <a JSON object>             absent: {}
 *   <empty line>
 *   <message, to the end>
 */
#ifndef BRC_HISTORY_COMMIT_H
#define BRC_HISTORY_COMMIT_H

#include "moves.h"
#include "snapshot.h"

#define BRC_MAX_PARENTS 16

/* Fails with BRC_EINVAL if the message is empty or only white space. NULL means that no message was
 * given. */
BRC_MUST_USE int brc_message_check(const char *message, brc_error *err);
/* Writes the commit and its derived row, and sets commit->id. `moves` are the moves since the first
 * parent, sealed; NULL: none. */
BRC_MUST_USE int brc_commit_put(brc_store *store, brc_commit *commit, const brc_move_set *moves, brc_error *err);
/* Reads a commit. Release it with brc_commit_free(). Fails with BRC_ECORRUPT if the id does not
 * name a commit, because ids come from refs and other commits. If parents have expired
 * (BRC_PAST_EXPIRED), `parents` are the nearest kept ancestors, however many, and the moves are
 * those since the first of them. */
BRC_MUST_USE int brc_commit_get(brc_commit **out, brc_store *store, const brc_oid *id, brc_error *err);
/* Like brc_commit_get(), but fails with BRC_ENOTFOUND if the commit does not exist. */
BRC_MUST_USE int brc_commit_need(brc_commit **out, brc_store *store, const brc_oid *id, brc_error *err);
/* Parses a commit's bytes, without regard to expired parents. */
BRC_MUST_USE int brc_commit_parse(brc_commit **out, const brc_oid *id, brc_span text, size_t id_len, brc_error *err);
/* Returns the moves of a commit that one of these functions read, since its first parent. They are
 * sealed and belong to the commit. Only their form was checked: the nodes need not exist. */
const brc_move_set *brc_commit_moves(const brc_commit *commit);
/* Returns the snapshot of a commit. */
BRC_MUST_USE int brc_commit_root(brc_store *store, const brc_oid *id, brc_oid *root, brc_error *err);

/* Finds the commit of "main", "v1", "1a2b3c", "HEAD~2", "main@{2026-11-20T12:00:00Z}" and the
 * like. */
BRC_MUST_USE int brc_rev_resolve(brc_store *store, const char *rev, brc_oid *out, brc_error *err);
/* Checks whether a name is the complete id of a commit here. If so, it means that commit, even if a
 * ref has the same name. */
BRC_MUST_USE int brc_rev_is_id(brc_store *store, const char *name, int *is, brc_oid *out, brc_error *err);
/* Splits "A..B" in two; a side that is left out is HEAD. *is_range is 0 if the text is not a
 * range. */
BRC_MUST_USE int brc_rev_range(const char *rev, int *is_range, char **from, char **to, brc_error *err);
/* Checks the name of a branch or tag by rules that are close to git's. */
BRC_MUST_USE int brc_ref_name_check(const char *name, brc_error *err);
/* Makes "heads/NAME" or "tags/NAME". */
BRC_MUST_USE int brc_ref_full(char **out, const char *space, const char *name, brc_error *err);

/* Walks the commits that are reachable from `tip`: children before their parents, otherwise newest
 * first. It needs memory for every commit only from the first merge on. */
typedef struct brc_walk brc_walk;
BRC_MUST_USE int brc_walk_new(brc_walk **out, brc_store *store, const brc_oid *tip, brc_error *err);
void brc_walk_free(brc_walk *walk);
/* Hides the commits that are reachable from `tip`. May be called once, before the first step. */
BRC_MUST_USE int brc_walk_hide(brc_walk *walk, const brc_oid *tip, brc_error *err);
/* Returns 1 with a commit, borrowed until the next step, or 0 at the end. */
BRC_MUST_USE int brc_walk_next(brc_walk *walk, const brc_commit **out, brc_error *err);
/* Gives the last commit to the caller, who must free it. */
brc_commit *brc_walk_take(brc_walk *walk);

#endif
