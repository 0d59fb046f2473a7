/* Opening and closing, transactions: the repository handle. */
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "../base/alloc.h"
#include "../base/process.h"
#include "../base/sized.h"
#include "../care/gc.h"
#include "../history/commit.h"
#include "../work/session.h"
#include "../zarr/array/array.h"

/* ==== repository ================================ */

#define DEFAULT_MEMORY ((size_t)256 << 20)
#define MIN_MEMORY ((size_t)1 << 20)

#define TEXT_OF(x) #x
#define VERSION_TEXT(a, b, c) TEXT_OF(a) "." TEXT_OF(b) "." TEXT_OF(c)

const char *brc_version(void)
{
    return VERSION_TEXT(BRC_VERSION_MAJOR, BRC_VERSION_MINOR, BRC_VERSION_PATCH);
}

int brc_version_number(void)
{
    return BRC_VERSION_NUMBER;
}

static int take_open_opts(brc_open_opts *out, const brc_open_opts *given, brc_error *err)
{
    BRC_TRY(brc_sized_in(out, sizeof(*out), offsetof(brc_open_opts, memory), given,
                         "brc_open_opts", err));
    return brc_flags_check(out->flags,
                           BRC_OPEN_READONLY | BRC_OPEN_CREATE | BRC_OPEN_NO_READBACK |
                               BRC_OPEN_NO_RECOVER,
                           "brc_open_opts", err);
}

/* Where the caller brought no registry, the handles of the file have one of their own. */
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

/* Its registry and what it shares are there already. */
static int repo_setup(breccia *repo, const char *path, const brc_open_opts *opts, brc_error *err)
{
    const size_t memory = opts->memory == 0 ? DEFAULT_MEMORY : opts->memory;
    repo->opened = *opts;
    repo->opened.flags &= ~(uint32_t)BRC_OPEN_CREATE;
    if (opts->libexec != NULL)
        BRC_TRY(brc_dup(&repo->libexec, opts->libexec, err));
    if (opts->vfs != NULL)
        BRC_TRY(brc_dup(&repo->vfs, opts->vfs, err));
    repo->opened.libexec = repo->libexec;
    repo->opened.vfs = repo->vfs;
    repo->progress = opts->progress;
    repo->progress_ctx = opts->progress_ctx;
    BRC_TRY(brc_pipe_init(&repo->pipe, opts->pool, memory < MIN_MEMORY ? MIN_MEMORY : memory, err));
    repo->pipe.no_readback = (opts->flags & BRC_OPEN_NO_READBACK) != 0;
    BRC_TRY(brc_store_open(&repo->store, path, opts, repo->registry, brc_now_us(), err));
    brc_store_share(repo->store, repo->shared);
    repo->pipe.stop = brc_store_interrupted(repo->store);
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

/* Hands the new handle out, or takes it back. */
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

/* Reads only what no call on `from` changes: another thread may be in the middle of one. */
int brc_reopen(breccia **out, const breccia *from, brc_error *err)
{
    breccia *repo;
    brc_open_opts opts = from->opened;
    const char *file = brc_store_file(from->store);
    *out = NULL;
    BRC_TRY(brc_store_check_process(from->store, err));
    opts.progress = NULL; /* it would be called on another thread */
    BRC_TRY(repo_new(&repo, err));
    repo->shared = brc_shared_ref(from->shared);
    repo->registry = from->registry;
    int rc = repo_setup(repo, file, &opts, err);
    if (rc == BRC_OK && memcmp(brc_store_secret(repo->store), brc_store_secret(from->store),
                               BRC_SECRET_LEN) != 0)
        rc = brc_fail(err, BRC_ESTALE, "%s is another repository than the one that was opened",
                      file);
    return repo_done(out, repo, rc);
}

void brc_free(breccia *repo)
{
    brc_repo_unref(repo);
}

void brc_interrupt(breccia *repo)
{
    brc_store_interrupt(repo->store);
}

void brc_interrupt_clear(breccia *repo)
{
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

/* ---- what a registry holds -------------------------------- */

typedef struct registry_list {
    const brc_registry *reg;
    brc_registry *own;
    brc_dtype *open; /* the memory that the last item of a list of data types points to */
    size_t at;
    brc_codec_info codec; /* the items that were handed out */
    brc_dtype_info dtype;
    brc_backend_info backend;
} registry_list;

static void registry_list_dispose(void *state)
{
    registry_list *list = state;
    brc_dtype_free(list->open);
    brc_registry_free(list->own);
}

static int registry_list_new(brc_iter **out, int kind, const brc_registry *reg, brc_error *err)
{
    *out = NULL;
    BRC_TRY(brc_iter_new(out, kind, sizeof(registry_list), registry_list_dispose, err));
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

int brc_registry_codecs(brc_iter **out, const brc_registry *reg, brc_error *err)
{
    return registry_list_new(out, BRC_ITER_CODECS, reg, err);
}

int brc_registry_codecs_next(brc_iter *it, const brc_codec_info **out, brc_error *err)
{
    *out = NULL;
    BRC_TRY(brc_iter_check(it, BRC_ITER_CODECS, err));
    registry_list *list = brc_iter_state(it);
    int rc = brc_registry_each(list->reg, list->at++, &list->codec);
    if (rc > 0)
        *out = &list->codec;
    return rc;
}

int brc_registry_backends(brc_iter **out, const brc_registry *reg, brc_error *err)
{
    return registry_list_new(out, BRC_ITER_BACKENDS, reg, err);
}

int brc_registry_backends_next(brc_iter *it, const brc_backend_info **out, brc_error *err)
{
    *out = NULL;
    BRC_TRY(brc_iter_check(it, BRC_ITER_BACKENDS, err));
    registry_list *list = brc_iter_state(it);
    int rc = brc_registry_each_backend(list->reg, list->at++, &list->backend);
    if (rc > 0)
        *out = &list->backend;
    return rc;
}

int brc_registry_dtypes(brc_iter **out, const brc_registry *reg, brc_error *err)
{
    return registry_list_new(out, BRC_ITER_DTYPES, reg, err);
}

int brc_registry_dtypes_next(brc_iter *it, const brc_dtype_info **out, brc_error *err)
{
    *out = NULL;
    BRC_TRY(brc_iter_check(it, BRC_ITER_DTYPES, err));
    registry_list *list = brc_iter_state(it);
    brc_dtype_free(list->open);
    int rc = brc_registry_each_dtype(list->reg, list->at++, &list->open, &list->dtype, err);
    if (rc > 0)
        *out = &list->dtype;
    return rc;
}

/* ==== settings ================================ */

/* Settings of the repository, by name. */

/* ---- journal -------------------------------- */

static int journal_get(brc_buf *out, breccia *repo, brc_error *err)
{
    int wal;
    BRC_TRY(brc_journal_get(repo->store, &wal, err));
    return brc_buf_text(out, wal ? "wal" : "rollback", err);
}

static int journal_set(breccia *repo, const char *value, brc_error *err)
{
    int wal = value != NULL && strcmp(value, "wal") == 0;
    if (value != NULL && !wal && strcmp(value, "rollback") != 0)
        return brc_fail(err, BRC_EINVAL, "the journal is 'rollback' or 'wal', not '%.80s'", value);
    if (brc_store_in_write(repo->store))
        return brc_fail(err, BRC_EMISUSE, "the journal cannot be set within a transaction");
    return brc_journal_set(repo->store, wal, err);
}

/* ---- backend -------------------------------- */

static int backend_get(brc_buf *out, breccia *repo, brc_error *err)
{
    int rc = brc_setting_find(repo->store, BRC_SETTING_BACKEND, out, err);
    return rc == 0 ? brc_buf_text(out, BRC_INLINE_SPEC, err) : rc < 0 ? rc : BRC_OK;
}

/* The file itself is the default of the default, so it is not stored. */
static int backend_set(breccia *repo, const char *value, brc_error *err)
{
    brc_buf full = BRC_BUF_INIT;
    int rc = brc_backend_of_text(repo->registry, value != NULL ? value : BRC_INLINE, &full, err);
    if (rc == BRC_OK)
        rc = brc_store_begin(repo->store, err);
    if (rc == BRC_OK) {
        const char *json = (const char *)full.data;
        rc = brc_setting_put(repo->store, BRC_SETTING_BACKEND,
                             strcmp(json, BRC_INLINE_SPEC) != 0 ? json : NULL, err);
        int end = brc_store_end(repo->store, rc == BRC_OK, rc == BRC_OK ? err : NULL);
        rc = rc < 0 ? rc : end;
    }
    brc_buf_dispose(&full);
    return rc;
}

/* ---- codecs -------------------------------- */

static int codecs_get(brc_buf *out, breccia *repo, brc_error *err)
{
    int rc = brc_setting_find(repo->store, BRC_SETTING_CODECS, out, err);
    return rc == 0 ? brc_buf_text(out, "chosen", err) : rc < 0 ? rc : BRC_OK;
}

static int codecs_set(breccia *repo, const char *value, brc_error *err)
{
    const int chosen = value == NULL || strcmp(value, "chosen") == 0;
    return brc_default_codecs_set(repo, chosen ? NULL : value, err);
}

/* ---- verify -------------------------------- */

static int verify_get(brc_buf *out, breccia *repo, brc_error *err)
{
    int full;
    BRC_TRY(brc_verify_get(repo->store, &full, err));
    return brc_buf_text(out, full ? "full" : "stored", err);
}

static int verify_set(breccia *repo, const char *value, brc_error *err)
{
    const int full = value != NULL && strcmp(value, "full") == 0;
    if (value != NULL && !full && strcmp(value, "stored") != 0)
        return brc_fail(err, BRC_EINVAL, "what is verified is 'stored' or 'full', not '%.80s'",
                        value);
    BRC_TRY(brc_store_begin(repo->store, err));
    int rc = brc_verify_set(repo->store, full, err);
    const int end = brc_store_end(repo->store, rc == BRC_OK, rc == BRC_OK ? err : NULL);
    return rc < 0 ? rc : end;
}

/* ---- window -------------------------------- */

static int window_get(brc_buf *out, breccia *repo, brc_error *err)
{
    return brc_window_text(repo->store, out, err);
}

static int window_set(breccia *repo, const char *value, brc_error *err)
{
    return brc_window_set(repo->store, value, err);
}

/* ---- by name -------------------------------- */

static const struct {
    const char *name;
    int (*get)(brc_buf *out, breccia *repo, brc_error *err);
    int (*set)(breccia *repo, const char *value, brc_error *err);
} settings[] = {{"journal", journal_get, journal_set}, {"backend", backend_get, backend_set},
              {"codecs", codecs_get, codecs_set}, {"verify", verify_get, verify_set},
              {"window", window_get, window_set}};

static int find_setting(const char *name, size_t *i, brc_error *err)
{
    for (*i = 0; *i < sizeof(settings) / sizeof(settings[0]); ++*i)
        if (strcmp(settings[*i].name, name) == 0)
            return BRC_OK;
    return brc_fail(err, BRC_ENOTFOUND,
                    "there is no setting '%.80s': 'journal', 'backend', 'codecs', 'verify' and "
                    "'window' are the settings", name);
}

int brc_config_get(brc_buf *out, breccia *repo, const char *name, brc_error *err)
{
    size_t i;
    BRC_TRY(find_setting(name, &i, err));
    BRC_TRY(brc_store_begin_read(repo->store, err));
    int rc = settings[i].get(out, repo, err);
    brc_store_end_read(repo->store);
    return rc == BRC_OK ? brc_buf_terminate(out, err) : rc;
}

int brc_config_set(breccia *repo, const char *name, const char *value, brc_error *err)
{
    size_t i;
    BRC_TRY(find_setting(name, &i, err));
    return settings[i].set(repo, value, err);
}
