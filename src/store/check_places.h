/*
 * Whether each stored blob belongs to an object, and no two objects lie in the same bytes, without
 * a statement that takes long: objects are read in the order of their ids, a range at a time, and sorted
 * by place here, as many as memory may hold; where there are more, they are read again for the
 * places behind.
 */
#ifndef BRC_STORE_CHECK_PLACES_H
#define BRC_STORE_CHECK_PLACES_H

#include "db.h"

/* Objects that are sorted at once: 24 MiB. */
#define BRC_PLACES_AT_ONCE ((size_t)1 << 20)

/* *doubtful: there is a fault, or what others wrote meanwhile looks like one: to be asked again of one
 * state. In a read, which is paused after each range. */
BRC_MUST_USE int brc_check_places(brc_store *store, size_t at_once, int *doubtful, brc_error *err);

#endif
