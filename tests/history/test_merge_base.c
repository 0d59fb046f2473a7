/* Merge bases, against a plain look at the whole graph; and the folding of several. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../../src/history/commit.h"
#include "../../src/history/ancestry.h"
#include "../kit/store_kit.h"
#include "../kit/suite.h"

TEST_SUITE(merge_base);

STORE_KIT_FIXTURE(kit)

#define OK(call) KIT_OK(&kit, call)

enum { GRAPH_N = 20 };

typedef struct graph {
    brc_oid ids[GRAPH_N];
    char behind[GRAPH_N][GRAPH_N]; /* [a][b]: b is a, or an ancestor of it */
} graph;

/* Times fall as the commits get newer: nothing may depend on them. */
static void make_graph(graph *g, uint64_t random)
{
    char name[16];
    memset(g, 0, sizeof(*g));
    OK(brc_store_begin(kit.store, &kit.err));
    for (size_t i = 0; i < GRAPH_N; i++) {
        brc_oid parents[3];
        size_t n = i == 0 ? 0 : store_kit_below(&random, i < 3 ? 2 : 4);
        g->behind[i][i] = 1;
        for (size_t p = 0; p < n; p++) {
            size_t from = store_kit_below(&random, i);
            parents[p] = g->ids[from];
            for (size_t k = 0; k < GRAPH_N; k++)
                g->behind[i][k] |= g->behind[from][k];
        }
        snprintf(name, sizeof(name), "%zu", i);
        g->ids[i] = store_kit_commit(&kit, 1000 - (int64_t)i, name, parents, n);
    }
    OK(brc_store_end(kit.store, 1, &kit.err));
}

static int is_common(const graph *g, size_t a, size_t b, size_t other, size_t k)
{
    return (g->behind[a][k] || g->behind[b][k]) && g->behind[other][k];
}

static int is_best(const graph *g, size_t a, size_t b, size_t other, size_t k)
{
    if (!is_common(g, a, b, other, k))
        return 0;
    for (size_t i = 0; i < GRAPH_N; i++)
        if (i != k && is_common(g, a, b, other, i) && g->behind[i][k])
            return 0;
    return 1;
}

static void check_bases(const graph *g, size_t a, size_t b, size_t other)
{
    brc_commit_set some = {0}, found;
    size_t n = 0;
    OK(brc_commit_set_add(&some, &g->ids[a], &kit.err));
    OK(brc_commit_set_add(&some, &g->ids[b], &kit.err));
    OK(brc_merge_bases(&found, kit.store, &some, &g->ids[other], &kit.err));
    for (size_t k = 0; k < GRAPH_N; k++) {
        int there = 0;
        for (size_t i = 0; i < found.n; i++)
            there |= brc_oid_cmp(&found.ids[i], &g->ids[k]) == 0;
        KIT_TRUE(there == is_best(g, a, b, other, k));
        n += (size_t)there;
    }
    KIT_TRUE(n == found.n);
    brc_commit_set_dispose(&some);
    brc_commit_set_dispose(&found);
}

CASE("merge_base", .setup = kit_start, .teardown = kit_stop);

LOOP(t1_bases_follow_from_the_graph, 0, 24)
{
    graph g;
    make_graph(&g, (uint64_t)_i + 11);
    if (_i % 2 == 1) /* rows that may be wrong are not believed */
        store_kit_sql(&kit, _i % 4 == 1 ? "UPDATE commit_info SET generation=1"
                                        : "DELETE FROM commit_info");
    for (size_t a = 0; a < GRAPH_N; a++)
        for (size_t b = 0; b < GRAPH_N; b++)
            check_bases(&g, a, (size_t)_i % GRAPH_N, b);
}

typedef struct fold_count {
    size_t merges;
    unsigned char last;
} fold_count;

static int count_merge(void *ctx, const brc_oid *base, const brc_oid *ours, const brc_oid *theirs,
                       brc_oid *out, brc_error *err)
{
    fold_count *count = ctx;
    (void)base;
    (void)ours;
    (void)theirs;
    (void)err;
    memset(out, 0, sizeof(*out));
    out->bytes[0] = 1;
    memcpy(out->bytes + 1, &count->merges, sizeof(count->merges));
    count->merges++;
    return BRC_OK;
}

/* Each row is two merges of the row below: without a memory, 2^n of them. */
TEST(t2_a_thousand_crosses_are_folded_once_each)
{
    enum { ROWS = 1000 };
    brc_oid pair[2], next[2], start, root;
    brc_commit_set some = {0}, bases;
    fold_count count = {0};
    char name[32];
    OK(brc_store_begin(kit.store, &kit.err));
    start = store_kit_commit(&kit, 1, "start", NULL, 0);
    pair[0] = store_kit_commit(&kit, 2, "left", &start, 1);
    pair[1] = store_kit_commit(&kit, 2, "right", &start, 1);
    for (int i = 0; i < ROWS; i++) {
        for (int k = 0; k < 2; k++) {
            snprintf(name, sizeof(name), "%d %d", i, k);
            next[k] = store_kit_commit(&kit, 3, name, pair, 2);
        }
        memcpy(pair, next, sizeof(pair));
    }
    OK(brc_store_end(kit.store, 1, &kit.err));
    OK(brc_commit_set_add(&some, &pair[0], &kit.err));
    OK(brc_merge_bases(&bases, kit.store, &some, &pair[1], &kit.err));
    ck_assert_uint_eq(bases.n, 2);
    OK(brc_merge_base_root(kit.store, &bases, count_merge, &count, &root, &kit.err));
    ck_assert_uint_eq(count.merges, ROWS);
    brc_commit_set_dispose(&some);
    brc_commit_set_dispose(&bases);
}
