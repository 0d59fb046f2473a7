/* Undo and redo of everything that moves a ref, and what they leave alone. */
#include <stdio.h>
#include <string.h>

#include "../kit/ios.h"
#include "../kit/scenario.h"
#include "../kit/suite.h"

TEST_SUITE(undo);

SCENARIO_NUMBERS_FIXTURE(t, 8, 4)

static void undo(void)
{
    OK(&t, brc_undo(NULL, t.repo, 0, 0, &t.err));
}

static void redo(void)
{
    OK(&t, brc_undo(NULL, t.repo, BRC_UNDO_REDO, 0, &t.err));
}

static int is_at(const char *rev, const brc_oid *id)
{
    brc_oid now;
    OK(&t, brc_resolve(&now, t.repo, rev, &t.err));
    return memcmp(&now, id, sizeof(now)) == 0;
}

/* "main:1 *side:- v1=text:2 ", the commits by their place in `known`. */
static const char *refs_are(const brc_oid *known, size_t n)
{
    static char text[300];
    brc_iter *it;
    const brc_ref *ref;
    text[0] = '\0';
    OK(&t, brc_refs(&it, t.repo, &t.err));
    while (brc_next(it, &ref, &t.err) > 0) {
        size_t at = strlen(text), i = 0;
        while (i < n && memcmp(&known[i], &ref->id, sizeof(ref->id)) != 0)
            i++;
        snprintf(text + at, sizeof(text) - at, "%s%s%s%s:%c ",
                 ref->flags & BRC_REF_CURRENT ? "*" : "", ref->name, ref->message[0] ? "=" : "",
                 ref->message, ref->flags & BRC_REF_UNBORN ? '-' : (char)('1' + i));
    }
    brc_iter_free(it);
    return text;
}

static brc_oid next_commit(int32_t value)
{
    scenario_set_number(&t, "/a", 0, value);
    return scenario_commit(&t, "next");
}

CASE("undo", .setup = t_numbers, .teardown = t_stop, .timeout = 120);

/* 19: undo 3, redo 2, commit, redo: the last is refused. */
TEST(test_back_and_forth)
{
    brc_oid at[5];
    OK(&t, brc_resolve(&at[0], t.repo, "HEAD", &t.err));
    for (int i = 1; i < 4; i++)
        at[i] = next_commit(100 + i);
    for (int i = 2; i >= 0; i--) {
        undo();
        ck_assert(is_at("main", &at[i]));
    }
    redo();
    redo();
    ck_assert(is_at("main", &at[2]));
    ck_assert_int_eq(scenario_number(&t, t.session, "/a", 0), 102);
    undo(); /* what was redone is undone again */
    ck_assert(is_at("main", &at[1]));
    redo();
    ck_assert(is_at("main", &at[2]));
    at[4] = next_commit(7);
    FAILS(&t, BRC_EMISUSE, brc_undo(NULL, t.repo, BRC_UNDO_REDO, 0, &t.err));
    ck_assert(is_at("main", &at[4]));
    for (int i = 2; i >= 0; i--) {
        undo();
        ck_assert(is_at("main", &at[i]));
    }
    undo(); /* the branch has no commit now */
    FAILS(&t, BRC_ENOTFOUND, brc_resolve(&at[4], t.repo, "main", &t.err));
    FAILS(&t, BRC_EMISUSE, brc_undo(NULL, t.repo, 0, 0, &t.err));
    ck_assert_str_eq(refs_are(at, 4), "*main:- ");
    redo();
    ck_assert(is_at("main", &at[0]));
}

enum { COMMIT, AMEND, RESET, BRANCH, DELETE, RENAME, TAG, UNTAG, RETAG, SWITCH, SWITCH_NEW, OPS };

static void do_one(int op)
{
    brc_commit_opts opts = BRC_COMMIT_OPTS_INIT;
    brc_oid id;
    opts.message = "other";
    opts.flags = BRC_COMMIT_AMEND;
    if (op == COMMIT)
        next_commit(55);
    else if (op == AMEND)
        OK(&t, brc_session_commit(&id, t.session, &opts, &t.err));
    else if (op == RESET)
        OK(&t, brc_reset(t.repo, NULL, "HEAD~1", BRC_RESET_HARD, NULL, &t.err));
    else if (op == BRANCH)
        OK(&t, brc_ref_create(t.repo, "b", "HEAD~1", NULL, 0, &t.err));
    else if (op == DELETE)
        OK(&t, brc_ref_delete(t.repo, "side", BRC_DELETE_FORCE, &t.err));
    else if (op == RENAME)
        OK(&t, brc_ref_rename(t.repo, "main", "trunk", 0, &t.err));
    else if (op == TAG)
        OK(&t, brc_ref_create(t.repo, "v2", "HEAD", "two", BRC_REF_TAG, &t.err));
    else if (op == UNTAG)
        OK(&t, brc_ref_delete(t.repo, "v1", BRC_REF_TAG | BRC_DELETE_FORCE, &t.err));
    else if (op == RETAG)
        OK(&t, brc_ref_rename(t.repo, "v1", "w", BRC_REF_TAG, &t.err));
    else if (op == SWITCH)
        OK(&t, brc_switch(t.repo, "side", 0, &t.err));
    if (op != SWITCH_NEW)
        return;
    OK(&t, brc_begin(t.repo, &t.err)); /* one operation */
    OK(&t, brc_ref_create(t.repo, "new", NULL, NULL, 0, &t.err));
    OK(&t, brc_switch(t.repo, "new", 0, &t.err));
    OK(&t, brc_end(t.repo, BRC_END_KEEP, &t.err));
}

LOOP(test_everything, 0, OPS)
{
    brc_oid known[2];
    char before[300], after[300];
    OK(&t, brc_resolve(&known[0], t.repo, "HEAD", &t.err));
    OK(&t, brc_ref_create(t.repo, "side", NULL, NULL, 0, &t.err));
    OK(&t, brc_ref_create(t.repo, "v1", NULL, "said \"so\"\n", BRC_REF_TAG, &t.err));
    known[1] = next_commit(1);
    snprintf(before, sizeof(before), "%s", refs_are(known, 2));
    do_one(_i);
    snprintf(after, sizeof(after), "%s", refs_are(known, 2));
    ck_assert_str_ne(before, after);
    for (int i = 0; i < 3; i++) {
        undo();
        ck_assert_str_eq(refs_are(known, 2), before);
        scenario_whole(&t);
        redo();
        ck_assert_str_eq(refs_are(known, 2), after);
        scenario_whole(&t);
    }
    undo();
    undo(); /* one further: the commit */
    ck_assert(is_at("main", &known[0]));
    ck_assert_str_eq(refs_are(known, 2), "*main:1 side:1 v1=said \"so\"\n:1 ");
}

/* 20: a ref was moved by someone else, without the log: it is named, and nothing happens. */
TEST(test_moved_by_others)
{
    brc_oid first, second;
    OK(&t, brc_resolve(&first, t.repo, "HEAD", &t.err));
    OK(&t, brc_begin(t.repo, &t.err));
    OK(&t, brc_ref_create(t.repo, "one", NULL, NULL, 0, &t.err));
    OK(&t, brc_ref_create(t.repo, "two", NULL, NULL, 0, &t.err));
    OK(&t, brc_end(t.repo, BRC_END_KEEP, &t.err));
    second = next_commit(3);
    undo();
    scenario_sql(&t, "UPDATE ref SET target=(SELECT new FROM oplog WHERE op='commit' ORDER BY seq"
                     " DESC), checksum=row_sum('ref', name, (SELECT new FROM oplog WHERE"
                     " op='commit' ORDER BY seq DESC), message) WHERE name='heads/one'");
    FAILS(&t, BRC_ESTALE, brc_undo(NULL, t.repo, 0, 0, &t.err));
    ck_assert_ptr_nonnull(strstr(t.err.message, "'one'"));
    ck_assert_str_eq(refs_are((brc_oid[]){first, second}, 2), "*main:1 one:2 two:1 ");
    /* and the redo is still there */
    redo();
    ck_assert(is_at("main", &second));
}

/* Another one's operation came in between: only who did not expect it takes it back. */
TEST(test_expected)
{
    int64_t made;
    brc_oid first, second;
    OK(&t, brc_resolve(&first, t.repo, "HEAD", &t.err));
    const int64_t mine = scenario_ask(&t, "SELECT max(seq) FROM oplog");
    second = next_commit(3);
    FAILS(&t, BRC_ESTALE, brc_undo(NULL, t.repo, 0, mine, &t.err));
    ck_assert(is_at("main", &second));
    const int64_t last = scenario_ask(&t, "SELECT max(seq) FROM oplog");
    OK(&t, brc_undo(&made, t.repo, 0, last, &t.err));
    ck_assert(is_at("main", &first));
    ck_assert_int_eq(made, scenario_ask(&t, "SELECT max(seq) FROM oplog"));
    FAILS(&t, BRC_ESTALE, brc_undo(NULL, t.repo, BRC_UNDO_REDO, mine, &t.err));
    OK(&t, brc_undo(NULL, t.repo, BRC_UNDO_REDO, last, &t.err));
    OK(&t, brc_begin(t.repo, &t.err));
    FAILS(&t, BRC_EMISUSE, brc_undo(NULL, t.repo, 0, 0, &t.err));
    OK(&t, brc_end(t.repo, 0, &t.err));
}

/* How many drafts are stale, of all. */
static int stale_drafts(int *all)
{
    int stale = 0;
    brc_iter *it;
    const brc_draft *draft;
    *all = 0;
    OK(&t, brc_drafts(&it, t.repo, &t.err));
    while (brc_next(it, &draft, &t.err) > 0) {
        stale += (draft->flags & BRC_DRAFT_STALE) != 0;
        ++*all;
    }
    brc_iter_free(it);
    return stale;
}

TEST(test_drafts_stay)
{
    int all;
    brc_oid id;
    brc_commit_opts opts = BRC_COMMIT_OPTS_INIT;
    opts.message = "over the wrong one";
    next_commit(1);
    scenario_set_number(&t, "/a", 5, 500);
    undo();
    ck_assert_int_eq(stale_drafts(&all), 1);
    ck_assert_int_eq(all, 1);
    ck_assert_int_eq(scenario_number(&t, t.session, "/a", 5), 500);
    ck_assert_int_eq(scenario_number(&t, t.session, "/a", 0), 1);
    opts.flags = BRC_COMMIT_NO_MERGE;
    FAILS(&t, BRC_ESTALE, brc_session_commit(&id, t.session, &opts, &t.err));
    redo();
    ck_assert_int_eq(stale_drafts(&all), 0);
    OK(&t, brc_session_commit(&id, t.session, &opts, &t.err));
    ck_assert_int_eq(scenario_number(&t, t.session, "/a", 5), 500);
}

/* The changes are committed without the commit beneath them, which was undone. */
TEST(test_changes_over_an_undone_commit)
{
    int all;
    const int32_t was = scenario_number(&t, t.session, "/a", 0);
    next_commit(1);
    ck_assert_int_ne(scenario_number(&t, t.session, "/a", 0), was);
    scenario_set_number(&t, "/a", 5, 500);
    undo();
    scenario_commit(&t, "mine alone");
    ck_assert_int_eq(stale_drafts(&all), 0);
    ck_assert_int_eq(all, 0);
    ck_assert_int_eq(scenario_number(&t, t.session, "/a", 5), 500);
    ck_assert_int_eq(scenario_number(&t, t.session, "/a", 0), was);
}

/* A reset that moved nothing is not in the log: undo takes back the operation before it. */
LOOP(a_reset_to_where_it_is_is_no_operation, 0, 2)
{
    const brc_oid before = next_commit(1);
    const int64_t ops = scenario_ask(&t, "SELECT count(*) FROM oplog");
    next_commit(2);
    OK(&t, brc_reset(t.repo, NULL, "HEAD", _i ? BRC_RESET_HARD : 0, NULL, &t.err));
    ck_assert_int_eq(scenario_ask(&t, "SELECT count(*) FROM oplog"), ops + 1);
    undo();
    ck_assert(is_at("main", &before));
}

/* A soft reset leaves uncommitted what the commits had: undo leaves nothing uncommitted. */
TEST(test_soft_reset)
{
    int all;
    next_commit(1);
    OK(&t, brc_reset(t.repo, NULL, "HEAD~1", 0, NULL, &t.err));
    ck_assert(!scenario_clean(&t));
    undo();
    ck_assert(scenario_clean(&t));
    ck_assert_int_eq(stale_drafts(&all), 0);
    ck_assert_int_eq(all, 0);
    OK(&t, brc_reset(t.repo, NULL, "HEAD~1", 0, NULL, &t.err));
    scenario_set_number(&t, "/a", 5, 500);
    undo();
    ck_assert_int_eq(stale_drafts(&all), 0);
    ck_assert_int_eq(all, 1);
    scenario_commit(&t, "both");
    ck_assert_int_eq(scenario_number(&t, t.session, "/a", 0), 1);
    ck_assert_int_eq(scenario_number(&t, t.session, "/a", 5), 500);
}

/* -D keeps what was uncommitted: undo brings it back, redo takes it again, and a branch of the same
 * name has no part in it. */
TEST(test_deleted_with_changes)
{
    brc_session *s;
    int all;
    OK(&t, brc_ref_create(t.repo, "side", NULL, NULL, 0, &t.err));
    OK(&t, brc_switch(t.repo, "side", 0, &t.err));
    brc_session_free(t.session);
    OK(&t, brc_session_open(&t.session, t.repo, NULL, BRC_SESSION_WRITE, &t.err));
    scenario_set_number(&t, "/a", 2, 22);
    FAILS(&t, BRC_ECONFLICT, brc_switch(t.repo, "main", 0, &t.err));
    OK(&t, brc_ref_create(t.repo, "other", NULL, NULL, 0, &t.err));
    scenario_sql(&t, "UPDATE meta SET value='main', checksum=row_sum('meta', key, 'main')"
                     " WHERE key='head'");
    brc_session_free(t.session);
    OK(&t, brc_session_open(&t.session, t.repo, NULL, BRC_SESSION_WRITE, &t.err));
    OK(&t, brc_ref_delete(t.repo, "side", BRC_DELETE_FORCE, &t.err));
    ck_assert_int_eq(stale_drafts(&all), 1);
    scenario_whole(&t);
    for (int i = 0; i < 2; i++) {
        undo();
        OK(&t, brc_session_open(&s, t.repo, "side", BRC_SESSION_VIEW, &t.err));
        ck_assert_int_eq(scenario_number(&t, s, "/a", 2), 22);
        brc_session_free(s);
        ck_assert_int_eq(stale_drafts(&all), 0);
        redo();
        ck_assert_int_eq(stale_drafts(&all), 1);
        scenario_whole(&t);
    }
    OK(&t, brc_ref_create(t.repo, "side", NULL, NULL, 0, &t.err));
    OK(&t, brc_session_open(&s, t.repo, "side", BRC_SESSION_VIEW, &t.err));
    ck_assert_int_eq(scenario_number(&t, s, "/a", 2), 2);
    brc_session_free(s);
    OK(&t, brc_ref_delete(t.repo, "side", 0, &t.err));
    undo();
    undo();
    undo();
    OK(&t, brc_session_open(&s, t.repo, "side", BRC_SESSION_VIEW, &t.err));
    ck_assert_int_eq(scenario_number(&t, s, "/a", 2), 22);
    brc_session_free(s);
}

/* A branch that would go does not take changes along. */
TEST(test_made_with_changes)
{
    brc_sel sel = BRC_SEL_INIT;
    int32_t value = 9;
    OK(&t, brc_ref_create(t.repo, "side", NULL, NULL, 0, &t.err));
    brc_session *s = scenario_session(&t, t.repo, "side", BRC_SESSION_WRITE);
    brc_array *a = scenario_array_at(&t, s, "/a");
    sel_all(&sel, a);
    sel.count[0] = 1;
    OK(&t, brc_array_write(a, &sel, &value, sizeof(value), &t.err));
    FAILS(&t, BRC_ECONFLICT, brc_undo(NULL, t.repo, 0, 0, &t.err));
    OK(&t, brc_session_discard(s, &t.err));
    brc_array_free(a);
    brc_session_free(s);
    undo();
    FAILS(&t, BRC_ENOTFOUND, brc_session_open(&s, t.repo, "side", BRC_SESSION_VIEW, &t.err));
}

/* The log of a stranger's file leads in a circle, or to nothing: an error, and an end. */
TEST(test_hostile_log)
{
    next_commit(1);
    undo();
    undo();
    scenario_sql(&t, "UPDATE oplog SET undoes=9, checksum=row_sum('oplog', seq, time_us, op, name,"
                     " old, new, first, 9, restores, draft) WHERE undoes IS NOT NULL");
    FAILS(&t, BRC_ECORRUPT, brc_undo(NULL, t.repo, 0, 0, &t.err));
    FAILS(&t, BRC_EMISUSE, brc_undo(NULL, t.repo, BRC_UNDO_REDO, 0, &t.err));
    scenario_sql(&t, "UPDATE oplog SET undoes=NULL, restores=seq, checksum=row_sum('oplog', seq,"
                     " time_us, op, name, old, new, first, NULL, seq, draft)"
                     " WHERE undoes IS NOT NULL");
    FAILS(&t, BRC_ECORRUPT, brc_undo(NULL, t.repo, BRC_UNDO_REDO, 0, &t.err));
    FAILS(&t, BRC_EMISUSE, brc_undo(NULL, t.repo, 0, 0, &t.err));
    scenario_sql(&t, "UPDATE oplog SET undoes=NULL, restores=NULL, checksum=row_sum('oplog', seq,"
                     " time_us, op, name, old, new, first, NULL, NULL, draft)"
                     " WHERE restores IS NOT NULL");
}

/* A program that does not write the log has set the current branch. */
TEST(test_switched_without_a_word)
{
    OK(&t, brc_ref_create(t.repo, "side", NULL, NULL, 0, &t.err));
    OK(&t, brc_ref_create(t.repo, "third", NULL, NULL, 0, &t.err));
    OK(&t, brc_switch(t.repo, "side", 0, &t.err));
    scenario_sql(&t, "UPDATE meta SET value=CAST('third' AS BLOB),"
                     " checksum=row_sum('meta', key, CAST('third' AS BLOB)) WHERE key='head'");
    FAILS(&t, BRC_ESTALE, brc_undo(NULL, t.repo, 0, 0, &t.err));
    ck_assert_ptr_nonnull(strstr(t.err.message, "is now 'third', and not 'side'"));
    scenario_sql(&t, "UPDATE meta SET value=CAST('side' AS BLOB),"
                     " checksum=row_sum('meta', key, CAST('side' AS BLOB)) WHERE key='head'");
    undo();
    ck_assert_ptr_nonnull(strstr(refs_are(NULL, 0), "*main:"));
}

/* Newest first, grouped, in pages. */
TEST(test_oplog)
{
    brc_iter *it;
    const brc_op *op;
    int n = 0;
    int64_t last = INT64_MAX;
    OK(&t, brc_begin(t.repo, &t.err));
    for (int i = 0; i < 600; i++) {
        char name[16];
        snprintf(name, sizeof(name), "v%d", i);
        OK(&t, brc_ref_create(t.repo, name, NULL, NULL, BRC_REF_TAG, &t.err));
    }
    OK(&t, brc_end(t.repo, BRC_END_KEEP, &t.err));
    OK(&t, brc_oplog(&it, t.repo, &t.err));
    int64_t first = 0;
    while (brc_next(it, &op, &t.err) > 0) {
        ck_assert_int_lt(op->id, last);
        last = op->id;
        if (n++ == 0)
            first = op->operation;
        ck_assert_int_eq(op->operation == first, n <= 600);
        ck_assert_int_eq((op->flags & BRC_OP_TAG) != 0, n <= 600);
    }
    brc_iter_free(it);
    ck_assert_int_eq(n, (int)scenario_ask(&t, "SELECT count(*) FROM oplog"));
    undo();
    ck_assert_int_eq(scenario_ask(&t, "SELECT count(*) FROM ref WHERE name LIKE 'tags/%'"), 0);
}
