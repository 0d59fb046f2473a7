/*
 * Places: a backend's names of packs, of others' files, or of objects in a bucket. An object's row
 * has a place's number and an offset, so the name is read once for all objects in the place.
 *
 * Invariant: a committed row's number is never used again, and its name changes only when files of
 * others have moved (brc_place_rename). So the last few names of each backend are kept until a
 * transaction is undone that may have added some, or until a file is not where its name says. A row
 * is deleted when a garbage collection has dropped the place: a writer that names a place checks
 * that it exists.
 */
#include "backend.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../base/alloc.h"
#include "../base/hash.h"
#include "../base/json.h"
#include "../base/buf.h"
#include "db.h"
#include "removed.h"

/* ==== place ================================ */

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

/* Checks that a place belongs to this backend: names of another backend mean something else. */
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
        rc = brc_fail(err, BRC_ECORRUPT, "%s is damaged: the name of place %lld is not valid",
                      b->store->path, (long long)seq);
    if (rc == BRC_OK)
        rc = hold_place(b, seq, (const char *)name.data, err);
    brc_buf_dispose(&name);
    return rc;
}

int brc_place_after(brc_store *store, int64_t after, int64_t *seq, int64_t *backend, brc_buf *name,
                    brc_error *err)
{
    sqlite3_stmt *st;
    int there;
    *seq = 0;
    BRC_TRY(brc_schema_has(store, "place", &there, err));
    if (!there)
        return BRC_OK;
    BRC_TRY(brc_stmt(store,
                     "SELECT seq, backend, name FROM place WHERE seq>?1 ORDER BY seq LIMIT 1", &st,
                     err));
    sqlite3_bind_int64(st, 1, after);
    int rc = brc_step(store, st, err);
    if (rc <= 0)
        return rc;
    const char *text = (const char *)sqlite3_column_text(st, 2);
    *seq = sqlite3_column_int64(st, 0);
    *backend = sqlite3_column_int64(st, 1);
    rc = brc_buf_text(name, text != NULL ? text : "", err);
    sqlite3_reset(st);
    return rc;
}

int brc_object_place(brc_store_backend *b, const brc_object *o, const char **name, brc_error *err)
{
    *name = NULL;
    if (brc_is_in_file(o->backend) || o->place == 0)
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

int brc_place_next(const brc_store_backend *b, const char *after, int64_t *seq, brc_buf *name,
                   brc_error *err)
{
    sqlite3_stmt *st;
    int there;
    BRC_TRY(brc_schema_has(b->store, "place", &there, err));
    if (!there)
        return 0;
    BRC_TRY(brc_stmt(b->store,
                     "SELECT seq, name FROM place WHERE backend=?1 AND name>?2 ORDER BY name"
                     " LIMIT 1",
                     &st, err));
    sqlite3_bind_int64(st, 1, b->id);
    sqlite3_bind_text(st, 2, after, -1, SQLITE_STATIC);
    int rc = brc_step(b->store, st, err);
    name->len = 0;
    if (rc > 0) {
        const void *text = sqlite3_column_text(st, 1);
        *seq = sqlite3_column_int64(st, 0);
        const int copied = text == NULL ? brc_nomem(err)
                                        : brc_buf_append(name, text,
                                                         (size_t)sqlite3_column_bytes(st, 1), err);
        rc = copied < 0 ? copied : rc;
    }
    sqlite3_reset(st);
    if (rc > 0)
        BRC_TRY(brc_buf_terminate(name, err));
    return rc;
}

int brc_place_rename(brc_store_backend *b, int64_t seq, const char *was, const char *now,
                     brc_error *err)
{
    sqlite3_stmt *st;
    int64_t there;
    BRC_TRY(place_of_name(b, was, &there, err));
    if (there != seq)
        return 1;
    if (strcmp(was, now) == 0)
        return BRC_OK;
    BRC_TRY(place_of_name(b, now, &there, err));
    if (there != 0)
        return brc_fail(err, BRC_EEXISTS,
                        "chunks lie in \"%.300s\" already, under its own name: it was imported "
                        "again from there",
                        now);
    brc_places_forget(b);
    BRC_TRY(brc_stmt(b->store,
                     "UPDATE place SET name=?2, checksum=row_sum('place', seq, backend, ?2, size,"
                     " facts) WHERE seq=?1",
                     &st, err));
    sqlite3_bind_int64(st, 1, seq);
    sqlite3_bind_text(st, 2, now, -1, SQLITE_STATIC);
    return brc_run(b->store, st, err);
}

/* Stores whether the last place has this name and still exists. */
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
    /* within a transaction, so that nobody adds the place between look-up and insert */
    BRC_TRY(brc_bulk_resume(b->store, NULL, err));
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

/* ==== stored name ================================ */

/* The names of stored bytes: a canonical name, or an offset in a place. */

/* ---- canonical names -------------------------------- */

char *brc_stored_name(char out[BRC_STORED_NAME_SIZE], const brc_stored *stored)
{
    char hex[65];
    snprintf(out, BRC_STORED_NAME_SIZE, "%s-%016" PRIx64, brc_oid_format(hex, &stored->id),
             stored->sum);
    return out;
}

/* Parses a canonical name. Formats the result again and refuses a name that differs: it is not
 * canonical. */
int brc_stored_parse_name(brc_stored *stored, const char *name)
{
    char again[BRC_STORED_NAME_SIZE];
    brc_stored found = {.size = sizeof(found)};
    const char *sum = strchr(name, '-');
    const size_t digits = strspn(name, "0123456789abcdef");
    if (sum == NULL || name + digits != sum || digits > 2 * sizeof(found.id.bytes))
        return 0;
    for (size_t i = 0; i < digits; i++) {
        const char c = name[i];
        const int value = c <= '9' ? c - '0' : c - 'a' + 10;
        found.id.bytes[i / 2] = (uint8_t)(found.id.bytes[i / 2] << 4 | value);
    }
    found.sum = strtoull(sum + 1, NULL, 16);
    if (strcmp(brc_stored_name(again, &found), name) != 0)
        return 0;
    stored->id = found.id;
    stored->sum = found.sum;
    return 1;
}

/* ---- places -------------------------------- */

int brc_is_place_name(const char *name)
{
    const size_t len = strnlen(name, BRC_PLACE_MAX + 1);
    return len > 0 && len <= BRC_PLACE_MAX && brc_utf8_valid(name, len);
}

int brc_stored_put_at(brc_stored *stored, const char *place, uint64_t offset, brc_error *err)
{
    char *name;
    if (place == NULL || !brc_is_place_name(place))
        return brc_fail(err, BRC_EINVAL, "a place has a name in UTF-8 of 1 to %d bytes",
                        BRC_PLACE_MAX);
    if (offset > INT64_MAX || stored->len > INT64_MAX - offset)
        return brc_fail(err, BRC_EINVAL,
                        "the offset %" PRIu64 " in the place \"%.80s\" is too large", offset,
                        place);
    BRC_TRY(brc_dup(&name, place, err));
    brc_stored_clear(stored);
    stored->place = name;
    stored->offset = offset;
    return BRC_OK;
}

void brc_stored_clear(brc_stored *stored)
{
    free((void *)(uintptr_t)stored->place);
    stored->place = NULL;
    stored->offset = 0;
}

/* ==== backend inline ================================ */

/*
 * The backend "inline": stored bytes in rows of table blob. A place is a row's number.
 *
 * SQLite fills pages row by row: a row of a few KiB wastes up to its own size. So small objects
 * that a transaction adds share rows: `row` collects them, and is written when it is full and
 * before the transaction ends. The row's number is known from the start.
 */

/* A larger claimed size is compared with the bytes that exist before memory is reserved for
 * it; for a smaller one the search for the blob would cost more than the memory. */
#define CLAIM_MAX ((uint64_t)1 << 20)

int brc_inline_missing(brc_store *store, const brc_oid *id, brc_error *err)
{
    char hex[65];
    return brc_fail(err, BRC_ECORRUPT, "%s is damaged: the stored bytes of object %s are missing",
                    store->path, brc_oid_format(hex, id));
}

/* Fails with BRC_ESTALE: the object's bytes may have been moved since its row was looked up. */
static int inline_moved(brc_store *store, const brc_oid *id, brc_error *err)
{
    (void)brc_inline_missing(store, id, err);
    if (err != NULL)
        err->code = BRC_ESTALE;
    return BRC_ESTALE;
}

/* Returns 1 if a row of `there` bytes holds `len` bytes at `offset`. */
static int fits_row(uint64_t offset, uint64_t len, uint64_t there)
{
    return offset <= there && len <= there - offset;
}

int brc_inline_check_claim(brc_store *store, const brc_object *o, brc_error *err)
{
    int64_t there;
    sqlite3_stmt *st;
    if (o->stored <= CLAIM_MAX)
        return BRC_OK;
    BRC_TRY(brc_stmt(store, "SELECT length(data) FROM blob WHERE seq=?1", &st, err));
    sqlite3_bind_int64(st, 1, o->place);
    BRC_TRY(brc_ask_number(store, st, &there, err));
    return fits_row(o->offset, o->stored, (uint64_t)there)
               ? BRC_OK
               : brc_inline_missing(store, &o->id, err);
}

/* ---- fetching -------------------------------- */

/* Opens the blob row; it stays open from one fetch to the next. */
static int blob_reader_open(brc_store *store, const brc_stored *s, brc_error *err)
{
    int rc = SQLITE_ERROR;
    if (store->reader != NULL)
        rc = sqlite3_blob_reopen(store->reader, s->number);
    if (rc != SQLITE_OK) {
        brc_reader_close(store);
        rc = sqlite3_blob_open(store->db, "main", "blob", "data", s->number, 0, &store->reader);
    }
    if (rc == SQLITE_OK)
        return BRC_OK;
    brc_reader_close(store);
    return (rc & 0xff) == SQLITE_ERROR ? inline_moved(store, &s->id, err)
                                       : brc_fail_db(store, rc, "read it", err);
}

static int inline_fetch_one(brc_store *store, const brc_stored *s, brc_error *err)
{
    if (store->row.seq != 0 && s->number == store->row.seq) { /* not written yet */
        if (!fits_row(s->offset, s->len, store->row.bytes.len))
            return inline_moved(store, &s->id, err);
        if (s->len > 0)
            memcpy(s->into, store->row.bytes.data + s->offset, (size_t)s->len);
        return BRC_OK;
    }
    BRC_TRY(brc_read_resume(store, err));
    BRC_TRY(blob_reader_open(store, s, err));
    if (!fits_row(s->offset, s->len, (uint64_t)sqlite3_blob_bytes(store->reader)))
        return inline_moved(store, &s->id, err);
    int rc = sqlite3_blob_read(store->reader, s->into, (int)s->len, (int)s->offset);
    return rc == SQLITE_OK ? BRC_OK : brc_fail_db(store, rc, "read it", err);
}

static int inline_fetch(void *ctx, void *state, size_t n, brc_stored *const *items, brc_error *err)
{
    brc_store *store = state;
    int result = BRC_OK;
    (void)ctx;
    for (size_t i = 0; i < n; i++) {
        items[i]->status = inline_fetch_one(store, items[i], result == BRC_OK ? err : NULL);
        if (result == BRC_OK)
            result = items[i]->status;
    }
    /* Outside a transaction an open blob would keep the file locked. */
    if (store->read_depth == 0 && store->write_depth == 0)
        brc_reader_close(store);
    return result;
}

/* ---- putting -------------------------------- */

static int next_seq(brc_store *store, int64_t *seq, brc_error *err)
{
    sqlite3_stmt *st;
    if (store->last_seq == 0) {
        BRC_TRY(brc_stmt(store, "SELECT max(seq) FROM blob", &st, err));
        BRC_TRY(brc_ask_number(store, st, &store->last_seq, err));
    }
    if (store->last_seq < 0 || store->last_seq >= INT64_MAX - 1)
        return brc_fail(err, BRC_ECORRUPT, "%s is damaged: its numbers of blobs are used up",
                        store->path);
    *seq = ++store->last_seq;
    return BRC_OK;
}

static int blob_insert(brc_store *store, int64_t seq, const void *stored, uint64_t len,
                       brc_error *err)
{
    sqlite3_stmt *st;
    BRC_TRY(brc_stmt(store, "INSERT INTO blob(seq, data) VALUES (?1, ?2)", &st, err));
    sqlite3_bind_int64(st, 1, seq);
    sqlite3_bind_blob64(st, 2, len > 0 ? stored : "", len, SQLITE_STATIC);
    return brc_run(store, st, err);
}

static int inline_flush(void *ctx, void *state, brc_error *err)
{
    brc_store *store = state;
    (void)ctx;
    if (store->row.seq == 0)
        return BRC_OK;
    BRC_TRY(blob_insert(store, store->row.seq, store->row.bytes.data, store->row.bytes.len, err));
    store->row.seq = 0;
    store->row.bytes.len = 0;
    return BRC_OK;
}

void brc_row_forget(brc_store *store)
{
    store->row.seq = store->last_seq = 0;
    store->totals_dropped = 0;
    store->gc.is_read = 0;
    store->row.bytes.len = 0;
    store->left.n = 0;
}

int brc_rows_settle(brc_store *store, brc_error *err)
{
    BRC_TRY(inline_flush(NULL, store, err));
    return brc_rows_leave(store, err);
}

static int row_add(brc_store *store, brc_stored *s, brc_error *err)
{
    if (store->row.bytes.len >= BRC_ROW_FULL)
        BRC_TRY(inline_flush(NULL, store, err));
    if (store->row.seq == 0)
        BRC_TRY(next_seq(store, &store->row.seq, err));
    s->number = store->row.seq;
    s->offset = store->row.bytes.len;
    return s->len > 0 ? brc_buf_append(&store->row.bytes, s->data, (size_t)s->len, err) : BRC_OK;
}

static int inline_put(void *ctx, void *state, size_t n, brc_stored *const *items, brc_error *err)
{
    brc_store *store = state;
    (void)ctx;
    for (size_t i = 0; i < n; i++) {
        brc_stored *s = items[i];
        if (s->len <= BRC_SMALL_MOST) {
            BRC_TRY(row_add(store, s, err));
            continue;
        }
        s->offset = 0;
        BRC_TRY(next_seq(store, &s->number, err));
        BRC_TRY(blob_insert(store, s->number, s->data, s->len, err));
    }
    return BRC_OK;
}

/* ---- dropping -------------------------------- */

/* Drops an object's stored bytes. Bytes in a shared row stay there, unused, as long as another
 * object lies in the row: rows do not change. */
static int inline_drop_one(brc_store *store, const brc_stored *s, brc_error *err)
{
    int is_there;
    sqlite3_stmt *st;
    if (s->len <= BRC_SMALL_MOST)
        return brc_row_left(store, s->number, s->len, err);
    BRC_TRY(brc_stmt(store, "SELECT 1 FROM blob WHERE seq=?1 AND length(data)=?2", &st, err));
    sqlite3_bind_int64(st, 1, s->number);
    sqlite3_bind_int64(st, 2, (int64_t)s->len);
    BRC_TRY(brc_ask_any(store, st, &is_there, err));
    return is_there ? brc_blob_drop(store, s->number, err) : BRC_OK;
}

static int inline_drop(void *ctx, void *state, size_t n, brc_stored *const *items, brc_error *err)
{
    (void)ctx;
    for (size_t i = 0; i < n; i++)
        BRC_TRY(items[i]->status = inline_drop_one(state, items[i], err));
    return BRC_OK;
}

/* The backend's state is the store, which opens and closes it; it has no configuration. */
const brc_backend brc_inline_backend = {
    .size = sizeof(brc_backend),
    .name = BRC_INLINE,
    .fetch = inline_fetch,
    .put = inline_put,
    .flush = inline_flush,
    .drop = inline_drop,
};

/* ==== bytes that objects leave ================================ */

static int place_is_there(brc_store *store, int64_t backend, int64_t place, int *there,
                          brc_error *err)
{
    sqlite3_stmt *st;
    BRC_TRY(brc_schema_has(store, "place", there, err));
    if (!*there)
        return BRC_OK;
    BRC_TRY(brc_stmt(store, "SELECT 1 FROM place WHERE seq=?1 AND backend=?2", &st, err));
    sqlite3_bind_int64(st, 1, place);
    sqlite3_bind_int64(st, 2, backend);
    return brc_ask_any(store, st, there, err);
}

static int note_outside(brc_store *store, const brc_object *o, brc_error *err)
{
    const brc_stored at = {.size = sizeof(at), .id = o->id, .sum = o->checksum};
    brc_removed row = {.backend = o->backend, .place = o->place};
    int there = 1;
    if (o->place != 0)
        BRC_TRY(place_is_there(store, o->backend, o->place, &there, err));
    if (!there) /* a damaged row, whose object has no bytes */
        return BRC_OK;
    if (o->place == 0) {
        brc_stored_name(row.name, &at);
        row.total = (int64_t)o->stored;
    }
    BRC_TRY(brc_removed_find(store, &row, &there, err));
    const int64_t stored = o->stored <= INT64_MAX ? (int64_t)o->stored : 0;
    row.bytes = row.bytes > INT64_MAX - stored ? INT64_MAX : row.bytes + stored;
    if (row.total != 0 && row.total < row.bytes)
        row.total = row.bytes;
    row.state = BRC_REMOVED_FREE;
    row.due_us = 0;
    return brc_removed_put(store, &row, err);
}

int brc_removed_note(brc_store *store, const brc_object *o, brc_error *err)
{
    const brc_stored at = {.id = o->id, .len = o->stored, .number = o->place};
    return brc_is_in_file(o->backend) ? inline_drop_one(store, &at, err)
                                      : note_outside(store, o, err);
}

/* ==== backend ================================ */

/*
 * The backends of a store: their numbers in the file, and their states.
 *
 * Invariant: slots stay until the store is closed, so workers may use the slots that they were
 * given; only the numbers, which an undone transaction may have added, are forgotten and read
 * again.
 *
 * Bytes are durable when they were flushed after the put: each slot numbers its calls of put(), and
 * a row that names bytes of a call after the last flush makes the slot dirty.
 */

/* ---- numbers and specifications -------------------------------- */

void brc_store_set_ranges(brc_store *store, uint64_t gap, uint64_t range)
{
    store->gap = gap;
    store->range = range;
    for (size_t i = 0; i < store->backends.n; i++) {
        store->backends.slots[i]->host.gap = gap;
        store->backends.slots[i]->host.range = range;
    }
}

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

/* Gives the slot of a specification this number. */
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

static int host_credentials(void *ctx, const brc_server *server, brc_credentials *out,
                            brc_error *err)
{
    const brc_store *store = ctx;
    brc_error unread = BRC_ERROR_INIT;
    err = err != NULL ? err : &unread;
    *out = (brc_credentials){.size = sizeof(*out)};
    if (store->credentials == NULL)
        return brc_fail(err, BRC_EUNSUPPORTED,
                        "the chunks lie on the server %s, to which this program does not connect: "
                        "it has to open the file with a function for credentials",
                        server->endpoint);
    int rc = store->credentials(store->credentials_ctx, server, out, err);
    if (rc > 0)
        return brc_fail(err, BRC_EINTERRUPT, "the program does not connect to %s",
                        server->endpoint);
    return rc;
}

/* Writes the repository's id, which copies of the file share. It follows from the secret, so that a
 * file has it before a transaction that may be undone gives it a backend. */
static void write_repository_id(brc_store_backend *b)
{
    const brc_oid id = brc_hash_object(BRC_HASH_XXH128, 0, b->store->secret, BRC_SECRET_LEN);
    for (size_t i = 0; i < BRC_REPOSITORY_ID_LEN / 2; i++)
        snprintf(b->repository + 2 * i, 3, "%02x", id.bytes[i]);
}

static int open_config(brc_store_backend *b, const brc_json *spec, brc_error *err)
{
    const char *name, *file = sqlite3_db_filename(b->store->db, "main");
    const brc_json *config;
    BRC_TRY(brc_spec_parse("backend", spec, &name, &config, err));
    const brc_backend *impl = brc_registry_backend(b->store->registry, name);
    if (impl == NULL)
        return brc_fail(err, BRC_ECORRUPT, "%s is damaged: its own backend has a number",
                        b->store->path);
    write_repository_id(b);
    b->host = (brc_backend_host){
        .size = sizeof(b->host),
        .id = b->repository,
        .file = file != NULL ? file : "",
        .flags = b->store->readonly ? BRC_BACKEND_READONLY : 0,
        .ctx = b->store,
        .stopped = host_stopped,
        .credentials = host_credentials,
        .gap = b->store->gap,
        .range = b->store->range,
    };
    int rc = impl->open(impl->ctx, &b->state, config, &b->host, err);
    if (rc < 0)
        brc_context(err, "the backend \"%.80s\"", name);
    else
        b->impl = impl;
    return rc;
}

/* Opens a backend. Checks and completes the specification in the file before the backend sees
 * it. */
static int backend_open(brc_store_backend *b, brc_error *err)
{
    brc_json *spec = NULL;
    brc_buf full = BRC_BUF_INIT;
    int rc;
    if (brc_json_parse(&spec, b->spec, strlen(b->spec), 0, NULL) < 0)
        return brc_fail(err, BRC_ECORRUPT, "%s is damaged: a backend's row is not JSON",
                        b->store->path);
    rc = brc_backend_full(b->store->registry, spec, &full, err);
    if (rc == BRC_EINVAL) { /* the specification was checked when it was stored */
        rc = BRC_ECORRUPT;
        if (err != NULL)
            err->code = rc;
    }
    if (rc < 0)
        goto done;
    brc_json_free(spec);
    spec = NULL;
    BRC_GO(brc_json_parse(&spec, (const char *)full.data, full.len, 0, err));
    rc = open_config(b, spec, err);
done:
    brc_json_free(spec);
    brc_buf_dispose(&full);
    return rc;
}

int brc_backend_use(brc_store *store, int64_t id, brc_store_backend **out, brc_error *err)
{
    *out = &store->inline_backend;
    if (brc_is_in_file(id))
        return BRC_OK;
    BRC_TRY(backend_load(store, id, out, err));
    return (*out)->impl != NULL ? BRC_OK : backend_open(*out, err);
}

int brc_backend_spec(brc_store *store, int64_t id, const char **spec, brc_error *err)
{
    brc_store_backend *b;
    *spec = BRC_INLINE_SPEC;
    if (brc_is_in_file(id))
        return BRC_OK;
    BRC_TRY(backend_load(store, id, &b, err));
    *spec = b->spec;
    return BRC_OK;
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

int brc_backend_is_far(const brc_store_backend *b)
{
    return (b->impl->flags & BRC_BACKEND_FAR) != 0;
}

int brc_backend_is_slow(const brc_store_backend *b)
{
    return !brc_backend_is_inline(b) && (b->impl->flags & BRC_BACKEND_NEAR) == 0;
}

int brc_store_uses_far(const brc_store *store)
{
    for (size_t i = 0; i < store->backends.n; i++) {
        const brc_store_backend *b = store->backends.slots[i];
        if (b->impl != NULL && brc_backend_is_far(b))
            return 1;
    }
    return 0;
}

int brc_store_uses_others(const brc_store *store)
{
    for (size_t i = 0; i < store->backends.n; i++) {
        const brc_store_backend *b = store->backends.slots[i];
        if (b->impl != NULL && !brc_backend_is_inline(b))
            return 1;
    }
    return 0;
}

int brc_store_caches(const brc_store *store, const brc_store_backend *b)
{
    return store->chunks.cache != NULL && brc_backend_is_far(b);
}

int brc_store_cached(brc_store *store, const brc_store_backend *b, const brc_object *object,
                     uint8_t *into)
{
    return brc_store_caches(store, b) &&
           store->chunks.find(store->chunks.cache, b->spec, object, into);
}

void brc_store_keep(brc_store *store, const brc_store_backend *b, const brc_object *object,
                    const uint8_t *stored)
{
    if (brc_store_caches(store, b))
        store->chunks.keep(store->chunks.cache, b->spec, object, stored);
}

void brc_store_keep_now(brc_store *store)
{
    if (store->chunks.cache != NULL)
        store->chunks.settle(store->chunks.cache);
}

int brc_backend_can_put(const brc_store_backend *b)
{
    return b->impl->put != NULL;
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
    if (err != NULL && err->source[0] == '\0')
        brc_error_source(err,
                         rc == BRC_EIO && brc_backend_is_far(b) ? BRC_SERVER_SOURCE
                                                                : BRC_BACKEND_SOURCE,
                         rc);
    return rc;
}

int brc_is_out_of_reach(const brc_error *err)
{
    return err->code == BRC_EIO && strcmp(err->source, BRC_SERVER_SOURCE) == 0;
}

/* Returns the error of a failed fetch: BRC_ESTALE for missing bytes, because the row that named
 * them may have changed meanwhile. */
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
    if (b->impl->drop == NULL) /* this backend drops nothing */
        return BRC_OK;
    for (size_t i = 0; i < n; i++)
        items[i]->status = BRC_BACKEND_NOT_DONE;
    int rc = b->impl->drop(b->impl->ctx, b->state, n, items, err);
    return rc == BRC_OK ? BRC_OK : backend_failed(b, rc, err);
}

int brc_backend_look(const brc_store_backend *b, const char *place, brc_error *err)
{
    const int knows = b->impl->size > offsetof(brc_backend, look) && b->impl->look != NULL;
    const int rc = knows ? b->impl->look(b->impl->ctx, b->state, place, err) : BRC_OK;
    return rc == BRC_OK ? BRC_OK : backend_failed(b, rc, err);
}

int brc_backend_try(brc_store *store, const char *spec, brc_promise_fn each, void *to,
                    brc_error *err)
{
    brc_store_backend *b = slot_of_spec(store, spec);
    if (strcmp(spec, BRC_INLINE_SPEC) == 0)
        return BRC_OK;
    if (b == NULL) /* the next look-up of the number finds the row, if there is one */
        BRC_TRY(backend_bind(store, -1, spec, &b, err));
    if (b->impl == NULL)
        BRC_TRY(backend_open(b, err));
    if (b->impl->size <= offsetof(brc_backend, prove) || b->impl->prove == NULL)
        return BRC_OK;
    const int rc = b->impl->prove(b->impl->ctx, b->state, each, to, err);
    return rc < 0 ? backend_failed(b, rc, err) : rc;
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
                        "the backend \"%.80s\" is read-only: choose another backend for the array",
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

/* Flushes the file's own backend last: until then its transaction has written little. */
int brc_backends_flush(brc_store *store, brc_error *err)
{
    for (size_t i = 0; i < store->backends.n; i++)
        if (store->backends.slots[i]->is_dirty)
            BRC_TRY(backend_flush(store->backends.slots[i], err));
    return brc_inline_backend.flush(NULL, store, err);
}
