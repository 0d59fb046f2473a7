#include "write.h"

#include <search.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "../base/alloc.h"
#include "../store/change.h"
#include "../store/collect.h"
#include "write_work.h"

static int write_again(brc_write_run *run, brc_write_item *item, brc_error *err);
static void write_let_go(brc_write_run *run, brc_write_item *item);
static int write_load_olds(brc_write_run *run, size_t n, brc_write_item *const *items,
                           brc_error *err);
static int write_settle_items(brc_write_run *run, size_t n, brc_write_item *const *items,
                              brc_error *err);
static int write_settling(brc_write_run *run, size_t n, brc_error *err);
static int write_store(brc_write_run *run, const brc_write_item *item, const brc_stored *at,
                       brc_error *err);
static int write_finish_job(void *ctx, brc_window_job *base, brc_error *err);

/* ==== prepared ================================ */

/*
 * A write that is prepared without a lock: read, merged, hashed, encoded, and held in memory.
 *
 * Others may change the file before the write is stored. So the transaction that stores it checks
 * that each chunk that is changed in part still has the content that the change was based on, and
 * that each object that was found still exists; other chunks are made again. If nobody has changed
 * the file since it was read, the check is skipped.
 */

struct brc_prepared {
    brc_write_run run;
    brc_write_ops ops;
};

/* ---- what has changed -------------------------------- */

static int id_order(const void *a, const void *b)
{
    return brc_oid_cmp(&((const brc_write_item *)a)->id, &((const brc_write_item *)b)->id);
}

static int check_old_id(const brc_write_run *run, brc_write_item *item, brc_error *err)
{
    brc_oid now;
    if (!item->is_part)
        return BRC_OK;
    BRC_TRY(run->ops->now(run->ops->ctx, item, &now, err));
    item->is_undone = brc_oid_cmp(&now, &item->was) != 0;
    item->was = now;
    return BRC_OK;
}

/* Marks the items whose object appeared, disappeared or changed since they were looked up. */
static int check_hits(brc_write_run *run, brc_error *err)
{
    const brc_settling *s = &run->settling;
    BRC_TRY(brc_objects_find(run->store, s->asked, s->n, err));
    for (size_t i = 0; i < s->n; i++) {
        brc_write_item *item = s->items[i];
        const brc_object *there = &s->objects[i];
        item->is_undone |= there->found != item->is_known ||
                           (there->found &&
                            (there->size != item->len || there->guard != item->guard));
    }
    return BRC_OK;
}

/* Lets go of the undone items, or, with `twins`, marks the items as undone whose equal item was let
 * go of: done again, the equal item may get another content. */
static void undo_items(brc_write_run *run, brc_window_job *const *jobs, size_t n, int twins)
{
    for (size_t i = 0; i < n; i++) {
        brc_write_job *job = (brc_write_job *)jobs[i];
        for (size_t j = 0; j < job->n; j++) {
            brc_write_item *item = &job->items[j];
            if (!twins && item->is_undone)
                write_let_go(run, item);
            if (twins && item->is_twin && tfind(item, &run->held, id_order) == NULL)
                item->is_undone = 1;
        }
    }
}

/* Marks the items that others' changes have undone, in the transaction that will store. Returns 1
 * if there are any. */
static int find_changed(brc_write_run *run, brc_window_job *const *jobs, size_t n, brc_error *err)
{
    uint64_t version;
    brc_settling *s = &run->settling;
    int any = 0;
    BRC_TRY(brc_store_version(run->store, &version, err));
    if (version == run->version)
        return 0;
    run->version = version;
    BRC_TRY(write_settling(run, n, err));
    for (size_t i = 0; i < n; i++) {
        brc_write_job *job = (brc_write_job *)jobs[i];
        for (size_t j = 0; j < job->n; j++) {
            brc_write_item *item = &job->items[j];
            BRC_TRY(check_old_id(run, item, err));
            if (item->is_undone || item->is_fill || item->is_twin)
                continue;
            s->objects[s->n] = (brc_object){.id = item->id};
            s->asked[s->n] = &s->objects[s->n];
            s->items[s->n++] = item;
        }
    }
    BRC_TRY(check_hits(run, err));
    undo_items(run, jobs, n, 0);
    undo_items(run, jobs, n, 1);
    for (size_t i = 0; i < n; i++)
        for (size_t j = 0; j < ((brc_write_job *)jobs[i])->n; j++)
            any |= ((brc_write_job *)jobs[i])->items[j].is_undone;
    return any;
}

/* ---- doing it again -------------------------------- */

static void forget_made(brc_write_item *item)
{
    brc_write_forget_old(item);
    item->old = (brc_object){.id = item->was};
    item->stored.len = item->own.len = 0;
    item->is_fill = item->is_known = item->is_twin = item->compares = item->as_is = 0;
}

static int work_on(brc_write_run *run, int stage, size_t n, brc_write_item *const *items,
                   brc_error *err)
{
    for (size_t i = 0; i < n; i++)
        BRC_TRY(brc_write_work(run, items[i], stage, brc_pipe_caller(run->pipe), err));
    return BRC_OK;
}

/* Does the undone items of a job again, in the same steps as the flow. */
static int redo_job(brc_write_run *run, brc_write_job *job, brc_error *err)
{
    brc_write_item *items[BRC_WRITE_ITEMS];
    size_t n = 0;
    for (size_t i = 0; i < job->n; i++) {
        if (!job->items[i].is_undone)
            continue;
        items[n++] = &job->items[i];
        job->items[i].is_undone = 0;
        forget_made(&job->items[i]);
        BRC_TRY(brc_backend_use(run->store, brc_write_backend(&job->items[i]), &job->into[i], err));
    }
    if (n == 0)
        return BRC_OK;
    BRC_TRY(write_load_olds(run, n, items, err));
    brc_store_pause_read(run->store);
    BRC_TRY(work_on(run, 0, n, items, err));
    BRC_TRY(write_settle_items(run, n, items, err));
    brc_store_pause_read(run->store);
    BRC_TRY(work_on(run, 1, n, items, err));
    return brc_write_put(job, BRC_PUT_ON_WORKER, err);
}

static int redo_all(brc_write_run *run, brc_window_job *const *jobs, size_t n, brc_error *err)
{
    for (size_t i = 0; i < n; i++)
        BRC_TRY(redo_job(run, (brc_write_job *)jobs[i], err));
    return BRC_OK;
}

/* ---- the three steps -------------------------------- */

int brc_prepared_check(brc_prepared *p, int insists, brc_error *err)
{
    brc_write_run *run = &p->run;
    const brc_window *w = &run->pipe->writing;
    const int changed = find_changed(run, w->held, w->nheld, err);
    if (changed <= 0)
        return changed;
    return insists ? redo_all(run, w->held, w->nheld, err) : BRC_CHANGE_AGAIN;
}

int brc_prepared_renew(brc_prepared *p, brc_error *err)
{
    brc_write_run *run = &p->run;
    const brc_window *w = &run->pipe->writing;
    BRC_TRY(redo_all(run, w->held, w->nheld, err));
    return brc_write_put_outside(run, w->held, w->nheld, err);
}

int brc_prepared_store(brc_prepared *p, brc_error *err)
{
    const brc_window *w = &p->run.pipe->writing;
    for (size_t i = 0; i < w->nheld; i++)
        BRC_TRY(write_finish_job(&p->run, w->held[i], err));
    return BRC_OK;
}

/* ==== write ahead ================================ */

/*
 * Bulk writes of many small chunks: stores the rows of their objects in the order of the index.
 *
 * Ids lie in no order. A short transaction with a few hundred new ids touches about a page of the
 * index for each, and every page is written twice, to the journal and to the file. So the chunks of
 * a batch are held in memory, and stored in two steps, each in transactions as short as ever:
 *
 *      their bytes, in the order of writing (a read finds neighbours together)
 *      their rows in the index, in the order of ids: rows on one page come together
 *
 * Between the two the bytes count as left (backend.c), so that all bytes of a writer that is killed
 * are accounted for. Rows of the draft follow when the batch is finished. Others may change the
 * file between any two of these transactions; if they did, everything is checked again: a row of
 * bytes may be gone, and an object may exist meanwhile or have been collected.
 */

/* Smaller batches gain nothing from sorting, and are stored in the order of writing. */
#define AHEAD_LEAST 1024
/* Items that are checked again and recorded before the lock is offered to others. */
#define AHEAD_STEP 64
/* Times that bytes which others have removed are put again with rests in between. */
#define AHEAD_TRIES 4

typedef struct ahead_item {
    brc_write_item *item;
    brc_stored *at;
    brc_store_backend *into;
} ahead_item;

/* A row of stored bytes, and how many of its bytes belong to items that are not recorded yet. */
typedef struct ahead_row {
    int64_t seq;
    uint64_t bytes;
    int is_gone;
} ahead_row;

typedef struct ahead_list {
    ahead_item *items;
    size_t n;
    ahead_row *rows; /* sorted by seq */
    size_t nrows, rows_cap;
    int64_t others; /* brc_store_others() at the last check */
} ahead_list;

static int is_ahead(const brc_write_run *run, const brc_write_job *job, size_t i)
{
    const brc_write_item *item = &job->items[i];
    const uint64_t len = item->as_is ? item->len : item->stored.len;
    return !run->ops->replace && brc_write_is_new(item) && job->into[i] != NULL &&
           brc_backend_is_inline(job->into[i]) && len <= (uint64_t)BRC_SMALL_MOST;
}

static size_t count_ahead(const brc_write_run *run, brc_window_job *const *jobs, size_t n)
{
    size_t count = 0;
    for (size_t i = 0; i < n; i++) {
        const brc_write_job *job = (const brc_write_job *)jobs[i];
        for (size_t j = 0; j < job->n; j++)
            count += is_ahead(run, job, j) ? 1 : 0;
    }
    return count;
}

/* ---- bytes -------------------------------- */

static int row_note(ahead_list *list, const brc_stored *at, brc_error *err)
{
    void *p = list->rows;
    ahead_row *last = list->nrows > 0 ? &list->rows[list->nrows - 1] : NULL;
    if (last != NULL && last->seq == at->number) {
        last->bytes += at->len;
        return BRC_OK;
    }
    int rc = brc_grow_array(&p, &list->rows_cap, list->nrows + 1, sizeof(ahead_row), err);
    list->rows = p;
    if (rc == BRC_OK)
        list->rows[list->nrows++] = (ahead_row){.seq = at->number, .bytes = at->len};
    return rc;
}

static ahead_row *row_of(ahead_list *list, int64_t seq)
{
    size_t low = 0, high = list->nrows;
    while (high - low > 1) {
        const size_t mid = low + (high - low) / 2;
        *(list->rows[mid].seq <= seq ? &low : &high) = mid;
    }
    return &list->rows[low];
}

/* Puts the bytes of some items, in the open transaction or a new one. */
static int put_some(brc_write_run *run, ahead_list *list, ahead_item *const *items, size_t n,
                    brc_error *err)
{
    brc_stored *put[AHEAD_STEP];
    for (size_t i = 0; i < n; i++) {
        brc_write_describe(items[i]->item, items[i]->at);
        put[i] = items[i]->at;
    }
    BRC_TRY(brc_store_wake(run->store, err));
    BRC_TRY(brc_backend_put(items[0]->into, n, put, err));
    for (size_t i = 0; i < n; i++) {
        BRC_TRY(row_note(list, put[i], err));
        BRC_TRY(brc_row_ahead(run->store, put[i]->number, (int64_t)put[i]->len, err));
    }
    return BRC_OK;
}

/* Puts the bytes of the items from the i-th on: of all, or of the items whose row is gone. */
static int put_items(brc_write_run *run, ahead_list *list, size_t i, int all, int rests,
                     brc_error *err)
{
    while (i < list->n) {
        ahead_item *some[AHEAD_STEP];
        size_t n = 0;
        for (; i < list->n && n < AHEAD_STEP; i++)
            if (all || row_of(list, list->items[i].at->number)->is_gone)
                some[n++] = &list->items[i];
        if (n > 0)
            BRC_TRY(put_some(run, list, some, n, err));
        if (rests)
            BRC_TRY(brc_store_rest(run->store, 0, err));
    }
    return BRC_OK;
}

/* ---- rows -------------------------------- */

/* Finds the rows that others have removed before all bytes in them were recorded. */
static int find_gone(brc_write_run *run, ahead_list *list, size_t *gone, brc_error *err)
{
    *gone = 0;
    BRC_TRY(brc_rows_settle(run->store, err));
    for (size_t i = 0; i < list->nrows; i++) {
        ahead_row *row = &list->rows[i];
        int is_there = 1;
        if (row->bytes > 0 && !row->is_gone)
            BRC_TRY(brc_row_is_ahead(run->store, row->seq, row->bytes, &is_there, err));
        row->is_gone |= !is_there;
        *gone += !is_there;
    }
    return BRC_OK;
}

/* Begins or continues a transaction. If others have changed the file since the last check, puts
 * the bytes from the i-th item on again where their row is gone, and sets *again: the ids must be
 * looked up. The last try does not rest, so that others cannot delay it forever. */
static int rows_wake(brc_write_run *run, ahead_list *list, size_t i, int *again, brc_error *err)
{
    for (int tries = 0;; tries++) {
        int64_t others;
        size_t gone;
        BRC_TRY(brc_store_wake(run->store, err));
        BRC_TRY(brc_store_others(run->store, &others, err));
        if (others == list->others)
            return BRC_OK;
        *again = 1;
        list->others = others;
        BRC_TRY(find_gone(run, list, &gone, err));
        if (gone > 0)
            BRC_TRY(put_items(run, list, i, 0, tries < AHEAD_TRIES, err));
    }
}

static int record_one(brc_write_run *run, ahead_list *list, const ahead_item *a, int again,
                      brc_error *err)
{
    if (again)
        BRC_TRY(write_again(run, a->item, err));
    ahead_row *row = row_of(list, a->at->number);
    row->bytes -= a->at->len < row->bytes ? a->at->len : row->bytes;
    if (!brc_write_is_new(a->item)) /* the bytes that were put stay unused */
        return BRC_OK;
    BRC_TRY(write_store(run, a->item, a->at, err));
    a->item->is_recorded = 1;
    return brc_row_ahead(run->store, a->at->number, -(int64_t)a->at->len, err);
}

static int ahead_order(const void *a, const void *b)
{
    return brc_oid_cmp(&((const ahead_item *)a)->item->id, &((const ahead_item *)b)->item->id);
}

static int record_all(brc_write_run *run, ahead_list *list, brc_error *err)
{
    int again = 0;
    qsort(list->items, list->n, sizeof(*list->items), ahead_order);
    for (size_t i = 0; i < list->n; i++) {
        if (i % AHEAD_STEP == 0) {
            BRC_TRY(brc_store_rest(run->store, 0, err));
            BRC_TRY(rows_wake(run, list, i, &again, err));
        }
        int rc = record_one(run, list, &list->items[i], again, err);
        if (rc < 0)
            return brc_write_named(run, list->items[i].item, rc, err);
    }
    return BRC_OK;
}

/* ---- both -------------------------------- */

static void ahead_gather(const brc_write_run *run, brc_window_job *const *jobs, size_t n,
                         ahead_list *list)
{
    for (size_t i = 0; i < n; i++) {
        brc_write_job *job = (brc_write_job *)jobs[i];
        for (size_t j = 0; j < job->n; j++) {
            if (!is_ahead(run, job, j))
                continue;
            list->items[list->n++] = (ahead_item){&job->items[j], &job->at[j], job->into[j]};
            job->into[j] = NULL; /* write_ahead() puts it */
        }
    }
}

/* Stores the objects of the small chunks of a batch, if there are many, before its jobs are
 * finished. Does nothing outside of a bulk write. */
static int write_ahead(brc_write_run *run, brc_window_job *const *jobs, size_t n,
                       brc_error *err)
{
    ahead_list list = {0};
    void *p;
    const size_t count = brc_store_in_bulk(run->store) ? count_ahead(run, jobs, n) : 0;
    if (count < AHEAD_LEAST)
        return BRC_OK;
    BRC_TRY(brc_new_array(&p, count, sizeof(ahead_item), err));
    list.items = p;
    list.others = ((const brc_write_job *)jobs[0])->others; /* the first job's is the earliest */
    ahead_gather(run, jobs, n, &list);
    int rc = put_items(run, &list, 0, 1, 1, err);
    if (rc == BRC_OK)
        rc = record_all(run, &list, err);
    free(list.items);
    free(list.rows);
    return rc;
}

/* Finds the items that were written ahead and have been collected since, so that the job stores
 * them again. Called in the transaction that finishes the job. */
static int write_still_there(brc_write_run *run, brc_write_job *job, brc_error *err)
{
    int64_t last;
    BRC_TRY(brc_gc_last(run->store, &last, err));
    if (last == run->collected)
        return BRC_OK;
    for (size_t i = 0; i < job->n; i++) {
        brc_write_item *item = &job->items[i];
        brc_object there = {.id = item->id}, *one = &there;
        if (!item->is_recorded)
            continue;
        BRC_TRY(brc_objects_find(run->store, &one, 1, err));
        if (there.found)
            continue;
        item->is_recorded = 0;
        BRC_TRY(brc_backend_use(run->store, brc_write_backend(item), &job->into[i], err));
    }
    return BRC_OK;
}

/* ==== write settle ================================ */

/* Writing, on the caller's thread: fetches the chunks that are changed in part, looks up which
 * chunks are stored already, and writes the rows of the others. */

/* ---- chunks that are changed in part -------------------------------- */

/* Loads the object that the item is to be a difference from. */
static int write_load_base(brc_write_run *run, brc_write_item *item, brc_error *err)
{
    brc_object base = {.id = item->base}, *one = &base;
    BRC_TRY(brc_objects_find(run->store, &one, 1, err));
    if (!base.found)
        return brc_object_missing(&base.id, err);
    if (!brc_is_in_file(base.backend))
        BRC_TRY(brc_store_rest(run->store, 1, err));
    return brc_bases_load(run->store, &base, NULL, &item->base_of, err);
}

static int write_load_old(brc_write_run *run, brc_write_item *item, brc_error *err)
{
    const brc_object *o = &item->old;
    if (!o->found)
        return brc_object_missing(&o->id, err);
    if (!brc_is_in_file(o->backend))
        BRC_TRY(brc_store_rest(run->store, 1, err)); /* a slow backend works without a lock */
    if (item->keeps)
        return brc_write_load_stored(run->store, item, &run->ahead, err);
    BRC_TRY(brc_write_fetch_old(run->store, item, &run->ahead, err));
    if (item->old_bases == NULL && o->encoding != 0 && item->old_chain == NULL)
        return brc_fail(err, BRC_EUNSUPPORTED,
                        "it was stored by a build that could not decode it: import it again");
    return brc_oid_is_zero(&item->base) ? BRC_OK : write_load_base(run, item, err);
}

/* Fetches objects that lie far away together, from the first of them that is not there yet. Those
 * that were not found are left out. */
static int write_look_ahead(brc_write_run *run, size_t n, const brc_object *const *objects,
                            brc_error *err)
{
    if (n == 0 || !objects[0]->found || !brc_object_is_far(run->store, objects[0]) ||
        brc_ahead_find(&run->ahead, objects[0]) != NULL)
        return BRC_OK;
    BRC_TRY(brc_store_rest(run->store, 1, err)); /* a slow backend works without a lock */
    return brc_ahead_fetch(run->store, &run->ahead, n, objects, err);
}

static int write_place_order(const void *x, const void *y)
{
    const brc_write_item *a = *(brc_write_item *const *)x, *b = *(brc_write_item *const *)y;
    return brc_object_place_order(&a->old, &b->old);
}

/* Loads the old content of the chunks that are changed in part: looks the objects up together, and
 * fetches them in the order in which they are stored. n is at most BRC_WRITE_ITEMS. */
static int write_load_olds(brc_write_run *run, size_t n, brc_write_item *const *items,
                           brc_error *err)
{
    brc_object *asked[BRC_WRITE_ITEMS];
    brc_write_item *olds[BRC_WRITE_ITEMS];
    const brc_object *objects[BRC_WRITE_ITEMS];
    size_t nasked = 0, nolds = 0;
    for (size_t i = 0; i < n; i++) {
        if (brc_oid_is_zero(&items[i]->old.id))
            continue;
        olds[nolds++] = items[i];
        if (!items[i]->old.found)
            asked[nasked++] = &items[i]->old;
    }
    if (nasked > 0)
        BRC_TRY(brc_objects_find(run->store, asked, nasked, err));
    if (nolds > 1)
        qsort(olds, nolds, sizeof(*olds), write_place_order);
    for (size_t i = 0; i < nolds; i++)
        objects[i] = &olds[i]->old;
    for (size_t i = 0; i < nolds; i++) {
        brc_error why = BRC_ERROR_INIT;
        int rc = write_look_ahead(run, nolds - i, objects + i, err);
        if (rc < 0)
            return brc_write_named(run, olds[i], rc, err);
        rc = write_load_old(run, olds[i], &why);
        rc = brc_write_leave(run, olds[i], rc, &why, err);
        if (rc < 0)
            return brc_write_named(run, olds[i], rc, err);
    }
    return BRC_OK;
}

/* ---- settling: what is there already -------------------------------- */

static int write_id_order(const void *a, const void *b)
{
    return brc_oid_cmp(&((const brc_write_item *)a)->id, &((const brc_write_item *)b)->id);
}

/* Makes an item the twin of an earlier one of this call with the same hash. BRC_ECOLLISION if their
 * contents differ. */
static int write_twin(const brc_write_item *first, brc_write_item *item, brc_error *err)
{
    item->is_known = item->is_twin = 1;
    if (first->len == item->len && first->guard == item->guard &&
        (item->len > BRC_COMPARE_MAX || item->len == 0 ||
         memcmp(first->data, item->data, item->len) == 0))
        return BRC_OK;
    return brc_fail(err, BRC_ECOLLISION,
                    "another chunk with different content has the same hash: nothing was stored; "
                    "such data, made to collide, needs a repository with a cryptographic hash");
}

/* Holds an item by its id until it is stored (item->is_held). If an item with the same content is
 * held already, makes this one its twin: of equal contents only the first is stored. */
static int write_hold(brc_write_run *run, brc_write_item *item, brc_error *err)
{
    brc_write_item **slot = tsearch(item, &run->held, write_id_order);
    if (slot == NULL)
        return brc_nomem(err);
    item->is_held = *slot == item;
    return item->is_held ? BRC_OK : write_twin(*slot, item, err);
}

/* Returns whether an item with the same content is held. */
static int write_is_held(const brc_write_run *run, const brc_write_item *item)
{
    return tfind(item, &run->held, write_id_order) != NULL;
}

/* Lets go of an item that is stored, or will not be: then an equal one may be held. */
static void write_let_go(brc_write_run *run, brc_write_item *item)
{
    if (item->is_held)
        tdelete(item, &run->held, write_id_order);
    item->is_held = 0;
}

/* Marks an item as known, whose id the store has; the content must be the same. Small contents,
 * which can be made to have the same hash and guard, are compared byte by byte on the pool:
 * item->old is the object to compare with. */
static int write_known(brc_write_run *run, brc_write_item *item, const brc_object *there,
                       brc_error *err)
{
    item->is_known = 1;
    write_let_go(run, item);
    if (there->size != item->len || there->guard != item->guard)
        return brc_object_collides(run->store, &item->id, err);
    if (item->len > BRC_COMPARE_MAX)
        return BRC_OK;
    if (item->chain == NULL) { /* `stored` has the content itself: keep it in `own` */
        brc_buf own = item->own;
        item->own = item->stored;
        item->stored = own;
        item->data = item->own.data;
    }
    item->old = *there;
    item->compares = 1;
    return brc_write_fetch_old(run->store, item, &run->ahead, err);
}

static int write_settle_item(brc_write_run *run, brc_write_item *item, brc_settling *s,
                             brc_error *err)
{
    if (item->is_piece)
        return run->ops->done(run->ops->ctx, item, err);
    if (item->is_fill || item->stays)
        return BRC_OK;
    if (run->ops->replace)
        return brc_oid_cmp(&item->id, &item->old.id) == 0
                   ? BRC_OK
                   : brc_fail(err, BRC_ECORRUPT,
                              "its content has another hash; run 'breccia fsck'");
    BRC_TRY(write_hold(run, item, err));
    if (!item->is_held)
        return BRC_OK;
    s->objects[s->n] = (brc_object){.id = item->id};
    s->asked[s->n] = &s->objects[s->n];
    s->items[s->n++] = item;
    return BRC_OK;
}

/* Empties run->settling and makes room in it to look up the items of n jobs at once. */
static int write_settling(brc_write_run *run, size_t n, brc_error *err)
{
    void *p;
    brc_settling *s = &run->settling;
    s->n = 0;
    if (n * BRC_WRITE_ITEMS <= s->cap)
        return BRC_OK;
    BRC_TRY(brc_new_array(&p, n * BRC_WRITE_ITEMS,
                          sizeof(brc_object) + sizeof(brc_object *) + sizeof(brc_write_item *),
                          err));
    free(s->objects);
    s->cap = n * BRC_WRITE_ITEMS;
    s->objects = p;
    s->asked = (brc_object **)(s->objects + s->cap);
    s->items = (brc_write_item **)(s->asked + s->cap);
    return BRC_OK;
}

/* Fetches, from the i-th on, objects with whose contents items will be compared. */
static int write_compare_ahead(brc_write_run *run, size_t i, brc_error *err)
{
    const brc_object *objects[BRC_WRITE_ITEMS];
    const brc_settling *s = &run->settling;
    size_t n = 0;
    for (; i < s->n && n < BRC_WRITE_ITEMS; i++)
        if (s->objects[i].found && s->items[i]->len <= BRC_COMPARE_MAX)
            objects[n++] = &s->objects[i];
    return write_look_ahead(run, n, objects, err);
}

/* Looks up in the store the items that have no equal among this call's own. */
static int write_look_up(brc_write_run *run, brc_error *err)
{
    const brc_settling *s = &run->settling;
    BRC_TRY(brc_objects_find(run->store, s->asked, s->n, err));
    for (size_t i = 0; i < s->n; i++) {
        if (!s->objects[i].found)
            continue;
        if (!brc_is_in_file(s->objects[i].backend)) {
            BRC_TRY(brc_store_rest(run->store, 1, err));
            BRC_TRY(write_compare_ahead(run, i, err));
        }
        int rc = write_known(run, s->items[i], &s->objects[i], err);
        if (rc < 0)
            return brc_write_named(run, s->items[i], rc, err);
    }
    return BRC_OK;
}

/* Settles some items of one job. */
static int write_settle_items(brc_write_run *run, size_t n, brc_write_item *const *items,
                              brc_error *err)
{
    BRC_TRY(write_settling(run, 1, err));
    for (size_t i = 0; i < n; i++) {
        int rc = write_settle_item(run, items[i], &run->settling, err);
        if (rc < 0)
            return brc_write_named(run, items[i], rc, err);
    }
    return write_look_up(run, err);
}

/* Finds which of the jobs' items are stored already, as the window's settle(). */
static int write_settle(void *ctx, brc_window_job *const *jobs, size_t n, brc_error *err)
{
    brc_write_run *run = ctx;
    int64_t others = 0;
    BRC_TRY(write_settling(run, n, err));
    if (brc_store_in_bulk(run->store))
        BRC_TRY(brc_store_others(run->store, &others, err));
    for (size_t i = 0; i < n; i++) {
        brc_write_job *job = (brc_write_job *)jobs[i];
        job->others = others;
        job->base.is_over = 1;
        for (size_t j = 0; j < job->n; j++) {
            int rc = write_settle_item(run, &job->items[j], &run->settling, err);
            if (rc < 0)
                return brc_write_named(run, &job->items[j], rc, err);
            job->base.is_over &= job->items[j].is_piece;
        }
    }
    BRC_TRY(write_look_up(run, err));
    return brc_write_let_others(run, err);
}

/* ---- what is not there -------------------------------- */

/* Writes the row of the object whose bytes were put at `at`. */
static int write_store(brc_write_run *run, const brc_write_item *item, const brc_stored *at,
                       brc_error *err)
{
    brc_object o = run->ops->replace ? item->old
                                     : (brc_object){.id = item->id,
                                                    .kind = BRC_KIND_CHUNK,
                                                    .size = item->len,
                                                    .guard = item->guard};
    const int is_delta = !brc_oid_is_zero(&item->base);
    if (item->keeps)
        o.encoding = item->old.encoding;
    else if (is_delta)
        BRC_TRY(brc_encoding_intern(run->store, BRC_DELTA_SPEC, &o.encoding, err));
    else if (!item->as_is && item->spec != NULL)
        BRC_TRY(brc_encoding_intern(run->store, item->spec, &o.encoding, err));
    else
        o.encoding = 0;
    o.backend = brc_write_backend(item);
    o.stored = at->len;
    o.checksum = item->checksum;
    if (!run->ops->replace)
        return brc_object_record(run->store, &o, at, err);
    return brc_object_replace_on(run->store, &o, at, is_delta ? &item->base : NULL, err);
}

/* Looks a new item up again: in a bulk write others may have stored the same content meanwhile. */
static int write_again(brc_write_run *run, brc_write_item *item, brc_error *err)
{
    brc_object there = {.id = item->id}, *one = &there;
    BRC_TRY(brc_objects_find(run->store, &one, 1, err));
    if (!there.found)
        return BRC_OK;
    BRC_TRY(write_known(run, item, &there, err));
    return item->compares ? brc_write_compare(run, brc_pipe_caller(run->pipe), item, err) : BRC_OK;
}

int brc_flow_check_same(brc_pipe *pipe, brc_store *store, const brc_object *mine,
                        brc_span short_content, const brc_object *there, brc_error *err)
{
    brc_scratch *scratch;
    brc_write_run run = {.pipe = pipe, .store = store};
    brc_write_item item = {.id = mine->id, .guard = mine->guard, .len = (size_t)mine->size};
    const unsigned worker = brc_pipe_caller(pipe);
    if (there->kind != mine->kind)
        return brc_object_collides(store, &mine->id, err);
    BRC_TRY(brc_pipe_scratch(pipe, worker, &scratch, err));
    int rc = write_known(&run, &item, there, err);
    item.data = short_content.data;
    if (rc == BRC_OK && item.compares)
        rc = brc_write_compare(&run, worker, &item, err);
    brc_write_forget_old(&item);
    brc_buf_dispose(&item.stored);
    brc_buf_dispose(&item.place);
    brc_buf_dispose(&item.own);
    return rc;
}

/* ==== write ================================ */

/* The write flow: filling, storing, and the window that it goes through. */

#define JOBS_PER_THREAD 6
/* Jobs of a prepared write, which holds all of them until the last is encoded. */
#define JOBS_TOGETHER 64
/* Jobs of a bulk write: many jobs of small chunks, whose rows are sorted. */
#define JOBS_IN_BULK 512
/* Bytes, decoded and encoded, of the jobs that a bulk write finishes together: many, whose rows are
 * sorted and whose bytes a backend makes durable at once; few, where chunks are large and go to the
 * file, or objects are stored again, so that others work while these are finished; and of objects
 * that are stored again where a backend is far away, so that what one batch puts there fills a
 * pack. */
#define BATCH_BYTES ((size_t)64 << 20)
#define BATCH_BYTES_FEW ((size_t)16 << 20)
#define BATCH_BYTES_FAR ((size_t)128 << 20)
#define LARGE_BYTES ((size_t)64 << 10)
/* Buffers up to this size are kept from one call to the next. */
#define KEPT_BYTES ((size_t)1 << 20)

/* ---- filling -------------------------------- */

/* Resets an item, but keeps its memory. */
static void write_clear(brc_write_item *item)
{
    brc_buf stored = item->stored, own = item->own, place = item->place;
    brc_write_forget_old(item);
    memset(item, 0, offsetof(brc_write_item, index));
    item->stored = stored;
    item->own = own;
    item->place = place;
    item->stored.len = item->own.len = item->place.len = 0;
}

static size_t bases_len(const brc_bases *bases)
{
    return bases != NULL ? bases->stored.cap : 0;
}

/* Estimates, when a job is filled, the bytes that it will hold: each chunk is gathered and
 * encoded. */
static size_t write_job_bytes(const brc_write_run *run, const brc_write_job *job)
{
    size_t held = 0, guess = 0;
    for (size_t i = 0; i < job->n; i++) {
        const brc_write_item *item = &job->items[i];
        held += item->stored.cap + item->own.cap;
        guess += item->is_piece ? item->stored.cap + item->len
                                : 2 * (item->len > 0 ? item->len : run->ops->len);
        held += bases_len(item->old_bases) + bases_len(item->base_of);
        guess += bases_len(item->old_bases) + bases_len(item->base_of);
    }
    return held > guess ? held : guess;
}

static int write_fetch(brc_write_run *run, brc_write_job *job, brc_error *err)
{
    brc_write_item *items[BRC_WRITE_ITEMS];
    for (size_t i = 0; i < job->n; i++)
        items[i] = &job->items[i];
    return write_load_olds(run, job->n, items, err);
}

static int write_fill_job(void *ctx, brc_window_job *base, brc_error *err)
{
    brc_write_run *run = ctx;
    brc_write_job *job = (brc_write_job *)base;
    BRC_TRY(brc_store_rest(run->store, 0, err)); /* the caller's source may wait */
    for (size_t i = 0; i < run->job_items; i++)
        write_clear(&job->items[i]);
    int rc = run->ops->list(run->ops->ctx, job->items, run->job_items, &job->n, err);
    if (rc != BRC_OK)
        return rc;
    BRC_TRY(write_fetch(run, job, err));
    for (size_t i = 0; i < job->n; i++) {
        BRC_TRY(brc_backend_use(run->store, brc_write_backend(&job->items[i]), &job->into[i], err));
        run->outside |= !brc_backend_is_inline(job->into[i]);
        run->is_slow |= brc_backend_is_slow(job->into[i]);
    }
    if (run->outside)
        BRC_TRY(brc_write_let_others(run, err));
    if (!run->is_prepared) /* else the window pauses after several jobs */
        brc_store_pause_read(run->store);
    base->bytes = write_job_bytes(run, job);
    return job->n > 0;
}

/* ---- storing -------------------------------- */

/* Encodes an item after all, whose object was found and has been collected meanwhile. If the item
 * goes to another backend than the file, it is put there within this transaction. */
static int write_after_all(brc_write_run *run, brc_write_job *job, brc_write_item *item,
                           brc_error *err)
{
    item->is_known = item->is_twin = 0;
    BRC_TRY(write_hold(run, item, err));
    if (!item->is_held) /* an equal item of this job is held */
        return BRC_OK;
    BRC_TRY(brc_write_encode_anew(run, item, err));
    return brc_backend_use(run->store, brc_write_backend(item), &job->into[item - job->items], err);
}

/* Checks in this transaction that the object of a known item exists: it was found before, or in
 * memory. */
static int write_check_known(brc_write_run *run, brc_write_job *job, brc_write_item *item,
                             brc_error *err)
{
    brc_object there = {.id = item->id}, *one = &there;
    if (item->is_piece || item->is_fill || !item->is_known || run->ops->replace ||
        write_is_held(run, item))
        return BRC_OK;
    BRC_TRY(brc_objects_find(run->store, &one, 1, err));
    if (!there.found)
        return write_after_all(run, job, item, err);
    if (there.size != item->len || there.guard != item->guard)
        return brc_object_collides(run->store, &item->id, err);
    return brc_gc_keep(run->store, &item->id, err);
}

/* Called before the first item of a job is stored, in the transaction that stores it. Sets *again
 * if others have changed the file since the job was settled. */
static int write_begin_job(brc_write_run *run, const brc_write_job *job, int *again, brc_error *err)
{
    int64_t others;
    *again = 0;
    if (!brc_store_in_bulk(run->store))
        return BRC_OK;
    BRC_TRY(brc_store_wake(run->store, err));
    BRC_TRY(brc_store_others(run->store, &others, err));
    *again = others != job->others;
    return BRC_OK;
}

static int write_needs_row(const brc_write_item *item)
{
    return brc_write_is_new(item) && !item->is_recorded;
}

/* Looks up the items of a job again, after others have changed the file since it was settled. */
static int write_look_again(brc_write_run *run, brc_write_job *job, brc_error *err)
{
    BRC_TRY(write_still_there(run, job, err));
    for (size_t i = 0; i < job->n; i++) {
        brc_write_item *item = &job->items[i];
        int rc = write_needs_row(item) && !run->ops->replace ? write_again(run, item, err)
                                                             : BRC_OK;
        if (rc == BRC_OK)
            rc = write_check_known(run, job, item, err);
        if (rc < 0)
            return brc_write_named(run, item, rc, err);
    }
    return BRC_OK;
}

/* Has the bytes put again that a garbage collection may have dropped: it drops bytes that no row
 * names, but nothing while this transaction lasts. */
static int write_put_again(brc_write_run *run, brc_write_job *job, brc_error *err)
{
    int stand;
    if (!run->outside)
        return BRC_OK;
    BRC_TRY(brc_gc_puts_stand(run->store, run->puts_since, &stand, err));
    for (size_t i = 0; !stand && i < job->n; i++)
        if (!brc_is_in_file(brc_write_backend(&job->items[i])))
            BRC_TRY(brc_backend_use(run->store, brc_write_backend(&job->items[i]), &job->into[i],
                                    err));
    return BRC_OK;
}

/* Leaves out an object whose stored bytes, or the object that they build on, need not be there any
 * more as they were when they were read, or with which others would build on too many. */
static int write_check_delta(const brc_write_run *run, brc_write_item *item,
                             const brc_object *there, brc_error *err)
{
    int fits = 1;
    brc_object base = {.id = item->base}, *one = &base;
    const brc_object *old = &item->old;
    const int is_delta = !brc_oid_is_zero(&item->base);
    if (!is_delta && !(item->keeps && brc_object_is_delta(old)))
        return BRC_OK;
    item->stays = there->encoding != old->encoding || there->checksum != old->checksum ||
                  there->stored != old->stored || brc_object_place_order(there, old) != 0;
    if (item->stays || !is_delta)
        return BRC_OK;
    BRC_TRY(brc_objects_find(run->store, &one, 1, err));
    if (base.found)
        BRC_TRY(brc_delta_fits(run->store, &item->old.id, &item->base, item->most_depth, &fits,
                               err));
    item->stays = !base.found || !fits;
    if (item->stays)
        return BRC_OK;
    BRC_TRY(brc_gc_keep(run->store, &item->base, err));
    /* the items that follow are checked before this one is stored */
    return brc_delta_note(run->store, &item->old.id, &item->base, err);
}

/* Leaves out the objects that a collection of garbage has removed since they were listed. */
static int write_check_olds(const brc_write_run *run, brc_write_job *job, brc_error *err)
{
    for (size_t i = 0; i < job->n && run->ops->replace; i++) {
        brc_object there = {.id = job->items[i].old.id}, *one = &there;
        BRC_TRY(brc_objects_find(run->store, &one, 1, err));
        job->items[i].stays |= !there.found;
        if (there.found && !job->items[i].stays)
            BRC_TRY(write_check_delta(run, &job->items[i], &there, err));
    }
    return BRC_OK;
}

static int write_finish_job(void *ctx, brc_window_job *base, brc_error *err)
{
    brc_write_run *run = ctx;
    brc_write_job *job = (brc_write_job *)base;
    int again;
    BRC_TRY(write_begin_job(run, job, &again, err));
    BRC_TRY(write_check_olds(run, job, err));
    BRC_TRY(write_put_again(run, job, err));
    if (again)
        BRC_TRY(write_look_again(run, job, err));
    BRC_TRY(brc_write_put(job, BRC_PUT_INSIDE, err));
    for (size_t i = 0; i < job->n; i++) {
        brc_write_item *item = &job->items[i];
        if (item->is_piece)
            continue;
        if (write_needs_row(item))
            BRC_TRY(write_store(run, item, &job->at[i], err));
        else if (item->is_known)
            BRC_TRY(brc_gc_keep(run->store, &item->id, err));
        write_let_go(run, item);
        if (run->ops->done != NULL)
            BRC_TRY(run->ops->done(run->ops->ctx, item, err));
    }
    return BRC_OK;
}

/* ---- the flow -------------------------------- */

static void write_job_dispose(brc_window_job *base)
{
    brc_write_job *job = (brc_write_job *)base;
    for (size_t i = 0; i < BRC_WRITE_ITEMS; i++) {
        brc_write_forget_old(&job->items[i]);
        brc_buf_dispose(&job->items[i].stored);
        brc_buf_dispose(&job->items[i].own);
        brc_buf_dispose(&job->items[i].place);
        brc_stored_clear(&job->at[i]);
    }
}

/* Releases large buffers: the next call may not need them. */
static void write_trim(brc_window *w)
{
    for (size_t i = 0; i < w->n; i++) {
        brc_write_job *job = (brc_write_job *)w->jobs[i];
        for (size_t j = 0; j < BRC_WRITE_ITEMS; j++) {
            brc_write_forget_old(&job->items[j]);
            if (job->items[j].stored.cap > KEPT_BYTES)
                brc_buf_dispose(&job->items[j].stored);
            if (job->items[j].own.cap > KEPT_BYTES)
                brc_buf_dispose(&job->items[j].own);
        }
    }
}

static void keep_item(void *item)
{
    (void)item; /* the item belongs to its job */
}

static void write_pause(void *ctx)
{
    brc_store_pause_read(((brc_write_run *)ctx)->store);
}

static int write_rest(void *ctx, int now, brc_error *err)
{
    const brc_write_run *run = ctx;
    return brc_store_rest(run->store, now || run->is_slow, err);
}

/* Stores ahead the bytes and objects of a batch's jobs, before the first job is finished. */
static int write_ready(void *ctx, brc_window_job *const *jobs, size_t n, brc_error *err)
{
    brc_write_run *run = ctx;
    BRC_TRY(brc_write_put_outside(run, jobs, n, err));
    return write_ahead(run, jobs, n, err);
}

static int write_run_start(brc_write_run *run, brc_pipe *pipe, brc_store *store,
                           const brc_write_ops *ops, brc_error *err)
{
    *run = (brc_write_run){.ops = ops, .pipe = pipe, .store = store, .ahead = BRC_AHEAD_INIT};
    BRC_TRY(brc_gc_last(store, &run->collected, err));
    BRC_TRY(brc_gc_puts_begin(store, &run->puts_since, err));
    const size_t items = ops->len > 0 ? BRC_WRITE_BYTES / ops->len : BRC_WRITE_ITEMS;
    run->job_items = items > pipe->batch ? pipe->batch : items < 1 ? 1 : items;
    return brc_pipe_window(pipe, &pipe->writing, JOBS_PER_THREAD, JOBS_IN_BULK,
                           sizeof(brc_write_job), write_job_dispose, err);
}

static int write_run_jobs(brc_write_run *run, const brc_window_ops *window, brc_error *err)
{
    const size_t held = run->ops->held, all = run->pipe->memory;
    return brc_window_run(&run->pipe->writing, run->pipe, all > held ? all - held : 0, window, err);
}

static void write_run_end(brc_write_run *run)
{
    tdestroy(run->held, keep_item);
    free(run->settling.objects);
    brc_ahead_dispose(&run->ahead);
    write_trim(&run->pipe->writing);
}

static size_t batch_bytes(const brc_store *store, const brc_write_ops *ops, int is_far)
{
    if (ops->replace)
        return is_far ? BATCH_BYTES_FAR : BATCH_BYTES_FEW;
    return ops->len > LARGE_BYTES && !brc_store_uses_others(store) ? BATCH_BYTES_FEW : BATCH_BYTES;
}

int brc_flow_write(brc_pipe *pipe, brc_store *store, const brc_write_ops *ops, brc_error *err)
{
    brc_write_run run;
    brc_window_ops window = {.ctx = &run, .fill = write_fill_job, .run = brc_write_run_job,
                             .settle = write_settle, .finish = write_finish_job,
                             .most = JOBS_PER_THREAD * pipe->nworkers + 1};
    BRC_TRY(write_run_start(&run, pipe, store, ops, err));
    if (brc_store_in_bulk(store)) {
        const int is_far = brc_store_uses_far(store);
        window.most = ops->replace && !is_far ? window.most : JOBS_IN_BULK;
        window.batch = batch_bytes(store, ops, is_far);
        window.rest = write_rest;
        window.ready = write_ready;
    }
    const int rc = write_run_jobs(&run, &window, err);
    write_run_end(&run);
    return rc;
}

/* ---- prepared -------------------------------- */

static int prepare_jobs(brc_prepared *p, brc_error *err)
{
    brc_write_run *run = &p->run;
    const brc_window *w = &run->pipe->writing;
    const brc_window_ops window = {.ctx = run, .fill = write_fill_job, .run = brc_write_run_job,
                                   .settle = write_settle, .pause = write_pause, .holds = 1,
                                   .most = JOBS_TOGETHER};
    run->is_prepared = 1;
    BRC_TRY(brc_store_version(run->store, &run->version, err));
    const int rc = write_run_jobs(run, &window, err);
    if (rc != BRC_OK)
        return rc == BRC_WINDOW_FULL ? BRC_CHANGE_MUCH : rc;
    return brc_write_put_outside(run, w->held, w->nheld, err);
}

int brc_flow_prepare(brc_prepared **out, brc_pipe *pipe, brc_store *store, const brc_write_ops *ops,
                     brc_error *err)
{
    void *memory;
    *out = NULL;
    BRC_TRY(brc_new(&memory, sizeof(brc_prepared), err));
    brc_prepared *p = memory;
    p->ops = *ops;
    int rc = write_run_start(&p->run, pipe, store, &p->ops, err);
    if (rc == BRC_OK)
        rc = prepare_jobs(p, err);
    if (rc == BRC_OK)
        *out = p;
    else
        brc_prepared_free(p);
    return rc;
}

void brc_prepared_free(brc_prepared *p)
{
    if (p == NULL)
        return;
    write_run_end(&p->run);
    free(p);
}
