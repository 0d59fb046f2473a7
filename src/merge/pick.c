/* Cherry-pick, revert and rebase: each lists its steps. */
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "../base/alloc.h"
#include "../base/process.h"
#include "../base/sized.h"
#include "../history/ancestry.h"
#include "../history/commit.h"
#include "../store/change.h"
#include "../store/ref.h"
#include "steps.h"

struct picking;

typedef struct pick_kind {
    const char *op, *doing, *late; /* as brc_steps.op, as .doing, for brc_steps_change() */
    const char *task, *name;
    uint32_t flags;                /* BRC_PICK_* that are allowed besides sides       */
    int (*list)(struct picking *c, brc_error *err); /* lists the steps; within a read */
} pick_kind;

typedef struct pick_call {
    brc_aim aim; /* first: for brc_steps_change() */
    const pick_kind *kind;
    brc_pick_result *out;
    brc_iter **conflicts;
    breccia *repo;
    brc_pick_opts opts;
    char **paths;
} pick_call;

/* One try. */
typedef struct picking {
    pick_call *call;
    brc_oid id;         /* the version that the caller named   */
    brc_commit *commit; /* of a cherry-pick or revert: it      */
    char *message;      /* of a revert                         */
    brc_steps q;
} picking;

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

/* ---- which change -------------------------------- */

static int need_mainline(const picking *c, brc_error *err)
{
    return brc_fail(err, BRC_EMISUSE,
                    "'%.120s' is a merge: say with --mainline N from which of its %zu parents its "
                    "change is told",
                    c->q.rev, c->commit->nparents);
}

/* Finds the parent against which the change is taken; NULL if the commit has none. */
static int find_parent(const picking *c, const brc_oid **parent, brc_error *err)
{
    const uint32_t n = c->call->opts.mainline;
    *parent = c->commit->nparents > 0 ? &c->commit->parents[0] : NULL;
    if (c->commit->nparents > 1 && n == 0)
        return need_mainline(c, err);
    if (c->commit->nparents < 2 && n > 0)
        return brc_fail(err, BRC_EMISUSE, "'%.120s' is not a merge: leave out --mainline",
                        c->q.rev);
    if (n > c->commit->nparents)
        return brc_fail(err, BRC_EMISUSE, "'%.120s' has %zu parent%s, and no parent %u", c->q.rev,
                        c->commit->nparents, c->commit->nparents == 1 ? "" : "s", (unsigned)n);
    if (n > 1)
        *parent = &c->commit->parents[n - 1];
    return BRC_OK;
}

/* Makes the message: Revert "..." */
static int revert_message(picking *c, const brc_oid *parent, brc_error *err)
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

/* Fails if commits before this one have expired: the difference from the last kept ancestor is not
 * the change of this commit alone. */
static int knows_its_change(const picking *c, brc_error *err)
{
    brc_boundary cut = {0};
    int rc = brc_boundary_get(c->q.store, &c->commit->id, &cut, err);
    free(cut.parents);
    free(cut.moves);
    return rc <= 0 ? rc
                   : brc_fail(err, BRC_EMISUSE,
                              "commits before '%.120s' have expired: what it changed alone is not "
                              "known any more",
                              c->q.rev);
}

/* ---- one commit -------------------------------- */

static int read_picked(picking *c, const brc_oid **parent, brc_error *err)
{
    BRC_TRY(brc_commit_need(&c->commit, c->q.store, &c->id, err));
    BRC_TRY(knows_its_change(c, err));
    return find_parent(c, parent, err);
}

/* Lists the step, whose commit has the author, time and message that the caller has given. */
static int add_picked(picking *c, brc_step *step, brc_error *err)
{
    const brc_steps *q = &c->q;
    step->at = c->commit->id;
    if (q->message != NULL)
        step->like.message = q->message;
    if (q->author != NULL)
        step->like.author = q->author;
    if (q->time_us != 0)
        step->like.time_us = q->time_us;
    return brc_steps_add(&c->q, step, err);
}

static int list_pick(picking *c, brc_error *err)
{
    const brc_oid *parent;
    BRC_TRY(read_picked(c, &parent, err));
    const brc_commit *commit = c->commit;
    brc_step step = {.like = *commit};
    step.change = (brc_step_change){.has_base = parent != NULL, .has_theirs = 1,
                                    .base = parent != NULL ? *parent : commit->id,
                                    .theirs = commit->id};
    return add_picked(c, &step, err);
}

static int list_revert(picking *c, brc_error *err)
{
    brc_steps *q = &c->q;
    const brc_oid *parent;
    BRC_TRY(read_picked(c, &parent, err));
    const brc_commit *commit = c->commit;
    brc_step step = {.like = {.time_us = brc_now_us()}};
    step.change = (brc_step_change){.has_base = 1, .has_theirs = parent != NULL,
                                    .base = commit->id,
                                    .theirs = parent != NULL ? *parent : commit->id, .is_back = 1};
    BRC_TRY(revert_message(c, parent, err));
    if (q->message == NULL)
        q->message = c->message;
    if (q->author == NULL)
        q->author = "unknown";
    return add_picked(c, &step, err);
}

/* ---- a line of commits -------------------------------- */

/* Lists the change of a commit, which belongs to the list from now on, even after a failure. */
static int add_commit(brc_steps *q, brc_commit *commit, brc_error *err)
{
    brc_step step = {.at = commit->id, .like = *commit, .commit = commit};
    step.change = (brc_step_change){.has_base = commit->nparents > 0, .has_theirs = 1,
                                    .theirs = commit->id};
    if (commit->nparents > 0)
        step.change.base = commit->parents[0];
    return brc_steps_add(q, &step, err);
}

int brc_steps_add_id(brc_steps *q, const brc_oid *id, brc_error *err)
{
    brc_commit *commit;
    BRC_TRY(brc_commit_get(&commit, q->repo->store, id, err));
    return add_commit(q, commit, err);
}

static void turn_round(brc_steps *q, size_t from)
{
    brc_step *list = (brc_step *)q->list + from;
    const size_t n = q->n - from;
    for (size_t i = 0; i < n / 2; i++) {
        const brc_step one = list[i];
        list[i] = list[n - 1 - i];
        list[n - 1 - i] = one;
    }
}

/* Starts the search for the target. Commits that the walk hides are not followed. */
static int find_target(const brc_steps *q, const brc_oid *past, brc_reach **out, brc_error *err)
{
    *out = NULL;
    if (brc_oid_cmp(past, &q->onto) == 0)
        return BRC_OK;
    BRC_TRY(brc_reach_new(out, q->store, err));
    return brc_reach_from(*out, &q->onto, err);
}

int brc_steps_add_line(brc_steps *q, const brc_oid *tip, const brc_oid *past, brc_error *err)
{
    const size_t from = q->n;
    brc_reach *there = NULL;
    brc_walk *walk;
    const brc_commit *commit;
    int rc;
    BRC_TRY(brc_walk_new(&walk, q->store, tip, err));
    BRC_GO(brc_walk_hide(walk, past, err));
    BRC_GO(find_target(q, past, &there, err));
    while ((rc = brc_walk_next(walk, &commit, err)) > 0) {
        const int has = there != NULL ? brc_reach_find(there, &commit->id, err) : 0;
        rc = has;
        if (has == 0 && commit->nparents <= 1)
            rc = add_commit(q, brc_walk_take(walk), err);
        if (rc < 0)
            break;
    }
done:
    brc_reach_free(there);
    brc_walk_free(walk);
    turn_round(q, from);
    return rc;
}

static int list_rebase(picking *c, brc_error *err)
{
    brc_steps *q = &c->q;
    brc_commit *there;
    BRC_TRY(brc_commit_need(&there, q->store, &c->id, err));
    brc_commit_free(there);
    q->is_rebase = 1;
    q->onto = c->id;
    if (q->has_tip)
        BRC_TRY(brc_steps_add_line(q, &q->tip, &q->onto, err));
    return brc_steps_go_to(q, &q->onto, err);
}

/* ---- the call -------------------------------- */

static void begin_picking(picking *c, pick_call *call)
{
    const brc_pick_opts *opts = &call->opts;
    brc_steps *q = &c->q;
    c->call = call;
    q->repo = call->repo;
    q->on = call->aim.branch;
    q->rev = call->aim.rev;
    q->op = call->kind->op;
    q->doing = call->kind->doing;
    q->favour = opts->flags & BRC_PICK_OURS     ? BRC_FAVOUR_OURS
                : opts->flags & BRC_PICK_THEIRS ? BRC_FAVOUR_THEIRS
                                                : BRC_FAVOUR_NONE;
    q->paths = (const char *const *)call->paths;
    q->npaths = opts->npaths;
    q->no_commit = (opts->flags & BRC_PICK_NO_COMMIT) != 0;
    q->may_keep = (opts->flags & BRC_PICK_KEEP) != 0 && !q->no_commit;
    q->message = opts->message;
    q->author = opts->author;
    q->time_us = opts->time_us;
}

static int list_all(picking *c, brc_error *err)
{
    BRC_TRY(brc_store_begin_read(c->q.store, err));
    int rc = brc_aim_resolve(&c->call->aim, c->q.store, &c->id, err);
    if (rc == BRC_OK)
        rc = c->call->kind->list(c, err);
    brc_store_end_read(c->q.store);
    return rc;
}

static int pick_once(picking *c, brc_error *err)
{
    const pick_call *call = c->call;
    BRC_TRY(brc_steps_start(&c->q, err));
    BRC_TRY(list_all(c, err));
    const brc_task task = brc_task_begin(call->repo, call->kind->task, 0);
    int rc = brc_steps_run(&c->q, err);
    brc_task_end(call->repo, &task, rc);
    return rc < 0 ? rc : brc_steps_answer(call->out, call->conflicts, &c->q, err);
}

static int pick_in_steps(void *ctx, int insists, brc_error *err)
{
    picking c = {0};
    (void)insists;
    begin_picking(&c, ctx);
    const int rc = pick_once(&c, err), again = rc < 0 && c.q.again;
    brc_steps_dispose(&c.q);
    brc_commit_free(c.commit);
    free(c.message);
    return again ? BRC_CHANGE_AGAIN : rc;
}

static const pick_kind reverting = {
    "revert", "something is reverted on it", "a commit was reverted on the branch", "revert",
    "a revert", BRC_PICK_NO_COMMIT | BRC_PICK_KEEP | BRC_PICK_REVERT, list_revert};

static int pick_run(pick_call *call, const brc_pick_opts *given, brc_error *err)
{
    brc_pick_opts *opts = &call->opts;
    if (call->conflicts != NULL)
        *call->conflicts = NULL;
    BRC_TRY(brc_pick_opts_take(opts, given, call->kind->flags, err));
    if ((opts->flags & BRC_PICK_REVERT) != 0)
        call->kind = &reverting;
    BRC_TRY(brc_steps_can_start(call->repo, call->kind->name, err));
    if (call->kind->list == list_rebase && (opts->message != NULL || opts->author != NULL ||
                                            opts->time_us != 0 || opts->mainline != 0))
        return brc_fail(err, BRC_EINVAL, "a rebase keeps message, author and time of each commit, "
                                         "and leaves merges out");
    int rc = brc_paths_normal(&call->paths, opts->paths, opts->npaths, err);
    if (rc == BRC_OK)
        rc = brc_steps_change(&call->aim, call->repo, call->kind->late, pick_in_steps, err);
    brc_paths_free(call->paths, opts->npaths);
    return rc;
}

int brc_pick(brc_pick_result *out, brc_iter **conflicts, breccia *repo, const char *rev,
             const brc_pick_opts *opts, brc_error *err)
{
    static const pick_kind kind = {
        "pick", "something is picked onto it", "a commit was picked onto the branch", "cherry-pick",
        "a cherry-pick", BRC_PICK_NO_COMMIT | BRC_PICK_KEEP | BRC_PICK_REVERT, list_pick};
    pick_call call = {{.rev = rev}, &kind, out, conflicts, repo, BRC_PICK_OPTS_INIT, NULL};
    return pick_run(&call, opts, err);
}

int brc_rebase(brc_pick_result *out, brc_iter **conflicts, breccia *repo, const char *onto,
               const brc_pick_opts *opts, brc_error *err)
{
    static const pick_kind kind = {"rebase", "it is rebased", "the branch was rebased", "rebase",
                                   "a rebase", BRC_PICK_KEEP, list_rebase};
    pick_call call = {{.rev = onto}, &kind, out, conflicts, repo, BRC_PICK_OPTS_INIT, NULL};
    return pick_run(&call, opts, err);
}
