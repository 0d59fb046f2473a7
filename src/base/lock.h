/* A lock between threads, and what is done around fork(). */
#ifndef BRC_BASE_LOCK_H
#define BRC_BASE_LOCK_H

#include "error.h"

typedef struct brc_lock brc_lock;

BRC_MUST_USE int brc_lock_new(brc_lock **out, brc_error *err);
void brc_lock_free(brc_lock *lock); /* NULL is accepted */
void brc_lock_enter(brc_lock *lock);
void brc_lock_leave(brc_lock *lock);

/* From now on `before` runs in front of every fork() of this process and its children, and `after`
 * behind it, in both. */
void brc_at_fork(void (*before)(void), void (*after)(void));

#endif
