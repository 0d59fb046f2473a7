/* Nodes that are damaged or lie, and what work on a map of a million keys costs. */
#include <stdlib.h>
#include <string.h>

#include "../../src/store/db.h"
#include "../../src/tree/map.h"
#include "../kit/map_model.h"
#include "../kit/suite.h"

TEST_SUITE(map_nodes);

STORE_KIT_CHANGE_FIXTURE(kit, store_kit_start_big)
static const brc_oid empty;

/* A map with every key of a family. */
static brc_oid full_map(map_model *m, int family, int variable)
{
    brc_oid root = empty;
    map_model_new(m, family, variable);
    size_t *which = calloc(m->n, sizeof(*which));
    uint64_t *values = calloc(m->n, sizeof(*values));
    for (size_t i = 0; i < m->n; i++) {
        which[i] = i;
        values[i] = 1 + i;
    }
    map_model_edit(m, &kit, &root, which, values, m->n);
    free(which);
    free(values);
    return root;
}

/* ---- damage ------------------------------------------------------------------------ */

/* The bytes of the root, or of the first leaf under it, in memory of that size. */
static uint8_t *node_bytes(const brc_oid *root, int leaf, size_t *len)
{
    brc_oid at = *root;
    brc_span bytes;
    for (;;) {
        brc_node_reader reader;
        brc_item item;
        KIT_OK(&kit, brc_store_get(kit.store, BRC_KIND_NODE, &at, &bytes, &kit.err));
        KIT_OK(&kit, brc_node_open(&reader, bytes, 16, &kit.err));
        if (!leaf || reader.level == 0)
            break;
        ck_assert_int_eq(brc_node_next(&reader, &item, &kit.err), 1);
        at = item.id;
    }
    uint8_t *copy = malloc(bytes.len);
    memcpy(copy, bytes.data, bytes.len);
    *len = bytes.len;
    return copy;
}

typedef struct node_look {
    size_t items;
    model_key last;
    int is_ordered;
} node_look;

static int look_at_child(void *ctx, const brc_oid *id, brc_error *err)
{
    (void)id;
    (void)err;
    ((node_look *)ctx)->items++;
    return BRC_OK;
}

static int look_at_item(void *ctx, brc_span key, brc_span value, brc_error *err)
{
    node_look *look = ctx;
    uint8_t sum = 0;
    (void)err;
    for (size_t i = 0; i < value.len; i++) /* a sanitizer sees what lies outside */
        sum = (uint8_t)(sum + value.data[i]);
    (void)sum;
    KIT_TRUE(key.len <= BRC_KEY_MAX);
    size_t min = key.len < look->last.len ? key.len : look->last.len;
    if (look->items++ > 0 && memcmp(look->last.bytes, key.data, min) >= 0)
        look->is_ordered = 0; /* a key that another begins with counts as well */
    look->last.len = key.len;
    if (key.len > 0)
        memcpy(look->last.bytes, key.data, key.len);
    return BRC_OK;
}

/* Damaged bytes give an error, or another well-formed node; never anything else. 1
 * if they were taken. */
static int try_node(const uint8_t *data, size_t len)
{
    node_look look = { 0, { 0, { 0 } }, 1 };
    brc_error err = BRC_ERROR_INIT;
    int rc = brc_map_check_node((brc_span){ data, len }, 16, look_at_child, look_at_item, &look,
                                &err);
    if (rc < 0) {
        KIT_TRUE(rc == BRC_ECORRUPT);
        KIT_TRUE(err.code == rc);
        KIT_TRUE(strstr(err.message, "damaged") != NULL);
        return 0;
    }
    KIT_TRUE(look.is_ordered);
    KIT_TRUE(look.items == data[1]);
    return 1;
}

CASE("map_nodes", .setup = kit_start, .teardown = kit_stop);

LOOP(a_damaged_node_is_an_error_or_another_node, 0, 4 * FAMILIES)
{
    map_model m;
    brc_oid root = full_map(&m, _i / 4, _i / 2 % 2);
    size_t len, taken = 0;
    uint8_t *bytes = node_bytes(&root, _i % 2, &len);
    ck_assert_int_eq(try_node(bytes, len), 1);
    for (size_t i = 0; i < len; i++) {
        uint8_t old = bytes[i];
        for (int change = 0; change < 10; change++) {
            bytes[i] = (uint8_t)(change < 8 ? old ^ 1 << change : change == 8 ? 0 : 255);
            taken += (size_t)try_node(bytes, len);
        }
        bytes[i] = old;
    }
    ck_assert_uint_lt(taken, 10 * len); /* keys, counts and lengths are looked at */
    bytes = realloc(bytes, len + 1);
    bytes[len] = 0;
    ck_assert_int_eq(try_node(bytes, len + 1), 0);
    for (size_t cut = len; cut-- > 0;) { /* in memory of just that size */
        bytes = realloc(bytes, cut + 1);
        memmove(bytes + 1, bytes, cut);
        KIT_TRUE(try_node(bytes + 1, cut) == 0);
        memmove(bytes, bytes + 1, cut);
    }
    free(bytes);
    map_model_free(&m);
}

/* Well formed but for its number of items. */
TEST(f22_a_node_has_so_many_items_and_no_more)
{
    for (unsigned n = BRC_NODE_MAX - 1; n < BRC_NODE_MAX + 3; n++) {
        brc_buf node = BRC_BUF_INIT;
        node_look look = { 0, { 0, { 0 } }, 1 };
        brc_error err = BRC_ERROR_INIT;
        KIT_OK(&kit, brc_buf_byte(&node, 0, &kit.err));
        KIT_OK(&kit, brc_buf_varint(&node, n, &kit.err));
        KIT_OK(&kit, brc_buf_varint(&node, 1, &kit.err));
        for (unsigned i = 0; i < n; i++) {
            const uint8_t item[4] = { 0, 1, (uint8_t)i, 7 }; /* nothing shared, one byte: i */
            KIT_OK(&kit, brc_buf_append(&node, item, sizeof(item), &kit.err));
        }
        int rc = brc_map_check_node((brc_span){ node.data, node.len }, 16, look_at_child,
                                    look_at_item, &look, &err);
        ck_assert_int_eq(rc, n <= BRC_NODE_MAX ? BRC_OK : BRC_ECORRUPT);
        brc_buf_dispose(&node);
    }
}

/* Levels fall on the way down: otherwise a walk might not end. */
TEST(f22_a_child_is_below_its_parent)
{
    for (uint8_t level = 1; level < 4; level++)
        for (uint8_t below = 0; below < 5; below++) {
            uint8_t node[2 + 2 * 22] = { level, 2 };
            node_look look = { 0, { 0, { 0 } }, 1 };
            brc_error err = BRC_ERROR_INIT;
            for (uint8_t i = 0; i < 2; i++) { /* prefixes 0x00 and 0x80, 3 items, 9 keys */
                uint8_t *at = node + 2 + 22 * i;
                const uint8_t head[] = { 0, 8, (uint8_t)(i << 7), below, 3, 9 };
                memcpy(at, head, sizeof(head));
                memset(at + sizeof(head), i + 1, 16);
            }
            int rc = brc_map_check_node((brc_span){ node, sizeof(node) }, 16, look_at_child,
                                        look_at_item, &look, &err);
            ck_assert_int_eq(rc, below < level ? BRC_OK : BRC_ECORRUPT);
            ck_assert(rc < 0 || look.items == 2);
        }
}

TEST(noise_is_no_node)
{
    uint64_t random = 77;
    uint8_t noise[64];
    for (int round = 0; round < 100000; round++) {
        size_t len = store_kit_below(&random, sizeof(noise) + 1);
        for (size_t i = 0; i < len; i++)
            noise[i] = (uint8_t)(store_kit_below(&random, 2) ? store_kit_below(&random, 5)
                                                             : store_kit_random(&random));
        try_node(noise, len);
    }
}

/* ---- nodes of a stranger: their ids are right, their content lies ----------------- */

typedef struct lie {
    const char *key;           /* of the child's leaf                              */
    const char *prefix;        /* that the parent tells                            */
    unsigned level, weight;    /* that the parent tells                            */
    const char *says;          /* what an edit beside it says; NULL: it goes well  */
} lie;

/* A root with an honest child "a?" and one that is told of as in the lie. */
static brc_oid lying_map(const lie *l)
{
    brc_buf bytes = BRC_BUF_INIT;
    brc_item leaf = { .key = (const uint8_t *)l->key, .bits = 8 * strlen(l->key) };
    brc_item honest = { .key = (const uint8_t *)"aa", .bits = 16 };
    brc_item children[2] = { { .is_child = 1, .weight = 1, .keys = 1, .bits = 16 },
                             { .is_child = 1, .level = l->level, .weight = l->weight, .keys = 9 } };
    brc_oid root;
    leaf.value = honest.value = (brc_span){ (const uint8_t *)"v", 1 };
    children[0].next = &children[1];
    children[0].key = honest.key;
    children[1].key = (const uint8_t *)l->prefix;
    children[1].bits = 8 * strlen(l->prefix);
    KIT_OK(&kit, brc_node_write(&bytes, 0, 1, &honest, 16, &kit.err));
    KIT_OK(&kit, brc_store_put(kit.store, BRC_KIND_NODE, bytes.data, bytes.len, &children[0].id,
                               &kit.err));
    bytes.len = 0;
    KIT_OK(&kit, brc_node_write(&bytes, 0, 1, &leaf, 16, &kit.err));
    KIT_OK(&kit, brc_store_put(kit.store, BRC_KIND_NODE, bytes.data, bytes.len, &children[1].id,
                               &kit.err));
    bytes.len = 0;
    KIT_OK(&kit, brc_node_write(&bytes, 2, 2, children, 16, &kit.err));
    KIT_OK(&kit, brc_store_put(kit.store, BRC_KIND_NODE, bytes.data, bytes.len, &root, &kit.err));
    brc_buf_dispose(&bytes);
    return root;
}

static int found_nothing(void *ctx, size_t i, brc_span value, brc_error *err)
{
    (void)ctx;
    (void)value;
    (void)err;
    ck_abort_msg("key %zu was found", i);
    return BRC_OK;
}

static int ignore_difference(void *ctx, brc_span key, brc_span a, brc_span b, brc_error *err)
{
    (void)ctx, (void)key, (void)a, (void)b, (void)err;
    return BRC_OK;
}

static int count_item(void *ctx, brc_span key, brc_span value, brc_error *err)
{
    (void)key, (void)value, (void)err;
    ++*(int *)ctx;
    return BRC_OK;
}

/* Thirty levels, each of them twice the node below: a billion visits of one leaf. */
TEST(a_node_in_many_places_is_damage)
{
    brc_buf bytes = BRC_BUF_INIT;
    brc_item leaf = { .key = (const uint8_t *)"a", .bits = 8 };
    brc_oid root, nothing = { { 0 } };
    int items = 0;
    leaf.value = (brc_span){ (const uint8_t *)"v", 1 };
    KIT_OK(&kit, brc_node_write(&bytes, 0, 1, &leaf, 16, &kit.err));
    KIT_OK(&kit,
           brc_store_put(kit.store, BRC_KIND_NODE, bytes.data, bytes.len, &root, &kit.err));
    for (unsigned level = 1; level <= 30; level++) {
        brc_item children[2];
        memset(children, 0, sizeof(children));
        for (int i = 0; i < 2; i++) {
            children[i].is_child = 1;
            children[i].level = level - 1;
            children[i].weight = level == 1 ? 1 : 2;
            children[i].keys = UINT64_C(1) << (level - 1);
            children[i].key = (const uint8_t *)(i ? "c" : "a");
            children[i].bits = 8;
            children[i].id = root;
        }
        children[0].next = &children[1];
        bytes.len = 0;
        KIT_OK(&kit, brc_node_write(&bytes, level, 2, children, 16, &kit.err));
        KIT_OK(&kit,
               brc_store_put(kit.store, BRC_KIND_NODE, bytes.data, bytes.len, &root, &kit.err));
    }
    brc_buf_dispose(&bytes);
    KIT_FAILS(&kit, BRC_ECORRUPT, "not where its keys",
              brc_map_each(kit.store, &root, count_item, &items, &kit.err));
    ck_assert_int_eq(items, 0);
    KIT_FAILS(&kit, BRC_ECORRUPT, "not where its keys",
              brc_map_diff(kit.store, &root, &nothing, ignore_difference, NULL, &kit.err));
}

LOOP(a_map_that_lies_about_its_nodes_is_damaged, 0, 6)
{
    static const lie lies[] = {
        { "cc", "c", 0, 1, NULL },                  /* the truth */
        { "a", "c", 0, 1, "not where its keys" },   /* before the parent's other child */
        { "zz", "c", 0, 1, "not where its keys" },
        { "aa", "c", 0, 1, "not where its keys" },  /* the key that is there already */
        { "cc", "c", 1, 1, "its parent's item" },
        { "cc", "c", 0, 2, "its parent's item" },
    };
    const brc_edit edits[3] = { { (const uint8_t *)"b", 1, (const uint8_t *)"1", 1 },
                                { (const uint8_t *)"cx", 2, (const uint8_t *)"2", 1 },
                                { (const uint8_t *)"d", 1, (const uint8_t *)"3", 1 } };
    brc_span key = { (const uint8_t *)"cc", 2 };
    node_look look = { 0, { 0, { 0 } }, 1 };
    const lie *l = &lies[_i];
    brc_oid nothing = { { 0 } };
    brc_oid root = lying_map(l), out;
    brc_span value;
    int found, honest = l->says == NULL, other_place = !honest && strstr(l->says, "where") != NULL;
    if (honest) {
        KIT_OK(&kit, brc_map_edit(kit.store, &root, edits, 3, &out, &kit.err));
        return;
    }
    KIT_FAILS(&kit, BRC_ECORRUPT, l->says,
              brc_map_edit(kit.store, &root, edits, 3, &out, &kit.err));
    /* Reading believes no number either; keys in a wrong place are not found. */
    int rc = brc_map_get(kit.store, &root, "cc", 2, &found, &value, &kit.err);
    ck_assert(other_place ? rc == BRC_OK && !found : rc == BRC_ECORRUPT);
    rc = brc_map_each(kit.store, &root, look_at_item, &look, &kit.err);
    ck_assert_int_eq(rc, BRC_ECORRUPT);
    rc = brc_map_diff(kit.store, &root, &nothing, ignore_difference, NULL, &kit.err);
    ck_assert_int_eq(rc, BRC_ECORRUPT);
    rc = brc_map_get_many(kit.store, &root, &key, 1, found_nothing, NULL, &kit.err);
    ck_assert_int_eq(rc, other_place ? BRC_OK : BRC_ECORRUPT);
}

TEST(a_missing_node_is_named)
{
    map_model m;
    char hex[65];
    brc_oid nothing = store_kit_id(0x5a), root = full_map(&m, FAMILY_DENSE_1D, 0), out;
    brc_edit edit = { m.keys[0].bytes, m.keys[0].len, NULL, 0 };
    brc_span value;
    uint64_t count;
    int found;
    KIT_FAILS(&kit, BRC_ECORRUPT, brc_oid_format(hex, &nothing),
              brc_map_get(kit.store, &nothing, "k", 1, &found, &value, &kit.err));
    KIT_FAILS(&kit, BRC_ECORRUPT, hex, brc_map_edit(kit.store, &nothing, &edit, 1, &out, &kit.err));
    KIT_FAILS(&kit, BRC_ECORRUPT, hex, brc_map_count(kit.store, &nothing, &count, &kit.err));
    KIT_FAILS(&kit, BRC_ECORRUPT, hex,
              brc_map_each(kit.store, &nothing, look_at_item, NULL, &kit.err));
    KIT_FAILS(&kit, BRC_ECORRUPT, hex,
              brc_map_diff(kit.store, &root, &nothing, NULL, NULL, &kit.err));
    map_model_free(&m);
}

/* ---- a million keys ---------------------------------------------------------- */

#define MILLION 1000000
#define SIDE 100

typedef struct many_edits {
    brc_edit *edits;
    uint8_t *keys, *values;
} many_edits;

static void million_key(uint64_t i, uint8_t *key, size_t *len)
{
    uint64_t index[3] = { i / (SIDE * SIDE), i / SIDE % SIDE, i % SIDE };
    *len = brc_chunk_key_encode(key, 3, index);
}

static brc_oid million_map(void)
{
    many_edits e = { calloc(MILLION, sizeof(brc_edit)), malloc((size_t)MILLION * 8),
                     malloc((size_t)MILLION * 16) };
    uint64_t random = 4;
    brc_oid root;
    ck_assert(e.edits != NULL && e.keys != NULL && e.values != NULL);
    for (size_t i = 0; i < MILLION; i++) {
        uint8_t key[BRC_CHUNK_KEY_MAX];
        uint64_t word[2] = { store_kit_random(&random), store_kit_random(&random) };
        size_t len;
        million_key(i, key, &len);
        KIT_TRUE(len <= 8);
        memcpy(e.keys + 8 * i, key, len);
        memcpy(e.values + 16 * i, word, 16);
        e.edits[i] = (brc_edit){ e.keys + 8 * i, len, e.values + 16 * i, 16 };
    }
    KIT_OK(&kit, brc_map_edit(kit.store, &empty, e.edits, MILLION, &root, &kit.err));
    free(e.edits);
    free(e.keys);
    free(e.values);
    return root;
}

static brc_stats totals(void)
{
    brc_stats stats = BRC_STATS_INIT;
    KIT_OK(&kit, brc_store_totals(kit.store, &stats, &kit.err));
    return stats;
}

/* New values for n chunks; for one, also what it writes. */
static brc_oid million_change(const brc_oid *root, uint64_t *random, size_t n)
{
    uint64_t where[16], word[2];
    uint8_t keys[16][BRC_CHUNK_KEY_MAX];
    brc_edit edits[16];
    brc_oid out;
    uint64_t from = 0;
    for (size_t i = 0; i < n; i++) { /* ascending, apart */
        from += 1 + store_kit_below(random, MILLION / n - 1);
        where[i] = from;
        word[0] = store_kit_random(random);
        word[1] = store_kit_random(random);
        edits[i] = (brc_edit){ keys[i], 0, (const uint8_t *)word, 16 };
        million_key(where[i], keys[i], &edits[i].key_len);
    }
    KIT_OK(&kit, brc_map_edit(kit.store, root, edits, n, &out, &kit.err));
    return out;
}

static int count_difference(void *ctx, brc_span key, brc_span a, brc_span b, brc_error *err)
{
    (void)key;
    (void)err;
    ck_assert(a.data != NULL && b.data != NULL);
    ++*(size_t *)ctx;
    return BRC_OK;
}

/* Nodes that the next calls read: they are what the cache then holds. */
static void forget_nodes(void)
{
    brc_cache_clear(&kit.store->cache);
    ck_assert_uint_eq(kit.store->cache.count, 0);
}

TEST(one_change_among_a_million_keys_costs_a_path_and_a_diff_its_differences)
{
    uint64_t random = 9, count, most = 0;
    size_t differences = 0;
    brc_oid root = million_map();
    brc_stats before = totals();
    KIT_OK(&kit, brc_map_count(kit.store, &root, &count, &kit.err));
    ck_assert_uint_eq(count, MILLION);
    ck_assert_uint_le(before.logical_bytes, (uint64_t)MILLION * 30); /* of tree, a chunk */

    for (int i = 0; i < 40; i++) {
        brc_stats now = totals();
        million_change(&root, &random, 1);
        uint64_t wrote = totals().logical_bytes - now.logical_bytes;
        ck_assert_uint_gt(wrote, 0);
        most = wrote > most ? wrote : most;
    }
    ck_assert_uint_le(most, 16384);

    brc_oid other = million_change(&root, &random, 10);
    forget_nodes();
    KIT_OK(&kit, brc_map_diff(kit.store, &root, &other, count_difference, &differences, &kit.err));
    ck_assert_uint_eq(differences, 10);
    ck_assert_uint_gt(kit.store->cache.count, 10);
    ck_assert_uint_le(kit.store->cache.count, 200);

    int found = 0;
    brc_span value;
    uint8_t key[BRC_CHUNK_KEY_MAX];
    size_t len;
    million_key(123456, key, &len);
    forget_nodes();
    KIT_OK(&kit, brc_map_get(kit.store, &root, key, len, &found, &value, &kit.err));
    ck_assert_int_eq(found, 1);
    ck_assert_uint_le(kit.store->cache.count, 6);
}
