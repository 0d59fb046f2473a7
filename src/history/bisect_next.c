#include "bisect_next.h"

#include <stdlib.h>
#include <string.h>

#include "../base/alloc.h"
#include "../base/id_table.h"
#include "commit.h"
#include "reach.h"

typedef struct candidate {
    brc_oid id;
    size_t first, n;  /* its parents that are candidates too: in `edges` */
    size_t at;        /* in the walk: the next of them                   */
    uint64_t weight;  /* candidates that it reaches, itself too; 0: not counted yet */
    size_t counted;   /* the last merge whose candidates were counted here; 0: none */
    int is_met;
} candidate;

typedef struct bisecting {
    brc_store *store;
    brc_reach *good;
    brc_id_table known; /* size_t: 1 more than the candidate's number */
    void *list;         /* candidate[]: the bad one is the first      */
    size_t n, cap;
    void *edges;        /* size_t[]                                   */
    size_t nedges, edges_cap;
    void *stack;        /* size_t[]                                   */
    size_t depth, stack_cap;
} bisecting;

void brc_bisection_dispose(brc_bisection *b)
{
    brc_commit_set_dispose(&b->good);
    brc_commit_set_dispose(&b->skipped);
}

static void bisecting_dispose(bisecting *b)
{
    brc_reach_free(b->good);
    brc_id_table_dispose(&b->known);
    free(b->list);
    free(b->edges);
    free(b->stack);
}

static candidate *candidate_at(const bisecting *b, size_t i)
{
    return (candidate *)b->list + i;
}

static int is_in(const brc_commit_set *set, const brc_oid *id)
{
    for (size_t i = 0; i < set->n; i++)
        if (brc_oid_cmp(&set->ids[i], id) == 0)
            return 1;
    return 0;
}

/* ---- candidates -------------------------------- */

/* *number: 1 more than that of a candidate; 0: it is none. */
static int candidate_of(bisecting *b, const brc_oid *id, size_t *number, brc_error *err)
{
    void *value = brc_id_table_find(&b->known, id);
    *number = 0;
    if (value == NULL) {
        int reached = brc_reach_find(b->good, id, err);
        if (reached != 0)
            return reached < 0 ? reached : BRC_OK;
        BRC_TRY(brc_grow_array(&b->list, &b->cap, b->n + 1, sizeof(candidate), err));
        BRC_TRY(brc_id_table_add(&b->known, id, &value, err));
        *candidate_at(b, b->n) = (candidate){.id = *id};
        const size_t next = ++b->n;
        memcpy(value, &next, sizeof(next));
    }
    memcpy(number, value, sizeof(*number));
    return BRC_OK;
}

static int add_edges(bisecting *b, size_t i, const brc_commit *commit, brc_error *err)
{
    const size_t first = b->nedges;
    for (size_t p = 0; p < commit->nparents; p++) {
        size_t number;
        BRC_TRY(candidate_of(b, &commit->parents[p], &number, err));
        if (number == 0)
            continue;
        BRC_TRY(brc_grow_array(&b->edges, &b->edges_cap, b->nedges + 1, sizeof(size_t), err));
        ((size_t *)b->edges)[b->nedges++] = number - 1;
    }
    candidate_at(b, i)->first = first;
    candidate_at(b, i)->n = b->nedges - first;
    return BRC_OK;
}

static int find_candidates(bisecting *b, const brc_bisection *what, brc_error *err)
{
    size_t number;
    BRC_TRY(brc_reach_new(&b->good, b->store, err));
    for (size_t i = 0; i < what->good.n; i++)
        BRC_TRY(brc_reach_from(b->good, &what->good.ids[i], err));
    BRC_TRY(candidate_of(b, &what->bad, &number, err));
    for (size_t i = 0; i < b->n; i++) {
        brc_commit *commit;
        BRC_TRY(brc_store_check_interrupt(b->store, err));
        BRC_TRY(brc_commit_get(&commit, b->store, &candidate_at(b, i)->id, err));
        int rc = add_edges(b, i, commit, err);
        brc_commit_free(commit);
        BRC_TRY(rc);
    }
    return BRC_OK;
}

/* ---- what each is worth -------------------------------- */

static int push(bisecting *b, size_t i, brc_error *err)
{
    BRC_TRY(brc_grow_array(&b->stack, &b->stack_cap, b->depth + 1, sizeof(size_t), err));
    ((size_t *)b->stack)[b->depth++] = i;
    return BRC_OK;
}

static size_t edge_to(const bisecting *b, size_t edge)
{
    return ((const size_t *)b->edges)[edge];
}

/* Of a merge: what its parents reach is not counted twice. The stack is used above its top. */
static int count_reached(bisecting *b, size_t i, uint64_t *weight, brc_error *err)
{
    const size_t bottom = b->depth;
    *weight = 0;
    candidate_at(b, i)->counted = i + 1;
    BRC_TRY(push(b, i, err));
    while (b->depth > bottom) {
        const candidate *c = candidate_at(b, ((size_t *)b->stack)[--b->depth]);
        ++*weight;
        for (size_t e = 0; e < c->n; e++) {
            const size_t parent = edge_to(b, c->first + e);
            if (candidate_at(b, parent)->counted == i + 1)
                continue;
            candidate_at(b, parent)->counted = i + 1;
            BRC_TRY(push(b, parent, err));
        }
    }
    return BRC_OK;
}

static int weigh_one(bisecting *b, size_t i, brc_error *err)
{
    candidate *c = candidate_at(b, i);
    if (c->n > 1) {
        BRC_TRY(brc_store_check_interrupt(b->store, err));
        return count_reached(b, i, &c->weight, err);
    }
    c->weight = c->n == 0 ? 1 : candidate_at(b, edge_to(b, c->first))->weight + 1;
    return BRC_OK;
}

/* Parents before their children. */
static int weigh(bisecting *b, brc_error *err)
{
    candidate_at(b, 0)->is_met = 1;
    BRC_TRY(push(b, 0, err));
    while (b->depth > 0) {
        const size_t i = ((size_t *)b->stack)[b->depth - 1];
        candidate *c = candidate_at(b, i);
        if (c->at == c->n) {
            BRC_TRY(weigh_one(b, i, err));
            b->depth--;
            continue;
        }
        const size_t parent = edge_to(b, c->first + c->at++);
        if (candidate_at(b, parent)->is_met)
            continue;
        candidate_at(b, parent)->is_met = 1;
        BRC_TRY(push(b, parent, err));
    }
    return BRC_OK;
}

/* ---- the next one -------------------------------- */

static uint64_t worth(const bisecting *b, const candidate *c)
{
    return c->weight < b->n - c->weight ? c->weight : b->n - c->weight;
}

/* Of two that halve as well, the older one, and then the one of the smaller id. */
static int is_better(const bisecting *b, const candidate *c, const candidate *best)
{
    if (worth(b, c) != worth(b, best))
        return worth(b, c) > worth(b, best);
    if (c->weight != best->weight)
        return c->weight < best->weight;
    return brc_oid_cmp(&c->id, &best->id) < 0;
}

static void choose(const bisecting *b, const brc_bisection *what, int *state, brc_oid *at)
{
    const candidate *best = NULL;
    for (size_t i = 1; i < b->n; i++) {
        const candidate *c = candidate_at(b, i);
        if (!is_in(&what->skipped, &c->id) && (best == NULL || is_better(b, c, best)))
            best = c;
    }
    *state = b->n == 1 ? BRC_BISECT_FOUND : best != NULL ? BRC_BISECT_NEXT : BRC_BISECT_OPEN;
    *at = best != NULL ? best->id : what->bad;
}

/* A good commit that the bad one does not follow says nothing of what they have in common. *asks: 1
 * with one of their merge bases of which nobody has said anything. */
static int ask_for_base(const brc_bisection *what, brc_store *store, const brc_oid *good,
                        int *asks, brc_oid *at, brc_error *err)
{
    brc_commit_set one = {0}, bases = {0};
    char bad[65], hex[65];
    int rc;
    BRC_GO(brc_commit_set_add(&one, &what->bad, err));
    BRC_GO(brc_merge_bases(&bases, store, &one, good, err));
    for (size_t i = 0; i < bases.n && !*asks; i++) {
        const brc_oid *base = &bases.ids[i];
        if (brc_oid_cmp(base, &what->bad) == 0) {
            rc = brc_fail(err, BRC_EMISUSE, "%.8s is bad, and comes before %.8s, which is good: a "
                                            "commit between them mended it; look for that one",
                          brc_oid_format(bad, &what->bad), brc_oid_format(hex, good));
            goto done;
        }
        *asks = !is_in(&what->good, base) && !is_in(&what->skipped, base);
        *at = *base;
    }
done:
    brc_commit_set_dispose(&one);
    brc_commit_set_dispose(&bases);
    return rc;
}

int brc_bisect_next(const brc_bisection *what, brc_store *store, int *state, brc_oid *at,
                    uint64_t *left, brc_error *err)
{
    bisecting b = {.store = store, .known = BRC_ID_TABLE_INIT(sizeof(size_t))};
    int rc = BRC_OK, asks = 0;
    brc_oid base;
    *state = BRC_BISECT_OPEN;
    *left = 0;
    for (size_t i = 0; i < what->good.n && !asks; i++)
        BRC_GO(ask_for_base(what, store, &what->good.ids[i], &asks, &base, err));
    BRC_GO(find_candidates(&b, what, err));
    *left = b.n;
    BRC_GO(weigh(&b, err));
    choose(&b, what, state, at);
    if (asks) {
        *state = BRC_BISECT_NEXT;
        *at = base;
    }
done:
    bisecting_dispose(&b);
    return rc;
}
