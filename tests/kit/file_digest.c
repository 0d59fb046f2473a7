/* See file_digest.h. */
#include "file_digest.h"

#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "reserved.h"

/* Rows that lie on each other say what the uppermost one with a chunk says, however many they are:
 * a stack may be made shorter at any time. */
#define STACKED_CHUNKS                                                                    \
    "(WITH RECURSIVE stack(top, node, deep) AS"                                           \
    "  (SELECT node, node, 0 FROM draft_node WHERE path IS NOT NULL"                      \
    "   UNION ALL SELECT top, below, deep+1 FROM stack JOIN draft_node USING(node)"       \
    "   WHERE below IS NOT NULL)"                                                         \
    " SELECT top, key, id AS chunk, min(deep) FROM stack JOIN draft_chunk USING(node)"    \
    " GROUP BY top, key)"

static const char digest_sql[] =
    "SELECT 'meta ' || key || ' ' || hex(value) FROM meta WHERE key <> 'secret'"
    " UNION ALL SELECT 'ref ' || name || ' ' || coalesce(hex(target), '-') || ' ' ||"
    "  coalesce(message, '-') FROM ref"
    " UNION ALL SELECT 'op ' || seq || ' ' || op || ' ' || name || ' ' || coalesce(hex(old), '-') "
    "||"
    "  ' ' || coalesce(hex(new), '-') FROM oplog"
    " UNION ALL SELECT 'draft ' || id || ' ' || kind || ' ' || branch || ' ' ||"
    "  coalesce(hex(base), '-') || ' ' || coalesce(hex(tip), '-') FROM draft WHERE state=1"
    "  AND (kind<>2 OR id IN (SELECT draft FROM draft_node))" /* an empty one may go at any time */
    " UNION ALL SELECT 'node ' || draft || ' ' || path || ' ' || coalesce(hex(entry), '-')"
    "  FROM draft_node WHERE path IS NOT NULL"
    " UNION ALL SELECT 'chunk ' || draft || ' ' || path || ' ' || hex(key) || ' ' ||"
    "  coalesce(hex(chunk), '-') FROM " STACKED_CHUNKS " JOIN draft_node ON node=top"
    " UNION ALL SELECT 'move ' || draft || ' ' || path || ' ' || source FROM draft_move"
    " UNION ALL SELECT 'document ' || hex(id) || ' ' || hex(data) FROM draft_doc"
    " UNION ALL SELECT 'key ' || draft || ' ' || key || ' ' || coalesce(hex(id), '-')"
    "  FROM draft_key"
    " UNION ALL SELECT 'total ' || hex(id) || ' ' || arrays || ' ' || groups || ' ' || chunks ||"
    "  ' ' || size || ' ' || stored FROM node_total"
    " UNION ALL SELECT 'encoding ' || spec FROM encoding"
    " UNION ALL SELECT 'commit ' || hex(id) || parents FROM commit_info"
    " UNION ALL SELECT 'object ' || kind || ' ' || hex(o.id) || ' ' ||"
    "  hex(substr(data, offset+1, stored))"
    "  FROM object o JOIN blob ON seq = place WHERE stored < 70000"
    " UNION ALL SELECT 'objects ' || count(*) || ' ' || sum(stored) FROM object"
    " UNION ALL SELECT 'blobs ' || count(*) FROM blob"
    " ORDER BY 1";

#define OF_DRAFT "branch || ' ' || path"

static const char seen_sql[] =
    "SELECT 'meta ' || key || ' ' || hex(value) FROM meta WHERE key <> 'secret'"
    " UNION ALL SELECT 'ref ' || name || ' ' || coalesce(hex(target), '-') || ' ' ||"
    "  coalesce(message, '-') FROM ref"
    " UNION ALL SELECT 'op ' || seq || ' ' || op || ' ' || name || ' ' || coalesce(hex(new), '-')"
    "  FROM oplog"
    " UNION ALL SELECT 'node ' || " OF_DRAFT " || ' ' || coalesce(hex(entry), '-')"
    "  FROM draft JOIN draft_node ON draft=id WHERE state=1 AND kind=1 AND path IS NOT NULL"
    " UNION ALL SELECT 'chunk ' || " OF_DRAFT " || ' ' || hex(key) || ' ' ||"
    "  coalesce(hex(chunk), '-') FROM draft d JOIN draft_node ON draft=d.id"
    "  JOIN " STACKED_CHUNKS " ON node=top WHERE state=1 AND kind=1"
    " UNION ALL SELECT 'move ' || " OF_DRAFT " || ' ' || source FROM draft JOIN draft_move"
    "  ON draft=id WHERE state=1 AND kind=1"
    " UNION ALL SELECT 'document ' || hex(o.id) || ' ' || hex(data) FROM draft d"
    "  JOIN draft_node ON draft=d.id JOIN draft_doc o USING(node) WHERE state=1 AND kind=1"
    " ORDER BY 1";

static char *digest_with(const char *path, const char *sql)
{
    sqlite3 *db = NULL;
    sqlite3_stmt *st = NULL;
    sqlite3_str *text = sqlite3_str_new(NULL);
    int rc = sqlite3_open_v2(path, &db, SQLITE_OPEN_READWRITE, NULL);
    if (rc == SQLITE_OK)
        rc = reserved_stand_in(db);
    if (rc == SQLITE_OK)
        rc = sqlite3_prepare_v2(db, sql, -1, &st, NULL);
    /* A file that is not made yet has nothing; but two that are both not understood differ. */
    if (rc == SQLITE_ERROR && sqlite3_table_column_metadata(db, "main", "meta", NULL, NULL, NULL,
                                                            NULL, NULL, NULL) == SQLITE_OK) {
        sqlite3_prepare_v2(db, sql, -1, &st, NULL);
        fprintf(stderr, "%s: %s\n", path, sqlite3_errmsg(db));
        abort();
    }
    while (rc == SQLITE_OK && (rc = sqlite3_step(st)) == SQLITE_ROW) {
        sqlite3_str_appendf(text, "%s\n", sqlite3_column_text(st, 0));
        rc = SQLITE_OK;
    }
    sqlite3_finalize(st);
    sqlite3_close(db);
    char *all = sqlite3_str_finish(text);
    char *out = strdup(rc == SQLITE_DONE && all != NULL ? all : "");
    sqlite3_free(all);
    return out;
}

char *file_digest(const char *path)
{
    return digest_with(path, digest_sql);
}

char *file_digest_named(const char *path)
{
    static const char *const left_out[] = { "object", "blobs ", "total ", "encoding " };
    char *all = file_digest(path), *to = all;
    for (const char *at = all, *next; *at != '\0'; at = next) {
        int is_left = 0;
        next = at + strcspn(at, "\n");
        next += *next != '\0';
        for (size_t i = 0; i < sizeof(left_out) / sizeof(left_out[0]); i++)
            is_left |= strncmp(at, left_out[i], strlen(left_out[i])) == 0;
        if (is_left)
            continue;
        memmove(to, at, (size_t)(next - at));
        to += next - at;
    }
    *to = '\0';
    return all;
}

char *file_digest_seen(const char *path)
{
    return digest_with(path, seen_sql);
}

static int say_damage(void *ctx, const brc_damage *damage)
{
    char hex[65];
    ++*(int *)ctx;
    fprintf(stderr, "%s %s: %s\n", damage->kind, brc_oid_format(hex, &damage->id), damage->message);
    return 0;
}

int file_is_whole(const char *path)
{
    breccia *repo;
    brc_error err = BRC_ERROR_INIT;
    uint64_t checked;
    int faults = 0;
    int rc = brc_open(&repo, path, NULL, &err);
    if (rc == BRC_OK)
        rc = brc_fsck(repo, 0, say_damage, NULL, &faults, &checked, &err);
    if (rc != BRC_OK)
        fprintf(stderr, "%s: %s\n", path, err.message);
    brc_free(repo);
    return rc == BRC_OK && faults == 0;
}
