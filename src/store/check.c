/* Checking the file below the objects: SQLite's own structures, and the form of every
 * row. A column in SQLite keeps whatever type was put into it. */
#include <stdlib.h>
#include <string.h>

#include "db.h"

/* One line for each fault; ?1 is the length of an id. */
static const char *const row_checks[] = {
    "SELECT 'the setting ' || quote(substr(key,1,40)) || ' is not text' FROM meta"
    " WHERE typeof(key)<>'text' OR (key<>'secret' AND typeof(value)<>'text')",

    "SELECT 'the setting ' || column1 || ' is missing' FROM (VALUES ('head'), ('may-ignore'))"
    " WHERE column1 NOT IN (SELECT key FROM meta)",

    "SELECT 'an object has ' || quote(substr(id,1,40)) || ' in place of an id' FROM object"
    " WHERE typeof(id)<>'blob' OR length(id)<>?1 OR id=zeroblob(?1)",

    "SELECT 'blob ' || seq || ' holds ' || typeof(data) || ' in place of bytes' FROM blob"
    " WHERE typeof(data)<>'blob'",

    "SELECT count(*) || ' of the stored blobs belong to no object; the first is ' || min(seq)"
    " FROM blob WHERE (SELECT count(*) FROM blob)>(SELECT count(*) FROM object)"
    " AND seq NOT IN (SELECT blob FROM object) HAVING count(*)>0",

    "SELECT 'encoding ' || id || ' is not a numbered text' FROM encoding"
    " WHERE id<1 OR typeof(spec)<>'text' OR instr(CAST(spec AS BLOB), x'00')>0",

    "SELECT 'the ref ' || quote(substr(name,1,80)) || ' has an invalid name, target or message'"
    " FROM ref WHERE typeof(name)<>'text' OR instr(CAST(name AS BLOB), x'00')>0"
    " OR (target IS NULL AND name NOT LIKE 'heads/%')"
    " OR (target IS NOT NULL AND (typeof(target)<>'blob' OR length(target)<>?1"
    " OR target=zeroblob(?1)))"
    " OR typeof(message) NOT IN ('null','text') OR instr(CAST(message AS BLOB), x'00')>0",

    "SELECT 'row ' || seq || ' of the operation log is damaged' FROM oplog"
    " WHERE typeof(time_us)<>'integer' OR typeof(name)<>'text' OR op NOT IN ('branch','tag',"
    "'commit','amend','reset','rename','delete','switch')"
    " OR (old IS NOT NULL AND (typeof(old)<>'blob' OR length(old)<>?1"
    " OR old=zeroblob(?1)))"
    " OR (new IS NOT NULL AND (typeof(new)<>'blob' OR length(new)<>?1"
    " OR new=zeroblob(?1)))",

    "SELECT 'the uncommitted changes of ' || quote(substr(branch,1,80)) || ' have no branch, or an "
    "invalid base' FROM draft WHERE typeof(branch)<>'text' OR instr(CAST(branch AS BLOB), x'00')>0"
    " OR 'heads/' || branch NOT IN (SELECT name FROM ref)"
    " OR (base IS NOT NULL AND (typeof(base)<>'blob' OR length(base)<>?1"
    " OR base=zeroblob(?1)))",

    "SELECT 'row ' || node || ' of the uncommitted nodes (' || quote(substr(path,1,80)) ||"
    " ') is damaged, or belongs to no branch' FROM draft_node"
    " WHERE typeof(branch)<>'text' OR branch NOT IN (SELECT branch FROM draft)"
    " OR typeof(path)<>'text' OR instr(CAST(path AS BLOB), x'00')>0"
    " OR typeof(entry) NOT IN ('null','blob')",

    "SELECT 'an uncommitted chunk of node ' || quote(substr(node,1,40)) || ' is damaged, or belongs"
    " to no node' FROM draft_chunk WHERE node NOT IN (SELECT node FROM draft_node)"
    " OR typeof(key)<>'blob' OR (id IS NOT NULL AND (typeof(id)<>'blob' OR length(id)<>?1))",

    "SELECT 'the derived row of ' || quote(substr(id,1,40)) || ' does not belong to a commit' FROM "
    "commit_info"
    " WHERE typeof(id)<>'blob' OR id NOT IN (SELECT id FROM object WHERE kind=4)",
};

static int tell_lines(brc_store *store, sqlite3_stmt *st,
                      int (*found)(void *ctx, const char *line), void *ctx, brc_error *err)
{
    int rc;
    while ((rc = brc_step(store, st, err)) > 0) {
        const char *line = (const char *)sqlite3_column_text(st, 0);
        if (line != NULL && strcmp(line, "ok") != 0 && found(ctx, line) != 0)
            return brc_fail(err, BRC_EINTERRUPT, "stopped on request");
    }
    return rc;
}

/* These run once: they are not kept among the prepared statements. */
static int run_check(brc_store *store, const char *sql, int (*found)(void *ctx, const char *line),
                     void *ctx, brc_error *err)
{
    sqlite3_stmt *st = NULL;
    int rc = sqlite3_prepare_v2(store->db, sql, -1, &st, NULL);
    if (rc != SQLITE_OK)
        return brc_fail_db(store, rc, "check it", err);
    sqlite3_bind_int64(st, 1, (int64_t)store->id_len);
    rc = tell_lines(store, st, found, ctx, err);
    sqlite3_finalize(st);
    return rc < 0 ? rc : BRC_OK;
}

int brc_store_check_file(brc_store *store, int (*found)(void *ctx, const char *line), void *ctx,
                         brc_error *err)
{
    return run_check(store, "PRAGMA integrity_check(20)", found, ctx, err);
}

int brc_store_check_rows(brc_store *store, int (*found)(void *ctx, const char *line), void *ctx,
                         brc_error *err)
{
    for (size_t i = 0; i < sizeof(row_checks) / sizeof(row_checks[0]); i++)
        BRC_TRY(run_check(store, row_checks[i], found, ctx, err));
    return BRC_OK;
}

int brc_store_each_id(brc_store *store, int what,
                      int (*each)(void *ctx, const brc_oid *id, brc_error *err), void *ctx,
                      brc_error *err)
{
    sqlite3_stmt *st = NULL;
    brc_oid id;
    int rc = sqlite3_prepare_v2(store->db,
                                what == BRC_IDS_OF_COMMITS
                                    ? "SELECT id FROM object WHERE kind=4"
                                    : "SELECT old FROM oplog WHERE old IS NOT NULL"
                                      " UNION SELECT new FROM oplog WHERE new IS NOT NULL",
                                -1, &st, NULL);
    if (rc != SQLITE_OK)
        return brc_fail_db(store, rc, "check it", err);
    while ((rc = brc_step(store, st, err)) > 0) {
        if (brc_column_id(store, st, 0, &id, NULL) < 0)
            continue; /* the check of rows reports it */
        rc = each(ctx, &id, err);
        if (rc < 0)
            break;
    }
    sqlite3_finalize(st);
    return rc < 0 ? rc : BRC_OK;
}

int brc_store_each_encoding(brc_store *store,
                            int (*each)(void *ctx, int64_t encoding, brc_error *err), void *ctx,
                            brc_error *err)
{
    sqlite3_stmt *st = NULL;
    int rc = sqlite3_prepare_v2(store->db, "SELECT id FROM encoding ORDER BY id", -1, &st, NULL);
    if (rc != SQLITE_OK)
        return brc_fail_db(store, rc, "check it", err);
    while ((rc = brc_step(store, st, err)) > 0) {
        rc = each(ctx, sqlite3_column_int64(st, 0), err);
        if (rc < 0)
            break;
    }
    sqlite3_finalize(st);
    return rc < 0 ? rc : BRC_OK;
}
