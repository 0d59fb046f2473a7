/* Which tables have rows of a draft: a commit looks only where there may be some
 * (schema/durable.sql, column `parts`). Below all else of drafts, which adds such rows. */
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
