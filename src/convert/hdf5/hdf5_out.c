/*
 * Writing HDF5: groups, then what is in them, then the dimension scales, which lead
 * from one dataset to another. Times are not written, so equal nodes give equal files.
 */
#include "hdf5_out.h"

#include <stdlib.h>
#include <string.h>

/* HDF5 1.8 and later can read the file. */
static int create_file(brc_hdf5_out *out, brc_error *err)
{
    hid_t create = H5Pcreate(H5P_FILE_CREATE);
    hid_t access = H5Pcreate(H5P_FILE_ACCESS);
    out->link_names = H5Pcreate(H5P_LINK_CREATE);
    out->attr_names = H5Pcreate(H5P_ATTRIBUTE_CREATE);
    if (create >= 0 && access >= 0 && out->link_names >= 0 && out->attr_names >= 0 &&
        H5Pset_obj_track_times(create, 0) >= 0 &&
        H5Pset_libver_bounds(access, H5F_LIBVER_V18, H5F_LIBVER_V18) >= 0 &&
        H5Pset_fclose_degree(access, H5F_CLOSE_STRONG) >= 0 &&
        H5Pset_char_encoding(out->link_names, H5T_CSET_UTF8) >= 0 &&
        H5Pset_char_encoding(out->attr_names, H5T_CSET_UTF8) >= 0)
        out->id = H5Fcreate(out->file, H5F_ACC_EXCL, create, access);
    int rc = out->id < 0 ? brc_hdf5_fail(err, BRC_EIO, "cannot make %s", out->file) : BRC_OK;
    brc_hdf5_close(create);
    brc_hdf5_close(access);
    return rc;
}

/* The library writes much of the file only now. */
static int close_file(brc_hdf5_out *out, brc_error *err)
{
    hid_t id = out->id;
    out->id = BRC_HDF5_NONE;
    int failed = H5Fflush(id, H5F_SCOPE_LOCAL) < 0;
    int rc = failed ? brc_hdf5_fail(err, BRC_EIO, "cannot write %s", out->file) : BRC_OK;
    if (H5Fclose(id) < 0 && rc == BRC_OK)
        rc = brc_hdf5_fail(err, BRC_EIO, "cannot write %s", out->file);
    return rc;
}

/* inner "": the file's root group, which is there. */
static int make_hdf5_group_out(const brc_hdf5_out *out, const brc_node_out *node, brc_error *err)
{
    hid_t group = out->id, plist = BRC_HDF5_NONE;
    int rc = BRC_OK;

    if (*node->inner) {
        plist = H5Pcreate(H5P_GROUP_CREATE);
        group = plist >= 0 && H5Pset_obj_track_times(plist, 0) >= 0
                    ? H5Gcreate2(out->id, node->inner, out->link_names, plist, H5P_DEFAULT)
                    : BRC_HDF5_NONE;
    }
    if (group < 0)
        rc = brc_hdf5_fail(err, BRC_EIO, "%s: the group cannot be made in HDF5", node->path);
    if (*node->inner)
        brc_hdf5_close(group);
    brc_hdf5_close(plist);
    return rc;
}

static void close_export(void *state)
{
    brc_hdf5_out *out = state;
    brc_hdf5_dataset_close(out->dataset);
    brc_hdf5_ragged_close(out);
    if (out->id >= 0)
        (void)H5Fclose(out->id);
    brc_hdf5_close(out->link_names);
    brc_hdf5_close(out->attr_names);
    for (size_t i = 0; i < out->n; i++) {
        brc_hdf5_item *item = &out->items[i];
        for (int k = 0; item->names && k < item->ndim; k++)
            free(item->names[k]);
        free(item->names);
        free(item->inner);
    }
    free(out->items);
    for (size_t i = 0; i < out->nzarr && out->zarr; i++)
        brc_json_free(out->zarr[i]);
    free(out->zarr);
    free(out);
}

/* Committed data types are there before the datasets that have them. */
static int make_groups(brc_hdf5_out *out, brc_convert *c, brc_error *err)
{
    for (size_t i = 0; i < brc_convert_nodes(c); i++) {
        const brc_node_out *node = brc_convert_node(c, i);
        if (node->meta || (i > 0 && brc_hdf5_ragged_of_node(out, node)))
            continue;
        BRC_TRY(make_hdf5_group_out(out, node, err));
        BRC_TRY(brc_hdf5_named_make(out, node, err));
    }
    return BRC_OK;
}

static int make_datasets(brc_hdf5_out *out, const brc_convert *c, brc_error *err)
{
    for (size_t i = 0; i < brc_convert_nodes(c); i++) {
        const brc_node_out *node = brc_convert_node(c, i);
        struct brc_hdf5_ragged *ragged = brc_hdf5_ragged_of_node(out, node);
        if (ragged && brc_hdf5_ragged_is_group(ragged, node))
            BRC_TRY(brc_hdf5_ragged_make(out, ragged, err));
        else if (!ragged && node->meta)
            BRC_TRY(brc_hdf5_dataset_make(out, node, err));
    }
    return BRC_OK;
}

static int write_node_attrs(brc_hdf5_out *out, const brc_node_out *node, brc_error *err)
{
    const struct brc_hdf5_ragged *ragged = brc_hdf5_ragged_of_node(out, node);
    const char *inner = ragged ? brc_hdf5_ragged_inner(ragged) : node->inner;
    if (ragged && !brc_hdf5_ragged_is_group(ragged, node))
        return BRC_OK;
    hid_t object = H5Oopen(out->id, *inner ? inner : "/", H5P_DEFAULT);
    if (object < 0)
        return brc_hdf5_fail(err, BRC_EIO, "%s: it cannot be opened again", node->path);
    brc_json *zarr = out->zarr[node->number];
    out->zarr[node->number] = NULL;
    int rc = brc_hdf5_attrs_write(out, object, inner, node->doc,
                                  node->meta ? node->meta->type : NULL, zarr, node->path, err);
    brc_hdf5_close(object);
    return rc == BRC_OK && !node->meta && !ragged ? brc_hdf5_named_attrs(out, node, err) : rc;
}

/* When all objects are there, as references lead to them. */
static int write_all_attrs(brc_hdf5_out *out, brc_convert *c, brc_error *err)
{
    for (size_t i = 0; i < brc_convert_nodes(c); i++)
        BRC_TRY(write_node_attrs(out, brc_convert_node(c, i), err));
    return BRC_OK;
}

int brc_hdf5_out_create(void **state, brc_convert *c, const char *file, int classic, brc_error *err)
{
    brc_hdf5_out *out;
    (void)classic;

    BRC_TRY(brc_new((void **)&out, sizeof(*out), err));
    *state = out;
    out->head.close = close_export;
    out->convert = c;
    out->reg = brc_convert_registry(c);
    out->file = file;
    out->id = out->link_names = out->attr_names = BRC_HDF5_NONE;
    BRC_TRY(brc_hdf5_start(err));
    BRC_TRY(create_file(out, err));
    out->nzarr = brc_convert_nodes(c);
    BRC_TRY(brc_new_array((void **)&out->zarr, out->nzarr, sizeof(*out->zarr), err));
    BRC_TRY(brc_hdf5_ragged_find(out, err));
    BRC_TRY(make_groups(out, c, err));
    BRC_TRY(make_datasets(out, c, err));
    return write_all_attrs(out, c, err);
}

int brc_hdf5_out_finish(void *state, brc_error *err)
{
    brc_hdf5_out *out = state;
    BRC_TRY(brc_hdf5_scales_write(out, err));
    return close_file(out, err);
}
