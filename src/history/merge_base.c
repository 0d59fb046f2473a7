#include "merge_base.h"

#include <stdlib.h>
#include <string.h>

#include "../base/alloc.h"
#include "../base/id_table.h"
#include "commit.h"

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

typedef struct base_commit {
    brc_oid id;
    int64_t generation;
    unsigned paint;
    size_t nparents, first; /* in base_search.parents: of one that was read */
    int is_read, in_heap;
} base_commit;

typedef struct base_search {
    brc_store *store;
    brc_id_table index; /* size_t: where in `commits`, from 1 on */
    void *commits;      /* base_commit[] */
    size_t n, cap;
    void *parents;      /* size_t[]: indexes of commits */
    size_t nparents, parents_cap;
    void *heap;         /* size_t[]: the highest generation first */
    size_t nheap, heap_cap;
    size_t open;        /* of these, that are not below a base that was found */
} base_search;

static base_commit *at_index(const base_search *s, size_t i)
{
    return (base_commit *)s->commits + i;
}

static int search_commit(base_search *s, const brc_oid *id, size_t *out, brc_error *err)
{
    void *value;
    BRC_TRY(brc_id_table_add(&s->index, id, &value, err));
    size_t *place = value;
    if (*place == 0) {
        BRC_TRY(brc_grow_array(&s->commits, &s->cap, s->n + 1, sizeof(base_commit), err));
        base_commit *c = at_index(s, s->n);
        memset(c, 0, sizeof(*c));
        c->id = *id;
        BRC_TRY(brc_commit_generation(s->store, id, &c->generation, err));
        *place = ++s->n;
    }
    *out = *place - 1;
    return BRC_OK;
}

static int parents_read(base_search *s, size_t i, brc_error *err)
{
    brc_commit *commit;
    if (at_index(s, i)->is_read)
        return BRC_OK;
    BRC_TRY(brc_store_check_interrupt(s->store, err));
    BRC_TRY(brc_commit_get(&commit, s->store, &at_index(s, i)->id, err));
    int rc = brc_grow_array(&s->parents, &s->parents_cap, s->nparents + commit->nparents + 1,
                            sizeof(size_t), err);
    const size_t first = s->nparents;
    for (size_t k = 0; k < commit->nparents && rc == BRC_OK; k++) {
        size_t parent;
        rc = search_commit(s, &commit->parents[k], &parent, err);
        if (rc == BRC_OK)
            ((size_t *)s->parents)[s->nparents++] = parent;
    }
    base_commit *c = at_index(s, i);
    c->first = first;
    c->nparents = commit->nparents;
    c->is_read = rc == BRC_OK;
    brc_commit_free(commit);
    return rc;
}

static size_t parent_of(const base_search *s, size_t i, size_t k)
{
    return ((const size_t *)s->parents)[at_index(s, i)->first + k];
}

/* ---- generations -------------------------------- */

typedef struct count_frame {
    size_t commit, next;
} count_frame;

/* The rows that tell generations are derived: where they contradict the commits, all are
 * counted. */
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
        if (f->next == at_index(s, i)->nparents) {
            int64_t most = 0;
            for (size_t k = 0; k < at_index(s, i)->nparents; k++)
                if (at_index(s, parent_of(s, i, k))->generation > most)
                    most = at_index(s, parent_of(s, i, k))->generation;
            at_index(s, i)->generation = most + 1;
            n--;
            continue;
        }
        const size_t parent = parent_of(s, i, f->next++);
        if (at_index(s, parent)->generation < 0) { /* not yet */
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
    for (size_t i = 0; i < s->n; i++) /* read all: it grows meanwhile */
        BRC_TRY(parents_read(s, i, err));
    for (size_t i = 0; i < s->n; i++)
        at_index(s, i)->generation = -1;
    for (size_t i = 0; i < n; i++)
        if (at_index(s, tips[i])->generation < 0)
            BRC_TRY(count_from(s, tips[i], err));
    return BRC_OK;
}

/* ---- the heap -------------------------------- */

static int comes_before(const base_search *s, size_t a, size_t b)
{
    const base_commit *x = at_index(s, a), *y = at_index(s, b);
    if (x->generation != y->generation)
        return x->generation > y->generation;
    return brc_oid_cmp(&x->id, &y->id) < 0;
}

static int heap_push(base_search *s, size_t i, unsigned paint, brc_error *err)
{
    base_commit *c = at_index(s, i);
    const unsigned before = c->paint;
    c->paint |= paint;
    if (c->in_heap) {
        s->open -= (before & BELOW) == 0 && (c->paint & BELOW) != 0;
        return BRC_OK;
    }
    BRC_TRY(brc_grow_array(&s->heap, &s->heap_cap, s->nheap + 1, sizeof(size_t), err));
    size_t *heap = s->heap, at = s->nheap++;
    for (; at > 0 && comes_before(s, i, heap[(at - 1) / 2]); at = (at - 1) / 2)
        heap[at] = heap[(at - 1) / 2];
    heap[at] = i;
    c->in_heap = 1;
    s->open += (c->paint & BELOW) == 0;
    return BRC_OK;
}

static size_t heap_pop(base_search *s)
{
    size_t *heap = s->heap, top = heap[0], last = heap[--s->nheap], at = 0;
    for (size_t child; (child = 2 * at + 1) < s->nheap; at = child) {
        child += child + 1 < s->nheap && comes_before(s, heap[child + 1], heap[child]);
        if (!comes_before(s, heap[child], last))
            break;
        heap[at] = heap[child];
    }
    if (s->nheap > 0)
        heap[at] = last;
    at_index(s, top)->in_heap = 0;
    s->open -= (at_index(s, top)->paint & BELOW) == 0;
    return top;
}

/* ---- bases -------------------------------- */

/* *wrong: a generation is not above its parents': what was found is of no use. */
static int search_run(base_search *s, brc_commit_set *out, int *wrong, brc_error *err)
{
    *wrong = 0;
    while (s->open > 0) {
        const size_t i = heap_pop(s);
        unsigned paint = at_index(s, i)->paint;
        BRC_TRY(parents_read(s, i, err));
        if ((paint & BY_SOME) && (paint & BY_OTHER) && !(paint & BELOW)) {
            BRC_TRY(brc_commit_set_add(out, &at_index(s, i)->id, err));
            paint |= BELOW;
        }
        for (size_t k = 0; k < at_index(s, i)->nparents; k++) {
            const size_t parent = parent_of(s, i, k);
            if (at_index(s, parent)->generation >= at_index(s, i)->generation ||
                at_index(s, parent)->generation <= 0) {
                *wrong = 1;
                return BRC_OK;
            }
            BRC_TRY(heap_push(s, parent, paint, err));
        }
    }
    return BRC_OK;
}

static int search_start(base_search *s, const size_t *tips, size_t n, brc_error *err)
{
    s->nheap = s->open = 0;
    for (size_t i = 0; i < s->n; i++)
        at_index(s, i)->paint = (unsigned)(at_index(s, i)->in_heap = 0);
    for (size_t i = 0; i < n; i++)
        BRC_TRY(heap_push(s, tips[i], i + 1 < n ? BY_SOME : BY_OTHER, err));
    return BRC_OK;
}

int brc_merge_bases(brc_commit_set *out, brc_store *store, const brc_commit_set *some,
                    const brc_oid *other, brc_error *err)
{
    base_search s = {.store = store, .index = BRC_ID_TABLE_INIT(sizeof(size_t))};
    void *tips = NULL;
    int rc, wrong = 0;
    const size_t n = some->n + 1;
    memset(out, 0, sizeof(*out));
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
    free(s.commits);
    free(s.parents);
    free(s.heap);
    brc_id_table_dispose(&s.index);
    if (rc < 0)
        brc_commit_set_dispose(out);
    return rc;
}

/* ---- virtual bases -------------------------------- */

/* A set of bases that is being folded: those before `at` are done. */
typedef struct fold_frame {
    brc_commit_set set, done, below; /* below: the bases of `done` and the next one */
    size_t at;
    brc_oid root;
    int has_below;
} fold_frame;

typedef struct base_fold {
    brc_store *store;
    brc_virtual_merge_fn merge;
    void *ctx;
    brc_id_table known; /* brc_oid: the root of a set, by a hash of its ids */
    void *frames;       /* fold_frame[] */
    size_t n, cap;
} base_fold;

static brc_oid set_name(const base_fold *f, const brc_commit_set *set)
{
    return brc_hash_object(brc_store_hash(f->store), BRC_KIND_COMMIT, set->ids,
                           set->n * sizeof(*set->ids));
}

/* Sets that need no folding, and those that were folded. */
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

/* `set` may lie in a frame, and frames move. */
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

/* The next of the set is merged into what it is so far; first, perhaps, what is below them. */
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
        return frame_push(f, &frame->below, err); /* and this again */
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
