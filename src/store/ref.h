/* Commits whose past has expired: what stands for their parents. */
#ifndef BRC_STORE_REF_H
#define BRC_STORE_REF_H

#include "store.h"

typedef struct brc_boundary {
    brc_oid *parents; /* the nearest ancestors that are kept           */
    size_t nparents;
    char *moves;      /* lines "move FROM TO", since the first of them */
} brc_boundary;

/* 1 with what the caller frees, `parents` and `moves`; 0: the parents are those that the commit names. */
BRC_MUST_USE int brc_boundary_get(brc_store *store, const brc_oid *id, brc_boundary *out, brc_error *err);
/* Within a write: from now on it is so, and the commit's derived row says so too. */
BRC_MUST_USE int brc_boundary_put(brc_store *store, const brc_oid *id, const brc_oid *parents, size_t n, const char *moves,
                                  brc_error *err);
/* Within a write: its parents are those that it names, again. */
BRC_MUST_USE int brc_boundary_drop(brc_store *store, const brc_oid *id, brc_error *err);

#endif
