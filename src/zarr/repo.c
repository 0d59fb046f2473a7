#include "repo.h"

#include <stdlib.h>

#include "../base/sized.h"

breccia *brc_repo_ref(breccia *repo)
{
    repo->refs++;
    return repo;
}

void brc_repo_unref(breccia *repo)
{
    if (repo == NULL || --repo->refs > 0)
        return;
    brc_pipe_dispose(&repo->pipe);
    brc_store_close(repo->store);
    brc_shared_unref(repo->shared);
    free(repo->vfs);
    free(repo->libexec);
    free(repo);
}

/* ---- transactions -------------------------------- */

int brc_begin(breccia *repo, brc_error *err)
{
    return brc_store_begin(repo->store, err);
}

int brc_end(breccia *repo, uint32_t flags, brc_error *err)
{
    BRC_TRY(brc_flags_check(flags, BRC_END_KEEP, "brc_end()", err));
    const int keep = (flags & BRC_END_KEEP) != 0;
    int rc = brc_store_end(repo->store, keep, err);
    if (!keep || rc < 0) /* what sessions have read of it is gone */
        repo->changes++;
    return rc;
}

int brc_end_with(breccia *repo, int rc, brc_error *err)
{
    int ended = brc_end(repo, rc >= 0 ? BRC_END_KEEP : 0, rc >= 0 ? err : NULL);
    return rc < 0 ? rc : ended;
}

/* ---- tasks -------------------------------- */

static uint64_t add_saturated(uint64_t a, uint64_t b)
{
    return a > UINT64_MAX - b ? UINT64_MAX : a + b;
}

brc_task brc_task_begin(breccia *repo, const char *phase, uint64_t bytes)
{
    if (repo->task_depth++ == 0) {
        repo->task_phase = phase;
        repo->task_done = 0;
        repo->task_total = bytes;
        repo->task_limit = bytes > 0 ? bytes : UINT64_MAX;
    }
    brc_task task = {add_saturated(repo->task_done, bytes), repo->task_limit};
    if (task.end > task.limit)
        task.end = task.limit;
    if (bytes > 0)
        repo->task_limit = task.end;
    return task;
}

void brc_task_know(breccia *repo, uint64_t bytes)
{
    if (repo->task_depth != 1 || repo->task_total > 0 || repo->task_done > 0 || bytes == 0)
        return;
    repo->task_total = repo->task_limit = bytes;
}

static int task_tell(const breccia *repo)
{
    return repo->progress != NULL
               ? repo->progress(repo->progress_ctx, repo->task_phase, repo->task_done,
                                repo->task_total)
               : 0;
}

int brc_task_step(breccia *repo, uint64_t bytes, brc_error *err)
{
    BRC_TRY(brc_store_check_interrupt(repo->store, err));
    if (repo->task_depth == 0)
        return BRC_OK;
    uint64_t done = add_saturated(repo->task_done, bytes);
    repo->task_done = done < repo->task_limit ? done : repo->task_limit;
    if (task_tell(repo) == 0)
        return BRC_OK;
    return brc_fail(err, BRC_EINTERRUPT, "stopped on request; %s is as it was",
                    brc_store_path(repo->store));
}

void brc_task_end(breccia *repo, const brc_task *task, int rc)
{
    repo->task_limit = task->limit;
    if (rc >= 0 && repo->task_done < task->end)
        repo->task_done = task->end;
    if (--repo->task_depth == 0 && rc >= 0)
        (void)task_tell(repo); /* it is too late to stop */
}
