/* What a draft's row says of its other rows: which tables have some, so that a commit looks only
 * there (schema/durable.sql, column `parts`), how often it was changed, and which of them
 * savepoints know. Below all else of drafts, which adds such rows. */
#include "db.h"

int brc_draft_has_part(brc_store *store, int64_t draft, int part, brc_error *err)
{
    sqlite3_stmt *st;
    BRC_TRY(brc_stmt(store,
                     "UPDATE draft SET parts=parts|?2, checksum=row_sum('draft', id, kind, state,"
                     " branch, base, tip, other, plan, owner, parent, time_us, changes, parts|?2)"
                     " WHERE id=?1 AND parts&?2=0",
                     &st, err));
    sqlite3_bind_int64(st, 1, draft);
    sqlite3_bind_int(st, 2, part);
    return brc_run(store, st, err);
}

int brc_draft_touch(brc_store *store, int64_t draft, brc_error *err)
{
    sqlite3_stmt *st;
    BRC_TRY(brc_stmt(store,
                     "UPDATE draft SET changes=changes+1, checksum=row_sum('draft', id, kind,"
                     " state, branch, base, tip, other, plan, owner, parent, time_us, changes+1,"
                     " parts) WHERE id=?1",
                     &st, err));
    sqlite3_bind_int64(st, 1, draft);
    return brc_run(store, st, err);
}

/* ---- savepoints: which rows are as one found them -------------------------------- */

int brc_draft_level(brc_store *store, int64_t draft, int64_t *level, brc_error *err)
{
    sqlite3_stmt *st;
    BRC_TRY(brc_stmt(store,
                     "SELECT max(s.id) FROM draft d CROSS JOIN draft s ON s.parent=d.id AND"
                     " s.state=1 WHERE d.id=?1 AND d.parts&8",
                     &st, err));
    sqlite3_bind_int64(st, 1, draft);
    return brc_ask_number(store, st, level, err);
}

int brc_draft_part_keeper(brc_store *store, int64_t draft, int part, int64_t *save, brc_error *err)
{
    sqlite3_stmt *st;
    BRC_TRY(brc_draft_level(store, draft, save, err));
    if (*save == 0)
        return BRC_OK;
    BRC_TRY(brc_stmt(store, "SELECT id FROM draft WHERE id=?1 AND parts&?2=0", &st, err));
    sqlite3_bind_int64(st, 1, *save);
    sqlite3_bind_int(st, 2, part);
    return brc_ask_number(store, st, save, err);
}

int brc_draft_keeper(brc_store *store, int64_t draft, int64_t level, int64_t *save, brc_error *err)
{
    sqlite3_stmt *st;
    BRC_TRY(brc_stmt(store,
                     "SELECT min(s.id) FROM draft d CROSS JOIN draft s ON s.parent=d.id AND"
                     " s.state=1 AND s.id>?2 WHERE d.id=?1 AND d.parts&8",
                     &st, err));
    sqlite3_bind_int64(st, 1, draft);
    sqlite3_bind_int64(st, 2, level);
    return brc_ask_number(store, st, save, err);
}

int brc_draft_row_level(brc_store *store, int64_t node, int64_t *draft, int64_t *level,
                        brc_error *err)
{
    sqlite3_stmt *st;
    *draft = *level = 0;
    BRC_TRY(brc_stmt(store, "SELECT draft, level FROM draft_node WHERE node=?1", &st, err));
    sqlite3_bind_int64(st, 1, node);
    int rc = brc_step(store, st, err);
    if (rc <= 0)
        return rc;
    *draft = sqlite3_column_int64(st, 0);
    *level = sqlite3_column_int64(st, 1);
    sqlite3_reset(st);
    return BRC_OK;
}

int brc_draft_row_is_frozen(brc_store *store, int64_t node, int *is, brc_error *err)
{
    int64_t draft, level, save;
    BRC_TRY(brc_draft_row_level(store, node, &draft, &level, err));
    BRC_TRY(brc_draft_keeper(store, draft, level, &save, err));
    *is = save != 0;
    return BRC_OK;
}

int brc_draft_row_to(brc_store *store, int64_t node, int64_t draft, brc_error *err)
{
    sqlite3_stmt *st;
    BRC_TRY(brc_stmt(store,
                     "UPDATE draft_node SET draft=?2, checksum=row_sum('draft_node', node, ?2,"
                     " path, below, level, entry) WHERE node=?1",
                     &st, err));
    sqlite3_bind_int64(st, 1, node);
    sqlite3_bind_int64(st, 2, draft);
    return brc_run(store, st, err);
}
