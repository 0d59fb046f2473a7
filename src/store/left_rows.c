/*
 * Rows of stored bytes that objects have left: an object that is encoded again gets new bytes, and
 * the old ones stay in the row that it shared. Table hole counts them, row by row. When nothing but
 * holes is left of a row it goes, in the transaction in which the last object leaves it. So nobody
 * has to search the index for those that are still there: objects have no index by place.
 *
 * A bulk write stores the bytes of small objects before the rows that name them (write_ahead.c):
 * until then they count as left, but their row stays, even if it is all holes.
 */
#include <stdlib.h>

#include "db.h"

#define HOLE_SUM "row_sum('hole', ?1, ?2)"

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

int brc_row_left(brc_store *store, int64_t seq, uint64_t bytes, brc_error *err)
{
    return left_note(store, seq, bytes, 0, err);
}

int brc_row_ahead(brc_store *store, int64_t seq, int64_t bytes, brc_error *err)
{
    const uint64_t less = bytes < 0 ? 0 - (uint64_t)bytes : 0;
    if (bytes > 0)
        store->inserted_bytes += (uint64_t)bytes;
    else /* counted when they were put */
        store->inserted_bytes -= less < store->inserted_bytes ? less : store->inserted_bytes;
    return left_note(store, seq, 0, bytes, err);
}

static int left_order(const void *a, const void *b)
{
    const brc_left_row *x = a, *y = b;
    return (x->seq > y->seq) - (x->seq < y->seq);
}

/* Sorted, each once. */
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

/* How long the row is (0: it is not there), and how much of it was left before. */
static int hole_get(brc_store *store, int64_t seq, uint64_t *length, uint64_t *before,
                    brc_error *err)
{
    sqlite3_stmt *st;
    *length = *before = 0;
    BRC_TRY(brc_stmt(store,
                     "SELECT length(b.data), coalesce(h.bytes, 0), h.checksum IS NULL OR h.checksum"
                     " IS row_sum('hole', h.seq, h.bytes) FROM blob b LEFT JOIN hole h"
                     " ON h.seq=b.seq WHERE b.seq=?1",
                     &st, err));
    sqlite3_bind_int64(st, 1, seq);
    int rc = brc_step(store, st, err);
    if (rc <= 0)
        return rc;
    *length = (uint64_t)sqlite3_column_int64(st, 0);
    *before = (uint64_t)sqlite3_column_int64(st, 1);
    rc = brc_row_check(store, st, 2, "a row that objects have left", err);
    sqlite3_reset(st);
    return rc;
}

static int hole_run(brc_store *store, const char *sql, int64_t seq, uint64_t bytes, brc_error *err)
{
    sqlite3_stmt *st;
    BRC_TRY(brc_stmt(store, sql, &st, err));
    sqlite3_bind_int64(st, 1, seq);
    if (sqlite3_bind_parameter_count(st) > 1)
        sqlite3_bind_int64(st, 2, (int64_t)bytes);
    return brc_run(store, st, err);
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
    uint64_t length, before;
    BRC_TRY(hole_get(store, seq, &length, &before, err));
    *is_there = before <= length && before >= bytes;
    return BRC_OK;
}

static int hole_put(brc_store *store, int64_t seq, uint64_t bytes, brc_error *err)
{
    return hole_run(store,
                    "INSERT OR REPLACE INTO hole(seq, bytes, checksum)"
                    " VALUES (?1, ?2, " HOLE_SUM ")",
                    seq, bytes, err);
}

/* `holes`: what is left of it already, and has no object for other reasons. */
static int row_goes_ahead(brc_store *store, const brc_left_row *row, uint64_t length,
                          uint64_t holes, brc_error *err)
{
    const int64_t after = (int64_t)holes + row->ahead;
    if (holes > length || after < 0 || (uint64_t)after > length)
        return brc_fail(err, BRC_ECORRUPT,
                        "%s is damaged: blob %lld is not as long as what was put into it; run "
                        "'breccia fsck'",
                        store->path, (long long)row->seq);
    if (after > 0)
        return hole_put(store, row->seq, (uint64_t)after, err);
    return hole_run(store, "DELETE FROM hole WHERE seq=?1", row->seq, 0, err);
}

/* More holes than bytes: objects of a damaged file lay in the same bytes. Then the row stays. */
static int leave_row(brc_store *store, const brc_left_row *row, brc_error *err)
{
    uint64_t length, before;
    BRC_TRY(hole_get(store, row->seq, &length, &before, err));
    if (row->ahead != 0)
        return row_goes_ahead(store, row, length, before + row->bytes, err);
    if (length == 0 || row->bytes == 0 || before > length || row->bytes > length - before)
        return BRC_OK;
    if (before + row->bytes < length)
        return hole_put(store, row->seq, before + row->bytes, err);
    BRC_TRY(brc_blob_drop(store, row->seq, err));
    return before == 0 ? BRC_OK
                       : hole_run(store, "DELETE FROM hole WHERE seq=?1", row->seq, 0, err);
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
