/* See reserved.h. */
#include "reserved.h"

#include <stdio.h>
#include <string.h>

#include "reserved.sql.h"

static const char create[] = "\nCREATE TABLE ";

/* The next table's text from *at on, from its name, which ends at a parenthesis. NULL: none. */
static const char *next_table(const char **at, int *name_len, int *len)
{
    const char *start = strstr(*at, create);
    if (start == NULL)
        return NULL;
    start += sizeof(create) - 1;
    const char *end = strstr(start, ";\n");
    *name_len = (int)strcspn(start, "(");
    *len = (int)(end - start);
    *at = end;
    return start;
}

static int is_there(sqlite3 *db, const char *name, int len)
{
    sqlite3_stmt *st = NULL;
    int there = sqlite3_prepare_v2(db, "SELECT 1 FROM main.sqlite_schema WHERE name=?1", -1, &st,
                                   NULL) == SQLITE_OK &&
                sqlite3_bind_text(st, 1, name, len, SQLITE_TRANSIENT) == SQLITE_OK &&
                sqlite3_step(st) == SQLITE_ROW;
    sqlite3_finalize(st);
    return there;
}

/* A temporary one does not give numbers: sqlite_sequence would be another than the file's. */
static int make(sqlite3 *db, const char *how, const char *text, int len)
{
    static const char numbers[] = "AUTOINCREMENT";
    char *sql = sqlite3_mprintf("%s %.*s", how, len, text);
    char *at = sql != NULL && strstr(how, "TEMP") != NULL ? strstr(sql, numbers) : NULL;
    if (at != NULL)
        memset(at, ' ', sizeof(numbers) - 1);
    int rc = sql != NULL ? sqlite3_exec(db, sql, NULL, NULL, NULL) : SQLITE_NOMEM;
    sqlite3_free(sql);
    return rc;
}

static int puts_into(const char *sql, const char *name, int len)
{
    char words[64];
    const int n = snprintf(words, sizeof(words), "INTO %.*s", len, name);
    for (const char *p = sql; (p = strstr(p, words)) != NULL; p += n)
        if (p[n] == ' ' || p[n] == '(')
            return 1;
    return 0;
}

/* Makes the tables that are not there; with `sql`, only those into which it puts rows. */
static int make_some(sqlite3 *db, const char *how, const char *sql)
{
    int name_len, len, rc = SQLITE_OK;
    const char *at = brc_sql_reserved, *text;
    while (rc == SQLITE_OK && (text = next_table(&at, &name_len, &len)) != NULL)
        if ((sql == NULL || puts_into(sql, text, name_len)) && !is_there(db, text, name_len))
            rc = make(db, how, text, len);
    return rc;
}

int reserved_stand_in(sqlite3 *db)
{
    return make_some(db, "CREATE TEMP TABLE", NULL);
}

int reserved_make(sqlite3 *db, const char *sql)
{
    int rc = make_some(db, "CREATE TABLE", sql);
    return rc == SQLITE_OK ? reserved_stand_in(db) : rc;
}

int reserved_make_all(sqlite3 *db)
{
    return make_some(db, "CREATE TABLE", NULL);
}
