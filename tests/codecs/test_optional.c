/* zarrs.optional: the data type, and the codec of this name. The bytes are written out by
 * zarrs' own description; what zarrs wrote is among the conformance tests. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../../src/base/buf.h"
#include "../kit/chain_fixture.h"
#include "../kit/codec_kit.h"
#include "../kit/dtype_kit.h"
#include "../kit/suite.h"
#include "../kit/type_kit.h"

TEST_SUITE(optional);

#define MAYBE(inner) "{\"name\":\"zarrs.optional\",\"configuration\":" inner "}"
#define NAME(name) "{\"name\":\"" name "\",\"configuration\":{}}"
#define MAYBE_I16 MAYBE(NAME("int16"))
#define MAYBE_TEXT MAYBE(NAME("string"))
#define CODEC(mask, data)                                                                       \
    "{\"name\":\"zarrs.optional\",\"configuration\":{\"mask_codecs\":[" mask "],\"data_codecs\":[" \
    data "]}}"
#define PACKED "{\"name\":\"packbits\"}"
#define LITTLE "{\"name\":\"bytes\",\"configuration\":{\"endian\":\"little\"}}"
#define VLEN "{\"name\":\"vlen-utf8\"}"

CASE("type", .setup = dtype_kit_setup, .teardown = dtype_kit_teardown);

/* ---- the type ----------------------------------------------------------------------- */

TEST(fill_values_are_null_or_a_list_of_one)
{
    kit_check(MAYBE_I16, "null", "000000", NULL, NULL, "null");
    kit_check(MAYBE_I16, "[-2]", "01feff", NULL, "-2", "-2");
    kit_check(MAYBE(NAME("float32")), "[\"0x7f800001\"]", "010100807f", NULL, "\"NaN\"", "nan");
    kit_check(MAYBE_TEXT, "null", "00000000", NULL, NULL, "null");
    kit_check(MAYBE_TEXT, "[\"\"]", "0100000001", NULL, "\"\"", "''");
    kit_check(MAYBE_TEXT, "[\"null\"]", "05000000016e756c6c", NULL, "\"null\"", "'null'");
    kit_check(MAYBE(MAYBE_I16), "null", "00000000", NULL, NULL, "null");
    kit_check(MAYBE(MAYBE_I16), "[null]", "01000000", NULL, NULL, "[null]");
    kit_check(MAYBE(MAYBE_I16), "[[5]]", "01010500", NULL, "5", "5");
    kit_check(MAYBE(MAYBE_TEXT), "[null]", "0100000001", NULL, NULL, "[null]");
    kit_check(MAYBE(MAYBE_TEXT), "[[\"a\"]]", "03000000010161", NULL, "\"a\"", "'a'");
    kit_check(MAYBE(NAME("complex64")), "[[1.0,2.0]]", "010000803f00000040", NULL, NULL, "(1+2j)");
    kit_refuses(MAYBE_I16, "5", "null, or a list of one");
    kit_refuses(MAYBE_I16, "[]", "null, or a list of one");
    kit_refuses(MAYBE_I16, "[1,2]", "null, or a list of one");
    kit_refuses(MAYBE_I16, "[70000]", "70000");
    kit_refuses(MAYBE_I16, "[null]", "null");
    kit_refuses(MAYBE_TEXT, "[5]", "5");
}

static void scans(const char *json, const char *text, const void *want, size_t len)
{
    brc_dtype *type = kit_open(json);
    brc_buf out = BRC_BUF_INIT;
    brc_error err = BRC_ERROR_INIT;

    ck_assert_msg(brc_dtype_parse_text(type, text, &out, &err) == BRC_OK, "%s", err.message);
    ck_assert_uint_eq(out.len, len);
    ck_assert_mem_eq(out.data, want, len);
    brc_buf_dispose(&out);
    brc_dtype_free(type);
}

TEST(people_type_the_value_itself)
{
    scans(MAYBE_I16, "null", "\0\0\0", 3);
    scans(MAYBE_I16, "-2", "\1\376\377", 3);
    scans(MAYBE_I16, "[7]", "\1\7\0", 3);
    scans(MAYBE_TEXT, "abc", "\4\0\0\0\1abc", 8);
    scans(MAYBE_TEXT, "\"null\"", "\5\0\0\0\1null", 9);
    scans(MAYBE_TEXT, "null", "\0\0\0\0", 4);
    scans(MAYBE(MAYBE_I16), "[null]", "\1\0\0\0", 4);
    scans(MAYBE(MAYBE_I16), "5", "\1\1\5\0", 4);
    scans(MAYBE(NAME("complex64")), "[1,2]", "\1\0\0\200\77\0\0\0\100", 9);
}

/* zarrs refuses an inner type without a configuration, so it is always written. */
TEST(it_has_one_spelling)
{
    static const char *const texts[] = { MAYBE_I16, MAYBE("{\"name\":\"int16\"}") };
    static const char date[] = MAYBE(
        "{\"name\":\"numpy.datetime64\",\"configuration\":{\"unit\":\"s\",\"scale_factor\":2}}");

    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        brc_dtype *type = kit_open(texts[i]);
        ck_assert_str_eq(type->json, MAYBE_I16);
        ck_assert_str_eq(type->inner->name, "int16");
        ck_assert_uint_eq(type->item_size, 3);
        brc_dtype_free(type);
    }
    brc_dtype *type = kit_open(date);
    ck_assert_str_eq(type->json, date);
    brc_dtype_free(type);
}

static const struct {
    const char *json, *says;
    int code;
} bad_types[] = {
    { "\"zarrs.optional\"", "needs a configuration", BRC_EINVAL },
    { MAYBE("{}"), "\"name\"", BRC_EINVAL },
    { MAYBE("{\"name\":\"int16\",\"must_understand\":true}"), "must_understand", BRC_EINVAL },
    { MAYBE("{\"name\":\"int16\",\"configuration\":5}"), "must be an object", BRC_EINVAL },
    { MAYBE(NAME("nonesuch")), "\"nonesuch\" is not known", BRC_EUNSUPPORTED },
    { MAYBE("{\"name\":\"raw_bytes\",\"configuration\":{\"length_bytes\":16777216}}"),
      "more than 16777216 bytes", BRC_EUNSUPPORTED },
    { "{\"name\":\"struct\",\"configuration\":{\"fields\":[{\"name\":\"a\",\"data_type\":" MAYBE_I16
      "}]}}",
      "a field cannot be missing", BRC_EINVAL },
};

EACH(wrong_types_are_refused, bad_types)
{
    brc_error err = BRC_ERROR_INIT;

    ck_assert_int_eq(kit_open_code(bad_types[_i].json, &err), bad_types[_i].code);
    ck_assert_msg(strstr(err.message, bad_types[_i].says) != NULL, "%s", err.message);
}

LOOP(the_type_holds_what_the_kit_asks, 0, 5)
{
    static const char *const types[] = { MAYBE_I16, MAYBE_TEXT, MAYBE(MAYBE(NAME("uint8"))),
                                         MAYBE(NAME("int4")), MAYBE(MAYBE(NAME("bytes"))) };
    char why[1024];
    type_kit kit = { .reg = dtype_kit_registry(), .type = types[_i], .seed = 5 };

    ck_assert_msg(type_kit_run(&kit, why, sizeof(why)) == 0, "%s", why);
}

/* A missing element has no value, and an element that is there is marked in one way. */
TEST(elements_are_made_canonical)
{
    uint8_t data[] = { 0, 5, 6, 9, 7, 8, 1, 1, 2 };
    brc_dtype *type = kit_open(MAYBE_I16);

    ck_assert_int_eq(brc_dtype_normalize(type, NULL, 0), 1);
    brc_dtype_normalize(type, data, 3);
    ck_assert_mem_eq(data, "\0\0\0\1\7\10\1\1\2", 9);
    brc_dtype_swap(type, data, data, 3);
    ck_assert_mem_eq(data, "\0\0\0\1\10\7\1\2\1", 9);
    brc_dtype_free(type);
}

/* ---- the codec ---------------------------------------------------------------------- */

static const char *const lists[] = {
    "[" CODEC(PACKED, LITTLE) "]",
    "[" CODEC("{\"name\":\"bytes\"},{\"name\":\"gzip\",\"configuration\":{\"level\":1}}",
              LITTLE
              ",{\"name\":\"crc32c\"}") ",{\"name\":\"zstd\",\"configuration\":{\"level\":1}}]",
    "[" CODEC(PACKED, VLEN) "]",
    "[" CODEC(PACKED, CODEC(PACKED, LITTLE)) "]",
    "[{\"name\":\"sharding_indexed\",\"configuration\":{\"chunk_shape\":[1,1],\"codecs\":[" CODEC(
        PACKED, VLEN) "],\"index_codecs\":[" LITTLE "]}}]",
};

CASE("codec", .setup = codecs_setup, .teardown = codecs_teardown);

EACH(chains_of_optional_elements_hold_what_the_kit_asks, lists)
{
    char why[1024] = "no data type was taken";
    codec_kit kit = { .reg = codecs_reg,
                      .codecs = lists[_i],
                      .ndim = _i == 4 ? 2 : -1,
                      .rounds = 8,
                      .seed = 8 };

    ck_assert_msg(codec_kit_run(&kit, why, sizeof(why)) == 0, "%s", why);
}

TEST(a_mask_and_the_values_that_are_there)
{
    static const uint64_t n[1] = { 4 };

    codecs_open("[" CODEC(PACKED, LITTLE) "]", MAYBE_I16, 1, n);
    codecs_expect_stored("\1\1\0\0\0\0\1\2\0\1\3\4", 12,
                         "\1\0\0\0\0\0\0\0\6\0\0\0\0\0\0\0\15\1\0\2\0\3\4", 23);
    codecs_expect_stored("\0\0\0\0\0\0\0\0\0\0\0\0", 12, "\1\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0", 17);
    codecs_open("[" CODEC("{\"name\":\"bytes\"}",
                          "{\"name\":\"bytes\",\"configuration\":{\"endian\":\"big\"}}") "]",
                MAYBE_I16, 1, n);
    codecs_expect_stored("\0\0\0\1\1\2\0\0\0\0\0\0", 12,
                         "\4\0\0\0\0\0\0\0\2\0\0\0\0\0\0\0\0\1\0\0\2\1", 22);
    codecs_open("[" CODEC(PACKED, VLEN) "]", MAYBE_TEXT, 1, n);
    codecs_expect_stored("\3\0\0\0\1ab\0\0\0\0\1\0\0\0\1\0\0\0\0", 20,
                         "\1\0\0\0\0\0\0\0\16\0\0\0\0\0\0\0\5\2\0\0\0\2\0\0\0ab\0\0\0\0", 31);
    codecs_open("[" CODEC(PACKED, CODEC(PACKED, "{\"name\":\"bytes\"}")) "]",
                MAYBE(MAYBE(NAME("uint8"))), 1, n);
    codecs_expect_stored("\1\1\7\1\0\0\0\0\0\1\1\11", 12,
                         "\1\0\0\0\0\0\0\0\23\0\0\0\0\0\0\0\13"
                         "\1\0\0\0\0\0\0\0\2\0\0\0\0\0\0\0\5\7\11",
                         36);
    codecs_open("[" CODEC(PACKED, LITTLE) "]", MAYBE_I16, 0, NULL);
    codecs_expect_stored("\1\1\2", 3, "\1\0\0\0\0\0\0\0\2\0\0\0\0\0\0\0\1\1\2", 19);
}

TEST(damaged_chunks_are_refused)
{
    static const uint64_t n[1] = { 4 };

    codecs_open("[" CODEC("{\"name\":\"bytes\"}", LITTLE) "]", MAYBE_I16, 1, n);
    codecs_expect_corrupt("\4\0\0\0\0\0\0\0\0\0\0\0\0\0\0", 15, "15 bytes cannot hold two lengths");
    codecs_expect_corrupt("\4\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0", 19, "3 bytes follow");
    codecs_expect_corrupt("\377\377\377\377\377\377\377\377\5\0\0\0\0\0\0\0\0\0\0\0", 20,
                          "the mask has 18446744073709551615");
    codecs_expect_corrupt("\4\0\0\0\0\0\0\0\377\377\377\377\377\377\377\377\0\0\0\0", 20,
                          "the values have 18446744073709551615");
    codecs_expect_corrupt("\3\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0", 19, "the mask");
    codecs_expect_corrupt("\4\0\0\0\0\0\0\0\2\0\0\0\0\0\0\0\1\1\0\0\1\2", 22, "the values");
    codecs_expect_corrupt("\4\0\0\0\0\0\0\0\2\0\0\0\0\0\0\0\0\0\0\0\1\2", 22,
                          "2 bytes of values, but no element is present");
    codecs_open("[" CODEC(PACKED, VLEN) "]", MAYBE_TEXT, 1, n);
    codecs_expect_unstorable("\1\0\0\0\2\0\0\0\0\0\0\0\0\0\0\0\0", 17, "marked neither");
}

static const struct {
    const char *list, *dtype, *says;
} bad_lists[] = {
    { "[" LITTLE "]", MAYBE_I16, "use the codec \"zarrs.optional\"" },
    { "[" VLEN "]", MAYBE_TEXT, "use the codec \"zarrs.optional\"" },
    { "[" PACKED "]", MAYBE(NAME("uint8")), "packbits" },
    { "[" CODEC(PACKED, LITTLE) "]", "int16", "elements of int16 are never missing" },
    { "[" CODEC(PACKED, LITTLE) "]", MAYBE_TEXT, "\"data_codecs\": /codecs/0" },
    { "[" CODEC(LITTLE ",{\"name\":\"gzip\",\"configuration\":{\"level\":10}}", LITTLE) "]",
      MAYBE_I16, "\"mask_codecs\": /codecs/1" },
    { "[" CODEC("", LITTLE) "]", MAYBE_I16, "\"mask_codecs\"" },
    { "[{\"name\":\"zarrs.optional\",\"configuration\":{\"mask_codecs\":[" PACKED "]}}]", MAYBE_I16,
      "\"data_codecs\"" },
    { "[{\"name\":\"zarrs.optional\"}]", MAYBE_I16, "\"mask_codecs\"" },
    { "[{\"name\":\"zarrs.optional\",\"configuration\":{\"codecs\":[]}}]", MAYBE_I16, "codecs" },
};

EACH(wrong_lists_are_refused, bad_lists)
{
    static const uint64_t n[1] = { 4 };

    ck_assert_int_eq(codecs_try_open(bad_lists[_i].list, bad_lists[_i].dtype, 1, n), BRC_EINVAL);
    ck_assert_msg(strstr(codecs_err.message, bad_lists[_i].says) != NULL, "%s",
                  codecs_err.message);
}

/* Losses inside make the whole chain lossy, and a shard around it too. */
TEST(what_an_inner_chain_loses_is_known_outside)
{
    static const char lossy[] =
        CODEC(PACKED, "{\"name\":\"bitround\",\"configuration\":{\"keepbits\":3}}," LITTLE);
    static const uint64_t n[1] = { 4 };
    char shard[1024];

    codecs_open("[" CODEC(PACKED, LITTLE) "]", MAYBE(NAME("float32")), 1, n);
    ck_assert_int_eq(brc_chain_is_lossy(codecs_chain), 0);
    snprintf(shard, sizeof(shard), "[%s]", lossy);
    codecs_open(shard, MAYBE(NAME("float32")), 1, n);
    ck_assert_int_eq(brc_chain_is_lossy(codecs_chain), 1);
    snprintf(shard, sizeof(shard),
             "[{\"name\":\"sharding_indexed\",\"configuration\":{\"chunk_shape\":[2],"
             "\"codecs\":[%s],\"index_codecs\":[" LITTLE "]}}]",
             lossy);
    codecs_open(shard, MAYBE(NAME("float32")), 1, n);
    ck_assert_int_eq(brc_chain_is_lossy(codecs_chain), 1);
}
