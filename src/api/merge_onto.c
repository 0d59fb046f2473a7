/*
 * The end of an open merge, cherry-pick or revert whose branch has moved since it began. What was
 * settled is merged onto the new tip, as the changes of a private session are (replay.h): base is
 * the commit over which the draft lies. Where nothing overlaps, that is the commit. Else the merge
 * is open again, over the new tip: theirs is what was settled, as a commit that the new draft's
 * plan names.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../base/clock.h"
#include "../history/commit.h"
#include "../history/reach.h"
#include "merge_draft.h"
#include "open_plan.h"
#include "replay.h"

typedef struct onto_tip {
    brc_session *s;
    brc_store *store;
    const brc_open_merge *merge;
    const brc_commit *like;
    brc_onto_tip *out;
    brc_replay r;
} onto_tip;

/* ---- the commit -------------------------------- */

/* The tip may have the other side by now: then that is no parent. */
static int needs_other(const onto_tip *o, int *needs, brc_error *err)
{
    brc_reach *reach;
    *needs = o->merge->has_other;
    if (!*needs || !o->r.has_tip)
        return BRC_OK;
    BRC_TRY(brc_reach_new(&reach, o->store, err));
    int rc = brc_reach_from(reach, &o->r.tip, err);
    if (rc == BRC_OK)
        rc = brc_reach_find(reach, &o->merge->other, err);
    brc_reach_free(reach);
    *needs = rc == 0;
    return rc < 0 ? rc : BRC_OK;
}

static int put_onto_tip(onto_tip *o, brc_error *err)
{
    brc_commit commit = *o->like;
    brc_oid parents[2];
    brc_move_set moves = {0};
    char *full = NULL;
    int rc, needs;
    commit.parents = parents;
    if (o->r.has_tip)
        parents[commit.nparents++] = o->r.tip;
    BRC_GO(needs_other(o, &needs, err));
    if (needs)
        parents[commit.nparents++] = o->merge->other;
    BRC_GO(brc_merge_tree_put(o->r.run.tree, &commit.root, err));
    o->out->commit = o->r.tip;
    o->out->is_made = needs || brc_oid_cmp(&commit.root, &o->r.run.in.ours) != 0;
    if (o->out->is_made) {
        BRC_GO(brc_merge_tree_moves(o->r.run.tree, &commit.root, &moves, err));
        BRC_GO(brc_commit_put(o->store, &commit, &moves, err));
        BRC_GO(brc_ref_full(&full, "heads", o->s->branch, err));
        BRC_GO(brc_ref_put(o->store, full, &commit.id, NULL, brc_open_merge_op(o->merge), 1,
                           o->r.has_tip ? &o->r.tip : NULL, brc_now_us(), err));
        o->out->commit = commit.id;
    }
    rc = brc_draft_delete(o->store, o->s->draft.id, err);
done:
    brc_move_set_dispose(&moves);
    free(full);
    return rc;
}

/* ---- open again -------------------------------- */

/* What was settled, over the commit over which it was. */
static int put_settled(onto_tip *o, brc_step_change *change, brc_error *err)
{
    const brc_draft_head *draft = &o->r.draft;
    brc_commit commit = *o->like;
    brc_oid parents[2];
    commit.parents = parents;
    if (draft->has_tip)
        parents[commit.nparents++] = draft->tip;
    if (o->merge->has_other)
        parents[commit.nparents++] = o->merge->other;
    commit.root = o->r.folded.root;
    BRC_TRY(brc_commit_put(o->store, &commit, &o->r.run.theirs_moves, err));
    *change = (brc_step_change){.has_base = draft->has_tip, .base = draft->tip,
                                .has_theirs = 1, .theirs = commit.id};
    return BRC_OK;
}

/* What the plan says of the commit that is to come stays. */
static int plan_again(const onto_tip *o, const brc_step_change *change, brc_buf *plan,
                      brc_error *err)
{
    static const char *const texts[] = {"op", "rev", "at", "message", "author"};
    int64_t time;
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
        if (brc_json_member(o->merge->plan, texts[i]) != NULL)
            BRC_TRY(brc_plan_text(plan, texts[i], brc_open_merge_text(o->merge, texts[i]), err));
    if (brc_json_int(brc_json_member(o->merge->plan, "time"), INT64_MIN, INT64_MAX, &time))
        BRC_TRY(brc_plan_number(plan, "time", time, err));
    if (change->has_base)
        BRC_TRY(brc_plan_id(plan, "base", &change->base, err));
    BRC_TRY(brc_plan_id(plan, "theirs", &change->theirs, err));
    BRC_TRY(brc_plan_true(plan, "settled", err));
    BRC_TRY(brc_plan_number(plan, "conflicts",
                            (int64_t)brc_merge_tree_clashes(o->r.run.tree)->n, err));
    return brc_plan_end(plan, err);
}

static int open_again(onto_tip *o, brc_error *err)
{
    brc_step_change change;
    brc_buf plan = BRC_BUF_INIT;
    brc_open_merge_new what = {.branch = o->s->branch, .change = &change};
    int64_t draft;
    int rc;
    what.tip = o->r.has_tip ? &o->r.tip : NULL;
    what.other = o->merge->has_other ? &o->merge->other : NULL;
    BRC_GO(put_settled(o, &change, err));
    BRC_GO(plan_again(o, &change, &plan, err));
    what.plan = (const char *)plan.data;
    BRC_GO(brc_draft_delete(o->store, o->s->draft.id, err));
    rc = brc_open_merge_start(&draft, &o->r.run, &what, err);
    o->out->is_open = rc == BRC_OK;
done:
    brc_buf_dispose(&plan);
    return rc;
}

/* ---- the call -------------------------------- */

/* It must be the same, and still be settled: others may have written meanwhile. */
static int check_same_merge(onto_tip *o, brc_error *err)
{
    brc_open_merge now;
    BRC_TRY(brc_open_merge_read(&now, o->s, err));
    const int same = now.draft.id == o->merge->draft.id && brc_open_merge_left(&now) == 0;
    brc_open_merge_dispose(&now);
    if (same)
        return BRC_OK;
    const char *open = brc_open_merge_command(o->merge);
    return brc_fail(err, BRC_ESTALE,
                    "%s: the %s on branch '%s' was changed while it went on: nothing was done; "
                    "call 'breccia %s --continue' again",
                    brc_store_path(o->store), open, o->s->branch, open);
}

/* 1: it is done; 0: others were first. */
static int onto_steps(onto_tip *o, brc_error *err)
{
    BRC_TRY(check_same_merge(o, err));
    const int same = brc_replay_is_current(&o->r, err);
    if (same <= 0)
        return same;
    o->s->is_read = 0;
    BRC_TRY(brc_merge_tree_clashes(o->r.run.tree)->n > 0 ? open_again(o, err)
                                                         : put_onto_tip(o, err));
    return 1;
}

static int onto_work(onto_tip *o, brc_error *err)
{
    BRC_TRY(brc_replay_work(&o->r, err));
    BRC_TRY(brc_merge_tree_ahead(o->r.run.tree, err));
    BRC_TRY(brc_session_begin(o->s, err));
    const int done = onto_steps(o, err);
    const int rc = brc_session_end(o->s, done < 0 ? done : BRC_OK, err);
    if (rc < 0 || done == 0)
        o->s->is_read = 0;
    return rc < 0 ? rc : done;
}

static int onto_in_turn(void *ctx, brc_error *err)
{
    onto_tip *o = ctx;
    memset(o->out, 0, sizeof(*o->out));
    brc_replay_start(&o->r, o->s);
    int rc = onto_work(o, err);
    brc_replay_end(&o->r);
    return rc;
}

static int onto_is_late(const onto_tip *o, brc_error *err)
{
    char doing[160], remedy[80];
    const char *open = brc_open_merge_command(o->merge);
    snprintf(doing, sizeof(doing), "the %s was merged onto branch '%.100s'", open, o->s->branch);
    snprintf(remedy, sizeof(remedy), "it is open as it was; call 'breccia %s --continue' again",
             open);
    return brc_turn_is_over(o->store, doing, remedy, err);
}

int brc_open_merge_onto_tip(brc_onto_tip *out, brc_session *s, const brc_open_merge *merge,
                            const brc_commit *like, brc_error *err)
{
    onto_tip o = {.s = s, .store = s->repo->store, .merge = merge, .like = like, .out = out};
    const brc_task task = brc_task_begin(s->repo, brc_open_merge_command(merge), 0);
    int rc = brc_in_turn(o.store, s->branch, onto_in_turn, &o, err);
    brc_task_end(s->repo, &task, rc);
    return rc == 0 ? onto_is_late(&o, err) : rc < 0 ? rc : BRC_OK;
}
