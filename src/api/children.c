#include "children.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../base/alloc.h"
#include "../base/process.h"
#include "../base/sized.h"
#include "../history/commit.h"
#include "../merge/merge_layers.h"
#include "../merge/steps.h"
#include "../store/change.h"
#include "../store/collect.h"
#include "../work/adopt.h"
#include "../work/bulk_write.h"
#include "../work/fold.h"
#include "../work/session.h"
#include "../work/session_nodes.h"
#include "../zarr/key/key_rows.h"

/* ==== fork ================================ */

/* ---- a child -------------------------------- */

static int plan_of_child(brc_session *s, brc_fork_keys *keys, brc_buf *plan, brc_error *err)
{
    BRC_TRY(brc_fork_keys_read(keys, s->repo->store, s->draft.id, err));
    if (keys->n > 0)
        BRC_TRY(brc_fork_keys_write(plan, keys, err));
    return brc_buf_terminate(plan, err);
}

/* Begins a child, with a secret of its own. It belongs to the parent's process, whoever makes the
 * call. */
static int begin_child(brc_session *s, int has_base, const brc_oid *base, int64_t *id,
                       brc_error *err)
{
    brc_buf owner = BRC_BUF_INIT, plan = BRC_BUF_INIT;
    brc_fork_keys keys = {0};
    brc_draft_row row = {.draft = s->draft, .branch = s->branch, .has_other = has_base,
                         .other = *base};
    int rc;
    BRC_GO(brc_process_describe_as(&owner, s->owner, err));
    BRC_GO(brc_buf_terminate(&owner, err));
    BRC_GO(plan_of_child(s, &keys, &plan, err));
    row.owner = (const char *)owner.data;
    row.plan = (const char *)plan.data;
    row.draft.parent = s->draft.id;
    row.draft.has_base = has_base;
    row.draft.base = *base;
    row.draft.time_us = brc_now_us();
    BRC_GO(brc_draft_start(s->repo->store, &row, id, err));
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
    BRC_GO(brc_layer_since(s, &has, &since, err));
    if (has) {
        BRC_GO(brc_commit_root(s->repo->store, &since, &start, err));
        BRC_GO(brc_session_moves(&moves, s, 1, &since, &start, &root, err));
    }
    if (s->draft.saves) {
        BRC_GO(brc_layer_shown(s, has, &since, &root, &moves, base, err));
        *has_base = 1;
        goto done;
    }
    BRC_GO(brc_layer_lay(s, has, &since, &root, &moves, err));
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
    const brc_file_change change = {.ctx = &call, .is_ahead = 1, .work = fork_work,
                                    .commit = fork_commit};
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
    size_t n;
    BRC_TRY(brc_draft_list(s->repo->store, BRC_DRAFTS_ONE, id, &rows, &n, err));
    int rc = n > 0 ? brc_session_take(child, s->repo, rows, err)
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
        brc_draft_drop_late(s->repo->store, id, BRC_DROP_ANY);
    return rc;
}

/* ---- what else can become of one -------------------------------- */

int brc_fork_check_commit(const brc_session *s, brc_error *err)
{
    if (s->draft.parent == 0)
        return BRC_OK;
    return brc_fail(err, BRC_EMISUSE,
                    "draft %lld is the child of another session and cannot be committed: join it "
                    "with brc_session_join(), and commit that session",
                    (long long)s->draft.id);
}

/* ==== join ================================ */

/* ---- which children -------------------------------- */

static int check_is_ours(brc_layers *j, const brc_draft_row *row, brc_error *err)
{
    const long long id = (long long)row->draft.id;
    if (row->draft.parent == 0)
        return brc_fail(err, BRC_EMISUSE,
                        "draft %lld is not a child of a session and cannot be joined: commit it or "
                        "hand it over",
                        id);
    if (row->draft.parent != j->s->draft.id)
        return brc_fail(err, BRC_EMISUSE,
                        "draft %lld is the child of draft %lld, and not of this session: join it "
                        "there",
                        id, (long long)row->draft.parent);
    for (size_t i = 0; i < j->n; i++)
        if (j->items[i].s->draft.id == row->draft.id)
            return brc_fail(err, BRC_EINVAL, "draft %lld is named twice", id);
    return BRC_OK;
}

static int child_order(const void *a, const void *b)
{
    const int64_t x = ((const brc_layer *)a)->s->draft.id;
    const int64_t y = ((const brc_layer *)b)->s->draft.id;
    return (x > y) - (x < y);
}

static int find_children(brc_layers *j, const char *const *tokens, size_t n, brc_error *err)
{
    brc_draft_row *rows = NULL;
    const brc_draft_row *row;
    size_t nrows = 0;
    int rc;
    BRC_GO(brc_session_follow(j->s, err));
    BRC_GO(brc_layers_check_saves(j->s, err));
    BRC_GO(brc_draft_list(j->store, BRC_DRAFTS_ALL, 0, &rows, &nrows, err));
    for (size_t i = 0; i < n; i++) {
        BRC_GO(brc_token_find(&row, j->store, tokens[i], rows, nrows, err));
        BRC_GO(check_is_ours(j, row, err));
        BRC_GO(brc_layers_add(j, row, row->has_other, &row->other, err));
    }
    qsort(j->items, j->n, sizeof(*j->items), child_order);
    rc = BRC_OK;
done:
    brc_draft_rows_free(rows, nrows);
    return rc;
}

/* ---- by rows -------------------------------- */

/*
 * The way by rows: the rows of the children become rows of the parent as they are. It is possible
 * if all children began from the commit on which the parent is still based, and what they wrote
 * does not overlap. It takes one transaction, so the children must be small. Chunks are neither
 * decoded nor copied.
 */

/* The most rows of nodes and chunks of all children together. */
enum { JOIN_ROWS = 4096 };

static int child_is_apt(brc_layers *j, brc_layer *child, int *apt, brc_error *err)
{
    brc_draft_head now;
    int keys;
    BRC_TRY(brc_draft_get(j->store, child->s->draft.id, &now, err));
    *apt = now.id != 0 && now.parent != 0 && brc_draft_same_version(&now, &j->s->draft) &&
           now.has_base == child->has_fork &&
           (!now.has_base || brc_oid_cmp(&now.base, &child->fork) == 0);
    if (!*apt)
        return BRC_OK;
    BRC_TRY(brc_draft_key_any(j->store, now.id, &keys, err));
    *apt = !keys;
    return keys ? BRC_OK : brc_draft_is_small(j->store, now.id, JOIN_ROWS / j->n, apt, err);
}

static int all_are_apt(brc_layers *j, int *apt, brc_error *err)
{
    int keys;
    BRC_TRY(brc_draft_key_any(j->store, j->s->draft.id, &keys, err));
    *apt = !keys;
    for (size_t i = 0; i < j->n && *apt; i++)
        BRC_TRY(child_is_apt(j, &j->items[i], apt, err));
    return BRC_OK;
}

/* Returns BRC_ADOPT_MEETS if the child has changed what the parent or another child has changed. */
static int give_rows(brc_layers *j, brc_layer *child, brc_error *err)
{
    const int64_t id = child->s->draft.id;
    const brc_adoption adoption = {.draft = id, .base = child->fork_root};
    BRC_TRY(brc_draft_saves_end(j->store, id, err));
    const int rc = brc_session_adopt_rows(j->s, &adoption, err);
    return rc != BRC_OK ? rc : brc_draft_delete(j->store, id, err);
}

/* Joins by rows. Returns BRC_CHANGE_AGAIN if the rows of the children cannot become rows of the
 * parent any more, and BRC_ADOPT_MEETS if they have changed the same. */
static int rows_steps(brc_layers *j, brc_error *err)
{
    int apt, rc = BRC_OK;
    BRC_TRY(brc_layers_check_saves(j->s, err));
    BRC_TRY(all_are_apt(j, &apt, err));
    for (size_t i = 0; i < j->n && apt && rc == BRC_OK; i++)
        rc = give_rows(j, &j->items[i], err);
    return apt ? rc : BRC_CHANGE_AGAIN;
}

/* Checks whether a join by rows is possible before anything is written for it. */
static int look_if_apt(brc_layers *j, int *apt, brc_error *err)
{
    BRC_TRY(brc_session_begin_read(j->s, err));
    int rc = all_are_apt(j, apt, err);
    brc_session_end_read(j->s);
    return rc;
}

/* ---- the call -------------------------------- */

static int in_conflict(const brc_layers *j, brc_error *err)
{
    const brc_clash_list *list = &j->clashes;
    return brc_fail(err, BRC_ECONFLICT,
                    "%s: %zu changes of the children of draft %lld are in conflict with each other "
                    "or with the session's own, first at %.300s (draft %lld): all are kept as they "
                    "were; change one side, or drop a child, and join again",
                    brc_store_path(j->store), list->n, (long long)j->s->draft.id,
                    list->items[0].path, (long long)list->items[0].draft);
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
    brc_layers j;
    const char *const *tokens;
    size_t n;
    int by_rows; /* the rows of the children become rows of the parent */
    int meet;    /* the children wrote the same places, so they are merged */
} join_call;

static int join_work(void *ctx, brc_error *err)
{
    join_call *c = ctx;
    brc_layers *j = &c->j;
    brc_layers_dispose(j); /* of an earlier try */
    BRC_TRY(brc_store_begin_read(j->store, err));
    const int found = find_children(j, c->tokens, c->n, err);
    brc_store_end_read(j->store);
    BRC_TRY(found);
    c->by_rows = 0;
    if (!c->meet)
        BRC_TRY(look_if_apt(j, &c->by_rows, err));
    c->meet = 0;
    const int rc = c->by_rows ? BRC_OK : brc_layers_work(j, err);
    return rc == BRC_OK && j->clashes.n > 0 ? in_conflict(j, err) : rc;
}

static int join_commit(void *ctx, int insists, brc_error *err)
{
    join_call *c = ctx;
    brc_session *s = c->j.s;
    (void)insists;
    BRC_TRY(brc_session_begin(s, err));
    int rc = c->by_rows ? rows_steps(&c->j, err) : brc_layers_commit(&c->j, err);
    s->is_read = 0;
    c->meet = rc == BRC_ADOPT_MEETS;
    if (rc <= BRC_OK)
        return brc_session_end(s, rc, err);
    (void)!brc_session_end(s, BRC_ECONFLICT, NULL); /* undoes it */
    return c->meet ? BRC_CHANGE_WORK : BRC_CHANGE_AGAIN;
}

static int join_run(join_call *c, brc_error *err)
{
    char doing[80];
    breccia *repo = c->j.s->repo;
    const brc_task task = brc_task_begin(repo, "join", 0);
    snprintf(doing, sizeof(doing), "the children of draft %lld were joined",
             (long long)c->j.s->draft.id);
    const brc_file_change change = {.about = doing, .ctx = c, .is_ahead = 1,
                                    .work = join_work, .commit = join_commit};
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
    join_call call = {.tokens = tokens, .n = n};
    if (conflicts != NULL)
        *conflicts = NULL;
    BRC_TRY(brc_flags_check(flags, 0, "brc_session_join()", err));
    BRC_TRY(check_can_join(s, err));
    if (n == 0)
        return BRC_OK;
    brc_layers_start(&call.j, s);
    int rc = join_run(&call, err);
    if (rc == BRC_ECONFLICT && call.j.clashes.n > 0 && conflicts != NULL) {
        const int listed = brc_conflict_list(conflicts, &call.j.clashes, s->repo, s->branch, err);
        rc = listed < 0 ? listed : rc;
    }
    brc_layers_dispose(&call.j);
    return rc;
}

