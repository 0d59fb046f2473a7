/* Seeded random documents through the Zarr store view, a commit, exports and imports: each is
 * refused where it is set, or comes back with equal content from everywhere. DOCUMENTS_SEED and
 * DOCUMENTS ask for others, and for more. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../../src/base/json.h"
#include "../kit/effort.h"
#include "../kit/exchange_kit.h"
#include "../kit/scenario.h"
#include "../kit/suite.h"

TEST_SUITE(documents_random);

#define COUNT(list) (sizeof(list) / sizeof((list)[0]))

enum { TOGETHER = 40 }; /* documents of a commit */

/* ---- documents -------------------------------- */

typedef struct maker {
    uint64_t seed;
    brc_buf text;
} maker;

static uint64_t below(maker *m, uint64_t n)
{
    return scenario_below(&m->seed, n);
}

static void say(maker *m, const char *text)
{
    ck_assert_int_eq(brc_buf_text(&m->text, text, NULL), BRC_OK);
}

static void say_space(maker *m)
{
    static const char *const spaces[] = { "", "", "", " ", "\n\t", "\r\n  " };
    say(m, spaces[below(m, COUNT(spaces))]);
}

/* The texts, written as they are between quotes. */
static const char *const texts[] = {
    "", "a", "b", "NaN", "-Infinity", "\\u0000", "a\\u0000b", "\\u0001n1", "\\u0001ra\\\\u0000",
    "\\\\u0000",
    "\xC3\xA9", "\\u00e9", "\xF0\x9F\xAA\xA8", "\\ud83e\\udea8", "\\\"\\\\\\/\\b\\f\\n\\r\\t",
    "/~0~1~", "null",
    "attributes", "_breccia_numbers", "{\\\"numbers\\\":{\\\"/a\\\":\\\"NaN\\\"}}",
    "AAAAAAAA+H8=", "missing_value",
    "_FillValue", "_nc_note", "netcdf", "must_understand", "zarr_format",
    "\\u007f\\u0085\\u2028", "\xEF\xBF\xBF",
    "\xEE\x80\x80", "\xEF\xBB\xBF", "__x", "..", " ",
};
static const char *const numbers[] = {
    "0", "-0", "-0.0", "1", "1.0", "1e0", "1E+2", "0.1", "1e400", "-1e-400", "18446744073709551616",
    "9007199254740993", "123456789012345678901234567890.5", "NaN", "Infinity", "-Infinity", "NaN",
};
/* No JSON, or not for everybody: rare. */
static const char *const wrong[] = {
    "\"\\ud800\"", "\"\xFF\"", "\"\xC0\x80\"", "01", "1.", "nan", "-NaN", "'a'", "[1,]",
    "{\"a\":1,\"a\":2}",
    "{\"\\u0000\":1,\"\\u0000\":2}", "\"\n\"", "+1", "tru", "[", "\"\\x\"",
};

static void say_value(maker *m, int depth);

static void say_text(maker *m)
{
    say(m, "\"");
    for (uint64_t i = below(m, 3); i < 3; i++)
        say(m, texts[below(m, COUNT(texts))]);
    say(m, "\"");
}

/* Names of one object differ by what is in front of them. */
static void say_object(maker *m, int depth)
{
    const uint64_t n = below(m, 5);
    char front[32];
    say(m, "{");
    for (uint64_t i = 0; i < n; i++) {
        say_space(m);
        static const char *const firsts[] = { "", "\\u0000", "x", "y" };
        snprintf(front, sizeof(front), "\"%s", firsts[i]);
        say(m, front);
        if (i == 0 && below(m, 2))
            say(m, texts[below(m, 2) ? 18 : 21 + below(m, 2)]); /* what documents give a meaning */
        else
            say(m, texts[below(m, COUNT(texts))]);
        snprintf(front, sizeof(front), "%s\"", i < 2 ? "" : "\\u0000");
        say(m, front);
        say_space(m);
        say(m, ":");
        say_value(m, depth - 1);
        say(m, i + 1 < n ? "," : "");
    }
    say_space(m);
    say(m, "}");
}

static void say_deep(maker *m)
{
    const uint64_t levels = 40 + below(m, 40);
    for (uint64_t i = 0; i < levels; i++)
        say(m, "[");
    say(m, "NaN");
    for (uint64_t i = 0; i < levels; i++)
        say(m, "]");
}

static void say_value(maker *m, int depth)
{
    const uint64_t what = below(m, depth > 0 ? 10 : 6);
    say_space(m);
    if (below(m, 400) == 0)
        say(m, wrong[below(m, COUNT(wrong))]);
    else if (below(m, 300) == 0)
        say_deep(m);
    else if (what < 3)
        say(m, numbers[below(m, COUNT(numbers))]);
    else if (what < 5)
        say_text(m);
    else if (what == 5)
        say(m, below(m, 2) ? "null" : below(m, 2) ? "true" : "false");
    else if (what < 8)
        say_object(m, depth);
    else {
        const uint64_t n = below(m, 4);
        say(m, "[");
        for (uint64_t i = 0; i < n; i++) {
            say_value(m, depth - 1);
            say(m, i + 1 < n ? "," : "");
        }
        say(m, "]");
    }
    say_space(m);
}

/* Members that a document may have beside its attributes, and now and then one that it may not
 * have. */
static void say_other_member(maker *m)
{
    static const char *const fronts[] = {
        ",\"org.example.x\":{\"must_understand\":false,\"x\":",
        ",\"y\\u0000\":{\"must_understand\":false,\"x\":",
        ",\"attributes\\u0000\":{\"must_understand\":false,\"attributes\":",
        ",\"z\":{\"must_understand\":true,\"x\":", ",\"z\":{\"x\":",
    };
    say(m, fronts[below(m, below(m, 8) ? 3 : COUNT(fronts))]);
    if (below(m, 4) == 0)
        say_value(m, 3); /* which may be NaN */
    else
        say_text(m);
    say(m, "}");
}

static void make_document(maker *m)
{
    static const char *const heads[] = {
        "{\"zarr_format\":3,\"node_type\":\"group\"",
        " {\n\"node_type\" : \"group\" ,\"zarr_format\": 3",
        "{\"zarr_format\":3,\"node_type\":\"array\",\"shape\":[3],\"data_type\":\"float32\","
        "\"chunk_grid\":"
        "{\"name\":\"regular\",\"configuration\":{\"chunk_shape\":[2]}},\"chunk_key_encoding\":{"
        "\"name\":"
        "\"default\"},\"fill_value\":\"NaN\",\"codecs\":[{\"name\":\"bytes\",\"configuration\":{"
        "\"endian\":"
        "\"little\"}}]",
        "{\"zarr_format\":3,\"node_type\":\"array\",\"shape\":[3],\"fill_value\":NaN",
        "{\"zarr_format\":2,\"node_type\":\"group\"",
    };
    m->text.len = 0;
    say(m, heads[below(m, below(m, 12) ? 3 : COUNT(heads))]);
    if (below(m, 3) == 0)
        say_other_member(m);
    if (below(m, 20)) {
        say(m, below(m, 2) ? ",\"attributes\":" : ", \"\\u0061ttributes\" : ");
        if (below(m, 40))
            say_object(m, 4);
        else
            say_value(m, 3);
    }
    say(m, below(m, 100) ? "}" : "");
    ck_assert_int_eq(brc_buf_terminate(&m->text, NULL), BRC_OK);
}

/* ---- the ways of a document -------------------------------- */

typedef struct documents {
    exchange_kit kit;
    maker maker;
    brc_json *kept[TOGETHER]; /* as they were set; NULL: refused */
    size_t nkept, nrefused;
} documents;

static void check_same(const brc_json *want, const brc_buf *got, const char *where, int i)
{
    brc_json *doc;
    brc_error err = BRC_ERROR_INIT;
    ck_assert_msg(brc_json_parse_document(&doc, (const char *)got->data, got->len, &err) == BRC_OK,
                  "%s, %d: %s", where, i, err.message);
    ck_assert_msg(brc_json_equal(want, doc), "%s, %d: %.*s", where, i, (int)got->len,
                  (const char *)got->data);
    brc_json_free(doc);
}

static void check_by_key(documents *d, brc_session *s, const char *where)
{
    char key[32];
    for (int i = 0; i < TOGETHER; i++) {
        brc_buf got = BRC_BUF_INIT;
        snprintf(key, sizeof(key), "t/d%d/zarr.json", i);
        if (d->kept[i]) {
            OK(&d->kit, brc_key_get(&got, s, key, NULL, NULL, &d->kit.err));
            check_same(d->kept[i], &got, where, i);
        } else {
            ck_assert_int_eq(brc_key_get(&got, s, key, NULL, NULL, &d->kit.err), BRC_ENOTFOUND);
        }
        brc_buf_dispose(&got);
    }
}

static void set_all_documents(documents *d)
{
    static const char group[] = "{\"zarr_format\":3,\"node_type\":\"group\"}";
    char key[32];
    OK(&d->kit, brc_key_set(d->kit.session, "t/zarr.json", group, strlen(group), 0, &d->kit.err));
    for (int i = 0; i < TOGETHER; i++) {
        const brc_buf *text = &d->maker.text;
        make_document(&d->maker);
        snprintf(key, sizeof(key), "t/d%d/zarr.json", i);
        int rc = brc_key_set(d->kit.session, key, text->data, text->len, 0, &d->kit.err);
        d->kept[i] = NULL;
        if (rc == BRC_OK) {
            ck_assert_msg(brc_json_parse_document(&d->kept[i], (const char *)text->data, text->len,
                                                  &d->kit.err) == BRC_OK,
                          "%s: %s", (const char *)text->data, d->kit.err.message);
            d->nkept++;
        } else {
            ck_assert_msg(rc == BRC_EINVAL || rc == BRC_ELIMIT || rc == BRC_EUNSUPPORTED,
                          "%d: %s", rc, d->kit.err.message);
            d->nrefused++;
        }
    }
    check_by_key(d, d->kit.session, "set");
}

static void check_copy(documents *d, const char *where, int attributes_only)
{
    char path[32];
    for (int i = 0; i < TOGETHER; i++) {
        brc_buf got = BRC_BUF_INIT;
        snprintf(path, sizeof(path), "/u/d%d", i);
        if (!d->kept[i])
            continue;
        if (attributes_only) {
            const brc_json *want = brc_json_member(d->kept[i], "attributes");
            brc_json *attrs;
            OK(&d->kit, brc_attrs_get(&got, d->kit.session, path, NULL, &d->kit.err));
            OK(&d->kit, brc_json_parse(&attrs, (const char *)got.data, got.len, BRC_JSON_NAN,
                                       &d->kit.err));
            ck_assert_msg(brc_json_count(want) == 0 ? brc_json_count(attrs) == 0
                                                    : brc_json_equal(want, attrs),
                          "%s, %d: %.*s", where, i, (int)got.len, (const char *)got.data);
            brc_json_free(attrs);
        } else {
            OK(&d->kit, brc_node_json(&got, d->kit.session, path, &d->kit.err));
            check_same(d->kept[i], &got, where, i);
        }
        brc_buf_dispose(&got);
    }
    OK(&d->kit, brc_node_remove(d->kit.session, "/u", &d->kit.err));
}

/* Every document is strict JSON by the way, unless it may have words. */
static void out_and_in(documents *d, const char *name, const char *format, uint32_t flags)
{
    brc_xfer_opts opts = BRC_XFER_OPTS_INIT;
    exchange_kit *kit = &d->kit;
    const char *dest = exchange_path(kit, name);
    opts.format = format;
    opts.flags = flags;
    OK(kit, brc_export(kit->session, "/t", dest, &opts, &kit->err));
    OK(kit, brc_import(kit->session, dest, "/u", NULL, &kit->err));
    for (int i = 0; i < TOGETHER && strcmp(format, "zarr3") == 0 && flags == 0; i++) {
        char file[64];
        brc_json *doc;
        if (!d->kept[i])
            continue;
        snprintf(file, sizeof(file), "%s/d%d/zarr.json", name, i);
        brc_buf text = exchange_read(exchange_path(kit, file));
        OK(kit, brc_json_parse(&doc, (const char *)text.data, text.len, 0, &kit->err));
        brc_json_free(doc);
        brc_buf_dispose(&text);
    }
    check_copy(d, name, strcmp(format, "zarr2") == 0);
}

static void through_a_stream(documents *d)
{
    exchange_kit *kit = &d->kit;
    int fd = open(exchange_path(kit, "stream"), O_RDWR | O_CREAT | O_TRUNC, 0600);
    ck_assert_int_ge(fd, 0);
    OK(kit, exchange_stream_out(kit->session, "/t", fd, NULL, &kit->err));
    ck_assert_int_eq(lseek(fd, 0, SEEK_SET), 0);
    OK(kit, exchange_stream_in(kit->session, fd, "/u", NULL, &kit->err));
    close(fd);
    check_copy(d, "stream", 0);
}

CASE("documents_random", .timeout = 300);

TEST(i24_24_what_a_set_accepts_comes_back)
{
    const uint64_t rounds = effort_number("DOCUMENTS", 320) / TOGETHER;
    documents d = { .maker = { .seed = effort_number("DOCUMENTS_SEED", 24) } };
    for (uint64_t round = 0; round < rounds; round++) {
        brc_session *view;
        exchange_start(&d.kit);
        set_all_documents(&d);
        scenario_commit(&d.kit, "documents");
        OK(&d.kit, brc_session_open(&view, d.kit.repo, "main", BRC_SESSION_VIEW, &d.kit.err));
        check_by_key(&d, view, "commit");
        brc_session_free(view);
        out_and_in(&d, "dir", "zarr3", 0);
        out_and_in(&d, "words", "zarr3", BRC_XFER_NAN_TOKENS);
        out_and_in(&d, "all", "zarr3", BRC_XFER_CONSOLIDATED);
        out_and_in(&d, "a.zip", "zip", 0);
        out_and_in(&d, "two", "zarr2", 0);
        through_a_stream(&d);
        for (int i = 0; i < TOGETHER; i++)
            brc_json_free(d.kept[i]);
        exchange_stop(&d.kit);
    }
    ck_assert_uint_gt(d.nkept, rounds * TOGETHER / 2);
    ck_assert_uint_gt(d.nrefused, rounds * TOGETHER / 20);
    brc_buf_dispose(&d.maker.text);
}

/* A document is given back as zarr-python writes it, byte for byte. */
TEST(i24_2_the_store_gives_back_the_document)
{
    static const char text[] =
        "{\n  \"attributes\": {\n    \"missing_value\": NaN,\n    \"valid_range\":"
        " [\n      -Infinity,\n"
        "      Infinity\n    ],\n    \"word\": \"NaN\",\n    \"k\\u0000\": []\n  },"
        "\n  \"zarr_format\": 3,\n"
        "  \"node_type\": \"group\"\n}";
    exchange_kit kit;
    brc_buf got = BRC_BUF_INIT;
    exchange_start(&kit);
    OK(&kit, brc_key_set(kit.session, "g/zarr.json", text, strlen(text), 0, &kit.err));
    for (int i = 0; i < 2; i++) {
        got.len = 0;
        OK(&kit, brc_key_get(&got, kit.session, "g/zarr.json", NULL, NULL, &kit.err));
        ck_assert_uint_eq(got.len, strlen(text));
        ck_assert_mem_eq(got.data, text, got.len);
        if (i == 0)
            scenario_commit(&kit, "as it was");
    }
    brc_buf_dispose(&got);
    exchange_stop(&kit);
}
