/*
 * Places: what a backend calls a pack, somebody else's file, an object in a bucket. An object's row
 * has a place's number and an offset, so the name is read once for all that lie there.
 *
 * Invariant: a committed row's name never changes, and its number is never given again. So names
 * are kept, the last few of each backend, until a transaction is undone that may have added some. A
 * row goes when a collection of garbage has dropped the place: who names one looks if it is there.
 */
#include <stdlib.h>
#include <string.h>

#include "backend.h"

/* ---- names that are held -------------------------------- */

static size_t held_at(int64_t seq)
{
    return (size_t)((uint64_t)seq % BRC_PLACES_HELD);
}

static int hold_place(brc_store_backend *b, int64_t seq, const char *name, brc_error *err)
{
    char *own;
    const size_t i = held_at(seq);
    BRC_TRY(brc_dup(&own, name, err));
    free(b->places[i].name);
    b->places[i].name = own;
    b->places[i].seq = seq;
    return BRC_OK;
}

void brc_places_forget(brc_store_backend *b)
{
    for (size_t i = 0; i < BRC_PLACES_HELD; i++) {
        free(b->places[i].name);
        b->places[i].name = NULL;
        b->places[i].seq = 0;
    }
}

/* ---- rows -------------------------------- */

static int no_such_place(const brc_store_backend *b, int64_t seq, brc_error *err)
{
    return brc_fail(err, BRC_ECORRUPT, "%s is damaged: backend %lld has no place %lld",
                    b->store->path, (long long)b->id, (long long)seq);
}

/* A place of another backend is as good as none: its names mean something else. */
static int place_belongs(const brc_store_backend *b, int64_t seq, brc_error *err)
{
    sqlite3_stmt *st;
    int there;
    BRC_TRY(brc_schema_has(b->store, "place", &there, err));
    if (!there)
        return no_such_place(b, seq, err);
    BRC_TRY(brc_stmt(b->store, "SELECT 1 FROM place WHERE seq=?1 AND backend IS ?2", &st, err));
    sqlite3_bind_int64(st, 1, seq);
    sqlite3_bind_int64(st, 2, b->id);
    BRC_TRY(brc_ask_any(b->store, st, &there, err));
    return there ? BRC_OK : no_such_place(b, seq, err);
}

static int place_load(brc_store_backend *b, int64_t seq, brc_error *err)
{
    brc_buf name = BRC_BUF_INIT;
    BRC_TRY(place_belongs(b, seq, err));
    int rc = brc_row_text(b->store,
                          "SELECT name, checksum IS row_sum('place', seq, backend, name, size,"
                          " facts) FROM place WHERE seq=?1",
                          seq, "place", &name, err);
    if (rc == BRC_OK && !brc_is_place_name((const char *)name.data))
        rc = brc_fail(err, BRC_ECORRUPT, "%s is damaged: the name of place %lld cannot be one",
                      b->store->path, (long long)seq);
    if (rc == BRC_OK)
        rc = hold_place(b, seq, (const char *)name.data, err);
    brc_buf_dispose(&name);
    return rc;
}

int brc_object_place(brc_store_backend *b, const brc_object *o, const char **name, brc_error *err)
{
    *name = NULL;
    if (o->backend == 0 || o->place == 0)
        return BRC_OK;
    if (b->places[held_at(o->place)].seq != o->place)
        BRC_TRY(place_load(b, o->place, err));
    *name = b->places[held_at(o->place)].name;
    return BRC_OK;
}

static int place_insert(brc_store_backend *b, const char *name, int64_t *seq, brc_error *err)
{
    sqlite3_stmt *st;
    BRC_TRY(brc_stmt(b->store,
                     "INSERT INTO place(seq, backend, name, checksum) SELECT n, ?1, ?2,"
                     " row_sum('place', n, ?1, ?2, NULL, NULL) FROM (SELECT 1+max("
                     "(SELECT coalesce(max(seq),0) FROM place),"
                     " (SELECT coalesce(max(seq),0) FROM sqlite_sequence WHERE name='place'"
                     " AND typeof(seq)='integer')) AS n)",
                     &st, err));
    sqlite3_bind_int64(st, 1, b->id);
    sqlite3_bind_text(st, 2, name, -1, SQLITE_STATIC);
    BRC_TRY(brc_run(b->store, st, err));
    *seq = sqlite3_last_insert_rowid(b->store->db);
    return BRC_OK;
}

static int place_of_name(const brc_store_backend *b, const char *name, int64_t *seq, brc_error *err)
{
    sqlite3_stmt *st;
    *seq = 0;
    BRC_TRY(brc_stmt(b->store, "SELECT seq FROM place WHERE backend=?1 AND name=?2", &st, err));
    sqlite3_bind_int64(st, 1, b->id);
    sqlite3_bind_text(st, 2, name, -1, SQLITE_STATIC);
    int rc = brc_step(b->store, st, err);
    if (rc > 0)
        *seq = sqlite3_column_int64(st, 0);
    sqlite3_reset(st);
    return rc < 0 ? rc : BRC_OK;
}

/* The last one, if it has this name and is still there. */
static int place_is_last(const brc_store_backend *b, const char *name, int *is, brc_error *err)
{
    sqlite3_stmt *st;
    const int64_t seq = b->places[b->last_place].seq;
    *is = 0;
    if (seq == 0 || strcmp(b->places[b->last_place].name, name) != 0)
        return BRC_OK;
    BRC_TRY(brc_stmt(b->store, "SELECT 1 FROM place WHERE seq=?1", &st, err));
    sqlite3_bind_int64(st, 1, seq);
    return brc_ask_any(b->store, st, is, err);
}

int brc_place_intern(brc_store_backend *b, const char *name, int64_t *seq, brc_error *err)
{
    int there;
    BRC_TRY(brc_bulk_resume(b->store, NULL, err)); /* nobody adds either in between */
    *seq = b->places[b->last_place].seq;
    BRC_TRY(place_is_last(b, name, &there, err));
    if (there)
        return BRC_OK;
    BRC_TRY(brc_schema_need(b->store, "place", err));
    BRC_TRY(place_of_name(b, name, seq, err));
    if (*seq == 0)
        BRC_TRY(place_insert(b, name, seq, err));
    b->last_place = held_at(*seq);
    return hold_place(b, *seq, name, err);
}
