/* Rows of table boundary: see ref.h. */
#include "ref.h"

#include <stdlib.h>
#include <string.h>

#include "collect.h"
#include "db.h"

/* ==== boundary ================================ */

#define BOUNDARY_WHOLE "checksum IS row_sum('boundary', id, parents, moves)"

/* The most ancestors that can replace a commit's parents. */
#define NEAREST_MOST ((size_t)1 << 20)

static int boundary_row(brc_store *store, sqlite3_stmt *st, brc_boundary *out, brc_error *err)
{
    void *p;
    BRC_TRY(brc_row_check(store, st, 2, "a row that replaces expired commits", err));
    const uint8_t *bytes = sqlite3_column_blob(st, 0);
    const char *moves = (const char *)sqlite3_column_text(st, 1);
    const size_t len = (size_t)sqlite3_column_bytes(st, 0), id_len = store->id_len;
    if (len % id_len != 0 || len / id_len > NEAREST_MOST || moves == NULL)
        return brc_fail(err, BRC_ECORRUPT,
                        "%s: a row that replaces expired commits is damaged; run 'breccia fsck'",
                        store->path);
    BRC_TRY(brc_new_array(&p, len / id_len + 1, sizeof(brc_oid), err));
    brc_oid *parents = p;
    for (size_t i = 0; i < len / id_len; i++) {
        memset(&parents[i], 0, sizeof(parents[i]));
        memcpy(parents[i].bytes, bytes + i * id_len, id_len);
    }
    out->parents = parents;
    out->nparents = len / id_len;
    int rc = brc_dup(&out->moves, moves, err);
    if (rc < 0) {
        free(out->parents);
        out->parents = NULL;
    }
    return rc;
}

int brc_boundary_get(brc_store *store, const brc_oid *id, brc_boundary *out, brc_error *err)
{
    int there;
    sqlite3_stmt *st;
    memset(out, 0, sizeof(*out));
    BRC_TRY(brc_schema_has(store, "boundary", &there, err));
    if (!there)
        return 0;
    BRC_TRY(brc_stmt(store, "SELECT parents, moves, " BOUNDARY_WHOLE " FROM boundary WHERE id=?1",
                     &st, err));
    brc_bind_id(store, st, 1, id);
    int rc = brc_step(store, st, err);
    if (rc > 0) {
        rc = boundary_row(store, st, out, err);
        rc = rc < 0 ? rc : 1;
    }
    sqlite3_reset(st);
    return rc;
}

/* Writes the commit's derived row with the parents that readers of the commit get. */
static int boundary_tell(brc_store *store, const brc_oid *id, const brc_oid *parents, size_t n,
                         brc_error *err)
{
    sqlite3_stmt *st;
    char hex[65];
    brc_buf text = BRC_BUF_INIT;
    int rc = BRC_OK;
    for (size_t i = 0; i < n && rc == BRC_OK; i++)
        rc = brc_buf_printf(&text, err, "%s%s", i > 0 ? " " : "",
                            brc_oid_format(hex, &parents[i]));
    if (rc == BRC_OK)
        rc = brc_buf_terminate(&text, err);
    if (rc == BRC_OK)
        rc = brc_stmt(store, "UPDATE commit_info SET parents=?2 WHERE id=?1", &st, err);
    if (rc == BRC_OK) {
        brc_bind_id(store, st, 1, id);
        sqlite3_bind_text(st, 2, (const char *)text.data, -1, SQLITE_STATIC);
        rc = brc_run(store, st, err);
    }
    brc_buf_dispose(&text);
    return rc;
}

int brc_boundary_put(brc_store *store, const brc_oid *id, const brc_oid *parents, size_t n,
                     const char *moves, brc_error *err)
{
    sqlite3_stmt *st;
    brc_buf ids = BRC_BUF_INIT;
    if (n > NEAREST_MOST)
        return brc_fail(err, BRC_ELIMIT,
                        "%zu commits would replace the expired parents of one commit: keep more "
                        "commits",
                        n);
    BRC_TRY(brc_schema_need(store, "boundary", err));
    int rc = BRC_OK;
    for (size_t i = 0; i < n && rc == BRC_OK; i++)
        rc = brc_buf_append(&ids, parents[i].bytes, store->id_len, err);
    if (rc == BRC_OK)
        rc = brc_stmt(store,
                      "INSERT OR REPLACE INTO boundary(id, parents, moves, checksum)"
                      " VALUES (?1, ?2, ?3, row_sum('boundary', ?1, ?2, ?3))",
                      &st, err);
    if (rc == BRC_OK) {
        brc_bind_id(store, st, 1, id);
        sqlite3_bind_blob64(st, 2, n > 0 ? (const void *)ids.data : "", ids.len, SQLITE_STATIC);
        sqlite3_bind_text(st, 3, moves, -1, SQLITE_STATIC);
        rc = brc_run(store, st, err);
    }
    brc_buf_dispose(&ids);
    return rc < 0 ? rc : boundary_tell(store, id, parents, n, err);
}

int brc_boundary_drop(brc_store *store, const brc_oid *id, brc_error *err)
{
    int there;
    sqlite3_stmt *st;
    BRC_TRY(brc_schema_has(store, "boundary", &there, err));
    if (!there)
        return BRC_OK;
    BRC_TRY(brc_stmt(store, "DELETE FROM boundary WHERE id=?1", &st, err));
    brc_bind_id(store, st, 1, id);
    return brc_run(store, st, err);
}

/* ==== conflict rows ================================ */

/* Rows of table `conflict`: the conflicts that an open merge leaves to the user. */

static void bind_span(sqlite3_stmt *st, int column, brc_span value)
{
    if (value.data == NULL)
        sqlite3_bind_null(st, column);
    else if (value.len == 0)
        sqlite3_bind_blob(st, column, "", 0, SQLITE_STATIC);
    else
        sqlite3_bind_blob64(st, column, value.data, value.len, SQLITE_STATIC);
}

int brc_conflict_put(brc_store *store, int64_t draft, const brc_conflict_row *row, brc_error *err)
{
    sqlite3_stmt *st;
    const brc_span key = {row->key.data != NULL ? row->key.data : (const void *)"", row->key.len};
    BRC_TRY(brc_stmt(store,
                     "INSERT OR REPLACE INTO conflict(draft, path, member, key, base, ours, theirs,"
                     " state, checksum) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8,"
                     " row_sum('conflict', ?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8))",
                     &st, err));
    sqlite3_bind_int64(st, 1, draft);
    sqlite3_bind_text(st, 2, row->path, -1, SQLITE_STATIC);
    sqlite3_bind_text(st, 3, row->member, -1, SQLITE_STATIC);
    bind_span(st, 4, key);
    bind_span(st, 5, row->base);
    bind_span(st, 6, row->ours);
    bind_span(st, 7, row->theirs);
    sqlite3_bind_int(st, 8, row->state);
    return brc_run(store, st, err);
}

/* Returns a column's value; an empty value has data too, only a missing one has none. */
static brc_span span_of(sqlite3_stmt *st, int column)
{
    brc_span out = {NULL, 0};
    if (sqlite3_column_type(st, column) == SQLITE_NULL)
        return out;
    out.data = sqlite3_column_blob(st, column);
    out.len = (size_t)sqlite3_column_bytes(st, column);
    if (out.data == NULL)
        out.data = (const void *)"";
    return out;
}

static int read_conflict(brc_store *store, sqlite3_stmt *st, brc_conflict_row *out, brc_error *err)
{
    BRC_TRY(brc_row_check(store, st, 7, "a conflict of the open merge", err));
    out->path = (const char *)sqlite3_column_text(st, 0);
    out->member = (const char *)sqlite3_column_text(st, 1);
    out->state = sqlite3_column_int(st, 6);
    if (out->path == NULL || out->member == NULL || out->state < 0 || out->state > 3)
        return brc_fail(err, BRC_ECORRUPT,
                        "%s is damaged: a conflict of the open merge has no place; run 'breccia "
                        "fsck'",
                        store->path);
    out->key = span_of(st, 2);
    out->base = span_of(st, 3);
    out->ours = span_of(st, 4);
    out->theirs = span_of(st, 5);
    return BRC_OK;
}

int brc_conflict_each(brc_store *store, int64_t draft, brc_conflict_fn each, void *ctx,
                      brc_error *err)
{
    int rc, there;
    sqlite3_stmt *st;
    brc_conflict_row row;
    BRC_TRY(brc_schema_has(store, "conflict", &there, err));
    if (!there)
        return BRC_OK;
    BRC_TRY(brc_stmt(store,
                     "SELECT path, member, key, base, ours, theirs, state, checksum IS"
                     " row_sum('conflict', draft, path, member, key, base, ours, theirs, state)"
                     " FROM conflict WHERE draft=?1 ORDER BY path, member, key",
                     &st, err));
    sqlite3_bind_int64(st, 1, draft);
    while ((rc = brc_step(store, st, err)) > 0) {
        rc = read_conflict(store, st, &row, err);
        if (rc == BRC_OK)
            rc = each(ctx, &row, err);
        if (rc < 0)
            break;
    }
    sqlite3_reset(st);
    return rc;
}

/* ==== oplog ================================ */

/*
 * The operation log: a row for each change of a ref, in the same transaction. All changes of a
 * transaction are one operation, so its later rows name its first one. An undo is an operation of
 * its own, whose rows name the operation that they take back. A row does not change after its
 * transaction, except that expunging may replace the newest row.
 */

/* Returns the first row of the open transaction, 0 if it has none yet. */
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

/* Reads the statement's rows as long as they belong to the operation `first` (0: to any). */
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
        if (first != 0 && row->first != first) { /* the row belongs to another operation */
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
    int64_t since_us, last; /* rows from before since_us, and up to `last`, may go */
    int64_t newest;         /* this row stays, to keep its number */
    int64_t at, first, end; /* the current row, and the first and last row of its operation */
} log_trace;

/* Deletes all rows of the operation, except the newest of the log, which is replaced by a row that
 * changes nothing. */
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

/* ==== ref ================================ */

/* Refs, and the derived rows of commits. */

#define REF_OK "checksum IS row_sum('ref', name, target, message)"

void brc_ref_rows_free(brc_ref_row *rows, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        free(rows[i].name);
        free(rows[i].message);
    }
    free(rows);
}

static int ref_target(brc_store *store, sqlite3_stmt *st, int column, int *has, brc_oid *target,
                      brc_error *err)
{
    memset(target, 0, sizeof(*target));
    *has = sqlite3_column_type(st, column) != SQLITE_NULL;
    return *has ? brc_column_id(store, st, column, target, err) : BRC_OK;
}

static int ref_find(brc_store *store, const char *name, int *found, int *has_target,
                    brc_oid *target, brc_error *err)
{
    sqlite3_stmt *st;
    *found = *has_target = 0;
    BRC_TRY(brc_stmt(store, "SELECT target, " REF_OK " FROM ref WHERE name=?1", &st, err));
    sqlite3_bind_text(st, 1, name, -1, SQLITE_STATIC);
    int rc = brc_step(store, st, err);
    if (rc <= 0)
        return rc;
    *found = 1;
    rc = brc_row_check(store, st, 1, name, err);
    if (rc == BRC_OK)
        rc = ref_target(store, st, 0, has_target, target, err);
    sqlite3_reset(st);
    return rc;
}

/* Returns the word for a ref in messages: "heads/main" is shown as "branch 'main'". */
static const char *ref_kind(const char *name)
{
    return strncmp(name, "tags/", 5) == 0 ? "tag" : "branch";
}

static const char *ref_short(const char *name)
{
    const char *slash = strchr(name, '/');
    return slash != NULL ? slash + 1 : name;
}

static int ref_no_such(brc_store *store, const char *name, brc_error *err)
{
    return brc_fail(err, BRC_ENOTFOUND, "there is no %s '%s' in %s", ref_kind(name),
                    ref_short(name), store->path);
}

int brc_ref_get(brc_store *store, const char *name, int *has_target, brc_oid *target,
                brc_error *err)
{
    int found;
    BRC_TRY(ref_find(store, name, &found, has_target, target, err));
    return found ? BRC_OK : ref_no_such(store, name, err);
}

static int ref_row_add(brc_store *store, sqlite3_stmt *st, brc_ref_row **rows, size_t *n,
                       size_t *cap, brc_error *err)
{
    void *p = *rows;
    int rc = brc_grow_array(&p, cap, *n + 1, sizeof(**rows), err);
    *rows = p;
    if (rc < 0)
        return rc;
    brc_ref_row *row = &(*rows)[*n];
    memset(row, 0, sizeof(*row));
    const char *name = (const char *)sqlite3_column_text(st, 0);
    const char *message = (const char *)sqlite3_column_text(st, 2);
    BRC_TRY(brc_dup(&row->name, name != NULL ? name : "", err));
    (*n)++;
    BRC_TRY(brc_dup(&row->message, message != NULL ? message : "", err));
    BRC_TRY(brc_row_check(store, st, 3, row->name, err));
    return ref_target(store, st, 1, &row->has_target, &row->target, err);
}

int brc_ref_list(brc_store *store, const char *prefix, brc_ref_row **out, size_t *n, brc_error *err)
{
    sqlite3_stmt *st;
    brc_ref_row *rows = NULL;
    size_t count = 0, cap = 0;
    *out = NULL;
    *n = 0;
    BRC_TRY(brc_stmt(store,
                     "SELECT name, target, message, " REF_OK " FROM ref WHERE name>=?1"
                     " ORDER BY name",
                     &st, err));
    sqlite3_bind_text(st, 1, prefix, -1, SQLITE_STATIC);
    int rc;
    while ((rc = brc_step(store, st, err)) > 0) {
        const char *name = (const char *)sqlite3_column_text(st, 0);
        if (name != NULL && strncmp(name, prefix, strlen(prefix)) != 0) { /* the last one */
            rc = BRC_OK;
            break;
        }
        rc = ref_row_add(store, st, &rows, &count, &cap, err);
        if (rc < 0)
            break;
    }
    sqlite3_reset(st);
    if (rc < 0) {
        brc_ref_rows_free(rows, count);
        return rc;
    }
    *out = rows;
    *n = count;
    return BRC_OK;
}

int brc_ref_put(brc_store *store, const char *name, const brc_oid *target, const char *message,
                const char *op, int check, const brc_oid *expect, int64_t time_us, brc_error *err)
{
    sqlite3_stmt *st;
    int found, has;
    brc_oid old;
    BRC_TRY(ref_find(store, name, &found, &has, &old, err));
    if (check && (has != (expect != NULL) || (has && brc_oid_cmp(&old, expect) != 0)))
        return brc_fail(err, BRC_ESTALE,
                        "%s: %s '%s' has moved since it was read; look again and retry",
                        store->path, ref_kind(name), ref_short(name));
    if (target != NULL)
        BRC_TRY(brc_gc_keep_commit(store, target, err));
    BRC_TRY(brc_stmt(store,
                     "INSERT OR REPLACE INTO ref(name, target, message, checksum)"
                     " VALUES (?1, ?2, ?3, row_sum('ref', ?1, ?2, ?3))",
                     &st, err));
    sqlite3_bind_text(st, 1, name, -1, SQLITE_STATIC);
    brc_bind_id(store, st, 2, target);
    sqlite3_bind_text(st, 3, message, -1, SQLITE_STATIC);
    BRC_TRY(brc_run(store, st, err));
    return brc_oplog_add(store, op, name, has ? &old : NULL, target, time_us, err);
}

int brc_ref_drop(brc_store *store, const char *name, int64_t time_us, brc_error *err)
{
    sqlite3_stmt *st;
    int has;
    brc_oid old;
    BRC_TRY(brc_ref_get(store, name, &has, &old, err));
    BRC_TRY(brc_stmt(store, "DELETE FROM ref WHERE name=?1", &st, err));
    sqlite3_bind_text(st, 1, name, -1, SQLITE_STATIC);
    BRC_TRY(brc_run(store, st, err));
    return brc_oplog_add(store, "delete", name, has ? &old : NULL, NULL, time_us, err);
}

int brc_ref_at(brc_store *store, const char *name, int64_t time_us, brc_oid *target, brc_error *err)
{
    sqlite3_stmt *st;
    int has = 0;
    BRC_TRY(brc_stmt(store,
                     "SELECT new, checksum IS " BRC_OPLOG_SUM " FROM oplog"
                     " WHERE name=?1 AND time_us<=?2 AND op<>'switch'"
                     " ORDER BY time_us DESC, seq DESC LIMIT 1",
                     &st, err));
    sqlite3_bind_text(st, 1, name, -1, SQLITE_STATIC);
    sqlite3_bind_int64(st, 2, time_us);
    int rc = brc_step(store, st, err);
    if (rc < 0)
        return rc;
    if (rc > 0) {
        rc = brc_row_check(store, st, 1, "the operation log", err);
        if (rc == BRC_OK)
            rc = ref_target(store, st, 0, &has, target, err);
    }
    sqlite3_reset(st);
    if (rc < 0)
        return rc;
    return has ? BRC_OK
               : brc_fail(err, BRC_ENOTFOUND,
                          "%s: %s '%s' had no commit at that time: 'oplog' lists when it moved",
                          store->path, ref_kind(name), ref_short(name));
}

static int commit_parents(const brc_commit *commit, brc_buf *out, brc_error *err)
{
    char hex[65];
    for (size_t i = 0; i < commit->nparents; i++)
        BRC_TRY(brc_buf_printf(out, err, "%s%s", i > 0 ? " " : "",
                               brc_oid_format(hex, &commit->parents[i])));
    return brc_buf_terminate(out, err);
}

static int column_is(sqlite3_stmt *st, int column, const char *text)
{
    size_t len = strlen(text);
    return sqlite3_column_type(st, column) == SQLITE_TEXT &&
           (size_t)sqlite3_column_bytes(st, column) == len &&
           memcmp(sqlite3_column_text(st, column), text, len) == 0;
}

int brc_commit_generation(brc_store *store, const brc_oid *id, int64_t *out, brc_error *err)
{
    sqlite3_stmt *st;
    BRC_TRY(brc_stmt(store, "SELECT generation FROM commit_info WHERE id=?1", &st, err));
    brc_bind_id(store, st, 1, id);
    return brc_ask_number(store, st, out, err);
}

/* Computes a commit's generation: one more than the largest of its parents' that exist here. */
static int generation_after(brc_store *store, const brc_commit *commit, int64_t *out,
                            brc_error *err)
{
    *out = 1;
    for (size_t i = 0; i < commit->nparents; i++) {
        int64_t after;
        BRC_TRY(brc_commit_generation(store, &commit->parents[i], &after, err));
        if (after > 0 && after < INT64_MAX && after + 1 > *out)
            *out = after + 1;
    }
    return BRC_OK;
}

int brc_commit_info_check(brc_store *store, const brc_commit *commit, int *same, brc_error *err)
{
    sqlite3_stmt *st;
    int64_t generation;
    brc_buf parents = BRC_BUF_INIT;
    int rc;
    *same = 0;
    const int is_cut = (commit->flags & BRC_PAST_EXPIRED) != 0;
    BRC_GO(commit_parents(commit, &parents, err));
    BRC_GO(generation_after(store, commit, &generation, err));
    BRC_GO(brc_stmt(store,
                    "SELECT time_us, author, message, parents, generation FROM commit_info"
                    " WHERE id=?1",
                    &st, err));
    brc_bind_id(store, st, 1, &commit->id);
    BRC_GO(brc_step(store, st, err));
    if (rc > 0)
        *same = sqlite3_column_type(st, 0) == SQLITE_INTEGER &&
                sqlite3_column_int64(st, 0) == commit->time_us &&
                column_is(st, 1, commit->author) && column_is(st, 2, commit->message) &&
                column_is(st, 3, (const char *)parents.data) &&
                sqlite3_column_type(st, 4) == SQLITE_INTEGER &&
                (is_cut ? sqlite3_column_int64(st, 4) >= generation
                        : sqlite3_column_int64(st, 4) == generation);
    sqlite3_reset(st);
    rc = BRC_OK;
done:
    brc_buf_dispose(&parents);
    return rc;
}

int brc_commit_info_put(brc_store *store, const brc_commit *commit, brc_error *err)
{
    sqlite3_stmt *st;
    int64_t generation;
    brc_buf parents = BRC_BUF_INIT;
    int rc;
    BRC_GO(commit_parents(commit, &parents, err));
    BRC_GO(generation_after(store, commit, &generation, err));
    BRC_GO(brc_stmt(store,
                    "INSERT OR REPLACE INTO commit_info(id, time_us, author, message, parents,"
                    " generation) VALUES (?1, ?2, ?3, ?4, ?5, ?6)",
                    &st, err));
    brc_bind_id(store, st, 1, &commit->id);
    sqlite3_bind_int64(st, 2, commit->time_us);
    sqlite3_bind_text(st, 3, commit->author, -1, SQLITE_STATIC);
    sqlite3_bind_text(st, 4, commit->message, -1, SQLITE_STATIC);
    sqlite3_bind_text(st, 5, (const char *)parents.data, -1, SQLITE_STATIC);
    sqlite3_bind_int64(st, 6, generation);
    BRC_GO(brc_run(store, st, err));
done:
    brc_buf_dispose(&parents);
    return rc;
}
