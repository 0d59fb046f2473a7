/* Roots: what the rows of the file say is needed. Read from the tables alone, so that whoever fills
 * them need not know of collections. */
#include <stdlib.h>
#include <string.h>

#include "../base/process.h"
#include "collect.h"
#include "db.h"

/* Chunks of a row of draft_node that are read at a time. */
enum { ROW_PAGE = 2048 };

void brc_roots_dispose(brc_roots *roots)
{
    free(roots->items);
    memset(roots, 0, sizeof(*roots));
}

static int root_new(brc_roots *out, brc_root **root, brc_error *err)
{
    void *p = out->items;
    int rc = brc_grow_array(&p, &out->cap, out->n + 1, sizeof(brc_root), err);
    out->items = p;
    if (rc < 0)
        return rc;
    *root = &out->items[out->n++];
    memset(*root, 0, sizeof(**root));
    return BRC_OK;
}

static int root_add(brc_roots *out, int what, const brc_oid *id, brc_error *err)
{
    brc_root *root;
    BRC_TRY(root_new(out, &root, err));
    root->what = what;
    root->id = *id;
    return BRC_OK;
}

/* Ids in the first column, and in the second whether the row is as it was written. */
static int add_ids(brc_store *store, sqlite3_stmt *st, int what, const char *row, brc_roots *out,
                   brc_error *err)
{
    int rc;
    while ((rc = brc_step(store, st, err)) > 0) {
        brc_oid id;
        rc = brc_row_check(store, st, 1, row, err);
        if (rc == BRC_OK && sqlite3_column_type(st, 0) != SQLITE_NULL) {
            rc = brc_column_id(store, st, 0, &id, err);
            if (rc == BRC_OK)
                rc = root_add(out, what, &id, err);
        }
        if (rc < 0)
            break;
    }
    sqlite3_reset(st);
    return rc;
}

/* ---- what has a name -------------------------------- */

static int named_refs(brc_store *store, brc_roots *out, brc_error *err)
{
    sqlite3_stmt *st;
    BRC_TRY(brc_stmt(store,
                     "SELECT target, checksum IS row_sum('ref', name, target, message) FROM ref",
                     &st, err));
    return add_ids(store, st, BRC_ROOT_COMMIT, "a ref", out, err);
}

/* Of one row: 1 if it counts. */
static int log_row(brc_store *store, sqlite3_stmt *st, const brc_log_range *range, int64_t last,
                   brc_roots *out, brc_error *err)
{
    const int64_t seq = sqlite3_column_int64(st, 0);
    if (sqlite3_column_int64(st, 1) < range->since_us && seq <= last - range->least)
        return BRC_OK;
    BRC_TRY(brc_row_check(store, st, 4, "the operation log", err));
    for (int i = 2; i <= 3; i++) {
        brc_oid id;
        if (sqlite3_column_type(st, i) == SQLITE_NULL)
            continue;
        BRC_TRY(brc_column_id(store, st, i, &id, err));
        BRC_TRY(root_add(out, BRC_ROOT_PAST, &id, err));
    }
    return BRC_OK;
}

/* In pages: a log may be long. */
static int log_page(brc_store *store, brc_log_range *range, int64_t last, brc_roots *out, int *n,
                    brc_error *err)
{
    int rc;
    sqlite3_stmt *st;
    *n = 0;
    BRC_TRY(brc_stmt(store,
                     "SELECT seq, time_us, old, new, checksum IS row_sum('oplog', seq, time_us, op,"
                     " name, old, new, first, undoes, restores, draft) FROM oplog WHERE seq>?1"
                     " ORDER BY seq LIMIT 2048",
                     &st, err));
    sqlite3_bind_int64(st, 1, range->after);
    while ((rc = brc_step(store, st, err)) > 0) {
        ++*n;
        range->after = sqlite3_column_int64(st, 0);
        rc = log_row(store, st, range, last, out, err);
        if (rc < 0)
            break;
    }
    sqlite3_reset(st);
    return rc;
}

static int named_log(brc_store *store, brc_log_range *range, brc_roots *out, brc_error *err)
{
    sqlite3_stmt *st;
    int64_t last;
    int n = 1;
    BRC_TRY(brc_stmt(store, "SELECT max(seq) FROM oplog", &st, err));
    BRC_TRY(brc_ask_number(store, st, &last, err));
    while (n > 0)
        BRC_TRY(log_page(store, range, last, out, &n, err));
    return BRC_OK;
}

static int add_pinned(void *ctx, const brc_oid *commit, brc_error *err)
{
    return root_add(ctx, BRC_ROOT_PAST, commit, err);
}

static int named_pins(brc_store *store, brc_roots *out, brc_error *err)
{
    int there;
    sqlite3_stmt *st;
    BRC_TRY(brc_pins_each(store, add_pinned, out, err));
    BRC_TRY(brc_schema_has(store, "pin", &there, err));
    if (!there)
        return BRC_OK;
    BRC_TRY(brc_stmt(store,
                     "SELECT target, checksum IS row_sum('pin', id, target, owner, time_us)"
                     " FROM pin",
                     &st, err));
    return add_ids(store, st, BRC_ROOT_PAST, "a pin", out, err);
}

/* Commits that were stored or named since this collection began, also where nothing names them any
 * more: what they reach must not go before they do. */
static int named_kept(brc_store *store, brc_roots *out, brc_error *err)
{
    int64_t run;
    sqlite3_stmt *st;
    BRC_TRY(brc_gc_running(store, &run, err));
    if (run == 0)
        return BRC_OK;
    BRC_TRY(brc_stmt(store, "SELECT id, 1 FROM gc_kept WHERE run=?1", &st, err));
    sqlite3_bind_int64(st, 1, -run);
    return add_ids(store, st, BRC_ROOT_PAST, "a commit to keep", out, err);
}

/* ---- drafts -------------------------------- */

/* Hexadecimal ids in a plan's text: commits, if they are. */
static int plan_ids(brc_store *store, const char *plan, brc_roots *out, brc_error *err)
{
    const size_t digits = 2 * store->id_len;
    while (plan != NULL && *plan != '\0') {
        const size_t run = strspn(plan, "0123456789abcdef");
        if (run == digits) {
            brc_oid id;
            memset(&id, 0, sizeof(id));
            for (size_t i = 0; i < digits; i++) {
                const int digit = plan[i] <= '9' ? plan[i] - '0' : plan[i] - 'a' + 10;
                id.bytes[i / 2] = (uint8_t)(id.bytes[i / 2] << 4 | digit);
            }
            BRC_TRY(root_add(out, BRC_ROOT_PAST, &id, err));
        }
        plan += run > 0 ? run : 1;
    }
    return BRC_OK;
}

static int is_left_by_dead(sqlite3_stmt *st, int kind, int owner)
{
    const char *text = (const char *)sqlite3_column_text(st, owner);
    return sqlite3_column_int(st, kind) == BRC_DRAFT_PRIVATE && text != NULL &&
           brc_process_state(text) == BRC_PROCESS_DEAD;
}

#define DRAFT_WHOLE                                                                             \
    "checksum IS row_sum('draft', id, kind, state, branch, base, tip, other, plan, owner,"      \
    " parent, time_us, changes, parts)"

static int draft_ids(brc_store *store, sqlite3_stmt *st, brc_roots *out, brc_error *err)
{
    const int64_t open = sqlite3_column_int(st, 5) == BRC_DRAFT_MERGE ? sqlite3_column_int64(st, 7)
                                                                      : 0;
    size_t at = out->n;
    for (int i = 1; i <= 3; i++) {
        brc_oid id;
        if (sqlite3_column_type(st, i) == SQLITE_NULL)
            continue;
        BRC_TRY(brc_column_id(store, st, i, &id, err));
        BRC_TRY(root_add(out, BRC_ROOT_COMMIT, &id, err));
    }
    BRC_TRY(plan_ids(store, (const char *)sqlite3_column_text(st, 4), out, err));
    for (; at < out->n; at++)
        out->items[at].open = open;
    return BRC_OK;
}

/* Of one that the statement has read. */
static int draft_counts(brc_store *store, sqlite3_stmt *st, int not_dead, int *counts,
                        brc_error *err)
{
    brc_draft_head head;
    int unused;
    *counts = !not_dead || !is_left_by_dead(st, 5, 6);
    if (*counts || not_dead != BRC_NOT_DEAD_UNUSED)
        return BRC_OK;
    BRC_TRY(brc_draft_get(store, sqlite3_column_int64(st, 7), &head, err));
    BRC_TRY(brc_draft_is_unused(store, &head, &unused, err));
    *counts = !unused;
    return BRC_OK;
}

static int named_drafts(brc_store *store, int not_dead, brc_roots *out, brc_error *err)
{
    int rc, counts = 0;
    sqlite3_stmt *st;
    BRC_TRY(brc_stmt(store,
                     "SELECT " DRAFT_WHOLE ", base, tip, other, plan, kind, owner, id FROM draft"
                     " WHERE state<>2",
                     &st, err));
    while ((rc = brc_step(store, st, err)) > 0) {
        rc = brc_row_check(store, st, 0, "a draft", err);
        if (rc == BRC_OK)
            rc = draft_counts(store, st, not_dead, &counts, err);
        if (rc == BRC_OK && counts)
            rc = draft_ids(store, st, out, err);
        if (rc < 0)
            break;
    }
    sqlite3_reset(st);
    return rc;
}

/* Commits that a bisection knows of: a setting, with ids as in a plan. */
static int named_bisection(brc_store *store, brc_roots *out, brc_error *err)
{
    brc_buf text = BRC_BUF_INIT;
    int rc = brc_setting_find(store, "bisect", &text, err);
    if (rc > 0)
        rc = plan_ids(store, (const char *)text.data, out, err);
    brc_buf_dispose(&text);
    return rc;
}

int brc_roots_named(brc_store *store, brc_log_range *range, int not_dead, brc_roots *out,
                    brc_error *err)
{
    BRC_TRY(named_refs(store, out, err));
    BRC_TRY(named_drafts(store, not_dead, out, err));
    BRC_TRY(named_log(store, range, out, err));
    BRC_TRY(named_bisection(store, out, err));
    BRC_TRY(named_kept(store, out, err));
    return named_pins(store, out, err);
}

int brc_root_drafts_list(brc_store *store, int not_dead, brc_root_drafts *out, brc_error *err)
{
    int rc;
    sqlite3_stmt *st;
    out->n = 0;
    BRC_TRY(brc_stmt(store,
                     "SELECT id, changes, kind, owner, state, " DRAFT_WHOLE
                     " FROM draft ORDER BY id",
                     &st, err));
    while ((rc = brc_step(store, st, err)) > 0) {
        void *p = out->items;
        rc = brc_row_check(store, st, 5, "a draft", err);
        if (rc == BRC_OK)
            rc = brc_grow_array(&p, &out->cap, out->n + 1, sizeof(brc_root_draft), err);
        out->items = p;
        if (rc < 0)
            break;
        out->items[out->n++] = (brc_root_draft){sqlite3_column_int64(st, 0),
                                                sqlite3_column_int64(st, 1),
                                                sqlite3_column_int(st, 4) == 2 ||
                                                    (not_dead && is_left_by_dead(st, 2, 3))};
    }
    sqlite3_reset(st);
    return rc;
}

/* ---- what a draft's rows name -------------------------------- */

/* Of a row that cannot be an entry nothing can be said: then nothing is removed. */
static int add_entry(brc_roots *out, int what, int64_t node, const void *entry, size_t len,
                     brc_error *err)
{
    brc_root *root;
    BRC_TRY(root_new(out, &root, err));
    root->what = what;
    root->node = node;
    if (len > sizeof(root->entry))
        return brc_fail(err, BRC_ECORRUPT, "the entry of an uncommitted node is damaged");
    if (len > 0)
        memcpy(root->entry, entry, len);
    root->entry_len = len;
    return BRC_OK;
}

static int draft_entries(brc_store *store, int64_t draft, brc_roots *out, brc_error *err)
{
    int rc;
    sqlite3_stmt *st;
    BRC_TRY(brc_stmt(store,
                     "SELECT node, entry, checksum IS row_sum('draft_node', node, draft, path,"
                     " below, level, entry) FROM draft_node WHERE draft=?1",
                     &st, err));
    sqlite3_bind_int64(st, 1, draft);
    while ((rc = brc_step(store, st, err)) > 0) {
        rc = brc_row_check(store, st, 2, "an uncommitted node", err);
        if (rc == BRC_OK)
            rc = add_entry(out, BRC_ROOT_ROW, sqlite3_column_int64(st, 0),
                           sqlite3_column_blob(st, 1), (size_t)sqlite3_column_bytes(st, 1), err);
        if (rc < 0)
            break;
    }
    sqlite3_reset(st);
    return rc;
}

static int conflict_side(brc_store *store, sqlite3_stmt *st, int column, brc_roots *out,
                         brc_error *err)
{
    brc_oid id;
    const char *member = (const char *)sqlite3_column_text(st, 0);
    if (member == NULL || sqlite3_column_type(st, column) != SQLITE_BLOB ||
        sqlite3_column_bytes(st, column) == 0) /* something that is in no version */
        return BRC_OK;
    if (*member == '\0')
        return add_entry(out, BRC_ROOT_ENTRY, 0, sqlite3_column_blob(st, column),
                         (size_t)sqlite3_column_bytes(st, column), err);
    if (strcmp(member, "chunk") != 0 && strcmp(member, "/storage") != 0)
        return BRC_OK;
    BRC_TRY(brc_column_id(store, st, column, &id, err));
    return root_add(out, BRC_ROOT_OBJECT, &id, err);
}

static int draft_conflicts(brc_store *store, int64_t draft, brc_roots *out, brc_error *err)
{
    int rc, there;
    sqlite3_stmt *st;
    BRC_TRY(brc_schema_has(store, "conflict", &there, err));
    if (!there)
        return BRC_OK;
    BRC_TRY(brc_stmt(store, "SELECT member, base, ours, theirs FROM conflict WHERE draft=?1", &st,
                     err));
    sqlite3_bind_int64(st, 1, draft);
    while ((rc = brc_step(store, st, err)) > 0) {
        for (int i = 1; i <= 3 && rc >= 0; i++)
            rc = conflict_side(store, st, i, out, err);
        if (rc < 0)
            break;
    }
    sqlite3_reset(st);
    return rc;
}

int brc_roots_of_draft(brc_store *store, int64_t draft, brc_roots *out, brc_error *err)
{
    int has_keys;
    sqlite3_stmt *st;
    BRC_TRY(draft_entries(store, draft, out, err));
    BRC_TRY(draft_conflicts(store, draft, out, err));
    BRC_TRY(brc_schema_has(store, "draft_key", &has_keys, err));
    if (!has_keys)
        return BRC_OK;
    BRC_TRY(brc_stmt(store,
                     "SELECT id, checksum IS row_sum('draft_key', draft, key, id) FROM draft_key"
                     " WHERE draft=?1",
                     &st, err));
    sqlite3_bind_int64(st, 1, draft);
    return add_ids(store, st, BRC_ROOT_OBJECT, "an uncommitted key", out, err);
}

/* The next page of a row's chunks behind the key `after`, which is moved on. */
static int row_page(brc_store *store, int64_t node, int is_first, brc_buf *after, brc_roots *out,
                    size_t *n, brc_error *err)
{
    int rc;
    sqlite3_stmt *st;
    brc_oid id;
    *n = out->n = 0;
    BRC_TRY(brc_stmt(store,
                     "SELECT id, checksum IS row_sum('draft_chunk', node, key, id), key"
                     " FROM draft_chunk WHERE node=?1 AND key>=?2 AND (?4 OR key<>?2)"
                     " ORDER BY key LIMIT ?3",
                     &st, err));
    sqlite3_bind_int64(st, 1, node);
    BRC_TRY(brc_bind_copy(store, st, 2, 0, (brc_span){after->data, after->len}, err));
    sqlite3_bind_int64(st, 3, ROW_PAGE);
    sqlite3_bind_int(st, 4, is_first); /* a key may be empty */
    while ((rc = brc_step(store, st, err)) > 0) {
        ++*n;
        after->len = 0;
        rc = brc_row_check(store, st, 1, "an uncommitted chunk", err);
        if (rc == BRC_OK && sqlite3_column_bytes(st, 2) > 0)
            rc = brc_buf_append(after, sqlite3_column_blob(st, 2),
                                (size_t)sqlite3_column_bytes(st, 2), err);
        if (rc == BRC_OK && sqlite3_column_type(st, 0) != SQLITE_NULL) {
            rc = brc_column_id(store, st, 0, &id, err);
            if (rc == BRC_OK)
                rc = root_add(out, BRC_ROOT_OBJECT, &id, err);
        }
        if (rc < 0)
            break;
    }
    sqlite3_reset(st);
    return rc;
}

int brc_roots_of_row(brc_store *store, int64_t node,
                     int (*each)(void *ctx, const brc_oid *chunk, brc_error *err), void *ctx,
                     brc_error *err)
{
    brc_roots chunks = {0};
    brc_buf after = BRC_BUF_INIT;
    size_t n = ROW_PAGE;
    int rc = BRC_OK;
    for (int is_first = 1; n == ROW_PAGE && rc == BRC_OK; is_first = 0) {
        rc = row_page(store, node, is_first, &after, &chunks, &n, err);
        for (size_t i = 0; i < chunks.n && rc == BRC_OK; i++)
            rc = each(ctx, &chunks.items[i].id, err);
        brc_store_breathe(store);
    }
    brc_roots_dispose(&chunks);
    brc_buf_dispose(&after);
    return rc;
}

/* ---- drafts that are none any more -------------------------------- */

static int dead_draft(brc_store *store, int64_t *id, brc_error *err)
{
    brc_root_drafts drafts = {0};
    sqlite3_stmt *st;
    int live = 0;
    *id = 0;
    int rc = brc_root_drafts_list(store, 1, &drafts, err);
    for (size_t i = 0; i < drafts.n && rc == BRC_OK && !live; i++) {
        if (!drafts.items[i].is_dropped)
            continue;
        rc = brc_stmt(store, "SELECT 1 FROM draft WHERE id=?1 AND state<>2", &st, err);
        if (rc < 0)
            break;
        sqlite3_bind_int64(st, 1, drafts.items[i].id);
        rc = brc_ask_any(store, st, &live, err);
        *id = live ? drafts.items[i].id : 0;
    }
    free(drafts.items);
    return rc;
}

int brc_drafts_sweep_step(brc_store *store, int *more, brc_error *err)
{
    int64_t id = 0;
    sqlite3_stmt *st;
    *more = 0;
    BRC_TRY(brc_store_begin(store, err));
    int rc = dead_draft(store, &id, err);
    if (rc == BRC_OK && id != 0)
        rc = brc_draft_delete(store, id, err);
    if (rc == BRC_OK)
        rc = brc_stmt(store, "SELECT 1 FROM draft WHERE state=2", &st, err);
    if (rc == BRC_OK)
        rc = brc_ask_any(store, st, more, err);
    *more |= id != 0;
    /* The end of each transaction deletes some rows of those that were dropped. */
    int end = brc_store_end(store, rc == BRC_OK, rc == BRC_OK ? err : NULL);
    return rc < 0 ? rc : end;
}
