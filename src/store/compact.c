/* What removed objects leave: holes in rows of stored bytes, free pages, and traces in the file. */
#include <stdlib.h>
#include <string.h>

#include "backend.h"
#include "collect.h"

/* ---- rows with holes -------------------------------- */

int brc_holes_last(brc_store *store, int64_t *last, brc_error *err)
{
    sqlite3_stmt *st;
    BRC_TRY(brc_stmt(store, "SELECT coalesce(max(seq), 0) FROM hole", &st, err));
    return brc_ask_number(store, st, last, err);
}

int brc_holes_page(brc_store *store, int64_t after, int64_t last, int64_t *out, size_t cap,
                   size_t *n, brc_error *err)
{
    int rc;
    sqlite3_stmt *st;
    *n = 0;
    BRC_TRY(brc_stmt(store,
                     "SELECT h.seq FROM hole h JOIN blob b ON b.seq=h.seq WHERE h.seq>?1"
                     " AND h.seq<=?3 AND 2*h.bytes>=length(b.data) ORDER BY h.seq LIMIT ?2",
                     &st, err));
    sqlite3_bind_int64(st, 1, after);
    sqlite3_bind_int64(st, 2, (int64_t)cap);
    sqlite3_bind_int64(st, 3, last);
    while ((rc = brc_step(store, st, err)) > 0)
        out[(*n)++] = sqlite3_column_int64(st, 0);
    return rc;
}

/* What is not a hole there must be just these objects' bytes. */
static int row_is_theirs(brc_store *store, int64_t seq, brc_object *objects, size_t n, int *theirs,
                         brc_error *err)
{
    sqlite3_stmt *st;
    int64_t left;
    uint64_t sum = 0;
    *theirs = 0;
    for (size_t i = 0; i < n; i++) {
        brc_object *one = &objects[i];
        BRC_TRY(brc_objects_find(store, &one, 1, err));
        if (!one->found || one->backend != 0 || one->place != seq)
            return BRC_OK;
        sum += one->stored;
    }
    BRC_TRY(brc_stmt(store,
                     "SELECT length(b.data)-h.bytes FROM blob b JOIN hole h ON h.seq=b.seq"
                     " WHERE b.seq=?1 AND h.checksum IS row_sum('hole', h.seq, h.bytes)",
                     &st, err));
    sqlite3_bind_int64(st, 1, seq);
    BRC_TRY(brc_ask_number(store, st, &left, err));
    *theirs = left > 0 && (uint64_t)left == sum;
    return BRC_OK;
}

static int move_object(brc_store *store, const brc_object *o, brc_buf *bytes, brc_error *err)
{
    brc_stored at, *put = &at;
    bytes->len = 0;
    BRC_TRY(brc_buf_reserve(bytes, (size_t)o->stored + 1, err));
    BRC_TRY(brc_object_fetch(store, o, bytes->data, err));
    brc_object_ask(o, &at);
    at.data = bytes->data;
    BRC_TRY(brc_inline_backend.put(NULL, store, 1, &put, err));
    return brc_object_replace(store, o, &at, err);
}

/* All of it is a hole: what a bulk write put ahead of its objects and has not come to. If it goes
 * on, it looks, and puts them again. */
static int drop_bare_row(brc_store *store, int64_t seq, int *dropped, brc_error *err)
{
    sqlite3_stmt *st;
    BRC_TRY(brc_stmt(store,
                     "SELECT 1 FROM blob b JOIN hole h ON h.seq=b.seq WHERE b.seq=?1 AND"
                     " h.bytes=length(b.data) AND h.checksum IS row_sum('hole', h.seq, h.bytes)",
                     &st, err));
    sqlite3_bind_int64(st, 1, seq);
    BRC_TRY(brc_ask_any(store, st, dropped, err));
    if (!*dropped)
        return BRC_OK;
    BRC_TRY(brc_blob_drop(store, seq, err));
    BRC_TRY(brc_stmt(store, "DELETE FROM hole WHERE seq=?1", &st, err));
    sqlite3_bind_int64(st, 1, seq);
    return brc_run(store, st, err);
}

int brc_row_compact(brc_store *store, int64_t seq, const brc_oid *ids, size_t n, int *moved,
                    brc_error *err)
{
    void *p;
    brc_buf bytes = BRC_BUF_INIT;
    BRC_TRY(brc_new_array(&p, n + 1, sizeof(brc_object), err));
    brc_object *objects = p;
    for (size_t i = 0; i < n; i++)
        objects[i].id = ids[i];
    int rc = n > 0 ? row_is_theirs(store, seq, objects, n, moved, err)
                   : drop_bare_row(store, seq, moved, err);
    for (size_t i = 0; i < n && rc == BRC_OK && *moved; i++)
        rc = move_object(store, &objects[i], &bytes, err);
    brc_buf_dispose(&bytes);
    free(p);
    return rc;
}

/* ---- free pages -------------------------------- */

static int free_pages(brc_store *store, int64_t *n, brc_error *err)
{
    sqlite3_stmt *st;
    BRC_TRY(brc_stmt(store, "PRAGMA freelist_count", &st, err));
    return brc_ask_number(store, st, n, err);
}

/* Each step of the statement frees one page. */
static int vacuum_some(brc_store *store, int pages, brc_error *err)
{
    int rc = 1;
    sqlite3_stmt *st;
    BRC_TRY(brc_stmt(store, "PRAGMA incremental_vacuum(128)", &st, err));
    _Static_assert(BRC_VACUUM_PAGES == 128, "as in the statement");
    for (int i = 0; i < pages && rc > 0; i++)
        rc = brc_step(store, st, err);
    sqlite3_reset(st);
    return rc < 0 ? rc : BRC_OK;
}

int brc_vacuum_step(brc_store *store, int pages, int64_t *left, brc_error *err)
{
    int64_t before;
    BRC_TRY(free_pages(store, &before, err));
    *left = 0;
    if (before == 0)
        return BRC_OK;
    BRC_TRY(brc_store_begin(store, err));
    int rc = vacuum_some(store, pages, err);
    if (rc == BRC_OK)
        rc = free_pages(store, left, err);
    int end = brc_store_end(store, rc == BRC_OK, rc == BRC_OK ? err : NULL);
    rc = rc < 0 ? rc : end;
    if (*left >= before) /* a file without the pointers for it */
        *left = 0;
    return rc;
}

/* SQLite cuts the file in a transaction that has given back a page. */
static int cut_tail(brc_store *store, brc_error *err)
{
    BRC_TRY(brc_exec(store,
                     "INSERT INTO meta(key, value, checksum) VALUES ('', zeroblob(65536), 0);"
                     "DELETE FROM meta WHERE key=''",
                     err));
    return vacuum_some(store, BRC_VACUUM_PAGES, err);
}

int brc_tail_cut(brc_store *store, brc_error *err)
{
    BRC_TRY(brc_store_begin(store, err));
    const int has = brc_vfs_has_tail(store->vfs);
    int rc = has ? cut_tail(store, err) : BRC_OK;
    int end = brc_store_end(store, has && rc == BRC_OK, rc == BRC_OK ? err : NULL);
    return rc < 0 ? rc : end;
}

int brc_store_file_bytes(brc_store *store, uint64_t *out, brc_error *err)
{
    sqlite3_stmt *st;
    int64_t n;
    BRC_TRY(brc_stmt(store, "PRAGMA page_count", &st, err));
    BRC_TRY(brc_ask_number(store, st, &n, err));
    *out = (uint64_t)n * BRC_PAGE_SIZE;
    return BRC_OK;
}

/* ---- traces -------------------------------- */

void brc_log_fold_early(brc_store *store, int is_early)
{
    store->folds_early = is_early;
}

int brc_log_fold(brc_store *store, int64_t *busy, brc_error *err)
{
    sqlite3_stmt *st;
    *busy = 0;
    BRC_TRY(brc_store_check_process(store, err));
    if (!brc_vfs_in_wal(store->vfs))
        return BRC_OK;
    brc_reader_close(store);
    BRC_TRY(brc_stmt(store, "PRAGMA wal_checkpoint(TRUNCATE)", &st, err));
    return brc_ask_number(store, st, busy, err);
}

/* Deleted cells are overwritten as they go (connect.c), and free pages have left the file: what is
 * left is the log, with the pages as they were. */
int brc_expunge(brc_store *store, brc_error *err)
{
    int64_t busy;
    BRC_TRY(brc_log_fold(store, &busy, err));
    return busy == 0 ? BRC_OK
                     : brc_fail(err, BRC_EBUSY,
                                "%s: what was removed is still in its -wal, because another "
                                "process is reading: run 'gc --expunge' again when it is done",
                                store->path);
}
