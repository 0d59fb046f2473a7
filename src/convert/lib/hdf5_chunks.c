/*
 * Which chunks of a dataset are stored. A header of a few bytes may describe more
 * elements than anybody can read; only those that the file stores are.
 */
#include <stdlib.h>
#include <string.h>

#include "../../base/alloc.h"
#include "hdf5_chunks.h"

/* The library finds the i-th stored chunk by walking past those before it. */
#define LISTED_MAX 20000
/* Else each chunk of the grid is asked for. */
#define GRID_MAX ((uint64_t)1 << 24)

typedef struct chunk_search {
    brc_hdf5_stored *out;
    hid_t dataset, space;
    int ndim;
    const uint64_t *shape, *chunk;
    uint64_t grid[BRC_MAX_NDIM];
    int exact;
    const char *label;
} chunk_search;

static int chunks_failed(const chunk_search *s, brc_error *err)
{
    return brc_hdf5_fail(err, BRC_EINVAL, "%s: its chunks cannot be found", s->label);
}

static int add_corner(const chunk_search *s, const hsize_t *corner, brc_error *err)
{
    uint64_t *to = s->out->corners + s->out->n * (size_t)s->ndim;
    for (int i = 0; i < s->ndim; i++) {
        if (corner[i] >= s->shape[i]) /* cut off since it was written */
            return BRC_OK;
        if (corner[i] % s->chunk[i] != 0)
            return brc_fail(err, BRC_EINVAL, "%s: a chunk in it begins within another", s->label);
        to[i] = corner[i];
    }
    s->out->n++;
    return BRC_OK;
}

static int list_chunks(const chunk_search *s, uint64_t n, brc_error *err)
{
    BRC_TRY(brc_new_array((void **)&s->out->corners, (size_t)n, (size_t)s->ndim * sizeof(uint64_t),
                          err));
    for (uint64_t i = 0; i < n; i++) {
        hsize_t corner[BRC_MAX_NDIM + 1] = { 0 }, size;
        haddr_t at;
        unsigned mask;
        if (H5Dget_chunk_info(s->dataset, s->space, i, corner, &mask, &at, &size) < 0)
            return chunks_failed(s, err);
        BRC_TRY(add_corner(s, corner, err));
    }
    return BRC_OK;
}

static int ask_for_chunks(const chunk_search *s, uint64_t n, brc_error *err)
{
    uint64_t index[BRC_MAX_NDIM] = { 0 }, found = 0;
    BRC_TRY(brc_new_array((void **)&s->out->corners, (size_t)n, (size_t)s->ndim * sizeof(uint64_t),
                          err));
    do {
        hsize_t corner[BRC_MAX_NDIM];
        brc_hdf5_chunk there;
        for (int i = 0; i < s->ndim; i++)
            corner[i] = index[i] * s->chunk[i];
        BRC_TRY(brc_hdf5_chunk_find(&there, s->dataset, corner, s->label, err));
        if (there.bytes > 0 && found++ < n)
            BRC_TRY(add_corner(s, corner, err));
    } while (brc_index_next(s->ndim, index, s->grid));
    if (found != n)
        return brc_fail(err, BRC_EINVAL, "%s has %llu chunks, but only %llu are found", s->label,
                        (unsigned long long)n, (unsigned long long)found);
    return BRC_OK;
}

int brc_hdf5_is_virtual(hid_t dataset)
{
    hid_t plist = H5Dget_create_plist(dataset);
    int is = plist >= 0 && H5Pget_layout(plist) == H5D_VIRTUAL;
    brc_hdf5_close(plist);
    return is;
}

int brc_hdf5_chunk_find(brc_hdf5_chunk *out, hid_t dataset, const hsize_t *corner,
                        const char *label, brc_error *err)
{
    *out = (brc_hdf5_chunk){ .at = HADDR_UNDEF };
    if (H5Dget_chunk_info_by_coord(dataset, corner, &out->mask, &out->at, &out->bytes) < 0)
        return brc_hdf5_fail(err, BRC_EINVAL, "%s: a chunk of it cannot be found", label);
    if (out->at == HADDR_UNDEF)
        out->bytes = 0;
    return BRC_OK;
}

void brc_hdf5_stored_free(brc_hdf5_stored *stored)
{
    free(stored->corners);
    memset(stored, 0, sizeof(*stored));
}

static int find_chunks(chunk_search *s, brc_error *err)
{
    hsize_t n = 0;
    if (H5Dget_num_chunks(s->dataset, s->space, &n) < 0)
        return chunks_failed(s, err);
    for (int i = 0; i < s->ndim; i++)
        s->grid[i] = brc_grid_extent(s->shape[i], s->chunk[i]);
    uint64_t all = brc_shape_count(s->ndim, s->grid);
    s->out->complete = n == all;
    s->out->all = n == all || (!s->exact && all / 4 <= n && n > 0);
    if (s->out->all || n == 0)
        return BRC_OK;
    if (n <= LISTED_MAX)
        return list_chunks(s, n, err);
    if (all <= GRID_MAX || all / 4 <= n)
        return ask_for_chunks(s, n, err);
    return brc_fail(err, BRC_ELIMIT,
                    "%s has %llu chunks in a grid of %llu, too sparse for this build: write it "
                    "with larger chunks",
                    s->label, (unsigned long long)n, (unsigned long long)all);
}

int brc_hdf5_stored_read(brc_hdf5_stored *out, hid_t dataset, int ndim, const uint64_t *shape,
                         const uint64_t *chunk, int exact, const char *label, brc_error *err)
{
    chunk_search s = { .out = out,
                       .dataset = dataset,
                       .ndim = ndim,
                       .shape = shape,
                       .chunk = chunk,
                       .exact = exact,
                       .label = label };
    memset(out, 0, sizeof(*out));
    if (brc_shape_count(ndim, shape) == 0)
        return BRC_OK;
    if (!chunk) {
        out->all = out->complete =
            brc_hdf5_is_virtual(dataset) || H5Dget_storage_size(dataset) > 0;
        return BRC_OK;
    }
    s.space = H5Dget_space(dataset);
    int rc = s.space < 0 ? chunks_failed(&s, err) : find_chunks(&s, err);
    brc_hdf5_close(s.space);
    if (rc < 0)
        brc_hdf5_stored_free(out);
    return rc;
}

int brc_hdf5_stored_next(brc_hdf5_stored *stored, int ndim, int array_ndim, const uint64_t *shape,
                         const uint64_t *chunk, brc_sel *box)
{
    if (stored->at == stored->n)
        return 0;
    const uint64_t *corner = stored->corners + stored->at++ * (size_t)ndim;
    *box = (brc_sel)BRC_SEL_INIT;
    box->ndim = array_ndim;
    for (int i = 0; i < array_ndim; i++) {
        uint64_t first = i < ndim ? corner[i] : 0, left = shape[i] - first;
        uint64_t whole = i < ndim ? chunk[i] : shape[i];
        box->start[i] = first;
        box->count[i] = left < whole ? left : whole;
        box->step[i] = 1;
    }
    return 1;
}

/* ---- places in the file -------------------------------- */

#define TRIAL_BLOCK ((hsize_t)1 << 20) /* more than all that follows it */

/* Whether this build of the library adds the length of the user block to a chunk's address:
 * 1.10 does not, later ones do. Tried on a file in memory. */
static int library_adds_block(int *adds, brc_error *err)
{
    hsize_t one = 1, corner = 0;
    hid_t access = H5Pcreate(H5P_FILE_ACCESS), create = H5Pcreate(H5P_FILE_CREATE);
    hid_t plist = H5Pcreate(H5P_DATASET_CREATE), space = H5Screate_simple(1, &one, NULL);
    hid_t file = BRC_HDF5_NONE, set = BRC_HDF5_NONE;
    brc_hdf5_chunk chunk = { .bytes = 0 };
    int rc = BRC_OK;

    if (H5Pset_fapl_core(access, 4096, 0) >= 0 && H5Pset_userblock(create, TRIAL_BLOCK) >= 0 &&
        H5Pset_chunk(plist, 1, &one) >= 0 && H5Pset_alloc_time(plist, H5D_ALLOC_TIME_EARLY) >= 0)
        file = H5Fcreate("trial", H5F_ACC_TRUNC, create, access);
    if (file >= 0)
        set = H5Dcreate2(file, "d", H5T_NATIVE_UINT8, space, H5P_DEFAULT, plist, H5P_DEFAULT);
    if (set >= 0)
        rc = brc_hdf5_chunk_find(&chunk, set, &corner, "a file in memory", err);
    if (rc == BRC_OK && chunk.bytes == 0)
        rc = brc_hdf5_fail(err, BRC_EINTERNAL, "a file in memory cannot be made");
    *adds = chunk.at >= TRIAL_BLOCK;
    const hid_t ids[] = { set, file, space, plist, create, access };
    for (size_t i = 0; i < sizeof(ids) / sizeof(ids[0]); i++)
        brc_hdf5_close(ids[i]);
    return rc;
}

int brc_hdf5_base(uint64_t *base, int *known, hid_t dataset, brc_error *err)
{
    hid_t file = H5Iget_file_id(dataset);
    hid_t create = H5Fget_create_plist(file), access = H5Fget_access_plist(file);
    hsize_t block = 0;
    int adds = 0, rc = BRC_OK;

    *known = H5Pget_driver(access) == H5FD_SEC2 && H5Pget_userblock(create, &block) >= 0;
    if (*known && block > 0)
        rc = library_adds_block(&adds, err);
    *base = adds ? 0 : block;
    brc_hdf5_close(access);
    brc_hdf5_close(create);
    brc_hdf5_close(file);
    return rc;
}
