/* Hierarchies that no writer of ours would make, every hash in them right. */
#ifndef BRC_TESTS_HOSTILE_KIT_H
#define BRC_TESTS_HOSTILE_KIT_H

#include "../../src/history/commit.h"
#include "store_kit.h"

/* A group with these children, `names` n of them. */
brc_entry hostile_group(store_kit *k, const char *const *names, const brc_entry *entries, size_t n);
/* An array of 8 chunks of 4 bytes, one of which is stored. */
brc_entry hostile_array(store_kit *k);
/* Groups called "a", that many in each other; and so many levels of groups "a" and "b"
 * that are one group, around `inside`. */
brc_entry hostile_nest(store_kit *k, int depth);
brc_entry hostile_shared(store_kit *k, int levels, const brc_entry *inside);
/* A commit of it on main, behind an empty one, in one transaction with what was put since hostile_begin(). */
void hostile_begin(store_kit *k);
void hostile_commit(store_kit *k, const brc_entry *root);

/* Runs `body` in a process of its own with little stack and memory, and a minute of
 * processor time: 0 if it ended well. */
int hostile_confined(void (*body)(void *ctx), void *ctx);

#endif
