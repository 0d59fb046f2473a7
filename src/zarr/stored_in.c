/* Stored chunks that are taken over on import. */
#include "transfer.h"

#include <stdlib.h>
#include <string.h>

#include "../base/alloc.h"
#include "../flow/write.h"
#include "array.h"
#include "stored_chunk.h"
#include "opaque.h"
#include "shard.h"

typedef struct stored_writer {
    brc_array *a;
    const brc_chunk_source *source;
    uint64_t n, chunk_bytes;
    int ended;
    uint64_t *indexes;      /* ndim numbers an item, by number % window */
    brc_buf shard;          /* the one that is being handed on in parts */
    brc_shard_parts parts;
    size_t next_part;
} stored_writer;

/* More than there are items in the flow's window. */
#define INDEX_WINDOW 65536

static uint64_t *stored_index(const stored_writer *w, const brc_write_item *item)
{
    return w->indexes + item->number % INDEX_WINDOW * (uint64_t)w->a->meta.ndim;
}

/* The next stored chunk: what the source gives, or a part of the shard that it gave. */
static int stored_take(stored_writer *w, uint64_t *index, brc_buf *stored, brc_error *err)
{
    const brc_meta *m = &w->a->meta;
    uint64_t outer[BRC_MAX_NDIM] = {0};
    brc_pipe *pipe = &w->a->session->repo->pipe;
    brc_scratch *scratch;
    if (m->nlevels == 0)
        return w->source->next(w->source->ctx, index, stored, err);
    while (w->next_part == w->parts.n) {
        w->shard.len = 0;
        int rc = w->source->next(w->source->ctx, outer, &w->shard, err);
        if (rc <= 0)
            return rc;
        BRC_TRY(brc_pipe_scratch(pipe, brc_pipe_caller(pipe), &scratch, err));
        rc = brc_shard_split(&w->parts, m, scratch, outer,
                             (brc_span){w->shard.data, w->shard.len}, err);
        if (rc < 0) {
            brc_array_name_chunk(w->a, outer, err);
            return rc;
        }
        w->next_part = 0;
    }
    const brc_shard_part *part = &((brc_shard_part *)w->parts.items)[w->next_part++];
    memcpy(index, part->index, (size_t)m->ndim * sizeof(*index));
    BRC_TRY(brc_buf_append(stored, part->bytes.data, part->bytes.len, err));
    return 1;
}

/* 1 with one more item, 0 at the end. */
static int list_stored(stored_writer *w, brc_write_item *item, brc_error *err)
{
    const brc_meta *m = &w->a->meta;
    uint64_t corner[BRC_MAX_NDIM], chunk[BRC_MAX_NDIM];
    brc_form *form;
    item->number = w->n;
    int rc = stored_take(w, stored_index(w, item), &item->stored, err);
    if (rc <= 0)
        return rc;
    w->n++;
    if (m->opaque)
        BRC_TRY(brc_opaque_mark(&item->stored, err));
    brc_grid_chunk(&m->grid, stored_index(w, item), corner, chunk);
    BRC_TRY(brc_array_form(w->a, chunk, &form, &item->encoding, err));
    item->chain = form->chain;
    item->digest = form->digest;
    item->elements = form->elements;
    return 1;
}

static int stored_list(void *ctx, brc_write_item *items, size_t cap, size_t *n, brc_error *err)
{
    stored_writer *w = ctx;
    BRC_TRY(brc_task_step(w->a->session->repo, 0, err));
    for (*n = 0; *n < cap && !w->ended;) {
        int rc = list_stored(w, &items[*n], err);
        if (rc < 0)
            return rc;
        w->ended = rc == 0;
        *n += (size_t)rc;
    }
    return BRC_OK;
}

static int stored_done(void *ctx, const brc_write_item *item, brc_error *err)
{
    const stored_writer *w = ctx;
    BRC_TRY(brc_array_put_chunk(w->a, stored_index(w, item), item->is_fill ? NULL : &item->id,
                                err));
    return brc_task_step(w->a->session->repo, w->chunk_bytes, err);
}

static void stored_name(void *ctx, const brc_write_item *item, brc_error *err)
{
    const stored_writer *w = ctx;
    brc_array_name_chunk(w->a, stored_index(w, item), err);
}

/* Decoded bytes of a whole chunk, about, and of the whole array. */
void brc_stored_bytes(const brc_array *a, uint64_t *chunk, uint64_t *all)
{
    const brc_meta *m = &a->meta;
    size_t item = m->type != NULL && m->type->item_size > 0 ? m->type->item_size : 1;
    if (!brc_shape_bytes(m->ndim, m->grid.chunk, item, chunk))
        *chunk = 0;
    if (!brc_shape_bytes(m->ndim, a->info.shape, item, all))
        *all = 0;
}

static int put_stored(brc_array *a, const brc_chunk_source *source, brc_error *err)
{
    stored_writer w = {.a = a, .source = source};
    void *p;
    size_t ndim = (size_t)(a->meta.ndim > 0 ? a->meta.ndim : 1);
    BRC_TRY(brc_new_array(&p, INDEX_WINDOW * ndim, sizeof(uint64_t), err));
    w.indexes = p;
    brc_write_ops ops = {
        .ctx = &w,
        .len = a->meta.opaque ? 65536
                              : (size_t)brc_shape_count(a->meta.ndim, a->meta.grid.chunk) *
                                    brc_array_unit(a),
        .fill = brc_meta_absent_chunk(&a->meta),
        .encoded = 1,
        .list = stored_list,
        .done = stored_done,
        .name = stored_name,
    };
    uint64_t all;
    brc_stored_bytes(a, &w.chunk_bytes, &all);
    brc_task task = brc_task_begin(a->session->repo, "import", all);
    int rc = brc_flow_write(&a->session->repo->pipe, brc_array_store(a), &ops, err);
    brc_task_end(a->session->repo, &task, rc);
    brc_buf_dispose(&w.shard);
    free(w.parts.items);
    free(p);
    return rc;
}

int brc_array_put_stored(brc_array *a, const brc_chunk_source *source, brc_error *err)
{
    BRC_TRY(brc_array_begin(a, err));
    return brc_array_end(a, put_stored(a, source, err), err);
}
