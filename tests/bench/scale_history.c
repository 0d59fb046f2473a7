/* How the cost of reading history grows. */
#include <stdio.h>
#include <stdlib.h>

#include "scale.h"
#include "../kit/ios.h"

/* n commits, of which every fifth changes /x. */
static void commits(repo *r, size_t n)
{
    char value[24];
    brc_error err = BRC_ERROR_INIT;
    scale_begin(r);
    scale_array(r, "/x", 0);
    scale_array(r, "/y", 1);
    for (size_t i = 0; i < n; i++) {
        snprintf(value, sizeof(value), "%zu", i);
        must(brc_attrs_set(r->session, i % 5 == 0 ? "/x" : "/y", "i", value, &err), &err, "attrs");
        repo_commit(r, "next");
    }
    scale_end(r);
}

static scale_cost make_commits(const bench_opts *o, size_t n)
{
    repo r;
    scale_open(&r, o);
    commits(&r, n);
    repo_close(&r);
    return (scale_cost){0, 0, 0};
}

/* Opened anew: nothing is held in memory. */
static scale_cost log_of(const bench_opts *o, size_t n, const char *path, size_t want)
{
    repo r;
    brc_iter *it;
    const brc_commit *commit;
    brc_error err = BRC_ERROR_INIT;
    size_t count = 0;
    int rc;
    scale_apart(make_commits, o, n);
    scale_reopen(&r, o);
    scale_cost start = scale_start();
    const brc_log_opts opts = { .size = sizeof(opts), .path = path };
    must(brc_log(&it, r.handle, NULL, &opts, &err), &err, "log");
    while ((rc = brc_next(it, &commit, &err)) > 0)
        count++;
    scale_cost cost = scale_stop(start);
    must(rc, &err, "log");
    must_be(count == want, "log of all commits");
    brc_iter_free(it);
    scale_close(&r);
    return cost;
}

static scale_cost log_all_commits(const bench_opts *o, size_t n)
{
    return log_of(o, n, NULL, n);
}

static scale_cost log_one_path(const bench_opts *o, size_t n)
{
    return log_of(o, n, "/x", (n + 4) / 5);
}

/* ---- the whole history -------------------------------- */

enum { HISTORY_CHUNKS = 256, HISTORY_CHANGES = 4 };

/* n commits, of each of which a few chunks of one array are new, and a tag for every one. */
static scale_cost make_tagged(const bench_opts *o, size_t n)
{
    repo r;
    char name[24];
    brc_sel one = BRC_SEL_INIT;
    uint64_t shape[1] = {HISTORY_CHUNKS}, chunk[1] = {1};
    brc_array_spec spec = BRC_ARRAY_SPEC_INIT;
    brc_error err = BRC_ERROR_INIT;
    scale_open(&r, o);
    scale_begin(&r);
    spec.ndim = 1;
    spec.shape = shape;
    spec.chunk = chunk;
    spec.dtype = "uint64";
    must(brc_array_create(&r.array, r.session, "/a", &spec, &err), &err, "an array");
    sel_all(&one, r.array);
    one.count[0] = 1;
    for (uint64_t i = 0; i < n; i++) {
        for (uint64_t j = 0; j < HISTORY_CHANGES; j++) {
            uint64_t value = 1 + i * HISTORY_CHANGES + j;
            one.start[0] = value * 37 % HISTORY_CHUNKS;
            must(brc_array_write(r.array, &one, &value, sizeof(value), &err), &err, "writing");
        }
        repo_commit(&r, "next");
        snprintf(name, sizeof(name), "t%zu", (size_t)i);
        must(brc_ref_create(r.handle, name, NULL, NULL, BRC_REF_TAG, &err), &err, "a tag");
    }
    scale_end(&r);
    repo_close(&r);
    return (scale_cost){0, 0, 0};
}

static int no_damage(void *ctx, const brc_damage *damage)
{
    (void)ctx;
    fprintf(stderr, "fsck: %s\n", damage->message != NULL ? damage->message : damage->kind);
    exit(EXIT_FAILURE);
}

static scale_cost fsck_of_commits(const bench_opts *o, size_t n)
{
    repo r;
    uint64_t checked;
    brc_error err = BRC_ERROR_INIT;
    scale_apart(make_tagged, o, n);
    scale_reopen(&r, o);
    scale_cost start = scale_start();
    must(brc_fsck(r.handle, 0, no_damage, NULL, NULL, &checked, &err), &err, "fsck");
    scale_cost cost = scale_stop(start);
    must_be(checked > n, "fsck of all objects");
    scale_close(&r);
    return cost;
}

static scale_cost info_of_commits(const bench_opts *o, size_t n)
{
    repo r;
    brc_stats stats = BRC_STATS_INIT;
    brc_error err = BRC_ERROR_INIT;
    scale_apart(make_tagged, o, n);
    scale_reopen(&r, o);
    scale_cost start = scale_start();
    must(brc_stat(r.handle, &stats, &err), &err, "info");
    scale_cost cost = scale_stop(start);
    must_be(stats.commits == n, "info of all commits");
    scale_close(&r);
    return cost;
}

const scale_case scale_history[] = {
    {"fsck of commits with tags", 500, fsck_of_commits, 0},
    {"info of commits with tags", 2000, info_of_commits, 0},
    {"log", 1500, log_all_commits, 0},
    {"log PATH", 1500, log_one_path, 0},
    {NULL, 0, NULL, 0},
};
