/*
 * The parts that all benchmarks share. Every figure is a ratio to a limit that is measured
 * in the same run: ours and the limit take turns (A B A B ...), and a row gives the
 * median of the pairwise ratios and their spread. Absolute figures are context.
 */
#ifndef BENCH_H
#define BENCH_H

#include <stdatomic.h>
#include <stdint.h>

#include "../../src/breccia.h"

#define MIB ((size_t)1 << 20)

typedef struct bench_opts {
    size_t bytes;        /* of the big array                                    */
    size_t small_chunks; /* chunks of the array of many                         */
    size_t commits;
    int pairs;
    unsigned threads;
    const char *dir;     /* a folder of its own, removed at the end             */
    brc_pool *pool;
    int quick;           /* everything is small                                 */
    const char *only;    /* of the scale group: cases with this in their names  */
} bench_opts;

/* ---- report.c -------------------------------- */

#define SERIES_MAX 32

/* Seconds by the clock, and of the processor by all threads of this process: on a
 * machine that others use too, the second tells more. */
typedef struct took {
    double wall, cpu;
} took;

typedef struct series {
    took at[SERIES_MAX];
    int n;
} series;

double now_s(void);
took start_clock(void);
took stop_clock(took start);
/* A field of /proc/self/status in bytes. */
double status_bytes(const char *field);
/* The largest resident set counts anew from here on. */
void forget_peak(void);
void series_add(series *s, took value);
/* The p-th percentile (0 to 100) of n values, which are sorted in place. */
double percentile(double *values, size_t n, double p);

/* A verdict's direction. */
enum { AT_LEAST = 1, AT_MOST = 2, JUST_SHOWN = 3 };

/* Each row goes to this file too, as tab-separated values: see report.c. */
void report_to(const char *path);
void report_head(const char *title, const char *what);
/* `limit` over `ours`, pair by pair: 1 means as fast as the limit. mb: what one
 * measurement moves, for the context. */
void report_ratio(const char *label, const series *ours, const series *limit, double mb, int way,
                  double target);
/* One number against its target. */
void report_value(const char *label, double value, const char *unit, int way, double target,
                  const char *context);
/* A number that was printed elsewhere; way says if less (AT_MOST) or more is better. */
void report_number(const char *label, double value, const char *unit, int way);
/* Counts what was judged elsewhere and must hold: else report_total gives 1. */
void report_judged(int met);
/* "12 met, 3 not met": the last line. The exit status. */
int report_total(void);

/* ---- fixture.c -------------------------------- */

void must(int rc, const brc_error *err, const char *what);
void must_be(int condition, const char *what);
void *must_alloc(size_t bytes);
uint64_t splitmix64(uint64_t *state);
/* Runs fn(ctx, i) on n threads, the caller's included. */
void on_threads(unsigned n, void (*fn)(void *ctx, unsigned i), void *ctx);

/* A smooth field of `planes` planes of 512 x 512 float32 with a little noise, each
 * value rounded to 14 bits of mantissa: the data set f32-round. */
enum { PLANE = 512 * 512 };
void make_field(float *out, size_t planes, unsigned threads);

/* DIR/NAME, into one of a few buffers that take turns. */
const char *in_dir(const bench_opts *o, const char *name);
void remove_file(const char *path);
uint64_t file_size(const char *path);
void copy_file(const char *from, const char *to);
uint64_t sql_number(const char *path, const char *sql);
void sql_run(const char *path, const char *sql);

typedef struct repo {
    breccia *handle;
    brc_session *session;
    brc_array *array;
    char path[512];
} repo;

/* A new repository with one array, which has not been written. */
void repo_make(repo *r, const bench_opts *o, const char *name, int readback,
               const brc_array_spec *spec);
void repo_open(repo *r, const bench_opts *o, const char *name);
void repo_close(repo *r);
void repo_commit(repo *r, const char *message);
/* The "blocksize" in the array's codecs; 0 if there is none. */
size_t repo_blocksize(const repo *r);

/* ---- chunk_array.c ------------------------------ */

#define CHUNK_ITEMS 8

/* A repository with an array of n chunks of CHUNK_ITEMS int16, without a codec. Every chunk
 * differs from every other, and from all earlier versions. */
typedef struct chunk_array {
    repo r;
    size_t n;
    uint64_t random;
} chunk_array;

/* Written, and not committed. */
void chunk_array_make(chunk_array *a, const bench_opts *o, const char *file, size_t n);
void chunk_array_put(const chunk_array *a, uint64_t number, uint64_t version);
/* A chunk at random, written and committed in one transaction: the seconds that it took. */
double chunk_array_commit(chunk_array *a, uint64_t version);
/* The seconds of a difference, and how many chunks differ. */
double diff_seconds(breccia *handle, const char *a, const char *b, uint64_t *changed);

/* ---- flat.c: the limits -------------------------------- */

enum { FLAT_NONE, FLAT_ZSTD, FLAT_BLOSC, FLAT_LZ4 }; /* LZ4: blosc's, level 5 */

typedef struct flat_chunk {
    uint64_t at;
    size_t len;
} flat_chunk;

typedef struct flat_file {
    char path[512];
    int fd, codec;
    size_t blocksize; /* of blosc; 0: it chooses                                 */
    unsigned threads;
    size_t nchunks, chunk_len;
    flat_chunk *chunks;
    struct flat_worker *workers;
} flat_file;

void flat_make(flat_file *f, const bench_opts *o, const char *name, int codec, size_t nchunks,
               size_t chunk_len);
void flat_free(flat_file *f);
/* Compresses the chunks on all threads, appends each, and ends with fdatasync.
 * The file is emptied before, untimed. */
took flat_write(flat_file *f, const uint8_t *src);
/* pread and decompression on `threads` threads, straight to where a chunk belongs. */
took flat_read(flat_file *f, uint8_t *dst, unsigned threads);
/* One chunk, compressed into memory of its own; and decompression alone, in seconds. */
uint8_t *flat_encode_one(flat_file *f, const uint8_t *src, size_t *len);
double flat_decode_one(flat_file *f, const uint8_t *stored, size_t len, uint8_t *dst);
/* Puts one such chunk into the file; and reading it from there alone, in seconds. */
void flat_put_one(flat_file *f, size_t n, const uint8_t *stored, size_t len);
double flat_fetch_one(const flat_file *f, size_t n);
took hash_all(const uint8_t *data, size_t nchunks, size_t chunk_len, unsigned threads);

/* ---- codec chains -------------------------------- */

#define CODECS_RAW "[{\"name\":\"bytes\",\"configuration\":{\"endian\":\"little\"}}]"
#define CODECS_ZSTD_3                                                 \
    "[{\"name\":\"bytes\",\"configuration\":{\"endian\":\"little\"}}," \
    "{\"name\":\"zstd\",\"configuration\":{\"level\":3,\"checksum\":false}}]"

/* ---- the groups -------------------------------- */

void bench_bulk(const bench_opts *o);
void bench_backends(const bench_opts *o);
void bench_external(const bench_opts *o);
void bench_remote(const bench_opts *o);
void bench_random(const bench_opts *o);
void bench_keys(const bench_opts *o);
void bench_commit(const bench_opts *o);
void bench_size(const bench_opts *o);
void bench_shard(const bench_opts *o);
void bench_ediff(const bench_opts *o);
void bench_scale(const bench_opts *o);
void bench_contention(const bench_opts *o);
void bench_locks(const bench_opts *o);
void bench_history(const bench_opts *o);
/* crowd.c: a bulk writer among readers and committers, for the contention group. */
void crowd_run(const bench_opts *o);

/* worker.c: `bench --worker` and `bench --child`, for make bench-peers. */
int worker_main(void);
int child_main(char **argv);

#endif
