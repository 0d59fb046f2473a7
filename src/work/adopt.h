/*
 * Adopting a draft: what one draft says of nodes becomes part of another's. Rows of nodes change
 * hands and those of chunks stay where they are, so it costs what there are nodes.
 *
 * For each node that the draft touches there are three: what it was (the base), what the draft makes
 * of it, and what the session now has. Where one side changed an entry, that side wins; document,
 * map and storage options count apart. Chunks of both are laid over each other. Whatever cannot be
 * told apart is BRC_ECONFLICT: a chunk that both wrote, one form of an array and chunks of another,
 * a node that one removed and one changed, rows under a group that was replaced, moved nodes that
 * both touched.
 */
#ifndef BRC_WORK_ADOPT_H
#define BRC_WORK_ADOPT_H

#include "session.h"

/* ---- fork keys -------------------------------- */

/*
 * Keys of a draft that are no node or chunk (store/draft_chunk.c), where a session has children: they
 * are in no snapshot. A child begins with its parent's and notes them in its plan, so that it is
 * known later which side has changed one.
 */

typedef struct brc_fork_key {
    char *key;
    int has_id; /* 0: a document's, which has no key */
    brc_oid id;
} brc_fork_key;
typedef struct brc_fork_keys {
    void *items; /* brc_fork_key[], by key */
    size_t n, cap;
} brc_fork_keys;
void brc_fork_keys_dispose(brc_fork_keys *keys);
BRC_MUST_USE int brc_fork_keys_read(brc_fork_keys *out, brc_store *store, int64_t draft, brc_error *err);
/* As a JSON object, and back. BRC_ELIMIT: they are too many for a plan. */
BRC_MUST_USE int brc_fork_keys_write(brc_buf *out, const brc_fork_keys *keys, brc_error *err);
BRC_MUST_USE int brc_fork_keys_parse(brc_fork_keys *out, const brc_json *object, brc_error *err);
/* A draft without keys gets them; their bytes are there, else BRC_ESTALE. Within a write. */
BRC_MUST_USE int brc_fork_keys_put(const brc_fork_keys *keys, brc_store *store, int64_t draft, brc_error *err);
/* `base` is what both began with: out is `ours` with what `theirs` has changed. `clash` gets what both have
 * changed to something else, which stays as ours has it; NULL: not there. `out` is empty before. */
typedef int (*brc_fork_clash_fn)(void *ctx, const char *key, const brc_fork_key *base, const brc_fork_key *ours,
                                 const brc_fork_key *theirs, brc_error *err);
BRC_MUST_USE int brc_fork_keys_join(brc_fork_keys *out, const brc_fork_keys *base, const brc_fork_keys *ours,
                                    const brc_fork_keys *theirs, brc_fork_clash_fn clash, void *ctx, brc_error *err);
/* The draft's keys, which are `before`, become `after`. Within a write. */
BRC_MUST_USE int brc_fork_keys_change(const brc_fork_keys *before, const brc_fork_keys *after, brc_store *store, int64_t draft,
                                      brc_error *err);

/* ---- adopt -------------------------------- */

/* What a node was before the draft. */
typedef struct brc_known_node {
    char *path;
    brc_entry entry;
} brc_known_node;

/* What was seen of two drafts before one is adopted: whether they have written the same chunks. */
typedef struct brc_adopt_look {
    brc_draft_head draft, onto; /* both as they were; id 0: nothing was looked at */
    int64_t met;                /* the first row of `draft` that does; 0: none    */
} brc_adopt_look;

typedef struct brc_adoption {
    int64_t draft;     /* whose rows they are; its own row stays, empty             */
    brc_oid base;      /* the snapshot over which it lies                           */
    /* Of a bulk write, in place of `base`: the nodes that it met; all others are new. What it writes
     * is written now, over what is there. */
    int is_bulk;
    int is_quiet;      /* of a bulk write: nobody else has changed a thing since it began */
    const brc_known_node *known; /* by path */
    size_t nknown;
    /* Of a bulk write: an array that is replaced, rows and all; NULL: none. It must still have its chunks in
     * this row and below, or, 0, in none. */
    const char *replaced;
    int64_t still;
    const brc_adopt_look *look; /* NULL: it was not looked, or something has changed since */
} brc_adoption;

/* Within brc_session_begin() and _end() of `onto`, another session than the draft's. Where it fails
 * the transaction is to be undone. */
BRC_MUST_USE int brc_session_adopt_rows(brc_session *onto, const brc_adoption *adoption, brc_error *err);
/* Before that, and outside of a transaction, or in a bulk write: where rows of both would be too many on
 * each other they become fewer, in short transactions. Nobody sees a difference. */
BRC_MUST_USE int brc_adopt_make_room(brc_session *onto, int64_t draft, brc_error *err);
/* After that: whether they meet, which takes as long as their chunks are many, in short reads. */
BRC_MUST_USE int brc_adopt_look_ahead(brc_session *onto, int64_t draft, brc_adopt_look *out, brc_error *err);
/* The same of one stack. */
BRC_MUST_USE int brc_stack_make_shorter(brc_store *store, int64_t node, brc_error *err);
/* Leaves out rows above the first that has chunks. */
BRC_MUST_USE int brc_stack_used(brc_store *store, brc_draft_stack *stack, brc_error *err);
/* A private draft becomes, whole, the session's own changes: within a write of the store. It is
 * taken over as it is where the session has none; else both must lie over one commit and follow one
 * (BRC_ESTALE). Its row is gone then. `look`: what was seen before. */
BRC_MUST_USE int brc_session_adopt(brc_session *onto, const brc_draft_head *draft, const brc_adopt_look *look,
                                   brc_error *err);
/* The draft of a bulk write during which nobody has changed the session's, likewise, but only where that
 * has no changes: then its nodes need not be looked at one by one. */
BRC_MUST_USE int brc_session_take_written(brc_session *onto, int64_t draft, int *taken, brc_error *err);

#endif
