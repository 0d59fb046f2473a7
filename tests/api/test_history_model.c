/*
 * Random operations on histories against an oracle (history_oracle.h): rounds of 200 on a new file
 * each, with fsck after every one. `make soak STEPS=1000000 SEED=2` takes more. What fails is made
 * shorter and printed as a list for BRECCIA_OPS, which does just that again.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../kit/effort.h"
#include "../kit/history_world.h"
#include "../kit/scenario.h"
#include "../kit/suite.h"

TEST_SUITE(history_model);

#define ROUND 200

static hm_world totals;

static void print_ops(const hm_op *ops, int n)
{
    printf("BRECCIA_OPS='");
    for (int i = 0; i < n; i++)
        printf("%s%d,%d,%d,%d,%d,%d", i > 0 ? " " : "", ops[i].kind, ops[i].a, ops[i].b, ops[i].c,
               ops[i].d, ops[i].kill);
    printf("'\n");
    for (int i = 0; i < n; i++)
        printf("  %3d %s %d %d %d %d%s\n", i + 1, hm_op_name(ops[i]), ops[i].a, ops[i].b, ops[i].c,
               ops[i].d, ops[i].kill ? ", killed" : "");
}

static void run_round(hm_op *ops, int n, uint64_t seed)
{
    char why[500];
    if (hm_run(ops, n, why, sizeof(why), &totals) == 0)
        return;
    printf("history_model: seed %llu fails: %s\n", (unsigned long long)seed, why);
    n = hm_shrink(ops, n, why, sizeof(why));
    print_ops(ops, n);
    fflush(stdout);
    ck_abort_msg("seed %llu, %d operations: %s", (unsigned long long)seed, n, why);
}

/* A run whose number of steps was given has no time limit. */
CASE("history_model", .timeout = getenv("BRECCIA_STEPS") != NULL ? UNTIMED : 0);

TEST(random_histories_are_what_the_oracle_says)
{
    const uint64_t steps = effort_number("BRECCIA_STEPS", 10000 / effort_step(4, 4));
    const uint64_t first = effort_number("BRECCIA_SEED", 1);
    hm_op ops[ROUND];
    memset(&totals, 0, sizeof(totals));
    for (uint64_t done = 0; done < steps; done += ROUND) {
        const uint64_t seed = first * 1000003 + done / ROUND;
        uint64_t random = seed;
        for (int i = 0; i < ROUND; i++)
            ops[i] = hm_random_op(&random);
        run_round(ops, ROUND, seed);
    }
    printf("history_model: seed %llu, %llu steps, %llu commits, %llu conflicts, %llu killed,"
           " %llu collected, %llu expired, %llu settled, %llu deltas, %llu without a rule\n",
           (unsigned long long)first, (unsigned long long)steps, (unsigned long long)totals.made,
           (unsigned long long)totals.refused, (unsigned long long)totals.killed,
           (unsigned long long)totals.collected, (unsigned long long)totals.expired,
           (unsigned long long)totals.settled, (unsigned long long)totals.deltas,
           (unsigned long long)totals.unsure);
    fflush(stdout);
    if (steps < 2000)
        return;
    ck_assert_uint_gt(totals.made, steps / 20); /* it has not gone past what it is for */
    ck_assert_uint_gt(totals.refused, steps / 500);
    ck_assert_uint_gt(totals.killed, steps / 500);
    ck_assert_uint_gt(totals.collected, steps / 100);
    ck_assert_uint_gt(totals.expired, steps / 200);
    ck_assert_uint_gt(totals.settled, steps / 2500);
    ck_assert_uint_gt(totals.deltas, steps / 1000);
    ck_assert_uint_lt(totals.unsure, totals.made / 3);
}

/* Runs the operations that a failure printed. */
TEST(the_operations_that_are_given)
{
    const char *text = getenv("BRECCIA_OPS");
    hm_op ops[ROUND];
    int n = 0, v[6], used;
    if (text == NULL)
        return;
    while (n < ROUND && sscanf(text, "%d,%d,%d,%d,%d,%d%n", &v[0], &v[1], &v[2], &v[3], &v[4],
                               &v[5], &used) == 6) {
        ops[n++] = (hm_op){(uint8_t)(v[0] % HM_KINDS), (uint8_t)v[1], (uint8_t)v[2], (uint8_t)v[3],
                           (uint8_t)v[4], (uint8_t)v[5]};
        text += used;
    }
    run_round(ops, n, 0);
}
