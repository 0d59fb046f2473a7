/* Changing what an array is: its shape, its codecs, its past. */
#include <stdlib.h>
#include <string.h>

#include "array_replace.h"
#include "array_shrink.h"
#include "array_turn.h"
#include "bulk_write.h"
#include "fold.h"
#include "region_write.h"

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

/* What a new shape keeps, and how many chunks that is along each axis. */
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
} resize_call;

/* 1: the array has another shape. */
static int resize_look(resize_call *r, brc_error *err)
{
    if (brc_meta_must_encode(&r->a->meta, err) < 0) {
        brc_context(err, "%s cannot be resized here", r->a->path);
        return BRC_EUNSUPPORTED;
    }
    return plan_resize(r->a, r->shape, r->keep, r->count, &r->shrinks, err);
}

/* Its uncommitted chunks become part of its map. */
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
    BRC_TRY(brc_array_clean_edges(r->a, r->keep, r->shape, NULL, err));
    return set_shape(r->a, r->shape, err);
}

static int resize_plan(void *ctx, brc_error *err)
{
    resize_call *r = ctx;
    int few, differs = resize_look(r, err);
    if (differs <= 0)
        return differs;
    if (!r->shrinks)
        return brc_array_has_few_beyond(r->a, r->shape) ? 1 : BRC_WRITE_MUCH;
    BRC_TRY(brc_array_has_few_chunks(r->a, &few, err));
    if (!few)
        return BRC_TURN_OTHER;
    const uint64_t edges = brc_array_edge_chunks(r->a, r->keep, r->shape);
    return edges <= 1 || brc_chunks_memory(r->a, edges) <= BRC_SMALL_BYTES ? 1 : BRC_TURN_OTHER;
}

static int resize_edges(void *ctx, const brc_write_turn *turn, brc_error *err)
{
    resize_call *r = ctx;
    return brc_array_clean_edges(r->a, r->keep, r->shape, turn, err);
}

static int resize_behind(void *ctx, brc_error *err)
{
    resize_call *r = ctx;
    return set_shape(r->a, r->shape, err);
}

/* In many transactions: of the array as it was, to an array beside it that has the map already. */
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
    BRC_TRY(brc_array_clean_edges(to, r->keep, r->shape, NULL, err));
    return set_shape(to, r->shape, err);
}

int brc_array_resize(brc_array *a, const uint64_t *shape, brc_error *err)
{
    resize_call r = {.a = a, .shape = shape};
    brc_array_turn t = {.a = a, .ctx = &r, .plan = resize_plan, .write = resize_edges,
                        .before = resize_before, .behind = resize_behind,
                        .within = resize_within};
    int rc = brc_array_take_turn(&t, err);
    if (rc != BRC_TURN_OTHER)
        return rc;
    brc_replacing cut = {.a = a, .ctx = &r, .begin = cut_begin, .fill = cut_fill};
    return brc_array_replace(&cut, err);
}

/* ---- growing by what is written there -------------------------------- */

typedef struct append_call {
    int axis;
    uint64_t count;
    brc_buffer buffer;
    brc_sel sel;
    brc_region_write rw; /* all that is written                           */
    uint64_t keep[BRC_MAX_NDIM], shape[BRC_MAX_NDIM]; /* before, after  */
} append_call;

/* Elements are written as if the array had its new shape already. What chunks of a smaller shape
 * may have kept past the end goes with that. */
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
    const brc_io io = {sizeof(io), a, &c->sel, &c->buffer, NULL};
    memset(&c->rw, 0, sizeof(c->rw));
    BRC_TRY(brc_region_write_of(&c->rw, &io, c->shape, err));
    c->rw.keep = differs ? c->keep : NULL;
    return BRC_OK;
}

static int append_write(void *ctx, const brc_write_turn *turn, brc_error *err)
{
    append_call *c = ctx;
    return brc_regions_write(&c->rw, 1, turn, err);
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
    int rc = append_write(c, NULL, err);
    brc_task_end(repo, &task, rc);
    return rc == BRC_OK ? append_behind(c, err) : rc;
}

typedef struct append_turn {
    append_call call;
    brc_array_turn turn;
} append_turn;

static int append_plan(void *ctx, brc_error *err)
{
    append_call *c = ctx;
    append_turn *t = ctx; /* it begins with the call */
    BRC_TRY(append_look(c, err));
    brc_array *a = c->rw.a;
    t->turn.bytes = brc_region_bytes(a, &c->rw.r);
    if (!brc_array_has_few_beyond(a, c->shape))
        return BRC_WRITE_MUCH;
    return c->rw.r.nchunks <= 1 || brc_chunks_memory(a, c->rw.r.nchunks) <= BRC_SMALL_BYTES
               ? 1 : BRC_WRITE_MUCH;
}

int brc_array_append(brc_array *a, int axis, uint64_t count, const void *data, size_t len,
                     brc_error *err)
{
    append_turn t = {
        .call = {.axis = axis, .count = count, .rw = {.a = a}},
        .turn = {.a = a, .ctx = &t, .plan = append_plan, .write = append_write,
                 .before = append_before, .behind = append_behind, .within = append_within,
                 .task = "write"},
    };
    t.call.buffer = (brc_buffer){.size = sizeof(brc_buffer),
                                 .data = (void *)(uintptr_t)data, .len = len};
    return brc_array_take_turn(&t.turn, err);
}

/* ---- as it was -------------------------------- */

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

static int restore_once(brc_array *a, brc_array *then, const brc_sel *sel, int is_last,
                        brc_error *err)
{
    BRC_TRY(brc_bulk_start(a->session, err));
    if (!is_last)
        brc_bulk_drops(a->session);
    int rc = brc_array_begin(a, err);
    if (rc == BRC_OK)
        rc = brc_array_end(a, restore_region(a, then, sel, err), err);
    const int ended = brc_array_bulk_end(a, rc, err);
    return rc == BRC_OK && !is_last && (ended == BRC_ECONFLICT || ended == BRC_ESTALE)
               ? BRC_WRITE_ANEW : ended;
}

/* A bulk write, or a part of the caller's change. What others have changed meanwhile in the same
 * chunks is met again; at last it is a conflict. */
int brc_array_restore(brc_array *a, const brc_sel *sel, const char *rev, brc_error *err)
{
    enum { TRIES = 4 };
    brc_session *s = NULL;
    brc_array *then = NULL;
    int rc;
    BRC_TRY(brc_session_can_change(a->session, err));
    BRC_GO(brc_session_open(&s, a->session->repo, rev != NULL ? rev : a->session->branch,
                            BRC_SESSION_AT, err));
    BRC_GO(brc_array_open(&then, s, a->path, err));
    rc = BRC_WRITE_ANEW;
    for (int tries = 1; rc == BRC_WRITE_ANEW; tries++)
        rc = restore_once(a, then, sel, tries == TRIES, err);
done:
    brc_array_free(then);
    brc_session_free(s);
    return rc;
}
