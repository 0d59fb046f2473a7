/* Chunks that nvCOMP decodes on a CUDA device, over a library and a driver that are none. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <zlib.h>
#include <zstd.h>

#include "../../src/base/hash.h"
#include "../../src/codec/registry.h"
#include "../kit/memory_kit.h"
#include "../kit/plugin_kit.h"
#include "../kit/suite.h"

TEST_SUITE(nvcomp);

enum { ROWS = 40, COLUMNS = 24, CHUNKS = 5, CHUNK = 8 * COLUMNS, ALL = ROWS * COLUMNS * 4 };
static const uint64_t shape[2] = {ROWS, COLUMNS}, chunk[2] = {8, COLUMNS};

#define LITTLE "{\"name\":\"bytes\",\"configuration\":{\"endian\":\"little\"}}"
#define ZSTD "{\"name\":\"zstd\",\"configuration\":{\"level\":1,\"checksum\":false}}"
#define LEVEL(name) "{\"name\":\"" name "\",\"configuration\":{\"level\":1}}"
#define LIST(codec) "[" LITTLE "," codec "]"
static const char zstds[] = LIST(ZSTD);

static const char *const versions[] = {"nvcomp4", "nvcomp5", "nvcomp6"};

static memory_kit k;
static brc_array *a;
static int32_t numbers[ROWS * COLUMNS];

static void start_with(const char *library, unsigned threads, int pins, const char *codecs)
{
    memory_start_nvcomp(&k, threads, library, pins);
    a = scenario_array(&k.t, "/a", "int32", 2, shape, chunk, "-7", codecs);
    for (int i = 0; i < ROWS * COLUMNS; i++)
        numbers[i] = i / 3;
    OK(&k.t, brc_array_write(a, NULL, numbers, sizeof(numbers), &k.t.err));
}

static void start(void)
{
    start_with("nvcomp5", 0, 1, zstds);
}

static unsigned long *count(const char *name)
{
    return memory_count(k.nvcomp, name);
}

static void stop(void)
{
    brc_array_free(a);
    a = NULL;
    ck_assert_uint_eq(*count("nvcomp_faults"), 0);
    memory_stop(&k);
}

/* Reads all of the array to the device, where so many chunks are decoded, and compares it with the
 * host's elements. */
static brc_buffer_stats is_read(uint64_t there)
{
    brc_buffer_stats stats = BRC_BUFFER_STATS_INIT;
    brc_tensor *t = memory_read(&k, a, NULL, "cuda", &stats);
    memory_same(&k, a, NULL, t);
    ck_assert_uint_eq(stats.there, there);
    brc_tensor_free(t);
    return stats;
}

/* ---- codecs -------------------------------- */

CASE("decode");

static const struct decoded {
    const char *list;
} lists[] = {
    {LIST(ZSTD)},
    {LIST("{\"name\":\"zstd\",\"configuration\":{\"level\":5,\"checksum\":true}}")},
    {LIST(LEVEL("numcodecs.zstd"))},
    {LIST("{\"name\":\"numcodecs.lz4\",\"configuration\":{\"acceleration\":1}}")},
    {LIST(LEVEL("gzip"))},
    {LIST(LEVEL("numcodecs.gzip"))},
    {LIST(LEVEL("numcodecs.zlib"))},
    {LIST(ZSTD ",{\"name\":\"crc32c\"}")}, /* the host begins */
};
enum { LISTS = sizeof(lists) / sizeof(lists[0]) };

LOOP(chunks_are_decoded_in_one_call, 0, 3 * LISTS)
{
    start_with(versions[_i / LISTS], 0, 1, lists[_i % LISTS].list);
    const brc_buffer_stats s = is_read(CHUNKS);
    ck_assert_uint_eq(*count("nvcomp_calls"), 1);
    ck_assert_uint_eq(*count("nvcomp_chunks"), CHUNKS);
    ck_assert(s.copies == 1 && s.moved == CHUNKS && s.direct == 0);
    ck_assert_uint_lt(s.copied, ALL / 2); /* encoded bytes */
    stop();
}

/* Whatever steps before the device's left in the host's memory stays until it was copied. */
LOOP(chunks_come_by_threads_streams_and_devices, 0, 3)
{
    char stream;
    const uint64_t n = 200000, some = 2000;
    uint16_t *values = malloc(n * sizeof(*values));
    ck_assert_ptr_nonnull(values);
    start_with(versions[_i], 3, 1, lists[7].list);
    brc_array_free(a);
    a = scenario_array(&k.t, "/b", "uint16", 1, &n, &some, NULL, lists[7].list);
    for (uint64_t i = 0; i < n; i++)
        values[i] = (uint16_t)(i / 7);
    OK(&k.t, brc_array_write(a, NULL, values, n * sizeof(*values), &k.t.err));
    free(values);
    for (int i = 0; i < 6; i++) {
        brc_buffer_stats stats = BRC_BUFFER_STATS_INIT;
        brc_tensor_opts opts = BRC_TENSOR_OPTS_INIT;
        brc_tensor *t;
        opts.prototype = i % 2 == 0 ? "cuda" : "cuda:1";
        opts.stream = i > 2 ? &stream : NULL;
        opts.stats = &stats;
        OK(&k.t, brc_tensor_read(&t, a, &opts, &k.t.err));
        ck_assert_uint_eq(stats.there, 100);
        memory_same(&k, a, NULL, t);
        brc_tensor_free(t);
    }
    stop();
}

/* Inner chunks are chunks: each is half of the one around it. */
TEST(chunks_of_shards_are_decoded_there_too)
{
    start_with("nvcomp5", 2, 1,
               "[{\"name\":\"sharding_indexed\",\"configuration\":{\"chunk_shape\":[4,24],"
               "\"codecs\":[" LITTLE "," ZSTD "],\"index_codecs\":[" LITTLE
               ",{\"name\":\"crc32c\"}]}}]");
    is_read(2 * CHUNKS);
    stop();
}

/* A result begins where the chunk before it ends. */
LOOP(results_that_are_not_aligned_are_left_to_the_host, 0, 3)
{
    const uint64_t n = 2010, some = 201;
    uint8_t values[2010];
    start_with(versions[_i], 0, 1, zstds);
    brc_array_free(a);
    a = scenario_array(&k.t, "/b", "uint8", 1, &n, &some, NULL, zstds);
    for (size_t i = 0; i < sizeof(values); i++)
        values[i] = (uint8_t)(i / 50 + 1);
    OK(&k.t, brc_array_write(a, NULL, values, sizeof(values), &k.t.err));
    is_read(_i == 0 ? 2 : 10);
    stop();
}

TEST(the_way_that_costs_less_is_taken)
{
    enum { MANY = 64, LEN = 64 << 10 };
    const uint64_t n = MANY * LEN, some = LEN;
    start_with("nvcomp6", 0, 0, zstds);
    is_read(0); /* a call for so few bytes costs more than it saves */
    brc_array_free(a);
    a = scenario_array(&k.t, "/b", "uint8", 1, &n, &some, NULL, zstds);
    uint8_t *values = malloc(MANY * LEN);
    ck_assert_ptr_nonnull(values);
    for (size_t i = 0; i < MANY * LEN; i++)
        values[i] = (uint8_t)(i / 1000 + 1);
    OK(&k.t, brc_array_write(a, NULL, values, MANY * LEN, &k.t.err));
    free(values);
    is_read(MANY - 1); /* the last comes alone */
    ck_assert_uint_eq(*count("nvcomp_calls"), 1);
    stop();
}

/* ---- memory -------------------------------- */

CASE("memory", .setup = start, .teardown = stop);

TEST(no_copy_is_hidden_and_memory_is_used_again)
{
    uint64_t live = 0;
    for (int i = 0; i < 5; i++) {
        const unsigned long before = *memory_count(k.cuda, "fake_done");
        const brc_buffer_stats s = is_read(CHUNKS);
        /* what the device did: one copy there, the lists of the call, the call, its results, and
         * the copy by which this test looks at the elements */
        ck_assert_uint_eq(*memory_count(k.cuda, "fake_done") - before, 5);
        ck_assert_uint_eq(s.blocks, 3); /* the result, and encoded chunks here and there */
        ck_assert(i == 0 || *memory_count(k.cuda, "fake_live") == live);
        live = *memory_count(k.cuda, "fake_live");
    }
    ck_assert_uint_eq(live, 1); /* lists and temporary memory of the one thread */
}

/* 256 MiB are the most for one call. */
TEST(a_call_takes_as_many_chunks_as_temporary_memory_allows)
{
    *count("nvcomp_temp") = 120UL << 20;
    is_read(CHUNKS);
    ck_assert_uint_eq(*count("nvcomp_calls"), 3);
    *count("nvcomp_temp") = 300UL << 20;
    is_read(0);
    ck_assert_uint_eq(*count("nvcomp_calls"), 3);
}

TEST(a_device_without_room_for_temporary_memory_decodes_none)
{
    *memory_count(k.cuda, "fake_room") = 2 * (unsigned long)sysconf(_SC_PAGESIZE);
    is_read(0);
    *memory_count(k.cuda, "fake_room") = 0;
    is_read(CHUNKS);
}

/* ---- failures -------------------------------- */

CASE("failures", .setup = start, .teardown = stop, .timeout = 60);

TEST(chunks_that_nvcomp_finds_damaged_are_decoded_by_the_host)
{
    static const uint64_t left[] = {CHUNKS, CHUNKS - 1, 0, 0};
    for (unsigned long i = 0; i < 4; i++) {
        *count("nvcomp_damages") = i;
        const brc_buffer_stats s = is_read(left[i]);
        ck_assert_uint_eq(s.copies, 1 + CHUNKS - left[i]);
    }
    ck_assert_uint_eq(*count("nvcomp_calls"), 4); /* nothing was tried again */
}

TEST(what_nvcomp_refuses_the_host_decodes)
{
    for (unsigned long i = 1; i <= 2; i++) {
        *count("nvcomp_fails") = i;
        is_read(0);
    }
    *count("nvcomp_fails") = 0;
    is_read(CHUNKS);
}

TEST(a_device_that_fails_fails_the_read)
{
    brc_tensor_opts opts = BRC_TENSOR_OPTS_INIT;
    brc_tensor *t;
    opts.prototype = "cuda";
    *count("nvcomp_fails") = 2;
    *count("nvcomp_code") = 1000;
    FAILS(&k.t, BRC_EIO, brc_tensor_read(&t, a, &opts, &k.t.err));
    ck_assert_ptr_nonnull(strstr(k.t.err.message, "nvCOMP cannot decode on device 0"));
    *count("nvcomp_fails") = 0;
    is_read(CHUNKS);
}

/* The n-th call of the driver fails, for each n. A chunk that failed with others is tried again
 * alone, so one failure alone may pass. */
TEST(a_driver_that_fails_anywhere_gives_an_error_or_the_elements)
{
    int failed = 0, passed = 0;
    brc_tensor_opts opts = BRC_TENSOR_OPTS_INIT;
    opts.prototype = "cuda";
    for (unsigned long n = 1; n < 40; n++) {
        brc_tensor *t;
        *memory_count(k.cuda, "fake_fails_after") = n;
        const int rc = brc_tensor_read(&t, a, &opts, &k.t.err);
        *memory_count(k.cuda, "fake_fails_after") = 0;
        ck_assert_msg(rc == BRC_OK || rc == BRC_EIO, "%lu: %s", n, k.t.err.message);
        failed += rc < 0;
        passed += rc == BRC_OK;
        if (rc == BRC_OK)
            memory_same(&k, a, NULL, t);
        if (rc == BRC_OK)
            brc_tensor_free(t);
    }
    ck_assert(failed >= 3 && passed >= 20);
    is_read(CHUNKS);
}

/* Changes a byte of the stored chunk whose content is the longest, with all checksums right. */
static void damage_a_chunk(void)
{
    static char spec[4000], sql[4000];
    brc_buf id = BRC_BUF_INIT, data = BRC_BUF_INIT, encoding = BRC_BUF_INIT;
    uint8_t bytes[1000];
    brc_oid oid;
    size_t len = 0;
#define OF_THE_CHUNK " FROM object WHERE kind=1 ORDER BY stored DESC, id LIMIT 1"
    scenario_sql(&k.t, "UPDATE blob SET data=data"); /* each object has its own row now */
    scenario_rows(&k.t, "SELECT lower(hex(id))" OF_THE_CHUNK, &id);
    scenario_rows(&k.t, "SELECT hex(data) FROM blob WHERE seq=(SELECT place" OF_THE_CHUNK ")",
                  &data);
    scenario_rows(&k.t, "SELECT spec FROM encoding WHERE id=(SELECT encoding" OF_THE_CHUNK ")",
                  &encoding);
    snprintf(spec, sizeof(spec), "%.*s", (int)strcspn((char *)encoding.data, "\n"),
             (char *)encoding.data);
    snprintf(sql, sizeof(sql), "%.32s", (char *)id.data);
    memset(&oid, 0, sizeof(oid));
    for (size_t i = 0; i < 16; i++)
        ck_assert_int_eq(sscanf(sql + 2 * i, "%2hhx", &oid.bytes[i]), 1);
    for (; sscanf((char *)data.data + 2 * len, "%2hhx", &bytes[len]) == 1; len++)
        ck_assert_uint_lt(len, sizeof(bytes) - 1);
    bytes[len / 2] ^= 0x55;
    int at = snprintf(sql, sizeof(sql), "UPDATE blob SET data=x'");
    for (size_t i = 0; i < len; i++)
        at += snprintf(sql + at, sizeof(sql) - (size_t)at, "%02x", bytes[i]);
    snprintf(sql + at, sizeof(sql) - (size_t)at,
             "' WHERE seq=(SELECT place" OF_THE_CHUNK "); UPDATE object SET checksum=%lld WHERE "
             "id=(SELECT id" OF_THE_CHUNK ")",
             (long long)brc_hash_stored(&oid, brc_hash_encoding(spec), bytes, len));
    scenario_sql(&k.t, sql);
    brc_buf_dispose(&id);
    brc_buf_dispose(&data);
    brc_buf_dispose(&encoding);
}

TEST(a_damaged_chunk_fails_alone_and_in_the_hosts_words)
{
    static int32_t got[ROWS * COLUMNS];
    brc_tensor_opts opts = BRC_TENSOR_OPTS_INIT;
    brc_open_opts again = BRC_OPEN_OPTS_INIT;
    brc_error host = BRC_ERROR_INIT;
    brc_tensor *t;
    int damaged = 0;
    brc_array_free(a);
    damage_a_chunk();
    scenario_close(&k.t);
    again.registry = k.reg;
    scenario_open(&k.t, &again, 0);
    a = scenario_array_at(&k.t, k.t.session, "/a");
    ck_assert_int_eq(brc_array_read(a, NULL, got, sizeof(got), &host), BRC_ECORRUPT);
    ck_assert_msg(strstr(host.message, "zstd") != NULL, "%s", host.message);
    opts.prototype = "cuda";
    FAILS(&k.t, BRC_ECORRUPT, brc_tensor_read(&t, a, &opts, &k.t.err));
    ck_assert_str_eq(k.t.err.message, host.message);
    for (int i = 0; i < CHUNKS; i++) {
        char slice[40];
        brc_sel sel = BRC_SEL_INIT;
        snprintf(slice, sizeof(slice), "[%d:%d]", 8 * i, 8 * i + 8);
        OK(&k.t, brc_sel_parse(&sel, a, slice, &k.t.err));
        opts.sel = &sel;
        const int rc = brc_tensor_read(&t, a, &opts, &k.t.err);
        damaged += rc == BRC_ECORRUPT;
        if (rc < 0)
            continue;
        memory_same(&k, a, slice, t);
        brc_tensor_free(t);
    }
    ck_assert_int_eq(damaged, 1);
}

/* ---- frames -------------------------------- */

CASE("frames");

typedef size_t encoder(uint8_t *out, size_t room, const void *in, size_t len);

static size_t zstd_plain(uint8_t *out, size_t room, const void *in, size_t len)
{
    return ZSTD_compress(out, room, in, len, 3);
}

static size_t zstd_twice(uint8_t *out, size_t room, const void *in, size_t len)
{
    const size_t first = zstd_plain(out, room, in, len / 2);
    return first + zstd_plain(out + first, room - first, (const uint8_t *)in + len / 2,
                              len - len / 2);
}

static size_t zstd_stream(uint8_t *out, size_t room, const void *in, size_t len)
{
    ZSTD_CCtx *c = ZSTD_createCCtx();
    ZSTD_inBuffer from = {in, len, 0};
    ZSTD_outBuffer to = {out, room, 0};
    ZSTD_CCtx_setParameter(c, ZSTD_c_contentSizeFlag, 0);
    const size_t left = ZSTD_compressStream2(c, &to, &from, ZSTD_e_end);
    ck_assert_uint_eq(left, 0);
    ZSTD_freeCCtx(c);
    return to.pos;
}

static size_t zstd_skips(uint8_t *out, size_t room, const void *in, size_t len)
{
    static const uint8_t frame[] = {0x50, 0x2A, 0x4D, 0x18, 3, 0, 0, 0, 'a', 'b', 'c'};
    memcpy(out, frame, sizeof(frame));
    return sizeof(frame) + zstd_plain(out + sizeof(frame), room - sizeof(frame), in, len);
}

static size_t zlib_with(uint8_t *out, size_t room, const void *in, size_t len, int bits,
                        gz_header *header)
{
    z_stream z;
    memset(&z, 0, sizeof(z));
    ck_assert_int_eq(deflateInit2(&z, 6, Z_DEFLATED, bits, 8, Z_DEFAULT_STRATEGY), Z_OK);
    if (header != NULL)
        deflateSetHeader(&z, header);
    z.next_in = (Bytef *)(uintptr_t)in;
    z.avail_in = (uInt)len;
    z.next_out = out;
    z.avail_out = (uInt)room;
    ck_assert_int_eq(deflate(&z, Z_FINISH), Z_STREAM_END);
    deflateEnd(&z);
    return z.total_out;
}

static size_t gzip_plain(uint8_t *out, size_t room, const void *in, size_t len)
{
    return zlib_with(out, room, in, len, 31, NULL);
}

static size_t zlib_plain(uint8_t *out, size_t room, const void *in, size_t len)
{
    return zlib_with(out, room, in, len, 15, NULL);
}

/* The header has everything that a header can have. */
static size_t gzip_named(uint8_t *out, size_t room, const void *in, size_t len)
{
    uint8_t extra[] = "xy", name[] = "name", comment[] = "comment";
    gz_header h;
    memset(&h, 0, sizeof(h));
    h.extra = extra;
    h.extra_len = 2;
    h.name = name;
    h.comment = comment;
    h.hcrc = 1;
    return zlib_with(out, room, in, len, 31, &h);
}

static size_t gzip_twice(uint8_t *out, size_t room, const void *in, size_t len)
{
    const size_t first = gzip_plain(out, room, in, len / 2);
    return first + gzip_plain(out + first, room - first, (const uint8_t *)in + len / 2,
                              len - len / 2);
}

/* A member without content comes first, so the last one has the length of the chunk. */
static size_t gzip_nothing_first(uint8_t *out, size_t room, const void *in, size_t len)
{
    const size_t first = gzip_plain(out, room, in, 0);
    return first + gzip_plain(out + first, room - first, in, len);
}

static size_t gzip_padded(uint8_t *out, size_t room, const void *in, size_t len)
{
    const size_t n = gzip_plain(out, room, in, len);
    memset(out + n, 0, 7);
    return n + 7;
}

static const struct framed {
    const char *codec;
    encoder *encode;
    int is_taken;
} frames[] = {
    {ZSTD, zstd_plain, 1},
    {ZSTD, zstd_twice, 0},
    {ZSTD, zstd_stream, 0},
    {ZSTD, zstd_skips, 0},
    {LEVEL("gzip"), gzip_plain, 1},
    {LEVEL("gzip"), gzip_named, 1},
    {LEVEL("gzip"), gzip_twice, 0},
    {LEVEL("gzip"), gzip_nothing_first, 0},
    {LEVEL("gzip"), gzip_padded, 0},
    {LEVEL("numcodecs.gzip"), zlib_plain, 1}, /* old data have it under this name */
    {LEVEL("numcodecs.zlib"), gzip_named, 1},
    {LEVEL("numcodecs.zlib"), zlib_plain, 1},
};

/* One chunk of five comes from another writer. */
EACH(what_nvcomp_cannot_decode_the_host_does, frames)
{
    char list[300];
    uint8_t bytes[4000];
    int32_t other[CHUNK];
    snprintf(list, sizeof(list), "[" LITTLE ",%s]", frames[_i].codec);
    start_with("nvcomp6", 0, 1, list);
    for (int i = 0; i < CHUNK; i++) /* content that is not there yet */
        other[i] = i / 5 - 9;
    const size_t len = frames[_i].encode(bytes, sizeof(bytes), other, sizeof(other));
    OK(&k.t, brc_key_set(k.t.session, "a/c/2/0", bytes, len, 0, &k.t.err));
    is_read((uint64_t)(CHUNKS - 1 + frames[_i].is_taken));
    stop();
}

/* ---- a look at chunks -------------------------------- */

CASE("looks", .setup = start, .teardown = stop);

static int is_taken(const char *codec, const void *data, size_t len, size_t limit, brc_span *src,
                    size_t *room)
{
    const brc_codec_entry *entry = brc_registry_codec(k.reg, codec);
    const brc_codec_impl *impl = brc_registry_impl(k.reg, entry, BRC_MEMORY_CUDA);
    brc_buf dst = BRC_FIXED_BUF(NULL, limit);
    const size_t page = (size_t)sysconf(_SC_PAGESIZE);
    uint8_t *pages = mmap(NULL, 2 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1,
                          0);
    ck_assert(pages != MAP_FAILED && len <= page);
    ck_assert_int_eq(mprotect(pages + page, page, PROT_NONE), 0);
    uint8_t *copy = pages + page - len; /* behind it is nothing */
    memcpy(copy, data, len);
    dst.limit = limit;
    *src = (brc_span){copy, len};
    const int rc = impl->takes_there(impl->ctx, NULL, src, &dst);
    *room = dst.limit;
    if (rc) /* it lies in the chunk */
        ck_assert(src->data >= copy && src->data + src->len <= copy + len);
    src->data = (const uint8_t *)data + (src->data - copy);
    munmap(pages, 2 * page);
    return rc;
}

/* Any beginning of a frame, and any flipped bit of its header, is refused or leads nowhere else. */
TEST(no_part_of_a_frame_is_taken_for_a_whole)
{
    static const struct {
        const char *codec;
        encoder *encode;
        int tells; /* the end of its bytes */
    } all[] = {{"zstd", zstd_plain, 1},
               {"numcodecs.zstd", zstd_plain, 1},
               {"gzip", gzip_named, 0},
               {"numcodecs.zlib", zlib_plain, 0},
               {"numcodecs.gzip", gzip_plain, 0}};
    uint8_t bytes[4000];
    brc_span src;
    size_t room;
    for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
        const size_t len = all[i].encode(bytes, sizeof(bytes), numbers, CHUNK * 4);
        ck_assert_int_eq(is_taken(all[i].codec, bytes, len, CHUNK * 4, &src, &room), 1);
        ck_assert_uint_eq(room, CHUNK * 4);
        for (size_t cut = 0; cut < len; cut++)
            ck_assert(!is_taken(all[i].codec, bytes, cut, CHUNK * 4, &src, &room) ||
                      !all[i].tells);
        for (size_t bit = 0; bit < 8 * 20; bit++) {
            bytes[bit / 8] ^= (uint8_t)(1 << bit % 8);
            if (is_taken(all[i].codec, bytes, len, CHUNK * 4, &src, &room))
                ck_assert_uint_le(room, CHUNK * 4);
            bytes[bit / 8] ^= (uint8_t)(1 << bit % 8);
        }
        ck_assert_int_eq(is_taken(all[i].codec, bytes, len, 0, &src, &room), 0);
    }
}

TEST(headers_are_read_as_their_formats_say)
{
    static const struct {
        const char *codec, *bytes;
        size_t len, limit;
        int is_taken;
        size_t room, at, left; /* of the result, and where src is then */
    } all[] = {
        /* a raw block of two bytes: with a length of one byte; with a window */
        {"zstd", "\x28\xB5\x2F\xFD\x20\x02\x11\0\0ab", 11, 9, 1, 2, 0, 11},
        {"zstd", "\x28\xB5\x2F\xFD\x20\x02\x11\0\0ab", 11, 1, 0, 0, 0, 0},
        {"zstd", "\x28\xB5\x2F\xFD\x80\x38\x02\0\0\0\x11\0\0ab", 15, 9, 1, 2, 0, 15},
        {"zstd", "\x28\xB5\x2F\xFD\xC0\x38\x02\0\0\0\0\0\0\0\x11\0\0ab", 19, 9, 1, 2, 0, 19},
        {"zstd", "\x28\xB5\x2F\xFD\x40\x38\x02\0\x11\0\0ab", 13, 300, 1, 258, 0, 13},
        {"zstd", "\x28\xB5\x2F\xFD\0\x38\x11\0\0ab", 11, 9, 0, 0, 0, 0}, /* no length */
        {"zstd", "\x28\xB5\x2F\xFD\x20\0\x01\0\0", 9, 9, 0, 0, 0, 0},    /* no content */
        {"zstd", "\x28\xB5\x2F\xFD\x21\x07\x02\x11\0\0ab", 12, 9, 0, 0, 0, 0}, /* a dictionary */
        {"zstd", "\x28\xB5\x2F\xFD\x21\x02\x11\0\0ab", 11, 9, 0, 0, 0, 0}, /* a number of one */
        {"zstd", "\x28\xB5\x2F\xFD\x20\x02\x11\0\0ab\x28\xB5\x2F\xFD\x20\x02\x11\0\0ab", 22,
         9, 0, 0, 0, 0}, /* two frames */
        {"zstd", "\x28\xB5\x2F\xFD\x20\x02\x10\0\0a", 10, 9, 0, 0, 0, 0}, /* it ends elsewhere */
        {"zstd", "\x28\xB5\x2F\xFD\x28\x02\x11\0\0ab", 11, 9, 0, 0, 0, 0}, /* a reserved bit */
        {"zstd", "\x28\xB5\x2F\xFD\x24\x02\x11\0\0ab", 11, 9, 0, 0, 0, 0}, /* no checksum */
        {"zstd", "\x28\xB5\x2F\xFD\x24\x02\x11\0\0ab1234", 15, 9, 1, 2, 0, 15},
        {"zstd", "\x28\xB5\x2F\xFD\x20\x02\x17\0\0ab", 11, 9, 0, 0, 0, 0}, /* no such block */
        {"zstd", "\x28\xB5\x2F\xFD\x20\x02\x10\0\0ab", 11, 9, 0, 0, 0, 0}, /* no last block */
        {"zstd", "\x28\xB5\x2F\xFD\x20\x02\x12\0\0a\x01\0\0", 13, 9, 1, 2, 0, 13}, /* repeated */
        {"numcodecs.lz4", "\x02\0\0\0\x20" "ab", 7, 2, 1, 2, 4, 3},
        {"numcodecs.lz4", "\x02\0\0\0\x20" "ab", 7, 1, 0, 0, 0, 0},
        {"numcodecs.lz4", "\0\0\0\0\0", 5, 9, 0, 0, 0, 0},
        {"numcodecs.lz4", "\x02\0\0\0", 4, 9, 0, 0, 0, 0},
        {"gzip", "\x1F\x8B\x08\0\0\0\0\0\0\xFF" "deflate" "1234\x05\0\0\0", 25, 5, 1, 5, 10, 7},
        {"gzip", "\x1F\x8B\x08\0\0\0\0\0\0\xFF" "deflate" "1234\x05\0\0\0", 25, 6, 0, 0, 0, 0},
        {"gzip", "\x1F\x8B\x08\x20\0\0\0\0\0\xFF" "deflate" "1234\x05\0\0\0", 25, 5, 0, 0, 0, 0},
        {"gzip", "\x1F\x8B\x08\x04\0\0\0\0\0\xFF\xFF\xFF" "flate" "1234\x05\0\0\0", 25, 5, 0, 0, 0,
         0},
        {"gzip", "\x1F\x8B\x08\x08\0\0\0\0\0\xFFname is not ended", 27, 5, 0, 0, 0, 0},
        {"gzip", "\x1F\x8B\x08\x0A\0\0\0\0\0\xFFname\x05\x01\x01\x01", 18, 0x01010105, 0, 0, 0, 0},
        {"gzip", "\x78\x9C" "deflate" "1234", 13, 5, 0, 0, 0, 0}, /* of zlib: another name */
        {"numcodecs.zlib", "\x78\x9C" "deflate" "1234", 13, 5, 1, 5, 2, 7},
        {"numcodecs.zlib", "\x78\x9D" "deflate" "1234", 13, 5, 0, 0, 0, 0},
        {"numcodecs.zlib", "\x88\x1C" "deflate" "1234", 13, 5, 0, 0, 0, 0}, /* the window */
        {"numcodecs.zlib", "\x78\xBB" "deflate" "1234", 13, 5, 0, 0, 0, 0}, /* a dictionary */
    };
    for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
        brc_span src;
        size_t room;
        const int rc = is_taken(all[i].codec, all[i].bytes, all[i].len, all[i].limit, &src, &room);
        ck_assert_msg(rc == all[i].is_taken, "%d %s", (int)i, all[i].codec);
        if (!rc)
            continue;
        ck_assert_uint_eq(room, all[i].room);
        ck_assert_uint_eq((size_t)(src.data - (const uint8_t *)all[i].bytes), all[i].at);
        ck_assert_uint_eq(src.len, all[i].left);
    }
}

/* ---- the library -------------------------------- */

CASE("library", .setup = start, .teardown = stop);

/* Asks for the library in a new registry, and gives what its list says of zstd. */
static int asked(const char *library, brc_codec_info *info)
{
    static brc_registry *reg;
    char path[4096];
    brc_registry_free(reg);
    OK(&k.t, brc_registry_new(&reg, &k.t.err));
    plugin_path(path, sizeof(path), library);
    const int rc = brc_registry_use_nvcomp(reg, path, &k.t.err);
    for (size_t i = 0; brc_registry_each(reg, i, info); i++)
        if (strcmp(info->implementation, "nvcomp") == 0 && strcmp(info->name, "zstd") == 0)
            break;
    ck_assert_str_eq(info->implementation, "nvcomp");
    ck_assert_str_eq(info->owner, "breccia");
    ck_assert_uint_eq(info->device, BRC_MEMORY_CUDA);
    if (rc < 0) { /* the reason is in the list too, and for whoever wants it nevertheless */
        brc_error why = BRC_ERROR_INIT;
        ck_assert_int_eq(rc, BRC_EUNSUPPORTED);
        ck_assert_str_eq(info->why, k.t.err.message);
        ck_assert(!(info->flags & BRC_IMPL_USABLE));
        ck_assert_int_eq(brc_registry_pin(reg, "zstd", "nvcomp", &why), BRC_EUNSUPPORTED);
        ck_assert_ptr_nonnull(strstr(why.message, k.t.err.message));
    }
    return rc;
}

static void is_refused(const char *library, const char *why)
{
    brc_codec_info info;
    ck_assert_int_eq(asked(library, &info), BRC_EUNSUPPORTED);
    ck_assert_msg(strstr(info.why, why) != NULL, "\"%s\" lacks \"%s\"", info.why, why);
}

TEST(a_library_that_cannot_be_used_says_why_in_the_list)
{
    brc_codec_info info;
    for (size_t i = 0; i < 3; i++)
        ck_assert_int_eq(asked(versions[i], &info), BRC_OK);
    ck_assert_str_eq(info.why, "the highest rank");
    ck_assert(info.cost > 0 && info.call_cost > 0);
    brc_registry *usual;
    OK(&k.t, brc_registry_new(&usual, &k.t.err));
    const int rc = brc_registry_use_nvcomp(usual, NULL, &k.t.err);
    brc_registry_free(usual);
    ck_assert(rc == BRC_OK || strstr(k.t.err.message, "libnvcomp.so") != NULL);
    is_refused("nvcomp_none", "there is no ");
    is_refused("nvcomp_part", "is too old");
    is_refused("device", "is too old"); /* another library */
    *count("nvcomp_version") = 3006;
    is_refused("nvcomp5", "nvCOMP 3.0.6, and this breccia knows versions 4 to 6");
    *count("nvcomp_version") = 7123;
    is_refused("nvcomp5", "nvCOMP 7.1.23, and this breccia knows versions 4 to 6");
    *count("nvcomp_version") = 5300;
    ck_assert_int_eq(asked("nvcomp5", &info), BRC_OK);
    *count("nvcomp_version") = 4200; /* its functions have other names */
    is_refused("nvcomp5", "is too old");
    *count("nvcomp_version") = 0;
    *count("nvcomp_fails") = 4;
    is_refused("nvcomp5", "does not tell its version (11)");
    *count("nvcomp_fails") = 3;
    is_refused("nvcomp5", "aligned in a way that is not known");
}

TEST(nvcomp_is_asked_for_once_and_before_the_first_file)
{
    brc_registry *reg;
    char path[4096];
    plugin_path(path, sizeof(path), "nvcomp5");
    FAILS(&k.t, BRC_EMISUSE, brc_registry_use_nvcomp(k.reg, path, &k.t.err));
    FAILS(&k.t, BRC_EINVAL, brc_registry_use_nvcomp(NULL, path, &k.t.err));
    OK(&k.t, brc_registry_new(&reg, &k.t.err));
    OK(&k.t, brc_registry_use_nvcomp(reg, path, &k.t.err));
    FAILS(&k.t, BRC_EEXISTS, brc_registry_use_nvcomp(reg, path, &k.t.err));
    brc_registry_free(reg);
}
