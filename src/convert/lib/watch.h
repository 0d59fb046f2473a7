/*
 * What ends a converter that is stuck in a damaged file. Libraries follow offsets and links
 * that a stranger wrote, and may do so for ever, without a byte read or written: then the
 * caller sees silence, and a converter whose caller is gone would never notice.
 *
 * Time is the process's own time on the processor, counted from the last sign of progress, so
 * neither a slow disk nor a slow reader of the stream matters.
 */
#ifndef BRC_CONVERT_LIB_WATCH_H
#define BRC_CONVERT_LIB_WATCH_H

#include <time.h>

#include "../../base/error.h"

#define BRC_WATCH_SECONDS 120 /* more than the slowest chunk takes */

typedef struct brc_watch {
    timer_t timer;
    int seconds;
    int started;
    char sentence[512]; /* what standard error is told at the end */
} brc_watch;

/* The process exits with BRC_ELIMIT's status when this many seconds have passed since the
 * last step. `file` is for the message. The watch must stay where it is. */
BRC_MUST_USE int brc_watch_start(brc_watch *w, const char *file, int seconds, brc_error *err);
/* A sign of progress: a document, a chunk. A watch that was not started takes it too. */
void brc_watch_step(brc_watch *w);

#endif
