/*
 * What the file's bytes are for: what each version and each array holds, and what of that it holds
 * alone, so that it would be free if the version, or the array in every version, were not.
 *
 * Exact: every object that refs reach is counted once, by its stored bytes, whatever leads to it.
 */
#ifndef BRC_CARE_USAGE_H
#define BRC_CARE_USAGE_H

#include "../base/hash.h"
#include "expire.h"
#include "gc.h"
#include "../history/closure.h"

/* ---- held -------------------------------- */

/*
 * What some roots hold: every object that they reach once, by counting references as they are. A
 * root that is added or dropped costs what only it leads to, and no more: so what a version alone
 * holds is what dropping it frees, and how the sum goes from one version to the next costs what
 * changed between them.
 *
 * It remembers about 100 bytes for each object that it has met.
 */

typedef struct brc_held {
    brc_store *store;
    brc_id_table table;
    brc_children due;      /* to be counted         */
    brc_children children; /* of the node being read */
    uint64_t bytes, objects; /* that are held: stored bytes, and how many */
} brc_held;

/* ---- usage -------------------------------- */

typedef struct brc_usage_item {
    char *path;  /* of an array; NULL: a commit  */
    brc_oid id;  /* of a commit                  */
    uint64_t bytes, alone;
} brc_usage_item;

typedef struct brc_usage {
    void *items; /* brc_usage_item[]: arrays by path, then commits, children first */
    size_t n, cap;
    uint64_t versions;    /* what branches and tags reach                       */
    uint64_t uncommitted; /* and what only drafts, or versions in use, do       */
    uint64_t log;         /* and what only the window of the operation log does */
    uint64_t expired;     /* of versions: what only those hold that the plan lets expire */
    uint64_t stored;      /* all objects                                        */
} brc_usage;

void brc_usage_dispose(brc_usage *usage);
/* `plan` has the commits that refs reach; *out is zeroes, or has arrays. Within a read. only_expired: nothing but
 * the sums. BRC_ECORRUPT: something that is needed is damaged. */
BRC_MUST_USE int brc_usage_measure(brc_usage *out, brc_store *store, const brc_expire_plan *plan,
                                   const brc_log_window *window, int only_expired, brc_error *err);

/* Of the same commits, array by array: before that (usage.c). */
BRC_MUST_USE int brc_usage_arrays(brc_usage *out, brc_store *store, const brc_expire_plan *plan, brc_error *err);

#endif
