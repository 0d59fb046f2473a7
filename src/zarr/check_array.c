/* What fsck asks of one array: that its document means something, and that chunks are what
 * reading it will ask for. */
#include <stdlib.h>
#include <string.h>

#include "../base/alloc.h"
#include "../flow/read.h"
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
    brc_draft_stack rows;
    BRC_TRY(brc_entry_doc(c->store, entry, &doc, err));
    int rc = brc_meta_open(a->meta, c->repo->registry, doc, err);
    brc_json_free(doc);
    if (rc < 0) {
        memset(a->meta, 0, sizeof(*a->meta));
        return rc;
    }
    a->open = 1;
    /* damage further down is reported where it is met */
    rc = brc_draft_stack_get(c->store, row, &rows, &ignored);
    if (rc == BRC_OK)
        rc = brc_opaque_settle(c->store, a->meta, &entry->map, &rows, &ignored);
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
            rc = BRC_OK; /* every command says so, and none says that it is damaged */
        } else if (rc < 0 && err != NULL) {
            brc_error_copy(err, &found);
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

/* Those that are known to be right only when they have been decoded. */
typedef struct chunk_decoder {
    const brc_check *c;
    brc_array_check *a;
    brc_chunk_check *chunks;
    size_t n, at;
} chunk_decoder;

static int decoder_list(void *ctx, brc_read_item *items, size_t cap, size_t *n, brc_error *err)
{
    chunk_decoder *d = ctx;
    (void)err;
    for (; d->at < d->n && *n < cap; d->at++) {
        if (!d->chunks[d->at].decodes)
            continue;
        items[*n].object = d->chunks[d->at].object;
        items[(*n)++].number = d->at;
    }
    return BRC_OK;
}

static int decoder_open(void *ctx, brc_read_item *item, brc_error *err)
{
    const chunk_decoder *d = ctx;
    return brc_chunk_item_of(item, d->c->store, d->a->meta, d->chunks[item->number].index, err);
}

/* Exactly as many elements as the chunk has. */
static int check_elements(uint64_t n, brc_span packed, brc_error *err)
{
    brc_element_cursor cursor = { packed, 0, 0 };
    brc_span element;
    int rc = BRC_OK;
    for (uint64_t i = 0; i < n && rc == BRC_OK; i++)
        rc = brc_element_next(&cursor, &element, NULL);
    if (rc == BRC_OK)
        rc = brc_elements_end(&cursor, NULL);
    return rc < 0 ? brc_fail(err, BRC_ECORRUPT, "its elements are damaged") : BRC_OK;
}

static int decoder_place(void *ctx, brc_read_item *item, const uint8_t *data, brc_scratch *scratch,
                         brc_error *err)
{
    const chunk_decoder *d = ctx;
    const brc_meta *m = d->a->meta;
    uint64_t corner[BRC_MAX_NDIM], chunk[BRC_MAX_NDIM];
    (void)scratch;
    if (item->skip > 0)
        BRC_TRY(brc_opaque_check(item->stored.data, err));
    if (!brc_meta_is_variable(m))
        return BRC_OK;
    brc_grid_chunk(&m->grid, d->chunks[item->number].index, corner, chunk);
    return check_elements(brc_shape_count(m->ndim, chunk), (brc_span){ data, item->len }, err);
}

/* What this build cannot decode is not damaged because of that, nor what was removed meanwhile. */
static int keep_fault(brc_chunk_check *chunk, int rc, const brc_error *found, brc_error *err)
{
    void *p;
    if (rc == BRC_EUNSUPPORTED || rc == BRC_ELIMIT || rc == BRC_ESTALE || rc == BRC_OK)
        return BRC_OK;
    if (rc != BRC_ECORRUPT) {
        if (err != NULL)
            brc_error_copy(err, found);
        return rc;
    }
    BRC_TRY(brc_new(&p, sizeof(*chunk->fault), err));
    chunk->fault = p;
    *chunk->fault = *found;
    return BRC_OK;
}

static int decoder_failed(void *ctx, const brc_read_item *item, int rc, const brc_error *why,
                          brc_error *err)
{
    const chunk_decoder *d = ctx;
    return keep_fault(&d->chunks[item->number], rc, why, err);
}

/* What its row and the document say. */
static int check_row(const brc_check *c, brc_array_check *a, brc_chunk_check *chunk, brc_error *err)
{
    brc_read_item item;
    brc_meta *m = a->meta;
    brc_error found = BRC_ERROR_INIT;
    if (!brc_meta_has_place(m, chunk->index))
        return BRC_OK; /* reported for the array */
    if (m->opaque && !m->readable)
        return BRC_OK;
    memset(&item, 0, sizeof(item));
    item.object = chunk->object;
    int rc = brc_chunk_item_of(&item, c->store, m, chunk->index, &found);
    chunk->decodes = rc == BRC_OK && !c->no_decode && (m->opaque || brc_meta_is_variable(m));
    return keep_fault(chunk, rc, &found, err);
}

int brc_array_check_chunks(const brc_check *c, brc_array_check *a, brc_chunk_check *chunks,
                           size_t n, brc_error *err)
{
    chunk_decoder d = { .c = c, .a = a, .chunks = chunks, .n = n };
    brc_read_ops ops = { .ctx = &d,
                         .list = decoder_list,
                         .open = decoder_open,
                         .place = decoder_place,
                         .failed = decoder_failed };
    int any = 0;
    for (size_t i = 0; i < n && a->open; i++) {
        if (chunks[i].looked_up)
            BRC_TRY(check_row(c, a, &chunks[i], err));
        any |= chunks[i].decodes;
    }
    return any ? brc_flow_read(&c->repo->pipe, c->store, &ops, err) : BRC_OK;
}
