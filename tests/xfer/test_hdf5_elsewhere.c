/* HDF5 files whose elements and objects are in other files: virtual datasets, external storage
 * and external links. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../../src/base/file.h"
#include "../../src/breccia_json.h"
#include "../kit/hdf5_kit.h"
#include "../kit/suite.h"

TEST_SUITE(hdf5_elsewhere);

static const hsize_t four = 4, eight = 8;
static const int32_t low[] = { 1, -2, 3, -4 }, high[] = { 5, 6, 7, 8 };

static void folder(exchange_kit *kit, const char *name)
{
    ck_assert_int_eq(mkdir(exchange_path(kit, name), 0700), 0);
}

/* A file with a dataset "x" of these four. */
static void put_four(exchange_kit *kit, const char *name, const int32_t *values)
{
    hid_t file = hdf5_new_file(kit, name, 0);
    hdf5_put(file, "x", H5T_STD_I32LE, 4, H5T_NATIVE_INT32, values);
    H5(H5Fclose(file));
}

/* ---- virtual datasets -------------------------------- */

/* One mapping more: `n` elements from `at` on are all of this source's. */
static void map(hid_t plist, hid_t space, hsize_t at, hsize_t n, const char *file, const char *name)
{
    hid_t given = H5(H5Screate_simple(1, &n, NULL)), taken = H5(H5Scopy(space));
    H5(H5Sselect_hyperslab(taken, H5S_SELECT_SET, &at, NULL, &n, NULL));
    H5(H5Pset_virtual(plist, taken, file, name, given));
    H5(H5Sclose(taken));
    H5(H5Sclose(given));
}

/* A virtual dataset of eight, of type `type`: of each file in turn as many as go in. */
static void put_virtual(hid_t file, const char *set, hid_t type, int n, const char *const *files,
                        const char *name)
{
    const int32_t fill = -9;
    hid_t plist = H5(H5Pcreate(H5P_DATASET_CREATE)), space = H5(H5Screate_simple(1, &eight, NULL));
    if (H5Tget_class(type) == H5T_INTEGER)
        H5(H5Pset_fill_value(plist, H5T_NATIVE_INT32, &fill));
    for (int i = 0; i < n; i++)
        map(plist, space, 4 * (hsize_t)i, 4, files[i], name);
    H5(H5Dclose(H5(H5Dcreate2(file, set, type, space, H5P_DEFAULT, plist, H5P_DEFAULT))));
    H5(H5Sclose(space));
    H5(H5Pclose(plist));
}

static void put_of_one(hid_t file, const char *source, const char *name)
{
    put_virtual(file, "d", H5T_STD_I32LE, 1, (const char *const[]){ source }, name);
}

static void two_sources(exchange_kit *kit, hid_t file)
{
    put_four(kit, "a.h5", low);
    put_four(kit, "b.h5", high);
    put_virtual(file, "d", H5T_STD_I32LE, 2, (const char *const[]){ "a.h5", "./b.h5" }, "x");
}
static void a_part_that_no_source_has(exchange_kit *kit, hid_t file)
{
    put_four(kit, "a.h5", low);
    put_of_one(file, "a.h5", "/x");
}
static void of_the_same_file(exchange_kit *kit, hid_t file)
{
    (void)kit;
    hdf5_put(file, "x", H5T_STD_I32LE, 4, H5T_NATIVE_INT32, low);
    put_of_one(file, ".", "x");
}
/* A name is one in the folder of the file that has it. */
static void sources_of_sources_below(exchange_kit *kit, hid_t file)
{
    folder(kit, "sub");
    put_four(kit, "sub/a.h5", low);
    put_four(kit, "a.h5", high);
    hid_t middle = hdf5_new_file(kit, "sub/middle.h5", 0);
    put_virtual(middle, "x", H5T_STD_I32LE, 1, (const char *const[]){ "a.h5" }, "x");
    H5(H5Fclose(middle));
    hid_t plist = H5(H5Pcreate(H5P_DATASET_CREATE)), space = H5(H5Screate_simple(1, &eight, NULL));
    map(plist, space, 0, 8, "sub/middle.h5", "x");
    H5(H5Dclose(
        H5(H5Dcreate2(file, "d", H5T_STD_I32LE, space, H5P_DEFAULT, plist, H5P_DEFAULT))));
    H5(H5Sclose(space));
    H5(H5Pclose(plist));
}
static void by_its_whole_path(exchange_kit *kit, hid_t file)
{
    put_four(kit, "a.h5", low);
    put_of_one(file, exchange_path(kit, "a.h5"), "x");
}
/* The source's type has fewer values, and the other byte order. */
static void of_a_smaller_type(exchange_kit *kit, hid_t file)
{
    hid_t source = hdf5_new_file(kit, "a.h5", 0);
    hdf5_put(source, "x", H5T_STD_I16BE, 4, H5T_NATIVE_INT32, low);
    H5(H5Fclose(source));
    put_of_one(file, "a.h5", "x");
}
static void of_chunks_with_filters(exchange_kit *kit, hid_t file)
{
    static const hsize_t two = 2;
    hid_t source = hdf5_new_file(kit, "a.h5", 0), plist = hdf5_chunked(1, &two);
    H5(H5Pset_shuffle(plist));
    H5(H5Pset_deflate(plist, 6));
    H5(H5Dclose(
        hdf5_new_dataset(source, "x", H5T_STD_I32LE, 1, &four, plist, H5T_NATIVE_INT32, low)));
    H5(H5Pclose(plist));
    H5(H5Fclose(source));
    put_of_one(file, "a.h5", "x");
}
static void of_texts(exchange_kit *kit, hid_t file)
{
    static const char *const texts[] = { "", "h\xc3\xa9llo", "b", "cc" };
    hid_t type = H5(H5Tcopy(H5T_C_S1)), source = hdf5_new_file(kit, "a.h5", 0);
    H5(H5Tset_size(type, H5T_VARIABLE));
    hdf5_put(source, "x", type, 4, type, texts);
    H5(H5Fclose(source));
    put_virtual(file, "d", type, 2, (const char *const[]){ "a.h5", "a.h5" }, "x");
    H5(H5Tclose(type));
}
/* The last one counts. That both together have eight elements says nothing of the rest. */
static void of_sources_that_overlap(exchange_kit *kit, hid_t file)
{
    const int32_t fill = -9;
    hid_t plist = H5(H5Pcreate(H5P_DATASET_CREATE)), space = H5(H5Screate_simple(1, &eight, NULL));
    put_four(kit, "a.h5", low);
    put_four(kit, "b.h5", high);
    H5(H5Pset_fill_value(plist, H5T_NATIVE_INT32, &fill));
    map(plist, space, 0, 4, "a.h5", "x");
    map(plist, space, 0, 4, "b.h5", "x");
    H5(H5Dclose(
        H5(H5Dcreate2(file, "d", H5T_STD_I32LE, space, H5P_DEFAULT, plist, H5P_DEFAULT))));
    H5(H5Sclose(space));
    H5(H5Pclose(plist));
}
/* A series: one block of two of each, as many as there are. */
static void put_series(hid_t file, const char *sources, const char *name, hsize_t first,
                       hsize_t block)
{
    hsize_t none = 0, any = H5S_UNLIMITED, given_n = block;
    const int32_t fill = -9;
    hid_t plist = H5(H5Pcreate(H5P_DATASET_CREATE));
    hid_t space = H5(H5Screate_simple(1, &none, &any)), given;
    H5(H5Pset_fill_value(plist, H5T_NATIVE_INT32, &fill));
    given = H5(H5Screate_simple(1, &given_n, NULL));
    H5(H5Sselect_hyperslab(space, H5S_SELECT_SET, &first, &block, &any, &block));
    H5(H5Pset_virtual(plist, space, sources, name, given));
    H5(H5Dclose(
        H5(H5Dcreate2(file, "d", H5T_STD_I32LE, space, H5P_DEFAULT, plist, H5P_DEFAULT))));
    H5(H5Sclose(given));
    H5(H5Sclose(space));
    H5(H5Pclose(plist));
}
static void a_series_of_files(exchange_kit *kit, hid_t file)
{
    put_four(kit, "s%0.h5", low);
    put_four(kit, "s%1.h5", high);
    put_four(kit, "s%2.h5", low);
    put_series(file, "s%%%b.h5", "x", 0, 4);
}
static void a_series_of_datasets(exchange_kit *kit, hid_t file)
{
    (void)kit;
    hdf5_put(file, "x0", H5T_STD_I32LE, 4, H5T_NATIVE_INT32, low);
    hdf5_put(file, "x1", H5T_STD_I32LE, 4, H5T_NATIVE_INT32, high);
    put_series(file, ".", "/x%b", 0, 4);
}
/* A dataset that has as many elements as its source has now. */
static void a_source_that_grows(exchange_kit *kit, hid_t file)
{
    hsize_t zero = 0, one = 1, any = H5S_UNLIMITED;
    hid_t source = hdf5_new_file(kit, "a.h5", 0), plist = hdf5_chunked(1, &four);
    hid_t space = H5(H5Screate_simple(1, &four, &any));
    hid_t set = H5(H5Dcreate2(source, "x", H5T_STD_I32LE, space, H5P_DEFAULT, plist, H5P_DEFAULT));
    H5(H5Dwrite(set, H5T_NATIVE_INT32, H5S_ALL, H5S_ALL, H5P_DEFAULT, low));
    H5(H5Dclose(set));
    H5(H5Pclose(plist));
    H5(H5Fclose(source));
    plist = H5(H5Pcreate(H5P_DATASET_CREATE));
    H5(H5Sselect_hyperslab(space, H5S_SELECT_SET, &zero, &one, &any, &one));
    H5(H5Pset_virtual(plist, space, "a.h5", "x", space));
    H5(H5Dclose(
        H5(H5Dcreate2(file, "d", H5T_STD_I32LE, space, H5P_DEFAULT, plist, H5P_DEFAULT))));
    H5(H5Sclose(space));
    H5(H5Pclose(plist));
}
/* Each takes a descriptor. The last of them says whether all were there. */
enum { MANY = 700 };
static void many_sources(exchange_kit *kit, hid_t file)
{
    hsize_t n = MANY;
    hid_t plist = H5(H5Pcreate(H5P_DATASET_CREATE)), space = H5(H5Screate_simple(1, &n, NULL));
    for (int32_t i = 0; i < MANY; i++) {
        char name[16];
        snprintf(name, sizeof(name), "m%d.h5", i);
        hid_t source = hdf5_new_file(kit, name, 0);
        hdf5_put(source, "x", H5T_STD_I32LE, 1, H5T_NATIVE_INT32, &i);
        H5(H5Fclose(source));
        map(plist, space, (hsize_t)i, 1, name, "x");
    }
    H5(H5Dclose(
        H5(H5Dcreate2(file, "d", H5T_STD_I32LE, space, H5P_DEFAULT, plist, H5P_DEFAULT))));
    H5(H5Sclose(space));
    H5(H5Pclose(plist));
}

/* ---- raw files -------------------------------- */

/* Eight elements: of the first file from byte `from` on, then of the second. */
static void put_outside(hid_t file, const char *first, off_t from, const char *second)
{
    hid_t plist = H5(H5Pcreate(H5P_DATASET_CREATE));
    H5(H5Pset_external(plist, first, from, 16));
    H5(H5Pset_external(plist, second, 0, H5F_UNLIMITED));
    H5(H5Dclose(hdf5_new_dataset(file, "d", H5T_STD_I32LE, 1, &eight, plist, 0, NULL)));
    H5(H5Pclose(plist));
}
static void put_raw(exchange_kit *kit, const char *name, size_t before, const int32_t *values,
                    size_t len)
{
    uint8_t bytes[64] = { 0xee };
    memcpy(bytes + before, values, 16);
    exchange_file(kit, name, bytes, before + len);
}
static void in_raw_files(exchange_kit *kit, hid_t file)
{
    folder(kit, "raw");
    put_raw(kit, "raw/one.bin", 3, low, 16);
    put_raw(kit, "two.bin", 0, high, 16);
    put_outside(file, "raw/one.bin", 3, "two.bin");
}
static void a_source_in_raw_files(exchange_kit *kit, hid_t file)
{
    folder(kit, "sub");
    put_raw(kit, "sub/one.bin", 0, low, 16);
    hid_t source = hdf5_new_file(kit, "sub/a.h5", 0), plist = H5(H5Pcreate(H5P_DATASET_CREATE));
    H5(H5Pset_external(plist, "one.bin", 0, 16));
    H5(H5Dclose(hdf5_new_dataset(source, "x", H5T_STD_I32LE, 1, &four, plist, 0, NULL)));
    H5(H5Pclose(plist));
    H5(H5Fclose(source));
    put_of_one(file, "sub/a.h5", "x");
}

/* ---- links -------------------------------- */

static void link_to(hid_t file, const char *name, const char *other, const char *object)
{
    H5(H5Lcreate_external(other, object, file, name, H5P_DEFAULT, H5P_DEFAULT));
}
static hid_t new_group(hid_t at, const char *name)
{
    return H5(H5Gcreate2(at, name, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT));
}
static void a_link_to_a_dataset(exchange_kit *kit, hid_t file)
{
    put_four(kit, "a.h5", low);
    link_to(file, "d", "a.h5", "/x");
}
/* Chunks and pieces that are long enough for references into the file, if it were that one. */
enum { LONG = 2048 };
static void long_elements_of_another_file(exchange_kit *kit, hid_t file)
{
    hsize_t n = LONG;
    int32_t *values = calloc(LONG, sizeof(*values));
    ck_assert_ptr_nonnull(values);
    values[0] = 11;
    values[LONG - 1] = 12;
    hid_t other = hdf5_new_file(kit, "a.h5", 0), plist = hdf5_chunked(1, &n);
    H5(H5Dclose(
        hdf5_new_dataset(other, "chunked", H5T_STD_I32LE, 1, &n, plist, H5T_NATIVE_INT32, values)));
    hdf5_put(other, "whole", H5T_STD_I32LE, n, H5T_NATIVE_INT32, values);
    H5(H5Pclose(plist));
    H5(H5Fclose(other));
    values[0] = values[LONG - 1] = 99;
    hdf5_put(file, "own", H5T_STD_I32LE, n, H5T_NATIVE_INT32, values);
    link_to(file, "d", "a.h5", "/");
    free(values);
}
/* Its groups, attributes, soft links, and what is linked twice in it. */
static void a_link_to_a_tree(exchange_kit *kit, hid_t file)
{
    const int32_t seven = 7;
    hid_t other = hdf5_new_file(kit, "a.h5", 0), group = new_group(other, "g");
    hdf5_put_attribute(group, "n", H5T_STD_I32LE, 0, NULL, H5T_NATIVE_INT32, &seven);
    hdf5_put(group, "x", H5T_STD_I32LE, 4, H5T_NATIVE_INT32, low);
    H5(H5Lcreate_soft("/g/x", group, "soft", H5P_DEFAULT, H5P_DEFAULT));
    H5(H5Lcreate_hard(group, "x", group, "hard", H5P_DEFAULT, H5P_DEFAULT));
    H5(H5Lcreate_soft("/beside", group, "aside", H5P_DEFAULT, H5P_DEFAULT));
    hdf5_put(other, "beside", H5T_STD_I32LE, 4, H5T_NATIVE_INT32, high);
    H5(H5Gclose(group));
    H5(H5Fclose(other));
    hdf5_put(file, "beside", H5T_STD_I32LE, 4, H5T_NATIVE_INT32, low);
    link_to(file, "d", "a.h5", "/g");
}
/* Through three files, the folders of which count, and back to the first. */
static void links_through_files(exchange_kit *kit, hid_t file)
{
    folder(kit, "sub");
    hid_t a = hdf5_new_file(kit, "sub/a.h5", 0);
    link_to(a, "next", "b.h5", "/x");
    H5(H5Fclose(a));
    put_four(kit, "b.h5", high);
    put_four(kit, "sub/b.h5", low);
    link_to(file, "d", "sub/a.h5", "/next");
    H5(H5Lcreate_soft("/d", file, "soft", H5P_DEFAULT, H5P_DEFAULT));
    a = hdf5_new_file(kit, "back.h5", 0);
    link_to(a, "back", "x.h5", "/own");
    H5(H5Fclose(a));
    hdf5_put(file, "own", H5T_STD_I32LE, 4, H5T_NATIVE_INT32, high);
    link_to(file, "home", "back.h5", "/back");
}
/* References in the other file are to what the link brings in, and so is the name of an axis. */
static void references_in_the_other_file(exchange_kit *kit, hid_t file)
{
    hobj_ref_t to[4];
    hid_t other = hdf5_new_file(kit, "a.h5", 0), group = new_group(other, "g");
    hdf5_put(group, "scale", H5T_STD_I32LE, 4, H5T_NATIVE_INT32, high);
    hdf5_put(group, "x", H5T_STD_I32LE, 4, H5T_NATIVE_INT32, low);
    hid_t set = H5(H5Dopen2(group, "x", H5P_DEFAULT));
    hid_t scale = H5(H5Dopen2(group, "scale", H5P_DEFAULT));
    H5(H5DSset_scale(scale, "time"));
    H5(H5DSattach_scale(set, scale, 0));
    for (int i = 0; i < 4; i++)
        H5(H5Rcreate(&to[i], other, i == 0 ? "/g" : "/g/x", H5R_OBJECT, -1));
    hdf5_put(group, "refs", H5T_STD_REF_OBJ, 4, H5T_STD_REF_OBJ, to);
    hdf5_put_attribute(set, "see", H5T_STD_REF_OBJ, 0, NULL, H5T_STD_REF_OBJ, &to[1]);
    H5(H5Dclose(set));
    H5(H5Dclose(scale));
    H5(H5Gclose(group));
    H5(H5Fclose(other));
    link_to(file, "d", "a.h5", "/g");
}

#define LOW "1,-2,3,-4"
#define HIGH "5,6,7,8"
#define FILLS "-9,-9,-9,-9"

static const struct {
    void (*put)(exchange_kit *kit, hid_t file);
    const char *checks[12];
} followed[] = {
    { two_sources, { "/d", "[" LOW "," HIGH "]" } },
    { a_part_that_no_source_has, { "/d", "[" LOW "," FILLS "]" } },
    { of_the_same_file, { "/d", "[" LOW "," FILLS "]", "/x", "[" LOW "]" } },
    { sources_of_sources_below, { "/d", "[" LOW "," FILLS "]" } },
    { by_its_whole_path, { "/d", "[" LOW "," FILLS "]" } },
    { of_a_smaller_type, { "/d", "[" LOW "," FILLS "]" } },
    { of_chunks_with_filters, { "/d", "[" LOW "," FILLS "]" } },
    { of_texts,
      { "/d", "[\"\",\"h\xc3\xa9llo\",\"b\",\"cc\",\"\",\"h\xc3\xa9llo\",\"b\",\"cc\"]" } },
    { of_sources_that_overlap, { "/d", "[" HIGH "," FILLS "]" } },
    { a_series_of_files, { "/d", "[" LOW "," HIGH "," LOW "]" } },
    { a_series_of_datasets, { "/d", "[" LOW "," HIGH "]" } },
    { a_source_that_grows, { "/d", "[" LOW "]" } },
    { in_raw_files, { "/d", "[" LOW "," HIGH "]" } },
    { a_link_to_a_dataset, { "/d", "[" LOW "]" } },
    { a_link_to_a_tree,
      { "/d/x", "[" LOW "]", "/d@n", "7", "/d/soft", "[" LOW "]", "/d/hard", "[" LOW "]",
        "/d/aside", "[" HIGH "]" } },
    { links_through_files,
      { "/d", "[" LOW "]", "/soft", "[" LOW "]", "/home", "[" HIGH "]", "/own", "[" HIGH "]" } },
    { references_in_the_other_file,
      { "/d/refs", "[\"/d\",\"/d/x\",\"/d/x\",\"/d/x\"]", "/d/x@see", "\"/d/x\"", "/d/x",
        "[" LOW "]" } },
};
#define N_FOLLOWED ((int)(sizeof(followed) / sizeof(followed[0])))

static void make(exchange_kit *kit, void (*put)(exchange_kit *kit, hid_t file))
{
    const int32_t value = 7;
    exchange_start(kit);
    hid_t file = hdf5_new_file(kit, "x.h5", 0);
    put(kit, file);
    hdf5_put(file, "z_good", H5T_STD_I32LE, 1, H5T_NATIVE_INT32, &value);
    H5(H5Fclose(file));
}

CASE("elsewhere", .timeout = 120);

/* By a name with folders and, from its own folder, without; what was imported is exported as plain
 * objects, which say the same without the other files. */
LOOP(followed_where_all_is_there, 0, N_FOLLOWED)
{
    exchange_kit kit;
    make(&kit, followed[_i].put);
    hdf5_import_ok(&kit, "x.h5", "/in");
    hdf5_check_all(&kit, "/in", followed[_i].checks);
    ck_assert_int_eq(chdir(kit.dir), 0);
    int rc = brc_import(kit.session, "x.h5", "/near", NULL, &kit.err);
    ck_assert_msg(rc == BRC_OK, "%s", kit.err.message);
    hdf5_check_all(&kit, "/near", followed[_i].checks);
    folder(&kit, "away");
    hdf5_export_ok(&kit, "/in", "away/back.h5");
    hdf5_import_ok(&kit, "away/back.h5", "/back");
    hdf5_check_all(&kit, "/back", followed[_i].checks);
    ck_assert_int_eq(chdir("/"), 0);
    exchange_stop(&kit);
}

TEST(more_sources_than_a_process_has_descriptors)
{
    exchange_kit kit;
    int32_t expected[MANY];
    for (int32_t i = 0; i < MANY; i++)
        expected[i] = i;
    make(&kit, many_sources);
    hdf5_import_ok(&kit, "x.h5", "/in");
    hdf5_check_bytes(&kit, "/in/d", expected, sizeof(expected));
    exchange_stop(&kit);
}

/* Where the environment sends the library there are other files of the same names. */
LOOP(files_are_not_looked_for_where_the_environment_says, 0, 3)
{
    static void (*const puts[])(exchange_kit *, hid_t) = { two_sources, in_raw_files,
                                                           links_through_files };
    exchange_kit kit, other;
    make(&kit, puts[_i]);
    make(&other, puts[_i]);
    for (size_t i = 0; i < 2; i++) {
        static const char *const names[] = { "a.h5", "two.bin" };
        if (unlink(exchange_path(&other, names[i])) == 0)
            put_raw(&other, names[i], 0, low, 16);
    }
    ck_assert_int_eq(setenv("HDF5_VDS_PREFIX", other.dir, 1), 0);
    ck_assert_int_eq(setenv("HDF5_EXTFILE_PREFIX", other.dir, 1), 0);
    ck_assert_int_eq(setenv("HDF5_EXT_PREFIX", other.dir, 1), 0);
    hdf5_import_ok(&kit, "x.h5", "/in");
    hdf5_check_values(&kit, "/in/d", _i < 2 ? "[" LOW "," HIGH "]" : "[" LOW "]");
    unsetenv("HDF5_VDS_PREFIX");
    unsetenv("HDF5_EXTFILE_PREFIX");
    unsetenv("HDF5_EXT_PREFIX");
    exchange_stop(&other);
    exchange_stop(&kit);
}

TEST(long_pieces_are_not_taken_from_the_wrong_file)
{
    exchange_kit kit;
    int32_t *expected = calloc(LONG, sizeof(*expected));
    ck_assert_ptr_nonnull(expected);
    make(&kit, long_elements_of_another_file);
    hdf5_import_ok(&kit, "x.h5", "/in");
    expected[0] = 11;
    expected[LONG - 1] = 12;
    hdf5_check_bytes(&kit, "/in/d/chunked", expected, LONG * sizeof(*expected));
    hdf5_check_bytes(&kit, "/in/d/whole", expected, LONG * sizeof(*expected));
    expected[0] = expected[LONG - 1] = 99;
    hdf5_check_bytes(&kit, "/in/own", expected, LONG * sizeof(*expected));
    free(expected);
    exchange_stop(&kit);
}

/* ---- what is refused -------------------------------- */

static void no_source(exchange_kit *kit, hid_t file)
{
    put_four(kit, "a.h5", low);
    put_virtual(file, "d", H5T_STD_I32LE, 2, (const char *const[]){ "a.h5", "gone.h5" }, "x");
}
static void no_dataset(exchange_kit *kit, hid_t file)
{
    put_four(kit, "a.h5", low);
    put_of_one(file, "a.h5", "gone");
}
static void not_hdf5(exchange_kit *kit, hid_t file)
{
    exchange_text(kit, "a.h5", "a text");
    put_of_one(file, "a.h5", "x");
}
static void above_the_folder(exchange_kit *kit, hid_t file)
{
    char name[512];
    const char *last = strrchr(kit->dir, '/');
    put_four(kit, "a.h5", low);
    snprintf(name, sizeof(name), "..%s/a.h5", last);
    put_of_one(file, name, "x");
}
static void of_the_system(exchange_kit *kit, hid_t file)
{
    (void)kit;
    put_of_one(file, "/etc/passwd", "x");
}
static void by_a_symbolic_link(exchange_kit *kit, hid_t file)
{
    put_four(kit, "a.h5", low);
    ck_assert_int_eq(symlink("a.h5", exchange_path(kit, "b.h5")), 0);
    put_of_one(file, "b.h5", "x");
}
static void hidden(exchange_kit *kit, hid_t file)
{
    put_four(kit, ".a.h5", low);
    put_of_one(file, ".a.h5", "x");
}
static void a_pipe(exchange_kit *kit, hid_t file)
{
    ck_assert_int_eq(mkfifo(exchange_path(kit, "pipe"), 0600), 0);
    put_of_one(file, "pipe", "x");
}
static void a_folder(exchange_kit *kit, hid_t file)
{
    folder(kit, "sub");
    put_of_one(file, "sub", "x");
}
static void of_itself(exchange_kit *kit, hid_t file)
{
    (void)kit;
    put_of_one(file, ".", "d");
}
static void of_itself_by_name(exchange_kit *kit, hid_t file)
{
    (void)kit;
    put_of_one(file, "x.h5", "/d");
}
/* One is met again that was met before, beneath another. */
static void of_each_other(exchange_kit *kit, hid_t file)
{
    hid_t other = hdf5_new_file(kit, "a.h5", 0);
    put_virtual(other, "b", H5T_STD_I32LE, 1, (const char *const[]){ "." }, "c");
    put_virtual(other, "c", H5T_STD_I32LE, 1, (const char *const[]){ "." }, "b");
    H5(H5Fclose(other));
    put_of_one(file, "a.h5", "b");
}
static void nested_too_deep(exchange_kit *kit, hid_t file)
{
    char set[16], next[16];
    (void)kit;
    hdf5_put(file, "n20", H5T_STD_I32LE, 8, H5T_NATIVE_INT32, (int32_t[8]){ 1 });
    for (int i = 0; i < 20; i++) {
        snprintf(set, sizeof(set), i == 0 ? "d" : "n%02d", i);
        snprintf(next, sizeof(next), "n%02d", i + 1);
        put_virtual(file, set, H5T_STD_I32LE, 1, (const char *const[]){ "." }, next);
    }
}
static void of_a_larger_type(exchange_kit *kit, hid_t file)
{
    const int64_t values[] = { 1, (int64_t)1 << 40, 3, 4 };
    hid_t other = hdf5_new_file(kit, "a.h5", 0);
    hdf5_put(other, "x", H5T_STD_I64LE, 4, H5T_NATIVE_INT64, values);
    H5(H5Fclose(other));
    put_of_one(file, "a.h5", "x");
}
static void of_references(exchange_kit *kit, hid_t file)
{
    hid_t other = hdf5_new_file(kit, "a.h5", 0);
    hdf5_put(other, "x", H5T_STD_REF_OBJ, 4, H5T_STD_REF_OBJ, NULL);
    H5(H5Fclose(other));
    put_virtual(file, "d", H5T_STD_REF_OBJ, 1, (const char *const[]){ "a.h5" }, "x");
}
static void of_a_shorter_source(exchange_kit *kit, hid_t file)
{
    hid_t other = hdf5_new_file(kit, "a.h5", 0);
    hdf5_put(other, "x", H5T_STD_I32LE, 3, H5T_NATIVE_INT32, low);
    H5(H5Fclose(other));
    put_of_one(file, "a.h5", "x");
}
static void a_gap_in_a_series(exchange_kit *kit, hid_t file)
{
    put_four(kit, "s0.h5", low);
    put_four(kit, "s1.h5", low);
    put_four(kit, "s3.h5", high);
    put_series(file, "s%b.h5", "x", 0, 4);
}
static void a_series_without_a_first(exchange_kit *kit, hid_t file)
{
    put_four(kit, "s1.h5", low);
    put_series(file, "s%b.h5", "x", 0, 4);
}
/* Names of one file: what counts are the names. */
static void too_many_files(exchange_kit *kit, hid_t file)
{
    hsize_t n = 4 * 1001;
    hid_t plist = H5(H5Pcreate(H5P_DATASET_CREATE)), space = H5(H5Screate_simple(1, &n, NULL));
    put_four(kit, "a.h5", low);
    for (int i = 0; i < 1001; i++) {
        char name[16], from[512];
        snprintf(name, sizeof(name), "m%d.h5", i);
        snprintf(from, sizeof(from), "%s", exchange_path(kit, "a.h5"));
        ck_assert_int_eq(link(from, exchange_path(kit, name)), 0);
        map(plist, space, 4 * (hsize_t)i, 4, name, "x");
    }
    H5(H5Dclose(
        H5(H5Dcreate2(file, "d", H5T_STD_I32LE, space, H5P_DEFAULT, plist, H5P_DEFAULT))));
    H5(H5Sclose(space));
    H5(H5Pclose(plist));
}
/* The header says more than the file has, which the library does not look at. */
static void of_a_source_that_was_cut(exchange_kit *kit, hid_t file)
{
    put_four(kit, "a.h5", low);
    ck_assert_int_eq(truncate(exchange_path(kit, "a.h5"), 100), 0);
    put_of_one(file, "a.h5", "x");
}

static void no_raw_file(exchange_kit *kit, hid_t file)
{
    put_raw(kit, "one.bin", 0, low, 16);
    put_outside(file, "one.bin", 0, "gone.bin");
}
static void a_short_raw_file(exchange_kit *kit, hid_t file)
{
    put_raw(kit, "one.bin", 0, low, 16);
    put_raw(kit, "two.bin", 0, high, 15);
    put_outside(file, "one.bin", 0, "two.bin");
}
static void a_raw_file_of_the_system(exchange_kit *kit, hid_t file)
{
    put_raw(kit, "one.bin", 0, low, 16);
    put_outside(file, "one.bin", 0, "/etc/passwd");
}
static void a_raw_pipe(exchange_kit *kit, hid_t file)
{
    ck_assert_int_eq(mkfifo(exchange_path(kit, "pipe"), 0600), 0);
    put_outside(file, "pipe", 0, "pipe");
}

static void a_link_to_no_file(exchange_kit *kit, hid_t file)
{
    (void)kit;
    link_to(file, "d", "gone.h5", "/x");
}
static void a_link_to_no_object(exchange_kit *kit, hid_t file)
{
    put_four(kit, "a.h5", low);
    link_to(file, "d", "a.h5", "/gone");
}
static void a_link_out_of_the_folder(exchange_kit *kit, hid_t file)
{
    (void)kit;
    link_to(file, "d", "/etc/passwd", "/");
}
static void a_link_by_a_symbolic_link(exchange_kit *kit, hid_t file)
{
    put_four(kit, "a.h5", low);
    ck_assert_int_eq(symlink("a.h5", exchange_path(kit, "b.h5")), 0);
    link_to(file, "d", "b.h5", "/");
}
static void links_in_a_circle(exchange_kit *kit, hid_t file)
{
    hid_t other = hdf5_new_file(kit, "a.h5", 0);
    link_to(other, "l", "x.h5", "/d");
    H5(H5Fclose(other));
    link_to(file, "d", "a.h5", "/l");
}
/* Each group has the other file's: there is no end. */
static void a_group_that_leads_back(exchange_kit *kit, hid_t file)
{
    hid_t other = hdf5_new_file(kit, "a.h5", 0);
    H5(H5Gclose(new_group(other, "g")));
    link_to(other, "g/up", "x.h5", "/d");
    H5(H5Fclose(other));
    H5(H5Gclose(new_group(file, "e")));
    link_to(file, "d", "a.h5", "/g");
}
static void a_link_back_to_the_root(exchange_kit *kit, hid_t file)
{
    hid_t other = hdf5_new_file(kit, "a.h5", 0);
    link_to(other, "up", "x.h5", "/");
    H5(H5Fclose(other));
    link_to(file, "d", "a.h5", "/");
}
static void references_out_of_what_is_linked(exchange_kit *kit, hid_t file)
{
    hobj_ref_t to;
    hid_t other = hdf5_new_file(kit, "a.h5", 0), group = new_group(other, "g");
    H5(H5Rcreate(&to, other, "/", H5R_OBJECT, -1));
    hdf5_put(group, "d", H5T_STD_REF_OBJ, 1, H5T_STD_REF_OBJ, &to);
    H5(H5Gclose(group));
    H5(H5Fclose(other));
    link_to(file, "d", "a.h5", "/g/d");
}

#define SOURCE_X "x.h5: /d takes elements from the dataset x of the file "
static const struct {
    void (*put)(exchange_kit *kit, hid_t file);
    const char *says;
} refused[] = {
    { no_source, SOURCE_X "gone.h5, which does not exist: copy the file" },
    { no_dataset, "from the dataset gone of the file a.h5, which does not exist" },
    { not_hdf5, SOURCE_X "a.h5, which cannot be opened as HDF5" },
    { above_the_folder, "a.h5, which may not be read: only files beneath the imported file's" },
    { of_the_system, SOURCE_X "/etc/passwd, which may not be read" },
    { by_a_symbolic_link, SOURCE_X "b.h5, which may not be read" },
    { hidden, SOURCE_X ".a.h5, which may not be read" },
    { a_pipe, SOURCE_X "pipe, which may not be read" },
    { a_folder, SOURCE_X "sub, which may not be read" },
    { of_itself, "from the dataset d of the file ., which takes elements from it" },
    { of_itself_by_name, "from the dataset /d of the file x.h5, which takes elements from it" },
    { of_each_other, "from the dataset b of the file ., which takes elements from it" },
    { nested_too_deep, "x.h5: /d: sources of its sources are nested more than 16 deep" },
    { of_a_larger_type, SOURCE_X "a.h5, which has another data type" },
    { of_references, SOURCE_X "a.h5, whose references are to objects of that file" },
    { of_a_shorter_source, SOURCE_X "a.h5, which has fewer elements than are taken" },
    { a_gap_in_a_series, SOURCE_X "s2.h5, which does not exist" },
    { a_series_without_a_first, SOURCE_X "s0.h5, which does not exist" },
    { too_many_files, "x.h5: /d takes its elements from more than 1000 files" },
    { of_a_source_that_was_cut, SOURCE_X "a.h5, which cannot be opened as HDF5" },
    { no_raw_file, "x.h5: /d has elements in the raw file gone.bin, which does not exist" },
    { a_short_raw_file, "the raw file two.bin, which has 15 bytes and should have 16" },
    { a_raw_file_of_the_system, "in the raw file /etc/passwd, which may not be read" },
    { a_raw_pipe, "x.h5: /d has elements in the raw file pipe, which may not be read" },
    { a_source_in_raw_files, SOURCE_X "sub/a.h5, whose elements are in raw files" },
    { a_link_to_no_file, "x.h5: /d leads to /x in the file gone.h5, which does not exist" },
    { a_link_to_no_object, "/d leads to /gone in the file a.h5, which is not HDF5 or has no such" },
    { a_link_out_of_the_folder, "/d leads to / in the file /etc/passwd, which may not be read" },
    { a_link_by_a_symbolic_link, "/d leads to / in the file b.h5, which may not be read" },
    { links_in_a_circle, "x.h5: /d leads through links of " },
    { a_group_that_leads_back, "x.h5: /d/up leads back to a group around it" },
    { a_link_back_to_the_root, "x.h5: /d/up leads back to a group around it" },
    { references_out_of_what_is_linked,
      "object of another file that the link to that file does not" },
};
#define N_REFUSED ((int)(sizeof(refused) / sizeof(refused[0])))

/* By name; with the part left out, the rest is imported. */
LOOP(refused_by_name_and_skipped, 0, N_REFUSED)
{
    brc_xfer_opts opts = BRC_XFER_OPTS_INIT;
    brc_buf left_out = BRC_BUF_INIT;
    exchange_kit kit;
    make(&kit, refused[_i].put);
    hdf5_import_says(&kit, "x.h5", BRC_EUNSUPPORTED, refused[_i].says);
    opts.flags = BRC_XFER_SKIP_UNSUPPORTED;
    opts.left_out = &left_out;
    int rc = brc_import(kit.session, exchange_path(&kit, "x.h5"), "/bad", &opts, &kit.err);
    ck_assert_msg(rc == BRC_OK, "%s", kit.err.message);
    hdf5_check_bytes(&kit, "/bad/z_good", &(int32_t){ 7 }, 4);
    ck_assert_msg(memmem(left_out.data, left_out.len, "/d", 2) != NULL, "%.*s", (int)left_out.len,
                  (char *)left_out.data);
    brc_buf_dispose(&left_out);
    exchange_stop(&kit);
}
