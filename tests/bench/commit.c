/*
 * Commits of one chunk in an array of a million, difference, branches, and ten
 * thousand commits in a row. The limit of a commit is what SQLite takes to insert
 * one row durably into a file of its own, with the same settings, in the same
 * folder; both take turns.
 */
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench.h"

enum { SOME = 100 };

typedef struct commit_run {
    const bench_opts *o;
    chunk_array a;
    sqlite3 *db;
    sqlite3_stmt *insert;
    char db_path[512];
} commit_run;

/* ---- the limit -------------------------------- */

static void sqlite_start(commit_run *run)
{
    snprintf(run->db_path, sizeof(run->db_path), "%s/one-row.sqlite", run->o->dir);
    must_be(sqlite3_open(run->db_path, &run->db) == SQLITE_OK &&
                sqlite3_exec(run->db,
                             "PRAGMA page_size=16384; PRAGMA auto_vacuum=INCREMENTAL;"
                             "PRAGMA synchronous=FULL; PRAGMA secure_delete=OFF;"
                             "PRAGMA cache_size=-4096;"
                             "CREATE TABLE t(id INTEGER PRIMARY KEY, x BLOB)",
                             NULL, NULL, NULL) == SQLITE_OK &&
                sqlite3_prepare_v2(run->db, "INSERT INTO t(x) VALUES (zeroblob(100))", -1,
                                   &run->insert, NULL) == SQLITE_OK,
            "SQLite");
}

static double sqlite_commit(const commit_run *run)
{
    double start = now_s();
    must_be(sqlite3_step(run->insert) == SQLITE_DONE, "SQLite's commit");
    sqlite3_reset(run->insert);
    return now_s() - start;
}

static void sqlite_end(commit_run *run)
{
    sqlite3_finalize(run->insert);
    sqlite3_close(run->db);
    remove_file(run->db_path);
}

/* ---- the array -------------------------------- */

static void commit_setup(commit_run *run)
{
    const double n = (double)run->o->small_chunks;
    char context[120];
    double start = now_s();
    chunk_array_make(&run->a, run->o, "commit.brc", run->o->small_chunks);
    double wrote = now_s();
    repo_commit(&run->a.r, "all");
    double end = now_s();
    snprintf(context, sizeof(context), "%.1f s written, %.1f s committed", wrote - start,
             end - wrote);
    report_value("all chunks written and committed, each", 1e6 * (end - start) / n, "us",
                 JUST_SHOWN, 0, context);
}

/* Pages that dropping a table frees, in a copy. */
static uint64_t table_bytes(const char *path, const char *drop)
{
    uint64_t free_before = sql_number(path, "SELECT freelist_count FROM pragma_freelist_count");
    sql_run(path, drop);
    uint64_t free_after = sql_number(path, "SELECT freelist_count FROM pragma_freelist_count");
    return (free_after - free_before) * sql_number(path, "SELECT page_size FROM pragma_page_size");
}

static void commit_overhead(const commit_run *run)
{
    const char *copy = in_dir(run->o, "copy.brc");
    char context[120];
    copy_file(run->a.r.path, copy);
    double n = (double)run->a.n, file = (double)file_size(copy);
    double tree = (double)sql_number(copy, "SELECT sum(stored) FROM object WHERE kind=3");
    double index = (double)table_bytes(copy, "DROP TABLE object");
    double blobs = (double)table_bytes(copy, "DROP TABLE blob");
    snprintf(context, sizeof(context), "index %.1f, tree %.1f; blobs with rows %.1f, file %.1f",
             index / n, tree / n, (blobs - tree) / n, file / n);
    report_value("index and tree, bytes a chunk", (index + tree) / n, "B", AT_MOST, 100, context);
    remove_file(copy);
}

/* ---- one chunk -------------------------------- */

static uint64_t node_bytes(const commit_run *run)
{
    return sql_number(run->a.r.path, "SELECT sum(size) FROM object WHERE kind=3");
}

/* `count` commits beside SQLite's; *beyond: the median of the differences. */
static void commit_some(commit_run *run, uint64_t version, double *ours50, double *beyond,
                        double *nodes, double *growth)
{
    static double ours[SOME], more[SOME];
    uint64_t before = node_bytes(run), size = file_size(run->a.r.path);
    for (int i = 0; i < SOME; i++) {
        double limit = sqlite_commit(run);
        ours[i] = chunk_array_commit(&run->a, version + (uint64_t)i);
        more[i] = ours[i] - limit;
    }
    *ours50 = 1e3 * percentile(ours, SOME, 50);
    *beyond = 1e3 * percentile(more, SOME, 50);
    *nodes = (double)(node_bytes(run) - before) / SOME;
    *growth = ((double)file_size(run->a.r.path) - (double)size) / SOME;
}

static void commit_report(const char *when, double ours50, double beyond, double nodes,
                          double growth)
{
    char label[80], context[120];
    snprintf(label, sizeof(label), "one chunk, %s: tree nodes", when);
    snprintf(context, sizeof(context), "the file grows by %.0f B a commit", growth);
    report_value(label, nodes, "B", AT_MOST, 16384, context);
    snprintf(label, sizeof(label), "one chunk, %s: beyond SQLite's commit", when);
    snprintf(context, sizeof(context), "p50 %.2f ms in all, written and committed", ours50);
    report_value(label, beyond, "ms", AT_MOST, 1, context);
}

/* Written and committed as two durable calls, against two of SQLite's. */
static void commit_in_two(commit_run *run)
{
    static double more[SOME], writes[SOME], commits[SOME];
    char context[80];
    for (int i = 0; i < SOME; i++) {
        double limit = sqlite_commit(run) + sqlite_commit(run);
        double start = now_s();
        chunk_array_put(&run->a, splitmix64(&run->a.random) % run->a.n, 5000000 + (uint64_t)i);
        double middle = now_s();
        repo_commit(&run->a.r, "one chunk");
        double end = now_s();
        writes[i] = 1e3 * (middle - start);
        commits[i] = 1e3 * (end - middle);
        more[i] = 1e3 * (end - start - limit);
    }
    snprintf(context, sizeof(context), "p50 write %.2f, commit %.2f ms",
             percentile(writes, SOME, 50), percentile(commits, SOME, 50));
    report_value("the same as two calls, beyond two of SQLite's", percentile(more, SOME, 50), "ms",
                 JUST_SHOWN, 0, context);
}

/* ---- difference, branches -------------------------------- */

static void commit_diff(commit_run *run)
{
    static double warm[SOME], cold[SOME];
    brc_error err = BRC_ERROR_INIT;
    uint64_t changed;
    char context[80];
    must(brc_begin(run->a.r.handle, &err), &err, "begin");
    for (int i = 0; i < SOME; i++)
        chunk_array_put(&run->a, run->a.n / SOME * (uint64_t)i + 17, 7000000);
    repo_commit(&run->a.r, "scattered");
    must(brc_end(run->a.r.handle, BRC_END_KEEP, &err), &err, "end");
    for (int i = 0; i < 20; i++) {
        warm[i] = 1e3 * diff_seconds(run->a.r.handle, "HEAD~1", "HEAD", &changed);
        must_be(changed == SOME, "the difference of 100 chunks");
        repo other;
        repo_open(&other, run->o, "commit.brc");
        cold[i] = 1e3 * diff_seconds(other.handle, "HEAD~1", "HEAD", &changed);
        repo_close(&other);
    }
    snprintf(context, sizeof(context), "p99 %.2f ms", percentile(warm, 20, 99));
    report_value("diff, 100 scattered differences", percentile(warm, 20, 50), "ms", AT_MOST, 5,
                 context);
    snprintf(context, sizeof(context), "p99 %.2f ms", percentile(cold, 20, 99));
    report_value("  with nothing in memory yet", percentile(cold, 20, 50), "ms", AT_MOST, 5,
                 context);
}

static void commit_refs(commit_run *run)
{
    static double branch[20], tag[20], away[20], limit[20];
    brc_error err = BRC_ERROR_INIT;
    char name[32];
    for (int i = 0; i < 20; i++) {
        snprintf(name, sizeof(name), "b%d", i);
        limit[i] = 1e3 * sqlite_commit(run);
        double start = now_s();
        must(brc_ref_create(run->a.r.handle, name, NULL, NULL, 0, &err), &err, "branch");
        branch[i] = 1e3 * (now_s() - start);
        start = now_s();
        must(brc_ref_create(run->a.r.handle, name, NULL, NULL, BRC_REF_TAG, &err), &err, "tag");
        tag[i] = 1e3 * (now_s() - start);
        start = now_s();
        must(brc_switch(run->a.r.handle, name, 0, &err), &err, "switch");
        away[i] = 1e3 * (now_s() - start);
    }
    must(brc_switch(run->a.r.handle, "main", 0, &err), &err, "switch");
    snprintf(name, sizeof(name), "SQLite's: %.2f ms", percentile(limit, 20, 50));
    report_value("branch", percentile(branch, 20, 50), "ms", AT_MOST, 2, name);
    report_value("tag", percentile(tag, 20, 50), "ms", AT_MOST, 2, name);
    report_value("switch", percentile(away, 20, 50), "ms", AT_MOST, 2, name);
}

/* ---- many -------------------------------- */

static double log_all(commit_run *run, uint64_t *count)
{
    brc_error err = BRC_ERROR_INIT;
    brc_iter *it;
    const brc_commit *commit;
    int rc;
    *count = 0;
    double start = now_s();
    must(brc_log(&it, run->a.r.handle, NULL, NULL, &err), &err, "log");
    while ((rc = brc_next(it, &commit, &err)) > 0)
        ++*count;
    must(rc, &err, "log");
    double seconds = now_s() - start;
    brc_iter_free(it);
    return seconds;
}

/* All but the first and last hundreds; SQLite's own take turns with them here too. */
static void commit_between(commit_run *run)
{
    size_t n = run->o->commits > 4 * SOME ? run->o->commits - 4 * SOME : SOME;
    double *ours = must_alloc(n * sizeof(*ours)), *limit = must_alloc(n * sizeof(*limit));
    char context[120];
    for (size_t i = 0; i < n; i++) {
        limit[i] = 1e3 * sqlite_commit(run);
        ours[i] = 1e3 * chunk_array_commit(&run->a, 2000000 + i);
    }
    double p50 = percentile(ours, n, 50), limit50 = percentile(limit, n, 50);
    snprintf(context, sizeof(context), "p50 %.2f, p99 %.2f ms; SQLite's %.2f, %.2f ms", p50,
             percentile(ours, n, 99), limit50, percentile(limit, n, 99));
    report_value("commits in between: beyond SQLite's, p50", p50 - limit50, "ms", AT_MOST, 1,
                 context);
    free(ours);
    free(limit);
}

static void commit_many(commit_run *run)
{
    double first[4], last[4];
    char when[40], context[80];
    uint64_t count;
    commit_some(run, 1000000, &first[0], &first[1], &first[2], &first[3]);
    commit_report("at first", first[0], first[1], first[2], first[3]);
    commit_in_two(run);
    commit_diff(run);
    commit_refs(run);
    commit_between(run);
    commit_some(run, 3000000, &last[0], &last[1], &last[2], &last[3]);
    snprintf(when, sizeof(when), "after %zu commits", run->o->commits);
    commit_report(when, last[0], last[1], last[2], last[3]);
    report_value("time of the last hundred to the first", last[0] / first[0], "", AT_MOST, 1.25,
                 NULL);
    report_value("bytes of the last hundred to the first", last[2] / first[2], "", AT_MOST, 1.1,
                 NULL);
    double seconds = log_all(run, &count);
    snprintf(context, sizeof(context), "%.1f ms for %llu commits", 1e3 * seconds,
             (unsigned long long)count);
    report_value("log, each commit", 1e6 * seconds / (double)count, "us", JUST_SHOWN, 0, context);
}

void bench_commit(const bench_opts *o)
{
    commit_run *run = must_alloc(sizeof(*run));
    char what[120];
    run->o = o;
    snprintf(what, sizeof(what), "an array of %zu chunks of 8 int16", o->small_chunks);
    report_head("commit", what);
    sqlite_start(run);
    commit_setup(run);
    commit_overhead(run);
    commit_many(run);
    repo_close(&run->a.r);
    remove_file(run->a.r.path);
    sqlite_end(run);
    free(run);
}
