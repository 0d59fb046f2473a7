#include "children.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../base/alloc.h"
#include "../base/process.h"
#include "../base/sized.h"
#include "../history/commit.h"
#include "../merge/merge_array.h"
#include "../merge/replay.h"
#include "../store/change.h"
#include "../store/collect.h"
#include "../work/adopt.h"
#include "../work/bulk_write.h"
#include "../work/fold.h"
#include "../work/session.h"
#include "../work/session_nodes.h"
#include "../zarr/key/key_rows.h"

/*
 * The children that one call joins with their parent, for both ways of joining. If nobody has
 * written to the parent since the children began and no chunk was written twice, the rows of the
 * children become rows of the parent. Otherwise the children are merged, without a lock.
 */

typedef struct brc_join_child {
    brc_session *s;         /* a session on the child's draft                           */
    brc_draft_child known;
    brc_oid fork_root;      /* the snapshot of known.fork                               */
    brc_folded folded;      /* the child's folded snapshot, and of which change it is   */
    brc_fork_keys keys_before, keys; /* keys that are in no snapshot                    */
} brc_join_child;

typedef struct brc_join {
    brc_session *s; /* the parent */
    brc_store *store;
    brc_join_child *children; /* in the order in which the children began */
    size_t n, cap;
    brc_clash_list clashes;
    /* For the merge. */
    int64_t collected;      /* the last collection that began before the merge          */
    brc_folded folded;      /* the parent's folded snapshot                             */
    brc_oid root;           /* the resulting snapshot                                   */
    brc_move_set moves;     /* the moves from folded.root to root                       */
    brc_fork_keys keys_before, keys;
} brc_join;

static int merge_children(brc_join *j, brc_error *err);
static int merge_steps(brc_join *j, int *done, brc_error *err);
static int look_if_apt(brc_join *j, int *apt, brc_error *err);
static int rows_steps(brc_join *j, int *apt, brc_error *err);

/* ==== fork ================================ */

/* ---- what a parent shows, as a commit -------------------------------- */

/* Returns the commit that the next commit of the parent's uncommitted changes follows, so that
 * moves can be traced from any child's beginning to it. Commits are followed only as long as there
 * are children. Must be called within a change or a read. */
static int fork_since(brc_session *s, int *has, brc_oid *since, brc_error *err)
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

/* Makes a commit of the session's draft and bases the draft on that commit. `root` is the commit's
 * snapshot, and `moves` are the moves since *since (none if has is 0), which fork_since() returned.
 * If the snapshot is the one of the base, no commit is made. Must be called within a change of the
 * session. */
static int fork_lay(brc_session *s, int has, const brc_oid *since, const brc_oid *root,
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

/* Begins a child, with a secret of its own. It belongs to the parent's process, whoever makes the
 * call. */
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

/* Makes a commit of the parent's rows. A parent with savepoints keeps its base, so that it can go
 * back to the savepoints. */
static int show_as_commit(brc_session *s, brc_fold *fold, int *has_base, brc_oid *base,
                          brc_error *err)
{
    brc_move_set moves = {0};
    brc_oid root, since, start = {{0}};
    int has, rc;
    BRC_GO(brc_session_fold(s, fold, &root, err));
    BRC_GO(fork_since(s, &has, &since, err));
    if (has) {
        BRC_GO(brc_commit_root(s->repo->store, &since, &start, err));
        BRC_GO(brc_session_moves(&moves, s, 1, &since, &start, &root, err));
    }
    if (s->draft.saves) {
        BRC_GO(put_shown(s, has, &since, &root, &moves, base, err));
        *has_base = 1;
        goto done;
    }
    BRC_GO(fork_lay(s, has, &since, &root, &moves, err));
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

typedef struct fork_call {
    brc_session *s;
    int64_t id;
    brc_folding folding;
} fork_call;

static int fork_work(void *ctx, brc_error *err)
{
    fork_call *c = ctx;
    return brc_folding_work(&c->folding, c->s, err);
}

static int fork_commit(void *ctx, int insists, brc_error *err)
{
    fork_call *c = ctx;
    BRC_TRY(brc_session_begin(c->s, err));
    brc_folding_begin(&c->folding, insists);
    const int rc = fork_steps(c->s, &c->folding.fold, &c->id, err);
    c->s->is_read = 0;
    return brc_folding_end(&c->folding, brc_session_end(c->s, rc, err));
}

static int fork_run(brc_session *s, int64_t *id, brc_error *err)
{
    fork_call call = {.s = s};
    const brc_file_change change = {.ctx = &call, .work = fork_work, .commit = fork_commit};
    const int rc = brc_change_run(s->repo->store, &change, err);
    brc_folding_dispose(&call.folding);
    brc_session_changed(s, rc);
    s->is_read = 0;
    *id = call.id;
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

/* Opens a session on a child's new row, which nobody else knows yet. */
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
    BRC_TRY(fork_run(s, &id, err));
    int rc = open_child(child, s, id, err);
    if (rc < 0) /* nobody else knows the child */
        brc_draft_drop_late(s->repo->store, id);
    return rc;
}

/* ---- what else can become of one -------------------------------- */

/* Fails with BRC_EMISUSE if the parent has an open savepoint: a rollback to it would not take back
 * what the children wrote. */
static int fork_check_saves(const brc_session *s, brc_error *err)
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
                    "draft %lld is the child of another session and cannot be committed: join it "
                    "with brc_session_join(), and commit that session",
                    (long long)s->draft.id);
}

/* ==== join ================================ */

static void join_dispose(brc_join *j)
{
    for (size_t i = 0; i < j->n; i++) {
        brc_join_child *child = &j->children[i];
        brc_session_unref(child->s);
        brc_draft_child_dispose(&child->known);
        brc_folded_dispose(&child->folded);
        brc_fork_keys_dispose(&child->keys_before);
        brc_fork_keys_dispose(&child->keys);
    }
    free(j->children);
    brc_folded_dispose(&j->folded);
    brc_move_set_dispose(&j->moves);
    brc_fork_keys_dispose(&j->keys_before);
    brc_fork_keys_dispose(&j->keys);
    brc_clash_list_dispose(&j->clashes);
}

/* ---- which children -------------------------------- */

static int check_is_ours(brc_join *j, const brc_draft_row *row, int is_child,
                         const brc_draft_child *known, brc_error *err)
{
    const long long id = (long long)row->draft.id;
    if (!is_child)
        return brc_fail(err, BRC_EMISUSE,
                        "draft %lld is not a child of a session and cannot be joined: commit it or "
                        "hand it over",
                        id);
    if (known->parent != j->s->draft.id)
        return brc_fail(err, BRC_EMISUSE,
                        "draft %lld is the child of draft %lld, and not of this session: join it "
                        "there",
                        id, (long long)known->parent);
    for (size_t i = 0; i < j->n; i++)
        if (j->children[i].s->draft.id == row->draft.id)
            return brc_fail(err, BRC_EINVAL, "draft %lld is named twice", id);
    return BRC_OK;
}

static int take_child(brc_join *j, const brc_draft_row *row, brc_error *err)
{
    brc_join_child *child = &j->children[j->n];
    memset(child, 0, sizeof(*child));
    int rc = brc_draft_child_read(j->store, row->draft.id, &child->known, err);
    if (rc >= 0)
        rc = check_is_ours(j, row, rc, &child->known, err);
    if (rc == BRC_OK && child->known.has_fork)
        rc = brc_commit_root(j->store, &child->known.fork, &child->fork_root, err);
    if (rc == BRC_OK)
        rc = brc_session_take(&child->s, j->s->repo, row, err);
    if (rc < 0)
        brc_draft_child_dispose(&child->known);
    else
        j->n++;
    return rc;
}

static int child_order(const void *a, const void *b)
{
    const int64_t x = ((const brc_join_child *)a)->s->draft.id;
    const int64_t y = ((const brc_join_child *)b)->s->draft.id;
    return (x > y) - (x < y);
}

static int find_children(brc_join *j, const char *const *tokens, size_t n, brc_error *err)
{
    brc_draft_row *rows = NULL;
    const brc_draft_row *row;
    size_t nrows = 0;
    void *p;
    int rc;
    BRC_TRY(brc_new_array(&p, n, sizeof(brc_join_child), err));
    j->children = p;
    BRC_GO(brc_session_follow(j->s, err));
    BRC_GO(fork_check_saves(j->s, err));
    BRC_GO(brc_draft_list(j->store, &rows, &nrows, err));
    for (size_t i = 0; i < n; i++) {
        BRC_GO(brc_token_find(&row, j->store, tokens[i], rows, nrows, err));
        BRC_GO(take_child(j, row, err));
    }
    qsort(j->children, j->n, sizeof(*j->children), child_order);
    rc = BRC_OK;
done:
    brc_draft_rows_free(rows, nrows);
    return rc;
}

/* ---- the call -------------------------------- */

static int join_again(brc_join *j, const char *const *tokens, size_t n, brc_error *err)
{
    brc_session *s = j->s;
    join_dispose(j);
    *j = (brc_join){.s = s, .store = s->repo->store};
    BRC_TRY(brc_store_begin_read(j->store, err));
    const int rc = find_children(j, tokens, n, err);
    brc_store_end_read(j->store);
    return rc;
}

static int check_can_join(const brc_session *s, brc_error *err)
{
    BRC_TRY(brc_session_can_change(s, err));
    if (s->mode != BRC_SESSION_PRIVATE)
        return brc_fail(err, BRC_EMISUSE, "only a private session has children to join");
    BRC_TRY(brc_bulk_check_none(s, "no child can be joined", err));
    if (brc_store_in_write(s->repo->store))
        return brc_fail(err, BRC_EMISUSE, "no child can be joined within a transaction");
    return BRC_OK;
}

typedef struct join_call {
    brc_join j;
    const char *const *tokens;
    size_t n;
    int by_rows; /* the rows of the children become rows of the parent */
    int meet;    /* the children wrote the same places, so they are merged */
} join_call;

static int join_work(void *ctx, brc_error *err)
{
    join_call *c = ctx;
    BRC_TRY(join_again(&c->j, c->tokens, c->n, err));
    c->by_rows = 0;
    if (!c->meet)
        BRC_TRY(look_if_apt(&c->j, &c->by_rows, err));
    c->meet = 0;
    return c->by_rows ? BRC_OK : merge_children(&c->j, err);
}

/* Children whose rows touch the same places may still be merged, element by element. */
static int join_commit(void *ctx, int insists, brc_error *err)
{
    join_call *c = ctx;
    brc_error why = BRC_ERROR_INIT;
    int done = 0;
    (void)insists;
    BRC_TRY(brc_session_begin(c->j.s, err));
    int rc = c->by_rows ? rows_steps(&c->j, &done, &why) : merge_steps(&c->j, &done, &why);
    c->j.s->is_read = 0;
    c->meet = c->by_rows && rc == BRC_ECONFLICT;
    if (rc < 0 && !c->meet && err != NULL)
        brc_error_copy(err, &why);
    rc = brc_session_end(c->j.s, rc, err);
    if (c->meet)
        return BRC_CHANGE_WORK;
    return rc < 0 || done ? rc : BRC_CHANGE_AGAIN;
}

static int join_run(join_call *c, brc_error *err)
{
    char doing[80];
    breccia *repo = c->j.s->repo;
    const brc_task task = brc_task_begin(repo, "join", 0);
    snprintf(doing, sizeof(doing), "the children of draft %lld were joined",
             (long long)c->j.s->draft.id);
    const brc_file_change change = {.about = doing, .ctx = c, .work = join_work,
                                    .commit = join_commit};
    int rc = brc_change_run(repo->store, &change, err);
    brc_session_changed(c->j.s, rc);
    if (rc == BRC_CHANGE_AGAIN)
        rc = brc_change_is_late(repo->store, doing, "all are kept; join again", err);
    brc_task_end(repo, &task, rc);
    return rc;
}

int brc_session_join(brc_iter **conflicts, brc_session *s, const char *const *tokens, size_t n,
                     uint32_t flags, brc_error *err)
{
    join_call call = {.j = {.s = s}, .tokens = tokens, .n = n};
    if (conflicts != NULL)
        *conflicts = NULL;
    BRC_TRY(brc_flags_check(flags, 0, "brc_session_join()", err));
    BRC_TRY(check_can_join(s, err));
    if (n == 0)
        return BRC_OK;
    int rc = join_run(&call, err);
    if (rc == BRC_ECONFLICT && call.j.clashes.n > 0 && conflicts != NULL) {
        const int listed = brc_conflict_list(conflicts, &call.j.clashes, err);
        rc = listed < 0 ? listed : rc;
    }
    join_dispose(&call.j);
    return rc;
}

/* ==== join rows ================================ */

/*
 * The way by rows: the rows of the children become rows of the parent as they are. It is possible
 * if all children began from the commit on which the parent is still based, and what they wrote
 * does not overlap. It takes one transaction, so the children must be small. Chunks are neither
 * decoded nor copied.
 */

/* The most rows of nodes and chunks of all children together. */
enum { JOIN_ROWS = 4096 };

static int child_is_apt(brc_join *j, brc_join_child *child, int *apt, brc_error *err)
{
    const brc_draft_child *known = &child->known;
    brc_draft_head now;
    int keys;
    BRC_TRY(brc_draft_get(j->store, child->s->draft.id, &now, err));
    *apt = now.id != 0 && now.is_child && brc_draft_same_version(&now, &j->s->draft) &&
           now.has_base == known->has_fork &&
           (!now.has_base || brc_oid_cmp(&now.base, &known->fork) == 0);
    if (!*apt)
        return BRC_OK;
    BRC_TRY(brc_draft_key_any(j->store, now.id, &keys, err));
    *apt = !keys;
    return keys ? BRC_OK : brc_draft_is_small(j->store, now.id, JOIN_ROWS / j->n, apt, err);
}

static int all_are_apt(brc_join *j, int *apt, brc_error *err)
{
    int keys;
    BRC_TRY(brc_draft_key_any(j->store, j->s->draft.id, &keys, err));
    *apt = !keys;
    for (size_t i = 0; i < j->n && *apt; i++)
        BRC_TRY(child_is_apt(j, &j->children[i], apt, err));
    return BRC_OK;
}

static int give_rows(brc_join *j, brc_join_child *child, brc_error *err)
{
    const int64_t id = child->s->draft.id;
    const brc_adoption adoption = {.draft = id, .base = child->fork_root};
    BRC_TRY(brc_draft_saves_end(j->store, id, err));
    BRC_TRY(brc_session_adopt_rows(j->s, &adoption, err));
    return brc_draft_delete(j->store, id, err);
}

/* Joins by rows. Sets *apt to 0 if the rows of the children cannot become rows of the parent. */
static int rows_steps(brc_join *j, int *apt, brc_error *err)
{
    BRC_TRY(fork_check_saves(j->s, err));
    BRC_TRY(all_are_apt(j, apt, err));
    for (size_t i = 0; i < j->n && *apt; i++)
        BRC_TRY(give_rows(j, &j->children[i], err));
    return BRC_OK;
}

/* Checks whether a join by rows is possible before anything is written for it. */
static int look_if_apt(brc_join *j, int *apt, brc_error *err)
{
    BRC_TRY(brc_session_begin_read(j->s, err));
    int rc = all_are_apt(j, apt, err);
    brc_session_end_read(j->s);
    return rc;
}

/* ==== join merge ================================ */

/*
 * The way by merging: the children are merged into the parent one after the other, in the order in
 * which they began. The base is what the child began from, "ours" is the parent with the children
 * merged before, "theirs" is the child. Everything is computed without the lock. The last, short
 * transaction checks that nobody has changed what was merged, makes a commit of the result that no
 * ref names, and bases the parent on it.
 */

/* ---- what is merged -------------------------------- */

/* If a session has no rows to fold, takes the snapshot on which it is based. */
static int take_base(brc_session *s, brc_folded *folded, brc_error *err)
{
    int empty;
    BRC_TRY(brc_session_begin_read(s, err));
    int rc = brc_draft_is_empty(s->repo->store, s->draft.id, &empty, err);
    if (rc == BRC_OK && empty && !brc_oid_is_zero(&s->base)) {
        folded->has_root = 1;
        folded->draft = s->draft.id;
        folded->changes = s->draft.changes;
        folded->root = s->base;
    }
    brc_session_end_read(s);
    return rc;
}

static int fold_one(brc_session *s, brc_folded *folded, brc_error *err)
{
    BRC_TRY(take_base(s, folded, err));
    if (folded->has_root)
        return BRC_OK;
    return brc_fold_whole(s, folded, err);
}

/* Says whether the session is still as it was folded. Must be called within a read or a change. */
static int is_folded(const brc_session *s, const brc_folded *folded)
{
    return s->draft.id == folded->draft && s->draft.changes == folded->changes;
}

static int read_keys(brc_join *j, brc_error *err)
{
    BRC_TRY(brc_fork_keys_read(&j->keys_before, j->store, j->s->draft.id, err));
    BRC_TRY(brc_fork_keys_read(&j->keys, j->store, j->s->draft.id, err));
    for (size_t i = 0; i < j->n; i++) {
        brc_join_child *child = &j->children[i];
        BRC_TRY(brc_fork_keys_parse(&child->keys_before,
                                    brc_json_member(child->known.plan, "keys"), err));
        BRC_TRY(brc_fork_keys_read(&child->keys, j->store, child->s->draft.id, err));
    }
    return BRC_OK;
}

/* Checks all sessions in one read, so that they are one state. Returns 1, or 0 if somebody has
 * written. */
static int look_at_all(brc_join *j, brc_error *err)
{
    BRC_TRY(brc_session_follow(j->s, err));
    int same = is_folded(j->s, &j->folded);
    for (size_t i = 0; i < j->n && same; i++) {
        BRC_TRY(brc_session_follow(j->children[i].s, err));
        same = is_folded(j->children[i].s, &j->children[i].folded);
    }
    if (same)
        BRC_TRY(read_keys(j, err));
    return same;
}

static int fold_them(brc_join *j, brc_error *err)
{
    BRC_TRY(brc_gc_last(j->store, &j->collected, err));
    BRC_TRY(fold_one(j->s, &j->folded, err));
    for (size_t i = 0; i < j->n; i++)
        BRC_TRY(fold_one(j->children[i].s, &j->children[i].folded, err));
    BRC_TRY(brc_store_begin_read(j->store, err));
    const int same = look_at_all(j, err);
    brc_store_end_read(j->store);
    j->root = j->folded.root;
    return same;
}

/* ---- keys that are in no snapshot -------------------------------- */

typedef struct key_clash {
    brc_join *j;
    int64_t draft;
} key_clash;

static int key_value(brc_buf *out, const brc_fork_key *key, size_t id_len, brc_error *err)
{
    if (key == NULL)
        return BRC_OK;
    BRC_TRY(brc_buf_append(out, key->id.bytes, key->has_id ? id_len : 0, err));
    return brc_buf_terminate(out, err);
}

static int note_key(void *ctx, const char *key, const brc_fork_key *base, const brc_fork_key *ours,
                    const brc_fork_key *theirs, brc_error *err)
{
    const key_clash *where = ctx;
    const size_t id_len = brc_store_id_len(where->j->store);
    brc_clash *clash;
    brc_buf path = BRC_BUF_INIT;
    int rc;
    BRC_GO(brc_buf_printf(&path, err, "/%s", key));
    BRC_GO(brc_buf_terminate(&path, err));
    BRC_GO(brc_clash_add(&where->j->clashes, (const char *)path.data, BRC_CLASH_NODE, &clash, err));
    clash->draft = where->draft;
    BRC_GO(key_value(&clash->base, base, id_len, err));
    BRC_GO(key_value(&clash->ours, ours, id_len, err));
    rc = key_value(&clash->theirs, theirs, id_len, err);
done:
    brc_buf_dispose(&path);
    return rc;
}

static int join_keys(brc_join *j, brc_join_child *child, brc_error *err)
{
    brc_fork_keys out = {0};
    key_clash where = {j, child->s->draft.id};
    int rc = brc_fork_keys_join(&out, &child->keys_before, &j->keys, &child->keys, note_key, &where,
                                err);
    brc_fork_keys_dispose(rc < 0 ? &out : &j->keys);
    if (rc == BRC_OK)
        j->keys = out;
    return rc;
}

/* ---- one child -------------------------------- */

/* Finds the moves on both sides since the child began. Must be called within a read. */
static int read_moves(brc_join *j, brc_join_child *child, brc_merge_run *run, brc_error *err)
{
    const brc_draft_child *known = &child->known;
    brc_move_set own = {0};
    int rc;
    BRC_GO(brc_session_moves(&own, j->s, known->has_fork, &known->fork, &child->fork_root,
                             &j->folded.root, err));
    BRC_GO(brc_move_set_join(&run->ours_moves, &own, &j->moves, err));
    BRC_GO(brc_move_set_reduce(&run->ours_moves, j->store, &child->fork_root, &j->root, err));
    rc = brc_session_moves(&run->theirs_moves, child->s, known->has_fork, &known->fork,
                           &child->fork_root, &child->folded.root, err);
done:
    brc_move_set_dispose(&own);
    return rc;
}

/* Moves the conflicts into the list of the call. */
static int keep_clashes(brc_join *j, brc_clash_list *list, int64_t draft, brc_error *err)
{
    void *p = j->clashes.items;
    int rc = brc_grow_array(&p, &j->clashes.cap, j->clashes.n + list->n, sizeof(brc_clash), err);
    j->clashes.items = p;
    if (rc < 0)
        return rc;
    for (size_t i = 0; i < list->n; i++) {
        list->items[i].draft = draft;
        j->clashes.items[j->clashes.n++] = list->items[i];
    }
    list->n = 0;
    return BRC_OK;
}

static int add_moves(brc_join *j, brc_merge_tree *tree, const brc_oid *root, brc_error *err)
{
    brc_move_set more = {0}, all = {0};
    int rc;
    BRC_GO(brc_merge_tree_moves(tree, root, &more, err));
    BRC_GO(brc_move_set_join(&all, &j->moves, &more, err));
    brc_move_set_dispose(&j->moves);
    j->moves = all;
    all = (brc_move_set){0};
done:
    brc_move_set_dispose(&more);
    brc_move_set_dispose(&all);
    return rc;
}

static int put_merged(brc_join *j, brc_merge_tree *tree, brc_error *err)
{
    brc_oid root;
    BRC_TRY(brc_merge_tree_ahead(tree, err));
    BRC_TRY(brc_store_begin(j->store, err));
    int rc = brc_merge_tree_put(tree, &root, err);
    if (rc == BRC_OK)
        rc = add_moves(j, tree, &root, err);
    const int ended = brc_store_end(j->store, rc == BRC_OK, rc == BRC_OK ? err : NULL);
    BRC_TRY(rc < 0 ? rc : ended);
    j->root = root;
    return BRC_OK;
}

/* Merges one child. Its changes without conflicts are merged even if it has conflicts, so that the
 * children after it can be merged with them. */
static int merge_child(brc_join *j, brc_join_child *child, brc_error *err)
{
    brc_merge_run run = BRC_MERGE_RUN_INIT;
    int rc;
    run.how.repo = j->s->repo;
    run.in.base = child->fork_root;
    run.in.ours = j->root;
    run.in.theirs = child->folded.root;
    BRC_GO(join_keys(j, child, err));
    if (brc_oid_cmp(&child->folded.root, &child->fork_root) == 0)
        goto done; /* the child has changed nothing else */
    BRC_GO(brc_store_begin_read(j->store, err));
    rc = read_moves(j, child, &run, err);
    brc_store_end_read(j->store);
    if (rc == BRC_OK)
        BRC_GO(brc_merge_work(&run, err));
    if (rc < 0)
        goto done;
    BRC_GO(keep_clashes(j, brc_merge_tree_clashes(run.tree), child->s->draft.id, err));
    rc = put_merged(j, run.tree, err);
done:
    brc_merge_run_dispose(&run);
    return rc;
}

/* ---- the end -------------------------------- */

/* Returns 1, or 0 if somebody has written since the merge, or if a collection may have removed the
 * merge's objects. Must be called within a change. */
static int is_as_merged(brc_join *j, brc_error *err)
{
    int64_t last;
    brc_draft_head now;
    int same = is_folded(j->s, &j->folded);
    for (size_t i = 0; i < j->n && same; i++) {
        const brc_folded *folded = &j->children[i].folded;
        BRC_TRY(brc_draft_get(j->store, folded->draft, &now, err));
        same = now.id == folded->draft && now.changes == folded->changes;
    }
    BRC_TRY(brc_gc_last(j->store, &last, err));
    return same && last == j->collected;
}

/* Finds the moves from the commit that the next commit follows up to the result. */
static int moves_since(brc_join *j, const brc_oid *since, brc_move_set *out, brc_error *err)
{
    brc_move_set own = {0};
    brc_oid start;
    int rc;
    BRC_GO(brc_commit_root(j->store, since, &start, err));
    BRC_GO(brc_session_moves(&own, j->s, 1, since, &start, &j->folded.root, err));
    BRC_GO(brc_move_set_join(out, &own, &j->moves, err));
    rc = brc_move_set_reduce(out, j->store, &start, &j->root, err);
done:
    brc_move_set_dispose(&own);
    return rc;
}

static int lay_over_joined(brc_join *j, brc_error *err)
{
    brc_move_set moves = {0};
    brc_oid since;
    int has, rc;
    BRC_GO(fork_since(j->s, &has, &since, err));
    if (has)
        BRC_GO(moves_since(j, &since, &moves, err));
    rc = fork_lay(j->s, has, &since, &j->root, &moves, err);
done:
    brc_move_set_dispose(&moves);
    return rc;
}

/* Stores the keys of the result. Loose keys of one child may be chunks of an array of another
 * child. */
static int change_keys(brc_join *j, brc_error *err)
{
    brc_session *s = j->s;
    BRC_TRY(brc_fork_keys_change(&j->keys_before, &j->keys, j->store, s->draft.id, err));
    if (j->keys.n == 0)
        return BRC_OK;
    BRC_TRY(brc_keys_settle(s, "", err));
    return brc_keys_check_adopted(s, j->children[0].folded.draft, err);
}

/* Stores the merged children. Sets *done to 0 if somebody has written meanwhile. */
static int merge_steps(brc_join *j, int *done, brc_error *err)
{
    BRC_TRY(fork_check_saves(j->s, err));
    *done = is_as_merged(j, err);
    if (*done <= 0)
        return *done;
    for (size_t i = 0; i < j->n; i++)
        BRC_TRY(brc_draft_delete(j->store, j->children[i].folded.draft, err));
    if (brc_oid_cmp(&j->root, &j->folded.root) != 0)
        BRC_TRY(lay_over_joined(j, err));
    return change_keys(j, err);
}

static int in_conflict(const brc_join *j, brc_error *err)
{
    const brc_clash_list *list = &j->clashes;
    return brc_fail(err, BRC_ECONFLICT,
                    "%s: %zu changes of the children of draft %lld are in conflict with each other "
                    "or with the session's own, first at %.300s (draft %lld): all are kept as they "
                    "were; change one side, or drop a child, and join again",
                    brc_store_path(j->store), list->n, (long long)j->s->draft.id,
                    list->items[0].path, (long long)list->items[0].draft);
}

/* Merges all children. On BRC_ECONFLICT, j->clashes lists the conflicts. */
static int merge_children(brc_join *j, brc_error *err)
{
    const int same = fold_them(j, err);
    if (same <= 0)
        return same < 0 ? same : BRC_CHANGE_AGAIN;
    for (size_t i = 0; i < j->n; i++)
        BRC_TRY(merge_child(j, &j->children[i], err));
    brc_clash_list_sort(&j->clashes);
    return j->clashes.n > 0 ? in_conflict(j, err) : BRC_OK;
}
