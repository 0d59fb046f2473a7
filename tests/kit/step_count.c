#include "step_count.h"

#include <string.h>

static void end_transaction(step_count *c, int is_kept)
{
    if (c->now > c->transaction)
        c->transaction = c->now;
    if (c->statements_now > c->statements)
        c->statements = c->statements_now;
    c->now = c->statements_now = 0;
    c->writes += c->is_write && is_kept;
    c->is_write = 0;
    if (c->between == NULL || c->is_between)
        return;
    c->is_between = 1;
    c->between(c->ctx);
    c->is_between = 0;
}

static int count_statement(unsigned what, void *ctx, void *stmt, void *unused)
{
    step_count *c = ctx;
    const char *sql = sqlite3_sql(stmt);
    (void)what, (void)unused;
    const int64_t steps = sqlite3_stmt_status(stmt, SQLITE_STMTSTATUS_VM_STEP, 1);
    if (steps > c->statement)
        c->statement = steps;
    c->now += steps;
    c->statements_now++;
    c->is_write |= sql != NULL && strcmp(sql, "BEGIN IMMEDIATE") == 0;
    if (sqlite3_get_autocommit(c->db))
        end_transaction(c, sql != NULL && strcmp(sql, "COMMIT") == 0);
    return 0;
}

void step_count_start(step_count *c, sqlite3 *db)
{
    c->db = db;
    c->statement = c->transaction = c->now = 0;
    c->statements = c->statements_now = c->writes = c->is_write = c->is_between = 0;
    for (sqlite3_stmt *st = sqlite3_next_stmt(db, NULL); st != NULL; st = sqlite3_next_stmt(db, st))
        (void)sqlite3_stmt_status(st, SQLITE_STMTSTATUS_VM_STEP, 1); /* what they did before */
    sqlite3_trace_v2(db, SQLITE_TRACE_PROFILE, count_statement, c);
}

void step_count_stop(step_count *c)
{
    sqlite3_trace_v2(c->db, 0, NULL, NULL);
}
