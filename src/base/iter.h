/* The one iterator type of the public interface: a kind, and a state of its own. */
#ifndef BRC_BASE_ITER_H
#define BRC_BASE_ITER_H

#include "error.h"

enum {
    BRC_ITER_REFS = 1, BRC_ITER_LOG, BRC_ITER_CHANGES, BRC_ITER_NODES, BRC_ITER_KEYS,
    BRC_ITER_CODECS, BRC_ITER_BACKENDS, BRC_ITER_DTYPES, BRC_ITER_DRAFTS, BRC_ITER_KEY_DIR,
    BRC_ITER_OPLOG, BRC_ITER_BLAME, BRC_ITER_CONFLICTS, BRC_ITER_EXPIRED, BRC_ITER_DU
};

/* `dispose` releases what the state, `size` zeroed bytes, points to. */
BRC_MUST_USE int brc_iter_new(brc_iter **out, int kind, size_t size, void (*dispose)(void *state), brc_error *err);
void *brc_iter_state(brc_iter *it);
/* BRC_EMISUSE if the iterator is of another kind. */
BRC_MUST_USE int brc_iter_check(const brc_iter *it, int kind, brc_error *err);

#endif
