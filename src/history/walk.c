/*
 * Walking history. While it is a line, commits are read one by one. At the first merge
 * the rest is loaded at once, because only then is it known how many children each
 * commit has, and a commit waits for all of them: wrong clocks change the order of
 * unrelated commits only.
 *
 * It is a walk apart from closure.h, which goes in no order and reads no commit twice: this one
 * gives an order, one commit at a time, and while history is a line it remembers nothing.
 *
 * Hidden commits are not even loaded: all ancestors of a hidden commit are hidden too.
 */
#include <search.h>
#include <stdlib.h>
#include <string.h>

#include "../base/alloc.h"
#include "commit.h"
#include "reach.h"

typedef struct walk_commit {
    brc_oid id; /* first: the tree's key */
    brc_commit *commit;
    size_t waiting; /* children that have not been given yet */
    struct walk_commit *next;
} walk_commit;

/* Finds that a line goes round: it looks back to one commit, at first the first, then each time a
 * later one, twice as far. */
typedef struct line_guard {
    brc_oid seen;
    uint64_t steps;
} line_guard;

struct brc_walk {
    brc_store *store;
    line_guard guard;
    brc_commit *given;      /* the line's last one */
    walk_commit *rest_given; /* the same of the rest */
    brc_oid at;        /* the line's next one */
    int more;
    void *known;       /* tsearch: every walk_commit of the rest */
    walk_commit *all;  /* the same as a list */
    void *ready;       /* walk_commit *[]: a heap, the newest first */
    size_t nready, ready_cap;
    int has_end;
    brc_oid end;       /* where the line ends because what follows is hidden */
    brc_reach *hidden; /* NULL: none, or `end` says which */
};

int brc_walk_new(brc_walk **out, brc_store *store, const brc_oid *tip, brc_error *err)
{
    void *p;
    *out = NULL;
    BRC_TRY(brc_new(&p, sizeof(brc_walk), err));
    *out = p;
    (*out)->store = store;
    (*out)->at = *tip;
    (*out)->more = !brc_oid_is_zero(tip);
    return BRC_OK;
}

static int walk_order(const void *a, const void *b)
{
    return memcmp(a, b, sizeof(brc_oid));
}

void brc_walk_free(brc_walk *walk)
{
    if (walk == NULL)
        return;
    while (walk->all != NULL) {
        walk_commit *c = walk->all;
        walk->all = c->next;
        tdelete(c, &walk->known, walk_order);
        brc_commit_free(c->commit);
        free(c);
    }
    brc_reach_free(walk->hidden);
    brc_commit_free(walk->given);
    free(walk->ready);
    free(walk);
}

/* Of expired commits a damaged row can say what no commit can: that one comes before itself. */
static int line_goes_on(line_guard *guard, const brc_oid *at, brc_error *err)
{
    if (guard->steps > 0 && brc_oid_cmp(&guard->seen, at) == 0)
        return brc_fail(err, BRC_ECORRUPT, "a commit is its own ancestor; run 'breccia fsck'");
    if ((guard->steps & (guard->steps - 1)) == 0)
        guard->seen = *at;
    guard->steps++;
    return BRC_OK;
}

/* *meets: 1 if the line from the walk's tip reaches `id` before a merge. */
static int line_meets(const brc_walk *walk, const brc_oid *id, int *meets, brc_error *err)
{
    brc_oid at = walk->at;
    size_t parents = 1;
    line_guard guard = {0};
    *meets = 0;
    while (parents == 1 && !*meets) {
        brc_commit *c;
        BRC_TRY(line_goes_on(&guard, &at, err));
        *meets = brc_oid_cmp(&at, id) == 0;
        BRC_TRY(brc_store_check_interrupt(walk->store, err));
        BRC_TRY(brc_commit_get(&c, walk->store, &at, err));
        parents = c->nparents;
        if (parents > 0)
            at = c->parents[0];
        brc_commit_free(c);
    }
    return BRC_OK;
}

/* Usually `tip` is on the line itself: then its past need not be known. */
int brc_walk_hide(brc_walk *walk, const brc_oid *tip, brc_error *err)
{
    if (!walk->more || brc_oid_is_zero(tip))
        return BRC_OK;
    BRC_TRY(line_meets(walk, tip, &walk->has_end, err));
    walk->end = *tip;
    if (walk->has_end)
        return BRC_OK;
    BRC_TRY(brc_reach_new(&walk->hidden, walk->store, err));
    return brc_reach_from(walk->hidden, tip, err);
}

/* 1 if the commit must not be given. */
static int walk_hides(const brc_walk *walk, const brc_oid *id, brc_error *err)
{
    if (walk->has_end && brc_oid_cmp(id, &walk->end) == 0)
        return 1;
    return walk->hidden != NULL ? brc_reach_find(walk->hidden, id, err) : 0;
}

static int walk_newer(const walk_commit *a, const walk_commit *b)
{
    if (a->commit->time_us != b->commit->time_us)
        return a->commit->time_us > b->commit->time_us;
    return brc_oid_cmp(&a->id, &b->id) < 0;
}

static int ready_push(brc_walk *walk, walk_commit *c, brc_error *err)
{
    BRC_TRY(brc_grow_array(&walk->ready, &walk->ready_cap, walk->nready + 1, sizeof(c), err));
    walk_commit **heap = walk->ready;
    size_t i = walk->nready++;
    while (i > 0 && walk_newer(c, heap[(i - 1) / 2])) {
        heap[i] = heap[(i - 1) / 2];
        i = (i - 1) / 2;
    }
    heap[i] = c;
    return BRC_OK;
}

static walk_commit *ready_pop(brc_walk *walk)
{
    walk_commit **heap = walk->ready, *first = heap[0], *last = heap[--walk->nready];
    size_t i = 0;
    for (;;) {
        size_t child = 2 * i + 1;
        if (child >= walk->nready)
            break;
        if (child + 1 < walk->nready && walk_newer(heap[child + 1], heap[child]))
            child++;
        if (!walk_newer(heap[child], last))
            break;
        heap[i] = heap[child];
        i = child;
    }
    heap[i] = last;
    return first;
}

static int walk_add(brc_walk *walk, const brc_oid *id, walk_commit **out, brc_error *err)
{
    walk_commit **slot = tfind(id, &walk->known, walk_order);
    if (slot != NULL) {
        *out = *slot;
        return 0;
    }
    void *p;
    BRC_TRY(brc_new(&p, sizeof(walk_commit), err));
    walk_commit *c = p;
    c->id = *id;
    int rc = brc_commit_get(&c->commit, walk->store, id, err);
    if (rc == BRC_OK && tsearch(c, &walk->known, walk_order) == NULL)
        rc = brc_nomem(err);
    if (rc < 0) {
        brc_commit_free(c->commit);
        free(c);
        return rc;
    }
    c->next = walk->all;
    walk->all = c;
    *out = c;
    return 1;
}

/* Loads everything from `tip` on and counts the children. */
static int walk_load_rest(brc_walk *walk, const brc_oid *tip, brc_error *err)
{
    walk_commit *top, *parent;
    void *stack = NULL;
    size_t n = 0, cap = 0;
    int rc;
    BRC_TRY(walk_add(walk, tip, &top, err));
    BRC_GO(brc_grow_array(&stack, &cap, 1, sizeof(top), err));
    ((walk_commit **)stack)[n++] = top;
    while (n > 0) {
        walk_commit *c = ((walk_commit **)stack)[--n];
        BRC_GO(brc_store_check_interrupt(walk->store, err));
        for (size_t i = 0; i < c->commit->nparents; i++) {
            int hides = walk_hides(walk, &c->commit->parents[i], err);
            BRC_GO(hides);
            if (hides)
                continue;
            int is_new = walk_add(walk, &c->commit->parents[i], &parent, err);
            BRC_GO(is_new);
            parent->waiting++;
            if (!is_new)
                continue;
            BRC_GO(brc_grow_array(&stack, &cap, n + 1, sizeof(top), err));
            ((walk_commit **)stack)[n++] = parent;
        }
    }
    rc = ready_push(walk, top, err);
done:
    free(stack);
    return rc;
}

static int walk_next_of_rest(brc_walk *walk, const brc_commit **out, brc_error *err)
{
    walk_commit *parent;
    if (walk->nready == 0)
        return 0;
    walk_commit *c = ready_pop(walk);
    for (size_t i = 0; i < c->commit->nparents; i++) {
        int hides = walk_hides(walk, &c->commit->parents[i], err);
        if (hides < 0)
            return hides;
        if (hides)
            continue;
        BRC_TRY(walk_add(walk, &c->commit->parents[i], &parent, err));
        if (--parent->waiting == 0)
            BRC_TRY(ready_push(walk, parent, err));
    }
    *out = c->commit;
    walk->rest_given = c;
    return 1;
}

int brc_walk_next(brc_walk *walk, const brc_commit **out, brc_error *err)
{
    BRC_TRY(brc_store_check_interrupt(walk->store, err));
    if (walk->all != NULL)
        return walk_next_of_rest(walk, out, err);
    int hides = walk->more ? walk_hides(walk, &walk->at, err) : 1;
    if (hides != 0) {
        walk->more = 0;
        return hides < 0 ? hides : 0;
    }
    brc_commit_free(walk->given);
    walk->given = NULL;
    BRC_TRY(line_goes_on(&walk->guard, &walk->at, err));
    BRC_TRY(brc_commit_get(&walk->given, walk->store, &walk->at, err));
    if (walk->given->nparents > 1) {
        brc_oid at = walk->at;
        walk->more = 0;
        BRC_TRY(walk_load_rest(walk, &at, err));
        return walk_next_of_rest(walk, out, err);
    }
    walk->more = walk->given->nparents == 1;
    if (walk->more)
        walk->at = walk->given->parents[0];
    *out = walk->given;
    return 1;
}

brc_commit *brc_walk_take(brc_walk *walk)
{
    brc_commit **held = walk->rest_given != NULL ? &walk->rest_given->commit : &walk->given;
    brc_commit *commit = *held;
    *held = NULL;
    return commit;
}
