/*
 * Writing HDF5: groups, then what is in them, then the dimension scales, which lead
 * from one dataset to another. Times are not written, so equal nodes give equal files.
 */
#include "hdf5_format.h"
#include "hdf5_out.h"

#include <stdlib.h>
#include <string.h>

#include "../../zarr/transfer.h"
#include "../dest.h"

/* HDF5 1.8 and all that came after it read the file. */
static int create_file(brc_hdf5_out *out, const char *temp, const char *dest, brc_error *err)
{
    const brc_hdf5 *lib = &out->lib;
    hid_t create = lib->H5Pcreate(lib->H5P_CLS_FILE_CREATE_ID_g);
    hid_t access = lib->H5Pcreate(lib->H5P_CLS_FILE_ACCESS_ID_g);
    out->link_names = lib->H5Pcreate(lib->H5P_CLS_LINK_CREATE_ID_g);
    out->attr_names = lib->H5Pcreate(lib->H5P_CLS_ATTRIBUTE_CREATE_ID_g);
    if (create >= 0 && access >= 0 && out->link_names >= 0 && out->attr_names >= 0 &&
        lib->H5Pset_obj_track_times(create, 0) >= 0 &&
        lib->H5Pset_libver_bounds(access, H5F_LIBVER_V18, H5F_LIBVER_V18) >= 0 &&
        lib->H5Pset_fclose_degree(access, H5F_CLOSE_STRONG) >= 0 &&
        lib->H5Pset_char_encoding(out->link_names, H5T_CSET_UTF8) >= 0 &&
        lib->H5Pset_char_encoding(out->attr_names, H5T_CSET_UTF8) >= 0)
        out->id = lib->H5Fcreate(temp, BRC_HDF5_MUST_BE_NEW, create, access);
    int rc = out->id < 0 ? brc_hdf5_fail(lib, err, BRC_EIO, "cannot make %s", dest) : BRC_OK;
    brc_hdf5_close(lib, create);
    brc_hdf5_close(lib, access);
    return rc;
}

/* The library writes much of the file only now. */
static int close_file(brc_hdf5_out *out, const char *dest, brc_error *err)
{
    const brc_hdf5 *lib = &out->lib;
    hid_t id = out->id;
    out->id = BRC_HDF5_NONE;
    int failed = lib->H5Fflush(id, H5F_SCOPE_LOCAL) < 0;
    int rc = failed ? brc_hdf5_fail(lib, err, BRC_EIO, "cannot write %s", dest) : BRC_OK;
    if (lib->H5Fclose(id) < 0 && rc == BRC_OK)
        rc = brc_hdf5_fail(lib, err, BRC_EIO, "cannot write %s", dest);
    return rc;
}

/* inner "": the file's root group, which is there. */
static int export_group(brc_hdf5_out *out, const char *path, const char *inner, brc_error *err)
{
    const brc_hdf5 *lib = &out->lib;
    hid_t group = out->id, plist = BRC_HDF5_NONE;
    brc_json *doc;
    int rc = BRC_OK;

    BRC_TRY(brc_node_doc(&doc, out->session, path, err));
    if (*inner) {
        plist = lib->H5Pcreate(lib->H5P_CLS_GROUP_CREATE_ID_g);
        group = plist >= 0 && lib->H5Pset_obj_track_times(plist, 0) >= 0
                    ? lib->H5Gcreate2(out->id, inner, out->link_names, plist, H5P_DEFAULT)
                    : BRC_HDF5_NONE;
    }
    if (group < 0)
        rc = brc_hdf5_fail(lib, err, BRC_EIO, "%s: the group cannot be made in HDF5", path);
    else
        rc = brc_hdf5_attrs_write(out, group, doc, NULL, NULL, path, err);
    if (*inner)
        brc_hdf5_close(lib, group);
    brc_hdf5_close(lib, plist);
    brc_json_free(doc);
    return rc;
}

/* What an array by itself is called in the file. */
static const char *own_name(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash && slash[1] ? slash + 1 : "data";
}

/* brc_nodes_each() */
static int export_node(void *ctx, const char *path, const char *inner, int kind, brc_error *err)
{
    brc_hdf5_out *out = ctx;

    if (kind == BRC_GROUP)
        return export_group(out, path, inner, err);
    return brc_hdf5_dataset_export(out, path, *inner ? inner : own_name(path), err);
}

static void free_items(brc_hdf5_out *out)
{
    for (size_t i = 0; i < out->n; i++) {
        brc_hdf5_item *item = &out->items[i];
        for (int k = 0; item->names && k < item->ndim; k++)
            free(item->names[k]);
        free(item->names);
        free(item->inner);
    }
    free(out->items);
}

int brc_hdf5_export(brc_session *s, const char *path, const char *dest, brc_error *err)
{
    brc_dest place = { 0 };
    brc_hdf5_out *out;
    int rc;

    BRC_TRY(brc_new((void **)&out, sizeof(*out), err));
    out->session = s;
    out->reg = brc_session_registry(s);
    out->id = out->link_names = out->attr_names = BRC_HDF5_NONE;
    BRC_GO(brc_hdf5_start(&out->lib, 1, err));
    BRC_GO(brc_dest_open(&place, s, dest, 0, err));
    BRC_GO(create_file(out, place.temp, dest, err));
    BRC_GO(brc_nodes_each(s, path, export_node, out, err));
    BRC_GO(brc_hdf5_scales_write(out, err));
    BRC_GO(close_file(out, dest, err));
    BRC_GO(brc_dest_finish(&place, 0, err));
done:
    if (out->id >= 0)
        (void)out->lib.H5Fclose(out->id);
    if (out->lib.started) {
        brc_hdf5_close(&out->lib, out->link_names);
        brc_hdf5_close(&out->lib, out->attr_names);
    }
    brc_hdf5_stop(&out->lib);
    brc_dest_close(&place);
    free_items(out);
    free(out);
    return rc;
}
