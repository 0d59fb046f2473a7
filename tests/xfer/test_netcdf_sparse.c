/* NetCDF-4 variables of which the file stores few chunks: those alone are read, where what is
 * missing reads as the array's fill value does. */
#include <hdf5.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../../src/breccia.h"
#include "../kit/netcdf_kit.h"
#include "../kit/suite.h"

TEST_SUITE(netcdf_sparse);

static int element_at(exchange_kit *kit, const char *path, uint64_t y, uint64_t x)
{
    brc_array *a;
    int value = 0;
    brc_sel one = { .size = sizeof(brc_sel), .ndim = 2,
                    .start = { y, x }, .count = { 1, 1 }, .step = { 1, 1 } };
    ck_assert_int_eq(brc_array_open(&a, kit->session, path, &kit->err), BRC_OK);
    int rc = brc_array_read(a, &one, &value, sizeof(value), &kit->err);
    ck_assert_msg(rc == BRC_OK, "%s", kit->err.message);
    brc_array_free(a);
    return value;
}

static uint64_t stored_chunks(exchange_kit *kit, const char *path)
{
    brc_array *a;
    uint64_t n, bytes;
    ck_assert_int_eq(brc_array_open(&a, kit->session, path, &kit->err), BRC_OK);
    ck_assert_int_eq(brc_array_stat(&n, &bytes, a, &kit->err), BRC_OK);
    brc_array_free(a);
    return n;
}

/* A variable of n x n ints in chunks of 8 x 8, of which two are written; `name` may be that of
 * its second dimension. */
static void write_sparse(const char *path, const char *name, size_t n, int no_fill)
{
    int nc, dims[2], var, data[64];
    size_t chunk[2] = { 8, 8 }, start[2] = { n - 8, n - 8 }, count[2] = { 8, 8 };
    for (int i = 0; i < 64; i++)
        data[i] = i + 1;
    NC(nc_create(path, NC_NETCDF4, &nc));
    NC(nc_def_dim(nc, "y", n, &dims[0]));
    NC(nc_def_dim(nc, "x", n, &dims[1]));
    NC(nc_def_var(nc, name, NC_INT, 2, dims, &var));
    NC(nc_def_var_chunking(nc, var, NC_CHUNKED, chunk));
    if (no_fill)
        NC(nc_def_var_fill(nc, var, NC_NOFILL, NULL));
    NC(nc_enddef(nc));
    NC(nc_put_vara_int(nc, var, start, count, data));
    start[0] = start[1] = 8;
    NC(nc_put_vara_int(nc, var, start, count, data));
    NC(nc_close(nc));
}

static const struct {
    const char *name;
    int no_fill, missing;
} sparse_kinds[] = {
    { "v", 0, NC_FILL_INT },
    { "v", 1, 0 },
    { "x", 0, NC_FILL_INT }, /* not a coordinate: it has two axes */
};
#define N_SPARSE (sizeof(sparse_kinds) / sizeof(sparse_kinds[0]))

CASE("sparse", .timeout = 120);

/* 2^62 elements: whoever reads them all never ends. */
LOOP(what_is_there_alone_is_read, 0, N_SPARSE)
{
    size_t n = (size_t)1 << 31;
    char path[16];
    exchange_kit kit;
    exchange_start(&kit);
    const char *source = exchange_path(&kit, "sparse.nc");
    write_sparse(source, sparse_kinds[_i].name, n, sparse_kinds[_i].no_fill);
    netcdf_import_ok(&kit, source, "/in");
    snprintf(path, sizeof(path), "/in/%s", sparse_kinds[_i].name);
    ck_assert_uint_eq(stored_chunks(&kit, path), 2);
    ck_assert_int_eq(element_at(&kit, path, 8, 8), 1);
    ck_assert_int_eq(element_at(&kit, path, 15, 15), 64);
    ck_assert_int_eq(element_at(&kit, path, n - 8, n - 7), 2);
    ck_assert_int_eq(element_at(&kit, path, 7, 8), sparse_kinds[_i].missing);
    ck_assert_int_eq(element_at(&kit, path, n - 1, 0), sparse_kinds[_i].missing);
    exchange_stop(&kit);
}

/* Sets the extent of a dataset, or gives it an attribute _FillValue of 7: what netCDF-C does
 * not. */
static void change_dataset(const char *path, const char *name, hsize_t extent, int has_seven)
{
    int seven = 7;
    hsize_t one = 1;
    hid_t file = H5Fopen(path, H5F_ACC_RDWR, H5P_DEFAULT);
    hid_t set = H5Dopen2(file, name, H5P_DEFAULT), space = H5Screate_simple(1, &one, NULL);
    ck_assert(file >= 0 && set >= 0 && space >= 0);
    if (extent > 0)
        ck_assert_int_ge(H5Dset_extent(set, &extent), 0);
    if (has_seven) {
        hid_t fill = H5Acreate2(set, "_FillValue", H5T_NATIVE_INT, space, H5P_DEFAULT, H5P_DEFAULT);
        ck_assert_int_ge(H5Awrite(fill, H5T_NATIVE_INT, &seven), 0);
        H5Aclose(fill);
    }
    H5Sclose(space);
    H5Dclose(set);
    H5Fclose(file);
}

/* The attribute _FillValue says one thing, the data set another: a gap reads as the second. */
TEST(gaps_of_another_value_are_read)
{
    exchange_kit kit;
    exchange_start(&kit);
    const char *source = exchange_path(&kit, "odd.nc");
    write_sparse(source, "v", 64, 0);
    change_dataset(source, "v", 0, 1);
    netcdf_import_ok(&kit, source, "/in");
    ck_assert_str_eq(netcdf_member(&kit, "/in/v", "fill_value"), "7");
    ck_assert_int_eq(element_at(&kit, "/in/v", 8, 8), 1);
    ck_assert_int_eq(element_at(&kit, "/in/v", 0, 0), NC_FILL_INT);
    ck_assert_uint_eq(stored_chunks(&kit, "/in/v"), 64);
    exchange_stop(&kit);
}

/* Two variables along an unlimited dimension, each with one chunk; one dataset is said to be
 * very long. */
static void write_long(const char *path, int no_fill)
{
    int nc, dim, var, data[8] = { 1, 2, 3, 4, 5, 6, 7, 8 };
    const char *const names[] = { "short", "long" };
    size_t chunk = 8, start = 0, count = 8;
    NC(nc_create(path, NC_NETCDF4, &nc));
    NC(nc_def_dim(nc, "t", NC_UNLIMITED, &dim));
    for (int i = 0; i < 2; i++) {
        NC(nc_def_var(nc, names[i], NC_INT, 1, &dim, &var));
        NC(nc_def_var_chunking(nc, var, NC_CHUNKED, &chunk));
        if (no_fill)
            NC(nc_def_var_fill(nc, var, NC_NOFILL, NULL));
        NC(nc_put_vara_int(nc, var, &start, &count, data));
    }
    NC(nc_close(nc));
    change_dataset(path, "long", (hsize_t)1 << 60, 0);
}

/* A dataset that is short is part of a variable that nobody can read in full: its chunks alone
 * come. */
TEST(i25_9_short_datasets_of_long_variables)
{
    exchange_kit kit;
    exchange_start(&kit);
    const char *source = exchange_path(&kit, "long.nc");
    write_long(source, 0);
    netcdf_import_ok(&kit, source, "/in");
    ck_assert_str_eq(netcdf_member(&kit, "/in/short", "shape"), "[1152921504606846976]");
    ck_assert_uint_eq(stored_chunks(&kit, "/in/short"), 1);
    ck_assert_uint_eq(stored_chunks(&kit, "/in/long"), 1);
    exchange_stop(&kit);
}

/* Where such elements read as another value than the array's fill value, that is said, and not
 * tried. */
LOOP(i25_9_gaps_that_nobody_can_write, 0, 2)
{
    exchange_kit kit;
    exchange_start(&kit);
    const char *source = exchange_path(&kit, "odd.nc");
    if (_i == 0) {
        write_sparse(source, "short", (size_t)1 << 31, 0);
        change_dataset(source, "short", 0, 1);
    } else {
        write_long(source, 1);
    }
    netcdf_import_says(&kit, source, BRC_EUNSUPPORTED, "/short has more than 16 TiB of elements");
    exchange_stop(&kit);
}

/* To look for booleans would be to read 2^62 bytes. */
TEST(i25_9_booleans_of_which_few_are_stored)
{
    exchange_kit kit;
    int nc, dims[2], var;
    size_t n = (size_t)1 << 31, chunk[2] = { 8, 8 }, first[2] = { 0, 0 };
    const signed char no = 0;
    exchange_start(&kit);
    const char *source = exchange_path(&kit, "bool.nc");
    NC(nc_create(source, NC_NETCDF4, &nc));
    NC(nc_def_dim(nc, "y", n, &dims[0]));
    NC(nc_def_dim(nc, "x", n, &dims[1]));
    NC(nc_def_var(nc, "b", NC_BYTE, 2, dims, &var));
    NC(nc_def_var_chunking(nc, var, NC_CHUNKED, chunk));
    NC(nc_def_var_fill(nc, var, NC_NOFILL, NULL));
    NC(nc_put_att_text(nc, var, "dtype", 4, "bool"));
    NC(nc_put_var1(nc, var, first, &no));
    NC(nc_close(nc));
    netcdf_import_ok(&kit, source, "/in");
    ck_assert_str_eq(netcdf_member(&kit, "/in/b", "data_type"), "\"int8\"");
    ck_assert_str_eq(netcdf_attribute(&kit, "/in/b", "dtype"), "\"bool\"");
    exchange_stop(&kit);
}
