/* `import --external`: against decoding and hashing the same bytes, and what a chunk costs in the
 * file. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../../src/base/file.h"
#include "bench.h"

typedef struct source_case {
    const char *name, *file, *codecs;
    int flat;
} source_case;

static const source_case source_cases[] = {
    {"a .npy file", "source.npy", CODECS_RAW, FLAT_NONE},
    {"a Zarr directory, zstd-3", "source.zarr", CODECS_ZSTD_3, FLAT_ZSTD},
};

typedef struct in_place {
    const bench_opts *o;
    const source_case *c;
    flat_file flat;
    uint8_t *src, *dst;
    char source[512], few[512]; /* all, and a source of a few chunks */
} in_place;

/* A file as another program would have made it: ours is only the quickest way to one. */
static void source_make(const in_place *p, const char *path, size_t planes)
{
    uint64_t shape[3] = {planes, 512, 512}, chunk[3] = {1, 512, 512};
    brc_array_spec spec = BRC_ARRAY_SPEC_INIT;
    brc_error err = BRC_ERROR_INIT;
    repo r;
    spec.ndim = 3;
    spec.shape = shape;
    spec.chunk = chunk;
    spec.dtype = "float32";
    spec.codecs_json = p->c->codecs;
    repo_make(&r, p->o, "made.brc", 0, &spec);
    must(brc_array_write(r.array, NULL, p->src, planes * MIB, &err), &err, "writing");
    must(brc_export(r.session, "/a", path, NULL, &err), &err, "exporting");
    repo_close(&r);
    remove_file(r.path);
}

static void import_one(repo *r, const char *source, const char *path)
{
    brc_error err = BRC_ERROR_INIT;
    brc_xfer_opts opts = BRC_XFER_OPTS_INIT;
    opts.flags = BRC_XFER_EXTERNAL;
    must(brc_import(r->session, source, path, &opts, &err), &err, "importing");
}

/* Into a new file, in which a few chunks lie already: then there are tables, and pages of them.
 * Stores what the file has grown by, and how many chunks came. */
static took import_all(const in_place *p, uint64_t *grown, uint64_t *chunks)
{
    static const char count[] = "SELECT count(*) FROM object WHERE backend>0";
    static const char used[] = "SELECT ((SELECT page_count FROM pragma_page_count) - (SELECT "
                               "freelist_count FROM pragma_freelist_count)) * (SELECT page_size "
                               "FROM pragma_page_size)";
    static const uint64_t shape = 1;
    brc_array_spec spec = BRC_ARRAY_SPEC_INIT;
    repo r;
    spec.ndim = 1;
    spec.shape = &shape;
    spec.dtype = "int8";
    repo_make(&r, p->o, "external.brc", 0, &spec);
    import_one(&r, p->few, "/few");
    repo_commit(&r, "few");
    const uint64_t before = sql_number(r.path, used), few = sql_number(r.path, count);
    took start = start_clock();
    import_one(&r, p->source, "/all");
    took time = stop_clock(start);
    repo_commit(&r, "all");
    *grown = sql_number(r.path, used) - before;
    *chunks = sql_number(r.path, count) - few;
    repo_close(&r);
    remove_file(r.path);
    return time;
}

static took decode_and_hash(in_place *p)
{
    took read = flat_read(&p->flat, p->dst, p->o->threads);
    took hash = hash_all(p->dst, p->o->bytes / MIB, MIB, p->o->threads);
    return (took){read.wall + hash.wall, read.cpu + hash.cpu};
}

static void source_run(in_place *p)
{
    enum { FEW = 4, MANY = 1000 };
    series ours = {.n = 0}, limit = {.n = 0};
    uint64_t grown, chunks;
    char label[120], context[80];
    snprintf(p->source, sizeof(p->source), "%s", in_dir(p->o, p->c->file));
    snprintf(p->few, sizeof(p->few), "%s/few-%s", p->o->dir, p->c->file);
    source_make(p, p->source, p->o->bytes / MIB);
    source_make(p, p->few, FEW);
    flat_make(&p->flat, p->o, "flat", p->c->flat, p->o->bytes / MIB, MIB);
    flat_write(&p->flat, p->src);
    import_all(p, &grown, &chunks);
    for (int i = 0; i < p->o->pairs; i++) {
        series_add(&limit, decode_and_hash(p));
        series_add(&ours, import_all(p, &grown, &chunks));
    }
    snprintf(label, sizeof(label), "import --external of %s, against decoding and XXH3",
             p->c->name);
    report_ratio(label, &ours, &limit, (double)p->o->bytes / 1e6, AT_LEAST, 0.9);
    must_be(chunks > 0, "importing in place");
    snprintf(context, sizeof(context), "%llu chunks, whose last pages are not full",
             (unsigned long long)chunks);
    report_value("  the file grows, bytes a chunk", (double)grown / (double)chunks, "",
                 chunks >= MANY ? AT_MOST : JUST_SHOWN, 100, context);
    flat_free(&p->flat);
    brc_tree_remove(p->source);
    brc_tree_remove(p->few);
}

void bench_external(const bench_opts *o)
{
    in_place p = {.o = o};
    char what[120];
    snprintf(what, sizeof(what), "%zu MiB of float32 in chunks of 1 MiB that stay where they are",
             o->bytes / MIB);
    report_head("external", what);
    p.src = must_alloc(o->bytes);
    p.dst = must_alloc(o->bytes);
    make_field((float *)(void *)p.src, o->bytes / MIB, o->threads);
    for (size_t i = 0; i < sizeof(source_cases) / sizeof(source_cases[0]); i++) {
        p.c = &source_cases[i];
        source_run(&p);
    }
    free(p.src);
    free(p.dst);
}
