/*
 * Rules that hold for all versions, whatever is in them: random small histories, each from the seed
 * that a failure names.
 */
#include <stdio.h>
#include <string.h>

#include "../kit/scenario.h"
#include "../kit/suite.h"
#include "../kit/versions.h"

TEST_SUITE(algebra);

enum { ROUNDS = 24 };
enum { LEFT = 0, RIGHT = 1, ANY = 2 }; /* left and right never meet */

static scenario t;
static uint64_t seed, dice;

static void algebra_setup(void)
{
    scenario_start(&t);
    scenario_numbers(&t, "/a", 8, 4, 1);
    scenario_numbers(&t, "/g/b", 8, 4, 1);
    for (int i = 0; i < 2; i++) {
        OK(&t, brc_attrs_set(t.session, i == 0 ? "/a" : "/g/b", "left", "9", &t.err));
        OK(&t, brc_attrs_set(t.session, i == 0 ? "/a" : "/g/b", "right", "9", &t.err));
    }
    scenario_commit(&t, "base");
}

static void algebra_teardown(void)
{
    scenario_stop(&t);
}

#define HOLDS(condition) \
    ck_assert_msg(condition, "seed %llu: %s", (unsigned long long)seed, #condition)

static void roll(int round, uint64_t from)
{
    seed = from + (uint64_t)round;
    dice = seed;
}

static size_t below(size_t n)
{
    return scenario_below(&dice, n);
}

/* ---- random edits -------------------------------- */

static int is_there(const char *path)
{
    brc_array *a;
    brc_error none = BRC_ERROR_INIT;
    const int rc = brc_array_open(&a, t.session, path, &none);
    if (rc == BRC_OK)
        brc_array_free(a);
    return rc == BRC_OK;
}

static const char *any_array(void)
{
    const char *b = is_there("/g/b") ? "/g/b" : is_there("/h/b") ? "/h/b" : "/a";
    return below(2) == 0 ? "/a" : b;
}

static void edit_element(int side)
{
    const char *path = any_array();
    brc_array *a = scenario_array_at(&t, t.session, path);
    const uint64_t n = brc_array_describe(a)->shape[0];
    brc_array_free(a);
    const uint64_t i = side == ANY ? below(n) : below(n / 2) * 2 + (uint64_t)side;
    scenario_set_number(&t, path, i, (int32_t)(side == ANY ? below(3) : 100 + below(50)));
}

/* Members keep the order in which they were written: left and right ones are there already. */
static void edit_attribute(int side)
{
    static const char *const keys[] = {"left", "right", "any"};
    char json[32];
    const char *path = any_array();
    snprintf(json, sizeof(json), "%zu", below(4));
    const int drops = side == ANY && below(5) == 0;
    const int rc = brc_attrs_set(t.session, path, keys[side], drops ? NULL : json, &t.err);
    if (!drops || rc != BRC_ENOTFOUND) /* it has none */
        OK(&t, rc);
}

static void edit_new(int side)
{
    static const char *const paths[] = {"/left", "/right", "/any"};
    if (!is_there(paths[side]))
        scenario_numbers(&t, paths[side], 4, 2, (int32_t)below(3));
    else if (side == ANY)
        OK(&t, brc_node_remove(t.session, paths[side], &t.err));
    else
        scenario_set_number(&t, paths[side], below(4), (int32_t)below(9));
}

static void edit_place(int side)
{
    if (side == RIGHT)
        return;
    if (is_there("/g/b"))
        OK(&t, brc_node_move(t.session, "/g", "/h", 0, &t.err));
    else if (is_there("/h/b"))
        OK(&t, brc_node_move(t.session, "/h", "/g", 0, &t.err));
}

static void edit_shape(int side)
{
    brc_array *a;
    const uint64_t n = 6 + below(5);
    if (side != ANY || !is_there("/a"))
        return;
    OK(&t, brc_array_open(&a, t.session, "/a", &t.err));
    OK(&t, brc_array_resize(a, &n, &t.err));
    brc_array_free(a);
}

static void edit(int side)
{
    static void (*const edits[])(int side) = {edit_element, edit_element, edit_element,
                                              edit_attribute, edit_new, edit_place, edit_shape};
    edits[below(sizeof(edits) / sizeof(edits[0]))](side);
}

static void commit_edits(int side, size_t most)
{
    brc_commit_opts opts = BRC_COMMIT_OPTS_INIT;
    brc_oid id;
    for (size_t n = 1 + below(most); n > 0; n--)
        edit(side);
    opts.message = "edits";
    opts.flags = BRC_COMMIT_ALLOW_EMPTY;
    OK(&t, brc_session_commit(&id, t.session, &opts, &t.err));
}

/* ---- versions -------------------------------- */

static void new_branch(const char *name, const char *at)
{
    OK(&t, brc_ref_create(t.repo, name, at, NULL, 0, &t.err));
    scenario_be_on(&t, name);
}

static int equal_roots(const char *a, const char *b)
{
    brc_oid id;
    brc_commit *x, *y;
    OK(&t, brc_resolve(&id, t.repo, a, &t.err));
    OK(&t, brc_commit_read(&x, t.repo, &id, &t.err));
    OK(&t, brc_resolve(&id, t.repo, b, &t.err));
    OK(&t, brc_commit_read(&y, t.repo, &id, &t.err));
    const int same = memcmp(&x->root, &y->root, sizeof(x->root)) == 0;
    brc_commit_free(x);
    brc_commit_free(y);
    return same;
}

static int merge_here(const char *rev)
{
    brc_merge_result r = BRC_MERGE_RESULT_INIT;
    OK(&t, brc_merge(&r, NULL, t.repo, rev, NULL, &t.err));
    return r.result;
}

CASE("algebra", .setup = algebra_setup, .teardown = algebra_teardown, .timeout = 60);

/* ---- diff -------------------------------- */

LOOP(a1_a_version_does_not_differ_from_itself, 0, ROUNDS)
{
    brc_iter *it;
    const brc_change *c;
    roll(_i, 1000);
    commit_edits(ANY, 8);
    commit_edits(ANY, 8);
    OK(&t, brc_diff(&it, t.repo, "HEAD", "HEAD", NULL, &t.err));
    HOLDS(brc_next(it, &c, &t.err) == 0);
    brc_iter_free(it);
}

/* Applies the list alone, so a difference that the list leaves out shows in the result. */
static void apply_diff(const char *from, const char *to)
{
    for (int additions = 0; additions < 2; additions++) {
        brc_iter *it;
        const brc_change *c;
        int rc;
        OK(&t, brc_diff(&it, t.repo, from, to, NULL, &t.err));
        while ((rc = brc_next(it, &c, &t.err)) > 0) {
            const char *gone = c->what == BRC_REMOVED ? c->path : c->from;
            if (!additions && gone != NULL)
                (void)!brc_node_remove(t.session, gone, NULL); /* with what is above it, perhaps */
            else if (additions && c->what != BRC_REMOVED)
                OK(&t, brc_node_restore(t.session, c->path, to, &t.err));
        }
        brc_iter_free(it);
        HOLDS(rc == 0);
    }
}

LOOP(a2_a_version_with_its_differences_is_the_other, 0, ROUNDS)
{
    brc_commit_opts opts = BRC_COMMIT_OPTS_INIT;
    brc_oid id;
    roll(_i, 2000);
    commit_edits(ANY, 6);
    new_branch("from", NULL);
    scenario_be_on(&t, "main");
    for (size_t n = 1 + below(3); n > 0; n--)
        commit_edits(ANY, 6);
    scenario_be_on(&t, "from");
    apply_diff("from", "main");
    opts.message = "applied";
    opts.flags = BRC_COMMIT_ALLOW_EMPTY;
    OK(&t, brc_session_commit(&id, t.session, &opts, &t.err));
    HOLDS(equal_roots("from", "main"));
}

/* ---- merge and rebase -------------------------------- */

/* Edits of any kind may conflict: then they do in both directions. */
LOOP(a3_merges_commute, 0, 2 * ROUNDS)
{
    roll(_i, 3000);
    new_branch("x", NULL);
    commit_edits(ANY, 4);
    new_branch("y", "main");
    commit_edits(ANY, 4);
    new_branch("xy", "x");
    const int forth = merge_here("y");
    new_branch("yx", "y");
    const int back = merge_here("x");
    HOLDS((forth == BRC_MERGE_CONFLICT) == (back == BRC_MERGE_CONFLICT));
    if (forth != BRC_MERGE_CONFLICT)
        HOLDS(equal_roots("xy", "yx"));
    scenario_whole(&t);
}

/* Independent commits: merged, and rebased in both directions. */
LOOP(a4_a_rebase_has_what_a_merge_has, 0, 2 * ROUNDS)
{
    brc_pick_result r = BRC_PICK_RESULT_INIT;
    roll(_i, 4000);
    new_branch("left", NULL);
    for (size_t n = 1 + below(3); n > 0; n--)
        commit_edits(LEFT, 4);
    new_branch("right", "main");
    for (size_t n = 1 + below(3); n > 0; n--)
        commit_edits(RIGHT, 4);
    new_branch("merged", "left");
    HOLDS(merge_here("right") != BRC_MERGE_CONFLICT);
    new_branch("rebased", "left");
    OK(&t, brc_rebase(&r, NULL, t.repo, "right", NULL, &t.err));
    HOLDS(r.result != BRC_PICK_CONFLICT);
    HOLDS(equal_roots("merged", "rebased"));
    scenario_be_on(&t, "right");
    OK(&t, brc_rebase(&r, NULL, t.repo, "left", NULL, &t.err));
    HOLDS(r.result != BRC_PICK_CONFLICT);
    HOLDS(equal_roots("merged", "right"));
    scenario_whole(&t);
}

/* ---- roots -------------------------------- */

static void edit_side(int side, uint64_t start)
{
    dice = start;
    for (int n = 0; n < 5; n++)
        edit(side);
}

/* Left ones before right ones, and the other way; in one commit, or in two. */
LOOP(a5_equal_contents_have_one_root, 0, ROUNDS)
{
    brc_commit_opts opts = BRC_COMMIT_OPTS_INIT;
    brc_oid id;
    opts.message = "edits";
    opts.flags = BRC_COMMIT_ALLOW_EMPTY;
    roll(_i, 5000);
    new_branch("one", NULL);
    edit_side(LEFT, seed);
    edit_side(RIGHT, seed + 7);
    OK(&t, brc_session_commit(&id, t.session, &opts, &t.err));
    new_branch("two", "main");
    scenario_set_number(&t, "/a", 3, 77);
    scenario_set_number(&t, "/a", 3, 4);
    edit_side(RIGHT, seed + 7);
    OK(&t, brc_session_commit(&id, t.session, &opts, &t.err));
    edit_side(LEFT, seed);
    OK(&t, brc_session_commit(&id, t.session, &opts, &t.err));
    HOLDS(equal_roots("one", "two"));
}

/* ---- revert -------------------------------- */

static int revert_here(const char *rev)
{
    brc_pick_opts opts = BRC_PICK_OPTS_INIT;
    brc_pick_result r = BRC_PICK_RESULT_INIT;
    opts.flags = BRC_PICK_REVERT;
    OK(&t, brc_pick(&r, NULL, t.repo, rev, &opts, &t.err));
    return r.result;
}

LOOP(a6_a_revert_of_a_revert_is_the_original, 0, ROUNDS)
{
    roll(_i, 6000);
    commit_edits(ANY, 8);
    commit_edits(ANY, 8);
    OK(&t, brc_ref_create(t.repo, "before", "HEAD~1", NULL, BRC_REF_TAG, &t.err));
    OK(&t, brc_ref_create(t.repo, "after", "HEAD", NULL, BRC_REF_TAG, &t.err));
    const int back = revert_here("HEAD");
    HOLDS(back != BRC_PICK_CONFLICT && equal_roots("HEAD", "before"));
    if (back == BRC_PICK_COMMITTED)
        HOLDS(revert_here("HEAD") == BRC_PICK_COMMITTED);
    HOLDS(equal_roots("HEAD", "after"));
    scenario_whole(&t);
}

/* A change in the middle goes, and what is independent of it stays. */
LOOP(a7_a_revert_takes_one_change_alone, 0, ROUNDS)
{
    roll(_i, 7000);
    new_branch("both", NULL);
    commit_edits(LEFT, 4);
    OK(&t, brc_ref_create(t.repo, "mistake", NULL, NULL, BRC_REF_TAG, &t.err));
    commit_edits(RIGHT, 4);
    new_branch("alone", "main");
    brc_pick_result r = BRC_PICK_RESULT_INIT;
    OK(&t, brc_pick(&r, NULL, t.repo, "both", NULL, &t.err));
    HOLDS(r.result != BRC_PICK_CONFLICT);
    scenario_be_on(&t, "both");
    HOLDS(revert_here("mistake") != BRC_PICK_CONFLICT);
    HOLDS(equal_roots("both", "alone"));
    scenario_whole(&t);
}
