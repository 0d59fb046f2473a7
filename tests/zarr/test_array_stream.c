/* Selections that are streamed: what a program gets run by run is what one read gives, and what it
 * gives as it is asked is what one write of it makes. */
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "../../src/base/buf.h"
#include "../kit/ios.h"
#include "../kit/scenario.h"
#include "../kit/suite.h"

TEST_SUITE(array_stream);

#define MIB ((uint64_t)1 << 20)

/* ---- reading -------------------------------- */

typedef struct taker {
    brc_array *array; /* also read meanwhile, where it is set */
    brc_buf all;
    uint64_t bytes, longest;
    int runs, stop; /* after so many runs; 0: never */
} taker;

static int take_run(void *ctx, const void *data, size_t len)
{
    taker *t = ctx;
    uint8_t one[8];
    brc_error err = BRC_ERROR_INIT;
    t->bytes += len;
    t->longest = len > t->longest ? len : t->longest;
    if (t->bytes <= MIB)
        ck_assert_int_eq(brc_buf_append(&t->all, data, len, &err), BRC_OK);
    if (t->array != NULL) {
        brc_sel sel = BRC_SEL_INIT;
        ck_assert_int_eq(brc_sel_parse(&sel, t->array, "[0]", &err), BRC_OK);
        ck_assert_int_eq(brc_array_read(t->array, &sel, one, 1, &err), BRC_OK);
    }
    return ++t->runs == t->stop;
}

CASE("read");

TEST(what_is_streamed_is_what_one_read_gives)
{
    static const char *const selections[] = { "[:, :]", "[3:20:4, ::5]", "[7, 2:9]", "[5:5, :]" };
    scenario t;
    const uint64_t shape[2] = { 30, 21 }, chunk[2] = { 7, 4 };
    int32_t data[30 * 21];
    scenario_start(&t);
    brc_array *a = scenario_array(&t, "/a", "int32", 2, shape, chunk, NULL, NULL);
    for (int i = 0; i < 30 * 21; i++)
        data[i] = 7919 * i;
    OK(&t, brc_array_write(a, NULL, data, sizeof(data), &t.err));
    for (size_t i = 0; i < sizeof(selections) / sizeof(selections[0]); i++) {
        taker got = { .all = BRC_BUF_INIT };
        brc_buf want = BRC_BUF_INIT;
        brc_sel sel = BRC_SEL_INIT;
        OK(&t, brc_sel_parse(&sel, a, selections[i], &t.err));
        OK(&t, brc_array_stream(a, &sel, 0, take_run, &got, &t.err));
        OK(&t, io_elements(a, &sel, &want, &t.err));
        ck_assert_uint_eq(got.all.len, want.len);
        ck_assert_int_eq(want.len > 0 ? memcmp(got.all.data, want.data, want.len) : 0, 0);
        brc_buf_dispose(&got.all);
        brc_buf_dispose(&want);
    }
    FAILS(&t, BRC_EINVAL, brc_array_stream(a, NULL, 0, NULL, NULL, &t.err));
    brc_sel outside = BRC_SEL_INIT;
    sel_all(&outside, a);
    outside.count[0]++;
    taker none = { .all = BRC_BUF_INIT };
    FAILS(&t, BRC_EINVAL, brc_array_stream(a, &outside, 0, take_run, &none, &t.err));
    ck_assert_int_eq(none.runs, 0);
    brc_array_free(a);
    scenario_stop(&t);
}

/* Nothing is stored: elements are the fill value, and cost no time. */
TEST(runs_are_bounded_and_can_be_stopped)
{
    scenario t;
    const uint64_t shape[2] = { 160, MIB }, chunk[2] = { 10, 1000 };
    scenario_start(&t);
    brc_array *a = scenario_array(&t, "/a", "uint8", 2, shape, chunk, "7", NULL);
    const uint64_t few[1] = { 3 };
    brc_array *other = scenario_array(&t, "/b", "uint8", 1, few, few, NULL, NULL);
    taker all = { .array = other, .all = BRC_BUF_INIT }, some = { .all = BRC_BUF_INIT, .stop = 2 };
    OK(&t, brc_array_stream(a, NULL, 0, take_run, &all, &t.err));
    ck_assert_uint_eq(all.bytes, 160 * MIB);
    ck_assert_uint_eq(all.longest, 10 * MIB); /* a row of chunks, no half one */
    ck_assert_int_eq(all.runs, 16);
    FAILS(&t, BRC_EINTERRUPT, brc_array_stream(a, NULL, 0, take_run, &some, &t.err));
    ck_assert_int_eq(some.runs, 2);
    brc_buf_dispose(&all.all);
    brc_buf_dispose(&some.all);
    brc_array_free(other);
    brc_array_free(a);
    scenario_stop(&t);
}

/* A row of chunks has 40 MiB, which is more than a run usually has. */
TEST(a_long_row_of_chunks_is_one_run)
{
    scenario t;
    const uint64_t shape[2] = { 30, 4 * MIB }, chunk[2] = { 10, 1000 };
    taker all = { .all = BRC_BUF_INIT };
    scenario_start(&t);
    brc_array *a = scenario_array(&t, "/a", "uint8", 2, shape, chunk, "7", NULL);
    OK(&t, brc_array_stream(a, NULL, 0, take_run, &all, &t.err));
    ck_assert_uint_eq(all.longest, 40 * MIB);
    ck_assert_int_eq(all.runs, 3);
    brc_buf_dispose(&all.all);
    brc_array_free(a);
    scenario_stop(&t);
}

/* ---- into a file -------------------------------- */

/* Two runs, and parts of runs. Boxes (the suite array_boxes) would have rows that are too short. */
enum { SAVED_ROWS = 1280, SAVED_LINE = 8192 };

typedef struct saved {
    scenario t;
    brc_array *a;
    brc_buf want;
    char file[200];
} saved;

static int keep_run(void *ctx, const void *data, size_t len)
{
    brc_error err = BRC_ERROR_INIT;
    return brc_buf_append(ctx, data, len, &err) < 0;
}

static void saved_start(saved *s, uint32_t flags)
{
    const uint64_t shape[2] = { SAVED_ROWS, SAVED_LINE }, chunk[2] = { SAVED_ROWS / 2, 16 };
    const size_t n = SAVED_ROWS * (size_t)SAVED_LINE;
    brc_open_opts opts = BRC_OPEN_OPTS_INIT;
    int32_t *data = malloc(n * sizeof(*data));
    ck_assert_ptr_nonnull(data);
    memset(s, 0, sizeof(*s));
    scenario_folder(&s->t);
    opts.memory = 8 * MIB;
    scenario_open(&s->t, &opts, BRC_OPEN_CREATE);
    s->a = scenario_array(&s->t, "/a", "int32", 2, shape, chunk, NULL, NULL);
    for (size_t i = 0; i < n; i++)
        data[i] = (int32_t)(i * 7919);
    OK(&s->t, brc_array_write(s->a, NULL, data, n * sizeof(*data), &s->t.err));
    OK(&s->t, brc_array_stream(s->a, NULL, flags, keep_run, &s->want, &s->t.err));
    snprintf(s->file, sizeof(s->file), "%s.saved", s->t.file);
    free(data);
}

static void saved_stop(saved *s)
{
    unlink(s->file);
    brc_buf_dispose(&s->want);
    brc_array_free(s->a);
    scenario_stop(&s->t);
}

static void has_saved(const saved *s, size_t at)
{
    uint8_t *got = malloc(s->want.len + 1);
    ck_assert_ptr_nonnull(got);
    int fd = open(s->file, O_RDONLY);
    ck_assert_int_eq(pread(fd, got, s->want.len + 1, (off_t)at), (ssize_t)s->want.len);
    ck_assert_int_eq(memcmp(got, s->want.data, s->want.len), 0);
    close(fd);
    free(got);
}

/* The offset ends behind the elements. A file that was opened to append gets them at its end. */
LOOP(a_file_gets_what_is_streamed, 0, 4)
{
    const uint32_t flags = _i % 2 ? BRC_STREAM_NPY : 0;
    saved s;
    saved_start(&s, flags);
    int fd = open(s.file, O_RDWR | O_CREAT, 0600);
    ck_assert_int_eq(write(fd, "before", 6), 6);
    if (_i / 2) { /* at its beginning */
        close(fd);
        fd = open(s.file, O_RDWR | O_APPEND);
    }
    OK(&s.t, brc_array_save(s.a, NULL, flags, fd, s.file, &s.t.err));
    ck_assert_int_eq(lseek(fd, 0, SEEK_CUR), (off_t)(6 + s.want.len));
    close(fd);
    has_saved(&s, 6);
    saved_stop(&s);
}

TEST(a_pipe_gets_what_is_streamed)
{
    scenario t;
    int32_t data[3] = { 1, -2, 3 }, got[4];
    int ends[2];
    const uint64_t n = 3;
    scenario_start(&t);
    brc_array *a = scenario_array(&t, "/a", "int32", 1, &n, &n, NULL, NULL);
    OK(&t, brc_array_write(a, NULL, data, sizeof(data), &t.err));
    ck_assert_int_eq(pipe(ends), 0);
    OK(&t, brc_array_save(a, NULL, 0, ends[1], "the pipe", &t.err));
    ck_assert_int_eq(read(ends[0], got, sizeof(got)), sizeof(data));
    ck_assert_int_eq(memcmp(got, data, sizeof(data)), 0);
    close(ends[0]);
    close(ends[1]);
    FAILS(&t, BRC_EINVAL, brc_array_save(a, NULL, 0, 1, NULL, &t.err));
    brc_array_free(a);
    scenario_stop(&t);
}

/* Parts that are under way when another fails are waited for. */
LOOP(a_file_that_may_not_grow_is_an_error, 0, 3)
{
    static const rlim_t most[] = { 1000, 5 * MIB, 30 * MIB };
    saved s;
    saved_start(&s, 0);
    struct rlimit before, limit;
    int fd = open(s.file, O_RDWR | O_CREAT, 0600);
    signal(SIGXFSZ, SIG_IGN);
    ck_assert_int_eq(getrlimit(RLIMIT_FSIZE, &before), 0);
    limit = before;
    limit.rlim_cur = most[_i];
    ck_assert_int_eq(setrlimit(RLIMIT_FSIZE, &limit), 0);
    FAILS(&s.t, BRC_EIO, brc_array_save(s.a, NULL, 0, fd, s.file, &s.t.err));
    ck_assert_int_eq(setrlimit(RLIMIT_FSIZE, &before), 0);
    ck_assert_ptr_nonnull(strstr(s.t.err.message, s.file));
    close(fd);
    saved_stop(&s);
}

/* ---- writing -------------------------------- */

/* Bytes that follow from their number, or elements of `each` bytes with their counts in front. */
typedef struct giver {
    uint64_t at, end, stop; /* stop: where it does; 0: nowhere     */
    uint64_t each;
    uint64_t asked;
} giver;

static uint8_t byte_at(const giver *g, uint64_t i)
{
    const uint64_t in_element = g->each > 0 ? i % (g->each + 4) : 4;
    if (in_element < 4)
        return (uint8_t)(g->each >> (8 * in_element));
    return (uint8_t)('a' + (i >> 7) % 23);
}

static int give(void *ctx, void *dst, size_t len, size_t *got)
{
    giver *g = ctx;
    if (g->stop > 0 && g->at + len > g->stop)
        return 1;
    *got = g->end - g->at < len ? (size_t)(g->end - g->at) : len;
    for (size_t i = 0; i < *got; i++)
        ((uint8_t *)dst)[i] = byte_at(g, g->at + i);
    g->at += *got;
    g->asked += len;
    return 0;
}

typedef struct checker {
    giver of;
    uint64_t at;
} checker;

static int check_run(void *ctx, const void *data, size_t len)
{
    checker *c = ctx;
    for (size_t i = 0; i < len; i++)
        if (((const uint8_t *)data)[i] != byte_at(&c->of, c->at++))
            return 1;
    return 0;
}

/* Loads of elements of a fixed size and of variable length; some are read whole before the file is
 * locked. */
static const struct {
    const char *dtype;
    uint64_t shape[2], chunk[2], each;
} loads[] = {
    { "uint8", { 30, 21 }, { 7, 4 }, 0 },
    { "uint8", { 70, MIB }, { 16, MIB / 2 + 5 }, 0 },
    { "string", { 11, 5 }, { 3, 2 }, 9 },
    { "string", { 40, 50 }, { 16, 3 }, 37000 },
};

static uint64_t bytes_of_load(int i)
{
    const uint64_t n = loads[i].shape[0] * loads[i].shape[1];
    return loads[i].each > 0 ? n * (loads[i].each + 4) : n;
}

CASE("load", .timeout = 120);

EACH(what_is_loaded_is_what_was_given, loads)
{
    scenario t;
    const uint64_t bytes = bytes_of_load(_i);
    scenario_start(&t);
    brc_array *a = scenario_array(&t, "/a", loads[_i].dtype, 2, loads[_i].shape, loads[_i].chunk,
                                  NULL, NULL);
    giver g = { .end = bytes, .each = loads[_i].each };
    OK(&t, brc_array_load_stream(a, NULL, give, &g, &t.err));
    ck_assert_uint_eq(g.at, bytes);
    ck_assert_uint_eq(g.asked, bytes + 1); /* that it ends is seen */
    checker c = { .of = { .each = loads[_i].each } };
    OK(&t, brc_array_stream(a, NULL, 0, check_run, &c, &t.err));
    ck_assert_uint_eq(c.at, bytes);
    brc_array_free(a);
    scenario_whole(&t);
    scenario_stop(&t);
}

EACH(what_ends_early_goes_on_or_stops_changes_nothing, loads)
{
    scenario t;
    const uint64_t bytes = bytes_of_load(_i);
    const giver wrong[] = {
        { .end = bytes - 1, .each = loads[_i].each },
        { .end = bytes + 1, .each = loads[_i].each },
        { .end = 0, .each = loads[_i].each },
        { .end = bytes, .stop = bytes - 1, .each = loads[_i].each },
    };
    uint64_t chunks, stored;
    scenario_start(&t);
    brc_array *a = scenario_array(&t, "/a", loads[_i].dtype, 2, loads[_i].shape, loads[_i].chunk,
                                  NULL, NULL);
    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
        giver g = wrong[i];
        FAILS(&t, g.stop ? BRC_EINTERRUPT : BRC_EINVAL,
              brc_array_load_stream(a, NULL, give, &g, &t.err));
        OK(&t, brc_array_stat(&chunks, &stored, a, &t.err));
        ck_assert_uint_eq(chunks, 0);
    }
    brc_array_free(a);
    scenario_stop(&t);
}

/* An element that claims 4 GiB is believed as far as it comes. */
TEST(a_length_that_lies_takes_no_memory)
{
    scenario t;
    const uint64_t shape[1] = { 3 };
    scenario_start(&t);
    brc_array *a = scenario_array(&t, "/a", "string", 1, shape, shape, NULL, NULL);
    giver g = { .end = 100, .each = UINT32_MAX };
    FAILS(&t, BRC_EINVAL, brc_array_load_stream(a, NULL, give, &g, &t.err));
    ck_assert_uint_le(g.asked, 4 * MIB);
    brc_array_free(a);
    scenario_stop(&t);
}

TEST(a_selection_is_loaded_and_the_rest_stays)
{
    scenario t;
    const uint64_t shape[1] = { 10 }, chunk[1] = { 4 };
    uint8_t got[10];
    brc_sel sel = BRC_SEL_INIT;
    scenario_start(&t);
    brc_array *a = scenario_array(&t, "/a", "uint8", 1, shape, chunk, "9", NULL);
    OK(&t, brc_sel_parse(&sel, a, "[1:8:3]", &t.err));
    giver g = { .end = 3 };
    OK(&t, brc_array_load_stream(a, &sel, give, &g, &t.err));
    OK(&t, brc_array_read(a, NULL, got, sizeof(got), &t.err));
    ck_assert_mem_eq(got, "\x09" "a" "\x09\x09" "a" "\x09\x09" "a" "\x09\x09", 10);
    sel.count[0] = 0;
    giver none = { .end = 0 };
    OK(&t, brc_array_load_stream(a, &sel, give, &none, &t.err));
    FAILS(&t, BRC_EINVAL, brc_array_load_stream(a, &sel, NULL, NULL, &t.err));
    brc_array_free(a);
    scenario_stop(&t);
}
