/*
 * Decision 1: a chunk is known by its canonical bytes, and how it is stored is free
 * to change. What is stored is looked at with SQLite, behind the library's back.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../../src/base/hash.h"
#include "../../src/breccia.h"
#include "../kit/scenario.h"
#include "../kit/suite.h"

TEST_SUITE(codec_change);

#define BYTES(endian) "{\"name\":\"bytes\",\"configuration\":{\"endian\":\"" endian "\"}}"
#define BLOSC(cname)                                                                              \
    "{\"name\":\"blosc\",\"configuration\":{\"cname\":\"" cname "\",\"clevel\":5,\"shuffle\":"     \
    "\"shuffle\",\"typesize\":4,\"blocksize\":0}}"

enum { RAW, BIG, ZSTD, GZIP, BLOSC_LZ4, CRC, TURNED, NCHAINS };

static const char *const chains[NCHAINS] = {
    [RAW] = "[" BYTES("little") "]",
    [BIG] = "[" BYTES("big") "]",
    [ZSTD] = "[" BYTES(
        "little") ",{\"name\":\"zstd\",\"configuration\":{\"level\":3,\"checksum\":false}}]",
    [GZIP] = "[" BYTES("little") ",{\"name\":\"gzip\",\"configuration\":{\"level\":5}}]",
    [BLOSC_LZ4] = "[" BYTES("little") "," BLOSC("lz4") "]",
    [CRC] =
        "[" BYTES("big") ",{\"name\":\"zstd\",\"configuration\":{\"level\":1,\"checksum\":true}},"
                         "{\"name\":\"crc32c\"}]",
    [TURNED] = "[{\"name\":\"transpose\",\"configuration\":{\"order\":[1,0]}}," BYTES(
        "little") ",{\"name\":\"gzip\",\"configuration\":{\"level\":1}}]",
};

#define ROWS 40
#define COLUMNS 30
static const uint64_t shape[2] = { ROWS, COLUMNS }, chunk[2] = { 16, 16 };

static void fill_values(int32_t *out, int32_t first)
{
    for (int i = 0; i < ROWS * COLUMNS; i++)
        out[i] = first + i / 3;
}

static brc_array *new_filled_array(scenario *t, const char *path, int chain, int32_t first)
{
    int32_t data[ROWS * COLUMNS];
    brc_array *a = scenario_array(t, path, "int32", 2, shape, chunk, NULL, chains[chain]);
    fill_values(data, first);
    OK(t, brc_array_write(a, NULL, data, sizeof(data), &t->err));
    return a;
}

static void check_values(scenario *t, brc_array *a, int32_t first)
{
    int32_t data[ROWS * COLUMNS], got[ROWS * COLUMNS];
    fill_values(data, first);
    OK(t, brc_array_read(a, NULL, got, sizeof(got), &t->err));
    ck_assert_mem_eq(got, data, sizeof(got));
}

/* Every chunk's row, and the bytes behind it if they are in the file. */
static void chunk_rows(scenario *t, brc_buf *out)
{
    scenario_rows(t,
                  "SELECT hex(o.id), o.encoding, o.place, o.offset, o.stored, o.checksum,"
                  " hex(substr(b.data, o.offset+1, o.stored))"
                  " FROM object o LEFT JOIN blob b ON b.seq=o.place AND o.backend=0"
                  " WHERE o.kind=1 ORDER BY o.id",
                  out);
}

static int64_t chunk_objects(scenario *t)
{
    return scenario_ask(t, "SELECT count(*) FROM object WHERE kind=1");
}

/* How many chunks are stored so: "%", or what the specification must contain. */
static int64_t chunks_with(scenario *t, const char *pattern)
{
    char sql[512];
    snprintf(sql, sizeof(sql), "SELECT count(*) FROM object o JOIN encoding e ON e.id=o.encoding"
                               " WHERE o.kind=1 AND e.spec LIKE '%s'", pattern);
    return scenario_ask(t, sql);
}

static int64_t chunks_with_magic(scenario *t, const char *hex)
{
    char sql[512];
    snprintf(sql, sizeof(sql),
             "SELECT count(*) FROM object o JOIN blob b ON b.seq=o.place WHERE"
             " o.kind=1 AND hex(substr(b.data, o.offset+1, %zu))='%s'",
             strlen(hex) / 2, hex);
    return scenario_ask(t, sql);
}

/* ---- changing -------------------------------- */

LOOP(B14_B15_B16_B17_changing_rewrites_nothing, 0, NCHAINS * NCHAINS)
{
    int from = _i / NCHAINS, to = _i % NCHAINS;
    scenario t;
    brc_buf before = BRC_BUF_INIT, after = BRC_BUF_INIT;
    scenario_start(&t);
    brc_array *a = new_filled_array(&t, "/a", from, 1);
    scenario_commit(&t, "one");
    chunk_rows(&t, &before);
    OK(&t, brc_array_set_codecs(a, chains[to], 0, &t.err));
    check_values(&t, a, 1);
    ck_assert_int_eq(scenario_clean(&t), from == to); /* B26 */
    if (from != to)
        scenario_commit(&t, "two"); /* B27: without a write */
    scenario_reopen(&t);
    brc_array_free(a);
    a = scenario_array_at(&t, t.session, "/a");
    check_values(&t, a, 1);
    chunk_rows(&t, &after);
    ck_assert_uint_gt(before.len, 6 * 32); /* six chunks, each with its id */
    ck_assert_str_eq((const char *)after.data, (const char *)before.data);
    scenario_whole(&t);
    brc_buf_dispose(&before);
    brc_buf_dispose(&after);
    brc_array_free(a);
    scenario_stop(&t);
}

TEST(H2_B18_B19_new_chunks_take_the_new_encoding)
{
    scenario t;
    brc_sel sel = BRC_SEL_INIT;
    int32_t row[2 * COLUMNS], got[2 * COLUMNS];
    static const char *const magic[NCHAINS] = { [ZSTD] = "28B52FFD", [GZIP] = "1F8B08",
                                                [BLOSC_LZ4] = "0201", [CRC] = "28B52FFD",
                                                [TURNED] = "1F8B08" };
    static const char *const spec[NCHAINS] = {
        [BIG] = "%\"big\"%", [ZSTD] = "%\"zstd\"%\"level\":3%", [GZIP] = "%\"gzip\"%\"level\":5%",
        [BLOSC_LZ4] = "%\"lz4\"%", [CRC] = "%\"crc32c\"%", [TURNED] = "%\"transpose\"%[1,0]%"
    };
    for (int to = 0; to < NCHAINS; to++) {
        scenario_start(&t);
        scenario_inline(&t);
        brc_array *a = new_filled_array(&t, "/a", RAW, 1);
        scenario_commit(&t, "one");
        ck_assert_int_eq(chunks_with(&t, "%"), 0);
        OK(&t, brc_array_set_codecs(a, chains[to], 0, &t.err));
        OK(&t, brc_sel_parse(&sel, a, "[0:2]", &t.err));
        for (int i = 0; i < 2 * COLUMNS; i++)
            row[i] = -1;
        OK(&t, brc_array_write(a, &sel, row, sizeof(row), &t.err));
        OK(&t, brc_array_read(a, &sel, got, sizeof(got), &t.err));
        ck_assert_mem_eq(got, row, sizeof(got));
        ck_assert_int_eq(chunk_objects(&t), 6 + 2);
        if (magic[to] != NULL)
            ck_assert_int_eq(chunks_with_magic(&t, magic[to]), 2);
        if (to != RAW && to != BIG) /* those do not shrink a chunk: see the next test */
            ck_assert_int_eq(chunks_with(&t, spec[to]), 2);
        scenario_whole(&t);
        brc_array_free(a);
        scenario_stop(&t);
    }
}

TEST(what_does_not_shrink_is_stored_as_it_is)
{
    scenario t;
    uint64_t random = 3, n[1] = { 20000 }, each[1] = { 5000 };
    uint8_t data[20000], got[20000];
    for (int to = 0; to < NCHAINS; to++) {
        if (to == TURNED || to == BIG)
            continue;
        scenario_start(&t);
        const char *chain = to == RAW ? NULL : chains[to]; /* NULL: zstd */
        brc_array *a = scenario_array(&t, "/a", "uint8", 1, n, each, NULL, chain);
        model_bytes(&random, data, sizeof(data));
        OK(&t, brc_array_write(a, NULL, data, sizeof(data), &t.err));
        ck_assert_int_eq(chunk_objects(&t), 4);
        ck_assert_int_eq(scenario_ask(&t, "SELECT count(*) FROM object WHERE kind=1 AND encoding=0"
                                          " AND stored=size"), 4);
        OK(&t, brc_array_read(a, NULL, got, sizeof(got), &t.err));
        ck_assert_mem_eq(got, data, sizeof(got));
        scenario_whole(&t);
        brc_array_free(a);
        scenario_stop(&t);
    }
}

TEST(B20_many_changes_in_one_session)
{
    scenario t;
    brc_sel sel = BRC_SEL_INIT;
    int32_t expected[ROWS * COLUMNS], got[ROWS * COLUMNS];
    scenario_start(&t);
    brc_array *a = new_filled_array(&t, "/a", ZSTD, 1);
    fill_values(expected, 1);
    for (int i = 0; i < 3 * NCHAINS; i++) {
        char text[32];
        int row = i % ROWS;
        OK(&t, brc_array_set_codecs(a, chains[i % NCHAINS], 0, &t.err));
        snprintf(text, sizeof(text), "[%d]", row);
        OK(&t, brc_sel_parse(&sel, a, text, &t.err));
        for (int j = 0; j < COLUMNS; j++)
            expected[row * COLUMNS + j] = 1000 * i + j;
        OK(&t, brc_array_write(a, &sel, expected + row * COLUMNS, COLUMNS * 4, &t.err));
        OK(&t, brc_array_read(a, NULL, got, sizeof(got), &t.err));
        ck_assert_mem_eq(got, expected, sizeof(got));
    }
    ck_assert_int_ge(scenario_ask(&t, "SELECT count(DISTINCT encoding) FROM object WHERE kind=1"),
                     5);
    scenario_commit(&t, "one");
    scenario_reopen(&t);
    brc_array_free(a);
    a = scenario_array_at(&t, t.session, "/a");
    OK(&t, brc_array_read(a, NULL, got, sizeof(got), &t.err));
    ck_assert_mem_eq(got, expected, sizeof(got));
    scenario_whole(&t);
    brc_array_free(a);
    scenario_stop(&t);
}

/* A list of compressors alone is complete for a change, and not for a new array. */
TEST(compressors_alone_keep_the_other_codecs)
{
    static const char *const lists[] = { "[]", "[\"zstd\"]" };
    static const char *const all[] = {
        "[{\"name\":\"transpose\",\"configuration\":{\"order\":[1,0]}}," BYTES("little") "]",
        "[{\"name\":\"transpose\",\"configuration\":{\"order\":[1,0]}}," BYTES("little")
        ",{\"name\":\"zstd\",\"configuration\":{\"level\":3,\"checksum\":false}}]",
    };
    scenario t;
    scenario_start(&t);
    brc_array *a = new_filled_array(&t, "/a", ZSTD, 1), *none;
    OK(&t, brc_array_set_codecs(a,
                                "[{\"name\":\"transpose\",\"configuration\":{\"order\":[1,0]}},"
                                BYTES("little") "," BLOSC("zstd") ",\"crc32c\"]", 0, &t.err));
    for (int i = 0; i < 4; i++) {
        OK(&t, brc_array_set_codecs(a, lists[i % 2], i / 2, &t.err));
        ck_assert_str_eq(brc_array_describe(a)->codecs_json, all[i % 2]);
        brc_array_spec spec = BRC_ARRAY_SPEC_INIT;
        spec.ndim = 2;
        spec.shape = shape;
        spec.dtype = "int32";
        spec.codecs_json = lists[i % 2];
        FAILS(&t, BRC_EINVAL, brc_array_create(&none, t.session, "/none", &spec, &t.err));
    }
    brc_array_free(a);
    scenario_stop(&t);
}

TEST(B04_B05_B07_B22_a_wrong_change_changes_nothing)
{
    static const char *const wrong[] = {
        "", "[", "{}", "null", "\"zstd\"", "[1]",
        "[{\"name\":\"none\"}]",                                       /* not known         */
        "[" BYTES("little") ",{\"name\":\"none\"}]",
        "[" BYTES("middle") "]",
        "[{\"name\":\"bytes\"}]",                                      /* no endian         */
        "[{\"name\":\"transpose\",\"configuration\":{\"order\":[1,0]}}]", /* no array->bytes */
        "[" BYTES("little") "," BYTES("little") "]",
        "[" BYTES("little") ",{\"name\":\"zstd\",\"configuration\":{\"level\":99}}]",
        "[" BYTES("little") ",{\"name\":\"zstd\",\"configuration\":{\"levle\":1}}]",
        "[" BYTES("little") ",{\"name\":\"gzip\",\"configuration\":{\"level\":10}}]",
        "[" BYTES("little") ",{\"name\":\"gzip\",\"configuration\":{\"level\":\"1\"}}]",
        "[" BYTES("little") "," BLOSC("none") "]",
        "[{\"name\":\"transpose\",\"configuration\":{\"order\":[0,0]}}," BYTES("little") "]",
        "[{\"name\":\"transpose\",\"configuration\":{\"order\":[0]}}," BYTES("little") "]",
        "[" BYTES("little") ",{\"name\":\"transpose\",\"configuration\":{\"order\":[1,0]}}]",
    };
    scenario t;
    brc_sel sel = BRC_SEL_INIT;
    int32_t row[COLUMNS] = { 0 };
    scenario_start(&t);
    brc_array *a = new_filled_array(&t, "/a", ZSTD, 1), *none;
    scenario_commit(&t, "one");
    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
        int rc = brc_array_set_codecs(a, wrong[i], (int)(i % 2), &t.err);
        ck_assert_msg(rc == BRC_EINVAL || rc == BRC_EUNSUPPORTED, "%s gives %d", wrong[i], rc);
        ck_assert_int_eq(scenario_clean(&t), 1);
        ck_assert_str_eq(brc_array_describe(a)->codecs_json, chains[ZSTD]);
        brc_array_spec spec = BRC_ARRAY_SPEC_INIT;
        spec.ndim = 2;
        spec.shape = shape;
        spec.dtype = "int32";
        spec.codecs_json = wrong[i];
        rc = brc_array_create(&none, t.session, "/none", &spec, &t.err);
        ck_assert_msg(rc == BRC_EINVAL || rc == BRC_EUNSUPPORTED, "%s gives %d", wrong[i], rc);
        ck_assert_int_eq(scenario_clean(&t), 1);
    }
    FAILS(&t, BRC_EINVAL, brc_array_set_codecs(a, NULL, 0, &t.err));
    FAILS(&t, BRC_EINVAL, brc_array_set_codecs(a, NULL, 1, &t.err));
    ck_assert_int_eq(scenario_clean(&t), 1);
    OK(&t, brc_sel_parse(&sel, a, "[5]", &t.err)); /* later writes still use the old ones */
    OK(&t, brc_array_write(a, &sel, row, sizeof(row), &t.err));
    ck_assert_int_eq(chunks_with(&t, "%\"zstd\"%\"level\":3%"), 8);
    brc_session *view;
    OK(&t, brc_session_open(&view, t.repo, NULL, BRC_SESSION_VIEW, &t.err)); /* B24 */
    brc_array *b = scenario_array_at(&t, view, "/a");
    FAILS(&t, BRC_EREADONLY, brc_array_set_codecs(b, chains[RAW], 0, &t.err));
    brc_array_free(b);
    brc_session_free(view);
    brc_array_free(a);
    scenario_stop(&t);
}

TEST(H3_B11_B13_B26_B28_codecs_are_versioned)
{
    scenario t;
    scenario_start(&t);
    brc_array *a = new_filled_array(&t, "/a", ZSTD, 1);
    ck_assert_str_eq(brc_array_describe(a)->codecs_json, chains[ZSTD]);
    scenario_commit(&t, "one");
    OK(&t, brc_array_set_codecs(a, chains[GZIP], 0, &t.err));
    ck_assert_str_eq(brc_array_describe(a)->codecs_json, chains[GZIP]);
    OK(&t, brc_array_set_codecs(a, chains[ZSTD], 0, &t.err));
    ck_assert_int_eq(scenario_clean(&t), 1); /* changed and changed back */
    OK(&t, brc_array_set_codecs(a, chains[GZIP], 0, &t.err));
    OK(&t, brc_session_discard(t.session, &t.err));
    brc_array_free(a);
    a = scenario_array_at(&t, t.session, "/a");
    ck_assert_str_eq(brc_array_describe(a)->codecs_json, chains[ZSTD]);
    OK(&t, brc_array_set_codecs(a, chains[GZIP], 0, &t.err));
    scenario_commit(&t, "two");
    brc_session *old = scenario_session(&t, t.repo, "main~1", BRC_SESSION_AT);
    brc_array *then = scenario_array_at(&t, old, "/a");
    ck_assert_str_eq(brc_array_describe(then)->codecs_json, chains[ZSTD]);
    check_values(&t, then, 1);
    brc_array_free(then);
    brc_session_free(old);
    /* what is reported can be given back: no change */
    char *report = strdup(brc_array_describe(a)->codecs_json);
    OK(&t, brc_array_set_codecs(a, report, 0, &t.err));
    ck_assert_int_eq(scenario_clean(&t), 1);
    free(report);
    brc_array_free(a);
    scenario_stop(&t);
}

/* Content with another hash than its id: rewriting it would make it true. */
TEST(f22_a_rewrite_does_not_launder_damage)
{
    scenario t;
    uint64_t n[1] = { 4 };
    uint8_t data[4] = { 1, 2, 3, 4 }, other[4] = { 1, 2, 3, 5 };
    char sql[300];
    brc_buf before = BRC_BUF_INIT, after = BRC_BUF_INIT;
    scenario_start(&t);
    scenario_inline(&t);
    brc_array *a = scenario_array(&t, "/a", "uint8", 1, n, n, NULL, "[\"bytes\"]");
    OK(&t, brc_array_write(a, NULL, data, sizeof(data), &t.err));
    scenario_commit(&t, "one");
    brc_oid id = brc_hash_object(BRC_HASH_XXH128, BRC_KIND_CHUNK, data, sizeof(data));
    snprintf(sql, sizeof(sql),
             "UPDATE blob SET data=x'01020305' WHERE seq=(SELECT place FROM object WHERE kind=1);"
             "UPDATE object SET checksum=%lld WHERE kind=1",
             (long long)brc_hash_stored(&id, 0, other, sizeof(other)));
    scenario_sql(&t, sql);
    chunk_rows(&t, &before);
    FAILS(&t, BRC_ECORRUPT,
          brc_array_set_codecs(a, "[\"bytes\",{\"name\":\"gzip\",\"configuration\":{\"level\":1}}]",
                               1, &t.err));
    ck_assert_ptr_nonnull(strstr(t.err.message, "another hash"));
    chunk_rows(&t, &after);
    ck_assert_str_eq((const char *)after.data, (const char *)before.data);
    brc_buf_dispose(&before);
    brc_buf_dispose(&after);
    brc_array_free(a);
    scenario_stop(&t);
}

TEST(B01_codecs_are_chosen_and_recorded)
{
    static const struct {
        const char *type, *contains;
    } chosen[] = { { "float32", "\"blosc\"" }, { "int16", "\"blosc\"" }, { "uint8", "\"zstd\"" },
                   { "bool", "\"zstd\"" },     { "r24", "\"blosc\"" } };
    scenario t;
    scenario_start(&t);
    for (size_t i = 0; i < sizeof(chosen) / sizeof(chosen[0]); i++) {
        brc_array *a = scenario_array(&t, "/a", chosen[i].type, 2, shape, chunk, NULL, NULL);
        const char *codecs = brc_array_describe(a)->codecs_json;
        ck_assert_ptr_nonnull(strstr(codecs, chosen[i].contains));
        ck_assert_ptr_nonnull(strstr(codecs, "level\":"));
        brc_array_free(a);
        OK(&t, brc_node_remove(t.session, "/a", &t.err));
    }
    /* short forms are recorded in full */
    brc_array *a = scenario_array(&t, "/a", "uint8", 2, shape, chunk, NULL,
                                  "[\"bytes\",{\"name\":\"zstd\"}]");
    ck_assert_ptr_nonnull(strstr(brc_array_describe(a)->codecs_json, "\"level\":"));
    brc_array_free(a);
    scenario_stop(&t);
}

/* ---- identity -------------------------------- */

TEST(B30_the_same_content_stores_nothing)
{
    scenario t;
    brc_buf before = BRC_BUF_INIT, after = BRC_BUF_INIT;
    scenario_start(&t);
    brc_array *a = new_filled_array(&t, "/a", ZSTD, 1);
    chunk_rows(&t, &before);
    for (int i = 0; i < NCHAINS; i++) {
        char path[24];
        snprintf(path, sizeof(path), "/g/b%d", i);
        brc_array *b = new_filled_array(&t, path, i, 1);
        check_values(&t, b, 1);
        brc_array_free(b);
    }
    check_values(&t, a, 1);
    chunk_rows(&t, &after);
    ck_assert_str_eq((const char *)after.data, (const char *)before.data);
    scenario_commit(&t, "one");
    int32_t data[ROWS * COLUMNS];
    fill_values(data, 1);
    OK(&t, brc_array_write(a, NULL, data, sizeof(data), &t.err)); /* and changes nothing */
    ck_assert_int_eq(scenario_clean(&t), 1);
    brc_buf_dispose(&before);
    brc_buf_dispose(&after);
    brc_array_free(a);
    scenario_stop(&t);
}

TEST(B31_B33_branches_with_pipelines_of_their_own)
{
    scenario t;
    brc_iter *it;
    const brc_change *change;
    scenario_start(&t);
    brc_array *a = scenario_array(&t, "/a", "int32", 2, shape, chunk, NULL, chains[RAW]);
    brc_session *main_session = t.session, *dev;
    scenario_commit(&t, "one");
    OK(&t, brc_ref_create(t.repo, "dev", NULL, NULL, 0, &t.err));
    OK(&t, brc_session_open(&dev, t.repo, "dev", BRC_SESSION_WRITE, &t.err));
    brc_array *b = scenario_array_at(&t, dev, "/a");
    OK(&t, brc_array_set_codecs(a, chains[ZSTD], 0, &t.err));
    OK(&t, brc_array_set_codecs(b, chains[GZIP], 0, &t.err));
    ck_assert_str_eq(brc_array_describe(a)->codecs_json, chains[ZSTD]);
    int32_t data[ROWS * COLUMNS];
    fill_values(data, 1);
    OK(&t, brc_array_write(a, NULL, data, sizeof(data), &t.err));
    scenario_commit(&t, "with zstd");
    t.session = dev;
    OK(&t, brc_array_write(b, NULL, data, sizeof(data), &t.err));
    scenario_commit(&t, "with gzip");
    ck_assert_int_eq(chunk_objects(&t), 6); /* one identity, stored once */

    OK(&t, brc_diff(&it, t.repo, "main", "dev", NULL, &t.err));
    ck_assert_int_eq(brc_next(it, &change, &t.err), 1);
    ck_assert_str_eq(change->path, "/a");
    ck_assert_int_eq(change->what, BRC_CHANGED);
    ck_assert_int_eq((change->flags & BRC_CHANGE_STORAGE) != 0, 1);
    ck_assert_uint_eq(change->chunks_added + change->chunks_removed + change->chunks_changed, 0);
    ck_assert_int_eq(brc_next(it, &change, &t.err), 0);
    brc_iter_free(it);

    /* what each writes from now on, it writes its own way */
    fill_values(data, 5000);
    OK(&t, brc_array_write(b, NULL, data, sizeof(data), &t.err));
    ck_assert_int_eq(chunks_with(&t, "%\"gzip\"%"), 6);
    fill_values(data, 9000);
    OK(&t, brc_array_write(a, NULL, data, sizeof(data), &t.err));
    ck_assert_int_eq(chunks_with(&t, "%\"zstd\"%"), 12);
    check_values(&t, a, 9000);
    check_values(&t, b, 5000);
    brc_array_free(b);
    brc_array_free(a);
    brc_session_free(dev);
    t.session = main_session;
    scenario_whole(&t);
    scenario_stop(&t);
}

TEST(B32_bits_are_what_counts)
{
    scenario t;
    uint64_t n[1] = { 4 };
    float minus[4] = { -0.0f, -0.0f, -0.0f, -0.0f }, zero[4] = { 0 }, got[4];
    scenario_start(&t);
    brc_array *a = scenario_array(&t, "/a", "float32", 1, n, n, "1.0", chains[RAW]);
    OK(&t, brc_array_write(a, NULL, zero, sizeof(zero), &t.err));
    scenario_commit(&t, "one");
    ck_assert_int_eq(chunk_objects(&t), 1);
    OK(&t, brc_array_write(a, NULL, minus, sizeof(minus), &t.err));
    ck_assert_int_eq(chunk_objects(&t), 2);
    ck_assert_int_eq(scenario_clean(&t), 0);
    OK(&t, brc_array_read(a, NULL, got, sizeof(got), &t.err));
    ck_assert_mem_eq(got, minus, sizeof(got));
    brc_array_free(a);
    scenario_stop(&t);
}

TEST(B29_equal_specifications_are_one_encoding)
{
    scenario t;
    static const char *const same[] = {
        "[\"bytes\",{\"name\":\"zstd\",\"configuration\":{\"level\":3}}]",
        "[{\"name\":\"bytes\"},{\"configuration\":{\"checksum\":false,\"level\":3},\"name\":"
        "\"zstd\"}]",
        " [ {\"name\" : \"bytes\"} , "
        "{\"name\":\"zstd\",\"configuration\":{\"level\":3,\"checksum\":false}} ]",
    };
    uint8_t data[1200];
    scenario_start(&t);
    for (int i = 0; i < 3; i++) {
        char path[24];
        snprintf(path, sizeof(path), "/a%d", i);
        brc_array *a = scenario_array(&t, path, "uint8", 2, shape, chunk, NULL, same[i]);
        memset(data, i + 1, sizeof(data));
        OK(&t, brc_array_write(a, NULL, data, sizeof(data), &t.err));
        brc_array_free(a);
    }
    ck_assert_int_eq(scenario_ask(&t, "SELECT count(DISTINCT encoding) FROM object WHERE kind=1"),
                     1);
    scenario_stop(&t);
}

/* ---- rewriting -------------------------------- */

LOOP(B41_rewriting_keeps_every_id, 0, NCHAINS * NCHAINS)
{
    int from = _i / NCHAINS, to = _i % NCHAINS;
    scenario t;
    brc_oid before, after;
    brc_buf ids = BRC_BUF_INIT, then = BRC_BUF_INIT;
    const char *const all = "SELECT hex(id) FROM object WHERE kind=1 ORDER BY id";
    scenario_start(&t);
    brc_array *a = new_filled_array(&t, "/a", from, 1), *b = new_filled_array(&t, "/b", from, 1);
    scenario_commit(&t, "one");
    OK(&t, brc_resolve(&before, t.repo, "main", &t.err));
    scenario_rows(&t, all, &ids);
    OK(&t, brc_array_set_codecs(a, chains[to], 1, &t.err));
    scenario_rows(&t, all, &then);
    ck_assert_str_eq((const char *)then.data, (const char *)ids.data);
    ck_assert_int_ge(scenario_unused(&t), 0); /* old bytes stay where their row has others too */
    if (to != RAW && to != BIG)
        ck_assert_int_eq(
            scenario_ask(&t, "SELECT count(DISTINCT encoding) FROM object WHERE kind=1"), 1);
    ck_assert_int_eq(scenario_clean(&t), from == to);
    check_values(&t, a, 1);
    check_values(&t, b, 1); /* which shares the chunks */
    OK(&t, brc_resolve(&after, t.repo, "main", &t.err));
    ck_assert_mem_eq(&after, &before, sizeof(after));
    scenario_reopen(&t);
    brc_array_free(b);
    b = scenario_array_at(&t, t.session, "/b");
    check_values(&t, b, 1);
    scenario_whole(&t);
    brc_buf_dispose(&ids);
    brc_buf_dispose(&then);
    brc_array_free(a);
    brc_array_free(b);
    scenario_stop(&t);
}

TEST(B23_a_change_takes_part_in_a_transaction)
{
    scenario t;
    brc_buf before = BRC_BUF_INIT, after = BRC_BUF_INIT;
    scenario_start(&t);
    brc_array *a = new_filled_array(&t, "/a", ZSTD, 1);
    scenario_commit(&t, "one");
    chunk_rows(&t, &before);
    OK(&t, brc_begin(t.repo, &t.err));
    OK(&t, brc_array_set_codecs(a, chains[GZIP], 1, &t.err));
    check_values(&t, a, 1);
    OK(&t, brc_end(t.repo, 0, &t.err));
    chunk_rows(&t, &after);
    ck_assert_str_eq((const char *)after.data, (const char *)before.data);
    check_values(&t, a, 1);
    ck_assert_str_eq(brc_array_describe(a)->codecs_json, chains[ZSTD]);
    int32_t data[ROWS * COLUMNS];
    fill_values(data, 700);
    OK(&t, brc_array_write(a, NULL, data, sizeof(data), &t.err));
    ck_assert_int_eq(chunks_with(&t, "%\"gzip\"%"), 0);
    scenario_whole(&t);
    brc_buf_dispose(&before);
    brc_buf_dispose(&after);
    brc_array_free(a);
    scenario_stop(&t);
}

/* All bytes through a lossy chain; what is read of them. The elements `first` are written
 * to an array of plain bytes before, where there are some. */
static brc_array *new_lossy(scenario *t, const char *codecs, const int8_t *first, int8_t *got)
{
    static const uint64_t n[1] = { 256 };
    int8_t all[256];

    for (int i = 0; i < 256; i++)
        all[i] = (int8_t)(i - 128);
    if (first != NULL) {
        brc_array *plain = scenario_array(t, "/plain", "int8", 1, n, n, "1",
                                          "[{\"name\":\"bytes\"}]");
        OK(t, brc_array_write(plain, NULL, first, 256, &t->err));
        brc_array_free(plain);
    }
    brc_array *a = scenario_array(t, "/lossy", "int8", 1, n, n, "1", codecs);
    OK(t, brc_array_write(a, NULL, all, 256, &t->err));
    OK(t, brc_array_read(a, NULL, got, 256, &t->err));
    return a;
}

/* Bytes of another array are encoded by the lossy chain only where they come back. */
LOOP(lossy_chains_are_not_trusted_with_other_bytes, 0, 2)
{
    static const struct {
        const char *codecs;
        int code;
    } cases[] = {
        { "[{\"name\":\"bitround\",\"configuration\":{\"keepbits\":2}},{\"name\":\"bytes\"}]",
          BRC_OK },
        { "[{\"name\":\"bitround\",\"configuration\":{\"keepbits\":3}},{\"name\":\"packbits\","
          "\"configuration\":{\"padding_encoding\":\"none\",\"last_bit\":5}}]",
          BRC_EUNSUPPORTED },
    };
    scenario t;
    int8_t once[256], again[256];
    brc_buf out = BRC_BUF_INIT;

    scenario_start(&t);
    brc_array_free(new_lossy(&t, cases[_i].codecs, NULL, once));
    OK(&t, brc_key_get(&out, t.session, "lossy/c/0", NULL, NULL,
                       &t.err)); /* its own bytes: always */
    scenario_stop(&t);
    scenario_start(&t);
    brc_array_free(new_lossy(&t, cases[_i].codecs, once, again));
    ck_assert_mem_eq(once, again, 256);
    out.len = 0;
    int rc = brc_key_get(&out, t.session, "lossy/c/0", NULL, NULL, &t.err);
    ck_assert_msg(rc == cases[_i].code, "%d: %s", rc, rc < 0 ? t.err.message : "done");
    if (rc < 0)
        ck_assert_ptr_nonnull(strstr(t.err.message, "would change its elements again"));
    scenario_stop(&t);
    brc_buf_dispose(&out);
}
