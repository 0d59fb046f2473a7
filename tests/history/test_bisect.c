/* The commit that bisect tries next, against a plain look at the whole graph; and the commit that
 * brought the change, to which it leads. */
#include <stdio.h>
#include <string.h>

#include "../../src/history/ancestry.h"
#include "../../src/history/commit.h"
#include "../kit/store_kit.h"
#include "../kit/suite.h"

TEST_SUITE(bisect);

STORE_KIT_FIXTURE(kit)

#define OK(call) KIT_OK(&kit, call)

enum { COMMITS = 24 };

typedef struct past {
    brc_oid ids[COMMITS];
    char has[COMMITS][COMMITS]; /* [a][b]: b is a, or an ancestor of it */
} past;

static brc_oid put_one(size_t i, const brc_oid *parents, size_t n)
{
    char name[16];
    brc_commit c = {.author = "A", .message = name, .parents = parents, .nparents = n};
    c.time_us = 1000 - (int64_t)i; /* nothing may depend on it */
    snprintf(name, sizeof(name), "%zu", i);
    OK(brc_commit_put(kit.store, &c, NULL, &kit.err));
    return c.id;
}

/* All come from the first one. */
static void make_past(past *p, uint64_t *random, int is_line)
{
    memset(p, 0, sizeof(*p));
    OK(brc_store_begin(kit.store, &kit.err));
    for (size_t i = 0; i < COMMITS; i++) {
        brc_oid parents[3];
        const size_t n = i == 0 ? 0 : is_line ? 1 : 1 + store_kit_below(random, i < 3 ? 1 : 3);
        p->has[i][i] = 1;
        for (size_t k = 0; k < n; k++) {
            const size_t from = is_line ? i - 1 : i - 1 - store_kit_below(random, i < 6 ? i : 6);
            parents[k] = p->ids[from];
            for (size_t a = 0; a < COMMITS; a++)
                p->has[i][a] |= p->has[from][a];
        }
        p->ids[i] = put_one(i, parents, n);
    }
    OK(brc_store_end(kit.store, 1, &kit.err));
}

static size_t number_of(const past *p, const brc_oid *id)
{
    for (size_t i = 0; i < COMMITS; i++)
        if (brc_oid_cmp(&p->ids[i], id) == 0)
            return i;
    ck_abort_msg("no such commit");
}

static int is_listed(const brc_commit_set *set, const brc_oid *id)
{
    for (size_t i = 0; i < set->n; i++)
        if (brc_oid_cmp(&set->ids[i], id) == 0)
            return 1;
    return 0;
}

/* Could i have brought the change? */
static int is_candidate(const past *p, const brc_bisection *b, size_t i)
{
    for (size_t g = 0; g < b->good.n; g++)
        if (p->has[number_of(p, &b->good.ids[g])][i])
            return 0;
    return p->has[number_of(p, &b->bad)][i];
}

static size_t half_of(const past *p, const brc_bisection *b, size_t at, size_t left)
{
    size_t reached = 0;
    for (size_t i = 0; i < COMMITS; i++)
        reached += (size_t)(is_candidate(p, b, i) && p->has[at][i]);
    return reached < left - reached ? reached : left - reached;
}

/* No other would halve them better. */
static void check_choice(const past *p, const brc_bisection *b, size_t at, size_t left)
{
    size_t n = 0;
    for (size_t i = 0; i < COMMITS; i++)
        n += (size_t)is_candidate(p, b, i);
    ck_assert_uint_eq(n, left);
    if (left == 1 || !is_candidate(p, b, at)) /* found, or what a good one has in common */
        return;
    ck_assert(brc_oid_cmp(&p->ids[at], &b->bad) != 0);
    for (size_t i = 0; i < COMMITS; i++)
        if (is_candidate(p, b, i) && !is_listed(&b->skipped, &p->ids[i]))
            ck_assert_uint_le(half_of(p, b, i, left), half_of(p, b, at, left));
}

static void search(uint64_t seed, int skips)
{
    past p;
    uint64_t random = seed, left;
    brc_bisection b = {0};
    int state, asked = 0;
    brc_oid at;
    make_past(&p, &random, seed % 5 == 0);
    const size_t culprit = 1 + store_kit_below(&random, COMMITS - 1);
    size_t bad = COMMITS - 1, good = store_kit_below(&random, COMMITS);
    while (!p.has[bad][culprit])
        bad--;
    while (p.has[good][culprit])
        good--; /* the first has not */
    b.has_bad = 1;
    b.bad = p.ids[bad];
    OK(brc_commit_set_add(&b.good, &p.ids[good], &kit.err));
    for (;;) {
        OK(brc_store_begin_read(kit.store, &kit.err));
        OK(brc_bisect_next(&b, kit.store, &state, &at, &left, &kit.err));
        brc_store_end_read(kit.store);
        if (state != BRC_BISECT_NEXT)
            break;
        ck_assert_int_lt(asked++, COMMITS);
        const size_t i = number_of(&p, &at);
        check_choice(&p, &b, i, left);
        ck_assert(!is_listed(&b.good, &at) && !is_listed(&b.skipped, &at));
        if (skips && store_kit_below(&random, 3) == 0)
            OK(brc_commit_set_add(&b.skipped, &at, &kit.err));
        else if (p.has[i][culprit])
            b.bad = at;
        else
            OK(brc_commit_set_add(&b.good, &at, &kit.err));
    }
    ck_assert_msg(skips || state == BRC_BISECT_FOUND, "seed %llu", (unsigned long long)seed);
    ck_assert(is_candidate(&p, &b, culprit));
    if (state == BRC_BISECT_FOUND)
        ck_assert_msg(number_of(&p, &at) == culprit, "seed %llu: not the culprit",
                      (unsigned long long)seed);
    if (seed % 5 == 0 && !skips) /* 23 in a line: five questions are enough */
        ck_assert_int_le(asked, 5);
    brc_bisection_dispose(&b);
}

CASE("bisect", .setup = kit_start, .teardown = kit_stop);

LOOP(b1_it_finds_the_commit, 0, 30)
{
    search((uint64_t)_i + 100, 0);
}

LOOP(b2_also_where_some_are_skipped, 0, 20)
{
    search((uint64_t)_i + 200, 1);
}

/* A fault that is gone in a later commit was mended in between. */
TEST(b3_bad_before_good_is_refused)
{
    past p;
    uint64_t random = 1, left;
    brc_bisection b = {0};
    int state;
    brc_oid at;
    make_past(&p, &random, 1);
    b.bad = p.ids[2];
    OK(brc_commit_set_add(&b.good, &p.ids[4], &kit.err));
    ck_assert_int_eq(brc_bisect_next(&b, kit.store, &state, &at, &left, &kit.err), BRC_EMISUSE);
    brc_bisection_dispose(&b);
}
