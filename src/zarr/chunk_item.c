#include "chunk_item.h"

#include "opaque.h"

static int check_object(const brc_meta *m, const brc_object *o, const brc_chain *chain,
                        uint64_t want, brc_error *err)
{
    if (o->encoding != 0 && chain == NULL)
        return brc_fail(err, BRC_EUNSUPPORTED,
                        "it was stored when its codecs were not known: import it again");
    if (brc_meta_is_variable(m))
        return o->size <= BRC_MAX_CHUNK_BYTES
                   ? BRC_OK
                   : brc_fail(err, BRC_ELIMIT, "its object has more than 2^31-1 bytes");
    if (o->size == want &&
        (chain != NULL ? brc_chain_decoded_len(chain) == want : o->stored == want))
        return BRC_OK;
    return brc_fail(err, BRC_ECORRUPT, "its object has %llu bytes, not %llu; run 'breccia fsck'",
                    (unsigned long long)o->size, (unsigned long long)want);
}

/* Chunks that are kept as they came are decoded as far as the codecs are known. */
static int item_chain_opaque(brc_read_item *item, brc_store *store, brc_meta *m,
                             const uint64_t *index, const uint64_t *chunk, brc_error *err)
{
    brc_form *form;
    BRC_TRY(brc_opaque_skip(store, m, index, &item->object, &item->skip, err));
    BRC_TRY(brc_meta_reader(m, chunk, &form, err));
    item->chain = form->chain;
    item->varies = brc_meta_is_variable(m);
    item->len = form->bytes;
    return BRC_OK;
}

int brc_chunk_item_of(brc_read_item *item, brc_store *store, brc_meta *m, const uint64_t *index,
                      brc_error *err)
{
    const brc_object *o = &item->object;
    uint64_t corner[BRC_MAX_NDIM], chunk[BRC_MAX_NDIM];
    if (o->kind != BRC_KIND_CHUNK)
        return brc_fail(err, BRC_ECORRUPT, "its object is not a chunk; run 'breccia fsck'");
    brc_grid_chunk(&m->grid, index, corner, chunk);
    if (m->opaque)
        return item_chain_opaque(item, store, m, index, chunk, err);
    BRC_TRY(brc_encoding_chain(store, o->encoding, &item->chain, err));
    return check_object(m, o, item->chain, brc_shape_count(m->ndim, chunk) * m->type->item_size,
                        err);
}

int brc_chunk_item(brc_read_item *item, brc_array *a, const uint64_t *index, brc_error *err)
{
    return brc_chunk_item_of(item, brc_array_store(a), &a->meta, index, err);
}
