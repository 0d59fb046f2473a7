#include "array_write.h"

#include <search.h>
#include <stdlib.h>
#include <string.h>

#include "../../base/alloc.h"
#include "../../nd/shape.h"
#include "../../store/change.h"
#include "../../work/bulk_write.h"
#include "device.h"
#include "region.h"
#include "old_chunks.h"

/* ==== array change ================================ */

static breccia *repo_of(const brc_array_change *c)
{
    return c->arrays[0]->session->repo;
}

/* ---- work: nothing is locked -------------------------------- */

static void end_reads(const brc_array_change *c, size_t n)
{
    while (n-- > 0)
        brc_array_end_read(c->arrays[n]);
}

static int begin_reads(const brc_array_change *c, brc_error *err)
{
    for (size_t i = 0; i < c->n; i++) {
        const int rc = brc_array_begin_read(c->arrays[i], err);
        if (rc < 0) {
            end_reads(c, i);
            return rc;
        }
    }
    return BRC_OK;
}

static void drop_prepared(brc_array_change *c)
{
    brc_prepared_free(c->prepared);
    c->prepared = NULL;
    c->is_described = 0;
}

/* Notes the state. A backend without a number gets one within a transaction. */
static int note_state(brc_array *a, brc_array_state *state, brc_error *err)
{
    int64_t backend;
    BRC_TRY(brc_array_find_backend(a, &backend, err));
    *state = (brc_array_state){a->meta_doc, a->storage, a->version};
    return backend < 0 ? BRC_CHANGE_MUCH : BRC_OK;
}

static int describe_and_prepare(brc_array_change *c, brc_error *err)
{
    drop_prepared(c);
    int rc = c->plan(c->ctx, err);
    for (size_t i = 0; i < c->n && rc == BRC_OK; i++)
        rc = note_state(c->arrays[i], &c->states[i], err);
    if (rc != BRC_OK)
        return rc;
    if (c->task != NULL && !c->is_task)
        c->running = brc_task_begin(repo_of(c), c->task, c->bytes);
    c->is_task = c->task != NULL;
    rc = c->prepare(c->ctx, &c->prepared, err);
    c->is_described = rc == BRC_OK;
    return rc;
}

/* Tells whether the array is as described. Loose keys of its chunks may have changed with the
 * draft. */
static int is_as_described(const brc_array *a, const brc_array_state *state)
{
    return brc_oid_cmp(&a->meta_doc, &state->doc) == 0 &&
           brc_oid_cmp(&a->storage, &state->storage) == 0 &&
           (!a->has_keys || a->version == state->version);
}

static void look_at_arrays(brc_array_change *c)
{
    for (size_t i = 0; i < c->n; i++)
        if (!is_as_described(c->arrays[i], &c->states[i]))
            c->is_described = 0;
}

/* Renews what was prepared if the arrays are still as described: the prepared chunks use codecs and
 * fill values of the arrays, which an array that is another now has freed. */
static int array_work(void *ctx, brc_error *err)
{
    brc_array_change *c = ctx;
    int rc = BRC_OK;
    BRC_TRY(begin_reads(c, err));
    if (c->is_described)
        look_at_arrays(c);
    if (!c->is_described)
        rc = describe_and_prepare(c, err);
    else if (c->prepared != NULL)
        rc = brc_prepared_renew(c->prepared, err);
    end_reads(c, c->n);
    return rc;
}

/* ---- commit: in one transaction -------------------------------- */

static int check_described(brc_array_change *c, brc_error *err)
{
    for (size_t i = 0; i < c->n; i++)
        BRC_TRY(brc_array_follow(c->arrays[i], err));
    look_at_arrays(c);
    return BRC_OK;
}

static int end_changes(const brc_array_change *c, size_t n, int rc, brc_error *err)
{
    while (n-- > 0)
        rc = brc_array_end(c->arrays[n], rc, err);
    return rc;
}

/* Runs a change with all arrays begun first: beginning one array may bring another up to date. */
static int with_arrays(brc_array_change *c, int (*change)(brc_array_change *c, brc_error *err),
                       brc_error *err)
{
    for (size_t i = 0; i < c->n; i++) {
        const int rc = brc_array_begin(c->arrays[i], err);
        if (rc < 0)
            return end_changes(c, i, rc, err);
    }
    return end_changes(c, c->n, change(c, err), err);
}

static int change_within(brc_array_change *c, brc_error *err)
{
    return c->within(c->ctx, err);
}

static int store_prepared(brc_array_change *c, brc_error *err)
{
    if (c->before != NULL)
        BRC_TRY(c->before(c->ctx, err));
    if (c->prepared != NULL)
        BRC_TRY(brc_prepared_store(c->prepared, err));
    return c->behind != NULL ? c->behind(c->ctx, err) : BRC_OK;
}

/* Stores the change. If it insists, it also does what was not prepared, or was prepared for an
 * earlier state of the arrays. */
static int array_commit(void *ctx, int insists, brc_error *err)
{
    brc_array_change *c = ctx;
    if (c->is_described)
        BRC_TRY(check_described(c, err));
    if (!c->is_described && !insists)
        return BRC_CHANGE_AGAIN;
    if (!c->is_described) {
        drop_prepared(c);
        return with_arrays(c, change_within, err);
    }
    const int rc = c->prepared != NULL ? brc_prepared_check(c->prepared, insists, err) : BRC_OK;
    return rc != BRC_OK ? rc : with_arrays(c, store_prepared, err);
}

/* ---- steps: a bulk write -------------------------------- */

/* `insists`: a conflict with changes of others is an error, and the draft stays. */
int brc_array_bulk_change(brc_array *a, int insists, int (*change)(void *ctx, brc_error *err),
                          void *ctx, brc_error *err)
{
    BRC_TRY(brc_bulk_start(a->session, err));
    if (!insists)
        brc_bulk_drops(a->session);
    const int rc = change(ctx, err), ended = brc_array_bulk_end(a, rc, err);
    return rc == BRC_OK && !insists && (ended == BRC_ECONFLICT || ended == BRC_ESTALE)
               ? BRC_CHANGE_AGAIN
               : ended;
}

static int change_arrays(void *ctx, brc_error *err)
{
    return with_arrays(ctx, change_within, err);
}

static int is_one_session(const brc_array_change *c)
{
    int is = 1;
    for (size_t i = 1; i < c->n; i++)
        is &= c->arrays[i]->session == c->arrays[0]->session;
    return is;
}

static int array_steps(void *ctx, int insists, brc_error *err)
{
    brc_array_change *c = ctx;
    drop_prepared(c);
    return !is_one_session(c) || (insists && c->bytes <= BRC_LOCKED_BYTES)
               ? change_arrays(c, err)
               : brc_array_bulk_change(c->arrays[0], insists, change_arrays, c, err);
}

/* ---- the change -------------------------------- */

int brc_array_change_run(brc_array_change *c, brc_error *err)
{
    const brc_file_change change = {.ctx = c, .work = array_work,
                               .commit = array_commit, .steps = array_steps};
    brc_store *store = brc_array_store(c->arrays[0]);
    const int is_part = brc_store_in_write(store) || brc_store_in_bulk(store);
    for (size_t i = 0; i < c->n; i++)
        BRC_TRY(brc_session_can_change(c->arrays[i]->session, err));
    if (!is_part)
        BRC_TRY(brc_store_writable(store, err));
    int rc = brc_change_run(store, &change, err);
    drop_prepared(c);
    for (size_t i = 0; i < c->n && !is_part; i++)
        brc_array_changed(c->arrays[i], rc);
    /* the progress function may take long: the lock is free again */
    if (c->is_task)
        brc_task_end(repo_of(c), &c->running, rc > 0 ? BRC_ESTALE : rc);
    if (rc != BRC_CHANGE_AGAIN)
        return rc;
    return brc_change_is_late(store, "an array was written", "nothing was changed; write again",
                              err);
}

/* ==== region write ================================ */

/* ---- describing a write -------------------------------- */

/* Chunks are gathered from a device one by one; positions are all fetched first. */
static int describe_device(brc_region_write *rw, const brc_memory *m, brc_error *err)
{
    brc_region *r = &rw->r;
    const size_t item = brc_array_unit(rw->a);
    int64_t packed[BRC_MAX_NDIM];
    void *p;
    rw->src = NULL;
    BRC_TRY(brc_new(&p, sizeof(brc_device), err));
    rw->device = p;
    BRC_TRY(brc_device_of(rw->device, rw->a, m, rw->stats, err));
    if (r->places == NULL)
        return BRC_OK;
    BRC_TRY(brc_new_array(&p, (size_t)brc_sel_count(&r->sel), item, err));
    rw->held = p;
    brc_strides_packed(r->axes, r->sel.count, item, packed);
    BRC_TRY(brc_device_get(rw->device, r->axes, r->sel.count, item, 0, r->strides, rw->held,
                           packed, err));
    memcpy(r->strides, packed, sizeof(packed));
    rw->src = rw->held;
    free(rw->device);
    rw->device = NULL;
    return BRC_OK;
}

static int describe_fixed(brc_region_write *rw, const brc_io *io, const brc_memory *m,
                          brc_error *err)
{
    const brc_array *a = rw->a;
    int rc = brc_memory_fits(io->buffer, rw->r.axes, rw->r.sel.count, a->meta.type->item_size,
                             BRC_MEMORY_IN, err);
    if (rc < 0)
        brc_context(err, "%s", a->path);
    rw->src = m->origin;
    return rc < 0 || brc_device_is_host(a->session->repo->registry, m->device)
               ? rc
               : describe_device(rw, m, err);
}

/* Describes packed elements; with zero strides (a fill) there is one. */
static int describe_variable(brc_region_write *rw, const brc_memory *m, brc_error *err)
{
    const brc_array *a = rw->a;
    if (!brc_device_is_host(a->session->repo->registry, m->device))
        return brc_fail(err, BRC_EUNSUPPORTED,
                        "%s: elements of variable length come from host memory alone", a->path);
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
    rw->stats = brc_io_stats(io);
    BRC_TRY(brc_stats_check(rw->stats, err));
    BRC_TRY(brc_array_can_write(a, err));
    BRC_TRY(brc_region_of_io(&rw->r, &m, io, shape, BRC_MEMORY_IN, err));
    return brc_meta_is_variable(&a->meta) ? describe_variable(rw, &m, err)
                                          : describe_fixed(rw, io, &m, err);
}

static void end_write(brc_region_write *rw)
{
    brc_region_end(&rw->r);
    free(rw->held);
    free(rw->device);
    rw->held = NULL;
    rw->device = NULL;
}

uint64_t brc_chunks_memory(const brc_array *a, uint64_t chunks)
{
    const uint64_t elements = brc_shape_count(a->meta.ndim, a->meta.grid.chunk);
    return brc_mul_capped(brc_mul_capped(elements, 2 * brc_array_unit(a)), chunks);
}

/* ---- chunks that several regions meet -------------------------------- */

/* Orders items by array and chunk. Two handles of one array have the same row in the draft. */
static int chunk_order(const void *x, const void *y)
{
    const brc_write_item *a = x, *b = y;
    const brc_array *of_a = ((const brc_region_write *)a->owner)->a;
    const brc_array *of_b = ((const brc_region_write *)b->owner)->a;
    if (of_a->row != of_b->row)
        return of_a->row < of_b->row ? -1 : 1;
    return brc_index_order(of_a->meta.ndim, a->index, b->index);
}

/* Returns 1 if no unfinished item has the same chunk; the item then counts as unfinished. */
static int set_out(brc_region_writer *w, brc_write_item *item, brc_error *err)
{
    if (w->n == 1)
        return 1;
    brc_write_item **slot = tsearch(item, &w->on_the_way, chunk_order);
    if (slot == NULL)
        return brc_nomem(err);
    return *slot == item;
}

static void arrive(brc_region_writer *w, const brc_write_item *item)
{
    if (w->n > 1)
        tdelete(item, &w->on_the_way, chunk_order);
}

static void keep_written(void *item)
{
    (void)item; /* the flow owns it */
}

/* ---- listed, chunk by chunk -------------------------------- */

/* Finds the spans of the elements, before the region's first chunk. */
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

/* Returns 1, or 0 if an earlier region still changes the chunk. */
static int list_covered(brc_region_writer *w, brc_region_write *rw, brc_write_item *item,
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

/* Lists as many chunks as one job takes. */
static int writer_list(void *ctx, brc_write_item *items, size_t cap, size_t *n, brc_error *err)
{
    brc_region_writer *w = ctx;
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

static int put_selected(const brc_region_write *rw, const brc_region_part *part, void *chunk,
                        brc_error *err)
{
    if (rw->device != NULL)
        return brc_device_get(rw->device, rw->a->meta.ndim, part->overlap.count,
                              brc_array_unit(rw->a), part->in_memory, rw->r.strides,
                              (uint8_t *)chunk + part->in_chunk, part->strides, err);
    brc_region_put(rw->a, &rw->r, part, rw->table != NULL ? rw->table : rw->src, chunk);
    if (rw->stats != NULL)
        brc_count(&rw->stats->moved, 1);
    return BRC_OK;
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
    int normalizes = brc_dtype_normalize(m->type, NULL, 0);
    if (part->full && rw->r.in_one_piece && !normalizes && rw->device == NULL) {
        item->data = rw->src + part->in_memory;
        if (rw->stats != NULL)
            brc_count(&rw->stats->direct, 1);
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
    BRC_TRY(put_selected(rw, part, item->own.data, err));
    if (normalizes) /* bits without a value must not make equal chunks differ */
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
    int rc = put_selected(rw, part, table, err);
    if (rc == BRC_OK)
        rc = brc_gather_elements(item, table, &rw->a->meta, scratch, err);
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

/* ---- after the flow -------------------------------- */

int brc_array_put_chunk(brc_array *a, const uint64_t *index, const brc_oid *id, brc_error *err)
{
    uint8_t key[BRC_CHUNK_KEY_MAX];
    size_t len = brc_chunk_key_encode(key, a->meta.ndim, index);
    brc_store *store = brc_array_store(a);
    /* without a committed map and rows below, a row would hide nothing */
    if (id == NULL && brc_oid_is_zero(&a->entry.map) && a->stack.n == 1)
        return a->row_has_chunks ? brc_draft_chunk_clear(store, a->row, key, len, err) : BRC_OK;
    BRC_TRY(brc_draft_chunk_put(store, a->row, key, len, id, err));
    a->row_has_chunks = 1;
    return BRC_OK;
}

/* Records a chunk. Other handles of the array, in later regions, look up its chunks too. */
static int put_written(brc_region_writer *w, const brc_region_write *rw, const uint64_t *index,
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
    brc_region_writer *w = ctx;
    brc_region_write *rw = item->owner;
    arrive(w, item);
    BRC_TRY(put_written(w, rw, item->index, item->is_fill ? NULL : &item->id, err));
    if (++rw->done == rw->r.nchunks) {
        free(rw->table);
        rw->table = NULL;
    }
    /* the progress function may take long: do not call it with the lock held */
    return w->is_prepared ? BRC_OK : brc_region_step(rw->a, &rw->r, &rw->told, rw->done, err);
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

static brc_write_ops writer_ops(brc_region_writer *w)
{
    return (brc_write_ops){
        .ctx = w,
        .list = writer_list,
        .gather = writer_gather,
        .done = writer_done,
        .name = writer_name,
        .now = writer_now,
    };
}

static int any_chunks(const brc_region_write *writes, size_t n)
{
    uint64_t chunks = 0;
    for (size_t i = 0; i < n; i++)
        chunks |= writes[i].r.nchunks;
    return chunks != 0;
}

void brc_regions_end(brc_region_writer *w)
{
    tdestroy(w->on_the_way, keep_written);
    w->on_the_way = NULL;
    for (size_t i = 0; i < w->n; i++) {
        free(w->writes[i].table);
        w->writes[i].table = NULL;
    }
}

int brc_regions_write(brc_region_write *writes, size_t n, brc_error *err)
{
    brc_region_writer w = {.writes = writes, .n = n};
    const brc_write_ops ops = writer_ops(&w);
    breccia *repo = writes[0].a->session->repo;
    if (!any_chunks(writes, n))
        return BRC_OK;
    int rc = brc_flow_write(&repo->pipe, repo->store, &ops, err);
    brc_regions_end(&w);
    return rc;
}

int brc_regions_prepare(brc_prepared **out, brc_region_writer *w, brc_region_write *writes,
                        size_t n, brc_error *err)
{
    breccia *repo = writes[0].a->session->repo;
    *w = (brc_region_writer){.writes = writes, .n = n, .is_prepared = 1};
    *out = NULL;
    if (!any_chunks(writes, n))
        return BRC_OK;
    const brc_write_ops ops = writer_ops(w);
    return brc_flow_prepare(out, &repo->pipe, repo->store, &ops, err);
}

/* ==== array write ================================ */

/* The public functions that write arrays. */

typedef struct write_call {
    const brc_io *io;
    brc_region_write *writes;
    brc_array **arrays;
    size_t n;
    brc_region_writer writer;
    brc_array_change change;
} write_call;

static void end_writes(write_call *c)
{
    brc_regions_end(&c->writer);
    for (size_t i = 0; i < c->n; i++)
        end_write(&c->writes[i]);
}

static uint64_t bytes_of_writes(const write_call *c)
{
    uint64_t bytes = 0;
    for (size_t i = 0; i < c->n; i++)
        if (!brc_add_u64(bytes, brc_region_bytes(c->writes[i].a, &c->writes[i].r), &bytes))
            return UINT64_MAX;
    return bytes;
}

static int describe_all(write_call *c, brc_error *err)
{
    end_writes(c);
    for (size_t i = 0; i < c->n; i++) {
        memset(&c->writes[i], 0, sizeof(c->writes[i]));
        BRC_TRY(brc_region_write_of(&c->writes[i], brc_io_at(c->io, i), NULL, err));
    }
    c->change.bytes = bytes_of_writes(c);
    return BRC_OK;
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

static int plan_write(void *ctx, brc_error *err)
{
    write_call *c = ctx;
    BRC_TRY(describe_all(c, err));
    return is_small(c) ? BRC_OK : BRC_CHANGE_MUCH;
}

static int prepare_write(void *ctx, brc_prepared **out, brc_error *err)
{
    write_call *c = ctx;
    return brc_regions_prepare(out, &c->writer, c->writes, c->n, err);
}

static int write_within(void *ctx, brc_error *err)
{
    write_call *c = ctx;
    breccia *repo = c->arrays[0]->session->repo;
    BRC_TRY(describe_all(c, err));
    if (!is_small(c)) /* a bulk write lets others in while a batch is made */
        BRC_TRY(brc_store_rest(repo->store, 1, err));
    brc_task task = brc_task_begin(repo, "write", c->change.bytes);
    int rc = brc_regions_write(c->writes, c->n, err);
    brc_task_end(repo, &task, rc);
    return rc;
}

static int write_all(write_call *c, brc_array_state *states, brc_error *err)
{
    for (size_t i = 0; i < c->n; i++)
        c->arrays[i] = brc_io_at(c->io, i)->array;
    c->change = (brc_array_change){.arrays = c->arrays, .states = states, .n = c->n, .ctx = c,
                                   .plan = plan_write, .prepare = prepare_write,
                                   .within = write_within, .task = "write"};
    int rc = brc_array_change_run(&c->change, err);
    end_writes(c);
    return rc;
}

/* Allocates one block for n writes, their arrays' states, and the arrays. */
static int write_several(write_call *c, brc_error *err)
{
    void *p;
    BRC_TRY(brc_new_array(&p, c->n,
                          sizeof(brc_region_write) + sizeof(brc_array_state) + sizeof(brc_array *),
                          err));
    c->writes = p;
    brc_array_state *states = (brc_array_state *)(c->writes + c->n);
    c->arrays = (brc_array **)(states + c->n);
    int rc = write_all(c, states, err);
    free(p);
    return rc;
}

int brc_write(const brc_io *io, size_t n, brc_error *err)
{
    brc_region_write one = {0};
    brc_array_state state;
    brc_array *array;
    write_call c = {.io = io, .writes = &one, .arrays = &array, .n = n};
    if (n == 0)
        return BRC_OK;
    BRC_TRY(brc_io_check(io, n, 1, err));
    return n == 1 ? write_all(&c, &state, err) : write_several(&c, err);
}

int brc_array_write(brc_array *a, const brc_sel *sel, const void *src, size_t len, brc_error *err)
{
    brc_buffer buffer = {.size = sizeof(buffer), .data = (void *)(uintptr_t)src, .len = len};
    const brc_io io = {.size = sizeof(io), .array = a, .sel = sel, .buffer = &buffer};
    return brc_write(&io, 1, err);
}

int brc_array_fill(brc_array *a, const brc_sel *sel, const void *element, brc_error *err)
{
    static const int64_t still[BRC_MAX_NDIM];
    size_t len = a->info.item_size; /* 0: the element carries its own length */
    if (len == 0)
        len = 4 + (size_t)brc_get_u32le(element);
    brc_buffer buffer = {.size = sizeof(buffer), .data = (void *)(uintptr_t)element, .len = len,
                         .strides = still};
    const brc_io io = {.size = sizeof(io), .array = a, .sel = sel, .buffer = &buffer};
    return brc_write(&io, 1, err);
}
