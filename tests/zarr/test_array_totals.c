/* How many chunks an array has and what they take: from the totals of its map's nodes, equal to
 * what a walk over every chunk says. */
#include <sqlite3.h>
#include <stdio.h>
#include <string.h>

#include "../../src/history/totals.h"
#include "../../src/store/db.h"
#include "../../src/zarr/array/array.h"
#include "../kit/ios.h"
#include "../kit/scenario.h"
#include "../kit/suite.h"

TEST_SUITE(array_totals);

#define LITTLE "{\"name\":\"bytes\",\"configuration\":{\"endian\":\"little\"}}"
#define ZSTD "[" LITTLE ",{\"name\":\"zstd\",\"configuration\":{\"level\":1,\"checksum\":false}}]"
#define GZIP "[" LITTLE ",{\"name\":\"gzip\",\"configuration\":{\"level\":6}}]"
#define SHARD                                                                            \
    "[{\"name\":\"sharding_indexed\",\"configuration\":{\"chunk_shape\":[4],\"codecs\":" ZSTD  \
    ",\"index_codecs\":[" LITTLE "]}}]"

#define NO_ROW "SELECT count(*) FROM object WHERE kind=3 AND id NOT IN (SELECT id FROM node_total)"

/* ---- the walk -------------------------------- */

typedef struct walk_sum {
    brc_array *a;
    brc_node_total total;
} walk_sum;

static int walk_chunk(void *ctx, const uint64_t *index, const brc_oid *id, brc_error *err)
{
    walk_sum *sum = ctx;
    brc_object o = { .id = *id }, *one = &o;
    (void)index;
    BRC_TRY(brc_objects_find(brc_array_store(sum->a), &one, 1, err));
    sum->total.chunks++;
    sum->total.size += o.size;
    sum->total.stored += o.stored;
    return BRC_OK;
}

static brc_node_total walk_of(scenario *t, brc_array *a)
{
    walk_sum sum = { .a = a };
    OK(t, brc_array_begin_read(a, &t->err));
    OK(t, brc_array_each_chunk(a, walk_chunk, &sum, &t->err));
    brc_array_end_read(a);
    return sum.total;
}

static brc_node_total check_array(scenario *t, const char *path)
{
    uint64_t chunks, stored;
    brc_array *a = scenario_array_at(t, t->session, path);
    brc_node_total want = walk_of(t, a);
    OK(t, brc_array_stat(&chunks, &stored, a, &t->err));
    ck_assert_uint_eq(chunks, want.chunks);
    ck_assert_uint_eq(stored, want.stored);
    brc_array_free(a);
    return want;
}

/* Every array by itself, and where nothing is uncommitted the root with all that is under it. */
static void check_all(scenario *t)
{
    brc_node_total want = { 0 }, got;
    brc_store *store = t->repo->store;
    brc_iter *it;
    const brc_node *node;
    brc_entry root;
    int rc, whole, has;
    brc_oid commit, snapshot;
    OK(t, brc_list(&it, t->session, "/", BRC_LIST_RECURSE, &t->err));
    while ((rc = brc_next(it, &node, &t->err)) == 1) {
        if (node->kind == BRC_ARRAY) {
            brc_node_total one = check_array(t, node->path);
            ck_assert(brc_node_total_add(&want, &one));
        }
        want.arrays += node->kind == BRC_ARRAY;
        want.groups += node->kind == BRC_GROUP;
    }
    OK(t, rc);
    brc_iter_free(it);
    if (!scenario_clean(t))
        return;
    OK(t, brc_session_begin_read(t->session, &t->err));
    OK(t, brc_session_tip(t->session, &has, &commit, &snapshot, &t->err));
    OK(t, brc_snapshot_find(store, &snapshot, "/", &root, &t->err));
    OK(t, brc_entry_total(store, &root, NULL, &got, &whole, &t->err));
    brc_session_end_read(t->session);
    ck_assert_int_eq(whole, 1);
    ck_assert(brc_node_total_equal(&got, &want));
}

/* ---- random histories -------------------------------- */

static const char *const array_paths[] = { "/a", "/g/b", "/g/h/s", "/two" };
enum { ARRAYS = 4 };

static void make_arrays(scenario *t)
{
    const uint64_t shape[2] = { 4000, 3 }, chunk[2] = { 8, 2 };
    brc_array_free(scenario_array(t, "/a", "int32", 1, shape, chunk, "0", ZSTD));
    brc_array_free(scenario_array(t, "/g/b", "int32", 1, shape, chunk, "0", GZIP));
    brc_array_free(scenario_array(t, "/g/h/s", "int32", 1, shape, chunk, "0", SHARD));
    brc_array_free(scenario_array(t, "/two", "int32", 2, shape, chunk, "0", ZSTD));
}

/* Some of the axis: few values, so that chunks are equal and some are all fill value. */
static void write_some(scenario *t, brc_array *a, uint64_t *random)
{
    int32_t data[3 * 700];
    brc_sel sel = BRC_SEL_INIT;
    sel_all(&sel, a);
    uint64_t n = sel.count[0] < 700 ? sel.count[0] : 1 + scenario_below(random, 700);
    if (scenario_below(random, 3) == 0)
        n = 1;
    if (n == 0)
        return;
    sel.start[0] = scenario_below(random, sel.count[0] - n + 1);
    sel.count[0] = n;
    uint64_t count = brc_sel_count(&sel), kind = scenario_below(random, 4);
    for (uint64_t i = 0; i < count; i++)
        data[i] = kind == 0 ? 0 : kind == 1 ? 7 : (int32_t)scenario_below(random, 1 << 20);
    OK(t, brc_array_write(a, &sel, data, count * 4, &t->err));
}

static void change_one(scenario *t, uint64_t *random)
{
    const char *path = array_paths[scenario_below(random, ARRAYS)];
    const uint64_t what = scenario_below(random, 10);
    brc_array *a = scenario_array_at(t, t->session, path);
    const brc_array_info *info = brc_array_describe(a);
    uint64_t shape[2] = { 1 + scenario_below(random, 4000), 3 };
    int kind;
    if (what == 0) {
        OK(t, brc_array_resize(a, shape, &t->err));
    } else if (what == 1 && info->shard == NULL) {
        OK(t, brc_array_set_codecs(a, scenario_below(random, 2) ? ZSTD : GZIP, 1, &t->err));
    } else if (what == 2) {
        OK(t, brc_node_kind(&kind, t->session, "/copy", &t->err));
        if (kind != 0)
            OK(t, brc_node_remove(t->session, "/copy", &t->err));
        OK(t, brc_node_move(t->session, path, "/copy/of", BRC_NODE_COPY, &t->err));
    } else {
        write_some(t, a, random);
    }
    brc_array_free(a);
}

static void random_history(uint64_t seed, int forget)
{
    scenario t;
    uint64_t random = seed;
    scenario_start(&t);
    make_arrays(&t);
    for (int i = 0; i < 60; i++) {
        change_one(&t, &random);
        if (scenario_below(&random, 3) == 0 && !scenario_clean(&t))
            scenario_commit(&t, "next");
        if (forget && scenario_below(&random, 4) == 0) {
            scenario_reopen(&t);
            scenario_sql_shared(&t, "DELETE FROM node_total WHERE abs(random()) % 3 = 0");
        }
        if (i % 4 == 0)
            check_all(&t);
    }
    if (!scenario_clean(&t))
        scenario_commit(&t, "last");
    check_all(&t);
    scenario_whole(&t); /* every row is right */
    scenario_stop(&t);
}

CASE("array_totals", .timeout = 120);

LOOP(as_a_walk_says, 0, 12)
{
    random_history((uint64_t)_i, 0);
}

LOOP(as_a_walk_says_where_rows_are_missing, 0, 12)
{
    random_history((uint64_t)_i + 100, 1);
}

/* ---- rows are there -------------------------------- */

TEST(a_commit_leaves_a_row_of_every_node)
{
    scenario t;
    uint64_t random = 5;
    scenario_start(&t);
    scenario_numbers(&t, "/g/a", 20000, 4, 1);
    for (int i = 0; i < 12; i++) {
        scenario_commit(&t, "next");
        ck_assert_int_eq(scenario_ask(&t, NO_ROW), 1); /* the empty snapshot: nothing leads to it */
        scenario_set_number(&t, "/g/a", scenario_below(&random, 20000), -i - 2);
        if (i % 3 == 0)
            OK(&t, brc_attrs_set(t.session, "/g", "i", i % 2 ? "1" : "2", &t.err));
    }
    scenario_stop(&t);
}

/* The row of the old node has the sum of the chunks, and nothing has the size of each of them. */
TEST(chunks_that_are_gone_can_be_replaced)
{
    scenario t;
    int32_t data[4000];
    scenario_start(&t);
    scenario_numbers(&t, "/a", 4000, 4, 1);
    scenario_commit(&t, "one");
    scenario_close(&t);
    scenario_sql_shared(&t, "DELETE FROM object WHERE kind=1");
    scenario_open(&t, NULL, 0);
    brc_array *a = scenario_array_at(&t, t.session, "/a");
    for (int i = 0; i < 4000; i++)
        data[i] = -i - 1;
    OK(&t, brc_array_write(a, NULL, data, sizeof(data), &t.err));
    brc_array_free(a);
    scenario_commit(&t, "two");
    ck_assert_uint_eq(check_array(&t, "/a").chunks, 1000);
    scenario_stop(&t);
}

TEST(what_is_missing_is_kept_when_asked_for)
{
    scenario t;
    scenario_start(&t);
    scenario_numbers(&t, "/g/a", 4000, 4, 1);
    scenario_commit(&t, "one");
    int64_t rows = scenario_ask(&t, "SELECT count(*) FROM node_total");
    scenario_sql_shared(&t, "DELETE FROM node_total");
    brc_node_total want = check_array(&t, "/g/a");
    ck_assert_uint_eq(want.chunks, 1000);
    int64_t kept = scenario_ask(&t, "SELECT count(*) FROM node_total");
    ck_assert_int_eq(kept, rows - 3); /* the groups' maps and the snapshot's were not asked for */
    ck_assert_int_eq(scenario_ask(&t, "SELECT max(stored) FROM node_total"), (int64_t)want.stored);
    scenario_whole(&t);
    scenario_stop(&t);
}

TEST(a_reader_keeps_nothing)
{
    scenario t;
    brc_session *session;
    brc_array *a;
    uint64_t chunks, stored;
    scenario_start(&t);
    scenario_numbers(&t, "/a", 4000, 4, 1);
    scenario_commit(&t, "one");
    scenario_close(&t);
    scenario_sql_shared(&t, "DELETE FROM node_total");
    scenario_open(&t, NULL, BRC_OPEN_READONLY);
    session = t.session;
    OK(&t, brc_array_open(&a, session, "/a", &t.err));
    OK(&t, brc_array_stat(&chunks, &stored, a, &t.err));
    ck_assert_uint_eq(chunks, 1000);
    brc_array_free(a);
    ck_assert_int_eq(scenario_ask(&t, "SELECT count(*) FROM node_total"), 0);
    scenario_stop(&t);
}

TEST(rewritten_chunks_drop_the_rows)
{
    scenario t;
    brc_array *a;
    scenario_start(&t);
    scenario_numbers(&t, "/a", 4000, 100, 1);
    OK(&t, brc_node_move(t.session, "/a", "/b", BRC_NODE_COPY, &t.err));
    scenario_commit(&t, "one");
    brc_node_total before = check_array(&t, "/b");
    OK(&t, brc_array_open(&a, t.session, "/a", &t.err));
    OK(&t, brc_array_set_codecs(a, "[" LITTLE "]", 1, &t.err));
    brc_array_free(a);
    brc_node_total after = check_array(&t, "/b"); /* it has the same chunks */
    ck_assert_uint_eq(after.stored, 16000);
    ck_assert_uint_lt(before.stored, after.stored);
    scenario_commit(&t, "two");
    check_all(&t);
    scenario_whole(&t);
    scenario_stop(&t);
}

/* ---- what it takes -------------------------------- */

static uint64_t pages_used(scenario *t)
{
    int hit = 0, miss = 0, most;
    sqlite3 *db = t->repo->store->db;
    ck_assert_int_eq(sqlite3_db_status(db, SQLITE_DBSTATUS_CACHE_HIT, &hit, &most, 0), SQLITE_OK);
    ck_assert_int_eq(sqlite3_db_status(db, SQLITE_DBSTATUS_CACHE_MISS, &miss, &most, 0), SQLITE_OK);
    return (uint64_t)hit + (uint64_t)miss;
}

/* Pages that are looked at for the sum of n chunks, with some uncommitted ones. */
static uint64_t pages_of(uint64_t n, int forget)
{
    scenario t;
    brc_array *a;
    uint64_t chunks, stored;
    scenario_start(&t);
    scenario_numbers(&t, "/a", 4 * n, 4, 1);
    scenario_commit(&t, "one");
    scenario_set_number(&t, "/a", 0, -5);
    if (forget)
        scenario_sql_shared(&t, "DELETE FROM node_total");
    scenario_reopen(&t);
    OK(&t, brc_array_open(&a, t.session, "/a", &t.err));
    uint64_t before = pages_used(&t);
    OK(&t, brc_array_stat(&chunks, &stored, a, &t.err));
    uint64_t used = pages_used(&t) - before;
    ck_assert_uint_eq(chunks, n);
    brc_array_free(a);
    scenario_stop(&t);
    return used;
}

TEST(four_times_the_chunks_take_as_many_pages)
{
    uint64_t few = pages_of(2000, 0), many = pages_of(8000, 0);
    ck_assert_uint_lt(few, 100);
    ck_assert_uint_le(many, few + 32); /* a node's bytes lie up to 16 pages into their row */
    ck_assert_uint_gt(pages_of(2000, 1), 2000); /* so it would be seen */
}

/* ---- rows of a stranger -------------------------------- */

static const char *const wrong_rows[] = {
    "UPDATE node_total SET chunks=chunks+1",
    "UPDATE node_total SET chunks=0",
    "UPDATE node_total SET chunks=-1",
    "UPDATE node_total SET stored=-1",
    "UPDATE node_total SET stored=9223372036854775807",
    "UPDATE node_total SET stored='many'",
    "UPDATE node_total SET size=x'00'",
    "UPDATE node_total SET arrays=1",
    "UPDATE node_total SET groups=9223372036854775807",
    "UPDATE node_total SET arrays=9223372036854775807, chunks=9223372036854775807",
};
enum { WRONG_ROWS = sizeof(wrong_rows) / sizeof(wrong_rows[0]) };

LOOP(what_cannot_be_is_not_believed, 0, WRONG_ROWS)
{
    scenario t;
    scenario_start(&t);
    scenario_numbers(&t, "/g/a", 4000, 4, 1);
    scenario_commit(&t, "one");
    scenario_set_number(&t, "/g/a", 5, -1);
    scenario_sql_shared(&t, wrong_rows[_i]);
    scenario_reopen(&t);
    check_array(&t, "/g/a");
    scenario_commit(&t, "rows of the new nodes come from wrong ones, or not at all");
    scenario_stop(&t);
}

static int count_damage(void *ctx, const brc_damage *damage)
{
    *(int *)ctx += strstr(damage->message, "node_total") != NULL;
    return 0;
}

LOOP(fsck_tells_of_a_wrong_row, 0, 3)
{
    scenario t;
    int told = 0;
    scenario_start(&t);
    scenario_numbers(&t, "/g/a", 4000, 4, 1);
    scenario_numbers(&t, "/g/b", 4000, 4, 9);
    scenario_commit(&t, "one");
    scenario_sql_shared(&t, _i == 0 ? "UPDATE node_total SET stored=stored+1 WHERE id=(SELECT id"
                                      " FROM node_total WHERE arrays=0 ORDER BY id LIMIT 1)"
                            : _i == 1 ? "UPDATE node_total SET size=size-4 WHERE arrays=2"
                                        " AND groups=0"
                                      : "UPDATE node_total SET groups=5 WHERE groups=2");
    scenario_reopen(&t);
    OK(&t, brc_fsck(t.repo, 0, count_damage, NULL, &told, NULL, &t.err));
    ck_assert_int_eq(told, 1);
    scenario_stop(&t);
}
