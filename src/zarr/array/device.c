#include "device.h"

#include <stdlib.h>
#include <string.h>

#include "../../base/alloc.h"
#include "../../base/sized.h"
#include "../../nd/box.h"

/* ---- which device -------------------------------- */

static int device_find(brc_prototype **out, const brc_registry *reg, const brc_memory *memory,
                       brc_error *err)
{
    uint32_t device_id;
    if (memory->prototype == NULL)
        return brc_prototype_of_device(out, reg, memory->device, err);
    BRC_TRY(brc_prototype_use(out, &device_id, reg, memory->prototype, err));
    if ((*out)->table.device == memory->device)
        return BRC_OK;
    const unsigned device = (*out)->table.device;
    brc_prototype_release(*out);
    return brc_fail(err, BRC_EINVAL,
                    "the buffer is memory of device %u, but the buffer prototype \"%.80s\" copies "
                    "memory of device %u",
                    (unsigned)memory->device, memory->prototype, device);
}

int brc_stats_check(const brc_buffer_stats *stats, brc_error *err)
{
    return stats != NULL ? brc_sized_check(stats->size, sizeof(*stats), "brc_buffer_stats", err)
                         : BRC_OK;
}

int brc_device_of(brc_device *out, const brc_array *a, const brc_memory *memory,
                  brc_buffer_stats *stats, brc_error *err)
{
    const brc_registry *reg = a->session->repo->registry;
    *out = (brc_device){.stats = stats};
    if (brc_device_is_host(reg, memory->device))
        return BRC_OK;
#if __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
    return brc_fail(err, BRC_EUNSUPPORTED,
                    "%s: elements of a big-endian machine are not copied to devices: read them "
                    "into host memory",
                    a->path);
#endif
    BRC_TRY(device_find(&out->by, reg, memory, err));
    brc_prototype_release(out->by); /* the registry has it */
    out->origin = memory->offset;
    out->block = (brc_block){.size = sizeof(out->block),
                             .data = memory->origin != NULL ? memory->origin - memory->offset
                                                            : NULL,
                             .len = memory->len + memory->offset,
                             .device = memory->device,
                             .device_id = memory->device_id};
    out->stream = memory->stream;
    return BRC_OK;
}

/* ---- copies -------------------------------- */

typedef struct device_copy {
    const brc_device *d;
    int64_t at; /* of the box in the device's memory */
    uint8_t *host;
    int (*rows)(void *ctx, void *state, const brc_block *block, const brc_rows *rows,
                brc_error *err);
} device_copy;

static int copy_rectangle(void *ctx, const brc_rectangle *r, brc_error *err)
{
    const device_copy *c = ctx;
    const brc_device *d = c->d;
    const brc_rows rows = {.size = sizeof(rows),
                           .at = (size_t)((int64_t)d->origin + c->at + r->at),
                           .pitch = r->pitch,
                           .host = c->host + r->near,
                           .host_pitch = r->near_pitch,
                           .width = r->width,
                           .rows = r->rows,
                           .stream = d->stream};
    if (d->stats != NULL) {
        brc_count(&d->stats->copies, 1);
        brc_count(&d->stats->copied, r->width * r->rows);
    }
    return c->rows(d->by->table.ctx, d->by->state, &d->block, &rows, err);
}

int brc_device_put(const brc_device *d, int ndim, const uint64_t *count, size_t item, int64_t at,
                   const int64_t *strides, const uint8_t *host, const int64_t *host_strides,
                   brc_error *err)
{
    device_copy c = {d, at, (uint8_t *)(uintptr_t)host, d->by->table.from_host};
    return brc_box_rectangles(ndim, count, item, strides, host_strides, copy_rectangle, &c, err);
}

int brc_device_get(const brc_device *d, int ndim, const uint64_t *count, size_t item, int64_t at,
                   const int64_t *strides, uint8_t *host, const int64_t *host_strides,
                   brc_error *err)
{
    device_copy c = {d, at, host, d->by->table.to_host};
    BRC_TRY(brc_box_rectangles(ndim, count, item, strides, host_strides, copy_rectangle, &c, err));
    return brc_device_wait(d, err);
}

int brc_device_wait(const brc_device *d, brc_error *err)
{
    void *event = NULL;
    const brc_buffer_prototype *t = &d->by->table;
    if (t->record == NULL)
        return BRC_OK;
    BRC_TRY(t->record(t->ctx, d->by->state, d->block.device_id, d->stream, &event, err));
    return t->wait(t->ctx, d->by->state, event, err);
}

/* ---- filling -------------------------------- */

typedef struct device_fill {
    const brc_device *d;
    int64_t at;
    const uint8_t *element;
    size_t item;
    uint8_t *pattern; /* the element, many times; NULL: not needed yet          */
    size_t len;       /* of the pattern, or its bytes that one copy may take    */
} device_fill;

/* Fills a run by copies from host memory that has the element many times. */
static int fill_by_copies(device_fill *f, size_t at, size_t len, brc_error *err)
{
    const brc_device *d = f->d;
    void *p;
    if (f->pattern == NULL) {
        const size_t n = len < f->len ? len / f->item : f->len > f->item ? f->len / f->item : 1;
        BRC_TRY(brc_new_array(&p, n, f->item, err));
        f->pattern = p;
        f->len = n * f->item;
        brc_fill_run(f->pattern, n, f->item, f->element);
    }
    for (size_t done = 0, some; done < len; done += some) {
        some = len - done < f->len ? len - done : f->len;
        const brc_rows rows = {.size = sizeof(rows), .at = at + done, .host = f->pattern,
                               .width = some, .rows = 1, .stream = d->stream};
        BRC_TRY(d->by->table.from_host(d->by->table.ctx, d->by->state, &d->block, &rows, err));
    }
    return BRC_OK;
}

static int fill_rectangle(void *ctx, const brc_rectangle *r, brc_error *err)
{
    device_fill *f = ctx;
    const brc_device *d = f->d;
    const brc_buffer_prototype *t = &d->by->table;
    for (size_t i = 0; i < r->rows; i++) {
        const size_t at = (size_t)((int64_t)d->origin + f->at + r->at) + i * r->pitch;
        int rc = BRC_FILL_OTHERWISE;
        if (t->fill != NULL && f->pattern == NULL)
            rc = t->fill(t->ctx, d->by->state, &d->block, at, r->width / f->item, f->element,
                         f->item, d->stream, err);
        if (rc == BRC_FILL_OTHERWISE)
            rc = fill_by_copies(f, at, r->width, err);
        BRC_TRY(rc);
    }
    return BRC_OK;
}

int brc_device_fill(const brc_device *d, int ndim, const uint64_t *count, size_t item, int64_t at,
                    const int64_t *strides, const uint8_t *element, brc_error *err)
{
    enum { PATTERN = 1 << 20 };
    brc_error ignored = BRC_ERROR_INIT;
    device_fill f = {d, at, element, item, NULL, PATTERN};
    int rc = brc_box_rectangles(ndim, count, item, strides, strides, fill_rectangle, &f, err);
    if (f.pattern != NULL) { /* it must stay until the copies from it are done */
        const int waited = brc_device_wait(d, rc < 0 ? &ignored : err);
        rc = rc < 0 ? rc : waited;
    }
    free(f.pattern);
    return rc;
}

/* ---- staging -------------------------------- */

struct brc_stage {
    brc_block block;
    void *event;
    int is_waited_for, is_taken; /* copies from it are being made; somebody has it */
    uint64_t given;              /* the order in which the stages came back        */
};

struct brc_staging {
    const brc_device *device;
    brc_prototype *memory; /* whose memory it is: the host's, or device->by     */
    brc_lock *lock;
    uint64_t given;
    size_t n, cap;
    brc_stage stages[];
};

/* The prototype that the device wants, if it gives host memory here; else the pool. */
static int staging_prototype(brc_prototype **out, const brc_device *device,
                             const brc_registry *reg, brc_error *err)
{
    uint32_t device_id;
    const char *name = device->by->table.staging;
    if (name != NULL && brc_prototype_use(out, &device_id, reg, name, NULL) == BRC_OK) {
        if ((*out)->table.flags & BRC_PROTOTYPE_HOST)
            return BRC_OK;
        brc_prototype_release(*out);
    }
    return brc_prototype_use(out, &device_id, reg, "pool", err);
}

static int staging_make(brc_staging **out, const brc_device *device, brc_prototype *memory,
                        size_t cap, brc_error *err)
{
    void *p;
    BRC_TRY(brc_new(&p, sizeof(brc_staging) + cap * sizeof(brc_stage), err));
    brc_staging *s = p;
    s->device = device;
    s->memory = memory;
    s->cap = cap;
    int rc = brc_lock_new(&s->lock, err);
    if (rc == BRC_OK)
        *out = s;
    else
        free(s);
    return rc;
}

int brc_staging_new(brc_staging **out, const brc_device *device, const brc_registry *reg,
                    unsigned threads, brc_error *err)
{
    brc_prototype *memory;
    *out = NULL;
    BRC_TRY(staging_prototype(&memory, device, reg, err));
    /* one piece is decoded into while the other is copied */
    int rc = staging_make(out, device, memory, 2 * (size_t)threads, err);
    if (rc < 0)
        brc_prototype_release(memory);
    return rc;
}

int brc_staging_there(brc_staging **out, const brc_device *device, unsigned threads, brc_error *err)
{
    *out = NULL;
    /* a step reads one piece and writes another */
    BRC_TRY(staging_make(out, device, device->by, 2 * (size_t)threads, err));
    (void)atomic_fetch_add(&device->by->refs, 1);
    return BRC_OK;
}

/* Chooses a stage: a free one from which nothing is copied, else a new one, else the one that came
 * back first. There is always one, because each thread has one at most. */
static brc_stage *staging_choose(brc_staging *s, size_t len)
{
    brc_stage *best = NULL, *first = NULL;
    for (size_t i = 0; i < s->n; i++) {
        brc_stage *one = &s->stages[i];
        if (one->is_taken)
            continue;
        if (!one->is_waited_for && (best == NULL || one->block.len >= len))
            best = one;
        if (one->is_waited_for && (first == NULL || one->given < first->given))
            first = one;
    }
    if (best == NULL)
        best = s->n < s->cap ? &s->stages[s->n++] : first;
    if (best != NULL)
        best->is_taken = 1;
    return best;
}

static int stage_wait(const brc_staging *s, brc_stage *stage, brc_error *err)
{
    const brc_buffer_prototype *t = &s->device->by->table;
    if (!stage->is_waited_for)
        return BRC_OK;
    stage->is_waited_for = 0;
    return t->wait(t->ctx, s->device->by->state, stage->event, err);
}

int brc_staging_take(brc_staging *s, size_t len, brc_stage **out, uint8_t **memory, brc_error *err)
{
    brc_lock_enter(s->lock);
    brc_stage *stage = staging_choose(s, len);
    brc_lock_leave(s->lock);
    if (stage == NULL)
        return brc_fail(err, BRC_EINTERNAL, "all staging memory is taken");
    BRC_TRY(stage_wait(s, stage, err));
    if (stage->block.data == NULL || stage->block.len < len) {
        if (stage->block.data != NULL)
            brc_prototype_free(s->memory, &stage->block);
        stage->block.data = NULL;
        const int is_there = s->memory == s->device->by;
        BRC_TRY(brc_prototype_alloc(s->memory, &stage->block, len,
                                    is_there ? s->device->block.device_id : 0, 0,
                                    is_there ? s->device->stream : NULL, NULL, err));
        if (s->device->stats != NULL) {
            brc_count(&s->device->stats->blocks, 1);
            brc_count(&s->device->stats->allocations, (stage->block.flags & BRC_BLOCK_NEW) != 0);
        }
    }
    *out = stage;
    *memory = stage->block.data;
    return BRC_OK;
}

int brc_staging_give(brc_staging *s, brc_stage *stage, brc_error *err)
{
    const brc_buffer_prototype *t = &s->device->by->table;
    if (t->record != NULL) {
        BRC_TRY(t->record(t->ctx, s->device->by->state, s->device->block.device_id,
                          s->device->stream, &stage->event, err));
        stage->is_waited_for = 1;
    }
    brc_lock_enter(s->lock);
    stage->given = s->given++;
    stage->is_taken = 0;
    brc_lock_leave(s->lock);
    return BRC_OK;
}

int brc_stage_put(const brc_staging *s, const brc_stage *stage, brc_span from, brc_error *err)
{
    const brc_device *d = s->device;
    const brc_rows rows = {.size = sizeof(rows),
                           .host = (uint8_t *)(uintptr_t)from.data,
                           .width = from.len,
                           .rows = 1,
                           .stream = d->stream};
    if (from.len == 0)
        return BRC_OK;
    if (d->stats != NULL) {
        brc_count(&d->stats->copies, 1);
        brc_count(&d->stats->copied, from.len);
    }
    return d->by->table.from_host(d->by->table.ctx, d->by->state, &stage->block, &rows, err);
}

/* A stage that nobody gave back may still be copied from, so all that was started is waited for. */
int brc_staging_end(brc_staging *s, int rc, brc_error *err)
{
    brc_error later = BRC_ERROR_INIT;
    if (s == NULL)
        return rc;
    for (size_t i = 0; i < s->n; i++) {
        const int waited = stage_wait(s, &s->stages[i], rc < 0 ? &later : err);
        rc = rc < 0 ? rc : waited;
    }
    const int waited = brc_device_wait(s->device, rc < 0 ? &later : err);
    rc = rc < 0 ? rc : waited;
    for (size_t i = 0; i < s->n; i++)
        if (s->stages[i].block.data != NULL)
            brc_prototype_free(s->memory, &s->stages[i].block);
    brc_prototype_release(s->memory);
    brc_lock_free(s->lock);
    free(s);
    return rc;
}
