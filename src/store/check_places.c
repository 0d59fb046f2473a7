#include "check_places.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "../base/alloc.h"

typedef struct taken {
    int64_t place, offset, end; /* the bytes of an object */
} taken;

/* Rows that one statement reads. */
enum { RANGE = 4096 };

typedef struct places {
    brc_store *store;
    taken *list;         /* of places from `from` to `to`, both included */
    size_t n, at_once;
    taken range[RANGE];  /* what was read and is not in the list yet */
    int64_t from, to;
    int doubtful;
} places;

static int taken_order(const void *a, const void *b)
{
    const taken *x = a, *y = b;
    if (x->place != y->place)
        return x->place < y->place ? -1 : 1;
    if (x->offset != y->offset)
        return x->offset < y->offset ? -1 : 1;
    return (x->end > y->end) - (x->end < y->end);
}

/* ---- objects -------------------------------- */

/* Half of the places are left for later. More objects in one place than memory holds are a fault,
 * or so rare that one statement may look at them. */
static void leave_half(places *p)
{
    qsort(p->list, p->n, sizeof(*p->list), taken_order);
    size_t keep = p->n / 2;
    while (keep > 0 && p->list[keep - 1].place == p->list[keep].place)
        keep--;
    if (keep == 0) {
        p->doubtful = 1;
        return;
    }
    p->n = keep;
    p->to = p->list[keep - 1].place;
}

static size_t read_object(places *p, sqlite3_stmt *st, size_t n)
{
    taken *t = &p->range[n];
    t->place = sqlite3_column_int64(st, 1);
    t->offset = sqlite3_column_int64(st, 2);
    const int64_t stored = sqlite3_column_int64(st, 3);
    if (t->place < p->from || t->place > p->to)
        return n;
    if (t->offset < 0 || stored < 0 || t->offset > INT64_MAX - stored) {
        p->doubtful = 1;
        return n;
    }
    t->end = t->offset + stored;
    return n + 1;
}

/* To be sorted, a full list needs more time than the lock is held. */
static void take_objects(places *p, size_t n)
{
    for (size_t i = 0; i < n && !p->doubtful; i++) {
        if (p->n == p->at_once)
            leave_half(p);
        if (!p->doubtful && p->range[i].place <= p->to)
            p->list[p->n++] = p->range[i];
    }
}

/* A range of rows behind *last, which becomes its end. 0: there are no more. */
static int read_objects(places *p, sqlite3_value **last, brc_error *err)
{
    brc_store *store = p->store;
    sqlite3_stmt *st;
    size_t found = 0;
    int rc, n = 0;
    BRC_TRY(brc_read_resume(store, err));
    BRC_TRY(brc_stmt(store,
                     "SELECT id, place, offset, stored, backend=0 AND typeof(place)='integer'"
                     " AND typeof(offset)='integer' AND typeof(stored)='integer'"
                     " FROM object WHERE id>?1 ORDER BY id LIMIT 4096",
                     &st, err));
    if (*last == NULL) /* before all numbers, texts and bytes */
        sqlite3_bind_double(st, 1, -HUGE_VAL);
    else if (sqlite3_bind_value(st, 1, *last) != SQLITE_OK)
        return brc_nomem(err);
    while ((rc = brc_step(store, st, err)) > 0) {
        if (sqlite3_column_int(st, 4))
            found = read_object(p, st, found);
        if (++n == RANGE) {
            sqlite3_value_free(*last);
            *last = sqlite3_value_dup(sqlite3_column_value(st, 0));
            if (*last == NULL)
                rc = brc_nomem(err);
            break;
        }
    }
    sqlite3_reset(st);
    brc_store_pause_read(store);
    BRC_TRY(rc < 0 ? rc : brc_store_check_interrupt(store, err));
    take_objects(p, found);
    return n == RANGE && !p->doubtful;
}

static int read_all_objects(places *p, brc_error *err)
{
    sqlite3_value *last = NULL;
    int rc;
    p->n = 0;
    p->to = INT64_MAX;
    while ((rc = read_objects(p, &last, err)) > 0)
        ;
    sqlite3_value_free(last);
    qsort(p->list, p->n, sizeof(*p->list), taken_order);
    return rc;
}

static void find_overlaps(places *p)
{
    for (size_t i = 1; i < p->n; i++) {
        const taken *before = &p->list[i - 1];
        taken *t = &p->list[i];
        if (t->place != before->place)
            continue;
        p->doubtful |= t->offset < before->end && t->end > t->offset;
        if (t->end < before->end) /* what follows is compared with the longer one */
            t->end = before->end;
    }
}

/* ---- blobs -------------------------------- */

static int has_object(const places *p, size_t *at, int64_t seq)
{
    while (*at < p->n && p->list[*at].place < seq)
        ++*at;
    return *at < p->n && p->list[*at].place == seq;
}

/* The same of blobs, from *seq on; `at`: how far in the list it is. */
static int read_blobs(places *p, int64_t *seq, size_t *at, brc_error *err)
{
    brc_store *store = p->store;
    sqlite3_stmt *st;
    int rc, n = 0;
    BRC_TRY(brc_read_resume(store, err));
    BRC_TRY(brc_stmt(store,
                     "SELECT seq, length(data)>0 AND NOT EXISTS (SELECT 1 FROM hole h"
                     " WHERE h.seq=blob.seq AND h.bytes=length(data)) FROM blob"
                     " WHERE seq BETWEEN ?1 AND ?2 ORDER BY seq LIMIT 4096",
                     &st, err));
    sqlite3_bind_int64(st, 1, *seq);
    sqlite3_bind_int64(st, 2, p->to);
    while ((rc = brc_step(store, st, err)) > 0) {
        *seq = sqlite3_column_int64(st, 0);
        n++;
        p->doubtful |= sqlite3_column_int(st, 1) && !has_object(p, at, *seq);
    }
    sqlite3_reset(st);
    brc_store_pause_read(store);
    BRC_TRY(rc < 0 ? rc : brc_store_check_interrupt(store, err));
    const int more = n == RANGE && *seq < p->to && !p->doubtful;
    *seq += more;
    return more;
}

static int check_a_part(places *p, brc_error *err)
{
    int64_t seq = p->from;
    size_t at = 0;
    int rc;
    BRC_TRY(read_all_objects(p, err));
    find_overlaps(p);
    while (!p->doubtful && (rc = read_blobs(p, &seq, &at, err)) != 0)
        BRC_TRY(rc);
    return BRC_OK;
}

int brc_check_places(brc_store *store, size_t at_once, int *doubtful, brc_error *err)
{
    void *made, *list = NULL;
    BRC_TRY(brc_new(&made, sizeof(places), err));
    places *p = made;
    p->store = store;
    p->at_once = at_once;
    p->from = INT64_MIN;
    p->to = INT64_MAX;
    int rc = brc_new_array(&list, at_once, sizeof(taken), err);
    p->list = list;
    if (rc == BRC_OK)
        rc = check_a_part(p, err);
    while (rc == BRC_OK && !p->doubtful && p->to < INT64_MAX) {
        p->from = p->to + 1;
        rc = check_a_part(p, err);
    }
    *doubtful = p->doubtful;
    free(list);
    free(p);
    return rc;
}
