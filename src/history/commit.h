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

/* BRC_EINVAL for a message of white space alone, or of nothing; NULL is none that somebody gave. */
BRC_MUST_USE int brc_message_check(const char *message, brc_error *err);
/* Writes the commit and its derived row, and sets commit->id. `moves`: since the first parent,
 * sealed; NULL: none. */
BRC_MUST_USE int brc_commit_put(brc_store *store, brc_commit *commit, const brc_move_set *moves, brc_error *err);
/* Release with brc_commit_free(). BRC_ECORRUPT if the id does not name a commit: ids
 * come from refs and other commits. Where parents have expired (BRC_PAST_EXPIRED), `parents` are the
 * nearest ancestors that are kept, however many, and the moves are those since the first of them. */
BRC_MUST_USE int brc_commit_get(brc_commit **out, brc_store *store, const brc_oid *id, brc_error *err);
/* The same; BRC_ENOTFOUND where there is no such commit. */
BRC_MUST_USE int brc_commit_need(brc_commit **out, brc_store *store, const brc_oid *id, brc_error *err);
/* As its bytes say, whatever has expired. */
BRC_MUST_USE int brc_commit_parse(brc_commit **out, const brc_oid *id, brc_span text, size_t id_len, brc_error *err);
/* The moves of a commit that was read by one of these, since its first parent: sealed, and its
 * own. Only the form was checked: the nodes need not be there. */
const brc_move_set *brc_commit_moves(const brc_commit *commit);
/* The snapshot of a commit. */
BRC_MUST_USE int brc_commit_root(brc_store *store, const brc_oid *id, brc_oid *root, brc_error *err);

/* "main", "v1", "1a2b3c", "HEAD~2", "main@{2026-11-20T12:00:00Z}". */
BRC_MUST_USE int brc_rev_resolve(brc_store *store, const char *rev, brc_oid *out, brc_error *err);
/* Whether a name is the whole id of a commit here: it means that one, whatever refs are called. */
BRC_MUST_USE int brc_rev_is_id(brc_store *store, const char *name, int *is, brc_oid *out, brc_error *err);
/* Splits "A..B" in two; one that is left out is HEAD. *is_range is 0 if it is not a range. */
BRC_MUST_USE int brc_rev_range(const char *rev, int *is_range, char **from, char **to, brc_error *err);
/* "2026-11-20", "2026-11-20T12:00[:00[.123456]][Z|+01:00]", "@seconds". */
BRC_MUST_USE int brc_time_parse(int64_t *out, const char *text, brc_error *err);
/* The rules for names of branches and tags: git's, more or less. */
BRC_MUST_USE int brc_ref_name_check(const char *name, brc_error *err);
/* "heads/NAME" or "tags/NAME". */
BRC_MUST_USE int brc_ref_full(char **out, const char *space, const char *name, brc_error *err);

/* Walks the commits that are reachable from `tip`: children before their parents, otherwise
 * the newest first. Only from the first merge on does it need memory for every commit. */
typedef struct brc_walk brc_walk;
BRC_MUST_USE int brc_walk_new(brc_walk **out, brc_store *store, const brc_oid *tip, brc_error *err);
void brc_walk_free(brc_walk *walk);
/* Leaves out the commits that are reachable from `tip`. May be called once, before the first step. */
BRC_MUST_USE int brc_walk_hide(brc_walk *walk, const brc_oid *tip, brc_error *err);
/* 1 with a commit, borrowed until the next step; 0 at the end. */
BRC_MUST_USE int brc_walk_next(brc_walk *walk, const brc_commit **out, brc_error *err);
/* The commit that was given last now belongs to the caller, who frees it. */
brc_commit *brc_walk_take(brc_walk *walk);

#endif
