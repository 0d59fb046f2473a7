/* Stored chunks in bulk: taken over on import, handed out on export. */
#include "transfer.h"

#include <stdlib.h>
#include <string.h>

#include "../base/alloc.h"
#include "../codec/write_pipeline.h"
#include "array.h"
#include "stored_chunk.h"

/* ---- in --------------------------------------------------------------------------------- */

typedef struct stored_writer {
    brc_array *a;
    const brc_chunk_source *source;
    int64_t encoding;
    uint64_t n;
    uint64_t *indexes; /* ndim numbers an item, by number % window */
} stored_writer;

/* More than there are items in two batches of the pipeline. */
#define INDEX_WINDOW 16384

static uint64_t *stored_index(const stored_writer *w, const brc_write_item *item)
{
    return w->indexes + item->number % INDEX_WINDOW * (uint64_t)w->a->meta.ndim;
}

static int stored_next(void *ctx, brc_write_item *item, brc_error *err)
{
    stored_writer *w = ctx;
    if (w->n % 64 == 0)
        BRC_TRY(brc_repo_progress(w->a->session->repo, "chunks", w->n, 0, err));
    item->number = w->n++;
    return w->source->next(w->source->ctx, stored_index(w, item), &item->stored, err);
}

static int stored_find(void *ctx, brc_write_item *const *items, size_t n, brc_error *err)
{
    const stored_writer *w = ctx;
    return brc_find_items(w->a, items, n, err);
}

static int stored_store(void *ctx, const brc_write_item *item, brc_error *err)
{
    const stored_writer *w = ctx;
    return brc_store_item(w->a, item, w->encoding, err);
}

static int stored_done(void *ctx, const brc_write_item *item, brc_error *err)
{
    const stored_writer *w = ctx;
    return brc_array_put_chunk(w->a, stored_index(w, item), item->is_fill ? NULL : &item->id, err);
}

static void stored_name(void *ctx, const brc_write_item *item, brc_error *err)
{
    const stored_writer *w = ctx;
    brc_array_name_chunk(w->a, stored_index(w, item), err);
}

static int put_stored(brc_array *a, const brc_chunk_source *source, brc_error *err)
{
    stored_writer w = {.a = a, .source = source};
    void *p;
    size_t ndim = (size_t)(a->meta.ndim > 0 ? a->meta.ndim : 1);
    BRC_TRY(brc_array_encoding(a, &w.encoding, err));
    BRC_TRY(brc_new_array(&p, INDEX_WINDOW * ndim, sizeof(uint64_t), err));
    w.indexes = p;
    brc_write_ops ops = {
        .ctx = &w,
        .chain = a->meta.chain,
        .len = a->meta.chunk_bytes,
        .hash = brc_store_hash(brc_array_store(a)),
        .secret = brc_store_secret(brc_array_store(a)),
        .fill = a->meta.fill.data,
        .item_size = a->meta.type->item_size,
        .encoded = 1,
        .next = stored_next,
        .find = stored_find,
        .store = stored_store,
        .done = stored_done,
        .name = stored_name,
    };
    int rc = brc_write_pipeline(&a->session->repo->pipe, &ops, err);
    free(p);
    return rc;
}

int brc_array_put_stored(brc_array *a, const brc_chunk_source *source, brc_error *err)
{
    BRC_TRY(brc_array_begin(a, err));
    return brc_array_end(a, put_stored(a, source, err), err);
}

/* ---- out -------------------------------------------------------------------------------- */

int brc_stored_chunk(brc_array *a, const brc_oid *id, brc_buf *out, brc_error *err)
{
    brc_store *store = brc_array_store(a);
    brc_object o = {.id = *id}, *one = &o;
    brc_scratch *scratch;
    brc_buf decoded = BRC_BUF_INIT;
    int64_t encoding = -1;
    char hex[65];
    int rc;
    out->len = 0;
    BRC_TRY(brc_objects_find(store, &one, 1, err));
    if (!o.found)
        return brc_fail(err, BRC_ECORRUPT, "object %s is missing; run 'breccia fsck'",
                        brc_oid_format(hex, id));
    if (brc_chain_is_identity(a->meta.chain))
        return brc_store_decode(store, &o, 0, out, err);
    BRC_TRY(brc_encoding_find(store, a->meta.spec, &encoding, err));
    if (o.encoding == encoding) {
        BRC_TRY(brc_buf_reserve(out, (size_t)o.stored + 1, err));
        BRC_TRY(brc_object_fetch(store, &o, out->data, err));
        out->len = (size_t)o.stored;
        return brc_object_verify(&o, out->data, err);
    }
    BRC_GO(brc_store_decode(store, &o, 0, &decoded, err));
    BRC_GO(brc_pipe_scratch(&a->session->repo->pipe, 0, &scratch, err));
    rc = brc_chain_encode(a->meta.chain, scratch, (brc_span){decoded.data, decoded.len}, out, err);
done:
    brc_buf_dispose(&decoded);
    return rc;
}

typedef struct stored_reader {
    brc_array *a;
    const brc_chunk_sink *sink;
    brc_buf bytes;
    uint64_t n;
} stored_reader;

static int give_stored(void *ctx, const uint64_t *index, const brc_oid *id, brc_error *err)
{
    stored_reader *r = ctx;
    BRC_TRY(brc_repo_progress(r->a->session->repo, "chunks", r->n++, 0, err));
    int rc = brc_stored_chunk(r->a, id, &r->bytes, err);
    if (rc < 0) {
        brc_array_name_chunk(r->a, index, err);
        return rc;
    }
    return r->sink->put(r->sink->ctx, index, (brc_span){r->bytes.data, r->bytes.len}, err);
}

int brc_array_get_stored(brc_array *a, const brc_chunk_sink *sink, brc_error *err)
{
    stored_reader r = {.a = a, .sink = sink};
    BRC_TRY(brc_array_begin_read(a, err));
    int rc = brc_array_each_chunk(a, give_stored, &r, err);
    brc_array_end_read(a);
    brc_buf_dispose(&r.bytes);
    return rc;
}
