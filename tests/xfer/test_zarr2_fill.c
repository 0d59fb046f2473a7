/* An array without a fill value gets none back, and xarray's names of dimensions are attributes
 * in Zarr v2 alone. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../../src/base/json.h"
#include "../../src/zarr/doc/meta.h"
#include "../kit/exchange_kit.h"
#include "../kit/suite.h"

TEST_SUITE(zarr2_fill);

static exchange_kit fk;

static void fill_setup(void)
{
    exchange_start(&fk);
}

static void fill_teardown(void)
{
    exchange_stop(&fk);
}

static void fill_must(int rc)
{
    ck_assert_msg(rc == BRC_OK, "%s", fk.err.message);
}

static void put_v2(const char *dtype, const char *fill, const char *filters, const char *zattrs)
{
    char text[600];
    snprintf(text, sizeof(text),
             "{\"zarr_format\":2,\"shape\":[4],\"chunks\":[2],\"dtype\":%s,\"fill_value\":%s,"
             "\"order\":\"C\",\"filters\":%s,\"compressor\":null,\"dimension_separator\":\".\"}",
             dtype, fill, filters);
    exchange_text(&fk, "in/.zarray", text);
    if (zattrs)
        exchange_text(&fk, "in/.zattrs", zattrs);
}

static void bring_in(const char *name, const char *path, const brc_xfer_opts *opts)
{
    fill_must(brc_import(fk.session, exchange_path(&fk, name), path, opts, &fk.err));
}

static void take_out(const char *path, const char *name, const char *format)
{
    brc_xfer_opts opts = BRC_XFER_OPTS_INIT;
    opts.format = format;
    fill_must(brc_export(fk.session, path, exchange_path(&fk, name), &opts, &fk.err));
}

static brc_json *read_doc(const char *name)
{
    brc_buf text = exchange_read(exchange_path(&fk, name));
    brc_json *doc;
    fill_must(brc_json_parse(&doc, (const char *)text.data, text.len, 0, &fk.err));
    brc_buf_dispose(&text);
    return doc;
}

/* A member of a document in a file; NULL: there is none. */
static void check_says(const char *file, const char *member, const char *expected)
{
    brc_json *doc = read_doc(file), *want = NULL;
    brc_buf got = BRC_BUF_INIT;
    const brc_json *there = brc_json_member(doc, member);

    if (expected)
        fill_must(brc_json_parse(&want, expected, strlen(expected), 0, &fk.err));
    if (there)
        fill_must(brc_json_write(&got, there, 0, &fk.err));
    ck_assert_msg((there != NULL) == (want != NULL) && (!there || brc_json_equal(there, want)),
                  "%s: %s is %.*s, not %s", file, member, (int)got.len, (const char *)got.data,
                  expected ? expected : "absent");
    brc_buf_dispose(&got);
    brc_json_free(want);
    brc_json_free(doc);
}

/* ---- no fill value ------------------------------------------------------------------ */

static const struct {
    const char *dtype, *filters, *chunk; /* of zeros */
    size_t len;
} without[] = {
    { "\"|b1\"", "null", "\0\0", 2 },
    { "\"<i2\"", "null", "\0\0\0\0", 4 },
    { "\">u4\"", "null", "\0\0\0\0\0\0\0\0", 8 },
    { "\"<f4\"", "null", "\0\0\0\0\0\0\0\0", 8 },
    { "\"<c8\"", "null", "\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0", 16 },
    { "\"<M8[h]\"", "null", "\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0", 16 },
    { "\"<m8[ns]\"", "null", "\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0", 16 },
    { "\"|S2\"", "null", "\0\0\0\0", 4 },
    { "\"<U1\"", "null", "\0\0\0\0\0\0\0\0", 8 },
    { "\"|V2\"", "null", "\0\0\0\0", 4 },
    { "[[\"a\",\"<i2\"],[\"b\",\"|b1\"]]", "null", "\0\0\0\0\0\0", 6 },
    { "\"|O\"", "[{\"id\":\"vlen-utf8\"}]", "\2\0\0\0\0\0\0\0\0\0\0\0", 12 },
};

CASE("zarr2_fill", .setup = fill_setup, .teardown = fill_teardown);

/* In, committed, out as v3, in again, and out as v2: the same document, and a chunk that
 * was there is there, though there is nothing but zeros in it. */
EACH(f09_null_comes_back_as_null, without)
{
    put_v2(without[_i].dtype, "null", without[_i].filters, NULL);
    exchange_file(&fk, "in/1", without[_i].chunk, without[_i].len);
    bring_in("in", "/x", NULL);
    fill_must(scenario_commit_of(&fk, fk.session, "null", NULL));
    take_out("/x", "v3", "zarr3");
    bring_in("v3", "/y", NULL);
    take_out("/y", "out", "zarr2");
    brc_json *want = read_doc("in/.zarray"), *got = read_doc("out/.zarray");
    ck_assert_msg(brc_json_equal(want, got), "%s", without[_i].dtype);
    brc_json_free(want);
    brc_json_free(got);
    brc_buf chunk = exchange_read(exchange_path(&fk, "out/1"));
    ck_assert_uint_eq(chunk.len, without[_i].len);
    ck_assert_mem_eq(chunk.data, without[_i].chunk, chunk.len);
    brc_buf_dispose(&chunk);
    ck_assert(!exchange_exists(exchange_path(&fk, "out/0")));
}

/* Neither other codecs and chunks nor what is written later brings one. */
TEST(f09_null_outlives_changes)
{
    brc_xfer_opts opts = BRC_XFER_OPTS_INIT;
    static const uint64_t chunk[1] = { 4 }, longer[1] = { 6 };
    static const uint8_t zeros[12] = { 0 };
    brc_array *a;

    put_v2("\"<i2\"", "null", "null", NULL);
    exchange_file(&fk, "in/0", "\1\0\2\0", 4);
    opts.chunk = chunk;
    opts.nchunk = 1;
    opts.codecs_json = "[{\"name\":\"bytes\",\"configuration\":{\"endian\":\"big\"}},\"crc32c\"]";
    bring_in("in", "/x", &opts);
    fill_must(brc_array_open(&a, fk.session, "/x", &fk.err));
    fill_must(brc_array_resize(a, longer, &fk.err));
    fill_must(brc_array_write(a, NULL, zeros, sizeof(zeros), &fk.err));
    fill_must(brc_array_set_codecs(
        a, "[{\"name\":\"bytes\",\"configuration\":{\"endian\":\"little\"}}]", 1, &fk.err));
    brc_array_free(a);
    take_out("/x", "out", "zarr2");
    check_says("out/.zarray", "fill_value", "null");
    check_says("out/.zarray", "dtype", "\"<i2\"");
    ck_assert(exchange_exists(exchange_path(&fk, "out/0")));
    ck_assert(exchange_exists(exchange_path(&fk, "out/1")));
}

/* With a .zarray that is kept as a whole for other reasons. */
TEST(f09_null_in_a_note)
{
    put_v2("\"<i2\"", "null", "[]", NULL);
    exchange_file(&fk, "in/0", "\0\0\0\0", 4);
    bring_in("in", "/x", NULL);
    take_out("/x", "out", "zarr2");
    check_says("out/.zarray", "fill_value", "null");
    check_says("out/.zarray", "filters", "[]");
}

/* Readers take null for zeros. An array whose absent chunks are something else has to say
 * so, though it came without a fill value. */
TEST(f09_absent_chunks_are_not_lost)
{
    static const uint64_t longer[1] = { 6 };
    static const char doc[] =
        "{\"zarr_format\":3,\"node_type\":\"array\",\"shape\":[4],\"data_type\":\"int16\","
        "\"chunk_grid\":{\"name\":\"regular\",\"configuration\":{\"chunk_shape\":[2]}},"
        "\"chunk_key_encoding\":{\"name\":\"default\"},\"fill_value\":-1,\"codecs\":["
        "{\"name\":\"bytes\",\"configuration\":{\"endian\":\"little\"}}],\"zarr2_array\":"
        "{\"must_understand\":false,\"fill_value\":null}}";
    brc_array *a;

    exchange_text(&fk, "in/zarr.json", doc);
    exchange_file(&fk, "in/c/0", "\377\377\377\377", 4);
    exchange_file(&fk, "in/c/1", "\1\0\2\0", 4);
    bring_in("in", "/x", NULL);
    take_out("/x", "all", "zarr2");
    check_says("all/.zarray", "fill_value", "null");
    ck_assert(exchange_exists(exchange_path(&fk, "all/0")));
    fill_must(brc_array_open(&a, fk.session, "/x", &fk.err));
    fill_must(brc_array_resize(a, longer, &fk.err));
    brc_array_free(a);
    take_out("/x", "gap", "zarr2");
    check_says("gap/.zarray", "fill_value", "-1");
}

/* An array with a fill value keeps it, and has no chunk of the fill value alone. */
TEST(f09_a_fill_value_stays)
{
    put_v2("\"<i2\"", "0", "null", NULL);
    exchange_file(&fk, "in/0", "\0\0\0\0", 4);
    bring_in("in", "/x", NULL);
    take_out("/x", "out", "zarr2");
    check_says("out/.zarray", "fill_value", "0");
    ck_assert(!exchange_exists(exchange_path(&fk, "out/0")));
    take_out("/x", "v3", "zarr3");
    check_says("v3/zarr.json", "zarr2_array", NULL);
}

/* A note of another form says nothing. */
static const char *const other_notes[] = {
    "{\"must_understand\":false}", "{\"must_understand\":false,\"fill_value\":0}",
    "{\"must_understand\":false,\"fill_value\":\"null\"}",
    "{\"must_understand\":false,\"zarray\":{\"fill_value\":null}}",
    "{\"must_understand\":false,\"zarray\":7}",
};

EACH(f09_other_notes_say_nothing, other_notes)
{
    char doc[600];
    snprintf(doc, sizeof(doc),
             "{\"zarr_format\":3,\"node_type\":\"array\",\"shape\":[4],\"data_type\":\"int16\","
             "\"chunk_grid\":{\"name\":\"regular\",\"configuration\":{\"chunk_shape\":[2]}},"
             "\"chunk_key_encoding\":{\"name\":\"default\"},\"fill_value\":0,\"codecs\":["
             "{\"name\":\"bytes\",\"configuration\":{\"endian\":\"little\"}}],\"zarr2_array\":%s}",
             other_notes[_i]);
    exchange_text(&fk, "in/zarr.json", doc);
    exchange_file(&fk, "in/c/0", "\0\0\0\0", 4);
    bring_in("in", "/x", NULL);
    take_out("/x", "out", "zarr2");
    check_says("out/.zarray", "fill_value", "0");
    ck_assert(!exchange_exists(exchange_path(&fk, "out/0")));
}

/* ---- names of dimensions ------------------------------------------------------------ */

static const struct {
    const char *zattrs, *names, *attributes; /* of v3 */
} dimensions[] = {
    { "{\"_ARRAY_DIMENSIONS\":[\"t\"]}", "[\"t\"]", NULL },
    { "{\"a\":1,\"_ARRAY_DIMENSIONS\":[\"t\"],\"b\":[]}", "[\"t\"]", "{\"a\":1,\"b\":[]}" },
    { "{\"_ARRAY_DIMENSIONS\":[\"\"]}", "[\"\"]", NULL },
    /* of another length, and of no names at all */
    { "{\"_ARRAY_DIMENSIONS\":[\"t\",\"x\"]}", NULL, "{\"_ARRAY_DIMENSIONS\":[\"t\",\"x\"]}" },
    { "{\"_ARRAY_DIMENSIONS\":[]}", NULL, "{\"_ARRAY_DIMENSIONS\":[]}" },
    { "{\"_ARRAY_DIMENSIONS\":[null]}", NULL, "{\"_ARRAY_DIMENSIONS\":[null]}" },
    { "{\"_ARRAY_DIMENSIONS\":[1]}", NULL, "{\"_ARRAY_DIMENSIONS\":[1]}" },
    { "{\"_ARRAY_DIMENSIONS\":\"t\"}", NULL, "{\"_ARRAY_DIMENSIONS\":\"t\"}" },
    { "{\"_ARRAY_DIMENSIONS\":{\"t\":1}}", NULL, "{\"_ARRAY_DIMENSIONS\":{\"t\":1}}" },
};

EACH(f15_names_of_dimensions_are_said_once, dimensions)
{
    put_v2("\"|u1\"", "0", "null", dimensions[_i].zattrs);
    bring_in("in", "/x", NULL);
    take_out("/x", "v3", "zarr3");
    check_says("v3/zarr.json", "dimension_names", dimensions[_i].names);
    check_says("v3/zarr.json", "attributes", dimensions[_i].attributes);
    take_out("/x", "out", "zarr2");
    brc_json *want = read_doc("in/.zattrs"), *got = read_doc("out/.zattrs");
    ck_assert_msg(brc_json_equal(want, got), "%s", dimensions[_i].zattrs);
    brc_json_free(want);
    brc_json_free(got);
}

/* xarray reads no scalar without its attribute, an empty list. */
TEST(f15_a_scalar_has_an_empty_list)
{
    exchange_text(&fk, "in/.zarray",
                  "{\"zarr_format\":2,\"shape\":[],\"chunks\":[],\"dtype\":\"|u1\",\"fill_value\":"
                  "null,\"order\":\"C\",\"filters\":null,\"compressor\":null}");
    exchange_text(&fk, "in/.zattrs", "{\"_ARRAY_DIMENSIONS\":[]}");
    bring_in("in", "/x", NULL);
    take_out("/x", "v3", "zarr3");
    check_says("v3/zarr.json", "dimension_names", "[]");
    check_says("v3/zarr.json", "attributes", NULL);
    take_out("/x", "out", "zarr2");
    check_says("out/.zattrs", "_ARRAY_DIMENSIONS", "[]");
}

#define COUNT(list) (int)(sizeof(list) / sizeof((list)[0]))
