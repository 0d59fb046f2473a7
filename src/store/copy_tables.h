/* Makes a table of one file equal to the same table of another: walks both by key and copies the rows that differ. */
#ifndef BRC_STORE_COPY_TABLES_H
#define BRC_STORE_COPY_TABLES_H

#include "db.h"

typedef struct brc_table {
    const char *name, *list, *put, *drop, *has; /* statements; `list` is in the order of the key */
    int nkeys;       /* columns of the key, which come first                                  */
    int is_reserved; /* a file may lack the table                                             */
} brc_table;

extern const brc_table brc_table_object, brc_table_removed;
/* Every table except blob: the index of objects comes before table removed; NULL follows the last. */
extern const brc_table *const brc_backup_tables[];

/* Called with each row that differs, before it is copied: the new row (NULL: the row is deleted) and the old one (NULL:
 * the row is added). */
typedef int (*brc_differs_fn)(void *ctx, sqlite3_stmt *from, sqlite3_stmt *to, brc_error *err);
/* Makes a table of `to` equal to that of `from`, within a read of `from` and a write of `to`. `differs` may be NULL. */
BRC_MUST_USE int brc_table_sync(brc_store *to, brc_store *from, const brc_table *table, brc_differs_fn differs, void *ctx,
                                brc_error *err);
/* Returns the statement with the first n columns of a row bound as its parameters. */
BRC_MUST_USE int brc_row_bind(brc_store *store, const char *sql, sqlite3_stmt *row, int n, sqlite3_stmt **out, brc_error *err);
/* Puts one row with the columns that the table's `list` gives. */
BRC_MUST_USE int brc_table_put(brc_store *to, const brc_table *table, sqlite3_stmt *row, brc_error *err);

#endif
