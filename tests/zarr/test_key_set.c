/* The key view as clients write to it: in any order, by halves, and with ill will. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../../codecs/lib/crc32c_sum.h"
#include "../../src/base/buf.h"
#include "../../src/breccia.h"
#include "../kit/fsck_kit.h"
#include "../kit/scenario.h"
#include "../kit/suite.h"

TEST_SUITE(key_set);

#define BYTES "{\"name\":\"bytes\",\"configuration\":{\"endian\":\"little\"}}"
#define ZSTD "{\"name\":\"zstd\",\"configuration\":{\"level\":3}}"
#define ARRAY(shape, chunk, type, codecs) \
    "{\"zarr_format\":3,\"node_type\":\"array\",\"shape\":[" shape "],\"data_type\":\"" type \
    "\",\"chunk_grid\":{\"name\":\"regular\",\"configuration\":{\"chunk_shape\":[" chunk \
    "]}},\"chunk_key_encoding\":{\"name\":\"default\"},\"fill_value\":0,\"codecs\":[" codecs "]}"
#define SHARDED(shape, chunk, inner, codecs) \
    ARRAY(shape, chunk, "uint8", \
          "{\"name\":\"sharding_indexed\",\"configuration\":{\"chunk_shape\":[" inner \
          "],\"codecs\":[" codecs "],\"index_codecs\":[" BYTES "]}}")
#define GROUP "{\"zarr_format\":3,\"node_type\":\"group\"}"

static void set(scenario *t, const char *key, const void *data, size_t len)
{
    OK(t, brc_key_set(t->session, key, data, len, 0, &t->err));
}

static void set_text(scenario *t, const char *key, const char *text)
{
    set(t, key, text, strlen(text));
}

static void is_bytes(scenario *t, brc_session *s, const char *key, const void *data, size_t len)
{
    brc_buf out = BRC_BUF_INIT;
    OK(t, brc_key_get(&out, s, key, NULL, NULL, &t->err));
    ck_assert_msg(out.len == len, "%s: %zu bytes, not %zu", key, out.len, len);
    ck_assert_mem_eq(out.data, data, len);
    brc_buf_dispose(&out);
}

static void is_none(scenario *t, const char *key)
{
    ck_assert_msg(!scenario_has_key(t, t->session, key), "%s is there", key);
}

static void elements_are(scenario *t, const char *path, const uint8_t *want, size_t n)
{
    uint8_t got[64];
    brc_array *a = scenario_array_at(t, t->session, path);
    OK(t, brc_array_read(a, NULL, got, n, &t->err));
    ck_assert_mem_eq(got, want, n);
    brc_array_free(a);
}

static int commit(scenario *t)
{
    return scenario_commit_of(t, t->session, "set", NULL);
}

static void refused(scenario *t, const char *key)
{
    char name[96];
    FAILS(t, BRC_ECONFLICT, commit(t));
    snprintf(name, sizeof(name), "'%s'", key);
    ck_assert_msg(strstr(t->err.message, name) != NULL, "%s", t->err.message);
}

CASE("key_set", .timeout = 60);

LOOP(a_document_of_format_2_is_told_as_such, 0, 5)
{
    static const char *const keys[] = { ".zgroup", "a/.zarray", "a/.zattrs", ".zmetadata", "a/.z" };
    scenario t;
    scenario_start(&t);
    set_text(&t, keys[_i], "{\"zarr_format\":2}");
    refused(&t, keys[_i]);
    ck_assert_int_eq(strstr(t.err.message, "write Zarr format 3") != NULL, _i < 4);
    scenario_stop(&t);
}

/* ---- any order -------------------------------- */

LOOP(keys_come_in_any_order, 0, 20)
{
    static const char *const keys[] = { "g/a/c/1", "g/a/c/0", "g/a/zarr.json", "g/zarr.json",
                                        "zarr.json" };
    static const uint8_t elements[6] = { 1, 2, 3, 4, 5, 6 }, second[4] = { 5, 6, 0, 0 };
    scenario t;
    int order[5] = { 0, 1, 2, 3, 4 };
    uint64_t seed = (uint64_t)_i;
    scenario_start(&t);
    for (int i = 4; i > 0; i--) {
        const int j = (int)scenario_below(&seed, (uint64_t)i + 1), other = order[j];
        order[j] = order[i];
        order[i] = other;
    }
    for (int i = 0; i < 5; i++) {
        const int k = order[i];
        if (k == 0)
            set(&t, keys[k], second, 4);
        else if (k == 1)
            set(&t, keys[k], elements, 4);
        else
            set_text(&t, keys[k], k == 2 ? ARRAY("6", "4", "uint8", BYTES) : GROUP);
    }
    ck_assert_int_eq(scenario_ask(&t, "SELECT count(*) FROM draft_key"), 0);
    elements_are(&t, "/g/a", elements, 6);
    OK(&t, commit(&t));
    elements_are(&t, "/g/a", elements, 6);
    is_bytes(&t, t.session, "g/a/c/1", second, 4);
    scenario_whole(&t);
    scenario_stop(&t);
}

TEST(what_is_no_chunk_yet_is_kept_and_refused_by_name)
{
    static const uint8_t bytes[5] = { 9, 8, 7, 6, 5 };
    scenario t;
    scenario_start(&t);
    set(&t, "foo", bytes, 5);
    set(&t, "foo/bar", bytes, 0); /* also beneath a key, also empty */
    set(&t, "a/c/0", bytes, 4);
    set_text(&t, "b/zarr.json", "hello");
    scenario_whole(&t);
    scenario_reopen(&t);
    is_bytes(&t, t.session, "foo", bytes, 5);
    is_bytes(&t, t.session, "foo/bar", "", 0);
    is_bytes(&t, t.session, "a/c/0", bytes, 4);
    is_bytes(&t, t.session, "b/zarr.json", "hello", 5);
    ck_assert_int_eq(scenario_clean(&t), 0);
    refused(&t, "a/c/0");
    set_text(&t, "a/zarr.json", ARRAY("4", "4", "uint8", BYTES));
    refused(&t, "b/zarr.json");
    OK(&t, brc_key_delete(t.session, "b/zarr.json", 0, &t.err));
    refused(&t, "foo");
    OK(&t, brc_key_delete(t.session, "foo", 0, &t.err));
    refused(&t, "foo/bar");
    OK(&t, brc_key_delete(t.session, "foo/bar", 0, &t.err));
    OK(&t, commit(&t));
    elements_are(&t, "/a", bytes, 4);
    scenario_whole(&t);
    scenario_stop(&t);
}

TEST(P8_set_where_there_is_none)
{
    scenario t;
    scenario_start(&t);
    OK(&t, brc_key_set(t.session, "k", "1", 1, BRC_KEY_NEW, &t.err));
    FAILS(&t, BRC_EEXISTS, brc_key_set(t.session, "k", "2", 1, BRC_KEY_NEW, &t.err));
    ck_assert_str_eq(t.err.message, "the key 'k' already exists");
    is_bytes(&t, t.session, "k", "1", 1);
    OK(&t, brc_key_set(t.session, "zarr.json", GROUP, strlen(GROUP), BRC_KEY_NEW, &t.err));
    FAILS(&t, BRC_EEXISTS, brc_key_set(t.session, "zarr.json", "x", 1, BRC_KEY_NEW, &t.err));
    FAILS(&t, BRC_EINVAL, brc_key_set(t.session, "k", "2", 1, 8, &t.err));
    FAILS(&t, BRC_EINVAL, brc_key_delete(t.session, "k", 8, &t.err));
    scenario_stop(&t);
}

TEST(many_sets_are_one_transaction)
{
    static const char *const keys[] = { "a/c/0", "a/c/1", "a/zarr.json" };
    static const char *const bad[] = { "a/c/0", "../x" };
    const char *doc = ARRAY("8", "4", "uint8", BYTES);
    const void *data[] = { "\1\2\3\4", "\5\6\7\10", doc };
    const void *none[] = { NULL, NULL };
    const size_t lens[] = { 4, 4, strlen(doc) };
    scenario t;
    scenario_start(&t);
    const int64_t before = scenario_ask(&t, "SELECT coalesce(max(changes), 0) FROM draft");
    OK(&t, brc_key_set_many(t.session, keys, data, lens, 3, &t.err));
    ck_assert_int_eq(before, 0);
    elements_are(&t, "/a", (const uint8_t *)"\1\2\3\4\5\6\7\10", 8);
    FAILS(&t, BRC_EINVAL, brc_key_set_many(t.session, bad, data + 1, lens, 2, &t.err));
    is_bytes(&t, t.session, "a/c/0", "\1\2\3\4", 4); /* nothing of it */
    FAILS(&t, BRC_EINVAL, brc_key_set_many(t.session, bad, none, lens, 2, &t.err));
    is_bytes(&t, t.session, "a/c/0", "\1\2\3\4", 4);
    OK(&t, brc_begin(t.repo, &t.err));
    set(&t, "a/c/0", "\3\3\3\3", 4);
    set(&t, "loose", "\3\3\3\3", 4);
    is_bytes(&t, t.session, "a/c/0", "\3\3\3\3", 4);
    OK(&t, brc_end(t.repo, 0, &t.err));
    is_bytes(&t, t.session, "a/c/0", "\1\2\3\4", 4);
    is_none(&t, "loose");
    scenario_whole(&t);
    scenario_stop(&t);
}

TEST(sets_and_deletes_are_one_transaction)
{
    static const char *const keys[] = { "a/c/0", "a/c/1", "none", "k", "a/c/0" };
    const char *doc = ARRAY("8", "4", "uint8", BYTES);
    const void *data[] = { NULL, "\5\6\7\10", NULL, "", "\3\3\3\3" };
    const size_t lens[] = { 9, 4, 0, 0, 4 }; /* the first does not count */
    scenario t;
    scenario_start(&t);
    set_text(&t, "a/zarr.json", doc);
    set(&t, "a/c/0", "\1\2\3\4", 4);
    set(&t, "k", "1", 1);
    OK(&t, brc_key_set_many(t.session, keys, data, lens, 4, &t.err));
    is_none(&t, "a/c/0");
    is_bytes(&t, t.session, "a/c/1", "\5\6\7\10", 4);
    is_bytes(&t, t.session, "k", "", 0);
    OK(&t, brc_key_set_many(t.session, keys, data, lens, 5, &t.err)); /* the last one wins */
    is_bytes(&t, t.session, "a/c/0", "\3\3\3\3", 4);
    OK(&t, brc_key_set(t.session, "k", NULL, 0, 0, &t.err)); /* sets it */
    is_bytes(&t, t.session, "k", "", 0);
    scenario_whole(&t);
    scenario_stop(&t);
}

/* A session keeps fewer arrays open than one call may name: what was prepared must not point into
 * one that was closed since. */
TEST(f45_one_call_sets_chunks_of_more_arrays_than_a_session_keeps)
{
    enum { MANY = 40 };
    char names[MANY][32];
    const char *keys[MANY];
    const void *data[MANY];
    size_t lens[MANY];
    uint8_t chunks[MANY][8];
    scenario t;
    scenario_start(&t);
    for (int i = 0; i < MANY; i++) {
        char codecs[256];
        snprintf(codecs, sizeof(codecs), "[%s,%s]", BYTES, "{\"name\":\"crc32c\"}");
        snprintf(names[i], sizeof(names[i]), "/a%d", i);
        brc_array_free(scenario_array(&t, names[i], "uint32", 1, (const uint64_t[]){1}, NULL, NULL,
                                      codecs));
        memset(chunks[i], i, 4);
        brc_put_u32le(chunks[i] + 4, brc_crc32c(chunks[i], 4));
        snprintf(names[i], sizeof(names[i]), "a%d/c/0", i);
        keys[i] = names[i];
        data[i] = chunks[i];
        lens[i] = 8;
    }
    OK(&t, brc_key_set_many(t.session, keys, data, lens, MANY, &t.err));
    for (int i = 0; i < MANY; i++) {
        brc_buf out = BRC_BUF_INIT;
        OK(&t, brc_key_get(&out, t.session, keys[i], NULL, NULL, &t.err));
        ck_assert_uint_eq(out.len, 8);
        ck_assert_mem_eq(out.data, chunks[i], 8);
        brc_buf_dispose(&out);
    }
    scenario_whole(&t);
    scenario_stop(&t);
}

/* ---- bytes -------------------------------- */

TEST(encoded_bytes_are_kept_as_they_are)
{
    scenario t;
    brc_buf one = BRC_BUF_INIT;
    uint8_t zeros[256] = {0};
    const uint64_t n[1] = { 256 };
    scenario_start(&t);
    /* The same elements by another level: other bytes. */
    brc_array *a = scenario_array(&t, "/from", "uint8", 1, n, n, NULL,
                                  "[" BYTES ",{\"name\":\"zstd\",\"configuration\":{\"level\":19,"
                                  "\"checksum\":true}}]");
    for (int i = 0; i < 256; i++)
        zeros[i] = (uint8_t)(i % 7);
    OK(&t, brc_array_write(a, NULL, zeros, 256, &t.err));
    brc_array_free(a);
    OK(&t, brc_key_get(&one, t.session, "from/c/0", NULL, NULL, &t.err));
    OK(&t, brc_node_remove(t.session, "/from", &t.err));
    scenario_close(&t);
    ck_assert_int_eq(unlink(t.file), 0);
    scenario_open(&t, NULL, BRC_OPEN_CREATE);
    set_text(&t, "a/zarr.json", ARRAY("256", "256", "uint8", BYTES "," ZSTD));
    set(&t, "a/c/0", one.data, one.len);
    is_bytes(&t, t.session, "a/c/0", one.data, one.len);
    uint8_t got[256];
    brc_array *b = scenario_array_at(&t, t.session, "/a");
    OK(&t, brc_array_read(b, NULL, got, 256, &t.err));
    ck_assert_mem_eq(got, zeros, 256);
    brc_array_free(b);
    OK(&t, commit(&t));
    is_bytes(&t, t.session, "a/c/0", one.data, one.len);
    brc_buf_dispose(&one);
    scenario_whole(&t);
    scenario_stop(&t);
}

TEST(hostile_keys)
{
    static const char *const wrong[] = { "",    "/",      "/a",   "a/",     "a//b", ".",
                                         "..",  "../a",   "a/..", "a/../b", "a/./b", "./a",
                                         "\xff", "a/\xc0\x80", "a/\xed\xa0\x80" };
    scenario t;
    char *key = malloc(6001);
    brc_buf out = BRC_BUF_INIT;
    scenario_start(&t);
    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
        FAILS(&t, BRC_EINVAL, brc_key_set(t.session, wrong[i], "x", 1, 0, &t.err));
        FAILS(&t, BRC_EINVAL, brc_key_set(t.session, wrong[i], "x", 1, BRC_KEY_NEW, &t.err));
        FAILS(&t, BRC_EINVAL, brc_key_delete(t.session, wrong[i], 0, &t.err));
        FAILS(&t, BRC_ENOTFOUND, brc_key_get(&out, t.session, wrong[i], NULL, NULL, &t.err));
        is_none(&t, wrong[i]);
    }
    for (size_t len = 4000; len <= 6000; len += 40) {
        memset(key, 'k', len);
        key[len] = '\0';
        for (size_t i = 200; i + 1 < len; i += 201)
            key[i] = '/';
        int rc = brc_key_set(t.session, key, "x", 1, 0, &t.err);
        ck_assert_int_eq(rc, len <= 5120 ? BRC_OK : BRC_EINVAL);
        if (rc == BRC_OK)
            is_bytes(&t, t.session, key, "x", 1);
        else
            is_none(&t, key);
    }
    set(&t, "zarr.json/x", "1", 1); /* a directory's name like any other */
    set(&t, "__private/zarr.json", GROUP, strlen(GROUP)); /* no node can have it */
    is_bytes(&t, t.session, "__private/zarr.json", GROUP, strlen(GROUP));
    OK(&t, brc_key_delete(t.session, "kkk", BRC_KEY_PREFIX, &t.err));
    refused(&t, "__private/zarr.json");
    OK(&t, brc_key_delete(t.session, "__", BRC_KEY_PREFIX, &t.err));
    refused(&t, "zarr.json/x");
    scenario_whole(&t);
    free(key);
    brc_buf_dispose(&out);
    scenario_stop(&t);
}

TEST(hostile_bytes)
{
    static const char *const documents[] = {
        "", "{", "null", "[1]", "\"zarr\"", "{\"zarr_format\":2}", "{\"zarr_format\":3}",
    }, *const wrong[] = {
        "{\"zarr_format\":3,\"node_type\":\"file\"}", " {\"zarr_format\":3,\"node_type\":",
        ARRAY("6", "0", "uint8", BYTES), ARRAY("-6", "4", "uint8", BYTES),
        ARRAY("9223372036854775807,9223372036854775807", "9223372036854775807,4", "uint8", BYTES),
        SHARDED("8", "8", "3", BYTES), SHARDED("1000000000000", "1000000000000", "1", BYTES)
    };
    scenario t;
    uint8_t bytes[2048];
    uint64_t seed = 4;
    scenario_start(&t);
    for (size_t i = 0; i < sizeof(documents) / sizeof(documents[0]); i++) {
        set_text(&t, "d/zarr.json", documents[i]);
        is_bytes(&t, t.session, "d/zarr.json", documents[i], strlen(documents[i]));
        refused(&t, "d/zarr.json");
    }
    OK(&t, brc_key_delete(t.session, "d/zarr.json", 0, &t.err));
    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) { /* no later key mends these */
        ck_assert_int_lt(brc_key_set(t.session, "d/zarr.json", wrong[i], strlen(wrong[i]), 0,
                                     &t.err),
                         0);
        ck_assert_msg(strncmp(t.err.message, "d/zarr.json: ", 13) == 0, "%s", t.err.message);
        is_none(&t, "d/zarr.json");
    }
    set_text(&t, "a/zarr.json", ARRAY("600", "200", "uint8", BYTES "," ZSTD));
    set_text(&t, "s/zarr.json", SHARDED("64", "64", "8", BYTES "," ZSTD));
    for (int i = 0; i < 300; i++) {
        const size_t len = (size_t)scenario_below(&seed, sizeof(bytes));
        for (size_t k = 0; k < len; k++)
            bytes[k] = (uint8_t)scenario_random(&seed);
        if (i % 3 == 0 && len > 4)
            memcpy(bytes, "\x28\xb5\x2f\xfd", 4);
        static const char *const keys[] = { "a/c/0", "s/c/0", "h/c/0", "a/c/2" };
        const char *key = keys[i % 4];
        set(&t, key, bytes, len);
        is_bytes(&t, t.session, key, bytes, len);
        brc_key_info info = BRC_KEY_INFO_INIT;
        OK(&t, brc_key_get(NULL, t.session, key, NULL, &info, &t.err));
        ck_assert_uint_eq(info.length, len);
    }
    refused(&t, "a/c/0");
    scenario_whole(&t);
    OK(&t, brc_session_discard(t.session, &t.err));
    is_none(&t, "a/c/0");
    is_none(&t, "zarr.json");
    scenario_whole(&t);
    scenario_stop(&t);
}

/* An element whose chunk a client has set to something else is not fill value. */
TEST(elements_under_other_bytes_are_not_read_or_written)
{
    scenario t;
    brc_array *a;
    uint8_t got[8] = {0};
    scenario_start(&t);
    set_text(&t, "a/zarr.json", ARRAY("8", "4", "uint8", BYTES));
    set(&t, "a/c/0", "\1\2\3\4", 4);
    set(&t, "a/notes", "x", 1);
    OK(&t, brc_array_open(&a, t.session, "/a", &t.err));
    OK(&t, brc_array_read(a, NULL, got, 8, &t.err));
    set(&t, "a/c/0", "\1\2\3", 3);
    FAILS(&t, BRC_ECONFLICT, brc_array_read(a, NULL, got, 8, &t.err));
    ck_assert_ptr_nonnull(strstr(t.err.message, "'a/c/0'"));
    FAILS(&t, BRC_ECONFLICT, brc_array_write(a, NULL, got, 8, &t.err));
    OK(&t, brc_key_delete(t.session, "a/c/0", 0, &t.err));
    OK(&t, brc_array_read(a, NULL, got, 8, &t.err));
    brc_array_free(a);
    scenario_stop(&t);
}

/* ---- documents that come, change and go -------------------------------- */

LOOP(a_document_that_is_deleted_leaves_what_is_below, 0, 2)
{
    scenario t;
    const char *doc = ARRAY("8", "4", "uint8", BYTES);
    scenario_start(&t);
    set_text(&t, "g/zarr.json", GROUP);
    set_text(&t, "g/a/zarr.json", doc);
    set(&t, "g/a/c/0", "\1\2\3\4", 4);
    set(&t, "g/a/c/1", "\5\6\7\10", 4);
    if (_i)
        OK(&t, commit(&t));
    OK(&t, brc_key_delete(t.session, "g/zarr.json", 0, &t.err));
    OK(&t, brc_key_delete(t.session, "g/a/zarr.json", 0, &t.err));
    is_none(&t, "g/zarr.json");
    is_none(&t, "g/a/zarr.json");
    is_bytes(&t, t.session, "g/a/c/0", "\1\2\3\4", 4);
    refused(&t, "g/a/zarr.json");
    set(&t, "g/a/c/0", "\1\2\3", 3); /* any bytes: the key is not an array's chunk now */
    is_bytes(&t, t.session, "g/a/c/0", "\1\2\3", 3);
    set(&t, "g/a/c/0", "\11\2\3\4", 4);
    set_text(&t, "g/a/zarr.json", doc); /* put back */
    elements_are(&t, "/g/a", (const uint8_t *)"\11\2\3\4\5\6\7\10", 8);
    OK(&t, brc_key_delete(t.session, "g/a/zarr.json", 0, &t.err));
    OK(&t, brc_key_delete(t.session, "g/a/c/0", 0, &t.err));
    OK(&t, brc_key_delete(t.session, "g/a/c/1", 0, &t.err));
    ck_assert_int_eq(scenario_has_keys(&t, t.session, "g"), 0);
    set_text(&t, "other/zarr.json", GROUP);
    OK(&t, commit(&t));
    char tree[64];
    ck_assert_str_eq(scenario_tree(&t, t.session, "/", 1, tree, sizeof(tree)), "/ /other ");
    scenario_whole(&t);
    scenario_stop(&t);
}

TEST(other_codecs_keep_values_and_another_form_keeps_bytes)
{
    scenario t;
    brc_buf out = BRC_BUF_INIT;
    scenario_start(&t);
    set_text(&t, "a/zarr.json", ARRAY("4", "4", "uint16", BYTES));
    set(&t, "a/c/0", "\1\0\2\0\3\0\4\0", 8);
    set_text(&t, "a/zarr.json", ARRAY("4", "4", "uint16", "{\"name\":\"bytes\",\"configuration\":"
                                                          "{\"endian\":\"big\"}}"));
    is_bytes(&t, t.session, "a/c/0", "\0\1\0\2\0\3\0\4", 8);
    set_text(&t, "a/zarr.json", ARRAY("4", "4", "int16", BYTES));
    is_bytes(&t, t.session, "a/c/0", "\0\1\0\2\0\3\0\4", 8);
    int16_t got[4];
    brc_array *a = scenario_array_at(&t, t.session, "/a");
    OK(&t, brc_array_read(a, NULL, got, sizeof(got), &t.err));
    ck_assert_int_eq(got[0], 256);
    brc_array_free(a);
    set_text(&t, "a/zarr.json", GROUP); /* a group has no chunks */
    is_bytes(&t, t.session, "a/c/0", "\0\1\0\2\0\3\0\4", 8);
    refused(&t, "a/c/0");
    set_text(&t, "a/b/zarr.json", GROUP);
    const char *doc = ARRAY("4", "4", "int16", BYTES);
    set_text(&t, "a/zarr.json", doc); /* a directory takes it; there is a node in it */
    is_bytes(&t, t.session, "a/zarr.json", doc, strlen(doc));
    refused(&t, "a/c/0"); /* the first of them */
    OK(&t, brc_key_delete(t.session, "a/b/zarr.json", 0, &t.err));
    OK(&t, commit(&t));
    OK(&t, brc_array_open(&a, t.session, "/a", &t.err));
    brc_array_free(a);
    brc_buf_dispose(&out);
    scenario_whole(&t);
    scenario_stop(&t);
}

TEST(a_chunk_of_nothing_but_fill_value_is_there)
{
    scenario t;
    brc_iter *it;
    const char *key;
    int n = 0;
    scenario_start(&t);
    set_text(&t, "a/zarr.json", ARRAY("8", "4", "uint8", BYTES "," ZSTD));
    set_text(&t, "b/zarr.json", ARRAY("8", "4", "uint8", BYTES));
    set(&t, "b/c/1", "\0\0\0\0", 4);
    OK(&t, commit(&t));
    is_bytes(&t, t.session, "b/c/1", "\0\0\0\0", 4);
    is_none(&t, "b/c/0");
    OK(&t, brc_keys(&it, t.session, "b/c/", 0, &t.err));
    while (brc_next(it, &key, &t.err) > 0)
        n += strcmp(key, "b/c/1") == 0;
    brc_iter_free(it);
    ck_assert_int_eq(n, 1);
    set(&t, "b/c/0", "\0\0\0\0", 4); /* the same elements */
    const brc_change *change;
    for (int i = 0; i < 2; i++) {
        OK(&t, brc_diff(&it, t.repo, NULL, NULL, NULL, &t.err));
        ck_assert_int_eq(brc_next(it, &change, &t.err), 1);
        ck_assert_str_eq(change->path, "/b");
        ck_assert_int_eq((change->flags & BRC_CHANGE_STORAGE) != 0, i == 0);
        ck_assert_uint_eq(change->chunks_added, (uint64_t)i);
        ck_assert_int_eq(brc_next(it, &change, &t.err), 0);
        brc_iter_free(it);
        set(&t, "b/c/0", "\0\0\0\1", 4);
    }
    scenario_whole(&t);
    scenario_stop(&t);
}

TEST(P8_a_shard_is_taken_apart)
{
    scenario t;
    uint8_t shard[8 + 64];
    memset(shard, 0xff, sizeof(shard));
    memcpy(shard, "\1\2\3\4\5\6\7\10", 8);
    scenario_start(&t);
    set_text(&t, "a/zarr.json", SHARDED("16", "8", "2", BYTES));
    for (int i = 0; i < 4; i++) {
        brc_put_u64le(shard + 8 + 16 * i, (uint64_t)(3 - i) * 2); /* in another order */
        brc_put_u64le(shard + 16 + 16 * i, 2);
    }
    set(&t, "a/c/1", shard, sizeof(shard));
    elements_are(&t, "/a", (const uint8_t *)"\0\0\0\0\0\0\0\0\7\10\5\6\3\4\1\2", 16);
    ck_assert_int_eq(scenario_ask(&t, "SELECT count(*) FROM draft_chunk"), 4);
    memset(shard + 8, 0xff, 16); /* its first chunk goes */
    set(&t, "a/c/1", shard, sizeof(shard));
    elements_are(&t, "/a", (const uint8_t *)"\0\0\0\0\0\0\0\0\0\0\5\6\3\4\1\2", 16);
    OK(&t, commit(&t));
    memset(shard + 24, 0xff, 16);
    set(&t, "a/c/1", shard, sizeof(shard));
    elements_are(&t, "/a", (const uint8_t *)"\0\0\0\0\0\0\0\0\0\0\0\0\3\4\1\2", 16);
    OK(&t, brc_key_delete(t.session, "a/c/1", 0, &t.err));
    is_none(&t, "a/c/1");
    elements_are(&t, "/a", (const uint8_t *)"\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0", 16);
    scenario_whole(&t);
    scenario_stop(&t);
}

/* ---- sessions -------------------------------- */

TEST(a_session_that_reads_cannot_set)
{
    scenario t;
    brc_session *at, *view;
    scenario_start(&t);
    set_text(&t, "g/zarr.json", GROUP);
    set(&t, "loose", "x", 1);
    OK(&t, brc_session_open(&view, t.repo, NULL, BRC_SESSION_VIEW, &t.err));
    is_bytes(&t, view, "loose", "x", 1);
    OK(&t, brc_key_delete(t.session, "loose", 0, &t.err));
    OK(&t, commit(&t));
    OK(&t, brc_session_open(&at, t.repo, "main", BRC_SESSION_AT, &t.err));
    for (int i = 0; i < 2; i++) {
        brc_session *s = i ? at : view;
        FAILS(&t, BRC_EREADONLY, brc_key_set(s, "a", "x", 1, 0, &t.err));
        FAILS(&t, BRC_EREADONLY, brc_key_set(s, "a", "x", 1, BRC_KEY_NEW, &t.err));
        FAILS(&t, BRC_EREADONLY, brc_key_delete(s, "g/zarr.json", 0, &t.err));
        FAILS(&t, BRC_EREADONLY, brc_key_delete(s, "none", 0, &t.err));
        FAILS(&t, BRC_EREADONLY, brc_key_delete(s, "", BRC_KEY_PREFIX, &t.err));
    }
    brc_session_free(at);
    brc_session_free(view);
    scenario_stop(&t);
}

TEST(a_private_session_s_keys_are_its_own)
{
    scenario t;
    brc_session *mine;
    brc_key_info info = BRC_KEY_INFO_INIT;
    scenario_start(&t);
    OK(&t, brc_session_open(&mine, t.repo, NULL, BRC_SESSION_PRIVATE, &t.err));
    OK(&t, brc_key_set(mine, "a/c/0", "\1\2\3\4", 4, 0, &t.err));
    is_none(&t, "a/c/0");
    set(&t, "theirs", "x", 1);
    FAILS(&t, BRC_ENOTFOUND, brc_key_get(NULL, mine, "theirs", NULL, &info, &t.err));
    OK(&t, brc_session_hand_over(mine, t.session, &t.err)); /* onto keys that are there */
    is_bytes(&t, t.session, "a/c/0", "\1\2\3\4", 4);
    is_bytes(&t, t.session, "theirs", "x", 1);
    OK(&t, brc_key_set(mine, "a/c/0", "\1\2\3\5", 4, 0, &t.err));
    FAILS(&t, BRC_ECONFLICT, brc_session_hand_over(mine, t.session, &t.err));
    is_bytes(&t, mine, "a/c/0", "\1\2\3\5", 4);
    is_bytes(&t, t.session, "a/c/0", "\1\2\3\4", 4);
    OK(&t, brc_key_set(mine, "a/zarr.json", ARRAY("4", "4", "uint8", BYTES),
                       strlen(ARRAY("4", "4", "uint8", BYTES)), 0, &t.err));
    OK(&t, scenario_commit_of(&t, mine, "mine", NULL));
    is_bytes(&t, mine, "a/c/0", "\1\2\3\5", 4);
    OK(&t, brc_key_set(mine, "again", "x", 1, 0, &t.err));
    OK(&t, brc_session_discard(mine, &t.err));
    FAILS(&t, BRC_ENOTFOUND, brc_key_get(NULL, mine, "again", NULL, &info, &t.err));
    brc_session_free(mine);
    scenario_whole(&t);
    scenario_stop(&t);
}

TEST(nodes_that_move_take_their_keys_along)
{
    scenario t;
    scenario_start(&t);
    set_text(&t, "g/zarr.json", GROUP);
    set(&t, "g/notes", "x", 1);
    OK(&t, brc_node_move(t.session, "/g", "/h", 0, &t.err));
    is_none(&t, "g/notes");
    is_bytes(&t, t.session, "h/notes", "x", 1);
    OK(&t, brc_node_move(t.session, "/h", "/i", BRC_NODE_COPY, &t.err));
    is_bytes(&t, t.session, "h/notes", "x", 1);
    is_bytes(&t, t.session, "i/notes", "x", 1);
    OK(&t, brc_node_remove(t.session, "/h", &t.err));
    is_none(&t, "h/notes");
    scenario_whole(&t);
    scenario_stop(&t);
}

/* A row of the draft that somebody has damaged. */
TEST(damaged_rows_are_told)
{
    static const char *const edits[] = {
        "UPDATE draft_key SET key='b/c/9'",
        "UPDATE draft_key SET id=zeroblob(16)",
        "DELETE FROM object WHERE kind=5",
        "UPDATE draft_key SET draft=99, checksum=row_sum('draft_key', 99, key, id)",
        "UPDATE draft_key SET id=NULL, checksum=row_sum('draft_key', draft, key, NULL)",
    };
    scenario t;
    for (size_t i = 0; i < sizeof(edits) / sizeof(edits[0]); i++) {
        int n = 0;
        scenario_start(&t);
        set(&t, "a/c/0", "\1\2\3\4", 4);
        scenario_sql(&t, edits[i]);
        scenario_reopen(&t);
        uint64_t checked;
        OK(&t, brc_fsck(t.repo, 0, fsck_counts, NULL, &n, &checked, &t.err));
        ck_assert_msg(n > 0, "%s", edits[i]);
        brc_buf out = BRC_BUF_INIT;
        ck_assert_int_lt(brc_key_get(&out, t.session, "a/c/0", NULL, NULL, &t.err), 0);
        brc_buf_dispose(&out);
        scenario_stop(&t);
    }
}
