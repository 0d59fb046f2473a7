/*
 * Pairs and triples of structural changes: what two sides do to a small tree, one change each, or
 * two and one, or two and two, merged in both directions against an oracle that knows nodes by
 * numbers. What goes wrong elsewhere are combinations. BRECCIA_TRIPLES=all takes every triple.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../kit/scenario.h"
#include "../kit/suite.h"

TEST_SUITE(merge_structure);

enum { ROOT, A, G, B, H, C, NEW_A, NEW_Z, NEW_N, NEW_K, NODES };
enum { EDIT, MOVE, REMOVE, MAKE };

typedef struct tree_node {
    int there, parent, is_group, value;
    const char *name;
} tree_node;
typedef struct tree {
    tree_node node[NODES];
} tree;

static const struct change {
    int what, node, to; /* to: MOVE, MAKE: the parent */
    const char *name;
} changes[] = {
    {EDIT, A, 0, NULL},     {EDIT, B, 0, NULL},      {EDIT, C, 0, NULL},
    {MOVE, A, ROOT, "z"},   {MOVE, A, G, "a"},       {MOVE, A, H, "a"},    {MOVE, A, G, "b"},
    {MOVE, B, ROOT, "y"},   {MOVE, B, H, "b"},       {MOVE, B, ROOT, "a"}, {MOVE, C, ROOT, "z"},
    {MOVE, C, G, "b"},      {MOVE, G, ROOT, "k"},    {MOVE, G, H, "g"},    {MOVE, H, G, "h"},
    {MOVE, H, ROOT, "k"},   {MOVE, H, ROOT, "g"},    {REMOVE, A, 0, NULL}, {REMOVE, B, 0, NULL},
    {REMOVE, C, 0, NULL},   {REMOVE, G, 0, NULL},    {REMOVE, H, 0, NULL}, {MAKE, NEW_A, ROOT, "a"},
    {MAKE, NEW_Z, ROOT, "z"}, {MAKE, NEW_N, G, "n"}, {MAKE, NEW_K, ROOT, "k"},
};
enum { CHANGES = sizeof(changes) / sizeof(changes[0]) };

static scenario t;
static tree base;

/* ---- the oracle ----------------------------------------------------------------------------- */

static const tree_node *at_place(const tree *x, int parent, const char *name)
{
    for (int i = 1; i < NODES; i++)
        if (x->node[i].there && x->node[i].parent == parent && strcmp(x->node[i].name, name) == 0)
            return &x->node[i];
    return NULL;
}

/* Returns whether `node` is `above` or lies below it; 0 as well if the parents of `node` form a
 * circle. */
static int is_under(const tree *x, int node, int above)
{
    for (int i = 0; i < NODES && node != above; i++) {
        if (node == ROOT)
            return 0;
        node = x->node[node].parent;
    }
    return node == above;
}

static void path_of(const tree *x, int node, char *out, size_t size)
{
    char above[64] = "";
    if (x->node[node].parent != ROOT)
        path_of(x, x->node[node].parent, above, sizeof(above));
    snprintf(out, size, "%s/%s", above, x->node[node].name);
}

/* Returns whether the change can be made to the tree. */
static int is_possible(const tree *x, const struct change *c)
{
    if (c->what == MAKE)
        return !x->node[c->node].there && x->node[c->to].there && !at_place(x, c->to, c->name);
    return x->node[c->node].there && (c->what != MOVE || (x->node[c->to].there &&
                                                          !is_under(x, c->to, c->node) &&
                                                          !at_place(x, c->to, c->name)));
}

static void change_tree(tree *x, const struct change *c)
{
    tree_node *n = &x->node[c->node];
    if (c->what == EDIT)
        n->value = 50;
    if (c->what == MAKE)
        *n = (tree_node){.there = 1, .is_group = c->node == NEW_K, .value = 100 + c->node};
    if (c->what == MAKE || c->what == MOVE) {
        n->parent = c->to;
        n->name = c->name;
    }
    for (int i = NODES - 1; i > 0 && c->what == REMOVE; i--)
        if (i != c->node && x->node[i].there && is_under(x, i, c->node))
            x->node[i].there = 0;
    if (c->what == REMOVE)
        n->there = 0;
}

static int same_place(const tree_node *a, const tree_node *b)
{
    return a->parent == b->parent && strcmp(a->name, b->name) == 0;
}

static int merge_one(tree_node *out, const tree_node *b, const tree_node *o, const tree_node *th)
{
    *out = o->there ? *o : *th;
    if (!o->there || !th->there) {
        if (!b->there)
            return 1; /* new on one side */
        out->there = 0;
        const tree_node *left = o->there ? o : th;
        return !left->there || (left->value == b->value && same_place(left, b));
    }
    if (o->value != th->value)
        out->value = o->value == b->value ? th->value : o->value;
    if (same_place(o, th) || !b->there || same_place(th, b))
        return 1;
    out->parent = th->parent;
    out->name = th->name;
    return same_place(o, b);
}

/* Returns whether a side has kept the group and removed something in it. */
static int has_lost(const tree *x, int group)
{
    for (int i = 1; i < NODES; i++)
        if (base.node[i].there && base.node[i].parent == group && !x->node[i].there)
            return x->node[group].there;
    return 0;
}

/* 0: a conflict. No two edits differ. What is in a removed group may not have changed at all. */
static int merge_trees(tree *out, const tree *o, const tree *th)
{
    int clean = 1;
    out->node[ROOT] = o->node[ROOT];
    for (int i = 1; i < NODES; i++)
        clean &= merge_one(&out->node[i], &base.node[i], &o->node[i], &th->node[i]) &&
                 (o->node[i].there || !has_lost(th, i)) && (th->node[i].there || !has_lost(o, i));
    for (int i = 1; i < NODES && clean; i++) {
        const tree_node *n = &out->node[i];
        clean = !n->there || (out->node[n->parent].there && is_under(out, i, ROOT) &&
                              at_place(out, n->parent, n->name) == n);
    }
    return clean;
}

/* ---- the library ---------------------------------------------------------------------------- */

static void change_file(const tree *x, const struct change *c)
{
    char path[64], to[64] = "";
    if (c->to != ROOT)
        path_of(x, c->to, to, sizeof(to));
    snprintf(to + strlen(to), sizeof(to) - strlen(to), "/%s", c->name != NULL ? c->name : "");
    if (c->what != MAKE)
        path_of(x, c->node, path, sizeof(path));
    if (c->what == EDIT)
        scenario_set_number(&t, path, 0, 50);
    else if (c->what == MOVE)
        OK(&t, brc_node_move(t.session, path, to, 0, &t.err));
    else if (c->what == REMOVE)
        OK(&t, brc_node_remove(t.session, path, &t.err));
    else if (c->node == NEW_K)
        OK(&t, brc_group_create(t.session, to, NULL, &t.err));
    else
        scenario_numbers(&t, to, 2, 2, 100 + c->node);
}

static void be_on(const char *branch, const char *rev)
{
    brc_session_free(t.session);
    t.session = NULL;
    OK(&t, brc_switch(t.repo, branch, BRC_SWITCH_DISCARD, &t.err));
    OK(&t, brc_reset(t.repo, NULL, rev, BRC_RESET_HARD, NULL, &t.err));
    OK(&t, brc_session_open(&t.session, t.repo, NULL, BRC_SESSION_WRITE, &t.err));
}

/* The branch is the base with these changes, as far as they can be made. */
static void commit_changes(const char *branch, const int *which, int n, tree *out)
{
    char message[48];
    *out = base;
    be_on(branch, "main");
    for (int i = 0; i < n; i++)
        if (is_possible(out, &changes[which[i]])) {
            change_file(out, &changes[which[i]]);
            change_tree(out, &changes[which[i]]);
        }
    snprintf(message, sizeof(message), "%s %d %d", branch, which[0], n > 1 ? which[1] : -1);
    if (!scenario_clean(&t))
        scenario_commit(&t, message);
}

/* The file has these nodes, and no others. */
static void check_tree(const tree *want, const char *label)
{
    char path[64], got[600];
    int left = -1, kind; /* without the root */
    scenario_tree(&t, t.session, "/", 1, got, sizeof(got));
    for (const char *c = got; *c != '\0'; c++)
        left += *c == ' ';
    for (int i = 1; i < NODES; i++) {
        const tree_node *n = &want->node[i];
        if (!n->there)
            continue;
        left--;
        path_of(want, i, path, sizeof(path));
        OK(&t, brc_node_kind(&kind, t.session, path, &t.err));
        ck_assert_msg(kind == (n->is_group ? BRC_GROUP : BRC_ARRAY), "%s: %s", label, path);
        if (!n->is_group)
            ck_assert_msg(scenario_number(&t, t.session, path, 0) == n->value, "%s: %s", label,
                          path);
    }
    ck_assert_msg(left == 0, "%s: %s", label, got);
}

/* Open: whole, each conflict named once; then settled for a side, or dropped. */
static void check_open(const char *rev, uint32_t side, const char *label)
{
    brc_merge_opts opts = BRC_MERGE_OPTS_INIT;
    brc_merge_result r = BRC_MERGE_RESULT_INIT;
    brc_pick_result done = BRC_PICK_RESULT_INIT;
    brc_open_state state = BRC_OPEN_STATE_INIT;
    uint64_t n;
    opts.flags = BRC_MERGE_KEEP;
    OK(&t, brc_merge(&r, NULL, t.repo, rev, &opts, &t.err));
    ck_assert_msg(r.result == BRC_MERGE_CONFLICT, "%s", label);
    OK(&t, brc_merge_state(&state, NULL, t.repo, &t.err));
    ck_assert_msg(state.open == r.conflicts, "%s: %d open, %d told", label, (int)state.open,
                  (int)r.conflicts);
    scenario_whole(&t);
    OK(&t, brc_merge_settle(&n, t.repo, side, NULL, 0, &t.err));
    ck_assert_msg(n > 0, "%s", label);
    OK(&t, brc_continue(&done, NULL, t.repo, NULL, &t.err));
    ck_assert_msg(done.result == BRC_PICK_COMMITTED || side == BRC_MERGE_THEIRS, "%s", label);
    if (done.result != BRC_PICK_COMMITTED)
        OK(&t, brc_abort(t.repo, &t.err));
    scenario_whole(&t);
}

static void check_merge(const char *into, const char *rev, const tree *want, int clean,
                        const char *label)
{
    brc_merge_opts opts = BRC_MERGE_OPTS_INIT;
    brc_merge_result r = BRC_MERGE_RESULT_INIT;
    char tip[80];
    brc_oid id;
    OK(&t, brc_resolve(&id, t.repo, into, &t.err));
    brc_oid_format(tip, &id);
    be_on(into, tip);
    opts.flags = BRC_MERGE_NO_FF;
    OK(&t, brc_merge(&r, NULL, t.repo, rev, &opts, &t.err));
    ck_assert_msg((r.result == BRC_MERGE_CONFLICT) == !clean, "%s, %s into %s: %s", label, rev,
                  into, clean ? "a conflict that is none" : "a conflict was not seen");
    if (clean) {
        be_on(into, "HEAD");
        check_tree(want, label);
        be_on(into, tip);
        return;
    }
    check_open(rev, BRC_MERGE_OURS, label);
    be_on(into, tip);
    check_open(rev, BRC_MERGE_THEIRS, label);
    be_on(into, tip);
}

static void check_changes(const int *ours, int n, const int *theirs, int ntheirs)
{
    tree o, th, want;
    char label[80];
    snprintf(label, sizeof(label), "changes %d, %d and %d, %d", ours[0], n > 1 ? ours[1] : -1,
             theirs[0], ntheirs > 1 ? theirs[1] : -1);
    commit_changes("ours", ours, n, &o);
    commit_changes("theirs", theirs, ntheirs, &th);
    const int clean = merge_trees(&want, &o, &th);
    check_merge("ours", "theirs", &want, clean, label);
    check_merge("theirs", "ours", &want, clean, label);
}

static void structure_setup(void)
{
    static const tree start = {{
        [ROOT] = {1, ROOT, 1, 0, ""}, [A] = {1, ROOT, 0, 1, "a"}, [G] = {1, ROOT, 1, 0, "g"},
        [B] = {1, G, 0, 2, "b"}, [H] = {1, ROOT, 1, 0, "h"}, [C] = {1, H, 0, 3, "c"},
    }};
    base = start;
    scenario_start(&t);
    scenario_numbers(&t, "/a", 2, 2, 1);
    scenario_numbers(&t, "/g/b", 2, 2, 2);
    scenario_numbers(&t, "/h/c", 2, 2, 3);
    scenario_commit(&t, "base");
    OK(&t, brc_ref_create(t.repo, "ours", NULL, NULL, 0, &t.err));
    OK(&t, brc_ref_create(t.repo, "theirs", NULL, NULL, 0, &t.err));
}

static void structure_teardown(void)
{
    scenario_stop(&t);
}

CASE("merge_structure", .setup = structure_setup, .teardown = structure_teardown,
     .timeout = UNTIMED);

LOOP(pairs, 0, CHANGES)
{
    for (int theirs = 0; theirs <= _i; theirs++)
        check_changes(&_i, 1, &theirs, 1);
    scenario_whole(&t);
}

/* A node moves to where one was removed, and the other side removed the first and changed the
 * second: two conflicts of one path, which are one. */
TEST(two_conflicts_of_one_place_are_one)
{
    static const int ours[] = {18, 6}, theirs[] = {17, 1};
    check_changes(ours, 2, theirs, 2);
}

LOOP(two_and_two, 0, CHANGES)
{
    uint64_t random = (uint64_t)_i + 100;
    for (int i = 0; i < 6; i++) {
        int pick[4];
        for (int k = 0; k < 4; k++)
            pick[k] = (int)scenario_below(&random, CHANGES);
        check_changes(pick, 2, pick + 2, 2);
    }
    scenario_whole(&t);
}

LOOP(triples, 0, CHANGES)
{
    const int all = getenv("BRECCIA_TRIPLES") != NULL;
    uint64_t random = (uint64_t)_i + 1;
    for (int first = 0; first < CHANGES; first++)
        for (int second = 0; second < CHANGES; second++) {
            const int ours[] = {first, second};
            if (first != second && (all || scenario_below(&random, 80) == 0))
                check_changes(ours, 2, &_i, 1);
        }
    scenario_whole(&t);
}

/* /a of another rank, all of one value. */
static void commit_a(const char *branch, int ndim, int32_t value)
{
    static const uint64_t shape[] = {4, 4, 4}, chunk[] = {2, 2, 2};
    brc_sel all = BRC_SEL_INIT;
    be_on(branch, branch);
    OK(&t, brc_node_remove(t.session, "/a", &t.err));
    brc_array *a = scenario_array(&t, "/a", "int32", ndim, shape, chunk, NULL, NULL);
    all.ndim = ndim;
    for (int i = 0; i < ndim; i++) {
        all.count[i] = shape[i];
        all.step[i] = 1;
    }
    OK(&t, brc_array_fill(a, &all, &value, &t.err));
    brc_array_free(a);
    scenario_commit(&t, "of another rank");
}

static void merge_for(const char *into, const char *rev, uint32_t side)
{
    brc_merge_opts opts = BRC_MERGE_OPTS_INIT;
    brc_merge_result r = BRC_MERGE_RESULT_INIT;
    be_on(into, into);
    opts.flags = side;
    OK(&t, brc_merge(&r, NULL, t.repo, rev, &opts, &t.err));
    ck_assert_int_eq(r.result, BRC_MERGE_MERGED);
}

static void commit_number(const char *branch, const char *path, int32_t value)
{
    be_on(branch, branch);
    scenario_set_number(&t, path, 0, value);
    scenario_commit(&t, "a number");
}

/* Two branches that were merged crosswise have several bases. Where an array has another rank in
 * each, the key of one's chunk may be the beginning of another's: together they are not a map. */
LOOP(bases_with_arrays_of_different_ranks, 0, 64)
{
    const int first = _i / 16, ours = _i / 4 % 4, theirs = _i % 4;
    commit_a("main", first, 1);
    OK(&t, brc_ref_delete(t.repo, "ours", BRC_DELETE_FORCE, &t.err));
    OK(&t, brc_ref_delete(t.repo, "theirs", BRC_DELETE_FORCE, &t.err));
    OK(&t, brc_ref_create(t.repo, "ours", NULL, NULL, 0, &t.err));
    OK(&t, brc_ref_create(t.repo, "theirs", NULL, NULL, 0, &t.err));
    commit_a("ours", ours, 2);
    commit_a("theirs", theirs, 3);
    OK(&t, brc_ref_create(t.repo, "one", "ours", NULL, BRC_REF_TAG, &t.err));
    merge_for("ours", "theirs", BRC_MERGE_OURS);
    merge_for("theirs", "one", BRC_MERGE_THEIRS);
    commit_number("ours", "/g/b", 20);
    commit_number("theirs", "/h/c", 30);
    merge_for("ours", "theirs", 0);
    be_on("ours", "ours");
    ck_assert_int_eq(scenario_number(&t, t.session, "/g/b", 0), 20);
    ck_assert_int_eq(scenario_number(&t, t.session, "/h/c", 0), 30);
    brc_array *a = scenario_array_at(&t, t.session, "/a");
    ck_assert_int_eq(brc_array_describe(a)->ndim, ours);
    brc_array_free(a);
    scenario_whole(&t);
}

/* Where the bases disagree, no side owns the array: nobody knows who changed it since. */
LOOP(an_array_of_which_bases_have_other_ranks_is_no_ones, 0, 2)
{
    brc_merge_opts opts = BRC_MERGE_OPTS_INIT;
    brc_merge_result r = BRC_MERGE_RESULT_INIT;
    commit_a("ours", 1, 2);
    commit_a("theirs", 2, 3);
    OK(&t, brc_ref_create(t.repo, "one", "ours", NULL, BRC_REF_TAG, &t.err));
    merge_for("ours", "theirs", BRC_MERGE_OURS);
    merge_for("theirs", "one", BRC_MERGE_THEIRS);
    commit_number(_i ? "ours" : "theirs", "/a", 9);
    commit_number("ours", "/g/b", 20);
    commit_number("theirs", "/h/c", 30);
    be_on("ours", "ours");
    OK(&t, brc_merge(&r, NULL, t.repo, "theirs", &opts, &t.err));
    ck_assert_int_eq(r.result, BRC_MERGE_CONFLICT);
    merge_for("ours", "theirs", _i ? BRC_MERGE_OURS : BRC_MERGE_THEIRS);
    be_on("ours", "ours");
    ck_assert_int_eq(scenario_number(&t, t.session, "/a", 0), 9);
}
