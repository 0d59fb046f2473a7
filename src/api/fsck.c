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
    static const char *const kinds[] = {"index", "chunk", "document", "node", "commit"};
    for (size_t i = 0; i < faults->n; i++) {
        const brc_fault *f = &((const brc_fault *)faults->items)[i];
        brc_damage damage = {f->id, kinds[f->kind], f->missing, (const char *const *)f->used_by,
                             f->nused_by, f->message};
        BRC_TRY(tell(report, &damage, err));
    }
    return BRC_OK;
}

int brc_fsck(breccia *repo, uint32_t flags, int (*found)(void *ctx, const brc_damage *damage),
             void *ctx, uint64_t *checked, brc_error *err)
{
    fsck_report report = {found, ctx};
    brc_faults faults = {0};
    uint64_t n = 0;
    BRC_TRY(brc_store_begin_read(repo->store, err));
    int rc = brc_store_check_file(repo->store, tell_file_fault, &report, err);
    if (rc == BRC_OK)
        rc = brc_check_objects(repo, (flags & BRC_FSCK_NO_DECODE) != 0, &faults, &n, err);
    if (rc == BRC_OK)
        rc = brc_check_history(repo, &faults, err);
    brc_store_end_read(repo->store);
    if (rc == BRC_OK)
        rc = tell_faults(&report, &faults, err);
    brc_faults_dispose(&faults);
    if (checked != NULL)
        *checked = n;
    return rc;
}
