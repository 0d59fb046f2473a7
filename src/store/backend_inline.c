/*
 * The backend "inline": stored bytes in rows of table blob. A place is a row's number.
 *
 * SQLite fills pages row by row: a row of a few KiB wastes up to its own size. So small objects
 * that a transaction adds share rows: `row` collects them, and is written when it is full and
 * before the transaction ends. Its number is known from the start.
 */
#include <string.h>

#include "backend.h"

/* Bytes of a row that is full: with BRC_SMALL_MOST, what a row wastes is at most 6 % of it
 * (docs/decisions/0014-format-2.md). */
#define ROW_FULL ((size_t)256 << 10)

/* A claim beyond this is compared with the bytes that are there before memory is
 * reserved for it; below it, the search for the blob would cost more than the memory. */
#define CLAIM_MAX ((uint64_t)1 << 20)

int brc_inline_missing(brc_store *store, const brc_oid *id, brc_error *err)
{
    char hex[65];
    return brc_fail(err, BRC_ECORRUPT, "%s is damaged: the bytes of object %s are not there",
                    store->path, brc_oid_format(hex, id));
}

/* They may have been moved since they were looked up. */
static int inline_moved(brc_store *store, const brc_oid *id, brc_error *err)
{
    (void)brc_inline_missing(store, id, err);
    if (err != NULL)
        err->code = BRC_ESTALE;
    return BRC_ESTALE;
}

/* Whether a row of so many bytes holds them. */
static int fits_row(uint64_t offset, uint64_t len, uint64_t there)
{
    return offset <= there && len <= there - offset;
}

int brc_inline_check_claim(brc_store *store, const brc_object *o, brc_error *err)
{
    int64_t there;
    sqlite3_stmt *st;
    if (o->stored <= CLAIM_MAX)
        return BRC_OK;
    BRC_TRY(brc_stmt(store, "SELECT length(data) FROM blob WHERE seq=?1", &st, err));
    sqlite3_bind_int64(st, 1, o->place);
    BRC_TRY(brc_ask_number(store, st, &there, err));
    return fits_row(o->offset, o->stored, (uint64_t)there)
               ? BRC_OK
               : brc_inline_missing(store, &o->id, err);
}

/* ---- fetching -------------------------------- */

/* Opens the blob row; it stays open from one fetch to the next. */
static int blob_reader_open(brc_store *store, const brc_stored *s, brc_error *err)
{
    int rc = SQLITE_ERROR;
    if (store->reader != NULL)
        rc = sqlite3_blob_reopen(store->reader, s->number);
    if (rc != SQLITE_OK) {
        brc_reader_close(store);
        rc = sqlite3_blob_open(store->db, "main", "blob", "data", s->number, 0, &store->reader);
    }
    if (rc == SQLITE_OK)
        return BRC_OK;
    brc_reader_close(store);
    return (rc & 0xff) == SQLITE_ERROR ? inline_moved(store, &s->id, err)
                                       : brc_fail_db(store, rc, "read it", err);
}

static int inline_fetch_one(brc_store *store, const brc_stored *s, brc_error *err)
{
    if (store->row.seq != 0 && s->number == store->row.seq) { /* not written yet */
        if (!fits_row(s->offset, s->len, store->row.bytes.len))
            return inline_moved(store, &s->id, err);
        if (s->len > 0)
            memcpy(s->into, store->row.bytes.data + s->offset, (size_t)s->len);
        return BRC_OK;
    }
    BRC_TRY(brc_read_resume(store, err));
    BRC_TRY(blob_reader_open(store, s, err));
    if (!fits_row(s->offset, s->len, (uint64_t)sqlite3_blob_bytes(store->reader)))
        return inline_moved(store, &s->id, err);
    int rc = sqlite3_blob_read(store->reader, s->into, (int)s->len, (int)s->offset);
    return rc == SQLITE_OK ? BRC_OK : brc_fail_db(store, rc, "read it", err);
}

static int inline_fetch(void *ctx, void *state, size_t n, brc_stored *const *items, brc_error *err)
{
    brc_store *store = state;
    int result = BRC_OK;
    (void)ctx;
    for (size_t i = 0; i < n; i++) {
        items[i]->status = inline_fetch_one(store, items[i], result == BRC_OK ? err : NULL);
        if (result == BRC_OK)
            result = items[i]->status;
    }
    /* Outside a transaction an open blob would keep the file locked. */
    if (store->read_depth == 0 && store->write_depth == 0)
        brc_reader_close(store);
    return result;
}

/* ---- putting -------------------------------- */

static int next_seq(brc_store *store, int64_t *seq, brc_error *err)
{
    sqlite3_stmt *st;
    if (store->last_seq == 0) {
        BRC_TRY(brc_stmt(store, "SELECT max(seq) FROM blob", &st, err));
        BRC_TRY(brc_ask_number(store, st, &store->last_seq, err));
    }
    if (store->last_seq < 0 || store->last_seq >= INT64_MAX - 1)
        return brc_fail(err, BRC_ECORRUPT, "%s is damaged: its numbers of blobs are used up",
                        store->path);
    *seq = ++store->last_seq;
    return BRC_OK;
}

static int blob_insert(brc_store *store, int64_t seq, const void *stored, uint64_t len,
                       brc_error *err)
{
    sqlite3_stmt *st;
    BRC_TRY(brc_stmt(store, "INSERT INTO blob(seq, data) VALUES (?1, ?2)", &st, err));
    sqlite3_bind_int64(st, 1, seq);
    sqlite3_bind_blob64(st, 2, len > 0 ? stored : "", len, SQLITE_STATIC);
    return brc_run(store, st, err);
}

static int inline_flush(void *ctx, void *state, brc_error *err)
{
    brc_store *store = state;
    (void)ctx;
    if (store->row.seq == 0)
        return BRC_OK;
    BRC_TRY(blob_insert(store, store->row.seq, store->row.bytes.data, store->row.bytes.len, err));
    store->row.seq = 0;
    store->row.bytes.len = 0;
    return BRC_OK;
}

void brc_row_forget(brc_store *store)
{
    store->row.seq = store->last_seq = 0;
    store->totals_dropped = 0;
    store->gc.is_read = 0;
    store->row.bytes.len = 0;
    store->left.n = 0;
}

int brc_rows_settle(brc_store *store, brc_error *err)
{
    BRC_TRY(inline_flush(NULL, store, err));
    return brc_rows_leave(store, err);
}

static int row_add(brc_store *store, brc_stored *s, brc_error *err)
{
    if (store->row.bytes.len >= ROW_FULL)
        BRC_TRY(inline_flush(NULL, store, err));
    if (store->row.seq == 0)
        BRC_TRY(next_seq(store, &store->row.seq, err));
    s->number = store->row.seq;
    s->offset = store->row.bytes.len;
    return s->len > 0 ? brc_buf_append(&store->row.bytes, s->data, (size_t)s->len, err) : BRC_OK;
}

static int inline_put(void *ctx, void *state, size_t n, brc_stored *const *items, brc_error *err)
{
    brc_store *store = state;
    (void)ctx;
    for (size_t i = 0; i < n; i++) {
        brc_stored *s = items[i];
        if (s->len <= BRC_SMALL_MOST) {
            BRC_TRY(row_add(store, s, err));
            continue;
        }
        s->offset = 0;
        BRC_TRY(next_seq(store, &s->number, err));
        BRC_TRY(blob_insert(store, s->number, s->data, s->len, err));
    }
    return BRC_OK;
}

/* ---- dropping -------------------------------- */

/* Bytes that share a row stay there, unused, as long as an object has others in it: rows do not
 * change. */
static int inline_drop_one(brc_store *store, const brc_stored *s, brc_error *err)
{
    int is_there;
    sqlite3_stmt *st;
    if (s->len <= BRC_SMALL_MOST)
        return brc_row_left(store, s->number, s->len, err);
    BRC_TRY(brc_stmt(store, "SELECT 1 FROM blob WHERE seq=?1 AND length(data)=?2", &st, err));
    sqlite3_bind_int64(st, 1, s->number);
    sqlite3_bind_int64(st, 2, (int64_t)s->len);
    BRC_TRY(brc_ask_any(store, st, &is_there, err));
    return is_there ? brc_blob_drop(store, s->number, err) : BRC_OK;
}

static int inline_drop(void *ctx, void *state, size_t n, brc_stored *const *items, brc_error *err)
{
    (void)ctx;
    for (size_t i = 0; i < n; i++)
        BRC_TRY(items[i]->status = inline_drop_one(state, items[i], err));
    return BRC_OK;
}

/* Its state is the store, which opens and closes it; it has no configuration. */
const brc_backend brc_inline_backend = {
    .size = sizeof(brc_backend),
    .name = BRC_INLINE,
    .fetch = inline_fetch,
    .put = inline_put,
    .flush = inline_flush,
    .drop = inline_drop,
};
