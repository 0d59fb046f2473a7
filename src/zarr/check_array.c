/* What fsck asks of one array: that its document means something, and that chunks are what
 * reading it will ask for. */
#include <stdlib.h>
#include <string.h>

#include "../base/alloc.h"
#include "chunk_item.h"
#include "fsck.h"
#include "opaque.h"
#include "span_table.h"

void brc_array_check_free(brc_array_check *a)
{
    if (a == NULL)
        return;
    if (a->meta != NULL)
        brc_meta_dispose(a->meta);
    free(a->meta);
    free(a->path);
    free(a);
}

/* Chunks of equal length are right for every array with chunks of that length; what else
 * is right for one array is so for those with the same document. */
static int set_context(brc_array_check *a, brc_store *store, const brc_entry *entry, brc_error *err)
{
    const brc_meta *m = a->meta;
    brc_form *form;
    a->context = entry->doc;
    a->context.bytes[0] ^= (uint8_t)m->opaque;
    if (m->opaque || !m->grid.regular || brc_meta_is_variable(m))
        return BRC_OK;
    BRC_TRY(brc_meta_form(a->meta, m->grid.chunk, &form, err));
    uint64_t fixed[2] = { (uint64_t)m->ndim, form->bytes };
    a->context = brc_hash_object(brc_store_hash(store), BRC_KIND_DOCUMENT, fixed, sizeof(fixed));
    return BRC_OK;
}

static int open_meta(const brc_check *c, brc_array_check *a, const brc_entry *entry, int64_t row,
                     brc_error *err)
{
    brc_json *doc;
    brc_error ignored = BRC_ERROR_INIT;
    BRC_TRY(brc_entry_doc(c->store, entry, &doc, err));
    int rc = brc_meta_open(a->meta, c->repo->registry, doc, err);
    brc_json_free(doc);
    if (rc < 0) {
        memset(a->meta, 0, sizeof(*a->meta));
        return rc;
    }
    a->open = 1;
    /* what is damaged below is told where it is met */
    rc = brc_opaque_settle(c->store, a->meta, &entry->map, row, &ignored);
    return rc < 0 && rc != BRC_ECORRUPT ? brc_fail(err, rc, "%s", ignored.message)
                                        : set_context(a, c->store, entry, err);
}

int brc_array_check_new(const brc_check *c, const char *path, const brc_entry *entry, int64_t row,
                        brc_array_check **out, int *bad, brc_error *err)
{
    void *p;
    int rc;
    brc_error found = BRC_ERROR_INIT;
    BRC_TRY(brc_new(&p, sizeof(brc_array_check), err));
    brc_array_check *a = p;
    BRC_GO(brc_new(&p, sizeof(brc_meta), err));
    a->meta = p;
    BRC_GO(brc_dup(&a->path, path, err));
    BRC_GO(brc_check_use(c, &entry->doc, BRC_KIND_DOCUMENT, path, "zarr.json", bad, err));
    if (!*bad) {
        rc = open_meta(c, a, entry, row, &found);
        if (rc == BRC_EINVAL || rc == BRC_ECORRUPT) {
            *bad = 1;
            rc = brc_check_fault(c, &entry->doc, BRC_KIND_DOCUMENT, path, "zarr.json",
                                 found.message, err);
        } else if (rc == BRC_EUNSUPPORTED || rc == BRC_ELIMIT) {
            rc = BRC_OK; /* every command says so, and none that it is damaged */
        } else if (rc < 0 && err != NULL) {
            *err = found;
        }
    }
    a->bad = *bad;
done:
    if (rc < 0)
        brc_array_check_free(a);
    else
        *out = a;
    return rc;
}

/* ---- chunks -------------------------------- */

/* Elements that vary in length, or bytes that were kept as they came, are known to be right
 * when they have been decoded. */
static int check_decoded(const brc_check *c, brc_array_check *a, const uint64_t *chunk,
                         const brc_object *o, const brc_read_item *item, brc_error *err)
{
    brc_meta *m = a->meta;
    brc_buf stored = BRC_BUF_INIT, data = BRC_BUF_INIT;
    brc_scratch *scratch = NULL;
    void *table = NULL;
    uint64_t n = brc_shape_count(m->ndim, chunk);
    int rc;
    if (m->opaque) {
        BRC_GO(brc_buf_reserve(&stored, (size_t)o->stored + 1, err));
        BRC_GO(brc_object_fetch(c->store, o, stored.data, err));
        BRC_GO(brc_object_verify(o, stored.data, err));
        if (item->skip > 0)
            BRC_GO(brc_opaque_check(stored.data, err));
        BRC_GO(brc_scratch_new(&scratch, err));
        brc_span encoded = { stored.data + item->skip, (size_t)o->stored - item->skip };
        BRC_GO(brc_chain_decode(item->chain, scratch, encoded, &data, err));
    } else {
        BRC_GO(brc_store_decode(c->store, o, 0, &data, err));
    }
    if (brc_meta_is_variable(m)) {
        /* an element has four bytes at least: nothing is reserved for what is not there */
        rc = n > data.len / 4 ? BRC_EINVAL : brc_new_array(&table, n, sizeof(brc_span), err);
        if (rc == BRC_OK)
            rc = brc_elements_find(table, n, (brc_span){ data.data, data.len }, err);
        if (rc == BRC_EINVAL)
            rc = brc_fail(err, BRC_ECORRUPT, "its elements are damaged");
    }
done:
    free(table);
    brc_scratch_free(scratch);
    brc_buf_dispose(&stored);
    brc_buf_dispose(&data);
    return rc;
}

int brc_array_check_chunk(const brc_check *c, brc_array_check *a, const uint64_t *index,
                          const brc_object *o, brc_error *err)
{
    uint64_t corner[BRC_MAX_NDIM], chunk[BRC_MAX_NDIM];
    brc_read_item item;
    brc_meta *m = a->meta;
    if (!a->open)
        return BRC_OK;
    for (int i = 0; i < m->ndim; i++)
        if (index[i] >= m->grid.count[i])
            return BRC_OK; /* told of the array */
    if (m->opaque && !m->readable)
        return BRC_OK;
    memset(&item, 0, sizeof(item));
    item.object = *o;
    brc_grid_chunk(&m->grid, index, corner, chunk);
    int rc = brc_chunk_item_of(&item, c->store, m, index, err);
    if (rc == BRC_OK && !c->no_decode && (m->opaque || brc_meta_is_variable(m)))
        rc = check_decoded(c, a, chunk, o, &item, err);
    return rc == BRC_EUNSUPPORTED || rc == BRC_ELIMIT ? BRC_OK : rc;
}
