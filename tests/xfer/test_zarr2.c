/* Zarr v2: documents translated both ways, and hierarchies in and out. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../../src/base/file.h"
#include "../../src/base/json.h"
#include "../../src/breccia.h"
#include "../../src/xfer/zarr/zarr2.h"
#include "../kit/exchange_kit.h"
#include "../kit/json_places.h"
#include "../kit/suite.h"

TEST_SUITE(zarr2);

#define ZARRAY(shape, chunks, dtype, fill, order, filters, compressor)                     \
    "{\"zarr_format\": 2, \"shape\": " shape ", \"chunks\": " chunks ", \"dtype\": " dtype \
    ", \"fill_value\": " fill ", \"order\": " order ", \"filters\": " filters              \
    ", \"compressor\": " compressor "}"

static brc_json *parsed(const char *text)
{
    brc_json *doc = NULL;
    brc_error err = BRC_ERROR_INIT;
    int rc = brc_json_parse(&doc, text, strlen(text), BRC_JSON_NAN, &err);
    ck_assert_msg(rc == BRC_OK, "%s: %s", err.message, text);
    return doc;
}

static void check_member(const brc_json *doc, const char *name, const char *expected)
{
    brc_json *want = parsed(expected);
    brc_buf got = BRC_BUF_INIT;
    if (strcmp(name, "attributes") != 0) /* there alone NaN is a number */
        brc_json_nan_to_text(want);
    ck_assert_msg(brc_json_member(doc, name) != NULL, "%s is missing", name);
    ck_assert_int_eq(brc_json_write(&got, brc_json_member(doc, name), 0, NULL), BRC_OK);
    ck_assert_msg(brc_json_equal(brc_json_member(doc, name), want), "%s: %.*s instead of %s", name,
                  (int)got.len, (const char *)got.data, expected);
    brc_buf_dispose(&got);
    brc_json_free(want);
}

/* ---- documents from v2 -------------------------------- */

/* The type of a field that is an array of one element, or of two. */
#define OF1(type)                                                                          \
    "{\"name\":\"struct\",\"configuration\":{\"fields\":[{\"name\":\"0\",\"data_type\":" type \
    "}]}}"
#define OF2(type)                                                                          \
    "{\"name\":\"struct\",\"configuration\":{\"fields\":[{\"name\":\"0\",\"data_type\":" type \
    "},{\"name\":\"1\",\"data_type\":" type "}]}}"

static const struct {
    const char *dtype, *fill, *v3, *v3_fill, *endian;
} types[] = {
    { "\"|b1\"", "null", "\"bool\"", "false", NULL },
    { "\"|b1\"", "1", "\"bool\"", "true", NULL },
    { "\"|i1\"", "-128", "\"int8\"", "-128", NULL },
    { "\"<u1\"", "null", "\"uint8\"", "0", NULL },
    { "\"<i2\"", "7.0", "\"int16\"", "7", "little" },
    { "\">i8\"", "-9223372036854775808", "\"int64\"", "-9223372036854775808", "big" },
    { "\"<u8\"", "18446744073709551615", "\"uint64\"", "18446744073709551615", "little" },
    { "\">f2\"", "null", "\"float16\"", "0.0", "big" },
    { "\"<f4\"", "NaN", "\"float32\"", "\"NaN\"", "little" },
    { "\"<f8\"", "-Infinity", "\"float64\"", "\"-Infinity\"", "little" },
    { "\"<f8\"", "-0.0", "\"float64\"", "-0.0", "little" },
    { "\"<c8\"", "[1.5, \"NaN\"]", "\"complex64\"", "[1.5, \"NaN\"]", "little" },
    { "\">c16\"", "0", "\"complex128\"", "[0, 0.0]", "big" },
    { "\"|S4\"", "\"eno=\"",
      "{\"name\":\"null_terminated_bytes\",\"configuration\":{\"length_bytes\":4}}", "\"enoAAA==\"",
      NULL },
    { "\"<U5\"", "0", "{\"name\":\"fixed_length_utf32\",\"configuration\":{\"length_bytes\":20}}",
      "\"\"", "little" },
    { "\"|V3\"", "\"AQID\"", "\"r24\"", "[1,2,3]", NULL },
    { "\"|V3\"", "\"\"", "\"r24\"", "[0,0,0]", NULL },
    { "\"<M8[10us]\"", "\"NaT\"",
      "{\"name\":\"numpy.datetime64\",\"configuration\":{\"unit\":\"us\",\"scale_factor\":10}}",
      "\"NaT\"", "little" },
    { "\"<m8\"", "null",
      "{\"name\":\"numpy.timedelta64\",\"configuration\":{\"unit\":\"generic\",\"scale_factor\":1}"
      "}",
      "0", "little" },
    { "\"<M8[\xCE\xBCs]\"", "3.0",
      "{\"name\":\"numpy.datetime64\",\"configuration\":{\"unit\":\"us\",\"scale_factor\":1}}", "3",
      "little" },
    { "[[\"a\", \">i2\"], [\"b\", [[\"x\", \"|u1\"], [\"y\", \">f4\"]]]]", "\"AQIDP4AAAA==\"",
      "{\"name\":\"struct\",\"configuration\":{\"fields\":[{\"name\":\"a\",\"data_type\":\"int16\"}"
      ","
      "{\"name\":\"b\",\"data_type\":{\"name\":\"struct\",\"configuration\":{\"fields\":["
      "{\"name\":\"x\",\"data_type\":\"uint8\"},{\"name\":\"y\",\"data_type\":\"float32\"}]}}}]}}",
      "{\"a\":258,\"b\":{\"x\":3,\"y\":1.0}}", "big" },
    { "[[\"a\", \"<i4\"], [\"b\", \">i4\"]]", "null",
      "{\"name\":\"numpy.dtype\",\"configuration\":{\"descr\":[[\"a\",\"<i4\"],[\"b\",\">i4\"]]}}",
      "null", NULL },
    { "[[\"a\", \"<i4\", [0]]]", "0",
      "{\"name\":\"numpy.dtype\",\"configuration\":{\"descr\":[[\"a\",\"<i4\",[0]]]}}", "0", NULL },
    { "[[\"a\", \"<i4\", [64, 65]]]", "0",
      "{\"name\":\"numpy.dtype\",\"configuration\":{\"descr\":[[\"a\",\"<i4\",[64,65]]]}}", "0",
      NULL },
    { "[[\"a\", \"<i4\", [1,1,1,1,1,1,1,1,1]]]", "0",
      "{\"name\":\"numpy.dtype\",\"configuration\":"
      "{\"descr\":[[\"a\",\"<i4\",[1,1,1,1,1,1,1,1,1]]]}}",
      "0", NULL },
    { "[[\"a\", \"|u1\"], [\"b\", \">i2\", [2, 1]]]", "\"AQIDBAU=\"",
      "{\"name\":\"struct\",\"configuration\":{\"fields\":[{\"name\":\"a\",\"data_type\":\"uint8\"}"
      ",{\"name\":\"b\",\"data_type\":" OF2(OF1("\"int16\"")) "}]}}",
      "{\"a\":1,\"b\":{\"0\":{\"0\":515},\"1\":{\"0\":1029}}}", "big" },
};

EACH(types_and_fill_values, types)
{
    brc_registry *reg;
    brc_error err = BRC_ERROR_INIT;
    char text[500], codecs[100];
    brc_json *doc, *back, *zattrs;

    ck_assert_int_eq(brc_registry_new(&reg, &err), BRC_OK);
    snprintf(text, sizeof(text), ZARRAY("[4]", "[2]", "%s", "%s", "\"C\"", "null", "null"),
             types[_i].dtype, types[_i].fill);
    brc_json *zarray = parsed(text);
    int rc = brc_zarr2_array_read(&doc, zarray, NULL, '.', reg, &err);
    ck_assert_msg(rc == BRC_OK, "%s", err.message);
    check_member(doc, "data_type", types[_i].v3);
    check_member(doc, "fill_value", types[_i].v3_fill);
    if (types[_i].endian)
        snprintf(codecs, sizeof(codecs),
                 "[{\"name\":\"bytes\",\"configuration\":{\"endian\":\"%s\"}}]", types[_i].endian);
    else
        snprintf(codecs, sizeof(codecs), "[{\"name\":\"bytes\"}]");
    check_member(doc, "codecs", codecs);

    /* and the same .zarray again, of the document or its note */
    rc = brc_zarr2_array_write(&back, &zattrs, doc, 0, reg, &err);
    ck_assert_msg(rc == BRC_OK, "%s", err.message);
    check_member(back, "dtype", types[_i].dtype);
    if (strcmp(types[_i].v3_fill, "\"\"") != 0)
        check_member(back, "fill_value", types[_i].fill);
    ck_assert_ptr_null(zattrs);
    brc_json_free(back);
    brc_json_free(doc);
    brc_json_free(zarray);
    brc_registry_free(reg);
}

static const struct {
    const char *dtype, *filters, *fill, *back;
} open_fills[] = {
    { "\"|O\"", "[{\"id\": \"vlen-utf8\"}]", "0", "\"\"" },
    { "\"<U5\"", "null", "0", "\"\"" },
    { "\"|S2\"", "null", "0", "\"\"" },
    { "[[\"a\", \"|u1\"]]", "null", "0", "\"AA==\"" },
    { "[[\"a\", \"|u1\", [2]]]", "null", "0", "\"AAA=\"" },
    { "[[\"a\", \"|u1\", [0]]]", "null", "null", "null" }, /* opaque: all chunks are kept */
};

/* A fill value that is not an element of the type: the message says as what it was taken. */
EACH(open_fill_values_are_said, open_fills)
{
    brc_registry *reg;
    brc_error err = BRC_ERROR_INIT;
    char text[400];
    brc_json *doc, *back, *zattrs;

    ck_assert_int_eq(brc_registry_new(&reg, &err), BRC_OK);
    for (int unknown = 0; unknown < 2; unknown++) { /* with a note, and without */
        snprintf(text, sizeof(text), ZARRAY("[4]", "[2]", "%s", "%s", "\"C\"%s", "%s", "null"),
                 open_fills[_i].dtype, open_fills[_i].fill, unknown ? ", \"mine\": 1" : "",
                 open_fills[_i].filters);
        brc_json *zarray = parsed(text);
        int rc = brc_zarr2_array_read(&doc, zarray, NULL, '.', reg, &err);
        ck_assert_msg(rc == BRC_OK, "%s", err.message);
        rc = brc_zarr2_array_write(&back, &zattrs, doc, 0, reg, &err);
        ck_assert_msg(rc == BRC_OK, "%s", err.message);
        check_member(back, "fill_value", open_fills[_i].back);
        check_member(back, "dtype", open_fills[_i].dtype);
        ck_assert_int_eq(brc_json_member(back, "mine") != NULL, unknown);
        brc_json_free(back);
        brc_json_free(doc);
        brc_json_free(zarray);
    }
    brc_registry_free(reg);
}

#define LITTLE "{\"name\":\"bytes\",\"configuration\":{\"endian\":\"little\"}}"

static const struct {
    const char *dtype, *order, *filters, *compressor, *codecs;
} chains[] = {
    { "\"<i4\"", "\"C\"", "[]", "null", "[" LITTLE "]" },
    { "\"<i4\"", "\"F\"", "null", "null",
      "[{\"name\":\"transpose\",\"configuration\":{\"order\":[2,1,0]}}," LITTLE "]" },
    { "\"<i4\"", "\"F\"", "[{\"id\":\"delta\",\"dtype\":\"<i4\",\"astype\":\">i2\"}]",
      "{\"id\":\"zlib\",\"level\":3}",
      "[{\"name\":\"transpose\",\"configuration\":{\"order\":[2,1,0]}},"
      "{\"name\":\"numcodecs.delta\",\"configuration\":{\"dtype\":\"<i4\",\"astype\":\">i2\"}},"
      "{\"name\":\"bytes\",\"configuration\":{\"endian\":\"big\"}},"
      "{\"name\":\"numcodecs.zlib\",\"configuration\":{\"level\":3}}]" },
    { "\"<i4\"", "\"C\"", "[{\"id\":\"delta\",\"dtype\":\"int32\",\"astype\":\"u1\"}]", "null",
      "[{\"name\":\"numcodecs.delta\",\"configuration\":{\"dtype\":\"int32\",\"astype\":\"u1\"}},"
      "{\"name\":\"bytes\"}]" },
    { "\"<f8\"", "\"C\"",
      "[{\"id\":\"fixedscaleoffset\",\"dtype\":\"<f8\",\"astype\":\"|u1\",\"scale\":1,"
      "\"offset\":0},{\"id\":\"shuffle\",\"elementsize\":1}]",
      "{\"id\":\"blosc\",\"shuffle\":-1,\"cname\":\"zstd\",\"clevel\":1,\"blocksize\":0}",
      "[{\"name\":\"numcodecs.fixedscaleoffset\",\"configuration\":{\"dtype\":\"<f8\","
      "\"astype\":\"|u1\",\"scale\":1,\"offset\":0}},{\"name\":\"bytes\"},"
      "{\"name\":\"numcodecs.shuffle\",\"configuration\":{\"elementsize\":1}},"
      "{\"name\":\"blosc\",\"configuration\":{\"cname\":\"zstd\",\"clevel\":1,"
      "\"shuffle\":\"bitshuffle\",\"typesize\":1,\"blocksize\":0}}]" },
    { "\"<i4\"", "\"C\"", "null",
      "{\"id\":\"blosc\",\"cname\":\"lz4\",\"clevel\":5,\"shuffle\":-1,\"blocksize\":0}",
      "[" LITTLE ",{\"name\":\"blosc\",\"configuration\":{\"cname\":\"lz4\",\"clevel\":5,"
      "\"shuffle\":\"shuffle\",\"typesize\":4,\"blocksize\":0}}]" },
    { "\"<i4\"", "\"C\"", "null", "{\"id\":\"zstd\",\"level\":100}",
      "[" LITTLE ",{\"name\":\"zstd\",\"configuration\":{\"level\":22}}]" },
    { "\"<i4\"", "\"C\"", "null", "{\"id\":\"gzip\",\"level\":9}",
      "[" LITTLE ",{\"name\":\"gzip\",\"configuration\":{\"level\":9}}]" },
    { "\"<i4\"", "\"C\"", "[{\"id\":\"crc32c\"}]", "{\"id\":\"crc32\"}",
      "[" LITTLE ",{\"name\":\"crc32c\"},{\"name\":\"numcodecs.crc32\",\"configuration\":{}}]" },
    { "\"<i4\"", "\"C\"", "null", "{\"id\":\"nobody.knows\",\"x\":[1]}",
      "[" LITTLE ",{\"name\":\"numcodecs.nobody.knows\",\"configuration\":{\"x\":[1]}}]" },
    { "\"<f4\"", "\"C\"", "null", "{\"id\":\"zfpy\",\"mode\":4}",
      "[{\"name\":\"numcodecs.zfpy\",\"configuration\":{\"mode\":4}}]" },
    { "\"|u1\"", "\"C\"", "null", "{\"id\":\"imagecodecs_lzf\",\"header\":true}",
      "[{\"name\":\"bytes\"},{\"name\":\"imagecodecs_lzf\",\"configuration\":{\"header\":true}}]" },
    { "\"|b1\"", "\"C\"", "[{\"id\":\"packbits\"}]", "null",
      "[{\"name\":\"numcodecs.packbits\",\"configuration\":{}},{\"name\":\"bytes\"}]" },
    { "\"|O\"", "\"C\"", "[{\"id\":\"vlen-utf8\"}]", "{\"id\":\"bz2\",\"level\":1}",
      "[{\"name\":\"vlen-utf8\"},{\"name\":\"numcodecs.bz2\",\"configuration\":{\"level\":1}}]" },
    { "\"|O\"", "\"F\"", "[{\"id\":\"vlen-bytes\"},{\"id\":\"adler32\"}]", "null",
      "[{\"name\":\"transpose\",\"configuration\":{\"order\":[2,1,0]}},{\"name\":\"vlen-bytes\"},"
      "{\"name\":\"numcodecs.adler32\",\"configuration\":{}}]" },
    { "\"<U5\"", "\"C\"",
      "[{\"id\":\"categorize\",\"labels\":[\"a\"],\"dtype\":\"<U5\",\"astype\":\"|u1\"}]", "null",
      "[{\"name\":\"numcodecs.categorize\",\"configuration\":{\"labels\":[\"a\"],"
      "\"dtype\":\"<U5\",\"astype\":\"|u1\"}},{\"name\":\"bytes\"}]" },
    { "\"|O\"", "\"C\"",
      "[{\"id\":\"categorize\",\"labels\":[\"a\"],\"dtype\":\"|O\",\"astype\":\"<u2\"},"
      "{\"id\":\"delta\",\"dtype\":\"<u2\",\"astype\":\"<u2\"}]",
      "{\"id\":\"zlib\",\"level\":1}",
      "[{\"name\":\"numcodecs.categorize\",\"configuration\":{\"labels\":[\"a\"],"
      "\"dtype\":\"|O\",\"astype\":\"<u2\"}},{\"name\":\"numcodecs.delta\",\"configuration\":"
      "{\"dtype\":\"<u2\",\"astype\":\"<u2\"}}," LITTLE
      ",{\"name\":\"numcodecs.zlib\",\"configuration\":{\"level\":1}}]" },
    { "\"|O\"", "\"C\"", "[{\"id\":\"pickle\",\"protocol\":5}]", "null",
      "[{\"name\":\"numcodecs.pickle\",\"configuration\":{\"protocol\":5}}]" },
};

EACH(P21_order_filters_and_compressor, chains)
{
    brc_registry *reg;
    brc_error err = BRC_ERROR_INIT;
    char text[600];
    brc_json *doc, *back, *zattrs;

    ck_assert_int_eq(brc_registry_new(&reg, &err), BRC_OK);
    snprintf(text, sizeof(text), ZARRAY("[4,5,6]", "[2,2,2]", "%s", "0", "%s", "%s", "%s"),
             chains[_i].dtype, chains[_i].order, chains[_i].filters, chains[_i].compressor);
    brc_json *zarray = parsed(text);
    int rc = brc_zarr2_array_read(&doc, zarray, NULL, '.', reg, &err);
    ck_assert_msg(rc == BRC_OK, "%s", err.message);
    check_member(doc, "codecs", chains[_i].codecs);
    rc = brc_zarr2_array_write(&back, &zattrs, doc, 0, reg, &err);
    ck_assert_msg(rc == BRC_OK, "%s", err.message);
    check_member(back, "dtype", chains[_i].dtype);
    check_member(back, "order", chains[_i].order);
    check_member(back, "filters", chains[_i].filters);
    check_member(back, "compressor", chains[_i].compressor);
    brc_json_free(back);
    brc_json_free(doc);
    brc_json_free(zarray);
    brc_registry_free(reg);
}

#define GOOD(dtype, fill, filters, compressor) \
    ZARRAY("[4,4]", "[2,2]", dtype, fill, "\"C\"", filters, compressor)

static const struct {
    const char *zarray, *says;
} refused[] = {
    { "{\"zarr_format\": 3}", "/zarr_format" },
    { "{\"zarr_format\": 2.0}", "/zarr_format" },
    { "[]", "not a JSON object" },
    { ZARRAY("[4]", "[2,2]", "\"|u1\"", "0", "\"C\"", "null", "null"), "/chunks" },
    { ZARRAY("[4]", "[0]", "\"|u1\"", "0", "\"C\"", "null", "null"), "/chunks" },
    { ZARRAY("[-4]", "[2]", "\"|u1\"", "0", "\"C\"", "null", "null"), "/shape" },
    { ZARRAY("4", "[2]", "\"|u1\"", "0", "\"C\"", "null", "null"), "/shape" },
    { ZARRAY("[4]", "[2]", "\"|u1\"", "0", "\"A\"", "null", "null"), "/order" },
    { "{\"zarr_format\":2,\"shape\":[4],\"chunks\":[2],\"dtype\":\"|u1\",\"order\":\"C\"}",
      "/fill_value: is missing" },
    { "{\"zarr_format\":2,\"shape\":[4],\"chunks\":[2],\"dtype\":\"|u1\",\"order\":\"C\","
      "\"fill_value\":0,\"dimension_separator\":null}",
      "/dimension_separator" },
    { "{\"zarr_format\":2,\"shape\":[4],\"chunks\":[2],\"dtype\":\"|u1\",\"order\":\"C\","
      "\"fill_value\":0,\"dimension_separator\":\"-\"}",
      "/dimension_separator" },
    { GOOD("\"foo\"", "0", "null", "null"), "/dtype: \"foo\"" },
    { GOOD("\"u2\"", "0", "null", "null"), "/dtype" },
    { GOOD("\"|i4\"", "0", "null", "null"), "does not say its byte order" },
    { GOOD("\"<f16\"", "0", "null", "null"), "/dtype: \"<f16\"" },
    { GOOD("\"<i3\"", "0", "null", "null"), "/dtype" },
    { GOOD("\"|S0\"", "\"\"", "null", "null"), "have no bytes" },
    { GOOD("\"<M8[fortnight]\"", "0", "null", "null"), "/dtype" },
    { GOOD("\"<M8[0s]\"", "0", "null", "null"), "/dtype" },
    { GOOD("[]", "0", "null", "null"), "/dtype" },
    { GOOD("[[\"a\"]]", "0", "null", "null"), "/dtype" },
    { GOOD("7", "0", "null", "null"), "/dtype" },
    { GOOD("[[\"a\", \"<i4\", [2, -1]]]", "0", "null", "null"), "/dtype: the shape of a field" },
    { GOOD("[[\"a\", \"<i4\", \"2\"]]", "0", "null", "null"), "/dtype: the shape of a field" },
    { GOOD("[[\"a\", \"<i4\", 2, 3]]", "0", "null", "null"), "/dtype: a field must be" },
    { GOOD("\"|u1\"", "\"1\"", "null", "null"), "/fill_value" },
    { GOOD("\"|u1\"", "1.5", "null", "null"), "/fill_value" },
    { GOOD("\"|b1\"", "2", "null", "null"), "/fill_value" },
    { GOOD("\"<U2\"", "7", "null", "null"), "/fill_value" },
    { GOOD("\"|V2\"", "\"AQID\"", "null", "null"), "/fill_value: is 3 bytes" },
    { GOOD("\"|V2\"", "\"!!\"", "null", "null"), "base64" },
    { GOOD("\"|u1\"", "0", "7", "null"), "/filters" },
    { GOOD("\"|u1\"", "0", "[{}]", "null"), "/filters/0" },
    { GOOD("\"|u1\"", "0", "null", "{\"level\":1}"), "/compressor" },
    { GOOD("\"|u1\"", "0", "null", "\"zlib\""), "/compressor" },
    { GOOD("\"|O\"", "0", "null", "null"), "/filters" },
    { GOOD("\"|O\"", "0", "[{\"id\":\"zlib\"}]", "null"), "/filters/0" },
    { GOOD("\"|u1\"", "0", "[{\"id\":\"categorize\",\"labels\":[]}]", "null"),
      "/filters/0: \"categorize\" is for an array of texts" },
    { GOOD("\"|u1\"", "0", "[{\"id\":\"vlen-utf8\"}]", "null"), "/filters/0" },
    { GOOD("\"<i4\"", "0", "[{\"id\":\"shuffle\"},{\"id\":\"delta\",\"dtype\":\"<i4\"}]", "null"),
      "/filters/1: \"delta\"" },
    { GOOD("\">i4\"", "0", "[{\"id\":\"delta\",\"dtype\":\"<i4\"}]", "null"), "byte order" },
    { GOOD("\"<i4\"", "0", "null", "{\"id\":\"blosc\",\"shuffle\":3}"), "/compressor" },
};

EACH(refused_documents, refused)
{
    brc_registry *reg;
    brc_error err = BRC_ERROR_INIT;
    brc_json *zarray = parsed(refused[_i].zarray), *doc = NULL;
    ck_assert_int_eq(brc_registry_new(&reg, &err), BRC_OK);
    int rc = brc_zarr2_array_read(&doc, zarray, NULL, '.', reg, &err);
    ck_assert_msg(rc == BRC_EINVAL || rc == BRC_EUNSUPPORTED, "%d", rc);
    ck_assert_ptr_null(doc);
    ck_assert_msg(strstr(err.message, refused[_i].says), "\"%s\" is not in \"%s\"",
                  refused[_i].says, err.message);
    brc_json_free(zarray);
    brc_registry_free(reg);
}

TEST(words_become_texts)
{
    brc_json *doc = parsed("{\"a\": [NaN, Infinity, -Infinity, -1]}");
    const brc_json *a = brc_json_member(doc, "a");
    brc_json_nan_to_text(doc);
    ck_assert(brc_json_is(brc_json_item(a, 0), "NaN"));
    ck_assert(brc_json_is(brc_json_item(a, 1), "Infinity"));
    ck_assert(brc_json_is(brc_json_item(a, 2), "-Infinity"));
    ck_assert_int_eq(brc_json_kind(brc_json_item(a, 2)), BRC_JSON_STRING);
    ck_assert_int_eq(brc_json_kind(brc_json_item(a, 3)), BRC_JSON_NUMBER);
    brc_json_free(doc);
}

/* ---- hierarchies -------------------------------- */

static brc_json *node_document(exchange_kit *kit, const char *path)
{
    brc_buf text = BRC_BUF_INIT;
    ck_assert_int_eq(brc_node_json(&text, kit->session, path, &kit->err), BRC_OK);
    brc_json *doc = parsed((const char *)text.data);
    brc_buf_dispose(&text);
    return doc;
}

static brc_json *file_document(const char *file)
{
    brc_buf text = exchange_read(file);
    brc_json *doc;
    ck_assert_int_eq(brc_json_parse(&doc, (const char *)text.data, text.len, BRC_JSON_NAN,
                                    NULL), BRC_OK);
    brc_buf_dispose(&text);
    return doc;
}

/* 3 by 3, chunks of 2 by 2 in Fortran order, big-endian; one chunk is not there. */
static void make_v2(exchange_kit *kit)
{
    exchange_text(kit, "in/.zgroup", "{\"zarr_format\": 2}");
    exchange_text(kit, "in/.zattrs", "{\"missing\": NaN, \"big\": 12345678901234567890}");
    exchange_text(kit, "in/.zmetadata", "this is not even read");
    exchange_text(kit, "in/g/a/.zarray",
                  ZARRAY("[3,3]", "[2,2]", "\">i2\"", "-1", "\"F\"", "null", "null"));
    exchange_text(kit, "in/g/a/.zattrs", "{\"_ARRAY_DIMENSIONS\": [\"y\", \"x\"], \"u\": \"m\"}");
    exchange_file(kit, "in/g/a/0.0", "\0\1\0\4\0\2\0\5", 8);
    exchange_file(kit, "in/g/a/0.1", "\0\3\0\6\7\7\7\7", 8);
    exchange_file(kit, "in/g/a/1.0", "\0\7\7\7\0\10\7\7", 8);
    exchange_text(kit, "in/g/a/README", "no chunk");
}

static const int16_t v2_values[9] = { 1, 2, 3, 4, 5, 6, 7, 8, -1 };

TEST(a_hierarchy_comes_in_and_goes_out)
{
    exchange_kit kit;
    int kind;
    exchange_start(&kit);
    make_v2(&kit);
    exchange_import_ok(&kit, exchange_path(&kit, "in"), NULL, NULL); /* takes the empty root over */
    void *got = exchange_elements(kit.session, "/g/a", sizeof(v2_values));
    ck_assert_mem_eq(got, v2_values, sizeof(v2_values));
    free(got);
    ck_assert_int_eq(brc_node_kind(&kind, kit.session, "/g", &kit.err), BRC_OK);
    ck_assert_int_eq(kind, BRC_GROUP); /* though there is no .zgroup */
    brc_json *doc = node_document(&kit, "/g/a");
    check_member(doc, "dimension_names", "[\"y\", \"x\"]");
    check_member(doc, "attributes", "{\"u\": \"m\"}"); /* the names are not said twice */
    check_member(doc, "chunk_key_encoding",
                 "{\"name\":\"v2\",\"configuration\":{\"separator\":\".\"}}");
    ck_assert_ptr_null(brc_json_member(doc, BRC_ZARR2_NOTE)); /* nothing was lost */
    brc_json_free(doc);
    doc = node_document(&kit, "/");
    check_member(doc, "attributes", "{\"missing\": NaN, \"big\": 12345678901234567890}");
    brc_json_free(doc);

    exchange_export_ok(&kit, "/", exchange_path(&kit, "out"), "zarr2", BRC_XFER_CONSOLIDATED);
    static const char *const chunks[] = { "0.0", "0.1", "1.0" };
    for (int i = 0; i < 3; i++) {
        char from[40], to[40];
        snprintf(from, sizeof(from), "in/g/a/%s", chunks[i]);
        snprintf(to, sizeof(to), "out/g/a/%s", chunks[i]);
        brc_buf a = exchange_read(exchange_path(&kit, from));
        brc_buf b = exchange_read(exchange_path(&kit, to));
        ck_assert_uint_eq(a.len, b.len);
        ck_assert_mem_eq(a.data, b.data, a.len);
        brc_buf_dispose(&a);
        brc_buf_dispose(&b);
    }
    ck_assert_int_eq(exchange_exists(exchange_path(&kit, "out/g/a/1.1")), 0);
    brc_json *zmetadata = file_document(exchange_path(&kit, "out/.zmetadata"));
    check_member(zmetadata, "zarr_consolidated_format", "1");
    const brc_json *all = brc_json_member(zmetadata, "metadata");
    ck_assert_uint_eq(brc_json_count(all), 5);
    check_member(all, "g/.zgroup", "{\"zarr_format\": 2}");
    check_member(all, "g/a/.zattrs", "{\"_ARRAY_DIMENSIONS\": [\"y\", \"x\"], \"u\": \"m\"}");
    brc_json *zarray = file_document(exchange_path(&kit, "out/g/a/.zarray"));
    ck_assert_int_eq(brc_json_equal(zarray, brc_json_member(all, "g/a/.zarray")), 1);
    check_member(zarray, "dtype", "\">i2\"");
    check_member(zarray, "order", "\"F\"");
    brc_json_free(zarray);
    brc_json_free(zmetadata);
    exchange_stop(&kit);
}

TEST(version_3_wins_over_version_2)
{
    exchange_kit kit;
    exchange_start(&kit);
    make_v2(&kit);
    exchange_text(&kit, "in/g/a/zarr.json",
                  "{\"zarr_format\": 3, \"node_type\": \"group\", \"attributes\": {\"v\": 3}}");
    exchange_import_ok(&kit, exchange_path(&kit, "in"), "/x", NULL);
    int kind;
    ck_assert_int_eq(brc_node_kind(&kind, kit.session, "/x/g/a", &kit.err), BRC_OK);
    ck_assert_int_eq(kind, BRC_GROUP);
    exchange_stop(&kit);
}

/* Nested chunks, though the document does not say "/". */
TEST(a_missing_separator_is_found_out)
{
    exchange_kit kit;
    exchange_start(&kit);
    exchange_text(&kit, "in/.zarray",
                  ZARRAY("[2,2]", "[1,2]", "\"|u1\"", "null", "\"C\"", "null", "null"));
    exchange_file(&kit, "in/1/0", "\5\6", 2);
    exchange_import_ok(&kit, exchange_path(&kit, "in"), "/x", NULL);
    void *got = exchange_elements(kit.session, "/x", 4);
    ck_assert_mem_eq(got, "\0\0\5\6", 4);
    free(got);
    exchange_export_ok(&kit, "/x", exchange_path(&kit, "out"), "zarr2", 0);
    ck_assert_int_eq(exchange_exists(exchange_path(&kit, "out/1/0")), 1);
    brc_json *zarray = file_document(exchange_path(&kit, "out/.zarray"));
    check_member(zarray, "dimension_separator", "\"/\"");
    check_member(zarray, "fill_value", "null");
    brc_json_free(zarray);
    exchange_stop(&kit);
}

/* The note counts while it says what the document says, whatever the shape. */
TEST(the_note_is_used_while_it_is_true)
{
    exchange_kit kit;
    brc_array *a;
    uint64_t shape[1] = { 6 };
    exchange_start(&kit);
    exchange_text(&kit, "in/.zarray",
                  "{\"zarr_format\": 2, \"shape\": [4], \"chunks\": [2], \"dtype\": \"|u1\", "
                  "\"fill_value\": null, \"order\": \"F\", \"filters\": [], \"mine\": [1, 2]}");
    exchange_file(&kit, "in/0", "\5\6", 2);
    exchange_import_ok(&kit, exchange_path(&kit, "in"), "/x", NULL);
    ck_assert_int_eq(brc_array_open(&a, kit.session, "/x", &kit.err), BRC_OK);
    ck_assert_int_eq(brc_array_resize(a, shape, &kit.err), BRC_OK);
    exchange_export_ok(&kit, "/x", exchange_path(&kit, "1"), "zarr2", 0);
    brc_json *zarray = file_document(exchange_path(&kit, "1/.zarray"));
    check_member(zarray, "shape", "[6]");
    check_member(zarray, "fill_value", "null");
    check_member(zarray, "order", "\"F\"");
    check_member(zarray, "mine", "[1, 2]");
    brc_json_free(zarray);
    int rc = brc_array_set_codecs(
        a, "[{\"name\": \"bytes\"}, {\"name\": \"gzip\", \"configuration\": {\"level\": 1}}]", 1,
        &kit.err);
    ck_assert_msg(rc == BRC_OK, "%s", kit.err.message);
    exchange_export_ok(&kit, "/x", exchange_path(&kit, "2"), "zarr2", 0);
    zarray = file_document(exchange_path(&kit, "2/.zarray"));
    check_member(zarray, "compressor", "{\"id\": \"gzip\", \"level\": 1}");
    check_member(zarray, "fill_value", "null");
    brc_json_free(zarray);
    brc_array_free(a);
    exchange_stop(&kit);
}

static const struct {
    const char *dtype, *fill, *codecs, *keys, *name, *says;
} to_v2[] = {
    { "int16", "-3", NULL, NULL, "t", NULL },
    { "uint16", NULL, "[{\"name\":\"bytes\",\"configuration\":{\"endian\":\"big\"}},\"crc32c\"]",
      "v2", NULL, NULL },
    { "float32", "\"NaN\"", "[{\"name\":\"bytes\",\"configuration\":{\"endian\":\"little\"}}]",
      NULL, NULL, NULL },
    { "float32", "\"0x7fc00001\"", NULL, NULL, NULL, "/fill_value" },
    { "r16", "[1, 2]", "[{\"name\":\"bytes\"}]", NULL, NULL, NULL },
    { "bfloat16", NULL, NULL, NULL, NULL, "/data_type" },
    { "int16", NULL,
      "[{\"name\":\"sharding_indexed\",\"configuration\":{\"chunk_shape\":[1],\"codecs\":[{"
      "\"name\":"
      "\"bytes\",\"configuration\":{\"endian\":\"little\"}}],\"index_codecs\":[{\"name\":\"bytes\","
      "\"configuration\":{\"endian\":\"little\"}}]}}]",
      NULL, NULL, "/codecs/0: Zarr v2 has no form for \"sharding_indexed\"" },
    { "int16", NULL, NULL, "v2", "x", NULL },
    { "int16", NULL,
      "[{\"name\":\"numcodecs.delta\",\"configuration\":{\"dtype\":\"i2\",\"astype\":\"int16\"}},"
      "{\"name\":\"bytes\",\"configuration\":{\"endian\":\"big\"}}]",
      NULL, NULL, NULL },
};

EACH(version_3_as_version_2, to_v2)
{
    exchange_kit kit;
    brc_array_spec spec = BRC_ARRAY_SPEC_INIT;
    static const uint64_t shape[1] = { 5 }, chunk[1] = { 2 };
    static const uint8_t data[20] = { 1, 2, 3, 4, 5, 6, 7, 8, 9, 10 };
    brc_array *a;
    exchange_start(&kit);
    spec.ndim = 1;
    spec.shape = shape;
    spec.chunk = chunk;
    spec.dtype = to_v2[_i].dtype;
    spec.fill = to_v2[_i].fill;
    spec.codecs_json = to_v2[_i].codecs;
    spec.chunk_key_encoding = to_v2[_i].keys;
    if (to_v2[_i].name)
        spec.dimension_names = &to_v2[_i].name;
    int rc = brc_array_create(&a, kit.session, "/x", &spec, &kit.err);
    ck_assert_msg(rc == BRC_OK, "%s", kit.err.message);
    size_t len = 5 * brc_array_describe(a)->item_size;
    ck_assert_int_eq(brc_array_write(a, NULL, data, len, &kit.err), BRC_OK);
    brc_array_free(a);
    if (to_v2[_i].says) {
        brc_xfer_opts opts = BRC_XFER_OPTS_INIT;
        opts.format = "zarr2";
        rc = brc_export(kit.session, "/x", exchange_path(&kit, "out"), &opts, &kit.err);
        ck_assert_int_eq(rc, BRC_EUNSUPPORTED);
        ck_assert_msg(strstr(kit.err.message, to_v2[_i].says), "%s", kit.err.message);
        ck_assert_int_eq(exchange_exists(exchange_path(&kit, "out")), 0);
    } else {
        exchange_export_ok(&kit, "/x", exchange_path(&kit, "out.zarr.zip"), "zarr2", 0);
        exchange_import_ok(&kit, exchange_path(&kit, "out.zarr.zip"), "/y", NULL);
        void *got = exchange_elements(kit.session, "/y", len);
        ck_assert_mem_eq(got, data, len);
        free(got);
        brc_json *x = node_document(&kit, "/x"), *y = node_document(&kit, "/y");
        ck_assert_int_eq(
            brc_json_equal(brc_json_member(x, "fill_value"), brc_json_member(y, "fill_value")), 1);
        ck_assert_int_eq(
            brc_json_equal(brc_json_member(x, "data_type"), brc_json_member(y, "data_type")), 1);
        const brc_json *names = brc_json_member(y, "dimension_names");
        ck_assert_int_eq(names != NULL, to_v2[_i].name != NULL);
        if (names)
            ck_assert(brc_json_is(brc_json_item(names, 0), to_v2[_i].name));
        brc_json_free(x);
        brc_json_free(y);
    }
    exchange_stop(&kit);
}

brc_json *zarr2_document(size_t i)
{
    size_t ntypes = sizeof(types) / sizeof(types[0]);
    char text[700];

    if (i < ntypes) {
        snprintf(text, sizeof(text), GOOD("%s", "%s", "null", "null"), types[i].dtype,
                 types[i].fill);
        return parsed(text);
    }
    i -= ntypes;
    if (i >= sizeof(chains) / sizeof(chains[0]))
        return NULL;
    snprintf(text, sizeof(text), ZARRAY("[4,5,6]", "[2,2,2]", "%s", "0", "%s", "%s", "%s"),
             chains[i].dtype, chains[i].order, chains[i].filters, chains[i].compressor);
    return parsed(text);
}
