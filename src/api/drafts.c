/* The uncommitted changes of the whole file: who owns them, adopting and dropping them. */
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
#include "../work/adopt.h"
#include "../work/bulk_write.h"
#include "../zarr/key/key_rows.h"

/* ---- listing -------------------------------- */

typedef struct draft_list {
    breccia *repo;
    brc_draft_row *rows;
    size_t n, at;
    brc_draft now; /* the item that was returned last */
    char *array;   /* its array */
} draft_list;

static void draft_list_dispose(void *state)
{
    draft_list *list = state;
    brc_draft_rows_free(list->rows, list->n);
    free(list->array);
    brc_repo_unref(list->repo);
}

static int is_stale(brc_store *store, const brc_draft_row *row, int *stale, brc_error *err)
{
    int has;
    brc_oid tip;
    char *full;
    brc_error why = BRC_ERROR_INIT;
    BRC_TRY(brc_ref_full(&full, "heads", row->branch, err));
    int rc = brc_ref_get(store, full, &has, &tip, &why);
    free(full);
    if (rc == BRC_ENOTFOUND) { /* the draft was kept from a deleted branch */
        *stale = 1;
        return BRC_OK;
    }
    if (rc < 0 && err != NULL)
        brc_error_copy(err, &why);
    if (rc == BRC_OK)
        *stale = !brc_draft_follows(&row->draft, has, &tip);
    return rc;
}

/* Returns the name of what is open. Damaged drafts are listed too, so that they can be dropped. */
static const char *open_name(brc_store *store, const brc_draft_row *row)
{
    brc_open_merge merge = {0};
    (void)!brc_open_merge_rows(&merge, store, &row->draft, NULL);
    const char *name = brc_open_merge_command(&merge);
    brc_open_merge_dispose(&merge);
    return name;
}

static int describe_child(draft_list *list, const brc_draft_row *row, brc_error *err)
{
    brc_draft_head parent;
    list->now.flags |= BRC_DRAFT_CHILD;
    list->now.parent = row->draft.parent;
    BRC_TRY(brc_draft_get(list->repo->store, list->now.parent, &parent, err));
    list->now.flags |= parent.id == 0 || parent.kind != BRC_DRAFT_PRIVATE ? BRC_DRAFT_ORPHAN : 0;
    return BRC_OK;
}

static int describe_private(draft_list *list, const brc_draft_row *row, brc_error *err)
{
    brc_draft *out = &list->now;
    out->flags |= BRC_DRAFT_OWNED;
    out->owner = brc_process_state(row->owner);
    out->owner_pid = brc_process_id(row->owner);
    free(list->array);
    BRC_TRY(brc_bulk_rewrites(row, &list->array, err));
    out->flags |= list->array != NULL ? BRC_DRAFT_REWRITING : 0;
    out->array = list->array;
    return row->draft.parent != 0 ? describe_child(list, row, err) : BRC_OK;
}

static int draft_next(void *state, const void **out_item, brc_error *err)
{
    int stale = 0;
    draft_list *list = state;
    if (list->at == list->n)
        return 0;
    const brc_draft_row *row = &list->rows[list->at++];
    brc_draft *out = &list->now;
    *out = (brc_draft){.id = row->draft.id, .branch = row->branch, .time_us = row->draft.time_us};
    if (row->draft.kind == BRC_DRAFT_MERGE) {
        out->flags |= BRC_DRAFT_MERGING;
        out->op = open_name(list->repo->store, row);
    }
    if (row->draft.kind == BRC_DRAFT_PRIVATE)
        BRC_TRY(describe_private(list, row, err));
    BRC_TRY(is_stale(list->repo->store, row, &stale, err));
    out->flags |= stale ? BRC_DRAFT_STALE : 0;
    BRC_TRY(brc_draft_count(list->repo->store, row->draft.id, &out->nodes, err));
    *out_item = out;
    return 1;
}

int brc_drafts(brc_iter **out, breccia *repo, brc_error *err)
{
    BRC_TRY(brc_iter_new(out, draft_next, sizeof(draft_list), draft_list_dispose, err));
    draft_list *list = brc_iter_state(*out);
    list->repo = brc_repo_ref(repo);
    int rc = brc_draft_list(repo->store, BRC_DRAFTS_ALL, 0, &list->rows, &list->n, err);
    if (rc < 0) {
        brc_iter_free(*out);
        *out = NULL;
    }
    return rc;
}

/* ---- adopting and dropping -------------------------------- */

/* Finds a draft at index *at of *rows. Fails with BRC_EBUSY if its owner is running; but an owner
 * may drop its own draft, for example one kept after a conflict, and the children of its
 * sessions. */
static int find_draft(brc_store *store, int64_t id, int is_drop, brc_draft_row **rows, size_t *n,
                      size_t *at, brc_error *err)
{
    BRC_TRY(brc_draft_list(store, BRC_DRAFTS_ALL, 0, rows, n, err));
    for (*at = 0; *at < *n; ++*at)
        if ((*rows)[*at].draft.id == id)
            break;
    if (*at == *n)
        return brc_fail(err, BRC_ENOTFOUND,
                        "there is no draft %lld in %s: 'breccia drafts' lists them", (long long)id,
                        brc_store_path(store));
    const brc_draft_row *row = &(*rows)[*at];
    if (is_drop && row->owner != NULL && brc_process_is_this(row->owner))
        return BRC_OK;
    if (row->draft.kind == BRC_DRAFT_PRIVATE && brc_process_state(row->owner) == BRC_PROCESS_ALIVE)
        return brc_fail(err, BRC_EBUSY, "draft %lld belongs to process %lld, which is running: "
                                        "end it first",
                        (long long)id, (long long)brc_process_id(row->owner));
    return BRC_OK;
}

/* Fails for an open merge whose branch is gone, because its conflicts cannot become changes of
 * another draft, and for an unfinished rewrite: its draft has an extra node, which replaces the
 * array when it is complete. */
static int check_is_whole(const brc_draft_row *row, brc_error *err)
{
    char *array;
    if (brc_draft_row_is_merge(row))
        return brc_fail(err, BRC_EMISUSE,
                        "draft %lld is a merge that was open on a deleted branch: undo the "
                        "deletion to get it back",
                        (long long)row->draft.id);
    BRC_TRY(brc_bulk_rewrites(row, &array, err));
    if (array == NULL)
        return BRC_OK;
    int rc = brc_fail(err, BRC_EINVAL,
                      "draft %lld is an unfinished rewrite of %.300s, which is as it was before: "
                      "drop the draft, and rewrite the array again",
                      (long long)row->draft.id, array);
    free(array);
    return rc;
}

/*
 * A draft that becomes a part of a session's changes. Its rows do if both sides have nothing in
 * common, or if the session has no changes. Otherwise the two are merged, without a lock.
 */
typedef struct adopt_call {
    breccia *repo;
    int64_t id;
    brc_session *from;   /* whose draft is handed over; NULL: a draft is adopted    */
    brc_session *onto;   /* NULL: the session on the draft's branch                 */
    brc_session *opened; /* ... which this call has opened                          */
    int merges;          /* the rows of both sides meet                             */
    int overtaken;       /* others wrote while they were merged                     */
    int within;          /* a transaction of the caller is open                     */
    brc_layers layers;
} adopt_call;

static void adopt_dispose(adopt_call *c)
{
    if (c->layers.s != NULL)
        brc_layers_dispose(&c->layers);
    brc_session_free(c->opened);
    c->opened = NULL;
}

/* Finds the draft and the session that gets it. */
static int adopt_find(adopt_call *c, brc_draft_row **rows, size_t *n, size_t *at, brc_error *err)
{
    if (c->from != NULL) {
        *at = 0;
        BRC_TRY(brc_draft_list(c->repo->store, BRC_DRAFTS_ONE, c->id, rows, n, err));
        return *n > 0 ? BRC_OK : brc_session_follow(c->from, err);
    }
    BRC_TRY(find_draft(c->repo->store, c->id, 0, rows, n, at, err));
    const brc_draft_row *row = &(*rows)[*at];
    if (row->draft.kind == BRC_DRAFT_MERGE)
        return brc_merge_is_open(c->repo->store, row->branch, err);
    if (row->draft.kind != BRC_DRAFT_PRIVATE)
        return brc_fail(err, BRC_EINVAL, "draft %lld is shared by branch '%s' already",
                        (long long)c->id, row->branch);
    BRC_TRY(check_is_whole(row, err));
    return brc_session_open(&c->opened, c->repo, row->branch, BRC_SESSION_WRITE, err);
}

static brc_session *adopt_onto(const adopt_call *c)
{
    return c->onto != NULL ? c->onto : c->opened;
}

static int merge_one(adopt_call *c, brc_error *err)
{
    brc_draft_row *rows = NULL;
    size_t n = 0, at;
    int rc = adopt_find(c, &rows, &n, &at, err);
    if (rc == BRC_OK && n == 0)
        rc = BRC_CHANGE_AGAIN;
    if (rc == BRC_OK) {
        brc_layers_start(&c->layers, adopt_onto(c));
        rc = brc_layers_add(&c->layers, &rows[at], rows[at].draft.has_base, &rows[at].draft.base,
                            err);
    }
    brc_draft_rows_free(rows, n);
    return rc;
}

static int adopt_in_conflict(const adopt_call *c, brc_error *err)
{
    const brc_clash_list *list = &c->layers.clashes;
    return brc_fail(err, BRC_ECONFLICT,
                    "%.300s: both sides have changed it, as one of %zu conflicts; draft %lld is "
                    "kept: commit or drop the other changes, or drop it",
                    list->items[0].path, list->n, (long long)c->id);
}

/* Merges both sides as they are now. */
static int adopt_merge(adopt_call *c, brc_error *err)
{
    adopt_dispose(c);
    BRC_TRY(brc_store_begin_read(c->repo->store, err));
    int rc = merge_one(c, err);
    brc_store_end_read(c->repo->store);
    if (rc == BRC_OK)
        rc = brc_layers_work(&c->layers, err);
    if (rc == BRC_OK && c->layers.clashes.n > 0)
        return adopt_in_conflict(c, err);
    if (rc == BRC_OK && adopt_onto(c)->draft.id == 0) { /* its changes were committed meanwhile */
        adopt_dispose(c);
        c->merges = 0; /* the rows meet no others */
    }
    return rc;
}

static int adopt_work(void *ctx, brc_error *err)
{
    adopt_call *c = ctx;
    adopt_dispose(c);
    const int rc = c->merges ? adopt_merge(c, err) : BRC_OK;
    c->overtaken = rc == BRC_CHANGE_AGAIN; /* commit() decides: it may insist */
    return c->overtaken ? BRC_OK : rc;
}

/* Adopts nodes, chunks and keys. Rows that were given can be taken back only with the whole
 * transaction, so a part of the caller's transaction merges unless the session has no changes. */
static int adopt_by_rows(adopt_call *c, brc_error *err)
{
    brc_draft_row *rows = NULL;
    size_t n = 0, at;
    int rc = adopt_find(c, &rows, &n, &at, err);
    if (rc == BRC_OK && n > 0)
        rc = brc_session_adopt(adopt_onto(c), &rows[at].draft, c->within, err);
    brc_draft_rows_free(rows, n);
    return rc;
}

static int adopt_merged(adopt_call *c, int insists, brc_error *err)
{
    if (c->overtaken && !insists)
        return BRC_CHANGE_AGAIN;
    if (insists) /* others write all the time */
        BRC_TRY(adopt_merge(c, err));
    if (!c->merges)
        return adopt_by_rows(c, err);
    brc_session *onto = adopt_onto(c);
    BRC_TRY(brc_session_begin(onto, err));
    const int rc = brc_layers_commit(&c->layers, err);
    onto->is_read = 0;
    const int ended = brc_session_end(onto, rc > 0 ? BRC_ECONFLICT : rc, rc > 0 ? NULL : err);
    return rc > 0 ? rc : ended;
}

static int adopt_commit(void *ctx, int insists, brc_error *err)
{
    adopt_call *c = ctx;
    int rc = c->merges ? adopt_merged(c, insists, err) : adopt_by_rows(c, err);
    c->repo->changes++;
    if (rc == BRC_ADOPT_MEETS) {
        c->merges = 1;
        if (!c->within)
            return BRC_CHANGE_WORK;
        rc = adopt_merged(c, 1, err);
    }
    if (rc == BRC_OK)
        rc = brc_keys_check_adopted(adopt_onto(c), c->id, err);
    return rc == BRC_OK && c->from != NULL ? brc_session_detach(c->from, err) : rc;
}

static int adopt_run(adopt_call *c, brc_error *err)
{
    char doing[80];
    snprintf(doing, sizeof(doing), "draft %lld was adopted", (long long)c->id);
    const brc_file_change change = {.about = doing, .ctx = c, .is_ahead = 1,
                                    .work = adopt_work, .commit = adopt_commit};
    c->within = brc_store_in_write(c->repo->store);
    if (c->within)
        BRC_TRY(brc_store_begin(c->repo->store, err));
    int rc = brc_change_run(c->repo->store, &change, err);
    if (rc == BRC_CHANGE_AGAIN)
        rc = brc_change_is_late(c->repo->store, doing, "it is kept; adopt it again", err);
    adopt_dispose(c);
    c->repo->changes++;
    return c->within ? brc_end_with(c->repo, rc, err) : rc;
}

/* Merges what a process that has ended left onto the branch's new commits, if the branch has no
 * changes of its own. It does not report faults of the draft. Sets *done if nothing is left to
 * do. */
static int adopt_onto_tip(breccia *repo, int64_t id, int *done, brc_error *err)
{
    brc_draft_row *rows;
    size_t n;
    BRC_TRY(brc_draft_list(repo->store, BRC_DRAFTS_ONE, id, &rows, &n, err));
    int rc = BRC_OK;
    if (n > 0 && rows->draft.kind == BRC_DRAFT_PRIVATE && *rows->owner != '\0' &&
        strncmp(rows->plan, BRC_REWRITE_PLAN, strlen(BRC_REWRITE_PLAN)) != 0 &&
        brc_process_state(rows->owner) != BRC_PROCESS_ALIVE)
        rc = brc_replay_adopt(done, repo, rows->branch, id, err);
    brc_draft_rows_free(rows, n);
    return rc;
}

int brc_draft_adopt(breccia *repo, int64_t id, brc_error *err)
{
    adopt_call call = {.repo = repo, .id = id};
    int done = 0;
    if (!brc_store_in_write(repo->store))
        BRC_TRY(adopt_onto_tip(repo, id, &done, err));
    return done ? BRC_OK : adopt_run(&call, err);
}

int brc_session_hand_over(brc_session *from, brc_session *to, brc_error *err)
{
    if (from->mode != BRC_SESSION_PRIVATE || to->mode < BRC_SESSION_WRITE)
        return brc_fail(err, BRC_EINVAL, "the changes of a private session are handed over to one "
                                         "that can be changed");
    if (from->draft.parent != 0)
        return brc_fail(err, BRC_EMISUSE,
                        "draft %lld is the child of another session: join it with "
                        "brc_session_join()",
                        (long long)from->draft.id);
    if (from->repo != to->repo || from == to || strcmp(from->branch, to->branch) != 0)
        return brc_fail(err, BRC_EINVAL,
                        "changes are handed over between two sessions of one handle and one "
                        "branch");
    BRC_TRY(brc_session_begin_read(from, err));
    brc_session_end_read(from);
    adopt_call call = {.repo = from->repo, .from = from, .onto = to, .id = from->draft.id};
    if (from->draft.id == 0)
        return BRC_OK;
    const brc_draft_head draft = from->draft;
    const brc_oid base = from->base;
    const int rc = adopt_run(&call, err);
    if (rc < 0) { /* the changes still belong to `from` */
        from->draft = draft;
        from->base = base;
        from->is_read = to->is_read = 0;
    }
    return rc;
}

/* ---- dropping -------------------------------- */

static int drop_steps(breccia *repo, int64_t id, brc_error *err)
{
    brc_draft_row *rows = NULL;
    size_t n = 0, at;
    int rc = find_draft(repo->store, id, 1, &rows, &n, &at, err);
    if (rc == BRC_OK)
        rc = brc_draft_delete(repo->store, id, err);
    brc_draft_rows_free(rows, n);
    return rc;
}

int brc_draft_drop(breccia *repo, int64_t id, brc_error *err)
{
    BRC_TRY(brc_store_begin(repo->store, err));
    const int rc = drop_steps(repo, id, err);
    repo->changes++;
    return brc_end_with(repo, rc, err);
}
