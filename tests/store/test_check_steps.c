/* fsck beside others: its statements go range by range of rows or give way to who waits for the
 * file, and what it finds is true however many commits others make meanwhile. */
#include <sqlite3.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../../src/store/check.h"
#include "../kit/effort.h"
#include "../kit/ios.h"
#include "../kit/scenario.h"
#include "../kit/store_kit.h"
#include "../kit/suite.h"

TEST_SUITE(check_steps);

STORE_KIT_FIXTURE(kit)

#define OK_KIT(call) KIT_OK(&kit, call)

/* ---- ranges -------------------------------- */

static int count_line(void *ctx, const char *line)
{
    (void)line;
    ++*(int *)ctx;
    return 0;
}

static int keep_line(void *ctx, const char *line)
{
    snprintf(ctx, 200, "%s", line);
    return 0;
}

static int64_t most_steps;

static int note_most(unsigned what, void *ctx, void *stmt, void *unused)
{
    const char *sql = sqlite3_sql(stmt);
    (void)what, (void)ctx, (void)unused;
    int64_t steps = sqlite3_stmt_status(stmt, SQLITE_STMTSTATUS_VM_STEP, 1);
    if (steps > most_steps && strstr(sql, BRC_CHECK_ROWS) != NULL)
        most_steps = steps;
    return 0;
}

/* So many chunks of a draft, and totals of as many nodes. */
static void put_many(int64_t n)
{
    char sql[800];
    snprintf(sql, sizeof(sql),
             "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i+1 FROM n WHERE i<%lld)"
             " INSERT OR REPLACE INTO draft_chunk SELECT 1, CAST(i AS BLOB), NULL,"
             " row_sum('draft_chunk', 1, CAST(i AS BLOB), NULL) FROM n;"
             "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i+1 FROM n WHERE i<%lld)"
             " INSERT OR REPLACE INTO node_total SELECT CAST(i AS BLOB), 0, 0, 0, 0, 0 FROM n",
             (long long)n, (long long)n);
    OK_KIT(brc_store_begin(kit.store, &kit.err));
    OK_KIT(brc_exec(kit.store, sql, &kit.err));
    OK_KIT(brc_store_end(kit.store, 1, &kit.err));
}

CASE("steps", .setup = kit_start, .teardown = kit_stop, .timeout = 120);

/* A range is as long for four times as many rows. */
TEST(ranges_do_not_grow)
{
    int64_t steps[2], node;
    int lines = 0;
    OK_KIT(brc_store_begin(kit.store, &kit.err));
    int64_t draft = store_kit_draft(&kit, "main", NULL);
    OK_KIT(brc_draft_node_put(kit.store, draft, "/a", "x", 1, &node, &kit.err));
    OK_KIT(brc_store_end(kit.store, 1, &kit.err));
    ck_assert_int_eq(node, 1);
    for (int big = 0; big < 2; big++) {
        put_many(big ? 80000 : 20000);
        most_steps = 0;
        sqlite3_trace_v2(kit.store->db, SQLITE_TRACE_PROFILE, note_most, NULL);
        OK_KIT(brc_store_check_rows(kit.store, count_line, &lines, &kit.err));
        sqlite3_trace_v2(kit.store->db, 0, NULL, NULL);
        steps[big] = most_steps;
    }
    ck_assert_int_gt(steps[0], 4096);
    ck_assert_int_lt(steps[1], steps[0] + steps[0] / 10);
    ck_assert_int_lt(steps[1], 400000);
}

/* The first, the last, those at the edge of a range, and one whose key is not a text that breccia
 * writes. */
TEST(every_row_is_in_a_range)
{
    static const int rows[] = {1, 4096, 4097, 8192, 8193, 10000};
    int lines = 0;
    put_many(10000); /* no row of draft_node: each chunk is a fault */
    OK_KIT(brc_store_check_rows(kit.store, count_line, &lines, &kit.err));
    ck_assert_int_eq(lines, 10000);
    store_kit_close(&kit);
    store_kit_sql(&kit, "DELETE FROM draft_chunk");
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        char sql[300];
        snprintf(sql, sizeof(sql),
                 "UPDATE node_total SET arrays=-1 WHERE id=(SELECT id FROM node_total ORDER BY id"
                 " LIMIT 1 OFFSET %d)", rows[i] - 1);
        store_kit_sql(&kit, sql);
    }
    store_kit_sql(&kit, "INSERT INTO node_total VALUES (-5, 0, 0, 0, 0, 0)");
    store_kit_open(&kit);
    lines = 0;
    OK_KIT(brc_store_check_rows(kit.store, count_line, &lines, &kit.err));
    ck_assert_int_eq(lines, (int)(sizeof(rows) / sizeof(rows[0])) + 1);
}

/* ---- giving way -------------------------------- */

#define LONG                                                                                   \
    "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i+1 FROM n WHERE i<2000000) SELECT i"   \
    " FROM n WHERE i IN (1, 2000000)"

/* While somebody says that he waits it is never through, and says nothing. */
TEST(who_waits_is_let_in)
{
    int n = 0;
    brc_store *other;
    brc_open_opts opts = BRC_OPEN_OPTS_INIT;
    const brc_check_lines lines = {count_line, &n};
    OK_KIT(brc_store_open(&other, kit.file, &opts, kit.reg, 1, &kit.err));
    brc_vfs_announce(other->vfs);
    ck_assert_int_eq(brc_check_try(kit.store, LONG, 3, &lines, &kit.err), 0);
    ck_assert_int_eq(n, 0);
    OK_KIT(brc_check_run(kit.store, LONG, NULL, &lines, &kit.err)); /* it insists in the end */
    ck_assert_int_eq(n, 2);
    brc_vfs_recall(other->vfs);
    ck_assert_int_eq(brc_check_try(kit.store, LONG, 1, &lines, &kit.err), 1);
    ck_assert_int_eq(n, 4);
    brc_store_close(other);
}

/* SQLite's own check too, which reads many pages within one instruction. */
TEST(the_check_of_pages_lets_them_in)
{
    static const char check[] = "PRAGMA integrity_check(20)";
    int n = 0;
    char line[200] = "";
    brc_store *other;
    brc_open_opts opts = BRC_OPEN_OPTS_INIT;
    const brc_check_lines lines = {count_line, &n};
    OK_KIT(brc_store_begin(kit.store, &kit.err));
    for (int i = 0; i < 100; i++)
        OK_KIT(brc_exec(kit.store, "INSERT INTO blob(data) VALUES (zeroblob(1000000))", &kit.err));
    OK_KIT(brc_store_end(kit.store, 1, &kit.err));
    OK_KIT(brc_store_open(&other, kit.file, &opts, kit.reg, 1, &kit.err));
    ck_assert_int_eq(brc_check_try(kit.store, check, 1, &lines, &kit.err), 1);
    brc_vfs_announce(other->vfs);
    ck_assert_int_eq(brc_check_try(kit.store, check, 1, &lines, &kit.err), 0);
    ck_assert_int_eq(n, 0);
    OK_KIT(brc_store_check_file(kit.store, keep_line, line, &kit.err)); /* table by table */
    ck_assert_str_eq(line, "");
    brc_vfs_recall(other->vfs);
    brc_store_close(other);
}

/* ---- beside a writer -------------------------------- */

enum { COMMITS = 2000, CHUNKS = 64, PER = 256 };

static const char *const codecs[] = {
    "[{\"name\":\"bytes\",\"configuration\":{\"endian\":\"little\"}}]",
    "[{\"name\":\"bytes\",\"configuration\":{\"endian\":\"little\"}},"
    "{\"name\":\"zstd\",\"configuration\":{\"level\":1,\"checksum\":false}}]",
};

/* Writes, commits, resizes, re-encodes, makes and removes. */
static void one_change(scenario *t, int i)
{
    static int32_t data[CHUNKS * PER];
    char path[32];
    snprintf(path, sizeof(path), "/g%d", i / 10 % 7);
    brc_array *a = scenario_array_at(t, t->session, "/a");
    if (i % 10 == 3)
        OK(t, brc_group_create(t->session, path, NULL, &t->err));
    else if (i % 10 == 7)
        OK(t, brc_node_remove(t->session, path, &t->err));
    else if (i % 50 == 5)
        OK(t, brc_array_set_codecs(a, codecs[(i / 50 + 1) % 2], 1, &t->err));
    else {
        brc_sel sel = BRC_SEL_INIT;
        sel_all(&sel, a);
        sel.start[0] = (uint64_t)(i % CHUNKS) * PER;
        sel.count[0] = PER;
        for (int j = 0; j < PER; j++)
            data[j] = i + j / 8;
        OK(t, brc_array_write(a, &sel, data, PER * sizeof(*data), &t->err));
    }
    brc_array_free(a);
    if (i % 3 > 0)
        scenario_commit(t, "beside");
}

CASE("beside", .timeout = 300);

TEST(nothing_false_is_found_beside_a_writer)
{
    scenario t;
    const uint64_t shape = CHUNKS * PER, chunk = PER;
    const int changes = (int)(COMMITS * 3 / 2 / effort_step(4, 4));
    int status, runs = 0;
    scenario_start(&t);
    brc_array_free(scenario_array(&t, "/a", "int32", 1, &shape, &chunk, NULL, codecs[0]));
    scenario_commit(&t, "first");
    scenario_close(&t);
    fflush(NULL);
    pid_t writer = fork();
    if (writer == 0) {
        brc_open_opts opts = BRC_OPEN_OPTS_INIT;
        opts.wait_ms = 60000;
        scenario_open(&t, &opts, 0);
        for (int i = 0; i < changes; i++)
            one_change(&t, i);
        scenario_close(&t);
        _exit(0);
    }
    scenario_open(&t, NULL, 0);
    while (waitpid(writer, &status, WNOHANG) == 0) {
        scenario_whole(&t);
        runs++;
    }
    ck_assert_int_eq(status, 0);
    ck_assert_int_gt(runs, 5);
    scenario_whole(&t);
    scenario_stop(&t);
}
