/* The texts of the backend s3: configurations, names, and answers, which may be anything. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../../src/backends/s3_text.h"
#include "../kit/suite.h"

TEST_SUITE(s3_text);

static brc_error err;

/* ---- configurations -------------------------------- */

static const struct {
    const char *given, *full; /* full: what it becomes, or the sentence that refuses it */
    int rc;
} configs[] = {
    { "{\"bucket\":\"data\"}",
      "{\"endpoint\":\"https://s3.us-east-1.amazonaws.com\",\"bucket\":\"data\",\"prefix\":\"\","
      "\"region\":\"us-east-1\","
      "\"path_style\":false,\"pack_bytes\":33554432}", 0 },
    { "{\"bucket\":\"da.ta\",\"region\":\"cn-north-1\",\"prefix\":\"a/b_C-1/\"}",
      "{\"endpoint\":\"https://s3.cn-north-1.amazonaws.com.cn\",\"bucket\":\"da.ta\","
      "\"prefix\":\"a/b_C-1\","
      "\"region\":\"cn-north-1\",\"path_style\":true,\"pack_bytes\":33554432}", 0 },
    { "{\"bucket\":\"data\",\"endpoint\":\"HTTP://Host.Example:80/\",\"pack_bytes\":1048576}",
      "{\"endpoint\":\"http://host.example\",\"bucket\":\"data\",\"prefix\":\"\","
      "\"region\":\"us-east-1\","
      "\"path_style\":true,\"pack_bytes\":1048576}", 0 },
    { "{\"bucket\":\"data\",\"endpoint\":\"https://[::1]:9000\"}",
      "{\"endpoint\":\"https://[::1]:9000\",\"bucket\":\"data\",\"prefix\":\"\","
      "\"region\":\"us-east-1\","
      "\"path_style\":true,\"pack_bytes\":33554432}", 0 },
    { "{\"bucket\":\"data\",\"endpoint\":\"https://h:443\",\"path_style\":false}",
      "{\"endpoint\":\"https://h\",\"bucket\":\"data\",\"prefix\":\"\",\"region\":\"us-east-1\","
      "\"path_style\":false,\"pack_bytes\":33554432}", 0 },
    { "{}", "name the bucket", 1 },
    { "{\"bucket\":\"data\",\"secret\":\"x\"}", "secret", 1 },
    { "{\"bucket\":\"Data\"}", "small letters", 1 },
    { "{\"bucket\":\"da\"}", "3 to 63", 1 },
    { "{\"bucket\":\"a..b\"}", "not the name", 1 },
    { "{\"bucket\":\"-ab\"}", "not the name", 1 },
    { "{\"bucket\":\"a/b\"}", "not the name", 1 },
    { "{\"bucket\":7}", "\"bucket\" must be a text", 1 },
    { "{\"bucket\":\"data\",\"prefix\":\"/a\"}", "\"prefix\"", 1 },
    { "{\"bucket\":\"data\",\"prefix\":\"a//b\"}", "\"prefix\"", 1 },
    { "{\"bucket\":\"data\",\"prefix\":\"a/../b\"}", "\"prefix\"", 1 },
    { "{\"bucket\":\"data\",\"prefix\":\".\"}", "\"prefix\"", 1 },
    { "{\"bucket\":\"data\",\"prefix\":\"a b\"}", "\"prefix\"", 1 },
    { "{\"bucket\":\"data\",\"prefix\":\"a%2Fb\"}", "\"prefix\"", 1 },
    { "{\"bucket\":\"data\",\"region\":\"eu north\"}", "\"region\"", 1 },
    { "{\"bucket\":\"data\",\"region\":\"x.evil.org/\"}", "\"region\"", 1 },
    { "{\"bucket\":\"data\",\"endpoint\":\"ftp://h\"}", "\"endpoint\"", 1 },
    { "{\"bucket\":\"data\",\"endpoint\":\"file:///etc\"}", "\"endpoint\"", 1 },
    { "{\"bucket\":\"data\",\"endpoint\":\"http://user:pw@h\"}", "\"endpoint\"", 1 },
    { "{\"bucket\":\"data\",\"endpoint\":\"http://h/path\"}", "\"endpoint\"", 1 },
    { "{\"bucket\":\"data\",\"endpoint\":\"http://h:0\"}", "\"endpoint\"", 1 },
    { "{\"bucket\":\"data\",\"endpoint\":\"http://h:70000\"}", "\"endpoint\"", 1 },
    { "{\"bucket\":\"data\",\"endpoint\":\"http://h:\"}", "\"endpoint\"", 1 },
    { "{\"bucket\":\"data\",\"endpoint\":\"http://h?x\"}", "\"endpoint\"", 1 },
    { "{\"bucket\":\"data\",\"endpoint\":\"http://\"}", "\"endpoint\"", 1 },
    { "{\"bucket\":\"data\",\"endpoint\":\"http://h\\r\\nX: y\"}", "\"endpoint\"", 1 },
    { "{\"bucket\":\"data\",\"endpoint\":\"https://[::1]\",\"path_style\":false}",
      "\"path_style\"", 1 },
    { "{\"bucket\":\"data\",\"path_style\":1}", "true or false", 1 },
    { "{\"bucket\":\"data\",\"pack_bytes\":1048575}", "1 MiB", 1 },
    { "{\"bucket\":\"data\",\"pack_bytes\":67108865}", "64 MiB", 1 },
    { "{\"bucket\":\"data\",\"pack_bytes\":\"big\"}", "\"pack_bytes\"", 1 },
};

CASE("configurations");

EACH(a_configuration_is_read_in_full_or_refused, configs)
{
    brc_json *json, *again;
    brc_s3_config config;
    brc_buf full = BRC_BUF_INIT, twice = BRC_BUF_INIT;
    ck_assert_int_eq(brc_json_parse(&json, configs[_i].given, strlen(configs[_i].given), 0, &err),
                     BRC_OK);
    const int rc = brc_s3_config_read(&config, json, &err);
    brc_json_free(json);
    if (configs[_i].rc) {
        ck_assert_int_eq(rc, BRC_EINVAL);
        ck_assert_msg(strstr(err.message, configs[_i].full) != NULL, "%s", err.message);
        return;
    }
    ck_assert_msg(rc == BRC_OK, "%s", err.message);
    ck_assert_int_eq(brc_s3_config_write(&config, &full, &err), BRC_OK);
    ck_assert_str_eq((const char *)full.data, configs[_i].full);
    ck_assert_int_eq(brc_json_parse(&again, configs[_i].full, strlen(configs[_i].full), 0, &err),
                     BRC_OK);
    ck_assert_int_eq(brc_s3_config_read(&config, again, &err), BRC_OK);
    ck_assert_int_eq(brc_s3_config_write(&config, &twice, &err), BRC_OK);
    ck_assert_str_eq((const char *)twice.data, configs[_i].full);
    brc_json_free(again);
    brc_buf_dispose(&full);
    brc_buf_dispose(&twice);
}

TEST(only_the_standard_endpoint_of_the_region_is_standard)
{
    static const struct {
        const char *given;
        int standard;
    } cases[] = {
        { "{\"bucket\":\"data\"}", 1 },
        { "{\"bucket\":\"data\",\"endpoint\":\"https://s3.us-east-1.amazonaws.com\"}", 1 },
        { "{\"bucket\":\"data\",\"endpoint\":\"http://s3.us-east-1.amazonaws.com\"}", 0 },
        { "{\"bucket\":\"data\",\"endpoint\":\"https://s3.us-east-1.amazonaws.com:8443\"}", 0 },
        { "{\"bucket\":\"data\",\"endpoint\":\"https://s3.us-east-1.amazonaws.com.evil.org\"}", 0 },
        { "{\"bucket\":\"data\",\"endpoint\":\"https://ec2-1.compute-1.amazonaws.com\"}", 0 },
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        brc_json *json;
        brc_s3_config config;
        ck_assert_int_eq(brc_json_parse(&json, cases[i].given, strlen(cases[i].given), 0, &err),
                         BRC_OK);
        ck_assert_int_eq(brc_s3_config_read(&config, json, &err), BRC_OK);
        ck_assert_int_eq(config.is_standard, cases[i].standard);
        brc_json_free(json);
    }
}

/* ---- names -------------------------------- */

#define ID "0123456789abcdef0123456789abcdef"
#define WRITER "11111111111111111111111111111111"
#define PACK "22222222222222222222222222222222"
#define PLACE ID "/" WRITER "/" PACK
#define FOLDER "top/" ID "/" WRITER "/"

CASE("names");

TEST(places_are_of_this_repository_and_nothing_else)
{
    ck_assert(brc_s3_is_place(PLACE, ID));
    ck_assert(!brc_s3_is_place(PLACE, WRITER));
    ck_assert(!brc_s3_is_place(PLACE "0", ID));
    ck_assert(!brc_s3_is_place(ID "/" WRITER "/" "2222222222222222222222222222222G", ID));
    ck_assert(!brc_s3_is_place(ID "/" WRITER "a" PACK, ID));
    ck_assert(!brc_s3_is_place(ID "/../../../../../../../../../../a" "/" PACK, ID));
    ck_assert(!brc_s3_is_place("", ID));
}

TEST(urls_have_the_bucket_where_the_style_says)
{
    char url[BRC_S3_URL_SIZE];
    brc_s3_config c = { .endpoint = "https://h:9", .bucket = "data", .path_style = 1 };
    brc_s3_url(url, &c, "a/b", NULL);
    ck_assert_str_eq(url, "https://h:9/data/a/b");
    brc_s3_url(url, &c, "", "x=y");
    ck_assert_str_eq(url, "https://h:9/data?x=y");
    c.path_style = 0;
    brc_s3_url(url, &c, "a/b", NULL);
    ck_assert_str_eq(url, "https://data.h:9/a/b");
    brc_s3_url(url, &c, "", "x=y");
    ck_assert_str_eq(url, "https://data.h:9/?x=y");
}

/* ---- answers -------------------------------- */

CASE("answers");

TEST(the_name_of_an_error_is_plain_or_nothing)
{
    static const struct {
        const char *xml, *code;
    } cases[] = {
        { "<Error><Code>NoSuchKey</Code></Error>", "NoSuchKey" },
        { "<Error><Code>a b</Code></Error>", "" },
        { "<Error><Code>&lt;</Code></Error>", "" },
        { "<Error><Code>NoSuchKey</Cod", "" },
        { "<Code>0123456789012345678901234567890123456789</Code>", "" },
        { "", "" },
    };
    char code[32];
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        brc_s3_element(code, sizeof(code), "Code", cases[i].xml, strlen(cases[i].xml));
        ck_assert_str_eq(code, cases[i].code);
    }
    brc_s3_element(code, sizeof(code), "Code", NULL, 0);
    ck_assert_str_eq(code, "");
}

static int page_each(void *to, const brc_kept *kept, brc_error *e)
{
    char *out = to;
    const size_t len = strlen(out);
    (void)e;
    snprintf(out + len, 1000 - len, "%.2s:%llu:%lld ", kept->name + 66,
             (unsigned long long)kept->len,
             (long long)kept->time_us);
    return BRC_OK;
}

#define ITEM(key, size, time) \
    "<Contents><Key>" key "</Key><LastModified>" time "</LastModified>" \
    "<Size>" size "</Size></Contents>"
#define LIST(items, truncated) \
    "<ListBucketResult xmlns=\"x\">" items "<IsTruncated>" truncated "</IsTruncated>" \
    "</ListBucketResult>"

static const struct {
    const char *xml, *seen;
    int rc, more;
} pages[] = {
    { LIST("", "false"), "", 0, 0 },
    { LIST(ITEM(FOLDER PACK, "77", "1970-01-02T00:00:01.000Z"), "false"), "22:77:86401000000 ", 0,
      0 },
    { LIST(ITEM(FOLDER PACK, "77", "2000-03-01T00:00:00Z"), "true"), "22:77:951868800000000 ", 0,
      1 },
    { LIST(ITEM(FOLDER PACK, "-1", "yesterday"), "false"), "22:0:0 ", 0, 0 },
    { LIST(ITEM(FOLDER PACK "0", "1", ""), "false"), "", 0, 0 },
    { LIST(ITEM("top/" WRITER "/" WRITER "/" PACK, "1", ""), "false"), "", 0, 0 },
    { LIST(ITEM("../" PLACE, "1", ""), "false"), "", 0, 0 },
    { LIST("<Contents><Key>" FOLDER PACK, "false"), "", 0, 0 },
    { LIST("", "true"), "", 1, 0 },
    { LIST(ITEM(FOLDER "notes", "1", ""), "true"), "", 1, 0 },
    { "<html>log in first</html>", "", 1, 0 },
    { "", "", 1, 0 },
};

EACH(a_page_tells_of_our_packs_alone, pages)
{
    char seen[1000] = "", last[BRC_S3_PLACE_LEN + 1] = "";
    int more = 0;
    const int rc = brc_s3_page(pages[_i].xml, strlen(pages[_i].xml), FOLDER, ID, page_each, seen,
                               &more, last,
                               &err);
    ck_assert_str_eq(seen, pages[_i].seen);
    ck_assert_int_eq(rc, pages[_i].rc ? BRC_EIO : BRC_OK);
    if (rc == BRC_OK)
        ck_assert_int_eq(more, pages[_i].more);
    if (more && rc == BRC_OK) /* the same page again leads nowhere */
        ck_assert_int_eq(brc_s3_page(pages[_i].xml, strlen(pages[_i].xml), FOLDER, ID, page_each,
                                     seen, &more,
                                     last, &err), BRC_EIO);
}

TEST(a_page_may_end_at_any_byte)
{
    static const char xml[] = LIST(ITEM(FOLDER PACK, "77", "2000-03-01T00:00:00Z"), "false");
    for (size_t len = 0; len < sizeof(xml); len++) {
        char seen[1000] = "", last[BRC_S3_PLACE_LEN + 1] = "", *copy = malloc(len + 1);
        int more = 0;
        memcpy(copy, xml, len);
        (void)!brc_s3_page(copy, len, FOLDER, ID, page_each, seen, &more, last, NULL);
        free(copy);
    }
}

/* ---- joining -------------------------------- */

CASE("joining");

TEST(near_objects_are_joined_within_both_limits)
{
    static const struct {
        uint64_t at[4], len[4];
        size_t n, joined;
        uint64_t end, gap, range;
    } cases[] = {
        { { 0, 10, 20 }, { 10, 10, 5 }, 3, 3, 25, 0, 0 },
        { { 0, 10 + BRC_S3_GAP }, { 10, 10 }, 2, 2, 20 + BRC_S3_GAP, 0, 0 },
        { { 0, 11 + BRC_S3_GAP }, { 10, 10 }, 2, 1, 10, 0, 0 },
        { { 5, 5, 7 }, { 10, 3, 2 }, 3, 3, 15, 0, 0 },
        { { 0, 10, BRC_S3_JOINED - 8 }, { 10, BRC_S3_JOINED - 20, 8 }, 3, 3, BRC_S3_JOINED, 0, 0 },
        { { 0, 10, BRC_S3_JOINED - 8 }, { 10, BRC_S3_JOINED - 20, 9 }, 3, 2, BRC_S3_JOINED - 10,
          0, 0 },
        { { 0, 1 }, { BRC_S3_JOINED * 3, 1 }, 2, 2, BRC_S3_JOINED * 3, 0, 0 },
        { { 0, 110, 221 }, { 10, 10, 5 }, 3, 2, 120, 100, 0 },
        { { 0, 110, 120 }, { 10, 10, 5 }, 3, 3, 125, 100, 125 },
        { { 0, 110, 120 }, { 10, 10, 5 }, 3, 2, 120, 100, 124 },
        { { 0, UINT64_MAX - 20 }, { 10, 10 }, 2, 1, 10, UINT64_MAX - 31, 0 },
        { { 0, UINT64_MAX - 20 }, { 10, 10 }, 2, 2, UINT64_MAX - 10, UINT64_MAX, UINT64_MAX },
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        brc_stored items[4] = { 0 }, *list[4];
        uint64_t end = 0;
        for (size_t k = 0; k < cases[i].n; k++) {
            items[k] = (brc_stored){ .place = PLACE, .offset = cases[i].at[k],
                                     .len = cases[i].len[k] };
            list[k] = &items[k];
        }
        const uint64_t gap = cases[i].gap, range = cases[i].range;
        ck_assert_uint_eq(brc_s3_join(cases[i].n, list, gap, range, &end), cases[i].joined);
        ck_assert_uint_eq(end, cases[i].end);
        items[cases[i].n - 1].place = ID "/" WRITER "/" WRITER; /* another pack */
        ck_assert_uint_lt(brc_s3_join(cases[i].n, list, gap, range, &end), cases[i].n);
    }
}
