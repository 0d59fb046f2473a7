/* An array of very many small chunks, for what depends on their number alone. */
#include <stdlib.h>
#include <string.h>

#include "bench.h"
#include "../kit/ios.h"

static void chunk_values(int16_t *out, uint64_t number, uint64_t version)
{
    memcpy(out, &number, sizeof(number));
    memcpy(out + 4, &version, sizeof(version));
}

void chunk_array_put(const chunk_array *a, uint64_t number, uint64_t version)
{
    int16_t values[CHUNK_ITEMS];
    brc_sel sel = BRC_SEL_INIT;
    brc_error err = BRC_ERROR_INIT;
    chunk_values(values, number, version);
    sel_all(&sel, a->r.array);
    sel.start[0] = number * CHUNK_ITEMS;
    sel.count[0] = CHUNK_ITEMS;
    must(brc_array_write(a->r.array, &sel, values, sizeof(values), &err), &err, "writing a chunk");
}

void chunk_array_make(chunk_array *a, const bench_opts *o, const char *file, size_t n)
{
    const size_t bytes = n * CHUNK_ITEMS * sizeof(int16_t);
    uint64_t shape[1] = {n * CHUNK_ITEMS}, chunk[1] = {CHUNK_ITEMS};
    brc_array_spec spec = BRC_ARRAY_SPEC_INIT;
    brc_error err = BRC_ERROR_INIT;
    int16_t *values = must_alloc(bytes);
    for (size_t i = 0; i < n; i++)
        chunk_values(values + i * CHUNK_ITEMS, i, 1);
    spec.ndim = 1;
    spec.shape = shape;
    spec.chunk = chunk;
    spec.dtype = "int16";
    spec.codecs_json = CODECS_RAW;
    a->n = n;
    a->random = 3;
    repo_make(&a->r, o, file, 0, &spec);
    must(brc_array_write(a->r.array, NULL, values, bytes, &err), &err, "writing");
    free(values);
}

double chunk_array_commit(chunk_array *a, uint64_t version)
{
    brc_error err = BRC_ERROR_INIT;
    uint64_t number = splitmix64(&a->random) % a->n;
    double start = now_s();
    must(brc_begin(a->r.handle, &err), &err, "begin");
    chunk_array_put(a, number, version);
    repo_commit(&a->r, "one chunk");
    must(brc_end(a->r.handle, BRC_END_KEEP, &err), &err, "end");
    return now_s() - start;
}

double diff_seconds(breccia *handle, const char *a, const char *b, uint64_t *changed)
{
    brc_error err = BRC_ERROR_INIT;
    brc_iter *it;
    const brc_change *change;
    int rc;
    *changed = 0;
    double begin = now_s();
    must(brc_diff(&it, handle, a, b, NULL, &err), &err, "diff");
    while ((rc = brc_next(it, &change, &err)) > 0)
        *changed += change->chunks_changed;
    must(rc, &err, "diff");
    double seconds = now_s() - begin;
    brc_iter_free(it);
    return seconds;
}
