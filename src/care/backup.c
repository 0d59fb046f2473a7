/* Makes a backup: a copy of the file while others write to it. New parts of the copy are
 * checked. */
#include <stddef.h>
#include <stdlib.h>

#include "../base/buf.h"
#include "../base/file.h"
#include "../base/process.h"
#include "../base/sized.h"
#include "../store/collect.h"
#include "../store/file_copy.h"
#include "../work/session.h"
#include "fsck.h"

/* Opens the copy: makes a new file, or opens an existing one, even an unfinished one. */
static int open_copy(brc_backup_run *b, breccia *repo, const char *dest, int *is_made,
                     brc_error *err)
{
    brc_open_opts opts = repo->opened;
    *is_made = brc_file_kind(dest) == 0;
    opts.flags = BRC_OPEN_UNFINISHED | (*is_made ? BRC_OPEN_CREATE : 0u);
    opts.hash = brc_hash_name(brc_store_hash(repo->store));
    b->from = repo->store;
    BRC_TRY(brc_store_open(&b->to, dest, &opts, repo->registry, brc_now_us(), err));
    return *is_made ? brc_backup_make(b, err) : brc_backup_resume(b, err);
}

static int copy_all(brc_backup_run *b, breccia *repo, brc_error *err)
{
    int more = 1;
    uint64_t bytes;
    while (more) {
        BRC_TRY(brc_backup_some(b, &more, &bytes, err));
        BRC_TRY(brc_task_step(repo, bytes, err));
    }
    return brc_backup_finish(b, err);
}

static int copied(brc_backup_run *b, breccia *repo, const char *dest, brc_error *err)
{
    brc_stats stats = BRC_STATS_INIT;
    int is_made = 0;
    BRC_TRY(open_copy(b, repo, dest, &is_made, err));
    BRC_TRY(brc_store_begin_read(repo->store, err));
    int rc = brc_store_totals(repo->store, &stats, err);
    brc_store_end_read(repo->store);
    BRC_TRY(rc);
    brc_task task = brc_task_begin(repo, "copy", b->is_new ? stats.stored_bytes : 0);
    rc = copy_all(b, repo, err);
    brc_task_end(repo, &task, rc);
    return rc;
}

static int tell_damage(const brc_faults *faults, const char *file, const char *dest, brc_error *err)
{
    const brc_fault *first = faults->items;
    size_t missing = 0;
    char id[65];
    if (faults->n == 0)
        return BRC_OK;
    for (size_t i = 0; i < faults->n; i++)
        missing += first[i].missing != 0;
    if (missing == faults->n)
        return brc_fail(err, BRC_ECORRUPT,
                        "%s was written, without %zu chunks that lie outside of %s (%s): copy that "
                        "too, or bring the chunks into the file with 'breccia repack %s --backend "
                        "inline' first",
                        dest, missing, file, first->message, file);
    return brc_fail(err, BRC_ECORRUPT,
                    "%s was written, with %zu objects that are damaged (the first one is %s: %s): "
                    "'breccia fsck %s' says whether they were damaged before",
                    dest, faults->n, brc_oid_format(id, &first->id), first->message, file);
}

static int check_copy(const brc_backup_run *b, breccia *repo, const char *dest,
                      brc_backup_report *report, brc_error *err)
{
    breccia *copy;
    brc_open_opts opts = repo->opened;
    brc_faults faults = BRC_FAULTS_INIT;
    opts.flags = BRC_OPEN_READONLY;
    opts.registry = repo->registry;
    BRC_TRY(brc_open(&copy, dest, &opts, err));
    int rc = brc_check_objects(copy, b->is_other_line ? 0 : b->trusted, 0, &faults,
                               &report->objects_checked, err);
    if (rc == BRC_OK)
        rc = brc_store_file_bytes(copy->store, &report->file_bytes, err);
    if (rc == BRC_OK)
        rc = tell_damage(&faults, brc_store_path(repo->store), dest, err);
    brc_faults_dispose(&faults);
    brc_free(copy);
    return rc;
}

static int check_call(const breccia *repo, const char *dest, brc_error *err)
{
    if (dest == NULL || *dest == '\0')
        return brc_fail(err, BRC_EINVAL, "the backup needs a file name");
    if (brc_store_in_write(repo->store) || brc_store_in_bulk(repo->store))
        return brc_fail(err, BRC_EMISUSE, "a backup cannot be made within a transaction");
    return brc_check_file(brc_store_path(repo->store), dest, err);
}

int brc_backup(brc_backup_report *out, breccia *repo, const char *dest, brc_error *err)
{
    brc_backup_run b = {0};
    brc_backup_report report = BRC_BACKUP_REPORT_INIT;
    BRC_TRY(check_call(repo, dest, err));
    int rc = copied(&b, repo, dest, err);
    if (b.to != NULL)
        brc_store_close(b.to);
    report.bytes_copied = b.bytes;
    report.objects_copied = b.objects;
    report.flags = b.is_new ? 0 : BRC_BACKUP_INCREMENTAL;
    if (rc == BRC_OK)
        rc = check_copy(&b, repo, dest, &report, err);
    brc_backup_dispose(&b);
    if (out == NULL)
        return rc;
    int given_out = brc_sized_out(out, &report, sizeof(report),
                                  offsetof(brc_backup_report, flags), "brc_backup_report",
                                  rc < 0 ? NULL : err);
    return rc < 0 ? rc : given_out;
}
