/* Changes of an array's backend, codecs, shape and past. meta.c defines the stored form of the
 * backend. */
#include <stdlib.h>
#include <string.h>

#include "../../base/alloc.h"
#include "../../base/buf.h"
#include "../../base/json.h"
#include "../../flow/again.h"
#include "../../store/change.h"
#include "../../work/bulk_write.h"
#include "../../work/fold.h"
#include "array.h"
#include "array_shrink.h"
#include "array_write.h"
#include "chunk_cursor.h"

/* ==== array backend ================================ */

int brc_backend_of_text(const brc_registry *reg, const char *text, brc_buf *full, brc_error *err)
{
    brc_json *spec;
    BRC_TRY(brc_spec_read(&spec, text, err));
    int rc = brc_backend_full(reg, spec, full, err);
    if (rc == BRC_OK)
        rc = brc_backend_takes(reg, spec, err);
    brc_json_free(spec);
    return rc < 0 ? rc : brc_buf_terminate(full, err);
}

/* Stores the options. The backend gets its number before anything is put there, so that a
 * collection of garbage knows of the backend whatever happens to the writing process. */
static int storage_put(brc_store *store, const brc_buf *full, brc_oid *id, brc_error *err)
{
    brc_buf doc = BRC_BUF_INIT;
    int64_t number;
    memset(id, 0, sizeof(*id));
    if (strcmp((const char *)full->data, BRC_INLINE_SPEC) == 0)
        return BRC_OK;
    BRC_TRY(brc_backend_intern(store, (const char *)full->data, &number, err));
    int rc = brc_buf_text(&doc, "{\"backend\":", err);
    if (rc == BRC_OK)
        rc = brc_buf_append(&doc, full->data, full->len, err);
    if (rc == BRC_OK)
        rc = brc_buf_text(&doc, "}", err);
    if (rc == BRC_OK)
        rc = brc_store_put(store, BRC_KIND_DOCUMENT, doc.data, doc.len, id, err);
    brc_buf_dispose(&doc);
    return rc;
}

/* Sets the default backend. The setting comes from the file, and was valid when it was set. */
int brc_entry_take_default(brc_session *s, brc_entry *entry, brc_error *err)
{
    const breccia *repo = s->repo;
    brc_buf text = BRC_BUF_INIT, full = BRC_BUF_INIT;
    int rc = brc_setting_find(repo->store, BRC_SETTING_BACKEND, &text, err);
    if (rc <= 0)
        goto done;
    rc = brc_backend_of_text(repo->registry, (const char *)text.data, &full, err);
    if (rc == BRC_EINVAL) {
        rc = BRC_ECORRUPT;
        brc_error_recode(err, rc);
    }
    if (rc < 0)
        brc_context(err, "the default of new arrays ('breccia config FILE backend')");
    else
        rc = storage_put(repo->store, &full, &entry->storage, err);
done:
    brc_buf_dispose(&text);
    brc_buf_dispose(&full);
    return rc;
}

static int change_backend(brc_array *a, const brc_buf *full, brc_error *err)
{
    brc_entry entry = a->entry;
    BRC_TRY(storage_put(brc_array_store(a), full, &entry.storage, err));
    BRC_TRY(brc_session_put(a->session, a->path, &entry, &a->row, err));
    return brc_array_sync(a, err);
}

int brc_array_set_backend(brc_array *a, const char *backend_json, brc_error *err)
{
    brc_buf full = BRC_BUF_INIT;
    if (backend_json == NULL)
        backend_json = BRC_INLINE;
    int rc = brc_backend_of_text(a->session->repo->registry, backend_json, &full, err);
    if (rc == BRC_OK)
        rc = brc_array_begin(a, err);
    if (rc == BRC_OK)
        rc = brc_array_end(a, change_backend(a, &full, err), err);
    brc_buf_dispose(&full);
    if (rc < 0)
        brc_context(err, "%s", a->path);
    return rc;
}

/* ==== array codecs ================================ */

/*
 * Changes an array's codecs, for new chunks only or for existing ones too.
 *
 * The way in which an object is stored does not affect its id and its content. A rewrite therefore
 * stores chunk after chunk again in many short transactions, as bulk writes do (store/bulk.c), and
 * the last transaction sets the document. If the rewrite fails, or its process is killed, the array
 * is as before, with some of its chunks stored with the new codecs; the next rewrite skips those
 * chunks.
 */

/* The most passes over the chunks, each for what others wrote during the one before. What they
 * write after the last pass stays as they stored it. */
enum { RECODE_PASSES = 4 };

typedef struct recode {
    brc_array *a;
    brc_meta to;      /* the array as it will be                                    */
    brc_chunk_cursor cursor;
    uint64_t total;   /* of all chunks, also of those that are stored with these codecs already */
} recode;

static int recode_count(void *ctx, const uint64_t *index, const brc_oid *id, brc_error *err)
{
    recode *r = ctx;
    (void)index;
    (void)id;
    (void)err;
    r->total++;
    brc_store_breathe(brc_array_store(r->a)); /* only for progress */
    return BRC_OK;
}

/* Lists the next chunk of the array, which goes where the array's new chunks go. */
static int recode_next(void *ctx, brc_again_item *out, brc_error *err)
{
    recode *r = ctx;
    uint64_t index[BRC_MAX_NDIM], corner[BRC_MAX_NDIM], chunk[BRC_MAX_NDIM];
    brc_form *form;
    const int rc = brc_chunk_cursor_next(&r->cursor, index, &out->id, err);
    if (rc <= 0)
        return rc;
    int64_t encoding, backend;
    brc_grid_chunk(&r->a->meta.grid, index, corner, chunk);
    BRC_TRY(brc_form_of_meta(brc_array_store(r->a), &r->to, chunk, &form, &encoding, err));
    BRC_TRY(brc_array_new_chunks(r->a, &backend, err));
    out->kind = BRC_AGAIN_ENCODE;
    out->as.encoded.chain = form->chain;
    out->as.encoded.spec = encoding != 0 ? form->spec : NULL; /* -1: the first chunk with this
                                                               * encoding gives it a number */
    out->as.encoded.digest = form->digest;
    out->as.encoded.encoding = encoding;
    out->as.encoded.backend = backend;
    return 1;
}

static int recode_step(void *ctx, uint64_t bytes, brc_error *err)
{
    const recode *r = ctx;
    return brc_task_step(r->a->session->repo, bytes, err);
}

static void recode_name(void *ctx, const brc_oid *id, brc_error *err)
{
    const recode *r = ctx;
    char hex[65];
    brc_context(err, "%s, chunk of object %s", r->a->path, brc_oid_format(hex, id));
}

static int recode_listed(recode *r, brc_error *err)
{
    brc_array *a = r->a;
    const size_t len = (size_t)brc_shape_count(a->meta.ndim, a->meta.grid.chunk) *
                       brc_array_unit(a);
    brc_again again = {
        .pipe = &a->session->repo->pipe,
        .store = brc_array_store(a),
        .ctx = r,
        .next = recode_next,
        .step = recode_step,
        .name = recode_name,
    };
    uint64_t bytes;
    if (!brc_mul_u64(r->total, len, &bytes))
        bytes = 0;
    brc_task task = brc_task_begin(a->session->repo, "re-encode", bytes);
    int rc = brc_chunk_cursor_start(&r->cursor, a, err);
    if (rc == BRC_OK)
        rc = brc_again_run(&again, err);
    brc_task_end(a->session->repo, &task, rc);
    brc_chunk_cursor_end(&r->cursor);
    return rc;
}

/* Stores every chunk of the array with its new codecs. Ids do not change, and other versions and
 * arrays that share a chunk read the new bytes. */
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

/* Returns 1 if a document stores chunks of another shape than the array does. */
static int changes_chunks(const brc_array *a, const brc_json *doc, brc_error *err)
{
    brc_meta then;
    BRC_TRY(brc_meta_open(&then, a->meta.registry, doc, err));
    int differs = memcmp(then.grid.chunk, a->meta.grid.chunk,
                         (size_t)a->meta.ndim * sizeof(then.grid.chunk[0])) != 0;
    brc_meta_dispose(&then);
    return differs;
}

/* Makes the array's document with these codecs; *differs: its chunks have another shape. */
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

/* Begins a rechunking: all elements are read from the array as it was, and written again. */
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

/* Changes the codecs within a change. */
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

typedef struct recode_steps {
    brc_array *a;
    const brc_json *doc;
} recode_steps;

static int recode_all(void *ctx, brc_error *err)
{
    const recode_steps *steps = ctx;
    return recode_chunks(steps->a, steps->doc, err);
}

/* Stores the chunks in one transaction if the array is small; otherwise in many, the first of which
 * begins with the first chunk to store, so that nobody waits while chunks are decoded and encoded.
 * Leaves one transaction open, for the end. */
static int recode_in_batches(brc_array *a, const brc_json *doc, brc_error *err)
{
    recode_steps steps = {a, doc};
    return brc_again_in_steps(brc_array_store(a), recode_all, &steps, err);
}

/* Sets the document in the last transaction. *done is 0 if others have written meanwhile: another
 * pass is needed. */
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

/* Makes one pass. *differs: the chunks have another shape, and nothing was done. */
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

/* Changes the codecs; within the caller's change, as a part of that. */
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

/* ==== array change ================================ */

/* Changes of an array's shape, its codecs and its past. */

/* ---- shape -------------------------------- */

static int set_shape(brc_array *a, const uint64_t *shape, brc_error *err)
{
    brc_json *doc;
    BRC_TRY(brc_entry_doc(brc_array_store(a), &a->entry, &doc, err));
    int rc = brc_meta_set_shape(doc, a->meta.ndim, shape, err);
    if (rc == BRC_OK)
        rc = brc_array_put_entry(a, doc, NULL, err);
    brc_json_free(doc);
    return rc;
}

/* Computes the shape that a new shape keeps, and its number of chunks along each axis. */
static int plan_resize(const brc_array *a, const uint64_t *shape, uint64_t *keep, uint64_t *count,
                       int *shrinks, brc_error *err)
{
    const brc_grid *grid = &a->meta.grid;
    int same = 1;
    *shrinks = 0;
    for (int i = 0; i < a->meta.ndim; i++) {
        if (shape[i] > INT64_MAX)
            return brc_fail(err, BRC_ELIMIT, "%s: an extent is larger than 2^63-1", a->path);
        *shrinks |= shape[i] < a->meta.shape[i];
        same &= shape[i] == a->meta.shape[i];
        keep[i] = shape[i] < a->meta.shape[i] ? shape[i] : a->meta.shape[i];
    }
    int rc = brc_grid_can_hold(grid, shape, err);
    if (rc < 0) {
        brc_context(err, "%s", a->path);
        return rc;
    }
    for (int i = 0; i < a->meta.ndim; i++)
        count[i] = keep[i] > 0 ? brc_grid_find(grid, i, keep[i] - 1) + 1 : 0;
    return !same;
}

typedef struct resize_call {
    brc_array *a;
    const uint64_t *shape;
    uint64_t keep[BRC_MAX_NDIM], count[BRC_MAX_NDIM];
    int shrinks;
    brc_edges *edges; /* the prepared edges */
} resize_call;

/* Looks at the array. Returns 1 if the shape differs. */
static int resize_look(resize_call *r, brc_error *err)
{
    if (brc_meta_must_encode(&r->a->meta, err) < 0) {
        brc_context(err, "%s cannot be resized here", r->a->path);
        return BRC_EUNSUPPORTED;
    }
    return plan_resize(r->a, r->shape, r->keep, r->count, &r->shrinks, err);
}

/* Cuts the array. Its uncommitted chunks become part of its map. */
static int cut_array(resize_call *r, brc_error *err)
{
    brc_array *a = r->a;
    brc_store *store = brc_array_store(a);
    brc_oid map;
    BRC_TRY(brc_bulk_check_none(a->session, "no array can be cut", err));
    BRC_TRY(brc_fold_chunks(store, &a->entry, &a->stack, &map, err));
    BRC_TRY(brc_chunks_drop_outside(store, a->meta.ndim, r->count, &map, err));
    BRC_TRY(brc_draft_row_clear(store, a->row, a->path, err));
    return brc_array_put_entry(a, NULL, &map, err);
}

static int resize_before(void *ctx, brc_error *err)
{
    resize_call *r = ctx;
    return r->shrinks ? cut_array(r, err) : brc_array_drop_beyond(r->a, r->shape, err);
}

static int resize_within(void *ctx, brc_error *err)
{
    resize_call *r = ctx;
    int differs = resize_look(r, err);
    if (differs <= 0)
        return differs;
    BRC_TRY(resize_before(r, err));
    BRC_TRY(brc_store_rest(brc_array_store(r->a), 1, err));
    BRC_TRY(brc_array_clean_edges(r->a, r->keep, r->shape, err));
    return set_shape(r->a, r->shape, err);
}

static int resize_plan(void *ctx, brc_error *err)
{
    resize_call *r = ctx;
    int few, differs = resize_look(r, err);
    if (differs <= 0)
        return differs < 0 ? differs : BRC_CHANGE_NONE;
    if (!r->shrinks)
        return brc_array_has_few_beyond(r->a, r->shape) ? BRC_OK : BRC_CHANGE_MUCH;
    BRC_TRY(brc_array_has_few_chunks(r->a, &few, err));
    if (!few)
        return BRC_CHANGE_OTHER;
    const uint64_t chunks = brc_array_edge_chunks(r->a, r->keep, r->shape);
    return chunks <= 1 || brc_chunks_memory(r->a, chunks) <= BRC_SMALL_BYTES ? BRC_OK
                                                                             : BRC_CHANGE_OTHER;
}

static int resize_prepare(void *ctx, brc_prepared **out, brc_error *err)
{
    resize_call *r = ctx;
    brc_edges_free(r->edges);
    return brc_edges_prepare(out, &r->edges, r->a, r->keep, r->shape, err);
}

static int resize_behind(void *ctx, brc_error *err)
{
    resize_call *r = ctx;
    return set_shape(r->a, r->shape, err);
}

/* Begins a cut in many transactions: the array is copied to a new node that has the new map
 * already. */
static int cut_begin(void *ctx, brc_array *from, brc_json **doc, brc_oid *map, brc_error *err)
{
    resize_call *r = ctx;
    r->a = from;
    brc_store *store = brc_array_store(from);
    brc_fold how = {.way = brc_store_in_write(store) ? BRC_FOLD_AT_ONCE : BRC_FOLD_SHORT_WRITES};
    int differs = resize_look(r, err);
    if (differs <= 0)
        return differs;
    *map = from->entry.map;
    if (from->stack.n > 0)
        BRC_TRY(brc_fold_end(store, &how,
                             brc_fold_stack(store, &how, &from->entry.map, &from->stack, map, err),
                             err));
    BRC_TRY(brc_chunks_drop_outside(store, from->meta.ndim, r->count, map, err));
    BRC_TRY(brc_entry_doc(store, &from->entry, doc, err));
    return 1;
}

static int cut_fill(void *ctx, brc_array *to, brc_array *from, brc_error *err)
{
    resize_call *r = ctx;
    (void)from;
    r->a = to;
    BRC_TRY(brc_array_clean_edges(to, r->keep, r->shape, err));
    return set_shape(to, r->shape, err);
}

int brc_array_resize(brc_array *a, const uint64_t *shape, brc_error *err)
{
    resize_call r = {.a = a, .shape = shape};
    brc_array_state state;
    brc_array_change c = {.arrays = &a, .states = &state, .n = 1, .ctx = &r, .plan = resize_plan,
                          .prepare = resize_prepare, .before = resize_before,
                          .behind = resize_behind, .within = resize_within};
    int rc = brc_array_change_run(&c, err);
    brc_edges_free(r.edges);
    if (rc != BRC_CHANGE_OTHER)
        return rc;
    brc_replacing cut = {.a = a, .ctx = &r, .begin = cut_begin, .fill = cut_fill};
    return brc_array_replace(&cut, err);
}

/* ---- appending -------------------------------- */

typedef struct append_call {
    int axis;
    uint64_t count;
    brc_buffer buffer;
    brc_sel sel;
    brc_region_write rw; /* everything to write                           */
    brc_region_writer writer;
    brc_array_change change;
    uint64_t keep[BRC_MAX_NDIM], shape[BRC_MAX_NDIM]; /* before, after  */
} append_call;

/* Describes the append. Elements are written as if the array had its new shape already; padding
 * that chunks of a smaller shape may have kept is cleared with that. */
static int append_look(append_call *c, brc_error *err)
{
    brc_array *a = c->rw.a;
    const int ndim = a->meta.ndim;
    if (c->axis < 0 || c->axis >= ndim)
        return brc_fail(err, BRC_EINVAL, "%s has no axis %d: it has %d", a->path, c->axis, ndim);
    memcpy(c->shape, a->meta.shape, sizeof(c->shape));
    const uint64_t before = c->shape[c->axis];
    if (!brc_add_u64(before, c->count, &c->shape[c->axis]))
        return brc_fail(err, BRC_ELIMIT, "%s: an extent is larger than 2^63-1", a->path);
    resize_call r = {.a = a, .shape = c->shape};
    int differs = resize_look(&r, err);
    BRC_TRY(differs);
    brc_sel_of_shape(&c->sel, ndim, c->shape);
    c->sel.start[c->axis] = before;
    c->sel.count[c->axis] = c->count;
    for (int i = 0; i < ndim; i++)
        c->keep[i] = i == c->axis ? before : UINT64_MAX;
    const brc_io io = {
        .size = sizeof(io), .array = a, .sel = &c->sel, .buffer = &c->buffer};
    memset(&c->rw, 0, sizeof(c->rw));
    BRC_TRY(brc_region_write_of(&c->rw, &io, c->shape, err));
    c->rw.keep = differs ? c->keep : NULL;
    return BRC_OK;
}

static int append_prepare(void *ctx, brc_prepared **out, brc_error *err)
{
    append_call *c = ctx;
    return brc_regions_prepare(out, &c->writer, &c->rw, 1, err);
}

static int append_before(void *ctx, brc_error *err)
{
    append_call *c = ctx;
    return brc_array_drop_beyond(c->rw.a, c->shape, err);
}

static int append_behind(void *ctx, brc_error *err)
{
    append_call *c = ctx;
    return c->count > 0 ? set_shape(c->rw.a, c->shape, err) : BRC_OK;
}

static int append_within(void *ctx, brc_error *err)
{
    append_call *c = ctx;
    breccia *repo = c->rw.a->session->repo;
    BRC_TRY(append_look(c, err));
    BRC_TRY(append_before(c, err));
    BRC_TRY(brc_store_rest(repo->store, 1, err));
    brc_task task = brc_task_begin(repo, "write", brc_region_bytes(c->rw.a, &c->rw.r));
    int rc = brc_regions_write(&c->rw, 1, err);
    brc_task_end(repo, &task, rc);
    return rc == BRC_OK ? append_behind(c, err) : rc;
}

static int append_plan(void *ctx, brc_error *err)
{
    append_call *c = ctx;
    brc_regions_end(&c->writer);
    BRC_TRY(append_look(c, err));
    const brc_array *a = c->rw.a;
    const uint64_t chunks = c->rw.r.nchunks;
    c->change.bytes = brc_region_bytes(a, &c->rw.r);
    return brc_array_has_few_beyond(a, c->shape) &&
                   (chunks <= 1 || brc_chunks_memory(a, chunks) <= BRC_SMALL_BYTES)
               ? BRC_OK
               : BRC_CHANGE_MUCH;
}

int brc_array_append(brc_array *a, int axis, uint64_t count, const void *data, size_t len,
                     brc_error *err)
{
    brc_array_state state;
    append_call c = {
        .axis = axis, .count = count, .rw = {.a = a},
        .buffer = {.size = sizeof(brc_buffer), .data = (void *)(uintptr_t)data, .len = len},
        .change = {.arrays = &a, .states = &state, .n = 1, .ctx = &c, .plan = append_plan,
                   .prepare = append_prepare, .before = append_before, .behind = append_behind,
                   .within = append_within, .task = "write"},
    };
    int rc = brc_array_change_run(&c.change, err);
    brc_regions_end(&c.writer);
    return rc;
}

/* ---- restoring -------------------------------- */

static int check_same_form(const brc_array *a, const brc_array *then, const brc_sel *sel,
                           brc_error *err)
{
    if (strcmp(a->meta.dtype, then->meta.dtype) != 0 || a->meta.ndim != then->meta.ndim)
        return brc_fail(err, BRC_EINVAL,
                        "%s had a different data type or number of dimensions then: restore all of "
                        "it",
                        a->path);
    int rc = brc_sel_check(sel, then->meta.ndim, then->meta.shape, err);
    if (rc < 0)
        brc_context(err, "%s had a different shape then", a->path);
    return rc;
}

static int restore_region(brc_array *a, brc_array *then, const brc_sel *sel, brc_error *err)
{
    brc_sel all = BRC_SEL_INIT;
    if (sel == NULL) {
        brc_sel_all(&all, a);
        sel = &all;
    }
    BRC_TRY(check_same_form(a, then, sel, err));
    BRC_TRY(brc_array_can_write(a, err));
    BRC_TRY(brc_store_rest(brc_array_store(a), 1, err));
    return brc_array_recut(a, then, sel, err);
}

typedef struct restore_call {
    brc_array *a, *then;
    const brc_sel *sel;
} restore_call;

static int restore_change(void *ctx, brc_error *err)
{
    const restore_call *c = ctx;
    BRC_TRY(brc_array_begin(c->a, err));
    return brc_array_end(c->a, restore_region(c->a, c->then, c->sel, err), err);
}

/* Restores in steps. Merges again with the changes that others have made meanwhile in the same
 * chunks; the last try fails with a conflict. */
static int restore_steps(void *ctx, int insists, brc_error *err)
{
    const restore_call *c = ctx;
    return brc_array_bulk_change(c->a, insists, restore_change, ctx, err);
}

int brc_array_restore(brc_array *a, const brc_sel *sel, const char *rev, brc_error *err)
{
    restore_call call = {.a = a, .sel = sel};
    const brc_file_change change = {.ctx = &call, .steps = restore_steps};
    brc_session *s = NULL;
    int rc;
    BRC_TRY(brc_session_can_change(a->session, err));
    BRC_GO(brc_session_open(&s, a->session->repo, rev != NULL ? rev : a->session->branch,
                            BRC_SESSION_AT, err));
    BRC_GO(brc_array_open(&call.then, s, a->path, err));
    rc = brc_change_run(brc_array_store(a), &change, err);
done:
    brc_array_free(call.then);
    brc_session_free(s);
    return rc;
}
