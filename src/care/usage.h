/*
 * Computes what the file's bytes are for: how much each version and each array holds, and how much
 * of that it holds alone, which would be free without the version, or without the array in every
 * version.
 *
 * The numbers are exact: every object that refs reach is counted once, by its stored bytes,
 * whatever leads to it.
 */
#ifndef BRC_CARE_USAGE_H
#define BRC_CARE_USAGE_H

#include "../base/hash.h"
#include "expire.h"
#include "gc.h"
#include "../history/closure.h"

/* ---- held -------------------------------- */

/*
 * The objects that a set of roots holds, each counted once, by reference counts. Adding or dropping
 * a root costs only as much as the objects that it alone reaches. So the bytes that a version holds
 * alone are those that dropping it frees, and going from one version to the next costs only their
 * difference.
 *
 * It needs about 100 bytes of memory for each object that it has met.
 */

typedef struct brc_held {
    brc_store *store;
    brc_id_table table;
    brc_children due;      /* ids to be counted     */
    brc_children children; /* children of the node that is being read */
    uint64_t bytes, objects; /* stored bytes and number of the objects that are held */
} brc_held;

/* ---- usage -------------------------------- */

typedef struct brc_usage_item {
    char *path;  /* of an array; NULL: the item is a commit */
    brc_oid id;  /* of a commit                  */
    uint64_t bytes, alone;
} brc_usage_item;

typedef struct brc_usage {
    void *items; /* brc_usage_item[]: arrays by path, then commits, children first */
    size_t n, cap;
    uint64_t versions;    /* bytes that branches and tags reach                 */
    uint64_t uncommitted; /* bytes that only drafts and versions in use reach   */
    uint64_t log;         /* bytes that only the window of the operation log keeps */
    uint64_t expired;     /* of `versions`: bytes that only commits hold which the plan lets expire */
    uint64_t stored;      /* bytes of all objects                               */
    uint64_t outside;     /* of `stored`: what lies outside of the file         */
} brc_usage;

void brc_usage_dispose(brc_usage *usage);
/* Measures. `plan` has the commits that refs reach; *out must be zeros, or have its arrays. With
 * only_expired, only the sums are computed. Fails with BRC_ECORRUPT if something that is needed is
 * damaged. Must be called within a read. */
BRC_MUST_USE int brc_usage_measure(brc_usage *out, brc_store *store, const brc_expire_plan *plan,
                                   const brc_log_window *window, int only_expired, brc_error *err);

/* Measures the arrays in the same commits, one by one. Must be called before
 * brc_usage_measure(). */
BRC_MUST_USE int brc_usage_arrays(brc_usage *out, brc_store *store, const brc_expire_plan *plan, brc_error *err);

#endif
