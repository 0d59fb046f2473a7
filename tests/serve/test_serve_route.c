/* Requests of strangers, read: paths, queries, ranges, etags, hosts. */
#include <stdlib.h>
#include <string.h>

#include "../../src/serve/route.h"
#include "../kit/suite.h"

TEST_SUITE(serve_route);

#define TOKEN "0123456789abcdef"
#define AT "/" TOKEN

typedef struct path_row {
    const char *uri;
    int what, format;
    const char *rev, *name, *key, *api; /* NULL: not looked at */
} path_row;

static const path_row path_rows[] = {
    { AT "/", SERVE_IS_PAGE, 0, NULL, NULL, NULL, NULL },
    { AT "/?file=a", SERVE_IS_PAGE, 0, NULL, NULL, NULL, NULL },
    { AT, SERVE_IS_UNSLASHED, 0, NULL, NULL, NULL, NULL },
    { AT "/main/a.zarr/zarr.json", SERVE_IS_KEY, 3, "main", "a", "zarr.json", NULL },
    { AT "/main/a.zarr/g/x/c/0/1", SERVE_IS_KEY, 3, "main", "a", "g/x/c/0/1", NULL },
    { AT "/main/a.zarr/g/", SERVE_IS_KEY, 3, "main", "a", "g/", NULL },
    { AT "/main/a.zarr/", SERVE_IS_KEY, 3, "main", "a", "", NULL },
    { AT "/main/a.zarr", SERVE_IS_UNSLASHED, 3, "main", "a", "", NULL },
    { AT "/main/", SERVE_IS_NAMES, 3, "main", "", NULL, NULL },
    { AT "/main", SERVE_IS_UNSLASHED, 3, "main", NULL, NULL, NULL },
    { AT "/main/fold/sub/", SERVE_IS_NAMES, 3, "main", "fold/sub", NULL, NULL },
    { AT "/main/fold/a.zarr/b", SERVE_IS_KEY, 3, "main", "fold/a", "b", NULL },
    { AT "/main/a.zarr.zarr/b", SERVE_IS_KEY, 3, "main", "a.zarr", "b", NULL },
    { AT "/main/a.zarr/b.zarr/c", SERVE_IS_KEY, 3, "main", "a", "b.zarr/c", NULL },
    { AT "/a%2Fb~1/a.zarr/k", SERVE_IS_KEY, 3, "a/b~1", "a", "k", NULL },
    { AT "/main%40%7B2026-11-20T12:00:00Z%7D/a.zarr/k", SERVE_IS_KEY, 3,
      "main@{2026-11-20T12:00:00Z}", "a", "k", NULL },
    { AT "/m/a%20b+c.zarr/%c3%a9/x", SERVE_IS_KEY, 3, "m", "a b+c", "\xc3\xa9/x", NULL },
    { AT "/v2/main/a.zarr/.zgroup", SERVE_IS_KEY, 2, "main", "a", ".zgroup", NULL },
    { AT "/v2/v2/a.zarr/k", SERVE_IS_KEY, 2, "v2", "a", "k", NULL },
    { AT "/v2/a.zarr/k", SERVE_IS_KEY, 3, "v2", "a", "k", NULL },
    { AT "/v2/x%2fy/a.zarr/k", SERVE_IS_KEY, 2, "x/y", "a", "k", NULL },
    { AT "/v2/main/", SERVE_IS_NAMES, 2, "main", "", NULL, NULL },
    { AT "/v2/", SERVE_IS_NAMES, 3, "v2", "", NULL, NULL },
    { AT "/api/tree?rev=main", SERVE_IS_API, 0, NULL, NULL, NULL, "tree" },
    { AT "/api/a.zarr/k", SERVE_IS_KEY, 3, "api", "a", "k", NULL },
    { AT "/api/", SERVE_NOTHING, 0, NULL, NULL, NULL, NULL },
    { AT "/api/tree/x", SERVE_NOTHING, 0, NULL, NULL, NULL, NULL },
    { "/", SERVE_NOTHING, 0, NULL, NULL, NULL, NULL },
    { "", SERVE_NOTHING, 0, NULL, NULL, NULL, NULL },
    { "*", SERVE_NOTHING, 0, NULL, NULL, NULL, NULL },
    { "/0123456789abcdeX/main/a.zarr/k", SERVE_NOTHING, 0, NULL, NULL, NULL, NULL },
    { "/0123456789abcde/main/a.zarr/k", SERVE_NOTHING, 0, NULL, NULL, NULL, NULL },
    { AT "0/main/a.zarr/k", SERVE_NOTHING, 0, NULL, NULL, NULL, NULL },
    { "//main/a.zarr/k", SERVE_NOTHING, 0, NULL, NULL, NULL, NULL },
    { AT "/main/a.zarr/../b", SERVE_NOTHING, 0, NULL, NULL, NULL, NULL },
    { AT "/main/a.zarr/%2e%2E/b", SERVE_NOTHING, 0, NULL, NULL, NULL, NULL },
    { AT "/main/a.zarr/./b", SERVE_NOTHING, 0, NULL, NULL, NULL, NULL },
    { AT "/main/a.zarr//b", SERVE_NOTHING, 0, NULL, NULL, NULL, NULL },
    { AT "/main//a.zarr/b", SERVE_NOTHING, 0, NULL, NULL, NULL, NULL },
    { AT "/main/../a.zarr/b", SERVE_NOTHING, 0, NULL, NULL, NULL, NULL },
    { AT "//a.zarr/b", SERVE_NOTHING, 0, NULL, NULL, NULL, NULL },
    { AT "/main/a.zarr/a%2fb", SERVE_NOTHING, 0, NULL, NULL, NULL, NULL },
    { AT "/main/x%2fa.zarr/b", SERVE_NOTHING, 0, NULL, NULL, NULL, NULL },
    { AT "/main/a.zarr/%00b", SERVE_NOTHING, 0, NULL, NULL, NULL, NULL },
    { AT "/main/a.zarr/%4", SERVE_NOTHING, 0, NULL, NULL, NULL, NULL },
    { AT "/main/a.zarr/%zz", SERVE_NOTHING, 0, NULL, NULL, NULL, NULL },
    { AT "/main/a.zarr/%ff", SERVE_NOTHING, 0, NULL, NULL, NULL, NULL },
    { AT "/main/a.zarr/%ed%a0%80", SERVE_NOTHING, 0, NULL, NULL, NULL, NULL },
    { AT "/main/a.zarr/%c0%80", SERVE_NOTHING, 0, NULL, NULL, NULL, NULL },
    { AT "/main/.zarr/b", SERVE_IS_UNSLASHED, 3, NULL, NULL, NULL, NULL },
};

static void same_text(const char *got, const char *want)
{
    if (want != NULL)
        ck_assert_str_eq(got != NULL ? got : "(nothing)", want);
}

EACH(a_path_names_one_thing, path_rows)
{
    const path_row *row = &path_rows[_i];
    serve_target t;
    brc_error err = BRC_ERROR_INIT;
    ck_assert_msg(serve_target_read(&t, row->uri, TOKEN, &err) == BRC_OK, "%s", err.message);
    ck_assert_msg(t.what == row->what, "%s is %d", row->uri, t.what);
    if (row->format != 0)
        ck_assert_int_eq(t.format, row->format);
    same_text(t.rev, row->rev);
    same_text(t.name, row->name);
    same_text(t.key, row->key);
    same_text(t.api, row->api);
    serve_target_dispose(&t);
}

static void query_fails(const char *uri, int code)
{
    serve_target t;
    brc_error err = BRC_ERROR_INIT;
    ck_assert_int_eq(serve_target_read(&t, uri, TOKEN, &err), code);
    ck_assert_int_eq(err.code, code);
    serve_target_dispose(&t);
}

TEST(a_query_has_names_and_values)
{
    serve_target t;
    brc_error err = BRC_ERROR_INIT;
    const char *uri = AT "/api/slice?path=%2Fa+b&x&&slice=0:3,%20:&path=2&y=a=b&=z";
    ck_assert_int_eq(serve_target_read(&t, uri, TOKEN, &err), BRC_OK);
    ck_assert_int_eq((int)t.query.n, 6);
    ck_assert_str_eq(serve_query_get(&t.query, "path"), "/a b");
    ck_assert_str_eq(serve_query_get(&t.query, "x"), "");
    ck_assert_str_eq(serve_query_get(&t.query, "slice"), "0:3, :");
    ck_assert_str_eq(serve_query_get(&t.query, "y"), "a=b");
    ck_assert_str_eq(serve_query_get(&t.query, ""), "z");
    ck_assert(serve_query_get(&t.query, "z") == NULL);
    serve_target_dispose(&t);
}

TEST(a_bad_query_is_an_error)
{
    char many[SERVE_MOST_URI + 2];
    query_fails(AT "/?a=%f", BRC_EINVAL);
    query_fails(AT "/?a%00=1", BRC_EINVAL);
    query_fails(AT "/?a=%ff", BRC_EINVAL);
    memset(many, 'a', sizeof(many) - 1);
    many[sizeof(many) - 1] = '\0';
    query_fails(many, BRC_ELIMIT);
    memcpy(many, AT "/?", sizeof(AT "/?"));
    for (int i = 0; i <= SERVE_MOST_PAIRS; i++)
        memcpy(many + strlen(AT "/?") + 2 * (size_t)i, "a&", 3);
    query_fails(many, BRC_ELIMIT);
}

/* The longest target, of which each byte could be a text of its own. */
TEST(a_long_target_fits)
{
    static const char *const begins[] = { AT "/", AT "/m/a.zarr/", AT "/?" };
    for (size_t i = 0; i < sizeof(begins) / sizeof(begins[0]); i++)
        for (size_t j = 0; j < 3; j++) {
            char uri[SERVE_MOST_URI + 1];
            serve_target t;
            const size_t n = strlen(begins[i]);
            memcpy(uri, begins[i], n);
            for (size_t k = n; k < SERVE_MOST_URI; k++)
                uri[k] = "/aa"[(k - n + j) % (j + 1)];
            uri[SERVE_MOST_URI] = '\0';
            ck_assert_int_eq(serve_target_read(&t, uri, TOKEN, NULL), BRC_OK);
            serve_target_dispose(&t);
        }
}

typedef struct range_row {
    const char *text;
    int is_one, kind;
    uint64_t start, end;
} range_row;

static const range_row range_rows[] = {
    { "bytes=0-0", 1, BRC_RANGE_BETWEEN, 0, 1 },
    { "bytes=5-99", 1, BRC_RANGE_BETWEEN, 5, 100 },
    { "Bytes = 5-99 ", 1, BRC_RANGE_BETWEEN, 5, 100 },
    { "bytes=7-", 1, BRC_RANGE_FROM, 7, 0 },
    { "bytes=-7", 1, BRC_RANGE_LAST, 7, 0 },
    { "bytes=-0", 1, BRC_RANGE_LAST, 0, 0 },
    { "bytes=18446744073709551615-18446744073709551615", 1, BRC_RANGE_BETWEEN, UINT64_MAX,
      UINT64_MAX },
    { "bytes=99999999999999999999999-", 1, BRC_RANGE_FROM, UINT64_MAX, 0 },
    { NULL, 0, 0, 0, 0 },
    { "", 0, 0, 0, 0 },
    { "bytes", 0, 0, 0, 0 },
    { "bytes=", 0, 0, 0, 0 },
    { "bytes=-", 0, 0, 0, 0 },
    { "bytes=5", 0, 0, 0, 0 },
    { "bytes=5-4", 0, 0, 0, 0 },
    { "bytes=0-1,3-4", 0, 0, 0, 0 },
    { "bytes=0x1-2", 0, 0, 0, 0 },
    { "bytes=+1-2", 0, 0, 0, 0 },
    { "bytes=--1", 0, 0, 0, 0 },
    { "items=0-1", 0, 0, 0, 0 },
};

EACH(a_range_is_one_or_none, range_rows)
{
    const range_row *row = &range_rows[_i];
    brc_key_range range;
    ck_assert_int_eq(serve_range_read(&range, row->text), row->is_one);
    if (!row->is_one)
        return;
    ck_assert_int_eq(range.kind, row->kind);
    ck_assert_uint_eq(range.start, row->start);
    ck_assert_uint_eq(range.end, row->end);
}

TEST(etags_are_compared)
{
    ck_assert(serve_etag_matches("\"ab\"", "ab", 0));
    ck_assert(serve_etag_matches("\"x\", W/\"ab\"", "ab", 0));
    ck_assert(!serve_etag_matches("\"x\", W/\"ab\"", "ab", 1));
    ck_assert(serve_etag_matches("\"x\",\"ab\"", "ab", 1));
    ck_assert(serve_etag_matches("*", "ab", 0));
    ck_assert(!serve_etag_matches("*", "ab", 1));
    ck_assert(!serve_etag_matches("ab", "ab", 0));
    ck_assert(!serve_etag_matches("\"ab", "ab", 0));
    ck_assert(!serve_etag_matches("\"abc\"", "ab", 0));
    ck_assert(!serve_etag_matches("\"\"", "", 0));
    ck_assert(!serve_etag_matches(NULL, "ab", 0));
}

TEST(hosts_are_known_or_not)
{
    static const char *const hosts[] = { "data.example.org" };
    static const char *const good[] = {
        "localhost", "LOCALHOST:80", "127.0.0.1:8080",       "127.1.2.3",
        "[::1]:1",   "[::1]",        "data.example.org:443", "Data.Example.Org."
    };
    static const char *const bad[] = { "",
                                       "example.org",
                                       "localhost.example.org",
                                       "127.0.0.1.org",
                                       "127.0.0",
                                       "127...1",
                                       "[::2]",
                                       "localhost:8x",
                                       "[::1]x",
                                       "evil:127.0.0.1",
                                       "data.example.org.evil",
                                       "128.0.0.1" };
    for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++)
        ck_assert_msg(serve_host_is_known(good[i], hosts, 1), "%s", good[i]);
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
        ck_assert_msg(!serve_host_is_known(bad[i], hosts, 1), "%s", bad[i]);
    ck_assert(!serve_host_is_known(NULL, hosts, 1));
    ck_assert(!serve_host_is_known("data.example.org", NULL, 0));
}

TEST(text_is_escaped_for_others)
{
    brc_buf out = BRC_BUF_INIT;
    ck_assert_int_eq(serve_url_escape(&out, "a/b c%\xc3\xa9?#&\"", 0, NULL), BRC_OK);
    ck_assert_int_eq(serve_url_escape(&out, "|a/b", 1, NULL), BRC_OK);
    ck_assert_mem_eq(out.data, "a%2Fb%20c%25%C3%A9%3F%23%26%22%7Ca/b", out.len);
    out.len = 0;
    ck_assert_int_eq(serve_html_escape(&out, "<a href=\"x\">'&\x01", NULL), BRC_OK);
    ck_assert_mem_eq(out.data, "&lt;a href=&quot;x&quot;&gt;&#39;&amp;\xef\xbf\xbd", out.len);
    brc_buf_dispose(&out);
}

TEST(codes_have_statuses)
{
    static const int codes[][2] = { { BRC_EINVAL, 400 },   { BRC_ENOTFOUND, 404 },
                                    { BRC_ELIMIT, 413 },   { BRC_EBUSY, 503 },
                                    { BRC_ESTALE, 503 },   { BRC_EUNSUPPORTED, 501 },
                                    { BRC_ECORRUPT, 500 }, { BRC_EIO, 500 } };
    for (size_t i = 0; i < sizeof(codes) / sizeof(codes[0]); i++)
        ck_assert_int_eq(serve_status(codes[i][0]), codes[i][1]);
}
