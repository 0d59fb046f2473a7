/* The rules of a transaction towards others: the file stays readable until it ends, and no
 * statement of it grows with what was dropped. Work is counted in SQLite's own steps, not in
 * time. */
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../../src/store/db.h"
#include "../kit/file_digest.h"
#include "../kit/seal.h"
#include "../kit/store_kit.h"
#include "../kit/suite.h"

TEST_SUITE(short_steps);

STORE_KIT_FIXTURE(kit)

#define OK(call) KIT_OK(&kit, call)

/* ---- no spill ------------------------------------------------------------------------- */

static uint32_t file_counter(void)
{
    brc_buf all = store_kit_bytes(&kit);
    uint32_t n = (uint32_t)all.data[24] << 24 | (uint32_t)all.data[25] << 16 |
                 (uint32_t)all.data[26] << 8 | all.data[27];
    brc_buf_dispose(&all);
    return n;
}

CASE("short_steps", .setup = kit_start, .teardown = kit_stop, .timeout = 120);

/* Far more than SQLite's page cache, less than the bound. */
TEST(a_batch_does_not_lock_readers_out)
{
    brc_store *reader;
    brc_open_opts opts = BRC_OPEN_OPTS_INIT;
    const char *branch;
    opts.flags = BRC_OPEN_READONLY;
    opts.wait_ms = -1;
    OK(brc_store_open(&reader, kit.file, &opts, kit.reg, 1, &kit.err));
    uint32_t counter = file_counter();
    brc_buf before = store_kit_bytes(&kit);
    OK(brc_store_begin(kit.store, &kit.err));
    for (int i = 0; i < 64; i++) {
        OK(brc_exec(kit.store, "INSERT INTO blob(data) VALUES (randomblob(1000000))", &kit.err));
        OK(brc_head_get(reader, &branch, &kit.err));
    }
    KIT_TRUE(store_kit_same(kit.file, &before)); /* not one page was written */
    OK(brc_store_end(kit.store, 1, &kit.err));
    ck_assert_uint_eq(file_counter(), counter + 1);
    OK(brc_head_get(reader, &branch, &kit.err));
    brc_store_close(reader);
    brc_buf_dispose(&before);
}

/* SQLite takes a multiple of 256 for "never". */
TEST(there_is_a_bound)
{
    sqlite3_stmt *st;
    OK(brc_stmt(kit.store, "PRAGMA cache_spill", &st, &kit.err));
    ck_assert_int_eq(brc_step(kit.store, st, &kit.err), 1);
    ck_assert_int_gt(sqlite3_column_int64(st, 0), 16384);
    sqlite3_reset(st);
}

/* Pages that were written before the end. */
static int spilled(void)
{
    int now = 0, most = 0;
    ck_assert_int_eq(sqlite3_db_status(kit.store->db, SQLITE_DBSTATUS_CACHE_SPILL, &now, &most, 0),
                     SQLITE_OK);
    return now;
}

static int64_t blobs_in_file(void)
{
    return store_kit_ask(&kit, "SELECT count(*) FROM blob WHERE length(data)=100000");
}

/* Beyond the bound, here one of 4 MiB, nothing is lost either: with the rollback journal readers
 * wait for the end, in WAL mode they go on; and what is undone was never there. */
LOOP(beyond_the_bound_pages_are_written_ahead, 0, 4)
{
    const int in_wal = _i % 2, keep = _i / 2;
    brc_store *reader;
    brc_open_opts opts = BRC_OPEN_OPTS_INIT;
    const char *branch;
    opts.flags = BRC_OPEN_READONLY;
    opts.wait_ms = -1;
    if (in_wal)
        OK(brc_journal_set(kit.store, 1, &kit.err));
    OK(brc_exec(kit.store, "PRAGMA cache_size=16; PRAGMA cache_spill=257", &kit.err));
    OK(brc_store_open(&reader, kit.file, &opts, kit.reg, 1, &kit.err));
    const int before = spilled();
    OK(brc_store_begin(kit.store, &kit.err));
    for (int i = 0; i < 100; i++) {
        OK(brc_exec(kit.store, "INSERT INTO blob(data) VALUES (randomblob(100000))", &kit.err));
        int rc = brc_head_get(reader, &branch, &kit.err);
        ck_assert_int_eq(rc, !in_wal && spilled() > before ? BRC_EBUSY : BRC_OK);
    }
    ck_assert_int_gt(spilled(), before);
    OK(brc_store_end(kit.store, keep, &kit.err));
    OK(brc_head_get(reader, &branch, &kit.err));
    brc_store_close(reader);
    ck_assert_int_eq(blobs_in_file(), keep ? 100 : 0);
    ck_assert_int_eq(store_kit_ask(&kit, "SELECT count(*) FROM pragma_integrity_check"
                                         " WHERE integrity_check<>'ok'"), 0);
}

/* ---- dropping ---------------------------------------------------------------------------- */

static int64_t most_steps;

static int note_steps(unsigned what, void *ctx, void *stmt, void *unused)
{
    (void)what, (void)ctx, (void)unused;
    int64_t steps = sqlite3_stmt_status(stmt, SQLITE_STMTSTATUS_VM_STEP, 1);
    if (steps > most_steps)
        most_steps = steps;
    return 0;
}

static void count_steps(void)
{
    most_steps = 0;
    sqlite3_trace_v2(kit.store->db, SQLITE_TRACE_PROFILE, note_steps, NULL);
}

/* A draft of one array with so many chunks. */
static int64_t big_draft(int64_t chunks, int64_t *node)
{
    char sql[300];
    static const uint8_t entry[] = "x";
    OK(brc_store_begin(kit.store, &kit.err));
    int64_t draft = store_kit_draft(&kit, "main", NULL);
    OK(brc_draft_node_put(kit.store, draft, "/a", entry, 1, node, &kit.err));
    snprintf(sql, sizeof(sql),
             "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i+1 FROM n WHERE i<%lld)"
             " INSERT INTO draft_chunk SELECT %lld, CAST(i AS BLOB), NULL,"
             " row_sum('draft_chunk', %lld, CAST(i AS BLOB), NULL) FROM n",
             (long long)chunks, (long long)*node, (long long)*node);
    OK(brc_exec(kit.store, sql, &kit.err));
    OK(brc_store_end(kit.store, 1, &kit.err));
    return draft;
}

enum { DELETED, EMPTIED, ADVANCED, ROW_DROPPED, WAYS };

static void drop_in_a_way(int way, int64_t draft, int64_t node)
{
    brc_oid commit = store_kit_id(7);
    OK(brc_store_begin(kit.store, &kit.err));
    if (way == DELETED)
        OK(brc_draft_delete(kit.store, draft, &kit.err));
    else if (way == EMPTIED)
        OK(brc_draft_empty(kit.store, draft, &kit.err));
    else if (way == ADVANCED)
        OK(brc_draft_advance(kit.store, draft, &commit, &kit.err));
    else
        OK(brc_draft_row_drop(kit.store, node, &kit.err));
    OK(brc_store_end(kit.store, 1, &kit.err));
}

/* 40,000 rows and four times as many: no statement touches more for it. */
LOOP(dropping_is_in_short_steps, 0, WAYS)
{
    int64_t most[2];
    for (int big = 0; big < 2; big++) {
        int64_t node, draft = big_draft(big ? 160000 : 40000, &node);
        count_steps();
        drop_in_a_way(_i, draft, node);
        brc_draft_node row;
        int found = 0;
        if (_i != DELETED)
            OK(brc_draft_node_get(kit.store, draft, "/a", &found, &row, &kit.err));
        ck_assert_int_eq(found, 0); /* it is gone for whoever looks */
        ck_assert_int_gt(store_kit_ask(&kit, "SELECT count(*) FROM draft_chunk"), 0);
        for (int i = 0; i < 320; i++) { /* and really, with the writes that follow */
            OK(brc_store_begin(kit.store, &kit.err));
            OK(brc_store_end(kit.store, 1, &kit.err));
        }
        most[big] = most_steps;
        sqlite3_trace_v2(kit.store->db, 0, NULL, NULL);
        ck_assert_int_eq(store_kit_ask(&kit, "SELECT count(*) FROM draft_chunk"), 0);
        ck_assert_int_eq(store_kit_ask(&kit, "SELECT count(*) FROM draft_node WHERE draft<>0"), 0);
        ck_assert_int_eq(store_kit_ask(&kit, "SELECT count(*) FROM draft WHERE state=2"), 0);
        if (_i != DELETED) {
            OK(brc_store_begin(kit.store, &kit.err));
            OK(brc_draft_delete(kit.store, draft, &kit.err));
            OK(brc_store_end(kit.store, 1, &kit.err));
        }
    }
    ck_assert_int_lt(most[1], most[0] + most[0] / 10);
    ck_assert_int_lt(most[1], 200000);
}

/* A transaction removes as many dropped rows as it has changed. */
TEST(dropped_rows_do_not_become_more)
{
    for (int i = 0; i < 8; i++) {
        int64_t node, draft = big_draft(10000, &node);
        drop_in_a_way(DELETED, draft, node);
        ck_assert_int_le(store_kit_ask(&kit, "SELECT count(*) FROM draft_chunk"), 10000);
    }
}

TEST(a_page_of_nodes_ends)
{
    brc_draft_rows rows = {0};
    OK(brc_store_begin(kit.store, &kit.err));
    int64_t node, draft = store_kit_draft(&kit, "main", NULL);
    OK(brc_draft_node_put(kit.store, draft, "/a", "x", 1, &node, &kit.err));
    OK(brc_draft_node_put(kit.store, draft, "/b", "x", 1, &node, &kit.err));
    OK(brc_draft_node_put(kit.store, draft, "/c", "x", 1, &node, &kit.err));
    OK(brc_store_end(kit.store, 1, &kit.err));
    for (size_t i = 1; i < 4; i++) {
        OK(brc_draft_node_page(kit.store, draft, &rows, 1, &kit.err));
        ck_assert_uint_eq(rows.n, i);
    }
    OK(brc_draft_node_page(kit.store, draft, &rows, 1, &kit.err));
    ck_assert_uint_eq(rows.n, 3);
    ck_assert_str_eq(((brc_draft_node *)rows.nodes)[2].path, "/c");
    brc_draft_nodes_free(rows.nodes, rows.n);
    rows = (brc_draft_rows){0};
    store_kit_sql(&kit, "UPDATE draft_node SET path='/b' || char(0) || 'x' WHERE path='/b';"
                        SEAL_ALL);
    OK(brc_draft_node_page(kit.store, draft, &rows, 1, &kit.err));
    store_kit_failed(brc_draft_node_page(kit.store, draft, &rows, 1, &kit.err), BRC_ECORRUPT,
                     "not text", &kit.err, __FILE__, __LINE__);
    brc_draft_nodes_free(rows.nodes, rows.n);
}

/* A half dropped draft is not damage, and the branch may have a new draft. */
TEST(half_dropped_is_whole)
{
    int64_t node, draft = big_draft(20000, &node);
    drop_in_a_way(DELETED, draft, node);
    ck_assert_int_gt(store_kit_ask(&kit, "SELECT count(*) FROM draft_chunk"), 0);
    int64_t next;
    OK(brc_store_begin(kit.store, &kit.err));
    next = store_kit_draft(&kit, "main", NULL);
    OK(brc_store_end(kit.store, 1, &kit.err));
    ck_assert_int_ne(next, draft);
    store_kit_close(&kit);
    ck_assert(file_is_whole(kit.file));
}
