/* Boundaries: commits whose ancestors have expired, with the parents that replace the ones they name. */
#ifndef BRC_STORE_REF_H
#define BRC_STORE_REF_H

#include "store.h"

typedef struct brc_boundary {
    brc_oid *parents; /* the nearest ancestors that are kept           */
    size_t nparents;
    char *moves;      /* lines "move FROM TO", since the first parent  */
} brc_boundary;

/* Returns 1 with `parents` and `moves`, which the caller frees, or 0 if the commit's parents are those that it names. */
BRC_MUST_USE int brc_boundary_get(brc_store *store, const brc_oid *id, brc_boundary *out, brc_error *err);
/* Within a write: makes the commit a boundary with these parents, in its derived row too. */
BRC_MUST_USE int brc_boundary_put(brc_store *store, const brc_oid *id, const brc_oid *parents, size_t n, const char *moves,
                                  brc_error *err);
/* Within a write: gives the commit the parents that it names again. */
BRC_MUST_USE int brc_boundary_drop(brc_store *store, const brc_oid *id, brc_error *err);

#endif
