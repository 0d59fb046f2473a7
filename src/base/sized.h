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
/* Copies own's fields after `size` into the caller's structure, up to the end of that structure. */
BRC_MUST_USE int brc_sized_out(void *given, const void *own, size_t known, size_t least,
                               const char *name, brc_error *err);
/* Checks a structure's size: BRC_EINVAL if no version can have it. */
BRC_MUST_USE int brc_sized_check(size_t size, size_t least, const char *name, brc_error *err);
/* Checks flags: BRC_EINVAL if `flags` has others than those of `all`. */
BRC_MUST_USE int brc_flags_check(uint32_t flags, uint32_t all, const char *name, brc_error *err);

/* ---- iter -------------------------------- */

/* The one iterator type of the public interface. */

/* Sets *item to the next item and returns 1, or returns 0 at the end. The item belongs to the state. */
typedef int (*brc_iter_next)(void *state, const void **item, brc_error *err);

/* Makes an iterator with a state of `size` zeroed bytes; `dispose` releases the memory that the state points to. */
BRC_MUST_USE int brc_iter_new(brc_iter **out, brc_iter_next next, size_t size, void (*dispose)(void *state),
                              brc_error *err);
void *brc_iter_state(brc_iter *it);

#endif
