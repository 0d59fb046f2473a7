#include "steps.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "../base/alloc.h"
#include "../base/process.h"
#include "../base/sized.h"
#include "../breccia_json.h"
#include "../history/ancestry.h"
#include "../history/commit.h"
#include "../store/change.h"
#include "../store/collect.h"
#include "../store/ref.h"
#include "../work/session_nodes.h"
#include "../zarr/key/key_rows.h"

/* ==== step change ================================ */

/* Finds the moves from one commit back to a commit that it follows. */
static int moves_against(brc_move_set *out, brc_store *store, const brc_oid *from,
                         const brc_oid *to, brc_error *err)
{
    brc_move_set along = {0};
    brc_oid from_root, to_root;
    int rc;
    memset(out, 0, sizeof(*out));
    BRC_GO(brc_commit_root(store, from, &from_root, err));
    BRC_GO(brc_commit_root(store, to, &to_root, err));
    BRC_GO(brc_moves_along(&along, store, to, from, err));
    BRC_GO(brc_move_set_turn(out, &along, err));
    rc = brc_move_set_reduce(out, store, &from_root, &to_root, err);
done:
    brc_move_set_dispose(&along);
    if (rc < 0)
        brc_move_set_dispose(out);
    return rc;
}

static int moves_via(brc_move_set *out, brc_store *store, const brc_oid *from, const brc_oid *via,
                     const brc_oid *to, brc_error *err)
{
    brc_move_set back = {0}, along = {0};
    brc_oid from_root, to_root;
    int rc;
    BRC_GO(brc_commit_root(store, from, &from_root, err));
    BRC_GO(brc_commit_root(store, to, &to_root, err));
    BRC_GO(moves_against(&back, store, from, via, err));
    BRC_GO(brc_moves_along(&along, store, via, to, err));
    BRC_GO(brc_move_set_join(out, &back, &along, err));
    rc = brc_move_set_reduce(out, store, &from_root, &to_root, err);
done:
    brc_move_set_dispose(&back);
    brc_move_set_dispose(&along);
    if (rc < 0)
        brc_move_set_dispose(out);
    return rc;
}

/* Finds the moves from one commit to any other: back to their common ancestor and then forward.
 * There are none if they have several common ancestors. */
static int moves_across(brc_move_set *out, brc_store *store, const brc_oid *from,
                        const brc_oid *to, brc_error *err)
{
    brc_commit_set one = {0}, bases = {0};
    int rc;
    memset(out, 0, sizeof(*out));
    BRC_GO(brc_commit_set_add(&one, from, err));
    BRC_GO(brc_merge_bases(&bases, store, &one, to, err));
    if (bases.n == 1)
        rc = moves_via(out, store, from, &bases.ids[0], to, err);
done:
    brc_commit_set_dispose(&one);
    brc_commit_set_dispose(&bases);
    return rc;
}

/* ---- carried from step to step -------------------------------- */

static void carried_dispose(brc_moves_carried *carried)
{
    brc_move_set_dispose(&carried->moves);
    memset(carried, 0, sizeof(*carried));
}

/* Sets *is to 1 if the commit has exactly this one parent. */
static int has_one_parent(brc_store *store, const brc_oid *id, const brc_oid *parent, int *is,
                          brc_error *err)
{
    brc_commit *commit;
    BRC_TRY(brc_commit_get(&commit, store, id, err));
    *is = commit->nparents == 1 && brc_oid_cmp(&commit->parents[0], parent) == 0;
    brc_commit_free(commit);
    return BRC_OK;
}

/* Says whether each end is where it was, or one commit further. */
static int is_next(const brc_moves_carried *carried, brc_store *store, const brc_oid *from,
                   const brc_oid *to, int *is, brc_error *err)
{
    *is = 0;
    if (!carried->is_known)
        return BRC_OK;
    *is = 1;
    if (brc_oid_cmp(from, &carried->from) != 0)
        BRC_TRY(has_one_parent(store, from, &carried->from, is, err));
    if (*is && brc_oid_cmp(to, &carried->to) != 0)
        BRC_TRY(has_one_parent(store, to, &carried->to, is, err));
    return BRC_OK;
}

static int carry_on(brc_moves_carried *carried, brc_store *store, const brc_oid *from,
                    const brc_oid *to, brc_error *err)
{
    brc_move_set back = {0}, along = {0}, half = {0}, whole = {0};
    brc_oid from_root, to_root;
    int rc;
    BRC_GO(brc_commit_root(store, from, &from_root, err));
    BRC_GO(brc_commit_root(store, to, &to_root, err));
    BRC_GO(moves_against(&back, store, from, &carried->from, err));
    BRC_GO(brc_moves_along(&along, store, &carried->to, to, err));
    BRC_GO(brc_move_set_join(&half, &back, &carried->moves, err));
    BRC_GO(brc_move_set_join(&whole, &half, &along, err));
    BRC_GO(brc_move_set_reduce(&whole, store, &from_root, &to_root, err));
    brc_move_set_dispose(&carried->moves);
    carried->moves = whole;
    memset(&whole, 0, sizeof(whole));
done:
    brc_move_set_dispose(&back);
    brc_move_set_dispose(&along);
    brc_move_set_dispose(&half);
    brc_move_set_dispose(&whole);
    return rc;
}

static int moves_copied(brc_move_set *out, const brc_move_set *moves, brc_error *err)
{
    for (size_t i = 0; i < moves->n; i++)
        BRC_TRY(brc_move_set_add(out, moves->items[i].from, moves->items[i].to, err));
    return brc_move_set_seal(out, err);
}

static int moves_carried(brc_move_set *out, brc_moves_carried *carried, brc_store *store,
                         const brc_oid *from, const brc_oid *to, brc_error *err)
{
    int next;
    BRC_TRY(is_next(carried, store, from, to, &next, err));
    if (next) {
        BRC_TRY(carry_on(carried, store, from, to, err));
    } else {
        brc_move_set_dispose(&carried->moves);
        carried->is_known = 0;
        carried->searches++;
        BRC_TRY(moves_across(&carried->moves, store, from, to, err));
    }
    carried->is_known = 1;
    carried->from = *from;
    carried->to = *to;
    return moves_copied(out, &carried->moves, err);
}

/* ---- the change -------------------------------- */

int brc_step_change_read(brc_merge_run *run, const brc_step_change *change, const brc_oid *ours,
                         brc_moves_carried *carried, brc_error *err)
{
    brc_store *store = run->how.repo->store;
    if (ours != NULL)
        BRC_TRY(brc_commit_root(store, ours, &run->in.ours, err));
    if (change->has_base)
        BRC_TRY(brc_commit_root(store, &change->base, &run->in.base, err));
    if (change->has_theirs)
        BRC_TRY(brc_commit_root(store, &change->theirs, &run->in.theirs, err));
    if (change->has_base && ours != NULL)
        BRC_TRY(carried != NULL ? moves_carried(&run->ours_moves, carried, store, &change->base,
                                                ours, err)
                                : moves_across(&run->ours_moves, store, &change->base, ours, err));
    if (!change->has_base || !change->has_theirs)
        return BRC_OK;
    return change->is_back
               ? moves_against(&run->theirs_moves, store, &change->base, &change->theirs, err)
               : brc_moves_along(&run->theirs_moves, store, &change->base, &change->theirs, err);
}

/* ==== steps ================================ */

static void leave_bulk(brc_steps *q)
{
    if (q->in_bulk)
        (void)brc_store_bulk_admit(q->store, q->admitted);
    q->in_bulk = 0;
}

static void cancel_bulk(brc_steps *q)
{
    if (q->in_bulk)
        brc_store_bulk_cancel(q->store);
    leave_bulk(q);
}

int brc_steps_bulk_begin(brc_steps *q, brc_error *err)
{
    cancel_bulk(q);
    BRC_TRY(brc_store_bulk_begin(q->store, err));
    q->in_bulk = 1;
    q->admitted = brc_store_bulk_admit(q->store, 1);
    return BRC_OK;
}

void brc_steps_dispose(brc_steps *q)
{
    cancel_bulk(q);
    for (size_t i = 0; i < q->n; i++)
        brc_commit_free(((brc_step *)q->list)[i].commit);
    free(q->list);
    brc_merge_run_dispose(&q->run);
    carried_dispose(&q->carried);
    brc_folded_dispose(&q->folded);
    free(q->branch);
    free(q->full);
}

int brc_steps_add(brc_steps *q, const brc_step *step, brc_error *err)
{
    const int rc = brc_grow_array(&q->list, &q->cap, q->n + 1, sizeof(brc_step), err);
    if (rc < 0)
        brc_commit_free(step->commit);
    else
        ((brc_step *)q->list)[q->n++] = *step;
    return rc;
}

/* ---- the branch -------------------------------- */

static int read_branch(brc_steps *q, brc_error *err)
{
    BRC_TRY(brc_gc_last(q->store, &q->collected, err));
    BRC_TRY(brc_dup(&q->branch, q->on, err));
    BRC_TRY(brc_ref_full(&q->full, "heads", q->on, err));
    return brc_ref_get(q->store, q->full, &q->has_tip, &q->tip, err);
}

/* Fails if the branch has uncommitted changes. A draft without changes is removed when the branch
 * moves. */
static int check_no_changes(brc_steps *q, brc_error *err)
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

int brc_steps_go_to(brc_steps *q, const brc_oid *commit, brc_error *err)
{
    q->has_now = 1;
    q->now = *commit;
    return brc_commit_root(q->store, commit, &q->root, err);
}

int brc_steps_go_to_tip(brc_steps *q, brc_error *err)
{
    if (q->has_tip)
        return brc_steps_go_to(q, &q->tip, err);
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

int brc_steps_change(brc_aim *aim, breccia *repo, const char *doing,
                     int (*once)(void *aim, int insists, brc_error *err), brc_error *err)
{
    char *branch;
    BRC_TRY(head_now(repo->store, &branch, err));
    const brc_file_change change = {.about = branch, .ctx = aim, .is_ahead = 1, .steps = once};
    aim->branch = branch;
    const int rc = brc_change_run(repo->store, &change, err);
    aim->branch = NULL;
    free(branch);
    return rc == BRC_CHANGE_AGAIN ? brc_change_is_late(repo->store, doing,
                                                       "nothing was changed; call again", err)
                                  : rc;
}

int brc_steps_can_start(breccia *repo, const char *what, brc_error *err)
{
    if (brc_store_in_write(repo->store))
        return brc_fail(err, BRC_EMISUSE, "%s cannot be a part of a transaction", what);
    return brc_store_writable(repo->store, err);
}

/* Makes q->run one of which nothing is read yet. */
static void begin_run(brc_steps *q)
{
    const brc_merge_run none = BRC_MERGE_RUN_INIT;
    q->run = none;
    q->run.how.repo = q->repo;
    q->run.how.favour = q->favour;
    q->run.how.paths = q->paths;
    q->run.how.npaths = q->npaths;
}

int brc_steps_start(brc_steps *q, brc_error *err)
{
    q->store = q->repo->store;
    begin_run(q);
    BRC_TRY(brc_store_begin_read(q->store, err));
    int rc = read_branch(q, err);
    if (rc == BRC_OK)
        rc = brc_draft_shared(q->store, q->branch, &q->draft, err);
    if (rc == BRC_OK)
        rc = brc_steps_go_to_tip(q, err);
    brc_store_end_read(q->store);
    BRC_TRY(rc);
    return check_no_changes(q, err);
}

static int read_resumed(brc_steps *q, brc_error *err)
{
    BRC_TRY(read_branch(q, err));
    return q->draft.has_base ? brc_steps_go_to(q, &q->draft.base, err) : BRC_OK;
}

int brc_steps_resume(brc_steps *q, const char *branch, const brc_draft_head *draft, brc_error *err)
{
    q->store = q->repo->store;
    begin_run(q);
    q->is_open = 1;
    q->draft = *draft;
    q->on = branch;
    BRC_TRY(brc_store_begin_read(q->store, err));
    int rc = read_resumed(q, err);
    brc_store_end_read(q->store);
    return rc;
}

/* ---- uncommitted changes as a step -------------------------------- */

/* Reads the sides: the base is the commit where the changes began, and ours is the branch's tip.
 * Must be called within a read. */
static int read_changes(brc_steps *q, brc_error *err)
{
    brc_session *s = q->from;
    brc_merge_three *in = &q->run.in;
    const brc_oid *began = &s->draft.tip;
    q->draft = s->draft;
    BRC_TRY(brc_steps_go_to_tip(q, err));
    in->ours = q->root;
    BRC_TRY(brc_keys_ready(s, err));
    if (s->draft.has_tip)
        BRC_TRY(brc_commit_root(q->store, began, &in->base, err));
    if (s->draft.has_tip && q->has_tip)
        BRC_TRY(brc_moves_along(&q->run.ours_moves, q->store, began, &q->tip, err));
    in->theirs = q->folded.root;
    return brc_session_moves(&q->run.theirs_moves, s, s->draft.has_tip, began, &in->base,
                             &in->theirs, err);
}

int brc_steps_start_from(brc_steps *q, brc_session *s, brc_error *err)
{
    q->store = q->repo->store;
    q->from = s;
    begin_run(q);
    BRC_TRY(brc_store_begin_read(q->store, err));
    int rc = brc_gc_last(q->store, &q->collected, err);
    brc_store_end_read(q->store);
    BRC_TRY(rc);
    /* the snapshot is written, because whole nodes are taken by id */
    BRC_TRY(brc_fold_whole(s, &q->folded, err));
    const int64_t collected = q->collected;
    BRC_TRY(brc_session_begin_read(s, err));
    q->on = s->branch; /* now, because the branch may have got another name */
    rc = read_branch(q, err);
    q->collected = collected;
    if (rc == BRC_OK)
        rc = read_changes(q, err);
    brc_session_end_read(s);
    return rc;
}

/* ---- a step -------------------------------- */

int brc_steps_merge(brc_steps *q, const brc_step *step, brc_error *err)
{
    if (q->from != NULL)
        return brc_merge_work(&q->run, err);
    brc_merge_run_dispose(&q->run);
    begin_run(q);
    BRC_TRY(brc_store_begin_read(q->store, err));
    int rc = brc_step_change_read(&q->run, &step->change, q->has_now ? &q->now : NULL,
                                  &q->carried, err);
    brc_store_end_read(q->store);
    BRC_TRY(rc);
    BRC_TRY(brc_steps_bulk_begin(q, err));
    return brc_merge_work(&q->run, err);
}

static int root_now(const brc_steps *q, brc_oid *root, brc_error *err)
{
    *root = q->root;
    return brc_snapshot_normal(q->store, root, err);
}

/* Puts a commit that follows q->now and, for a merge, the other version, and sets q->now to it. A
 * commit that would change nothing is left out. */
static int put_commit(brc_steps *q, const brc_step *step, const brc_oid *root,
                      const brc_move_set *moves, int *result, brc_error *err)
{
    brc_commit commit = step->like;
    brc_oid parents[2], was;
    BRC_TRY(root_now(q, &was, err));
    *result = BRC_STEP_EMPTY;
    if (brc_oid_cmp(root, &was) == 0 && !step->has_other && !step->keep_empty)
        return BRC_OK;
    *result = BRC_STEP_DONE;
    commit.parents = parents;
    commit.nparents = 0;
    if (q->has_now)
        parents[commit.nparents++] = q->now;
    if (step->has_other)
        parents[commit.nparents++] = step->other;
    commit.root = *root;
    BRC_TRY(brc_commit_put(q->store, &commit, moves, err));
    q->has_now = 1;
    q->now = commit.id;
    q->root = commit.root;
    return BRC_OK;
}

/* Takes the snapshot of a version that is merged although it follows the branch. */
static int take_version(const brc_steps *q, const brc_oid *other, brc_oid *root,
                        brc_move_set *moves, brc_error *err)
{
    BRC_TRY(brc_commit_root(q->store, other, root, err));
    return brc_moves_along(moves, q->store, &q->now, other, err);
}

static int take_merged(const brc_steps *q, brc_oid *root, brc_move_set *moves, brc_error *err)
{
    BRC_TRY(brc_merge_tree_put(q->run.tree, root, err));
    return brc_merge_tree_moves(q->run.tree, root, moves, err);
}

/* Fails if the merged version is gone: it may have no name, and a collection may have removed
 * it. */
static int check_other_is_there(const brc_steps *q, const brc_step *step, brc_error *err)
{
    brc_commit *there;
    if (!step->has_other)
        return BRC_OK;
    BRC_TRY(brc_commit_need(&there, q->store, &step->other, err));
    brc_commit_free(there);
    return BRC_OK;
}

static int check_not_collected(brc_steps *q, brc_error *err)
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

static int was_changed(const brc_steps *q, brc_error *err)
{
    return brc_fail(err, BRC_ESTALE,
                    "%s: the %s on branch '%s' was changed while it went on: nothing was done; "
                    "call again",
                    brc_store_path(q->store), q->op, q->branch);
}

/* Fails if the open draft has changed since the steps continued. */
static int check_still_open(brc_steps *q, brc_error *err)
{
    brc_draft_head now;
    BRC_TRY(brc_draft_merge(q->store, q->branch, &now, err));
    q->again = now.id != q->draft.id || now.changes != q->draft.changes;
    return q->again ? was_changed(q, err) : brc_draft_delete(q->store, now.id, err);
}

int brc_branch_has_room(brc_store *store, const char *branch, int *has, brc_error *err)
{
    brc_draft_head own;
    BRC_TRY(brc_draft_shared(store, branch, &own, err));
    *has = own.id == 0;
    if (*has || own.kind != BRC_DRAFT_SHARED || own.saves ||
        !brc_draft_follows(&own, own.has_base, &own.base))
        return BRC_OK;
    return brc_draft_is_empty(store, own.id, has, err);
}

/* Fails if the uncommitted changes are not those that were merged, or if what is to stay
 * uncommitted has no room. */
static int check_same_changes(brc_steps *q, brc_error *err)
{
    brc_draft_head own = {0};
    int has_room = 1;
    if (q->no_commit) { /* else the session has begun its change */
        BRC_TRY(brc_session_follow(q->from, err));
        BRC_TRY(brc_branch_has_room(q->store, q->branch, &has_room, err));
        BRC_TRY(brc_draft_shared(q->store, q->branch, &own, err));
    }
    const brc_draft_head *now = &q->from->draft;
    q->again = now->id != q->folded.draft || now->changes != q->folded.changes || !has_room;
    if (q->again)
        return was_changed(q, err);
    return own.id != 0 ? brc_draft_delete(q->store, own.id, err) : BRC_OK;
}

/* Fails if the branch has moved, or has uncommitted changes now. */
static int check_still_there(brc_steps *q, brc_error *err)
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
    if (q->from != NULL)
        return check_same_changes(q, err);
    BRC_TRY(brc_draft_shared(q->store, q->branch, &now, err));
    if (now.id != 0 && !(now.id == q->draft.id && now.changes == q->draft.changes))
        return brc_fail(err, BRC_ECONFLICT,
                        "branch '%s' was changed before %s: commit these changes, and call again",
                        q->branch, q->doing);
    return now.id != 0 ? brc_draft_delete(q->store, now.id, err) : BRC_OK;
}

/* Bases the branch's draft on the commit that was made. The draft follows the branch, so the
 * commit's changes show as uncommitted. Nothing else names the commit. */
static int leave_uncommitted(const brc_steps *q, brc_error *err)
{
    brc_draft_row row = {.branch = q->branch};
    int64_t id;
    row.draft.kind = BRC_DRAFT_SHARED;
    row.draft.has_base = q->has_now;
    row.draft.base = q->now;
    row.draft.has_tip = q->has_tip;
    row.draft.tip = q->tip;
    row.draft.time_us = q->from != NULL ? q->draft.time_us : brc_now_us();
    return brc_draft_start(q->store, &row, &id, err);
}

/* Ends the uncommitted changes, which are in a commit now. */
static int end_uncommitted(const brc_steps *q, brc_error *err)
{
    brc_session *s = q->from;
    if (q->no_commit)
        return brc_draft_delete(q->store, q->draft.id, err);
    return s->mode == BRC_SESSION_PRIVATE ? brc_session_rest(s, &q->now, err)
                                          : brc_draft_rest(q->store, s->draft.id, err);
}

static int is_at_tip(const brc_steps *q)
{
    return q->has_now == q->has_tip && (!q->has_tip || brc_oid_cmp(&q->now, &q->tip) == 0);
}

static int end_steps(brc_steps *q, brc_error *err)
{
    const int stays = is_at_tip(q);
    BRC_TRY(check_not_collected(q, err));
    q->is_through = 1;
    if (stays && !q->is_open && q->from == NULL)
        return BRC_OK;
    BRC_TRY(check_still_there(q, err));
    if (!stays)
        BRC_TRY(q->no_commit ? leave_uncommitted(q, err)
                             : brc_ref_put(q->store, q->full, &q->now, NULL, q->op, 1,
                                           q->has_tip ? &q->tip : NULL, brc_now_us(), err));
    return q->from != NULL ? end_uncommitted(q, err) : BRC_OK;
}

/* Begins the transaction of a change. If little was stored, the chunks and their names go into one
 * transaction. */
static int begin_change_of(brc_steps *q, brc_error *err)
{
    if (q->from != NULL && !q->no_commit)
        return brc_session_begin(q->from, err);
    if (!q->in_bulk)
        return brc_store_begin(q->store, err);
    BRC_TRY(brc_store_bulk_finish(q->store, err));
    leave_bulk(q);
    return BRC_OK;
}

static int end_change_of(brc_steps *q, int rc, brc_error *err)
{
    if (q->from != NULL && !q->no_commit)
        return brc_session_end(q->from, rc, err);
    q->repo->changes++;
    const int end = brc_store_end(q->store, rc == BRC_OK, rc == BRC_OK ? err : NULL);
    return rc < 0 ? rc : end;
}

static int put_steps(brc_steps *q, const brc_step *step, const brc_oid *root,
                     const brc_move_set *moves, int is_last, int *result, brc_error *err)
{
    BRC_TRY(put_commit(q, step, root, moves, result, err));
    return is_last ? end_steps(q, err) : check_not_collected(q, err);
}

int brc_steps_put(brc_steps *q, const brc_step *step, const brc_oid *root,
                  const brc_move_set *moves, int is_last, int *result, brc_error *err)
{
    BRC_TRY(begin_change_of(q, err));
    return end_change_of(q, put_steps(q, step, root, moves, is_last, result, err), err);
}

static int put_merge_steps(brc_steps *q, const brc_step *step, int is_last, int *result,
                            brc_error *err)
{
    brc_move_set moves = {0};
    brc_oid root;
    int rc;
    BRC_GO(check_not_collected(q, err));
    BRC_GO(check_other_is_there(q, step, err));
    BRC_GO(q->run.tree != NULL ? take_merged(q, &root, &moves, err)
                               : take_version(q, &step->other, &root, &moves, err));
    rc = put_steps(q, step, &root, &moves, is_last, result, err);
done:
    brc_move_set_dispose(&moves);
    return rc;
}

/* Puts a step that was merged without a conflict. */
static int put_merge_of(brc_steps *q, const brc_step *step, int is_last, int *result,
                        brc_error *err)
{
    if (q->run.tree != NULL)
        BRC_TRY(brc_merge_tree_ahead(q->run.tree, err));
    BRC_TRY(begin_change_of(q, err));
    return end_change_of(q, put_merge_steps(q, step, is_last, result, err), err);
}

/* Moves the branch, unless the last step has done so or it is already there. */
static int end_list(brc_steps *q, brc_error *err)
{
    if (q->is_through)
        return BRC_OK;
    BRC_TRY(begin_change_of(q, err));
    return end_change_of(q, end_steps(q, err), err);
}

/* ---- an open step -------------------------------- */

static int put_moves(brc_store *store, int64_t draft, const brc_move_set *moves, brc_error *err)
{
    for (size_t i = 0; i < moves->n; i++)
        BRC_TRY(brc_draft_move_put(store, draft, moves->items[i].to,
                                   brc_move_is_made(&moves->items[i]) ? "" : moves->items[i].from,
                                   err));
    return BRC_OK;
}

/* Puts the row of "/". The root of the empty snapshot gets a document. */
static int put_root(brc_store *store, int64_t draft, const brc_oid *root, brc_error *err)
{
    uint8_t bytes[BRC_ENTRY_MAX];
    brc_entry entry;
    int64_t node;
    BRC_TRY(brc_snapshot_find(store, root, "/", &entry, err));
    if (brc_oid_is_zero(&entry.doc)) {
        brc_span text;
        BRC_TRY(brc_entry_text(store, &entry, &text, err));
        BRC_TRY(brc_store_put(store, BRC_KIND_DOCUMENT, text.data, text.len, &entry.doc, err));
    }
    const size_t len = brc_entry_encode(bytes, &entry, brc_store_id_len(store));
    return brc_draft_node_put(store, draft, "/", bytes, len, &node, err);
}

/* Begins an open step: `given` is its draft, over the commit that ours is. Must be called within a
 * write. */
static int start_open(int64_t *draft, brc_merge_run *run, const brc_draft_row *given,
                      brc_error *err)
{
    brc_store *store = run->how.repo->store;
    brc_draft_row row = *given;
    brc_move_set moves = {0};
    brc_oid root;
    row.draft.kind = BRC_DRAFT_MERGE;
    row.draft.time_us = brc_now_us();
    BRC_TRY(brc_merge_tree_put(run->tree, &root, err));
    BRC_TRY(brc_draft_start(store, &row, draft, err));
    BRC_TRY(put_root(store, *draft, &root, err));
    int rc = brc_merge_tree_moves(run->tree, &root, &moves, err);
    if (rc == BRC_OK)
        rc = put_moves(store, *draft, &moves, err);
    brc_move_set_dispose(&moves);
    if (rc < 0)
        return rc;
    return brc_clash_list_put(store, *draft, brc_merge_tree_clashes(run->tree), run->has_scratch,
                              err);
}

int brc_open_merge_lay(brc_session *s, const brc_oid *root, const brc_move_set *moves,
                       brc_error *err)
{
    brc_store *store = s->repo->store;
    const int64_t draft = s->draft.id;
    BRC_TRY(brc_draft_node_clear(store, draft, "/", err));
    BRC_TRY(put_root(store, draft, root, err));
    s->repo->changes++;
    s->is_read = 0;
    if (moves == NULL)
        return BRC_OK;
    BRC_TRY(brc_draft_move_clear(store, draft, "/", err));
    return put_moves(store, draft, moves, err);
}

/* ---- a conflict -------------------------------- */

/* Writes the plan of an open step, member by member. `out` must be empty before the first. */
static int plan_put_name(brc_buf *out, const char *name, brc_error *err)
{
    return brc_buf_printf(out, err, "%s\"%s\":", out->len == 0 ? "{" : ",", name);
}

static int plan_put_text(brc_buf *out, const char *name, const char *text, brc_error *err)
{
    if (text == NULL)
        return BRC_OK;
    BRC_TRY(plan_put_name(out, name, err));
    return brc_json_quote(out, text, strlen(text), err);
}

static int plan_put_id(brc_buf *out, const char *name, int has, const brc_oid *id, brc_error *err)
{
    char hex[65];
    return has ? plan_put_text(out, name, brc_oid_format(hex, id), err) : BRC_OK;
}

static int plan_put_number(brc_buf *out, const char *name, int64_t number, brc_error *err)
{
    BRC_TRY(plan_put_name(out, name, err));
    return brc_buf_printf(out, err, "%lld", (long long)number);
}

static int plan_put_true(brc_buf *out, const char *name, int is, brc_error *err)
{
    if (!is)
        return BRC_OK;
    BRC_TRY(plan_put_name(out, name, err));
    return brc_buf_text(out, "true", err);
}

/* Writes the favoured side, which counts for the remaining commits too. */
static int plan_put_sides(brc_buf *out, const brc_steps *q, brc_error *err)
{
    if (q->favour == BRC_FAVOUR_NONE)
        return BRC_OK;
    BRC_TRY(plan_put_text(out, "side", q->favour == BRC_FAVOUR_OURS ? "ours" : "theirs", err));
    BRC_TRY(plan_put_name(out, "paths", err));
    BRC_TRY(brc_buf_text(out, "[", err));
    for (size_t i = 0; i < q->npaths; i++) {
        BRC_TRY(brc_buf_text(out, i == 0 ? "" : ",", err));
        BRC_TRY(brc_json_quote(out, q->paths[i], strlen(q->paths[i]), err));
    }
    return brc_buf_text(out, "]", err);
}

/* Writes the commits after this step. */
static int plan_put_todo(brc_buf *out, const brc_steps *q, brc_error *err)
{
    const brc_step *list = q->list;
    char hex[65];
    BRC_TRY(plan_put_name(out, "todo", err));
    BRC_TRY(brc_buf_text(out, "[", err));
    for (size_t i = q->next + 1; i < q->n; i++)
        BRC_TRY(brc_buf_printf(out, err, "%s\"%s\"", i == q->next + 1 ? "" : ",",
                               brc_oid_format(hex, &list[i].at)));
    return brc_buf_text(out, "]", err);
}

static int plan_put_rebase(brc_buf *out, const brc_steps *q, brc_error *err)
{
    BRC_TRY(plan_put_id(out, "onto", 1, &q->onto, err));
    BRC_TRY(plan_put_number(out, "made", (int64_t)q->result.made, err));
    BRC_TRY(plan_put_number(out, "skipped", (int64_t)q->result.skipped, err));
    BRC_TRY(plan_put_sides(out, q, err));
    return plan_put_todo(out, q, err);
}

static int write_plan(brc_buf *out, const brc_steps *q, const brc_step *step, brc_error *err)
{
    const brc_step_change *change = &step->change;
    BRC_TRY(plan_put_text(out, "op", q->op, err));
    BRC_TRY(plan_put_text(out, "rev", q->rev, err));
    BRC_TRY(plan_put_id(out, "at", !brc_oid_is_zero(&step->at), &step->at, err));
    BRC_TRY(plan_put_id(out, "base", change->has_base, &change->base, err));
    BRC_TRY(plan_put_id(out, "theirs", change->has_theirs, &change->theirs, err));
    BRC_TRY(plan_put_true(out, "settled", q->is_settled, err));
    BRC_TRY(plan_put_text(out, "message", q->message, err));
    BRC_TRY(plan_put_text(out, "author", q->author, err));
    if (q->time_us != 0)
        BRC_TRY(plan_put_number(out, "time", q->time_us, err));
    BRC_TRY(plan_put_number(out, "conflicts",
                            (int64_t)brc_merge_tree_clashes(q->run.tree)->n, err));
    BRC_TRY(plan_put_true(out, "concat", q->is_concat, err));
    if (q->is_rebase)
        BRC_TRY(plan_put_rebase(out, q, err));
    BRC_TRY(brc_buf_text(out, "}", err));
    return brc_buf_terminate(out, err);
}

/* Keeps the objects that the plan names from garbage collection. */
static int keep_named(const brc_steps *q, const brc_step *step, brc_error *err)
{
    const brc_step *list = q->list;
    if (step->change.has_base)
        BRC_TRY(brc_gc_keep_commit(q->store, &step->change.base, err));
    if (step->change.has_theirs)
        BRC_TRY(brc_gc_keep_commit(q->store, &step->change.theirs, err));
    for (size_t i = q->next + 1; i < q->n; i++)
        BRC_TRY(brc_gc_keep_commit(q->store, &list[i].at, err));
    return BRC_OK;
}

static int keep_steps(brc_steps *q, const brc_step *step, const char *plan, brc_error *err)
{
    brc_draft_row row = {.branch = q->branch, .plan = plan, .has_other = step->has_other,
                         .other = step->other};
    row.draft.has_base = q->has_now;
    row.draft.base = q->now;
    row.draft.has_tip = q->has_tip;
    row.draft.tip = q->tip;
    BRC_TRY(check_not_collected(q, err));
    BRC_TRY(check_other_is_there(q, step, err));
    BRC_TRY(check_still_there(q, err));
    BRC_TRY(keep_named(q, step, err));
    return start_open(&q->result.draft, &q->run, &row, err);
}

/* Keeps a step in conflict open on the branch. */
static int keep_open(brc_steps *q, const brc_step *step, brc_error *err)
{
    brc_buf plan = BRC_BUF_INIT;
    int rc;
    BRC_GO(write_plan(&plan, q, step, err));
    BRC_GO(brc_merge_tree_ahead(q->run.tree, err));
    BRC_GO(begin_change_of(q, err));
    rc = end_change_of(q, keep_steps(q, step, (const char *)plan.data, err), err);
done:
    brc_buf_dispose(&plan);
    return rc;
}

static int stop_at(brc_steps *q, const brc_step *step, brc_error *err)
{
    q->result.result = BRC_PICK_CONFLICT;
    q->result.at = step->at;
    q->result.left = q->n - 1 - q->next;
    q->result.conflicts = brc_merge_tree_clashes(q->run.tree)->n;
    if (q->may_keep)
        return keep_open(q, step, err);
    q->result.made = q->result.skipped = q->result.left = 0; /* none of these commits stays */
    return BRC_OK;
}

/* ---- the list -------------------------------- */

/* Says whether the commit of a rebase already has the right parent, so that it stays as it is. */
static int stays_as_it_is(const brc_steps *q, const brc_step *step)
{
    return q->is_rebase && q->result.made + q->result.skipped == 0 && step->like.nparents == 1 &&
           brc_oid_cmp(&step->like.parents[0], &q->now) == 0;
}

/* Checks whether the commit of a rebase is empty. A commit that was empty from the start is kept;
 * one whose change is already there is not. */
static int was_empty(const brc_steps *q, const brc_step *step, int *empty, brc_error *err)
{
    brc_oid root;
    *empty = step->keep_empty;
    if (!q->is_rebase || !step->change.has_base)
        return BRC_OK;
    BRC_TRY(brc_commit_root(q->store, &step->change.base, &root, err));
    *empty = brc_oid_cmp(&root, &step->like.root) == 0;
    return BRC_OK;
}

static int run_step(brc_steps *q, brc_step *step, int *result, brc_error *err)
{
    *result = BRC_STEP_DONE;
    if (stays_as_it_is(q, step))
        return brc_steps_go_to(q, &step->at, err);
    BRC_TRY(was_empty(q, step, &step->keep_empty, err));
    if (!step->is_merged)
        BRC_TRY(brc_steps_merge(q, step, err));
    if (q->run.tree != NULL && brc_merge_tree_clashes(q->run.tree)->n > 0) {
        *result = BRC_STEP_CONFLICT;
        return stop_at(q, step, err);
    }
    BRC_TRY(put_merge_of(q, step, q->next + 1 == q->n, result, err));
    q->result.made += *result == BRC_STEP_DONE;
    q->result.skipped += *result == BRC_STEP_EMPTY;
    return BRC_OK;
}

static void tell_end(brc_steps *q)
{
    brc_pick_result *r = &q->result;
    r->result = is_at_tip(q)                             ? BRC_PICK_NOTHING
                : q->no_commit                           ? BRC_PICK_UNCOMMITTED
                : q->is_rebase && q->n == 0 && !q->is_open ? BRC_PICK_FAST_FORWARD
                                                         : BRC_PICK_COMMITTED;
    if (q->no_commit ? q->has_tip : q->has_now)
        r->commit = q->no_commit ? q->tip : q->now;
    if (!q->is_rebase) {
        r->made = r->result == BRC_PICK_COMMITTED;
        r->skipped = 0;
    }
}

int brc_steps_run(brc_steps *q, brc_error *err)
{
    for (q->next = 0; q->next < q->n; q->next++) {
        int result;
        BRC_TRY(run_step(q, (brc_step *)q->list + q->next, &result, err));
        if (result == BRC_STEP_CONFLICT)
            return BRC_OK;
    }
    BRC_TRY(end_list(q, err));
    tell_end(q);
    return BRC_OK;
}

int brc_steps_answer(brc_pick_result *out, brc_iter **conflicts, brc_steps *q, brc_error *err)
{
    const int has = q->result.result == BRC_PICK_CONFLICT && q->run.tree != NULL;
    BRC_TRY(brc_sized_out(out, &q->result, sizeof(q->result), offsetof(brc_pick_result, conflicts),
                          "brc_pick_result", err));
    return conflicts != NULL
               ? brc_conflict_list(conflicts, has ? brc_merge_tree_clashes(q->run.tree) : NULL,
                                   q->repo, NULL, err)
               : BRC_OK;
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
