/* A queue of jobs, with a bound, and the threads that do them. */
#ifndef BRC_SERVE_WORK_H
#define BRC_SERVE_WORK_H

#include "../breccia.h"

typedef struct serve_work serve_work;
typedef struct serve_job serve_job;

/* Embedded in the caller's own structure, which lives until run() has begun. */
struct serve_job {
    void (*run)(serve_job *job);
    serve_job *next;
};

BRC_MUST_USE int serve_work_new(serve_work **out, unsigned threads, size_t most, brc_error *err);
/* Returns 1, or 0 if as many jobs wait as may, or the queue is closed. */
int serve_work_submit(serve_work *work, serve_job *job);
/* Takes no more jobs, and waits until all of them are done. */
void serve_work_close(serve_work *work);
void serve_work_free(serve_work *work);

#endif
