/* Rows of a collection of garbage: that it runs, what it was told to keep, and pins. */
#include "collect.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "../base/hash.h"
#include "../base/process.h"
#include "db.h"

#define GC_SUM "row_sum('gc', run, owner, phase, position, time_us)"

/* ---- the row -------------------------------- */

static int make_tables(brc_store *store, const char *const *names, brc_error *err)
{
    for (; *names != NULL; names++)
        BRC_TRY(brc_schema_need(store, *names, err));
    return BRC_OK;
}

static int gc_change(brc_store *store, const char *sql, int64_t run, brc_error *err)
{
    sqlite3_stmt *st;
    BRC_TRY(brc_stmt(store, sql, &st, err));
    sqlite3_bind_int64(st, 1, run);
    return brc_run(store, st, err);
}

static int gc_seal(brc_store *store, int64_t run, brc_error *err)
{
    sqlite3_stmt *st;
    BRC_TRY(brc_stmt(store, "UPDATE gc SET checksum=" GC_SUM " WHERE run=?1", &st, err));
    sqlite3_bind_int64(st, 1, run);
    return brc_run(store, st, err);
}

/* Collections of this process that go on, by their owners' digests. More at once than there is room
 * for are all taken for such. */
enum { AT_ONCE = 64 };
static _Atomic uint64_t collecting[AT_ONCE];

static int swap_owner(uint64_t from, uint64_t to)
{
    for (int i = 0; i < AT_ONCE; i++) {
        uint64_t was = from;
        if (atomic_compare_exchange_strong(&collecting[i], &was, to))
            return 1;
    }
    return 0;
}

static uint64_t owner_digest(const char *owner)
{
    return brc_hash_bytes(owner, strlen(owner)) | 1;
}

void brc_gc_enter(const char *owner)
{
    swap_owner(0, owner_digest(owner));
}

void brc_gc_exit(const char *owner)
{
    swap_owner(owner_digest(owner), 0);
}

static int goes_on(const char *owner)
{
    const uint64_t digest = owner_digest(owner);
    int n = 0;
    for (int i = 0; i < AT_ONCE; i++) {
        const uint64_t one = atomic_load(&collecting[i]);
        if (one == digest)
            return 1;
        n += one != 0;
    }
    return n == AT_ONCE;
}

/* Nobody's (''), of a process that is certainly gone, or of this one, which could not say that it
 * has stopped. */
static int may_take_over(brc_store *store, const char *owner, brc_error *err)
{
    if (owner == NULL || *owner == '\0' || brc_process_state(owner) == BRC_PROCESS_DEAD ||
        (brc_process_is_this(owner) && !goes_on(owner)))
        return BRC_OK;
    return brc_fail(err, BRC_EBUSY,
                    "%s: process %lld is collecting garbage already: wait until it is done, or "
                    "stop it and start again, which goes on where it was",
                    store->path, (long long)brc_process_id(owner));
}

static int gc_find(brc_store *store, brc_gc_row *out, brc_error *err)
{
    sqlite3_stmt *st;
    BRC_TRY(brc_stmt(store,
                     "SELECT run, phase, position, owner, checksum IS " GC_SUM
                     " FROM gc ORDER BY run DESC LIMIT 1",
                     &st, err));
    int rc = brc_step(store, st, err);
    if (rc <= 0)
        return rc;
    rc = brc_row_check(store, st, 4, "a collection of garbage", err);
    out->run = sqlite3_column_int64(st, 0);
    out->phase = sqlite3_column_int(st, 1);
    out->was_begun = 1;
    if (rc == BRC_OK && sqlite3_column_type(st, 2) != SQLITE_NULL)
        rc = brc_column_id(store, st, 2, &out->position, err);
    if (rc == BRC_OK)
        rc = may_take_over(store, (const char *)sqlite3_column_text(st, 3), err);
    sqlite3_reset(st);
    return rc;
}

/* One that is gone on with gets a new number. It marks anew, so it need not keep what the last one
 * was told to; and who stored something ahead of the transaction that names it sees that it must
 * look again. */
static int gc_begin_in(brc_store *store, const char *owner, int64_t now_us, brc_gc_row *out,
                       brc_error *err)
{
    static const char *const tables[] = {"gc", "gc_kept", NULL};
    sqlite3_stmt *st;
    memset(out, 0, sizeof(*out));
    BRC_TRY(make_tables(store, tables, err));
    BRC_TRY(gc_find(store, out, err));
    if (out->run != 0)
        BRC_TRY(gc_change(store, "DELETE FROM gc WHERE run=?1", out->run, err));
    BRC_TRY(brc_stmt(store,
                     "INSERT INTO gc(owner, phase, position, time_us, checksum)"
                     " VALUES (?1, 1, ?3, ?2, 0)",
                     &st, err));
    sqlite3_bind_text(st, 1, owner, -1, SQLITE_STATIC);
    sqlite3_bind_int64(st, 2, now_us);
    if (!brc_oid_is_zero(&out->position))
        brc_bind_id(store, st, 3, &out->position);
    BRC_TRY(brc_run(store, st, err));
    out->run = sqlite3_last_insert_rowid(store->db);
    out->phase = BRC_GC_MARKS;
    store->gc.is_read = 0;
    return gc_seal(store, out->run, err);
}

int brc_gc_begin(brc_store *store, const char *owner, int64_t now_us, brc_gc_row *out,
                 brc_error *err)
{
    BRC_TRY(brc_store_begin(store, err));
    int rc = gc_begin_in(store, owner, now_us, out, err);
    int end = brc_store_end(store, rc == BRC_OK, rc == BRC_OK ? err : NULL);
    return rc < 0 ? rc : end;
}

/* Whether it is still this owner's. */
static int gc_is_own(brc_store *store, const char *owner, int64_t run, brc_error *err)
{
    int own;
    sqlite3_stmt *st;
    BRC_TRY(brc_stmt(store, "SELECT 1 FROM gc WHERE run=?1 AND owner=?2", &st, err));
    sqlite3_bind_int64(st, 1, run);
    sqlite3_bind_text(st, 2, owner, -1, SQLITE_STATIC);
    BRC_TRY(brc_ask_any(store, st, &own, err));
    return own ? BRC_OK
               : brc_fail(err, BRC_ESTALE, "%s: another process has gone on with this collection",
                          store->path);
}

int brc_gc_note(brc_store *store, const char *owner, brc_gc_row *row, int phase,
                const brc_oid *position, brc_error *err)
{
    sqlite3_stmt *st;
    BRC_TRY(gc_is_own(store, owner, row->run, err));
    if (phase == row->phase && position == NULL)
        return BRC_OK;
    BRC_TRY(brc_stmt(store, "UPDATE gc SET phase=?2, position=coalesce(?3, position) WHERE run=?1",
                     &st, err));
    sqlite3_bind_int64(st, 1, row->run);
    sqlite3_bind_int(st, 2, phase);
    brc_bind_id(store, st, 3, position);
    BRC_TRY(brc_run(store, st, err));
    row->phase = phase;
    return gc_seal(store, row->run, err);
}

int brc_gc_leave(brc_store *store, const char *owner, const brc_gc_row *row, brc_error *err)
{
    BRC_TRY(brc_store_begin(store, err));
    int rc = gc_is_own(store, owner, row->run, err);
    if (rc == BRC_OK)
        rc = gc_change(store, "UPDATE gc SET owner='' WHERE run=?1", row->run, err);
    if (rc == BRC_OK)
        rc = gc_seal(store, row->run, err);
    int end = brc_store_end(store, rc == BRC_OK, rc == BRC_OK ? err : NULL);
    return rc < 0 ? rc : end;
}

static int drop_some_kept(brc_store *store, int *more, brc_error *err)
{
    int64_t run, running;
    sqlite3_stmt *st;
    BRC_TRY(brc_gc_running(store, &running, err));
    BRC_TRY(brc_stmt(store, "SELECT max(run) FROM gc_kept WHERE run<?1", &st, err));
    sqlite3_bind_int64(st, 1, running != 0 ? running : INT64_MAX);
    BRC_TRY(brc_ask_number(store, st, &run, err));
    *more = run != 0 && run != -running;
    return *more ? gc_change(store,
                             "DELETE FROM gc_kept WHERE run=?1 AND id IN"
                             " (SELECT id FROM gc_kept WHERE run=?1 LIMIT 2048)",
                             run, err)
                 : BRC_OK;
}

/* Rows of gc_kept may be many: they go bit by bit, when nobody adds any. */
static int drop_kept(brc_store *store, int *more, brc_error *err)
{
    BRC_TRY(brc_store_begin(store, err));
    int rc = drop_some_kept(store, more, err);
    int end = brc_store_end(store, rc == BRC_OK, rc == BRC_OK ? err : NULL);
    return rc < 0 ? rc : end;
}

int brc_gc_end(brc_store *store, const brc_gc_row *row, brc_error *err)
{
    int more = 1;
    BRC_TRY(brc_store_begin(store, err));
    int rc = gc_change(store, "DELETE FROM gc WHERE run=?1", row->run, err);
    store->gc.is_read = 0;
    int end = brc_store_end(store, rc == BRC_OK, rc == BRC_OK ? err : NULL);
    rc = rc < 0 ? rc : end;
    while (rc == BRC_OK && more)
        rc = drop_kept(store, &more, err);
    return rc;
}

int brc_gc_is_kept(brc_store *store, int64_t run, const brc_oid *id, int *kept, brc_error *err)
{
    sqlite3_stmt *st;
    BRC_TRY(brc_stmt(store, "SELECT 1 FROM gc_kept WHERE run=?1 AND id=?2", &st, err));
    sqlite3_bind_int64(st, 1, run);
    brc_bind_id(store, st, 2, id);
    return brc_ask_any(store, st, kept, err);
}

/* ---- pins -------------------------------- */

/* The next pin of a process that is gone; 0: there is none. */
static int dead_pin(brc_store *store, int64_t after, int64_t *id, brc_error *err)
{
    int rc = BRC_OK;
    sqlite3_stmt *st;
    *id = 0;
    BRC_TRY(brc_stmt(store, "SELECT id, owner FROM pin WHERE id>?1 ORDER BY id", &st, err));
    sqlite3_bind_int64(st, 1, after);
    while (*id == 0 && (rc = brc_step(store, st, err)) > 0) {
        const char *owner = (const char *)sqlite3_column_text(st, 1);
        if (owner != NULL && brc_process_state(owner) == BRC_PROCESS_DEAD)
            *id = sqlite3_column_int64(st, 0);
    }
    sqlite3_reset(st);
    return *id != 0 || rc >= 0 ? BRC_OK : rc;
}

int brc_pins_sweep(brc_store *store, brc_error *err)
{
    int there;
    int64_t id = 0;
    BRC_TRY(brc_schema_has(store, "pin", &there, err));
    if (!there)
        return BRC_OK;
    do {
        BRC_TRY(dead_pin(store, id, &id, err));
        if (id != 0)
            BRC_TRY(gc_change(store, "DELETE FROM pin WHERE id=?1", id, err));
    } while (id != 0);
    return BRC_OK;
}
