/* The repository handle: opening, closing, progress, and the contents of a registry. */
#include <stdlib.h>
#include <string.h>

#include "../base/alloc.h"
#include "../base/process.h"
#include "../base/sized.h"
#include "../codec/prototypes.h"
#include "../store/cache.h"
#include "../store/chunk_cache.h"
#include "session.h"

#define DEFAULT_MEMORY ((size_t)256 << 20)
#define MIN_MEMORY ((size_t)1 << 20)

#define TEXT_OF(x) #x
#define VERSION_TEXT(a, b, c) TEXT_OF(a) "." TEXT_OF(b) "." TEXT_OF(c)

const char *brc_version(void)
{
    return VERSION_TEXT(BRC_VERSION_MAJOR, BRC_VERSION_MINOR, BRC_VERSION_PATCH);
}

static int check_readback(int readback, const char *what, brc_error *err)
{
    return readback >= 0 && readback <= BRC_READBACK_NONE
               ? BRC_OK
               : brc_fail(err, BRC_EINVAL, "%s.readback is %d, not BRC_READBACK_ALL, _SAMPLED or "
                                           "_NONE",
                          what, readback);
}

static int take_open_opts(brc_open_opts *out, const brc_open_opts *given, brc_error *err)
{
    BRC_TRY(brc_sized_in(out, sizeof(*out), offsetof(brc_open_opts, memory), given,
                         "brc_open_opts", err));
    BRC_TRY(check_readback(out->readback, "brc_open_opts", err));
    return brc_flags_check(out->flags,
                           BRC_OPEN_READONLY | BRC_OPEN_CREATE | BRC_OPEN_NO_RECOVER,
                           "brc_open_opts", err);
}

static int take_pipeline_opts(brc_pipeline_opts *out, const brc_pipeline_opts *given,
                              brc_error *err)
{
    BRC_TRY(brc_sized_in(out, sizeof(*out), offsetof(brc_pipeline_opts, batch), given,
                         "brc_pipeline_opts", err));
    return check_readback(out->readback, "brc_pipeline_opts", err);
}

/* Sets the registry: the caller's, or one that the handles of the file share. */
static int repo_registry(breccia *repo, const brc_registry *given, brc_error *err)
{
    brc_registry *own = NULL;
    if (given == NULL)
        BRC_TRY(brc_registry_new(&own, err));
    int rc = brc_shared_new(&repo->shared, own, err);
    if (rc < 0) {
        brc_registry_free(own);
        return rc;
    }
    repo->registry = given != NULL ? given : own;
    brc_registry_freeze(repo->registry);
    return BRC_OK;
}

/* Keeps the options of opening, with a copy of the pipeline's text. */
static int keep_pipeline(breccia *repo, const brc_pipeline_opts *given, brc_error *err)
{
    BRC_TRY(take_pipeline_opts(&repo->pipeline, given, err));
    repo->opened.pipeline = &repo->pipeline;
    if (repo->pipeline.pipeline == NULL)
        return BRC_OK;
    BRC_TRY(brc_dup(&repo->pipeline_text, repo->pipeline.pipeline, err));
    repo->pipeline.pipeline = repo->pipeline_text;
    return BRC_OK;
}

static int pipe_init(const breccia *repo, brc_pipe *pipe, const brc_pipeline_opts *given,
                     brc_error *err)
{
    brc_pipeline_opts opts = *given;
    if (opts.memory == 0)
        opts.memory = repo->opened.memory != 0 ? repo->opened.memory : DEFAULT_MEMORY;
    if (opts.memory < MIN_MEMORY)
        opts.memory = MIN_MEMORY;
    return brc_pipe_init(pipe, repo->registry, repo->opened.pool, &opts, err);
}

/* Sets what the pipe and the store take from each other. */
static void pipe_join_store(breccia *repo, const brc_pipeline_opts *opts)
{
    repo->pipe.stop = brc_store_interrupted(repo->store);
    repo->readback = opts->readback != 0 ? opts->readback : repo->opened.readback;
    repo->pipe.readback = repo->readback != 0 ? repo->readback : brc_store_readback(repo->store);
    brc_store_set_ranges(repo->store, opts->gap, opts->range);
}

int brc_pipeline_set(breccia *repo, const brc_pipeline_opts *given, brc_error *err)
{
    brc_pipe pipe;
    brc_pipeline_opts opts = repo->pipeline;
    if (given != NULL)
        BRC_TRY(take_pipeline_opts(&opts, given, err));
    BRC_TRY(pipe_init(repo, &pipe, &opts, err));
    brc_pipe_dispose(&repo->pipe);
    repo->pipe = pipe;
    pipe_join_store(repo, &opts);
    return BRC_OK;
}

/* Opens the store; the registry and the shared state exist already. */
static int repo_setup(breccia *repo, const char *path, const brc_open_opts *opts, brc_error *err)
{
    repo->opened = *opts;
    repo->opened.flags &= ~(uint32_t)BRC_OPEN_CREATE;
    if (opts->libexec != NULL)
        BRC_TRY(brc_dup(&repo->libexec, opts->libexec, err));
    if (opts->cache != NULL)
        BRC_TRY(brc_dup(&repo->cache, opts->cache, err));
    if (opts->vfs != NULL)
        BRC_TRY(brc_dup(&repo->vfs, opts->vfs, err));
    BRC_TRY(keep_pipeline(repo, opts->pipeline, err));
    repo->opened.libexec = repo->libexec;
    repo->opened.vfs = repo->vfs;
    repo->opened.cache = repo->cache;
    if (opts->prototype != NULL) {
        BRC_TRY(brc_prototype_check(repo->registry, opts->prototype, err));
        BRC_TRY(brc_dup(&repo->prototype, opts->prototype, err));
    }
    repo->opened.prototype = repo->prototype;
    repo->progress = opts->progress;
    repo->progress_ctx = opts->progress_ctx;
    BRC_TRY(pipe_init(repo, &repo->pipe, &repo->pipeline, err));
    BRC_TRY(brc_store_open(&repo->store, path, opts, repo->registry, brc_now_us(), err));
    brc_store_share(repo->store, repo->shared);
    if (opts->cache != NULL)
        BRC_TRY(brc_store_use_cache(repo->store, opts->cache, opts->cache_bytes, err));
    pipe_join_store(repo, &repo->pipeline);
    return BRC_OK;
}

static int repo_new(breccia **out, brc_error *err)
{
    void *p;
    BRC_TRY(brc_new(&p, sizeof(breccia), err));
    *out = p;
    (*out)->refs = 1;
    return BRC_OK;
}

/* Returns the new handle, or frees it after a failure. */
static int repo_done(breccia **out, breccia *repo, int rc)
{
    if (rc < 0)
        brc_repo_unref(repo);
    else
        *out = repo;
    return rc;
}

int brc_open(breccia **out, const char *path, const brc_open_opts *given, brc_error *err)
{
    breccia *repo;
    brc_open_opts opts;
    const uint32_t only_read = BRC_OPEN_READONLY | BRC_OPEN_NO_RECOVER;
    *out = NULL;
    if (path == NULL || *path == '\0')
        return brc_fail(err, BRC_EINVAL, "the repository's file needs a name");
    BRC_TRY(take_open_opts(&opts, given, err));
    if ((opts.flags & BRC_OPEN_CREATE) && (opts.flags & only_read))
        return brc_fail(err, BRC_EINVAL, "the flags for opening %s contradict each other", path);
    BRC_TRY(repo_new(&repo, err));
    int rc = repo_registry(repo, opts.registry, err);
    if (rc == BRC_OK)
        rc = repo_setup(repo, path, &opts, err);
    return repo_done(out, repo, rc);
}

/* Opens another handle. Reads only what no call on `from` changes, because another thread may be
 * using `from`. */
int brc_reopen(breccia **out, const breccia *from, brc_error *err)
{
    breccia *repo;
    brc_open_opts opts = from->opened;
    const char *file = brc_store_file(from->store);
    *out = NULL;
    BRC_TRY(brc_store_check_process(from->store, err));
    opts.progress = NULL; /* would be called on another thread */
    BRC_TRY(repo_new(&repo, err));
    repo->shared = brc_shared_ref(from->shared);
    repo->registry = from->registry;
    int rc = repo_setup(repo, file, &opts, err);
    if (rc == BRC_OK && memcmp(brc_store_secret(repo->store), brc_store_secret(from->store),
                               BRC_SECRET_LEN) != 0)
        rc = brc_fail(err, BRC_ESTALE, "%s is not the repository that was opened: it was replaced",
                      file);
    return repo_done(out, repo, rc);
}

void brc_free(breccia *repo)
{
    brc_repo_unref(repo);
}

void brc_interrupt(breccia *repo, int on)
{
    if (on)
        brc_store_interrupt(repo->store);
    else
        brc_store_interrupt_clear(repo->store);
}

void brc_progress_set(breccia *repo, brc_progress_fn progress, void *ctx)
{
    repo->progress = progress;
    repo->progress_ctx = ctx;
}

void brc_progress_begin(breccia *repo, const char *phase, uint64_t total)
{
    repo->caller_task = brc_task_begin(repo, phase, total);
}

void brc_progress_end(breccia *repo, int rc)
{
    brc_task_end(repo, &repo->caller_task, rc);
}

/* ---- the contents of a registry -------------------------------- */

typedef struct registry_list {
    const brc_registry *reg;
    brc_registry *own;
    brc_dtype *open; /* the memory that the last listed data type points to */
    size_t at;
    brc_codec_info codec; /* the items that were returned last */
    brc_dtype_info dtype;
    brc_backend_info backend;
    brc_pipeline_info pipeline;
    brc_prototype_info prototype;
} registry_list;

static void registry_list_dispose(void *state)
{
    registry_list *list = state;
    brc_dtype_free(list->open);
    brc_registry_free(list->own);
}

static int listed_codec(void *state, const void **out, brc_error *err)
{
    registry_list *list = state;
    (void)err;
    *out = &list->codec;
    return brc_registry_each(list->reg, list->at++, &list->codec);
}

static int listed_backend(void *state, const void **out, brc_error *err)
{
    registry_list *list = state;
    (void)err;
    *out = &list->backend;
    return brc_registry_each_backend(list->reg, list->at++, &list->backend);
}

static int listed_pipeline(void *state, const void **out, brc_error *err)
{
    registry_list *list = state;
    (void)err;
    *out = &list->pipeline;
    return brc_registry_each_pipeline(list->reg, list->at++, &list->pipeline);
}

static int listed_prototype(void *state, const void **out, brc_error *err)
{
    registry_list *list = state;
    (void)err;
    *out = &list->prototype;
    return brc_registry_each_prototype(list->reg, list->at++, &list->prototype);
}

static int listed_dtype(void *state, const void **out, brc_error *err)
{
    registry_list *list = state;
    brc_dtype_free(list->open);
    *out = &list->dtype;
    return brc_registry_each_dtype(list->reg, list->at++, &list->open, &list->dtype, err);
}

int brc_registry_list(brc_iter **out, const brc_registry *reg, int what, brc_error *err)
{
    static const brc_iter_next nexts[] = {NULL, listed_codec, listed_dtype, listed_backend,
                                          listed_pipeline, listed_prototype};
    *out = NULL;
    if (what < BRC_LIST_CODECS || what > BRC_LIST_PROTOTYPES)
        return brc_fail(err, BRC_EINVAL, "a registry has no list of the kind %d", what);
    BRC_TRY(brc_iter_new(out, nexts[what], sizeof(registry_list), registry_list_dispose, err));
    registry_list *list = brc_iter_state(*out);
    int rc = BRC_OK;
    if (reg == NULL) {
        rc = brc_registry_new(&list->own, err);
        reg = list->own;
    }
    list->reg = reg;
    if (rc < 0) {
        brc_iter_free(*out);
        *out = NULL;
    }
    return rc;
}
