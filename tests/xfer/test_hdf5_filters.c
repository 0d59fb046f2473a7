/* Filters of HDF5 that are no part of libhdf5: from libraries in folders. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../kit/hdf5_kit.h"
#include "../kit/plugin_kit.h"

Suite *hdf5_filters_suite(void);

#define OK(expr) ck_assert_int_eq((expr), BRC_OK)

static const hsize_t shape[] = { 5 }, chunk[] = { 4 };
static const int16_t numbers[] = { 1, -2, 300, 0, 12345 };

/* x.h5: /d, whose chunks were inverted by hand, for this library lacks that filter. */
static void write_inverted(exchange_kit *kit)
{
    hid_t file = hdf5_new_file(kit, "x.h5", 0), plist = hdf5_chunked(1, chunk);
    H5(H5Pset_filter(plist, 401, H5Z_FLAG_OPTIONAL, 0, NULL));
    hid_t set = hdf5_new_dataset(file, "d", H5T_STD_I16LE, 1, shape, plist, 0, NULL);
    for (hsize_t at = 0; at < 5; at += 4) {
        uint16_t stored[4] = { 0 };
        for (size_t i = 0; i < 4; i++)
            stored[i] = (uint16_t) ~(at + i < 5 ? numbers[at + i] : 0);
        H5(H5Dwrite_chunk(set, H5P_DEFAULT, 0, &at, sizeof(stored), stored));
    }
    H5(H5Dclose(set));
    H5(H5Pclose(plist));
    H5(H5Fclose(file));
}

/* The folder "plugins", with a filter, a library that is none, and a file that is no library. */
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

START_TEST(a_plug_in_of_a_folder_that_is_named)
{
    exchange_kit kit;
    brc_xfer_opts opts = BRC_XFER_OPTS_INIT;
    char folders[1200];
    exchange_start(&kit);
    write_inverted(&kit);
    snprintf(folders, sizeof(folders), "/nowhere:%s", plugin_folder(&kit));
    opts.hdf5_plugins = folders;
    OK(brc_import(kit.session, exchange_path(&kit, "x.h5"), "/x", &opts, &kit.err));
    hdf5_check_bytes(&kit, "/x/d", numbers, sizeof(numbers));
    exchange_stop(&kit);
}
END_TEST

START_TEST(a_plug_in_of_the_environment)
{
    exchange_kit kit;
    exchange_start(&kit);
    write_inverted(&kit);
    ck_assert_int_eq(setenv("HDF5_PLUGIN_PATH", plugin_folder(&kit), 1), 0);
    hdf5_import_ok(&kit, "x.h5", "/x");
    hdf5_check_bytes(&kit, "/x/d", numbers, sizeof(numbers));
    ck_assert_int_eq(unsetenv("HDF5_PLUGIN_PATH"), 0);
    exchange_stop(&kit);
}
END_TEST

/* Where it is not there, the error has its number, its name, the folders and the remedy. */
START_TEST(a_filter_that_is_missing)
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
    OK(brc_import(kit.session, exchange_path(&kit, "x.h5"), "/x", &opts, &kit.err));
    exchange_stop(&kit);
}
END_TEST

Suite *hdf5_filters_suite(void)
{
    Suite *s = suite_create("hdf5_filters");
    TCase *t = tcase_create("plug-ins");
    tcase_set_timeout(t, 60);
    tcase_add_test(t, a_plug_in_of_a_folder_that_is_named);
    tcase_add_test(t, a_plug_in_of_the_environment);
    tcase_add_test(t, a_filter_that_is_missing);
    suite_add_tcase(s, t);
    return s;
}
