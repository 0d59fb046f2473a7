#include <stdlib.h>
#include <string.h>

#include "../base/alloc.h"
#include "../base/process.h"
#include "../base/sized.h"
#include "../history/ancestry.h"
#include "../history/commit.h"
#include "../nd/shape.h"
#include "../store/change.h"
#include "../store/collect.h"
#include "../work/fold.h"
#include "../zarr/array/array.h"
#include "steps.h"

/* ==== concat ================================ */

enum { COPIED_AT_A_TIME = 32 << 20 };

/* The sessions in which arrays are laid out: `work` gets the result, `source` keeps theirs
 * unchanged. */
typedef struct laying_out {
    brc_session *work, *source;
    const brc_oid *tip;
} laying_out;

static int set_length(brc_array *a, int axis, uint64_t length, brc_error *err)
{
    uint64_t shape[BRC_MAX_NDIM];
    memcpy(shape, a->meta.shape, sizeof(uint64_t) * (size_t)a->meta.ndim);
    shape[axis] = length;
    return brc_array_resize(a, shape, err);
}

/* Replaces the session's array by another version of it. */
static int put_version(brc_array *a, const brc_entry *entry, brc_error *err)
{
    brc_json *doc = NULL;
    BRC_TRY(brc_array_begin(a, err));
    int rc = brc_entry_doc(brc_array_store(a), entry, &doc, err);
    if (rc == BRC_OK)
        rc = brc_array_put_entry(a, doc, &entry->map, err);
    brc_json_free(doc);
    return brc_array_end(a, rc, err);
}

/* Copies the elements of `from` from index `first` of the axis on to `to`, shifted by `by` along
 * the axis. */
static int copy_moved(brc_array *to, brc_array *from, int axis, uint64_t first, uint64_t by,
                      brc_error *err)
{
    brc_cut cut;
    brc_sel sel = BRC_SEL_INIT;
    brc_sel_all(&sel, from);
    sel.count[axis] -= first;
    sel.start[axis] = first + by;
    brc_cut_chunks(&cut, &sel, to->meta.grid.chunk, to->meta.type->item_size, COPIED_AT_A_TIME);
    while (brc_cut_next(&cut)) {
        brc_buf elements = BRC_BUF_INIT;
        brc_sel was = cut.sel;
        was.start[axis] -= by;
        int rc = brc_array_read_elements(from, &was, &elements, err);
        if (rc == BRC_OK)
            rc = brc_array_write(to, &cut.sel, elements.data, elements.len, err);
        brc_buf_dispose(&elements);
        BRC_TRY(rc);
    }
    return BRC_OK;
}

/* Returns the entry that a commit of the session's changes would have, and drops the changes. */
static int take_entry(const laying_out *l, const char *path, brc_entry *out, brc_error *err)
{
    brc_store *store = l->work->repo->store;
    brc_folded folded = {0};
    int rc;
    BRC_GO(brc_fold_whole(l->work, &folded, err));
    BRC_GO(brc_store_begin_read(store, err));
    rc = brc_snapshot_find(store, &folded.root, path, out, err);
    brc_store_end_read(store);
    if (rc == BRC_OK && (!l->work->draft.has_tip || brc_oid_cmp(&l->work->draft.tip, l->tip) != 0))
        rc = brc_fail(err, BRC_ESTALE, "%s: branch '%s' has moved while it was merged: nothing was "
                                       "changed; merge again",
                      brc_store_path(store), l->work->branch);
    if (rc == BRC_OK)
        rc = brc_session_discard(l->work, err);
done:
    brc_folded_dispose(&folded);
    return rc;
}

static int lay_ours_out(const laying_out *l, brc_concat *c, brc_error *err)
{
    brc_array *a;
    BRC_TRY(brc_array_open(&a, l->work, c->path, err));
    int rc = set_length(a, c->axis, c->base + c->ours + c->theirs, err);
    brc_array_free(a);
    return rc < 0 ? rc : take_entry(l, c->path, &c->laid_out[0], err);
}

static int lay_theirs_out(const laying_out *l, brc_concat *c, brc_error *err)
{
    brc_array *a = NULL, *from = NULL;
    int rc;
    BRC_GO(brc_array_open(&from, l->source, c->path, err));
    BRC_GO(put_version(from, &c->side[1], err));
    BRC_GO(brc_array_open(&a, l->work, c->path, err));
    BRC_GO(put_version(a, &c->side[1], err));
    /* elements that are cut off become fill value */
    BRC_GO(set_length(a, c->axis, c->base, err));
    BRC_GO(set_length(a, c->axis, c->base + c->ours + c->theirs, err));
    BRC_GO(copy_moved(a, from, c->axis, c->base, c->ours, err));
done:
    brc_array_free(a);
    brc_array_free(from);
    return rc < 0 ? rc : take_entry(l, c->path, &c->laid_out[1], err);
}

static int lay_out(const laying_out *l, brc_concat *c, brc_error *err)
{
    BRC_TRY(lay_ours_out(l, c, err));
    BRC_TRY(lay_theirs_out(l, c, err));
    for (int i = 0; i < 2; i++)
        c->laid_out[i].storage = c->side[i].storage;
    return BRC_OK;
}

/* Fills in `laid_out` of every item. `tip` is the branch's commit that ours comes from; fails with
 * BRC_ESTALE if the branch has moved. Works in private drafts and drops them, so that nothing names
 * the stored chunks afterwards. Must be called outside of any transaction. */
static int concat_lay_out(brc_concat_list *list, breccia *repo, const char *branch,
                          const brc_oid *tip, brc_error *err)
{
    laying_out l = {.tip = tip};
    int rc;
    BRC_GO(brc_session_open(&l.work, repo, branch, BRC_SESSION_PRIVATE, err));
    BRC_GO(brc_session_open(&l.source, repo, branch, BRC_SESSION_PRIVATE, err));
    for (size_t i = 0; i < list->n && rc == BRC_OK; i++)
        rc = lay_out(&l, &list->items[i], err);
done:
    for (int i = 0; i < 2; i++) {
        brc_session *s = i == 0 ? l.work : l.source;
        int dropped = s != NULL ? brc_session_discard(s, rc == BRC_OK ? err : NULL) : BRC_OK;
        rc = rc == BRC_OK ? dropped : rc;
        brc_session_free(s);
    }
    return rc;
}

/* ==== merge ================================ */

/* Merges a version into the current branch. */

typedef struct merge_call {
    breccia *repo;
    brc_store *store;
    brc_aim *aim; /* the merged version */
    brc_merge_opts opts;
    char *message;
    brc_oid other;
    brc_steps q; /* the branch, with the merge as its only step */
    brc_commit_set bases;
    brc_concat_list concat;
    brc_merge_result result;
} merge_call;

static void merge_call_dispose(merge_call *c)
{
    brc_steps_dispose(&c->q);
    brc_concat_list_dispose(&c->concat);
    brc_commit_set_dispose(&c->bases);
    free(c->message);
}

/* ---- what is merged -------------------------------- */

static int merge_message(merge_call *c, brc_error *err)
{
    brc_buf text = BRC_BUF_INIT;
    if (c->opts.message != NULL)
        return brc_dup(&c->message, c->opts.message, err);
    int rc = brc_buf_printf(&text, err, "Merge %s into %s", c->aim->rev, c->q.on);
    if (rc == BRC_OK)
        rc = brc_buf_take_text(&text, &c->message, err);
    brc_buf_dispose(&text);
    return rc;
}

static int start_steps(merge_call *c, char *const *paths, brc_error *err)
{
    const uint32_t flags = c->opts.flags;
    c->q.favour = flags & BRC_MERGE_OURS     ? BRC_FAVOUR_OURS
                  : flags & BRC_MERGE_THEIRS ? BRC_FAVOUR_THEIRS
                                             : BRC_FAVOUR_NONE;
    c->q.paths = (const char *const *)paths;
    c->q.npaths = c->opts.npaths;
    BRC_TRY(brc_steps_start(&c->q, err));
    c->q.run.how.concat = flags & BRC_MERGE_CONCAT ? &c->concat : NULL;
    c->q.run.how.is_trial = (flags & BRC_MERGE_DRY_RUN) != 0;
    return BRC_OK;
}

static int look_at_sides(merge_call *c, char *const *paths, brc_error *err)
{
    BRC_TRY(brc_store_begin_read(c->store, err));
    int rc = brc_aim_resolve(c->aim, c->store, &c->other, err);
    brc_store_end_read(c->store);
    BRC_TRY(rc);
    BRC_TRY(start_steps(c, paths, err));
    BRC_TRY(merge_message(c, err));
    return c->q.has_tip ? brc_merge_find_base(&c->q.run, &c->q.tip, &c->other, &c->bases, err)
                        : BRC_OK;
}

static int is_base(const merge_call *c, const brc_oid *id)
{
    return c->bases.n == 1 && brc_oid_cmp(&c->bases.ids[0], id) == 0;
}

/* Merges the two sides. A first merge finds the arrays to which both sides have appended. They are
 * then laid out, by bulk writes of their own, and everything is merged once more. */
static int merge_sides(merge_call *c, brc_error *err)
{
    brc_merge_run *run = &c->q.run;
    if ((c->opts.flags & (BRC_MERGE_DRY_RUN | BRC_MERGE_CONCAT)) == 0)
        BRC_TRY(brc_steps_bulk_begin(&c->q, err));
    BRC_TRY(brc_merge_work(run, err));
    if (c->concat.n == 0)
        return BRC_OK;
    BRC_TRY(concat_lay_out(&c->concat, c->repo, c->q.branch, &c->q.tip, err));
    brc_merge_tree_free(run->tree);
    run->tree = NULL;
    return brc_merge_work(run, err);
}

/* ---- what comes of it -------------------------------- */

/* Lists the merge, which is computed, as the only step, and puts it or keeps it open. */
static int finish(merge_call *c, brc_error *err)
{
    brc_steps *q = &c->q;
    const brc_step step = {
        .like = {.message = c->message,
                 .author = c->opts.author != NULL ? c->opts.author : "unknown",
                 .time_us = c->opts.time_us != 0 ? c->opts.time_us : brc_now_us()},
        .has_other = 1,
        .other = c->other,
        .is_merged = 1,
    };
    q->rev = c->aim->rev;
    q->message = c->message;
    q->is_concat = c->concat.n > 0;
    q->may_keep = (c->opts.flags & BRC_MERGE_KEEP) != 0;
    BRC_TRY(c->result.result == BRC_MERGE_FAST_FORWARD ? brc_steps_go_to(q, &c->other, err)
                                                       : brc_steps_add(q, &step, err));
    BRC_TRY(brc_steps_run(q, err));
    c->result.commit = q->result.commit;
    c->result.draft = q->result.draft;
    return BRC_OK;
}

static int work(merge_call *c, brc_error *err)
{
    const int may_ff = (c->opts.flags & BRC_MERGE_NO_FF) == 0;
    const brc_oid *tip = &c->q.tip;
    if (c->q.has_tip && is_base(c, &c->other)) {
        c->result.result = BRC_MERGE_UP_TO_DATE;
        c->result.commit = *tip;
        return BRC_OK;
    }
    c->result.result = BRC_MERGE_MERGED;
    if (!c->q.has_tip || (is_base(c, tip) && may_ff)) {
        c->result.result = BRC_MERGE_FAST_FORWARD;
    } else if (!is_base(c, tip)) {
        BRC_TRY(merge_sides(c, err));
        c->result.conflicts = brc_merge_tree_clashes(c->q.run.tree)->n;
    }
    if (c->result.conflicts > 0)
        c->result.result = BRC_MERGE_CONFLICT;
    return c->opts.flags & BRC_MERGE_DRY_RUN ? BRC_OK : finish(c, err);
}

/* ---- the call -------------------------------- */

static int take_merge_opts(merge_call *c, const brc_merge_opts *given, brc_error *err)
{
    const uint32_t sides = BRC_MERGE_OURS | BRC_MERGE_THEIRS;
    BRC_TRY(brc_sized_in(&c->opts, sizeof(c->opts), offsetof(brc_merge_opts, reserved), given,
                         "brc_merge_opts", err));
    BRC_TRY(brc_message_check(c->opts.message, err));
    const uint32_t known = BRC_MERGE_NO_FF | BRC_MERGE_DRY_RUN | BRC_MERGE_CONCAT | BRC_MERGE_KEEP |
                           sides;
    BRC_TRY(brc_flags_check(c->opts.flags, known, "brc_merge_opts", err));
    if ((c->opts.flags & sides) == sides)
        return brc_fail(err, BRC_EINVAL, "a conflict cannot be settled for both sides");
    if (c->opts.npaths > 0 && (c->opts.flags & sides) == 0)
        return brc_fail(err, BRC_EINVAL, "paths need a side, ours or theirs");
    return BRC_OK;
}

/* Says whether the call stores nothing. A dry run with BRC_MERGE_CONCAT does store, because it lays
 * out the joined arrays. */
static int stores_nothing(const brc_merge_opts *opts)
{
    return (opts->flags & (BRC_MERGE_DRY_RUN | BRC_MERGE_CONCAT)) == BRC_MERGE_DRY_RUN;
}

static int merge_once(merge_call *c, brc_merge_result *out, brc_iter **conflicts,
                      const brc_merge_opts *given, brc_error *err)
{
    char **paths = NULL;
    int rc;
    BRC_GO(take_merge_opts(c, given, err));
    if (!stores_nothing(&c->opts))
        BRC_GO(brc_store_writable(c->store, err));
    BRC_GO(brc_paths_normal(&paths, c->opts.paths, c->opts.npaths, err));
    BRC_GO(look_at_sides(c, paths, err));
    const brc_task task = brc_task_begin(c->repo, "merge", 0);
    rc = work(c, err);
    brc_task_end(c->repo, &task, rc);
    if (rc < 0)
        goto done;
    BRC_GO(brc_sized_out(out, &c->result, sizeof(c->result),
                         offsetof(brc_merge_result, conflicts), "brc_merge_result", err));
    if (conflicts != NULL)
        rc = brc_conflict_list(conflicts,
                               c->q.run.tree != NULL ? brc_merge_tree_clashes(c->q.run.tree) : NULL,
                               c->repo, NULL, err);
done:
    brc_paths_free(paths, c->opts.npaths);
    return rc;
}

typedef struct merge_args {
    brc_aim aim;
    brc_merge_result *out;
    brc_iter **conflicts;
    breccia *repo;
    const brc_merge_opts *given;
} merge_args;

static int merge_in_steps(void *ctx, int insists, brc_error *err)
{
    merge_args *m = ctx;
    (void)insists;
    merge_call c = {.repo = m->repo, .store = m->repo->store, .aim = &m->aim,
                    .opts = BRC_MERGE_OPTS_INIT};
    c.q.repo = m->repo;
    c.q.on = m->aim.branch;
    c.q.op = "merge";
    c.q.doing = "something is merged into it";
    int rc = merge_once(&c, m->out, m->conflicts, m->given, err);
    const int again = rc < 0 && c.q.again;
    merge_call_dispose(&c);
    return again ? BRC_CHANGE_AGAIN : rc;
}

int brc_merge(brc_merge_result *out, brc_iter **conflicts, breccia *repo, const char *rev,
              const brc_merge_opts *given, brc_error *err)
{
    merge_args m = {{.rev = rev}, out, conflicts, repo, given};
    if (conflicts != NULL)
        *conflicts = NULL;
    if (brc_store_in_write(repo->store))
        return brc_fail(err, BRC_EMISUSE, "a merge cannot be a part of a transaction");
    return brc_steps_change(&m.aim, repo, "a version was merged into the branch",
                               merge_in_steps, err);
}
