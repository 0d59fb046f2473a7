/* What must not expire, beyond what the rules keep: see expire.h.
 *
 * An open merge is merged again when it is settled for theirs, and an open rebase has changes to
 * come. Were a merge base gone, an older one would stand for it, or none: other conflicts, and
 * moves that are not followed any more. */
#include <stdlib.h>
#include <string.h>

#include "../base/alloc.h"
#include "expire.h"
#include "merge_base.h"

/* Of what a draft names, these have merge bases of their own. What a rebase has still to do comes
 * behind them, is one line of commits, and may be long: it is looked at together. */
enum { ONE_BY_ONE = 8 };

typedef struct base_sets {
    brc_store *store;
    brc_roots *out;
    void *sets; /* brc_commit_set[]: bases; those before `at` were looked under */
    size_t n, at, cap;
} base_sets;

static brc_commit_set *bases_at(const base_sets *b, size_t i)
{
    return (brc_commit_set *)b->sets + i;
}

static void base_sets_dispose(base_sets *b)
{
    for (size_t i = 0; i < b->n; i++)
        brc_commit_set_dispose(bases_at(b, i));
    free(b->sets);
}

static int named_add(brc_roots *out, const brc_oid *id, brc_error *err)
{
    void *p = out->items;
    int rc = brc_grow_array(&p, &out->cap, out->n + 1, sizeof(brc_root), err);
    out->items = p;
    if (rc == BRC_OK)
        out->items[out->n++] = (brc_root){.what = BRC_ROOT_COMMIT, .id = *id};
    return rc;
}

static int set_is_met(const base_sets *b, const brc_commit_set *set)
{
    for (size_t i = 0; i < b->n; i++)
        if (bases_at(b, i)->n == set->n &&
            memcmp(bases_at(b, i)->ids, set->ids, set->n * sizeof(*set->ids)) == 0)
            return 1;
    return 0;
}

/* The bases of some commits and another; several are merged themselves, from what is below them. */
static int bases_add(base_sets *b, const brc_commit_set *some, const brc_oid *other,
                     brc_error *err)
{
    brc_commit_set bases;
    int rc;
    BRC_GO(brc_merge_bases(&bases, b->store, some, other, err));
    for (size_t i = 0; i < bases.n; i++)
        BRC_GO(named_add(b->out, &bases.ids[i], err));
    if (bases.n < 2 || set_is_met(b, &bases))
        goto done;
    BRC_GO(brc_grow_array(&b->sets, &b->cap, b->n + 1, sizeof(bases), err));
    *bases_at(b, b->n++) = bases;
    memset(&bases, 0, sizeof(bases));
done:
    brc_commit_set_dispose(&bases);
    return rc;
}

static int bases_below(base_sets *b, brc_error *err)
{
    brc_commit_set done = {0};
    int rc = BRC_OK;
    for (; b->at < b->n && rc == BRC_OK; b->at++) {
        for (size_t i = 0; i + 1 < bases_at(b, b->at)->n && rc == BRC_OK; i++) {
            const brc_oid next = bases_at(b, b->at)->ids[i + 1];
            rc = brc_commit_set_add(&done, &bases_at(b, b->at)->ids[i], err);
            if (rc == BRC_OK)
                rc = bases_add(b, &done, &next, err);
        }
        brc_commit_set_dispose(&done);
    }
    return rc;
}

/* A text of a plan may name what is no commit, or is gone. */
static int is_commit(brc_store *store, const brc_oid *id, int *is, brc_error *err)
{
    brc_object o = {.id = *id}, *one = &o;
    BRC_TRY(brc_objects_find(store, &one, 1, err));
    *is = o.found && o.kind == BRC_KIND_COMMIT;
    return BRC_OK;
}

/* What a commit changed is told from its parents. */
static int parents_add(base_sets *b, const brc_oid *id, brc_error *err)
{
    brc_commit *commit;
    BRC_TRY(brc_commit_get(&commit, b->store, id, err));
    int rc = BRC_OK;
    for (size_t i = 0; i < commit->nparents && rc == BRC_OK; i++)
        rc = named_add(b->out, &commit->parents[i], err);
    brc_commit_free(commit);
    return rc;
}

/* Of one draft: roots [from, to). */
static int stood_on(base_sets *b, size_t from, size_t to, brc_error *err)
{
    brc_commit_set some = {0};
    const brc_oid ours = b->out->items[from].id;
    int rc = BRC_OK, is;
    for (size_t i = from + 1; i < to; i++) {
        const brc_oid id = b->out->items[i].id;
        BRC_GO(is_commit(b->store, &id, &is, err));
        if (!is || brc_oid_cmp(&id, &ours) == 0)
            continue;
        BRC_GO(parents_add(b, &id, err));
        BRC_GO(brc_commit_set_add(&some, &id, err));
        if (i - from > ONE_BY_ONE && i + 1 < to)
            continue;
        BRC_GO(bases_add(b, &some, &ours, err));
        brc_commit_set_dispose(&some);
    }
    if (some.n > 0)
        rc = bases_add(b, &some, &ours, err);
done:
    brc_commit_set_dispose(&some);
    return rc;
}

int brc_expire_named(brc_roots *out, brc_store *store, brc_error *err)
{
    base_sets b = {.store = store, .out = out};
    brc_log_range range = {INT64_MAX, 0, 0};
    BRC_TRY(brc_roots_named(store, &range, BRC_NOT_DEAD_UNUSED, out, err));
    const size_t n = out->n;
    int rc = BRC_OK;
    for (size_t i = 0, to; i < n && rc == BRC_OK; i = to) {
        for (to = i + 1; to < n && out->items[to].open == out->items[i].open; to++)
            ;
        if (out->items[i].open != 0)
            rc = stood_on(&b, i, to, err);
    }
    if (rc == BRC_OK)
        rc = bases_below(&b, err);
    base_sets_dispose(&b);
    return rc;
}
