/* What a repository's sessions and arrays share. */
#ifndef BRC_ZARR_REPO_H
#define BRC_ZARR_REPO_H

#include "../flow/pipe.h"
#include "../store/shared.h"

/* Work that may take long is a task of a number of decoded bytes (0: not known). A task in
 * a task is that part of it: the caller hears of the outermost alone, whose total stays
 * the same and whose count never falls. */
typedef struct brc_task {
    uint64_t end, limit;
} brc_task;

struct breccia {
    size_t refs; /* the handle, and everything opened from it */
    brc_store *store;
    const brc_registry *registry;
    brc_open_opts opened; /* as it was opened, for another handle; never changes */
    char *vfs;            /* its opts.vfs */
    brc_shared *shared;   /* with the other handles of this file */
    brc_pipe pipe;
    char *libexec; /* the folder of the converters; NULL: this build's own */
    brc_progress_fn progress;
    void *progress_ctx;
    const char *task_phase; /* of the outermost task, as are the next two */
    uint64_t task_done, task_total;
    uint64_t task_limit; /* of the innermost task: its share of the work */
    unsigned task_depth;
    brc_task caller_task; /* of brc_progress_begin() */
    uint64_t changes;    /* counts what this handle's sessions change */
};

breccia *brc_repo_ref(breccia *repo);
void brc_repo_unref(breccia *repo);

/* Ends what brc_begin() began: it is kept if `rc`, the result so far, is not an error.
 * Returns `rc`, or the failure to keep it. */
BRC_MUST_USE int brc_end_with(breccia *repo, int rc, brc_error *err);

brc_task brc_task_begin(breccia *repo, const char *phase, uint64_t bytes);
/* Sets the bytes of the outermost task, if they were not known when it began. */
void brc_task_know(breccia *repo, uint64_t bytes);
/* That many more bytes are done; tells the caller's progress function, and looks for
 * interruption. */
BRC_MUST_USE int brc_task_step(breccia *repo, uint64_t bytes, brc_error *err);
/* rc: how it went; where well, all of it is done. */
void brc_task_end(breccia *repo, const brc_task *task, int rc);

#endif
