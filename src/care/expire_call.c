/* Thins history. */
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "../base/process.h"
#include "../base/sized.h"
#include "../store/collect.h"
#include "../work/session.h"
#include "expire.h"
#include "usage.h"

typedef struct expired_list {
    brc_expire_plan plan;
    size_t n, at;
    uint64_t bytes;
    brc_expired given;
} expired_list;

static void expired_list_dispose(void *state)
{
    expired_list *list = state;
    brc_expire_plan_dispose(&list->plan);
}

static int expire_check(breccia *repo, const brc_expire_opts *opts, brc_error *err)
{
    BRC_TRY(brc_flags_check(opts->flags, BRC_EXPIRE_DRY_RUN, "brc_expire_opts", err));
    if (opts->keep_last == 0 && opts->keep_daily == 0 && opts->keep_weekly == 0 &&
        opts->keep_monthly == 0)
        return brc_fail(err, BRC_EINVAL,
                        "no rule says which commits stay: give at least one, such as keep_last 10");
    if (opts->flags & BRC_EXPIRE_DRY_RUN)
        return BRC_OK;
    BRC_TRY(brc_store_writable(repo->store, err));
    if (brc_store_in_write(repo->store) || brc_store_in_bulk(repo->store))
        return brc_fail(err, BRC_EMISUSE, "history cannot be thinned within a transaction");
    return BRC_OK;
}

static int expire_only_look(expired_list *list, breccia *repo, const brc_expire_rules *rules,
                            brc_error *err)
{
    brc_usage usage = {0};
    BRC_TRY(brc_store_begin_read(repo->store, err));
    int rc = brc_expire_plan_make(&list->plan, repo->store, rules, err);
    if (rc == BRC_OK && list->plan.expired > 0)
        rc = brc_usage_measure(&usage, repo->store, &list->plan, NULL, 1, err);
    list->bytes = usage.expired;
    brc_usage_dispose(&usage);
    brc_store_end_read(repo->store);
    return rc;
}

static int tell_expire(void *ctx, brc_error *err)
{
    return brc_task_step(ctx, 0, err);
}

static int expire_work(expired_list *list, breccia *repo, const brc_expire_opts *opts,
                       brc_error *err)
{
    const brc_expire_rules rules = {opts->keep_last, opts->keep_daily, opts->keep_weekly,
                                    opts->keep_monthly};
    const brc_expire_step step = {tell_expire, repo};
    brc_task task = brc_task_begin(repo, "expire", 0);
    brc_store_walk_begin(repo->store);
    int rc = opts->flags & BRC_EXPIRE_DRY_RUN
                 ? expire_only_look(list, repo, &rules, err)
                 : brc_expire_run(&list->plan, repo->store, &rules, &step, err);
    brc_store_walk_end(repo->store);
    brc_task_end(repo, &task, rc);
    list->n = list->plan.kept + list->plan.expired;
    return rc;
}

static int expired_next(void *state, const void **out, brc_error *err)
{
    expired_list *list = state;
    (void)err;
    if (list->at == list->n)
        return 0;
    const brc_expire_commit *c =
        brc_expire_commit_at(&list->plan, list->plan.order[list->at++]);
    list->given = (brc_expired){c->id, c->time_us, c->reasons};
    *out = &list->given;
    return 1;
}

int brc_expire(brc_expire_report *out, brc_iter **decided, breccia *repo,
               const brc_expire_opts *given, brc_error *err)
{
    brc_expire_opts opts;
    brc_expire_report report = BRC_EXPIRE_REPORT_INIT;
    brc_iter *it = NULL;
    int rc;
    if (decided != NULL)
        *decided = NULL;
    BRC_TRY(brc_sized_in(&opts, sizeof(opts), sizeof(opts), given, "brc_expire_opts", err));
    BRC_TRY(expire_check(repo, &opts, err));
    BRC_TRY(brc_iter_new(&it, expired_next, sizeof(expired_list), expired_list_dispose, err));
    expired_list *list = brc_iter_state(it);
    BRC_GO(expire_work(list, repo, &opts, err));
    report.kept = list->plan.kept;
    report.expired = list->plan.expired;
    report.bytes = list->bytes;
    if (out != NULL)
        BRC_GO(brc_sized_out(out, &report, sizeof(report), sizeof(report), "brc_expire_report",
                             err));
    if (decided != NULL) {
        *decided = it;
        it = NULL;
    }
done:
    brc_iter_free(it);
    return rc;
}
