/*
 * Documents as they are stored: those that compress well are, in an encoding of bytes of any
 * length (docs/FORMAT.md, section 4).
 */
#include <string.h>

#include "db.h"
#include "document.h"

/* Smaller ones share rows as they are, and are read more often than they are stored. */
#define COMPRESSED_LEAST 1024

static int document_chain(brc_store *store, int64_t encoding, const brc_chain **out, brc_error *err)
{
    BRC_TRY(brc_encoding_chain(store, encoding, out, err));
    if (*out == NULL || !brc_chain_takes_bytes(*out))
        return brc_fail(err, BRC_ECORRUPT, "%s is damaged: a document has an encoding of chunks",
                        store->path);
    return store->document_scratch != NULL ? BRC_OK
                                           : brc_scratch_new(&store->document_scratch, err);
}

int brc_document_encode(brc_store *store, brc_span text, brc_buf *out, int64_t *encoding,
                        brc_error *err)
{
    const brc_chain *chain;
    *encoding = 0;
    if (text.len < COMPRESSED_LEAST)
        return BRC_OK;
    BRC_TRY(brc_encoding_intern(store, BRC_DOCUMENT_SPEC, encoding, err));
    BRC_TRY(document_chain(store, *encoding, &chain, err));
    BRC_TRY(brc_chain_encode(chain, store->document_scratch, text, out, err));
    if (out->len > text.len - text.len / 100 * 3)
        *encoding = 0;
    return BRC_OK;
}

int brc_document_decode(brc_store *store, int64_t encoding, brc_span stored, brc_buf *out,
                        brc_error *err)
{
    const brc_chain *chain;
    brc_buf text = {.limit = (size_t)BRC_OBJECT_MAX};
    if (encoding == 0)
        return brc_buf_append(out, stored.data, stored.len, err);
    BRC_TRY(document_chain(store, encoding, &chain, err));
    int rc = brc_chain_decode(chain, store->document_scratch, stored, &text, err);
    if (rc == BRC_OK)
        rc = brc_buf_append(out, text.data, text.len, err);
    brc_buf_dispose(&text);
    return rc;
}
