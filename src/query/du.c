/* Says which versions and arrays the bytes of the file belong to. */
#include <stddef.h>
#include <stdlib.h>

#include "../base/process.h"
#include "../base/sized.h"
#include "../work/session.h"
#include "../care/usage.h"

typedef struct usage_list {
    brc_usage usage;
    size_t at;
    brc_du_item given;
} usage_list;

static void usage_list_dispose(void *state)
{
    usage_list *list = state;
    brc_usage_dispose(&list->usage);
}

static int usage_work(usage_list *list, breccia *repo, brc_error *err)
{
    const brc_expire_rules all = {UINT32_MAX, 0, 0, 0};
    brc_expire_plan plan = {0};
    brc_log_window window;
    BRC_TRY(brc_store_begin_read(repo->store, err));
    int rc = brc_window_get(repo->store, brc_now_us(), &window, err);
    if (rc == BRC_OK)
        rc = brc_expire_plan_make(&plan, repo->store, &all, err);
    if (rc == BRC_OK)
        rc = brc_usage_arrays(&list->usage, repo->store, &plan, err);
    if (rc == BRC_OK)
        rc = brc_usage_measure(&list->usage, repo->store, &plan, &window, 0, err);
    brc_store_end_read(repo->store);
    brc_expire_plan_dispose(&plan);
    return rc;
}

static void usage_tell(const brc_usage *usage, brc_du_report *report)
{
    const uint64_t needed = usage->versions + usage->uncommitted + usage->log;
    report->versions = usage->versions;
    report->uncommitted = usage->uncommitted;
    report->log = usage->log;
    report->garbage = usage->stored > needed ? usage->stored - needed : 0;
    report->stored = usage->stored;
    report->outside = usage->outside;
}

static int usage_next(void *state, const void **out, brc_error *err)
{
    usage_list *list = state;
    (void)err;
    if (list->at == list->usage.n)
        return 0;
    const brc_usage_item *item = (const brc_usage_item *)list->usage.items + list->at++;
    list->given = (brc_du_item){item->path, item->id, item->bytes, item->alone};
    *out = &list->given;
    return 1;
}

int brc_du(brc_du_report *out, brc_iter **items, breccia *repo, brc_error *err)
{
    brc_du_report report = BRC_DU_REPORT_INIT;
    brc_iter *it = NULL;
    int rc;
    if (items != NULL)
        *items = NULL;
    BRC_TRY(brc_iter_new(&it, usage_next, sizeof(usage_list), usage_list_dispose, err));
    usage_list *list = brc_iter_state(it);
    brc_store_walk_begin(repo->store);
    rc = usage_work(list, repo, err);
    brc_store_walk_end(repo->store);
    BRC_GO(rc);
    usage_tell(&list->usage, &report);
    if (out != NULL)
        BRC_GO(brc_sized_out(out, &report, sizeof(report),
                             offsetof(brc_du_report, outside), "brc_du_report", err));
    if (items != NULL) {
        *items = it;
        it = NULL;
    }
done:
    brc_iter_free(it);
    return rc;
}
