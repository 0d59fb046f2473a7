/* What a repository's sessions and arrays share. */
#ifndef BRC_ZARR_REPO_H
#define BRC_ZARR_REPO_H

#include "../codec/pipe.h"
#include "../store/store.h"

struct breccia {
    size_t refs; /* the handle, and everything opened from it */
    brc_store *store;
    const brc_registry *registry;
    brc_registry *own_registry; /* where the caller brought none */
    brc_pipe pipe;
    brc_progress_fn progress;
    void *progress_ctx;
    int64_t progress_at; /* when it was last called */
    uint64_t changes;    /* counts what this handle's sessions change */
};

breccia *brc_repo_ref(breccia *repo);
void brc_repo_unref(breccia *repo);
/* Tells the caller's progress function, a few times a second at most, and looks
 * for interruption. */
BRC_MUST_USE int brc_repo_progress(breccia *repo, const char *what, uint64_t done, uint64_t total, brc_error *err);

#endif
