#include "open_plan.h"

#include <stdlib.h>
#include <string.h>

#include "../base/alloc.h"

void brc_open_merge_dispose(brc_open_merge *merge)
{
    brc_clash_list_dispose(&merge->conflicts);
    brc_json_free(merge->plan);
    memset(merge, 0, sizeof(*merge));
}

const char *brc_open_merge_text(const brc_open_merge *merge, const char *name)
{
    const char *text = "";
    (void)!brc_json_text(brc_json_member(merge->plan, name), &text);
    return text;
}

enum { OPEN_OPS = 4 };
static const char *const open_ops[OPEN_OPS] = {"merge", "pick", "revert", "rebase"};
static const char *const open_commands[OPEN_OPS] = {"merge", "cherry-pick", "revert", "rebase"};

static int open_kind(const brc_open_merge *merge)
{
    const int i = brc_json_choice(brc_json_member(merge->plan, "op"), open_ops, OPEN_OPS);
    return i < 0 ? 0 : i;
}

const char *brc_open_merge_op(const brc_open_merge *merge)
{
    return open_ops[open_kind(merge)];
}

const char *brc_open_merge_command(const brc_open_merge *merge)
{
    return open_commands[open_kind(merge)];
}

uint64_t brc_open_merge_number(const brc_open_merge *merge, const char *name)
{
    uint64_t n = 0;
    return brc_json_uint(brc_json_member(merge->plan, name), UINT64_MAX, &n) ? n : 0;
}

/* Returns 1, or BRC_ECORRUPT. */
static int plan_id(const brc_open_merge *merge, const char *name, const brc_json *value,
                   brc_oid *out, brc_error *err)
{
    const char *hex;
    (void)!brc_json_text(value, &hex);
    if (!brc_oid_parse(out, hex))
        return brc_fail(err, BRC_ECORRUPT,
                        "the plan of draft %lld is damaged: '%s' is not a valid commit id",
                        (long long)merge->draft.id, name);
    return 1;
}

int brc_open_merge_id(const brc_open_merge *merge, const char *name, brc_oid *out, brc_error *err)
{
    const brc_json *value = brc_json_member(merge->plan, name);
    memset(out, 0, sizeof(*out));
    return value == NULL ? 0 : plan_id(merge, name, value, out, err);
}

int brc_open_merge_ids(const brc_open_merge *merge, const char *name, void **out, size_t *n,
                       brc_error *err)
{
    const brc_json *list = brc_json_member(merge->plan, name);
    *n = 0;
    BRC_TRY(brc_new_array(out, brc_json_count(list) + 1, sizeof(brc_oid), err));
    for (const brc_json *at = brc_json_first(list); at != NULL; at = brc_json_next(at)) {
        const int rc = plan_id(merge, name, at, (brc_oid *)*out + *n, err);
        if (rc < 0) {
            free(*out);
            *out = NULL;
            return rc;
        }
        ++*n;
    }
    return BRC_OK;
}

size_t brc_open_merge_left(const brc_open_merge *merge)
{
    size_t left = 0;
    for (size_t i = 0; i < merge->conflicts.n; i++)
        left += merge->conflicts.items[i].settled == BRC_SETTLED_NOT;
    return left;
}

/* Reads the row of a live draft that is, or was, an open merge. */
static int read_row(brc_open_merge *merge, brc_store *store, const brc_draft_row *row,
                    brc_error *err)
{
    if (row == NULL || !brc_draft_row_is_merge(row))
        return brc_fail(err, BRC_ESTALE, "%s: the merge was ended elsewhere",
                        brc_store_path(store));
    merge->has_other = row->has_other;
    merge->other = row->other;
    const char *text = *row->plan != '\0' ? row->plan : "{}";
    const int rc = brc_json_parse(&merge->plan, text, strlen(text), 0, err);
    if (rc < 0)
        brc_context(err, "the plan of the open merge");
    return rc == BRC_EINVAL || rc == BRC_ELIMIT ? BRC_ECORRUPT : rc;
}

static int read_plan(brc_open_merge *merge, brc_store *store, brc_error *err)
{
    brc_draft_row *rows;
    size_t n;
    BRC_TRY(brc_draft_list(store, BRC_DRAFTS_ONE, merge->draft.id, &rows, &n, err));
    const int rc = read_row(merge, store, n > 0 ? &rows[0] : NULL, err);
    brc_draft_rows_free(rows, n);
    return rc;
}

/* Fails if a conflict is missing: it would count as settled. */
static int check_count(const brc_open_merge *merge, brc_error *err)
{
    uint64_t n = 0;
    if (brc_json_uint(brc_json_member(merge->plan, "conflicts"), UINT64_MAX, &n) &&
        n == merge->conflicts.n)
        return BRC_OK;
    return brc_fail(err, BRC_ECORRUPT,
                    "the open merge (draft %lld) had %llu conflicts, and %zu are left in the "
                    "file: drop it and merge again",
                    (long long)merge->draft.id, (unsigned long long)n, merge->conflicts.n);
}

int brc_open_merge_rows(brc_open_merge *out, brc_store *store, const brc_draft_head *draft,
                        brc_error *err)
{
    memset(out, 0, sizeof(*out));
    out->draft = *draft;
    int rc = read_plan(out, store, err);
    if (rc == BRC_OK)
        rc = brc_clash_list_read(&out->conflicts, store, draft->id, err);
    if (rc == BRC_OK)
        rc = check_count(out, err);
    if (rc < 0)
        brc_open_merge_dispose(out);
    return rc;
}

/* Works in a transaction and without one. */
int brc_merge_is_open(brc_store *store, const char *branch, brc_error *err)
{
    brc_draft_head draft;
    brc_open_merge merge = {0};
    BRC_TRY(brc_store_begin_read(store, err));
    int rc = brc_draft_merge(store, branch, &draft, err);
    if (rc == BRC_OK && draft.id != 0)
        rc = brc_open_merge_rows(&merge, store, &draft, err);
    brc_store_end_read(store);
    BRC_TRY(rc);
    const char *open = brc_open_merge_command(&merge);
    rc = brc_fail(err, BRC_ECONFLICT,
                  "%s: a %s is open on branch '%s': 'breccia %s --continue' commits it, and "
                  "--abort drops it",
                  brc_store_path(store), open, branch, open);
    brc_open_merge_dispose(&merge);
    return rc;
}
