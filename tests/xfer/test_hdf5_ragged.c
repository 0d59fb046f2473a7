/* Datasets of lists of variable length, and of compounds with texts, lists or references: as groups
 * of arrays, and back. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../../src/base/buf.h"
#include "../kit/hdf5_ragged_kit.h"
#include "../kit/hdf5_same.h"
#include "../kit/suite.h"

TEST_SUITE(hdf5_ragged);

static const struct {
    void (*put)(hid_t file);
    const char *checks[16];
} ragged[] = {
    { hdf5_put_lists,
      { "/l/offsets", "[0,3,3,4,6]", "/l/values", "[1,-2,3,5,6,7]", "/l@units", "7", "/l@more",
        "[[1,-2,3],[]]" } },
    { hdf5_put_scalar_list, { "/l/offsets", "[0,3]", "/l/values", "[1,-2,3]" } },
    { hdf5_put_matrix_of_lists,
      { "/m/offsets", "[0,3,3,4,6]", "/m/values", "[1.0,-2.0,3.0,5.0,6.0,7.0]" } },
    { hdf5_put_empty_lists,
      { "/none/offsets", "[0]", "/none/values", "[]", "/empty/offsets", "[0,0,0,0]",
        "/empty/values", "[]", "/fresh/offsets", "[0,0,0,0]", "/null/offsets", "[0]" } },
    { hdf5_put_growing_lists, { "/l/offsets", "[0,3,3,4,6]", "/l/values", "[1,-2,3,5,6,7]" } },
    { hdf5_put_many_lists, { "/d59/values", "[1,-2,3,5,6,7]", "/d58/n", "[1,2,3,4]" } },
    { hdf5_put_nested_lists,
      { "/n/offsets", "[0,2,2,4]", "/n/values/offsets", "[0,3,3,4,6]", "/n/values/values",
        "[1,-2,3,5,6,7]" } },
    { hdf5_put_lists_of_texts,
      { "/t/offsets", "[0,1,1,3]", "/t/values", "[\"a\",\"\",\"h\xc3\xa9\"]" } },
    { hdf5_put_lists_of_compounds,
      { "/p/offsets", "[0,2,3]", "/p/values",
        "[{\"n\":1,\"x\":0.5},{\"n\":2,\"x\":1.5},{\"n\":3,\"x\":-2.0}]" } },
    { hdf5_put_arrays_and_lists,
      { "/a/offsets", "[0,3,3,4,6]", "/a/values", "[1,-2,3,5,6,7]", "/p/offsets", "[0,2,3]",
        "/p/values", "[1,-2,3,4,7,8]" } },
    { hdf5_put_lists_of_others,
      { "/flags/values", "[1,0,1]", "/refs/offsets", "[0,2]", "/refs/values",
        "[\"\",\"/flags\"]" } },
    { hdf5_put_people,
      { "/p/n", "[1,2,3,4]", "/m/name", "[\"h\xc3\xa9\",\"\",\"xyz\",\"\"]", "/m/list/offsets",
        "[0,2,2,5,6]", "/m/list/values", "[1,-2,6,7,8,-2]", "/p/x",
        "[0.5,1.0,2.0,3.0,4.0,5.0,6.0,7.0]", "/s/n", "[1]", "/s/list/offsets", "[0,2]" } },
    { hdf5_put_lists_of_people,
      { "/l/offsets", "[0,3,3,4]", "/l/values/name", "[\"h\xc3\xa9\",\"\",\"xyz\",\"\"]",
        "/l/values/list/offsets", "[0,2,2,5,6]", "/l/values/list/values", "[1,-2,6,7,8,-2]",
        "/l/values/n", "[1,2,3,4]" } },
    { hdf5_put_committed_rows,
      { "/g/r/to", "[\"\",\"/g\"]", "/g/r/%7Aarr.json/a%2Fb", "[\"a\",\"bc\"]",
        "/g/r/%7Aarr.json/%5F_n", "[5,6]" } },
    { hdf5_put_scaled_lists, { "/l/values", "[1,-2,3,5,6,7]" } },
    { hdf5_put_filled_rows,
      { "/r/n", "[7,7,1,2,7,7]", "/r/text", "[\"none\",\"none\",\"a\",\"b\",\"none\",\"none\"]" } },
};
#define N_RAGGED ((int)(sizeof(ragged) / sizeof(ragged[0])))

CASE("types", .timeout = 60);

LOOP(ragged_in_and_out_again, 0, N_RAGGED)
{
    hdf5_in_and_out_again(ragged[_i].put, ragged[_i].checks);
}

/* ---- edits -------------------------------- */

static void import_of(exchange_kit *kit, void (*put)(hid_t file))
{
    exchange_start(kit);
    hid_t file = hdf5_new_file(kit, "x.h5", 0);
    put(file);
    H5(H5Fclose(file));
    hdf5_import_ok(kit, "x.h5", "/in");
}

static void write_items(exchange_kit *kit, const char *path, const char *slice, const void *data,
                        size_t len)
{
    brc_sel sel = BRC_SEL_INIT;
    brc_array *a;
    ck_assert_int_eq(brc_array_open(&a, kit->session, path, &kit->err), BRC_OK);
    ck_assert_int_eq(brc_sel_parse(&sel, a, slice, &kit->err), BRC_OK);
    int rc = brc_array_write(a, &sel, data, len, &kit->err);
    ck_assert_msg(rc == BRC_OK, "%s", kit->err.message);
    brc_array_free(a);
}

static void write_offset(exchange_kit *kit, const char *path, const char *slice, int64_t value)
{
    write_items(kit, path, slice, &value, sizeof(value));
}

static void resize_to(exchange_kit *kit, const char *path, uint64_t n)
{
    brc_array *a;
    ck_assert_int_eq(brc_array_open(&a, kit->session, path, &kit->err), BRC_OK);
    int rc = brc_array_resize(a, &n, &kit->err);
    ck_assert_msg(rc == BRC_OK, "%s", kit->err.message);
    brc_array_free(a);
}

static void put_line(exchange_kit *kit, const char *path, const char *dtype, uint64_t n)
{
    brc_array_free(scenario_array(kit, path, dtype, 1, &n, NULL, NULL, NULL));
}

static void set_note(exchange_kit *kit, const char *path, const char *dataset)
{
    char note[512];
    snprintf(note, sizeof(note), "{\"dataset\":%s}", dataset);
    ck_assert_int_eq(brc_attrs_set(kit->session, path, "_nc_hdf5", note, &kit->err), BRC_OK);
}

static void fall(exchange_kit *kit)
{
    write_offset(kit, "/in/p/list/offsets", "[2:3]", 1);
}
static void pass_the_end(exchange_kit *kit)
{
    write_offset(kit, "/in/p/list/offsets", "[2:3]", INT64_MAX);
}
static void begin_late(exchange_kit *kit)
{
    write_offset(kit, "/in/p/list/offsets", "[0:1]", 1);
}
static void begin_below(exchange_kit *kit)
{
    write_offset(kit, "/in/p/list/offsets", "[0:1]", -1);
}
static void end_early(exchange_kit *kit)
{
    write_offset(kit, "/in/p/list/offsets", "[4:5]", 5);
}
static void cut_values(exchange_kit *kit)
{
    resize_to(kit, "/in/p/list/values", 5);
}
static void cut_offsets(exchange_kit *kit)
{
    resize_to(kit, "/in/p/list/offsets", 4);
}
static void no_offsets(exchange_kit *kit)
{
    resize_to(kit, "/in/p/list/offsets", 0);
}
static void cut_field(exchange_kit *kit)
{
    resize_to(kit, "/in/p/name", 3);
}
static void lose_field(exchange_kit *kit)
{
    ck_assert_int_eq(brc_node_remove(kit->session, "/in/p/name", &kit->err), BRC_OK);
}
static void lose_list(exchange_kit *kit)
{
    ck_assert_int_eq(brc_node_remove(kit->session, "/in/p/list", &kit->err), BRC_OK);
}
static void change_type(exchange_kit *kit)
{
    ck_assert_int_eq(brc_node_remove(kit->session, "/in/p/n", &kit->err), BRC_OK);
    put_line(kit, "/in/p/n", "int64", 4);
}
static void change_offsets(exchange_kit *kit)
{
    ck_assert_int_eq(brc_node_remove(kit->session, "/in/p/list/offsets", &kit->err), BRC_OK);
    put_line(kit, "/in/p/list/offsets", "float64", 5);
}
static void add_node(exchange_kit *kit)
{
    put_line(kit, "/in/p/list/more", "int8", 1);
}
static void add_attribute(exchange_kit *kit)
{
    ck_assert_int_eq(brc_attrs_set(kit->session, "/in/p/n", "units", "\"m\"", &kit->err), BRC_OK);
}
static void lie_about_shape(exchange_kit *kit)
{
    set_note(kit, "/in/p", "{\"type\":{\"list\":\"int32\"},\"shape\":[-1]}");
}
static void lie_about_type(exchange_kit *kit)
{
    set_note(kit, "/in/p", "{\"type\":{\"list\":\"int33\"},\"shape\":[4]}");
}
static void lie_about_chunks(exchange_kit *kit)
{
    set_note(kit, "/in/p", "{\"type\":{\"list\":\"int32\"},\"shape\":[4],\"chunk\":[0]}");
}
static void make_it_plain(exchange_kit *kit)
{
    set_note(kit, "/in/p", "{\"type\":\"int32\",\"shape\":[4]}");
}
static void make_it_odd(exchange_kit *kit)
{
    set_note(kit, "/in/p", "7");
}

static const struct {
    void (*edit)(exchange_kit *kit);
    const char *says;
} edits[] = {
    { fall, "/in/p stands for one dataset, but element 2 of /in/p/list/offsets is 1: " },
    { pass_the_end, "element 2 of /in/p/list/offsets is 9223372036854775807: " },
    { begin_late, "element 0 of /in/p/list/offsets is 1: " },
    { begin_below, "element 0 of /in/p/list/offsets is -1: " },
    { end_early, "/in/p/list/offsets ends with 5, and there are 6 values" },
    { cut_values, "/in/p/list/offsets ends with 6, and there are 5 values" },
    { cut_offsets, "/in/p/list/offsets has 3 lists, and 4 are needed" },
    { no_offsets, "/in/p/list/offsets is not an int64 array with one element" },
    { cut_field, "/in/p/name has 3 elements along axis 0, and /in/p/n 4" },
    { lose_field, "it has no array p/name" },
    { lose_list, "it has no group p/list" },
    { change_type, "the data type of /in/p/n is no longer int32" },
    { change_offsets, "/in/p/list/offsets is not an int64 array" },
    { add_node, "/in/p/list/more has no place in the dataset" },
    { add_attribute, "/in/p/n has attributes, which the dataset cannot have" },
    { lie_about_shape, "\"shape\" of its attribute _nc_hdf5 was not made by an import" },
    { lie_about_type, "\"type\" of its attribute _nc_hdf5 was not made by an import" },
    { lie_about_chunks, "\"chunk\" of its attribute _nc_hdf5 was not made by an import" },
    { make_it_plain, "\"type\" of its attribute _nc_hdf5 was not made by an import" },
    { make_it_odd, "\"shape\" of its attribute _nc_hdf5 was not made by an import" },
};
#define N_EDITS ((int)(sizeof(edits) / sizeof(edits[0])))

/* Arrays that no longer fit each other are refused by name; without the note they are a group. */
LOOP(ragged_edits_that_do_not_fit, 0, N_EDITS)
{
    exchange_kit kit;
    import_of(&kit, hdf5_put_people);
    edits[_i].edit(&kit);
    const char *to = exchange_path(&kit, "y.h5");
    ck_assert_int_eq(brc_export(kit.session, "/in", to, NULL, &kit.err), BRC_EUNSUPPORTED);
    ck_assert_msg(strstr(kit.err.message, edits[_i].says) && strstr(kit.err.message, "_nc_hdf5") &&
                      strstr(kit.err.message, "remove"),
                  "\"%s\" is not in \"%s\"", edits[_i].says, kit.err.message);
    ck_assert(!exchange_exists(to));
    ck_assert_int_eq(brc_attrs_set(kit.session, "/in/p", "_nc_hdf5", NULL, &kit.err), BRC_OK);
    hdf5_export_ok(&kit, "/in", "z.h5");
    hid_t file = H5(H5Fopen(exchange_path(&kit, "z.h5"), H5F_ACC_RDONLY, H5P_DEFAULT));
    H5(H5Gclose(H5(H5Gopen2(file, "p", H5P_DEFAULT))));
    H5(H5Fclose(file));
    exchange_stop(&kit);
}

/* A list more, and other elements. */
TEST(ragged_edits_that_fit)
{
    static const int32_t more[] = { 100, 101 };
    exchange_kit kit;
    import_of(&kit, hdf5_put_growing_lists);
    resize_to(&kit, "/in/l/values", 8);
    resize_to(&kit, "/in/l/offsets", 6);
    write_items(&kit, "/in/l/values", "[6:8]", more, sizeof(more));
    write_offset(&kit, "/in/l/offsets", "[5:6]", 8);
    write_offset(&kit, "/in/l/offsets", "[1:2]", 1);
    hdf5_export_ok(&kit, "/in/l", "y.h5"); /* by itself, under its name */
    hid_t file = H5(H5Fopen(exchange_path(&kit, "y.h5"), H5F_ACC_RDONLY, H5P_DEFAULT));
    hid_t set = H5(H5Dopen2(file, "l", H5P_DEFAULT)), space = H5(H5Dget_space(set));
    hid_t list = hdf5_int_lists();
    hsize_t n, most;
    hvl_t rows[5];
    H5(H5Sget_simple_extent_dims(space, &n, &most));
    ck_assert_uint_eq(n, 5);
    ck_assert_uint_eq(most, H5S_UNLIMITED);
    H5(H5Dread(set, list, H5S_ALL, H5S_ALL, H5P_DEFAULT, rows));
    ck_assert_uint_eq(rows[0].len, 1);
    ck_assert_uint_eq(rows[1].len, 2);
    ck_assert_int_eq(((int32_t *)rows[1].p)[0], -2);
    ck_assert_uint_eq(rows[4].len, 2);
    ck_assert_mem_eq(rows[4].p, more, sizeof(more));
    H5(H5Dvlen_reclaim(list, space, H5P_DEFAULT, rows));
    H5(H5Tclose(list));
    H5(H5Sclose(space));
    H5(H5Dclose(set));
    H5(H5Fclose(file));
    exchange_stop(&kit);
}

/* ---- much of it -------------------------------- */

#define LONG_LISTS 72
#define LONG_ITEMS ((size_t)1 << 18)

/* More than what is read and written at once, in one run of elements and in one list. */
TEST(long_lists)
{
    exchange_kit kit;
    hvl_t rows[LONG_LISTS];
    int32_t *items = calloc(LONG_ITEMS, sizeof(*items));
    hid_t list = hdf5_int_lists();
    ck_assert_ptr_nonnull(items);
    for (size_t i = 0; i < LONG_ITEMS; i += 1000)
        items[i] = (int32_t)i;
    for (int i = 0; i < LONG_LISTS; i++)
        rows[i] = (hvl_t){ LONG_ITEMS - (size_t)i, items };
    exchange_start(&kit);
    hid_t file = hdf5_new_file(&kit, "x.h5", 0);
    hdf5_put(file, "l", list, LONG_LISTS, list, rows);
    H5(H5Fclose(file));
    hdf5_import_ok(&kit, "x.h5", "/in");
    hdf5_export_ok(&kit, "/in", "y.h5");
    hdf5_same_files(exchange_path(&kit, "x.h5"), exchange_path(&kit, "y.h5"));
    H5(H5Tclose(list));
    free(items);
    exchange_stop(&kit);
}

#define MANY_ROWS 70000

/* Several runs, in chunks of another shape than the runs. */
TEST(many_rows)
{
    static const hsize_t shape[] = { 10, 7, MANY_ROWS / 70 }, chunk[] = { 3, 2, 300 };
    static char *const words[] = { (char *)"", (char *)"a", (char *)"bcd", (char *)"h\xc3\xa9" };
    exchange_kit kit;
    hid_t type = hdf5_person_type(), plist = hdf5_chunked(3, chunk);
    hdf5_person *rows = calloc(MANY_ROWS, sizeof(*rows));
    ck_assert_ptr_nonnull(rows);
    for (int i = 0; i < MANY_ROWS; i++) {
        rows[i] = hdf5_people[i % 3];
        rows[i].n = i;
        rows[i].name = words[i * 7 % 4];
        rows[i].list = (hvl_t)HDF5_NUMBERS(i % 5, (size_t)(i * 3 % 7));
    }
    exchange_start(&kit);
    hid_t file = hdf5_new_file(&kit, "x.h5", 0);
    H5(H5Dclose(hdf5_new_dataset(file, "r", type, 3, shape, plist, type, rows)));
    H5(H5Fclose(file));
    hdf5_import_ok(&kit, "x.h5", "/in");
    hdf5_export_ok(&kit, "/in", "y.h5");
    hdf5_same_files(exchange_path(&kit, "x.h5"), exchange_path(&kit, "y.h5"));
    H5(H5Pclose(plist));
    H5(H5Tclose(type));
    free(rows);
    exchange_stop(&kit);
}

/* ---- hostile files -------------------------------- */

/* Where the only list's element begins in the file: its length, the heap's place, an index. */
static size_t find_list(const brc_buf *file)
{
    uint64_t heap = 0;
    for (size_t i = 0; i + 4 <= file->len; i++)
        if (memcmp(file->data + i, "GCOL", 4) == 0)
            heap = i;
    for (size_t i = 0; i + 16 <= file->len && heap > 0; i++)
        if (memcmp(file->data + i, "\3\0\0\0", 4) == 0 &&
            memcmp(file->data + i + 4, &heap, sizeof(heap)) == 0)
            return i;
    ck_abort_msg("the list is not found");
    return 0;
}

static const struct {
    size_t at, len;
    const char *bytes;
} hostile[] = {
    { 0, 4, "\xff\xff\xff\xff" }, /* 16 GiB of items           */
    { 0, 4, "\xff\xff\xff\x3f" },
    { 4, 8, "\xff\xff\xff\xff\xff\xff\xff\x0f" }, /* a heap behind the file    */
    { 4, 8, "\1\0\0\0\0\0\0\0" },                 /* no heap                   */
};
#define N_HOSTILE ((int)(sizeof(hostile) / sizeof(hostile[0])))

LOOP(hostile_lists, 0, N_HOSTILE)
{
    exchange_kit kit;
    int clean = 0;
    exchange_start(&kit);
    hid_t file = hdf5_new_file(&kit, "x.h5", 0), list = hdf5_int_lists();
    hdf5_put(file, "l", list, 1, list, hdf5_lists);
    H5(H5Tclose(list));
    H5(H5Fclose(file));
    brc_buf bytes = exchange_read(exchange_path(&kit, "x.h5"));
    memcpy(bytes.data + find_list(&bytes) + hostile[_i].at, hostile[_i].bytes, hostile[_i].len);
    exchange_file(&kit, "bad.h5", bytes.data, bytes.len);
    brc_buf_dispose(&bytes);
    int rc = brc_import(kit.session, exchange_path(&kit, "bad.h5"), "/bad", NULL, &kit.err);
    ck_assert_int_lt(rc, 0);
    ck_assert_msg(strstr(kit.err.message, "bad.h5"), "%s", kit.err.message);
    ck_assert_int_eq(brc_session_clean(&clean, kit.session, NULL), BRC_OK);
    ck_assert_int_eq(clean, 1);
    exchange_stop(&kit);
}

/* ---- places in the heap that are not there -------------------------------- */

static void put_packed_lists(hid_t file)
{
    static const hsize_t shape = 5, chunk = 2;
    static const hvl_t lists[] = { HDF5_NUMBERS(0, 3), HDF5_NUMBERS(0, 0), HDF5_NUMBERS(3, 1),
                                   HDF5_NUMBERS(4, 2), HDF5_NUMBERS(1, 4) };
    hid_t list = hdf5_int_lists(), plist = hdf5_chunked(1, &chunk);
    H5(H5Pset_shuffle(plist));
    H5(H5Pset_deflate(plist, 6));
    H5(H5Dclose(hdf5_new_dataset(file, "l", list, 1, &shape, plist, list, lists)));
    H5(H5Pclose(plist));
    H5(H5Tclose(list));
}

static void put_texts(hid_t file)
{
    static const hsize_t shape[] = { 2, 3 }, chunk[] = { 2, 2 };
    const char *texts[] = { "a", "bb", "", "dddd", "e", "ff" };
    hid_t text = H5(H5Tcopy(H5T_C_S1)), plist = hdf5_chunked(2, chunk);
    H5(H5Tset_size(text, H5T_VARIABLE));
    H5(H5Dclose(hdf5_new_dataset(file, "t", text, 2, shape, plist, text, texts)));
    H5(H5Pclose(plist));
    H5(H5Tclose(text));
}

static void (*const heaped[])(hid_t file) = {
    hdf5_put_scalar_list, put_packed_lists, put_texts, hdf5_put_nested_lists,
    hdf5_put_matrix_of_lists, hdf5_put_people, hdf5_put_lists_of_people,
};
static const int least_heaped[] = { 1, 4, 5, 3, 3, 5, 6 }; /* objects of their elements */
#define N_HEAPED ((int)(sizeof(heaped) / sizeof(heaped[0])))

/* The n-th object of the file's first collection; 0: there are no more. */
static size_t find_heap_object(const brc_buf *bytes, int n)
{
    const uint8_t *found = memmem(bytes->data, bytes->len, "GCOL\1", 5);
    ck_assert_ptr_nonnull(found);
    size_t at = (size_t)(found - bytes->data) + 16;
    for (; bytes->data[at] != 0 && n > 0; n--)
        at += 16 + ((size_t)brc_get_u32le(bytes->data + at + 8) + 7) / 8 * 8;
    return bytes->data[at] != 0 ? at : 0;
}

/* Each object in turn gets another number, or is a byte shorter, or longer. */
LOOP(places_in_a_heap_that_are_not_there, 0, N_HEAPED)
{
    static const struct {
        size_t at;
        uint8_t adds;
    } damage[] = { { 0, 0x70 }, { 8, 0xff }, { 8, 1 } };
    exchange_kit kit;
    int refused = 0;
    exchange_start(&kit);
    hid_t file = hdf5_new_file(&kit, "x.h5", 0);
    heaped[_i](file);
    H5(H5Fclose(file));
    hdf5_import_ok(&kit, "x.h5", "/good");
    for (size_t how = 0; how < sizeof(damage) / sizeof(damage[0]); how++)
        for (int n = 0;; n++) {
            brc_buf bytes = exchange_read(exchange_path(&kit, "x.h5"));
            const size_t at = find_heap_object(&bytes, n);
            if (at > 0) {
                bytes.data[at + damage[how].at] += damage[how].adds;
                exchange_file(&kit, "bad.h5", bytes.data, bytes.len);
            }
            brc_buf_dispose(&bytes);
            if (at == 0)
                break;
            int rc = brc_import(kit.session, exchange_path(&kit, "bad.h5"), "/bad", NULL, &kit.err);
            ck_assert_int_eq(unlink(exchange_path(&kit, "bad.h5")), 0);
            if (rc == BRC_OK) { /* what the library keeps there for itself, behind the elements */
                ck_assert_int_eq(brc_node_remove(kit.session, "/bad", &kit.err), BRC_OK);
                break;
            }
            ck_assert_msg(rc == BRC_EINVAL && strstr(kit.err.message, "refers to a place"),
                          "damage %zu of object %d: %d, %s", how, n, rc, kit.err.message);
            refused++;
        }
    ck_assert_int_ge(refused, 3 * least_heaped[_i]);
    exchange_stop(&kit);
}

/* A shape of 2^40 with nothing in it has as many offsets. */
LOOP(lists_that_are_not_there, 0, 2)
{
    static const hsize_t shape = (hsize_t)1 << 40, chunk = 1024;
    exchange_kit kit;
    exchange_start(&kit);
    hid_t file = hdf5_new_file(&kit, "x.h5", 0), list = hdf5_int_lists(),
          plist = hdf5_chunked(1, &chunk);
    H5(H5Dclose(
        hdf5_new_dataset(file, "l", list, 1, &shape, _i ? plist : H5P_DEFAULT, list, NULL)));
    H5(H5Pclose(plist));
    H5(H5Tclose(list));
    H5(H5Fclose(file));
    hdf5_import_says(&kit, "x.h5", BRC_EUNSUPPORTED,
                     "x.h5: /l has 1099511627776 lists or texts, and few of them are stored");
    exchange_stop(&kit);
}
