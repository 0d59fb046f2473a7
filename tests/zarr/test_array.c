/* Arrays against a model in plain memory: any shape, selection, memory layout, number
 * of threads and budget gives the same elements. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "../../src/breccia.h"
#include "../kit/ios.h"
#include "../kit/scenario.h"
#include "../kit/suite.h"

TEST_SUITE(array);

#define BIG "{\"name\":\"bytes\",\"configuration\":{\"endian\":\"big\"}}"
#define LITTLE "{\"name\":\"bytes\",\"configuration\":{\"endian\":\"little\"}}"
#define ZSTD "{\"name\":\"zstd\",\"configuration\":{\"level\":1,\"checksum\":false}}"
#define GZIP "{\"name\":\"gzip\",\"configuration\":{\"level\":1}}"
#define CRC "{\"name\":\"crc32c\"}"

static const struct {
    const char *dtype, *fill;
    size_t size;
    uint8_t bits[16]; /* of the fill value */
} kinds[] = {
    { "uint8", "7", 1, { 7 } },
    { "int16", "-2", 2, { 0xfe, 0xff } },
    { "r24", "[1, 2, 3]", 3, { 1, 2, 3 } },
    { "float32", "NaN", 4, { 0, 0, 0xc0, 0x7f } },
    { "int64", NULL, 8, { 0 } },
    { "complex128", NULL, 16, { 0 } },
};
#define KINDS (sizeof(kinds) / sizeof(kinds[0]))

/* A chain for this type and rank, or NULL for the default. */
static const char *random_codecs(uint64_t *random, size_t size, int ndim)
{
    static const char *const chains[] = { "[" LITTLE "]", "[" BIG "]", "[" BIG "," CRC "]",
                                          "[" LITTLE "," ZSTD "]",
                                          "[" LITTLE "," GZIP "," CRC "]" };
    static const char *const turned[] = {
        "[{\"name\":\"transpose\",\"configuration\":{\"order\":[]}}," LITTLE "," ZSTD "]",
        "[{\"name\":\"transpose\",\"configuration\":{\"order\":[0]}}," BIG "]",
        "[{\"name\":\"transpose\",\"configuration\":{\"order\":[1,0]}}," LITTLE "]",
        "[{\"name\":\"transpose\",\"configuration\":{\"order\":[2,0,1]}}," BIG "," ZSTD "]",
        "[{\"name\":\"transpose\",\"configuration\":{\"order\":[3,1,0,2]}}," LITTLE "]"
    };
    uint64_t pick = scenario_below(random, 8);
    if (size == 3 || pick == 0)
        return NULL;
    return pick == 1 ? turned[ndim] : chains[pick % 5];
}

/* Bytes that make chunks of every sort: at random, few values, or all fill. */
static void random_data(uint64_t *random, const model *m, uint8_t *out, size_t len)
{
    uint64_t sort = scenario_below(random, 4);
    if (sort == 0)
        model_bytes(random, out, len);
    for (size_t i = 0; sort != 0 && i < len; i++)
        out[i] = sort == 1 ? (uint8_t)scenario_below(random, 2) : m->fill[i % m->item];
}

typedef struct trial {
    scenario t;
    model m;
    brc_array *a;
    uint64_t random;
} trial;

static void trial_shape(trial *x, uint64_t max, uint64_t *shape, uint64_t *chunk)
{
    for (int i = 0; i < x->m.ndim; i++) {
        shape[i] = scenario_below(&x->random, 12) == 0 ? 0 : 1 + scenario_below(&x->random, max);
        chunk[i] = 1 + scenario_below(&x->random, max + 3);
    }
}

static void trial_start(trial *x, uint64_t seed)
{
    uint64_t shape[4], chunk[4];
    static const uint64_t most[] = { 1, 60, 14, 8, 6 };
    memset(x, 0, sizeof(*x));
    x->random = seed;
    size_t kind = (size_t)scenario_below(&x->random, KINDS);
    x->m.ndim = (int)scenario_below(&x->random, 5);
    int ndim = x->m.ndim;
    trial_shape(x, most[ndim], shape, chunk);
    scenario_start(&x->t);
    x->a = scenario_array(&x->t, "/a", kinds[kind].dtype, ndim, shape,
                          scenario_below(&x->random, 6) == 0 ? NULL : chunk, kinds[kind].fill,
                          random_codecs(&x->random, kinds[kind].size, ndim));
    model_new(&x->m, ndim, shape, kinds[kind].size, kinds[kind].bits);
    ck_assert_mem_eq(brc_array_describe(x->a)->fill, x->m.fill, x->m.item);
}

static void trial_stop(trial *x)
{
    scenario_whole(&x->t);
    brc_array_free(x->a);
    model_free(&x->m);
    scenario_stop(&x->t);
}

/* Memory with gaps and turned axes for the selection; the strides, and where it begins. */
static uint8_t *strided_memory(trial *x, const brc_sel *sel, int64_t *strides, size_t *len,
                               uint8_t **origin)
{
    int ndim = sel->ndim, order[4] = { 0, 1, 2, 3 };
    int64_t step = (int64_t)x->m.item, back = 0;
    for (int i = 0; i < ndim; i++) {
        int j = i + (int)scenario_below(&x->random, (uint64_t)(ndim - i)), k = order[i];
        order[i] = order[j];
        order[j] = k;
    }
    for (int i = ndim - 1; i >= 0; i--) {
        int axis = order[i];
        step += (int64_t)scenario_below(&x->random, 3); /* not even aligned */
        int down = scenario_below(&x->random, 3) == 0;
        strides[axis] = down ? -step : step;
        if (down && sel->count[axis] > 0)
            back += step * (int64_t)(sel->count[axis] - 1);
        step *= (int64_t)(sel->count[axis] > 0 ? sel->count[axis] : 1);
    }
    *len = (size_t)step + x->m.item;
    uint8_t *memory = malloc(*len);
    ck_assert_ptr_nonnull(memory);
    model_bytes(&x->random, memory, *len);
    *origin = memory + back;
    return memory;
}

static void trial_strided(trial *x, const brc_sel *sel)
{
    int64_t strides[4];
    size_t len;
    uint8_t *origin, *memory = strided_memory(x, sel, strides, &len, &origin);
    uint8_t *expected = malloc(len);
    ck_assert_ptr_nonnull(expected);
    memcpy(expected, memory, len);
    brc_buffer buffer = BRC_BUFFER_INIT;
    brc_io io = { .size = sizeof(io), .array = x->a, .sel = sel, .buffer = &buffer };
    buffer.data = memory;
    buffer.len = len;
    buffer.offset = (size_t)(origin - memory);
    buffer.strides = strides;
    if (scenario_below(&x->random, 2) == 0) {
        OK(&x->t, brc_write(&io, 1, &x->t.err));
        model_write(&x->m, sel, origin, strides);
    } else {
        OK(&x->t, brc_read(&io, 1, &x->t.err));
        model_read(&x->m, sel, expected + (origin - memory), strides);
    }
    ck_assert_mem_eq(memory, expected, len); /* and nothing between the elements */
    free(expected);
    free(memory);
}

static void trial_packed(trial *x, const brc_sel *sel)
{
    size_t len = (size_t)brc_sel_count(sel) * x->m.item;
    uint8_t *memory = calloc(2, len + 1), *expected = memory + len + 1;
    ck_assert_ptr_nonnull(memory);
    if (scenario_below(&x->random, 2) == 0) {
        random_data(&x->random, &x->m, memory, len);
        memcpy(expected, memory, len);
        OK(&x->t, brc_array_write(x->a, sel, memory, len, &x->t.err));
        model_write(&x->m, sel, expected, NULL);
    } else {
        OK(&x->t, brc_array_read(x->a, sel, memory, len, &x->t.err));
        model_read(&x->m, sel, expected, NULL);
    }
    ck_assert_mem_eq(memory, expected, len + 1);
    free(memory);
}

static void trial_fill(trial *x, const brc_sel *sel)
{
    static const int64_t still[4];
    uint8_t element[16];
    memcpy(element, x->m.fill, sizeof(element));
    if (scenario_below(&x->random, 2) == 0)
        model_bytes(&x->random, element, x->m.item);
    OK(&x->t, brc_array_fill(x->a, sel, element, &x->t.err));
    model_write(&x->m, sel, element, still);
}

static void trial_append(trial *x)
{
    uint64_t shape[4], count = 1 + scenario_below(&x->random, 5), n = count;
    if (x->m.ndim == 0)
        return;
    int axis = (int)scenario_below(&x->random, (uint64_t)x->m.ndim);
    brc_sel sel = BRC_SEL_INIT;
    sel_all(&sel, x->a);
    memcpy(shape, x->m.shape, sizeof(shape));
    sel.start[axis] = shape[axis];
    sel.count[axis] = count;
    shape[axis] += count;
    for (int i = 0; i < x->m.ndim; i++)
        n *= i == axis ? 1 : shape[i];
    size_t len = (size_t)n * x->m.item;
    uint8_t *data = malloc(len + 1);
    ck_assert_ptr_nonnull(data);
    random_data(&x->random, &x->m, data, len);
    OK(&x->t, brc_array_append(x->a, axis, count, data, len, &x->t.err));
    model_resize(&x->m, shape);
    model_write(&x->m, &sel, data, NULL);
    free(data);
}

static void trial_resize(trial *x)
{
    uint64_t shape[4], unused[4];
    static const uint64_t most[] = { 1, 60, 14, 8, 6 };
    trial_shape(x, most[x->m.ndim], shape, unused);
    OK(&x->t, brc_array_resize(x->a, shape, &x->t.err));
    model_resize(&x->m, shape);
}

static void trial_reopen(trial *x)
{
    int clean;
    OK(&x->t, brc_session_clean(&clean, x->t.session, &x->t.err));
    if (!clean && scenario_below(&x->random, 2) == 0)
        scenario_commit(&x->t, "so far");
    brc_array_free(x->a);
    scenario_reopen(&x->t);
    OK(&x->t, brc_array_open(&x->a, x->t.session, "/a", &x->t.err));
}

LOOP(any_array_is_like_plain_memory, 0, 120)
{
    trial x;
    trial_start(&x, (uint64_t)_i + 1);
    for (int step = 0; step < 24; step++) {
        brc_sel sel = BRC_SEL_INIT;
        model_selection(&x.m, &x.random, &sel);
        switch (scenario_below(&x.random, 12)) {
        case 0: trial_append(&x); break;
        case 1: trial_resize(&x); break;
        case 2: trial_reopen(&x); break;
        case 3: trial_fill(&x, &sel); break;
        case 4: case 5: case 6: trial_strided(&x, &sel); break;
        default: trial_packed(&x, &sel); break;
        }
    }
    model_check(&x.m, &x.t, x.a);
    trial_stop(&x);
}

/* ---- threads and memory -------------------------------- */

static const struct {
    unsigned threads; /* 0: no pool */
    size_t memory;
} budgets[] = { { 0, 0 }, { 1, 0 }, { 2, 0 }, { 8, 0 }, { 0, 1 }, { 2, 1 << 20 }, { 8, 3 << 20 } };

/* One piece of work; what was stored and what was read, as bytes. */
static void budget_work(unsigned threads, size_t memory, brc_buf *ids, uint8_t *read, size_t len)
{
    scenario t;
    brc_open_opts opts = BRC_OPEN_OPTS_INIT;
    brc_pool *pool = NULL;
    brc_sel sel = BRC_SEL_INIT;
    uint64_t random = 5, shape[3] = { 100, 90, 70 }, chunk[3] = { 16, 20, 32 };
    uint16_t *data = malloc(len);
    ck_assert_ptr_nonnull(data);
    for (size_t i = 0; i < len / 2; i++)
        data[i] = (uint16_t)(i / 7 + scenario_below(&random, 16));
    scenario_folder(&t);
    if (threads > 0)
        OK(&t, brc_pool_new(&pool, threads, &t.err));
    opts.pool = pool;
    opts.memory = memory;
    scenario_open(&t, &opts, BRC_OPEN_CREATE);
    brc_array *a = scenario_array(&t, "/a", "uint16", 3, shape, chunk, NULL, NULL);
    OK(&t, brc_array_write(a, NULL, data, len, &t.err));
    OK(&t, brc_sel_parse(&sel, a, "[3:90:2, 10:80, 5:60:3]", &t.err));
    OK(&t, brc_array_write(a, &sel, data, (size_t)brc_sel_count(&sel) * 2, &t.err));
    OK(&t, brc_array_read(a, NULL, read, len, &t.err));
    scenario_rows(&t, "SELECT hex(key), hex(id) FROM draft_chunk c WHERE NOT EXISTS"
                      " (SELECT 1 FROM draft_node n JOIN draft_chunk u ON u.node=n.node"
                      "  WHERE n.below=c.node AND u.key=c.key) ORDER BY key", ids);
    brc_array_free(a);
    scenario_stop(&t);
    brc_pool_free(pool);
    free(data);
}

EACH(P6_P20_threads_and_memory_change_no_result, budgets)
{
    size_t len = 100 * 90 * 70 * 2;
    brc_buf first = BRC_BUF_INIT, ids = BRC_BUF_INIT;
    uint8_t *expected = malloc(len), *read = malloc(len);
    ck_assert(expected != NULL && read != NULL);
    budget_work(budgets[0].threads, budgets[0].memory, &first, expected, len);
    budget_work(budgets[_i].threads, budgets[_i].memory, &ids, read, len);
    ck_assert_uint_gt(first.len, 1000);
    ck_assert_str_eq((const char *)ids.data, (const char *)first.data);
    ck_assert_mem_eq(read, expected, len);
    brc_buf_dispose(&first);
    brc_buf_dispose(&ids);
    free(expected);
    free(read);
}

/* ---- what is read and what is not -------------------------------- */

TEST(P10_covered_chunks_are_not_read)
{
    scenario t;
    brc_array *a;
    brc_sel sel = BRC_SEL_INIT;
    int32_t data[10] = { 1, 2, 3, 4, 5, 6, 7, 8, 9, 10 }, got[10];
    scenario_start(&t);
    scenario_numbers(&t, "/a", 10, 4, 100);
    scenario_commit(&t, "one");
    scenario_sql(&t, "UPDATE blob SET data = zeroblob(length(data)) WHERE seq IN"
                     " (SELECT place FROM object WHERE kind=1)"); /* no chunk can be read */
    scenario_reopen(&t);
    OK(&t, brc_array_open(&a, t.session, "/a", &t.err));
    FAILS(&t, BRC_ECORRUPT, brc_array_read(a, NULL, got, sizeof(got), &t.err));
    OK(&t, brc_sel_parse(&sel, a, "[4:10]", &t.err)); /* two chunks; the last is cut by the shape */
    OK(&t, brc_array_write(a, &sel, data, 24, &t.err));
    OK(&t, brc_array_read(a, &sel, got, 24, &t.err));
    ck_assert_mem_eq(got, data, 24);
    OK(&t, brc_sel_parse(&sel, a, "[1:4]", &t.err));
    FAILS(&t, BRC_ECORRUPT, brc_array_write(a, &sel, data, 12, &t.err));
    OK(&t, brc_sel_parse(&sel, a, "[0:4:2]", &t.err));
    FAILS(&t, BRC_ECORRUPT, brc_array_write(a, &sel, data, 8, &t.err));
    OK(&t, brc_array_fill(a, NULL, data, &t.err));
    OK(&t, brc_array_read(a, NULL, got, sizeof(got), &t.err));
    ck_assert_int_eq(got[0] + got[9], 2);
    brc_array_free(a);
    scenario_stop(&t);
}

TEST(B8_source_memory_is_only_read_and_not_kept)
{
    scenario t;
    uint64_t shape[2] = { 64, 64 }, chunk[2] = { 64, 10 };
    size_t len = 64 * 64;
    int32_t got[64 * 64];
    scenario_start(&t);
    const char *codecs[] = { "[" LITTLE "]", "[" BIG "]", "[" LITTLE "," ZSTD "]", NULL };
    int32_t *source =
        mmap(NULL, len * 4, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    ck_assert_ptr_ne(source, MAP_FAILED);
    for (int i = 0; i < 8; i++) {
        brc_array *a = scenario_array(&t, i % 2 == 0 ? "/whole" : "/cut", "int32", 2, shape,
                                      i % 2 == 0 ? shape : chunk, NULL, codecs[i / 2]);
        ck_assert_int_eq(mprotect(source, len * 4, PROT_READ | PROT_WRITE), 0);
        for (size_t j = 0; j < len; j++)
            source[j] = (int32_t)(j * 3) + i;
        ck_assert_int_eq(mprotect(source, len * 4, PROT_READ), 0); /* a write would end the test */
        OK(&t, brc_array_write(a, NULL, source, len * 4, &t.err));
        ck_assert_int_eq(mprotect(source, len * 4, PROT_READ | PROT_WRITE), 0);
        memset(source, 0xee, len * 4);
        OK(&t, brc_array_read(a, NULL, got, sizeof(got), &t.err));
        for (size_t j = 0; j < len; j++)
            ck_assert_int_eq(got[j], (int32_t)(j * 3) + i);
        brc_array_free(a);
        OK(&t, brc_node_remove(t.session, i % 2 == 0 ? "/whole" : "/cut", &t.err));
    }
    munmap(source, len * 4);
    scenario_stop(&t);
}

/* ---- batches -------------------------------- */

TEST(the_later_write_of_a_batch_wins)
{
    scenario t;
    brc_array *a;
    brc_sel all = BRC_SEL_INIT, part = BRC_SEL_INIT;
    int32_t one[10], two[4] = { 21, 22, 23, 24 }, three[3] = { 31, 32, 33 }, got[10];
    scenario_start(&t);
    scenario_numbers(&t, "/a", 10, 4, 0);
    OK(&t, brc_array_open(&a, t.session, "/a", &t.err));
    for (int i = 0; i < 10; i++)
        one[i] = 10 + i;
    OK(&t, brc_sel_parse(&all, a, "[:]", &t.err));
    OK(&t, brc_sel_parse(&part, a, "[2:6]", &t.err));
    brc_sel step = part;
    step.step[0] = 3;
    step.count[0] = 3; /* 2, 5, 8 */
    brc_io io[] = { IO_OF(a, &all, one, sizeof(one)), IO_OF(a, &part, two, sizeof(two)),
                    IO_OF(a, &step, three, sizeof(three)) };
    OK(&t, brc_write(io, 3, &t.err));
    OK(&t, brc_array_read(a, NULL, got, sizeof(got), &t.err));
    const int32_t expected[10] = { 10, 11, 31, 22, 23, 32, 16, 17, 33, 19 };
    ck_assert_mem_eq(got, expected, sizeof(got));
    brc_array_free(a);
    scenario_stop(&t);
}

TEST(P22_a_batch_is_all_or_nothing)
{
    scenario t, u;
    brc_array *a, *b, *far;
    int32_t data[10] = { -1, -1, -1, -1, -1, -1, -1, -1, -1, -1 }, got[10], more[10];
    scenario_start(&t);
    scenario_numbers(&t, "/a", 10, 4, 0);
    scenario_numbers(&t, "/b", 10, 4, 50);
    scenario_commit(&t, "one");
    OK(&t, brc_array_open(&a, t.session, "/a", &t.err));
    OK(&t, brc_array_open(&b, t.session, "/b", &t.err));
    brc_io io[] = { IO_OF(a, NULL, data, sizeof(data)), IO_OF(b, NULL, data, 36) };
    FAILS(&t, BRC_EINVAL, brc_write(io, 2, &t.err)); /* the second is too short */
    ck_assert_int_eq(scenario_clean(&t), 1);
    OK(&t, brc_array_read(a, NULL, got, sizeof(got), &t.err));
    ck_assert_int_eq(got[3], 3);
    io[1].buffer = PACKED(data, 40);
    OK(&t, brc_write(io, 2, &t.err));
    brc_io back[] = { IO_OF(a, NULL, got, sizeof(got)), IO_OF(b, NULL, more, sizeof(more)) };
    OK(&t, brc_read(back, 2, &t.err));
    ck_assert_int_eq(got[3] + more[9], -2);
    OK(&t, brc_write(NULL, 0, &t.err));
    OK(&t, brc_read(NULL, 0, &t.err));
    scenario_start(&u);
    scenario_numbers(&u, "/a", 10, 4, 0);
    OK(&u, brc_array_open(&far, u.session, "/a", &u.err));
    io[1].array = far; /* of another file */
    FAILS(&t, BRC_EINVAL, brc_write(io, 2, &t.err));
    brc_array_free(far);
    scenario_stop(&u);
    brc_array_free(a);
    brc_array_free(b);
    scenario_stop(&t);
}

/* ---- arguments -------------------------------- */

TEST(wrong_arguments_change_nothing)
{
    scenario t;
    brc_array *a;
    brc_sel sel = BRC_SEL_INIT;
    int32_t data[12];
    memset(data, 0, sizeof(data));
    scenario_start(&t);
    scenario_numbers(&t, "/a", 10, 4, 0);
    scenario_commit(&t, "one");
    OK(&t, brc_array_open(&a, t.session, "/a", &t.err));
    FAILS(&t, BRC_EINVAL, brc_array_write(a, NULL, data, 44, &t.err));
    FAILS(&t, BRC_EINVAL, brc_array_write(a, NULL, data, 0, &t.err));
    FAILS(&t, BRC_EINVAL, brc_array_read(a, NULL, data, 36, &t.err));
    sel_all(&sel, a);
    sel.count[0] = 11;
    FAILS(&t, BRC_EINVAL, brc_array_write(a, &sel, data, 44, &t.err));
    sel.count[0] = 2;
    sel.step[0] = 10;
    FAILS(&t, BRC_EINVAL, brc_array_write(a, &sel, data, 8, &t.err));
    sel.step[0] = 0;
    FAILS(&t, BRC_EINVAL, brc_array_write(a, &sel, data, 8, &t.err));
    sel.step[0] = UINT64_MAX;
    sel.count[0] = 3;
    FAILS(&t, BRC_EINVAL, brc_array_write(a, &sel, data, 12, &t.err));
    sel.ndim = 2;
    FAILS(&t, BRC_EINVAL, brc_array_read(a, &sel, data, 12, &t.err));
    FAILS(&t, BRC_EINVAL, brc_array_append(a, 1, 1, data, 4, &t.err));
    FAILS(&t, BRC_EINVAL, brc_array_append(a, -1, 1, data, 4, &t.err));
    FAILS(&t, BRC_EINVAL, brc_array_append(a, 0, 2, data, 4, &t.err));
    FAILS(&t, BRC_ELIMIT, brc_array_append(a, 0, UINT64_MAX, data, 4, &t.err));
    FAILS(&t, BRC_ELIMIT, brc_array_resize(a, (uint64_t[]){ UINT64_C(1) << 63 }, &t.err));
    ck_assert_uint_eq(brc_array_describe(a)->shape[0], 10);
    ck_assert_int_eq(scenario_clean(&t), 1);
    OK(&t, brc_array_append(a, 0, 0, data, 0, &t.err));
    ck_assert_int_eq(scenario_clean(&t), 1);
    brc_session *view = scenario_session(&t, t.repo, NULL, BRC_SESSION_VIEW);
    brc_array *b = scenario_array_at(&t, view, "/a");
    FAILS(&t, BRC_EREADONLY, brc_array_write(b, NULL, data, 40, &t.err));
    FAILS(&t, BRC_EREADONLY, brc_array_resize(b, (uint64_t[]){ 4 }, &t.err));
    brc_array_free(b);
    brc_session_free(view);
    brc_array_free(a);
    scenario_stop(&t);
}

static int stop_at_once(void *ctx, const char *what, uint64_t done, uint64_t total)
{
    (void)what;
    (void)done;
    (void)total;
    return *(int *)ctx;
}

TEST(a_callback_stops_a_write)
{
    scenario t;
    brc_open_opts opts = BRC_OPEN_OPTS_INIT;
    int stop = 0;
    uint64_t shape[1] = { 4000 }, chunk[1] = { 4 };
    int16_t data[4000], got[4000];
    scenario_folder(&t);
    opts.progress = stop_at_once;
    opts.progress_ctx = &stop;
    scenario_open(&t, &opts, BRC_OPEN_CREATE);
    brc_array *a = scenario_array(&t, "/a", "int16", 1, shape, chunk, NULL, NULL);
    scenario_commit(&t, "one");
    for (int i = 0; i < 4000; i++)
        data[i] = (int16_t)i;
    stop = 1;
    FAILS(&t, BRC_EINTERRUPT, brc_array_write(a, NULL, data, sizeof(data), &t.err));
    stop = 0;
    ck_assert_int_eq(scenario_clean(&t), 1);
    OK(&t, brc_array_write(a, NULL, data, sizeof(data), &t.err)); /* and goes on working */
    OK(&t, brc_array_read(a, NULL, got, sizeof(got), &t.err));
    ck_assert_mem_eq(got, data, sizeof(got));
    brc_array_free(a);
    scenario_stop(&t);
}

/* ---- sizes beyond memory -------------------------------- */

TEST(cost_follows_what_is_stored_not_the_shape)
{
    scenario t;
    brc_sel sel = BRC_SEL_INIT;
    uint64_t shape[2] = { UINT64_C(1) << 40, (UINT64_C(1) << 40) + 5 }, chunk[2] = { 7, 11 };
    uint64_t grown[2] = { (UINT64_C(1) << 40) + 3, (UINT64_C(1) << 41) + 1 };
    uint64_t cut[2] = { (UINT64_C(1) << 40) - 1, (UINT64_C(1) << 40) + 5 };
    int32_t value = 9, got = 0;
    uint64_t chunks, bytes;
    scenario_start(&t);
    brc_array *a = scenario_array(&t, "/a", "int32", 2, shape, chunk, NULL, NULL);
    OK(&t, brc_sel_parse(&sel, a, "[-1, -1]", &t.err));
    OK(&t, brc_array_write(a, &sel, &value, 4, &t.err));
    OK(&t, brc_array_stat(&chunks, &bytes, a, &t.err));
    ck_assert_uint_eq(chunks, 1);
    scenario_commit(&t, "one");
    OK(&t, brc_array_resize(a, grown, &t.err)); /* both axes end inside a chunk */
    OK(&t, brc_array_read(a, &sel, &got, 4, &t.err));
    ck_assert_int_eq(got, 9);
    OK(&t, brc_array_resize(a, cut, &t.err)); /* the row of the value is gone */
    OK(&t, brc_array_resize(a, grown, &t.err));
    OK(&t, brc_array_read(a, &sel, &got, 4, &t.err));
    ck_assert_int_eq(got, 0);
    OK(&t, brc_array_stat(&chunks, &bytes, a, &t.err));
    ck_assert_uint_eq(chunks, 0);
    brc_array_free(a);
    scenario_stop(&t);
}

TEST(appending_leaves_other_chunks_alone)
{
    scenario t;
    uint64_t shape[2] = { 400, 5 }, chunk[2] = { 4, 3 };
    int32_t data[400 * 5];
    scenario_start(&t);
    brc_array *a = scenario_array(&t, "/a", "int32", 2, shape, chunk, NULL, NULL);
    for (int i = 0; i < 2000; i++)
        data[i] = i + 1;
    OK(&t, brc_array_write(a, NULL, data, sizeof(data), &t.err));
    scenario_commit(&t, "one");
    OK(&t, brc_array_append(a, 0, 4, data, 80, &t.err));
    ck_assert_int_eq(scenario_ask(&t, "SELECT count(*) FROM draft_chunk"), 2);
    brc_array_free(a);
    scenario_stop(&t);
}

/* Writing one element of every thousandth chunk must not cost as much as writing all chunks. */
TEST(chunks_that_steps_pass_over_are_left_alone)
{
    scenario t;
    uint64_t shape[2] = { 400, 5 }, chunk[2] = { 4, 3 };
    int32_t data[400 * 5], got[6];
    brc_sel sel = BRC_SEL_INIT;
    scenario_start(&t);
    brc_array *a = scenario_array(&t, "/a", "int32", 2, shape, chunk, NULL, NULL);
    for (int i = 0; i < 2000; i++)
        data[i] = i + 1;
    OK(&t, brc_array_write(a, NULL, data, sizeof(data), &t.err));
    scenario_commit(&t, "one");
    sel.ndim = 2;
    sel.start[0] = 3;
    sel.step[0] = 150;
    sel.step[1] = 4; /* passes over no chunk */
    sel.count[0] = 3;
    sel.count[1] = 2;
    OK(&t, brc_array_write(a, &sel, data, sizeof(got), &t.err));
    ck_assert_int_eq(scenario_ask(&t, "SELECT count(*) FROM draft_chunk"), 6);
    OK(&t, brc_array_read(a, &sel, got, sizeof(got), &t.err));
    ck_assert_mem_eq(got, data, sizeof(got));
    brc_array_free(a);
    scenario_stop(&t);
}
