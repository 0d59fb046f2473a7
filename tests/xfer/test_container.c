/* What the drivers of other formats share: boxes of an array, attributes as JSON and back. */
#include <check.h>
#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../../src/base/buf.h"
#include "../../src/xfer/container/container.h"
#include "../kit/exchange_kit.h"

Suite *container_suite(void);

/* ---- boxes -------------------------------- */

/* A file whose element at a place is its number in C order. */
typedef struct number_file {
    const uint64_t *shape, *chunk;
    int ndim;
    size_t boxes, largest;
    uint64_t elements;
} number_file;

static uint64_t number_at(const number_file *file, const brc_sel *box, uint64_t i)
{
    uint64_t at[BRC_MAX_NDIM], number = 0;
    for (int k = file->ndim; k-- > 0; i /= box->count[k])
        at[k] = box->start[k] + i % box->count[k];
    for (int k = 0; k < file->ndim; k++)
        number = number * file->shape[k] + at[k];
    return number;
}

static void check_box(number_file *file, const brc_sel *box, size_t len)
{
    ck_assert_int_eq(box->ndim, file->ndim);
    for (int k = 0; k < file->ndim; k++) {
        uint64_t end = box->start[k] + box->count[k];
        ck_assert_uint_eq(box->step[k], 1);
        ck_assert_uint_le(end, file->shape[k]);
        ck_assert_uint_eq(box->start[k] % file->chunk[k], 0);
        ck_assert(end == file->shape[k] || end % file->chunk[k] == 0);
    }
    file->boxes++;
    file->elements += brc_sel_count(box);
    file->largest = len > file->largest ? len : file->largest;
}

static int read_numbers(void *ctx, const brc_sel *box, void *dst, size_t len, brc_error *err)
{
    number_file *file = ctx;
    uint32_t *out = dst;
    (void)err;
    check_box(file, box, len);
    ck_assert_uint_eq(len, brc_sel_count(box) * sizeof(*out));
    for (uint64_t i = 0; i < brc_sel_count(box); i++)
        out[i] = (uint32_t)number_at(file, box, i);
    return BRC_OK;
}

static int put_numbers(void *ctx, const brc_sel *box, const void *data, size_t len, brc_error *err)
{
    number_file *file = ctx;
    const uint32_t *in = data;
    (void)err;
    check_box(file, box, len);
    for (uint64_t i = 0; i < brc_sel_count(box); i++)
        if (in[i] != (uint32_t)number_at(file, box, i))
            ck_abort_msg("element %llu is %u", (unsigned long long)i, in[i]);
    return BRC_OK;
}

/* In and out again; every element is met once, in boxes of whole chunks. */
static void check_boxes(int ndim, const uint64_t *shape, const uint64_t *chunk, size_t boxes)
{
    exchange_kit kit;
    number_file file = { .shape = shape, .chunk = chunk, .ndim = ndim };
    brc_container_array from = { .path = "/n",
                                 .label = "numbers",
                                 .dtype = "uint32",
                                 .ndim = ndim,
                                 .chunked = 1,
                                 .ctx = &file,
                                 .read = read_numbers };
    brc_container_sink sink = { &file, put_numbers };
    brc_array *a;
    uint64_t all = 1;

    exchange_start(&kit);
    for (int k = 0; k < ndim; k++) {
        from.shape[k] = shape[k];
        from.chunk[k] = chunk[k];
        all *= shape[k];
    }
    int rc = brc_container_import(kit.session, &from, NULL, &kit.err);
    ck_assert_msg(rc == BRC_OK, "%s", kit.err.message);
    ck_assert_uint_eq(file.elements, all);
    ck_assert_uint_eq(file.boxes, boxes);
    ck_assert_uint_le(file.largest, (size_t)4 << 20);
    ck_assert_int_eq(brc_array_open(&a, kit.session, "/n", &kit.err), BRC_OK);
    file.elements = file.boxes = 0;
    rc = brc_container_export(a, &sink, &kit.err);
    ck_assert_msg(rc == BRC_OK, "%s", kit.err.message);
    ck_assert_uint_eq(file.elements, all);
    ck_assert_uint_eq(file.boxes, boxes);
    brc_array_free(a);
    exchange_stop(&kit);
}

START_TEST(boxes_cover_an_array)
{
    check_boxes(0, NULL, NULL, 1);
    check_boxes(1, (uint64_t[]){ 0 }, (uint64_t[]){ 3 }, 0);
    check_boxes(2, (uint64_t[]){ 5, 0 }, (uint64_t[]){ 3, 2 }, 0);
    check_boxes(1, (uint64_t[]){ 7 }, (uint64_t[]){ 3 }, 1);
    check_boxes(3, (uint64_t[]){ 7, 5, 9 }, (uint64_t[]){ 3, 5, 2 }, 1);
    check_boxes(2, (uint64_t[]){ 3, 2 }, (uint64_t[]){ 10, 10 }, 1);
}
END_TEST

/* 4 MiB are 1024 x 1024 elements: more than that is cut along whole chunks, the last
 * axis being the last to be cut. */
START_TEST(boxes_stay_within_memory)
{
    check_boxes(2, (uint64_t[]){ 5000, 4096 }, (uint64_t[]){ 512, 512 }, 20);
    check_boxes(2, (uint64_t[]){ 3, 9000000 }, (uint64_t[]){ 1, 1000000 }, 27);
}
END_TEST

/* ---- attributes -------------------------------- */

static void check_json(brc_json *value, const char *expected)
{
    brc_buf text = BRC_BUF_INIT;
    ck_assert_ptr_nonnull(value);
    ck_assert_int_eq(brc_json_write(&text, value, NULL), BRC_OK);
    ck_assert_int_eq(brc_buf_terminate(&text, NULL), BRC_OK);
    ck_assert_str_eq((const char *)text.data, expected);
    brc_buf_dispose(&text);
    brc_json_free(value);
}

START_TEST(values_to_json)
{
    check_json(brc_attr_int(INT64_MIN), "-9223372036854775808");
    check_json(brc_attr_uint(UINT64_MAX), "18446744073709551615");
    check_json(brc_attr_float(0.1), "0.1");
    check_json(brc_attr_float((double)0.1f), "0.10000000149011612");
    check_json(brc_attr_float(-0.0), "-0.0");
    check_json(brc_attr_float(NAN), "\"NaN\"");
    check_json(brc_attr_float(-INFINITY), "\"-Infinity\"");
    check_json(brc_attr_text("m s-1", 5), "\"m s-1\"");
    check_json(brc_attr_text("cut\0off", 7), "\"cut\"");
    check_json(brc_attr_text("\xC2\xB0 C", 4), "\"\xC2\xB0 C\"");
    check_json(brc_attr_text("\xB0\x43\xFF", 3), "\"\xC2\xB0"
                                                 "C\xC3\xBF\"");
}
END_TEST

static brc_attr opened(const char *text)
{
    brc_json *json;
    brc_attr attr;
    ck_assert_int_eq(brc_json_parse(&json, text, strlen(text), NULL), BRC_OK);
    ck_assert_int_eq(brc_attr_open(&attr, json, NULL), BRC_OK);
    brc_json_free(json);
    return attr;
}

static void check_kind(const char *text, int kind, int list, size_t n)
{
    brc_attr attr = opened(text);
    ck_assert_msg(attr.kind == kind && attr.list == list && attr.n == n,
                  "%s: kind %d, list %d, n %zu", text, attr.kind, attr.list, attr.n);
    brc_attr_close(&attr);
}

START_TEST(kinds_of_json)
{
    check_kind("\"m\"", BRC_ATTR_TEXT, 0, 1);
    check_kind("[\"a\", \"\"]", BRC_ATTR_TEXT, 1, 2);
    check_kind("true", BRC_ATTR_BOOL, 0, 1);
    check_kind("[true]", BRC_ATTR_BOOL, 1, 1);
    check_kind("-9223372036854775808", BRC_ATTR_INT, 0, 1);
    check_kind("9223372036854775808", BRC_ATTR_UINT, 0, 1);
    check_kind("[1, 9223372036854775808]", BRC_ATTR_UINT, 1, 2);
    check_kind("18446744073709551616", BRC_ATTR_FLOAT, 0, 1);
    check_kind("[1, 2.5]", BRC_ATTR_FLOAT, 1, 2);
    check_kind("[1, 1.0]", BRC_ATTR_FLOAT, 1, 2);
    check_kind("[-1, 9223372036854775808]", BRC_ATTR_JSON, 0, 1);
    check_kind("[9223372036854775808, -1]", BRC_ATTR_JSON, 0, 1);
    check_kind("[1, \"a\"]", BRC_ATTR_JSON, 0, 1);
    check_kind("[1, true]", BRC_ATTR_JSON, 0, 1);
    check_kind("[[1], [2]]", BRC_ATTR_JSON, 0, 1);
    check_kind("[]", BRC_ATTR_JSON, 0, 1);
    check_kind("{}", BRC_ATTR_JSON, 0, 1);
    check_kind("null", BRC_ATTR_JSON, 0, 1);
    check_kind("\"a\\u0000b\"", BRC_ATTR_JSON, 0, 1);
}
END_TEST

START_TEST(values_of_json)
{
    brc_attr attr = opened("[-1, 2]");
    ck_assert_int_eq(attr.ints[0], -1);
    ck_assert_int_eq(attr.ints[1], 2);
    brc_attr_close(&attr);
    attr = opened("[1, 18446744073709551615]");
    ck_assert_uint_eq(attr.uints[0], 1);
    ck_assert_uint_eq(attr.uints[1], UINT64_MAX);
    brc_attr_close(&attr);
    attr = opened("[0.1, -0.0]");
    ck_assert(memcmp(&attr.floats[0], &(double){ 0.1 }, 8) == 0);
    ck_assert(memcmp(&attr.floats[1], &(double){ -0.0 }, 8) == 0);
    brc_attr_close(&attr);
    attr = opened("[true, false]");
    ck_assert_int_eq(attr.ints[0], 1);
    ck_assert_int_eq(attr.ints[1], 0);
    brc_attr_close(&attr);
    attr = opened("[\"a\", \"\xC3\xBC\"]");
    ck_assert_str_eq(attr.texts[1], "\xC3\xBC");
    brc_attr_close(&attr);
    attr = opened("{\"a\": [1.50, null]}");
    ck_assert_str_eq(attr.texts[0], "{\"a\":[1.50,null]}");
    brc_attr_close(&attr);
}
END_TEST

/* xarray's form: base64 of a little-endian double. */
START_TEST(fill_values)
{
    double number;
    check_json(brc_attr_fill(1.0), "\"AAAAAAAA8D8=\"");
    check_json(brc_attr_fill(-INFINITY), "\"AAAAAAAA8P8=\"");
    brc_json *packed = brc_attr_fill(-1e20);
    ck_assert_int_eq(brc_attr_fill_value(packed, &number), 1);
    ck_assert(memcmp(&number, &(double){ -1e20 }, 8) == 0);
    ck_assert_int_eq(brc_attr_number(packed, &number), 0);
    brc_json_free(packed);
    static const char *const others[] = { "1.0", "\"NaN\"", "\"AAAA\"", "null",
                                          "\"AAAAAAAA8D8!\"" };
    for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++) {
        brc_json *json;
        ck_assert_int_eq(brc_json_parse(&json, others[i], strlen(others[i]), NULL), BRC_OK);
        ck_assert_int_eq(brc_attr_fill_value(json, &number), 0);
        ck_assert_int_eq(brc_attr_number(json, &number), i < 2);
        brc_json_free(json);
    }
    ck_assert(brc_attr_fill_is_packed("float32") && !brc_attr_fill_is_packed("int32") &&
              !brc_attr_fill_is_packed(NULL));
}
END_TEST

/* ---- names and libraries -------------------------------- */

START_TEST(names_of_nodes)
{
    brc_error err = BRC_ERROR_INIT;
    static const char *const bad[] = { "", ".", "..", "a/b", "zarr.json", "__x", "\xFF" };
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        ck_assert_int_lt(brc_container_name_check("x.nc", bad[i], &err), 0);
        ck_assert_msg(strncmp(err.message, "x.nc: ", 6) == 0, "%s", err.message);
    }
    ck_assert_int_eq(brc_container_name_check("x.nc", "sea ice (%)", &err), BRC_OK);
}
END_TEST

START_TEST(a_library_that_is_not_there)
{
    brc_error err = BRC_ERROR_INIT;
    void *handle, *symbol;
    int rc = brc_late_library(&handle, "libno-such-thing.so.7", "Reading tablets", &err);
    ck_assert_int_eq(rc, BRC_EUNSUPPORTED);
    ck_assert_msg(strstr(err.message, "Reading tablets needs the library libno-such-thing.so.7"),
                  "%s", err.message);
    ck_assert_int_eq(brc_late_library(&handle, "libc.so.6", "C", &err), BRC_OK);
    ck_assert_int_eq(brc_late_symbol(&symbol, handle, "libc.so.6", "strlen", &err), BRC_OK);
    rc = brc_late_symbol(&symbol, handle, "libc.so.6", "no_such_function", &err);
    ck_assert_int_eq(rc, BRC_EUNSUPPORTED);
}
END_TEST

Suite *container_suite(void)
{
    Suite *suite = suite_create("container");
    TCase *tc = tcase_create("container");
    tcase_set_timeout(tc, 120);
    tcase_add_test(tc, boxes_cover_an_array);
    tcase_add_test(tc, boxes_stay_within_memory);
    tcase_add_test(tc, values_to_json);
    tcase_add_test(tc, kinds_of_json);
    tcase_add_test(tc, values_of_json);
    tcase_add_test(tc, fill_values);
    tcase_add_test(tc, names_of_nodes);
    tcase_add_test(tc, a_library_that_is_not_there);
    suite_add_tcase(suite, tc);
    return suite;
}
