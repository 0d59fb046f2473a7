/* Collects garbage. */
#include <stddef.h>

#include "../base/process.h"
#include "../base/sized.h"
#include "../store/collect.h"
#include "../work/session.h"
#include "gc.h"
#include "usage.h"

static int tell_step(void *ctx, brc_error *err)
{
    return brc_task_step(ctx, 0, err);
}

static int gc_check(breccia *repo, const brc_gc_opts *opts, brc_error *err)
{
    BRC_TRY(brc_flags_check(opts->flags, BRC_GC_DRY_RUN | BRC_GC_EXPUNGE, "brc_gc_opts", err));
    if (opts->flags & BRC_GC_DRY_RUN)
        return BRC_OK;
    BRC_TRY(brc_store_writable(repo->store, err));
    if (brc_store_in_write(repo->store) || brc_store_in_bulk(repo->store))
        return brc_fail(err, BRC_EMISUSE, "garbage cannot be collected within a transaction");
    return BRC_OK;
}

static int gc_window(breccia *repo, const brc_gc_opts *opts, brc_gc_job *job, brc_error *err)
{
    if (opts->keep != NULL)
        return brc_window_of(opts->keep, job->now_us, &job->window, err);
    BRC_TRY(brc_store_begin_read(repo->store, err));
    int rc = brc_window_get(repo->store, job->now_us, &job->window, err);
    brc_store_end_read(repo->store);
    return rc;
}

static int gc_work(breccia *repo, const brc_gc_opts *opts, brc_gc_job *job, brc_error *err)
{
    BRC_TRY(gc_window(repo, opts, job, err));
    return opts->flags & BRC_GC_DRY_RUN ? brc_gc_count(job, repo->store, err)
                                        : brc_gc_collect(job, repo->store, err);
}

/* Names the part that was done: unlike other calls, an interrupted collection has done some of its
 * work. */
static int gc_stopped(const breccia *repo, const brc_gc_opts *opts, int rc, brc_error *err)
{
    if (rc != BRC_EINTERRUPT || opts->flags & BRC_GC_DRY_RUN)
        return rc;
    return brc_fail(err, rc,
                    "stopped on request; objects that were removed from %s stay removed, and the "
                    "next gc continues",
                    brc_store_path(repo->store));
}

int brc_gc(breccia *repo, const brc_gc_opts *given, brc_gc_report *out, brc_error *err)
{
    brc_gc_opts opts;
    brc_gc_report report = BRC_GC_REPORT_INIT;
    BRC_TRY(brc_sized_in(&opts, sizeof(opts), offsetof(brc_gc_opts, memory), given, "brc_gc_opts",
                         err));
    BRC_TRY(gc_check(repo, &opts, err));
    brc_gc_job job = {.now_us = brc_now_us(),
                      .memory = opts.memory > 0 ? opts.memory : repo->pipe.memory / 4,
                      .expunge = (opts.flags & BRC_GC_EXPUNGE) != 0,
                      .step = tell_step,
                      .ctx = repo};
    brc_task task = brc_task_begin(repo, "collect", 0);
    brc_store_walk_begin(repo->store);
    int rc = gc_work(repo, &opts, &job, err);
    brc_store_walk_end(repo->store);
    brc_task_end(repo, &task, rc);
    report.objects_removed = job.objects;
    report.bytes_freed = job.bytes;
    rc = gc_stopped(repo, &opts, rc, err);
    if (rc == BRC_OK)
        rc = brc_store_file_bytes(repo->store, &report.file_bytes, err);
    if (out == NULL)
        return rc;
    int given_out = brc_sized_out(out, &report, sizeof(report),
                                  offsetof(brc_gc_report, file_bytes), "brc_gc_report",
                                  rc < 0 ? NULL : err);
    return rc < 0 ? rc : given_out;
}
