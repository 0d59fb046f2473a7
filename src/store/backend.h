/* Internals of the store: the backends that it uses, each with its state. */
#ifndef BRC_STORE_BACKEND_H
#define BRC_STORE_BACKEND_H

#include "db.h"

/* backend.c: the backend of the file itself; its state is the store. */
extern const brc_backend brc_inline_backend;
int brc_inline_missing(brc_store *store, const brc_oid *id, brc_error *err);
/* Fails if an object of this backend claims more bytes than its row o->place has. */
BRC_MUST_USE int brc_inline_check_claim(brc_store *store, const brc_object *o, brc_error *err);

/* Finds the place (number and offset) that an object's row records for stored bytes that were put. */
BRC_MUST_USE int brc_backend_recorded(brc_store *store, int64_t id, const brc_stored *at, int64_t *place, uint64_t *offset,
                                      brc_error *err);
/* Makes the bytes that rows of this transaction name durable, before its COMMIT. */
BRC_MUST_USE int brc_backends_flush(brc_store *store, brc_error *err);
/* Called after the transaction was undone: forgets the numbers of backends that it added. The bytes that it put are
 * garbage. */
void brc_backends_forget(brc_store *store);
void brc_backends_close(brc_store *store);

/* Calls each() with all stored bytes that the backend lists; the backend must be able to list. Returns a result of
 * each() that is above 0. */
BRC_MUST_USE int brc_backend_list(const brc_store_backend *b, int (*each)(void *to, const brc_kept *kept, brc_error *err),
                                  void *to, brc_error *err);

/* backend.c: returns 1 if a place may have this name. */
int brc_is_place_name(const char *name);
/* Finds the number of a place's name, and adds the name if it is new. */
BRC_MUST_USE int brc_place_intern(brc_store_backend *b, const char *name, int64_t *seq, brc_error *err);
void brc_places_forget(brc_store_backend *b);

#endif
