/* Rows of table boundary: see boundary.h. */
#include "boundary.h"

#include <stdlib.h>
#include <string.h>

#include "db.h"

#define BOUNDARY_WHOLE "checksum IS row_sum('boundary', id, parents, moves)"

/* So many ancestors can stand for a commit's parents. */
#define NEAREST_MOST ((size_t)1 << 20)

static int boundary_row(brc_store *store, sqlite3_stmt *st, brc_boundary *out, brc_error *err)
{
    void *p;
    BRC_TRY(brc_row_check(store, st, 2, "what stands for expired commits", err));
    const uint8_t *bytes = sqlite3_column_blob(st, 0);
    const char *moves = (const char *)sqlite3_column_text(st, 1);
    const size_t len = (size_t)sqlite3_column_bytes(st, 0), id_len = store->id_len;
    if (len % id_len != 0 || len / id_len > NEAREST_MOST || moves == NULL)
        return brc_fail(err, BRC_ECORRUPT,
                        "%s: what stands for expired commits is damaged; run 'breccia fsck'",
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

/* The derived row says what whoever reads the commit is told. */
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
                        "a commit would have %zu others for its expired parents: keep more commits",
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
