/* Elements that workers write into a file box by box: it has what a stream gives run by run. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../../src/base/buf.h"
#include "../../src/xfer/npy/npy.h"
#include "../../src/zarr/transfer.h"
#include "../kit/ios.h"
#include "../kit/process_kit.h"
#include "../kit/scenario.h"
#include "../kit/suite.h"

TEST_SUITE(array_boxes);

#define LITTLE "{\"name\":\"bytes\",\"configuration\":{\"endian\":\"little\"}}"
#define ZSTD "{\"name\":\"zstd\",\"configuration\":{\"level\":1,\"checksum\":false}}"

static const struct {
    const char *codecs;
    int ndim;
    uint64_t shape[3], chunk[3];
    int boxes; /* at least so many, of all elements with 4 MiB of memory; 0: none, runs are read */
} layouts[] = {
    { "[" LITTLE "," ZSTD "]", 3, { 16, 256, 128 }, { 8, 64, 64 }, 4 },
    { "[" LITTLE "]", 3, { 21, 300, 130 }, { 8, 64, 64 }, 4 },       /* cut off at each edge */
    { "[" LITTLE "]", 3, { 9, 256, 300 }, { 1, 256, 300 }, 9 },      /* chunks as they are */
    { "[" LITTLE "," ZSTD "]", 3, { 9, 250, 300 }, { 1, 256, 300 }, 9 }, /* which are not full */
    { "[" LITTLE "," ZSTD "]", 1, { 1000001 }, { 100000 }, 11 },
    { "[" LITTLE "]", 1, { 1000000 }, { 1000 }, 8 },
    { "[{\"name\":\"transpose\",\"configuration\":{\"order\":[2,0,1]}}," LITTLE "]", 3,
      { 16, 256, 128 }, { 8, 64, 64 }, 4 },
    { "[{\"name\":\"bytes\",\"configuration\":{\"endian\":\"big\"}}]", 3, { 9, 256, 300 },
      { 1, 256, 300 }, 9 },
    { "[{\"name\":\"sharding_indexed\",\"configuration\":{\"chunk_shape\":[4,64,64],"
      "\"codecs\":[" LITTLE "],\"index_codecs\":[" LITTLE "],\"index_location\":\"end\"}}]",
      3, { 16, 256, 128 },
      { 16, 128, 128 }, 4 },
    { "[" LITTLE "]", 3, { 64, 64, 4096 }, { 64, 64, 16 }, 0 },      /* rows would be short */
    { "[" LITTLE "]", 0, { 0 }, { 0 }, 1 },
};
enum { LAYOUTS = sizeof(layouts) / sizeof(layouts[0]) };

static scenario t;
static brc_pool *pool;
static brc_array *a;
static char file[200];

static void open_with(unsigned threads, size_t memory, brc_progress_fn progress)
{
    brc_open_opts opts = BRC_OPEN_OPTS_INIT;
    brc_array_free(a);
    scenario_close(&t);
    brc_pool_free(pool);
    pool = NULL;
    if (threads > 0)
        OK(&t, brc_pool_new(&pool, threads, &t.err));
    opts.pool = pool;
    opts.memory = memory;
    opts.progress = progress;
    scenario_open(&t, &opts, 0);
    a = scenario_array_at(&t, t.session, "/a");
}

/* Numbers but for a part, whose chunks are absent. */
static void make_layout(int i)
{
    const size_t n = (size_t)brc_shape_count(layouts[i].ndim, layouts[i].shape);
    int32_t *data = malloc(n * sizeof(*data));
    uint64_t state = 3;
    ck_assert_ptr_nonnull(data);
    for (size_t k = 0; k < n; k++)
        data[k] = n > 1 && k >= n / 3 && k < 2 * n / 3 ? 7 : (int32_t)scenario_below(&state, 5000);
    scenario_start(&t);
    a = scenario_array(&t, "/a", "int32", layouts[i].ndim, layouts[i].shape, layouts[i].chunk, "7",
                       layouts[i].codecs);
    OK(&t, brc_array_write(a, NULL, data, n * sizeof(*data), &t.err));
    scenario_commit(&t, "made");
    free(data);
    snprintf(file, sizeof(file), "%s.saved", t.file);
}

static void stop(void)
{
    unlink(file);
    brc_array_free(a);
    a = NULL;
    scenario_stop(&t);
    brc_pool_free(pool);
    pool = NULL;
}

static int keep_run(void *ctx, const void *data, size_t len)
{
    return brc_buf_append(ctx, data, len, NULL) < 0;
}

static void has_file(const brc_buf *want)
{
    struct stat st;
    uint8_t *got = malloc(want->len + 1);
    const int fd = open(file, O_RDONLY);
    ck_assert_ptr_nonnull(got);
    ck_assert_int_eq(fstat(fd, &st), 0);
    ck_assert_uint_eq((size_t)st.st_size, want->len);
    ck_assert_int_eq(read(fd, got, want->len + 1), (ssize_t)want->len);
    ck_assert_int_eq(memcmp(got, want->data, want->len), 0);
    close(fd);
    free(got);
}

static int save(const brc_sel *sel, uint32_t flags)
{
    const int fd = open(file, O_RDWR | O_CREAT | O_TRUNC, 0600);
    ck_assert_int_ge(fd, 0);
    const int rc = brc_array_save(a, sel, flags, fd, file, &t.err);
    close(fd);
    return rc;
}

/* ---- the elements -------------------------------- */

static const char *const selections[3][4] = {
    { "[:]", "[5:500000]", "[7::3]", "[5:5]" },
    { NULL },
    { "[:, :, :]", "[3:9, 10:200, :]", "[1::2, ::3, 5:]", "[2, :, :]" },
};

CASE("elements", .teardown = stop, .timeout = 60);

/* With one thread or several, with much memory and little; the stream is read run by run. */
LOOP(a_file_has_what_is_streamed, 0, LAYOUTS)
{
    static const size_t memory[] = { 0, 4 << 20, 64 << 10 };
    const int ndim = layouts[_i].ndim;
    make_layout(_i);
    for (int how = 0; how < 6; how++) {
        open_with(how % 2 ? 4 : 0, memory[how / 2], NULL);
        for (int k = 0; k < (ndim > 0 ? 4 : 1); k++) {
            brc_sel sel = BRC_SEL_INIT;
            brc_buf want = BRC_BUF_INIT;
            const uint32_t flags = k % 2 ? BRC_STREAM_NPY : 0;
            if (ndim > 0)
                OK(&t, brc_sel_parse(&sel, a, selections[ndim - 1][k], &t.err));
            const brc_sel *part = ndim > 0 && k > 0 ? &sel : NULL;
            OK(&t, brc_array_stream(a, part, flags, keep_run, &want, &t.err));
            OK(&t, save(part, flags));
            has_file(&want);
            brc_buf_dispose(&want);
        }
    }
}

typedef struct box_count {
    int boxes;
    uint64_t elements;
} box_count;

static int count_box(void *ctx, const uint64_t *at, const uint64_t *count, const uint8_t *data,
                     brc_error *err)
{
    box_count *c = ctx;
    (void)at;
    (void)data;
    (void)err;
    (void)__atomic_fetch_add(&c->boxes, 1, __ATOMIC_RELAXED);
    (void)__atomic_fetch_add(&c->elements, brc_shape_count(layouts[0].ndim, count),
                             __ATOMIC_RELAXED);
    return BRC_OK;
}

/* The way is taken for which the layouts are made. */
LOOP(boxes_are_made_where_rows_are_long, 0, LAYOUTS)
{
    box_count c = { 0, 0 };
    brc_element_runs runs;
    const brc_box_sink sink = { &c, count_box };
    make_layout(_i);
    open_with(3, 4 << 20, NULL);
    OK(&t, brc_element_runs_start(&runs, a, NULL, &t.err));
    ck_assert_int_eq(brc_element_runs_boxes(&runs, &sink, &t.err), layouts[_i].boxes > 0);
    ck_assert_int_ge(c.boxes, layouts[_i].boxes);
    if (layouts[_i].ndim == 3 && layouts[_i].boxes > 0)
        ck_assert_uint_eq(c.elements, brc_shape_count(3, layouts[_i].shape));
    brc_element_runs_end(&runs);
}

/* ---- what happens meanwhile -------------------------------- */

static int writes;

/* Another handle changes the array while it is read. */
static int write_meanwhile(void *ctx, const char *phase, uint64_t done, uint64_t total)
{
    scenario other = t;
    const int32_t nine = 9;
    (void)ctx;
    (void)phase;
    (void)done;
    (void)total;
    if (writes++ > 0)
        return 0;
    other.repo = scenario_handle(&t, 0);
    other.session = scenario_session(&other, other.repo, NULL, BRC_SESSION_WRITE);
    scenario_fill(&other, other.session, "/a", "[:, :, :]", &nine);
    brc_session_free(other.session);
    brc_free(other.repo);
    return 0;
}

CASE("meanwhile", .teardown = stop, .timeout = 60);

TEST(the_elements_are_those_of_the_start)
{
    brc_buf want = BRC_BUF_INIT;
    make_layout(0);
    OK(&t, brc_array_stream(a, NULL, 0, keep_run, &want, &t.err));
    writes = 0;
    open_with(3, 4 << 20, write_meanwhile);
    OK(&t, save(NULL, 0));
    ck_assert_int_gt(writes, 1);
    has_file(&want);
    brc_buf_dispose(&want);
}

static int stop_at_once(void *ctx, const char *phase, uint64_t done, uint64_t total)
{
    (void)ctx;
    (void)phase;
    (void)total;
    return done > 0;
}

LOOP(it_can_be_stopped, 0, 3)
{
    make_layout(_i);
    open_with(3, 4 << 20, stop_at_once);
    FAILS(&t, BRC_EINTERRUPT, save(NULL, 0));
}

/* ---- failures -------------------------------- */

static int save_in_child(void *ctx)
{
    scenario own = t;
    brc_open_opts opts = BRC_OPEN_OPTS_INIT;
    brc_array *mine = NULL;
    (void)ctx;
    if (brc_pool_new(&opts.pool, 3, &own.err) < 0)
        return 1;
    opts.memory = 4 << 20;
    scenario_open(&own, &opts, BRC_OPEN_READONLY);
    int rc = brc_array_open(&mine, own.session, "/a", &own.err);
    const int fd = open(file, O_RDWR | O_TRUNC);
    if (rc == BRC_OK)
        rc = brc_array_save(mine, NULL, BRC_STREAM_NPY, fd, file, &own.err);
    const int is_right = rc == BRC_OK || (strstr(own.err.message, file) != NULL &&
                                          strstr(own.err.message, strerror(ENOSPC)) != NULL);
    if (!is_right)
        fprintf(stderr, "save: %d: %s\n", rc, own.err.message);
    close(fd);
    brc_array_free(mine);
    scenario_close(&own);
    brc_pool_free(opts.pool);
    return !is_right;
}

CASE("failures", .teardown = stop, .timeout = UNTIMED);

/* Success means that nothing is missing. */
LOOP(each_write_that_fails_is_named, 0, 3)
{
    brc_buf want = BRC_BUF_INIT;
    int refused = 0, whole = 0;
    make_layout(_i);
    OK(&t, brc_array_stream(a, NULL, BRC_STREAM_NPY, keep_run, &want, &t.err));
    brc_array_free(a);
    a = NULL;
    scenario_close(&t);
    for (uint64_t n = 1; n < 400; n += n < 6 ? 1 : 17) {
        struct stat st;
        const int fd = open(file, O_RDWR | O_CREAT | O_TRUNC, 0600);
        ck_assert_int_ge(fd, 0);
        const int rc = process_refused_call(save_in_child, NULL, n, ENOSPC);
        ck_assert_int_eq(fstat(fd, &st), 0);
        close(fd);
        if (rc < 0)
            break;
        refused += rc == 0;
        whole += rc > 0;
        if (rc > 0)
            has_file(&want);
    }
    ck_assert(refused >= 3 || whole == 0);
    brc_buf_dispose(&want);
}
