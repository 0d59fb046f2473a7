#include "decode_there.h"

#include <string.h>

/* Chunks that are on their way. Those that fail, or are refused, leave the lists. */
typedef struct there_run {
    const brc_there_memory *memory;
    const brc_chain *chain;
    brc_scratch *scratch;
    brc_route route;
    size_t n;
    brc_there_chunk *chunk[BRC_ROUTE_MOST];
    brc_span src[BRC_ROUTE_MOST];
    brc_buf dst[BRC_ROUTE_MOST]; /* fixed memory of the device; data NULL: not given yet */
    int status[BRC_ROUTE_MOST];
} there_run;

/* Returns a length up to the next address that is aligned as codecs of devices may expect. */
static size_t in_lines(size_t len)
{
    enum { LINE = 64 };
    return (len + LINE - 1) / LINE * LINE;
}

static brc_there there_of(const brc_device *d)
{
    return (brc_there){sizeof(brc_there), d->block.device, d->block.device_id, d->stream};
}

/* Sets where the i-th step puts the results: the last one into the chunks' own memory, others into
 * memory that is given later. */
static void there_aim(there_run *run, size_t i)
{
    const size_t most = brc_route_len(run->chain, i);
    const int is_last = i + 1 == run->route.n;
    for (size_t k = 0; k < run->n; k++) {
        const brc_there_chunk *c = run->chunk[k];
        const size_t room = is_last && c->len < most ? c->len : most;
        run->dst[k] = (brc_buf)BRC_FIXED_BUF(is_last ? c->dst : NULL, room);
        run->dst[k].limit = room;
    }
}

/* ---- to the device -------------------------------- */

/* Runs the host's steps of the k-th chunk, and shows the result to the device's first. */
static int there_begin(there_run *run, size_t k, brc_span *out, brc_error *err)
{
    BRC_TRY(brc_route_begin(&run->route, run->chain, run->scratch, run->chunk[k]->stored, out,
                            err));
    return brc_route_takes(&run->route, run->chain, out, &run->dst[k]);
}

/* Copies the one chunk from where it is. */
static int there_put_one(there_run *run, brc_stage **stage, brc_error *err)
{
    brc_span from;
    uint8_t *at;
    const int takes = there_begin(run, 0, &from, err);
    if (takes == 0)
        run->n = 0;
    if (takes <= 0)
        return takes;
    BRC_TRY(brc_staging_take(run->memory->rooms, from.len, stage, &at, err));
    run->src[0] = (brc_span){at, from.len};
    return brc_stage_put(run->memory->rooms, *stage, from, err);
}

/* Puts the bytes of all chunks that the device takes one behind the other. src[k].data is then
 * their place behind `base`. Returns how many bytes these are. */
static size_t there_gather(there_run *run, uint8_t *base)
{
    size_t kept = 0, at = 0;
    for (size_t k = 0; k < run->n; k++) {
        brc_span from;
        const int takes = there_begin(run, k, &from, NULL);
        if (takes < 0)
            run->chunk[k]->rc = takes;
        if (takes <= 0)
            continue;
        memcpy(base + at, from.data, from.len);
        run->src[kept] = (brc_span){base + at, from.len};
        run->chunk[kept] = run->chunk[k];
        run->dst[kept++] = run->dst[k];
        memset(base + at + from.len, 0, in_lines(from.len) - from.len);
        at += in_lines(from.len);
    }
    run->n = kept;
    return at;
}

/* Returns the room that the bytes take which the host's steps leave. */
static size_t there_gathered_most(const there_run *run)
{
    size_t most = 0;
    for (size_t k = 0; k < run->n; k++)
        most += in_lines(run->route.host > 0 ? brc_route_len(run->chain, run->route.host - 1)
                                             : run->chunk[k]->stored.len);
    return most;
}

/* Copies the chunks together, by staging memory. */
static int there_put_all(there_run *run, brc_stage **stage, brc_error *err)
{
    const brc_there_memory *m = run->memory;
    brc_stage *here;
    uint8_t *base, *there;
    BRC_TRY(brc_staging_take(m->staging, there_gathered_most(run), &here, &base, err));
    const size_t len = there_gather(run, base);
    int rc = BRC_OK;
    if (len > 0)
        rc = brc_staging_take(m->rooms, len, stage, &there, err);
    if (rc == BRC_OK && len > 0)
        rc = brc_stage_put(m->rooms, *stage, (brc_span){base, len}, err);
    if (m->device->stats != NULL)
        brc_count(&m->device->stats->moved, run->n);
    for (size_t k = 0; rc == BRC_OK && k < run->n; k++)
        run->src[k].data = there + (run->src[k].data - base);
    const int given = brc_staging_give(m->staging, here, rc < 0 ? NULL : err);
    return rc < 0 ? rc : given;
}

/* ---- on the device -------------------------------- */

/* Gives memory to the results of a step that is not the last. */
static int there_room(there_run *run, brc_stage **stage, brc_error *err)
{
    size_t len = 0;
    uint8_t *at;
    for (size_t k = 0; k < run->n; k++)
        len += in_lines(run->dst[k].limit);
    BRC_TRY(brc_staging_take(run->memory->rooms, len, stage, &at, err));
    for (size_t k = 0; k < run->n; k++) {
        run->dst[k].data = at;
        at += in_lines(run->dst[k].limit);
    }
    return BRC_OK;
}

/* Goes on with the chunks that the step decoded. */
static void there_keep_good(there_run *run)
{
    size_t kept = 0;
    for (size_t k = 0; k < run->n; k++) {
        run->chunk[k]->rc = run->status[k];
        if (run->status[k] != BRC_OK)
            continue;
        run->chunk[kept] = run->chunk[k];
        run->src[kept++] = (brc_span){run->dst[k].data, run->dst[k].len};
    }
    run->n = kept;
}

/* Runs the i-th step. One chunk's failure is that of the call, one of several only its own. */
static int there_step(there_run *run, size_t i, brc_stage **next, brc_error *err)
{
    const brc_there there = there_of(run->memory->device);
    const size_t n = run->n;
    if (i > run->route.host)
        there_aim(run, i);
    if (i + 1 < run->route.n)
        BRC_TRY(there_room(run, next, err));
    const int rc = brc_route_step(&run->route, run->chain, run->scratch, i, &there, n, run->src,
                                  run->dst, run->status, err);
    there_keep_good(run);
    return n == 1 && rc != BRC_EUNSUPPORTED ? rc : BRC_OK;
}

/* Runs all steps. `stage` has what they begin with, and is given back, as is all memory that is
 * taken here. */
static int there_steps(there_run *run, brc_stage *stage, brc_error *err)
{
    brc_staging *rooms = run->memory->rooms;
    int rc = BRC_OK;
    for (size_t i = run->route.host; rc == BRC_OK && run->n > 0 && i < run->route.n; i++) {
        brc_stage *next = NULL;
        rc = there_step(run, i, &next, err);
        const int given = brc_staging_give(rooms, stage, rc < 0 ? NULL : err);
        rc = rc < 0 ? rc : given;
        stage = next;
    }
    if (stage != NULL) /* a step failed */
        (void)!brc_staging_give(rooms, stage, NULL);
    return rc;
}

static void there_finish(const there_run *run, brc_error *err)
{
    for (size_t k = 0; k < run->n; k++) {
        brc_there_chunk *c = run->chunk[k];
        if (run->src[k].len != c->len)
            c->rc = brc_fail(err, BRC_ECORRUPT, "the chunk decodes to %zu bytes, not %zu",
                             run->src[k].len, c->len);
    }
}

static int there_run_all(there_run *run, brc_stage **stage, brc_error *err)
{
    int rc = run->n == 1 ? there_put_one(run, stage, err) : there_put_all(run, stage, err);
    if (rc == BRC_OK)
        rc = there_steps(run, *stage, err);
    else if (*stage != NULL)
        (void)!brc_staging_give(run->memory->rooms, *stage, NULL);
    if (rc == BRC_OK)
        there_finish(run, err);
    return rc == BRC_ENOMEM ? BRC_EUNSUPPORTED : rc; /* the host's memory may do */
}

void brc_there_decode(const brc_there_memory *memory, const brc_chain *chain, brc_scratch *scratch,
                      size_t n, brc_there_chunk *chunks, brc_error *err)
{
    const brc_device *d = memory->device;
    const brc_buffer_prototype *t = &d->by->table;
    there_run run = {.memory = memory, .chain = chain, .scratch = scratch, .n = n};
    brc_error ignored = BRC_ERROR_INIT;
    brc_stage *stage = NULL;
    size_t stored = 0;
    for (size_t k = 0; k < n; k++) {
        run.chunk[k] = &chunks[k];
        stored += chunks[k].stored.len;
        chunks[k].rc = BRC_EUNSUPPORTED;
    }
    if (!brc_route_find(&run.route, chain, scratch, d->block.device, n, stored / n, t->cost,
                        t->call_cost))
        return;
    there_aim(&run, run.route.host);
    const int rc = there_run_all(&run, &stage, err);
    for (size_t k = 0; rc < 0 && k < run.n; k++)
        run.chunk[k]->rc = rc;
    if (n == 1 && stage != NULL && chunks->rc < 0)
        (void)!brc_device_wait(d, &ignored); /* what is copied changes once this returns */
}
