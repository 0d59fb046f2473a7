/* Elements in memory of every kind: lines M1 to M11 and B1 to B7 of the founding documents. */
#include <dlfcn.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../../src/breccia_buffer.h"
#include "../kit/effort.h"
#include "../kit/ios.h"
#include "../kit/memory_kit.h"
#include "../kit/plugin_kit.h"
#include "../kit/suite.h"

TEST_SUITE(buffers);

enum { ROWS = 40, COLUMNS = 24 };
static const uint64_t shape[2] = {ROWS, COLUMNS}, chunk[2] = {8, 24}, small[2] = {8, 10};

#define LITTLE "{\"name\":\"bytes\",\"configuration\":{\"endian\":\"little\"}}"
#define ZSTD LITTLE ",{\"name\":\"zstd\",\"configuration\":{\"level\":1,\"checksum\":false}}"
#define PLAIN "[" LITTLE "]"
#define ZSTDS "[" ZSTD "]"
#define SHARDS                                                                                  \
    "[{\"name\":\"sharding_indexed\",\"configuration\":{\"chunk_shape\":[4,6],\"codecs\":[" ZSTD \
    "],\"index_codecs\":[" LITTLE ",{\"name\":\"crc32c\"}]}}]"

static memory_kit k;
static brc_array *a;

static void start_with(unsigned threads, const uint64_t *chunks, const char *codecs)
{
    int32_t numbers[ROWS * COLUMNS];
    memory_start(&k, threads, NULL);
    a = scenario_array(&k.t, "/a", "int32", 2, shape, chunks, "-7", codecs);
    for (int i = 0; i < ROWS * COLUMNS; i++)
        numbers[i] = i / 3;
    OK(&k.t, brc_array_write(a, NULL, numbers, sizeof(numbers), &k.t.err));
}

static void start(void)
{
    start_with(0, chunk, ZSTDS);
}

static void start_threads(void)
{
    start_with(3, small, ZSTDS);
}

static void stop(void)
{
    brc_array_free(a);
    a = NULL;
    memory_stop(&k);
}

/* ---- which memory -------------------------------- */

CASE("choice", .setup = start, .teardown = stop);

static void is_read_into(const char *call, const char *kind)
{
    brc_tensor *t = memory_read(&k, a, NULL, call, NULL);
    const brc_tensor_info *info = brc_tensor_describe(t);
    ck_assert_str_eq(info->prototype, kind);
    for (int i = 0; i < MEMORY_KINDS; i++)
        if (strcmp(kind, memory_kinds[i].name) == 0)
            ck_assert(info->device == memory_kinds[i].device &&
                      (info->flags & BRC_TENSOR_HOST) == (uint32_t)memory_kinds[i].is_host);
    memory_same(&k, a, NULL, t);
    brc_tensor_free(t);
}

TEST(M1_a_call_goes_before_the_array_and_the_array_before_the_repository)
{
    is_read_into(NULL, "host");
    for (int i = 0; i < MEMORY_KINDS; i++) {
        OK(&k.t, brc_array_set_prototype(a, memory_kinds[i].name, &k.t.err));
        is_read_into(NULL, memory_kinds[i].name);
        is_read_into("pool", "pool");
        is_read_into(DEVICE, DEVICE);
    }
    OK(&k.t, brc_array_set_prototype(a, NULL, &k.t.err));
    is_read_into(NULL, "host");
}

TEST(M1_a_repository_has_a_default_which_other_handles_share)
{
    breccia *repo, *other;
    brc_session *s;
    brc_open_opts opts = BRC_OPEN_OPTS_INIT;
    opts.registry = k.reg;
    opts.prototype = "nonsense";
    FAILS(&k.t, BRC_EUNSUPPORTED, brc_open(&repo, k.t.file, &opts, &k.t.err));
    char name[] = "org.example.device";
    opts.prototype = name;
    OK(&k.t, brc_open(&repo, k.t.file, &opts, &k.t.err));
    memset(name, 'x', sizeof(name) - 1); /* it was copied */
    OK(&k.t, brc_reopen(&other, repo, &k.t.err));
    brc_array *mine = a;
    for (int i = 0; i < 2; i++) {
        OK(&k.t, brc_session_open(&s, i == 0 ? repo : other, NULL, BRC_SESSION_WRITE, &k.t.err));
        OK(&k.t, brc_array_open(&a, s, "/a", &k.t.err));
        is_read_into(NULL, DEVICE);
        is_read_into("pool", "pool");
        OK(&k.t, brc_array_set_prototype(a, "cuda", &k.t.err));
        is_read_into(NULL, "cuda");
        brc_array_free(a);
        brc_session_free(s);
    }
    a = mine;
    brc_free(repo);
    brc_free(other);
}

TEST(M1_a_name_that_is_not_known_lists_those_that_are)
{
    brc_tensor *t;
    brc_tensor_opts opts = BRC_TENSOR_OPTS_INIT;
    opts.prototype = "nonsense";
    FAILS(&k.t, BRC_EUNSUPPORTED, brc_tensor_read(&t, a, &opts, &k.t.err));
    ck_assert_ptr_null(t);
    ck_assert_str_eq(k.t.err.message,
                     "the buffer prototype \"nonsense\" is not known (known: host, pool, cuda, "
                     "locked, managed, org.example.device); a plug-in may add it");
    FAILS(&k.t, BRC_EUNSUPPORTED, brc_array_set_prototype(a, "nonsense", &k.t.err));
    FAILS(&k.t, BRC_EINVAL, brc_array_set_prototype(a, "cuda:x", &k.t.err));
    FAILS(&k.t, BRC_EINVAL, brc_array_set_prototype(a, "cuda:", &k.t.err));
    FAILS(&k.t, BRC_EINVAL, brc_array_set_prototype(a, "cuda:99999999", &k.t.err));
    opts.prototype = "cuda:7";
    FAILS(&k.t, BRC_EUNSUPPORTED, brc_tensor_read(&t, a, &opts, &k.t.err));
    opts.prototype = "cuda:1";
    OK(&k.t, brc_tensor_read(&t, a, &opts, &k.t.err));
    ck_assert_uint_eq(brc_tensor_describe(t)->device_id, 1);
    memory_same(&k, a, NULL, t);
    brc_tensor_free(t);
}

TEST(M1_the_list_of_a_registry_has_them)
{
    brc_iter *it;
    const brc_prototype_info *info;
    char text[400] = "";
    OK(&k.t, brc_registry_list(&it, k.reg, BRC_LIST_PROTOTYPES, &k.t.err));
    while (brc_next(it, &info, &k.t.err) == 1)
        snprintf(text + strlen(text), sizeof(text) - strlen(text), "%s %u; ", info->name,
                 (unsigned)info->device);
    brc_iter_free(it);
    ck_assert_str_eq(text, "host 0; pool 0; cuda 2; locked 3; managed 13; org.example.device 12; ");
}

/* ---- what is stored -------------------------------- */

/* Appends all keys with their values, in the order of the names. */
static void keys_of(brc_session *s, brc_buf *out)
{
    static const char *const names[] = {"b/zarr.json", "b/c/0/0", "b/c/1/0", "b/c/2/0",
                                        "b/c/3/0", "b/c/4/0"};
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
        OK(&k.t, brc_key_get(out, s, names[i], NULL, NULL, &k.t.err));
}

TEST(M2_what_is_stored_does_not_depend_on_the_memory)
{
    brc_buf first = BRC_BUF_INIT;
    brc_stats stats = BRC_STATS_INIT;
    uint64_t objects = 0;
    for (int i = 0; i < MEMORY_KINDS; i++) {
        brc_buf keys = BRC_BUF_INIT;
        brc_tensor *t = memory_read(&k, a, NULL, memory_kinds[i].name, NULL);
        brc_array *b = scenario_array(&k.t, "/b", "int32", 2, shape, chunk, "-7", ZSTDS);
        OK(&k.t, brc_tensor_write(b, t, NULL, &k.t.err));
        memory_same(&k, b, NULL, t);
        keys_of(k.t.session, &keys);
        ck_assert_ptr_null(memmem(keys.data, keys.len, memory_kinds[i].name,
                                  strlen(memory_kinds[i].name)));
        if (i == 0)
            OK(&k.t, brc_buf_append(&first, keys.data, keys.len, &k.t.err));
        ck_assert(keys.len == first.len && memcmp(keys.data, first.data, first.len) == 0);
        OK(&k.t, brc_stat(k.t.repo, &stats, &k.t.err));
        ck_assert(i == 0 || stats.objects == objects); /* equal chunks are one object */
        objects = stats.objects;
        brc_buf_dispose(&keys);
        brc_tensor_free(t);
        brc_array_free(b);
        OK(&k.t, brc_node_remove(k.t.session, "/b", &k.t.err));
    }
    brc_buf_dispose(&first);
}

LOOP(M3_written_from_one_memory_and_read_into_another, 0, MEMORY_KINDS)
{
    for (int j = 0; j < MEMORY_KINDS; j++) {
        brc_sel sel = BRC_SEL_INIT;
        brc_tensor_opts opts = BRC_TENSOR_OPTS_INIT;
        brc_array *b = scenario_array(&k.t, "/b", "int32", 2, shape, small, "-7", ZSTDS);
        brc_tensor *t = memory_read(&k, a, "[5:33, ::2]", memory_kinds[_i].name, NULL);
        brc_tensor *rest = memory_read(&k, a, "[5:33, 1::2]", memory_kinds[j].name, NULL);
        opts.sel = &sel;
        OK(&k.t, brc_sel_parse(&sel, b, "[5:33, ::2]", &k.t.err));
        OK(&k.t, brc_tensor_write(b, t, &opts, &k.t.err));
        OK(&k.t, brc_sel_parse(&sel, b, "[5:33, 1::2]", &k.t.err));
        OK(&k.t, brc_tensor_write(b, rest, &opts, &k.t.err));
        brc_tensor *got = memory_read(&k, b, "[5:33]", memory_kinds[j].name, NULL);
        memory_same(&k, a, "[5:33]", got);
        brc_tensor_free(got);
        brc_tensor_free(rest);
        brc_tensor_free(t);
        brc_array_free(b);
        OK(&k.t, brc_node_remove(k.t.session, "/b", &k.t.err));
    }
}

TEST(a_tensor_of_another_shape_or_type_is_not_written)
{
    brc_tensor *t = memory_read(&k, a, "[3, 2:9]", DEVICE, NULL);
    const brc_tensor_info *info = brc_tensor_describe(t);
    ck_assert(info->ndim == 1 && info->shape[0] == 7 && info->strides[0] == 4);
    ck_assert_str_eq(info->dtype, "int32");
    FAILS(&k.t, BRC_EINVAL, brc_tensor_write(a, t, NULL, &k.t.err));
    brc_array *b = scenario_array(&k.t, "/b", "uint32", 1, (uint64_t[]){7}, NULL, NULL, NULL);
    FAILS(&k.t, BRC_EINVAL, brc_tensor_write(b, t, NULL, &k.t.err));
    brc_array_free(b);
    b = scenario_array(&k.t, "/c", "int32", 1, (uint64_t[]){7}, NULL, NULL, NULL);
    OK(&k.t, brc_tensor_write(b, t, NULL, &k.t.err));
    memory_same(&k, b, NULL, t);
    brc_array_free(b);
    b = scenario_array(&k.t, "/s", "string", 1, (uint64_t[]){7}, NULL, NULL, NULL);
    FAILS(&k.t, BRC_EINVAL, brc_tensor_write(b, t, NULL, &k.t.err));
    brc_tensor *none;
    FAILS(&k.t, BRC_EINVAL, brc_tensor_read(&none, b, NULL, &k.t.err));
    brc_array_free(b);
    brc_tensor_free(t);
}

TEST(nothing_and_a_single_element_are_tensors_too)
{
    for (int i = 0; i < MEMORY_KINDS; i++) {
        static const char *const slices[] = {"[3:3]", "[5, 7]", "[:, 4:4]", "[0:0, 0:0]"};
        for (size_t j = 0; j < sizeof(slices) / sizeof(slices[0]); j++) {
            brc_tensor *t = memory_read(&k, a, slices[j], memory_kinds[i].name, NULL);
            brc_tensor_opts opts = BRC_TENSOR_OPTS_INIT;
            brc_sel sel = BRC_SEL_INIT;
            memory_same(&k, a, slices[j], t);
            OK(&k.t, brc_sel_parse(&sel, a, slices[j], &k.t.err));
            opts.sel = &sel;
            OK(&k.t, brc_tensor_write(a, t, &opts, &k.t.err));
            brc_tensor_free(t);
        }
    }
}

/* ---- codecs, fills, copies -------------------------------- */

CASE("codecs");

LOOP(M5_codecs_of_the_host_work_for_devices_and_metadata_do_not_say_so, 0, 3)
{
    static const char *const lists[] = {PLAIN, ZSTDS, SHARDS};
    brc_buf doc = BRC_BUF_INIT;
    start_with(_i == 2 ? 2 : 0, chunk, lists[_i]);
    for (int i = 0; i < MEMORY_KINDS; i++) {
        brc_tensor *t = memory_read(&k, a, NULL, memory_kinds[i].name, NULL);
        OK(&k.t, brc_tensor_write(a, t, NULL, &k.t.err));
        memory_same(&k, a, NULL, t);
        brc_tensor_free(t);
    }
    OK(&k.t, brc_key_get(&doc, k.t.session, "a/zarr.json", NULL, NULL, &k.t.err));
    ck_assert_ptr_null(memmem(doc.data, doc.len, "device", 6));
    ck_assert_ptr_null(memmem(doc.data, doc.len, "cuda", 4));
    brc_buf_dispose(&doc);
    stop();
}

/* Elements of every size: some the device fills itself, others it cannot. */
static const struct fill_type {
    const char *dtype, *fill;
} fill_types[] = {
    {"uint8", "9"},     {"int16", "-3"},   {"float32", "2.5"},
    {"float64", "0.1"}, {"int64", "0"},    {"complex128", "[1.0,2.0]"},
    {"bool", "true"},   {"r24", "[1,2,3]"},
};

EACH(M6_absent_chunks_are_filled_in_the_memory_itself, fill_types)
{
    memory_start(&k, 0, NULL);
    a = scenario_array(&k.t, "/a", fill_types[_i].dtype, 2, shape, small, fill_types[_i].fill,
                       NULL);
    const brc_array_info *info = brc_array_describe(a);
    uint8_t *ones = calloc(8 * 10, info->item_size);
    brc_sel sel = BRC_SEL_INIT;
    ck_assert_ptr_nonnull(ones);
    OK(&k.t, brc_sel_parse(&sel, a, "[8:16, 10:20]", &k.t.err));
    OK(&k.t, brc_array_write(a, &sel, ones, 80 * info->item_size, &k.t.err));
    free(ones);
    for (int i = 0; i < MEMORY_KINDS; i++) {
        brc_buffer_stats stats = BRC_BUFFER_STATS_INIT;
        brc_tensor *t = memory_read(&k, a, NULL, memory_kinds[i].name, &stats);
        memory_same(&k, a, NULL, t);
        brc_tensor_free(t);
        const uint64_t stored = strcmp(fill_types[_i].dtype, "int64") == 0 ? 0 : 1;
        ck_assert_uint_eq(stats.filled, 15 - stored);
        if (memory_kinds[i].is_host)
            ck_assert_uint_eq(stats.copies, 0);
        else /* nothing is filled here and then copied */
            ck_assert_uint_eq(stats.copied, stored * 80 * info->item_size);
        t = memory_read(&k, a, "[3:30:2, 1:24:5]", memory_kinds[i].name, NULL);
        memory_same(&k, a, "[3:30:2, 1:24:5]", t);
        brc_tensor_free(t);
    }
    ck_assert_uint_gt(*memory_count(k.device, "device_fills") +
                          *memory_count(k.device, "device_from_host"), 0);
    stop();
}

CASE("copies", .setup = start, .teardown = stop);

TEST(M7_no_copy_is_hidden)
{
    for (int i = 0; i < MEMORY_KINDS; i++) {
        brc_buffer_stats read = BRC_BUFFER_STATS_INIT, write = BRC_BUFFER_STATS_INIT;
        brc_tensor_opts opts = BRC_TENSOR_OPTS_INIT;
        brc_tensor *t = memory_read(&k, a, NULL, memory_kinds[i].name, &read);
        opts.stats = &write;
        OK(&k.t, brc_tensor_write(a, t, &opts, &k.t.err));
        if (memory_kinds[i].is_host) {
            ck_assert(read.copies == 0 && read.copied == 0 && read.moved == 0 && read.direct == 5);
            ck_assert(write.copies == 0 && write.copied == 0 && write.moved == 0 &&
                      write.direct == 5);
        } else { /* one for each chunk */
            ck_assert(read.copies == 5 && read.copied == ROWS * COLUMNS * 4 && read.moved == 0);
            ck_assert(write.copies == 5 && write.copied == ROWS * COLUMNS * 4 && write.moved == 0);
        }
        brc_tensor_free(t);
    }
}

/* The costs of each way to read, as docs/BUFFERS.md has them; a chunk is 8 rows and all columns. */
static const struct cost {
    const char *slice;
    uint64_t direct, moved; /* in the host's memory   */
    uint64_t copies;        /* to and from a device   */
    uint64_t copied;
} costs[] = {
    {"[:]", 5, 0, 5, 40 * 24},
    {"[8:24]", 2, 0, 2, 16 * 24},
    {"[9:23]", 0, 2, 2, 14 * 24},      /* parts of chunks that lie in one piece */
    {"[8:24, 3:9]", 0, 2, 2, 16 * 6},  /* rows of chunks                        */
    {"[::2]", 0, 5, 5, 20 * 24},       /* every other row                       */
    {"[:, ::3]", 0, 5, 5, 40 * 8},     /* elements at one distance              */
    {"[:, ::5]", 0, 5, 5 * 8, 40 * 5}, /* elements, row by row                  */
};

EACH(B7_each_call_copies_what_is_documented, costs)
{
    const struct cost *c = &costs[_i];
    for (int i = 0; i < MEMORY_KINDS; i++) {
        brc_buffer_stats s = BRC_BUFFER_STATS_INIT;
        brc_tensor *t = memory_read(&k, a, c->slice, memory_kinds[i].name, &s);
        memory_same(&k, a, c->slice, t);
        brc_tensor_free(t);
        if (memory_kinds[i].is_host)
            ck_assert_msg(s.direct == c->direct && s.moved == c->moved && s.copies == 0,
                          "%s: %d %d %d", c->slice, (int)s.direct, (int)s.moved, (int)s.copies);
        else
            ck_assert_msg(s.copies == c->copies && s.copied == 4 * c->copied && s.moved == 0,
                          "%s: %d %d %d", c->slice, (int)s.copies, (int)s.copied, (int)s.moved);
    }
}

TEST(B7_positions_go_to_a_device_in_one_copy)
{
    const int64_t rows[4] = {33, 2, 2, 17};
    brc_at at = BRC_AT_INIT;
    brc_tensor_opts opts = BRC_TENSOR_OPTS_INIT;
    int32_t want[4 * COLUMNS], *got;
    at.ndim = 2;
    at.index[0] = rows;
    at.count[0] = 4;
    at.count[1] = COLUMNS;
    at.step[1] = 1;
    const brc_buffer buffer = {.size = sizeof(buffer), .data = want, .len = sizeof(want)};
    OK(&k.t, io_take(a, &at, &buffer, &k.t.err));
    for (int i = 0; i < MEMORY_KINDS; i++) {
        brc_buffer_stats read = BRC_BUFFER_STATS_INIT, write = BRC_BUFFER_STATS_INIT;
        brc_tensor *t;
        opts.at = &at;
        opts.prototype = memory_kinds[i].name;
        opts.stats = &read;
        OK(&k.t, brc_tensor_read(&t, a, &opts, &k.t.err));
        got = memory_bytes(&k, t);
        ck_assert(memcmp(got, want, sizeof(want)) == 0);
        free(got);
        opts.stats = &write;
        OK(&k.t, brc_tensor_write(a, t, &opts, &k.t.err));
        ck_assert_uint_eq(read.copies, memory_kinds[i].is_host ? 0 : 1);
        ck_assert_uint_eq(write.copies, memory_kinds[i].is_host ? 0 : 1);
        brc_tensor_free(t);
    }
}

/* ---- memory of others -------------------------------- */

TEST(B3_chunks_are_decoded_straight_into_page_locked_and_managed_memory)
{
    for (int i = 2; i <= 3; i++) {
        brc_tensor *t = memory_read(&k, a, NULL, memory_kinds[i].name, NULL);
        const brc_tensor_info *info = brc_tensor_describe(t);
        brc_buffer_stats stats = BRC_BUFFER_STATS_INIT;
        memset(info->data, 0xee, (size_t)info->bytes);
        const brc_buffer memory = {.size = sizeof(memory), .data = info->data,
                                   .len = (size_t)info->bytes, .device = memory_kinds[i].device};
        const brc_io io = {.size = sizeof(io), .array = a, .buffer = &memory, .stats = &stats};
        OK(&k.t, brc_read(&io, 1, &k.t.err));
        ck_assert(stats.copies == 0 && stats.moved == 0 && stats.direct == 5 && stats.blocks == 0);
        memory_same(&k, a, NULL, t);
        stats = (brc_buffer_stats)BRC_BUFFER_STATS_INIT;
        OK(&k.t, brc_write(&io, 1, &k.t.err));
        ck_assert(stats.copies == 0 && stats.moved == 0 && stats.direct == 5);
        brc_tensor_free(t);
    }
}

TEST(memory_of_a_device_that_nobody_copies_is_refused)
{
    int32_t there[ROWS * COLUMNS];
    brc_buffer memory = {.size = sizeof(memory), .data = there, .len = sizeof(there), .device = 10};
    const brc_io io = {.size = sizeof(io), .array = a, .buffer = &memory};
    FAILS(&k.t, BRC_EUNSUPPORTED, brc_read(&io, 1, &k.t.err));
    FAILS(&k.t, BRC_EUNSUPPORTED, brc_write(&io, 1, &k.t.err));
    memory.prototype = "cuda"; /* of another device */
    FAILS(&k.t, BRC_EINVAL, brc_read(&io, 1, &k.t.err));
    memory.device = 1; /* DLPack's number of the host */
    OK(&k.t, brc_read(&io, 1, &k.t.err));
    brc_array *s = scenario_array(&k.t, "/s", "string", 1, (uint64_t[]){2}, NULL, NULL, NULL);
    const brc_io strings = {.size = sizeof(io), .array = s, .buffer = &memory};
    memory.device = 12;
    memory.prototype = NULL;
    FAILS(&k.t, BRC_EUNSUPPORTED, brc_write(&strings, 1, &k.t.err));
    brc_array_free(s);
}

/* ---- strides -------------------------------- */

CASE("strides", .setup = start_threads, .teardown = stop, .timeout = 120);

static uint64_t random_state;

static uint64_t below(uint64_t n)
{
    random_state = random_state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (random_state >> 33) % n;
}

/* A selection of a random box with steps. */
static void random_sel(brc_sel *sel)
{
    *sel = (brc_sel)BRC_SEL_INIT;
    sel->ndim = 2;
    for (int i = 0; i < 2; i++) {
        sel->step[i] = 1 + below(4) / 2 * below(6);
        if (sel->step[i] == 0)
            sel->step[i] = 1;
        sel->start[i] = below(shape[i]);
        sel->count[i] = below((shape[i] - sel->start[i] - 1) / sel->step[i] + 2);
    }
}

/* Lays the selection into `len` bytes in any order and direction. */
static void random_strides(const brc_sel *sel, int64_t strides[2], size_t *offset, size_t len)
{
    const int first = (int)below(2);
    int64_t step = 4 * (int64_t)(1 + below(3));
    *offset = 0;
    for (int i = 0; i < 2; i++) {
        const int axis = i == 0 ? first : 1 - first;
        strides[axis] = step;
        if (below(3) == 0 && sel->count[axis] > 0) {
            strides[axis] = -step;
            *offset += (size_t)step * (sel->count[axis] - 1);
        }
        step *= (int64_t)sel->count[axis] + (int64_t)below(2);
        if (step == 0)
            step = 4;
    }
    ck_assert_uint_lt((size_t)step, len / 2);
    *offset += 4 * below(5);
}

LOOP(destinations_and_sources_may_have_strides, 0, 2)
{
    enum { LEN = 1 << 16 };
    const memory_kind *kind = &memory_kinds[4 + _i];
    const uint64_t len = LEN;
    brc_array *bytes = scenario_array(&k.t, "/bytes", "uint8", 1, &len, NULL, "85", NULL);
    uint8_t *wanted = malloc(LEN), *got;
    random_state = 11;
    for (uint64_t n = 0; n < effort_step(200, 60); n++) {
        brc_sel sel = BRC_SEL_INIT;
        int64_t strides[2];
        size_t offset;
        brc_tensor *t = memory_read(&k, bytes, NULL, kind->name, NULL);
        random_sel(&sel);
        random_strides(&sel, strides, &offset, LEN);
        brc_buffer there = {.size = sizeof(there), .data = brc_tensor_describe(t)->data, .len = LEN,
                            .offset = offset, .strides = strides, .device = kind->device};
        brc_buffer here = there;
        memset(wanted, 85, LEN);
        here.data = wanted;
        here.device = BRC_MEMORY_HOST;
        brc_io io[2] = {{.size = sizeof(brc_io), .array = a, .sel = &sel, .buffer = &there},
                        {.size = sizeof(brc_io), .array = a, .sel = &sel, .buffer = &here}};
        OK(&k.t, brc_read(io, 2, &k.t.err));
        got = memory_bytes(&k, t);
        ck_assert_msg(memcmp(got, wanted, LEN) == 0, "read %d", (int)n);
        free(got);
        /* and back, as other numbers, into another array */
        brc_array *b = scenario_array(&k.t, "/b", "int32", 2, shape, small, "-7", ZSTDS);
        brc_array *c = scenario_array(&k.t, "/c", "int32", 2, shape, small, "-7", ZSTDS);
        io[0].array = b;
        io[1].array = c;
        OK(&k.t, brc_write(&io[0], 1, &k.t.err));
        OK(&k.t, brc_write(&io[1], 1, &k.t.err));
        brc_tensor *whole = memory_read(&k, b, NULL, "pool", NULL);
        memory_same(&k, c, NULL, whole);
        brc_tensor_free(whole);
        brc_array_free(b);
        brc_array_free(c);
        OK(&k.t, brc_node_remove(k.t.session, "/b", &k.t.err));
        OK(&k.t, brc_node_remove(k.t.session, "/c", &k.t.err));
        brc_tensor_free(t);
    }
    free(wanted);
    brc_array_free(bytes);
}

LOOP(strides_that_leave_the_memory_or_overlap_are_refused, 4, MEMORY_KINDS)
{
    const memory_kind *kind = &memory_kinds[_i];
    brc_tensor *t = memory_read(&k, a, NULL, kind->name, NULL);
    const brc_tensor_info *info = brc_tensor_describe(t);
    static const int64_t wrong[][2] = {{96, 8}, {100, 4}, {INT64_MAX, 4}, {96, INT64_MIN}, {0, 4},
                                       {96, 0}, {-96, 4}};
    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
        const brc_buffer there = {.size = sizeof(there), .data = info->data,
                                  .len = (size_t)info->bytes, .strides = wrong[i],
                                  .device = kind->device};
        const brc_io io = {.size = sizeof(io), .array = a, .buffer = &there};
        FAILS(&k.t, BRC_EINVAL, brc_read(&io, 1, &k.t.err));
    }
    memory_same(&k, a, NULL, t);
    brc_tensor_free(t);
}

/* ---- CUDA -------------------------------- */

TEST(M10_without_the_driver_everything_else_works)
{
    brc_registry *reg;
    brc_open_opts opts = BRC_OPEN_OPTS_INIT;
    breccia *repo;
    brc_session *s;
    brc_array *b;
    /* only where neither the machine nor this process has a driver */
    if (dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL) != NULL)
        return;
    brc_array_free(a);
    a = NULL;
    memory_close(&k);
    dlclose(k.cuda);
    OK(&k.t, brc_registry_new(&reg, &k.t.err));
    scenario_folder(&k.t);
    opts.registry = reg;
    opts.flags = BRC_OPEN_CREATE;
    OK(&k.t, brc_open(&repo, k.t.file, &opts, &k.t.err));
    OK(&k.t, brc_session_open(&s, repo, NULL, BRC_SESSION_WRITE, &k.t.err));
    brc_array_spec spec = BRC_ARRAY_SPEC_INIT;
    spec.ndim = 2;
    spec.shape = shape;
    spec.dtype = "int32";
    OK(&k.t, brc_array_create(&b, s, "/a", &spec, &k.t.err));
    static const char *const names[] = {"cuda", "locked", "managed", "cuda:1"};
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        brc_tensor_opts read = BRC_TENSOR_OPTS_INIT;
        brc_tensor *t;
        read.prototype = names[i];
        FAILS(&k.t, BRC_EUNSUPPORTED, brc_tensor_read(&t, b, &read, &k.t.err));
        ck_assert_ptr_nonnull(strstr(k.t.err.message, "there is no libcuda.so.1"));
        read.prototype = "pool";
        OK(&k.t, brc_tensor_read(&t, b, &read, &k.t.err));
        brc_tensor_free(t);
    }
    brc_array_free(b);
    brc_session_free(s);
    brc_free(repo);
    brc_registry_free(reg);
    memory_start(&k, 0, NULL); /* for stop() */
}

TEST(M10_staging_is_used_again_after_its_event_alone)
{
    char stream;
    brc_tensor_opts opts = BRC_TENSOR_OPTS_INIT;
    opts.prototype = "cuda";
    opts.stream = &stream;
    for (int i = 0; i < 20; i++) {
        brc_tensor *t;
        brc_buffer_stats stats = BRC_BUFFER_STATS_INIT;
        opts.stats = &stats;
        OK(&k.t, brc_tensor_read(&t, a, &opts, &k.t.err));
        ck_assert_uint_le(stats.blocks, 1 + 6); /* two stages for each of three threads */
        ck_assert_uint_eq(*memory_count(k.cuda, "fake_queued"),
                          *memory_count(k.cuda, "fake_done"));
        memory_same(&k, a, NULL, t);
        brc_tensor_free(t);
    }
    ck_assert_uint_eq(*memory_count(k.cuda, "fake_in_streams"), 40);
    ck_assert_uint_gt(*memory_count(k.cuda, "fake_locked"), 0); /* the staging memory */
}

TEST(M10_an_error_that_the_driver_reports_late_fails_the_read)
{
    brc_tensor *t;
    brc_tensor_opts opts = BRC_TENSOR_OPTS_INIT;
    opts.prototype = "cuda";
    *memory_count(k.cuda, "fake_fails") = 1;
    FAILS(&k.t, BRC_EIO, brc_tensor_read(&t, a, &opts, &k.t.err));
    ck_assert_ptr_null(t);
    ck_assert_ptr_nonnull(strstr(k.t.err.message, "something is wrong (700)"));
    OK(&k.t, brc_tensor_read(&t, a, &opts, &k.t.err));
    memory_same(&k, a, NULL, t);
    *memory_count(k.cuda, "fake_fails") = 1;
    FAILS(&k.t, BRC_EIO, brc_tensor_write(a, t, NULL, &k.t.err));
    memory_same(&k, a, NULL, t); /* nothing was written */
    brc_tensor_free(t);
}

/* ---- codecs of a device -------------------------------- */

CASE("codecs there");

#define SUMMED "[" ZSTD ",{\"name\":\"crc32c\"}]"
enum { THERE_CHUNKS = 5, THERE_BYTES = ROWS * COLUMNS * 4 };

/* Starts with codecs of the device: of zstd 1, of crc32c 2; 4: zstd is pinned. `cost` is that of
 * zstd. */
static void *start_there(unsigned long codecs, unsigned long cost, const char *list)
{
    char path[4096];
    plugin_path(path, sizeof(path), "device");
    void *plugin = dlopen(path, RTLD_NOW);
    ck_assert_ptr_nonnull(plugin);
    *memory_count(plugin, "device_codecs") = codecs;
    *memory_count(plugin, "device_zstd_cost") = cost;
    start_with(0, chunk, list);
    return plugin;
}

static void stop_there(void *plugin)
{
    stop();
    *memory_count(plugin, "device_codecs") = 0;
    *memory_count(plugin, "device_decoded") = 0;
    *memory_count(plugin, "device_looked") = 0;
    *memory_count(plugin, "device_refuses") = 0;
    dlclose(plugin);
}

/* Host's zstd counts 1,000 and a copy 100 picoseconds for a byte. */
static const struct route {
    unsigned long codecs, cost;
    const char *list;
    uint64_t there, steps; /* chunks, and calls of the device's codecs */
} routes[] = {
    {1, 1, ZSTDS, THERE_CHUNKS, 1},
    {1, 0, ZSTDS, THERE_CHUNKS, 1}, /* the copy is shorter              */
    {1, 5000, ZSTDS, 0, 0},         /* the host is faster               */
    {5, 5000, ZSTDS, THERE_CHUNKS, 1},
    {1, 1, SUMMED, THERE_CHUNKS, 1}, /* the host begins, the device ends */
    {3, 1, SUMMED, THERE_CHUNKS, 2},
    {2, 1, SUMMED, 0, 0}, /* the device has the first step alone */
    {3, 1, PLAIN, 0, 0},  /* nothing is to be decoded            */
    {9, 1, ZSTDS, THERE_CHUNKS, 1},
    {11, 1, SUMMED, THERE_CHUNKS, 1}, /* zstd looks, so the host has the steps before */
};

EACH(M4_a_device_decodes_where_that_costs_less, routes)
{
    const struct route *r = &routes[_i];
    void *plugin = start_there(r->codecs, r->cost, r->list);
    brc_buffer_stats stats = BRC_BUFFER_STATS_INIT;
    brc_tensor *t = memory_read(&k, a, NULL, DEVICE, &stats);
    ck_assert_uint_eq(stats.there, r->there);
    ck_assert_uint_eq(*memory_count(plugin, "device_decoded"), r->steps);
    ck_assert_uint_eq(*memory_count(plugin, "device_looked"), r->codecs & 8 ? THERE_CHUNKS : 0);
    ck_assert_uint_eq(stats.copies, r->there > 0 ? 1 : THERE_CHUNKS);
    ck_assert_uint_eq(stats.moved, r->there);
    if (r->there > 0)
        ck_assert_uint_lt(stats.copied, THERE_BYTES / 2); /* encoded bytes        */
    else
        ck_assert_uint_eq(stats.copied, THERE_BYTES);
    memory_same(&k, a, NULL, t);
    brc_tensor_free(t);
    stats = (brc_buffer_stats)BRC_BUFFER_STATS_INIT; /* the host has its own codecs */
    t = memory_read(&k, a, NULL, "pool", &stats);
    ck_assert_uint_eq(stats.there, 0);
    memory_same(&k, a, NULL, t);
    brc_tensor_free(t);
    stop_there(plugin);
}

TEST(M4_parts_of_chunks_are_decoded_in_the_hosts_memory)
{
    static const char *const slices[] = {"[1:7]", "[:, 3:9]", "[::2]", "[3, 4]"};
    void *plugin = start_there(1, 1, ZSTDS);
    for (size_t i = 0; i < sizeof(slices) / sizeof(slices[0]); i++) {
        brc_buffer_stats stats = BRC_BUFFER_STATS_INIT;
        brc_tensor *t = memory_read(&k, a, slices[i], DEVICE, &stats);
        ck_assert_uint_eq(stats.there, 0);
        memory_same(&k, a, slices[i], t);
        brc_tensor_free(t);
    }
    brc_buffer_stats stats = BRC_BUFFER_STATS_INIT;
    brc_tensor *t = memory_read(&k, a, "[5:27]", DEVICE, &stats);
    ck_assert_uint_eq(stats.there, 2); /* rows 8 to 23 are whole chunks */
    memory_same(&k, a, "[5:27]", t);
    brc_tensor_free(t);
    stop_there(plugin);
}

/* Together, and one by one. */
LOOP(M4_a_chunk_that_the_device_refuses_is_decoded_in_the_hosts_memory, 0, 2)
{
    void *plugin = start_there(3, 1, SUMMED);
    brc_pipeline_opts alone = BRC_PIPELINE_OPTS_INIT;
    alone.batch = 1;
    if (_i == 1)
        OK(&k.t, brc_pipeline_set(k.t.repo, &alone, &k.t.err));
    *memory_count(plugin, "device_refuses") = 1;
    for (int i = 0; i < 4; i++) {
        brc_buffer_stats stats = BRC_BUFFER_STATS_INIT;
        brc_tensor *t = memory_read(&k, a, NULL, DEVICE, &stats);
        ck_assert_uint_eq(stats.there, 0);
        memory_same(&k, a, NULL, t);
        brc_tensor_free(t);
    }
    ck_assert_uint_eq(*memory_count(plugin, "device_decoded"),
                      _i == 1 ? 4 * THERE_CHUNKS : 4); /* nothing is asked twice */
    stop_there(plugin);
}

/* The second chunk of a call fails; asked for alone it is decoded. */
TEST(M4_a_chunk_that_fails_among_others_is_decoded_again_alone)
{
    void *plugin = start_there(3, 1, SUMMED);
    brc_buffer_stats stats = BRC_BUFFER_STATS_INIT;
    *memory_count(plugin, "device_refuses") = 4;
    brc_tensor *t = memory_read(&k, a, NULL, DEVICE, &stats);
    ck_assert_uint_eq(stats.there, THERE_CHUNKS);
    ck_assert_uint_eq(stats.copies, 3);
    /* crc32c fails for one of five, zstd for one of the other four, and two come again */
    ck_assert_uint_eq(*memory_count(plugin, "device_decoded"), 2 + 2 * 2);
    memory_same(&k, a, NULL, t);
    brc_tensor_free(t);
    stop_there(plugin);
}

/* The elements have their memory already. */
TEST(M4_a_device_without_room_for_encoded_chunks_decodes_none)
{
    void *plugin = start_there(1, 1, ZSTDS);
    brc_buffer_stats stats = BRC_BUFFER_STATS_INIT;
    brc_tensor_opts opts = BRC_TENSOR_OPTS_INIT;
    brc_tensor *t;
    *memory_count(k.device, "device_room") = (unsigned long)sysconf(_SC_PAGESIZE);
    opts.prototype = DEVICE;
    opts.stats = &stats;
    OK(&k.t, brc_tensor_read(&t, a, &opts, &k.t.err));
    *memory_count(k.device, "device_room") = 0;
    ck_assert_uint_eq(stats.there, 0);
    memory_same(&k, a, NULL, t);
    brc_tensor_free(t);
    stop_there(plugin);
}

LOOP(M4_what_the_device_gives_is_checked, 2, 4)
{
    void *plugin = start_there(1, 1, ZSTDS);
    brc_tensor_opts opts = BRC_TENSOR_OPTS_INIT;
    brc_tensor *t;
    opts.prototype = DEVICE;
    *memory_count(plugin, "device_refuses") = (unsigned long)_i;
    FAILS(&k.t, BRC_ECORRUPT, brc_tensor_read(&t, a, &opts, &k.t.err));
    ck_assert_ptr_nonnull(strstr(k.t.err.message, "zstd"));
    ck_assert_ptr_nonnull(strstr(k.t.err.message, "/a"));
    *memory_count(plugin, "device_refuses") = 0;
    t = memory_read(&k, a, NULL, DEVICE, NULL);
    memory_same(&k, a, NULL, t);
    brc_tensor_free(t);
    stop_there(plugin);
}

TEST(M4_ids_are_compared_in_the_hosts_memory)
{
    void *plugin = start_there(1, 1, ZSTDS);
    brc_buffer_stats stats = BRC_BUFFER_STATS_INIT;
    brc_open_opts opts = BRC_OPEN_OPTS_INIT;
    scenario_commit(&k.t, "numbers");
    OK(&k.t, brc_config_set(k.t.repo, "verify", "full", &k.t.err));
    brc_array_free(a);
    scenario_close(&k.t);
    opts.registry = k.reg;
    scenario_open(&k.t, &opts, 0);
    a = scenario_array_at(&k.t, k.t.session, "/a");
    brc_tensor *t = memory_read(&k, a, NULL, DEVICE, &stats);
    ck_assert_uint_eq(stats.there, 0);
    memory_same(&k, a, NULL, t);
    brc_tensor_free(t);
    stop_there(plugin);
}

/* ---- the device that faults -------------------------------- */

CASE("faults", .setup = start_threads, .teardown = stop, .timeout = 120);

LOOP(M11_memory_of_a_device_faults_in_the_hands_of_others, 4, MEMORY_KINDS)
{
    brc_tensor *t = memory_read(&k, a, NULL, memory_kinds[_i].name, NULL);
    const volatile uint8_t *data = brc_tensor_describe(t)->data;
    int status;
    const pid_t child = fork();
    if (child == 0) {
        signal(SIGSEGV, SIG_DFL);
        _exit(*data == 0 ? 1 : 2);
    }
    ck_assert_int_eq(waitpid(child, &status, 0), child);
    ck_assert(WIFSIGNALED(status) || WEXITSTATUS(status) > 2); /* a sanitizer ends otherwise */
    memory_same(&k, a, NULL, t);
    brc_tensor_free(t);
}

LOOP(M11_a_copy_that_fails_half_way_fails_the_call, 0, 24)
{
    unsigned long *after = memory_count(k.device, "device_fails_after");
    brc_tensor_opts opts = BRC_TENSOR_OPTS_INIT;
    brc_tensor *t;
    brc_tensor *good = memory_read(&k, a, NULL, DEVICE, NULL);
    opts.prototype = DEVICE;
    *after = (unsigned long)_i + 1;
    const int rc = brc_tensor_read(&t, a, &opts, &k.t.err);
    ck_assert_int_eq(rc, _i < 15 ? BRC_EIO : BRC_OK);
    if (rc == BRC_OK)
        brc_tensor_free(t);
    *after = (unsigned long)_i + 1;
    const int wrote = brc_tensor_write(a, good, NULL, &k.t.err);
    ck_assert_int_eq(wrote, _i < 15 ? BRC_EIO : BRC_OK);
    *after = 0;
    memory_same(&k, a, NULL, good);
    brc_tensor_free(good);
}

/* ---- allocating -------------------------------- */

CASE("blocks", .setup = start, .teardown = stop);

TEST(B4_a_warm_pool_allocates_nothing)
{
    static const char *const names[] = {"pool", "locked"};
    for (size_t i = 0; i < 2; i++)
        for (int n = 0; n < 50; n++) {
            brc_buffer_stats stats = BRC_BUFFER_STATS_INIT;
            brc_tensor *t = memory_read(&k, a, NULL, names[i], &stats);
            ck_assert_uint_eq(stats.blocks, 1);
            ck_assert_uint_eq(stats.allocations, n == 0 ? 1 : 0);
            ck_assert_uint_eq((uintptr_t)brc_tensor_describe(t)->data % 64, 0);
            memory_same(&k, a, NULL, t);
            brc_tensor_free(t);
        }
    for (int n = 0; n < 10; n++) { /* a device takes its own memory anew, and staging again */
        brc_buffer_stats stats = BRC_BUFFER_STATS_INIT;
        brc_tensor_free(memory_read(&k, a, NULL, "cuda", &stats));
        ck_assert(stats.blocks == 3 && (n == 0 || stats.allocations == 1));
    }
}

TEST(B4_the_pool_keeps_no_more_than_its_bound)
{
    enum { BIG = 100 << 20 };
    brc_tensor *kept[4];
    const uint64_t n = BIG;
    brc_array *big = scenario_array(&k.t, "/big", "uint8", 1, &n, NULL, NULL, NULL);
    brc_buffer_stats stats = BRC_BUFFER_STATS_INIT;
    for (int round = 0; round < 2; round++) {
        stats = (brc_buffer_stats)BRC_BUFFER_STATS_INIT;
        for (int i = 0; i < 4; i++)
            kept[i] = memory_read(&k, big, NULL, "pool", &stats);
        for (int i = 0; i < 4; i++)
            brc_tensor_free(kept[i]);
        /* 256 MiB are kept: two blocks of 112 MiB */
        ck_assert_uint_eq(stats.allocations, round == 0 ? 4 : 2);
    }
    brc_array_free(big);
}

TEST(B5_a_full_device_spills_if_it_may_and_the_result_says_so)
{
    static const struct {
        const char *name, *room;
        int is_cuda;
        uint32_t spills_to;
    } full[] = {{DEVICE, "device_room", 0, BRC_MEMORY_HOST},
                {"cuda", "fake_room", 1, BRC_MEMORY_LOCKED}};
    for (size_t i = 0; i < 2; i++) {
        unsigned long *room = memory_count(full[i].is_cuda ? k.cuda : k.device, full[i].room);
        brc_tensor *t, *there = memory_read(&k, a, "[:20]", full[i].name, NULL);
        brc_tensor_opts opts = BRC_TENSOR_OPTS_INIT;
        brc_buffer_stats stats = BRC_BUFFER_STATS_INIT;
        *room = 1;
        opts.prototype = full[i].name;
        FAILS(&k.t, BRC_ENOMEM, brc_tensor_read(&t, a, &opts, &k.t.err));
        ck_assert_ptr_null(t);
        opts.flags = BRC_READ_SPILL;
        opts.stats = &stats;
        OK(&k.t, brc_tensor_read(&t, a, &opts, &k.t.err));
        const brc_tensor_info *info = brc_tensor_describe(t);
        ck_assert(info->flags == (BRC_TENSOR_HOST | BRC_TENSOR_SPILLED));
        ck_assert_uint_eq(info->device, full[i].spills_to);
        ck_assert(stats.spilled == 1 && stats.copies == 0 && stats.direct == 5);
        memory_same(&k, a, NULL, t);
        OK(&k.t, brc_tensor_write(a, t, NULL, &k.t.err)); /* it is the host's memory */
        memory_same(&k, a, NULL, t);
        memory_same(&k, a, "[:20]", there);
        *room = 0;
        brc_tensor_free(there);
        brc_tensor_free(t);
    }
}

/* ---- shards -------------------------------- */

CASE("shards");

LOOP(B1_documents_and_indexes_of_shards_stay_on_the_host, 0, 2)
{
    brc_key_info info;
    memset(&info, 0, sizeof(info));
    start_with(0, chunk, SHARDS);
    if (_i == 1) { /* stored as one chunk, with its index, as a client sets it */
        brc_buf shard = BRC_BUF_INIT;
        OK(&k.t, brc_key_get(&shard, k.t.session, "a/c/1/0", NULL, NULL, &k.t.err));
        OK(&k.t, brc_key_set(k.t.session, "a/c/1/0", shard.data, shard.len, 0, &k.t.err));
        brc_buf_dispose(&shard);
    }
    for (int i = 0; i < MEMORY_KINDS; i++) {
        brc_buffer_stats stats = BRC_BUFFER_STATS_INIT;
        brc_tensor *t = memory_read(&k, a, "[4:20, 6:12]", memory_kinds[i].name, &stats);
        memory_same(&k, a, "[4:20, 6:12]", t);
        /* what goes to a device are the elements, and nothing else */
        ck_assert_uint_eq(stats.copied, memory_kinds[i].is_host ? 0 : 16 * 6 * 4);
        brc_tensor_free(t);
    }
    OK(&k.t, brc_array_set_prototype(a, DEVICE, &k.t.err));
    ck_assert_uint_eq(brc_array_describe(a)->item_size, 4); /* described without the device */
    stop();
}

/* ---- lives -------------------------------- */

CASE("lives");

TEST(a_tensor_outlives_its_registry_and_keeps_its_plug_in)
{
    for (int i = 0; i < MEMORY_KINDS; i++) {
        start();
        brc_tensor *t = memory_read(&k, a, NULL, memory_kinds[i].name, NULL);
        const unsigned long destroyed = *memory_count(k.device, "device_destroyed");
        brc_array_free(a);
        memory_close(&k);
        ck_assert_uint_eq(*memory_count(k.device, "device_destroyed"),
                          destroyed + (i == 4 ? 0 : 1));
        if (i == 4) /* only the tensor holds the shared object now */
            dlclose(k.device);
        int32_t *numbers = memory_bytes(&k, t);
        ck_assert(numbers[0] == 0 && numbers[ROWS * COLUMNS - 1] == (ROWS * COLUMNS - 1) / 3);
        free(numbers);
        brc_tensor_free(t);
        if (i != 4)
            dlclose(k.device);
        dlclose(k.cuda);
    }
}

TEST(a_prototype_that_cannot_be_used_is_refused)
{
    brc_buffer_prototype p = {.size = sizeof(p), .name = "org.example.x", .device = 12};
    memory_start(&k, 0, NULL);
    brc_registry *reg;
    OK(&k.t, brc_registry_new(&reg, &k.t.err));
    FAILS(&k.t, BRC_EINVAL, brc_registry_add_prototype(reg, &p, &k.t.err));
    FAILS(&k.t, BRC_EMISUSE, brc_registry_add_prototype(k.reg, &p, &k.t.err));
    p.name = "pool";
    FAILS(&k.t, BRC_EINVAL, brc_registry_add_prototype(reg, &p, &k.t.err));
    p.name = "org.example:1";
    FAILS(&k.t, BRC_EINVAL, brc_registry_add_prototype(reg, &p, &k.t.err));
    FAILS(&k.t, BRC_EINVAL, brc_registry_add_prototype(NULL, &p, &k.t.err));
    brc_registry_free(reg);
    memory_stop(&k);
}
