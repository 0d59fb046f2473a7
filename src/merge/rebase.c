#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "../base/alloc.h"
#include "../base/sized.h"
#include "../history/ancestry.h"
#include "../history/commit.h"
#include "../store/change.h"
#include "../work/fold.h"
#include "../work/session_nodes.h"
#include "../zarr/key/key_rows.h"
#include "merge_end.h"
#include "replay.h"
#include "sequence.h"

/*
 * A rebase from the first of its commits to the last, or to one in conflict.
 *
 *      rebasing_change(&turn)                turn.once() gets a rebasing for each try, and does:
 *      brc_sequence_start(&r.q), or _resume()   r.q.now is the parent of the first commit
 *      rebasing_add(&r, commit)               for each commit to apply, oldest first
 *      rebasing_run(&r)                       r.result
 *
 * If the rebase may stay open, the plan of its draft (open_merge.h) has these members in addition
 * to those of a cherry-pick:
 *
 *      {"op": "rebase", "rev": TEXT, "onto": ID, "at": ID, "base": ID, "theirs": ID,
 *       "made": N, "skipped": N, "side": "ours" | "theirs", "paths": [TEXT...], "todo": [ID...]}
 *
 * `todo` lists the commits after `at`; `made` and `skipped` count the commits before it. The draft
 * is based on the last commit that was made, which nothing else names. The draft's tip is the
 * branch's commit, which stays where it is until the last step. Commits that others make on the
 * branch meanwhile are applied after `todo` when the rebase continues.
 */

typedef struct brc_rebasing {
    breccia *repo;
    brc_aim *aim;     /* names the target; NULL: the rebase continues, and `target` is known */
    const char *onto; /* the target as the caller named it                   */
    brc_oid target;   /* the target commit                                   */
    int may_keep;     /* a rebase with a conflict stays open                 */
    brc_sequence q;
    brc_pick_result result; /* made, skipped: include earlier calls */
    /* Private fields. */
    void *todo; /* brc_commit *[] */
    size_t n, cap;
} brc_rebasing;

/* A call that rebases. Each try has its own rebasing. once() gets this structure, with the branch
 * in `aim`. */
typedef struct brc_rebase_turn {
    brc_aim aim;
    brc_pick_result *out;
    brc_iter **conflicts;
    breccia *repo;
    int (*once)(struct brc_rebase_turn *turn, brc_rebasing *r, brc_error *err);
    const brc_pick_opts *given; /* of a rebase that begins                    */
    int skips;                  /* of a rebase that continues                 */
} brc_rebase_turn;

/* ==== rebase steps ================================ */

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

/* Adds a commit, which belongs to the rebasing from now on, even after a failure. */
static int rebasing_add(brc_rebasing *r, brc_commit *commit, brc_error *err)
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

/* Starts the search for the target. Commits that the walk hides are not followed. */
static int find_target(const brc_rebasing *r, const brc_oid *past, brc_reach **out, brc_error *err)
{
    *out = NULL;
    if (brc_oid_cmp(past, &r->target) == 0)
        return BRC_OK;
    BRC_TRY(brc_reach_new(out, r->repo->store, err));
    return brc_reach_from(*out, &r->target, err);
}

/* Adds all commits that `tip` reaches and neither `past` nor the target reaches, oldest first and
 * without merges. Must be called within a read. */
static int rebasing_add_line(brc_rebasing *r, const brc_oid *tip, const brc_oid *past,
                             brc_error *err)
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
            rc = rebasing_add(r, brc_walk_take(walk), err);
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

/* Writes the favoured side, which counts for the remaining commits too. */
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

/* Lists the commits after the i-th. */
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
    r->result.made = r->result.skipped = r->result.left = 0; /* none of these commits stays */
    return BRC_OK;
}

/* ---- doing them again -------------------------------- */

/* Says whether the commit already has the right parent, so that it stays as it is. */
static int stays(const brc_rebasing *r, const brc_commit *commit)
{
    return r->result.made + r->result.skipped == 0 && commit->nparents == 1 &&
           brc_oid_cmp(&commit->parents[0], &r->q.now) == 0;
}

/* Checks whether a commit is empty. A commit that was empty from the start is kept; one whose
 * change is already there is not. */
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

static int rebasing_run(brc_rebasing *r, brc_error *err)
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

static int rebase_in_steps(void *ctx, int insists, brc_error *err)
{
    brc_rebase_turn *turn = ctx;
    (void)insists;
    brc_rebasing r = {.repo = turn->repo};
    r.q.repo = turn->repo;
    r.q.on = turn->aim.branch;
    r.q.op = "rebase";
    r.q.doing = "it is rebased";
    int rc = turn->once(turn, &r, err);
    const int again = rc < 0 && r.q.again;
    rebasing_dispose(&r);
    return again ? BRC_CHANGE_AGAIN : rc;
}

static int rebasing_change(brc_rebase_turn *turn, brc_error *err)
{
    return brc_sequence_change(&turn->aim, turn->repo, "the branch was rebased", rebase_in_steps,
                               err);
}

/* ==== rebase open ================================ */

/* Continues an open rebase: with the settled commit, or without the commit that was in conflict. */

typedef struct open_rebase {
    brc_session *s;
    brc_open_merge merge; /* as it was when the rebase continued                   */
    void *paths;          /* const char *[]: the plan's paths where a side is favoured */
    brc_commit *at;       /* the commit that was in conflict                       */
    brc_folded folded;
    brc_rebasing *all;
} open_rebase;

static void open_rebase_dispose(open_rebase *o)
{
    brc_folded_dispose(&o->folded);
    brc_commit_free(o->at);
    free(o->paths);
    brc_open_merge_dispose(&o->merge);
    brc_session_free(o->s);
}

/* ---- its plan -------------------------------- */

static int plan_lacks(const open_rebase *o, const char *name, brc_error *err)
{
    return brc_fail(err, BRC_ECORRUPT, "the plan of draft %lld is damaged: '%s' is not there",
                    (long long)o->merge.draft.id, name);
}

static int need_id(const open_rebase *o, const char *name, brc_oid *out, brc_error *err)
{
    const int rc = brc_open_merge_id(&o->merge, name, out, err);
    return rc == 0 ? plan_lacks(o, name, err) : rc < 0 ? rc : BRC_OK;
}

/* Reads the options that the rebase began with. */
static int sides_of_plan(open_rebase *o, brc_error *err)
{
    static const char *const sides[] = {"ours", "theirs"};
    const brc_json *list = brc_json_member(o->merge.plan, "paths");
    brc_sequence *q = &o->all->q;
    const int side = brc_json_choice(brc_json_member(o->merge.plan, "side"), sides, 2);
    if (side < 0)
        return BRC_OK;
    q->favour = side == 0 ? BRC_FAVOUR_OURS : BRC_FAVOUR_THEIRS;
    BRC_TRY(brc_new_array(&o->paths, brc_json_count(list) + 1, sizeof(char *), err));
    const char **paths = o->paths;
    for (const brc_json *at = brc_json_first(list); at != NULL; at = brc_json_next(at)) {
        if (!brc_json_text(at, &paths[q->npaths]))
            return plan_lacks(o, "paths", err);
        BRC_TRY(brc_path_is_normal(paths[q->npaths++], err));
    }
    brc_paths_sort(paths, q->npaths);
    q->paths = paths;
    return BRC_OK;
}

/* Reads the commits that the plan names. Must be called within a read. */
static int plan_commits(open_rebase *o, const brc_oid *at, const brc_oid *todo, size_t n,
                        brc_error *err)
{
    brc_store *store = o->all->repo->store;
    brc_commit *commit;
    BRC_TRY(brc_commit_get(&o->at, store, at, err));
    for (size_t i = 0; i < n; i++) {
        BRC_TRY(brc_commit_get(&commit, store, &todo[i], err));
        BRC_TRY(rebasing_add(o->all, commit, err));
    }
    return BRC_OK;
}

static int read_rest(open_rebase *o, brc_error *err)
{
    brc_store *store = o->all->repo->store;
    brc_rebasing *r = o->all;
    void *todo;
    size_t n;
    brc_oid at;
    r->onto = brc_open_merge_text(&o->merge, "rev");
    r->result.made = brc_open_merge_number(&o->merge, "made");
    r->result.skipped = brc_open_merge_number(&o->merge, "skipped");
    BRC_TRY(need_id(o, "onto", &r->target, err));
    BRC_TRY(need_id(o, "at", &at, err));
    BRC_TRY(sides_of_plan(o, err));
    if (brc_json_kind(brc_json_member(o->merge.plan, "todo")) != BRC_JSON_ARRAY)
        return plan_lacks(o, "todo", err);
    BRC_TRY(brc_open_merge_ids(&o->merge, "todo", &todo, &n, err));
    int rc = brc_store_begin_read(store, err);
    if (rc == BRC_OK) {
        rc = plan_commits(o, &at, todo, n, err);
        brc_store_end_read(store);
    }
    free(todo);
    return rc;
}

/* ---- what was settled -------------------------------- */

/* Makes a commit of the settled change on top of the earlier ones; nothing names it yet. */
static int commit_settled(open_rebase *o, brc_error *err)
{
    brc_rebasing *r = o->all;
    const brc_step step = {.like = *o->at};
    brc_move_set moves = {0};
    int result, rc = brc_open_fold(o->s, &r->q, &o->folded, &moves, err);
    if (rc == BRC_OK)
        rc = brc_sequence_add(&r->q, &step, &o->folded.root, &moves, &result, err);
    brc_move_set_dispose(&moves);
    BRC_TRY(rc);
    r->result.made += result == BRC_STEP_DONE;
    r->result.skipped += result == BRC_STEP_EMPTY;
    return BRC_OK;
}

/* ---- the branch has moved -------------------------------- */

static int left_its_line(const open_rebase *o, brc_error *err)
{
    return brc_fail(err, BRC_ESTALE,
                    "%s: branch '%s' no longer has the commits of this rebase: undo the change "
                    "that moved it, or drop the rebase with 'breccia rebase --abort'",
                    brc_store_path(o->s->repo->store), o->s->branch);
}

/* Adds the commits that were made on the branch since the rebase began: they are applied after the
 * rest. Must be called within a read. */
static int add_newer(open_rebase *o, brc_error *err)
{
    const brc_draft_head *draft = &o->merge.draft;
    brc_sequence *q = &o->all->q;
    brc_reach *reach;
    if (brc_draft_follows(draft, q->has_tip, &q->tip))
        return BRC_OK;
    if (!draft->has_tip || !q->has_tip)
        return left_its_line(o, err);
    BRC_TRY(brc_reach_new(&reach, q->store, err));
    int rc = brc_reach_from(reach, &q->tip, err);
    if (rc == BRC_OK)
        rc = brc_reach_find(reach, &draft->tip, err);
    brc_reach_free(reach);
    if (rc <= 0)
        return rc < 0 ? rc : left_its_line(o, err);
    return rebasing_add_line(o->all, &q->tip, &draft->tip, err);
}

static int catch_up(open_rebase *o, brc_error *err)
{
    brc_store *store = o->all->repo->store;
    BRC_TRY(brc_store_begin_read(store, err));
    int rc = add_newer(o, err);
    brc_store_end_read(store);
    return rc;
}

/* ---- the call -------------------------------- */

static int must_be_rebase(const open_rebase *o, brc_error *err)
{
    if (o->merge.draft.id == 0)
        return brc_none_is_open(o->s, err);
    if (strcmp(brc_open_merge_command(&o->merge), "rebase") != 0)
        return brc_other_is_open(o->s, &o->merge, err);
    return o->merge.draft.has_base
               ? BRC_OK
               : brc_fail(err, BRC_ECORRUPT, "the open rebase (draft %lld) lies over no commit",
                          (long long)o->merge.draft.id);
}

static int go_on(open_rebase *o, int skips, brc_error *err)
{
    brc_rebasing *r = o->all;
    BRC_TRY(brc_sequence_resume(&r->q, o->s->branch, &o->merge.draft, err));
    BRC_TRY(catch_up(o, err));
    const brc_task task = brc_task_begin(r->repo, "rebase", 0);
    int rc = BRC_OK;
    if (skips)
        r->result.skipped++;
    else
        rc = commit_settled(o, err);
    if (rc == BRC_OK)
        rc = rebasing_run(r, err);
    brc_task_end(r->repo, &task, rc);
    return rc;
}

/* Answers that a conflict is still open; nothing has changed. */
static int still_open(open_rebase *o, brc_pick_result *out, brc_iter **conflicts, brc_error *err)
{
    brc_pick_result *result = &o->all->result;
    result->result = BRC_PICK_CONFLICT;
    result->draft = o->merge.draft.id;
    result->at = o->at->id;
    result->left = o->all->n;
    result->conflicts = brc_open_merge_left(&o->merge);
    BRC_TRY(brc_sized_out(out, result, sizeof(*result), offsetof(brc_pick_result, conflicts),
                          "brc_pick_result", err));
    return conflicts != NULL ? brc_conflict_list_open(conflicts, &o->merge.conflicts, err)
                             : BRC_OK;
}

static int continue_open(open_rebase *o, const brc_rebase_turn *turn, brc_error *err)
{
    brc_rebasing *r = o->all;
    BRC_TRY(brc_look_at_open(&o->s, &o->merge, r->repo, BRC_SESSION_WRITE, err));
    if (strcmp(o->s->branch, r->q.on) != 0)
        return brc_fail(err, BRC_ESTALE,
                        "%s: the current branch is '%s' now, and not '%s': nothing was changed; "
                        "call again",
                        brc_store_path(r->repo->store), o->s->branch, r->q.on);
    BRC_TRY(must_be_rebase(o, err));
    BRC_TRY(read_rest(o, err));
    if (!turn->skips && brc_open_merge_left(&o->merge) > 0)
        return still_open(o, turn->out, turn->conflicts, err);
    BRC_TRY(go_on(o, turn->skips, err));
    return brc_pick_answer(turn->out, turn->conflicts, &r->q, &r->result, &r->result.at, err);
}

static int continue_once(brc_rebase_turn *turn, brc_rebasing *r, brc_error *err)
{
    open_rebase o = {.all = r};
    r->may_keep = 1;
    int rc = continue_open(&o, turn, err);
    open_rebase_dispose(&o);
    return rc;
}

int brc_rebase_continue(brc_pick_result *out, brc_iter **conflicts, breccia *repo, uint32_t flags,
                        brc_error *err)
{
    brc_rebase_turn turn = {.out = out, .conflicts = conflicts, .repo = repo,
                            .once = continue_once};
    turn.skips = (flags & BRC_REBASE_SKIP) != 0;
    if (conflicts != NULL)
        *conflicts = NULL;
    BRC_TRY(brc_flags_check(flags, BRC_REBASE_SKIP, "brc_rebase_continue()", err));
    BRC_TRY(brc_can_end_open(repo, err));
    return rebasing_change(&turn, err);
}

/* ==== rebase ================================ */

/* Starts a rebase of the branch's own commits onto another version. */

/* ---- which commits -------------------------------- */

static int read_target(brc_rebasing *r, brc_error *err)
{
    brc_store *store = r->repo->store;
    brc_commit *there;
    BRC_TRY(brc_store_begin_read(store, err));
    int rc = brc_aim_resolve(r->aim, store, &r->target, err);
    if (rc == BRC_OK)
        rc = brc_commit_need(&there, r->repo->store, &r->target, err);
    if (rc == BRC_OK)
        brc_commit_free(there);
    if (rc == BRC_OK && r->q.has_tip)
        rc = rebasing_add_line(r, &r->q.tip, &r->target, err);
    if (rc == BRC_OK)
        rc = brc_sequence_go_to(&r->q, &r->target, err);
    brc_store_end_read(store);
    return rc;
}

/* ---- the call -------------------------------- */

/* Rebases. If the target is an ancestor and only one line of commits follows it, there is nothing
 * to do. */
static int rebase_work(brc_rebasing *r, brc_error *err)
{
    BRC_TRY(brc_sequence_start(&r->q, err));
    BRC_TRY(read_target(r, err));
    const brc_task task = brc_task_begin(r->repo, "rebase", 0);
    int rc = rebasing_run(r, err);
    brc_task_end(r->repo, &task, rc);
    return rc;
}

static int rebase_with(brc_rebasing *r, const brc_pick_opts *opts, char **paths,
                       const brc_rebase_turn *turn, brc_error *err)
{
    brc_pick_opts_apply(&r->q, opts, paths);
    r->may_keep = (opts->flags & BRC_PICK_KEEP) != 0;
    BRC_TRY(rebase_work(r, err));
    return brc_pick_answer(turn->out, turn->conflicts, &r->q, &r->result, &r->result.at, err);
}

static int rebase_once(brc_rebase_turn *turn, brc_rebasing *r, brc_error *err)
{
    brc_pick_opts opts;
    char **paths;
    r->aim = &turn->aim;
    r->onto = turn->aim.rev;
    BRC_TRY(brc_pick_opts_take(&opts, turn->given, BRC_PICK_KEEP, err));
    if (opts.message != NULL || opts.author != NULL || opts.time_us != 0 || opts.mainline != 0)
        return brc_fail(err, BRC_EINVAL, "a rebase keeps message, author and time of each commit, "
                                         "and leaves merges out");
    BRC_TRY(brc_paths_normal(&paths, opts.paths, opts.npaths, err));
    int rc = rebase_with(r, &opts, paths, turn, err);
    brc_paths_free(paths, opts.npaths);
    return rc;
}

int brc_rebase(brc_pick_result *out, brc_iter **conflicts, breccia *repo, const char *onto,
               const brc_pick_opts *opts, brc_error *err)
{
    brc_rebase_turn turn = {{.rev = onto}, out, conflicts, repo, rebase_once, opts, 0};
    if (conflicts != NULL)
        *conflicts = NULL;
    BRC_TRY(brc_sequence_can_start(repo, "a rebase", err));
    return rebasing_change(&turn, err);
}
