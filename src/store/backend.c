/*
 * The backends of a store: their numbers in the file, and the states that they work with.
 *
 * Invariant: slots stay until the store is closed, so workers may use what they were given; only
 * the numbers, which an undone transaction may have added, are forgotten and read again.
 *
 * What was put is durable when it has been flushed since: each call of put() has a number, in each
 * slot, and a row that names something of a call beyond the last flush makes the slot dirty.
 */
#include "backend.h"

#include <stdlib.h>
#include <string.h>

#include "../base/json.h"

/* ---- numbers and specifications -------------------------------- */

static brc_store_backend *slot_of_id(const brc_store *store, int64_t id)
{
    for (size_t i = 0; i < store->backends.n; i++)
        if (store->backends.slots[i]->id == id)
            return store->backends.slots[i];
    return NULL;
}

static brc_store_backend *slot_of_spec(const brc_store *store, const char *spec)
{
    for (size_t i = 0; i < store->backends.n; i++)
        if (strcmp(store->backends.slots[i]->spec, spec) == 0)
            return store->backends.slots[i];
    return NULL;
}

/* The slot of a specification has this number from now on. */
static int backend_bind(brc_store *store, int64_t id, const char *spec, brc_store_backend **out,
                     brc_error *err)
{
    void *p, *slots = store->backends.slots;
    brc_store_backend *b = slot_of_spec(store, spec);
    if (b == NULL) {
        int rc = brc_grow_array(&slots, &store->backends.cap, store->backends.n + 1,
                                sizeof(*store->backends.slots), err);
        store->backends.slots = slots;
        if (rc < 0)
            return rc;
        BRC_TRY(brc_new(&p, sizeof(*b), err));
        b = p;
        rc = brc_dup(&b->spec, spec, err);
        if (rc < 0) {
            free(b);
            return rc;
        }
        b->store = store;
        store->backends.slots[store->backends.n++] = b;
    }
    b->id = id;
    *out = b;
    return BRC_OK;
}

static int backend_load(brc_store *store, int64_t id, brc_store_backend **out, brc_error *err)
{
    int there;
    brc_buf spec = BRC_BUF_INIT;
    *out = slot_of_id(store, id);
    if (*out != NULL)
        return BRC_OK;
    BRC_TRY(brc_schema_has(store, "backend", &there, err));
    int rc = brc_row_text(store,
                          there ? "SELECT spec, checksum IS row_sum('backend', id, spec)"
                                  " FROM backend WHERE id=?1"
                                : "SELECT NULL WHERE ?1 IS NULL", /* none */
                          id, "backend", &spec, err);
    if (rc == BRC_OK)
        rc = backend_bind(store, id, (const char *)spec.data, out, err);
    brc_buf_dispose(&spec);
    return rc;
}

int brc_backend_find(brc_store *store, const char *spec, int64_t *id, brc_error *err)
{
    int there;
    sqlite3_stmt *st;
    brc_store_backend *b = slot_of_spec(store, spec);
    *id = b != NULL ? b->id : -1;
    if (strcmp(spec, BRC_INLINE_SPEC) == 0)
        *id = 0;
    if (*id >= 0)
        return BRC_OK;
    BRC_TRY(brc_schema_has(store, "backend", &there, err));
    if (!there)
        return BRC_OK;
    BRC_TRY(brc_stmt(store, "SELECT id FROM backend WHERE spec=?1", &st, err));
    sqlite3_bind_text(st, 1, spec, -1, SQLITE_STATIC);
    int rc = brc_step(store, st, err);
    if (rc <= 0)
        return rc;
    *id = sqlite3_column_int64(st, 0);
    sqlite3_reset(st);
    return backend_load(store, *id, &b, err);
}

int brc_backend_intern(brc_store *store, const char *spec, int64_t *id, brc_error *err)
{
    sqlite3_stmt *st;
    brc_store_backend *b;
    BRC_TRY(brc_backend_find(store, spec, id, err));
    if (*id >= 0)
        return BRC_OK;
    BRC_TRY(brc_schema_need(store, "backend", err));
    BRC_TRY(brc_stmt(store,
                     "INSERT INTO backend(id, spec, checksum) SELECT n, ?1,"
                     " row_sum('backend', n, ?1) FROM (SELECT coalesce(max(id),0)+1 AS n"
                     " FROM backend)",
                     &st, err));
    sqlite3_bind_text(st, 1, spec, -1, SQLITE_STATIC);
    BRC_TRY(brc_run(store, st, err));
    *id = sqlite3_last_insert_rowid(store->db);
    return backend_bind(store, *id, spec, &b, err);
}

/* ---- opening and closing -------------------------------- */

static int host_stopped(void *ctx)
{
    const brc_store *store = ctx;
    return atomic_load(&store->interrupted) != 0;
}

static int open_config(brc_store_backend *b, const brc_json *spec, brc_error *err)
{
    const char *name, *file = sqlite3_db_filename(b->store->db, "main");
    const brc_json *config;
    BRC_TRY(brc_backend_parse(spec, &name, &config, err));
    const brc_backend *impl = brc_registry_backend(b->store->registry, name);
    if (impl == NULL)
        return brc_fail(err, BRC_ECORRUPT, "%s is damaged: its own backend has a number",
                        b->store->path);
    b->host = (brc_backend_host){
        .size = sizeof(b->host),
        .file = file != NULL ? file : "",
        .flags = b->store->readonly ? BRC_BACKEND_READONLY : 0,
        .ctx = b->store,
        .stopped = host_stopped,
    };
    int rc = impl->open(impl->ctx, &b->state, config, &b->host, err);
    if (rc < 0)
        brc_context(err, "the backend \"%.80s\"", name);
    else
        b->impl = impl;
    return rc;
}

/* What the file says of it is checked, and completed, before the backend sees it. */
static int backend_open(brc_store_backend *b, brc_error *err)
{
    brc_json *spec = NULL;
    brc_buf full = BRC_BUF_INIT;
    int rc;
    if (brc_json_parse(&spec, b->spec, strlen(b->spec), NULL) < 0)
        return brc_fail(err, BRC_ECORRUPT, "%s is damaged: a backend's row is not JSON",
                        b->store->path);
    rc = brc_backend_full(b->store->registry, spec, &full, err);
    if (rc == BRC_EINVAL) { /* it was checked when it was stored */
        rc = BRC_ECORRUPT;
        if (err != NULL)
            err->code = rc;
    }
    if (rc < 0)
        goto done;
    brc_json_free(spec);
    spec = NULL;
    BRC_GO(brc_json_parse(&spec, (const char *)full.data, full.len, err));
    rc = open_config(b, spec, err);
done:
    brc_json_free(spec);
    brc_buf_dispose(&full);
    return rc;
}

int brc_backend_use(brc_store *store, int64_t id, brc_store_backend **out, brc_error *err)
{
    *out = &store->inline_backend;
    if (id == 0)
        return BRC_OK;
    BRC_TRY(backend_load(store, id, out, err));
    return (*out)->impl != NULL ? BRC_OK : backend_open(*out, err);
}

void brc_backends_forget(brc_store *store)
{
    for (size_t i = 0; i < store->backends.n; i++) {
        store->backends.slots[i]->id = -1;
        store->backends.slots[i]->is_dirty = 0;
        brc_places_forget(store->backends.slots[i]);
    }
}

void brc_backends_close(brc_store *store)
{
    for (size_t i = 0; i < store->backends.n; i++) {
        brc_store_backend *b = store->backends.slots[i];
        if (b->impl != NULL && b->impl->close != NULL)
            b->impl->close(b->impl->ctx, b->state);
        brc_places_forget(b);
        free(b->spec);
        free(b);
    }
    free(store->backends.slots);
}

/* ---- using them -------------------------------- */

int brc_backend_on_workers(const brc_store_backend *b)
{
    return (b->impl->flags & BRC_BACKEND_ON_WORKERS) != 0;
}

int brc_backend_is_inline(const brc_store_backend *b)
{
    return b->impl == &brc_inline_backend;
}

static int backend_failed(const brc_store_backend *b, int rc, brc_error *err)
{
    if (rc > 0)
        return brc_fail(err, BRC_EINTERNAL, "the backend \"%.80s\" returned %d", b->impl->name,
                        rc);
    brc_context(err, "the backend \"%.80s\"", b->impl->name);
    return rc;
}

/* What is not there was named by a row, which may say something else by now. */
static int fetch_failed(const brc_store_backend *b, int rc, brc_error *err)
{
    if (brc_backend_is_inline(b))
        return rc;
    rc = backend_failed(b, rc, err);
    if (rc != BRC_ENOTFOUND)
        return rc;
    if (err != NULL)
        brc_error_recode(err, BRC_ESTALE);
    return BRC_ESTALE;
}

int brc_backend_fetch(const brc_store_backend *b, size_t n, brc_stored *const *items,
                      brc_error *err)
{
    for (size_t i = 0; i < n; i++)
        items[i]->status = BRC_BACKEND_NOT_DONE;
    int rc = b->impl->fetch(b->impl->ctx, b->state, n, items, err);
    return rc == BRC_OK ? BRC_OK : fetch_failed(b, rc, err);
}

int brc_backend_drop(const brc_store_backend *b, size_t n, brc_stored *const *items,
                     brc_error *err)
{
    if (b->impl->drop == NULL) /* nothing can be */
        return BRC_OK;
    for (size_t i = 0; i < n; i++)
        items[i]->status = BRC_BACKEND_NOT_DONE;
    int rc = b->impl->drop(b->impl->ctx, b->state, n, items, err);
    return rc == BRC_OK ? BRC_OK : backend_failed(b, rc, err);
}

int brc_backend_list(const brc_store_backend *b,
                     int (*each)(void *to, const brc_kept *kept, brc_error *err), void *to,
                     brc_error *err)
{
    int rc = b->impl->list(b->impl->ctx, b->state, each, to, err);
    return rc < 0 ? backend_failed(b, rc, err) : rc;
}

int brc_backend_put(brc_store_backend *b, size_t n, brc_stored *const *items, brc_error *err)
{
    if (b->impl->put == NULL)
        return brc_fail(err, BRC_EUNSUPPORTED,
                        "the backend \"%.80s\" can only be read: give the array another one",
                        b->impl->name);
    int rc = b->impl->put(b->impl->ctx, b->state, n, items, err);
    if (brc_backend_is_inline(b))
        return rc;
    if (rc != BRC_OK)
        return backend_failed(b, rc, err);
    const int64_t call = (int64_t)(atomic_fetch_add(&b->puts, 1) + 1);
    for (size_t i = 0; i < n; i++)
        items[i]->number = call;
    return BRC_OK;
}

int brc_backend_recorded(brc_store *store, int64_t id, const brc_stored *at, int64_t *place,
                         uint64_t *offset, brc_error *err)
{
    brc_store_backend *b;
    *place = at->number;
    *offset = at->offset;
    if (id == 0)
        return BRC_OK;
    BRC_TRY(brc_backend_use(store, id, &b, err));
    b->is_dirty |= (uint64_t)at->number > b->flushed;
    *place = 0;
    return at->place != NULL ? brc_place_intern(b, at->place, place, err) : BRC_OK;
}

static int backend_flush(brc_store_backend *b, brc_error *err)
{
    const uint64_t puts = atomic_load(&b->puts);
    int rc = b->impl->flush != NULL ? b->impl->flush(b->impl->ctx, b->state, err) : BRC_OK;
    if (rc != BRC_OK)
        return backend_failed(b, rc, err);
    b->flushed = puts;
    b->is_dirty = 0;
    return BRC_OK;
}

int brc_backend_flush_puts(brc_store_backend *b, brc_error *err)
{
    return atomic_load(&b->puts) > b->flushed ? backend_flush(b, err) : BRC_OK;
}

/* The file's own comes last: until it is flushed, its transaction has written little. */
int brc_backends_flush(brc_store *store, brc_error *err)
{
    for (size_t i = 0; i < store->backends.n; i++)
        if (store->backends.slots[i]->is_dirty)
            BRC_TRY(backend_flush(store->backends.slots[i], err));
    return brc_inline_backend.flush(NULL, store, err);
}
