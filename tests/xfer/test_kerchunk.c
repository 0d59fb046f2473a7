/*
 * Kerchunk's references: what each form of them brings, what is refused and how it is said, and
 * which files are read for them.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../../src/base/file.h"
#include "../../src/xfer/zarr/kerchunk.h"
#include "../kit/exchange_kit.h"
#include "../kit/suite.h"

TEST_SUITE(kerchunk);

static exchange_kit kit;
static brc_buf said; /* the warnings of the last import */

#define CHUNK 256 /* elements in a chunk of the array: 1 KiB, far above what inlining saves */

static void kerchunk_start(void)
{
    exchange_start(&kit);
    said = (brc_buf)BRC_BUF_INIT;
}

static void kerchunk_stop(void)
{
    brc_buf_dispose(&said);
    exchange_stop(&kit);
}

static int take_in(const char *source, const char *path, uint32_t flags)
{
    return exchange_import(&kit, source, path, flags, &said);
}

/* Four chunks in the file "data", 100 bytes from its start on. */
static int32_t elements[4 * CHUNK];

static void make_data(const char *name)
{
    uint8_t bytes[100 + sizeof(elements)] = { 0 };
    for (int i = 0; i < 4 * CHUNK; i++)
        elements[i] = 31 * i - 7;
    memcpy(bytes + 100, elements, sizeof(elements));
    exchange_file(&kit, name, bytes, sizeof(bytes));
}

#define ZARRAY                                                                        \
    "{\"zarr_format\":2,\"shape\":[1024],\"chunks\":[256],\"dtype\":\"<i4\","         \
    "\"fill_value\":5,\"order\":\"C\",\"filters\":null,\"compressor\":null}"
#define NODES "\".zgroup\":{\"zarr_format\":2},\"a/.zarray\":" ZARRAY
#define SET(refs) "{\"version\":1,\"refs\":{" NODES refs "}}"

static int64_t outside(void)
{
    return scenario_ask(&kit, "SELECT count(*) FROM object WHERE backend>0");
}

/* ---- forms -------------------------------- */

/* Each has the chunks 0, 1 and 3, and not 2. */
static const struct form {
    const char *text;
    int lying; /* chunks that stay where they are */
} forms[] = {
    { SET(",\"a/0\":[\"data\",100,1024],\"a/1\":[\"data\",1124,1024],\"a/3\":[\"data\",3172,1024]"),
      3 },
    { "{" NODES ",\"a/0\":[\"data\",100,1024],\"a/1\":[\"data\",1124,1024],"
      "\"a/3\":[\"data\",3172,1024]}",
      3 },
    { " \n{\"templates\":{\"d\":\"ata\",\"i\":\"no\"},\"refs\":{" NODES
      "},\"version\":1,\"gen\":[{\"key\":\"a/{{i}}\",\"url\":\"./d{{ d }}\","
      "\"offset\":\"{{(i + 1) * 1024 - 924}}\",\"length\":\"1024\","
      "\"dimensions\":{\"i\":[0,1,3]}}]}",
      3 },
    { "{\"version\":1,\"templates\":{\"u\":\"sub/../data\"},\"refs\":{" NODES
      ",\"a/3\":[\"{{u}}\",3172,1024]},"
      "\"gen\":[{\"key\":\"a/{{i}}\",\"url\":\"{{u}}\",\"offset\":\"{{100 + i*1024}}\","
      "\"length\":\"{{-(-1024)}}\",\"dimensions\":{\"i\":{\"stop\":2}}}]}",
      3 },
    { SET(",\"a/0\":[\"first\"],\"a/1\":[\"data\",1124,1024],\"a/3\":[\"data\",3172,1024]"), 3 },
    { "{\"version\":1,\"refs\":{" NODES ",\"a/0\":[\"data\",100,1024],"
      "\"a/1\":[\"data\",1124,1024],\"a/3\":\"base64:%s\"}}",
      2 },
};
#define N_FORMS ((int)(sizeof(forms) / sizeof(forms[0])))

static void base64_of(char *out, const uint8_t *data, size_t len)
{
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    for (size_t i = 0; i < len; i += 3) {
        uint32_t bits = (uint32_t)data[i] << 16;
        bits |= i + 1 < len ? (uint32_t)data[i + 1] << 8 : 0;
        bits |= i + 2 < len ? data[i + 2] : 0;
        for (int k = 0; k < 4; k++)
            *out++ = i + (size_t)k > len ? '=' : digits[bits >> (18 - 6 * k) & 63];
    }
    *out = 0;
}

static void make_form(const struct form *form, const char *name)
{
    char digits[CHUNK * 4 * 2], text[8192];
    make_data("data");
    exchange_file(&kit, "first", elements, CHUNK * 4);
    OK(&kit, brc_dir_make(exchange_path(&kit, "sub"), &kit.err));
    base64_of(digits, (const uint8_t *)(elements + 3 * CHUNK), CHUNK * 4);
    if (strstr(form->text, "%s") != NULL)
        snprintf(text, sizeof(text), form->text, digits);
    else
        snprintf(text, sizeof(text), "%s", form->text);
    exchange_text(&kit, name, text);
}

static void has_elements(const char *path)
{
    int32_t want[4 * CHUNK];
    memcpy(want, elements, sizeof(want));
    for (int i = 2 * CHUNK; i < 3 * CHUNK; i++)
        want[i] = 5;
    exchange_has(&kit, path, want, sizeof(want));
}

CASE("forms", .setup = kerchunk_start, .teardown = kerchunk_stop);

EACH(every_form_is_copied_or_stays, forms)
{
    make_form(&forms[_i], "set.json");
    OK(&kit, take_in("set.json", "/e", BRC_XFER_EXTERNAL));
    has_elements("/e/a");
    ck_assert_int_eq(outside(), forms[_i].lying);
    scenario_commit(&kit, "lies there");
    scenario_whole(&kit);
    scenario_reopen(&kit);
    has_elements("/e/a");
    OK(&kit, take_in("set.json", "/p", 0));
    has_elements("/p/a");
    ck_assert_str_eq((char *)said.data, "");
}

TEST(a_copy_needs_the_files_no_more)
{
    make_form(&forms[0], "set.json");
    OK(&kit, take_in("set.json", "/p", 0));
    ck_assert_int_eq(outside(), 0);
    ck_assert_int_eq(unlink(exchange_path(&kit, "data")), 0);
    has_elements("/p/a");
}

TEST(a_set_may_be_packed_with_gzip)
{
    brc_buf plain, packed = BRC_BUF_INIT;
    make_form(&forms[0], "plain");
    plain = exchange_read(exchange_path(&kit, "plain"));
    exchange_gzip(&packed, plain.data, plain.len);
    exchange_file(&kit, "set.json.gz", packed.data, packed.len);
    OK(&kit, take_in("set.json.gz", "/p", 0));
    has_elements("/p/a");
    brc_buf_dispose(&plain);
    brc_buf_dispose(&packed);
}

/* Texts are bytes as they are: kerchunk writes every chunk so that is valid UTF-8. */
TEST(a_text_is_the_bytes_of_a_chunk)
{
    static const char set[] =
        "{\"version\":1,\"refs\":{\"a/.zarray\":{\"zarr_format\":2,\"shape\":[2],\"chunks\":[2],"
        "\"dtype\":\"<i4\",\"fill_value\":0,\"order\":\"C\",\"filters\":null,"
        "\"compressor\":null},\"a/0\":\"\\u0001\\u0000\\u0000\\u0000zz\\u0000\\u0000\"}}";
    static const int32_t want[] = { 1, 0x7a7a };
    exchange_text(&kit, "set.json", set);
    OK(&kit, take_in("set.json", "/p", 0));
    exchange_has(&kit, "/p/a", want, sizeof(want));
}

TEST(a_file_by_its_whole_path_is_told_of)
{
    char set[4096];
    make_data("elsewhere/data");
    snprintf(set, sizeof(set), SET(",\"a/0\":[\"file://%s\",100,1024]"),
             exchange_path(&kit, "elsewhere/data"));
    exchange_text(&kit, "here/set.json", set);
    OK(&kit, take_in("here/set.json", "/e", BRC_XFER_EXTERNAL));
    ck_assert_msg(strstr((char *)said.data, "outside its folder, such as /") != NULL, "%s",
                  (char *)said.data);
    ck_assert_int_eq(outside(), 1);
}

TEST(a_file_that_changed_after_the_import_is_an_error)
{
    int32_t all[4 * CHUNK];
    make_form(&forms[0], "set.json");
    OK(&kit, take_in("set.json", "/e", BRC_XFER_EXTERNAL));
    ck_assert_int_eq(truncate(exchange_path(&kit, "data"), 4000), 0);
    brc_array *a = scenario_array_at(&kit, kit.session, "/e/a");
    ck_assert_int_eq(brc_array_read(a, NULL, all, sizeof(all), &kit.err), BRC_ECORRUPT);
    ck_assert_msg(strstr(kit.err.message, "data has changed since it was imported") != NULL, "%s",
                  kit.err.message);
    brc_array_free(a);
}

/* ---- what is refused -------------------------------- */

#define ONE(ref) SET(",\"a/0\":" ref)
#define GEN(item) "{\"version\":1,\"refs\":{" NODES "},\"gen\":[" item "]}"

static const struct refused {
    const char *text;
    int code;
    const char *says;
} refused[] = {
    { ONE("[\"https://h.org/x.nc\",0,1024]"), BRC_EUNSUPPORTED,
      "a/0 lies at https://h.org/x.nc, and chunks at https addresses cannot be read yet: d" },
    { ONE("[\"s3://b/x.nc\",0,1024]"), BRC_EUNSUPPORTED, "at s3 addresses cannot be read yet" },
    { ONE("[\"gcs://b/x.nc\"]"), BRC_EUNSUPPORTED, "at gcs addresses cannot be read yet" },
    { ONE("[\"zip://data::x.zip\",0,1024]"), BRC_EUNSUPPORTED, "is not a file on this machine" },
    { ONE("[\"file://host/data\",0,1024]"), BRC_EUNSUPPORTED, "is not a file on this machine" },
    { ONE("[\"\",0,1024]"), BRC_EUNSUPPORTED, "is not a file on this machine" },
    { ONE("[null,0,1024]"), BRC_EINVAL, "\"a/0\" has no address (null)" },
    { ONE("[7,0,1024]"), BRC_EINVAL, "has an address that is not a text" },
    { ONE("[\"none\",0,1024]"), BRC_ENOTFOUND, "none: No such file" },
    { ONE("[\".\"]"), BRC_EINVAL, "is not a regular file" },
    { ONE("[\"data\",3173,1024]"), BRC_EINVAL, "which has only 4196: make the references again" },
    { ONE("[\"data\",9223372036854775807,9223372036854775807]"), BRC_EINVAL, "has only 4196" },
    { ONE("[\"data\",-1,1024]"), BRC_EINVAL, "a length that is not a number of bytes" },
    { ONE("[\"data\",0,18446744073709551615]"), BRC_EINVAL, "is not a number of bytes" },
    { ONE("[\"data\",0]"), BRC_EINVAL, "nor [ADDRESS, OFFSET, LENGTH]" },
    { ONE("[]"), BRC_EINVAL, "nor [ADDRESS, OFFSET, LENGTH]" },
    { ONE("7"), BRC_EINVAL, "\"a/0\" is neither a text" },
    { ONE("\"base64:***\""), BRC_EINVAL, "is marked as base64 and is not" },
    { ONE("[\"data\",0,10]"), BRC_ECORRUPT, "chunk (0): bytes: the chunk decodes to 10 bytes" },
    { SET(",\"a/../b\":\"x\""), BRC_EINVAL, "\"a/../b\" is not the path of a file of Zarr" },
    { SET(",\"/a\":\"x\""), BRC_EINVAL, "is not the path" },
    { SET(",\"a//0\":\"x\""), BRC_EINVAL, "is not the path" },
    { SET(",\"b\":\"x\",\"b/0\":\"x\""), BRC_EINVAL, "\"b\" is a file and a folder" },
    { SET(",\"a/0\":\"x\",\"a/0\":\"x\""), BRC_EINVAL, "" },
    { "{\"version\":2,\"refs\":{}}", BRC_EUNSUPPORTED, "is not 0 or 1" },
    { "{\"version\":1,\"refs\":[]}", BRC_EINVAL, "\"refs\" is not an object" },
    { "{\"version\":1,\"refs\":{},\"more\":1}", BRC_EINVAL, "\"more\" is not known here" },
    { "{\"version\":1,\"templates\":{\"a\":1},\"refs\":{}}", BRC_EINVAL, "is not a text" },
    { "{\"version\":1,\"refs\":{},\"gen\":{}}", BRC_EINVAL, "\"gen\" is not a list" },
    { "{\"a\":1}", BRC_EUNSUPPORTED, "but no Kerchunk references" },
    { "{\"version\":1}", BRC_EUNSUPPORTED, "but no Kerchunk references" },
    { "{\"refs\":{}}", BRC_EINVAL, "it has no group and no array" },
    { GEN("{\"key\":\"a/0\"}"), BRC_EINVAL, "the item 0 of \"gen\": it needs the texts" },
    { GEN("{\"key\":\"a/0\",\"url\":\"data\",\"offset\":\"1\",\"dimensions\":{\"i\":[1]}}"),
      BRC_EINVAL, "it needs the texts" },
    { GEN("{\"key\":\"a/0\",\"url\":\"data\",\"dimensions\":{}}"), BRC_EINVAL, "\"dimensions\"" },
    { GEN("{\"key\":\"a/0\",\"url\":\"data\",\"dimensions\":{\"i\":{\"stop\":2}}}"), BRC_EINVAL,
      "\"a/0\" has two references" },
    { GEN("{\"key\":\"a/{{i}}\",\"url\":\"data\",\"dimensions\":{\"i\":{\"stop\":5000000}}}"),
      BRC_ELIMIT, "more than 4194304 references" },
    { GEN("{\"key\":\"a/{{i}}\",\"url\":\"data\",\"dimensions\":{\"i\":{\"start\":"
          "-9223372036854775807,\"stop\":9223372036854775807},\"k\":{\"stop\":9}}}"),
      BRC_ELIMIT, "more than 4194304 references" },
    { GEN("{\"key\":\"a/{{i}}\",\"url\":\"data\",\"offset\":\"{{i}}\",\"length\":\"1\","
          "\"dimensions\":{\"i\":[-1]}}"),
      BRC_EINVAL, "\"a/-1\" has an offset or a length that is not a number of bytes" },
    { GEN("{\"key\":\"a/{{i}}\",\"url\":\"data\",\"dimensions\":{\"i\":{\"stop\":2,\"step\":0}}}"),
      BRC_EINVAL, "\"i\" is neither a list of integers" },
    { GEN("{\"key\":\"a/{{f(i)}}\",\"url\":\"data\",\"dimensions\":{\"i\":[1]}}"), BRC_EINVAL,
      "there is no template f" },
};
#define N_REFUSED ((int)(sizeof(refused) / sizeof(refused[0])))

CASE("refused", .setup = kerchunk_start, .teardown = kerchunk_stop);

EACH(a_set_that_cannot_be_read_says_why, refused)
{
    const struct refused *set = &refused[_i];
    make_data("data");
    exchange_text(&kit, "set.json", set->text);
    exchange_failed(&kit, take_in("set.json", "/p", 0), set->code, set->says);
    exchange_failed(&kit, take_in("set.json", "/p", BRC_XFER_EXTERNAL), set->code, set->says);
    ck_assert_int_eq(exchange_node(&kit, "/p"), 0);
}

TEST(the_rest_of_a_set_comes_without_what_lies_elsewhere)
{
    make_data("data");
    exchange_text(&kit, "set.json",
                  SET(",\"a/0\":[\"data\",100,1024],\"b/.zarray\":" ZARRAY
                      ",\"b/0\":[\"data\",100,1024],\"b/1\":[\"http://h/x\"]"));
    OK(&kit, take_in("set.json", "/p", BRC_XFER_SKIP_UNSUPPORTED));
    ck_assert_int_eq(exchange_node(&kit, "/p/a"), BRC_ARRAY);
    ck_assert_int_eq(exchange_node(&kit, "/p/b"), 0);
}

TEST(the_repository_itself_is_not_read)
{
    char set[4096];
    snprintf(set, sizeof(set), ONE("[\"%s\",0,1024]"), kit.file);
    exchange_text(&kit, "set.json", set);
    ck_assert_int_lt(take_in("set.json", "/p", 0), 0);
    ck_assert_msg(strstr(kit.err.message, "repository") != NULL, "%s", kit.err.message);
}

/* Without the Parquet files every chunk would be missing, and nobody told. */
TEST(references_in_parquet_are_refused_by_name)
{
    exchange_text(&kit, "in/.zmetadata",
                  "{\"metadata\":{\".zgroup\":{\"zarr_format\":2},\"a/.zarray\":" ZARRAY
                  "},\"record_size\":10000}");
    exchange_text(&kit, "in/a/refs.0.parq", "PAR1");
    exchange_failed(&kit, take_in("in", "/p", 0), BRC_EUNSUPPORTED, "listed in Parquet files");
}

TEST(a_set_of_too_many_values_says_what_to_do)
{
    brc_buf text = BRC_BUF_INIT;
    OK(&kit, brc_buf_printf(&text, &kit.err, "{\"refs\":{\".zgroup\":\"{}\""));
    for (int i = 0; i < 250000; i++)
        OK(&kit, brc_buf_printf(&text, &kit.err, ",\"%d\":[\"x\",0,1]", i));
    OK(&kit, brc_buf_printf(&text, &kit.err, "}}"));
    exchange_file(&kit, "set.json", text.data, text.len);
    brc_buf_dispose(&text);
    exchange_failed(&kit, take_in("set.json", "/p", 0), BRC_ELIMIT,
                    "split it, for example into one set for each array");
}

/* ---- expressions -------------------------------- */

static const struct expression {
    const char *text, *made; /* NULL: it is refused */
} expressions[] = {
    { "plain", "plain" },
    { "", "" },
    { "a{{u}}b{{ u }}", "aUbU" },
    { "{{i}}{{k}}", "7-3" },
    { "{{2 + 3 * 4}}", "14" },
    { "{{(2 + 3) * 4}}", "20" },
    { "{{10 - 3 - 2}}", "5" },
    { "{{k // 2}}", "-2" },
    { "{{k % 2}}", "1" },
    { "{{7 // -2}}", "-4" },
    { "{{7 % -2}}", "-1" },
    { "{{-i}}", "-7" },
    { "{{--i}}", "7" },
    { "{{\ti\n}}", "7" },
    { "{{9223372036854775807}}", "9223372036854775807" },
    { "{{-9223372036854775807 - 1}}", "-9223372036854775808" },
    { "}}{", "}}{" },
    { "{{9223372036854775808}}", NULL },
    { "{{9223372036854775807 + 1}}", NULL },
    { "{{(-9223372036854775807 - 1) // -1}}", NULL },
    { "{{4611686018427387904 * 2}}", NULL },
    { "{{1 // 0}}", NULL },
    { "{{1 % 0}}", NULL },
    { "{{1 / 2}}", NULL },
    { "{{1 ** 2}}", NULL },
    { "{{1.5}}", NULL },
    { "{{}}", NULL },
    { "{{ }}", NULL },
    { "{{(1}}", NULL },
    { "{{1)}}", NULL },
    { "{{1 2}}", NULL },
    { "{{u + 1}}", NULL },
    { "{{-u}}", NULL },
    { "{{none}}", NULL },
    { "{{f}}", NULL },
    { "{{f(c='x')}}", NULL },
    { "{{u|upper}}", NULL },
    { "{{i", NULL },
    { "{% for x in y %}", NULL },
    { "{# a comment #}", NULL },
};
#define N_EXPRESSIONS ((int)(sizeof(expressions) / sizeof(expressions[0])))

CASE("expressions", .setup = kerchunk_start, .teardown = kerchunk_stop);

static int render(brc_buf *out, const char *text)
{
    static const char templates[] = "{\"u\":\"U\",\"f\":\"{{c}}\",\"i\":\"hidden\"}";
    const brc_kerchunk_axis axes[] = { { "i", 7 }, { "k", -3 } };
    brc_kerchunk_names names = { NULL, axes, 2 };
    brc_json *object;
    OK(&kit, brc_json_parse(&object, templates, strlen(templates), 0, &kit.err));
    names.templates = object;
    const int rc = brc_kerchunk_render(out, text, &names, &kit.err);
    OK(&kit, brc_buf_terminate(out, &kit.err));
    brc_json_free(object);
    return rc;
}

EACH(expressions_are_those_of_integers_and_names, expressions)
{
    brc_buf out = BRC_BUF_INIT;
    const struct expression *x = &expressions[_i];
    const int rc = render(&out, x->text);
    ck_assert_msg((rc == BRC_OK) == (x->made != NULL), "%s: %d", x->text, rc);
    if (x->made != NULL)
        ck_assert_str_eq((char *)out.data, x->made);
    else
        ck_assert_int_gt((int)strlen(kit.err.message), 0);
    brc_buf_dispose(&out);
}

/* Parentheses and signs are read by recursion. */
TEST(deep_expressions_are_refused)
{
    static const char *const parts[] = { "(", "-" };
    for (int i = 0; i < 2; i++) {
        brc_buf text = BRC_BUF_INIT, out = BRC_BUF_INIT;
        OK(&kit, brc_buf_text(&text, "{{", &kit.err));
        for (int k = 0; k < 100000; k++)
            OK(&kit, brc_buf_text(&text, parts[i], &kit.err));
        OK(&kit, brc_buf_text(&text, "1}}", &kit.err));
        OK(&kit, brc_buf_terminate(&text, &kit.err));
        ck_assert_int_eq(render(&out, (char *)text.data), BRC_EUNSUPPORTED);
        brc_buf_dispose(&text);
        brc_buf_dispose(&out);
    }
}
