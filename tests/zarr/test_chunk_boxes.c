/* Reading a part of a chunk that can be decoded in part: a shard among other codecs,
 * which is stored whole. The elements are right, and no more is decoded than they need. */
#include <check.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "../../src/breccia_codec.h"
#include "../kit/scenario.h"

Suite *chunk_boxes_suite(void);

#define LITTLE "{\"name\":\"bytes\",\"configuration\":{\"endian\":\"little\"}}"
#define COUNT "{\"name\":\"https://breccia.example/count\"}"
#define CRC "{\"name\":\"crc32c\"}"
/* Around the shard: what does not shrink is not encoded at all. */
#define ZSTD "{\"name\":\"zstd\",\"configuration\":{\"level\":1,\"checksum\":false}}"
#define GZIP "{\"name\":\"gzip\",\"configuration\":{\"level\":1}}"
#define TURN "{\"name\":\"transpose\",\"configuration\":{\"order\":[1,0]}}"
#define SHARD(shape_, codecs_)                                                                  \
    "{\"name\":\"sharding_indexed\",\"configuration\":{\"chunk_shape\":" shape_ ",\"codecs\":[" \
    codecs_ "],\"index_codecs\":[" LITTLE "," CRC "]}}"

/* ---- a codec that changes nothing, and counts what it decodes -------------------------- */

static atomic_int decoded_chunks;

static int count_open(void *ctx, void **state, const brc_json *config, const brc_proto *in,
                      brc_proto *out, int *identity, brc_error *err)
{
    (void)ctx, (void)state, (void)config, (void)in, (void)out, (void)identity, (void)err;
    return BRC_OK;
}

static int count_encode(void *ctx, const void *state, void *scratch, brc_span src, brc_buf *dst,
                        brc_error *err)
{
    (void)ctx, (void)state, (void)scratch;
    return brc_buf_append(dst, src.data, src.len, err);
}

static int count_decode(void *ctx, const void *state, void *scratch, brc_span src, brc_buf *dst,
                        brc_error *err)
{
    (void)ctx, (void)state, (void)scratch;
    atomic_fetch_add(&decoded_chunks, 1);
    return brc_buf_append(dst, src.data, src.len, err);
}

static brc_registry *counting_registry(scenario *t)
{
    const brc_codec_spec spec = { .size = sizeof(spec), .name = "https://breccia.example/count",
                                  .kind = BRC_BYTES_TO_BYTES, .open = count_open };
    const brc_codec_impl impl = { .size = sizeof(impl), .spec = spec.name, .name = "test",
                                  .encode = count_encode, .decode = count_decode };
    brc_registry *reg;
    OK(t, brc_registry_new(&reg, &t->err));
    OK(t, brc_registry_add_codec(reg, &spec, &t->err));
    OK(t, brc_registry_add_impl(reg, &impl, &t->err));
    return reg;
}

/* ---- how much is decoded -------------------------------- */

static const struct {
    const char *codecs;
} counted[] = {
    { "[" SHARD("[4,4]", LITTLE "," COUNT) "," ZSTD "]" },
    { "[" TURN "," SHARD("[4,4]", LITTLE "," COUNT) "," GZIP "]" },
    { "[" TURN "," SHARD("[8,8]", TURN "," SHARD("[4,4]", LITTLE "," COUNT)) "," CRC "," ZSTD "]" },
};

/* Of a shard of 16 x 24 elements, 24 inner chunks of 4 x 4. */
static const struct {
    const char *selection;
    int chunks;
} selections[] = {
    { "[5, 6]", 1 },        { "[4:8, 20:24]", 1 },  { "[3:5, 7:9]", 4 },
    { "[0:16:5, 0]", 4 },   { "[0:16, 3:4]", 4 },   { "[9, :]", 6 },
    { "[1:15, 1:23]", 24 }, { "[15:16, 0:24:23]", 6 }, { "[:, :]", 24 },
};

START_TEST(P13_a_selection_decodes_the_inner_chunks_that_it_meets)
{
    scenario t;
    brc_open_opts opts = BRC_OPEN_OPTS_INIT;
    const uint64_t shape[2] = { 16, 24 };
    const int32_t fill = 0;
    int32_t data[16 * 24], got[16 * 24], want[16 * 24];
    model m;
    scenario_folder(&t);
    brc_registry *reg = counting_registry(&t);
    opts.registry = reg;
    scenario_open(&t, &opts, BRC_OPEN_CREATE);
    brc_array *a = scenario_array(&t, "/a", "int32", 2, shape, shape, NULL, counted[_i].codecs);
    model_new(&m, 2, shape, 4, &fill);
    for (int i = 0; i < 16 * 24; i++)
        data[i] = 1 + i / 2;
    memcpy(m.data, data, sizeof(data));
    OK(&t, brc_array_write(a, NULL, data, sizeof(data), &t.err));
    for (size_t i = 0; i < sizeof(selections) / sizeof(selections[0]); i++) {
        brc_sel sel = BRC_SEL_INIT;
        OK(&t, brc_sel_parse(&sel, a, selections[i].selection, &t.err));
        size_t len = 4 * (size_t)brc_sel_count(&sel);
        atomic_store(&decoded_chunks, 0);
        OK(&t, brc_array_read(a, &sel, got, len, &t.err));
        model_read(&m, &sel, want, NULL);
        ck_assert_mem_eq(got, want, len);
        ck_assert_msg(atomic_load(&decoded_chunks) == selections[i].chunks, "%s decodes %d",
                      selections[i].selection, atomic_load(&decoded_chunks));
    }
    model_free(&m);
    brc_array_free(a);
    scenario_stop(&t);
    brc_registry_free(reg);
}
END_TEST

/* ---- whatever is asked for -------------------------------- */

static const struct {
    const char *codecs;
    int ndim;
    uint64_t shape[3], chunk[3];
} mixed[] = {
    { "[" SHARD("[5]", LITTLE) "," ZSTD "]", 1, { 43 }, { 20 } },
    { "[" SHARD("[4,3]", TURN "," LITTLE) "," CRC "," ZSTD "]", 2, { 30, 21 }, { 12, 9 } },
    { "[" TURN "," SHARD("[3,4]", LITTLE "," CRC) "," GZIP "]", 2, { 30, 21 }, { 12, 9 } },
    { "[" TURN "," LITTLE "," ZSTD "]", 2, { 30, 21 }, { 12, 9 } },
    { "[{\"name\":\"transpose\",\"configuration\":{\"order\":[2,0,1]}},"
      "{\"name\":\"transpose\",\"configuration\":{\"order\":[0,2,1]}},"
      SHARD("[2,1,2]", LITTLE) "," ZSTD "]",
      3, { 9, 13, 7 }, { 6, 1, 4 } },
    { "[{\"name\":\"transpose\",\"configuration\":{\"order\":[1,2,0]}},"
      SHARD("[4,6,2]", SHARD("[2,3,1]", "{\"name\":\"transpose\",\"configuration\":{\"order\":"
                                        "[2,1,0]}}," LITTLE)) "," ZSTD "]",
      3, { 9, 13, 11 }, { 4, 8, 6 } },
};

START_TEST(P9_P12_any_part_of_a_shard_among_codecs_is_right)
{
    scenario t;
    model m;
    uint64_t random = 77 + (uint64_t)_i;
    const int16_t fill = -2;
    uint8_t got[2 * 9 * 13 * 11], want[sizeof(got)], data[sizeof(got)];
    scenario_start(&t);
    brc_array *a = scenario_array(&t, "/a", "int16", mixed[_i].ndim, mixed[_i].shape,
                                  mixed[_i].chunk, "-2", mixed[_i].codecs);
    model_new(&m, mixed[_i].ndim, mixed[_i].shape, 2, &fill);
    ck_assert_uint_le(m.len, sizeof(got));
    for (int i = 0; i < 60; i++) {
        brc_sel sel = BRC_SEL_INIT;
        model_selection(&m, &random, &sel);
        size_t len = 2 * (size_t)brc_sel_count(&sel);
        if (i % 6 == 0) { /* parts of shards are written, others stay absent */
            for (size_t j = 0; j < len; j++)
                data[j] = (uint8_t)(j / 2 % 5 + (j % 2 ? 0 : (size_t)i));
            OK(&t, brc_array_write(a, &sel, data, len, &t.err));
            model_write(&m, &sel, data, NULL);
        }
        model_selection(&m, &random, &sel);
        len = 2 * (size_t)brc_sel_count(&sel);
        OK(&t, brc_array_read(a, &sel, got, len, &t.err));
        model_read(&m, &sel, want, NULL);
        ck_assert_int_eq(memcmp(got, want, len), 0);
    }
    model_check(&m, &t, a);
    ck_assert_int_gt(scenario_ask(&t, "SELECT count(*) FROM object WHERE kind=1 AND encoding<>0"),
                     0);
    model_free(&m);
    brc_array_free(a);
    scenario_whole(&t);
    scenario_stop(&t);
}
END_TEST

/* Chunks of the same bytes are one object, whatever their shape: it is encoded as the
 * first array has it, and a box of the other is none of that encoding's. */
START_TEST(a_chunk_may_be_stored_in_another_shape)
{
    scenario t;
    const uint64_t wide[2] = { 8, 32 }, tall[2] = { 32, 8 };
    int32_t data[256], got[256];
    brc_sel sel = BRC_SEL_INIT;
    scenario_start(&t);
    const char *codecs = "[" SHARD("[4,4]", LITTLE) "," ZSTD "]";
    brc_array *a = scenario_array(&t, "/a", "int32", 2, wide, wide, NULL, codecs);
    brc_array *b = scenario_array(&t, "/b", "int32", 2, tall, tall, NULL, codecs);
    for (int i = 0; i < 256; i++)
        data[i] = 1 + i / 9; /* shrinks when it is encoded, or it would be kept as it is */
    OK(&t, brc_array_write(a, NULL, data, sizeof(data), &t.err));
    OK(&t, brc_array_write(b, NULL, data, sizeof(data), &t.err));
    ck_assert_int_eq(scenario_ask(&t, "SELECT count(*) FROM object WHERE kind=1"), 1);
    ck_assert_int_eq(scenario_ask(&t, "SELECT count(*) FROM object WHERE kind=1 AND encoding<>0"),
                     1);
    OK(&t, brc_sel_parse(&sel, b, "[17:31, 2:5]", &t.err));
    OK(&t, brc_array_read(b, &sel, got, 14 * 3 * 4, &t.err));
    for (int i = 0; i < 14; i++)
        for (int j = 0; j < 3; j++)
            ck_assert_int_eq(got[3 * i + j], data[8 * (17 + i) + 2 + j]);
    brc_array_free(a);
    brc_array_free(b);
    scenario_stop(&t);
}
END_TEST

Suite *chunk_boxes_suite(void)
{
    Suite *s = suite_create("chunk_boxes");
    TCase *tc = tcase_create("boxes");
    tcase_add_loop_test(tc, P13_a_selection_decodes_the_inner_chunks_that_it_meets, 0,
                        sizeof(counted) / sizeof(counted[0]));
    tcase_add_loop_test(tc, P9_P12_any_part_of_a_shard_among_codecs_is_right, 0,
                        sizeof(mixed) / sizeof(mixed[0]));
    tcase_add_test(tc, a_chunk_may_be_stored_in_another_shape);
    suite_add_tcase(s, tc);
    return s;
}
