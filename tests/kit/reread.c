/* See reread.h. */
#include "ios.h"
#include "reread.h"

#include <check.h>
#include <hdf5.h>
#include <netcdf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <xxhash.h>

#include "../../src/base/buf.h"

reread *reread_new(void)
{
    void *r = mmap(NULL, sizeof(reread), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    ck_assert(r != MAP_FAILED);
    return r;
}

void reread_free(reread *r)
{
    ck_assert_int_eq(munmap(r, sizeof(*r)), 0);
}

void reread_clear(reread *r)
{
    r->n = 0;
    r->status = -1;
}

/* The row counts once it is whole. */
static void add_row(reread *r, const char *path, const char *dtype, const void *data, size_t len)
{
    if (r->n >= REREAD_MOST || strlen(path) >= sizeof(r->arrays[0].path))
        return;
    reread_array *row = &r->arrays[r->n];
    snprintf(row->path, sizeof(row->path), "%s", path);
    snprintf(row->dtype, sizeof(row->dtype), "%s", dtype);
    row->len = len;
    row->sum = XXH3_64bits(data, len);
    r->n++;
}

/* A text without a place is empty. */
static void add_texts(reread *r, const char *path, char *const *texts, size_t n)
{
    brc_buf bytes = { 0 };
    int rc = BRC_OK;
    for (size_t i = 0; rc == BRC_OK && i < n; i++) {
        const char *text = texts[i] ? texts[i] : "";
        uint8_t len[4];
        brc_put_u32le(len, (uint32_t)strlen(text));
        rc = brc_buf_append(&bytes, len, sizeof(len), NULL);
        if (rc == BRC_OK)
            rc = brc_buf_append(&bytes, text, strlen(text), NULL);
    }
    if (rc == BRC_OK)
        add_row(r, path, "string", bytes.data ? (const void *)bytes.data : "", bytes.len);
    brc_buf_dispose(&bytes);
}

/* ---- HDF5 ------------------------------------------------------ */

/* The type in memory, or -1. */
static hid_t memory_type(hid_t stored, char dtype[16])
{
    const H5T_class_t kind = H5Tget_class(stored);
    if (kind == H5T_STRING && H5Tis_variable_str(stored) > 0) {
        snprintf(dtype, 16, "string");
        return H5Tcopy(stored);
    }
    if (kind != H5T_INTEGER && kind != H5T_FLOAT && kind != H5T_ENUM)
        return -1;
    hid_t number = kind == H5T_ENUM ? H5Tget_super(stored) : H5Tcopy(stored);
    hid_t native = H5Tget_native_type(number, H5T_DIR_ASCEND);
    snprintf(dtype, 16, "%s%zu",
             kind == H5T_FLOAT                        ? "float"
             : H5Tget_sign(number) == H5T_SGN_NONE ? "uint"
                                                   : "int",
             8 * H5Tget_size(native));
    H5Tclose(number);
    if (kind == H5T_ENUM) { /* converted only from its own kind: the bytes as they are stored */
        H5Tclose(native);
        return H5Tget_order(stored) == H5T_ORDER_LE ? H5Tcopy(stored) : -1;
    }
    return native;
}

/* Lists as the import has them: where each begins, and then the numbers of all. */
/* The number of elements, or -1 if there are more than 2^48: the library's own count overflows. */
static hssize_t elements_of(hid_t space)
{
    hsize_t dims[H5S_MAX_RANK], n = 1;
    const int ndim = H5Sget_simple_extent_dims(space, dims, NULL);
    for (int i = 0; i < ndim; i++) {
        if (dims[i] > 0 && n > ((hsize_t)1 << 48) / dims[i])
            return -1;
        n *= dims[i];
    }
    return ndim > 0 ? (hssize_t)n : H5Sget_simple_extent_npoints(space);
}

static void add_lists(reread *r, const char *path, const char *dtype, size_t size,
                      const hvl_t *lists, size_t n)
{
    char below[300];
    brc_buf offsets = { 0 }, values = { 0 };
    uint64_t total = 0;
    int rc = BRC_OK;
    for (size_t i = 0; rc == BRC_OK && i <= n; i++) {
        uint8_t offset[8];
        brc_put_u64le(offset, total);
        rc = brc_buf_append(&offsets, offset, sizeof(offset), NULL);
        if (rc == BRC_OK && i < n && lists[i].len > 0) {
            total += lists[i].len;
            rc = total > REREAD_BYTES / size
                     ? BRC_ELIMIT
                     : brc_buf_append(&values, lists[i].p, lists[i].len * size, NULL);
        }
    }
    if (rc == BRC_OK && snprintf(below, sizeof(below), "%s/offsets", path) < 300)
        add_row(r, below, "int64", offsets.data, offsets.len);
    if (rc == BRC_OK && snprintf(below, sizeof(below), "%s/values", path) < 300)
        add_row(r, below, dtype, values.data ? (const void *)values.data : "", values.len);
    brc_buf_dispose(&offsets);
    brc_buf_dispose(&values);
}

static void read_lists(reread *r, const char *path, hid_t set, hid_t stored, hid_t space)
{
    char dtype[16];
    const hssize_t n = elements_of(space);
    const hid_t base = H5Tget_super(stored), number = memory_type(base, dtype);
    if (number >= 0 && n >= 0 && n < REREAD_BYTES / 16 && strcmp(dtype, "string") != 0) {
        const hid_t memory = H5Tvlen_create(number);
        hvl_t *lists = calloc((size_t)n + 1, sizeof(*lists));
        if (lists && H5Dread(set, memory, H5S_ALL, H5S_ALL, H5P_DEFAULT, lists) >= 0)
            add_lists(r, path, dtype, H5Tget_size(number), lists, (size_t)n);
        free(lists); /* the lists themselves end with the child */
        H5Tclose(memory);
    }
    H5Tclose(number);
    H5Tclose(base);
}

static void read_dataset(reread *r, const char *path, hid_t set, hid_t stored, hid_t space)
{
    char dtype[16];
    if (H5Tget_class(stored) == H5T_VLEN) {
        read_lists(r, path, set, stored, space);
        return;
    }
    const hssize_t n = elements_of(space);
    const hid_t memory = memory_type(stored, dtype);
    if (memory < 0)
        return;
    const size_t size = H5Tget_size(memory);
    if (n >= 0 && size > 0 && (uint64_t)n <= REREAD_BYTES / size) {
        void *data = calloc((size_t)n + 1, size);
        if (data && H5Dread(set, memory, H5S_ALL, H5S_ALL, H5P_DEFAULT, data) >= 0) {
            if (strcmp(dtype, "string") == 0)
                add_texts(r, path, data, (size_t)n);
            else
                add_row(r, path, dtype, data, (size_t)n * size);
        }
        free(data);
    }
    H5Tclose(memory);
}

static herr_t take_object(hid_t file, const char *name, const H5O_info_t *info, void *ctx)
{
    char path[300];
    if (info->type != H5O_TYPE_DATASET || snprintf(path, sizeof(path), "/%s", name) >= 300)
        return 0;
    const hid_t set = H5Dopen2(file, name, H5P_DEFAULT);
    if (set < 0)
        return 0;
    const hid_t stored = H5Dget_type(set), space = H5Dget_space(set);
    if (stored >= 0 && space >= 0)
        read_dataset(ctx, path, set, stored, space);
    H5Sclose(space);
    H5Tclose(stored);
    H5Dclose(set);
    return 0;
}

void reread_hdf5(reread *r, const char *file)
{
    H5Eset_auto2(H5E_DEFAULT, NULL, NULL);
    const hid_t id = H5Fopen(file, H5F_ACC_RDONLY, H5P_DEFAULT);
    if (id < 0)
        return;
    (void)H5Ovisit2(id, H5_INDEX_NAME, H5_ITER_INC, take_object, r, H5O_INFO_BASIC);
    H5Fclose(id);
}

/* ---- NetCDF ---------------------------------------------------- */

static const char *const number_names[] = {
    [NC_BYTE] = "int8",     [NC_SHORT] = "int16",   [NC_INT] = "int32",   [NC_FLOAT] = "float32",
    [NC_DOUBLE] = "float64", [NC_UBYTE] = "uint8",   [NC_USHORT] = "uint16", [NC_UINT] = "uint32",
    [NC_INT64] = "int64",   [NC_UINT64] = "uint64", [NC_STRING] = "string",
};

static void read_variable(reread *r, int group, int var, const char *path)
{
    nc_type type;
    size_t size, n = 1;
    int ndim, dims[NC_MAX_VAR_DIMS];
    if (nc_inq_var(group, var, NULL, &type, &ndim, dims, NULL) || type < 0 || type > NC_STRING ||
        !number_names[type] || nc_inq_type(group, type, NULL, &size))
        return;
    for (int i = 0; i < ndim; i++) {
        size_t len;
        if (nc_inq_dimlen(group, dims[i], &len) || (len && n > REREAD_BYTES / size / len))
            return;
        n *= len;
    }
    void *data = calloc(n + 1, size);
    if (data && !nc_get_var(group, var, data)) {
        if (type == NC_STRING)
            add_texts(r, path, data, n);
        else
            add_row(r, path, number_names[type], data, n * size);
    }
    free(data);
}

static void read_group(reread *r, int group, const char *path, int depth)
{
    int n = 0, ids[REREAD_MOST];
    char name[NC_MAX_NAME + 1], below[sizeof(r->arrays[0].path) + NC_MAX_NAME + 2];
    if (nc_inq_nvars(group, &n))
        return;
    for (int i = 0; i < n && i < REREAD_MOST; i++)
        if (!nc_inq_varname(group, i, name)) {
            snprintf(below, sizeof(below), "%s/%s", path, name);
            read_variable(r, group, i, below);
        }
    if (depth == 0 || nc_inq_grps(group, &n, NULL) || n > REREAD_MOST ||
        nc_inq_grps(group, &n, ids))
        return;
    for (int i = 0; i < n; i++)
        if (!nc_inq_grpname(ids[i], name) && strlen(path) < sizeof(r->arrays[0].path)) {
            snprintf(below, sizeof(below), "%s/%s", path, name);
            read_group(r, ids[i], below, depth - 1);
        }
}

void reread_netcdf(reread *r, const char *file)
{
    int id;
    if (nc_open(file, NC_NOWRITE, &id))
        return;
    read_group(r, id, "", 3);
    nc_close(id);
}

/* ---- comparison ------------------------------------------------ */

uint64_t reread_compare(const reread *r, exchange_kit *kit, const char *below, const char *what)
{
    uint64_t compared = 0;
    for (uint32_t i = 0; i < r->n; i++) {
        const reread_array *row = &r->arrays[i];
        char path[512];
        brc_array *a;
        brc_buf got = { 0 };
        snprintf(path, sizeof(path), "%s%s", below, row->path);
        if (brc_array_open(&a, kit->session, path, NULL) != BRC_OK)
            continue; /* under an escaped name, or no path to be had of one */
        if (strcmp(brc_array_describe(a)->dtype, row->dtype) == 0) {
            int rc = io_elements(a, NULL, &got, &kit->err);
            ck_assert_msg(rc == BRC_OK, "%s: %s: %d, %s", what, path, rc, kit->err.message);
            ck_assert_msg(got.len == row->len, "%s: %s has %zu bytes, the file %llu", what, path,
                          got.len, (unsigned long long)row->len);
            ck_assert_msg(XXH3_64bits(got.data, got.len) == row->sum,
                          "%s: elements of %s (%s) are not the file's", what, path, row->dtype);
            compared++;
        }
        brc_buf_dispose(&got);
        brc_array_free(a);
    }
    return compared;
}
