/* Checking the whole file, and telling what was found. */
#include <string.h>

#include "../zarr/fsck.h"

typedef struct fsck_report {
    int (*found)(void *ctx, const brc_damage *damage);
    void *ctx;
} fsck_report;

static int tell(const fsck_report *report, const brc_damage *damage, brc_error *err)
{
    if (report->found != NULL && report->found(report->ctx, damage) != 0)
        return brc_fail(err, BRC_EINTERRUPT, "stopped on request");
    return BRC_OK;
}

static int tell_file_fault(void *ctx, const char *line)
{
    brc_damage damage;
    memset(&damage, 0, sizeof(damage));
    damage.kind = "index";
    damage.message = line;
    return tell(ctx, &damage, NULL);
}

static int tell_faults(const fsck_report *report, const brc_faults *faults, brc_error *err)
{
    static const char *const kinds[] = {"index", "chunk", "document", "node", "commit", "ref"};
    for (size_t i = 0; i < faults->n; i++) {
        const brc_fault *f = &((const brc_fault *)faults->items)[i];
        brc_damage damage = {f->id, kinds[f->kind], f->missing, (const char *const *)f->used_by,
                             f->nused_by, f->message};
        BRC_TRY(tell(report, &damage, err));
    }
    return BRC_OK;
}

/* A step that could not go on through damage is a finding too. */
static int end_step(int rc, brc_faults *faults, const brc_error *found, brc_error *err)
{
    brc_oid none;
    memset(&none, 0, sizeof(none));
    if (rc == BRC_ECORRUPT)
        return brc_faults_add(faults, &none, 0, 0, found->message, NULL, err);
    if (rc < 0 && err != NULL)
        *err = *found;
    return rc;
}

static int check_repo(breccia *repo, uint32_t flags, const fsck_report *report, uint64_t *checked,
                      brc_error *err)
{
    brc_faults faults = {0};
    brc_error step = BRC_ERROR_INIT;
    fsck_report told = *report;
    brc_stats stats = {0};
    BRC_TRY(brc_store_begin_read(repo->store, err));
    if (brc_store_totals(repo->store, &stats, NULL) < 0)
        stats.logical_bytes = 0; /* progress has no total then */
    brc_task task = brc_task_begin(repo, "check", stats.logical_bytes);
    int rc = brc_store_check_file(repo->store, tell_file_fault, &told, &step);
    rc = end_step(rc, &faults, &step, err);
    if (rc == BRC_OK)
        rc = end_step(
            brc_check_objects(repo, (flags & BRC_FSCK_NO_DECODE) != 0, &faults, checked, &step),
            &faults, &step, err);
    if (rc == BRC_OK)
        rc = end_step(brc_check_history(repo, &faults, &step), &faults, &step, err);
    brc_store_end_read(repo->store);
    brc_task_end(repo, &task, rc);
    if (rc == BRC_OK)
        rc = tell_faults(report, &faults, err);
    brc_faults_dispose(&faults);
    return rc;
}

int brc_fsck(breccia *repo, uint32_t flags, int (*found)(void *ctx, const brc_damage *damage),
             void *ctx, uint64_t *checked, brc_error *err)
{
    fsck_report report = {found, ctx};
    uint64_t n = 0;
    brc_store_checking(repo->store, 1);
    int rc = check_repo(repo, flags, &report, &n, err);
    brc_store_checking(repo->store, 0);
    if (checked != NULL)
        *checked = n;
    return rc;
}
