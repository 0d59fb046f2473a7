/*
 * Part of a shard: one inner chunk, and a box of 1 % that crosses shards. Beside the
 * time stand the bytes that were touched. The limit is what a reader of a Zarr
 * directory does at its best with the same shards in files: open the shard, read its
 * index, read the inner chunk, decompress it.
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zstd.h>

#include "../../src/breccia_codec.h"
#include "bench.h"
#include "../kit/ios.h"

enum {
    INNER_SAMPLES = 300, BOX_SAMPLES = 40, COLD_SAMPLES = 40,
    ENTRIES = 64, INDEX_BYTES = 16 * ENTRIES + 4, /* and a checksum                  */
    BOX_SHARDS = 8, MAX_THREADS = 64
};

static const uint64_t shard_shape[3] = {64, 128, 128}, inner_shape[3] = {16, 32, 32};
#define INNER_BYTES ((size_t)65536)
#define SHARD_BYTES (ENTRIES * INNER_BYTES)

/* sharding_indexed around `codecs`, with inner chunks of `shape`. */
#define SHARDS(shape, codecs)                                                        \
    "{\"name\":\"sharding_indexed\",\"configuration\":{\"chunk_shape\":" shape       \
    ",\"codecs\":" codecs ",\"index_codecs\":[{\"name\":\"bytes\",\"configuration\":" \
    "{\"endian\":\"little\"}},{\"name\":\"crc32c\"}]}}"

typedef struct shard_case {
    const char *name, *codecs;
} shard_case;

static const shard_case shard_cases[] = {
    {"shards", "[" SHARDS("[16,32,32]", CODECS_ZSTD_3) "]"},
    {"shards in shards", "[" SHARDS("[32,64,64]", "[" SHARDS("[16,32,32]", CODECS_ZSTD_3) "]") "]"},
    {"shards, then crc32c", "[" SHARDS("[16,32,32]", CODECS_ZSTD_3) ",{\"name\":\"crc32c\"}]"},
    {"transpose, then shards", "[{\"name\":\"transpose\",\"configuration\":{\"order\":[2,1,0]}},"
                               SHARDS("[32,32,16]", CODECS_ZSTD_3) "]"},
};

/* The bytes that went into and came out of a decompressor in one handle's reads. */
typedef struct touched {
    _Atomic uint64_t stored, decoded;
} touched;

typedef struct shard_run {
    const bench_opts *o;
    const shard_case *c;
    uint64_t shape[3], shards[3];
    repo r;
    uint8_t *src, *dst;
    struct file_worker {
        ZSTD_DCtx *dctx;
        uint8_t *stored, *plain;
    } workers[MAX_THREADS];
    unsigned threads;
} shard_run;

static uint64_t some_below(uint64_t *state, uint64_t n)
{
    return n > 0 ? splitmix64(state) % n : 0;
}

static size_t sel_bytes(const brc_sel *sel)
{
    return (size_t)(sel->count[0] * sel->count[1] * sel->count[2]) * sizeof(float);
}

/* ---- selections -------------------------------- */

static void choose_inner(const shard_run *run, uint64_t *state, brc_sel *sel)
{
    sel_all(sel, run->r.array);
    for (int d = 0; d < 3; d++) {
        sel->start[d] = some_below(state, run->shape[d] / inner_shape[d]) * inner_shape[d];
        sel->count[d] = inner_shape[d];
    }
}

/* 1 % of the elements, across a corner where eight shards meet. */
static void choose_box(const shard_run *run, uint64_t *state, brc_sel *sel)
{
    sel_all(sel, run->r.array);
    for (int d = 0; d < 3; d++) {
        uint64_t n = (uint64_t)(0.2154 * (double)run->shape[d]);
        uint64_t corner = shard_shape[d];
        if (run->shards[d] > 2)
            corner *= 1 + some_below(state, run->shards[d] - 1);
        if (n > shard_shape[d])
            n = shard_shape[d];
        sel->start[d] = corner - 1 - some_below(state, n - 1);
        sel->count[d] = n;
    }
}

typedef void (*choose_fn)(const shard_run *run, uint64_t *state, brc_sel *sel);

/* ---- the limit: shards in files -------------------------------- */

typedef struct shard_file {
    int fd;
    uint8_t index[INDEX_BYTES];
} shard_file;

typedef struct file_read {
    shard_run *run;
    const brc_sel *sel;
    uint64_t first[3], n[3]; /* the shards that it meets                             */
    uint64_t inner[3], count[3]; /* and the inner chunks                             */
    shard_file files[BOX_SHARDS];
    atomic_size_t next;
} file_read;

static void shard_file_name(const shard_run *run, const uint64_t *at, char *out, size_t size)
{
    snprintf(out, size, "%s/shard.%d.%d.%d", run->o->dir, (int)at[0], (int)at[1], (int)at[2]);
}

static void span_of(const brc_sel *sel, const uint64_t *size, uint64_t *first, uint64_t *n)
{
    for (int d = 0; d < 3; d++) {
        first[d] = sel->start[d] / size[d];
        n[d] = (sel->start[d] + sel->count[d] - 1) / size[d] - first[d] + 1;
    }
}

static void open_files(file_read *f)
{
    char path[512];
    size_t n = (size_t)(f->n[0] * f->n[1] * f->n[2]);
    must_be(n <= BOX_SHARDS, "a box across eight shards at most");
    for (size_t i = 0; i < n; i++) {
        shard_file *file = &f->files[i];
        uint64_t at[3] = {f->first[0] + i / f->n[2] / f->n[1], f->first[1] + i / f->n[2] % f->n[1],
                          f->first[2] + i % f->n[2]};
        shard_file_name(f->run, at, path, sizeof(path));
        file->fd = open(path, O_RDONLY);
        off_t end = file->fd >= 0 ? lseek(file->fd, 0, SEEK_END) : -1;
        must_be(end >= INDEX_BYTES &&
                    pread(file->fd, file->index, INDEX_BYTES, end - INDEX_BYTES) == INDEX_BYTES,
                "reading a shard's index");
    }
}

/* The part of an inner chunk that is selected, row by row. */
static void place_inner(const file_read *f, const uint64_t *at, const uint8_t *plain)
{
    const brc_sel *s = f->sel;
    uint64_t from[3], to[3];
    for (int d = 0; d < 3; d++) {
        uint64_t corner = at[d] * inner_shape[d], end = corner + inner_shape[d];
        from[d] = s->start[d] > corner ? s->start[d] : corner;
        to[d] = s->start[d] + s->count[d] < end ? s->start[d] + s->count[d] : end;
    }
    for (uint64_t z = from[0]; z < to[0]; z++)
        for (uint64_t y = from[1]; y < to[1]; y++) {
            uint64_t in = ((z % inner_shape[0]) * inner_shape[1] + y % inner_shape[1]) *
                              inner_shape[2] + from[2] % inner_shape[2];
            uint64_t out = ((z - s->start[0]) * s->count[1] + y - s->start[1]) * s->count[2] +
                           from[2] - s->start[2];
            memcpy(f->run->dst + 4 * out, plain + 4 * in, 4 * (size_t)(to[2] - from[2]));
        }
}

static uint64_t number_at(const uint8_t *bytes)
{
    uint64_t n;
    memcpy(&n, bytes, sizeof(n)); /* as bench's machines have it: little-endian      */
    return n;
}

static void read_inner(file_read *f, struct file_worker *w, size_t i)
{
    uint64_t at[3] = {f->inner[0] + i / f->count[2] / f->count[1],
                      f->inner[1] + i / f->count[2] % f->count[1], f->inner[2] + i % f->count[2]};
    uint64_t file = 0, entry = 0;
    for (int d = 0; d < 3; d++) {
        uint64_t side = shard_shape[d] / inner_shape[d];
        file = file * f->n[d] + at[d] / side - f->first[d];
        entry = entry * side + at[d] % side;
    }
    const uint8_t *where = f->files[file].index + 16 * entry;
    size_t len = (size_t)number_at(where + 8);
    must_be(len <= 2 * INNER_BYTES &&
                pread(f->files[file].fd, w->stored, len, (off_t)number_at(where)) == (ssize_t)len &&
                ZSTD_decompressDCtx(w->dctx, w->plain, INNER_BYTES, w->stored, len) == INNER_BYTES,
            "reading an inner chunk from a file");
    place_inner(f, at, w->plain);
}

static void read_inner_chunks(void *ctx, unsigned worker)
{
    file_read *f = ctx;
    size_t i, n = (size_t)(f->count[0] * f->count[1] * f->count[2]);
    while ((i = atomic_fetch_add(&f->next, 1)) < n)
        read_inner(f, &f->run->workers[worker], i);
}

static double read_files(shard_run *run, const brc_sel *sel)
{
    double start = now_s();
    file_read f = {.run = run, .sel = sel};
    span_of(sel, shard_shape, f.first, f.n);
    span_of(sel, inner_shape, f.inner, f.count);
    open_files(&f);
    on_threads(f.count[0] * f.count[1] * f.count[2] > 1 ? run->threads : 1, read_inner_chunks, &f);
    for (size_t i = 0; i < f.n[0] * f.n[1] * f.n[2]; i++)
        close(f.files[i].fd);
    return now_s() - start;
}

/* The shards' files are what an export writes: the same bytes. */
static void write_files(shard_run *run)
{
    char key[64], path[512];
    brc_error err = BRC_ERROR_INIT;
    brc_buf bytes = BRC_BUF_INIT;
    uint64_t at[3];
    for (at[0] = 0; at[0] < run->shards[0]; at[0]++)
        for (at[1] = 0; at[1] < run->shards[1]; at[1]++)
            for (at[2] = 0; at[2] < run->shards[2]; at[2]++) {
                snprintf(key, sizeof(key), "a/c/%d/%d/%d", (int)at[0], (int)at[1], (int)at[2]);
                shard_file_name(run, at, path, sizeof(path));
                bytes.len = 0;
                must(brc_key_get(&bytes, run->r.session, key, NULL, NULL, &err), &err, "a shard");
                int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
                must_be(fd >= 0 && write(fd, bytes.data, bytes.len) == (ssize_t)bytes.len,
                        "writing a shard's file");
                close(fd);
            }
    brc_buf_dispose(&bytes);
}

/* ---- ours -------------------------------- */

static double read_ours(const shard_run *run, brc_array *a, const brc_sel *sel)
{
    brc_error err = BRC_ERROR_INIT;
    double start = now_s();
    must(brc_array_read(a, sel, run->dst, sel_bytes(sel), &err), &err, "reading");
    return now_s() - start;
}

static double read_cold(shard_run *run, const brc_sel *sel)
{
    repo r;
    double start = now_s();
    repo_open(&r, run->o, "shard.brc");
    read_ours(run, r.array, sel);
    repo_close(&r);
    return now_s() - start;
}

static void check_values(const shard_run *run, const brc_sel *sel)
{
    const uint64_t *n = sel->count;
    for (uint64_t z = 0; z < n[0]; z++)
        for (uint64_t y = 0; y < n[1]; y++) {
            uint64_t at = ((sel->start[0] + z) * 512 + sel->start[1] + y) * 512 + sel->start[2];
            must_be(memcmp(run->dst + 4 * (z * n[1] + y) * n[2], run->src + 4 * at,
                           4 * (size_t)n[2]) == 0, "reading what was written");
        }
}

/* ---- bytes -------------------------------- */

static int counted_decode(void *ctx, const void *state, void *scratch, brc_span src, brc_buf *dst,
                          brc_error *err)
{
    touched *t = ctx;
    unsigned long long len = ZSTD_getFrameContentSize(src.data, src.len);
    (void)state;
    (void)scratch;
    must_be(len <= INNER_BYTES, "finding a frame's length");
    int rc = brc_buf_reserve(dst, (size_t)len, err);
    if (rc < 0)
        return rc;
    must_be(ZSTD_decompress(dst->data + dst->len, (size_t)len, src.data, src.len) == len, "zstd");
    dst->len += (size_t)len;
    atomic_fetch_add(&t->stored, src.len);
    atomic_fetch_add(&t->decoded, len);
    return BRC_OK;
}

static int counted_encode(void *ctx, const void *state, void *scratch, brc_span src, brc_buf *dst,
                          brc_error *err)
{
    (void)ctx;
    (void)state;
    (void)scratch;
    (void)src;
    (void)dst;
    return brc_fail(err, BRC_EUNSUPPORTED, "this zstd only reads");
}

/* The same reads once more, through another handle whose zstd counts. */
static void count_bytes(const shard_run *run, choose_fn choose, int samples, touched *t)
{
    brc_codec_impl impl = {.size = sizeof(impl), .spec = "zstd", .name = "counted", .rank = 1 << 20,
                           .ctx = t, .encode = counted_encode, .decode = counted_decode};
    brc_open_opts opts = BRC_OPEN_OPTS_INIT;
    brc_error err = BRC_ERROR_INIT;
    brc_registry *reg;
    repo r;
    brc_sel sel = BRC_SEL_INIT;
    uint64_t state = 7;
    must(brc_registry_new(&reg, &err), &err, "a registry");
    must(brc_registry_add_impl(reg, &impl, &err), &err, "an implementation");
    opts.registry = reg;
    must(brc_open(&r.handle, run->r.path, &opts, &err), &err, "opening a repository");
    must(brc_session_open(&r.session, r.handle, NULL, BRC_SESSION_AT, &err), &err, "a session");
    must(brc_array_open(&r.array, r.session, "/a", &err), &err, "opening an array");
    for (int i = 0; i < samples; i++) {
        choose(run, &state, &sel);
        read_ours(run, r.array, &sel);
    }
    repo_close(&r);
    brc_registry_free(reg);
}

/* Bytes that this process asked the system for, or 0 if nobody counts them. */
static uint64_t bytes_read(void)
{
    unsigned long long n = 0;
    FILE *f = fopen("/proc/self/io", "r");
    if (f == NULL)
        return 0;
    if (fscanf(f, "rchar: %llu", &n) != 1)
        n = 0;
    fclose(f);
    return n;
}

/* The bytes that reading the counter adds to it. */
static uint64_t bytes_of_looking(void)
{
    uint64_t first = bytes_read();
    return bytes_read() - first;
}

/* ---- the report -------------------------------- */

typedef struct shard_times {
    double ours[INNER_SAMPLES], files[INNER_SAMPLES], ratio[INNER_SAMPLES], cold[COLD_SAMPLES];
    uint64_t asked, warm_bytes, cold_bytes;
} shard_times;

static void time_reads(shard_run *run, choose_fn choose, int samples, shard_times *t)
{
    brc_sel sel = BRC_SEL_INIT;
    uint64_t state = 7, looking = bytes_of_looking();
    for (int i = 0; i < samples; i++) {
        choose(run, &state, &sel);
        t->asked += sel_bytes(&sel);
        for (int turn = 0; turn < 2; turn++) { /* either comes first as often */
            if (turn == i % 2) {
                t->files[i] = 1e6 * read_files(run, &sel);
            } else {
                uint64_t before = bytes_read();
                t->ours[i] = 1e6 * read_ours(run, run->r.array, &sel);
                t->warm_bytes += bytes_read() - before - looking;
            }
            if (i < 4)
                check_values(run, &sel);
        }
        t->ratio[i] = t->files[i] / t->ours[i];
        if (i < COLD_SAMPLES) {
            uint64_t before = bytes_read();
            t->cold[i] = 1e6 * read_cold(run, &sel);
            t->cold_bytes += bytes_read() - before - looking;
        }
    }
}

static void bench_reads(shard_run *run, const char *what, choose_fn choose, int samples)
{
    static shard_times t;
    touched seen = {0};
    char label[80], context[200];
    size_t n = (size_t)samples;
    memset(&t, 0, sizeof(t));
    time_reads(run, choose, samples, &t);
    count_bytes(run, choose, samples, &seen);
    double ratio = percentile(t.ratio, n, 50);
    snprintf(label, sizeof(label), "%s, %s: to the files", what, run->c->name);
    snprintf(context, sizeof(context),
             "p50 %.0f us, p99 %.0f; files %.0f, %.0f us; cold handle %.0f us",
             percentile(t.ours, n, 50), percentile(t.ours, n, 99), percentile(t.files, n, 50),
             percentile(t.files, n, 99), percentile(t.cold, COLD_SAMPLES, 50));
    report_value(label, ratio, "x", JUST_SHOWN, 0, context);
    double per = (double)t.asked / (double)n;
    snprintf(context, sizeof(context),
             "%.0f asked, %.0f stored bytes decoded; from the file %.0f, cold handle %.0f",
             per, (double)seen.stored / (double)n, (double)t.warm_bytes / (double)n,
             (double)t.cold_bytes / COLD_SAMPLES);
    report_value("  bytes decoded to bytes asked for", (double)seen.decoded / (double)t.asked, "x",
                 JUST_SHOWN, 0, context);
}

static void shard_run_case(shard_run *run)
{
    brc_array_spec spec = BRC_ARRAY_SPEC_INIT;
    brc_error err = BRC_ERROR_INIT;
    spec.ndim = 3;
    spec.shape = run->shape;
    spec.chunk = shard_shape; /* of the grid: `codecs` says what is inside */
    spec.dtype = "float32";
    spec.codecs_json = run->c->codecs;
    repo_make(&run->r, run->o, "shard.brc", BRC_READBACK_NONE, &spec);
    must(brc_array_write(run->r.array, NULL, run->src, run->shape[0] * MIB, &err), &err, "writing");
    repo_commit(&run->r, "all");
    if (run->c == shard_cases)
        write_files(run);
    bench_reads(run, "inner chunk", choose_inner, INNER_SAMPLES);
    bench_reads(run, "box of 1 %", choose_box, BOX_SAMPLES);
    repo_close(&run->r);
    remove_file(run->r.path);
}

void bench_shard(const bench_opts *o)
{
    shard_run *run = must_alloc(sizeof(*run));
    char what[160];
    size_t planes = o->bytes / MIB / 256 * 64;
    *run = (shard_run){.o = o, .threads = o->threads < MAX_THREADS ? o->threads : MAX_THREADS};
    run->shape[0] = planes < 128 ? 128 : planes;
    run->shape[1] = run->shape[2] = 512;
    for (int d = 0; d < 3; d++)
        run->shards[d] = run->shape[d] / shard_shape[d];
    for (unsigned i = 0; i < run->threads; i++)
        run->workers[i] = (struct file_worker){ZSTD_createDCtx(), must_alloc(2 * INNER_BYTES),
                                               must_alloc(INNER_BYTES)};
    snprintf(what, sizeof(what),
             "%zu MiB of float32 in shards of %zu MiB, inner chunks of 64 KiB, zstd 3, all in the "
             "page cache", (size_t)run->shape[0], SHARD_BYTES / MIB);
    report_head("shard", what);
    run->src = must_alloc(run->shape[0] * MIB);
    run->dst = must_alloc(run->shape[0] * MIB / 64);
    make_field((float *)(void *)run->src, run->shape[0], o->threads);
    for (size_t i = 0; i < sizeof(shard_cases) / sizeof(shard_cases[0]); i++) {
        run->c = &shard_cases[i];
        shard_run_case(run);
    }
    for (unsigned i = 0; i < run->threads; i++) {
        ZSTD_freeDCtx(run->workers[i].dctx);
        free(run->workers[i].stored);
        free(run->workers[i].plain);
    }
    free(run->src);
    free(run->dst);
    free(run);
}
