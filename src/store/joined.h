/*
 * Joined writes: the pages that SQLite writes one by one, as long as each begins where the last one
 * ended, go to the file in one write.
 *
 *      run.at                    run.at + run.len
 *      |  page  |  page  |  page  |            the next write begins here, or the run is written
 *
 * Reads find the bytes that are still in memory. Whatever needs them in the file flushes the run
 * before: a sync, a truncation, and a lock that is lowered.
 */
#ifndef BRC_STORE_JOINED_H
#define BRC_STORE_JOINED_H

#include <sqlite3.h>
#include <stddef.h>
#include <stdint.h>

typedef struct brc_joined {
    uint8_t *bytes; /* NULL until something is joined */
    size_t len, size;
    sqlite3_int64 at;
    int keeps; /* bytes that could not be written stay, and are tried again */
    int fd;    /* the file, where the disk is to begin early; or -1 */
    sqlite3_int64 on_way, begun, written; /* see begin_early() in joined.c */
} brc_joined;

/* Sets how many bytes are joined. A run that `keeps` loses nothing when a write fails: SQLite undoes
 * the statement that could not write to the journal, and may go on with the journal. After a failed
 * write to the database file SQLite plays the journal back, so those bytes are dropped. */
void brc_joined_init(brc_joined *run, size_t size, int keeps);

/* Makes the disk begin with long stretches of the file before the next sync, which is shorter then:
 * `fd` is open on the file, and stays the caller's. Does nothing where the system cannot do so. */
void brc_joined_early(brc_joined *run, int fd);

/* Like xWrite, xRead and xFileSize of `file`, whose bytes in `run` count as written. A write may
 * fail for bytes that an earlier one gave. */
int brc_joined_write(brc_joined *run, sqlite3_file *file, const void *data, int len,
                      sqlite3_int64 at);
int brc_joined_read(const brc_joined *run, sqlite3_file *file, void *into, int len,
                       sqlite3_int64 at);
int brc_joined_size(const brc_joined *run, sqlite3_file *file, sqlite3_int64 *size);

/* Writes the bytes that are in memory. */
int brc_joined_flush(brc_joined *run, sqlite3_file *file);
/* Drops the bytes in memory from the offset `size` on. */
void brc_joined_cut(brc_joined *run, sqlite3_int64 size);
/* Frees the memory; bytes that are not flushed are lost. */
void brc_joined_dispose(brc_joined *run);

#endif
