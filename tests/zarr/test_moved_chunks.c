/* Chunks whose stored bytes are moved, encoded otherwise or removed between look-up and fetch, as
 * others may do while a read decodes: they are looked up once more. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../kit/fsck_kit.h"
#include "../kit/hooked_kit.h"
#include "../kit/suite.h"

TEST_SUITE(moved_chunks);

/* More are looked up together than are fetched in one go. */
enum { CHUNKS = 100, EDGE = 16384, ELEMENTS = CHUNKS * EDGE };

static scenario t;
static hooked_parts parts;
static brc_array *array;
static int32_t *data, *got;

static void moved_start(void)
{
    const uint64_t shape = ELEMENTS, chunk = EDGE;
    uint64_t random = 7;
    hooked_file_start(&t, &parts, 0);
    data = malloc(ELEMENTS * sizeof(*data));
    got = malloc(ELEMENTS * sizeof(*got));
    for (int i = 0; i < ELEMENTS; i++)
        data[i] = (int32_t)scenario_below(&random, 1000);
    array = scenario_array(&t, "/a", "int32", 1, &shape, &chunk, "0", "[" HOOKED_CODECS "]");
    OK(&t, brc_array_write(array, NULL, data, ELEMENTS * sizeof(*data), &t.err));
    scenario_commit(&t, "first");
}

static void moved_stop(void)
{
    brc_array_free(array);
    hooked_file_stop(&t, &parts);
    free(data);
    free(got);
}

/* Moves rows as a repack will. */
static void move_rows(void *ctx)
{
    char sql[200];
    const long long last = (long long)scenario_ask(&t, "SELECT max(seq) FROM blob");
    (void)ctx;
    snprintf(sql, sizeof(sql), "INSERT INTO blob(seq,data) SELECT seq+%lld, data FROM blob", last);
    scenario_sql_shared(&t, sql);
    snprintf(sql, sizeof(sql), "UPDATE object SET place=place+%lld", last);
    scenario_sql_shared(&t, sql);
    snprintf(sql, sizeof(sql), "DELETE FROM blob WHERE seq<=%lld", last);
    scenario_sql_shared(&t, sql);
}

/* By another handle: other bytes, other lengths, other rows. */
static void encode_otherwise(void *ctx)
{
    scenario other = {.repo = NULL};
    brc_open_opts opts = BRC_OPEN_OPTS_INIT;
    (void)ctx;
    memcpy(other.file, t.file, sizeof(other.file));
    opts.registry = parts.reg;
    opts.wait_ms = -1;
    scenario_open(&other, &opts, 0);
    scenario_recode(&other, other.session, "/a", "[" LITTLE "," ZSTD "]", 1);
    scenario_close(&other);
}

static void remove_chunks(void *ctx)
{
    (void)ctx;
    scenario_sql_shared(&t, "DELETE FROM object WHERE kind=1");
    scenario_sql_shared(&t, "DELETE FROM blob WHERE seq NOT IN (SELECT place FROM object)");
}

static void remove_bytes(void *ctx)
{
    (void)ctx;
    scenario_sql_shared(&t, "DELETE FROM blob WHERE seq IN (SELECT place FROM object"
                            " WHERE kind=1) AND seq NOT IN (SELECT place FROM object"
                            " WHERE kind<>1)");
}

static int read_all(void)
{
    return brc_array_read(array, NULL, got, ELEMENTS * sizeof(*got), &t.err);
}

CASE("moved", .setup = moved_start, .teardown = moved_stop, .timeout = 120);

LOOP(chunks_that_move_are_looked_up_again, 0, 2)
{
    static const hook_fn moves[] = {move_rows, encode_otherwise};
    hook_decode(moves[_i], NULL, 1);
    OK(&t, read_all());
    ck_assert_int_eq(hook_calls(), 1);
    ck_assert_int_eq(memcmp(got, data, ELEMENTS * sizeof(*data)), 0);
    scenario_whole(&t);
}

TEST(fsck_takes_no_move_for_damage)
{
    hook_decode(move_rows, NULL, 1);
    uint64_t checked;
    OK(&t, brc_fsck(t.repo, 0, fsck_finds_nothing, NULL, NULL, &checked, &t.err));
    ck_assert_int_eq(hook_calls(), 1);
    ck_assert_uint_ge(checked, CHUNKS);
}

TEST(a_chunk_that_is_gone_is_one_clear_error)
{
    hook_decode(remove_chunks, NULL, 1);
    FAILS(&t, BRC_ESTALE, read_all());
    ck_assert_ptr_nonnull(strstr(t.err.message, "/a chunk ("));
    ck_assert_ptr_nonnull(strstr(t.err.message, "removed by a garbage collection during the read"));
    ck_assert_ptr_nonnull(strstr(t.err.message, "open a version that still exists"));
}

TEST(bytes_that_are_gone_are_damage)
{
    hook_decode(remove_bytes, NULL, 1);
    FAILS(&t, BRC_ECORRUPT, read_all());
    ck_assert_ptr_nonnull(strstr(t.err.message, "/a chunk ("));
    ck_assert_ptr_nonnull(strstr(t.err.message, "are missing"));
}
