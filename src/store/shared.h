/*
 * What the handles of one file share, each on a thread of its own: the registry, and small
 * objects that were read. Objects never change and are named by their content, so one that a
 * handle has read and checked is right for every other.
 *
 * Invariant: only what is in the file, committed, is here: a handle that finds an object in
 * memory does not store it again.
 */
#ifndef BRC_STORE_SHARED_H
#define BRC_STORE_SHARED_H

#include "cache.h"

typedef struct brc_shared brc_shared;

/* `own`: a registry that is freed with it, or NULL. One reference. */
BRC_MUST_USE int brc_shared_new(brc_shared **out, brc_registry *own, brc_error *err);
brc_shared *brc_shared_ref(brc_shared *shared);
void brc_shared_unref(brc_shared *shared); /* NULL is accepted */
/* 1 with a reference to the object's bytes. While there is one handle, nothing is kept here.
 * shared NULL: there is nothing. */
int brc_shared_find(brc_shared *shared, const brc_oid *id, int kind, brc_blob **out);
/* Where memory is short it does nothing. */
void brc_shared_add(brc_shared *shared, const brc_oid *id, int kind, brc_blob *blob);

#endif
