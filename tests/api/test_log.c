/* The log in batches: what it gives, and what it holds meanwhile. */
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../../src/store/db.h"
#include "../../src/work/session.h"
#include "../kit/scenario.h"
#include "../kit/suite.h"

TEST_SUITE(log);

enum { COMMITS = 1500 };

static const char *const paths[] = {"/a", "/a/b", "/a/b/c", "/d"};
enum { PATHS = 4 };

/* A history in which each commit changes one node; whose[i] is which. */
static void commit_one_node_each(scenario *t, brc_oid *ids, int *whose, uint64_t seed)
{
    char value[24];
    scenario_start(t);
    OK(t, brc_session_begin(t->session, &t->err)); /* one transaction: many small commits */
    for (int i = 0; i < PATHS; i++)
        OK(t, brc_group_create(t->session, paths[i], NULL, &t->err));
    for (int i = 0; i < COMMITS; i++) {
        whose[i] = (int)scenario_below(&seed, PATHS);
        snprintf(value, sizeof(value), "%d", i);
        OK(t, brc_attrs_set(t->session, paths[whose[i]], "i", value, &t->err));
        ids[i] = scenario_commit(t, "next");
    }
    OK(t, brc_session_end(t->session, BRC_OK, &t->err));
}

static int count_begins(unsigned what, void *ctx, void *stmt, void *text)
{
    (void)what;
    (void)stmt;
    if (strcmp(text, "BEGIN") == 0)
        ++*(int *)ctx;
    return 0;
}

CASE("batches", .timeout = 60);

TEST(f21_a_log_of_a_path_is_the_commits_that_changed_it)
{
    static brc_oid ids[COMMITS];
    static int whose[COMMITS];
    scenario t;
    commit_one_node_each(&t, ids, whose, 7);
    for (int p = -1; p < PATHS; p++) {
        const brc_commit *commit;
        brc_iter *it;
        int rc, begins = 0;
        scenario_reopen(&t);
        sqlite3 *db = t.repo->store->db;
        sqlite3_trace_v2(db, SQLITE_TRACE_STMT, count_begins, &begins);
        const brc_log_opts opts = { .size = sizeof(opts), .path = p < 0 ? NULL : paths[p] };
        OK(&t, brc_log(&it, t.repo, NULL, &opts, &t.err));
        for (int i = COMMITS - 1; i >= 0; i--) {
            size_t len = p < 0 ? 0 : strlen(paths[p]);
            int wanted = p < 0 || (strncmp(paths[whose[i]], paths[p], len) == 0) || i == 0;
            if (!wanted)
                continue;
            rc = brc_next(it, &commit, &t.err);
            if (rc != 1 || brc_oid_cmp(&commit->id, &ids[i]) != 0)
                ck_abort_msg("%s: commit %d is missing", p < 0 ? "all" : paths[p], i);
            if (!sqlite3_get_autocommit(db)) /* whoever pages must not keep writers out */
                ck_abort_msg("a transaction is open at commit %d", i);
        }
        ck_assert_int_eq(brc_next(it, &commit, &t.err), 0);
        ck_assert_int_eq(brc_next(it, &commit, &t.err), 0);
        brc_iter_free(it);
        sqlite3_trace_v2(db, 0, NULL, NULL);
        ck_assert_int_le(begins, 12); /* 16, 32 ... 512, 512: not one for each commit */
    }
    scenario_stop(&t);
}

TEST(f21_what_is_committed_while_a_log_is_read_changes_nothing_in_it)
{
    static brc_oid ids[COMMITS];
    static int whose[COMMITS];
    scenario t;
    const brc_commit *commit;
    brc_iter *it, *left;
    commit_one_node_each(&t, ids, whose, 8);
    OK(&t, brc_log(&it, t.repo, NULL, NULL, &t.err));
    const brc_log_opts opts = { .size = sizeof(opts), .path = "/a" };
    OK(&t, brc_log(&left, t.repo, NULL, &opts, &t.err));
    ck_assert_int_eq(brc_next(left, &commit, &t.err), 1);
    for (int i = COMMITS - 1; i >= 0; i--) {
        if (i % 300 == 0) {
            OK(&t, brc_attrs_set(t.session, "/d", "later", "1", &t.err));
            scenario_commit(&t, "later");
            OK(&t, brc_attrs_set(t.session, "/d", "later", NULL, &t.err));
            scenario_commit(&t, "later");
        }
        if (brc_next(it, &commit, &t.err) != 1 || brc_oid_cmp(&commit->id, &ids[i]) != 0)
            ck_abort_msg("commit %d is missing", i);
    }
    ck_assert_int_eq(brc_next(it, &commit, &t.err), 0);
    brc_iter_free(it);
    brc_iter_free(left); /* with commits that nobody took */
    scenario_stop(&t);
}

/* A commit in the middle is gone: those before it are given, then the failure, and again. */
TEST(f21_a_log_gives_what_it_found_before_it_fails)
{
    static brc_oid ids[COMMITS];
    static int whose[COMMITS];
    scenario t;
    char sql[160], hex[65];
    const brc_commit *commit;
    brc_iter *it;
    int given = 0;
    commit_one_node_each(&t, ids, whose, 9);
    scenario_close(&t);
    snprintf(sql, sizeof(sql), "DELETE FROM object WHERE id=x'%s'",
             brc_oid_format(hex, &ids[COMMITS - 101]));
    scenario_sql(&t, sql);
    scenario_open(&t, NULL, 0);
    OK(&t, brc_log(&it, t.repo, NULL, NULL, &t.err));
    while (brc_next(it, &commit, &t.err) == 1)
        given++;
    ck_assert_int_eq(given, 100);
    ck_assert_int_eq(t.err.code, BRC_ECORRUPT);
    memset(&t.err, 0, sizeof(t.err));
    FAILS(&t, BRC_ECORRUPT, brc_next(it, &commit, &t.err));
    brc_iter_free(it);
    scenario_stop(&t);
}
