/* Checking the whole file, and reporting what was found. */
#include <string.h>

#include "../base/buf.h"
#include "../zarr/fsck.h"

typedef struct fsck_report {
    int (*found)(void *ctx, const brc_damage *damage);
    void *ctx;
    int (*stands)(void *ctx, const brc_standing *one); /* NULL: nobody asks */
} fsck_report;

static int tell(const fsck_report *report, const brc_damage *damage, brc_error *err)
{
    if (report->found != NULL && report->found(report->ctx, damage) != 0)
        return brc_fail(err, BRC_EINTERRUPT, "stopped on request");
    return BRC_OK;
}

/* Of lines that are found while the file is locked, so many bytes are held back until it is not. */
#define HELD_BYTES ((size_t)1 << 20)

typedef struct held_lines {
    const fsck_report *report;
    brc_buf text; /* each ends with a zero */
    int rc;       /* why no further one is taken */
} held_lines;

static int tell_held(held_lines *held, brc_error *err)
{
    int rc = BRC_OK;
    const char *at = (const char *)held->text.data;
    for (size_t left = held->text.len; left > 0 && rc == BRC_OK;) {
        const brc_damage damage = {.kind = "index", .message = at};
        const size_t len = strlen(at) + 1;
        rc = tell(held->report, &damage, err);
        at += len;
        left -= len;
    }
    held->text.len = 0;
    return rc;
}

static int hold_line(void *ctx, const char *line)
{
    held_lines *held = ctx;
    if (held->text.len > HELD_BYTES)
        held->rc = tell_held(held, NULL);
    if (held->rc == BRC_OK)
        held->rc = brc_buf_append(&held->text, line, strlen(line) + 1, NULL);
    return held->rc < 0;
}

typedef int (*line_check_fn)(brc_store *store, int (*found)(void *ctx, const char *line), void *ctx,
                             brc_error *err);

static int check_lines(breccia *repo, line_check_fn check, const fsck_report *report,
                       brc_error *err)
{
    held_lines held = {.report = report, .text = BRC_BUF_INIT};
    int rc = check(repo->store, hold_line, &held, err);
    brc_store_pause_read(repo->store);
    if (held.rc == BRC_ENOMEM)
        rc = brc_nomem(err);
    const int told = tell_held(&held, rc == BRC_OK ? err : NULL);
    brc_buf_dispose(&held.text);
    return rc < 0 ? rc : told;
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
    int rc = check_lines(repo, brc_store_check_file, report, &found);
    BRC_TRY(end_step(rc, faults, &found, err));
    rc = check_lines(repo, brc_store_check_rows, report, &found);
    BRC_TRY(end_step(rc, faults, &found, err));
    rc = brc_check_objects(repo, 0, no_decode, faults, checked, &found);
    BRC_TRY(end_step(rc, faults, &found, err));
    rc = brc_check_history(repo, no_decode, faults, &found);
    return end_step(rc, faults, &found, err);
}

static int tell_standing(breccia *repo, const fsck_report *report, const brc_faults *faults,
                         brc_error *err)
{
    BRC_TRY(brc_store_begin_read(repo->store, err));
    int rc = brc_standing_tell(repo->store, faults, report->stands, report->ctx, err);
    brc_store_end_read(repo->store);
    return rc;
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
    if (rc == BRC_OK && report->stands != NULL && faults.n > 0)
        rc = tell_standing(repo, report, &faults, err);
    brc_faults_dispose(&faults);
    return rc;
}

int brc_fsck(breccia *repo, uint32_t flags, int (*found)(void *ctx, const brc_damage *damage),
             void *ctx, uint64_t *checked, brc_error *err)
{
    return brc_fsck_standing(repo, flags, found, NULL, ctx, checked, err);
}

int brc_fsck_standing(breccia *repo, uint32_t flags,
                      int (*found)(void *ctx, const brc_damage *damage),
                      int (*stands)(void *ctx, const brc_standing *one), void *ctx,
                      uint64_t *checked, brc_error *err)
{
    fsck_report report = {found, ctx, stands};
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
