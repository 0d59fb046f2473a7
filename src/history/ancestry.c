#include "ancestry.h"

#include <stdlib.h>
#include <string.h>

#include "../base/alloc.h"
#include "../base/hash.h"
#include "graph.h"

/* ==== reach ================================ */

struct brc_reach {
    brc_graph graph;
    size_t due; /* commits from this one on have parents that were not visited */
};

int brc_reach_new(brc_reach **out, brc_store *store, brc_error *err)
{
    static const brc_graph none = BRC_GRAPH_INIT;
    void *p;
    *out = NULL;
    BRC_TRY(brc_new(&p, sizeof(brc_reach), err));
    *out = p;
    (*out)->graph = none;
    (*out)->graph.store = store;
    return BRC_OK;
}

void brc_reach_free(brc_reach *reach)
{
    if (reach != NULL)
        brc_graph_dispose(&reach->graph);
    free(reach);
}

int brc_reach_from(brc_reach *reach, const brc_oid *tip, brc_error *err)
{
    size_t i;
    return brc_graph_add(&reach->graph, tip, &i, err);
}

int brc_reach_find(brc_reach *reach, const brc_oid *id, brc_error *err)
{
    brc_graph *g = &reach->graph;
    while (brc_graph_find(g, id) == SIZE_MAX) {
        if (reach->due == g->n)
            return 0;
        BRC_TRY(brc_graph_read(g, reach->due, err));
        reach->due++;
    }
    return 1;
}

/* ==== merge base ================================ */

void brc_commit_set_dispose(brc_commit_set *set)
{
    free(set->ids);
    memset(set, 0, sizeof(*set));
}

int brc_commit_set_add(brc_commit_set *set, const brc_oid *id, brc_error *err)
{
    void *p = set->ids;
    size_t at = 0;
    while (at < set->n && brc_oid_cmp(&set->ids[at], id) < 0)
        at++;
    if (at < set->n && brc_oid_cmp(&set->ids[at], id) == 0)
        return BRC_OK;
    int rc = brc_grow_array(&p, &set->cap, set->n + 1, sizeof(*set->ids), err);
    set->ids = p;
    if (rc < 0)
        return rc;
    memmove(set->ids + at + 1, set->ids + at, (set->n - at) * sizeof(*set->ids));
    set->ids[at] = *id;
    set->n++;
    return BRC_OK;
}

/* ---- the search -------------------------------- */

enum { BY_SOME = 1, BY_OTHER = 2, BELOW = 4 };

/* The state of a commit in the search. */
typedef struct base_commit {
    int64_t generation;
    unsigned paint;
    int in_heap;
} base_commit;

typedef struct base_search {
    brc_graph graph;
    void *known;         /* base_commit[], one for each commit of the graph */
    size_t n, cap;
    brc_graph_heap heap; /* the highest generation first */
    size_t open;         /* number of these that are not below a base that was found */
} base_search;

static base_commit *known_of(const base_search *s, size_t i)
{
    return (base_commit *)s->known + i;
}

/* Makes room for what is known of commits that are new. */
static int know_new(base_search *s, brc_error *err)
{
    BRC_TRY(brc_grow_array(&s->known, &s->cap, s->graph.n, sizeof(base_commit), err));
    for (; s->n < s->graph.n; s->n++) {
        base_commit *c = known_of(s, s->n);
        *c = (base_commit){0};
        BRC_TRY(brc_commit_generation(s->graph.store, &brc_graph_at(&s->graph, s->n)->id,
                                      &c->generation, err));
    }
    return BRC_OK;
}

static int search_commit(base_search *s, const brc_oid *id, size_t *out, brc_error *err)
{
    BRC_TRY(brc_graph_add(&s->graph, id, out, err));
    return know_new(s, err);
}

static int parents_read(base_search *s, size_t i, brc_error *err)
{
    BRC_TRY(brc_graph_read(&s->graph, i, err));
    return know_new(s, err);
}

static size_t parent_count(const base_search *s, size_t i)
{
    return brc_graph_at(&s->graph, i)->nparents;
}

static base_commit *parent_known(const base_search *s, size_t i, size_t k)
{
    return known_of(s, brc_graph_parent(&s->graph, i, k));
}

/* ---- generations -------------------------------- */

typedef struct count_frame {
    size_t commit, next;
} count_frame;

/* Computes generations from the commits. The rows that record generations are derived: if they
 * contradict the commits, all generations are computed. */
static int count_from(base_search *s, size_t top, brc_error *err)
{
    void *frames = NULL;
    size_t n = 1, cap = 0;
    int rc;
    BRC_GO(brc_grow_array(&frames, &cap, 1, sizeof(count_frame), err));
    ((count_frame *)frames)[0] = (count_frame){top, 0};
    while (n > 0) {
        count_frame *f = &((count_frame *)frames)[n - 1];
        const size_t i = f->commit;
        BRC_GO(parents_read(s, i, err));
        if (f->next == parent_count(s, i)) {
            int64_t most = 0;
            for (size_t k = 0; k < parent_count(s, i); k++)
                if (parent_known(s, i, k)->generation > most)
                    most = parent_known(s, i, k)->generation;
            known_of(s, i)->generation = most + 1;
            n--;
            continue;
        }
        const size_t parent = brc_graph_parent(&s->graph, i, f->next++);
        if (known_of(s, parent)->generation < 0) { /* not computed yet */
            if (n > s->n) {
                rc = brc_fail(err, BRC_ECORRUPT,
                              "a commit is its own ancestor; run 'breccia fsck'");
                goto done;
            }
            BRC_GO(brc_grow_array(&frames, &cap, n + 1, sizeof(count_frame), err));
            ((count_frame *)frames)[n++] = (count_frame){parent, 0};
        }
    }
    rc = BRC_OK;
done:
    free(frames);
    return rc;
}

static int count_generations(base_search *s, const size_t *tips, size_t n, brc_error *err)
{
    for (size_t i = 0; i < s->n; i++) /* reads all commits: the list grows meanwhile */
        BRC_TRY(parents_read(s, i, err));
    for (size_t i = 0; i < s->n; i++)
        known_of(s, i)->generation = -1;
    for (size_t i = 0; i < n; i++)
        if (known_of(s, tips[i])->generation < 0)
            BRC_TRY(count_from(s, tips[i], err));
    return BRC_OK;
}

/* ---- the heap -------------------------------- */

static int comes_before(const void *ctx, size_t a, size_t b)
{
    const base_search *s = ctx;
    const base_commit *x = known_of(s, a), *y = known_of(s, b);
    if (x->generation != y->generation)
        return x->generation > y->generation;
    return brc_oid_cmp(&brc_graph_at(&s->graph, a)->id, &brc_graph_at(&s->graph, b)->id) < 0;
}

static int heap_push(base_search *s, size_t i, unsigned paint, brc_error *err)
{
    base_commit *c = known_of(s, i);
    const unsigned before = c->paint;
    c->paint |= paint;
    if (c->in_heap) {
        s->open -= (before & BELOW) == 0 && (c->paint & BELOW) != 0;
        return BRC_OK;
    }
    BRC_TRY(brc_heap_push(&s->heap, i, err));
    c->in_heap = 1;
    s->open += (c->paint & BELOW) == 0;
    return BRC_OK;
}

static size_t heap_pop(base_search *s)
{
    const size_t top = brc_heap_pop(&s->heap);
    known_of(s, top)->in_heap = 0;
    s->open -= (known_of(s, top)->paint & BELOW) == 0;
    return top;
}

/* ---- bases -------------------------------- */

/* Searches for bases. Sets *wrong if a generation is not above those of the parents: then the
 * result cannot be used. */
static int search_run(base_search *s, brc_commit_set *out, int *wrong, brc_error *err)
{
    *wrong = 0;
    while (s->open > 0) {
        const size_t i = heap_pop(s);
        unsigned paint = known_of(s, i)->paint;
        BRC_TRY(parents_read(s, i, err));
        if ((paint & BY_SOME) && (paint & BY_OTHER) && !(paint & BELOW)) {
            BRC_TRY(brc_commit_set_add(out, &brc_graph_at(&s->graph, i)->id, err));
            paint |= BELOW;
        }
        for (size_t k = 0; k < parent_count(s, i); k++) {
            const int64_t generation = parent_known(s, i, k)->generation;
            if (generation >= known_of(s, i)->generation || generation <= 0) {
                *wrong = 1;
                return BRC_OK;
            }
            BRC_TRY(heap_push(s, brc_graph_parent(&s->graph, i, k), paint, err));
        }
    }
    return BRC_OK;
}

static int search_start(base_search *s, const size_t *tips, size_t n, brc_error *err)
{
    s->heap.n = s->open = 0;
    for (size_t i = 0; i < s->n; i++)
        known_of(s, i)->paint = (unsigned)(known_of(s, i)->in_heap = 0);
    for (size_t i = 0; i < n; i++)
        BRC_TRY(heap_push(s, tips[i], i + 1 < n ? BY_SOME : BY_OTHER, err));
    return BRC_OK;
}

int brc_merge_bases(brc_commit_set *out, brc_store *store, const brc_commit_set *some,
                    const brc_oid *other, brc_error *err)
{
    base_search s = {.graph = BRC_GRAPH_INIT, .heap = {.before = comes_before}};
    void *tips = NULL;
    int rc, wrong = 0;
    const size_t n = some->n + 1;
    memset(out, 0, sizeof(*out));
    s.graph.store = store;
    s.heap.ctx = &s;
    BRC_GO(brc_new_array(&tips, n, sizeof(size_t), err));
    for (size_t i = 0; i < n; i++)
        BRC_GO(search_commit(&s, i < some->n ? &some->ids[i] : other, (size_t *)tips + i, err));
    BRC_GO(search_start(&s, tips, n, err));
    BRC_GO(search_run(&s, out, &wrong, err));
    if (wrong) {
        brc_commit_set_dispose(out);
        BRC_GO(count_generations(&s, tips, n, err));
        BRC_GO(search_start(&s, tips, n, err));
        BRC_GO(search_run(&s, out, &wrong, err));
        if (wrong)
            rc = brc_fail(err, BRC_ECORRUPT, "a commit is its own ancestor; run 'breccia fsck'");
    }
done:
    free(tips);
    free(s.known);
    free(s.heap.items);
    brc_graph_dispose(&s.graph);
    if (rc < 0)
        brc_commit_set_dispose(out);
    return rc;
}

/* ---- virtual bases -------------------------------- */

/* A set of bases that is being folded; the ones before `at` are done. */
typedef struct fold_frame {
    brc_commit_set set, done, below; /* below: the bases of `done` and of the next one */
    size_t at;
    brc_oid root;
    int has_below;
} fold_frame;

typedef struct base_fold {
    brc_store *store;
    brc_virtual_merge_fn merge;
    void *ctx;
    brc_id_table known; /* brc_oid: the root of a set, found by a hash of its ids */
    void *frames;       /* fold_frame[] */
    size_t n, cap;
} base_fold;

static brc_oid set_name(const base_fold *f, const brc_commit_set *set)
{
    return brc_hash_object(brc_store_hash(f->store), BRC_KIND_COMMIT, set->ids,
                           set->n * sizeof(*set->ids));
}

/* Returns the root of a set that needs no folding, or that was folded before. */
static int root_known(const base_fold *f, const brc_commit_set *set, int *known, brc_oid *root,
                      brc_error *err)
{
    memset(root, 0, sizeof(*root));
    *known = 1;
    if (set->n == 0)
        return BRC_OK;
    if (set->n == 1)
        return brc_commit_root(f->store, &set->ids[0], root, err);
    const brc_oid name = set_name(f, set);
    const brc_oid *found = brc_id_table_find(&f->known, &name);
    *known = found != NULL;
    if (found != NULL)
        *root = *found;
    return BRC_OK;
}

static void fold_frame_dispose(fold_frame *frame)
{
    brc_commit_set_dispose(&frame->set);
    brc_commit_set_dispose(&frame->done);
    brc_commit_set_dispose(&frame->below);
}

/* Pushes a set. `set` may be in a frame, and pushing moves frames. */
static int frame_push(base_fold *f, const brc_commit_set *set, brc_error *err)
{
    const brc_commit_set commits = *set;
    BRC_TRY(brc_grow_array(&f->frames, &f->cap, f->n + 1, sizeof(fold_frame), err));
    fold_frame *frame = &((fold_frame *)f->frames)[f->n];
    memset(frame, 0, sizeof(*frame));
    f->n++;
    for (size_t i = 0; i < commits.n; i++)
        BRC_TRY(brc_commit_set_add(&frame->set, &commits.ids[i], err));
    BRC_TRY(brc_commit_set_add(&frame->done, &commits.ids[0], err));
    frame->at = 1;
    return brc_commit_root(f->store, &commits.ids[0], &frame->root, err);
}

static int frame_end(base_fold *f, brc_error *err)
{
    fold_frame *frame = &((fold_frame *)f->frames)[f->n - 1];
    const brc_oid name = set_name(f, &frame->set);
    void *value;
    BRC_TRY(brc_id_table_add(&f->known, &name, &value, err));
    memcpy(value, &frame->root, sizeof(brc_oid));
    fold_frame_dispose(frame);
    f->n--;
    return BRC_OK;
}

/* Merges the next commit of the set into the result so far. If the bases of the two are not folded
 * yet, pushes them first. */
static int frame_step(base_fold *f, brc_error *err)
{
    fold_frame *frame = &((fold_frame *)f->frames)[f->n - 1];
    const brc_oid next = frame->set.ids[frame->at];
    brc_oid base, theirs;
    int known;
    if (!frame->has_below)
        BRC_TRY(brc_merge_bases(&frame->below, f->store, &frame->done, &next, err));
    frame->has_below = 1;
    BRC_TRY(root_known(f, &frame->below, &known, &base, err));
    if (!known)
        return frame_push(f, &frame->below, err); /* then this step is repeated */
    BRC_TRY(brc_commit_root(f->store, &next, &theirs, err));
    BRC_TRY(f->merge(f->ctx, &base, &frame->root, &theirs, &frame->root, err));
    BRC_TRY(brc_commit_set_add(&frame->done, &next, err));
    brc_commit_set_dispose(&frame->below);
    frame->has_below = 0;
    frame->at++;
    return BRC_OK;
}

int brc_merge_base_root(brc_store *store, const brc_commit_set *bases, brc_virtual_merge_fn merge,
                        void *ctx, brc_oid *root, brc_error *err)
{
    base_fold f = {.store = store, .merge = merge, .ctx = ctx,
                   .known = BRC_ID_TABLE_INIT(sizeof(brc_oid))};
    int known, rc;
    BRC_GO(root_known(&f, bases, &known, root, err));
    if (!known)
        BRC_GO(frame_push(&f, bases, err));
    while (f.n > 0) {
        const fold_frame *frame = &((const fold_frame *)f.frames)[f.n - 1];
        BRC_GO(brc_store_check_interrupt(store, err));
        BRC_GO(frame->at < frame->set.n ? frame_step(&f, err) : frame_end(&f, err));
    }
    rc = root_known(&f, bases, &known, root, err);
done:
    for (size_t i = 0; i < f.n; i++)
        fold_frame_dispose(&((fold_frame *)f.frames)[i]);
    free(f.frames);
    brc_id_table_dispose(&f.known);
    return rc;
}

/* ==== bisect next ================================ */

/* The state of a candidate. */
typedef struct candidate {
    size_t at;        /* the next of its parents in the walk             */
    uint64_t weight;  /* number of candidates that it reaches, itself included; 0: not counted
                       * yet */
    size_t counted;   /* the last merge that counted it; 0: none */
    int is_met;
} candidate;

typedef struct bisecting {
    brc_reach *good;
    brc_graph graph;    /* the candidates: the bad commit is first, and good ones are left out */
    void *list;         /* candidate[], one for each               */
    void *stack;        /* size_t[]                                */
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
    brc_graph_dispose(&b->graph);
    free(b->list);
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

static int is_good(void *ctx, const brc_oid *id, brc_error *err)
{
    return brc_reach_find(ctx, id, err);
}

static int find_candidates(bisecting *b, const brc_bisection *what, brc_error *err)
{
    brc_graph *g = &b->graph;
    size_t number;
    BRC_TRY(brc_reach_new(&b->good, g->store, err));
    for (size_t i = 0; i < what->good.n; i++)
        BRC_TRY(brc_reach_from(b->good, &what->good.ids[i], err));
    g->skips = is_good;
    g->ctx = b->good;
    BRC_TRY(brc_graph_add(g, &what->bad, &number, err));
    for (size_t i = 0; i < g->n; i++)
        BRC_TRY(brc_graph_read(g, i, err));
    return brc_new_array(&b->list, g->n, sizeof(candidate), err);
}

/* ---- what each is worth -------------------------------- */

static int push(bisecting *b, size_t i, brc_error *err)
{
    BRC_TRY(brc_grow_array(&b->stack, &b->stack_cap, b->depth + 1, sizeof(size_t), err));
    ((size_t *)b->stack)[b->depth++] = i;
    return BRC_OK;
}

/* Counts the candidates that a merge reaches, each once. Uses the stack above its top. */
static int count_reached(bisecting *b, size_t i, uint64_t *weight, brc_error *err)
{
    const size_t bottom = b->depth;
    *weight = 0;
    candidate_at(b, i)->counted = i + 1;
    BRC_TRY(push(b, i, err));
    while (b->depth > bottom) {
        const size_t at = ((size_t *)b->stack)[--b->depth];
        ++*weight;
        for (size_t k = 0; k < brc_graph_at(&b->graph, at)->nparents; k++) {
            const size_t parent = brc_graph_parent(&b->graph, at, k);
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
    const size_t n = brc_graph_at(&b->graph, i)->nparents;
    if (n > 1) {
        BRC_TRY(brc_store_check_interrupt(b->graph.store, err));
        return count_reached(b, i, &c->weight, err);
    }
    c->weight = n == 0 ? 1 : candidate_at(b, brc_graph_parent(&b->graph, i, 0))->weight + 1;
    return BRC_OK;
}

/* Weighs all candidates, parents before their children. */
static int weigh(bisecting *b, brc_error *err)
{
    candidate_at(b, 0)->is_met = 1;
    BRC_TRY(push(b, 0, err));
    while (b->depth > 0) {
        const size_t i = ((size_t *)b->stack)[b->depth - 1];
        candidate *c = candidate_at(b, i);
        if (c->at == brc_graph_at(&b->graph, i)->nparents) {
            BRC_TRY(weigh_one(b, i, err));
            b->depth--;
            continue;
        }
        const size_t parent = brc_graph_parent(&b->graph, i, c->at++);
        if (candidate_at(b, parent)->is_met)
            continue;
        candidate_at(b, parent)->is_met = 1;
        BRC_TRY(push(b, parent, err));
    }
    return BRC_OK;
}

/* ---- the next one -------------------------------- */

static uint64_t worth(const bisecting *b, size_t i)
{
    const uint64_t weight = candidate_at(b, i)->weight, rest = b->graph.n - weight;
    return weight < rest ? weight : rest;
}

/* Says whether a candidate halves the candidates better than `best`. Between two equally good ones
 * it chooses the older, then the one with the smaller id. */
static int is_better(const bisecting *b, size_t i, size_t best)
{
    const candidate *x = candidate_at(b, i), *y = candidate_at(b, best);
    if (worth(b, i) != worth(b, best))
        return worth(b, i) > worth(b, best);
    if (x->weight != y->weight)
        return x->weight < y->weight;
    return brc_oid_cmp(&brc_graph_at(&b->graph, i)->id, &brc_graph_at(&b->graph, best)->id) < 0;
}

static void choose(const bisecting *b, const brc_bisection *what, int *state, brc_oid *at)
{
    const brc_graph *g = &b->graph;
    size_t best = 0; /* the bad commit: no other */
    for (size_t i = 1; i < g->n; i++)
        if (!is_in(&what->skipped, &brc_graph_at(g, i)->id) && (best == 0 || is_better(b, i, best)))
            best = i;
    *state = g->n == 1 ? BRC_BISECT_FOUND : best != 0 ? BRC_BISECT_NEXT : BRC_BISECT_OPEN;
    *at = brc_graph_at(g, best)->id;
}

/* Asks for a merge base of the good and the bad commit if the bad commit does not follow the good
 * one, because a good commit beside the bad one says nothing about their common past. Sets *asks to
 * 1, and *at to a base that was neither judged nor skipped. */
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
            rc = brc_fail(err, BRC_EMISUSE, "%.8s is bad, but comes before %.8s, which is good: a "
                                            "commit between them fixed it; search for that commit",
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
    bisecting b = {.graph = BRC_GRAPH_INIT};
    int rc = BRC_OK, asks = 0;
    brc_oid base;
    *state = BRC_BISECT_OPEN;
    *left = 0;
    b.graph.store = store;
    for (size_t i = 0; i < what->good.n && !asks; i++)
        BRC_GO(ask_for_base(what, store, &what->good.ids[i], &asks, &base, err));
    BRC_GO(find_candidates(&b, what, err));
    *left = b.graph.n;
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
