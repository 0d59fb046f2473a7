/* Reading a part of a chunk that can be decoded in part: a shard among other codecs,
 * which is stored whole. The elements are right, and no more is decoded than they need. */
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "../../src/breccia_codec.h"
#include "../kit/scenario.h"
#include "../kit/suite.h"
#include "../kit/watched_codec.h"

TEST_SUITE(chunk_boxes);

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

static void count_decoded(brc_span bytes)
{
    (void)bytes;
    atomic_fetch_add(&decoded_chunks, 1);
}

static const watcher counts = { "https://breccia.example/count", NULL, count_decoded };

/* ---- how much is decoded -------------------------------- */

static const struct {
    const char *codecs;
} counted[] = {
    { "[" SHARD("[4,4]", LITTLE "," COUNT) "," ZSTD "]" },
    { "[" TURN "," SHARD("[4,4]", LITTLE "," COUNT) "," GZIP "]" },
    { "[" TURN "," SHARD("[8,8]", TURN "," SHARD("[4,4]", LITTLE "," COUNT)) "," CRC "," ZSTD "]" },
};

/* The array is one shard of 16 x 24 elements, in 24 inner chunks of 4 x 4. */
static const struct {
    const char *selection;
    int chunks;
} selections[] = {
    { "[5, 6]", 1 },        { "[4:8, 20:24]", 1 },  { "[3:5, 7:9]", 4 },
    { "[0:16:5, 0]", 4 },   { "[0:16, 3:4]", 4 },   { "[9, :]", 6 },
    { "[1:15, 1:23]", 24 }, { "[15:16, 0:24:23]", 6 }, { "[:, :]", 24 },
};

CASE("boxes");

EACH(P13_a_selection_decodes_the_inner_chunks_that_it_meets, counted)
{
    scenario t;
    brc_open_opts opts = BRC_OPEN_OPTS_INIT;
    const uint64_t shape[2] = { 16, 24 };
    const int32_t fill = 0;
    int32_t data[16 * 24], got[16 * 24], want[16 * 24];
    model m;
    scenario_folder(&t);
    brc_registry *reg = watched_registry(&counts, &t.err);
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

EACH(P9_P12_any_part_of_a_shard_among_codecs_is_right, mixed)
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

/* Chunks of the same bytes are one object, whatever their shape: it is encoded as the
 * first array has it, and a box of the other is none of that encoding's. */
TEST(a_chunk_may_be_stored_in_another_shape)
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
