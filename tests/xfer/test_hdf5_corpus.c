/* Small HDF5 files, one for each kind of type that has no twin in Zarr: imported, read back by
 * element, exported, and the file compared with the first. */
#include <string.h>

#include "../../src/base/buf.h"
#include "../kit/hdf5_kit.h"
#include "../kit/hdf5_same.h"
#include "../kit/suite.h"

TEST_SUITE(hdf5_corpus);

static hid_t text_type(void)
{
    hid_t type = H5(H5Tcopy(H5T_C_S1));
    H5(H5Tset_size(type, H5T_VARIABLE));
    H5(H5Tset_cset(type, H5T_CSET_UTF8));
    return type;
}

static void commit(hid_t file, const char *name, hid_t type)
{
    H5(H5Tcommit2(file, name, type, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT));
}

static hid_t new_group(hid_t file, const char *name)
{
    return H5(H5Gcreate2(file, name, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT));
}

static const int32_t numbers[] = { 1, -2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12 };

static void put_matrix(hid_t file, const char *name)
{
    static const hsize_t shape[] = { 3, 4 };
    H5(H5Dclose(hdf5_new_dataset(file, name, H5T_STD_I32LE, 2, shape, H5P_DEFAULT, H5T_NATIVE_INT32,
                                 numbers)));
}

/* ---- committed data types -------------------------------- */

/* One that nothing has, and one that a dataset and attributes have. */
static void put_committed(hid_t file)
{
    hid_t group = new_group(file, "g"), type = H5(H5Tcopy(H5T_STD_I32LE)), used;
    const int32_t one = 1;
    commit(file, "alone", type);
    used = H5(H5Tenum_create(H5T_STD_I32LE));
    H5(H5Tenum_insert(used, "ONE", &one));
    commit(group, "used", used);
    hdf5_put(file, "a", used, 3, used, numbers);
    hdf5_put_attribute(file, "n", used, 0, NULL, used, numbers);
    hdf5_put_attribute(group, "m", used, 1, (hsize_t[]){ 2 }, used, numbers);
    hdf5_put_attribute(used, "why", H5T_STD_I64LE, 0, NULL, H5T_NATIVE_INT32, &one);
    H5(H5Tclose(type));
    H5(H5Tclose(used));
    H5(H5Gclose(group));
}

/* A text, a compound, and a number of the other byte order, which comes back in ours. */
static void put_committed_kinds(hid_t file)
{
    hid_t text = text_type(), compound = H5(H5Tcreate(H5T_COMPOUND, 12));
    const char *words[] = { "a", "h\xc3\xa9" };
    H5(H5Tinsert(compound, "x", 0, H5T_IEEE_F64LE));
    H5(H5Tinsert(compound, "n", 8, H5T_STD_I32LE));
    commit(file, "text", text);
    commit(file, "compound", compound);
    hdf5_put(file, "words", text, 2, text, words);
    hdf5_put(file, "rows", compound, 1, compound, "\0\0\0\0\0\0\xf8\x3f\7\0\0\0");
    H5(H5Tclose(text));
    H5(H5Tclose(compound));
}

/* ---- references -------------------------------- */

static void put_objects(hid_t file)
{
    hobj_ref_t to[4] = { 0 };
    hid_t group = new_group(file, "g");
    put_matrix(file, "g/m");
    H5(H5Rcreate(&to[0], file, "g", H5R_OBJECT, -1));
    H5(H5Rcreate(&to[1], file, "g/m", H5R_OBJECT, -1));
    H5(H5Rcreate(&to[3], file, "/", H5R_OBJECT, -1));
    hdf5_put(file, "refs", H5T_STD_REF_OBJ, 4, H5T_STD_REF_OBJ, to);
    hdf5_put(group, "refs", H5T_STD_REF_OBJ, 2, H5T_STD_REF_OBJ, to);
    hdf5_put_attribute(file, "one", H5T_STD_REF_OBJ, 0, NULL, H5T_STD_REF_OBJ, &to[1]);
    hdf5_put_attribute(group, "some", H5T_STD_REF_OBJ, 2, (hsize_t[]){ 2, 2 }, H5T_STD_REF_OBJ, to);
    H5(H5Gclose(group));
}

/* A box, steps, several boxes, points, all and nothing. */
static void put_regions(hid_t file)
{
    static const hsize_t start[] = { 1, 0 }, count[] = { 2, 3 }, stride[] = { 1, 2 };
    static const hsize_t corner[] = { 2, 2 }, two[] = { 1, 2 }, points[] = { 2, 3, 0, 1 };
    hdset_reg_ref_t to[7];
    memset(to, 0, sizeof(to));
    put_matrix(file, "m");
    hid_t set = H5(H5Dopen2(file, "m", H5P_DEFAULT)), space = H5(H5Dget_space(set));
    for (int i = 0; i < 6; i++) {
        if (i == 0)
            H5(H5Sselect_hyperslab(space, H5S_SELECT_SET, start, NULL, count, NULL));
        else if (i == 1)
            H5(H5Sselect_hyperslab(space, H5S_SELECT_SET, start, stride, two, NULL));
        else if (i == 2)
            H5(H5Sselect_hyperslab(space, H5S_SELECT_OR, corner, NULL, two, NULL));
        else if (i == 3)
            H5(H5Sselect_elements(space, H5S_SELECT_SET, 2, points));
        else if (i == 4)
            H5(H5Sselect_all(space));
        else
            H5(H5Sselect_none(space));
        H5(H5Rcreate(&to[i], file, "m", H5R_DATASET_REGION, space));
    }
    hdf5_put(file, "r", H5T_STD_REF_DSETREG, 7, H5T_STD_REF_DSETREG, to);
    hdf5_put_attribute(file, "a", H5T_STD_REF_DSETREG, 0, NULL, H5T_STD_REF_DSETREG, to);
    H5(H5Sclose(space));
    H5(H5Dclose(set));
}

/* ---- compounds -------------------------------- */

typedef struct pixel {
    int32_t n, xy[2][3];
    struct {
        double z;
        int16_t list[2];
    } inner;
} pixel;

static void put_field_arrays(hid_t file)
{
    static const hsize_t dims[] = { 2, 3 }, pair = 2;
    static const pixel rows[] = { { 1, { { 1, 2, 3 }, { 4, 5, 6 } }, { 0.5, { 7, 8 } } },
                                  { 2, { { 9, 8, 7 }, { 6, 5, 4 } }, { -1, { 3, 2 } } } };
    const hid_t types[] = { H5(H5Tarray_create2(H5T_STD_I32LE, 2, dims)),
                            H5(H5Tarray_create2(H5T_STD_I16LE, 1, &pair)),
                            H5(H5Tcreate(H5T_COMPOUND, 12)),
                            H5(H5Tcreate(H5T_COMPOUND, 40)),
                            H5(H5Tcreate(H5T_COMPOUND, sizeof(pixel))),
                            H5(H5Tcreate(H5T_COMPOUND, 16)) };
    H5(H5Tinsert(types[2], "z", 0, H5T_IEEE_F64LE));
    H5(H5Tinsert(types[2], "list", 8, types[1]));
    H5(H5Tinsert(types[3], "n", 0, H5T_STD_I32LE));
    H5(H5Tinsert(types[3], "xy", 4, types[0]));
    H5(H5Tinsert(types[3], "inner", 28, types[2]));
    H5(H5Tinsert(types[5], "z", 0, H5T_NATIVE_DOUBLE));
    H5(H5Tinsert(types[5], "list", 8, types[1]));
    H5(H5Tinsert(types[4], "n", HOFFSET(pixel, n), H5T_NATIVE_INT32));
    H5(H5Tinsert(types[4], "xy", HOFFSET(pixel, xy), types[0]));
    H5(H5Tinsert(types[4], "inner", HOFFSET(pixel, inner), types[5]));
    hdf5_put(file, "p", types[3], 2, types[4], rows);
    hdf5_put_attribute(file, "a", types[3], 0, NULL, types[4], rows);
    for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++)
        H5(H5Tclose(types[i]));
}

/* A compound with a text, a reference and a list is an object in an attribute. */
static void put_rich_attribute(hid_t file)
{
    struct {
        char *text;
        hobj_ref_t to;
        hvl_t list;
    } rows[2] = { { (char *)"h\xc3\xa9", 0, { 2, (void *)(uintptr_t)numbers } },
                  { NULL, 0, { 0, NULL } } };
    hid_t text = text_type(), list = H5(H5Tvlen_create(H5T_STD_I32LE));
    hid_t type = H5(H5Tcreate(H5T_COMPOUND, sizeof(rows[0])));
    put_matrix(file, "m");
    H5(H5Rcreate(&rows[0].to, file, "m", H5R_OBJECT, -1));
    H5(H5Tinsert(type, "text", 0, text));
    H5(H5Tinsert(type, "to", sizeof(char *), H5T_STD_REF_OBJ));
    H5(H5Tinsert(type, "list", sizeof(char *) + sizeof(hobj_ref_t), list));
    hdf5_put_attribute(file, "rows", type, 1, (hsize_t[]){ 2 }, type, rows);
    H5(H5Tclose(type));
    H5(H5Tclose(list));
    H5(H5Tclose(text));
}

static void put_list_attributes(hid_t file)
{
    hvl_t rows[] = { { 3, (void *)(uintptr_t)numbers },
                     { 0, NULL },
                     { 1, (void *)(uintptr_t)(numbers + 4) } };
    hvl_t nested = { 2, rows };
    char *words[] = { (char *)"a", (char *)"bc" };
    hvl_t texts = { 2, words };
    hid_t list = H5(H5Tvlen_create(H5T_STD_I32LE)), lists = H5(H5Tvlen_create(list));
    hid_t text = text_type(), of_texts = H5(H5Tvlen_create(text));
    hid_t array = H5(H5Tarray_create2(H5T_STD_I32LE, 1, (hsize_t[]){ 4 }));
    hdf5_put_attribute(file, "rows", list, 1, (hsize_t[]){ 3 }, list, rows);
    hdf5_put_attribute(file, "one", list, 0, NULL, list, rows);
    hdf5_put_attribute(file, "nested", lists, 0, NULL, lists, &nested);
    hdf5_put_attribute(file, "texts", of_texts, 0, NULL, of_texts, &texts);
    hdf5_put_attribute(file, "array", array, 1, (hsize_t[]){ 2 }, array, numbers);
    H5(H5Tclose(array));
    H5(H5Tclose(of_texts));
    H5(H5Tclose(text));
    H5(H5Tclose(lists));
    H5(H5Tclose(list));
}

/* ---- the corpus -------------------------------- */

static const struct {
    void (*put)(hid_t file);
    const char
        *checks[12]; /* a path and its elements, or a path, "@" and an attribute, and its value */
} corpus[] = {
    { put_committed, { "/a", "[1,-2,3]", "/@n", "1", "/g@m", "[1,-2]" } },
    { put_committed_kinds,
      { "/words", "[\"a\",\"h\xc3\xa9\"]", "/rows", "[{\"x\":1.5,\"n\":7}]" } },
    { put_objects,
      { "/refs", "[\"/g\",\"/g/m\",\"\",\"/\"]", "/g/refs", "[\"/g\",\"/g/m\"]", "/@one",
        "\"/g/m\"", "/g@some", "[[\"/g\",\"/g/m\"],[\"\",\"/\"]]" } },
    { put_regions,
      { "/r",
        "[\"/m#[1:3, 0:3]\",\"/m#[1:2, 0:3:2]\",\"/m#[1:2, 0:1][1:2, 2:3][2:3, 2:4]\","
        "\"/m#[2, 3][0, 1]\",\"/m#[...]\",\"/m#[]\",\"\"]",
        "/@a", "\"/m#[1:3, 0:3]\"" } },
    { put_field_arrays,
      { "/p", "[{\"n\":1,\"xy\":{\"0\":{\"0\":1,\"1\":2,\"2\":3},\"1\":{\"0\":4,\"1\":5,\"2\":6}},"
              "\"inner\":{\"z\":0.5,\"list\":{\"0\":7,\"1\":8}}},"
              "{\"n\":2,\"xy\":{\"0\":{\"0\":9,\"1\":8,\"2\":7},\"1\":{\"0\":6,\"1\":5,\"2\":4}},"
              "\"inner\":{\"z\":-1.0,\"list\":{\"0\":3,\"1\":2}}}]" } },
    { put_rich_attribute,
      { "/@rows", "[{\"text\":\"h\xc3\xa9\",\"to\":\"/"
                  "m\",\"list\":[1,-2]},{\"text\":\"\",\"to\":\"\",\"list\":"
                  "[]}]" } },
    { put_list_attributes,
      { "/@rows", "[[1,-2,3],[],[5]]", "/@one", "[1,-2,3]", "/@nested", "[[1,-2,3],[]]", "/@texts",
        "[\"a\",\"bc\"]", "/@array", "[[1,-2,3,4],[5,6,7,8]]" } },
};
#define N_CORPUS ((int)(sizeof(corpus) / sizeof(corpus[0])))

CASE("types", .timeout = 60);

LOOP(in_and_out_again, 0, N_CORPUS)
{
    hdf5_in_and_out_again(corpus[_i].put, corpus[_i].checks);
}

/* ---- what no longer leads anywhere -------------------------------- */

static void write_text(exchange_kit *kit, const char *path, const char *slice, const char *text)
{
    brc_sel sel = BRC_SEL_INIT;
    brc_buf element = BRC_BUF_INIT;
    brc_array *a;
    uint8_t count[4];
    brc_put_u32le(count, (uint32_t)strlen(text));
    ck_assert_int_eq(brc_buf_append(&element, count, 4, NULL), BRC_OK);
    ck_assert_int_eq(brc_buf_text(&element, text, NULL), BRC_OK);
    ck_assert_int_eq(brc_array_open(&a, kit->session, path, &kit->err), BRC_OK);
    ck_assert_int_eq(brc_sel_parse(&sel, a, slice, &kit->err), BRC_OK);
    int rc = brc_array_write(a, &sel, element.data, element.len, &kit->err);
    ck_assert_msg(rc == BRC_OK, "%s", kit->err.message);
    brc_array_free(a);
    brc_buf_dispose(&element);
}

static void export_says(exchange_kit *kit, const char *path, const char *says)
{
    int rc = brc_export(kit->session, path, exchange_path(kit, "n.h5"), NULL, &kit->err);
    ck_assert_int_eq(rc, BRC_EUNSUPPORTED);
    ck_assert_msg(strstr(kit->err.message, says), "\"%s\" is not in \"%s\"", says,
                  kit->err.message);
    ck_assert(!exchange_exists(exchange_path(kit, "n.h5")));
}

/* A reference in a dataset to what an export does not have is an error and no null; in an
 * attribute it is text. One that was changed is what it was changed to. */
TEST(references_that_lead_out_of_an_export)
{
    exchange_kit kit;
    exchange_start(&kit);
    hid_t file = hdf5_new_file(&kit, "x.h5", 0);
    put_objects(file);
    H5(H5Fclose(file));
    hdf5_import_ok(&kit, "x.h5", "/in");
    export_says(&kit, "/in/refs", "/in/refs: its element \"/g\" refers to an object outside");
    hdf5_export_ok(&kit, "/in/g", "g.h5"); /* all that it refers to but the root is in it */
    file = H5(H5Fopen(exchange_path(&kit, "g.h5"), H5F_ACC_RDONLY, H5P_DEFAULT));
    hid_t attribute = H5(H5Aopen(file, "some", H5P_DEFAULT)), type = H5(H5Aget_type(attribute));
    ck_assert_int_eq(H5Tget_class(type), H5T_STRING);
    H5(H5Tclose(type));
    H5(H5Aclose(attribute));
    hid_t set = H5(H5Dopen2(file, "refs", H5P_DEFAULT));
    hobj_ref_t to[2];
    char name[32];
    H5(H5Dread(set, H5T_STD_REF_OBJ, H5S_ALL, H5S_ALL, H5P_DEFAULT, to));
    hid_t object = H5(H5Rdereference2(file, H5P_DEFAULT, H5R_OBJECT, &to[1]));
    H5(H5Iget_name(object, name, sizeof(name)));
    ck_assert_str_eq(name, "/m");
    H5(H5Oclose(object));
    H5(H5Dclose(set));
    H5(H5Fclose(file));
    write_text(&kit, "/in/refs", "[2:3]", "/nothing");
    export_says(&kit, "/in", "/in/refs: its element \"/nothing\" refers to an object outside this");
    write_text(&kit, "/in/refs", "[2:3]", "/refs");
    hdf5_export_ok(&kit, "/in", "y.h5");
    hdf5_import_ok(&kit, "y.h5", "/again");
    hdf5_check_values(&kit, "/again/refs", "[\"/g\",\"/g/m\",\"/refs\",\"/\"]");
    exchange_stop(&kit);
}

/* Where a region is not one of its dataset's any more. */
LOOP(regions_that_do_not_fit, 0, 8)
{
    static const char *const bad[] = { "/m#[1:9, 0:3]", "/m#[1:3]",
                                       "/m#[1:3, 0:3",  "/m",
                                       "/m#[3:1, 0:3]", "/m#[1:3, 0:3:0]",
                                       "/m#[1, 0:3]",   "/#[0, 0]" };
    exchange_kit kit;
    exchange_start(&kit);
    hid_t file = hdf5_new_file(&kit, "x.h5", 0);
    put_regions(file);
    H5(H5Fclose(file));
    hdf5_import_ok(&kit, "x.h5", "/in");
    write_text(&kit, "/in/r", "[6:7]", bad[_i]);
    export_says(&kit, "/in", "refers to an object outside this export");
    exchange_stop(&kit);
}

/* An object that was deleted has no path: its reference is refused by name. */
TEST(dangling_references)
{
    exchange_kit kit;
    exchange_start(&kit);
    hid_t file = hdf5_new_file(&kit, "x.h5", 0);
    hobj_ref_t to;
    put_matrix(file, "m");
    H5(H5Rcreate(&to, file, "m", H5R_OBJECT, -1));
    hdf5_put(file, "d", H5T_STD_REF_OBJ, 1, H5T_STD_REF_OBJ, &to);
    H5(H5Ldelete(file, "m", H5P_DEFAULT));
    H5(H5Fclose(file));
    hdf5_import_says(&kit, "x.h5", BRC_EUNSUPPORTED,
                     "x.h5: /d: one of its references leads to an object");
    exchange_stop(&kit);
}

/* A committed type whose name a node has by now, or that is another type, is not used. */
TEST(committed_types_that_changed)
{
    exchange_kit kit;
    brc_array *a;
    brc_array_spec spec = BRC_ARRAY_SPEC_INIT;
    exchange_start(&kit);
    hid_t file = hdf5_new_file(&kit, "x.h5", 0);
    put_committed(file);
    H5(H5Fclose(file));
    hdf5_import_ok(&kit, "x.h5", "/in");
    spec.dtype = "int8";
    ck_assert_int_eq(brc_array_create(&a, kit.session, "/in/g/used", &spec, &kit.err), BRC_OK);
    brc_array_free(a);
    hdf5_export_ok(&kit, "/in", "y.h5");
    file = H5(H5Fopen(exchange_path(&kit, "y.h5"), H5F_ACC_RDONLY, H5P_DEFAULT));
    hid_t set = H5(H5Dopen2(file, "a", H5P_DEFAULT)), type = H5(H5Dget_type(set));
    ck_assert_int_eq(H5Tcommitted(type), 0);
    ck_assert_int_eq(H5Tget_class(type), H5T_ENUM);
    H5(H5Tclose(type));
    H5(H5Dclose(set));
    set = H5(H5Dopen2(file, "g/used", H5P_DEFAULT));
    H5(H5Dclose(set));
    H5(H5Fclose(file));
    exchange_stop(&kit);
}
