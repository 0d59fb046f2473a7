/* Element diffs of two versions, beside reading both with as many threads. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench.h"

typedef struct ediff_case {
    const char *name, *dtype, *codecs;
    uint64_t item, chunk; /* bytes of an element, elements of a chunk */
    unsigned every;       /* one byte in so many differs              */
} ediff_case;

static const ediff_case ediff_cases[] = {
    {"float32, zstd, all differ", "float32", CODECS_ZSTD_3, 4, 262144, 1},
    {"float32, zstd, one byte in 64 KiB differs", "float32", CODECS_ZSTD_3, 4, 262144, 65536},
    {"uint8, no codec, all differ", "uint8", CODECS_RAW, 1, 1048576, 1},
    {"uint8, zstd, chunks of 16 MiB", "uint8", CODECS_ZSTD_3, 1, 16777216, 4096},
};

static void ediff_make(const ediff_case *c, const bench_opts *o, uint8_t *data)
{
    brc_error err = BRC_ERROR_INIT;
    brc_array_spec spec = BRC_ARRAY_SPEC_INIT;
    uint64_t shape[1] = {o->bytes / c->item}, chunk[1] = {c->chunk};
    repo r;
    spec.ndim = 1;
    spec.shape = shape;
    spec.chunk = chunk;
    spec.dtype = c->dtype;
    spec.codecs_json = c->codecs;
    repo_make(&r, o, "ediff.brc", 0, &spec);
    make_field((float *)(void *)data, o->bytes / MIB, o->threads);
    for (int version = 0; version < 2; version++) {
        for (size_t i = 0; i < o->bytes && version == 1; i += c->every)
            data[i] ^= 1;
        must(brc_array_write(r.array, NULL, data, o->bytes, &err), &err, "writing");
        repo_commit(&r, "a version");
    }
    repo_close(&r);
}

static took read_both(const repo *r, const bench_opts *o, uint8_t *into)
{
    static const char *const revs[] = {"HEAD~1", "HEAD"};
    brc_error err = BRC_ERROR_INIT;
    took start = start_clock();
    for (int i = 0; i < 2; i++) {
        brc_session *s;
        brc_array *a;
        must(brc_session_open(&s, r->handle, revs[i], BRC_SESSION_AT, &err), &err, "a session");
        must(brc_array_open(&a, s, "/a", &err), &err, "opening an array");
        must(brc_array_read(a, NULL, into, o->bytes, &err), &err, "reading");
        brc_array_free(a);
        brc_session_free(s);
    }
    return stop_clock(start);
}

static took diff_both(const repo *r)
{
    brc_error err = BRC_ERROR_INIT;
    brc_diff_opts opts = BRC_DIFF_OPTS_INIT;
    brc_iter *it;
    const brc_change *change;
    opts.flags = BRC_DIFF_ELEMENTS;
    took start = start_clock();
    must(brc_diff(&it, r->handle, "HEAD~1", "HEAD", &opts, &err), &err, "a diff");
    must_be(brc_next(it, &change, &err) == 1 && change->elements_changed > 0, "a difference");
    brc_iter_free(it);
    return stop_clock(start);
}

void bench_ediff(const bench_opts *o)
{
    uint8_t *data = must_alloc(o->bytes);
    report_head("ediff", "the elements in which two versions differ, beside reading both");
    for (size_t i = 0; i < sizeof(ediff_cases) / sizeof(ediff_cases[0]); i++) {
        const ediff_case *c = &ediff_cases[i];
        series ours = {.n = 0}, limit = {.n = 0};
        repo r;
        ediff_make(c, o, data);
        repo_open(&r, o, "ediff.brc");
        forget_peak();
        const double before = status_bytes("VmRSS:");
        diff_both(&r);
        const double peak = status_bytes("VmHWM:") - before;
        for (int pair = 0; pair < o->pairs; pair++) {
            series_add(&ours, diff_both(&r));
            series_add(&limit, read_both(&r, o, data));
        }
        report_ratio(c->name, &ours, &limit, 2 * (double)o->bytes / (double)MIB, JUST_SHOWN, 0);
        report_value("  peak memory for each byte of a chunk and thread",
                     peak / (double)(c->chunk * c->item) / o->threads, "bytes", JUST_SHOWN, 0,
                     NULL);
        repo_close(&r);
        remove_file(r.path);
    }
    free(data);
}
