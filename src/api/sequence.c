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

/* Where little was stored, it and what names it are one transaction. */
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

/* A draft without a change in it goes when the branch moves. */
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

int brc_sequence_start(brc_sequence *q, brc_error *err)
{
    const brc_merge_run none = BRC_MERGE_RUN_INIT;
    q->store = q->repo->store;
    q->run = none;
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
    const brc_merge_run none = BRC_MERGE_RUN_INIT;
    q->store = q->repo->store;
    q->run = none;
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
    const brc_merge_run none = BRC_MERGE_RUN_INIT;
    brc_merge_run_dispose(&q->run);
    q->run = none;
    q->run.how.repo = q->repo;
    q->run.how.favour = q->favour;
    q->run.how.paths = q->paths;
    q->run.how.npaths = q->npaths;
    BRC_TRY(brc_store_begin_read(q->store, err));
    int rc = brc_step_change_read(&q->run, &step->change, q->has_now ? &q->now : NULL,
                                  &q->carried, err);
    brc_store_end_read(q->store);
    BRC_TRY(rc);
    BRC_TRY(brc_sequence_bulk_begin(q, err));
    return brc_merge_work(&q->run, err);
}

/* The snapshot of a branch without a commit is the empty one. */
static int root_now(brc_sequence *q, brc_oid *root, brc_error *err)
{
    brc_entry top;
    *root = q->root;
    if (!brc_oid_is_zero(root))
        return BRC_OK;
    BRC_TRY(brc_snapshot_find(q->store, root, "/", &top, err));
    return brc_snapshot_put(q->store, &top, root, err);
}

/* A commit that follows q->now, and of a merge `other`, and is q->now then. */
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

/* Of a version that is merged although it follows the branch: as it is there. */
static int take_other(brc_sequence *q, const brc_oid *other, brc_oid *root, brc_move_set *moves,
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
                               : take_other(q, step->other, &root, &moves, err));
    *result = BRC_STEP_EMPTY;
    if (brc_oid_cmp(&root, &was) == 0 && step->other == NULL && !step->keep_empty)
        goto done;
    *result = BRC_STEP_DONE;
    rc = put_commit(q, &step->like, step->other, &root, &moves, err);
done:
    brc_move_set_dispose(&moves);
    return rc;
}

/* What is merged may have no name, and a collection may have taken it. */
static int check_other_is_there(brc_sequence *q, const brc_oid *other, brc_error *err)
{
    brc_commit *there;
    if (other == NULL)
        return BRC_OK;
    BRC_TRY(brc_commit_read(&there, q->repo, other, err));
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

/* What was open must be as it was when it went on. */
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

/* The branch must be where it was, and still have nothing uncommitted. */
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

/* The commit that was made is what the branch's draft lies over, and the draft follows the branch:
 * that shows what it changes as uncommitted. Nothing else will name it. */
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

/* ==== pick ================================ */

/* One commit's change on the current branch: done again (cherry-pick), or taken back (revert). */

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
        return brc_fail(err, BRC_EINVAL, "paths need a side for which they are settled");
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

/* The parent from which the change is told; NULL: the commit has none. */
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

/* Revert "..." */
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

/* Where commits before it have expired, what lies between the last one that is kept and this one is
 * not its change alone. */
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
        rc = brc_commit_read(&c->commit, c->repo, &id, err);
    if (rc == BRC_OK)
        rc = knows_its_change(c, err);
    brc_store_end_read(c->repo->store);
    BRC_TRY(rc);
    return plan_pick(c, err);
}

/* ---- conflicts -------------------------------- */

/* What the commit takes from the one that is picked is read there again, at the end. */
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
