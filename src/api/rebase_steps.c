#include "rebase_steps.h"

#include <stdlib.h>
#include <string.h>

#include "../base/alloc.h"
#include "../history/commit.h"
#include "../history/reach.h"
#include "open_plan.h"

/* ---- the list -------------------------------- */

static brc_commit *rebased(const brc_rebasing *r, size_t i)
{
    return ((brc_commit **)r->todo)[i];
}

static void rebasing_dispose(brc_rebasing *r)
{
    for (size_t i = 0; i < r->n; i++)
        brc_commit_free(rebased(r, i));
    free(r->todo);
    brc_sequence_dispose(&r->q);
}

int brc_rebasing_add(brc_rebasing *r, brc_commit *commit, brc_error *err)
{
    const int rc = brc_grow_array(&r->todo, &r->cap, r->n + 1, sizeof(brc_commit *), err);
    if (rc < 0)
        brc_commit_free(commit);
    else
        ((brc_commit **)r->todo)[r->n++] = commit;
    return rc;
}

static void turn_round(brc_rebasing *r, size_t from)
{
    brc_commit **list = (brc_commit **)r->todo + from;
    const size_t n = r->n - from;
    for (size_t i = 0; i < n / 2; i++) {
        brc_commit *one = list[i];
        list[i] = list[n - 1 - i];
        list[n - 1 - i] = one;
    }
}

/* What is hidden from the walk is looked for no further. */
static int find_target(const brc_rebasing *r, const brc_oid *past, brc_reach **out, brc_error *err)
{
    *out = NULL;
    if (brc_oid_cmp(past, &r->target) == 0)
        return BRC_OK;
    BRC_TRY(brc_reach_new(out, r->repo->store, err));
    return brc_reach_from(*out, &r->target, err);
}

int brc_rebasing_add_line(brc_rebasing *r, const brc_oid *tip, const brc_oid *past, brc_error *err)
{
    const size_t from = r->n;
    brc_reach *there = NULL;
    brc_walk *walk;
    const brc_commit *commit;
    int rc;
    BRC_TRY(brc_walk_new(&walk, r->repo->store, tip, err));
    BRC_GO(brc_walk_hide(walk, past, err));
    BRC_GO(find_target(r, past, &there, err));
    while ((rc = brc_walk_next(walk, &commit, err)) > 0) {
        const int has = there != NULL ? brc_reach_find(there, &commit->id, err) : 0;
        rc = has;
        if (has == 0 && commit->nparents <= 1)
            rc = brc_rebasing_add(r, brc_walk_take(walk), err);
        if (rc < 0)
            break;
    }
done:
    brc_reach_free(there);
    brc_walk_free(walk);
    turn_round(r, from);
    return rc;
}

/* ---- a conflict -------------------------------- */

/* Sides are for what is to come, too. */
static int write_sides(const brc_sequence *q, brc_buf *plan, brc_error *err)
{
    if (q->favour == BRC_FAVOUR_NONE)
        return BRC_OK;
    BRC_TRY(brc_plan_text(plan, "side", q->favour == BRC_FAVOUR_OURS ? "ours" : "theirs", err));
    return brc_plan_texts(plan, "paths", q->paths, q->npaths, err);
}

static int plan_rebase(const brc_rebasing *r, const brc_step *step, const brc_oid *todo, size_t n,
                       brc_buf *plan, brc_error *err)
{
    const brc_step_change *change = &step->change;
    BRC_TRY(brc_plan_text(plan, "op", r->q.op, err));
    BRC_TRY(brc_plan_text(plan, "rev", r->onto, err));
    BRC_TRY(brc_plan_id(plan, "onto", &r->target, err));
    BRC_TRY(brc_plan_id(plan, "at", &step->like.id, err));
    if (change->has_base)
        BRC_TRY(brc_plan_id(plan, "base", &change->base, err));
    BRC_TRY(brc_plan_id(plan, "theirs", &change->theirs, err));
    BRC_TRY(brc_plan_number(plan, "made", (int64_t)r->result.made, err));
    BRC_TRY(brc_plan_number(plan, "skipped", (int64_t)r->result.skipped, err));
    BRC_TRY(brc_plan_number(plan, "conflicts", (int64_t)brc_merge_tree_clashes(r->q.run.tree)->n,
                            err));
    BRC_TRY(write_sides(&r->q, plan, err));
    BRC_TRY(brc_plan_ids(plan, "todo", todo, n, err));
    return brc_plan_end(plan, err);
}

/* What comes behind the i-th. */
static int list_rest(const brc_rebasing *r, size_t i, brc_oid **out, size_t *n, brc_error *err)
{
    void *p;
    *n = 0;
    BRC_TRY(brc_new_array(&p, r->n - i, sizeof(brc_oid), err));
    *out = p;
    while (++i < r->n)
        (*out)[(*n)++] = rebased(r, i)->id;
    return BRC_OK;
}

static int keep_rebase(brc_rebasing *r, size_t i, const brc_step *step, brc_error *err)
{
    brc_buf plan = BRC_BUF_INIT;
    brc_open_merge_new what = {.change = &step->change};
    brc_oid *rest = NULL;
    int rc;
    BRC_GO(list_rest(r, i, &rest, &what.nmore, err));
    what.more = rest;
    BRC_GO(plan_rebase(r, step, rest, what.nmore, &plan, err));
    what.plan = (const char *)plan.data;
    rc = brc_sequence_keep(&r->q, &what, &r->result.draft, err);
done:
    brc_buf_dispose(&plan);
    free(rest);
    return rc;
}

static int stop_at(brc_rebasing *r, size_t i, const brc_step *step, brc_error *err)
{
    r->result.result = BRC_PICK_CONFLICT;
    r->result.at = step->like.id;
    r->result.left = r->n - 1 - i;
    if (r->may_keep)
        return keep_rebase(r, i, step, err);
    r->result.made = r->result.skipped = r->result.left = 0; /* it is all gone */
    return BRC_OK;
}

/* ---- doing them again -------------------------------- */

/* It is on the right commit already: it stays as it is. */
static int stays(const brc_rebasing *r, const brc_commit *commit)
{
    return r->result.made + r->result.skipped == 0 && commit->nparents == 1 &&
           brc_oid_cmp(&commit->parents[0], &r->q.now) == 0;
}

/* A commit that never changed anything is kept; one whose change is there already is not. */
static int was_empty(const brc_rebasing *r, const brc_commit *commit, int *empty, brc_error *err)
{
    brc_oid root;
    *empty = 0;
    if (commit->nparents == 0)
        return BRC_OK;
    BRC_TRY(brc_commit_root(r->repo->store, &commit->parents[0], &root, err));
    *empty = brc_oid_cmp(&root, &commit->root) == 0;
    return BRC_OK;
}

static int rebase_one(brc_rebasing *r, size_t i, int *result, brc_error *err)
{
    const brc_commit *commit = rebased(r, i);
    brc_step step = {.like = *commit};
    brc_step_change *change = &step.change;
    if (stays(r, commit)) {
        *result = BRC_STEP_DONE;
        return brc_sequence_go_to(&r->q, &commit->id, err);
    }
    change->has_theirs = 1;
    change->theirs = commit->id;
    change->has_base = commit->nparents > 0;
    if (change->has_base)
        change->base = commit->parents[0];
    BRC_TRY(was_empty(r, commit, &step.keep_empty, err));
    step.is_last = i + 1 == r->n;
    BRC_TRY(brc_sequence_step(&r->q, &step, result, err));
    r->result.made += *result == BRC_STEP_DONE;
    r->result.skipped += *result == BRC_STEP_EMPTY;
    return *result == BRC_STEP_CONFLICT ? stop_at(r, i, &step, err) : BRC_OK;
}

int brc_rebasing_run(brc_rebasing *r, brc_error *err)
{
    int result = BRC_STEP_DONE;
    for (size_t i = 0; i < r->n; i++) {
        BRC_TRY(rebase_one(r, i, &result, err));
        if (result == BRC_STEP_CONFLICT)
            return BRC_OK;
    }
    BRC_TRY(brc_sequence_end(&r->q, err));
    r->result.commit = r->q.now;
    r->result.result = BRC_PICK_COMMITTED;
    if (r->q.has_tip && brc_oid_cmp(&r->q.now, &r->q.tip) == 0)
        r->result.result = BRC_PICK_NOTHING;
    else if (r->n == 0 && !r->q.is_open)
        r->result.result = BRC_PICK_FAST_FORWARD;
    return BRC_OK;
}

static int rebase_turn(void *ctx, brc_error *err)
{
    brc_rebase_turn *turn = ctx;
    brc_rebasing r = {.repo = turn->repo};
    r.q.repo = turn->repo;
    r.q.on = turn->aim.branch;
    r.q.op = "rebase";
    r.q.doing = "it is rebased";
    int rc = turn->once(turn, &r, err);
    const int again = rc < 0 && r.q.again;
    rebasing_dispose(&r);
    return again ? 0 : rc < 0 ? rc : 1;
}

int brc_rebasing_in_turn(brc_rebase_turn *turn, brc_error *err)
{
    return brc_sequence_in_turn(&turn->aim, turn->repo, "the branch was rebased", rebase_turn, err);
}
