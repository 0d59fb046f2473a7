/* A branch's own commits, done again on another version. */
#include <stdlib.h>

#include "../history/commit.h"
#include "pick.h"
#include "rebase_steps.h"

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
    return brc_rebasing_in_turn(&turn, err);
}
