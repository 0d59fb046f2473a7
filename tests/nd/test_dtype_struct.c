/* Records: their forms, byte order by field, and NumPy's lists of fields. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../../src/base/buf.h"
#include "../kit/dtype_kit.h"
#include "../kit/suite.h"

TEST_SUITE(dtype_struct);

#define STRUCT(fields) "{\"name\":\"struct\",\"configuration\":{\"fields\":[" fields "]}}"
#define LEGACY(fields) "{\"name\":\"structured\",\"configuration\":{\"fields\":[" fields "]}}"
#define FIELD(name, type) "{\"name\":\"" name "\",\"data_type\":" type "}"

#define POINT STRUCT(FIELD("x", "\"float32\"") "," FIELD("y", "\"float32\""))
#define MIXED                                                                                \
    STRUCT(FIELD("a", "\"int32\"") "," FIELD("b", "\"uint8\"") "," FIELD("c", "\"float64\""))
#define NESTED STRUCT(FIELD("p", POINT) "," FIELD("n", "\"int16\""))
#define RAW9M "{\"name\":\"raw_bytes\",\"configuration\":{\"length_bytes\":9000000}}"
#define HEAD "{\"name\":\"struct\",\"configuration\":{\"fields\":["
#define TEXT8 "{\"name\":\"fixed_length_utf32\",\"configuration\":{\"length_bytes\":8}}"

CASE("all", .setup = dtype_kit_setup, .teardown = dtype_kit_teardown);

TEST(T50_records_have_every_field)
{
    kit_check(MIXED, "{\"a\":1,\"b\":2,\"c\":1.5}", "0100000002000000000000f83f", NULL, NULL,
              "(1, 2, 1.5)");
    kit_check(MIXED, "{\"c\":1.5,\"b\":2,\"a\":1}", "0100000002000000000000f83f",
              "{\"a\":1,\"b\":2,\"c\":1.5}", NULL, "(1, 2, 1.5)");
    kit_check(NESTED, "{\"p\":{\"x\":1.0,\"y\":\"0x7f800001\"},\"n\":-1}", "0000803f0100807fffff",
              NULL, "{\"p\":{\"x\":1.0,\"y\":\"NaN\"},\"n\":-1}", "((1.0, nan), -1)");
    kit_check(STRUCT(FIELD("t", TEXT8)), "{\"t\":\"a\"}", "6100000000000000", NULL, NULL, "('a',)");
    kit_check(STRUCT(FIELD("a\\\"b", "\"bool\"")), "{\"a\\\"b\":true}", "01", NULL, NULL,
              "(True,)");
    kit_refuses(MIXED, "{\"a\":1}", "lacks the field \"b\"");
    kit_refuses(MIXED, "{\"a\":1,\"b\":2,\"c\":3,\"d\":4}", "4 members, not 3");
    kit_refuses(MIXED, "{\"a\":1,\"b\":256,\"c\":3}", "the field \"b\": fill value 256");
    kit_refuses(MIXED, "[1,2,3]", "an object with each field");
    kit_refuses(MIXED, "\"AQAAAAIAAAAAAAD4Pw==\"", "an object with each field");
    kit_refuses(MIXED, "0", "an object with each field");
    kit_refuses(MIXED, "null", "an object with each field");
    brc_dtype *type = kit_open(MIXED);
    ck_assert_int_eq(type->klass, BRC_CLASS_STRUCT);
    ck_assert_uint_eq(type->item_size, 13);
    ck_assert_uint_eq(type->swap_unit, 13);
    ck_assert_ptr_null(type->ops->number);
    ck_assert_ptr_null(kit_print(type, (const uint8_t *)"1234567890123", 12, BRC_PRINT_TEXT));
    brc_dtype_free(type);
    type = kit_open(STRUCT(FIELD("r", "\"r24\"")));
    ck_assert_uint_eq(type->swap_unit, 1);
    brc_dtype_free(type);
}

TEST(records_have_one_spelling)
{
    brc_dtype *type = kit_open(STRUCT("{\"data_type\":{\"name\":\"int32\",\"configuration\":{}},"
                                      "\"name\":\"a\"}"));
    ck_assert_str_eq(type->json, STRUCT(FIELD("a", "\"int32\"")));
    ck_assert_str_eq(type->name, "struct");
    brc_dtype_free(type);
    static const char legacy[] = LEGACY("[\"a\",{\"name\":\"int32\"}]");
    type = kit_open(legacy);
    ck_assert_str_eq(type->json, legacy);
    ck_assert_str_eq(type->name, "structured");
    brc_dtype_free(type);
}

TEST(T50_the_legacy_form_is_read)
{
    static const char *const mixed = LEGACY("[\"a\",\"int32\"],[\"b\",\"uint8\"]");
    kit_check(mixed, "\"AQAAAAI=\"", "0100000002", NULL, "{\"a\":1,\"b\":2}", "(1, 2)");
    kit_check(mixed, "{\"b\":2,\"a\":1}", "0100000002", "\"AQAAAAI=\"", "{\"a\":1,\"b\":2}",
              "(1, 2)");
    kit_check(mixed, "[1,2]", "0100000002", "\"AQAAAAI=\"", "{\"a\":1,\"b\":2}", "(1, 2)");
    kit_check(LEGACY("[\"p\"," LEGACY("[\"x\",\"int8\"],[\"y\",\"int4\"]") "]"), "\"/w8=\"", "ffff",
              "\"//8=\"", "{\"p\":{\"x\":-1,\"y\":-1}}", "((-1, -1),)");
    kit_refuses(mixed, "\"AQAAAA==\"", "base64 of 5 bytes");
    kit_refuses(mixed, "[1]", "1 items, not 2");
    kit_refuses(mixed, "[1,256]", "the field \"b\"");
    kit_refuses(mixed, "1", "structured");
}

TEST(wrong_records_are_refused)
{
    static const struct {
        const char *json, *says;
        int code;
    } rows[] = {
        { STRUCT(""), "one or more", BRC_EINVAL },
        { "struct", "\"fields\"", BRC_EINVAL },
        { "{\"name\":\"struct\",\"configuration\":{\"fields\":{}}}", "one or more", BRC_EINVAL },
        { STRUCT(FIELD("a", "\"int8\"") "," FIELD("a", "\"int8\"")), "two fields \"a\"",
          BRC_EINVAL },
        { STRUCT(FIELD("", "\"int8\"")), "not empty", BRC_EINVAL },
        { STRUCT(FIELD("a\\u0000", "\"int8\"")), "not empty", BRC_EINVAL },
        { STRUCT("{\"name\":1,\"data_type\":\"int8\"}"), "not empty", BRC_EINVAL },
        { STRUCT("{\"name\":\"a\"}"), "data_type", BRC_EINVAL },
        { STRUCT("{\"name\":\"a\",\"data_type\":\"int8\",\"offset\":0}"), "offset", BRC_EINVAL },
        { STRUCT("[\"a\",\"int8\"]"), "a field must be", BRC_EINVAL },
        { STRUCT(FIELD("a", "\"string\"")), "no fixed size", BRC_EINVAL },
        { STRUCT(FIELD("a", "\"bytes\"")), "no fixed size", BRC_EINVAL },
        { STRUCT(FIELD("a", "\"char\"")), "the field \"a\"", BRC_EUNSUPPORTED },
        { STRUCT(FIELD("a", "7")), "the field \"a\"", BRC_EINVAL },
        { STRUCT(FIELD("a", "{\"name\":\"int8\",\"must_understand\":false}")),
          "cannot have \"must_understand\"", BRC_EINVAL },
        { HEAD FIELD("a", "\"int8\"") "],\"x\":1}}",
          "x", BRC_EINVAL },
        { LEGACY(FIELD("a", "\"int8\"")), "[name, data type]", BRC_EINVAL },
        { LEGACY("[\"a\"]"), "[name, data type]", BRC_EINVAL },
        { LEGACY("[\"a\",\"int8\",[2]]"), "[name, data type]", BRC_EINVAL },
        { LEGACY("[\"a\",\"string\"]"), "no fixed size", BRC_EINVAL },
        { STRUCT(FIELD("a", RAW9M) "," FIELD("b", RAW9M)), "bytes per element", BRC_EUNSUPPORTED },
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        brc_error err = BRC_ERROR_INIT;
        int rc = kit_open_code(rows[i].json, &err);
        ck_assert_msg(rc == rows[i].code, "%s: %d %s", rows[i].json, rc, err.message);
        ck_assert_msg(strstr(err.message, rows[i].says) != NULL, "%s: %s", rows[i].json,
                      err.message);
    }
}

TEST(too_many_fields_are_refused)
{
    brc_buf json = BRC_BUF_INIT;
    brc_error err = BRC_ERROR_INIT;
    ck_assert_int_eq(brc_buf_text(&json, HEAD, NULL), BRC_OK);
    for (int i = 0; i < 4097; i++)
        ck_assert_int_eq(brc_buf_printf(&json, NULL, "%s" FIELD("f%d", "\"int8\""),
                                        i > 0 ? "," : "", i),
                         BRC_OK);
    ck_assert_int_eq(brc_buf_text(&json, "]}}", NULL), BRC_OK);
    ck_assert_int_eq(brc_buf_terminate(&json, NULL), BRC_OK);
    ck_assert_int_eq(kit_open_code((const char *)json.data, &err), BRC_ELIMIT);
    brc_buf_dispose(&json);
}

/* ---- byte order -------------------------------- */

/* A chain of "bytes" alone over n elements. */
static int bytes_chain(brc_chain **out, const brc_dtype *type, const char *config, uint64_t n,
                       brc_error *err)
{
    char text[160];
    brc_json *codecs = NULL;
    snprintf(text, sizeof(text), "[{\"name\":\"bytes\"%s}]", config);
    ck_assert_int_eq(brc_json_parse(&codecs, text, strlen(text), 0, NULL), BRC_OK);
    int rc = brc_chain_open(out, dtype_kit_registry(), codecs, 1, &n, type, (brc_span){ NULL, 0 },
                            err);
    brc_json_free(codecs);
    return rc;
}

static void check_bytes(const char *type_json, const char *config, const char *canonical,
                        const char *stored, size_t len, uint64_t n)
{
    brc_dtype *type = kit_open(type_json);
    brc_chain *chain = NULL;
    brc_scratch *scratch = NULL;
    brc_buf out = BRC_BUF_INIT;
    brc_error err = BRC_ERROR_INIT;
    ck_assert_int_eq(brc_scratch_new(&scratch, NULL), BRC_OK);
    ck_assert_msg(bytes_chain(&chain, type, config, n, &err) == BRC_OK, "%s", err.message);
    brc_span from = { (const uint8_t *)canonical, len }, to = { (const uint8_t *)stored, len };
    ck_assert_int_eq(brc_chain_encode(chain, scratch, from, &out, NULL), BRC_OK);
    ck_assert_uint_eq(out.len, len);
    ck_assert_mem_eq(out.data, stored, len);
    out.len = 0;
    ck_assert_int_eq(brc_chain_decode(chain, scratch, to, NULL, &out, NULL), BRC_OK);
    ck_assert_uint_eq(out.len, len);
    ck_assert_mem_eq(out.data, canonical, len);
    to.len--;
    out.len = 0;
    ck_assert_int_lt(brc_chain_decode(chain, scratch, to, NULL, &out, NULL), 0);
    brc_buf_dispose(&out);
    brc_chain_free(chain);
    brc_scratch_free(scratch);
    brc_dtype_free(type);
}

#define BIG ",\"configuration\":{\"endian\":\"big\"}"
#define LITTLE ",\"configuration\":{\"endian\":\"little\"}"

TEST(T50_each_field_is_swapped_by_itself)
{
    check_bytes(MIXED, BIG,
                "\1\2\3\4\5\6\7\10\11\12\13\14\15\21\22\23\24\25\26\27\30\31\32\33\34\35",
                "\4\3\2\1\5\15\14\13\12\11\10\7\6\24\23\22\21\25\35\34\33\32\31\30\27\26", 26, 2);
    check_bytes(MIXED, LITTLE, "\1\2\3\4\5\6\7\10\11\12\13\14\15",
                "\1\2\3\4\5\6\7\10\11\12\13\14\15", 13, 1);
    check_bytes(NESTED, BIG, "\1\2\3\4\5\6\7\10\11\12", "\4\3\2\1\10\7\6\5\12\11", 10, 1);
    check_bytes(STRUCT(FIELD("z", "\"complex64\"") "," FIELD("t", TEXT8) "," FIELD("r", "\"r16\"")),
                BIG, "\1\2\3\4\5\6\7\10" "a\0\0\0b\0\0\0" "\1\2",
                "\4\3\2\1\10\7\6\5" "\0\0\0a\0\0\0b" "\1\2", 18, 1);
    check_bytes(STRUCT(FIELD("a", "\"uint8\"")), "", "\1\2", "\1\2", 2, 2);
    check_bytes("\"complex_bfloat16\"", BIG, "\1\2\3\4", "\2\1\4\3", 4, 1);
    check_bytes("\"complex_float8_e4m3\"", BIG, "\1\2", "\1\2", 2, 1);
}

TEST(T50_endian_must_be_given_but_for_the_legacy_form)
{
    static const char *const legacy = LEGACY("[\"a\",\"int16\"],[\"b\",\"uint8\"]");
    brc_dtype *type = kit_open(MIXED);
    brc_chain *chain = NULL;
    brc_error err = BRC_ERROR_INIT;
    brc_buf text = BRC_BUF_INIT;
    ck_assert_int_eq(bytes_chain(&chain, type, "", 2, &err), BRC_EINVAL);
    ck_assert_msg(strstr(err.message, "\"endian\"") != NULL, "%s", err.message);
    ck_assert_ptr_null(chain);
    brc_dtype_free(type);
    check_bytes(legacy, "", "\1\2\3", "\1\2\3", 3, 1);
    check_bytes(legacy, LITTLE, "\1\2\3", "\1\2\3", 3, 1);
    check_bytes(legacy, BIG, "\1\2\3", "\2\1\3", 3, 1);
    type = kit_open(legacy);
    ck_assert_int_eq(bytes_chain(&chain, type, "", 2, &err), BRC_OK);
    ck_assert_int_eq(brc_chain_write(chain, &text, NULL), BRC_OK);
    ck_assert_int_eq(brc_buf_terminate(&text, NULL), BRC_OK);
    ck_assert_str_eq((const char *)text.data, "[{\"name\":\"bytes\"" LITTLE "}]");
    brc_buf_dispose(&text);
    brc_chain_free(chain);
    brc_dtype_free(type);
}

TEST(variable_elements_need_another_codec)
{
    brc_dtype *type = kit_open("string");
    brc_chain *chain = NULL;
    brc_error err = BRC_ERROR_INIT;
    ck_assert_int_eq(bytes_chain(&chain, type, "", 2, &err), BRC_EINVAL);
    ck_assert_msg(strstr(err.message, "no fixed length") != NULL, "%s", err.message);
    brc_dtype_free(type);
}

/* ---- NumPy's lists -------------------------------- */

TEST(D4_numpys_lists_of_fields)
{
    static const struct {
        const char *descr, *json, *npy;
        int big;
    } rows[] = {
        { "[('a', '<i4'), ('b', '|u1'), ('c', '<f8')]", MIXED,
          "[('a', '<i4'), ('b', '|u1'), ('c', '<f8')]", 0 },
        { "[('a','>i4'),('b','|u1'),('c','>f8'),]", MIXED,
          "[('a', '<i4'), ('b', '|u1'), ('c', '<f8')]", 1 },
        { "[ ( \"p\" , [ ('x', '<f4') , ('y', '<f4') ] ) , ( 'n' , '<i2' , ) ] ", NESTED,
          "[('p', [('x', '<f4'), ('y', '<f4')]), ('n', '<i2')]", 0 },
        { "[('t', '<U2')]", STRUCT(FIELD("t", TEXT8)), "[('t', '<U2')]", 0 },
        { "[('r', '|V3')]", STRUCT(FIELD("r", "\"r24\"")), "[('r', '|V3')]", 0 },
        { "[('\"', '|b1')]", STRUCT(FIELD("\\\"", "\"bool\"")), "[('\"', '|b1')]", 0 },
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        brc_dtype *type = NULL;
        brc_error err = BRC_ERROR_INIT;
        int big = 7;
        int rc = brc_dtype_open_npy(&type, &big, dtype_kit_registry(), rows[i].descr, &err);
        ck_assert_msg(rc == BRC_OK, "%s: %s", rows[i].descr, err.message);
        ck_assert_str_eq(type->json, rows[i].json);
        ck_assert_str_eq(type->npy, rows[i].npy);
        ck_assert_int_eq(big, rows[i].big);
        brc_dtype_free(type);
    }
    brc_dtype *type = kit_open(STRUCT(FIELD("a", "\"int4\"")));
    ck_assert_ptr_null(type->npy);
    brc_dtype_free(type);
    type = kit_open(STRUCT(FIELD("it's", "\"int8\"")));
    ck_assert_ptr_null(type->npy);
    brc_dtype_free(type);
}

TEST(numpys_lists_that_have_no_counterpart)
{
    static const struct {
        const char *descr;
        int code;
    } rows[] = {
        { "[", BRC_EINVAL },
        { "[]", BRC_EINVAL },
        { "[(", BRC_EINVAL },
        { "[('a'", BRC_EINVAL },
        { "[('a',", BRC_EINVAL },
        { "[('a', '<i4'", BRC_EINVAL },
        { "[('a', '<i4')", BRC_EINVAL },
        { "[('a', '<i4')] x", BRC_EINVAL },
        { "[('a', '<i4') ('b', '<i4')]", BRC_EINVAL },
        { "[('a', '<i4'), ('a', '<i4')]", BRC_EINVAL },
        { "[('a' '<i4')]", BRC_EINVAL },
        { "[('a', 4)]", BRC_EINVAL },
        { "[('a", BRC_EINVAL },
        { "[('', '|V4')]", BRC_EUNSUPPORTED },
        { "[(('t', 'a'), '<i4')]", BRC_EUNSUPPORTED },
        { "[('a', '<i4', (2,))]", BRC_EUNSUPPORTED },
        { "[('a', '<i4'), ('b', '>i4')]", BRC_EUNSUPPORTED },
        { "[('a\\n', '<i4')]", BRC_EUNSUPPORTED },
        { "[('\xff', '<i4')]", BRC_EUNSUPPORTED },
        { "[('a', '|O')]", BRC_EUNSUPPORTED },
        { "[('a', '0123456789012345678901234567890123456789012345678901234567890123456789')]",
          BRC_EUNSUPPORTED },
    };
    brc_dtype *type = NULL;
    int big;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        brc_error err = BRC_ERROR_INIT;
        int rc = brc_dtype_open_npy(&type, &big, dtype_kit_registry(), rows[i].descr, &err);
        ck_assert_msg(rc == rows[i].code, "%s: %d %s", rows[i].descr, rc, err.message);
        ck_assert_ptr_null(type);
    }
    char deep[700 + 1] = "";
    for (size_t i = 0; i < 100; i++)
        memcpy(deep + 7 * i, "[('a', ", 8);
    brc_error err = BRC_ERROR_INIT;
    ck_assert_int_eq(brc_dtype_open_npy(&type, &big, dtype_kit_registry(), deep, &err), BRC_ELIMIT);
}
