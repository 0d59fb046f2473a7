/* Doing what a plan says: see expire.h. */
#include <stdlib.h>
#include <string.h>

#include "../base/alloc.h"
#include "expire.h"

/* Plans that are made without the lock before one is made with it, and rows of one transaction. */
enum { TRIES = 3, ROWS = 500 };

/* ---- what refs reach -------------------------------- */

static int same_refs(const brc_expire_plan *plan, int *same, brc_error *err)
{
    brc_ref_row *rows;
    size_t n;
    BRC_TRY(brc_ref_list(plan->store, "", &rows, &n, err));
    *same = n == plan->nrefs;
    for (size_t i = 0; i < n && *same; i++)
        *same = strcmp(rows[i].name, plan->refs[i].name) == 0 &&
                rows[i].has_target == plan->refs[i].has_target &&
                (!rows[i].has_target ||
                 brc_oid_cmp(&rows[i].target, &plan->refs[i].target) == 0);
    brc_ref_rows_free(rows, n);
    return BRC_OK;
}

static int put_kept(brc_expire_plan *plan, brc_error *err)
{
    for (size_t i = 0; i < plan->n; i++) {
        const brc_expire_commit *c = brc_expire_commit_at(plan, i);
        if (c->reasons != 0 && c->is_cut)
            BRC_TRY(brc_expire_put(plan, i, err));
    }
    return BRC_OK;
}

/* Within the transaction: *done 0 if the plan is of another state. */
static int thin_in(brc_expire_plan *plan, brc_store *store, const brc_expire_rules *rules,
                   int64_t seen, int is_last, int *done, brc_error *err)
{
    int64_t others;
    BRC_TRY(brc_store_others(store, &others, err));
    *done = others == seen;
    if (!*done && is_last) {
        brc_expire_plan_dispose(plan);
        BRC_TRY(brc_expire_plan_make(plan, store, rules, err));
        *done = 1;
    } else if (!*done) {
        BRC_TRY(same_refs(plan, done, err));
        if (*done)
            BRC_TRY(brc_expire_same_named(plan, done, err));
    }
    return *done ? put_kept(plan, err) : BRC_OK;
}

static int thin(brc_expire_plan *plan, brc_store *store, const brc_expire_rules *rules,
                const brc_expire_step *step, int is_last, int *done, brc_error *err)
{
    int64_t seen = 0;
    BRC_TRY(brc_store_begin_read(store, err));
    int rc = brc_store_others(store, &seen, err);
    if (rc == BRC_OK)
        rc = brc_expire_plan_make(plan, store, rules, err);
    brc_store_end_read(store);
    BRC_TRY(rc);
    *done = plan->expired == 0;
    if (*done)
        return BRC_OK;
    BRC_TRY(step->fn(step->ctx, err));
    BRC_TRY(brc_store_begin(store, err));
    rc = thin_in(plan, store, rules, seen, is_last, done, err);
    int end = brc_store_end(store, rc == BRC_OK && *done, rc == BRC_OK ? err : NULL);
    return rc < 0 ? rc : end;
}

/* ---- what refs do not reach any more -------------------------------- */

static int is_there(brc_store *store, const brc_oid *id, int *there, brc_error *err)
{
    brc_object o = {.id = *id}, *one = &o;
    BRC_TRY(brc_objects_find(store, &one, 1, err));
    *there = o.found;
    return BRC_OK;
}

/* The log may name it, and then it is kept: but not all that came before it. */
static int put_expired(brc_expire_plan *plan, size_t *at, brc_error *err)
{
    int there;
    for (size_t n = 0; *at < plan->n && n < ROWS; ++*at) {
        const brc_expire_commit *c = brc_expire_commit_at(plan, *at);
        if (c->reasons != 0 || !c->is_cut)
            continue;
        BRC_TRY(is_there(plan->store, &c->id, &there, err));
        if (there)
            BRC_TRY(brc_expire_put(plan, *at, err));
        n++;
    }
    return BRC_OK;
}

typedef struct other_commits {
    const brc_expire_plan *plan;
    void *ids; /* brc_oid[]: that are not of the plan */
    size_t n, cap;
} other_commits;

static int note_other(void *ctx, const brc_oid *id, brc_error *err)
{
    other_commits *others = ctx;
    if (brc_id_table_find(&others->plan->index, id) != NULL)
        return BRC_OK;
    BRC_TRY(brc_grow_array(&others->ids, &others->cap, others->n + 1, sizeof(brc_oid), err));
    ((brc_oid *)others->ids)[others->n++] = *id;
    return BRC_OK;
}

static int put_others(brc_expire_plan *plan, const brc_oid *ids, size_t n, size_t *at,
                      brc_error *err)
{
    int there;
    for (size_t i = 0; *at < n && i < ROWS; i++, ++*at) {
        BRC_TRY(is_there(plan->store, &ids[*at], &there, err));
        if (there)
            BRC_TRY(brc_expire_put_other(plan, &ids[*at], err));
    }
    return BRC_OK;
}

static int settle_step(brc_expire_plan *plan, const other_commits *others, size_t *at,
                       size_t *other, brc_error *err)
{
    BRC_TRY(brc_store_check_interrupt(plan->store, err));
    BRC_TRY(brc_store_begin(plan->store, err));
    int rc = *at < plan->n ? put_expired(plan, at, err)
                           : put_others(plan, others->ids, others->n, other, err);
    int end = brc_store_end(plan->store, rc == BRC_OK, rc == BRC_OK ? err : NULL);
    return rc < 0 ? rc : end;
}

static int settle_rest(brc_expire_plan *plan, const brc_expire_step *step, brc_error *err)
{
    other_commits others = {.plan = plan};
    size_t at = 0, other = 0;
    BRC_TRY(brc_store_begin_read(plan->store, err));
    int rc = brc_store_each_id(plan->store, BRC_IDS_OF_COMMITS, note_other, &others, err);
    brc_store_end_read(plan->store);
    while (rc == BRC_OK && (at < plan->n || other < others.n)) {
        rc = settle_step(plan, &others, &at, &other, err);
        if (rc == BRC_OK)
            rc = step->fn(step->ctx, err);
    }
    free(others.ids);
    return rc;
}

static int drop_unused_drafts(brc_store *store, brc_error *err)
{
    BRC_TRY(brc_store_begin(store, err));
    int rc = brc_drafts_drop_unused(store, err);
    int end = brc_store_end(store, rc == BRC_OK, rc == BRC_OK ? err : NULL);
    return rc < 0 ? rc : end;
}

int brc_expire_run(brc_expire_plan *plan, brc_store *store, const brc_expire_rules *rules,
                   const brc_expire_step *step, brc_error *err)
{
    int done = 0;
    memset(plan, 0, sizeof(*plan));
    BRC_TRY(drop_unused_drafts(store, err));
    for (int i = 0; !done; i++) {
        brc_expire_plan_dispose(plan);
        BRC_TRY(thin(plan, store, rules, step, i >= TRIES, &done, err));
    }
    return plan->expired > 0 ? settle_rest(plan, step, err) : BRC_OK;
}
