/*
 * The operation log, undo and redo.
 *
 * An operation is what one transaction wrote into the log. Undo applies its rows backwards, each
 * from `to` to `from`; redo applies them forwards again. Every step compares the ref with the row
 * before it sets the ref, and all steps are one transaction: either all happen, or none.
 *
 * The log alone determines the next operation. It is the last operation that no undo took back,
 * seen from the end: an undo of X leads to the operations before X, and a redo leads to the
 * operation that it restored. Numbers only decrease on the way, so the search ends whatever a file
 * contains.
 *
 * Operations on uncommitted changes are points of drafts (store/draft_save.c). A point says after
 * which row of the operation log it was made, and after which it was taken back; among themselves
 * points are in the order of their numbers. So both logs are one, and the later of the two next
 * operations is taken back (docs/decisions/0047-a-log-of-drafts.md).
 */
#include <stdlib.h>
#include <string.h>

#include "../base/alloc.h"
#include "../base/process.h"
#include "../base/sized.h"
#include "../history/commit.h"
#include "../work/session.h"
#include "refs.h"

/* ---- listing -------------------------------- */

enum { OPLOG_PAGE = 256 };

typedef struct oplog_list {
    breccia *repo;
    brc_oplog_row *rows;
    size_t n, at;
    brc_op now; /* the item that was returned last */
} oplog_list;

static void oplog_list_dispose(void *state)
{
    oplog_list *list = state;
    brc_oplog_rows_free(list->rows, list->n);
    brc_repo_unref(list->repo);
}

static int oplog_list_more(oplog_list *list, brc_error *err)
{
    if (list->at < list->n || list->n < OPLOG_PAGE)
        return BRC_OK;
    const int64_t before = list->rows[list->n - 1].seq;
    brc_oplog_rows_free(list->rows, list->n);
    list->rows = NULL;
    list->at = list->n = 0;
    return brc_oplog_page(list->repo->store, before, OPLOG_PAGE, &list->rows, &list->n, err);
}

static int is_switch(const brc_oplog_row *row)
{
    return strcmp(row->op, "switch") == 0;
}

static int oplog_next(void *state, const void **out_item, brc_error *err)
{
    oplog_list *list = state;
    BRC_TRY(oplog_list_more(list, err));
    if (list->at == list->n)
        return 0;
    const brc_oplog_row *row = &list->rows[list->at++];
    const char *slash = strchr(row->name, '/');
    list->now = (brc_op){.id = row->seq, .operation = row->first, .time_us = row->time_us,
                         .what = row->op, .name = slash != NULL ? slash + 1 : row->name,
                         .from = row->from, .to = row->to, .undoes = row->undoes,
                         .restores = row->restores, .draft = row->draft};
    if (strncmp(row->name, "tags/", 5) == 0)
        list->now.flags |= BRC_OP_TAG;
    if (is_switch(row))
        list->now.flags |= BRC_OP_SWITCH;
    *out_item = &list->now;
    return 1;
}

int brc_oplog(brc_iter **out, breccia *repo, brc_error *err)
{
    BRC_TRY(brc_iter_new(out, oplog_next, sizeof(oplog_list), oplog_list_dispose, err));
    oplog_list *list = brc_iter_state(*out);
    list->repo = brc_repo_ref(repo);
    int rc = brc_oplog_page(repo->store, 0, OPLOG_PAGE, &list->rows, &list->n, err);
    if (rc < 0) {
        brc_iter_free(*out);
        *out = NULL;
    }
    return rc;
}

/* ---- listing what is not committed -------------------------------- */

typedef struct draft_log {
    breccia *repo;
    brc_draft_row *rows;
    size_t left;
    brc_draft_point point; /* of the item that was returned last */
    brc_draft_op now;
    size_t n;
} draft_log;

static void draft_log_dispose(void *state)
{
    draft_log *list = state;
    brc_draft_rows_free(list->rows, list->n);
    free(list->point.text);
    brc_repo_unref(list->repo);
}

static int draft_log_next(void *state, const void **out_item, brc_error *err)
{
    draft_log *list = state;
    if (list->left == 0)
        return 0;
    const brc_draft_row *row = &list->rows[--list->left];
    free(list->point.text);
    BRC_TRY(brc_draft_point_read(&list->point, row, err));
    list->now = (brc_draft_op){.id = list->point.id, .branch = row->branch,
                               .text = list->point.text, .time_us = list->point.time_us,
                               .after = list->point.after,
                               .flags = row->draft.logs ? BRC_DRAFT_OP_UNDONE : 0};
    *out_item = &list->now;
    return 1;
}

int brc_draft_log(brc_iter **out, breccia *repo, brc_error *err)
{
    BRC_TRY(brc_iter_new(out, draft_log_next, sizeof(draft_log), draft_log_dispose, err));
    draft_log *list = brc_iter_state(*out);
    list->repo = brc_repo_ref(repo);
    int rc = brc_draft_list(repo->store, BRC_DRAFTS_POINTS, 0, &list->rows, &list->n, err);
    list->left = list->n;
    if (rc < 0) {
        brc_iter_free(*out);
        *out = NULL;
    }
    return rc;
}

/* ---- which operation -------------------------------- */

/* The part of a row that counts here; first is 0 if there is no row. */
typedef struct op_mark {
    int64_t first, undoes, restores;
} op_mark;

static int op_mark_of(op_mark *out, brc_oplog_row *rows, size_t n)
{
    *out = (op_mark){0, 0, 0};
    if (n > 0)
        *out = (op_mark){rows[0].first, rows[0].undoes, rows[0].restores};
    brc_oplog_rows_free(rows, n);
    return BRC_OK;
}

/* Finds the last operation before number `before` (0: of all). */
static int operation_before(brc_store *store, int64_t before, op_mark *out, brc_error *err)
{
    brc_oplog_row *rows;
    size_t n;
    BRC_TRY(brc_oplog_page(store, before, 1, &rows, &n, err));
    return op_mark_of(out, rows, n);
}

static int operation_of(brc_store *store, int64_t first, op_mark *out, brc_error *err)
{
    brc_oplog_row *rows;
    size_t n;
    BRC_TRY(brc_oplog_operation(store, first, &rows, &n, err));
    return op_mark_of(out, rows, n);
}

static int log_is_damaged(brc_store *store, brc_error *err)
{
    return brc_fail(err, BRC_ECORRUPT, "%s is damaged: the operation log takes back a later "
                                       "operation; 'breccia fsck' says more",
                    brc_store_path(store));
}

/* Finds the operation to undo; *target is 0 if there is none. */
static int find_undo(brc_store *store, int64_t *target, brc_error *err)
{
    op_mark at, undoing;
    *target = 0;
    BRC_TRY(operation_before(store, 0, &at, err));
    while (at.undoes != 0) {
        if (at.undoes >= at.first)
            return log_is_damaged(store, err);
        BRC_TRY(operation_before(store, at.undoes, &at, err));
    }
    if (at.restores == 0) {
        *target = at.first;
        return BRC_OK;
    }
    BRC_TRY(operation_of(store, at.restores, &undoing, err));
    *target = undoing.undoes;
    return BRC_OK;
}

/* Finds the operation to redo; *undoing is the undo to take back. */
static int find_redo(brc_store *store, int64_t *target, int64_t *undoing, brc_error *err)
{
    op_mark at;
    *target = *undoing = 0;
    BRC_TRY(operation_before(store, 0, &at, err));
    while (at.restores != 0) {
        if (at.restores >= at.first)
            return log_is_damaged(store, err);
        BRC_TRY(operation_before(store, at.restores, &at, err));
    }
    if (at.undoes != 0) {
        *target = at.undoes;
        *undoing = at.first;
    }
    return BRC_OK;
}

/* ---- which operation on uncommitted changes -------------------------------- */

/* The points of all logs, the oldest first. */
typedef struct point_list {
    brc_draft_row *rows;
    size_t n;
} point_list;

/* Finds the newest point that was not taken back. A point without changes is of an operation that
 * changed nothing, or did not come to it: it is dropped. */
static int find_point(brc_store *store, const point_list *list, const brc_draft_row **out,
                      brc_error *err)
{
    *out = NULL;
    for (size_t i = list->n; i-- > 0 && *out == NULL;) {
        int has;
        if (list->rows[i].draft.logs)
            continue;
        BRC_TRY(brc_draft_point_has_changes(store, &list->rows[i], &has, err));
        if (has)
            *out = &list->rows[i];
        else
            BRC_TRY(brc_draft_delete(store, list->rows[i].draft.id, err));
    }
    return BRC_OK;
}

/* Stores whether an operation that takes nothing back came after this row of the log. */
static int has_later(brc_store *store, int64_t seq, int *has, brc_error *err)
{
    op_mark at = {0, 0, 0};
    *has = 0;
    for (;;) {
        BRC_TRY(operation_before(store, at.first, &at, err));
        if (at.first == 0 || at.first <= seq)
            return BRC_OK;
        if (at.undoes == 0 && at.restores == 0) {
            *has = 1;
            return BRC_OK;
        }
    }
}

/* Finds the oldest point that was taken back, unless another operation came after that; *undone:
 * when that was. */
static int find_undone(brc_store *store, const point_list *list, const brc_draft_row **out,
                       int64_t *undone, brc_error *err)
{
    brc_draft_point point;
    int later = 0;
    *out = NULL;
    for (size_t i = 0; i < list->n; i++)
        if (*out == NULL && list->rows[i].draft.logs)
            *out = &list->rows[i];
        else if (*out != NULL && !list->rows[i].draft.logs)
            later = 1;
    if (*out == NULL || later) {
        *out = NULL;
        return BRC_OK;
    }
    int rc = brc_draft_point_read(&point, *out, err);
    free(point.text);
    *undone = point.undone;
    if (rc == BRC_OK)
        rc = has_later(store, *undone, &later, err);
    if (later)
        *out = NULL;
    return rc;
}

static int was_after(const brc_draft_row *row, int64_t *after, brc_error *err)
{
    brc_draft_point point;
    const int rc = brc_draft_point_read(&point, row, err);
    free(point.text);
    *after = point.after;
    return rc;
}

/* The operation of the log, or the point, that is taken back or done again. */
typedef struct next_step {
    int64_t target; /* 0: none */
    int64_t undoing; /* of a redo: the undo */
    const brc_draft_row *point;
} next_step;

/* Finds the later one of the two operations that could be taken back. */
static int next_undo(brc_store *store, const point_list *list, next_step *out, brc_error *err)
{
    int64_t after;
    BRC_TRY(find_undo(store, &out->target, err));
    BRC_TRY(find_point(store, list, &out->point, err));
    if (out->point == NULL)
        return BRC_OK;
    BRC_TRY(was_after(out->point, &after, err));
    if (after < out->target)
        out->point = NULL;
    return BRC_OK;
}

/* Finds the one that was taken back last of the two operations that could be done again. */
static int next_redo(brc_store *store, const point_list *list, next_step *out, brc_error *err)
{
    const brc_draft_row *newest;
    int64_t after, undone = 0;
    BRC_TRY(find_redo(store, &out->target, &out->undoing, err));
    BRC_TRY(find_undone(store, list, &out->point, &undone, err));
    BRC_TRY(find_point(store, list, &newest, err));
    if (newest != NULL && out->target != 0) {
        BRC_TRY(was_after(newest, &after, err));
        if (after >= out->undoing) /* it came after the undo */
            out->target = 0;
    }
    if (out->point != NULL && out->target != 0 && undone < out->undoing)
        out->point = NULL;
    return BRC_OK;
}

/* ---- one step -------------------------------- */

typedef struct undoing {
    breccia *repo;
    brc_store *store;
    int redo;
    point_list points;
    brc_oplog_row *rows;
    size_t n;
} undoing;

/* The state of a ref: where it is, or that it does not exist. */
typedef struct ref_state {
    int found, has;
    brc_oid target;
} ref_state;

static int ref_state_of(brc_store *store, const char *name, ref_state *out, brc_error *err)
{
    brc_error why = BRC_ERROR_INIT;
    memset(out, 0, sizeof(*out));
    int rc = brc_ref_get(store, name, &out->has, &out->target, &why);
    out->found = rc == BRC_OK;
    if (rc < 0 && rc != BRC_ENOTFOUND && err != NULL)
        brc_error_copy(err, &why);
    return rc == BRC_ENOTFOUND ? BRC_OK : rc;
}

static const char *state_words(const ref_state *s, char out[65])
{
    if (!s->found)
        return "not there";
    if (!s->has)
        return "without a commit";
    brc_oid_format(out, &s->target);
    out[8] = '\0';
    return out;
}

/* Fails if the ref is not as the operation left it. */
static int must_be(const undoing *u, const char *name, const ref_state *wanted, brc_error *err)
{
    ref_state now;
    char a[65], b[65];
    const int tag = strncmp(name, "tags/", 5) == 0;
    BRC_TRY(ref_state_of(u->store, name, &now, err));
    if (now.found == wanted->found && now.has == wanted->has &&
        (!now.has || brc_oid_cmp(&now.target, &wanted->target) == 0))
        return BRC_OK;
    return brc_fail(err, BRC_ESTALE,
                    "%s '%s' has moved since: it is %s%s, and the operation left it %s%s; "
                    "nothing was %s",
                    tag ? "tag" : "branch", name + (tag ? 5 : 6), now.has ? "at " : "",
                    state_words(&now, a), wanted->has ? "at " : "", state_words(wanted, b),
                    u->redo ? "redone" : "undone");
}

/* Fails if the commit was collected. */
static int must_have_commit(const undoing *u, const ref_state *s, brc_error *err)
{
    brc_object o = {.id = s->target}, *one = &o;
    char hex[65];
    if (!s->has)
        return BRC_OK;
    BRC_TRY(brc_objects_find(u->store, &one, 1, err));
    return o.found && o.kind == BRC_KIND_COMMIT
               ? BRC_OK
               : brc_fail(err, BRC_ENOTFOUND, "commit %.8s is not in %s any more: it was collected",
                          brc_oid_format(hex, &s->target), brc_store_path(u->store));
}

/* Stores whether the branch's draft, whatever rows it has, shows just what the commit has that it
 * lies over. */
static int is_draft_clean(const undoing *u, const char *name, int *clean, brc_error *err)
{
    brc_draft_head draft;
    brc_session *s;
    *clean = 0;
    if (strncmp(name, "heads/", 6) != 0)
        return BRC_OK;
    BRC_TRY(brc_draft_shared(u->store, name + 6, &draft, err));
    if (draft.id == 0 || !brc_draft_follows(&draft, draft.has_base, &draft.base))
        return BRC_OK;
    BRC_TRY(brc_session_open(&s, u->repo, name + 6, BRC_SESSION_VIEW, err));
    const int rc = brc_session_clean(clean, s, err);
    brc_session_free(s);
    return rc;
}

/* Stores whether the draft's log consists of points that were taken back: these can be done again
 * where the branch comes back to the draft's commit. */
static int keeps_redo(const undoing *u, int64_t draft, int *keeps, brc_error *err)
{
    brc_draft_row *rows;
    size_t n;
    BRC_TRY(brc_draft_list(u->store, BRC_DRAFTS_SAVES, draft, &rows, &n, err));
    *keeps = n > 0;
    for (size_t i = 0; i < n; i++)
        *keeps = *keeps && brc_draft_row_is_point(&rows[i]) && rows[i].draft.logs;
    brc_draft_rows_free(rows, n);
    return BRC_OK;
}

/* Handles the uncommitted changes of a branch that was moved. Changes based on the commit where the
 * branch is now can be committed again; a draft without changes counts as none, and stays only for
 * what can be done again in it. */
static int tend_draft(const undoing *u, const char *name, const ref_state *now, int clean,
                      brc_error *err)
{
    brc_draft_head draft;
    int empty, keeps = 0;
    if (strncmp(name, "heads/", 6) != 0)
        return BRC_OK;
    BRC_TRY(brc_draft_shared(u->store, name + 6, &draft, err));
    if (draft.id == 0)
        return BRC_OK;
    BRC_TRY(brc_draft_is_empty(u->store, draft.id, &empty, err));
    if (clean && empty && draft.kind == BRC_DRAFT_SHARED)
        BRC_TRY(keeps_redo(u, draft.id, &keeps, err));
    if (keeps)
        return brc_draft_go_along(u->store, draft.id, now->has ? &now->target : NULL, err);
    const int is_at_base = draft.has_base == now->has &&
                           (!now->has || brc_oid_cmp(&draft.base, &now->target) == 0);
    /* otherwise its base may have changes */
    if (clean || (empty && (is_at_base || brc_draft_follows(&draft, draft.has_base, &draft.base))))
        return brc_draft_delete(u->store, draft.id, err);
    if (is_at_base && draft.kind == BRC_DRAFT_SHARED)
        return brc_draft_follow(u->store, draft.id, now->has ? &now->target : NULL, err);
    return BRC_OK;
}

static int set_state(const undoing *u, const char *name, const ref_state *from,
                     const ref_state *to, const char *message, brc_error *err)
{
    int clean = 0;
    BRC_TRY(must_be(u, name, from, err));
    BRC_TRY(must_have_commit(u, to, err));
    if (from->found)
        BRC_TRY(is_draft_clean(u, name, &clean, err));
    BRC_TRY(brc_ref_put(u->store, name, to->has ? &to->target : NULL, message, "undo", 1,
                        from->has ? &from->target : NULL, brc_now_us(), err));
    return tend_draft(u, name, to, clean, err);
}

static int is_current(const undoing *u, const char *name, brc_error *err)
{
    const char *head;
    BRC_TRY(brc_head_get(u->store, &head, err));
    return strncmp(name, "heads/", 6) == 0 && strcmp(name + 6, head) == 0;
}

/* Fails if the branch has uncommitted changes. A draft that shows nothing uncommitted counts as
 * none, whatever rows it has. */
static int must_be_clean(const undoing *u, const char *branch, brc_error *err)
{
    brc_session *s;
    brc_draft_head draft;
    int clean, none = 1;
    BRC_TRY(brc_session_open(&s, u->repo, branch, BRC_SESSION_VIEW, err));
    int rc = brc_session_clean(&clean, s, err);
    brc_session_free(s);
    BRC_TRY(rc);
    BRC_TRY(brc_branch_no_private(u->store, branch, &none, err));
    if (!clean || !none)
        return brc_fail(err, BRC_ECONFLICT, "the undo would delete branch '%s', which has "
                                            "uncommitted changes: commit them or drop them first",
                        branch);
    BRC_TRY(brc_draft_shared(u->store, branch, &draft, err));
    return draft.id != 0 ? brc_draft_delete(u->store, draft.id, err) : BRC_OK;
}

static int remove_ref(const undoing *u, const char *name, const ref_state *was, brc_error *err)
{
    BRC_TRY(must_be(u, name, was, err));
    int current = is_current(u, name, err);
    if (current < 0)
        return current;
    if (current)
        return brc_fail(err, BRC_EMISUSE, "the undo would delete '%s', the current branch: "
                                          "switch to another first",
                        name + 6);
    if (!u->redo && strncmp(name, "heads/", 6) == 0)
        BRC_TRY(must_be_clean(u, name + 6, err));
    return brc_ref_leave(u->store, name, err);
}

/* Restores a ref that does not exist. The operation's last row of the ref is the one that deleted
 * it: its number names the message, and it keeps the uncommitted changes. */
static int bring_ref(const undoing *u, const char *name, const ref_state *to, brc_error *err)
{
    const ref_state none = {0, 0, {{0}}};
    brc_buf message = BRC_BUF_INIT;
    brc_oplog_row *last = NULL;
    size_t n = 0;
    int rc;
    BRC_GO(brc_oplog_last_of(u->store, name, u->rows[0].first, &last, &n, err));
    if (n > 0)
        BRC_GO(brc_ref_message_kept(&message, u->store, last->seq, err));
    BRC_GO(set_state(u, name, &none, to, message.len > 1 ? (const char *)message.data : NULL,
                     err));
    if (n > 0 && strncmp(name, "heads/", 6) == 0)
        rc = brc_branch_come_back(u->store, name + 6, last->draft, err);
done:
    brc_oplog_rows_free(last, n);
    brc_buf_dispose(&message);
    return rc;
}

static int rename_again(const undoing *u, const char *from, const char *to, const ref_state *at,
                        brc_error *err)
{
    const ref_state none = {0, 0, {{0}}};
    brc_ref_row *row = NULL;
    size_t n = 0;
    int rc;
    BRC_GO(must_be(u, from, at, err));
    BRC_GO(brc_ref_list(u->store, from, &row, &n, err)); /* the ref's own row is the first */
    BRC_GO(set_state(u, to, &none, at,
                     n > 0 && row[0].message[0] != '\0' ? row[0].message : NULL, err));
    BRC_GO(brc_ref_drop(u->store, from, brc_now_us(), err));
    if (strncmp(from, "heads/", 6) != 0)
        goto done;
    BRC_GO(brc_draft_rename(u->store, from + 6, to + 6, err));
    int current = is_current(u, from, err);
    BRC_GO(current);
    rc = current ? brc_head_set(u->store, to + 6, err) : BRC_OK;
done:
    brc_ref_rows_free(row, n);
    return rc;
}

/* Returns whether the operation also makes one of these branches. */
static int makes_one_of(const undoing *u, const char *one, const char *other)
{
    for (size_t i = 0; i < u->n; i++)
        if (strcmp(u->rows[i].op, "branch") == 0 && !u->rows[i].has_old &&
            (strcmp(u->rows[i].name, one) == 0 || strcmp(u->rows[i].name, other) == 0))
            return 1;
    return 0;
}

/* A switch to a branch that the same operation made took the uncommitted changes along. */
static int switch_again(const undoing *u, const char *from, const char *to, brc_error *err)
{
    const char *head;
    ref_state there;
    BRC_TRY(brc_head_get(u->store, &head, err));
    if (strncmp(from, "heads/", 6) != 0 || strncmp(to, "heads/", 6) != 0)
        return log_is_damaged(u->store, err);
    if (strcmp(head, from + 6) != 0)
        return brc_fail(err, BRC_ESTALE, "the current branch is now '%s', and not '%s'", head,
                        from + 6);
    BRC_TRY(ref_state_of(u->store, to, &there, err));
    if (!there.found)
        return brc_fail(err, BRC_ESTALE, "branch '%s' no longer exists", to + 6);
    if (makes_one_of(u, from, to))
        BRC_TRY(brc_changes_carry(u->store, from + 6, to + 6, err));
    BRC_TRY(brc_oplog_switch(u->store, from, to, brc_now_us(), err));
    return brc_head_set(u->store, to + 6, err);
}

static int has_two_ends(const char *op)
{
    return strcmp(op, "branch") == 0 || strcmp(op, "tag") == 0;
}

static int step_one(const undoing *u, const brc_oplog_row *row, brc_error *err)
{
    const ref_state before = {1, row->has_old, row->from}, after = {1, row->has_new, row->to};
    const int makes = has_two_ends(row->op), deletes = strcmp(row->op, "delete") == 0;
    if (strncmp(row->name, "heads/", 6) != 0 && strncmp(row->name, "tags/", 5) != 0)
        return log_is_damaged(u->store, err);
    if (is_switch(row))
        return brc_fail(err, BRC_EUNSUPPORTED, "operation %lld does not say which branch was the "
                                               "current one before: switch by name",
                        (long long)row->first);
    if (makes && !row->has_old)
        return u->redo ? bring_ref(u, row->name, &after, err)
                       : remove_ref(u, row->name, &after, err);
    if (deletes)
        return u->redo ? remove_ref(u, row->name, &before, err)
                       : bring_ref(u, row->name, &before, err);
    return set_state(u, row->name, u->redo ? &before : &after, u->redo ? &after : &before, NULL,
                     err);
}

/* Applies two rows that are one change. */
static int step_two(const undoing *u, const brc_oplog_row *row, brc_error *err)
{
    const char *first = row[0].name, *second = row[1].name;
    if (is_switch(row))
        return u->redo ? switch_again(u, first, second, err) : switch_again(u, second, first, err);
    const ref_state at = {1, row->has_new, row->to};
    return u->redo ? rename_again(u, second, first, &at, err)
                   : rename_again(u, first, second, &at, err);
}

static int are_one(const brc_oplog_row *row)
{
    if (is_switch(row))
        return is_switch(row + 1);
    return strcmp(row->op, "rename") == 0 && strcmp(row[1].op, "delete") == 0 &&
           strncmp(row->name, row[1].name, 5) == 0 && strchr(row->name, '/') != NULL;
}

static int steps_back(const undoing *u, brc_error *err)
{
    for (size_t i = u->n; i > 0;) {
        if (i >= 2 && are_one(&u->rows[i - 2])) {
            i -= 2;
            BRC_TRY(step_two(u, &u->rows[i], err));
        } else {
            i--;
            BRC_TRY(step_one(u, &u->rows[i], err));
        }
    }
    return BRC_OK;
}

static int steps_forward(const undoing *u, brc_error *err)
{
    for (size_t i = 0; i < u->n;) {
        if (i + 2 <= u->n && are_one(&u->rows[i])) {
            BRC_TRY(step_two(u, &u->rows[i], err));
            i += 2;
        } else {
            BRC_TRY(step_one(u, &u->rows[i], err));
            i++;
        }
    }
    return BRC_OK;
}

/* ---- the whole -------------------------------- */

static int no_operation(const undoing *u, brc_error *err)
{
    return brc_fail(err, BRC_EMISUSE, u->redo ? "there is nothing to redo: nothing was undone, or "
                                                "another operation came after it"
                                              : "there is nothing to undo");
}

static int not_expected(const undoing *u, const next_step *next, int64_t expect, brc_error *err)
{
    brc_draft_point point;
    const char *what = u->redo ? "redone" : "undone";
    if (next->point == NULL)
        return brc_fail(err, BRC_ESTALE, "operation %lld is not the one that would be %s now: that "
                                         "is %lld",
                        (long long)expect, what, (long long)next->target);
    BRC_TRY(brc_draft_point_read(&point, next->point, err));
    const int rc = brc_fail(err, BRC_ESTALE,
                            "operation %lld is not the one that would be %s now: that is '%s', "
                            "which is not committed",
                            (long long)expect, what, point.text);
    free(point.text);
    return rc;
}

static int swap_point(const undoing *u, const brc_draft_row *point, brc_error *err)
{
    brc_draft_head draft;
    BRC_TRY(brc_draft_get(u->store, point->draft.parent, &draft, err));
    if (draft.saves)
        return brc_fail(err, BRC_EBUSY,
                        "a session has a savepoint open in the uncommitted changes of branch '%s': "
                        "nothing was %s; wait until it is released",
                        point->branch, u->redo ? "redone" : "undone");
    if (draft.has_base != point->draft.has_base ||
        (draft.has_base && brc_oid_cmp(&draft.base, &point->draft.base) != 0))
        return brc_fail(err, BRC_ESTALE,
                        "branch '%s' is not at the commit over which the operation was made: "
                        "nothing was %s",
                        point->branch, u->redo ? "redone" : "undone");
    return brc_draft_point_swap(u->store, point, err);
}

static int undo_steps(undoing *u, int64_t expect, int64_t *found, int64_t *operation,
                      brc_error *err)
{
    next_step next = {0};
    op_mark made;
    BRC_TRY(brc_draft_list(u->store, BRC_DRAFTS_POINTS, 0, &u->points.rows, &u->points.n, err));
    BRC_TRY(u->redo ? next_redo(u->store, &u->points, &next, err)
                    : next_undo(u->store, &u->points, &next, err));
    const int64_t target = next.target;
    *found = *operation = next.point != NULL ? -next.point->draft.id : target;
    if (*found == 0)
        return no_operation(u, err);
    if (expect != 0 && expect != *found)
        return not_expected(u, &next, expect, err);
    if (next.point != NULL)
        return swap_point(u, next.point, err);
    BRC_TRY(brc_oplog_operation(u->store, target, &u->rows, &u->n, err));
    /* the first row of all made the branch of a new file */
    if (u->n == 0 || (target == 1 && strcmp(u->rows[0].op, "branch") == 0))
        return no_operation(u, err);
    brc_oplog_takes_back(u->store, u->redo ? 0 : target, next.undoing);
    int rc = u->redo ? steps_forward(u, err) : steps_back(u, err);
    brc_oplog_takes_back(u->store, 0, 0);
    BRC_TRY(rc);
    BRC_TRY(operation_before(u->store, 0, &made, err));
    *operation = made.first;
    return BRC_OK;
}

int brc_undo(int64_t *operation, breccia *repo, uint32_t flags, int64_t expect, brc_error *err)
{
    undoing u = {repo, repo->store, (flags & BRC_UNDO_REDO) != 0, {NULL, 0}, NULL, 0};
    const int dry = (flags & BRC_UNDO_DRY_RUN) != 0;
    int64_t made = 0, found = 0;
    if (operation != NULL)
        *operation = 0;
    BRC_TRY(brc_flags_check(flags, BRC_UNDO_REDO | BRC_UNDO_DRY_RUN, "brc_undo()", err));
    if (brc_store_in_write(repo->store))
        return brc_fail(err, BRC_EMISUSE, "undo is an operation of its own: end the transaction "
                                          "first");
    BRC_TRY(brc_store_begin(repo->store, err));
    int rc = undo_steps(&u, expect, &found, &made, err);
    repo->changes++;
    brc_oplog_rows_free(u.rows, u.n);
    brc_draft_rows_free(u.points.rows, u.points.n);
    if (dry && rc == BRC_OK)
        rc = brc_store_end(repo->store, 0, err);
    else
        rc = brc_end_with(repo, rc, err);
    if (rc == BRC_OK && operation != NULL)
        *operation = dry ? found : made;
    return rc;
}
