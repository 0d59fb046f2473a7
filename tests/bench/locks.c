/*
 * How long a change of very many rows holds the lock: the longest statement and the longest
 * transaction of a bulk write, of `status` and of the commit of an array of n chunks (--chunks), by
 * the clock. Others wait as long as that at most.
 */
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "../../src/store/db.h"
#include "../../src/work/session.h"
#include "bench.h"
#include "../kit/ios.h"

enum { ITEMS = 8, SLICE = 65536, RUNNING = 16 };

typedef struct lock_times {
    sqlite3 *db;
    double begun, statement, transaction, writing, commit;
    int is_open, is_write, writes;
    double processor; /* the most that a statement took, which other work does not change */
    char longest[60]; /* that statement, as far as it fits */
    struct {
        const void *stmt;
        double begun;
    } running[RUNNING];
} lock_times;

static void transaction_ends(lock_times *l, double spent)
{
    l->is_open = 0;
    if (l->is_write && spent > l->writing)
        l->writing = spent;
    if (spent > l->transaction)
        l->transaction = spent;
    l->writes += l->is_write;
    l->is_write = 0;
}

static double processor_s(void)
{
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

/* The entry of `find`; NULL: one that is free, which becomes that of `stmt`. */
static double *running_since(lock_times *l, const void *stmt, const void *find)
{
    for (int i = 0; i < RUNNING; i++) {
        if (l->running[i].stmt != find)
            continue;
        l->running[i].stmt = find == NULL ? stmt : NULL;
        return &l->running[i].begun;
    }
    return NULL;
}

static int statement_begins(lock_times *l, const void *stmt)
{
    double *begun = running_since(l, stmt, NULL);
    if (begun != NULL)
        *begun = processor_s();
    return 0;
}

static void statement_ends(lock_times *l, const void *stmt, const char *sql)
{
    const double *begun = running_since(l, stmt, stmt);
    const double spent = begun != NULL ? processor_s() - *begun : 0;
    if (spent <= l->processor)
        return;
    l->processor = spent;
    snprintf(l->longest, sizeof(l->longest), "%s", sql);
}

static int time_statement(unsigned what, void *ctx, void *stmt, void *ns)
{
    lock_times *l = ctx;
    const char *sql = sqlite3_sql(stmt);
    const double now = now_s(), spent = what == SQLITE_TRACE_PROFILE
                                           ? (double)*(const int64_t *)ns / 1e9 : 0;
    if (sql == NULL)
        return 0;
    if (what != SQLITE_TRACE_PROFILE)
        return statement_begins(l, stmt);
    if (strstr(sql, "integrity_check") != NULL) { /* it begins again as soon as somebody waits */
        l->begun = now;
        (void)running_since(l, stmt, stmt);
        return 0;
    }
    const int ends = sqlite3_get_autocommit(l->db);
    if (!l->is_open && !ends) {
        l->is_open = 1;
        l->begun = now - spent;
        l->is_write = strcmp(sql, "BEGIN IMMEDIATE") == 0;
    }
    if (ends && spent > l->commit)
        l->commit = spent;
    if (!ends && spent > l->statement)
        l->statement = spent;
    statement_ends(l, stmt, sql);
    if (ends)
        transaction_ends(l, l->is_open ? now - l->begun : spent);
    return 0;
}

static void lock_start(lock_times *l, const repo *r)
{
    memset(l, 0, sizeof(*l));
    l->db = r->handle->store->db;
    sqlite3_trace_v2(l->db, SQLITE_TRACE_STMT | SQLITE_TRACE_PROFILE, time_statement, l);
}

static void lock_stop(lock_times *l, const char *what, double spent)
{
    char label[80], context[160];
    sqlite3_trace_v2(l->db, 0, NULL, NULL);
    snprintf(label, sizeof(label), "%s: longest statement", what);
    snprintf(context, sizeof(context), "%.0f ms of a processor (%s); %.1f s in all",
             l->processor * 1e3, l->longest, spent);
    report_value(label, l->statement * 1e3, "ms", AT_MOST, 50, context);
    snprintf(label, sizeof(label), "%s: longest transaction", what);
    snprintf(context, sizeof(context), "%d that write, of %.0f ms at most; a COMMIT %.0f ms",
             l->writes, l->writing * 1e3, l->commit * 1e3);
    report_value(label, l->transaction * 1e3, "ms", JUST_SHOWN, 0, context);
}

/* Chunks of 8 bytes, all different, in slices. */
static void write_chunks(repo *r, size_t n)
{
    static uint64_t values[SLICE];
    brc_sel sel = BRC_SEL_INIT;
    brc_error err = BRC_ERROR_INIT;
    must(brc_bulk_begin(r->session, &err), &err, "a bulk write");
    for (size_t at = 0; at < n; at += SLICE) {
        const size_t some = n - at < SLICE ? n - at : SLICE;
        for (size_t i = 0; i < some; i++)
            values[i] = at + i + 1;
        sel_all(&sel, r->array);
        sel.start[0] = at * ITEMS;
        sel.count[0] = some * ITEMS;
        must(brc_array_write(r->array, &sel, values, some * ITEMS, &err), &err, "writing");
    }
    must(brc_bulk_end(r->session, 1, &err), &err, "the end of a bulk write");
}

static void all_chunks(repo *r)
{
    write_chunks(r, (size_t)(brc_array_describe(r->array)->shape[0] / ITEMS));
}

static void is_clean(repo *r)
{
    int clean;
    brc_error err = BRC_ERROR_INIT;
    must(brc_session_clean(&clean, r->session, &err), &err, "status");
}

static void copy_it(repo *r)
{
    brc_error err = BRC_ERROR_INIT;
    must(brc_node_move(r->session, "/a", "/copy", BRC_NODE_COPY, &err), &err, "a copy");
}

/* In the middle of a chunk. */
static void cut_at(repo *r, const char *path, uint64_t tenths)
{
    brc_array *a;
    brc_error err = BRC_ERROR_INIT;
    must(brc_array_open(&a, r->session, path, &err), &err, "opening");
    const uint64_t shape = brc_array_describe(r->array)->shape[0] / 10 * tenths + 3;
    must(brc_array_resize(a, &shape, &err), &err, "a cut");
    brc_array_free(a);
}

static void cut_uncommitted(repo *r)
{
    cut_at(r, "/copy", 7);
}

static void commit_all(repo *r)
{
    repo_commit(r, "very many");
}

static void cut_committed(repo *r)
{
    cut_at(r, "/a", 7);
}

static void to_shards(repo *r)
{
    static const char shards[] =
        "[{\"name\":\"sharding_indexed\",\"configuration\":{\"chunk_shape\":[4],\"codecs\":"
        "[{\"name\":\"bytes\"}],\"index_codecs\":[{\"name\":\"bytes\",\"configuration\":"
        "{\"endian\":\"little\"}}]}}]";
    brc_error err = BRC_ERROR_INIT;
    must(brc_array_set_codecs(r->array, shards, 1, &err), &err, "codecs --rewrite");
}

static void look_at_totals(repo *r)
{
    brc_stats stats = BRC_STATS_INIT;
    brc_error err = BRC_ERROR_INIT;
    must(brc_stat(r->handle, &stats, &err), &err, "info");
}

static void check_all(repo *r)
{
    uint64_t checked;
    brc_error err = BRC_ERROR_INIT;
    must(brc_fsck(r->handle, 0, NULL, NULL, NULL, &checked, &err), &err, "fsck");
}

/* ---- many nodes -------------------------------- */

enum { CHUNKS_A_NODE = 10, IN_A_GROUP = 1000 };

static size_t nodes_of(const repo *r)
{
    return (size_t)(brc_array_describe(r->array)->shape[0] / ITEMS / CHUNKS_A_NODE);
}

static void make_groups(brc_session *s, const char *root, size_t n)
{
    char path[80];
    brc_error err = BRC_ERROR_INIT;
    must(brc_bulk_begin(s, &err), &err, "a bulk write");
    for (size_t i = 0; i < n; i++) {
        snprintf(path, sizeof(path), "/%s/%zu/%zu", root, i / IN_A_GROUP, i % IN_A_GROUP);
        must(brc_group_create(s, path, NULL, &err), &err, "a group");
    }
    must(brc_bulk_end(s, 1, &err), &err, "the end of a bulk write");
}

static void groups(repo *r)
{
    make_groups(r->session, "g", nodes_of(r));
}

static void remove_groups(repo *r)
{
    brc_error err = BRC_ERROR_INIT;
    must(brc_node_remove(r->session, "/g", &err), &err, "rm");
}

/* In a session of its own. */
static void private_groups(repo *r)
{
    brc_session *s;
    brc_oid id;
    brc_commit_opts opts = BRC_COMMIT_OPTS_INIT;
    brc_error err = BRC_ERROR_INIT;
    must(brc_session_open(&s, r->handle, "main", BRC_SESSION_PRIVATE, &err), &err, "a session");
    make_groups(s, "h", nodes_of(r));
    must(brc_savepoint(s, BRC_SAVEPOINT_SET, "before", &err), &err, "a savepoint");
    must(brc_node_move(s, "/h", "/i", 0, &err), &err, "a move");
    must(brc_savepoint(s, BRC_SAVEPOINT_ROLLBACK, "before", &err), &err, "a rollback");
    opts.message = opts.author = "bench";
    must(brc_session_commit(&id, s, &opts, &err), &err, "a commit");
    brc_session_free(s);
}

static const struct {
    const char *what;
    void (*act)(repo *r);
} locked[] = {
    {"bulk write", all_chunks},
    {"status", is_clean},
    {"copy", copy_it},
    {"cut, uncommitted", cut_uncommitted},
    {"commit", commit_all},
    {"cut, committed", cut_committed},
    {"chunks of another shape", to_shards},
    {"groups", groups},
    {"status of groups", is_clean},
    {"commit of groups", commit_all},
    {"groups in a private session", private_groups},
    {"rm of groups", remove_groups},
    {"info", look_at_totals},
    {"fsck", check_all},
};

void bench_locks(const bench_opts *o)
{
    repo r;
    lock_times l;
    const size_t n = o->quick ? 20000 : o->small_chunks;
    const uint64_t shape = n * ITEMS, chunk = ITEMS;
    brc_array_spec spec = BRC_ARRAY_SPEC_INIT;
    spec.ndim = 1;
    spec.shape = &shape;
    spec.chunk = &chunk;
    spec.dtype = "uint8";
    spec.codecs_json = "[{\"name\":\"bytes\"}]";
    char title[80];
    snprintf(title, sizeof(title), "locks, %zu chunks", n);
    report_head(title, "in one process: how long it holds the lock");
    repo_make(&r, o, "locks.brc", 0, &spec);
    for (size_t i = 0; i < sizeof(locked) / sizeof(*locked); i++) {
        const double start = now_s();
        lock_start(&l, &r);
        locked[i].act(&r);
        lock_stop(&l, locked[i].what, now_s() - start);
    }
    repo_close(&r);
    remove_file(in_dir(o, "locks.brc"));
}
