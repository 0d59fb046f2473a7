#include "sequence.h"

#include <stdlib.h>
#include <string.h>

#include "../base/alloc.h"
#include "../base/process.h"
#include "../base/sized.h"
#include "../breccia_json.h"
#include "../history/commit.h"
#include "../store/change.h"
#include "../store/collect.h"
#include "../store/ref.h"
#include "merge_end.h"
#include "replay.h"

/* ==== open plan ================================ */

static int plan_name(brc_buf *out, const char *name, brc_error *err)
{
    return brc_buf_printf(out, err, "%s\"%s\":", out->len == 0 ? "{" : ",", name);
}

int brc_plan_text(brc_buf *out, const char *name, const char *text, brc_error *err)
{
    BRC_TRY(plan_name(out, name, err));
    return brc_json_quote(out, text, strlen(text), err);
}

int brc_plan_id(brc_buf *out, const char *name, const brc_oid *id, brc_error *err)
{
    char hex[65];
    return brc_plan_text(out, name, brc_oid_format(hex, id), err);
}

int brc_plan_number(brc_buf *out, const char *name, int64_t number, brc_error *err)
{
    BRC_TRY(plan_name(out, name, err));
    return brc_buf_printf(out, err, "%lld", (long long)number);
}

int brc_plan_true(brc_buf *out, const char *name, brc_error *err)
{
    BRC_TRY(plan_name(out, name, err));
    return brc_buf_text(out, "true", err);
}

int brc_plan_texts(brc_buf *out, const char *name, const char *const *texts, size_t n,
                   brc_error *err)
{
    BRC_TRY(plan_name(out, name, err));
    BRC_TRY(brc_buf_text(out, "[", err));
    for (size_t i = 0; i < n; i++) {
        BRC_TRY(brc_buf_text(out, i == 0 ? "" : ",", err));
        BRC_TRY(brc_json_quote(out, texts[i], strlen(texts[i]), err));
    }
    return brc_buf_text(out, "]", err);
}

int brc_plan_ids(brc_buf *out, const char *name, const brc_oid *ids, size_t n, brc_error *err)
{
    char hex[65];
    BRC_TRY(plan_name(out, name, err));
    BRC_TRY(brc_buf_text(out, "[", err));
    for (size_t i = 0; i < n; i++)
        BRC_TRY(brc_buf_printf(out, err, "%s\"%s\"", i == 0 ? "" : ",",
                               brc_oid_format(hex, &ids[i])));
    return brc_buf_text(out, "]", err);
}

int brc_plan_end(brc_buf *out, brc_error *err)
{
    BRC_TRY(brc_buf_text(out, "}", err));
    return brc_buf_terminate(out, err);
}

/* ==== sequence ================================ */

static void leave_bulk(brc_sequence *q)
{
    if (q->in_bulk)
        (void)brc_store_bulk_admit(q->store, q->admitted);
    q->in_bulk = 0;
}

static void cancel_bulk(brc_sequence *q)
{
    if (q->in_bulk)
        brc_store_bulk_cancel(q->store);
    leave_bulk(q);
}

int brc_sequence_bulk_begin(brc_sequence *q, brc_error *err)
{
    cancel_bulk(q);
    BRC_TRY(brc_store_bulk_begin(q->store, err));
    q->in_bulk = 1;
    q->admitted = brc_store_bulk_admit(q->store, 1);
    return BRC_OK;
}

/* Begins the transaction of a change. If little was stored, the chunks and their names go into one
 * transaction. */
static int begin_change_of(brc_sequence *q, brc_error *err)
{
    if (!q->in_bulk)
        return brc_store_begin(q->store, err);
    BRC_TRY(brc_store_bulk_finish(q->store, err));
    leave_bulk(q);
    return BRC_OK;
}

void brc_sequence_dispose(brc_sequence *q)
{
    cancel_bulk(q);
    brc_merge_run_dispose(&q->run);
    brc_moves_carried_dispose(&q->carried);
    free(q->branch);
    free(q->full);
    q->branch = q->full = NULL;
}

/* ---- the branch -------------------------------- */

static int read_branch(brc_sequence *q, brc_error *err)
{
    BRC_TRY(brc_gc_last(q->store, &q->collected, err));
    BRC_TRY(brc_dup(&q->branch, q->on, err));
    BRC_TRY(brc_ref_full(&q->full, "heads", q->on, err));
    BRC_TRY(brc_ref_get(q->store, q->full, &q->has_tip, &q->tip, err));
    return brc_draft_shared(q->store, q->branch, &q->draft, err);
}

/* Fails if the branch has uncommitted changes. A draft without changes is removed when the branch
 * moves. */
static int check_no_changes(brc_sequence *q, brc_error *err)
{
    brc_session *s;
    int clean;
    if (q->draft.id == 0)
        return BRC_OK;
    if (q->draft.kind == BRC_DRAFT_MERGE)
        return brc_merge_is_open(q->store, q->branch, err);
    BRC_TRY(brc_session_open(&s, q->repo, q->branch, BRC_SESSION_VIEW, err));
    int rc = brc_session_clean(&clean, s, err);
    q->draft = s->draft;
    brc_session_free(s);
    if (rc < 0 || clean)
        return rc;
    return brc_fail(err, BRC_ECONFLICT,
                    "branch '%s' has uncommitted changes: commit them, or drop them, before %s",
                    q->branch, q->doing);
}

int brc_sequence_go_to(brc_sequence *q, const brc_oid *commit, brc_error *err)
{
    q->has_now = 1;
    q->now = *commit;
    return brc_commit_root(q->store, commit, &q->root, err);
}

int brc_sequence_go_to_tip(brc_sequence *q, brc_error *err)
{
    if (q->has_tip)
        return brc_sequence_go_to(q, &q->tip, err);
    q->has_now = 0;
    memset(&q->root, 0, sizeof(q->root));
    return BRC_OK;
}

static int head_now(brc_store *store, char **out, brc_error *err)
{
    const char *head;
    *out = NULL;
    BRC_TRY(brc_store_begin_read(store, err));
    int rc = brc_head_get(store, &head, err);
    if (rc == BRC_OK)
        rc = brc_dup(out, head, err);
    brc_store_end_read(store);
    return rc;
}

int brc_aim_resolve(brc_aim *aim, brc_store *store, brc_oid *out, brc_error *err)
{
    if (!aim->is_known)
        BRC_TRY(brc_rev_resolve(store, aim->rev, &aim->id, err));
    aim->is_known = 1;
    *out = aim->id;
    return BRC_OK;
}

int brc_sequence_change(brc_aim *aim, breccia *repo, const char *doing,
                        int (*once)(void *aim, int insists, brc_error *err), brc_error *err)
{
    char *branch;
    BRC_TRY(head_now(repo->store, &branch, err));
    const brc_file_change change = {.about = branch, .ctx = aim, .steps = once};
    aim->branch = branch;
    const int rc = brc_change_run(repo->store, &change, err);
    aim->branch = NULL;
    free(branch);
    return rc == BRC_CHANGE_AGAIN ? brc_change_is_late(repo->store, doing,
                                                       "nothing was changed; call again", err)
                                  : rc;
}

int brc_sequence_can_start(breccia *repo, const char *what, brc_error *err)
{
    if (brc_store_in_write(repo->store))
        return brc_fail(err, BRC_EMISUSE, "%s cannot be a part of a transaction", what);
    return brc_store_writable(repo->store, err);
}

/* Makes q->run one of which nothing is read yet. */
static void begin_run(brc_sequence *q)
{
    const brc_merge_run none = BRC_MERGE_RUN_INIT;
    q->run = none;
    q->run.how.repo = q->repo;
    q->run.how.favour = q->favour;
    q->run.how.paths = q->paths;
    q->run.how.npaths = q->npaths;
}

int brc_sequence_start(brc_sequence *q, brc_error *err)
{
    q->store = q->repo->store;
    begin_run(q);
    BRC_TRY(brc_store_begin_read(q->store, err));
    int rc = read_branch(q, err);
    if (rc == BRC_OK && q->has_tip)
        rc = brc_sequence_go_to(q, &q->tip, err);
    brc_store_end_read(q->store);
    BRC_TRY(rc);
    return check_no_changes(q, err);
}

/* ---- what goes on -------------------------------- */

static int read_resumed(brc_sequence *q, brc_error *err)
{
    BRC_TRY(brc_gc_last(q->store, &q->collected, err));
    BRC_TRY(brc_ref_get(q->store, q->full, &q->has_tip, &q->tip, err));
    return q->draft.has_base ? brc_sequence_go_to(q, &q->draft.base, err) : BRC_OK;
}

int brc_sequence_resume(brc_sequence *q, const char *branch, const brc_draft_head *draft,
                        brc_error *err)
{
    q->store = q->repo->store;
    begin_run(q);
    q->is_open = 1;
    q->draft = *draft;
    BRC_TRY(brc_dup(&q->branch, branch, err));
    BRC_TRY(brc_ref_full(&q->full, "heads", branch, err));
    BRC_TRY(brc_store_begin_read(q->store, err));
    int rc = read_resumed(q, err);
    brc_store_end_read(q->store);
    return rc;
}

/* ---- a step -------------------------------- */

static int merge_step(brc_sequence *q, const brc_step *step, brc_error *err)
{
    brc_merge_run_dispose(&q->run);
    begin_run(q);
    BRC_TRY(brc_store_begin_read(q->store, err));
    int rc = brc_step_change_read(&q->run, &step->change, q->has_now ? &q->now : NULL,
                                  &q->carried, err);
    brc_store_end_read(q->store);
    BRC_TRY(rc);
    BRC_TRY(brc_sequence_bulk_begin(q, err));
    return brc_merge_work(&q->run, err);
}

static int root_now(brc_sequence *q, brc_oid *root, brc_error *err)
{
    *root = q->root;
    return brc_snapshot_normal(q->store, root, err);
}

/* Puts a commit that follows q->now and, for a merge, `other`, and sets q->now to it. */
static int put_commit(brc_sequence *q, const brc_commit *like, const brc_oid *other,
                      const brc_oid *root, const brc_move_set *moves, brc_error *err)
{
    brc_commit commit = *like;
    brc_oid parents[2];
    commit.parents = parents;
    commit.nparents = 0;
    if (q->has_now)
        parents[commit.nparents++] = q->now;
    if (other != NULL)
        parents[commit.nparents++] = *other;
    commit.root = *root;
    BRC_TRY(brc_commit_put(q->store, &commit, moves, err));
    q->has_now = 1;
    q->now = commit.id;
    q->root = commit.root;
    return BRC_OK;
}

/* Takes the snapshot of a version that is merged although it follows the branch. */
static int take_version(brc_sequence *q, const brc_oid *other, brc_oid *root, brc_move_set *moves,
                      brc_error *err)
{
    BRC_TRY(brc_commit_root(q->store, other, root, err));
    return brc_moves_along(moves, q->store, &q->now, other, err);
}

static int take_merged(brc_sequence *q, brc_oid *root, brc_move_set *moves, brc_error *err)
{
    BRC_TRY(brc_merge_tree_put(q->run.tree, root, err));
    return brc_merge_tree_moves(q->run.tree, root, moves, err);
}

static int put_step(brc_sequence *q, const brc_step *step, int *result, brc_error *err)
{
    brc_move_set moves = {0};
    brc_oid was, root;
    int rc;
    BRC_GO(root_now(q, &was, err));
    BRC_GO(q->run.tree != NULL ? take_merged(q, &root, &moves, err)
                               : take_version(q, step->other, &root, &moves, err));
    *result = BRC_STEP_EMPTY;
    if (brc_oid_cmp(&root, &was) == 0 && step->other == NULL && !step->keep_empty)
        goto done;
    *result = BRC_STEP_DONE;
    rc = put_commit(q, &step->like, step->other, &root, &moves, err);
done:
    brc_move_set_dispose(&moves);
    return rc;
}

/* Fails if the merged version is gone: it may have no name, and a collection may have removed
 * it. */
static int check_other_is_there(brc_sequence *q, const brc_oid *other, brc_error *err)
{
    brc_commit *there;
    if (other == NULL)
        return BRC_OK;
    BRC_TRY(brc_commit_need(&there, q->store, other, err));
    brc_commit_free(there);
    return BRC_OK;
}

static int check_not_collected(brc_sequence *q, brc_error *err)
{
    int64_t last;
    BRC_TRY(brc_gc_last(q->store, &last, err));
    q->again = last != q->collected;
    return q->again ? brc_fail(err, BRC_ESTALE,
                               "%s: garbage was collected before %s: call again",
                               brc_store_path(q->store), q->doing)
                    : BRC_OK;
}

/* ---- the end -------------------------------- */

/* Fails if the open draft has changed since the sequence continued. */
static int check_still_open(brc_sequence *q, brc_error *err)
{
    brc_draft_head now;
    BRC_TRY(brc_draft_merge(q->store, q->branch, &now, err));
    q->again = now.id != q->draft.id || now.changes != q->draft.changes;
    if (q->again)
        return brc_fail(err, BRC_ESTALE,
                        "%s: the %s on branch '%s' was changed while it went on: nothing was "
                        "done; call again",
                        brc_store_path(q->store), q->op, q->branch);
    return brc_draft_delete(q->store, now.id, err);
}

/* Fails if the branch has moved, or has uncommitted changes now. */
static int check_still_there(brc_sequence *q, brc_error *err)
{
    brc_draft_head now;
    int has;
    brc_oid tip;
    BRC_TRY(brc_ref_get(q->store, q->full, &has, &tip, err));
    q->again = has != q->has_tip || (has && brc_oid_cmp(&tip, &q->tip) != 0);
    if (q->again)
        return brc_fail(err, BRC_ESTALE,
                        "%s: branch '%s' has moved before %s: nothing was changed; call again",
                        brc_store_path(q->store), q->branch, q->doing);
    if (q->is_open)
        return check_still_open(q, err);
    BRC_TRY(brc_draft_shared(q->store, q->branch, &now, err));
    if (now.id != 0 && !(now.id == q->draft.id && now.changes == q->draft.changes))
        return brc_fail(err, BRC_ECONFLICT,
                        "branch '%s' was changed before %s: commit these changes, and call again",
                        q->branch, q->doing);
    return now.id != 0 ? brc_draft_delete(q->store, now.id, err) : BRC_OK;
}

/* Bases the branch's draft on the commit that was made. The draft follows the branch, so the
 * commit's changes show as uncommitted. Nothing else names the commit. */
static int leave_uncommitted(brc_sequence *q, brc_error *err)
{
    brc_draft_row row = {.branch = q->branch};
    int64_t id;
    row.draft.kind = BRC_DRAFT_SHARED;
    row.draft.has_base = q->has_now;
    row.draft.base = q->now;
    row.draft.has_tip = q->has_tip;
    row.draft.tip = q->tip;
    row.draft.time_us = brc_now_us();
    return brc_draft_start(q->store, &row, &id, err);
}

static int end_steps(brc_sequence *q, brc_error *err)
{
    const int stays = q->has_now == q->has_tip &&
                      (!q->has_tip || brc_oid_cmp(&q->now, &q->tip) == 0);
    BRC_TRY(check_not_collected(q, err));
    q->is_through = 1;
    if (stays && !q->is_open)
        return BRC_OK;
    BRC_TRY(check_still_there(q, err));
    if (stays)
        return BRC_OK;
    if (q->no_commit)
        return leave_uncommitted(q, err);
    return brc_ref_put(q->store, q->full, &q->now, NULL, q->op, 1, q->has_tip ? &q->tip : NULL,
                       brc_now_us(), err);
}

static int end_change_of(brc_sequence *q, int rc, brc_error *err)
{
    q->repo->changes++;
    const int end = brc_store_end(q->store, rc == BRC_OK, rc == BRC_OK ? err : NULL);
    return rc < 0 ? rc : end;
}

static int step_steps(brc_sequence *q, const brc_step *step, int *result, brc_error *err)
{
    BRC_TRY(check_not_collected(q, err));
    BRC_TRY(check_other_is_there(q, step->other, err));
    BRC_TRY(put_step(q, step, result, err));
    return step->is_last ? end_steps(q, err) : BRC_OK;
}

int brc_sequence_put(brc_sequence *q, const brc_step *step, int *result, brc_error *err)
{
    if (q->run.tree != NULL)
        BRC_TRY(brc_merge_tree_ahead(q->run.tree, err));
    BRC_TRY(begin_change_of(q, err));
    return end_change_of(q, step_steps(q, step, result, err), err);
}

int brc_sequence_step(brc_sequence *q, const brc_step *step, int *result, brc_error *err)
{
    BRC_TRY(merge_step(q, step, err));
    *result = BRC_STEP_CONFLICT;
    if (brc_merge_tree_clashes(q->run.tree)->n > 0)
        return BRC_OK;
    return brc_sequence_put(q, step, result, err);
}

static int add_steps(brc_sequence *q, const brc_step *step, const brc_oid *root,
                     const brc_move_set *moves, int *result, brc_error *err)
{
    brc_oid was;
    BRC_TRY(check_not_collected(q, err));
    BRC_TRY(root_now(q, &was, err));
    *result = step->other == NULL && brc_oid_cmp(root, &was) == 0 ? BRC_STEP_EMPTY : BRC_STEP_DONE;
    if (*result == BRC_STEP_DONE)
        BRC_TRY(put_commit(q, &step->like, step->other, root, moves, err));
    return step->is_last ? end_steps(q, err) : BRC_OK;
}

int brc_sequence_add(brc_sequence *q, const brc_step *step, const brc_oid *root,
                     const brc_move_set *moves, int *result, brc_error *err)
{
    BRC_TRY(brc_store_begin(q->store, err));
    return end_change_of(q, add_steps(q, step, root, moves, result, err), err);
}

int brc_sequence_end(brc_sequence *q, brc_error *err)
{
    if (q->is_through)
        return BRC_OK;
    BRC_TRY(brc_store_begin(q->store, err));
    return end_change_of(q, end_steps(q, err), err);
}

/* ---- a conflict -------------------------------- */

static int keep_steps(brc_sequence *q, const brc_open_merge_new *what, int64_t *draft,
                      brc_error *err)
{
    BRC_TRY(check_not_collected(q, err));
    BRC_TRY(check_other_is_there(q, what->other, err));
    BRC_TRY(check_still_there(q, err));
    return brc_open_merge_start(draft, &q->run, what, err);
}

int brc_sequence_keep(brc_sequence *q, const brc_open_merge_new *what, int64_t *draft,
                      brc_error *err)
{
    brc_open_merge_new own = *what;
    own.branch = q->branch;
    own.tip = q->has_tip ? &q->tip : NULL;
    own.base = q->has_now ? &q->now : NULL;
    BRC_TRY(brc_merge_tree_ahead(q->run.tree, err));
    BRC_TRY(begin_change_of(q, err));
    return end_change_of(q, keep_steps(q, &own, draft, err), err);
}

/* ---- paths -------------------------------- */

int brc_paths_normal(char ***out, const char *const *paths, size_t n, brc_error *err)
{
    void *made;
    *out = NULL;
    BRC_TRY(brc_new_array(&made, n + 1, sizeof(char *), err));
    char **list = *out = made;
    for (size_t i = 0; i < n; i++) {
        brc_buf path = BRC_BUF_INIT;
        int rc = brc_path_normal(&path, paths[i], err);
        if (rc == BRC_OK)
            rc = brc_buf_take_text(&path, &list[i], err);
        brc_buf_dispose(&path);
        BRC_TRY(rc);
    }
    brc_paths_sort((const char **)list, n);
    return BRC_OK;
}

void brc_paths_free(char **paths, size_t n)
{
    for (size_t i = 0; paths != NULL && i < n; i++)
        free(paths[i]);
    free(paths);
}
