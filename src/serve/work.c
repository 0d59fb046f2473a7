#include "work.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "../breccia_codec.h"

struct serve_work {
    pthread_mutex_t lock;
    pthread_cond_t news;
    serve_job *first, **end;
    size_t n, most;
    int is_closed;
    unsigned nthreads;
    pthread_t threads[];
};

static void *work_loop(void *arg)
{
    serve_work *work = arg;
    pthread_mutex_lock(&work->lock);
    for (;;) {
        serve_job *job = work->first;
        if (job == NULL) {
            if (work->is_closed)
                break;
            pthread_cond_wait(&work->news, &work->lock);
            continue;
        }
        work->first = job->next;
        if (work->first == NULL)
            work->end = &work->first;
        work->n--;
        pthread_mutex_unlock(&work->lock);
        job->run(job);
        pthread_mutex_lock(&work->lock);
    }
    pthread_mutex_unlock(&work->lock);
    return NULL;
}

int serve_work_new(serve_work **out, unsigned threads, size_t most, brc_error *err)
{
    serve_work *work = calloc(1, sizeof(*work) + threads * sizeof(pthread_t));
    *out = NULL;
    if (work == NULL)
        return brc_fail(err, BRC_ENOMEM, "out of memory");
    pthread_mutex_init(&work->lock, NULL);
    pthread_cond_init(&work->news, NULL);
    work->end = &work->first;
    work->most = most;
    for (; work->nthreads < threads; work->nthreads++) {
        const int failed = pthread_create(&work->threads[work->nthreads], NULL, work_loop, work);
        if (failed != 0) {
            serve_work_free(work);
            return brc_fail(err, BRC_EIO, "cannot start a thread: %s", strerror(failed));
        }
    }
    *out = work;
    return BRC_OK;
}

int serve_work_submit(serve_work *work, serve_job *job)
{
    pthread_mutex_lock(&work->lock);
    const int taken = !work->is_closed && work->n < work->most;
    if (taken) {
        job->next = NULL;
        *work->end = job;
        work->end = &job->next;
        work->n++;
        pthread_cond_signal(&work->news);
    }
    pthread_mutex_unlock(&work->lock);
    return taken;
}

void serve_work_close(serve_work *work)
{
    pthread_mutex_lock(&work->lock);
    work->is_closed = 1;
    pthread_cond_broadcast(&work->news);
    pthread_mutex_unlock(&work->lock);
    for (; work->nthreads > 0; work->nthreads--)
        (void)pthread_join(work->threads[work->nthreads - 1], NULL);
}

void serve_work_free(serve_work *work)
{
    if (work == NULL)
        return;
    serve_work_close(work);
    pthread_cond_destroy(&work->news);
    pthread_mutex_destroy(&work->lock);
    free(work);
}
