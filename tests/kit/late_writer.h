/* A writer with a handle of its own that comes while another is at work. */
#ifndef BRC_TESTS_LATE_WRITER_H
#define BRC_TESTS_LATE_WRITER_H

#include <pthread.h>
#include <stdatomic.h>

#include "../../src/breccia.h"

/* Makes the group "/g". */
int late_writer_now(const char *file, int wait_ms, brc_error *err);

/* The same in a thread, which waits for a minute. */
typedef struct late_writer {
    const char *file;
    pthread_t thread;
    int rc;
    atomic_int is_over;
    brc_error err;
} late_writer;

void late_writer_start(late_writer *w, const char *file);
/* Waits for the writer, which must have had its turn. */
void late_writer_join(late_writer *w);

#endif
