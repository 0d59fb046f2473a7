/*
 * The names of a dataset's axes, from HDF5's dimension scales: an axis has a label
 * (DIMENSION_LABELS), or a scale is attached to it (DIMENSION_LIST: a list of
 * references for each axis), whose name (NAME, or what it is called in its group)
 * is the axis's. A dataset of one axis that is a scale gives its own axis its name.
 */
#include <stdlib.h>
#include <string.h>

#include "hdf5_in.h"

/* What NetCDF-4 names scales that are no variables. */
#define NO_VARIABLE "This is a netCDF dimension but not a netCDF variable"

typedef struct scale_reader {
    const brc_hdf5_in *in;
    const char *label;
    int ndim;
    char **names;
} scale_reader;

static int set_axis_name(const scale_reader *r, int axis, const char *text, brc_error *err)
{
    if (r->names[axis] || !*text)
        return BRC_OK;
    return brc_dup(&r->names[axis], text, err);
}

/* ---- labels -------------------------------- */

static int read_labels(const scale_reader *r, hid_t dataset, brc_error *err)
{
    brc_json *labels;
    const char *text;
    BRC_TRY(brc_hdf5_attr_value(&labels, r->in, dataset, "DIMENSION_LABELS", r->label, err));
    int rc = BRC_OK;
    if (labels && brc_json_count(labels) != (size_t)r->ndim)
        rc = brc_fail(err, BRC_EINVAL, "%s: DIMENSION_LABELS has %zu labels for %d axes", r->label,
                      brc_json_count(labels), r->ndim);
    const brc_json *item = rc == BRC_OK ? brc_json_first(labels) : NULL;
    for (int i = 0; item && rc == BRC_OK; i++, item = brc_json_next(item))
        if (brc_json_text(item, &text))
            rc = set_axis_name(r, i, text, err);
    brc_json_free(labels);
    return rc;
}

/* ---- scales -------------------------------- */

/* "/a/b" gives "b". */
static const char *part_after_slash(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

/* A scale's own name; `path` is where it lies. */
static int scale_name(const scale_reader *r, hid_t scale, const char *path, int axis,
                      brc_error *err)
{
    brc_json *name;
    BRC_TRY(brc_hdf5_attr_value(&name, r->in, scale, "NAME", r->label, err));
    const char *text;
    if (!brc_json_text(name, &text) || !*text ||
        strncmp(text, NO_VARIABLE, strlen(NO_VARIABLE)) == 0)
        text = part_after_slash(path);
    int rc = brc_utf8_valid(text, strlen(text)) ? set_axis_name(r, axis, text, err) : BRC_OK;
    brc_json_free(name);
    return rc;
}

static int referred_name(const scale_reader *r, hid_t dataset, const void *reference, int axis,
                         brc_error *err)
{
    const brc_hdf5 *lib = &r->in->lib;
    char path[1024] = "";
    hid_t scale = lib->H5Rdereference2(dataset, H5P_DEFAULT, H5R_OBJECT, reference);
    if (scale < 0)
        return brc_hdf5_fail(lib, err, BRC_EINVAL,
                             "%s: the dimension scale of axis %d cannot be opened", r->label, axis);
    int rc = BRC_OK;
    if (lib->H5Iget_type(scale) == H5I_DATASET) {
        if (lib->H5Iget_name(scale, path, sizeof(path)) < 0)
            path[0] = 0;
        rc = scale_name(r, scale, path, axis, err);
    }
    brc_hdf5_close(lib, scale);
    return rc;
}

/* One list of references for each axis, as the heap takes them. */
static int read_lists(const scale_reader *r, hid_t attribute, uint8_t *lists, brc_error *err)
{
    const brc_hdf5 *lib = &r->in->lib;
    hid_t type = lib->H5Aget_type(attribute), space = lib->H5Aget_space(attribute);
    hid_t base =
        type >= 0 && lib->H5Tget_class(type) == H5T_VLEN ? lib->H5Tget_super(type) : BRC_HDF5_NONE;
    hsize_t n = 0;
    int rc = BRC_OK;
    int fits = base >= 0 && lib->H5Tequal(base, lib->H5T_STD_REF_OBJ_g) > 0 && space >= 0 &&
               lib->H5Sget_simple_extent_ndims(space) == 1 &&
               lib->H5Sget_simple_extent_dims(space, &n, NULL) == 1 && n == (hsize_t)r->ndim;
    if (!fits)
        rc = brc_fail(err, BRC_EINVAL, "%s: DIMENSION_LIST is not one list of references an axis",
                      r->label);
    else if (lib->H5Aread(attribute, r->in->heap->reference, lists) < 0)
        rc = brc_hdf5_fail(lib, err, BRC_EINVAL, "%s: DIMENSION_LIST cannot be read", r->label);
    brc_hdf5_close(lib, base);
    brc_hdf5_close(lib, type);
    brc_hdf5_close(lib, space);
    return rc;
}

/* The first scale of an axis names it. */
static int first_name(const scale_reader *r, hid_t dataset, const uint8_t *list, int axis,
                      brc_error *err)
{
    brc_hdf5_heap *heap = r->in->heap;
    hobj_ref_t object = 0;
    brc_span addresses;
    if (r->names[axis])
        return BRC_OK;
    BRC_TRY(brc_hdf5_heap_get(heap, list, heap->address_size, &addresses, r->label, err));
    if (addresses.len == 0)
        return BRC_OK;
    for (size_t i = 0; i < heap->address_size; i++)
        object |= (hobj_ref_t)addresses.data[i] << (8 * i);
    return referred_name(r, dataset, &object, axis, err);
}

static int read_scales(const scale_reader *r, hid_t dataset, brc_error *err)
{
    const brc_hdf5 *lib = &r->in->lib;
    size_t step = r->in->heap->reference_size;
    uint8_t lists[BRC_MAX_NDIM * 16] = { 0 };
    int rc;

    if (lib->H5Aexists(dataset, "DIMENSION_LIST") == 0)
        return BRC_OK;
    hid_t attribute = lib->H5Aopen(dataset, "DIMENSION_LIST", H5P_DEFAULT);
    if (attribute < 0)
        return brc_hdf5_fail(lib, err, BRC_EINVAL, "%s: DIMENSION_LIST cannot be opened", r->label);
    rc = read_lists(r, attribute, lists, err);
    for (int i = 0; i < r->ndim && rc == BRC_OK; i++)
        rc = first_name(r, dataset, lists + (size_t)i * step, i, err);
    brc_hdf5_close(lib, attribute);
    return rc;
}

int brc_hdf5_names_read(char **names, const brc_hdf5_in *in, hid_t dataset, int ndim, int is_scale,
                        const char *path, const char *label, brc_error *err)
{
    scale_reader r = { in, label, ndim, names };
    if (ndim == 0)
        return BRC_OK;
    BRC_TRY(read_labels(&r, dataset, err));
    BRC_TRY(read_scales(&r, dataset, err));
    if (is_scale && ndim == 1)
        BRC_TRY(scale_name(&r, dataset, path, 0, err));
    return BRC_OK;
}
