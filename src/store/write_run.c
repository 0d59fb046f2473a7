/* Joined writes: see write_run.h. */
#include "write_run.h"

#include <stdlib.h>
#include <string.h>

void brc_write_run_init(brc_write_run *run, size_t size, int keeps)
{
    *run = (brc_write_run){.size = size, .keeps = keeps};
}

int brc_write_run_flush(brc_write_run *run, sqlite3_file *file)
{
    if (run->len == 0)
        return SQLITE_OK;
    int rc = file->pMethods->xWrite(file, run->bytes, (int)run->len, run->at);
    if (rc == SQLITE_OK || !run->keeps)
        run->len = 0;
    return rc;
}

int brc_write_run_add(brc_write_run *run, sqlite3_file *file, const void *data, int len,
                      sqlite3_int64 at)
{
    const size_t more = (size_t)len;
    if (run->len > 0 && (at != run->at + (sqlite3_int64)run->len || more > run->size - run->len)) {
        int rc = brc_write_run_flush(run, file);
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

int brc_write_run_read(const brc_write_run *run, sqlite3_file *file, void *into, int len,
                       sqlite3_int64 at)
{
    const sqlite3_int64 end = at + len, run_end = run->at + (sqlite3_int64)run->len;
    const sqlite3_int64 from = at > run->at ? at : run->at, to = end < run_end ? end : run_end;
    int rc = SQLITE_OK;
    if (run->len == 0 || from >= to)
        return file->pMethods->xRead(file, into, len, at);
    if (from > at || to < end)
        rc = file->pMethods->xRead(file, into, len, at);
    if (rc != SQLITE_OK && rc != SQLITE_IOERR_SHORT_READ)
        return rc;
    memcpy((uint8_t *)into + (from - at), run->bytes + (from - run->at), (size_t)(to - from));
    return to == end ? SQLITE_OK : rc; /* a hole before the run is zeros */
}

int brc_write_run_file_size(const brc_write_run *run, sqlite3_file *file, sqlite3_int64 *size)
{
    int rc = file->pMethods->xFileSize(file, size);
    if (rc == SQLITE_OK && run->len > 0 && *size < run->at + (sqlite3_int64)run->len)
        *size = run->at + (sqlite3_int64)run->len;
    return rc;
}

void brc_write_run_cut(brc_write_run *run, sqlite3_int64 size)
{
    if (run->len > 0 && size <= run->at)
        run->len = 0;
    else if (run->len > 0 && size < run->at + (sqlite3_int64)run->len)
        run->len = (size_t)(size - run->at);
}

void brc_write_run_dispose(brc_write_run *run)
{
    free(run->bytes);
    *run = (brc_write_run){0};
}
