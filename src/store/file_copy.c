/* See file_copy.h. */
#include "file_copy.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "copy_tables.h"
#include "removed.h"

/* The row of meta that a backup has and its source lacks: the counter in the file's header after
 * the last transaction of a backup, and the last row of blob of the last finished one. */
#define BACKUP_KEY "backup"
#define BATCH_BYTES ((int64_t)16 << 20)
#define SLICE_ROWS 8192
/* Settings for the copy: nobody else writes to it, and its transactions may be larger than
 * memory. */
#define SPILLS "PRAGMA cache_spill=ON; PRAGMA cache_size=-65536"

/* ---- the mark -------------------------------- */

/* Writes the row of a backup. Outside of WAL mode every transaction of SQLite raises the counter by
 * one, so the counter shows whether others have written to the file since. `next`: the counter
 * after this transaction. */
static int put_mark(brc_backup_run *b, int64_t last, brc_error *err)
{
    char text[64];
    uint32_t counter;
    BRC_TRY(brc_vfs_counter(b->to->vfs, &counter, err));
    snprintf(text, sizeof(text), "{\"counter\":%lu,\"last\":%lld}",
             (unsigned long)(uint32_t)(counter + 1), (long long)last);
    return brc_meta_put(b->to, BACKUP_KEY, text, strlen(text), 1, err);
}

static int read_mark(brc_backup_run *b, uint32_t *counter, brc_error *err)
{
    unsigned long n = 0;
    long long last = 0;
    brc_buf text = BRC_BUF_INIT;
    int rc = brc_meta_find(b->to, BACKUP_KEY, &text, err);
    const char *form = "{\"counter\":%lu,\"last\":%lld}";
    if (rc > 0 && (sscanf((const char *)text.data, form, &n, &last) != 2 || last < 0))
        rc = brc_fail(err, BRC_ECORRUPT, "%s is damaged: its record of the last backup is not "
                                         "valid",
                      b->to->path);
    brc_buf_dispose(&text);
    *counter = (uint32_t)n;
    b->trusted = last;
    return rc;
}

static int is_unfinished(brc_backup_run *b, int *out, brc_error *err)
{
    brc_buf text = BRC_BUF_INIT;
    int rc = brc_meta_get(b->to, "must-understand", &text, err);
    *out = rc == BRC_OK && strcmp((const char *)text.data, BRC_FEATURE_UNFINISHED) == 0;
    brc_buf_dispose(&text);
    return rc;
}

/* ---- transactions of the copy -------------------------------- */

/* Begins a transaction with the rollback journal, even if the copy asks for WAL mode, and without
 * the other work of an ordinary transaction: the copy must have just the rows of the source. */
static int begin_copy(brc_backup_run *b, brc_error *err)
{
    brc_end_leftover(b->to);
    /* Leaves the setting as it is, so that its page, page 1, comes first into the journal: without
     * page 1 nobody plays back the journal of a killed process. */
    return brc_exec(b->to, "BEGIN IMMEDIATE; PRAGMA user_version=2", err);
}

static int end_copy(brc_backup_run *b, int rc, brc_error *err)
{
    if (rc == BRC_OK)
        rc = brc_exec(b->to, "COMMIT", err);
    if (rc < 0)
        brc_end_leftover(b->to);
    return rc;
}

int brc_backup_make(brc_backup_run *b, brc_error *err)
{
    const uint8_t *secret = brc_store_secret(b->from);
    b->is_new = 1;
    BRC_TRY(brc_removed_there(b->from, err));
    BRC_TRY(begin_copy(b, err));
    int rc = brc_meta_put(b->to, "secret", secret, BRC_SECRET_LEN, 0, err);
    if (rc == BRC_OK)
        rc = put_mark(b, 0, err);
    BRC_TRY(end_copy(b, rc, err));
    memcpy(b->to->secret, secret, BRC_SECRET_LEN);
    return brc_exec(b->to, SPILLS, err);
}

/* ---- an older backup -------------------------------- */

static int has_such(brc_store *store, const char *sql, sqlite3_stmt *keys, int n, int *any,
                   brc_error *err)
{
    sqlite3_stmt *st;
    BRC_TRY(brc_row_bind(store, sql, keys, n, &st, err));
    return brc_ask_any(store, st, any, err);
}

/* Checks that the source has all versions of the copy: it lacks some if it was put back to an
 * earlier state and went on from there. The operation log tells, as far as it goes back. */
static int check_versions(brc_backup_run *b, brc_error *err)
{
    int64_t first;
    int any = 1;
    sqlite3_stmt *st, *newest;
    BRC_TRY(brc_stmt(b->from, "SELECT coalesce(min(seq), 0) FROM oplog", &st, err));
    BRC_TRY(brc_ask_number(b->from, st, &first, err));
    BRC_TRY(brc_stmt(b->to,
                     "SELECT seq, checksum FROM oplog WHERE seq=(SELECT max(seq) FROM oplog)",
                     &newest, err));
    int rc = brc_step(b->to, newest, err);
    if (rc > 0 && sqlite3_column_int64(newest, 0) >= first)
        rc = has_such(b->from, "SELECT 1 FROM oplog WHERE seq=?1 AND checksum=?2", newest, 2, &any,
                     err);
    sqlite3_reset(newest);
    if (rc >= 0 && !any)
        rc = brc_fail(err, BRC_EEXISTS,
                      "%s has versions that %s lacks, so it was left as it is: name another file",
                      b->to->path, b->from->path);
    return rc < 0 ? rc : BRC_OK;
}

static int judge_copy(brc_backup_run *b, int *is_bare, brc_error *err)
{
    uint32_t marked = 0, counter;
    BRC_TRY(is_unfinished(b, &b->is_new, err));
    int rc = read_mark(b, &marked, err);
    *is_bare = b->is_new && rc == 0; /* the process that made it was killed at once */
    if (rc < 0 || *is_bare)
        return rc;
    if (memcmp(b->to->secret, brc_store_secret(b->from), BRC_SECRET_LEN) != 0)
        return brc_fail(err, BRC_EEXISTS,
                        "%s is another repository, not an earlier backup of %s, so it was left as "
                        "it is: name another file", b->to->path, b->from->path);
    if (rc > 0)
        rc = brc_vfs_counter(b->to->vfs, &counter, err);
    else if (rc == 0)
        counter = ~marked;
    if (rc == BRC_OK && counter != marked)
        rc = brc_fail(err, BRC_EEXISTS,
                      "%s was not made by 'backup', or was changed since, so it was left as it is: "
                      "name another file, or move it away", b->to->path);
    return rc < 0 || b->is_new ? rc : check_versions(b, err);
}

/* Brings the tables of a copy up to date that an earlier build has made. */
static int renew_copy(brc_backup_run *b, brc_error *err)
{
    if (!brc_schema_is_old(b->to))
        return BRC_OK;
    BRC_TRY(begin_copy(b, err));
    int rc = brc_removed_take_over(b->to, err);
    if (rc == BRC_OK)
        rc = put_mark(b, b->trusted, err);
    return end_copy(b, rc, err);
}

int brc_backup_resume(brc_backup_run *b, brc_error *err)
{
    int is_bare = 0;
    BRC_TRY(brc_removed_there(b->from, err));
    BRC_TRY(brc_store_begin_read(b->from, err));
    int rc = brc_store_begin_read(b->to, err);
    if (rc == BRC_OK) {
        rc = judge_copy(b, &is_bare, err);
        brc_store_end_read(b->to);
    }
    brc_store_end_read(b->from);
    b->last = b->trusted;
    if (rc == BRC_OK)
        rc = renew_copy(b, err);
    if (rc == BRC_OK && is_bare)
        return brc_backup_make(b, err);
    if (rc == BRC_OK)
        rc = brc_exec(b->to, SPILLS, err);
    return rc;
}

/* ---- stored bytes -------------------------------- */

static int put_blob(brc_backup_run *b, sqlite3_stmt *row, brc_error *err)
{
    sqlite3_stmt *put;
    BRC_TRY(brc_row_bind(b->to, "INSERT OR REPLACE INTO blob(seq, data) VALUES (?1, ?2)", row, 2,
                         &put, err));
    b->bytes += (uint64_t)sqlite3_column_bytes(row, 1);
    return brc_run(b->to, put, err);
}

/* Marks a row of blob as all free: no object has its bytes until the index is copied. */
static int put_free(brc_backup_run *b, int64_t seq, int64_t bytes, brc_error *err)
{
    const brc_removed row = {
        .place = seq, .bytes = bytes, .total = bytes, .state = BRC_REMOVED_FREE};
    return bytes > 0 ? brc_removed_put(b->to, &row, err) : BRC_OK;
}

/* Stores whether a backup that was stopped has copied the row already. */
static int has_blob(brc_backup_run *b, sqlite3_stmt *row, int *any, brc_error *err)
{
    return has_such(b->to, "SELECT 1 FROM blob WHERE seq=?1 AND data=?2", row, 2, any, err);
}

static int copy_blob(brc_backup_run *b, sqlite3_stmt *row, brc_error *err)
{
    int any;
    const int64_t seq = sqlite3_column_int64(row, 0);
    BRC_TRY(has_blob(b, row, &any, err));
    if (!any) {
        BRC_TRY(put_blob(b, row, err));
        BRC_TRY(put_free(b, seq, sqlite3_column_bytes(row, 1), err));
    }
    b->last = seq;
    return BRC_OK;
}

/* Copies rows after b->last, up to `most` bytes, within a read of the source and a write of the
 * copy. */
static int copy_blobs(brc_backup_run *b, int64_t most, int *more, uint64_t *bytes, brc_error *err)
{
    int rc = BRC_OK;
    sqlite3_stmt *rows;
    *more = 0;
    BRC_TRY(brc_stmt(b->from, "SELECT seq, data FROM blob WHERE seq>?1 ORDER BY seq", &rows, err));
    sqlite3_bind_int64(rows, 1, b->last);
    while (!*more && (rc = brc_step(b->from, rows, err)) > 0) {
        const int64_t len = sqlite3_column_bytes(rows, 1);
        rc = copy_blob(b, rows, err);
        if (rc < 0)
            break;
        *bytes += (uint64_t)len;
        most -= len;
        *more = most <= 0;
    }
    sqlite3_reset(rows);
    return rc < 0 ? rc : BRC_OK;
}

/* ---- the index of a new file, ahead of the last step -------------------------------- */

/* Copies a slice of the index of objects, whose bytes were copied before. The last step finds rows
 * that change meanwhile. */
static int copy_slice(brc_backup_run *b, int *n, brc_error *err)
{
    int rc = BRC_OK;
    sqlite3_stmt *rows;
    *n = 0;
    BRC_TRY(brc_stmt(b->from, "SELECT * FROM object WHERE id>?1 ORDER BY id", &rows, err));
    if (brc_oid_is_zero(&b->slice.after))
        sqlite3_bind_blob(rows, 1, "", 0, SQLITE_STATIC);
    else
        brc_bind_id(b->from, rows, 1, &b->slice.after);
    while (*n < SLICE_ROWS && (rc = brc_step(b->from, rows, err)) > 0) {
        rc = brc_column_id(b->from, rows, 0, &b->slice.after, err);
        if (rc == BRC_OK)
            rc = brc_table_put(b->to, &brc_table_object, rows, err);
        if (rc < 0)
            break;
        ++*n;
    }
    b->objects += (uint64_t)*n;
    sqlite3_reset(rows);
    return rc < 0 ? rc : BRC_OK;
}

static int copy_part(brc_backup_run *b, int *more, uint64_t *bytes, brc_error *err)
{
    int n = 0;
    BRC_TRY(copy_blobs(b, BATCH_BYTES, more, bytes, err));
    if (*more || !b->is_new || b->slice.is_done)
        return put_mark(b, b->trusted, err);
    BRC_TRY(copy_slice(b, &n, err));
    b->slice.is_done = n < SLICE_ROWS;
    *more = !b->slice.is_done;
    return put_mark(b, b->trusted, err);
}

int brc_backup_some(brc_backup_run *b, int *more, uint64_t *bytes, brc_error *err)
{
    *bytes = 0;
    BRC_TRY(brc_store_begin_read(b->from, err));
    int rc = begin_copy(b, err);
    const int is_begun = rc == BRC_OK;
    if (is_begun)
        rc = copy_part(b, more, bytes, err);
    brc_store_end_read(b->from); /* so that the read does not last while the disk works */
    return is_begun ? end_copy(b, rc, err) : rc;
}

/* ---- the last step -------------------------------- */

static int touch(brc_backup_run *b, int64_t seq, brc_error *err)
{
    BRC_TRY(brc_grow_array(&b->touched, &b->touched_cap, b->ntouched + 1, sizeof(int64_t), err));
    ((int64_t *)b->touched)[b->ntouched++] = seq;
    return BRC_OK;
}

/* Returns the row of blob that an object is in; 0: its bytes are not in the file. */
static int64_t place_of(sqlite3_stmt *object)
{
    return object != NULL && sqlite3_column_int64(object, 3) == 0 ? sqlite3_column_int64(object, 4)
                                                                  : 0;
}

/* Notes the row of blob that an object has left, and the row that it is in now if the copy had that
 * row before. */
static int object_differs(void *ctx, sqlite3_stmt *from, sqlite3_stmt *to, brc_error *err)
{
    brc_backup_run *b = ctx;
    const int64_t now = place_of(from), was = place_of(to);
    b->objects += from != NULL;
    if (was != 0)
        BRC_TRY(touch(b, was, err));
    if (now == 0 || now > b->trusted)
        return BRC_OK;
    b->is_other_line = 1;
    return touch(b, now, err);
}

static int removed_differs(void *ctx, sqlite3_stmt *from, sqlite3_stmt *to, brc_error *err)
{
    sqlite3_stmt *row = from != NULL ? from : to;
    return sqlite3_column_int64(row, 0) == 0 ? touch(ctx, sqlite3_column_int64(row, 1), err)
                                             : BRC_OK;
}

static int drop_blob(brc_backup_run *b, int64_t seq, brc_error *err)
{
    sqlite3_stmt *st;
    BRC_TRY(brc_stmt(b->to, "DELETE FROM blob WHERE seq=?1", &st, err));
    sqlite3_bind_int64(st, 1, seq);
    return brc_run(b->to, st, err);
}

static int settle_blob(brc_backup_run *b, int64_t seq, brc_error *err)
{
    int any = 1;
    sqlite3_stmt *row;
    BRC_TRY(brc_stmt(b->from, "SELECT seq, data FROM blob WHERE seq=?1", &row, err));
    sqlite3_bind_int64(row, 1, seq);
    int rc = brc_step(b->from, row, err);
    if (rc == 0)
        return drop_blob(b, seq, err);
    if (rc > 0)
        rc = has_blob(b, row, &any, err);
    if (rc == BRC_OK && !any)
        rc = put_blob(b, row, err);
    sqlite3_reset(row);
    return rc;
}

static int int64_order(const void *x, const void *y)
{
    const int64_t a = *(const int64_t *)x, b = *(const int64_t *)y;
    return (a > b) - (a < b);
}

static int settle_blobs(brc_backup_run *b, brc_error *err)
{
    int64_t *seqs = b->touched;
    if (b->ntouched > 0)
        qsort(seqs, b->ntouched, sizeof(*seqs), int64_order);
    for (size_t i = 0; i < b->ntouched; i++)
        if (i == 0 || seqs[i] != seqs[i - 1])
            BRC_TRY(settle_blob(b, seqs[i], err));
    return BRC_OK;
}

static int bring_rest(brc_backup_run *b, brc_error *err)
{
    int more;
    uint64_t bytes = 0;
    BRC_TRY(copy_blobs(b, INT64_MAX, &more, &bytes, err));
    if (b->trusted > 0) /* if others go on in another row, the last row is emptied */
        BRC_TRY(touch(b, b->trusted, err));
    for (size_t i = 0; brc_backup_tables[i] != NULL; i++) {
        const brc_table *table = brc_backup_tables[i];
        brc_differs_fn differs = table == &brc_table_object    ? object_differs
                                 : table == &brc_table_removed ? removed_differs
                                                               : NULL;
        BRC_TRY(brc_table_sync(b->to, b->from, table, differs, b, err));
    }
    BRC_TRY(settle_blobs(b, err));
    return put_mark(b, b->last, err);
}

int brc_backup_finish(brc_backup_run *b, brc_error *err)
{
    BRC_TRY(brc_store_begin_read(b->from, err));
    int rc = begin_copy(b, err);
    const int is_begun = rc == BRC_OK;
    if (is_begun)
        rc = bring_rest(b, err);
    brc_store_end_read(b->from);
    return is_begun ? end_copy(b, rc, err) : rc;
}

void brc_backup_dispose(brc_backup_run *b)
{
    free(b->touched);
    b->touched = NULL;
    b->ntouched = b->touched_cap = 0;
}
