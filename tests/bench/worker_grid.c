/*
 * The rows of `make bench-peers` about history, in C: commits, branches, differences and merges of
 * a grid of small chunks, and collections of garbage. A grid has side x side chunks of 1 x
 * CHUNK_ITEMS int16 without a codec; chunk n is at (n / side, n % side), and has its number and a
 * version in it.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../kit/ios.h"
#include "worker.h"

enum { SLAB = 64, LITTLE = 8 }; /* MiB at once; one of so many parts is written a second time */

static void grid_values(int16_t *out, uint64_t number, uint64_t version)
{
    memcpy(out, &number, sizeof(number));
    memcpy(out + 4, &version, sizeof(version));
}

static void grid_make(worker *w, const char *file)
{
    const size_t n = w->side * w->side, bytes = n * CHUNK_ITEMS * sizeof(int16_t);
    uint64_t shape[2] = {w->side, w->side * CHUNK_ITEMS}, chunk[2] = {1, CHUNK_ITEMS};
    brc_array_spec spec = BRC_ARRAY_SPEC_INIT;
    brc_error err = BRC_ERROR_INIT;
    int16_t *values = must_alloc(bytes);
    for (size_t i = 0; i < n; i++)
        grid_values(values + i * CHUNK_ITEMS, i, 1);
    spec.ndim = 2;
    spec.shape = shape;
    spec.chunk = chunk;
    spec.dtype = "int16";
    spec.codecs_json = CODECS_RAW;
    repo_make(&w->r, &w->o, file, 0, &spec);
    must(brc_array_write(w->r.array, NULL, values, bytes, &err), &err, "writing");
    repo_commit(&w->r, "all");
    free(values);
}

void grid_prepare(worker *w, const brc_json *q)
{
    char file[160];
    const char *name = asked_text(q, "name");
    w->side = asked_number(q, "side");
    if (w->r.handle != NULL && strcmp(w->name, name) == 0)
        return;
    worker_close(w);
    snprintf(w->name, sizeof(w->name), "%s", name);
    snprintf(file, sizeof(file), "%s.brc", name);
    if (worker_has(w, q))
        repo_open(&w->r, &w->o, file);
    else
        grid_make(w, file);
}

static void chunk_sel(const worker *w, const brc_array *a, uint64_t number, brc_sel *sel)
{
    *sel = (brc_sel)BRC_SEL_INIT;
    sel_all(sel, a);
    sel->start[0] = number / w->side;
    sel->count[0] = 1;
    sel->start[1] = number % w->side * CHUNK_ITEMS;
    sel->count[1] = CHUNK_ITEMS;
}

/* The chunks of a list get a version. */
typedef struct touched {
    size_t n;
    uint64_t *numbers;
    brc_sel *sels;
    brc_buffer *buffers;
    brc_io *ios;
    int16_t *values;
} touched;

static void touch(const worker *w, brc_array *a, const brc_json *list, uint64_t version, touched *t)
{
    size_t i = 0;
    t->n = brc_json_count(list);
    t->numbers = must_alloc(t->n * sizeof(*t->numbers));
    t->sels = must_alloc(t->n * sizeof(*t->sels));
    t->buffers = must_alloc(t->n * sizeof(*t->buffers));
    t->ios = must_alloc(t->n * sizeof(*t->ios));
    t->values = must_alloc(t->n * CHUNK_ITEMS * sizeof(*t->values));
    for (const brc_json *n = brc_json_first(list); n != NULL; n = brc_json_next(n), i++) {
        int16_t *values = t->values + i * CHUNK_ITEMS;
        must_be(brc_json_uint(n, w->side * w->side - 1, &t->numbers[i]), "a chunk's number");
        grid_values(values, t->numbers[i], version);
        chunk_sel(w, a, t->numbers[i], &t->sels[i]);
        t->ios[i] = io_in(&t->buffers[i], a, &t->sels[i], values, CHUNK_ITEMS * sizeof(*values));
    }
}

/* Compares what the file has with what was written, and frees. */
static void touched_end(brc_array *a, touched *t)
{
    brc_error err = BRC_ERROR_INIT;
    int16_t got[CHUNK_ITEMS];
    for (size_t i = 0; i < t->n; i++) {
        must(brc_array_read(a, &t->sels[i], got, sizeof(got), &err), &err, "reading a chunk");
        must_be(memcmp(got, t->values + i * CHUNK_ITEMS, sizeof(got)) == 0,
                "reading a chunk that was committed");
    }
    free(t->numbers);
    free(t->sels);
    free(t->buffers);
    free(t->ios);
    free(t->values);
}

static void commit_touched(brc_session *s, const touched *t)
{
    brc_error err = BRC_ERROR_INIT;
    brc_oid id;
    brc_commit_opts opts = BRC_COMMIT_OPTS_INIT;
    opts.message = "chunks";
    opts.author = "bench";
    must(brc_write(t->ios, t->n, &err), &err, "writing chunks");
    must(brc_session_commit(&id, s, &opts, &err), &err, "a commit");
}

void run_commit(worker *w, const brc_json *q)
{
    brc_error err = BRC_ERROR_INIT;
    touched t;
    touch(w, w->r.array, brc_json_member(q, "touch"), asked_number(q, "version"), &t);
    clock_on(w);
    must(brc_begin(w->r.handle, &err), &err, "begin");
    commit_touched(w->r.session, &t);
    must(brc_end(w->r.handle, BRC_END_KEEP, &err), &err, "end");
    clock_off(w);
    touched_end(w->r.array, &t);
}

void run_commits(worker *w, const brc_json *q)
{
    brc_error err = BRC_ERROR_INIT;
    const brc_json *list = brc_json_member(q, "touch");
    const uint64_t version = asked_number(q, "version");
    int16_t values[CHUNK_ITEMS];
    brc_sel sel;
    uint64_t number = 0, made = 0;
    clock_on(w);
    for (const brc_json *item = brc_json_first(list); item != NULL; item = brc_json_next(item)) {
        must_be(brc_json_uint(item, w->side * w->side - 1, &number), "a chunk's number");
        chunk_sel(w, w->r.array, number, &sel);
        grid_values(values, number, version + made++);
        must(brc_begin(w->r.handle, &err), &err, "begin");
        must(brc_array_write(w->r.array, &sel, values, sizeof(values), &err), &err, "a chunk");
        repo_commit(&w->r, "one chunk");
        must(brc_end(w->r.handle, BRC_END_KEEP, &err), &err, "end");
    }
    clock_off(w);
}

void run_log(worker *w, const brc_json *q)
{
    brc_error err = BRC_ERROR_INIT;
    brc_iter *it;
    const brc_commit *commit;
    uint64_t n = 0;
    int rc;
    clock_on(w);
    must(brc_log(&it, w->r.handle, NULL, NULL, &err), &err, "log");
    while ((rc = brc_next(it, &commit, &err)) > 0)
        n++;
    must(rc, &err, "log");
    brc_iter_free(it);
    clock_off(w);
    must_be(n == asked_number(q, "commits"), "a log of all commits");
}

void run_branch(worker *w, const brc_json *q)
{
    const char *branch = asked_text(q, "branch");
    brc_error err = BRC_ERROR_INIT;
    clock_on(w);
    must(brc_ref_create(w->r.handle, branch, NULL, NULL, 0, &err), &err, "a branch");
    clock_off(w);
}

/* A branch with some chunks of its own; *a is open on it, in *s. */
static void branch_with(worker *w, const brc_json *q, const char *list, brc_session **s,
                        brc_array **a, touched *t)
{
    brc_error err = BRC_ERROR_INIT;
    const char *branch = asked_text(q, "branch");
    must(brc_ref_create(w->r.handle, branch, NULL, NULL, 0, &err), &err, "a branch");
    must(brc_session_open(s, w->r.handle, branch, BRC_SESSION_WRITE, &err), &err, "a session");
    must(brc_array_open(a, *s, "/a", &err), &err, "an array");
    touch(w, *a, brc_json_member(q, list), asked_number(q, "version"), t);
    commit_touched(*s, t);
}

static void branch_end(brc_session *s, brc_array *a)
{
    brc_array_free(a);
    brc_session_free(s);
}

/* The branch is the current one, and one of its chunks is read. */
void run_switch(worker *w, const brc_json *q)
{
    brc_error err = BRC_ERROR_INIT;
    brc_session *s;
    brc_array *a;
    touched t;
    int16_t got[CHUNK_ITEMS];
    branch_with(w, q, "touch", &s, &a, &t);
    branch_end(s, a);
    clock_on(w);
    must(brc_switch(w->r.handle, asked_text(q, "branch"), 0, &err), &err, "switch");
    must(brc_session_open(&s, w->r.handle, NULL, BRC_SESSION_VIEW, &err), &err, "a session");
    must(brc_array_open(&a, s, "/a", &err), &err, "an array");
    must(brc_array_read(a, &t.sels[0], got, sizeof(got), &err), &err, "reading a chunk");
    clock_off(w);
    must_be(memcmp(got, t.values, sizeof(got)) == 0, "the switch");
    touched_end(a, &t);
    branch_end(s, a);
    must(brc_switch(w->r.handle, "main", 0, &err), &err, "switch");
}

void run_diff(worker *w, const brc_json *q)
{
    uint64_t changed;
    clock_on(w);
    diff_seconds(w->r.handle, "main~1", "main", &changed);
    clock_off(w);
    must_be(changed == asked_number(q, "differences"), "a difference of all changed chunks");
}

void run_merge(worker *w, const brc_json *q)
{
    brc_error err = BRC_ERROR_INIT;
    brc_merge_result result = BRC_MERGE_RESULT_INIT;
    brc_session *s;
    brc_array *a;
    touched ours, theirs;
    branch_with(w, q, "theirs", &s, &a, &theirs);
    touch(w, w->r.array, brc_json_member(q, "touch"), asked_number(q, "version"), &ours);
    commit_touched(w->r.session, &ours);
    clock_on(w);
    must(brc_merge(&result, NULL, w->r.handle, asked_text(q, "branch"), NULL, &err), &err, "merge");
    clock_off(w);
    must_be(result.result == BRC_MERGE_MERGED, "a merge of both sides");
    touched_end(w->r.array, &ours);
    touched_end(w->r.array, &theirs);
    branch_end(s, a);
}

/* ---- gc and fsck -------------------------------- */

static void noise(uint8_t *out, size_t bytes, uint64_t seed)
{
    for (size_t i = 0; i < bytes; i += sizeof(seed)) {
        uint64_t r = splitmix64(&seed);
        memcpy(out + i, &r, sizeof(r));
    }
}

static void noise_write(worker *w, uint8_t *slab, uint64_t seed, uint64_t mib)
{
    brc_error err = BRC_ERROR_INIT;
    for (uint64_t at = 0; at < mib; at += SLAB) {
        brc_sel sel = BRC_SEL_INIT;
        const uint64_t part = mib - at < SLAB ? mib - at : SLAB;
        sel_all(&sel, w->r.array);
        sel.start[0] = at;
        sel.count[0] = part;
        noise(slab, part * MIB, at + seed);
        must(brc_array_write(w->r.array, &sel, slab, part * MIB, &err), &err, "writing");
    }
}

/* Noise in chunks of 1 MiB; a part of it is written a second time and thrown away. */
void care_prepare(worker *w, const brc_json *q)
{
    const uint64_t mib = asked_number(q, "mib");
    uint64_t shape[2] = {mib, MIB}, chunk[2] = {1, MIB};
    brc_array_spec spec = BRC_ARRAY_SPEC_INIT;
    brc_error err = BRC_ERROR_INIT;
    char file[160];
    if (w->r.handle != NULL)
        return;
    snprintf(file, sizeof(file), "%s.brc", asked_text(q, "name"));
    spec.ndim = 2;
    spec.shape = shape;
    spec.chunk = chunk;
    spec.dtype = "uint8";
    spec.codecs_json = "[{\"name\":\"bytes\"}]";
    repo_make(&w->r, &w->o, file, 0, &spec);
    uint8_t *slab = must_alloc(SLAB * MIB);
    noise_write(w, slab, 0, mib);
    repo_commit(&w->r, "noise");
    noise_write(w, slab, mib, mib / LITTLE);
    free(slab);
    must(brc_config_set(w->r.handle, "window", "0", &err), &err, "config");
    must(brc_reset(w->r.handle, NULL, "HEAD", BRC_RESET_HARD, NULL, &err), &err, "reset");
}

void run_gc(worker *w, const brc_json *q)
{
    brc_error err = BRC_ERROR_INIT;
    brc_gc_report report = BRC_GC_REPORT_INIT;
    clock_on(w);
    must(brc_gc(w->r.handle, NULL, &report, &err), &err, "gc");
    clock_off(w);
    must_be(report.objects_removed >= asked_number(q, "mib") / LITTLE, "gc of all garbage");
}

void run_fsck(worker *w, const brc_json *q)
{
    brc_error err = BRC_ERROR_INIT;
    uint64_t checked;
    clock_on(w);
    must(brc_fsck(w->r.handle, 0, NULL, NULL, NULL, &checked, &err), &err, "fsck");
    clock_off(w);
    must_be(checked >= asked_number(q, "mib"), "fsck of all chunks");
}
