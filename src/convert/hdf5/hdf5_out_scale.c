/*
 * Dimension scales. An array of one axis that bears its name, as a coordinate does
 * (x with the axis "x"), becomes a scale. Where another array has an axis of this name
 * and length, in the same group or one below, it is attached there; every other name
 * is the axis's label.
 */
#include <stdlib.h>
#include <string.h>

#include "hdf5_out.h"

#include <hdf5_hl.h> /* behind hdf5.h, as hdf5_lib.h asks for it */

int brc_hdf5_item_add(brc_hdf5_out *out, const char *inner, int ndim, const uint64_t *shape,
                      const brc_json *names, int scales, brc_error *err)
{
    BRC_TRY(brc_grow_array((void **)&out->items, &out->cap, out->n + 1, sizeof(*out->items), err));
    brc_hdf5_item *item = &out->items[out->n];
    memset(item, 0, sizeof(*item));
    BRC_TRY(brc_dup(&item->inner, inner, err));
    out->n++; /* freed with the rest from now on */
    item->ndim = ndim;
    memcpy(item->shape, shape, (size_t)ndim * sizeof(*item->shape));
    item->scales = scales;
    if (!names)
        return BRC_OK;
    BRC_TRY(brc_new_array((void **)&item->names, (size_t)ndim, sizeof(*item->names), err));
    const brc_json *name = brc_json_first(names);
    const char *text;
    for (int i = 0; name && i < ndim; i++, name = brc_json_next(name))
        if (brc_json_text(name, &text))
            BRC_TRY(brc_dup(&item->names[i], text, err));
    return BRC_OK;
}

static int compare_items(const void *a, const void *b)
{
    return strcmp(((const brc_hdf5_item *)a)->inner, ((const brc_hdf5_item *)b)->inner);
}

static const char *last_name(const char *inner)
{
    const char *slash = strrchr(inner, '/');
    return slash ? slash + 1 : inner;
}

static int is_coordinate(const brc_hdf5_item *item)
{
    return item->scales && item->ndim == 1 && item->names && item->names[0] &&
           strcmp(item->names[0], last_name(item->inner)) == 0;
}

/* The coordinate of this name and length in the first len bytes of `inner`, a group,
 * or in a group around it. */
static int find_coordinate(const brc_hdf5_item **found, const brc_hdf5_out *out, const char *inner,
                           const char *name, uint64_t length, brc_error *err)
{
    size_t len = (size_t)(last_name(inner) - inner);
    brc_buf path = BRC_BUF_INIT;
    int rc = BRC_OK;

    *found = NULL;
    for (;;) {
        path.len = 0;
        BRC_GO(brc_buf_append(&path, inner, len, err));
        BRC_GO(brc_buf_text(&path, name, err));
        BRC_GO(brc_buf_terminate(&path, err));
        brc_hdf5_item key = { .inner = (char *)path.data };
        const brc_hdf5_item *item =
            bsearch(&key, out->items, out->n, sizeof(*out->items), compare_items);
        if (item && is_coordinate(item) && item->shape[0] == length) {
            *found = item;
            break;
        }
        if (len == 0)
            break;
        for (len--; len > 0 && inner[len - 1] != '/'; len--)
            ;
    }
done:
    brc_buf_dispose(&path);
    return rc;
}

static int scale_failed(const brc_hdf5_item *item, const char *name,
                        brc_error *err)
{
    return brc_hdf5_fail(err, BRC_EIO,
                         "/%s: the name \"%.80s\" of an axis cannot be "
                         "written",
                         item->inner, name);
}

static int name_axis(const brc_hdf5_out *out, const brc_hdf5_item *item, hid_t dataset, int axis,
                     brc_error *err)
{
    const char *name = item->names[axis];
    const brc_hdf5_item *coordinate;

    BRC_TRY(find_coordinate(&coordinate, out, item->inner, name, item->shape[axis], err));
    if (!coordinate)
        return H5DSset_label(dataset, (unsigned)axis, name) < 0
                   ? scale_failed(item, name, err)
                   : BRC_OK;
    hid_t scale = H5Dopen2(out->id, coordinate->inner, H5P_DEFAULT);
    int failed = scale < 0 || H5DSattach_scale(dataset, scale, (unsigned)axis) < 0;
    int rc = failed ? scale_failed(item, name, err) : BRC_OK;
    brc_hdf5_close(scale);
    return rc;
}

static int name_axes(const brc_hdf5_out *out, const brc_hdf5_item *item, int coordinates,
                     brc_error *err)
{
    int rc = BRC_OK;
    if (!item->names || is_coordinate(item) != coordinates)
        return BRC_OK;
    hid_t dataset = H5Dopen2(out->id, item->inner, H5P_DEFAULT);
    if (dataset < 0)
        return scale_failed(item, "", err);
    if (coordinates && H5DSset_scale(dataset, item->names[0]) < 0)
        rc = scale_failed(item, item->names[0], err);
    for (int i = 0; !coordinates && i < item->ndim && rc == BRC_OK; i++)
        if (item->names[i])
            rc = name_axis(out, item, dataset, i, err);
    brc_hdf5_close(dataset);
    return rc;
}

int brc_hdf5_scales_write(const brc_hdf5_out *out, brc_error *err)
{
    if (out->n > 0)
        qsort(out->items, out->n, sizeof(*out->items), compare_items);
    for (int coordinates = 1; coordinates >= 0; coordinates--) /* first what others need */
        for (size_t i = 0; i < out->n; i++)
            BRC_TRY(name_axes(out, &out->items[i], coordinates, err));
    return BRC_OK;
}
