/* Continues and drops open merges, cherry-picks, reverts and rebases. */
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../base/alloc.h"
#include "../base/process.h"
#include "../base/sized.h"
#include "../history/ancestry.h"
#include "../history/commit.h"
#include "../store/change.h"
#include "../work/session_nodes.h"
#include "../zarr/key/key_rows.h"
#include "steps.h"

/* ==== moves ================================ */

int brc_open_merge_may_move(brc_session *s, const char *path, brc_error *err)
{
    brc_open_merge merge;
    const size_t len = strlen(path);
    BRC_TRY(brc_open_merge_read(&merge, s, err));
    int rc = BRC_OK;
    for (size_t i = 0; i < merge.conflicts.n && rc == BRC_OK; i++) {
        const brc_clash *clash = &merge.conflicts.items[i];
        if (clash->settled == BRC_SETTLED_NOT && strncmp(clash->path, path, len) == 0 &&
            (clash->path[len] == '/' || clash->path[len] == '\0'))
            rc = brc_fail(err, BRC_ECONFLICT,
                          "%s cannot be moved while a conflict at %.300s is open: settle it first",
                          path, clash->path);
    }
    brc_open_merge_dispose(&merge);
    return rc;
}

/* ---- again -------------------------------- */

static int run_of_sides(brc_merge_run *run, const brc_open_merge *merge, brc_error *err)
{
    brc_commit_set bases;
    if (!merge->draft.has_base)
        return brc_fail(err, BRC_ECORRUPT, "the open merge (draft %lld) has no version of ours",
                        (long long)merge->draft.id);
    int rc = brc_merge_find_base(run, &merge->draft.base, &merge->other, &bases, err);
    brc_commit_set_dispose(&bases);
    return rc;
}

/* Says whether theirs is what was settled before the branch moved. */
static int is_of_settled(const brc_open_merge *merge)
{
    return brc_json_member(merge->plan, "settled") != NULL;
}

static int run_of_change(brc_merge_run *run, const brc_open_merge *merge, brc_error *err)
{
    brc_store *store = run->how.repo->store;
    brc_step_change change = {.is_back = !is_of_settled(merge) &&
                                         strcmp(brc_open_merge_op(merge), "revert") == 0};
    int rc = change.has_base = brc_open_merge_id(merge, "base", &change.base, err);
    if (rc >= 0)
        rc = change.has_theirs = brc_open_merge_id(merge, "theirs", &change.theirs, err);
    BRC_TRY(rc);
    BRC_TRY(brc_store_begin_read(store, err));
    rc = brc_step_change_read(run, &change, merge->draft.has_base ? &merge->draft.base : NULL, NULL,
                              err);
    brc_store_end_read(store);
    return rc;
}

int brc_open_merge_run(brc_merge_run *run, const brc_open_merge *merge, brc_error *err)
{
    if (brc_json_member(merge->plan, "concat") != NULL)
        return brc_fail(err, BRC_EUNSUPPORTED,
                        "this merge joined what both sides appended, and cannot join it again: "
                        "settle by writing, or drop the merge and use --concat --theirs");
    BRC_TRY(merge->has_other && !is_of_settled(merge) ? run_of_sides(run, merge, err)
                                                      : run_of_change(run, merge, err));
    return brc_merge_work(run, err);
}

/* ==== what is open ================================ */

static int nothing_is_open(const brc_store *store, const char *branch, brc_error *err)
{
    return brc_fail(err, BRC_EMISUSE,
                    "%s: no merge, rebase, cherry-pick or revert is open on branch '%s'",
                    brc_store_path(store), branch);
}

int brc_none_is_open(const brc_session *s, brc_error *err)
{
    return nothing_is_open(s->repo->store, s->branch, err);
}

int brc_look_at_open(brc_session **s, brc_open_merge *out, breccia *repo, int mode, brc_error *err)
{
    memset(out, 0, sizeof(*out));
    BRC_TRY(brc_session_open(s, repo, NULL, mode, err));
    int rc = brc_session_begin_read(*s, err);
    if (rc == BRC_OK) {
        rc = brc_open_merge_read(out, *s, err);
        brc_session_end_read(*s);
    }
    return rc;
}

int brc_can_end_open(breccia *repo, brc_error *err)
{
    if (brc_store_in_write(repo->store))
        return brc_fail(err, BRC_EMISUSE, "an open merge is not settled or ended within a "
                                          "transaction");
    return brc_store_writable(repo->store, err);
}

/* ---- its state -------------------------------- */

int brc_merge_state(brc_open_state *out, brc_iter **conflicts, breccia *repo, brc_error *err)
{
    brc_open_state own = BRC_OPEN_STATE_INIT;
    brc_open_merge merge = {0};
    brc_session *s = NULL;
    int rc;
    if (conflicts != NULL)
        *conflicts = NULL;
    BRC_GO(brc_look_at_open(&s, &merge, repo, BRC_SESSION_VIEW, err));
    rc = brc_open_merge_id(&merge, "at", &own.at, err);
    if (rc < 0)
        goto done;
    own.draft = merge.draft.id;
    own.has_other = merge.has_other;
    own.other = merge.other;
    own.conflicts = merge.conflicts.n;
    own.open = brc_open_merge_left(&merge);
    own.made = brc_open_merge_number(&merge, "made");
    own.skipped = brc_open_merge_number(&merge, "skipped");
    own.left = brc_json_count(brc_json_member(merge.plan, "todo"));
    if (merge.plan != NULL)
        snprintf(own.op, sizeof(own.op), "%s", brc_open_merge_command(&merge));
    snprintf(own.rev, sizeof(own.rev), "%s", brc_open_merge_text(&merge, "rev"));
    BRC_GO(brc_sized_out(out, &own, sizeof(own), offsetof(brc_open_state, rev), "brc_open_state",
                         err));
    if (conflicts != NULL)
        rc = brc_conflict_list(conflicts, &merge.conflicts, repo, NULL, err);
done:
    brc_open_merge_dispose(&merge);
    brc_session_free(s);
    return rc;
}


/* ==== continue ================================ */

/*
 * Makes a commit of what is settled, which nothing names yet, and does the steps that are left.
 *
 * If the branch has moved since, a rebase also does the commits that were made there, after the
 * others. Of a merge, cherry-pick or revert, the change of the settled commit is one more step, on
 * the new tip: if it has conflicts there, it is open again, and its plan names the settled commit.
 */

typedef struct going_on {
    brc_aim aim; /* first: for brc_steps_change() */
    brc_pick_result *out;
    brc_iter **conflicts;
    breccia *repo;
    const brc_pick_opts *opts;
    int skips;
} going_on;

/* One try. */
typedef struct open_steps {
    const going_on *call;
    brc_session *s;
    brc_open_merge merge; /* as it was when the steps continued                      */
    brc_commit *at;       /* the commit whose author, time, message and meta are kept; or NULL */
    void *paths;          /* const char *[]: the plan's paths where a side is favoured */
    brc_folded folded;    /* the settled result, ...                                 */
    brc_move_set moves;   /* ... and its moves since q.now                           */
    brc_step step;        /* its commit                                              */
    int is_behind;        /* the branch has moved, and what is settled goes onto its tip */
    brc_steps q;
} open_steps;

static void open_steps_dispose(open_steps *o)
{
    brc_steps_dispose(&o->q);
    brc_folded_dispose(&o->folded);
    brc_move_set_dispose(&o->moves);
    brc_commit_free(o->at);
    free(o->paths);
    brc_open_merge_dispose(&o->merge);
    brc_session_free(o->s);
}

/* ---- the plan -------------------------------- */

static int plan_lacks(const open_steps *o, const char *name, brc_error *err)
{
    return brc_fail(err, BRC_ECORRUPT, "the plan of draft %lld is damaged: '%s' is not there",
                    (long long)o->merge.draft.id, name);
}

static int need_id(const open_steps *o, const char *name, brc_oid *out, brc_error *err)
{
    const int rc = brc_open_merge_id(&o->merge, name, out, err);
    return rc == 0 ? plan_lacks(o, name, err) : rc < 0 ? rc : BRC_OK;
}

/* Reads the options that a rebase began with. */
static int sides_of_plan(open_steps *o, brc_error *err)
{
    static const char *const sides[] = {"ours", "theirs"};
    const brc_json *list = brc_json_member(o->merge.plan, "paths");
    brc_steps *q = &o->q;
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

/* Lists the commits that are left. Must be called within a read. */
static int todo_of_plan(open_steps *o, brc_error *err)
{
    void *todo;
    size_t n;
    if (brc_json_kind(brc_json_member(o->merge.plan, "todo")) != BRC_JSON_ARRAY)
        return plan_lacks(o, "todo", err);
    BRC_TRY(brc_open_merge_ids(&o->merge, "todo", &todo, &n, err));
    int rc = BRC_OK;
    for (size_t i = 0; i < n && rc == BRC_OK; i++)
        rc = brc_steps_add_id(&o->q, (const brc_oid *)todo + i, err);
    free(todo);
    return rc;
}

static int rebase_of_plan(open_steps *o, brc_error *err)
{
    brc_steps *q = &o->q;
    if (!o->merge.draft.has_base)
        return brc_fail(err, BRC_ECORRUPT, "the open rebase (draft %lld) lies over no commit",
                        (long long)o->merge.draft.id);
    q->may_keep = q->is_rebase = 1;
    q->result.made = brc_open_merge_number(&o->merge, "made");
    q->result.skipped = brc_open_merge_number(&o->merge, "skipped");
    BRC_TRY(need_id(o, "onto", &q->onto, err));
    BRC_TRY(sides_of_plan(o, err));
    return todo_of_plan(o, err);
}

/* Returns the plan's text, or NULL. */
static const char *given_text(const open_steps *o, const char *name)
{
    return brc_json_member(o->merge.plan, name) != NULL ? brc_open_merge_text(&o->merge, name)
                                                        : NULL;
}

/* Returns the text that is given now, else the one that was given at the beginning, else that of
 * the commit whose change is applied. */
static const char *text_of_end(const char *now, const char *then, const char *kept)
{
    return now != NULL ? now : then != NULL ? then : kept;
}

static void describe_commit(open_steps *o)
{
    const brc_steps *q = &o->q;
    const brc_pick_opts *opts = o->call->opts;
    const brc_commit *at = o->at;
    brc_commit *like = &o->step.like;
    like->message = text_of_end(opts->message, q->message, at != NULL ? at->message : "");
    like->author = text_of_end(opts->author, q->author, at != NULL ? at->author : "unknown");
    like->meta_json = at != NULL ? at->meta_json : NULL;
    like->time_us = opts->time_us != 0 ? opts->time_us
                    : q->time_us != 0  ? q->time_us
                    : at != NULL       ? at->time_us
                                       : 0;
    if (like->time_us == 0)
        like->time_us = brc_now_us();
}

/* Reads the plan into the steps. Must be called within a read. */
static int read_open_plan(open_steps *o, brc_error *err)
{
    brc_steps *q = &o->q;
    q->op = brc_open_merge_op(&o->merge);
    q->rev = brc_open_merge_text(&o->merge, "rev");
    q->message = given_text(o, "message");
    q->author = given_text(o, "author");
    (void)!brc_json_int(brc_json_member(o->merge.plan, "time"), INT64_MIN, INT64_MAX, &q->time_us);
    q->may_keep = 1;
    o->step.has_other = o->merge.has_other;
    o->step.other = o->merge.other;
    if (strcmp(q->op, "merge") != 0)
        BRC_TRY(need_id(o, "at", &o->step.at, err));
    if (strcmp(q->op, "merge") != 0 && strcmp(q->op, "revert") != 0)
        BRC_TRY(brc_commit_get(&o->at, o->call->repo->store, &o->step.at, err));
    if (strcmp(q->op, "rebase") == 0)
        BRC_TRY(rebase_of_plan(o, err));
    describe_commit(o);
    return BRC_OK;
}

/* ---- the branch has moved -------------------------------- */

static int left_its_line(const open_steps *o, brc_error *err)
{
    return brc_fail(err, BRC_ESTALE,
                    "%s: branch '%s' no longer has the commits of this rebase: undo the change "
                    "that moved it, or drop the rebase with 'breccia rebase --abort'",
                    brc_store_path(o->s->repo->store), o->s->branch);
}

/* Says whether the branch's tip has a commit. */
static int tip_has(const brc_steps *q, const brc_oid *commit, int *has, brc_error *err)
{
    brc_reach *reach;
    *has = 0;
    if (!q->has_tip)
        return BRC_OK;
    BRC_TRY(brc_reach_new(&reach, q->store, err));
    int rc = brc_reach_from(reach, &q->tip, err);
    if (rc == BRC_OK)
        rc = brc_reach_find(reach, commit, err);
    brc_reach_free(reach);
    *has = rc > 0;
    return rc < 0 ? rc : BRC_OK;
}

/* Lists the commits that were made on the branch since a rebase began, after the rest. Must be
 * called within a read. */
static int catch_up(open_steps *o, brc_error *err)
{
    const brc_draft_head *draft = &o->merge.draft;
    brc_steps *q = &o->q;
    int has = 0;
    o->is_behind = !brc_draft_follows(draft, q->has_tip, &q->tip);
    if (!o->is_behind || !q->is_rebase)
        return BRC_OK;
    o->is_behind = 0;
    if (draft->has_tip)
        BRC_TRY(tip_has(q, &draft->tip, &has, err));
    return has ? brc_steps_add_line(q, &q->tip, &draft->tip, err) : left_its_line(o, err);
}

/* Lists the settled commit as a step onto the branch's tip; `base` is the commit that it
 * follows. */
static int go_onto_tip(open_steps *o, int has_base, const brc_oid *base, brc_error *err)
{
    brc_steps *q = &o->q;
    brc_step *step = &o->step;
    int has = 0;
    step->change = (brc_step_change){.has_base = has_base, .base = *base, .has_theirs = 1,
                                     .theirs = q->now};
    BRC_TRY(brc_steps_go_to_tip(q, err));
    if (step->has_other) /* the tip may have the other side by now */
        BRC_TRY(tip_has(q, &step->other, &has, err));
    step->has_other &= !has;
    q->is_settled = 1;
    return brc_steps_add(q, step, err);
}

/* ---- what was settled -------------------------------- */

/* Must be called within a read. */
static int check_folded(open_steps *o, brc_error *err)
{
    brc_steps *q = &o->q;
    brc_open_merge now;
    BRC_TRY(brc_keys_ready(o->s, err));
    BRC_TRY(brc_open_merge_read(&now, o->s, err));
    q->again = now.draft.id != q->draft.id || now.draft.id != o->folded.draft ||
               now.draft.changes != o->folded.changes || brc_open_merge_left(&now) > 0;
    q->draft = now.draft;
    brc_open_merge_dispose(&now);
    if (q->again)
        return brc_fail(err, BRC_ESTALE, "%s: the open merge or rebase on branch '%s' was changed",
                        brc_store_path(o->s->repo->store), o->s->branch);
    return brc_session_moves(&o->moves, o->s, q->has_now, &q->now, &q->root, &o->folded.root, err);
}

/* Makes a commit of the settled draft; with it the branch moves if no other step follows. */
static int put_settled(open_steps *o, brc_error *err)
{
    brc_steps *q = &o->q;
    const int had = q->has_now, is_last = q->n == 0 && !o->is_behind;
    const brc_oid was = q->now;
    int result;
    BRC_TRY(brc_fold_whole(o->s, &o->folded, err));
    BRC_TRY(brc_session_begin_read(o->s, err));
    const int rc = check_folded(o, err);
    brc_session_end_read(o->s);
    BRC_TRY(rc);
    BRC_TRY(brc_steps_put(q, &o->step, &o->folded.root, &o->moves, is_last, &result, err));
    q->result.made += q->is_rebase && result == BRC_STEP_DONE;
    q->result.skipped += q->is_rebase && result == BRC_STEP_EMPTY;
    return o->is_behind ? go_onto_tip(o, had, &was, err) : BRC_OK;
}

/* ---- one try -------------------------------- */

static int check_what_is_open(const open_steps *o, brc_error *err)
{
    const going_on *c = o->call;
    const brc_pick_opts *opts = c->opts;
    if (strcmp(o->s->branch, c->aim.branch) != 0)
        return brc_fail(err, BRC_ESTALE,
                        "%s: the current branch is '%s' now, and not '%s': nothing was changed; "
                        "call again",
                        brc_store_path(c->repo->store), o->s->branch, c->aim.branch);
    if (o->merge.draft.id == 0)
        return brc_none_is_open(o->s, err);
    const char *open = brc_open_merge_command(&o->merge);
    const int is_rebase = strcmp(open, "rebase") == 0;
    if (c->skips && !is_rebase)
        return brc_fail(err, BRC_EMISUSE,
                        "%s: the open operation on branch '%s' is a %s, and only a rebase goes on "
                        "without a commit: 'breccia %s --abort' drops it",
                        brc_store_path(c->repo->store), o->s->branch, open, open);
    if (is_rebase && (opts->message != NULL || opts->author != NULL || opts->time_us != 0))
        return brc_fail(err, BRC_EINVAL, "a rebase keeps message, author and time of each commit");
    return BRC_OK;
}

/* Answers that a conflict is still open; nothing has changed. */
static int still_open(open_steps *o, brc_error *err)
{
    const going_on *c = o->call;
    brc_pick_result *result = &o->q.result;
    result->result = BRC_PICK_CONFLICT;
    result->draft = o->merge.draft.id;
    result->at = o->step.at;
    result->left = o->q.n;
    result->conflicts = brc_open_merge_left(&o->merge);
    BRC_TRY(brc_sized_out(c->out, result, sizeof(*result), offsetof(brc_pick_result, conflicts),
                          "brc_pick_result", err));
    return c->conflicts != NULL
               ? brc_conflict_list_open(c->conflicts, &o->merge.conflicts, o->s->repo,
                                                         err) : BRC_OK;
}

static int go_on(open_steps *o, brc_error *err)
{
    brc_steps *q = &o->q;
    BRC_TRY(brc_steps_resume(q, o->s->branch, &o->merge.draft, err));
    BRC_TRY(brc_store_begin_read(q->store, err));
    int rc = catch_up(o, err);
    brc_store_end_read(q->store);
    BRC_TRY(rc);
    const brc_task task = brc_task_begin(q->repo, brc_open_merge_command(&o->merge), 0);
    q->result.skipped += (uint64_t)o->call->skips;
    if (!o->call->skips)
        rc = put_settled(o, err);
    if (rc == BRC_OK)
        rc = brc_steps_run(q, err);
    brc_task_end(q->repo, &task, rc);
    return rc;
}

static int continue_open(open_steps *o, brc_error *err)
{
    const going_on *c = o->call;
    BRC_TRY(brc_look_at_open(&o->s, &o->merge, c->repo, BRC_SESSION_WRITE, err));
    BRC_TRY(check_what_is_open(o, err));
    BRC_TRY(brc_store_begin_read(c->repo->store, err));
    int rc = read_open_plan(o, err);
    brc_store_end_read(c->repo->store);
    BRC_TRY(rc);
    if (!c->skips && brc_open_merge_left(&o->merge) > 0)
        return still_open(o, err);
    BRC_TRY(go_on(o, err));
    return brc_steps_answer(c->out, c->conflicts, &o->q, err);
}

static int continue_in_steps(void *ctx, int insists, brc_error *err)
{
    open_steps o = {.call = ctx};
    (void)insists;
    o.q.repo = o.call->repo;
    o.q.doing = "it went on";
    const int rc = continue_open(&o, err), again = rc < 0 && o.q.again;
    open_steps_dispose(&o);
    return again ? BRC_CHANGE_AGAIN : rc;
}

int brc_continue(brc_pick_result *out, brc_iter **conflicts, breccia *repo,
                 const brc_pick_opts *given, brc_error *err)
{
    brc_pick_opts opts = BRC_PICK_OPTS_INIT;
    if (conflicts != NULL)
        *conflicts = NULL;
    BRC_TRY(brc_pick_opts_take(&opts, given, BRC_PICK_SKIP, err));
    if ((opts.flags & ~(uint32_t)BRC_PICK_SKIP) != 0 || opts.npaths != 0 || opts.mainline != 0)
        return brc_fail(err, BRC_EINVAL,
                        "brc_continue() takes only a message, author and time, or BRC_PICK_SKIP");
    going_on call = {.out = out, .conflicts = conflicts, .repo = repo, .opts = &opts,
                     .skips = (opts.flags & BRC_PICK_SKIP) != 0};
    BRC_TRY(brc_can_end_open(repo, err));
    return brc_steps_change(&call.aim, repo, "the open operation on the branch went on",
                            continue_in_steps, err);
}

/* ==== abort ================================ */

static int abort_steps(breccia *repo, brc_error *err)
{
    const char *branch;
    brc_draft_head draft;
    BRC_TRY(brc_head_get(repo->store, &branch, err));
    BRC_TRY(brc_draft_merge(repo->store, branch, &draft, err));
    return draft.id != 0 ? brc_draft_delete(repo->store, draft.id, err)
                         : nothing_is_open(repo->store, branch, err);
}

int brc_abort(breccia *repo, brc_error *err)
{
    BRC_TRY(brc_can_end_open(repo, err));
    BRC_TRY(brc_store_begin(repo->store, err));
    int rc = abort_steps(repo, err);
    repo->changes++;
    return brc_end_with(repo, rc, err);
}
