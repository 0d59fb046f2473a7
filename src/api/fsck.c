/* Checking the whole file, and reporting what was found. */
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

static const char *fault_kind(int kind)
{
    static const char *const kinds[] = {"index",  "chunk", "document", "node",
                                        "commit", "loose", "ref"};
    return kind >= 0 && kind < (int)(sizeof(kinds) / sizeof(kinds[0])) ? kinds[kind] : kinds[0];
}

static int tell_faults(const fsck_report *report, const brc_faults *faults, brc_error *err)
{
    for (size_t i = 0; i < faults->n; i++) {
        const brc_fault *f = &((const brc_fault *)faults->items)[i];
        brc_damage damage = {f->id, fault_kind(f->kind), f->missing ? BRC_DAMAGE_MISSING : 0,
                             (const char *const *)f->used_by, f->nused_by, f->message};
        BRC_TRY(tell(report, &damage, err));
    }
    return BRC_OK;
}

/* A step that damage has stopped is a finding too. */
static int end_step(int rc, brc_faults *faults, const brc_error *found, brc_error *err)
{
    if (rc == BRC_ECORRUPT)
        return brc_faults_add_file(faults, found->message, err);
    if (rc < 0 && err != NULL)
        brc_error_copy(err, found);
    return rc;
}

static int run_steps(breccia *repo, int no_decode, fsck_report *report, brc_faults *faults,
                     uint64_t *checked, brc_error *err)
{
    brc_error found = BRC_ERROR_INIT;
    int rc = brc_store_check_file(repo->store, tell_file_fault, report, &found);
    BRC_TRY(end_step(rc, faults, &found, err));
    rc = brc_store_check_rows(repo->store, tell_file_fault, report, &found);
    BRC_TRY(end_step(rc, faults, &found, err));
    rc = brc_check_objects(repo, no_decode, faults, checked, &found);
    BRC_TRY(end_step(rc, faults, &found, err));
    rc = brc_check_history(repo, no_decode, faults, &found);
    return end_step(rc, faults, &found, err);
}

static int check_repo(breccia *repo, uint32_t flags, const fsck_report *report, uint64_t *checked,
                      brc_error *err)
{
    brc_faults faults = BRC_FAULTS_INIT;
    fsck_report told = *report;
    brc_stats stats = BRC_STATS_INIT;
    BRC_TRY(brc_store_begin_read(repo->store, err));
    if (brc_store_totals(repo->store, &stats, NULL) < 0)
        stats.logical_bytes = 0; /* progress has no total then */
    brc_task task = brc_task_begin(repo, "check", stats.logical_bytes);
    int rc = run_steps(repo, (flags & BRC_FSCK_NO_DECODE) != 0, &told, &faults, checked, err);
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
    brc_store_walk_begin(repo->store);
    int rc = check_repo(repo, flags, &report, &n, err);
    brc_store_walk_end(repo->store);
    brc_store_checking(repo->store, 0);
    if (checked != NULL)
        *checked = n;
    return rc;
}
