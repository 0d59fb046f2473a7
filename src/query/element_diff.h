/* The elements in which two versions of an array differ. */
#ifndef BRC_QUERY_ELEMENT_DIFF_H
#define BRC_QUERY_ELEMENT_DIFF_H

#include "../history/tree_diff.h"
#include "../nd/box.h"
#include "../nd/shape.h"
#include "../work/session.h"
#include "../zarr/array/array.h"

/* ---- element diff -------------------------------- */

/* The parts of an element diff that a caller wants. */
typedef struct brc_element_wanted {
    brc_wanted rule; /* which elements count; `picks` is NULL                     */
    int figures;     /* how many differ, where and by how much                    */
    int chunks;      /* in which chunks they are                                  */
    int added;       /* `values` also lists elements that only one version has    */
    size_t values;   /* the most elements to list with both values; without figures, none of
                      * arrays whose chunks are cut differently                   */
} brc_element_wanted;

typedef struct brc_element_diff {
    int known;               /* the figures are known                             */
    const char *why;         /* otherwise a clause that says why the two cannot be compared; NULL: there is
                              * no array */
    uint64_t added, removed; /* elements that only b's shape has, or only a's; 2^64-1 means that number or
                              * more */
    brc_tally tally;         /* the tally of the elements that both have          */
    brc_boxes boxes;         /* of the same elements                              */
    void *chunks;            /* uint64_t[]: of each chunk its index and how many elements differ */
    size_t nchunks, chunks_cap; /* chunks that neither side has, or that are cut differently, are left out */
    brc_picks picks;         /* the first elements, and one more if there is one  */
    brc_array *array;        /* names the type of the picks; NULL: none           */
} brc_element_diff;

/* Compares elements bit by bit within both shapes; padding never counts. If the node was added or
 * removed, all its elements were. Runs on the repository's pool and within its budget, except that
 * a pair of chunks, or one chunk of a different grid, is decoded whole; the result depends on
 * neither. Values without figures are read only as far as they lead to the first ones. Must be called
 * within a transaction. */
BRC_MUST_USE int brc_element_diff_run(brc_element_diff *out, breccia *repo, const brc_node_change *change,
                                      const brc_element_wanted *wanted, brc_error *err);
/* Releases an array that brc_element_diff_run() gave out. */
void brc_element_array_free(brc_array *array);

/* ---- blame sets -------------------------------- */

/*
 * Blame: finds the commit that gave each unit of an array, a chunk or an element, its value.
 *
 * It goes from a commit to its parents with sets of units that are not settled. A unit that a
 * parent has in the same form goes to the first such parent; a unit that no parent has in that form
 * is settled. A set is one number in a forest, so passing a set of a million units to a parent
 * costs one assignment, and two sets that meet there are joined; units that differ are moved one by
 * one. Maps are compared by ids, so a commit costs as much as it changed.
 */

/* An array at one commit. */
typedef struct brc_blame_place {
    const brc_oid *commit;
    const char *path;
    brc_entry entry;
} brc_blame_place;

typedef int (*brc_blame_unit_fn)(void *ctx, size_t unit, brc_error *err);
/* Calls `differs` for the units in which two places differ, and perhaps for others that the array
 * does not have there. */
typedef int (*brc_blame_diff_fn)(void *ctx, const brc_blame_place *now, const brc_blame_place *before,
                                 brc_blame_unit_fn differs, void *arg, brc_error *err);

typedef struct brc_blamed_by {
    brc_oid commit;
    int64_t time_us;
    char *author;
    int before; /* the change came with the commit or with an ancestor that no longer exists */
} brc_blamed_by;

typedef struct brc_blame_result {
    uint32_t *by; /* for each unit an index in `commits`                                   */
    size_t n;
    brc_blamed_by *commits;
    size_t ncommits;
} brc_blame_result;
void brc_blame_result_dispose(brc_blame_result *r);

/* Traces `n` units of the array at the path in the commit. For chunks, two places with the same map
 * do not differ; with `documents`, they differ if their documents do. */
BRC_MUST_USE int brc_blame_run(brc_blame_result *out, brc_store *store, const brc_oid *commit, const char *path, size_t n,
                               int documents, brc_blame_diff_fn diff, void *ctx, brc_error *err);

#endif
