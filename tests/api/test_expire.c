/* Thinning history: what stays, and what log, blame, merge, undo, gc and fsck make of it. */
#include <stdio.h>
#include <string.h>

#include "../kit/commits.h"
#include "../kit/ios.h"
#include "../kit/suite.h"
#include "../kit/versions.h"

TEST_SUITE(expire);

SCENARIO_FIXTURE(t)

/* The function that is called between the steps of t.repo's calls. */
static void (*act)(void);

static int between(void *ctx, const char *phase, uint64_t done, uint64_t total)
{
    void (*now)(void) = act;
    (void)ctx, (void)phase, (void)done, (void)total;
    act = NULL;
    if (now != NULL)
        now();
    return 0;
}

static void expire_setup(void)
{
    brc_open_opts opts = BRC_OPEN_OPTS_INIT;
    opts.progress = between;
    act = NULL;
    scenario_folder(&t);
    scenario_open(&t, &opts, BRC_OPEN_CREATE);
    scenario_numbers(&t, "/a", 16, 4, 0);
}

/* Commits new values of the first element of /a, one commit for each name. */
static int32_t commit_line(const char *names)
{
    return commits_line(&t, names);
}

static brc_expire_report expire(uint32_t flags, uint32_t last, uint32_t daily, uint32_t weekly,
                                uint32_t monthly)
{
    brc_expire_opts opts = BRC_EXPIRE_OPTS_INIT;
    brc_expire_report report = BRC_EXPIRE_REPORT_INIT;
    opts.flags = flags;
    opts.keep_last = last;
    opts.keep_daily = daily;
    opts.keep_weekly = weekly;
    opts.keep_monthly = monthly;
    OK(&t, brc_expire(&report, NULL, t.repo, &opts, &t.err));
    return report;
}

/* The messages of what a version reaches, "c b a", with ! where parents have expired. */
static const char *log_of(const char *rev)
{
    static char text[400];
    brc_iter *it;
    const brc_commit *c;
    text[0] = '\0';
    OK(&t, brc_log(&it, t.repo, rev, NULL, &t.err));
    while (brc_next(it, &c, &t.err) > 0)
        snprintf(text + strlen(text), sizeof(text) - strlen(text), "%s%s%s", text[0] ? " " : "",
                 c->message, c->flags & BRC_PAST_EXPIRED ? "!" : "");
    brc_iter_free(it);
    return text;
}

static uint64_t collect_all(void)
{
    scenario_no_window(&t);
    return scenario_collect(&t, 0);
}

CASE("expire", .setup = expire_setup, .teardown = t_stop, .timeout = 60);

/* ---- what stays -------------------------------- */

TEST(branches_tags_and_drafts_stay)
{
    commit_line("abcdefg");
    OK(&t, brc_ref_create(t.repo, "v1", "HEAD~3", NULL, BRC_REF_TAG, &t.err));
    OK(&t, brc_ref_create(t.repo, "side", "HEAD~4", NULL, 0, &t.err));
    ck_assert_str_eq(commits_kept(&t, 1, 0, 0, 0), "g d c");
    brc_session *s, *main = t.session;
    OK(&t, brc_session_open(&s, t.repo, NULL, BRC_SESSION_PRIVATE, &t.err));
    t.session = s;
    scenario_set_number(&t, "/a", 5, 5);
    t.session = main;
    commit_line("hij");
    ck_assert_str_eq(commits_kept(&t, 1, 0, 0, 0), "j g d c"); /* the draft lies over g */
    expire(0, 1, 0, 0, 0);
    ck_assert_str_eq(log_of("main"), "j! g! d c!");
    ck_assert_str_eq(log_of("v1"), "d c!");
    collect_all();
    ck_assert_int_eq(scenario_number(&t, s, "/a", 5), 5);
    brc_session_free(s);
}

TEST(a_rule_is_asked_for_and_a_dry_run_changes_nothing)
{
    brc_expire_opts opts = BRC_EXPIRE_OPTS_INIT;
    commit_line("abc");
    FAILS(&t, BRC_EINVAL, brc_expire(NULL, NULL, t.repo, &opts, &t.err));
    const brc_expire_report would = expire(BRC_EXPIRE_DRY_RUN, 1, 0, 0, 0);
    ck_assert_int_eq((int)would.kept, 1);
    ck_assert_int_eq((int)would.expired, 2);
    ck_assert_str_eq(log_of(NULL), "c b a");
    opts.keep_last = 1;
    OK(&t, brc_begin(t.repo, &t.err));
    FAILS(&t, BRC_EMISUSE, brc_expire(NULL, NULL, t.repo, &opts, &t.err));
    OK(&t, brc_end(t.repo, 0, &t.err));
    ck_assert_int_eq((int)scenario_ask(&t, "SELECT count(*) FROM sqlite_schema WHERE"
                                           " name='boundary'"), 0);
}

/* ---- what is left -------------------------------- */

TEST(commits_that_stay_keep_their_ids_and_the_others_go)
{
    brc_oid before, after, gone;
    commit_line("abcdefgh");
    OK(&t, brc_resolve(&before, t.repo, "HEAD", &t.err));
    OK(&t, brc_resolve(&gone, t.repo, "HEAD~4", &t.err));
    expire(0, 2, 0, 0, 0);
    ck_assert_str_eq(log_of(NULL), "h g!");
    OK(&t, brc_resolve(&after, t.repo, "HEAD", &t.err));
    ck_assert_mem_eq(&before, &after, sizeof(before));
    scenario_whole(&t);
    scenario_collect(&t, 0);
    ck_assert(scenario_has_commit(&t, &gone)); /* the log has it */
    ck_assert_int_gt((int)collect_all(), 6);
    ck_assert(!scenario_has_commit(&t, &gone));
    FAILS(&t, BRC_ENOTFOUND, brc_resolve(&gone, t.repo, "HEAD~2", &t.err));
    ck_assert_int_eq((int)scenario_ask(&t, "SELECT count(*) FROM boundary"), 1);
    commit_line("ij");
    ck_assert_str_eq(log_of(NULL), "j i h g!");
    expire(0, 1, 0, 0, 0); /* and again */
    ck_assert_str_eq(log_of(NULL), "j!");
    scenario_collect(&t, 0);
    ck_assert_int_eq((int)scenario_ask(&t, "SELECT count(*) FROM commit_info"), 1);
    OK(&t, brc_repair(NULL, t.repo, NULL, 0, &t.err)); /* derived rows know of it */
    scenario_whole(&t);
    commit_line("k");
    ck_assert_str_eq(log_of(NULL), "k j!");
}

/* An expired commit that the log keeps does not keep all that came before it. */
TEST(the_window_keeps_what_it_names_and_no_more)
{
    brc_oid named, deep;
    commit_line("abcdefgh");
    OK(&t, brc_resolve(&named, t.repo, "HEAD~1", &t.err));
    OK(&t, brc_resolve(&deep, t.repo, "HEAD~4", &t.err));
    expire(0, 1, 0, 0, 0);
    scenario_sql(&t, "DELETE FROM oplog WHERE seq<(SELECT max(seq) FROM oplog)-1");
    scenario_collect(&t, 0);
    ck_assert(scenario_has_commit(&t, &named));
    ck_assert(!scenario_has_commit(&t, &deep));
    scenario_whole(&t);
    OK(&t, brc_undo(NULL, t.repo, 0, 0, &t.err));
    ck_assert_str_eq(log_of(NULL), "g!");
}

TEST(undo_goes_back_as_far_as_the_log_keeps)
{
    commit_line("abcd");
    expire(0, 1, 0, 0, 0);
    OK(&t, brc_undo(NULL, t.repo, 0, 0, &t.err));
    ck_assert_str_eq(log_of(NULL), "c!");
    scenario_whole(&t);
    OK(&t, brc_undo(NULL, t.repo, BRC_UNDO_REDO, 0, &t.err));
    ck_assert_str_eq(log_of(NULL), "d!");
    collect_all();
    FAILS(&t, BRC_ENOTFOUND, brc_undo(NULL, t.repo, 0, 0, &t.err));
    ck_assert_ptr_nonnull(strstr(t.err.message, "collected"));
    ck_assert_str_eq(log_of(NULL), "d!");
}

/* A branch that only the log has: it comes back over what stays. */
TEST(a_branch_that_is_undone_stands_on_what_stays)
{
    commit_line("abcd");
    OK(&t, brc_ref_create(t.repo, "side", "HEAD~1", NULL, 0, &t.err));
    OK(&t, brc_switch(t.repo, "side", 0, &t.err));
    brc_session *main = t.session, *s;
    OK(&t, brc_session_open(&s, t.repo, NULL, BRC_SESSION_WRITE, &t.err));
    t.session = s;
    commit_line("xyz");
    t.session = main;
    brc_session_free(s);
    OK(&t, brc_switch(t.repo, "main", 0, &t.err));
    OK(&t, brc_ref_delete(t.repo, "side", BRC_DELETE_FORCE, &t.err));
    OK(&t, brc_ref_create(t.repo, "a", "HEAD~3", NULL, BRC_REF_TAG, &t.err));
    expire(0, 1, 0, 0, 0);
    ck_assert_str_eq(log_of(NULL), "d! a");
    OK(&t, brc_undo(NULL, t.repo, 0, 0, &t.err)); /* the tag */
    OK(&t, brc_undo(NULL, t.repo, 0, 0, &t.err)); /* the branch */
    ck_assert_str_eq(log_of("side"), "z y x! a");
}

/* ---- those who read parents -------------------------------- */

TEST(moves_of_expired_commits_are_known)
{
    commit_line("ab");
    scenario_numbers(&t, "/x", 16, 4, 500);
    commit_line("c");
    OK(&t, brc_ref_create(t.repo, "c", NULL, NULL, BRC_REF_TAG, &t.err));
    OK(&t, brc_node_move(t.session, "/x", "/y", 0, &t.err));
    scenario_set_number(&t, "/y", 0, 1);
    commit_line("d");
    OK(&t, brc_node_move(t.session, "/y", "/z", 0, &t.err));
    scenario_set_number(&t, "/z", 5, 2);
    commit_line("e");
    scenario_set_number(&t, "/z", 9, 3);
    commit_line("f");
    expire(0, 1, 0, 0, 0);
    collect_all();
    ck_assert_str_eq(log_of(NULL), "f! c!");
    brc_iter *it;
    const brc_change *change;
    int met = 0;
    OK(&t, brc_diff(&it, t.repo, "HEAD~1", "HEAD", NULL, &t.err));
    while (brc_next(it, &change, &t.err) > 0)
        if (strcmp(change->path, "/z") == 0) {
            ck_assert_ptr_nonnull(change->from);
            ck_assert_str_eq(change->from, "/x");
            met = 1;
        }
    ck_assert(met);
    brc_iter_free(it);
}

static uint32_t blamed(const char *path, uint64_t chunk, char author[8])
{
    brc_iter *it;
    const brc_blamed *b;
    uint32_t flags = 99;
    brc_session *s = scenario_session(&t, t.repo, "HEAD", BRC_SESSION_AT);
    brc_array *a = scenario_array_at(&t, s, path);
    OK(&t, brc_blame(&it, a, NULL, 0, &t.err));
    while (brc_next(it, &b, &t.err) > 0)
        if (b->first[0] == chunk) {
            flags = b->flags;
            snprintf(author, 8, "%s", b->author);
        }
    brc_iter_free(it);
    brc_array_free(a);
    brc_session_free(s);
    return flags;
}

TEST(blame_does_not_say_more_than_it_knows)
{
    char author[8];
    commit_line("abc");
    scenario_set_number(&t, "/a", 4, 77);
    commit_line("defg");
    expire(0, 3, 0, 0, 0); /* e, f, g */
    ck_assert_str_eq(log_of(NULL), "g f e!");
    ck_assert_int_eq((int)blamed("/a", 0, author), 0);
    ck_assert_str_eq(author, "g");
    ck_assert_int_eq((int)blamed("/a", 1, author), BRC_BLAME_BEFORE);
    ck_assert_str_eq(author, "");
}

/* The base is an ancestor that stays; what both sides did since then merges. */
TEST(merges_find_a_base_that_stays)
{
    brc_session *main = t.session, *s;
    brc_merge_result result = BRC_MERGE_RESULT_INIT;
    commit_line("ab");
    OK(&t, brc_ref_create(t.repo, "b", NULL, NULL, BRC_REF_TAG, &t.err));
    const int32_t value = commit_line("c");
    OK(&t, brc_ref_create(t.repo, "side", NULL, NULL, 0, &t.err));
    OK(&t, brc_session_open(&s, t.repo, "side", BRC_SESSION_WRITE, &t.err));
    t.session = s;
    scenario_set_number(&t, "/a", 0, value);
    for (int i = 0; i < 3; i++) {
        scenario_set_number(&t, "/a", 8, 70 + i);
        scenario_commit(&t, "s");
    }
    t.session = main;
    scenario_set_number(&t, "/a", 12, 8);
    scenario_commit(&t, "m");
    scenario_set_number(&t, "/a", 12, 9);
    scenario_commit(&t, "n");
    expire(0, 1, 0, 0, 0);
    ck_assert_str_eq(log_of("main"), "n! b!");
    ck_assert_str_eq(log_of("side"), "s! b!");
    collect_all();
    OK(&t, brc_merge(&result, NULL, t.repo, "side", NULL, &t.err));
    ck_assert_int_eq((int)result.result, BRC_MERGE_MERGED);
    ck_assert_int_eq(scenario_number(&t, main, "/a", 8), 72);
    ck_assert_int_eq(scenario_number(&t, main, "/a", 12), 9);
    expire(0, 1, 0, 0, 0); /* side's commit is a tip: it stays, and is the second parent */
    brc_session_free(s);
}

TEST(amending_takes_what_stands_for_the_parents)
{
    brc_commit_opts opts = BRC_COMMIT_OPTS_INIT;
    brc_oid id;
    commit_line("abc");
    OK(&t, brc_ref_create(t.repo, "a", "HEAD~2", NULL, BRC_REF_TAG, &t.err));
    expire(0, 1, 0, 0, 0);
    collect_all();
    opts.message = "C";
    opts.flags = BRC_COMMIT_AMEND;
    OK(&t, brc_session_commit(&id, t.session, &opts, &t.err));
    ck_assert_str_eq(log_of(NULL), "C a");
}

/* ---- damage, and others -------------------------------- */

static int missing_found;

static int count_missing(void *ctx, const brc_damage *damage)
{
    (void)ctx;
    missing_found += (damage->flags & BRC_DAMAGE_MISSING) != 0;
    return 0;
}

static int faults_found;

static int count_faults(void *ctx, const brc_damage *damage)
{
    faults_found++;
    return count_missing(ctx, damage);
}

static void look_for_faults(void)
{
    missing_found = faults_found = 0;
    OK(&t, brc_fsck(t.repo, 0, count_faults, NULL, NULL, NULL, &t.err));
}

TEST(a_parent_that_has_not_expired_is_missed)
{
    brc_buf row = BRC_BUF_INIT;
    char sql[300];
    commit_line("abc");
    expire(0, 1, 0, 0, 0);
    collect_all();
    look_for_faults();
    ck_assert_int_eq(faults_found, 0);
    scenario_rows(&t, "SELECT hex(id) FROM boundary", &row);
    scenario_sql(&t, "DELETE FROM boundary");
    scenario_reopen(&t);
    look_for_faults();
    ck_assert_int_eq(missing_found, 1);
    snprintf(sql, sizeof(sql), "INSERT INTO boundary VALUES(x'%.32s', x'', '', 0)",
             (const char *)row.data);
    scenario_sql(&t, sql);
    look_for_faults(); /* the checksum */
    ck_assert_int_ge(faults_found, 1);
    scenario_sql(&t, "UPDATE boundary SET parents=id, checksum=row_sum('boundary', id, id, '')");
    look_for_faults(); /* before itself: found, and nobody goes round for ever */
    ck_assert_int_ge(faults_found, 1);
    brc_iter *it;
    const brc_commit *c;
    int rc;
    OK(&t, brc_log(&it, t.repo, NULL, NULL, &t.err));
    while ((rc = brc_next(it, &c, &t.err)) > 0)
        ;
    ck_assert_int_eq(rc, BRC_ECORRUPT);
    brc_iter_free(it);
    scenario_sql(&t, "UPDATE boundary SET parents=x'', checksum=row_sum('boundary', id, x'', '')");
    brc_buf_dispose(&row);
}

static void tag_meanwhile(void)
{
    breccia *other = scenario_handle(&t, 0);
    OK(&t, brc_ref_create(other, "late", "HEAD~2", NULL, BRC_REF_TAG, &t.err));
    brc_free(other);
}

TEST(a_tag_that_comes_meanwhile_counts)
{
    commit_line("abcde");
    act = tag_meanwhile;
    expire(0, 1, 0, 0, 0);
    ck_assert_ptr_null(act);
    ck_assert_str_eq(log_of(NULL), "e! c!");
}

/* Somebody else changes the file at each pause, as long as nothing is thinned yet. */
static int pauses;

static void commit_meanwhile(void)
{
    if (pauses == 20 ||
        (scenario_ask(&t, "SELECT count(*) FROM sqlite_schema WHERE name='boundary'") > 0 &&
         scenario_ask(&t, "SELECT count(*) FROM boundary") > 0))
        return;
    pauses++;
    breccia *other = scenario_handle(&t, 0);
    breccia *own = t.repo;
    brc_session *session = t.session;
    t.repo = other;
    OK(&t, brc_session_open(&t.session, other, NULL, BRC_SESSION_WRITE, &t.err));
    commit_line((char[]){(char)('A' + pauses - 1), '\0'});
    brc_session_free(t.session);
    t.repo = own;
    t.session = session;
    brc_free(other);
}

TEST(a_commit_that_comes_meanwhile_counts)
{
    commit_line("abcde");
    pauses = 19;
    act = commit_meanwhile;
    expire(0, 1, 0, 0, 0);
    ck_assert_int_eq(pauses, 20);
    ck_assert_str_eq(log_of(NULL), "T!"); /* not "T e!" */
}

static void commit_at_each_pause(void)
{
    commit_meanwhile();
    act = commit_at_each_pause;
}

/* In the end expire makes its plan under the lock. */
TEST(commits_at_every_pause_do_not_stop_it)
{
    commit_line("abcde");
    pauses = 0;
    act = commit_at_each_pause;
    expire(0, 1, 0, 0, 0);
    ck_assert_int_gt(pauses, 1);
    ck_assert_int_lt(pauses, 20);
    const char newest[] = {(char)('A' + pauses - 1), '!', '\0'};
    ck_assert_str_eq(log_of(NULL), newest);
}

static brc_session *meanwhile;
static breccia *other_repo;

/* An uncommitted change of what was there three commits ago: no ref moves for it in the end. */
static void change_an_old_version(void)
{
    brc_oid tip;
    char hex[65];
    const int32_t one = 77;
    brc_sel sel = BRC_SEL_INIT;
    other_repo = scenario_handle(&t, 0);
    OK(&t, brc_resolve(&tip, other_repo, "HEAD", &t.err));
    OK(&t, brc_reset(other_repo, NULL, "HEAD~3", 0, NULL, &t.err));
    OK(&t, brc_session_open(&meanwhile, other_repo, NULL, BRC_SESSION_PRIVATE, &t.err));
    brc_array *a = scenario_array_at(&t, meanwhile, "/a");
    sel_all(&sel, a);
    sel.count[0] = 1;
    OK(&t, brc_array_write(a, &sel, &one, sizeof(one), &t.err));
    brc_array_free(a);
    OK(&t, brc_reset(other_repo, NULL, brc_oid_format(hex, &tip), 0, NULL, &t.err));
}

TEST(a_change_of_an_old_version_that_begins_meanwhile_counts)
{
    commit_line("abcdefg");
    act = change_an_old_version;
    expire(0, 1, 0, 0, 0);
    ck_assert_str_eq(log_of(NULL), "g! d!");
    collect_all();
    ck_assert_int_eq(scenario_number(&t, meanwhile, "/a", 0), 77);
    ck_assert_int_eq(scenario_number(&t, meanwhile, "/a", 15), 15);
    brc_session_free(meanwhile);
    brc_free(other_repo);
}

/* A merge keeps one of its two parents, and each ancestor that stays is named once. */
LOOP(of_two_parents_the_one_that_stays_stands_for_itself, 0, 2)
{
    brc_session *main = t.session, *s;
    brc_merge_result result = BRC_MERGE_RESULT_INIT;
    commit_line("ab");
    OK(&t, brc_ref_create(t.repo, "side", NULL, NULL, 0, &t.err));
    OK(&t, brc_session_open(&s, t.repo, "side", BRC_SESSION_WRITE, &t.err));
    t.session = s;
    scenario_set_number(&t, "/a", 8, 70);
    scenario_commit(&t, "s");
    t.session = main;
    scenario_set_number(&t, "/a", 12, 8);
    scenario_commit(&t, "m");
    OK(&t, brc_ref_create(t.repo, _i == 0 ? "kept" : "b", _i == 0 ? "side" : "HEAD~1", NULL,
                          BRC_REF_TAG, &t.err));
    OK(&t, brc_merge(&result, NULL, t.repo, "side", NULL, &t.err));
    brc_session_free(s);
    OK(&t, brc_ref_delete(t.repo, "side", BRC_DELETE_FORCE, &t.err));
    expire(0, 1, 0, 0, 0);
    brc_commit *c;
    brc_oid id;
    OK(&t, brc_resolve(&id, t.repo, "HEAD", &t.err));
    OK(&t, brc_commit_read(&c, t.repo, &id, &t.err));
    ck_assert_uint_eq(c->nparents, 1); /* the tag's: of the other side nothing else stays */
    OK(&t, brc_resolve(&id, t.repo, _i == 0 ? "kept" : "b", &t.err));
    ck_assert_mem_eq(&c->parents[0], &id, sizeof(id));
    brc_commit_free(c);
}

/* Nothing but the file itself says what has expired: another handle sees it. */
TEST(other_handles_see_it)
{
    breccia *other;
    brc_iter *it;
    const brc_commit *c;
    int n = 0;
    commit_line("abcde");
    OK(&t, brc_reopen(&other, t.repo, &t.err));
    OK(&t, brc_log(&it, other, NULL, NULL, &t.err));
    while (brc_next(it, &c, &t.err) > 0)
        n++;
    brc_iter_free(it);
    ck_assert_int_eq(n, 5);
    expire(0, 2, 0, 0, 0);
    OK(&t, brc_log(&it, other, NULL, NULL, &t.err));
    for (n = 0; brc_next(it, &c, &t.err) > 0;)
        n++;
    brc_iter_free(it);
    ck_assert_int_eq(n, 2);
    brc_free(other);
}
