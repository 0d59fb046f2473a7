#include "array_write.h"

#include <search.h>
#include <stdlib.h>
#include <string.h>

#include "../base/alloc.h"
#include "../nd/buffer.h"
#include "bulk_write.h"
#include "element_span.h"
#include "old_chunks.h"

/* ==== array turn ================================ */

/* Times that a change which is in others' way is made anew. */
#define TURN_TRIES 3

static int is_as_planned(const brc_array_turn *t)
{
    const brc_array *a = t->a;
    return brc_oid_cmp(&a->meta_doc, &t->doc) == 0 && brc_oid_cmp(&a->storage, &t->storage) == 0 &&
           (!a->has_keys || a->version == t->version);
}

static void stop_reading(brc_array_turn *t)
{
    if (t->reading)
        brc_array_end_read(t->a);
    t->reading = 0;
}

static int turn_begin(void *ctx, brc_error *err)
{
    brc_array_turn *t = ctx;
    brc_store *store = brc_array_store(t->a);
    stop_reading(t);
    BRC_TRY(brc_store_begin(store, err));
    int rc = brc_array_follow(t->a, err);
    if (rc == BRC_OK && !is_as_planned(t))
        rc = BRC_WRITE_ANEW;
    if (rc != BRC_OK)
        (void)!brc_store_end(store, 0, NULL);
    return rc;
}

static void turn_undo(void *ctx)
{
    const brc_array_turn *t = ctx;
    (void)!brc_store_end(brc_array_store(t->a), 0, NULL);
}

/* The array's change is in the turn's transaction, which ends with it. */
static int turn_enter(void *ctx, brc_error *err)
{
    brc_array_turn *t = ctx;
    int rc = brc_array_begin(t->a, err);
    if (rc < 0) {
        turn_undo(t);
        return rc;
    }
    t->begun = 1;
    BRC_TRY(brc_store_end(brc_array_store(t->a), 1, err));
    return t->before != NULL ? t->before(t->ctx, err) : BRC_OK;
}

/* A backend that has no number yet is given one within a transaction. */
static int is_prepared(brc_array *a, brc_error *err)
{
    int64_t backend;
    BRC_TRY(brc_array_find_backend(a, &backend, err));
    return backend >= 0;
}

static int plan_and_write(brc_array_turn *t, brc_task *task, brc_error *err)
{
    const brc_write_turn turn = {t, turn_begin, turn_undo, turn_enter};
    brc_array *a = t->a;
    BRC_TRY(brc_array_begin_read(a, err));
    t->reading = 1;
    int rc = t->plan(t->ctx, err);
    if (rc != 1)
        return rc;
    rc = is_prepared(a, err);
    if (rc <= 0)
        return rc < 0 ? rc : BRC_WRITE_MUCH;
    t->doc = a->meta_doc;
    t->storage = a->storage;
    t->version = a->version;
    if (t->task != NULL)
        *task = brc_task_begin(a->session->repo, t->task, t->bytes);
    t->is_task = t->task != NULL;
    rc = t->write(t->ctx, &turn, err);
    if (rc != BRC_OK || t->begun)
        return rc;
    rc = turn_begin(t, err); /* there was no chunk to write */
    return rc == BRC_OK ? turn_enter(t, err) : rc;
}

/* Whoever listens to progress may take long: not with the lock in hand. */
static int turn_small(brc_array_turn *t, brc_error *err)
{
    brc_task task = {0};
    t->reading = t->begun = t->is_task = 0;
    int rc = plan_and_write(t, &task, err);
    stop_reading(t);
    if (t->begun) {
        if (rc == BRC_OK)
            rc = t->behind(t->ctx, err);
        rc = brc_array_end(t->a, rc, err);
    }
    if (t->is_task)
        brc_task_end(t->a->session->repo, &task, rc > 0 ? BRC_ESTALE : rc);
    return rc;
}

static int turn_within(brc_array_turn *t, brc_error *err)
{
    BRC_TRY(brc_array_begin(t->a, err));
    return brc_array_end(t->a, t->within(t->ctx, err), err);
}

/* is_last: where it meets others' changes, that is an error, and its draft stays. */
static int turn_bulk(brc_array_turn *t, int is_last, brc_error *err)
{
    BRC_TRY(brc_bulk_start(t->a->session, err));
    if (!is_last)
        brc_bulk_drops(t->a->session);
    int rc = turn_within(t, err), ended = brc_array_bulk_end(t->a, rc, err);
    return rc == BRC_OK && !is_last && (ended == BRC_ECONFLICT || ended == BRC_ESTALE)
               ? BRC_WRITE_ANEW
               : ended;
}

int brc_array_take_turn(brc_array_turn *t, brc_error *err)
{
    brc_store *store = brc_array_store(t->a);
    BRC_TRY(brc_session_can_change(t->a->session, err));
    if (brc_store_in_write(store) || brc_store_in_bulk(store))
        return turn_within(t, err);
    BRC_TRY(brc_store_writable(store, err));
    for (int tries = 1;; tries++) {
        int rc = turn_small(t, err);
        if (rc == BRC_WRITE_MUCH)
            rc = turn_bulk(t, tries == TURN_TRIES && t->bytes > BRC_TURN_BYTES, err);
        if (rc != BRC_WRITE_ANEW)
            return rc;
        if (tries == TURN_TRIES)
            return turn_within(t, err);
    }
}

/* ==== region write ================================ */

typedef struct region_writer {
    brc_region_write *writes;
    size_t n, at;
    void *on_the_way; /* of tsearch(): items that are not done, by chunk; of several regions */
    const brc_write_turn *turn; /* NULL: within changes of the arrays                        */
} region_writer;

/* ---- what is to be written, described -------------------------------- */

static int describe_fixed(brc_region_write *rw, const brc_io *io, const brc_memory *m,
                          brc_error *err)
{
    const brc_array *a = rw->a;
    int rc = brc_memory_fits(io->buffer, rw->r.axes, rw->r.sel.count, a->meta.type->item_size,
                             BRC_MEMORY_IN, err);
    if (rc < 0)
        brc_context(err, "%s", a->path);
    rw->src = m->origin;
    return rc;
}

/* Packed elements; with zero strides (a fill) there is one. */
static int describe_variable(brc_region_write *rw, const brc_memory *m, brc_error *err)
{
    const brc_array *a = rw->a;
    for (int i = 0; m->strides != NULL && i < rw->r.axes; i++)
        if (m->strides[i] != 0)
            return brc_fail(err, BRC_EINVAL, "%s: elements of variable length have no strides",
                            a->path);
    rw->packed = (brc_span){m->origin, m->len};
    if (rw->r.nchunks > 0 || m->strides != NULL)
        return BRC_OK;
    int rc = brc_elements_find(NULL, 0, rw->packed, err);
    if (rc < 0)
        brc_context(err, "%s", a->path);
    return rc;
}

int brc_region_write_of(brc_region_write *rw, const brc_io *io, const uint64_t *shape,
                        brc_error *err)
{
    brc_array *a = rw->a = io->array;
    brc_memory m;
    BRC_TRY(brc_array_can_write(a, err));
    BRC_TRY(brc_region_of_io(&rw->r, &m, io, shape, BRC_MEMORY_IN, err));
    return brc_meta_is_variable(&a->meta) ? describe_variable(rw, &m, err)
                                          : describe_fixed(rw, io, &m, err);
}

uint64_t brc_chunks_memory(const brc_array *a, uint64_t chunks)
{
    const uint64_t elements = brc_shape_count(a->meta.ndim, a->meta.grid.chunk);
    return brc_mul_capped(brc_mul_capped(elements, 2 * brc_array_unit(a)), chunks);
}

/* ---- chunks that several regions meet -------------------------------- */

/* Two handles of one array have one row in the draft. */
static int chunk_order(const void *x, const void *y)
{
    const brc_write_item *a = x, *b = y;
    const brc_array *of_a = ((const brc_region_write *)a->owner)->a;
    const brc_array *of_b = ((const brc_region_write *)b->owner)->a;
    if (of_a->row != of_b->row)
        return of_a->row < of_b->row ? -1 : 1;
    return brc_index_order(of_a->meta.ndim, a->index, b->index);
}

/* 1: none is on its way that is of the same chunk; this one is now. */
static int set_out(region_writer *w, brc_write_item *item, brc_error *err)
{
    if (w->n == 1)
        return 1;
    brc_write_item **slot = tsearch(item, &w->on_the_way, chunk_order);
    if (slot == NULL)
        return brc_nomem(err);
    return *slot == item;
}

static void arrive(region_writer *w, const brc_write_item *item)
{
    if (w->n > 1)
        tdelete(item, &w->on_the_way, chunk_order);
}

static void keep_written(void *item)
{
    (void)item; /* it belongs to the flow */
}

/* ---- listed, chunk by chunk -------------------------------- */

/* Before the region's first chunk. */
static int find_elements(brc_region_write *rw, brc_error *err)
{
    uint64_t n = 1;
    if (!brc_meta_is_variable(&rw->a->meta) || rw->table != NULL)
        return BRC_OK;
    for (int i = 0; i < rw->r.axes; i++)
        if (rw->r.strides[i] != 0)
            n = brc_sel_count(&rw->r.sel);
    if (n > SIZE_MAX / sizeof(brc_span))
        return brc_fail(err, BRC_ELIMIT, "%s: the selection is too large for memory", rw->a->path);
    BRC_TRY(brc_new_array(&rw->table, (size_t)n, sizeof(brc_span), err));
    int rc = brc_elements_find(rw->table, n, rw->packed, err);
    if (rc < 0)
        brc_context(err, "%s", rw->a->path);
    return rc;
}

/* 1; 0 if it must wait for an earlier region's change of the chunk. */
static int list_covered(region_writer *w, brc_region_write *rw, brc_write_item *item,
                        brc_old_chunks *old, brc_error *err)
{
    brc_region_part part;
    BRC_TRY(find_elements(rw, err));
    item->owner = rw;
    item->number = rw->next;
    brc_region_chunk(&rw->r, rw->a->meta.ndim, item->number, item->index);
    int rc = set_out(w, item, err);
    if (rc <= 0)
        return rc;
    rw->next++;
    brc_region_part_of(&part, rw->a, &rw->r, item->number);
    BRC_TRY(brc_array_item(rw->a, part.chunk, item, err));
    item->len = (size_t)part.elements * brc_array_unit(rw->a);
    if (!part.overlap.whole)
        BRC_TRY(brc_old_add(old, rw->a, item, part.index, err));
    return 1;
}

/* A job's worth of chunks. */
static int writer_list(void *ctx, brc_write_item *items, size_t cap, size_t *n, brc_error *err)
{
    region_writer *w = ctx;
    brc_old_chunks old;
    size_t bytes = 0;
    int rc = 1;
    old.n = 0;
    BRC_TRY(brc_task_step(w->writes[0].a->session->repo, 0, err));
    for (*n = 0; *n < cap && bytes < BRC_WRITE_BYTES && w->at < w->n;) {
        brc_region_write *rw = &w->writes[w->at];
        if (rw->next == rw->r.nchunks) {
            BRC_TRY(brc_old_find(&old, rw->a, err));
            w->at++;
            continue;
        }
        rc = list_covered(w, rw, &items[*n], &old, err);
        if (rc <= 0)
            break;
        bytes += items[(*n)++].len;
    }
    BRC_TRY(rc);
    if (w->at < w->n)
        BRC_TRY(brc_old_find(&old, w->writes[w->at].a, err));
    return rc == 0 && *n == 0 ? BRC_WINDOW_LATER : BRC_OK;
}

/* ---- on the pool -------------------------------- */

static void put_selected(const brc_region_write *rw, const brc_region_part *part, void *chunk)
{
    brc_region_put(rw->a, &rw->r, part, rw->table != NULL ? rw->table : rw->src, chunk);
}

void brc_fill_past(const brc_array *a, const uint64_t *index, const uint64_t *keep, void *elements,
                   size_t unit, const void *fill)
{
    const int ndim = a->meta.ndim;
    uint64_t corner[BRC_MAX_NDIM], chunk[BRC_MAX_NDIM];
    int64_t strides[BRC_MAX_NDIM] = {0};
    brc_grid_chunk(&a->meta.grid, index, corner, chunk);
    brc_strides_packed(ndim, chunk, unit, strides);
    for (int i = 0; i < ndim; i++) {
        const uint64_t all = chunk[i], inside = keep[i] > corner[i] ? keep[i] - corner[i] : 0;
        if (inside >= all)
            continue;
        chunk[i] -= inside;
        brc_fill_box(ndim, chunk, unit, (uint8_t *)elements + inside * (uint64_t)strides[i],
                     strides, fill);
        chunk[i] = all;
    }
}

static int gather_fixed(const brc_region_write *rw, const brc_region_part *part,
                        brc_write_item *item, brc_scratch *scratch, brc_error *err)
{
    const brc_meta *m = &rw->a->meta;
    const size_t unit = m->type->item_size;
    item->len = (size_t)part->elements * unit;
    int normalizes = brc_dtype_normalizes(m->type);
    if (part->full && rw->r.in_one_piece && !normalizes) {
        item->data = rw->src + part->in_memory;
        return BRC_OK;
    }
    BRC_TRY(brc_buf_reserve(&item->own, item->len, err));
    if (item->old.found) {
        BRC_TRY(brc_write_old(item, scratch, &item->own, err));
        if (item->own.len != item->len)
            return brc_fail(err, BRC_ECORRUPT, "its bytes have the wrong length");
        if (rw->keep != NULL)
            brc_fill_past(rw->a, item->index, rw->keep, item->own.data, unit, m->fill.data);
    } else if (!part->full) {
        brc_fill_run(item->own.data, part->elements, unit, m->fill.data);
    }
    item->own.len = item->len;
    put_selected(rw, part, item->own.data);
    if (normalizes) /* bits that carry no value must not make equal chunks differ */
        brc_dtype_normalize(m->type, item->own.data, (size_t)part->elements);
    item->data = item->own.data;
    return BRC_OK;
}

static int gather_variable(const brc_region_write *rw, const brc_region_part *part,
                           brc_write_item *item, brc_scratch *scratch, brc_error *err)
{
    void *table;
    const brc_span fill = {rw->a->meta.fill.data, rw->a->meta.fill.len};
    BRC_TRY(brc_new_array(&table, (size_t)part->elements, sizeof(brc_span), err));
    if (rw->keep != NULL)
        brc_fill_past(rw->a, item->index, rw->keep, table, sizeof(brc_span), &fill);
    put_selected(rw, part, table);
    int rc = brc_gather_elements(item, table, &rw->a->meta, scratch, err);
    free(table);
    return rc;
}

static int writer_gather(void *ctx, brc_write_item *item, brc_scratch *scratch, brc_error *err)
{
    (void)ctx;
    const brc_region_write *rw = item->owner;
    brc_region_part part;
    brc_region_part_of(&part, rw->a, &rw->r, item->number);
    return brc_meta_is_variable(&rw->a->meta) ? gather_variable(rw, &part, item, scratch, err)
                                              : gather_fixed(rw, &part, item, scratch, err);
}

/* ---- behind the flow -------------------------------- */

int brc_array_put_chunk(brc_array *a, const uint64_t *index, const brc_oid *id, brc_error *err)
{
    uint8_t key[BRC_CHUNK_KEY_MAX];
    size_t len = brc_chunk_key_encode(key, a->meta.ndim, index);
    brc_store *store = brc_array_store(a);
    /* Without a committed map and rows below there is nothing for a row to hide. */
    if (id == NULL && brc_oid_is_zero(&a->entry.map) && a->stack.n == 1)
        return a->row_has_chunks ? brc_draft_chunk_clear(store, a->row, key, len, err) : BRC_OK;
    BRC_TRY(brc_draft_chunk_put(store, a->row, key, len, id, err));
    a->row_has_chunks = 1;
    return BRC_OK;
}

/* Other handles of the array, in later regions, look for its chunks too. */
static int put_written(region_writer *w, const brc_region_write *rw, const uint64_t *index,
                       const brc_oid *id, brc_error *err)
{
    const int before = rw->a->row_has_chunks;
    BRC_TRY(brc_array_put_chunk(rw->a, index, id, err));
    for (size_t i = w->at; i < w->n && rw->a->row_has_chunks != before; i++)
        if (w->writes[i].a->row == rw->a->row)
            w->writes[i].a->row_has_chunks = 1;
    return BRC_OK;
}

static int writer_done(void *ctx, const brc_write_item *item, brc_error *err)
{
    region_writer *w = ctx;
    brc_region_write *rw = item->owner;
    arrive(w, item);
    BRC_TRY(put_written(w, rw, item->index, item->is_fill ? NULL : &item->id, err));
    if (++rw->done == rw->r.nchunks) {
        free(rw->table);
        rw->table = NULL;
    }
    /* Whoever listens may take long: not with the lock in hand. */
    return w->turn != NULL ? BRC_OK : brc_region_step(rw->a, &rw->r, &rw->told, rw->done, err);
}

static int writer_now(void *ctx, const brc_write_item *item, brc_oid *id, brc_error *err)
{
    (void)ctx;
    const brc_region_write *rw = item->owner;
    return brc_array_chunk_ids(rw->a, 1, item->index, id, err);
}

static void writer_name(void *ctx, const brc_write_item *item, brc_error *err)
{
    (void)ctx;
    const brc_region_write *rw = item->owner;
    brc_array_name_chunk(rw->a, item->index, err);
}

int brc_regions_write(brc_region_write *writes, size_t n, const brc_write_turn *turn,
                      brc_error *err)
{
    region_writer w = {.writes = writes, .n = n, .turn = turn};
    brc_write_ops ops = {
        .ctx = &w,
        .list = writer_list,
        .gather = writer_gather,
        .done = writer_done,
        .name = writer_name,
        .turn = turn,
        .now = writer_now,
    };
    breccia *repo = writes[0].a->session->repo;
    uint64_t chunks = 0;
    for (size_t i = 0; i < n; i++)
        chunks |= writes[i].r.nchunks;
    if (chunks == 0)
        return BRC_OK;
    int rc = brc_flow_write(&repo->pipe, repo->store, &ops, err);
    tdestroy(w.on_the_way, keep_written);
    for (size_t i = 0; i < n; i++) {
        free(writes[i].table);
        writes[i].table = NULL;
    }
    return rc;
}

/* ==== array write ================================ */

/*
 * Writing arrays: the public functions.
 *
 * A write whose chunks fit into one batch is prepared without a lock and stored in one transaction
 * (flow/write.c). A larger one is a bulk write. Within brc_begin() and brc_end(), and
 * within a bulk write of the caller's, it is a part of that.
 */

/* ---- within one transaction -------------------------------- */

typedef struct write_call {
    const brc_io *io;
    brc_region_write *writes;
    size_t n;
    size_t begun;   /* arrays whose change has begun     */
    size_t reading; /* ... or that are being read        */
    brc_task task;  /* of a small write                  */
    int is_task;
} write_call;

static brc_array *array_at(const write_call *c, size_t i)
{
    return brc_io_at(c->io, i)->array;
}

static int begin_arrays(write_call *c, brc_error *err)
{
    int rc = BRC_OK;
    while (c->begun < c->n && rc == BRC_OK) {
        rc = brc_array_begin(array_at(c, c->begun), err);
        c->begun += rc == BRC_OK;
    }
    return rc;
}

static int end_arrays(write_call *c, int rc, brc_error *err)
{
    while (c->begun > 0)
        rc = brc_array_end(array_at(c, --c->begun), rc, err);
    return rc;
}

static void end_writes(write_call *c)
{
    for (size_t i = 0; i < c->n; i++)
        brc_region_end(&c->writes[i].r);
}

static int describe_all(write_call *c, brc_error *err)
{
    end_writes(c);
    for (size_t i = 0; i < c->n; i++) {
        memset(&c->writes[i], 0, sizeof(c->writes[i]));
        BRC_TRY(brc_region_write_of(&c->writes[i], brc_io_at(c->io, i), NULL, err));
    }
    return BRC_OK;
}

static uint64_t bytes_of_writes(const write_call *c)
{
    uint64_t bytes = 0;
    for (size_t i = 0; i < c->n; i++)
        if (!brc_add_u64(bytes, brc_region_bytes(c->writes[i].a, &c->writes[i].r), &bytes))
            return UINT64_MAX;
    return bytes;
}

static int write_told(write_call *c, brc_error *err)
{
    breccia *repo = array_at(c, 0)->session->repo;
    brc_task task = brc_task_begin(repo, "write", bytes_of_writes(c));
    int rc = brc_regions_write(c->writes, c->n, NULL, err);
    brc_task_end(repo, &task, rc);
    return rc;
}

static int is_small(const write_call *c)
{
    uint64_t chunks = 0, sum = 0;
    for (size_t i = 0; i < c->n; i++) {
        const brc_region_write *rw = &c->writes[i];
        const uint64_t bytes = brc_chunks_memory(rw->a, rw->r.nchunks);
        if (!brc_add_u64(sum, bytes, &sum) || !brc_add_u64(chunks, rw->r.nchunks, &chunks))
            return 0;
    }
    return chunks == 1 || sum <= BRC_SMALL_BYTES;
}

/* All arrays are begun before any is described: beginning one may bring another up to date. */
static int write_locked(write_call *c, brc_error *err)
{
    int rc = begin_arrays(c, err);
    if (rc == BRC_OK)
        rc = describe_all(c, err);
    if (rc == BRC_OK && !is_small(c)) /* in a bulk write others get in, while a batch is made */
        rc = brc_store_rest(brc_array_store(array_at(c, 0)), 1, err);
    if (rc == BRC_OK)
        rc = write_told(c, err);
    return end_arrays(c, rc, err);
}

/* ---- a small write: nothing is locked until it is stored -------------------------------- */

/* A backend that has no number yet is given one within a transaction. */
static int has_backend(brc_array *a, brc_error *err)
{
    int64_t backend;
    BRC_TRY(brc_array_find_backend(a, &backend, err));
    return backend >= 0;
}

static int begin_reading(write_call *c, brc_error *err)
{
    int rc = BRC_OK;
    while (c->reading < c->n && rc == BRC_OK) {
        rc = brc_array_begin_read(array_at(c, c->reading), err);
        c->reading += rc == BRC_OK;
    }
    return rc;
}

static void end_reading(write_call *c)
{
    while (c->reading > 0)
        brc_array_end_read(array_at(c, --c->reading));
}

/* Whether the array is the one that was described. What loose keys say of its chunks may have
 * changed with the draft. */
static int is_as_described(const brc_region_write *rw)
{
    const brc_array *a = rw->a;
    return brc_oid_cmp(&a->meta_doc, &rw->doc) == 0 &&
           brc_oid_cmp(&a->storage, &rw->storage) == 0 &&
           (!a->has_keys || a->version == rw->version);
}

static int begin_turn(void *ctx, brc_error *err)
{
    write_call *c = ctx;
    brc_store *store = brc_array_store(array_at(c, 0));
    int rc = BRC_OK;
    end_reading(c);
    BRC_TRY(brc_store_begin(store, err));
    for (size_t i = 0; i < c->n && rc == BRC_OK; i++) {
        rc = brc_array_follow(array_at(c, i), err);
        if (rc == BRC_OK && !is_as_described(&c->writes[i]))
            rc = BRC_WRITE_ANEW;
    }
    if (rc != BRC_OK)
        (void)!brc_store_end(store, 0, NULL);
    return rc;
}

static void undo_turn(void *ctx)
{
    const write_call *c = ctx;
    (void)!brc_store_end(brc_array_store(array_at(c, 0)), 0, NULL);
}

/* The arrays' own changes are in the turn's transaction, which ends with them. */
static int enter_turn(void *ctx, brc_error *err)
{
    write_call *c = ctx;
    int rc = begin_arrays(c, err);
    if (rc == BRC_OK)
        return brc_store_end(brc_array_store(array_at(c, 0)), 1, err);
    undo_turn(c);
    return rc;
}

static int read_and_write(write_call *c, brc_error *err)
{
    const brc_write_turn turn = {c, begin_turn, undo_turn, enter_turn};
    for (size_t i = 0; i < c->n; i++)
        BRC_TRY(brc_session_can_change(array_at(c, i)->session, err));
    BRC_TRY(brc_store_writable(brc_array_store(array_at(c, 0)), err));
    BRC_TRY(begin_reading(c, err));
    BRC_TRY(describe_all(c, err));
    for (size_t i = 0; i < c->n; i++) {
        brc_region_write *rw = &c->writes[i];
        rw->doc = rw->a->meta_doc;
        rw->storage = rw->a->storage;
        rw->version = rw->a->version;
        int rc = has_backend(rw->a, err);
        if (rc <= 0)
            return rc < 0 ? rc : BRC_WRITE_MUCH;
    }
    if (!is_small(c))
        return BRC_WRITE_MUCH;
    c->task = brc_task_begin(array_at(c, 0)->session->repo, "write", bytes_of_writes(c));
    c->is_task = 1;
    return brc_regions_write(c->writes, c->n, &turn, err);
}

/* May give BRC_WRITE_ANEW or BRC_WRITE_MUCH. */
static int write_small(write_call *c, brc_error *err)
{
    int rc = read_and_write(c, err);
    end_reading(c);
    if (c->begun > 0)
        rc = end_arrays(c, rc, err);
    if (c->is_task) /* whoever listens may take long: the lock is free again */
        brc_task_end(array_at(c, 0)->session->repo, &c->task, rc > 0 ? BRC_ESTALE : rc);
    c->is_task = 0;
    return rc;
}

/* ---- which of them -------------------------------- */

/* Times that a write which is in others' way is made anew before it locks them out. */
#define WRITE_TRIES 3

static int is_one_session(const write_call *c)
{
    int is = 1;
    for (size_t i = 1; i < c->n; i++)
        is &= array_at(c, i)->session == array_at(c, 0)->session;
    return is;
}

/* is_last: where it meets others' changes, that is an error, and its draft stays. */
static int write_bulk(write_call *c, int is_last, brc_error *err)
{
    brc_array *a = array_at(c, 0);
    BRC_TRY(brc_bulk_start(a->session, err));
    if (!is_last)
        brc_bulk_drops(a->session);
    int rc = write_locked(c, err), ended = brc_array_bulk_end(a, rc, err);
    return rc == BRC_OK && !is_last && (ended == BRC_ECONFLICT || ended == BRC_ESTALE)
               ? BRC_WRITE_ANEW
               : ended;
}

static int write_all(write_call *c, brc_error *err)
{
    brc_store *store = brc_array_store(array_at(c, 0));
    if (brc_store_in_write(store) || brc_store_in_bulk(store))
        return write_locked(c, err);
    for (int tries = 1;; tries++) {
        int rc = write_small(c, err);
        if (rc == BRC_WRITE_MUCH && is_one_session(c))
            rc = write_bulk(c, tries == WRITE_TRIES && bytes_of_writes(c) > BRC_TURN_BYTES, err);
        if (rc <= 0)
            return rc;
        if (rc == BRC_WRITE_MUCH || tries == WRITE_TRIES)
            return write_locked(c, err);
    }
}

int brc_write_batch(const brc_io *io, size_t n, brc_error *err)
{
    brc_region_write one = {0};
    void *p = &one;
    if (n == 0)
        return BRC_OK;
    BRC_TRY(brc_io_check(io, n, err));
    if (n > 1)
        BRC_TRY(brc_new_array(&p, n, sizeof(brc_region_write), err));
    write_call c = {.io = io, .writes = p, .n = n};
    int rc = write_all(&c, err);
    end_writes(&c);
    if (n > 1)
        free(p);
    return rc;
}

int brc_array_write(brc_array *a, const brc_sel *sel, const void *src, size_t len, brc_error *err)
{
    brc_buffer buffer = {.size = sizeof(buffer), .data = (void *)(uintptr_t)src, .len = len};
    brc_io io = {sizeof(io), a, sel, &buffer, NULL};
    return brc_write_batch(&io, 1, err);
}

int brc_array_put(brc_array *a, const brc_at *at, const brc_buffer *src, brc_error *err)
{
    brc_io io = {sizeof(io), a, NULL, src, at};
    return brc_write_batch(&io, 1, err);
}

int brc_array_fill(brc_array *a, const brc_sel *sel, const void *element, brc_error *err)
{
    static const int64_t still[BRC_MAX_NDIM];
    size_t len = a->info.item_size; /* 0: the element carries its own length */
    if (len == 0)
        len = 4 + (size_t)brc_get_u32le(element);
    brc_buffer buffer = {.size = sizeof(buffer), .data = (void *)(uintptr_t)element, .len = len,
                         .strides = still};
    brc_io io = {sizeof(io), a, sel, &buffer, NULL};
    return brc_write_batch(&io, 1, err);
}
