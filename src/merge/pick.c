/* Applies one commit's change to the current branch: again (cherry-pick), or backwards (revert). */
#include <stdlib.h>
#include <string.h>

#include "../base/alloc.h"
#include "../base/process.h"
#include "../base/sized.h"
#include "../history/commit.h"
#include "../store/change.h"
#include "../store/ref.h"
#include "merge_end.h"
#include "replay.h"
#include "sequence.h"

typedef struct pick_call {
    breccia *repo;
    brc_aim *aim;
    const char *rev;
    int is_back;
    brc_pick_opts opts;
    char **paths;
    brc_commit *commit;
    char *message; /* of a revert */
    brc_sequence q;
    brc_step step;
    brc_pick_result result;
} pick_call;

static void pick_call_dispose(pick_call *c)
{
    brc_sequence_dispose(&c->q);
    brc_paths_free(c->paths, c->opts.npaths);
    brc_commit_free(c->commit);
    free(c->message);
}

int brc_pick_opts_take(brc_pick_opts *own, const brc_pick_opts *given, uint32_t flags,
                       brc_error *err)
{
    const uint32_t sides = BRC_PICK_OURS | BRC_PICK_THEIRS;
    BRC_TRY(brc_sized_in(own, sizeof(*own), offsetof(brc_pick_opts, mainline), given,
                         "brc_pick_opts", err));
    BRC_TRY(brc_message_check(own->message, err));
    BRC_TRY(brc_flags_check(own->flags, flags | sides, "brc_pick_opts", err));
    if ((own->flags & sides) == sides)
        return brc_fail(err, BRC_EINVAL, "a conflict cannot be settled for both sides");
    if (own->npaths > 0 && (own->flags & sides) == 0)
        return brc_fail(err, BRC_EINVAL, "paths need a side, ours or theirs");
    return BRC_OK;
}

void brc_pick_opts_apply(brc_sequence *q, const brc_pick_opts *opts, char *const *paths)
{
    q->favour = opts->flags & BRC_PICK_OURS     ? BRC_FAVOUR_OURS
                : opts->flags & BRC_PICK_THEIRS ? BRC_FAVOUR_THEIRS
                                                : BRC_FAVOUR_NONE;
    q->paths = (const char *const *)paths;
    q->npaths = opts->npaths;
    q->no_commit = (opts->flags & BRC_PICK_NO_COMMIT) != 0;
}

/* ---- which change -------------------------------- */

static int need_mainline(const pick_call *c, brc_error *err)
{
    return brc_fail(err, BRC_EMISUSE,
                    "'%.120s' is a merge: say with --mainline N from which of its %zu parents its "
                    "change is told",
                    c->rev, c->commit->nparents);
}

/* Finds the parent against which the change is taken; NULL if the commit has none. */
static int find_parent(const pick_call *c, const brc_oid **parent, brc_error *err)
{
    const uint32_t n = c->opts.mainline;
    *parent = c->commit->nparents > 0 ? &c->commit->parents[0] : NULL;
    if (c->commit->nparents > 1 && n == 0)
        return need_mainline(c, err);
    if (n > (c->commit->nparents > 1 ? c->commit->nparents : 1))
        return brc_fail(err, BRC_EMISUSE, "'%.120s' has %zu parent%s, and no parent %u", c->rev,
                        c->commit->nparents, c->commit->nparents == 1 ? "" : "s", (unsigned)n);
    if (n > 1)
        *parent = &c->commit->parents[n - 1];
    return BRC_OK;
}

/* Makes the message: Revert "..." */
static int revert_message(pick_call *c, const brc_oid *parent, brc_error *err)
{
    const char *old = c->commit->message;
    char hex[65];
    brc_buf text = BRC_BUF_INIT;
    int rc;
    BRC_GO(brc_buf_printf(&text, err, "Revert \"%.*s\"\n\nThis reverts commit %s",
                          (int)strcspn(old, "\n"), old, brc_oid_format(hex, &c->commit->id)));
    if (c->commit->nparents > 1)
        BRC_GO(brc_buf_printf(&text, err, ", reversing\nchanges made to %s",
                              brc_oid_format(hex, parent)));
    BRC_GO(brc_buf_text(&text, ".", err));
    rc = brc_buf_take_text(&text, &c->message, err);
done:
    brc_buf_dispose(&text);
    return rc;
}

static int like_of_revert(pick_call *c, const brc_oid *parent, brc_error *err)
{
    brc_commit *like = &c->step.like;
    BRC_TRY(revert_message(c, parent, err));
    *like = (brc_commit){.message = c->message, .author = "unknown", .time_us = brc_now_us()};
    return BRC_OK;
}

/* Fails if commits before this one have expired: the difference from the last kept ancestor is not
 * the change of this commit alone. */
static int knows_its_change(const pick_call *c, brc_error *err)
{
    brc_boundary cut = {0};
    int rc = brc_boundary_get(c->repo->store, &c->commit->id, &cut, err);
    free(cut.parents);
    free(cut.moves);
    return rc <= 0 ? rc
                   : brc_fail(err, BRC_EMISUSE,
                              "commits before '%.120s' have expired: what it changed alone is not "
                              "known any more",
                              c->rev);
}

static int plan_pick(pick_call *c, brc_error *err)
{
    brc_step *step = &c->step;
    brc_step_change *change = &step->change;
    const brc_oid *parent;
    BRC_TRY(find_parent(c, &parent, err));
    change->has_base = change->has_theirs = 1;
    change->base = change->theirs = c->commit->id;
    if (c->is_back) {
        change->is_back = 1;
        change->has_theirs = parent != NULL;
        change->theirs = parent != NULL ? *parent : change->theirs;
        BRC_TRY(like_of_revert(c, parent, err));
    } else {
        change->has_base = parent != NULL;
        change->base = parent != NULL ? *parent : change->base;
        step->like = *c->commit;
    }
    step->is_last = 1;
    if (c->opts.message != NULL)
        step->like.message = c->opts.message;
    if (c->opts.author != NULL)
        step->like.author = c->opts.author;
    if (c->opts.time_us != 0)
        step->like.time_us = c->opts.time_us;
    return BRC_OK;
}

static int read_picked(pick_call *c, brc_error *err)
{
    brc_oid id;
    BRC_TRY(brc_store_begin_read(c->repo->store, err));
    int rc = brc_aim_resolve(c->aim, c->repo->store, &id, err);
    if (rc == BRC_OK)
        rc = brc_commit_need(&c->commit, c->repo->store, &id, err);
    if (rc == BRC_OK)
        rc = knows_its_change(c, err);
    brc_store_end_read(c->repo->store);
    BRC_TRY(rc);
    return plan_pick(c, err);
}

/* ---- conflicts -------------------------------- */

/* Writes the plan. The author, time, message and meta of the picked commit are read again at the
 * end. */
static int plan_open(pick_call *c, brc_buf *plan, brc_error *err)
{
    const brc_step_change *change = &c->step.change;
    const int all = c->is_back;
    BRC_TRY(brc_plan_text(plan, "op", c->q.op, err));
    BRC_TRY(brc_plan_text(plan, "rev", c->rev, err));
    BRC_TRY(brc_plan_id(plan, "at", &c->commit->id, err));
    if (change->has_base)
        BRC_TRY(brc_plan_id(plan, "base", &change->base, err));
    if (change->has_theirs)
        BRC_TRY(brc_plan_id(plan, "theirs", &change->theirs, err));
    if (all || c->opts.message != NULL)
        BRC_TRY(brc_plan_text(plan, "message", c->step.like.message, err));
    if (all || c->opts.author != NULL)
        BRC_TRY(brc_plan_text(plan, "author", c->step.like.author, err));
    if (c->opts.time_us != 0)
        BRC_TRY(brc_plan_number(plan, "time", c->opts.time_us, err));
    BRC_TRY(brc_plan_number(plan, "conflicts", (int64_t)brc_merge_tree_clashes(c->q.run.tree)->n,
                            err));
    return brc_plan_end(plan, err);
}

static int keep_open(pick_call *c, brc_error *err)
{
    brc_buf plan = BRC_BUF_INIT;
    brc_open_merge_new what = {.change = &c->step.change};
    if ((c->opts.flags & BRC_PICK_KEEP) == 0 || c->q.no_commit)
        return BRC_OK;
    int rc = plan_open(c, &plan, err);
    what.plan = (const char *)plan.data;
    if (rc == BRC_OK)
        rc = brc_sequence_keep(&c->q, &what, &c->result.draft, err);
    brc_buf_dispose(&plan);
    return rc;
}

/* ---- the call -------------------------------- */

static int pick_work(pick_call *c, brc_error *err)
{
    int step;
    BRC_TRY(brc_sequence_start(&c->q, err));
    BRC_TRY(read_picked(c, err));
    const brc_task task = brc_task_begin(c->repo, c->is_back ? "revert" : "cherry-pick", 0);
    int rc = brc_sequence_step(&c->q, &c->step, &step, err);
    if (rc == BRC_OK && step == BRC_STEP_CONFLICT)
        rc = keep_open(c, err);
    brc_task_end(c->repo, &task, rc);
    BRC_TRY(rc);
    c->result.result = step == BRC_STEP_EMPTY      ? BRC_PICK_NOTHING
                       : step == BRC_STEP_CONFLICT ? BRC_PICK_CONFLICT
                       : c->q.no_commit            ? BRC_PICK_UNCOMMITTED
                                                   : BRC_PICK_COMMITTED;
    c->result.made = c->result.result == BRC_PICK_COMMITTED;
    if (c->result.made)
        c->result.commit = c->q.now;
    else if (step != BRC_STEP_CONFLICT && c->q.has_tip)
        c->result.commit = c->q.tip;
    return BRC_OK;
}

int brc_pick_answer(brc_pick_result *out, brc_iter **conflicts, brc_sequence *q,
                    brc_pick_result *result, const brc_oid *at, brc_error *err)
{
    brc_clash_list *list = NULL;
    if (result->result == BRC_PICK_CONFLICT) {
        list = brc_merge_tree_clashes(q->run.tree);
        result->conflicts = list->n;
        result->at = *at;
    }
    BRC_TRY(brc_sized_out(out, result, sizeof(*result), offsetof(brc_pick_result, conflicts),
                          "brc_pick_result", err));
    return conflicts != NULL ? brc_conflict_list(conflicts, list, err) : BRC_OK;
}

static int pick_once(pick_call *c, brc_pick_result *out, brc_iter **conflicts,
                     const brc_pick_opts *given, brc_error *err)
{
    BRC_TRY(brc_pick_opts_take(&c->opts, given, BRC_PICK_NO_COMMIT | BRC_PICK_KEEP, err));
    BRC_TRY(brc_paths_normal(&c->paths, c->opts.paths, c->opts.npaths, err));
    brc_pick_opts_apply(&c->q, &c->opts, c->paths);
    BRC_TRY(pick_work(c, err));
    return brc_pick_answer(out, conflicts, &c->q, &c->result, &c->commit->id, err);
}

typedef struct pick_args {
    brc_aim aim;
    brc_pick_result *out;
    brc_iter **conflicts;
    breccia *repo;
    int is_back;
    const brc_pick_opts *given;
} pick_args;

static int pick_in_steps(void *ctx, int insists, brc_error *err)
{
    pick_args *p = ctx;
    (void)insists;
    pick_call c = {.repo = p->repo, .aim = &p->aim, .rev = p->aim.rev, .is_back = p->is_back};
    c.q.repo = p->repo;
    c.q.on = p->aim.branch;
    c.q.op = p->is_back ? "revert" : "pick";
    c.q.doing = p->is_back ? "something is reverted on it" : "something is picked onto it";
    int rc = pick_once(&c, p->out, p->conflicts, p->given, err);
    const int again = rc < 0 && c.q.again;
    pick_call_dispose(&c);
    return again ? BRC_CHANGE_AGAIN : rc;
}

static int pick_or_revert(brc_pick_result *out, brc_iter **conflicts, breccia *repo,
                          const char *rev, int is_back, const brc_pick_opts *given, brc_error *err)
{
    pick_args p = {{.rev = rev}, out, conflicts, repo, is_back, given};
    if (conflicts != NULL)
        *conflicts = NULL;
    BRC_TRY(brc_sequence_can_start(repo, is_back ? "a revert" : "a cherry-pick", err));
    return brc_sequence_change(&p.aim, repo, is_back ? "a commit was reverted on the branch"
                                                     : "a commit was picked onto the branch",
                               pick_in_steps, err);
}

int brc_pick(brc_pick_result *out, brc_iter **conflicts, breccia *repo, const char *rev,
             const brc_pick_opts *opts, brc_error *err)
{
    return pick_or_revert(out, conflicts, repo, rev, 0, opts, err);
}

int brc_revert(brc_pick_result *out, brc_iter **conflicts, breccia *repo, const char *rev,
               const brc_pick_opts *opts, brc_error *err)
{
    return pick_or_revert(out, conflicts, repo, rev, 1, opts, err);
}
