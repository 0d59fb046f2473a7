/* Whole arrays: written, read, and written again with nothing changed; in the file and in packs. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../../src/base/file.h"
#include "bench.h"

typedef struct bulk_case {
    const char *name, *codecs; /* codecs NULL: what is chosen for float32 */
    int flat;
    int write_way;
    double read_target, write_target;
    const char *backend; /* NULL: the file itself */
} bulk_case;

static const bulk_case bulk_cases[] = {
    {"zstd-3", CODECS_ZSTD_3, FLAT_ZSTD, AT_LEAST, 0.9, 0.9, NULL},
    {"default (blosc)", NULL, FLAT_BLOSC, AT_LEAST, 0.9, 0.9, NULL},
    {"no codec", CODECS_RAW, FLAT_NONE, JUST_SHOWN, 0.6, 0.9, NULL},
};

static const bulk_case backend_cases[] = {
    {"zstd-3, inline", CODECS_ZSTD_3, FLAT_ZSTD, JUST_SHOWN, 0.9, 0.9, NULL},
    {"zstd-3, pack", CODECS_ZSTD_3, FLAT_ZSTD, AT_LEAST, 0.95, 0.95, "pack"},
    {"no codec, inline", CODECS_RAW, FLAT_NONE, JUST_SHOWN, 0.6, 0.9, NULL},
    {"no codec, pack", CODECS_RAW, FLAT_NONE, AT_LEAST, 0.95, 0.95, "pack"},
};

typedef struct bulk {
    const bench_opts *o;
    const bulk_case *c;
    flat_file flat;
    uint8_t *src, *dst;
    double mb;
} bulk;

static void bulk_make(const bulk *b, repo *r, int readback)
{
    uint64_t shape[3] = {b->o->bytes / MIB, 512, 512}, chunk[3] = {1, 512, 512};
    brc_array_spec spec = BRC_ARRAY_SPEC_INIT;
    spec.ndim = 3;
    spec.shape = shape;
    spec.chunk = chunk;
    spec.dtype = "float32";
    spec.codecs_json = b->c->codecs;
    spec.backend_json = b->c->backend;
    repo_make(r, b->o, "bulk.brc", readback, &spec);
}

static void bulk_remove(repo *r)
{
    char packs[sizeof(r->path) + 8];
    repo_close(r);
    remove_file(r->path);
    snprintf(packs, sizeof(packs), "%s.packs", r->path);
    brc_tree_remove(packs);
}

static took write_all(const bulk *b, repo *r)
{
    brc_error err = BRC_ERROR_INIT;
    took start = start_clock();
    must(brc_array_write(r->array, NULL, b->src, b->o->bytes, &err), &err, "writing");
    return stop_clock(start);
}

/* A new file each time; making it is not timed, and neither is removing it. */
static took write_new(const bulk *b, int readback)
{
    repo r;
    bulk_make(b, &r, readback);
    took time = write_all(b, &r);
    bulk_remove(&r);
    return time;
}

static void bulk_writes(bulk *b)
{
    series flat = {.n = 0}, ours = {.n = 0}, bare = {.n = 0};
    char label[80];
    flat_write(&b->flat, b->src);
    write_new(b, 0);
    for (int i = 0; i < b->o->pairs; i++) {
        series_add(&flat, flat_write(&b->flat, b->src));
        series_add(&ours, write_new(b, 0));
        series_add(&bare, write_new(b, BRC_READBACK_NONE));
    }
    snprintf(label, sizeof(label), "write, %s", b->c->name);
    report_ratio(label, &ours, &flat, b->mb, b->c->write_way, b->c->write_target);
    if (b->c->flat == FLAT_NONE)
        return;
    snprintf(label, sizeof(label), "write, %s, not read back", b->c->name);
    report_ratio(label, &bare, &flat, b->mb, b->c->write_way, b->c->write_target);
}

static took read_all(const bulk *b, repo *r, uint8_t *dst)
{
    brc_error err = BRC_ERROR_INIT;
    took start = start_clock();
    must(brc_array_read(r->array, NULL, dst, b->o->bytes, &err), &err, "reading");
    return stop_clock(start);
}

/* r NULL: the flat file. */
static took read_fresh(bulk *b, repo *r)
{
    uint8_t *dst = must_alloc(b->o->bytes);
    took time = r != NULL ? read_all(b, r, dst) : flat_read(&b->flat, dst, b->o->threads);
    free(dst);
    return time;
}

static void check_reads(bulk *b, repo *r)
{
    memset(b->dst, 1, b->o->bytes);
    flat_read(&b->flat, b->dst, b->o->threads);
    must_be(memcmp(b->src, b->dst, b->o->bytes) == 0, "reading the flat file");
    memset(b->dst, 1, b->o->bytes);
    read_all(b, r, b->dst);
    must_be(memcmp(b->src, b->dst, b->o->bytes) == 0, "reading what was written");
}

static void bulk_reads(bulk *b, repo *r)
{
    series flat = {.n = 0}, one = {.n = 0}, ours = {.n = 0};
    series flat_fresh = {.n = 0}, ours_fresh = {.n = 0};
    char label[80];
    check_reads(b, r);
    for (int i = 0; i < b->o->pairs; i++) {
        series_add(&flat, flat_read(&b->flat, b->dst, b->o->threads));
        series_add(&ours, read_all(b, r, b->dst));
        series_add(&one, flat_read(&b->flat, b->dst, 1));
        series_add(&flat_fresh, read_fresh(b, NULL));
        series_add(&ours_fresh, read_fresh(b, r));
    }
    snprintf(label, sizeof(label), "read, %s, into memory used before", b->c->name);
    report_ratio(label, &ours, &flat, b->mb, AT_LEAST, b->c->read_target);
    if (b->c->flat == FLAT_NONE)
        report_ratio("  against pread on one thread", &ours, &one, b->mb, AT_LEAST,
                     b->c->read_target);
    snprintf(label, sizeof(label), "read, %s, into fresh memory", b->c->name);
    report_ratio(label, &ours_fresh, &flat_fresh, b->mb, AT_LEAST, b->c->read_target);
}

static void bulk_rewrites(bulk *b, repo *r)
{
    series hash = {.n = 0}, ours = {.n = 0};
    write_all(b, r);
    for (int i = 0; i < b->o->pairs; i++) {
        series_add(&hash, hash_all(b->src, b->o->bytes / MIB, MIB, b->o->threads));
        series_add(&ours, write_all(b, r));
    }
    report_ratio("write what is there already, against XXH3-128", &ours, &hash, b->mb, AT_LEAST,
                 0.5);
}

static void bulk_file(const bulk *b, const repo *r)
{
    double flat = (double)file_size(b->flat.path), ours = (double)file_size(r->path);
    char context[80];
    snprintf(context, sizeof(context), "the data are compressed %.2f to 1",
             (double)b->o->bytes / flat);
    report_value("  file, against the flat one", ours / flat, "", JUST_SHOWN, 0, context);
}

static void bulk_case_run(bulk *b)
{
    repo r;
    flat_make(&b->flat, b->o, "flat", b->c->flat, b->o->bytes / MIB, MIB);
    bulk_make(b, &r, 0);
    b->flat.blocksize = repo_blocksize(&r);
    bulk_remove(&r);
    bulk_writes(b);
    bulk_make(b, &r, 0);
    write_all(b, &r);
    repo_commit(&r, "all");
    bulk_reads(b, &r);
    if (b->c->flat == FLAT_ZSTD)
        bulk_rewrites(b, &r);
    if (b->c->backend == NULL)
        bulk_file(b, &r);
    bulk_remove(&r);
    flat_free(&b->flat);
}

static void run_cases(const bench_opts *o, const char *title, const bulk_case *cases, size_t n)
{
    bulk b = {.o = o, .mb = (double)o->bytes / 1e6};
    char what[120];
    snprintf(what, sizeof(what),
             "%zu MiB of float32 in chunks of 1 MiB; ours against one flat file, "
             "both durable",
             o->bytes / MIB);
    report_head(title, what);
    b.src = must_alloc(o->bytes);
    b.dst = must_alloc(o->bytes);
    make_field((float *)(void *)b.src, o->bytes / MIB, o->threads);
    for (size_t i = 0; i < n; i++) {
        b.c = &cases[i];
        bulk_case_run(&b);
    }
    free(b.src);
    free(b.dst);
}

void bench_bulk(const bench_opts *o)
{
    run_cases(o, "bulk", bulk_cases, sizeof(bulk_cases) / sizeof(bulk_cases[0]));
}

void bench_backends(const bench_opts *o)
{
    run_cases(o, "backends", backend_cases, sizeof(backend_cases) / sizeof(backend_cases[0]));
}
