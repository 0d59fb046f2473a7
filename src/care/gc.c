#include "gc.h"

#include <inttypes.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "../base/alloc.h"
#include "../base/hash.h"
#include "../base/process.h"
#include "../base/sized.h"
#include "../store/bases.h"
#include "../store/delta_rebuild.h"
#include "../store/change.h"
#include "../store/collect.h"
#include "../store/removed.h"
#include "../work/session.h"
#include "usage.h"

/* ==== gc mark ================================ */

/* Prepares marking. `memory` is the number of bytes for the marks. */
static int gc_mark_new(brc_gc_mark *mark, brc_store *store, const brc_log_window *window,
                       size_t memory, brc_error *err)
{
    memset(mark, 0, sizeof(*mark));
    mark->store = store;
    mark->range = (brc_log_range){window->since_us, window->least, 0};
    mark->rows = (brc_id_table)BRC_ID_TABLE_INIT(0);
    brc_mark_set_init(&mark->set, brc_store_id_len(store), memory);
    return brc_closure_new(&mark->walk, store, 0, err);
}

static void gc_mark_dispose(brc_gc_mark *mark)
{
    brc_closure_free(mark->walk);
    brc_mark_set_dispose(&mark->set);
    brc_roots_dispose(&mark->roots);
    brc_id_table_dispose(&mark->rows);
    free(mark->drafts.items);
    memset(mark, 0, sizeof(*mark));
}

static int gc_mark_has_commit(const brc_gc_mark *mark, const brc_oid *id)
{
    return brc_closure_met(mark->walk, id);
}

/* ---- following -------------------------------- */

static int mark_id(brc_gc_mark *mark, const brc_oid *id, brc_error *err)
{
    return brc_oid_is_zero(id) ? BRC_OK : brc_mark_set_add(&mark->set, id, err);
}

/* Marks a chunk and all that it builds on. */
static int mark_chunk(void *ctx, const brc_oid *chunk, brc_error *err)
{
    brc_gc_mark *mark = ctx;
    brc_oid at = *chunk, base;
    int found = mark->has_deltas && !brc_oid_is_zero(chunk);
    BRC_TRY(mark_id(mark, chunk, err));
    for (int n = 0; found && n < BRC_DELTA_DEPTH_MOST; n++) {
        BRC_TRY(brc_delta_base(mark->store, &at, &found, &base, err));
        at = base;
        if (found)
            BRC_TRY(mark_id(mark, &at, err));
    }
    return BRC_OK;
}

static int mark_entry(brc_gc_mark *mark, const brc_entry *entry, brc_error *err)
{
    BRC_TRY(mark_id(mark, &entry->doc, err));
    return mark_id(mark, &entry->storage, err);
}

static int mark_step(brc_gc_mark *mark, const brc_closure_step *at, brc_error *err)
{
    switch (at->what) {
    case BRC_AT_COMMIT:
        mark->past += mark->is_past ? 1 : 0;
        return mark_id(mark, &at->id, err);
    case BRC_AT_NODE:
        return mark_id(mark, &at->node.id, err);
    case BRC_AT_ENTRY:
        return mark_entry(mark, &at->node.entry, err);
    case BRC_AT_CHUNK:
        return mark_chunk(mark, &at->node.chunk, err);
    default:
        return BRC_OK;
    }
}

/* Calls the caller's step function between reads, so that nobody waits for it. */
static int mark_tell(const brc_gc_mark *mark, brc_error *err)
{
    if (mark->step == NULL || brc_store_in_write(mark->store))
        return BRC_OK;
    brc_store_pause_read(mark->store);
    return mark->step(mark->ctx, err);
}

static int mark_walk(brc_gc_mark *mark, brc_error *err)
{
    brc_closure_step at;
    int rc;
    for (unsigned n = 0; (rc = brc_closure_next(mark->walk, &at, err)) > 0; n++) {
        BRC_TRY(mark_step(mark, &at, err));
        if (n % 256 == 0)
            brc_store_breathe(mark->store);
        if (n % 4096 == 4095)
            BRC_TRY(mark_tell(mark, err));
    }
    if (rc == BRC_ECORRUPT)
        brc_context(err, "nothing was collected, because it is unknown which objects are needed");
    return rc;
}

/* Follows a commit. A commit that only the log or a pin names may have been collected long ago. */
static int follow_commit(brc_gc_mark *mark, const brc_root *root, brc_error *err)
{
    brc_object o = {.id = root->id}, *one = &o;
    if (brc_oid_is_zero(&root->id) || brc_closure_met(mark->walk, &root->id))
        return BRC_OK;
    if (root->what == BRC_ROOT_PAST) {
        BRC_TRY(brc_objects_find(mark->store, &one, 1, err));
        if (!o.found || o.kind != BRC_KIND_COMMIT)
            return BRC_OK;
    }
    BRC_TRY(brc_closure_commit(mark->walk, &root->id, err));
    return mark_walk(mark, err);
}

/* Follows the chunks of one row of a draft, once. Chunks that are put into the row later are kept
 * by the writer that puts them. The row itself may move from one draft to another. */
static int follow_row(brc_gc_mark *mark, int64_t node, brc_error *err)
{
    brc_oid key;
    memset(&key, 0xff, sizeof(key));
    memcpy(key.bytes, &node, sizeof(node));
    if (brc_id_table_find(&mark->rows, &key) != NULL)
        return BRC_OK;
    BRC_TRY(brc_id_table_add(&mark->rows, &key, NULL, err));
    return brc_roots_of_row(mark->store, node, mark_chunk, mark, err);
}

static int follow_entry(brc_gc_mark *mark, const brc_root *root, brc_error *err)
{
    brc_entry entry;
    const brc_span bytes = {root->entry, root->entry_len};
    if (root->entry_len == 0) /* the node was removed */
        return BRC_OK;
    BRC_TRY(brc_entry_decode(&entry, bytes, brc_store_id_len(mark->store), err));
    BRC_TRY(mark_entry(mark, &entry, err));
    if (entry.kind == 0 || brc_oid_is_zero(&entry.map))
        return BRC_OK;
    BRC_TRY(brc_closure_entry(mark->walk, "/", &entry, err));
    return mark_walk(mark, err);
}

static int follow_root(brc_gc_mark *mark, const brc_root *root, brc_error *err)
{
    switch (root->what) {
    case BRC_ROOT_COMMIT:
    case BRC_ROOT_PAST:
        return follow_commit(mark, root, err);
    case BRC_ROOT_OBJECT:
        return mark_chunk(mark, &root->id, err);
    case BRC_ROOT_ROW:
        BRC_TRY(follow_row(mark, root->node, err));
        return follow_entry(mark, root, err);
    case BRC_ROOT_ENTRY:
        return follow_entry(mark, root, err);
    }
    return BRC_OK;
}

/* Follows the roots of the present, or those of the past, and leaves the others in the list. */
static int follow_some(brc_gc_mark *mark, int is_past, brc_error *err)
{
    size_t left = 0;
    mark->is_past = is_past;
    for (size_t i = 0; i < mark->roots.n; i++) {
        const brc_root *root = &mark->roots.items[i];
        if ((root->what == BRC_ROOT_PAST) != is_past) {
            mark->roots.items[left++] = *root;
            continue;
        }
        BRC_TRY(follow_root(mark, root, err));
        brc_store_breathe(mark->store);
    }
    mark->roots.n = left;
    return BRC_OK;
}

static int gc_mark_follow(brc_gc_mark *mark, brc_error *err)
{
    BRC_TRY(follow_some(mark, 0, err));
    return follow_some(mark, 1, err);
}

/* ---- the first time -------------------------------- */

/* Leaves out the points of drafts that a collection forgets first (forget_logs()), if it forgets
 * all of a draft: otherwise those that stay take over rows. */
static int leave_out_points(brc_gc_mark *mark, brc_error *err)
{
    brc_draft_row *points;
    size_t n;
    BRC_TRY(brc_draft_list(mark->store, BRC_DRAFTS_POINTS, 0, &points, &n, err));
    for (size_t i = 0; i < n; i++) {
        int goes = 1;
        for (size_t k = 0; k < n && goes; k++)
            goes = points[k].draft.parent != points[i].draft.parent ||
                   points[k].draft.time_us < mark->range.since_us;
        for (size_t k = 0; k < mark->drafts.n && goes; k++)
            if (mark->drafts.items[k].id == points[i].draft.id)
                mark->drafts.items[k].is_dropped = 1;
    }
    brc_draft_rows_free(points, n);
    return BRC_OK;
}

static int mark_drafts(brc_gc_mark *mark, brc_error *err)
{
    BRC_TRY(brc_root_drafts_list(mark->store, mark->not_dead, &mark->drafts, err));
    if (mark->not_dead) /* a count, which forgets nothing itself */
        BRC_TRY(leave_out_points(mark, err));
    for (size_t i = 0; i < mark->drafts.n; i++) {
        if (mark->drafts.items[i].is_dropped)
            continue;
        BRC_TRY(brc_roots_of_draft(mark->store, mark->drafts.items[i].id, &mark->roots, err));
        BRC_TRY(follow_some(mark, 0, err));
    }
    return BRC_OK;
}

/* The past comes last, so that its versions that nothing else reaches can be counted. */
static int mark_now(brc_gc_mark *mark, brc_error *err)
{
    mark->others = -1; /* roots may change from here on */
    mark->range.after = 0;
    mark->past = 0;
    if (mark->follows_bases)
        BRC_TRY(brc_deltas_there(mark->store, &mark->has_deltas, err));
    BRC_TRY(brc_roots_named(mark->store, &mark->range, mark->not_dead, &mark->roots, err));
    BRC_TRY(follow_some(mark, 0, err));
    BRC_TRY(mark_drafts(mark, err));
    return follow_some(mark, 1, err);
}

/* Marks everything that is reachable, as far as its id is after `above`, in short reads.
 * BRC_ECORRUPT means that something reachable is damaged, so that the objects below it are not
 * known. */
static int gc_mark_all(brc_gc_mark *mark, const brc_oid *above, brc_error *err)
{
    brc_closure_free(mark->walk);
    mark->walk = NULL;
    mark->roots.n = 0;
    brc_id_table_dispose(&mark->rows);
    brc_mark_set_begin(&mark->set, above);
    BRC_TRY(brc_closure_new(&mark->walk, mark->store, 0, err));
    BRC_TRY(brc_store_begin_read(mark->store, err));
    int rc = mark_now(mark, err);
    brc_store_end_read(mark->store);
    return rc;
}

/* ---- again -------------------------------- */

/* Says whether the draft is unchanged since its rows were read. */
static int draft_is_known(const brc_root_drafts *before, const brc_root_draft *now)
{
    for (size_t i = 0; i < before->n; i++)
        if (before->items[i].id == now->id)
            return before->items[i].changes == now->changes;
    return 0;
}

static int look_at_drafts(brc_gc_mark *mark, brc_error *err)
{
    brc_root_drafts now = {0};
    int rc = brc_root_drafts_list(mark->store, mark->not_dead, &now, err);
    for (size_t i = 0; i < now.n && rc == BRC_OK; i++)
        if (!now.items[i].is_dropped && !draft_is_known(&mark->drafts, &now.items[i]))
            rc = brc_roots_of_draft(mark->store, now.items[i].id, &mark->roots, err);
    free(mark->drafts.items);
    mark->drafts = now;
    return rc;
}

/* Removes from the list the roots that were followed. */
static void drop_known(brc_gc_mark *mark)
{
    size_t n = 0;
    for (size_t i = 0; i < mark->roots.n; i++) {
        const brc_root *root = &mark->roots.items[i];
        if ((root->what != BRC_ROOT_COMMIT && root->what != BRC_ROOT_PAST) ||
            !brc_closure_met(mark->walk, &root->id))
            mark->roots.items[n++] = *root;
    }
    mark->roots.n = n;
}

/* Reads the roots again, in a transaction. Sets *same to 1 if they are those that were followed.
 * The new roots are left for gc_mark_follow(), in this transaction or outside. */
static int gc_mark_look(brc_gc_mark *mark, int *same, brc_error *err)
{
    int64_t others;
    uint64_t pins;
    BRC_TRY(brc_store_others(mark->store, &others, err));
    BRC_TRY(brc_pins_digest(mark->store, &pins, err));
    *same = others == mark->others && pins == mark->pins;
    if (*same)
        return BRC_OK;
    BRC_TRY(brc_roots_named(mark->store, &mark->range, mark->not_dead, &mark->roots, err));
    drop_known(mark);
    BRC_TRY(look_at_drafts(mark, err));
    mark->others = others;
    mark->pins = pins;
    *same = mark->roots.n == 0;
    return BRC_OK;
}

/* ==== gc run ================================ */

/* The number of index rows examined between two steps. */
enum { PAGE = 1024 };

typedef struct gc_run {
    brc_gc_job *job;
    brc_store *store;
    const char *owner;
    brc_gc_row row;
    brc_gc_mark mark;
    brc_sweep sweep;
    brc_object page[PAGE];
    brc_oid found[PAGE]; /* ids that were not marked */
    brc_removed_sweep removed;
    struct {
        brc_oid *ids;
        size_t n, cap;
    } left;              /* objects that stayed because others build on them */
    int has_ranges;      /* memory did not suffice for one range of ids */
    int is_least;        /* the last step was the smallest possible, and there was no room for it */
} gc_run;

static int gc_tell(const gc_run *g, brc_error *err)
{
    BRC_TRY(brc_store_check_interrupt(g->store, err));
    return g->job->step != NULL ? g->job->step(g->job->ctx, err) : BRC_OK;
}

/* ---- one step -------------------------------- */

/* Removes from the list the ids that were marked meanwhile. */
static void drop_marked(gc_run *g, brc_oid *ids, size_t *n, int commits)
{
    size_t left = 0;
    for (size_t i = 0; i < *n; i++)
        if (commits ? !gc_mark_has_commit(&g->mark, &ids[i])
                    : !brc_mark_set_has(&g->mark.set, &ids[i]))
            ids[left++] = ids[i];
    *n = left;
}

/* Ids to remove, as many in one transaction as fit. */
typedef struct gc_step {
    gc_run *g;
    brc_oid *ids;
    size_t n;
    int commits;
    const brc_oid *position; /* where the collection stands after the last id; NULL: unchanged */
    size_t done;             /* number of ids removed */
    int follows;             /* new roots appeared and must be followed first */
} gc_step;

static int gc_step_work(void *ctx, brc_error *err)
{
    gc_step *s = ctx;
    brc_store *store = s->g->store;
    if (!s->follows)
        return BRC_OK;
    BRC_TRY(gc_tell(s->g, err));
    BRC_TRY(brc_store_begin_read(store, err));
    const int rc = gc_mark_follow(&s->g->mark, err);
    brc_store_end_read(store);
    return rc;
}

/* Removes the ids that are still unreachable. If `insists` is 1, new roots are followed while the
 * lock is held, so that busy writers cannot stop the collection. */
static int gc_step_commit(void *ctx, int insists, brc_error *err)
{
    gc_step *s = ctx;
    gc_run *g = s->g;
    int followed;
    BRC_TRY(gc_mark_look(&g->mark, &followed, err));
    s->follows = !followed;
    if (!followed && !insists)
        return BRC_CHANGE_AGAIN;
    if (!followed)
        BRC_TRY(gc_mark_follow(&g->mark, err));
    drop_marked(g, s->ids, &s->n, s->commits);
    BRC_TRY(brc_sweep_some(&g->sweep, g->store, s->ids, s->n, &s->done, err));
    const brc_oid *at = s->done < s->n && s->done > 0 ? &s->ids[s->done - 1] : s->position;
    return brc_gc_note(g->store, g->owner, &g->row, BRC_GC_SWEEPS, s->commits ? NULL : at, err);
}

/* Makes the steps smaller on a full disk, down to a limit, because smaller steps need less space.
 * Also folds a log into the file, which has free pages. */
static int shrink_steps(gc_run *g, brc_error *err)
{
    int64_t busy;
    if (g->sweep.most_bytes <= BRC_SWEEP_SMALLEST && g->is_least)
        return BRC_ENOSPACE;
    g->is_least = g->sweep.most_bytes <= BRC_SWEEP_SMALLEST;
    if (!g->is_least)
        g->sweep.most_bytes /= 2;
    int rc = brc_log_fold(g->store, &busy, err);
    return rc == BRC_ENOSPACE ? BRC_OK : rc;
}

/* Returns 1 if there was no room for the step and it is to be tried again, or 0 if *rc is its
 * result. */
static int is_tried_again(gc_run *g, int *rc, brc_error *why, brc_error *err)
{
    if (*rc == BRC_ENOSPACE && shrink_steps(g, why) == BRC_OK)
        return 1;
    if (*rc < 0 && err != NULL)
        brc_error_copy(err, why);
    else
        g->is_least = 0;
    return 0;
}

/* Runs a short transaction again, in smaller steps, while the disk is full. */
#define WITH_ROOM(g, rc, call)                     \
    do {                                           \
        brc_error why = BRC_ERROR_INIT;            \
        do                                         \
            rc = (call);                           \
        while (is_tried_again(g, &rc, &why, err)); \
    } while (0)

static int say_no_space(const gc_run *g, brc_error *err)
{
    return brc_fail(err, BRC_ENOSPACE,
                    "%s: a step of the collection needs up to %zu bytes on its disk for the "
                    "journal, and there are fewer: free as many and run gc again, which goes on "
                    "here; nothing that is needed was lost",
                    brc_store_path(g->store), (size_t)BRC_SWEEP_LEAST);
}

static int run_gc_step(gc_step *s, brc_error *err)
{
    gc_run *g = s->g;
    const brc_file_change change = {.ctx = s, .work = gc_step_work, .commit = gc_step_commit};
    const brc_sweep before = g->sweep;
    s->done = 0;
    s->follows = 0;
    const int rc = brc_change_run(g->store, &change, err);
    if (rc < 0) { /* the whole step was undone */
        g->sweep.objects = before.objects;
        g->sweep.bytes = before.bytes;
        g->sweep.nbases = before.nbases;
        s->done = 0;
    }
    return rc;
}

/* Removes the ids, in as many steps as necessary. */
static int remove_all(gc_run *g, brc_oid *ids, size_t n, int commits, const brc_oid *position,
                      brc_error *err)
{
    gc_step s = {.g = g, .ids = ids, .n = n, .commits = commits, .position = position};
    do {
        brc_error why = BRC_ERROR_INIT;
        int rc = run_gc_step(&s, &why);
        if (rc == BRC_ENOSPACE)
            rc = shrink_steps(g, &why);
        if (rc < 0) {
            brc_error_copy(err, &why);
            return rc;
        }
        g->is_least &= s.n > 0 && s.done == 0;
        s.ids += s.done;
        s.n -= s.done;
        BRC_TRY(gc_tell(g, err));
    } while (s.n > 0);
    return BRC_OK;
}

/* ---- sweeping -------------------------------- */

static int sweep_commits(gc_run *g, brc_error *err)
{
    brc_oid *ids = NULL;
    size_t n = 0;
    BRC_TRY(brc_store_begin_read(g->store, err));
    int rc = brc_sweep_commits(g->store, &ids, &n, err);
    brc_store_end_read(g->store);
    if (rc == BRC_OK)
        drop_marked(g, ids, &n, 1);
    if (rc == BRC_OK)
        rc = remove_all(g, ids, n, 1, NULL, err);
    free(ids);
    return rc;
}

/* Reads the next page of the index and finds the objects that were not marked. */
static int look_at_page(gc_run *g, const brc_oid *after, size_t *n, size_t *found, brc_error *err)
{
    *found = 0;
    BRC_TRY(brc_store_begin_read(g->store, err));
    int rc = brc_objects_page(g->store, after, g->page, PAGE, n, err);
    brc_store_end_read(g->store);
    BRC_TRY(rc);
    for (size_t i = 0; i < *n; i++) {
        if (!brc_mark_set_covers(&g->mark.set, &g->page[i].id)) {
            *n = i;
            break;
        }
        if (!brc_mark_set_has(&g->mark.set, &g->page[i].id)) {
            g->job->bytes += g->page[i].stored;
            g->found[(*found)++] = g->page[i].id;
        }
    }
    return BRC_OK;
}

/* Moves the objects that stayed to those that are left until all ranges are swept. */
static int keep_bases(gc_run *g, brc_error *err)
{
    void *p = g->left.ids;
    const size_t n = g->sweep.nbases;
    if (n == 0)
        return BRC_OK;
    const int rc = brc_grow_array(&p, &g->left.cap, g->left.n + n, sizeof(brc_oid), err);
    g->left.ids = p;
    g->sweep.nbases = 0;
    if (rc < 0)
        return rc;
    memcpy(g->left.ids + g->left.n, g->sweep.bases, n * sizeof(brc_oid));
    g->left.n += n;
    return BRC_OK;
}

/* Comes back to the objects that stayed because others built on them, until none of these is gone.
 * The marks are those of their range. */
static int sweep_bases(gc_run *g, brc_error *err)
{
    size_t before = SIZE_MAX;
    while (g->sweep.nbases > 0 && g->sweep.nbases < before) {
        brc_oid *ids = g->sweep.bases;
        const size_t n = before = g->sweep.nbases;
        g->sweep.bases = NULL;
        g->sweep.nbases = g->sweep.bases_cap = 0;
        const int rc = remove_all(g, ids, n, 0, NULL, err);
        free(ids);
        BRC_TRY(rc);
    }
    return keep_bases(g, err);
}

/* Sweeps the ids after *at and sets *at to the last id of the range. Sets *more to 1 if there is
 * another range. */
static int sweep_range(gc_run *g, brc_oid *at, int counts, int *more, brc_error *err)
{
    size_t n, found;
    for (;;) {
        BRC_TRY(look_at_page(g, at, &n, &found, err));
        if (n == 0)
            break;
        *at = g->page[n - 1].id;
        g->job->objects += found;
        if (!counts && found > 0)
            BRC_TRY(remove_all(g, g->found, found, 0, at, err));
        BRC_TRY(gc_tell(g, err));
    }
    *more = g->mark.set.has_end;
    if (*more)
        *at = g->mark.set.end;
    return counts ? BRC_OK : sweep_bases(g, err);
}

static int sweep_from(gc_run *g, brc_oid at, int counts, brc_error *err)
{
    int more = 1, is_first = 1;
    while (more) {
        BRC_TRY(gc_mark_all(&g->mark, &at, err));
        if (is_first && !counts)
            BRC_TRY(sweep_commits(g, err));
        is_first = 0;
        BRC_TRY(sweep_range(g, &at, counts, &more, err));
        g->has_ranges |= more;
    }
    return BRC_OK;
}

/* ---- objects that others build on -------------------------------- */

/* Stores whole what builds on an object that is to leave no trace, unless that will go too. */
static int free_base(gc_run *g, const brc_id_table *left, const brc_oid *base, brc_error *err)
{
    brc_oid after, on;
    size_t n = 1;
    memset(&after, 0, sizeof(after));
    for (; n > 0; after = on) {
        BRC_TRY(brc_store_begin_read(g->store, err));
        int rc = brc_delta_dependants(g->store, base, &after, &on, 1, &n, err);
        brc_store_end_read(g->store);
        if (rc == BRC_OK && n > 0 && brc_id_table_find(left, &on) == NULL)
            WITH_ROOM(g, rc, brc_delta_make_whole(g->store, &on, &why));
        if (rc == BRC_ECORRUPT)
            brc_context(err, "a removed chunk stays, because another builds on it");
        BRC_TRY(rc);
        BRC_TRY(gc_tell(g, err));
    }
    return BRC_OK;
}

static int free_bases(gc_run *g, brc_error *err)
{
    brc_id_table left = BRC_ID_TABLE_INIT(0);
    int rc = BRC_OK;
    for (size_t i = 0; i < g->left.n && rc == BRC_OK; i++)
        rc = brc_id_table_add(&left, &g->left.ids[i], NULL, err);
    for (size_t i = 0; i < g->left.n && rc == BRC_OK; i++)
        rc = free_base(g, &left, &g->left.ids[i], err);
    brc_id_table_dispose(&left);
    return rc;
}

/* Sweeps again while objects are left that others build on, if these can have gone: they were in
 * another range of ids, or are stored whole now. */
static int sweep_left(gc_run *g, brc_error *err)
{
    brc_oid start;
    size_t before = SIZE_MAX;
    memset(&start, 0, sizeof(start));
    while (g->left.n > 0 && g->left.n < before && (g->has_ranges || g->job->expunge)) {
        before = g->left.n;
        if (g->job->expunge)
            BRC_TRY(free_bases(g, err));
        g->left.n = 0;
        BRC_TRY(sweep_from(g, start, 0, err));
    }
    return g->left.n == 0 || !g->job->expunge
               ? BRC_OK
               : brc_fail(err, BRC_EBUSY,
                          "%s: removed chunks are still in the file, because others were stored as "
                          "differences from them meanwhile: run 'gc --expunge' again",
                          brc_store_path(g->store));
}

/* ---- removed bytes -------------------------------- */

enum { REMOVED = 1024 };

/* An object in one of the places that are swept. */
typedef struct gc_survivor {
    size_t row;
    brc_oid id;
} gc_survivor;

static int survivor_order(const void *a, const void *b)
{
    const gc_survivor *x = a, *y = b;
    return (x->row > y->row) - (x->row < y->row);
}

static int removed_order(const void *a, const void *b)
{
    const brc_removed *x = a, *y = b;
    if (x->backend != y->backend)
        return x->backend < y->backend ? -1 : 1;
    return (x->place > y->place) - (x->place < y->place);
}

/* Returns 1 if a place of these may have objects that have to be found: the others have names. */
static int need_survivors(const brc_removed *rows, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (rows[i].place != 0)
            return 1;
    return 0;
}

/* Finds the objects that are left in these places. Objects have no index by place, so all objects
 * are read, once for many places. */
static int find_survivors(gc_run *g, brc_removed *rows, size_t nrows, void **out, size_t *n,
                          brc_error *err)
{
    size_t got = need_survivors(rows, nrows) ? 1 : 0, cap = 0;
    brc_oid at;
    memset(&at, 0, sizeof(at));
    while (got > 0) {
        BRC_TRY(brc_store_begin_read(g->store, err));
        int rc = brc_objects_page(g->store, &at, g->page, PAGE, &got, err);
        brc_store_end_read(g->store);
        BRC_TRY(rc);
        for (size_t i = 0; i < got; i++) {
            const brc_removed key = {.backend = g->page[i].backend, .place = g->page[i].place};
            at = g->page[i].id;
            if (!g->page[i].found || key.place == 0)
                continue;
            brc_removed *in = bsearch(&key, rows, nrows, sizeof(*rows), removed_order);
            if (in == NULL)
                continue;
            in->live += g->page[i].stored;
            if (!brc_is_in_file(in->backend) && in->nids > 0 && in->live > (uint64_t)in->bytes)
                continue; /* the place stays, so one object is enough */
            in->nids++;
            BRC_TRY(brc_grow_array(out, &cap, *n + 1, sizeof(gc_survivor), err));
            ((gc_survivor *)*out)[(*n)++] = (gc_survivor){(size_t)(in - rows), at};
        }
        BRC_TRY(gc_tell(g, err));
    }
    return BRC_OK;
}

/* Returns how many rows one change may sweep. */
static size_t swept_together(const brc_removed *rows, size_t n)
{
    size_t i = 1;
    while (!brc_is_in_file(rows[0].backend) && i < n && i < BRC_REMOVED_AT_ONCE &&
           rows[i].backend == rows[0].backend)
        i++;
    return i;
}

static int sweep_found(gc_run *g, brc_removed *rows, size_t n, gc_survivor *list, size_t nlist,
                       brc_error *err)
{
    void *p;
    size_t at = 0;
    BRC_TRY(brc_new_array(&p, nlist + 1, sizeof(brc_oid), err));
    brc_oid *ids = p;
    int rc = BRC_OK;
    if (nlist > 1)
        qsort(list, nlist, sizeof(*list), survivor_order);
    for (size_t i = 0; i < nlist; i++)
        ids[i] = list[i].id;
    for (size_t i = 0; i < n; at += rows[i++].nids)
        rows[i].ids = ids + at;
    for (size_t i = 0, some; i < n && rc == BRC_OK; i += some) {
        some = swept_together(rows + i, n - i);
        WITH_ROOM(g, rc, brc_removed_sweep_some(g->store, &g->removed, rows + i, some, &why));
        if (rc == BRC_OK)
            rc = gc_tell(g, err);
    }
    free(p);
    return rc;
}

static int sweep_rows(gc_run *g, brc_removed *rows, size_t n, brc_error *err)
{
    void *list = NULL;
    size_t nlist = 0;
    int rc = find_survivors(g, rows, n, &list, &nlist, err);
    if (rc == BRC_OK)
        rc = sweep_found(g, rows, n, list, nlist, err);
    free(list);
    return rc;
}

/* Sweeps all strays of one backend, or with 0 all other places. Places in the file that objects
 * leave after this began are left for the next collection: otherwise a concurrent bulk write would
 * add rows as fast as this call compacts them. What a backend cannot remove now stays in the table;
 * the file's own garbage is removed in any case. */
static int sweep_removed(gc_run *g, int64_t strays_of, brc_error *err)
{
    brc_removed_walk walk = {.strays_of = strays_of, .now_us = g->job->now_us};
    void *rows;
    size_t n = REMOVED;
    BRC_TRY(brc_removed_last(g->store, &walk.last, err));
    BRC_TRY(brc_new_array(&rows, REMOVED, sizeof(brc_removed), err));
    int rc = BRC_OK;
    while (n == REMOVED && rc == BRC_OK) {
        rc = brc_store_begin_read(g->store, err);
        if (rc < 0)
            break;
        rc = brc_removed_next(g->store, &walk, rows, REMOVED, &n, err);
        brc_store_end_read(g->store);
        if (rc == BRC_OK && n > 0)
            rc = sweep_rows(g, rows, n, err);
    }
    free(rows);
    return rc;
}

/* Removes what was put into a backend for transactions that were never committed, round by round. A
 * backend that lists what it claims to have dropped is not asked again. */
static int sweep_strays(gc_run *g, int64_t backend, brc_error *err)
{
    uint64_t first = 0, before;
    int more = 1;
    while (more) {
        const size_t failed = g->removed.failed;
        int rc;
        before = first;
        WITH_ROOM(g, rc,
                  brc_strays_note(g->store, &g->removed, backend, &more, &first, &why));
        BRC_TRY(rc);
        BRC_TRY(sweep_removed(g, backend, err));
        more = more && g->removed.failed == failed && first != before;
    }
    return BRC_OK;
}

static int sweep_all_strays(gc_run *g, brc_error *err)
{
    int64_t backend = 0;
    do {
        BRC_TRY(brc_backend_after(g->store, backend, &backend, err));
        if (backend != 0)
            BRC_TRY(sweep_strays(g, backend, err));
    } while (backend != 0);
    return BRC_OK;
}

static int say_left(const gc_run *g, brc_error *err)
{
    if (err == NULL)
        return g->removed.why.code;
    brc_error_copy(err, &g->removed.why);
    if (g->removed.failed == 0)
        brc_context(err, "%s: the garbage in the file was removed; other backends could not be "
                         "listed, and the next gc tries again",
                    brc_store_path(g->store));
    else
        brc_context(err, "%s: the garbage in the file was removed; other backends could not remove "
                         "%zu item%s, and the next gc tries again",
                    brc_store_path(g->store), g->removed.failed, g->removed.failed == 1 ? "" : "s");
    return err->code;
}

/* ---- the whole -------------------------------- */

/* Forgets operations on uncommitted changes that are older than the window. */
static int forget_logs(gc_run *g, brc_error *err)
{
    BRC_TRY(brc_store_begin(g->store, err));
    const int rc = brc_draft_logs_forget(g->store, g->job->window.since_us, err);
    const int end = brc_store_end(g->store, rc == BRC_OK, rc == BRC_OK ? err : NULL);
    return rc < 0 ? rc : end;
}

static int drop_drafts(gc_run *g, brc_error *err)
{
    int rc, more = 1;
    WITH_ROOM(g, rc, forget_logs(g, &why));
    BRC_TRY(rc);
    while (more) {
        WITH_ROOM(g, rc, brc_drafts_sweep_step(g->store, &more, &why));
        BRC_TRY(rc);
        BRC_TRY(gc_tell(g, err));
    }
    BRC_TRY(brc_store_begin(g->store, err));
    rc = brc_pins_sweep(g->store, err);
    int end = brc_store_end(g->store, rc == BRC_OK, rc == BRC_OK ? err : NULL);
    return rc < 0 ? rc : end;
}

/* Continues from the position of an unfinished collection, then sweeps everything again for garbage
 * before that position. */
static int sweep_all(gc_run *g, brc_error *err)
{
    brc_oid start;
    memset(&start, 0, sizeof(start));
    BRC_TRY(drop_drafts(g, err));
    if (!brc_oid_is_zero(&g->row.position))
        BRC_TRY(sweep_from(g, g->row.position, 0, err));
    g->left.n = 0;
    BRC_TRY(sweep_from(g, start, 0, err));
    BRC_TRY(sweep_left(g, err));
    return sweep_all_strays(g, err);
}

/* Returns how many pages to move in one transaction. Moving a page changes about three other pages,
 * and may change more. */
static int pages_at_once(const gc_run *g)
{
    const size_t each = (size_t)128 << 10;
    const size_t pages = g->sweep.most_bytes / each;
    return g->sweep.most_bytes >= BRC_SWEEP_BYTES ? BRC_VACUUM_PAGES : pages > 0 ? (int)pages : 1;
}

static int give_back_pages(gc_run *g, brc_error *err)
{
    int64_t left = 1;
    while (left > 0) {
        int rc;
        WITH_ROOM(g, rc, brc_vacuum_step(g->store, pages_at_once(g), &left, &why));
        BRC_TRY(rc);
        BRC_TRY(gc_tell(g, err));
    }
    return BRC_OK;
}

/* Compacts rows and shortens the file. On a full disk it gives back free pages first, which may
 * make the necessary room. */
static int tidy_up(gc_run *g, brc_error *err)
{
    if (g->job->expunge)
        BRC_TRY(brc_oplog_expunge(g->store, g->job->window.since_us, g->job->window.least, err));
    const brc_removed_sweep before = g->removed;
    int rc = sweep_removed(g, 0, err);
    if (rc == BRC_ENOSPACE) {
        BRC_TRY(give_back_pages(g, err));
        g->removed = before;
        rc = sweep_removed(g, 0, err);
    }
    BRC_TRY(rc);
    BRC_TRY(give_back_pages(g, err));
    WITH_ROOM(g, rc, brc_tail_cut(g->store, &why));
    BRC_TRY(rc);
    if (g->job->expunge) {
        BRC_TRY(brc_encodings_expunge(g->store, err));
        BRC_TRY(brc_expunge(g->store, err));
    }
    return g->removed.why.code < 0 ? say_left(g, err) : BRC_OK;
}

/* Lets the next collection continue, also if the caller has interrupted this one. */
static void gc_stop(gc_run *g)
{
    const int stopped = brc_store_check_interrupt(g->store, NULL) < 0;
    if (stopped)
        brc_store_interrupt_clear(g->store);
    (void)!brc_gc_leave(g->store, g->owner, &g->row, NULL);
    if (stopped)
        brc_store_interrupt(g->store);
}

static int collect_run(gc_run *g, brc_error *err)
{
    int rc;
    WITH_ROOM(g, rc, brc_gc_begin(g->store, g->owner, g->job->now_us, &g->row, &why));
    BRC_TRY(rc);
    g->sweep.run = g->removed.run = g->row.run;
    rc = sweep_all(g, err);
    if (rc < 0) {
        gc_stop(g);
        return rc;
    }
    /* The collection's row stays until the file has been cut: the row says why a killed collection
     * left a tail (open.c). */
    const int tidied = tidy_up(g, err);
    if (tidied == BRC_EINTERRUPT) {
        gc_stop(g);
        return tidied;
    }
    WITH_ROOM(g, rc, brc_gc_end(g->store, &g->row, &why));
    return tidied < 0 ? tidied : rc;
}

static int gc_run_new(gc_run **out, brc_gc_job *job, brc_store *store, int counts, brc_error *err)
{
    void *p;
    BRC_TRY(brc_new(&p, sizeof(gc_run), err));
    gc_run *g = p;
    g->job = job;
    g->store = store;
    g->sweep.most_bytes = BRC_SWEEP_BYTES;
    g->removed = (brc_removed_sweep){.now_us = job->now_us, .why = BRC_ERROR_INIT};
    int rc = gc_mark_new(&g->mark, store, &job->window, job->memory, err);
    if (rc < 0) {
        free(g);
        return rc;
    }
    g->mark.follows_bases = !job->expunge;
    g->mark.not_dead = counts;
    g->mark.step = job->step;
    g->mark.ctx = job->ctx;
    *out = g;
    return BRC_OK;
}

static void gc_run_free(gc_run *g)
{
    gc_mark_dispose(&g->mark);
    free(g->sweep.bases);
    free(g->left.ids);
    free(g);
}

static int collect_garbage(brc_gc_job *job, brc_store *store, brc_error *err)
{
    brc_buf owner = BRC_BUF_INIT;
    gc_run *g = NULL;
    int rc;
    BRC_GO(brc_process_describe(&owner, err));
    BRC_GO(brc_buf_terminate(&owner, err));
    BRC_GO(gc_run_new(&g, job, store, 0, err));
    g->owner = (const char *)owner.data;
    brc_gc_enter(g->owner);
    brc_log_fold_early(store, 1);
    rc = collect_run(g, err);
    brc_log_fold_early(store, 0);
    brc_gc_exit(g->owner);
    /* a backend that is full says so itself */
    if (rc == BRC_ENOSPACE && (err == NULL || strcmp(err->source, BRC_BACKEND_SOURCE) != 0))
        rc = say_no_space(g, err);
    job->objects = g->sweep.objects;
    job->bytes = g->sweep.bytes;
    job->past = g->mark.past;
done:
    if (g != NULL)
        gc_run_free(g);
    brc_buf_dispose(&owner);
    return rc;
}

/* Counts what would be removed, and changes nothing. The numbers are exact while nobody writes. */
static int count_garbage(brc_gc_job *job, brc_store *store, brc_error *err)
{
    gc_run *g;
    brc_oid start;
    memset(&start, 0, sizeof(start));
    BRC_TRY(gc_run_new(&g, job, store, 1, err));
    int rc = sweep_from(g, start, 1, err);
    job->past = g->mark.past;
    gc_run_free(g);
    return rc;
}

/* ==== brc_gc ================================ */

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
        return brc_window_of_text(opts->keep, job->now_us, &job->window, err);
    BRC_TRY(brc_store_begin_read(repo->store, err));
    int rc = brc_window_get(repo->store, job->now_us, &job->window, err);
    brc_store_end_read(repo->store);
    return rc;
}

static int gc_work(breccia *repo, const brc_gc_opts *opts, brc_gc_job *job, brc_error *err)
{
    BRC_TRY(gc_window(repo, opts, job, err));
    BRC_TRY(brc_deltas_check(repo->store, err));
    return opts->flags & BRC_GC_DRY_RUN ? count_garbage(job, repo->store, err)
                                        : collect_garbage(job, repo->store, err);
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

static int file_bytes_after(brc_store *store, const brc_gc_job *job, uint32_t flags, uint64_t *out,
                            brc_error *err)
{
    if (flags & BRC_GC_DRY_RUN)
        return brc_collect_leaves(store, job->bytes, out, err);
    return brc_store_file_bytes(store, out, err);
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
    report.past_versions = job.past;
    if (rc == BRC_OK)
        rc = file_bytes_after(repo->store, &job, opts.flags, &report.file_bytes, err);
    if (out == NULL)
        return rc;
    int given_out = brc_sized_out(out, &report, sizeof(report),
                                  offsetof(brc_gc_report, file_bytes), "brc_gc_report",
                                  rc < 0 ? NULL : err);
    return rc < 0 ? rc : given_out;
}
