/* The commits that are reached from others, and ranges of them. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../../src/history/commit.h"
#include "../../src/history/ancestry.h"
#include "../kit/store_kit.h"
#include "../kit/suite.h"

TEST_SUITE(reach);

STORE_KIT_FIXTURE(kit)

#define OK(call) KIT_OK(&kit, call)

enum { RANGE_N = 24 };

typedef struct range_history {
    brc_oid ids[RANGE_N];
    char behind[RANGE_N][RANGE_N]; /* [a][b]: b is reachable from a */
} range_history;

/* Lines and merges in turn: every other history is a line with few of them. */
static void make_range_history(range_history *h, uint64_t random)
{
    uint64_t merges = random % 2 == 0 ? 3 : 15;
    char name[16];
    memset(h, 0, sizeof(*h));
    OK(brc_store_begin(kit.store, &kit.err));
    for (size_t i = 0; i < RANGE_N; i++) {
        size_t n = i == 0 ? 0 : i > 2 && store_kit_below(&random, merges) == 0 ? 2 : 1;
        brc_oid parents[2];
        h->behind[i][i] = 1;
        for (size_t p = 0; p < n; p++) {
            size_t from = i - 1 - store_kit_below(&random, p == 0 && merges > 3 ? 1 : i);
            parents[p] = h->ids[from];
            for (size_t k = 0; k < RANGE_N; k++)
                h->behind[i][k] |= h->behind[from][k];
        }
        snprintf(name, sizeof(name), "%zu", i);
        h->ids[i] = store_kit_commit(&kit, (int64_t)store_kit_below(&random, 1000), name, parents,
                                     n);
    }
    OK(brc_store_end(kit.store, 1, &kit.err));
}

static void check_range(const range_history *h, size_t hidden, size_t tip)
{
    char given[RANGE_N] = { 0 };
    brc_walk *walk;
    const brc_commit *c;
    int rc;
    OK(brc_walk_new(&walk, kit.store, &h->ids[tip], &kit.err));
    OK(brc_walk_hide(walk, &h->ids[hidden], &kit.err));
    while ((rc = brc_walk_next(walk, &c, &kit.err)) > 0) {
        size_t i = (size_t)strtoul(c->message, NULL, 10);
        for (size_t later = 0; later < RANGE_N; later++) /* no child comes after it */
            ck_assert(!given[i] && !(given[later] && h->behind[i][later]));
        given[i] = 1;
    }
    OK(rc);
    ck_assert_int_eq(brc_walk_next(walk, &c, &kit.err), 0);
    brc_walk_free(walk);
    for (size_t i = 0; i < RANGE_N; i++)
        ck_assert_int_eq(given[i], h->behind[tip][i] && !h->behind[hidden][i]);
}

CASE("reach", .setup = kit_start, .teardown = kit_stop);

LOOP(f13_a_range_has_what_only_its_end_reaches, 0, 8)
{
    range_history h;
    make_range_history(&h, (uint64_t)_i + 7);
    for (size_t hidden = 0; hidden < RANGE_N; hidden++)
        for (size_t tip = 0; tip < RANGE_N; tip++)
            check_range(&h, hidden, tip);
}

LOOP(f10_reaching_is_what_parents_say, 0, 8)
{
    range_history h;
    make_range_history(&h, (uint64_t)_i + 70);
    for (size_t a = 0; a < RANGE_N; a++) {
        brc_reach *reach;
        size_t b = (a * 7 + 5) % RANGE_N;
        OK(brc_reach_new(&reach, kit.store, &kit.err));
        OK(brc_reach_from(reach, &h.ids[a], &kit.err));
        for (size_t i = 0; i < RANGE_N; i++)
            ck_assert_int_eq(brc_reach_find(reach, &h.ids[i], &kit.err), h.behind[a][i]);
        OK(brc_reach_from(reach, &h.ids[b], &kit.err)); /* one more, after a search */
        for (size_t i = RANGE_N; i-- > 0;)
            ck_assert_int_eq(brc_reach_find(reach, &h.ids[i], &kit.err),
                             h.behind[a][i] || h.behind[b][i]);
        brc_reach_free(reach);
    }
}
