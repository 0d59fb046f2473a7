/* Whole arrays: written, read, and written again with nothing changed. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench.h"

#define ZSTD_3 "[{\"name\":\"bytes\",\"configuration\":{\"endian\":\"little\"}}," \
               "{\"name\":\"zstd\",\"configuration\":{\"level\":3,\"checksum\":false}}]"
#define RAW "[{\"name\":\"bytes\",\"configuration\":{\"endian\":\"little\"}}]"

typedef struct bulk_case {
    const char *name, *codecs; /* codecs NULL: what is chosen for float32 */
    int flat;
    double write_target, read_target;
    int write_way;
} bulk_case;

static const bulk_case bulk_cases[] = {
    {"zstd-3", ZSTD_3, FLAT_ZSTD, 0.9, 0.9, AT_LEAST},
    {"default (blosc)", NULL, FLAT_BLOSC, 0.9, 0.9, AT_LEAST},
    {"no codec", RAW, FLAT_NONE, 0.9, 0.6, JUST_SHOWN},
};

typedef struct bulk {
    const bench_opts *o;
    const bulk_case *c;
    flat_file flat;
    uint8_t *src, *dst;
    double mb;
} bulk;

static void bulk_spec(const bulk *b, brc_array_spec *spec, uint64_t shape[3], uint64_t chunk[3])
{
    shape[0] = b->o->bytes / MIB;
    shape[1] = shape[2] = chunk[1] = chunk[2] = 512;
    chunk[0] = 1;
    *spec = (brc_array_spec)BRC_ARRAY_SPEC_INIT;
    spec->ndim = 3;
    spec->shape = shape;
    spec->chunk = chunk;
    spec->dtype = "float32";
    spec->codecs_json = b->c->codecs;
}

/* A new file each time; making it is not timed, and neither is removing it. */
static double bulk_write(const bulk *b, uint32_t flags, int keep)
{
    repo r;
    uint64_t shape[3], chunk[3];
    brc_array_spec spec;
    brc_error err = BRC_ERROR_INIT;
    bulk_spec(b, &spec, shape, chunk);
    repo_make(&r, b->o, "bulk.brc", flags, &spec);
    double start = now_s();
    must(brc_array_write(r.array, NULL, b->src, b->o->bytes, &err), &err, "writing");
    double took = now_s() - start;
    if (keep)
        repo_commit(&r, "all");
    repo_close(&r);
    if (!keep)
        remove_file(r.path);
    return took;
}

static void bulk_writes(bulk *b)
{
    series flat = {.n = 0}, ours = {.n = 0}, bare = {.n = 0};
    char label[80];
    flat_write(&b->flat, b->src);
    bulk_write(b, 0, 0);
    for (int i = 0; i < b->o->pairs; i++) {
        series_add(&flat, flat_write(&b->flat, b->src));
        series_add(&ours, bulk_write(b, 0, 0));
        series_add(&bare, bulk_write(b, BRC_OPEN_NO_READBACK, 0));
    }
    snprintf(label, sizeof(label), "write, %s", b->c->name);
    report_ratio(label, &ours, &flat, b->mb, b->c->write_way, b->c->write_target);
    if (b->c->flat == FLAT_NONE)
        return;
    snprintf(label, sizeof(label), "write, %s, not read back", b->c->name);
    report_ratio(label, &bare, &flat, b->mb, b->c->write_way, b->c->write_target);
}

static double bulk_read(const bulk *b, repo *r, uint8_t *dst)
{
    brc_error err = BRC_ERROR_INIT;
    double start = now_s();
    must(brc_array_read(r->array, NULL, dst, b->o->bytes, &err), &err, "reading");
    return now_s() - start;
}

static double fresh_read(bulk *b, repo *r)
{
    uint8_t *dst = must_alloc(b->o->bytes);
    double took = r != NULL ? bulk_read(b, r, dst) : flat_read(&b->flat, dst);
    free(dst);
    return took;
}

static void bulk_reads(bulk *b, repo *r)
{
    series flat = {.n = 0}, ours = {.n = 0}, flat_fresh = {.n = 0}, ours_fresh = {.n = 0};
    char label[80];
    memset(b->dst, 1, b->o->bytes);
    flat_read(&b->flat, b->dst);
    must_be(memcmp(b->src, b->dst, b->o->bytes) == 0, "reading the flat file");
    memset(b->dst, 1, b->o->bytes);
    bulk_read(b, r, b->dst);
    must_be(memcmp(b->src, b->dst, b->o->bytes) == 0, "reading what was written");
    for (int i = 0; i < b->o->pairs; i++) {
        series_add(&flat, flat_read(&b->flat, b->dst));
        series_add(&ours, bulk_read(b, r, b->dst));
        series_add(&flat_fresh, fresh_read(b, NULL));
        series_add(&ours_fresh, fresh_read(b, r));
    }
    snprintf(label, sizeof(label), "read, %s, into memory used before", b->c->name);
    report_ratio(label, &ours, &flat, b->mb, AT_LEAST, b->c->read_target);
    snprintf(label, sizeof(label), "read, %s, into fresh memory", b->c->name);
    report_ratio(label, &ours_fresh, &flat_fresh, b->mb, AT_LEAST, b->c->read_target);
}

static void bulk_rewrites(bulk *b, repo *r)
{
    series hash = {.n = 0}, ours = {.n = 0};
    brc_error err = BRC_ERROR_INIT;
    size_t n = b->o->bytes / MIB;
    for (int i = 0; i <= b->o->pairs; i++) {
        double limit = hash_all(b->src, n, MIB, b->o->threads);
        double start = now_s();
        must(brc_array_write(r->array, NULL, b->src, b->o->bytes, &err), &err, "writing again");
        double took = now_s() - start;
        if (i == 0) /* not measured: it warms things up */
            continue;
        series_add(&hash, limit);
        series_add(&ours, took);
    }
    report_ratio("write what is there already, against XXH3-128", &ours, &hash, b->mb, AT_LEAST, 0.5);
}

static void bulk_case_run(bulk *b)
{
    repo r;
    size_t n = b->o->bytes / MIB;
    flat_make(&b->flat, b->o, "flat", b->c->flat, n, MIB);
    bulk_writes(b);
    flat_write(&b->flat, b->src);
    bulk_write(b, 0, 1);
    repo_open(&r, b->o, "bulk.brc");
    bulk_reads(b, &r);
    if (b->c->flat == FLAT_ZSTD)
        bulk_rewrites(b, &r);
    repo_close(&r);
    uint64_t flat_bytes = file_size(b->flat.path);
    uint64_t bytes = file_size(r.path);
    char context[80];
    snprintf(context, sizeof(context), "data compressed %.2f to 1",
             (double)b->o->bytes / (double)flat_bytes);
    report_value("  file, against the flat one", (double)bytes / (double)flat_bytes, "", JUST_SHOWN, 0,
                 context);
    remove_file(r.path);
    flat_free(&b->flat);
}

void bench_bulk(const bench_opts *o)
{
    bulk b = {.o = o, .mb = (double)o->bytes / 1e6};
    char what[120];
    snprintf(what, sizeof(what), "%zu MiB of float32 in chunks of 1 MiB; ours against one flat file, "
                                 "both durable", o->bytes / MIB);
    report_head("bulk", what);
    b.src = must_alloc(o->bytes);
    b.dst = must_alloc(o->bytes);
    make_field((float *)(void *)b.src, o->bytes / MIB, o->threads);
    for (size_t i = 0; i < sizeof(bulk_cases) / sizeof(bulk_cases[0]); i++) {
        b.c = &bulk_cases[i];
        bulk_case_run(&b);
    }
    free(b.src);
    free(b.dst);
}
