/* The moves that drafts and commits note: against the identities of nodes in a plain model, and in
 * cases that people meet. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../../src/history/commit.h"
#include "../../src/history/tree_diff.h"
#include "../../src/work/session_nodes.h"
#include "../kit/fsck_kit.h"
#include "../kit/scenario.h"
#include "../kit/seal.h"
#include "../kit/suite.h"

TEST_SUITE(node_moves);

/* ---- the model -------------------------------- */

enum { MOST = 400, PATH = 64, DEPTH = 3 };
static const char *const names[] = { "a", "b", "b-", "c d" };
enum { NAMES = 4 };

typedef struct plain {
    char path[PATH], base[PATH]; /* base "": it is new */
    int is_group;
} plain;

typedef struct tree {
    plain nodes[MOST];
    size_t n;
} tree;

typedef struct moving {
    scenario t;
    uint64_t random;
    tree base, now;
    int serial; /* a document of its own for each node that is made */
} moving;

static uint64_t below(moving *m, uint64_t n)
{
    return scenario_below(&m->random, n);
}

static plain *tree_find(tree *of, const char *path)
{
    for (size_t i = 0; i < of->n; i++)
        if (strcmp(of->nodes[i].path, path) == 0)
            return &of->nodes[i];
    return NULL;
}

static int at_or_under(const char *path, const char *top)
{
    size_t len = strlen(top);
    return strncmp(path, top, len) == 0 && (path[len] == '\0' || path[len] == '/');
}

static void tree_remove(tree *of, const char *path)
{
    size_t kept = 0;
    for (size_t i = 0; i < of->n; i++)
        if (!at_or_under(of->nodes[i].path, path))
            of->nodes[kept++] = of->nodes[i];
    of->n = kept;
}

static void tree_add(tree *of, const char *path, const char *base, int is_group)
{
    ck_assert_uint_lt(of->n, MOST);
    plain *node = &of->nodes[of->n++];
    snprintf(node->path, PATH, "%s", path);
    snprintf(node->base, PATH, "%s", base);
    node->is_group = is_group;
}

static int depth_of(const char *path)
{
    int n = 0;
    for (; *path != '\0'; path++)
        n += *path == '/';
    return n;
}

/* A free path in a group; "" if this try finds none. */
static void free_path(moving *m, char out[PATH])
{
    size_t at = below(m, m->now.n + 1);
    const plain *group = at < m->now.n ? &m->now.nodes[at] : NULL;
    *out = '\0';
    if (group != NULL && (!group->is_group || depth_of(group->path) >= DEPTH))
        return;
    char path[PATH + 8];
    snprintf(path, sizeof(path), "%s/%s", group != NULL ? group->path : "", names[below(m, NAMES)]);
    ck_assert_uint_lt(strlen(path), PATH);
    if (tree_find(&m->now, path) == NULL)
        memcpy(out, path, strlen(path) + 1);
}

/* ---- its steps -------------------------------- */

static void step_create(moving *m)
{
    char path[PATH], attrs[32];
    free_path(m, path);
    if (*path == '\0')
        return;
    int is_group = below(m, 3) > 0;
    snprintf(attrs, sizeof(attrs), "{\"n\":%d}", m->serial++);
    if (is_group) {
        OK(&m->t, brc_group_create(m->t.session, path, attrs, &m->t.err));
    } else {
        brc_array *array;
        brc_array_spec spec = BRC_ARRAY_SPEC_INIT;
        uint64_t shape = 1;
        spec.ndim = 1;
        spec.shape = &shape;
        spec.dtype = "int8";
        spec.attrs_json = attrs;
        OK(&m->t, brc_array_create(&array, m->t.session, path, &spec, &m->t.err));
        brc_array_free(array);
    }
    tree_add(&m->now, path, "", is_group);
}

static void step_remove(moving *m)
{
    if (m->now.n == 0)
        return;
    char path[PATH];
    snprintf(path, PATH, "%s", m->now.nodes[below(m, m->now.n)].path);
    OK(&m->t, brc_node_remove(m->t.session, path, &m->t.err));
    tree_remove(&m->now, path);
}

static void step_transfer(moving *m, int copy)
{
    char to[PATH], from[PATH];
    free_path(m, to);
    if (*to == '\0' || m->now.n == 0)
        return;
    snprintf(from, PATH, "%s", m->now.nodes[below(m, m->now.n)].path);
    if (at_or_under(to, from))
        return;
    size_t n = m->now.n;
    for (size_t i = 0; i < n; i++) {
        plain *node = &m->now.nodes[i];
        char path[2 * PATH];
        if (!at_or_under(node->path, from))
            continue;
        snprintf(path, sizeof(path), "%s%s", to, node->path + strlen(from));
        ck_assert_uint_lt(strlen(path), PATH);
        if (copy)
            tree_add(&m->now, path, "", node->is_group);
        else
            memcpy(node->path, path, strlen(path) + 1);
    }
    OK(&m->t, brc_node_move(m->t.session, from, to, copy ? BRC_NODE_COPY : 0, &m->t.err));
}

/* Where the base has a node whose parent, if it has one, is a group now. */
static void step_restore(moving *m)
{
    char parent[PATH];
    if (m->base.n == 0)
        return;
    const plain *then = &m->base.nodes[below(m, m->base.n)];
    snprintf(parent, PATH, "%.*s", (int)(strrchr(then->path, '/') - then->path), then->path);
    const plain *above = tree_find(&m->now, parent);
    if (*parent != '\0' && (above == NULL || !above->is_group))
        return;
    int in_place = *parent == '\0' || strcmp(above->base, parent) == 0;
    OK(&m->t, brc_node_restore(m->t.session, then->path, "HEAD", &m->t.err));
    tree_remove(&m->now, then->path);
    for (size_t i = 0; i < m->now.n && in_place; i++)
        if (at_or_under(m->now.nodes[i].base, then->path))
            m->now.nodes[i].base[0] = '\0';
    for (size_t i = 0; i < m->base.n; i++)
        if (at_or_under(m->base.nodes[i].path, then->path))
            tree_add(&m->now, m->base.nodes[i].path, in_place ? m->base.nodes[i].path : "",
                     m->base.nodes[i].is_group);
}

static void step_attribute(moving *m)
{
    char value[16];
    if (m->now.n == 0)
        return;
    snprintf(value, sizeof(value), "%d", m->serial++);
    OK(&m->t, brc_attrs_set(m->t.session, m->now.nodes[below(m, m->now.n)].path, "k", value,
                            &m->t.err));
}

/* Without copies and what is restored all documents differ. */
static void steps(moving *m, int n, int all_differ)
{
    for (int i = 0; i < n; i++) {
        switch (below(m, all_differ ? 8 : 10)) {
        case 0: case 1: step_create(m); break;
        case 2: step_remove(m); break;
        case 3: case 4: case 5: case 6: step_transfer(m, 0); break;
        case 7: step_attribute(m); break;
        case 8: step_transfer(m, 1); break;
        default: step_restore(m); break;
        }
    }
}

/* The nodes that are there now are the base of later moves. */
static void model_commit(moving *m)
{
    for (size_t i = 0; i < m->now.n; i++)
        snprintf(m->now.nodes[i].base, PATH, "%s", m->now.nodes[i].path);
    m->base = m->now;
}

/* ---- what must hold -------------------------------- */

/* Every node of the base is where the set says; a new one is nowhere, or in the place of one
 * that is gone. */
static void set_agrees(moving *m, const brc_move_set *set)
{
    brc_buf origin = BRC_BUF_INIT;
    int has;
    for (size_t i = 0; i < m->now.n; i++) {
        const plain *node = &m->now.nodes[i];
        OK(&m->t, brc_move_origin(&origin, &has, set, node->path, &m->t.err));
        const char *from = has ? (const char *)origin.data : "";
        if (*node->base != '\0') {
            ck_assert_msg(strcmp(from, node->base) == 0, "%s is from %s, not %s", node->path,
                          node->base, from);
            continue;
        }
        for (size_t j = 0; has && j < m->now.n; j++)
            ck_assert_msg(strcmp(m->now.nodes[j].base, from) != 0, "%s is new, and %s is from %s",
                          node->path, m->now.nodes[j].path, from);
    }
    brc_buf_dispose(&origin);
}

/* No row is there that says nothing, or of no node. */
static void rows_are_tidy(moving *m)
{
    brc_move *rows;
    size_t n;
    OK(&m->t, brc_draft_move_list(m->t.repo->store, m->t.session->draft.id, "/", &rows, &n,
                                  &m->t.err));
    for (size_t i = 0; i < n; i++) {
        const plain *node = tree_find(&m->now, rows[i].to);
        ck_assert_msg(node != NULL, "a row of %s, which does not exist", rows[i].to);
        ck_assert_str_eq(rows[i].from, node->base);
    }
    brc_moves_free(rows, n);
}

/* The moves of the branch's commit. */
static brc_commit *last_commit(moving *m)
{
    brc_oid id;
    brc_commit *commit;
    OK(&m->t, brc_rev_resolve(m->t.repo->store, "HEAD", &id, &m->t.err));
    OK(&m->t, brc_commit_get(&commit, m->t.repo->store, &id, &m->t.err));
    return commit;
}

static void commit_it(moving *m, uint32_t flags)
{
    brc_oid id;
    brc_commit_opts opts = BRC_COMMIT_OPTS_INIT;
    opts.message = "m";
    opts.flags = flags | BRC_COMMIT_ALLOW_EMPTY;
    OK(&m->t, brc_session_commit(&id, m->t.session, &opts, &m->t.err));
}

typedef struct expected {
    int what;
    const char *path, *from;
} expected;

static int expected_order(const void *a, const void *b)
{
    const expected *x = a, *y = b;
    int order = strcmp(x->path, y->path);
    return order != 0 ? order : (y->what == BRC_REMOVED) - (x->what == BRC_REMOVED);
}

static void diff_is(moving *m, brc_iter *it, const brc_move_set *set)
{
    static expected want[2 * MOST];
    static char origins[MOST][PATH];
    static uint8_t kept[MOST];
    size_t n = 0;
    brc_buf origin = BRC_BUF_INIT;
    const brc_change *change;
    memset(kept, 0, sizeof(kept));
    for (size_t i = 0; i < m->now.n; i++) {
        const plain *node = &m->now.nodes[i];
        int has;
        OK(&m->t, brc_move_origin(&origin, &has, set, node->path, &m->t.err));
        snprintf(origins[i], PATH, "%s", (const char *)origin.data);
        plain *then = has ? tree_find(&m->base, origins[i]) : NULL;
        if (then != NULL && then->is_group == node->is_group) {
            kept[then - m->base.nodes] = 1;
            if (brc_move_of_to(set, node->path) != NULL)
                want[n++] = (expected){ BRC_MOVED, node->path, origins[i] };
        } else {
            want[n++] = (expected){ BRC_ADDED, node->path, "" };
        }
    }
    for (size_t i = 0; i < m->base.n; i++)
        if (!kept[i])
            want[n++] = (expected){ BRC_REMOVED, m->base.nodes[i].path, "" };
    qsort(want, n, sizeof(want[0]), expected_order);
    size_t at = 0;
    int rc;
    while ((rc = brc_next(it, &change, &m->t.err)) > 0) {
        if (change->what == BRC_CHANGED)
            continue;
        ck_assert_msg(at < n && change->what == want[at].what &&
                          strcmp(change->path, want[at].path) == 0 &&
                          strcmp(change->from != NULL ? change->from : "", want[at].from) == 0,
                      "%d %s %s, not %d %s %s", change->what, change->path,
                      change->from != NULL ? change->from : "", at < n ? want[at].what : 0,
                      at < n ? want[at].path : "", at < n ? want[at].from : "");
        at++;
    }
    OK(&m->t, rc);
    ck_assert_uint_eq(at, n);
    brc_buf_dispose(&origin);
}

static void diff_text(moving *m, brc_buf *out, const char *a, const char *b)
{
    brc_iter *it;
    const brc_change *c;
    OK(&m->t, brc_diff(&it, m->t.repo, a, b, NULL, &m->t.err));
    while (brc_next(it, &c, &m->t.err) > 0)
        OK(&m->t, brc_buf_printf(out, &m->t.err, "%d %s<%s %zu; ", c->what, c->path,
                                 c->from != NULL ? c->from : "", c->nmetadata));
    OK(&m->t, brc_buf_terminate(out, &m->t.err));
    brc_iter_free(it);
}

static void versions_diff_is(moving *m, const brc_move_set *set, const char *a, const char *b)
{
    brc_iter *it;
    OK(&m->t, brc_diff(&it, m->t.repo, a, b, NULL, &m->t.err));
    brc_move_set moved = {0};
    const brc_move_set none = {0};
    OK(&m->t, brc_move_set_join(&moved, set, &none, &m->t.err));
    OK(&m->t, brc_move_set_without_made(&moved, &m->t.err)); /* a diff tells what is at a path */
    diff_is(m, it, &moved);
    brc_move_set_dispose(&moved);
    brc_iter_free(it);
}

CASE("model", .timeout = 120);

/* A draft, its commit, and the commit amended: all since the commit before. Every second seed has
 * documents that differ, so that diff cannot go by equal entries. */
LOOP(moves_are_what_the_model_knows, 0, 15)
{
    static moving m;
    memset(&m, 0, sizeof(m));
    m.random = (uint64_t)_i * 7919 + 1;
    scenario_start(&m.t);
    OK(&m.t, brc_begin(m.t.repo, &m.t.err));
    for (int round = 0; round < 20; round++) {
        int all_differ = round % 2;
        tree before;
        commit_it(&m, 0);
        model_commit(&m);
        steps(&m, 1 + (int)below(&m, 24), all_differ);
        rows_are_tidy(&m);
        brc_buf draft = BRC_BUF_INIT, version = BRC_BUF_INIT;
        diff_text(&m, &draft, NULL, NULL);
        commit_it(&m, 0);
        diff_text(&m, &version, NULL, "HEAD");
        ck_assert_str_eq((const char *)draft.data, (const char *)version.data);
        brc_buf_dispose(&draft);
        brc_buf_dispose(&version);
        brc_commit *first = last_commit(&m);
        set_agrees(&m, brc_commit_moves(first));
        if (all_differ)
            versions_diff_is(&m, brc_commit_moves(first), "HEAD~1", "HEAD");
        brc_commit_free(first);

        before = m.base;
        steps(&m, 1 + (int)below(&m, 12), 1); /* what the model restores is of the first base */
        commit_it(&m, BRC_COMMIT_AMEND);
        brc_commit *second = last_commit(&m);
        set_agrees(&m, brc_commit_moves(second));
        if (all_differ)
            versions_diff_is(&m, brc_commit_moves(second), "HEAD~1", "HEAD");
        brc_commit_free(second);
        m.base = before;
    }
    OK(&m.t, brc_end(m.t.repo, BRC_END_KEEP, &m.t.err));
    scenario_whole(&m.t);
    scenario_stop(&m.t);
}

/* ---- cases -------------------------------- */

static void diff_says(scenario *t, const char *a, const char *b, const char *want)
{
    moving m;
    brc_buf text = BRC_BUF_INIT;
    m.t = *t;
    diff_text(&m, &text, a, b);
    ck_assert_str_eq((const char *)text.data, want);
    brc_buf_dispose(&text);
}

static void draft_rows_are(scenario *t, const char *want)
{
    brc_buf text = BRC_BUF_INIT;
    scenario_rows(t, "SELECT path || '<' || source FROM draft_move ORDER BY path", &text);
    OK(t, brc_buf_terminate(&text, &t->err));
    ck_assert_str_eq((const char *)text.data, want);
    brc_buf_dispose(&text);
}

CASE("cases");

TEST(a_node_that_moved_and_changed_has_moved)
{
    scenario t;
    brc_diff_opts opts = BRC_DIFF_OPTS_INIT;
    brc_iter *it;
    const brc_change *c;
    scenario_start(&t);
    scenario_numbers(&t, "/g/x", 8, 4, 0);
    scenario_numbers(&t, "/g/y", 8, 4, 50);
    scenario_commit(&t, "one");
    OK(&t, brc_node_move(t.session, "/g", "/h", 0, &t.err));
    scenario_set_number(&t, "/h/x", 5, 70);
    OK(&t, brc_node_move(t.session, "/h/y", "/y", 0, &t.err));
    OK(&t, brc_attrs_set(t.session, "/y", "k", "1", &t.err));
    draft_rows_are(&t, "/h</g\n/y</g/y\n");
    diff_says(&t, NULL, NULL, "3 /h</g 0; 4 /h/x< 0; 3 /y</g/y 1; ");
    scenario_commit(&t, "two");
    draft_rows_are(&t, "");
    diff_says(&t, NULL, "HEAD", "3 /h</g 0; 4 /h/x< 0; 3 /y</g/y 1; ");
    diff_says(&t, "HEAD~1", NULL, "3 /h</g 0; 4 /h/x< 0; 3 /y</g/y 1; ");
    OK(&t, brc_node_move(t.session, "/h", "/i", 0, &t.err));
    scenario_commit(&t, "three");
    diff_says(&t, "HEAD~2", "HEAD", "3 /i</g 0; 4 /i/x< 0; 3 /y</g/y 1; ");
    opts.flags = BRC_DIFF_ELEMENTS;
    OK(&t, brc_node_move(t.session, "/y", "/z", 0, &t.err));
    scenario_set_number(&t, "/z", 1, 3);
    OK(&t, brc_diff(&it, t.repo, NULL, NULL, &opts, &t.err));
    ck_assert_int_eq(brc_next(it, &c, &t.err), 1);
    ck_assert_str_eq(c->path, "/z");
    ck_assert_int_eq(c->what, BRC_MOVED);
    ck_assert_int_eq((c->flags & BRC_CHANGE_ELEMENTS) != 0, 1);
    ck_assert_uint_eq(c->elements_changed, 1);
    brc_iter_free(it);
    scenario_whole(&t);
    scenario_stop(&t);
}

TEST(two_nodes_that_change_places_are_told)
{
    scenario t;
    scenario_start(&t);
    scenario_numbers(&t, "/a", 8, 4, 0);
    scenario_numbers(&t, "/b", 8, 4, 50);
    scenario_commit(&t, "one");
    OK(&t, brc_node_move(t.session, "/a", "/t", 0, &t.err));
    OK(&t, brc_node_move(t.session, "/b", "/a", 0, &t.err));
    OK(&t, brc_node_move(t.session, "/t", "/b", 0, &t.err));
    draft_rows_are(&t, "/a</b\n/b</a\n");
    diff_says(&t, NULL, NULL, "3 /a</b 0; 3 /b</a 0; ");
    OK(&t, brc_node_move(t.session, "/a", "/t", 0, &t.err));
    OK(&t, brc_node_move(t.session, "/b", "/a", 0, &t.err));
    OK(&t, brc_node_move(t.session, "/t", "/b", 0, &t.err));
    draft_rows_are(&t, "");
    ck_assert_int_eq(scenario_clean(&t), 1);
    scenario_stop(&t);
}

TEST(what_takes_a_moved_node_s_place_is_new)
{
    scenario t;
    scenario_start(&t);
    scenario_numbers(&t, "/a", 8, 4, 0);
    scenario_commit(&t, "one");
    OK(&t, brc_node_move(t.session, "/a", "/b", 0, &t.err));
    scenario_numbers(&t, "/a", 8, 4, 0); /* the same in every bit */
    draft_rows_are(&t, "/a<\n/b</a\n");
    diff_says(&t, NULL, NULL, "1 /a< 0; 3 /b</a 0; ");
    OK(&t, brc_node_move(t.session, "/a", "/c", 0, &t.err));
    draft_rows_are(&t, "/b</a\n");
    OK(&t, brc_node_move(t.session, "/b", "/d", BRC_NODE_COPY, &t.err));
    OK(&t, brc_node_remove(t.session, "/b", &t.err));
    draft_rows_are(&t, "");
    diff_says(&t, NULL, NULL, "3 /c</a 0; 1 /d< 0; "); /* by equal entries */
    scenario_stop(&t);
}

TEST(a_restored_node_is_the_old_one)
{
    scenario t;
    scenario_start(&t);
    scenario_numbers(&t, "/a", 8, 4, 0);
    scenario_commit(&t, "one");
    OK(&t, brc_node_move(t.session, "/a", "/b", 0, &t.err));
    OK(&t, brc_node_restore(t.session, "/a", NULL, &t.err));
    draft_rows_are(&t, "");
    diff_says(&t, NULL, NULL, "1 /b< 0; ");
    OK(&t, brc_node_remove(t.session, "/a", &t.err));
    OK(&t, brc_node_move(t.session, "/b", "/c", 0, &t.err));
    OK(&t, brc_node_restore(t.session, "/", NULL, &t.err));
    draft_rows_are(&t, "");
    ck_assert_int_eq(scenario_clean(&t), 1);
    scenario_stop(&t);
}

/* The draft lies over a commit that the branch has left: what that moved is still to be told. */
TEST(moves_are_told_from_the_commit_s_parent)
{
    scenario t;
    brc_oid id;
    scenario_start(&t);
    scenario_numbers(&t, "/a", 8, 4, 0);
    brc_oid one = scenario_commit(&t, "one");
    OK(&t, brc_node_move(t.session, "/a", "/b", 0, &t.err));
    scenario_set_number(&t, "/b", 1, 9);
    scenario_commit(&t, "two");
    char hex[65];
    OK(&t, brc_reset(t.repo, NULL, brc_oid_format(hex, &one), 0, NULL, &t.err));
    diff_says(&t, NULL, NULL, "3 /b</a 0; ");
    OK(&t, brc_node_move(t.session, "/b", "/c", 0, &t.err));
    diff_says(&t, NULL, NULL, "3 /c</a 0; ");
    id = scenario_commit(&t, "again");
    (void)id;
    diff_says(&t, NULL, "HEAD", "3 /c</a 0; ");
    scenario_stop(&t);
}

TEST(a_private_draft_has_moves_of_its_own)
{
    scenario t;
    scenario_start(&t);
    scenario_numbers(&t, "/a", 8, 4, 0);
    scenario_commit(&t, "one");
    brc_session *own = scenario_session(&t, t.repo, NULL, BRC_SESSION_PRIVATE);
    OK(&t, brc_node_move(own, "/a", "/b", 0, &t.err));
    diff_says(&t, NULL, NULL, "");
    OK(&t, scenario_commit_of(&t, own, "m", NULL));
    draft_rows_are(&t, "");
    diff_says(&t, NULL, "HEAD", "3 /b</a 0; ");
    OK(&t, brc_node_move(own, "/b", "/c", 0, &t.err));
    draft_rows_are(&t, "/c</b\n");
    OK(&t, brc_session_discard(own, &t.err));
    draft_rows_are(&t, "");
    brc_session_free(own);
    scenario_stop(&t);
}

static const char *const bad_rows[] = {
    "UPDATE draft_move SET source='/c'",                          /* the checksum */
    "UPDATE draft_move SET source='/none';" SEAL_DRAFT_MOVE,
    "UPDATE draft_move SET path='/none';" SEAL_DRAFT_MOVE,
    "UPDATE draft_move SET path='b';" SEAL_DRAFT_MOVE,
    "UPDATE draft_move SET source='//';" SEAL_DRAFT_MOVE,
    "UPDATE draft_move SET source=x'2f61';" SEAL_DRAFT_MOVE,
    "UPDATE draft_move SET draft=99;" SEAL_DRAFT_MOVE,
    "INSERT INTO draft_move VALUES (1, '/b/q', '/a', 0);" SEAL_DRAFT_MOVE,
    "INSERT INTO draft_move VALUES (1, '/c', '/a', 0);" SEAL_DRAFT_MOVE, /* of one node two */
};

EACH(fsck_finds_rows_of_moves_that_cannot_be, bad_rows)
{
    scenario t;
    uint64_t checked;
    int faults = 0;
    scenario_start(&t);
    scenario_numbers(&t, "/a", 8, 4, 0);
    scenario_numbers(&t, "/c", 8, 4, 0);
    scenario_commit(&t, "one");
    OK(&t, brc_node_move(t.session, "/a", "/b", 0, &t.err));
    scenario_sql(&t, "UPDATE draft SET id=1; UPDATE draft_node SET draft=1 WHERE draft<>0;"
                     " UPDATE draft_move SET draft=1;" SEAL_ALL);
    scenario_reopen(&t);
    scenario_whole(&t);
    scenario_sql(&t, bad_rows[_i]);
    scenario_reopen(&t);
    OK(&t, brc_fsck(t.repo, 0, fsck_counts, NULL, &faults, &checked, &t.err));
    ck_assert_int_gt(faults, 0);
    scenario_stop(&t);
}
