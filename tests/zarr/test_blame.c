/* Blame against a model that goes through random histories unit by unit: merges, moves, resizes. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../../src/history/commit.h"
#include "../../src/work/session.h"
#include "../kit/ios.h"
#include "../kit/scenario.h"
#include "../kit/suite.h"

TEST_SUITE(blame);

enum { COMMITS = 40, LONGEST = 24, CHUNK = 4 };

/* The state of the array at a commit. */
typedef struct state {
    brc_oid id;
    int parents[2], nparents;
    const char *path;
    int length;
    int32_t value[LONGEST];
} state;

SCENARIO_FIXTURE(t)
static state states[COMMITS];

/* ---- the model -------------------------------- */

static int same_array(const state *a, const state *b, int elements)
{
    if (strcmp(a->path, b->path) != 0 || (elements && a->length != b->length))
        return 0;
    return memcmp(a->value, b->value, sizeof(a->value)) == 0;
}

/* A unit: an element, or a chunk by its first element. */
static int same_unit(const state *a, const state *b, int unit, int elements)
{
    if (!elements)
        return memcmp(a->value + unit, b->value + unit, CHUNK * sizeof(int32_t)) == 0;
    return unit < b->length && a->value[unit] == b->value[unit];
}

/* The commit and all before it, a bit for each. */
static uint64_t past(int c)
{
    uint64_t all = UINT64_C(1) << c;
    for (int i = 0; i < states[c].nparents; i++)
        all |= past(states[c].parents[i]);
    return all;
}

/* The one merge base of two commits; -1: there are several. */
static int base_of(int a, int b)
{
    int base = -1, nbases = 0;
    const uint64_t common = past(a) & past(b);
    for (int c = 0; c < COMMITS; c++) {
        uint64_t others = common & ~(UINT64_C(1) << c);
        int is_best = (common >> c & 1) != 0;
        for (int d = c + 1; is_best && d < COMMITS; d++)
            is_best = (others >> d & 1) == 0 || (past(d) >> c & 1) == 0;
        base = is_best ? c : base;
        nbases += is_best;
    }
    return nbases == 1 ? base : -1;
}

/* Moves are noted from the first parent; from another one they are told by way of the base. */
static int moves_known(int c, int older)
{
    for (; c != older && states[c].nparents > 0; c = states[c].parents[0]) {
        const int first = states[c].parents[0], other = states[c].parents[1];
        if (states[c].nparents < 2 || other != older)
            continue;
        const int base = base_of(first, other);
        if (base >= 0 && moves_known(first, base) && moves_known(other, base))
            return 1;
    }
    return c == older;
}

/* In another parent it is under the same path, or where the moves from the one merge base say. */
static int has_array(const state *now, int i)
{
    if (i == 0 || strcmp(states[now->parents[i]].path, now->path) == 0)
        return 1;
    const int base = base_of(now->parents[0], now->parents[i]);
    return base >= 0 && moves_known(now->parents[0], base) && moves_known(now->parents[i], base);
}

static int whose(int c, int unit, int elements)
{
    const state *s = &states[c];
    for (int i = 0; s->nparents > 1 && i < s->nparents; i++)
        if (has_array(s, i) && same_array(s, &states[s->parents[i]], elements))
            return whose(s->parents[i], unit, elements);
    for (int i = 0; i < s->nparents; i++)
        if (has_array(s, i) && same_unit(s, &states[s->parents[i]], unit, elements))
            return whose(s->parents[i], unit, elements);
    return c;
}

/* ---- the history -------------------------------- */

static void write_state(const state *s)
{
    brc_sel sel = BRC_SEL_INIT;
    uint64_t length = (uint64_t)s->length;
    brc_array *a = scenario_array_at(&t, t.session, s->path);
    if (brc_array_describe(a)->shape[0] != length)
        OK(&t, brc_array_resize(a, &length, &t.err));
    sel_all(&sel, a);
    OK(&t, brc_array_write(a, &sel, s->value, (size_t)length * sizeof(int32_t), &t.err));
    brc_array_free(a);
}

static void reset_to(const brc_oid *id)
{
    char hex[65];
    OK(&t, brc_reset(t.repo, NULL, brc_oid_format(hex, id), BRC_RESET_HARD, NULL, &t.err));
}

static brc_oid commit_any(void)
{
    brc_oid id;
    brc_commit_opts opts = BRC_COMMIT_OPTS_INIT;
    opts.message = "next";
    opts.author = "somebody";
    opts.flags = BRC_COMMIT_ALLOW_EMPTY;
    opts.time_us = 1000; /* clocks say nothing */
    OK(&t, brc_session_commit(&id, t.session, &opts, &t.err));
    return id;
}

/* The same with two parents. */
static brc_oid commit_merge(const state *s)
{
    brc_oid first = commit_any(), parents[2] = {states[s->parents[0]].id, states[s->parents[1]].id};
    brc_commit merge = {.author = "somebody", .message = "merge", .time_us = 1, .nparents = 2,
                        .parents = parents};
    brc_store *store = t.repo->store;
    OK(&t, brc_commit_root(store, &first, &merge.root, &t.err));
    OK(&t, brc_store_begin(store, &t.err));
    OK(&t, brc_commit_put(store, &merge, NULL, &t.err));
    OK(&t, brc_store_end(store, 1, &t.err));
    reset_to(&merge.id);
    return merge.id;
}

static void change_some(state *s, uint64_t *random)
{
    for (uint64_t n = scenario_below(random, 3); n > 0; n--)
        s->value[scenario_below(random, (uint64_t)s->length)] = (int32_t)scenario_below(random, 4);
    if (scenario_below(random, 8) == 0) {
        s->length = 8 + (int)scenario_below(random, LONGEST - 8 + 1);
        memset(s->value + s->length, 0, (size_t)(LONGEST - s->length) * sizeof(int32_t));
    }
}

static void merge_some(state *s, uint64_t *random)
{
    const state *other = &states[s->parents[1]];
    s->nparents = 2;
    for (int i = 0; i < s->length && i < other->length; i++)
        if (scenario_below(random, 2) == 0)
            s->value[i] = other->value[i];
    if (scenario_below(random, 4) == 0) /* all of one side */
        memcpy(s->value, states[s->parents[0]].value, sizeof(s->value));
    else if (scenario_below(random, 4) == 0 && s->length == other->length)
        memcpy(s->value, other->value, sizeof(s->value));
}

static void make_state(int c, uint64_t *random)
{
    state *s = &states[c];
    int parent = c - 1 - (int)scenario_below(random, c < 4 ? (uint64_t)c : 4);
    int other = (int)scenario_below(random, (uint64_t)c);
    *s = states[parent];
    s->parents[0] = parent;
    s->parents[1] = other;
    s->nparents = 1;
    reset_to(&states[parent].id);
    if (other != parent && scenario_below(random, 3) == 0) {
        merge_some(s, random);
    } else {
        change_some(s, random);
        if (scenario_below(random, 6) == 0) {
            const char *to = strcmp(s->path, "/a") == 0 ? "/g/b" : "/a";
            OK(&t, brc_node_move(t.session, s->path, to, 0, &t.err));
            s->path = to;
        }
    }
    write_state(s);
    s->id = s->nparents == 2 ? commit_merge(s) : commit_any();
}

static void make_all(uint64_t seed)
{
    memset(states, 0, sizeof(states));
    scenario_numbers(&t, "/a", LONGEST, CHUNK, 0);
    OK(&t, brc_group_create(t.session, "/g", NULL, &t.err));
    states[0].path = "/a";
    states[0].length = LONGEST;
    for (int i = 0; i < LONGEST; i++)
        states[0].value[i] = i % 4;
    write_state(&states[0]);
    states[0].id = commit_any();
    for (int c = 1; c < COMMITS; c++)
        make_state(c, &seed);
}

/* ---- the comparison -------------------------------- */

/* Equal commits have one id. */
static int is_of(const brc_blamed *b, int c)
{
    return memcmp(&b->commit, &states[c].id, sizeof(b->commit)) == 0;
}

static int is_fill(const state *s, int chunk)
{
    static const int32_t none[CHUNK];
    return chunk * CHUNK >= s->length || memcmp(s->value + chunk * CHUNK, none, sizeof(none)) == 0;
}

static brc_iter *blame_of(int c, const char *slice, uint32_t flags)
{
    char hex[65];
    brc_iter *it;
    brc_sel sel = BRC_SEL_INIT;
    brc_session *s = scenario_session(&t, t.repo, brc_oid_format(hex, &states[c].id),
                                      BRC_SESSION_AT);
    brc_array *a = scenario_array_at(&t, s, states[c].path);
    OK(&t, brc_sel_parse(&sel, a, slice, &t.err));
    OK(&t, brc_blame(&it, a, &sel, flags, &t.err));
    brc_array_free(a);
    brc_session_free(s);
    return it;
}

static void check_chunks(int c, int from, int to)
{
    char slice[32];
    const brc_blamed *b;
    snprintf(slice, sizeof(slice), "[%d:%d]", from, to);
    brc_iter *it = blame_of(c, slice, 0);
    for (int i = from / CHUNK; i * CHUNK < to && i * CHUNK < states[c].length; i++) {
        if (is_fill(&states[c], i))
            continue;
        ck_assert_int_eq(brc_next(it, &b, &t.err), 1);
        ck_assert_uint_eq(b->first[0], (uint64_t)i);
        const int wanted = whose(c, i * CHUNK, 0);
        ck_assert_msg(is_of(b, wanted), "commit %d chunk %d: not of %d", c, i, wanted);
    }
    ck_assert_int_eq(brc_next(it, &b, &t.err), 0);
    brc_iter_free(it);
}

static void check_elements(int c, int step)
{
    char slice[32];
    const brc_blamed *b;
    snprintf(slice, sizeof(slice), "[1::%d]", step);
    brc_iter *it = blame_of(c, slice, BRC_BLAME_ELEMENTS);
    for (int at = 1; at < states[c].length;) {
        ck_assert_int_eq(brc_next(it, &b, &t.err), 1);
        ck_assert_uint_eq(b->first[0], (uint64_t)at);
        for (uint64_t i = 0; i < b->count; i++, at += step)
            ck_assert_msg(is_of(b, whose(c, at, 1)), "commit %d element %d: not of %d", c, at,
                          whose(c, at, 1));
    }
    ck_assert_int_eq(brc_next(it, &b, &t.err), 0);
    brc_iter_free(it);
}

CASE("blame", .setup = t_start, .teardown = t_stop, .timeout = 300);

LOOP(test_random_histories, 0, 4)
{
    make_all((uint64_t)_i * 77 + 5);
    for (int c = 0; c < COMMITS; c++) {
        check_chunks(c, 0, LONGEST);
        check_chunks(c, 5, 9);
        check_elements(c, 1);
        check_elements(c, 3);
    }
}

/* Elements of variable length, two axes, and another fill value. */
TEST(test_strings)
{
    const uint64_t shape[] = {2, 3};
    brc_array *a = scenario_array(&t, "/s", "string", 2, shape, shape, "\"x\"", NULL);
    brc_buf one = BRC_BUF_INIT;
    brc_sel sel = BRC_SEL_INIT;
    brc_iter *it;
    const brc_blamed *b;
    brc_oid first = scenario_commit(&t, "first");
    OK(&t, brc_element_parse(&one, a, "longer", &t.err));
    OK(&t, brc_sel_parse(&sel, a, "[1, 1:2]", &t.err));
    OK(&t, brc_array_write(a, &sel, one.data, one.len, &t.err));
    brc_oid second = scenario_commit(&t, "second");
    brc_buf_dispose(&one);
    brc_array_free(a);
    FAILS(&t, BRC_ENOTFOUND, brc_array_open(&a, t.session, "/nowhere", &t.err));
    brc_session *s = scenario_session(&t, t.repo, NULL, BRC_SESSION_AT);
    OK(&t, brc_array_open(&a, s, "/s", &t.err));
    OK(&t, brc_blame(&it, a, NULL, BRC_BLAME_ELEMENTS, &t.err));
    const uint64_t counts[] = {3, 1, 1, 1};
    for (int i = 0; i < 4; i++) {
        ck_assert_int_eq(brc_next(it, &b, &t.err), 1);
        ck_assert_uint_eq(b->count, counts[i]);
        ck_assert(memcmp(&b->commit, i == 2 ? &second : &first, sizeof(first)) == 0);
    }
    ck_assert_int_eq(brc_next(it, &b, &t.err), 0);
    brc_iter_free(it);
    brc_array_free(a);
    brc_session_free(s);
    OK(&t, brc_array_open(&a, t.session, "/s", &t.err));
    FAILS(&t, BRC_EMISUSE, brc_blame(&it, a, NULL, 0, &t.err));
    brc_array_free(a);
}

/* Blame walks all chunks if many are wanted, and looks for each if few are; steps pass over
 * chunks. */
TEST(test_many_chunks)
{
    enum { SIDE = 40, EDGE = 2 };
    static const struct {
        const char *slice;
        int from[2], to[2], step[2];
    } cases[] = {
        {"[:, :]", {0, 0}, {SIDE * EDGE, SIDE * EDGE}, {1, 1}},
        {"[::5, 3:40]", {0, 3}, {SIDE * EDGE, 40}, {5, 1}},
        {"[7:8, 1:80:7]", {7, 1}, {8, 80}, {1, 7}},
        {"[79:80, 79:80]", {79, 79}, {80, 80}, {1, 1}},
    };
    const uint64_t shape[] = {SIDE * EDGE, SIDE * EDGE}, chunk[] = {EDGE, EDGE};
    brc_array *a = scenario_array(&t, "/m", "int32", 2, shape, chunk, "0", NULL);
    static int32_t values[SIDE * EDGE * SIDE * EDGE];
    brc_sel sel = BRC_SEL_INIT;
    brc_iter *it;
    const brc_blamed *b;
    int rc;
    for (size_t i = 0; i < sizeof(values) / sizeof(values[0]); i++)
        values[i] = (int32_t)i + 1;
    OK(&t, brc_array_write(a, NULL, values, sizeof(values), &t.err));
    brc_oid first = scenario_commit(&t, "first");
    brc_array_free(a);
    brc_session *s = scenario_session(&t, t.repo, NULL, BRC_SESSION_AT);
    OK(&t, brc_array_open(&a, s, "/m", &t.err));
    for (size_t c = 0; c < sizeof(cases) / sizeof(cases[0]); c++) {
        int is_met[SIDE][SIDE] = {{0}}, wanted = 0, found = 0;
        for (int y = cases[c].from[0]; y < cases[c].to[0]; y += cases[c].step[0])
            for (int x = cases[c].from[1]; x < cases[c].to[1]; x += cases[c].step[1])
                wanted += !is_met[y / EDGE][x / EDGE]++;
        OK(&t, brc_sel_parse(&sel, a, cases[c].slice, &t.err));
        OK(&t, brc_blame(&it, a, &sel, 0, &t.err));
        while ((rc = brc_next(it, &b, &t.err)) > 0) {
            ck_assert_int_gt(is_met[b->first[0]][b->first[1]], 0);
            ck_assert_mem_eq(&b->commit, &first, sizeof(first));
            found++;
        }
        OK(&t, rc);
        ck_assert_int_eq(found, wanted);
        brc_iter_free(it);
    }
    brc_array_free(a);
    brc_session_free(s);
}
