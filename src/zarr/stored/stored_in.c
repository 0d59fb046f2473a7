/* Chunks and shards as codecs have them, into a repository: what an import brings and what a client
 * of the key view sets. */
#include "stored_in.h"

#include <stdlib.h>
#include <string.h>

#include "../../backends/external.h"
#include "../../base/alloc.h"
#include "../../flow/write.h"
#include "../../store/collect.h"
#include "../array/chunk_cursor.h"
#include "../array/region.h"
#include "assembly.h"
#include "stored_out.h"

/* ==== chunk pull ================================ */

/* Pulls stored chunks from a source one by one, also those of a shard. Shards are read ahead and
 * split on the pool. */

typedef struct chunk_pull {
    brc_array *a;      /* for messages, and for the flow that it feeds               */
    const brc_meta *m; /* describes the source's chunks: their grid, their shards    */
    const brc_chunk_source *source;
    int ended;         /* the source is at its end, or has failed:                   */
    int rc;            /* with this code, to be returned after the earlier shards    */
    brc_error error;
    struct pulled_shard *shards; /* a ring buffer, in order                          */
    brc_group *group;
    size_t nshards, first, n; /* slots; the first slot in use; the number in use     */
    size_t held, largest;     /* bytes of the shards in use, and the largest so far  */
    size_t next_part;         /* of the first shard                                  */
} chunk_pull;

#define SHARDS_PER_THREAD 2
/* The part of the pipe's budget for reading ahead. */
#define PART_OF_BUDGET 8

typedef struct pulled_shard {
    brc_job job;
    const chunk_pull *pull;
    uint64_t index[BRC_MAX_NDIM];
    brc_buf bytes;
    brc_chunk_place at; /* of the shard */
    brc_shard_parts parts;
    int rc;
    brc_error error;
} pulled_shard;

static brc_pipe *pull_pipe(const chunk_pull *p)
{
    return &p->a->session->repo->pipe;
}

/* Returns how much of the pipe's budget the pull may hold. */
static size_t pull_held(const chunk_pull *p)
{
    return p->m->nlevels > 0 ? pull_pipe(p)->memory / PART_OF_BUDGET : 0;
}

/* Copies where a chunk lies, `gap` bytes behind the beginning of what lies at `from`. */
static int place_copy(brc_chunk_place *to, const brc_chunk_place *from, uint64_t gap,
                      brc_error *err)
{
    to->place.len = 0;
    to->offset = from->offset + gap;
    BRC_TRY(brc_buf_append(&to->place, from->place.data, from->place.len, err));
    return brc_buf_terminate(&to->place, err);
}

static int pull_outer(chunk_pull *p, uint64_t *index, brc_buf *stored, brc_chunk_place *at,
                      brc_error *err)
{
    brc_chunk_place *from = p->source->at;
    if (p->ended)
        return 0;
    at->place.len = 0;
    if (from != NULL)
        from->place.len = 0;
    int rc = p->source->next(p->source->ctx, index, stored, err);
    if (rc > 0 && from != NULL)
        BRC_TRY(place_copy(at, from, 0, err));
    p->ended = rc <= 0;
    for (int i = 0; rc > 0 && i < p->m->ndim; i++) {
        if (index[i] < p->m->outer.count[i])
            continue;
        rc = brc_fail(err, BRC_EINVAL, "it is outside the array");
        brc_array_name_chunk(p->a, index, err);
    }
    return rc;
}

/* ---- shards -------------------------------- */

static void shard_split_job(brc_job *job, unsigned worker)
{
    pulled_shard *s = (pulled_shard *)(void *)job; /* its first member */
    brc_scratch *scratch;
    const brc_span bytes = {s->bytes.data, s->bytes.len};
    s->rc = brc_pipe_scratch(pull_pipe(s->pull), worker, &scratch, &s->error);
    if (s->rc == BRC_OK)
        s->rc = brc_shard_split(&s->parts, s->pull->m, scratch, s->index, bytes, &s->error);
}

static int pull_start(chunk_pull *p, brc_error *err)
{
    void *shards;
    const size_t n = SHARDS_PER_THREAD * (size_t)pull_pipe(p)->nworkers;
    BRC_TRY(brc_group_new(&p->group, pull_pipe(p)->pool, err));
    BRC_TRY(brc_new_array(&shards, n, sizeof(pulled_shard), err));
    p->shards = shards;
    p->nshards = n;
    return BRC_OK;
}

/* Reads ahead as far as there is room; a failure is reported after the earlier shards. */
static void pull_ahead(chunk_pull *p)
{
    const size_t most = pull_held(p);
    while (!p->ended && p->n < p->nshards && (p->n == 0 || p->held + p->largest <= most)) {
        pulled_shard *s = &p->shards[(p->first + p->n) % p->nshards];
        s->bytes.len = 0;
        s->pull = p;
        int rc = pull_outer(p, s->index, &s->bytes, &s->at, &p->error);
        if (rc <= 0) {
            p->ended = 1;
            p->rc = rc;
            return;
        }
        p->n++;
        p->held += s->bytes.cap;
        p->largest = s->bytes.cap > p->largest ? s->bytes.cap : p->largest;
        s->job.run = shard_split_job;
        brc_group_submit(p->group, &s->job);
    }
}

/* Releases the first shard, which is done. */
static void pull_release(chunk_pull *p)
{
    pulled_shard *s = &p->shards[p->first];
    p->held -= s->bytes.cap;
    brc_pipe_trim_buf(pull_pipe(p), &s->bytes, PART_OF_BUDGET * p->nshards);
    p->first = (p->first + 1) % p->nshards;
    p->n--;
    p->next_part = 0;
}

/* Returns 1 with a part of the first shard. */
static int pull_part(chunk_pull *p, const brc_shard_part **out, brc_error *err)
{
    const pulled_shard *s = &p->shards[p->first];
    if (p->next_part == 0)
        brc_group_wait(p->group, &p->shards[p->first].job);
    if (s->rc < 0) {
        if (err != NULL)
            brc_error_copy(err, &s->error);
        brc_array_name_chunk(p->a, s->index, err);
        return s->rc;
    }
    if (p->next_part == s->parts.n)
        return 0;
    *out = &((const brc_shard_part *)s->parts.items)[p->next_part++];
    return 1;
}

static int pull_next_part(chunk_pull *p, const brc_shard_part **out, brc_error *err)
{
    if (p->shards == NULL)
        BRC_TRY(pull_start(p, err));
    for (;;) {
        pull_ahead(p);
        if (p->n == 0) {
            if (p->rc < 0 && err != NULL)
                brc_error_copy(err, &p->error);
            return p->rc;
        }
        int rc = pull_part(p, out, err);
        if (rc != 0)
            return rc;
        pull_release(p);
    }
}

/* ---- both -------------------------------- */

/* Returns 1 with the next chunk of m->grid, its bytes appended to `stored`, and where it lies; 0 at
 * the end and from then on. BRC_EINVAL if the source names a chunk outside the grid. */
static int pull_next(chunk_pull *p, uint64_t *index, brc_buf *stored, brc_chunk_place *at,
                     brc_error *err)
{
    const brc_shard_part *part = NULL;
    if (p->m->nlevels == 0)
        return pull_outer(p, index, stored, at, err);
    do { /* chunks beyond the array are skipped */
        int rc = pull_next_part(p, &part, err);
        if (rc <= 0)
            return rc;
    } while (!brc_grid_has(&p->m->grid, part->index));
    memcpy(index, part->index, (size_t)p->m->ndim * sizeof(*index));
    BRC_TRY(brc_buf_append(stored, part->bytes.data, part->bytes.len, err));
    const pulled_shard *s = &p->shards[p->first];
    BRC_TRY(place_copy(at, &s->at, (uint64_t)(part->bytes.data - s->bytes.data), err));
    return 1;
}

int brc_chunk_may_wait(const brc_meta *m, const uint64_t *index, uint64_t bytes)
{
    enum { HEADERS = 4096 };
    uint64_t corner[BRC_MAX_NDIM], shape[BRC_MAX_NDIM], chunk;
    if (m->opaque || m->nlevels > 0 || brc_meta_is_variable(m))
        return 0;
    brc_grid_chunk(&m->grid, index, corner, shape);
    return brc_shape_bytes(m->ndim, shape, m->type->item_size, &chunk) &&
           bytes <= chunk / 4 * 5 + HEADERS;
}

/* Returns whether the source has only named the chunk that was pulled last. */
static int pull_is_later(const chunk_pull *p)
{
    return p->source->later != NULL && *p->source->later;
}

/* Reads the chunk that was pulled last, if the source has only named it. */
static int pull_now(const chunk_pull *p, const uint64_t *index, brc_buf *stored, brc_error *err)
{
    return pull_is_later(p) ? p->source->load(p->source->ctx, index, stored, err) : BRC_OK;
}

/* Waits for the jobs on the pool, and frees everything. */
static void pull_dispose(chunk_pull *p)
{
    brc_group_free(p->group);
    for (size_t i = 0; i < p->nshards; i++) {
        brc_buf_dispose(&p->shards[i].bytes);
        brc_buf_dispose(&p->shards[i].at.place);
        free(p->shards[i].parts.items);
    }
    free(p->shards);
}

/* ==== kept or encoded again ================================ */

/* Chunks that are cut as the array's are: kept as they come, or encoded again. */

typedef struct stored_writer {
    brc_array *a;
    brc_meta *from; /* describes the chunks; NULL: the array does, and the bytes are kept */
    chunk_pull pull;
    uint64_t chunk_bytes;
    int ended;
    int64_t external; /* the number of that backend; 0: chunks are stored */
} stored_writer;

/* Returns whether a chunk can stay where it lies: the decoded bytes must be the chunk's content as
 * they are. */
static int can_lie(const stored_writer *w)
{
    const brc_meta *m = &w->a->meta;
    return !m->opaque && (w->from == NULL || (!brc_meta_is_variable(m) &&
                                              !brc_dtype_normalize(m->type, NULL, 0)));
}

/* Makes the item one that stays where it lies, encoded as `form` says. */
static void let_lie(const stored_writer *w, const brc_form *form, brc_write_item *item)
{
    const int is_plain = brc_chain_is_identity(form->chain);
    item->lies = w->external;
    item->chain = form->chain;
    item->spec = is_plain ? NULL : form->spec;
    item->digest = is_plain ? 0 : brc_hash_encoding(form->spec);
}

/* Lists one more item. Returns 1, or 0 at the end. */
static int list_stored(stored_writer *w, brc_write_item *item, brc_error *err)
{
    brc_meta *m = &w->a->meta;
    uint64_t corner[BRC_MAX_NDIM], chunk[BRC_MAX_NDIM];
    brc_form *form;
    brc_chunk_place at = {.place = item->place};
    int rc = pull_next(&w->pull, item->index, &item->stored, &at, err);
    item->place = at.place;
    item->offset = at.offset;
    if (rc <= 0)
        return rc;
    item->loads = !m->opaque && pull_is_later(&w->pull);
    if (m->opaque) {
        BRC_TRY(pull_now(&w->pull, item->index, &item->stored, err));
        BRC_TRY(brc_opaque_mark(&item->stored, err));
    }
    brc_grid_chunk(&m->grid, item->index, corner, chunk);
    if (w->from != NULL) {
        BRC_TRY(brc_meta_form(w->from, chunk, &form, err));
        item->owner = form;
    }
    BRC_TRY(brc_array_item(w->a, chunk, item, err));
    if (item->place.len == 0 || w->external == 0 || !can_lie(w))
        return 1;
    BRC_TRY(brc_meta_form(w->from != NULL ? w->from : m, chunk, &form, err));
    let_lie(w, form, item);
    return 1;
}

static int stored_list(void *ctx, brc_write_item *items, size_t cap, size_t *n, brc_error *err)
{
    stored_writer *w = ctx;
    size_t bytes = 0; /* that were read: a chunk may be much longer than what it decodes to */
    BRC_TRY(brc_task_step(w->a->session->repo, 0, err));
    for (*n = 0; *n < cap && bytes < BRC_WRITE_BYTES && !w->ended;) {
        int rc = list_stored(w, &items[*n], err);
        if (rc < 0)
            return rc;
        w->ended = rc == 0;
        bytes += items[*n].stored.len;
        *n += (size_t)rc;
    }
    return BRC_OK;
}

static int stored_done(void *ctx, const brc_write_item *item, brc_error *err)
{
    const stored_writer *w = ctx;
    BRC_TRY(brc_array_put_chunk(w->a, item->index, item->is_fill ? NULL : &item->id, err));
    return brc_task_step(w->a->session->repo, w->chunk_bytes, err);
}

static void stored_name(void *ctx, const brc_write_item *item, brc_error *err)
{
    const stored_writer *w = ctx;
    brc_array_name_chunk(w->a, item->index, err);
}

/* ---- encoded anew, on the pool -------------------------------- */

static int stored_load(void *ctx, brc_write_item *item, brc_error *err)
{
    const brc_chunk_source *source = ((const stored_writer *)ctx)->pull.source;
    return source->load(source->ctx, item->index, &item->stored, err);
}

/* Sets the part of a chunk outside the array to the fill value. `unit` bytes per element. */
static void pad_chunk(const stored_writer *w, const brc_write_item *item, uint8_t *data,
                      size_t unit, const uint8_t *fill)
{
    const brc_meta *m = &w->a->meta;
    uint64_t corner[BRC_MAX_NDIM], chunk[BRC_MAX_NDIM], box[BRC_MAX_NDIM];
    int64_t strides[BRC_MAX_NDIM] = {0};
    brc_grid_chunk(&m->grid, item->index, corner, chunk);
    brc_strides_packed(m->ndim, chunk, unit, strides);
    memcpy(box, chunk, sizeof(box));
    for (int i = 0; i < m->ndim; i++) {
        uint64_t inside = m->shape[i] - corner[i];
        if (inside >= chunk[i])
            continue;
        box[i] = chunk[i] - inside;
        brc_fill_box(m->ndim, box, unit, data + inside * (uint64_t)strides[i], strides, fill);
        box[i] = inside;
    }
}

static int pad_variable(const stored_writer *w, brc_write_item *item, brc_error *err)
{
    brc_span fill = {w->a->meta.fill.data, w->a->meta.fill.len};
    void *table = NULL;
    brc_buf packed = {.limit = BRC_MAX_CHUNK_BYTES};
    int rc;
    BRC_GO(brc_new_array(&table, (size_t)item->elements, sizeof(brc_span), err));
    brc_span own = {item->own.data, item->own.len};
    if (brc_elements_find(table, item->elements, own, NULL) < 0) {
        rc = brc_fail(err, BRC_ECORRUPT, "its elements are damaged");
        goto done;
    }
    pad_chunk(w, item, table, sizeof(brc_span), (const uint8_t *)&fill);
    BRC_GO(brc_elements_pack(&packed, table, item->elements, err));
    item->own.len = 0;
    rc = brc_buf_append(&item->own, packed.data, packed.len, err);
done:
    free(table);
    brc_buf_dispose(&packed);
    return rc;
}

static int is_cut(const stored_writer *w, const brc_write_item *item)
{
    uint64_t corner[BRC_MAX_NDIM], chunk[BRC_MAX_NDIM];
    brc_grid_chunk(&w->a->meta.grid, item->index, corner, chunk);
    for (int i = 0; i < w->a->meta.ndim; i++)
        if (w->a->meta.shape[i] - corner[i] < chunk[i])
            return 1;
    return 0;
}

/* Decodes a chunk as a client or an import has it, into `out`, which is empty; on any thread. */
static int decode_chunk(const brc_form *form, int is_variable, brc_scratch *scratch, brc_span bytes,
                        brc_buf *out, brc_error *err)
{
    BRC_TRY(brc_chain_decode(form->chain, scratch, bytes, NULL, out, err));
    if (!is_variable && out->len != form->bytes)
        return brc_fail(err, BRC_ECORRUPT, "it decodes to %zu bytes, not %zu", out->len,
                        form->bytes);
    return BRC_OK;
}

/* Sets item->own to the elements. Takes the bytes over if they are canonical. */
static int decode_stored(const stored_writer *w, brc_write_item *item, brc_scratch *scratch,
                         brc_error *err)
{
    const brc_form *form = item->owner;
    const brc_span bytes = {item->stored.data, item->stored.len};
    const int is_variable = brc_meta_is_variable(&w->a->meta);
    if (is_variable || item->stored.len != form->bytes || !brc_chain_is_identity(form->chain))
        return decode_chunk(form, is_variable, scratch, bytes, &item->own, err);
    brc_buf own = item->own;
    item->own = item->stored;
    item->stored = own;
    return BRC_OK;
}

static int stored_gather(void *ctx, brc_write_item *item, brc_scratch *scratch, brc_error *err)
{
    const stored_writer *w = ctx;
    const brc_dtype *type = w->a->meta.type;
    BRC_TRY(decode_stored(w, item, scratch, err));
    if (brc_meta_is_variable(&w->a->meta)) {
        if (is_cut(w, item))
            BRC_TRY(pad_variable(w, item, err));
    } else {
        pad_chunk(w, item, item->own.data, type->item_size, w->a->meta.fill.data);
        if (brc_dtype_normalize(type, NULL, 0))
            brc_dtype_normalize(type, item->own.data, (size_t)item->elements);
    }
    item->data = item->own.data;
    item->len = item->own.len;
    return BRC_OK;
}

/* ---- the flow -------------------------------- */

static int put_pulled(stored_writer *w, brc_error *err)
{
    brc_array *a = w->a;
    brc_write_ops ops = {
        .ctx = w,
        .len = a->meta.opaque ? 65536
                              : (size_t)brc_shape_count(a->meta.ndim, a->meta.grid.chunk) *
                                    brc_array_unit(a),
        .held = pull_held(&w->pull),
        .encoded = w->from == NULL,
        .list = stored_list,
        .load = stored_load,
        .gather = stored_gather,
        .done = stored_done,
        .name = stored_name,
    };
    uint64_t all;
    if (w->pull.source->at != NULL)
        BRC_TRY(brc_backend_intern(brc_array_store(a), BRC_EXTERNAL_SPEC, &w->external, err));
    brc_stored_bytes(a, &w->chunk_bytes, &all);
    brc_task task = brc_task_begin(a->session->repo, "import", all);
    int rc = brc_flow_write(&a->session->repo->pipe, brc_array_store(a), &ops, err);
    brc_task_end(a->session->repo, &task, rc);
    pull_dispose(&w->pull);
    return rc;
}

/* ==== recut ================================ */

/* Chunks that are cut otherwise than the array's: pieces of its chunks. */

typedef struct recut {
    brc_array *a;
    brc_meta *from;
    chunk_pull pull;
    brc_chunk_place at;          /* of the last chunk: pieces are stored, wherever they lie */
    uint64_t last[BRC_MAX_NDIM]; /* the index of the chunk before */
    int any;
} recut;

/* Returns the place of a piece, which is a chunk: the place of its shard if there are shards,
 * because the chunks of a shard come in sequence. */
static void place_of_chunk(const void *ctx, const uint64_t *element, uint64_t *at)
{
    const brc_grid *outer = &((const recut *)ctx)->from->outer;
    for (int i = 0; i < outer->ndim; i++)
        at[i] = brc_grid_find(outer, i, element[i]);
}

static int next_to_cut(void *ctx, brc_piece *piece, brc_buf *stored, brc_error *err)
{
    recut *r = ctx;
    const brc_grid *grid = &r->from->grid;
    const size_t bytes = sizeof(uint64_t) * (size_t)grid->ndim;
    uint64_t index[BRC_MAX_NDIM] = {0}, chunk[BRC_MAX_NDIM];
    int64_t strides[BRC_MAX_NDIM] = {0};
    brc_sel sel = {.size = sizeof(brc_sel), .ndim = grid->ndim};
    brc_form *form;
    int rc = pull_next(&r->pull, index, stored, &r->at, err);
    if (rc <= 0)
        return rc;
    BRC_TRY(pull_now(&r->pull, index, stored, err));
    brc_grid_chunk(grid, index, sel.start, chunk);
    for (int i = 0; i < grid->ndim; i++) {
        uint64_t left = grid->shape[i] - sel.start[i];
        sel.count[i] = chunk[i] < left ? chunk[i] : left;
        sel.step[i] = 1;
    }
    BRC_TRY(brc_meta_form(r->from, chunk, &form, err));
    brc_strides_packed(grid->ndim, chunk, brc_array_unit(r->a), strides);
    BRC_TRY(brc_region_init(&piece->region, r->a, &sel, NULL, strides, err));
    place_of_chunk(r, sel.start, piece->at);
    piece->chain = form->chain;
    piece->len = form->bytes;
    piece->elements = form->elements;
    piece->after = r->any && memcmp(index, r->last, bytes) == 0;
    memcpy(r->last, index, bytes);
    r->any = 1;
    return 1;
}

static void name_of_chunk(void *ctx, const brc_piece *piece, brc_error *err)
{
    const recut *r = ctx;
    uint64_t index[BRC_MAX_NDIM];
    for (int i = 0; i < r->from->ndim; i++)
        index[i] = brc_grid_find(&r->from->grid, i, piece->region.sel.start[i]);
    brc_array_name_chunk(r->a, index, err);
}

static int put_recut(brc_array *a, brc_meta *from, const brc_chunk_source *source, brc_error *err)
{
    recut r = {.a = a, .from = from, .pull = {.a = a, .m = from, .source = source}};
    brc_piece_source pieces = {
        .ctx = &r,
        .order = {.place = place_of_chunk, .ctx = &r, .uneven = !from->outer.regular},
        .held = pull_held(&r.pull),
        .next = next_to_cut,
        .name = name_of_chunk,
    };
    uint64_t chunk, all;
    for (int i = 0; i < from->ndim; i++) {
        pieces.order.axis[i] = i;
        pieces.order.per[i] = from->outer.chunk[i];
    }
    brc_stored_bytes(a, &chunk, &all);
    brc_task task = brc_task_begin(a->session->repo, "import", all);
    int rc = brc_array_assemble(a, NULL, &pieces, err);
    brc_task_end(a->session->repo, &task, rc);
    pull_dispose(&r.pull);
    brc_buf_dispose(&r.at.place);
    return rc;
}

/* ==== import ================================ */

int brc_array_put_stored(brc_array *a, const brc_chunk_source *source, brc_error *err)
{
    stored_writer w = {.a = a, .pull = {.a = a, .m = &a->meta, .source = source}};
    BRC_TRY(brc_array_begin(a, err));
    return brc_array_end(a, put_pulled(&w, err), err);
}

/* Does brc_array_put_recoded() for chunks that are cut as `from` says, within a change. */
static int put_same_grid(brc_array *a, brc_meta *from, const brc_chunk_source *source,
                         brc_error *err)
{
    stored_writer w = {.a = a, .from = from, .pull = {.a = a, .m = from, .source = source}};
    return put_pulled(&w, err);
}

static int check_source(const brc_array *a, const brc_meta *from, brc_error *err)
{
    BRC_TRY(brc_meta_must_encode(from, err));
    BRC_TRY(brc_meta_must_encode(&a->meta, err));
    if (from->ndim == a->meta.ndim && strcmp(from->type->json, a->meta.type->json) == 0 &&
        memcmp(from->shape, a->meta.shape, sizeof(uint64_t) * (size_t)from->ndim) == 0)
        return BRC_OK;
    return brc_fail(err, BRC_EINVAL, "%s has a different shape or data type than its chunks",
                    a->path);
}

static int put_recoded(brc_array *a, brc_meta *from, const brc_chunk_source *source, brc_error *err)
{
    BRC_TRY(check_source(a, from, err));
    return brc_grid_same(&from->grid, &a->meta.grid) ? put_same_grid(a, from, source, err)
                                                     : put_recut(a, from, source, err);
}

int brc_array_put_recoded(brc_array *a, const brc_json *doc, const brc_chunk_source *source,
                          brc_error *err)
{
    brc_meta from;
    BRC_TRY(brc_meta_open(&from, a->meta.registry, doc, err));
    int rc = brc_array_begin(a, err);
    if (rc == BRC_OK)
        rc = brc_array_end(a, put_recoded(a, &from, source, err), err);
    brc_meta_dispose(&from);
    return rc;
}

/* ==== put ================================ */

void brc_put_dispose(brc_put *put)
{
    for (size_t i = 0; i < put->n; i++) {
        brc_put_part *part = &((brc_put_part *)put->parts)[i];
        brc_buf_dispose(&part->room);
        brc_stored_clear(&part->at);
    }
    free(put->parts);
    memset(put, 0, sizeof(*put));
}

/* ---- preparing -------------------------------- */

static int add_put_part(brc_put *put, const uint64_t *index, int ndim, brc_put_part **out,
                    brc_error *err)
{
    BRC_TRY(brc_grow_array(&put->parts, &put->cap, put->n + 1, sizeof(brc_put_part), err));
    brc_put_part *part = &((brc_put_part *)put->parts)[put->n++];
    memset(part, 0, sizeof(*part));
    memcpy(part->index, index, (size_t)ndim * sizeof(*index));
    *out = part;
    return BRC_OK;
}

/* Describes the object of these canonical bytes. spec: of the encoding of part->stored; NULL: it
 * has none. */
static void name_part(brc_put_part *part, const brc_store *store, brc_span canonical,
                      const char *spec)
{
    brc_object *o = &part->object;
    o->kind = BRC_KIND_CHUNK;
    o->size = canonical.len;
    o->stored = part->stored.len;
    o->id = brc_hash_object(brc_store_hash(store), BRC_KIND_CHUNK, canonical.data, canonical.len);
    o->guard = brc_hash_guard(brc_store_secret(store), canonical.data, canonical.len);
    o->digest = spec != NULL ? brc_hash_encoding(spec) : 0;
    o->checksum = brc_hash_stored(&o->id, o->digest, part->stored.data, part->stored.len);
    part->is_encoded = spec != NULL;
}

/* Finds the form of the part's chunk. */
static int form_of_part(const brc_put_part *part, brc_array *a, brc_form **form, brc_error *err)
{
    uint64_t corner[BRC_MAX_NDIM], chunk[BRC_MAX_NDIM];
    brc_grid_chunk(&a->meta.grid, part->index, corner, chunk);
    return brc_meta_form(&a->meta, chunk, form, err);
}

/* Prepares a chunk that cannot be decoded here: its object is a mark and the bytes. */
static int prepare_opaque(brc_put_part *part, const brc_array *a, const brc_form *form,
                          brc_span data, brc_error *err)
{
    BRC_TRY(brc_buf_append(&part->room, data.data, data.len, err));
    BRC_TRY(brc_opaque_mark(&part->room, err));
    part->stored = (brc_span){part->room.data, part->room.len};
    name_part(part, brc_array_store(a), part->stored, form->spec);
    return BRC_OK;
}

static int prepare_part(brc_put_part *part, brc_array *a, brc_scratch *scratch, brc_span data,
                        brc_error *err)
{
    brc_buf canonical = BRC_BUF_INIT;
    brc_form *form;
    BRC_TRY(form_of_part(part, a, &form, err));
    if (a->meta.opaque)
        return prepare_opaque(part, a, form, data, err);
    int rc = decode_chunk(form, brc_meta_is_variable(&a->meta), scratch, data, &canonical, err);
    if (rc == BRC_OK) {
        part->stored = data;
        name_part(part, brc_array_store(a), (brc_span){canonical.data, canonical.len},
                  brc_chain_is_identity(form->chain) ? NULL : form->spec);
    }
    if (rc == BRC_OK && canonical.len <= BRC_COMPARE_MAX)
        part->room = canonical;
    else
        brc_buf_dispose(&canonical);
    return rc;
}

static int prepare_shard(brc_put *put, brc_array *a, brc_scratch *scratch, brc_span data,
                         brc_error *err)
{
    brc_shard_parts parts = {0};
    brc_put_part *part;
    int rc = brc_shard_split(&parts, &a->meta, scratch, put->outer, data, err);
    const brc_shard_part *items = parts.items;
    for (size_t i = 0; i < parts.n && rc == BRC_OK; i++) {
        rc = add_put_part(put, items[i].index, a->meta.ndim, &part, err);
        if (rc == BRC_OK)
            rc = brc_store_check_interrupt(brc_array_store(a), err);
        if (rc == BRC_OK)
            rc = prepare_part(part, a, scratch, items[i].bytes, err);
    }
    free(parts.items);
    return rc;
}

/* Tells whether an error is about the bytes, and not about the machine. */
static int is_about_bytes(int rc)
{
    return rc == BRC_ECORRUPT || rc == BRC_EINVAL || rc == BRC_ELIMIT || rc == BRC_EUNSUPPORTED;
}

int brc_put_prepare(brc_put *put, brc_array *a, const uint64_t *outer, brc_span data,
                    brc_error *err)
{
    brc_scratch *scratch;
    brc_put_part *part;
    brc_pipe *pipe = &a->session->repo->pipe;
    brc_put_dispose(put);
    memcpy(put->outer, outer, (size_t)a->meta.ndim * sizeof(*outer));
    put->doc = a->meta_doc;
    BRC_TRY(brc_pipe_scratch(pipe, brc_pipe_caller(pipe), &scratch, err));
    int rc = BRC_OK;
    if (a->meta.nlevels > 0)
        rc = prepare_shard(put, a, scratch, data, err);
    else if ((rc = add_put_part(put, outer, a->meta.ndim, &part, err)) == BRC_OK)
        rc = prepare_part(part, a, scratch, data, err);
    put->is_ready = rc == BRC_OK;
    if (rc == BRC_OK)
        return 1;
    brc_array_name_chunk(a, outer, err);
    return is_about_bytes(rc) ? 0 : rc;
}

/* ---- putting objects into a backend without a lock -------------------------------- */

static void describe_put(brc_stored *at, const brc_put_part *part)
{
    *at = (brc_stored){.size = sizeof(*at),
                       .id = part->object.id,
                       .sum = part->object.checksum,
                       .len = part->stored.len,
                       .data = part->stored.len > 0 ? part->stored.data : (const uint8_t *)""};
}

/* Finds the parts that are not stored yet, and the backend: NULL if it is the file itself, or has
 * no number yet, which it gets within a transaction. Within a read. */
static int find_new(brc_put *put, brc_array *a, brc_put_part **fresh, size_t *n,
                    brc_store_backend **into, int64_t *number, brc_error *err)
{
    brc_store *store = brc_array_store(a);
    brc_object there;
    brc_object *one = &there;
    *n = 0;
    *into = NULL;
    BRC_TRY(brc_array_find_backend(a, number, err));
    if (*number <= 0)
        return BRC_OK;
    BRC_TRY(brc_backend_use(store, *number, into, err));
    for (size_t i = 0; i < put->n; i++) {
        brc_put_part *part = &((brc_put_part *)put->parts)[i];
        there = (brc_object){.id = part->object.id};
        BRC_TRY(brc_objects_find(store, &one, 1, err));
        if (!there.found)
            fresh[(*n)++] = part;
    }
    return BRC_OK;
}

int brc_put_ahead(brc_put *put, brc_array *a, brc_error *err)
{
    brc_store *store = brc_array_store(a);
    brc_store_backend *into = NULL;
    void *p;
    size_t n = 0;
    int64_t number = 0;
    if (brc_store_in_write(store) || brc_store_in_bulk(store))
        return BRC_OK;
    BRC_TRY(brc_new_array(&p, put->n, sizeof(brc_put_part *), err));
    brc_put_part **fresh = p;
    int rc = brc_gc_puts_begin(store, &put->since, err);
    if (rc == BRC_OK)
        rc = brc_array_begin_read(a, err);
    if (rc == BRC_OK) {
        put->is_ready = brc_oid_cmp(&put->doc, &a->meta_doc) == 0; /* otherwise: prepare again */
        rc = put->is_ready ? find_new(put, a, fresh, &n, &into, &number, err) : BRC_OK;
        brc_array_end_read(a);
    }
    for (size_t i = 0; rc == BRC_OK && into != NULL && i < n; i++) {
        brc_stored *at = &fresh[i]->at;
        describe_put(at, fresh[i]);
        rc = brc_backend_put(into, 1, &at, err);
        fresh[i]->is_put = rc == BRC_OK;
        fresh[i]->backend = number;
    }
    free(p);
    return rc;
}

int brc_put_flush(brc_store *store, const brc_put *put, brc_error *err)
{
    brc_store_backend *into;
    for (size_t i = 0; i < put->n; i++) {
        const brc_put_part *part = &((const brc_put_part *)put->parts)[i];
        if (!part->is_put)
            continue;
        BRC_TRY(brc_backend_use(store, part->backend, &into, err));
        BRC_TRY(brc_backend_flush_puts(into, err));
    }
    return BRC_OK;
}

/* ---- storing -------------------------------- */

/* Stores new bytes where the array's new chunks go; in most cases they are there already. */
static int store_new(const brc_put *put, const brc_put_part *part, brc_array *a, brc_error *err)
{
    brc_store *store = brc_array_store(a);
    int stands = 0;
    brc_store_backend *backend;
    brc_object fresh = part->object;
    brc_stored at, *one = &at;
    brc_form *form;
    if (part->is_encoded) {
        BRC_TRY(form_of_part(part, a, &form, err));
        BRC_TRY(brc_encoding_intern(store, form->spec, &fresh.encoding, err));
    }
    BRC_TRY(brc_array_new_chunks(a, &fresh.backend, err));
    if (part->is_put && part->backend == fresh.backend)
        BRC_TRY(brc_gc_puts_stand(store, put->since, &stands, err));
    if (stands)
        return brc_object_record(store, &fresh, &part->at, err);
    BRC_TRY(brc_backend_use(store, fresh.backend, &backend, err));
    describe_put(&at, part);
    int rc = brc_backend_put(backend, 1, &one, err);
    if (rc == BRC_OK)
        rc = brc_object_record(store, &fresh, &at, err);
    brc_stored_clear(&at);
    return rc;
}

static int store_part(const brc_put *put, const brc_put_part *part, brc_array *a, brc_error *err)
{
    brc_store *store = brc_array_store(a);
    brc_object there = {.id = part->object.id}, *one = &there;
    const brc_span short_content = {part->room.data, part->room.len};
    BRC_TRY(brc_objects_find(store, &one, 1, err));
    BRC_TRY(there.found ? brc_flow_check_same(&a->session->repo->pipe, store, &part->object,
                                              short_content, &there, err)
                        : store_new(put, part, a, err));
    return brc_array_put_chunk(a, part->index, &part->object.id, err);
}

static int part_number_order(const void *a, const void *b)
{
    const uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

/* Drops the existing chunks of the shard that are not among the parts (NULL: all). */
static int drop_others(const brc_put *put, brc_array *a, const uint64_t *outer, brc_error *err)
{
    const size_t n = put != NULL ? put->n : 0;
    brc_shard_chunks there = {0};
    uint64_t index[BRC_MAX_NDIM] = {0}, *numbers = NULL;
    void *p = NULL;
    int rc;
    BRC_GO(brc_shard_chunks_find(&there, a, outer, err));
    BRC_GO(brc_new_array(&p, n, sizeof(uint64_t), err));
    numbers = p;
    for (size_t i = 0; i < n; i++)
        numbers[i] = brc_part_number(a->meta.ndim, there.first, there.count,
                                     ((brc_put_part *)put->parts)[i].index);
    if (n > 0)
        qsort(numbers, n, sizeof(*numbers), part_number_order);
    for (size_t i = 0; i < there.n; i++) {
        const brc_shard_chunk *chunk = (brc_shard_chunk *)there.items + i;
        if (n > 0 &&
            bsearch(&chunk->number, numbers, n, sizeof(*numbers), part_number_order) != NULL)
            continue;
        brc_part_index(a->meta.ndim, there.first, there.count, chunk->number, index);
        BRC_GO(brc_array_put_chunk(a, index, NULL, err));
    }
done:
    free(p);
    brc_shard_chunks_dispose(&there);
    return rc;
}

static int store_parts(const brc_put *put, brc_array *a, brc_error *err)
{
    for (size_t i = 0; i < put->n; i++) {
        const brc_put_part *part = &((const brc_put_part *)put->parts)[i];
        int rc = store_part(put, part, a, err);
        if (rc < 0) {
            brc_array_name_chunk(a, part->index, err);
            return rc;
        }
    }
    return a->meta.nlevels > 0 ? drop_others(put, a, put->outer, err) : BRC_OK;
}

int brc_put_store(const brc_put *put, brc_array *a, brc_error *err)
{
    BRC_TRY(brc_array_begin(a, err));
    return brc_array_end(a, store_parts(put, a, err), err);
}

int brc_put_drop(brc_array *a, const uint64_t *outer, brc_error *err)
{
    BRC_TRY(brc_array_begin(a, err));
    int rc = a->meta.nlevels > 0 ? drop_others(NULL, a, outer, err)
                                 : brc_array_put_chunk(a, outer, NULL, err);
    return brc_array_end(a, rc, err);
}
