/*
 * Runs the statements of fsck so that nobody waits for them: range by range of rows. A statement
 * that cannot be cut into ranges stops when another process waits for the file, and begins again.
 * Each range is read from one state of the file, so a fault that is found existed, whatever others
 * write meanwhile.
 */
#ifndef BRC_STORE_CHECK_H
#define BRC_STORE_CHECK_H

#include "db.h"

/* ---- check steps -------------------------------- */

/* The number of rows in a range. */
#define BRC_CHECK_ROWS "4096"
/* In SQL: the range of the table's key that begins at ?3, and the key at which the next range begins. */
#define BRC_RANGE(table, key)                                                                     \
    key " IN (SELECT " key " FROM " table " WHERE " key ">=?3 ORDER BY " key                      \
        " LIMIT " BRC_CHECK_ROWS ")"
#define BRC_RANGE_NEXT(table, key)                                                                \
    "SELECT " key " FROM " table " WHERE " key ">=?3 ORDER BY " key                               \
        " LIMIT 1 OFFSET " BRC_CHECK_ROWS
/* The same range for a key of two columns, from ?3 and ?4 on. This text stands in place of the table, because a
 * condition with IN would read all rows with the first column's value. */
#define BRC_ROWS2(table, a, b)                                                                    \
    "(SELECT * FROM " table " WHERE (" a ", " b ")>=(?3, ?4) ORDER BY " a ", " b                  \
        " LIMIT " BRC_CHECK_ROWS ")"
#define BRC_ROWS2_NEXT(table, a, b)                                                              \
    "SELECT " a ", " b " FROM " table " WHERE (" a ", " b ")>=(?3, ?4) ORDER BY " a ", " b        \
    " LIMIT 1 OFFSET " BRC_CHECK_ROWS

typedef struct brc_check_lines {
    int (*found)(void *ctx, const char *line); /* a result other than 0 ends the check       */
    void *ctx;
} brc_check_lines;

/* Runs a statement and reports each of its rows as a line. ?1 is the length of an id, ?2 BRC_SMALL_MOST. With
 * `next` the statement is run range by range. */
BRC_MUST_USE int brc_check_run(brc_store *store, const char *sql, const char *next,
                               const brc_check_lines *lines, brc_error *err);
/* Runs a statement that cannot be cut into ranges, up to `tries` times. Returns 0 and reports nothing if another
 * process needed the file each time before the end, else 1. */
BRC_MUST_USE int brc_check_try(brc_store *store, const char *sql, int tries,
                               const brc_check_lines *lines, brc_error *err);

/* ---- check places -------------------------------- */

/*
 * Checks that each stored blob belongs to an object and that no two objects lie in the same bytes, without
 * a statement that takes long. Objects are read in the order of their ids, a range at a time, and sorted
 * by place here, up to a limit of memory; if there are more, they are read again for the remaining
 * places.
 */

/* The number of objects that are sorted at once: 24 MiB. */
#define BRC_PLACES_AT_ONCE ((size_t)1 << 20)

/* Called in a read, which is paused after each range. *doubtful is 1 if there is a fault, or a change that others
 * made meanwhile looks like one: the caller checks again within one state of the file. */
BRC_MUST_USE int brc_check_places(brc_store *store, size_t at_once, int *doubtful, brc_error *err);

#endif
