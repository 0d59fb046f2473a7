/* See map_model.h. */
#include "map_model.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../../src/tree/map.h"

/* ---- keys ---------------------------------------------------------------------- */

static model_key *model_add(map_model *m)
{
    if ((m->n & (m->n - 1)) == 0)
        m->keys = realloc(m->keys, (m->n == 0 ? 1 : 2 * m->n) * sizeof(*m->keys));
    ck_assert_ptr_nonnull(m->keys);
    memset(&m->keys[m->n], 0, sizeof(*m->keys));
    return &m->keys[m->n++];
}

static void add_chunk(map_model *m, int ndim, uint64_t x, uint64_t y, uint64_t z)
{
    uint64_t index[3] = { x, y, z };
    model_key *key = model_add(m);
    key->len = brc_chunk_key_encode(key->bytes, ndim, index);
}

static void add_sparse(map_model *m)
{
    uint64_t random = 11;
    for (int i = 0; i < 1500; i++)
        add_chunk(m, 3, store_kit_random(&random) >> store_kit_below(&random, 64),
                  store_kit_below(&random, 5), store_kit_random(&random) >> 20);
}

static void add_names(map_model *m)
{
    static const char *const stems[] = { "t", "te", "temperature", "temperature_at_2m",
                                         "\xc3\xa9t" };
    for (size_t s = 0; s < sizeof(stems) / sizeof(stems[0]); s++) {
        for (int i = -1; i < 250; i++) {
            model_key *key = model_add(m);
            int n = i < 0 ? snprintf((char *)key->bytes, 64, "%s", stems[s])
                          : snprintf((char *)key->bytes, 64, "%s_%d", stems[s], i);
            key->len = (size_t)n + 1;
        }
    }
}

static void add_byte_edges(map_model *m)
{
    for (uint64_t i = 0; i < 60; i++) {
        add_chunk(m, 1, 226 + i, 0, 0);
        add_chunk(m, 1, 65506 + i, 0, 0);
        add_chunk(m, 1, (UINT64_C(1) << 24) - 30 + i, 0, 0);
        add_chunk(m, 1, (UINT64_C(1) << 32) - 30 + i, 0, 0);
        add_chunk(m, 1, UINT64_MAX - i, 0, 0);
        add_chunk(m, 1, i, 0, 0);
    }
}

static void add_strings(map_model *m)
{
    uint64_t random = 12;
    for (int i = 0; i < 1200; i++) {
        model_key *key = model_add(m);
        key->len = 1 + store_kit_below(&random, 30);
        key->bytes[0] = (uint8_t)(key->len - 1);
        for (size_t j = 1; j < key->len; j++)
            key->bytes[j] = (uint8_t)(store_kit_below(&random, 2) ? 0 : store_kit_random(&random));
    }
}

/* 0..., 10..., 110..., 1110...: as deep as keys of this length can make a map. */
static void add_stairs(map_model *m, size_t len)
{
    for (size_t ones = 0; ones < 8 * len; ones++) {
        model_key *key = model_add(m);
        key->len = len;
        memset(key->bytes, 0xff, ones / 8);
        key->bytes[ones / 8] = (uint8_t)(0xff00 >> ones % 8);
    }
}

static int model_key_order(const void *a, const void *b)
{
    const model_key *x = a, *y = b;
    int order = memcmp(x->bytes, y->bytes, x->len < y->len ? x->len : y->len);
    return order != 0 ? order : (x->len > y->len) - (x->len < y->len);
}

void map_model_new(map_model *m, int family, int variable)
{
    memset(m, 0, sizeof(*m));
    m->variable = variable;
    for (uint64_t i = 0; i < 1331; i++) {
        if (family == FAMILY_DENSE_1D)
            add_chunk(m, 1, i, 0, 0);
        if (family == FAMILY_DENSE_3D)
            add_chunk(m, 3, i / 121, i / 11 % 11, i % 11);
    }
    if (family == FAMILY_SPARSE)
        add_sparse(m);
    if (family == FAMILY_NAMES)
        add_names(m);
    if (family == FAMILY_BYTE_EDGES)
        add_byte_edges(m);
    if (family == FAMILY_STRINGS)
        add_strings(m);
    if (family == FAMILY_STAIRS)
        add_stairs(m, 80);
    if (family == FAMILY_DEEPEST)
        add_stairs(m, MODEL_KEY_MAX);
    qsort(m->keys, m->n, sizeof(*m->keys), model_key_order);
    size_t kept = 0;
    for (size_t i = 0; i < m->n; i++)
        if (kept == 0 || model_key_order(&m->keys[kept - 1], &m->keys[i]) != 0)
            m->keys[kept++] = m->keys[i];
    m->n = kept;
    m->values = calloc(m->n, sizeof(*m->values));
    ck_assert_ptr_nonnull(m->values);
}

void map_model_free(map_model *m)
{
    free(m->keys);
    free(m->values);
}

/* The bytes that stand for a value; the length is returned. */
static size_t map_model_value(const map_model *m, uint64_t value, uint8_t out[32])
{
    uint64_t state = value;
    for (int i = 0; i < 4; i++) {
        uint64_t word = store_kit_random(&state);
        memcpy(out + 8 * i, &word, 8);
    }
    return m->variable ? value % 32 : 16;
}

int map_model_is(const map_model *m, uint64_t value, brc_span bytes)
{
    uint8_t want[32];
    size_t len = map_model_value(m, value, want);
    return bytes.data != NULL && bytes.len == len && memcmp(bytes.data, want, len) == 0;
}

size_t map_model_count(const map_model *m)
{
    size_t n = 0;
    for (size_t i = 0; i < m->n; i++)
        n += m->values[i] != 0;
    return n;
}

void map_model_edit(map_model *m, store_kit *k, brc_oid *root, const size_t *which,
                    const uint64_t *values, size_t n)
{
    brc_edit *edits = calloc(n + 1, sizeof(*edits));
    uint8_t *bytes = malloc(32 * (n + 1));
    brc_oid out;
    for (size_t i = 0; i < n; i++) {
        const model_key *key = &m->keys[which[i]];
        edits[i] = (brc_edit){ key->bytes, key->len, NULL, 0 };
        m->values[which[i]] = values[i];
        if (values[i] == 0)
            continue;
        edits[i].value = bytes + 32 * i;
        edits[i].value_len = map_model_value(m, values[i], bytes + 32 * i);
    }
    KIT_OK(k, brc_map_edit(k->store, root, edits, n, &out, &k->err));
    *root = out;
    free(edits);
    free(bytes);
}

/* ---- the rule, once more ----------------------------------------------------- */

typedef struct rule_item {
    const uint8_t *key;
    size_t bits;
    uint64_t value; /* of a key */
    unsigned level, weight;
    uint64_t keys;  /* of a child; 0: this is a key */
    brc_oid id;
} rule_item;

typedef struct rule_group {
    unsigned level;
    size_t n;
    rule_item items[BRC_NODE_MAX];
} rule_group;

static size_t rule_common(const rule_item *a, const rule_item *b)
{
    size_t i = 0;
    while (i < a->bits && i < b->bits &&
           (a->key[i / 8] >> (7 - i % 8) & 1) == (b->key[i / 8] >> (7 - i % 8) & 1))
        i++;
    return i;
}

/* The i-th byte of a key, or of a prefix with zero bits behind it. */
static uint8_t rule_byte(const rule_item *item, size_t i)
{
    size_t left = item->bits - 8 * i;
    return (uint8_t)(left >= 8 ? item->key[i] : item->key[i] & 0xff00 >> left);
}

static void rule_put(brc_buf *out, uint64_t value)
{
    KIT_TRUE(brc_buf_varint(out, value, NULL) == BRC_OK);
}

static void rule_write(const map_model *m, const rule_group *g, brc_buf *out)
{
    uint8_t value[32];
    size_t width = 0;
    if (g->level == 0) {
        width = map_model_value(m, g->items[0].value, value);
        for (size_t i = 1; i < g->n; i++)
            width = map_model_value(m, g->items[i].value, value) == width ? width : 0;
    }
    rule_put(out, g->level);
    rule_put(out, g->n);
    if (g->level == 0)
        rule_put(out, width);
    for (size_t i = 0; i < g->n; i++) {
        const rule_item *it = &g->items[i];
        size_t len = (it->bits + 7) / 8, before = i > 0 ? (it[-1].bits + 7) / 8 : 0, shared = 0;
        while (shared < len && shared < before &&
               rule_byte(it, shared) == rule_byte(it - 1, shared))
            shared++;
        rule_put(out, shared);
        rule_put(out, g->level == 0 ? len - shared : it->bits);
        for (size_t j = shared; j < len; j++) {
            uint8_t byte = rule_byte(it, j);
            KIT_TRUE(brc_buf_append(out, &byte, 1, NULL) == BRC_OK);
        }
        if (g->level == 0) {
            size_t size = map_model_value(m, it->value, value);
            if (width == 0)
                rule_put(out, size);
            KIT_TRUE(brc_buf_append(out, value, size, NULL) == BRC_OK);
        } else {
            rule_put(out, it->level);
            rule_put(out, it->weight);
            rule_put(out, it->keys);
            KIT_TRUE(brc_buf_append(out, it->id.bytes, 16, NULL) == BRC_OK);
        }
    }
}

static rule_item rule_close(const map_model *m, const rule_group *g)
{
    brc_buf bytes = BRC_BUF_INIT;
    rule_item node = { .level = g->level, .weight = (unsigned)g->n, .key = g->items[0].key };
    node.bits = g->n == 1 ? g->items[0].bits : rule_common(&g->items[0], &g->items[g->n - 1]);
    for (size_t i = 0; i < g->n; i++)
        node.keys += g->items[i].keys > 0 ? g->items[i].keys : 1;
    rule_write(m, g, &bytes);
    node.id = brc_hash_object(BRC_HASH_XXH128, BRC_KIND_NODE, bytes.data, bytes.len);
    brc_buf_dispose(&bytes);
    return node;
}

static void rule_lift(const map_model *m, rule_group *g, unsigned level)
{
    rule_item node = rule_close(m, g);
    g->level = level;
    g->n = 1;
    g->items[0] = node;
}

static rule_group *rule_build(const map_model *m, const rule_item *items, size_t n)
{
    if (n == 1) {
        rule_group *one = calloc(1, sizeof(*one));
        one->n = 1;
        one->items[0] = items[0];
        return one;
    }
    size_t bit = rule_common(&items[0], &items[n - 1]), right = 0;
    while ((items[right].key[bit / 8] >> (7 - bit % 8) & 1) == 0)
        right++;
    rule_group *a = rule_build(m, items, right), *b = rule_build(m, items + right, n - right);
    unsigned level = a->level > b->level ? a->level : b->level;
    if (a->level < level)
        rule_lift(m, a, level);
    if (b->level < level)
        rule_lift(m, b, level);
    if (a->n + b->n > BRC_NODE_MAX) {
        /* One that was closed already is a node, and is not wrapped in another. */
        rule_item *only = a->n == 1 && a->items[0].keys > 0 ? a->items : NULL;
        if (only != NULL && only->level < level)
            a->level = level + 1;
        else
            rule_lift(m, a, level + 1);
        only = b->n == 1 && b->items[0].keys > 0 ? b->items : NULL;
        if (only != NULL && only->level < level)
            b->level = level + 1;
        else
            rule_lift(m, b, level + 1);
        level++;
    }
    a->level = level;
    memcpy(a->items + a->n, b->items, b->n * sizeof(*b->items));
    a->n += b->n;
    free(b);
    return a;
}

brc_oid map_model_root(const map_model *m)
{
    brc_oid root;
    rule_item *items = calloc(m->n, sizeof(*items));
    size_t n = 0;
    memset(&root, 0, sizeof(root));
    for (size_t i = 0; i < m->n; i++)
        if (m->values[i] != 0)
            items[n++] = (rule_item){ .key = m->keys[i].bytes, .bits = 8 * m->keys[i].len,
                                      .value = m->values[i] };
    if (n > 0) {
        rule_group *all = rule_build(m, items, n);
        root = rule_close(m, all).id;
        free(all);
    }
    free(items);
    return root;
}

/* ---- comparing --------------------------------------------------------------- */

typedef struct model_walk {
    const map_model *m;
    const uint64_t *a, *b;
    size_t at;    /* the next one that must come */
    size_t *keys; /* of a batch: which of the model's */
} model_walk;

static int expect_found(void *ctx, size_t i, brc_span value, brc_error *err)
{
    model_walk *w = ctx;
    (void)err;
    while (w->m->values[w->keys[w->at]] == 0)
        w->at++;
    KIT_TRUE(i == w->at);
    KIT_TRUE(map_model_is(w->m, w->m->values[w->keys[i]], value));
    w->at++;
    return BRC_OK;
}

static int expect_item(void *ctx, brc_span key, brc_span value, brc_error *err)
{
    model_walk *w = ctx;
    (void)err;
    while (w->at < w->m->n && w->m->values[w->at] == 0)
        w->at++;
    KIT_TRUE(w->at < w->m->n);
    KIT_TRUE(key.len == w->m->keys[w->at].len);
    KIT_TRUE(memcmp(key.data, w->m->keys[w->at].bytes, key.len) == 0);
    KIT_TRUE(map_model_is(w->m, w->m->values[w->at], value));
    w->at++;
    return BRC_OK;
}

/* Every third key, and the first and the last: with holes between them. */
static void check_together(const map_model *m, store_kit *k, const brc_oid *root, size_t step)
{
    model_walk w = { .m = m };
    brc_span *keys = calloc(m->n + 1, sizeof(*keys));
    w.keys = calloc(m->n + 1, sizeof(*w.keys));
    size_t n = 0;
    for (size_t i = 0; i < m->n; i += step) {
        w.keys[n] = i;
        keys[n++] = (brc_span){ m->keys[i].bytes, m->keys[i].len };
    }
    KIT_OK(k, brc_map_get_many(k->store, root, keys, n, expect_found, &w, &k->err));
    while (w.at < n && m->values[w.keys[w.at]] == 0)
        w.at++;
    KIT_TRUE(w.at == n);
    free(keys);
    free(w.keys);
}

void map_model_check(const map_model *m, store_kit *k, const brc_oid *root)
{
    model_walk w = { .m = m };
    uint64_t count;
    for (size_t i = 0; i < m->n; i++) {
        int found = -1;
        brc_span value;
        KIT_OK(k, brc_map_get(k->store, root, m->keys[i].bytes, m->keys[i].len, &found, &value,
                              &k->err));
        KIT_TRUE(found == (m->values[i] != 0));
        KIT_TRUE(!found || map_model_is(m, m->values[i], value));
    }
    check_together(m, k, root, 1);
    check_together(m, k, root, 3);
    KIT_OK(k, brc_map_each(k->store, root, expect_item, &w, &k->err));
    while (w.at < m->n && m->values[w.at] == 0)
        w.at++;
    KIT_TRUE(w.at == m->n);
    KIT_OK(k, brc_map_count(k->store, root, &count, &k->err));
    KIT_TRUE(count == map_model_count(m));
}

static int same_value(const map_model *m, uint64_t a, uint64_t b)
{
    uint8_t x[32], y[32];
    if (a == b || a == 0 || b == 0)
        return a == b;
    size_t len = map_model_value(m, a, x);
    return map_model_value(m, b, y) == len && memcmp(x, y, len) == 0;
}

static int expect_difference(void *ctx, brc_span key, brc_span a, brc_span b, brc_error *err)
{
    model_walk *w = ctx;
    (void)err;
    while (w->at < w->m->n && same_value(w->m, w->a[w->at], w->b[w->at]))
        w->at++;
    KIT_TRUE(w->at < w->m->n);
    KIT_TRUE(key.len == w->m->keys[w->at].len);
    KIT_TRUE(memcmp(key.data, w->m->keys[w->at].bytes, key.len) == 0);
    KIT_TRUE(w->a[w->at] == 0 ? a.data == NULL : map_model_is(w->m, w->a[w->at], a));
    KIT_TRUE(w->b[w->at] == 0 ? b.data == NULL : map_model_is(w->m, w->b[w->at], b));
    w->at++;
    return BRC_OK;
}

typedef struct among_walk {
    const size_t *places; /* of the wanted keys in the model */
    size_t n, at;
    const map_model *m;
    const uint64_t *a, *b;
} among_walk;

static int expect_among(void *ctx, size_t i, brc_error *err)
{
    among_walk *w = ctx;
    (void)err;
    while (w->at < w->n && same_value(w->m, w->a[w->places[w->at]], w->b[w->places[w->at]]))
        w->at++;
    KIT_TRUE(w->at < w->n && i == w->at);
    w->at++;
    return BRC_OK;
}

/* Every `step`-th key is asked for. */
static void check_among(const map_model *m, store_kit *k, const brc_oid *a,
                        const uint64_t *a_values, const brc_oid *b, const uint64_t *b_values,
                        size_t step)
{
    size_t *places = calloc(m->n / step + 1, sizeof(*places));
    brc_span *keys = calloc(m->n / step + 1, sizeof(*keys));
    among_walk w = { .places = places, .m = m, .a = a_values, .b = b_values };
    KIT_TRUE(places != NULL && keys != NULL);
    for (size_t i = step / 2; i < m->n; i += step) {
        places[w.n] = i;
        keys[w.n++] = (brc_span){ m->keys[i].bytes, m->keys[i].len };
    }
    KIT_OK(k, brc_map_diff_among(k->store, a, b, keys, w.n, expect_among, &w, &k->err));
    while (w.at < w.n && same_value(m, a_values[places[w.at]], b_values[places[w.at]]))
        w.at++;
    KIT_TRUE(w.at == w.n);
    free(keys);
    free(places);
}

void map_model_check_diff(const map_model *m, store_kit *k, const brc_oid *a,
                          const uint64_t *a_values, const brc_oid *b, const uint64_t *b_values)
{
    model_walk w = { .m = m, .a = a_values, .b = b_values };
    KIT_OK(k, brc_map_diff(k->store, a, b, expect_difference, &w, &k->err));
    while (w.at < m->n && same_value(m, a_values[w.at], b_values[w.at]))
        w.at++;
    KIT_TRUE(w.at == m->n);
    for (size_t step = 1; step <= m->n; step *= 7)
        check_among(m, k, a, a_values, b, b_values, step);
}
