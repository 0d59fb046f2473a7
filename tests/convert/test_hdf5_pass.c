/* Elements that pass as an HDF5 file stores them: where they stay in it, and are read there. */
#include <stdlib.h>
#include <string.h>

#include "../../src/breccia.h"
#include "../kit/converters.h"
#include "../kit/hdf5_kit.h"
#include "../kit/suite.h"

TEST_SUITE(hdf5_pass);

enum { LONG_ROWS = 110, LONG_COLUMNS = 100, LONG_ALL = LONG_ROWS * LONG_COLUMNS };

/* Fills with values that no filter makes shorter. */
static void fill_with_noise(int32_t *values)
{
    uint32_t mixed = 1;
    for (size_t i = 0; i < LONG_ALL; i++)
        values[i] = (int32_t)(mixed = mixed * 1664525 + 1013904223);
}

/* One dataset of LONG_ROWS x LONG_COLUMNS in chunks, the last of which are cut; with a filter. */
static void put_long_chunks(hid_t file, const char *name, hid_t type, int deflated,
                            const int32_t *values)
{
    static const hsize_t shape[] = { LONG_ROWS, LONG_COLUMNS }, chunk[] = { 40, 60 };
    hid_t plist = hdf5_chunked(2, chunk);
    if (deflated)
        H5(H5Pset_deflate(plist, 1));
    H5(H5Dclose(hdf5_new_dataset(file, name, type, 2, shape, plist, H5T_NATIVE_INT32, values)));
    H5(H5Pclose(plist));
}

CASE("pass", .timeout = 60);

/* Long elements stay in the file and are read there: behind a user block, in both byte orders. */
LOOP(long_elements_are_read_in_the_file, 0, 2)
{
    static const hsize_t shape[] = { LONG_ROWS, LONG_COLUMNS };
    static const char *const names[] = { "/in/c", "/in/cb", "/in/z", "/in/whole", "/in/wholeb" };
    int32_t values[LONG_ALL];
    size_t all;
    exchange_kit kit;
    exchange_start(&kit);
    fill_with_noise(values);
    hid_t create = H5(H5Pcreate(H5P_FILE_CREATE));
    H5(H5Pset_userblock(create, _i ? 512 : 0));
    hid_t file = H5(H5Fcreate(exchange_path(&kit, "x.h5"), H5F_ACC_EXCL, create, H5P_DEFAULT));
    put_long_chunks(file, "c", H5T_STD_I32LE, 0, values);
    put_long_chunks(file, "cb", H5T_STD_I32BE, 0, values);
    put_long_chunks(file, "z", H5T_STD_I32BE, 1, values);
    H5(H5Dclose(hdf5_new_dataset(file, "whole", H5T_STD_I32LE, 2, shape, H5P_DEFAULT,
                                 H5T_NATIVE_INT32, values)));
    H5(H5Dclose(hdf5_new_dataset(file, "wholeb", H5T_STD_I32BE, 2, shape, H5P_DEFAULT,
                                 H5T_NATIVE_INT32, values)));
    hdf5_put(file, "short", H5T_STD_I32LE, 1000, H5T_NATIVE_INT32, values);
    H5(H5Fclose(file));
    H5(H5Pclose(create));
    ck_assert_uint_eq(converter_refers("hdf5", exchange_path(&kit, "x.h5"), &all), 3 * 6 + 2);
    ck_assert_uint_eq(all, 3 * 6 + 3);
    hdf5_import_ok(&kit, "x.h5", "/in");
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
        hdf5_check_bytes(&kit, names[i], values, sizeof(values));
    hdf5_check_bytes(&kit, "/in/short", values, 4000);
    exchange_stop(&kit);
}

/* Elements in chunks of the caller's shape; a chunk whose filter was left out is not what the
 * others are, and goes itself. */
TEST(references_and_what_else_is_asked)
{
    static const hsize_t corner[] = { 0, 60 };
    static const uint64_t edge[] = { 7, 33 };
    brc_xfer_opts opts = BRC_XFER_OPTS_INIT;
    int32_t values[LONG_ALL], raw[40 * 60];
    size_t all;
    exchange_kit kit;
    exchange_start(&kit);
    fill_with_noise(values);
    hid_t file = hdf5_new_file(&kit, "x.h5", 1);
    static const hsize_t shape[] = { LONG_ROWS, LONG_COLUMNS };
    H5(H5Dclose(hdf5_new_dataset(file, "whole", H5T_STD_I32BE, 2, shape, H5P_DEFAULT,
                                 H5T_NATIVE_INT32, values)));
    put_long_chunks(file, "z", H5T_STD_I32LE, 1, values);
    hid_t set = H5(H5Dopen2(file, "z", H5P_DEFAULT));
    memset(raw, 5, sizeof(raw));
    H5(H5Dwrite_chunk(set, H5P_DEFAULT, 1, corner, sizeof(raw), raw));
    H5(H5Dclose(set));
    H5(H5Fclose(file));
    ck_assert_uint_eq(converter_refers("hdf5", exchange_path(&kit, "x.h5"), &all), 6);
    ck_assert_uint_eq(all, 7);
    opts.chunk = edge;
    opts.nchunk = 2;
    int rc = brc_import(kit.session, exchange_path(&kit, "x.h5"), "/in", &opts, &kit.err);
    ck_assert_msg(rc == BRC_OK, "%s", kit.err.message);
    hdf5_check_bytes(&kit, "/in/whole", values, sizeof(values));
    for (size_t y = 0; y < 40; y++)
        memset(values + y * LONG_COLUMNS + 60, 5, 40 * sizeof(values[0]));
    hdf5_check_bytes(&kit, "/in/z", values, sizeof(values));
    brc_array *a;
    ck_assert_int_eq(brc_array_open(&a, kit.session, "/in/whole", &kit.err), BRC_OK);
    ck_assert_mem_eq(brc_array_describe(a)->chunk, edge, sizeof(edge));
    brc_array_free(a);
    exchange_stop(&kit);
}
