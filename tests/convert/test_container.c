/* The code that drivers of other formats share: boxes of an array, attributes as JSON and back. */
#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../../src/codec/registry.h"
#include "../../src/convert/lib/convert_program.h"
#include "../kit/suite.h"

TEST_SUITE(container);

/* ---- boxes -------------------------------- */

/* A file whose element at a place is its number in C order. */
typedef struct number_file {
    const uint64_t *shape, *chunk;
    int ndim;
    size_t boxes, largest;
    uint64_t elements;
} number_file;

/* Drivers are made without state of their own: the test has one file at a time. */
static number_file numbers;

static uint64_t number_at(const brc_sel *box, uint64_t i)
{
    uint64_t at[BRC_MAX_NDIM], number = 0;
    for (int k = numbers.ndim; k-- > 0; i /= box->count[k])
        at[k] = box->start[k] + i % box->count[k];
    for (int k = 0; k < numbers.ndim; k++)
        number = number * numbers.shape[k] + at[k];
    return number;
}

static void check_box(const brc_sel *box, size_t len)
{
    ck_assert_int_eq(box->ndim, numbers.ndim);
    for (int k = 0; k < numbers.ndim; k++) {
        uint64_t end = box->start[k] + box->count[k];
        ck_assert_uint_eq(box->step[k], 1);
        ck_assert_uint_le(end, numbers.shape[k]);
        ck_assert_uint_eq(box->start[k] % numbers.chunk[k], 0);
        ck_assert(end == numbers.shape[k] || end % numbers.chunk[k] == 0);
    }
    numbers.boxes++;
    numbers.elements += brc_sel_count(box);
    numbers.largest = len > numbers.largest ? len : numbers.largest;
}

static int read_numbers(void *ctx, const brc_sel *box, void *dst, size_t len, brc_error *err)
{
    uint32_t *out = dst;
    (void)ctx;
    (void)err;
    check_box(box, len);
    ck_assert_uint_eq(len, brc_sel_count(box) * sizeof(*out));
    for (uint64_t i = 0; i < brc_sel_count(box); i++)
        out[i] = (uint32_t)number_at(box, i);
    return BRC_OK;
}

static int open_numbers(void **state, brc_convert *c, const char *file, brc_error *err)
{
    (void)file;
    (void)err;
    *state = c;
    return BRC_OK;
}

static int walk_numbers(void *state, brc_error *err)
{
    brc_array_in from = { .path = "/n",
                          .label = "numbers",
                          .dtype = "uint32",
                          .ndim = numbers.ndim,
                          .chunked = 1,
                          .read = read_numbers };
    for (int k = 0; k < numbers.ndim; k++) {
        from.shape[k] = numbers.shape[k];
        from.chunk[k] = numbers.chunk[k];
    }
    BRC_TRY(brc_convert_group(state, "/", NULL, err));
    return brc_convert_array(state, &from, err);
}

static int create_numbers(void **state, brc_convert *c, const char *file, int netcdf,
                          brc_error *err)
{
    ck_assert_int_eq(netcdf, 0);
    ck_assert_uint_eq(brc_convert_nodes(c), 2);
    ck_assert_str_eq(brc_convert_node(c, 1)->inner, "n");
    return open_numbers(state, c, file, err);
}

static int begin_numbers(void *state, const brc_node_out *array, int *all, brc_error *err)
{
    (void)state;
    (void)err;
    ck_assert_str_eq(array->path, "/there/n");
    *all = 1;
    return BRC_OK;
}

static int put_numbers(void *state, const brc_sel *box, const void *data, size_t len,
                       brc_error *err)
{
    const uint32_t *in = data;
    (void)state;
    (void)err;
    check_box(box, len);
    for (uint64_t i = 0; i < brc_sel_count(box); i++)
        if (in[i] != (uint32_t)number_at(box, i))
            ck_abort_msg("element %llu is %u", (unsigned long long)i, in[i]);
    return BRC_OK;
}

static int end_numbers(void *state, brc_error *err)
{
    (void)state;
    (void)err;
    return BRC_OK;
}

static void close_numbers(void *state)
{
    (void)state;
}

static const brc_driver number_driver = { .format = "numbers",
                                          .open = open_numbers,
                                          .walk = walk_numbers,
                                          .create = create_numbers,
                                          .begin = begin_numbers,
                                          .put = put_numbers,
                                          .end = end_numbers,
                                          .finish = end_numbers,
                                          .close = close_numbers };

/* One run between the file and a stream in a file of the system's. */
static void convert_numbers(FILE *stream, int is_export)
{
    brc_error err = BRC_ERROR_INIT;
    brc_convert run = { .file = "numbers", .path = "/there" };
    int rc = brc_registry_new(&run.registry, &err);

    rewind(stream);
    if (rc == BRC_OK)
        rc = brc_scratch_new(&run.scratch, &err);
    if (rc == BRC_OK && is_export)
        rc = brc_tar_in_open_fd(&run.in, fileno(stream), "the stream", &err);
    else if (rc == BRC_OK)
        rc = brc_tar_out_open_fd(&run.out, fileno(stream), "the stream", &err);
    if (rc == BRC_OK)
        rc = is_export ? brc_convert_export(&run, &number_driver, 0, &err)
                       : brc_convert_import(&run, &number_driver, &err);
    ck_assert_msg(rc == BRC_OK, "%s", err.message);
    brc_convert_nodes_free(&run);
    brc_tar_in_free(run.in);
    brc_tar_out_free(run.out);
    brc_scratch_free(run.scratch);
    brc_registry_free(run.registry);
}

/* To a stream and back; every element is met once, in boxes of whole chunks. */
static void check_boxes(int ndim, const uint64_t *shape, const uint64_t *chunk, size_t boxes)
{
    uint64_t all = 1, chunks = 1;
    FILE *stream = tmpfile();

    ck_assert_ptr_nonnull(stream);
    numbers = (number_file){ .shape = shape, .chunk = chunk, .ndim = ndim };
    for (int k = 0; k < ndim; k++) {
        all *= shape[k];
        chunks *= brc_grid_extent(shape[k], chunk[k]);
    }
    convert_numbers(stream, 0);
    ck_assert_uint_eq(numbers.elements, all);
    ck_assert_uint_eq(numbers.boxes, boxes);
    ck_assert_uint_le(numbers.largest, (size_t)4 << 20);
    numbers.elements = numbers.boxes = 0;
    convert_numbers(stream, 1);
    ck_assert_uint_eq(numbers.elements, all);
    ck_assert_uint_eq(numbers.boxes, chunks);
    fclose(stream);
}

CASE("container", .timeout = 120);

TEST(boxes_cover_an_array)
{
    check_boxes(0, NULL, NULL, 1);
    check_boxes(1, (uint64_t[]){ 0 }, (uint64_t[]){ 3 }, 0);
    check_boxes(2, (uint64_t[]){ 5, 0 }, (uint64_t[]){ 3, 2 }, 0);
    check_boxes(1, (uint64_t[]){ 7 }, (uint64_t[]){ 3 }, 1);
    check_boxes(3, (uint64_t[]){ 7, 5, 9 }, (uint64_t[]){ 3, 5, 2 }, 1);
    check_boxes(2, (uint64_t[]){ 3, 2 }, (uint64_t[]){ 10, 10 }, 1);
}

/* 4 MiB are 1024 x 1024 elements: more than that is cut along whole chunks, the last
 * axis being the last to be cut. */
TEST(boxes_stay_within_memory)
{
    check_boxes(2, (uint64_t[]){ 5000, 4096 }, (uint64_t[]){ 512, 512 }, 20);
    check_boxes(2, (uint64_t[]){ 3, 9000000 }, (uint64_t[]){ 1, 1000000 }, 27);
}

/* ---- attributes -------------------------------- */

static void check_json(brc_json *value, const char *expected)
{
    brc_buf text = BRC_BUF_INIT;
    ck_assert_ptr_nonnull(value);
    ck_assert_int_eq(brc_json_write(&text, value, 0, NULL), BRC_OK);
    ck_assert_int_eq(brc_buf_terminate(&text, NULL), BRC_OK);
    ck_assert_str_eq((const char *)text.data, expected);
    brc_buf_dispose(&text);
    brc_json_free(value);
}

TEST(values_to_json)
{
    check_json(brc_attr_int(INT64_MIN), "-9223372036854775808");
    check_json(brc_attr_uint(UINT64_MAX), "18446744073709551615");
    check_json(brc_attr_float(0.1), "0.1");
    check_json(brc_attr_float((double)0.1f), "0.10000000149011612");
    check_json(brc_attr_float(-0.0), "-0.0");
    check_json(brc_attr_float(NAN), "NaN");
    check_json(brc_attr_float(-INFINITY), "-Infinity");
    check_json(brc_attr_text("m s-1", 5), "\"m s-1\"");
    check_json(brc_attr_text("cut\0off", 7), "\"cut\"");
    check_json(brc_attr_text("\xC2\xB0 C", 4), "\"\xC2\xB0 C\"");
    check_json(brc_attr_text("\xB0\x43\xFF", 3), "\"\xC2\xB0"
                                                 "C\xC3\xBF\"");
}

static brc_attr opened(const char *text)
{
    brc_json *json;
    brc_attr attr;
    ck_assert_int_eq(brc_json_parse(&json, text, strlen(text), BRC_JSON_NAN, NULL), BRC_OK);
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

TEST(kinds_of_json)
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
    check_kind("NaN", BRC_ATTR_FLOAT, 0, 1);
    check_kind("[-Infinity, 1]", BRC_ATTR_FLOAT, 1, 2);
    check_kind("\"NaN\"", BRC_ATTR_TEXT, 0, 1);
    check_kind("[NaN, \"NaN\"]", BRC_ATTR_JSON, 0, 1);
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

TEST(values_of_json)
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
    attr = opened("[NaN, -Infinity]");
    ck_assert(memcmp(&attr.floats[0], &(uint64_t){ UINT64_C(0x7ff8000000000000) }, 8) == 0);
    ck_assert(memcmp(&attr.floats[1], &(double){ -INFINITY }, 8) == 0);
    brc_attr_close(&attr);
    attr = opened("[true, false]");
    ck_assert_int_eq(attr.ints[0], 1);
    ck_assert_int_eq(attr.ints[1], 0);
    brc_attr_close(&attr);
    attr = opened("[\"a\", \"\xC3\xBC\"]");
    ck_assert_str_eq(attr.texts[1], "\xC3\xBC");
    brc_attr_close(&attr);
    attr = opened("{\"a\": [1.50, null, NaN]}");
    ck_assert_str_eq(attr.texts[0], "{\"a\":[1.50,null,NaN]}");
    brc_attr_close(&attr);
}

/* xarray's form: base64 of a little-endian double. */
TEST(fill_values)
{
    double number;
    check_json(brc_attr_fill(1.0), "\"AAAAAAAA8D8=\"");
    check_json(brc_attr_fill(-INFINITY), "\"AAAAAAAA8P8=\"");
    brc_json *packed = brc_attr_fill(-1e20);
    ck_assert_int_eq(brc_attr_fill_value(packed, &number), 1);
    ck_assert(memcmp(&number, &(double){ -1e20 }, 8) == 0);
    brc_json_free(packed);
    static const char *const others[] = { "1.0", "\"NaN\"", "\"AAAA\"", "null",
                                          "\"AAAAAAAA8D8!\"" };
    for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++) {
        brc_json *json;
        ck_assert_int_eq(brc_json_parse(&json, others[i], strlen(others[i]), 0, NULL), BRC_OK);
        ck_assert_int_eq(brc_attr_fill_value(json, &number), 0);
        brc_json_free(json);
    }
    ck_assert(brc_attr_fill_is_packed("float32") && !brc_attr_fill_is_packed("int32") &&
              !brc_attr_fill_is_packed(NULL));
}

/* ---- names -------------------------------- */

TEST(names_of_nodes)
{
    static const char *const names[][2] = {
        { "", "/g/%" },        { ".", "/g/%2E" },
        { "..", "/g/%2E." },   { "a/b", "/g/a%2Fb" },
        { "__x", "/g/%5F_x" }, { "zarr.json", "/g/%7Aarr.json" },
        { "\xFF", "/g/%FF" },  { "sea ice (%)", "/g/sea ice (%)" },
    };
    const brc_convert c = { .names = BRC_NAMES_HDF5 };
    brc_error err = BRC_ERROR_INIT;
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        char *node;
        ck_assert_int_eq(brc_convert_node_path(&node, &c, "/g", names[i][0], &err), BRC_OK);
        ck_assert_str_eq(node, names[i][1]);
        free(node);
    }
}
