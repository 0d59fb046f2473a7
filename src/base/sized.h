/* Structures that cross the public interface between programs and libraries of different
 * versions: breccia.h has the rules. */
#ifndef BRC_BASE_SIZED_H
#define BRC_BASE_SIZED_H

#include "error.h"

/* What the caller gives: own, `known` bytes, receives it, with zero for the fields that an older
 * caller does not have. `least`: the end of the fields that every version has. `given` NULL: all
 * zero. */
BRC_MUST_USE int brc_sized_in(void *own, size_t known, size_t least, const void *given,
                              const char *name, brc_error *err);
/* What the caller receives: own's fields after `size`, as far as it has them. */
BRC_MUST_USE int brc_sized_out(void *given, const void *own, size_t known, size_t least,
                               const char *name, brc_error *err);
/* BRC_EINVAL if no version of the structure can have this size. */
BRC_MUST_USE int brc_sized_check(size_t size, size_t least, const char *name, brc_error *err);
/* BRC_EINVAL if `flags` has others than those of `all`. */
BRC_MUST_USE int brc_flags_check(uint32_t flags, uint32_t all, const char *name, brc_error *err);

#endif
