/*
 * Codecs for memory of CUDA devices, by nvCOMP's low-level interface for batches in C. The library
 * is loaded when a program asks for it; this build needs nothing of nvCOMP. What follows is from
 * the headers of versions 4.0, 4.2, 5.0, 5.1, 5.3 and 6.0 (nvcomp/zstd.h, lz4.h, deflate.h,
 * shared_types.h, version.h).
 *
 *   - nvcompGetProperties() tells the version as major * 1000 + minor * 100 + patch. Version 3 has
 *     no stable name of the library and documents no alignments: it is refused, like any that is
 *     newer than 6.
 *   - nvcompBatched<Codec>DecompressAsync() takes lists in the device's memory: of addresses and
 *     lengths of encoded chunks, of room for the results; it fills in lengths and codes. It then
 *     gets the number of chunks, temporary memory and its length, the list of addresses of the
 *     results, since version 5 options by value, the list of codes, and the stream.
 *   - How much temporary memory: ...GetTempSizeEx() (4: chunks, longest result, the answer, all
 *     results together), ...GetTempSizeAsync() (5: with options before the answer),
 *     ...GetTempSize() (6: with the stream at the end). None of them starts work on the device.
 *   - Options are 64 bytes, of which the first number is the backend: 2 is the implementation in
 *     CUDA, the only one that is used here, because the hardware's does not report damage. The
 *     rest is 0.
 *   - Alignments: of version 4, constants of 8 bytes for zstd and deflate and 4 for LZ4; since
 *     version 5 ...GetRequiredAlignments() tells them.
 *   - The longest chunk, encoded or decoded: 2^31 - 1 bytes of zstd, 2^32 - 1 of the others.
 *
 * The headers say since version 5.1 that damaged chunks may have any effect on the device. So only
 * chunks go there whose frames have been looked at, and nvCOMP is used only where a program names
 * it. Whatever it refuses or finds damaged is decoded by the host, which has the words for that.
 */
#include <stdlib.h>
#include <string.h>

#include "../base/alloc.h"
#include "memory.h"

/* ---- the library, as its published interface is -------------------------------- */

enum { CODE_GOOD = 0, CODE_CUDA = 1000 }; /* nvcompStatus_t */
enum { OLDEST = 4, NEWEST = 6 };          /* versions that are known */
enum { BACKEND_CUDA = 2 };
#define MOST_LEN (((uint64_t)1 << 31) - 1)

typedef struct nvcomp_options {
    int32_t backend;
    char reserved[60];
} nvcomp_options;
_Static_assert(sizeof(nvcomp_options) == 64, "as the headers have it");

typedef struct nvcomp_properties {
    uint32_t version, runtime;
} nvcomp_properties;

typedef struct nvcomp_alignments {
    size_t input, output, temp;
} nvcomp_alignments;

typedef int temp_size_4(size_t n, size_t most, size_t *out, size_t total);
typedef int temp_size_5(size_t n, size_t most, nvcomp_options options, size_t *out, size_t total);
typedef int temp_size_6(size_t n, size_t most, nvcomp_options options, size_t *out, size_t total,
                        void *stream);
typedef int alignments_5(nvcomp_options options, nvcomp_alignments *out);
typedef int decompress_4(const void *from, const void *from_len, const void *room, void *len,
                         size_t n, void *temp, size_t temp_len, const void *to, void *codes,
                         void *stream);
typedef int decompress_5(const void *from, const void *from_len, const void *room, void *len,
                         size_t n, void *temp, size_t temp_len, const void *to,
                         nvcomp_options options, void *codes, void *stream);

/* The functions of one codec, as brc_library_load() sets them. */
typedef struct nvcomp_functions {
    void (*temp_size)(void);
    void (*decompress)(void);
    void (*alignments)(void); /* not in version 4 */
} nvcomp_functions;

enum { OF_ZSTD, OF_LZ4, OF_DEFLATE, ALGORITHMS };

#define FUNCTIONS_OF(codec, temp_size)                                                     \
    {"nvcompBatched" codec "DecompressGetTempSize" temp_size,                              \
     "nvcompBatched" codec "DecompressAsync",                                              \
     "nvcompBatched" codec "DecompressGetRequiredAlignments", NULL}
static const char *const function_names[NEWEST - OLDEST + 1][ALGORITHMS][4] = {
    {{"nvcompBatchedZstdDecompressGetTempSizeEx", "nvcompBatchedZstdDecompressAsync", NULL},
     {"nvcompBatchedLZ4DecompressGetTempSizeEx", "nvcompBatchedLZ4DecompressAsync", NULL},
     {"nvcompBatchedDeflateDecompressGetTempSizeEx", "nvcompBatchedDeflateDecompressAsync", NULL}},
    {FUNCTIONS_OF("Zstd", "Async"), FUNCTIONS_OF("LZ4", "Async"), FUNCTIONS_OF("Deflate", "Async")},
    {FUNCTIONS_OF("Zstd", ""), FUNCTIONS_OF("LZ4", ""), FUNCTIONS_OF("Deflate", "")},
};
static const nvcomp_alignments alignments_of_4[ALGORITHMS] = {{8, 8, 8}, {4, 4, 4}, {8, 8, 8}};

/* ---- codecs -------------------------------- */

typedef int nvcomp_look(brc_span *src, brc_buf *dst);
static int zstd_look(brc_span *src, brc_buf *dst);
static int lz4_look(brc_span *src, brc_buf *dst);
static int gzip_look(brc_span *src, brc_buf *dst);
static int gzip_or_zlib_look(brc_span *src, brc_buf *dst);

/* The cost of a decoded byte is about what NVIDIA publishes for batches that fill a device, and has
 * not been measured. A single chunk is decoded by a small part of the device, so a call takes as
 * long as its longest chunk: hence the cost of calls, of which a batch has one. */
static const struct nvcomp_codec {
    const char *spec;
    int algorithm;
    nvcomp_look *look;
    uint32_t cost, call_cost;
} nvcomp_codecs[BRC_NVCOMP_IMPLS] = {
    {"zstd", OF_ZSTD, zstd_look, 40, 1000000},
    {"numcodecs.zstd", OF_ZSTD, zstd_look, 40, 1000000},
    {"numcodecs.lz4", OF_LZ4, lz4_look, 20, 300000},
    {"gzip", OF_DEFLATE, gzip_look, 60, 2000000},
    {"numcodecs.gzip", OF_DEFLATE, gzip_or_zlib_look, 60, 2000000},
    {"numcodecs.zlib", OF_DEFLATE, gzip_or_zlib_look, 60, 2000000},
};

/* An implementation's own context; it never changes. */
typedef struct nvcomp_impl {
    const struct nvcomp_codec *codec;
    uint32_t major;
    nvcomp_functions functions;
    nvcomp_alignments aligned;
} nvcomp_impl;

enum { MOST_TOGETHER = 64 };
#define MOST_TEMP ((size_t)256 << 20) /* of temporary memory for one call */

/* The lists of a call: in the host's memory, and in the same form at the beginning of a block of
 * the device. Temporary memory follows there. */
typedef struct nvcomp_lists {
    uint64_t from[MOST_TOGETHER], from_len[MOST_TOGETHER], room[MOST_TOGETHER], to[MOST_TOGETHER];
    uint64_t len[MOST_TOGETHER];
    int32_t codes[MOST_TOGETHER];
} nvcomp_lists;
#define LISTS_LEN ((sizeof(nvcomp_lists) + 255) / 256 * 256)

/* The context of one worker: the driver, and memory of the device that it used last. */
typedef struct nvcomp_scratch {
    const brc_buffer_prototype *cuda;
    void *state;
    brc_block block; /* data NULL: none                                         */
    nvcomp_lists lists;
} nvcomp_scratch;

/* ---- frames, in the host's memory -------------------------------- */

static uint64_t load(const uint8_t *at, size_t size)
{
    uint64_t value = 0;
    for (size_t i = 0; i < size; i++)
        value |= (uint64_t)at[i] << (8 * i);
    return value;
}

/* Returns whether the blocks of a frame of zstd (RFC 8878) end where `src` does. */
static int zstd_blocks_fit(brc_span src, size_t at, int has_checksum)
{
    enum { RAW, RLE, COMPRESSED, RESERVED, HEADER = 3, MOST_BLOCK = 128 << 10 };
    for (int is_last = 0; !is_last;) {
        if (src.len - at < HEADER)
            return 0;
        const uint64_t header = load(src.data + at, HEADER);
        const int kind = (int)(header >> 1 & 3);
        const size_t len = kind == RLE ? 1 : (size_t)(header >> 3);
        at += HEADER;
        if (kind == RESERVED || header >> 3 > MOST_BLOCK || len > src.len - at)
            return 0;
        at += len;
        is_last = (int)(header & 1);
    }
    return src.len - at == (has_checksum ? 4u : 0u);
}

/* Takes one frame that says how long its content is and needs no dictionary. */
static int zstd_look(brc_span *src, brc_buf *dst)
{
    static const uint8_t size_of_len[4] = {0, 2, 4, 8};
    enum { MAGIC = 4, LEN_16_FROM = 256 };
    if (src->len <= MAGIC || load(src->data, MAGIC) != 0xFD2FB528)
        return 0;
    const uint8_t how = src->data[MAGIC];
    const int is_single = how >> 5 & 1;
    size_t size = size_of_len[how >> 6], at = MAGIC + 1 + (is_single ? 0 : 1);
    if (size == 0 && is_single)
        size = 1;
    if ((how & 0x0B) != 0 || size == 0 || src->len - MAGIC - 1 < size + 1)
        return 0; /* a dictionary, a reserved bit; no length; no end */
    const uint64_t len = load(src->data + at, size) + (size == 2 ? LEN_16_FROM : 0);
    at += size;
    if (len == 0 || len > dst->limit || !zstd_blocks_fit(*src, at, how >> 2 & 1))
        return 0;
    dst->limit = (size_t)len;
    return 1;
}

/* Takes the block behind the length that numcodecs writes. */
static int lz4_look(brc_span *src, brc_buf *dst)
{
    enum { HEADER = 4 };
    if (src->len <= HEADER)
        return 0;
    const uint64_t len = load(src->data, HEADER);
    if (len == 0 || len > dst->limit)
        return 0;
    dst->limit = (size_t)len;
    *src = (brc_span){src->data + HEADER, src->len - HEADER};
    return 1;
}

/* Finds the end of a text in a gzip header. Returns 0 if there is none. */
static size_t gzip_text_end(brc_span src, size_t at)
{
    const uint8_t *end = at < src.len ? memchr(src.data + at, 0, src.len - at) : NULL;
    return end != NULL ? (size_t)(end - src.data) + 1 : 0;
}

/* Returns where the data of a gzip member (RFC 1952) begin, or 0. */
static size_t gzip_header_len(brc_span src)
{
    enum { FIXED = 10, HAS_SUM = 2, HAS_EXTRA = 4, HAS_NAME = 8, HAS_COMMENT = 16, UNKNOWN = 0xE0 };
    size_t at = FIXED;
    if (src.len < FIXED + 2 || load(src.data, 3) != 0x088B1F || (src.data[3] & UNKNOWN))
        return 0;
    const uint8_t has = src.data[3];
    if (has & HAS_EXTRA)
        at += 2 + (size_t)load(src.data + at, 2);
    for (int bit = HAS_NAME; bit <= HAS_COMMENT; bit *= 2)
        if ((has & bit) && (at = gzip_text_end(src, at)) == 0)
            return 0;
    return at + (has & HAS_SUM ? 2 : 0);
}

/* Takes a member that says it has the whole chunk: then there are no others. Its checksum is not
 * compared: the checksum of the stored bytes was. */
static int gzip_look(brc_span *src, brc_buf *dst)
{
    enum { TRAILER = 8 };
    const size_t at = gzip_header_len(*src);
    if (at == 0 || at >= src->len || src->len - at <= TRAILER ||
        load(src->data + src->len - 4, 4) != dst->limit)
        return 0;
    *src = (brc_span){src->data + at, src->len - at - TRAILER};
    return 1;
}

/* Takes a stream of zlib (RFC 1950) too. It does not say how long its content is, so the result
 * has to be as long as a chunk. */
static int gzip_or_zlib_look(brc_span *src, brc_buf *dst)
{
    enum { HEADER = 2, TRAILER = 4, DEFLATE = 8, MOST_WINDOW = 7, HAS_DICTIONARY = 0x20 };
    if (src->len >= 2 && load(src->data, 2) == 0x8B1F)
        return gzip_look(src, dst);
    if (src->len <= HEADER + TRAILER || (src->data[0] & 15) != DEFLATE ||
        src->data[0] >> 4 > MOST_WINDOW || (src->data[0] * 256 + src->data[1]) % 31 != 0 ||
        (src->data[1] & HAS_DICTIONARY))
        return 0;
    *src = (brc_span){src->data + HEADER, src->len - HEADER - TRAILER};
    return 1;
}

static int nvcomp_takes(void *ctx, const void *state, brc_span *src, brc_buf *dst)
{
    const nvcomp_impl *impl = ctx;
    const size_t room = dst->limit;
    (void)state;
    if (room == 0 || (uintptr_t)dst->data % impl->aligned.output != 0)
        return 0;
    return impl->codec->look(src, dst) && src->len <= MOST_LEN && dst->limit <= MOST_LEN;
}

/* ---- calls -------------------------------- */

static nvcomp_options default_options(void)
{
    nvcomp_options options = {.backend = BACKEND_CUDA};
    return options;
}

/* The device's context is current. */
static int temp_size_of(const nvcomp_impl *impl, const nvcomp_lists *lists, size_t n, void *stream,
                        size_t *out)
{
    const nvcomp_options options = default_options();
    size_t most = 0, total = 0;
    void (*f)(void) = impl->functions.temp_size;
    for (size_t i = 0; i < n; i++) {
        total += (size_t)lists->room[i];
        most = lists->room[i] > most ? (size_t)lists->room[i] : most;
    }
    *out = 0;
    if (impl->major == OLDEST)
        return ((temp_size_4 *)f)(n, most, out, total);
    if (impl->major == OLDEST + 1)
        return ((temp_size_5 *)f)(n, most, options, out, total);
    return ((temp_size_6 *)f)(n, most, options, out, total, stream);
}

/* The device's context is current. `at` is the address of the lists. */
static int start_decompressing(const nvcomp_impl *impl, uint8_t *at, size_t n, size_t temp,
                               void *stream)
{
    const nvcomp_options options = default_options();
    const uint8_t *from = at + offsetof(nvcomp_lists, from);
    const uint8_t *from_len = at + offsetof(nvcomp_lists, from_len);
    const uint8_t *room = at + offsetof(nvcomp_lists, room);
    const uint8_t *to = at + offsetof(nvcomp_lists, to);
    uint8_t *len = at + offsetof(nvcomp_lists, len), *codes = at + offsetof(nvcomp_lists, codes);
    uint8_t *temp_at = temp > 0 ? at + LISTS_LEN : NULL;
    void (*f)(void) = impl->functions.decompress;
    if (impl->major == OLDEST)
        return ((decompress_4 *)f)(from, from_len, room, len, n, temp_at, temp, to, codes, stream);
    return ((decompress_5 *)f)(from, from_len, room, len, n, temp_at, temp, to, options, codes,
                               stream);
}

/* ---- what a worker keeps -------------------------------- */

static int nvcomp_scratch_new(void *ctx, void **out, const void *state, brc_error *err)
{
    size_t n;
    void *p;
    (void)ctx;
    (void)state;
    BRC_TRY(brc_new(&p, sizeof(nvcomp_scratch), err));
    nvcomp_scratch *s = p;
    s->cuda = brc_memory_cuda(&n); /* the first is that of devices */
    const int rc = s->cuda->open(s->cuda->ctx, &s->state, err);
    if (rc < 0)
        free(s);
    else
        *out = s;
    return rc;
}

static void block_drop(nvcomp_scratch *s)
{
    if (s->block.data != NULL)
        s->cuda->free(s->cuda->ctx, s->state, &s->block);
    s->block.data = NULL;
}

static void nvcomp_scratch_free(void *ctx, void *scratch)
{
    nvcomp_scratch *s = scratch;
    (void)ctx;
    block_drop(s);
    s->cuda->close(s->cuda->ctx, s->state);
    free(s);
}

/* Makes the block have `len` bytes of the device. They do not belong to the stream, because the
 * next call may come for another. */
static int block_room(nvcomp_scratch *s, uint32_t device_id, size_t len, brc_error *err)
{
    if (s->block.data != NULL && s->block.len >= len && s->block.device_id == device_id)
        return BRC_OK;
    block_drop(s);
    s->block = (brc_block){
        .size = sizeof(s->block), .device = BRC_MEMORY_CUDA, .device_id = device_id};
    const int rc = s->cuda->alloc(s->cuda->ctx, s->state, len, 0, NULL, &s->block, err);
    if (rc < 0)
        s->block.data = NULL;
    return rc;
}

static int lists_wait(nvcomp_scratch *s, const brc_there *there, brc_error *err)
{
    void *event;
    BRC_TRY(s->cuda->record(s->cuda->ctx, s->state, there->device_id, there->stream, &event, err));
    return s->cuda->wait(s->cuda->ctx, s->state, event, err);
}

/* ---- decoding -------------------------------- */

static void lists_fill(nvcomp_lists *lists, size_t n, const brc_span *src, brc_buf *const *dst)
{
    for (size_t i = 0; i < n; i++) {
        lists->from[i] = (uint64_t)(uintptr_t)src[i].data;
        lists->from_len[i] = src[i].len;
        lists->room[i] = dst[i]->limit;
        lists->to[i] = (uint64_t)(uintptr_t)dst[i]->data;
        lists->len[i] = 0;
        lists->codes[i] = -1; /* nvCOMP must set it */
    }
}

/* Finds how many of n chunks one call may decode, and the temporary memory for it. */
static int call_size(const nvcomp_impl *impl, nvcomp_scratch *s, const brc_there *there, size_t *n,
                     size_t *temp, brc_error *err)
{
    int code = CODE_GOOD;
    BRC_TRY(brc_cuda_enter(s->state, there->device_id, err));
    for (;; *n = (*n + 1) / 2) {
        code = temp_size_of(impl, &s->lists, *n, there->stream, temp);
        if (code != CODE_GOOD || *temp <= MOST_TEMP || *n == 1)
            break;
    }
    brc_cuda_leave(s->state);
    return code == CODE_GOOD && *temp <= MOST_TEMP ? BRC_OK : BRC_EUNSUPPORTED;
}

/* Starts a call whose lists are in the host's memory, and the copies around it. */
static int call_start(const nvcomp_impl *impl, nvcomp_scratch *s, const brc_there *there, size_t n,
                      size_t temp, brc_error *err)
{
    const brc_rows put = {.size = sizeof(put), .host = (uint8_t *)&s->lists,
                          .width = sizeof(s->lists), .rows = 1, .stream = there->stream};
    brc_rows get = put;
    get.at = offsetof(nvcomp_lists, len);
    get.host += get.at;
    get.width -= get.at;
    BRC_TRY(s->cuda->from_host(s->cuda->ctx, s->state, &s->block, &put, err));
    BRC_TRY(brc_cuda_enter(s->state, there->device_id, err));
    const int code = start_decompressing(impl, s->block.data, n, temp, there->stream);
    brc_cuda_leave(s->state);
    if (code == CODE_CUDA)
        return brc_fail(err, BRC_EIO, "nvCOMP cannot decode on device %u: CUDA has failed",
                        (unsigned)there->device_id);
    if (code != CODE_GOOD)
        return BRC_EUNSUPPORTED;
    return s->cuda->to_host(s->cuda->ctx, s->state, &s->block, &get, err);
}

/* Decodes the first of n chunks, and sets *n to how many these are. */
static int decode_some(const nvcomp_impl *impl, nvcomp_scratch *s, const brc_there *there,
                       size_t *n, const brc_span *src, brc_buf *const *dst, int *status,
                       brc_error *err)
{
    brc_error ignored = BRC_ERROR_INIT;
    size_t temp = 0;
    lists_fill(&s->lists, *n, src, dst);
    BRC_TRY(call_size(impl, s, there, n, &temp, err));
    const int has_room = block_room(s, there->device_id, LISTS_LEN + temp, err);
    if (has_room < 0)
        return has_room == BRC_ENOMEM ? BRC_EUNSUPPORTED : has_room;
    int rc = call_start(impl, s, there, *n, temp, err);
    const int waited = lists_wait(s, there, rc < 0 ? &ignored : err);
    rc = rc < 0 ? rc : waited;
    for (size_t i = 0; rc == BRC_OK && i < *n; i++) {
        const int is_good = s->lists.codes[i] == CODE_GOOD && s->lists.len[i] == dst[i]->limit;
        status[i] = is_good ? BRC_OK : BRC_EUNSUPPORTED;
        dst[i]->len = is_good ? dst[i]->limit : 0;
    }
    return rc;
}

static int nvcomp_decode(void *ctx, const void *state, void *scratch, const brc_there *there,
                         size_t n, const brc_span *src, brc_buf *const *dst, int *status,
                         brc_error *err)
{
    int first = BRC_OK;
    (void)state;
    for (size_t at = 0, some; at < n; at += some) {
        some = n - at < MOST_TOGETHER ? n - at : MOST_TOGETHER;
        const int rc =
            decode_some(ctx, scratch, there, &some, src + at, dst + at, status + at, err);
        for (size_t i = at; i < at + some; i++) {
            if (rc < 0)
                status[i] = rc;
            first = first < 0 ? first : status[i];
        }
    }
    return first;
}

/* ---- loading -------------------------------- */

static int never(void *ctx)
{
    (void)ctx;
    return 0;
}

static void nvcomp_destroy(void *ctx)
{
    free(ctx);
}

static brc_library library_of(const char *const *files, const char *const *functions)
{
    return (brc_library){.size = sizeof(brc_library),
                         .name = files[1] == NULL ? files[0] : "libnvcomp.so",
                         .use = "with which chunks are decoded on CUDA devices",
                         .package = "none; NVIDIA's packages of nvCOMP 4 to 6 have it",
                         .files = files,
                         .functions = functions};
}

static int version_of(uint32_t *out, const char *const *files, brc_error *err)
{
    static const char *const names[] = {"nvcompGetProperties", NULL};
    struct {
        int (*get)(nvcomp_properties *out);
    } functions;
    nvcomp_properties properties = {0, 0};
    const brc_library library = library_of(files, names);
    BRC_TRY(brc_library_load(&library, &functions, err));
    const int code = functions.get(&properties);
    if (code != CODE_GOOD)
        return brc_fail(err, BRC_EUNSUPPORTED, "%s does not tell its version (%d)", library.name,
                        code);
    *out = properties.version;
    if (*out / 1000 >= OLDEST && *out / 1000 <= NEWEST)
        return BRC_OK;
    return brc_fail(err, BRC_EUNSUPPORTED,
                    "%s is nvCOMP %u.%u.%u, and this breccia knows versions %d to %d: name one of "
                    "these",
                    library.name, *out / 1000, *out % 1000 / 100, *out % 100, OLDEST, NEWEST);
}

static int load_codec(nvcomp_impl *impl, uint32_t version, const char *const *files,
                      brc_error *err)
{
    const int algorithm = impl->codec->algorithm;
    impl->major = version / 1000;
    const brc_library library =
        library_of(files, function_names[impl->major - OLDEST][algorithm]);
    impl->aligned = alignments_of_4[algorithm];
    BRC_TRY(brc_library_load(&library, &impl->functions, err));
    if (impl->major == OLDEST)
        return BRC_OK;
    nvcomp_alignments *a = &impl->aligned;
    const int code = ((alignments_5 *)impl->functions.alignments)(default_options(), a);
    /* what breccia gives: encoded chunks at 64 bytes, temporary memory at 256 */
    if (code == CODE_GOOD && a->input > 0 && 64 % a->input == 0 && a->temp > 0 &&
        256 % a->temp == 0 && a->output > 0)
        return BRC_OK;
    return brc_fail(err, BRC_EUNSUPPORTED,
                    "%s wants chunks of %s aligned in a way that is not known", library.name,
                    impl->codec->spec);
}

static int load_codecs(brc_codec_impl *impls, const char *library, brc_error *err)
{
    const char *const usual[] = {"libnvcomp.so.6", "libnvcomp.so.5", "libnvcomp.so.4", NULL};
    const char *const named[] = {library, NULL};
    const char *const *files = library != NULL ? named : usual;
    uint32_t version = 0;
    BRC_TRY(version_of(&version, files, err));
    for (size_t i = 0; i < BRC_NVCOMP_IMPLS; i++)
        BRC_TRY(load_codec(impls[i].ctx, version, files, err));
    return BRC_OK;
}

int brc_memory_nvcomp(brc_codec_impl out[BRC_NVCOMP_IMPLS], const char *library, brc_error *err)
{
    for (size_t i = 0; i < BRC_NVCOMP_IMPLS; i++) {
        const struct nvcomp_codec *codec = &nvcomp_codecs[i];
        out[i] = (brc_codec_impl){.size = sizeof(out[i]),
                                  .spec = codec->spec,
                                  .name = "nvcomp",
                                  .memory = BRC_MEMORY_CUDA,
                                  .scratch_new = nvcomp_scratch_new,
                                  .scratch_free = nvcomp_scratch_free,
                                  .destroy = nvcomp_destroy,
                                  .decode_there = nvcomp_decode,
                                  .takes_there = nvcomp_takes,
                                  .cost = codec->cost,
                                  .call_cost = codec->call_cost};
        int rc = brc_new(&out[i].ctx, sizeof(nvcomp_impl), err);
        while (rc < 0 && i > 0)
            free(out[--i].ctx);
        BRC_TRY(rc);
        ((nvcomp_impl *)out[i].ctx)->codec = codec;
    }
    const int rc = load_codecs(out, library, err);
    for (size_t i = 0; rc < 0 && i < BRC_NVCOMP_IMPLS; i++)
        out[i].probe = never;
    return rc;
}
