/* Differences that lie far away: chains of many objects, fetched in one call of each backend. */
#include <stdlib.h>
#include <string.h>

#include "../base/alloc.h"
#include "backend.h"
#include "bases.h"

/* No further chain begins after so many objects, or BRC_AHEAD_BYTES. */
enum { AHEAD_OBJECTS = 511 };

typedef struct ahead_object {
    brc_object object;
    const brc_store_backend *from; /* NULL: it need not be asked for (any more)       */
    size_t at;                     /* its bytes within `stored`                       */
    size_t place;                  /* the name of its place in `places`; SIZE_MAX: none */
    int there;
    brc_stored asked;
} ahead_object;

static ahead_object *ahead_at(const brc_ahead *a, size_t i)
{
    return (ahead_object *)a->list + i;
}

static int bases_order(const void *a, const void *b)
{
    const ahead_object *x = a, *y = b;
    return brc_oid_cmp(&x->object.id, &y->object.id);
}

void brc_ahead_dispose(brc_ahead *a)
{
    free(a->list);
    brc_buf_dispose(&a->stored);
    brc_buf_dispose(&a->places);
    *a = (brc_ahead)BRC_AHEAD_INIT;
}

const uint8_t *brc_ahead_find(const brc_ahead *a, const brc_object *o)
{
    ahead_object key;
    key.object.id = o->id;
    const ahead_object *one = a->n == 0 ? NULL
                                        : bsearch(&key, a->list, a->n, sizeof(key), bases_order);
    return one != NULL && one->there && brc_object_place_order(&one->object, o) == 0 &&
                   one->object.checksum == o->checksum && one->object.stored == o->stored
               ? a->stored.data + one->at
               : NULL;
}

/* ---- which objects -------------------------------- */

int brc_object_is_far(brc_store *store, const brc_object *o)
{
    brc_store_backend *from;
    return !brc_is_in_file(o->backend) && o->stored <= BRC_AHEAD_BYTES &&
           brc_backend_use(store, o->backend, &from, NULL) == BRC_OK && brc_backend_is_far(from);
}

/* Returns whether an error concerns one object alone: those who load the object find it again. */
static int is_for_the_load(int rc)
{
    return rc == BRC_ECORRUPT || rc == BRC_EUNSUPPORTED || rc == BRC_EINVAL || rc == BRC_ENOTFOUND;
}

/* Adds an object if it lies far away. */
static int add_far(brc_store *store, brc_ahead *a, const brc_object *o, brc_error *err)
{
    brc_store_backend *from;
    const char *name;
    size_t place = SIZE_MAX;
    if (brc_is_in_file(o->backend) || o->stored > BRC_AHEAD_BYTES)
        return BRC_OK;
    BRC_TRY(brc_backend_use(store, o->backend, &from, err));
    if (!brc_backend_is_far(from))
        return BRC_OK;
    BRC_TRY(brc_object_place(from, o, &name, err));
    if (name != NULL) {
        place = a->places.len;
        BRC_TRY(brc_buf_append(&a->places, name, strlen(name) + 1, err));
    }
    BRC_TRY(brc_grow_array(&a->list, &a->cap, a->n + 1, sizeof(ahead_object), err));
    *ahead_at(a, a->n++) = (ahead_object){.object = *o, .from = from, .place = place};
    a->bytes += o->stored;
    return BRC_OK;
}

/* Adds an object and all that it builds on, as table delta says. */
static int add_chain(brc_store *store, brc_ahead *a, const brc_object *first, brc_error *err)
{
    brc_object o = *first, *one = &o;
    int rc = add_far(store, a, &o, err);
    for (int i = 0; rc == BRC_OK && i < BRC_DELTA_DEPTH_MOST && brc_object_is_delta(&o); i++) {
        int found;
        brc_oid base;
        rc = brc_delta_base(store, &o.id, &found, &base, err);
        if (rc < 0 || !found)
            break;
        o = (brc_object){.id = base};
        rc = brc_objects_find(store, &one, 1, err);
        if (rc < 0 || !o.found || o.kind != BRC_KIND_CHUNK)
            break;
        rc = add_far(store, a, &o, err);
    }
    return is_for_the_load(rc) ? BRC_OK : rc;
}

/* Brings the list into the order of ids, each once, and says where the bytes go. */
static void settle(brc_ahead *a)
{
    size_t n = 0, at = 0;
    if (a->n > 1)
        qsort(a->list, a->n, sizeof(ahead_object), bases_order);
    for (size_t i = 0; i < a->n; i++) {
        if (n > 0 && bases_order(ahead_at(a, n - 1), ahead_at(a, i)) == 0)
            continue;
        *ahead_at(a, n) = *ahead_at(a, i);
        ahead_at(a, n)->at = at;
        at += (size_t)ahead_at(a, n++)->object.stored;
    }
    a->n = n;
    a->stored.len = at;
}

/* ---- fetching -------------------------------- */

/* Asks one backend for all that lies there. Objects that it does not give are loaded later, each by
 * itself. */
static int ahead_fetch_from(brc_store *store, brc_ahead *a, const brc_store_backend *from,
                            brc_stored **asked, brc_error *why)
{
    size_t n = 0;
    for (size_t i = 0; i < a->n; i++) {
        ahead_object *one = ahead_at(a, i);
        if (one->from != from)
            continue;
        brc_object_ask(&one->object, &one->asked);
        one->asked.into = a->stored.data + one->at;
        one->asked.place = one->place == SIZE_MAX ? NULL
                                                  : (const char *)a->places.data + one->place;
        one->asked.status = BRC_BACKEND_NOT_DONE;
        asked[n++] = &one->asked;
    }
    const int rc = brc_backend_fetch(from, n, asked, why);
    for (size_t i = 0; i < a->n; i++) {
        ahead_object *one = ahead_at(a, i);
        if (one->from != from)
            continue;
        one->from = NULL;
        one->there = one->asked.status == BRC_OK;
        if (one->there && brc_store_caches(store, from) &&
            brc_object_verify(&one->object, one->asked.into, NULL) == BRC_OK)
            brc_store_keep(store, from, &one->object, one->asked.into);
    }
    return rc;
}

static int fetch_all(brc_store *store, brc_ahead *a, const brc_object *first, brc_error *err)
{
    void *asked;
    brc_error why = BRC_ERROR_INIT;
    int rc = BRC_OK;
    BRC_TRY(brc_new_array(&asked, a->n, sizeof(brc_stored *), err));
    brc_store_pause_read(store); /* so that others need not wait for the backend */
    for (size_t i = 0; i < a->n; i++) {
        ahead_object *one = ahead_at(a, i);
        if (brc_store_cached(store, one->from, &one->object, a->stored.data + one->at)) {
            one->there = 1;
            one->from = NULL;
        }
    }
    for (size_t i = 0; i < a->n && rc != BRC_EINTERRUPT && rc != BRC_ENOMEM; i++)
        if (ahead_at(a, i)->from != NULL)
            rc = ahead_fetch_from(store, a, ahead_at(a, i)->from, asked,
                                  ahead_at(a, i)->from->id == first->backend ? &why : NULL);
    free(asked);
    if (brc_is_out_of_reach(&why) && brc_ahead_find(a, first) == NULL) {
        brc_error_copy(err, &why);
        return why.code;
    }
    if (rc == BRC_ENOMEM)
        return brc_nomem(err);
    return rc == BRC_EINTERRUPT ? brc_store_check_interrupt(store, err) : BRC_OK;
}

int brc_ahead_fetch(brc_store *store, brc_ahead *a, size_t n, const brc_object *const *objects,
                    brc_error *err)
{
    a->n = 0;
    a->bytes = a->stored.len = a->places.len = 0;
    for (size_t i = 0; i < n && a->n < AHEAD_OBJECTS && a->bytes < BRC_AHEAD_BYTES; i++)
        if (objects[i]->found)
            BRC_TRY(add_chain(store, a, objects[i], err));
    if (a->n == 0)
        return BRC_OK;
    BRC_TRY(brc_buf_reserve(&a->stored, (size_t)a->bytes + 1, err));
    settle(a);
    return fetch_all(store, a, objects[0], err);
}
