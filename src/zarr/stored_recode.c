/* Stored chunks of another encoding that are taken over: where they are cut the same one by
 * one, else as pieces of the array's chunks. */
#include <string.h>

#include "assembly.h"
#include "chunk_pull.h"
#include "stored_chunk.h"

typedef struct recut {
    brc_array *a;
    brc_meta *from;
    brc_chunk_pull pull;
    uint64_t last[BRC_MAX_NDIM]; /* index of the chunk before */
    int any;
} recut;

/* Pieces are chunks; their place is that of the shard where there are shards, for these come
 * one after the other. */
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
    return brc_grid_same(&from->grid, &a->meta.grid) ? brc_put_same_grid(a, from, source, err)
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
