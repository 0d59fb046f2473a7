/* Sessions of many processes: tokens, and children that begin with what their parent shows. */
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../kit/children_kit.h"
#include "../kit/seal.h"
#include "../kit/suite.h"

TEST_SUITE(children);

SCENARIO_NUMBERS_FIXTURE(t, 64, 16)

static void need(brc_session *s, uint64_t i, int32_t value)
{
    ck_assert_int_eq(scenario_number(&t, s, "/a", i), value);
}

static void fill(brc_session *s, uint64_t from, uint64_t n, int32_t value)
{
    OK(&t, kit_fill(&t, s, "/a", from, n, value));
}

/* ---- tokens -------------------------------- */

static int write_ten(scenario *w, brc_session *s, void *ctx)
{
    (void)ctx;
    return kit_fill(w, s, "/a", 10, 10, 100);
}

static int write_and_be_killed(scenario *w, brc_session *s, void *ctx)
{
    (void)ctx;
    if (kit_fill(w, s, "/a", 20, 4, 200) == BRC_OK)
        raise(SIGKILL);
    return BRC_EIO;
}

static int fork_and_tell(scenario *w, brc_session *s, void *ctx)
{
    brc_session *child;
    brc_buf token = BRC_BUF_INIT;
    int rc = brc_session_fork(&child, s, &w->err);
    if (rc == BRC_OK)
        rc = kit_fill(w, child, "/a", 10, 1, 100);
    if (rc == BRC_OK)
        rc = brc_session_token(&token, child, &w->err);
    if (rc == BRC_OK && write(*(int *)ctx, token.data, token.len) != (ssize_t)token.len)
        rc = BRC_EIO;
    if (rc == BRC_OK)
        raise(SIGKILL);
    return rc;
}

CASE("children", .setup = t_numbers, .teardown = t_stop, .timeout = 120);

TEST(another_process_writes_into_the_draft_of_a_token)
{
    brc_oid id;
    int status;
    brc_session *s = kit_private(&t, NULL);
    fill(s, 0, 5, 50);
    char *token = kit_token(&t, s);
    kit_worker_ends(kit_worker(&t, token, write_ten, NULL), BRC_OK);
    need(s, 0, 50);
    need(s, 10, 100);
    need(s, 20, 20);
    const pid_t pid = kit_worker(&t, token, write_and_be_killed, NULL);
    ck_assert_int_eq(waitpid(pid, &status, 0), pid);
    ck_assert(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
    ck_assert_str_eq(kit_drafts(&t, t.repo), "1/0 alive ours; ");
    OK(&t, brc_gc(t.repo, NULL, NULL, &t.err));
    need(s, 23, 200);
    OK(&t, kit_commit(&t, s, &id));
    need(t.session, 23, 200);
    brc_session_free(s);
    free(token);
}

/* ---- children -------------------------------- */

TEST(a_child_begins_with_what_is_uncommitted)
{
    brc_oid id;
    int clean;
    brc_session *s = kit_private(&t, NULL);
    fill(s, 0, 5, 50);
    OK(&t, brc_attrs_set(s, "/a", "unit", "\"m\"", &t.err));
    OK(&t, brc_node_move(s, "/a", "/b", 0, &t.err));
    brc_session *one = kit_fork(&t, s), *two = kit_fork(&t, s);
    ck_assert_str_eq(kit_drafts(&t, t.repo), "0/0 alive ours; 0/1 alive ours; 0/1 alive ours; ");
    ck_assert_int_eq(scenario_number(&t, one, "/b", 4), 50);
    ck_assert_int_eq(scenario_number(&t, two, "/b", 5), 5);
    ck_assert_int_eq(scenario_number(&t, s, "/b", 4), 50);
    OK(&t, kit_fill(&t, one, "/b", 0, 1, 1));
    OK(&t, kit_fill(&t, s, "/b", 0, 1, 2));
    ck_assert_int_eq(scenario_number(&t, one, "/b", 0), 1);
    ck_assert_int_eq(scenario_number(&t, two, "/b", 0), 50);
    ck_assert_int_eq(scenario_number(&t, s, "/b", 0), 2);
    OK(&t, brc_session_clean(&clean, two, &t.err));
    ck_assert_int_eq(clean, 0);
    FAILS(&t, BRC_EMISUSE, kit_commit(&t, one, &id));
    brc_session *three = kit_fork(&t, one);
    ck_assert_int_eq(scenario_number(&t, three, "/b", 0), 1);
    ck_assert_int_eq(scenario_number(&t, three, "/b", 1), 50);
    OK(&t, brc_session_discard(one, &t.err));
    ck_assert_int_eq(scenario_number(&t, one, "/b", 0), 50);
    ck_assert_int_eq(scenario_number(&t, three, "/b", 0), 1);
    OK(&t, kit_commit(&t, s, &id));
    ck_assert_int_eq(scenario_number(&t, t.session, "/b", 0), 2);
    ck_assert_int_eq(scenario_number(&t, three, "/b", 0), 1);
    brc_session_free(s);
    brc_session_free(one);
    brc_session_free(two);
    brc_session_free(three);
}

TEST(a_child_belongs_to_the_owner_whoever_forked_it)
{
    char *token;
    brc_session *s = kit_private(&t, NULL), *child;
    fill(s, 0, 1, 50);
    token = kit_token(&t, s);
    int ends[2];
    ck_assert_int_eq(pipe(ends), 0);
    int status;
    const pid_t pid = kit_worker(&t, token, fork_and_tell, &ends[1]);
    ck_assert_int_eq(waitpid(pid, &status, 0), pid);
    ck_assert(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
    char told[100] = "";
    ck_assert_int_gt((int)read(ends[0], told, sizeof(told) - 1), 0);
    ck_assert_str_eq(kit_drafts(&t, t.repo), "0/0 alive ours; 1/1 alive ours; ");
    OK(&t, brc_gc(t.repo, NULL, NULL, &t.err));
    OK(&t, brc_session_open(&child, t.repo, told, BRC_SESSION_TOKEN, &t.err));
    need(child, 0, 50);
    need(child, 10, 100);
    ck_assert_str_ne(strrchr(told, ':'), strrchr(token, ':')); /* a secret of its own */
    close(ends[0]);
    close(ends[1]);
    free(token);
    brc_session_free(child);
    brc_session_free(s);
}

TEST(a_child_does_not_follow_its_branch)
{
    brc_session *s = kit_private(&t, NULL), *child = kit_fork(&t, s);
    scenario_set_number(&t, "/a", 0, 9);
    scenario_commit(&t, "second");
    need(s, 0, 9); /* it has no change */
    need(child, 0, 0);
    fill(child, 1, 1, 8);
    char *token = kit_token(&t, child);
    const char *tokens[] = {token};
    OK(&t, brc_session_join(NULL, s, tokens, 1, 0, &t.err));
    need(s, 0, 9);
    need(s, 1, 8);
    brc_oid id;
    OK(&t, kit_commit(&t, s, &id));
    need(t.session, 0, 9);
    free(token);
    brc_session_free(child);
    brc_session_free(s);
}

/* The second costs no fold, and no commit: it lies over what the first began from. */
TEST(the_next_child_costs_a_row)
{
    brc_session *s = kit_private(&t, NULL), *c[3];
    fill(s, 0, 40, 5);
    c[0] = kit_fork(&t, s);
    const int64_t objects = scenario_ask(&t, "SELECT count(*) FROM object");
    c[1] = kit_fork(&t, s);
    c[2] = kit_fork(&t, s);
    ck_assert_int_eq(scenario_ask(&t, "SELECT count(*) FROM object"), objects);
    ck_assert_int_eq(scenario_ask(&t, "SELECT count(*) FROM draft_chunk"), 0);
    ck_assert_int_eq(scenario_ask(&t, "SELECT count(DISTINCT other) FROM draft WHERE state=1"), 1);
    for (int i = 0; i < 3; i++)
        brc_session_free(c[i]);
    brc_session_free(s);
}

TEST(a_parent_can_go_back_to_its_savepoint)
{
    brc_session *s = kit_private(&t, NULL);
    fill(s, 0, 1, 50);
    OK(&t, brc_savepoint(s, BRC_SAVEPOINT_SET, "x", &t.err));
    fill(s, 1, 1, 51);
    brc_session *child = kit_fork(&t, s);
    need(child, 1, 51);
    OK(&t, brc_savepoint(s, BRC_SAVEPOINT_ROLLBACK, "x", &t.err));
    OK(&t, brc_savepoint(s, BRC_SAVEPOINT_RELEASE, "x", &t.err));
    need(s, 0, 50);
    need(s, 1, 1);
    fill(child, 2, 1, 52);
    char *token = kit_token(&t, child);
    const char *tokens[] = {token};
    OK(&t, brc_session_join(NULL, s, tokens, 1, 0, &t.err));
    need(s, 0, 50);
    need(s, 1, 1); /* the child has not written it */
    need(s, 2, 52);
    free(token);
    brc_session_free(child);
    brc_session_free(s);
}

TEST(who_has_forked_can_discard_and_commit)
{
    int clean;
    brc_oid id;
    brc_session *s = kit_private(&t, NULL);
    fill(s, 0, 1, 50);
    brc_session *child = kit_fork(&t, s);
    OK(&t, brc_session_clean(&clean, s, &t.err));
    ck_assert_int_eq(clean, 0);
    OK(&t, brc_session_discard(s, &t.err));
    need(s, 0, 0);
    OK(&t, brc_session_clean(&clean, s, &t.err));
    ck_assert_int_eq(clean, 1);
    FAILS(&t, BRC_EMISUSE, kit_commit(&t, s, &id));
    need(child, 0, 50);
    /* it is what the child has changed that is joined, not what it began with */
    fill(child, 1, 1, 51);
    char *token = kit_token(&t, child);
    const char *tokens[] = {token};
    OK(&t, brc_session_join(NULL, s, tokens, 1, 0, &t.err));
    need(s, 0, 0);
    need(s, 1, 51);
    OK(&t, kit_commit(&t, s, &id));
    need(t.session, 1, 51);
    free(token);
    brc_session_free(child);
    brc_session_free(s);
}

TEST(only_private_sessions_outside_of_transactions_fork)
{
    brc_session *child, *s = kit_private(&t, NULL);
    brc_buf token = BRC_BUF_INIT;
    FAILS(&t, BRC_EMISUSE, brc_session_fork(&child, t.session, &t.err));
    ck_assert_ptr_null(child);
    FAILS(&t, BRC_EMISUSE, brc_session_token(&token, t.session, &t.err));
    OK(&t, brc_begin(t.repo, &t.err));
    FAILS(&t, BRC_EMISUSE, brc_session_fork(&child, s, &t.err));
    OK(&t, brc_end(t.repo, 0, &t.err));
    OK(&t, brc_bulk_begin(s, &t.err));
    FAILS(&t, BRC_EMISUSE, brc_session_fork(&child, s, &t.err));
    OK(&t, brc_bulk_end(s, 0, &t.err));
    brc_session_free(s);
}

/* ---- who drops one, and who may not -------------------------------- */

static int drop_as_another(scenario *w, brc_session *s, void *ctx)
{
    (void)ctx;
    return brc_draft_drop(w->repo, scenario_draft(w, s), &w->err);
}

TEST(the_owner_drops_a_child)
{
    brc_session *s = kit_private(&t, NULL), *child = kit_fork(&t, s);
    fill(child, 0, 1, 1);
    const int64_t id = scenario_draft(&t, child);
    const int64_t parent = scenario_draft(&t, s);
    char *token = kit_token(&t, child);
    kit_worker_ends(kit_worker(&t, token, drop_as_another, NULL), BRC_EBUSY);
    FAILS(&t, BRC_EBUSY, brc_draft_adopt(t.repo, id, &t.err));
    OK(&t, brc_draft_drop(t.repo, id, &t.err));
    ck_assert_str_eq(kit_drafts(&t, t.repo), "0/0 alive ours; ");
    const char *tokens[] = {token};
    FAILS(&t, BRC_ESTALE, brc_session_join(NULL, s, tokens, 1, 0, &t.err));
    OK(&t, brc_draft_drop(t.repo, parent, &t.err));
    ck_assert_str_eq(kit_drafts(&t, t.repo), "");
    free(token);
    brc_session_free(child);
    brc_session_free(s);
}

TEST(a_branch_with_children_is_renamed_and_not_deleted)
{
    OK(&t, brc_ref_create(t.repo, "trial", NULL, NULL, 0, &t.err));
    brc_session *s = kit_private(&t, "trial");
    fill(s, 0, 1, 1);
    brc_session *child = kit_fork(&t, s);
    FAILS(&t, BRC_EBUSY, brc_ref_delete(t.repo, "trial", BRC_DELETE_FORCE, &t.err));
    OK(&t, brc_ref_rename(t.repo, "trial", "other", 0, &t.err));
    fill(child, 1, 1, 2);
    char *token = kit_token(&t, child);
    const char *tokens[] = {token};
    OK(&t, brc_session_join(NULL, s, tokens, 1, 0, &t.err));
    need(s, 1, 2);
    free(token);
    brc_session_free(child);
    brc_session_free(s);
}

/* ---- owners that die -------------------------------- */

/* A process with a private session, something uncommitted, and two children; it is killed. */
static void leave_family(void)
{
    int status;
    const pid_t pid = fork();
    if (pid == 0) {
        breccia *repo;
        brc_session *s, *c[2];
        scenario mine = {0};
        mine.err = (brc_error)BRC_ERROR_INIT;
        int rc = scenario_connect(&repo, t.file, NULL, &mine.err);
        if (rc == BRC_OK)
            rc = brc_session_open(&s, repo, NULL, BRC_SESSION_PRIVATE, &mine.err);
        if (rc == BRC_OK)
            rc = kit_fill(&mine, s, "/a", 0, 4, 1);
        for (int i = 0; i < 2 && rc == BRC_OK; i++)
            rc = brc_session_fork(&c[i], s, &mine.err);
        for (int i = 0; i < 2 && rc == BRC_OK; i++)
            rc = kit_fill(&mine, c[i], "/a", 16 + 16 * (uint64_t)i, 2, 2 + i);
        if (rc == BRC_OK)
            raise(SIGKILL);
        _exit(1);
    }
    ck_assert_int_eq(waitpid(pid, &status, 0), pid);
    ck_assert(WIFSIGNALED(status));
}

static int64_t draft_at(int at)
{
    brc_iter *it;
    const brc_draft *draft;
    int64_t id = 0;
    OK(&t, brc_drafts(&it, t.repo, &t.err));
    while (at-- >= 0 && brc_next(it, &draft, &t.err) > 0)
        id = draft->id;
    brc_iter_free(it);
    return id;
}

TEST(what_a_dead_owner_left_can_be_adopted)
{
    leave_family();
    ck_assert_str_eq(kit_drafts(&t, t.repo), "0/0 dead; 1/1 dead; 1/1 dead; ");
    const int64_t parent = draft_at(0), one = draft_at(1), two = draft_at(2);
    OK(&t, brc_draft_adopt(t.repo, parent, &t.err));
    need(t.session, 3, 1);
    OK(&t, brc_draft_adopt(t.repo, one, &t.err));
    OK(&t, brc_draft_adopt(t.repo, two, &t.err));
    need(t.session, 16, 2);
    need(t.session, 33, 3);
    scenario_commit(&t, "adopted");
    need(t.session, 3, 1);
    ck_assert_str_eq(kit_drafts(&t, t.repo), "");
}

/* Also one of a build before December 2026, which noted the parent in the plan. */
LOOP(an_orphan_is_adopted_with_what_it_began_with, 0, 2)
{
    leave_family();
    if (_i == 1) {
        scenario_sql(&t, "UPDATE draft SET plan='{\"fork\":' || parent || '}', parent=NULL"
                         " WHERE parent IS NOT NULL;" SEAL_DRAFT);
        scenario_whole(&t);
    }
    const int64_t parent = draft_at(0), one = draft_at(1), two = draft_at(2);
    OK(&t, brc_draft_drop(t.repo, parent, &t.err));
    OK(&t, brc_draft_adopt(t.repo, one, &t.err));
    ck_assert_int_eq(scenario_ask(&t, "SELECT count(*) FROM draft WHERE kind=1 AND (other IS NOT"
                                      " NULL OR plan IS NOT NULL OR parent IS NOT NULL)"), 0);
    need(t.session, 3, 1);
    need(t.session, 16, 2);
    scenario_commit(&t, "one");
    OK(&t, brc_draft_adopt(t.repo, two, &t.err)); /* merged onto that */
    need(t.session, 16, 2);
    need(t.session, 33, 3);
    scenario_commit(&t, "two");
}

TEST(a_collection_drops_what_a_dead_owner_left)
{
    brc_gc_opts opts = BRC_GC_OPTS_INIT;
    opts.keep = "0";
    leave_family();
    brc_session *s = kit_private(&t, NULL);
    fill(s, 0, 1, 70);
    brc_session *child = kit_fork(&t, s);
    fill(s, 0, 2, 71); /* its chunk before is the child's alone */
    fill(child, 20, 1, 72);
    OK(&t, brc_gc(t.repo, &opts, NULL, &t.err));
    ck_assert_str_eq(kit_drafts(&t, t.repo), "1/0 alive ours; 1/1 alive ours; ");
    need(child, 0, 70);
    need(child, 20, 72);
    char *token = kit_token(&t, child);
    const char *tokens[] = {token};
    OK(&t, brc_session_join(NULL, s, tokens, 1, 0, &t.err));
    OK(&t, brc_gc(t.repo, &opts, NULL, &t.err));
    need(s, 1, 71);
    need(s, 20, 72);
    free(token);
    brc_session_free(child);
    brc_session_free(s);
}

TEST(a_token_of_a_dead_owner_is_refused)
{
    brc_session *s;
    char token[100];
    leave_family();
    brc_buf text = BRC_BUF_INIT;
    scenario_rows(&t, "SELECT 'draft:' || id || ':' || substr(owner, -34, 32) FROM draft"
                      " WHERE parent IS NOT NULL LIMIT 1", &text);
    snprintf(token, sizeof(token), "%.*s", (int)strcspn((const char *)text.data, "\n"),
             (const char *)text.data);
    FAILS(&t, BRC_EMISUSE, brc_session_open(&s, t.repo, token, BRC_SESSION_TOKEN, &t.err));
    ck_assert_ptr_null(s);
    brc_buf_dispose(&text);
}

/* ---- texts that are not tokens -------------------------------- */

TEST(whatever_is_no_token_is_refused)
{
    char text[200];
    brc_session *s = kit_private(&t, NULL), *other;
    char *token = kit_token(&t, s);
    const size_t len = strlen(token);
    FAILS(&t, BRC_EINVAL, brc_session_open(&other, t.repo, NULL, BRC_SESSION_TOKEN, &t.err));
    for (size_t i = 0; i < len; i++) { /* cut, and with each byte another */
        snprintf(text, sizeof(text), "%.*s", (int)i, token);
        FAILS(&t, BRC_EINVAL, brc_session_open(&other, t.repo, text, BRC_SESSION_TOKEN, &t.err));
        for (int byte = 1; byte < 256; byte++) {
            snprintf(text, sizeof(text), "%s", token);
            text[i] = (char)byte;
            if (text[i] == token[i])
                continue;
            const int rc = brc_session_open(&other, t.repo, text, BRC_SESSION_TOKEN, &t.err);
            ck_assert(rc == BRC_EINVAL || rc == BRC_ESTALE || rc == BRC_ENOTFOUND);
            ck_assert_ptr_null(other);
        }
    }
    static const char *const wrong[] = {
        "draft:0:00000000000000000000000000000000", "draft:-1:00000000000000000000000000000000",
        "draft:99999999999999999999:00000000000000000000000000000000", "draft::",
        "draft:18446744073709551617:00000000000000000000000000000000", "draft:1:", "1x",
        "draft:+1:00000000000000000000000000000000", "draft: 1:00000000000000000000000000000000"};
    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++)
        FAILS(&t, BRC_EINVAL, brc_session_open(&other, t.repo, wrong[i], BRC_SESSION_TOKEN,
                                               &t.err));
    snprintf(text, sizeof(text), "%s0", token);
    FAILS(&t, BRC_EINVAL, brc_session_open(&other, t.repo, text, BRC_SESSION_TOKEN, &t.err));
    snprintf(text, sizeof(text), "draft:12345:%s", strrchr(token, ':') + 1);
    FAILS(&t, BRC_ENOTFOUND, brc_session_open(&other, t.repo, text, BRC_SESSION_TOKEN, &t.err));
    free(token);
    brc_session_free(s);
}

/* ---- two that write one draft -------------------------------- */

typedef struct writing {
    uint64_t first; /* every second element from this one on */
    int rounds;
} writing;

/* Parts of the same chunks, one element each time. */
static int write_every_second(scenario *w, brc_session *s, void *ctx)
{
    const writing *how = ctx;
    int rc = BRC_OK;
    for (int round = 1; round <= how->rounds && rc == BRC_OK; round++)
        for (uint64_t i = how->first; i < 64 && rc == BRC_OK; i += 2)
            rc = kit_fill(w, s, "/a", i, 1, (int32_t)(1000 * round + (int)i));
    return rc;
}

TEST(two_processes_write_parts_of_the_same_chunks)
{
    brc_session *s = kit_private(&t, NULL), *child = kit_fork(&t, s);
    brc_session *const of[] = {s, child};
    for (int k = 0; k < 2; k++) {
        writing even = {0, 6}, odd = {1, 6};
        char *token = kit_token(&t, of[k]);
        const pid_t a = kit_worker(&t, token, write_every_second, &even);
        const pid_t b = kit_worker(&t, token, write_every_second, &odd);
        kit_worker_ends(a, BRC_OK);
        kit_worker_ends(b, BRC_OK);
        for (uint64_t i = 0; i < 64; i++)
            need(of[k], i, (int32_t)(6000 + (int)i));
        free(token);
    }
    brc_session_free(child);
    brc_session_free(s);
}

/* Others write into the parent while it is forked again and again: each child has whole states. */
TEST(a_parent_is_forked_while_others_write)
{
    brc_session *s = kit_private(&t, NULL);
    writing all = {0, 8};
    char *token = kit_token(&t, s);
    const pid_t pid = kit_worker(&t, token, write_every_second, &all);
    for (int k = 0; k < 10; k++) {
        int32_t last = INT32_MAX;
        brc_session *child = kit_fork(&t, s);
        for (uint64_t i = 0; i < 64; i += 2) { /* earlier elements are written first */
            const int32_t round = scenario_number(&t, child, "/a", i) / 1000;
            ck_assert_int_le(round, last);
            last = round;
        }
        ck_assert_int_ge(last + 1, scenario_number(&t, child, "/a", 0) / 1000);
        brc_session_free(child);
    }
    kit_worker_ends(pid, BRC_OK);
    need(s, 62, 8062);
    free(token);
    brc_session_free(s);
}
