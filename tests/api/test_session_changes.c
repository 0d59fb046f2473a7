/* Looking at, and resetting, what a session has: on any branch, shared or its own. */
#include <stdio.h>
#include <string.h>

#include "../kit/scenario.h"
#include "../kit/suite.h"

TEST_SUITE(session_changes);

SCENARIO_FIXTURE(t)
static brc_oid commits[2]; /* of main: the second sets number 0 to 10, and makes /later */

/* Branch side is at the first; main is the current one. */
static void changes_setup(void)
{
    scenario_start(&t);
    scenario_numbers(&t, "/a", 8, 4, 0);
    commits[0] = scenario_commit(&t, "first");
    OK(&t, brc_ref_create(t.repo, "side", "HEAD", NULL, 0, &t.err));
    scenario_set_number(&t, "/a", 0, 10);
    OK(&t, brc_group_create(t.session, "/later", NULL, &t.err));
    commits[1] = scenario_commit(&t, "second");
}

static brc_session *session_on(const char *branch, int mode)
{
    brc_session *s = scenario_session(&t, t.repo, branch, mode);
    return s;
}

/* "/a 1; /g added; ": chunks that changed, or what else became of the node. */
static const char *told(brc_iter *it)
{
    static const char *const what[] = {
        [BRC_ADDED] = "added", [BRC_REMOVED] = "removed", [BRC_MOVED] = "moved"};
    static char out[200];
    const brc_change *c;
    int rc;
    out[0] = '\0';
    while ((rc = brc_next(it, &c, &t.err)) > 0) {
        const size_t at = strlen(out);
        if (c->what == BRC_CHANGED)
            snprintf(out + at, sizeof(out) - at, "%s %d; ", c->path, (int)c->chunks_changed);
        else
            snprintf(out + at, sizeof(out) - at, "%s %s; ", c->path, what[c->what]);
    }
    OK(&t, rc);
    brc_iter_free(it);
    return out;
}

static const char *diff_of(brc_session *s, const char *a)
{
    brc_iter *it;
    brc_diff_opts opts = BRC_DIFF_OPTS_INIT;
    opts.session = s;
    OK(&t, brc_diff(&it, t.repo, a, NULL, &opts, &t.err));
    return told(it);
}

static const char *diff_of_the_file(void)
{
    brc_iter *it;
    OK(&t, brc_diff(&it, t.repo, NULL, NULL, NULL, &t.err));
    return told(it);
}

CASE("changes", .setup = changes_setup, .teardown = t_stop, .timeout = 60);

/* ---- differences -------------------------------- */

TEST(each_session_has_differences_of_its_own)
{
    brc_session *mine = session_on("main", BRC_SESSION_PRIVATE);
    brc_session *side = session_on("side", BRC_SESSION_WRITE);
    ck_assert_str_eq(diff_of(mine, NULL), "");
    scenario_put(&t, mine, "/a", 0, 1);
    scenario_put(&t, mine, "/a", 5, 1);
    OK(&t, brc_group_create(side, "/g", "{\"unit\":1}", &t.err));
    OK(&t, brc_node_move(t.session, "/later", "/now", 0, &t.err));
    ck_assert_str_eq(diff_of(mine, NULL), "/a 2; ");
    ck_assert_str_eq(diff_of(side, NULL), "/g added; ");
    ck_assert_str_eq(diff_of(t.session, NULL), "/now moved; ");
    ck_assert_str_eq(diff_of_the_file(), "/now moved; ");
    ck_assert_str_eq(diff_of(mine, "side"), "/a 2; /later added; ");
    ck_assert_str_eq(diff_of(side, "main"), "/a 1; /g added; /later removed; ");
    brc_session_free(mine);
    brc_session_free(side);
}

TEST(a_version_has_those_from_its_parent)
{
    brc_iter *it;
    brc_diff_opts opts = BRC_DIFF_OPTS_INIT;
    brc_session *at = session_on("main", BRC_SESSION_AT);
    scenario_put(&t, t.session, "/a", 5, 1);
    ck_assert_str_eq(diff_of(at, NULL), "/a 1; /later added; ");
    ck_assert_str_eq(diff_of(at, "main"), "");
    opts.path = "/later";
    opts.session = at;
    OK(&t, brc_diff(&it, t.repo, "side", NULL, &opts, &t.err));
    ck_assert_str_eq(told(it), "/later added; ");
    opts.path = "/none";
    FAILS(&t, BRC_ENOTFOUND, brc_diff(&it, t.repo, "side", NULL, &opts, &t.err));
    ck_assert_ptr_null(it);
    FAILS(&t, BRC_EINVAL, brc_diff(&it, t.repo, "side", "main", &opts, &t.err));
    breccia *other = scenario_handle(&t, 0);
    FAILS(&t, BRC_EINVAL, brc_diff(&it, other, "side", NULL, &opts, &t.err));
    brc_free(other);
    brc_session_free(at);
}

/* ---- resets -------------------------------- */

static void main_must_be(int which)
{
    char hex[65], now[65];
    brc_oid id;
    OK(&t, brc_resolve(&id, t.repo, "main", &t.err));
    ck_assert_str_eq(brc_oid_format(now, &id), brc_oid_format(hex, &commits[which]));
}

/* Not the current branch, and not its changes. */
LOOP(a_session_resets_its_branch, 0, 2)
{
    const int hard = _i;
    brc_session *side = session_on("side", BRC_SESSION_WRITE);
    scenario_put(&t, t.session, "/a", 7, 70);
    scenario_put(&t, side, "/a", 5, 50);
    OK(&t, brc_reset(NULL, side, "main", hard ? BRC_RESET_HARD : 0, NULL, &t.err));
    ck_assert_str_eq(diff_of(t.session, NULL), "/a 1; ");
    ck_assert_str_eq(diff_of(side, NULL), hard ? "" : "/a 2; /later removed; ");
    ck_assert_int_eq(scenario_number(&t, side, "/a", 0), hard ? 10 : 0);
    main_must_be(1);
    brc_session_free(side);
}

/* Its own changes stay, or go; those that others share stay. */
LOOP(a_private_session_resets_its_branch, 0, 2)
{
    const int hard = _i;
    brc_session *mine = session_on("main", BRC_SESSION_PRIVATE);
    scenario_put(&t, t.session, "/a", 7, 70);
    scenario_put(&t, mine, "/a", 5, 50);
    FAILS(&t, BRC_ESTALE,
          brc_reset(NULL, mine, "side", hard ? BRC_RESET_HARD : 0, &commits[0], &t.err));
    ck_assert_str_eq(diff_of(mine, NULL), "/a 1; ");
    OK(&t, brc_reset(NULL, mine, "side", hard ? BRC_RESET_HARD : 0, &commits[1], &t.err));
    main_must_be(0);
    ck_assert_int_eq(scenario_number(&t, t.session, "/a", 7), 70);
    ck_assert_int_eq(scenario_number(&t, mine, "/a", 0), hard ? 0 : 10);
    ck_assert_int_eq(scenario_number(&t, mine, "/a", 5), hard ? 5 : 50);
    ck_assert_str_eq(diff_of(mine, NULL), hard ? "" : "/a 2; /later added; ");
    scenario_whole(&t);
    if (!hard)
        OK(&t, scenario_commit_of(&t, mine, "again", NULL));
    else
        FAILS(&t, BRC_EMISUSE, scenario_commit_of(&t, mine, "again", NULL));
    brc_session *now = session_on("main", BRC_SESSION_AT);
    ck_assert_int_eq(scenario_number(&t, now, "/a", 0), hard ? 0 : 10);
    ck_assert_int_eq(scenario_number(&t, now, "/a", 5), hard ? 5 : 50);
    brc_session_free(now);
    brc_session_free(mine);
}

/* Within a transaction that is undone nothing has happened. */
LOOP(an_undone_reset_leaves_a_private_session_as_it_was, 0, 2)
{
    brc_session *mine = session_on("main", BRC_SESSION_PRIVATE);
    scenario_put(&t, mine, "/a", 5, 50);
    OK(&t, brc_begin(t.repo, &t.err));
    OK(&t, brc_reset(NULL, mine, "side", _i ? BRC_RESET_HARD : 0, NULL, &t.err));
    OK(&t, brc_end(t.repo, 0, &t.err));
    main_must_be(1);
    ck_assert_str_eq(diff_of(mine, NULL), "/a 1; ");
    OK(&t, scenario_commit_of(&t, mine, "again", NULL));
    ck_assert_int_eq(scenario_number(&t, t.session, "/a", 5), 50);
    brc_session_free(mine);
}

TEST(what_cannot_be_reset_is_refused)
{
    brc_session *view = session_on("main", BRC_SESSION_VIEW);
    FAILS(&t, BRC_EREADONLY, brc_reset(NULL, view, "side", 0, NULL, &t.err));
    FAILS(&t, BRC_EINVAL, brc_reset(NULL, t.session, "side", 2, NULL, &t.err));
    FAILS(&t, BRC_ENOTFOUND, brc_reset(NULL, t.session, "nowhere", 0, NULL, &t.err));
    OK(&t, brc_bulk_begin(t.session, &t.err));
    FAILS(&t, BRC_EMISUSE, brc_reset(NULL, t.session, "side", 0, NULL, &t.err));
    OK(&t, brc_bulk_end(t.session, BRC_END_KEEP, &t.err));
    main_must_be(1);
    brc_session_free(view);
}

/* Each group has two copies of the one before it: 2^levels uncommitted nodes, if that can be done.
 * *rows: how many there are in the end; the result is the level. */
static int pile_up(int levels, int64_t *rows, int *code)
{
    char from[20], to[24];
    *code = BRC_OK;
    OK(&t, brc_group_create(t.session, "/g0", NULL, &t.err));
    int level = 1;
    for (; level <= levels && *code == BRC_OK; level++) {
        snprintf(from, sizeof(from), "/g%d", level - 1);
        snprintf(to, sizeof(to), "/g%d", level);
        OK(&t, brc_group_create(t.session, to, NULL, &t.err));
        for (int i = 0; i < 2 && *code == BRC_OK; i++) {
            snprintf(to, sizeof(to), "/g%d/%c", level, 'a' + i);
            *code = brc_node_move(t.session, from, to, BRC_NODE_COPY, &t.err);
        }
    }
    *rows = scenario_ask(&t, "SELECT count(*) FROM draft_node");
    return level - 1;
}

/* n levels and 4n: the limit of nodes ends both at the same one, and bounds what is there then. */
TEST(copies_of_copies_end_at_the_limit_of_nodes)
{
    enum { MOST = 500, N = 12 };
    int64_t rows[2];
    int level[2], code;
    for (int i = 0; i < 2; i++) {
        brc_open_opts opts = BRC_OPEN_OPTS_INIT;
        opts.max_nodes = MOST;
        scenario_close(&t);
        scenario_open(&t, &opts, 0);
        level[i] = pile_up(i == 0 ? N : 4 * N, &rows[i], &code);
        ck_assert_int_eq(code, BRC_ELIMIT);
        ck_assert_ptr_nonnull(strstr(t.err.message, "--max-nodes"));
        FAILS(&t, BRC_ELIMIT, brc_node_move(t.session, "/g8", "/moved", 0, &t.err));
        OK(&t, brc_node_move(t.session, "/g3", "/moved", 0, &t.err));
        OK(&t, brc_session_discard(t.session, &t.err));
    }
    ck_assert_int_eq(level[0], level[1]);
    ck_assert_int_eq((int)rows[0], (int)rows[1]);
    ck_assert_int_lt((int)rows[0], 8 * MOST);
    ck_assert_int_gt(level[0], 8);
}
