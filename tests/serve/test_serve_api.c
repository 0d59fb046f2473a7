/* The data of the page: values compared with what the library reads, limits, and questions that
 * nobody should ask. */
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../../src/breccia_json.h"
#include "../../src/serve/answer.h"
#include "../kit/scenario.h"
#include "../kit/suite.h"
#include "../kit/versions.h"

TEST_SUITE(serve_api);

enum { PAIRS = 12 };

static scenario t;
static serve_answer answer;
static brc_json *root; /* of an answer in JSON, or of the line in front of elements */
static const uint8_t *elements;
static size_t nelements; /* bytes */

static void drop_answer(void)
{
    brc_json_free(root);
    brc_buf_dispose(&answer.body);
    memset(&answer, 0, sizeof(answer));
    answer.body = (brc_buf)BRC_BUF_INIT;
    root = NULL;
    elements = NULL;
}

static void api_start(void)
{
    scenario_start(&t);
    drop_answer();
}

static void api_stop(void)
{
    drop_answer();
    scenario_whole(&t);
    scenario_stop(&t);
}

static void parse_answer(void)
{
    const char *text = (const char *)answer.body.data;
    size_t len = answer.body.len;

    ck_assert_ptr_nonnull(text);
    if (strcmp(answer.type, "application/octet-stream") == 0) {
        const char *line = memchr(text, '\n', len);

        ck_assert_ptr_nonnull(line);
        ck_assert_uint_eq((size_t)(line + 1 - text) % 8, 0);
        elements = (const uint8_t *)line + 1;
        nelements = len - (size_t)(line + 1 - text);
        len = (size_t)(line - text);
    }
    OK(&t, brc_json_parse(&root, text, len, 0, &t.err));
}

/* Asks with pairs of names and values, and NULL at the end, and gives the status. */
static int ask_within(const serve_limits *limits, const char *what, va_list pairs)
{
    const char *names[PAIRS], *values[PAIRS];
    serve_query query = { 0, names, values };

    drop_answer();
    while (query.n < PAIRS && (names[query.n] = va_arg(pairs, const char *)) != NULL)
        values[query.n++] = va_arg(pairs, const char *);
    OK(&t, serve_api(&answer, t.repo, what, &query, limits, &t.err));
    parse_answer();
    return answer.status ? answer.status : 200;
}

static const serve_limits usual = { (uint64_t)64 << 20, 64, 30, "test" };

static int ask(const char *what, ...)
{
    va_list pairs;
    int status;

    va_start(pairs, what);
    status = ask_within(&usual, what, pairs);
    va_end(pairs);
    return status;
}

static int ask_few(uint64_t bytes, const char *what, ...)
{
    const serve_limits few = { bytes, 4, 30, "test" };
    va_list pairs;
    int status;

    va_start(pairs, what);
    status = ask_within(&few, what, pairs);
    va_end(pairs);
    return status;
}

/* Follows names and numbers: "commits/0/id". */
static const brc_json *at(const char *path)
{
    const brc_json *value = root;
    char name[64];

    while (*path) {
        const size_t len = strcspn(path, "/");

        ck_assert_uint_lt(len, sizeof(name));
        memcpy(name, path, len);
        name[len] = '\0';
        value = brc_json_kind(value) == BRC_JSON_ARRAY
                    ? brc_json_item(value, strtoul(name, NULL, 10))
                    : brc_json_member(value, name);
        path += len + (path[len] == '/');
    }
    return value;
}

static const char *text_at(const char *path)
{
    const char *text;

    ck_assert_msg(brc_json_text(at(path), &text), "%s in %.*s", path, (int)answer.body.len,
                  (const char *)answer.body.data);
    return text;
}

static int64_t number_at(const char *path)
{
    int64_t number;

    ck_assert_msg(brc_json_int(at(path), INT64_MIN, INT64_MAX, &number), "%s in %.*s", path,
                  (int)answer.body.len, (const char *)answer.body.data);
    return number;
}

static int true_at(const char *path)
{
    int value;

    ck_assert_msg(brc_json_bool(at(path), &value), "%s", path);
    return value;
}

static size_t count_at(const char *path)
{
    return brc_json_count(at(path));
}

static void id_text(char out[65], const brc_oid *id)
{
    brc_oid_format(out, id);
}

static const float grid_codecs_fill = -1;

/* "/g/image": float32 of 40 x 60 in chunks of 10 x 20, of which three rows of chunks are stored. */
static void make_image(float *out)
{
    const uint64_t shape[] = { 40, 60 }, chunk[] = { 10, 20 };
    brc_array *a = scenario_array(&t, "/g/image", "float32", 2, shape, chunk, "-1", NULL);
    brc_sel sel = BRC_SEL_INIT;

    for (size_t i = 0; i < 40 * 60; i++)
        out[i] = i < 30 * 60 ? (float)i * 0.25F : grid_codecs_fill;
    out[7] = NAN;
    OK(&t, brc_sel_parse(&sel, a, "[:30]", &t.err));
    OK(&t, brc_array_write(a, &sel, out, 30 * 60 * sizeof(*out), &t.err));
    brc_array_free(a);
}

CASE("slices", .setup = api_start, .teardown = api_stop);

TEST(a_slice_has_the_elements_that_the_library_reads)
{
    float image[40 * 60];

    make_image(image);
    scenario_commit(&t, "first");
    ck_assert_int_eq(ask("slice", "path", "/g/image", NULL), 200);
    ck_assert_str_eq(answer.type, "application/octet-stream");
    ck_assert_str_eq(text_at("dtype"), "float32");
    ck_assert_int_eq(number_at("shape/0"), 40);
    ck_assert_int_eq(number_at("shape/1"), 60);
    ck_assert_int_eq(number_at("every/0"), 1);
    ck_assert_uint_eq(nelements, sizeof(image));
    ck_assert_mem_eq(elements, image, sizeof(image));
    ck_assert_str_eq(text_at("commit"), answer.commit);
    ck_assert_int_eq(ask("slice", "path", "/g/image", "slice", "[3, 10:20:2]", NULL), 200);
    ck_assert_uint_eq(nelements, 5 * sizeof(float));
    ck_assert_int_eq(number_at("axes/0"), 1);
    for (size_t i = 0; i < 5; i++) {
        float value;

        memcpy(&value, elements + i * sizeof(value), sizeof(value));
        ck_assert_float_eq(value, image[3 * 60 + 10 + 2 * i]);
    }
}

TEST(a_slice_of_a_commit_may_be_kept_for_ever)
{
    float image[40 * 60];
    char id[65];
    brc_oid first;

    make_image(image);
    first = scenario_commit(&t, "first");
    id_text(id, &first);
    ask("slice", "path", "/g/image", "rev", id, NULL);
    ck_assert_int_eq(answer.immutable, 1);
    ask("slice", "path", "/g/image", "rev", "main", NULL);
    ck_assert_int_eq(answer.immutable, 0);
}

/* Element (y, x) of an answer of doubles or floats. */
static double float_at(size_t i)
{
    float value;

    memcpy(&value, elements + i * sizeof(value), sizeof(value));
    return (double)value;
}

static double double_at(size_t i)
{
    double value;

    memcpy(&value, elements + i * sizeof(value), sizeof(value));
    return value;
}

TEST(max_widens_the_steps_and_the_answer_names_them)
{
    float image[40 * 60];

    make_image(image);
    scenario_commit(&t, "first");
    ask("slice", "path", "/g/image", "max", "20", NULL);
    ck_assert_int_eq(number_at("every/0"), 2);
    ck_assert_int_eq(number_at("every/1"), 3);
    ck_assert_int_eq(number_at("shape/0"), 20);
    ck_assert_int_eq(number_at("shape/1"), 20);
    ck_assert_int_eq(true_at("by_budget"), 0);
    for (size_t y = 0; y < 20; y++)
        for (size_t x = y ? 0 : 3; x < 20; x++)
            ck_assert_double_eq(float_at(y * 20 + x), (double)image[2 * y * 60 + 3 * x]);
}

TEST(a_budget_widens_the_steps_and_is_kept)
{
    float image[40 * 60];

    make_image(image);
    scenario_commit(&t, "first");
    /* 12 chunks of 800 bytes: at most 4 of them. */
    ask_few(4 * 800, "slice", "path", "/g/image", NULL);
    ck_assert_int_eq(true_at("by_budget"), 1);
    ck_assert_int_le(number_at("chunks"), 4);
    const int64_t h = number_at("shape/0"), w = number_at("shape/1"), sy = number_at("step/0"),
                  sx = number_at("step/1");
    ck_assert_int_gt(h * w, 0);
    ck_assert_uint_eq(nelements, (size_t)(h * w) * sizeof(float));
    for (int64_t i = 1; i < h * w; i++)
        ck_assert_double_eq(float_at((size_t)i), (double)image[i / w * sy * 60 + i % w * sx]);
    ck_assert_int_eq(ask_few(100, "slice", "path", "/g/image", NULL), 413);
    ck_assert_ptr_nonnull(strstr(text_at("error"), "one chunk of /g/image is 800 bytes"));
}

/* Both versions as doubles, and the answer, must fit into memory too. */
TEST(a_difference_has_fewer_elements_than_its_versions)
{
    const uint64_t shape[] = { 300 }, chunk[] = { 300 };
    brc_array *a = scenario_array(&t, "/bytes", "uint8", 1, shape, chunk, NULL, NULL);

    brc_array_free(a);
    scenario_commit(&t, "first");
    ask_few(1600, "slice", "path", "/bytes", NULL);
    ck_assert_uint_eq(nelements, 300);
    ask_few(800, "slice", "path", "/bytes", NULL); /* an answer has a quarter of what is decoded */
    ck_assert_uint_eq(nelements, 150);
    ask_few(1600, "slice", "path", "/bytes", "minus", "HEAD", NULL);
    ck_assert_uint_le(nelements, 25 * sizeof(double));
    ck_assert_uint_gt(nelements, 0);
}

TEST(a_difference_of_two_versions_is_in_doubles)
{
    float image[40 * 60], changed = 1000, none = NAN;

    make_image(image);
    scenario_commit(&t, "first");
    scenario_fill(&t, t.session, "/g/image", "[5, 6]", &changed);
    scenario_fill(&t, t.session, "/g/image", "[5, 7]", &none);
    scenario_commit(&t, "second");
    ck_assert_int_eq(ask("slice", "path", "/g/image", "minus", "HEAD~1", NULL), 200);
    ck_assert_str_eq(text_at("dtype"), "float64");
    ck_assert_uint_eq(nelements, sizeof(double) * 40 * 60);
    for (size_t i = 0; i < 40 * 60; i++)
        if (i == 5 * 60 + 6)
            ck_assert_double_eq(double_at(i), 1000 - (double)image[i]);
        else if (i == 5 * 60 + 7)
            ck_assert(isnan(double_at(i)));
        else
            ck_assert_double_eq(double_at(i), 0); /* two NaNs are equal        */
}

TEST(versions_of_other_shapes_have_no_difference)
{
    scenario_numbers(&t, "/a", 64, 16, 0);
    scenario_commit(&t, "first");
    scenario_resize(&t, t.session, "/a", 80);
    scenario_commit(&t, "second");
    ck_assert_int_eq(ask("slice", "path", "/a", "minus", "HEAD~1", NULL), 400);
    ck_assert_ptr_nonnull(strstr(text_at("error"), "another shape"));
    ck_assert_int_eq(ask("slice", "path", "/a", "slice", "[:64]", "minus", "HEAD~1", NULL), 200);
    ck_assert_uint_eq(nelements, 64 * sizeof(double));
}

TEST(texts_and_records_come_as_json)
{
    const uint64_t shape[] = { 3 };
    const char *const words[] = { "<script>alert(1)</script>", "\xE2\x80\xAEright to left", "" };
    uint8_t bytes[128];
    size_t len = 0;
    brc_array *a = scenario_array(&t, "/words", "string", 1, shape, NULL, NULL, NULL);

    for (size_t i = 0; i < 3; i++) {
        const uint32_t n = (uint32_t)strlen(words[i]);

        memcpy(bytes + len, &n, sizeof(n));
        memcpy(bytes + len + sizeof(n), words[i], n);
        len += sizeof(n) + n;
    }
    OK(&t, brc_array_write(a, NULL, bytes, len, &t.err));
    brc_array_free(a);
    scenario_commit(&t, "words");
    ck_assert_int_eq(ask("slice", "path", "/words", NULL), 200);
    ck_assert_str_eq(answer.type, "application/json");
    ck_assert_uint_eq(count_at("values"), 3);
    ck_assert_str_eq(text_at("values/0"), words[0]);
    ck_assert_str_eq(text_at("values/1"), words[1]);
    ck_assert_str_eq(text_at("values/2"), words[2]);
}

TEST(numbers_come_as_json_if_asked)
{
    scenario_numbers(&t, "/a", 64, 16, 100);
    scenario_commit(&t, "first");
    ask("slice", "path", "/a", "slice", "[60:]", "form", "json", NULL);
    ck_assert_str_eq(answer.type, "application/json");
    ck_assert_uint_eq(count_at("values"), 4);
    ck_assert_int_eq(number_at("values/3"), 163);
}

/* Types without a form in a browser become doubles. */
TEST(exotic_numbers_become_doubles)
{
    const uint64_t shape[] = { 4 };
    const uint16_t halves[] = { 0x3f80, 0x4000, 0xbf80, 0x0000 }; /* bfloat16: 1, 2, -1, 0 */
    brc_array *a;

    if (brc_array_create(&a, t.session, "/b",
                         &(brc_array_spec){ .size = sizeof(brc_array_spec), .ndim = 1,
                                            .shape = shape, .dtype = "bfloat16" },
                         &t.err) < 0)
        return;
    OK(&t, brc_array_write(a, NULL, halves, sizeof(halves), &t.err));
    brc_array_free(a);
    scenario_commit(&t, "b");
    ask("slice", "path", "/b", NULL);
    ck_assert_str_eq(text_at("dtype"), "float64");
    ck_assert_double_eq(double_at(0), 1);
    ck_assert_double_eq(double_at(1), 2);
    ck_assert_double_eq(double_at(2), -1);
    ck_assert_double_eq(double_at(3), 0);
}

/* A picture in three sizes: the finest one that needs no wider steps is chosen. */
TEST(multiscales_choose_a_level)
{
    static const char attributes[] =
        "{\"ome\": {\"version\": \"0.5\", \"multiscales\": [{\"axes\": [], \"datasets\": "
        "[{\"path\": \"0\"}, {\"path\": \"1\"}, {\"path\": \"gone\"}, {\"path\": \"2\"}]}]}}";
    static uint8_t pixels[400 * 400];
    const char *const paths[] = { "/image/0", "/image/1", "/image/2" };
    const uint64_t sizes[] = { 400, 200, 100 };

    OK(&t, brc_group_create(t.session, "/image", attributes, &t.err));
    for (size_t i = 0; i < 3; i++) {
        const uint64_t shape[] = { sizes[i], sizes[i] }, chunk[] = { 50, 50 };
        brc_array *a = scenario_array(&t, paths[i], "uint8", 2, shape, chunk, NULL, NULL);

        memset(pixels, (int)i + 1, sizeof(pixels));
        OK(&t, brc_array_write(a, NULL, pixels, (size_t)(sizes[i] * sizes[i]), &t.err));
        brc_array_free(a);
    }
    scenario_commit(&t, "picture");
    ask("node", "path", "/image", NULL);
    ck_assert_uint_eq(count_at("levels"), 3);
    ck_assert_str_eq(text_at("levels/2"), "/image/2");
    ask("slice", "path", "/image", "max", "1024", NULL);
    ck_assert_int_eq(number_at("level"), 0);
    ask("slice", "path", "/image", "max", "250", NULL);
    ck_assert_int_eq(number_at("level"), 1);
    ck_assert_int_eq(elements[0], 2);
    ck_assert_uint_eq(nelements, 200 * 200);
    ask("slice", "path", "/image", "slice", "[200:400, 0:200]", "max", "60", NULL);
    ck_assert_int_eq(number_at("level"), 2);
    ck_assert_uint_eq(nelements, 50 * 50);
    ck_assert_int_eq(number_at("start/0"), 50);
    ck_assert_int_eq(ask("slice", "path", "/", NULL), 400);
}

CASE("nodes", .setup = api_start, .teardown = api_stop);

TEST(the_summary_says_what_is_here)
{
    char id[65];
    brc_oid first;

    scenario_numbers(&t, "/a", 64, 16, 0);
    first = scenario_commit(&t, "first");
    id_text(id, &first);
    OK(&t, brc_ref_create(t.repo, "v1", NULL, "a tag", BRC_REF_TAG, &t.err));
    ask("summary", "counts", "1", NULL);
    ck_assert_str_eq(text_at("branch"), "main");
    ck_assert_str_eq(text_at("file"), "test");
    ck_assert_str_eq(text_at("last/id"), id);
    ck_assert_str_eq(text_at("last/message"), "first");
    ck_assert_str_eq(text_at("branches/0/name"), "main");
    ck_assert_str_eq(text_at("tags/0/name"), "v1");
    ck_assert_str_eq(text_at("tags/0/message"), "a tag");
    ck_assert_int_eq(number_at("counts/commits"), 1);
    ck_assert_int_eq(number_at("counts/chunks"), 4);
    ck_assert_int_eq(true_at("clean"), 1);
    scenario_set_number(&t, "/a", 3, 5);
    ask("summary", NULL);
    ck_assert_int_eq(true_at("clean"), 0);
    ck_assert_uint_eq(count_at("drafts"), 1);
    ask("slice", "path", "/a", "rev", ":uncommitted", "slice", "[3:4]", "form", "json", NULL);
    ck_assert_int_eq(number_at("values/0"), 5);
    ck_assert_int_eq(true_at("uncommitted"), 1);
    ask("slice", "path", "/a", "slice", "[3:4]", "form", "json", NULL);
    ck_assert_int_eq(number_at("values/0"), 3);
}

TEST(before_the_first_commit_the_uncommitted_changes_show)
{
    scenario_numbers(&t, "/a", 64, 16, 0);
    ck_assert_int_eq(ask("summary", NULL), 200);
    ck_assert_int_eq(brc_json_kind(at("last")), BRC_JSON_NULL);
    ck_assert_int_eq(ask("tree", NULL), 200);
    ck_assert_str_eq(text_at("best"), "/a");
    ck_assert_int_eq(ask("log", NULL), 200);
    ck_assert_uint_eq(count_at("commits"), 0);
    ck_assert_int_eq(ask("slice", "path", "/a", NULL), 200);
    ck_assert_uint_eq(nelements, 64 * 4);
    ck_assert_int_eq(ask("diff", "b", ":uncommitted", NULL), 200);
    ck_assert_int_eq(ask("history", "path", "/a", NULL), 200);
    ck_assert_uint_eq(count_at("commits"), 0);
    ck_assert_int_eq(ask("chunks", "path", "/a", "commits", "1", NULL), 200);
    ck_assert_uint_eq(count_at("there"), 4);
    ck_assert_int_eq(ask("sound", NULL), 200);
    ck_assert_int_eq(ask("sizes", NULL), 200);
}

TEST(the_tree_has_sizes_and_last_changes)
{
    float image[40 * 60];
    char ids[2][65];
    brc_oid id;

    make_image(image);
    scenario_numbers(&t, "/a", 64, 16, 0);
    id = scenario_commit(&t, "first");
    id_text(ids[0], &id);
    scenario_set_number(&t, "/a", 3, 99);
    id = scenario_commit(&t, "second");
    id_text(ids[1], &id);
    ask("tree", "dated", "1", NULL);
    ck_assert_uint_eq(count_at("nodes"), 4);
    ck_assert_str_eq(text_at("nodes/0/path"), "/");
    ck_assert_str_eq(text_at("nodes/0/last"), ids[1]);
    ck_assert_str_eq(text_at("nodes/1/path"), "/a");
    ck_assert_str_eq(text_at("nodes/1/last"), ids[1]);
    ck_assert_int_eq(number_at("nodes/1/chunks"), 4);
    ck_assert_str_eq(text_at("nodes/3/path"), "/g/image");
    ck_assert_str_eq(text_at("nodes/3/last"), ids[0]);
    ck_assert_int_eq(number_at("nodes/3/chunks"), 9);
    ck_assert_str_eq(text_at("best"), "/g/image");
    ask("tree", "depth", "1", NULL);
    ck_assert_uint_eq(count_at("nodes"), 3);
    ask("tree", "n", "2", NULL);
    ck_assert_uint_eq(count_at("nodes"), 2);
    ck_assert_int_eq(true_at("more"), 1);
}

TEST(a_node_has_its_document_and_coordinates)
{
    const uint64_t shape[] = { 2, 3 }, length[] = { 3 };
    const char *const names[] = { "time", NULL }, *const of_time[] = { "lat" };
    const double lat[] = { -90, 0, 90 };
    const brc_array_spec spec = { .size = sizeof(spec), .ndim = 2, .shape = shape,
                                  .dtype = "int16", .fill = "-9", .dimension_names = names,
                                  .attrs_json = "{\"units\": \"K\", \"bad\": NaN}" };
    const brc_array_spec axis = { .size = sizeof(axis), .ndim = 1, .shape = length,
                                  .dtype = "float64", .dimension_names = of_time,
                                  .attrs_json = "{\"units\": \"degrees_north\"}" };
    const char *const named[] = { "time", "lat" };
    brc_array_spec both = spec;
    brc_array *a;

    OK(&t, brc_array_create(&a, t.session, "/g/none", &spec, &t.err));
    brc_array_free(a);
    both.dimension_names = named;
    OK(&t, brc_array_create(&a, t.session, "/g/temp", &both, &t.err));
    brc_array_free(a);
    OK(&t, brc_array_create(&a, t.session, "/lat", &axis, &t.err));
    OK(&t, brc_array_write(a, NULL, lat, sizeof(lat), &t.err));
    brc_array_free(a);
    scenario_commit(&t, "first");
    ck_assert_int_eq(ask("node", "path", "/g/temp", NULL), 200);
    ck_assert_str_eq(text_at("kind"), "array");
    ck_assert_str_eq(text_at("document/attributes/units"), "K");
    ck_assert_str_eq(text_at("document/attributes/bad"), "NaN");
    ck_assert_int_eq(number_at("fill"), -9);
    ck_assert_str_eq(text_at("dims/1"), "lat");
    ck_assert_int_eq(brc_json_kind(at("coordinates/0")), BRC_JSON_NULL);
    ck_assert_str_eq(text_at("coordinates/1/path"), "/lat");
    ck_assert_str_eq(text_at("coordinates/1/attributes/units"), "degrees_north");
    ck_assert_uint_eq(count_at("coordinates/1/values"), 3);
    double north;
    ck_assert_int_eq(brc_json_double(at("coordinates/1/values/2"), &north), 1);
    ck_assert_double_eq(north, 90);
    ck_assert_int_eq(ask("node", "path", "/g/none", NULL), 200);
    ck_assert_int_eq(brc_json_kind(at("dims/1")), BRC_JSON_NULL);
    ck_assert_int_eq(ask("node", "path", "/nothing", NULL), 404);
}

CASE("history", .setup = api_start, .teardown = api_stop);

/* Commits one, two on main, side on a branch from one, and a merge. */
static void make_branches(void)
{
    scenario_numbers(&t, "/a", 64, 16, 0);
    scenario_numbers(&t, "/b", 64, 16, 0);
    scenario_commit(&t, "one");
    OK(&t, brc_ref_create(t.repo, "side", NULL, NULL, 0, &t.err));
    scenario_set_number(&t, "/a", 1, 100);
    scenario_commit(&t, "two");
    scenario_be_on(&t, "side");
    scenario_set_number(&t, "/b", 1, 100);
    scenario_commit(&t, "side");
    scenario_be_on(&t, "main");
    ck_assert_int_eq(scenario_merge(&t, "side", 0), BRC_MERGE_MERGED);
}

TEST(the_log_draws_lanes)
{
    make_branches();
    ask("log", NULL);
    ck_assert_uint_eq(count_at("commits"), 4);
    ck_assert_uint_eq(count_at("commits/0/parents"), 2);
    ck_assert_int_eq(number_at("commits/0/lane"), 0);
    ck_assert_uint_eq(count_at("commits/0/edges"), 2); /* to both parents               */
    ck_assert_int_eq(number_at("commits/0/lanes"), 2);
    ck_assert_str_eq(text_at("commits/0/refs/0/name"), "main");
    ck_assert_str_eq(text_at("commits/3/message"), "one");
    ck_assert_uint_eq(count_at("commits/3/parents"), 0);
    ck_assert_int_eq(number_at("commits/3/lane"), 0);
    ck_assert_int_eq(brc_json_kind(at("next")), BRC_JSON_NULL);
    ask("log", "branch", "HEAD~1", NULL);
    ck_assert_uint_eq(count_at("commits"), 2);
    ask("log", "filter", "TW", NULL);
    ck_assert_uint_eq(count_at("commits"), 1);
    ck_assert_str_eq(text_at("commits/0/message"), "two");
    ask("log", "filter", "nothing has this", NULL);
    ck_assert_uint_eq(count_at("commits"), 0);
}

TEST(a_log_in_parts_is_the_log)
{
    char ids[4][65], next[1024] = "";

    make_branches();
    OK(&t, brc_ref_create(t.repo, "old", "main~2", NULL, 0, &t.err)); /* a tip far below */
    ask("log", NULL);
    for (size_t i = 0; i < 4; i++) {
        char path[32];

        snprintf(path, sizeof(path), "commits/%zu/id", i);
        snprintf(ids[i], sizeof(ids[i]), "%s", text_at(path));
    }
    for (size_t i = 0; i < 4; i++) {
        ask("log", "n", "1", "from", next, NULL);
        ck_assert_uint_eq(count_at("commits"), 1);
        ck_assert_str_eq(text_at("commits/0/id"), ids[i]);
        if (i < 3)
            snprintf(next, sizeof(next), "%s", text_at("next"));
    }
    ck_assert_int_eq(brc_json_kind(at("next")), BRC_JSON_NULL);
}

TEST(commits_say_what_they_touched)
{
    char id[65];
    brc_oid second;

    scenario_numbers(&t, "/a", 64, 16, 0);
    scenario_numbers(&t, "/b", 64, 16, 0);
    scenario_commit(&t, "first");
    scenario_set_number(&t, "/a", 1, 100);
    second = scenario_commit(&t, "second");
    id_text(id, &second);
    ask("touched", "ids", id, NULL);
    ck_assert_uint_eq(count_at("touched"), 1);
    ck_assert_int_eq(brc_json_kind(brc_json_member(at("touched"), id)), BRC_JSON_OBJECT);
    const brc_json *one = brc_json_member(at("touched"), id);
    ck_assert_int_eq(brc_json_is(brc_json_item(brc_json_member(one, "paths"), 0), "/a"), 1);
    ck_assert_uint_eq(brc_json_count(brc_json_member(one, "paths")), 1);
    ck_assert_int_eq(ask("touched", "ids", "xyz", NULL), 400);
    ck_assert_int_eq(ask("touched", "ids", "0123456789abcdef", NULL), 404);
}

TEST(a_diff_has_boxes_the_largest_first)
{
    const uint64_t shape[] = { 100, 100 }, chunk[] = { 10, 10 };
    const int32_t one = 1;
    brc_array *a = scenario_array(&t, "/m", "int32", 2, shape, chunk, NULL, NULL);

    brc_array_free(a);
    scenario_commit(&t, "first");
    scenario_fill(&t, t.session, "/m", "[0, 0]", &one);
    scenario_fill(&t, t.session, "/m", "[50:60, 50:70]", &one);
    scenario_commit(&t, "second");
    ask("diff", "elements", "1", NULL);
    ck_assert_uint_eq(count_at("changes"), 1);
    ck_assert_str_eq(text_at("changes/0/path"), "/m");
    ck_assert_int_eq(true_at("changes/0/storage_only"), 0);
    ck_assert_int_eq(number_at("changes/0/chunks_added"), 3);
    ck_assert_int_eq(number_at("changes/0/elements/changed"), 201);
    ck_assert_int_eq(number_at("changes/0/elements/nboxes"), 2);
    ck_assert_int_eq(number_at("changes/0/elements/boxes/0/first/0"), 50);
    ck_assert_int_eq(number_at("changes/0/elements/boxes/0/last/1"), 69);
    ck_assert_int_eq(number_at("changes/0/elements/boxes/1/last/0"), 0);
}

TEST(a_diff_shows_metadata_side_by_side_and_names_storage)
{
    scenario_numbers(&t, "/a", 64, 16, 0);
    scenario_commit(&t, "first");
    OK(&t, brc_attrs_set(t.session, "/a", "units", "\"K\"", &t.err));
    scenario_commit(&t, "second");
    ask("diff", "a", "HEAD~1", "b", "HEAD", NULL);
    ck_assert_str_eq(text_at("changes/0/metadata/0/pointer"), "/attributes/units");
    ck_assert_int_eq(brc_json_kind(at("changes/0/metadata/0/old")), BRC_JSON_ABSENT);
    ck_assert_str_eq(text_at("changes/0/metadata/0/new"), "K");
    scenario_recode(&t, t.session, "/a", "[{\"name\": \"bytes\", \"configuration\": {\"endian\": "
                                         "\"big\"}}]", 1);
    scenario_commit(&t, "third");
    ask("diff", NULL);
    ck_assert_int_eq(true_at("changes/0/storage_only"), 1);
    ck_assert_int_eq(ask("diff", "a", "nothing", NULL), 404);
}

TEST(history_lists_the_commits_of_an_array)
{
    scenario_numbers(&t, "/a", 64, 16, 0);
    scenario_commit(&t, "first");
    scenario_numbers(&t, "/b", 64, 16, 0);
    scenario_commit(&t, "second");
    scenario_resize(&t, t.session, "/a", 70);
    OK(&t, brc_node_move(t.session, "/a", "/c", 0, &t.err));
    scenario_commit(&t, "third");
    ask("history", "path", "/c", NULL);
    ck_assert_uint_eq(count_at("commits"), 2);
    ck_assert_str_eq(text_at("commits/0/message"), "third");
    ck_assert_int_eq(number_at("commits/0/shape/0"), 70);
    ck_assert_str_eq(text_at("commits/1/path"), "/a");
    ck_assert_int_eq(number_at("commits/1/shape/0"), 64);
    ask("history", "path", "/c", "n", "1", NULL);
    ck_assert_int_eq(true_at("more"), 1);
}

TEST(chunks_and_elements_know_their_commits)
{
    float image[40 * 60], changed = 5;
    char ids[2][65];
    brc_oid id;

    make_image(image);
    id = scenario_commit(&t, "first");
    id_text(ids[0], &id);
    scenario_fill(&t, t.session, "/g/image", "[15, 25]", &changed);
    id = scenario_commit(&t, "second");
    id_text(ids[1], &id);
    ask("chunks", "path", "/g/image", "commits", "1", NULL);
    ck_assert_int_eq(number_at("count/0"), 4);
    ck_assert_int_eq(number_at("count/1"), 3);
    ck_assert_uint_eq(count_at("there"), 12);
    ck_assert_int_eq(number_at("there/8"), 1);
    ck_assert_int_eq(number_at("there/9"), 0);
    ck_assert_int_eq(number_at("decoded/0"), 800);
    ck_assert_int_gt(number_at("bytes/0"), 0);
    ck_assert_int_eq(brc_json_kind(at("bytes/9")), BRC_JSON_NULL);
    ck_assert_int_eq(number_at("last/9"), -1);
    ck_assert_int_ne(number_at("last/4"), number_at("last/0"));
    char path[32];
    snprintf(path, sizeof(path), "commits/%lld/commit", (long long)number_at("last/4"));
    ck_assert_str_eq(text_at(path), ids[1]);
    ask("chunks", "path", "/g/image", "slice", "[12, 45:]", NULL);
    ck_assert_uint_eq(count_at("there"), 1);
    ck_assert_int_eq(number_at("first/0"), 2);
    ask("blame", "path", "/g/image", "slice", "[15, 24:26]", NULL);
    ck_assert_uint_eq(count_at("runs"), 2);
    ck_assert_str_eq(text_at("runs/0/commit"), ids[0]);
    ck_assert_str_eq(text_at("runs/1/commit"), ids[1]);
    ck_assert_int_eq(ask("blame", "path", "/g/image", NULL), 200);
}

TEST(shards_are_the_cells_of_a_sharded_array)
{
    const uint64_t shape[] = { 64 }, chunk[] = { 4 }, shard[] = { 16 };
    const brc_array_spec spec = { .size = sizeof(spec), .ndim = 1, .shape = shape, .chunk = chunk,
                                  .shard = shard, .dtype = "int32", .chunk_key_encoding = "v2" };
    const int32_t one = 1;
    brc_array *a;

    OK(&t, brc_array_create(&a, t.session, "/s", &spec, &t.err));
    brc_array_free(a);
    scenario_fill(&t, t.session, "/s", "[20:24]", &one);
    scenario_commit(&t, "first");
    ask("chunks", "path", "/s", "commits", "1", NULL);
    ck_assert_uint_eq(count_at("there"), 4);
    ck_assert_int_eq(number_at("there/0"), 0);
    ck_assert_int_eq(number_at("there/1"), 1);
    ck_assert_int_eq(number_at("starts/0/1"), 16);
    ck_assert_int_eq(number_at("last/1"), 0);
}

TEST(chunks_may_differ_in_length)
{
    static const char document[] =
        "{\"zarr_format\":3,\"node_type\":\"array\",\"shape\":[20,10],\"data_type\":\"int32\","
        "\"chunk_grid\":{\"name\":\"rectilinear\",\"configuration\":{\"kind\":\"inline\","
        "\"chunk_shapes\":[[3,[5,2],7],5]}},\"chunk_key_encoding\":{\"name\":\"default\"},"
        "\"fill_value\":0,\"codecs\":[{\"name\":\"bytes\",\"configuration\":{\"endian\":"
        "\"little\"}}]}";
    const brc_array_spec spec = { .size = sizeof(spec), .metadata_json = document };
    const int32_t one = 1;
    brc_array *a;

    OK(&t, brc_array_create(&a, t.session, "/r", &spec, &t.err));
    brc_array_free(a);
    scenario_fill(&t, t.session, "/r", "[3:8]", &one);
    scenario_commit(&t, "first");
    scenario_fill(&t, t.session, "/r", "[19, 9]", &one);
    scenario_commit(&t, "second");
    ask("chunks", "path", "/r", "commits", "1", NULL);
    ck_assert_int_eq(number_at("count/0"), 4);
    ck_assert_int_eq(number_at("starts/0/1"), 3);
    ck_assert_int_eq(number_at("starts/0/3"), 13);
    ck_assert_int_eq(number_at("starts/0/4"), 20);
    ck_assert_int_eq(number_at("there/0"), 0);
    ck_assert_int_eq(number_at("there/2"), 1);
    ck_assert_int_eq(number_at("there/7"), 1);
    ck_assert_int_eq(number_at("decoded/2"), 100);
    ck_assert_int_eq(number_at("decoded/7"), 140);
    ck_assert_int_ne(number_at("last/7"), number_at("last/2"));
    ask("chunks", "path", "/r", "slice", "[8, :]", NULL);
    ck_assert_int_eq(number_at("starts/0/0"), 0);
    ck_assert_uint_eq(count_at("there"), 2);
    ask_few(140, "slice", "path", "/r", NULL); /* one chunk at most                         */
    ck_assert_int_eq(number_at("chunks"), 1);
    ck_assert_int_eq(ask_few(139, "slice", "path", "/r", NULL), 413);
}

TEST(statistics_sizes_and_soundness)
{
    scenario_numbers(&t, "/a", 64, 16, 0);
    scenario_numbers(&t, "/b", 64, 16, 1000);
    scenario_commit(&t, "first");
    ask("stats", "path", "/a", NULL);
    ck_assert_int_eq(number_at("count"), 64);
    ck_assert_int_eq(number_at("max"), 63);
    ck_assert_int_gt((int64_t)count_at("bins"), 0);
    ck_assert_uint_eq(count_at("values"), 64);
    ask("stats", "path", "/a", "slice", "[:10]", NULL);
    ck_assert_int_eq(number_at("max"), 9);
    ask("sizes", NULL);
    ck_assert_int_eq(number_at("narrays"), 2);
    ck_assert_int_eq(number_at("ncommits"), 1);
    ck_assert_int_eq(number_at("arrays/0/own") + number_at("arrays/0/shared"),
                     number_at("arrays/0/bytes"));
    scenario_set_number(&t, "/a", 3, 7);
    scenario_commit(&t, "second");
    ask("sizes", NULL);
    ck_assert_int_eq(number_at("expiry/0/keep_last"), 1);
    ck_assert_int_eq(number_at("expiry/0/expired"), 1);
    ask("sound", NULL);
    ck_assert_int_eq(number_at("nfaults"), 0);
    ck_assert_int_eq(true_at("complete"), 1);
    ck_assert_int_gt(number_at("checked"), 4);
}

CASE("hostile", .setup = api_start, .teardown = api_stop);

TEST(names_are_only_text)
{
    char message[10241];
    const brc_commit_opts opts = { .size = sizeof(opts), .message = message,
                                   .author = "<script>alert('author')</script>" };

    memset(message, 'm', sizeof(message) - 1);
    message[sizeof(message) - 1] = '\0';
    scenario_numbers(&t, "/<script>alert(1)<\"&'>", 4, 4, 0);
    OK(&t, brc_session_commit(NULL, t.session, &opts, &t.err));
    ask("tree", NULL);
    ck_assert_str_eq(text_at("nodes/1/path"), "/<script>alert(1)<\"&'>");
    ask("log", NULL);
    ck_assert_str_eq(text_at("commits/0/author"), opts.author);
    ck_assert_uint_eq(strlen(text_at("commits/0/message")), 4096);
    ck_assert_int_eq(true_at("commits/0/cut"), 1);
    ck_assert_int_eq(ask("slice", "path", "/<script>alert(1)<\"&'>", NULL), 200);
}

TEST(wrong_questions_get_an_error)
{
    static const struct {
        int status;
        const char *what, *name, *value;
    } wrong[] = {
        { 404, "nothing", "path", "/a" },
        { 404, "slice", "path", "/b" },
        { 400, "slice", "path", "/" },
        { 400, "slice", "slice", "[1:2:3:4]" },
        { 400, "slice", "slice", "[0,0,0]" },
        { 400, "slice", "slice", "[64]" },
        { 400, "slice", "max", "0" },
        { 400, "slice", "max", "-1" },
        { 400, "slice", "max", "99999999999999999999999" },
        { 400, "slice", "max", "ten" },
        { 404, "slice", "rev", "no such branch" },
        { 404, "slice", "minus", "no such branch" },
        { 400, "log", "n", "501" },
        { 400, "log", "from", "~" },
        { 400, "log", "from", "<script>" },
        { 400, "log", "from", "0011.." },
        { 404, "log", "branch", "nothing" },
        { 400, "tree", "n", "10001" },
        { 400, "tree", "depth", "x" },
        { 404, "tree", "path", "/b" },
        { 404, "history", "path", "/b" },
        { 400, "diff", "a", ":uncommitted" },
        { 404, "diff", "b", "no such branch" },
        { 400, "blame", "slice", "[99]" },
        { 400, "stats", "field", "x" },
        { 400, "chunks", "path", "/" },
    };

    scenario_numbers(&t, "/a", 64, 16, 0);
    scenario_commit(&t, "first");
    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
        const int has_path = strcmp(wrong[i].name, "path") == 0;
        const int status = ask(wrong[i].what, wrong[i].name, wrong[i].value,
                               has_path || strcmp(wrong[i].what, "diff") == 0 ||
                                       strcmp(wrong[i].what, "log") == 0 ||
                                       strcmp(wrong[i].what, "tree") == 0
                                   ? NULL : "path", "/a", NULL);

        ck_assert_msg(status == wrong[i].status, "%s?%s=%s: %d, %.*s", wrong[i].what, wrong[i].name,
                      wrong[i].value, status, (int)answer.body.len, (const char *)answer.body.data);
        ck_assert_uint_gt(strlen(text_at("error")), 0);
    }
    /* An unknown commit in a list is left out, as one that has gone. */
    ck_assert_int_eq(ask("log", "from", "00112233445566778899aabbccddeeff", NULL), 200);
}

/* An array of 2^60 elements that are not stored: every answer stays small. */
TEST(an_array_without_end_is_looked_at_in_parts)
{
    const uint64_t shape[] = { (uint64_t)1 << 30, (uint64_t)1 << 30 }, chunk[] = { 1024, 1024 };
    brc_array *a = scenario_array(&t, "/big", "float64", 2, shape, chunk, NULL, NULL);

    brc_array_free(a);
    scenario_commit(&t, "first");
    ck_assert_int_eq(ask("slice", "path", "/big", NULL), 200);
    ck_assert_int_le(number_at("chunks"), 64);
    ck_assert_int_eq(ask("slice", "path", "/big", "form", "json", NULL), 200);
    ck_assert_int_le((int64_t)count_at("values"), 4096);
    ck_assert_int_eq(ask("chunks", "path", "/big", NULL), 413);
    ck_assert_int_eq(ask("blame", "path", "/big", NULL), 413);
    ck_assert_int_eq(ask("node", "path", "/big", NULL), 200);
}
