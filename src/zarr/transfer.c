/* Stored chunks in bulk: taken over on import, handed out on export. */
#include "transfer.h"

#include <stdlib.h>
#include <string.h>

#include "../base/alloc.h"
#include "../codec/write_pipeline.h"
#include "array.h"
#include "opaque.h"
#include "shard.h"
#include "stored_chunk.h"

/* ---- in -------------------------------- */

typedef struct stored_writer {
    brc_array *a;
    const brc_chunk_source *source;
    uint64_t n, chunk_bytes;
    uint64_t *indexes;      /* ndim numbers an item, by number % window */
    brc_buf shard;          /* the one that is being handed on in parts */
    brc_shard_parts parts;
    size_t next_part;
} stored_writer;

/* More than there are items in two batches of the pipeline. */
#define INDEX_WINDOW 16384

static uint64_t *stored_index(const stored_writer *w, const brc_write_item *item)
{
    return w->indexes + item->number % INDEX_WINDOW * (uint64_t)w->a->meta.ndim;
}

/* The next stored chunk: what the source gives, or a part of the shard that it gave. */
static int stored_take(stored_writer *w, uint64_t *index, brc_buf *stored, brc_error *err)
{
    const brc_meta *m = &w->a->meta;
    uint64_t outer[BRC_MAX_NDIM] = {0};
    brc_scratch *scratch;
    if (m->nlevels == 0)
        return w->source->next(w->source->ctx, index, stored, err);
    while (w->next_part == w->parts.n) {
        w->shard.len = 0;
        int rc = w->source->next(w->source->ctx, outer, &w->shard, err);
        if (rc <= 0)
            return rc;
        BRC_TRY(brc_pipe_scratch(&w->a->session->repo->pipe, 0, &scratch, err));
        rc = brc_shard_split(&w->parts, m, scratch, outer,
                             (brc_span){w->shard.data, w->shard.len}, err);
        if (rc < 0) {
            brc_array_name_chunk(w->a, outer, err);
            return rc;
        }
        w->next_part = 0;
    }
    const brc_shard_part *part = &((brc_shard_part *)w->parts.items)[w->next_part++];
    memcpy(index, part->index, (size_t)m->ndim * sizeof(*index));
    BRC_TRY(brc_buf_append(stored, part->bytes.data, part->bytes.len, err));
    return 1;
}

static int stored_next(void *ctx, brc_write_item *item, brc_error *err)
{
    stored_writer *w = ctx;
    const brc_meta *m = &w->a->meta;
    uint64_t corner[BRC_MAX_NDIM], chunk[BRC_MAX_NDIM];
    brc_form *form;
    BRC_TRY(brc_task_step(w->a->session->repo, 0, err));
    item->number = w->n++;
    int rc = stored_take(w, stored_index(w, item), &item->stored, err);
    if (rc <= 0)
        return rc;
    if (m->opaque)
        BRC_TRY(brc_opaque_mark(&item->stored, err));
    brc_grid_chunk(&m->grid, stored_index(w, item), corner, chunk);
    BRC_TRY(brc_array_form(w->a, chunk, &form, &item->encoding, err));
    item->chain = form->chain;
    item->digest = form->digest;
    item->elements = form->elements;
    return 1;
}

static int stored_find(void *ctx, brc_write_item *const *items, size_t n, brc_error *err)
{
    const stored_writer *w = ctx;
    return brc_find_items(w->a, items, n, err);
}

static int stored_store(void *ctx, const brc_write_item *item, brc_error *err)
{
    const stored_writer *w = ctx;
    return brc_store_item(w->a, item, err);
}

static int stored_done(void *ctx, const brc_write_item *item, brc_error *err)
{
    const stored_writer *w = ctx;
    BRC_TRY(brc_array_put_chunk(w->a, stored_index(w, item), item->is_fill ? NULL : &item->id,
                                err));
    return brc_task_step(w->a->session->repo, w->chunk_bytes, err);
}

static void stored_name(void *ctx, const brc_write_item *item, brc_error *err)
{
    const stored_writer *w = ctx;
    brc_array_name_chunk(w->a, stored_index(w, item), err);
}

/* Decoded bytes of a whole chunk, about, and of the whole array. */
static void progress_bytes(const brc_array *a, uint64_t *chunk, uint64_t *all)
{
    const brc_meta *m = &a->meta;
    size_t item = m->type != NULL && m->type->item_size > 0 ? m->type->item_size : 1;
    if (!brc_shape_bytes(m->ndim, m->grid.chunk, item, chunk))
        *chunk = 0;
    if (!brc_shape_bytes(m->ndim, a->info.shape, item, all))
        *all = 0;
}

static int put_stored(brc_array *a, const brc_chunk_source *source, brc_error *err)
{
    stored_writer w = {.a = a, .source = source};
    void *p;
    size_t ndim = (size_t)(a->meta.ndim > 0 ? a->meta.ndim : 1);
    BRC_TRY(brc_new_array(&p, INDEX_WINDOW * ndim, sizeof(uint64_t), err));
    w.indexes = p;
    brc_write_ops ops = {
        .ctx = &w,
        .len = a->meta.opaque ? 65536
                              : (size_t)brc_shape_count(a->meta.ndim, a->meta.grid.chunk) *
                                    brc_array_unit(a),
        .hash = brc_store_hash(brc_array_store(a)),
        .secret = brc_store_secret(brc_array_store(a)),
        .fill = brc_meta_absent_chunk(&a->meta),
        .encoded = 1,
        .next = stored_next,
        .find = stored_find,
        .store = stored_store,
        .done = stored_done,
        .name = stored_name,
    };
    uint64_t all;
    progress_bytes(a, &w.chunk_bytes, &all);
    brc_task task = brc_task_begin(a->session->repo, "import", all);
    int rc = brc_write_pipeline(&a->session->repo->pipe, &ops, err);
    brc_task_end(a->session->repo, &task, rc);
    brc_buf_dispose(&w.shard);
    free(w.parts.items);
    free(p);
    return rc;
}

int brc_array_put_stored(brc_array *a, const brc_chunk_source *source, brc_error *err)
{
    BRC_TRY(brc_array_begin(a, err));
    return brc_array_end(a, put_stored(a, source, err), err);
}

/* ---- out -------------------------------- */

/* Chains exist that lose more each time, "bitround" and "packbits" with a first bit say:
 * what another array's bytes gave cannot be passed off as what such a chain gives. */
static int encoded_check(const brc_chain *chain, brc_scratch *scratch, const brc_buf *decoded,
                         const brc_buf *encoded, brc_error *err)
{
    brc_buf again = BRC_BUF_INIT;
    int rc = brc_chain_decode(chain, scratch, (brc_span){encoded->data, encoded->len}, &again, err);
    if (rc == BRC_OK && (again.len != decoded->len ||
                         (again.len > 0 && memcmp(again.data, decoded->data, again.len) != 0)))
        rc = brc_fail(err, BRC_EUNSUPPORTED,
                      "it is stored in another encoding, and the array's codecs, which lose "
                      "something each time, do not give its elements back");
    brc_buf_dispose(&again);
    return rc;
}

/* One stored chunk, encoded as the array says. */
static int encoded_chunk(brc_array *a, const uint64_t *index, const brc_oid *id, brc_buf *out,
                         brc_error *err)
{
    brc_store *store = brc_array_store(a);
    const brc_meta *m = &a->meta;
    brc_object o = {.id = *id}, *one = &o;
    uint64_t corner[BRC_MAX_NDIM], chunk[BRC_MAX_NDIM];
    brc_scratch *scratch;
    brc_form *form;
    brc_buf decoded = BRC_BUF_INIT;
    int64_t encoding = -1;
    char hex[65];
    int rc;
    out->len = 0;
    BRC_TRY(brc_objects_find(store, &one, 1, err));
    if (!o.found)
        return brc_fail(err, BRC_ECORRUPT, "object %s is missing; run 'breccia fsck'",
                        brc_oid_format(hex, id));
    if (m->opaque)
        return brc_opaque_get(store, m, index, &o, out, err);
    brc_grid_chunk(&m->grid, index, corner, chunk);
    BRC_TRY(brc_meta_form(&a->meta, chunk, &form, err));
    if (brc_chain_is_identity(form->chain))
        return brc_store_decode(store, &o, 0, out, err);
    BRC_TRY(brc_encoding_find(store, form->spec, &encoding, err));
    if (o.encoding == encoding) {
        BRC_TRY(brc_buf_reserve(out, (size_t)o.stored + 1, err));
        BRC_TRY(brc_object_fetch(store, &o, out->data, err));
        out->len = (size_t)o.stored;
        return brc_object_verify(&o, out->data, err);
    }
    BRC_GO(brc_store_decode(store, &o, 0, &decoded, err));
    BRC_GO(brc_pipe_scratch(&a->session->repo->pipe, 0, &scratch, err));
    BRC_GO(brc_chain_encode(form->chain, scratch, (brc_span){decoded.data, decoded.len}, out, err));
    if (brc_chain_is_lossy(form->chain))
        rc = encoded_check(form->chain, scratch, &decoded, out, err);
done:
    brc_buf_dispose(&decoded);
    return rc;
}

static int shard_chunk(void *ctx, const uint64_t *index, brc_buf *out, int *there, brc_error *err)
{
    brc_array *a = ctx;
    brc_oid id;
    BRC_TRY(brc_array_chunk_ids(a, 1, index, &id, err));
    *there = !brc_oid_is_zero(&id);
    return *there ? encoded_chunk(a, index, &id, out, err) : BRC_OK;
}

int brc_stored_chunk(brc_array *a, const uint64_t *outer, brc_buf *out, int *there, brc_error *err)
{
    brc_scratch *scratch;
    out->len = 0;
    if (a->meta.nlevels == 0)
        return shard_chunk(a, outer, out, there, err);
    BRC_TRY(brc_pipe_scratch(&a->session->repo->pipe, 0, &scratch, err));
    BRC_TRY(brc_shard_build(out, &a->meta, scratch, outer, shard_chunk, a, err));
    *there = out->len > 0;
    return BRC_OK;
}

/* ---- what there is -------------------------------- */

/* The outer indexes that hold something, each once, in order. */
typedef struct outer_list {
    const brc_meta *m;
    void *items; /* uint64_t[]: ndim numbers each */
    size_t n, cap;
} outer_list;

static int outer_note(void *ctx, const uint64_t *index, const brc_oid *id, brc_error *err)
{
    outer_list *list = ctx;
    const brc_meta *m = list->m;
    size_t ndim = (size_t)m->ndim, width = ndim > 0 ? ndim : 1;
    uint64_t outer[BRC_MAX_NDIM] = {0};
    (void)id;
    for (int i = 0; i < m->ndim; i++)
        outer[i] = m->nlevels > 0 ? index[i] / (m->outer.chunk[i] / m->grid.chunk[i]) : index[i];
    const uint64_t *items = list->items;
    if (list->n > 0 && memcmp(items + (list->n - 1) * width, outer, ndim * sizeof(*outer)) == 0)
        return BRC_OK;
    BRC_TRY(brc_grow_array(&list->items, &list->cap, (list->n + 1) * width, sizeof(uint64_t), err));
    memcpy((uint64_t *)list->items + list->n * width, outer, width * sizeof(*outer));
    list->n++;
    return BRC_OK;
}

/* Chunks come in the grid's order, so one shard's may come in several runs. */
static void outer_sort(outer_list *list)
{
    size_t width = (size_t)(list->m->ndim > 0 ? list->m->ndim : 1), kept = 0;
    uint64_t *items = list->items;
    if (list->m->nlevels == 0 || list->n < 2)
        return;
    brc_sort_indexes(items, list->n, width);
    for (size_t i = 0; i < list->n; i++)
        if (kept == 0 || memcmp(items + (kept - 1) * width, items + i * width,
                                width * sizeof(*items)) != 0)
            memmove(items + kept++ * width, items + i * width, width * sizeof(*items));
    list->n = kept;
}

int brc_array_each_outer(brc_array *a, brc_outer_each_fn each, void *ctx, brc_error *err)
{
    outer_list list = {.m = &a->meta};
    size_t width = (size_t)(a->meta.ndim > 0 ? a->meta.ndim : 1);
    int rc = brc_array_each_chunk(a, outer_note, &list, err);
    if (rc == BRC_OK)
        outer_sort(&list);
    for (size_t i = 0; i < list.n && rc == BRC_OK; i++)
        rc = each(ctx, (uint64_t *)list.items + i * width, err);
    free(list.items);
    return rc;
}

typedef struct stored_reader {
    brc_array *a;
    const brc_chunk_sink *sink;
    brc_buf bytes;
    uint64_t n, chunk_bytes;
} stored_reader;

static int give_stored(void *ctx, const uint64_t *outer, brc_error *err)
{
    stored_reader *r = ctx;
    int there;
    BRC_TRY(brc_task_step(r->a->session->repo, r->n++ > 0 ? r->chunk_bytes : 0, err));
    int rc = brc_stored_chunk(r->a, outer, &r->bytes, &there, err);
    if (rc < 0) {
        brc_array_name_chunk(r->a, outer, err);
        return rc;
    }
    return there ? r->sink->put(r->sink->ctx, outer, (brc_span){r->bytes.data, r->bytes.len}, err)
                 : BRC_OK;
}

int brc_array_get_stored(brc_array *a, const brc_chunk_sink *sink, brc_error *err)
{
    stored_reader r = {.a = a, .sink = sink};
    uint64_t all;
    progress_bytes(a, &r.chunk_bytes, &all);
    BRC_TRY(brc_array_begin_read(a, err));
    brc_task task = brc_task_begin(a->session->repo, "export", all);
    int rc = brc_array_each_outer(a, give_stored, &r, err);
    brc_task_end(a->session->repo, &task, rc);
    brc_array_end_read(a);
    brc_buf_dispose(&r.bytes);
    return rc;
}
