/* Documents as they are stored. */
#ifndef BRC_STORE_DOCUMENT_H
#define BRC_STORE_DOCUMENT_H

#include "store.h"

/* *encoding 0: it is stored as it is, and `out` says nothing. Within a write. */
BRC_MUST_USE int brc_document_encode(brc_store *store, brc_span text, brc_buf *out, int64_t *encoding, brc_error *err);
/* Appends the text. */
BRC_MUST_USE int brc_document_decode(brc_store *store, int64_t encoding, brc_span stored, brc_buf *out, brc_error *err);

#endif
