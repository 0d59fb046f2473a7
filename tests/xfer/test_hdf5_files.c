/* HDF5 files with links, gaps and filters, those that are refused, and enemies. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zlib.h>

#include "../../src/base/file.h"
#include "../../src/breccia_codec.h"
#include "../../src/xfer/foreign/protocol.h"
#include "../kit/converters.h"
#include "../../src/breccia_json.h"
#include "../kit/hdf5_kit.h"
#include "../kit/suite.h"

TEST_SUITE(hdf5_files);

static const hsize_t one = 1;

/* ---- links -------------------------------- */

CASE("files", .timeout = 120);

/* Each path is a copy of its own. */
LOOP(links_become_copies, 0, 2)
{
    static const int16_t values[] = { 1, -2, 3 };
    exchange_kit kit;
    exchange_start(&kit);
    hid_t file = hdf5_new_file(&kit, "x.h5", _i);
    H5(H5Gclose(H5(H5Gcreate2(file, "g", H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT))));
    hdf5_put(file, "g/a", H5T_STD_I16BE, 3, H5T_NATIVE_INT16, values);
    H5(H5Lcreate_hard(file, "g/a", file, "hard", H5P_DEFAULT, H5P_DEFAULT));
    H5(H5Lcreate_hard(file, "g", file, "twice", H5P_DEFAULT, H5P_DEFAULT));
    H5(H5Lcreate_soft("/twice/a", file, "soft", H5P_DEFAULT, H5P_DEFAULT));
    H5(H5Fclose(file));
    hdf5_import_ok(&kit, "x.h5", "/in");
    static const char *const paths[] = { "/in/g/a", "/in/hard", "/in/twice/a", "/in/soft" };
    for (size_t i = 0; i < 4; i++)
        hdf5_check_bytes(&kit, paths[i], values, sizeof(values));
    exchange_stop(&kit);
}

static void put_soft(hid_t file)
{
    H5(H5Lcreate_soft("/none", file, "l", H5P_DEFAULT, H5P_DEFAULT));
}
static void put_external(hid_t file)
{
    H5(H5Lcreate_external("/etc/passwd", "/", file, "l", H5P_DEFAULT, H5P_DEFAULT));
}
/* A soft link that leads through an external one. */
static void put_hidden(hid_t file)
{
    H5(H5Gclose(H5(H5Gcreate2(file, "z", H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT))));
    H5(H5Lcreate_external("other.h5", "/", file, "z/e", H5P_DEFAULT, H5P_DEFAULT));
    H5(H5Lcreate_soft("/z/e", file, "a", H5P_DEFAULT, H5P_DEFAULT));
}
static void put_cycle(hid_t file)
{
    H5(H5Gclose(H5(H5Gcreate2(file, "g", H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT))));
    H5(H5Lcreate_hard(file, "/", file, "g/up", H5P_DEFAULT, H5P_DEFAULT));
}
static void put_soft_cycle(hid_t file)
{
    H5(H5Gclose(H5(H5Gcreate2(file, "g", H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT))));
    H5(H5Lcreate_soft("/g", file, "g/self", H5P_DEFAULT, H5P_DEFAULT));
}
/* 2^14 groups by 29 links. */
static void put_doubling(hid_t file)
{
    hid_t at = H5(H5Gopen2(file, "/", H5P_DEFAULT));
    for (int i = 0; i < 14; i++) {
        hid_t inner = H5(H5Gcreate2(at, "a", H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT));
        H5(H5Lcreate_hard(at, "a", at, "b", H5P_DEFAULT, H5P_DEFAULT));
        H5(H5Gclose(at));
        at = inner;
    }
    H5(H5Gclose(at));
}

/* ---- what is refused -------------------------------- */

static void put_long_double(hid_t file)
{
    const long double value = 1;
    hdf5_put(file, "d", H5T_NATIVE_LDOUBLE, 1, H5T_NATIVE_LDOUBLE, &value);
}
static void put_wide_integer(hid_t file)
{
    hid_t type = H5(H5Tcopy(H5T_STD_I64LE));
    H5(H5Tset_size(type, 16));
    H5(H5Tset_precision(type, 128));
    hdf5_put(file, "d", type, 1, type, NULL);
    H5(H5Tclose(type));
}
static void put_time(hid_t file)
{
    hdf5_put(file, "d", H5T_UNIX_D32LE, 1, H5T_UNIX_D32LE, NULL);
}
static void put_lists(hid_t file)
{
    hid_t type = H5(H5Tvlen_create(H5T_NATIVE_LDOUBLE));
    hdf5_put(file, "d", type, 1, type, NULL);
    H5(H5Tclose(type));
}
static void put_text_inside(hid_t file)
{
    const char *latin = "h\xe9";
    hid_t text = H5(H5Tcopy(H5T_C_S1)), type = H5(H5Tcreate(H5T_COMPOUND, sizeof(char *)));
    H5(H5Tset_size(text, H5T_VARIABLE));
    H5(H5Tinsert(type, "name", 0, text));
    hdf5_put(file, "d", type, 1, type, &latin);
    H5(H5Tclose(type));
    H5(H5Tclose(text));
}
static void put_third_truth(hid_t file)
{
    hid_t type = H5(H5Tenum_create(H5T_NATIVE_INT8));
    int8_t value = 0;
    H5(H5Tenum_insert(type, "FALSE", &value));
    value = 1;
    H5(H5Tenum_insert(type, "TRUE", &value));
    value = 2;
    hdf5_put(file, "d", type, 1, type, &value);
    H5(H5Tclose(type));
}
static void put_latin(hid_t file)
{
    const char *text = "h\xe9";
    hid_t type = H5(H5Tcopy(H5T_C_S1));
    H5(H5Tset_size(type, H5T_VARIABLE));
    hdf5_put(file, "d", type, 1, type, &text);
    H5(H5Tclose(type));
}
/* A reference to an object that no link leads to; only the elements tell. The object is not
 * deleted, for its place would be another's then. */
static void put_dangling_as(hid_t file, H5R_type_t kind, hid_t type)
{
    const int32_t value = 7;
    hdset_reg_ref_t reference;
    hid_t space = H5(H5Screate_simple(1, &one, NULL));
    hdf5_put(file, "gone", H5T_STD_I32LE, 1, H5T_NATIVE_INT32, &value);
    hid_t object = H5(H5Oopen(file, "gone", H5P_DEFAULT));
    H5(H5Rcreate(&reference, file, "gone", kind, space));
    hdf5_put(file, "d", type, 1, type, &reference);
    H5(H5Oincr_refcount(object));
    H5(H5Ldelete(file, "gone", H5P_DEFAULT));
    H5(H5Oclose(object));
    H5(H5Sclose(space));
}
static void put_dangling(hid_t file)
{
    put_dangling_as(file, H5R_OBJECT, H5T_STD_REF_OBJ);
}
static void put_dangling_region(hid_t file)
{
    put_dangling_as(file, H5R_DATASET_REGION, H5T_STD_REF_DSETREG);
}
static void put_virtual(hid_t file)
{
    hid_t plist = H5(H5Pcreate(H5P_DATASET_CREATE)), space = H5(H5Screate_simple(1, &one, NULL));
    H5(H5Pset_virtual(plist, space, "/etc/passwd", "x", space));
    H5(H5Dclose(H5(H5Dcreate2(file, "d", H5T_NATIVE_INT, space, H5P_DEFAULT, plist, H5P_DEFAULT))));
    H5(H5Pclose(plist));
    H5(H5Sclose(space));
}
static void put_outside(hid_t file)
{
    hid_t plist = H5(H5Pcreate(H5P_DATASET_CREATE));
    H5(H5Pset_external(plist, "/etc/passwd", 0, 4));
    H5(H5Dclose(hdf5_new_dataset(file, "d", H5T_NATIVE_INT, 1, &one, plist, 0, NULL)));
    H5(H5Pclose(plist));
}
/* A filter that this library has and another has not. */
static size_t keep_all(unsigned flags, size_t n, const unsigned *values, size_t len, size_t *size,
                       void **data)
{
    (void)flags, (void)n, (void)values, (void)size, (void)data;
    return len;
}
static void put_unknown_filter(hid_t file)
{
    static const H5Z_class2_t filter = { H5Z_CLASS_T_VERS, 400,  1,    1,
                                         "squeeze",        NULL, NULL, keep_all };
    const int32_t value = 1;
    H5(H5Zregister(&filter));
    hid_t plist = hdf5_chunked(1, &one);
    H5(H5Pset_filter(plist, 400, H5Z_FLAG_MANDATORY, 0, NULL));
    H5(H5Dclose(
        hdf5_new_dataset(file, "d", H5T_NATIVE_INT32, 1, &one, plist, H5T_NATIVE_INT32, &value)));
    H5(H5Zunregister(400));
    H5(H5Pclose(plist));
}
static void put_different_fill(hid_t file)
{
    static const hsize_t two = 2;
    static const int32_t fill[] = { 1, 2 };
    hid_t type = H5(H5Tarray_create2(H5T_NATIVE_INT32, 1, &two)), plist = hdf5_chunked(1, &one);
    H5(H5Pset_fill_value(plist, type, fill));
    H5(H5Dclose(hdf5_new_dataset(file, "d", type, 1, &one, plist, type, NULL)));
    H5(H5Pclose(plist));
    H5(H5Tclose(type));
}
/* Chunks that inflate to less than they should, or to more, or are not a stream at all. */
static void put_stream(hid_t file, const void *data, size_t len)
{
    static const hsize_t eight = 8, start = 0;
    uint8_t stream[4096];
    uLongf size = sizeof(stream);
    ck_assert_int_eq(compress(stream, &size, data, len), Z_OK);
    hid_t plist = hdf5_chunked(1, &eight);
    H5(H5Pset_deflate(plist, 6));
    hid_t set = hdf5_new_dataset(file, "d", H5T_STD_I32LE, 1, &eight, plist, 0, NULL);
    H5(H5Dwrite_chunk(set, H5P_DEFAULT, 0, &start, size, stream));
    H5(H5Dclose(set));
    H5(H5Pclose(plist));
}
static void put_short_chunk(hid_t file)
{
    put_stream(file, "abc", 3);
}
static void put_bomb(hid_t file)
{
    void *zeros = calloc(1, 1 << 20);
    ck_assert_ptr_nonnull(zeros);
    put_stream(file, zeros, 1 << 20);
    free(zeros);
}

static const struct {
    void (*put)(hid_t file);
    int code;
    const char *says;
} refused[] = {
    { put_soft, BRC_EUNSUPPORTED, "x.h5: /l links to an object that this file does not have" },
    { put_external, BRC_EUNSUPPORTED,
      "x.h5: /l leads to / in the file /etc/passwd, which may not be read" },
    { put_hidden, BRC_EUNSUPPORTED,
      "x.h5: /a leads to / in the file other.h5, which does not exist" },
    { put_cycle, BRC_EUNSUPPORTED, "x.h5: /g/up leads back to a group around it" },
    { put_soft_cycle, BRC_EUNSUPPORTED, "x.h5: /g/self leads back to a group around it" },
    { put_doubling, BRC_ELIMIT, "more than 10000 copies of groups" },
    { put_long_double, BRC_EUNSUPPORTED, "x.h5: /d: its floats of 16 bytes" },
    { put_wide_integer, BRC_EUNSUPPORTED, "x.h5: /d: an integer of 16 bytes has no data type" },
    { put_time, BRC_EUNSUPPORTED, "x.h5: /d: HDF5's time has no data type" },
    { put_lists, BRC_EUNSUPPORTED, "x.h5: /d: its floats of 16 bytes" },
    { put_text_inside, BRC_EUNSUPPORTED, "x.h5: /d: one of its strings is not UTF-8" },
    { put_third_truth, BRC_EUNSUPPORTED,
      "x.h5: /d: an element of FALSE = 0 and TRUE = 1 is 2, which is neither" },
    { put_latin, BRC_EUNSUPPORTED, "x.h5: /d: one of its strings is not UTF-8" },
    { put_dangling, BRC_EUNSUPPORTED,
      "x.h5: /d: one of its references leads to an object that has no" },
    { put_dangling_region, BRC_EUNSUPPORTED,
      "x.h5: /d: one of its references leads to an object that has no" },
    { put_virtual, BRC_EUNSUPPORTED,
      "x.h5: /d takes elements from the dataset x of the file /etc/passwd, which may not" },
    { put_outside, BRC_EUNSUPPORTED,
      "x.h5: /d has elements in the raw file /etc/passwd, which may not be read" },
    { put_unknown_filter, BRC_EUNSUPPORTED,
      "x.h5: /d needs the HDF5 filter 400 (squeeze), which is not built in and not in " },
    { put_different_fill, BRC_EUNSUPPORTED,
      "x.h5: /d: its fill value is an array of different values" },
    { put_short_chunk, BRC_EINVAL, "x.h5: /bad/d chunk (0)" },
    { put_bomb, BRC_EINVAL, "x.h5: /bad/d chunk (0)" },
};
#define N_REFUSED ((int)(sizeof(refused) / sizeof(refused[0])))

/* x.h5 with one of these in it, and a dataset that is good, is the working folder's. */
static void make_refused(exchange_kit *kit, int i)
{
    const int32_t value = 7;
    exchange_start(kit);
    hid_t file = hdf5_new_file(kit, "x.h5", 0);
    refused[i].put(file);
    hdf5_put(file, "z_good", H5T_STD_I32LE, 1, H5T_NATIVE_INT32, &value);
    H5(H5Fclose(file));
    ck_assert_int_eq(chdir(kit->dir), 0);
}

LOOP(refused_by_name, 0, N_REFUSED)
{
    exchange_kit kit;
    make_refused(&kit, _i);
    int clean = 0, rc = brc_import(kit.session, "x.h5", "/bad", NULL, &kit.err);
    ck_assert_msg(rc == refused[_i].code, "%d: %s", rc, rc < 0 ? kit.err.message : "imported");
    ck_assert_msg(strstr(kit.err.message, refused[_i].says), "\"%s\" is not in \"%s\"",
                  refused[_i].says, kit.err.message);
    ck_assert_int_eq(brc_session_clean(&clean, kit.session, NULL), BRC_OK);
    ck_assert_int_eq(clean, 1);
    ck_assert_int_eq(chdir("/"), 0);
    exchange_stop(&kit);
}

/* Names that HDF5 allows and Zarr does not, and the nodes that they become; an export has them
 * again. */
TEST(names_that_zarr_does_not_allow)
{
    static const char *const names[][2] = {
        { "__x", "/f/%5F_x" },          { "..", "/f/%2E." },
        { "...", "/f/%2E.." },          { "zarr.json", "/f/%7Aarr.json" },
        { "a\tb", "/f/a%09b" },         { "a%09b", "/f/a%2509b" },
        { "%5F_x", "/f/%255F_x" },      { "__g/__d", "/f/%5F_g/%5F_d" },
    };
    enum { N_NAMES = sizeof(names) / sizeof(names[0]) };
    exchange_kit kit;

    exchange_start(&kit);
    hid_t file = hdf5_new_file(&kit, "x.h5", 0);
    hid_t group = H5(H5Gcreate2(file, "__g", H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT));
    for (int32_t i = 0; i < N_NAMES; i++)
        hdf5_put(file, names[i][0], H5T_STD_I32LE, 1, H5T_NATIVE_INT32, &i);
    H5(H5Gclose(group));
    H5(H5Fclose(file));
    for (int round = 0; round < 2; round++) {
        const char *source = exchange_path(&kit, round ? "back.h5" : "x.h5");
        int rc = brc_import(kit.session, source, "/f", NULL, &kit.err);
        ck_assert_msg(rc == BRC_OK, "%s", kit.err.message);
        for (int32_t i = 0; i < N_NAMES; i++)
            hdf5_check_bytes(&kit, names[i][1], &i, 4);
        if (round == 0) {
            const char *back = exchange_path(&kit, "back.h5");
            ck_assert_int_eq(brc_export(kit.session, "/f", back, NULL, &kit.err), BRC_OK);
            file = H5(H5Fopen(back, H5F_ACC_RDONLY, H5P_DEFAULT));
            for (int i = 0; i < N_NAMES; i++)
                ck_assert_int_gt(H5Lexists(file, names[i][0], H5P_DEFAULT), 0);
            H5(H5Fclose(file));
        }
        ck_assert_int_eq(brc_node_remove(kit.session, "/f", &kit.err), BRC_OK);
    }
    exchange_stop(&kit);
}

/* A part that cannot be kept is left out and named, and nothing else is; damage always fails. */
LOOP(refused_and_skipped, 0, N_REFUSED)
{
    brc_xfer_opts opts = BRC_XFER_OPTS_INIT;
    brc_buf left_out = BRC_BUF_INIT;
    exchange_kit kit;
    int clean = 0, unsupported = refused[_i].code == BRC_EUNSUPPORTED;

    make_refused(&kit, _i);
    opts.flags = BRC_XFER_SKIP_UNSUPPORTED;
    opts.left_out = &left_out;
    int rc = brc_import(kit.session, "x.h5", "/bad", &opts, &kit.err);
    ck_assert_msg(rc == (unsupported ? BRC_OK : refused[_i].code), "%d: %s", rc, kit.err.message);
    if (unsupported) {
        hdf5_check_bytes(&kit, "/bad/z_good", &(int32_t){ 7 }, 4);
        brc_json *list;
        const char *message;
        ck_assert_int_eq(brc_json_parse(&list, (char *)left_out.data, left_out.len, 0,
                                        NULL), BRC_OK);
        ck_assert(brc_json_text(brc_json_member(brc_json_item(list, 0), "message"), &message));
        ck_assert_msg(strstr(message, refused[_i].says), "%s", (char *)left_out.data);
        brc_json_free(list);
        ck_assert_int_eq(brc_node_kind(&clean, kit.session, "/bad/d", NULL), BRC_OK);
        ck_assert_int_eq(clean, 0);
    } else {
        ck_assert_str_eq((char *)left_out.data, "[]");
        ck_assert_int_eq(brc_session_clean(&clean, kit.session, NULL), BRC_OK);
        ck_assert_int_eq(clean, 1);
    }
    brc_buf_dispose(&left_out);
    ck_assert_int_eq(chdir("/"), 0);
    exchange_stop(&kit);
}

/* ---- gaps and filters -------------------------------- */

/* 2^40 elements, of which a few are stored: in and out as fast as those few. */
TEST(few_of_many)
{
    static const hsize_t shape[] = { (hsize_t)1 << 40 }, chunk[] = { 1000 };
    static const hsize_t start[] = { ((hsize_t)1 << 40) - 5 }, count[] = { 3 };
    static const float values[] = { 1.5f, 2.5f, 3.5f }, fill = -1;
    static const float expected[] = { -1, 1.5f, 2.5f, 3.5f, -1, -1 };
    exchange_kit kit;
    float seen[6];
    brc_array *a;
    brc_sel sel = BRC_SEL_INIT;

    exchange_start(&kit);
    hid_t file = hdf5_new_file(&kit, "x.h5", 0), plist = hdf5_chunked(1, chunk);
    H5(H5Pset_fill_value(plist, H5T_NATIVE_FLOAT, &fill));
    hid_t set = hdf5_new_dataset(file, "a", H5T_IEEE_F32LE, 1, shape, plist, 0, NULL);
    hid_t space = H5(H5Dget_space(set)), memory = H5(H5Screate_simple(1, count, NULL));
    H5(H5Sselect_hyperslab(space, H5S_SELECT_SET, start, NULL, count, NULL));
    H5(H5Dwrite(set, H5T_NATIVE_FLOAT, memory, space, H5P_DEFAULT, values));
    H5(H5Dclose(set));
    H5(H5Sclose(space));
    H5(H5Sclose(memory));
    H5(H5Fclose(file));
    hdf5_import_ok(&kit, "x.h5", "/in");
    hdf5_export_ok(&kit, "/in", "y.h5");
    hdf5_import_ok(&kit, "y.h5", "/again");
    for (int i = 0; i < 2; i++) {
        int rc = brc_array_open(&a, kit.session, i ? "/again/a" : "/in/a", &kit.err);
        ck_assert_msg(rc == BRC_OK, "%s", kit.err.message);
        ck_assert_int_eq(brc_sel_parse(&sel, a, "[-6:]", &kit.err), BRC_OK);
        ck_assert_int_eq(brc_array_read(a, &sel, seen, sizeof(seen), &kit.err), BRC_OK);
        ck_assert_mem_eq(seen, expected, sizeof(seen));
        brc_array_free(a);
    }
    H5(H5Pclose(plist));
    exchange_stop(&kit);
}

/* Every pair of filters, with chunks missing, some with a filter left out, and ones that
 * the library has to decode. */
LOOP(filters, 0, 9)
{
    static const hsize_t shape[] = { 7, 10 }, chunk[] = { 3, 4 }, start[] = { 0, 0 },
                         corner[] = { 3, 4 };
    static const hsize_t count[] = { 3, 9 };
    int32_t values[70], plain[12];
    exchange_kit kit;
    exchange_start(&kit);
    hid_t file = hdf5_new_file(&kit, "x.h5", 1), plist = hdf5_chunked(2, chunk);
    const int32_t fill = 77;
    H5(H5Pset_fill_value(plist, H5T_NATIVE_INT32, &fill));
    if (_i & 1)
        H5(H5Pset_shuffle(plist));
    if (_i & 2)
        H5(H5Pset_deflate(plist, 6));
    if (_i & 4)
        H5(H5Pset_fletcher32(plist));
    if (_i & 8)
        H5(H5Pset_nbit(plist));
    hid_t set = hdf5_new_dataset(file, "a", H5T_STD_I32BE, 2, shape, plist, 0, NULL);
    hid_t space = H5(H5Dget_space(set)), memory = H5(H5Screate_simple(2, shape, NULL));
    for (int i = 0; i < 70; i++)
        values[i] = i * 1000 - 20000;
    H5(H5Sselect_hyperslab(space, H5S_SELECT_SET, start, NULL, count, NULL));
    H5(H5Sselect_hyperslab(memory, H5S_SELECT_SET, start, NULL, count, NULL));
    H5(H5Dwrite(set, H5T_NATIVE_INT32, memory, space, H5P_DEFAULT, values));
    for (int i = 0; i < 12; i++) /* stored as it is: its bytes are big-endian */
        plain[i] = (int32_t)__builtin_bswap32((uint32_t)(5000 + i));
    if (!(_i & 8))
        H5(H5Dwrite_chunk(set, H5P_DEFAULT, 0xff, corner, sizeof(plain), plain));
    for (int i = 0; i < 70; i++) {
        int row = i / 10, column = i % 10;
        int is_plain = !(_i & 8) && row >= 3 && row < 6 && column >= 4 && column < 8;
        if (is_plain)
            values[i] = 5000 + (row - 3) * 4 + column - 4;
        else if (row >= 3 || column >= 9)
            values[i] = fill;
    }
    H5(H5Dclose(set));
    H5(H5Sclose(space));
    H5(H5Sclose(memory));
    H5(H5Fclose(file));
    hdf5_import_ok(&kit, "x.h5", "/in");
    hdf5_check_bytes(&kit, "/in/a", values, sizeof(values));
    H5(H5Pclose(plist));
    exchange_stop(&kit);
}

/* The library itself reads none of the chunks that are not stored here. */
TEST(texts_with_a_fill_value)
{
    static const hsize_t shape[] = { 5 }, chunk[] = { 2 }, count[] = { 1 }, start[] = { 2 };
    static const uint8_t expected[] = "\4\0\0\0fill\4\0\0\0fill\1\0\0\0x\4\0\0\0fill\4\0\0\0fill";
    const char *fill = "fill", *text = "x";
    exchange_kit kit;
    exchange_start(&kit);
    hid_t file = hdf5_new_file(&kit, "x.h5", 0), plist = hdf5_chunked(1, chunk);
    hid_t type = H5(H5Tcopy(H5T_C_S1));
    H5(H5Tset_size(type, H5T_VARIABLE));
    H5(H5Pset_fill_value(plist, type, &fill));
    hid_t set = hdf5_new_dataset(file, "a", type, 1, shape, plist, 0, NULL);
    hid_t space = H5(H5Dget_space(set)), memory = H5(H5Screate_simple(1, count, NULL));
    H5(H5Sselect_hyperslab(space, H5S_SELECT_SET, start, NULL, count, NULL));
    H5(H5Dwrite(set, type, memory, space, H5P_DEFAULT, &text));
    H5(H5Dclose(set));
    H5(H5Sclose(space));
    H5(H5Sclose(memory));
    H5(H5Fclose(file));
    hdf5_import_ok(&kit, "x.h5", "/in");
    hdf5_check_elements(&kit, "/in/a", expected, sizeof(expected) - 1);
    hdf5_export_ok(&kit, "/in", "y.h5"); /* which has all of them */
    file = H5(H5Fopen(exchange_path(&kit, "y.h5"), H5F_ACC_RDONLY, H5P_DEFAULT));
    set = H5(H5Dopen2(file, "a", H5P_DEFAULT));
    char *seen[5];
    H5(H5Dread(set, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, seen));
    for (int i = 0; i < 5; i++) {
        ck_assert_str_eq(seen[i], i == 2 ? "x" : "fill");
        H5(H5free_memory(seen[i]));
    }
    H5(H5Dclose(set));
    H5(H5Fclose(file));
    H5(H5Pclose(plist));
    H5(H5Tclose(type));
    exchange_stop(&kit);
}

/* Shapes that grow, and the rest of what a note keeps. */
TEST(spaces)
{
    static const hsize_t shape[] = { 2, 3 }, most[] = { H5S_UNLIMITED, 3 }, chunk[] = { 4, 2 };
    exchange_kit kit;
    exchange_start(&kit);
    hid_t file = hdf5_new_file(&kit, "x.h5", 0), plist = hdf5_chunked(2, chunk);
    hid_t space = H5(H5Screate_simple(2, shape, most)), null = H5(H5Screate(H5S_NULL));
    H5(H5Dclose(
        H5(H5Dcreate2(file, "grows", H5T_STD_I8LE, space, H5P_DEFAULT, plist, H5P_DEFAULT))));
    H5(H5Dclose(
        H5(H5Dcreate2(file, "null", H5T_STD_I8LE, null, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT))));
    hdf5_put_attribute(file, "_NotProperties", H5T_STD_I8LE, -1, NULL, 0, NULL);
    H5(H5Sclose(space));
    H5(H5Sclose(null));
    H5(H5Pclose(plist));
    H5(H5Fclose(file));
    hdf5_import_ok(&kit, "x.h5", "/in");
    hdf5_check_member(&kit, "/in/grows", "hdf5",
                      "{\"maxshape\":[null,3],\"must_understand\":false}");
    hdf5_check_member(&kit, "/in/null", "hdf5", "{\"space\":\"null\",\"must_understand\":false}");
    hdf5_check_member(&kit, "/in/null", "shape", "[0]");
    hdf5_export_ok(&kit, "/in", "y.h5");
    file = H5(H5Fopen(exchange_path(&kit, "y.h5"), H5F_ACC_RDONLY, H5P_DEFAULT));
    hid_t set = H5(H5Dopen2(file, "grows", H5P_DEFAULT));
    space = H5(H5Dget_space(set));
    hsize_t seen[2], largest[2];
    ck_assert_int_eq(H5Sget_simple_extent_dims(space, seen, largest), 2);
    ck_assert(largest[0] == H5S_UNLIMITED && largest[1] == 3);
    H5(H5Sclose(space));
    H5(H5Dclose(set));
    set = H5(H5Dopen2(file, "null", H5P_DEFAULT));
    space = H5(H5Dget_space(set));
    ck_assert_int_eq(H5Sget_simple_extent_type(space), H5S_NULL);
    H5(H5Sclose(space));
    H5(H5Dclose(set));
    H5(H5Fclose(file));
    exchange_stop(&kit);
}

/* ---- which files -------------------------------- */

static void with_attribute(exchange_kit *kit, const char *name, const char *attribute, int on_set)
{
    const int32_t value = 0;
    hid_t file = hdf5_new_file(kit, name, 0);
    hid_t set = hdf5_new_dataset(file, "a", H5T_STD_I32LE, 1, &one, H5P_DEFAULT, 0, NULL);
    hdf5_put_attribute(on_set ? set : file, attribute, H5T_STD_I32LE, 0, NULL, H5T_NATIVE_INT32,
                       &value);
    H5(H5Dclose(set));
    H5(H5Fclose(file));
}

/* A file with netCDF's marks is read by netCDF's rules: the marks are not attributes, and notes are
 * NetCDF's. */
TEST(netcdf_is_told_apart)
{
    static const char *const attributes[] = { "_NCProperties", "_Netcdf4Dimid", "title" };
    exchange_kit kit;
    exchange_start(&kit);
    for (int i = 0; i < 3; i++) {
        char name[16], path[32];
        snprintf(name, sizeof(name), "%d.h5", i);
        snprintf(path, sizeof(path), "/in%d%s", i, i == 1 ? "/a" : "");
        with_attribute(&kit, name, attributes[i], i == 1);
        path[4] = 0;
        hdf5_import_ok(&kit, name, path);
        path[4] = i == 1 ? '/' : 0;
        const char *found = hdf5_member(&kit, path, "attributes");
        ck_assert_msg((strstr(found, "_nc_hdf5") != NULL) == (i == 2) &&
                          (strstr(found, attributes[i]) != NULL) == (i == 2),
                      "%s: %s", attributes[i], found);
    }
    exchange_stop(&kit);
}

/* Something else in front: addresses count from behind it, those of texts as well. */
TEST(user_blocks)
{
    const char *text = "behind";
    exchange_kit kit;
    exchange_start(&kit);
    hid_t create = H5(H5Pcreate(H5P_FILE_CREATE)), type = H5(H5Tcopy(H5T_C_S1));
    H5(H5Pset_userblock(create, 2048));
    H5(H5Tset_size(type, H5T_VARIABLE));
    hid_t file = H5(H5Fcreate(exchange_path(&kit, "x.h5"), H5F_ACC_EXCL, create, H5P_DEFAULT));
    hdf5_put(file, "t", type, 1, type, &text);
    hdf5_put_attribute(file, "t", type, 0, NULL, type, &text);
    H5(H5Fclose(file));
    H5(H5Tclose(type));
    H5(H5Pclose(create));
    hdf5_import_ok(&kit, "x.h5", "/in");
    hdf5_check_elements(&kit, "/in/t", "\6\0\0\0behind", 10);
    hdf5_check_attribute(&kit, "/in", "t", "\"behind\"");
    exchange_stop(&kit);
}

/* An array by itself, and a failed export, which leaves nothing. */
TEST(exports)
{
    static const uint64_t shape[] = { 2 };
    exchange_kit kit;
    brc_array_spec spec = BRC_ARRAY_SPEC_INIT;
    brc_array *a;
    exchange_start(&kit);
    spec.ndim = 1;
    spec.shape = shape;
    spec.dtype = "string";
    int rc = brc_array_create(&a, kit.session, "/g/texts", &spec, &kit.err);
    ck_assert_msg(rc == BRC_OK, "%s", kit.err.message);
    hdf5_export_ok(&kit, "/g/texts", "one.h5");
    hdf5_import_ok(&kit, "one.h5", "/one");
    hdf5_check_elements(&kit, "/one/texts", "\0\0\0\0\0\0\0\0", 8);
    ck_assert_int_eq(brc_array_write(a, NULL, "\1\0\0\0a\2\0\0\0a\0", 11, &kit.err), BRC_OK);
    rc = brc_export(kit.session, "/", exchange_path(&kit, "bad.h5"), NULL, &kit.err);
    ck_assert_int_eq(rc, BRC_EUNSUPPORTED);
    ck_assert_str_eq(kit.err.message,
                     "/g/texts: an element has U+0000, which HDF5's strings cannot have");
    ck_assert(!exchange_exists(exchange_path(&kit, "bad.h5")));
    rc = brc_export(kit.session, "/", exchange_path(&kit, "one.h5"), NULL, &kit.err);
    ck_assert_int_eq(rc, BRC_EEXISTS);
    brc_array_free(a);
    exchange_stop(&kit);
}

/* A converter writes under a temporary name, which has no room behind this one: it fails, and
 * the name that was asked for is what is said. */
LOOP(failures_name_what_was_asked_for, 0, 3)
{
    static const char *const endings[] = { "h5", "nc", "cdf" };
    static const char *const formats[] = { "hdf5", "netcdf", "netcdf3" };
    exchange_kit kit;
    brc_xfer_opts opts = BRC_XFER_OPTS_INIT;
    char name[256];
    exchange_start(&kit);
    ck_assert_int_eq(chdir(kit.dir), 0);
    int len = snprintf(name, sizeof(name), "%0245d.%s", 0, endings[_i]);
    opts.format = formats[_i];
    int rc = brc_export(kit.session, "/", name, &opts, &kit.err);
    ck_assert_msg(rc == BRC_EIO, "%d: %s", rc, rc < 0 ? kit.err.message : "exported");
    const char *said = strstr(kit.err.message, name);
    ck_assert_msg(said && said[len] != '.', "%s", kit.err.message);
    ck_assert_msg(!strstr(kit.err.message, ".part"), "%s", kit.err.message);
    ck_assert_int_eq(chdir("/"), 0);
    exchange_stop(&kit);
}
