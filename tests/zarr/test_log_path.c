/* The log of a path: through moves and merges, and against a model of what each commit touched. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../kit/scenario.h"
#include "../kit/suite.h"

TEST_SUITE(log_path);

SCENARIO_FIXTURE(t)
static char said[8192];

/* The commits that are told, the newest first: "message@path message@path". */
static const char *told(const char *rev, const char *path, uint32_t flags)
{
    const brc_log_opts opts = { .size = sizeof(opts), .path = path, .flags = flags };
    const brc_commit *commit;
    brc_iter *it;
    size_t len = 0;
    int rc;
    said[0] = '\0';
    OK(&t, brc_log(&it, t.repo, rev, &opts, &t.err));
    while ((rc = brc_next(it, &commit, &t.err)) == 1)
        len += (size_t)snprintf(said + len, sizeof(said) - len, "%s%s@%s", len > 0 ? " " : "",
                                commit->message, commit->path);
    brc_iter_free(it);
    if (rc < 0)
        snprintf(said, sizeof(said), "%s", t.err.message);
    return said;
}

#define TOLD(rev, path, flags, wanted) ck_assert_str_eq(told(rev, path, flags), wanted)

static void set(const char *path, const char *key, const char *json)
{
    OK(&t, brc_attrs_set(t.session, path, key, json, &t.err));
}

static void change(const char *path, const char *json, const char *message)
{
    set(path, "v", json);
    scenario_commit(&t, message);
}

static void group(const char *path, const char *message)
{
    OK(&t, brc_group_create(t.session, path, NULL, &t.err));
    scenario_commit(&t, message);
}

static void move(const char *from, const char *to, const char *message)
{
    OK(&t, brc_node_move(t.session, from, to, 0, &t.err));
    scenario_commit(&t, message);
}

/* The session follows the current branch. */
static void go_to(const char *branch, int create)
{
    if (create)
        OK(&t, brc_ref_create(t.repo, branch, NULL, NULL, 0, &t.err));
    OK(&t, brc_switch(t.repo, branch, 0, &t.err));
    brc_session_free(t.session);
    OK(&t, brc_session_open(&t.session, t.repo, NULL, BRC_SESSION_WRITE, &t.err));
}

static void merge(const char *rev, uint32_t flags, const char *message)
{
    brc_merge_opts opts = BRC_MERGE_OPTS_INIT;
    brc_merge_result result = BRC_MERGE_RESULT_INIT;
    opts.flags = flags;
    opts.message = message;
    OK(&t, brc_merge(&result, NULL, t.repo, rev, &opts, &t.err));
    ck_assert_int_eq(result.result, BRC_MERGE_MERGED);
}

CASE("log_path", .setup = t_start, .teardown = t_stop);

TEST(a_moved_node_is_followed_to_its_earlier_names)
{
    group("/a", "made");
    change("/a", "1", "one");
    group("/other", "other");
    move("/a", "/b", "moved");
    change("/b", "2", "two");
    TOLD(NULL, "/b", 0, "two@/b moved@/b one@/a made@/a");
    TOLD(NULL, "/a", 0, "moved@/a one@/a made@/a");
    ck_assert_ptr_nonnull(strstr(told(NULL, "/none", 0), "no commit here has a node /none"));
}

TEST(a_move_of_a_group_moves_what_is_in_it)
{
    group("/g", "g");
    group("/g/a", "made");
    change("/g", "1", "above");
    move("/g", "/h", "moved");
    change("/h/a", "1", "one");
    TOLD(NULL, "/h/a", 0, "one@/h/a moved@/h/a made@/g/a");
}

TEST(what_is_made_where_another_was_has_its_own_past)
{
    group("/a", "first");
    change("/a", "1", "one");
    OK(&t, brc_node_move(t.session, "/a", "/b", 0, &t.err));
    group("/a", "second");
    change("/a", "2", "two");
    TOLD(NULL, "/a", 0, "two@/a second@/a");
    TOLD(NULL, "/b", 0, "second@/b one@/a first@/a");
}

TEST(a_node_that_was_removed_is_told_of)
{
    group("/a", "made");
    OK(&t, brc_node_remove(t.session, "/a", &t.err));
    scenario_commit(&t, "removed");
    group("/b", "b");
    group("/a", "again");
    TOLD(NULL, "/a", 0, "again@/a removed@/a made@/a");
    TOLD("HEAD~1", "/a", 0, "removed@/a made@/a");
}

/* Both sides change /a; main keeps its own. */
TEST(what_a_merge_gave_up_is_told_of_in_full_only)
{
    group("/a", "made");
    go_to("side", 1);
    change("/a", "1", "theirs");
    group("/x", "x");
    go_to("main", 0);
    change("/a", "2", "ours");
    merge("side", BRC_MERGE_OURS, "merge");
    TOLD(NULL, "/a", 0, "ours@/a made@/a");
    TOLD(NULL, "/a", BRC_LOG_FULL, "ours@/a theirs@/a made@/a");
    TOLD(NULL, "/x", 0, "x@/x");
}

TEST(a_merge_that_put_two_changes_together_is_told_of_with_both)
{
    group("/a", "made");
    go_to("side", 1);
    set("/a", "p", "1");
    scenario_commit(&t, "theirs");
    go_to("main", 0);
    set("/a", "q", "2");
    scenario_commit(&t, "ours");
    merge("side", 0, "merge");
    told(NULL, "/a", 0);
    ck_assert_ptr_nonnull(strstr(said, "merge@/a "));
    ck_assert_ptr_nonnull(strstr(said, " ours@/a"));
    ck_assert_ptr_nonnull(strstr(said, " theirs@/a"));
    ck_assert_str_eq(strrchr(said, ' '), " made@/a");
}

/* The other side changed the node under its old name. */
TEST(an_edit_that_followed_a_move_is_told_of_under_the_old_name)
{
    group("/a", "made");
    go_to("side", 1);
    change("/a", "1", "theirs");
    go_to("main", 0);
    move("/a", "/b", "moved");
    merge("side", 0, "merge");
    told(NULL, "/b", 0);
    ck_assert_ptr_nonnull(strstr(said, "merge@/b "));
    ck_assert_ptr_nonnull(strstr(said, "moved@/b "));
    ck_assert_ptr_nonnull(strstr(said, "theirs@/a "));
    ck_assert_str_eq(strrchr(said, ' '), " made@/a");
}

/* ---- against a model -------------------------------- */

enum { NODES = 4, STEPS = 60 };

typedef struct tracked {
    int there;
    char path[16], log[STEPS * 24];
} tracked;

static void track(tracked *node, int step)
{
    char older[sizeof(node->log)];
    snprintf(older, sizeof(older), "%s", node->log);
    snprintf(node->log, sizeof(node->log), "%d@%.15s%s%.1400s", step, node->path,
             older[0] != '\0' ? " " : "", older);
}

static void step_node(tracked *node, int step, uint64_t *random)
{
    char text[24];
    snprintf(text, sizeof(text), "%d", step);
    if (!node->there) {
        snprintf(node->path, sizeof(node->path), "/n%d", step);
        node->log[0] = '\0';
        node->there = 1;
        track(node, step);
        group(node->path, text);
    } else if (scenario_below(random, 3) == 0) {
        char from[16];
        snprintf(from, sizeof(from), "%s", node->path);
        snprintf(node->path, sizeof(node->path), "/n%d", step);
        track(node, step);
        move(from, node->path, text);
    } else if (scenario_below(random, 6) == 0) {
        node->there = 0;
        OK(&t, brc_node_remove(t.session, node->path, &t.err));
        scenario_commit(&t, text);
    } else {
        track(node, step);
        change(node->path, text, text);
    }
}

TEST(random_edits_and_moves_are_told_of_as_they_were)
{
    tracked nodes[NODES] = { 0 };
    uint64_t random = 20261123;
    for (int step = 0; step < STEPS; step++)
        step_node(&nodes[scenario_below(&random, NODES)], step, &random);
    for (int i = 0; i < NODES; i++)
        if (nodes[i].there)
            TOLD(NULL, nodes[i].path, 0, nodes[i].log);
}
