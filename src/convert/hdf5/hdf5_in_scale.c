/*
 * The names of a dataset's axes, from HDF5's dimension scales: an axis has a label
 * (DIMENSION_LABELS), or a scale is attached to it (DIMENSION_LIST: a list of
 * references for each axis), whose name (NAME, or what it is called in its group)
 * is the axis's. A dataset of one axis that is a scale gives its own axis its name.
 */
#include <stdlib.h>
#include <string.h>

#include "hdf5_in.h"

/* What NetCDF-4 names scales that are not variables. */
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
    char path[1024] = "";
    hid_t scale = H5Rdereference2(dataset, H5P_DEFAULT, H5R_OBJECT, reference);
    if (scale < 0)
        return brc_hdf5_fail(err, BRC_EINVAL,
                             "%s: the dimension scale of axis %d cannot be opened", r->label, axis);
    int rc = BRC_OK;
    if (H5Iget_type(scale) == H5I_DATASET) {
        if (H5Iget_name(scale, path, sizeof(path)) < 0)
            path[0] = 0;
        rc = scale_name(r, scale, path, axis, err);
    }
    brc_hdf5_close(scale);
    return rc;
}

/* One list of references for each axis. */
static int check_lists(const scale_reader *r, hid_t type, hid_t space, brc_error *err)
{
    hid_t base = H5Tget_class(type) == H5T_VLEN ? H5Tget_super(type) : BRC_HDF5_NONE;
    hsize_t n = 0;
    int fits = base >= 0 && H5Tequal(base, H5T_STD_REF_OBJ) > 0 &&
               H5Sget_simple_extent_ndims(space) == 1 &&
               H5Sget_simple_extent_dims(space, &n, NULL) == 1 && n == (hsize_t)r->ndim;
    brc_hdf5_close(base);
    return fits ? BRC_OK
                : brc_fail(err, BRC_EINVAL,
                           "%s: DIMENSION_LIST is not one list of references per axis", r->label);
}

/* The first scale of an axis names it. */
static int take_lists(const scale_reader *r, hid_t dataset, const hvl_t *lists, brc_error *err)
{
    for (int i = 0; i < r->ndim; i++)
        if (!r->names[i] && lists[i].len > 0 && lists[i].p)
            BRC_TRY(referred_name(r, dataset, lists[i].p, i, err));
    return BRC_OK;
}

static int read_lists(const scale_reader *r, hid_t dataset, hid_t attribute, brc_error *err)
{
    hid_t type = H5Aget_type(attribute), space = H5Aget_space(attribute);
    hid_t memory = H5Tvlen_create(H5T_STD_REF_OBJ);
    hvl_t lists[BRC_MAX_NDIM] = { { 0, NULL } };
    int rc;

    if (type < 0 || space < 0 || memory < 0) {
        rc = brc_hdf5_fail(err, BRC_EINVAL, "%s: DIMENSION_LIST cannot be read", r->label);
        goto done;
    }
    BRC_GO(check_lists(r, type, space, err));
    if (H5Aread(attribute, memory, lists) < 0) {
        rc = brc_hdf5_fail(err, BRC_EINVAL, "%s: DIMENSION_LIST cannot be read", r->label);
        goto done;
    }
    rc = take_lists(r, dataset, lists, err);
    (void)H5Dvlen_reclaim(memory, space, H5P_DEFAULT, lists);
done:
    brc_hdf5_close(memory);
    brc_hdf5_close(type);
    brc_hdf5_close(space);
    return rc;
}

static int read_scales(const scale_reader *r, hid_t dataset, brc_error *err)
{
    brc_convert *c = r->in->convert;
    if (H5Aexists(dataset, "DIMENSION_LIST") == 0 ||
        brc_convert_lacks_attribute(c, brc_convert_path(c, r->label), "DIMENSION_LIST"))
        return BRC_OK;
    hid_t attribute = H5Aopen(dataset, "DIMENSION_LIST", H5P_DEFAULT);
    if (attribute < 0)
        return brc_hdf5_fail(err, BRC_EINVAL, "%s: DIMENSION_LIST cannot be opened", r->label);
    int rc = read_lists(r, dataset, attribute, err);
    brc_hdf5_close(attribute);
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
