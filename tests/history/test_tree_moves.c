/* Moves in random trees, against their plain meaning; and the limits of a hierarchy. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../../src/history/tree_diff.h"
#include "../../src/store/db.h"
#include "../kit/store_kit.h"
#include "../kit/suite.h"

TEST_SUITE(tree_moves);

STORE_KIT_CHANGE_FIXTURE(kit, store_kit_start)
static const brc_oid empty;

#define OK(call) KIT_OK(&kit, call)
#define FAILS(code, words, call) KIT_FAILS(&kit, code, words, call)

/* ---- random trees -------------------------------- */

static const char *const names[] = {"a", "a-b", "a0", "b", "b.c", "z"}; /* in order */
enum { NAMES = 6, POOL = 12, NODES = 4000 };

/* Subtrees that were made: used again, so that equal ones are in many places. */
typedef struct tree_pool {
    uint64_t random;
    brc_entry entries[POOL];
    size_t n;
} tree_pool;

static brc_entry group_of(const brc_entry *children, const char *const *child_names, size_t n)
{
    uint8_t values[NAMES][BRC_ENTRY_MAX];
    brc_edit edits[NAMES];
    brc_entry group = {.kind = BRC_GROUP, .doc = store_kit_id(1)};
    for (size_t i = 0; i < n; i++)
        edits[i] = (brc_edit){(const uint8_t *)child_names[i], strlen(child_names[i]) + 1,
                              values[i], brc_entry_encode(values[i], &children[i], 16)};
    OK(brc_map_edit(kit.store, &empty, edits, n, &group.map, &kit.err));
    return group;
}

static brc_entry random_entry(tree_pool *pool, int depth)
{
    brc_entry out, children[NAMES];
    const char *chosen[NAMES];
    size_t n = 0;
    if (pool->n > 0 && store_kit_below(&pool->random, 4) == 0)
        return pool->entries[store_kit_below(&pool->random, pool->n)];
    if (depth == 0 || store_kit_below(&pool->random, 2) == 0) {
        memset(&out, 0, sizeof(out));
        out.kind = BRC_ARRAY;
        out.doc = store_kit_id((uint8_t)(1 + store_kit_below(&pool->random, 5)));
    } else {
        for (size_t i = 0; i < NAMES; i++) {
            if (store_kit_below(&pool->random, 2) == 0)
                continue;
            chosen[n] = names[i];
            children[n++] = random_entry(pool, depth - 1);
        }
        out = group_of(children, chosen, n);
    }
    pool->entries[pool->n < POOL ? pool->n++ : store_kit_below(&pool->random, POOL)] = out;
    return out;
}

static brc_oid random_tree(tree_pool *pool)
{
    brc_entry children[NAMES];
    brc_oid out;
    for (size_t i = 0; i < NAMES; i++)
        children[i] = random_entry(pool, 3);
    brc_entry root = group_of(children, names, NAMES);
    OK(brc_snapshot_put(kit.store, &root, &out, &kit.err));
    return out;
}

/* ---- the plain meaning -------------------------------- */

typedef struct plain_node {
    char path[64], from[64];
    int what;
    brc_entry entry;
} plain_node;

typedef struct plain_list {
    plain_node nodes[NODES];
    size_t n;
    const char *path; /* of the group whose children are being added */
} plain_list;

static int plain_add(void *ctx, brc_span key, brc_span value, brc_error *err)
{
    plain_list *list = ctx;
    KIT_TRUE(list->n < NODES);
    plain_node *node = &list->nodes[list->n++];
    memset(node, 0, sizeof(*node));
    snprintf(node->path, sizeof(node->path), "%s/%s", list->path, (const char *)key.data);
    return brc_entry_decode(&node->entry, value, 16, err);
}

/* Every node of a tree but its root. */
static void plain_all(plain_list *list, const brc_oid *tree)
{
    brc_entry root;
    char path[64] = "";
    OK(brc_snapshot_find(kit.store, tree, "/", &root, &kit.err));
    list->n = 0;
    list->path = path;
    OK(brc_map_each(kit.store, &root.map, plain_add, list, &kit.err));
    for (size_t i = 0; i < list->n; i++) {
        if (list->nodes[i].entry.kind != BRC_GROUP)
            continue;
        memcpy(path, list->nodes[i].path, sizeof(path));
        brc_oid map = list->nodes[i].entry.map;
        OK(brc_map_each(kit.store, &map, plain_add, list, &kit.err));
    }
}

/* Nodes of `from` that `other` has not, or has of another kind. */
static void plain_only(plain_list *out, const plain_list *from, const plain_list *other, int what)
{
    for (size_t i = 0; i < from->n; i++) {
        size_t j = 0;
        while (j < other->n && strcmp(from->nodes[i].path, other->nodes[j].path) != 0)
            j++;
        if (j < other->n && from->nodes[i].entry.kind == other->nodes[j].entry.kind)
            continue;
        KIT_TRUE(out->n < NODES);
        out->nodes[out->n] = from->nodes[i];
        out->nodes[out->n++].what = what;
    }
}

static int plain_order(const void *a, const void *b)
{
    const plain_node *x = a, *y = b;
    int order = strcmp(x->path, y->path);
    return order != 0 ? order : (y->what == BRC_REMOVED) - (x->what == BRC_REMOVED);
}

static void plain_tell_under(plain_list *list, const char *path, int what)
{
    size_t len = strlen(path);
    for (size_t i = 0; i < list->n; i++)
        if (list->nodes[i].what == what && strncmp(list->nodes[i].path, path, len) == 0 &&
            list->nodes[i].path[len] == '/')
            list->nodes[i].what = 0;
}

/* Each with each. */
static size_t plain_moves(plain_list *list)
{
    size_t moves = 0;
    for (size_t i = 0; i < list->n; i++) {
        plain_node *to = &list->nodes[i];
        for (size_t j = 0; j < list->n && to->what == BRC_ADDED; j++) {
            plain_node *from = &list->nodes[j];
            if (from->what != BRC_REMOVED || !brc_entry_equal(&from->entry, &to->entry))
                continue;
            memcpy(to->from, from->path, sizeof(to->from));
            to->what = BRC_MOVED;
            from->what = 0;
            moves++;
            plain_tell_under(list, to->path, BRC_ADDED);
            plain_tell_under(list, from->path, BRC_REMOVED);
        }
    }
    return moves;
}

static size_t same_as_plain(const brc_oid *a, const brc_oid *b)
{
    static plain_list left, right, want;
    brc_tree_diff diff;
    size_t at = 0;
    plain_all(&left, a);
    plain_all(&right, b);
    want.n = 0;
    plain_only(&want, &left, &right, BRC_REMOVED);
    plain_only(&want, &right, &left, BRC_ADDED);
    qsort(want.nodes, want.n, sizeof(want.nodes[0]), plain_order);
    size_t moves = plain_moves(&want);
    OK(brc_tree_diff_run(&diff, kit.store, a, b, NULL, 0, NULL, &kit.err));
    for (size_t i = 0; i < want.n; i++) {
        if (want.nodes[i].what == 0)
            continue;
        while (at < diff.n && diff.changes[at].what == BRC_CHANGED)
            at++;
        KIT_TRUE(at < diff.n);
        const brc_node_change *c = &diff.changes[at++];
        KIT_TRUE(c->what == want.nodes[i].what && strcmp(c->path, want.nodes[i].path) == 0);
        KIT_TRUE(c->what != BRC_MOVED || strcmp(c->from, want.nodes[i].from) == 0);
    }
    while (at < diff.n && diff.changes[at].what == BRC_CHANGED)
        at++;
    KIT_TRUE(at == diff.n);
    brc_tree_diff_dispose(&diff);
    return moves;
}

/* Documents that differ are read: these are what the ids of the entries stand for. */
static void put_documents(void)
{
    brc_oid id;
    char text[200];
    for (int i = 1; i <= 5; i++) {
        snprintf(text, sizeof(text), "{\"n\":%d}", i);
        id = store_kit_id((uint8_t)i);
        OK(brc_cache_add(&kit.store->cache, &id, BRC_KIND_DOCUMENT, text, strlen(text), 1, NULL,
                         &kit.err));
    }
}

CASE("trees", .setup = kit_start, .teardown = kit_stop);

LOOP(f18_moves_are_those_that_each_with_each_finds, 0, 20)
{
    tree_pool pool = {.random = (uint64_t)_i + 1};
    size_t moves = 0;
    put_documents();
    for (int i = 0; i < 10; i++) {
        brc_oid a = random_tree(&pool), b = random_tree(&pool);
        moves += same_as_plain(&a, &b) + same_as_plain(&b, &a) + same_as_plain(&empty, &b) +
                 same_as_plain(&a, &empty);
    }
    ck_assert_uint_gt(moves, 10);
}

/* ---- members -------------------------------- */

/* Pairs of documents with members in any order: the pointers are those of every member of one
 * that the other has not or has otherwise, the first document's first. */
LOOP(f18_members_that_differ_are_told_in_order, 0, 10)
{
    enum { MEMBERS = 200 };
    uint64_t random = (uint64_t)_i + 1;
    brc_buf text[2] = {BRC_BUF_INIT, BRC_BUF_INIT}, want = BRC_BUF_INIT, got = BRC_BUF_INIT;
    int value[2][MEMBERS], order[2][MEMBERS];
    brc_json *doc[2];
    brc_pointers out = {0};
    for (int d = 0; d < 2; d++) {
        OK(brc_buf_text(&text[d], "{\"attributes\":{\"\":0", &kit.err));
        for (int i = 0; i < MEMBERS; i++)
            order[d][i] = i;
        for (int i = 0; i < MEMBERS; i++) {
            int j = i + (int)store_kit_below(&random, (uint64_t)(MEMBERS - i)), name = order[d][j];
            order[d][j] = order[d][i];
            order[d][i] = name;
            value[d][name] = (int)store_kit_below(&random, 3); /* 0: not there */
            if (value[d][name] > 0)
                OK(brc_buf_printf(&text[d], &kit.err, ",\"m%d\":%d", name, value[d][name]));
        }
        OK(brc_buf_text(&text[d], "}}", &kit.err));
        OK(brc_json_parse(&doc[d], (const char *)text[d].data, text[d].len, 0, &kit.err));
    }
    for (int d = 0; d < 2; d++)
        for (int i = 0; i < MEMBERS; i++) {
            int name = order[d][i], mine = value[d][name], other = value[1 - d][name];
            if (mine != 0 && (d == 0 ? mine != other : other == 0))
                OK(brc_buf_printf(&want, &kit.err, "/attributes/m%d ", name));
        }
    OK(brc_doc_diff(&out, doc[0], doc[1], &kit.err));
    for (size_t i = 0; i < out.n; i++)
        OK(brc_buf_printf(&got, &kit.err, "%s ", out.items[i]));
    ck_assert_uint_gt(out.n, 20);
    OK(brc_buf_terminate(&want, &kit.err));
    OK(brc_buf_terminate(&got, &kit.err));
    ck_assert_str_eq((const char *)got.data, (const char *)want.data);
    brc_pointers_dispose(&out);
    for (int d = 0; d < 2; d++) {
        brc_json_free(doc[d]);
        brc_buf_dispose(&text[d]);
    }
    brc_buf_dispose(&want);
    brc_buf_dispose(&got);
}

/* ---- limits -------------------------------- */

/* `depth` groups in one another. */
static brc_oid nested(int depth, const char *name)
{
    brc_oid out;
    brc_entry group = {.kind = BRC_GROUP, .doc = store_kit_id(1)};
    for (int i = 0; i < depth; i++)
        group = group_of(&group, &name, 1);
    OK(brc_snapshot_put(kit.store, &group, &out, &kit.err));
    return out;
}

TEST(f18_hierarchies_beyond_the_limits_are_damage)
{
    brc_tree_diff diff;
    char name[201];
    memset(name, 'n', 200);
    name[200] = '\0';
    put_documents();
    brc_oid most = nested(BRC_DEPTH_MAX, "g"), deep = nested(BRC_DEPTH_MAX + 1, "g");
    brc_oid far = nested(100000, "g"), wide = nested(BRC_PATH_MAX / 201 + 1, name);
    OK(brc_tree_diff_run(&diff, kit.store, &empty, &most, NULL, 0, NULL, &kit.err));
    ck_assert_uint_eq(diff.n, BRC_DEPTH_MAX + 1);
    brc_tree_diff_dispose(&diff);
    const brc_oid *bad[] = {&deep, &far, &wide};
    for (size_t i = 0; i < 3; i++) {
        FAILS(BRC_ECORRUPT, "the limits of a path",
              brc_tree_diff_run(&diff, kit.store, &empty, bad[i], NULL, 0, NULL, &kit.err));
        FAILS(BRC_ECORRUPT, "the limits of a path",
              brc_tree_diff_run(&diff, kit.store, bad[i], &most, NULL, 0, NULL, &kit.err));
    }
}

TEST(f18_a_tree_with_too_many_places_is_refused)
{
    static const char *const two[] = {"a", "b"};
    brc_tree_diff diff;
    brc_oid tree;
    brc_entry group = {.kind = BRC_GROUP, .doc = store_kit_id(1)};
    put_documents();
    for (int i = 0; i < 40; i++) { /* 2^40 nodes in 40 objects */
        brc_entry children[2] = {group, group};
        group = group_of(children, two, 2);
    }
    OK(brc_snapshot_put(kit.store, &group, &tree, &kit.err));
    kit.store->max_nodes = 1000;
    FAILS(BRC_ELIMIT, "--max-nodes",
          brc_tree_diff_run(&diff, kit.store, &empty, &tree, NULL, 0, NULL, &kit.err));
}

TEST(f18_children_with_names_that_cannot_be_are_damage)
{
    static const char *const bad[] = {"..", "a/b", "", "\xff", "__x"};
    brc_tree_diff diff;
    brc_entry group = {.kind = BRC_GROUP, .doc = store_kit_id(1)};
    put_documents();
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        brc_oid tree;
        brc_entry root = group_of(&group, &bad[i], 1);
        OK(brc_snapshot_put(kit.store, &root, &tree, &kit.err));
        FAILS(BRC_ECORRUPT, "name is damaged",
              brc_tree_diff_run(&diff, kit.store, &empty, &tree, NULL, 0, NULL, &kit.err));
    }
}
