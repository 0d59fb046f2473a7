/* The Zarr store view: keys and values as a Zarr directory would have them. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include "../../src/breccia.h"
#include "../kit/scenario.h"
#include "../kit/suite.h"

TEST_SUITE(keys);

#define LITTLE "{\"name\":\"bytes\",\"configuration\":{\"endian\":\"little\"}}"
#define BIG "{\"name\":\"bytes\",\"configuration\":{\"endian\":\"big\"}}"
#define GZIP "{\"name\":\"gzip\",\"configuration\":{\"level\":5}}"
#define ZSTD "{\"name\":\"zstd\",\"configuration\":{\"level\":1}}"

static int text_order(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

/* The keys that begin with a text, sorted, each with a space behind it. */
static void keys_are(scenario *t, const char *prefix, const char *expected)
{
    brc_iter *it;
    const char *key;
    char *keys[64], out[1024] = "";
    size_t n = 0, len = 0;
    int rc;
    OK(t, brc_keys(&it, t->session, prefix, 0, &t->err));
    while ((rc = brc_next(it, &key, &t->err)) > 0) {
        ck_assert_uint_lt(n, 64);
        keys[n++] = strdup(key);
    }
    ck_assert_int_eq(rc, 0);
    brc_iter_free(it);
    qsort(keys, n, sizeof(*keys), text_order);
    for (size_t i = 0; i < n; i++) {
        len += (size_t)snprintf(out + len, sizeof(out) - len, "%s ", keys[i]);
        free(keys[i]);
    }
    ck_assert_str_eq(out, expected);
}

static void value_is(scenario *t, const char *key, const void *data, size_t len)
{
    brc_buf value = BRC_BUF_INIT;
    OK(t, brc_key_get(&value, t->session, key, NULL, NULL, &t->err));
    ck_assert_uint_eq(value.len, len);
    ck_assert_mem_eq(value.data, data, len);
    brc_buf_dispose(&value);
}

static void no_key(scenario *t, const char *key)
{
    brc_buf value = BRC_BUF_INIT;
    int rc = brc_key_get(&value, t->session, key, NULL, NULL, &t->err);
    ck_assert_msg(rc == BRC_ENOTFOUND, "'%s' gives %d", key, rc);
    brc_buf_dispose(&value);
}

/* A 5x7 array of 4x4 chunks of bytes 1, 2, ...; uncompressed. */
static brc_array *small_array(scenario *t, const char *path, const char *encoding)
{
    brc_array_spec spec = BRC_ARRAY_SPEC_INIT;
    const uint64_t shape[2] = { 5, 7 }, chunk[2] = { 4, 4 };
    uint8_t data[35];
    brc_array *a;
    spec.ndim = 2;
    spec.shape = shape;
    spec.chunk = chunk;
    spec.dtype = "uint8";
    spec.codecs_json = "[\"bytes\"]";
    spec.chunk_key_encoding = encoding;
    OK(t, brc_array_create(&a, t->session, path, &spec, &t->err));
    for (int i = 0; i < 35; i++)
        data[i] = (uint8_t)(i + 1);
    OK(t, brc_array_write(a, NULL, data, sizeof(data), &t->err));
    return a;
}

static const uint8_t corner[16] = { 33, 34, 35 }; /* of chunk (1, 1): the rest is padding */

TEST(keys_of_a_hierarchy)
{
    scenario t;
    scenario_start(&t);
    keys_are(&t, "", ""); /* nobody has written anything */
    brc_array_free(small_array(&t, "/g/a", NULL));
    OK(&t, brc_group_create(t.session, "/h", NULL, &t.err));
    const char *all =
        "g/a/c/0/0 g/a/c/0/1 g/a/c/1/0 g/a/c/1/1 g/a/zarr.json g/zarr.json h/zarr.json "
        "zarr.json ";
    keys_are(&t, "", all);
    keys_are(&t, "h/", "h/zarr.json ");
    keys_are(&t, "g/a", "g/a/c/0/0 g/a/c/0/1 g/a/c/1/0 g/a/c/1/1 g/a/zarr.json ");
    scenario_commit(&t, "one");
    keys_are(&t, "", all);
    brc_sel sel = BRC_SEL_INIT;
    uint8_t zero = 0;
    brc_array *a = scenario_array_at(&t, t.session, "/g/a");
    OK(&t, brc_sel_parse(&sel, a, "[:4, :4]", &t.err));
    OK(&t, brc_array_fill(a, &sel, &zero, &t.err)); /* absent: all fill */
    keys_are(&t, "g/", "g/a/c/0/1 g/a/c/1/0 g/a/c/1/1 g/a/zarr.json g/zarr.json ");
    no_key(&t, "g/a/c/0/0");
    keys_are(&t, "none/", "");
    brc_array_free(a);
    scenario_stop(&t);
}

TEST(keys_that_are_none)
{
    static const char *const wrong[] = {
        "",
        "g",
        "g/",
        "g/a",
        "g/a/c",
        "g/a/c/",
        "g/a/c/0",
        "g/a/c/0/0/0",
        "g/a/c/00/0",
        "g/a/c/0/01",
        "g/a/c/2/0",
        "g/a/c/0/2",
        "g/a/c/-1/0",
        "g/a/c/+0/0",
        "g/a/c/ 0/0",
        "g/a/c/0/0 ",
        "g/a/c.0.0",
        "g/a/0.0",
        "g/a/0/0",
        "g/a/C/0/0",
        "g/a//c/0/0",
        "/g/a/c/0/0",
        "g/a/c/0/18446744073709551616",
        "g/a/c/99999999999999999999/0",
        "none/zarr.json",
        "zarr.json/",
        "g/a/c/zarr.json",
        "/zarr.json/x",
        "g/../g/a/c/0/0",
        "g/a/.zarray",
        "c/0/0",
        "zarr.jso",
        "g/a/c/0/0/zarr.json",
        "g/a/c/0x0/0",
    };
    scenario t;
    scenario_start(&t);
    brc_array_free(small_array(&t, "/g/a", NULL));
    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++)
        no_key(&t, wrong[i]);
    value_is(&t, "g/a/c/1/1", corner, 16);
    scenario_stop(&t);
}

TEST(every_key_encoding)
{
    static const struct {
        const char *json, *key, *scalar;
    } forms[] = {
        { "\"default\"", "a/c/1/1", "s/c" },
        { "{\"name\":\"default\",\"configuration\":{\"separator\":\".\"}}", "a/c.1.1", "s/c" },
        { "{\"name\":\"v2\"}", "a/1.1", "s/0" },
        { "{\"name\":\"v2\",\"configuration\":{\"separator\":\".\"}}", "a/1.1", "s/0" },
        { "{\"name\":\"v2\",\"configuration\":{\"separator\":\"/\"}}", "a/1/1", "s/0" },
    };
    for (size_t i = 0; i < sizeof(forms) / sizeof(forms[0]); i++) {
        scenario t;
        brc_array_spec spec = BRC_ARRAY_SPEC_INIT;
        brc_array *a;
        char json[512];
        uint8_t data[35], five = 5;
        scenario_start(&t);
        snprintf(
            json, sizeof(json),
            "{\"zarr_format\":3,\"node_type\":\"array\",\"shape\":[5,7],\"data_type\":\"uint8\","
            "\"chunk_grid\":{\"name\":\"regular\",\"configuration\":{\"chunk_shape\":[4,4]}},"
            "\"chunk_key_encoding\":%s,\"fill_value\":0,\"codecs\":[{\"name\":\"bytes\"}]}",
            forms[i].json);
        spec.metadata_json = json;
        OK(&t, brc_array_create(&a, t.session, "/a", &spec, &t.err));
        for (int j = 0; j < 35; j++)
            data[j] = (uint8_t)(j + 1);
        OK(&t, brc_array_write(a, NULL, data, sizeof(data), &t.err));
        brc_array_free(a);
        value_is(&t, forms[i].key, corner, 16);
        for (size_t j = 0; j < sizeof(forms) / sizeof(forms[0]); j++)
            if (strcmp(forms[j].key, forms[i].key) != 0)
                no_key(&t, forms[j].key);
        snprintf(json, sizeof(json),
                 "{\"zarr_format\":3,\"node_type\":\"array\",\"shape\":[],\"data_type\":\"uint8\","
                 "\"chunk_grid\":{\"name\":\"regular\",\"configuration\":{\"chunk_shape\":[]}},"
                 "\"chunk_key_encoding\":%s,\"fill_value\":0,\"codecs\":[{\"name\":\"bytes\"}]}",
                 forms[i].json);
        OK(&t, brc_array_create(&a, t.session, "/s", &spec, &t.err));
        no_key(&t, forms[i].scalar);
        OK(&t, brc_array_write(a, NULL, &five, 1, &t.err));
        brc_array_free(a);
        value_is(&t, forms[i].scalar, "\5", 1);
        no_key(&t, strcmp(forms[i].scalar, "s/c") == 0 ? "s/0" : "s/c");
        no_key(&t, "s/c/0");
        no_key(&t, "s/c/");
        snprintf(json, sizeof(json), "%s s/zarr.json ", forms[i].scalar);
        keys_are(&t, "s/", json);
        scenario_stop(&t);
    }
}

TEST(an_array_at_the_root_has_no_prefix)
{
    scenario t;
    scenario_start(&t);
    brc_array_free(small_array(&t, "/", "v2"));
    keys_are(&t, "", "0.0 0.1 1.0 1.1 zarr.json ");
    value_is(&t, "1.1", corner, 16);
    no_key(&t, "/1.1");
    no_key(&t, "1.1/0");
    scenario_stop(&t);
}

/* A 4-element int32 chunk, written under `first` and asked for under `second`. */
static void stored_as(scenario *t, const char *first, const char *second, brc_buf *value)
{
    uint64_t n[1] = { 4 };
    int32_t data[4] = { 1, 1, 1, 0x01020304 }, got[4];
    scenario_start(t);
    brc_array *a = scenario_array(t, "/a", "int32", 1, n, n, NULL, first);
    OK(t, brc_array_write(a, NULL, data, sizeof(data), &t->err));
    OK(t, brc_array_set_codecs(a, second, 0, &t->err));
    OK(t, brc_key_get(value, t->session, "a/c/0", NULL, NULL, &t->err));
    OK(t, brc_array_read(a, NULL, got, sizeof(got), &t->err));
    ck_assert_mem_eq(got, data, sizeof(got));
    brc_array_free(a);
}

TEST(values_are_in_the_array_s_own_encoding)
{
    static const uint8_t little[16] = { 1, 0, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0, 4, 3, 2, 1 };
    static const uint8_t big[16] = { 0, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0, 1, 1, 2, 3, 4 };
    static const char *const stored[] = { "[" LITTLE "]", "[" BIG "]", "[" LITTLE "," ZSTD "]",
                                          "[" BIG "," GZIP "]",
                                          "[" LITTLE ",{\"name\":\"crc32c\"}]" };
    for (size_t i = 0; i < 5; i++) {
        scenario t;
        brc_buf value = BRC_BUF_INIT;
        stored_as(&t, stored[i], "[" LITTLE "]", &value);
        ck_assert_uint_eq(value.len, 16);
        ck_assert_mem_eq(value.data, little, 16);
        scenario_stop(&t);
        value.len = 0;
        stored_as(&t, stored[i], "[" BIG "]", &value);
        ck_assert_uint_eq(value.len, 16);
        ck_assert_mem_eq(value.data, big, 16);
        scenario_stop(&t);
        value.len = 0;
        stored_as(&t, stored[i], "[" BIG "," GZIP "]", &value);
        ck_assert_mem_eq(value.data, "\x1f\x8b", 2);
        uint8_t out[64];
        z_stream z;
        memset(&z, 0, sizeof(z));
        ck_assert_int_eq(inflateInit2(&z, 15 + 16), Z_OK);
        z.next_in = value.data;
        z.avail_in = (uInt)value.len;
        z.next_out = out;
        z.avail_out = sizeof(out);
        ck_assert_int_eq(inflate(&z, Z_FINISH), Z_STREAM_END);
        ck_assert_uint_eq(z.total_out, 16);
        ck_assert_mem_eq(out, big, 16);
        inflateEnd(&z);
        scenario_stop(&t);
        brc_buf_dispose(&value);
    }
}

TEST(stored_bytes_pass_through)
{
    scenario t;
    uint64_t n[1] = { 1000 };
    int32_t data[1000];
    brc_buf value = BRC_BUF_INIT, hex = BRC_BUF_INIT;
    char text[4096] = "";
    scenario_start(&t);
    for (int i = 0; i < 1000; i++)
        data[i] = i / 9;
    brc_array *a = scenario_array(&t, "/a", "int32", 1, n, n, NULL, "[" LITTLE "," GZIP "]");
    OK(&t, brc_array_write(a, NULL, data, sizeof(data), &t.err));
    OK(&t, brc_key_get(&value, t.session, "a/c/0", NULL, NULL, &t.err));
    ck_assert_uint_lt(value.len, 2000);
    for (size_t i = 0; i < value.len; i++)
        snprintf(text + 2 * i, 3, "%02X", value.data[i]);
    scenario_rows(&t, "SELECT hex(substr(data, offset+1, stored)) FROM blob"
                      " JOIN object ON place=seq WHERE kind=1", &hex);
    ck_assert_uint_eq(hex.len, 2 * value.len + 1);
    ck_assert_mem_eq(hex.data, text, 2 * value.len);
    scenario_sql(&t,
                 "UPDATE blob SET data=substr(data, 1, 40) || x'00' || substr(data, 42) WHERE seq="
                 "(SELECT place FROM object WHERE kind=1)");
    FAILS(&t, BRC_ECORRUPT, brc_key_get(&value, t.session, "a/c/0", NULL, NULL,
                                        &t.err)); /* but not damage */
    brc_buf_dispose(&value);
    brc_buf_dispose(&hex);
    brc_array_free(a);
    scenario_stop(&t);
}

TEST(documents_are_readable)
{
    scenario t;
    brc_buf value = BRC_BUF_INIT;
    scenario_start(&t);
    OK(&t, brc_group_create(t.session, "/g", "{\"k\":[1,2.50]}", &t.err));
    OK(&t, brc_key_get(&value, t.session, "g/zarr.json", NULL, NULL, &t.err));
    const char *text =
        "{\n  \"zarr_format\": 3,\n  \"node_type\": \"group\",\n  \"attributes\": {\n"
        "    \"k\": [\n      1,\n      2.50\n    ]\n  }\n}";
    ck_assert_uint_ge(value.len, strlen(text));
    ck_assert_mem_eq(value.data, text, strlen(text));
    OK(&t,
       brc_key_get(&value, t.session, "zarr.json", NULL, NULL,
                   &t.err)); /* the root's, which nobody wrote */
    ck_assert_ptr_nonnull(memmem(value.data, value.len, "\"group\"", 7));
    brc_array_free(small_array(&t, "/a", NULL));
    OK(&t, brc_key_get(&value, t.session, "a/zarr.json", NULL, NULL, &t.err));
    ck_assert_ptr_nonnull(memmem(value.data, value.len, "\"chunk_shape\": [", 16));
    scenario_commit(&t, "one");
    brc_session *at = scenario_session(&t, t.repo, "main", BRC_SESSION_AT);
    OK(&t, brc_key_get(&value, at, "g/zarr.json", NULL, NULL, &t.err));
    ck_assert_mem_eq(value.data, text, strlen(text));
    brc_session_free(at);
    brc_buf_dispose(&value);
    scenario_stop(&t);
}

/* A list does not hold an array's keys: what is written behind the place where it stands is in it,
 * and each key comes once, whatever is written or committed meanwhile. */
TEST(keys_come_as_they_are_asked_for)
{
    scenario t;
    const uint64_t shape[2] = { 50, 100 }, chunk[2] = { 1, 1 };
    uint8_t seen[50][100] = { { 0 } }, one = 1;
    brc_iter *it;
    const char *key;
    brc_sel sel = BRC_SEL_INIT;
    unsigned i, j;
    int n = 0, rc;
    scenario_start(&t);
    brc_array *a = scenario_array(&t, "/a", "uint8", 2, shape, chunk, NULL, NULL);
    OK(&t, brc_sel_parse(&sel, a, "[:, :99]", &t.err));
    OK(&t, brc_array_fill(a, &sel, &one, &t.err));
    OK(&t, brc_keys(&it, t.session, "a/", 0, &t.err));
    while ((rc = brc_next(it, &key, &t.err)) > 0) {
        if (++n == 20) {
            OK(&t, brc_sel_parse(&sel, a, "[40, 99]", &t.err));
            OK(&t, brc_array_fill(a, &sel, &one, &t.err));
        }
        if (n == 2000)
            scenario_commit(&t, "meanwhile");
        if (sscanf(key, "a/c/%u/%u", &i, &j) == 2)
            ck_assert_uint_eq(seen[i][j]++, 0);
    }
    ck_assert_int_eq(rc, 0);
    ck_assert_int_eq(n, 1 + 50 * 99 + 1);
    ck_assert_uint_eq(seen[40][99], 1);
    brc_iter_free(it);
    OK(&t, brc_keys(&it, t.session, "a/", 0, &t.err));
    ck_assert_int_eq(brc_next(it, &key, &t.err), 1);
    ck_assert_int_eq(brc_next(it, &key, &t.err), 1);
    OK(&t, brc_node_remove(t.session, "/a", &t.err));
    for (n = 2; (rc = brc_next(it, &key, &t.err)) > 0; n++)
        ;
    ck_assert_int_eq(rc, 0); /* it is gone: no more than was looked up */
    ck_assert_int_lt(n, 1000);
    brc_iter_free(it);
    brc_array_free(a);
    scenario_stop(&t);
}
