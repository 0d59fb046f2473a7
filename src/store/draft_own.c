/*
 * Rows of nodes that may be changed. A row that others need as it is gets another over it, or in
 * its place: while a commit or a copy in batches reads it, and when an open savepoint has found it
 * (draft_save.c). Of the latter the savepoint gets a row with the path, the entry and the document;
 * chunks are not copied, they lie below both.
 */
#include "db.h"

/* Rows that lie on each other, from which on they are made fewer as others come. */
enum { STACK_HIGH = 14, STACK_FULL = 28 };

static int own_ask(brc_store *store, const char *sql, int64_t node, int64_t number, int64_t *out,
                   brc_error *err)
{
    sqlite3_stmt *st;
    BRC_TRY(brc_stmt(store, sql, &st, err));
    sqlite3_bind_int64(st, 1, node);
    if (sqlite3_bind_parameter_count(st) > 1)
        sqlite3_bind_int64(st, 2, number);
    return brc_ask_number(store, st, out, err);
}

/* Its checksum, after its other columns. */
static int own_seal(brc_store *store, int64_t node, const char *path, brc_error *err)
{
    sqlite3_stmt *st;
    BRC_TRY(brc_stmt(store,
                     "UPDATE draft_node SET path=?2, checksum=row_sum('draft_node', node, draft,"
                     " ?2, below, level, entry) WHERE node=?1",
                     &st, err));
    sqlite3_bind_int64(st, 1, node);
    sqlite3_bind_text(st, 2, path, -1, SQLITE_STATIC);
    return brc_run(store, st, err);
}

/* A row without a path that lies on this one, with its entry and document. */
static int row_over(brc_store *store, int64_t node, int64_t level, int64_t *top, brc_error *err)
{
    BRC_TRY(own_ask(store,
                    "INSERT INTO draft_node(draft, path, below, level, entry, checksum)"
                    " SELECT draft, NULL, node, ?2, entry, 0 FROM draft_node WHERE node=?1"
                    " RETURNING node",
                    node, level, top, err));
    return brc_draft_doc_copy(store, node, *top, err);
}

/* The row goes below `top`, which gets its path. */
static int put_below(brc_store *store, int64_t node, const char *path, int64_t top, brc_error *err)
{
    BRC_TRY(brc_draft_doc_drop(store, node, err));
    BRC_TRY(brc_draft_row_hide(store, node, err));
    return own_seal(store, top, path, err);
}

/* ---- known to a savepoint -------------------------------- */

static int room_over(brc_store *store, int64_t node, size_t n, brc_error *err)
{
    int done = n < STACK_HIGH;
    while (!done) {
        brc_draft_stack stack;
        BRC_TRY(brc_draft_stack_shorten(store, node, BRC_DRAFT_STACK_SHORT, &done, err));
        BRC_TRY(brc_draft_stack_get(store, node, &stack, err));
        done |= stack.n < STACK_FULL;
    }
    return BRC_OK;
}

/* What the savepoint has of it: a row that lies on the same chunks. */
static int image_of(brc_store *store, int64_t node, const char *path, int64_t save, brc_error *err)
{
    int64_t image;
    BRC_TRY(own_ask(store,
                    "INSERT INTO draft_node(draft, path, below, level, entry, checksum)"
                    " SELECT ?2, NULL, node, level, entry, 0 FROM draft_node WHERE node=?1"
                    " RETURNING node",
                    node, save, &image, err));
    BRC_TRY(brc_draft_doc_copy(store, node, image, err));
    return own_seal(store, image, path, err);
}

/* The row itself becomes the savepoint's, and one like it takes its place. */
static int replace_row(brc_store *store, int64_t node, const char *path, int64_t save, int64_t *top,
                       brc_error *err)
{
    BRC_TRY(own_ask(store,
                    "INSERT INTO draft_node(draft, path, level, entry, checksum)"
                    " SELECT draft, NULL, ?2, entry, 0 FROM draft_node WHERE node=?1"
                    " RETURNING node",
                    node, save, top, err));
    BRC_TRY(brc_draft_doc_copy(store, node, *top, err));
    BRC_TRY(brc_draft_has_part(store, save, BRC_PART_DOCS, err));
    BRC_TRY(brc_draft_row_to(store, node, save, err));
    return own_seal(store, *top, path, err);
}

static int set_aside(brc_store *store, int64_t node, const char *path, int64_t save, int64_t *top,
                     brc_error *err)
{
    brc_draft_stack stack;
    int any;
    BRC_TRY(brc_draft_touch(store, save, err));
    BRC_TRY(brc_draft_stack_get(store, node, &stack, err));
    BRC_TRY(brc_draft_chunk_any(store, &stack, &any, err));
    if (!any && stack.n == 1)
        return replace_row(store, node, path, save, top, err);
    BRC_TRY(room_over(store, node, stack.n, err));
    BRC_TRY(row_over(store, node, save, top, err));
    BRC_TRY(image_of(store, node, path, save, err));
    return put_below(store, node, path, *top, err);
}

int brc_draft_node_own(brc_store *store, int64_t draft, const char *path, int64_t *save,
                       brc_error *err)
{
    sqlite3_stmt *st;
    int64_t top;
    BRC_TRY(brc_draft_level(store, draft, save, err));
    if (*save == 0)
        return BRC_OK;
    BRC_TRY(brc_stmt(store, "SELECT node, level FROM draft_node WHERE draft=?1 AND path=?2", &st,
                     err));
    sqlite3_bind_int64(st, 1, draft);
    sqlite3_bind_text(st, 2, path, -1, SQLITE_STATIC);
    int rc = brc_step(store, st, err);
    if (rc <= 0)
        return rc;
    const int64_t node = sqlite3_column_int64(st, 0), level = sqlite3_column_int64(st, 1);
    sqlite3_reset(st);
    return level < *save ? set_aside(store, node, path, *save, &top, err) : BRC_OK;
}

/* ---- read by others -------------------------------- */

int brc_draft_stack_push(brc_store *store, int64_t node, const char *path, int64_t *top,
                         brc_error *err)
{
    int64_t draft, level; /* of both: they say the same */
    BRC_TRY(brc_draft_row_level(store, node, &draft, &level, err));
    BRC_TRY(row_over(store, node, level, top, err));
    return put_below(store, node, path, *top, err);
}
