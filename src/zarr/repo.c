#include "repo.h"

#include <stdlib.h>
#include <time.h>

#define PROGRESS_EVERY_NS 200000000

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
    brc_registry_free(repo->own_registry);
    free(repo);
}

int brc_repo_progress(breccia *repo, const char *what, uint64_t done, uint64_t total,
                      brc_error *err)
{
    BRC_TRY(brc_store_check_interrupt(repo->store, err));
    if (repo->progress == NULL)
        return BRC_OK;
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    int64_t ns = (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
    if (ns - repo->progress_at < PROGRESS_EVERY_NS)
        return BRC_OK;
    repo->progress_at = ns;
    if (repo->progress(repo->progress_ctx, what, done, total) != 0)
        return brc_fail(err, BRC_EINTERRUPT, "stopped on request; %s is as it was",
                        brc_store_path(repo->store));
    return BRC_OK;
}
