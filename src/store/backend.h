/* The backends that a store uses, each with its state: the store's own part. */
#ifndef BRC_STORE_BACKEND_H
#define BRC_STORE_BACKEND_H

#include "db.h"

/* backend.c: its state is the store. */
extern const brc_backend brc_inline_backend;
int brc_inline_missing(brc_store *store, const brc_oid *id, brc_error *err);
/* Fails where an object of this backend claims more bytes than there are; o->place is its row. */
BRC_MUST_USE int brc_inline_check_claim(brc_store *store, const brc_object *o, brc_error *err);

/* Where a row says that stored bytes lie, which were put there: its number and offset. */
BRC_MUST_USE int brc_backend_recorded(brc_store *store, int64_t id, const brc_stored *at, int64_t *place, uint64_t *offset,
                                      brc_error *err);
/* Makes everything that rows of this transaction name durable, before its COMMIT. */
BRC_MUST_USE int brc_backends_flush(brc_store *store, brc_error *err);
/* The transaction was undone: numbers of backends that it added count no more, and what it put is
 * garbage. */
void brc_backends_forget(brc_store *store);
void brc_backends_close(brc_store *store);

/* Calls each() with what the backend has; it must have such a function. A result above 0 is each()'s own. */
BRC_MUST_USE int brc_backend_list(const brc_store_backend *b, int (*each)(void *to, const brc_kept *kept, brc_error *err),
                                  void *to, brc_error *err);

/* backend.c: whether a place may have this name. */
int brc_is_place_name(const char *name);
void brc_places_forget(brc_store_backend *b);

#endif
