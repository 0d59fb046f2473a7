/*
 * Chunks that ids do not settle. As many as fit into memory are read at once and decoded on the
 * pool. Then they go through the write flow, whose workers merge them (gather), encode the new
 * chunks, and skip chunks that turn out to be a side's own.
 */
#include <stdlib.h>
#include <string.h>

#include "../base/alloc.h"
#include "../zarr/array/chunk_cursor.h"
#include "../zarr/array/region.h"
#include "merge_decode.h"

/* The part of the memory budget for decoded chunks that wait to be merged. A chunk that is larger
 * is handled alone. */
#define DECODED_PART 4

typedef struct merge_work {
    brc_merge_plan *p;
    brc_merge_task *tasks[BRC_MERGE_BATCH]; /* the tasks that need decoding, in order */
    size_t n, from, to;                     /* number of tasks; the tasks of this round */
    size_t at;                              /* the next task to be listed ...    */
    int side;                               /* ... and which of its objects      */
} merge_work;

static int is_variable(const brc_merge_plan *p)
{
    return brc_meta_is_variable(brc_plan_meta(p, BRC_RESULT));
}

static void name_task(const brc_merge_plan *p, const brc_merge_task *t, brc_error *err)
{
    brc_array_name_chunk(&p->array[t->by != 0 ? t->by : BRC_SIDE_OURS], t->index, err);
}

/* ---- reading -------------------------------- */

static int decode_list(void *ctx, brc_read_item *items, size_t cap, size_t *n, brc_error *err)
{
    merge_work *w = ctx;
    (void)err;
    for (; *n < cap && w->at < w->to; w->side++) {
        const brc_merge_task *t = w->tasks[w->at];
        if (w->side == BRC_SIDES) {
            w->side = -1;
            w->at++;
            continue;
        }
        if (!t->object[w->side].found)
            continue;
        items[*n].object = t->object[w->side];
        items[*n].number = w->at;
        items[(*n)++].part = (uint64_t)w->side;
    }
    return BRC_OK;
}

static int decode_open(void *ctx, brc_read_item *item, brc_error *err)
{
    const merge_work *w = ctx;
    brc_merge_task *t = w->tasks[item->number];
    const int side = (int)item->part;
    void *p;
    BRC_TRY(brc_chunk_item(item, &w->p->array[side], t->index, err));
    free(t->data[side]);
    t->data[side] = NULL;
    BRC_TRY(brc_new_big(&p, item->len > 0 ? item->len : 1, err));
    t->data[side] = p;
    t->len[side] = item->len;
    if (!is_variable(w->p))
        item->direct = p;
    return BRC_OK;
}

/* Decodes elements of variable length; their lengths are checked before they are copied. */
static int decode_place(void *ctx, brc_read_item *item, const uint8_t *data, brc_scratch *scratch,
                        brc_error *err)
{
    const merge_work *w = ctx;
    (void)scratch;
    (void)err;
    if (item->len > 0)
        memcpy(w->tasks[item->number]->data[item->part], data, item->len);
    return BRC_OK;
}

static void decode_name(void *ctx, const brc_read_item *item, brc_error *err)
{
    const merge_work *w = ctx;
    brc_array_name_chunk(&w->p->array[item->part], w->tasks[item->number]->index, err);
}

static int read_round(merge_work *w, brc_error *err)
{
    const brc_read_ops ops = {.ctx = w, .list = decode_list, .open = decode_open,
                              .place = decode_place, .name = decode_name};
    w->at = w->from;
    w->side = 0;
    BRC_TRY(brc_store_rest(w->p->store, 1, err)); /* nobody waits while they are decoded */
    return brc_flow_read(&w->p->call->repo->pipe, w->p->store, &ops, err);
}

/* ---- merging, on the pool -------------------------------- */

/* Makes the table of a side's elements of variable length, to which box->in then points. */
static int side_table(const brc_merge_task *t, int side, uint64_t n, brc_merge_input *in,
                      void **table, brc_error *err)
{
    if (t->data[side] == NULL)
        return BRC_OK;
    BRC_TRY(brc_new_array(table, (size_t)n, sizeof(brc_span), err));
    if (brc_elements_find(*table, n, (brc_span){t->data[side], t->len[side]}, err) < 0)
        return brc_fail(err, BRC_ECORRUPT, "its elements are damaged; run 'breccia fsck'");
    in->data = *table;
    return BRC_OK;
}

static void describe_box(const brc_merge_plan *p, brc_merge_task *t)
{
    brc_box_merge *m = &t->box;
    const brc_buf found = m->found;
    *m = (brc_box_merge){.ndim = brc_plan_meta(p, BRC_RESULT)->ndim,
                         .shape = t->chunk,
                         .corner = t->corner,
                         .count = t->extent[BRC_RESULT],
                         .item = brc_array_unit(&p->array[BRC_RESULT]),
                         .is_spans = is_variable(p),
                         .unknown = t->unknown,
                         .mask = {t->mask.data, t->mask.len},
                         .favour = p->call->favour,
                         .found = found};
    for (int s = 0; s < BRC_SIDES; s++) {
        m->in[s].data = t->data[s];
        m->in[s].fill = p->fill[s];
        memcpy(m->in[s].count, t->extent[s], sizeof(t->extent[s]));
    }
}

/* Marks the whole chunk as in conflict. */
static void whole_chunk(brc_merge_task *t, int ndim, const uint64_t *extent)
{
    brc_box_merge *m = &t->box;
    m->conflicts = brc_shape_count(ndim, extent);
    m->found.len = 0;
    for (int i = 0; i < ndim; i++) {
        m->first[i] = t->corner[i];
        m->last[i] = t->corner[i] + (extent[i] > 0 ? extent[i] - 1 : 0);
    }
}

/* Settles a chunk whose fill value the other side changed. Side `by` has changed the chunk, unless
 * it differs only in parts that are not compared. */
static int settle_new_fill(const brc_merge_plan *p, brc_merge_task *t, brc_error *err)
{
    brc_box_merge *m = &t->box;
    const int gone = brc_oid_is_zero(&t->id[t->by]) != brc_oid_is_zero(&t->id[BRC_SIDE_BASE]);
    BRC_TRY(brc_box_merge_changed(m, t->by, 0, err));
    m->take = BRC_SIDE_OURS + BRC_SIDE_THEIRS - t->by;
    if (m->conflicts > 0 || gone) {
        t->conflict = BRC_CHUNK_FILL;
        m->take = p->call->favour != 0 ? p->call->favour : BRC_SIDE_OURS;
    }
    return BRC_OK;
}

static int merge_box_of(const brc_merge_plan *p, brc_merge_task *t, brc_error *err)
{
    brc_box_merge *m = &t->box;
    if (t->how == BRC_TASK_LOST) {
        BRC_TRY(brc_box_merge_changed(m, t->by, 1, err));
        t->conflict = m->conflicts > 0 ? BRC_CHUNK_LOST : 0;
        return BRC_OK;
    }
    if (t->how == BRC_TASK_FILL)
        BRC_TRY(settle_new_fill(p, t, err));
    BRC_TRY(brc_box_merge_run(m, err));
    if (t->how == BRC_TASK_MERGE && m->conflicts > 0)
        t->conflict = BRC_CHUNK_ELEMENTS;
    if (t->conflict == BRC_CHUNK_FILL)
        whole_chunk(t, m->ndim, m->count);
    return BRC_OK;
}

/* Says whether the result is a side's own chunk, so that nothing is stored. An absent chunk does
 * not count if the result's fill value differs. */
static int is_side(const brc_merge_plan *p, const brc_merge_task *t, int side)
{
    const brc_span *a = &p->spans[side], *b = &p->spans[BRC_RESULT];
    if (t->box.differs[side])
        return 0;
    return !brc_oid_is_zero(&t->id[side]) ||
           (a->len == b->len && (a->len == 0 || memcmp(a->data, b->data, a->len) == 0));
}

static int settles_without_store(const brc_merge_plan *p, brc_merge_task *t)
{
    if (t->how == BRC_TASK_LOST)
        return 1;
    if (is_side(p, t, BRC_SIDE_OURS))
        return 1;
    if (!is_side(p, t, BRC_SIDE_THEIRS))
        return 0;
    t->emits = 1;
    t->result = t->id[BRC_SIDE_THEIRS];
    return 1;
}

/* Merges elements of fixed size. The result's bytes go to `own`. */
static int merge_fixed(const brc_merge_plan *p, brc_merge_task *t, brc_buf *own, brc_error *err)
{
    const uint64_t n = brc_shape_count(t->box.ndim, t->chunk);
    const size_t unit = t->box.item;
    uint64_t bytes;
    if (t->how != BRC_TASK_LOST) {
        if (!brc_mul_u64(n, unit, &bytes) || bytes > BRC_MAX_CHUNK_BYTES)
            return brc_fail(err, BRC_ELIMIT, "it is too large for memory");
        own->len = 0;
        BRC_TRY(brc_buf_reserve(own, (size_t)bytes, err));
        brc_fill_run(own->data, n, unit, p->spans[BRC_RESULT].data);
        t->box.out = own->data;
        own->len = (size_t)bytes;
    }
    return merge_box_of(p, t, err);
}

static int merge_variable(const brc_merge_plan *p, brc_merge_task *t, brc_buf *own, brc_error *err)
{
    const uint64_t n = brc_shape_count(t->box.ndim, t->chunk);
    void *tables[BRC_SIDES] = {NULL}, *out = NULL;
    int rc = BRC_OK;
    if (n > SIZE_MAX / sizeof(brc_span))
        return brc_fail(err, BRC_ELIMIT, "it is too large for memory");
    for (int s = 0; s < BRC_SIDES; s++)
        BRC_GO(side_table(t, s, n, &t->box.in[s], &tables[s], err));
    BRC_GO(brc_new_array(&out, (size_t)n, sizeof(brc_span), err));
    brc_fill_run(out, n, sizeof(brc_span), (const uint8_t *)&p->spans[BRC_RESULT]);
    t->box.out = out;
    BRC_GO(merge_box_of(p, t, err));
    own->len = 0;
    own->limit = BRC_MAX_CHUNK_BYTES;
    if (t->how != BRC_TASK_LOST)
        rc = brc_elements_pack(own, out, n, err);
    own->limit = 0;
done:
    for (int s = 0; s < BRC_SIDES; s++)
        free(tables[s]);
    free(out);
    return rc;
}

int brc_merge_task_run(const brc_merge_plan *p, brc_merge_task *t, brc_buf *own, brc_error *err)
{
    describe_box(p, t);
    return t->box.is_spans ? merge_variable(p, t, own, err) : merge_fixed(p, t, own, err);
}

/* Returns 1 if nothing needs to be stored. */
static int merge_task(const merge_work *w, brc_merge_task *t, brc_buf *own, brc_error *err)
{
    BRC_TRY(brc_merge_task_run(w->p, t, own, err));
    return settles_without_store(w->p, t);
}

static int merge_gather(void *ctx, brc_write_item *item, brc_scratch *scratch, brc_error *err)
{
    merge_work *w = ctx;
    (void)scratch;
    int rc = merge_task(w, w->tasks[item->number], &item->own, err);
    if (rc < 0)
        return rc;
    item->is_piece = rc;
    item->data = item->own.data;
    item->len = item->own.len;
    return BRC_OK;
}

/* ---- writing -------------------------------- */

static int merge_list(void *ctx, brc_write_item *items, size_t cap, size_t *n, brc_error *err)
{
    merge_work *w = ctx;
    brc_merge_plan *p = w->p;
    size_t bytes = 0;
    for (*n = 0; *n < cap && bytes < BRC_WRITE_BYTES && w->at < w->to; w->at++) {
        const brc_merge_task *t = w->tasks[w->at];
        brc_write_item *item = &items[(*n)++];
        if (t->how != BRC_TASK_LOST)
            BRC_TRY(brc_array_item(&p->array[BRC_RESULT], t->chunk, item, err));
        item->number = w->at;
        for (int s = 0; s < BRC_SIDES; s++)
            item->len = t->len[s] > item->len ? t->len[s] : item->len;
        bytes += item->len;
    }
    return brc_task_step(p->call->repo, 0, err);
}

static int call_chunk(brc_merge_plan *p, const brc_merge_task *t, const brc_oid *id, brc_error *err)
{
    const brc_merge_chunks_ops *ops = p->call->ops;
    p->call->changed++;
    if (ops->chunk == NULL)
        return BRC_OK;
    return ops->chunk(ops->ctx, (brc_span){t->key, t->key_len}, brc_oid_is_zero(id) ? NULL : id,
                      err);
}

static int merge_done(void *ctx, const brc_write_item *item, brc_error *err)
{
    static const brc_oid absent;
    const merge_work *w = ctx;
    const brc_merge_task *t = w->tasks[item->number];
    if (item->is_piece)
        return BRC_OK;
    if (item->is_fill && !t->was_there)
        return BRC_OK;
    return call_chunk(w->p, t, item->is_fill ? &absent : &item->id, err);
}

static void merge_name(void *ctx, const brc_write_item *item, brc_error *err)
{
    const merge_work *w = ctx;
    name_task(w->p, w->tasks[item->number], err);
}

static int write_round(merge_work *w, size_t held, brc_error *err)
{
    const brc_merge_plan *p = w->p;
    const brc_write_ops ops = {.ctx = w, .held = held, .list = merge_list, .gather = merge_gather,
                               .done = merge_done, .name = merge_name};
    w->at = w->from;
    w->p->wrote = 1;
    BRC_TRY(brc_store_begin(p->store, err));
    int rc = brc_store_rest(p->store, 1, err);
    if (rc == BRC_OK)
        rc = brc_flow_write(&p->call->repo->pipe, p->store, &ops, err);
    int ended = brc_store_end(p->store, rc >= 0, rc >= 0 ? err : NULL);
    return rc < 0 ? rc : ended;
}

/* Says whether the chunk would be absent, which the write flow finds out by itself. */
static int is_absent(const brc_merge_plan *p, const brc_merge_task *t, const brc_buf *own)
{
    const brc_span fill = brc_meta_absent_chunk(brc_plan_meta(p, BRC_RESULT));
    const uint64_t n = brc_shape_count(t->box.ndim, t->chunk);
    uint64_t len;
    return fill.data != NULL && brc_mul_u64(n, fill.len, &len) && len == own->len &&
           brc_all_equal(own->data, n, fill.len, fill.data);
}

/* Merges without storing anything. */
static int try_round(merge_work *w, brc_error *err)
{
    brc_buf own = BRC_BUF_INIT;
    int rc = BRC_OK;
    for (size_t i = w->from; i < w->to && rc >= 0; i++) {
        rc = brc_pipe_check(&w->p->call->repo->pipe, err);
        if (rc == BRC_OK)
            rc = merge_task(w, w->tasks[i], &own, err);
        if (rc == 0)
            w->p->call->changed += w->tasks[i]->was_there || !is_absent(w->p, w->tasks[i], &own);
        if (rc < 0)
            name_task(w->p, w->tasks[i], err);
    }
    brc_buf_dispose(&own);
    return rc < 0 ? rc : BRC_OK;
}

/* ---- rounds -------------------------------- */

static int find_objects(merge_work *w, brc_error *err)
{
    brc_object *asked[BRC_MERGE_BATCH * BRC_SIDES] = {NULL};
    size_t n = 0;
    for (size_t i = 0; i < w->n; i++) {
        brc_merge_task *t = w->tasks[i];
        for (int s = 0; s < BRC_SIDES; s++) {
            const int is_asked = !brc_oid_is_zero(&t->id[s]) &&
                                 (t->how != BRC_TASK_LOST || s == t->by || s == BRC_SIDE_BASE);
            if (!is_asked)
                continue;
            t->object[s].id = t->id[s];
            asked[n++] = &t->object[s];
        }
    }
    BRC_TRY(brc_objects_find(w->p->store, asked, n, err));
    for (size_t i = 0; i < n; i++)
        if (!asked[i]->found)
            return brc_object_missing(&asked[i]->id, err);
    return BRC_OK;
}

/* Chooses how many tasks go together, and returns how many bytes they take when decoded, with the
 * result. */
static size_t plan_round(merge_work *w)
{
    const size_t most = w->p->call->repo->pipe.memory / DECODED_PART;
    size_t held = 0;
    w->to = w->from;
    for (; w->to < w->n; w->to++) {
        const brc_merge_task *t = w->tasks[w->to];
        size_t bytes = 0;
        for (int s = 0; s < BRC_SIDES; s++)
            if (t->object[s].found && t->object[s].size <= BRC_MAX_CHUNK_BYTES)
                bytes += (size_t)t->object[s].size * (t->is_made ? 2u : 1u);
        if (w->to > w->from && held + bytes > most)
            break;
        held += bytes;
    }
    return held;
}

void brc_made_chunk_dispose(brc_made_chunk *made)
{
    free(made->data);
    brc_buf_dispose(&made->mask);
    *made = (brc_made_chunk)BRC_MADE_CHUNK_INIT;
}

/* Computes the chunk of a merged base as soon as it is needed. */
static int make_base(const merge_work *w, brc_merge_task *t, brc_error *err)
{
    const brc_merge_chunks_ops *ops = w->p->call->ops;
    brc_made_chunk made = BRC_MADE_CHUNK_INIT;
    BRC_TRY(brc_pipe_check(&w->p->call->repo->pipe, err));
    int rc = ops->make(ops->ctx, (brc_span){t->key, t->key_len}, &made, err);
    if (rc < 0) {
        brc_made_chunk_dispose(&made);
        name_task(w->p, t, err);
        return rc;
    }
    t->unknown = made.unknown;
    brc_buf_dispose(&t->mask);
    t->mask = made.mask;
    free(t->data[BRC_SIDE_BASE]);
    t->data[BRC_SIDE_BASE] = made.data;
    t->len[BRC_SIDE_BASE] = made.len;
    return BRC_OK;
}

static int run_round(merge_work *w, brc_error *err)
{
    brc_merge_plan *p = w->p;
    const size_t held = plan_round(w);
    BRC_TRY(read_round(w, err));
    for (size_t i = w->from; i < w->to; i++)
        if (w->tasks[i]->is_made)
            BRC_TRY(make_base(w, w->tasks[i], err));
    BRC_TRY(p->call->ops->chunk != NULL ? write_round(w, held, err) : try_round(w, err));
    for (size_t i = w->from; i < w->to; i++) {
        brc_merge_task *t = w->tasks[i];
        for (int s = 0; s < BRC_SIDES; s++) {
            free(t->data[s]);
            t->data[s] = NULL;
        }
        p->call->merged_chunks += t->how != BRC_TASK_LOST;
        BRC_TRY(brc_merge_tell(p, (size_t)(t - p->tasks), (size_t)(t - p->tasks) + 1, err));
    }
    w->from = w->to;
    return BRC_OK;
}

int brc_merge_task_read(brc_merge_plan *p, brc_merge_task *t, brc_error *err)
{
    merge_work w = {.p = p, .tasks = {t}, .n = 1, .to = 1};
    BRC_TRY(find_objects(&w, err));
    return read_round(&w, err);
}

int brc_merge_decode(brc_merge_plan *p, brc_error *err)
{
    merge_work w = {.p = p};
    for (size_t i = 0; i < p->n; i++)
        if (p->tasks[i].how != 0)
            w.tasks[w.n++] = &p->tasks[i];
    BRC_TRY(find_objects(&w, err));
    while (w.from < w.n)
        BRC_TRY(run_round(&w, err));
    return BRC_OK;
}

/* ---- telling -------------------------------- */

static const brc_oid *id_or_null(const brc_oid *id)
{
    return brc_oid_is_zero(id) ? NULL : id;
}

static int tell_conflict(brc_merge_plan *p, brc_merge_task *t, brc_error *err)
{
    const brc_merge_chunks_ops *ops = p->call->ops;
    const int ndim = brc_plan_meta(p, BRC_RESULT)->ndim;
    if (t->how == 0) /* as a unit */
        whole_chunk(t, ndim, t->extent[t->conflict == BRC_CHUNK_LOST ? t->by : BRC_RESULT]);
    if (t->conflict == BRC_CHUNK_LOST)
        p->call->lost[t->by] += t->box.conflicts;
    else
        p->call->conflicts++;
    if (ops->conflict == NULL || p->call->favour != 0)
        return BRC_OK;
    const brc_chunk_conflict c = {
        .kind = t->conflict,
        .key = {t->key, t->key_len},
        .base = id_or_null(&t->id[BRC_SIDE_BASE]),
        .ours = id_or_null(&t->id[BRC_SIDE_OURS]),
        .theirs = id_or_null(&t->id[BRC_SIDE_THEIRS]),
        .side = t->by,
        .ndim = ndim,
        .elements = t->box.conflicts,
        .first = t->box.first,
        .last = t->box.last,
        .mask = {t->box.found.data, t->box.found.len},
    };
    return ops->conflict(ops->ctx, &c, err);
}

int brc_merge_tell(brc_merge_plan *p, size_t from, size_t to, brc_error *err)
{
    for (size_t i = from; i < to; i++) {
        brc_merge_task *t = &p->tasks[i];
        if (t->emits)
            BRC_TRY(call_chunk(p, t, &t->result, err));
        t->emits = 0;
        if (t->conflict != 0)
            BRC_TRY(tell_conflict(p, t, err));
        t->conflict = 0;
    }
    return BRC_OK;
}
