/* A branch's own commits, done again on another version. */
#include <stdlib.h>
#include <string.h>

#include "../base/alloc.h"
#include "../base/sized.h"
#include "../history/commit.h"
#include "pick.h"

typedef struct rebase_call {
    breccia *repo;
    const char *onto;
    brc_pick_opts opts;
    char **paths;
    brc_sequence q;
    brc_oid target;
    void *todo; /* brc_commit *[]: the oldest first */
    size_t n, cap;
    brc_oid at; /* the commit that is being done again */
    brc_pick_result result;
} rebase_call;

static brc_commit *rebased(const rebase_call *c, size_t i)
{
    return ((brc_commit **)c->todo)[i];
}

static void rebase_call_dispose(rebase_call *c)
{
    for (size_t i = 0; i < c->n; i++)
        brc_commit_free(rebased(c, i));
    free(c->todo);
    brc_sequence_dispose(&c->q);
    brc_paths_free(c->paths, c->opts.npaths);
}

/* ---- which commits -------------------------------- */

static int add_todo(rebase_call *c, brc_walk *walk, brc_error *err)
{
    BRC_TRY(brc_grow_array(&c->todo, &c->cap, c->n + 1, sizeof(brc_commit *), err));
    ((brc_commit **)c->todo)[c->n++] = brc_walk_take(walk);
    return BRC_OK;
}

static void turn_round(rebase_call *c)
{
    brc_commit **list = c->todo;
    for (size_t i = 0; i < c->n / 2; i++) {
        brc_commit *one = list[i];
        list[i] = list[c->n - 1 - i];
        list[c->n - 1 - i] = one;
    }
}

/* What the branch has and the target does not have, but merges. */
static int list_todo(rebase_call *c, brc_error *err)
{
    brc_walk *walk;
    const brc_commit *commit;
    int rc;
    BRC_TRY(brc_walk_new(&walk, c->repo->store, &c->q.tip, err));
    BRC_GO(brc_walk_hide(walk, &c->target, err));
    while ((rc = brc_walk_next(walk, &commit, err)) > 0)
        if (commit->nparents <= 1)
            BRC_GO(add_todo(c, walk, err));
done:
    brc_walk_free(walk);
    turn_round(c);
    return rc;
}

static int read_target(rebase_call *c, brc_error *err)
{
    brc_commit *there;
    BRC_TRY(brc_store_begin_read(c->repo->store, err));
    int rc = brc_rev_resolve(c->repo->store, c->onto, &c->target, err);
    if (rc == BRC_OK)
        rc = brc_commit_read(&there, c->repo, &c->target, err);
    if (rc == BRC_OK)
        brc_commit_free(there);
    if (rc == BRC_OK && c->q.has_tip)
        rc = list_todo(c, err);
    if (rc == BRC_OK)
        rc = brc_sequence_go_to(&c->q, &c->target, err);
    brc_store_end_read(c->repo->store);
    return rc;
}

/* ---- doing them again -------------------------------- */

/* It is on the right commit already: it stays as it is. */
static int stays(const rebase_call *c, const brc_commit *commit)
{
    return c->result.made + c->result.skipped == 0 && commit->nparents == 1 &&
           brc_oid_cmp(&commit->parents[0], &c->q.now) == 0;
}

/* A commit that never changed anything is kept; one whose change is there already is not. */
static int was_empty(rebase_call *c, const brc_commit *commit, int *empty, brc_error *err)
{
    brc_oid root;
    *empty = 0;
    if (commit->nparents == 0)
        return BRC_OK;
    BRC_TRY(brc_commit_root(c->repo->store, &commit->parents[0], &root, err));
    *empty = brc_oid_cmp(&root, &commit->root) == 0;
    return BRC_OK;
}

static int rebase_one(rebase_call *c, size_t i, int *result, brc_error *err)
{
    const brc_commit *commit = rebased(c, i);
    brc_step step = {.like = *commit};
    brc_step_change *change = &step.change;
    c->at = commit->id;
    if (stays(c, commit)) {
        *result = BRC_STEP_DONE;
        return brc_sequence_go_to(&c->q, &commit->id, err);
    }
    change->has_theirs = 1;
    change->theirs = commit->id;
    change->has_base = commit->nparents > 0;
    if (change->has_base)
        change->base = commit->parents[0];
    BRC_TRY(was_empty(c, commit, &step.keep_empty, err));
    step.is_last = i + 1 == c->n;
    BRC_TRY(brc_sequence_step(&c->q, &step, result, err));
    c->result.made += *result == BRC_STEP_DONE;
    c->result.skipped += *result == BRC_STEP_EMPTY;
    return BRC_OK;
}

static int rebase_all(rebase_call *c, brc_error *err)
{
    int result = BRC_STEP_DONE;
    for (size_t i = 0; i < c->n && result != BRC_STEP_CONFLICT; i++)
        BRC_TRY(rebase_one(c, i, &result, err));
    if (result == BRC_STEP_CONFLICT) {
        c->result.result = BRC_PICK_CONFLICT;
        c->result.made = c->result.skipped = 0;
        return BRC_OK;
    }
    BRC_TRY(brc_sequence_end(&c->q, err));
    c->result.commit = c->q.now;
    c->result.result = BRC_PICK_COMMITTED;
    if (c->q.has_tip && brc_oid_cmp(&c->q.now, &c->q.tip) == 0)
        c->result.result = BRC_PICK_NOTHING;
    else if (c->n == 0)
        c->result.result = BRC_PICK_FAST_FORWARD;
    return BRC_OK;
}

/* ---- the call -------------------------------- */

/* The target is an ancestor, and all that follows it is in one line: there is nothing to do. */
static int rebase_work(rebase_call *c, brc_error *err)
{
    BRC_TRY(brc_sequence_start(&c->q, err));
    BRC_TRY(read_target(c, err));
    const brc_task task = brc_task_begin(c->repo, "rebase", 0);
    int rc = rebase_all(c, err);
    brc_task_end(c->repo, &task, rc);
    return rc;
}

static int rebase_once(rebase_call *c, brc_pick_result *out, brc_iter **conflicts,
                       const brc_pick_opts *given, brc_error *err)
{
    BRC_TRY(brc_pick_opts_take(&c->opts, given, 0, err));
    if (c->opts.message != NULL || c->opts.author != NULL || c->opts.time_us != 0 ||
        c->opts.mainline != 0)
        return brc_fail(err, BRC_EINVAL, "a rebase keeps message, author and time of each commit, "
                                         "and leaves merges out");
    BRC_TRY(brc_paths_normal(&c->paths, c->opts.paths, c->opts.npaths, err));
    brc_pick_opts_apply(&c->q, &c->opts, c->paths);
    BRC_TRY(rebase_work(c, err));
    return brc_pick_answer(out, conflicts, &c->q, &c->result, &c->at, err);
}

int brc_rebase(brc_pick_result *out, brc_iter **conflicts, breccia *repo, const char *onto,
               const brc_pick_opts *opts, brc_error *err)
{
    enum { TRIES = 4 };
    int rc = BRC_OK, again = 1;
    if (conflicts != NULL)
        *conflicts = NULL;
    BRC_TRY(brc_sequence_can_start(repo, "a rebase", err));
    for (int i = 0; i < TRIES && again; i++) {
        rebase_call c = {.repo = repo, .onto = onto};
        c.q.repo = repo;
        c.q.op = "rebase";
        c.q.doing = "it is rebased";
        rc = rebase_once(&c, out, conflicts, opts, err);
        again = rc < 0 && c.q.again;
        rebase_call_dispose(&c);
    }
    return rc;
}
