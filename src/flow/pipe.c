#include "pipe.h"

#include <stdlib.h>
#include <string.h>

#include "../base/alloc.h"

int brc_pipe_init(brc_pipe *pipe, brc_pool *pool, size_t memory, brc_error *err)
{
    void *p;
    memset(pipe, 0, sizeof(*pipe));
    BRC_TRY(brc_new_array(&p, brc_pool_threads(pool), sizeof(brc_pipe_worker), err));
    pipe->pool = pool;
    pipe->memory = memory;
    pipe->nworkers = brc_pool_threads(pool);
    pipe->workers = p;
    return BRC_OK;
}

void brc_pipe_dispose(brc_pipe *pipe)
{
    for (unsigned i = 0; pipe->workers != NULL && i < pipe->nworkers; i++) {
        brc_scratch_free(pipe->workers[i].scratch);
        brc_buf_dispose(&pipe->workers[i].chunk);
        brc_buf_dispose(&pipe->workers[i].kept);
    }
    free(pipe->workers);
    brc_window_dispose(&pipe->reading);
    brc_window_dispose(&pipe->writing);
    free(pipe->list);
    memset(pipe, 0, sizeof(*pipe));
}

int brc_pipe_check(const brc_pipe *pipe, brc_error *err)
{
    return pipe->stop != NULL && atomic_load(pipe->stop)
               ? brc_fail(err, BRC_EINTERRUPT, "interrupted")
               : BRC_OK;
}

int brc_pipe_scratch(brc_pipe *pipe, unsigned worker, brc_scratch **out, brc_error *err)
{
    brc_pipe_worker *w = &pipe->workers[worker];
    if (w->scratch == NULL)
        BRC_TRY(brc_scratch_new(&w->scratch, err));
    *out = w->scratch;
    return BRC_OK;
}

/* Half of the budget may stay for the next time, beside what is in flight then. */
void brc_pipe_trim_buf(const brc_pipe *pipe, brc_buf *buf, size_t n)
{
    if (buf->cap > pipe->memory / 2 / n)
        brc_buf_dispose(buf);
}

/* The codecs' scratch is as large as the chunks that were decoded. */
void brc_pipe_trim(brc_pipe *pipe, unsigned worker)
{
    brc_pipe_worker *w = &pipe->workers[worker];
    size_t held = w->chunk.cap + w->kept.cap;
    brc_pipe_trim_buf(pipe, &w->chunk, 2 * (size_t)pipe->nworkers);
    brc_pipe_trim_buf(pipe, &w->kept, 2 * (size_t)pipe->nworkers);
    if (w->chunk.cap + w->kept.cap < held) {
        brc_scratch_free(w->scratch);
        w->scratch = NULL;
    }
}

int brc_pipe_window(brc_pipe *pipe, brc_window *window, size_t per_thread, size_t least,
                    size_t job_size, void (*dispose)(brc_window_job *job), brc_error *err)
{
    const size_t cap = per_thread * pipe->nworkers + 1;
    if (window->jobs != NULL)
        return BRC_OK;
    return brc_window_init(window, cap > least ? cap : least, job_size, dispose, err);
}
