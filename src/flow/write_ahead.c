/*
 * Bulk writes of many small chunks: their objects' rows in the order of the index.
 *
 * Ids lie in no order. A short transaction with a few hundred new ids touches about a page of the
 * index for each, and every page is written twice, to the journal and to the file. So the chunks of
 * a batch are held in memory, and stored in two steps, each in transactions as short as ever:
 *
 *      their bytes, in the order of writing (a read finds neighbours together)
 *      their rows in the index, in the order of ids: those on one page come together
 *
 * Between the two the bytes count as left (left_rows.c), so that a writer that is killed leaves
 * nothing that is not accounted for. Rows of the draft follow when the batch is finished. Others
 * may change the file between any two of these transactions, so everything is looked at again
 * if they did: a row of bytes may be gone, an object there, or collected.
 */
#include <stdlib.h>

#include "../base/alloc.h"
#include "../store/collect.h"
#include "write_run.h"

/* Below it, a batch is as well stored in the order of writing. */
#define AHEAD_LEAST 1024
/* Items that are looked at again, and recorded, before others may be let in. */
#define AHEAD_STEP 64
/* Times that bytes which others took are put anew with rests in between. */
#define AHEAD_TRIES 4

typedef struct ahead_item {
    brc_write_item *item;
    brc_stored *at;
    brc_store_backend *into;
} ahead_item;

/* Bytes that a row of stored bytes has for items that are not recorded. */
typedef struct ahead_row {
    int64_t seq;
    uint64_t bytes;
    int is_gone;
} ahead_row;

typedef struct ahead_list {
    ahead_item *items;
    size_t n;
    ahead_row *rows; /* by number */
    size_t nrows, rows_cap;
    int64_t others; /* what others had changed when it was looked at last */
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

/* Items' bytes, in the transaction that is open or begins. */
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

/* From the i-th item on: all, or those whose row is gone. */
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

/* The rows that others took, though not all that is in them was recorded. */
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

/* Begins or goes on with a transaction. What others did since the last is met: bytes from the
 * i-th item on are put anew if they are gone, and *again says that the ids must be looked up. The
 * last try does not rest, so that others cannot keep it from ever coming to an end. */
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
        BRC_TRY(brc_write_again(run, a->item, err));
    ahead_row *row = row_of(list, a->at->number);
    row->bytes -= a->at->len < row->bytes ? a->at->len : row->bytes;
    if (!brc_write_is_new(a->item)) /* its bytes stay a hole */
        return BRC_OK;
    BRC_TRY(brc_write_store(run, a->item, a->at, err));
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
            job->into[j] = NULL; /* it is put here */
        }
    }
}

int brc_write_ahead(brc_write_run *run, brc_window_job *const *jobs, size_t n, brc_error *err)
{
    ahead_list list = {0};
    void *p;
    const size_t count = brc_store_in_bulk(run->store) ? count_ahead(run, jobs, n) : 0;
    if (count < AHEAD_LEAST)
        return BRC_OK;
    BRC_TRY(brc_new_array(&p, count, sizeof(ahead_item), err));
    list.items = p;
    list.others = ((const brc_write_job *)jobs[0])->others; /* the earliest of all */
    ahead_gather(run, jobs, n, &list);
    int rc = put_items(run, &list, 0, 1, 1, err);
    if (rc == BRC_OK)
        rc = record_all(run, &list, err);
    free(list.items);
    free(list.rows);
    return rc;
}

int brc_write_still_there(brc_write_run *run, brc_write_job *job, brc_error *err)
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
        BRC_TRY(brc_backend_use(run->store, item->backend, &job->into[i], err));
    }
    return BRC_OK;
}
