/*
 * Which chunks of a NetCDF-4 variable are stored: a file of a few bytes may describe more
 * elements than anybody can read. netCDF-C does not tell, libhdf5 below it does.
 *
 * A variable is a data set of its name; one that has a dimension's name and is not its
 * coordinate has a prefix.
 */
#include "netcdf_stored.h"

#include <hdf5.h>
#include <stdlib.h>
#include <string.h>

#include "../../base/alloc.h"
#include "../../base/buf.h"

#define NOT_COORDINATE "_nc4_non_coord_"
/* libhdf5 finds the i-th stored chunk by walking past those before it. */
#define LISTED_MAX 20000

void brc_netcdf_stored_free(brc_netcdf_stored *stored)
{
    free(stored->numbers);
    memset(stored, 0, sizeof(*stored));
}

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

static int compare_numbers(const void *a, const void *b)
{
    uint64_t x, y;
    memcpy(&x, a, sizeof(x));
    memcpy(&y, b, sizeof(y));
    return x < y ? -1 : x > y;
}

/* The number of the chunk with this corner; 0: it is not in the grid. */
static int chunk_number_at(uint64_t *out, int ndim, const hsize_t *corner, const uint64_t *shape,
                     const uint64_t *chunk)
{
    *out = 0;
    for (int k = 0; k < ndim; k++) {
        if (corner[k] >= shape[k] || corner[k] % chunk[k] != 0)
            return 0;
        *out = *out * brc_grid_extent(shape[k], chunk[k]) + corner[k] / chunk[k];
    }
    return 1;
}

/* Lists them; where libhdf5 fails, reading the elements will say why. */
static int list_numbers(brc_netcdf_stored *out, hid_t set, hid_t space, hsize_t n, int ndim,
                       const uint64_t *shape, const uint64_t *chunk, brc_error *err)
{
    BRC_TRY(brc_new_array((void **)&out->numbers, (size_t)n + 1, sizeof(*out->numbers), err));
    for (hsize_t i = 0; i < n; i++) {
        hsize_t corner[BRC_MAX_NDIM + 1] = { 0 }, size;
        haddr_t at;
        unsigned mask;
        if (H5Dget_chunk_info(set, space, i, corner, &mask, &at, &size) < 0 ||
            !chunk_number_at(&out->numbers[out->n++], ndim, corner, shape, chunk))
            return BRC_OK;
    }
    qsort(out->numbers, out->n, sizeof(*out->numbers), compare_numbers);
    out->sparse = 1;
    return BRC_OK;
}

static void index_of(uint64_t number, int ndim, const uint64_t *shape, const uint64_t *chunk,
                     uint64_t *index)
{
    for (int k = ndim; k-- > 0;) {
        uint64_t count = brc_grid_extent(shape[k], chunk[k]);
        index[k] = number % count;
        number /= count;
    }
}

static int find_in_set(brc_netcdf_stored *out, hid_t set, int ndim, const uint64_t *shape,
                       const uint64_t *chunk, brc_error *err)
{
    uint64_t grid[BRC_MAX_NDIM], all;
    hsize_t n = 0;
    hid_t space = H5Dget_space(set);
    int rc = BRC_OK;

    for (int k = 0; k < ndim; k++)
        grid[k] = brc_grid_extent(shape[k], chunk[k]);
    all = brc_shape_count(ndim, grid);
    if (space >= 0 && H5Sget_simple_extent_ndims(space) == ndim && all < UINT64_MAX &&
        H5Dget_num_chunks(set, space, &n) >= 0 && n <= LISTED_MAX && n < all / 4)
        rc = list_numbers(out, set, space, n, ndim, shape, chunk, err);
    if (space >= 0)
        H5Sclose(space);
    return rc;
}

int brc_netcdf_find_stored(brc_netcdf_stored *out, const char *file, const char *path, int ndim,
                           const uint64_t *shape, const uint64_t *chunk, uint64_t *gap,
                           brc_error *err)
{
    hid_t id = H5Fopen(file, H5F_ACC_RDONLY, H5P_DEFAULT), set = -1;
    uint64_t missing = 0;
    int rc = BRC_OK;

    memset(out, 0, sizeof(*out));
    if (id >= 0)
        BRC_GO(open_data_set(&set, id, path, err));
    if (set >= 0)
        BRC_GO(find_in_set(out, set, ndim, shape, chunk, err));
    while (missing < out->n && out->numbers[missing] == missing)
        missing++;
    if (out->sparse)
        index_of(missing, ndim, shape, chunk, gap);
done:
    if (set >= 0)
        H5Dclose(set);
    if (id >= 0)
        H5Fclose(id);
    if (rc < 0 || !out->sparse)
        brc_netcdf_stored_free(out);
    return rc;
}

int brc_netcdf_next_stored(brc_netcdf_stored *stored, int ndim, const uint64_t *shape,
                           const uint64_t *chunk, uint64_t *index)
{
    if (stored->at == stored->n)
        return 0;
    index_of(stored->numbers[stored->at++], ndim, shape, chunk, index);
    return 1;
}
