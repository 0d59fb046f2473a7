/*
 * The costs of the commands of history, by the number of chunks and by the number of commits. All
 * calls end with what they show or change being there: a merge's time has its durable commit in it.
 */
#include <stdio.h>
#include <stdlib.h>

#include "bench.h"
#include "../kit/ios.h"

enum { SCATTERED = 100, TURNS = 10, GARBAGE = 100 };

typedef struct history_run {
    const bench_opts *o;
    chunk_array a;
    size_t commits;
    uint64_t version; /* of the next value */
} history_run;

static const double design_merge_ms = 10, design_diff_ms = 5;

static double p50_of(double *seconds, int n)
{
    return 1e3 * percentile(seconds, (size_t)n, 50);
}

static void show_times(const char *label, double *seconds, int n, int way, double target)
{
    char context[80];
    double worst = 1e3 * percentile(seconds, (size_t)n, 100);
    snprintf(context, sizeof(context), "worst of %d: %.2f ms", n, worst);
    report_value(label, p50_of(seconds, n), "ms", way, target, context);
}

/* ---- commit, status, diff -------------------------------------------------------------- */

static void time_commits(history_run *h)
{
    double times[TURNS];
    for (int i = 0; i < TURNS; i++)
        times[i] = chunk_array_commit(&h->a, h->version++);
    show_times("commit of one chunk, written and committed", times, TURNS, JUST_SHOWN, 0);
}

static void put_scattered(history_run *h, uint64_t from)
{
    brc_error err = BRC_ERROR_INIT;
    must(brc_begin(h->a.r.handle, &err), &err, "begin");
    for (uint64_t i = 0; i < SCATTERED; i++)
        chunk_array_put(&h->a, (h->a.n / SCATTERED * i + from) % h->a.n, h->version);
    h->version++;
    must(brc_end(h->a.r.handle, BRC_END_KEEP, &err), &err, "end");
}

static void time_status(history_run *h)
{
    double times[TURNS], commits[TURNS], differ[TURNS];
    uint64_t changed;
    for (int i = 0; i < TURNS; i++) {
        put_scattered(h, 1);
        times[i] = diff_seconds(h->a.r.handle, NULL, NULL, &changed);
        must_be(changed == SCATTERED, "status of the changed chunks");
        double start = now_s();
        repo_commit(&h->a.r, "scattered");
        commits[i] = now_s() - start;
        differ[i] = diff_seconds(h->a.r.handle, "HEAD~1", "HEAD", &changed);
        must_be(changed == SCATTERED, "the difference of these chunks");
    }
    show_times("status, 100 scattered chunks", times, TURNS, JUST_SHOWN, 0);
    show_times("commit of 100 scattered chunks", commits, TURNS, JUST_SHOWN, 0);
    show_times("diff, 100 scattered chunks", differ, TURNS, AT_MOST, design_diff_ms);
}

/* ---- merge ----------------------------------------------------------------------------- */

/* Elements of chunks: of the first or the last half. */
static void put_half(brc_array *a, uint64_t number, int half, int16_t value)
{
    int16_t values[CHUNK_ITEMS / 2];
    brc_sel sel = BRC_SEL_INIT;
    brc_error err = BRC_ERROR_INIT;
    for (int i = 0; i < CHUNK_ITEMS / 2; i++)
        values[i] = value;
    sel_all(&sel, a);
    sel.start[0] = number * CHUNK_ITEMS + (uint64_t)half * CHUNK_ITEMS / 2;
    sel.count[0] = CHUNK_ITEMS / 2;
    must(brc_array_write(a, &sel, values, sizeof(values), &err), &err, "writing half a chunk");
}

/* A commit on `branch` that changes the same half of chunks scattered from `from` on. */
static void commit_halves(history_run *h, const char *branch, uint64_t from, int half)
{
    brc_session *s;
    brc_array *a;
    brc_oid id;
    brc_error err = BRC_ERROR_INIT;
    brc_commit_opts opts = BRC_COMMIT_OPTS_INIT;
    opts.message = "halves";
    opts.author = "bench";
    must(brc_session_open(&s, h->a.r.handle, branch, BRC_SESSION_WRITE, &err), &err, "a session");
    must(brc_array_open(&a, s, "/a", &err), &err, "an array");
    must(brc_begin(h->a.r.handle, &err), &err, "begin");
    for (uint64_t i = 0; i < SCATTERED; i++)
        put_half(a, (h->a.n / SCATTERED * i + from) % h->a.n, half,
                 (int16_t)(h->version % 30000));
    h->version++;
    must(brc_session_commit(&id, s, &opts, &err), &err, "a commit");
    must(brc_end(h->a.r.handle, BRC_END_KEEP, &err), &err, "end");
    brc_array_free(a);
    brc_session_free(s);
}

static double merge_seconds(history_run *h, const char *branch, uint32_t flags)
{
    brc_error err = BRC_ERROR_INIT;
    brc_merge_result result = BRC_MERGE_RESULT_INIT;
    brc_merge_opts opts = BRC_MERGE_OPTS_INIT;
    opts.flags = flags;
    double start = now_s();
    must(brc_merge(&result, NULL, h->a.r.handle, branch, &opts, &err), &err, "merge");
    double seconds = now_s() - start;
    must_be(result.result == BRC_MERGE_MERGED, "a merge of both sides");
    return seconds;
}

/* Both sides change 100 chunks: others, or other halves of the same. */
static void time_merge(history_run *h, const char *label, int same)
{
    double times[TURNS], tried[TURNS];
    brc_error err = BRC_ERROR_INIT;
    for (int i = 0; i < TURNS; i++) {
        must(brc_ref_create(h->a.r.handle, "theirs", NULL, NULL, 0, &err), &err, "a branch");
        commit_halves(h, "theirs", 2, 0);
        commit_halves(h, "main", same ? 2 : 3, 1);
        tried[i] = merge_seconds(h, "theirs", BRC_MERGE_DRY_RUN);
        times[i] = merge_seconds(h, "theirs", 0);
        must(brc_ref_delete(h->a.r.handle, "theirs", 0, &err), &err, "branch -D");
    }
    show_times(label, times, TURNS, AT_MOST, design_merge_ms);
    show_times("  of it, without the commit", tried, TURNS, JUST_SHOWN, 0);
}

/* ---- blame, log PATH ------------------------------------------------------------------------ */

static void time_blame(history_run *h, const char *label, uint64_t count)
{
    brc_session *s;
    brc_array *a;
    brc_iter *it;
    const brc_blamed *blamed;
    brc_sel sel = BRC_SEL_INIT;
    brc_error err = BRC_ERROR_INIT;
    char context[80];
    uint64_t n = 0;
    int rc;
    must(brc_session_open(&s, h->a.r.handle, "HEAD", BRC_SESSION_AT, &err), &err, "a session");
    must(brc_array_open(&a, s, "/a", &err), &err, "an array");
    sel_all(&sel, a);
    sel.count[0] = count * CHUNK_ITEMS;
    double start = now_s();
    must(brc_blame(&it, a, &sel, 0, &err), &err, "blame");
    while ((rc = brc_next(it, &blamed, &err)) > 0)
        n++;
    double seconds = now_s() - start;
    must(rc, &err, "blame");
    must_be(n == count, "blame of all chunks");
    snprintf(context, sizeof(context), "%zu commits", h->commits);
    report_value(label, seconds, "s", JUST_SHOWN, 0, context);
    brc_iter_free(it);
    brc_array_free(a);
    brc_session_free(s);
}

static void time_log_path(history_run *h)
{
    brc_iter *it;
    const brc_commit *commit;
    brc_error err = BRC_ERROR_INIT;
    brc_log_opts opts = BRC_LOG_OPTS_INIT;
    char context[80];
    size_t n = 0;
    int rc;
    opts.path = "/a";
    double start = now_s();
    must(brc_log(&it, h->a.r.handle, NULL, &opts, &err), &err, "log");
    while ((rc = brc_next(it, &commit, &err)) > 0)
        n++;
    double seconds = now_s() - start;
    must(rc, &err, "log PATH");
    must_be(n > h->commits, "log of all commits");
    brc_iter_free(it);
    snprintf(context, sizeof(context), "%zu commits shown", n);
    report_value("log PATH", seconds, "s", JUST_SHOWN, 0, context);
}

/* ---- rebase ---------------------------------------------------------------------------------- */

static void commit_group(history_run *h, const char *branch)
{
    brc_session *s;
    brc_oid id;
    brc_error err = BRC_ERROR_INIT;
    brc_commit_opts opts = BRC_COMMIT_OPTS_INIT;
    opts.message = "a group";
    opts.author = "bench";
    must(brc_session_open(&s, h->a.r.handle, branch, BRC_SESSION_WRITE, &err), &err, "a session");
    must(brc_group_create(s, "/group", NULL, &err), &err, "a group");
    must(brc_session_commit(&id, s, &opts, &err), &err, "a commit");
    brc_session_free(s);
}

/* Rebases all of h->commits, which only this branch has. */
static void time_rebase(history_run *h)
{
    brc_error err = BRC_ERROR_INIT;
    brc_pick_result result = BRC_PICK_RESULT_INIT;
    char context[80];
    must(brc_ref_create(h->a.r.handle, "onto", NULL, NULL, 0, &err), &err, "a branch");
    commit_group(h, "onto");
    for (size_t i = 0; i < h->commits; i++)
        chunk_array_commit(&h->a, h->version++);
    double start = now_s();
    must(brc_rebase(&result, NULL, h->a.r.handle, "onto", NULL, &err), &err, "rebase");
    double seconds = now_s() - start;
    must_be(result.made == h->commits, "all commits done again");
    must(brc_ref_delete(h->a.r.handle, "onto", 0, &err), &err, "branch -d");
    snprintf(context, sizeof(context), "%zu commits", h->commits);
    report_value("rebase", seconds, "s", JUST_SHOWN, 0, context);
}

/* ---- gc ---------------------------------------------------------------------------------- */

static double gc_seconds(history_run *h, uint32_t flags, brc_gc_report *report)
{
    brc_error err = BRC_ERROR_INIT;
    brc_gc_opts opts = BRC_GC_OPTS_INIT;
    opts.flags = flags;
    double start = now_s();
    must(brc_gc(h->a.r.handle, &opts, report, &err), &err, "gc");
    return now_s() - start;
}

/* A hundredth of the chunks is garbage. */
static void time_gc(history_run *h)
{
    brc_gc_report looked = BRC_GC_REPORT_INIT, freed = BRC_GC_REPORT_INIT;
    brc_error err = BRC_ERROR_INIT;
    char context[80];
    must(brc_config_set(h->a.r.handle, "window", "0", &err), &err, "config");
    gc_seconds(h, 0, &freed);
    must(brc_begin(h->a.r.handle, &err), &err, "begin");
    for (uint64_t i = 0; i < h->a.n / GARBAGE; i++)
        chunk_array_put(&h->a, i * GARBAGE, h->version);
    h->version++;
    must(brc_end(h->a.r.handle, BRC_END_KEEP, &err), &err, "end");
    must(brc_reset(h->a.r.handle, NULL, "HEAD", BRC_RESET_HARD, NULL, &err), &err, "reset");
    double dry = gc_seconds(h, BRC_GC_DRY_RUN, &looked);
    double wet = gc_seconds(h, 0, &freed);
    snprintf(context, sizeof(context), "%llu objects freed, of %zu chunks",
             (unsigned long long)freed.objects_removed, h->a.n);
    must_be(freed.objects_removed >= h->a.n / GARBAGE, "gc of all garbage");
    report_value("gc --dry-run", dry, "s", JUST_SHOWN, 0, "");
    report_value("gc", wet, "s", JUST_SHOWN, 0, context);
}

/* ---- sizes ------------------------------------------------------------------------------- */

static void run_history(const bench_opts *o, size_t chunks, size_t commits)
{
    history_run h = {.o = o, .commits = commits, .version = 2};
    char what[120];
    chunk_array_make(&h.a, o, "history.brc", chunks);
    repo_commit(&h.a.r, "all");
    for (size_t i = 1; i < commits; i++)
        chunk_array_commit(&h.a, h.version++);
    snprintf(what, sizeof(what), "%zu chunks, %zu commits", chunks, commits);
    report_head("history", what);
    time_commits(&h);
    time_status(&h);
    time_merge(&h, "merge, 100 chunks of either side", 0);
    time_merge(&h, "merge, 100 chunks that both changed", 1);
    time_blame(&h, "blame of all chunks", chunks);
    time_blame(&h, "blame of one chunk", 1);
    time_log_path(&h);
    time_rebase(&h);
    time_gc(&h);
    repo_close(&h.a.r);
    remove_file(h.a.r.path);
}

void bench_history(const bench_opts *o)
{
    for (size_t chunks = 1000; chunks <= o->small_chunks; chunks *= 10)
        run_history(o, chunks, 1);
    for (size_t commits = 100; commits <= o->commits; commits *= 10)
        run_history(o, o->small_chunks, commits);
}
