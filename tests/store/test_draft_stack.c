/* Rows of uncommitted chunks that lie on each other: one set to all who read it. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../../src/store/db.h"
#include "../kit/seal.h"
#include "../kit/store_kit.h"
#include "../kit/suite.h"

TEST_SUITE(draft_stack);

static store_kit kit;
static int64_t draft;

#define OK(call) KIT_OK(&kit, call)

static void draft_stack_setup(void)
{
    store_kit_start(&kit);
    OK(brc_store_begin(kit.store, &kit.err));
    draft = store_kit_draft(&kit, "main", NULL);
}

static void draft_stack_teardown(void)
{
    store_kit_stop(&kit);
}

/* A row of a draft of its own, so that its path is free. */
static int64_t row_of(int64_t of, const char *path)
{
    int64_t node = 0;
    OK(brc_draft_node_put(kit.store, of, path, "e", 1, &node, &kit.err));
    return node;
}

static int64_t another_draft(void)
{
    int64_t id;
    brc_draft_row row = {.branch = "main", .owner = "{}"};
    row.draft.kind = BRC_DRAFT_PRIVATE;
    OK(brc_draft_start(kit.store, &row, &id, &kit.err));
    return id;
}

static brc_draft_stack stack_of(int64_t node)
{
    brc_draft_stack stack;
    OK(brc_draft_stack_get(kit.store, node, &stack, &kit.err));
    return stack;
}

/* The rows of a path of another draft are laid over those here. */
static int64_t lay(int64_t upper, int64_t lower)
{
    brc_draft_stack a = stack_of(upper), b = stack_of(lower);
    OK(brc_draft_stack_lay(kit.store, &a, &b, &kit.err));
    a = stack_of(upper);
    OK(brc_draft_row_give(kit.store, &a, draft, "e", 1, &kit.err));
    return upper;
}

enum { KEYS = 60 };

/* The state of each key: 0 no row, 1 to 200 an id, -1 dropped. */
typedef struct key_model {
    int is[KEYS];
    int at, seen;
} key_model;

static size_t key_of(int i, char key[8])
{
    return (size_t)snprintf(key, 8, i % 3 == 0 ? "%02d" : "%02d+", i);
}

static int same_as_model(void *ctx, const uint8_t *key, size_t key_len, const brc_oid *id,
                         brc_error *err)
{
    key_model *m = ctx;
    char want[8];
    (void)err;
    while (m->at < KEYS && m->is[m->at] == 0)
        m->at++;
    KIT_TRUE(m->at < KEYS);
    KIT_TRUE(key_len == key_of(m->at, want) && memcmp(key, want, key_len) == 0);
    KIT_TRUE((id == NULL ? -1 : id->bytes[0]) == m->is[m->at]);
    m->at++;
    m->seen++;
    return BRC_OK;
}

static int rows_of(const key_model *m)
{
    int n = 0;
    for (int i = 0; i < KEYS; i++)
        n += m->is[i] != 0;
    return n;
}

static void stack_is(int64_t node, key_model *m)
{
    brc_draft_stack stack = stack_of(node);
    char key[8];
    int any;
    m->at = m->seen = 0;
    OK(brc_draft_chunk_each(kit.store, &stack, same_as_model, m, &kit.err));
    ck_assert_int_eq(m->seen, rows_of(m));
    OK(brc_draft_chunk_any(kit.store, &stack, &any, &kit.err));
    ck_assert_int_eq(any, m->seen > 0);
    for (int i = 0; i < KEYS; i++) {
        int state;
        brc_oid id;
        OK(brc_draft_chunk_get(kit.store, &stack, key, key_of(i, key), &state, &id, &kit.err));
        ck_assert_int_eq(state, m->is[i] == 0 ? 0 : m->is[i] < 0 ? 2 : 1);
        if (state == 1)
            ck_assert_int_eq(id.bytes[0], m->is[i]);
    }
    for (size_t most = 1; most < 9; most += 3) { /* page by page */
        brc_span after = {NULL, 0};
        m->at = 0;
        for (int was = -1; m->at != was;) {
            was = m->at;
            OK(brc_draft_chunk_page(kit.store, &stack, after, most, same_as_model, m, &kit.err));
            if (m->at > 0)
                after = (brc_span){(const uint8_t *)key, key_of(m->at - 1, key)};
        }
        while (m->at < KEYS)
            ck_assert_int_eq(m->is[m->at++], 0);
    }
}

static void write_some(int64_t node, key_model *m, uint64_t *seed)
{
    char key[8];
    for (int k = 0; k < 12; k++) {
        int i = (int)store_kit_below(seed, KEYS);
        brc_oid id = store_kit_id((uint8_t)(1 + store_kit_below(seed, 200)));
        const int drops = store_kit_below(seed, 4) == 0;
        OK(brc_draft_chunk_put(kit.store, node, key, key_of(i, key), drops ? NULL : &id,
                               &kit.err));
        m->is[i] = drops ? -1 : id.bytes[0];
    }
}

static int64_t tables(const char *what)
{
    char sql[200];
    snprintf(sql, sizeof(sql), "SELECT count(*) FROM %s", what);
    return store_kit_ask(&kit, sql);
}

CASE("stacks", .setup = draft_stack_setup, .teardown = draft_stack_teardown);

/* The uppermost row that has a key counts; laying moves no chunk. */
LOOP(the_upper_row_counts, 0, 8)
{
    uint64_t seed = (uint64_t)_i + 1;
    key_model m = {{0}, 0, 0};
    int64_t top = row_of(draft, "/a");
    write_some(top, &m, &seed);
    stack_is(top, &m);
    for (int level = 1; level < 6; level++) {
        key_model upper = {{0}, 0, 0};
        int64_t node = row_of(another_draft(), "/a");
        write_some(node, &upper, &seed);
        if (level == 3) { /* a stack over a stack, made before what it comes to lie on */
            int64_t third = row_of(another_draft(), "/a");
            key_model more = {{0}, 0, 0};
            write_some(third, &more, &seed);
            top = lay(third, top);
            for (int i = 0; i < KEYS; i++)
                m.is[i] = more.is[i] != 0 ? more.is[i] : m.is[i];
        }
        OK(brc_store_end(kit.store, 1, &kit.err));
        const int64_t chunks = tables("draft_chunk");
        OK(brc_store_begin(kit.store, &kit.err));
        top = lay(node, top);
        ck_assert_int_eq(top, node);
        for (int i = 0; i < KEYS; i++)
            m.is[i] = upper.is[i] != 0 ? upper.is[i] : m.is[i];
        stack_is(top, &m);
        OK(brc_store_end(kit.store, 1, &kit.err));
        ck_assert_int_eq(tables("draft_chunk"), chunks);
        ck_assert_int_eq(tables("draft_chunk WHERE checksum IS NOT row_sum('draft_chunk', node,"
                                " key, id)"), 0);
        ck_assert_int_eq(tables("draft_node WHERE checksum IS NOT row_sum('draft_node', node,"
                                " draft, path, below, level, entry)"), 0);
        OK(brc_store_begin(kit.store, &kit.err));
    }
    /* a copy has the whole stack, and is another one */
    brc_draft_node row;
    int found;
    OK(brc_draft_node_move(kit.store, draft, "/a", "/b", &(brc_draft_copying){0}, &kit.err));
    OK(brc_draft_node_get(kit.store, draft, "/b", &found, &row, &kit.err));
    free(row.entry);
    key_model copy = m;
    stack_is(row.node, &copy);
    write_some(row.node, &copy, &seed);
    stack_is(row.node, &copy);
    stack_is(top, &m);
    /* and everything goes with the node */
    OK(brc_draft_row_clear(kit.store, top, "/a", &kit.err));
    ck_assert_uint_eq(stack_of(top).n, 1);
    OK(brc_draft_node_clear(kit.store, draft, "/", &kit.err));
    OK(brc_store_end(kit.store, 1, &kit.err));
    ck_assert_int_eq(tables("draft_chunk"), 0);
}

/* A stack has an end: more rows than it may have become fewer. */
TEST(a_stack_does_not_grow_for_ever)
{
    uint64_t seed = 7;
    key_model m = {{0}, 0, 0};
    int64_t top = row_of(draft, "/a");
    for (int i = 0; i < 2 * BRC_DRAFT_STACK_MOST; i++) {
        key_model upper = {{0}, 0, 0};
        int64_t node = row_of(another_draft(), "/a");
        write_some(node, &upper, &seed);
        top = lay(node, top);
        for (int k = 0; k < KEYS; k++)
            m.is[k] = upper.is[k] != 0 ? upper.is[k] : m.is[k];
        stack_is(top, &m);
        KIT_TRUE(stack_of(top).n <= BRC_DRAFT_STACK_MOST);
    }
    OK(brc_store_end(kit.store, 1, &kit.err));
    ck_assert_int_le(tables("draft_node"), BRC_DRAFT_STACK_MOST);
    ck_assert_int_gt(tables("draft_node"), BRC_DRAFT_STACK_SHORT);
    ck_assert_int_eq(tables("draft_node WHERE path='/a'"), 1);
}

/* A caller that remembers a number must not find another node under it. Rows that keep a number
 * from being given again do not pile up. */
TEST(a_number_is_never_given_twice)
{
    int64_t last = row_of(draft, "/a");
    for (int i = 0; i < 5; i++) {
        OK(brc_draft_node_clear(kit.store, draft, "/", &kit.err));
        OK(brc_store_end(kit.store, 1, &kit.err));
        ck_assert_int_eq(tables("draft_node"), 1);
        ck_assert_int_eq(tables("draft_node WHERE draft=0"), 1);
        store_kit_reopen(&kit);
        OK(brc_store_begin(kit.store, &kit.err));
        const int64_t node = row_of(draft, i % 2 ? "/a" : "/b");
        ck_assert_int_gt(node, last);
        last = node;
    }
    OK(brc_store_end(kit.store, 1, &kit.err));
    ck_assert_int_le(tables("draft_node"), 2);
}

static int note_model(void *ctx, const uint8_t *key, size_t key_len, const brc_oid *id,
                      brc_error *err)
{
    key_model *m = ctx;
    (void)err;
    KIT_TRUE(key_len >= 2);
    m->is[(key[0] - '0') * 10 + key[1] - '0'] = id == NULL ? -1 : id->bytes[0];
    return BRC_OK;
}

/* Lays rows from..to of a stack over the keys that `m` has. */
static void note_rows(const brc_draft_stack *stack, size_t from, size_t to, key_model *m)
{
    for (size_t i = to; i > from; i--) {
        brc_draft_stack one = {1, {stack->node[i - 1]}};
        OK(brc_draft_chunk_each(kit.store, &one, note_model, m, &kit.err));
    }
}

/* The keys that somebody has read of a row and all rows below it stay right for as long as the row
 * is there: with the rows above it as they are now, they make the whole. */
static void suffixes_are_right(int64_t top, const brc_draft_stack *old, const key_model *read,
                               const key_model *whole)
{
    const brc_draft_stack now = stack_of(top);
    for (size_t i = 1; i < now.n; i++) {
        size_t was = 0;
        while (was < old->n && old->node[was] != now.node[i])
            was++;
        KIT_TRUE(was < old->n); /* no row is new */
        key_model m = read[was];
        note_rows(&now, 0, i, &m);
        KIT_TRUE(memcmp(m.is, whole->is, sizeof(m.is)) == 0);
    }
}

LOOP(a_shorter_stack_says_the_same, 0, 8)
{
    enum { HIGH = 14 };
    uint64_t seed = (uint64_t)_i + 1;
    key_model m = {{0}, 0, 0}, read[HIGH + 1];
    int64_t top = row_of(draft, "/a");
    for (int i = 0; i < HIGH; i++) {
        key_model upper = {{0}, 0, 0};
        int64_t node = row_of(another_draft(), "/a");
        write_some(node, &upper, &seed);
        top = lay(node, top);
        for (int k = 0; k < KEYS; k++)
            m.is[k] = upper.is[k] != 0 ? upper.is[k] : m.is[k];
    }
    const brc_draft_stack old = stack_of(top);
    ck_assert_uint_eq(old.n, HIGH + 1);
    memset(read, 0, sizeof(read));
    for (size_t i = 1; i < old.n; i++)
        note_rows(&old, i, old.n, &read[i]);
    int done = 0, steps = 0;
    for (; !done; steps++) {
        OK(brc_draft_stack_shorten(kit.store, top, 3, &done, &kit.err));
        stack_is(top, &m);
        if (stack_of(top).n > 3)
            suffixes_are_right(top, &old, read, &m);
    }
    ck_assert_int_ge(steps, HIGH - 2);
    ck_assert_uint_eq(stack_of(top).n, 3);
    OK(brc_store_end(kit.store, 1, &kit.err));
    ck_assert_int_eq(tables("draft_chunk WHERE checksum IS NOT row_sum('draft_chunk', node, key,"
                            " id)"), 0);
    ck_assert_int_eq(tables("draft_node WHERE checksum IS NOT row_sum('draft_node', node, draft,"
                            " path, below, level, entry)"), 0);
}

/* A row that is not what was written is not made one that looks right. */
TEST(damage_is_not_moved)
{
    uint64_t seed = 3;
    int done;
    key_model m = {{0}, 0, 0};
    int64_t top = row_of(draft, "/a");
    write_some(top, &m, &seed);
    for (int i = 0; i < 4; i++) {
        int64_t node = row_of(another_draft(), "/a");
        write_some(node, &m, &seed);
        top = lay(node, top);
    }
    OK(brc_store_end(kit.store, 1, &kit.err));
    store_kit_sql(&kit, "UPDATE draft_chunk SET id=x'00112233445566778899aabbccddeeff'");
    OK(brc_store_begin(kit.store, &kit.err));
    store_kit_failed(brc_draft_stack_shorten(kit.store, top, 3, &done, &kit.err), BRC_ECORRUPT,
                     "an uncommitted chunk", &kit.err, __FILE__, __LINE__);
    OK(brc_store_end(kit.store, 0, &kit.err));
}

/* A stranger's file may have rows that lie in a circle. */
TEST(a_circle_is_damage)
{
    int64_t one = row_of(draft, "/a"), two = row_of(another_draft(), "/a");
    brc_draft_stack stack;
    ck_assert_int_eq(lay(two, one), two);
    OK(brc_store_end(kit.store, 1, &kit.err));
    store_kit_sql(&kit, "UPDATE draft_node SET below=(SELECT max(node) FROM draft_node)"
                        " WHERE below IS NULL;" SEAL_ALL);
    store_kit_failed(brc_draft_stack_get(kit.store, two, &stack, &kit.err), BRC_ECORRUPT, "below",
                     &kit.err, __FILE__, __LINE__);
    OK(brc_store_begin(kit.store, &kit.err)); /* as teardown leaves it */
    OK(brc_store_end(kit.store, 0, &kit.err));
}
