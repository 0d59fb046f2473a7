/* Small objects share rows of stored bytes. Where a test is about the bytes of one of them, and
 * changes blob.data by SQL, every object gets a row of its own first. */
#ifndef BRC_TESTS_OWN_ROWS_H
#define BRC_TESTS_OWN_ROWS_H

#include <sqlite3.h>

/* In the order of place and offset: blob.seq is 1, 2, ... and each offset 0. A file in which no
 * object lies behind another stays as it is. SQLite's result. */
int own_rows(sqlite3 *db);
/* The same where the statement is about such rows at all. */
int own_rows_for(sqlite3 *db, const char *sql);

/* The checksum of a row of table removed, in SQL. */
#define REMOVED_SUM                                                                            \
    "row_sum('removed', backend, place, name, bytes, total, state, since_us, due_us)"

/* A statement for scenario_sql(): the second half of each such row becomes free. */
#define OWN_ROWS_HALVED                                                                        \
    "DELETE FROM removed; UPDATE blob SET data=CAST(data || zeroblob(length(data)) AS BLOB)"       \
    " WHERE seq IN (SELECT place FROM object WHERE backend=0 AND stored>0);"                   \
    "INSERT INTO removed SELECT 0, seq, '', length(data)/2, length(data), 1, 1, 0, 0 FROM blob" \
    " WHERE seq IN (SELECT place FROM object WHERE backend=0 AND stored>0);"                   \
    "UPDATE removed SET checksum=" REMOVED_SUM

#endif
