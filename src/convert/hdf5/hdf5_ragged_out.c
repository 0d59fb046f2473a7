/* Groups that stand for one dataset, see hdf5_ragged.h. */
#include <stdlib.h>
#include <string.h>

#include "../../codec/registry.h"
#include "hdf5_out.h"
#include "hdf5_ragged.h"

typedef struct brc_hdf5_ragged {
    const brc_hdf5_out *out;
    const brc_node_out *group;
    const brc_json *note; /* the member BRC_HDF5_RAGGED            */
    char *inner;          /* the dataset's path in the file        */
    hid_t file_type, plist, space, id;
    brc_hdf5_tree tree;
    brc_ragged type;
    brc_ragged_out *arrays;
    int ndim, is_null, chunked;
    uint64_t shape[BRC_MAX_NDIM], chunk[BRC_MAX_NDIM];
} brc_hdf5_ragged;

static int ragged_not_written(const brc_hdf5_ragged *d, const char *what, brc_error *err)
{
    return brc_hdf5_fail(err, BRC_EIO, "%s: %s", d->group->path, what);
}

static brc_hdf5_writer ragged_writer(const brc_hdf5_ragged *d, brc_arena *arena)
{
    const brc_json *attrs = brc_json_member(d->group->doc, "attributes");
    const char *at = NULL;
    if (!brc_json_text(brc_json_member(brc_json_member(attrs, BRC_HDF5_GROUP_NOTE), "at"), &at))
        at = NULL;
    return (brc_hdf5_writer){ d->out, d->inner, at, d->group->path, arena };
}

/* ---- which groups -------------------------------- */

static const brc_json *ragged_note(const brc_node_out *node)
{
    const brc_json *attrs = brc_json_member(node->doc, "attributes");
    return node->meta
               ? NULL
               : brc_json_member(brc_json_member(attrs, BRC_HDF5_GROUP_NOTE), BRC_HDF5_RAGGED);
}

/* A list of the note, of ndim numbers: 1 if it is one. null: UINT64_MAX. */
static int noted_numbers(const brc_json *list, int ndim, uint64_t *out)
{
    int i = 0;
    if (brc_json_kind(list) != BRC_JSON_ARRAY || brc_json_count(list) != (size_t)ndim)
        return 0;
    for (const brc_json *item = brc_json_first(list); item; item = brc_json_next(item), i++) {
        out[i] = UINT64_MAX;
        if (brc_json_kind(item) != BRC_JSON_NULL && !brc_json_uint(item, INT64_MAX, &out[i]))
            return 0;
    }
    return 1;
}

static int bad_ragged_note(const brc_hdf5_ragged *d, const char *member, brc_error *err)
{
    return brc_fail(err, BRC_EUNSUPPORTED,
                    "%s: \"%s\" of its attribute " BRC_HDF5_GROUP_NOTE
                    " is not what an import makes: remove that attribute to export a group",
                    d->group->path, member);
}

static int read_noted_shape(brc_hdf5_ragged *d, brc_error *err)
{
    const brc_json *shape = brc_json_member(d->note, "shape");
    size_t ndim = brc_json_count(shape);
    d->is_null = brc_json_is(brc_json_member(d->note, "space"), "null");
    if (d->is_null) {
        d->ndim = 1;
        return BRC_OK;
    }
    if (ndim > BRC_MAX_NDIM || !noted_numbers(shape, (int)ndim, d->shape))
        return bad_ragged_note(d, "shape", err);
    d->ndim = (int)ndim;
    const brc_json *chunk = brc_json_member(d->note, "chunk");
    d->chunked = ndim > 0 && noted_numbers(chunk, d->ndim, d->chunk);
    for (int i = 0; i < d->ndim; i++)
        if (d->chunked && (d->chunk[i] == 0 || d->chunk[i] > UINT32_MAX))
            return bad_ragged_note(d, "chunk", err);
    return BRC_OK;
}

static int read_noted_type(brc_hdf5_ragged *d, brc_error *err)
{
    brc_error why = BRC_ERROR_INIT;
    const char *label = d->group->path;
    int rc = brc_hdf5_tree_make(&d->file_type, d->out->reg, brc_json_member(d->note, "type"), label,
                                &why);
    if (rc == BRC_OK)
        rc = brc_hdf5_tree_read(&d->tree, d->out->reg, d->file_type, 1, label, &why);
    if (rc == BRC_ENOMEM)
        return brc_nomem(err);
    if (rc < 0 || d->tree.kind == BRC_HDF5_LEAF)
        return bad_ragged_note(d, "type", err);
    return brc_hdf5_ragged_of(&d->type, &d->tree, err);
}

/* A group by itself is a dataset in the file's root under its own name. */
static int name_dataset(brc_hdf5_ragged *d, brc_error *err)
{
    if (*d->group->inner)
        return brc_dup(&d->inner, d->group->inner, err);
    const char *slash = strrchr(d->group->path, '/');
    return brc_path_unescape(&d->inner, slash && slash[1] ? slash + 1 : "data", BRC_NAMES_HDF5,
                             err);
}

static int open_ragged(brc_hdf5_out *out, const brc_node_out *group, const brc_json *note,
                       brc_error *err)
{
    BRC_TRY(brc_grow_array((void **)&out->ragged, &out->ragged_cap, out->nragged + 1,
                           sizeof(*out->ragged), err));
    brc_hdf5_ragged *d;
    BRC_TRY(brc_new((void **)&d, sizeof(*d), err)); /* what is made of it points to it */
    out->ragged[out->nragged++] = d;
    *d = (brc_hdf5_ragged){ .out = out, .group = group, .note = note };
    d->file_type = d->plist = d->space = d->id = BRC_HDF5_NONE;
    d->tree.memory = d->tree.type.memory = BRC_HDF5_NONE;
    BRC_TRY(name_dataset(d, err));
    BRC_TRY(read_noted_shape(d, err));
    BRC_TRY(read_noted_type(d, err));
    return brc_ragged_out_open(&d->arrays, out->convert, group, &d->type, BRC_HDF5_GROUP_NOTE,
                               d->ndim, d->shape, err);
}

int brc_hdf5_ragged_find(brc_hdf5_out *out, brc_error *err)
{
    for (size_t i = 0; i < brc_convert_nodes(out->convert); i++) {
        const brc_node_out *node = brc_convert_node(out->convert, i);
        const brc_json *note = ragged_note(node);
        if (!note)
            continue;
        BRC_TRY(open_ragged(out, node, note, err));
        i += brc_ragged_out_nodes(out->ragged[out->nragged - 1]->arrays);
    }
    return BRC_OK;
}

static int compare_ragged(const void *key, const void *item)
{
    size_t number = *(const size_t *)key;
    const brc_hdf5_ragged *d = *(brc_hdf5_ragged *const *)item;
    if (number < d->group->number)
        return -1;
    return number > d->group->number + brc_ragged_out_nodes(d->arrays);
}

brc_hdf5_ragged *brc_hdf5_ragged_of_node(const brc_hdf5_out *out, const brc_node_out *node)
{
    brc_hdf5_ragged **found = out->nragged == 0 ? NULL
                                                : bsearch(&node->number, out->ragged, out->nragged,
                                                          sizeof(*out->ragged), compare_ragged);
    return found ? *found : NULL;
}

int brc_hdf5_ragged_is_group(const brc_hdf5_ragged *ragged, const brc_node_out *node)
{
    return ragged->group == node;
}

const char *brc_hdf5_ragged_inner(const brc_hdf5_ragged *ragged)
{
    return ragged->inner;
}

void brc_hdf5_ragged_close(brc_hdf5_out *out)
{
    for (size_t i = 0; i < out->nragged; i++) {
        brc_hdf5_ragged *d = out->ragged[i];
        brc_ragged_out_free(d->arrays);
        brc_ragged_free(&d->type, 0);
        brc_hdf5_tree_close(&d->tree);
        brc_hdf5_close(d->id);
        brc_hdf5_close(d->space);
        brc_hdf5_close(d->plist);
        brc_hdf5_close(d->file_type);
        free(d->inner);
        free(d);
    }
    free(out->ragged);
}

/* ---- the dataset -------------------------------- */

/* Room for growth as noted, for which HDF5 asks for chunks; whole chunks fit in any case. */
static int make_ragged_space(brc_hdf5_ragged *d, brc_error *err)
{
    hsize_t shape[BRC_MAX_NDIM], limit[BRC_MAX_NDIM];
    uint64_t most[BRC_MAX_NDIM];
    int grows = d->chunked && noted_numbers(brc_json_member(d->note, "maxshape"), d->ndim, most);
    for (int i = 0; i < d->ndim; i++) {
        shape[i] = limit[i] = d->shape[i];
        if (grows && most[i] > shape[i])
            limit[i] = most[i] == UINT64_MAX ? H5S_UNLIMITED : most[i];
        if (d->chunked && limit[i] < d->chunk[i])
            limit[i] = d->chunk[i];
    }
    d->space = d->is_null     ? H5Screate(H5S_NULL)
               : d->ndim == 0 ? H5Screate(H5S_SCALAR)
                              : H5Screate_simple(d->ndim, shape, limit);
    return d->space < 0 ? ragged_not_written(d, "its shape cannot be made in HDF5", err) : BRC_OK;
}

static int set_ragged_chunks(const brc_hdf5_ragged *d, brc_error *err)
{
    hsize_t chunk[BRC_MAX_NDIM];
    if (!d->chunked)
        return BRC_OK;
    for (int i = 0; i < d->ndim; i++)
        chunk[i] = d->chunk[i];
    return H5Pset_chunk(d->plist, d->ndim, chunk) < 0
               ? ragged_not_written(d, "HDF5 has no chunks of this shape", err)
               : BRC_OK;
}

static int set_ragged_fill(const brc_hdf5_ragged *d, brc_error *err)
{
    const brc_json *fill = brc_json_member(d->note, "fill");
    brc_arena arena = BRC_ARENA_INIT;
    brc_hdf5_writer writer = ragged_writer(d, &arena);
    uint8_t *element;
    if (!fill)
        return BRC_OK;
    BRC_TRY(brc_new((void **)&element, d->tree.size, err));
    int rc = brc_hdf5_value_read(&writer, &d->tree, fill, element, err);
    if (rc == 0)
        rc = bad_ragged_note(d, "fill", err);
    else if (rc == 1)
        rc = H5Pset_fill_value(d->plist, d->tree.memory, element) < 0
                 ? ragged_not_written(d, "its fill value cannot be written", err)
                 : BRC_OK;
    free(element);
    brc_arena_dispose(&arena);
    return rc;
}

static int note_ragged_axes(brc_hdf5_out *out, const brc_hdf5_ragged *d, brc_error *err)
{
    const brc_node_out *leaf = brc_ragged_out_leaf(d->arrays);
    const brc_json *attrs = brc_json_member(d->group->doc, "attributes");
    const brc_json *names =
        leaf ? brc_json_member(leaf->doc, "dimension_names") : brc_json_member(d->note, "names");
    int scales = !d->is_null && !brc_json_member(attrs, "CLASS") && !brc_json_member(attrs, "NAME");
    if (brc_json_kind(names) != BRC_JSON_ARRAY || d->is_null || d->ndim == 0)
        names = NULL;
    return brc_hdf5_item_add(out, d->inner, d->ndim, d->shape, names, scales, err);
}

int brc_hdf5_ragged_make(brc_hdf5_out *out, brc_hdf5_ragged *d, brc_error *err)
{
    brc_hdf5_writer writer = ragged_writer(d, NULL);
    BRC_TRY(brc_hdf5_type_committed(&writer, &d->file_type, brc_json_member(d->note, "committed"),
                                    err));
    d->plist = H5Pcreate(H5P_DATASET_CREATE);
    if (d->plist < 0 || H5Pset_obj_track_times(d->plist, 0) < 0)
        return ragged_not_written(d, "it cannot be made in HDF5", err);
    BRC_TRY(make_ragged_space(d, err));
    BRC_TRY(set_ragged_chunks(d, err));
    BRC_TRY(set_ragged_fill(d, err));
    d->id = H5Dcreate2(out->id, d->inner, d->file_type, d->space, out->link_names, d->plist,
                       H5P_DEFAULT);
    if (d->id < 0)
        return ragged_not_written(d, "it cannot be made in HDF5", err);
    return note_ragged_axes(out, d, err);
}

/* ---- elements -------------------------------- */

static int place_reference(const brc_hdf5_ragged *d, int is_region, const char *text, size_t len,
                           void *to, brc_error *err)
{
    brc_hdf5_writer writer = ragged_writer(d, NULL);
    int rc = strlen(text) == len ? brc_hdf5_reference_put(&writer, is_region, text, to, err) : 0;
    if (rc == 0)
        return brc_fail(err, BRC_EUNSUPPORTED,
                        "%s: its element \"%.200s\" is a reference to what is not in this export: "
                        "export the group that holds both, or make the element empty",
                        d->group->path, text);
    return rc < 0 ? rc : BRC_OK;
}

static int place_item(void *ctx, const brc_ragged *leaf, const uint8_t *item, size_t len, void *to,
                      brc_arena *arena, brc_error *err)
{
    const brc_hdf5_ragged *d = ctx;
    const brc_hdf5_tree *tree = leaf->own;
    hvl_t list = { len, len > 0 ? (void *)(uintptr_t)item : NULL };
    (void)arena;
    switch (tree->type.kind) {
    case BRC_HDF5_FIXED:
        memcpy(to, item, len);
        if (tree->type.swap)
            brc_dtype_swap(tree->dtype, to, to, 1);
        return BRC_OK;
    case BRC_HDF5_STRING:
        if (len > 0 && memchr(item, 0, len))
            return brc_fail(err, BRC_EUNSUPPORTED,
                            "%s: an element has U+0000, which HDF5's strings cannot have",
                            d->group->path);
        memcpy(to, &item, sizeof(item));
        return BRC_OK;
    case BRC_HDF5_BYTES:
        memcpy(to, &list, sizeof(list));
        return BRC_OK;
    default:
        return place_reference(d, tree->type.kind == BRC_HDF5_REGION, (const char *)item, len, to,
                               err);
    }
}

static int write_elements(void *ctx, const brc_sel *box, const void *elements, brc_error *err)
{
    const brc_hdf5_ragged *d = ctx;
    hid_t memory = brc_hdf5_select(d->space, d->ndim, box);
    int rc = BRC_OK;
    if (memory < 0 || H5Dwrite(d->id, d->tree.memory, memory, d->ndim > 0 ? d->space : H5S_ALL,
                               H5P_DEFAULT, elements) < 0)
        rc = ragged_not_written(d, "its elements cannot be written", err);
    brc_hdf5_close(memory);
    return rc;
}

int brc_hdf5_ragged_put(brc_hdf5_ragged *ragged, const brc_node_out *array, const brc_sel *box,
                        const void *data, size_t len, brc_error *err)
{
    return brc_ragged_out_put(ragged->arrays, array, box, data, len, err);
}

int brc_hdf5_ragged_end(brc_hdf5_ragged *d, const brc_node_out *array, brc_error *err)
{
    brc_ragged_writer writer = { d->chunked ? d->chunk : NULL, d, place_item, write_elements };
    if (array->number != d->group->number + brc_ragged_out_nodes(d->arrays))
        return BRC_OK;
    BRC_TRY(brc_ragged_out_write(d->arrays, &writer, err));
    hid_t id = d->id;
    d->id = BRC_HDF5_NONE;
    return H5Dclose(id) < 0 ? ragged_not_written(d, "its elements cannot be written", err) : BRC_OK;
}
