/* A session's uncommitted changes as a step onto the branch that has moved. */
#include "../base/process.h"
#include "../store/change.h"
#include "steps.h"

static void begin_replay(brc_steps *q, breccia *repo)
{
    *q = (brc_steps){.repo = repo, .op = "commit", .doing = "these changes were merged onto it"};
}

static int in_the_way(const brc_steps *q, brc_error *err)
{
    brc_clash_list *list = brc_merge_tree_clashes(q->run.tree);
    return brc_fail(err, BRC_ECONFLICT,
                    "%s: branch '%s' has moved since these changes began (draft %lld), and %zu of "
                    "them %s in conflict with its new commits, first at %.300s: they are kept; "
                    "restore the parts in conflict from '%s', and commit again",
                    brc_store_path(q->store), q->branch, (long long)q->draft.id, list->n,
                    list->n == 1 ? "is" : "are", list->items[0].path, q->branch);
}

static int none_is_left(const brc_session *s, brc_error *err)
{
    return brc_fail(err, BRC_EMISUSE, "nothing to commit on branch '%s': somebody else has "
                                      "committed or dropped the uncommitted changes",
                    s->branch);
}

/* ---- the commit -------------------------------- */

static int replay_once(brc_steps *q, brc_session *s, const brc_commit *like, int may_be_empty,
                       brc_error *err)
{
    const brc_step step = {.like = *like, .keep_empty = may_be_empty};
    BRC_TRY(brc_steps_start_from(q, s, err));
    if (q->draft.id == 0)
        return none_is_left(s, err);
    BRC_TRY(brc_steps_add(q, &step, err));
    BRC_TRY(brc_steps_run(q, err));
    return q->result.result == BRC_PICK_CONFLICT ? in_the_way(q, err) : BRC_OK;
}

int brc_replay_commit(brc_oid *out, brc_session *s, const brc_commit *like, int may_be_empty,
                      brc_error *err)
{
    brc_steps q;
    begin_replay(&q, s->repo);
    const int rc = replay_once(&q, s, like, may_be_empty, err), again = rc < 0 && q.again;
    if (rc == BRC_OK)
        *out = q.result.commit;
    s->is_read = 0;
    brc_steps_dispose(&q);
    return again ? BRC_CHANGE_AGAIN : rc;
}

/* ---- a draft that is adopted -------------------------------- */

/* Checks whether the draft is based on an older commit than its branch's. Loose keys are not part
 * of a version: a draft with loose keys is adopted as it is. */
static int look_at_left(brc_session *s, int *apt, brc_error *err)
{
    int keys, has;
    brc_oid tip, root;
    BRC_TRY(brc_session_tip(s, &has, &tip, &root, err));
    BRC_TRY(brc_draft_key_any(s->repo->store, s->draft.id, &keys, err));
    BRC_TRY(brc_branch_has_room(s->repo->store, s->branch, apt, err));
    *apt &= !keys && s->draft.kind == BRC_DRAFT_PRIVATE &&
            !brc_draft_follows(&s->draft, has, &tip);
    return BRC_OK;
}

/* Merges. Leaves a draft as it is if it follows the tip or conflicts with it. */
static int adopt_once(brc_steps *q, brc_session *s, brc_error *err)
{
    const brc_step step = {
        .like = {.message = "uncommitted", .author = "unknown", .time_us = brc_now_us()}};
    int apt;
    BRC_TRY(brc_session_begin_read(s, err));
    const int rc = look_at_left(s, &apt, err);
    brc_session_end_read(s);
    if (rc < 0 || !apt)
        return rc < 0 ? rc : BRC_CHANGE_OTHER;
    BRC_TRY(brc_steps_start_from(q, s, err));
    BRC_TRY(brc_steps_add(q, &step, err));
    BRC_TRY(brc_steps_run(q, err));
    return q->result.result == BRC_PICK_CONFLICT ? BRC_CHANGE_OTHER : BRC_OK;
}

static int adopt_in_steps(void *ctx, int insists, brc_error *err)
{
    brc_session *s = ctx;
    brc_steps q;
    (void)insists;
    begin_replay(&q, s->repo);
    q.no_commit = 1;
    const int rc = adopt_once(&q, s, err), again = rc < 0 && q.again;
    brc_steps_dispose(&q);
    return again ? BRC_CHANGE_AGAIN : rc;
}

/* Also leaves the draft as it is if the time to wait is over. */
int brc_replay_adopt(int *done, breccia *repo, const char *branch, int64_t draft, brc_error *err)
{
    brc_session *s;
    brc_file_change change = {.about = branch, .is_ahead = 1, .steps = adopt_in_steps};
    *done = 0;
    BRC_TRY(brc_session_of_draft(&s, repo, branch, draft, err));
    change.ctx = s;
    const int rc = brc_change_run(repo->store, &change, err);
    brc_session_free(s);
    *done = rc == BRC_OK;
    return rc < 0 ? rc : BRC_OK;
}

/* ---- its conflicts -------------------------------- */

/* Returns 1 if there are conflicts. */
static int list_in_the_way(brc_steps *q, brc_session *s, brc_iter **out, brc_error *err)
{
    int has;
    brc_oid tip, root;
    BRC_TRY(brc_session_begin_read(s, err));
    const int rc = brc_session_tip(s, &has, &tip, &root, err);
    const int moved = s->draft.id != 0 && s->draft.kind != BRC_DRAFT_MERGE &&
                      !brc_draft_follows(&s->draft, has, &tip);
    brc_session_end_read(s);
    BRC_TRY(rc);
    if (!moved)
        return brc_conflict_list(out, NULL, s->repo, s->branch, err);
    BRC_TRY(brc_steps_start_from(q, s, err));
    BRC_TRY(brc_steps_merge(q, NULL, err));
    brc_clash_list *list = brc_merge_tree_clashes(q->run.tree);
    const int any = list->n > 0;
    BRC_TRY(brc_conflict_list(out, list, s->repo, s->branch, err));
    return any;
}

typedef struct conflicts_call {
    brc_iter **out;
    brc_session *s;
    int any;
} conflicts_call;

static int list_once(void *ctx, int insists, brc_error *err)
{
    conflicts_call *c = ctx;
    brc_steps q;
    (void)insists;
    begin_replay(&q, c->s->repo);
    c->any = list_in_the_way(&q, c->s, c->out, err);
    brc_steps_dispose(&q);
    return c->any < 0 ? c->any : BRC_OK;
}

int brc_replay_conflicts(brc_iter **out, brc_session *s, brc_error *err)
{
    conflicts_call call = {.out = out, .s = s};
    const brc_file_change change = {.ctx = &call, .is_ahead = 1, .steps = list_once};
    *out = NULL;
    BRC_TRY(brc_session_can_change(s, err));
    if (brc_store_in_write(s->repo->store))
        return brc_fail(err, BRC_EMISUSE, "conflicts cannot be listed within a transaction");
    const int rc = brc_change_run(s->repo->store, &change, err);
    return rc == BRC_CHANGE_AGAIN
               ? brc_change_is_late(s->repo->store, "the conflicts were listed", "list them again",
                                    err)
               : rc < 0 ? rc : call.any;
}
