/* The uncommitted changes of the whole file: who owns them, adopting and dropping them. */
#include <stdlib.h>
#include <string.h>

#include "../base/alloc.h"
#include "../base/process.h"
#include "../base/sized.h"
#include "../history/commit.h"
#include "../merge/merge_end.h"
#include "../merge/replay.h"
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

int brc_drafts(brc_iter **out, breccia *repo, brc_error *err)
{
    BRC_TRY(brc_iter_new(out, BRC_ITER_DRAFTS, sizeof(draft_list), draft_list_dispose, err));
    draft_list *list = brc_iter_state(*out);
    list->repo = brc_repo_ref(repo);
    int rc = brc_draft_list(repo->store, &list->rows, &list->n, err);
    if (rc < 0) {
        brc_iter_free(*out);
        *out = NULL;
    }
    return rc;
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

/* Describes a child, which may have been joined since the list was read. */
static int describe_child(draft_list *list, const brc_draft_row *row, brc_error *err)
{
    brc_draft_child child = {0};
    const int is = brc_draft_child_read(list->repo->store, row->draft.id, &child, err);
    list->now.flags |= BRC_DRAFT_CHILD;
    list->now.parent = child.parent;
    brc_draft_child_dispose(&child);
    BRC_TRY(is < 0 ? is : BRC_OK);
    brc_draft_head parent;
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
    return row->draft.is_child ? describe_child(list, row, err) : BRC_OK;
}

int brc_drafts_next(brc_iter *it, const brc_draft **out_item, brc_error *err)
{
    int stale = 0;
    *out_item = NULL;
    BRC_TRY(brc_iter_check(it, BRC_ITER_DRAFTS, err));
    draft_list *list = brc_iter_state(it);
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

/* ---- adopting and dropping -------------------------------- */

/* Finds a draft at index *at of *rows. Fails with BRC_EBUSY if its owner is running; but an owner
 * may drop its own draft, for example one kept after a conflict, and the children of its
 * sessions. */
static int find_draft(brc_store *store, int64_t id, int is_drop, brc_draft_row **rows, size_t *n,
                      size_t *at, brc_error *err)
{
    BRC_TRY(brc_draft_list(store, rows, n, err));
    for (*at = 0; *at < *n; ++*at)
        if ((*rows)[*at].draft.id == id)
            break;
    if (*at == *n)
        return brc_fail(err, BRC_ENOTFOUND, "%s has no draft %lld: 'breccia drafts' lists them",
                        brc_store_path(store), (long long)id);
    const brc_draft_row *row = &(*rows)[*at];
    if (is_drop && row->owner != NULL && brc_process_is_this(row->owner))
        return BRC_OK;
    if (row->draft.kind == BRC_DRAFT_PRIVATE && brc_process_state(row->owner) == BRC_PROCESS_ALIVE)
        return brc_fail(err, BRC_EBUSY, "draft %lld belongs to process %lld, which is running: "
                                        "end it first",
                        (long long)id, (long long)brc_process_id(row->owner));
    return BRC_OK;
}

/* Adopts nodes, chunks and keys. */
static int adopt_all(brc_session *onto, const brc_draft_head *draft, const brc_adopt_look *look,
                     brc_error *err)
{
    BRC_TRY(brc_session_adopt(onto, draft, look, err));
    onto->repo->changes++;
    return brc_keys_check_adopted(onto, draft->id, err);
}

/* Fails for an unfinished rewrite: its draft has an extra node, which replaces the array when it is
 * complete. */
static int check_is_whole(const brc_draft_row *row, brc_error *err)
{
    char *array;
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

static int adopt_steps(breccia *repo, int64_t id, const brc_adopt_look *look, brc_error *err)
{
    brc_draft_row *rows = NULL;
    brc_session *onto = NULL;
    size_t n = 0, at;
    int rc;
    BRC_GO(find_draft(repo->store, id, 0, &rows, &n, &at, err));
    if (rows[at].draft.kind != BRC_DRAFT_PRIVATE) {
        rc = rows[at].draft.kind == BRC_DRAFT_MERGE
                 ? brc_merge_is_open(repo->store, rows[at].branch, err)
                 : brc_fail(err, BRC_EINVAL, "draft %lld is shared by branch '%s' already",
                            (long long)id, rows[at].branch);
        goto done;
    }
    BRC_GO(check_is_whole(&rows[at], err));
    BRC_GO(brc_session_open(&onto, repo, rows[at].branch, BRC_SESSION_WRITE, err));
    rc = adopt_all(onto, &rows[at].draft, look, err);
done:
    brc_session_free(onto);
    brc_draft_rows_free(rows, n);
    return rc;
}

static int drop_steps(breccia *repo, int64_t id, const brc_adopt_look *look, brc_error *err)
{
    (void)look;
    brc_draft_row *rows = NULL;
    size_t n = 0, at;
    int rc = find_draft(repo->store, id, 1, &rows, &n, &at, err);
    if (rc == BRC_OK)
        rc = brc_draft_delete(repo->store, id, err);
    brc_draft_rows_free(rows, n);
    return rc;
}

static int in_transaction(breccia *repo, int64_t id, const brc_adopt_look *look,
                          int (*steps)(breccia *repo, int64_t id, const brc_adopt_look *look,
                                       brc_error *err),
                          brc_error *err)
{
    BRC_TRY(brc_store_begin(repo->store, err));
    int rc = steps(repo, id, look, err);
    repo->changes++;
    return brc_end_with(repo, rc, err);
}

/* Adopts a draft on top of the branch's new commits, or makes room to adopt it as it is, in short
 * transactions. */
static int prepare_row(breccia *repo, const brc_draft_row *row, brc_adopt_look *look, int *done,
                       brc_error *err)
{
    brc_session *onto = NULL;
    char *array;
    BRC_TRY(brc_bulk_rewrites(row, &array, err));
    if (array == NULL && row->owner[0] != '\0')
        BRC_TRY(brc_replay_adopt(done, repo, row->branch, row->draft.id, err));
    free(array);
    if (*done)
        return BRC_OK;
    BRC_TRY(brc_session_open(&onto, repo, row->branch, BRC_SESSION_WRITE, err));
    int rc = brc_adopt_make_room(onto, row->draft.id, err);
    if (rc == BRC_OK)
        rc = brc_adopt_look_ahead(onto, row->draft.id, look, err);
    brc_session_free(onto);
    return rc;
}

/* Prepares an adoption before its transaction. It does not report faults of the draft. Sets *done
 * if nothing is left to do. */
static int prepare_adoption(breccia *repo, int64_t id, brc_adopt_look *look, int *done,
                            brc_error *err)
{
    brc_draft_row *rows;
    size_t n, at = 0;
    BRC_TRY(brc_draft_list(repo->store, &rows, &n, err));
    while (at < n && rows[at].draft.id != id)
        at++;
    int rc = BRC_OK;
    if (at < n && rows[at].draft.kind == BRC_DRAFT_PRIVATE &&
        brc_process_state(rows[at].owner) != BRC_PROCESS_ALIVE)
        rc = prepare_row(repo, &rows[at], look, done, err);
    brc_draft_rows_free(rows, n);
    return rc;
}

/* Fails for a merge that was kept from a deleted branch, because its conflicts cannot become
 * changes of another draft. */
static int check_no_kept_merge(brc_store *store, int64_t id, brc_error *err)
{
    int is;
    BRC_TRY(brc_draft_is_kept_merge(store, id, &is, err));
    return is ? brc_fail(err, BRC_EMISUSE,
                         "draft %lld is a merge that was open on a deleted branch: undo the "
                         "deletion to get it back",
                         (long long)id)
              : BRC_OK;
}

int brc_draft_adopt(breccia *repo, int64_t id, brc_error *err)
{
    brc_adopt_look look = {.met = 0};
    int done = 0;
    BRC_TRY(check_no_kept_merge(repo->store, id, err));
    if (!brc_store_in_write(repo->store))
        BRC_TRY(prepare_adoption(repo, id, &look, &done, err));
    return done ? BRC_OK : in_transaction(repo, id, &look, adopt_steps, err);
}

/* Hands changes over from one session to another; both belong to one handle. */
static int hand_over_steps(brc_session *from, brc_session *to, const brc_adopt_look *look,
                           brc_error *err)
{
    brc_draft_head draft;
    BRC_TRY(brc_session_begin_read(from, err));
    brc_session_end_read(from);
    if (from->draft.id == 0)
        return BRC_OK;
    draft = from->draft;
    BRC_TRY(adopt_all(to, &draft, look, err));
    return brc_session_detach(from, err);
}

int brc_session_hand_over(brc_session *from, brc_session *to, brc_error *err)
{
    if (from->mode != BRC_SESSION_PRIVATE || to->mode < BRC_SESSION_WRITE)
        return brc_fail(err, BRC_EINVAL, "the changes of a private session are handed over to one "
                                         "that can be changed");
    if (from->draft.is_child)
        return brc_fail(err, BRC_EMISUSE,
                        "draft %lld is the child of another session: join it with "
                        "brc_session_join()",
                        (long long)from->draft.id);
    if (from->repo != to->repo || from == to || strcmp(from->branch, to->branch) != 0)
        return brc_fail(err, BRC_EINVAL,
                        "changes are handed over between two sessions of one handle and one "
                        "branch");
    const brc_draft_head draft = from->draft;
    const brc_oid base = from->base;
    brc_adopt_look look = {.met = 0};
    if (draft.id != 0 && !brc_store_in_write(from->repo->store)) {
        BRC_TRY(brc_adopt_make_room(to, draft.id, err));
        BRC_TRY(brc_adopt_look_ahead(to, draft.id, &look, err));
    }
    BRC_TRY(brc_store_begin(from->repo->store, err));
    int rc = hand_over_steps(from, to, &look, err);
    from->repo->changes++;
    rc = brc_end_with(from->repo, rc, err);
    if (rc < 0) { /* the changes still belong to `from` */
        from->draft = draft;
        from->base = base;
        from->is_read = to->is_read = 0;
    }
    return rc;
}

int brc_draft_drop(breccia *repo, int64_t id, brc_error *err)
{
    return in_transaction(repo, id, NULL, drop_steps, err);
}
