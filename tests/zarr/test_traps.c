/* Where other implementations of Zarr went wrong, one test for each trap, by its
 * number in the list of traps. (Trap 11, attributes, is in test_nodes.c.) */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../../src/base/file.h"
#include "../../src/breccia.h"
#include "../kit/ios.h"
#include "../kit/scenario.h"
#include "../kit/suite.h"

TEST_SUITE(traps);

#define LITTLE "{\"name\":\"bytes\",\"configuration\":{\"endian\":\"little\"}}"
#define ZSTD "{\"name\":\"zstd\",\"configuration\":{\"level\":1,\"checksum\":false}}"

static uint64_t stored_chunks(scenario *t, brc_array *a)
{
    uint64_t chunks, bytes;
    OK(t, brc_array_stat(&chunks, &bytes, a, &t->err));
    return chunks;
}

static int64_t chunk_objects(scenario *t)
{
    return scenario_ask(t, "SELECT count(*) FROM object WHERE kind=1");
}

TEST(trap01_rank_0)
{
    static const char *const chains[] = {
        NULL, "[" LITTLE "]",
        "[{\"name\":\"transpose\",\"configuration\":{\"order\":[]}}," LITTLE "," ZSTD "]"
    };
    for (int i = 0; i < 3; i++) {
        scenario t;
        int32_t value = 41 + i, got = 0;
        brc_sel sel = BRC_SEL_INIT;
        brc_buf bytes = BRC_BUF_INIT;
        scenario_start(&t);
        brc_array *a = scenario_array(&t, "/a", "int32", 0, NULL, NULL, "-1", chains[i]);
        OK(&t, brc_array_read(a, NULL, &got, 4, &t.err));
        ck_assert_int_eq(got, -1);
        ck_assert_uint_eq(stored_chunks(&t, a), 0);
        OK(&t, brc_array_write(a, NULL, &value, 4, &t.err));
        ck_assert_uint_eq(stored_chunks(&t, a), 1);
        scenario_commit(&t, "one");
        OK(&t, brc_sel_parse(&sel, a, "()", &t.err));
        ck_assert_uint_eq(brc_sel_count(&sel), 1);
        OK(&t, brc_array_read(a, &sel, &got, 4, &t.err));
        ck_assert_int_eq(got, value);
        OK(&t, brc_key_get(&bytes, t.session, "a/c", NULL, NULL, &t.err));
        FAILS(&t, BRC_EINVAL, brc_array_append(a, 0, 1, &value, 4, &t.err));
        OK(&t, brc_array_resize(a, NULL, &t.err)); /* to what it is */
        value = -1;
        OK(&t, brc_array_fill(a, NULL, &value, &t.err));
        ck_assert_uint_eq(stored_chunks(&t, a), 0);
        scenario_whole(&t);
        brc_buf_dispose(&bytes);
        brc_array_free(a);
        scenario_stop(&t);
    }
}

TEST(trap02_P11_fill_is_compared_bit_by_bit)
{
    scenario t;
    uint64_t shape[1] = { 4 };
    const uint32_t bits[] = { 0x80000000, 0x7fc00001, 0xffc00000, 0x7fa00000, 0x7fc00000, 0 };
    uint32_t data[4], got[4];
    scenario_start(&t);
    brc_array *zero = scenario_array(&t, "/zero", "float32", 1, shape, NULL, "0.0", NULL);
    brc_array *minus = scenario_array(&t, "/minus", "float32", 1, shape, NULL, "-0.0", NULL);
    brc_array *nan = scenario_array(&t, "/nan", "float32", 1, shape, NULL, "NaN", NULL);
    for (size_t i = 0; i < sizeof(bits) / sizeof(bits[0]); i++) {
        brc_array *const all[] = { zero, minus, nan };
        const uint32_t fills[] = { 0, 0x80000000, 0x7fc00000 };
        for (int j = 0; j < 4; j++)
            data[j] = bits[i];
        for (int k = 0; k < 3; k++) {
            OK(&t, brc_array_write(all[k], NULL, data, sizeof(data), &t.err));
            ck_assert_uint_eq(stored_chunks(&t, all[k]), bits[i] != fills[k]);
            OK(&t, brc_array_read(all[k], NULL, got, sizeof(got), &t.err));
            ck_assert_mem_eq(got, data, sizeof(got));
        }
    }
    brc_array_free(zero);
    brc_array_free(minus);
    brc_array_free(nan);
    scenario_stop(&t);
}

TEST(trap02_one_element_that_is_not_fill_is_enough)
{
    scenario t;
    uint64_t shape[1] = { 1000 };
    uint8_t data[1000], got[1000];
    scenario_start(&t);
    brc_array *a = scenario_array(&t, "/a", "uint8", 1, shape, shape, "9", NULL);
    for (size_t at = 0; at < 1000; at += 37) {
        memset(data, 9, sizeof(data));
        OK(&t, brc_array_write(a, NULL, data, sizeof(data), &t.err));
        ck_assert_uint_eq(stored_chunks(&t, a), 0);
        data[at] = 8;
        OK(&t, brc_array_write(a, NULL, data, sizeof(data), &t.err));
        ck_assert_uint_eq(stored_chunks(&t, a), 1);
        OK(&t, brc_array_read(a, NULL, got, sizeof(got), &t.err));
        ck_assert_mem_eq(got, data, sizeof(got));
    }
    brc_array_free(a);
    scenario_stop(&t);
}

TEST(trap03_odd_element_sizes)
{
    static const struct {
        const char *type, *fill;
        size_t size;
    } odd[] = { { "r24", "[1, 2, 3]", 3 }, { "r40", "[1, 2, 3, 4, 5]", 5 }, { "r8", "[1]", 1 } };
    for (size_t k = 0; k < 3; k++) {
        scenario t;
        uint64_t shape[2] = { 5, 7 }, chunk[2] = { 2, 3 };
        uint8_t data[35 * 5], got[35 * 5];
        size_t len = 35 * odd[k].size;
        scenario_start(&t);
        brc_array *a = scenario_array(&t, "/a", odd[k].type, 2, shape, chunk, odd[k].fill, NULL);
        OK(&t, brc_array_read(a, NULL, got, len, &t.err));
        for (size_t i = 0; i < len; i++)
            ck_assert_uint_eq(got[i], i % odd[k].size + 1);
        OK(&t, brc_array_write(a, NULL, got, len, &t.err));
        ck_assert_uint_eq(stored_chunks(&t, a), 0);
        for (size_t i = 0; i < len; i++)
            data[i] = (uint8_t)(i * 7);
        OK(&t, brc_array_write(a, NULL, data, len, &t.err));
        ck_assert_uint_eq(stored_chunks(&t, a), 9);
        OK(&t, brc_array_read(a, NULL, got, len, &t.err));
        ck_assert_mem_eq(got, data, len);
        brc_array_free(a);
        scenario_stop(&t);
    }
}

TEST(trap04_zero_length_dimensions)
{
    scenario t;
    uint64_t none[3] = { 4, 0, 5 }, some[3] = { 4, 2, 5 }, chunk[3] = { 2, 3, 5 };
    int32_t data[40], got[40];
    brc_sel sel = BRC_SEL_INIT;
    scenario_start(&t);
    brc_array *a = scenario_array(&t, "/a", "int32", 3, none, chunk, "6", NULL);
    ck_assert_uint_eq(brc_array_describe(a)->grid[1], 0);
    OK(&t, brc_array_write(a, NULL, NULL, 0, &t.err));
    OK(&t, brc_array_read(a, NULL, NULL, 0, &t.err));
    OK(&t, brc_array_fill(a, NULL, data, &t.err));
    OK(&t, brc_sel_parse(&sel, a, "[:, :, 2:3]", &t.err));
    ck_assert_uint_eq(brc_sel_count(&sel), 0);
    ck_assert_uint_eq(stored_chunks(&t, a), 0);
    scenario_commit(&t, "one");
    for (int i = 0; i < 40; i++)
        data[i] = i;
    OK(&t, brc_array_append(a, 1, 2, data, sizeof(data), &t.err));
    OK(&t, brc_array_read(a, NULL, got, sizeof(got), &t.err));
    ck_assert_mem_eq(got, data, sizeof(got));
    OK(&t, brc_array_resize(a, none, &t.err));
    ck_assert_uint_eq(stored_chunks(&t, a), 0);
    OK(&t, brc_array_resize(a, some, &t.err));
    OK(&t, brc_array_read(a, NULL, got, sizeof(got), &t.err));
    for (int i = 0; i < 40; i++)
        ck_assert_int_eq(got[i], 6);
    brc_array_free(a);
    none[0] = 0; /* chunks chosen by the library */
    a = scenario_array(&t, "/b", "int32", 3, none, NULL, NULL, NULL);
    for (int i = 0; i < 3; i++)
        ck_assert_uint_ge(brc_array_describe(a)->chunk[i], 1);
    brc_array_free(a);
    scenario_whole(&t);
    scenario_stop(&t);
}

TEST(trap05_edge_chunks_have_their_full_size)
{
    scenario t;
    uint64_t shape[2] = { 5, 7 }, chunk[2] = { 4, 4 };
    uint16_t data[35];
    brc_buf bytes = BRC_BUF_INIT;
    scenario_start(&t);
    brc_array *a = scenario_array(&t, "/a", "uint16", 2, shape, chunk, "9", "[" LITTLE "]");
    for (int i = 0; i < 35; i++)
        data[i] = (uint16_t)(100 + i);
    OK(&t, brc_array_write(a, NULL, data, sizeof(data), &t.err));
    OK(&t, brc_key_get(&bytes, t.session, "a/c/1/1", NULL, NULL, &t.err));
    ck_assert_uint_eq(bytes.len, 32);
    for (int i = 0; i < 16; i++) { /* one row of three inside, the rest is fill */
        uint16_t value;
        memcpy(&value, bytes.data + 2 * i, 2);
        ck_assert_int_eq(value, i < 3 ? 100 + 4 * 7 + 4 + i : 9);
    }
    ck_assert_int_eq(scenario_ask(&t, "SELECT count(*) FROM object WHERE kind=1 AND size<>32"), 0);
    brc_buf_dispose(&bytes);
    brc_array_free(a);
    scenario_stop(&t);
}

TEST(trap06_chunks_larger_than_the_array)
{
    scenario t;
    uint64_t shape[2] = { 3, 2 }, chunk[2] = { 100, 50 };
    uint8_t data[6] = { 1, 2, 3, 4, 5, 6 }, got[6];
    scenario_start(&t);
    brc_array *a = scenario_array(&t, "/a", "uint8", 2, shape, chunk, NULL, NULL);
    ck_assert_uint_eq(brc_array_describe(a)->chunk[0], 100);
    ck_assert_uint_eq(brc_array_describe(a)->grid[0], 1);
    OK(&t, brc_array_write(a, NULL, data, 6, &t.err));
    scenario_reopen(&t);
    brc_array_free(a);
    a = scenario_array_at(&t, t.session, "/a");
    OK(&t, brc_array_read(a, NULL, got, 6, &t.err));
    ck_assert_mem_eq(got, data, 6);
    ck_assert_int_eq(scenario_ask(&t, "SELECT size FROM object WHERE kind=1"), 5000);
    brc_array_free(a);
    scenario_stop(&t);
}

TEST(trap07_padding_is_fill_and_equal_content_is_one)
{
    scenario t;
    uint64_t five[1] = { 5 }, six[1] = { 6 }, chunk[1] = { 4 };
    int32_t data[6] = { 1, 2, 3, 4, 5, 0 };
    scenario_start(&t);
    brc_array *a = scenario_array(&t, "/a", "int32", 1, five, chunk, NULL, NULL);
    brc_array *b = scenario_array(&t, "/b", "int32", 1, six, chunk, NULL, NULL);
    OK(&t, brc_array_write(a, NULL, data, 20, &t.err));
    ck_assert_int_eq(chunk_objects(&t), 2);
    OK(&t, brc_array_write(b, NULL, data, 24, &t.err));
    ck_assert_int_eq(chunk_objects(&t), 2);
    /* grown and written to the same content: the same object again */
    OK(&t, brc_array_resize(a, six, &t.err));
    OK(&t, brc_array_write(a, NULL, data, 24, &t.err));
    ck_assert_int_eq(chunk_objects(&t), 2);
    brc_array_free(a);
    brc_array_free(b);
    scenario_stop(&t);
}

TEST(trap08_a_lost_object_is_never_fill)
{
    scenario t;
    int32_t got[12];
    brc_sel sel = BRC_SEL_INIT;
    scenario_start(&t);
    scenario_numbers(&t, "/a", 12, 4, 1);
    brc_array *a = scenario_array_at(&t, t.session, "/a");
    OK(&t, brc_array_resize(a, (uint64_t[]){ 16 }, &t.err));
    scenario_commit(&t, "one");
    scenario_sql(&t, "DELETE FROM object WHERE kind=1 AND place="
                     "(SELECT min(place) FROM object WHERE kind=1)");
    OK(&t, brc_sel_parse(&sel, a, "[0:12]", &t.err));
    FAILS(&t, BRC_ECORRUPT, brc_array_read(a, &sel, got, sizeof(got), &t.err));
    ck_assert_ptr_nonnull(strstr(t.err.message, "/a"));
    OK(&t, brc_sel_parse(&sel, a, "[12:16]", &t.err)); /* never written: fill */
    OK(&t, brc_array_read(a, &sel, got, 16, &t.err));
    ck_assert_int_eq(got[0], 0);
    scenario_sql(&t, "DELETE FROM blob WHERE seq=(SELECT max(place) FROM object WHERE kind=1)");
    OK(&t, brc_sel_parse(&sel, a, "[8:12]", &t.err));
    FAILS(&t, BRC_ECORRUPT, brc_array_read(a, &sel, got, 16, &t.err));
    brc_array_free(a);
    scenario_stop(&t);
}

TEST(trap10_fills_beyond_2_to_the_53)
{
    static const struct {
        const char *type, *fill;
        uint64_t bits;
    } big[] = {
        { "uint64", "18446744073709551615", UINT64_MAX },
        { "uint64", "9007199254740993", (UINT64_C(1) << 53) + 1 },
        { "int64", "-9223372036854775808", UINT64_C(1) << 63 },
        { "int64", "9223372036854775807", INT64_MAX },
        { "int64", "-9007199254740993", (uint64_t)-9007199254740993 },
    };
    scenario t;
    uint64_t shape[1] = { 2 }, got[2];
    char path[24];
    brc_buf text = BRC_BUF_INIT;
    scenario_start(&t);
    for (size_t i = 0; i < sizeof(big) / sizeof(big[0]); i++) {
        char expected[64];
        snprintf(path, sizeof(path), "/a%zu", i);
        brc_array *a = scenario_array(&t, path, big[i].type, 1, shape, NULL, big[i].fill, NULL);
        OK(&t, brc_array_read(a, NULL, got, sizeof(got), &t.err));
        ck_assert(got[0] == big[i].bits && got[1] == big[i].bits);
        text.len = 0;
        OK(&t, brc_node_json(&text, t.session, path, &t.err));
        snprintf(expected, sizeof(expected), "\"fill_value\":%s,", big[i].fill);
        ck_assert_ptr_nonnull(strstr((const char *)text.data, expected));
        brc_array_free(a);
    }
    brc_array_spec spec = BRC_ARRAY_SPEC_INIT;
    brc_array *none;
    spec.ndim = 1;
    spec.shape = shape;
    spec.dtype = "uint64";
    const char *const wrong[] = { "18446744073709551616", "-1", "0.5", "\"1\"", "true", "null" };
    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
        spec.fill = wrong[i];
        ck_assert_msg(brc_array_create(&none, t.session, "/w", &spec, &t.err) == BRC_EINVAL, "%s",
                      wrong[i]);
    }
    brc_buf_dispose(&text);
    scenario_stop(&t);
}

TEST(trap12_13_nan_fills_keep_their_bits)
{
    static const struct {
        const char *type, *fill, *json;
        uint64_t bits;
        size_t size;
    } fills[] = {
        { "float32", "NaN", "\"NaN\"", 0x7fc00000, 4 },
        { "float32", "\"0x7fc00001\"", "\"0x7fc00001\"", 0x7fc00001, 4 },
        { "float32", "\"0x7fa00000\"", "\"0x7fa00000\"", 0x7fa00000, 4 }, /* signalling */
        { "float32", "\"0xffc00000\"", "\"0xffc00000\"", 0xffc00000, 4 },
        { "float32", "\"0x3f800000\"", "1.0", 0x3f800000, 4 },
        { "float32", "-Infinity", "\"-Infinity\"", 0xff800000, 4 },
        { "float32", "-0.0", "-0.0", 0x80000000, 4 },
        { "float64", "\"0x7ff8000000000001\"", "\"0x7ff8000000000001\"", 0x7ff8000000000001, 8 },
        { "float64", "\"NaN\"", "\"NaN\"", 0x7ff8000000000000, 8 },
        { "float16", "\"0x7e01\"", "\"0x7e01\"", 0x7e01, 2 },
    };
    scenario t;
    uint64_t shape[1] = { 2 };
    uint8_t got[16];
    brc_buf text = BRC_BUF_INIT;
    scenario_start(&t);
    for (size_t i = 0; i < sizeof(fills) / sizeof(fills[0]); i++) {
        char expected[64];
        brc_array *a = scenario_array(&t, "/a", fills[i].type, 1, shape, NULL, fills[i].fill, NULL);
        OK(&t, brc_attrs_set(t.session, "/a", "k", "1", &t.err)); /* written anew */
        OK(&t, brc_array_read(a, NULL, got, 2 * fills[i].size, &t.err));
        ck_assert_mem_eq(got, &fills[i].bits, fills[i].size);
        ck_assert_mem_eq(got + fills[i].size, &fills[i].bits, fills[i].size);
        OK(&t, brc_array_write(a, NULL, got, 2 * fills[i].size, &t.err));
        ck_assert_uint_eq(stored_chunks(&t, a), 0);
        text.len = 0;
        OK(&t, brc_node_json(&text, t.session, "/a", &t.err));
        snprintf(expected, sizeof(expected), "\"fill_value\":%s,", fills[i].json);
        ck_assert_msg(strstr((const char *)text.data, expected) != NULL, "%s is not in %s",
                      expected, (const char *)text.data);
        brc_array_free(a);
        OK(&t, brc_node_remove(t.session, "/a", &t.err));
    }
    brc_array_spec spec = BRC_ARRAY_SPEC_INIT;
    brc_array *none;
    spec.ndim = 1;
    spec.shape = shape;
    spec.dtype = "float32";
    const char *const wrong[] = { "null", "\"nan\"", "\"inf\"", "true", "\"1.5\"", "\"0x7fc0\"",
                                  "\"0x7fc000010\"" };
    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
        spec.fill = wrong[i];
        ck_assert_msg(brc_array_create(&none, t.session, "/w", &spec, &t.err) == BRC_EINVAL, "%s",
                      wrong[i]);
    }
    brc_buf_dispose(&text);
    scenario_stop(&t);
}

/* ---- 61: shrink and grow -------------------------------- */

/* How the array gets from one shape to the next. */
enum { UNCOMMITTED, COMMITTED, REOPENED, BRANCHED };

static void resize_step(scenario *t, brc_array **a, model *m, const uint64_t *shape, int how,
                        int step)
{
    char name[16];
    OK(t, brc_array_resize(*a, shape, &t->err));
    model_resize(m, shape);
    if (how == UNCOMMITTED || scenario_clean(t))
        return;
    scenario_commit(t, "resized");
    if (how == COMMITTED)
        return;
    brc_array_free(*a);
    if (how == REOPENED) {
        scenario_reopen(t);
    } else {
        snprintf(name, sizeof(name), "b%d", step);
        OK(t, brc_ref_create(t->repo, name, NULL, NULL, 0, &t->err));
        OK(t, brc_switch(t->repo, name, 0, &t->err));
        brc_session_free(t->session);
        OK(t, brc_session_open(&t->session, t->repo, NULL, BRC_SESSION_WRITE, &t->err));
    }
    *a = scenario_array_at(t, t->session, "/a");
}

LOOP(trap61_shrink_and_grow_show_fill, 0, 8)
{
    static const uint64_t shapes[][2] = {
        { 10, 9 }, { 8, 9 }, { 10, 9 },  { 3, 9 },  { 10, 9 }, { 10, 6 },
        { 10, 9 }, { 9, 8 }, { 12, 12 }, { 7, 13 }, { 13, 7 }, { 13, 13 },
        { 0, 5 },  { 6, 5 }, { 1, 1 },   { 9, 9 },  { 4, 3 },  { 8, 6 },
    };
    scenario t;
    model m;
    uint64_t chunk[2] = { 4, 3 }, random = 7;
    int32_t fill = -5;
    int how = _i % 4, overwrite = _i / 4;
    scenario_start(&t);
    brc_array *a = scenario_array(&t, "/a", "int32", 2, shapes[0], chunk, "-5", NULL);
    model_new(&m, 2, shapes[0], 4, &fill);
    for (size_t i = 1; i < sizeof(shapes) / sizeof(shapes[0]); i++) {
        if (i == 1 || overwrite) {
            brc_sel all = BRC_SEL_INIT;
            uint8_t *data = malloc(m.len + 1);
            ck_assert_ptr_nonnull(data);
            model_bytes(&random, data, m.len);
            sel_all(&all, a);
            OK(&t, brc_array_write(a, NULL, data, m.len, &t.err));
            model_write(&m, &all, data, NULL);
            free(data);
            if (how != UNCOMMITTED && m.len > 0)
                scenario_commit(&t, "written");
        }
        resize_step(&t, &a, &m, shapes[i], how, (int)i);
        model_check(&m, &t, a);
    }
    scenario_whole(&t);
    model_free(&m);
    brc_array_free(a);
    scenario_stop(&t);
}

TEST(trap61_an_older_version_keeps_what_was_cut)
{
    scenario t;
    int32_t got[10];
    scenario_start(&t);
    scenario_numbers(&t, "/a", 10, 4, 1);
    scenario_commit(&t, "one");
    brc_array *a = scenario_array_at(&t, t.session, "/a");
    OK(&t, brc_array_resize(a, (uint64_t[]){ 5 }, &t.err));
    scenario_commit(&t, "two");
    OK(&t, brc_array_resize(a, (uint64_t[]){ 10 }, &t.err));
    OK(&t, brc_array_read(a, NULL, got, sizeof(got), &t.err));
    for (int i = 0; i < 10; i++)
        ck_assert_int_eq(got[i], i < 5 ? i + 1 : 0);
    brc_session *old = scenario_session(&t, t.repo, "main~1", BRC_SESSION_AT);
    brc_array *then = scenario_array_at(&t, old, "/a");
    OK(&t, brc_array_read(then, NULL, got, sizeof(got), &t.err));
    ck_assert_int_eq(got[9], 10);
    brc_array_free(then);
    brc_session_free(old);
    brc_array_free(a);
    scenario_stop(&t);
}

static void put_file(scenario *t, const char *name, const void *data, size_t len)
{
    char path[160];
    snprintf(path, sizeof(path), "%s/%s", t->dir, name);
    OK(t, brc_dir_make_parents(path, strlen(t->dir), &t->err));
    OK(t, brc_file_write(path, data, len, &t->err));
}

TEST(trap61_padding_from_elsewhere_never_becomes_data)
{
    static const char json[] =
        "{\"zarr_format\":3,\"node_type\":\"array\",\"shape\":[5],\"data_type\":\"int32\","
        "\"chunk_grid\":{\"name\":\"regular\",\"configuration\":{\"chunk_shape\":[4]}},"
        "\"chunk_key_encoding\":{\"name\":\"default\"},\"fill_value\":0,\"codecs\":[" LITTLE "]}";
    const int32_t edge[4] = { 5, 77, 77, 77 }; /* only the first is inside */
    scenario t;
    char source[128];
    int32_t got[9];
    scenario_start(&t);
    put_file(&t, "in.zarr/zarr.json", json, strlen(json));
    put_file(&t, "in.zarr/c/1", edge, sizeof(edge));
    snprintf(source, sizeof(source), "%s/in.zarr", t.dir);
    OK(&t, brc_import(t.session, source, "/a", NULL, &t.err));
    scenario_commit(&t, "one");
    brc_array *a = scenario_array_at(&t, t.session, "/a");
    OK(&t, brc_array_resize(a, (uint64_t[]){ 9 }, &t.err));
    OK(&t, brc_array_read(a, NULL, got, sizeof(got), &t.err));
    for (int i = 0; i < 9; i++)
        ck_assert_int_eq(got[i], i == 4 ? 5 : 0);
    brc_array_free(a);
    scenario_stop(&t);
}
