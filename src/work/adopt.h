/*
 * Adopts a draft: the changes that one draft makes to nodes become part of another draft. Rows of
 * nodes move from one draft to the other and rows of chunks stay where they are, so the cost grows
 * with the number of nodes.
 *
 * Rows of one side can become rows of the other only if the two have changed nothing in common: no
 * node, but for chunks of one array, of which each side has its own. Otherwise the drafts are merged
 * (merge/merge_layers.h).
 *
 * The rows of a bulk write count as written now, over what the session has: there is no version that
 * both began from. What others have changed meanwhile of the nodes that it wrote is compared with
 * what these nodes were when it wrote them (document, map and storage options by themselves), and
 * is BRC_ECONFLICT where both do not go together: one side changed the form of an array and the
 * other wrote chunks, one side removed a node that the other changed, or rows are under a group that
 * was replaced.
 */
#ifndef BRC_WORK_ADOPT_H
#define BRC_WORK_ADOPT_H

#include "session.h"

/* ---- fork keys -------------------------------- */

/*
 * Keys of a draft that are neither a node nor a chunk (store/draft_chunk.c), where a session has
 * children. No snapshot has these keys. A child starts with the keys of its parent and notes them
 * in its plan, so that a join can tell later which side has changed a key.
 */

typedef struct brc_fork_key {
    char *key;
    int has_id; /* 0: the key of a document, which has no id */
    brc_oid id;
} brc_fork_key;
typedef struct brc_fork_keys {
    void *items; /* brc_fork_key[], sorted by key */
    size_t n, cap;
} brc_fork_keys;
void brc_fork_keys_dispose(brc_fork_keys *keys);
BRC_MUST_USE int brc_fork_keys_read(brc_fork_keys *out, brc_store *store, int64_t draft, brc_error *err);
/* Write the plan of a child that begins with these keys, and read such a plan, "" for no key. BRC_ELIMIT: a plan has no
 * room for so many keys. */
BRC_MUST_USE int brc_fork_keys_write(brc_buf *out, const brc_fork_keys *keys, brc_error *err);
BRC_MUST_USE int brc_fork_keys_parse(brc_fork_keys *out, const char *plan, brc_error *err);
/* Gives the keys to a draft that has none. BRC_ESTALE: the bytes of a key are no longer stored. Call within a
 * write. */
BRC_MUST_USE int brc_fork_keys_put(const brc_fork_keys *keys, brc_store *store, int64_t draft, brc_error *err);
/* Joins three lists: `out` is `ours` plus what `theirs` changed since `base`, from which both started. `clash`
 * receives each key that both sides changed to different values (NULL: that side lacks the key); `out` keeps ours
 * for such a key. `out` must be empty. */
typedef int (*brc_fork_clash_fn)(void *ctx, const char *key, const brc_fork_key *base, const brc_fork_key *ours,
                                 const brc_fork_key *theirs, brc_error *err);
BRC_MUST_USE int brc_fork_keys_join(brc_fork_keys *out, const brc_fork_keys *base, const brc_fork_keys *ours,
                                    const brc_fork_keys *theirs, brc_fork_clash_fn clash, void *ctx, brc_error *err);
/* Changes the keys of the draft from `before`, which it has now, to `after`. Call within a write. */
BRC_MUST_USE int brc_fork_keys_change(const brc_fork_keys *before, const brc_fork_keys *after, brc_store *store, int64_t draft,
                                      brc_error *err);

/* ---- adopt -------------------------------- */

/* The state of a node before the draft. */
typedef struct brc_known_node {
    char *path;
    brc_entry entry;
} brc_known_node;

typedef struct brc_adoption {
    int64_t draft;     /* the draft whose rows are adopted; its own row stays, empty */
    brc_oid base;      /* the snapshot over which the draft lies                    */
    /* For a bulk write, in place of `base`: the nodes that existed when it wrote them; all others are new. The
     * chunks of a bulk write count as written now, over the session's. */
    int is_bulk;
    int is_quiet;      /* for a bulk write: nobody else has changed anything since it began */
    const brc_known_node *known; /* sorted by path */
    size_t nknown;
    /* For a bulk write: an array to replace, with its rows; NULL: none. Its uncommitted chunks must still be those
     * in row `still` and the rows below, or, if `still` is 0, it must have none. */
    const char *replaced;
    int64_t still;
} brc_adoption;

/* Adopts the rows. Call between brc_session_begin() and brc_session_end() of `onto`, which must not be the draft's
 * own session. Returns BRC_OK, an error, or BRC_ADOPT_MEETS: both sides have changed the same. If it is not BRC_OK,
 * the caller must roll the transaction back. */
enum { BRC_ADOPT_MEETS = 100 };
BRC_MUST_USE int brc_session_adopt_rows(brc_session *onto, const brc_adoption *adoption, brc_error *err);
/* Call before the end of a bulk write: if the stacks of both sides would be too high together, shortens them in short
 * transactions. Readers see no difference. */
BRC_MUST_USE int brc_adopt_make_room(brc_session *onto, int64_t draft, brc_error *err);
/* Shortens a single stack in the same way. */
BRC_MUST_USE int brc_stack_make_shorter(brc_store *store, int64_t node, brc_error *err);
/* Removes from the stack the rows above the first row that has chunks. */
BRC_MUST_USE int brc_stack_used(brc_store *store, brc_draft_stack *stack, brc_error *err);
/* Makes a whole private draft the session's own changes, within a write of the store. Takes the draft over as it is
 * if the session has no changes; otherwise both must lie over one commit and follow one commit (BRC_ESTALE).
 * Removes the draft's row. BRC_ADOPT_MEETS: both have changed the same, and the transaction must be rolled back; with
 * `take_only`: the session has changes, and nothing was written. */
BRC_MUST_USE int brc_session_adopt(brc_session *onto, const brc_draft_head *draft, int take_only, brc_error *err);
/* Takes over the draft of a bulk write during which nobody has changed the session's draft, but only if the session
 * has no changes: its nodes then need not be compared one by one. */
BRC_MUST_USE int brc_session_take_written(brc_session *onto, int64_t draft, int *taken, brc_error *err);

#endif
