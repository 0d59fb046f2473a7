/* Changing an array's codecs: for chunks to come, or for those that are there too. */
#include <search.h>
#include <stdlib.h>
#include <string.h>

#include "../base/alloc.h"
#include "../flow/write.h"
#include "array.h"
#include "chunk_cursor.h"

/* Chunks are looked up in batches: what is remembered does not grow with the array. */
enum { RECODE_BATCH = 1024 };

typedef struct recode_chunk {
    brc_object object;
    brc_form *form;
    int64_t encoding;
} recode_chunk;

typedef struct recode {
    brc_array *a;
    brc_chunk_cursor cursor;
    uint64_t total;   /* of all chunks, those that are stored so already among them */
    void *on_the_way; /* of tsearch(): items that are not done, by object           */
    size_t n, at;
    recode_chunk chunks[RECODE_BATCH];
} recode;

static int recode_count(void *ctx, const uint64_t *index, const brc_oid *id, brc_error *err)
{
    (void)index;
    (void)id;
    (void)err;
    ((recode *)ctx)->total++;
    return BRC_OK;
}

static int recode_order(const void *a, const void *b)
{
    return brc_oid_cmp(&((const recode_chunk *)a)->object.id,
                       &((const recode_chunk *)b)->object.id);
}

/* The next chunks of the array: 0 at the end. */
static int recode_read(recode *r, brc_error *err)
{
    uint64_t index[BRC_MAX_NDIM], corner[BRC_MAX_NDIM], chunk[BRC_MAX_NDIM];
    int rc = 1;
    r->n = r->at = 0;
    while (r->n < RECODE_BATCH) {
        recode_chunk *c = &r->chunks[r->n];
        memset(c, 0, sizeof(*c));
        rc = brc_chunk_cursor_next(&r->cursor, index, &c->object.id, err);
        if (rc <= 0)
            break;
        brc_grid_chunk(&r->a->meta.grid, index, corner, chunk);
        BRC_TRY(brc_array_form(r->a, chunk, &c->form, &c->encoding, err));
        r->n++;
    }
    return rc < 0 ? rc : r->n > 0;
}

static int recode_item_order(const void *a, const void *b)
{
    return brc_oid_cmp(&((const brc_write_item *)a)->old.id, &((const brc_write_item *)b)->old.id);
}

static int is_on_the_way(const recode *r, const brc_oid *id)
{
    const brc_write_item item = {.old.id = *id};
    return tfind(&item, &r->on_the_way, recode_item_order) != NULL;
}

/* Each object once, and only those that are encoded otherwise now: an object that another
 * chunk shares may have been stored anew with an earlier batch, or be about to be. */
static int recode_choose(recode *r, brc_error *err)
{
    brc_object *objects[RECODE_BATCH];
    size_t kept = 0;
    if (r->n > 1)
        qsort(r->chunks, r->n, sizeof(recode_chunk), recode_order);
    for (size_t i = 0; i < r->n; i++)
        if (i == 0 || recode_order(&r->chunks[kept - 1], &r->chunks[i]) != 0)
            r->chunks[kept++] = r->chunks[i];
    for (size_t i = 0; i < kept; i++)
        objects[i] = &r->chunks[i].object;
    BRC_TRY(brc_objects_find(brc_array_store(r->a), objects, kept, err));
    r->n = 0;
    for (size_t i = 0; i < kept; i++) {
        const brc_object *o = &r->chunks[i].object;
        if (o->found && o->encoding != r->chunks[i].encoding && !is_on_the_way(r, &o->id))
            r->chunks[r->n++] = r->chunks[i];
    }
    return BRC_OK;
}

static int recode_list(void *ctx, brc_write_item *items, size_t cap, size_t *n, brc_error *err)
{
    recode *r = ctx;
    *n = 0;
    BRC_TRY(brc_task_step(r->a->session->repo, 0, err));
    while (r->at == r->n) {
        int rc = recode_read(r, err);
        if (rc <= 0)
            return rc;
        BRC_TRY(recode_choose(r, err));
    }
    for (; *n < cap && r->at < r->n; ++*n) {
        const recode_chunk *c = &r->chunks[r->at++];
        brc_write_item *item = &items[*n];
        item->chain = c->form->chain;
        item->spec = c->encoding != 0 ? c->form->spec : NULL;
        item->elements = c->form->elements;
        item->digest = c->form->digest;
        item->old = c->object;
        BRC_TRY(brc_array_new_chunks(r->a, &item->backend, err));
        if (tsearch(item, &r->on_the_way, recode_item_order) == NULL)
            return brc_nomem(err);
    }
    return BRC_OK;
}

static int recode_gather(void *ctx, brc_write_item *item, brc_scratch *scratch, brc_error *err)
{
    (void)ctx;
    BRC_TRY(brc_write_old(item, scratch, &item->own, err));
    if (item->own.len != item->old.size)
        return brc_fail(err, BRC_ECORRUPT, "a chunk has %zu bytes, not %llu", item->own.len,
                        (unsigned long long)item->old.size);
    item->data = item->own.data;
    item->len = item->own.len;
    return BRC_OK;
}

static int recode_done(void *ctx, const brc_write_item *item, brc_error *err)
{
    recode *r = ctx;
    tdelete(item, &r->on_the_way, recode_item_order);
    return brc_task_step(r->a->session->repo, item->old.size, err);
}

static void recode_name(void *ctx, const brc_write_item *item, brc_error *err)
{
    const recode *r = ctx;
    char hex[65];
    brc_context(err, "%s, chunk of object %s", r->a->path, brc_oid_format(hex, &item->old.id));
}

static void keep_recoded(void *item)
{
    (void)item; /* it belongs to the flow */
}

static int recode_listed(recode *r, brc_error *err)
{
    brc_array *a = r->a;
    brc_write_ops ops = {
        .ctx = r,
        .len = (size_t)brc_shape_count(a->meta.ndim, a->meta.grid.chunk) * brc_array_unit(a),
        .replace = 1,
        .list = recode_list,
        .gather = recode_gather,
        .done = recode_done,
        .name = recode_name,
    };
    uint64_t bytes;
    if (!brc_mul_u64(r->total, ops.len, &bytes))
        bytes = 0;
    brc_task task = brc_task_begin(a->session->repo, "re-encode", bytes);
    int rc = brc_chunk_cursor_start(&r->cursor, a, err);
    if (rc == BRC_OK)
        rc = brc_flow_write(&a->session->repo->pipe, brc_array_store(a), &ops, err);
    brc_task_end(a->session->repo, &task, rc);
    brc_chunk_cursor_end(&r->cursor);
    tdestroy(r->on_the_way, keep_recoded);
    return rc;
}

/* Stores every chunk of the array as its codecs now say. No id changes, and other
 * versions and arrays that share a chunk read the new bytes. */
static int recode_chunks(brc_array *a, brc_error *err)
{
    void *p;
    BRC_TRY(brc_new(&p, sizeof(recode), err));
    recode *r = p;
    r->a = a;
    int rc = brc_array_each_chunk(a, recode_count, r, err);
    if (rc == BRC_OK)
        rc = recode_listed(r, err);
    free(r);
    return rc;
}

/* The stored chunks get another shape: all elements are taken from a copy of the node (which
 * copies no chunk) and written anew. */
static int rechunk_from(brc_array *a, const char *path, brc_error *err)
{
    brc_array *from;
    brc_oid none;
    memset(&none, 0, sizeof(none));
    BRC_TRY(brc_array_open(&from, a->session, path, err));
    int rc = brc_draft_chunk_clear_all(brc_array_store(a), a->row, err);
    if (rc == BRC_OK)
        rc = brc_array_put_entry(a, NULL, &none, err);
    if (rc == BRC_OK)
        rc = brc_array_recut(a, from, NULL, err);
    brc_array_free(from);
    return rc;
}

static int rechunk(brc_array *a, const brc_json *doc, brc_error *err)
{
    brc_session *s = a->session;
    brc_buf path = BRC_BUF_INIT;
    int rc;
    BRC_GO(brc_buf_printf(&path, err, "/rechunked from")); /* gone before anyone looks */
    BRC_GO(brc_node_copy(s, a->path, (const char *)path.data, err));
    BRC_GO(brc_array_sync(a, err));
    BRC_GO(brc_array_put_entry(a, doc, NULL, err));
    BRC_GO(rechunk_from(a, (const char *)path.data, err));
    BRC_GO(brc_node_remove(s, (const char *)path.data, err));
    BRC_GO(brc_draft_node_clear(brc_array_store(a), s->draft.id, (const char *)path.data, err));
    rc = brc_array_sync(a, err);
done:
    brc_buf_dispose(&path);
    return rc;
}

/* 1 if a document stores chunks of another shape than the array does. */
static int changes_chunks(const brc_array *a, const brc_json *doc, brc_error *err)
{
    brc_meta then;
    BRC_TRY(brc_meta_open(&then, a->meta.registry, doc, err));
    int differs = memcmp(then.grid.chunk, a->meta.grid.chunk,
                         (size_t)a->meta.ndim * sizeof(then.grid.chunk[0])) != 0;
    brc_meta_dispose(&then);
    return differs;
}

static int apply_codecs(brc_array *a, const brc_json *doc, int rewrite, brc_error *err)
{
    int differs = rewrite ? changes_chunks(a, doc, err) : 0;
    if (differs < 0)
        return differs;
    if (differs)
        return rechunk(a, doc, err);
    BRC_TRY(brc_array_put_entry(a, doc, NULL, err));
    if (!rewrite)
        return BRC_OK;
    for (const brc_form *f = a->meta.forms; f != NULL; f = f->next)
        if (brc_chain_is_lossy(f->chain))
            return brc_fail(
                err, BRC_EUNSUPPORTED,
                "%s: a lossy chain changes the chunks' content: write them again instead", a->path);
    return recode_chunks(a, err);
}

static int change_codecs(brc_array *a, const char *codecs_json, int rewrite, brc_error *err)
{
    brc_json *doc;
    BRC_TRY(brc_entry_doc(brc_array_store(a), &a->entry, &doc, err));
    int rc = brc_meta_set_codecs(doc, &a->meta, codecs_json, rewrite, err);
    if (rc == BRC_OK)
        rc = apply_codecs(a, doc, rewrite, err);
    brc_json_free(doc);
    return rc;
}

int brc_array_set_codecs(brc_array *a, const char *codecs_json, int rewrite, brc_error *err)
{
    BRC_TRY(brc_array_begin(a, err));
    return brc_array_end(a, change_codecs(a, codecs_json, rewrite, err), err);
}
