/* SQLite's plans for the store's statements, and the ranges of paths that they ask for. */
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../kit/store_kit.h"
#include "../../src/store/db.h"
#include "../../src/store/removed.h"
#include "reserved.sql.h"
#include "sql_statements.h"
#include "../kit/suite.h"

TEST_SUITE(statements);

STORE_KIT_FIXTURE(kit)

#define OK_KIT(call) KIT_OK(&kit, call)

/* ---- plans --------------------------------------------------------------------- */

/* Statements that may read a table, or all rows of a branch or a node, from end to end: by
 * how they begin, and why. */
static const struct {
    const char *sql, *why;
} may_scan[] = {
    {"SELECT count(*), coalesce(sum(kind=1)", "totals of the whole file"},
    {"SELECT coalesce(sum(backend<>0),0)", "likewise, where a file has other backends"},
    {"SELECT name, sql, type FROM sqlite_schema", "the whole schema is compared"},
    {"SELECT count(*) FROM sqlite_schema", "opens the file, and the schema is small"},
    {"SELECT rootpage FROM sqlite_schema", "once a handle"},
    {"SELECT new, checksum IS row_sum('oplog'", "a person asks for a time; an index would"
                                                " cost every commit a page"},
    {"SELECT seq, time_us, op, name, old, new, first, undoes, restores, draft, checksum IS"
     " row_sum('oplog', seq, time_us, op, name, old, new, first, undoes, restores, draft)"
     " FROM oplog WHERE name=?1 AND", "a person undoes a deletion; an index would cost every"
                                      " commit a page"},
    {"DELETE FROM draft_move WHERE draft=?1", "the draft goes"},
    {"UPDATE draft SET branch=?2", "the branch gets another name"},
    {"SELECT id, kind, changes, base, tip, checksum IS row_sum('draft', id, kind, state, branch,"
     " base, tip, other, plan, owner, parent, time_us, changes, parts), time_us, branch, owner,"
     " parts, parent FROM draft WHERE branch=?1 AND kind=3",
     "there are few drafts"},
    {"SELECT id FROM draft WHERE owner=?1 AND kind=2 AND state=1", "there are few drafts"},
    {"SELECT 1 FROM draft_chunk WHERE node=?1 LIMIT 1", "stops at the first"},
    {"SELECT id, kind, changes, base, tip, checksum IS row_sum('draft', id, kind, state, branch,"
     " base, tip, other, plan, owner, parent, time_us, changes, parts), time_us, branch, owner,"
     " parts, parent, plan, other FROM draft WHERE state=1 AND NOT " BRC_IS_SAVE " ORDER BY id",
     "all drafts are listed"},
    {"SELECT id, kind, changes, base, tip, checksum IS row_sum('draft', id, kind, state, branch,"
     " base, tip, other, plan, owner, parent, time_us, changes, parts), time_us, branch, owner,"
     " parts, parent, plan, other FROM draft WHERE state=1 AND (parent IS NOT NULL",
     "an undo and a collection look at the points of all branches"},
    {"SELECT count(*)<?2 AND total(s.parts&16)=0 FROM draft d", "there are few drafts"},
    {"UPDATE draft_node SET level=?2", "all of the draft goes into a point"},
    {"UPDATE draft_move SET draft=?3", "all moves change places with the point's"},
    {"SELECT 7 | 8*EXISTS(SELECT 1 FROM draft ", "there are few drafts"},
    {"SELECT 1 FROM meta WHERE checksum IS NOT row_sum", "the settings are few"},
    {"SELECT id, kind, changes, base, tip, checksum IS row_sum('draft', id, kind, state, branch,"
     " base, tip, other, plan, owner, parent, time_us, changes, parts), time_us, branch, owner,"
     " parts, parent, plan, other FROM draft WHERE id IN (SELECT s.id",
     "likewise, where some are savepoints"},
    {"SELECT count(path) FROM draft_node WHERE draft=?1", "the draft's nodes are counted"},
    {"SELECT 1 FROM draft_node WHERE draft=?1 UNION ALL", "stops at the first"},
    {"SELECT 1 FROM draft_node WHERE draft=?1 LIMIT 1", "likewise"},
    {"UPDATE draft SET checksum=row_sum('draft', id, kind, state, branch, base, tip, other, plan,"
     " owner, parent, time_us, changes, parts) WHERE branch=?1", "the branch gets another name"},
    {"SELECT 1 FROM (SELECT max(seq) AS n FROM sqlite_sequence", "says why nothing can be added"},
    {"DELETE FROM draft_chunk WHERE node=?1", "all of the node's go"},
    {"SELECT min(checksum IS row_sum('draft_chunk', node, key, id)) FROM", "some chunks of a row"},
    {"INSERT OR IGNORE INTO draft_chunk(node, key, id, checksum) SELECT", "some chunks of a row"},
    {"SELECT node FROM draft_node WHERE draft=?1 LIMIT 1", "a dropped draft goes in steps"},
    {"DELETE FROM draft_node WHERE draft=0 AND node<?1", "one row is nobody's, or two"},
    {"SELECT id FROM draft WHERE state=2 AND id<>?1 LIMIT 1", "a dropped draft goes in steps"},
    {"SELECT key FROM draft_chunk WHERE node=?1 ORDER BY key LIMIT 1 OFFSET", "likewise"},
    {"UPDATE draft_node SET draft=?2, path=NULL, checksum=", "a dropped draft goes in steps"},
    {"SELECT count(*) FROM (SELECT 1 FROM draft_chunk", "a dropped draft goes in steps"},
    {"INSERT INTO backend(id, spec, checksum) SELECT n", "of one row: the largest number"},
    {"INSERT INTO place(seq, backend, name, checksum) SELECT n", "likewise, and the last given"},
    {"SELECT (SELECT page_count FROM pragma_page_count)", "of one row"},
    {"SELECT name FROM sqlite_schema", "once a version of the schema"},
    {"SELECT id FROM draft WHERE state=2 LIMIT 1", "there are few drafts"},
    {"SELECT 1 FROM draft WHERE state=2", "likewise"},
    {"SELECT id, changes, kind, owner, state, checksum IS", "likewise, for a collection"},
    {"SELECT checksum IS row_sum('draft', id, kind, state", "likewise"},
    {"SELECT node, entry, checksum IS row_sum('draft_node'", "all of a draft's, likewise"},
    {"SELECT target, checksum IS row_sum('ref'", "all refs are roots"},
    {"SELECT target, checksum IS row_sum('pin'", "all pins, likewise"},
    {"SELECT run, phase, position, owner, checksum IS", "of one row"},
    {"SELECT seq FROM sqlite_sequence WHERE name='gc'", "of few rows"},
    {"SELECT 1 FROM sqlite_sequence WHERE name='draft'", "likewise"},
    {"SELECT 1 FROM draft_node n LEFT JOIN draft_chunk c ON c.node=n.node", "stops at ?2 rows"},
    {"INSERT INTO gc_kept(run, id) SELECT", "of so many rows"},
    {"DELETE FROM boundary WHERE NOT EXISTS", "a repair looks at all of its rows"},
    {"DELETE FROM removed WHERE ", "likewise"},
    {"DELETE FROM delta WHERE typeof(id)", "likewise"},
    {"INSERT INTO removed(backend, place, name, bytes, total, state, since_us, due_us, checksum)"
     " SELECT 0, seq", "likewise, at the objects and blobs"},
    {"INSERT OR IGNORE INTO removed(", "likewise, and once, of a file that an earlier build made"},
    {"DELETE FROM place WHERE facts=", "likewise"},
    {"SELECT 1 FROM sqlite_schema", "likewise"},
    {"WITH RECURSIVE up(id, n)", "of what builds on one object, or on any, level by level"},
    {"SELECT count(*) FROM delta", "all are counted"},
};

static int may_scan_whole(const char *sql, uint64_t *met)
{
    for (size_t i = 0; i < sizeof(may_scan) / sizeof(may_scan[0]); i++)
        if (strncmp(sql, may_scan[i].sql, strlen(may_scan[i].sql)) == 0) {
            *met |= UINT64_C(1) << i;
            return 1;
        }
    return 0;
}

/* Reads a table or an index whole, sorts, or finds a draft's rows by the first column of
 * their key alone. */
static int step_scans(const char *step)
{
    int is_draft = strstr(step, "draft_node") != NULL || strstr(step, "draft_chunk") != NULL ||
                   strstr(step, "draft_move") != NULL;
    int is_scan = strncmp(step, "SCAN", 4) == 0 && strcmp(step, "SCAN CONSTANT ROW") != 0;
    return is_scan || strstr(step, "TEMP B-TREE") != NULL ||
           (is_draft && (strstr(step, "(draft=?)") != NULL || strstr(step, "(node=?)") != NULL));
}

/* Returns 1 if a step of the statement's plan scans a table, and puts the plan into `text`. */
static int plan_scans(sqlite3 *db, const char *sql, char *text, size_t size)
{
    char explain[2048];
    sqlite3_stmt *st;
    int scans = 0;
    snprintf(explain, sizeof(explain), "EXPLAIN QUERY PLAN %s", sql);
    *text = '\0';
    ck_assert_msg(sqlite3_prepare_v2(db, explain, -1, &st, NULL) == SQLITE_OK, "%s: %s", sql,
                  sqlite3_errmsg(db));
    while (sqlite3_step(st) == SQLITE_ROW) {
        const char *step = (const char *)sqlite3_column_text(st, 3);
        size_t at = strlen(text);
        snprintf(text + at, size - at, "%s; ", step);
        scans |= step_scans(step);
    }
    sqlite3_finalize(st);
    return scans;
}

CASE("plans", .setup = kit_start, .teardown = kit_stop);

TEST(f17_no_statement_of_the_store_scans_a_table)
{
    sqlite3 *db;
    char plan[1024];
    uint64_t met = 0;
    size_t n = sizeof(sql_statements) / sizeof(sql_statements[0]);
    ck_assert_uint_ge(n, 30);
    ck_assert_int_eq(sqlite3_open(kit.file, &db), SQLITE_OK);
    ck_assert_int_eq(brc_row_sum_register(db), SQLITE_OK);
    ck_assert_int_eq(sqlite3_exec(db, brc_sql_reserved, NULL, NULL, NULL), SQLITE_OK);
    for (size_t i = 0; i < n; i++)
        if (plan_scans(db, sql_statements[i], plan, sizeof(plan)))
            ck_assert_msg(may_scan_whole(sql_statements[i], &met), "%s: %s", sql_statements[i],
                          plan);
    ck_assert_uint_eq(met, (UINT64_C(1) << sizeof(may_scan) / sizeof(may_scan[0])) - 1);
    sqlite3_close(db);
}

TEST(f17_a_plan_that_scans_is_seen)
{
    static const char *const bad[] = {
        "SELECT node FROM draft_node WHERE draft=?1 AND ((path>?2 AND path<?3) OR path=?4)",
        "SELECT node FROM draft_node WHERE entry=?1",
        "SELECT id FROM draft_chunk WHERE id=?1",
        "SELECT seq FROM oplog WHERE seq>?1 ORDER BY name",
    };
    sqlite3 *db;
    char plan[1024];
    ck_assert_int_eq(sqlite3_open(kit.file, &db), SQLITE_OK);
    ck_assert_int_eq(brc_row_sum_register(db), SQLITE_OK);
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
        ck_assert_msg(plan_scans(db, bad[i], plan, sizeof(plan)), "%s: %s", bad[i], plan);
    sqlite3_close(db);
}

/* ---- those that a handle keeps ---------------------------------------------------- */

/* One that does everything meets more than half of the statements there are. */
TEST(a_handle_keeps_as_many_as_it_meets)
{
    enum { MANY = 1000 };
    static char sql[MANY][24];
    sqlite3_stmt *first, *st;
    int64_t number;
    for (int round = 0; round < 2; round++)
        for (int i = 0; i < MANY; i++) {
            snprintf(sql[i], sizeof(sql[i]), "SELECT %d", i);
            OK_KIT(brc_stmt(kit.store, sql[i], &st, &kit.err));
            OK_KIT(brc_ask_number(kit.store, st, &number, &kit.err));
            ck_assert_int_eq(number, i);
        }
    OK_KIT(brc_stmt(kit.store, sql[0], &first, &kit.err));
    OK_KIT(brc_stmt(kit.store, sql[0], &st, &kit.err));
    ck_assert_ptr_eq(first, st);
}

/* ---- rows by path ---------------------------------------------------------------- */

enum { ROWS = 60 };

/* A path of one to four names of one or two characters, many of which sort beside '/'. */
static void random_path(uint64_t *state, char *out)
{
    static const char letters[] = "-./0a~";
    size_t names = 1 + store_kit_below(state, 4);
    for (size_t i = 0; i < names; i++) {
        *out++ = '/';
        for (uint64_t n = 1 + store_kit_below(state, 2); n > 0; n--) {
            char c = letters[store_kit_below(state, sizeof(letters) - 1)];
            *out++ = c == '/' ? 'b' : c;
        }
    }
    *out = '\0';
}

/* The plain meaning: is `path` under `top`, and how many names further down? */
static size_t names_under(const char *path, const char *top)
{
    size_t len = strcmp(top, "/") == 0 ? 0 : strlen(top), n = 0;
    if (strncmp(path, top, len) != 0 || path[len] != '/' || path[len + 1] == '\0')
        return 0;
    for (const char *at = path + len; *at != '\0'; at++)
        n += *at == '/';
    return n;
}

static int text_order(const void *a, const void *b)
{
    return strcmp(a, b);
}

/* The store gives exactly the paths of `depth` names (0: any number) under `top`. */
static void rows_are(const brc_draft_node *rows, size_t n, char (*all)[32], size_t nall,
                     const char *top, int self, size_t depth)
{
    size_t at = 0;
    for (size_t i = 0; i < nall; i++) {
        size_t names = names_under(all[i], top);
        int wanted = (self && strcmp(all[i], top) == 0) ||
                     (names > 0 && (depth == 0 || names == depth));
        if (i > 0 && strcmp(all[i], all[i - 1]) == 0)
            continue;
        KIT_TRUE(!wanted || (at < n && strcmp(rows[at].path, all[i]) == 0));
        at += (size_t)wanted;
    }
    KIT_TRUE(at == n);
}

LOOP(f17_rows_under_a_path_are_those_that_are, 0, 20)
{
    uint64_t state = (uint64_t)_i + 1;
    char all[ROWS + 1][32] = {"/"}, top[32] = "/";
    brc_draft_node *rows;
    size_t n;
    int64_t node, draft, other;
    OK_KIT(brc_store_begin(kit.store, &kit.err));
    draft = store_kit_draft(&kit, "main", NULL);
    other = store_kit_draft(&kit, "other", NULL);
    for (size_t i = 0; i <= ROWS; i++) {
        if (i > 0)
            random_path(&state, all[i]);
        OK_KIT(brc_draft_node_put(kit.store, draft, all[i], "x", 1, &node, &kit.err));
        OK_KIT(brc_draft_node_put(kit.store, other, all[i], "y", 1, &node, &kit.err));
    }
    qsort(all, ROWS + 1, sizeof(all[0]), text_order);
    for (int i = 0; i < 200; i++) {
        OK_KIT(brc_draft_node_list(kit.store, draft, top, i % 2, &rows, &n, &kit.err));
        rows_are(rows, n, all, ROWS + 1, top, i % 2, 0);
        brc_draft_nodes_free(rows, n);
        OK_KIT(brc_draft_child_list(kit.store, draft, top, &rows, &n, &kit.err));
        rows_are(rows, n, all, ROWS + 1, top, 0, 1);
        brc_draft_nodes_free(rows, n);
        if (i % 3 > 0)
            random_path(&state, top);
        else
            memcpy(top, all[store_kit_below(&state, ROWS + 1)], sizeof(top));
    }
    OK_KIT(brc_store_end(kit.store, 0, &kit.err));
}
