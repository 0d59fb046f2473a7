/* The rule: where fsck says well, every command works; where a command says damaged, fsck
 * says what. One cell of one row of a small, rich repository is changed at a time, by a
 * seed; then fsck and what commands do are held against each other.
 *
 * BRC_RULE_COUNT and BRC_RULE_SEED run other and more cases by hand. */
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../../src/base/file.h"
#include "../../src/store/db.h"
#include "../kit/ios.h"
#include "../kit/own_rows.h"
#include "../kit/scenario.h"
#include "../kit/seal.h"
#include "../kit/suite.h"

TEST_SUITE(fsck_rule);

enum { DEFAULT_COUNT = 300 };

/* The result of one case. */
typedef struct verdict {
    int faults;      /* of fsck                                   */
    int opened;
    char said[512];  /* the first failure of a command            */
    int code;
} verdict;

static uint64_t number_of(const char *name, uint64_t other)
{
    const char *text = getenv(name);
    return text != NULL ? strtoull(text, NULL, 10) : other;
}

/* ---- the repository -------------------------------- */

static void make_rich(scenario *t)
{
    uint64_t shape[2] = { 9, 10 }, chunk[2] = { 4, 4 }, one[1] = { 6 }, two[1] = { 2 };
    brc_sel sel = BRC_SEL_INIT;
    static const uint8_t texts[] = { 1, 0, 0, 0, 'a', 0, 0, 0, 0, 2, 0, 0, 0, 'b', 'c',
                                     0, 0, 0, 0, 1, 0, 0, 0, 'd', 3, 0, 0, 0, 'e', 'f', 'g' };
    double values[90];
    scenario_start(t);
    for (int i = 0; i < 90; i++)
        values[i] = i / 3;
    brc_array *a = scenario_array(t, "/g/zstd", "float64", 2, shape, chunk, NULL, NULL);
    OK(t, brc_array_write(a, NULL, values, sizeof(values), &t->err));
    brc_array_free(a);
    a = scenario_array(t, "/g/text", "string", 1, one, two, "\"\"", NULL);
    OK(t, brc_array_write(a, NULL, texts, sizeof(texts), &t->err));
    brc_array_free(a);
    scenario_numbers(t, "/n", 300, 2, 1); /* a map with two levels */
    OK(t, brc_group_create(t->session, "/g/h", "{\"a\":1}", &t->err));
    scenario_commit(t, "one");
    OK(t, brc_ref_create(t->repo, "v1", NULL, "first", BRC_REF_TAG, &t->err));
    OK(t, brc_ref_create(t->repo, "side", NULL, NULL, 0, &t->err));
    scenario_set_number(t, "/n", 7, -1);
    scenario_commit(t, "two");
    scenario_set_number(t, "/n", 9, -5); /* uncommitted */
    OK(t, brc_array_open(&a, t->session, "/g/zstd", &t->err));
    shape[0] = 5;
    OK(t, brc_array_resize(a, shape, &t->err));
    sel_all(&sel, a);
    brc_array_free(a);
    OK(t, brc_node_move(t->session, "/g/h", "/moved", 0, &t->err));
    OK(t, brc_attrs_set(t->session, "/moved", "b", "[2]", &t->err));
    scenario_close(t);
}

/* ---- one change -------------------------------- */

/* The first cell of the first row in `out` (NULL: not wanted). */
static void rule_sql(const char *file, const char *sql, char *out, size_t size)
{
    sqlite3 *db;
    sqlite3_stmt *st;
    ck_assert_int_eq(sqlite3_open(file, &db), SQLITE_OK);
    ck_assert_int_eq(brc_row_sum_register(db), SQLITE_OK);
    sqlite3_db_config(db, SQLITE_DBCONFIG_DEFENSIVE, 0, NULL);
    if (out != NULL)
        *out = 0;
    if (sqlite3_prepare_v2(db, sql, -1, &st, NULL) == SQLITE_OK) {
        if (sqlite3_step(st) == SQLITE_ROW && out != NULL && sqlite3_column_text(st, 0) != NULL)
            snprintf(out, size, "%s", (const char *)sqlite3_column_text(st, 0));
        sqlite3_finalize(st);
    }
    sqlite3_close(db); /* a change that a constraint forbids is none */
}

/* Every object gets a row of stored bytes of its own; or checksums of rows are made right. */
static void rule_prepare(const char *file, int own, int seal)
{
    sqlite3 *db;
    ck_assert_int_eq(sqlite3_open(file, &db), SQLITE_OK);
    ck_assert_int_eq(brc_row_sum_register(db), SQLITE_OK);
    if (own)
        ck_assert_int_eq(own_rows(db), SQLITE_OK);
    if (seal)
        ck_assert_int_eq(sqlite3_exec(db, SEAL_ALL, NULL, NULL, NULL), SQLITE_OK);
    sqlite3_close(db);
}

#define CELLS                                                                                    \
    " FROM sqlite_schema m JOIN pragma_table_info(m.name) p WHERE m.type='table' AND m.name IN"  \
    " ('meta','object','blob','encoding','ref','oplog','draft','draft_node','draft_chunk',"      \
    "'commit_info','node_total','sqlite_sequence')"

/* "object.kind": one of all columns of the tables that have rows. */
static void pick_cell(const char *file, uint64_t *random, char *cell, size_t size)
{
    char sql[400], count[24];
    rule_sql(file, "SELECT count(*)" CELLS, count, sizeof(count));
    uint64_t n = strtoull(count, NULL, 10);
    ck_assert_uint_gt(n, 50);
    snprintf(sql, sizeof(sql),
             "SELECT m.name || '.' || p.name" CELLS " ORDER BY 1 LIMIT 1 OFFSET %u",
             (unsigned)scenario_below(random, n));
    rule_sql(file, sql, cell, size);
}

/* One cell, changed; the statement in `sql`. */
static void change_cell(const char *file, uint64_t *random, char *sql, size_t size)
{
    static const char *const changes[] = {
        "NULL", "'text'", "''", "x''", "0", "-1", "1.5", "%c+1", "%c+4294967296", "%c-1",
        "9223372036854775807", "-9223372036854775807", "2000000000", "zeroblob(16)",
        "CAST(substr(%c,1,length(%c)-1) AS BLOB)", "CAST(%c||x'00' AS BLOB)",
        "CAST(%c||x'ff' AS BLOB)", "CAST(x'ff'||substr(%c,2) AS BLOB)", "substr(%c,2)",
        "replace(%c,'a','..')", "upper(%c)", "%c||'/'", "(SELECT id FROM object WHERE kind=1)",
        "(SELECT id FROM object WHERE kind=2)", "(SELECT id FROM object WHERE kind=3)",
        "(SELECT id FROM object WHERE kind=4)", "(SELECT target FROM ref WHERE target IS NOT NULL)",
    };
    char cell[64], table[32], expression[256], row[24], count[64];
    pick_cell(file, random, cell, sizeof(cell));
    const char *change = changes[scenario_below(random, sizeof(changes) / sizeof(changes[0]))];
    const char *column = strchr(cell, '.') + 1;
    size_t at = 0;
    snprintf(table, sizeof(table), "%.*s", (int)(column - 1 - cell), cell);
    for (const char *p = change; *p != 0 && at + 32 < sizeof(expression); p++) {
        if (p[0] == '%' && p[1] == 'c') {
            at += (size_t)snprintf(expression + at, sizeof(expression) - at, "%s", column);
            p++;
        } else {
            expression[at++] = *p;
        }
    }
    expression[at] = 0;
    snprintf(sql, size, "SELECT count(*) FROM %s", table);
    rule_sql(file, sql, count, sizeof(count));
    snprintf(row, sizeof(row), "%llu",
             (unsigned long long)scenario_below(random, strtoull(count, NULL, 10) + 1));
    /* tables without rowids have keys of their own: a row is picked by its place */
    snprintf(sql, size,
             "UPDATE %s SET %s=%s WHERE %s IS (SELECT %s FROM %s ORDER BY 1 LIMIT 1 OFFSET %s)",
             table, column, expression, column, column, table, row);
    rule_sql(file, sql, NULL, 0);
}

/* ---- what commands do -------------------------------- */

static void note_result(verdict *v, const char *what, int rc, const brc_error *err)
{
    if (rc >= 0 || v->code == BRC_ECORRUPT)
        return;
    v->code = rc;
    snprintf(v->said, sizeof(v->said), "%s: %d: %.400s", what, rc, err->message);
}

static void read_all(verdict *v, brc_session *s)
{
    brc_error err = BRC_ERROR_INIT;
    brc_iter *it;
    const brc_node *node;
    const char *key;
    int rc = brc_list(&it, s, "/", BRC_LIST_RECURSE, &err);
    while (rc >= 0 && (rc = brc_next(it, &node, &err)) > 0) {
        brc_buf out = BRC_BUF_INIT;
        brc_array *a;
        int one = brc_node_json(&out, s, node->path, &err);
        note_result(v, node->path, one, &err);
        if (node->kind == BRC_ARRAY && (one = brc_array_open(&a, s, node->path, &err)) == BRC_OK) {
            uint64_t chunks, bytes;
            out.len = 0;
            note_result(v, "read", io_elements(a, NULL, &out, &err), &err);
            note_result(v, "stat", brc_array_stat(&chunks, &bytes, a, &err), &err);
            brc_array_free(a);
        }
        note_result(v, "open", one, &err);
        brc_buf_dispose(&out);
    }
    note_result(v, "list", rc, &err);
    brc_iter_free(it);
    rc = brc_keys(&it, s, "", 0, &err);
    while (rc >= 0 && (rc = brc_next(it, &key, &err)) > 0) {
        brc_buf out = BRC_BUF_INIT;
        note_result(v, key, brc_key_get(&out, s, key, NULL, NULL, &err), &err);
        brc_buf_dispose(&out);
    }
    note_result(v, "keys", rc, &err);
    brc_iter_free(it);
}

static void compare(verdict *v, breccia *repo, const char *a, const char *b, uint32_t flags)
{
    brc_error err = BRC_ERROR_INIT;
    brc_diff_opts opts = BRC_DIFF_OPTS_INIT;
    brc_iter *it;
    const brc_change *change;
    opts.flags = flags;
    int rc = brc_diff(&it, repo, a, b, &opts, &err);
    while (rc >= 0 && (rc = brc_next(it, &change, &err)) > 0)
        ;
    note_result(v, "diff", rc, &err);
    brc_iter_free(it);
}

static void look_at_rev(verdict *v, breccia *repo, const char *rev)
{
    brc_error err = BRC_ERROR_INIT;
    brc_session *s;
    brc_iter *it;
    const brc_commit *commit;
    int rc = brc_log(&it, repo, rev, NULL, &err);
    while (rc >= 0 && (rc = brc_next(it, &commit, &err)) > 0)
        ;
    note_result(v, "log", rc, &err);
    brc_iter_free(it);
    rc = brc_session_open(&s, repo, rev, BRC_SESSION_AT, &err);
    note_result(v, "session", rc, &err);
    if (rc == BRC_OK)
        read_all(v, s);
    brc_session_free(s);
}

static void look_at_refs(verdict *v, breccia *repo)
{
    brc_error err = BRC_ERROR_INIT;
    brc_iter *it;
    const brc_ref *ref;
    int rc = brc_refs(&it, repo, &err);
    while (rc >= 0 && (rc = brc_next(it, &ref, &err)) > 0) {
        char rev[300];
        snprintf(rev, sizeof(rev), "%s", ref->name);
        if (!(ref->flags & BRC_REF_UNBORN))
            look_at_rev(v, repo, rev);
    }
    note_result(v, "refs", rc, &err);
    brc_iter_free(it);
}

static void change_things(verdict *v, breccia *repo, const char *dir)
{
    brc_error err = BRC_ERROR_INIT;
    brc_commit_opts commit = BRC_COMMIT_OPTS_INIT;
    brc_session *s;
    brc_oid id;
    char dest[128];
    int clean;
    commit.message = "more";
    int rc = brc_session_open(&s, repo, NULL, BRC_SESSION_WRITE, &err);
    note_result(v, "edit", rc, &err);
    if (rc < 0)
        return;
    read_all(v, s);
    snprintf(dest, sizeof(dest), "%s/out.zarr", dir);
    note_result(v, "export", brc_export(s, "/", dest, NULL, &err), &err);
    note_result(v, "clean", brc_session_clean(&clean, s, &err), &err);
    note_result(v, "group", brc_group_create(s, "/new/group", NULL, &err), &err);
    note_result(v, "commit", brc_session_commit(&id, s, &commit, &err), &err);
    note_result(v, "branch", brc_ref_create(repo, "new", NULL, NULL, 0, &err), &err);
    note_result(v, "tag", brc_ref_create(repo, "v2", NULL, NULL, BRC_REF_TAG, &err), &err);
    note_result(v, "switch", brc_switch(repo, "new", 0, &err), &err);
    brc_session_free(s);
}

static int count_finding(void *ctx, const brc_damage *damage)
{
    verdict *v = ctx;
    v->faults++;
    return damage->message[0] == 0 || damage->kind[0] == 0;
}

static verdict judge(const char *file, const char *dir)
{
    verdict v = { 0 };
    brc_error err = BRC_ERROR_INIT;
    breccia *repo;
    brc_stats stats = BRC_STATS_INIT;
    int rc = brc_open(&repo, file, NULL, &err);
    if (rc < 0) { /* told by opening it, to fsck too */
        ck_assert_msg(rc == BRC_ECORRUPT || rc == BRC_EFORMAT || rc == BRC_EUNSUPPORTED, "open: %s",
                      err.message);
        return v;
    }
    v.opened = 1;
    rc = brc_fsck(repo, 0, count_finding, NULL, &v, NULL, &err);
    ck_assert_msg(rc == BRC_OK, "fsck: %s", err.message);
    note_result(&v, "info", brc_stat(repo, &stats, &err), &err);
    look_at_refs(&v, repo);
    compare(&v, repo, NULL, NULL, 0);
    compare(&v, repo, NULL, NULL, BRC_DIFF_ELEMENTS);
    compare(&v, repo, "v1", "main", BRC_DIFF_ELEMENTS);
    change_things(&v, repo, dir);
    brc_free(repo);
    return v;
}

CASE("rule", .timeout = UNTIMED); /* thousands of cases by hand */

/* ---- the rule -------------------------------- */

TEST(f05_well_means_well_and_damage_is_told)
{
    scenario t;
    brc_buf whole = BRC_BUF_INIT;
    uint64_t first = number_of("BRC_RULE_SEED", 1);
    uint64_t count = number_of("BRC_RULE_COUNT", DEFAULT_COUNT);
    int told = 0, well = 0;
    make_rich(&t);
    OK(&t, brc_file_read(&whole, t.file, &t.err));
    verdict v = judge(t.file, t.dir);
    ck_assert_msg(v.opened && v.faults == 0 && v.code == 0, "%d %s", v.faults, v.said);
    for (uint64_t seed = first; seed < first + count; seed++) {
        char sql[512], out[128];
        uint64_t random = seed;
        FILE *f = fopen(t.file, "wb");
        ck_assert_ptr_nonnull(f);
        ck_assert_uint_eq(fwrite(whole.data, 1, whole.len, f), whole.len);
        fclose(f);
        snprintf(out, sizeof(out), "%s/out.zarr", t.dir);
        brc_tree_remove(out);
        rule_prepare(t.file, seed % 2 == 0, 0); /* half the files share rows of stored bytes */
        change_cell(t.file, &random, sql, sizeof(sql));
        rule_prepare(t.file, 0, seed % 4 > 0); /* an enemy's change, or damage */
        v = judge(t.file, t.dir);
        if (!v.opened)
            continue;
        /* names that came to be there by the change may be in the way of new ones */
        int fails = v.code != 0 && v.code != BRC_EEXISTS && v.code != BRC_EMISUSE;
        if (strstr(sql, "UPDATE ref") != NULL && v.code == BRC_ENOTFOUND)
            fails = 0; /* another name, or a branch without a commit: no damage */
        if (strstr(sql, "UPDATE draft SET tip") != NULL &&
            (v.code == BRC_ESTALE || v.code == BRC_ECONFLICT))
            fails = 0; /* the branch is elsewhere: the changes are not committed over that */
        ck_assert_msg(v.faults > 0 || !fails, "seed %llu: fsck says well, but %s\n%s",
                      (unsigned long long)seed, v.said, sql);
        ck_assert_msg(v.faults > 0 || v.code != BRC_ECORRUPT,
                      "seed %llu: damaged, and fsck says nothing: %s\n%s", (unsigned long long)seed,
                      v.said, sql);
        told += v.faults > 0;
        well += v.faults == 0;
    }
    ck_assert_int_gt(told, 0);
    ck_assert_int_gt(well, 0);
    brc_buf_dispose(&whole);
    brc_tree_remove(t.dir);
}
