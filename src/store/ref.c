/* Refs, and the derived rows of commits. */
#include <stdlib.h>
#include <string.h>

#include "collect.h"
#include "db.h"

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

/* "heads/main" is shown as "branch 'main'". */
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
    return brc_fail(err, BRC_ENOTFOUND, "%s has no %s '%s'", store->path, ref_kind(name),
                    ref_short(name));
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
        if (name != NULL && strncmp(name, prefix, strlen(prefix)) != 0) { /* after the last */
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

int brc_ref_delete(brc_store *store, const char *name, int64_t time_us, brc_error *err)
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
               : brc_fail(err, BRC_ENOTFOUND, "%s: %s '%s' had no commit at that time", store->path,
                          ref_kind(name), ref_short(name));
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

/* One more than the largest of its parents', as far as they are here. */
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
