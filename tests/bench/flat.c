/* The limits: the same codec on as many threads over one flat file, and hashing. */
#include <blosc.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#if defined(__x86_64__) && __has_include(<xxh_x86dispatch.h>)
#include <xxh_x86dispatch.h>
#else
#include <xxhash.h>
#endif
#include <zstd.h>

#include "bench.h"

typedef struct flat_worker {
    ZSTD_CCtx *cctx;
    ZSTD_DCtx *dctx;
    uint8_t *room;
} flat_worker;

typedef struct flat_run {
    flat_file *f;
    const uint8_t *src;
    uint8_t *dst;
    atomic_size_t next;
    _Atomic uint64_t end;
} flat_run;

static size_t flat_room(const flat_file *f)
{
    size_t zstd = ZSTD_compressBound(f->chunk_len), blosc = f->chunk_len + BLOSC_MAX_OVERHEAD;
    return zstd > blosc ? zstd : blosc;
}

void flat_make(flat_file *f, const bench_opts *o, const char *name, int codec, size_t nchunks,
               size_t chunk_len)
{
    *f = (flat_file){.codec = codec, .threads = o->threads, .nchunks = nchunks,
                     .chunk_len = chunk_len};
    snprintf(f->path, sizeof(f->path), "%s/%s", o->dir, name);
    f->fd = open(f->path, O_RDWR | O_CREAT | O_TRUNC, 0600);
    must_be(f->fd >= 0, "making a flat file");
    f->chunks = must_alloc(nchunks * sizeof(*f->chunks));
    f->workers = must_alloc(f->threads * sizeof(*f->workers));
    for (unsigned i = 0; i < f->threads; i++)
        f->workers[i] =
            (flat_worker){ ZSTD_createCCtx(), ZSTD_createDCtx(), must_alloc(flat_room(f)) };
}

void flat_free(flat_file *f)
{
    for (unsigned i = 0; i < f->threads; i++) {
        ZSTD_freeCCtx(f->workers[i].cctx);
        ZSTD_freeDCtx(f->workers[i].dctx);
        free(f->workers[i].room);
    }
    free(f->workers);
    free(f->chunks);
    close(f->fd);
    remove_file(f->path);
}

static size_t flat_encode(flat_file *f, flat_worker *w, const uint8_t *src, const uint8_t **out)
{
    *out = w->room;
    if (f->codec == FLAT_NONE) {
        *out = src;
        return f->chunk_len;
    }
    if (f->codec == FLAT_BLOSC || f->codec == FLAT_LZ4)
        return (size_t)blosc_compress_ctx(f->codec == FLAT_BLOSC ? 1 : 5, BLOSC_SHUFFLE, 4,
                                          f->chunk_len, src, w->room, flat_room(f),
                                          f->codec == FLAT_BLOSC ? "zstd" : "lz4", f->blocksize, 1);
    ZSTD_CCtx_setParameter(w->cctx, ZSTD_c_compressionLevel, 3);
    return ZSTD_compress2(w->cctx, w->room, flat_room(f), src, f->chunk_len);
}

static void flat_decode(const flat_file *f, flat_worker *w, const uint8_t *stored, size_t len,
                        uint8_t *dst)
{
    if (f->codec == FLAT_ZSTD)
        must_be(ZSTD_decompressDCtx(w->dctx, dst, f->chunk_len, stored, len) == f->chunk_len,
                "zstd");
    else if (f->codec != FLAT_NONE)
        must_be(blosc_decompress_ctx(stored, dst, f->chunk_len, 1) == (int)f->chunk_len, "blosc");
    else
        memcpy(dst, stored, f->chunk_len);
}

static void flat_write_part(void *ctx, unsigned i)
{
    flat_run *run = ctx;
    flat_file *f = run->f;
    const uint8_t *bytes;
    size_t n;
    while ((n = atomic_fetch_add(&run->next, 1)) < f->nchunks) {
        size_t len = flat_encode(f, &f->workers[i], run->src + n * f->chunk_len, &bytes);
        uint64_t at = atomic_fetch_add(&run->end, len);
        f->chunks[n] = (flat_chunk){at, len};
        must_be(pwrite(f->fd, bytes, len, (off_t)at) == (ssize_t)len, "writing");
    }
}

took flat_write(flat_file *f, const uint8_t *src)
{
    flat_run run = {.f = f, .src = src};
    must_be(ftruncate(f->fd, 0) == 0 && fdatasync(f->fd) == 0, "emptying a file");
    took start = start_clock();
    on_threads(f->threads, flat_write_part, &run);
    must_be(fdatasync(f->fd) == 0, "fdatasync");
    return stop_clock(start);
}

static void flat_read_part(void *ctx, unsigned i)
{
    flat_run *run = ctx;
    const flat_file *f = run->f;
    size_t n;
    while ((n = atomic_fetch_add(&run->next, 1)) < f->nchunks) {
        uint8_t *dst = run->dst + n * f->chunk_len;
        const flat_chunk *c = &f->chunks[n];
        uint8_t *into = f->codec == FLAT_NONE ? dst : f->workers[i].room;
        must_be(pread(f->fd, into, c->len, (off_t)c->at) == (ssize_t)c->len, "reading");
        if (f->codec != FLAT_NONE)
            flat_decode(f, &f->workers[i], into, c->len, dst);
    }
}

took flat_read(flat_file *f, uint8_t *dst, unsigned threads)
{
    flat_run run = {.f = f, .dst = dst};
    took start = start_clock();
    on_threads(threads, flat_read_part, &run);
    return stop_clock(start);
}

uint8_t *flat_encode_one(flat_file *f, const uint8_t *src, size_t *len)
{
    const uint8_t *bytes;
    *len = flat_encode(f, &f->workers[0], src, &bytes);
    uint8_t *copy = must_alloc(*len);
    memcpy(copy, bytes, *len);
    return copy;
}

double flat_decode_one(flat_file *f, const uint8_t *stored, size_t len, uint8_t *dst)
{
    double start = now_s();
    flat_decode(f, &f->workers[0], stored, len, dst);
    return now_s() - start;
}

void flat_put_one(flat_file *f, size_t n, const uint8_t *stored, size_t len)
{
    uint64_t at = n > 0 ? f->chunks[n - 1].at + f->chunks[n - 1].len : 0;
    f->chunks[n] = (flat_chunk){at, len};
    must_be(pwrite(f->fd, stored, len, (off_t)at) == (ssize_t)len, "writing");
}

double flat_fetch_one(const flat_file *f, size_t n)
{
    const flat_chunk *c = &f->chunks[n];
    double start = now_s();
    must_be(pread(f->fd, f->workers[0].room, c->len, (off_t)c->at) == (ssize_t)c->len, "reading");
    return now_s() - start;
}

/* ---- hashing -------------------------------- */

typedef struct hash_run {
    const uint8_t *data;
    size_t nchunks, chunk_len;
    atomic_size_t next;
    _Atomic uint64_t sum; /* so that nothing is left out */
} hash_run;

static void hash_part(void *ctx, unsigned i)
{
    hash_run *run = ctx;
    size_t n;
    (void)i;
    while ((n = atomic_fetch_add(&run->next, 1)) < run->nchunks)
        atomic_fetch_add(&run->sum,
                         XXH3_128bits(run->data + n * run->chunk_len, run->chunk_len).low64);
}

took hash_all(const uint8_t *data, size_t nchunks, size_t chunk_len, unsigned threads)
{
    hash_run run = {.data = data, .nchunks = nchunks, .chunk_len = chunk_len};
    took start = start_clock();
    on_threads(threads, hash_part, &run);
    return stop_clock(start);
}
