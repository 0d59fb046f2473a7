/*
 * Branches that are merged into each other crosswise have several merge bases, which are merged
 * with each other first: by element too. Random histories of one array are held against an oracle
 * that merges element by element: where it has no conflict there may be none, and where it has
 * some, these are in the chunks that have them.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../../src/base/buf.h"
#include "../../src/breccia.h"
#include "../kit/ios.h"
#include "../kit/scenario.h"
#include "../kit/suite.h"

TEST_SUITE(crosswise);

enum { LEN = 24, CHUNK = 6, CHUNKS = LEN / CHUNK, BRANCHES = 4 };
enum { COMMITS = 160, STEPS = 60, SEEDS = 12 };
#define UNKNOWN INT32_MIN

typedef struct cross_commit {
    brc_oid id;
    int nparents, parent[2];
    int32_t value[LEN];
} cross_commit;

typedef struct crosswise {
    scenario t;
    uint64_t random;
    int as_text; /* elements of variable length */
    int n, tip[BRANCHES];
    cross_commit commit[COMMITS];
    int several, by_element; /* merges with several bases, and of these by element */
} crosswise;

/* ---- the oracle -------------------------------- */

static void mark_below(const crosswise *x, int from, uint8_t *seen)
{
    if (seen[from])
        return;
    seen[from] = 1;
    for (int i = 0; i < x->commit[from].nparents; i++)
        mark_below(x, x->commit[from].parent[i], seen);
}

static int by_commit_id(const crosswise *x, int a, int b)
{
    return memcmp(x->commit[a].id.bytes, x->commit[b].id.bytes, sizeof(x->commit[a].id.bytes));
}

/* The best common ancestors of one commit and any of several, by id. */
static int best_bases(const crosswise *x, const int *some, int n, int other, int *out)
{
    uint8_t of_some[COMMITS] = {0}, of_other[COMMITS] = {0};
    int found = 0;
    for (int i = 0; i < n; i++)
        mark_below(x, some[i], of_some);
    mark_below(x, other, of_other);
    for (int c = 0; c < x->n; c++) {
        int best = of_some[c] && of_other[c];
        for (int d = 0; d < x->n && best; d++) {
            uint8_t below[COMMITS] = {0};
            if (d == c || !of_some[d] || !of_other[d])
                continue;
            mark_below(x, d, below);
            best = !below[c];
        }
        if (!best)
            continue;
        int at = found++;
        for (; at > 0 && by_commit_id(x, c, out[at - 1]) < 0; at--)
            out[at] = out[at - 1];
        out[at] = c;
    }
    return found;
}

static int32_t pick_element(int32_t b, int32_t o, int32_t t)
{
    if (o == UNKNOWN || t == UNKNOWN)
        return UNKNOWN;
    if (o == t || (b != UNKNOWN && t == b))
        return o;
    return b != UNKNOWN && o == b ? t : UNKNOWN;
}

/* Two by two, each pair over its own bases. */
static void fold_oracle(const crosswise *x, const int *set, int n, int32_t *out)
{
    memcpy(out, x->commit[set[0]].value, LEN * sizeof(*out));
    for (int i = 1; i < n; i++) {
        int below[COMMITS];
        int32_t base[LEN];
        const int nbelow = best_bases(x, set, i, set[i], below);
        ck_assert_int_gt(nbelow, 0);
        fold_oracle(x, below, nbelow, base);
        for (int k = 0; k < LEN; k++)
            out[k] = pick_element(base[k], out[k], x->commit[set[i]].value[k]);
    }
}

/* ---- the file -------------------------------- */

static void branch_name(char out[16], int branch)
{
    snprintf(out, 16, "b%d", branch);
}

static void store_values(crosswise *x, const int32_t *values)
{
    uint8_t bytes[LEN * 16];
    const void *data = values;
    size_t len = LEN * sizeof(*values);
    brc_array *a = scenario_array_at(&x->t, x->t.session, "/a");
    if (x->as_text) {
        data = bytes;
        len = 0;
        for (int i = 0; i < LEN; i++) { /* 0: the empty text */
            const int n = values[i] == 0
                              ? 0 : snprintf((char *)bytes + len + 4, 12, "%d", (int)values[i]);
            brc_put_u32le(bytes + len, (uint32_t)n);
            len += 4 + (size_t)n;
        }
    }
    OK(&x->t, brc_array_write(a, NULL, data, len, &x->t.err));
    brc_array_free(a);
}

static void load_values(crosswise *x, const char *rev, int32_t *values)
{
    brc_session *s = scenario_session(&x->t, x->t.repo, rev, BRC_SESSION_AT);
    brc_array *a = scenario_array_at(&x->t, s, "/a");
    if (!x->as_text) {
        OK(&x->t, brc_array_read(a, NULL, values, LEN * sizeof(*values), &x->t.err));
    } else {
        brc_buf out = BRC_BUF_INIT;
        OK(&x->t, io_elements(a, NULL, &out, &x->t.err));
        const uint8_t *at = out.data;
        for (int i = 0; i < LEN; i++) {
            const uint32_t len = brc_get_u32le(at);
            char number[16] = "";
            ck_assert_uint_lt(len, sizeof(number));
            memcpy(number, at + 4, len);
            values[i] = (int32_t)strtol(number, NULL, 10);
            at += 4 + len;
        }
        brc_buf_dispose(&out);
    }
    brc_array_free(a);
    brc_session_free(s);
}

static int add_commit(crosswise *x, const brc_oid *id, int first, int second, const int32_t *values)
{
    cross_commit *c = &x->commit[x->n];
    ck_assert_int_lt(x->n, COMMITS);
    *c = (cross_commit){.id = *id, .nparents = (first >= 0) + (second >= 0),
                        .parent = {first, second}};
    memcpy(c->value, values, sizeof(c->value));
    return x->n++;
}

static void go_to_branch(crosswise *x, int branch)
{
    char name[16];
    branch_name(name, branch);
    brc_session_free(x->t.session);
    x->t.session = NULL;
    OK(&x->t, brc_switch(x->t.repo, name, 0, &x->t.err));
    OK(&x->t, brc_session_open(&x->t.session, x->t.repo, NULL, BRC_SESSION_WRITE, &x->t.err));
}

static void cross_write(crosswise *x, int branch)
{
    int32_t values[LEN];
    const int tip = x->tip[branch], changes = 1 + (int)scenario_below(&x->random, 4);
    memcpy(values, x->commit[tip].value, sizeof(values));
    for (int i = 0; i < changes; i++)
        values[scenario_below(&x->random, LEN)] = (int32_t)scenario_below(&x->random, 4);
    if (memcmp(values, x->commit[tip].value, sizeof(values)) == 0)
        return;
    go_to_branch(x, branch);
    store_values(x, values);
    const brc_oid id = scenario_commit(&x->t, "write");
    x->tip[branch] = add_commit(x, &id, tip, -1, values);
}

/* ---- merging -------------------------------- */

/* `whole`: chunks of the base are unknown as a whole, to see that it makes a difference. */
static int chunks_in_conflict(const crosswise *x, const int32_t *base, int ours, int theirs,
                              int whole, uint8_t *out)
{
    int n = 0;
    for (int chunk = 0; chunk < CHUNKS; chunk++) {
        int unknown = 0;
        out[chunk] = 0;
        for (int i = chunk * CHUNK; i < (chunk + 1) * CHUNK; i++)
            unknown |= base[i] == UNKNOWN;
        for (int i = chunk * CHUNK; i < (chunk + 1) * CHUNK; i++)
            out[chunk] |= pick_element(whole && unknown ? UNKNOWN : base[i],
                                       x->commit[ours].value[i],
                                       x->commit[theirs].value[i]) == UNKNOWN;
        n += out[chunk];
    }
    return n;
}

static void conflicts_are(crosswise *x, const char *rev, const uint8_t *want, int n)
{
    brc_merge_opts opts = BRC_MERGE_OPTS_INIT;
    brc_merge_result result = BRC_MERGE_RESULT_INIT;
    brc_iter *it;
    const brc_conflict *c;
    int seen = 0;
    opts.flags = BRC_MERGE_DRY_RUN;
    OK(&x->t, brc_merge(&result, &it, x->t.repo, rev, &opts, &x->t.err));
    while (brc_next(it, &c, &x->t.err) > 0) {
        ck_assert_str_eq(c->kind, "chunk");
        const long chunk = strtol(c->key + 2, NULL, 10); /* c/N */
        ck_assert_msg(want[chunk], "chunk %ld is not in conflict by element", chunk);
        seen++;
    }
    brc_iter_free(it);
    ck_assert_int_eq(seen, n);
    ck_assert_int_eq((int)result.conflicts, n);
}

static void cross_merge(crosswise *x, int branch, int other, int theirs)
{
    int bases[COMMITS];
    int32_t base[LEN], want[LEN], got[LEN];
    uint8_t chunks[CHUNKS], coarse[CHUNKS];
    char rev[65];
    brc_merge_opts opts = BRC_MERGE_OPTS_INIT;
    brc_merge_result result = BRC_MERGE_RESULT_INIT;
    const int tip = x->tip[branch], n = best_bases(x, &tip, 1, other, bases);
    if ((n == 1 && (bases[0] == tip || bases[0] == other)) || tip == other)
        return;
    fold_oracle(x, bases, n, base);
    const int conflicts = chunks_in_conflict(x, base, tip, other, 0, chunks);
    x->several += n > 1;
    x->by_element += n > 1 && conflicts < chunks_in_conflict(x, base, tip, other, 1, coarse);
    for (int i = 0; i < LEN; i++) {
        want[i] = pick_element(base[i], x->commit[tip].value[i], x->commit[other].value[i]);
        if (want[i] == UNKNOWN)
            want[i] = x->commit[theirs ? other : tip].value[i];
    }
    go_to_branch(x, branch);
    brc_oid_format(rev, &x->commit[other].id);
    conflicts_are(x, rev, chunks, conflicts);
    opts.flags = theirs ? BRC_MERGE_THEIRS : BRC_MERGE_OURS;
    OK(&x->t, brc_merge(&result, NULL, x->t.repo, rev, &opts, &x->t.err));
    ck_assert_int_eq(result.result, BRC_MERGE_MERGED);
    x->tip[branch] = add_commit(x, &result.commit, tip, other, want);
    load_values(x, "HEAD", got);
    ck_assert_mem_eq(got, want, sizeof(want));
}

/* ---- histories -------------------------------- */

static void cross_start(crosswise *x)
{
    char name[16];
    const int32_t zeros[LEN] = {0};
    const uint64_t shape = LEN, chunk = CHUNK;
    scenario_start(&x->t);
    brc_array_free(scenario_array(&x->t, "/a", x->as_text ? "string" : "int32", 1, &shape, &chunk,
                                  NULL, NULL));
    const brc_oid id = scenario_commit(&x->t, "start");
    add_commit(x, &id, -1, -1, zeros);
    for (int i = 0; i < BRANCHES; i++) {
        branch_name(name, i);
        OK(&x->t, brc_ref_create(x->t.repo, name, NULL, NULL, 0, &x->t.err));
    }
}

static void cross_history(crosswise *x, uint64_t seed)
{
    memset(x, 0, sizeof(*x));
    x->random = seed;
    x->as_text = seed % 4 == 3;
    cross_start(x);
    for (int step = 0; step < STEPS; step++) {
        const int a = (int)scenario_below(&x->random, BRANCHES);
        const int b = (a + 1 + (int)scenario_below(&x->random, BRANCHES - 1)) % BRANCHES;
        const int tip_a = x->tip[a], tip_b = x->tip[b];
        switch (scenario_below(&x->random, 5)) {
        case 0:
            cross_merge(x, a, tip_b, (int)scenario_below(&x->random, 2));
            break;
        case 1: /* each has the other as it was */
            cross_merge(x, a, tip_b, (int)scenario_below(&x->random, 2));
            cross_merge(x, b, tip_a, (int)scenario_below(&x->random, 2));
            break;
        default:
            cross_write(x, a);
        }
    }
    scenario_whole(&x->t);
    scenario_stop(&x->t);
}

CASE("crosswise", .timeout = 120);

TEST(bases_are_merged_by_element)
{
    static crosswise x;
    int several = 0, by_element = 0;
    for (uint64_t seed = 0; seed < SEEDS; seed++) {
        cross_history(&x, 700 + seed);
        several += x.several;
        by_element += x.by_element;
    }
    ck_assert_int_gt(several, 4 * SEEDS); /* it has not gone past what it is for */
    ck_assert_int_gt(by_element, SEEDS);
}
