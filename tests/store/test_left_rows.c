/* Rows of stored bytes that objects leave, one after the other and in many transactions: what is
 * noted of them, when they go, and that nothing is searched for it. */
#include <sqlite3.h>
#include <stdlib.h>
#include <string.h>

#include "../../src/store/db.h"
#include "../kit/file_digest.h"
#include "../kit/own_rows.h"
#include "../kit/store_kit.h"
#include "../kit/suite.h"

TEST_SUITE(left_rows);

enum { LEN = 2000 };

STORE_KIT_FIXTURE(kit)

#define OK_KIT(call) KIT_OK(&kit, call)

static int64_t ask(const char *sql)
{
    return store_kit_ask(&kit, sql);
}

static void random_bytes(uint8_t *data, uint64_t seed)
{
    for (size_t i = 0; i < LEN; i++)
        data[i] = (uint8_t)store_kit_random(&seed);
}

/* In one transaction: their rows are full but for the last. */
static void put_chunks(brc_oid *ids, size_t n, uint64_t seed)
{
    uint8_t data[LEN];
    OK_KIT(brc_store_begin(kit.store, &kit.err));
    for (size_t i = 0; i < n; i++) {
        random_bytes(data, seed + i);
        OK_KIT(brc_store_put(kit.store, BRC_KIND_CHUNK, data, LEN, &ids[i], &kit.err));
    }
    OK_KIT(brc_store_end(kit.store, 1, &kit.err));
}

/* The same bytes go into another row, as when an object is encoded again. Within a transaction. */
static int move_chunk(brc_store *store, const brc_oid *id)
{
    uint8_t data[LEN];
    brc_store_backend *b;
    brc_object o = {.id = *id}, *one = &o;
    brc_stored at, *put = &at;
    OK_KIT(brc_objects_find(store, &one, 1, &kit.err));
    ck_assert_int_eq(o.found, 1);
    OK_KIT(brc_object_fetch(store, &o, data, &kit.err));
    brc_object_ask(&o, &at);
    at.data = data;
    OK_KIT(brc_backend_use(store, 0, &b, &kit.err));
    OK_KIT(brc_backend_put(b, 1, &put, &kit.err));
    OK_KIT(brc_object_replace(store, &o, &at, &kit.err));
    return BRC_OK;
}

static void move_chunks(const brc_oid *ids, size_t from, size_t to, size_t step)
{
    OK_KIT(brc_store_begin(kit.store, &kit.err));
    for (size_t i = from; i < to; i += step)
        move_chunk(kit.store, &ids[i]);
    OK_KIT(brc_store_end(kit.store, 1, &kit.err));
}

static void check_whole(void)
{
    store_kit_close(&kit);
    ck_assert(file_is_whole(kit.file));
    store_kit_open(&kit);
}

CASE("left_rows", .setup = kit_start, .teardown = kit_stop, .timeout = 60);

/* ---- when they go -------------------------------- */

TEST(a_row_goes_with_the_last_object)
{
    enum { N = 100 };
    brc_oid ids[N];
    put_chunks(ids, N, 1);
    ck_assert_int_eq(ask("SELECT count(*) FROM blob"), 1);
    for (size_t i = 0; i < N - 1; i++) {
        move_chunks(ids, i, i + 1, 1);
        ck_assert_int_eq(ask("SELECT count(*) FROM blob WHERE seq=1"), 1);
        ck_assert_int_eq(ask("SELECT bytes FROM removed"), (int64_t)(i + 1) * LEN);
    }
    check_whole(); /* what is noted lasts */
    move_chunks(ids, N - 1, N, 1);
    ck_assert_int_eq(ask("SELECT count(*) FROM blob WHERE seq=1"), 0);
    ck_assert_int_eq(ask("SELECT count(*) FROM removed"), 0);
    ck_assert_int_eq(ask("SELECT count(*) FROM blob"), N);
    check_whole();
}

/* Each knows of it what the other has done. */
TEST(two_handles_leave_one_row)
{
    enum { N = 40 };
    brc_oid ids[N];
    brc_store *other;
    brc_open_opts opts = BRC_OPEN_OPTS_INIT;
    put_chunks(ids, N, 1);
    OK_KIT(brc_store_open(&other, kit.file, &opts, kit.reg, 1, &kit.err));
    for (size_t i = 0; i < N; i++) {
        brc_store *store = i % 2 ? other : kit.store;
        OK_KIT(brc_store_begin(store, &kit.err));
        move_chunk(store, &ids[i]);
        OK_KIT(brc_store_end(store, 1, &kit.err));
    }
    brc_store_close(other);
    ck_assert_int_eq(ask("SELECT count(*) FROM blob WHERE seq=1"), 0);
    ck_assert_int_eq(ask("SELECT count(*) FROM removed"), 0);
    check_whole();
}

/* An undone transaction has left nothing. */
TEST(what_is_undone_is_not_left)
{
    enum { N = 10 };
    brc_oid ids[N];
    put_chunks(ids, N, 1);
    OK_KIT(brc_store_begin(kit.store, &kit.err));
    for (size_t i = 0; i < N; i++)
        move_chunk(kit.store, &ids[i]);
    OK_KIT(brc_store_end(kit.store, 0, &kit.err));
    move_chunks(ids, 0, 1, 1);
    ck_assert_int_eq(ask("SELECT bytes FROM removed"), LEN);
    ck_assert_int_eq(ask("SELECT count(*) FROM blob"), 2);
    check_whole();
}

/* ---- damage -------------------------------- */

/* A note that damage has changed would drop a row that is in use. */
TEST(a_damaged_note_drops_nothing)
{
    enum { N = 10 };
    brc_oid ids[N];
    put_chunks(ids, N, 1);
    move_chunks(ids, 0, 2, 1);
    store_kit_close(&kit);
    store_kit_sql_shared(&kit, "UPDATE removed SET bytes=18000");
    store_kit_open(&kit);
    OK_KIT(brc_store_begin(kit.store, &kit.err));
    move_chunk(kit.store, &ids[2]);
    KIT_FAILS(&kit, BRC_ECORRUPT, "checksum", brc_store_end(kit.store, 1, &kit.err));
    ck_assert_int_eq(ask("SELECT count(*) FROM blob WHERE seq=1"), 1);
    store_kit_close(&kit);
    ck_assert(!file_is_whole(kit.file));
    store_kit_open(&kit);
}

/* More than there is, with the right checksum: somebody has forged it, and the row stays. */
TEST(too_many_holes_drop_nothing)
{
    enum { N = 10 };
    brc_oid ids[N];
    put_chunks(ids, N, 1);
    move_chunks(ids, 0, 2, 1);
    store_kit_close(&kit);
    store_kit_sql_shared(&kit, "UPDATE removed SET bytes=19000; UPDATE removed SET checksum="
                                REMOVED_SUM);
    store_kit_open(&kit);
    move_chunks(ids, 2, 3, 1);
    ck_assert_int_eq(ask("SELECT count(*) FROM blob WHERE seq=1"), 1);
}

/* ---- how much work it is -------------------------------- */

static int64_t all_steps;

static int add_steps(unsigned what, void *ctx, void *stmt, void *unused)
{
    (void)what, (void)ctx, (void)unused;
    all_steps += sqlite3_stmt_status(stmt, SQLITE_STMTSTATUS_VM_STEP, 1);
    return 0;
}

/* _i 0: in the order in which they lie; 1: each transaction takes a few of every row. */
LOOP(leaving_is_linear, 0, 2)
{
    enum { N = 2000, PER = 10 };
    static brc_oid ids[4 * N];
    int64_t steps[2];
    for (int big = 0; big < 2; big++) {
        const size_t n = big ? 4 * N : N, parts = n / PER;
        put_chunks(ids, n, (uint64_t)big << 32);
        all_steps = 0;
        sqlite3_trace_v2(kit.store->db, SQLITE_TRACE_PROFILE, add_steps, NULL);
        for (size_t i = 0; i < parts; i++) {
            if (_i == 0)
                move_chunks(ids, i * PER, (i + 1) * PER, 1);
            else
                move_chunks(ids, i, n, parts);
        }
        sqlite3_trace_v2(kit.store->db, 0, NULL, NULL);
        steps[big] = all_steps;
        ck_assert_int_eq(ask("SELECT count(*) FROM removed"), 0);
    }
    ck_assert_int_lt(steps[1], 4 * steps[0] + steps[0] / 2);
    ck_assert_int_lt(steps[0], (int64_t)N * 400);
    check_whole();
}
