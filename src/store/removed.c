/* The table of removed bytes: its rows, the rows of stored bytes that objects leave, and the whole
 * table made anew. */
#include "removed.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../base/process.h"
#include "db.h"

/* ==== rows of the table ================================ */

#define REMOVED_COLUMNS "backend, place, name, bytes, total, state, since_us, due_us"

static brc_removed removed_of(sqlite3_stmt *st)
{
    const char *name = (const char *)sqlite3_column_text(st, 2);
    brc_removed row = {
        .backend = sqlite3_column_int64(st, 0),
        .place = sqlite3_column_int64(st, 1),
        .bytes = sqlite3_column_int64(st, 3),
        .total = sqlite3_column_int64(st, 4),
        .state = sqlite3_column_int(st, 5),
        .since_us = sqlite3_column_int64(st, 6),
        .due_us = sqlite3_column_int64(st, 7),
    };
    snprintf(row.name, sizeof(row.name), "%s", name != NULL ? name : "");
    return row;
}

/* Runs a statement whose first parameters are a row's key. */
static int removed_stmt(brc_store *store, const char *sql, const brc_removed *row,
                        sqlite3_stmt **st, brc_error *err)
{
    BRC_TRY(brc_stmt(store, sql, st, err));
    sqlite3_bind_int64(*st, 1, row->backend);
    sqlite3_bind_int64(*st, 2, row->place);
    sqlite3_bind_text(*st, 3, row->name, -1, SQLITE_STATIC);
    return BRC_OK;
}

int brc_removed_find(brc_store *store, brc_removed *row, int *found, brc_error *err)
{
    sqlite3_stmt *st;
    *found = 0;
    BRC_TRY(removed_stmt(store,
                         "SELECT " REMOVED_COLUMNS ", checksum IS " BRC_REMOVED_SUM " FROM removed"
                         " WHERE backend=?1 AND place=?2 AND name=?3",
                         row, &st, err));
    int rc = brc_step(store, st, err);
    if (rc <= 0)
        return rc;
    rc = brc_row_check(store, st, 8, "a row about removed bytes of a place", err);
    *found = rc == BRC_OK;
    if (*found)
        *row = removed_of(st);
    sqlite3_reset(st);
    return rc;
}

int brc_removed_put(brc_store *store, const brc_removed *row, brc_error *err)
{
    sqlite3_stmt *st;
    BRC_TRY(removed_stmt(store,
                         "INSERT OR REPLACE INTO removed(" REMOVED_COLUMNS ", checksum) VALUES"
                         " (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8,"
                         " row_sum('removed', ?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8))",
                         row, &st, err));
    sqlite3_bind_int64(st, 4, row->bytes);
    sqlite3_bind_int64(st, 5, row->total);
    sqlite3_bind_int(st, 6, row->state);
    sqlite3_bind_int64(st, 7, row->since_us != 0 ? row->since_us : brc_now_us());
    sqlite3_bind_int64(st, 8, row->due_us);
    return brc_run(store, st, err);
}

int brc_removed_delete(brc_store *store, const brc_removed *row, brc_error *err)
{
    sqlite3_stmt *st;
    BRC_TRY(removed_stmt(store, "DELETE FROM removed WHERE backend=?1 AND place=?2 AND name=?3",
                         row, &st, err));
    return brc_run(store, st, err);
}

/* ---- lists -------------------------------- */

int brc_removed_last(brc_store *store, int64_t *last, brc_error *err)
{
    sqlite3_stmt *st;
    BRC_TRY(brc_stmt(store, "SELECT coalesce(max(place), 0) FROM removed WHERE backend=0", &st,
                     err));
    return brc_ask_number(store, st, last, err);
}

int brc_blob_last(brc_store *store, int64_t *last, brc_error *err)
{
    sqlite3_stmt *st;
    BRC_TRY(brc_stmt(store, "SELECT coalesce(max(seq), 0) FROM blob", &st, err));
    return brc_ask_number(store, st, last, err);
}

int brc_blobs_page(brc_store *store, int64_t after, brc_blob_row *out, size_t cap, size_t *n,
                   brc_error *err)
{
    int rc = BRC_OK;
    sqlite3_stmt *st;
    *n = 0;
    BRC_TRY(brc_stmt(store,
                     "SELECT seq, max(0, length(data) - coalesce((SELECT bytes FROM removed WHERE"
                     " backend=0 AND place=seq AND name=''), 0)) FROM blob WHERE seq>?1"
                     " ORDER BY seq LIMIT ?2",
                     &st, err));
    sqlite3_bind_int64(st, 1, after);
    sqlite3_bind_int64(st, 2, (int64_t)cap);
    while (*n < cap && (rc = brc_step(store, st, err)) > 0)
        out[(*n)++] = (brc_blob_row){.seq = sqlite3_column_int64(st, 0),
                                     .live = (uint64_t)sqlite3_column_int64(st, 1)};
    sqlite3_reset(st);
    return rc < 0 ? rc : BRC_OK;
}

#define REMOVED_NEXT                                                                              \
    "SELECT " REMOVED_COLUMNS " FROM removed WHERE (backend, place, name)>(?1, ?2, ?3) AND"       \
    " due_us<=?4 AND checksum IS " BRC_REMOVED_SUM
#define REMOVED_ORDER " ORDER BY backend, place, name LIMIT ?5"

int brc_removed_next(brc_store *store, brc_removed_walk *walk, brc_removed *out, size_t cap,
                     size_t *n, brc_error *err)
{
    int rc;
    sqlite3_stmt *st;
    *n = 0;
    if (walk->strays_of != 0 && walk->at.backend < walk->strays_of)
        walk->at = (brc_removed){.backend = walk->strays_of};
    BRC_TRY(removed_stmt(store,
                         walk->strays_of != 0
                             ? REMOVED_NEXT " AND backend=?6 AND state=3" REMOVED_ORDER
                             : REMOVED_NEXT " AND (backend<>0 OR place<=?6) AND (state=2 OR"
                                            " (state=1 AND bytes>=total-bytes))" REMOVED_ORDER,
                         &walk->at, &st, err));
    sqlite3_bind_int64(st, 4, walk->now_us);
    sqlite3_bind_int64(st, 5, (int64_t)cap);
    sqlite3_bind_int64(st, 6, walk->strays_of != 0 ? walk->strays_of : walk->last);
    while ((rc = brc_step(store, st, err)) > 0)
        out[(*n)++] = removed_of(st);
    if (*n > 0)
        walk->at = out[*n - 1];
    return rc;
}

/* ==== rows of stored bytes ================================ */

/*
 * Rows of blob that objects have left: an object that is encoded again gets new bytes, and its old
 * bytes stay in the row that it shared. When a row is all free it is deleted, in the transaction in
 * which the last object leaves it. So nobody has to search for the row's remaining objects: objects
 * have no index by place.
 *
 * A bulk write stores the bytes of small objects before the rows that name them (flow/write.c):
 * until then they count as free, but their row stays, even if it is all free.
 */

static int left_note(brc_store *store, int64_t seq, uint64_t bytes, int64_t ahead, brc_error *err)
{
    void *p = store->left.rows;
    const size_t n = store->left.n;
    if (n > 0 && store->left.rows[n - 1].seq == seq) {
        store->left.rows[n - 1].bytes += bytes;
        store->left.rows[n - 1].ahead += ahead;
        return BRC_OK;
    }
    int rc = brc_grow_array(&p, &store->left.cap, n + 1, sizeof(*store->left.rows), err);
    store->left.rows = p;
    if (rc == BRC_OK)
        store->left.rows[store->left.n++] = (brc_left_row){seq, bytes, ahead};
    return rc;
}

/* Before the transaction ends the notes are written, and rows that no object has any more are
 * dropped. */
int brc_row_left(brc_store *store, int64_t seq, uint64_t bytes, brc_error *err)
{
    return left_note(store, seq, bytes, 0, err);
}

int brc_row_ahead(brc_store *store, int64_t seq, int64_t bytes, brc_error *err)
{
    const uint64_t less = bytes < 0 ? 0 - (uint64_t)bytes : 0;
    if (bytes > 0)
        store->inserted_bytes += (uint64_t)bytes;
    else /* the bytes were counted when they were put */
        store->inserted_bytes -= less < store->inserted_bytes ? less : store->inserted_bytes;
    return left_note(store, seq, 0, bytes, err);
}

static int left_order(const void *a, const void *b)
{
    const brc_left_row *x = a, *y = b;
    return (x->seq > y->seq) - (x->seq < y->seq);
}

/* Sorts the rows and joins the notes of each row. */
static void left_sort(brc_store *store)
{
    brc_left_row *rows = store->left.rows;
    size_t n = 0;
    qsort(rows, store->left.n, sizeof(*rows), left_order);
    for (size_t i = 0; i < store->left.n; i++)
        if (n > 0 && rows[i].seq == rows[n - 1].seq) {
            rows[n - 1].bytes += rows[i].bytes;
            rows[n - 1].ahead += rows[i].ahead;
        } else
            rows[n++] = rows[i];
    store->left.n = n;
}

int brc_blob_find(brc_store *store, int64_t seq, brc_removed *row, int *found, brc_error *err)
{
    sqlite3_stmt *st;
    *found = 0;
    *row = (brc_removed){.place = seq, .state = BRC_REMOVED_FREE};
    BRC_TRY(brc_stmt(store,
                     "SELECT length(b.data), r.bytes, r.since_us, r.checksum IS NULL OR r.checksum"
                     " IS row_sum('removed', r.backend, r.place, r.name, r.bytes, r.total,"
                     " r.state, r.since_us, r.due_us) FROM blob b LEFT JOIN removed r"
                     " ON r.backend=0 AND r.place=b.seq AND r.name='' WHERE b.seq=?1",
                     &st, err));
    sqlite3_bind_int64(st, 1, seq);
    int rc = brc_step(store, st, err);
    if (rc <= 0)
        return rc;
    row->total = sqlite3_column_int64(st, 0);
    *found = sqlite3_column_type(st, 1) != SQLITE_NULL;
    row->bytes = sqlite3_column_int64(st, 1);
    row->since_us = sqlite3_column_int64(st, 2);
    rc = brc_row_check(store, st, 3, "a row about removed bytes", err);
    sqlite3_reset(st);
    return rc;
}

int brc_blob_drop(brc_store *store, int64_t seq, brc_error *err)
{
    sqlite3_stmt *st;
    BRC_TRY(brc_stmt(store,
                     "UPDATE blob SET data=x'' WHERE seq=?1 AND seq=(SELECT max(seq) FROM blob)",
                     &st, err));
    sqlite3_bind_int64(st, 1, seq);
    BRC_TRY(brc_run(store, st, err));
    if (sqlite3_changes(store->db) > 0)
        return BRC_OK;
    BRC_TRY(brc_stmt(store, "DELETE FROM blob WHERE seq=?1", &st, err));
    sqlite3_bind_int64(st, 1, seq);
    return brc_run(store, st, err);
}

int brc_row_is_ahead(brc_store *store, int64_t seq, uint64_t bytes, int *is_there, brc_error *err)
{
    brc_removed row;
    int found;
    BRC_TRY(brc_blob_find(store, seq, &row, &found, err));
    *is_there = row.bytes >= 0 && row.bytes <= row.total && (uint64_t)row.bytes >= bytes;
    return BRC_OK;
}

/* `bytes` of the row are free already, apart from those put ahead. */
static int row_goes_ahead(brc_store *store, const brc_left_row *left, brc_removed *row,
                          uint64_t bytes, brc_error *err)
{
    const uint64_t length = (uint64_t)row->total;
    const int64_t after = (int64_t)bytes + left->ahead;
    if (bytes > length || after < 0 || (uint64_t)after > length)
        return brc_fail(err, BRC_ECORRUPT,
                        "%s is damaged: blob %lld does not have the length of the bytes that were "
                        "put into it; run 'breccia fsck'",
                        store->path, (long long)left->seq);
    row->bytes = after;
    return after > 0 ? brc_removed_put(store, row, err) : brc_removed_delete(store, row, err);
}

/* Writes the notes of one row. A row with more free bytes than bytes stays: objects of a damaged
 * file lay in the same bytes. */
static int leave_row(brc_store *store, const brc_left_row *left, brc_error *err)
{
    brc_removed row;
    int found;
    BRC_TRY(brc_blob_find(store, left->seq, &row, &found, err));
    const uint64_t length = (uint64_t)row.total, before = (uint64_t)row.bytes;
    if (left->ahead != 0)
        return row_goes_ahead(store, left, &row, before + left->bytes, err);
    if (length == 0 || left->bytes == 0 || before > length || left->bytes > length - before)
        return BRC_OK;
    row.bytes = (int64_t)(before + left->bytes);
    if (row.bytes < row.total)
        return brc_removed_put(store, &row, err);
    BRC_TRY(brc_blob_drop(store, left->seq, err));
    return found ? brc_removed_delete(store, &row, err) : BRC_OK;
}

int brc_rows_leave(brc_store *store, brc_error *err)
{
    if (store->left.n > 0)
        left_sort(store);
    for (size_t i = 0; i < store->left.n; i++)
        BRC_TRY(leave_row(store, &store->left.rows[i], err));
    store->left.n = 0;
    return BRC_OK;
}

/* ==== all of the table ================================ */

/* Drops damaged rows of other backends, and rows of backends and places that have no row. */
static int drop_damaged(brc_store *store, brc_error *err)
{
    int backends, places;
    BRC_TRY(brc_exec(store, "DELETE FROM removed WHERE backend IS 0 OR " BRC_REMOVED_BAD, err));
    BRC_TRY(brc_schema_has(store, "backend", &backends, err));
    BRC_TRY(brc_schema_has(store, "place", &places, err));
    if (backends)
        BRC_TRY(brc_exec(store, "DELETE FROM removed WHERE backend NOT IN (SELECT id FROM backend)",
                         err));
    return places ? brc_exec(store,
                             "DELETE FROM removed WHERE place<>0 AND NOT EXISTS (SELECT 1 FROM"
                             " place p WHERE p.seq=removed.place AND p.backend=removed.backend)",
                             err)
                  : BRC_OK;
}

/* Runs a statement that writes rows; ?1 is the time. */
static int add_all(brc_store *store, const char *sql, brc_error *err)
{
    sqlite3_stmt *st;
    BRC_TRY(brc_stmt(store, sql, &st, err));
    sqlite3_bind_int64(st, 1, brc_now_us());
    return brc_run(store, st, err);
}

/* Objects and blobs say what is free in the file. Each place in other backends gets a row, so that
 * the next collection looks there. Damaged rows of other backends' names are lost: a
 * collection finds such bytes if the backend lists them. */
int brc_removed_rebuild(brc_store *store, brc_error *err)
{
    int there;
    BRC_TRY(drop_damaged(store, err));
    BRC_TRY(add_all(store,
                    "INSERT INTO removed(" REMOVED_COLUMNS ", checksum) SELECT 0, seq, '',"
                    " free, len, 1, ?1, 0, row_sum('removed', 0, seq, '', free, len, 1, ?1, 0)"
                    " FROM (SELECT b.seq AS seq, length(b.data) AS len, length(b.data) -"
                    " coalesce(o.used, 0) AS free FROM blob b LEFT JOIN (SELECT place,"
                    " CAST(total(stored) AS INTEGER) AS used FROM object WHERE backend=0"
                    " AND typeof(stored)='integer' AND stored>0 GROUP BY place) o"
                    " ON o.place=b.seq) WHERE free>0",
                    err));
    BRC_TRY(brc_schema_has(store, "place", &there, err));
    return there ? add_all(store,
                           "INSERT OR IGNORE INTO removed(" REMOVED_COLUMNS ", checksum)"
                           " SELECT backend, seq, '', 0, 0, 1, ?1, 0, row_sum('removed', backend,"
                           " seq, '', 0, 0, 1, ?1, 0) FROM place",
                           err)
                 : BRC_OK;
}

int brc_removed_there(brc_store *store, brc_error *err)
{
    int is_old;
    BRC_TRY(brc_schema_has(store, "hole", &is_old, err));
    return is_old ? brc_fail(err, BRC_EFORMAT,
                             "%s was made by an earlier breccia: let 'breccia gc' open it once for "
                             "writing, to bring its tables up to date",
                             store->path)
                  : BRC_OK;
}

#define OLD_PACK "'{\"left\":true}'"
#define OLD_NAME "'{\"left\":true,\"canonical\":true}'"

static int take_over_places(brc_store *store, brc_error *err)
{
    int there;
    BRC_TRY(brc_schema_has(store, "place", &there, err));
    if (!there)
        return BRC_OK;
    BRC_TRY(add_all(store,
                    "INSERT OR IGNORE INTO removed(" REMOVED_COLUMNS ", checksum)"
                    " SELECT backend, at, called, 0, 0, 1, ?1, 0, row_sum('removed', backend, at,"
                    " called, 0, 0, 1, ?1, 0) FROM (SELECT backend,"
                    " CASE facts WHEN " OLD_PACK " THEN seq ELSE 0 END AS at,"
                    " CASE facts WHEN " OLD_PACK " THEN '' ELSE name END AS called"
                    " FROM place WHERE facts IN (" OLD_PACK "," OLD_NAME ")"
                    " AND checksum IS row_sum('place', seq, backend, name, size, facts))",
                    err));
    return brc_exec(store,
                    "DELETE FROM place WHERE facts=" OLD_NAME ";"
                    "UPDATE place SET facts=NULL, checksum=row_sum('place', seq, backend, name,"
                    " size, NULL) WHERE facts=" OLD_PACK,
                    err);
}

int brc_removed_take_over(brc_store *store, brc_error *err)
{
    int is_old, is_there;
    sqlite3_stmt *st;
    BRC_TRY(brc_schema_has(store, "hole", &is_old, err));
    if (!is_old) /* another process has done this already */
        return BRC_OK;
    BRC_TRY(brc_stmt(store, "SELECT 1 FROM sqlite_schema WHERE name='removed'", &st, err));
    BRC_TRY(brc_ask_any(store, st, &is_there, err));
    if (!is_there)
        BRC_TRY(brc_schema_add(store, "removed", err));
    BRC_TRY(add_all(store,
                    "INSERT OR IGNORE INTO removed(" REMOVED_COLUMNS ", checksum)"
                    " SELECT 0, h.seq, '', h.bytes, length(b.data), 1, ?1, 0, row_sum('removed', 0,"
                    " h.seq, '', h.bytes, length(b.data), 1, ?1, 0) FROM hole h JOIN blob b"
                    " ON b.seq=h.seq WHERE h.checksum IS row_sum('hole', h.seq, h.bytes)",
                    err));
    BRC_TRY(take_over_places(store, err));
    return brc_exec(store, "DROP TABLE hole", err);
}
