#include "pipe.h"

#include <stdlib.h>
#include <string.h>

#include "../base/alloc.h"
#include "read_pipeline.h"

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
    }
    free(pipe->workers);
    brc_read_jobs_free(pipe);
    memset(pipe, 0, sizeof(*pipe));
}

int brc_pipe_scratch(brc_pipe *pipe, unsigned worker, brc_scratch **out, brc_error *err)
{
    brc_pipe_worker *w = &pipe->workers[worker];
    if (w->scratch == NULL)
        BRC_TRY(brc_scratch_new(&w->scratch, err));
    *out = w->scratch;
    return BRC_OK;
}
