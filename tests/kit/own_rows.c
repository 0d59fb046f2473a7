/* See own_rows.h. */
#include "own_rows.h"

#include <string.h>

/* An object whose row is not there is left as it is. */
static const char own_rows_sql[] =
    "SAVEPOINT own_rows;"
    "CREATE TEMP TABLE own AS SELECT id, row_number() OVER (ORDER BY place, offset, stored, id)"
    " AS seq, place, offset, stored FROM object WHERE backend=0"
    " AND place IN (SELECT seq FROM blob);"
    "CREATE TEMP TABLE bytes AS SELECT own.seq AS seq, substr(b.data, own.offset+1, own.stored)"
    " AS data FROM own JOIN blob b ON b.seq=own.place;"
    "DELETE FROM blob; DELETE FROM removed WHERE backend=0;"
    "INSERT INTO blob(seq, data) SELECT seq, data FROM bytes ORDER BY seq;"
    "UPDATE object SET place=own.seq, offset=0 FROM own WHERE own.id=object.id;"
    "DROP TABLE own; DROP TABLE bytes;"
    "RELEASE own_rows";

/* Another program's database has no such table: nothing is shared in it. */
static int is_shared(sqlite3 *db, int *shared)
{
    sqlite3_stmt *st;
    *shared = 0;
    int rc = sqlite3_prepare_v2(db, "SELECT 1 FROM object WHERE offset<>0 LIMIT 1", -1, &st, NULL);
    if (rc != SQLITE_OK)
        return (rc & 0xff) == SQLITE_ERROR ? SQLITE_OK : rc;
    *shared = sqlite3_step(st) == SQLITE_ROW;
    return sqlite3_finalize(st);
}

int own_rows(sqlite3 *db)
{
    int shared;
    int rc = is_shared(db, &shared);
    return rc == SQLITE_OK && shared ? sqlite3_exec(db, own_rows_sql, NULL, NULL, NULL) : rc;
}

int own_rows_for(sqlite3 *db, const char *sql)
{
    return strstr(sql, "blob") || strstr(sql, "object") ? own_rows(db) : SQLITE_OK;
}
