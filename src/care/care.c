/* Counts the objects, the commits and the chunks of all versions in a repository. */
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "../base/alloc.h"
#include "../base/buf.h"
#include "../base/file.h"
#include "../base/process.h"
#include "../base/sized.h"
#include "../history/closure.h"
#include "../store/collect.h"
#include "../store/file_copy.h"
#include "../work/session.h"
#include "fsck.h"
#include "gc.h"
#include "good_copy.h"
#include "usage.h"

/* ==== totals ================================ */

/* Versions share most map nodes, so the number of chunks under each node is counted once and kept
 * with the node. */
typedef struct chunk_totals {
    brc_store *store;
    brc_closure *closure;
    void *sums; /* uint64_t[]: of each node from the root down */
    size_t cap;
} chunk_totals;

static int add_chunks(chunk_totals *c, size_t level, uint64_t chunks, brc_error *err)
{
    uint64_t *sum = &((uint64_t *)c->sums)[level];
    if (!brc_add_u64(*sum, chunks, sum))
        return brc_fail(err, BRC_ELIMIT, "the versions have more chunks than can be counted");
    return BRC_OK;
}

static int count_node(chunk_totals *c, const brc_closure_step *step, brc_error *err)
{
    const brc_node_step *at = &step->node;
    uint64_t chunks = 0;
    BRC_TRY(brc_grow_array(&c->sums, &c->cap, at->level + 2, sizeof(uint64_t), err));
    if (at->kind == BRC_ARRAY) { /* the root says how many there are */
        BRC_TRY(brc_map_count(c->store, &at->id, &chunks, err));
        brc_closure_skip(c->closure);
        return add_chunks(c, at->level, chunks, err);
    }
    if (step->known != NULL)
        return add_chunks(c, at->level, *(const uint64_t *)step->known, err);
    ((uint64_t *)c->sums)[at->level + 1] = 0;
    return BRC_OK;
}

static int count_leave(chunk_totals *c, const brc_closure_step *step, brc_error *err)
{
    uint64_t chunks = ((uint64_t *)c->sums)[step->node.level + 1];
    *(uint64_t *)step->keep = chunks;
    return add_chunks(c, step->node.level, chunks, err);
}

static int count_step(chunk_totals *c, const brc_closure_step *at, brc_stats *out, brc_error *err)
{
    switch (at->what) {
    case BRC_AT_VERSION:
        out->commits++;
        return BRC_OK;
    case BRC_AT_NODE:
        return count_node(c, at, err);
    case BRC_AT_LEAVE:
        return count_leave(c, at, err);
    default:
        return BRC_OK;
    }
}

/* Walks everything that refs reach; the chunks of each version are added to the first sum. */
static int count_history(chunk_totals *c, brc_stats *out, brc_error *err)
{
    brc_closure_step at;
    int rc;
    BRC_TRY(brc_grow_array(&c->sums, &c->cap, 1, sizeof(uint64_t), err));
    *(uint64_t *)c->sums = 0;
    BRC_TRY(brc_closure_refs(c->closure, err));
    while ((rc = brc_closure_next(c->closure, &at, err)) > 0) {
        BRC_TRY(count_step(c, &at, out, err));
        brc_store_breathe(c->store);
    }
    out->chunk_refs = *(uint64_t *)c->sums;
    return rc;
}

int brc_stat(breccia *repo, brc_stats *given, brc_error *err)
{
    chunk_totals chunks = { .store = repo->store };
    brc_stats own = BRC_STATS_INIT, *out = &own;
    int rc;

    BRC_TRY(brc_sized_check(given->size, offsetof(brc_stats, objects), "brc_stats", err));
    BRC_TRY(brc_store_begin_read(repo->store, err));
    brc_store_walk_begin(repo->store);
    BRC_GO(brc_store_totals(repo->store, out, err));
    BRC_GO(brc_closure_new(&chunks.closure, repo->store, sizeof(uint64_t), err));
    out->log_bytes = brc_store_log_bytes(repo->store);
    rc = count_history(&chunks, out, err);
done:
    free(chunks.sums);
    brc_closure_free(chunks.closure);
    brc_store_walk_end(repo->store);
    brc_store_end_read(repo->store);
    if (rc == BRC_OK)
        rc = brc_sized_out(given, &own, sizeof(own), offsetof(brc_stats, objects), "brc_stats",
                           err);
    return rc;
}

/* ==== fsck ================================ */

/* Checks the whole file and reports the faults. */

typedef struct fsck_report {
    int (*found)(void *ctx, const brc_damage *damage);
    void *ctx;
    int (*stands)(void *ctx, const brc_standing *one); /* NULL: the caller does not want it */
} fsck_report;

static int tell(const fsck_report *report, const brc_damage *damage, brc_error *err)
{
    if (report->found != NULL && report->found(report->ctx, damage) != 0)
        return brc_fail(err, BRC_EINTERRUPT, "stopped on request");
    return BRC_OK;
}

/* The number of bytes of lines that are held back while the file is locked. */
#define HELD_BYTES ((size_t)1 << 20)

typedef struct held_lines {
    const fsck_report *report;
    brc_buf text; /* each line ends with a NUL */
    int rc;       /* the reason why no further line is taken */
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

/* Ends a step. A step that damage has stopped is a finding too. */
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
        stats.logical_bytes = 0; /* progress then has no total */
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

/* ==== repair ================================ */

/* Repairs what fsck finds. */

typedef struct lost_object {
    brc_oid id;
    int kind, missing;
} lost_object;

typedef struct lost_list {
    void *items; /* lost_object[] */
    size_t n, cap;
    int failed;
} lost_list;

/* Returns the kind of an object from its name in brc_damage. */
static int kind_of_text(const char *text)
{
    static const char *const kinds[] = {"chunk", "document", "node", "commit", "loose"};
    for (int i = 0; i < BRC_KIND_MAX; i++)
        if (strcmp(text, kinds[i]) == 0)
            return i + 1;
    return 0;
}

static int note_lost(void *ctx, const brc_damage *damage)
{
    lost_list *list = ctx;
    const int kind = kind_of_text(damage->kind);
    if (kind == 0 || brc_oid_is_zero(&damage->id))
        return 0;
    if (brc_grow_array(&list->items, &list->cap, list->n + 1, sizeof(lost_object), NULL) < 0) {
        list->failed = 1;
        return 1;
    }
    ((lost_object *)list->items)[list->n++] =
        (lost_object){damage->id, kind, (damage->flags & BRC_DAMAGE_MISSING) != 0};
    return 0;
}

static int find_lost(breccia *repo, lost_list *list, brc_error *err)
{
    list->n = 0;
    int rc = brc_fsck(repo, 0, note_lost, list, NULL, err);
    return list->failed ? brc_nomem(err) : rc;
}

/* Replaces lost objects. A node or commit that is restored may lead to more missing objects, so
 * this repeats as long as something was found. */
static int replace_lost(breccia *repo, breccia *from, lost_list *list, brc_repair_report *report,
                        brc_error *err)
{
    uint64_t before;
    do {
        before = report->replaced;
        for (size_t i = 0; from != NULL && i < list->n; i++) {
            const lost_object *lost = (const lost_object *)list->items + i;
            int good, copied;
            BRC_TRY(brc_repair_is_good(repo->store, &lost->id, lost->kind, &good, err));
            if (good)
                continue;
            BRC_TRY(brc_repair_copy(repo->store, from->store, &lost->id, lost->kind, &copied, err));
            report->replaced += copied != 0;
        }
        BRC_TRY(brc_repair_derived(repo->store, err));
        BRC_TRY(find_lost(repo, list, err));
    } while (report->replaced > before && list->n > 0);
    return BRC_OK;
}

/* Removes objects from the list that are good now: an object may be named only because of its
 * users, or because of an earlier finding. */
static int still_lost(breccia *repo, lost_list *list, brc_error *err)
{
    size_t n = 0;
    lost_object *items = list->items;
    for (size_t i = 0; i < list->n; i++) {
        int good = 1;
        if (!items[i].missing)
            BRC_TRY(brc_repair_is_good(repo->store, &items[i].id, items[i].kind, &good, err));
        if (!good)
            items[n++] = items[i];
    }
    list->n = n;
    return BRC_OK;
}

static int drop_lost(breccia *repo, const lost_list *list, brc_repair_report *report,
                     brc_error *err)
{
    BRC_TRY(brc_store_begin(repo->store, err));
    int rc = BRC_OK;
    uint64_t n = 0;
    for (size_t i = 0; i < list->n && rc == BRC_OK; i++) {
        rc = brc_object_drop(repo->store, &((const lost_object *)list->items)[i].id, err);
        n++;
    }
    int end = brc_store_end(repo->store, rc == BRC_OK, rc == BRC_OK ? err : NULL);
    rc = rc < 0 ? rc : end;
    report->dropped = rc == BRC_OK ? n : 0;
    return rc;
}

static int repair_work(breccia *repo, breccia *from, uint32_t flags, lost_list *list,
                       brc_repair_report *report, brc_error *err)
{
    BRC_TRY(find_lost(repo, list, err));
    BRC_TRY(replace_lost(repo, from, list, report, err));
    if (flags & BRC_REPAIR_DROP) {
        BRC_TRY(still_lost(repo, list, err));
        if (list->n > 0) {
            BRC_TRY(drop_lost(repo, list, report, err));
            BRC_TRY(brc_repair_derived(repo->store, err));
        }
        BRC_TRY(find_lost(repo, list, err));
    }
    for (size_t i = 0; i < list->n; i++)
        *(((const lost_object *)list->items)[i].missing ? &report->missing : &report->damaged) += 1;
    return BRC_OK;
}

int brc_repair(brc_repair_report *out, breccia *repo, breccia *from, uint32_t flags, brc_error *err)
{
    brc_repair_report report = BRC_REPAIR_REPORT_INIT;
    lost_list list = {0};
    BRC_TRY(brc_flags_check(flags, BRC_REPAIR_DROP, "brc_repair()", err));
    BRC_TRY(brc_store_writable(repo->store, err));
    if (brc_store_in_write(repo->store) || brc_store_in_bulk(repo->store))
        return brc_fail(err, BRC_EMISUSE, "nothing can be repaired within a transaction");
    int rc = repair_work(repo, from, flags, &list, &report, err);
    free(list.items);
    if (rc == BRC_OK && out != NULL)
        rc = brc_sized_out(out, &report, sizeof(report), sizeof(report), "brc_repair_report", err);
    return rc;
}

/* ==== collect ================================ */

/* Collects garbage. */

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

/* ==== expire ================================ */

/* Thins history. */

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
    BRC_TRY(brc_iter_new(&it, BRC_ITER_EXPIRED, sizeof(expired_list), expired_list_dispose, err));
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

int brc_expire_next(brc_iter *it, const brc_expired **out, brc_error *err)
{
    *out = NULL;
    BRC_TRY(brc_iter_check(it, BRC_ITER_EXPIRED, err));
    expired_list *list = brc_iter_state(it);
    if (list->at == list->n)
        return 0;
    const brc_expire_commit *c =
        brc_expire_commit_at(&list->plan, list->plan.order[list->at++]);
    list->given = (brc_expired){c->id, c->time_us, c->reasons};
    *out = &list->given;
    return 1;
}

/* ==== backup ================================ */

/* Makes a backup: a copy of the file while others write to it. New parts of the copy are
 * checked. */

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
    char id[65];
    if (faults->n == 0)
        return BRC_OK;
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
