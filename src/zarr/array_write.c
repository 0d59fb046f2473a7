/* Writing a region. A chunk that is covered is never read; one that is covered in
 * part is read, changed in memory and written; the caller's memory is only read. */
#include <stdlib.h>
#include <string.h>

#include "../base/alloc.h"
#include "array.h"
#include "stored_chunk.h"

typedef struct region_writer {
    brc_array *a;
    const brc_region *r;
    const uint8_t *src;
    uint64_t next;
    int64_t encoding;
} region_writer;

static void writer_overlap(const region_writer *w, uint64_t number, uint64_t *index, brc_overlap *o)
{
    brc_region_chunk(w->r, w->a->meta.ndim, number, index);
    brc_overlap_of(o, &w->r->sel, w->r->shape, w->a->meta.chunk, index);
}

/* ---- before the pipeline: what is there already ----------------------------------------- */

static int writer_load_old(region_writer *w, const uint64_t *index, brc_write_item *item,
                           brc_error *err)
{
    brc_store *store = brc_array_store(w->a);
    brc_object o, *one = &o;
    char hex[65];
    BRC_TRY(brc_array_chunk_ids(w->a, 1, index, &item->old_id, err));
    item->has_old = !brc_oid_is_zero(&item->old_id);
    if (!item->has_old)
        return BRC_OK;
    o = (brc_object){.id = item->old_id};
    BRC_TRY(brc_objects_find(store, &one, 1, err));
    if (!o.found || o.size != w->a->meta.chunk_bytes)
        return brc_fail(err, BRC_ECORRUPT, "its object %s is missing or damaged; run 'breccia fsck'",
                        brc_oid_format(hex, &o.id));
    BRC_TRY(brc_encoding_chain(store, o.encoding, &item->old_chain, err));
    item->old_checksum = o.checksum;
    BRC_TRY(brc_buf_reserve(&item->stored, (size_t)o.stored + 1, err));
    BRC_TRY(brc_object_fetch(store, &o, item->stored.data, err));
    item->stored.len = (size_t)o.stored;
    return BRC_OK;
}

static int writer_next(void *ctx, brc_write_item *item, brc_error *err)
{
    region_writer *w = ctx;
    uint64_t index[BRC_MAX_NDIM];
    brc_overlap o;
    if (w->next == w->r->nchunks)
        return 0;
    if (w->next % 64 == 0)
        BRC_TRY(brc_repo_progress(w->a->session->repo, "chunks", w->next, w->r->nchunks, err));
    item->number = w->next++;
    item->has_old = 0;
    item->old_chain = NULL;
    writer_overlap(w, item->number, index, &o);
    if (!o.whole) {
        int rc = writer_load_old(w, index, item, err);
        if (rc < 0) {
            brc_array_name_chunk(w->a, index, err);
            return rc;
        }
    }
    return 1;
}

/* ---- on the pool ----------------------------------------------------------------------------- */

static int gather_old(const region_writer *w, brc_write_item *item, brc_scratch *scratch,
                      brc_error *err)
{
    const brc_meta *m = &w->a->meta;
    brc_object o = {.id = item->old_id, .checksum = item->old_checksum, .stored = item->stored.len};
    BRC_TRY(brc_object_verify(&o, item->stored.data, err));
    if (item->old_chain != NULL)
        return brc_chain_decode(item->old_chain, scratch,
                                (brc_span){item->stored.data, item->stored.len}, &item->own, err);
    if (item->stored.len != m->chunk_bytes)
        return brc_fail(err, BRC_ECORRUPT, "its bytes have the wrong length");
    return brc_buf_append(&item->own, item->stored.data, item->stored.len, err);
}

static int writer_gather(void *ctx, brc_write_item *item, brc_scratch *scratch, brc_error *err)
{
    const region_writer *w = ctx;
    const brc_meta *m = &w->a->meta;
    size_t item_size = m->type->item_size;
    uint64_t index[BRC_MAX_NDIM];
    int64_t strides[BRC_MAX_NDIM], at = 0;
    brc_overlap o;
    writer_overlap(w, item->number, index, &o);
    const uint8_t *src = w->src + brc_region_offset(w->r, m->ndim, &o);
    int full = memcmp(o.count, m->chunk, (size_t)m->ndim * sizeof(*m->chunk)) == 0;
    if (full && w->r->in_one_piece) {
        item->data = src;
        return BRC_OK;
    }
    BRC_TRY(brc_buf_reserve(&item->own, m->chunk_bytes, err));
    if (item->has_old)
        BRC_TRY(gather_old(w, item, scratch, err));
    else if (!full)
        brc_fill_run(item->own.data, m->chunk_bytes / item_size, item_size, m->fill.data);
    item->own.len = m->chunk_bytes;
    brc_strides_packed(m->ndim, m->chunk, item_size, strides);
    for (int i = 0; i < m->ndim; i++) {
        at += (int64_t)o.in_chunk[i] * strides[i];
        strides[i] *= (int64_t)w->r->sel.step[i];
    }
    brc_copy_box(m->ndim, o.count, item_size, item->own.data + at, strides, src, w->r->strides);
    item->data = item->own.data;
    return BRC_OK;
}

/* ---- behind the pipeline ------------------------------------------------------------------------ */

int brc_find_items(brc_array *a, brc_write_item *const *items, size_t n, brc_error *err)
{
    void *p = NULL;
    brc_store *store = brc_array_store(a);
    int rc;
    BRC_TRY(brc_new_array(&p, n, sizeof(brc_object) + sizeof(brc_object *), err));
    brc_object *objects = p;
    brc_object **pointers = (brc_object **)(objects + n);
    for (size_t i = 0; i < n; i++) {
        objects[i].id = items[i]->id;
        pointers[i] = &objects[i];
    }
    BRC_GO(brc_objects_find(store, pointers, n, err));
    for (size_t i = 0; i < n; i++) {
        items[i]->is_known = objects[i].found;
        if (objects[i].found)
            BRC_GO(brc_object_same(store, &objects[i], items[i]->data, a->meta.chunk_bytes,
                                   items[i]->guard, err));
    }
done:
    free(p);
    return rc;
}

int brc_store_item(brc_array *a, const brc_write_item *item, int64_t encoding, brc_error *err)
{
    brc_object o = {.id = item->id, .kind = BRC_KIND_CHUNK, .size = a->meta.chunk_bytes};
    o.encoding = item->as_is ? 0 : encoding;
    o.stored = item->as_is ? a->meta.chunk_bytes : item->stored.len;
    o.checksum = item->checksum;
    o.guard = item->guard;
    return brc_object_insert(brc_array_store(a), &o, item->as_is ? item->data : item->stored.data, err);
}

static int writer_find(void *ctx, brc_write_item *const *items, size_t n, brc_error *err)
{
    const region_writer *w = ctx;
    return brc_find_items(w->a, items, n, err);
}

static int writer_store(void *ctx, const brc_write_item *item, brc_error *err)
{
    const region_writer *w = ctx;
    return brc_store_item(w->a, item, w->encoding, err);
}

int brc_array_put_chunk(brc_array *a, const uint64_t *index, const brc_oid *id, brc_error *err)
{
    uint8_t key[BRC_CHUNK_KEY_MAX];
    size_t len = brc_chunk_key_encode(key, a->meta.ndim, index);
    brc_store *store = brc_array_store(a);
    /* Without a committed map there is nothing that a row would have to hide. */
    if (id == NULL && brc_oid_is_zero(&a->entry.map))
        return a->row_has_chunks ? brc_draft_chunk_clear(store, a->row, key, len, err) : BRC_OK;
    BRC_TRY(brc_draft_chunk_put(store, a->row, key, len, id, err));
    a->row_has_chunks = 1;
    return BRC_OK;
}

static int writer_done(void *ctx, const brc_write_item *item, brc_error *err)
{
    const region_writer *w = ctx;
    uint64_t index[BRC_MAX_NDIM];
    brc_region_chunk(w->r, w->a->meta.ndim, item->number, index);
    return brc_array_put_chunk(w->a, index, item->is_fill ? NULL : &item->id, err);
}

static void writer_name(void *ctx, const brc_write_item *item, brc_error *err)
{
    const region_writer *w = ctx;
    uint64_t index[BRC_MAX_NDIM];
    brc_region_chunk(w->r, w->a->meta.ndim, item->number, index);
    brc_array_name_chunk(w->a, index, err);
}

int brc_array_write_region(brc_array *a, const brc_region *r, const void *src, brc_error *err)
{
    region_writer w = {.a = a, .r = r, .src = src};
    if (r->nchunks == 0)
        return BRC_OK;
    BRC_TRY(brc_array_encoding(a, &w.encoding, err));
    brc_write_ops ops = {
        .ctx = &w,
        .chain = a->meta.chain,
        .len = a->meta.chunk_bytes,
        .hash = brc_store_hash(brc_array_store(a)),
        .secret = brc_store_secret(brc_array_store(a)),
        .fill = a->meta.fill.data,
        .item_size = a->meta.type->item_size,
        .next = writer_next,
        .gather = writer_gather,
        .find = writer_find,
        .store = writer_store,
        .done = writer_done,
        .name = writer_name,
    };
    return brc_write_pipeline(&a->session->repo->pipe, &ops, err);
}

/* ---- the public functions --------------------------------------------------------------------------- */

static int write_one_io(const brc_io *io, brc_error *err)
{
    brc_array *a = io->array;
    brc_region r;
    uint64_t want;
    int rc = brc_array_begin(a, err);
    if (rc < 0)
        return rc;
    BRC_GO(brc_region_init(&r, a, io->sel, NULL, io->strides, err));
    if (io->strides == NULL) {
        if (!brc_shape_bytes(a->meta.ndim, r.sel.count, a->meta.type->item_size, &want) ||
            want != io->len) {
            rc = brc_fail(err, BRC_EINVAL,
                          "%s: the selection has %llu bytes, but %zu were given", a->path,
                          (unsigned long long)want, io->len);
            goto done;
        }
    }
    rc = brc_array_write_region(a, &r, io->data, err);
done:
    return brc_array_end(a, rc, err);
}

int brc_write_batch(const brc_io *io, size_t n, brc_error *err)
{
    if (n == 0)
        return BRC_OK;
    brc_store *store = brc_array_store(io[0].array);
    for (size_t i = 1; i < n; i++)
        if (brc_array_store(io[i].array) != store)
            return brc_fail(err, BRC_EINVAL, "one batch writes to one repository");
    BRC_TRY(brc_store_begin(store, err));
    int rc = BRC_OK;
    for (size_t i = 0; i < n && rc == BRC_OK; i++)
        rc = write_one_io(&io[i], err);
    int end = brc_store_end(store, rc == BRC_OK, rc == BRC_OK ? err : NULL);
    return rc < 0 ? rc : end;
}

int brc_array_write(brc_array *a, const brc_sel *sel, const void *src, size_t len, brc_error *err)
{
    brc_io io = {a, sel, (void *)(uintptr_t)src, len, NULL};
    return write_one_io(&io, err);
}

int brc_array_fill(brc_array *a, const brc_sel *sel, const void *element, brc_error *err)
{
    static const int64_t still[BRC_MAX_NDIM];
    brc_io io = {a, sel, (void *)(uintptr_t)element, a->meta.type->item_size, still};
    return write_one_io(&io, err);
}
