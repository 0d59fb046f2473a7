/*
 * Importing with other chunks or codecs: the source's chunks are decoded into
 * slabs of whole rows of the new chunks, and the slabs written. A chunk that has no
 * file is fill value.
 */
#include <stdlib.h>
#include <string.h>

#include "../../codec/chain.h"
#include "../../zarr/repo.h"
#include "../../zarr/transfer.h"
#include "../slabs.h"
#include "zarr_dir.h"

typedef struct recode {
    brc_array *array;
    brc_tree_in *tree;
    const char *dir;
    int ndim;
    uint64_t shape[BRC_MAX_NDIM], chunk[BRC_MAX_NDIM]; /* the source's */
    brc_dtype *type;
    brc_chain *chain;
    brc_scratch *scratch;
    uint8_t *fill;
    brc_buf key, stored, decoded;
    uint8_t *slab;
} recode;

/* doc's chunk grid: regular, with `ndim` axes. */
static int doc_chunk_shape(uint64_t *chunk, int ndim, const brc_json *doc, brc_error *err)
{
    const brc_json *grid = brc_json_member(doc, "chunk_grid");
    const brc_json *shape = brc_json_member(brc_json_member(grid, "configuration"), "chunk_shape");

    if (!brc_json_is(brc_json_member(grid, "name"), "regular"))
        return brc_fail(err, BRC_EUNSUPPORTED,
                        "only a regular chunk grid can be read to re-encode its chunks");
    if (brc_json_count(shape) != (size_t)ndim)
        return brc_fail(err, BRC_EINVAL, "chunk_grid: chunk_shape does not have %d extents", ndim);
    for (int i = 0; i < ndim; i++)
        if (!brc_json_uint(brc_json_item(shape, (size_t)i), UINT64_MAX, &chunk[i]) || chunk[i] == 0)
            return brc_fail(
                err, BRC_EINVAL,
                "chunk_grid: chunk_shape has an extent that is not a whole number above 0");
    return BRC_OK;
}

static int open_source(recode *r, const brc_json *doc, const brc_registry *reg, brc_error *err)
{
    const brc_array_info *info = brc_array_describe(r->array);
    r->ndim = info->ndim;
    memcpy(r->shape, info->shape, sizeof(uint64_t) * (size_t)r->ndim);
    BRC_TRY(doc_chunk_shape(r->chunk, r->ndim, doc, err));
    BRC_TRY(brc_dtype_open(&r->type, reg, brc_json_member(doc, "data_type"), err));
    if (r->type->item_size == 0)
        return brc_fail(err, BRC_EUNSUPPORTED,
                        "chunks of %s cannot be re-encoded: its elements have no fixed size",
                        r->type->json);
    BRC_TRY(brc_new((void **)&r->fill, r->type->item_size, err));
    memcpy(r->fill, info->fill, r->type->item_size);
    brc_dtype_native(r->type, r->fill, r->type->item_size); /* canonical, for the codecs */
    BRC_TRY(brc_chain_open(&r->chain, reg, brc_json_member(doc, "codecs"), r->ndim, r->chunk,
                           r->type, (brc_span){ r->fill, r->type->item_size }, err));
    brc_dtype_native(r->type, r->fill, r->type->item_size);
    return brc_scratch_new(&r->scratch, err);
}

/* The chunk's elements, in native order, to r->decoded; *there 0 where it has no
 * file. */
static int read_chunk(recode *r, const uint64_t *index, int *there, brc_error *err)
{
    char *path = NULL, *label = NULL;
    int kind, rc;

    r->key.len = r->stored.len = r->decoded.len = 0;
    BRC_GO(brc_chunk_key_format(r->array, index, &r->key, err));
    BRC_GO(brc_buf_terminate(&r->key, err));
    BRC_GO(brc_tree_path(&path, r->dir, (const char *)r->key.data, err));
    BRC_GO(r->tree->kind(r->tree, path, &kind, err));
    *there = kind != BRC_ENTRY_NONE;
    if (!*there)
        goto done;
    BRC_GO(brc_tree_in_label(&label, r->tree, path, err));
    BRC_GO(r->tree->read(r->tree, path, BRC_CHUNK_FILE_MAX, &r->stored, err));
    rc = brc_chain_decode(r->chain, r->scratch, (brc_span){ r->stored.data, r->stored.len },
                          &r->decoded, err);
    if (rc < 0)
        brc_context(err, "%s", label);
    else
        brc_dtype_native(r->type, r->decoded.data, r->decoded.len);
done:
    free(label);
    free(path);
    return rc;
}

/* Copies what the slab and the chunk share; *any is set where there was a file. */
static int copy_chunk(recode *r, const brc_sel *slab, const uint64_t *index, int *any,
                      brc_error *err)
{
    int64_t to[BRC_MAX_NDIM] = { 0 }, from[BRC_MAX_NDIM] = { 0 };
    size_t item = r->type->item_size, dst = 0, src = 0;
    brc_overlap part;
    int there;

    BRC_TRY(brc_task_step(brc_session_repo(brc_array_session(r->array)), 0, err));
    BRC_TRY(read_chunk(r, index, &there, err));
    if (!there || !brc_overlap_of(&part, slab, r->shape, r->chunk, index))
        return BRC_OK;
    brc_strides_packed(r->ndim, slab->count, item, to);
    brc_strides_packed(r->ndim, r->chunk, item, from);
    for (int i = 0; i < r->ndim; i++) {
        dst += (size_t)part.in_sel[i] * (size_t)to[i];
        src += (size_t)part.in_chunk[i] * (size_t)from[i];
    }
    brc_copy_box(r->ndim, part.count, item, r->slab + dst, to, r->decoded.data + src, from);
    *any = 1;
    return BRC_OK;
}

static int fill_slab(recode *r, const brc_slabs *slabs, int *any, brc_error *err)
{
    const brc_sel *sel = &slabs->sel;
    uint64_t first[BRC_MAX_NDIM], count[BRC_MAX_NDIM], step[BRC_MAX_NDIM] = { 0 },
                                                       index[BRC_MAX_NDIM];

    for (int i = 0; i < r->ndim; i++) {
        first[i] = sel->start[i] / r->chunk[i];
        count[i] = (sel->start[i] + sel->count[i] - 1) / r->chunk[i] - first[i] + 1;
    }
    *any = 0;
    brc_fill_run(r->slab, slabs->len / r->type->item_size, r->type->item_size, r->fill);
    do {
        for (int i = 0; i < r->ndim; i++)
            index[i] = first[i] + step[i];
        BRC_TRY(copy_chunk(r, sel, index, any, err));
    } while (brc_index_next(r->ndim, step, count));
    return BRC_OK;
}

static int recode_slabs(recode *r, brc_error *err)
{
    brc_slabs slabs;
    brc_sel all;
    int any;

    brc_sel_all(&all, r->array);
    brc_slabs_start(&slabs, &all, brc_array_describe(r->array)->chunk, r->type->item_size, 0,
                    BRC_SLAB_BYTES);
    if (slabs.done)
        return BRC_OK;
    BRC_TRY(brc_new_big((void **)&r->slab, slabs.max_len, err));
    while (brc_slabs_next(&slabs)) {
        BRC_TRY(fill_slab(r, &slabs, &any, err));
        if (any)
            BRC_TRY(brc_array_write(r->array, &slabs.sel, r->slab, slabs.len, err));
        else
            BRC_TRY(brc_task_step(brc_session_repo(brc_array_session(r->array)), slabs.len, err));
    }
    return BRC_OK;
}

int brc_zarr_recode(brc_array *a, const brc_json *doc, const brc_registry *reg, brc_tree_in *tree,
                    const char *dir, brc_error *err)
{
    recode r = { .array = a, .tree = tree, .dir = dir };
    char *label = NULL;
    int rc;

    BRC_GO(brc_tree_in_label(&label, tree, dir, err));
    rc = open_source(&r, doc, reg, err);
    if (rc < 0)
        brc_context(err, "%s", label);
    else
        rc = recode_slabs(&r, err);
done:
    free(label);
    brc_scratch_free(r.scratch);
    brc_chain_free(r.chain);
    brc_dtype_free(r.type);
    brc_buf_dispose(&r.key);
    brc_buf_dispose(&r.stored);
    brc_buf_dispose(&r.decoded);
    free(r.fill);
    free(r.slab);
    return rc;
}
