/* Says where the stored bytes of a repository lie, and which places are missing. */
#include <stdlib.h>
#include <string.h>

#include "../base/alloc.h"
#include "../base/buf.h"
#include "../base/sized.h"
#include "../store/removed.h"
#include "../work/session.h"
#include "../zarr/array/array.h"

/* ==== what is gathered ================================ */

typedef struct where_place {
    int64_t seq, backend;
    char *name;
    uint64_t objects, bytes;
    brc_oid first; /* an object in it, for the check */
    int is_left;   /* objects have left it, maybe all */
} where_place;

typedef struct where_backend {
    int64_t id;
    char *spec;
    uint64_t objects, bytes, places;
    void *faults; /* brc_place_fault[]; the texts are ours */
    size_t nfaults, cap;
} where_backend;

typedef struct where_list {
    brc_store *store;
    uint32_t flags;
    void *backends, *places; /* where_backend[] by id, where_place[] by seq */
    size_t nbackends, backends_cap, nplaces, places_cap, at;
    int is_counted; /* each place has its objects                                */
    brc_backend_facts given;
} where_list;

static where_backend *where_backend_at(const where_list *w, size_t i)
{
    return (where_backend *)w->backends + i;
}

static where_place *where_place_at(const where_list *w, size_t i)
{
    return (where_place *)w->places + i;
}

static void forget_faults(where_backend *b)
{
    for (size_t j = 0; j < b->nfaults; j++) {
        free((void *)(uintptr_t)((brc_place_fault *)b->faults)[j].place);
        free((void *)(uintptr_t)((brc_place_fault *)b->faults)[j].why);
    }
    b->nfaults = 0;
}

static void where_dispose(void *state)
{
    where_list *w = state;
    for (size_t i = 0; i < w->nplaces; i++)
        free(where_place_at(w, i)->name);
    for (size_t i = 0; i < w->nbackends; i++) {
        where_backend *b = where_backend_at(w, i);
        forget_faults(b);
        free(b->faults);
        free(b->spec);
    }
    free(w->places);
    free(w->backends);
}

/* ---- backends and places -------------------------------- */

static int add_backend(where_list *w, int64_t id, brc_error *err)
{
    const char *spec;
    BRC_TRY(brc_backend_spec(w->store, id, &spec, err));
    BRC_TRY(brc_grow_array(&w->backends, &w->backends_cap, w->nbackends + 1,
                           sizeof(where_backend), err));
    where_backend *b = where_backend_at(w, w->nbackends);
    memset(b, 0, sizeof(*b));
    b->id = id;
    BRC_TRY(brc_dup(&b->spec, spec, err));
    w->nbackends++;
    return BRC_OK;
}

static int where_backends(where_list *w, brc_error *err)
{
    int64_t id = 0;
    do {
        BRC_TRY(add_backend(w, id, err));
        BRC_TRY(brc_backend_after(w->store, id, &id, err));
    } while (id != 0);
    return BRC_OK;
}

static where_backend *find_backend(const where_list *w, int64_t id)
{
    for (size_t i = 0; i < w->nbackends; i++)
        if (where_backend_at(w, i)->id == id)
            return where_backend_at(w, i);
    return NULL;
}

/* Leaves out places in which no object is any more: a collection of garbage will drop them. */
static int where_add_place(where_list *w, int64_t seq, int64_t backend, const char *name,
                           brc_error *err)
{
    brc_removed row = {.backend = backend, .place = seq};
    int found = 0;
    if (brc_removed_find(w->store, &row, &found, NULL) == BRC_OK && found &&
        row.state != BRC_REMOVED_FREE)
        return BRC_OK;
    BRC_TRY(brc_grow_array(&w->places, &w->places_cap, w->nplaces + 1, sizeof(where_place), err));
    where_place *p = where_place_at(w, w->nplaces);
    memset(p, 0, sizeof(*p));
    p->seq = seq;
    p->backend = backend;
    p->is_left = found;
    BRC_TRY(brc_dup(&p->name, name, err));
    w->nplaces++;
    return BRC_OK;
}

static int where_places(where_list *w, brc_error *err)
{
    brc_buf name = BRC_BUF_INIT;
    int64_t seq = 0, backend;
    int rc;
    do {
        name.len = 0;
        rc = brc_place_after(w->store, seq, &seq, &backend, &name, err);
        if (rc == BRC_OK && seq != 0)
            rc = brc_buf_terminate(&name, err);
        if (rc == BRC_OK && seq != 0)
            rc = where_add_place(w, seq, backend, (const char *)name.data, err);
        brc_store_breathe(w->store);
        if (w->flags & BRC_BACKENDS_QUICK && w->nplaces == BRC_BACKENDS_LOOKED_AT)
            break;
    } while (rc == BRC_OK && seq != 0);
    brc_buf_dispose(&name);
    return rc;
}

/* ---- faults -------------------------------- */

static int add_fault(where_backend *b, const where_place *p, const brc_error *why, brc_error *err)
{
    char *place, *text;
    BRC_TRY(brc_grow_array(&b->faults, &b->cap, b->nfaults + 1, sizeof(brc_place_fault), err));
    BRC_TRY(brc_dup(&place, p != NULL ? p->name : "", err));
    int rc = brc_dup(&text, why->message, err);
    if (rc < 0) {
        free(place);
        return rc;
    }
    ((brc_place_fault *)b->faults)[b->nfaults++] =
        (brc_place_fault){.place = place,
                          .why = text,
                          .code = why->code,
                          .objects = p != NULL ? p->objects : b->objects,
                          .bytes = p != NULL ? p->bytes : b->bytes};
    return BRC_OK;
}

/* Reads one object. The result is a failure of this machine or a request to stop; a fault of the
 * object is in *said. */
static int try_object(where_list *w, const brc_oid *id, brc_error *said, int *fault, brc_error *err)
{
    brc_object o = {.id = *id}, *one = &o;
    brc_buf bytes = BRC_BUF_INIT;
    BRC_TRY(brc_objects_find(w->store, &one, 1, err));
    if (!o.found)
        return BRC_OK;
    int rc = brc_object_load(w->store, &o, &bytes, said);
    if (rc == BRC_OK)
        rc = brc_object_verify(&o, bytes.data, said);
    brc_buf_dispose(&bytes);
    *fault = rc < 0 && rc != BRC_ESTALE;
    if (rc != BRC_ENOMEM && rc != BRC_EINTERRUPT)
        return BRC_OK;
    brc_error_copy(err, said);
    return rc;
}

/* ---- objects -------------------------------- */

enum { WHERE_PAGE = 512 };

static int where_order(const void *a, const void *b)
{
    const where_place *x = a, *y = b;
    return (x->seq > y->seq) - (x->seq < y->seq);
}

/* With BRC_BACKENDS_CHECK, an object that lies under a name of its own is a place of its own. */
static int check_named(where_list *w, where_backend *b, const brc_object *o, brc_error *err)
{
    brc_error said = BRC_ERROR_INIT;
    char name[BRC_STORED_NAME_SIZE];
    brc_stored at;
    int fault = 0;
    if (!(w->flags & BRC_BACKENDS_CHECK))
        return BRC_OK;
    BRC_TRY(try_object(w, &o->id, &said, &fault, err));
    if (!fault)
        return BRC_OK;
    brc_object_ask(o, &at);
    const where_place place = {.name = brc_stored_name(name, &at),
                               .objects = 1,
                               .bytes = o->stored};
    return add_fault(b, &place, &said, err);
}

static int count_object(where_list *w, const brc_object *o, brc_error *err)
{
    const where_place key = {.seq = o->place};
    where_backend *b = find_backend(w, o->backend);
    if (b == NULL || !o->found) /* a damaged row, or a backend that was added meanwhile */
        return BRC_OK;
    b->objects++;
    b->bytes += o->stored;
    if (brc_is_in_file(o->backend))
        return BRC_OK;
    if (o->place == 0)
        return check_named(w, b, o, err);
    where_place *p = w->nplaces == 0 ? NULL
                                     : bsearch(&key, w->places, w->nplaces, sizeof(key),
                                               where_order);
    if (p == NULL || p->backend != o->backend)
        return BRC_OK;
    b->places += p->objects == 0;
    p->first = o->id;
    p->objects++;
    p->bytes += o->stored;
    return BRC_OK;
}

static int count_objects(where_list *w, brc_error *err)
{
    void *p;
    brc_oid at;
    size_t n = 1;
    memset(&at, 0, sizeof(at));
    BRC_TRY(brc_new_array(&p, WHERE_PAGE, sizeof(brc_object), err));
    brc_object *page = p;
    int rc = BRC_OK;
    while (n > 0 && rc == BRC_OK) {
        rc = brc_objects_page(w->store, &at, page, WHERE_PAGE, &n, err);
        for (size_t i = 0; i < n && rc == BRC_OK; i++)
            rc = count_object(w, &page[i], err);
        if (n > 0)
            at = page[n - 1].id;
        brc_store_breathe(w->store);
        if (rc == BRC_OK)
            rc = brc_store_check_interrupt(w->store, err);
    }
    free(p);
    return rc;
}

/* ---- looking -------------------------------- */

static int where_look(where_list *w, where_backend *b, const brc_store_backend *used,
                   const where_place *p, brc_error *err)
{
    brc_error said = BRC_ERROR_INIT;
    int fault = 0;
    brc_store_pause_read(w->store); /* nobody waits for a slow disk */
    if (brc_backend_look(used, p->name, &said) < 0)
        return add_fault(b, p, &said, err);
    if (w->flags & BRC_BACKENDS_CHECK)
        BRC_TRY(try_object(w, &p->first, &said, &fault, err));
    return fault ? add_fault(b, p, &said, err) : BRC_OK;
}

/* Returns whether the place is to be looked at. */
static int where_is_used(const where_list *w, const where_backend *b, const where_place *p)
{
    return p->backend == b->id && (!w->is_counted || p->objects > 0);
}

static int where_look_into(where_list *w, where_backend *b, brc_error *err)
{
    brc_store_backend *used;
    brc_error said = BRC_ERROR_INIT;
    const int quick = (w->flags & BRC_BACKENDS_QUICK) != 0;
    int any = b->objects > 0;
    for (size_t i = 0; i < w->nplaces && !any; i++)
        any = where_is_used(w, b, where_place_at(w, i));
    if (!any || brc_is_in_file(b->id))
        return BRC_OK;
    const int rc = brc_backend_use(w->store, b->id, &used, &said);
    if (rc == BRC_EUNSUPPORTED && quick) /* what this build cannot read need not be missing */
        return BRC_OK;
    if (rc < 0)
        return add_fault(b, NULL, &said, err);
    for (size_t i = 0; i < w->nplaces; i++)
        if (where_is_used(w, b, where_place_at(w, i)))
            BRC_TRY(where_look(w, b, used, where_place_at(w, i), err));
    return BRC_OK;
}

static int where_look_into_all(where_list *w, brc_error *err)
{
    for (size_t i = 0; i < w->nbackends; i++)
        BRC_TRY(where_look_into(w, where_backend_at(w, i), err));
    return BRC_OK;
}

/* Returns whether a place that was found to be missing may have no object any more. */
static int where_is_doubtful(const where_list *w)
{
    for (size_t i = 0; i < w->nplaces; i++) {
        const where_place *p = where_place_at(w, i);
        const where_backend *b = find_backend(w, p->backend);
        if (p->is_left && b != NULL && b->nfaults > 0)
            return 1;
    }
    return 0;
}

static int where_count(where_list *w, brc_error *err)
{
    w->is_counted = 1;
    return count_objects(w, err);
}

/* Looks at all places first where nothing is to be counted, and counts if that leaves a doubt. */
static int where_gather(where_list *w, brc_error *err)
{
    BRC_TRY(where_backends(w, err));
    if (w->nbackends > 1)
        BRC_TRY(where_places(w, err));
    if (w->flags & BRC_BACKENDS_QUICK) {
        BRC_TRY(where_look_into_all(w, err));
        if (!where_is_doubtful(w))
            return BRC_OK;
        for (size_t i = 0; i < w->nbackends; i++)
            forget_faults(where_backend_at(w, i));
    }
    BRC_TRY(where_count(w, err));
    return where_look_into_all(w, err);
}

/* ==== brc_backends ================================ */

static int where_next(void *state, const void **out, brc_error *err)
{
    where_list *w = state;
    (void)err;
    if (w->at == w->nbackends)
        return 0;
    const where_backend *b = where_backend_at(w, w->at++);
    w->given = (brc_backend_facts){.backend_json = b->spec,
                                   .objects = b->objects,
                                   .bytes = b->bytes,
                                   .places = b->places,
                                   .faults = b->faults,
                                   .nfaults = b->nfaults};
    *out = &w->given;
    return 1;
}

int brc_backends(brc_iter **out, breccia *repo, uint32_t flags, brc_error *err)
{
    *out = NULL;
    BRC_TRY(brc_flags_check(flags, BRC_BACKENDS_CHECK | BRC_BACKENDS_QUICK, "brc_backends", err));
    BRC_TRY(brc_iter_new(out, where_next, sizeof(where_list), where_dispose, err));
    where_list *w = brc_iter_state(*out);
    w->store = repo->store;
    w->flags = flags;
    int rc = brc_store_begin_read(w->store, err);
    if (rc == BRC_OK) {
        rc = where_gather(w, err);
        brc_store_end_read(w->store);
    }
    if (rc < 0) {
        brc_iter_free(*out);
        *out = NULL;
    }
    return rc;
}

/* ==== brc_prove_backend ================================ */

int brc_prove_backend(breccia *repo, const char *backend_json, brc_promise_fn each, void *ctx,
                      brc_error *err)
{
    brc_buf full = BRC_BUF_INIT;
    int rc = brc_backend_of_text(repo->registry, backend_json, &full, err);
    if (rc == BRC_OK)
        rc = brc_backend_try(repo->store, (const char *)full.data, each, ctx, err);
    brc_buf_dispose(&full);
    return rc;
}
