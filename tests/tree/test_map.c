/* The canonical map against a sorted array: the same answers, and for equal contents
 * the same root, which is the one that the rule in map.h gives. */
#include <stdlib.h>
#include <string.h>

#include "../../src/tree/map.h"
#include "../kit/map_model.h"
#include "../kit/suite.h"

TEST_SUITE(map);

STORE_KIT_CHANGE_FIXTURE(kit, store_kit_start_big)
static const brc_oid empty;

#define SAME_ID(a, b) ck_assert_int_eq(brc_oid_cmp((a), (b)), 0)

/* ---- the form of the nodes ------------------------------------------------------- */

typedef struct tree_shape {
    size_t nodes, height, most, fewest_above;
} tree_shape;

/* Every node below: what its parent says of it is true. */
static uint64_t look_at_tree(const brc_oid *id, const brc_item *as, tree_shape *shape, size_t depth)
{
    brc_span bytes;
    brc_node_reader reader;
    brc_item item;
    brc_item children[BRC_NODE_MAX];
    uint8_t prefixes[BRC_NODE_MAX][BRC_KEY_MAX];
    unsigned n = 0, items = 0;
    uint64_t keys = 0;
    int rc;

    KIT_OK(&kit, brc_store_get(kit.store, BRC_KIND_NODE, id, &bytes, &kit.err));
    KIT_OK(&kit, brc_node_open(&reader, bytes, 16, &kit.err));
    while ((rc = brc_node_next(&reader, &item, &kit.err)) > 0) {
        items++;
        if (as != NULL)
            KIT_TRUE(brc_bits_order(item.key, item.bits, as->key, as->bits) == 0);
        KIT_TRUE(item.is_child == (reader.level > 0));
        if (!item.is_child)
            continue;
        memcpy(prefixes[n], item.key, brc_bits_bytes(item.bits));
        children[n] = item;
        children[n].key = prefixes[n];
        n++;
    }
    ck_assert_int_eq(rc, 0);
    ck_assert_uint_le(items, BRC_NODE_MAX);
    ck_assert_uint_ge(items, reader.level > 0 ? 2 : 1);
    if (as != NULL) {
        ck_assert_uint_eq(items, as->weight);
        ck_assert_uint_eq(reader.level, as->level);
    }
    shape->nodes++;
    shape->height = depth + 1 > shape->height ? depth + 1 : shape->height;
    for (unsigned i = 0; i < n; i++) {
        uint64_t below = look_at_tree(&children[i].id, &children[i], shape, depth + 1);
        ck_assert_uint_eq(below, children[i].keys);
        keys += below;
    }
    return n > 0 ? keys : items;
}

static tree_shape check_shape(const map_model *m, const brc_oid *root)
{
    tree_shape shape = { 0, 0, 0, 0 };
    uint64_t keys = brc_oid_is_zero(root) ? 0 : look_at_tree(root, NULL, &shape, 0);
    ck_assert_uint_eq(keys, map_model_count(m));
    return shape;
}

/* ---- random edits ---------------------------------------------------------------- */

static size_t pick_batch(uint64_t *random, const map_model *m, size_t *which, uint64_t *values)
{
    static const unsigned sizes[] = { 1, 1, 2, 5, 30, 300, 100000 };
    size_t want = 1 + store_kit_below(random, sizes[store_kit_below(random, 7)]), n = 0;
    size_t from = store_kit_below(random, m->n), every = m->n / want;
    uint64_t removals = store_kit_below(random, 5); /* of 4 */
    int is_run = (int)store_kit_below(random, 2);
    for (size_t i = is_run ? from : 0; i < m->n && n < want; i++) {
        if (!is_run && every > 1 && store_kit_below(random, every) != 0)
            continue;
        which[n] = i;
        values[n++] =
            store_kit_below(random, 4) < removals ? 0 : 1 + store_kit_below(random, 1000000);
    }
    if (n == 0) {
        which[n] = from;
        values[n++] = 1;
    }
    return n;
}

static void check_some(const map_model *m, const brc_oid *root, uint64_t *random)
{
    for (int i = 0; i < 8; i++) {
        size_t at = store_kit_below(random, m->n);
        int found = -1;
        brc_span value;
        KIT_OK(&kit, brc_map_get(kit.store, root, m->keys[at].bytes, m->keys[at].len, &found,
                                 &value, &kit.err));
        ck_assert_int_eq(found, m->values[at] != 0);
        ck_assert(!found || map_model_is(m, m->values[at], value));
    }
}

#define ROUNDS 150

CASE("map", .setup = kit_start, .teardown = kit_stop);

LOOP(random_edits_are_those_of_a_sorted_array, 0, 2 * FAMILIES + 1)
{
    map_model m;
    brc_oid root = empty, old_root = empty, want;
    uint64_t random = (uint64_t)_i + 100;
    map_model_new(&m, _i / 2, _i % 2);
    if (_i % 2 == 1) /* nodes in memory alone */
        brc_store_scratch_begin(kit.store);
    size_t *which = calloc(m.n, sizeof(*which));
    uint64_t *values = calloc(m.n, sizeof(*values)), *old = calloc(m.n, sizeof(*old));

    for (int round = 0; round < (_i / 2 == FAMILY_DEEPEST ? 26 : ROUNDS); round++) {
        size_t n = pick_batch(&random, &m, which, values);
        map_model_edit(&m, &kit, &root, which, values, n);
        check_some(&m, &root, &random);
        if (round % 5 == 0) {
            want = map_model_root(&m);
            SAME_ID(&root, &want);
            map_model_check_diff(&m, &kit, &old_root, old, &root, m.values);
        }
        if (round % 25 == 0) {
            map_model_check(&m, &kit, &root);
            check_shape(&m, &root);
            map_model_check_diff(&m, &kit, &root, m.values, &old_root, old);
            old_root = root;
            memcpy(old, m.values, m.n * sizeof(*old));
        }
    }
    if (_i % 2 == 1)
        brc_store_scratch_end(kit.store);
    free(which);
    free(values);
    free(old);
    map_model_free(&m);
}

/* ---- history independence ---------------------------------------------------- */

/* Brings the map to the model's `goal` by steps of a random kind. */
static brc_oid build_somehow(map_model *m, const uint64_t *goal, uint64_t *random)
{
    brc_oid root = empty;
    size_t *which = calloc(m->n, sizeof(*which)), n, steps = 0;
    uint64_t *values = calloc(m->n, sizeof(*values));
    size_t detours = store_kit_below(random, 12);
    memset(m->values, 0, m->n * sizeof(*m->values));
    while (steps++ < detours) { /* anything, to be undone later */
        n = pick_batch(random, m, which, values);
        map_model_edit(m, &kit, &root, which, values, n);
    }
    size_t batch = 1 + store_kit_below(random, store_kit_below(random, 2) ? 20 : m->n);
    for (size_t pass = store_kit_below(random, 3), n3 = 0; n3 < 3; pass++, n3++) {
        /* residue classes modulo 3, in some order, each in batches */
        for (size_t i = pass % 3; i < m->n;) {
            for (n = 0; n < batch && i < m->n; i += 3) {
                which[n] = i;
                values[n++] = goal[i];
            }
            map_model_edit(m, &kit, &root, which, values, n);
        }
    }
    free(which);
    free(values);
    return root;
}

LOOP(equal_contents_have_equal_roots_however_they_came_about, 0, FAMILIES)
{
    map_model m;
    uint64_t random = (uint64_t)_i + 900;
    map_model_new(&m, _i, _i % 2);
    uint64_t *goal = calloc(m.n, sizeof(*goal));
    for (int round = 0; round < 4; round++) {
        uint64_t density = 1 + store_kit_below(&random, 4);
        for (size_t i = 0; i < m.n; i++)
            goal[i] = store_kit_below(&random, 4) < density ? 1 + store_kit_below(&random, 99) : 0;
        brc_oid first = build_somehow(&m, goal, &random);
        brc_oid want = map_model_root(&m);
        SAME_ID(&first, &want);
        for (int way = 0; way < 3; way++) {
            brc_oid other = build_somehow(&m, goal, &random);
            SAME_ID(&other, &first);
        }
    }
    free(goal);
    map_model_free(&m);
}

LOOP(a_map_emptied_again_is_the_zero_id, 0, FAMILIES)
{
    map_model m;
    brc_oid root = empty;
    map_model_new(&m, _i, 0);
    size_t *which = calloc(m.n, sizeof(*which));
    uint64_t *values = calloc(m.n, sizeof(*values));
    for (size_t i = 0; i < m.n; i++) {
        which[i] = i;
        values[i] = 1 + i;
    }
    map_model_edit(&m, &kit, &root, which, values, m.n);
    ck_assert(!brc_oid_is_zero(&root));
    memset(values, 0, m.n * sizeof(*values));
    for (size_t lo = 0; lo < m.n; lo += 97) /* from the front, in pieces */
        map_model_edit(&m, &kit, &root, which + lo, values + lo, m.n - lo < 97 ? m.n - lo : 97);
    ck_assert(brc_oid_is_zero(&root));
    map_model_check(&m, &kit, &root);
    map_model_edit(&m, &kit, &root, which, values, m.n); /* removing from the empty map */
    ck_assert(brc_oid_is_zero(&root));
    map_model_edit(&m, &kit, &root, which, values, 0);
    ck_assert(brc_oid_is_zero(&root));
    free(which);
    free(values);
    map_model_free(&m);
}

/* ---- costs ------------------------------------------------------------------- */

static uint64_t count_objects(void)
{
    brc_stats stats = BRC_STATS_INIT;
    KIT_OK(&kit, brc_store_totals(kit.store, &stats, &kit.err));
    return stats.objects;
}

/* Nodes from the root to the leaf that has, or would have, the key. */
static size_t path_length(const brc_oid *root, const model_key *key)
{
    brc_oid at = *root;
    brc_span bytes;
    brc_node_reader reader;
    brc_item item;
    for (size_t n = 1;; n++) {
        int rc;
        KIT_OK(&kit, brc_store_get(kit.store, BRC_KIND_NODE, &at, &bytes, &kit.err));
        KIT_OK(&kit, brc_node_open(&reader, bytes, 16, &kit.err));
        if (reader.level == 0)
            return n;
        while ((rc = brc_node_next(&reader, &item, &kit.err)) > 0 &&
               brc_bits_order(key->bytes, key->len * 8, item.key, item.bits) != 0)
            ;
        ck_assert_int_gt(rc, 0);
        at = item.id;
    }
}

LOOP(a_changed_value_changes_one_path, 0, FAMILIES)
{
    map_model m;
    brc_oid root = empty;
    uint64_t random = 5, value = 1000000;
    map_model_new(&m, _i, 0);
    size_t *which = calloc(m.n, sizeof(*which));
    uint64_t *values = calloc(m.n, sizeof(*values));
    for (size_t i = 0; i < m.n; i++) {
        which[i] = i;
        values[i] = 1 + i;
    }
    map_model_edit(&m, &kit, &root, which, values, m.n);
    tree_shape shape = check_shape(&m, &root);
    for (int round = 0; round < 50; round++) {
        size_t at = store_kit_below(&random, m.n);
        size_t path = path_length(&root, &m.keys[at]);
        uint64_t before = count_objects();
        value++;
        map_model_edit(&m, &kit, &root, &at, &value, 1);
        ck_assert_uint_eq(count_objects() - before, path);
        ck_assert_uint_eq(path_length(&root, &m.keys[at]), path);
    }
    tree_shape after = check_shape(&m, &root);
    ck_assert_uint_eq(shape.nodes, after.nodes);
    ck_assert_uint_eq(shape.height, after.height);
    free(which);
    free(values);
    map_model_free(&m);
}

TEST(an_edit_that_changes_nothing_writes_nothing)
{
    map_model m;
    brc_oid root = empty, before;
    map_model_new(&m, FAMILY_DENSE_3D, 1);
    size_t *which = calloc(m.n, sizeof(*which));
    uint64_t *values = calloc(m.n, sizeof(*values));
    for (size_t i = 0; i < m.n; i++) {
        which[i] = i;
        values[i] = i % 2 ? 0 : 1 + i;
    }
    map_model_edit(&m, &kit, &root, which, values, m.n);
    uint64_t objects = count_objects();
    before = root;
    map_model_edit(&m, &kit, &root, which, values, m.n); /* the same values, the same removals */
    SAME_ID(&root, &before);
    map_model_edit(&m, &kit, &root, which, values, 0);
    SAME_ID(&root, &before);
    ck_assert_uint_eq(count_objects(), objects);
    free(which);
    free(values);
    map_model_free(&m);
}

/* ---- keys at the limits ------------------------------------------------------ */

TEST(the_empty_key_can_be_the_only_one)
{
    brc_edit edit = { (const uint8_t *)"", 0, (const uint8_t *)"v", 1 };
    brc_oid root, again;
    brc_span value;
    int found = 0;
    KIT_OK(&kit, brc_map_edit(kit.store, &empty, &edit, 1, &root, &kit.err)); /* 0-d arrays */
    KIT_OK(&kit, brc_map_get(kit.store, &root, "", 0, &found, &value, &kit.err));
    ck_assert_int_eq(found, 1);
    ck_assert_uint_eq(value.len, 1);
    ck_assert_int_eq(value.data[0], 'v');
    edit.value = (const uint8_t *)"w";
    KIT_OK(&kit, brc_map_edit(kit.store, &root, &edit, 1, &again, &kit.err));
    ck_assert_int_ne(brc_oid_cmp(&root, &again), 0);
    edit.value = NULL;
    KIT_OK(&kit, brc_map_edit(kit.store, &again, &edit, 1, &again, &kit.err));
    ck_assert(brc_oid_is_zero(&again));
}

static int note_found(void *ctx, size_t i, brc_span value, brc_error *err)
{
    (void)err;
    ck_assert_uint_eq(value.len, 1);
    ((uint8_t *)ctx)[i]++;
    return BRC_OK;
}

/* A key that begins with one of the map's is another key. */
TEST(f22_many_look_ups_find_whole_keys_only)
{
    static const char *const names[] = { "a", "ab", "abc", "abcd", "b", "bcd", "c" };
    static const uint8_t is_there[] = { 0, 0, 1, 0, 1, 0, 0 };
    brc_edit edits[] = { { (const uint8_t *)"abc", 3, (const uint8_t *)"1", 1 },
                         { (const uint8_t *)"b", 1, (const uint8_t *)"2", 1 } };
    brc_span keys[7], value;
    uint8_t found[7] = { 0 };
    brc_oid root;
    int one;
    KIT_OK(&kit, brc_map_edit(kit.store, &empty, edits, 2, &root, &kit.err));
    for (size_t i = 0; i < 7; i++)
        keys[i] = (brc_span){ (const uint8_t *)names[i], strlen(names[i]) };
    KIT_OK(&kit, brc_map_get_many(kit.store, &root, keys, 7, note_found, found, &kit.err));
    ck_assert_mem_eq(found, is_there, sizeof(found));
    keys[0] = keys[3]; /* "abcd" and "bcd" alone: each begins with a key that is there */
    keys[1] = keys[5];
    memset(found, 0, sizeof(found));
    KIT_OK(&kit, brc_map_get_many(kit.store, &root, keys, 2, note_found, found, &kit.err));
    ck_assert_int_eq(found[0] + found[1], 0);
    for (size_t i = 0; i < 2; i++)
        keys[i] = (brc_span){ (const uint8_t *)names[i], strlen(names[i]) };
    for (size_t i = 0; i < 7; i++) {
        KIT_OK(&kit, brc_map_get(kit.store, &root, keys[i].data, keys[i].len, &one, &value,
                                 &kit.err));
        ck_assert_int_eq(one, is_there[i]);
    }
}

/* A draft's rows may be in any order where their keys are texts: this did not end. */
TEST(f23_edits_out_of_order_are_damage)
{
    static const uint8_t high[2] = { 0x81, 1 }, low[2] = { 0x01, 1 }, value[16] = { 1 };
    const brc_edit edits[3] = { { high, 2, value, 16 }, { low, 2, value, 16 },
                                { low, 2, value, 16 } };
    brc_oid out;
    KIT_FAILS(&kit, BRC_ECORRUPT, "not in order",
              brc_map_edit(kit.store, &empty, edits, 2, &out, &kit.err));
    KIT_FAILS(&kit, BRC_ECORRUPT, "not in order",
              brc_map_edit(kit.store, &empty, edits + 1, 2, &out, &kit.err));
}

TEST(keys_that_a_map_cannot_have_are_refused)
{
    uint8_t bytes[BRC_KEY_MAX + 1] = { 0 };
    brc_edit one = { bytes, BRC_KEY_MAX, (const uint8_t *)"", 0 };
    brc_edit nested[2] = { { (const uint8_t *)"ab", 2, (const uint8_t *)"1", 1 },
                           { (const uint8_t *)"abc", 3, (const uint8_t *)"2", 1 } };
    brc_oid root, out;
    int found = 0;
    brc_span value;
    KIT_OK(&kit, brc_map_edit(kit.store, &empty, &one, 1, &root, &kit.err));
    KIT_OK(&kit, brc_map_get(kit.store, &root, bytes, BRC_KEY_MAX, &found, &value, &kit.err));
    ck_assert_int_eq(found, 1);
    ck_assert_uint_eq(value.len, 0); /* an empty value is a value */
    one.key_len = BRC_KEY_MAX + 1;
    KIT_FAILS(&kit, BRC_ELIMIT, "321", brc_map_edit(kit.store, &empty, &one, 1, &out, &kit.err));
    KIT_FAILS(&kit, BRC_ECORRUPT, "is a prefix of another",
              brc_map_edit(kit.store, &empty, nested, 2, &out, &kit.err));
    /* the same where one of the two is there already */
    KIT_OK(&kit, brc_map_edit(kit.store, &empty, &nested[0], 1, &root, &kit.err));
    KIT_FAILS(&kit, BRC_ECORRUPT, "is a prefix of another",
              brc_map_edit(kit.store, &root, &nested[1], 1, &out, &kit.err));
    KIT_OK(&kit, brc_map_edit(kit.store, &empty, &nested[1], 1, &root, &kit.err));
    KIT_FAILS(&kit, BRC_ECORRUPT, "is a prefix of another",
              brc_map_edit(kit.store, &root, &nested[0], 1, &out, &kit.err));
    /* and looking for such a key finds nothing */
    KIT_OK(&kit, brc_map_get(kit.store, &root, "ab", 2, &found, &value, &kit.err));
    ck_assert_int_eq(found, 0);
    KIT_OK(&kit, brc_map_get(kit.store, &root, "abcd", 4, &found, &value, &kit.err));
    ck_assert_int_eq(found, 0);
}
