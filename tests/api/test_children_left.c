/* Children of a session that nobody joins: they end with their parent, or with the process, but for
 * those that hold changes. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../kit/children_kit.h"
#include "../kit/suite.h"

TEST_SUITE(children_left);

SCENARIO_NUMBERS_FIXTURE(t, 64, 16)

static void fill(brc_session *s, uint64_t from, uint64_t n, int32_t value)
{
    OK(&t, kit_fill(&t, s, "/a", from, n, value));
}

/* The drafts that are left, and their owners: "2/1 orphan; " is 2 nodes of a child of the first
 * draft. */
static const char *left(void)
{
    static char text[200];
    const int64_t first = scenario_ask(&t, "SELECT seq FROM sqlite_sequence WHERE name='draft'");
    const brc_draft *draft;
    brc_iter *it;
    int rc;
    text[0] = '\0';
    OK(&t, brc_drafts(&it, t.repo, &t.err));
    while ((rc = brc_next(it, &draft, &t.err)) > 0) {
        const size_t at = strlen(text);
        ck_assert(!(draft->flags & BRC_DRAFT_ORPHAN) || (draft->flags & BRC_DRAFT_CHILD));
        ck_assert_int_le(draft->id, first);
        snprintf(text + at, sizeof(text) - at, "%d%s%s; ", (int)draft->nodes,
                 draft->flags & BRC_DRAFT_CHILD ? " child" : "",
                 draft->flags & BRC_DRAFT_ORPHAN ? " orphan" : "");
    }
    ck_assert_int_eq(rc, 0);
    brc_iter_free(it);
    return text;
}

/* A parent with three children, whose sessions are closed: of the first nothing is changed, the
 * second has a child of its own and nothing else, the third holds changes. */
static char *tokens[4];

static void fork_family(brc_session *parent)
{
    for (int i = 0; i < 3; i++) {
        brc_session *child = kit_fork(&t, parent);
        tokens[i] = kit_token(&t, child);
        if (i == 1) {
            brc_session *grandchild = kit_fork(&t, child);
            tokens[3] = kit_token(&t, grandchild);
            brc_session_free(grandchild);
        }
        if (i == 2)
            fill(child, 20, 4, 7);
        brc_session_free(child);
    }
}

static void check_tokens(int is_there)
{
    for (int i = 0; i < 4; i++) {
        brc_session *s = NULL;
        const int there = is_there || i == 2;
        const int rc = brc_session_open(&s, t.repo, tokens[i], BRC_SESSION_TOKEN, &t.err);
        ck_assert_int_eq(rc, there ? BRC_OK : BRC_ESTALE);
        brc_session_free(s);
    }
}

static void drop_family(void)
{
    for (int i = 0; i < 4; i++)
        free(tokens[i]);
    OK(&t, brc_draft_drop(t.repo, scenario_ask(&t, "SELECT max(id) FROM draft"), &t.err));
    ck_assert_str_eq(left(), "");
}

CASE("children_left", .setup = t_numbers, .teardown = t_stop);

LOOP(children_end_with_their_parent, 0, 4)
{
    brc_session *parent = kit_private(&t, NULL);
    fork_family(parent);
    check_tokens(1);
    if (_i == 1) { /* what the parent wrote before was committed, or dropped */
        brc_oid id;
        fill(parent, 0, 4, 5);
        OK(&t, kit_commit(&t, parent, &id));
    } else if (_i == 2) {
        fill(parent, 0, 4, 5);
        OK(&t, brc_session_discard(parent, &t.err));
    }
    check_tokens(1); /* as long as it may join them */
    if (_i == 3)
        OK(&t, brc_session_finish(parent, &t.err));
    brc_session_free(parent);
    check_tokens(0);
    ck_assert_str_eq(left(), "1 child orphan; ");
    drop_family();
}

/* A parent that has a name has many sessions, any of which may be closed: it is finished. */
TEST(of_a_named_parent_when_it_is_finished)
{
    brc_session *parent, *copy;
    brc_buf name = BRC_BUF_INIT;
    OK(&t, brc_session_name(&name, t.repo, NULL, &t.err));
    OK(&t, brc_session_open(&parent, t.repo, (const char *)name.data, BRC_SESSION_TOKEN, &t.err));
    OK(&t, brc_session_open(&copy, t.repo, (const char *)name.data, BRC_SESSION_TOKEN, &t.err));
    fork_family(parent);
    brc_session_free(copy);
    check_tokens(1);
    OK(&t, brc_session_finish(parent, &t.err));
    check_tokens(0);
    ck_assert_str_eq(left(), "1 child orphan; ");
    fill(parent, 0, 4, 5); /* it goes on */
    fill(parent, 0, 1, 0);
    for (int i = 1; i < 4; i++)
        fill(parent, (uint64_t)i, 1, i); /* as it was */
    ck_assert_str_eq(left(), "1 child orphan; 1; ");
    OK(&t, brc_session_finish(parent, &t.err));
    ck_assert_str_eq(left(), "1 child orphan; ");
    brc_session_free(parent);
    brc_buf_dispose(&name);
    drop_family();
}

/* The parent's changes stay, as after any session. */
TEST(a_parent_with_changes_stays)
{
    brc_session *parent = kit_private(&t, NULL);
    fork_family(parent);
    fill(parent, 0, 4, 5);
    brc_session_free(parent);
    check_tokens(0);
    ck_assert_str_eq(left(), "1; 1 child; ");
    const int64_t first = scenario_ask(&t, "SELECT min(id) FROM draft WHERE kind=2");
    OK(&t, brc_draft_drop(t.repo, first, &t.err));
    ck_assert_str_eq(left(), "1 child orphan; ");
    drop_family();
}

TEST(children_and_views_are_not_finished)
{
    brc_session *parent = kit_private(&t, NULL), *child = kit_fork(&t, parent), *view;
    OK(&t, brc_session_open(&view, t.repo, NULL, BRC_SESSION_VIEW, &t.err));
    FAILS(&t, BRC_EMISUSE, brc_session_finish(child, &t.err));
    FAILS(&t, BRC_EMISUSE, brc_session_finish(t.session, &t.err));
    FAILS(&t, BRC_EREADONLY, brc_session_finish(view, &t.err));
    OK(&t, brc_session_finish(parent, &t.err));
    FAILS(&t, BRC_ESTALE, kit_fill(&t, child, "/a", 0, 1, 1));
    OK(&t, brc_session_finish(parent, &t.err));
    brc_session_free(view);
    brc_session_free(child);
    brc_session_free(parent);
    ck_assert_str_eq(left(), "");
}

/* The drafts of a process that has ended are removed by the next process that begins a draft, thins
 * history or collects garbage. */
LOOP(and_with_the_process, 0, 3)
{
    brc_expire_opts rules = BRC_EXPIRE_OPTS_INIT;
    int status;
    const pid_t pid = fork();
    ck_assert_int_ge(pid, 0);
    if (pid == 0) {
        t.repo = scenario_handle(&t, 0);
        fork_family(kit_private(&t, NULL));
        _exit(0);
    }
    ck_assert_int_eq(waitpid(pid, &status, 0), pid);
    ck_assert_int_eq(status, 0);
    ck_assert_str_eq(left(), "0; 0 child; 0 child; 0 child; 1 child; ");
    if (_i == 0) {
        brc_session *next = kit_private(&t, NULL);
        fill(next, 0, 1, 3);
        OK(&t, brc_session_discard(next, &t.err));
        brc_session_free(next);
    } else if (_i == 1) {
        rules.keep_last = 1;
        OK(&t, brc_expire(NULL, NULL, t.repo, &rules, &t.err));
    }
    if (_i < 2) {
        ck_assert_str_eq(left(), "1 child orphan; ");
        OK(&t, brc_draft_adopt(t.repo, scenario_ask(&t, "SELECT max(id) FROM draft"), &t.err));
        ck_assert_int_eq(scenario_number(&t, t.session, "/a", 20), 7);
        OK(&t, brc_session_discard(t.session, &t.err));
    } else {
        OK(&t, brc_gc(t.repo, NULL, NULL, &t.err));
    }
    ck_assert_str_eq(left(), "");
}
