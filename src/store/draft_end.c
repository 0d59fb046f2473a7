/*
 * Drafts that end: those in which nothing is, with their children, and those that are dropped late,
 * at the end of the next transaction (draft_late.c).
 */
#include "../base/process.h"
#include "db.h"

static int end_find(brc_store *store, const char *sql, int64_t draft, int64_t after, int64_t *out,
                    brc_error *err)
{
    sqlite3_stmt *st;
    BRC_TRY(brc_stmt(store, sql, &st, err));
    sqlite3_bind_int64(st, 1, draft);
    if (sqlite3_bind_parameter_count(st) > 1)
        sqlite3_bind_int64(st, 2, after);
    return brc_ask_number(store, st, out, err);
}

static int drop_unused(brc_store *store, int64_t draft, brc_error *err)
{
    brc_draft_head head;
    int unused;
    BRC_TRY(brc_draft_get(store, draft, &head, err));
    if (head.id == 0 || head.kind != BRC_DRAFT_PRIVATE)
        return BRC_OK;
    BRC_TRY(brc_draft_is_unused(store, &head, &unused, err));
    return unused ? brc_draft_delete(store, draft, err) : BRC_OK;
}

/* The next child of a draft, behind `after`; 0: there is none. */
static int next_child(brc_store *store, int64_t draft, int64_t after, int64_t *out, brc_error *err)
{
    return end_find(store,
                     "SELECT id FROM draft WHERE id>?2 AND state=1 AND " BRC_IS_CHILD " AND"
                     " replace(substr(plan, 1, 9+length(?1)), '}', ',')='{\"fork\":'||?1||','"
                     " ORDER BY id LIMIT 1",
                     draft, after, out, err);
}

int brc_draft_has_children(brc_store *store, int64_t draft, int *has, brc_error *err)
{
    int64_t child;
    BRC_TRY(next_child(store, draft, 0, &child, err));
    *has = child != 0;
    return BRC_OK;
}

int brc_draft_end(brc_store *store, int64_t draft, brc_error *err)
{
    int64_t child = 0;
    do {
        BRC_TRY(next_child(store, draft, child, &child, err));
        if (child != 0) /* its own children began later */
            BRC_TRY(brc_draft_end(store, child, err));
    } while (child != 0);
    return drop_unused(store, draft, err);
}

static int drop_late(brc_store *store, const brc_late_draft *late, brc_error *err)
{
    int64_t found = 0;
    if (late->which == BRC_LATE_END)
        return brc_draft_end(store, late->id, err);
    if (late->which == BRC_LATE_EMPTY) {
        BRC_TRY(next_child(store, late->id, 0, &found, err));
        return found == 0 ? drop_unused(store, late->id, err) : BRC_OK;
    }
    BRC_TRY(end_find(store,
                      late->which == BRC_LATE_SAVE
                          ? "SELECT id FROM draft WHERE id=?1 AND parent IS NOT NULL AND state=1"
                          : "SELECT id FROM draft WHERE id=?1 AND kind=2 AND state=1",
                      late->id, 0, &found, err));
    return found != 0 ? brc_draft_delete(store, found, err) : BRC_OK;
}

int brc_draft_drop_left(brc_store *store, brc_error *err)
{
    for (size_t i = 0; i < store->late_drafts.n; i++)
        BRC_TRY(drop_late(store, &store->late_drafts.items[i], err));
    return BRC_OK;
}

int brc_drafts_drop_unused(brc_store *store, brc_error *err)
{
    brc_draft_row *rows;
    size_t n;
    BRC_TRY(brc_draft_list(store, &rows, &n, err));
    int rc = BRC_OK;
    for (size_t i = 0; i < n && rc == BRC_OK; i++)
        if (rows[i].draft.kind == BRC_DRAFT_PRIVATE &&
            brc_process_state(rows[i].owner) == BRC_PROCESS_DEAD)
            rc = drop_unused(store, rows[i].draft.id, err);
    brc_draft_rows_free(rows, n);
    return rc;
}
