#include "branch_drafts.h"

#include <stdio.h>
#include <string.h>

#include "../base/clock.h"
#include "../base/json.h"
#include "../base/process.h"

static int is_nobodys(const brc_draft_row *row)
{
    return row->draft.kind == BRC_DRAFT_PRIVATE && row->owner[0] == '\0';
}

/* Is the draft a private one whose process lives, or that holds changes of a dead process? */
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
    BRC_TRY(brc_draft_list(store, &rows, &n, err));
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

/* What its process writes next would belong to nothing. */
static int check_ended(const brc_draft_row *row, brc_error *err)
{
    if (brc_process_state(row->owner) != BRC_PROCESS_ALIVE)
        return BRC_OK;
    return brc_fail(err, BRC_EBUSY,
                    "process %lld is at work on branch '%s' (draft %lld): wait until it has ended, "
                    "or end it",
                    (long long)brc_process_id(row->owner), row->branch, (long long)row->draft.id);
}

/* What processes left that have ended can still be adopted, on a branch of that name. */
static int leave_private(brc_store *store, const brc_draft_row *row, brc_error *err)
{
    int unused;
    BRC_TRY(brc_draft_is_unused(store, &row->draft, &unused, err));
    if (unused)
        return brc_draft_delete(store, row->draft.id, err);
    BRC_TRY(check_ended(row, err));
    return brc_draft_keep(store, row->draft.id, err);
}

static int leave_one(brc_store *store, const brc_draft_row *row, int64_t *kept, brc_error *err)
{
    const brc_draft_head *draft = &row->draft;
    int empty;
    if (draft->kind == BRC_DRAFT_PRIVATE)
        return leave_private(store, row, err);
    BRC_TRY(brc_draft_is_empty(store, draft->id, &empty, err));
    if (draft->kind == BRC_DRAFT_MERGE) /* what was settled is work, too */
        empty = 0;
    if (empty && brc_draft_follows(draft, draft->has_base, &draft->base)) /* nor has its base any */
        return brc_draft_delete(store, draft->id, err);
    *kept = draft->id;
    return brc_draft_keep(store, draft->id, err);
}

static int branch_leave(brc_store *store, const char *branch, int64_t *kept, brc_error *err)
{
    brc_draft_row *rows;
    size_t n;
    *kept = 0;
    BRC_TRY(brc_draft_list(store, &rows, &n, err));
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
    BRC_TRY(brc_draft_list(store, &rows, &n, err));
    int rc = BRC_OK;
    for (size_t i = 0; i < n && rc == BRC_OK; i++)
        if (rows[i].draft.id == kept && is_nobodys(&rows[i]))
            rc = brc_draft_give_back(store, kept, branch, err);
    brc_draft_rows_free(rows, n);
    return rc;
}

/* ---- refs that go -------------------------------- */

static void message_name(char out[40], int64_t seq)
{
    snprintf(out, 40, "undo.message.%lld", (long long)seq);
}

/* The operation log has no room for the message of a tag that goes: a setting has, for undo. */
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
    BRC_TRY(brc_ref_list(store, full, &row, &n, err)); /* its own row is the first */
    int rc = brc_ref_delete(store, full, brc_now_us(), err);
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
        /* the text has a NUL behind it */
        rc = brc_json_parse(&value, (const char *)json.data, strlen((const char *)json.data), err);
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
