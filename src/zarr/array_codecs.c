/*
 * Changing an array's codecs: for chunks to come, or for those that are there too.
 *
 * How an object is stored is nobody's concern: its id and its content stay. So a rewrite stores
 * chunk after chunk anew in many short transactions, as bulk writes do (store/batches.c), and the
 * last one sets the document. If it fails, or its process is killed, the array is as it was, and
 * some of its chunks are stored as the new codecs say: a rewrite that is begun again passes over
 * them.
 */
#include <search.h>
#include <stdlib.h>
#include <string.h>

#include "../base/alloc.h"
#include "../flow/write.h"
#include "array.h"
#include "array_replace.h"
#include "chunk_cursor.h"

/* Chunks are looked up in batches: what is remembered does not grow with the array. */
enum { RECODE_BATCH = 1024 };

/* What others write while the chunks are gone through is gone through again, so often at most: what
 * they write after that stays as they have stored it. */
enum { RECODE_PASSES = 4 };

typedef struct recode_chunk {
    brc_object object;
    brc_form *form;
    int64_t encoding;
} recode_chunk;

typedef struct recode {
    brc_array *a;
    brc_meta to;      /* what the array is to be                                    */
    brc_chunk_cursor cursor;
    uint64_t total;   /* of all chunks, those that are stored so already among them */
    void *on_the_way; /* of tsearch(): items that are not done, by object           */
    size_t n, at;
    recode_chunk chunks[RECODE_BATCH];
} recode;

static int recode_count(void *ctx, const uint64_t *index, const brc_oid *id, brc_error *err)
{
    recode *r = ctx;
    (void)index;
    (void)id;
    (void)err;
    r->total++;
    brc_store_breathe(brc_array_store(r->a)); /* it is for the progress alone */
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
        BRC_TRY(brc_form_of_meta(brc_array_store(r->a), &r->to, chunk, &c->form, &c->encoding,
                                 err));
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
        item->spec = c->encoding != 0 ? c->form->spec : NULL; /* -1: the first that is stored so
                                                                 gives it a number */
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

/* Stores every chunk of the array as its codecs will say. No id changes, and other
 * versions and arrays that share a chunk read the new bytes. */
static int recode_chunks(brc_array *a, const brc_json *doc, brc_error *err)
{
    void *p;
    BRC_TRY(brc_new(&p, sizeof(recode), err));
    recode *r = p;
    r->a = a;
    int rc = brc_meta_open(&r->to, a->meta.registry, doc, err);
    if (rc < 0) {
        free(r);
        return rc;
    }
    for (const brc_form *f = r->to.forms; rc == BRC_OK && f != NULL; f = f->next)
        if (brc_chain_is_lossy(f->chain))
            rc = brc_fail(err, BRC_EUNSUPPORTED,
                          "%s: a lossy chain changes the chunks' content: write them again instead",
                          a->path);
    if (rc == BRC_OK)
        rc = brc_array_each_chunk(a, recode_count, r, err);
    if (rc == BRC_OK)
        rc = recode_listed(r, err);
    brc_meta_dispose(&r->to);
    free(r);
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

/* The array's document with these codecs; *differs: its chunks are to have another shape. */
static int plan_codecs(const brc_array *a, const char *codecs_json, int rewrite, brc_json **doc,
                       int *differs, brc_error *err)
{
    *differs = 0;
    BRC_TRY(brc_entry_doc(brc_array_store(a), &a->entry, doc, err));
    int rc = brc_meta_set_codecs(*doc, &a->meta, codecs_json, rewrite, err);
    if (rc == BRC_OK && rewrite)
        *differs = rc = changes_chunks(a, *doc, err);
    if (rc < 0) {
        brc_json_free(*doc);
        *doc = NULL;
    }
    return rc < 0 ? rc : BRC_OK;
}

/* ---- chunks of another shape -------------------------------- */

static int shape_changed(const brc_array *a, brc_error *err)
{
    return brc_fail(err, BRC_ECONFLICT,
                    "%s: others have changed its chunks' shape meanwhile: try again", a->path);
}

/* All elements are taken from the array as it was, and written anew. */
static int rechunk_begin(void *ctx, brc_array *from, brc_json **doc, brc_oid *map, brc_error *err)
{
    int differs;
    (void)map;
    BRC_TRY(plan_codecs(from, ctx, 1, doc, &differs, err));
    return differs ? 1 : shape_changed(from, err);
}

static int rechunk_fill(void *ctx, brc_array *to, brc_array *from, brc_error *err)
{
    (void)ctx;
    return brc_array_recut(to, from, NULL, err);
}

static int rechunk(brc_array *a, const char *codecs_json, brc_error *err)
{
    brc_replacing r = {.a = a, .ctx = (void *)(uintptr_t)codecs_json, .begin = rechunk_begin,
                       .fill = rechunk_fill};
    return brc_array_replace(&r, err);
}

/* Within a change. */
static int change_codecs(brc_array *a, const char *codecs_json, int rewrite, brc_error *err)
{
    brc_json *doc;
    int differs;
    BRC_TRY(plan_codecs(a, codecs_json, rewrite, &doc, &differs, err));
    int rc = differs ? rechunk(a, codecs_json, err) : BRC_OK;
    if (rc == BRC_OK && !differs && rewrite)
        rc = recode_chunks(a, doc, err);
    if (rc == BRC_OK && !differs)
        rc = brc_array_put_entry(a, doc, NULL, err);
    brc_json_free(doc);
    return rc;
}

/* ---- in batches -------------------------------- */

/* All in one transaction, if it is small; else in many. It begins with the first chunk that is
 * stored anew: nobody waits while that is decoded and encoded. Then one is open, for the end. */
static int recode_in_batches(brc_array *a, const brc_json *doc, brc_error *err)
{
    brc_store *store = brc_array_store(a);
    BRC_TRY(brc_store_bulk_begin(store, err));
    brc_store_bulk_enter(store);
    int rc = recode_chunks(a, doc, err);
    const int end = brc_store_end(store, rc == BRC_OK, rc == BRC_OK ? err : NULL);
    rc = rc < 0 ? rc : end;
    if (rc == BRC_OK)
        rc = brc_store_bulk_finish(store, err);
    brc_store_bulk_cancel(store);
    return rc;
}

/* In the last transaction. *done 0: others have written meanwhile, and it is to be done again. */
static int end_recode(brc_array *a, const brc_draft_head *was, const char *codecs_json, int last,
                      int *done, brc_error *err)
{
    brc_json *doc;
    int differs;
    BRC_TRY(brc_array_begin_read(a, err));
    brc_array_end_read(a);
    if (!last && !brc_draft_unchanged(was, &a->session->draft))
        return BRC_OK;
    BRC_TRY(plan_codecs(a, codecs_json, 1, &doc, &differs, err));
    int rc = differs ? shape_changed(a, err) : brc_array_begin(a, err);
    if (rc == BRC_OK)
        rc = brc_array_end(a, brc_array_put_entry(a, doc, NULL, err), err);
    brc_json_free(doc);
    *done = rc == BRC_OK;
    return rc;
}

/* *differs: nothing was done. */
static int recode_pass(brc_array *a, const char *codecs_json, int last, int *differs, int *done,
                       brc_error *err)
{
    brc_store *store = brc_array_store(a);
    brc_json *doc;
    BRC_TRY(brc_array_begin_read(a, err));
    const brc_draft_head was = a->session->draft;
    int rc = plan_codecs(a, codecs_json, 1, &doc, differs, err);
    brc_array_end_read(a);
    if (rc < 0)
        return rc;
    if (!*differs)
        rc = recode_in_batches(a, doc, err);
    if (rc == BRC_OK && !*differs) {
        rc = end_recode(a, &was, codecs_json, last, done, err);
        const int end = brc_store_end(store, rc == BRC_OK, rc == BRC_OK ? err : NULL);
        rc = rc < 0 ? rc : end;
    }
    brc_json_free(doc);
    return rc;
}

static int rewrite_codecs(brc_array *a, const char *codecs_json, int *differs, brc_error *err)
{
    int rc = BRC_OK, done = 0;
    *differs = 0;
    for (int i = 1; i <= RECODE_PASSES && rc == BRC_OK && !done && !*differs; i++)
        rc = recode_pass(a, codecs_json, i == RECODE_PASSES, differs, &done, err);
    if (rc < 0)
        brc_array_forget(a);
    return rc;
}

/* Within a change of the caller's it is a part of that. */
int brc_array_set_codecs(brc_array *a, const char *codecs_json, int rewrite, brc_error *err)
{
    int differs;
    if (codecs_json == NULL)
        return brc_fail(err, BRC_EINVAL, "%s: a list of codecs is needed, as zarr.json has it",
                        a->path);
    BRC_TRY(brc_session_can_change(a->session, err));
    if (rewrite && !brc_store_in_write(brc_array_store(a)) &&
        !brc_store_in_bulk(brc_array_store(a))) {
        BRC_TRY(rewrite_codecs(a, codecs_json, &differs, err));
        return differs ? rechunk(a, codecs_json, err) : BRC_OK;
    }
    BRC_TRY(brc_array_begin(a, err));
    return brc_array_end(a, change_codecs(a, codecs_json, rewrite, err), err);
}
