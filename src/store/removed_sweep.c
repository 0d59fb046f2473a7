/* Sweeping the table of removed bytes, and finding strays. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backend.h"
#include "change.h"
#include "db.h"
#include "removed.h"

/* ==== sweeping ================================ */

/* ---- rows of stored bytes -------------------------------- */

/* Stores whether the row's bytes that are not free are just these objects' bytes. */
static int row_is_theirs(brc_store *store, int64_t seq, brc_object *objects, size_t n,
                         int *theirs, brc_error *err)
{
    brc_removed row;
    int found;
    uint64_t sum = 0;
    *theirs = 0;
    for (size_t i = 0; i < n; i++) {
        brc_object *one = &objects[i];
        BRC_TRY(brc_objects_find(store, &one, 1, err));
        if (!one->found || !brc_is_in_file(one->backend) || one->place != seq)
            return BRC_OK;
        sum += one->stored;
    }
    BRC_TRY(brc_blob_find(store, seq, &row, &found, err));
    *theirs = found && row.total > row.bytes && (uint64_t)(row.total - row.bytes) == sum;
    return BRC_OK;
}

int brc_object_move(brc_store *store, const brc_object *o, brc_buf *bytes, brc_error *err)
{
    brc_stored at, *put = &at;
    bytes->len = 0;
    BRC_TRY(brc_buf_reserve(bytes, (size_t)o->stored + 1, err));
    BRC_TRY(brc_object_fetch(store, o, bytes->data, err));
    brc_object_ask(o, &at);
    at.data = bytes->data;
    BRC_TRY(brc_inline_backend.put(NULL, store, 1, &put, err));
    return brc_object_replace(store, o, &at, err);
}

/* Drops a row that is all free: a bulk write put its bytes ahead and has not written their objects.
 * If the bulk write goes on, it notices that and puts the bytes again. */
static int drop_bare_row(brc_store *store, int64_t seq, brc_error *err)
{
    brc_removed row;
    int found;
    BRC_TRY(brc_blob_find(store, seq, &row, &found, err));
    if (!found || row.bytes != row.total)
        return BRC_OK;
    BRC_TRY(brc_blob_drop(store, seq, err));
    return brc_removed_delete(store, &row, err);
}

/* Moves the row's objects to a new row, unless the row holds others too. */
static int compact_row(brc_store *store, const brc_removed *row, brc_error *err)
{
    void *p;
    int is_theirs;
    brc_buf bytes = BRC_BUF_INIT;
    if (row->nids == 0)
        return drop_bare_row(store, row->place, err);
    BRC_TRY(brc_new_array(&p, row->nids, sizeof(brc_object), err));
    brc_object *objects = p;
    for (size_t i = 0; i < row->nids; i++)
        objects[i].id = row->ids[i];
    int rc = row_is_theirs(store, row->place, objects, row->nids, &is_theirs, err);
    for (size_t i = 0; i < row->nids && rc == BRC_OK && is_theirs; i++)
        rc = brc_object_move(store, &objects[i], &bytes, err);
    brc_buf_dispose(&bytes);
    free(p);
    return rc;
}

/* ---- places in other backends -------------------------------- */

/* Stores whether an object lies in the place: one that was found before, or one that a writer has
 * entered in gc_kept while the collection runs. */
static int place_is_named(brc_store *store, int64_t run, const brc_removed *row, int *named,
                          brc_error *err)
{
    sqlite3_stmt *st;
    *named = row->nids > 0;
    if (*named)
        return BRC_OK;
    BRC_TRY(brc_stmt(store,
                     "SELECT 1 FROM gc_kept k JOIN object o ON o.id=k.id WHERE k.run=?1 AND"
                     " o.backend=?2 AND o.place=?3",
                     &st, err));
    sqlite3_bind_int64(st, 1, run);
    sqlite3_bind_int64(st, 2, row->backend);
    sqlite3_bind_int64(st, 3, row->place);
    return brc_ask_any(store, st, named, err);
}

/* Stores whether an object's row names these stored bytes, under their canonical name. A writer
 * that stores an object while a collection runs puts its bytes again, in the transaction that names
 * them (brc_gc_puts_stand()); so bytes without a name here belong to nobody. */
static int object_has_stored(brc_store *store, int64_t backend, const brc_stored *at,
                             int *named, brc_error *err)
{
    sqlite3_stmt *st;
    BRC_TRY(brc_stmt(store,
                     "SELECT 1 FROM object WHERE id=?1 AND backend=?2 AND place=0 AND checksum=?3",
                     &st, err));
    brc_bind_id(store, st, 1, &at->id);
    sqlite3_bind_int64(st, 2, backend);
    sqlite3_bind_int64(st, 3, (int64_t)at->sum);
    return brc_ask_any(store, st, named, err);
}

typedef struct place_batch {
    brc_store *store;
    brc_removed_sweep *sweep;
    brc_store_backend *backend;
    const brc_removed *rows[BRC_REMOVED_AT_ONCE]; /* the places to drop                   */
    brc_stored items[BRC_REMOVED_AT_ONCE];
    brc_buf names[BRC_REMOVED_AT_ONCE];
    size_t n;
} place_batch;

/* Counts places of a backend that stay, and keeps the first error. */
static void places_stay(brc_removed_sweep *sweep, int64_t backend, size_t n, const brc_error *said)
{
    if (sweep->failed == 0)
        brc_error_copy(&sweep->why, said);
    if (brc_is_out_of_reach(said))
        sweep->out_of_reach = backend;
    sweep->failed += n;
}

/* The objects of a place that is half free are put again elsewhere. */
int brc_backend_moves(const brc_store_backend *b)
{
    return b->impl->flags & BRC_BACKEND_PACKS && b->impl->put != NULL && b->impl->drop != NULL;
}

/* Reads what the backend calls the place: `at`, and its name in `name`. */
static int ask_place(brc_store *store, const brc_removed *row, brc_stored *at, brc_buf *name,
                     brc_error *err)
{
    *at = (brc_stored){.size = sizeof(*at)};
    if (row->state == BRC_REMOVED_STRAY)
        at->flags = BRC_STORED_OWN;
    if (row->place == 0)
        return brc_stored_parse_name(at, row->name)
                   ? BRC_OK
                   : brc_fail(err, BRC_ECORRUPT,
                              "%s is damaged: \"%.83s\" is not the name of stored bytes",
                              store->path, row->name);
    BRC_TRY(brc_row_text(store,
                         "SELECT name, checksum IS row_sum('place', seq, backend, name, size,"
                         " facts) FROM place WHERE seq=?1",
                         row->place, "place", name, err));
    at->place = (const char *)name->data;
    return brc_is_place_name(at->place)
               ? BRC_OK
               : brc_fail(err, BRC_ECORRUPT, "%s is damaged: the name of place %lld is not valid",
                          store->path, (long long)row->place);
}

/* Leaves the place to the backend for as long as it asks for. Returns 1 if the place is held. */
static int hold_place_back(const place_batch *b, const brc_removed *row, brc_error *err)
{
    brc_removed held = *row;
    const int64_t hold = b->backend->impl->hold_us, now = b->sweep->now_us;
    if (hold <= 0 || row->state != BRC_REMOVED_FREE)
        return BRC_OK;
    held.state = BRC_REMOVED_DUE;
    held.due_us = now > INT64_MAX - hold ? INT64_MAX : now + hold;
    const int rc = brc_removed_put(b->store, &held, err);
    return rc < 0 ? rc : 1;
}

/* The row of a pack stays, and says how much of the pack is free. */
static int place_is_used(const place_batch *b, const brc_removed *found, const brc_removed *row,
                         brc_error *err)
{
    brc_removed now = *row;
    if (row->place == 0 || !brc_backend_moves(b->backend))
        return brc_removed_delete(b->store, row, err);
    if (found->live > 0 && found->live <= INT64_MAX - (uint64_t)row->bytes)
        now.total = row->bytes + (int64_t)found->live;
    now.state = BRC_REMOVED_FREE;
    now.due_us = 0;
    return brc_removed_put(b->store, &now, err);
}

/* Adds the place to the batch to drop, unless an object names it or it is held. */
static int look_at_place(place_batch *b, const brc_removed *row, brc_error *err)
{
    brc_stored *at = &b->items[b->n];
    brc_removed now = *row;
    brc_buf name = BRC_BUF_INIT;
    int named;
    BRC_TRY(brc_removed_find(b->store, &now, &named, err));
    if (!named || now.due_us > b->sweep->now_us) /* others have changed the row */
        return BRC_OK;
    int rc = ask_place(b->store, &now, at, &name, err);
    if (rc == BRC_OK)
        rc = row->place == 0 ? object_has_stored(b->store, row->backend, at, &named, err)
                             : place_is_named(b->store, b->sweep->run, row, &named, err);
    if (rc == BRC_OK && named)
        rc = place_is_used(b, row, &now, err);
    else if (rc == BRC_OK)
        named = rc = hold_place_back(b, &now, err);
    if (rc < 0 || named) {
        brc_buf_dispose(&name);
        return rc < 0 ? rc : BRC_OK;
    }
    b->rows[b->n] = row;
    b->names[b->n++] = name;
    return BRC_OK;
}

static int place_gone(brc_store *store, const brc_removed *row, brc_error *err)
{
    sqlite3_stmt *st;
    BRC_TRY(brc_removed_delete(store, row, err));
    if (row->place == 0)
        return BRC_OK;
    BRC_TRY(brc_stmt(store, "DELETE FROM place WHERE seq=?1", &st, err));
    sqlite3_bind_int64(st, 1, row->place);
    return brc_run(store, st, err);
}

static int drop_batch(place_batch *b, brc_error *err)
{
    brc_stored *items[BRC_REMOVED_AT_ONCE];
    brc_error said = BRC_ERROR_INIT;
    for (size_t i = 0; i < b->n; i++)
        items[i] = &b->items[i];
    if (b->n > 0 && b->sweep->out_of_reach == b->rows[0]->backend) {
        b->sweep->failed += b->n;
        return BRC_OK;
    }
    const int rc = b->n > 0 ? brc_backend_drop(b->backend, b->n, items, &said) : BRC_OK;
    for (size_t i = 0; i < b->n; i++)
        if (rc == BRC_OK || items[i]->status == BRC_OK)
            BRC_TRY(place_gone(b->store, b->rows[i], err));
        else
            places_stay(b->sweep, b->rows[i]->backend, 1, &said);
    brc_places_forget(b->backend);
    return BRC_OK;
}

static int sweep_places_in(place_batch *b, const brc_removed *rows, size_t n, brc_error *err)
{
    brc_error said = BRC_ERROR_INIT;
    for (size_t i = 0; i < n; i++) {
        const int rc = look_at_place(b, &rows[i], &said);
        if (rc == BRC_ECORRUPT)
            places_stay(b->sweep, rows[i].backend, 1, &said);
        else if (rc < 0) {
            brc_error_copy(err, &said);
            return rc;
        }
    }
    return drop_batch(b, err);
}

static int sweep_places(brc_store *store, brc_removed_sweep *sweep, const brc_removed *rows,
                        size_t n, brc_error *err)
{
    place_batch b = {.store = store, .sweep = sweep};
    brc_error said = BRC_ERROR_INIT;
    int rc = BRC_OK;
    const int used = brc_backend_use(store, rows[0].backend, &b.backend, &said);
    if (used == BRC_OK)
        rc = sweep_places_in(&b, rows, n, err);
    else if (used != BRC_EUNSUPPORTED) /* bytes that this build cannot remove stay */
        places_stay(sweep, rows[0].backend, n, &said);
    for (size_t i = 0; i < b.n; i++)
        brc_buf_dispose(&b.names[i]);
    return rc;
}

/* ---- packs that are half free -------------------------------- */

/* The most objects, and about the most bytes, that are moved in one change. What is moved far away
 * in one change is a pack there. */
enum { MOVED_AT_ONCE = 512, MOVED_BYTES = 8 << 20, MOVED_BYTES_FAR = 32 << 20 };

/* Some objects of one pack, which are put again before the change's transaction. */
typedef struct pack_move {
    brc_store *store;
    brc_removed_sweep *sweep;
    brc_store_backend *backend;
    const brc_removed *row;
    size_t at, n; /* the range of the row's ids that this change looks at */
    brc_object objects[MOVED_AT_ONCE];
    brc_stored items[MOVED_AT_ONCE]; /* where the objects were put    */
    brc_stored *asked[MOVED_AT_ONCE];
    size_t nput;
    brc_buf bytes, name; /* name: of the pack                           */
    int stays; /* an object could not be moved                         */
} pack_move;

static void forget_puts(pack_move *m)
{
    for (size_t i = 0; i < m->nput; i++)
        brc_stored_clear(&m->items[i]);
    m->nput = 0;
    m->bytes.len = 0;
}

/* Finds the next objects that are still in the pack. */
static int find_in_pack(pack_move *m, brc_error *err)
{
    const uint64_t most = brc_backend_is_far(m->backend) ? MOVED_BYTES_FAR : MOVED_BYTES;
    uint64_t bytes = 0;
    int rc = BRC_OK;
    BRC_TRY(brc_store_begin_read(m->store, err));
    for (m->n = 0; m->at + m->n < m->row->nids && m->nput < MOVED_AT_ONCE && bytes < most; m->n++) {
        brc_object *o = &m->objects[m->nput];
        *o = (brc_object){.id = m->row->ids[m->at + m->n]};
        rc = brc_objects_find(m->store, &o, 1, err);
        if (rc < 0)
            break;
        if (!o->found || o->backend != m->row->backend || o->place != m->row->place)
            continue;
        bytes += o->stored;
        m->nput++;
    }
    brc_store_end_read(m->store);
    return rc;
}

/* Fetches these objects in one call, and compares their checksums. */
static int fetch_from_pack(pack_move *m, brc_error *err)
{
    uint8_t *into;
    size_t bytes = 1;
    for (size_t i = 0; i < m->nput; i++)
        bytes += (size_t)m->objects[i].stored;
    BRC_TRY(brc_buf_reserve(&m->bytes, bytes, err));
    into = m->bytes.data;
    for (size_t i = 0; i < m->nput; i++) {
        m->asked[i] = &m->items[i];
        brc_object_ask(&m->objects[i], &m->items[i]);
        m->items[i].place = (const char *)m->name.data;
        m->items[i].into = into;
        into += (size_t)m->objects[i].stored;
    }
    int rc = brc_backend_fetch(m->backend, m->nput, m->asked, err);
    for (size_t i = 0; i < m->nput && rc == BRC_OK; i++)
        rc = brc_object_verify(&m->objects[i], m->items[i].into, err);
    for (size_t i = 0; i < m->nput; i++)
        m->items[i].place = NULL; /* the items do not own the name */
    return rc;
}

/* Fetches these objects, and puts their bytes again. */
static int put_again(pack_move *m, brc_error *err)
{
    BRC_TRY(fetch_from_pack(m, err));
    for (size_t i = 0; i < m->nput; i++) {
        m->items[i].data = m->items[i].into;
        m->items[i].into = NULL;
        m->items[i].offset = 0;
        m->items[i].leaves = (const char *)m->name.data;
    }
    BRC_TRY(brc_backend_put(m->backend, m->nput, m->asked, err));
    for (size_t i = 0; i < m->nput; i++)
        if (m->items[i].place != NULL && strcmp(m->items[i].place, m->items[i].leaves) == 0)
            return brc_fail(err, BRC_EINTERNAL,
                            "the backend \"%.80s\" put an object into the pack that it is to leave",
                            m->backend->impl->name);
    return brc_backend_flush_puts(m->backend, err);
}

static int move_work(void *ctx, brc_error *err)
{
    pack_move *m = ctx;
    brc_error said = BRC_ERROR_INIT;
    forget_puts(m);
    BRC_TRY(find_in_pack(m, err));
    const int rc = m->nput > 0 ? put_again(m, &said) : BRC_CHANGE_NONE;
    if (rc >= 0)
        return rc;
    if (rc == BRC_ENOMEM || rc == BRC_EINTERRUPT) {
        brc_error_copy(err, &said);
        return rc;
    }
    m->stays = 1; /* the backend failed, or the object is damaged: the pack stays as it is */
    places_stay(m->sweep, m->row->backend, 1, &said);
    return BRC_CHANGE_NONE;
}

/* Points the rows of the objects to the new bytes, unless a row has changed. */
static int move_commit(void *ctx, int insists, brc_error *err)
{
    pack_move *m = ctx;
    (void)insists;
    for (size_t i = 0; i < m->nput; i++) {
        brc_object now = {.id = m->objects[i].id}, *one = &now;
        BRC_TRY(brc_objects_find(m->store, &one, 1, err));
        if (now.found && brc_object_place_order(&now, &m->objects[i]) == 0 &&
            now.checksum == m->objects[i].checksum && now.stored == m->objects[i].stored)
            BRC_TRY(brc_object_replace(m->store, &now, &m->items[i], err));
    }
    return BRC_OK;
}

/* Reads the name of the pack, which the objects are to leave. */
static int name_the_pack(pack_move *m, brc_error *err)
{
    brc_stored at;
    BRC_TRY(brc_store_begin_read(m->store, err));
    const int rc = ask_place(m->store, m->row, &at, &m->name, err);
    brc_store_end_read(m->store);
    return rc;
}

/* Moves the objects out of a pack that is half free or more, in as many changes as needed. Sets
 * *moved to 1 if no object is left in the pack. */
static int move_pack(brc_store *store, brc_removed_sweep *sweep, const brc_removed *row, int *moved,
                     brc_error *err)
{
    void *p;
    brc_store_backend *backend;
    *moved = 0;
    if (row->nids == 0 || row->live > (uint64_t)row->bytes ||
        brc_backend_use(store, row->backend, &backend, NULL) < 0 || !brc_backend_moves(backend))
        return BRC_OK;
    if (sweep->out_of_reach == row->backend) {
        sweep->failed++;
        return BRC_OK;
    }
    BRC_TRY(brc_new(&p, sizeof(pack_move), err));
    pack_move *m = p;
    *m = (pack_move){.store = store, .sweep = sweep, .backend = backend, .row = row};
    const brc_file_change change = {.ctx = m, .work = move_work, .commit = move_commit};
    brc_error said = BRC_ERROR_INIT;
    int rc = BRC_OK;
    if (name_the_pack(m, &said) < 0) {
        m->stays = 1;
        places_stay(sweep, row->backend, 1, &said);
    }
    for (; m->at < row->nids && rc == BRC_OK && !m->stays; m->at += m->n)
        rc = brc_change_run(store, &change, err);
    *moved = rc == BRC_OK && !m->stays;
    forget_puts(m);
    brc_buf_dispose(&m->bytes);
    brc_buf_dispose(&m->name);
    free(m);
    return rc;
}

/* ---- one change -------------------------------- */

typedef struct sweep_change {
    brc_store *store;
    brc_removed_sweep sweep;
    const brc_removed *rows;
    size_t n;
} sweep_change;

static int sweep_commit(void *ctx, int insists, brc_error *err)
{
    sweep_change *c = ctx;
    (void)insists;
    return brc_is_in_file(c->rows[0].backend) ? compact_row(c->store, &c->rows[0], err)
                                   : sweep_places(c->store, &c->sweep, c->rows, c->n, err);
}

int brc_removed_sweep_some(brc_store *store, brc_removed_sweep *sweep, brc_removed *rows, size_t n,
                           brc_error *err)
{
    for (size_t i = 0; i < n && !brc_is_in_file(rows[0].backend); i++) {
        int moved;
        BRC_TRY(move_pack(store, sweep, &rows[i], &moved, err));
        rows[i].nids = moved ? 0 : rows[i].nids;
    }
    sweep_change c = {store, *sweep, rows, n};
    const brc_file_change change = {.ctx = &c, .commit = sweep_commit};
    const int rc = brc_change_run(store, &change, err);
    if (rc == BRC_OK)
        *sweep = c.sweep;
    return rc;
}

/* ==== strays ================================ */

/*
 * Strays: bytes in other backends whose writer was killed, or whose transaction was undone, before
 * a row named them. The file does not know of them: the backend lists its bytes, and bytes
 * that no row names get a row in table removed, and are swept.
 *
 * Two rules make that safe. Only bytes that the backend holds for this file alone (BRC_KEPT_OWN)
 * are examined. And a writer that puts ahead of its transaction puts again within it if a
 * collection ran meanwhile (brc_gc_puts_stand()): so bytes that have no name in the transaction
 * that drops them belong to nobody.
 */

int brc_backend_after(brc_store *store, int64_t after, int64_t *id, brc_error *err)
{
    int there;
    sqlite3_stmt *st;
    *id = 0;
    BRC_TRY(brc_schema_has(store, "backend", &there, err));
    if (!there)
        return BRC_OK;
    BRC_TRY(brc_stmt(store, "SELECT min(id) FROM backend WHERE id>?1", &st, err));
    sqlite3_bind_int64(st, 1, after);
    return brc_ask_number(store, st, id, err);
}

/* ---- names -------------------------------- */

static int place_has_name(brc_store *store, int64_t backend, const char *name, int *named,
                          brc_error *err)
{
    sqlite3_stmt *st;
    BRC_TRY(brc_schema_has(store, "place", named, err));
    if (!*named)
        return BRC_OK;
    BRC_TRY(brc_stmt(store, "SELECT 1 FROM place WHERE backend=?1 AND name=?2", &st, err));
    sqlite3_bind_int64(st, 1, backend);
    sqlite3_bind_text(st, 2, name, -1, SQLITE_STATIC);
    return brc_ask_any(store, st, named, err);
}

/* Fills in the row that the stray would get, except its place's number. *named: the bytes are not a
 * stray, because a row names them. */
static int stray_look_up(brc_store *store, int64_t backend, const brc_kept *kept, brc_removed *row,
                         int *named, brc_error *err)
{
    brc_stored at = {.size = sizeof(at)};
    brc_removed there;
    *row = (brc_removed){.backend = backend, .state = BRC_REMOVED_STRAY};
    row->bytes = row->total = kept->len <= INT64_MAX ? (int64_t)kept->len : 0;
    if (kept->flags & BRC_KEPT_PLACE)
        return place_has_name(store, backend, kept->name, named, err);
    snprintf(row->name, sizeof(row->name), "%s", kept->name);
    (void)!brc_stored_parse_name(&at, row->name);
    BRC_TRY(object_has_stored(store, backend, &at, named, err));
    there = *row;
    return *named ? BRC_OK : brc_removed_find(store, &there, named, err);
}

/* ---- listing -------------------------------- */

enum { STRAYS_MOST = 8192, STRAYS_AT_ONCE = 512, ENOUGH = 1 };

typedef struct stray {
    char *name;
    uint32_t flags; /* as list() reported it */
    uint64_t len;
} stray;

typedef struct stray_search {
    brc_store *store;
    int64_t backend;
    const brc_removed_sweep *sweep;
    void *items; /* stray[] */
    size_t n, cap, done;
    int has_more;   /* some strays did not fit */
    brc_error *err; /* an error of the file, which ends the list */
    int rc;
} stray_search;

static void strays_dispose(stray_search *s)
{
    for (size_t i = 0; i < s->n; i++)
        free(((stray *)s->items)[i].name);
    free(s->items);
}

static int stray_add(stray_search *s, const brc_kept *kept, brc_error *err)
{
    s->has_more = s->n == STRAYS_MOST;
    if (s->has_more)
        return ENOUGH;
    BRC_TRY(brc_grow_array(&s->items, &s->cap, s->n + 1, sizeof(stray), err));
    stray *one = (stray *)s->items + s->n;
    *one = (stray){.flags = kept->flags, .len = kept->len};
    BRC_TRY(brc_dup(&one->name, kept->name, err));
    s->n++;
    return BRC_OK;
}

/* Returns 1 if bytes may be a stray. Bytes that were put after the collection began most likely
 * belong to a writer that is about to name them. */
static int may_be_stray(const stray_search *s, const brc_kept *kept)
{
    brc_stored at;
    if (!(kept->flags & BRC_KEPT_OWN) || kept->time_us > s->sweep->now_us)
        return 0;
    return kept->flags & BRC_KEPT_PLACE ? brc_is_place_name(kept->name)
                                        : brc_stored_parse_name(&at, kept->name);
}

/* Looks up one name, and releases the file before the backend goes on, so that nobody waits for the
 * backend. */
static int stray_look(stray_search *s, const brc_kept *kept, brc_error *err)
{
    int named;
    brc_removed row;
    BRC_TRY(brc_store_check_interrupt(s->store, err));
    BRC_TRY(brc_store_begin_read(s->store, err));
    int rc = stray_look_up(s->store, s->backend, kept, &row, &named, err);
    brc_store_end_read(s->store);
    return rc < 0 || named ? rc : stray_add(s, kept, err);
}

static int stray_each(void *to, const brc_kept *kept, brc_error *err)
{
    stray_search *s = to;
    (void)err;
    s->rc = may_be_stray(s, kept) ? stray_look(s, kept, s->err) : BRC_OK;
    return s->rc;
}

/* ---- writing rows -------------------------------- */

/* Writes the row of a stray, unless a row names its bytes by now. */
static int stray_put(stray_search *s, brc_store_backend *b, const stray *one, brc_error *err)
{
    brc_removed row;
    int named;
    const brc_kept kept = {.size = sizeof(kept), .name = one->name, .flags = one->flags,
                           .len = one->len};
    const int64_t hold = b->impl->hold_us, now = s->sweep->now_us;
    BRC_TRY(stray_look_up(s->store, s->backend, &kept, &row, &named, err));
    if (named)
        return BRC_OK;
    if (one->flags & BRC_KEPT_PLACE)
        BRC_TRY(brc_place_intern(b, one->name, &row.place, err));
    if (hold > 0)
        row.due_us = now > INT64_MAX - hold ? INT64_MAX : now + hold;
    return brc_removed_put(s->store, &row, err);
}

static int strays_commit(void *ctx, int insists, brc_error *err)
{
    stray_search *s = ctx;
    brc_store_backend *b;
    (void)insists;
    BRC_TRY(brc_backend_use(s->store, s->backend, &b, err));
    for (size_t i = s->done; i < s->n && i < s->done + STRAYS_AT_ONCE; i++)
        BRC_TRY(stray_put(s, b, (const stray *)s->items + i, err));
    return BRC_OK;
}

static int strays_write(stray_search *s, brc_error *err)
{
    const brc_file_change change = {.ctx = s, .commit = strays_commit};
    for (s->done = 0; s->done < s->n; s->done += STRAYS_AT_ONCE)
        BRC_TRY(brc_change_run(s->store, &change, err));
    return BRC_OK;
}

int brc_strays_note(brc_store *store, brc_removed_sweep *sweep, int64_t backend, int *more,
                    uint64_t *first, brc_error *err)
{
    stray_search s = {.store = store, .backend = backend, .sweep = sweep, .err = err};
    brc_store_backend *b;
    brc_error said = BRC_ERROR_INIT;
    int rc = brc_backend_use(store, backend, &b, &said);
    if (rc == BRC_OK && b->impl->list != NULL && b->impl->drop != NULL)
        rc = brc_backend_list(b, stray_each, &s, &said);
    if (s.rc >= 0 && rc < 0 && rc != BRC_EUNSUPPORTED && rc != BRC_ENOTFOUND)
        brc_error_copy(&sweep->why, &said);
    if (brc_is_out_of_reach(&said))
        sweep->out_of_reach = backend;
    rc = s.rc < 0 ? s.rc : strays_write(&s, err);
    *more = s.has_more;
    *first = s.n > 0 ? brc_hash_bytes(((stray *)s.items)->name, strlen(((stray *)s.items)->name))
                     : 0;
    strays_dispose(&s);
    return rc;
}

