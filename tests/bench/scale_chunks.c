/* How the cost of arrays of many chunks grows. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../../src/store/db.h"
#include "scale.h"

enum { ITEMS = 8 };

/* An uncommitted array of n chunks of 8 bytes, all different. */
static void many_chunks(repo *r, size_t n)
{
    uint64_t shape[1] = {n * ITEMS}, chunk[1] = {ITEMS};
    uint8_t *values = must_alloc(n * ITEMS);
    brc_array_spec spec = BRC_ARRAY_SPEC_INIT;
    brc_error err = BRC_ERROR_INIT;
    for (size_t i = 0; i < n; i++) {
        uint64_t number = i + 1;
        memcpy(values + i * ITEMS, &number, ITEMS);
    }
    spec.ndim = 1;
    spec.shape = shape;
    spec.chunk = chunk;
    spec.dtype = "uint8";
    spec.codecs_json = "[{\"name\":\"bytes\"}]";
    must(brc_array_create(&r->array, r->session, "/a", &spec, &err), &err, "an array");
    must(brc_array_write(r->array, NULL, values, n * ITEMS, &err), &err, "writing");
    free(values);
}

static scale_cost status_of_chunks(const bench_opts *o, size_t n)
{
    repo r;
    int clean;
    brc_error err = BRC_ERROR_INIT;
    scale_open(&r, o);
    many_chunks(&r, n);
    scale_cost start = scale_start();
    must(brc_session_clean(&clean, r.session, &err), &err, "status");
    scale_cost cost = scale_stop(start);
    must_be(!clean, "status of changes");
    scale_close(&r);
    return cost;
}

/* Each array has a map of its own, and all these maps are in memory at once: here they pass
 * the limit of what is cached at a thousandth of the chunks that it takes otherwise. */
static scale_cost status_of_many_maps(const bench_opts *o, size_t n)
{
    repo r;
    int clean;
    char path[80];
    uint32_t value;
    brc_error err = BRC_ERROR_INIT;
    scale_open(&r, o);
    scale_tree(&r, "", n, n);
    scale_begin(&r);
    for (size_t i = 0; i < n; i++) {
        snprintf(path, sizeof(path), "/g0/a%zu", i);
        must(brc_array_open(&r.array, r.session, path, &err), &err, "opening an array");
        value = (uint32_t)i + 1;
        must(brc_array_write(r.array, NULL, &value, sizeof(value), &err), &err, "writing");
        brc_array_free(r.array);
    }
    r.array = NULL;
    scale_end(&r);
    r.handle->store->cache.limit = 64 << 10;
    scale_cost start = scale_start();
    must(brc_session_clean(&clean, r.session, &err), &err, "status");
    scale_cost cost = scale_stop(start);
    must_be(!clean, "status of changes");
    scale_close(&r);
    return cost;
}

static scale_cost commit_chunks(const bench_opts *o, size_t n)
{
    repo r;
    scale_open(&r, o);
    many_chunks(&r, n);
    repo_commit(&r, "all");
    repo_close(&r);
    return (scale_cost){0, 0, 0};
}

static scale_cost rewrite_codecs(const bench_opts *o, size_t n)
{
    repo r;
    brc_error err = BRC_ERROR_INIT;
    scale_apart(commit_chunks, o, n);
    scale_reopen(&r, o);
    must(brc_array_open(&r.array, r.session, "/a", &err), &err, "opening an array");
    scale_cost start = scale_start();
    must(brc_array_set_codecs(r.array, "[{\"name\":\"bytes\"},{\"name\":\"crc32c\"}]", 1, &err),
         &err, "codecs --rewrite");
    scale_cost cost = scale_stop(start);
    scale_close(&r);
    return cost;
}

/* Every other element differs, in chunks of 1 MiB. */
static scale_cost element_diff(const bench_opts *o, size_t n)
{
    repo r;
    brc_iter *it;
    const brc_change *change;
    uint64_t shape[1] = {n}, chunk[1] = {1 << 20};
    uint8_t *values = must_alloc(n);
    brc_diff_opts diff = BRC_DIFF_OPTS_INIT;
    brc_array_spec spec = BRC_ARRAY_SPEC_INIT;
    brc_error err = BRC_ERROR_INIT;
    scale_open(&r, o);
    spec.ndim = 1;
    spec.shape = shape;
    spec.chunk = chunk;
    spec.dtype = "uint8";
    must(brc_array_create(&r.array, r.session, "/a", &spec, &err), &err, "an array");
    memset(values, 1, n);
    must(brc_array_write(r.array, NULL, values, n, &err), &err, "writing");
    repo_commit(&r, "ones");
    for (size_t i = 0; i < n; i += 2)
        values[i] = (uint8_t)(2 + i % 100);
    must(brc_array_write(r.array, NULL, values, n, &err), &err, "writing");
    free(values);
    diff.flags = BRC_DIFF_ELEMENTS;
    scale_cost start = scale_start();
    must(brc_diff(&it, r.handle, NULL, NULL, &diff, &err), &err, "diff");
    must_be(brc_next(it, &change, &err) == 1, "a change");
    scale_cost cost = scale_stop(start);
    must_be(change->elements_changed == (n + 1) / 2, "elements that differ");
    brc_iter_free(it);
    scale_close(&r);
    return cost;
}

const scale_case scale_chunks[] = {
    {"diff --elements", 16000000, element_diff, 0},
    {"status with uncommitted chunks", 20000, status_of_chunks, 0},
    {"status with uncommitted arrays, cache full", 2000, status_of_many_maps, 0},
    {"codecs --rewrite of chunks", 2000, rewrite_codecs, 0},
    {"codecs --rewrite of chunks: memory", 20000, rewrite_codecs, 1},
    {NULL, 0, NULL, 0},
};
