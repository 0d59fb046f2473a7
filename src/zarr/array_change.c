/* Changing what an array is: its shape, its codecs, its past. */
#include <stdlib.h>
#include <string.h>

#include "../base/alloc.h"
#include "../base/arena.h"
#include "../codec/write_pipeline.h"
#include "array.h"

/* ---- shape ------------------------------------------------------------------------------ */

typedef struct outside_list {
    const uint64_t *grid;
    int ndim;
    brc_arena arena;
    void *edits; /* brc_edit[] */
    size_t n, cap;
} outside_list;

static int note_outside(void *ctx, brc_span key, brc_span value, brc_error *err)
{
    outside_list *list = ctx;
    uint64_t index[BRC_MAX_NDIM];
    uint8_t *copy;
    int outside = 0;
    (void)value;
    if (brc_chunk_key_decode(key.data, key.len, index) != list->ndim)
        return brc_fail(err, BRC_ECORRUPT, "a chunk's key is damaged; run 'breccia fsck'");
    for (int i = 0; i < list->ndim; i++)
        outside |= index[i] >= list->grid[i];
    if (!outside)
        return BRC_OK;
    BRC_TRY(brc_grow_array(&list->edits, &list->cap, list->n + 1, sizeof(brc_edit), err));
    BRC_TRY(brc_arena_copy(&list->arena, key.data, key.len, &copy, err));
    ((brc_edit *)list->edits)[list->n++] = (brc_edit){copy, key.len, NULL, 0};
    return BRC_OK;
}

/* The chunk map without what lies outside the grid. */
static int drop_outside(brc_store *store, int ndim, const uint64_t *grid, brc_oid *map,
                        brc_error *err)
{
    outside_list list = {.grid = grid, .ndim = ndim};
    brc_oid out;
    int rc = brc_map_each(store, map, note_outside, &list, err);
    if (rc == BRC_OK && list.n > 0) {
        rc = brc_map_edit(store, map, list.edits, list.n, &out, err);
        if (rc == BRC_OK)
            *map = out;
    }
    brc_arena_dispose(&list.arena);
    free(list.edits);
    return rc;
}

/* Where a chunk is cut by `keep`, what lies behind it becomes the fill value: the
 * padding of edge chunks never comes back as data. */
static int clean_edges(brc_array *a, const uint64_t *keep, brc_error *err)
{
    static const int64_t still[BRC_MAX_NDIM];
    const brc_meta *m = &a->meta;
    uint64_t whole[BRC_MAX_NDIM];
    brc_region r;
    for (int i = 0; i < m->ndim; i++) {
        if (keep[i] == 0)
            return BRC_OK; /* nothing is left */
        whole[i] = brc_grid_extent(keep[i], m->chunk[i]) * m->chunk[i];
    }
    for (int i = 0; i < m->ndim; i++) {
        brc_sel sel;
        if (whole[i] == keep[i])
            continue;
        memset(&sel, 0, sizeof(sel));
        sel.ndim = m->ndim;
        for (int j = 0; j < m->ndim; j++) {
            sel.count[j] = whole[j];
            sel.step[j] = 1;
        }
        sel.start[i] = keep[i];
        sel.count[i] = whole[i] - keep[i];
        BRC_TRY(brc_region_init(&r, a, &sel, whole, still, err));
        BRC_TRY(brc_array_write_region(a, &r, m->fill.data, err));
    }
    return BRC_OK;
}

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

/* Within a change. */
static int resize_array(brc_array *a, const uint64_t *shape, brc_error *err)
{
    brc_store *store = brc_array_store(a);
    uint64_t keep[BRC_MAX_NDIM], grid[BRC_MAX_NDIM];
    int shrinks = 0, same = 1;
    for (int i = 0; i < a->meta.ndim; i++) {
        if (shape[i] > INT64_MAX)
            return brc_fail(err, BRC_ELIMIT, "%s: an extent is larger than 2^63-1", a->path);
        shrinks |= shape[i] < a->meta.shape[i];
        same &= shape[i] == a->meta.shape[i];
        keep[i] = shape[i] < a->meta.shape[i] ? shape[i] : a->meta.shape[i];
        grid[i] = brc_grid_extent(shape[i], a->meta.chunk[i]);
    }
    if (same)
        return BRC_OK;
    if (shrinks) {
        brc_oid map;
        BRC_TRY(brc_fold_chunks(store, &a->entry, a->row, &map, err));
        BRC_TRY(drop_outside(store, a->meta.ndim, grid, &map, err));
        BRC_TRY(brc_draft_chunk_clear(store, a->row, NULL, 0, err));
        BRC_TRY(brc_array_put_entry(a, NULL, &map, err));
    }
    BRC_TRY(clean_edges(a, keep, err));
    return set_shape(a, shape, err);
}

int brc_array_resize(brc_array *a, const uint64_t *shape, brc_error *err)
{
    BRC_TRY(brc_array_begin(a, err));
    return brc_array_end(a, resize_array(a, shape, err), err);
}

static int append_elements(brc_array *a, int axis, uint64_t count, const void *data, size_t len,
                           brc_error *err)
{
    uint64_t shape[BRC_MAX_NDIM], before;
    brc_sel sel;
    if (axis < 0 || axis >= a->meta.ndim)
        return brc_fail(err, BRC_EINVAL, "%s has no axis %d: it has %d", a->path, axis, a->meta.ndim);
    memcpy(shape, a->meta.shape, sizeof(shape));
    before = shape[axis];
    if (!brc_add_u64(before, count, &shape[axis]))
        return brc_fail(err, BRC_ELIMIT, "%s: an extent is larger than 2^63-1", a->path);
    BRC_TRY(resize_array(a, shape, err));
    brc_sel_all(&sel, a);
    sel.start[axis] = before;
    sel.count[axis] = count;
    return brc_array_write(a, &sel, data, len, err);
}

int brc_array_append(brc_array *a, int axis, uint64_t count, const void *data, size_t len,
                     brc_error *err)
{
    BRC_TRY(brc_array_begin(a, err));
    return brc_array_end(a, append_elements(a, axis, count, data, len, err), err);
}

/* ---- codecs -------------------------------------------------------------------------------- */

/* Chunks that are to be re-encoded: one for each object. */
typedef struct recode {
    brc_array *a;
    int64_t encoding;
    void *objects; /* brc_object[] */
    size_t n, cap, at;
} recode;

static int recode_note(void *ctx, const uint64_t *index, const brc_oid *id, brc_error *err)
{
    recode *r = ctx;
    (void)index;
    BRC_TRY(brc_grow_array(&r->objects, &r->cap, r->n + 1, sizeof(brc_object), err));
    brc_object *o = &((brc_object *)r->objects)[r->n];
    *o = (brc_object){.id = *id};
    BRC_TRY(brc_objects_find(brc_array_store(r->a), &o, 1, err));
    r->n += o->found && o->encoding != r->encoding;
    return BRC_OK;
}

static int recode_next(void *ctx, brc_write_item *item, brc_error *err)
{
    recode *r = ctx;
    brc_store *store = brc_array_store(r->a);
    if (r->at == r->n)
        return 0;
    BRC_TRY(brc_repo_progress(r->a->session->repo, "chunks", r->at, r->n, err));
    const brc_object *o = &((brc_object *)r->objects)[r->at];
    item->number = r->at++;
    item->old_id = o->id;
    item->old_checksum = o->checksum;
    BRC_TRY(brc_encoding_chain(store, o->encoding, &item->old_chain, err));
    BRC_TRY(brc_buf_reserve(&item->stored, (size_t)o->stored + 1, err));
    BRC_TRY(brc_object_fetch(store, o, item->stored.data, err));
    item->stored.len = (size_t)o->stored;
    return 1;
}

static int recode_gather(void *ctx, brc_write_item *item, brc_scratch *scratch, brc_error *err)
{
    const recode *r = ctx;
    brc_object o = {.id = item->old_id, .checksum = item->old_checksum, .stored = item->stored.len};
    BRC_TRY(brc_object_verify(&o, item->stored.data, err));
    if (item->old_chain != NULL)
        BRC_TRY(brc_chain_decode(item->old_chain, scratch,
                                 (brc_span){item->stored.data, item->stored.len}, &item->own, err));
    else
        BRC_TRY(brc_buf_append(&item->own, item->stored.data, item->stored.len, err));
    if (item->own.len != r->a->meta.chunk_bytes)
        return brc_fail(err, BRC_ECORRUPT, "a chunk has %zu bytes, not %zu", item->own.len,
                        r->a->meta.chunk_bytes);
    item->data = item->own.data;
    return BRC_OK;
}

/* All are known, and all are to be stored again. */
static int recode_find(void *ctx, brc_write_item *const *items, size_t n, brc_error *err)
{
    (void)ctx;
    for (size_t i = 0; i < n; i++)
        if (brc_oid_cmp(&items[i]->id, &items[i]->old_id) != 0)
            return brc_fail(err, BRC_ECORRUPT, "a chunk's content has another hash; run 'breccia fsck'");
    return BRC_OK;
}

static int recode_store(void *ctx, const brc_write_item *item, brc_error *err)
{
    const recode *r = ctx;
    brc_object o = ((brc_object *)r->objects)[item->number];
    o.encoding = item->as_is ? 0 : r->encoding;
    o.stored = item->as_is ? o.size : item->stored.len;
    o.checksum = item->checksum;
    return brc_object_replace(brc_array_store(r->a), &o, item->as_is ? item->data : item->stored.data,
                              err);
}

static int recode_done(void *ctx, const brc_write_item *item, brc_error *err)
{
    (void)ctx;
    (void)item;
    (void)err;
    return BRC_OK;
}

static int object_id_order(const void *a, const void *b)
{
    return brc_oid_cmp(&((const brc_object *)a)->id, &((const brc_object *)b)->id);
}

static void recode_distinct(recode *r)
{
    brc_object *objects = r->objects;
    size_t kept = 0;
    if (r->n > 1)
        qsort(objects, r->n, sizeof(*objects), object_id_order);
    for (size_t i = 0; i < r->n; i++)
        if (kept == 0 || brc_oid_cmp(&objects[kept - 1].id, &objects[i].id) != 0)
            objects[kept++] = objects[i];
    r->n = kept;
}

/* Stores every chunk of the array as its codecs now say. No id changes, and other
 * versions and arrays that share a chunk read the new bytes. */
static int recode_chunks(brc_array *a, brc_error *err)
{
    recode r = {.a = a};
    int rc;
    BRC_GO(brc_array_encoding(a, &r.encoding, err));
    BRC_GO(brc_array_each_chunk(a, recode_note, &r, err));
    recode_distinct(&r);
    brc_write_ops ops = {
        .ctx = &r,
        .chain = a->meta.chain,
        .len = a->meta.chunk_bytes,
        .hash = brc_store_hash(brc_array_store(a)),
        .secret = brc_store_secret(brc_array_store(a)),
        .item_size = a->meta.type->item_size,
        .next = recode_next,
        .gather = recode_gather,
        .find = recode_find,
        .store = recode_store,
        .done = recode_done,
    };
    rc = brc_write_pipeline(&a->session->repo->pipe, &ops, err);
done:
    free(r.objects);
    return rc;
}

static int change_codecs(brc_array *a, const char *codecs_json, int rewrite, brc_error *err)
{
    brc_json *doc;
    BRC_TRY(brc_entry_doc(brc_array_store(a), &a->entry, &doc, err));
    int rc = brc_meta_set_codecs(doc, &a->meta, a->session->repo->registry, codecs_json, err);
    if (rc == BRC_OK)
        rc = brc_array_put_entry(a, doc, NULL, err);
    brc_json_free(doc);
    if (rc == BRC_OK && rewrite) {
        if (brc_chain_is_lossy(a->meta.chain))
            return brc_fail(err, BRC_EUNSUPPORTED,
                            "%s: a lossy chain changes the chunks' content: write them anew instead",
                            a->path);
        rc = recode_chunks(a, err);
    }
    return rc;
}

int brc_array_set_codecs(brc_array *a, const char *codecs_json, int rewrite, brc_error *err)
{
    BRC_TRY(brc_array_begin(a, err));
    return brc_array_end(a, change_codecs(a, codecs_json, rewrite, err), err);
}

/* ---- as it was -------------------------------------------------------------------------------- */

#define RESTORE_BYTES ((uint64_t)64 << 20)

static int check_same_form(const brc_array *a, const brc_array *then, const brc_sel *sel,
                           brc_error *err)
{
    if (strcmp(a->meta.type->json, then->meta.type->json) != 0 || a->meta.ndim != then->meta.ndim)
        return brc_fail(err, BRC_EINVAL,
                        "%s had another data type or number of dimensions then: restore all of it",
                        a->path);
    int rc = brc_sel_check(sel, then->meta.ndim, then->meta.shape, err);
    if (rc < 0)
        brc_context(err, "%s had another shape then", a->path);
    return rc;
}

/* Copies the region in slabs along its first axis. */
static int copy_region(brc_array *to, brc_array *from, const brc_sel *sel, brc_error *err)
{
    const brc_meta *m = &to->meta;
    uint64_t row, rows = sel->ndim > 0 ? sel->count[0] : 1, step, bytes;
    void *memory = NULL;
    brc_sel part = *sel;
    int rc = BRC_OK;
    if (brc_sel_count(sel) == 0)
        return BRC_OK;
    if (!brc_shape_bytes(sel->ndim - (sel->ndim > 0), sel->count + (sel->ndim > 0),
                         m->type->item_size, &bytes) || bytes > SIZE_MAX / 2)
        return brc_fail(err, BRC_ELIMIT, "%s: one row of the region is too large", to->path);
    step = RESTORE_BYTES / bytes;
    step = step < m->chunk[0] ? (sel->ndim > 0 ? m->chunk[0] : 1) : step / m->chunk[0] * m->chunk[0];
    if (step > rows)
        step = rows;
    BRC_TRY(brc_new_big(&memory, (size_t)(step * bytes), err));
    for (row = 0; row < rows && rc == BRC_OK; row += step) {
        uint64_t n = rows - row < step ? rows - row : step;
        if (sel->ndim > 0) {
            part.start[0] = sel->start[0] + row * sel->step[0];
            part.count[0] = n;
        }
        rc = brc_array_read(from, &part, memory, (size_t)(n * bytes), err);
        if (rc == BRC_OK)
            rc = brc_array_write(to, &part, memory, (size_t)(n * bytes), err);
    }
    free(memory);
    return rc;
}

static int restore_region(brc_array *a, const brc_sel *sel, const char *rev, brc_error *err)
{
    brc_session *s = NULL;
    brc_array *then = NULL;
    brc_sel all;
    int rc;
    if (sel == NULL) {
        brc_sel_all(&all, a);
        sel = &all;
    }
    BRC_GO(brc_session_open(&s, a->session->repo, rev != NULL ? rev : a->session->branch,
                            BRC_SESSION_AT, err));
    BRC_GO(brc_array_open(&then, s, a->path, err));
    BRC_GO(check_same_form(a, then, sel, err));
    rc = copy_region(a, then, sel, err);
done:
    brc_array_free(then);
    brc_session_free(s);
    return rc;
}

int brc_array_restore(brc_array *a, const brc_sel *sel, const char *rev, brc_error *err)
{
    BRC_TRY(brc_array_begin(a, err));
    return brc_array_end(a, restore_region(a, sel, rev, err), err);
}
