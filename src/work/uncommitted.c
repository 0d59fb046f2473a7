#include "uncommitted.h"

#include <stdlib.h>
#include <string.h>

#include "../base/json.h"
#include "../base/process.h"
#include "../history/commit.h"
#include "adopt.h"
#include "bulk_write.h"
#include "fold.h"

/* ---- reading a single state -------------------------------- */

/* Reads that may be paused, before one with the lock held. */
enum { TRIES = 3 };

typedef struct session_state {
    brc_draft_head draft;
    int has_tip;
    brc_oid tip;
} session_state;

static int state_of(brc_session *s, session_state *out, brc_error *err)
{
    brc_oid root;
    BRC_TRY(brc_session_follow(s, err));
    out->draft = s->draft;
    return brc_session_tip(s, &out->has_tip, &out->tip, &root, err);
}

static int same_state(const session_state *a, const session_state *b)
{
    return a->draft.id == b->draft.id && a->draft.changes == b->draft.changes &&
           brc_draft_same_version(&a->draft, &b->draft) && a->has_tip == b->has_tip &&
           (!a->has_tip || brc_oid_cmp(&a->tip, &b->tip) == 0);
}

static int read_once(brc_session *s, brc_steady_fn run, void *ctx, int *same, brc_error *err)
{
    session_state before, after;
    brc_error found = BRC_ERROR_INIT;
    BRC_TRY(state_of(s, &before, err));
    int rc = run(ctx, &found);
    BRC_TRY(state_of(s, &after, err));
    *same = same_state(&before, &after);
    if (rc < 0 && err != NULL)
        brc_error_copy(err, &found);
    return rc;
}

static int read_held(brc_session *s, brc_steady_fn run, void *ctx, int *same, brc_error *err)
{
    brc_store_hold_read(s->repo->store, 1);
    int rc = read_once(s, run, ctx, same, err);
    brc_store_hold_read(s->repo->store, 0);
    return rc;
}

int brc_session_read_steady(brc_session *s, brc_steady_fn run, void *ctx, brc_error *err)
{
    brc_store *store = s->repo->store;
    int rc = BRC_OK, same = 0;
    for (int i = 0; i <= TRIES && !same; i++) {
        same = 1; /* if the read fails, nothing is known: do not try again */
        BRC_TRY(brc_store_begin_read(store, err));
        rc = i < TRIES ? read_once(s, run, ctx, &same, err) : read_held(s, run, ctx, &same, err);
        brc_store_end_read(store);
    }
    return rc;
}

/* ---- is anything uncommitted? -------------------------------- */

typedef struct clean_check {
    brc_session *s;
    int clean;
} clean_check;

/* Compares the session with what its changes follow: a branch that has moved since then also has
 * the changes of others. */
static int compare_with_start(void *ctx, brc_error *err)
{
    clean_check *c = ctx;
    brc_session *s = c->s;
    brc_store *store = s->repo->store;
    brc_fold how = {.way = BRC_FOLD_SHORT_READS};
    brc_oid start = {{0}}, root;
    int keys;
    c->clean = s->draft.kind != BRC_DRAFT_MERGE;
    if (s->draft.id == 0 || !c->clean)
        return BRC_OK;
    brc_store_scratch_end(store); /* what an earlier try has left */
    brc_store_scratch_begin(store);
    if (s->draft.has_tip)
        BRC_TRY(brc_commit_root(store, &s->draft.tip, &start, err));
    BRC_TRY(brc_snapshot_normal(store, &start, err));
    BRC_TRY(brc_session_fold(s, &how, &root, err));
    BRC_TRY(brc_draft_key_any(store, s->draft.id, &keys, err));
    c->clean = !keys && brc_oid_cmp(&root, &start) == 0;
    return BRC_OK;
}

int brc_session_clean(int *clean, brc_session *s, brc_error *err)
{
    clean_check c = {s, 1};
    *clean = 1;
    if (s->mode == BRC_SESSION_AT)
        return BRC_OK;
    int rc = brc_session_read_steady(s, compare_with_start, &c, err);
    brc_store_scratch_end(s->repo->store);
    *clean = c.clean;
    return rc;
}

/* ---- dropped -------------------------------- */

/* Brings a child back to the state in which it began. */
static int go_back_to_parent(brc_store *store, const brc_draft_row *row, brc_error *err)
{
    brc_fork_keys keys = {0};
    int rc;
    BRC_GO(brc_fork_keys_parse(&keys, row->plan, err));
    BRC_GO(brc_draft_empty(store, row->draft.id, err));
    BRC_GO(brc_draft_lay(store, row->draft.id, row->has_other ? &row->other : NULL, err));
    rc = brc_fork_keys_put(&keys, store, row->draft.id, err);
done:
    brc_fork_keys_dispose(&keys);
    return rc;
}

static int discard_child(brc_session *s, brc_error *err)
{
    brc_draft_row *rows;
    size_t n;
    BRC_TRY(brc_draft_list(s->repo->store, BRC_DRAFTS_ONE, s->draft.id, &rows, &n, err));
    const int rc = n > 0 ? go_back_to_parent(s->repo->store, rows, err) : BRC_OK;
    brc_draft_rows_free(rows, n);
    return rc;
}

/* Goes back to the state of the branch, or of the parent. */
static int discard_steps(brc_session *s, brc_error *err)
{
    brc_store *store = s->repo->store;
    if (s->mode != BRC_SESSION_PRIVATE)
        return brc_draft_delete(store, s->draft.id, err);
    if (s->draft.parent != 0)
        return discard_child(s, err);
    return brc_session_rest(s, s->draft.has_tip ? &s->draft.tip : NULL, err);
}

int brc_session_discard(brc_session *s, brc_error *err)
{
    BRC_TRY(brc_bulk_check_none(s, "nothing can be dropped", err));
    BRC_TRY(brc_session_begin(s, err));
    int rc = discard_steps(s, err);
    s->is_read = 0;
    return brc_session_end(s, rc, err);
}

/* Finishes the session within a transaction. A draft that holds nothing that the branch lacks is
 * dropped, too. */
static int finish_session(brc_session *s, int clean, const brc_draft_head *looked_at,
                          brc_error *err)
{
    brc_store *store = s->repo->store;
    brc_draft_head left;
    BRC_TRY(brc_session_follow(s, err));
    const int64_t draft = s->draft.id;
    if (clean && brc_draft_unchanged(&s->draft, looked_at))
        BRC_TRY(brc_draft_advance(store, draft, s->draft.has_tip ? &s->draft.tip : NULL, err));
    BRC_TRY(brc_draft_end(store, draft, err));
    BRC_TRY(brc_draft_get(store, draft, &left, err));
    s->is_resting |= left.id == 0;
    s->is_read = 0;
    return BRC_OK;
}

int brc_session_finish(brc_session *s, brc_error *err)
{
    int clean;
    BRC_TRY(brc_session_can_change(s, err));
    if (s->mode != BRC_SESSION_PRIVATE || s->draft.parent != 0)
        return brc_fail(err, BRC_EMISUSE, "only a private session that is not the child of "
                                          "another can be finished");
    BRC_TRY(brc_bulk_check_none(s, "the session cannot be finished", err));
    BRC_TRY(brc_session_clean(&clean, s, err));
    const brc_draft_head looked_at = s->draft;
    if (looked_at.id == 0)
        return BRC_OK;
    BRC_TRY(brc_store_begin(s->repo->store, err));
    int rc = finish_session(s, clean, &looked_at, err);
    s->repo->changes++;
    return brc_end_with(s->repo, rc, err);
}
