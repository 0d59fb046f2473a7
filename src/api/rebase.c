/* A branch's own commits, done again on another version. */
#include <stdlib.h>

#include "../history/commit.h"
#include "pick.h"
#include "rebase_steps.h"

typedef struct rebase_call {
    brc_rebasing all;
    brc_pick_opts opts;
    char **paths;
} rebase_call;

static void rebase_call_dispose(rebase_call *c)
{
    brc_rebasing_dispose(&c->all);
    brc_paths_free(c->paths, c->opts.npaths);
}

/* ---- which commits -------------------------------- */

static int read_target(brc_rebasing *r, brc_error *err)
{
    brc_store *store = r->repo->store;
    brc_commit *there;
    BRC_TRY(brc_store_begin_read(store, err));
    int rc = brc_aim_resolve(r->aim, store, &r->target, err);
    if (rc == BRC_OK)
        rc = brc_commit_read(&there, r->repo, &r->target, err);
    if (rc == BRC_OK)
        brc_commit_free(there);
    if (rc == BRC_OK && r->q.has_tip)
        rc = brc_rebasing_add_line(r, &r->q.tip, &r->target, err);
    if (rc == BRC_OK)
        rc = brc_sequence_go_to(&r->q, &r->target, err);
    brc_store_end_read(store);
    return rc;
}

/* ---- the call -------------------------------- */

/* The target is an ancestor, and all that follows it is in one line: there is nothing to do. */
static int rebase_work(brc_rebasing *r, brc_error *err)
{
    BRC_TRY(brc_sequence_start(&r->q, err));
    BRC_TRY(read_target(r, err));
    const brc_task task = brc_task_begin(r->repo, "rebase", 0);
    int rc = brc_rebasing_run(r, err);
    brc_task_end(r->repo, &task, rc);
    return rc;
}

static int rebase_once(rebase_call *c, brc_pick_result *out, brc_iter **conflicts,
                       const brc_pick_opts *given, brc_error *err)
{
    brc_rebasing *r = &c->all;
    BRC_TRY(brc_pick_opts_take(&c->opts, given, BRC_PICK_KEEP, err));
    if (c->opts.message != NULL || c->opts.author != NULL || c->opts.time_us != 0 ||
        c->opts.mainline != 0)
        return brc_fail(err, BRC_EINVAL, "a rebase keeps message, author and time of each commit, "
                                         "and leaves merges out");
    BRC_TRY(brc_paths_normal(&c->paths, c->opts.paths, c->opts.npaths, err));
    brc_pick_opts_apply(&r->q, &c->opts, c->paths);
    r->may_keep = (c->opts.flags & BRC_PICK_KEEP) != 0;
    BRC_TRY(rebase_work(r, err));
    return brc_pick_answer(out, conflicts, &r->q, &r->result, &r->result.at, err);
}

typedef struct rebase_args {
    brc_aim aim;
    brc_pick_result *out;
    brc_iter **conflicts;
    breccia *repo;
    const brc_pick_opts *given;
} rebase_args;

static int rebase_in_turn(void *ctx, brc_error *err)
{
    rebase_args *a = ctx;
    rebase_call c = {.all = {.repo = a->repo, .aim = &a->aim, .onto = a->aim.rev}};
    c.all.q.repo = a->repo;
    c.all.q.on = a->aim.branch;
    c.all.q.op = "rebase";
    c.all.q.doing = "it is rebased";
    int rc = rebase_once(&c, a->out, a->conflicts, a->given, err);
    const int again = rc < 0 && c.all.q.again;
    rebase_call_dispose(&c);
    return again ? 0 : rc < 0 ? rc : 1;
}

int brc_rebase(brc_pick_result *out, brc_iter **conflicts, breccia *repo, const char *onto,
               const brc_pick_opts *opts, brc_error *err)
{
    rebase_args a = {{.rev = onto}, out, conflicts, repo, opts};
    if (conflicts != NULL)
        *conflicts = NULL;
    BRC_TRY(brc_sequence_can_start(repo, "a rebase", err));
    return brc_sequence_in_turn(&a.aim, repo, "the branch was rebased", rebase_in_turn, err);
}
