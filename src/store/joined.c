/* Joined writes: see joined.h. */
#include "joined.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

void brc_joined_init(brc_joined *run, size_t size, int keeps)
{
    *run = (brc_joined){.size = size, .keeps = keeps, .fd = -1};
}

void brc_joined_early(brc_joined *run, int fd)
{
    run->fd = fd;
}

#ifdef SYNC_FILE_RANGE_WRITE

/*
 * The stretch of the file that was written without a gap:
 *
 *      on_way                 begun              written
 *      |   the disk writes    |   in memory      |
 *
 * The disk begins with each STEP. With more than MOST on its way the thread waits for the first of
 * it, so that the sync has not much left, however slow the disk is. Errors show in the sync.
 */
static void begin_early(brc_joined *run, sqlite3_int64 at, sqlite3_int64 len)
{
    enum { STEP = 2 << 20, MOST = 32 << 20 };
    if (run->fd < 0)
        return;
    if (at != run->written)
        run->on_way = run->begun = at;
    run->written = at + len;
    if (run->written - run->begun < STEP)
        return;
    (void)!sync_file_range(run->fd, run->begun, run->written - run->begun, SYNC_FILE_RANGE_WRITE);
    run->begun = run->written;
    if (run->begun - run->on_way <= MOST)
        return;
    (void)!sync_file_range(run->fd, run->on_way, STEP, SYNC_FILE_RANGE_WAIT_BEFORE);
    run->on_way += STEP;
}

#else

static void begin_early(brc_joined *run, sqlite3_int64 at, sqlite3_int64 len)
{
    (void)run, (void)at, (void)len;
}

#endif

int brc_joined_flush(brc_joined *run, sqlite3_file *file)
{
    if (run->len == 0)
        return SQLITE_OK;
    int rc = file->pMethods->xWrite(file, run->bytes, (int)run->len, run->at);
    if (rc == SQLITE_OK)
        begin_early(run, run->at, (sqlite3_int64)run->len);
    if (rc == SQLITE_OK || !run->keeps)
        run->len = 0;
    return rc;
}

int brc_joined_write(brc_joined *run, sqlite3_file *file, const void *data, int len,
                     sqlite3_int64 at)
{
    const size_t more = (size_t)len;
    if (run->len > 0 && (at != run->at + (sqlite3_int64)run->len || more > run->size - run->len)) {
        int rc = brc_joined_flush(run, file);
        if (rc != SQLITE_OK)
            return rc;
    }
    if (run->bytes == NULL && more <= run->size)
        run->bytes = malloc(run->size);
    if (run->bytes == NULL || more > run->size)
        return file->pMethods->xWrite(file, data, len, at);
    if (run->len == 0)
        run->at = at;
    memcpy(run->bytes + run->len, data, more);
    run->len += more;
    return SQLITE_OK;
}

int brc_joined_read(const brc_joined *run, sqlite3_file *file, void *into, int len,
                    sqlite3_int64 at)
{
    const sqlite3_int64 end = at + len, run_end = run->at + (sqlite3_int64)run->len;
    const sqlite3_int64 from = at > run->at ? at : run->at, to = end < run_end ? end : run_end;
    int rc = SQLITE_OK;
    if (run->len == 0 || from > at || to < end)
        rc = file->pMethods->xRead(file, into, len, at);
    if (run->len == 0 || (rc != SQLITE_OK && rc != SQLITE_IOERR_SHORT_READ))
        return rc;
    if (from < to)
        memcpy((uint8_t *)into + (from - at), run->bytes + (from - run->at), (size_t)(to - from));
    return end <= run_end ? SQLITE_OK : rc; /* a hole before the run is zeros */
}

int brc_joined_size(const brc_joined *run, sqlite3_file *file, sqlite3_int64 *size)
{
    int rc = file->pMethods->xFileSize(file, size);
    if (rc == SQLITE_OK && run->len > 0 && *size < run->at + (sqlite3_int64)run->len)
        *size = run->at + (sqlite3_int64)run->len;
    return rc;
}

void brc_joined_cut(brc_joined *run, sqlite3_int64 size)
{
    if (run->len > 0 && size <= run->at)
        run->len = 0;
    else if (run->len > 0 && size < run->at + (sqlite3_int64)run->len)
        run->len = (size_t)(size - run->at);
}

void brc_joined_dispose(brc_joined *run)
{
    free(run->bytes);
    *run = (brc_joined){0};
}
