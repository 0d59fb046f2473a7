/*
 * A file without a name, for data that must wait for the rest; its pieces are written and read in any order. The file
 * lies in the folder of the exported file, and takes as much room there.
 */
#ifndef BRC_CONVERT_LIB_SPOOL_H
#define BRC_CONVERT_LIB_SPOOL_H

#include <time.h>

#include "../../base/buf.h"
#include "../../base/error.h"

/* ---- watch -------------------------------- */

/*
 * A watch ends a converter that is stuck in a damaged file. Libraries follow offsets and links
 * that a stranger wrote, and may do so forever without reading or writing a byte: then the
 * caller would get no answer, and a converter whose caller is gone would never notice.
 *
 * Time is the process's own time on the processor, counted from the last sign of progress, so
 * neither a slow disk nor a slow reader of the stream matters.
 */

#define BRC_WATCH_SECONDS 120 /* more than the slowest chunk takes */

typedef struct brc_watch {
    timer_t timer;
    int seconds;
    int started;
    char sentence[512]; /* the message on standard error at the end */
} brc_watch;

/* The process exits with BRC_ELIMIT's status when this many seconds have passed since the
 * last step. `file` is for the message. The watch must stay where it is. */
BRC_MUST_USE int brc_watch_start(brc_watch *w, const char *file, int seconds, brc_error *err);
/* Notes a sign of progress, such as a document or a chunk. The watch need not have been started. */
void brc_watch_step(brc_watch *w);

/* ---- spool -------------------------------- */

typedef struct brc_spool {
    int fd;         /* -1: not open                    */
    uint64_t end;   /* the place of the next piece */
    const char *file; /* the file beside which it lies */
} brc_spool;
#define BRC_SPOOL_INIT { -1, 0, 0 }

/* Opens the spool. `file` must stay valid. */
BRC_MUST_USE int brc_spool_open(brc_spool *spool, const char *file, brc_error *err);
void brc_spool_close(brc_spool *spool);
/* Takes room for this many bytes, which are all zeros. */
BRC_MUST_USE int brc_spool_take(brc_spool *spool, uint64_t bytes, uint64_t *at, brc_error *err);
BRC_MUST_USE int brc_spool_write(const brc_spool *spool, uint64_t at, const void *data, size_t len, brc_error *err);
BRC_MUST_USE int brc_spool_read(const brc_spool *spool, uint64_t at, void *data, size_t len, brc_error *err);
/* Gives up all pieces. */
BRC_MUST_USE int brc_spool_clear(brc_spool *spool, brc_error *err);

#endif
