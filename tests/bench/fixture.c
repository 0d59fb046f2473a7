/* Data, files and repositories to measure with. */
#include <fcntl.h>
#include <math.h>
#include <pthread.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "bench.h"

/* ---- what cannot be -------------------------------- */

void must(int rc, const brc_error *err, const char *what)
{
    if (rc >= 0)
        return;
    fprintf(stderr, "bench: %s: %s\n", what, err->message);
    exit(1);
}

void must_be(int condition, const char *what)
{
    if (condition)
        return;
    fprintf(stderr, "bench: %s did not work\n", what);
    exit(1);
}

void *must_alloc(size_t bytes)
{
    void *p = malloc(bytes > 0 ? bytes : 1);
    must_be(p != NULL, "allocating memory");
    return p;
}

/* ---- threads -------------------------------- */

typedef struct thread_call {
    void (*fn)(void *ctx, unsigned i);
    void *ctx;
    unsigned i;
} thread_call;

static void *thread_main(void *arg)
{
    const thread_call *call = arg;
    call->fn(call->ctx, call->i);
    return NULL;
}

void on_threads(unsigned n, void (*fn)(void *ctx, unsigned i), void *ctx)
{
    pthread_t *threads = must_alloc(n * sizeof(*threads));
    thread_call *calls = must_alloc(n * sizeof(*calls));
    for (unsigned i = 0; i < n; i++) {
        calls[i] = (thread_call){fn, ctx, i};
        if (i > 0)
            must_be(pthread_create(&threads[i], NULL, thread_main, &calls[i]) == 0, "a thread");
    }
    fn(ctx, 0);
    for (unsigned i = 1; i < n; i++)
        pthread_join(threads[i], NULL);
    free(calls);
    free(threads);
}

/* ---- data -------------------------------- */

uint64_t splitmix64(uint64_t *state)
{
    uint64_t z = *state += UINT64_C(0x9e3779b97f4a7c15);
    z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
    return z ^ z >> 31;
}

enum { WAVES = 24, SIDE = 512 };

typedef struct field {
    float *out;
    size_t planes;
    unsigned threads;
    /* cos(a + b) = cos a cos b - sin a sin b: the x part of each wave is a table */
    float cosx[WAVES][SIDE], sinx[WAVES][SIDE];
    double ky[WAVES], kz[WAVES], phase[WAVES], amplitude[WAVES];
} field;

/* To 14 bits of mantissa, of 23. */
static float rounded(float v)
{
    uint32_t bits;
    memcpy(&bits, &v, sizeof(bits));
    bits = (bits + (1u << 8)) & ~((1u << 9) - 1);
    memcpy(&v, &bits, sizeof(v));
    return v;
}

static void field_row(const field *f, size_t z, size_t y, float *row)
{
    for (int x = 0; x < SIDE; x++)
        row[x] = 280;
    for (int w = 0; w < WAVES; w++) {
        double a = f->ky[w] * (double)y + f->kz[w] * (double)z + f->phase[w];
        float c = (float)(f->amplitude[w] * cos(a)), s = (float)(f->amplitude[w] * sin(a));
        for (int x = 0; x < SIDE; x++)
            row[x] += c * f->cosx[w][x] - s * f->sinx[w][x];
    }
    uint64_t state = (uint64_t)z << 32 | (uint64_t)y;
    for (int x = 0; x < SIDE; x++) {
        /* four uniform numbers of 16 bits add up to nearly a Gaussian one, of 3 ppm */
        uint64_t r = splitmix64(&state);
        float g = (float)(r & 0xffff) + (float)(r >> 16 & 0xffff) + (float)(r >> 32 & 0xffff) +
                  (float)(r >> 48) - 131070.0f;
        row[x] = rounded(row[x] * (1 + g * (3e-6f / 37837.0f)));
    }
}

static void field_part(void *ctx, unsigned i)
{
    const field *f = ctx;
    for (size_t z = i; z < f->planes; z += f->threads)
        for (size_t y = 0; y < SIDE; y++)
            field_row(f, z, y, f->out + (z * SIDE + y) * SIDE);
}

void make_field(float *out, size_t planes, unsigned threads)
{
    field *f = must_alloc(sizeof(*f));
    uint64_t state = 1;
    f->out = out;
    f->planes = planes;
    f->threads = threads;
    for (int w = 0; w < WAVES; w++) {
        double scale = 2 * M_PI * (w + 1) / SIDE, part = 0x1p-64;
        double kx = scale * (0.2 + 0.8 * (double)splitmix64(&state) * part);
        f->ky[w] = scale * (0.2 + 0.8 * (double)splitmix64(&state) * part);
        f->kz[w] = scale * (0.2 + 0.8 * (double)splitmix64(&state) * part);
        f->phase[w] = 2 * M_PI * (double)splitmix64(&state) * part;
        f->amplitude[w] = 5.0 / (w + 1);
        for (int x = 0; x < SIDE; x++) {
            f->cosx[w][x] = (float)cos(kx * x);
            f->sinx[w][x] = (float)sin(kx * x);
        }
    }
    on_threads(threads, field_part, f);
    free(f);
}

/* ---- files -------------------------------- */

const char *in_dir(const bench_opts *o, const char *name)
{
    static char paths[4][512];
    static unsigned turn;
    char *path = paths[turn++ % 4];
    snprintf(path, sizeof(paths[0]), "%s/%s", o->dir, name);
    return path;
}

void remove_file(const char *path)
{
    must_be(unlink(path) == 0, "removing a file");
}

uint64_t file_size(const char *path)
{
    struct stat st;
    must_be(stat(path, &st) == 0, "looking at a file");
    return (uint64_t)st.st_size;
}

void copy_file(const char *from, const char *to)
{
    int in = open(from, O_RDONLY), out = open(to, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    ssize_t n;
    must_be(in >= 0 && out >= 0, "opening a file to copy");
    while ((n = copy_file_range(in, NULL, out, NULL, (size_t)1 << 30, 0)) > 0)
        ;
    must_be(n == 0, "copying a file");
    close(in);
    close(out);
}

static sqlite3 *sql_open(const char *path, int flags)
{
    sqlite3 *db;
    must_be(sqlite3_open_v2(path, &db, flags, NULL) == SQLITE_OK, "opening a file with SQLite");
    return db;
}

uint64_t sql_number(const char *path, const char *sql)
{
    sqlite3 *db = sql_open(path, SQLITE_OPEN_READONLY);
    sqlite3_stmt *st;
    must_be(sqlite3_prepare_v2(db, sql, -1, &st, NULL) == SQLITE_OK &&
                sqlite3_step(st) == SQLITE_ROW, sql);
    uint64_t n = (uint64_t)sqlite3_column_int64(st, 0);
    sqlite3_finalize(st);
    sqlite3_close(db);
    return n;
}

void sql_run(const char *path, const char *sql)
{
    sqlite3 *db = sql_open(path, SQLITE_OPEN_READWRITE);
    must_be(sqlite3_exec(db, sql, NULL, NULL, NULL) == SQLITE_OK, sql);
    sqlite3_close(db);
}

/* ---- repositories -------------------------------- */

static void repo_connect(repo *r, const bench_opts *o, const char *name, uint32_t flags,
                         int readback)
{
    brc_error err = BRC_ERROR_INIT;
    brc_open_opts opts = BRC_OPEN_OPTS_INIT;
    snprintf(r->path, sizeof(r->path), "%s/%s", o->dir, name);
    opts.flags = flags;
    opts.readback = readback;
    opts.pool = o->pool;
    must(brc_open(&r->handle, r->path, &opts, &err), &err, "opening a repository");
    must(brc_session_open(&r->session, r->handle, NULL, BRC_SESSION_WRITE, &err), &err,
         "a session");
}

void repo_make(repo *r, const bench_opts *o, const char *name, int readback,
               const brc_array_spec *spec)
{
    brc_error err = BRC_ERROR_INIT;
    repo_connect(r, o, name, BRC_OPEN_CREATE, readback);
    must(brc_array_create(&r->array, r->session, "/a", spec, &err), &err, "creating an array");
}

void repo_open(repo *r, const bench_opts *o, const char *name)
{
    brc_error err = BRC_ERROR_INIT;
    repo_connect(r, o, name, 0, 0);
    must(brc_array_open(&r->array, r->session, "/a", &err), &err, "opening an array");
}

void repo_close(repo *r)
{
    brc_array_free(r->array);
    brc_session_free(r->session);
    brc_free(r->handle);
}

void repo_commit(repo *r, const char *message)
{
    brc_error err = BRC_ERROR_INIT;
    brc_oid id;
    brc_commit_opts opts = BRC_COMMIT_OPTS_INIT;
    opts.message = message;
    opts.author = "bench";
    must(brc_session_commit(&id, r->session, &opts, &err), &err, "a commit");
}

size_t repo_blocksize(const repo *r)
{
    const char *at = strstr(brc_array_describe(r->array)->codecs_json, "\"blocksize\":");
    return at != NULL ? strtoul(at + strlen("\"blocksize\":"), NULL, 10) : 0;
}
