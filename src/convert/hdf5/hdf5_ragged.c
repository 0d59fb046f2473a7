#include <stdlib.h>
#include <string.h>

#include "../../codec/registry.h"
#include "../lib/ragged.h"
#include "hdf5_in.h"
#include "hdf5_netcdf.h"
#include "hdf5_out.h"
#include "hdf5_tree.h"

/*
 * Imports a dataset whose type is not one data type of Zarr's as a group, and exports the group:
 * see ../lib/ragged.h.
 *
 * The group has the dataset's attributes. Its note (BRC_HDF5_GROUP_NOTE) is that of a group with
 * the member
 *
 *   "dataset": {
 *     "type": TREE               as in hdf5_tree.h
 *     "shape": [n, ...]          of the dataset
 *     "maxshape": [n or null, ...], "chunk": [n, ...], "space": "null", "committed": path
 *     "names": [text or null, ...]   of the axes
 *     "fill": value              as JSON, see brc_hdf5_value_print()
 *   }
 */

#define BRC_HDF5_RAGGED "dataset" /* a member of the note */

/* ==== hdf5 ragged ================================ */

_Static_assert(sizeof(brc_ragged_list) == sizeof(hvl_t), "lists lie in memory as HDF5 has them");

static int fill_ragged(brc_ragged *out, const brc_hdf5_tree *tree, brc_error *err)
{
    static const int kinds[] = { [BRC_HDF5_LEAF] = BRC_RAGGED_LEAF,
                                 [BRC_HDF5_COMPOUND] = BRC_RAGGED_COMPOUND,
                                 [BRC_HDF5_LIST] = BRC_RAGGED_LIST,
                                 [BRC_HDF5_ARRAY] = BRC_RAGGED_ARRAY };
    int is_leaf = tree->kind == BRC_HDF5_LEAF;
    out->kind = kinds[tree->kind];
    out->name = tree->name;
    out->size = tree->size;
    out->at = tree->at;
    out->own = tree;
    out->ndim = is_leaf ? tree->type.ndim : tree->ndim;
    memcpy(out->shape, is_leaf ? tree->type.shape : tree->shape, sizeof(out->shape));
    out->dtype = tree->type.dtype;
    out->type = tree->dtype;
    out->note = tree->type.note;
    out->doubtful = is_leaf && (brc_hdf5_is_doubtful(&tree->type) || brc_hdf5_tree_refers(tree));
    if (tree->n == 0)
        return BRC_OK;
    BRC_TRY(brc_new_array((void **)&out->items, tree->n, sizeof(*out->items), err));
    out->n = tree->n;
    for (size_t i = 0; i < tree->n; i++)
        BRC_TRY(fill_ragged(&out->items[i], &tree->items[i], err));
    return BRC_OK;
}

/* Describes the tree's type as a ragged type, whose leaves refer to their trees by `own`. The
 * caller frees both, the ragged type first. */
static int hdf5_ragged_of(brc_ragged *out, const brc_hdf5_tree *tree, brc_error *err)
{
    memset(out, 0, sizeof(*out));
    int rc = fill_ragged(out, tree, err);
    if (rc < 0)
        brc_ragged_free(out, 0);
    return rc;
}

/* ==== hdf5 ragged in ================================ */

/* Imports datasets of lists, and of compounds with texts, lists or references, as groups. */

/* The most elements that may be missing: each element has an offset, stored or not. */
#define MOST_GAPS ((uint64_t)1 << 26)

typedef struct ragged_set {
    const brc_hdf5_in *in;
    const char *label;
    hid_t id, space, plist, file_type;
    hid_t memory; /* the part of the type that is read */
    brc_hdf5_tree tree;
    brc_ragged type;
    brc_hdf5_attrs attrs;
    brc_json *note; /* the member BRC_HDF5_RAGGED */
    char *names[BRC_MAX_NDIM];
    char *attrs_json;
    uint64_t most[BRC_MAX_NDIM], own[BRC_MAX_NDIM]; /* own: the shape in the file */
    int is_null;
    uint8_t *fill; /* the fill value in memory; NULL: no value was set */
    brc_hdf5_memory taken;
    brc_ragged_in ragged;
} ragged_set;

static int ragged_failed(const ragged_set *d, const char *what, brc_error *err)
{
    return brc_hdf5_fail(err, BRC_EINVAL, "%s: %s", d->label, what);
}

/* ---- shape -------------------------------- */

static int read_ragged_shape(ragged_set *d, brc_error *err)
{
    hsize_t dims[H5S_MAX_RANK], most[H5S_MAX_RANK];
    int ndim = H5Sget_simple_extent_ndims(d->space);
    d->is_null = H5Sget_simple_extent_type(d->space) == H5S_NULL;
    if (d->is_null) { /* a null dataspace has neither elements nor axes */
        d->ragged.ndim = 1;
        return BRC_OK;
    }
    if (ndim < 0 || H5Sget_simple_extent_dims(d->space, dims, most) != ndim)
        return ragged_failed(d, "its shape cannot be read", err);
    if (ndim > BRC_MAX_NDIM)
        return brc_part_refuse(err, BRC_PART_SIZE, NULL, "%s has more than %d axes", d->label,
                               BRC_MAX_NDIM);
    d->ragged.ndim = ndim;
    for (int i = 0; i < ndim; i++) {
        d->ragged.shape[i] = d->own[i] = dims[i];
        d->most[i] = most[i] == H5S_UNLIMITED ? UINT64_MAX : most[i];
    }
    return BRC_OK;
}

static int read_ragged_chunks(ragged_set *d, brc_error *err)
{
    hsize_t chunk[H5S_MAX_RANK];
    int chunked, ndim = d->ragged.ndim;
    BRC_TRY(brc_hdf5_storage_check(&chunked, d->plist, d->label, err));
    BRC_TRY(brc_hdf5_filters_check(d->in->convert, d->plist, d->id, d->label, err));
    if (!chunked && !d->is_null)
        BRC_TRY(brc_hdf5_size_check(d->id, d->file_type, ndim, d->ragged.shape, d->label, err));
    if (!chunked || d->is_null)
        return BRC_OK;
    if (H5Pget_chunk(d->plist, ndim, chunk) != ndim)
        return ragged_failed(d, "its chunk shape cannot be read", err);
    for (int i = 0; i < ndim; i++) {
        if (chunk[i] == 0)
            return ragged_failed(d, "its chunk shape cannot be read", err);
        d->ragged.chunk[i] = chunk[i];
    }
    d->ragged.chunked = 1;
    return BRC_OK;
}

/* Refuses a dataset of which much is not stored: a small file may claim any number of elements. */
static int check_gaps(const ragged_set *d, brc_error *err)
{
    brc_hdf5_stored stored;
    uint64_t n = brc_shape_count(d->ragged.ndim, d->ragged.shape);
    if (n <= MOST_GAPS)
        return BRC_OK;
    BRC_TRY(brc_hdf5_stored_read(&stored, d->id, d->ragged.ndim, d->ragged.shape,
                                 d->ragged.chunked ? d->ragged.chunk : NULL, 0, d->label, err));
    int all = stored.all;
    brc_hdf5_stored_free(&stored);
    if (all)
        return BRC_OK;
    return brc_part_refuse(err, BRC_PART_SIZE, "make it smaller",
                           "%s has %llu lists or texts, and few of them are stored", d->label,
                           (unsigned long long)n);
}

/* ---- the note -------------------------------- */

static int note_names(ragged_set *d, brc_error *err)
{
    int named = 0;
    for (int i = 0; i < d->ragged.ndim; i++)
        named |= d->names[i] != NULL;
    if (!named)
        return BRC_OK;
    d->ragged.names = (const char *const *)d->names;
    return brc_note_texts(d->note, "names", d->names, d->ragged.ndim, err);
}

static int print_ragged_fill(ragged_set *d, uint8_t *element, brc_error *err)
{
    brc_buf text = BRC_BUF_INIT;
    brc_json *fill;
    int rc;
    BRC_GO(brc_hdf5_value_print(d->in, &d->tree, element, &text, d->label, err));
    BRC_GO(brc_json_parse(&fill, (const char *)text.data, text.len, 0, err));
    rc = brc_json_set(d->note, "fill", fill, err);
done:
    brc_buf_dispose(&text);
    return rc;
}

/* Returns whether a list in the value has items: all elements with this value would share them. */
static int has_items(const brc_ragged *type, const uint8_t *element)
{
    brc_ragged_list list;
    int has = 0;
    if (type->kind == BRC_RAGGED_LIST) {
        memcpy(&list, element, sizeof(list));
        return list.p && list.len > 0;
    }
    if (type->kind == BRC_RAGGED_COMPOUND)
        for (size_t i = 0; i < type->n; i++)
            has |= has_items(&type->items[i], element + type->items[i].at);
    for (uint64_t i = type->kind == BRC_RAGGED_ARRAY ? brc_ragged_count(type) : 0; i > 0; i--)
        has |= has_items(type->items, element + (i - 1) * type->items->size);
    return has;
}

static int check_fill(const ragged_set *d, brc_error *err)
{
    brc_hdf5_stored stored;
    if (!has_items(&d->type, d->fill))
        return BRC_OK;
    BRC_TRY(brc_hdf5_stored_read(&stored, d->id, d->ragged.ndim, d->ragged.shape,
                                 d->ragged.chunked ? d->ragged.chunk : NULL, 1, d->label, err));
    int all = stored.all;
    brc_hdf5_stored_free(&stored);
    return all ? BRC_OK
               : brc_part_refuse(
                     err, BRC_PART_VALUE, "write these elements",
                     "%s has elements that are not stored, and its fill value is or has "
                     "a list that is not empty",
                     d->label);
}

static int read_ragged_fill(ragged_set *d, brc_error *err)
{
    H5D_fill_value_t status = H5D_FILL_VALUE_UNDEFINED;
    if (H5Pfill_value_defined(d->plist, &status) < 0)
        return ragged_failed(d, "its fill value cannot be read", err);
    if (status != H5D_FILL_VALUE_USER_DEFINED)
        return BRC_OK;
    BRC_TRY(brc_new((void **)&d->fill, d->tree.size, err));
    if (H5Pget_fill_value(d->plist, d->tree.memory, d->fill) < 0)
        return ragged_failed(d, "its fill value cannot be read", err);
    return check_fill(d, err);
}

static int note_fill_value(ragged_set *d, brc_error *err)
{
    uint8_t *copy; /* the copy, because printing changes its bytes */
    BRC_TRY(read_ragged_fill(d, err));
    if (!d->fill)
        return BRC_OK;
    BRC_TRY(brc_new((void **)&copy, d->tree.size, err));
    memcpy(copy, d->fill, d->tree.size);
    int rc = print_ragged_fill(d, copy, err);
    free(copy);
    return rc;
}

static int note_storage(ragged_set *d, brc_error *err)
{
    brc_json *type;
    BRC_TRY(brc_hdf5_tree_json(&type, &d->tree, err));
    BRC_TRY(brc_json_set(d->note, "type", type, err));
    const char *committed = brc_hdf5_committed(d->in, d->file_type);
    if (committed)
        BRC_TRY(brc_json_set(d->note, "committed", brc_json_new_string(committed), err));
    d->attrs.has_paths |= committed != NULL || brc_hdf5_tree_refers(&d->tree);
    if (d->is_null)
        return brc_json_set(d->note, "space", brc_json_new_string("null"), err);
    BRC_TRY(brc_note_numbers(d->note, "shape", d->ragged.shape, d->ragged.ndim, err));
    if (d->ragged.chunked)
        BRC_TRY(brc_note_numbers(d->note, "chunk", d->ragged.chunk, d->ragged.ndim, err));
    if (memcmp(d->most, d->ragged.shape, sizeof(d->most)) != 0)
        BRC_TRY(brc_note_numbers(d->note, "maxshape", d->most, d->ragged.ndim, err));
    BRC_TRY(brc_hdf5_filters_note(d->note, d->plist, err));
    return note_fill_value(d, err);
}

/* Adds the note to the group's attributes. */
static int finish_ragged_note(ragged_set *d, const char *path, brc_error *err)
{
    brc_json *note = brc_json_new_object(), *given;
    int rc = note ? brc_hdf5_note_attrs(note, &d->attrs, path, err) : brc_nomem(err);
    BRC_GO(rc);
    given = d->note;
    d->note = NULL;
    BRC_GO(brc_json_set(note, BRC_HDF5_RAGGED, given, err));
    given = note;
    note = NULL;
    BRC_GO(brc_hdf5_note_group(&d->attrs, given, d->label, err));
    rc = brc_hdf5_attrs_text(&d->attrs_json, &d->attrs, err);
done:
    brc_json_free(note);
    return rc;
}

/* ---- elements -------------------------------- */

/* Makes a type in memory that has one field of the compound, at the offset of the whole type. */
static hid_t compound_of(const brc_ragged *type, const brc_ragged *field, hid_t inner)
{
    hid_t out = H5Tcreate(H5T_COMPOUND, type->size);
    if (out >= 0 && H5Tinsert(out, field->name, field->at, inner) >= 0)
        return out;
    brc_hdf5_close(out);
    return BRC_HDF5_NONE;
}

static hid_t array_of(const brc_ragged *type, hid_t inner)
{
    hsize_t dims[BRC_MAX_NDIM];
    for (int i = 0; i < type->ndim; i++)
        dims[i] = type->shape[i];
    return H5Tarray_create2(inner, (unsigned)type->ndim, dims);
}

/* Makes the type in memory that reads the least, for a column that needs only the lengths of
 * lists. */
static hid_t select_least(const brc_ragged *type)
{
    const brc_ragged *field = type->items;
    if (type->kind == BRC_RAGGED_LEAF)
        return H5Tcopy(((const brc_hdf5_tree *)type->own)->memory);
    for (size_t i = 0; i < type->n; i++)
        if (type->items[i].kind == BRC_RAGGED_LEAF && type->items[i].type->item_size > 0) {
            field = &type->items[i];
            break;
        }
    hid_t inner = select_least(field);
    hid_t out = inner < 0                        ? BRC_HDF5_NONE
                : type->kind == BRC_RAGGED_LIST  ? H5Tvlen_create(inner)
                : type->kind == BRC_RAGGED_ARRAY ? array_of(type, inner)
                                                 : compound_of(type, field, inner);
    brc_hdf5_close(inner);
    return out;
}

/* Makes the type in memory that has these steps alone, at the offsets of the whole type. */
static hid_t select_steps(const brc_ragged_steps *steps, size_t step)
{
    const brc_ragged *type = steps->at[step];
    if (step + 1 == steps->n)
        return select_least(type);
    hid_t inner = select_steps(steps, step + 1);
    hid_t out = inner < 0                        ? BRC_HDF5_NONE
                : type->kind == BRC_RAGGED_LIST  ? H5Tvlen_create(inner)
                : type->kind == BRC_RAGGED_ARRAY ? array_of(type, inner)
                                                 : compound_of(type, steps->at[step + 1], inner);
    brc_hdf5_close(inner);
    return out;
}

static int select_column(void *ctx, const brc_ragged_steps *steps, brc_error *err)
{
    ragged_set *d = ctx;
    brc_hdf5_close(d->memory);
    d->memory = select_steps(steps, 0);
    return d->memory < 0 ? ragged_failed(d, "its data type cannot be read", err) : BRC_OK;
}

/* Reads stored elements of a part of the box to their places in the box. */
static int read_part(ragged_set *d, const brc_sel *box, const brc_sel *part, void *elements,
                     brc_error *err)
{
    int ndim = d->ragged.ndim;
    hid_t memory = brc_hdf5_select(d->space, ndim, box, part);
    int rc = memory < 0 ? ragged_failed(d, "its elements cannot be read", err)
                        : brc_hdf5_read_lists(&d->taken, d->id, d->memory, memory,
                                              ndim ? d->space : H5S_ALL, elements, d->label, err);
    brc_hdf5_close(memory);
    return rc;
}

/* Writes the fill value to a part of the box. */
static void fill_part(const ragged_set *d, const brc_sel *box, const brc_sel *part,
                      uint8_t *elements)
{
    int64_t strides[BRC_MAX_NDIM];
    brc_strides_packed(box->ndim, box->count, d->tree.size, strides);
    for (int i = 0; i < box->ndim; i++)
        elements += (int64_t)(part->start[i] - box->start[i]) * strides[i];
    brc_fill_box(box->ndim, part->count, d->tree.size, elements, strides, d->fill);
}

static int is_stored_part(const ragged_set *d, const brc_sel *part, brc_error *err)
{
    hsize_t corner[H5S_MAX_RANK];
    brc_hdf5_chunk chunk;
    if (!d->ragged.chunked)
        return brc_hdf5_is_written(d->id);
    for (int i = 0; i < d->ragged.ndim; i++)
        corner[i] = part->start[i] / d->ragged.chunk[i] * d->ragged.chunk[i];
    BRC_TRY(brc_hdf5_chunk_find(&chunk, d->id, corner, d->label, err));
    return chunk.bytes > 0;
}

/* Reads chunk by chunk. If the fill value has texts, the library cannot read chunks that are not
 * stored. */
static int read_with_fill(ragged_set *d, const brc_sel *box, const brc_sel *own, uint8_t *elements,
                          brc_error *err)
{
    uint64_t index[BRC_MAX_NDIM] = { 0 }, grid[BRC_MAX_NDIM];
    int ndim = box->ndim;
    for (int i = 0; i < ndim; i++) {
        uint64_t size = d->ragged.chunked ? d->ragged.chunk[i] : UINT64_MAX;
        grid[i] = (own->start[i] + own->count[i] - 1) / size - own->start[i] / size + 1;
    }
    do {
        brc_sel part = *own;
        for (int i = 0; i < ndim && d->ragged.chunked; i++) {
            uint64_t size = d->ragged.chunk[i], end = own->start[i] + own->count[i];
            uint64_t first = (own->start[i] / size + index[i]) * size;
            uint64_t last = end - first > size ? first + size : end;
            part.start[i] = first > own->start[i] ? first : own->start[i];
            part.count[i] = last - part.start[i];
        }
        int stored = is_stored_part(d, &part, err);
        BRC_TRY(stored);
        int rc = stored ? read_part(d, box, &part, elements, err) : 1;
        if (rc != 1)
            return rc;
        if (!stored)
            fill_part(d, box, &part, elements);
    } while (brc_index_next(ndim, index, grid));
    return 1;
}

static int read_elements_of(void *ctx, const brc_sel *box, void *elements, size_t most,
                            brc_error *err)
{
    ragged_set *d = ctx;
    brc_arena_dispose(&d->taken.arena);
    d->taken = (brc_hdf5_memory){ BRC_ARENA_INIT, 0, most, 0 };
    brc_sel own =
        *box; /* the part that the dataset has; in NetCDF-4 it may be shorter than the variable */
    int has = 1, is_short = 0;
    for (int i = 0; i < box->ndim && has; i++) {
        has = box->start[i] < d->own[i];
        if (has && own.count[i] > d->own[i] - box->start[i])
            own.count[i] = d->own[i] - box->start[i];
        is_short |= !has || own.count[i] != box->count[i];
    }
    if (is_short && d->fill)
        fill_part(d, box, box, elements);
    if (!has)
        return 1;
    return d->fill ? read_with_fill(d, box, &own, elements, err)
                   : read_part(d, box, &own, elements, err);
}

static void release_elements(void *ctx)
{
    brc_arena_dispose(&((ragged_set *)ctx)->taken.arena);
}

static int append_items(void *ctx, const brc_ragged *leaf, void *element, brc_buf *out,
                        brc_error *err)
{
    const ragged_set *d = ctx;
    const brc_hdf5_tree *tree = leaf->own;
    const brc_hdf5_type *type = &tree->type;
    uint8_t *item = element;
    if (type->kind == BRC_HDF5_FIXED) {
        BRC_TRY(brc_hdf5_canonical(type, tree->dtype, item, 1, d->label, err));
        brc_dtype_native(tree->dtype, item, type->size);
        return type->size > 0 ? brc_buf_append(out, item, type->size, err) : BRC_OK;
    }
    for (size_t n = type->size / type->item; n > 0; n--, item += type->item)
        BRC_TRY(brc_hdf5_memory_span(d->in, type, item, out, d->label, err));
    return BRC_OK;
}

/* ---- the dataset -------------------------------- */

/* Refuses an attribute _FillValue, which has the dataset's type: an export could not make it again
 * from JSON. */
static int check_fill_attr(const ragged_set *d, brc_error *err)
{
    const brc_convert *c = d->in->convert;
    const char *path = brc_convert_path(c, d->label);
    if (H5Aexists(d->id, BRC_ATTR_FILL) <= 0 ||
        brc_convert_lacks_attribute(d->in->convert, path, BRC_ATTR_FILL))
        return BRC_OK;
    return brc_part_refuse(err, BRC_PART_VALUE, "leave it out with --exclude 'NAME@_FillValue'",
                           "%s has a _FillValue, and its elements are lists or have texts",
                           d->label);
}

static int note_variable(ragged_set *d, brc_error *err)
{
    brc_json *type;
    BRC_TRY(brc_hdf5_tree_json(&type, &d->tree, err));
    BRC_TRY(brc_json_set(d->note, "type", type, err));
    BRC_TRY(brc_note_numbers(d->note, "shape", d->ragged.shape, d->ragged.ndim, err));
    BRC_TRY(brc_note_texts(d->note, "names", d->names, d->ragged.ndim, err));
    return d->ragged.chunked
               ? brc_note_numbers(d->note, "chunk", d->ragged.chunk, d->ragged.ndim, err)
               : BRC_OK;
}

/* Describes a variable of NetCDF-4, whose note is BRC_NETCDF_RAGGED. */
static int describe_ragged_variable(ragged_set *d, brc_error *err)
{
    const brc_hdf5_netcdf_var var = { .file = d->file_type };
    brc_netcdf_atts_in atts = { .label = d->label };
    int rc;
    BRC_GO(check_fill_attr(d, err));
    BRC_GO(brc_hdf5_netcdf_atts(&atts, d->in, d->id, &var, d->label, err));
    if (!d->is_null) {
        BRC_GO(brc_hdf5_netcdf_axes(d->names, d->ragged.shape, d->in, d->id, d->ragged.ndim,
                                    d->label, err));
        BRC_GO(read_ragged_fill(d, err));
    }
    for (int i = 0; i < d->ragged.ndim; i++)
        if (d->names[i])
            d->ragged.names = (const char *const *)d->names;
    BRC_GO(note_variable(d, err));
    if (!atts.note && !(atts.note = brc_json_new_object())) {
        rc = brc_nomem(err);
        goto done;
    }
    brc_json *given = d->note;
    d->note = NULL;
    BRC_GO(brc_json_set(atts.note, BRC_NETCDF_RAGGED, given, err));
    BRC_GO(brc_netcdf_note_group(&atts, err));
    rc = brc_netcdf_atts_text(&d->attrs_json, &atts, err);
done:
    brc_json_free(atts.attrs);
    brc_json_free(atts.note);
    return rc;
}

static int describe_ragged(ragged_set *d, const char *path, brc_error *err)
{
    d->note = brc_json_new_object();
    if (!d->note)
        return brc_nomem(err);
    d->file_type = H5Dget_type(d->id);
    d->space = H5Dget_space(d->id);
    d->plist = H5Dget_create_plist(d->id);
    if (d->file_type < 0 || d->space < 0 || d->plist < 0)
        return ragged_failed(d, "it cannot be read", err);
    BRC_TRY(brc_hdf5_tree_read(&d->tree, d->in->reg, d->file_type, d->in->how, d->label, err));
    if (d->in->netcdf)
        BRC_TRY(brc_hdf5_netcdf_name_types(d->in, &d->tree, d->file_type, err));
    BRC_TRY(hdf5_ragged_of(&d->type, &d->tree, err));
    BRC_TRY(read_ragged_shape(d, err));
    BRC_TRY(read_ragged_chunks(d, err));
    BRC_TRY(check_gaps(d, err));
    if (d->in->netcdf)
        return describe_ragged_variable(d, err);
    BRC_TRY(brc_hdf5_attrs_read(&d->attrs, d->in, d->id, 1, d->label, err));
    BRC_TRY(note_storage(d, err));
    BRC_TRY(brc_hdf5_names_read(d->names, d->in, d->id, d->is_null ? 0 : d->ragged.ndim,
                                d->attrs.is_scale, path, d->label, err));
    BRC_TRY(note_names(d, err));
    return finish_ragged_note(d, path, err);
}

static int take_ragged(ragged_set *d, const char *path, brc_error *err)
{
    BRC_TRY(describe_ragged(d, path, err));
    d->ragged.path = path;
    d->ragged.label = d->label;
    d->ragged.attrs_json = d->attrs_json;
    d->ragged.note_name = d->in->netcdf ? BRC_NETCDF_NOTE : BRC_HDF5_NOTE;
    d->ragged.type = &d->type;
    d->ragged.ctx = d;
    d->ragged.select = select_column;
    d->ragged.read = read_elements_of;
    d->ragged.release = release_elements;
    d->ragged.append = append_items;
    return brc_convert_ragged(d->in->convert, &d->ragged, err);
}

static void free_fill(ragged_set *d)
{
    hid_t scalar = d->fill ? H5Screate(H5S_SCALAR) : BRC_HDF5_NONE;
    if (scalar >= 0)
        (void)H5Dvlen_reclaim(d->tree.memory, scalar, H5P_DEFAULT, d->fill);
    brc_hdf5_close(scalar);
    free(d->fill);
}

static void close_ragged(ragged_set *d)
{
    free_fill(d);
    const hid_t ids[] = { d->id, d->space, d->plist, d->file_type, d->memory };
    for (size_t i = 1; i < sizeof(ids) / sizeof(ids[0]); i++)
        brc_hdf5_close(ids[i]);
    brc_arena_dispose(&d->taken.arena);
    brc_ragged_free(&d->type, 0);
    brc_hdf5_tree_close(&d->tree);
    brc_hdf5_attrs_free(&d->attrs);
    brc_json_free(d->note);
    for (int i = 0; i < BRC_MAX_NDIM; i++)
        free(d->names[i]);
    free(d->attrs_json);
    free(d);
}

int brc_hdf5_ragged_import(const brc_hdf5_in *in, hid_t dataset, const char *path,
                           const char *label, brc_error *err)
{
    ragged_set *d;
    BRC_TRY(brc_new((void **)&d, sizeof(*d), err));
    d->in = in;
    d->label = label;
    d->id = dataset;
    d->space = d->plist = d->file_type = d->memory = BRC_HDF5_NONE;
    d->tree.memory = d->tree.type.memory = BRC_HDF5_NONE;
    int rc = take_ragged(d, path, err);
    close_ragged(d);
    return rc;
}

/* ==== hdf5 ragged out ================================ */

/* Exports groups that stand for one dataset. */

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

static const brc_json *ragged_note(const brc_hdf5_out *out, const brc_node_out *node)
{
    const brc_json *attrs = brc_json_member(node->doc, "attributes");
    if (out->plan)
        return brc_netcdf_noted_variable(node);
    return node->meta
               ? NULL
               : brc_json_member(brc_json_member(attrs, BRC_HDF5_GROUP_NOTE), BRC_HDF5_RAGGED);
}

static const char *ragged_note_name(const brc_hdf5_out *out)
{
    return out->plan ? BRC_NETCDF_GROUP_NOTE : BRC_HDF5_GROUP_NOTE;
}

/* Reads a list of ndim numbers from the note; null gives UINT64_MAX. Returns 1 if the list is
 * one. */
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
                    "%s: \"%s\" of its attribute %s was not made by an import: remove this "
                    "attribute to export the group as it is",
                    d->group->path, member, ragged_note_name(d->out));
}

static int read_noted_shape(brc_hdf5_ragged *d, brc_error *err)
{
    const brc_json *shape = brc_json_member(d->note, "shape");
    size_t ndim = brc_json_count(shape);
    d->is_null = !d->out->plan && brc_json_is(brc_json_member(d->note, "space"), "null");
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

/* Returns whether NetCDF has the type: it lacks lists of arrays, and arrays of arrays. */
static int fits_netcdf(const brc_hdf5_tree *tree)
{
    for (size_t i = 0; i < tree->n; i++) {
        const brc_hdf5_tree *item = &tree->items[i];
        int is_array = item->kind == BRC_HDF5_ARRAY ||
                       (item->kind == BRC_HDF5_LEAF &&
                        (item->type.ndim > 0 ||
                         (item->dtype->klass == BRC_CLASS_BYTES && item->dtype->item_size > 1)));
        if ((tree->kind != BRC_HDF5_COMPOUND && is_array) || !fits_netcdf(item))
            return 0;
    }
    return 1;
}

static int read_noted_type(brc_hdf5_ragged *d, brc_error *err)
{
    brc_error why = BRC_ERROR_INIT;
    const char *label = d->group->path;
    int how = d->out->plan ? BRC_HDF5_NETCDF : BRC_HDF5_WRITING;
    int rc = brc_hdf5_tree_make(&d->file_type, d->out->reg, brc_json_member(d->note, "type"), how,
                                label, &why);
    if (rc == BRC_OK && d->out->plan)
        rc = brc_hdf5_native_layout(&d->file_type, label, &why);
    if (rc == BRC_OK)
        rc = brc_hdf5_tree_read(&d->tree, d->out->reg, d->file_type, how, label, &why);
    if (rc == BRC_ENOMEM)
        return brc_nomem(err);
    if (rc < 0 || d->tree.kind == BRC_HDF5_LEAF || (d->out->plan && !fits_netcdf(&d->tree)))
        return bad_ragged_note(d, "type", err);
    return hdf5_ragged_of(&d->type, &d->tree, err);
}

/* Names the dataset. A group that is exported alone becomes a dataset in the file's root, under its
 * own name. */
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
    BRC_TRY(brc_new((void **)&d, sizeof(*d), err)); /* others point to it */
    out->ragged[out->nragged++] = d;
    *d = (brc_hdf5_ragged){ .out = out, .group = group, .note = note };
    d->file_type = d->plist = d->space = d->id = BRC_HDF5_NONE;
    d->tree.memory = d->tree.type.memory = BRC_HDF5_NONE;
    if (!out->plan)
        BRC_TRY(name_dataset(d, err));
    BRC_TRY(read_noted_shape(d, err));
    BRC_TRY(read_noted_type(d, err));
    return brc_ragged_out_open(&d->arrays, out->convert, group, &d->type, ragged_note_name(out),
                               d->ndim, d->shape, err);
}

int brc_hdf5_ragged_find(brc_hdf5_out *out, brc_error *err)
{
    for (size_t i = 0; i < brc_convert_nodes(out->convert); i++) {
        const brc_node_out *node = brc_convert_node(out->convert, i);
        const brc_json *note = ragged_note(out, node);
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

const brc_json *brc_hdf5_ragged_names(const brc_hdf5_ragged *ragged)
{
    const brc_node_out *leaf = brc_ragged_out_leaf(ragged->arrays);
    return leaf ? brc_json_member(leaf->doc, "dimension_names")
                : brc_json_member(ragged->note, "names");
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

/* Makes the dataspace with the noted room for growth, if the dataset has chunks, which HDF5 needs
 * for growth. Room for whole chunks is always allowed. */
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
    const brc_json *attrs = brc_json_member(d->group->doc, "attributes");
    const brc_json *names = brc_hdf5_ragged_names(d);
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
                        "%s: its element \"%.200s\" refers to an object outside this export: "
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
    hid_t memory = brc_hdf5_select(d->space, d->ndim, box, box);
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
