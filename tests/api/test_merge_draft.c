/* Merges with conflicts, which stay open: settled by writing or by side, committed, dropped. */
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../kit/lock_faults.h"
#include "../kit/suite.h"
#include "../kit/versions.h"

TEST_SUITE(merge_draft);

static scenario t;

/* Both sides change two chunks and an attribute of /a; /g/b is removed here and changed
 * there. */
static void open_setup(void)
{
    scenario_start(&t);
    scenario_numbers(&t, "/a", 8, 2, 1);
    scenario_numbers(&t, "/g/b", 8, 2, 1);
    OK(&t, brc_attrs_set(t.session, "/a", "k", "1", &t.err));
    scenario_commit(&t, "base");
    OK(&t, brc_ref_create(t.repo, "side", NULL, NULL, 0, &t.err));
    scenario_set_number(&t, "/a", 0, 50);
    scenario_set_number(&t, "/a", 2, 50);
    OK(&t, brc_attrs_set(t.session, "/a", "k", "2", &t.err));
    OK(&t, brc_node_remove(t.session, "/g/b", &t.err));
    scenario_commit(&t, "ours");
    scenario_be_on(&t, "side");
    scenario_set_number(&t, "/a", 0, 60);
    scenario_set_number(&t, "/a", 2, 60);
    scenario_set_number(&t, "/a", 6, 60);
    OK(&t, brc_attrs_set(t.session, "/a", "k", "3", &t.err));
    scenario_set_number(&t, "/g/b", 0, 60);
    scenario_commit(&t, "theirs");
    scenario_be_on(&t, "main");
}

static void open_teardown(void)
{
    scenario_stop(&t);
}

static brc_merge_result merge_side(uint32_t flags)
{
    brc_merge_opts opts = BRC_MERGE_OPTS_INIT;
    brc_merge_result result = BRC_MERGE_RESULT_INIT;
    opts.flags = flags;
    OK(&t, brc_merge(&result, NULL, t.repo, "side", &opts, &t.err));
    return result;
}

static uint64_t open_now(void)
{
    brc_open_state state = BRC_OPEN_STATE_INIT;
    OK(&t, brc_merge_state(&state, NULL, t.repo, &t.err));
    return state.draft == 0 ? 99 : state.open;
}

static uint64_t settle_at(uint32_t side, const char *path)
{
    uint64_t n;
    OK(&t, brc_merge_settle(&n, t.repo, side, &path, path != NULL, &t.err));
    return n;
}

static brc_pick_result go_on(void)
{
    brc_pick_result result = BRC_PICK_RESULT_INIT;
    OK(&t, brc_continue(&result, NULL, t.repo, NULL, &t.err));
    return result;
}

static int nothing_open(void)
{
    uint64_t n;
    brc_pick_result r = BRC_PICK_RESULT_INIT;
    FAILS(&t, BRC_EMISUSE, brc_abort(t.repo, &t.err));
    FAILS(&t, BRC_EMISUSE, brc_continue(&r, NULL, t.repo, NULL, &t.err));
    FAILS(&t, BRC_EMISUSE, brc_merge_settle(&n, t.repo, BRC_MERGE_OURS, NULL, 0, &t.err));
    return scenario_ask(&t, "SELECT count(*) FROM conflict") == 0 && open_now() == 99;
}

static int has(const char *path)
{
    char tree[256];
    return strstr(scenario_tree(&t, t.session, "/", 1, tree, sizeof(tree)), path) != NULL;
}

CASE("open", .setup = open_setup, .teardown = open_teardown, .timeout = 300);

/* ---- keeping -------------------------------- */

TEST(o1_what_is_in_conflict_is_as_ours_has_it_and_the_branch_stays)
{
    brc_oid before, after;
    OK(&t, brc_resolve(&before, t.repo, "main", &t.err));
    brc_merge_result r = merge_side(BRC_MERGE_KEEP);
    ck_assert_int_eq(r.result, BRC_MERGE_CONFLICT);
    ck_assert_int_ne(r.draft, 0);
    ck_assert_uint_eq(r.conflicts, 4);
    ck_assert_uint_eq(open_now(), 4);
    OK(&t, brc_resolve(&after, t.repo, "main", &t.err));
    ck_assert_mem_eq(&before, &after, sizeof(before));
    ck_assert_int_eq(scenario_number(&t, t.session, "/a", 0), 50);
    ck_assert_int_eq(scenario_number(&t, t.session, "/a", 6), 60);
    ck_assert(!has("/g/b"));
    scenario_whole(&t);
    scenario_reopen(&t);
    ck_assert_uint_eq(open_now(), 4);
    OK(&t, brc_abort(t.repo, &t.err));
    ck_assert_int_eq(scenario_number(&t, t.session, "/a", 6), 7);
    ck_assert(scenario_clean(&t));
    ck_assert(nothing_open());
    scenario_whole(&t);
}

TEST(o2_without_the_flag_nothing_stays_open)
{
    ck_assert_int_eq(merge_side(0).draft, 0);
    ck_assert_int_eq(merge_side(BRC_MERGE_KEEP | BRC_MERGE_DRY_RUN).draft, 0);
    ck_assert_uint_eq(open_now(), 99);
    ck_assert(scenario_clean(&t));
}

TEST(o3_while_it_is_open_other_commits_are_refused)
{
    brc_merge_opts opts = BRC_MERGE_OPTS_INIT;
    brc_merge_result r = BRC_MERGE_RESULT_INIT;
    brc_pick_opts pick = BRC_PICK_OPTS_INIT;
    brc_pick_result picked = BRC_PICK_RESULT_INIT;
    merge_side(BRC_MERGE_KEEP);
    FAILS(&t, BRC_ECONFLICT, scenario_commit_of(&t, t.session, "no", NULL));
    FAILS(&t, BRC_ECONFLICT, brc_merge(&r, NULL, t.repo, "side", &opts, &t.err));
    FAILS(&t, BRC_ECONFLICT, brc_pick(&picked, NULL, t.repo, "side", &pick, &t.err));
    FAILS(&t, BRC_ECONFLICT, brc_rebase(&picked, NULL, t.repo, "side", &pick, &t.err));
    pick.flags = BRC_PICK_REVERT;
    FAILS(&t, BRC_ECONFLICT, brc_pick(&picked, NULL, t.repo, "HEAD", &pick, &t.err));
    FAILS(&t, BRC_ECONFLICT, brc_node_move(t.session, "/a", "/z", 0, &t.err));
    ck_assert_int_eq(go_on().result, BRC_PICK_CONFLICT);
    ck_assert_uint_eq(open_now(), 4);
    OK(&t, brc_reset(t.repo, NULL, "HEAD", 1, NULL, &t.err));
    ck_assert(nothing_open());
}

/* ---- settling -------------------------------- */

TEST(s1_what_is_written_is_settled_by_it)
{
    merge_side(BRC_MERGE_KEEP);
    scenario_set_number(&t, "/a", 0, 70);
    ck_assert_uint_eq(open_now(), 3);
    OK(&t, brc_attrs_set(t.session, "/a", "k", "7", &t.err));
    ck_assert_uint_eq(open_now(), 2);
    scenario_numbers(&t, "/g/b", 4, 2, 9);
    ck_assert_uint_eq(open_now(), 1);
    ck_assert_uint_eq(settle_at(BRC_MERGE_OURS, "/a"), 1);
    brc_pick_result r = go_on();
    ck_assert_int_eq(r.result, BRC_PICK_COMMITTED);
    ck_assert_int_eq(scenario_number(&t, t.session, "/a", 0), 70);
    ck_assert_int_eq(scenario_number(&t, t.session, "/a", 2), 50);
    ck_assert_int_eq(scenario_number(&t, t.session, "/a", 6), 60);
    ck_assert_int_eq(scenario_number(&t, t.session, "/g/b", 0), 9);
    ck_assert(nothing_open());
    scenario_whole(&t);
}

TEST(s2_their_side_comes_under_what_was_written)
{
    brc_commit *c;
    merge_side(BRC_MERGE_KEEP);
    scenario_set_number(&t, "/a", 0, 70);
    scenario_set_number(&t, "/a", 5, 80);
    scenario_numbers(&t, "/new", 4, 2, 9);
    ck_assert_uint_eq(settle_at(BRC_MERGE_THEIRS, "/a"), 2);
    ck_assert_uint_eq(open_now(), 1);
    ck_assert(!has("/g/b"));
    ck_assert_uint_eq(settle_at(BRC_MERGE_THEIRS, NULL), 1);
    ck_assert_uint_eq(settle_at(BRC_MERGE_THEIRS, NULL), 0);
    brc_pick_result r = go_on();
    ck_assert_int_eq(scenario_number(&t, t.session, "/a", 0), 70);
    ck_assert_int_eq(scenario_number(&t, t.session, "/a", 2), 60);
    ck_assert_int_eq(scenario_number(&t, t.session, "/a", 5), 80);
    ck_assert_int_eq(scenario_number(&t, t.session, "/g/b", 0), 60);
    ck_assert_int_eq(scenario_number(&t, t.session, "/new", 0), 9);
    OK(&t, brc_commit_read(&c, t.repo, &r.commit, &t.err));
    ck_assert_uint_eq(c->nparents, 2);
    ck_assert_str_eq(c->message, "Merge side into main");
    brc_commit_free(c);
    ck_assert(nothing_open());
    scenario_whole(&t);
}

/* Both of an array's attribute and chunks are in conflict, and only the one was written. */
TEST(s2_so_does_their_side_of_an_attribute)
{
    brc_buf k = BRC_BUF_INIT;
    merge_side(BRC_MERGE_KEEP);
    OK(&t, brc_attrs_set(t.session, "/a", "k", "9", &t.err));
    ck_assert_uint_eq(settle_at(BRC_MERGE_THEIRS, "/a"), 2);
    OK(&t, brc_attrs_get(&k, t.session, "/a", "k", &t.err));
    ck_assert_str_eq((const char *)k.data, "9");
    ck_assert_int_eq(scenario_number(&t, t.session, "/a", 0), 60);
    brc_buf_dispose(&k);
    scenario_whole(&t);
}

/* A merge that is settled piece by piece is what it would have been at once. */
TEST(s3_all_for_theirs_is_the_merge_for_theirs)
{
    brc_commit *a, *b;
    merge_side(BRC_MERGE_KEEP);
    settle_at(BRC_MERGE_THEIRS, "/g");
    settle_at(BRC_MERGE_THEIRS, "/");
    brc_oid one = go_on().commit;
    OK(&t, brc_reset(t.repo, NULL, "HEAD~1", 1, NULL, &t.err));
    brc_oid two = merge_side(BRC_MERGE_THEIRS).commit;
    OK(&t, brc_commit_read(&a, t.repo, &one, &t.err));
    OK(&t, brc_commit_read(&b, t.repo, &two, &t.err));
    ck_assert_mem_eq(&a->root, &b->root, sizeof(a->root));
    brc_commit_free(a);
    brc_commit_free(b);
}

/* ---- others -------------------------------- */

TEST(s4_what_was_written_does_not_go_to_their_side)
{
    merge_side(BRC_MERGE_KEEP);
    scenario_set_number(&t, "/a", 0, 50); /* as ours has it: that is a decision too */
    ck_assert_uint_eq(open_now(), 3);
    ck_assert_uint_eq(settle_at(BRC_MERGE_THEIRS, NULL), 3);
    ck_assert_uint_eq(open_now(), 0);
    ck_assert_int_eq(scenario_number(&t, t.session, "/a", 0), 50);
    ck_assert_int_eq(scenario_number(&t, t.session, "/a", 2), 60);
    ck_assert_int_eq(scenario_number(&t, t.session, "/g/b", 0), 60);
    scenario_whole(&t);
    ck_assert_int_eq(go_on().result, BRC_PICK_COMMITTED);
    ck_assert_int_eq(scenario_number(&t, t.session, "/a", 0), 50);
    scenario_whole(&t);
}

/* Chunks 0 and 1 of /a are in conflict, besides k and /g/b. */
TEST(s5_a_cut_does_not_settle_the_chunks_that_stay)
{
    static const struct {
        uint64_t to, back, open;
    } cuts[] = {{7, 0, 4}, {4, 0, 4}, {4, 8, 4}, {9, 0, 4}, {9, 6, 4},
                {3, 0, 4}, {2, 0, 3}, {1, 0, 3}, {0, 0, 2}, {2, 8, 3}};
    for (size_t i = 0; i < sizeof(cuts) / sizeof(cuts[0]); i++) {
        merge_side(BRC_MERGE_KEEP);
        scenario_resize(&t, t.session, "/a", cuts[i].to);
        if (cuts[i].back != 0)
            scenario_resize(&t, t.session, "/a", cuts[i].back);
        ck_assert_msg(open_now() == cuts[i].open, "cut %zu", i);
        OK(&t, brc_abort(t.repo, &t.err));
    }
}

TEST(s6_in_an_array_that_was_cut_what_is_written_settles)
{
    merge_side(BRC_MERGE_KEEP);
    scenario_set_number(&t, "/a", 0, 70);
    scenario_resize(&t, t.session, "/a", 3);
    ck_assert_uint_eq(open_now(), 3);
    scenario_set_number(&t, "/a", 2, 70);
    ck_assert_uint_eq(open_now(), 2);
    ck_assert_uint_eq(settle_at(BRC_MERGE_THEIRS, NULL), 2);
    ck_assert_int_eq(go_on().result, BRC_PICK_COMMITTED);
    ck_assert_int_eq(scenario_number(&t, t.session, "/a", 0), 70);
    ck_assert_int_eq(scenario_number(&t, t.session, "/a", 2), 70);
    scenario_whole(&t);
}

/* --theirs merges the array again in the shape that somebody gave it by hand. */
TEST(s7_their_side_comes_into_an_array_that_was_cut)
{
    merge_side(BRC_MERGE_KEEP);
    scenario_resize(&t, t.session, "/a", 4);
    ck_assert_uint_eq(settle_at(BRC_MERGE_THEIRS, NULL), 4);
    ck_assert_int_eq(go_on().result, BRC_PICK_COMMITTED);
    ck_assert_int_eq(scenario_number(&t, t.session, "/a", 0), 60);
    ck_assert_int_eq(scenario_number(&t, t.session, "/a", 2), 60);
    brc_array *a = scenario_array_at(&t, t.session, "/a");
    ck_assert_uint_eq(*brc_array_describe(a)->shape, 4);
    brc_array_free(a);
    scenario_whole(&t);
}

/* Every chunk has another key and id then, and all elements are what they were. */
TEST(s8_chunks_that_are_cut_anew_are_not_settled_by_that)
{
    static const char codecs[] =
        "[{\"name\":\"sharding_indexed\",\"configuration\":{\"chunk_shape\":[1],"
        "\"codecs\":[{\"name\":\"bytes\",\"configuration\":{\"endian\":\"little\"}}],"
        "\"index_codecs\":[{\"name\":\"bytes\",\"configuration\":{\"endian\":\"little\"}}]}}]";
    merge_side(BRC_MERGE_KEEP);
    scenario_recode(&t, t.session, "/a", codecs, 1);
    ck_assert_uint_eq(open_now(), 4);
    scenario_set_number(&t, "/a", 2, 70);
    ck_assert_uint_eq(open_now(), 3);
}

static void new_form(void)
{
    const uint64_t shape = 8, chunk = 4;
    brc_array_free(scenario_array(&t, "/c", "int32", 1, &shape, &chunk, "9", NULL));
}

/* /c is in conflict as a whole: what was written to ours of it goes. */
TEST(s9_their_side_of_an_array_replaces_what_was_written_to_ours)
{
    brc_array *a;
    scenario_be_on(&t, "side");
    OK(&t, brc_reset(t.repo, NULL, "HEAD~1", 1, NULL, &t.err));
    scenario_be_on(&t, "side");
    OK(&t, brc_ref_create(t.repo, "other", NULL, NULL, 0, &t.err));
    scenario_numbers(&t, "/c", 8, 2, 1);
    scenario_set_number(&t, "/c", 0, 60);
    scenario_commit(&t, "theirs");
    scenario_be_on(&t, "other");
    new_form();
    scenario_commit(&t, "ours");
    merge_side(BRC_MERGE_KEEP);
    scenario_set_number(&t, "/c", 5, 70);
    OK(&t, brc_attrs_set(t.session, "/c", "by", "\"hand\"", &t.err));
    scenario_set_number(&t, "/a", 7, 70);
    ck_assert_uint_eq(open_now(), 3);
    ck_assert_uint_eq(settle_at(BRC_MERGE_THEIRS, "/c"), 3);
    ck_assert_int_eq(go_on().result, BRC_PICK_COMMITTED);
    for (uint64_t i = 0; i < 8; i++)
        ck_assert_int_eq(scenario_number(&t, t.session, "/c", i), i == 0 ? 60 : (int)i + 1);
    ck_assert_int_eq(scenario_number(&t, t.session, "/a", 7), 70);
    OK(&t, brc_array_open(&a, t.session, "/c", &t.err));
    ck_assert_uint_eq(*brc_array_describe(a)->chunk, 2);
    brc_array_free(a);
    scenario_whole(&t);
}

TEST(s10_a_path_without_a_conflict_is_not_settled)
{
    const char *paths[] = {"/a", "/nosuch"};
    uint64_t n;
    merge_side(BRC_MERGE_KEEP);
    FAILS(&t, BRC_ENOTFOUND, brc_merge_settle(&n, t.repo, BRC_MERGE_THEIRS, paths, 2, &t.err));
    ck_assert_ptr_nonnull(strstr(t.err.message, "/nosuch is in no conflict"));
    FAILS(&t, BRC_ENOTFOUND, brc_merge_settle(&n, t.repo, BRC_MERGE_OURS, paths + 1, 1, &t.err));
    ck_assert_uint_eq(open_now(), 4);
    ck_assert_uint_eq(settle_at(BRC_MERGE_OURS, "/g"), 1);
    ck_assert_uint_eq(settle_at(BRC_MERGE_OURS, "/g"), 0); /* it was, but is settled */
}

TEST(p1_collections_keep_what_is_open)
{
    brc_gc_opts opts = BRC_GC_OPTS_INIT;
    merge_side(BRC_MERGE_KEEP);
    scenario_set_number(&t, "/a", 0, 70);
    OK(&t, brc_ref_delete(t.repo, "side", BRC_DELETE_FORCE, &t.err));
    OK(&t, brc_gc(t.repo, &opts, NULL, &t.err));
    scenario_whole(&t);
    settle_at(BRC_MERGE_THEIRS, NULL);
    OK(&t, brc_gc(t.repo, &opts, NULL, &t.err));
    ck_assert_int_eq(go_on().result, BRC_PICK_COMMITTED);
    ck_assert_int_eq(scenario_number(&t, t.session, "/g/b", 0), 60);
    scenario_whole(&t);
}

static int continue_in_child(void)
{
    breccia *repo;
    brc_error err;
    brc_pick_result r = BRC_PICK_RESULT_INIT;
    int rc = brc_open(&repo, t.file, NULL, &err);
    if (rc == BRC_OK)
        rc = brc_continue(&r, NULL, repo, NULL, &err);
    return rc == BRC_OK ? 0 : rc == BRC_EMISUSE || rc == BRC_ESTALE ? 1 : 2;
}

/* One commits it, the others are told that there is none. */
TEST(p2_of_processes_that_continue_one_does)
{
    enum { N = 4 };
    pid_t pid[N];
    int done = 0, status;
    merge_side(BRC_MERGE_KEEP);
    settle_at(BRC_MERGE_THEIRS, NULL);
    scenario_close(&t);
    for (int i = 0; i < N; i++) {
        pid[i] = fork();
        ck_assert_int_ge(pid[i], 0);
        if (pid[i] == 0)
            _exit(continue_in_child());
    }
    for (int i = 0; i < N; i++) {
        ck_assert_int_eq(waitpid(pid[i], &status, 0), pid[i]);
        ck_assert(WIFEXITED(status) && WEXITSTATUS(status) < 2);
        done += WEXITSTATUS(status) == 0;
    }
    ck_assert_int_eq(done, 1);
    scenario_open(&t, NULL, 0);
    ck_assert_int_eq(scenario_ask(&t, "SELECT count(*) FROM oplog WHERE op='merge'"), 1);
    scenario_whole(&t);
}

/* ---- damage -------------------------------- */

static int damage_of(const char *sql)
{
    brc_open_state state = BRC_OPEN_STATE_INIT;
    open_setup();
    merge_side(BRC_MERGE_KEEP);
    scenario_sql(&t, sql);
    const int n = scenario_faults(&t);
    (void)!brc_merge_state(&state, NULL, t.repo, &t.err); /* answers, whatever it is */
    open_teardown();
    return n;
}

static void settle_by_hand(void)
{
    merge_side(BRC_MERGE_KEEP);
    scenario_set_number(&t, "/a", 0, 70);
    scenario_set_number(&t, "/a", 2, 70);
    scenario_numbers(&t, "/g/b", 4, 2, 9);
    OK(&t, brc_attrs_set(t.session, "/a", "k", "9", &t.err));
    ck_assert_uint_eq(open_now(), 0);
}

typedef struct other_hand {
    breccia *repo;
    int at, locks; /* at which lock of ours; how many there were */
    int written;   /* whether it got in                          */
} other_hand;

/* A hand that does not wait. */
static void open_other(other_hand *o)
{
    *o = (other_hand){.at = 0};
    o->repo = scenario_handle(&t, 1);
}

/* Sets an attribute at the lock. The write may come too early or too late, or be kept out. */
static int write_at_lock(other_hand *o, const char *key, const char *json)
{
    brc_session *s;
    if (o->locks++ == o->at &&
        brc_session_open(&s, o->repo, "main", BRC_SESSION_WRITE, NULL) == BRC_OK) {
        o->written = brc_attrs_set(s, "/a", key, json, NULL) == BRC_OK;
        brc_session_free(s);
    }
    return 0;
}

/* Gives the attribute the value that ours has, so it is in conflict again. */
static int take_back(void *ctx)
{
    return write_at_lock(ctx, "k", "2");
}

static void attribute_at_head_is(const char *value)
{
    brc_buf k = BRC_BUF_INIT;
    brc_session *s = scenario_session(&t, t.repo, "HEAD", BRC_SESSION_AT);
    OK(&t, brc_attrs_get(&k, s, "/a", "k", &t.err));
    ck_assert_str_eq((const char *)k.data, value);
    brc_buf_dispose(&k);
    brc_session_free(s);
}

/* At each lock of the call that commits it. */
TEST(p3_what_is_no_longer_settled_is_not_committed)
{
    int refused = 0, merged = 0;
    other_hand o;
    open_other(&o);
    do {
        brc_pick_result r = BRC_PICK_RESULT_INIT;
        settle_by_hand();
        o.locks = 0;
        lock_faults_set(take_back, &o);
        const int rc = brc_continue(&r, NULL, t.repo, NULL, &t.err);
        lock_faults_set(NULL, NULL);
        if (rc == BRC_OK && r.result == BRC_PICK_COMMITTED) {
            merged++;
            attribute_at_head_is("9");
            OK(&t, brc_reset(t.repo, NULL, "HEAD~1", BRC_RESET_HARD, NULL, &t.err));
        } else {
            refused += rc == BRC_OK && r.result == BRC_PICK_CONFLICT;
            ck_assert_uint_eq(open_now(), 1);
            OK(&t, brc_abort(t.repo, &t.err));
        }
        o.at++;
    } while (o.locks >= o.at);
    ck_assert_int_gt(refused, 0);
    ck_assert_int_gt(merged, 0);
    brc_free(o.repo);
    scenario_whole(&t);
}

/* Writes an attribute that no conflict is about. */
static int write_late(void *ctx)
{
    return write_at_lock(ctx, "late", "true");
}

static int late_is_there(void)
{
    brc_buf late = BRC_BUF_INIT;
    brc_session *s = scenario_session(&t, t.repo, "main", BRC_SESSION_WRITE);
    const int rc = brc_attrs_get(&late, s, "/a", "late", &t.err);
    ck_assert(rc == BRC_OK || rc == BRC_ENOTFOUND);
    brc_buf_dispose(&late);
    brc_session_free(s);
    return rc == BRC_OK;
}

/* At each lock of the call that commits it: in the commit, or uncommitted over it. */
TEST(p4_what_is_written_meanwhile_is_not_lost)
{
    int written = 0;
    other_hand o;
    open_other(&o);
    do {
        brc_pick_result r = BRC_PICK_RESULT_INIT;
        settle_by_hand();
        o.locks = o.written = 0;
        lock_faults_set(write_late, &o);
        OK(&t, brc_continue(&r, NULL, t.repo, NULL, &t.err));
        lock_faults_set(NULL, NULL);
        ck_assert_int_eq(r.result, BRC_PICK_COMMITTED);
        if (o.written)
            ck_assert(late_is_there());
        written += o.written;
        OK(&t, brc_reset(t.repo, NULL, "HEAD~1", BRC_RESET_HARD, NULL, &t.err));
        o.at++;
    } while (o.locks >= o.at);
    ck_assert_int_gt(written, 1);
    brc_free(o.repo);
    scenario_whole(&t);
}

CASE("damage", .timeout = 300);

TEST(d1_broken_rows_are_reported)
{
#define SUMMED " checksum=row_sum('conflict', draft, path, member, key, base, ours, theirs, state)"
    static const char *const damages[] = {
        "UPDATE conflict SET state=1 WHERE member='' ",
        "UPDATE conflict SET state=7; UPDATE conflict SET" SUMMED,
        "UPDATE conflict SET draft=draft+50; UPDATE conflict SET" SUMMED,
        "UPDATE conflict SET path='a' WHERE member=''; UPDATE conflict SET" SUMMED,
        "UPDATE conflict SET ours=3 WHERE member='chunk'; UPDATE conflict SET" SUMMED,
        "UPDATE conflict SET ours=zeroblob(32) WHERE member='chunk'; UPDATE conflict SET" SUMMED,
        "UPDATE conflict SET theirs=x'00' WHERE member=''; UPDATE conflict SET" SUMMED,
        "DELETE FROM conflict",
        "DELETE FROM conflict WHERE member=''",
        "UPDATE conflict SET member='nonsense' WHERE member=''; UPDATE conflict SET" SUMMED,
    };
    for (size_t i = 0; i < sizeof(damages) / sizeof(damages[0]); i++)
        ck_assert_msg(damage_of(damages[i]) > 0, "not noticed: %s", damages[i]);
}

/* The other parent has no other name than the draft. */
static int damage_of_other(const char *sql)
{
    char hex[65], text[512];
    open_setup();
    merge_side(BRC_MERGE_KEEP);
    settle_at(BRC_MERGE_OURS, NULL);
    const brc_oid root = scenario_root(&t, "side");
    for (int i = 0; i < 16; i++)
        snprintf(hex + 2 * i, 3, "%02x", root.bytes[i]);
    OK(&t, brc_ref_delete(t.repo, "side", BRC_DELETE_FORCE, &t.err));
    scenario_sql(&t, "DELETE FROM oplog");
    snprintf(text, sizeof(text), sql, hex);
    scenario_sql(&t, text);
    const int n = scenario_faults(&t);
    open_teardown();
    return n;
}

TEST(d2_the_other_parent_must_be_there_and_be_whole)
{
#define DRAFT_SUMMED                                                                               \
    "; UPDATE draft SET checksum=row_sum('draft', id, kind, state, branch, base, tip, other,"      \
    " plan, owner, parent, time_us, changes, parts)"
    ck_assert_int_eq(damage_of_other("SELECT '%s'"), 0);
    ck_assert_int_gt(damage_of_other("DELETE FROM object WHERE id=x'%s'"), 0);
    ck_assert_int_gt(damage_of_other("UPDATE draft SET other=x'%s'" DRAFT_SUMMED), 0);
    ck_assert_int_gt(damage_of_other("UPDATE draft SET other=zeroblob(length(x'%s'))" DRAFT_SUMMED),
                     0);
}

CASE("open");

/* A part that was cut off is fill value when the array grows again: somebody decided that. */
TEST(a_chunk_that_is_cut_off_and_grown_again_is_settled)
{
    const uint64_t less = 2, all = 8;
    merge_side(BRC_MERGE_KEEP);
    const uint64_t open = open_now();
    brc_array *a = scenario_array_at(&t, t.session, "/a");
    OK(&t, brc_array_resize(a, &less, &t.err));
    ck_assert_uint_eq(open_now(), open - 1);
    OK(&t, brc_array_resize(a, &all, &t.err));
    brc_array_free(a);
    ck_assert_uint_eq(open_now(), open - 1);
    ck_assert_int_eq(scenario_number(&t, t.session, "/a", 0), 50);
    ck_assert_int_eq(scenario_number(&t, t.session, "/a", 2), 0);
}
