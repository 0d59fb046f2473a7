/*
 * Checks whether a log that was left behind (FILE-wal) belongs to the file as it is now.
 *
 * A log begins with a header: its mark, a version, the page size, a counter, two random numbers
 * ("salts"), a checksum, all big-endian. Frames follow: a page's number, the file's size in pages
 * if the frame ends a transaction (else 0), the salts, a checksum over all frames up to this one,
 * the page's new content.
 */
#ifndef BRC_STORE_WAL_CHECK_H
#define BRC_STORE_WAL_CHECK_H

#include <sqlite3.h>

enum {
    BRC_WAL_OWN = 0,     /* its transactions follow the file's state             */
    BRC_WAL_NONE,        /* these bytes are not a log                            */
    BRC_WAL_DAMAGED,     /* a transaction that was on the disk is no longer whole */
    BRC_WAL_OTHER_STATE  /* it was written over another state of the file        */
};

/* Checks a log. Both files are open, and nobody writes to them. Returns SQLite's result and stores the verdict,
 * BRC_WAL_*. */
int brc_wal_check(sqlite3_file *file, sqlite3_file *wal, int *verdict);

#endif
