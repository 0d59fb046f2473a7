/* Writers tell a garbage collection that runs meanwhile which objects they store or rely on. */
#include "collect.h"
#include "db.h"

/* ---- the running collection -------------------------------- */

int brc_gc_running(brc_store *store, int64_t *run, brc_error *err)
{
    int there;
    sqlite3_stmt *st;
    *run = store->gc.run;
    if (store->gc.is_read)
        return BRC_OK;
    *run = 0;
    BRC_TRY(brc_schema_has(store, "gc_kept", &there, err));
    if (there) {
        BRC_TRY(brc_stmt(store, "SELECT max(run) FROM gc", &st, err));
        BRC_TRY(brc_ask_number(store, st, run, err));
    }
    store->gc.run = *run;
    store->gc.is_read = !sqlite3_get_autocommit(store->db) && !store->is_reading;
    return BRC_OK;
}

int brc_gc_last(brc_store *store, int64_t *run, brc_error *err)
{
    int there;
    sqlite3_stmt *st;
    *run = 0;
    BRC_TRY(brc_schema_has(store, "gc_kept", &there, err));
    if (!there)
        return BRC_OK;
    BRC_TRY(brc_stmt(store, "SELECT seq FROM sqlite_sequence WHERE name='gc'", &st, err));
    return brc_ask_number(store, st, run, err);
}

/* The number that makes writers check while a collection runs: such a collection began before, and
 * may drop bytes that are put now. */
enum { NEVER_STANDS = -1 };

/* Reads the last number first: a collection that begins before the second read has another
 * number. */
int brc_gc_puts_begin(brc_store *store, int64_t *since, brc_error *err)
{
    int64_t running;
    BRC_TRY(brc_gc_last(store, since, err));
    BRC_TRY(brc_gc_running(store, &running, err));
    if (running != 0)
        *since = NEVER_STANDS;
    return BRC_OK;
}

int brc_gc_puts_stand(brc_store *store, int64_t since, int *stand, brc_error *err)
{
    int64_t running, last;
    BRC_TRY(brc_gc_running(store, &running, err));
    BRC_TRY(brc_gc_last(store, &last, err));
    *stand = running == 0 && last == since;
    return BRC_OK;
}

/* Enters an object in gc_kept. Commits are entered under the negative number: they are roots
 * (collect.c), so all objects that they reach stay too. */
static int enter_kept(brc_store *store, const brc_oid *id, int is_commit, brc_error *err)
{
    int64_t run;
    sqlite3_stmt *st;
    BRC_TRY(brc_gc_running(store, &run, err));
    if (run == 0)
        return BRC_OK;
    BRC_TRY(brc_stmt(store, "INSERT INTO gc_kept(run, id) VALUES (?1, ?2) ON CONFLICT DO NOTHING",
                     &st, err));
    sqlite3_bind_int64(st, 1, is_commit ? -run : run);
    brc_bind_id(store, st, 2, id);
    return brc_run(store, st, err);
}

int brc_gc_keep(brc_store *store, const brc_oid *id, brc_error *err)
{
    return enter_kept(store, id, 0, err);
}

int brc_gc_keep_stored(brc_store *store, int kind, const brc_oid *id, brc_error *err)
{
    return enter_kept(store, id, kind == BRC_KIND_COMMIT, err);
}

int brc_gc_commit_is_there(brc_store *store, const brc_oid *id, brc_error *err)
{
    int there;
    char hex[65];
    sqlite3_stmt *st;
    BRC_TRY(brc_stmt(store, "SELECT 1 FROM object WHERE id=?1 AND kind=4", &st, err));
    brc_bind_id(store, st, 1, id);
    BRC_TRY(brc_ask_any(store, st, &there, err));
    if (there)
        return BRC_OK;
    return brc_fail(err, BRC_ESTALE,
                    "%s: commit %s was removed by a garbage collection, because nothing referred "
                    "to it: choose a version that still exists",
                    store->path, brc_oid_format(hex, id));
}

int brc_gc_keep_commit(brc_store *store, const brc_oid *id, brc_error *err)
{
    int there;
    BRC_TRY(brc_schema_has(store, "gc_kept", &there, err));
    if (!there) /* nothing was ever collected */
        return BRC_OK;
    BRC_TRY(brc_gc_commit_is_there(store, id, err));
    return enter_kept(store, id, 1, err);
}
