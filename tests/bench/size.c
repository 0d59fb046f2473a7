/* The bytes that versions take, and those that pages waste. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench.h"
#include "../kit/ios.h"

enum { VERSIONS = 10, CHUNK = 16384 /* elements: 64 KiB */ };

/* Noise that no codec makes smaller. */
static void noise(float *out, size_t n, uint64_t seed)
{
    uint64_t *words = (uint64_t *)(void *)out;
    for (size_t i = 0; i < n / 2; i++)
        words[i] = splitmix64(&seed);
}

static void size_make(repo *r, const bench_opts *o, size_t nchunks, const char *codecs)
{
    uint64_t shape[1] = {nchunks * CHUNK}, chunk[1] = {CHUNK};
    brc_array_spec spec = BRC_ARRAY_SPEC_INIT;
    spec.ndim = 1;
    spec.shape = shape;
    spec.chunk = chunk;
    spec.dtype = "float32";
    spec.codecs_json = codecs;
    repo_make(r, o, "size.brc", BRC_READBACK_NONE, &spec);
}

/* The next version: one chunk in a hundred has other values. */
static void size_version(repo *r, const float *data, size_t nchunks, uint64_t version)
{
    uint64_t state = version;
    brc_error err = BRC_ERROR_INIT;
    brc_sel sel = BRC_SEL_INIT;
    float *changed = must_alloc(CHUNK * sizeof(*changed));
    sel_all(&sel, r->array);
    must(brc_begin(r->handle, &err), &err, "begin");
    for (size_t i = 0; i < nchunks / 100; i++) {
        size_t n = splitmix64(&state) % nchunks;
        for (size_t j = 0; j < CHUNK; j++)
            changed[j] = data[n * CHUNK + j] + (float)version;
        sel.start[0] = n * CHUNK;
        sel.count[0] = CHUNK;
        must(brc_array_write(r->array, &sel, changed, CHUNK * sizeof(*changed), &err), &err,
             "writing");
    }
    repo_commit(r, "a version");
    must(brc_end(r->handle, BRC_END_KEEP, &err), &err, "end");
    free(changed);
}

static void size_versions(const bench_opts *o, const char *codecs, const char *name)
{
    repo r;
    brc_error err = BRC_ERROR_INIT;
    size_t planes = o->bytes / MIB / 8 < 16 ? 16 : o->bytes / MIB / 8;
    size_t bytes = planes * MIB, nchunks = bytes / sizeof(float) / CHUNK;
    float *data = must_alloc(bytes);
    char label[80], context[120];
    make_field(data, planes, o->threads);
    size_make(&r, o, nchunks, codecs);
    must(brc_array_write(r.array, NULL, data, bytes, &err), &err, "writing");
    repo_commit(&r, "first");
    uint64_t one = file_size(r.path);
    for (uint64_t v = 1; v < VERSIONS; v++)
        size_version(&r, data, nchunks, v);
    uint64_t ten = file_size(r.path);
    snprintf(label, sizeof(label), "ten versions to one, 1 %% changed in each, %s", name);
    snprintf(context, sizeof(context), "%.1f to %.1f MB, %zu chunks of 64 KiB", (double)ten / 1e6,
             (double)one / 1e6, nchunks);
    report_value(label, (double)ten / (double)one, "", AT_MOST, 1.11, context);
    repo_close(&r);
    remove_file(r.path);
    free(data);
}

static void size_pages(const bench_opts *o)
{
    repo r;
    brc_error err = BRC_ERROR_INIT;
    size_t nchunks = 1024, bytes = nchunks * CHUNK * sizeof(float);
    float *data = must_alloc(bytes);
    char context[80];
    noise(data, nchunks * CHUNK, 5);
    size_make(&r, o, nchunks, CODECS_RAW);
    must(brc_array_write(r.array, NULL, data, bytes, &err), &err, "writing");
    repo_commit(&r, "all");
    double stored = (double)sql_number(r.path, "SELECT sum(stored) FROM object");
    double used = (double)sql_number(r.path,
                                     "SELECT ((SELECT page_count FROM pragma_page_count) -"
                                     " (SELECT freelist_count FROM pragma_freelist_count)) *"
                                     " (SELECT page_size FROM pragma_page_size)");
    snprintf(context, sizeof(context), "everything in the file that is not stored bytes");
    report_value("page waste at 64 KiB stored, percent", 100 * (used - stored) / stored, "%",
                 AT_MOST, 5, context);
    repo_close(&r);
    remove_file(r.path);
    free(data);
}

void bench_size(const bench_opts *o)
{
    report_head("size", "what the file takes");
    size_versions(o, CODECS_RAW, "no codec");
    size_versions(o, NULL, "default");
    size_pages(o);
}
