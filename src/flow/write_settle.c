/* Writing, on the caller's thread: what is fetched of chunks that are changed in part, what is
 * there already, and the rows of what is not. */
#include "write_run.h"

#include <search.h>
#include <stdlib.h>
#include <string.h>

#include "../base/alloc.h"

/* ---- chunks that are changed in part -------------------------------- */

static int write_load_old(brc_write_run *run, brc_write_item *item, brc_error *err)
{
    const brc_object *o = &item->old;
    if (!o->found)
        return brc_object_missing(&o->id, err);
    if (o->backend != 0)
        BRC_TRY(brc_store_rest(run->store, 1, err)); /* nobody waits for a slow backend */
    BRC_TRY(brc_object_load(run->store, &item->old, &item->stored, err));
    BRC_TRY(brc_encoding_chain(run->store, o->encoding, &item->old_chain, err));
    if (o->encoding != 0 && item->old_chain == NULL)
        return brc_fail(err, BRC_EUNSUPPORTED,
                        "it was stored by a build that could not decode it: import it again");
    return BRC_OK;
}

static int write_place_order(const void *x, const void *y)
{
    const brc_write_item *a = *(brc_write_item *const *)x, *b = *(brc_write_item *const *)y;
    return brc_object_place_order(&a->old, &b->old);
}

/* Looked up together, and fetched in the order in which they are stored. */
int brc_write_load_olds(brc_write_run *run, size_t n, brc_write_item *const *items, brc_error *err)
{
    brc_object *asked[BRC_WRITE_ITEMS];
    brc_write_item *olds[BRC_WRITE_ITEMS];
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
    for (size_t i = 0; i < nolds; i++) {
        int rc = write_load_old(run, olds[i], err);
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

/* Two chunks of this call have the same hash: have they the same content? */
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

/* Items that are about to be stored are held by id, until they are: of equal contents the
 * first is stored. */
int brc_write_hold(brc_write_run *run, brc_write_item *item, brc_error *err)
{
    brc_write_item **slot = tsearch(item, &run->held, write_id_order);
    if (slot == NULL)
        return brc_nomem(err);
    item->is_held = *slot == item;
    return item->is_held ? BRC_OK : write_twin(*slot, item, err);
}

int brc_write_is_held(const brc_write_run *run, const brc_write_item *item)
{
    return tfind(item, &run->held, write_id_order) != NULL;
}

void brc_write_let_go(brc_write_run *run, brc_write_item *item)
{
    if (item->is_held)
        tdelete(item, &run->held, write_id_order);
    item->is_held = 0;
}

/* The store has the id: the content must be the same. Small ones, which can be made to have one
 * hash and one guard, are compared byte by byte, on the pool: `old` is what is there. */
static int write_known(brc_write_run *run, brc_write_item *item, const brc_object *there,
                       brc_error *err)
{
    item->is_known = 1;
    brc_write_let_go(run, item);
    if (there->size != item->len || there->guard != item->guard)
        return brc_object_collides(run->store, &item->id, err);
    if (item->len > BRC_COMPARE_MAX)
        return BRC_OK;
    if (item->chain == NULL) { /* what came is what it is */
        brc_buf own = item->own;
        item->own = item->stored;
        item->stored = own;
        item->data = item->own.data;
    }
    item->old = *there;
    item->compares = 1;
    BRC_TRY(brc_object_load(run->store, &item->old, &item->stored, err));
    return brc_encoding_chain(run->store, item->old.encoding, &item->old_chain, err);
}

static int write_settle_item(brc_write_run *run, brc_write_item *item, brc_settling *s,
                             brc_error *err)
{
    if (item->is_piece)
        return run->ops->done(run->ops->ctx, item, err);
    if (item->is_fill)
        return BRC_OK;
    if (run->ops->replace)
        return brc_oid_cmp(&item->id, &item->old.id) == 0
                   ? BRC_OK
                   : brc_fail(err, BRC_ECORRUPT,
                              "its content has another hash; run 'breccia fsck'");
    BRC_TRY(brc_write_hold(run, item, err));
    if (!item->is_held)
        return BRC_OK;
    s->objects[s->n] = (brc_object){.id = item->id};
    s->asked[s->n] = &s->objects[s->n];
    s->items[s->n++] = item;
    return BRC_OK;
}

/* Room to look up the items of n jobs at once. */
int brc_write_settling(brc_write_run *run, size_t n, brc_error *err)
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

/* What was not found among this call's own. */
static int write_look_up(brc_write_run *run, brc_error *err)
{
    const brc_settling *s = &run->settling;
    BRC_TRY(brc_objects_find(run->store, s->asked, s->n, err));
    for (size_t i = 0; i < s->n; i++) {
        if (!s->objects[i].found)
            continue;
        if (s->objects[i].backend != 0)
            BRC_TRY(brc_store_rest(run->store, 1, err));
        int rc = write_known(run, s->items[i], &s->objects[i], err);
        if (rc < 0)
            return brc_write_named(run, s->items[i], rc, err);
    }
    return BRC_OK;
}

int brc_write_settle_items(brc_write_run *run, size_t n, brc_write_item *const *items,
                           brc_error *err)
{
    BRC_TRY(brc_write_settling(run, 1, err));
    for (size_t i = 0; i < n; i++) {
        int rc = write_settle_item(run, items[i], &run->settling, err);
        if (rc < 0)
            return brc_write_named(run, items[i], rc, err);
    }
    return write_look_up(run, err);
}

int brc_write_settle(void *ctx, brc_window_job *const *jobs, size_t n, brc_error *err)
{
    brc_write_run *run = ctx;
    int64_t others = 0;
    BRC_TRY(brc_write_settling(run, n, err));
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

int brc_write_store(brc_write_run *run, const brc_write_item *item, const brc_stored *at,
                    brc_error *err)
{
    brc_object o = run->ops->replace ? item->old
                                     : (brc_object){.id = item->id,
                                                    .kind = BRC_KIND_CHUNK,
                                                    .size = item->len,
                                                    .guard = item->guard};
    if (!item->as_is && item->spec != NULL)
        BRC_TRY(brc_encoding_intern(run->store, item->spec, &o.encoding, err));
    else
        o.encoding = 0;
    o.backend = item->backend;
    o.stored = at->len;
    o.checksum = item->checksum;
    return run->ops->replace ? brc_object_replace(run->store, &o, at, err)
                             : brc_object_record(run->store, &o, at, err);
}

int brc_write_again(brc_write_run *run, brc_write_item *item, brc_error *err)
{
    brc_object there = {.id = item->id}, *one = &there;
    BRC_TRY(brc_objects_find(run->store, &one, 1, err));
    if (!there.found)
        return BRC_OK;
    BRC_TRY(write_known(run, item, &there, err));
    return item->compares ? brc_write_compare(run, brc_pipe_caller(run->pipe), item, err) : BRC_OK;
}
