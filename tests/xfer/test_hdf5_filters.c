/* Filters of HDF5 that are not part of libhdf5: from libraries in folders, and LZF, as h5py
 * writes it. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../../src/base/file.h"
#include "../kit/hdf5_kit.h"
#include "../kit/netcdf_kit.h"
#include "../kit/plugin_kit.h"
#include "../kit/suite.h"

#ifdef __has_include
#if __has_include(<lzf.h>)
#include <lzf.h>
#define HAS_LZF 1
#endif
#endif

TEST_SUITE(hdf5_filters);

#define DO(expr) ck_assert_int_eq((expr), BRC_OK)

static const hsize_t shape[] = { 5 }, chunk[] = { 4 };
static const int16_t shorts[] = { 1, -2, 300, 0, 12345 };

/* x.h5: /d, whose chunks were inverted by hand, for this library lacks that filter. */
static void write_inverted(exchange_kit *kit)
{
    hid_t file = hdf5_new_file(kit, "x.h5", 0), plist = hdf5_chunked(1, chunk);
    H5(H5Pset_filter(plist, 401, H5Z_FLAG_OPTIONAL, 0, NULL));
    hid_t set = hdf5_new_dataset(file, "d", H5T_STD_I16LE, 1, shape, plist, 0, NULL);
    for (hsize_t at = 0; at < 5; at += 4) {
        uint16_t stored[4] = { 0 };
        for (size_t i = 0; i < 4; i++)
            stored[i] = (uint16_t) ~(at + i < 5 ? shorts[at + i] : 0);
        H5(H5Dwrite_chunk(set, H5P_DEFAULT, 0, &at, sizeof(stored), stored));
    }
    H5(H5Dclose(set));
    H5(H5Pclose(plist));
    H5(H5Fclose(file));
}

/* The folder "plugins", with a filter, a library without one, and a file that is not a library. */
static const char *plugin_folder(exchange_kit *kit)
{
    char library[600];
    exchange_text(kit, "plugins/libbad.so", "no library");
    plugin_path(library, sizeof(library), "hdf5_invert");
    ck_assert_int_eq(symlink(library, exchange_path(kit, "plugins/libinvert.so")), 0);
    plugin_path(library, sizeof(library), "silent");
    ck_assert_int_eq(symlink(library, exchange_path(kit, "plugins/liba.so")), 0);
    return exchange_path(kit, "plugins");
}

CASE("plug-ins", .timeout = 60);

TEST(a_plug_in_of_a_folder_that_is_named)
{
    exchange_kit kit;
    brc_xfer_opts opts = BRC_XFER_OPTS_INIT;
    char folders[1200];
    exchange_start(&kit);
    write_inverted(&kit);
    snprintf(folders, sizeof(folders), "/nowhere:%s", plugin_folder(&kit));
    opts.hdf5_plugins = folders;
    DO(brc_import(kit.session, exchange_path(&kit, "x.h5"), "/x", &opts, &kit.err));
    hdf5_check_bytes(&kit, "/x/d", shorts, sizeof(shorts));
    exchange_stop(&kit);
}

TEST(a_plug_in_of_the_environment)
{
    exchange_kit kit;
    exchange_start(&kit);
    write_inverted(&kit);
    ck_assert_int_eq(setenv("HDF5_PLUGIN_PATH", plugin_folder(&kit), 1), 0);
    hdf5_import_ok(&kit, "x.h5", "/x");
    hdf5_check_bytes(&kit, "/x/d", shorts, sizeof(shorts));
    ck_assert_int_eq(unsetenv("HDF5_PLUGIN_PATH"), 0);
    exchange_stop(&kit);
}

/* Where it is not there, the error has its number, its name, the folders and the remedy. */
TEST(a_filter_that_is_missing)
{
    exchange_kit kit;
    brc_xfer_opts opts = BRC_XFER_OPTS_INIT;
    exchange_start(&kit);
    write_inverted(&kit);
    opts.hdf5_plugins = "/nowhere:/else";
    ck_assert_int_eq(brc_import(kit.session, exchange_path(&kit, "x.h5"), "/x", &opts, &kit.err),
                     BRC_EUNSUPPORTED);
    ck_assert_ptr_nonnull(strstr(kit.err.message, "x.h5: /d needs the HDF5 filter 401"));
    ck_assert_ptr_nonnull(strstr(kit.err.message, "not in /nowhere:/else: install it, and name its "
                                                  "folder with --hdf5-plugins"));
    opts.flags = BRC_XFER_SKIP_UNSUPPORTED;
    DO(brc_import(kit.session, exchange_path(&kit, "x.h5"), "/x", &opts, &kit.err));
    exchange_stop(&kit);
}

/* A variable of NetCDF-4 with the filter. */
static void write_netcdf(exchange_kit *kit, unsigned number, size_t n, const unsigned *values)
{
    const int numbers[] = { 7, 7, 7, 7, -7 };
    const size_t four = 4;
    int nc, x, var;
    NC(nc_create(exchange_path(kit, "x.nc"), NC_NETCDF4 | NC_CLOBBER, &nc));
    NC(nc_def_dim(nc, "x", 5, &x));
    NC(nc_def_var(nc, "t", NC_INT, 1, &x, &var));
    NC(nc_def_var_chunking(nc, var, NC_CHUNKED, &four));
    NC(nc_def_var_filter(nc, var, number, n, values));
    NC(nc_put_var_int(nc, var, numbers));
    NC(nc_def_var(nc, "good", NC_INT, 1, &x, &var));
    NC(nc_close(nc));
}

static size_t keep_bytes(unsigned flags, size_t n, const unsigned *values, size_t len, size_t *size,
                         void **data)
{
    (void)flags, (void)n, (void)values, (void)size, (void)data;
    return len;
}

TEST(a_filter_that_netcdf_misses)
{
    static const H5Z_class2_t filter = { H5Z_CLASS_T_VERS, 402,  1,    1,
                                         "squeeze",        NULL, NULL, keep_bytes };
    exchange_kit kit;
    brc_xfer_opts opts = BRC_XFER_OPTS_INIT;
    exchange_start(&kit);
    H5(H5Zregister(&filter));
    write_netcdf(&kit, 402, 0, NULL);
    H5(H5Zunregister(402));
    opts.hdf5_plugins = "/nowhere";
    ck_assert_int_eq(brc_import(kit.session, exchange_path(&kit, "x.nc"), "/x", &opts, &kit.err),
                     BRC_EUNSUPPORTED);
    ck_assert_ptr_nonnull(strstr(kit.err.message, "x.nc: /t needs the HDF5 filter 402"));
    ck_assert_ptr_nonnull(strstr(kit.err.message, "/nowhere"));
    opts.flags = BRC_XFER_SKIP_UNSUPPORTED;
    DO(brc_import(kit.session, exchange_path(&kit, "x.nc"), "/x", &opts, &kit.err));
    hdf5_check_member(&kit, "/x/good", "data_type", "\"int32\"");
    exchange_stop(&kit);
}

/* ---- LZF -------------------------------- */

#ifdef HAS_LZF

static size_t encode_lzf(unsigned flags, size_t n, const unsigned *values, size_t len, size_t *size,
                         void **data)
{
    void *out = malloc(len);
    unsigned got = out ? lzf_compress(*data, (unsigned)len, out, (unsigned)len - 1) : 0;
    (void)n, (void)values;
    if ((flags & H5Z_FLAG_REVERSE) || got == 0) {
        free(out);
        return 0; /* optional: the chunk stays as it is, and its mask says so */
    }
    free(*data);
    *data = out;
    *size = len;
    return got;
}

static const H5Z_class2_t lzf = { H5Z_CLASS_T_VERS, 32000, 1, 1, "lzf", NULL, NULL, encode_lzf };

/* Sets the filter's values as h5py does: its version, liblzf's, and the bytes of a chunk; no values
 * for items of no size. */
static hid_t lzf_list(hsize_t items, size_t item, int shuffle, int sum)
{
    const unsigned values[] = { 4, 0x105, (unsigned)(items * item) };
    hid_t plist = hdf5_chunked(1, &items);
    if (shuffle)
        H5(H5Pset_shuffle(plist));
    H5(H5Pset_filter(plist, 32000, H5Z_FLAG_OPTIONAL, item ? 3 : 0, values));
    if (sum)
        H5(H5Pset_fletcher32(plist));
    return plist;
}

#define MANY 1000

typedef struct padded {
    char a;
    double b;
} padded;

/* Every kind of type: one that could pass as it is stored, one that is converted, one of variable
 * length; with other filters around; and with a chunk that does not become smaller. */
static void write_lzf(exchange_kit *kit)
{
    static const hsize_t many = MANY, few = 3;
    const char *texts[] = { "one", "", "three" };
    int32_t values[MANY];
    padded records[MANY];
    memset(records, 0, sizeof(records));
    for (int i = 0; i < MANY; i++) {
        values[i] = i < 500 ? i / 7 : (int32_t)((uint32_t)i * 2654435761u);
        records[i] = (padded){ (char)(i % 3), i / 2 };
    }
    hid_t file = hdf5_new_file(kit, "l.h5", 0);
    hid_t text = H5(H5Tcopy(H5T_C_S1)), record = H5(H5Tcreate(H5T_COMPOUND, sizeof(padded)));
    H5(H5Tset_size(text, H5T_VARIABLE));
    H5(H5Tinsert(record, "a", offsetof(padded, a), H5T_NATIVE_INT8));
    H5(H5Tinsert(record, "b", offsetof(padded, b), H5T_NATIVE_DOUBLE));
    hid_t lists[] = { lzf_list(250, 4, 1, 0), lzf_list(250, 4, 0, 1), lzf_list(2, 0, 0, 0),
                      lzf_list(100, sizeof(padded), 1, 1) };
    H5(H5Dclose(hdf5_new_dataset(file, "i", H5T_STD_I32LE, 1, &many, lists[0], H5T_NATIVE_INT32,
                                 values)));
    H5(H5Dclose(hdf5_new_dataset(file, "j", H5T_STD_I32BE, 1, &many, lists[1], H5T_NATIVE_INT32,
                                 values)));
    H5(H5Dclose(hdf5_new_dataset(file, "t", text, 1, &few, lists[2], text, texts)));
    H5(H5Dclose(hdf5_new_dataset(file, "r", record, 1, &many, lists[3], record, records)));
    for (size_t i = 0; i < 4; i++)
        H5(H5Pclose(lists[i]));
    H5(H5Tclose(text));
    H5(H5Tclose(record));
    H5(H5Fclose(file));
}

static void check_numbers_in(exchange_kit *kit, const char *path)
{
    int32_t *got = exchange_elements(kit->session, path, MANY * 4);
    for (int i = 0; i < MANY; i++)
        ck_assert_int_eq(got[i], i < 500 ? i / 7 : (int32_t)((uint32_t)i * 2654435761u));
    free(got);
}

CASE("LZF", .timeout = 60);

TEST(lzf_of_every_type)
{
    exchange_kit kit;
    exchange_start(&kit);
    H5(H5Zregister(&lzf));
    write_lzf(&kit);
    H5(H5Zunregister(32000));
    hdf5_import_ok(&kit, "l.h5", "/l");
    check_numbers_in(&kit, "/l/i");
    check_numbers_in(&kit, "/l/j");
    hdf5_check_elements(&kit, "/l/t", "\3\0\0\0one\0\0\0\0\5\0\0\0three", 20);
    uint8_t *records = exchange_elements(kit.session, "/l/r", (size_t)MANY * 9);
    for (int i = 0; i < MANY; i++) {
        double b;
        memcpy(&b, records + i * 9 + 1, 8);
        ck_assert(records[i * 9] == i % 3 && b == i / 2);
    }
    free(records);
    /* what it was is noted, and what is exported everybody can read */
    hdf5_check_member(&kit, "/l/i", "hdf5",
                      "{\"filters\":[{\"number\":32000,\"name\":\"LZF\"}],"
                      "\"must_understand\":false}");
    hdf5_export_ok(&kit, "/l", "out.h5");
    hid_t file = H5(H5Fopen(exchange_path(&kit, "out.h5"), H5F_ACC_RDONLY, H5P_DEFAULT));
    hid_t set = H5(H5Dopen2(file, "i", H5P_DEFAULT)), plist = H5(H5Dget_create_plist(set));
    int32_t back[MANY];
    H5(H5Dread(set, H5T_NATIVE_INT32, H5S_ALL, H5S_ALL, H5P_DEFAULT, back));
    ck_assert_int_eq(back[499], 499 / 7);
    for (unsigned i = 0; i < (unsigned)H5(H5Pget_nfilters(plist)); i++) {
        unsigned flags;
        size_t n = 0;
        ck_assert_int_le(H5(H5Pget_filter2(plist, i, &flags, &n, NULL, 0, NULL, NULL)), 255);
    }
    H5(H5Pclose(plist));
    H5(H5Dclose(set));
    H5(H5Fclose(file));
    exchange_stop(&kit);
}

TEST(lzf_in_netcdf)
{
    static const unsigned values[] = { 4, 0x105, 16 }, wrong[] = { 4, 0x105, 20 };
    static const int32_t expected[] = { 7, 7, 7, 7, -7 };
    exchange_kit kit;
    exchange_start(&kit);
    H5(H5Zregister(&lzf));
    write_netcdf(&kit, 32000, 3, values);
    hdf5_import_ok(&kit, "x.nc", "/x");
    hdf5_check_bytes(&kit, "/x/t", expected, sizeof(expected));
    DO(brc_node_remove(kit.session, "/x", &kit.err));
    write_netcdf(&kit, 32000, 3, wrong); /* a chunk is decoded by its own length */
    hdf5_import_ok(&kit, "x.nc", "/x");
    hdf5_check_bytes(&kit, "/x/t", expected, sizeof(expected));
    H5(H5Zunregister(32000));
    exchange_stop(&kit);
}

/* One chunk of 16 bytes that holds this stream, under a filter for `bytes`. */
static void put_lzf_stream(exchange_kit *kit, const char *stream, size_t len, unsigned bytes)
{
    static const hsize_t four = 4, start = 0;
    const unsigned values[] = { 4, 0x105, bytes };
    (void)unlink(exchange_path(kit, "x.h5"));
    hid_t file = hdf5_new_file(kit, "x.h5", 0), plist = hdf5_chunked(1, &four);
    H5(H5Pset_filter(plist, 32000, H5Z_FLAG_OPTIONAL, bytes ? 3 : 2, values));
    hid_t set = hdf5_new_dataset(file, "d", H5T_STD_I32LE, 1, &four, plist, 0, NULL);
    H5(H5Dwrite_chunk(set, H5P_DEFAULT, 0, &start, len, stream));
    H5(H5Dclose(set));
    H5(H5Pclose(plist));
    H5(H5Fclose(file));
}

/* Puts a dataset of references to texts whose stream is too short; its chunk does not say its
 * size. */
static void put_lzf_texts(exchange_kit *kit, hsize_t items, const char *stream, size_t len)
{
    static const hsize_t start = 0;
    (void)unlink(exchange_path(kit, "x.h5"));
    hid_t file = hdf5_new_file(kit, "x.h5", 0), plist = lzf_list(items, 0, 0, 0);
    hid_t text = H5(H5Tcopy(H5T_C_S1));
    H5(H5Tset_size(text, H5T_VARIABLE));
    hid_t set = hdf5_new_dataset(file, "d", text, 1, &items, plist, 0, NULL);
    H5(H5Dwrite_chunk(set, H5P_DEFAULT, 0, &start, len, stream));
    H5(H5Dclose(set));
    H5(H5Tclose(text));
    H5(H5Pclose(plist));
    H5(H5Fclose(file));
}

TEST(lzf_of_texts_that_lies)
{
    static const char zeros[] = "\17\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0";
    exchange_kit kit;
    exchange_start(&kit);
    put_lzf_texts(&kit, 1, zeros, 17);
    hdf5_import_ok(&kit, "x.h5", "/x");
    hdf5_check_elements(&kit, "/x/d", "\0\0\0\0", 4);
    DO(brc_node_remove(kit.session, "/x", &kit.err));
    put_lzf_texts(&kit, 2, zeros, 17); /* what is behind the first may name anything */
    hdf5_import_says(&kit, "x.h5", BRC_EINVAL, "x.h5: /d: ");
    put_lzf_texts(&kit, ((hsize_t)4 << 20) / 16 + 1, zeros, 17);
    hdf5_import_says(&kit, "x.h5", BRC_EINVAL, "LZF is for chunks of another size");
    exchange_stop(&kit);
}

TEST(lzf_that_lies)
{
    static const char good[] = "\17abcdefghijklmnop", far[] = "\0a\340\5\377",
                      shorter[] = "\7abcdefgh", longer[] = "\37abcdefghijklmnopabcdefghijklmnop";
    exchange_kit kit;
    exchange_start(&kit);
    put_lzf_stream(&kit, good, 17, 16);
    hdf5_import_ok(&kit, "x.h5", "/x");
    hdf5_check_bytes(&kit, "/x/d", "abcdefghijklmnop", 16);
    DO(brc_node_remove(kit.session, "/x", &kit.err));
    /* chunks of numbers are passed on, and decoded by their own length, whatever the filter says */
    put_lzf_stream(&kit, good, 17, UINT32_MAX);
    hdf5_import_ok(&kit, "x.h5", "/x");
    hdf5_check_bytes(&kit, "/x/d", "abcdefghijklmnop", 16);
    DO(brc_node_remove(kit.session, "/x", &kit.err));
    put_lzf_stream(&kit, shorter, 9, 8);
    hdf5_import_says(&kit, "x.h5", BRC_EINVAL, "imagecodecs_lzf: the bytes decode to 8, not 16");
    put_lzf_stream(&kit, longer, 33, 16);
    hdf5_import_says(&kit, "x.h5", BRC_EINVAL, "imagecodecs_lzf: the bytes of LZF are damaged");
    put_lzf_stream(&kit, far, 5, 16);
    hdf5_import_says(&kit, "x.h5", BRC_EINVAL, "imagecodecs_lzf: the bytes of LZF are damaged");
    for (size_t len = 1; len < 17; len++) {
        put_lzf_stream(&kit, good, len, 16);
        hdf5_import_says(&kit, "x.h5", BRC_EINVAL, "imagecodecs_lzf: the bytes of LZF are dam");
    }
    exchange_stop(&kit);
}

#endif
