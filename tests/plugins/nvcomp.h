/*
 * A library with the entry points of nvCOMP that breccia uses, of version MAJOR, over the driver of tests/plugins/cuda.c: what it
 * is asked to decode is decoded by zstd, LZ4 and zlib when that driver comes to it in its stream. It checks its arguments: all
 * lists, chunks and temporary memory are the device's, nothing is outside its memory, all is aligned as the version wants
 * it, and options are those of CUDA's implementation with zeros behind.
 */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <lz4.h>
#include <zlib.h>
#include <zstd.h>

#define API __attribute__((visibility("default")))

enum { GOOD = 0, WRONG_VALUE = 10, NOT_SUPPORTED = 11, CANNOT_DECOMPRESS = 12, CUDA_ERROR = 1000 };
enum { OF_ZSTD, OF_LZ4, OF_DEFLATE };

/* Counters that tests look at, and switches. */
API extern unsigned long nvcomp_calls, nvcomp_chunks, nvcomp_faults, nvcomp_fails, nvcomp_code, nvcomp_damages, nvcomp_temp, nvcomp_version;
unsigned long nvcomp_calls, nvcomp_chunks; /* calls that decoded, and their chunks            */
unsigned long nvcomp_faults;  /* arguments that the library may not be given                   */
unsigned long nvcomp_fails;   /* 1: asking for temporary memory fails, 2: decoding, 3: alignments, 4: the version */
unsigned long nvcomp_code;    /* with this code; 0: NOT_SUPPORTED                              */
unsigned long nvcomp_damages; /* 1: the second chunk of a call, 2: every one has no code, 3: every one is a byte short */
unsigned long nvcomp_temp;    /* bytes of temporary memory for each chunk; 0: 1000             */
unsigned long nvcomp_version; /* 0: MAJOR.0.0                                                  */

/* Three functions of the driver. */
int fake_launch(void (*run)(void *arg), void *arg, void *stream);
int fake_is_there(uint64_t at, size_t len);
int fake_open(uint64_t at, size_t len, int opens);

typedef struct options {
    int32_t backend;
    char reserved[60];
} options;
typedef struct alignments {
    size_t input, output, temp;
} alignments;
typedef struct properties {
    uint32_t version, runtime;
} properties;

typedef struct call {
    int algorithm;
    size_t n, temp_len;
    uint64_t from, from_len, room, len, temp, to, codes;
} call;

static alignments aligned(int algorithm)
{
    if (MAJOR == 4)
        return algorithm == OF_LZ4 ? (alignments){4, 4, 4} : (alignments){8, 8, 8};
    return (alignments){algorithm == OF_DEFLATE ? 4 : 1, 1, algorithm == OF_ZSTD ? 8 : 1};
}

static void fault(void)
{
    __atomic_fetch_add(&nvcomp_faults, 1, __ATOMIC_RELAXED);
}

static int failing(unsigned long which)
{
    return nvcomp_fails != which ? GOOD : nvcomp_code != 0 ? (int)nvcomp_code : NOT_SUPPORTED;
}

static size_t inflate_all(const uint8_t *from, size_t from_len, uint8_t *to, size_t room)
{
    z_stream z;
    memset(&z, 0, sizeof(z));
    z.next_in = (Bytef *)(uintptr_t)from;
    z.avail_in = (uInt)from_len;
    z.next_out = to;
    z.avail_out = (uInt)room;
    if (inflateInit2(&z, -15) != Z_OK)
        return SIZE_MAX;
    const int rc = inflate(&z, Z_FINISH);
    inflateEnd(&z);
    return rc == Z_STREAM_END ? z.total_out : SIZE_MAX;
}

/* Returns the decoded length, or SIZE_MAX. */
static size_t decode(int algorithm, const uint8_t *from, size_t from_len, uint8_t *to, size_t room)
{
    if (algorithm == OF_ZSTD) {
        const size_t len = ZSTD_decompress(to, room, from, from_len);
        return ZSTD_isError(len) ? SIZE_MAX : len;
    }
    if (algorithm == OF_DEFLATE)
        return inflate_all(from, from_len, to, room);
    const int len = LZ4_decompress_safe((const char *)from, (char *)to, (int)from_len, (int)room);
    return len < 0 ? SIZE_MAX : (size_t)len;
}

/* Decodes the i-th chunk. The lists are open. */
static void run_chunk(const call *c, size_t i)
{
    const uint64_t from = ((uint64_t *)(uintptr_t)c->from)[i], to = ((uint64_t *)(uintptr_t)c->to)[i];
    const size_t from_len = ((uint64_t *)(uintptr_t)c->from_len)[i], room = ((uint64_t *)(uintptr_t)c->room)[i];
    const alignments a = aligned(c->algorithm);
    int32_t *code = (int32_t *)(uintptr_t)c->codes + i;
    uint64_t *len = (uint64_t *)(uintptr_t)c->len + i;
    if (from % a.input != 0 || to % a.output != 0 || !fake_open(from, from_len, 1) || !fake_open(to, room, 1)) {
        fault();
        return;
    }
    const size_t got = decode(c->algorithm, (const uint8_t *)(uintptr_t)from, from_len, (uint8_t *)(uintptr_t)to, room);
    (void)fake_open(from, from_len, 0);
    (void)fake_open(to, room, 0);
    nvcomp_chunks++;
    *len = got == SIZE_MAX ? 0 : got - (nvcomp_damages == 3);
    if (nvcomp_damages != 2)
        *code = got == SIZE_MAX || (nvcomp_damages == 1 && i == 1) ? CANNOT_DECOMPRESS : GOOD;
}

/* By the driver, when the stream has come so far. */
static void run_call(void *arg)
{
    call *c = arg;
    const uint64_t lists[] = {c->from, c->from_len, c->room, c->len, c->to, c->codes};
    for (size_t i = 0; i < c->n; i++) {
        for (size_t j = 0; j < 6; j++)
            if (!fake_open(lists[j], c->n * (j == 5 ? 4 : 8), 1))
                fault();
        run_chunk(c, i);
    }
    if (c->temp_len > 0 && fake_open(c->temp, c->temp_len, 1))
        memset((void *)(uintptr_t)c->temp, 0xAB, c->temp_len < 4096 ? c->temp_len : 4096);
    for (size_t j = 0; j < 6; j++)
        (void)fake_open(lists[j], c->n * (j == 5 ? 4 : 8), 0);
    if (c->temp_len > 0)
        (void)fake_open(c->temp, c->temp_len, 0);
    nvcomp_calls++;
    free(c);
}

static size_t temp_of(size_t n)
{
    return n * (nvcomp_temp > 0 ? nvcomp_temp : 1000);
}

static int temp_size(size_t n, size_t most, size_t *out, size_t total)
{
    if (n == 0 || most == 0 || total < most || total > n * most)
        fault();
    *out = temp_of(n);
    return failing(1);
}

static int start(call c, void *stream)
{
    const uint64_t lists[] = {c.from, c.from_len, c.room, c.len, c.to, c.codes};
    for (size_t j = 0; j < 6; j++)
        if (lists[j] % (j == 5 ? 4 : 8) != 0 || !fake_is_there(lists[j], c.n * (j == 5 ? 4 : 8)))
            fault();
    if (c.temp_len < temp_of(c.n) || c.temp % aligned(c.algorithm).temp != 0 || !fake_is_there(c.temp, c.temp_len))
        fault();
    if (failing(2) != GOOD)
        return failing(2);
    call *copy = malloc(sizeof(*copy));
    if (copy == NULL)
        return CUDA_ERROR;
    *copy = c;
    if (fake_launch(run_call, copy, stream) == 0)
        return GOOD;
    free(copy);
    return CUDA_ERROR;
}

API int nvcompGetProperties(properties *out);
int nvcompGetProperties(properties *out)
{
    out->version = nvcomp_version > 0 ? (uint32_t)nvcomp_version : MAJOR * 1000;
    out->runtime = 12080;
    return failing(4);
}

#define LISTS                                                                                                    \
    const void *from, const void *from_len, const void *room, void *len, size_t n, void *temp, size_t temp_len,  \
        const void *to
#define CALL_OF(which)                                                                                           \
    {(which), n, temp_len, (uint64_t)(uintptr_t)from, (uint64_t)(uintptr_t)from_len, (uint64_t)(uintptr_t)room,   \
     (uint64_t)(uintptr_t)len, (uint64_t)(uintptr_t)temp, (uint64_t)(uintptr_t)to, (uint64_t)(uintptr_t)codes}

#if MAJOR == 4
#define CODEC(codec, which)                                                                                      \
    API int nvcompBatched##codec##DecompressGetTempSizeEx(size_t n, size_t most, size_t *out, size_t total);     \
    int nvcompBatched##codec##DecompressGetTempSizeEx(size_t n, size_t most, size_t *out, size_t total)          \
    {                                                                                                            \
        return temp_size(n, most, out, total);                                                                   \
    }                                                                                                            \
    API int nvcompBatched##codec##DecompressAsync(LISTS, void *codes, void *stream);                             \
    int nvcompBatched##codec##DecompressAsync(LISTS, void *codes, void *stream)                                  \
    {                                                                                                            \
        return start((call)CALL_OF(which), stream);                                                              \
    }
#else
static void check_options(options o)
{
    static const char zeros[60];
    if (o.backend != 2 || memcmp(o.reserved, zeros, sizeof(zeros)) != 0)
        fault();
}

#if MAJOR == 5
#define TEMP_SIZE(codec)                                                                                         \
    API int nvcompBatched##codec##DecompressGetTempSizeAsync(size_t n, size_t most, options o, size_t *out,      \
                                                             size_t total);                                      \
    int nvcompBatched##codec##DecompressGetTempSizeAsync(size_t n, size_t most, options o, size_t *out,          \
                                                         size_t total)
#else
#define TEMP_SIZE(codec)                                                                                         \
    API int nvcompBatched##codec##DecompressGetTempSize(size_t n, size_t most, options o, size_t *out,           \
                                                        size_t total, void *stream);                             \
    int nvcompBatched##codec##DecompressGetTempSize(size_t n, size_t most, options o, size_t *out, size_t total, \
                                                    __attribute__((unused)) void *stream)
#endif
#define CODEC(codec, which)                                                                                      \
    TEMP_SIZE(codec)                                                                                             \
    {                                                                                                            \
        check_options(o);                                                                                        \
        return temp_size(n, most, out, total);                                                                   \
    }                                                                                                            \
    API int nvcompBatched##codec##DecompressAsync(LISTS, options o, void *codes, void *stream);                  \
    int nvcompBatched##codec##DecompressAsync(LISTS, options o, void *codes, void *stream)                       \
    {                                                                                                            \
        check_options(o);                                                                                        \
        return start((call)CALL_OF(which), stream);                                                              \
    }                                                                                                            \
    API int nvcompBatched##codec##DecompressGetRequiredAlignments(options o, alignments *out);                   \
    int nvcompBatched##codec##DecompressGetRequiredAlignments(options o, alignments *out)                        \
    {                                                                                                            \
        check_options(o);                                                                                        \
        *out = aligned(which);                                                                                   \
        return failing(3);                                                                                       \
    }
#endif

CODEC(Zstd, OF_ZSTD)
CODEC(LZ4, OF_LZ4)
#ifndef LACKS_DEFLATE
CODEC(Deflate, OF_DEFLATE)
#endif
