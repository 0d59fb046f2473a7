/* Tables that a file may lack (schema/reserved.sql), for tests that look at it with SQL: one that is
 * not there is empty. */
#ifndef KIT_RESERVED_H
#define KIT_RESERVED_H

#include <sqlite3.h>

/* For reading: an empty temporary one stands in for each that is not there. An SQLite code. */
int reserved_stand_in(sqlite3 *db);

/* For writing: the same, but those that the statements put rows into are made in the file. */
int reserved_make(sqlite3 *db, const char *sql);

/* All that are not there are made. */
int reserved_make_all(sqlite3 *db);

#endif
