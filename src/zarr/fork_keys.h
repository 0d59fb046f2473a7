/*
 * Keys of a draft that are no node or chunk (store/draft_key.c), where a session has children: they
 * are in no snapshot. A child begins with its parent's and notes them in its plan, so that it is
 * known later which side has changed one.
 */
#ifndef BRC_ZARR_FORK_KEYS_H
#define BRC_ZARR_FORK_KEYS_H

#include "session.h"

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

#endif
