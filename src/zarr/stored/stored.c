/* Takes over stored chunks: as they are, with another encoding, or, if they are cut differently, as
 * pieces of the array's chunks. */
#include "stored.h"

#include <stdlib.h>
#include <string.h>

#include "../../base/alloc.h"
#include "../../flow/write.h"
#include "../array/chunk_cursor.h"
#include "../array/chunk_pairs.h"
#include "../array/element_span.h"
#include "../transfer.h"
#include "assembly.h"

static int put_same_grid(brc_array *a, brc_meta *from, const brc_chunk_source *source,
                         brc_error *err);

/* ==== stored recode ================================ */

typedef struct recut {
    brc_array *a;
    brc_meta *from;
    brc_chunk_pull pull;
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
    int rc = brc_chunk_pull_next(&r->pull, index, stored, err);
    if (rc <= 0)
        return rc;
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
        .held = brc_chunk_pull_held(&r.pull),
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
    brc_chunk_pull_dispose(&r.pull);
    return rc;
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

/* ==== stored in ================================ */

/* Stored chunks that are taken over on import: kept as they come, or encoded again. */

typedef struct stored_writer {
    brc_array *a;
    brc_meta *from; /* describes the chunks; NULL: the array does, and the bytes are kept */
    brc_chunk_pull pull;
    uint64_t chunk_bytes;
    int ended;
} stored_writer;

/* Lists one more item. Returns 1, or 0 at the end. */
static int list_stored(stored_writer *w, brc_write_item *item, brc_error *err)
{
    brc_meta *m = &w->a->meta;
    uint64_t corner[BRC_MAX_NDIM], chunk[BRC_MAX_NDIM];
    brc_form *form;
    int rc = brc_chunk_pull_next(&w->pull, item->index, &item->stored, err);
    if (rc <= 0)
        return rc;
    if (m->opaque)
        BRC_TRY(brc_opaque_mark(&item->stored, err));
    brc_grid_chunk(&m->grid, item->index, corner, chunk);
    if (w->from != NULL) {
        BRC_TRY(brc_meta_form(w->from, chunk, &form, err));
        item->owner = form;
    }
    BRC_TRY(brc_array_item(w->a, chunk, item, err));
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
    BRC_TRY(brc_array_put_chunk(w->a, item->index, item->is_fill ? NULL : &item->id, err));
    return brc_task_step(w->a->session->repo, w->chunk_bytes, err);
}

static void stored_name(void *ctx, const brc_write_item *item, brc_error *err)
{
    const stored_writer *w = ctx;
    brc_array_name_chunk(w->a, item->index, err);
}

void brc_stored_bytes(const brc_array *a, uint64_t *chunk, uint64_t *all)
{
    const brc_meta *m = &a->meta;
    size_t item = m->type != NULL && m->type->item_size > 0 ? m->type->item_size : 1;
    if (!brc_shape_bytes(m->ndim, m->grid.chunk, item, chunk))
        *chunk = 0;
    if (!brc_shape_bytes(m->ndim, a->info.shape, item, all))
        *all = 0;
}

/* ---- encoded anew, on the pool -------------------------------- */

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

/* Decodes a chunk. Takes the bytes over if they are canonical and elements have a fixed size. */
static int decode_stored(const stored_writer *w, brc_write_item *item, brc_scratch *scratch,
                         brc_error *err)
{
    const brc_form *form = item->owner;
    if (brc_chain_is_identity(form->chain) && !brc_meta_is_variable(&w->a->meta)) {
        brc_buf own = item->own;
        item->own = item->stored;
        item->stored = own;
        return BRC_OK;
    }
    BRC_TRY(brc_buf_reserve(&item->own, form->bytes, err));
    return brc_chain_decode(form->chain, scratch, (brc_span){item->stored.data, item->stored.len},
                            &item->own, err);
}

static int stored_gather(void *ctx, brc_write_item *item, brc_scratch *scratch, brc_error *err)
{
    const stored_writer *w = ctx;
    const brc_form *form = item->owner;
    const brc_dtype *type = w->a->meta.type;
    BRC_TRY(decode_stored(w, item, scratch, err));
    if (brc_meta_is_variable(&w->a->meta)) {
        if (is_cut(w, item))
            BRC_TRY(pad_variable(w, item, err));
    } else {
        if (item->own.len != form->bytes)
            return brc_fail(err, BRC_ECORRUPT, "it decodes to %zu bytes, not %zu", item->own.len,
                            form->bytes);
        pad_chunk(w, item, item->own.data, type->item_size, w->a->meta.fill.data);
        if (brc_dtype_normalizes(type))
            brc_dtype_normalize(type, item->own.data, (size_t)item->elements);
    }
    item->data = item->own.data;
    item->len = item->own.len;
    return BRC_OK;
}

/* ---- the functions -------------------------------- */

static int put_pulled(stored_writer *w, brc_error *err)
{
    brc_array *a = w->a;
    brc_write_ops ops = {
        .ctx = w,
        .len = a->meta.opaque ? 65536
                              : (size_t)brc_shape_count(a->meta.ndim, a->meta.grid.chunk) *
                                    brc_array_unit(a),
        .held = brc_chunk_pull_held(&w->pull),
        .encoded = w->from == NULL,
        .list = stored_list,
        .gather = stored_gather,
        .done = stored_done,
        .name = stored_name,
    };
    uint64_t all;
    brc_stored_bytes(a, &w->chunk_bytes, &all);
    brc_task task = brc_task_begin(a->session->repo, "import", all);
    int rc = brc_flow_write(&a->session->repo->pipe, brc_array_store(a), &ops, err);
    brc_task_end(a->session->repo, &task, rc);
    brc_chunk_pull_dispose(&w->pull);
    return rc;
}

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
