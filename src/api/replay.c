#include "replay.h"

#include <stdlib.h>
#include <string.h>

#include "../base/clock.h"
#include "../base/iter.h"
#include "../history/commit.h"
#include "../store/collect.h"
#include "../zarr/key_rows.h"
#include "../zarr/node_moves.h"
#include "conflicts.h"

void brc_replay_start(brc_replay *r, brc_session *s)
{
    const brc_merge_run none = BRC_MERGE_RUN_INIT;
    memset(r, 0, sizeof(*r));
    r->s = s;
    r->store = s->repo->store;
    r->run = none;
    r->run.how.repo = s->repo;
}

void brc_replay_end(brc_replay *r)
{
    brc_merge_run_dispose(&r->run);
    brc_folded_dispose(&r->folded);
}

/* ---- what is merged -------------------------------- */

/* In a read: what the changes began from is the base, and the branch's tip is ours. */
static int read_replay(brc_replay *r, brc_error *err)
{
    brc_session *s = r->s;
    const brc_oid *began = &s->draft.tip;
    r->draft = s->draft;
    memset(&r->run.in.base, 0, sizeof(r->run.in.base));
    BRC_TRY(brc_session_tip(s, &r->has_tip, &r->tip, &r->run.in.ours, err));
    BRC_TRY(brc_keys_ready(s, err));
    if (s->draft.has_tip)
        BRC_TRY(brc_commit_root(r->store, began, &r->run.in.base, err));
    if (s->draft.has_tip && r->has_tip)
        BRC_TRY(brc_moves_along(&r->run.ours_moves, r->store, began, &r->tip, err));
    r->run.in.theirs = r->folded.root;
    return brc_session_moves(&r->run.theirs_moves, s, s->draft.has_tip, began, &r->run.in.base,
                             &r->run.in.theirs, err);
}

/* The changes as a snapshot: written, because what is taken whole is taken by its id. */
static int fold_changes(brc_replay *r, brc_error *err)
{
    do
        BRC_TRY(brc_fold_ahead(r->s, 1, &r->folded, err));
    while (!r->folded.has_root);
    BRC_TRY(brc_session_begin_read(r->s, err));
    int rc = read_replay(r, err);
    brc_session_end_read(r->s);
    return rc;
}

static int in_the_way(const brc_replay *r, brc_error *err)
{
    const brc_clash_list *list = brc_merge_tree_clashes(r->run.tree);
    return brc_fail(err, BRC_ECONFLICT,
                    "%s: branch '%s' has moved since these changes began (draft %lld), and %zu of "
                    "them are in conflict with what is new there, first at %.300s: they are kept",
                    brc_store_path(r->store), r->s->branch, (long long)r->draft.id, list->n,
                    list->items[0].path);
}

/* ---- the commit -------------------------------- */

static int put_replayed(brc_replay *r, const brc_commit *like, int may_be_empty, brc_oid *out,
                        brc_error *err)
{
    brc_commit commit = *like;
    brc_move_set moves = {0};
    char *full = NULL;
    int rc;
    commit.parents = &r->tip;
    commit.nparents = r->has_tip ? 1 : 0;
    *out = r->tip;
    BRC_GO(brc_merge_tree_put(r->run.tree, &commit.root, err));
    if (may_be_empty || brc_oid_cmp(&commit.root, &r->run.in.ours) != 0) {
        BRC_GO(brc_merge_tree_moves(r->run.tree, &commit.root, &moves, err));
        BRC_GO(brc_commit_put(r->store, &commit, &moves, err));
        BRC_GO(brc_ref_full(&full, "heads", r->s->branch, err));
        BRC_GO(brc_ref_put(r->store, full, &commit.id, NULL, "commit", 1,
                           r->has_tip ? &r->tip : NULL, brc_now_us(), err));
        *out = commit.id;
    }
    rc = brc_draft_advance(r->store, r->s->draft.id, out, err);
    r->s->is_read = 0;
done:
    brc_move_set_dispose(&moves);
    free(full);
    return rc;
}

/* Within a change: whether tip and draft are still what was merged. */
static int is_unmoved(const brc_replay *r, brc_error *err)
{
    const brc_draft_head *now = &r->s->draft;
    int has;
    brc_oid tip, root;
    BRC_TRY(brc_session_tip(r->s, &has, &tip, &root, err));
    return has == r->has_tip && brc_oid_cmp(&tip, &r->tip) == 0 && now->id == r->folded.draft &&
           now->changes == r->folded.changes;
}

/* What was stored so far is named by nothing: a collection that has begun since may have taken
 * it. */
static int is_uncollected(const brc_replay *r, brc_error *err)
{
    int64_t last;
    BRC_TRY(brc_gc_last(r->store, &last, err));
    return last == r->collected;
}

int brc_replay_is_current(const brc_replay *r, brc_error *err)
{
    const int same = is_unmoved(r, err);
    return same > 0 ? is_uncollected(r, err) : same;
}

/* 1: it is done; 0: others were first. */
static int finish_replay(brc_replay *r, const brc_commit *like, int may_be_empty, brc_oid *out,
                         brc_error *err)
{
    BRC_TRY(brc_session_begin(r->s, err));
    const int same = brc_replay_is_current(r, err);
    int rc = same > 0 ? put_replayed(r, like, may_be_empty, out, err) : same;
    rc = brc_session_end(r->s, rc, err);
    if (rc < 0 || same == 0)
        r->s->is_read = 0;
    return rc < 0 ? rc : same;
}

int brc_replay_work(brc_replay *r, brc_error *err)
{
    BRC_TRY(brc_store_begin_read(r->store, err));
    int rc = brc_gc_last(r->store, &r->collected, err);
    brc_store_end_read(r->store);
    BRC_TRY(rc);
    BRC_TRY(fold_changes(r, err));
    return brc_merge_work(&r->run, err);
}

static int replay_once(brc_replay *r, const brc_commit *like, int may_be_empty, brc_oid *out,
                       brc_error *err)
{
    BRC_TRY(brc_replay_work(r, err));
    if (brc_merge_tree_clashes(r->run.tree)->n > 0)
        return in_the_way(r, err);
    BRC_TRY(brc_merge_tree_ahead(r->run.tree, err));
    return finish_replay(r, like, may_be_empty, out, err);
}

/* Work is lost where others are first; each time one of them has got on. */
int brc_replay_commit(brc_oid *out, brc_session *s, const brc_commit *like, int may_be_empty,
                      brc_error *err)
{
    brc_replay r;
    int rc = 0;
    for (int i = 0; rc == 0 && i < BRC_REPLAY_TRIES; i++) {
        brc_replay_start(&r, s);
        rc = replay_once(&r, like, may_be_empty, out, err);
        brc_replay_end(&r);
    }
    if (rc == 0)
        return brc_fail(err, BRC_ESTALE,
                        "%s: branch '%s' moved again and again while these changes (draft %lld) "
                        "were merged onto it: they are kept; commit again",
                        brc_store_path(s->repo->store), s->branch, (long long)s->draft.id);
    return rc < 0 ? rc : BRC_OK;
}

/* ---- the public function -------------------------------- */

static int list_in_the_way(brc_replay *r, brc_iter **out, brc_error *err)
{
    brc_session *s = r->s;
    BRC_TRY(brc_session_begin_read(s, err));
    int has, rc = brc_session_tip(s, &has, &r->tip, &r->run.in.ours, err);
    const int moved = s->draft.id != 0 && !brc_draft_follows(&s->draft, has, &r->tip);
    brc_session_end_read(s);
    BRC_TRY(rc);
    if (moved) {
        BRC_TRY(fold_changes(r, err));
        BRC_TRY(brc_merge_work(&r->run, err));
    }
    return brc_conflict_list(out, moved ? brc_merge_tree_clashes(r->run.tree) : NULL, err);
}

int brc_session_conflicts(brc_iter **out, brc_session *s, brc_error *err)
{
    brc_replay r;
    *out = NULL;
    if (s->mode != BRC_SESSION_PRIVATE)
        return brc_fail(err, BRC_EMISUSE,
                        "only a private session is merged when it commits: open one");
    if (brc_store_in_write(s->repo->store))
        return brc_fail(err, BRC_EMISUSE, "conflicts are not looked for within a transaction");
    brc_replay_start(&r, s);
    int rc = list_in_the_way(&r, out, err);
    brc_replay_end(&r);
    return rc;
}
