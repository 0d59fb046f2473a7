/* How the cost of reading history grows. */
#include <stdio.h>
#include <stdlib.h>

#include "scale.h"

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
    must(brc_log(&it, r.handle, NULL, path, &err), &err, "log");
    while ((rc = brc_log_next(it, &commit, &err)) > 0)
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

const scale_case scale_history[] = {
    {"log", 600, log_all_commits, 0},
    {"log PATH", 600, log_one_path, 0},
    {NULL, 0, NULL, 0},
};
