/* One chunk, and one small slice, anywhere in an array, with everything warm. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench.h"
#include "../kit/ios.h"

enum { SAMPLES = 600, SLICE = 8 };

typedef struct random_case {
    const char *name, *codecs;
    int flat;
    uint64_t chunk[3];
} random_case;

static const random_case random_cases[] = {
    {"1 MiB, zstd-3", CODECS_ZSTD_3, FLAT_ZSTD, {64, 64, 64}},
    {"1 MiB, default", NULL, FLAT_BLOSC, {64, 64, 64}},
    {"1 MiB, no codec", CODECS_RAW, FLAT_NONE, {64, 64, 64}},
    {"64 KiB, zstd-3", CODECS_ZSTD_3, FLAT_ZSTD, {16, 32, 32}},
    {"64 KiB, default", NULL, FLAT_BLOSC, {16, 32, 32}},
    {"64 KiB, no codec", CODECS_RAW, FLAT_NONE, {16, 32, 32}},
};

typedef struct sample {
    brc_sel sel;
    uint8_t *stored;
    size_t len;
} sample;

typedef struct random_run {
    const bench_opts *o;
    const random_case *c;
    uint64_t shape[3];
    size_t chunk_len;
    repo r;
    flat_file flat;
    uint8_t *src, *dst;
    sample samples[SAMPLES];
} random_run;

static uint64_t below(uint64_t *state, uint64_t n)
{
    return splitmix64(state) % n;
}

static double read_box(random_run *run, const brc_sel *sel, size_t len)
{
    brc_error err = BRC_ERROR_INIT;
    double start = now_s();
    must(brc_array_read(run->r.array, sel, run->dst, len, &err), &err, "reading");
    return now_s() - start;
}

static void random_setup(random_run *run)
{
    brc_array_spec spec = BRC_ARRAY_SPEC_INIT;
    brc_error err = BRC_ERROR_INIT;
    spec.ndim = 3;
    spec.shape = run->shape;
    spec.chunk = run->c->chunk;
    spec.dtype = "float32";
    spec.codecs_json = run->c->codecs;
    repo_make(&run->r, run->o, "random.brc", BRC_READBACK_NONE, &spec);
    must(brc_array_write(run->r.array, NULL, run->src, run->shape[0] * MIB, &err), &err, "writing");
    repo_commit(&run->r, "all");
    flat_make(&run->flat, run->o, "flat", run->c->flat, SAMPLES, run->chunk_len);
    run->flat.blocksize = repo_blocksize(&run->r);
}

/* Chooses the chunks to read, and keeps the compressed bytes of each for the limit. */
static void random_choose(random_run *run)
{
    uint64_t state = 7;
    for (int i = 0; i < SAMPLES; i++) {
        sample *s = &run->samples[i];
        s->sel.size = sizeof(s->sel);
        sel_all(&s->sel, run->r.array);
        for (int d = 0; d < 3; d++) {
            uint64_t size = run->c->chunk[d];
            s->sel.start[d] = below(&state, run->shape[d] / size) * size;
            s->sel.count[d] = size;
        }
        read_box(run, &s->sel, run->chunk_len);
        s->stored = flat_encode_one(&run->flat, run->dst, &s->len);
        flat_put_one(&run->flat, (size_t)i, s->stored, s->len);
    }
}

static void random_chunks(random_run *run)
{
    static double ours[SAMPLES], decode[SAMPLES], more[SAMPLES], fetch[SAMPLES];
    char label[80], context[160];
    for (int i = 0; i < SAMPLES; i++) {
        const sample *s = &run->samples[i];
        for (int turn = 0; turn < 2; turn++) { /* either comes first as often */
            if (turn == i % 2)
                decode[i] = 1e6 * flat_decode_one(&run->flat, s->stored, s->len, run->dst);
            else
                ours[i] = 1e6 * read_box(run, &s->sel, run->chunk_len);
        }
        more[i] = ours[i] - decode[i];
        fetch[i] = 1e6 * flat_fetch_one(&run->flat, (size_t)i);
    }
    double p50 = percentile(ours, SAMPLES, 50), p99 = percentile(ours, SAMPLES, 99);
    double d50 = percentile(decode, SAMPLES, 50), d99 = percentile(decode, SAMPLES, 99);
    snprintf(context, sizeof(context),
             "p50 %.1f, p99 %.1f us; decode %.1f, %.1f us; pread alone, of %zu bytes: %.1f us", p50,
             p99, d50, d99, run->samples[0].len, percentile(fetch, SAMPLES, 50));
    snprintf(label, sizeof(label), "chunk of %s: beyond its decode", run->c->name);
    report_value(label, percentile(more, SAMPLES, 50), "us",
                 run->c->flat == FLAT_NONE ? JUST_SHOWN : AT_MOST, 15, context);
    if (run->chunk_len > 65536)
        return;
    snprintf(label, sizeof(label), "chunk of %s: in all", run->c->name);
    report_value(label, p50, "us", AT_MOST, 60, NULL);
}

static void random_slices(random_run *run)
{
    static double ours[SAMPLES];
    char label[80], context[80];
    uint64_t state = 11, met = 0;
    brc_sel sel = BRC_SEL_INIT;
    sel_all(&sel, run->r.array);
    for (int i = 0; i < SAMPLES; i++) {
        uint64_t chunks = 1;
        for (int d = 0; d < 3; d++) {
            sel.start[d] = below(&state, run->shape[d] - SLICE);
            sel.count[d] = SLICE;
            chunks *= (sel.start[d] + SLICE - 1) / run->c->chunk[d] -
                      sel.start[d] / run->c->chunk[d] + 1;
        }
        met += chunks;
        ours[i] = 1e6 * read_box(run, &sel, SLICE * SLICE * SLICE * sizeof(float));
    }
    double p50 = percentile(ours, SAMPLES, 50), p99 = percentile(ours, SAMPLES, 99);
    snprintf(label, sizeof(label), "slice of 8 x 8 x 8, %s", run->c->name);
    snprintf(context, sizeof(context), "p99 %.1f us, %.2f chunks each", p99, (double)met / SAMPLES);
    report_value(label, p50, "us", JUST_SHOWN, 0, context);
}

static void random_run_case(random_run *run)
{
    run->chunk_len = sizeof(float) * run->c->chunk[0] * run->c->chunk[1] * run->c->chunk[2];
    random_setup(run);
    random_choose(run);
    random_chunks(run);
    random_slices(run);
    for (int i = 0; i < SAMPLES; i++)
        free(run->samples[i].stored);
    repo_close(&run->r);
    remove_file(run->r.path);
    flat_free(&run->flat);
}

void bench_random(const bench_opts *o)
{
    random_run *run = must_alloc(sizeof(*run));
    char what[120];
    size_t planes = o->bytes / MIB / 256 * 64;
    *run = (random_run){ .o = o, .shape = { planes < 64 ? 64 : planes, 512, 512 } };
    snprintf(what, sizeof(what),
             "%d of %zu MiB of float32, chunks are cubes, all in the page cache", SAMPLES,
             (size_t)run->shape[0]);
    report_head("random", what);
    run->src = must_alloc(run->shape[0] * MIB);
    run->dst = must_alloc(MIB);
    make_field((float *)(void *)run->src, run->shape[0], o->threads);
    for (size_t i = 0; i < sizeof(random_cases) / sizeof(random_cases[0]); i++) {
        run->c = &random_cases[i];
        random_run_case(run);
    }
    free(run->src);
    free(run->dst);
    free(run);
}
