/*
 * Several processes on one file: how long each waits, and who gets how much. Here all of them
 * commit without a pause; crowd.c has readers, committers and a bulk writer at steady rates.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "bench.h"

#define COMMITTERS 8
#define MOST_STEPS 20000

typedef struct role_log {
    size_t n;
    double took[MOST_STEPS];
} role_log;

static void note_step(role_log *log, double since)
{
    must_be(log->n < MOST_STEPS, "room for more steps");
    log->took[log->n++] = now_s() - since;
}

/* Commits to a branch of its own, one after the other without a pause. */
static void role_committer(const char *file, int who, double until, role_log *log)
{
    breccia *handle;
    brc_session *s;
    brc_oid id;
    char branch[16], value[16];
    brc_error err = BRC_ERROR_INIT;
    brc_commit_opts opts = BRC_COMMIT_OPTS_INIT;
    opts.message = "next";
    snprintf(branch, sizeof(branch), "branch%d", who);
    must(brc_open(&handle, file, NULL, &err), &err, "open");
    must(brc_session_open(&s, handle, branch, BRC_SESSION_WRITE, &err), &err, "session");
    while (now_s() < until) {
        double start = now_s();
        snprintf(value, sizeof(value), "%zu", log->n + 1);
        must(brc_begin(handle, &err), &err, "begin");
        must(brc_attrs_set(s, "/", "n", value, &err), &err, "attrs");
        must(brc_session_commit(&id, s, &opts, &err), &err, "commit");
        must(brc_end(handle, BRC_END_KEEP, &err), &err, "end");
        note_step(log, start);
    }
    brc_session_free(s);
    brc_free(handle);
}

static void make_branches(const char *file, int wal)
{
    breccia *handle;
    brc_session *s;
    brc_oid id;
    char name[16];
    brc_error err = BRC_ERROR_INIT;
    brc_open_opts opts = BRC_OPEN_OPTS_INIT;
    brc_commit_opts commit = BRC_COMMIT_OPTS_INIT;
    commit.message = "first";
    opts.flags = BRC_OPEN_CREATE;
    must(brc_open(&handle, file, &opts, &err), &err, "init");
    must(brc_config_set(handle, "journal", wal ? "wal" : "rollback", &err), &err, "config");
    must(brc_session_open(&s, handle, NULL, BRC_SESSION_WRITE, &err), &err, "session");
    must(brc_attrs_set(s, "/", "n", "0", &err), &err, "attrs");
    must(brc_session_commit(&id, s, &commit, &err), &err, "commit");
    for (int i = 0; i < COMMITTERS; i++) {
        snprintf(name, sizeof(name), "branch%d", i);
        must(brc_ref_create(handle, name, NULL, NULL, 0, &err), &err, "branch");
    }
    brc_session_free(s);
    brc_free(handle);
}

/* A process reports through a pipe. */
static int start_role(const char *file, int who, double until, pid_t *child)
{
    int ends[2];
    must_be(pipe(ends) == 0, "a pipe");
    fflush(stdout);
    *child = fork();
    must_be(*child >= 0, "a process");
    if (*child > 0) {
        close(ends[1]);
        return ends[0];
    }
    role_log *log = must_alloc(sizeof(*log));
    log->n = 0;
    role_committer(file, who, until, log);
    FILE *out = fdopen(ends[1], "wb");
    int sent = out != NULL && fwrite(log->took, sizeof(double), log->n, out) == log->n &&
               fclose(out) == 0;
    _exit(sent ? 0 : 1);
}

static size_t take_role(int from, pid_t child, double *into, size_t room)
{
    int status;
    FILE *in = fdopen(from, "rb");
    must_be(in != NULL, "a pipe");
    size_t n = fread(into, sizeof(double), room, in);
    fclose(in);
    must_be(waitpid(child, &status, 0) == child && status == 0, "a process without a failure");
    return n;
}

/* `count` processes at once, each on a branch of its own. */
static void run_committers(const bench_opts *o, int wal, int count)
{
    char file[600], what[100], context[100];
    pid_t children[COMMITTERS];
    int from[COMMITTERS];
    double *times = must_alloc((size_t)count * MOST_STEPS * sizeof(double));
    size_t n = 0, least = MOST_STEPS, most = 0;
    const double lasts = o->quick ? 1 : 5;
    snprintf(file, sizeof(file), "%s/contention.brc", o->dir);
    make_branches(file, wal);
    const double until = now_s() + lasts;
    for (int i = 0; i < count; i++)
        from[i] = start_role(file, i, until, &children[i]);
    for (int i = 0; i < count; i++) {
        size_t mine = take_role(from[i], children[i], times + n, MOST_STEPS);
        least = mine < least ? mine : least;
        most = mine > most ? mine : most;
        n += mine;
    }
    must_be(n > 0, "commits");
    snprintf(what, sizeof(what), "journal %s: processes that commit without a pause: %d",
             wal ? "wal" : "rollback", count);
    snprintf(context, sizeof(context), "%zu commits, %zu to %zu a process", n, least, most);
    report_head("contention", what);
    report_value("commits a second", (double)n / lasts, "", JUST_SHOWN, 0, context);
    report_value("worst commit", percentile(times, n, 100), "s", AT_MOST, 2, "");
    report_value("p99", 1000 * percentile(times, n, 99), "ms", JUST_SHOWN, 0, "");
    report_value("p50", 1000 * percentile(times, n, 50), "ms", JUST_SHOWN, 0, "");
    free(times);
    unlink(file);
}

void bench_contention(const bench_opts *o)
{
    for (int wal = 0; wal < 2; wal++)
        for (int count = 1; count <= COMMITTERS; count *= 2)
            run_committers(o, wal, count);
    crowd_run(o);
}
