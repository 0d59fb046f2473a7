/* Reads of one batch that meet the same chunks: each chunk is decoded once for all of them, and
 * each read gets what it would get by itself. */
#include <stdlib.h>
#include <string.h>

#include "../../src/breccia.h"
#include "../kit/hooked_kit.h"
#include "../kit/ios.h"
#include "../kit/suite.h"

TEST_SUITE(batch_reads);

#define CODECS "[" HOOKED_CODECS "]"
#define INDEX ",\"index_codecs\":[" LITTLE ",{\"name\":\"crc32c\"}]}}"
/* Chunks that are stored as a shard behind a codec: some of what is in them can be decoded. */
#define NESTED                                                                                     \
    "[{\"name\":\"transpose\",\"configuration\":{\"order\":[1,0]}},"                               \
    "{\"name\":\"sharding_indexed\",\"configuration\":{\"chunk_shape\":[30,2],"                    \
    "\"codecs\":" CODECS INDEX                                                                     \
    "]"

/* Rows 32 to 47 were never written. */
enum { ROWS = 60, COLUMNS = 120, MOST = 64, FILL = -7 };
static const uint64_t shape[2] = {ROWS, COLUMNS}, chunk[2] = {16, 60};

static struct {
    scenario t;
    hooked_parts parts;
    brc_array *a, *b;
    int32_t model[ROWS][COLUMNS];
    uint64_t told;
} x;

static int count_progress(void *ctx, const char *phase, uint64_t done, uint64_t total)
{
    (void)ctx, (void)phase;
    ck_assert_uint_le(done, total);
    x.told = done == total ? done : 0;
    return 0;
}

static brc_array *make(const char *path, const char *codecs)
{
    brc_array *a = scenario_array(&x.t, path, "int32", 2, shape, chunk, "-7", codecs);
    brc_sel part = BRC_SEL_INIT;
    OK(&x.t, brc_sel_parse(&part, a, "[:32]", &x.t.err));
    OK(&x.t, brc_array_write(a, &part, x.model, 32 * COLUMNS * 4, &x.t.err));
    OK(&x.t, brc_sel_parse(&part, a, "[48:]", &x.t.err));
    OK(&x.t, brc_array_write(a, &part, x.model[48], 12 * COLUMNS * 4, &x.t.err));
    return a;
}

static void start(unsigned threads, const char *codecs)
{
    memset(&x, 0, sizeof(x));
    for (int i = 0; i < ROWS * COLUMNS; i++)
        x.model[i / COLUMNS][i % COLUMNS] = i / COLUMNS >= 32 && i / COLUMNS < 48 ? FILL : i;
    hooked_file_start(&x.t, &x.parts, threads);
    brc_progress_set(x.t.repo, count_progress, NULL);
    x.a = make("/a", codecs);
    x.b = make("/b", codecs);
}

static void stop(void)
{
    brc_array_free(x.a);
    brc_array_free(x.b);
    hooked_file_stop(&x.t, &x.parts);
}

/* A box of two axes. */
static brc_sel box(uint64_t row, uint64_t rows, uint64_t step, uint64_t column, uint64_t columns,
                   uint64_t by)
{
    brc_sel sel = BRC_SEL_INIT;
    sel.ndim = 2;
    sel.start[0] = row, sel.count[0] = rows, sel.step[0] = step;
    sel.start[1] = column, sel.count[1] = columns, sel.step[1] = by;
    return sel;
}

/* Reads them in one batch, compares, and says how many chunks were decoded. */
static int read_all(const brc_sel *sels, brc_array *const *arrays, size_t n)
{
    static int32_t got[MOST][ROWS * COLUMNS], want[ROWS * COLUMNS];
    const model m = {.ndim = 2, .shape = {ROWS, COLUMNS}, .item = 4, .data = (uint8_t *)x.model};
    brc_buffer buffers[MOST];
    brc_io ios[MOST];
    int decoded = 0;
    ck_assert_uint_le(n, MOST);
    for (size_t i = 0; i < n; i++)
        ios[i] = io_in(&buffers[i], arrays[i], &sels[i], got[i],
                       (size_t)brc_sel_count(&sels[i]) * 4);
    hook_decode(hooked_count, &decoded, 1000000);
    OK(&x.t, brc_read(ios, n, &x.t.err));
    for (size_t i = 0; i < n; i++) {
        model_read(&m, &sels[i], want, NULL);
        ck_assert_mem_eq(got[i], want, (size_t)brc_sel_count(&sels[i]) * 4);
    }
    return decoded;
}

/* Every row by itself: three rows of chunks are there, of two chunks each. _i: threads. */
LOOP(rows_of_a_chunk_decode_it_once, 0, 4)
{
    brc_sel rows[ROWS];
    brc_array *of[ROWS];
    start((unsigned)_i, CODECS);
    for (uint64_t i = 0; i < ROWS; i++) {
        rows[i] = box(i, 1, 1, 0, COLUMNS, 1);
        of[i] = x.a;
    }
    ck_assert_int_eq(read_all(rows, of, ROWS), 6);
    ck_assert_uint_eq(x.told, ROWS * COLUMNS * 4);
    stop();
}

/* Neighbours that meet other chunks, or are of another array, are read by themselves. */
LOOP(only_the_same_chunks_are_shared, 0, 4)
{
    start((unsigned)_i, CODECS);
    const brc_sel sels[] = {
        box(0, 16, 1, 0, 60, 1), /* a whole chunk, twice */
        box(0, 16, 1, 0, 60, 1),
        box(3, 2, 1, 0, 120, 1), /* two chunks, */
        box(3, 2, 1, 0, 120, 1), /* and the same of another array */
        box(15, 2, 1, 0, 60, 1), /* two below each other */
        box(15, 2, 1, 50, 1, 1),
        box(40, 1, 1, 0, 120, 1), /* what is not there */
        box(41, 1, 1, 0, 120, 1),
        box(0, 0, 1, 0, 120, 1), /* nothing */
        box(0, 0, 1, 0, 120, 1),
    };
    brc_array *const of[] = {x.a, x.a, x.a, x.b, x.a, x.a, x.a, x.a, x.a, x.a};
    ck_assert_int_eq(read_all(sels, of, sizeof(sels) / sizeof(sels[0])), 1 + 2 + 2 + 2);
    stop();
}

/* Rows 2 to 5 of the first columns are in two inner chunks of the 16. */
LOOP(of_a_chunk_of_inner_chunks_only_what_is_read_is_decoded, 0, 4)
{
    start((unsigned)_i, NESTED);
    const brc_sel sels[] = {box(3, 1, 1, 0, 10, 1), box(5, 1, 1, 0, 20, 1), box(2, 1, 1, 4, 1, 1)};
    brc_array *const of[] = {x.a, x.a, x.a};
    ck_assert_int_eq(read_all(sels, of, 3), 2);
    stop();
}

/* Chunks 1 and 2 have nothing of it, and what is not there is not looked for. */
LOOP(f24_a_step_passes_over_a_shard_behind_a_codec, 0, 4)
{
    start((unsigned)_i, NESTED);
    const brc_sel sels[] = {box(0, 2, 50, 0, 120, 1), box(0, 2, 50, 0, 2, 119)};
    brc_array *const of[] = {x.a, x.a};
    read_all(sels, of, 1);
    read_all(sels + 1, of, 1);
    read_all(sels, of, 2);
    stop();
}

/* Steps, also such that pass over chunks. */
LOOP(any_boxes_are_as_if_read_alone, 0, 30)
{
    brc_sel sels[MOST];
    brc_array *of[MOST];
    uint64_t seed = (uint64_t)_i * 7919 + 17;
    start((unsigned)_i % 2 * 3, _i % 3 ? CODECS : NESTED);
    for (int i = 0; i < MOST; i++) {
        uint64_t n[6];
        for (int k = 0; k < 6; k++) {
            seed = seed * 6364136223846793005u + 1442695040888963407u;
            n[k] = seed >> 33;
        }
        const uint64_t row = n[0] % ROWS, column = n[1] % COLUMNS;
        const uint64_t step = 1 + n[2] % 23, by = 1 + n[3] % 70;
        sels[i] = box(row, 1 + n[4] % ((ROWS - 1 - row) / step + 1), step, column,
                      1 + n[5] % ((COLUMNS - 1 - column) / by + 1), by);
        if (i % 2)
            sels[i] = sels[i - 1];
        if (i % 4 == 1 && sels[i].start[0] % 16 > 0)
            sels[i].start[0]--;
        of[i] = n[0] % 3 ? x.a : x.b;
    }
    read_all(sels, of, MOST);
    stop();
}
