/* The counts of brc_stat(). */
#include <string.h>

#include "../kit/scenario.h"
#include "../kit/suite.h"

TEST_SUITE(totals);

static brc_stats stats_of(scenario *t)
{
    brc_stats stats = BRC_STATS_INIT;
    memset(&stats, 0x55, sizeof(stats));
    stats.size = sizeof(stats);
    OK(t, brc_stat(t->repo, &stats, &t->err));
    return stats;
}

static void check_counts(scenario *t, uint64_t commits, uint64_t chunks, uint64_t chunk_refs)
{
    brc_stats stats = stats_of(t);
    ck_assert_uint_eq(stats.commits, commits);
    ck_assert_uint_eq(stats.chunks, chunks);
    ck_assert_uint_eq(stats.chunk_refs, chunk_refs);
}

TEST(chunks_of_all_commits)
{
    scenario t;
    scenario_start(&t);
    check_counts(&t, 0, 0, 0);
    scenario_numbers(&t, "/a", 12, 4, 1);
    check_counts(&t, 0, 3, 0); /* stored, in no commit */
    scenario_commit(&t, "three");
    check_counts(&t, 1, 3, 3);
    scenario_set_number(&t, "/a", 11, -1);
    scenario_commit(&t, "one of them changed");
    check_counts(&t, 2, 4, 6);
    OK(&t, brc_node_move(t.session, "/a", "/g/h/copy", BRC_NODE_COPY, &t.err));
    scenario_commit(&t, "and twice");
    check_counts(&t, 3, 4, 12);
    OK(&t, brc_attrs_set(t.session, "/a", "k", "1", &t.err));
    scenario_commit(&t, "groups that versions share are counted in each");
    check_counts(&t, 4, 4, 18);
    scenario_stop(&t);
}

TEST(commits_that_branches_share_are_counted_once)
{
    scenario t;
    scenario_start(&t);
    scenario_numbers(&t, "/a", 12, 4, 1);
    scenario_commit(&t, "one");
    OK(&t, brc_ref_create(t.repo, "other", NULL, NULL, 0, &t.err));
    OK(&t, brc_ref_create(t.repo, "v1", NULL, NULL, BRC_REF_TAG, &t.err));
    scenario_set_number(&t, "/a", 0, 7);
    scenario_commit(&t, "two");
    check_counts(&t, 2, 4, 6);
    scenario_stop(&t);
}

TEST(all_fill_value_is_no_chunk)
{
    const uint64_t shape[1] = { 1000 }, chunk[1] = { 10 };
    scenario t;
    scenario_start(&t);
    brc_array_free(scenario_array(&t, "/z", "int32", 1, shape, chunk, NULL, NULL));
    scenario_commit(&t, "nothing in it");
    check_counts(&t, 1, 0, 0);
    scenario_stop(&t);
}
