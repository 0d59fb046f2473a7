/* Elements as Arrow has them: line M9 of the founding documents. That other libraries read them
 * is the affair of python/tests/test_tensors.py. */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "../../src/zarr/tensor/arrow.h"
#include "../kit/memory_kit.h"
#include "../kit/suite.h"

TEST_SUITE(arrow);

static memory_kit k;

static void start(void)
{
    memory_start(&k, 2, NULL);
}

static void stop(void)
{
    memory_stop(&k);
}

CASE("arrow", .setup = start, .teardown = stop);

/* Packed texts: "e0", "e01", "e012"... and empty ones. */
static void put_texts(brc_array *a, int n, int is_optional)
{
    brc_buf packed = BRC_BUF_INIT;
    for (int i = 0; i < n; i++) {
        const uint32_t text = (uint32_t)(i % 5);
        const uint32_t len = !is_optional ? text : i % 3 == 0 ? 0 : text + 1;
        const uint8_t head[4] = {(uint8_t)len, 0, 0, 0};
        OK(&k.t, brc_buf_append(&packed, head, 4, &k.t.err));
        if (is_optional && len > 0)
            OK(&k.t, brc_buf_append(&packed, "\1", 1, &k.t.err));
        if (len > 0)
            OK(&k.t, brc_buf_append(&packed, "abcde", text, &k.t.err));
    }
    OK(&k.t, brc_array_write(a, NULL, packed.data, packed.len, &k.t.err));
    brc_buf_dispose(&packed);
}

/* Reads an array as Arrow and writes that into another of the same type, which must be equal
 * then. */
static void goes_round(brc_array *a, const char *slice, const char *dtype, const char *prototype)
{
    struct ArrowSchema schema;
    struct ArrowArray array;
    brc_tensor_opts opts = BRC_TENSOR_OPTS_INIT;
    brc_sel sel = BRC_SEL_INIT;
    brc_buf want = BRC_BUF_INIT, got = BRC_BUF_INIT;
    OK(&k.t, brc_sel_parse(&sel, a, slice, &k.t.err));
    opts.sel = &sel;
    opts.prototype = prototype;
    OK(&k.t, brc_arrow_read(&array, &schema, a, &opts, &k.t.err));
    const brc_array_info *info = brc_array_describe(a);
    brc_array *b = scenario_array(&k.t, "/b", dtype, info->ndim, info->shape, NULL, NULL, NULL);
    OK(&k.t, brc_arrow_write(b, &schema, &array, &opts, &k.t.err));
    array.release(&array);
    schema.release(&schema);
    const brc_io io[2] = {{.size = sizeof(brc_io), .array = a, .sel = &sel, .out = &want},
                          {.size = sizeof(brc_io), .array = b, .sel = &sel, .out = &got}};
    OK(&k.t, brc_read(io, 2, &k.t.err));
    ck_assert_uint_eq(want.len, got.len);
    ck_assert(want.len == 0 || memcmp(want.data, got.data, want.len) == 0);
    brc_buf_dispose(&want);
    brc_buf_dispose(&got);
    brc_array_free(b);
    OK(&k.t, brc_node_remove(k.t.session, "/b", &k.t.err));
}

static const struct arrow_type {
    const char *dtype, *format;
} arrow_types[] = {
    {"bool", "b"},     {"int8", "c"},     {"uint8", "C"},    {"int16", "s"},   {"uint16", "S"},
    {"int32", "i"},    {"uint32", "I"},   {"int64", "l"},    {"uint64", "L"},  {"float16", "e"},
    {"float32", "f"},  {"float64", "g"},  {"complex64", "f"}, {"r24", "w:3"},  {"complex128", "g"},
};

EACH(M9_numbers_go_out_and_come_in, arrow_types)
{
    const uint64_t shape[3] = {7, 3, 2}, chunk[3] = {4, 3, 1};
    brc_array *a = scenario_array(&k.t, "/a", arrow_types[_i].dtype, 3, shape, chunk, NULL, NULL);
    const size_t len = 42 * (size_t)brc_array_describe(a)->item_size;
    uint8_t *bytes = malloc(len);
    for (size_t i = 0; i < len; i++)
        bytes[i] = (uint8_t)(strcmp(arrow_types[_i].dtype, "bool") == 0 ? i % 3 == 0 : i * 7);
    OK(&k.t, brc_array_write(a, NULL, bytes, len, &k.t.err));
    goes_round(a, NULL, arrow_types[_i].dtype, NULL);
    goes_round(a, "[2:6, 1]", arrow_types[_i].dtype, "pool");
    goes_round(a, "[3, 2, 1]", arrow_types[_i].dtype, "locked");
    goes_round(a, "[2:2]", arrow_types[_i].dtype, NULL);
    struct ArrowSchema schema, *at = &schema;
    OK(&k.t, brc_arrow_read(NULL, &schema, a, NULL, &k.t.err));
    ck_assert_str_eq(schema.name, "a");
    ck_assert_str_eq(schema.format, "+w:3");
    ck_assert_str_eq(schema.children[0]->format, "+w:2");
    while (at->n_children > 0)
        at = at->children[0];
    ck_assert_str_eq(at->format, arrow_types[_i].format);
    schema.release(&schema);
    free(bytes);
    brc_array_free(a);
}

static const char *const texts[] = {
    "string", "variable_length_bytes"};

LOOP(M9_texts_and_bytes_go_out_and_come_in, 0, 2)
{
    const uint64_t shape[2] = {11, 3}, chunk[2] = {4, 2};
    brc_array *a = scenario_array(&k.t, "/a", texts[_i], 2, shape, chunk, NULL, NULL);
    put_texts(a, 33, 0);
    goes_round(a, NULL, texts[_i], NULL);
    goes_round(a, "[1:9:2, 1:]", texts[_i], NULL);
    goes_round(a, "[4, 1]", texts[_i], NULL);
    struct ArrowArray array;
    OK(&k.t, brc_arrow_read(&array, NULL, a, NULL, &k.t.err));
    const struct ArrowArray *values = array.children[0];
    const int64_t *offsets = values->buffers[1];
    ck_assert(array.length == 11 && values->length == 33 && values->null_count == 0);
    ck_assert(offsets[0] == 0 && offsets[4] == 0 + 1 + 2 + 3);
    ck_assert_int_eq(memcmp(values->buffers[2], "aababc", 6), 0);
    array.release(&array);
    brc_array_free(a);
}

#define OPTIONAL(inner) "{\"name\":\"zarrs.optional\",\"configuration\":{\"name\":\"" inner "\"," \
                        "\"configuration\":{}}}"

LOOP(M9_optional_elements_have_nulls, 0, 2)
{
    static const char *const dtypes[] = {OPTIONAL("int16"), OPTIONAL("string")};
    const uint64_t shape[1] = {13}, chunk[1] = {5};
    brc_array *a;
    brc_array_spec spec = BRC_ARRAY_SPEC_INIT;
    spec.ndim = 1;
    spec.shape = shape;
    spec.chunk = chunk;
    spec.dtype = dtypes[_i];
    if (brc_array_create(&a, k.t.session, "/a", &spec, &k.t.err) != BRC_OK)
        ck_abort_msg("%s", k.t.err.message);
    if (_i == 0) {
        uint8_t bytes[13][3] = {{0}};
        for (int i = 0; i < 13; i++)
            if (i % 3 != 0)
                bytes[i][0] = 1, bytes[i][1] = (uint8_t)(i + 1);
        OK(&k.t, brc_array_write(a, NULL, bytes, sizeof(bytes), &k.t.err));
    } else {
        put_texts(a, 13, 1);
    }
    goes_round(a, NULL, dtypes[_i], NULL);
    goes_round(a, "[2:11]", dtypes[_i], NULL);
    struct ArrowArray array;
    struct ArrowSchema schema;
    OK(&k.t, brc_arrow_read(&array, &schema, a, NULL, &k.t.err));
    ck_assert_int_eq(array.null_count, 5);
    ck_assert_int_eq(schema.flags, BRC_ARROW_NULLABLE);
    const uint8_t *validity = array.buffers[0];
    ck_assert(validity[0] == 0xb6 && (validity[1] & 0x1f) == 0x0d);
    array.release(&array);
    schema.release(&schema);
    brc_array_free(a);
}

static void *release_there(void *given)
{
    struct ArrowArray *array = given;
    array->release(array);
    return NULL;
}

LOOP(M9_streams_are_tables_of_rows, 0, 2)
{
    const uint64_t shape[2] = {1000, 300}, chunk[2] = {100, 300};
    int32_t *numbers = malloc(1000 * 300 * sizeof(*numbers));
    brc_array *a = scenario_array(&k.t, "/a", "int32", 2, shape, chunk, NULL, NULL);
    brc_tensor_opts opts = BRC_TENSOR_OPTS_INIT;
    struct ArrowArrayStream stream;
    struct ArrowSchema schema;
    struct ArrowArray batch;
    for (int i = 0; i < 300000; i++)
        numbers[i] = i;
    OK(&k.t, brc_array_write(a, NULL, numbers, 300000 * sizeof(*numbers), &k.t.err));
    opts.flags = _i == 1 ? BRC_READ_NOW : 0;
    OK(&k.t, brc_arrow_stream(&stream, a, &opts, &k.t.err));
    /* what is written now is not in the stream */
    const int32_t none = -1;
    if (_i == 1)
        OK(&k.t, brc_array_fill(a, NULL, &none, &k.t.err));
    ck_assert_int_eq(stream.get_schema(&stream, &schema), 0);
    ck_assert_str_eq(schema.format, "+s");
    ck_assert_str_eq(schema.children[0]->name, "a");
    ck_assert_str_eq(schema.children[0]->format, "+w:300");
    schema.release(&schema);
    int64_t rows = 0;
    for (;;) {
        ck_assert_int_eq(stream.get_next(&stream, &batch), 0);
        if (batch.release == NULL)
            break;
        ck_assert(batch.length == 800 || rows + batch.length == 1000); /* of about 1 MiB */
        const struct ArrowArray *values = batch.children[0]->children[0];
        ck_assert_int_eq(values->length, batch.length * 300);
        ck_assert_int_eq(memcmp(values->buffers[1], numbers + rows * 300,
                                (size_t)values->length * 4), 0);
        rows += batch.length;
        pthread_t thread;
        ck_assert_int_eq(pthread_create(&thread, NULL, release_there, &batch), 0);
        pthread_join(thread, NULL);
        ck_assert_ptr_null(batch.release);
    }
    ck_assert_int_eq(rows, 1000);
    ck_assert_int_eq(stream.get_next(&stream, &batch), 0);
    ck_assert_ptr_null(batch.release);
    stream.release(&stream);
    ck_assert_ptr_null(stream.release);
    OK(&k.t, brc_arrow_stream(&stream, a, &opts, &k.t.err)); /* and one that nobody reads */
    stream.release(&stream);
    free(numbers);
    brc_array_free(a);
}

TEST(M9_an_array_outlives_everything)
{
    struct ArrowArray array;
    const uint64_t n = 9;
    brc_array *a = scenario_array(&k.t, "/a", "int64", 1, &n, NULL, "5", NULL);
    brc_tensor_opts opts = BRC_TENSOR_OPTS_INIT;
    opts.prototype = "locked";
    OK(&k.t, brc_arrow_read(&array, NULL, a, &opts, &k.t.err));
    brc_array_free(a);
    memory_close(&k);
    ck_assert_int_eq(((const int64_t *)array.buffers[1])[8], 5);
    pthread_t thread;
    ck_assert_int_eq(pthread_create(&thread, NULL, release_there, &array), 0);
    pthread_join(thread, NULL);
    ck_assert_uint_eq(*memory_count(k.cuda, "fake_locked"), 0);
    memory_start(&k, 0, NULL); /* for stop() */
}

TEST(M9_types_and_memory_that_arrow_lacks_are_refused)
{
    static const char *const none[] = {"bfloat16", "int4"};
    const uint64_t n = 3;
    struct ArrowArray array;
    struct ArrowSchema schema;
    struct ArrowArrayStream stream;
    for (size_t i = 0; i < 2; i++) {
        brc_array *a = scenario_array(&k.t, "/x", none[i], 1, &n, NULL, NULL, NULL);
        FAILS(&k.t, BRC_EUNSUPPORTED, brc_arrow_read(&array, &schema, a, NULL, &k.t.err));
        ck_assert(array.release == NULL && schema.release == NULL);
        FAILS(&k.t, BRC_EUNSUPPORTED, brc_arrow_stream(&stream, a, NULL, &k.t.err));
        ck_assert_ptr_null(stream.release);
        brc_array_free(a);
        OK(&k.t, brc_node_remove(k.t.session, "/x", &k.t.err));
    }
    brc_array *a = scenario_array(&k.t, "/x", "int16", 1, &n, NULL, NULL, NULL);
    brc_tensor_opts opts = BRC_TENSOR_OPTS_INIT;
    opts.prototype = DEVICE;
    FAILS(&k.t, BRC_EUNSUPPORTED, brc_arrow_read(&array, &schema, a, &opts, &k.t.err));
    ck_assert(array.release == NULL && schema.release == NULL);
    brc_array_free(a);
}

/* ---- hostile arrays -------------------------------- */

static void nothing_to_release(struct ArrowArray *self)
{
    self->release = NULL;
}

static void no_schema_to_release(struct ArrowSchema *self)
{
    self->release = NULL;
}

static struct {
    struct ArrowSchema schema, child, *schemas[1];
    struct ArrowArray array, inner, *arrays[1];
    const void *buffers[3], *none[1];
} h;

static const int64_t offsets64[4] = {0, 1, 3, 6};
static const int32_t offsets32[4] = {0, 1, 3, 6};

/* Three texts, as they should be. */
static void hostile_texts(void)
{
    memset(&h, 0, sizeof(h));
    h.schema = (struct ArrowSchema){.format = "U", .release = no_schema_to_release};
    h.array = (struct ArrowArray){.length = 3, .n_buffers = 3, .buffers = h.buffers,
                                  .release = nothing_to_release};
    h.buffers[1] = offsets64;
    h.buffers[2] = "abbccc";
}

/* Three rows of two numbers. */
static void hostile_lists(void)
{
    static const int16_t numbers[6] = {1, 2, 3, 4, 5, 6};
    memset(&h, 0, sizeof(h));
    h.schemas[0] = &h.child;
    h.arrays[0] = &h.inner;
    h.schema = (struct ArrowSchema){.format = "+w:2", .n_children = 1, .children = h.schemas,
                                    .release = no_schema_to_release};
    h.child = (struct ArrowSchema){.format = "s", .release = no_schema_to_release};
    h.array = (struct ArrowArray){.length = 3, .n_buffers = 1, .buffers = h.none, .n_children = 1,
                                  .children = h.arrays, .release = nothing_to_release};
    h.inner = (struct ArrowArray){.length = 6, .n_buffers = 2, .buffers = h.buffers,
                                  .release = nothing_to_release};
    h.buffers[1] = numbers;
}

static void hostile_is(brc_array *a, int code)
{
    const int rc = brc_arrow_write(a, &h.schema, &h.array, NULL, &k.t.err);
    ck_assert_msg(rc == code, "%d: %s", rc, rc < 0 ? k.t.err.message : "");
}

TEST(M9_hostile_texts_are_refused)
{
    static const int64_t falls[4] = {0, 3, 1, 6}, below[4] = {-1, 1, 3, 6},
                         huge[4] = {0, 1, 3, INT64_MAX};
    const uint64_t n = 3;
    brc_array *a = scenario_array(&k.t, "/a", "string", 1, &n, NULL, NULL, NULL);
    hostile_texts();
    hostile_is(a, BRC_OK);
    h.schema.format = "u";
    h.buffers[1] = offsets32;
    hostile_is(a, BRC_OK);
#define HOSTILE(change, code)  \
    hostile_texts();           \
    change;                    \
    hostile_is(a, code)
    HOSTILE(h.buffers[1] = falls, BRC_EINVAL);
    HOSTILE(h.buffers[1] = below, BRC_EINVAL);
    HOSTILE(h.buffers[1] = huge, BRC_ELIMIT);
    HOSTILE(h.buffers[1] = NULL, BRC_EINVAL);
    HOSTILE(h.buffers[2] = NULL, BRC_EINVAL);
    HOSTILE(h.array.buffers = NULL, BRC_EINVAL);
    HOSTILE(h.array.n_buffers = 2, BRC_EINVAL);
    HOSTILE(h.array.n_buffers = -1, BRC_EINVAL);
    HOSTILE(h.array.n_buffers = INT64_MAX, BRC_EINVAL);
    HOSTILE(h.array.length = -1, BRC_EINVAL);
    HOSTILE(h.array.length = INT64_MAX, BRC_EINVAL);
    HOSTILE(h.array.length = 4, BRC_EINVAL);
    HOSTILE(h.array.offset = -1, BRC_EINVAL);
    HOSTILE(h.array.offset = INT64_MAX, BRC_EINVAL);
    HOSTILE(h.array.null_count = 9, BRC_EINVAL);
    HOSTILE(h.array.n_children = 1, BRC_EINVAL);
    HOSTILE(h.array.release = NULL, BRC_EINVAL);
    HOSTILE(h.schema.release = NULL, BRC_EINVAL);
    HOSTILE(h.schema.format = NULL, BRC_EINVAL);
    HOSTILE(h.schema.format = "", BRC_EINVAL);
    HOSTILE(h.schema.format = "z", BRC_EINVAL); /* bytes are not texts */
    HOSTILE(h.schema.format = "l", BRC_EINVAL);
    HOSTILE(h.array.dictionary = &h.array, BRC_EINVAL);
    HOSTILE((h.array.null_count = 1, h.buffers[0] = "\5"), BRC_EINVAL);
    ck_assert_ptr_nonnull(strstr(k.t.err.message, "value 1 of the Arrow array is null"));
    brc_array_free(a);
}

TEST(M9_hostile_lists_are_refused)
{
    const uint64_t shape[2] = {3, 2};
    brc_array *a = scenario_array(&k.t, "/a", "int16", 2, shape, NULL, NULL, NULL);
    hostile_lists();
    hostile_is(a, BRC_OK);
#define HOSTILE_LIST(change)  \
    hostile_lists();          \
    change;                   \
    hostile_is(a, BRC_EINVAL)
    HOSTILE_LIST(h.schema.format = "+w:3");
    HOSTILE_LIST(h.schema.format = "+w:");
    HOSTILE_LIST(h.schema.format = "+w:18446744073709551618");
    HOSTILE_LIST(h.schema.format = "+w:-2");
    HOSTILE_LIST(h.schema.format = "+l");
    HOSTILE_LIST(h.schema.children = NULL);
    HOSTILE_LIST(h.array.children = NULL);
    HOSTILE_LIST(h.schemas[0] = NULL);
    HOSTILE_LIST(h.arrays[0] = NULL);
    HOSTILE_LIST(h.array.offset = INT64_MAX / 2);
    HOSTILE_LIST(h.array.offset = 1);
    HOSTILE_LIST(h.inner.length = 5);
    HOSTILE_LIST(h.inner.offset = INT64_MAX / 2 + 1);
    HOSTILE_LIST(h.inner.n_buffers = 1);
    HOSTILE_LIST(h.buffers[1] = NULL);
    HOSTILE_LIST(h.child.format = "S");
    HOSTILE_LIST((h.array.null_count = 1, h.none[0] = "\3"));
    HOSTILE_LIST((h.inner.null_count = -1, h.buffers[0] = "\0"));
    hostile_lists(); /* an offset is a part of others */
    h.array.length = 2;
    h.array.offset = 1;
    brc_sel sel = BRC_SEL_INIT;
    brc_tensor_opts opts = BRC_TENSOR_OPTS_INIT;
    int16_t got[6];
    OK(&k.t, brc_sel_parse(&sel, a, "[:2]", &k.t.err));
    opts.sel = &sel;
    OK(&k.t, brc_arrow_write(a, &h.schema, &h.array, &opts, &k.t.err));
    OK(&k.t, brc_array_read(a, NULL, got, sizeof(got), &k.t.err));
    ck_assert(got[0] == 3 && got[3] == 6 && got[5] == 6);
    brc_array_free(a);
}
