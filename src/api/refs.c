#include "refs.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../base/alloc.h"
#include "../base/json.h"
#include "../base/process.h"
#include "../base/sized.h"
#include "../history/ancestry.h"
#include "../history/commit.h"
#include "../merge/steps.h"
#include "../work/bulk_write.h"
#include "../work/session.h"

/* ==== branch drafts ================================ */

static int is_nobodys(const brc_draft_row *row)
{
    return row->draft.kind == BRC_DRAFT_PRIVATE && row->owner[0] == '\0';
}

/* Checks whether the draft is private and its process runs, or whether it has changes of an ended
 * process. */
static int is_left_work(brc_store *store, const brc_draft_row *row, int *is, brc_error *err)
{
    int unused;
    *is = row->draft.kind == BRC_DRAFT_PRIVATE && !is_nobodys(row);
    if (!*is || brc_process_state(row->owner) != BRC_PROCESS_DEAD)
        return BRC_OK;
    BRC_TRY(brc_draft_is_unused(store, &row->draft, &unused, err));
    *is = !unused;
    return BRC_OK;
}

int brc_branch_no_private(brc_store *store, const char *branch, int *none, brc_error *err)
{
    brc_draft_row *rows;
    size_t n;
    BRC_TRY(brc_draft_list(store, BRC_DRAFTS_ALL, 0, &rows, &n, err));
    int rc = BRC_OK;
    *none = 1;
    for (size_t i = 0; i < n && rc == BRC_OK; i++) {
        int is = 0;
        if (strcmp(rows[i].branch, branch) == 0)
            rc = is_left_work(store, &rows[i], &is, err);
        *none &= !is;
    }
    brc_draft_rows_free(rows, n);
    return rc;
}

/* Fails if the draft's process is running: its next writes would belong to no branch. */
static int check_ended(const brc_draft_row *row, brc_error *err)
{
    if (brc_process_state(row->owner) != BRC_PROCESS_ALIVE)
        return BRC_OK;
    return brc_fail(err, BRC_EBUSY,
                    "process %lld is at work on branch '%s' (draft %lld): wait until it has ended, "
                    "or end it",
                    (long long)brc_process_id(row->owner), row->branch, (long long)row->draft.id);
}

/* Keeps the private changes of ended processes, which can still be adopted on a branch of that
 * name. */
static int leave_private(brc_store *store, const brc_draft_row *row, brc_error *err)
{
    int unused;
    BRC_TRY(brc_draft_is_unused(store, &row->draft, &unused, err));
    if (unused)
        return brc_draft_delete(store, row->draft.id, err);
    BRC_TRY(check_ended(row, err));
    return brc_draft_give(store, row->draft.id, BRC_DRAFT_PRIVATE, NULL, NULL, err);
}

static int leave_one(brc_store *store, const brc_draft_row *row, int64_t *kept, brc_error *err)
{
    const brc_draft_head *draft = &row->draft;
    int empty;
    if (draft->kind == BRC_DRAFT_PRIVATE)
        return leave_private(store, row, err);
    BRC_TRY(brc_draft_is_empty(store, draft->id, &empty, err));
    if (draft->kind == BRC_DRAFT_MERGE) /* what was settled is work too */
        empty = 0;
    if (empty && brc_draft_follows(draft, draft->has_base, &draft->base)) /* nor has its base any */
        return brc_draft_delete(store, draft->id, err);
    *kept = draft->id;
    return brc_draft_give(store, draft->id, BRC_DRAFT_PRIVATE, NULL, NULL, err);
}

static int branch_leave(brc_store *store, const char *branch, int64_t *kept, brc_error *err)
{
    brc_draft_row *rows;
    size_t n;
    *kept = 0;
    BRC_TRY(brc_draft_list(store, BRC_DRAFTS_ALL, 0, &rows, &n, err));
    int rc = BRC_OK;
    for (size_t i = 0; i < n && rc == BRC_OK; i++)
        if (strcmp(rows[i].branch, branch) == 0 && !is_nobodys(&rows[i]))
            rc = leave_one(store, &rows[i], kept, err);
    brc_draft_rows_free(rows, n);
    return rc == BRC_OK ? brc_draft_forget(store, branch, err) : rc;
}

int brc_branch_come_back(brc_store *store, const char *branch, int64_t kept, brc_error *err)
{
    brc_draft_row *rows;
    size_t n;
    if (kept == 0)
        return BRC_OK;
    BRC_TRY(brc_draft_list(store, BRC_DRAFTS_ALL, 0, &rows, &n, err));
    int rc = BRC_OK;
    for (size_t i = 0; i < n && rc == BRC_OK; i++)
        if (rows[i].draft.id == kept && is_nobodys(&rows[i]))
            rc = brc_draft_give(store, kept, BRC_DRAFT_SHARED, NULL, branch, err);
    brc_draft_rows_free(rows, n);
    return rc;
}

/* ---- refs that go -------------------------------- */

static void message_name(char out[40], int64_t seq)
{
    snprintf(out, 40, "undo.message.%lld", (long long)seq);
}

/* Keeps a deleted tag's message in a setting, for undo, because the operation log has no room for
 * it. */
static int keep_message(brc_store *store, const char *message, brc_error *err)
{
    char name[40];
    brc_buf json = BRC_BUF_INIT;
    brc_oplog_row *last;
    size_t n;
    if (message[0] == '\0')
        return BRC_OK;
    BRC_TRY(brc_oplog_page(store, 0, 1, &last, &n, err));
    message_name(name, n > 0 ? last->seq : 0);
    brc_oplog_rows_free(last, n);
    int rc = brc_json_quote(&json, message, strlen(message), err);
    if (rc == BRC_OK)
        rc = brc_buf_terminate(&json, err);
    if (rc == BRC_OK)
        rc = brc_setting_put(store, name, (const char *)json.data, err);
    brc_buf_dispose(&json);
    return rc;
}

int brc_ref_leave(brc_store *store, const char *full, brc_error *err)
{
    int64_t kept = 0;
    size_t n;
    brc_ref_row *row;
    if (strncmp(full, "heads/", 6) == 0)
        BRC_TRY(branch_leave(store, full + 6, &kept, err));
    BRC_TRY(brc_ref_list(store, full, &row, &n, err)); /* the ref's own row is the first */
    int rc = brc_ref_drop(store, full, brc_now_us(), err);
    if (rc == BRC_OK && kept != 0)
        rc = brc_oplog_keeps(store, kept, err);
    if (rc == BRC_OK && n > 0)
        rc = keep_message(store, row[0].message, err);
    brc_ref_rows_free(row, n);
    return rc;
}

int brc_ref_message_kept(brc_buf *out, brc_store *store, int64_t seq, brc_error *err)
{
    char name[40];
    brc_json *value;
    brc_buf json = BRC_BUF_INIT;
    message_name(name, seq);
    int rc = brc_setting_find(store, name, &json, err);
    if (rc > 0) {
        /* the text is terminated by a NUL */
        rc = brc_json_parse(&value, (const char *)json.data, strlen((const char *)json.data), 0,
                            err);
        if (rc == BRC_OK) {
            const char *text;
            (void)!brc_json_text(value, &text);
            rc = brc_buf_text(out, text, err);
            brc_json_free(value);
        }
    }
    brc_buf_dispose(&json);
    return rc < 0 ? rc : brc_buf_terminate(out, err);
}

/* ==== refs ================================ */

/* Branches, tags and the current branch. */

int brc_resolve(brc_oid *out, breccia *repo, const char *rev, brc_error *err)
{
    return brc_rev_resolve(repo->store, rev, out, err);
}

int brc_head(const char **branch, breccia *repo, brc_error *err)
{
    return brc_head_get(repo->store, branch, err);
}

/* ---- listing -------------------------------- */

typedef struct ref_list {
    brc_ref_row *rows;
    size_t n, at;
    char *head;
    brc_ref now; /* the item that was returned last */
} ref_list;

static void ref_list_dispose(void *state)
{
    ref_list *list = state;
    brc_ref_rows_free(list->rows, list->n);
    free(list->head);
}

static int ref_next(void *state, const void **out_item, brc_error *err)
{
    ref_list *list = state;
    (void)err;
    if (list->at == list->n)
        return 0;
    const brc_ref_row *row = &list->rows[list->at++];
    const char *slash = strchr(row->name, '/');
    brc_ref *out = &list->now;
    *out = (brc_ref){.name = slash != NULL ? slash + 1 : row->name, .id = row->target,
                     .message = row->message};
    if (strncmp(row->name, "tags/", 5) == 0)
        out->flags |= BRC_REF_TAG;
    else if (strcmp(out->name, list->head) == 0)
        out->flags |= BRC_REF_CURRENT;
    if (!row->has_target)
        out->flags |= BRC_REF_UNBORN;
    *out_item = out;
    return 1;
}

int brc_refs(brc_iter **out, breccia *repo, brc_error *err)
{
    const char *head;
    BRC_TRY(brc_iter_new(out, ref_next, sizeof(ref_list), ref_list_dispose, err));
    ref_list *list = brc_iter_state(*out);
    int rc;
    BRC_GO(brc_ref_list(repo->store, "", &list->rows, &list->n, err));
    BRC_GO(brc_head_get(repo->store, &head, err));
    BRC_GO(brc_dup(&list->head, head, err));
done:
    if (rc < 0) {
        brc_iter_free(*out);
        *out = NULL;
    }
    return rc;
}

/* ---- changing -------------------------------- */

static int ref_is_there(brc_store *store, const char *full, int *there, brc_error *err)
{
    brc_error found = BRC_ERROR_INIT;
    int has;
    brc_oid target;
    int rc = brc_ref_get(store, full, &has, &target, &found);
    *there = rc == BRC_OK;
    if (rc == BRC_OK || rc == BRC_ENOTFOUND)
        return BRC_OK;
    if (err != NULL)
        brc_error_copy(err, &found);
    return rc;
}

static int ref_must_be_free(brc_store *store, const char *space, const char *name, const char *full,
                            brc_error *err)
{
    int there;
    brc_oid id;
    BRC_TRY(brc_ref_name_check(name, err));
    BRC_TRY(brc_rev_is_id(store, name, &there, &id, err));
    if (there)
        return brc_fail(err, BRC_EINVAL,
                        "'%s' cannot be the name of a branch or tag: it is the id of a commit",
                        name);
    BRC_TRY(ref_is_there(store, full, &there, err));
    return there ? brc_fail(err, BRC_EEXISTS, "there is a %s '%s' already",
                            strcmp(space, "tags") == 0 ? "tag" : "branch", name)
                 : BRC_OK;
}

/* Finds the commit of a new ref: HEAD may be a branch without a commit. */
static int ref_start(brc_store *store, const char *rev, int *has, brc_oid *target, brc_error *err)
{
    const char *head;
    char *full;
    if (rev != NULL && strcmp(rev, "HEAD") != 0) {
        *has = 1;
        return brc_rev_resolve(store, rev, target, err);
    }
    BRC_TRY(brc_head_get(store, &head, err));
    BRC_TRY(brc_ref_full(&full, "heads", head, err));
    int rc = brc_ref_get(store, full, has, target, err);
    free(full);
    return rc;
}

/* Returns where refs of this kind are. */
static const char *space_of(uint32_t flags)
{
    return (flags & BRC_REF_TAG) != 0 ? "tags" : "heads";
}

static int create_ref(breccia *repo, const char *space, const char *name, const char *rev,
                      const char *message, brc_error *err)
{
    brc_store *store = repo->store;
    int has, rc, tag = strcmp(space, "tags") == 0;
    brc_oid target;
    char *full = NULL;
    BRC_TRY(brc_store_begin(store, err));
    BRC_GO(brc_ref_full(&full, space, name, err));
    BRC_GO(ref_must_be_free(store, space, name, full, err));
    BRC_GO(ref_start(store, rev, &has, &target, err));
    if (tag && !has) {
        rc = brc_fail(err, BRC_ENOTFOUND, "there is no commit to tag yet: make one with 'commit'");
        goto done;
    }
    rc = brc_ref_put(store, full, has ? &target : NULL, message, tag ? "tag" : "branch", 0, NULL,
                     brc_now_us(), err);
done:
    free(full);
    int end = brc_store_end(store, rc == BRC_OK, rc == BRC_OK ? err : NULL);
    return rc < 0 ? rc : end;
}

int brc_ref_create(breccia *repo, const char *name, const char *rev, const char *message,
                   uint32_t flags, brc_error *err)
{
    BRC_TRY(brc_flags_check(flags, BRC_REF_TAG, "brc_ref_create()", err));
    if (flags == 0 && message != NULL)
        return brc_fail(err, BRC_EINVAL, "a branch has no message: only a tag has one");
    return create_ref(repo, space_of(flags), name, rev, message, err);
}

/* Sets *reached to 1 if a ref other than `full` leads to `target`. */
static int reached_by_others(brc_store *store, const char *full, const brc_oid *target,
                             int *reached, brc_error *err)
{
    brc_ref_row *rows = NULL;
    brc_reach *reach = NULL;
    size_t n = 0;
    int rc;
    *reached = 0;
    BRC_GO(brc_reach_new(&reach, store, err));
    BRC_GO(brc_ref_list(store, "", &rows, &n, err));
    for (size_t i = 0; i < n; i++)
        if (rows[i].has_target && strcmp(rows[i].name, full) != 0)
            BRC_GO(brc_reach_from(reach, &rows[i].target, err));
    rc = brc_reach_find(reach, target, err);
    *reached = rc > 0;
done:
    brc_reach_free(reach);
    brc_ref_rows_free(rows, n);
    return rc < 0 ? rc : BRC_OK;
}

static int branch_clean(breccia *repo, const char *branch, int *clean, brc_error *err)
{
    brc_session *s;
    BRC_TRY(brc_session_open(&s, repo, branch, BRC_SESSION_VIEW, err));
    int rc = brc_session_clean(clean, s, err);
    brc_session_free(s);
    return rc;
}

static int check_deletable(breccia *repo, const char *space, const char *name, const char *full,
                           brc_error *err)
{
    int has, reached, clean = 1, branch = strcmp(space, "heads") == 0;
    const char *kind = branch ? "branch" : "tag";
    brc_oid target;
    char hex[65];
    BRC_TRY(brc_ref_get(repo->store, full, &has, &target, err));
    if (has) {
        BRC_TRY(reached_by_others(repo->store, full, &target, &reached, err));
        if (!reached)
            return brc_fail(err, BRC_EMISUSE,
                            "only %s '%s' leads to commit %.8s: give that another branch or tag, "
                            "or delete the %s all the same with -D",
                            kind, name, brc_oid_format(hex, &target), kind);
    }
    if (branch)
        BRC_TRY(branch_clean(repo, name, &clean, err));
    if (branch && clean)
        BRC_TRY(brc_branch_no_private(repo->store, name, &clean, err));
    return clean ? BRC_OK
                 : brc_fail(err, BRC_EMISUSE,
                            "branch '%s' has uncommitted changes: -D deletes it all the same",
                            name);
}

/* Starts a draft based on the branch's tip, or on nothing. */
static int start_shared(brc_store *store, const char *branch, const brc_oid *tip, int64_t *id,
                        brc_error *err)
{
    brc_draft_row row = { .branch = branch };
    row.draft.kind = BRC_DRAFT_SHARED;
    row.draft.time_us = brc_now_us();
    row.draft.has_base = row.draft.has_tip = tip != NULL;
    if (tip != NULL)
        row.draft.base = row.draft.tip = *tip;
    return brc_draft_start(store, &row, id, err);
}

/* Drops the uncommitted changes of a branch. */
static int drop_shared(brc_store *store, const char *branch, brc_error *err)
{
    brc_draft_head draft;
    BRC_TRY(brc_draft_shared(store, branch, &draft, err));
    return draft.id != 0 ? brc_draft_delete(store, draft.id, err) : BRC_OK;
}

static int delete_steps(breccia *repo, const char *space, const char *name, int force,
                        brc_error *err)
{
    brc_store *store = repo->store;
    int rc;
    char *full = NULL;
    const char *head;
    BRC_GO(brc_ref_full(&full, space, name, err));
    if (strcmp(space, "heads") == 0) {
        BRC_GO(brc_head_get(store, &head, err));
        if (strcmp(head, name) == 0) {
            rc = brc_fail(err, BRC_EINVAL, "'%s' is the current branch: switch to another first",
                          name);
            goto done;
        }
    }
    if (!force)
        BRC_GO(check_deletable(repo, space, name, full, err));
    rc = brc_ref_leave(store, full, err);
done:
    free(full);
    return rc;
}

int brc_ref_delete(breccia *repo, const char *name, uint32_t flags, brc_error *err)
{
    BRC_TRY(brc_flags_check(flags, BRC_REF_TAG | BRC_DELETE_FORCE, "brc_ref_delete()", err));
    BRC_TRY(brc_store_begin(repo->store, err));
    int rc = delete_steps(repo, space_of(flags), name, (flags & BRC_DELETE_FORCE) != 0, err);
    repo->changes++;
    int end = brc_store_end(repo->store, rc == BRC_OK, rc == BRC_OK ? err : NULL);
    return rc < 0 ? rc : end;
}

static int rename_steps(brc_store *store, const char *space, const char *from, const char *to,
                        brc_error *err)
{
    int has, rc;
    size_t n = 0;
    brc_oid target;
    brc_ref_row *row = NULL;
    char *old = NULL, *new = NULL;
    const char *head;
    BRC_GO(brc_ref_full(&old, space, from, err));
    BRC_GO(brc_ref_full(&new, space, to, err));
    BRC_GO(brc_ref_get(store, old, &has, &target, err));
    BRC_GO(ref_must_be_free(store, space, to, new, err));
    BRC_GO(brc_ref_list(store, old, &row, &n, err)); /* the ref's own row is the first */
    BRC_GO(brc_ref_put(store, new, has ? &target : NULL,
                       n > 0 && row[0].message[0] != '\0' ? row[0].message : NULL, "rename", 0,
                       NULL, brc_now_us(), err));
    BRC_GO(brc_ref_drop(store, old, brc_now_us(), err));
    if (strcmp(space, "heads") != 0)
        goto done;
    BRC_GO(brc_draft_rename(store, from, to, err));
    BRC_GO(brc_head_get(store, &head, err));
    if (strcmp(head, from) == 0)
        rc = brc_head_set(store, to, err);
done:
    brc_ref_rows_free(row, n);
    free(old);
    free(new);
    return rc;
}

int brc_ref_rename(breccia *repo, const char *from, const char *to, uint32_t flags, brc_error *err)
{
    BRC_TRY(brc_flags_check(flags, BRC_REF_TAG, "brc_ref_rename()", err));
    BRC_TRY(brc_store_begin(repo->store, err));
    int rc = rename_steps(repo->store, space_of(flags), from, to, err);
    repo->changes++;
    int end = brc_store_end(repo->store, rc == BRC_OK, rc == BRC_OK ? err : NULL);
    return rc < 0 ? rc : end;
}

/* ---- the current branch -------------------------------- */

/* Fails with BRC_ECONFLICT if the current branch has uncommitted changes that would be lost. */
static int check_nothing_lost(breccia *repo, const char *branch, brc_error *err)
{
    int clean;
    brc_draft_head draft;
    BRC_TRY(brc_draft_shared(repo->store, branch, &draft, err));
    if (draft.kind == BRC_DRAFT_MERGE)
        return brc_merge_is_open(repo->store, branch, err);
    BRC_TRY(branch_clean(repo, branch, &clean, err));
    return clean ? BRC_OK
                 : brc_fail(err, BRC_ECONFLICT,
                            "branch '%s' has uncommitted changes: commit them, or drop them with "
                            "--discard",
                            branch);
}

/* Returns 1 if both branches are at the same commit, and 0 if not. */
static int are_at_one_commit(brc_store *store, const char *one, const char *other, brc_error *err)
{
    char *full = NULL, *second = NULL;
    brc_oid a, b;
    int has_a, has_b, rc;
    BRC_GO(brc_ref_full(&full, "heads", one, err));
    BRC_GO(brc_ref_full(&second, "heads", other, err));
    BRC_GO(brc_ref_get(store, full, &has_a, &a, err));
    BRC_GO(brc_ref_get(store, second, &has_b, &b, err));
    rc = has_a == has_b && (!has_a || brc_oid_cmp(&a, &b) == 0);
done:
    free(full);
    free(second);
    return rc;
}

int brc_changes_carry(brc_store *store, const char *from, const char *to, brc_error *err)
{
    brc_draft_head draft, other;
    BRC_TRY(brc_draft_shared(store, from, &draft, err));
    BRC_TRY(brc_draft_shared(store, to, &other, err));
    if (draft.id == 0)
        return BRC_OK;
    if (draft.kind == BRC_DRAFT_MERGE)
        return brc_merge_is_open(store, from, err);
    int same = are_at_one_commit(store, from, to, err);
    if (same <= 0 || other.id != 0)
        return same < 0 ? same : BRC_OK;
    BRC_TRY(brc_draft_forget(store, to, err));
    return brc_draft_give(store, draft.id, BRC_DRAFT_SHARED, NULL, to, err);
}

static int no_branch_to_switch_to(brc_store *store, const char *name, brc_error *err)
{
    brc_oid id;
    if (brc_rev_resolve(store, name, &id, NULL) == BRC_OK)
        return brc_fail(err, BRC_ENOTFOUND,
                        "'%.120s' is a version, not a branch: 'switch -c NAME %.120s' makes a "
                        "branch of it",
                        name, name);
    return brc_fail(err, BRC_ENOTFOUND, "there is no branch '%.120s' in %s: 'switch -c' makes one",
                    name, brc_store_path(store));
}

static int switch_steps(breccia *repo, const char *branch, uint32_t flags, brc_error *err)
{
    const int discard = (flags & BRC_SWITCH_DISCARD) != 0;
    brc_store *store = repo->store;
    int there, rc;
    char *full = NULL, *from = NULL, *left = NULL;
    const char *head;
    BRC_GO(brc_ref_full(&full, "heads", branch, err));
    BRC_GO(ref_is_there(store, full, &there, err));
    if (!there) {
        rc = no_branch_to_switch_to(store, branch, err);
        goto done;
    }
    BRC_GO(brc_head_get(store, &head, err));
    if (strcmp(head, branch) == 0 && !discard)
        goto done;
    BRC_GO(brc_dup(&from, head, err));
    if ((flags & BRC_SWITCH_CARRY) != 0 && !discard)
        BRC_GO(brc_changes_carry(store, from, branch, err));
    if (!discard)
        BRC_GO(check_nothing_lost(repo, from, err));
    BRC_GO(drop_shared(store, from, err));
    BRC_GO(brc_head_set(store, branch, err));
    BRC_GO(brc_ref_full(&left, "heads", from, err));
    rc = brc_oplog_switch(store, left, full, brc_now_us(), err);
done:
    free(full);
    free(left);
    free(from);
    return rc;
}

int brc_switch(breccia *repo, const char *branch, uint32_t flags, brc_error *err)
{
    BRC_TRY(brc_flags_check(flags, BRC_SWITCH_DISCARD | BRC_SWITCH_CARRY, "brc_switch()", err));
    BRC_TRY(brc_store_begin(repo->store, err));
    int rc = switch_steps(repo, branch, flags, err);
    repo->changes++;
    int end = brc_store_end(repo->store, rc == BRC_OK, rc == BRC_OK ? err : NULL);
    return rc < 0 ? rc : end;
}

/* Resets the shared changes of a branch: they are dropped, or stay as they are and are then
 * compared with the new tip. */
static int reset_shared(brc_store *store, const char *branch, int hard, const brc_oid *tip,
                        const brc_oid *target, brc_error *err)
{
    brc_draft_head draft;
    if (hard)
        return drop_shared(store, branch, err);
    BRC_TRY(brc_draft_shared(store, branch, &draft, err));
    if (draft.kind == BRC_DRAFT_MERGE)
        return brc_merge_is_open(store, branch, err);
    if (draft.id == 0)
        BRC_TRY(start_shared(store, branch, tip, &draft.id, err));
    return target != NULL ? brc_draft_follow(store, draft.id, target, err) : BRC_OK;
}

/* Resets a private session. A session without changes follows its branch anyway. */
static int reset_private(brc_session *s, int hard, const brc_oid *target, brc_error *err)
{
    int empty = 1;
    if (s->draft.id != 0)
        BRC_TRY(brc_draft_is_empty(s->repo->store, s->draft.id, &empty, err));
    s->is_read = 0;
    if (empty || (!hard && target == NULL))
        return BRC_OK;
    BRC_TRY(brc_draft_touch(s->repo->store, s->draft.id, err));
    return hard ? brc_draft_advance(s->repo->store, s->draft.id, target, err)
                : brc_draft_follow(s->repo->store, s->draft.id, target, err);
}

/* Resets; `s` NULL: the current branch. */
static int reset_steps(breccia *repo, brc_session *s, const char *rev, int hard,
                       const brc_oid *expect, brc_error *err)
{
    brc_store *store = repo->store;
    int rc, has = 0, has_target = 0;
    char *full = NULL;
    const char *branch;
    brc_oid target, tip;
    const brc_oid *to = &target;
    BRC_GO(ref_start(store, rev, &has_target, &target, err));
    if (s != NULL)
        BRC_GO(brc_session_follow(s, err));
    if (s != NULL)
        branch = s->branch;
    else
        BRC_GO(brc_head_get(store, &branch, err));
    BRC_GO(brc_ref_full(&full, "heads", branch, err));
    BRC_GO(brc_ref_get(store, full, &has, &tip, err));
    if (!has_target) /* HEAD is a branch without a commit */
        to = NULL;
    if (s != NULL && s->mode == BRC_SESSION_PRIVATE)
        BRC_GO(reset_private(s, hard, to, err));
    else
        BRC_GO(reset_shared(store, branch, hard, has ? &tip : NULL, to, err));
    /* a reset to the same commit moves nothing that could be undone */
    rc = BRC_OK;
    if (to == NULL || (has && brc_oid_cmp(&tip, &target) == 0 &&
                       (expect == NULL || brc_oid_cmp(expect, &tip) == 0)))
        goto done;
    rc =
        brc_ref_put(store, full, &target, NULL, "reset", expect != NULL, expect, brc_now_us(), err);
done:
    free(full);
    return rc;
}

int brc_reset(breccia *repo, brc_session *s, const char *rev, uint32_t flags,
              const brc_oid *expect, brc_error *err)
{
    BRC_TRY(brc_flags_check(flags, BRC_RESET_HARD, "brc_reset()", err));
    if (s != NULL && repo != NULL && s->repo != repo)
        return brc_fail(err, BRC_EINVAL, "the session is of another handle");
    if (s != NULL) {
        BRC_TRY(brc_session_can_change(s, err));
        BRC_TRY(brc_bulk_check_none(s, "no branch can be reset", err));
        repo = s->repo;
    }
    BRC_TRY(brc_store_begin(repo->store, err));
    int rc = reset_steps(repo, s, rev, (flags & BRC_RESET_HARD) != 0, expect, err);
    repo->changes++;
    int end = brc_store_end(repo->store, rc == BRC_OK, rc == BRC_OK ? err : NULL);
    return rc < 0 ? rc : end;
}

