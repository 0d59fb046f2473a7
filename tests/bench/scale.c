/* The frame of the scale group: sizes, processes, exponents, the table. */
#include "scale.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

enum { SIZES = 3, TIMES = 3 };

static const scale_case *const lists[] = {scale_nodes, scale_history, scale_chunks};

/* ---- what a part takes -------------------------------- */

static double seconds_of(struct timeval t)
{
    return (double)t.tv_sec + (double)t.tv_usec * 1e-6;
}

static scale_cost cost_now(void)
{
    struct rusage u;
    must_be(getrusage(RUSAGE_SELF, &u) == 0, "getrusage");
    return (scale_cost){now_s(), seconds_of(u.ru_utime) + seconds_of(u.ru_stime),
                        (double)u.ru_maxrss * 1024};
}

scale_cost scale_start(void)
{
    return cost_now();
}

scale_cost scale_stop(scale_cost start)
{
    scale_cost now = cost_now();
    return (scale_cost){now.wall - start.wall, now.cpu - start.cpu, now.bytes - start.bytes};
}

/* ---- repositories -------------------------------- */

/* With a pool of its own: the threads of o->pool are in the parent. */
static void scale_connect(repo *r, const bench_opts *o, uint32_t flags)
{
    brc_error err = BRC_ERROR_INIT;
    brc_open_opts opts = BRC_OPEN_OPTS_INIT;
    memset(r, 0, sizeof(*r));
    snprintf(r->path, sizeof(r->path), "%s/scale.brc", o->dir);
    opts.flags = flags;
    must(brc_open(&r->handle, r->path, &opts, &err), &err, "opening a repository");
    must(brc_session_open(&r->session, r->handle, NULL, BRC_SESSION_WRITE, &err), &err,
         "a session");
}

void scale_open(repo *r, const bench_opts *o)
{
    scale_connect(r, o, BRC_OPEN_CREATE);
}

void scale_reopen(repo *r, const bench_opts *o)
{
    scale_connect(r, o, 0);
}

void scale_close(repo *r)
{
    repo_close(r);
    remove_file(r->path);
}

void scale_begin(const repo *r)
{
    brc_error err = BRC_ERROR_INIT;
    must(brc_session_begin(r->session, &err), &err, "beginning");
}

void scale_end(const repo *r)
{
    brc_error err = BRC_ERROR_INIT;
    must(brc_session_end(r->session, BRC_OK, &err), &err, "ending");
}

void scale_array(const repo *r, const char *path, size_t mark)
{
    char attrs[40];
    uint64_t shape[1] = {1};
    brc_array *array;
    brc_error err = BRC_ERROR_INIT;
    brc_array_spec spec = BRC_ARRAY_SPEC_INIT;
    snprintf(attrs, sizeof(attrs), "{\"mark\":%zu}", mark);
    spec.ndim = 1;
    spec.shape = shape;
    spec.dtype = "uint32";
    spec.attrs_json = attrs;
    must(brc_array_create(&array, r->session, path, &spec, &err), &err, "an array");
    brc_array_free(array);
}

void scale_tree(const repo *r, const char *top, size_t n, size_t each)
{
    char path[80];
    scale_begin(r);
    for (size_t i = 0; i < n; i++) {
        snprintf(path, sizeof(path), "%s/g%zu/a%zu", top, i / each, i % each);
        scale_array(r, path, i);
    }
    scale_end(r);
}

/* ---- measuring -------------------------------- */

scale_cost scale_apart(scale_cost (*run)(const bench_opts *o, size_t n), const bench_opts *o,
                       size_t n)
{
    scale_cost cost = {0, 0, 0};
    int fds[2], status;
    must_be(pipe(fds) == 0, "a pipe");
    fflush(stdout);
    pid_t child = fork();
    must_be(child >= 0, "a process");
    if (child == 0) {
        close(fds[0]);
        cost = run(o, n);
        int wrote = write(fds[1], &cost, sizeof(cost)) == (ssize_t)sizeof(cost);
        _exit(wrote ? 0 : 1);
    }
    close(fds[1]);
    int got = read(fds[0], &cost, sizeof(cost)) == (ssize_t)sizeof(cost);
    close(fds[0]);
    must_be(waitpid(child, &status, 0) == child && status == 0 && got, "a measurement");
    return cost;
}

static double judged(const scale_case *c, scale_cost cost)
{
    /* what is too small to be seen is as one step of the clock, or one megabyte */
    return c->of_memory ? fmax(cost.bytes, 1e6) : fmax(cost.cpu, 1e-3);
}

/* The least of a few runs, which is the least disturbed; one where it is long anyway. */
static scale_cost run_some(const bench_opts *o, const scale_case *c, size_t n)
{
    scale_cost least = scale_apart(c->run, o, n);
    for (int i = 1; i < TIMES && least.cpu < 0.2; i++) {
        scale_cost again = scale_apart(c->run, o, n);
        if (judged(c, again) < judged(c, least))
            least = again;
    }
    return least;
}

static void show_cost(const scale_case *c, scale_cost cost)
{
    if (c->of_memory)
        printf(" %9.1f MB      ", cost.bytes / 1e6);
    else
        printf(" %7.3f (%7.3f)", cost.cpu, cost.wall);
    fflush(stdout);
}

static int run_case(const bench_opts *o, const scale_case *c)
{
    scale_cost costs[SIZES];
    size_t n = o->quick && c->n > 100 ? c->n / 8 : c->n;
    printf("  %-44s %7zu", c->name, n);
    for (int i = 0; i < SIZES; i++) {
        costs[i] = run_some(o, c, n << 2 * i);
        show_cost(c, costs[i]);
    }
    double exponent = log(judged(c, costs[SIZES - 1]) / judged(c, costs[0])) / log(16);
    double most = c->of_memory ? SCALE_MOST_MEMORY : SCALE_MOST;
    if (c->of_memory)
        report_number(c->name, costs[SIZES - 1].bytes / 1e6, "MB", JUST_SHOWN);
    else
        report_number(c->name, costs[SIZES - 1].cpu, "cpu s", JUST_SHOWN);
    printf("  %5.2f  %s\n", exponent, exponent <= most ? "met" : "NOT MET");
    return exponent > most;
}

void bench_scale(const bench_opts *o)
{
    report_head("scale", "user and system seconds (and by the clock) at n, 4n and 16n; exponents "
                         "of at most 1.2, of memory 0.5");
    for (size_t i = 0; i < sizeof(lists) / sizeof(lists[0]); i++)
        for (const scale_case *c = lists[i]; c->name != NULL; c++)
            if (o->only == NULL || strstr(c->name, o->only) != NULL)
                report_judged(!run_case(o, c));
}
