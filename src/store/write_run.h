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
#ifndef BRC_STORE_WRITE_RUN_H
#define BRC_STORE_WRITE_RUN_H

#include <sqlite3.h>
#include <stddef.h>
#include <stdint.h>

typedef struct brc_write_run {
    uint8_t *bytes; /* NULL until something is joined */
    size_t len, size;
    sqlite3_int64 at;
    int keeps; /* what could not be written stays, and is tried again */
} brc_write_run;

/* Sets how many bytes are joined. A run that `keeps` loses nothing when a write fails: SQLite undoes
 * the statement that could not write to the journal, and may go on with the journal. After a failed
 * write to the database file SQLite plays the journal back, so those bytes are dropped. */
void brc_write_run_init(brc_write_run *run, size_t size, int keeps);

/* Like xWrite, xRead and xFileSize of `file`, whose bytes in `run` count as written. A write may
 * fail for bytes that an earlier one gave. */
int brc_write_run_add(brc_write_run *run, sqlite3_file *file, const void *data, int len,
                      sqlite3_int64 at);
int brc_write_run_read(const brc_write_run *run, sqlite3_file *file, void *into, int len,
                       sqlite3_int64 at);
int brc_write_run_file_size(const brc_write_run *run, sqlite3_file *file, sqlite3_int64 *size);

/* Writes the bytes that are in memory. */
int brc_write_run_flush(brc_write_run *run, sqlite3_file *file);
/* Drops the bytes in memory from the offset `size` on. */
void brc_write_run_cut(brc_write_run *run, sqlite3_int64 size);
/* Frees the memory; bytes that are not flushed are lost. */
void brc_write_run_dispose(brc_write_run *run);

#endif
