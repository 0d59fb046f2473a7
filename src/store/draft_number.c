/*
 * Deleting rows of draft_node. A row's number is what commits and copies of very many rows remember
 * between their transactions: by then somebody may have dropped the draft, and another node must
 * not have the number. SQLite gives one above the largest. So the row with the largest is not
 * deleted but emptied: it is then of no draft (0), and goes when a later one has taken its place.
 */
#include "db.h"

static int run_on_node(brc_store *store, const char *sql, int64_t node, brc_error *err)
{
    sqlite3_stmt *st;
    BRC_TRY(brc_stmt(store, sql, &st, err));
    sqlite3_bind_int64(st, 1, node);
    return brc_run(store, st, err);
}

int brc_draft_row_delete(brc_store *store, int64_t node, brc_error *err)
{
    BRC_TRY(run_on_node(store,
                        "UPDATE draft_node SET draft=0, path=NULL, below=NULL, level=0, entry=NULL,"
                        " checksum=row_sum('draft_node', node, 0, NULL, NULL, 0, NULL)"
                        " WHERE node=?1 AND node=(SELECT max(node) FROM draft_node)",
                        node, err));
    if (sqlite3_changes(store->db) == 0)
        return run_on_node(store, "DELETE FROM draft_node WHERE node=?1", node, err);
    return run_on_node(store, "DELETE FROM draft_node WHERE draft=0 AND node<?1", node, err);
}
