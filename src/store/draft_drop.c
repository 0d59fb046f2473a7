/*
 * Dropping drafts. What a draft holds may be millions of rows, and deleting them takes longer than
 * others should wait for the lock. So a dropped draft is marked (state 2, and kind 2: it is no
 * branch's), which is all that the transaction needs, and its rows go step by step: one in each
 * transaction that writes. Small drafts are gone with the first step. Rows that leave a draft which
 * stays go to a dropped one. A shared draft that was committed rests until its branch has the next
 * (state 3), so that the row's page is the only one that small commits write for it.
 */
#include "db.h"

/* Rows that one transaction deletes. */
enum { STEP = 4096, NODE_COST = 8 };

#define DROP_IT                                                                               \
    "UPDATE draft SET kind=2, state=2, checksum=row_sum('draft', id, 2, 2, branch, base, tip," \
    " other, plan, owner, parent, time_us, changes, parts) WHERE id=?1"

static int drop_run(brc_store *store, const char *sql, int64_t a, int64_t b, int64_t *left,
                    brc_error *err)
{
    sqlite3_stmt *st;
    BRC_TRY(brc_stmt(store, sql, &st, err));
    sqlite3_bind_int64(st, 1, a);
    if (sqlite3_bind_parameter_count(st) > 1)
        sqlite3_bind_int64(st, 2, b);
    BRC_TRY(brc_run(store, st, err));
    if (left != NULL)
        *left -= sqlite3_changes(store->db);
    return BRC_OK;
}

/* Of a table that the file may lack. */
static int drop_reserved(brc_store *store, const char *table, const char *sql, int64_t draft,
                         int64_t most, int64_t *left, brc_error *err)
{
    int there;
    BRC_TRY(brc_schema_has(store, table, &there, err));
    return there ? drop_run(store, sql, draft, most, left, err) : BRC_OK;
}

/* The number that a statement finds; 0: none. */
static int drop_find(brc_store *store, const char *sql, int64_t a, int64_t b, int64_t *out,
                     brc_error *err)
{
    sqlite3_stmt *st;
    BRC_TRY(brc_stmt(store, sql, &st, err));
    if (sqlite3_bind_parameter_count(st) > 0)
        sqlite3_bind_int64(st, 1, a);
    if (sqlite3_bind_parameter_count(st) > 1)
        sqlite3_bind_int64(st, 2, b);
    return brc_ask_number(store, st, out, err);
}

static int drop_nodes(brc_store *store, int64_t draft, int64_t *left, brc_error *err)
{
    int64_t first;
    while (*left > 0) {
        BRC_TRY(drop_find(store, "SELECT node FROM draft_node WHERE draft=?1 LIMIT 1", draft, 0,
                          &first, err));
        if (first == 0)
            return BRC_OK;
        BRC_TRY(drop_run(store,
                         "DELETE FROM draft_chunk WHERE node=?1 AND key IN"
                         " (SELECT key FROM draft_chunk WHERE node=?1 LIMIT ?2)",
                         first, *left, left, err));
        if (*left > 0)
            BRC_TRY(brc_draft_doc_drop(store, first, err));
        if (*left > 0)
            BRC_TRY(brc_draft_row_delete(store, first, err));
        *left -= NODE_COST;
    }
    return BRC_OK;
}

/* Of an open merge. */
static int drop_conflicts(brc_store *store, int64_t draft, int64_t *left, brc_error *err)
{
    return drop_reserved(store, "conflict",
                         "DELETE FROM conflict WHERE (draft, path, member, key) IN"
                         " (SELECT draft, path, member, key FROM conflict WHERE draft=?1 LIMIT ?2)",
                         draft, *left, left, err);
}

static int drop_moves(brc_store *store, int64_t draft, brc_error *err)
{
    return drop_reserved(store, "draft_move", "DELETE FROM draft_move WHERE draft=?1", draft, 0,
                         NULL, err);
}

/* At most *left rows, which it counts down; above 0: the draft has none now. */
static int drop_rows(brc_store *store, int64_t draft, int64_t *left, brc_error *err)
{
    BRC_TRY(drop_nodes(store, draft, left, err));
    if (*left > 0)
        BRC_TRY(drop_conflicts(store, draft, left, err));
    if (*left > 0)
        BRC_TRY(drop_reserved(store, "draft_move",
                              "DELETE FROM draft_move WHERE draft=?1 AND path IN (SELECT path"
                              " FROM draft_move WHERE draft=" BRC_IF_MOVES " LIMIT ?2)",
                              draft, *left, left, err));
    if (*left > 0)
        BRC_TRY(drop_reserved(store, "draft_key",
                              "DELETE FROM draft_key WHERE draft=?1 AND key IN (SELECT key"
                              " FROM draft_key WHERE draft=" BRC_IF_KEYS " LIMIT ?2)",
                              draft, *left, left, err));
    return BRC_OK;
}

static int drop_step(brc_store *store, int64_t draft, brc_error *err)
{
    int64_t left = STEP;
    BRC_TRY(drop_rows(store, draft, &left, err));
    return left > 0 ? drop_run(store, "DELETE FROM draft WHERE id=?1", draft, 0, NULL, err)
                    : BRC_OK;
}

int brc_draft_sweep(brc_store *store, brc_error *err)
{
    int64_t draft;
    BRC_TRY(drop_find(store, "SELECT id FROM draft WHERE state=2 LIMIT 1", 0, 0, &draft, err));
    return draft != 0 ? drop_step(store, draft, err) : BRC_OK;
}

/* Those of one draft are known to it as long as it has one. */
static int end_save(brc_store *store, int64_t draft, brc_error *err)
{
    int64_t parent;
    BRC_TRY(drop_find(store, "SELECT parent FROM draft WHERE id=?1", draft, 0, &parent, err));
    if (parent == 0)
        return BRC_OK;
    return drop_run(store,
                    "UPDATE draft SET parts=parts&7, checksum=row_sum('draft', id, kind, state,"
                    " branch, base, tip, other, plan, owner, parent, time_us, changes, parts&7)"
                    " WHERE id=?1 AND NOT EXISTS (SELECT 1 FROM draft s WHERE s.parent=?1 AND"
                    " s.state=1)",
                    parent, 0, NULL, err);
}

int brc_draft_saves_end(brc_store *store, int64_t draft, brc_error *err)
{
    int64_t save = 1;
    while (save != 0) {
        BRC_TRY(brc_draft_level(store, draft, &save, err));
        if (save != 0)
            BRC_TRY(drop_run(store, DROP_IT, save, 0, NULL, err));
        if (save != 0)
            BRC_TRY(end_save(store, save, err));
    }
    return BRC_OK;
}

int brc_draft_delete(brc_store *store, int64_t draft, brc_error *err)
{
    BRC_TRY(brc_draft_saves_end(store, draft, err));
    BRC_TRY(drop_run(store, DROP_IT, draft, 0, NULL, err));
    BRC_TRY(end_save(store, draft, err));
    return drop_step(store, draft, err);
}

int brc_draft_rest(brc_store *store, int64_t draft, brc_error *err)
{
    int64_t left = STEP;
    BRC_TRY(brc_draft_saves_end(store, draft, err));
    BRC_TRY(drop_rows(store, draft, &left, err));
    if (left <= 0)
        return drop_run(store, DROP_IT, draft, 0, NULL, err);
    return drop_run(store,
                    "UPDATE draft SET state=3, base=NULL, tip=NULL, parts=0,"
                    " checksum=row_sum('draft', id, kind, 3, branch, NULL, NULL, other, plan,"
                    " owner, parent, time_us, changes, 0) WHERE id=?1",
                    draft, 0, NULL, err);
}

int brc_draft_dropped(brc_store *store, int64_t draft, int64_t *out, brc_error *err)
{
    BRC_TRY(drop_find(store, "SELECT id FROM draft WHERE state=2 AND id<>?1 LIMIT 1", draft, 0, out,
                      err));
    if (*out != 0)
        return BRC_OK;
    BRC_TRY(drop_run(store,
                     "INSERT INTO draft(kind, state, branch, time_us, changes, parts, checksum)"
                     " SELECT 2, 2, branch, time_us, 0, 7, 0 FROM draft WHERE id=?1",
                     draft, 0, NULL, err));
    *out = sqlite3_last_insert_rowid(store->db);
    return drop_run(store, DROP_IT, *out, 0, NULL, err);
}

/* Those of nodes become a dropped draft's. */
static int give_nodes_away(brc_store *store, int64_t draft, brc_error *err)
{
    int64_t to;
    BRC_TRY(brc_draft_dropped(store, draft, &to, err));
    BRC_TRY(drop_run(store,
                     "UPDATE draft_node SET draft=?2, path=NULL, checksum="
                     "row_sum('draft_node', node, ?2, NULL, below, level, entry) WHERE draft=?1",
                     draft, to, NULL, err));
    return drop_moves(store, draft, err);
}

int brc_draft_empty(brc_store *store, int64_t draft, brc_error *err)
{
    int64_t left = STEP;
    BRC_TRY(brc_draft_saves_end(store, draft, err));
    BRC_TRY(drop_rows(store, draft, &left, err));
    if (left > 0)
        return BRC_OK;
    BRC_TRY(give_nodes_away(store, draft, err));
    return drop_reserved(store, "draft_key", "DELETE FROM draft_key WHERE draft=?1", draft, 0,
                         NULL, err);
}

int brc_draft_lay(brc_store *store, int64_t draft, const brc_oid *base, brc_error *err)
{
    sqlite3_stmt *st;
    int64_t left = STEP;
    BRC_TRY(brc_draft_saves_end(store, draft, err));
    BRC_TRY(drop_nodes(store, draft, &left, err));
    BRC_TRY(left > 0 ? drop_moves(store, draft, err) : give_nodes_away(store, draft, err));
    BRC_TRY(brc_stmt(store,
                     "UPDATE draft SET base=?2, parts=parts&1, checksum=row_sum('draft', id, kind,"
                     " state, branch, ?2, tip, other, plan, owner, parent, time_us, changes,"
                     " parts&1) WHERE id=?1",
                     &st, err));
    sqlite3_bind_int64(st, 1, draft);
    brc_bind_id(store, st, 2, base);
    return brc_run(store, st, err);
}

int brc_draft_advance(brc_store *store, int64_t draft, const brc_oid *commit, brc_error *err)
{
    sqlite3_stmt *st;
    BRC_TRY(brc_draft_empty(store, draft, err));
    BRC_TRY(brc_stmt(store,
                     "UPDATE draft SET base=?2, tip=?2, parts=0, checksum=row_sum('draft', id,"
                     " kind, state, branch, ?2, ?2, other, plan, owner, parent, time_us, changes,"
                     " 0) WHERE id=?1",
                     &st, err));
    sqlite3_bind_int64(st, 1, draft);
    brc_bind_id(store, st, 2, commit);
    return brc_run(store, st, err);
}

static int has_many(brc_store *store, const brc_draft_stack *stack, int *many, brc_error *err)
{
    int64_t n = 0, sum = 0;
    for (size_t i = 0; i < stack->n && sum < STEP; i++) {
        BRC_TRY(drop_find(store,
                          "SELECT count(*) FROM (SELECT 1 FROM draft_chunk WHERE node=?1 LIMIT ?2)",
                          stack->node[i], STEP, &n, err));
        sum += n;
    }
    *many = sum >= STEP;
    return BRC_OK;
}

/* Every chunk of the stack, and the rows below the first. */
static int clear_now(brc_store *store, const brc_draft_stack *stack, brc_error *err)
{
    for (size_t i = 0; i < stack->n; i++)
        BRC_TRY(drop_run(store, "DELETE FROM draft_chunk WHERE node=?1", stack->node[i], 0, NULL,
                         err));
    for (size_t i = 1; i < stack->n; i++)
        BRC_TRY(brc_draft_row_delete(store, stack->node[i], err));
    return stack->n > 1 ? brc_draft_stack_cut(store, stack->node[0], err) : BRC_OK;
}

/* The rows become those of a dropped draft. */
static int give_away(brc_store *store, const brc_draft_stack *stack, brc_error *err)
{
    int64_t draft, level, to;
    BRC_TRY(brc_draft_row_level(store, stack->node[0], &draft, &level, err));
    BRC_TRY(brc_draft_dropped(store, draft, &to, err));
    for (size_t i = 0; i < stack->n; i++) {
        BRC_TRY(brc_draft_row_hide(store, stack->node[i], err));
        BRC_TRY(brc_draft_row_to(store, stack->node[i], to, err));
    }
    return BRC_OK;
}

int brc_draft_row_clear(brc_store *store, int64_t node, const char *path, brc_error *err)
{
    int many;
    int64_t top;
    brc_draft_stack stack;
    BRC_TRY(brc_draft_stack_part(store, node, err));
    BRC_TRY(brc_draft_stack_get(store, node, &stack, err));
    BRC_TRY(has_many(store, &stack, &many, err));
    if (!many)
        return clear_now(store, &stack, err);
    BRC_TRY(brc_draft_stack_push(store, node, path, &top, err));
    BRC_TRY(brc_draft_stack_cut(store, top, err));
    return give_away(store, &stack, err);
}

int brc_draft_row_drop(brc_store *store, int64_t node, brc_error *err)
{
    int many, kept;
    brc_draft_stack stack;
    BRC_TRY(brc_draft_row_keep(store, node, &kept, err));
    if (kept)
        return BRC_OK;
    BRC_TRY(brc_draft_doc_drop(store, node, err));
    BRC_TRY(brc_draft_stack_get(store, node, &stack, err));
    BRC_TRY(has_many(store, &stack, &many, err));
    if (many)
        return give_away(store, &stack, err);
    BRC_TRY(clear_now(store, &stack, err));
    return brc_draft_row_delete(store, node, err);
}
