#include "replay.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "../base/alloc.h"
#include "../base/process.h"
#include "../base/sized.h"
#include "../history/commit.h"
#include "../store/change.h"
#include "../store/collect.h"
#include "../work/session_nodes.h"
#include "../zarr/key/key_rows.h"

/* ==== conflicts ================================ */

typedef struct conflict_iter {
    brc_clash_list list;
    size_t at;
    brc_buf key;
    brc_conflict now; /* the conflict that was returned last */
} conflict_iter;

static void conflict_iter_dispose(void *state)
{
    conflict_iter *it = state;
    brc_clash_list_dispose(&it->list);
    brc_buf_dispose(&it->key);
}

int brc_conflict_list(brc_iter **out, brc_clash_list *list, brc_error *err)
{
    static const brc_buf empty = BRC_BUF_INIT;
    BRC_TRY(brc_iter_new(out, BRC_ITER_CONFLICTS, sizeof(conflict_iter), conflict_iter_dispose,
                         err));
    conflict_iter *it = brc_iter_state(*out);
    it->key = empty;
    if (list != NULL) {
        it->list = *list;
        memset(list, 0, sizeof(*list));
    }
    return BRC_OK;
}

int brc_conflict_list_open(brc_iter **out, brc_clash_list *list, brc_error *err)
{
    brc_clash_list settled = {0};
    size_t open = 0;
    void *p;
    BRC_TRY(brc_new_array(&p, list->n + 1, sizeof(brc_clash), err));
    settled.items = p;
    for (size_t i = 0; i < list->n; i++) {
        if (list->items[i].settled == 0)
            list->items[open++] = list->items[i];
        else
            settled.items[settled.n++] = list->items[i];
    }
    list->n = open;
    brc_clash_list_dispose(&settled);
    return brc_conflict_list(out, list, err);
}

static const char *conflict_kind(const brc_clash *clash)
{
    if (strcmp(clash->member, BRC_CLASH_CHUNK) == 0)
        return "chunk";
    if (strcmp(clash->member, BRC_CLASH_PLACE) == 0)
        return "moved";
    if (strcmp(clash->member, BRC_CLASH_STORAGE) == 0 || strcmp(clash->member, "/codecs") == 0)
        return "storage";
    if (*clash->member != '\0')
        return "metadata";
    if (clash->base.data == NULL)
        return "added";
    return clash->ours.data == NULL || clash->theirs.data == NULL ? "deleted" : "replaced";
}

static int conflict_key(const brc_clash *clash, brc_buf *out, const char **key, brc_error *err)
{
    uint64_t index[BRC_MAX_NDIM];
    *key = *clash->member == '/' ? clash->member : NULL;
    if (strcmp(clash->member, BRC_CLASH_CHUNK) != 0)
        return BRC_OK;
    out->len = 0;
    const int ndim = brc_chunk_key_decode(clash->key.data, clash->key.len, index);
    BRC_TRY(brc_buf_text(out, "c", err));
    for (int i = 0; i < ndim; i++)
        BRC_TRY(brc_buf_printf(out, err, "/%" PRIu64, index[i]));
    *key = (const char *)out->data;
    return brc_buf_terminate(out, err);
}

/* Returns how a conflict is settled, from the state in its row; a conflict of a new merge is
 * open. */
static int settled_as(int state)
{
    static const int as[] = {0, BRC_MERGE_OURS, BRC_MERGE_THEIRS, 1};
    return state >= 0 && state <= 3 ? as[state] : 0;
}

int brc_conflicts_next(brc_iter *it, const brc_conflict **out, brc_error *err)
{
    *out = NULL;
    BRC_TRY(brc_iter_check(it, BRC_ITER_CONFLICTS, err));
    conflict_iter *list = brc_iter_state(it);
    if (list->at == list->list.n)
        return 0;
    const brc_clash *clash = &list->list.items[list->at++];
    list->now = (brc_conflict){.path = clash->path, .kind = conflict_kind(clash),
                               .settled = settled_as(clash->settled),
                               .draft = clash->draft};
    BRC_TRY(conflict_key(clash, &list->key, &list->now.key, err));
    list->now.key = strcmp(clash->member, BRC_CLASH_CHUNK) == 0 ? (const char *)list->key.data
                                                                : list->now.key;
    *out = &list->now;
    return 1;
}

/* ==== replay ================================ */

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

/* Reads the sides: the base is the commit where the changes began, and ours is the branch's tip.
 * Must be called within a read. */
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

/* Folds the changes into a snapshot. It is written, because whole nodes are taken by id. */
static int fold_changes(brc_replay *r, brc_error *err)
{
    BRC_TRY(brc_fold_whole(r->s, &r->folded, err));
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
                    "them %s in conflict with its new commits, first at %.300s: they are kept; "
                    "restore the parts in conflict from '%s', and commit again",
                    brc_store_path(r->store), r->s->branch, (long long)r->draft.id, list->n,
                    list->n == 1 ? "is" : "are", list->items[0].path, r->s->branch);
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
    rc = r->s->mode == BRC_SESSION_PRIVATE
             ? brc_session_rest(r->s, out, err)
             : brc_draft_rest(r->store, r->s->draft.id, err);
    r->s->is_read = 0;
done:
    brc_move_set_dispose(&moves);
    free(full);
    return rc;
}

/* Says whether tip and draft are still those that were merged. Must be called within a change. */
static int is_unmoved(const brc_replay *r, brc_error *err)
{
    const brc_draft_head *now = &r->s->draft;
    int has;
    brc_oid tip, root;
    BRC_TRY(brc_session_tip(r->s, &has, &tip, &root, err));
    return has == r->has_tip && brc_oid_cmp(&tip, &r->tip) == 0 && now->id == r->folded.draft &&
           now->changes == r->folded.changes;
}

/* Says whether no collection has begun since: nothing names the stored objects yet, so a collection
 * may have removed them. */
static int is_uncollected(const brc_replay *r, brc_error *err)
{
    int64_t last;
    BRC_TRY(brc_gc_last(r->store, &last, err));
    return last == r->collected;
}

static int replay_is_current(const brc_replay *r, brc_error *err)
{
    const int same = is_unmoved(r, err);
    return same > 0 ? is_uncollected(r, err) : same;
}

static int none_is_left(const brc_replay *r, brc_error *err)
{
    return brc_fail(err, BRC_EMISUSE, "nothing to commit on branch '%s': somebody else has "
                                      "committed or dropped the uncommitted changes",
                    r->s->branch);
}

/* Begins anew: others may have been first in a try before. */
static int replay_work(brc_replay *r, brc_error *err)
{
    brc_session *s = r->s;
    brc_replay_end(r);
    brc_replay_start(r, s);
    BRC_TRY(brc_store_begin_read(r->store, err));
    int rc = brc_gc_last(r->store, &r->collected, err);
    brc_store_end_read(r->store);
    BRC_TRY(rc);
    BRC_TRY(fold_changes(r, err));
    return brc_merge_work(&r->run, err);
}

int brc_replay_work_commit(brc_replay *r, brc_error *err)
{
    BRC_TRY(replay_work(r, err));
    if (r->draft.id == 0)
        return none_is_left(r, err);
    if (brc_merge_tree_clashes(r->run.tree)->n > 0)
        return in_the_way(r, err);
    return brc_merge_tree_ahead(r->run.tree, err);
}

int brc_replay_commit(brc_replay *r, const brc_commit *like, int may_be_empty, brc_oid *out,
                      brc_error *err)
{
    BRC_TRY(brc_session_begin(r->s, err));
    const int same = replay_is_current(r, err);
    int rc = same > 0 ? put_replayed(r, like, may_be_empty, out, err) : same;
    rc = brc_session_end(r->s, rc, err);
    if (rc < 0 || same == 0)
        r->s->is_read = 0;
    return rc < 0 || same > 0 ? rc : BRC_CHANGE_AGAIN;
}

/* ---- a draft that is adopted -------------------------------- */

/* Says whether the branch has no changes of its own that would have to be combined with the
 * draft. */
static int branch_is_free(brc_replay *r, int *is, brc_error *err)
{
    brc_draft_head own;
    BRC_TRY(brc_draft_shared(r->store, r->s->branch, &own, err));
    *is = own.id == 0;
    if (*is || own.kind != BRC_DRAFT_SHARED || own.saves ||
        !brc_draft_follows(&own, own.has_base, &own.base))
        return BRC_OK;
    return brc_draft_is_empty(r->store, own.id, is, err);
}

/* Checks whether the draft is based on an older commit than its branch's. Loose keys are not part
 * of a version: a draft with loose keys is adopted as it is. */
static int look_at_left(brc_replay *r, int *apt, brc_error *err)
{
    brc_session *s = r->s;
    int keys, has;
    BRC_TRY(brc_session_tip(s, &has, &r->tip, &r->run.in.ours, err));
    BRC_TRY(brc_draft_key_any(r->store, s->draft.id, &keys, err));
    BRC_TRY(branch_is_free(r, apt, err));
    *apt &= !keys && s->draft.kind == BRC_DRAFT_PRIVATE &&
            !brc_draft_follows(&s->draft, has, &r->tip);
    return BRC_OK;
}

static int drop_resting(brc_replay *r, brc_error *err)
{
    brc_draft_head own;
    BRC_TRY(brc_draft_shared(r->store, r->s->branch, &own, err));
    return own.id != 0 ? brc_draft_delete(r->store, own.id, err) : BRC_OK;
}

/* Makes a commit of the merged result, which no ref names, and bases the branch's draft on it. The
 * draft follows the tip, so the result shows as uncommitted. No chunk row is copied. */
static int lay_over_tip(brc_replay *r, brc_error *err)
{
    brc_commit commit = {.message = "uncommitted", .author = "unknown", .time_us = brc_now_us()};
    brc_draft_row row = {.branch = r->s->branch};
    brc_move_set moves = {0};
    int64_t id;
    int rc;
    commit.parents = &r->tip;
    commit.nparents = r->has_tip ? 1 : 0;
    BRC_GO(drop_resting(r, err));
    BRC_GO(brc_merge_tree_put(r->run.tree, &commit.root, err));
    if (brc_oid_cmp(&commit.root, &r->run.in.ours) != 0) {
        BRC_GO(brc_merge_tree_moves(r->run.tree, &commit.root, &moves, err));
        BRC_GO(brc_commit_put(r->store, &commit, &moves, err));
        row.draft = (brc_draft_head){.kind = BRC_DRAFT_SHARED, .has_base = 1, .base = commit.id,
                                     .has_tip = r->has_tip, .tip = r->tip,
                                     .time_us = r->draft.time_us};
        BRC_GO(brc_draft_start(r->store, &row, &id, err));
    }
    rc = brc_draft_delete(r->store, r->draft.id, err);
done:
    brc_move_set_dispose(&moves);
    return rc;
}

/* Merges. Leaves a draft as it is if it follows the tip or conflicts with it. */
static int adopt_work(void *ctx, brc_error *err)
{
    brc_replay *r = ctx;
    int apt;
    BRC_TRY(brc_session_begin_read(r->s, err));
    const int rc = look_at_left(r, &apt, err);
    brc_session_end_read(r->s);
    if (rc < 0 || !apt)
        return rc < 0 ? rc : BRC_CHANGE_OTHER;
    BRC_TRY(replay_work(r, err));
    return brc_merge_tree_clashes(r->run.tree)->n > 0 ? BRC_CHANGE_OTHER
                                                      : brc_merge_tree_ahead(r->run.tree, err);
}

static int adopt_commit(void *ctx, int insists, brc_error *err)
{
    brc_replay *r = ctx;
    int is_free;
    (void)insists;
    BRC_TRY(brc_session_follow(r->s, err));
    BRC_TRY(branch_is_free(r, &is_free, err));
    const int same = replay_is_current(r, err);
    if (same <= 0 || !is_free)
        return same < 0 ? same : BRC_CHANGE_AGAIN;
    return lay_over_tip(r, err);
}

/* Also leaves the draft as it is if the time to wait is over. */
int brc_replay_adopt(int *done, breccia *repo, const char *branch, int64_t draft, brc_error *err)
{
    brc_session *s;
    brc_replay r;
    const brc_file_change change = {.about = branch, .ctx = &r, .work = adopt_work,
                                    .commit = adopt_commit};
    *done = 0;
    BRC_TRY(brc_session_of_draft(&s, repo, branch, draft, err));
    brc_replay_start(&r, s);
    const int rc = brc_change_run(repo->store, &change, err);
    brc_replay_end(&r);
    repo->changes++;
    brc_session_free(s);
    *done = rc == BRC_OK;
    return rc < 0 ? rc : BRC_OK;
}

/* ---- the public function -------------------------------- */

static int list_in_the_way(brc_replay *r, brc_iter **out, brc_error *err)
{
    brc_session *s = r->s;
    BRC_TRY(brc_session_begin_read(s, err));
    int has, rc = brc_session_tip(s, &has, &r->tip, &r->run.in.ours, err);
    const int moved = s->draft.id != 0 && s->draft.kind != BRC_DRAFT_MERGE &&
                      !brc_draft_follows(&s->draft, has, &r->tip);
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
    BRC_TRY(brc_session_can_change(s, err));
    if (brc_store_in_write(s->repo->store))
        return brc_fail(err, BRC_EMISUSE, "conflicts cannot be listed within a transaction");
    brc_replay_start(&r, s);
    int rc = list_in_the_way(&r, out, err);
    brc_replay_end(&r);
    return rc;
}
