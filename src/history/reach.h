/*
 * Which commits are ancestors of others: found from some tips on, step by step. Unlike
 * closure.h it goes to the nearest commits first, so that it can stop when it finds what is
 * asked for, and it reads only commits.
 */
#ifndef BRC_HISTORY_REACH_H
#define BRC_HISTORY_REACH_H

#include "../store/store.h"

typedef struct brc_reach brc_reach;

BRC_MUST_USE int brc_reach_new(brc_reach **out, brc_store *store, brc_error *err);
void brc_reach_free(brc_reach *reach);
/* One more commit to start from; it counts as reached itself. */
BRC_MUST_USE int brc_reach_from(brc_reach *reach, const brc_oid *tip, brc_error *err);
/* 1 if `id` is reached, else 0. Goes back only until it is found, the commits nearest to
 * the tips first, and remembers for the next call what it has met. */
BRC_MUST_USE int brc_reach_find(brc_reach *reach, const brc_oid *id, brc_error *err);

#endif
