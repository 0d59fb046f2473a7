#include "join.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../base/alloc.h"
#include "../base/sized.h"
#include "../history/commit.h"
#include "../zarr/bulk_write.h"
#include "../zarr/session_draft.h"
#include "conflicts.h"
#include "fork.h"

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
                        "draft %lld is no child of a session, and cannot be joined: commit it, or "
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
    BRC_GO(brc_fork_check_saves(j->s, err));
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

static int join_steps(brc_join *j, brc_error *err)
{
    int apt = 0;
    const int rc = brc_join_rows(j, &apt, err);
    return rc != 0 || apt ? rc : brc_join_merge(j, err);
}

static int join_once(brc_session *s, const char *const *tokens, size_t n, brc_iter **conflicts,
                     brc_error *err)
{
    brc_join j = {.s = s, .store = s->repo->store};
    int rc;
    BRC_GO(brc_store_begin_read(j.store, err));
    rc = find_children(&j, tokens, n, err);
    brc_store_end_read(j.store);
    if (rc < 0)
        goto done;
    rc = join_steps(&j, err);
    if (rc == BRC_ECONFLICT && j.clashes.n > 0 && conflicts != NULL) {
        const int listed = brc_conflict_list(conflicts, &j.clashes, err);
        rc = listed < 0 ? listed : rc;
    }
done:
    join_dispose(&j);
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
    brc_session *s;
    const char *const *tokens;
    size_t n;
    brc_iter **conflicts;
} join_call;

static int join_in_turn(void *ctx, brc_error *err)
{
    const join_call *c = ctx;
    return join_once(c->s, c->tokens, c->n, c->conflicts, err);
}

int brc_session_join(brc_iter **conflicts, brc_session *s, const char *const *tokens, size_t n,
                     uint32_t flags, brc_error *err)
{
    join_call call = {s, tokens, n, conflicts};
    char doing[80];
    if (conflicts != NULL)
        *conflicts = NULL;
    BRC_TRY(brc_flags_check(flags, 0, "brc_session_join()", err));
    BRC_TRY(check_can_join(s, err));
    if (n == 0)
        return BRC_OK;
    const brc_task task = brc_task_begin(s->repo, "join", 0);
    snprintf(doing, sizeof(doing), "the children of draft %lld were joined",
             (long long)s->draft.id);
    int rc = brc_in_turn(s->repo->store, doing, join_in_turn, &call, err);
    brc_task_end(s->repo, &task, rc);
    if (rc == 0)
        return brc_turn_is_over(s->repo->store, doing, "all are kept; join again", err);
    return rc < 0 ? rc : BRC_OK;
}
