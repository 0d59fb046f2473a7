/* How much SQLite does in one statement and in one transaction of a connection, counted in its own
 * steps, and something that is done between two of its transactions. */
#ifndef BRC_TESTS_STEP_COUNT_H
#define BRC_TESTS_STEP_COUNT_H

#include <sqlite3.h>
#include <stdint.h>

typedef struct step_count {
    int64_t statement, transaction; /* the most steps of one */
    int statements;                 /* the most of one transaction */
    int writes;                     /* transactions that wrote and were kept */
    void (*between)(void *ctx);     /* after each transaction; NULL: nothing */
    void *ctx;
    /* Its own. */
    sqlite3 *db;
    int64_t now;
    int statements_now;
    int is_write, is_between;
} step_count;

/* From now on until it is stopped; counts begin at 0. Nothing else may trace the connection. */
void step_count_start(step_count *c, sqlite3 *db);
void step_count_stop(step_count *c);

#endif
