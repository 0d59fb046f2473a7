/*
 * A variable is a data set of its name; one that has a dimension's name and is not its
 * coordinate has a prefix. Along an unlimited dimension a data set may be shorter than the
 * variable, which others have made longer: netCDF-C knows what is behind its end.
 */
#include "netcdf_stored.h"

#include <stdlib.h>
#include <string.h>

#include "../../base/alloc.h"
#include "../../base/buf.h"
#include "../lib/hdf5_heap.h"

#define NOT_COORDINATE "_nc4_non_coord_"

void brc_netcdf_stored_init(brc_netcdf_stored *stored)
{
    memset(stored, 0, sizeof(*stored));
    stored->file = stored->set = stored->plist = stored->file_type = BRC_HDF5_NONE;
}

void brc_netcdf_stored_close(brc_netcdf_stored *stored)
{
    brc_hdf5_pass_close(stored->pass);
    brc_hdf5_stored_free(&stored->chunks);
    brc_dtype_free(stored->dtype);
    brc_hdf5_close(stored->file_type);
    brc_hdf5_close(stored->plist);
    brc_hdf5_close(stored->set);
    brc_hdf5_close(stored->file); /* behind what is open in it: netCDF-C closes files strictly */
    brc_netcdf_stored_init(stored);
}

/* ---- the data set --------------------------------------- */

static int prefixed_path(brc_buf *out, const char *path, brc_error *err)
{
    const char *name = strrchr(path, '/') + 1;
    BRC_TRY(brc_buf_append(out, path, (size_t)(name - path), err));
    BRC_TRY(brc_buf_text(out, NOT_COORDINATE, err));
    BRC_TRY(brc_buf_text(out, name, err));
    return brc_buf_terminate(out, err);
}

/* *set below 0 if there is none. */
static int open_data_set(hid_t *set, hid_t file, const char *path, brc_error *err)
{
    brc_buf other = BRC_BUF_INIT;
    int rc;
    BRC_GO(prefixed_path(&other, path, err));
    *set = H5Dopen2(file, (const char *)other.data, H5P_DEFAULT);
    if (*set < 0)
        *set = H5Dopen2(file, path, H5P_DEFAULT);
done:
    brc_buf_dispose(&other);
    return rc;
}

static int has_extent(hid_t set, const brc_array_in *array)
{
    hsize_t extent[H5S_MAX_RANK];
    hid_t space = H5Dget_space(set);
    int same = H5Sget_simple_extent_ndims(space) == array->ndim &&
               H5Sget_simple_extent_dims(space, extent, NULL) == array->ndim;
    for (int k = 0; k < array->ndim && same; k++)
        same = extent[k] == array->shape[k];
    brc_hdf5_close(space);
    return same;
}

static int has_chunks(hid_t plist, const brc_array_in *array)
{
    hsize_t chunk[H5S_MAX_RANK];
    H5D_layout_t layout = H5Pget_layout(plist);
    if (!array->chunked)
        return layout == H5D_CONTIGUOUS;
    int same = layout == H5D_CHUNKED && H5Pget_chunk(plist, array->ndim, chunk) == array->ndim;
    for (int k = 0; k < array->ndim && same; k++)
        same = chunk[k] == array->chunk[k];
    return same;
}

/* ---- chunks --------------------------------------------- */

/* The first chunk of the grid that is not there; 0: all are. */
static int find_gap(brc_netcdf_stored *s, const brc_array_in *a, brc_error *err)
{
    uint64_t grid[BRC_MAX_NDIM];
    hsize_t corner[BRC_MAX_NDIM];
    brc_hdf5_chunk chunk;
    for (int k = 0; k < a->ndim; k++)
        grid[k] = brc_grid_extent(a->shape[k], a->chunk[k]);
    do {
        for (int k = 0; k < a->ndim; k++)
            corner[k] = s->gap[k] * a->chunk[k];
        BRC_TRY(brc_hdf5_chunk_find(&chunk, s->set, corner, a->label, err));
        if (chunk.bytes == 0)
            return 1;
    } while (brc_index_next(a->ndim, s->gap, grid));
    return 0;
}

static int look_at_set(brc_netcdf_stored *s, const brc_array_in *a, brc_error *err)
{
    s->plist = H5Dget_create_plist(s->set);
    s->file_type = H5Dget_type(s->set);
    if (s->plist < 0 || s->file_type < 0 || !has_extent(s->set, a) || !has_chunks(s->plist, a))
        return BRC_OK;
    BRC_TRY(brc_hdf5_stored_read(&s->chunks, s->set, a->ndim, a->shape,
                                 a->chunked ? a->chunk : NULL, 0, a->label, err));
    if (a->chunked && !s->chunks.complete && brc_shape_count(a->ndim, a->shape) > 0)
        s->has_gap = find_gap(s, a, err);
    if (s->has_gap < 0)
        return s->has_gap;
    s->found = 1;
    return BRC_OK;
}

int brc_netcdf_stored_open(brc_netcdf_stored *out, const char *file, const brc_array_in *array,
                           brc_error *err)
{
    brc_error why = BRC_ERROR_INIT;
    int rc = BRC_OK;

    out->file = H5Fopen(file, H5F_ACC_RDONLY, H5P_DEFAULT);
    if (out->file >= 0)
        rc = open_data_set(&out->set, out->file, array->path, &why);
    if (rc == BRC_OK && out->set >= 0)
        rc = look_at_set(out, array, &why);
    if (rc < 0 || !out->found)
        brc_netcdf_stored_close(out);
    return rc == BRC_ENOMEM ? brc_nomem(err) : BRC_OK;
}

int brc_netcdf_set_check(const brc_convert *c, const char *file, const brc_array_in *array,
                             brc_error *err)
{
    hid_t id = H5Fopen(file, H5F_ACC_RDONLY, H5P_DEFAULT), set = BRC_HDF5_NONE;
    int rc = id < 0 ? BRC_OK : open_data_set(&set, id, array->path, err);
    hid_t plist = set < 0 ? BRC_HDF5_NONE : H5Dget_create_plist(set);
    if (rc == BRC_OK && plist >= 0)
        rc = brc_hdf5_filters_check(c, plist, set, array->label, err);
    if (rc == BRC_OK && set >= 0)
        rc = brc_hdf5_heap_check(set, H5S_ALL, array->label, err);
    brc_hdf5_close(plist);
    brc_hdf5_close(set);
    brc_hdf5_close(id);
    return rc;
}

/* ---- what passes ---------------------------------------- */

/* What netCDF-C reads it as; below 0 for types that are more than a number. */
static hid_t memory_type(const brc_netcdf_type *type)
{
    if (type->is_complex || type->nmoves > 0)
        return BRC_HDF5_NONE;
    switch (type->number) {
    case NC_BYTE:
        return H5T_NATIVE_INT8;
    case NC_UBYTE:
        return H5T_NATIVE_UINT8;
    case NC_SHORT:
        return H5T_NATIVE_INT16;
    case NC_USHORT:
        return H5T_NATIVE_UINT16;
    case NC_INT:
        return H5T_NATIVE_INT32;
    case NC_UINT:
        return H5T_NATIVE_UINT32;
    case NC_INT64:
        return H5T_NATIVE_INT64;
    case NC_UINT64:
        return H5T_NATIVE_UINT64;
    case NC_FLOAT:
        return H5T_NATIVE_FLOAT;
    case NC_DOUBLE:
        return H5T_NATIVE_DOUBLE;
    default:
        return BRC_HDF5_NONE;
    }
}

static int next_passed_chunk(void *ctx, uint64_t *index, brc_stored_in *bytes, brc_error *err)
{
    brc_netcdf_stored *s = ctx;
    return brc_hdf5_pass_next(s->pass, &s->chunks, index, bytes, err);
}

int brc_netcdf_stored_pass(brc_netcdf_stored *stored, const brc_registry *reg,
                           const brc_netcdf_type *type, brc_array_in *array, brc_error *err)
{
    hid_t memory = memory_type(type);
    if (memory < 0 || strcmp(array->dtype, "bool") == 0)
        return BRC_OK;
    BRC_TRY(brc_dtype_open_name(&stored->dtype, reg, array->dtype, err));
    brc_hdf5_layout layout = { .reg = reg,
                               .dataset = stored->set,
                               .plist = stored->plist,
                               .file_type = stored->file_type,
                               .memory = memory,
                               .item = type->here_size,
                               .dtype = stored->dtype,
                               .ndim = array->ndim,
                               .array_ndim = array->ndim,
                               .shape = array->shape,
                               .chunk = array->chunked ? array->chunk : NULL,
                               .has_gaps = stored->has_gap,
                               .label = array->label };
    BRC_TRY(brc_hdf5_pass_open(&stored->pass, &layout, err));
    if (!stored->pass)
        return BRC_OK;
    brc_hdf5_pass_describe(stored->pass, array);
    array->next_chunk = next_passed_chunk;
    array->ctx = stored;
    return BRC_OK;
}
