/* Checksums of rows that no hash covers: their definition, and every cell of the six tables that
 * have them, changed by damage: found by the check of rows, and an error for whoever reads it. */
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../../src/base/buf.h"
#include "../../src/base/hash.h"
#include "../../src/store/db.h"
#include "../kit/seal.h"
#include "../kit/store_kit.h"
#include "../kit/suite.h"

TEST_SUITE(row_sum);

static store_kit kit;
static int64_t draft, node;

#define OK(call) KIT_OK(&kit, call)

/* A row or more of each of the six tables. */
static void sums_setup(void)
{
    brc_oid id, other = store_kit_id(8);
    store_kit_start(&kit);
    OK(brc_store_begin(kit.store, &kit.err));
    OK(brc_store_put(kit.store, BRC_KIND_COMMIT, "commit", 6, &id, &kit.err));
    OK(brc_ref_put(kit.store, "heads/main", &id, NULL, "commit", 0, NULL, 5, &kit.err));
    OK(brc_ref_put(kit.store, "tags/v1", &id, "first", "tag", 0, NULL, 5, &kit.err));
    draft = store_kit_draft(&kit, "main", &id);
    OK(brc_draft_node_put(kit.store, draft, "/a", "entry", 5, &node, &kit.err));
    OK(brc_draft_chunk_put(kit.store, node, "k", 1, &other, &kit.err));
    OK(brc_draft_chunk_put(kit.store, node, "m", 1, NULL, &kit.err));
    OK(brc_store_end(kit.store, 1, &kit.err));
    store_kit_close(&kit);
}

static void sums_teardown(void)
{
    store_kit_stop(&kit);
}

static int count_line(void *ctx, const char *line)
{
    ck_assert(line[0] != 0);
    ++*(int *)ctx;
    return 0;
}

/* ---- the definition ---------------------------------------------------------------- */

/* row_sum('t', ...) by the bytes that FORMAT.md says. */
static int64_t sum_of(const char *bytes, size_t len)
{
    return (int32_t)(uint32_t)brc_hash_bytes(bytes, len);
}

CASE("row_sum", .setup = sums_setup, .teardown = sums_teardown);

TEST(a_sum_is_that_of_the_bytes_that_the_format_says)
{
    static const struct {
        const char *values, *bytes;
        size_t len;
    } rows[] = {
#define TABLE "\3\0\0\0\0\0\0\0\1t"
#define ROW(values, bytes) { values, TABLE bytes, sizeof(TABLE bytes) - 1 }
        ROW("", ""),
        ROW(", NULL", "\0"),
        ROW(", 0", "\1\0\0\0\0\0\0\0\0"),
        ROW(", 258", "\1\0\0\0\0\0\0\1\2"),
        ROW(", -1", "\1\xff\xff\xff\xff\xff\xff\xff\xff"),
        ROW(", -9223372036854775808", "\1\x80\0\0\0\0\0\0\0"),
        ROW(", 1.0", "\2\x3f\xf0\0\0\0\0\0\0"),
        ROW(", -0.5", "\2\xbf\xe0\0\0\0\0\0\0"),
        ROW(", ''", "\3\0\0\0\0\0\0\0\0"),
        ROW(", 'ab'", "\3\0\0\0\0\0\0\0\2ab"),
        ROW(", CAST(x'610062' AS TEXT)", "\3\0\0\0\0\0\0\0\3" "a\0b"),
        ROW(", x''", "\4\0\0\0\0\0\0\0\0"),
        ROW(", x'6162'", "\4\0\0\0\0\0\0\0\2ab"),
        ROW(", zeroblob(3)", "\4\0\0\0\0\0\0\0\3\0\0\0"),
        ROW(", 1, NULL, 'a'", "\1\0\0\0\0\0\0\0\1" "\0" "\3\0\0\0\0\0\0\0\1a"),
#undef ROW
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        char sql[160];
        snprintf(sql, sizeof(sql), "SELECT row_sum('t'%s)", rows[i].values);
        int64_t sum = store_kit_ask(&kit, sql);
        ck_assert_msg(sum == sum_of(rows[i].bytes, rows[i].len), "%s", sql);
        for (size_t k = 0; k < i; k++) /* no two are one: types and lengths count */
            ck_assert(sum != sum_of(rows[k].bytes, rows[k].len));
    }
}

/* SEAL_ALL in the kit gives what the library wrote: it names every column. */
TEST(sealing_a_row_that_is_right_changes_nothing)
{
    int found = 0;
    brc_buf before = store_kit_bytes(&kit);
    store_kit_sql(&kit, SEAL_ALL);
    brc_buf after = store_kit_bytes(&kit);
    ck_assert_uint_eq(before.len, after.len);
    store_kit_open(&kit);
    ck_assert_int_eq(store_kit_ask(&kit, "SELECT count(*) FROM draft_chunk"), 2);
    OK(brc_store_check_rows(kit.store, count_line, &found, &kit.err));
    ck_assert_int_eq(found, 0);
    brc_buf_dispose(&before);
    brc_buf_dispose(&after);
}

/* ---- every cell ---------------------------------------------------------------- */

static const char *const sum_tables[] = { "meta", "ref", "oplog", "draft", "draft_node",
                                          "draft_chunk" };
enum { SUM_TABLES = 6 };

/* Columns by which rows are sought: who seeks the old value finds no row, and no damage. */
static const char *const keys[] = {
    "meta.key", "ref.name", "oplog.name", "oplog.op", "oplog.time_us", "draft.branch", "draft.kind",
    "draft.state", "draft_node.draft", "draft_node.path", "draft_chunk.node", "draft_chunk.key",
};

static int is_key(const char *table, const char *column)
{
    size_t len = strlen(table);
    for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++)
        if (strncmp(keys[i], table, len) == 0 && keys[i][len] == '.' &&
            strcmp(keys[i] + len + 1, column) == 0)
            return 1;
    return 0;
}

static int no_chunk(void *ctx, const uint8_t *key, size_t len, const brc_oid *id, brc_error *err)
{
    (void)ctx;
    (void)key;
    (void)len;
    (void)id;
    (void)err;
    return BRC_OK;
}

/* The first failure of everything that reads the table, or BRC_OK. */
static int read_table(const char *table)
{
    brc_oid id;
    brc_ref_row *refs;
    brc_draft_head got;
    brc_draft_node one, *rows;
    const char *branch;
    size_t n;
    int has, rc;
    if (strcmp(table, "meta") == 0) /* opening has read all but the branch */
        return brc_head_get(kit.store, &branch, &kit.err);
    if (strcmp(table, "ref") == 0) {
        rc = brc_ref_get(kit.store, "heads/main", &has, &id, &kit.err);
        if (rc == BRC_OK && (rc = brc_ref_list(kit.store, "", &refs, &n, &kit.err)) == BRC_OK)
            brc_ref_rows_free(refs, n);
        return rc;
    }
    if (strcmp(table, "oplog") == 0)
        return brc_ref_at(kit.store, "heads/main", INT64_MAX, &id, &kit.err);
    if (strcmp(table, "draft") == 0)
        return brc_draft_shared(kit.store, "main", &got, &kit.err);
    if (strcmp(table, "draft_chunk") == 0)
        return brc_draft_chunk_each(kit.store, &(brc_draft_stack){.n = 1, .node = {node}},
                                    no_chunk, NULL, &kit.err);
    rc = brc_draft_node_get(kit.store, draft, "/a", &has, &one, &kit.err);
    if (rc < 0)
        return rc;
    free(one.entry);
    rc = brc_draft_node_list(kit.store, draft, "/", 1, &rows, &n, &kit.err);
    if (rc == BRC_OK)
        brc_draft_nodes_free(rows, n);
    return rc;
}

/* A change of each type of value that no affinity takes back and that makes no two rows one; an
 * id keeps its length. */
static void flip_cells(const char *table, const char *column)
{
    char sql[4096];
    snprintf(sql, sizeof(sql),
             "UPDATE %s SET %s=CASE typeof(%s) WHEN 'null' THEN 1 WHEN 'integer' THEN %s+1000"
             " WHEN 'blob' THEN CAST(substr(%s,1,max(length(%s)-1,1))||x'5a' AS BLOB)"
             " ELSE %s||'x' END",
             table, column, column, column, column, column, column);
    store_kit_sql(&kit, sql);
}

static void attack_cell(const char *table, const char *column, const brc_buf *whole)
{
    int found = 0;
    store_kit_put(kit.file, whole);
    flip_cells(table, column);
    int rc = store_kit_try(&kit, 0, 0);
    if (rc < 0) {
        ck_assert_msg(strcmp(table, "meta") == 0, "%s.%s: %s", table, column, kit.err.message);
        ck_assert_int_eq(rc, BRC_ECORRUPT);
        return;
    }
    rc = brc_store_check_rows(kit.store, count_line, &found, &kit.err);
    ck_assert_msg(rc == BRC_OK && found > 0, "%s.%s: %d faults: %s", table, column, found,
                  rc < 0 ? kit.err.message : "");
    rc = read_table(table);
    if (!is_key(table, column))
        ck_assert_msg(rc == BRC_ECORRUPT && strstr(kit.err.message, "checksum") != NULL,
                      "%s.%s: %d", table, column, rc);
    store_kit_close(&kit);
}

LOOP(every_cell_of_a_row_is_in_its_checksum, 0, SUM_TABLES)
{
    const char *table = sum_tables[_i];
    char columns[20][24], sql[160];
    size_t n = 0;
    sqlite3 *db;
    sqlite3_stmt *st;
    brc_buf whole = store_kit_bytes(&kit);
    ck_assert_int_eq(sqlite3_open(kit.file, &db), SQLITE_OK);
    snprintf(sql, sizeof(sql), "SELECT name FROM pragma_table_info('%s')", table);
    ck_assert_int_eq(sqlite3_prepare_v2(db, sql, -1, &st, NULL), SQLITE_OK);
    while (n < 20 && sqlite3_step(st) == SQLITE_ROW)
        snprintf(columns[n++], sizeof(columns[0]), "%s", (const char *)sqlite3_column_text(st, 0));
    sqlite3_finalize(st);
    sqlite3_close(db);
    ck_assert_uint_ge(n, 3);
    for (size_t i = 0; i < n; i++)
        attack_cell(table, columns[i], &whole);
    brc_buf_dispose(&whole);
}

/* A row is not its neighbour's: the sum is of the table and of the key too. */
TEST(a_row_s_checksum_does_not_fit_another_row)
{
    brc_oid id;
    int has, found = 0;
    store_kit_sql(&kit, "UPDATE ref SET (target,message,checksum)=(SELECT target,message,checksum"
                        " FROM ref WHERE name='tags/v1') WHERE name='heads/main'");
    store_kit_open(&kit);
    KIT_FAILS(&kit, BRC_ECORRUPT, "does not match its checksum",
              brc_ref_get(kit.store, "heads/main", &has, &id, &kit.err));
    OK(brc_store_check_rows(kit.store, count_line, &found, &kit.err));
    ck_assert_int_eq(found, 1);
}
