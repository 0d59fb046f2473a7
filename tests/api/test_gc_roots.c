/*
 * The roots of a collection, and the objects that follow from them: a test for each rule that
 * decides what lives. tests/mutants/lives.txt has a mutant for each.
 */
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../../src/base/process.h"
#include "../../src/store/collect.h"
#include "../../src/work/session.h"
#include "../kit/ios.h"
#include "../kit/suite.h"
#include "../kit/versions.h"

TEST_SUITE(gc_roots);

SCENARIO_NUMBERS_FIXTURE(t, 64, 4)

/* The log names nothing. */
static uint64_t collect_all(void)
{
    scenario_no_window(&t);
    return scenario_collect(&t, 0);
}

/* Every element of an array of a version. */
static void check_numbers(brc_session *s, const char *path, uint64_t n, int32_t first)
{
    for (uint64_t i = 0; i < n; i++)
        ck_assert_int_eq(scenario_number(&t, s, path, i), first + (int32_t)i);
}

static void check_version(const brc_oid *id, const char *path, uint64_t n, int32_t first)
{
    char hex[65];
    brc_session *s = scenario_session(&t, t.repo, brc_oid_format(hex, id), BRC_SESSION_AT);
    check_numbers(s, path, n, first);
    brc_session_free(s);
}

/* Commits on branch side, each of which changes /b; side is deleted: all of it is garbage. */
static void commit_on_side(brc_oid *ids, int n, int32_t first)
{
    OK(&t, brc_ref_create(t.repo, "side", NULL, NULL, 0, &t.err));
    brc_session *main = t.session;
    OK(&t, brc_session_open(&t.session, t.repo, "side", BRC_SESSION_WRITE, &t.err));
    scenario_numbers(&t, "/b", 64, 4, first);
    ids[0] = scenario_commit(&t, "on the side");
    for (int i = 1; i < n; i++) {
        scenario_set_number(&t, "/a", 0, first + i);
        ids[i] = scenario_commit(&t, "more of it");
    }
    brc_session_free(t.session);
    t.session = main;
}

static void delete_side(void)
{
    OK(&t, brc_ref_delete(t.repo, "side", BRC_DELETE_FORCE, &t.err));
}

/* ---- what has a name -------------------------------- */

CASE("roots", .setup = t_numbers, .teardown = t_stop, .timeout = 120);

/* Other rows that named it are gone: the row that says where the branch was is enough. */
TEST(where_a_branch_was_lives_as_long_as_the_log_says_so)
{
    brc_oid id;
    commit_on_side(&id, 1, 1000);
    delete_side();
    scenario_sql(&t, "DELETE FROM oplog WHERE seq<(SELECT max(seq) FROM oplog)");
    ck_assert_int_eq((int)scenario_ask(&t, "SELECT count(*) FROM oplog WHERE new IS NULL"), 1);
    scenario_collect(&t, 0);
    check_version(&id, "/b", 64, 1000);
    collect_all();
    ck_assert(!scenario_has_commit(&t, &id));
}

/* The log is read in pages. */
TEST(a_long_log_counts_to_its_end)
{
    brc_oid id;
    scenario_sql(&t, "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i+1 FROM n WHERE i<5000)"
                     " INSERT INTO oplog(time_us, op, name, old, new, checksum) SELECT o.time_us,"
                     " 'reset', o.name, o.new, o.new, 0 FROM n, oplog o WHERE o.seq=(SELECT"
                     " max(seq) FROM oplog);"
                     "UPDATE oplog SET checksum=row_sum('oplog', seq, time_us, op, name, old, new,"
                     " first, undoes, restores, draft)");
    commit_on_side(&id, 1, 1000);
    delete_side();
    scenario_collect(&t, 0);
    check_version(&id, "/b", 64, 1000);
}

/* The log goes on naming what another collection, with a smaller window, has removed. */
TEST(a_log_that_names_what_is_gone_stops_nobody)
{
    brc_oid id;
    commit_on_side(&id, 1, 1000);
    delete_side();
    collect_all();
    ck_assert(!scenario_has_commit(&t, &id));
    OK(&t, brc_config_set(t.repo, "window", "90d", &t.err));
    scenario_collect(&t, 0);
    check_numbers(t.session, "/a", 64, 0);
}

TEST(what_a_bisection_knows_lives)
{
    brc_oid ids[6];
    char good[65], bad[65];
    brc_bisect_result r = BRC_BISECT_RESULT_INIT;
    commit_on_side(ids, 6, 1000);
    OK(&t, brc_bisect(&r, t.repo, BRC_BISECT_START, NULL, &t.err));
    OK(&t, brc_bisect(&r, t.repo, BRC_BISECT_GOOD, brc_oid_format(good, &ids[0]), &t.err));
    OK(&t, brc_bisect(&r, t.repo, BRC_BISECT_BAD, brc_oid_format(bad, &ids[5]), &t.err));
    delete_side();
    collect_all();
    for (int n = 0; r.state == BRC_BISECT_NEXT && n < 10; n++) {
        check_version(&r.at, "/b", 64, 1000);
        OK(&t, brc_bisect(&r, t.repo, BRC_BISECT_BAD, NULL, &t.err));
    }
    ck_assert_int_eq(r.state, BRC_BISECT_FOUND);
    ck_assert(scenario_same(r.at, ids[1]));
    OK(&t, brc_bisect(&r, t.repo, BRC_BISECT_RESET, NULL, &t.err));
    collect_all();
    for (int i = 0; i < 6; i++)
        ck_assert(!scenario_has_commit(&t, &ids[i]));
}

static void add_pin(const brc_oid *id, const char *owner)
{
    char sql[600], hex[65];
    snprintf(sql, sizeof(sql),
             "INSERT INTO pin(target, owner, time_us, checksum) VALUES (x'%s', '%s', 1, 0);"
             "UPDATE pin SET checksum=row_sum('pin', id, target, owner, time_us)",
             brc_oid_format(hex, id), owner);
    scenario_sql(&t, sql);
}

/* How a process describes itself that is gone by now. */
static void dead_owner(char *out, size_t size)
{
    int ends[2], status;
    ck_assert_int_eq(pipe(ends), 0);
    const pid_t child = fork();
    ck_assert_int_ge(child, 0);
    if (child == 0) {
        brc_buf owner = BRC_BUF_INIT;
        if (brc_process_describe(&owner, NULL) < 0 ||
            write(ends[1], owner.data, owner.len) != (ssize_t)owner.len)
            _exit(1);
        brc_buf_dispose(&owner);
        _exit(0);
    }
    ck_assert_int_eq(waitpid(child, &status, 0), child);
    ck_assert_int_eq(status, 0);
    const ssize_t n = read(ends[0], out, size - 1);
    ck_assert_int_gt((int)n, 0);
    out[n] = '\0';
    close(ends[0]);
    close(ends[1]);
}

/* A row says that a process reads it: a living one (_i 0), or nobody but dead ones (1). */
LOOP(rows_of_pins_count_as_long_as_their_process_lives, 0, 2)
{
    brc_oid id;
    char dead[400];
    brc_buf owner = BRC_BUF_INIT;
    commit_on_side(&id, 1, 1000);
    delete_side();
    OK(&t, brc_process_describe(&owner, &t.err));
    OK(&t, brc_buf_terminate(&owner, &t.err));
    dead_owner(dead, sizeof(dead));
    for (int i = 0; i < 3; i++)
        add_pin(&id, _i == 0 && i == 1 ? (const char *)owner.data : dead);
    brc_buf_dispose(&owner);
    collect_all();
    ck_assert_int_eq((int)scenario_ask(&t, "SELECT count(*) FROM pin"), 1 - _i);
    if (_i == 0)
        check_version(&id, "/b", 64, 1000);
    else
        ck_assert(!scenario_has_commit(&t, &id));
}

/* ---- drafts -------------------------------- */

/* More chunks than are read at a time, one of an array without axes, and bytes that are not a
 * chunk yet. */
TEST(all_that_is_uncommitted_lives)
{
    brc_buf value = BRC_BUF_INIT;
    brc_array *a;
    brc_sel sel = BRC_SEL_INIT;
    const int32_t scalar = 424242;
    int32_t read;
    scenario_numbers(&t, "/many", 5000, 1, 100000);
    a = scenario_array(&t, "/scalar", "int32", 0, NULL, NULL, NULL, NULL);
    sel_all(&sel, a);
    OK(&t, brc_array_write(a, &sel, &scalar, sizeof(scalar), &t.err));
    OK(&t, brc_key_set(t.session, "later/c/0", "not yet a chunk", 15, 0, &t.err));
    OK(&t, brc_attrs_set(t.session, "/a", "note", "\"uncommitted\"", &t.err));
    brc_array_free(a);
    collect_all();
    check_numbers(t.session, "/many", 5000, 100000);
    check_numbers(t.session, "/a", 64, 0);
    OK(&t, brc_array_open(&a, t.session, "/scalar", &t.err));
    OK(&t, brc_array_read(a, &sel, &read, sizeof(read), &t.err));
    ck_assert_int_eq(read, scalar);
    brc_array_free(a);
    OK(&t, brc_key_get(&value, t.session, "later/c/0", NULL, NULL, &t.err));
    ck_assert_uint_eq(value.len, 15);
    ck_assert_mem_eq(value.data, "not yet a chunk", 15);
    value.len = 0;
    OK(&t, brc_attrs_get(&value, t.session, "/a", "note", &t.err));
    ck_assert_uint_eq(value.len, 13);
    ck_assert_mem_eq(value.data, "\"uncommitted\"", 13);
    OK(&t, brc_key_delete(t.session, "later/c/0", 0, &t.err));
    brc_buf_dispose(&value);
}

static int change_and_die(breccia *repo)
{
    scenario r = t;
    r.repo = repo;
    if (brc_session_open(&r.session, repo, NULL, BRC_SESSION_WRITE, &r.err) < 0)
        return 1;
    scenario_set_number(&r, "/a", 9, 4711);
    return 0;
}

static int change_alone_and_die(breccia *repo)
{
    scenario r = t;
    r.repo = repo;
    if (brc_session_open(&r.session, repo, NULL, BRC_SESSION_PRIVATE, &r.err) < 0)
        return 1;
    scenario_numbers(&r, "/left", 64, 4, 5000);
    return 0;
}

TEST(every_draft_that_the_dead_have_left_goes)
{
    const int64_t needed = scenario_ask(&t, "SELECT count(*) FROM object");
    for (int i = 0; i < 4; i++)
        scenario_in_killed_child(&t, change_alone_and_die);
    ck_assert_int_eq((int)scenario_ask(&t, "SELECT count(*) FROM draft WHERE kind=2"), 4);
    collect_all();
    ck_assert_int_eq((int)scenario_ask(&t, "SELECT count(*) FROM draft WHERE kind=2"), 0);
    ck_assert_int_le(scenario_ask(&t, "SELECT count(*) FROM object"), needed);
}

/* The change lies under an entry that no version has any more. */
TEST(what_was_restored_from_a_version_that_is_gone_lives)
{
    brc_oid id;
    commit_on_side(&id, 1, 1000);
    OK(&t, brc_node_restore(t.session, "/b", "side", &t.err));
    delete_side();
    collect_all();
    ck_assert(!scenario_has_commit(&t, &id));
    check_numbers(t.session, "/b", 64, 1000);
}

static void set_base(const char *member, const char *base)
{
    char sql[600];
    snprintf(sql, sizeof(sql),
             "UPDATE conflict SET base=%s WHERE member='%s'; UPDATE conflict SET checksum=row_sum("
             "'conflict', draft, path, member, key, base, ours, theirs, state)",
             base, member);
    scenario_sql_shared(&t, sql);
}

static int64_t chunks(void)
{
    return scenario_ask(&t, "SELECT count(*) FROM object WHERE kind=1");
}

/* Versions name what is in conflict. Where they no longer do, the conflict's rows are enough: for
 * one chunk (_i 0), and for a node (1) with its document and all its chunks. */
LOOP(the_sides_of_open_conflicts_live, 0, 2)
{
    brc_oid id;
    char chunk[80];
    const int gone = _i == 0 ? 15 : 0;
    brc_buf newest = BRC_BUF_INIT;
    brc_merge_result r = BRC_MERGE_RESULT_INIT;
    brc_merge_opts opts = BRC_MERGE_OPTS_INIT;
    opts.flags = BRC_MERGE_KEEP;
    scenario_numbers(&t, "/n", 4, 4, 300);
    scenario_commit(&t, "both have it");
    OK(&t, brc_ref_create(t.repo, "other", NULL, NULL, 0, &t.err));
    scenario_set_number(&t, "/a", 0, 50);
    OK(&t, brc_node_remove(t.session, "/n", &t.err));
    scenario_commit(&t, "ours");
    scenario_be_on(&t, "other");
    scenario_set_number(&t, "/a", 0, 60);
    scenario_set_number(&t, "/n", 0, 60);
    scenario_commit(&t, "theirs");
    commit_on_side(&id, 1, 1000);
    scenario_rows(&t, "SELECT hex(id) FROM object WHERE kind=1 ORDER BY place DESC, offset DESC"
                      " LIMIT 1", &newest);
    snprintf(chunk, sizeof(chunk), "x'%.32s'", (const char *)newest.data);
    brc_buf_dispose(&newest);
    scenario_be_on(&t, "main");
    OK(&t, brc_ref_create(t.repo, "third", NULL, NULL, 0, &t.err));
    brc_session *s = scenario_session(&t, t.repo, "third", BRC_SESSION_WRITE);
    OK(&t, brc_node_restore(s, "/b", "side", &t.err)); /* its row has the entry */
    OK(&t, brc_merge(&r, NULL, t.repo, "other", &opts, &t.err));
    ck_assert_int_eq(r.result, BRC_MERGE_CONFLICT);
    if (_i == 0)
        set_base("chunk", chunk);
    else
        set_base("", "(SELECT entry FROM draft_node WHERE path='/b')");
    const int64_t before = chunks();
    OK(&t, brc_session_discard(s, &t.err));
    brc_session_free(s);
    delete_side();
    ck_assert_int_gt((int)collect_all(), 0);
    ck_assert(!scenario_has_commit(&t, &id));
    ck_assert_int_eq((int)(before - chunks()), gone);
    OK(&t, brc_abort(t.repo, &t.err));
    collect_all();
    ck_assert_int_eq((int)(before - chunks()), 16);
}

/* A branch's shared draft belongs to no process, so no death of a process ends it. */
TEST(shared_drafts_outlive_who_wrote_them)
{
    scenario_in_killed_child(&t, change_and_die);
    collect_all();
    ck_assert_int_eq(scenario_number(&t, t.session, "/a", 9), 4711);
}

/* Private changes of a living process over a version that nothing else names. */
TEST(private_drafts_of_the_living_and_their_versions_live)
{
    brc_oid id;
    brc_session *s, *main = t.session;
    commit_on_side(&id, 1, 1000);
    OK(&t, brc_reset(t.repo, NULL, "side", 0, NULL, &t.err));
    OK(&t, brc_session_open(&s, t.repo, NULL, BRC_SESSION_PRIVATE, &t.err));
    t.session = s;
    scenario_set_number(&t, "/b", 7, -7);
    t.session = main;
    OK(&t, brc_reset(t.repo, NULL, "HEAD~1", 0, NULL, &t.err));
    delete_side();
    scenario_no_window(&t);
    OK(&t, brc_gc(t.repo, NULL, NULL, &t.err));
    scenario_whole(&t);
    ck_assert_int_eq(scenario_number(&t, s, "/b", 7), -7);
    ck_assert_int_eq(scenario_number(&t, s, "/b", 8), 1008);
    ck_assert_int_eq(scenario_number(&t, s, "/a", 63), 63);
    brc_session_free(s);
}

/* ---- what roots lead to -------------------------------- */

/* Both parents of a merge, and theirs. */
TEST(what_a_merge_joined_lives)
{
    brc_oid ids[3];
    brc_merge_result r = BRC_MERGE_RESULT_INIT;
    commit_on_side(ids, 3, 1000);
    scenario_set_number(&t, "/a", 63, -1);
    const brc_oid ours = scenario_commit(&t, "ours");
    OK(&t, brc_merge(&r, NULL, t.repo, "side", NULL, &t.err));
    delete_side();
    collect_all();
    ck_assert(scenario_has_commit(&t, &ours));
    for (int i = 0; i < 3; i++)
        check_version(&ids[i], "/b", 64, 1000);
    check_numbers(t.session, "/b", 64, 1000);
}

/* ---- the order in which things go -------------------------------- */

static size_t place_in(const brc_oid *ids, size_t n, const brc_oid *id)
{
    size_t i = 0;
    while (i < n && !scenario_same(ids[i], *id))
        i++;
    ck_assert_uint_lt(i, n);
    return i;
}

/* Anybody who finds a commit may name it, so children are removed before their parents. */
TEST(children_go_before_their_parents)
{
    brc_oid side[12], *ids;
    size_t n;
    brc_commit *c;
    brc_merge_result r = BRC_MERGE_RESULT_INIT;
    commit_on_side(side, 12, 1000);
    for (int i = 0; i < 6; i++) {
        scenario_set_number(&t, "/a", 63, i);
        scenario_commit(&t, "ours");
    }
    OK(&t, brc_merge(&r, NULL, t.repo, "side", NULL, &t.err));
    OK(&t, brc_store_begin_read(t.repo->store, &t.err));
    OK(&t, brc_sweep_commits(t.repo->store, &ids, &n, &t.err));
    brc_store_end_read(t.repo->store);
    ck_assert_uint_eq(n, 1 + 12 + 6 + 1);
    for (size_t i = 0; i < n; i++) {
        OK(&t, brc_commit_read(&c, t.repo, &ids[i], &t.err));
        for (size_t k = 0; k < c->nparents; k++)
            ck_assert_uint_gt(place_in(ids, n, &c->parents[k]), i);
        brc_commit_free(c);
    }
    free(ids);
}
