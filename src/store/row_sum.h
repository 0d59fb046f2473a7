/* Checksums of rows that no hash covers (docs/FORMAT.md, "Row checksums"). */
#ifndef BRC_STORE_ROW_SUM_H
#define BRC_STORE_ROW_SUM_H

#include <sqlite3.h>

/* Gives a connection the function row_sum(TABLE, COLUMN...): the checksum of a row with these
 * columns. The result is SQLite's. */
int brc_row_sum_register(sqlite3 *db);

#endif
