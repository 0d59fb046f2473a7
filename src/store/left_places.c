/*
 * What removed objects left in other backends, until it is dropped there: rows of table place that
 * have facts. Of a pack that objects have left, and that others may still be in, its own row; of
 * bytes under their canonical name one that is made for them. They are written in the transaction
 * that removes the objects, so nobody who is killed, and no backend that fails, can lose them.
 */
#include <stdlib.h>
#include <string.h>

#include "backend.h"
#include "collect.h"

#define LEFT_PACK "{\"left\":true}"
#define LEFT_NAME "{\"left\":true,\"canonical\":true}"

/* ---- noting -------------------------------- */

static int note_pack(brc_store *store, const brc_object *o, brc_error *err)
{
    sqlite3_stmt *st;
    BRC_TRY(brc_stmt(store,
                     "UPDATE place SET facts=?3, checksum=row_sum('place', seq, backend, name,"
                     " size, ?3) WHERE seq=?1 AND backend=?2 AND facts IS NULL",
                     &st, err));
    sqlite3_bind_int64(st, 1, o->place);
    sqlite3_bind_int64(st, 2, o->backend);
    sqlite3_bind_text(st, 3, LEFT_PACK, -1, SQLITE_STATIC);
    return brc_run(store, st, err);
}

static int note_name(brc_store *store, const brc_object *o, brc_error *err)
{
    char name[BRC_STORED_NAME_SIZE];
    const brc_stored at = {.size = sizeof(at), .id = o->id, .sum = o->checksum};
    sqlite3_stmt *st;
    BRC_TRY(brc_stmt(store,
                     "INSERT INTO place(seq, backend, name, facts, checksum) SELECT n, ?1, ?2, ?3,"
                     " row_sum('place', n, ?1, ?2, NULL, ?3) FROM (SELECT 1+max("
                     "(SELECT coalesce(max(seq),0) FROM place),"
                     " (SELECT coalesce(max(seq),0) FROM sqlite_sequence WHERE name='place'"
                     " AND typeof(seq)='integer')) AS n) WHERE true ON CONFLICT DO NOTHING",
                     &st, err));
    sqlite3_bind_int64(st, 1, o->backend);
    sqlite3_bind_text(st, 2, brc_stored_name(name, &at), -1, SQLITE_TRANSIENT);
    sqlite3_bind_text(st, 3, LEFT_NAME, -1, SQLITE_STATIC);
    return brc_run(store, st, err);
}

int brc_left_note(brc_store *store, const brc_object *o, brc_error *err)
{
    BRC_TRY(brc_schema_need(store, "place", err));
    return o->place != 0 ? note_pack(store, o, err) : note_name(store, o, err);
}

/* ---- what there is -------------------------------- */

int brc_left_page(brc_store *store, int64_t after, brc_left *out, size_t cap, size_t *n,
                  brc_error *err)
{
    int rc, there;
    sqlite3_stmt *st;
    *n = 0;
    BRC_TRY(brc_schema_has(store, "place", &there, err));
    if (!there)
        return BRC_OK;
    BRC_TRY(brc_stmt(store,
                     "SELECT seq, backend, facts=?3 FROM place WHERE seq>?1 AND facts IS NOT NULL"
                     " AND checksum IS row_sum('place', seq, backend, name, size, facts)"
                     " ORDER BY seq LIMIT ?2",
                     &st, err));
    sqlite3_bind_int64(st, 1, after);
    sqlite3_bind_int64(st, 2, (int64_t)cap);
    sqlite3_bind_text(st, 3, LEFT_NAME, -1, SQLITE_STATIC);
    while ((rc = brc_step(store, st, err)) > 0)
        out[(*n)++] = (brc_left){.seq = sqlite3_column_int64(st, 0),
                                 .backend = sqlite3_column_int64(st, 1),
                                 .is_canonical = sqlite3_column_int(st, 2)};
    return rc;
}

/* ---- dropping -------------------------------- */

typedef struct left_batch {
    brc_store *store;
    int64_t run;
    brc_left *left[BRC_LEFT_AT_ONCE];
    brc_stored items[BRC_LEFT_AT_ONCE];
    char *names[BRC_LEFT_AT_ONCE];
    size_t n;
} left_batch;

static void left_batch_end(left_batch *b)
{
    for (size_t i = 0; i < b->n; i++)
        free(b->names[i]);
    b->n = 0;
}

/* Whoever stores something while a collection runs enters it in gc_kept; the rest was looked at. */
static int pack_is_named(const left_batch *b, const brc_left *left, int *named, brc_error *err)
{
    sqlite3_stmt *st;
    *named = left->named;
    if (*named)
        return BRC_OK;
    BRC_TRY(brc_stmt(b->store,
                     "SELECT 1 FROM gc_kept k JOIN object o ON o.id=k.id WHERE k.run=?1 AND"
                     " o.backend=?2 AND o.place=?3",
                     &st, err));
    sqlite3_bind_int64(st, 1, b->run);
    sqlite3_bind_int64(st, 2, left->backend);
    sqlite3_bind_int64(st, 3, left->seq);
    return brc_ask_any(b->store, st, named, err);
}

/* Whoever stores one anew while a collection runs puts it again, in the transaction that names it
 * (brc_gc_puts_stand()); so what has no name here is nobody's. */
int brc_object_has_stored(brc_store *store, int64_t backend, const brc_stored *at, int *named,
                          brc_error *err)
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

static int left_change(brc_store *store, const char *sql, int64_t seq, brc_error *err)
{
    sqlite3_stmt *st;
    BRC_TRY(brc_stmt(store, sql, &st, err));
    sqlite3_bind_int64(st, 1, seq);
    return brc_run(store, st, err);
}

static int left_forget(brc_store *store, const brc_left *left, brc_error *err)
{
    return left_change(store, "DELETE FROM place WHERE seq=?1", left->seq, err);
}

static int left_again_used(brc_store *store, const brc_left *left, brc_error *err)
{
    return left->is_canonical
               ? left_forget(store, left, err)
               : left_change(store,
                             "UPDATE place SET facts=NULL, checksum=row_sum('place', seq, backend,"
                             " name, size, NULL) WHERE seq=?1",
                             left->seq, err);
}

/* Adds it to what is to be dropped, unless an object has its name. */
static int left_look(left_batch *b, brc_left *left, brc_error *err)
{
    brc_buf name = BRC_BUF_INIT;
    brc_stored at = {.size = sizeof(at)};
    int named = 0;
    int rc = brc_row_text(b->store,
                          "SELECT name, checksum IS row_sum('place', seq, backend, name, size,"
                          " facts) FROM place WHERE seq=?1",
                          left->seq, "place", &name, err);
    if (rc == BRC_OK && !(left->is_canonical
                              ? brc_stored_parse_name(&at, (const char *)name.data)
                              : brc_is_place_name((const char *)name.data)))
        rc = brc_fail(err, BRC_ECORRUPT, "%s is damaged: the name of place %lld cannot be one",
                      b->store->path, (long long)left->seq);
    if (rc == BRC_OK)
        rc = left->is_canonical
                 ? brc_object_has_stored(b->store, left->backend, &at, &named, err)
                 : pack_is_named(b, left, &named, err);
    if (rc == BRC_OK && named)
        rc = left_again_used(b->store, left, err);
    if (rc < 0 || named) {
        brc_buf_dispose(&name);
        return rc;
    }
    at.place = left->is_canonical ? NULL : (const char *)name.data;
    b->left[b->n] = left;
    b->items[b->n] = at;
    b->names[b->n++] = (char *)name.data;
    return BRC_OK;
}

/* It stays as it is. */
static void left_stays(size_t n, size_t *failed, const brc_error *said, brc_error *why)
{
    if (*failed == 0)
        brc_error_copy(why, said);
    *failed += n;
}

static int left_drop_in(left_batch *b, brc_store_backend *backend, brc_left *left, size_t n,
                        size_t *failed, brc_error *why, brc_error *err)
{
    brc_stored *items[BRC_LEFT_AT_ONCE];
    brc_error said = BRC_ERROR_INIT;
    for (size_t i = 0; i < n; i++) {
        int rc = left_look(b, &left[i], &said);
        if (rc == BRC_ECORRUPT)
            left_stays(1, failed, &said, why);
        else if (rc < 0) {
            brc_error_copy(err, &said);
            return rc;
        }
    }
    for (size_t i = 0; i < b->n; i++)
        items[i] = &b->items[i];
    const int rc = b->n > 0 ? brc_backend_drop(backend, b->n, items, &said) : BRC_OK;
    for (size_t i = 0; i < b->n; i++)
        if (rc == BRC_OK || items[i]->status == BRC_OK)
            BRC_TRY(left_forget(b->store, b->left[i], err));
        else
            left_stays(1, failed, &said, why);
    brc_places_forget(backend);
    return BRC_OK;
}

int brc_left_drop(brc_store *store, int64_t run, brc_left *left, size_t n, size_t *failed,
                  brc_error *why, brc_error *err)
{
    left_batch b = {.store = store, .run = run};
    brc_store_backend *backend;
    brc_error said = BRC_ERROR_INIT;
    size_t stay = *failed;
    BRC_TRY(brc_store_begin(store, err));
    int rc = BRC_OK;
    const int used = brc_backend_use(store, left[0].backend, &backend, &said);
    if (used == BRC_OK)
        rc = left_drop_in(&b, backend, left, n, &stay, why, err);
    else if (used != BRC_EUNSUPPORTED) /* what this build cannot remove stays */
        left_stays(n, &stay, &said, why);
    left_batch_end(&b);
    int end = brc_store_end(store, rc == BRC_OK, rc == BRC_OK ? err : NULL);
    rc = rc < 0 ? rc : end;
    if (rc == BRC_OK)
        *failed = stay;
    return rc;
}
