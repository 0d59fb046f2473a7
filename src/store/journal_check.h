/*
 * Checks whether a rollback journal that was left behind belongs to the file as it is now.
 *
 * A journal begins with a header: its mark, the number of records that were synced, a
 * random number, the file's pages before the transaction, the sector and page size, all
 * big-endian. Records follow: a page's number, the page as it was, a checksum. More headers
 * with their records may follow, each header at a multiple of the sector size.
 */
#ifndef BRC_STORE_JOURNAL_CHECK_H
#define BRC_STORE_JOURNAL_CHECK_H

#include <sqlite3.h>

enum {
    BRC_JOURNAL_OWN = 0,   /* playing it back gives the state before the transaction */
    BRC_JOURNAL_NAMES_OTHER, /* it ends with the name of another file, which SQLite would delete */
    BRC_JOURNAL_NONE,      /* these bytes are not a rollback journal                    */
    BRC_JOURNAL_DAMAGED,   /* it is truncated, or a checksum is wrong                */
    BRC_JOURNAL_OTHER_STATE, /* it was written over another state of the file        */
    BRC_JOURNAL_UNPROVEN,    /* it lacks page 1, whose counter says which state it is of */
    BRC_JOURNAL_OF_NEW_FILE /* the file was empty before the transaction             */
};

/* Checks a journal. Both files are open, and nobody else writes to them. Returns SQLite's result and stores the verdict,
 * BRC_JOURNAL_*. */
int brc_journal_check(sqlite3_file *file, sqlite3_file *journal, int *verdict);
/* Checks only the end of the journal: the verdict is OWN or NAMES_OTHER. */
int brc_journal_check_end(sqlite3_file *journal, int *verdict);

#endif
