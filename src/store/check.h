/*
 * Running the statements of fsck so that nobody waits for them: range by range of rows, and what
 * cannot be cut gives way to whoever waits for the file, and begins again. Each range is of one
 * state, so what is found was so, whatever others write meanwhile.
 */
#ifndef BRC_STORE_CHECK_H
#define BRC_STORE_CHECK_H

#include "db.h"

/* ---- check steps -------------------------------- */

/* Rows of a range. */
#define BRC_CHECK_ROWS "4096"
/* The range that begins at ?3, of the table's key; and where the next one begins. */
#define BRC_RANGE(table, key)                                                                     \
    key " IN (SELECT " key " FROM " table " WHERE " key ">=?3 ORDER BY " key                      \
        " LIMIT " BRC_CHECK_ROWS ")"
#define BRC_RANGE_NEXT(table, key)                                                                \
    "SELECT " key " FROM " table " WHERE " key ">=?3 ORDER BY " key                               \
        " LIMIT 1 OFFSET " BRC_CHECK_ROWS
/* The same of a key of two columns, from ?3 and ?4 on, in place of the table: with IN it would read
 * all that has the first column's value. */
#define BRC_ROWS2(table, a, b)                                                                    \
    "(SELECT * FROM " table " WHERE (" a ", " b ")>=(?3, ?4) ORDER BY " a ", " b                  \
        " LIMIT " BRC_CHECK_ROWS ")"
#define BRC_ROWS2_NEXT(table, a, b)                                                              \
    "SELECT " a ", " b " FROM " table " WHERE (" a ", " b ")>=(?3, ?4) ORDER BY " a ", " b        \
    " LIMIT 1 OFFSET " BRC_CHECK_ROWS

typedef struct brc_check_lines {
    int (*found)(void *ctx, const char *line); /* not 0: no more                             */
    void *ctx;
} brc_check_lines;

/* Each row is a line that is told. ?1 is the length of an id, ?2 BRC_SMALL_MOST. With `next` the
 * statement is of ranges. */
BRC_MUST_USE int brc_check_run(brc_store *store, const char *sql, const char *next,
                               const brc_check_lines *lines, brc_error *err);
/* A statement that cannot be cut: it is begun again so often; 0 if somebody was always in need of the
 * file before it was through (nothing is told then), else 1. */
BRC_MUST_USE int brc_check_try(brc_store *store, const char *sql, int tries,
                               const brc_check_lines *lines, brc_error *err);

/* ---- check places -------------------------------- */

/*
 * Whether each stored blob belongs to an object, and no two objects lie in the same bytes, without
 * a statement that takes long: objects are read in the order of their ids, a range at a time, and sorted
 * by place here, as many as memory may hold; where there are more, they are read again for the
 * places behind.
 */

/* Objects that are sorted at once: 24 MiB. */
#define BRC_PLACES_AT_ONCE ((size_t)1 << 20)

/* *doubtful: there is a fault, or what others wrote meanwhile looks like one: to be asked again of one
 * state. In a read, which is paused after each range. */
BRC_MUST_USE int brc_check_places(brc_store *store, size_t at_once, int *doubtful, brc_error *err);

#endif
