#include "repack.h"

#include <inttypes.h>
#include <stddef.h>
#include <string.h>

#include "../base/node_path.h"
#include "../base/sized.h"
#include "../store/bases.h"
#include "../zarr/array/array.h"

typedef struct repack_run {
    breccia *repo;
    const brc_repack_opts *opts;
    brc_repack_report *report;
    brc_repack_walk walk;
    brc_repack_packs packs;
    brc_again again;
    brc_repack_deltas deltas;
} repack_run;

static int is_dry(const repack_run *r)
{
    return (r->opts->flags & BRC_REPACK_DRY_RUN) != 0;
}

/* ---- the options -------------------------------- */

static int is_about_deltas(const brc_repack_opts *opts)
{
    return (opts->flags & (BRC_REPACK_DELTA | BRC_REPACK_WHOLE)) != 0;
}

static int check_deltas(const brc_repack_opts *opts, brc_error *err)
{
    const uint32_t both = BRC_REPACK_DELTA | BRC_REPACK_WHOLE;
    if (opts->delta_depth > BRC_DELTA_DEPTH_MOST)
        return brc_fail(err, BRC_EINVAL, "the depth of differences is %u, and %d is the most",
                        (unsigned)opts->delta_depth, BRC_DELTA_DEPTH_MOST);
    if ((opts->flags & both) == both)
        return brc_fail(err, BRC_EINVAL, "chunks become differences, or whole: not both");
    if (opts->delta_depth > 0 && !(opts->flags & BRC_REPACK_DELTA))
        return brc_fail(err, BRC_EINVAL, "a depth belongs to chunks that become differences");
    if (is_about_deltas(opts) && (opts->backend_json != NULL || opts->codecs_json != NULL))
        return brc_fail(err, BRC_EINVAL,
                        "chunks become differences in a call of their own: give the backend or the "
                        "codecs to a call before it");
    return BRC_OK;
}

static int repack_check(breccia *repo, const brc_repack_opts *opts, brc_error *err)
{
    brc_json *codecs = NULL;
    BRC_TRY(brc_flags_check(opts->flags, BRC_REPACK_DRY_RUN | BRC_REPACK_DELTA | BRC_REPACK_WHOLE,
                            "brc_repack_opts", err));
    BRC_TRY(check_deltas(opts, err));
    if (opts->codecs_json != NULL) {
        const size_t len = strlen(opts->codecs_json);
        const int rc = brc_json_parse(&codecs, opts->codecs_json, len, 0, err);
        brc_json_free(codecs);
        if (rc < 0) {
            brc_context(err, "codecs");
            return rc;
        }
    }
    if (opts->codecs_json == NULL && opts->backend_json == NULL && !is_about_deltas(opts) &&
        (opts->path != NULL || opts->older_than_us != 0))
        return brc_fail(err, BRC_EINVAL,
                        "a path or a time needs a backend, codecs or differences to go with");
    if (opts->flags & BRC_REPACK_DRY_RUN)
        return BRC_OK;
    BRC_TRY(brc_store_writable(repo->store, err));
    if (brc_store_in_write(repo->store) || brc_store_in_bulk(repo->store))
        return brc_fail(err, BRC_EMISUSE, "a repository cannot be repacked within a transaction");
    return BRC_OK;
}

/* Gives the backend its number before anything is put there, so that a collection of garbage knows
 * of it whatever happens to this process. */
static int backend_of_full(const repack_run *r, const char *full, int64_t *id, brc_error *err)
{
    brc_store *store = r->repo->store;
    brc_store_backend *b;
    if (is_dry(r)) {
        BRC_TRY(brc_store_begin_read(store, err));
        const int rc = brc_backend_find(store, full, id, err);
        brc_store_end_read(store);
        *id = *id < 0 ? INT64_MAX : *id; /* the file does not have it yet */
        return rc;
    }
    BRC_TRY(brc_store_begin(store, err));
    int rc = brc_backend_intern(store, full, id, err);
    if (rc == BRC_OK)
        rc = brc_backend_use(store, *id, &b, err);
    if (rc == BRC_OK && !brc_backend_can_put(b))
        rc = brc_fail(err, BRC_EUNSUPPORTED,
                      "this backend can only be read: choose another one for the chunks");
    const int end = brc_store_end(store, rc == BRC_OK, rc == BRC_OK ? err : NULL);
    return rc < 0 ? rc : end;
}

static int find_backend_number(const repack_run *r, int64_t *id, brc_error *err)
{
    brc_buf full = BRC_BUF_INIT;
    *id = -1;
    if (r->opts->backend_json == NULL)
        return BRC_OK;
    int rc = brc_backend_of_text(r->repo->registry, r->opts->backend_json, &full, err);
    if (rc == BRC_OK)
        rc = backend_of_full(r, (const char *)full.data, id, err);
    brc_buf_dispose(&full);
    return rc;
}

/* ---- chunks -------------------------------- */

static int repack_next(void *ctx, brc_again_item *out, brc_error *err)
{
    return brc_repack_walk_next(&((repack_run *)ctx)->walk, out, err);
}

static int repack_step(void *ctx, uint64_t bytes, brc_error *err)
{
    return brc_task_step(((repack_run *)ctx)->repo, bytes, err);
}

static void repack_name(void *ctx, const brc_oid *id, brc_error *err)
{
    char hex[65];
    (void)ctx;
    brc_context(err, "the chunk of object %s", brc_oid_format(hex, id));
}

/* Objects that cannot be read stay as they are. */
static brc_again again_with(repack_run *r,
                            int (*next)(void *ctx, brc_again_item *out, brc_error *err))
{
    return (brc_again){
        .pipe = &r->repo->pipe,
        .store = r->repo->store,
        .ctx = r,
        .next = next,
        .step = repack_step,
        .name = repack_name,
        .leaves = 1,
        .why = BRC_ERROR_INIT,
    };
}

static int store_some(void *ctx, brc_error *err)
{
    return brc_again_run(&((repack_run *)ctx)->again, err);
}

static int count_some(repack_run *r, brc_error *err)
{
    BRC_TRY(brc_store_begin_read(r->repo->store, err));
    const int rc = brc_again_count(&r->again, err);
    brc_store_end_read(r->repo->store);
    return rc;
}

/* Stores the chunks again up to the next pause of the list. */
static int repack_some(repack_run *r, brc_error *err)
{
    brc_store *store = r->repo->store;
    if (is_dry(r))
        return count_some(r, err);
    int rc = brc_again_in_steps(store, store_some, r, err);
    const int end = rc == BRC_OK ? brc_store_end(store, 1, err) : BRC_OK;
    return rc < 0 ? rc : end;
}

static int begin_walk(repack_run *r, brc_error *err)
{
    BRC_TRY(brc_store_begin_read(r->repo->store, err));
    const int rc = brc_repack_walk_begin(&r->walk, err);
    brc_store_end_read(r->repo->store);
    return rc;
}

static int check_walk(const repack_run *r, brc_error *err)
{
    const brc_repack_walk *w = &r->walk;
    if (!w->found && strcmp(w->path, "/") != 0)
        return brc_fail(err, BRC_ENOTFOUND, "no version has a node %s", w->path);
    if (w->codecs == NULL || w->usable > 0 || w->unfit.code == 0)
        return BRC_OK;
    brc_error_copy(err, &w->unfit);
    brc_context(err, "the codecs fit no array");
    return w->unfit.code;
}

static int repack_chunks(repack_run *r, brc_error *err)
{
    int rc = begin_walk(r, err);
    do {
        if (rc == BRC_OK)
            rc = repack_some(r, err);
    } while (rc == BRC_OK && brc_repack_walk_resume(&r->walk));
    return rc == BRC_OK ? check_walk(r, err) : rc;
}

/* ---- differences -------------------------------- */

static int repack_next_delta(void *ctx, brc_again_item *out, brc_error *err)
{
    return brc_repack_deltas_next(&((repack_run *)ctx)->deltas, out, err);
}

/* Collects the objects that stay whole: of the last versions, or of all that are newer, of any
 * array, because arrays share objects. */
static int begin_deltas(repack_run *r, brc_error *err)
{
    brc_repack_walk *w = &r->walk;
    const char *path = w->path;
    w->path = "/";
    if (w->older_than == 0)
        w->older_than = INT64_MAX;
    BRC_TRY(brc_store_begin_read(r->repo->store, err));
    int rc = brc_repack_walk_begin(w, err);
    if (rc == BRC_OK)
        rc = brc_repack_walk_newer(w, err);
    brc_store_end_read(r->repo->store);
    w->path = path;
    w->found = 0;
    return rc;
}

static int deltas_whole(repack_run *r, brc_error *err)
{
    int there;
    BRC_TRY(brc_store_begin_read(r->repo->store, err));
    const int rc = brc_deltas_there(r->repo->store, &there, err);
    brc_store_end_read(r->repo->store);
    return rc < 0 || !there ? rc : brc_repack_deltas_whole(&r->deltas, err);
}

static int repack_deltas(repack_run *r, brc_error *err)
{
    const int is_whole = (r->opts->flags & BRC_REPACK_WHOLE) != 0;
    const uint32_t depth = r->opts->delta_depth;
    r->again.next = repack_next_delta;
    r->deltas = (brc_repack_deltas){
        .walk = &r->walk,
        .most = is_whole ? 0 : depth > 0 ? depth : BRC_DELTA_DEPTH,
        .is_dry = is_dry(r),
        .step = repack_step,
        .ctx = r,
        .why = BRC_ERROR_INIT,
        .depths = BRC_ID_TABLE_INIT(sizeof(uint64_t)),
    };
    int rc = begin_deltas(r, err);
    if (rc == BRC_OK)
        rc = deltas_whole(r, err);
    if (rc == BRC_OK && !is_whole)
        rc = repack_some(r, err);
    const brc_repack_deltas *d = &r->deltas;
    r->again.objects += d->objects;
    r->again.before += d->before;
    r->again.after += d->after;
    if (d->left > 0 && r->again.left == 0)
        brc_error_copy(&r->again.why, &d->why);
    r->again.left += d->left;
    brc_repack_deltas_dispose(&r->deltas);
    return rc == BRC_OK ? check_walk(r, err) : rc;
}

static int repack_with(repack_run *r, const char *path, brc_error *err)
{
    int64_t backend;
    BRC_TRY(find_backend_number(r, &backend, err));
    r->walk = (brc_repack_walk){
        .repo = r->repo,
        .store = r->repo->store,
        .path = path,
        .codecs = r->opts->codecs_json,
        .older_than = r->opts->older_than_us,
        .backend = backend,
    };
    r->again = again_with(r, repack_next);
    const int rc = is_about_deltas(r->opts) ? repack_deltas(r, err) : repack_chunks(r, err);
    r->report->objects = r->again.objects;
    r->report->bytes_before = r->again.before;
    r->report->bytes_after = r->again.after;
    r->report->sampled = r->again.tried;
    r->report->unreadable = r->again.left;
    r->report->misfits = r->walk.misfits;
    brc_repack_walk_dispose(&r->walk);
    return rc;
}

/* ---- rows -------------------------------- */

static int rows_step(void *ctx, brc_error *err)
{
    return brc_task_step(ctx, 0, err);
}

static int fill_rows(repack_run *r, brc_error *err)
{
    brc_repack_rows rows = {.store = r->repo->store,
                            .step = rows_step,
                            .ctx = r->repo,
                            .dry = is_dry(r)};
    const int rc = brc_repack_rows_run(&rows, err);
    r->report->objects = rows.objects;
    r->report->bytes_before = r->report->bytes_after = rows.bytes;
    r->report->rows = rows.rows;
    return rc;
}

/* ---- packs -------------------------------- */

static int packs_next(void *ctx, brc_again_item *out, brc_error *err)
{
    (void)err;
    return brc_repack_packs_next(&((repack_run *)ctx)->packs, out);
}

static int move_out_of_packs(repack_run *r, brc_error *err)
{
    r->again = again_with(r, packs_next);
    const int rc = repack_some(r, err);
    r->report->objects += r->again.objects;
    r->report->bytes_before += r->again.before;
    r->report->bytes_after += r->again.after;
    r->report->unreadable = r->again.left;
    return rc;
}

/* Puts the objects of small packs together in others. Collections of garbage remove the packs that
 * are left. */
static int join_packs(repack_run *r, brc_error *err)
{
    r->packs = (brc_repack_packs){.store = r->repo->store, .step = repack_step, .ctx = r};
    int rc = brc_repack_packs_find(&r->packs, err);
    if (rc == BRC_OK && r->packs.nobjects > 0)
        rc = move_out_of_packs(r, err);
    r->report->rows += r->packs.count;
    brc_repack_packs_dispose(&r->packs);
    return rc;
}

/* ---- brc_repack -------------------------------- */

static int repack_work(repack_run *r, brc_error *err)
{
    brc_buf path = BRC_BUF_INIT;
    int rc;
    if (r->opts->backend_json == NULL && r->opts->codecs_json == NULL &&
        !is_about_deltas(r->opts)) {
        rc = fill_rows(r, err);
        return rc == BRC_OK ? join_packs(r, err) : rc;
    }
    rc = brc_path_normal(&path, r->opts->path != NULL ? r->opts->path : "/", err);
    if (rc == BRC_OK)
        rc = brc_buf_terminate(&path, err);
    if (rc == BRC_OK)
        rc = repack_with(r, (const char *)path.data, err);
    brc_buf_dispose(&path);
    return rc;
}

/* Says what was done in spite of a failure. */
static int repack_result(const repack_run *r, int rc, brc_error *err)
{
    const char *file = brc_store_path(r->repo->store);
    if (rc == BRC_EINTERRUPT && !is_dry(r))
        return brc_fail(err, rc,
                        "stopped on request; chunks of %s that were stored again stay so, and the "
                        "next repack with the same options continues",
                        file);
    if (rc < 0 || r->again.left == 0)
        return rc;
    if (err != NULL) {
        brc_error_copy(err, &r->again.why);
        brc_context(err, "%s: %" PRIu64 " object%s cannot be read and stay%s as %s; the others %s",
                    file, r->again.left, r->again.left == 1 ? "" : "s",
                    r->again.left == 1 ? "s" : "", r->again.left == 1 ? "it is" : "they are",
                    is_dry(r) ? "were counted" : "were stored again");
    }
    return r->again.why.code;
}

int brc_repack(breccia *repo, const brc_repack_opts *given, brc_repack_report *out, brc_error *err)
{
    brc_repack_opts opts;
    brc_repack_report report = BRC_REPACK_REPORT_INIT;
    BRC_TRY(brc_sized_in(&opts, sizeof(opts), offsetof(brc_repack_opts, backend_json), given,
                         "brc_repack_opts", err));
    BRC_TRY(repack_check(repo, &opts, err));
    repack_run r = {.repo = repo, .opts = &opts, .report = &report};
    brc_task task = brc_task_begin(repo, "repack", 0);
    brc_store_walk_begin(repo->store);
    int rc = repack_work(&r, err);
    brc_store_walk_end(repo->store);
    brc_task_end(repo, &task, rc);
    rc = repack_result(&r, rc, err);
    if (out == NULL)
        return rc;
    const int told = brc_sized_out(out, &report, sizeof(report),
                                   offsetof(brc_repack_report, sampled), "brc_repack_report",
                                   rc < 0 ? NULL : err);
    return rc < 0 ? rc : told;
}
