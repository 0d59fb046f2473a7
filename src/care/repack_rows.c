/* Rows of stored bytes that are not full. Each transaction adds at least one row, so that many
 * small commits leave many small rows, each of which wastes a part of a page (decision 14). */
#include <stdlib.h>
#include <string.h>

#include "../base/alloc.h"
#include "../store/change.h"
#include "../store/removed.h"
#include "repack.h"

/* A row with fewer bytes is put together with others: SQLite wastes up to half a page, 8 KiB, for
 * each. */
#define ROW_WORTH_KEEPING ((uint64_t)BRC_ROW_FULL / 4 * 3)

/* The most rows and objects that are handled together, for which all objects are read once; and the
 * bytes that are moved in one change. */
enum { ROWS_PAGE = 1024, ROWS_MOST = 1 << 16, OBJECTS_MOST = 1 << 20, CHANGE_BYTES = 4 << 20 };

typedef struct rows_object {
    size_t row; /* its number in the list of rows */
    uint64_t offset;
    brc_oid id;
} rows_object;

typedef struct rows_run {
    brc_repack_rows *rows;
    void *found; /* brc_blob_row[], by number */
    size_t nfound, found_cap;
    void *objects; /* rows_object[] */
    size_t nobjects, objects_cap;
    int64_t after, last; /* rows up to `after` are done; those after `last` are new */
    size_t at, next;     /* objects before `at` are done; the change ends before `next` */
    uint64_t moved, moved_bytes; /* by the change */
    brc_buf bytes;
} rows_run;

static brc_blob_row *row_at(const rows_run *r, size_t i)
{
    return (brc_blob_row *)r->found + i;
}

static rows_object *object_at(const rows_run *r, size_t i)
{
    return (rows_object *)r->objects + i;
}

/* ---- finding -------------------------------- */

/* Adds those rows of a page that are not full. */
static int add_rows(rows_run *r, const brc_blob_row *page, size_t n, brc_error *err)
{
    for (size_t i = 0; i < n && page[i].seq <= r->last; i++) {
        r->after = page[i].seq;
        if (page[i].live == 0 || page[i].live >= ROW_WORTH_KEEPING)
            continue;
        BRC_TRY(brc_grow_array(&r->found, &r->found_cap, r->nfound + 1, sizeof(brc_blob_row),
                               err));
        *row_at(r, r->nfound++) = page[i];
    }
    if (n == 0 || page[n - 1].seq > r->last)
        r->after = r->last;
    return BRC_OK;
}

/* Lists the next rows that are not full. */
static int find_rows(rows_run *r, brc_error *err)
{
    void *p;
    size_t n;
    BRC_TRY(brc_new_array(&p, ROWS_PAGE, sizeof(brc_blob_row), err));
    int rc = BRC_OK;
    r->nfound = 0;
    while (r->after < r->last && r->nfound < ROWS_MOST && rc == BRC_OK) {
        rc = brc_store_begin_read(r->rows->store, err);
        if (rc < 0)
            break;
        rc = brc_blobs_page(r->rows->store, r->after, p, ROWS_PAGE, &n, err);
        brc_store_end_read(r->rows->store);
        if (rc == BRC_OK)
            rc = add_rows(r, p, n, err);
        if (rc == BRC_OK)
            rc = r->rows->step(r->rows->ctx, err);
    }
    free(p);
    return rc;
}

static int by_row(const void *a, const void *b)
{
    const brc_blob_row *x = a, *y = b;
    return (x->seq > y->seq) - (x->seq < y->seq);
}

static int rows_by_place(const void *a, const void *b)
{
    const rows_object *x = a, *y = b;
    if (x->row != y->row)
        return x->row < y->row ? -1 : 1;
    return (x->offset > y->offset) - (x->offset < y->offset);
}

/* Leaves the second half of the rows for another round, with their objects. */
static void halve(rows_run *r)
{
    size_t n = 0;
    r->nfound /= 2;
    r->after = row_at(r, r->nfound - 1)->seq;
    for (size_t i = 0; i < r->nobjects; i++)
        if (object_at(r, i)->row < r->nfound)
            *object_at(r, n++) = *object_at(r, i);
    r->nobjects = n;
}

static int add_object(rows_run *r, const brc_object *o, brc_error *err)
{
    const brc_blob_row key = {.seq = o->place};
    if (!o->found || !brc_is_in_file(o->backend) || o->stored > (uint64_t)BRC_SMALL_MOST)
        return BRC_OK;
    const brc_blob_row *row = bsearch(&key, r->found, r->nfound, sizeof(key), by_row);
    if (row == NULL)
        return BRC_OK;
    if (r->nobjects == OBJECTS_MOST && r->nfound > 1)
        halve(r);
    const size_t i = (size_t)(row - (const brc_blob_row *)r->found);
    if (i >= r->nfound)
        return BRC_OK;
    BRC_TRY(brc_grow_array(&r->objects, &r->objects_cap, r->nobjects + 1, sizeof(rows_object),
                           err));
    *object_at(r, r->nobjects++) = (rows_object){.row = i, .offset = o->offset, .id = o->id};
    return BRC_OK;
}

/* Finds the objects of these rows. Objects have no index by place, so all are read, once. */
static int find_in_rows(rows_run *r, brc_error *err)
{
    void *p;
    brc_oid at;
    size_t n = 1;
    memset(&at, 0, sizeof(at));
    r->nobjects = r->at = 0;
    BRC_TRY(brc_new_array(&p, ROWS_PAGE, sizeof(brc_object), err));
    brc_object *page = p;
    int rc = BRC_OK;
    while (n > 0 && rc == BRC_OK) {
        rc = brc_store_begin_read(r->rows->store, err);
        if (rc < 0)
            break;
        rc = brc_objects_page(r->rows->store, &at, page, ROWS_PAGE, &n, err);
        brc_store_end_read(r->rows->store);
        for (size_t i = 0; i < n && rc == BRC_OK; i++) {
            at = page[i].id;
            rc = add_object(r, &page[i], err);
        }
        if (rc == BRC_OK)
            rc = r->rows->step(r->rows->ctx, err);
    }
    free(p);
    if (r->nobjects > 1)
        qsort(r->objects, r->nobjects, sizeof(rows_object), rows_by_place);
    return rc;
}

/* ---- moving -------------------------------- */

/* Moves the next objects, unless others have moved or removed them. A change ends with a full row,
 * so that only the last one is not full. */
static int rows_commit(void *ctx, int insists, brc_error *err)
{
    rows_run *r = ctx;
    uint64_t in_row = 0;
    (void)insists;
    r->moved = r->moved_bytes = 0;
    for (r->next = r->at; r->next < r->nobjects; r->next++) {
        const rows_object *one = object_at(r, r->next);
        brc_object now = {.id = one->id}, *asked = &now;
        if (in_row == 0 && r->moved_bytes >= CHANGE_BYTES)
            break;
        BRC_TRY(brc_objects_find(r->rows->store, &asked, 1, err));
        if (!now.found || !brc_is_in_file(now.backend) || now.offset != one->offset ||
            now.place != row_at(r, one->row)->seq || now.stored > (uint64_t)BRC_SMALL_MOST)
            continue;
        BRC_TRY(brc_object_move(r->rows->store, &now, &r->bytes, err));
        r->moved++;
        r->moved_bytes += now.stored;
        in_row = in_row + now.stored >= BRC_ROW_FULL ? 0 : in_row + now.stored;
    }
    return BRC_OK;
}

static int move_objects(rows_run *r, brc_error *err)
{
    const brc_file_change change = {.ctx = r, .commit = rows_commit};
    while (r->at < r->nobjects) {
        BRC_TRY(brc_change_run(r->rows->store, &change, err));
        r->at = r->next;
        r->rows->objects += r->moved;
        r->rows->bytes += r->moved_bytes;
        BRC_TRY(r->rows->step(r->rows->ctx, err));
    }
    return BRC_OK;
}

static void count_rows(rows_run *r)
{
    for (size_t i = 0; i < r->nfound; i++)
        r->rows->bytes += row_at(r, i)->live;
}

/* A single row is as good as it can be. */
static int do_round(rows_run *r, brc_error *err)
{
    BRC_TRY(find_rows(r, err));
    if (r->nfound < 2)
        return BRC_OK;
    BRC_TRY(find_in_rows(r, err));
    r->rows->rows += r->nfound;
    if (!r->rows->dry)
        return move_objects(r, err);
    r->rows->objects += r->nobjects;
    count_rows(r);
    return BRC_OK;
}

int brc_repack_rows_run(brc_repack_rows *rows, brc_error *err)
{
    rows_run r = {.rows = rows};
    BRC_TRY(brc_store_begin_read(rows->store, err));
    int rc = brc_blob_last(rows->store, &r.last, err);
    brc_store_end_read(rows->store);
    while (r.after < r.last && rc == BRC_OK)
        rc = do_round(&r, err);
    free(r.found);
    free(r.objects);
    brc_buf_dispose(&r.bytes);
    return rc;
}
