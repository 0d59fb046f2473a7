/* References as text, and text as references: see hdf5_reference.h. */
#include "hdf5_reference.h"

#include <stdlib.h>
#include <string.h>

#include "../../base/alloc.h"

#define MOST_BLOCKS 4096 /* or points of a region */

static int bad_region(const char *label, brc_error *err)
{
    return brc_hdf5_fail(err, BRC_EINVAL, "%s: a reference to a region in it cannot be read",
                         label);
}

/* ---- selections as text -------------------------------- */

static int append_slice(brc_buf *out, int axis, hsize_t from, hsize_t to, hsize_t step,
                        brc_error *err)
{
    BRC_TRY(brc_buf_printf(out, err, "%s%llu:%llu", axis > 0 ? ", " : "[", (unsigned long long)from,
                           (unsigned long long)to));
    return step > 1 ? brc_buf_printf(out, err, ":%llu", (unsigned long long)step) : BRC_OK;
}

/* 1 if the selection is one box of slices. */
static int append_regular(hid_t space, int ndim, brc_buf *out, brc_error *err)
{
    hsize_t start[H5S_MAX_RANK], stride[H5S_MAX_RANK], count[H5S_MAX_RANK], block[H5S_MAX_RANK];
    if (H5Sis_regular_hyperslab(space) <= 0 ||
        H5Sget_regular_hyperslab(space, start, stride, count, block) < 0)
        return 0;
    for (int i = 0; i < ndim; i++)
        if (count[i] == 0 || (block[i] != 1 && count[i] != 1))
            return 0;
    for (int i = 0; i < ndim; i++) {
        hsize_t last =
            count[i] == 1 ? start[i] + block[i] - 1 : start[i] + (count[i] - 1) * stride[i];
        BRC_TRY(append_slice(out, i, start[i], last + 1, count[i] == 1 ? 1 : stride[i], err));
    }
    BRC_TRY(brc_buf_byte(out, ']', err));
    return 1;
}

/* Boxes, each as its first and last corner, or points. */
static int append_corners(const hsize_t *at, size_t n, int ndim, int points, brc_buf *out,
                          brc_error *err)
{
    for (size_t k = 0; k < n; k++, at += (points ? 1 : 2) * ndim) {
        for (int i = 0; i < ndim; i++)
            BRC_TRY(points ? brc_buf_printf(out, err, "%s%llu", i > 0 ? ", " : "[",
                                            (unsigned long long)at[i])
                           : append_slice(out, i, at[i], at[ndim + i] + 1, 1, err));
        BRC_TRY(brc_buf_byte(out, ']', err));
    }
    return BRC_OK;
}

static int append_list(hid_t space, int ndim, int points, brc_buf *out, const char *label,
                       brc_error *err)
{
    hssize_t n = points ? H5Sget_select_elem_npoints(space) : H5Sget_select_hyper_nblocks(space);
    hsize_t *at;
    if (n < 0 || ndim < 1)
        return bad_region(label, err);
    if (n > MOST_BLOCKS)
        return brc_fail(err, BRC_EUNSUPPORTED,
                        "%s: a reference in it is to a region of more than %d parts", label,
                        MOST_BLOCKS);
    BRC_TRY(brc_new_array((void **)&at, (size_t)n, 2 * (size_t)ndim * sizeof(*at), err));
    herr_t status = points ? H5Sget_select_elem_pointlist(space, 0, (hsize_t)n, at)
                           : H5Sget_select_hyper_blocklist(space, 0, (hsize_t)n, at);
    int rc =
        status < 0 ? bad_region(label, err) : append_corners(at, (size_t)n, ndim, points, out, err);
    free(at);
    return rc;
}

static int append_selection(hid_t space, brc_buf *out, const char *label, brc_error *err)
{
    int ndim = H5Sget_simple_extent_ndims(space), rc;
    if (ndim < 0 || H5Sselect_valid(space) <= 0)
        return bad_region(label, err);
    switch (H5Sget_select_type(space)) {
    case H5S_SEL_NONE:
        return brc_buf_text(out, "[]", err);
    case H5S_SEL_ALL:
        return brc_buf_text(out, "[...]", err);
    case H5S_SEL_POINTS:
        return append_list(space, ndim, 1, out, label, err);
    case H5S_SEL_HYPERSLABS:
        rc = append_regular(space, ndim, out, err);
        return rc != 0 ? (rc < 0 ? rc : BRC_OK) : append_list(space, ndim, 0, out, label, err);
    default:
        return bad_region(label, err);
    }
}

/* ---- references as text -------------------------------- */

static int append_path(const brc_hdf5_paths *paths, haddr_t address, brc_buf *out,
                       const char *label, brc_error *err)
{
    int rc = brc_hdf5_path_put(paths, address, out, err);
    if (rc != 0)
        return rc < 0 ? rc : BRC_OK;
    return paths->from
               ? brc_part_refuse(err, BRC_PART_VALUE, "link to a group around both",
                                 "%s: a reference in it leads to an object of another file that "
                                 "the link to that file does not bring in",
                                 label)
               : brc_fail(
                     err, BRC_EUNSUPPORTED,
                     "%s: a reference in it leads to an object that no path of the file leads to",
                     label);
}

static int append_region(const brc_hdf5_paths *paths, hid_t file, const void *reference,
                         brc_buf *out, const char *label, brc_error *err)
{
    H5O_info_t info;
    hid_t object = H5Rdereference2(file, H5P_DEFAULT, H5R_DATASET_REGION, reference);
    hid_t space = object < 0 ? BRC_HDF5_NONE : H5Rget_region(file, H5R_DATASET_REGION, reference);
    int rc;
    if (space < 0 || H5Oget_info2(object, &info, H5O_INFO_BASIC) < 0) {
        rc = bad_region(label, err);
        goto done;
    }
    BRC_GO(append_path(paths, info.addr, out, label, err));
    BRC_GO(brc_buf_byte(out, '#', err));
    rc = append_selection(space, out, label, err);
done:
    brc_hdf5_close(space);
    brc_hdf5_close(object);
    return rc;
}

int brc_hdf5_reference_text(const brc_hdf5_paths *paths, hid_t file, int is_region,
                            const void *reference, brc_buf *out, const char *label, brc_error *err)
{
    static const uint8_t nothing[sizeof(hdset_reg_ref_t) + sizeof(hobj_ref_t)];
    hobj_ref_t address;
    if (memcmp(reference, nothing, is_region ? sizeof(hdset_reg_ref_t) : sizeof(address)) == 0)
        return BRC_OK;
    if (is_region)
        return append_region(paths, file, reference, out, label, err);
    memcpy(&address, reference, sizeof(address));
    if (address == HADDR_UNDEF)
        return BRC_OK;
    return append_path(paths, address, out, label, err);
}

/* ---- text as references -------------------------------- */

/* One bracket's slices or integers: 1 if it is read, and *text stands behind it. */
typedef struct region_part {
    hsize_t start[H5S_MAX_RANK], stride[H5S_MAX_RANK], count[H5S_MAX_RANK];
    int ndim, points;
} region_part;

static int read_number(const char **text, hsize_t *out)
{
    char *end;
    if (**text < '0' || **text > '9')
        return 0;
    *out = strtoull(*text, &end, 10);
    *text = end;
    return 1;
}

static int read_part_axis(const char **text, region_part *part)
{
    hsize_t to, step = 1, *start = &part->start[part->ndim];
    if (part->ndim == H5S_MAX_RANK || !read_number(text, start))
        return 0;
    int is_point = **text != ':';
    if (part->ndim > 0 && is_point != part->points)
        return 0;
    part->points = is_point;
    to = *start + 1;
    if (!is_point) {
        ++*text;
        if (!read_number(text, &to) || to <= *start)
            return 0;
        if (**text == ':' && (++*text, !read_number(text, &step) || step == 0))
            return 0;
    }
    part->stride[part->ndim] = step;
    part->count[part->ndim] = (to - *start + step - 1) / step;
    part->ndim++;
    return 1;
}

static int read_part_text(const char **text, region_part *part)
{
    part->ndim = 0;
    if (*(*text)++ != '[')
        return 0;
    while (read_part_axis(text, part)) {
        if (**text == ']') {
            ++*text;
            return 1;
        }
        if (*(*text)++ != ',')
            return 0;
        *text += **text == ' ';
    }
    return 0;
}

/* 1 if the selection is made in the space, 0 if the text is none of it. */
static int select_region(hid_t space, const char *text)
{
    int ndim = H5Sget_simple_extent_ndims(space), ok = H5Sselect_none(space) >= 0;
    region_part part;
    if (strcmp(text, "[]") == 0)
        return ok;
    if (strcmp(text, "[...]") == 0)
        return H5Sselect_all(space) >= 0;
    for (int first = 1, points = 0; ok && *text; first = 0) {
        ok = read_part_text(&text, &part) && part.ndim == ndim && (first || part.points == points);
        if (!ok)
            break;
        points = part.points;
        ok = points ? H5Sselect_elements(space, first ? H5S_SELECT_SET : H5S_SELECT_APPEND, 1,
                                         part.start) >= 0
                    : H5Sselect_hyperslab(space, first ? H5S_SELECT_SET : H5S_SELECT_OR, part.start,
                                          part.stride, part.count, NULL) >= 0;
    }
    return ok && H5Sselect_valid(space) > 0;
}

static int make_region(hid_t file, const char *path, const char *text, void *reference,
                       const char *label, brc_error *err)
{
    const char *selection = strrchr(text, '#');
    hid_t set = selection ? H5Dopen2(file, path, H5P_DEFAULT) : BRC_HDF5_NONE;
    hid_t space = set < 0 ? BRC_HDF5_NONE : H5Dget_space(set);
    int rc = space >= 0 && select_region(space, selection + 1);
    if (rc == 1 && H5Rcreate(reference, file, path, H5R_DATASET_REGION, space) < 0)
        rc = brc_hdf5_fail(err, BRC_EIO, "%s: a reference to %s cannot be made", label, text);
    brc_hdf5_close(space);
    brc_hdf5_close(set);
    return rc;
}

int brc_hdf5_reference_make(hid_t file, int is_region, const char *path, const char *text,
                            void *reference, const char *label, brc_error *err)
{
    if (is_region)
        return make_region(file, path, text, reference, label, err);
    if (H5Rcreate(reference, file, path, H5R_OBJECT, BRC_HDF5_NONE) < 0)
        return brc_hdf5_fail(err, BRC_EIO, "%s: a reference to %s cannot be made", label, text);
    return 1;
}
