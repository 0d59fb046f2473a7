/*
 * The operation log: a row for each change of a ref, in the same transaction. What a transaction
 * changes is one operation, so its later rows name its first one. To undo is an operation of its
 * own, whose rows say what they take back; no row ever changes but the one that is being written.
 */
#include <stdlib.h>
#include <string.h>

#include "collect.h"
#include "db.h"

/* The first row of the transaction that is open, 0 where it has none yet. */
static int64_t operation_first(const brc_store *store)
{
    return store->operation.transaction == store->writes + store->undone + 1
               ? store->operation.first
               : 0;
}

static void bind_number_or_null(sqlite3_stmt *st, int column, int64_t number)
{
    if (number != 0)
        sqlite3_bind_int64(st, column, number);
    else
        sqlite3_bind_null(st, column);
}

int brc_oplog_add(brc_store *store, const char *op, const char *name, const brc_oid *from,
                  const brc_oid *to, int64_t time_us, brc_error *err)
{
    sqlite3_stmt *st;
    const int64_t first = operation_first(store);
    const int64_t undoes = store->operation.undoes, restores = store->operation.restores;
    if ((undoes != 0 || restores != 0) && strcmp(op, "switch") != 0)
        op = undoes != 0 ? "undo" : "redo";
    BRC_TRY(brc_stmt(store,
                     "INSERT INTO oplog(time_us, op, name, old, new, first, undoes, restores,"
                     " checksum) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, 0)",
                     &st, err));
    sqlite3_bind_int64(st, 1, time_us);
    sqlite3_bind_text(st, 2, op, -1, SQLITE_STATIC);
    sqlite3_bind_text(st, 3, name, -1, SQLITE_STATIC);
    brc_bind_id(store, st, 4, from);
    brc_bind_id(store, st, 5, to);
    bind_number_or_null(st, 6, first);
    bind_number_or_null(st, 7, undoes);
    bind_number_or_null(st, 8, restores);
    BRC_TRY(brc_run(store, st, err));
    if (first == 0) {
        store->operation.transaction = store->writes + store->undone + 1;
        store->operation.first = sqlite3_last_insert_rowid(store->db);
    }
    BRC_TRY(brc_stmt(store,
                     "UPDATE oplog SET checksum=" BRC_OPLOG_SUM " WHERE seq=last_insert_rowid()",
                     &st, err));
    return brc_run(store, st, err);
}

int brc_oplog_switch(brc_store *store, const char *from, const char *to, int64_t time_us,
                     brc_error *err)
{
    BRC_TRY(brc_oplog_add(store, "switch", from, NULL, NULL, time_us, err));
    return brc_oplog_add(store, "switch", to, NULL, NULL, time_us, err);
}

void brc_oplog_takes_back(brc_store *store, int64_t undoes, int64_t restores)
{
    store->operation.undoes = undoes;
    store->operation.restores = restores;
}

int brc_oplog_keeps(brc_store *store, int64_t draft, brc_error *err)
{
    sqlite3_stmt *st;
    BRC_TRY(brc_stmt(store,
                     "UPDATE oplog SET draft=?1, checksum=row_sum('oplog', seq, time_us, op, name,"
                     " old, new, first, undoes, restores, ?1)"
                     " WHERE seq=(SELECT max(seq) FROM oplog)",
                     &st, err));
    sqlite3_bind_int64(st, 1, draft);
    return brc_run(store, st, err);
}

/* ---- reading -------------------------------- */

void brc_oplog_rows_free(brc_oplog_row *rows, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        free(rows[i].op);
        free(rows[i].name);
    }
    free(rows);
}

static int oplog_id(brc_store *store, sqlite3_stmt *st, int column, int *has, brc_oid *out,
                    brc_error *err)
{
    *has = sqlite3_column_type(st, column) != SQLITE_NULL;
    return *has ? brc_column_id(store, st, column, out, err) : BRC_OK;
}

static int oplog_read(brc_store *store, sqlite3_stmt *st, brc_oplog_row *out, brc_error *err)
{
    const char *op = (const char *)sqlite3_column_text(st, 2);
    const char *name = (const char *)sqlite3_column_text(st, 3);
    BRC_TRY(brc_dup(&out->op, op != NULL ? op : "", err));
    BRC_TRY(brc_dup(&out->name, name != NULL ? name : "", err));
    BRC_TRY(brc_row_check(store, st, 10, "the operation log", err));
    out->seq = sqlite3_column_int64(st, 0);
    out->time_us = sqlite3_column_int64(st, 1);
    out->first = sqlite3_column_int64(st, 6);
    if (out->first == 0)
        out->first = out->seq;
    out->undoes = sqlite3_column_int64(st, 7);
    out->restores = sqlite3_column_int64(st, 8);
    out->draft = sqlite3_column_int64(st, 9);
    BRC_TRY(oplog_id(store, st, 4, &out->has_old, &out->from, err));
    return oplog_id(store, st, 5, &out->has_new, &out->to, err);
}

/* The rows that a statement gives, while they are of the operation `first` (0: of any). */
static int oplog_rows(brc_store *store, sqlite3_stmt *st, int64_t first, brc_oplog_row **out,
                      size_t *n, brc_error *err)
{
    void *rows = NULL;
    size_t count = 0, cap = 0;
    int rc;
    while ((rc = brc_step(store, st, err)) > 0) {
        BRC_GO(brc_grow_array(&rows, &cap, count + 1, sizeof(brc_oplog_row), err));
        brc_oplog_row *row = (brc_oplog_row *)rows + count;
        memset(row, 0, sizeof(*row));
        count++;
        BRC_GO(oplog_read(store, st, row, err));
        if (first != 0 && row->first != first) { /* it is another's */
            brc_oplog_row *all = rows;
            free(all[count - 1].op);
            free(all[count - 1].name);
            count--;
            break;
        }
    }
    rc = rc < 0 ? rc : BRC_OK;
done:
    sqlite3_reset(st);
    if (rc < 0) {
        brc_oplog_rows_free(rows, count);
        return rc;
    }
    *out = rows;
    *n = count;
    return BRC_OK;
}

#define OPLOG_COLUMNS \
    "seq, time_us, op, name, old, new, first, undoes, restores, draft," \
    " checksum IS " BRC_OPLOG_SUM

int brc_oplog_page(brc_store *store, int64_t before, size_t most, brc_oplog_row **out, size_t *n,
                   brc_error *err)
{
    sqlite3_stmt *st;
    *out = NULL;
    *n = 0;
    BRC_TRY(brc_stmt(store,
                     "SELECT " OPLOG_COLUMNS " FROM oplog WHERE seq<?1 ORDER BY seq DESC LIMIT ?2",
                     &st, err));
    sqlite3_bind_int64(st, 1, before != 0 ? before : INT64_MAX);
    sqlite3_bind_int64(st, 2, (int64_t)most);
    return oplog_rows(store, st, 0, out, n, err);
}

int brc_oplog_operation(brc_store *store, int64_t first, brc_oplog_row **out, size_t *n,
                        brc_error *err)
{
    sqlite3_stmt *st;
    *out = NULL;
    *n = 0;
    BRC_TRY(brc_stmt(store, "SELECT " OPLOG_COLUMNS " FROM oplog WHERE seq>=?1 ORDER BY seq", &st,
                     err));
    sqlite3_bind_int64(st, 1, first);
    return oplog_rows(store, st, first, out, n, err);
}

int brc_oplog_last_of(brc_store *store, const char *name, int64_t operation, brc_oplog_row **out,
                      size_t *n, brc_error *err)
{
    sqlite3_stmt *st;
    *out = NULL;
    *n = 0;
    BRC_TRY(brc_stmt(store,
                     "SELECT " OPLOG_COLUMNS " FROM oplog WHERE name=?1 AND (coalesce(first,seq)=?2"
                     " OR undoes=?2 OR restores IN (SELECT coalesce(first,seq) FROM oplog"
                     " WHERE undoes=?2)) ORDER BY seq DESC LIMIT 1",
                     &st, err));
    sqlite3_bind_text(st, 1, name, -1, SQLITE_STATIC);
    sqlite3_bind_int64(st, 2, operation);
    return oplog_rows(store, st, 0, out, n, err);
}

/* ---- leaving no trace -------------------------------- */

typedef struct log_trace {
    brc_store *store;
    int64_t since_us, last; /* rows of before, and up to that number, are of no more use */
    int64_t newest;         /* the row that stays, for its number                        */
    int64_t at, first, end; /* how far it has come; the operation there, and its end     */
} log_trace;

/* All rows of the operation, but the newest of the log: that one becomes one that changes
 * nothing. */
static int drop_operation(const log_trace *t, brc_error *err)
{
    sqlite3_stmt *st;
    BRC_TRY(brc_stmt(t->store,
                     "DELETE FROM oplog WHERE seq BETWEEN ?1 AND ?2 AND seq<>?3"
                     " AND coalesce(first, seq)=?1",
                     &st, err));
    sqlite3_bind_int64(st, 1, t->first);
    sqlite3_bind_int64(st, 2, t->end);
    sqlite3_bind_int64(st, 3, t->newest);
    BRC_TRY(brc_run(t->store, st, err));
    if (t->end != t->newest)
        return BRC_OK;
    BRC_TRY(brc_stmt(t->store,
                     "UPDATE oplog SET op='reset', name=r.name, old=r.target, new=r.target,"
                     " first=NULL, undoes=NULL, restores=NULL, draft=NULL,"
                     " checksum=row_sum('oplog', seq, time_us, 'reset', r.name, r.target,"
                     " r.target, NULL, NULL, NULL, NULL) FROM ref r WHERE oplog.seq=?1"
                     " AND r.name='heads/' || (SELECT value FROM meta WHERE key='head')",
                     &st, err));
    sqlite3_bind_int64(st, 1, t->newest);
    return brc_run(t->store, st, err);
}

static int drop_message(const log_trace *t, int64_t seq, brc_error *err)
{
    sqlite3_stmt *st;
    BRC_TRY(brc_stmt(t->store, "DELETE FROM meta WHERE key='config.undo.message.' || ?1", &st,
                     err));
    sqlite3_bind_int64(st, 1, seq);
    return brc_run(t->store, st, err);
}

static int trace_row(log_trace *t, const brc_oplog_row *row, brc_error *err)
{
    int any = 1;
    sqlite3_stmt *st;
    if (row->first != t->first) {
        t->first = row->first;
        t->end = row->seq;
    }
    t->at = row->seq;
    if (row->seq > t->last || row->time_us >= t->since_us)
        return BRC_OK;
    BRC_TRY(drop_message(t, row->seq, err));
    BRC_TRY(brc_stmt(t->store, "SELECT 1 FROM ref WHERE name=?1", &st, err));
    sqlite3_bind_text(st, 1, row->name, -1, SQLITE_STATIC);
    BRC_TRY(brc_ask_any(t->store, st, &any, err));
    return any ? BRC_OK : drop_operation(t, err);
}

static int trace_page(log_trace *t, size_t *n, brc_error *err)
{
    brc_oplog_row *rows;
    BRC_TRY(brc_oplog_page(t->store, t->at, 256, &rows, n, err));
    int rc = BRC_OK;
    for (size_t i = 0; i < *n && rc == BRC_OK; i++)
        rc = trace_row(t, &rows[i], err);
    brc_oplog_rows_free(rows, *n);
    return rc;
}

int brc_oplog_expunge(brc_store *store, int64_t since_us, int64_t least, brc_error *err)
{
    size_t n = 1;
    sqlite3_stmt *st;
    log_trace t = {.store = store, .since_us = since_us};
    BRC_TRY(brc_stmt(store, "SELECT max(seq) FROM oplog", &st, err));
    BRC_TRY(brc_ask_number(store, st, &t.newest, err));
    t.last = t.newest - least;
    while (n > 0) {
        BRC_TRY(brc_store_begin(store, err));
        int rc = trace_page(&t, &n, err);
        int end = brc_store_end(store, rc == BRC_OK, rc == BRC_OK ? err : NULL);
        BRC_TRY(rc < 0 ? rc : end);
    }
    return BRC_OK;
}
