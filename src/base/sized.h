/* Structures that cross the public interface between programs and libraries of different
 * versions: breccia.h has the rules. */
#ifndef BRC_BASE_SIZED_H
#define BRC_BASE_SIZED_H

#include "error.h"

/* ---- sized -------------------------------- */

/* Copies the caller's structure into own, which has `known` bytes, with zero for the fields that an
 * older caller does not have. `least`: the end of the fields that every version has. `given` NULL: all
 * zero. */
BRC_MUST_USE int brc_sized_in(void *own, size_t known, size_t least, const void *given,
                              const char *name, brc_error *err);
/* Copies own's fields after `size` into the caller's structure, as far as that has them. */
BRC_MUST_USE int brc_sized_out(void *given, const void *own, size_t known, size_t least,
                               const char *name, brc_error *err);
/* Checks a structure's size: BRC_EINVAL if no version can have it. */
BRC_MUST_USE int brc_sized_check(size_t size, size_t least, const char *name, brc_error *err);
/* Checks flags: BRC_EINVAL if `flags` has others than those of `all`. */
BRC_MUST_USE int brc_flags_check(uint32_t flags, uint32_t all, const char *name, brc_error *err);

/* ---- iter -------------------------------- */

/* The one iterator type of the public interface: a kind, and a state of its own. */

enum {
    BRC_ITER_REFS = 1, BRC_ITER_LOG, BRC_ITER_CHANGES, BRC_ITER_NODES, BRC_ITER_KEYS,
    BRC_ITER_CODECS, BRC_ITER_BACKENDS, BRC_ITER_DTYPES, BRC_ITER_DRAFTS, BRC_ITER_KEY_DIR,
    BRC_ITER_OPLOG, BRC_ITER_BLAME, BRC_ITER_CONFLICTS, BRC_ITER_EXPIRED, BRC_ITER_DU
};

/* Makes an iterator with a state of `size` zeroed bytes; `dispose` releases the memory that the state points to. */
BRC_MUST_USE int brc_iter_new(brc_iter **out, int kind, size_t size, void (*dispose)(void *state), brc_error *err);
void *brc_iter_state(brc_iter *it);
/* Checks an iterator: BRC_EMISUSE if it is of another kind. */
BRC_MUST_USE int brc_iter_check(const brc_iter *it, int kind, brc_error *err);

#endif
