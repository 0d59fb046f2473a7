#include "fork.h"

#include <stdlib.h>
#include <string.h>

#include "../base/clock.h"
#include "../base/process.h"
#include "../history/commit.h"
#include "../zarr/bulk_write.h"
#include "../zarr/fork_keys.h"
#include "../zarr/key_rows.h"
#include "../zarr/node_moves.h"
#include "../zarr/session_draft.h"

/* ---- what a parent shows, as a commit -------------------------------- */

int brc_fork_since(brc_session *s, int *has, brc_oid *since, brc_error *err)
{
    brc_draft_child child = {0};
    int any;
    BRC_TRY(brc_draft_has_children(s->repo->store, s->draft.id, &any, err));
    *has = any ? s->draft.has_base : s->draft.has_tip;
    *since = any ? s->draft.base : s->draft.tip;
    if (any || !s->draft.is_child)
        return BRC_OK;
    int rc = brc_draft_child_read(s->repo->store, s->draft.id, &child, err);
    *has = child.has_fork;
    *since = child.fork;
    brc_draft_child_dispose(&child);
    return rc < 0 ? rc : BRC_OK;
}

static int put_shown(brc_session *s, int has, const brc_oid *since, const brc_oid *root,
                     const brc_move_set *moves, brc_oid *out, brc_error *err)
{
    brc_commit commit = {.message = "uncommitted", .author = "unknown", .time_us = brc_now_us()};
    brc_oid parent = *since;
    commit.parents = &parent;
    commit.nparents = has ? 1 : 0;
    commit.root = *root;
    BRC_TRY(brc_commit_put(s->repo->store, &commit, moves, err));
    *out = commit.id;
    return BRC_OK;
}

int brc_fork_lay(brc_session *s, int has, const brc_oid *since, const brc_oid *root,
                 const brc_move_set *moves, brc_error *err)
{
    brc_oid base = s->draft.base;
    int has_base = s->draft.has_base;
    if (!has_base || brc_oid_cmp(root, &s->base) != 0) {
        BRC_TRY(put_shown(s, has, since, root, moves, &base, err));
        has_base = 1;
    }
    s->is_read = 0;
    BRC_TRY(brc_draft_lay(s->repo->store, s->draft.id, &base, err));
    s->draft.has_base = 1;
    s->draft.base = base;
    s->base = *root;
    return BRC_OK;
}

/* ---- a child -------------------------------- */

static int plan_of_child(brc_session *s, brc_fork_keys *keys, brc_buf *plan, brc_error *err)
{
    BRC_TRY(brc_fork_keys_read(keys, s->repo->store, s->draft.id, err));
    BRC_TRY(brc_buf_printf(plan, err, "{\"fork\":%lld", (long long)s->draft.id));
    if (keys->n > 0) {
        BRC_TRY(brc_buf_text(plan, ",\"keys\":", err));
        BRC_TRY(brc_fork_keys_write(plan, keys, err));
    }
    BRC_TRY(brc_buf_text(plan, "}", err));
    return brc_buf_terminate(plan, err);
}

/* Of the parent's process, whoever makes it, with a secret of its own. */
static int begin_child(brc_session *s, int has_base, const brc_oid *base, int64_t *id,
                       brc_error *err)
{
    brc_buf owner = BRC_BUF_INIT, plan = BRC_BUF_INIT;
    brc_fork_keys keys = {0};
    brc_draft_row row = {.draft = s->draft, .branch = s->branch};
    int rc;
    BRC_GO(brc_process_describe_as(&owner, s->owner, err));
    BRC_GO(brc_buf_terminate(&owner, err));
    BRC_GO(plan_of_child(s, &keys, &plan, err));
    row.owner = (const char *)owner.data;
    row.draft.has_base = has_base;
    row.draft.base = *base;
    row.draft.time_us = brc_now_us();
    BRC_GO(brc_draft_child_start(s->repo->store, &row, (const char *)plan.data, id, err));
    rc = brc_fork_keys_put(&keys, s->repo->store, *id, err);
done:
    brc_fork_keys_dispose(&keys);
    brc_buf_dispose(&plan);
    brc_buf_dispose(&owner);
    return rc;
}

/* What rows say becomes a commit. A parent with savepoints stays over what it lay over, and so can
 * go back to them. */
static int show_as_commit(brc_session *s, brc_fold *fold, int *has_base, brc_oid *base,
                          brc_error *err)
{
    brc_move_set moves = {0};
    brc_oid root, since, start = {{0}};
    int has, rc;
    BRC_GO(brc_session_fold(s, fold, &root, err));
    BRC_GO(brc_fork_since(s, &has, &since, err));
    if (has) {
        BRC_GO(brc_commit_root(s->repo->store, &since, &start, err));
        BRC_GO(brc_session_moves(&moves, s, 1, &since, &start, &root, err));
    }
    if (s->draft.saves) {
        BRC_GO(put_shown(s, has, &since, &root, &moves, base, err));
        *has_base = 1;
        goto done;
    }
    BRC_GO(brc_fork_lay(s, has, &since, &root, &moves, err));
    *has_base = s->draft.has_base;
    *base = s->draft.base;
done:
    brc_move_set_dispose(&moves);
    return rc;
}

static int fork_steps(brc_session *s, brc_fold *fold, int64_t *id, brc_error *err)
{
    brc_oid base = s->draft.base;
    int has_base = s->draft.has_base, empty;
    BRC_TRY(brc_draft_is_empty(s->repo->store, s->draft.id, &empty, err));
    if (!empty) {
        BRC_TRY(brc_keys_settle(s, "", err));
        BRC_TRY(show_as_commit(s, fold, &has_base, &base, err));
    }
    return begin_child(s, has_base, &base, id, err);
}

static int fork_once(brc_session *s, brc_fold *fold, int64_t *id, brc_error *err)
{
    int rc = brc_session_begin(s, err);
    if (rc == BRC_OK)
        rc = brc_session_end(s, fork_steps(s, fold, id, err), err);
    s->is_read = 0;
    return rc;
}

/* As a commit does it: what is too much for one transaction is folded ahead. */
static int fork_in_tries(brc_session *s, int64_t *id, brc_error *err)
{
    enum { TRIES = 4 };
    brc_folded folded = {0};
    brc_fold fold = {.way = BRC_FOLD_AT_ONCE, .folded = &folded};
    int rc;
    for (int i = 0;; i++) {
        fold.most = i == TRIES ? 0 : BRC_FOLD_ROWS;
        fold.rows = 0;
        fold.is_too_much = 0;
        rc = fork_once(s, &fold, id, err);
        if (rc >= 0 || !fold.is_too_much)
            break;
        BRC_GO(brc_fold_ahead(s, i > 0, &folded, err));
    }
done:
    brc_folded_dispose(&folded);
    return rc;
}

static int check_can_fork(const brc_session *s, brc_error *err)
{
    BRC_TRY(brc_session_can_change(s, err));
    if (s->mode != BRC_SESSION_PRIVATE)
        return brc_fail(err, BRC_EMISUSE,
                        "the changes of this session are shared by branch '%s' and have no owner: "
                        "fork a private session",
                        s->branch);
    BRC_TRY(brc_bulk_check_none(s, "no child can begin", err));
    if (brc_store_in_write(s->repo->store))
        return brc_fail(err, BRC_EMISUSE, "no child can begin within a transaction");
    return BRC_OK;
}

/* The row is new, and known to nobody else. */
static int open_child(brc_session **child, brc_session *s, int64_t id, brc_error *err)
{
    brc_draft_row *rows;
    size_t n, at = 0;
    BRC_TRY(brc_draft_list(s->repo->store, &rows, &n, err));
    while (at < n && rows[at].draft.id != id)
        at++;
    int rc = at < n ? brc_session_take(child, s->repo, &rows[at], err)
                    : brc_fail(err, BRC_ESTALE, "draft %lld was dropped as soon as it began",
                               (long long)id);
    brc_draft_rows_free(rows, n);
    return rc;
}

int brc_session_fork(brc_session **child, brc_session *s, brc_error *err)
{
    int64_t id;
    *child = NULL;
    BRC_TRY(check_can_fork(s, err));
    BRC_TRY(fork_in_tries(s, &id, err));
    int rc = open_child(child, s, id, err);
    if (rc < 0) /* nobody knows of it */
        brc_draft_drop_late(s->repo->store, id);
    return rc;
}

/* ---- what else can become of one -------------------------------- */

int brc_fork_go_back(brc_session *s, brc_error *err)
{
    brc_store *store = s->repo->store;
    brc_draft_child child;
    brc_fork_keys keys = {0};
    int rc = brc_draft_child_read(store, s->draft.id, &child, err);
    if (rc <= 0)
        return rc;
    BRC_GO(brc_fork_keys_parse(&keys, brc_json_member(child.plan, "keys"), err));
    BRC_GO(brc_draft_empty(store, s->draft.id, err));
    BRC_GO(brc_draft_lay(store, s->draft.id, child.has_fork ? &child.fork : NULL, err));
    rc = brc_fork_keys_put(&keys, store, s->draft.id, err);
done:
    brc_fork_keys_dispose(&keys);
    brc_draft_child_dispose(&child);
    return rc;
}

int brc_fork_check_saves(const brc_session *s, brc_error *err)
{
    if (!s->draft.saves)
        return BRC_OK;
    return brc_fail(err, BRC_EMISUSE,
                    "draft %lld has a savepoint that is open: release it or roll back to it before "
                    "children are joined",
                    (long long)s->draft.id);
}

int brc_fork_check_commit(const brc_session *s, brc_error *err)
{
    if (!s->draft.is_child)
        return BRC_OK;
    return brc_fail(err, BRC_EMISUSE,
                    "draft %lld is the child of another session, and no commit by itself: join it "
                    "with brc_session_join(), and commit that session",
                    (long long)s->draft.id);
}
